#include "formats/kernel/kernel_op.h"

#include "base/text.h"
#include "formats/template.h"

#include <string.h>

#define REFUSE(problem, ...) (problem_set((problem), __VA_ARGS__), false)

static const struct {
    const char *word;
    size_t values; /* words that follow it */
} kinds[KERNEL_KINDS] = {
    [KERNEL_INPUT] = {"input", 1},   [KERNEL_OUTPUT] = {"output", 2}, [KERNEL_INOUT] = {"inout", 2},
    [KERNEL_LOCAL] = {"local", 1},   [KERNEL_INT] = {"int", 1},       [KERNEL_UINT] = {"uint", 1},
    [KERNEL_LONG] = {"long", 1},     [KERNEL_ULONG] = {"ulong", 1},   [KERNEL_FLOAT] = {"float", 1},
    [KERNEL_DOUBLE] = {"double", 1},
};

struct words {
    const char *const *items;
    size_t count;
    bool has_holes;
    struct problem *problem;
};

static const struct {
    const char *word, *name;
} apis[KERNEL_APIS] = {
    [KERNEL_OPENCL] = {"opencl", "OpenCL"},
    [KERNEL_CUDA] = {"cuda", "CUDA"},
};

const char *kernel_op_api_word(enum kernel_api api)
{
    return apis[api].word;
}

const char *kernel_op_api_name(enum kernel_api api)
{
    return apis[api].name;
}

static bool has_end(const char *name, const char *end)
{
    const size_t length = strlen(name);
    return length > strlen(end) && strcmp(name + length - strlen(end), end) == 0;
}

enum kernel_api kernel_op_api(const char *source)
{
    return has_end(source, ".ptx") || has_end(source, ".cubin") ? KERNEL_CUDA : KERNEL_OPENCL;
}

const char *kernel_op_word(enum kernel_argument_kind kind)
{
    return kinds[kind].word;
}

static const char *shown(const char *text, char ret_text[80])
{
    text_printable(text, strlen(text), ret_text, 80);
    return ret_text;
}

/* Returns true for a template, whose value is not known yet. */
static bool is_hole(const struct words *words, const char *word)
{
    return words->has_holes && strchr(word, '{') != NULL;
}

static size_t digits(const char *text)
{
    return strspn(text, "0123456789");
}

/* Reads decimal digits up to a character of `ends`, or the end. Returns what follows them, or NULL
 * when there are none or the number is larger than `most`. */
static const char *read_natural(const char *text, const char *ends, uint64_t most,
                                uint64_t *ret_number)
{
    const size_t length = digits(text);
    uint64_t number = 0;
    for (size_t i = 0; i < length; i++) {
        const uint64_t digit = (uint64_t)(text[i] - '0');
        if (number > (most - digit) / 10) {
            return NULL;
        }
        number = 10 * number + digit;
    }
    const bool ended = text[length] == '\0' || strchr(ends, text[length]) != NULL;
    *ret_number = number;
    return length > 0 && ended ? text + length : NULL;
}

/* Returns true for a decimal number that every locale and library reads alike. */
static bool is_number(const char *text)
{
    if (strlen(text) >= KERNEL_NUMBER_BYTES) {
        return false;
    }
    text += *text == '-' || *text == '+';
    const size_t whole = digits(text);
    text += whole;
    const size_t part = *text == '.' ? digits(text + 1) : 0;
    text += *text == '.' ? 1 + part : 0;
    if (whole + part > 0 && (*text == 'e' || *text == 'E')) {
        text++;
        text += *text == '-' || *text == '+';
        const size_t power = digits(text);
        text += power;
        return power > 0 && *text == '\0';
    }
    return whole + part > 0 && *text == '\0';
}

/* ---------------------------------------------------------------- the launch */

static bool read_file(const struct words *words, const char *word, const char **ret_name)
{
    char text[80];
    if (!is_hole(words, word) && !template_path_safe(word)) {
        return REFUSE(words->problem, "\"%s\" is no file of the work folder", shown(word, text));
    }
    *ret_name = word;
    return true;
}

static bool read_entry(const struct words *words, const char *word, const char **ret_entry)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
    char text[80];
    const size_t length = strspn(word, letters);
    const bool is_name = length > 0 && length <= KERNEL_ENTRY_BYTES && word[length] == '\0' &&
                         !(word[0] >= '0' && word[0] <= '9');
    if (!is_hole(words, word) && !is_name) {
        return REFUSE(words->problem,
                      "entry: \"%s\" is no name of a kernel: letters, digits and _, at most %d",
                      shown(word, text), KERNEL_ENTRY_BYTES);
    }
    *ret_entry = word;
    return true;
}

