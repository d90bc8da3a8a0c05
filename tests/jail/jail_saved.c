/* These tests take the checkpoint of a program that was told to end out of its folder, and put it
 * back for the next attempt. A folder that holds anything but plain files gives nothing. */
#include "fixture.h"

#include <pthread.h>
#include <signal.h>

/* Tells the program to end as soon as it is the probe, which its shell has become. */
static void *tell(void *context)
{
    const struct fixture *fixture = context;
    while (fixture_survivors(fixture) == 0) {
        (void)sched_yield();
    }
    while (!jail_notice(fixture->jail)) {
        (void)sched_yield();
    }
    return NULL;
}

/* Returns what a program leaves that runs `script` and is then told to end. */
static void leave(struct fixture *fixture, struct jail_request request, const char *script,
                  struct jail_reply *ret_reply)
{
    static struct jail_input inputs[LIMIT_INPUTS];
    char whole[1024];
    struct stat status;
    pthread_t thread;
    (void)snprintf(whole, sizeof whole, "%s; exec ./%s spin", script, fixture->mark);
    ck_assert_int_eq(fstat(fixture->probe, &status), 0);
    inputs[0] = (struct jail_input){.name = fixture->mark,
                                    .fd = fixture->probe,
                                    .size = (uint64_t)status.st_size,
                                    .executable = true};
    for (size_t i = 0; i < request.input_count; i++) {
        inputs[1 + i] = request.inputs[i];
    }
    request.inputs = inputs;
    request.input_count++;
    request.argv = (const char *const[]){"sh", "-c", whole, NULL};
    request.stdin_fd = -1;
    request.checkpoint = "state/of";
    request.wall_ns = 300 * SECOND;
    ck_assert_int_eq(pthread_create(&thread, NULL, tell, fixture), 0);
    jail_run(fixture->jail, &request, ret_reply);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert(ret_reply->was_noticed);
}

static void check_file(const struct jail_saved *file, const char *name, const char *bytes)
{
    char text[256] = "";
    ck_assert_str_eq(file->name, name);
    ck_assert_uint_eq(file->size, strlen(bytes));
    ck_assert_int_eq(pread(file->fd, text, sizeof text - 1, 0), (ssize_t)strlen(bytes));
    ck_assert_str_eq(text, bytes);
}

START_TEST(what_is_there_comes_out_by_name_and_goes_in_again)
{
    struct fixture fixture = fixture_open(_i);
    static struct jail_reply reply;
    leave(&fixture, (struct jail_request){0},
          "cd state/of && mkdir -p b/c d && printf two >b/c/x && printf one >a && : >b/e && "
          "printf three >b.x; cd /work",
          &reply);
    ck_assert_msg(reply.outcome == OUTCOME_SIGNALLED, "%d %s", reply.outcome, reply.detail);
    ck_assert_int_eq(reply.signal, SIGTERM);
    ck_assert_msg(reply.saved_count == 4, "%s", reply.detail);
    check_file(&reply.saved[0], "a", "one");
    check_file(&reply.saved[1], "b.x", "three");
    check_file(&reply.saved[2], "b/c/x", "two");
    check_file(&reply.saved[3], "b/e", "");

    const struct jail_input inputs[] = {
        {.name = "state/of/b/c/x", .fd = reply.saved[2].fd, .size = 3, .is_state = true}};
    static struct jail_reply again;
    leave(&fixture, (struct jail_request){.inputs = inputs, .input_count = 1},
          "test \"$(ls -A state/of)\" = b && printf more >>state/of/b/c/x", &again);
    ck_assert_msg(again.saved_count == 1, "%s", again.detail);
    check_file(&again.saved[0], "b/c/x", "twomore");
    jail_reply_fini(&again);
    jail_reply_fini(&reply);
    fixture_close(&fixture);
}
END_TEST

static void *end_in_time(void *context)
{
    const struct fixture *fixture = context;
    (void)tell(context);
    jail_cancel(fixture->jail, OUTCOME_CANCELLED);
    return NULL;
}

START_TEST(one_that_does_not_heed_is_ended_and_what_is_there_counts)
{
    struct fixture fixture = fixture_open(_i);
    char script[128];
    pthread_t thread;
    static struct jail_reply reply;
    struct stat status;
    ck_assert_int_eq(fstat(fixture.probe, &status), 0);
    const struct jail_input input = {.name = fixture.mark,
                                     .fd = fixture.probe,
                                     .size = (uint64_t)status.st_size,
                                     .executable = true};
    (void)snprintf(script, sizeof script, "trap '' TERM; printf half >state/n; exec ./%s spin",
                   fixture.mark);
    const struct jail_request request = {.argv = (const char *const[]){"sh", "-c", script, NULL},
                                         .inputs = &input,
                                         .input_count = 1,
                                         .stdin_fd = -1,
                                         .checkpoint = "state",
                                         .wall_ns = 300 * SECOND};
    ck_assert_int_eq(pthread_create(&thread, NULL, end_in_time, &fixture), 0);
    jail_run(fixture.jail, &request, &reply);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(reply.outcome, OUTCOME_CANCELLED);
    ck_assert_uint_eq(reply.saved_count, 1);
    check_file(&reply.saved[0], "n", "half");
    jail_reply_fini(&reply);
    fixture_close(&fixture);
}
END_TEST

