/* The tests follow the session of an agent: its work, the terms of its leases, and leaving. Its
 * asks are in test_provider_asks.c, its reconnects in test_provider_reconnect.c, its batches of
 * results in test_provider_batches.c. */
#include "tests/support/agent_play.h"
#include "tests/support/suite.h"

START_TEST(a_lane_runs_one_at_a_time_and_hears_of_the_next)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    (void)actions(&play);

    grant(&play, 1, 2, 60000);
    dispatch(&play, 1, 0, 0);
    dispatch(&play, 1, 1, 0);
    dispatch(&play, 1, 2, 1);
    ck_assert_str_eq(actions(&play), "begin 1, start 1/0, prepare 1/1, start 1/2");

    struct agent_work first = {.lease = 1, .index = 0, .attempt = 1};
    ck_assert_int_eq(agent_session_left(play.session, play.now_ns, &first), AGENT_OK);
    ck_assert_str_eq(actions(&play), "start 1/1");
    ck_assert_int_eq(agent_session_left(play.session, play.now_ns, &first), AGENT_UNKNOWN);
    ck_assert_int_eq(finish(&play, 1, 0, OUTCOME_OK), AGENT_OK);
    ck_assert_str_eq(actions(&play), "");
    ck_assert_int_eq(finish(&play, 1, 0, OUTCOME_OK), AGENT_UNKNOWN);
}
END_TEST

START_TEST(what_a_subtask_is_given_is_kept_until_its_result_is_accepted)
{
    CLEANUP(play_end) struct play play;
    const struct agent_work bare = {.lease = 1, .index = 7, .attempt = 1};
    const struct agent_work given = {.lease = 1, .index = 9, .attempt = 1};
    play_start(&play);
    settle(&play);
    (void)actions(&play);
    grant(&play, 1, 1, 60000);
    dispatch(&play, 1, 7, 0);
    dispatch_given(&play, 1, 9, 4, "part.npy");
    ck_assert_str_eq(actions(&play), "begin 1, start 1/7, prepare 1/9");
    ck_assert_ptr_null(agent_session_inputs(play.session, &bare));
    const Bourse__V1__Work *kept = agent_session_inputs(play.session, &given);
    ck_assert_ptr_nonnull(kept);
    ck_assert_uint_eq(kept->n_given, 1);
    ck_assert_uint_eq(kept->given[0]->index, 4);
    ck_assert_str_eq(kept->given[0]->outputs[0]->name, "part.npy");
    ck_assert_uint_eq(codec_hash(kept->given[0]->outputs[0]->hash).bytes[0], 0x77);

    ck_assert_int_eq(finish(&play, 1, 7, OUTCOME_OK), AGENT_OK);
    ck_assert_str_eq(actions(&play), "start 1/9");
    ck_assert_int_eq(finish(&play, 1, 9, OUTCOME_OK), AGENT_OK);
    ck_assert_ptr_eq(agent_session_inputs(play.session, &given), kept);
    pass_ms(&play, A_BATCH_MS);
    accept(&play, find_seen(&play, MESSAGE_RESULTS));
    ck_assert_ptr_null(agent_session_inputs(play.session, &given));
}
END_TEST

START_TEST(the_checkpoint_that_it_goes_on_from_is_kept_likewise)
{
    CLEANUP(play_end) struct play play;
    static const struct id128 none;
    const struct agent_work name = {.lease = 1, .index = 3, .attempt = 2};
    uint8_t hash[32] = {0x55};
    Bourse__V1__Output file = BOURSE__V1__OUTPUT__INIT;
    Bourse__V1__Output *files = &file;
    Bourse__V1__Saved saved = BOURSE__V1__SAVED__INIT;
    Bourse__V1__Work work = BOURSE__V1__WORK__INIT;
    Bourse__V1__Work *works = &work;
    Bourse__V1__Dispatch dispatched = BOURSE__V1__DISPATCH__INIT;
    file.name = (char *)(uintptr_t) "deep/n";
    file.hash.data = hash;
    file.hash.len = sizeof hash;
    saved.n_files = 1;
    saved.files = &files;
    saved.has_attempt = true;
    saved.attempt = 1;
    work.index = name.index;
    work.attempt = name.attempt;
    work.saved = &saved;
    dispatched.lease = 1;
    dispatched.n_work = 1;
    dispatched.work = &works;
    play_start(&play);
    settle(&play);
    grant(&play, 1, 1, 60000);
    say(&play, MESSAGE_DISPATCH, &none, &dispatched.base);
    const Bourse__V1__Work *kept = agent_session_inputs(play.session, &name);
    ck_assert_ptr_nonnull(kept);
    ck_assert_uint_eq(kept->saved->attempt, 1);
    ck_assert_str_eq(kept->saved->files[0]->name, "deep/n");
}
END_TEST

