/* The tests follow jobs on three agents of unlike speed, in log time: who runs what is ready, and
 * when all is done. */
#include "tests/support/hand_market.h"

#include "base/checked.h"
#include "protocol/message.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

enum { AGENTS = 3, FAST = 0, LAST_PROVIDER = 7, IN_LANE_MAX = 16, SUBTASKS_MAX = 64, NOBODY = -1 };

static const uint32_t accounts[AGENTS] = {PROVIDER, OTHER_PROVIDER, LAST_PROVIDER};

/* Each agent has one lane and runs what it was sent in order, in percent of the time that is
 * meant. */
static struct agent {
    int64_t percent;
    bool is_slow;                            /* now */
    struct exchange_work works[IN_LANE_MAX]; /* the first runs */
    size_t count;
    int64_t ends_ns; /* of the first */
    bool is_ending;  /* the first was taken back, and is given back then */
} agents[AGENTS];

static struct course {
    struct id128 job;
    int64_t meant_ns[SUBTASKS_MAX];
    int64_t begun_ns;
    /* Time after which the last agent takes ten times as long for all it begins; 0: never. */
    int64_t slows_ns;
    int64_t heeds_ns;      /* how long an agent takes to end what runs and is taken back */
    int ran[SUBTASKS_MAX]; /* the agent whose result was accepted, first come */
    uint32_t moves;        /* taken back */
} course;

static void begin(void)
{
    struct exchange_limits limits = exchange_limits_default();
    const struct exchange_genesis_account all[] = {
        {.key = {{1}},
         .roles = ROLE_CONSUMER,
         .credits_micro = 1000 * MICRO_PER_CREDIT,
         .name = "consumer"},
        {.key = {{2}}, .roles = ROLE_PROVIDER, .name = "provider"},
        {.key = {{3}}, .roles = ROLE_PROVIDER, .name = "other"},
        {.key = {{4}}, .roles = ROLE_OPERATOR, .name = "operator"},
        {.key = {{5}}, .roles = ROLE_PROVIDER, .name = "last"},
    };
    open_market_of(&limits, 10 * price, all, sizeof all / sizeof *all);
    memset(agents, 0, sizeof agents);
    memset(&course, 0, sizeof course);
    for (size_t i = 0; i < AGENTS; i++) {
        agents[i].percent = 100 * ((int64_t)i + 1);
        offer(accounts[i], 1, price);
    }
    for (size_t i = 0; i < SUBTASKS_MAX; i++) {
        course.ran[i] = NOBODY;
    }
}

static struct agent *agent_of(uint32_t account)
{
    for (size_t i = 0; i < AGENTS; i++) {
        if (accounts[i] == account) {
            return &agents[i];
        }
    }
    ck_abort_msg("no agent has account %u", account);
    return NULL;
}

static int64_t first_takes_ns(const struct agent *agent)
{
    return course.meant_ns[agent->works[0].index] / 100 * agent->percent *
           (agent->is_slow ? 10 : 1);
}

static void start_first(struct agent *agent)
{
    agent->is_ending = false;
    if (agent->count > 0) {
        agent->is_slow =
            agent == &agents[AGENTS - 1] && course.slows_ns > 0 && market.now_ns >= course.slows_ns;
        agent->ends_ns = market.now_ns + first_takes_ns(agent);
    }
}

static void receive(struct agent *agent, const struct exchange_work *work)
{
    ck_assert_uint_lt(agent->count, IN_LANE_MAX);
    const size_t at = work->is_urgent && agent->count > 0 ? 1 : agent->count;
    memmove(&agent->works[at + 1], &agent->works[at], (agent->count - at) * sizeof *work);
    agent->works[at] = *work;
    if (agent->count++ == 0) {
        start_first(agent);
    }
}

