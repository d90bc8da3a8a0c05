/* The tests read the figures of NVIDIA's devices from a library that fails wherever a test tells it
 * to. Each figure fails alone, and the agent's reader understands what is printed. */
#include "provider/idle/gpu_figures.h"
#include "provider/kernel/nvml.h"
#include "tests/support/suite.h"

#include <check.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FIRST "0000:3b:00.0"
#define SECOND "0000:4b:00.0"

static struct nvml_api api;
/* Functions of the fake library. */
static void (*fail_at)(const char *function, int result);
static void (*use)(unsigned pid);
static void (*split)(int is_split);
static int (*count_alive)(void);
static void (*set_entries)(unsigned bytes, int clears);
static void (*set_own)(int pid);

static void find(const char *name, void *ret_function)
{
    void *place = dlsym(api.library, name);
    ck_assert_ptr_nonnull(place);
    memcpy(ret_function, &place, sizeof place);
}

static void begin(void)
{
    struct problem problem = {""};
    ck_assert_msg(nvml_api_load(BOURSE_FAKE_NVML, &api, &problem), "%s", problem.text);
    find("fake_nvml_fail", (void *)&fail_at);
    find("fake_nvml_use", (void *)&use);
    find("fake_nvml_split", (void *)&split);
    find("fake_nvml_alive", (void *)&count_alive);
    find("fake_nvml_entries", (void *)&set_entries);
    find("fake_nvml_own", (void *)&set_own);
    fail_at(NULL, 0);
    set_entries(sizeof(struct nvml_process), 0);
    set_own(-1);
    use(0);
    split(0);
    ck_assert_int_eq(api.nvmlInit_v2(), NVML_OK);
}

static void end(void)
{
    fail_at(NULL, 0);
    ck_assert_int_eq(api.nvmlShutdown(), NVML_OK);
    ck_assert_int_eq(count_alive(), 0);
}

/* Prints the figures of the device and reads the line as the agent does. */
static void pass_on(const char *id, struct gpu_figures *ret_figures)
{
    struct nvml_figures figures;
    struct problem problem = {""};
    char *line = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&line, &length);
    nvml_read(&api, id, &figures);
    ck_assert(nvml_print(out, &id, &figures, 1, ""));
    (void)fclose(out);
    memset(ret_figures, 0, sizeof *ret_figures);
    (void)snprintf(ret_figures->id, sizeof ret_figures->id, "%s", id);
    ck_assert_msg(gpu_figures_read(line, length - 1, ret_figures, 1, &problem), "%s", problem.text);
    free(line);
}

START_TEST(every_figure_of_a_device_reaches_the_agent)
{
    struct gpu_figures figures;
    use(1234);
    pass_on(FIRST, &figures);
    ck_assert(!figures.is_lost && !figures.is_split);
    ck_assert_int_eq(figures.memory_used, 1 << 20);
    ck_assert_int_eq(figures.memory_total, 16 << 20);
    ck_assert_int_eq(figures.busy_percent, 12);
    ck_assert_int_eq(figures.power_mw, 61000);
    ck_assert_int_eq(figures.power_limit_mw, 350000);
    ck_assert_int_eq(figures.energy_mj, INT64_C(5000000000));
    ck_assert_int_eq(figures.celsius, 44);
    ck_assert(figures.compute.is_known && figures.graphics.is_known);
    ck_assert_uint_eq(figures.compute.count, 2);
    ck_assert_int_eq(figures.compute.pids[0], getpid());
    ck_assert_int_eq(figures.compute.pids[1], 1234);
    ck_assert(figures.compute.memory_bytes[0] == 77 && figures.compute.memory_bytes[1] == 77);
    ck_assert_uint_eq(figures.graphics.count, 0);
    ck_assert_str_eq(figures.why, "");
    pass_on(SECOND, &figures);
    ck_assert_int_eq(figures.power_limit_mw, 300000);
    ck_assert_uint_eq(figures.compute.count, 1);
}
END_TEST

START_TEST(entries_of_either_length_are_read_whether_or_not_the_rest_is_cleared)
{
    for (int way = 0; way < 4; way++) {
        struct gpu_figures figures;
        set_entries(way < 2 ? sizeof(struct nvml_process) : NVML_PROCESS_BYTES_MOST, way % 2);
        for (unsigned user = 0; user < 4000; user += 1234) {
            use(user);
            pass_on(FIRST, &figures);
            ck_assert(figures.compute.is_known && !figures.compute.has_unnamed);
            ck_assert_uint_eq(figures.compute.count, user == 0 ? 1 : 2);
            ck_assert_int_eq(figures.compute.pids[0], getpid());
            ck_assert(user == 0 || figures.compute.pids[1] == (pid_t)user);
        }
    }
}
END_TEST

