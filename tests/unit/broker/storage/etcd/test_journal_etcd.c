/* The journal on three real etcd members, which are killed, stopped, filled and started again. */
#include "broker/storage/etcd/journal_etcd.h"

#include "base/checked.h"
#include "base/sha256.h"
#include "broker/storage/etcd/etcd_message.h"
#include "broker/storage/etcd/grpc_member.h"
#include "broker/storage/journal.h"
#include "runtime/clock.h"
#include "runtime/process.h"
#include "tests/support/etcd_cluster.h"
#include "tests/support/suite.h"

#include <check.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    SKIPPED = 77,
    QUOTA_BYTES = 48 << 20,
    PATIENCE_MS = 60000, /* of a test, on a machine that is busy */
    /* An append may take so much longer than its bound on a machine that stands still at times. */
    SLACK_MS = 8000
};

static struct etcd_cluster cluster;
static char folder[64];
static uint8_t next_market;

/* A writer is what one broker knows of its journal. */
struct writer {
    struct journal *journal;
    uint64_t epoch, last;
    struct quorum_note quorum;
    atomic_uint deposed;
};

static void note_deposed(void *context, const struct journal_leader *leader)
{
    struct writer *writer = context;
    ck_assert_uint_gt(leader->epoch, 0);
    atomic_fetch_add(&writer->deposed, 1);
}

static enum journal_status open_with(struct writer *writer, const struct etcd_config *config,
                                     uint8_t market, uint64_t etcd_cluster,
                                     struct problem *ret_problem)
{
    uint64_t found = 0;
    const struct journal_etcd_start start = {.config = config,
                                             .cluster = {{market}},
                                             .etcd_cluster = etcd_cluster,
                                             .deposed = note_deposed,
                                             .context = writer,
                                             .quorum = &writer->quorum};
    memset(writer, 0, sizeof *writer);
    quorum_note_init(&writer->quorum);
    const enum journal_status status =
        journal_etcd_open(&start, &writer->journal, &found, ret_problem);
    ck_assert(status != JOURNAL_OK || found != 0);
    return status;
}

static void open_market(struct writer *writer, uint8_t market)
{
    struct problem problem = {.text = ""};
    const enum journal_status status = open_with(writer, &cluster.config, market, 0, &problem);
    ck_assert_msg(status == JOURNAL_OK, "%s", problem.text);
}

static size_t text_of(uint64_t index, char ret_text[64])
{
    return (size_t)snprintf(ret_text, 64, "entry %" PRIu64, index);
}

static enum journal_status append_once(struct writer *writer)
{
    char text[64];
    const struct journal_entry entry = {.index = writer->last + 1,
                                        .bytes = (const uint8_t *)text,
                                        .length = text_of(writer->last + 1, text)};
    return journal_append(writer->journal, writer->epoch, &entry, 1);
}

/* Appends as a broker does: the same bytes until they are in. */
static void append(struct writer *writer)
{
    const int64_t end_ns = clock_monotonic_ns() + PATIENCE_MS * NS_PER_MS;
    enum journal_status status = append_once(writer);
    while ((status == JOURNAL_UNKNOWN || status == JOURNAL_UNAVAILABLE) &&
           clock_monotonic_ns() < end_ns) {
        status = append_once(writer);
    }
    ck_assert_msg(status == JOURNAL_OK, "entry %" PRIu64 ": %s", writer->last + 1,
                  journal_status_text(status));
    writer->last++;
}

static void append_many(struct writer *writer, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        append(writer);
    }
}

/* Reads everything from `index` on, compares it with what was appended, and returns the end. */
static uint64_t read_all(struct writer *writer, uint64_t index)
{
    struct journal_entry entry;
    char text[64];
    enum journal_status status;
    while ((status = journal_next(writer->journal, index, &entry, 0)) == JOURNAL_OK) {
        ck_assert_uint_eq(entry.length, text_of(index, text));
        ck_assert_mem_eq(entry.bytes, text, entry.length);
        index++;
    }
    ck_assert_int_eq(status, JOURNAL_UNAVAILABLE);
    return index - 1;
}

