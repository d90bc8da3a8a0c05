#include "formats/template.h"

#include "base/pattern.h"
#include "base/text.h"
#include "formats/limits.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum placeholder { HOLE_IN, HOLE_LINE, HOLE_INDEX, HOLE_VALUE, HOLE_OUT, HOLE_COUNT };

static const struct {
    const char *name;
    unsigned sources; /* bits of enum template_source */
    const char *needs;
} holes[HOLE_COUNT] = {
    [HOLE_IN] = {"in", TEMPLATE_EACH, "`each:`"},
    [HOLE_LINE] = {"line", TEMPLATE_LINES, "`lines:`"},
    [HOLE_INDEX] = {"index", TEMPLATE_ARRAY, "`array:`"},
    [HOLE_VALUE] = {"value", TEMPLATE_EACH | TEMPLATE_ARRAY | TEMPLATE_LINES,
                    "`each:`, `array:` or `lines:`"},
    [HOLE_OUT] = {"out", TEMPLATE_ANY, ""},
};

/* A piece of a template is a run of plain bytes, or a placeholder. */
struct piece {
    const char *bytes;
    size_t length;
    enum placeholder hole; /* HOLE_COUNT: plain bytes */
};

enum piece_status { PIECE_END, PIECE_OK, PIECE_BAD };

/* Reads the piece at *text and moves *text behind it. PIECE_BAD leaves *text at a brace that
 * begins no known placeholder. */
static enum piece_status next_piece(const char **text, struct piece *ret_piece)
{
    const char *c = *text;
    if (*c == '\0') {
        return PIECE_END;
    }
    *ret_piece = (struct piece){.bytes = c, .hole = HOLE_COUNT};
    if (*c != '{' && *c != '}') {
        ret_piece->length = strcspn(c, "{}");
        *text = c + ret_piece->length;
        return PIECE_OK;
    }
    if (c[1] == *c) {
        ret_piece->length = 1;
        *text = c + 2;
        return PIECE_OK;
    }
    size_t length = *c == '{' ? strcspn(c + 1, "{}") : 0;
    if (length == 0 || c[1 + length] != '}') {
        return PIECE_BAD;
    }
    for (int hole = 0; hole < HOLE_COUNT; hole++) {
        if (strlen(holes[hole].name) == length && memcmp(holes[hole].name, c + 1, length) == 0) {
            ret_piece->hole = (enum placeholder)hole;
            *text = c + length + 2;
            return PIECE_OK;
        }
    }
    return PIECE_BAD;
}

static void explain_bad(const char *brace, struct problem *ret_problem)
{
    size_t length = *brace == '{' ? strcspn(brace + 1, "{}") : 0;
    if (*brace == '}' || brace[1 + length] != '}') {
        problem_set(ret_problem, "a single \"%c\"; write \"%c%c\" for the character itself", *brace,
                    *brace, *brace);
        return;
    }
    char name[32];
    text_printable(brace + 1, length, name, sizeof name);
    const char *names[HOLE_COUNT];
    for (int i = 0; i < HOLE_COUNT; i++) {
        names[i] = holes[i].name;
    }
    const char *nearest = text_nearest(name, names, HOLE_COUNT);
    if (nearest != NULL) {
        problem_set(ret_problem, "unknown placeholder \"{%s}\"; did you mean \"{%s}\"?", name,
                    nearest);
    } else {
        problem_set(
            ret_problem,
            "unknown placeholder \"{%s}\"; known are {in} {out} {index} {line} {value}, and "
            "\"{{\" for a brace itself",
            name);
    }
}

bool template_check(const char *text, enum template_source source, struct problem *ret_problem)
{
    struct piece piece;
    enum piece_status status;
    while ((status = next_piece(&text, &piece)) == PIECE_OK) {
        if (piece.hole != HOLE_COUNT && (holes[piece.hole].sources & (unsigned)source) == 0) {
            problem_set(ret_problem, "\"{%s}\" only has a meaning with %s", holes[piece.hole].name,
                        holes[piece.hole].needs);
            return false;
        }
    }
    if (status == PIECE_BAD) {
        explain_bad(text, ret_problem);
        return false;
    }
    return true;
}

static bool is_file_name(const char *text)
{
    size_t length =
        strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-");
    return length > 0 && length < 256 && text[length] == '\0' && text[0] != '.' && text[0] != '-';
}

/* The sink takes bytes; with `text` NULL it only counts. */
struct sink {
    char *text;
    size_t capacity;
    size_t length;
};

static void put(struct sink *sink, const char *bytes, size_t length)
{
    if (sink->text != NULL && sink->length < sink->capacity &&
        length < sink->capacity - sink->length) {
        memcpy(sink->text + sink->length, bytes, length);
        sink->text[sink->length + length] = '\0';
    }
    sink->length += length;
}