static struct exchange_work drop(struct agent *agent, size_t at)
{
    const struct exchange_work work = agent->works[at];
    agent->count--;
    memmove(&agent->works[at], &agent->works[at + 1], (agent->count - at) * sizeof work);
    if (at == 0) {
        start_first(agent);
    }
    return work;
}

static void answer(struct agent *agent, size_t at, uint8_t outcome, int64_t busy_ns);

static void give_back(struct agent *agent, size_t at)
{
    course.moves += at > 0;
    if (at == 0 && course.heeds_ns > 0) {
        agent->is_ending = true;
        agent->ends_ns = market.now_ns + course.heeds_ns;
        return;
    }
    answer(agent, at, OUTCOME_CANCELLED, 0);
}

/* Takes what the last command sent and what comes of it: an agent gives back at once what is taken
 * back and has not begun. */
static void listen(void)
{
    struct exchange_work back[IN_LANE_MAX];
    struct agent *from[IN_LANE_MAX];
    size_t count = 0;
    for (size_t i = 0; i < market.effects.count; i++) {
        const struct exchange_effect *effect = &market.effects.items[i];
        if (effect->type == EFFECT_DISPATCH) {
            receive(agent_of(effect->account), &effect->work);
        } else if (effect->type == EFFECT_WITHDRAW) {
            ck_assert_uint_lt(count, IN_LANE_MAX);
            from[count] = agent_of(effect->account);
            back[count++] = effect->work;
        }
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t at = 0; at < from[i]->count; at++) {
            if (from[i]->works[at].index == back[i].index) {
                give_back(from[i], at);
                break;
            }
        }
    }
}

static void answer(struct agent *agent, size_t at, uint8_t outcome, int64_t busy_ns)
{
    const struct exchange_work work = drop(agent, at);
    if (outcome == OUTCOME_OK && course.ran[work.index] == NOBODY) {
        course.ran[work.index] = (int)(agent - agents);
    }
    result(accounts[agent - agents], course.job, work, outcome, busy_ns);
    listen();
}

static void begin_job(const struct exchange_command *submit)
{
    course.begun_ns = market.now_ns;
    course.job = submit->id;
    apply(submit);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
    listen();
}

/* Runs what is done next (of equals, by the agent of the lower number) until the job is done.
 * Returns how long that took, in milliseconds. */
static int64_t run_job(void)
{
    while (job_row(course.job).state != JOB_DONE) {
        struct agent *first = NULL;
        for (size_t i = 0; i < AGENTS; i++) {
            if (agents[i].count > 0 && (first == NULL || agents[i].ends_ns < first->ends_ns)) {
                first = &agents[i];
            }
        }
        ck_assert_ptr_nonnull(first);
        const int64_t deadline_ns = exchange_next_deadline_ns(market.exchange);
        if (deadline_ns < first->ends_ns) {
            market.now_ns = deadline_ns > market.now_ns ? deadline_ns : market.now_ns;
            tick();
            listen();
            continue;
        }
        market.now_ns = first->ends_ns;
        answer(first, 0, first->is_ending ? OUTCOME_CANCELLED : OUTCOME_OK,
               first->is_ending ? 0 : first_takes_ns(first));
        check_hash();
    }
    return (market.now_ns - course.begun_ns) / NS_PER_MS;
}

static void mean_ms(const int64_t *ms, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        course.meant_ns[i] = ms[i] * NS_PER_MS;
    }
}

/* Three at once, what waits for them all, and a chain of two more behind it. */
static int64_t run_chain(const uint32_t *expect_ms)
{
    static const uint32_t counts[] = {0, 0, 0, 3, 1, 1};
    static const uint32_t after[] = {0, 1, 2, 3, 4};
    static const int64_t ms[] = {420, 420, 420, 520, 530, 540};
    const struct exchange_graph graph = {.after_count = counts,
                                         .after_count_count = 6,
                                         .after = after,
                                         .after_length = 5,
                                         .expect_ms = expect_ms,
                                         .expect_count = expect_ms == NULL ? 0 : 6};
    mean_ms(ms, 6);
    struct exchange_command made = submit_of(6, 900);
    made.submit.graph = &graph;
    begin_job(&made);
    return run_job();
}

