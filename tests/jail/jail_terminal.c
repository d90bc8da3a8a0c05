/* The tests run programs with a terminal. The terminal controls the program's session, has a name
 * only inside the jail, and ends with the program. No byte goes to another terminal. */
#include "fixture.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>

enum { PRINTED_BYTES = 8192 };

/* The owner reads and types at the agent's end of the terminal. A thread plays the owner, while the
 * test's own thread runs the program. */
struct owner {
    struct fixture *fixture;
    int ends[2];        /* the pipe by which the owner gets the terminal's master */
    const char *awaits; /* the owner waits for this text, then types or hangs up */
    const char *types;  /* NULL: hangs up */
    char printed[PRINTED_BYTES];
    size_t count;
    int error; /* errno of the last read */
};

static void take(void *context, int master)
{
    const struct owner *owner = context;
    ck_assert_int_eq(write(owner->ends[1], &master, sizeof master), (ssize_t)sizeof master);
}

static void *play(void *context)
{
    struct owner *owner = context;
    int master = -1;
    bool has_acted = owner->awaits == NULL;
    if (read(owner->ends[0], &master, sizeof master) != (ssize_t)sizeof master) {
        return NULL;
    }
    for (;;) {
        struct pollfd one = {.fd = master, .events = POLLIN};
        (void)poll(&one, 1, 1000);
        const ssize_t got =
            read(master, owner->printed + owner->count, PRINTED_BYTES - 1 - owner->count);
        owner->error = errno;
        if (got <= 0 && errno != EAGAIN) {
            break;
        }
        owner->count += got > 0 ? (size_t)got : 0;
        owner->printed[owner->count] = '\0';
        if (!has_acted && strstr(owner->printed, owner->awaits) != NULL) {
            has_acted = true;
            if (owner->types == NULL) {
                (void)jail_hang_up(owner->fixture->jail);
            } else if (write(master, owner->types, strlen(owner->types)) < 0) {
                break;
            }
        }
    }
    (void)close(master);
    return NULL;
}

/* Runs the script on a terminal of 91 columns and 33 rows. */
static void run(struct fixture *fixture, bool is_plain, struct owner *owner,
                struct jail_request request, struct jail_reply *ret_reply)
{
    pthread_t thread;
    const struct jail_terminal terminal = {
        .columns = 91, .rows = 33, .is_plain = is_plain, .take = take, .context = owner};
    owner->fixture = fixture;
    ck_assert_int_eq(pipe2(owner->ends, O_CLOEXEC), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, play, owner), 0);
    request.terminal = &terminal;
    request.stdin_fd = -1;
    request.wall_ns = 300 * SECOND;
    jail_run(fixture->jail, &request, ret_reply);
    (void)close(owner->ends[1]); /* ends the owner's wait when the run never began */
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    (void)close(owner->ends[0]);
}

static void run_script(struct fixture *fixture, bool is_plain, struct owner *owner,
                       const char *script, struct jail_reply *ret_reply)
{
    run(fixture, is_plain, owner,
        (struct jail_request){.argv = (const char *const[]){"sh", "-c", script, NULL}}, ret_reply);
}

START_TEST(a_program_has_a_terminal_of_its_own)
{
    struct fixture fixture = fixture_open(_i);
    static struct jail_reply reply;
    static struct owner owner;
    run_script(&fixture, false, &owner, "tty; stty size; echo through >/dev/tty; exit 3", &reply);
    ck_assert_msg(reply.outcome == OUTCOME_PROGRAM_FAILED, "%d %s", reply.outcome, reply.detail);
    ck_assert_int_eq(reply.exit_code, 3);
    ck_assert_msg(strstr(owner.printed, "/dev/pts/") != NULL, "%s", owner.printed);
    ck_assert_msg(strstr(owner.printed, "33 91\r\n") != NULL, "%s", owner.printed);
    ck_assert_msg(strstr(owner.printed, "through\r\n") != NULL, "%s", owner.printed);
    ck_assert_int_eq(owner.error, EIO); /* no process has the terminal open any more */
    ck_assert_int_eq(reply.standard_output.fd, -1);
    ck_assert_int_eq(reply.standard_error.fd, -1);
    jail_reply_fini(&reply);

    /* The next run in the jail has a terminal of its own, and the run after that has none. */
    static struct owner second;
    run_script(&fixture, false, &second, "tty", &reply);
    ck_assert_msg(reply.outcome == OUTCOME_OK, "%d %s", reply.outcome, reply.detail);
    jail_reply_fini(&reply);
    const struct jail_request plain = {
        .argv = (const char *const[]){"sh", "-c", "! tty -s && ! cat </dev/tty 2>/dev/null", NULL},
        .stdin_fd = -1};
    jail_run(fixture.jail, &plain, &reply);
    ck_assert_msg(reply.outcome == OUTCOME_OK, "%d %s", reply.outcome, reply.detail);
    jail_reply_fini(&reply);
    fixture_close(&fixture);
}
END_TEST

