#include "formats/dag.h"

#include "base/text.h"

#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN_SIZE = 64 };

struct shown {
    char text[SHOWN_SIZE];
};

struct name {
    const char *id;
    uint32_t index;
};

/* The struct holds the state of one reading. */
struct reader {
    struct dag_file *file;
    struct problem *problem;
    struct name *processors, *tasks; /* sorted by id */
};

const char *dag_status_name(enum dag_status status)
{
    static const char *const names[] = {
        [DAG_OK] = "OK",
        [DAG_SYNTAX] = "DAG_SYNTAX",
        [DAG_FIELD] = "DAG_FIELD",
        [DAG_UNKNOWN] = "DAG_UNKNOWN",
        [DAG_DUPLICATE] = "DAG_DUPLICATE",
        [DAG_TOO_LARGE] = "DAG_TOO_LARGE",
        [DAG_NO_MEMORY] = "DAG_NO_MEMORY",
    };
    return names[status];
}

static void free_names(char **names, size_t count)
{
    for (size_t i = 0; names != NULL && i < count; i++) {
        free(names[i]);
    }
    free(names);
}

void dag_file_destroy(struct dag_file **self)
{
    struct dag_file *file = *self;
    if (file != NULL) {
        free(file->name);
        free(file->time_unit);
        free_names(file->processors, file->processor_count);
        free_names(file->tasks, file->task_count);
        free(file->costs);
        free(file->links);
        free(file->edges);
        free(file);
        *self = NULL;
    }
}

/* ---------------------------------------------------------------- values */

/* Returns an id in the form that a problem may show. */
static struct shown show(const char *id)
{
    struct shown shown;
    text_printable(id, strlen(id), shown.text, sizeof shown.text);
    return shown;
}

static const char *kind_of(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "a list";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
    case JSON_REAL:
        return "a number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "true or false";
    case JSON_NULL:
        break;
    }
    return "null";
}

static enum dag_status read_number(const json_t *value, const char *where, const char *key,
                                   double *ret_number, struct problem *problem)
{
    if (json_is_number(value)) {
        *ret_number = json_number_value(value);
        return DAG_OK;
    }
    if (value == NULL) {
        problem_set(problem, "%s has no \"%s\"; it is a number", where, key);
    } else if (json_is_string(value)) {
        struct shown shown = show(json_string_value(value));
        problem_set(problem, "%s: \"%s\" is %s, which is not a number", where, key, shown.text);
    } else {
        problem_set(problem, "%s: \"%s\" is %s, not a number", where, key, kind_of(value));
    }
    return DAG_FIELD;
}

static enum dag_status read_id(const json_t *object, const char *key, const char *where,
                               const char **ret_id, struct problem *problem)
{
    const json_t *value = json_object_get(object, key);
    const char *id = json_string_value(value);
    if (!json_is_object(object)) {
        problem_set(problem, "%s is %s, not an object", where, kind_of(object));
    } else if (value == NULL) {
        problem_set(problem, "%s has no \"%s\"", where, key);
    } else if (id == NULL) {
        problem_set(problem, "%s: \"%s\" is %s, not a string", where, key, kind_of(value));
    } else if (id[0] == '\0' || strlen(id) > DAG_ID_BYTES) {
        problem_set(problem, "%s: \"%s\" is a string of 1 to %d bytes", where, key, DAG_ID_BYTES);
    } else {
        *ret_id = id;
        return DAG_OK;
    }
    return DAG_FIELD;
}

/* Returns the list under `key` in *ret_list; the length of the list is checked. */
static enum dag_status read_list(const json_t *root, const char *key, size_t least, size_t most,
                                 const json_t **ret_list, struct problem *problem)
{
    const json_t *list = json_object_get(root, key);
    if (!json_is_array(list)) {
        problem_set(problem,
                    list == NULL ? "there is no \"%s\"; it is a list, which may be []"
                                 : "\"%s\" is not a list",
                    key);
        return DAG_FIELD;
    }
    size_t count = json_array_size(list);
    if (count < least || count > most) {
        problem_set(problem, "%zu %s; there are %zu to %zu", count, key, least, most);
        return count < least ? DAG_FIELD : DAG_TOO_LARGE;
    }
    *ret_list = list;
    return DAG_OK;
}

