/* The tests say what the agent may expect of a jail: files in and out, streams, causes of failure,
 * cancelling. */
#include "fixture.h"

#include "base/sha256.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

static struct jail_reply shell(struct fixture *fixture, struct jail_request request,
                               const char *script)
{
    const char *const argv[] = {"sh", "-c", script, NULL};
    request.argv = argv;
    request.wall_ns = request.wall_ns != 0 ? request.wall_ns : 300 * SECOND;
    struct jail_reply reply;
    jail_run(fixture->jail, &request, &reply);
    return reply;
}

static int file_with(const void *bytes, size_t length)
{
    int file = memfd_create("input", MFD_CLOEXEC);
    ck_assert_int_eq(write(file, bytes, length), (ssize_t)length);
    return file;
}

START_TEST(files_go_in_and_come_out)
{
    struct fixture fixture = fixture_open(_i);
    static const char *const outputs[] = {"out/sum", "copy"};
    int file = file_with("hello\n", 6);
    struct jail_input inputs[] = {{.name = "a/b/one", .fd = file, .size = 6},
                                  {.name = "two", .fd = file, .size = 3}};
    struct jail_request request = {.inputs = inputs,
                                   .input_count = 2,
                                   .stdin_bytes = "stdin",
                                   .stdin_size = 5,
                                   .outputs = outputs,
                                   .output_count = 2};
    struct jail_reply reply = shell(&fixture, request,
                                    "cat a/b/one two - > out/sum && cp two copy && pwd && "
                                    "echo bad >&2 && test ! -w two");
    char text[256];
    ck_assert_msg(reply.outcome == OUTCOME_OK, "%d %s %s", reply.outcome, reply.detail,
                  fixture_output(&reply.standard_error, text, sizeof text));
    ck_assert_uint_eq(reply.output_count, 2);
    ck_assert_uint_eq(reply.outputs[0].size, 14);
    ck_assert_str_eq(fixture_output(&reply.outputs[0], text, sizeof text), "hello\nhelstdin");
    ck_assert_str_eq(fixture_output(&reply.outputs[1], text, sizeof text), "hel");
    ck_assert_str_eq(fixture_output(&reply.standard_output, text, sizeof text), "/work\n");
    ck_assert_uint_eq(reply.standard_output.size, 6);
    ck_assert_str_eq(fixture_output(&reply.standard_error, text, sizeof text), "bad\n");
    ck_assert_int_gt(reply.busy_ns, 0);
    ck_assert_int_gt(reply.cpu_ns, 0);
    ck_assert_int_gt(reply.peak_memory_bytes, 0);
    jail_reply_fini(&reply);

    reply = shell(&fixture, (struct jail_request){.stdin_fd = file, .stdin_size = 6}, "cat; ls -A");
    ck_assert_str_eq(fixture_output(&reply.standard_output, text, sizeof text), "hello\n");
    fixture_ends(reply, OUTCOME_OK);
    (void)close(file);
    fixture_close(&fixture);
}
END_TEST

/* An agent that a script starts in the background ignores SIGINT and SIGQUIT, for example. */
START_TEST(signals_are_as_if_nobody_had_changed_them)
{
    for (int number = 1; number < SIGRTMAX; number++) {
        (void)signal(number, SIG_IGN); /* two of them cannot be ignored, and neither matters */
    }
    (void)signal(SIGCHLD, SIG_DFL); /* the test framework waits for its children */
    struct fixture fixture = fixture_open(_i);
    struct jail_reply reply =
        shell(&fixture, (struct jail_request){.stdin_fd = -1},
              "while read -r name value; do case $name in SigBlk:|SigIgn:) echo $value;; esac; "
              "done </proc/self/status");
    char text[64];
    ck_assert_str_eq(fixture_output(&reply.standard_output, text, sizeof text),
                     "0000000000000000\n0000000000000000\n");
    fixture_ends(reply, OUTCOME_OK);
    fixture_close(&fixture);
}
END_TEST

