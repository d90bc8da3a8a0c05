/* The execution providers of ONNX Runtime are tried with a stand-in that fails at each call. */
#include "provider/onnx/onnx_engines.h"
#include "provider/onnx/onnx_trial.h"
#include "provider/onnx/runtime/ort_engine.h"
#include "provider/onnx/runtime/ort_provider.h"

#include "tests/support/suite.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SETTINGS "/tmp/bourse-test-ort-provider"

static void tell(const char *fails, const char *is)
{
    ck_assert_int_eq(
        fails != NULL ? setenv("FAKE_ORT_FAILS", fails, 1) : unsetenv("FAKE_ORT_FAILS"), 0);
    ck_assert_int_eq(is != NULL ? setenv("FAKE_ORT_IS", is, 1) : unsetenv("FAKE_ORT_IS"), 0);
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

static void settings(const char *text)
{
    FILE *file = fopen(SETTINGS, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static const uint8_t bytes[4] = {8, 8, 0, 0};

/* The way from the settings to an open session. Returns the first status that is not OK. */
static enum onnx_engine_status walk(char ret_share[ORT_SHARE_SIZE], char ret_lines[512],
                                    struct problem *problem)
{
    struct onnx_engine engine;
    void *session = NULL;
    ret_share[0] = ret_lines[0] = '\0';
    if (!ort_engine_open(BOURSE_FAKE_ONNXRUNTIME, SETTINGS, &engine, problem)) {
        return ONNX_ENGINE_STATUSES;
    }
    ck_assert_str_eq(engine.name, "onnxruntime-1.99.0-fake-fake");
    const struct onnx_engine_model model = {.bytes = bytes, .size = sizeof bytes, .threads = 1};
    const enum onnx_engine_status status = engine.open(engine.context, &model, &session, problem);
    if (status == ONNX_ENGINE_OK) {
        (void)snprintf(ret_share, ORT_SHARE_SIZE, "%s", engine.share(session));
    }
    ck_assert(engine.describe(engine.context, ret_lines, 512, problem));
    engine.close(&session);
    ort_engine_close(&engine);
    return status;
}

START_TEST(a_provider_of_the_library_gets_its_options)
{
    char share[ORT_SHARE_SIZE];
    char lines[512];
    struct problem problem = {""};
    tell(NULL, NULL);
    settings("provider Fake\noption a=b\noption c=d e\nenvironment BOURSE_TEST_ORT=f=g\n");
    ck_assert_msg(walk(share, lines, &problem) == ONNX_ENGINE_OK, "%s", problem.text);
    ck_assert_int_eq(ask("fake_ort_options"), 2);
    ck_assert_str_eq(getenv("BOURSE_TEST_ORT"), "f=g");
    ck_assert_str_eq(share, ""); /* an old library does not say */
    ck_assert_str_eq(lines, "");
    tell("216", NULL);
    ck_assert_int_eq(walk(share, lines, &problem), ONNX_ENGINE_MODEL);
    ck_assert_str_eq(problem.text, "fake");
    ck_assert_int_eq(ask("fake_ort_alive"), 0);
    (void)unlink(SETTINGS);
}
END_TEST

START_TEST(nodes_that_the_processor_computes_are_told)
{
    char share[ORT_SHARE_SIZE];
    char lines[512];
    struct problem problem = {""};
    settings("provider Fake\n");
    tell(NULL, "new");
    ck_assert_msg(walk(share, lines, &problem) == ONNX_ENGINE_OK, "%s", problem.text);
    ck_assert_str_eq(share, "Fake does not compute 3 nodes of the model: the processor does, for "
                            "Shape, Unique");
    tell(NULL, "whole");
    ck_assert_msg(walk(share, lines, &problem) == ONNX_ENGINE_OK, "%s", problem.text);
    ck_assert_str_eq(share, "Fake computes all nodes of the model");
    (void)unlink(SETTINGS);
}
END_TEST

START_TEST(a_plug_in_library_brings_a_provider_with_its_device)
{
    char share[ORT_SHARE_SIZE];
    char lines[512];
    struct problem problem = {""};
    settings("provider Fake\nlibrary /opt/libfake.so\noption a=b\n");
    tell(NULL, "new");
    ck_assert_msg(walk(share, lines, &problem) == ONNX_ENGINE_OK, "%s", problem.text);
    ck_assert_str_eq(lines, "type npu\nvendor Acme Corp\n");
    ck_assert_int_eq(ask("fake_ort_options"), 1);
    tell(NULL, "alone");
    ck_assert_int_eq(walk(share, lines, &problem), ONNX_ENGINE_STATUSES);
    ck_assert_str_eq(problem.text,
                     "/opt/libfake.so finds no device of the execution provider Fake");
    tell(NULL, NULL);
    ck_assert_int_eq(walk(share, lines, &problem), ONNX_ENGINE_STATUSES);
    ck_assert_str_eq(problem.text,
                     "ONNX Runtime 1.99.0-fake takes no plug-in libraries; 1.22 or newer does");
    ck_assert_int_eq(ask("fake_ort_alive"), 0);
    (void)unlink(SETTINGS);
}
END_TEST

START_TEST(each_call_about_providers_may_fail_and_nothing_is_left)
{
    static const char *const places[] = {"301", "303", "304", "407", "408", "409", "412"};
    char share[ORT_SHARE_SIZE];
    char lines[512];
    settings("provider Fake\nlibrary /opt/libfake.so\n");
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        struct problem problem = {""};
        tell(places[i], "new");
        ck_assert_msg(walk(share, lines, &problem) != ONNX_ENGINE_OK, "place %s", places[i]);
        ck_assert_msg(strcmp(problem.text, "fake") == 0, "place %s: %s", places[i], problem.text);
        ck_assert_msg(ask("fake_ort_alive") == 0, "place %s leaves something", places[i]);
    }
    (void)unlink(SETTINGS);
}
END_TEST

START_TEST(the_library_lists_its_providers)
{
    struct onnx_engine engine;
    struct problem problem = {""};
    char lines[512];
    tell(NULL, NULL);
    ck_assert(onnx_engines_open(BOURSE_FAKE_ONNXRUNTIME, "/nonexistent", &engine, &problem));
    ck_assert_str_eq(engine.name, "onnxruntime-1.99.0-fake");
    ck_assert(engine.describe(engine.context, lines, sizeof lines, &problem));
    ck_assert_str_eq(lines, "providers FakeExecutionProvider\n");
    tell("125", NULL);
    ck_assert(!engine.describe(engine.context, lines, sizeof lines, &problem));
    tell("126", NULL);
    ck_assert(!engine.describe(engine.context, lines, sizeof lines, &problem));
    ck_assert_str_eq(problem.text, "fake");
    ort_engine_close(&engine);
    ck_assert_int_eq(ask("fake_ort_alive"), 0);
}
END_TEST

START_TEST(settings_that_are_none_are_refused)
{
    static const char *const wrong[] = {
        "",
        "provider Fake",
        "provider\n",
        "provider \n",
        "provider Fake\nprovider Fake\n",
        "library /a\n",
        "provider Fake\noption a\n",
        "provider Fake\noption =a\n",
        "provider Fake\nsomething a=b\n",
        "provider Fake\n\n",
    };
    static struct ort_provider provider;
    struct problem problem = {""};
    char many[ORT_SETTINGS_BYTES + 1] = "provider Fake\n";
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_msg(!ort_provider_parse(wrong[i], strlen(wrong[i]), &provider, &problem), "%s",
                      wrong[i]);
        ck_assert_str_eq(problem.text, "the settings of the execution provider do not decode");
    }
    ck_assert(!ort_provider_parse("provider Fa\0ke\n", 15, &provider, &problem));
    for (int i = 0; i <= ORT_SETTINGS_MOST; i++) {
        ck_assert_int_eq(ort_provider_parse(many, strlen(many), &provider, &problem),
                         i <= ORT_SETTINGS_MOST);
        (void)strcat(many, "option a=b\n");
    }
    ck_assert(!ort_provider_parse(many, strlen(many), &provider, &problem));
    memset(many, 'a', sizeof many);
    ck_assert(!ort_provider_parse(many, ORT_SETTINGS_BYTES, &provider, &problem));
    ck_assert(!ort_provider_read("/nonexistent", &provider, &problem));
}
END_TEST

START_TEST(a_provider_without_the_library_is_refused)
{
    struct onnx_engine engine;
    struct problem problem = {""};
    settings("provider Fake\n");
    ck_assert(!onnx_engines_open("/nonexistent", SETTINGS, &engine, &problem));
    ck_assert_str_eq(problem.text, "an execution provider needs ONNX Runtime's library");
    (void)unlink(SETTINGS);
}
END_TEST

START_TEST(a_trial_notices_another_array)
{
    struct onnx_engine engine;
    struct problem problem = {""};
    int64_t mflops = -1;
    settings("provider Fake\n");
    tell(NULL, NULL);
    ck_assert(ort_engine_open(BOURSE_FAKE_ONNXRUNTIME, SETTINGS, &engine, &problem));
    tell("9", NULL);
    ck_assert(!onnx_trial_run(&engine, &mflops, &problem));
    ck_assert_str_eq(problem.text, "fake");
    ck_assert_int_eq(mflops, -1);
    ort_engine_close(&engine);
    ck_assert_int_eq(ask("fake_ort_alive"), 0);
    (void)unlink(SETTINGS);
}
END_TEST

/* ---------------------------------------------------------------- the trial */

/* A stand-in for an engine computes y here, and spoils it as the test likes. */
static struct {
    float factor;
    bool is_refused;
    unsigned runs, open;
    float *y;
} stand_in;

static enum onnx_engine_status open_stand_in(void *context, const struct onnx_engine_model *model,
                                             void **ret_session, struct problem *problem)
{
    (void)context;
    ck_assert(model->is_for_provider);
    if (stand_in.is_refused) {
        problem_set(problem, "fallback to CPU is disabled");
        return ONNX_ENGINE_MODEL;
    }
    stand_in.open++;
    *ret_session = &stand_in;
    return ONNX_ENGINE_OK;
}

static enum onnx_engine_status run_stand_in(void *session, const struct onnx_array *inputs,
                                            struct onnx_array *ret_outputs, struct problem *problem)
{
    const size_t side = (size_t)inputs[0].dims[0];
    const float *x = inputs[0].bytes;
    ck_assert_ptr_eq(session, &stand_in);
    ck_assert(side == 256); /* each run takes longer than a fast device does */
    stand_in.runs++;
    for (size_t row = 0; row < side; row++) {
        for (size_t column = 0; column < side; column++) {
            float sum = 0;
            for (size_t k = 0; k < side; k++) {
                sum += x[row * side + k] * x[k * side + column];
            }
            stand_in.y[row * side + column] = 1 / (1 + expf(-sum * stand_in.factor));
        }
    }
    (void)usleep(20000); /* the device is slow */
    ck_assert(onnx_array_describe(ONNX_FLOAT, 2, inputs[0].dims, ret_outputs, problem));
    ret_outputs->bytes = stand_in.y;
    return ONNX_ENGINE_OK;
}

static void close_stand_in(void **session)
{
    stand_in.open -= *session != NULL;
    *session = NULL;
}

START_TEST(a_trial_tells_a_right_device_from_a_wrong_one)
{
    static float y[256 * 256];
    const struct onnx_engine engine = {
        .name = "stand-in", .open = open_stand_in, .run = run_stand_in, .close = close_stand_in};
    struct problem problem = {""};
    int64_t mflops = 0;
    stand_in.y = y;
    stand_in.factor = 1;
    ck_assert_msg(onnx_trial_run(&engine, &mflops, &problem), "%s", problem.text);
    ck_assert_uint_eq(stand_in.runs, 4);
    ck_assert_int_gt(mflops, 0);
    ck_assert_int_le(mflops, 1677); /* 2 * 256^3 operations take 20 ms or longer */
    stand_in.factor = 1.1F;
    ck_assert(!onnx_trial_run(&engine, &mflops, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "stand-in computes 0."));
    stand_in.factor = NAN;
    ck_assert(!onnx_trial_run(&engine, &mflops, &problem));
    stand_in.is_refused = true;
    ck_assert(!onnx_trial_run(&engine, &mflops, &problem));
    ck_assert_str_eq(problem.text, "fallback to CPU is disabled");
    ck_assert_uint_eq(stand_in.open, 0);
}
END_TEST

SUITE("ort provider", NULL, NULL, TEST(a_provider_of_the_library_gets_its_options),
      TEST(nodes_that_the_processor_computes_are_told),
      TEST(a_plug_in_library_brings_a_provider_with_its_device),
      TEST(each_call_about_providers_may_fail_and_nothing_is_left),
      TEST(the_library_lists_its_providers), TEST(settings_that_are_none_are_refused),
      TEST(a_provider_without_the_library_is_refused), TEST(a_trial_notices_another_array),
      TEST(a_trial_tells_a_right_device_from_a_wrong_one))
