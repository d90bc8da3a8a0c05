/* The tests run the stand-in's model, y = x + x for x of float32[2], on files of a folder: which
 * models stay open, and which files are refused. */
#include "formats/npy.h"
#include "provider/onnx/onnx_file.h"
#include "provider/onnx/onnx_serve.h"
#include "provider/onnx/runtime/ort_engine.h"

#include "tests/support/suite.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/bourse-onnx-serve-XXXXXX";
static int at = -1;
static struct onnx_engine engine;
static struct onnx_serve *serve;
static struct problem problem;

static void put(const char *name, const void *bytes, size_t size)
{
    const int file = openat(at, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(write(file, bytes, size), (ssize_t)size);
    ck_assert_int_eq(close(file), 0);
}

static void put_array(const char *name, enum onnx_type type, int64_t count, const void *bytes)
{
    struct onnx_array array;
    const struct onnx_words_file file = {.name = {(const uint8_t *)name, strlen(name)},
                                         .file = {(const uint8_t *)name, strlen(name)}};
    (void)unlinkat(at, name, 0);
    ck_assert(onnx_array_describe(type, 1, &count, &array, &problem));
    array.bytes = (void *)bytes;
    ck_assert_int_eq(onnx_file_write(at, &file, &array, &problem), ONNX_FILE_OK);
}

static void begin(void)
{
    static const float values[6] = {1, -2, 3, -4, 5, -6};
    static const int64_t integers[2] = {1, 2};
    memcpy(folder + strlen(folder) - 6, "XXXXXX", 6);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    at = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_ge(at, 0);
    ck_assert_msg(ort_engine_open(BOURSE_FAKE_ONNXRUNTIME, NULL, &engine, &problem), "%s",
                  problem.text);
    serve = onnx_serve_create(&engine, 1);
    ck_assert_ptr_nonnull(serve);
    put("m.onnx", "model", 5);
    put("a.bin", values, 2 * sizeof values[0]);
    put_array("a.npy", ONNX_FLOAT, 2, values);
    put_array("six.npy", ONNX_FLOAT, 6, values);
    put_array("int.npy", ONNX_INT64, 2, integers);
}

static void end(void)
{
    static const char *const names[] = {"m.onnx",  "a.bin", "a.npy", "six.npy",
                                        "int.npy", "y.npy", "empty", "n.onnx"};
    onnx_serve_destroy(&serve);
    ort_engine_close(&engine);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        (void)unlinkat(at, names[i], 0);
    }
    ck_assert_int_eq(close(at), 0);
    ck_assert_int_eq(rmdir(folder), 0);
}

struct given {
    const struct operation_content *contents;
    size_t count;
    uint64_t memory_bytes;
};

static enum operation_status run_with(const char *const *words, size_t count, struct given given)
{
    const struct onnx_serve_run run = {.folder = at,
                                       .words = words,
                                       .count = count,
                                       .memory_bytes = given.memory_bytes,
                                       .contents = given.contents,
                                       .content_count = given.count};
    problem.text[0] = '\0';
    return onnx_serve_run(serve, &run, &problem);
}

#define RUN(given, ...)                                                                            \
    run_with((const char *const[]){__VA_ARGS__},                                                   \
             sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *), (given))
static const struct given nothing = {.count = 0};

