/* Lost connections to a real broker: who comes back gets what it missed, or is told that it cannot
 * (P15). */
#include "tests/support/broker_process.h"

#include "base/checked.h"
#include "protocol/limits.h"
#include "protocol/message.h"
#include "runtime/clock.h"
#include "runtime/entropy.h"
#include "tests/support/suite.h"

#include <check.h>
#include <signal.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

static ProtobufCBinaryData bytes_of(const void *bytes, size_t length)
{
    return (ProtobufCBinaryData){.data = (uint8_t *)(uintptr_t)bytes, .len = length};
}

static struct id128 submit(struct broker_client *client)
{
    static const uint8_t manifest[32] = {1};
    Bourse__V1__SubmitJob body = BOURSE__V1__SUBMIT_JOB__INIT;
    Bourse__V1__Requirement needs = BOURSE__V1__REQUIREMENT__INIT;
    struct id128 id = entropy_id();
    body.name = (char *)(uintptr_t) "job";
    body.manifest = bytes_of(manifest, sizeof manifest);
    body.subtasks = 3;
    body.budget_micro = 1000000;
    body.has_cap_micro = true;
    body.cap_micro = 1000000;
    body.needs = &needs;
    body.slots = 1;
    body.limit_ms = 60000;
    body.term_ms = 600000;
    body.verify = (char *)(uintptr_t) "none";
    struct dialogue_event event = broker_client_ask(client, MESSAGE_SUBMIT_JOB, &id, &body.base);
    ck_assert_msg(event.type == DIALOGUE_ACCEPTED, "%s", event.text);
    return id;
}

static void cancel(struct broker_client *client, const struct id128 *job)
{
    Bourse__V1__JobCancel body = BOURSE__V1__JOB_CANCEL__INIT;
    body.job = bytes_of(job->bytes, sizeof job->bytes);
    struct dialogue_event event = broker_client_ask(client, MESSAGE_JOB_CANCEL, NULL, &body.base);
    ck_assert_msg(event.type == DIALOGUE_ACCEPTED, "%s", event.text);
}

static void watch(struct broker_client *client, const struct id128 *job)
{
    Bourse__V1__JobsRequest body = BOURSE__V1__JOBS_REQUEST__INIT;
    body.has_job = true;
    body.job = bytes_of(job->bytes, sizeof job->bytes);
    body.has_watch = true;
    body.watch = true;
    struct dialogue_event event = broker_client_ask(client, MESSAGE_JOBS_REQUEST, NULL, &body.base);
    ck_assert_int_eq(event.type, DIALOGUE_REPLY);
    codec_free(&event.body);
}

/* The state that the next event of the job tells. */
static uint32_t next_state(struct broker_client *client, const struct id128 *job)
{
    struct dialogue_event event = broker_client_push(client, MESSAGE_JOB_EVENT);
    const Bourse__V1__JobEvent *told = (const void *)event.body;
    ck_assert_mem_eq(told->job->job.data, job->bytes, sizeof job->bytes);
    uint32_t state = told->job->state;
    codec_free(&event.body);
    return state;
}

static struct broker_process broker;
static struct broker_client watcher;
static struct broker_client other;

static void set_up(void)
{
    ck_assert_int_ge(sodium_init(), 0);
    broker_process_init(&broker, "");
    broker_process_start(&broker);
    broker_client_open(&watcher, &broker, broker.owner, SESSION_CONSUMER);
    broker_client_open(&other, &broker, broker.owner, SESSION_CONSUMER);
}

static void tear_down(void)
{
    broker_client_close(&watcher);
    broker_client_close(&other);
    broker_process_fini(&broker);
}

START_TEST(what_was_missed_comes_over_the_new_connection)
{
    struct id128 job = submit(&watcher);
    watch(&watcher, &job);
    uint64_t session = dialogue_welcome(watcher.dialogue)->session;
    cancel(&other, &job); /* the watcher does not read meanwhile, and then its connection is gone */
    broker_client_reopen(&watcher);
    const Bourse__V1__Welcome *welcome = dialogue_welcome(watcher.dialogue);
    ck_assert(welcome->has_resumed && welcome->resumed);
    ck_assert(!welcome->has_gap);
    ck_assert_uint_eq(welcome->session, session);
    uint32_t state = JOB_OPEN;
    while (state == JOB_OPEN) { /* it did not ask again */
        state = next_state(&watcher, &job);
    }
    ck_assert_uint_eq(state, JOB_CANCELLED);
}
END_TEST

