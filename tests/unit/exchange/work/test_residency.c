/* A lane takes the ready subtask whose inputs its device holds, if that ends the job no later. */
#include "tests/support/resident_market.h"
#include "tests/support/suite.h"

enum { CHAINS = 4, LINKS = 4, BOTH = 2 };

/* CHAINS chains. The subtasks of each link stand in the reverse order of the link before, so that
 * the order by index would move chains from one device to another. */
static uint32_t after_count[CHAINS * LINKS];
static uint32_t after[CHAINS * LINKS];
static uint32_t rank[CHAINS * LINKS];

/* Returns the link before in the chain of a subtask that is no first link. */
static uint32_t before(uint32_t index)
{
    return index / CHAINS * CHAINS - 1 - index % CHAINS;
}

/* `step` is what each link adds to the rank. */
static struct exchange_graph chains(uint32_t step)
{
    for (uint32_t i = 0; i < CHAINS * LINKS; i++) {
        after_count[i] = i >= CHAINS;
        if (i >= CHAINS) {
            after[i - CHAINS] = before(i);
        }
        rank[i] = step * (LINKS - i / CHAINS);
    }
    return (struct exchange_graph){.rank = rank,
                                   .rank_count = CHAINS * LINKS,
                                   .after_count = after_count,
                                   .after_count_count = CHAINS * LINKS,
                                   .after = after,
                                   .after_length = CHAINS * (LINKS - 1)};
}

/* Each provider was sent these works and has not answered them, oldest first. */
static struct {
    struct exchange_work works[CHAINS * LINKS];
    size_t count;
} sent[BOTH];
static uint32_t done_by[CHAINS * LINKS]; /* the provider that a subtask was first sent to */

static void begin_alone_under(uint32_t rules)
{
    begin_under(rules);
    memset(sent, 0, sizeof sent);
    memset(done_by, 0, sizeof done_by);
}

static void begin_alone(void)
{
    begin_alone_under(EXCHANGE_RULES);
}

static void listen(void)
{
    for (size_t i = 0; i < market.effects.count; i++) {
        const struct exchange_effect *effect = &market.effects.items[i];
        if (effect->type == EFFECT_DISPATCH) {
            const size_t who = effect->account - PROVIDER;
            ck_assert_uint_lt(who, BOTH);
            ck_assert_uint_lt(sent[who].count, CHAINS * LINKS);
            sent[who].works[sent[who].count++] = effect->work;
            done_by[effect->work.index] = effect->account;
        }
    }
}

static void answer(struct id128 job, size_t who, int64_t bytes)
{
    ck_assert_uint_gt(sent[who].count, 0);
    const struct exchange_work work = sent[who].works[0];
    sent[who].count--;
    memmove(&sent[who].works[0], &sent[who].works[1], sent[who].count * sizeof sent[who].works[0]);
    market.now_ns += 10 * NS_PER_MS;
    leave(PROVIDER + (uint32_t)who, job, work, OUTCOME_OK, bytes);
    listen();
}

/* Runs the chains on two devices, which answer in turns after the first one answered twice. Returns
 * how many links ran where the link before had run. */
static uint32_t run_chains(const struct exchange_graph *graph, int64_t bytes)
{
    uint32_t stayed = 0;
    const struct id128 job = submit_graph(CHAINS * LINKS, graph);
    listen();
    for (size_t turn = 0; sent[0].count + sent[1].count > 0; turn++) {
        const size_t who = turn < 2 ? 0 : turn % 2;
        answer(job, sent[who].count > 0 ? who : 1 - who, bytes);
        check_hash();
        reload();
    }
    ck_assert_uint_eq(job_row(job).state, JOB_DONE);
    for (uint32_t i = CHAINS; i < CHAINS * LINKS; i++) {
        stayed += done_by[i] == done_by[before(i)];
    }
    return stayed;
}

static void offer_both(int64_t memory_bytes, bool has_interface)
{
    offer_device(PROVIDER, 1, memory_bytes, has_interface);
    offer_device(OTHER_PROVIDER, 1, memory_bytes, has_interface);
}

START_TEST(a_lane_takes_what_it_holds_inputs_of)
{
    offer_both(1024 * MIB, true);
    const struct exchange_graph graph = chains(0);
    const uint32_t stayed = run_chains(&graph, 16 * MIB);
    ck_assert_msg(stayed >= CHAINS * (LINKS - 1) - 2, "only %u links stayed", stayed);
}
END_TEST

