/* The tests follow what an agent owes its broker over reconnects: statements, results that were not
 * accepted, and files that the broker lost. */
#include "tests/support/agent_play.h"
#include "tests/support/suite.h"

START_TEST(a_reconnect_states_what_is_held_and_sends_results_as_they_were)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    grant(&play, 1, 2, 60000);
    dispatch(&play, 1, 0, 0);
    dispatch(&play, 1, 1, 0);
    dispatch(&play, 1, 2, 1);
    (void)finish(&play, 1, 0, OUTCOME_OK);
    pass_ms(&play, A_BATCH_MS);
    struct seen before = *find_seen(&play, MESSAGE_RESULTS); /* the answer never comes */
    (void)actions(&play);

    welcome(&play, &cluster);
    ck_assert_str_eq(actions(&play), "ready");
    const struct seen *after = find_seen(&play, MESSAGE_RESULTS);
    ck_assert_ptr_nonnull(after);
    ck_assert(id128_equal(&after->id, &before.id));
    ck_assert(hash32_equal(&after->body, &before.body));

    const Bourse__V1__Statement *held =
        (const Bourse__V1__Statement *)(const void *)find_seen(&play, MESSAGE_STATEMENT_HELD)
            ->message;
    ck_assert_uint_eq(held->n_leases, 1);
    ck_assert_uint_eq(held->leases[0]->lease, 1);
    ck_assert_uint_eq(held->leases[0]->n_work, 3);

    accept(&play, find_seen(&play, MESSAGE_RESULTS));
    ck_assert_uint_eq(agent_session_counts(play.session).owed, 0);
    ck_assert_int_eq(finish(&play, 1, 1, OUTCOME_OK), AGENT_OK); /* it ran on meanwhile */
}
END_TEST

static void reject_to_leader(struct play *play, const struct seen *seen, const char *leader)
{
    struct id128 id = seen->id;
    Bourse__V1__Reject body = BOURSE__V1__REJECT__INIT;
    body.code = REJECT_NOT_LEADER;
    body.text = (char *)(uintptr_t) "no";
    body.leader_address = (char *)(uintptr_t)leader;
    say(play, MESSAGE_REJECT, &id, &body.base);
}

/* A failover ends no lease and no work. The result that was under way goes to the new leader as it
 * was, beside a statement of all that the agent holds. */
START_TEST(leases_and_results_survive_a_change_of_the_leader)
{
    static const struct contact brokers[] = {{"tcp://a:4770", "tcp://a:4771"},
                                             {"tcp://b:4770", "tcp://b:4771"}};
    CLEANUP(play_end) struct play play;
    play_start_among(&play, 0, brokers, 2);
    settle(&play);
    grant(&play, 1, 2, 60000);
    dispatch(&play, 1, 0, 0);
    dispatch(&play, 1, 1, 1);
    (void)finish(&play, 1, 0, OUTCOME_OK);
    pass_ms(&play, A_BATCH_MS);
    struct seen before = *find_seen(&play, MESSAGE_RESULTS);
    (void)actions(&play);

    reject_to_leader(&play, &before, "tcp://b:4770");
    struct agent_action action;
    ck_assert(agent_session_action(play.session, &action));
    ck_assert_int_eq(action.type, AGENT_RECONNECT);
    ck_assert(action.parting.is_of_several);
    ck_assert_str_eq(action.parting.text,
                     "tcp://a:4770: it follows another broker; next is tcp://b:4770");
    ck_assert(!agent_session_action(play.session, &action)); /* nothing is cancelled */
    ck_assert_str_eq(agent_session_address(play.session)->blobs, "tcp://b:4771");
    ck_assert_int_eq(finish(&play, 1, 1, OUTCOME_OK), AGENT_OK); /* while no broker is there */

    welcome(&play, &cluster);
    const struct seen *after = find_seen(&play, MESSAGE_RESULTS);
    ck_assert_ptr_nonnull(after);
    ck_assert(id128_equal(&after->id, &before.id));
    ck_assert(hash32_equal(&after->body, &before.body));
    const Bourse__V1__Statement *held =
        (const Bourse__V1__Statement *)(const void *)find_seen(&play, MESSAGE_STATEMENT_HELD)
            ->message;
    ck_assert_uint_eq(held->n_leases, 1);
    ck_assert_uint_eq(held->leases[0]->n_work, 2);
    pass_ms(&play, A_BATCH_MS);
    ck_assert_int_eq(sent_outcome(&play, 1), OUTCOME_OK);
}
END_TEST