START_TEST(the_seed_of_a_check_is_kept_like_what_it_is_given)
{
    static const struct id128 none;
    static const uint8_t seed[32] = {0x5e, 0xed};
    const struct agent_work check = {.lease = 1, .index = 3, .attempt = 2};
    CLEANUP(play_end) struct play play;
    Bourse__V1__Work work = BOURSE__V1__WORK__INIT;
    Bourse__V1__Work *works[] = {&work};
    Bourse__V1__Dispatch body = BOURSE__V1__DISPATCH__INIT;
    play_start(&play);
    settle(&play);
    (void)actions(&play);
    grant(&play, 1, 1, 60000);
    work.index = 3;
    work.attempt = 2;
    work.has_seed = 1;
    work.seed = view(seed, sizeof seed);
    body.lease = 1;
    body.n_work = 1;
    body.work = works;
    say(&play, MESSAGE_DISPATCH, &none, &body.base);
    ck_assert_str_eq(actions(&play), "begin 1, start 1/3");
    const Bourse__V1__Work *kept = agent_session_inputs(play.session, &check);
    ck_assert_ptr_nonnull(kept);
    ck_assert(kept->has_seed);
    ck_assert_mem_eq(kept->seed.data, seed, sizeof seed);
}
END_TEST

START_TEST(urgent_work_goes_before_what_is_queued_in_its_lane)
{
    struct play play;
    play_start(&play);
    settle(&play);
    grant(&play, 1, 2, 60000);
    dispatch(&play, 1, 0, 0);
    dispatch(&play, 1, 1, 0);
    (void)actions(&play);
    dispatch_as(&play, MESSAGE_DISPATCH, 1, 7, 2, 0, true);
    dispatch_as(&play, MESSAGE_DISPATCH, 1, 8, 2, 0, true);
    ck_assert_str_eq(actions(&play), "prepare 1/7");
    ck_assert_int_eq(finish(&play, 1, 0, OUTCOME_OK), AGENT_OK); /* what ran is not disturbed */
    ck_assert_str_eq(actions(&play), "start 1/7, prepare 1/8");
    struct agent_work urgent = {.lease = 1, .index = 7, .attempt = 2};
    ck_assert_int_eq(agent_session_left(play.session, play.now_ns, &urgent), AGENT_OK);
    ck_assert_str_eq(actions(&play), "start 1/8");
    urgent.index = 8;
    ck_assert_int_eq(agent_session_left(play.session, play.now_ns, &urgent), AGENT_OK);
    ck_assert_str_eq(actions(&play), "start 1/1");
    play_end(&play);
}
END_TEST

START_TEST(results_leave_together_and_are_owed_until_accepted)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    grant(&play, 1, 2, 60000);
    dispatch(&play, 1, 0, 0);
    dispatch(&play, 1, 1, 1);
    dispatch(&play, 1, 2, 1); /* goes on */
    ck_assert_int_eq(finish(&play, 1, 0, OUTCOME_OK), AGENT_OK);
    ck_assert_int_eq(finish(&play, 1, 1, OUTCOME_PROGRAM_FAILED), AGENT_OK);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_RESULTS), 0);

    pass_ms(&play, A_BATCH_MS);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_RESULTS), 1);
    ck_assert_int_eq(sent_outcome(&play, 0), OUTCOME_OK);
    ck_assert_int_eq(sent_outcome(&play, 1), OUTCOME_PROGRAM_FAILED);
    ck_assert_uint_eq(agent_session_counts(play.session).owed, 2);
    accept(&play, find_seen(&play, MESSAGE_RESULTS));
    ck_assert_uint_eq(agent_session_counts(play.session).owed, 0);
    ck_assert_uint_eq(agent_session_counts(play.session).accepted, 2);
}
END_TEST