static bool put_hole(struct sink *sink, enum placeholder hole, const struct template_values *values)
{
    char index[24];
    (void)snprintf(index, sizeof index, "%" PRIu64, values->index);
    const char *value = values->value != NULL ? values->value : index;
    switch (hole) {
    case HOLE_IN:
        if (values->in == NULL) {
            return false;
        }
        put(sink, values->in, strlen(values->in));
        return true;
    case HOLE_LINE:
    case HOLE_INDEX:
    case HOLE_VALUE:
        put(sink, value, strlen(value));
        return true;
    case HOLE_OUT:
        value = values->in != NULL ? values->in : is_file_name(value) ? value : index;
        put(sink, "out/", 4);
        put(sink, value, strlen(value));
        return true;
    case HOLE_COUNT:
        break;
    }
    return false;
}

static bool expand_into(struct sink *sink, const char *text, const struct template_values *values)
{
    struct piece piece;
    enum piece_status status;
    while ((status = next_piece(&text, &piece)) == PIECE_OK) {
        if (piece.hole == HOLE_COUNT) {
            put(sink, piece.bytes, piece.length);
        } else if (!put_hole(sink, piece.hole, values)) {
            return false;
        }
    }
    return status == PIECE_END;
}

enum template_status template_expand(const char *text, const struct template_values *values,
                                     char *ret_text, size_t capacity, size_t *ret_length)
{
    struct sink sink = {.text = ret_text, .capacity = capacity};
    if (capacity == 0) {
        return TEMPLATE_TOO_LONG;
    }
    ret_text[0] = '\0';
    if (!expand_into(&sink, text, values)) {
        return TEMPLATE_MALFORMED;
    }
    if (sink.length >= capacity) {
        return TEMPLATE_TOO_LONG;
    }
    if (ret_length != NULL) {
        *ret_length = sink.length;
    }
    return TEMPLATE_OK;
}

size_t template_size(const char *text, const struct template_values *values)
{
    struct sink sink = {0};
    return expand_into(&sink, text, values) ? sink.length + 1 : 0;
}

char *template_filled(const char *text, const struct template_values *values, size_t cap,
                      size_t *ret_length)
{
    size_t size = template_size(text, values);
    char *filled = size == 0 || size > cap + 1 ? NULL : malloc(size);
    if (filled != NULL && template_expand(text, values, filled, size, ret_length) != TEMPLATE_OK) {
        free(filled);
        filled = NULL;
    }
    return filled;
}

bool template_is_pattern(const char *text)
{
    struct piece piece;
    while (next_piece(&text, &piece) == PIECE_OK) {
        if (piece.hole == HOLE_COUNT && pattern_is_special(piece.bytes, piece.length)) {
            return true;
        }
    }
    return false;
}

/* Returns a copy of the text in which no character is special, or NULL. */
static char *quoted(const char *text)
{
    char *copy = malloc(2 * strlen(text) + 1);
    if (copy != NULL) {
        copy[pattern_quote(text, copy)] = '\0';
    }
    return copy;
}

char *template_pattern(const char *text, const struct template_values *values, size_t cap)
{
    char *in = values->in == NULL ? NULL : quoted(values->in);
    char *value = values->value == NULL ? NULL : quoted(values->value);
    char *filled = NULL;
    if ((in != NULL) == (values->in != NULL) && (value != NULL) == (values->value != NULL)) {
        const struct template_values safe = {.in = in, .value = value, .index = values->index};
        filled = template_filled(text, &safe, 2 * cap, NULL);
    }
    free(in);
    free(value);
    return filled;
}

bool template_pattern_meets(const char *pattern, const char *path)
{
    char name[FORMAT_PATH_BYTES + 1];
    const size_t length = strnlen(path, FORMAT_PATH_BYTES) - template_is_folder(path);
    memcpy(name, path, length);
    name[length] = '\0';
    return pattern_reach(pattern, name, true) != PATTERN_MISSES;
}

bool template_path_safe(const char *path)
{
    size_t length = strnlen(path, FORMAT_PATH_BYTES + 1);
    if (length == 0 || length > FORMAT_PATH_BYTES || !text_is_plain(path, length)) {
        return false;
    }
    for (const char *part = path;;) {
        size_t size = strcspn(part, "/");
        bool dots =
            (size == 1 && part[0] == '.') || (size == 2 && part[0] == '.' && part[1] == '.');
        if (size == 0 || dots) {
            return false; /* an empty first part is an absolute path */
        }
        if (part[size] == '\0') {
            return true;
        }
        part += size + 1;
    }
}

bool template_is_folder(const char *path)
{
    const size_t length = strnlen(path, FORMAT_PATH_BYTES + 1);
    return length > 1 && length <= FORMAT_PATH_BYTES && path[length - 1] == '/';
}

bool template_output_safe(const char *path)
{
    char name[FORMAT_PATH_BYTES + 1];
    if (!template_is_folder(path)) {
        return template_path_safe(path);
    }
    const size_t length = strlen(path) - 1;
    memcpy(name, path, length);
    name[length] = '\0';
    return template_path_safe(name);
}

static bool lies_in(const char *path, const char *folder)
{
    const size_t length = strlen(folder) - template_is_folder(folder);
    return strncmp(path, folder, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

bool template_paths_meet(const char *a, const char *b)
{
    return lies_in(a, b) || lies_in(b, a);
}
