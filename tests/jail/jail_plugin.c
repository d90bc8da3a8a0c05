/* The tests run plug-ins in a real jail. One process runs the operations of one job one after
 * another. Plug-ins that crash, hang, write too much or write nothing do not harm the agent. */
#include "fixture.h"
#include "provider/executors/plugin.h"

#include <pthread.h>
#include <sys/mman.h>

#define DESCRIPTION                                                                                \
    "{\"bourse\":1,\"name\":\"test\",\"kind\":\"dsp\",\"vendor\":\"test\",\"model\":\"shell\","    \
    "\"memory\":1048576,\"operations\":[\"count\",\"copy\",\"fail\",\"crash\",\"hang\","           \
    "\"babble\","                                                                                  \
    "\"long\",\"twice\",\"read\",\"leave\",\"garbage\"]}"
/* The plug-in is a script; each operation is a way to behave. */
#define HEAD                                                                                       \
    "#!/bin/sh\n"                                                                                  \
    "n=0\n"                                                                                        \
    "while read -r line; do case $line in\n"                                                       \
    "*'\"do\":\"describe\"'*) "
#define TAIL                                                                                       \
    ";;\n"                                                                                         \
    "*'\"do\":\"probe\"'*) echo '{\"fp32\":1.5e9,\"bandwidth\":null}';;\n"                         \
    "*'\"do\":\"figures\"'*) echo '{\"power\":7.5,\"utilization\":0}';;\n"                         \
    "*'\"operation\":\"count\"'*) n=$((n+1)); echo $n >c; "                                        \
    "echo '{\"status\":0,\"text\":\"counted\"}';;\n"                                               \
    "*'\"operation\":\"copy\"'*) cat a >c; echo '{\"status\":0}';;\n"                              \
    "*'\"operation\":\"fail\"'*) echo '{\"status\":7,\"text\":\"no such thing\"}';;\n"             \
    "*'\"operation\":\"crash\"'*) kill -SEGV $$;;\n"                                               \
    "*'\"operation\":\"hang\"'*) sleep 1000;;\n"                                                   \
    "*'\"operation\":\"babble\"'*) yes;;\n"                                                        \
    "*'\"operation\":\"long\"'*) head -c 70000 /dev/zero | tr '\\0' x; sleep 1000;;\n"             \
    "*'\"operation\":\"twice\"'*) n=9; echo 2 >c; printf '{\"status\":0}\\n{\"status\":0}\\n';;\n" \
    "*'\"operation\":\"read\"'*) wc -c <\"$(cat a)\" >c; "                                         \
    "echo \"{\\\"status\\\":$?}\";;\n"                                                             \
    "*'\"operation\":\"leave\"'*) sleep 1000 >/dev/null </dev/null & echo 0 >c; "                  \
    "echo '{\"status\":0}';;\n"                                                                    \
    "*'\"operation\":\"garbage\"'*) echo 'Segmentation fault?';;\n"                                \
    "esac; done\n"

/* A file of the host that no jail shows. It stands for a device file, which the config demands. */
#define OUTSIDE "/etc/debian_version"

static struct plugin_device device;

