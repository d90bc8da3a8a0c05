#include "formats/tensor_op.h"

#include "base/text.h"
#include "formats/template.h"

#include <string.h>

#define REFUSE(problem, ...) (problem_set((problem), __VA_ARGS__), false)

static const char *const verbs[] = {"matmul", "gemm", "freivalds"};
static const char *const computes[TENSOR_COMPUTES] = {"fp32", "tf32", "bf16"};
static const char *const usages[] = {
    "[matmul, A.npy, B.npy, C.npy]",
    "[gemm, --alpha, \"1\", --beta, \"1\", A.npy, B.npy, C0.npy, C.npy]",
    "[freivalds, A.npy, B.npy, C.npy, SEED, ROUNDS]",
};
static const size_t operands[] = {3, 4, 5};
enum { VERBS = sizeof verbs / sizeof verbs[0] };

struct words {
    const char *const *items;
    size_t count;
    bool has_holes;
    struct problem *problem;
};

static const char *shown(const char *text, char ret_text[80])
{
    text_printable(text, strlen(text), ret_text, 80);
    return ret_text;
}

static size_t digits(const char *text)
{
    return strspn(text, "0123456789");
}

/* Returns true for a decimal number that every locale and library reads alike. */
static bool is_number(const char *text)
{
    if (strlen(text) >= TENSOR_NUMBER_BYTES) {
        return false;
    }
    text += *text == '-' || *text == '+';
    size_t whole = digits(text);
    text += whole;
    size_t part = *text == '.' ? digits(text + 1) : 0;
    text += *text == '.' ? 1 + part : 0;
    if (whole + part == 0) {
        return false;
    }
    if (*text == 'e' || *text == 'E') {
        text++;
        text += *text == '-' || *text == '+';
        size_t power = digits(text);
        if (power == 0) {
            return false;
        }
        text += power;
    }
    return *text == '\0';
}

/* Returns true for a template, whose value is not known yet. */
static bool is_hole(const struct words *words, size_t index)
{
    return words->has_holes && strchr(words->items[index], '{') != NULL;
}

/* Returns the place of the factor that the option sets, or NULL. */
static const char **factor_of(const char *option, struct tensor_op *op)
{
    return op->verb != TENSOR_GEMM          ? NULL
           : strcmp(option, "--alpha") == 0 ? &op->alpha
           : strcmp(option, "--beta") == 0  ? &op->beta
                                            : NULL;
}

/* A job's needs depend on the type, so it is no template. */
static bool read_compute(const struct words *words, struct tensor_op *op)
{
    char text[80];
    for (int compute = 0; compute < TENSOR_COMPUTES; compute++) {
        if (strcmp(words->items[1], computes[compute]) == 0) {
            op->compute = (enum tensor_compute)compute;
            return true;
        }
    }
    return REFUSE(words->problem, "--compute: \"%s\" is none of fp32, tf32 and bf16",
                  shown(words->items[1], text));
}

static bool read_option(const struct words *words, struct tensor_op *op)
{
    char text[80];
    if (strcmp(words->items[0], "--compute") == 0) {
        return read_compute(words, op);
    }
    const char **factor = factor_of(words->items[0], op);
    if (factor == NULL) {
        return REFUSE(words->problem, "%s has no option \"%s\"; write %s", verbs[op->verb],
                      shown(words->items[0], text), usages[op->verb]);
    }
    *factor = words->items[1];
    if (!is_hole(words, 1) && !is_number(*factor)) {
        return REFUSE(words->problem, "%s: \"%s\" is no decimal number such as 0.5 or -1e3",
                      words->items[0], shown(*factor, text));
    }
    return true;
}

static bool read_options(struct words *words, struct tensor_op *op)
{
    const char *begin = op->verb == TENSOR_GEMM ? "--" : "--compute";
    while (words->count >= 2 && strncmp(words->items[0], begin, strlen(begin)) == 0) {
        if (!read_option(words, op)) {
            return false;
        }
        words->items += 2;
        words->count -= 2;
    }
    return true;
}

static bool read_name(const struct words *words, size_t which, const char **ret_name)
{
    const char *name = words->items[which];
    char text[80];
    if (!is_hole(words, which) && !template_path_safe(name)) {
        return REFUSE(words->problem, "\"%s\" is no file of the work folder", shown(name, text));
    }
    *ret_name = name;
    return true;
}

static bool read_seed(const struct words *words, struct tensor_op *op)
{
    char text[80];
    if (is_hole(words, 3)) {
        return true;
    }
    op->is_drawn = strcmp(words->items[3], TENSOR_DRAWN) == 0;
    if (!op->is_drawn && !text_unhex(words->items[3], op->seed, sizeof op->seed)) {
        return REFUSE(words->problem,
                      "the seed \"%s\" is not %d hexadecimal digits, nor the word " TENSOR_DRAWN,
                      shown(words->items[3], text), 2 * TENSOR_SEED_BYTES);
    }
    return true;
}