START_TEST(every_result_of_a_simulated_device_says_so)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    static const struct attribute simulated = {.name = "simulated", .number = 1};
    struct agent_device offered = {.device = device,
                                   .instrument = "sim.lpu.groq.v1",
                                   .slots = 4,
                                   .attributes = &simulated,
                                   .attribute_count = 1};
    struct agent_ask ask = {.device = device, .slots = 4, .price_micro = 100000};
    ck_assert_int_eq(agent_session_offer(play.session, play.now_ns, &offered, 1, &ask, 1),
                     AGENT_OK);
    settle(&play);
    grant(&play, 1, 1, 60000);
    dispatch(&play, 1, 0, 0);
    dispatch(&play, 1, 1, 0);
    ck_assert_int_eq(finish(&play, 1, 0, OUTCOME_OK), AGENT_OK);
    agent_session_drain(play.session, play.now_ns, true);
    ck_assert_int_eq(finish(&play, 1, 1, OUTCOME_CANCELLED), AGENT_OK);
    pass_ms(&play, A_BATCH_MS);
    ck_assert_int_eq(sent_outcome(&play, 0), OUTCOME_OK);
    ck_assert(play.is_simulated);
    ck_assert_int_eq(sent_outcome(&play, 1), OUTCOME_CANCELLED);
    ck_assert(play.is_simulated);

    CLEANUP(play_end) struct play real;
    play_start(&real);
    settle(&real);
    grant(&real, 1, 1, 60000);
    dispatch(&real, 1, 0, 0);
    ck_assert_int_eq(finish(&real, 1, 0, OUTCOME_OK), AGENT_OK);
    pass_ms(&real, A_BATCH_MS);
    ck_assert_int_eq(sent_outcome(&real, 0), OUTCOME_OK);
    ck_assert(!real.is_simulated);
}
END_TEST

START_TEST(results_do_not_wait_for_company_that_cannot_come)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    grant(&play, 1, 2, 60000);
    dispatch(&play, 1, 0, 0);
    dispatch(&play, 1, 1, 1);
    ck_assert_int_eq(finish(&play, 1, 0, OUTCOME_OK), AGENT_OK);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_RESULTS), 0);
    ck_assert_int_eq(finish(&play, 1, 1, OUTCOME_OK), AGENT_OK);
    ck_assert_uint_eq(count_seen(&play, MESSAGE_RESULTS), 1);
}
END_TEST

START_TEST(a_lane_takes_several_once_its_executor_does)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    (void)actions(&play);
    grant(&play, 1, 2, 60000);
    for (uint32_t i = 0; i < 5; i++) {
        dispatch(&play, 1, i, i % 2);
    }
    ck_assert_str_eq(actions(&play), "begin 1, start 1/0, start 1/1, prepare 1/2, prepare 1/3");
    ck_assert_int_eq(agent_session_pipeline(play.session, 1, 2), AGENT_OK);
    ck_assert_str_eq(actions(&play), "start 1/2, prepare 1/4, start 1/3");
    ck_assert_int_eq(agent_session_pipeline(play.session, 1, 1), AGENT_OK);
    ck_assert_int_eq(finish(&play, 1, 2, OUTCOME_OK), AGENT_OK); /* in any order */
    ck_assert_str_eq(actions(&play), "start 1/4");
    ck_assert_uint_eq(agent_session_counts(play.session).running, 4);
    ck_assert_uint_eq(agent_session_counts(play.session).leases, 1);
    withdraw(&play, 1, 3);
    ck_assert_str_eq(actions(&play), "cancel 1/3");
    ck_assert_int_eq(agent_session_pipeline(play.session, 77, 2), AGENT_UNKNOWN);
}
END_TEST

START_TEST(a_dispatch_that_comes_twice_runs_once)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    (void)actions(&play);
    grant(&play, 1, 1, 60000);
    grant(&play, 1, 1, 60000);
    dispatch(&play, 1, 0, 0);
    dispatch(&play, 1, 0, 0); /* runs */
    ck_assert_str_eq(actions(&play), "begin 1, start 1/0");
    (void)finish(&play, 1, 0, OUTCOME_OK);
    dispatch(&play, 1, 0, 0); /* done, owed */
    pass_ms(&play, A_BATCH_MS);
    accept(&play, find_seen(&play, MESSAGE_RESULTS));
    dispatch(&play, 1, 0, 0); /* done, accepted */
    pass_ms(&play, A_BATCH_MS);

    ck_assert_str_eq(actions(&play), "");
    ck_assert_uint_eq(count_seen(&play, MESSAGE_RESULTS), 1);
    ck_assert_uint_eq(agent_session_counts(play.session).duplicates, 4);

    dispatch_as(&play, MESSAGE_DISPATCH, 1, 0, 2, 0, false); /* another attempt is other work */
    ck_assert_str_eq(actions(&play), "start 1/0");
}
END_TEST