/* Reads one to three numbers with commas between them. */
static bool read_range(const struct words *words, const char *field, const char *word,
                       uint64_t ret_range[KERNEL_DIMENSIONS], uint32_t *ret_dimensions)
{
    char text[80];
    uint32_t dimensions = 0;
    if (is_hole(words, word)) { /* a comma stands in no placeholder */
        for (const char *at = word; at != NULL && dimensions < KERNEL_DIMENSIONS; dimensions++) {
            ret_range[dimensions] = 0;
            at = strchr(at, ',');
            at = at == NULL ? NULL : at + 1;
        }
        *ret_dimensions = dimensions;
        return true;
    }
    for (const char *at = word; at != NULL; at += at[0] == ',') {
        if (dimensions == KERNEL_DIMENSIONS) {
            return REFUSE(words->problem, "%s: \"%s\" has more than %d dimensions", field,
                          shown(word, text), KERNEL_DIMENSIONS);
        }
        at = read_natural(at, ",", KERNEL_SIZE_MOST, &ret_range[dimensions]);
        if (at == NULL || ret_range[dimensions] == 0) {
            break;
        }
        dimensions++;
        if (at[0] == '\0') {
            *ret_dimensions = dimensions;
            return true;
        }
    }
    return REFUSE(words->problem,
                  "%s: \"%s\" is no range: write one to %d whole numbers of 1 to 2^40, as in "
                  "[1024, 1024]",
                  field, shown(word, text), KERNEL_DIMENSIONS);
}

static bool read_settings(struct words *words, struct kernel_op *op)
{
    uint32_t group_dimensions = 0;
    while (words->count >= 2) {
        const char *word = words->items[0];
        const char *value = words->items[1];
        if (strcmp(word, "--global") == 0) {
            if (!read_range(words, "global", value, op->global, &op->dimensions)) {
                return false;
            }
        } else if (strcmp(word, "--group") == 0) {
            if (!read_range(words, "local", value, op->group, &group_dimensions)) {
                return false;
            }
            op->has_group = true;
        } else if (strcmp(word, "--options") == 0) {
            if (strlen(value) > KERNEL_OPTIONS_BYTES) {
                return REFUSE(words->problem, "options: %zu bytes; at most %d are taken",
                              strlen(value), KERNEL_OPTIONS_BYTES);
            }
            op->options = value;
        } else {
            break;
        }
        words->items += 2;
        words->count -= 2;
    }
    if (op->dimensions == 0) {
        return REFUSE(words->problem, "global: the number of work-items is missing, as in [1024]");
    }
    if (op->has_group && group_dimensions != op->dimensions) {
        return REFUSE(words->problem,
                      "local: %u dimensions, and global has %u; give both the same number",
                      group_dimensions, op->dimensions);
    }
    return true;
}

/* Checks that a range consists of whole groups, because OpenCL 1.2 knows no partial groups. */
static bool groups_fit(const struct words *words, const struct kernel_op *op)
{
    for (uint32_t i = 0; op->has_group && i < op->dimensions; i++) {
        if (op->group[i] != 0 && op->global[i] != 0 && op->global[i] % op->group[i] != 0) {
            return REFUSE(words->problem,
                          "global: %llu is no multiple of local, %llu; make it one, and let the "
                          "kernel skip what is too much",
                          (unsigned long long)op->global[i], (unsigned long long)op->group[i]);
        }
    }
    return true;
}

/* ---------------------------------------------------------------- the arguments */

static bool read_size(const struct words *words, const char *field, const char *word,
                      uint64_t *ret_size)
{
    char text[80];
    if (is_hole(words, word)) {
        return true;
    }
    const char *end = read_natural(word, "", KERNEL_SIZE_MOST, ret_size);
    if (end == NULL || *ret_size == 0) {
        return REFUSE(words->problem, "%s: \"%s\" is no size of 1 byte to 1TiB", field,
                      shown(word, text));
    }
    return true;
}

static bool read_integer(const struct words *words, const char *word,
                         struct kernel_argument *argument)
{
    const bool is_small = argument->kind == KERNEL_INT || argument->kind == KERNEL_UINT;
    const bool is_signed = argument->kind == KERNEL_INT || argument->kind == KERNEL_LONG;
    const bool is_negative = is_signed && word[0] == '-';
    const uint64_t most = is_signed ? (is_small ? INT32_MAX : INT64_MAX) + (uint64_t)is_negative
                                    : (is_small ? UINT32_MAX : UINT64_MAX);
    char text[80];
    uint64_t number = 0;
    if (!is_hole(words, word) && read_natural(word + is_negative, "", most, &number) == NULL) {
        return REFUSE(words->problem, "%s: \"%s\" is no whole number of %d bits%s",
                      kinds[argument->kind].word, shown(word, text), is_small ? 32 : 64,
                      is_signed ? "" : " without a sign");
    }
    argument->natural = number;
    argument->integer = is_negative && number > 0 ? -(int64_t)(number - 1) - 1 : (int64_t)number;
    return true;
}

static bool read_number(const struct words *words, const char *word,
                        struct kernel_argument *argument)
{
    char text[80];
    argument->number = word;
    if (!is_hole(words, word) && !is_number(word)) {
        return REFUSE(words->problem, "%s: \"%s\" is no decimal number such as 0.5 or -1e3",
                      kinds[argument->kind].word, shown(word, text));
    }
    return true;
}