START_TEST(a_user_without_a_number_reaches_the_agent_as_one)
{
    struct gpu_figures figures;
    set_own(0);
    use(1234);
    pass_on(FIRST, &figures);
    ck_assert(figures.compute.is_known && figures.compute.has_unnamed);
    ck_assert_uint_eq(figures.compute.count, 1);
    ck_assert_int_eq(figures.compute.pids[0], 1234);
    ck_assert(!figures.graphics.has_unnamed);
}
END_TEST

static const char *const calls[] = {"nvmlDeviceGetMemoryInfo",
                                    "nvmlDeviceGetUtilizationRates",
                                    "nvmlDeviceGetPowerUsage",
                                    "nvmlDeviceGetEnforcedPowerLimit",
                                    "nvmlDeviceGetTotalEnergyConsumption",
                                    "nvmlDeviceGetTemperature",
                                    "nvmlDeviceGetComputeRunningProcesses_v3",
                                    "nvmlDeviceGetGraphicsRunningProcesses_v3"};
enum { CALLS = sizeof calls / sizeof calls[0] };

/* Returns the call that the absent figure is of, or CALLS when all figures are there. */
static size_t absent(const struct gpu_figures *figures)
{
    const bool is_absent[CALLS] = {figures->memory_used < 0 && figures->memory_total < 0,
                                   figures->busy_percent < 0,
                                   figures->power_mw < 0,
                                   figures->power_limit_mw < 0,
                                   figures->energy_mj < 0,
                                   figures->celsius < 0,
                                   !figures->compute.is_known,
                                   !figures->graphics.is_known};
    size_t found = CALLS;
    for (size_t i = 0; i < CALLS; i++) {
        ck_assert_msg(!is_absent[i] || found == CALLS, "%s and %s", calls[found % CALLS], calls[i]);
        found = is_absent[i] ? i : found;
    }
    return found;
}

START_TEST(each_call_fails_alone_and_says_why)
{
    static const struct {
        int result;
        const char *phrase;
    } ways[] = {{NVML_NOT_SUPPORTED, "the device does not tell"},
                {NVML_NO_PERMISSION, "this user may not ask"},
                {NVML_GPU_IS_LOST, "the device fell off the bus"},
                {4711, "an error of NVML without a name"}};
    for (size_t i = 0; i < CALLS; i++) {
        for (size_t k = 0; k < sizeof ways / sizeof ways[0]; k++) {
            struct gpu_figures figures;
            fail_at(calls[i], ways[k].result);
            pass_on(FIRST, &figures);
            ck_assert_uint_eq(absent(&figures), i);
            ck_assert_msg(strstr(figures.why, ways[k].phrase) != NULL, "%s", figures.why);
            ck_assert(figures.is_lost == (ways[k].result == NVML_GPU_IS_LOST));
        }
    }
    struct gpu_figures figures;
    fail_at(NULL, 0);
    pass_on(FIRST, &figures);
    ck_assert_uint_eq(absent(&figures), CALLS);
}
END_TEST

START_TEST(a_function_that_the_library_lacks_is_a_figure_less)
{
    struct gpu_figures figures;
    api.nvmlDeviceGetTemperature = NULL;
    pass_on(FIRST, &figures);
    ck_assert_int_eq(figures.celsius, -1);
    ck_assert_int_eq(figures.power_mw, 61000);
    ck_assert_msg(strstr(figures.why, "celsius: the driver's library has no such function") != NULL,
                  "%s", figures.why);
    struct nvml_figures read;
    struct nvml_api bare = {.nvmlDeviceGetHandleByPciBusId_v2 =
                                api.nvmlDeviceGetHandleByPciBusId_v2};
    nvml_read(&bare, FIRST, &read);
    ck_assert_int_eq(read.found, NVML_OK);
    ck_assert_int_eq(read.memory_result, NVML_FUNCTION_NOT_FOUND);
    ck_assert_int_eq(read.compute.result, NVML_FUNCTION_NOT_FOUND);
}
END_TEST

START_TEST(a_device_that_is_lost_or_not_there_has_no_figures)
{
    struct gpu_figures figures;
    fail_at("nvmlDeviceGetHandleByPciBusId_v2", NVML_GPU_IS_LOST);
    pass_on(FIRST, &figures);
    ck_assert(figures.is_lost);
    ck_assert_int_eq(figures.power_mw, -1);
    ck_assert(!figures.compute.is_known);
    ck_assert_str_eq(figures.why, "device: the device fell off the bus");
    fail_at(NULL, 0);
    pass_on("0000:ff:00.0", &figures);
    ck_assert(!figures.is_lost);
    ck_assert_str_eq(figures.why, "device: the library does not find it");
}
END_TEST