START_TEST(a_statement_waits_until_what_was_missed_has_come)
{
    struct play play;
    play_start(&play);
    settle(&play);
    grant(&play, 1, 2, 60000);
    dispatch(&play, 1, 0, 0);
    uint64_t seen = play.sequence;
    static const uint8_t log_key[32];
    agent_session_connected(play.session, play.now_ns, 7);
    forget_seen(&play);
    struct id128 id = find_seen(&play, MESSAGE_HELLO)->id;
    Bourse__V1__Welcome body = BOURSE__V1__WELCOME__INIT;
    body.version = 1;
    body.cluster = view(cluster.bytes, 16);
    body.session = play.number;
    body.heartbeat_ms = HEARTBEAT_MS;
    body.log_time_ms = 5000000;
    body.log_origin = (char *)(uintptr_t) "example.test/log";
    body.log_key = view(log_key, 32);
    body.max_message_bytes = LIMIT_MESSAGE_BYTES;
    body.has_resumed = body.has_missed = body.has_as_of_ns = 1;
    body.resumed = 1;
    body.missed = 1;
    body.as_of_ns = 123;
    play.sequence = seen - 1; /* Welcome carries the number after which it goes on */
    say(&play, MESSAGE_WELCOME, &id, &body.base);
    ck_assert_ptr_null(find_seen(&play, MESSAGE_STATEMENT_HELD));
    dispatch(&play, 1, 1, 1); /* the one that was missed */
    const struct seen *stated = find_seen(&play, MESSAGE_STATEMENT_HELD);
    ck_assert_ptr_nonnull(stated);
    const Bourse__V1__Statement *statement = (const void *)stated->message;
    ck_assert_uint_eq(statement->n_leases, 1);
    ck_assert_uint_eq(statement->leases[0]->n_work, 2);
    ck_assert_int_eq(statement->as_of_ns, 123);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ORDER_REPLACE), 1); /* does the ask stand? */
    play_end(&play);
}
END_TEST

START_TEST(work_that_finishes_while_the_broker_is_away_is_sent_when_it_is_back)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    grant(&play, 1, 1, 600000);
    dispatch(&play, 1, 0, 0);
    for (int i = 0; i < 10; i++) {
        pass_ms(&play, 1000);
    }
    (void)actions(&play);
    ck_assert(!agent_session_counts(play.session).ready);
    ck_assert_int_eq(finish(&play, 1, 0, OUTCOME_OK), AGENT_OK);
    pass_ms(&play, 10);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_RESULTS), 0);
    welcome(&play, &cluster);
    pass_ms(&play, A_BATCH_MS);
    ck_assert_int_eq(sent_outcome(&play, 0), OUTCOME_OK);
}
END_TEST

START_TEST(a_busy_broker_gets_the_results_again)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    grant(&play, 1, 1, 60000);
    dispatch(&play, 1, 0, 0);
    (void)finish(&play, 1, 0, OUTCOME_OK);
    pass_ms(&play, A_BATCH_MS);
    reject(&play, find_seen(&play, MESSAGE_RESULTS), REJECT_BUSY);
    forget_seen(&play);
    pass_ms(&play, 10);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_RESULTS), 0);
    pass_ms(&play, 100);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_RESULTS), 1);
    ck_assert_uint_eq(agent_session_counts(play.session).owed, 1);
}
END_TEST