static enum dag_status no_memory(struct problem *problem)
{
    problem_set(problem, "there is not enough memory for it");
    return DAG_NO_MEMORY;
}

/* Allocates for at least one element, so that NULL always means that memory is short. */
static void *room_for(size_t count, size_t size)
{
    return calloc(count > 0 ? count : 1, size);
}

/* ---------------------------------------------------------------- names */

static int by_id(const void *left, const void *right)
{
    const struct name *a = left;
    const struct name *b = right;
    int order = strcmp(a->id, b->id);
    return order != 0 ? order : a->index < b->index ? -1 : a->index > b->index;
}

static int find_id(const void *key, const void *name)
{
    return strcmp(key, ((const struct name *)name)->id);
}

static enum dag_status read_names(const json_t *list, const char *what, char ***ret_ids,
                                  size_t *ret_count, struct name **ret_names,
                                  struct problem *problem)
{
    size_t count = json_array_size(list);
    char **ids = room_for(count, sizeof *ids);
    struct name *names = room_for(count, sizeof *names);
    *ret_ids = ids;
    *ret_names = names;
    *ret_count = ids != NULL ? count : 0;
    if (ids == NULL || names == NULL) {
        return no_memory(problem);
    }
    for (size_t i = 0; i < count; i++) {
        char where[SHOWN_SIZE];
        const char *id = NULL;
        (void)snprintf(where, sizeof where, "%s %zu", what, i);
        enum dag_status status = read_id(json_array_get(list, i), "id", where, &id, problem);
        if (status != DAG_OK) {
            return status;
        }
        ids[i] = strdup(id);
        if (ids[i] == NULL) {
            return no_memory(problem);
        }
        names[i] = (struct name){ids[i], (uint32_t)i};
    }
    qsort(names, count, sizeof *names, by_id);
    for (size_t i = 1; i < count; i++) {
        if (strcmp(names[i - 1].id, names[i].id) == 0) {
            struct shown shown = show(names[i].id);
            problem_set(problem, "%s %u and %u have the same id, \"%s\"", what, names[i - 1].index,
                        names[i].index, shown.text);
            return DAG_DUPLICATE;
        }
    }
    return DAG_OK;
}

/* Reads "src" and "dst" of a link or an edge, and writes its name for messages: edge "a" -> "b". */
static enum dag_status read_ends(const json_t *object, const char *what, size_t index,
                                 const struct name *names, size_t count, uint32_t ret_ends[2],
                                 char *ret_where, size_t capacity, struct problem *problem)
{
    static const char *const keys[] = {"src", "dst"};
    const char *ids[2] = {NULL, NULL};
    (void)snprintf(ret_where, capacity, "%s %zu", what, index);
    for (int i = 0; i < 2; i++) {
        enum dag_status status = read_id(object, keys[i], ret_where, &ids[i], problem);
        if (status != DAG_OK) {
            return status;
        }
        const struct name *found = bsearch(ids[i], names, count, sizeof *names, find_id);
        if (found == NULL) {
            struct shown shown = show(ids[i]);
            problem_set(problem, "%s: \"%s\" is \"%s\", which no %s has as its id", ret_where,
                        keys[i], shown.text, strcmp(what, "link") == 0 ? "processor" : "task");
            return DAG_UNKNOWN;
        }
        ret_ends[i] = found->index;
    }
    struct shown from = show(ids[0]);
    struct shown to = show(ids[1]);
    (void)snprintf(ret_where, capacity, "%s \"%s\" -> \"%s\"", what, from.text, to.text);
    return DAG_OK;
}

/* ---------------------------------------------------------------- the parts */

static enum dag_status read_costs(struct reader *reader, const json_t *list)
{
    struct dag_file *file = reader->file;
    for (size_t t = 0; t < file->task_count; t++) {
        const json_t *costs = json_object_get(json_array_get(list, t), "cost");
        struct shown task = show(file->tasks[t]);
        if (!json_is_array(costs) || json_array_size(costs) != file->processor_count) {
            problem_set(reader->problem,
                        "task \"%s\": \"cost\" is a list with a number or null for each of the "
                        "%zu processor%s",
                        task.text, file->processor_count, text_plural(file->processor_count));
            return DAG_FIELD;
        }
        for (size_t p = 0; p < file->processor_count; p++) {
            const json_t *cost = json_array_get(costs, p);
            double *into = &file->costs[t * file->processor_count + p];
            char where[3 * SHOWN_SIZE];
            *into = INFINITY;
            if (!json_is_null(cost) && !json_is_number(cost)) {
                struct shown processor = show(file->processors[p]);
                (void)snprintf(where, sizeof where, "task \"%s\" on \"%s\"", task.text,
                               processor.text);
                return read_number(cost, where, "cost", into, reader->problem);
            }
            if (json_is_number(cost)) {
                *into = json_number_value(cost);
            }
        }
    }
    return DAG_OK;
}