static void lead(struct writer *writer, const char *name)
{
    struct journal_leader me = {.epoch = 0};
    (void)snprintf(me.broker, sizeof me.broker, "%s", name);
    const enum journal_status status =
        journal_lead(writer->journal, writer->last, &me, &writer->epoch);
    ck_assert_msg(status == JOURNAL_OK, "%s", journal_status_text(status));
}

static void close_journal(struct writer *writer)
{
    journal_destroy(&writer->journal);
}

static void pause_ms(long ms)
{
    struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    while (nanosleep(&pause, &pause) != 0 && errno == EINTR) {
    }
}

/* ---- tests */

START_TEST(what_is_appended_is_read_back)
{
    struct writer writer;
    struct writer reader;
    const uint8_t market = next_market++;
    open_market(&writer, market);
    lead(&writer, "first");
    ck_assert_uint_eq(writer.epoch, 1);
    append_many(&writer, 20);
    open_market(&reader, market);
    ck_assert_uint_eq(read_all(&reader, 1), 20);
    struct journal_leader leader;
    ck_assert_int_eq(journal_leader(reader.journal, &leader), JOURNAL_OK);
    ck_assert_str_eq(leader.broker, "first");
    const struct journal_base base = {.index = 15};
    ck_assert_int_eq(journal_truncate(writer.journal, writer.epoch, &base), JOURNAL_OK);
    struct journal_entry entry;
    close_journal(&reader); /* what was read stays readable, so a new one asks again */
    open_market(&reader, market);
    ck_assert_int_eq(journal_next(reader.journal, 10, &entry, 0), JOURNAL_BEHIND);
    ck_assert_uint_eq(read_all(&reader, 16), 20);
    close_journal(&reader);
    close_journal(&writer);
}
END_TEST

START_TEST(the_first_writer_is_fenced_by_the_second)
{
    struct writer first;
    struct writer second;
    const uint8_t market = next_market++;
    open_market(&first, market);
    lead(&first, "first");
    append_many(&first, 3);
    open_market(&second, market);
    struct journal_leader me = {.broker = "second"};
    ck_assert_int_eq(journal_lead(second.journal, 1, &me, &second.epoch), JOURNAL_BEHIND);
    second.last = read_all(&second, 1);
    lead(&second, "second");
    ck_assert_uint_eq(second.epoch, first.epoch + 1);
    ck_assert_int_eq(append_once(&first), JOURNAL_DEPOSED);
    append(&second);
    ck_assert_int_eq(append_once(&first), JOURNAL_DEPOSED);
    ck_assert_uint_eq(read_all(&second, 1), 4);
    close_journal(&first);
    close_journal(&second);
}
END_TEST

START_TEST(a_deposed_writer_that_appends_nothing_is_told)
{
    struct writer first;
    struct writer second;
    const uint8_t market = next_market++;
    const int64_t end_ns = clock_monotonic_ns() + PATIENCE_MS * NS_PER_MS;
    open_market(&first, market);
    lead(&first, "first");
    open_market(&second, market);
    lead(&second, "second");
    while (atomic_load(&first.deposed) == 0 && clock_monotonic_ns() < end_ns) {
        pause_ms(20);
    }
    ck_assert_uint_eq(atomic_load(&first.deposed), 1);
    ck_assert_uint_eq(atomic_load(&second.deposed), 0);
    close_journal(&first);
    close_journal(&second);
}
END_TEST

/* One of three may be killed at any time, the leader too. */
START_TEST(a_killed_member_costs_nothing_that_was_acknowledged)
{
    struct writer writer;
    open_market(&writer, next_market++);
    lead(&writer, "writer");
    for (unsigned round = 0; round < 3; round++) {
        const int leader = etcd_cluster_leader(&cluster);
        ck_assert_int_ge(leader, 0);
        const unsigned victim = ((unsigned)leader + round) % ETCD_CLUSTER_MEMBERS;
        append_many(&writer, 10);
        etcd_cluster_signal(&cluster, victim, SIGKILL);
        append_many(&writer, 10);
        ck_assert(etcd_cluster_restart(&cluster, victim));
        ck_assert(etcd_cluster_await(&cluster));
    }
    ck_assert_uint_eq(read_all(&writer, 1), 60);
    close_journal(&writer);
}
END_TEST