/* Writes the script to a file of the fixture's folder, as the plug-in of `device`. */
static void write_script(const struct fixture *fixture, const char *text)
{
    device = (struct plugin_device){.name = "test"};
    (void)snprintf(device.program.path, sizeof device.program.path, "%s/script", fixture->folder);
    (void)unlink(device.program.path);
    const int file = open(device.program.path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
    ck_assert_int_eq(write(file, text, strlen(text)), (ssize_t)strlen(text));
    (void)close(file);
}

static struct plugin_trial trial_of(const struct fixture *fixture)
{
    return (struct plugin_trial){.launcher = fixture->launcher,
                                 .cgroups = fixture->cgroups,
                                 .worker_path = fixture->worker,
                                 .helper_path = fixture->plugin};
}

static void close_all(struct fixture *fixture)
{
    (void)unlink(device.program.path);
    fixture_close(fixture);
}

/* Opens a jail with the script that behaves as its operations say. */
static struct fixture open_with_plugin(int way, bool with_outside)
{
    static struct plugin_parts parts;
    struct fixture fixture = fixture_open(way);
    struct problem problem;
    write_script(&fixture, HEAD "echo '" DESCRIPTION "'" TAIL);
    if (with_outside) {
        (void)snprintf(device.program.nodes[device.program.node_count++],
                       sizeof device.program.nodes[0], OUTSIDE);
    }
    plugin_fill(fixture.plugin, &device.program, &parts);
    struct jail_spec spec = fixture_spec(&fixture);
    spec.name = "lane-1";
    spec.plugin = &parts.jail;
    jail_close(&fixture.jail);
    ck_assert_msg(jail_open(fixture.launcher, &spec, &fixture.jail, &problem), "%s", problem.text);
    return fixture;
}

/* Runs the operation on a file `a` with the text, and returns what the file `c` has. */
static const char *run(struct fixture *fixture, const char *operation, const char *text,
                       uint64_t wall_ns, struct jail_reply *reply)
{
    static char result[128];
    static const char *const outputs[] = {"c"};
    const char *argv[] = {operation, NULL};
    const int file = memfd_create("a", MFD_CLOEXEC);
    ck_assert_int_eq(write(file, text, strlen(text)), (ssize_t)strlen(text));
    const struct jail_input input = {.name = "a", .fd = file, .size = strlen(text)};
    struct jail_request request = {.tensor_threads = 1,
                                   .argv = argv,
                                   .inputs = &input,
                                   .input_count = 1,
                                   .stdin_fd = -1,
                                   .outputs = outputs,
                                   .output_count = 1,
                                   .wall_ns = wall_ns};
    memset(reply, 0, sizeof *reply);
    jail_run(fixture->jail, &request, reply);
    (void)close(file);
    const ssize_t length = reply->outcome == OUTCOME_OK
                               ? pread(reply->outputs[0].fd, result, sizeof result - 1, 0)
                               : 0;
    result[length > 0 ? length : 0] = '\0';
    return result;
}

static void expect_ok(struct fixture *fixture, const char *operation, const char *text,
                      const char *wanted)
{
    static struct jail_reply reply;
    const char *found = run(fixture, operation, text, 60 * SECOND, &reply);
    ck_assert_msg(reply.outcome == OUTCOME_OK, "%s: %d: %s", operation, (int)reply.outcome,
                  reply.detail);
    ck_assert_str_eq(found, wanted);
    jail_reply_fini(&reply);
}

static void expect(struct fixture *fixture, const char *operation, enum result_outcome outcome,
                   int exit_code, const char *said)
{
    static struct jail_reply reply;
    (void)run(fixture, operation, "text", outcome == OUTCOME_TIME_LIMIT ? SECOND : 60 * SECOND,
              &reply);
    ck_assert_msg(reply.outcome == outcome, "%s: %d: %s", operation, (int)reply.outcome,
                  reply.detail);
    ck_assert_msg(strstr(reply.detail, said) != NULL, "%s: %s", operation, reply.detail);
    ck_assert_int_eq(reply.exit_code, exit_code);
    jail_reply_fini(&reply);
}

START_TEST(operations_of_a_job_run_in_one_process)
{
    static struct jail_reply reply;
    char text[64];
    struct fixture fixture = open_with_plugin(_i, false);
    expect_ok(&fixture, "count", "", "1\n");
    expect_ok(&fixture, "copy", "some text", "some text");
    (void)run(&fixture, "count", "", 60 * SECOND, &reply);
    ck_assert(reply.outcome == OUTCOME_OK && reply.peak_memory_bytes > 0);
    ck_assert_str_eq(fixture_output(&reply.standard_output, text, sizeof text), "counted\n");
    jail_reply_fini(&reply);
    expect_ok(&fixture, "count", "", "3\n");
    /* A process that an operation leaves is ended, and the plug-in with it. */
    expect_ok(&fixture, "leave", "", "0\n");
    expect_ok(&fixture, "count", "", "1\n");
    close_all(&fixture);
}
END_TEST

START_TEST(what_is_wrong_with_a_job_is_its_consumers_to_read)
{
    struct fixture fixture = open_with_plugin(_i, false);
    expect(&fixture, "fail", OUTCOME_PROGRAM_FAILED, 7, "fail: no such thing");
    expect(&fixture, "divide", OUTCOME_PROGRAM_FAILED, 1,
           "the plug-in has no operation \"divide\"; it has count, copy, fail");
    expect_ok(&fixture, "count", "", "1\n"); /* the same process goes on */
    close_all(&fixture);
}
END_TEST

START_TEST(a_plugin_that_breaks_the_protocol_is_started_anew)
{
    static const struct {
        const char *operation;
        enum result_outcome outcome;
        const char *said;
    } ways[] = {
        {"crash", OUTCOME_JAIL_FAILED, "the plug-in was ended by signal 11"},
        {"hang", OUTCOME_TIME_LIMIT, "its limit is 1.000 s"},
        {"babble", OUTCOME_JAIL_FAILED, "the plug-in "},
        {"long", OUTCOME_JAIL_FAILED, "the plug-in's answer is longer than 65536 bytes"},
        {"twice", OUTCOME_JAIL_FAILED, "the plug-in says more than one line to one request"},
        {"garbage", OUTCOME_JAIL_FAILED, "no JSON object in one line: Segmentation fault?"},
    };
    struct fixture fixture = open_with_plugin(_i, false);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        expect(&fixture, ways[i].operation, ways[i].outcome, 0, ways[i].said);
        expect_ok(&fixture, "count", "", "1\n");
    }
    close_all(&fixture);
}
END_TEST