static enum dag_status read_links(struct reader *reader, const json_t *list)
{
    struct dag_file *file = reader->file;
    for (size_t i = 0; i < file->link_count; i++) {
        const json_t *object = json_array_get(list, i);
        char where[3 * SHOWN_SIZE];
        uint32_t ends[2] = {0, 0};
        enum dag_status status =
            read_ends(object, "link", i, reader->processors, file->processor_count, ends, where,
                      sizeof where, reader->problem);
        struct dag_link link = {.from = ends[0], .to = ends[1]};
        if (status == DAG_OK) {
            status = read_number(json_object_get(object, "latency"), where, "latency",
                                 &link.latency, reader->problem);
        }
        if (status == DAG_OK) {
            status = read_number(json_object_get(object, "bandwidth"), where, "bandwidth",
                                 &link.bandwidth, reader->problem);
        }
        if (status != DAG_OK) {
            return status;
        }
        file->links[i] = link;
    }
    return DAG_OK;
}

static enum dag_status read_edges(struct reader *reader, const json_t *list)
{
    struct dag_file *file = reader->file;
    for (size_t i = 0; i < file->edge_count; i++) {
        const json_t *object = json_array_get(list, i);
        char where[3 * SHOWN_SIZE];
        uint32_t ends[2] = {0, 0};
        enum dag_status status = read_ends(object, "edge", i, reader->tasks, file->task_count, ends,
                                           where, sizeof where, reader->problem);
        struct dag_edge edge = {.from = ends[0], .to = ends[1]};
        if (status == DAG_OK) {
            status = read_number(json_object_get(object, "bytes"), where, "bytes", &edge.bytes,
                                 reader->problem);
        }
        if (status != DAG_OK) {
            return status;
        }
        file->edges[i] = edge;
    }
    return DAG_OK;
}

static char *text_of(const json_t *root, const char *key)
{
    const char *text = json_string_value(json_object_get(root, key));
    return strdup(text != NULL ? text : "");
}

static enum dag_status read_head(struct reader *reader, const json_t *root)
{
    if (!json_is_object(root)) {
        problem_set(reader->problem, "the file is %s, not an object", kind_of(root));
        return DAG_FIELD;
    }
    const char *format = json_string_value(json_object_get(root, "format"));
    if (format == NULL || strcmp(format, "bourse-dag-1") != 0) {
        problem_set(reader->problem, "\"format\" is not \"bourse-dag-1\"");
        return DAG_FIELD;
    }
    reader->file->name = text_of(root, "name");
    reader->file->time_unit = text_of(root, "time_unit");
    bool ok = reader->file->name != NULL && reader->file->time_unit != NULL;
    return ok ? DAG_OK : no_memory(reader->problem);
}

static enum dag_status make_room(struct reader *reader, const json_t *links, const json_t *edges)
{
    struct dag_file *file = reader->file;
    file->link_count = json_array_size(links);
    file->edge_count = json_array_size(edges);
    file->costs = room_for(file->task_count * file->processor_count, sizeof *file->costs);
    file->links = room_for(file->link_count, sizeof *file->links);
    file->edges = room_for(file->edge_count, sizeof *file->edges);
    bool ok = file->costs != NULL && file->links != NULL && file->edges != NULL;
    return ok ? DAG_OK : no_memory(reader->problem);
}