/* The owner closes the master at the end that it reads, so an early end hangs a program up. */
START_TEST(a_program_that_closes_its_terminal_goes_on)
{
    struct fixture fixture = fixture_open(_i);
    static struct jail_reply reply;
    static struct owner owner;
    run_script(&fixture, false, &owner, "echo closing; exec <&- >&- 2>&-; sleep 1; exit 6", &reply);
    ck_assert_msg(reply.exit_code == 6, "%d %s", reply.outcome, reply.detail);
    ck_assert_str_eq(owner.printed, "closing\r\n");
    ck_assert_int_eq(owner.error, EIO);
    jail_reply_fini(&reply);
    fixture_close(&fixture);
}
END_TEST

START_TEST(keys_reach_the_program_and_its_signals)
{
    struct fixture fixture = fixture_open(_i);
    static struct jail_reply reply;
    static struct owner owner = {.awaits = "ready", .types = "\x03"};
    run_script(&fixture, false, &owner,
               "trap 'echo interrupted; exit 4' INT; echo ready; while :; do sleep 0.1; done",
               &reply);
    ck_assert_msg(reply.exit_code == 4, "%d %s: %s", reply.outcome, reply.detail, owner.printed);
    ck_assert_msg(strstr(owner.printed, "interrupted") != NULL, "%s", owner.printed);
    jail_reply_fini(&reply);
    fixture_close(&fixture);
}
END_TEST

START_TEST(a_plain_terminal_echoes_nothing_and_changes_nothing)
{
    struct fixture fixture = fixture_open(_i);
    static struct jail_reply reply;
    static struct owner owner = {.awaits = "ready", .types = "word\n"};
    run_script(&fixture, true, &owner, "echo ready; read -r it; echo \"got $it\"", &reply);
    ck_assert_msg(reply.outcome == OUTCOME_OK, "%d %s", reply.outcome, reply.detail);
    ck_assert_str_eq(owner.printed, "ready\ngot word\n");
    jail_reply_fini(&reply);
    fixture_close(&fixture);
}
END_TEST

START_TEST(a_terminal_that_hangs_up_ends_every_program)
{
    struct fixture fixture = fixture_open(_i);
    static struct jail_reply reply;
    static struct owner owner = {.awaits = "ready"};
    ck_assert(!jail_hang_up(fixture.jail)); /* nothing runs */
    run_script(
        &fixture, false, &owner,
        "trap '' HUP TERM; (while :; do sleep 0.1; done) & echo ready; while :; do sleep 0.1; "
        "done",
        &reply);
    ck_assert_msg(reply.outcome == OUTCOME_SIGNALLED, "%d %s", reply.outcome, reply.detail);
    ck_assert_int_eq(reply.signal, SIGKILL);
    ck_assert_int_eq(owner.error, EIO);
    jail_reply_fini(&reply);
    ck_assert(jail_noop(fixture.jail)); /* the jail goes on */
    fixture_close(&fixture);
}
END_TEST

START_TEST(nothing_is_put_into_a_terminal_from_inside)
{
    struct fixture fixture = fixture_open(_i);
    static struct jail_reply reply;
    static struct owner owner;
    static char program[32];
    struct stat status;
    ck_assert_int_eq(fstat(fixture.probe, &status), 0);
    (void)snprintf(program, sizeof program, "./%s", fixture.mark);
    const struct jail_input input = {.name = fixture.mark,
                                     .fd = fixture.probe,
                                     .size = (uint64_t)status.st_size,
                                     .executable = true};
    run(&fixture, false, &owner,
        (struct jail_request){.argv = (const char *const[]){program, "surface", NULL},
                              .inputs = &input,
                              .input_count = 1},
        &reply);
    ck_assert_msg(reply.outcome == OUTCOME_OK, "%d %s: %s", reply.outcome, reply.detail,
                  owner.printed);
    jail_reply_fini(&reply);
    fixture_close(&fixture);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_program_has_a_terminal_of_its_own,
        a_program_that_closes_its_terminal_goes_on,
        keys_reach_the_program_and_its_signals,
        a_plain_terminal_echoes_nothing_and_changes_nothing,
        a_terminal_that_hangs_up_ends_every_program,
        nothing_is_put_into_a_terminal_from_inside,
    };
    return fixture_main("jail_terminal", tests, sizeof tests / sizeof *tests);
}
