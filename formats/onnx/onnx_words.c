#include "formats/onnx/onnx_words.h"

#include "formats/template.h"

#include <stdio.h>
#include <string.h>

#define REFUSE(problem, ...) (problem_set((problem), __VA_ARGS__), false)

static struct onnx_span span_of(const char *from, const char *to)
{
    return (struct onnx_span){(const uint8_t *)from, (size_t)(to - from)};
}

/* Reads digits, at most 12 of them. Returns what follows, or NULL. */
static const char *read_number(const char *text, int64_t *ret_number)
{
    const size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 12) {
        return NULL;
    }
    *ret_number = 0;
    for (size_t i = 0; i < digits; i++) {
        *ret_number = 10 * *ret_number + (text[i] - '0');
    }
    return text + digits;
}

/* Reads the dims behind "float32[", with the "]" at the end. */
static bool read_dims(const char *text, struct onnx_words_file *file)
{
    if (strcmp(text, "]") == 0) {
        return true;
    }
    while (file->rank < ONNX_RANK_MOST) {
        text = read_number(text, &file->dims[file->rank++]);
        if (text == NULL || (*text != ',' && *text != ']')) {
            return false;
        }
        if (*text++ == ']') {
            return *text == '\0';
        }
    }
    return false;
}

/* Reads "float32[2,3]" behind the last colon of a word. Such an end cannot be of a .npy file. */
static bool read_raw(const char *mark, struct onnx_words_file *file)
{
    const char *dims = strchr(mark + 1, '[');
    for (enum onnx_type type = ONNX_FLOAT; dims != NULL && type < ONNX_TYPES; type++) {
        const char *name = onnx_type_name(type);
        if (strlen(name) == (size_t)(dims - mark - 1) &&
            strncmp(mark + 1, name, strlen(name)) == 0 && onnx_type_bytes(type) > 0) {
            file->type = type;
            file->is_raw = true;
            return read_dims(dims + 1, file);
        }
    }
    return false;
}

static bool read_file(const char *word, bool is_input, struct onnx_words_file *file,
                      struct problem *problem)
{
    const char *equals = strchr(word, '=');
    *file = (struct onnx_words_file){.type = ONNX_UNDEFINED};
    if (equals == NULL || equals == word || equals[1] == '\0' ||
        (size_t)(equals - word) > ONNX_NAME_BYTES) {
        return REFUSE(problem, "\"%.100s\" is not NAME=FILE, as in x=a.npy", word);
    }
    const char *end = word + strlen(word);
    const char *mark = end[-1] == ']' ? strrchr(equals, ':') : NULL;
    if (is_input && mark != NULL && !read_raw(mark, file)) {
        return REFUSE(problem,
                      "\"%.100s\" has no type and dims that are known; write them as in "
                      "x=a.bin:float32[1,3,224,224]",
                      word);
    }
    file->name = span_of(word, equals);
    file->file = span_of(equals + 1, file->is_raw ? mark : end);
    if (!is_input && strpbrk(equals, "{}") == NULL && !template_path_safe(equals + 1)) {
        return REFUSE(problem,
                      "\"%.100s\" must name a file inside the work folder: relative, without "
                      "\"..\"",
                      word);
    }
    return true;
}

static bool has_twice(const struct onnx_words_file *files, size_t count)
{
    bool found = false;
    for (size_t i = 0; i + 1 < count && !found; i++) {
        found = onnx_span_equals(files[i].name, files[count - 1].name);
    }
    return found;
}

static bool add_file(const char *word, bool is_input, struct onnx_words *words,
                     struct problem *problem)
{
    struct onnx_words_file *files = is_input ? words->inputs : words->outputs;
    size_t *count = is_input ? &words->input_count : &words->output_count;
    if (*count == ONNX_WORDS_FILES) {
        return REFUSE(problem, "a run has at most %d %s", ONNX_WORDS_FILES,
                      is_input ? "inputs" : "outputs");
    }
    if (!read_file(word, is_input, &files[*count], problem)) {
        return false;
    }
    (*count)++;
    return !has_twice(files, *count) ||
           REFUSE(problem, "\"%s\" is given twice", onnx_label(files[*count - 1].name).text);
}