START_TEST(work_of_an_unknown_lease_is_counted_and_not_run)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    (void)actions(&play);
    dispatch(&play, 77, 0, 0);
    withdraw(&play, 77, 0);
    end_lease(&play, 77, LEASE_END_RETURNED);
    ck_assert_str_eq(actions(&play), "");
    ck_assert_uint_eq(agent_session_counts(play.session).ignored, 3);
}
END_TEST

START_TEST(a_lane_or_device_that_is_not_ours_is_refused)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    (void)actions(&play);
    grant(&play, 1, 1, 60000);
    dispatch(&play, 1, 0, 5);
    grant(&play, 2, 40, 60000); /* more slots than the device has */
    dispatch(&play, 2, 1, 0);
    pass_ms(&play, A_BATCH_MS);
    ck_assert_str_eq(actions(&play), "begin 1, note");
    ck_assert_int_eq(sent_outcome(&play, 0), OUTCOME_REFUSED);
    ck_assert_int_eq(sent_outcome(&play, 1), OUTCOME_REFUSED);
}
END_TEST

START_TEST(withdrawn_work_is_answered_by_where_it_is)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    (void)actions(&play);
    grant(&play, 1, 1, 60000);
    dispatch(&play, 1, 0, 0);
    dispatch(&play, 1, 1, 0);
    dispatch(&play, 1, 2, 0);
    (void)actions(&play);

    withdraw(&play, 1, 1); /* queued: answered at once */
    withdraw(&play, 1, 0); /* runs: to be ended */
    withdraw(&play, 1, 0); /* once */
    ck_assert_str_eq(actions(&play), "cancel 1/0");
    pass_ms(&play, A_BATCH_MS);
    ck_assert_int_eq(sent_outcome(&play, 1), OUTCOME_CANCELLED);
    ck_assert_int_eq(sent_outcome(&play, 0), -1);

    ck_assert_int_eq(finish(&play, 1, 0, OUTCOME_OK), AGENT_OK); /* it won the race */
    ck_assert_str_eq(actions(&play), "start 1/2");
    withdraw(&play, 1, 0); /* too late */
    pass_ms(&play, A_BATCH_MS);
    ck_assert_int_eq(sent_outcome(&play, 0), OUTCOME_OK);
    ck_assert_str_eq(actions(&play), "");
}
END_TEST

/* ---------------------------------------------------------------- terms and ends */

START_TEST(a_term_ends_on_our_clock_even_without_the_broker)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    (void)actions(&play);
    grant(&play, 1, 1, 5000);
    dispatch(&play, 1, 0, 0);
    dispatch(&play, 1, 1, 0);
    (void)actions(&play);

    int64_t end_ns = play.now_ns + 5000 * NS_PER_MS;
    bool lost = false;
    while (play.now_ns < end_ns) { /* the broker says nothing: only the connection suffers */
        pass_ms(&play, 250);
        const char *line = actions(&play);
        lost = lost || strcmp(line, "reconnect") == 0;
        if (play.now_ns < end_ns) {
            ck_assert(strcmp(line, "") == 0 || strcmp(line, "reconnect") == 0);
        } else {
            ck_assert_str_eq(line, "cancel 1/0");
        }
    }
    ck_assert(lost);
    ck_assert_int_eq(finish(&play, 1, 0, OUTCOME_CANCELLED), AGENT_OK);
    ck_assert_str_eq(actions(&play), "end 1");

    welcome(&play, &cluster);
    pass_ms(&play, A_BATCH_MS);
    ck_assert_int_eq(sent_outcome(&play, 0), OUTCOME_TERM_OVER);
    ck_assert_int_eq(sent_outcome(&play, 1), OUTCOME_TERM_OVER);
}
END_TEST

START_TEST(a_renewal_runs_from_its_receipt)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    grant(&play, 1, 1, 2000);
    dispatch(&play, 1, 0, 0);
    (void)actions(&play);
    pass_ms(&play, 1000);
    renew(&play, 1, 2000);
    pass_ms(&play, 1500);
    ck_assert_str_eq(actions(&play), "");
    pass_ms(&play, 500);
    ck_assert_str_eq(actions(&play), "cancel 1/0");
}
END_TEST

