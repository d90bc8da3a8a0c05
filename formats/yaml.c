#include "formats/yaml.h"

#include "base/text.h"
#include "formats/limits.h"
#include "formats/units.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

struct yaml_file {
    yaml_document_t document;
    bool loaded; /* true: the document must be deleted */
    const char *name;
    struct problem problem;
    bool failed;
};

enum { SHOWN_SIZE = 48 }; /* bytes of a name or value that a message shows */

/* ---------------------------------------------------------------- refusals */

static void refuse_at(struct yaml_file *file, size_t line, const char *what)
{
    if (!file->failed) {
        file->failed = true;
        problem_set(&file->problem, "%s:%zu: %s", file->name, line, what);
    }
}

static void show(const char *text, char ret_text[SHOWN_SIZE])
{
    text_printable(text, strlen(text), ret_text, SHOWN_SIZE);
}

/* Returns the node of a value, or NULL for an absent one. */
static yaml_node_t *node_of(struct yaml_value value)
{
    return value.node == 0 ? NULL : yaml_document_get_node(&value.file->document, value.node);
}

static size_t node_count(const yaml_node_t *node)
{
    if (node->type == YAML_MAPPING_NODE) {
        return (size_t)(node->data.mapping.pairs.top - node->data.mapping.pairs.start);
    }
    if (node->type == YAML_SEQUENCE_NODE) {
        return (size_t)(node->data.sequence.items.top - node->data.sequence.items.start);
    }
    return 0;
}

/* Returns the key whose value `node` is, directly or inside lists. Returns NULL for keys and the
 * root. The function is called for refusals alone, so a walk over all nodes is cheap enough. */
static const char *key_over(struct yaml_file *file, int node)
{
    for (int level = 0; level < FORMAT_DEPTH; level++) {
        int parent = 0;
        const yaml_node_t *container;
        for (int i = 1;
             parent == 0 && (container = yaml_document_get_node(&file->document, i)) != NULL; i++) {
            for (size_t k = 0; k < node_count(container) && parent == 0; k++) {
                if (container->type == YAML_SEQUENCE_NODE) {
                    parent = container->data.sequence.items.start[k] == node ? i : 0;
                } else if (container->data.mapping.pairs.start[k].value == node) {
                    int key = container->data.mapping.pairs.start[k].key;
                    return (const char *)yaml_document_get_node(&file->document, key)
                        ->data.scalar.value;
                }
            }
        }
        node = parent;
    }
    return NULL;
}

void yaml_refuse(struct yaml_value value, const char *format, ...)
{
    if (value.file->failed) {
        return;
    }
    struct problem what;
    int prefix = 0;
    const char *key = yaml_present(value) ? key_over(value.file, value.node) : NULL;
    if (key != NULL) {
        char shown[SHOWN_SIZE];
        show(key, shown);
        prefix = snprintf(what.text, sizeof what.text, "%s: ", shown);
    }
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(what.text + prefix, sizeof what.text - (size_t)prefix, format, arguments);
    va_end(arguments);
    unsigned line = yaml_line(value);
    refuse_at(value.file, line > 0 ? line : 1, what.text);
}

bool yaml_finished(const struct yaml_file *file, struct problem *ret_problem)
{
    if (file->failed && ret_problem != NULL) {
        *ret_problem = file->problem;
    }
    return !file->failed;
}

/* ---------------------------------------------------------------- opening */

/* Counts taken from the events before a document is built: depth, nodes, documents. */
struct scan {
    size_t depth;
    size_t nodes;
    size_t documents;
};

/* Returns the reason to refuse an event, or NULL. */
static const char *judge_node(const unsigned char *anchor, const unsigned char *tag)
{
    if (anchor != NULL) {
        return "anchors (&name) are not taken; write the value again";
    }
    return tag != NULL ? "tags (!name) are not taken; leave the tag out" : NULL;
}