START_TEST(earlier_rules_cores_and_small_files_know_no_residents)
{
    const struct exchange_graph graph = chains(0);
    struct hash32 hashes[3];
    for (size_t i = 0; i < 3; i++) {
        tear_down();
        begin_alone_under(i == 0 ? RULES_OF_RESIDENCE - 1 : EXCHANGE_RULES);
        offer_both(1024 * MIB, i != 1);
        const int64_t bytes = i == 2 ? RESIDENT_LEAST_BYTES - 1 : 16 * MIB;
        const uint32_t stayed = run_chains(&graph, bytes);
        ck_assert_msg(stayed < CHAINS * (LINKS - 1) - 2, "case %zu: %u links stayed", i, stayed);
        hashes[i] = exchange_state_hash(market.exchange);
    }
    ck_assert(!hash32_equal(&hashes[0], &hashes[2])); /* the rules are in the state */
}
END_TEST

/* Returns a graph of three subtasks, of which 2 waits for 0. */
static struct exchange_graph three(const uint32_t ranks[3])
{
    static const uint32_t counts[] = {0, 0, 1};
    static const uint32_t waits[] = {0};
    return (struct exchange_graph){.rank = ranks,
                                   .rank_count = 3,
                                   .after_count = counts,
                                   .after_count_count = 3,
                                   .after = waits,
                                   .after_length = 1};
}

/* Offers a device of PROVIDER, which gets the first subtasks of the job. */
static struct id128 start_on(uint32_t slots, int64_t memory_bytes,
                             const struct exchange_graph *graph)
{
    offer_device(PROVIDER, slots, memory_bytes, true);
    const struct id128 job = submit_graph((uint32_t)graph->after_count_count, graph);
    listen();
    return job;
}

/* A lane has one subtask at a time: PROVIDER holds what subtask 0 left. */
static struct id128 two_ready(const struct exchange_graph *graph, int64_t bytes)
{
    const struct id128 job = start_on(1, 1024 * MIB, graph);
    ck_assert_uint_eq(sent[0].works[0].index, 0);
    answer(job, 0, bytes);
    return job;
}

/* 0 goes first, then 1 and 2 are ready, of which 2 waits for 0. The rank of 1 is higher by 100 ms,
 * which 10 MB take. */
START_TEST(a_higher_rank_goes_first_unless_the_copy_takes_longer)
{
    static const uint32_t ranks[] = {500, 300, 200};
    static const struct {
        int64_t bytes;
        uint32_t next;
    } cases[] = {{9000000, 1}, {10000000, 2}, {20000000, 2}};
    const struct exchange_graph graph = three(ranks);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (i > 0) {
            tear_down();
            begin_alone();
        }
        (void)two_ready(&graph, cases[i].bytes);
        ck_assert_uint_eq(sent[0].works[0].index, cases[i].next);
    }
}
END_TEST

/* Ranks within a fifth are level. The lane stays with its inputs, but a longer way has its turn. */
START_TEST(a_level_rank_waits_for_inputs_at_hand)
{
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t ranks[] = {5000, 2000, 1600 - i};
        const struct exchange_graph graph = three(ranks);
        (void)two_ready(&graph, RESIDENT_LEAST_BYTES);
        ck_assert_uint_eq(sent[0].works[0].index, i == 0 ? 2 : 1);
        tear_down();
        begin_alone();
    }
}
END_TEST

/* A device of 64 MiB holds a quarter of them, by default. */
START_TEST(outputs_above_what_a_device_holds_count_for_nothing)
{
    static const uint32_t ranks[] = {500, 200, 200};
    const struct exchange_graph graph = three(ranks);
    for (int i = 0; i < 2; i++) {
        const struct id128 job = start_on(1, 64 * MIB, &graph);
        answer(job, 0, 16 * MIB + i);
        ck_assert_uint_eq(sent[0].works[0].index, i == 0 ? 2 : 1);
        tear_down();
        begin_alone();
    }
}
END_TEST

/* Subtasks 0 and 1 leave files; 2 waits for 0, and 3 for 1. A device that can hold one file holds
 * the later one alone. */