START_TEST(a_device_split_by_mig_tells_its_heat_and_power_alone)
{
    struct gpu_figures figures;
    split(1);
    pass_on(FIRST, &figures);
    ck_assert(figures.is_split);
    ck_assert_int_eq(figures.celsius, 44);
    ck_assert_int_eq(figures.power_mw, 61000);
    ck_assert_int_eq(figures.memory_used, -1);
    ck_assert(!figures.compute.is_known && !figures.graphics.is_known);
    pass_on(SECOND, &figures);
    ck_assert(!figures.is_split && figures.compute.is_known);
}
END_TEST

START_TEST(a_library_that_is_missing_or_too_old_says_so)
{
    struct nvml_api other = {.library = NULL};
    struct problem problem = {""};
    ck_assert(!nvml_api_load("/nonexistent/libnvidia-ml.so.1", &other, &problem));
    ck_assert_msg(strstr(problem.text, "no management library of NVIDIA: ") != NULL, "%s",
                  problem.text);
    ck_assert(!nvml_api_load("libm.so.6", &other, &problem));
    ck_assert_str_eq(problem.text, "NVIDIA's management library has no function nvmlInit_v2, so it "
                                   "is too old");
    ck_assert_ptr_null(other.library);
}
END_TEST

/* ---------------------------------------------------------------- the service */

static void *serve(void *context)
{
    static const char *const ids[] = {FIRST, SECOND};
    const int *socket = context;
    return (void *)(intptr_t)nvml_serve(BOURSE_FAKE_NVML, *socket, ids, 2);
}

/* Asks for a line, and returns its length without the newline; 0 at the end. */
static size_t ask(int socket, char *ret_line, size_t capacity)
{
    size_t length = 0;
    (void)send(socket, "\n", 1, MSG_NOSIGNAL);
    while (length < capacity && recv(socket, ret_line + length, 1, 0) == 1) {
        if (ret_line[length] == '\n') {
            return length;
        }
        length++;
    }
    return 0;
}

START_TEST(the_service_answers_each_line_until_its_socket_ends)
{
    static char line[8192];
    static struct gpu_figures figures[2];
    struct problem problem = {""};
    int sockets[2];
    pthread_t thread;
    void *status = NULL;
    (void)snprintf(figures[0].id, GPU_ID_SIZE, SECOND);
    (void)snprintf(figures[1].id, GPU_ID_SIZE, FIRST);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, serve, &sockets[1]), 0);
    for (unsigned i = 1; i <= 3; i++) {
        use(i);
        const size_t length = ask(sockets[0], line, sizeof line);
        ck_assert_uint_gt(length, 0);
        ck_assert_msg(gpu_figures_read(line, length, figures, 2, &problem), "%s", problem.text);
        ck_assert_int_eq(figures[0].power_limit_mw, 300000);
        ck_assert_int_eq(figures[1].compute.pids[1], (int)i);
    }
    (void)shutdown(sockets[0], SHUT_WR);
    ck_assert_int_eq(pthread_join(thread, &status), 0);
    ck_assert_int_eq((int)(intptr_t)status, 0);
    (void)close(sockets[0]);
    (void)close(sockets[1]);
}
END_TEST

START_TEST(a_library_that_does_not_start_ends_the_service_with_the_reason)
{
    static char line[8192];
    static struct gpu_figures figures[1];
    struct problem problem = {""};
    int sockets[2];
    pthread_t thread;
    void *status = NULL;
    (void)snprintf(figures[0].id, GPU_ID_SIZE, FIRST);
    figures[0].celsius = 44;
    fail_at("nvmlInit_v2", NVML_LIB_RM_VERSION_MISMATCH);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, serve, &sockets[1]), 0);
    const size_t length = ask(sockets[0], line, sizeof line);
    ck_assert_int_eq(pthread_join(thread, &status), 0);
    ck_assert_int_eq((int)(intptr_t)status, 1);
    ck_assert(!gpu_figures_read(line, length, figures, 1, &problem));
    ck_assert_str_eq(problem.text,
                     "NVIDIA's management library does not start: the library and the driver "
                     "differ in version (error 18 of NVML)");
    ck_assert_int_eq(figures[0].celsius, -1);
    (void)close(sockets[0]);
    (void)close(sockets[1]);
}
END_TEST

SUITE("NVML", begin, end, TEST(every_figure_of_a_device_reaches_the_agent),
      TEST(entries_of_either_length_are_read_whether_or_not_the_rest_is_cleared),
      TEST(a_user_without_a_number_reaches_the_agent_as_one),
      TEST(each_call_fails_alone_and_says_why),
      TEST(a_function_that_the_library_lacks_is_a_figure_less),
      TEST(a_device_that_is_lost_or_not_there_has_no_figures),
      TEST(a_device_split_by_mig_tells_its_heat_and_power_alone),
      TEST(a_library_that_is_missing_or_too_old_says_so),
      TEST(the_service_answers_each_line_until_its_socket_ends),
      TEST(a_library_that_does_not_start_ends_the_service_with_the_reason))
