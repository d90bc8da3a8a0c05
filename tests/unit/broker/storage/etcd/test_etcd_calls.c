/* A stand-in for etcd says versions, alarms and errors that the real one does not say on request.
 * The calls go over HTTP/2 and TLS as to a real member. */
#include "broker/storage/etcd/etcd_calls.h"

#include "base/checked.h"
#include "broker/storage/etcd/etcd_inquiry.h"
#include "broker/storage/etcd/etcd_log.h"
#include "runtime/clock.h"
#include "runtime/process.h"
#include "tests/support/child.h"
#include "tests/support/suite.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SKIPPED = 77, BOUND_MS = 1500, SLACK_MS = 8000, PATH_SIZE = 512 };

static char folder[64];
static struct etcd_config config;
static struct problem problem;

/* A fake is a running stand-in. */
struct fake {
    pid_t pid;
    int in;
    struct etcd_calls *calls;
};

static void read_port(int out, char ret_port[16])
{
    size_t length = 0;
    memset(ret_port, 0, 16);
    while (length < 15 && read(out, ret_port + length, 1) == 1 && ret_port[length] != '\n') {
        length++;
    }
    ret_port[length] = '\0';
    ck_assert_uint_gt(length, 0);
}

static void set_config(const char *port)
{
    config = (struct etcd_config){.member_count = 1};
    (void)snprintf(config.members[0], sizeof config.members[0], "https://127.0.0.1:%s", port);
    (void)snprintf(config.ca, sizeof config.ca, "%s/ca.pem", folder);
    (void)snprintf(config.certificate, sizeof config.certificate, "%s/client.pem", folder);
    (void)snprintf(config.key, sizeof config.key, "%s/client.key", folder);
}

static struct fake start(const char *version, const char *alarm, const char *mode)
{
    int in[2];
    int out[2];
    char port[16];
    struct fake fake;
    ck_assert_int_eq(pipe(in), 0);
    ck_assert_int_eq(pipe(out), 0);
    fake.pid = child_fork();
    if (fake.pid == 0) {
        (void)dup2(in[0], STDIN_FILENO);
        (void)dup2(out[1], STDOUT_FILENO);
        (void)close(in[1]);
        execlp("node", "node", BOURSE_SOURCE_DIR "/tests/support/fake_etcd.cjs", folder, version,
               alarm, mode, (char *)NULL);
        _exit(127);
    }
    (void)close(in[0]);
    (void)close(out[1]);
    fake.in = in[1];
    read_port(out[0], port);
    (void)close(out[0]);
    set_config(port);
    problem.text[0] = '\0';
    fake.calls = etcd_calls_create(&config, 0);
    ck_assert_ptr_nonnull(fake.calls);
    return fake;
}

static void stop(struct fake *fake)
{
    etcd_calls_destroy(&fake->calls);
    (void)close(fake->in);
    (void)kill(fake->pid, SIGKILL);
    (void)waitpid(fake->pid, NULL, 0);
}

static const struct {
    const char *version, *alarm;
    bool is_good;
    const char *says;
} starts[] = {
    {"3.5.33", "0", true, ""},
    {"3.6.14", "1", true, ""}, /* full: a warning */
    {"3.4.23", "0", true, ""}, /* old: a warning */
    {"3.5.16", "0", false, "3.5.0 to 3.5.16 can write a transaction in part"},
    {"3.3.25", "0", false, "not known to keep a journal"},
    {"banana", "0", false, "not known to keep a journal"},
    {"3.5.33", "2", false, "alarm CORRUPT"},
};

START_TEST(a_start_judges_version_and_alarms)
{
    struct fake fake = start(starts[_i].version, starts[_i].alarm, "taken");
    ck_assert_msg(etcd_calls_check(fake.calls, &problem) == starts[_i].is_good, "%s: %s",
                  starts[_i].version, problem.text);
    ck_assert_ptr_nonnull(strstr(problem.text, starts[_i].says));
    ck_assert_uint_eq(etcd_calls_cluster(fake.calls), 42);
    stop(&fake);
}
END_TEST

static const struct {
    const char *mode;
    enum journal_status status;
    const char *says;
} modes[] = {
    {"taken", JOURNAL_OK, ""},
    {"full", JOURNAL_FULL, "database space exceeded"},
    {"leaderless", JOURNAL_UNKNOWN, "no leader"},
    {"forbidden", JOURNAL_UNAVAILABLE, "permission denied"},
    {"large", JOURNAL_TOO_LARGE, "request is too large"},
    {"garbage", JOURNAL_UNKNOWN, "cannot be read"},
    {"web", JOURNAL_UNKNOWN, "HTTP status 404"},
    {"silent", JOURNAL_UNKNOWN, "imed out"},
};

