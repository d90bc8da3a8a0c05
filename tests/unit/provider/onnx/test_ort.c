/* ONNX Runtime's interface is tried with a stand-in that fails at each call, and with the library
 * itself where scripts/setup has fetched it. */
#include "provider/onnx/onnx_serve.h"
#include "provider/onnx/runtime/ort_api.h"
#include "provider/onnx/runtime/ort_engine.h"

#include "tests/support/suite.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Tells the stand-in one thing, and nothing else. */
static void tell(const char *name, const char *value)
{
    static const char *const all[] = {"FAKE_ORT_FAILS", "FAKE_ORT_CODE", "FAKE_ORT_SAYS",
                                      "FAKE_ORT_LACKS", "FAKE_ORT_IS"};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        ck_assert_int_eq(unsetenv(all[i]), 0);
    }
    if (name != NULL) {
        ck_assert_int_eq(setenv(name, value, 1), 0);
    }
}

static void tell_place(const char *name, int place)
{
    char text[16];
    (void)snprintf(text, sizeof text, "%d", place);
    tell(name, text);
}

static int ask(const char *function)
{
    void *library = dlopen(BOURSE_FAKE_ONNXRUNTIME, RTLD_NOW | RTLD_LOCAL);
    ck_assert_ptr_nonnull(library);
    int (*answer)(void);
    void *symbol = dlsym(library, function);
    ck_assert_ptr_nonnull(symbol);
    memcpy(&answer, &symbol, sizeof answer);
    const int number = answer();
    ck_assert_int_eq(dlclose(library), 0);
    return number;
}

static const uint8_t bytes[4] = {8, 8, 0, 0};

/* The whole way from the library to a result. Returns the first status that is not OK. */
static enum onnx_engine_status walk(struct problem *problem)
{
    struct onnx_engine engine;
    void *session = NULL;
    float values[2] = {2, -3};
    const int64_t dims[1] = {2};
    struct onnx_array input;
    struct onnx_array output = {.type = ONNX_UNDEFINED};
    if (!ort_engine_open(BOURSE_FAKE_ONNXRUNTIME, NULL, &engine, problem)) {
        return ONNX_ENGINE_STATUSES;
    }
    const struct onnx_engine_model model = {
        .bytes = bytes, .size = sizeof bytes, .threads = 3, .folder = "weights"};
    enum onnx_engine_status status = engine.open(engine.context, &model, &session, problem);
    if (status == ONNX_ENGINE_OK) {
        ck_assert(onnx_array_describe(ONNX_FLOAT, 1, dims, &input, problem));
        input.bytes = values;
        status = engine.run(session, &input, &output, problem);
    }
    if (status == ONNX_ENGINE_OK) {
        ck_assert_uint_eq(output.size, sizeof values);
        ck_assert(((const float *)output.bytes)[0] == 4);
        ck_assert(((const float *)output.bytes)[1] == -6);
        onnx_array_release(&output);
    } else {
        ck_assert_ptr_null(output.bytes);
    }
    engine.close(&session);
    ck_assert_ptr_null(session);
    ort_engine_close(&engine);
    return status;
}

START_TEST(a_model_is_opened_and_run)
{
    struct problem problem = {""};
    tell(NULL, NULL);
    ck_assert_msg(walk(&problem) == ONNX_ENGINE_OK, "%s", problem.text);
    ck_assert_int_eq(ask("fake_ort_alive"), 0);
}
END_TEST

/* The places of functions that can fail, by the table itself. */
#define PLACE(place, result, name, arguments) place,
static const int places[] = {ORT_CALLS(PLACE)};
#undef PLACE
enum { PLACE_COUNT = sizeof places / sizeof places[0] };

/* Providers of the library are tried by test_ort_provider.c. */
static bool can_fail(int place)
{
    return place > 2 && (place < 92 || place > 100) && place != 125 && place != 126 && place != 216;
}

