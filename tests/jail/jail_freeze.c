/* The tests stop programs, as the agent does while the owner uses the machine. Stopped programs use
 * no processor, lose no time of their limit, hear a notice, and cannot go on by themselves. */
#include "fixture.h"

#include <pthread.h>
#include <time.h>

/* A thread plays the owner, while the test's own thread runs the program. */
struct owner {
    struct fixture *fixture;
    void (*act)(struct fixture *fixture);
};

static void pass_ms(int64_t ms)
{
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    (void)nanosleep(&time, NULL);
}

static void *play(void *context)
{
    const struct owner *owner = context;
    owner->act(owner->fixture);
    return NULL;
}

/* Runs a shell's script, whose word PROBE is the probe, while the owner acts. */
static void run(struct fixture *fixture, const char *script, uint64_t wall_ns,
                void (*act)(struct fixture *fixture), struct jail_reply *ret_reply)
{
    char whole[512];
    struct stat status;
    pthread_t thread;
    struct owner owner = {.fixture = fixture, .act = act};
    (void)snprintf(whole, sizeof whole, "PROBE=./%s; %s", fixture->mark, script);
    ck_assert_int_eq(fstat(fixture->probe, &status), 0);
    const struct jail_input input = {.name = fixture->mark,
                                     .fd = fixture->probe,
                                     .size = (uint64_t)status.st_size,
                                     .executable = true};
    const struct jail_request request = {.argv = (const char *const[]){"sh", "-c", whole, NULL},
                                         .inputs = &input,
                                         .input_count = 1,
                                         .stdin_fd = -1,
                                         .checkpoint = "state",
                                         .wall_ns = wall_ns};
    ck_assert_int_eq(pthread_create(&thread, NULL, play, &owner), 0);
    jail_run(fixture->jail, &request, ret_reply);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
}

/* Returns true when the probe is there, in the state given. */
static bool probe_is(const struct fixture *fixture, char state)
{
    bool found = false;
    DIR *proc = opendir("/proc");
    for (struct dirent *entry = NULL; proc != NULL && (entry = readdir(proc)) != NULL;) {
        char path[300];
        char text[512] = "";
        char name[32];
        (void)snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
        (void)snprintf(name, sizeof name, "(%s) %c", fixture->mark, state);
        const int file = open(path, O_RDONLY | O_CLOEXEC);
        found = found ||
                (file >= 0 && read(file, text, sizeof text - 1) > 0 && strstr(text, name) != NULL);
        if (file >= 0) {
            (void)close(file);
        }
    }
    if (proc != NULL) {
        (void)closedir(proc);
    }
    return found;
}

static void await_probe(const struct fixture *fixture, char state)
{
    while (!probe_is(fixture, state)) {
        pass_ms(5);
    }
}

static void thaw_later(struct fixture *fixture)
{
    pass_ms(4500);
    jail_freeze(fixture->jail, false);
}

START_TEST(a_program_that_begins_frozen_stands_still_and_is_not_late)
{
    struct fixture fixture = fixture_open(_i);
    static struct jail_reply reply;
    jail_freeze(fixture.jail, true);
    run(&fixture, "echo done; sleep 0.1; echo again", 4 * SECOND, thaw_later, &reply);
    ck_assert_msg(reply.frozen_ns >= 4000000000, "%lld", (long long)reply.frozen_ns);
    ck_assert_msg(reply.busy_ns < 4000000000, "%lld", (long long)reply.busy_ns);
    fixture_ends(reply, OUTCOME_OK);
    fixture_close(&fixture);
}
END_TEST

static void stand_longer_than_the_limit(struct fixture *fixture)
{
    await_probe(fixture, 'R');
    jail_freeze(fixture->jail, true);
    await_probe(fixture, 'T'); /* test_idle.sh measures how soon */
    pass_ms(4500);
    ck_assert(probe_is(fixture, 'T'));
    jail_freeze(fixture->jail, false);
}