static bool read_rounds(const struct words *words, struct tensor_op *op)
{
    char text[80];
    const char *rounds = words->items[4];
    if (is_hole(words, 4)) {
        return true;
    }
    size_t length = digits(rounds);
    for (size_t i = 0; i < length && length <= 2; i++) {
        op->rounds = 10 * op->rounds + (uint32_t)(rounds[i] - '0');
    }
    if (rounds[length] != '\0' || op->rounds < 1 || op->rounds > TENSOR_ROUNDS_MOST) {
        return REFUSE(words->problem, "\"%s\" rounds; 1 to %d are computed", shown(rounds, text),
                      TENSOR_ROUNDS_MOST);
    }
    return true;
}

static bool read_operands(const struct words *words, struct tensor_op *op)
{
    if (!read_name(words, 0, &op->a) || !read_name(words, 1, &op->b)) {
        return false;
    }
    switch (op->verb) {
    case TENSOR_MATMUL:
        return read_name(words, 2, &op->result);
    case TENSOR_GEMM:
        return read_name(words, 2, &op->c) && read_name(words, 3, &op->result);
    case TENSOR_FREIVALDS:
        return read_name(words, 2, &op->c) && read_seed(words, op) && read_rounds(words, op);
    }
    return false;
}

/* Refuses a result that is also an input, because inputs may be shared and are read-only. */
static bool result_is_new(const struct words *words, const struct tensor_op *op)
{
    const char *inputs[] = {op->a, op->b, op->c};
    for (size_t i = 0; i < 3 && op->result != NULL; i++) {
        if (inputs[i] != NULL && strcmp(inputs[i], op->result) == 0) {
            char text[80];
            return REFUSE(words->problem, "\"%s\" is read and cannot be the result too",
                          shown(op->result, text));
        }
    }
    return true;
}

bool tensor_op_read(const char *const *arguments, size_t count, bool has_holes,
                    struct tensor_op *ret_op, struct problem *ret_problem)
{
    size_t verb = 0;
    while (count > 0 && verb < VERBS && strcmp(arguments[0], verbs[verb]) != 0) {
        verb++;
    }
    if (count == 0 || verb == VERBS) {
        char text[80];
        return REFUSE(ret_problem,
                      "no tensor operation \"%s\"; there are matmul, gemm and freivalds",
                      count == 0 ? "" : shown(arguments[0], text));
    }
    struct words words = {
        .items = arguments + 1, .count = count - 1, .has_holes = has_holes, .problem = ret_problem};
    struct tensor_op op = {.verb = (enum tensor_verb)verb, .alpha = "1", .beta = "1"};
    if (op.verb != TENSOR_FREIVALDS && !read_options(&words, &op)) {
        return false;
    }
    if (op.verb == TENSOR_GEMM && words.count == operands[TENSOR_MATMUL]) {
        return REFUSE(ret_problem,
                      "gemm reads a file C0 to add, and three are named; write %s, or %s for the "
                      "product alone",
                      usages[TENSOR_GEMM], usages[TENSOR_MATMUL]);
    }
    if (words.count != operands[verb]) {
        return REFUSE(ret_problem, "%zu operands; write %s", words.count, usages[verb]);
    }
    if (!read_operands(&words, &op) || !result_is_new(&words, &op)) {
        return false;
    }
    *ret_op = op;
    return true;
}

enum { OTHER = -1, EXPONENT_MOST = 10000 };

/* Returns 0 or 1 when the factor has exactly this value, in any spelling, and OTHER otherwise.
 * The factor is a number (is_number). */
static int small_value(const char *factor)
{
    const char *c = factor;
    bool is_negative = *c == '-';
    long decimals = 0;
    long place = 0; /* decimal exponent of the one digit that is not 0 */
    bool has_point = false;
    bool has_one = false;
    for (c += *c == '-' || *c == '+'; *c == '.' || (*c >= '0' && *c <= '9'); c++) {
        if (*c == '.') {
            has_point = true;
            continue;
        }
        if (*c != '0' && (has_one || *c != '1')) {
            return OTHER;
        }
        /* Digits after the 1 and before the point raise its place. */
        place = *c == '1' ? (has_point ? -1 - decimals : 0) : place + (has_one && !has_point);
        has_one = has_one || *c == '1';
        decimals += has_point;
    }
    if (!has_one) {
        return 0;
    }
    long exponent = 0;
    bool is_small = *c != '\0' && c[1] == '-';
    for (c += *c != '\0'; *c != '\0'; c++) {
        if (*c >= '0' && *c <= '9' && exponent < EXPONENT_MOST) {
            exponent = 10 * exponent + (*c - '0');
        }
    }
    return !is_negative && place + (is_small ? -exponent : exponent) == 0 ? 1 : OTHER;
}

bool tensor_op_is_product(const struct tensor_op *op)
{
    return op->compute == TENSOR_FP32 &&
           (op->verb == TENSOR_MATMUL ||
            (op->verb == TENSOR_GEMM && small_value(op->alpha) == 1 && small_value(op->beta) == 0));
}

const char *tensor_op_compute_word(enum tensor_compute compute)
{
    return computes[compute];
}