START_TEST(a_session_goes_on_as_often_as_its_connection_is_lost)
{
    for (int i = 0; i < 10; i++) {
        struct id128 job = submit(&watcher);
        watch(&watcher, &job);
        broker_client_reopen(&watcher);
        ck_assert(dialogue_welcome(watcher.dialogue)->resumed);
        cancel(&other, &job);
        while (next_state(&watcher, &job) == JOB_OPEN) {
        }
    }
}
END_TEST

START_TEST(an_answer_that_was_lost_comes_again_without_asking)
{
    Bourse__V1__BalanceRequest body = BOURSE__V1__BALANCE_REQUEST__INIT;
    struct id128 id = entropy_id();
    ck_assert_int_eq(dialogue_request(watcher.dialogue, clock_monotonic_ns(),
                                      MESSAGE_BALANCE_REQUEST, &id, &body.base),
                     DIALOGUE_OK);
    const uint8_t *message;
    size_t length;
    ck_assert(dialogue_outgoing(watcher.dialogue, &message, &length));
    ck_assert(link_send(watcher.link, message, length));
    (void)submit(
        &other); /* the broker is past it by now; its answer is on its way, and nobody reads it */
    broker_client_reopen(&watcher);
    int64_t deadline_ns = clock_monotonic_ns() + 120 * NS_PER_S;
    struct dialogue_event event = {.type = DIALOGUE_NOTHING};
    while (event.type != DIALOGUE_REPLY) {
        ck_assert_int_lt(clock_monotonic_ns(), deadline_ns);
        codec_free(&event.body);
        if (link_receive(watcher.link, 1000, &message, &length) == 1) {
            dialogue_incoming(watcher.dialogue, clock_monotonic_ns(), message, length, &event);
        }
        while (!dialogue_catching_up(watcher.dialogue) &&
               dialogue_outgoing(watcher.dialogue, &message, &length)) {
            (void)link_send(watcher.link, message, length);
        }
    }
    ck_assert(id128_equal(&event.id, &id));
    codec_free(&event.body);
}
END_TEST

START_TEST(a_broker_that_restarted_says_that_the_gap_is_too_old)
{
    struct id128 job = submit(&watcher);
    watch(&watcher, &job);
    (void)broker_process_stop(&broker, SIGKILL);
    broker_process_start(&broker);
    broker_client_reopen(&watcher);
    const Bourse__V1__Welcome *welcome = dialogue_welcome(watcher.dialogue);
    ck_assert(!welcome->has_resumed);
    ck_assert(welcome->has_gap);
    ck_assert_uint_eq(welcome->gap, REJECT_GAP_TOO_OLD);
    watch(&watcher, &job); /* the snapshot, and what changes from now on */
    cancel(&watcher, &job);
    while (next_state(&watcher, &job) == JOB_OPEN) {
    }
    broker_client_reopen(&other);
}
END_TEST

START_TEST(goodbye_ends_a_session_for_good)
{
    ck_assert_int_eq(dialogue_goodbye(watcher.dialogue, clock_monotonic_ns(), "done"), DIALOGUE_OK);
    const uint8_t *message;
    size_t length;
    while (dialogue_outgoing(watcher.dialogue, &message, &length)) {
        ck_assert(link_send(watcher.link, message, length));
    }
    (void)submit(&other);
    int64_t deadline_ns = clock_monotonic_ns() + 120 * NS_PER_S;
    do { /* until the goodbye was read: a broken connection alone would resume */
        ck_assert_int_lt(clock_monotonic_ns(), deadline_ns);
        broker_client_reopen(&watcher);
    } while (dialogue_welcome(watcher.dialogue)->resumed);
    ck_assert_uint_eq(dialogue_welcome(watcher.dialogue)->gap, REJECT_GAP_TOO_OLD);
}
END_TEST

SUITE("resume", set_up, tear_down, TEST(what_was_missed_comes_over_the_new_connection),
      TEST(a_session_goes_on_as_often_as_its_connection_is_lost),
      TEST(an_answer_that_was_lost_comes_again_without_asking),
      TEST(a_broker_that_restarted_says_that_the_gap_is_too_old),
      TEST(goodbye_ends_a_session_for_good))
