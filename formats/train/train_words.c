#include "formats/train/train_words.h"

#include "base/text.h"

#include <string.h>

#define REFUSE(problem, ...) (problem_set((problem), __VA_ARGS__), false)

enum { SHOWN_SIZE = 80, DIGITS_MOST = 12 };

const char *const train_loss_names[TRAIN_LOSSES] = {"cross-entropy", "mse"};
const char *const train_method_names[TRAIN_METHODS] = {"adamw", "sgd"};

bool train_words_are(const char *const *words, size_t count)
{
    return count > 1 && strcmp(words[1], "-y") == 0;
}

/* A word while it is read. */
struct word {
    const char *option, *value;
    struct problem *problem;
};

/* Returns what a job file calls the value of the option, for messages. */
static const char *name_of(char option)
{
    static const struct {
        char option;
        const char *name;
    } names[] = {{'y', "labels"}, {'f', "from"},    {'n', "steps"},    {'k', "parts"},
                 {'c', "every"},  {'b', "batch"},   {'l', "loss"},     {'a', "optimizer"},
                 {'r', "rate"},   {'d', "decay"},   {'m', "momentum"}, {'1', "beta1"},
                 {'2', "beta2"},  {'x', "epsilon"}, {'i', "input"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (names[i].option == option) {
            return names[i].name;
        }
    }
    return "option";
}

/* Reads so many digits as one number. */
static int64_t number_of(const char *digits, size_t count)
{
    int64_t number = 0;
    for (size_t i = 0; i < count; i++) {
        number = 10 * number + (digits[i] - '0');
    }
    return number;
}

static bool read_count(const struct word *word, int64_t least, int64_t most, int64_t *ret_number)
{
    char shown[SHOWN_SIZE];
    const size_t digits = strspn(word->value, "0123456789");
    const bool is_number = digits > 0 && digits <= DIGITS_MOST && word->value[digits] == '\0';
    const int64_t number = is_number ? number_of(word->value, digits) : -1;
    if (number < least || number > most) {
        text_printable(word->value, strlen(word->value), shown, sizeof shown);
        return REFUSE(word->problem, "%s (%s) \"%s\" is no number from %lld to %lld",
                      name_of(word->option[1]), word->option, shown, (long long)least,
                      (long long)most);
    }
    *ret_number = number;
    return true;
}

static bool read_small(const struct word *word, int64_t least, int64_t most, uint32_t *ret_number)
{
    int64_t number = 0;
    if (!read_count(word, least, most, &number)) {
        return false;
    }
    *ret_number = (uint32_t)number;
    return true;
}

/* Reads a decimal number such as 0.001 or 1e-3, to the nearest float64. Up to 15 digits, and powers
 * of ten up to 22, are exact there, so that one product or quotient rounds once. Returns false for
 * any other text. */
static bool read_decimal(const char *text, double *ret_number)
{
    enum { EXACT_DIGITS = 15, EXACT_POWER = 22 };
    const size_t whole = strspn(text, "0123456789");
    const bool has_point = text[whole] == '.';
    const char *rest = text + whole + has_point;
    const size_t fraction = has_point ? strspn(rest, "0123456789") : 0;
    const char *end = rest + fraction;
    int64_t power = -(int64_t)fraction;
    const size_t zeros = strspn(text, "0");
    const size_t low_zeros = zeros == whole && fraction > 0 ? strspn(rest, "0") : 0;
    if (whole + fraction == 0 || whole + fraction - zeros - low_zeros > EXACT_DIGITS) {
        return false;
    }
    if (*end == 'e' || *end == 'E') {
        const bool is_below = end[1] == '-';
        const char *digits = end + 1 + (is_below || end[1] == '+');
        const size_t count = strspn(digits, "0123456789");
        if (count == 0 || count > 3) {
            return false;
        }
        power += (is_below ? -1 : 1) * number_of(digits, count);
        end = digits + count;
    }
    if (*end != '\0' || power < -EXACT_POWER || power > EXACT_POWER) {
        return false;
    }
    double scale = 1;
    for (int64_t i = power < 0 ? -power : power; i > 0; i--) {
        scale *= 10;
    }
    double number = (double)number_of(text, whole);
    for (size_t i = 0; i < fraction; i++) {
        number = 10 * number + (rest[i] - '0');
    }
    *ret_number = power < 0 ? number / scale : number * scale;
    return true;
}

/* Reads a number up to `most`; 0 may be left out. */
static bool read_real(const struct word *word, bool takes_zero, double most, double *ret_number)
{
    char shown[SHOWN_SIZE];
    double number = 0;
    if (!read_decimal(word->value, &number) || number > most || (!takes_zero && number == 0)) {
        text_printable(word->value, strlen(word->value), shown, sizeof shown);
        return REFUSE(word->problem,
                      "%s (%s) \"%s\" is no number %s 0 and at most %g, as in 0.001 or 1e-3, with "
                      "15 digits at most",
                      name_of(word->option[1]), word->option, shown, takes_zero ? "from" : "above",
                      most);
    }
    *ret_number = number;
    return true;
}

static bool read_choice(const struct word *word, const char *const *names, size_t count,
                        size_t *ret_index)
{
    char shown[SHOWN_SIZE];
    for (size_t i = 0; i < count; i++) {
        if (strcmp(word->value, names[i]) == 0) {
            *ret_index = i;
            return true;
        }
    }
    text_printable(word->value, strlen(word->value), shown, sizeof shown);
    return REFUSE(word->problem, "%s (%s) \"%s\" is none of %s and %s", name_of(word->option[1]),
                  word->option, shown, names[0], names[1]);
}

/* AdamW alone has betas, and SGD alone has a momentum. */
static bool check_method(const struct train_words *words, const char *seen, struct problem *problem)
{
    const bool is_adamw = words->optimizer.method == TRAIN_ADAMW;
    const char *other = is_adamw ? "m" : "12x";
    for (const char *at = seen; *at != '\0'; at++) {
        if (strchr(other, *at) != NULL) {
            return REFUSE(problem, "%s (-%c) does not go with the optimizer %s", name_of(*at), *at,
                          train_method_names[words->optimizer.method]);
        }
    }
    return true;
}

static bool read_option(const struct word *word, struct train_words *words)
{
    struct train_optimizer *optimizer = &words->optimizer;
    const double below_one = 0.999999999;
    size_t index = 0;
    bool good = true;
    switch (word->option[1]) {
    case 'y':
        words->labels = word->value;
        return word->value[0] != '\0' ||
               REFUSE(word->problem, "labels (-y) names a file of labels");
    case 'f':
        words->from = word->value;
        return word->value[0] != '\0' || REFUSE(word->problem, "from (-f) names a folder");
    case 'n':
        return read_small(word, 1, TRAIN_STEPS_MOST, &words->steps);
    case 'k':
        return read_small(word, 1, TRAIN_PARTS_MOST, &words->parts);
    case 'c':
        return read_small(word, 0, TRAIN_STEPS_MOST, &words->every);
    case 'b':
        return read_count(word, 1, INT64_C(1) << 31, &words->batch);
    case 'l':
        good = read_choice(word, train_loss_names, TRAIN_LOSSES, &index);
        words->loss = (enum train_loss)index;
        return good;
    case 'a':
        good = read_choice(word, train_method_names, TRAIN_METHODS, &index);
        optimizer->method = (enum train_method)index;
        return good;
    case 'r':
        return read_real(word, false, 1e6, &optimizer->rate);
    case 'd':
        return read_real(word, true, 1, &optimizer->decay);
    case 'm':
        return read_real(word, true, below_one, &optimizer->momentum);
    case '1':
        return read_real(word, true, below_one, &optimizer->beta1);
    case '2':
        return read_real(word, true, below_one, &optimizer->beta2);
    default:
        return read_real(word, false, 1, &optimizer->epsilon);
    }
}

/* Fills in what the words leave open. The usual values are those of PyTorch. */
static void complete(struct train_words *words)
{
    struct train_optimizer *optimizer = &words->optimizer;
    const bool is_adamw = optimizer->method == TRAIN_ADAMW;
    optimizer->rate = optimizer->rate < 0 ? (is_adamw ? 0.001 : 0.01) : optimizer->rate;
    optimizer->decay = optimizer->decay < 0 ? (is_adamw ? 0.01 : 0) : optimizer->decay;
}

bool train_words_read(const char *const *words, size_t count, struct train_words *ret_words,
                      struct problem *ret_problem)
{
    const char *arrays[1 + 2 * (ONNX_WORDS_FILES + 1)] = {count > 0 ? words[0] : NULL};
    size_t array_count = 1;
    char seen[sizeof "yinkcbflardm12x" + 1] = "";
    *ret_words = (struct train_words){.model = arrays[0],
                                      .parts = 1,
                                      .optimizer = {.rate = -1,
                                                    .decay = -1,
                                                    .momentum = 0.9,
                                                    .beta1 = 0.9,
                                                    .beta2 = 0.999,
                                                    .epsilon = 1e-8}};
    for (size_t i = 1; i < count; i += 2) {
        const struct word word = {words[i], i + 1 < count ? words[i + 1] : NULL, ret_problem};
        if (strlen(words[i]) != 2 || words[i][0] != '-' ||
            strchr("yinkcbflardm12x", words[i][1]) == NULL || word.value == NULL) {
            return REFUSE(ret_problem, "\"%.60s\" is no option of training with a value behind it",
                          words[i]);
        }
        if (words[i][1] == 'i') {
            if (array_count + 2 > sizeof arrays / sizeof arrays[0]) {
                return REFUSE(ret_problem, "a model has at most %d inputs", ONNX_WORDS_FILES);
            }
            arrays[array_count++] = words[i];
            arrays[array_count++] = words[i + 1];
            continue;
        }
        if (strchr(seen, words[i][1]) != NULL) {
            return REFUSE(ret_problem, "%s is given twice", words[i]);
        }
        seen[strlen(seen)] = words[i][1]; /* the rest is zeros */
        if (!read_option(&word, ret_words)) {
            return false;
        }
    }
    complete(ret_words);
    if (ret_words->labels == NULL || ret_words->steps == 0 || array_count == 1) {
        return REFUSE(ret_problem, "training needs a model, its inputs, labels and steps");
    }
    return check_method(ret_words, seen, ret_problem) &&
           onnx_words_read(arrays, array_count, false, &ret_words->arrays, ret_problem);
}