START_TEST(hundreds_of_inputs_fit)
{
    struct fixture fixture = fixture_open(_i);
    static struct jail_input inputs[LIMIT_INPUTS];
    static char names[LIMIT_INPUTS][16];
    int file = file_with("x", 1);
    for (size_t i = 0; i < LIMIT_INPUTS; i++) {
        (void)snprintf(names[i], sizeof names[i], "d%zu/f%zu", i % 7, i);
        inputs[i] = (struct jail_input){.name = names[i], .fd = file, .size = 1};
    }
    struct jail_request request = {
        .inputs = inputs, .input_count = LIMIT_INPUTS, .stdin_bytes = "last", .stdin_size = 4};
    struct jail_reply reply = shell(&fixture, request, "cat d*/f* - | wc -c");
    char text[64];
    ck_assert_str_eq(fixture_output(&reply.standard_output, text, sizeof text), "260\n");
    fixture_ends(reply, OUTCOME_OK);
    (void)close(file);
    fixture_close(&fixture);
}
END_TEST

START_TEST(long_arguments_and_variables_fit)
{
    struct fixture fixture = fixture_open(_i);
    static char argument[LIMIT_ARGUMENT_BYTES];
    memset(argument, 'a', sizeof argument - 1);
    static char variable[LIMIT_ARGUMENT_BYTES] = "LONG=";
    memset(variable + 5, 'b', sizeof variable - 6);
    const char *const env[] = {variable, NULL};
    const char *const argv[] = {"sh",     "-c", "echo ${#1} ${#2} ${#LONG}", "x", argument,
                                argument, NULL};
    struct jail_request request = {.argv = argv, .env = env};
    struct jail_reply reply;
    jail_run(fixture.jail, &request, &reply);
    char text[64];
    ck_assert_str_eq(fixture_output(&reply.standard_output, text, sizeof text),
                     "32767 32767 32762\n");
    fixture_ends(reply, OUTCOME_OK);

    static const char *many[LIMIT_ARGUMENTS];
    for (size_t i = 0; i + 1 < LIMIT_ARGUMENTS; i++) {
        many[i] = i == 0 ? "echo" : argument;
    }
    request.argv = many; /* 32 MiB: more than the system passes to any program */
    jail_run(fixture.jail, &request, &reply);
    fixture_ends(reply, OUTCOME_REFUSED);
    ck_assert(jail_noop(fixture.jail));
    fixture_close(&fixture);
}
END_TEST

START_TEST(noops_are_answered_together_and_leave_the_jail_as_it_was)
{
    struct fixture fixture = fixture_open(_i);
    uint32_t subtasks[JAIL_NOOPS_MAX];
    for (uint32_t i = 0; i < JAIL_NOOPS_MAX; i++) {
        subtasks[i] = UINT32_MAX - 7 * i;
    }
    ck_assert(jail_noops(fixture.jail, subtasks, 1));
    ck_assert(jail_noops(fixture.jail, subtasks, JAIL_NOOPS_MAX));
    fixture_ends(shell(&fixture, (struct jail_request){.stdin_fd = -1}, "true"), OUTCOME_OK);
    launcher_stop(&fixture.launcher); /* the jail dies with it, in a moment */
    while (jail_noops(fixture.jail, subtasks, 2)) {
    }
    ck_assert(!jail_noops(fixture.jail, subtasks, 1));
    fixture_close(&fixture);
}
END_TEST