static bool add_split(const char *word, struct onnx_words *words, struct problem *problem)
{
    for (size_t i = 0; i < words->input_count; i++) {
        if (onnx_span_is(words->inputs[i].name, word)) {
            words->inputs[i].is_split = true;
            return true;
        }
    }
    return REFUSE(problem, "\"%.100s\" is to be split, and is none of the inputs given before it",
                  word);
}

static bool read_part(const char *word, bool has_holes, struct onnx_words *words,
                      struct problem *problem)
{
    int64_t part = 0;
    int64_t parts = 0;
    if (has_holes && strpbrk(word, "{}") != NULL) {
        words->parts = 1;
        return true;
    }
    const char *next = read_number(word, &part);
    next = next != NULL && *next == '/' ? read_number(next + 1, &parts) : NULL;
    if (next == NULL || *next != '\0' || parts < 1 || parts > ONNX_WORDS_PARTS || part >= parts) {
        return REFUSE(problem, "\"%.100s\" is no part, as in 0/4; at most %d parts", word,
                      ONNX_WORDS_PARTS);
    }
    words->part = (uint32_t)part;
    words->parts = (uint32_t)parts;
    return true;
}

static bool is_of(const struct onnx_words *words, struct onnx_span file)
{
    bool found = onnx_span_is(file, words->model);
    for (size_t i = 0; i < words->input_count && !found; i++) {
        found = onnx_span_equals(words->inputs[i].file, file);
    }
    return found;
}

/* No output has the file of the model or of an input. */
static bool outputs_are_apart(const struct onnx_words *words, struct problem *problem)
{
    for (size_t i = 0; i < words->output_count; i++) {
        if (is_of(words, words->outputs[i].file)) {
            return REFUSE(problem, "the output \"%s\" would replace a file that the run reads",
                          onnx_label(words->outputs[i].name).text);
        }
    }
    return true;
}

bool onnx_words_read(const char *const *words, size_t count, bool has_holes,
                     struct onnx_words *ret_words, struct problem *ret_problem)
{
    *ret_words = (struct onnx_words){.model = count > 0 ? words[0] : NULL};
    if (count == 0 || words[0][0] == '\0' || words[0][0] == '-') {
        return REFUSE(ret_problem, "the first word is a model, as in [m.onnx, -i, x=a.npy]");
    }
    for (size_t i = 1; i < count; i += 2) {
        const char *option = words[i];
        const char *value = i + 1 < count ? words[i + 1] : NULL;
        if (strlen(option) != 2 || option[0] != '-' || strchr("iosp", option[1]) == NULL) {
            return REFUSE(ret_problem,
                          "\"%.100s\" is none of -i, -o, -s and -p, which say what a run of a "
                          "model reads and leaves",
                          option);
        }
        if (value == NULL) {
            return REFUSE(ret_problem, "%s has no value behind it", option);
        }
        const bool good = option[1] == 's' ? add_split(value, ret_words, ret_problem)
                          : option[1] == 'p'
                              ? read_part(value, has_holes, ret_words, ret_problem)
                              : add_file(value, option[1] == 'i', ret_words, ret_problem);
        if (!good) {
            return false;
        }
    }
    return outputs_are_apart(ret_words, ret_problem);
}

void onnx_words_rows(int64_t rows, uint32_t part, uint32_t parts, int64_t *ret_first,
                     int64_t *ret_count)
{
    /* Quotient and remainder apart, so that no product passes 2^63. */
    const int64_t each = rows / parts;
    const int64_t rest = rows % parts;
    const int64_t first = each * part + rest * part / parts;
    const int64_t end = each * (part + 1) + rest * (part + 1) / parts;
    *ret_first = first;
    *ret_count = end - first;
}

void onnx_words_file_name(struct onnx_span output, char ret_name[ONNX_WORDS_FILE_SIZE])
{
    enum { ENDING = 5 /* ".npy" and a NUL */ };
    static const char kept[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    size_t length = 0;
    for (; length < output.size && length < ONNX_WORDS_FILE_SIZE - ENDING; length++) {
        const char byte = (char)output.at[length];
        const bool stays =
            byte != '\0' && (strchr(kept, byte) != NULL || (byte == '.' && length > 0));
        ret_name[length] = byte;
        if (!stays) {
            ret_name[length] = '_';
        }
    }
    (void)snprintf(ret_name + length, ENDING, ".npy");
}
