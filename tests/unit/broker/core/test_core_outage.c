/* The tests run the core's thread while the journal takes no entry. Groups do not come back then,
 * and everybody is answered all the same. The test is committer, follower and gateway. */
#include "broker/core/core.h"

#include "base/checked.h"
#include "broker/core/group.h"
#include "broker/core/outgoing.h"
#include "broker/core/request.h"
#include "exchange/exchange.h"
#include "exchange/view/feed.h"
#include "tests/support/suite.h"

#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { SESSION = 7, INBOUND = 16384, FLOOD = (CORE_GROUPS + 2) * GROUP_COMMANDS_MAX };
#define WAIT_NS (60 * NS_PER_S)

static struct {
    struct exchange *exchange;
    struct exchange_limits limits;
    struct logtime *clock;
    struct epoch epoch;
    struct queue *inbound, *groups, *returned, *reader, *keeper, *releases;
    struct quorum_note quorum;
    struct disk_reserve reserve;
    atomic_uint committing;
    struct core *core;
} around;

static bool keep_secrets(void *context, const struct epoch_secrets *secrets)
{
    (void)context;
    (void)secrets;
    return true;
}

/* Starts the core, while the journal is away or not. A core that starts before ticks once. */
static void start(bool is_away)
{
    memset(&around, 0, sizeof around);
    around.limits = exchange_limits_default();
    around.exchange = exchange_create(&around.limits);
    around.clock = logtime_create(0);
    around.inbound = queue_create(INBOUND);
    around.groups = queue_create(CORE_GROUPS);
    around.returned = queue_create(CORE_GROUPS);
    around.reader = queue_create(4);
    around.keeper = queue_create(4);
    around.releases = queue_create(INBOUND);
    around.epoch.keep = keep_secrets;
    epoch_start(&around.epoch, 0, 0);
    quorum_note_init(&around.quorum);
    atomic_store(&around.quorum.is_away, is_away);
    ck_assert(around.exchange != NULL && exchange_feed_open(around.exchange, 0));
    const struct core_config config = {.exchange = around.exchange,
                                       .clock = around.clock,
                                       .epoch = &around.epoch,
                                       .inbound = around.inbound,
                                       .groups = around.groups,
                                       .returned = around.returned,
                                       .committing = &around.committing,
                                       .reader = around.reader,
                                       .keeper = around.keeper,
                                       .releases = around.releases,
                                       .quorum = &around.quorum,
                                       .database = "/nonexistent/ledger.db",
                                       .snapshots = "/nonexistent/snapshots",
                                       .limits = &around.limits,
                                       .beat_ms = 250,
                                       .group_bytes = GROUP_BYTES_ON_ETCD,
                                       .reserve = &around.reserve};
    around.core = core_start(&config);
}

/* The journal takes entries: groups come, and go back empty, until the core has ended. */
static void *commit_all(void *unused)
{
    (void)unused;
    while (!queue_finished(around.groups)) {
        struct queue_link *link = queue_pop(around.groups, QUEUE_FOREVER);
        if (link != NULL) {
            group_clear(QUEUE_ELEMENT(link, struct group, link));
            ck_assert(queue_push(around.returned, link));
            atomic_fetch_sub(&around.committing, 1);
            queue_wake(around.inbound);
        }
    }
    return NULL;
}

static void stop(void)
{
    pthread_t committer;
    ck_assert_int_eq(pthread_create(&committer, NULL, commit_all, NULL), 0);
    core_stop(&around.core);
    queue_close(around.groups);
    pthread_join(committer, NULL);
    struct queue_link *link;
    while ((link = queue_pop(around.returned, 0)) != NULL) {
        struct group *group = QUEUE_ELEMENT(link, struct group, link);
        group_destroy(&group);
    }
    while ((link = queue_pop(around.releases, 0)) != NULL) {
        struct outgoing *outgoing = QUEUE_ELEMENT(link, struct outgoing, link);
        outgoing_destroy(&outgoing);
    }
    queue_destroy(&around.inbound);
    queue_destroy(&around.groups);
    queue_destroy(&around.returned);
    queue_destroy(&around.reader);
    queue_destroy(&around.keeper);
    queue_destroy(&around.releases);
    quorum_note_fini(&around.quorum);
    exchange_destroy(&around.exchange);
    logtime_destroy(&around.clock);
}

static void push(struct request *request)
{
    ck_assert(queue_push(around.inbound, &request->link));
}