START_TEST(each_failure_has_its_cause)
{
    struct fixture fixture = fixture_open(_i);
    struct jail_request none = {.stdin_fd = -1};
    struct jail_reply reply = shell(&fixture, none, "exit 3");
    ck_assert_int_eq(reply.exit_code, 3);
    fixture_ends(reply, OUTCOME_PROGRAM_FAILED);
    reply = shell(&fixture, none, "kill -SEGV $$");
    ck_assert_int_eq(reply.signal, SIGSEGV);
    fixture_ends(reply, OUTCOME_SIGNALLED);

    static const char *const missing[] = {"no-such-program", NULL};
    static const char *const folder[] = {"/usr", NULL};
    static const char *const empty[] = {NULL};
    static char path[4200]; /* longer than the kernel takes */
    memset(path, '/', sizeof path - 1);
    static const char *const lengthy[] = {path, NULL};
    const char *const *programs[] = {missing, folder, empty, lengthy};
    for (size_t i = 0; i < 4; i++) {
        none.argv = programs[i];
        jail_run(fixture.jail, &none, &reply);
        fixture_ends(reply, OUTCOME_PROGRAM_MISSING);
    }
    int file = file_with("ab", 2);
    struct jail_input input = {.name = "in", .fd = file, .size = 3};
    struct jail_request with_input = {.inputs = &input, .input_count = 1};
    fixture_ends(shell(&fixture, with_input, "true"),
                 OUTCOME_INPUT_MISSING); /* shorter than it says */
    input.size = 64 * MIB;
    fixture_ends(shell(&fixture, with_input, "true"), OUTCOME_DISK_LIMIT);
    input = (struct jail_input){.name = "../in", .fd = file, .size = 2};
    fixture_ends(shell(&fixture, with_input, "true"), OUTCOME_REFUSED);
    struct jail_input twice[] = {{.name = "a", .fd = file, .size = 2},
                                 {.name = "a/b", .fd = file, .size = 2}};
    struct jail_request collision = {.inputs = twice, .input_count = 2};
    fixture_ends(shell(&fixture, collision, "true"), OUTCOME_PROGRAM_FAILED);
    fixture_ends(shell(&fixture, (struct jail_request){.stdin_fd = -1}, "test -z \"$(ls -A)\""),
                 OUTCOME_OK);
    (void)close(file);
    fixture_close(&fixture);
}
END_TEST

START_TEST(what_is_placed_has_the_hash_that_was_said)
{
    enum { LONG = 3 << 20 };
    struct fixture fixture = fixture_open(_i);
    uint8_t *bytes = malloc(LONG);
    memset(bytes, 'x', LONG);
    struct hash32 hash = sha256_of(bytes, LONG);
    int file = file_with((const char *)bytes, LONG);
    struct jail_input input = {.name = "in", .fd = file, .size = LONG, .hash = &hash};
    struct jail_request request = {.inputs = &input, .input_count = 1};
    fixture_ends(shell(&fixture, request, "test $(tr -d x < in | wc -c) = 0 && test ! -w in"),
                 OUTCOME_OK);
    ck_assert_int_eq(pwrite(file, "y", 1, LONG - 1), 1); /* its owner changed it since */
    struct jail_reply reply = shell(&fixture, request, "true");
    ck_assert_str_eq(reply.detail, "input in: the broker's file does not have its hash");
    fixture_ends(reply, OUTCOME_INPUT_MISSING);
    ck_assert_int_eq(ftruncate(file, LONG - 1), 0);
    reply = shell(&fixture, request, "true");
    ck_assert_str_eq(reply.detail, "input in: is shorter than it was said to be");
    fixture_ends(reply, OUTCOME_INPUT_MISSING);
    fixture_ends(shell(&fixture, (struct jail_request){.stdin_fd = -1}, "test -z \"$(ls -A)\""),
                 OUTCOME_OK);
    (void)close(file);
    free(bytes);
    fixture_close(&fixture);
}
END_TEST