static const char *judge_event(const yaml_event_t *event, struct scan *scan)
{
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (event->data.document_start.version_directive != NULL ||
            event->data.document_start.tag_directives.start !=
                event->data.document_start.tag_directives.end) {
            return "directives (%YAML, %TAG) are not taken; leave the line out";
        }
        return ++scan->documents > 1 ? "a second document begins here; one file holds one" : NULL;
    case YAML_ALIAS_EVENT:
        return "aliases (*name) are not taken; write the value again";
    case YAML_SCALAR_EVENT:
        scan->nodes++;
        if (memchr(event->data.scalar.value, '\0', event->data.scalar.length) != NULL) {
            return "a text with a NUL byte in it";
        }
        return judge_node(event->data.scalar.anchor, event->data.scalar.tag);
    case YAML_SEQUENCE_START_EVENT:
        scan->nodes++;
        scan->depth++;
        return judge_node(event->data.sequence_start.anchor, event->data.sequence_start.tag);
    case YAML_MAPPING_START_EVENT:
        scan->nodes++;
        scan->depth++;
        return judge_node(event->data.mapping_start.anchor, event->data.mapping_start.tag);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        scan->depth--;
        return NULL;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        return NULL;
    }
    return "an unknown event";
}

static void refuse_syntax(struct yaml_file *file, const yaml_parser_t *parser)
{
    char what[160];
    const char *problem = parser->problem != NULL ? parser->problem : "not YAML";
    if (parser->error == YAML_READER_ERROR) {
        (void)snprintf(what, sizeof what, "not text: %s at byte %zu", problem,
                       parser->problem_offset);
        refuse_at(file, parser->mark.line + 1, what);
    } else {
        (void)snprintf(what, sizeof what, "not YAML: %s%s%s",
                       parser->context != NULL ? parser->context : "",
                       parser->context != NULL ? ", " : "", problem);
        refuse_at(file, parser->problem_mark.line + 1, what);
    }
}

static void start_parser(yaml_parser_t *parser, const char *text, size_t length)
{
    yaml_parser_set_encoding(parser, YAML_UTF8_ENCODING);
    const char *input = text != NULL ? text : ""; /* libyaml asserts that the input is not NULL */
    yaml_parser_set_input_string(parser, (const unsigned char *)input, length);
}

/* Makes a first pass over flat events: nothing that it refuses ever becomes a tree. */
static bool scan_events(struct yaml_file *file, const char *text, size_t length)
{
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser)) {
        refuse_at(file, 1, "out of memory");
        return false;
    }
    start_parser(&parser, text, length);
    struct scan scan = {0};
    for (bool more = true; more && !file->failed;) {
        yaml_event_t event;
        if (!yaml_parser_parse(&parser, &event)) {
            refuse_syntax(file, &parser);
            break;
        }
        const char *refusal = judge_event(&event, &scan);
        char what[80];
        if (scan.depth > FORMAT_DEPTH || scan.nodes > FORMAT_NODES) {
            bool deep = scan.depth > FORMAT_DEPTH;
            (void)snprintf(what, sizeof what, "%s than %d", deep ? "nested deeper" : "more values",
                           deep ? FORMAT_DEPTH : FORMAT_NODES);
            refusal = what;
        }
        if (refusal != NULL) {
            refuse_at(file, event.start_mark.line + 1, refusal);
        }
        more = event.type != YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    return !file->failed;
}

static bool load_document(struct yaml_file *file, const char *text, size_t length)
{
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser)) {
        refuse_at(file, 1, "out of memory");
        return false;
    }
    start_parser(&parser, text, length);
    if (yaml_parser_load(&parser, &file->document)) {
        file->loaded = true;
    } else {
        refuse_syntax(file, &parser);
    }
    yaml_parser_delete(&parser);
    return file->loaded;
}

static const yaml_node_t *key_node(struct yaml_file *file, const yaml_node_t *map, size_t index)
{
    return yaml_document_get_node(&file->document, map->data.mapping.pairs.start[index].key);
}

/* Checks that every key is a text and unique in its map. A map has few keys, so comparing all
 * pairs is cheap enough. */
static void check_keys(struct yaml_file *file, const yaml_node_t *map)
{
    if (node_count(map) > FORMAT_KEYS) {
        char what[64];
        (void)snprintf(what, sizeof what, "a map with more than %d keys", FORMAT_KEYS);
        refuse_at(file, map->start_mark.line + 1, what);
        return;
    }
    for (size_t i = 0; i < node_count(map) && !file->failed; i++) {
        const yaml_node_t *key = key_node(file, map, i);
        if (key->type != YAML_SCALAR_NODE) {
            refuse_at(file, key->start_mark.line + 1, "a key must be plain text");
            return;
        }
        const char *text = (const char *)key->data.scalar.value;
        for (size_t k = 0; k < i; k++) {
            const yaml_node_t *other = key_node(file, map, k);
            if (strcmp((const char *)other->data.scalar.value, text) == 0) {
                char shown[SHOWN_SIZE];
                char what[128];
                show(text, shown);
                (void)snprintf(what, sizeof what, "key \"%s\" is given twice, first on line %zu",
                               shown, other->start_mark.line + 1);
                refuse_at(file, key->start_mark.line + 1, what);
                return;
            }
        }
    }
}

