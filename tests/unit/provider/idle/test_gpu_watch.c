/* The tests look at the watch over GPUs before anything was read. They ask for the watched devices,
 * their order, and what is told of them. tests/integration/test_gpu.sh has the rest. */
#include "provider/idle/gpu_watch.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static const struct kernel_device opencl = {.api = KERNEL_OPENCL, .id = "0", .kind = "gpu"};
static const struct kernel_device cuda = {
    .api = KERNEL_CUDA, .id = "0000:3b:00.0", .kind = "gpu", .node = -1};
static const struct gpu_terms terms = {
    .is_set = true, .after_ns = 1, .give_back_ns = 100, .celsius = 80};
static struct gpu_watch *watch;

static void setup(void)
{
    const struct gpu_watch_config config = {.kernel_path = "/nonexistent", .terms = &terms};
    watch = gpu_watch_create(&config);
    ck_assert_ptr_nonnull(watch);
}

static void teardown(void)
{
    gpu_watch_destroy(&watch);
    ck_assert_ptr_null(watch);
}

static const char *said(const json_t *list, size_t index, const char *name)
{
    const char *value = json_string_value(json_object_get(json_array_get(list, index), name));
    return value != NULL ? value : "null";
}

START_TEST(a_device_of_another_interface_has_no_figures_and_is_always_offered)
{
    gpu_watch_add(watch, &opencl, "arc", 0, 5);
    ck_assert(!gpu_watch_turn(watch, 10));
    ck_assert_int_eq(gpu_watch_fd(watch), -1);
    ck_assert(gpu_watch_due_ns(watch) == INT64_MAX);
    ck_assert_int_eq(gpu_watch_order(watch, 0), IDLE_WORK);
    json_t *list = gpu_watch_json(watch, 10);
    ck_assert_uint_eq(json_array_size(list), 1);
    ck_assert_str_eq(said(list, 0, "device"), "arc");
    ck_assert_str_eq(said(list, 0, "why"), "figures are read of CUDA devices only, so `gpu:` has "
                                           "no effect on this device");
    ck_assert(json_is_null(json_object_get(json_array_get(list, 0), "celsius")));
    ck_assert(json_is_null(json_object_get(json_array_get(list, 0), "age_ms")));
    json_decref(list);
}
END_TEST

START_TEST(a_cuda_device_is_withheld_until_it_was_read)
{
    gpu_watch_add(watch, &opencl, "arc", 0, 5);
    gpu_watch_add(watch, &cuda, "card", 0, 5);
    ck_assert_uint_eq(gpu_watch_count(watch), 2);
    ck_assert_str_eq(gpu_watch_label(watch, 0), "card"); /* devices with figures come first */
    ck_assert_str_eq(gpu_watch_label(watch, 1), "arc");
    ck_assert_int_eq(gpu_watch_order(watch, 0), IDLE_HOLD);
    ck_assert_int_eq(gpu_watch_order(watch, 1), IDLE_WORK);
    ck_assert(gpu_watch_due_ns(watch) <= 5);
    json_t *list = gpu_watch_json(watch, 10);
    ck_assert_str_eq(said(list, 0, "order"), "hold");
    ck_assert_str_eq(said(list, 0, "reason"), "it has been watched for 0 s so far");
    ck_assert_str_eq(said(list, 0, "why"), "not read yet");
    json_decref(list);
}
END_TEST

START_TEST(more_devices_than_there_is_room_for_are_left_out)
{
    char label[16];
    for (int i = 0; i < GPU_WATCH_DEVICES_MAX + 4; i++) {
        (void)snprintf(label, sizeof label, "card%d", i);
        gpu_watch_add(watch, i % 2 == 0 ? &opencl : &cuda, label, 0, 5);
    }
    ck_assert_uint_eq(gpu_watch_count(watch), GPU_WATCH_DEVICES_MAX);
    ck_assert_str_eq(gpu_watch_label(watch, 0), "card1");
    ck_assert_str_eq(gpu_watch_label(watch, GPU_WATCH_DEVICES_MAX / 2), "card0");
    ck_assert_str_eq(gpu_watch_label(watch, GPU_WATCH_DEVICES_MAX - 1), "card14");
}
END_TEST

/* There is no program, so the agent goes on without figures, and tries again later. */
START_TEST(a_watcher_that_cannot_be_started_is_told_and_tried_again)
{
    gpu_watch_add(watch, &cuda, "card", 0, 5);
    ck_assert(gpu_watch_turn(watch, 10));
    ck_assert_msg(strstr(gpu_watch_problem(watch), "/nonexistent") != NULL ||
                      strstr(gpu_watch_problem(watch), "bwrap") != NULL,
                  "%s", gpu_watch_problem(watch));
    ck_assert_int_eq(gpu_watch_order(watch, 0), IDLE_HOLD);
    ck_assert(!gpu_watch_turn(watch, 11));
    json_t *list = gpu_watch_json(watch, 11);
    ck_assert_str_eq(said(list, 0, "why"), gpu_watch_problem(watch));
    json_decref(list);
}
END_TEST

/* Nothing answers, so time alone takes the work away, and no step waits for the next start. */
START_TEST(the_steps_are_made_while_nothing_answers)
{
    gpu_watch_add(watch, &cuda, "card", 0, 5);
    ck_assert(gpu_watch_turn(watch, 10));
    ck_assert_int_eq(gpu_watch_order(watch, 0), IDLE_HOLD);
    ck_assert(gpu_watch_due_ns(watch) == 5 + terms.give_back_ns);
    ck_assert(!gpu_watch_turn(watch, 5 + terms.give_back_ns - 1));
    ck_assert(gpu_watch_turn(watch, 5 + terms.give_back_ns));
    ck_assert_int_eq(gpu_watch_order(watch, 0), IDLE_SAVE);
    const int64_t saved_ns = 5 + terms.give_back_ns + IDLE_SAVE_NS;
    ck_assert(gpu_watch_due_ns(watch) == saved_ns);
    ck_assert(gpu_watch_turn(watch, saved_ns));
    ck_assert_int_eq(gpu_watch_order(watch, 0), IDLE_RETURN);
    ck_assert(gpu_watch_due_ns(watch) == 10 + GPU_WATCH_RETRY_NS);
}
END_TEST

SUITE("the watch over GPUs", setup, teardown,
      TEST(a_device_of_another_interface_has_no_figures_and_is_always_offered),
      TEST(a_cuda_device_is_withheld_until_it_was_read),
      TEST(more_devices_than_there_is_room_for_are_left_out),
      TEST(a_watcher_that_cannot_be_started_is_told_and_tried_again),
      TEST(the_steps_are_made_while_nothing_answers))