START_TEST(frozen_time_counts_against_no_limit_and_as_no_work)
{
    struct fixture fixture = fixture_open(_i);
    static struct jail_reply reply;
    run(&fixture, "exec $PROBE spin", 4 * SECOND, stand_longer_than_the_limit, &reply);
    ck_assert_msg(strstr(reply.detail, "its limit is 4.000 s") != NULL, "%s", reply.detail);
    ck_assert_msg(reply.frozen_ns >= 4000000000, "%lld", (long long)reply.frozen_ns);
    ck_assert_msg(reply.busy_ns >= 3900000000 && reply.cpu_ns <= 4300000000, "%lld %lld",
                  (long long)reply.busy_ns, (long long)reply.cpu_ns);
    fixture_ends(reply, OUTCOME_TIME_LIMIT);
    fixture_close(&fixture);
}
END_TEST

static void freeze_and_tell(struct fixture *fixture)
{
    await_probe(fixture, 'R');
    jail_freeze(fixture->jail, true);
    await_probe(fixture, 'T');
    ck_assert(jail_notice(fixture->jail));
}

START_TEST(a_frozen_program_that_is_told_to_end_saves_its_state)
{
    struct fixture fixture = fixture_open(_i);
    static struct jail_reply reply;
    run(&fixture, "trap 'echo here >state/n; exit 85' TERM; $PROBE spin & while :; do wait; done",
        300 * SECOND, freeze_and_tell, &reply);
    ck_assert_int_eq(reply.exit_code, 85);
    ck_assert_uint_eq(reply.saved_count, 1);
    fixture_ends(reply, OUTCOME_PROGRAM_FAILED);
    fixture_close(&fixture);
}
END_TEST

static void freeze_and_cancel(struct fixture *fixture)
{
    await_probe(fixture, 'R');
    jail_freeze(fixture->jail, true);
    await_probe(fixture, 'T');
    jail_cancel(fixture->jail, OUTCOME_CANCELLED);
}

static void do_nothing(struct fixture *fixture)
{
    (void)fixture;
}

START_TEST(a_frozen_program_is_cancelled_and_the_jail_serves_on)
{
    struct fixture fixture = fixture_open(_i);
    static struct jail_reply reply;
    run(&fixture, "exec $PROBE spin", 300 * SECOND, freeze_and_cancel, &reply);
    fixture_ends(reply, OUTCOME_CANCELLED);
    jail_freeze(fixture.jail, false);
    run(&fixture, "true", 10 * SECOND, do_nothing, &reply);
    fixture_ends(reply, OUTCOME_OK);
    fixture_close(&fixture);
}
END_TEST

/* The worker stops them again and again, or ends them when that does not help within a second. */
static void freeze_and_look(struct fixture *fixture)
{
    await_probe(fixture, 'R');
    jail_freeze(fixture->jail, true);
    while (fixture_survivors(fixture) > 0 && !probe_is(fixture, 'T')) {
        pass_ms(5);
    }
    pass_ms(1500);
    ck_assert(fixture_survivors(fixture) == 0 || probe_is(fixture, 'T'));
    jail_cancel(fixture->jail, OUTCOME_CANCELLED);
}

/* Each process continues all others as fast as it can. */
START_TEST(programs_that_continue_one_another_do_not_go_on)
{
    struct fixture fixture = fixture_open(_i);
    static struct jail_reply reply;
    run(&fixture,
        "for n in 1 2 3 4; do while :; do kill -CONT -1; done & done; $PROBE spin & "
        "while :; do kill -CONT -1; done",
        300 * SECOND, freeze_and_look, &reply);
    fixture_ends(reply, OUTCOME_CANCELLED);
    fixture_close(&fixture);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {a_program_that_begins_frozen_stands_still_and_is_not_late,
                                  frozen_time_counts_against_no_limit_and_as_no_work,
                                  a_frozen_program_that_is_told_to_end_saves_its_state,
                                  a_frozen_program_is_cancelled_and_the_jail_serves_on,
                                  programs_that_continue_one_another_do_not_go_on};
    return fixture_main("freeze", tests, sizeof tests / sizeof tests[0]);
}