static void check_output(float first, float second)
{
    uint8_t bytes[256];
    struct npy npy;
    float values[2];
    const int file = openat(at, "y.npy", O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(file, 0);
    const ssize_t length = read(file, bytes, sizeof bytes);
    ck_assert_int_eq(close(file), 0);
    ck_assert(npy_read(bytes, (size_t)length, (uint64_t)length, &npy, &problem));
    ck_assert_uint_eq(npy.data_bytes, sizeof values);
    memcpy(values, bytes + npy.data_offset, sizeof values);
    ck_assert(values[0] == first && values[1] == second);
    ck_assert_int_eq(unlinkat(at, "y.npy", 0), 0);
}

START_TEST(arrays_come_from_files_and_go_into_them)
{
    ck_assert_int_eq(RUN(nothing, "m.onnx", "-i", "x=a.npy", "-o", "y=y.npy"), OPERATION_OK);
    check_output(2, -4);
    ck_assert_int_eq(RUN(nothing, "m.onnx", "-i", "x=a.bin:float32[2]", "-o", "y=y.npy"),
                     OPERATION_OK);
    check_output(2, -4);
    ck_assert_int_eq(RUN(nothing, "m.onnx", "-i", "x=a.npy"), OPERATION_OK); /* nothing is kept */
}
END_TEST

START_TEST(a_part_takes_its_rows)
{
    ck_assert_int_eq(
        RUN(nothing, "m.onnx", "-i", "x=six.npy", "-s", "x", "-p", "1/3", "-o", "y=y.npy"),
        OPERATION_OK);
    check_output(6, -8);
    ck_assert_int_eq(RUN(nothing, "m.onnx", "-i", "x=six.npy", "-s", "x", "-p", "0/2"),
                     OPERATION_FAILED);
    ck_assert_ptr_nonnull(strstr(problem.text, "is float32[3], and the model takes float32[2]"));
}
END_TEST

START_TEST(a_model_stays_open_while_its_files_are_the_same)
{
    struct operation_content contents[2] = {{.name = "m.onnx"}, {.name = "w.bin"}};
    struct given given = {contents, 2, 1000};
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(RUN(given, "m.onnx", "-i", "x=a.npy"), OPERATION_OK);
    }
    ck_assert_uint_eq(onnx_serve_opened(serve), 1);
    contents[1].hash.bytes[0] = 1; /* other weights */
    ck_assert_int_eq(RUN(given, "m.onnx", "-i", "x=a.npy"), OPERATION_OK);
    ck_assert_uint_eq(onnx_serve_opened(serve), 2);
    given.memory_bytes = 2000;
    ck_assert_int_eq(RUN(given, "m.onnx", "-i", "x=a.npy"), OPERATION_OK);
    ck_assert_uint_eq(onnx_serve_opened(serve), 3);
    given.contents++; /* nothing is known of the model itself */
    given.count--;
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(RUN(given, "m.onnx", "-i", "x=a.npy"), OPERATION_OK);
    }
    ck_assert_uint_eq(onnx_serve_opened(serve), 5);
    /* A failed run leaves the model open. */
    given = (struct given){contents, 2, 1000};
    ck_assert_int_eq(RUN(given, "m.onnx", "-i", "x=a.npy"), OPERATION_OK);
    ck_assert_int_eq(RUN(given, "m.onnx", "-i", "x=none.npy"), OPERATION_FAILED);
    ck_assert_int_eq(RUN(given, "m.onnx", "-i", "x=a.npy"), OPERATION_OK);
    ck_assert_uint_eq(onnx_serve_opened(serve), 6);
}
END_TEST

/* A run is told of both files, and only its first word says which of them is the model. */
START_TEST(another_model_among_the_same_files_is_opened)
{
    static const struct operation_content contents[2] = {{.name = "m.onnx"}, {.name = "n.onnx"}};
    const struct given given = {contents, 2, 1000};
    put("n.onnx", "other", 5);
    ck_assert_int_eq(RUN(given, "m.onnx", "-i", "x=a.npy"), OPERATION_OK);
    ck_assert_int_eq(RUN(given, "n.onnx", "-i", "x=a.npy"), OPERATION_OK);
    ck_assert_uint_eq(onnx_serve_opened(serve), 2);
}
END_TEST

/* The array comes as an open file, as in a jail, and the open model's own file is not there. */
START_TEST(an_open_model_needs_its_arrays_alone)
{
    static const char *const words[] = {"m.onnx", "-i", "x=b.npy", "-o", "y=y.npy"};
    static const struct operation_content content = {.name = "m.onnx"};
    const struct operation_given array = {"b.npy", openat(at, "a.npy", O_RDONLY | O_CLOEXEC)};
    const struct onnx_serve_run run = {.folder = at,
                                       .words = words,
                                       .count = sizeof words / sizeof words[0],
                                       .contents = &content,
                                       .content_count = 1,
                                       .given = &array,
                                       .given_count = 1};
    for (int i = 0; i < 2; i++) {
        ck_assert_msg(onnx_serve_run(serve, &run, &problem) == OPERATION_OK, "%s", problem.text);
        check_output(2, -4);
        (void)unlinkat(at, "m.onnx", 0);
    }
    ck_assert_uint_eq(onnx_serve_opened(serve), 1);
    ck_assert_int_eq(close(array.file), 0); /* the server has left it open */
}
END_TEST

