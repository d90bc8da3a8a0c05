/* The words of a job of training, and what is refused in them. */
#include "formats/train/train_words.h"
#include "tests/support/suite.h"

#include <math.h>
#include <string.h>

START_TEST(words_of_training)
{
    static const struct {
        const char *words[20];
        const char *fault; /* NULL: none */
    } cases[] = {
        {{"m.onnx", "-y", "y.npy", "-i", "x=x.npy", "-n", "5"}, NULL},
        {{"m.onnx", "-y", "y.npy", "-i", "x=x.npy"}, "needs a model"},
        {{"m.onnx", "-y", "y.npy", "-n", "5"}, "needs a model"},
        {{"m.onnx", "-y", "y.npy", "-i", "x=x.npy", "-n", "0"}, "no number from 1 to 32768"},
        {{"m.onnx", "-y", "y.npy", "-i", "x=x.npy", "-n", "5", "-r", "1e999"}, "above 0"},
        {{"m.onnx", "-y", "y.npy", "-i", "x=x.npy", "-n", "5", "-r", "nan"}, "above 0"},
        {{"m.onnx", "-y", "y.npy", "-i", "x=x.npy", "-n", "5", "-r", "1e-24"}, "15 digits"},
        {{"m.onnx", "-y", "y.npy", "-i", "x=x.npy", "-n", "5", "-r", "0x1"}, "above 0"},
        {{"m.onnx", "-y", "y.npy", "-i", "x=x.npy", "-n", "5", "-d", "-1"}, "from 0"},
        {{"m.onnx", "-y", "y.npy", "-i", "x=x.npy", "-n", "5", "-n", "6"}, "-n is given twice"},
        {{"m.onnx", "-y", "y.npy", "-i", "x=x.npy", "-n", "5", "-l", "hinge"}, "none of cross-ent"},
        {{"m.onnx", "-y", "y.npy", "-i", "x=x.npy", "-n", "5", "-m", "0.5"}, "does not go with"},
        {{"m.onnx", "-y", "y.npy", "-i", "x=x.npy", "-n", "5", "-a", "sgd", "-1", "0.5"},
         "does not go with"},
        {{"m.onnx", "-y", "y.npy", "-i", "x=x.npy", "-n", "5", "-o", "y=y"}, "\"-o\" is no option"},
        {{"m.onnx", "-y", "y.npy", "-i", "x=x.npy", "-n"}, "\"-n\" is no option"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct train_words words;
        struct problem problem = {""};
        size_t count = 0;
        while (cases[i].words[count] != NULL) {
            count++;
        }
        ck_assert(train_words_are(cases[i].words, count));
        const bool good = train_words_read(cases[i].words, count, &words, &problem);
        ck_assert_msg(good == (cases[i].fault == NULL), "case %zu: \"%s\"", i, problem.text);
        ck_assert_msg(good || strstr(problem.text, cases[i].fault) != NULL, "case %zu: \"%s\"", i,
                      problem.text);
        if (good) {
            ck_assert_int_eq(words.loss, TRAIN_CROSS_ENTROPY);
            ck_assert_int_eq(words.optimizer.method, TRAIN_ADAMW);
            ck_assert_double_eq_tol(words.optimizer.rate, 0.001, 1e-12);
            ck_assert_uint_eq(words.arrays.input_count, 1);
        }
    }
}
END_TEST

START_TEST(numbers_are_read_to_the_nearest)
{
    static const struct {
        const char *text;
        double number;
    } cases[] = {
        {"0.001", 0.001}, {"1e-3", 1e-3}, {"1E-8", 1e-8}, {"2.5e+2", 250},
        {"3", 3},         {".5", 0.5},    {"7.", 7},      {"0.123456789012345", 0.123456789012345}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *const items[] = {"m.onnx", "-y", "y.npy", "-i",         "x=x.npy",
                                     "-n",     "5",  "-r",    cases[i].text};
        struct train_words words;
        struct problem problem = {""};
        ck_assert_msg(train_words_read(items, sizeof items / sizeof items[0], &words, &problem),
                      "%s: %s", cases[i].text, problem.text);
        ck_assert_msg(memcmp(&words.optimizer.rate, &cases[i].number, sizeof(double)) == 0,
                      "%s is read as %.17g", cases[i].text, words.optimizer.rate);
    }
}
END_TEST

SUITE("train_words", NULL, NULL, TEST(words_of_training), TEST(numbers_are_read_to_the_nearest))