START_TEST(each_call_may_fail_and_nothing_is_left)
{
    unsigned failed = 0;
    for (size_t i = 0; i < PLACE_COUNT; i++) {
        struct problem problem = {""};
        if (!can_fail(places[i])) {
            continue;
        }
        tell_place("FAKE_ORT_FAILS", places[i]);
        const enum onnx_engine_status status = walk(&problem);
        ck_assert_msg(status != ONNX_ENGINE_OK, "place %d", places[i]);
        ck_assert_msg(strcmp(problem.text, "fake") == 0, "place %d: %s", places[i], problem.text);
        ck_assert_msg(ask("fake_ort_alive") == 0, "place %d leaves something", places[i]);
        failed++;
    }
    ck_assert_uint_eq(failed, 27);
}
END_TEST

START_TEST(a_table_that_lacks_a_function_is_refused)
{
    for (size_t i = 0; i < PLACE_COUNT; i++) {
        struct problem problem = {""};
        tell_place("FAKE_ORT_LACKS", places[i]);
        ck_assert_int_eq(walk(&problem), ONNX_ENGINE_STATUSES);
        ck_assert_str_eq(problem.text, "ONNX Runtime 1.99.0-fake lacks a function that every "
                                       "version has; 1.17 or newer is needed");
    }
}
END_TEST

START_TEST(what_is_no_library_of_today_is_refused_by_name)
{
    struct onnx_engine engine;
    struct problem problem = {""};
    tell("FAKE_ORT_IS", "old");
    ck_assert(!ort_engine_open(BOURSE_FAKE_ONNXRUNTIME, NULL, &engine, &problem));
    ck_assert_str_eq(problem.text, "ONNX Runtime 1.99.0-fake is too old; 1.17 or newer is needed");
    tell("FAKE_ORT_IS", "bare");
    ck_assert(!ort_engine_open(BOURSE_FAKE_ONNXRUNTIME, NULL, &engine, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "(unknown) is too old"));
    tell("FAKE_ORT_IS", "mute");
    ck_assert(ort_engine_open(BOURSE_FAKE_ONNXRUNTIME, NULL, &engine, &problem));
    ck_assert_str_eq(engine.name, "onnxruntime-(unknown)");
    ort_engine_close(&engine);
    tell(NULL, NULL);
    ck_assert(!ort_engine_open("/nonexistent/libonnxruntime.so.1", NULL, &engine, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "ONNX Runtime's library does not load"));
    ck_assert(!ort_engine_open("libm.so.6", NULL, &engine, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "so it is no ONNX Runtime"));
}
END_TEST

static void check_status(const char *name, const char *value, enum onnx_engine_status wanted,
                         const char *said)
{
    struct problem problem = {""};
    tell(name, value);
    ck_assert_int_eq(walk(&problem), wanted);
    ck_assert_msg(strstr(problem.text, said) != NULL, "%s", problem.text);
    ck_assert_int_eq(ask("fake_ort_alive"), 0);
}

START_TEST(inputs_and_outputs_that_are_no_arrays_of_numbers_are_refused)
{
    check_status("FAKE_ORT_IS", "sequence", ONNX_ENGINE_UNSUPPORTED, "\"y\" of the model");
    check_status("FAKE_ORT_IS", "string", ONNX_ENGINE_UNSUPPORTED, "\"x\" of the model");
    check_status("FAKE_ORT_IS", "optional", ONNX_ENGINE_UNSUPPORTED, "output \"y\" is no tensor");
    check_status("FAKE_ORT_IS", "crowd", ONNX_ENGINE_UNSUPPORTED, "300 inputs; at most 256");
    check_status("FAKE_ORT_IS", "any", ONNX_ENGINE_OK, "");
    check_status("FAKE_ORT_IS", "wide", ONNX_ENGINE_OK, ""); /* of any shape, for all we know */
}
END_TEST

static void check_fault(int place, const char *code, const char *says,
                        enum onnx_engine_status wanted)
{
    struct problem problem = {""};
    tell_place("FAKE_ORT_FAILS", place);
    ck_assert_int_eq(setenv("FAKE_ORT_CODE", code, 1), 0);
    ck_assert_int_eq(setenv("FAKE_ORT_SAYS", says, 1), 0);
    ck_assert_int_eq(walk(&problem), wanted);
    ck_assert_uint_gt(strlen(problem.text), 0);
    ck_assert_ptr_null(strchr(problem.text, '\n'));
}

