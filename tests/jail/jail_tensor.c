/* bourse-tensor in a real jail: one process for all subtasks of a jail, confined and bounded like a
 * program, and gone when it must be. Files that are mapped are in jail_tensor_mapped.c. */
#include "fixture.h"
#include "formats/npy.h"
#include "numeric/seeded_check.h"
#include "provider/executors/tensor.h"
#include "provider/jail/jail_internal.h"
#include "tensor_jail.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

static struct file text_file(const char *text)
{
    struct file file = {.fd = memfd_create("text", MFD_CLOEXEC), .size = strlen(text)};
    ck_assert_int_eq(write(file.fd, text, strlen(text)), (ssize_t)strlen(text));
    return file;
}

static void await_state(long pid, char wanted)
{
    char state = ' ';
    for (int tries = 0; tries < 120000 && state != wanted; tries++) {
        long parent;
        long threads;
        ck_assert(read_status(pid, &state, &parent, &threads));
        (void)usleep(500);
    }
    ck_assert_int_eq(state, wanted);
}

/* ---------------------------------------------------------------- tests */

START_TEST(one_process_serves_subtask_after_subtask)
{
    struct fixture fixture = open_with_tensor(_i);
    multiply_small(&fixture, 1);
    long pid = find_program();
    ck_assert_int_ne(pid, 0);
    multiply_small(&fixture, -3); /* the same names: the folder was emptied */
    multiply_small(&fixture, 0.5F);
    ck_assert_int_eq(find_program(), pid);

    struct job job = {.jail = fixture.jail,
                      .inputs = {matrix(5, 5, 1), matrix(5, 5, 1), matrix(5, 5, 5)},
                      .arguments = check};
    (void)perform(&job);
    char text[512];
    ck_assert_int_eq(job.reply.outcome, OUTCOME_OK);
    ck_assert_ptr_nonnull(strstr(fixture_output(&job.reply.standard_output, text, sizeof text),
                                 "\"verdict\":\"accept\""));
    jail_reply_fini(&job.reply);
    close_inputs(&job);
    fixture_close(&fixture);
    ck_assert_int_eq(find_program(), 0); /* gone with its jail */
}
END_TEST

START_TEST(what_is_wrong_with_the_operands_is_said)
{
    struct fixture fixture = open_with_tensor(_i);
    char text[512];
    struct job job = {
        .jail = fixture.jail, .inputs = {matrix(3, 4, 1), matrix(3, 4, 1)}, .arguments = product};
    (void)perform(&job);
    ck_assert_int_eq(job.reply.outcome, OUTCOME_PROGRAM_FAILED);
    ck_assert_int_eq(job.reply.exit_code, 1);
    ck_assert_msg(strstr(job.reply.detail, "a.npy is 3 x 4 and b.npy 3 x 4") != NULL, "%s",
                  job.reply.detail);
    ck_assert_ptr_nonnull(
        strstr(fixture_output(&job.reply.standard_error, text, sizeof text), "do not fit"));
    jail_reply_fini(&job.reply);
    close_inputs(&job);

    struct job other = {.jail = fixture.jail,
                        .inputs = {text_file("1 2 3\n"), matrix(3, 4, 1)},
                        .arguments = product};
    (void)perform(&other);
    ck_assert_int_eq(other.reply.outcome, OUTCOME_PROGRAM_FAILED);
    ck_assert_str_eq(other.reply.detail, "a.npy: the file is no .npy file; np.save writes one");
    ck_assert_int_eq(other.reply.standard_output.fd, -1);
    jail_reply_fini(&other.reply);
    close_inputs(&other);
    multiply_small(&fixture, 1);
    fixture_close(&fixture);
}
END_TEST