START_TEST(what_is_printed_is_kept_up_to_a_cap)
{
    struct fixture fixture = fixture_open(_i);
    struct jail_request request = {.stdin_fd = -1, .capture_bytes = 1000};
    struct jail_reply reply = shell(&fixture, request, "head -c 5000000 /dev/zero; echo short >&2");
    ck_assert_uint_eq(reply.standard_output.size, 1000);
    ck_assert(reply.stdout_cut);
    ck_assert_uint_eq(reply.standard_error.size, 6);
    ck_assert(!reply.stderr_cut);
    fixture_ends(reply, OUTCOME_OK);
    request.capture_bytes = 8 * MIB;
    reply = shell(&fixture, request, "head -c 5000000 /dev/zero");
    ck_assert_uint_eq(reply.standard_output.size, 5000000);
    ck_assert(!reply.stdout_cut);
    fixture_ends(reply, OUTCOME_OK);
    reply = shell(&fixture, request, "true");
    ck_assert_int_eq(reply.standard_output.fd, -1);
    fixture_ends(reply, OUTCOME_OK);
    fixture_close(&fixture);
}
END_TEST

struct canceller {
    struct jail *jail;
    enum result_outcome outcome;
};

/* Before the run begins a cancel means nothing, so it is repeated until the run is over. */
static void *cancel_again(void *context)
{
    struct canceller *canceller = context;
    for (;;) {
        (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
        jail_cancel(canceller->jail, canceller->outcome);
        (void)pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
        pthread_testcancel();
        (void)sched_yield();
    }
    return NULL;
}

START_TEST(a_run_is_cancelled_from_another_thread)
{
    struct fixture fixture = fixture_open(_i);
    static const enum result_outcome outcomes[] = {OUTCOME_CANCELLED, OUTCOME_TERM_OVER};
    for (size_t i = 0; i < 2; i++) {
        struct canceller canceller = {.jail = fixture.jail, .outcome = outcomes[i]};
        pthread_t thread;
        ck_assert_int_eq(pthread_create(&thread, NULL, cancel_again, &canceller), 0);
        struct jail_reply reply =
            shell(&fixture, (struct jail_request){.stdin_fd = -1}, "sleep 1000");
        ck_assert(!reply.jail_ended);
        fixture_ends(reply, outcomes[i]);
        ck_assert_int_eq(pthread_cancel(thread), 0);
        ck_assert_int_eq(pthread_join(thread, NULL), 0);
    }
    jail_cancel(fixture.jail, OUTCOME_CANCELLED); /* nothing runs: nothing happens */
    fixture_ends(shell(&fixture, (struct jail_request){.stdin_fd = -1}, "true"), OUTCOME_OK);
    fixture_close(&fixture);
}
END_TEST

START_TEST(a_jail_that_dies_is_told_apart)
{
    struct fixture fixture = fixture_open(_i);
    launcher_stop(&fixture.launcher); /* everything it started dies with it */
    struct jail_reply reply = shell(&fixture, (struct jail_request){.stdin_fd = -1}, "sleep 1000");
    ck_assert(reply.jail_ended);
    fixture_ends(reply, OUTCOME_JAIL_FAILED);
    ck_assert(!jail_noop(fixture.jail));
    fixture_close(&fixture);
}
END_TEST

/* The parent of the probe, as the host numbers it: process 1 of the jail. 0 until the probe
 * runs. */
static pid_t worker_of(const struct fixture *fixture)
{
    pid_t worker = 0;
    DIR *proc = opendir("/proc");
    for (struct dirent *entry = NULL; proc != NULL && (entry = readdir(proc)) != NULL;) {
        char path[300];
        char name[32];
        int parent = 0;
        (void)snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
        FILE *file = fopen(path, "re");
        if (file != NULL && fscanf(file, "%*d (%31[^)]) %*c %d", name, &parent) == 2 &&
            strcmp(name, fixture->mark) == 0) {
            worker = parent;
        }
        if (file != NULL) {
            (void)fclose(file);
        }
    }
    (void)closedir(proc);
    return worker;
}

static void *stop_worker(void *context)
{
    pid_t worker = 0;
    while (worker == 0) {
        worker = worker_of(context);
        (void)sched_yield();
    }
    ck_assert_int_eq(kill(worker, SIGSTOP), 0);
    return NULL;
}

/* Nothing in the jail enforces a limit any more: the agent does, some seconds later. */
START_TEST(a_jail_that_hangs_is_killed)
{
    struct fixture fixture = fixture_open(_i);
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, stop_worker, &fixture), 0);
    struct jail_request request = {.stdin_fd = -1, .wall_ns = 5 * SECOND};
    struct jail_reply reply = fixture_run(&fixture, request, (const char *const[]){"spin", NULL});
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert(reply.jail_ended);
    fixture_ends(reply, OUTCOME_TIME_LIMIT);
    fixture_close(&fixture);
}
END_TEST