static void check_document(struct yaml_file *file)
{
    for (int i = 1; !file->failed; i++) {
        const yaml_node_t *node = yaml_document_get_node(&file->document, i);
        if (node == NULL) {
            return;
        }
        if (node->type == YAML_MAPPING_NODE) {
            check_keys(file, node);
        }
    }
}

struct yaml_file *yaml_open(const char *text, size_t length, const char *file_name,
                            struct problem *ret_problem)
{
    struct yaml_file *file = calloc(1, sizeof *file);
    if (file == NULL) {
        problem_set(ret_problem, "%s: out of memory", file_name);
        return NULL;
    }
    file->name = file_name;
    if (length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
        text += 3; /* the byte order mark that some editors write */
        length -= 3;
    }
    if (length > FORMAT_FILE_BYTES) {
        char what[80];
        (void)snprintf(what, sizeof what, "the file has %zu bytes; at most %d are read", length,
                       FORMAT_FILE_BYTES);
        refuse_at(file, 1, what);
    } else if (scan_events(file, text, length) && load_document(file, text, length)) {
        check_document(file);
    }
    if (!yaml_finished(file, ret_problem)) {
        yaml_close(&file);
    }
    return file;
}

void yaml_close(struct yaml_file **self)
{
    struct yaml_file *file = *self;
    if (file != NULL) {
        if (file->loaded) {
            yaml_document_delete(&file->document);
        }
        free(file);
        *self = NULL;
    }
}

/* ---------------------------------------------------------------- walking */

struct yaml_value yaml_root(struct yaml_file *file)
{
    bool empty = yaml_document_get_root_node(&file->document) == NULL;
    return (struct yaml_value){.file = file, .node = empty ? 0 : 1};
}

bool yaml_present(struct yaml_value value)
{
    return value.node != 0;
}

static bool is_null(const yaml_node_t *node)
{
    const char *text = (const char *)node->data.scalar.value;
    return node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
           (text[0] == '\0' || strcmp(text, "~") == 0 || strcmp(text, "null") == 0);
}

enum yaml_kind yaml_kind(struct yaml_value value)
{
    const yaml_node_t *node = node_of(value);
    if (node == NULL) {
        return YAML_KIND_ABSENT;
    }
    switch (node->type) {
    case YAML_SCALAR_NODE:
        return is_null(node) ? YAML_KIND_NULL : YAML_KIND_TEXT;
    case YAML_SEQUENCE_NODE:
        return YAML_KIND_LIST;
    case YAML_MAPPING_NODE:
        return YAML_KIND_MAP;
    case YAML_NO_NODE:
        break;
    }
    return YAML_KIND_ABSENT;
}

unsigned yaml_line(struct yaml_value value)
{
    const yaml_node_t *node = node_of(value);
    return node == NULL ? 0 : (unsigned)node->start_mark.line + 1;
}

static void refuse_kind(struct yaml_value value, const char *wanted)
{
    static const char *const found[] = {
        [YAML_KIND_ABSENT] = "nothing",      [YAML_KIND_NULL] = "no value",
        [YAML_KIND_TEXT] = "a single value", [YAML_KIND_LIST] = "a list",
        [YAML_KIND_MAP] = "a map of keys",
    };
    yaml_refuse(value, "%s is needed here, not %s", wanted, found[yaml_kind(value)]);
}

bool yaml_is_list(struct yaml_value value, size_t most)
{
    if (yaml_kind(value) != YAML_KIND_LIST) {
        refuse_kind(value, "a list");
        return false;
    }
    if (yaml_count(value) > most) {
        yaml_refuse(value, "%zu items; at most %zu are taken", yaml_count(value), most);
        return false;
    }
    return true;
}