static bool read_argument(const struct words *words, struct kernel_argument *argument)
{
    const char *const *values = words->items + 1;
    switch (argument->kind) {
    case KERNEL_INPUT:
        return read_file(words, values[0], &argument->file);
    case KERNEL_OUTPUT:
        return read_file(words, values[0], &argument->result) &&
               read_size(words, "size", values[1], &argument->size_bytes);
    case KERNEL_INOUT:
        return read_file(words, values[0], &argument->file) &&
               read_file(words, values[1], &argument->result);
    case KERNEL_LOCAL:
        return read_size(words, "local", values[0], &argument->size_bytes);
    case KERNEL_INT:
    case KERNEL_UINT:
    case KERNEL_LONG:
    case KERNEL_ULONG:
        return read_integer(words, values[0], argument);
    case KERNEL_FLOAT:
    case KERNEL_DOUBLE:
        return read_number(words, values[0], argument);
    case KERNEL_KINDS:
        break;
    }
    return false;
}

static bool read_kind(const struct words *words, enum kernel_argument_kind *ret_kind)
{
    const char *word = words->items[0];
    char text[80];
    for (size_t i = 0; i < KERNEL_KINDS; i++) {
        if (strncmp(word, "--", 2) == 0 && strcmp(word + 2, kinds[i].word) == 0) {
            if (words->count <= kinds[i].values) {
                return REFUSE(words->problem, "%s: its value is missing", kinds[i].word);
            }
            *ret_kind = (enum kernel_argument_kind)i;
            return true;
        }
    }
    return REFUSE(words->problem,
                  "no argument \"%s\"; there are input, output, inout, local, int, uint, long, "
                  "ulong, float and double",
                  shown(word, text));
}

static bool read_arguments(struct words *words, struct kernel_op *op)
{
    while (words->count > 0) {
        if (op->argument_count == KERNEL_ARGUMENTS) {
            return REFUSE(words->problem, "arguments: more than %d", KERNEL_ARGUMENTS);
        }
        struct kernel_argument *argument = &op->arguments[op->argument_count];
        *argument = (struct kernel_argument){.kind = KERNEL_INT};
        if (!read_kind(words, &argument->kind) || !read_argument(words, argument)) {
            return false;
        }
        const size_t taken = 1 + kinds[argument->kind].values;
        words->items += taken;
        words->count -= taken;
        op->argument_count++;
    }
    return true;
}

/* PTX is compiled without options, and a launch has one size of dynamic shared memory. */
static bool suits_api(const struct words *words, const struct kernel_op *op)
{
    size_t locals = 0;
    for (size_t i = 0; i < op->argument_count; i++) {
        locals += op->arguments[i].kind == KERNEL_LOCAL;
    }
    if (op->api == KERNEL_CUDA && op->options[0] != '\0') {
        return REFUSE(words->problem, "options: PTX and cubins are compiled without any");
    }
    if (op->api == KERNEL_CUDA && locals > 1) {
        return REFUSE(words->problem,
                      "local: %zu of them; a kernel of CUDA has one dynamic shared memory", locals);
    }
    return true;
}

/* Refuses a result that is also read or left twice: inputs may be shared and are read-only. */
static bool results_are_new(const struct words *words, const struct kernel_op *op)
{
    char text[80];
    for (size_t i = 0; i < op->argument_count; i++) {
        const char *result = op->arguments[i].result;
        if (result == NULL) {
            continue;
        }
        bool is_read = strcmp(result, op->source) == 0;
        bool is_left = false;
        for (size_t k = 0; k < op->argument_count; k++) {
            const struct kernel_argument *other = &op->arguments[k];
            is_read = is_read || (other->file != NULL && strcmp(other->file, result) == 0);
            is_left =
                is_left || (k != i && other->result != NULL && strcmp(other->result, result) == 0);
        }
        if (is_read || is_left) {
            return REFUSE(words->problem, "output: \"%s\" is %s; give the result another name",
                          shown(result, text), is_read ? "read, too" : "left twice");
        }
    }
    return true;
}

bool kernel_op_read(const char *const *arguments, size_t count, bool has_holes,
                    struct kernel_op *ret_op, struct problem *ret_problem)
{
    struct words words = {
        .items = arguments, .count = count, .has_holes = has_holes, .problem = ret_problem};
    struct kernel_op op = {.options = ""};
    if (count < 2) {
        return REFUSE(ret_problem, "a launch begins with a source file and the name of a kernel");
    }
    if (!read_file(&words, arguments[0], &op.source) ||
        !read_entry(&words, arguments[1], &op.entry)) {
        return false;
    }
    op.api = kernel_op_api(op.source);
    words.items += 2;
    words.count -= 2;
    if (!read_settings(&words, &op) || !groups_fit(&words, &op) || !read_arguments(&words, &op) ||
        !suits_api(&words, &op) || !results_are_new(&words, &op)) {
        return false;
    }
    *ret_op = op;
    return true;
}