static enum dag_status read_file(struct reader *reader, const json_t *root)
{
    struct dag_file *file = reader->file;
    struct problem *problem = reader->problem;
    const json_t *processors = NULL;
    const json_t *links = NULL;
    const json_t *tasks = NULL;
    const json_t *edges = NULL;
    enum dag_status status = read_head(reader, root);
    if (status == DAG_OK) {
        status = read_list(root, "processors", 1, DAG_PROCESSORS, &processors, problem);
    }
    if (status == DAG_OK) {
        status = read_list(root, "links", 0, DAG_LINKS, &links, problem);
    }
    if (status == DAG_OK) {
        status = read_list(root, "tasks", 1, DAG_TASKS, &tasks, problem);
    }
    if (status == DAG_OK) {
        status = read_list(root, "edges", 0, DAG_EDGES, &edges, problem);
    }
    if (status == DAG_OK) {
        status = read_names(processors, "processor", &file->processors, &file->processor_count,
                            &reader->processors, problem);
    }
    if (status == DAG_OK) {
        status =
            read_names(tasks, "task", &file->tasks, &file->task_count, &reader->tasks, problem);
    }
    if (status == DAG_OK) {
        status = make_room(reader, links, edges);
    }
    if (status == DAG_OK) {
        status = read_links(reader, links);
    }
    if (status == DAG_OK) {
        status = read_costs(reader, tasks);
    }
    return status == DAG_OK ? read_edges(reader, edges) : status;
}

/* ---------------------------------------------------------------- not quite JSON */

static bool is_letter(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

/* Many programs write NaN and Infinity, which JSON does not have. The function returns a copy of
 * the text in which they are strings, so that the reader can name the task with the cost. The
 * copy is never accepted. The function returns NULL when there are none, or memory is short. */
static char *name_nonsense(const char *bytes, size_t length, size_t *ret_length)
{
    char *text = malloc(2 * length + 1);
    bool in_string = false;
    bool found = false;
    size_t to = 0;
    for (size_t at = 0; text != NULL && at < length;) {
        size_t word = 0;
        while (!in_string && at + word < length && is_letter(bytes[at + word])) {
            word++;
        }
        bool is_nan = word == 3 && memcmp(&bytes[at], "NaN", 3) == 0;
        bool is_infinite = word == 8 && memcmp(&bytes[at], "Infinity", 8) == 0;
        if (is_nan || is_infinite) {
            to -= to > 0 && text[to - 1] == '-';
            text[to++] = '"';
            memcpy(&text[to], &bytes[at], word);
            to += word;
            text[to++] = '"';
            found = true;
        } else {
            word = word > 0 ? word : 1;
            if (in_string && bytes[at] == '\\' && at + 1 < length) {
                word = 2;
            } else if (bytes[at] == '"') {
                in_string = !in_string;
            }
            memcpy(&text[to], &bytes[at], word);
            to += word;
        }
        at += word;
    }
    if (!found) {
        free(text);
        return NULL;
    }
    *ret_length = to;
    return text;
}

static enum dag_status explain_syntax(struct reader *reader, const char *bytes, size_t length,
                                      const json_error_t *error)
{
    size_t named_length = 0;
    char *named = name_nonsense(bytes, length, &named_length);
    json_t *root =
        named != NULL ? json_loadb(named, named_length, JSON_REJECT_DUPLICATES, NULL) : NULL;
    enum dag_status status = root != NULL ? read_file(reader, root) : DAG_OK;
    json_decref(root);
    free(named);
    if (status == DAG_OK) {
        struct shown shown = show(error->text);
        problem_set(reader->problem, "line %d, column %d: %s", error->line, error->column,
                    shown.text);
        status = DAG_SYNTAX;
    }
    return status;
}

enum dag_status dag_parse(const char *bytes, size_t length, struct dag_file **ret_file,
                          struct problem *ret_problem)
{
    struct reader reader = {.file = calloc(1, sizeof *reader.file), .problem = ret_problem};
    if (reader.file == NULL) {
        return no_memory(ret_problem);
    }
    enum dag_status status = DAG_OK;
    if (length > DAG_FILE_BYTES) {
        problem_set(ret_problem, "%zu bytes; at most %d are read", length, DAG_FILE_BYTES);
        status = DAG_TOO_LARGE;
    } else {
        json_error_t error;
        json_t *root = json_loadb(bytes, length, JSON_REJECT_DUPLICATES, &error);
        status = root != NULL ? read_file(&reader, root)
                              : explain_syntax(&reader, bytes, length, &error);
        json_decref(root);
    }
    free(reader.processors);
    free(reader.tasks);
    if (status != DAG_OK) {
        dag_file_destroy(&reader.file);
        return status;
    }
    *ret_file = reader.file;
    return DAG_OK;
}