START_TEST(one_bad_result_does_not_take_its_neighbour_along)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    grant(&play, 1, 2, 60000);
    dispatch(&play, 1, 0, 0);
    dispatch(&play, 1, 1, 1);
    (void)finish(&play, 1, 0, OUTCOME_OK);
    (void)finish(&play, 1, 1, OUTCOME_OK);
    pass_ms(&play, A_BATCH_MS);
    reject(&play, find_seen(&play, MESSAGE_RESULTS), REJECT_NOT_FOUND);
    forget_seen(&play);
    pass_ms(&play, A_BATCH_MS);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_RESULTS), 2);
    reject(&play, find_seen(&play, MESSAGE_RESULTS), REJECT_NOT_FOUND);
    ck_assert_uint_eq(agent_session_counts(play.session).refused, 1);
    ck_assert_uint_eq(agent_session_counts(play.session).owed, 1);
}
END_TEST

/* Three results of one message are answered: so many count for nothing. */
static void check_counts(int64_t lacking, uint64_t accepted, uint64_t refused)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    grant(&play, 1, 3, 60000);
    for (uint32_t i = 0; i < 3; i++) {
        dispatch(&play, 1, i, i);
    }
    dispatch(&play, 1, 3, 0); /* goes on, so that the others wait for company */
    for (uint32_t i = 0; i < 3; i++) {
        (void)finish_with_file(&play, 1, i);
    }
    pass_ms(&play, A_BATCH_MS);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_RESULTS), 1);
    reject_of(&play, find_seen(&play, MESSAGE_RESULTS), REJECT_OUTPUT_NOT_STORED, lacking);
    ck_assert_uint_eq(agent_session_counts(play.session).owed, 0);
    ck_assert_uint_eq(agent_session_counts(play.session).accepted, accepted);
    ck_assert_uint_eq(agent_session_counts(play.session).refused, refused);
}

START_TEST(only_results_whose_files_are_not_stored_count_as_refused)
{
    check_counts(1, 2, 1);
    check_counts(2, 1, 2);
    check_counts(9, 0, 3); /* more than were sent */
    check_counts(0, 2, 1); /* the broker does not say how many */
}
END_TEST

/* One result with a file is sent, and waits for its answer. */
static void send_with_file(struct play *play)
{
    play_start(play);
    settle(play);
    grant(play, 1, 1, 60000);
    dispatch(play, 1, 0, 0);
    (void)actions(play);
    ck_assert_int_eq(finish_with_file(play, 1, 0), AGENT_OK);
    pass_ms(play, A_BATCH_MS);
    ck_assert_uint_eq(count_seen(play, MESSAGE_RESULTS), 1);
    ck_assert_str_eq(actions(play), "");
}

START_TEST(what_the_broker_lost_is_stored_again_and_the_same_result_sent_again)
{
    static const struct agent_work name = {.lease = 1, .index = 0, .attempt = 1};
    CLEANUP(play_end) struct play play;
    send_with_file(&play);
    const Bourse__V1__Results *sent = (const void *)find_seen(&play, MESSAGE_RESULTS)->message;
    ck_assert(sent->has_can_store_again && sent->can_store_again);
    const struct hash32 first = results_leaf(sent->results[0].data, sent->results[0].len);
    ck_assert_int_eq(agent_session_stored(play.session, play.now_ns, &name, true, ""),
                     AGENT_UNKNOWN);
    reject(&play, find_seen(&play, MESSAGE_RESULTS), REJECT_OUTPUT_LOST);
    forget_seen(&play);
    ck_assert_str_eq(actions(&play), "note, store 1/0");
    ck_assert_int_eq(finish(&play, 1, 0, OUTCOME_OK), AGENT_UNKNOWN); /* it has its result */
    pass_ms(&play, A_BATCH_MS);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_RESULTS), 0); /* not before it is stored */
    ck_assert(!agent_session_drained(play.session));

    ck_assert_int_eq(agent_session_stored(play.session, play.now_ns, &name, true, ""), AGENT_OK);
    pass_ms(&play, A_BATCH_MS);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_RESULTS), 1);
    sent = (const void *)find_seen(&play, MESSAGE_RESULTS)->message;
    const struct hash32 again = results_leaf(sent->results[0].data, sent->results[0].len);
    ck_assert(hash32_equal(&first, &again));
    accept(&play, find_seen(&play, MESSAGE_RESULTS));
    ck_assert_str_eq(actions(&play), "settled 1/0");
    ck_assert_uint_eq(agent_session_counts(play.session).accepted, 1);
    ck_assert_uint_eq(agent_session_counts(play.session).refused, 0);
}
END_TEST