START_TEST(each_error_has_its_status_within_the_bound)
{
    static const struct id128 market = {{1}};
    const struct journal_base none = {.index = 0};
    const struct journal_entry nothing = {.index = 0};
    struct fake fake = start("3.5.33", "0", modes[_i].mode);
    struct etcd_log *log = etcd_log_create(&market);
    ck_assert_ptr_nonnull(log);
    etcd_log_open(log, &none, &nothing);
    const int64_t before_ns = clock_monotonic_ns();
    /* An answer is certain only when no request before the answer was given up. */
    const int64_t patience_ms = modes[_i].status == JOURNAL_UNKNOWN ? 300 : BOUND_MS;
    const enum journal_status status = etcd_calls_run(fake.calls, log, BOUND_MS, patience_ms);
    const int64_t took_ms = (clock_monotonic_ns() - before_ns) / NS_PER_MS;
    ck_assert_msg(status == modes[_i].status, "%s: %s (%s)", modes[_i].mode,
                  journal_status_text(status), etcd_calls_error(fake.calls));
    ck_assert_msg(strstr(etcd_calls_error(fake.calls), modes[_i].says) != NULL, "%s: %s",
                  modes[_i].mode, etcd_calls_error(fake.calls));
    ck_assert_int_le(took_ms, BOUND_MS + SLACK_MS);
    etcd_log_destroy(&log);
    stop(&fake);
}
END_TEST

/* Members tell of themselves even where they do not tell of the journal. */
START_TEST(an_inquiry_brings_alarms)
{
    static const struct id128 market = {{1}};
    struct etcd_inquiry found;
    struct fake full = start("3.5.33", "1", "full");
    (void)etcd_inquire(&config, &market, 0, &found, &problem);
    ck_assert_uint_eq(found.member_count, 1);
    ck_assert(found.members[0].answers && found.members[0].leads && found.has_quorum);
    ck_assert_str_eq(found.members[0].version, "3.5.33");
    ck_assert(found.no_space && !found.is_corrupt);
    stop(&full);
    struct fake damaged = start("3.5.33", "2", "full");
    (void)etcd_inquire(&config, &market, 0, &found, &problem);
    ck_assert(!found.no_space && found.is_corrupt);
    stop(&damaged);
}
END_TEST

START_TEST(the_members_that_do_not_answer_are_named)
{
    char why[200];
    struct fake fake = start("3.5.33", "0", "taken");
    (void)kill(fake.pid, SIGKILL);
    (void)waitpid(fake.pid, NULL, 0);
    etcd_calls_explain(fake.calls, why, sizeof why);
    ck_assert_ptr_nonnull(strstr(why, config.members[0]));
    ck_assert_ptr_nonnull(strstr(why, " does not answer"));
    stop(&fake);
}
END_TEST

START_TEST(nobody_at_the_address_is_no_answer)
{
    struct fake fake = start("3.5.33", "0", "taken");
    (void)kill(fake.pid, SIGKILL);
    (void)waitpid(fake.pid, NULL, 0);
    ck_assert(!etcd_calls_check(fake.calls, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "no member of etcd answers"));
    stop(&fake);
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        LOOP(a_start_judges_version_and_alarms, 0, sizeof starts / sizeof starts[0]),
        LOOP(each_error_has_its_status_within_the_bound, 0, sizeof modes / sizeof modes[0]),
        TEST(an_inquiry_brings_alarms), TEST(the_members_that_do_not_answer_are_named),
        TEST(nobody_at_the_address_is_no_answer)};
    char command[PATH_SIZE];
    if (system("command -v node >/dev/null && command -v openssl >/dev/null") != 0) {
        printf("skipped: node or openssl is not installed\n");
        return SKIPPED;
    }
    strcpy(folder, "/tmp/bourse-calls-XXXXXX");
    if (!process_start(&problem) || mkdtemp(folder) == NULL) {
        return EXIT_FAILURE;
    }
    (void)snprintf(command, sizeof command, "bash '%s/tests/support/etcd_certificates.sh' '%s'",
                   BOURSE_SOURCE_DIR, folder);
    if (system(command) != 0) {
        return EXIT_FAILURE;
    }
    const int status = suite_main("etcd_calls", NULL, NULL, tests, sizeof tests / sizeof tests[0]);
    (void)snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command) == 0 ? status : EXIT_FAILURE;
}