/* Cancels the run when its operation has said that it began. */
static void *cancel_begun(void *context)
{
    struct jail *jail = context;
    struct jail_live live = {.total = 0};
    char said[16];
    while (!jail_read_live(jail, 1, false, 0, said, sizeof said, &live) || live.total == 0) {
        (void)usleep(5000);
    }
    jail_cancel(jail, OUTCOME_CANCELLED);
    return NULL;
}

static void expect_cancelled(struct fixture *fixture, const char *operation)
{
    static struct jail_reply reply;
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, cancel_begun, fixture->jail), 0);
    (void)run(fixture, operation, "text", 60 * SECOND, &reply);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_msg(reply.outcome == OUTCOME_CANCELLED, "%d: %s", (int)reply.outcome, reply.detail);
    jail_reply_fini(&reply);
}

/* `count` tells how many operations its process has counted. */
START_TEST(a_plugin_that_takes_a_cancel_keeps_its_process)
{
    static struct plugin_parts parts;
    struct fixture fixture = fixture_open(_i);
    struct problem problem;
    write_script(&fixture, HEAD "echo '{\"bourse\":1,\"name\":\"test\",\"kind\":\"dsp\","
                                "\"vendor\":\"test\",\"model\":\"shell\",\"operations\":"
                                "[\"count\",\"stops\",\"deaf\"],\"features\":[\"cancel\"]}'"
                                ";;\n*'\"operation\":\"stops\"'*) echo begun >&2; read -r line; "
                                "echo '{\"status\":1,\"text\":\"stopped\"}';;\n"
                                "*'\"operation\":\"deaf\"'*) echo begun >&2; sleep 1000" TAIL);
    plugin_fill(fixture.plugin, &device.program, &parts);
    struct jail_spec spec = fixture_spec(&fixture);
    spec.name = "lane-1";
    spec.plugin = &parts.jail;
    jail_close(&fixture.jail);
    ck_assert_msg(jail_open(fixture.launcher, &spec, &fixture.jail, &problem), "%s", problem.text);
    expect_ok(&fixture, "count", "", "1\n");
    expect_cancelled(&fixture, "stops");
    expect_ok(&fixture, "count", "", "2\n");
    expect_cancelled(&fixture, "deaf"); /* it is killed after a while */
    expect_ok(&fixture, "count", "", "1\n");
    close_all(&fixture);
}
END_TEST

START_TEST(a_jail_has_the_files_that_are_named_for_it)
{
    struct fixture fixture = open_with_plugin(_i, true);
    static struct jail_reply reply;
    (void)run(&fixture, "read", OUTSIDE, 60 * SECOND, &reply);
    ck_assert_msg(reply.outcome == OUTCOME_OK, "%s", reply.detail);
    jail_reply_fini(&reply);
    close_all(&fixture);
    fixture = open_with_plugin(_i, false);
    (void)run(&fixture, "read", OUTSIDE, 60 * SECOND, &reply);
    ck_assert_int_eq(reply.outcome, OUTCOME_PROGRAM_FAILED);
    jail_reply_fini(&reply);
    close_all(&fixture);
}
END_TEST