START_TEST(what_was_used_longest_ago_goes_first)
{
    static const uint32_t ranks[] = {900, 800, 100, 100};
    static const uint32_t counts[] = {0, 0, 1, 1};
    static const uint32_t waits[] = {0, 1};
    const struct exchange_graph graph = {.rank = ranks,
                                         .rank_count = 4,
                                         .after_count = counts,
                                         .after_count_count = 4,
                                         .after = waits,
                                         .after_length = 2};
    for (int i = 0; i < 2; i++) {
        const struct id128 job = start_on(1, i == 0 ? 64 * MIB : 128 * MIB, &graph);
        answer(job, 0, 16 * MIB);
        answer(job, 0, 16 * MIB);
        ck_assert_uint_eq(sent[0].works[0].index, i == 0 ? 3 : 2);
        tear_down();
        begin_alone();
    }
}
END_TEST

/* The two devices are idle when subtask 2 becomes ready. The second one made its larger input. */
START_TEST(of_idle_devices_the_one_that_holds_more_goes_first)
{
    static const uint32_t counts[] = {0, 0, 2};
    static const uint32_t waits[] = {0, 1};
    const struct exchange_graph graph = {
        .after_count = counts, .after_count_count = 3, .after = waits, .after_length = 2};
    offer_both(1024 * MIB, true);
    const struct id128 job = submit_graph(3, &graph);
    listen();
    ck_assert_uint_eq(sent[0].count, 1);
    ck_assert_uint_eq(sent[1].count, 1);
    answer(job, 1, 64 * MIB);
    answer(job, 0, 16 * MIB);
    ck_assert_uint_eq(done_by[2], OTHER_PROVIDER);
}
END_TEST

/* Each slot of a device has a memory of its own. */
START_TEST(of_idle_lanes_the_one_that_holds_inputs_takes_them)
{
    static const uint32_t ranks[] = {900, 900, 100, 100};
    static const uint32_t counts[] = {0, 0, 2, 1};
    static const uint32_t waits[] = {0, 1, 1};
    const struct exchange_graph graph = {.rank = ranks,
                                         .rank_count = 4,
                                         .after_count = counts,
                                         .after_count_count = 4,
                                         .after = waits,
                                         .after_length = 3};
    const struct id128 job = start_on(2, 1024 * MIB, &graph);
    ck_assert_uint_eq(sent[0].count, 2);
    const uint32_t second = sent[0].works[1].lane;
    answer(job, 0, 1); /* small */
    answer(job, 0, 64 * MIB);
    ck_assert_uint_eq(sent[0].count, 2);
    ck_assert_uint_eq(sent[0].works[0].index, 2);
    ck_assert_uint_eq(sent[0].works[0].lane, second);
}
END_TEST

START_TEST(a_lease_that_ends_holds_nothing)
{
    static const uint32_t ranks[] = {500, 300, 200};
    const struct exchange_graph graph = three(ranks);
    const struct id128 job = two_ready(&graph, 64 * MIB);
    ck_assert_uint_eq(sent[0].works[0].index, 2);
    presence(EXCHANGE_GOODBYE, PROVIDER);
    check_hash();
    reload();
    sent[0].count = 0;
    offer_device(PROVIDER, 1, 1024 * MIB, true);
    listen();
    for (int turn = 0; turn < 100 && job_row(job).state == JOB_OPEN; turn++) {
        if (sent[0].count > 0) {
            answer(job, 0, 64 * MIB);
        }
        market.now_ns += NS_PER_S; /* a provider that went is avoided for a while */
        tick();
        listen();
    }
    ck_assert_uint_eq(job_row(job).state, JOB_DONE);
}
END_TEST

SUITE("residency", begin_alone, tear_down, TEST(a_lane_takes_what_it_holds_inputs_of),
      TEST(earlier_rules_cores_and_small_files_know_no_residents),
      TEST(a_higher_rank_goes_first_unless_the_copy_takes_longer),
      TEST(a_level_rank_waits_for_inputs_at_hand),
      TEST(outputs_above_what_a_device_holds_count_for_nothing),
      TEST(what_was_used_longest_ago_goes_first),
      TEST(of_idle_devices_the_one_that_holds_more_goes_first),
      TEST(of_idle_lanes_the_one_that_holds_inputs_takes_them),
      TEST(a_lease_that_ends_holds_nothing))