/* The slowest ends the first three and so makes the chain ready: 3 x 0.42 s, and 0.52 + 0.53 + 0.54
 * s on the fastest. */
START_TEST(what_becomes_ready_runs_on_the_fastest_that_is_idle)
{
    ck_assert_int_eq(run_chain(NULL), 1260 + 1590);
    for (int i = 3; i < 6; i++) {
        ck_assert_int_eq(course.ran[i], FAST);
    }
}
END_TEST

START_TEST(the_same_where_each_says_what_it_is_expected_to_take)
{
    static const uint32_t expect_ms[] = {420, 420, 420, 520, 530, 540};
    ck_assert_int_eq(run_chain(expect_ms), 1260 + 1590);
}
END_TEST

/* The fastest was given the longest: its mean is the largest, its pace the best. */
START_TEST(how_fast_a_lane_is_goes_by_what_was_said_of_what_it_did)
{
    static const uint32_t counts[] = {0, 0, 0, 3, 1};
    static const uint32_t after[] = {0, 1, 2, 3};
    static const int64_t ms[] = {2000, 100, 100, 500, 500};
    static const uint32_t expect_ms[] = {2000, 100, 100, 500, 500};
    const struct exchange_graph graph = {.after_count = counts,
                                         .after_count_count = 5,
                                         .after = after,
                                         .after_length = 4,
                                         .expect_ms = expect_ms,
                                         .expect_count = 5};
    mean_ms(ms, 5);
    struct exchange_command made = submit_of(5, 900);
    made.submit.graph = &graph;
    begin_job(&made);
    struct agent *fast = NULL; /* whoever has the longest is the fastest here */
    for (size_t i = 0; i < AGENTS; i++) {
        ck_assert_uint_eq(agents[i].count, 1);
        fast = agents[i].works[0].index == 0 ? &agents[i] : fast;
    }
    ck_assert_ptr_nonnull(fast);
    for (size_t i = 0; i < AGENTS; i++) {
        agents[i].percent = &agents[i] == fast ? 100 : 300;
        start_first(&agents[i]);
    }
    ck_assert_int_eq(run_job(), 2000 + 500 + 500);
    ck_assert_int_eq(course.ran[4], (int)(fast - agents));
}
END_TEST

/* One, then two at once, then one that waits for both: what the first makes ready is for its lane
 * and for the one that comes for it. */
START_TEST(a_fork_runs_on_two_lanes)
{
    static const uint32_t counts[] = {0, 1, 1, 2};
    static const uint32_t after[] = {0, 0, 1, 2};
    static const int64_t ms[] = {300, 600, 400, 200};
    static const uint32_t expect_ms[] = {300, 600, 400, 200};
    struct exchange_graph graph = {
        .after_count = counts, .after_count_count = 4, .after = after, .after_length = 4};
    for (int known = 0; known < 3; known++) { /* the last: only a guess, for the job */
        if (known > 0) {
            tear_down();
            begin();
            graph.expect_ms = known == 1 ? expect_ms : NULL;
            graph.expect_count = known == 1 ? 4 : 0;
        }
        mean_ms(ms, 4);
        for (size_t i = 0; i < AGENTS; i++) {
            agents[i].percent = 100;
        }
        struct exchange_command made = submit_of(4, 900);
        made.submit.graph = &graph;
        made.submit.expect_ns = known == 2 ? 5 * NS_PER_S : 0;
        begin_job(&made);
        ck_assert_int_eq(run_job(), 300 + 600 + 200);
        ck_assert_int_ne(course.ran[1], course.ran[2]);
    }
}
END_TEST

/* Two short ones on the agents of percent 100 and 200, and a long one on the third, which is
 * started once more on the first. It ends all the same, and makes a short one ready: that goes to
 * the first, which has not given its copy back yet, and not to the second, which is idle. */