START_TEST(a_stopped_leader_of_etcd_is_left)
{
    struct writer writer;
    open_market(&writer, next_market++);
    lead(&writer, "writer");
    append_many(&writer, 5);
    const int leader = etcd_cluster_leader(&cluster);
    ck_assert_int_ge(leader, 0);
    etcd_cluster_signal(&cluster, (unsigned)leader, SIGSTOP);
    const int64_t before_ns = clock_monotonic_ns();
    append_many(&writer, 5);
    printf("leader of etcd stopped: 5 entries in %" PRId64 " ms\n",
           (clock_monotonic_ns() - before_ns) / NS_PER_MS);
    etcd_cluster_signal(&cluster, (unsigned)leader, SIGCONT);
    append_many(&writer, 5);
    ck_assert_uint_eq(read_all(&writer, 1), 15);
    close_journal(&writer);
    ck_assert(etcd_cluster_await(&cluster));
}
END_TEST

START_TEST(without_quorum_an_append_ends_within_its_bound)
{
    struct writer writer;
    open_market(&writer, next_market++);
    lead(&writer, "writer");
    append_many(&writer, 5);
    for (unsigned i = 0; i < ETCD_CLUSTER_MEMBERS; i++) {
        etcd_cluster_signal(&cluster, i, SIGKILL);
    }
    for (unsigned i = 0; i < 3; i++) {
        const int64_t before_ns = clock_monotonic_ns();
        const enum journal_status status = append_once(&writer);
        const int64_t took_ms = (clock_monotonic_ns() - before_ns) / NS_PER_MS;
        ck_assert(status == JOURNAL_UNKNOWN || status == JOURNAL_UNAVAILABLE);
        ck_assert_int_le(took_ms, JOURNAL_ETCD_APPEND_MS + SLACK_MS);
        ck_assert(atomic_load(&writer.quorum.is_away));
    }
    for (unsigned i = 0; i < ETCD_CLUSTER_MEMBERS; i++) {
        ck_assert(etcd_cluster_restart(&cluster, i));
    }
    ck_assert(etcd_cluster_await(&cluster));
    append_many(&writer, 5); /* the one that was not answered is the first of them */
    ck_assert(!atomic_load(&writer.quorum.is_away));
    ck_assert_uint_eq(read_all(&writer, 1), 10);
    close_journal(&writer);
}
END_TEST

/* Writes a megabyte under a key of nobody, again and again, until etcd has reached its quota. */
static void fill_etcd(void)
{
    static uint8_t megabyte[1 << 20];
    static uint8_t request[(1 << 20) + 256];
    static const uint8_t key[] = "junk";
    struct grpc_member *member = grpc_member_create(&cluster.config, 0);
    const struct etcd_request put = {
        .method = ETCD_TXN,
        .then_count = 1,
        .then = {{.kind = ETCD_PUT, .key = {key, 4}, .value = {megabyte, sizeof megabyte}}}};
    bool fits;
    const size_t length = etcd_request_write(&put, request, sizeof request, &fits);
    ck_assert(fits && member != NULL);
    enum grpc_outcome outcome = GRPC_ANSWERED;
    for (unsigned i = 0; i < 2 * (QUOTA_BYTES >> 20) && outcome != GRPC_NO_SPACE; i++) {
        outcome =
            grpc_member_call(member, etcd_method_path(ETCD_TXN), request, length, 10000).outcome;
    }
    ck_assert_int_eq(outcome, GRPC_NO_SPACE);
    grpc_member_destroy(&member);
}