START_TEST(a_notice_tells_what_runs_and_gives_back_what_waits)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    grant(&play, 1, 1, 60000);
    dispatch(&play, 1, 0, 0);
    dispatch(&play, 1, 1, 0);
    (void)actions(&play);
    notice_lease(&play, 1, 1000);
    ck_assert_str_eq(actions(&play), "notice 1/0");
    notice_lease(&play, 1, 1000); /* again, after a new connection, it is no news */
    ck_assert_str_eq(actions(&play), "");
    dispatch(&play, 1, 2, 0); /* it was on its way */
    ck_assert_str_eq(actions(&play), "");
    pass_ms(&play, A_BATCH_MS);
    ck_assert_int_eq(sent_outcome(&play, 1), OUTCOME_PREEMPTED);
    ck_assert_int_eq(sent_outcome(&play, 2), OUTCOME_PREEMPTED);

    pass_ms(&play, 900);
    ck_assert_str_eq(actions(&play), "");
    pass_ms(&play, 100);
    ck_assert_str_eq(actions(&play), "cancel 1/0"); /* the notice is over */
    ck_assert_int_eq(finish(&play, 1, 0, OUTCOME_CANCELLED), AGENT_OK);
    ck_assert_str_eq(actions(&play), "end 1");
    pass_ms(&play, A_BATCH_MS);
    ck_assert_int_eq(sent_outcome(&play, 0), OUTCOME_PREEMPTED);
}
END_TEST

START_TEST(a_program_that_ends_within_the_notice_has_failed_or_come_to_its_end)
{
    static const struct {
        enum result_outcome is, counts_as;
    } ends[] = {{OUTCOME_OK, OUTCOME_OK},
                {OUTCOME_SIGNALLED, OUTCOME_PREEMPTED},
                {OUTCOME_PROGRAM_FAILED, OUTCOME_PREEMPTED},
                {OUTCOME_OUTPUT_MISSING, OUTCOME_PREEMPTED},
                {OUTCOME_MEMORY_LIMIT, OUTCOME_MEMORY_LIMIT}};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        CLEANUP(play_end) struct play play;
        play_start(&play);
        settle(&play);
        grant(&play, 1, 1, 60000);
        dispatch(&play, 1, 0, 0);
        (void)actions(&play);
        notice_lease(&play, 1, 5000);
        ck_assert_int_eq(finish(&play, 1, 0, ends[i].is), AGENT_OK);
        pass_ms(&play, A_BATCH_MS);
        ck_assert_int_eq(sent_outcome(&play, 0), (int)ends[i].counts_as);
    }
}
END_TEST

/* A lease of a job that saves its state. */
static void grant_saving(struct play *play, uint64_t number)
{
    static const struct id128 none;
    static const uint8_t owner[32] = {1};
    Bourse__V1__LeaseGrant body = BOURSE__V1__LEASE_GRANT__INIT;
    body.lease = number;
    body.job = view(job.bytes, 16);
    body.owner = view(owner, 32);
    body.device = view(device.bytes, 16);
    body.slots = body.slots_per_subtask = 1;
    body.term_ms = body.limit_ms = 60000;
    body.manifest = view(manifest.bytes, 32);
    body.has_checkpoint = body.checkpoint = true;
    say(play, MESSAGE_LEASE_GRANT, &none, &body.base);
}

START_TEST(who_leaves_tells_programs_that_save_their_state)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    (void)actions(&play);
    grant_saving(&play, 1);
    dispatch(&play, 1, 0, 0);
    ck_assert_str_eq(actions(&play), "begin 1, start 1/0");
    agent_session_drain(play.session, play.now_ns, false);
    ck_assert_str_eq(actions(&play), "notice 1/0");
    agent_session_drain(play.session, play.now_ns, false); /* once */
    ck_assert_str_eq(actions(&play), "");
    ck_assert_int_eq(finish(&play, 1, 0, OUTCOME_PROGRAM_FAILED), AGENT_OK);
    pass_ms(&play, A_BATCH_MS);
    ck_assert_int_eq(sent_outcome(&play, 0), OUTCOME_CANCELLED);
}
END_TEST

START_TEST(a_notice_makes_no_lease_longer)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    grant(&play, 1, 1, 2000);
    dispatch(&play, 1, 0, 0);
    (void)actions(&play);
    notice_lease(&play, 1, 60000);
    ck_assert_str_eq(actions(&play), "notice 1/0");
    pass_ms(&play, 2000);
    ck_assert_str_eq(actions(&play), "cancel 1/0");
}
END_TEST

