#include "tests/sim/market.h"

#include "tests/sim/broker.h"
#include "tests/sim/oracle.h"
#include "tests/sim/people.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { BROKERS_MAX = 2, ENTRIES_MAX = 1 << 20 };
const uint64_t market_commands_least = 2000;
const uint64_t market_faults_least = 50;
const bool market_is_cluster = false;
const char market_command[] = "scripts/sim";
#define STORM_MOST_NS (INT64_C(7200) * SIM_S)
#define CALM_MOST_NS (INT64_C(1800) * SIM_S)

struct profile { /* what this seed is like; chances in 10,000 each pulse */
    uint32_t broker_crash, agent_crash, client_crash, stall, cut, memory, takeover, nonsense, lie,
        replay, operator_acts, clock_jump;
    struct net_faults net;
    struct journal_faults journal;
    int64_t pulse_ns; /* between two things that somebody wants or that happen */
    uint32_t jobs_open;
};

static struct {
    struct profile profile;
    struct journal_log *log;
    struct journal *journal; /* the oracle's view of it */
    struct broker brokers[BROKERS_MAX];
    unsigned broker_count;
} market;

/* ---------------------------------------------------------------- the seed's character */

/* Most seeds lack most kinds of faults, and have the others in force: so that none hides
 * another. */
static uint32_t some(uint32_t most)
{
    uint64_t dice = draw(DICE_FAULTS, 4);
    return dice < 2 ? 0 : dice == 2 ? 1 + (uint32_t)draw(DICE_FAULTS, most / 10 + 1) : most;
}

static void draw_profile(struct profile *profile)
{
    *profile = (struct profile){
        .broker_crash = some(40),
        .agent_crash = some(80),
        .client_crash = some(60),
        .stall = some(80),
        .cut = some(100),
        .memory = some(250),
        .takeover = some(40),
        .nonsense = some(2000),
        .lie = some(400),
        .replay = some(400),
        .operator_acts = some(50),
        .clock_jump = some(60),
        .net = {.lost = some(100),
                .repeated = 20 + some(300),
                .reordered = some(100),
                .delayed = 20 + some(200),
                .unsent = some(200),
                .garbled = some(100),
                .delay_least_ns = 50 * SIM_US,
                .late_most_ns = draw_time(DICE_FAULTS, 10 * SIM_MS, 5 * SIM_S)},
        .journal = {.unknown_applied = some(20),
                    .unknown_late = some(20),
                    .unknown_lost = some(20),
                    .duplicated = some(50),
                    .deposed = some(3),
                    .full = some(10),
                    .lagging = some(200)},
        .pulse_ns = draw_time(DICE_FAULTS, 50 * SIM_MS, 400 * SIM_MS),
        .jobs_open = 2 + (uint32_t)draw(DICE_FAULTS, 8),
    };
    profile->net.delay_most_ns =
        profile->net.delay_least_ns + draw_time(DICE_FAULTS, 50 * SIM_US, 60 * SIM_MS);
}

/* ---------------------------------------------------------------- who is there */

static void make_brokers(void)
{
    market.broker_count = 1 + (unsigned)draw(DICE_WORK, BROKERS_MAX);
    int64_t commit_most_ns = draw_time(DICE_WORK, 200 * SIM_US, 20 * SIM_MS);
    for (unsigned i = 0; i < market.broker_count; i++) {
        market.brokers[i] = (struct broker){.genesis = &people.genesis,
                                            .limits = &people.limits,
                                            .log = market.log,
                                            .rank = i,
                                            .mark_every = 100 + draw(DICE_WORK, 500),
                                            .commit_least_ns = 100 * SIM_US,
                                            .commit_most_ns = commit_most_ns};
        (void)snprintf(market.brokers[i].process.name, sizeof market.brokers[i].process.name,
                       "broker%u", i);
    }
}

/* ---------------------------------------------------------------- what happens */

static struct process *some_process(void)
{
    uint64_t which =
        draw(DICE_FAULTS, market.broker_count + people.agent_count + people.client_count);
    if (which < market.broker_count) {
        return &market.brokers[which].process;
    }
    which -= market.broker_count;
    return which < people.agent_count ? &people.agents[which].process
                                      : &people.clients[which - people.agent_count].process;
}

static void crash_broker(void)
{
    struct broker *broker = &market.brokers[draw(DICE_FAULTS, market.broker_count)];
    if (broker->process.runs) {
        fault_happened(FAULT_BROKER_CRASH);
        broker_crash(broker);
    }
}

static void stall(void)
{
    struct process *process = some_process();
    if (process->runs && process->stalled_until_ns <= world.now_ns) {
        int64_t most_ns = draw(DICE_FAULTS, 3) == 0 ? 40 * SIM_S : 4 * SIM_S;
        process->stalled_until_ns = world.now_ns + draw_time(DICE_FAULTS, 10 * SIM_MS, most_ns);
        fault_happened(FAULT_STALL);
        trace("%s is stopped for %.3f s", process->name,
              (double)(process->stalled_until_ns - world.now_ns) / (double)SIM_S);
    }
}

static void fail_memory(void)
{
    struct process *process = some_process();
    if (process->runs) {
        process->failing_in = 1 + (uint32_t)draw(DICE_FAULTS, 500);
    }
}

static void take_over(void)
{
    struct broker *broker = &market.brokers[draw(DICE_FAULTS, market.broker_count)];
    if (broker->process.runs && !broker->serves && !broker->wants_to_lead) {
        fault_happened(FAULT_TAKEOVER);
        trace("%s wants to lead", broker->process.name);
        broker->wants_to_lead = true;
    }
}