static void check_failed(const char *said, const char *const *words, size_t count)
{
    ck_assert_int_eq(run_with(words, count, nothing), OPERATION_FAILED);
    ck_assert_msg(strstr(problem.text, said) != NULL, "%s", problem.text);
}
#define WORDS(...)                                                                                 \
    (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)

START_TEST(what_does_not_fit_is_told)
{
    put("empty", "", 0);
    check_failed("the first word is a model", NULL, 0);
    check_failed("n.onnx: No such file", WORDS("n.onnx", "-i", "x=a.npy"));
    check_failed("empty: the file is empty", WORDS("empty", "-i", "x=a.npy"));
    check_failed("input \"x\" is not given", WORDS("m.onnx"));
    check_failed("the model has no input \"z\"", WORDS("m.onnx", "-i", "z=a.npy"));
    check_failed("the model has no output \"z\"", WORDS("m.onnx", "-i", "x=a.npy", "-o", "z=z"));
    check_failed("is int64[2], and the model takes float32[2]", WORDS("m.onnx", "-i", "x=int.npy"));
    check_failed("is float32[6], and the model takes", WORDS("m.onnx", "-i", "x=six.npy"));
    check_failed("it has 8 bytes, and its type and dims are 12",
                 WORDS("m.onnx", "-i", "x=a.bin:float32[3]"));
    check_failed("m.onnx: ", WORDS("m.onnx", "-i", "x=m.onnx"));
    check_failed("is no regular file", WORDS("m.onnx", "-i", "x=."));
    put("y.npy", "old", 3);
    check_failed("y.npy: File exists", WORDS("m.onnx", "-i", "x=a.npy", "-o", "y=y.npy"));
}
END_TEST

START_TEST(an_array_is_bounded)
{
    struct onnx_array array;
    const int64_t large[3] = {INT64_C(1) << 40, 2, INT64_C(1) << 40};
    const int64_t negative[1] = {-1};
    const int64_t none[3] = {INT64_C(1) << 40, 0, INT64_C(1) << 40};
    const int64_t some[2] = {2, 3};
    ck_assert(!onnx_array_describe(ONNX_FLOAT, 3, large, &array, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "is too large"));
    ck_assert(!onnx_array_describe(ONNX_FLOAT, 1, negative, &array, &problem));
    ck_assert(!onnx_array_describe(ONNX_STRING, 1, some, &array, &problem));
    ck_assert(!onnx_array_describe(ONNX_FLOAT, ONNX_RANK_MOST + 1, some, &array, &problem));
    ck_assert(onnx_array_describe(ONNX_FLOAT, 3, none, &array, &problem));
    ck_assert_uint_eq(array.size, 0);
    ck_assert(onnx_array_make(ONNX_INT16, 2, some, &array, &problem));
    ck_assert_uint_eq(array.size, 12);
    ck_assert_int_eq(array.elements, 6);
    onnx_array_release(&array);
    onnx_array_release(&array); /* an empty one */
    ck_assert(onnx_array_describe(ONNX_DOUBLE, 0, NULL, &array, &problem));
    ck_assert_uint_eq(array.size, 8); /* a scalar */
}
END_TEST

SUITE("onnx_serve", begin, end, TEST(arrays_come_from_files_and_go_into_them),
      TEST(a_part_takes_its_rows), TEST(a_model_stays_open_while_its_files_are_the_same),
      TEST(another_model_among_the_same_files_is_opened),
      TEST(an_open_model_needs_its_arrays_alone), TEST(what_does_not_fit_is_told),
      TEST(an_array_is_bounded))