START_TEST(codes_and_texts_become_statuses)
{
    enum { OPEN = 8, RUN = 9 };
    check_fault(OPEN, "10", "This is an invalid model.\nNode (a)", ONNX_ENGINE_MODEL);
    check_fault(OPEN, "7", "Protobuf parsing failed.", ONNX_ENGINE_MODEL);
    check_fault(OPEN, "9", "Could not find an implementation for Foo(1)", ONNX_ENGINE_UNSUPPORTED);
    check_fault(OPEN, "6", "std::bad_alloc", ONNX_ENGINE_MEMORY);
    check_fault(OPEN, "1", "NULL", ONNX_ENGINE_MODEL);
    check_fault(RUN, "2", "Got invalid dimensions for input: x", ONNX_ENGINE_INPUT);
    check_fault(RUN, "1", "Non-zero status code returned", ONNX_ENGINE_FAILED);
    check_fault(RUN, "6", "Failed to allocate memory for requested buffer", ONNX_ENGINE_MEMORY);
}
END_TEST

START_TEST(a_session_has_the_threads_that_it_was_opened_with)
{
    struct problem problem = {""};
    tell(NULL, NULL);
    ck_assert_int_eq(walk(&problem), ONNX_ENGINE_OK);
    /* The library stays loaded, so that it still knows. */
    ck_assert_int_eq(ask("fake_ort_threads"), 3);
}
END_TEST

START_TEST(a_trial_notices_wrong_sums)
{
    struct onnx_engine engine;
    struct problem problem = {""};
    tell("FAKE_ORT_IS", "liar");
    ck_assert(ort_engine_open(BOURSE_FAKE_ONNXRUNTIME, NULL, &engine, &problem));
    ck_assert(!onnx_serve_try(&engine, &problem));
    ck_assert_str_eq(problem.text, "onnxruntime-1.99.0-fake computes a sum wrongly");
    tell(NULL, NULL);
    ck_assert(onnx_serve_try(&engine, &problem));
    ort_engine_close(&engine);
    ck_assert_int_eq(ask("fake_ort_alive"), 0);
}
END_TEST

/* The library that scripts/setup has fetched, unless the environment names another. */
#define LIBRARY BOURSE_SOURCE_DIR "/build/onnxruntime/libonnxruntime.so.1"

/* Our places and types are compared with the library by their use, if it is there. */
START_TEST(the_library_itself_computes_the_trial)
{
    const char *named = getenv("BOURSE_ONNXRUNTIME");
    const char *library = named != NULL ? named : LIBRARY;
    struct onnx_engine engine;
    struct problem problem = {""};
    if (access(library, R_OK) != 0) {
        return; /* test_onnx.sh is skipped visibly then */
    }
    ck_assert_msg(ort_engine_open(library, NULL, &engine, &problem), "%s", problem.text);
    ck_assert_msg(onnx_serve_try(&engine, &problem), "%s", problem.text);
    const struct onnx_engine_model broken = {.bytes = bytes, .size = sizeof bytes, .threads = 1};
    void *session = NULL;
    ck_assert_int_eq(engine.open(engine.context, &broken, &session, &problem), ONNX_ENGINE_MODEL);
    ck_assert_ptr_null(session);
    ort_engine_close(&engine);
}
END_TEST

SUITE("ort", NULL, NULL, TEST(a_model_is_opened_and_run),
      TEST(each_call_may_fail_and_nothing_is_left), TEST(a_table_that_lacks_a_function_is_refused),
      TEST(what_is_no_library_of_today_is_refused_by_name),
      TEST(inputs_and_outputs_that_are_no_arrays_of_numbers_are_refused),
      TEST(codes_and_texts_become_statuses),
      TEST(a_session_has_the_threads_that_it_was_opened_with), TEST(a_trial_notices_wrong_sums),
      TEST(the_library_itself_computes_the_trial))