START_TEST(what_is_lost_again_and_again_is_nobodys_fault)
{
    static const struct agent_work name = {.lease = 1, .index = 0, .attempt = 1};
    CLEANUP(play_end) struct play play;
    send_with_file(&play);
    for (int i = 0; i < AGENT_STORE_TRIES; i++) {
        reject(&play, find_seen(&play, MESSAGE_RESULTS), REJECT_OUTPUT_LOST);
        forget_seen(&play);
        ck_assert_str_eq(actions(&play), "note, store 1/0");
        ck_assert_int_eq(agent_session_stored(play.session, play.now_ns, &name, true, ""),
                         AGENT_OK);
        pass_ms(&play, A_BATCH_MS);
    }
    reject(&play, find_seen(&play, MESSAGE_RESULTS), REJECT_OUTPUT_LOST);
    forget_seen(&play);
    ck_assert_str_eq(actions(&play), "settled 1/0");
    pass_ms(&play, A_BATCH_MS);
    ck_assert_int_eq(sent_outcome(&play, 0), OUTCOME_INPUT_MISSING);
    accept(&play, find_seen(&play, MESSAGE_RESULTS));
    ck_assert_str_eq(actions(&play), "");
}
END_TEST

START_TEST(what_cannot_be_stored_again_is_nobodys_fault_either)
{
    static const struct agent_work name = {.lease = 1, .index = 0, .attempt = 1};
    CLEANUP(play_end) struct play play;
    send_with_file(&play);
    reject(&play, find_seen(&play, MESSAGE_RESULTS), REJECT_OUTPUT_LOST);
    forget_seen(&play);
    (void)actions(&play);
    ck_assert_int_eq(
        agent_session_stored(play.session, play.now_ns, &name, false, "no room to hold it"),
        AGENT_OK);
    pass_ms(&play, A_BATCH_MS);
    ck_assert_int_eq(sent_outcome(&play, 0), OUTCOME_INPUT_MISSING);
}
END_TEST

START_TEST(only_the_result_whose_file_was_lost_is_stored_again)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    grant(&play, 1, 2, 60000);
    dispatch(&play, 1, 0, 0);
    dispatch(&play, 1, 1, 1);
    (void)actions(&play);
    (void)finish_with_file(&play, 1, 0);
    (void)finish_with_file(&play, 1, 1);
    pass_ms(&play, A_BATCH_MS);
    reject(&play, find_seen(&play, MESSAGE_RESULTS), REJECT_OUTPUT_LOST);
    forget_seen(&play);
    pass_ms(&play, A_BATCH_MS);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_RESULTS), 2); /* each alone */
    accept(&play, find_seen(&play, MESSAGE_RESULTS));
    reject(&play, last_seen(&play, MESSAGE_RESULTS), REJECT_OUTPUT_LOST);
    ck_assert_str_eq(actions(&play), "note, settled 1/0, note, store 1/1");
}
END_TEST

SUITE("provider reconnect", NULL, NULL,
      TEST(a_reconnect_states_what_is_held_and_sends_results_as_they_were),
      TEST(leases_and_results_survive_a_change_of_the_leader),
      TEST(a_statement_waits_until_what_was_missed_has_come),
      TEST(work_that_finishes_while_the_broker_is_away_is_sent_when_it_is_back),
      TEST(a_busy_broker_gets_the_results_again),
      TEST(one_bad_result_does_not_take_its_neighbour_along),
      TEST(only_results_whose_files_are_not_stored_count_as_refused),
      TEST(what_the_broker_lost_is_stored_again_and_the_same_result_sent_again),
      TEST(what_is_lost_again_and_again_is_nobodys_fault),
      TEST(what_cannot_be_stored_again_is_nobodys_fault_either),
      TEST(only_the_result_whose_file_was_lost_is_stored_again))