static void push_presence(enum entry_command_kind presence)
{
    struct request *request = request_create();
    ck_assert_ptr_nonnull(request);
    request->kind = REQUEST_PRESENCE;
    request->presence = presence;
    request->account = 5;
    push(request);
}

static void push_message(enum message_type type, uint8_t id)
{
    struct request *request = request_create();
    ck_assert_ptr_nonnull(request);
    request->kind = REQUEST_MESSAGE;
    request->session = SESSION;
    request->account = EXCHANGE_NO_ACCOUNT;
    request->envelope.type = (uint16_t)type;
    request->envelope.id.bytes[0] = id;
    request->translation.command.type = EXCHANGE_CANCEL_JOB;
    push(request);
}

/* Waits until the sender of that request is told that there is no quorum. */
static void check_told(uint8_t id)
{
    for (;;) {
        struct queue_link *link = queue_pop(around.releases, WAIT_NS);
        ck_assert_msg(link != NULL, "nobody tells the sender of request %u", id);
        struct outgoing *outgoing = QUEUE_ELEMENT(link, struct outgoing, link);
        const bool is_it = outgoing->id.bytes[0] == id;
        ck_assert(!is_it || (outgoing->session == SESSION && outgoing->type == MESSAGE_REJECT));
        outgoing_destroy(&outgoing);
        if (is_it) {
            return;
        }
    }
}

/* Agents of a large market may fall silent and return in the seconds of an outage. */
START_TEST(presence_does_not_stop_the_core_while_the_journal_is_away)
{
    start(true);
    for (int i = 0; i < FLOOD; i++) {
        push_presence(i % 2 == 0 ? ENTRY_SUSPECT : ENTRY_RETURNED);
    }
    push_message(MESSAGE_JOB_CANCEL, 1);
    check_told(1);
    push_message(MESSAGE_BALANCE_REQUEST, 2);
    check_told(2);
    ck_assert_uint_eq(exchange_index(around.exchange), 0);
    atomic_store(&around.quorum.is_away, false);
    stop();
}
END_TEST

/* A journal is known to be away after more than a second. By then commands may fill all groups. */
START_TEST(senders_of_what_filled_the_groups_are_told_and_reads_are_answered)
{
    start(false);
    push_message(MESSAGE_JOB_CANCEL, 1);
    for (int i = 0; i < FLOOD; i++) {
        push_message(MESSAGE_JOB_CANCEL, 2);
    }
    push_message(MESSAGE_JOB_CANCEL, 3);
    while (queue_count(around.groups) < CORE_GROUPS - 1) {
        ck_assert_ptr_null(queue_pop(around.releases, NS_PER_MS)); /* nothing is answered yet */
    }
    /* A core that hands its last group over and waits does so soon after that. */
    for (int i = 0; i < 100 && queue_count(around.groups) < CORE_GROUPS; i++) {
        ck_assert_ptr_null(queue_pop(around.releases, 2 * NS_PER_MS));
    }
    atomic_store(&around.quorum.is_away, true);
    check_told(1);
    check_told(3);
    push_message(MESSAGE_BALANCE_REQUEST, 4);
    check_told(4);
    atomic_store(&around.quorum.is_away, false);
    stop();
}
END_TEST

/* The broker notes what it put off once the journal is back; nothing is lost. */
START_TEST(presence_is_noted_once_the_journal_is_back)
{
    start(false);
    atomic_store(&around.quorum.is_away, true);
    push_presence(ENTRY_SUSPECT);
    push_message(MESSAGE_JOB_CANCEL, 1);
    check_told(1);
    atomic_store(&around.quorum.is_away, false);
    for (bool is_noted = false; !is_noted;) {
        struct queue_link *link = queue_pop(around.groups, WAIT_NS);
        ck_assert_ptr_nonnull(link);
        struct group *group = QUEUE_ELEMENT(link, struct group, link);
        for (uint32_t i = 0; i < group->command_count; i++) {
            is_noted = is_noted || group->commands[i].entry.kind == ENTRY_SUSPECT;
        }
        group_clear(group);
        ck_assert(queue_push(around.returned, link));
        atomic_fetch_sub(&around.committing, 1);
        queue_wake(around.inbound);
    }
    stop();
}
END_TEST

SUITE("core_outage", NULL, NULL, TEST(presence_does_not_stop_the_core_while_the_journal_is_away),
      TEST(senders_of_what_filled_the_groups_are_told_and_reads_are_answered),
      TEST(presence_is_noted_once_the_journal_is_back))