START_TEST(who_was_not_told_to_end_saves_nothing)
{
    struct fixture fixture = fixture_open(_i);
    static struct jail_reply reply;
    const char *const argv[] = {"sh", "-c", "echo x >state/x; exit 3", NULL};
    const struct jail_request request = {
        .argv = argv, .stdin_fd = -1, .checkpoint = "state", .wall_ns = 300 * SECOND};
    jail_run(fixture.jail, &request, &reply);
    ck_assert_int_eq(reply.exit_code, 3);
    ck_assert(!reply.was_noticed);
    ck_assert_uint_eq(reply.saved_count, 0);
    fixture_ends(reply, OUTCOME_PROGRAM_FAILED);
    fixture_close(&fixture);
}
END_TEST

START_TEST(of_a_folder_that_holds_anything_else_nothing_is_saved)
{
    static const struct {
        const char *script, *why;
    } cases[] = {
        {"ln -s /etc state/of/x", "state/of/x is or passes a symbolic link"},
        {"echo y >state/of/a; ln -s a state/of/x", "x is or passes a symbolic link"},
        {"mkfifo state/of/x", "state/of/x is neither a file nor a folder"},
        {"true", "state/of/ is empty"},
        {"mkdir state/of/deep", "is empty"},
        {"rm -r state", "was not written"},
        {"rm -r state; ln -s /etc state", "is or passes a symbolic link"},
        {"rmdir state/of; ln -s /tmp state/of", "is or passes a symbolic link"},
        {"rmdir state/of; echo x >state/of", "was not written"},
        {"echo x >state/of/x; chmod 0 state/of/x", "state/of/x cannot be read"},
        {"mkdir state/of/x; chmod 0 state/of/x", "state/of/x cannot be read"},
        {"i=0; while [ $i -lt 257 ]; do : >state/of/$i; i=$((i+1)); done", "more than 256 files"},
        {"cd state/of; i=0; while [ $i -lt 257 ]; do mkdir $i; i=$((i+1)); done; cd /work",
         "more than 256 folders"},
        {"cd state/of; i=0; while [ $i -lt 300 ]; do mkdir d; cd -P d; i=$((i+1)); done; cd /work",
         "more than 256 folders"},
        {"cd state/of; n=$(printf %0200d 0); mkdir $n; cd -P $n; mkdir $n; cd -P $n; mkdir $n; cd "
         "-P $n; mkdir $n; cd -P $n; mkdir $n; cd -P $n; : >$n; cd /work",
         "a name that is too long"},
        {"echo x >\"state/of/$(printf 'a\\033b')\"", "control characters"},
        {"echo x >\"state/of/$(printf 'a\\377b')\"", "not in UTF-8"},
        {"truncate -s 2M state/of/large", "large is larger than what is left of the output limit"},
        {"truncate -s 600K state/of/a; truncate -s 600K state/of/b",
         "what is left of the output limit"},
    };
    struct fixture fixture = fixture_open(_i);
    static struct jail_reply reply;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        leave(&fixture, (struct jail_request){.output_bytes = MIB}, cases[i].script, &reply);
        ck_assert_msg(reply.saved_count == 0 && strstr(reply.detail, cases[i].why) != NULL,
                      "%s: %s", cases[i].script, reply.detail);
        ck_assert(!reply.jail_ended);
        jail_reply_fini(&reply);
    }
    ck_assert(jail_noop(fixture.jail));
    fixture_close(&fixture);
}
END_TEST

START_TEST(as_many_files_as_are_kept_come_out)
{
    struct fixture fixture = fixture_open(_i);
    static struct jail_reply reply;
    leave(&fixture, (struct jail_request){0},
          "i=0; while [ $i -lt 256 ]; do echo $i >state/of/$i; i=$((i+1)); done", &reply);
    ck_assert_msg(reply.saved_count == 256, "%s", reply.detail);
    check_file(&reply.saved[0], "0", "0\n");
    check_file(&reply.saved[255], "99", "99\n");
    jail_reply_fini(&reply);
    fixture_close(&fixture);
}
END_TEST

START_TEST(a_folder_that_leads_out_is_refused)
{
    struct fixture fixture = fixture_open(_i);
    static struct jail_reply reply;
    const char *const argv[] = {"true", NULL};
    const struct jail_request request = {.argv = argv, .stdin_fd = -1, .checkpoint = "../etc"};
    jail_run(fixture.jail, &request, &reply);
    fixture_ends(reply, OUTCOME_REFUSED);
    fixture_close(&fixture);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        what_is_there_comes_out_by_name_and_goes_in_again,
        one_that_does_not_heed_is_ended_and_what_is_there_counts,
        who_was_not_told_to_end_saves_nothing,
        of_a_folder_that_holds_anything_else_nothing_is_saved,
        as_many_files_as_are_kept_come_out,
        a_folder_that_leads_out_is_refused,
    };
    return fixture_main("jail_saved", tests, sizeof tests / sizeof *tests);
}