START_TEST(a_crash_fails_the_subtask_and_the_next_one_runs)
{
    struct fixture fixture = open_with_tensor(_i);
    multiply_small(&fixture, 1);
    long first = find_program();
    ck_assert_int_eq(kill((pid_t)first, SIGKILL), 0); /* between two subtasks: nobody notices */
    await_state(first, 'Z');
    multiply_small(&fixture, 2);
    long second = find_program();
    ck_assert(second != 0 && second != first);

    pthread_t thread;
    struct job job = long_check(&fixture);
    ck_assert_int_eq(pthread_create(&thread, NULL, perform, &job), 0);
    await_state(second, 'R');
    ck_assert_int_eq(kill((pid_t)second, SIGSEGV), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_msg(job.reply.outcome == OUTCOME_SIGNALLED, "%d: %s", job.reply.outcome,
                  job.reply.detail);
    ck_assert_int_eq(job.reply.signal, SIGSEGV);
    ck_assert(!job.reply.jail_ended);
    jail_reply_fini(&job.reply);
    close_inputs(&job);
    multiply_small(&fixture, 3);
    ck_assert_int_ne(find_program(), second);
    fixture_close(&fixture);
}
END_TEST

START_TEST(limits_hold_for_each_subtask)
{
    struct fixture fixture = open_with_tensor(_i);
    struct job late = long_check(&fixture);
    late.bounds.wall_ns = SECOND / 20;
    ends_as(&late, OUTCOME_TIME_LIMIT, " s; its limit is ");
    multiply_small(&fixture, 1);

    struct job busy = long_check(&fixture);
    busy.bounds.cpu_ns = SECOND / 10;
    ends_as(&busy, OUTCOME_CPU_LIMIT, " s of CPU time; its limit is ");
    multiply_small(&fixture, 1);

    /* The processor time of one subtask is not the next one's, though the process is. */
    struct job spent = long_check(&fixture);
    (void)perform(&spent);
    ck_assert_int_eq(spent.reply.outcome, OUTCOME_OK);
    int64_t used_ns = spent.reply.cpu_ns;
    ck_assert_int_gt(used_ns, 100000000);
    jail_reply_fini(&spent.reply);
    close_inputs(&spent);
    struct job small = {.jail = fixture.jail,
                        .inputs = {matrix(2, 2, 1), matrix(2, 2, 1)},
                        .bounds = {.cpu_ns = (uint64_t)used_ns},
                        .arguments = product};
    (void)perform(&small);
    ck_assert_int_eq(small.reply.outcome, OUTCOME_OK);
    ck_assert_int_lt(small.reply.cpu_ns, used_ns);
    jail_reply_fini(&small.reply);
    close_inputs(&small);

    struct job large = {.jail = fixture.jail,
                        .inputs = {matrix(2000, 1, 1), matrix(1, 5000, 1)},
                        .arguments = product}; /* 40 MB beside 32 MiB */
    ends_as(&large, OUTCOME_DISK_LIMIT, "the result of 40000128 bytes does not fit");
    multiply_small(&fixture, 1);

    struct job wide = {.jail = fixture.jail,
                       .inputs = {matrix(1, 1, 1), matrix(1, 1700000, 1), matrix(1, 1700000, 1)},
                       .arguments = check};
    ends_as(&wide, OUTCOME_MEMORY_LIMIT, " of memory, and 96.0 MiB may be used");
    multiply_small(&fixture, 1);
    fixture_close(&fixture);
}
END_TEST

START_TEST(memory_that_the_kernel_counts_is_the_memory_limit)
{
    struct fixture fixture = fixture_open(_i);
    static const char *const alike[] = {"freivalds", "a.npy", "b.npy", "b.npy", SEED, "64", NULL};
    /* The check may allocate its own arrays to the last byte, but the program's memory is too much.
     * Some arrays are not touched, so these have to be smaller than the program's own memory. */
    enum { COLUMNS = 20000, PAGES_BYTES = 65536 };
    uint64_t file_bytes = NPY_MATRIX_BYTES + sizeof(float) * COLUMNS;
    struct jail_limits tight = {.memory_bytes = seeded_check_bytes(1, 1, COLUMNS),
                                .disk_bytes = file_bytes + PAGES_BYTES,
                                .processes = 16,
                                .cpu_milli = 2000};
    reopen(&fixture, fixture.tensor, &tight);
    struct job job = {.jail = fixture.jail,
                      .inputs = {matrix(1, 1, 1), matrix(1, COLUMNS, 1)},
                      .arguments = alike};
    ends_as(&job, OUTCOME_MEMORY_LIMIT, "memory");
    fixture_close(&fixture);
}
END_TEST

START_TEST(a_subtask_is_cancelled_and_the_next_one_runs)
{
    struct fixture fixture = open_with_tensor(_i);
    multiply_small(&fixture, 1);
    long pid = find_program();
    pthread_t thread;
    struct job job = long_check(&fixture);
    ck_assert_int_eq(pthread_create(&thread, NULL, perform, &job), 0);
    await_state(pid, 'R');
    jail_cancel(fixture.jail, OUTCOME_CANCELLED);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(job.reply.outcome, OUTCOME_CANCELLED);
    jail_reply_fini(&job.reply);
    close_inputs(&job);
    multiply_small(&fixture, 2);
    fixture_close(&fixture);
}
END_TEST

START_TEST(threads_are_the_lesser_of_slots_and_processors)
{
    struct fixture fixture = open_with_tensor(_i);
    cpu_set_t cpus;
    ck_assert_int_eq(sched_getaffinity(0, sizeof cpus, &cpus), 0);
    for (uint32_t slots = 1; slots <= 64; slots *= 8) {
        char state;
        long parent;
        long threads;
        reopen(&fixture, fixture.tensor, NULL);
        struct job job = {.jail = fixture.jail,
                          .inputs = {matrix(400, 400, 1), matrix(400, 400, 1)},
                          .bounds = {.tensor_threads = slots},
                          .arguments = product};
        (void)perform(&job);
        ck_assert_msg(job.reply.outcome == OUTCOME_OK, "%s", job.reply.detail);
        expect_value(&job.reply, 400, 400, 400);
        ck_assert(read_status(find_program(), &state, &parent, &threads));
        long most = CPU_COUNT(&cpus);
        ck_assert_int_le(threads, (long)slots < most ? (long)slots : most);
        jail_reply_fini(&job.reply);
        close_inputs(&job);
    }
    fixture_close(&fixture);
}
END_TEST

START_TEST(only_jails_that_have_it_know_the_program)
{
    static const char *const look[] = {"sh", "-c", "test ! -e /.bourse-tensor", NULL};
    struct fixture fixture = fixture_open(_i);
    struct jail_request request = {.argv = look, .stdin_fd = -1};
    struct jail_reply reply;
    jail_run(fixture.jail, &request, &reply);
    fixture_ends(reply, OUTCOME_OK);
    struct job job = {
        .jail = fixture.jail, .inputs = {matrix(2, 2, 1), matrix(2, 2, 1)}, .arguments = product};
    (void)perform(&job);
    ck_assert_int_eq(job.reply.outcome, OUTCOME_PROGRAM_MISSING);
    jail_reply_fini(&job.reply);
    close_inputs(&job);

    /* A program beside it ends it too: nobody is left of one subtask for the next but the resident
     * alone. */
    static const char *const plain[] = {"true", NULL};
    reopen(&fixture, fixture.tensor, NULL);
    multiply_small(&fixture, 1);
    struct jail_request other = {.argv = plain, .stdin_fd = -1};
    jail_run(fixture.jail, &other, &reply);
    fixture_ends(reply, OUTCOME_OK);
    ck_assert_int_eq(find_program(), 0);
    multiply_small(&fixture, 2);
    fixture_close(&fixture);
}
END_TEST

START_TEST(the_probe_runs_the_program_or_says_why_not)
{
    struct fixture fixture = fixture_open(_i);
    struct profile_gemm gemm = {.engine = ""};
    struct problem problem = {""};
    ck_assert_msg(tensor_probe(fixture.launcher, fixture.worker, fixture.tensor, fixture.cgroups,
                               &gemm, &problem),
                  "%s", problem.text);
    ck_assert_int_gt(gemm.mflops, 0);
    ck_assert_int_eq(gemm.mflops, probe_round(gemm.mflops));
    ck_assert_uint_gt(strlen(gemm.engine), 0);
    /* The worker is a program, too, but answers no question on its standard input. */
    ck_assert(!tensor_probe(fixture.launcher, fixture.worker, fixture.worker, fixture.cgroups,
                            &gemm, &problem));
    ck_assert_uint_gt(strlen(problem.text), 0);
    fixture_close(&fixture);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        one_process_serves_subtask_after_subtask,
        what_is_wrong_with_the_operands_is_said,
        a_crash_fails_the_subtask_and_the_next_one_runs,
        limits_hold_for_each_subtask,
        memory_that_the_kernel_counts_is_the_memory_limit,
        a_subtask_is_cancelled_and_the_next_one_runs,
        threads_are_the_lesser_of_slots_and_processors,
        only_jails_that_have_it_know_the_program,
        the_probe_runs_the_program_or_says_why_not,
    };
    return fixture_main("jail_tensor", tests, sizeof tests / sizeof *tests);
}