START_TEST(a_cpu_set_holds)
{
    struct fixture fixture = fixture_open(_i);
    struct problem problem;
    struct jail_spec spec = fixture_spec(&fixture);
    cpu_set_t all;
    cpu_set_t one;
    ck_assert_int_eq(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++) {
        if (CPU_ISSET(i, &all)) {
            CPU_SET(i, &one);
        }
    }
    spec.name = "lane-1";
    spec.cpus = &one;
    jail_close(&fixture.jail);
    ck_assert_msg(jail_open(fixture.launcher, &spec, &fixture.jail, &problem), "%s", problem.text);
    struct jail_reply reply = shell(&fixture, (struct jail_request){.stdin_fd = -1},
                                    "nproc; taskset -p ffff $$ >/dev/null 2>&1 && exit 9; nproc");
    char text[64];
    ck_assert_str_eq(fixture_output(&reply.standard_output, text, sizeof text), "1\n1\n");
    fixture_ends(reply, OUTCOME_OK);
    fixture_close(&fixture);
}
END_TEST

START_TEST(a_jail_is_refused_to_root)
{
    if (getuid() != 0) {
        return;
    }
    struct jail *jail = NULL;
    struct problem problem;
    struct jail_spec spec = {.worker_path = "/nowhere", .name = "x"};
    ck_assert(!jail_open(NULL, &spec, &jail, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "root"));
}
END_TEST

START_TEST(a_jail_that_cannot_start_says_why)
{
    struct fixture fixture = fixture_open(_i);
    struct jail *jail = NULL;
    struct problem problem;
    struct jail_spec spec = fixture_spec(&fixture);
    spec.name = "lane-1";
    spec.worker_path = "/nowhere/worker";
    ck_assert(!jail_open(fixture.launcher, &spec, &jail, &problem));
    ck_assert_msg(strstr(problem.text, "/nowhere/worker") != NULL, "%s", problem.text);
    fixture_close(&fixture);
}
END_TEST

START_TEST(the_probe_of_the_host_finds_level_one)
{
    struct fixture fixture = fixture_open(_i);
    struct isolation isolation;
    isolation_probe(fixture.launcher, fixture.worker, fixture.cgroups, &isolation);
    ck_assert_msg(isolation.level == 1, "%s", isolation.refusal);
    ck_assert(isolation.memory_enforced ==
              (fixture.cgroups != NULL && cgroups_memory(fixture.cgroups)));
    ck_assert(isolation.memory_enforced || isolation.warning_count > 0);
    isolation_probe(fixture.launcher, "/nowhere/worker", NULL, &isolation);
    ck_assert_int_eq(isolation.level, 0);
    ck_assert_uint_gt(strlen(isolation.refusal), 0);
    fixture_close(&fixture);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        files_go_in_and_come_out,
        what_is_placed_has_the_hash_that_was_said,
        signals_are_as_if_nobody_had_changed_them,
        hundreds_of_inputs_fit,
        long_arguments_and_variables_fit,
        noops_are_answered_together_and_leave_the_jail_as_it_was,
        each_failure_has_its_cause,
        what_is_printed_is_kept_up_to_a_cap,
        a_run_is_cancelled_from_another_thread,
        a_cpu_set_holds,
        a_jail_that_hangs_is_killed,
        a_jail_that_dies_is_told_apart,
        a_jail_is_refused_to_root,
        a_jail_that_cannot_start_says_why,
        the_probe_of_the_host_finds_level_one,
    };
    return fixture_main("jail_run", tests, sizeof tests / sizeof *tests);
}