static int etcdctl(const char *words)
{
    char command[2048];
    (void)snprintf(
        command, sizeof command,
        "ETCDCTL_API=3 etcdctl --endpoints=%s,%s,%s --cacert='%s' --cert='%s' --key='%s' "
        "%s >/dev/null",
        cluster.config.members[0], cluster.config.members[1], cluster.config.members[2],
        cluster.config.ca, cluster.config.certificate, cluster.config.key, words);
    return system(command);
}

static uint64_t revision_now(void)
{
    struct grpc_member *member = grpc_member_create(&cluster.config, 0);
    struct etcd_answer answer = {.revision = 0};
    ck_assert_ptr_nonnull(member);
    const struct grpc_reply reply =
        grpc_member_call(member, etcd_method_path(ETCD_STATUS), NULL, 0, 10000);
    ck_assert_int_eq(reply.outcome, GRPC_ANSWERED);
    ck_assert(etcd_answer_read(ETCD_STATUS, reply.message, reply.length, &answer));
    grpc_member_destroy(&member);
    return answer.revision;
}

START_TEST(at_its_quota_etcd_takes_nothing_until_it_has_space)
{
    struct writer writer;
    char words[64];
    open_market(&writer, next_market++);
    lead(&writer, "writer");
    append_many(&writer, 3);
    fill_etcd();
    ck_assert_int_eq(append_once(&writer), JOURNAL_FULL);
    ck_assert(atomic_load(&writer.quorum.is_away));
    /* The next three commands are those of docs/operator.md. */
    (void)snprintf(words, sizeof words, "compact %" PRIu64, revision_now());
    ck_assert_int_eq(etcdctl(words), 0);
    ck_assert_int_eq(etcdctl("defrag"), 0);
    ck_assert_int_eq(etcdctl("alarm disarm"), 0);
    append_many(&writer, 3);
    ck_assert_uint_eq(read_all(&writer, 1), 6);
    close_journal(&writer);
}
END_TEST

START_TEST(only_the_right_etcd_is_believed)
{
    struct writer writer;
    struct problem problem = {.text = ""};
    struct etcd_config wrong = cluster.config;
    ck_assert_int_eq(open_with(&writer, &cluster.config, 200, 12345, &problem),
                     JOURNAL_UNAVAILABLE);
    ck_assert_ptr_nonnull(strstr(problem.text, "0000000000003039"));
    (void)snprintf(wrong.ca, sizeof wrong.ca, "%s", wrong.certificate); /* signed nothing */
    ck_assert_int_eq(open_with(&writer, &wrong, 200, 0, &problem), JOURNAL_UNAVAILABLE);
    ck_assert_ptr_nonnull(strstr(problem.text, "no member of etcd answers"));
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {TEST(what_is_appended_is_read_back),
                                       TEST(the_first_writer_is_fenced_by_the_second),
                                       TEST(a_deposed_writer_that_appends_nothing_is_told),
                                       TEST(a_killed_member_costs_nothing_that_was_acknowledged),
                                       TEST(a_stopped_leader_of_etcd_is_left),
                                       TEST(without_quorum_an_append_ends_within_its_bound),
                                       TEST(only_the_right_etcd_is_believed),
                                       TEST(at_its_quota_etcd_takes_nothing_until_it_has_space)};
    struct problem problem;
    char command[128];
    if (!etcd_cluster_is_possible()) {
        printf("skipped: etcd or openssl is not installed\n");
        return SKIPPED;
    }
    (void)setenv("CK_FORK", "no", 1); /* a test waits for members that this process has started */
    strcpy(folder, "/tmp/bourse-etcd-XXXXXX");
    if (!process_start(&problem) || mkdtemp(folder) == NULL ||
        !etcd_cluster_start(&cluster, BOURSE_SOURCE_DIR, folder, QUOTA_BYTES)) {
        printf("three members of etcd do not start: %s has their logs\n", folder);
        etcd_cluster_end(&cluster);
        return EXIT_FAILURE;
    }
    const int status =
        suite_main("journal_etcd", NULL, NULL, tests, sizeof tests / sizeof tests[0]);
    etcd_cluster_end(&cluster);
    (void)snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command) == 0 ? status : EXIT_FAILURE;
}