START_TEST(a_start_learns_what_a_device_is)
{
    struct fixture fixture = fixture_open(_i);
    const struct plugin_trial trial = trial_of(&fixture);
    write_script(&fixture, HEAD "echo '" DESCRIPTION "'" TAIL);
    plugin_look(&trial, &device);
    ck_assert_str_eq(device.unusable, "");
    ck_assert_str_eq(device.description.kind, "dsp");
    ck_assert_uint_eq(device.description.operation_count, 11);
    ck_assert(device.probe.fp32 == 1500000000 && device.probe.bandwidth == 0);
    ck_assert(device.figures.power_w == 7.5 && device.figures.temperature_c == -1);
    close_all(&fixture);
}
END_TEST

START_TEST(a_start_shows_a_plugin_the_folders_that_jobs_see)
{
    static const char *const visible[] = {"/usr/sbin", NULL};
    struct fixture fixture = fixture_open(_i);
    struct plugin_trial trial = trial_of(&fixture);
    write_script(&fixture, "#!/bin/sh\n[ -e /usr/sbin/nologin ] || exit 9\n"
                           "read -r line\necho '" DESCRIPTION "'\n"
                           "read -r line\necho '{}'\nread -r line\necho '{}'\n");
    plugin_look(&trial, &device);
    ck_assert_str_eq(device.unusable, "the plug-in has ended with status 9 (asked to describe)");
    trial.visible = visible;
    plugin_look(&trial, &device);
    ck_assert_str_eq(device.unusable, "");
    close_all(&fixture);
}
END_TEST

START_TEST(a_start_learns_why_a_plugin_cannot_be_used)
{
    static const struct {
        const char *text, *said;
    } ways[] = {
        {"#!/bin/sh\nexit 3\n", "the plug-in has ended with status 3 (asked to describe)"},
        {"#!/bin/sh\necho hello >&2\necho no board here >&2\nexit 3\n",
         "the plug-in has ended with status 3 (asked to describe): no board here"},
        {"#!/bin/sh\nread -r line; echo '{\"failed\":\"no board\"}'\n",
         "the device fails: no board"},
        {"#!/bin/sh\nkill -SEGV $$\n", "ended by signal 11"},
        {"#!/bin/sh\nread -r line; echo hello\n", "no JSON object in one line: hello"},
        {"#!/bin/sh\nread -r line; echo '{\"bourse\":2}'\n",
         "the plug-in speaks version 2 of the protocol; this agent speaks version 1"},
        {"#!/bin/sh\nread -r line; yes\n", "the plug-in "},
        {"#!/bin/sh\nread -r line; exec >&-; sleep 1000\n", "the plug-in has closed its output"},
        {"#!/no/such/program\n", "the plug-in does not start: No such file or directory"},
        {HEAD "echo '" DESCRIPTION "' | sed s/dsp/toaster/" TAIL, "kind \"toaster\" is none of"},
    };
    struct fixture fixture = fixture_open(_i);
    const struct plugin_trial trial = trial_of(&fixture);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        write_script(&fixture, ways[i].text);
        plugin_look(&trial, &device);
        ck_assert_msg(strstr(device.unusable, ways[i].said) != NULL, "%zu: %s", i, device.unusable);
    }
    (void)chmod(device.program.path, 0644);
    plugin_look(&trial, &device);
    ck_assert_ptr_nonnull(strstr(device.unusable, "it cannot be executed (chmod +x)"));
    (void)unlink(device.program.path);
    plugin_look(&trial, &device);
    ck_assert_ptr_nonnull(strstr(device.unusable, "script: No such file or directory"));
    close_all(&fixture);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        operations_of_a_job_run_in_one_process,
        what_is_wrong_with_a_job_is_its_consumers_to_read,
        a_plugin_that_breaks_the_protocol_is_started_anew,
        a_plugin_that_takes_a_cancel_keeps_its_process,
        a_jail_has_the_files_that_are_named_for_it,
        a_start_learns_what_a_device_is,
        a_start_shows_a_plugin_the_folders_that_jobs_see,
        a_start_learns_why_a_plugin_cannot_be_used,
    };
    return fixture_main("jail_plugin", tests, sizeof tests / sizeof *tests);
}