static void jump_clock(void)
{
    struct process *process = some_process();
    fault_happened(FAULT_CLOCK);
    process->wall_offset_ns = draw_time(DICE_FAULTS, -3600 * SIM_S, 3600 * SIM_S);
    trace("the wall clock of %s jumps to %+.0f s", process->name,
          (double)process->wall_offset_ns / (double)SIM_S);
}

static void happen(uint32_t per_10000, void (*run)(void))
{
    if (chance(DICE_FAULTS, per_10000)) {
        run();
    }
}

static void trouble(void)
{
    const struct profile *profile = &market.profile;
    happen(profile->broker_crash, crash_broker);
    happen(profile->agent_crash, people_crash_agent);
    happen(profile->client_crash, people_crash_client);
    happen(profile->stall, stall);
    happen(profile->cut, people_cut);
    happen(profile->memory, fail_memory);
    happen(profile->takeover, take_over);
    happen(profile->nonsense, people_be_hostile);
    happen(profile->lie, people_lie);
    happen(profile->replay * 5, people_replay);
    happen(profile->clock_jump, jump_clock);
    happen(profile->operator_acts, people_operate);
}

static void pulse(void *context, uint64_t a, uint64_t b)
{
    (void)context;
    (void)a;
    (void)b;
    if (!world.calm) {
        trouble();
        people_work();
        event_in(draw_time(DICE_WORK, market.profile.pulse_ns / 2, market.profile.pulse_ns), NULL,
                 pulse, NULL, 0, 0);
    }
}

/* ---------------------------------------------------------------- the calm */

static void become_calm(void)
{
    const struct net_faults quiet = {.delay_least_ns = 50 * SIM_US, .delay_most_ns = SIM_MS};
    const struct journal_faults none = {0};
    trace("the faults stop");
    world.calm = true;
    net_set_faults(&quiet);
    journal_log_set_faults(market.log, &none);
    for (unsigned i = 0; i < market.broker_count; i++) {
        market.brokers[i].process.failing_in = 0;
        market.brokers[i].process.stalled_until_ns = 0;
    }
    people_become_calm();
}

static void compare_brokers(void)
{
    for (unsigned i = 0; i < market.broker_count; i++) {
        uint64_t command;
        struct hash32 state;
        if (broker_state(&market.brokers[i], &command, &state)) {
            oracle_compare(command, &state, market.brokers[i].process.name);
        }
    }
}

static void run_calm(void)
{
    int64_t until_ns = world.now_ns + CALM_MOST_NS;
    become_calm();
    size_t left = 1;
    while (left > 0 && world.now_ns < until_ns) {
        int64_t slice_ns = world.now_ns + 5 * SIM_S;
        while (event_next(slice_ns)) {
            oracle_follow();
        }
        people_reopen();
        for (unsigned i = 0; i < people.client_count; i++) {
            client_asks_for_all(&people.clients[i]);
        }
        left = people_unfinished(false);
    }
    if (left > 0) {
        (void)people_unfinished(true);
        sim_fail("%zu things are not right %.0f s after the faults stopped", left,
                 (double)CALM_MOST_NS / (double)SIM_S);
    }
}

/* ---------------------------------------------------------------- the whole */

static void run_storm(void)
{
    int64_t until_ns = world.now_ns + STORM_MOST_NS;
    event_in(SIM_S, NULL, pulse, NULL, 0, 0);
    while (oracle_commands() < market_commands_least || faults_total() < market_faults_least) {
        if (!event_next(until_ns)) {
            sim_fail("too quiet: %" PRIu64 " commands and %" PRIu64 " faults", oracle_commands(),
                     faults_total());
        }
        oracle_follow();
    }
}

static uint64_t log_last(void)
{
    return journal_log_last(market.log);
}

static enum journal_status log_next(uint64_t index, struct journal_entry *ret_entry)
{
    return journal_next(market.journal, index, ret_entry, 0);
}

static void begin(void)
{
    memset(&market, 0, sizeof market);
    memset(&people, 0, sizeof people);
    draw_profile(&market.profile);
    people.habits.lie = market.profile.lie;
    people.habits.replay = market.profile.replay;
    people.habits.jobs_open = market.profile.jobs_open;
    people_found();
    people_draw_limits();
    market.log = journal_log_create(random_u64(&world.dice[DICE_FAULTS]), ENTRIES_MAX);
    assert(market.log != NULL);
    journal_log_set_faults(market.log, &market.profile.journal);
    market.journal = journal_memory_open(market.log);
    assert(market.journal != NULL);
    oracle_start(&(struct oracle_log){.last = log_last, .next = log_next}, &people.limits);
    net_start(&market.profile.net);
    people_make_clients();
    people_make_agents();
    people_make_hostiles();
    make_brokers();
    for (unsigned i = 0; i < market.broker_count; i++) {
        broker_start(&market.brokers[i]);
    }
    people_start();
}

struct market_result run_market(uint64_t seed, bool traces)
{
    world_start(seed, traces);
    begin();
    run_storm();
    run_calm();
    compare_brokers();
    oracle_replay_all();
    struct market_result run = {.commands = oracle_commands(),
                                .entries = oracle_entries(),
                                .faults = faults_total(),
                                .seen = oracle_counts(),
                                .virtual_s = (double)world.now_ns / (double)SIM_S - 1000};
    return run;
}
