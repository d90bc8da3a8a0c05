/* The tests compute chains of products on a CUDA driver that fails wherever a test tells it to. */
#include "provider/kernel/cuda.h"
#include "provider/kernel/engine.h"
#include "tests/support/chain_play.h"
#include "tests/support/suite.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static struct cuda_api api;
static struct devices devices;
static struct engine engine;

/* Functions of the fake driver. */
static void (*fail_at)(const char *function, int result);
static int (*count_alive)(void);

static void find(const char *name, void *ret_function)
{
    void *place = dlsym(api.library, name);
    ck_assert_ptr_nonnull(place);
    memcpy(ret_function, &place, sizeof place);
}

static void begin(void)
{
    struct problem problem = {""};
    ck_assert_msg(cuda_api_load(BOURSE_FAKE_CUDA, &api, &problem), "%s", problem.text);
    find("fake_cuda_fail", (void *)&fail_at);
    find("fake_cuda_alive", (void *)&count_alive);
    fail_at(NULL, 0);
    ck_assert_msg(cuda_find_devices(&api, &devices, &problem), "%s", problem.text);
    ck_assert_msg(engine_open(&devices.items[0], &engine, &problem), "%s", problem.text);
}

static void end(void)
{
    fail_at(NULL, 0);
    engine_close(&engine);
    ck_assert_int_eq(count_alive(), 0);
}

/* The answer is the same when bands of rows go one after another. */
START_TEST(a_chain_of_products_is_computed_on_the_device)
{
    const struct challenge_product product = {
        .seed = {{1, 2, 3}}, .side = 64, .rounds = 2, .rows = 128, .steps = 3};
    struct problem problem = {""};
    enum operation_status status;
    char *whole = chain_play(&engine, &product, 1 << 20, &status, &problem);
    ck_assert_msg(whole != NULL, "%s", problem.text);
    ck_assert_uint_eq(chain_right(&product, whole), 256);
    char *banded = chain_play(&engine, &product, 64 << 10, &status, &problem);
    ck_assert_msg(banded != NULL, "%s", problem.text);
    ck_assert_str_eq(whole, banded);
    free(whole);
    free(banded);
    ck_assert_ptr_null(chain_play(&engine, &product, 32 << 10, &status, &problem));
    ck_assert_int_eq(status, OPERATION_MEMORY);
}
END_TEST

START_TEST(a_failure_within_a_chain_leaves_nothing)
{
    static const char *const calls[] = {"cuModuleGetFunction", "cuMemAlloc_v2",
                                        "cuMemcpyHtoD_v2",     "cuLaunchKernel",
                                        "cuCtxSynchronize",    "cuMemcpyDtoH_v2"};
    const struct challenge_product product = {.side = 64, .rounds = 1, .rows = 64, .steps = 1};
    struct problem problem;
    enum operation_status status;
    free(chain_play(&engine, &product, 1 << 20, &status, &problem)); /* the programs are built */
    const int alive = count_alive();
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        fail_at(calls[i], CUDA_OUT_OF_MEMORY);
        ck_assert_msg(chain_play(&engine, &product, 1 << 20, &status, &problem) == NULL, "%s",
                      calls[i]);
        fail_at(NULL, 0);
        ck_assert_int_eq(count_alive(), alive);
    }
    struct challenge_product wrong = product;
    wrong.rows = 65;
    ck_assert_ptr_null(chain_play(&engine, &wrong, 1 << 20, &status, &problem));
    ck_assert_int_eq(status, OPERATION_FAILED);
}
END_TEST

SUITE("cuda_chain", begin, end, TEST(a_chain_of_products_is_computed_on_the_device),
      TEST(a_failure_within_a_chain_leaves_nothing))