bool yaml_is_map(struct yaml_value value, size_t most)
{
    if (yaml_kind(value) != YAML_KIND_MAP) {
        refuse_kind(value, "a map (key: value)");
        return false;
    }
    if (yaml_count(value) > most) {
        yaml_refuse(value, "%zu keys; at most %zu are taken", yaml_count(value), most);
        return false;
    }
    return true;
}

size_t yaml_count(struct yaml_value value)
{
    const yaml_node_t *node = node_of(value);
    return node == NULL ? 0 : node_count(node);
}

/* Returns the container, where `index` is inside it. Refuses a value of another kind or a
 * smaller one, and returns NULL. */
static const yaml_node_t *walked(struct yaml_value value, enum yaml_kind kind, size_t index)
{
    if (yaml_kind(value) != kind || index >= yaml_count(value)) {
        refuse_kind(value, kind == YAML_KIND_LIST ? "a longer list" : "a map of more keys");
        return NULL;
    }
    return node_of(value);
}

struct yaml_value yaml_item(struct yaml_value list, size_t index)
{
    const yaml_node_t *node = walked(list, YAML_KIND_LIST, index);
    return (struct yaml_value){list.file,
                               node != NULL ? node->data.sequence.items.start[index] : 0};
}

static struct yaml_value entry_key(struct yaml_value map, size_t index)
{
    const yaml_node_t *node = walked(map, YAML_KIND_MAP, index);
    return (struct yaml_value){map.file,
                               node != NULL ? node->data.mapping.pairs.start[index].key : 0};
}

const char *yaml_entry_key(struct yaml_value map, size_t index)
{
    const yaml_node_t *key = node_of(entry_key(map, index));
    return key != NULL ? (const char *)key->data.scalar.value : "";
}

struct yaml_value yaml_entry(struct yaml_value map, size_t index)
{
    const yaml_node_t *node = walked(map, YAML_KIND_MAP, index);
    return (struct yaml_value){map.file,
                               node != NULL ? node->data.mapping.pairs.start[index].value : 0};
}

void yaml_known_keys(struct yaml_value map, const char *const *keys, size_t count)
{
    if (!yaml_present(map) || !yaml_is_map(map, SIZE_MAX)) {
        return;
    }
    for (size_t i = 0; i < yaml_count(map); i++) {
        const char *key = yaml_entry_key(map, i);
        bool known = false;
        for (size_t k = 0; k < count && !known; k++) {
            known = strcmp(keys[k], key) == 0;
        }
        if (!known) {
            char shown[SHOWN_SIZE];
            show(key, shown);
            const char *nearest = text_nearest(key, keys, count);
            if (nearest != NULL) {
                yaml_refuse(entry_key(map, i), "unknown key \"%s\"; did you mean \"%s\"?", shown,
                            nearest);
            } else {
                yaml_refuse(entry_key(map, i), "unknown key \"%s\"", shown);
            }
        }
    }
}

struct yaml_value yaml_key(struct yaml_value map, const char *key)
{
    if (yaml_kind(map) == YAML_KIND_MAP) {
        for (size_t i = 0; i < yaml_count(map); i++) {
            if (strcmp(yaml_entry_key(map, i), key) == 0) {
                return yaml_entry(map, i);
            }
        }
    }
    return (struct yaml_value){.file = map.file};
}

struct yaml_value yaml_required(struct yaml_value map, const char *key)
{
    struct yaml_value value = yaml_key(map, key);
    if (!yaml_present(value)) {
        yaml_refuse(map, "\"%s:\" is missing", key);
    }
    return value;
}

const char *yaml_text(struct yaml_value value, size_t most_bytes, const char *fallback)
{
    switch (yaml_kind(value)) {
    case YAML_KIND_ABSENT:
        return fallback;
    case YAML_KIND_NULL:
        yaml_refuse(value, "the value is missing (an empty text is written \"\")");
        return fallback;
    case YAML_KIND_LIST:
    case YAML_KIND_MAP:
        refuse_kind(value, "a single value");
        return fallback;
    case YAML_KIND_TEXT:
        break;
    }
    const yaml_node_t *node = node_of(value);
    if (node->data.scalar.length > most_bytes) {
        yaml_refuse(value, "%zu bytes; at most %zu are taken", node->data.scalar.length,
                    most_bytes);
        return fallback;
    }
    return (const char *)node->data.scalar.value;
}