START_TEST(what_was_taken_back_and_has_not_ended_yet_holds_up_nothing)
{
    static const uint32_t counts[] = {0, 0, 0, 3};
    static const uint32_t after[] = {0, 1, 2};
    static const int64_t ms[] = {500, 500, 3000, 500};
    static const uint32_t expect_ms[] = {500, 500, 3000, 500};
    const struct exchange_graph graph = {.after_count = counts,
                                         .after_count_count = 4,
                                         .after = after,
                                         .after_length = 3,
                                         .expect_ms = expect_ms,
                                         .expect_count = 4};
    mean_ms(ms, 4);
    course.heeds_ns = 10 * NS_PER_MS;
    struct exchange_command made = submit_of(4, 900);
    made.submit.graph = &graph;
    begin_job(&made);
    struct agent *fast = NULL;
    for (size_t i = 0; i < AGENTS; i++) {
        ck_assert_uint_eq(agents[i].count, 1);
        agents[i].percent = 200;
        if (agents[i].works[0].index != 2 && fast == NULL) {
            fast = &agents[i];
            fast->percent = 100;
        }
        start_first(&agents[i]);
    }
    ck_assert_ptr_nonnull(fast);
    ck_assert_int_eq(run_job(), 6000 + 10 + 500);
    ck_assert_int_eq(course.ran[3], (int)(fast - agents));
}
END_TEST

/* The slowest ends at 0.6 s the task that the longest and five short ones waited for; the fastest
 * is busy until 0.7 s. */
START_TEST(the_longest_that_becomes_ready_waits_for_the_fastest)
{
    enum { LAST_ROOT = 5, LONGEST = 6, ALL = 12 };
    static const int64_t ms[ALL] = {100, 100, 100, 600, 300, 100, 1000, 100, 100, 100, 100, 100};
    static const uint32_t ranks[ALL] = {2000, 2000, 2000, 1300, 1200, 1100,
                                        1000, 100,  100,  100,  100,  100};
    static uint32_t expect_ms[ALL];
    static uint32_t counts[ALL];
    static uint32_t after[ALL];
    for (uint32_t i = 0; i < ALL; i++) {
        expect_ms[i] = (uint32_t)ms[i];
        counts[i] = i > LAST_ROOT;
        after[i] = LAST_ROOT;
    }
    const struct exchange_graph graph = {.after_count = counts,
                                         .after_count_count = ALL,
                                         .after = after,
                                         .after_length = ALL - LONGEST,
                                         .rank = ranks,
                                         .rank_count = ALL,
                                         .expect_ms = expect_ms,
                                         .expect_count = ALL};
    mean_ms(ms, ALL);
    struct exchange_command made = submit_of(ALL, 900);
    made.submit.graph = &graph;
    begin_job(&made);
    ck_assert_int_eq(run_job(), 700 + 1000);
    ck_assert_int_eq(course.ran[LONGEST], FAST);
}
END_TEST

/* A chain of long ones beside many short ones. */
START_TEST(a_chain_does_not_wait_behind_what_a_slow_lane_has)
{
    enum { CHAIN = 14, ALL = 64 };
    static int64_t ms[ALL];
    static uint32_t expect_ms[ALL];
    static uint32_t ranks[ALL];
    static uint32_t counts[ALL];
    static uint32_t after[CHAIN];
    for (uint32_t i = 0; i < ALL; i++) {
        const bool is_chain = i < CHAIN;
        ms[i] = is_chain ? 500 : 200;
        expect_ms[i] = (uint32_t)ms[i];
        ranks[i] = is_chain ? (CHAIN - i) * 500 : 200;
        counts[i] = is_chain && i > 0;
    }
    for (uint32_t i = 0; i + 1 < CHAIN; i++) {
        after[i] = i;
    }
    const struct exchange_graph graph = {.after_count = counts,
                                         .after_count_count = ALL,
                                         .after = after,
                                         .after_length = CHAIN - 1,
                                         .rank = ranks,
                                         .rank_count = ALL,
                                         .expect_ms = expect_ms,
                                         .expect_count = ALL};
    mean_ms(ms, ALL);
    struct exchange_command made = submit_of(ALL, 900);
    made.submit.graph = &graph;
    agents[FAST].percent = 300; /* who is asked first is the slowest */
    agents[AGENTS - 1].percent = 100;
    begin_job(&made);
    ck_assert_int_le(run_job(), 10000);
}
END_TEST