START_TEST(the_broker_ends_a_lease)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    grant(&play, 1, 1, 60000);
    dispatch(&play, 1, 0, 0);
    dispatch(&play, 1, 1, 0);
    (void)actions(&play);
    end_lease(&play, 1, LEASE_END_CANCELLED);
    ck_assert_str_eq(actions(&play), "cancel 1/0");
    ck_assert_int_eq(finish(&play, 1, 0, OUTCOME_CANCELLED), AGENT_OK);
    ck_assert_str_eq(actions(&play), "end 1");
    pass_ms(&play, A_BATCH_MS);
    ck_assert_int_eq(sent_outcome(&play, 0), OUTCOME_CANCELLED);
    accept(&play, find_seen(&play, MESSAGE_RESULTS));
    ck_assert_uint_eq(agent_session_counts(play.session).leases, 0);

    grant(&play, 2, 1, 60000); /* an idle one ends at once */
    end_lease(&play, 2, LEASE_END_RETURNED);
    ck_assert_str_eq(actions(&play), "begin 2, end 2");
}
END_TEST

/* ---------------------------------------------------------------- leaving */

START_TEST(draining_finishes_what_runs_and_says_goodbye)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    settle(&play);
    grant(&play, 1, 1, 60000);
    dispatch(&play, 1, 0, 0);
    dispatch(&play, 1, 1, 0);
    (void)actions(&play);

    agent_session_drain(play.session, play.now_ns, false);
    ck_assert_str_eq(actions(&play), "");
    ck_assert_uint_eq(count_seen(&play, MESSAGE_ORDER_CANCEL), 1);
    ck_assert_int_eq(sent_outcome(&play, 1), OUTCOME_CANCELLED);
    dispatch(&play, 1, 2, 0);
    ck_assert_int_eq(sent_outcome(&play, 2), OUTCOME_CANCELLED);
    agent_session_drain(play.session, play.now_ns, true);
    ck_assert_str_eq(actions(&play), "cancel 1/0");
    ck_assert(!agent_session_drained(play.session));

    (void)finish(&play, 1, 0, OUTCOME_CANCELLED);
    ck_assert_str_eq(actions(&play), "end 1");
    for (size_t i = 0; i < play.seen_count; i++) {
        listen(&play);
        if (play.seen[i].type == MESSAGE_RESULTS) {
            accept(&play, &play.seen[i]);
        }
    }
    ck_assert(agent_session_drained(play.session));
    agent_session_goodbye(play.session, play.now_ns, "done");
    agent_session_goodbye(play.session, play.now_ns, "done");
    ck_assert_uint_eq(count_seen(&play, MESSAGE_GOODBYE), 1);
}
END_TEST

START_TEST(an_offer_over_its_caps_is_refused)
{
    CLEANUP(play_end) struct play play;
    play_start(&play);
    struct agent_device none = {.device = device, .instrument = "cpu", .slots = 0};
    ck_assert_int_eq(agent_session_offer(play.session, play.now_ns, &none, 1, NULL, 0), AGENT_BAD);
    none.slots = LIMIT_SLOTS + 1;
    ck_assert_int_eq(agent_session_offer(play.session, play.now_ns, &none, 1, NULL, 0), AGENT_BAD);
}
END_TEST

SUITE("provider session", NULL, NULL, TEST(a_lane_runs_one_at_a_time_and_hears_of_the_next),
      TEST(what_a_subtask_is_given_is_kept_until_its_result_is_accepted),
      TEST(the_checkpoint_that_it_goes_on_from_is_kept_likewise),
      TEST(the_seed_of_a_check_is_kept_like_what_it_is_given),
      TEST(urgent_work_goes_before_what_is_queued_in_its_lane),
      TEST(results_leave_together_and_are_owed_until_accepted),
      TEST(every_result_of_a_simulated_device_says_so),
      TEST(results_do_not_wait_for_company_that_cannot_come),
      TEST(a_lane_takes_several_once_its_executor_does),
      TEST(a_dispatch_that_comes_twice_runs_once),
      TEST(work_of_an_unknown_lease_is_counted_and_not_run),
      TEST(a_lane_or_device_that_is_not_ours_is_refused),
      TEST(withdrawn_work_is_answered_by_where_it_is),
      TEST(a_notice_tells_what_runs_and_gives_back_what_waits),
      TEST(a_program_that_ends_within_the_notice_has_failed_or_come_to_its_end),
      TEST(who_leaves_tells_programs_that_save_their_state), TEST(a_notice_makes_no_lease_longer),
      TEST(a_term_ends_on_our_clock_even_without_the_broker), TEST(a_renewal_runs_from_its_receipt),
      TEST(the_broker_ends_a_lease), TEST(draining_finishes_what_runs_and_says_goodbye),
      TEST(an_offer_over_its_caps_is_refused))