static int64_t run_array(uint32_t count, int64_t each_ms)
{
    for (uint32_t i = 0; i < count; i++) {
        course.meant_ns[i] = each_ms * NS_PER_MS;
    }
    struct exchange_command made = submit_of(count, 400);
    begin_job(&made);
    return run_job();
}

static void unlike_agents(void)
{
    static const int64_t percent[] = {357, 680, 1015};
    for (size_t i = 0; i < AGENTS; i++) {
        agents[i].percent = percent[i];
    }
}

/* Subtasks of 0.357, 0.68 and 1.015 s. At 2.03 s the slowest is idle and would be done with the
 * last at 3.045 s; the second runs until 2.04 s, and the fastest until 2.142 s: it would be done
 * with it at 2.499 s. */
START_TEST(the_last_that_waits_goes_behind_what_a_faster_lane_runs)
{
    unlike_agents();
    ck_assert_int_eq(run_array(12, 100), 2499);
    ck_assert_int_eq(course.ran[11], FAST);
    ck_assert_uint_eq(course.moves, 0);
}
END_TEST

/* All take 0.3 s; what the last agent begins at 0.3 s takes ten times as long, and one is queued
 * behind it. At 1.5 s nothing waits any more: that one goes to a lane that is busy until 1.8 s. The
 * slow one is started once more when it has run a second since. */
START_TEST(what_waits_behind_a_slow_one_goes_to_a_busy_lane_that_is_done_with_it_sooner)
{
    for (size_t i = 0; i < AGENTS; i++) {
        agents[i].percent = 100;
    }
    course.slows_ns = market.now_ns + 300 * NS_PER_MS;
    ck_assert_int_eq(run_array(15, 300), 1500 + 1000 + 300);
    ck_assert_uint_eq(course.moves, 1);
}
END_TEST

/* Six, three and two in 6 units of time: however many there are, no lane ends long after the
 * others. */
START_TEST(lanes_of_unlike_speed_end_together)
{
    for (uint32_t count = 6; count <= 40; count++) {
        if (count > 6) {
            tear_down();
            begin();
        }
        const int64_t took_ms = run_array(count, 300);
        ck_assert_int_ge(11 * took_ms, 6 * 300 * (int64_t)count);
        ck_assert_msg(11 * (took_ms - 600) <= 6 * 300 * (int64_t)count, "%u take %ld ms", count,
                      (long)took_ms);
        ck_assert_uint_le(course.moves, count);
    }
}
END_TEST

SUITE("course", begin, tear_down, TEST(what_becomes_ready_runs_on_the_fastest_that_is_idle),
      TEST(the_same_where_each_says_what_it_is_expected_to_take),
      TEST(how_fast_a_lane_is_goes_by_what_was_said_of_what_it_did), TEST(a_fork_runs_on_two_lanes),
      TEST(the_longest_that_becomes_ready_waits_for_the_fastest),
      TEST(a_chain_does_not_wait_behind_what_a_slow_lane_has),
      TEST(what_was_taken_back_and_has_not_ended_yet_holds_up_nothing),
      TEST(the_last_that_waits_goes_behind_what_a_faster_lane_runs),
      TEST(what_waits_behind_a_slow_one_goes_to_a_busy_lane_that_is_done_with_it_sooner),
      TEST(lanes_of_unlike_speed_end_together))
