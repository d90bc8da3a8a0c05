/* One run of three brokers: a market drawn from the seed, its work, its faults, the calm after, and
 * then a leader that dies and one that stands still (docs/testing.md). */
#include "tests/sim/market.h"

#include "broker/storage/etcd/succession.h"
#include "tests/sim/cluster/etcd.h"
#include "tests/sim/cluster/programs.h"
#include "tests/sim/cluster/seat.h"
#include "tests/sim/oracle.h"
#include "tests/sim/people.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

const uint64_t market_commands_least = 500;
const uint64_t market_faults_least = 50;
const bool market_is_cluster = true;
const char market_command[] = "scripts/sim --cluster";
#define STORM_LEAST_NS (50 * SIM_S)
#define STORM_MOST_NS (INT64_C(3600) * SIM_S)
#define CALM_MOST_NS (INT64_C(1800) * SIM_S)
/* A leader that died while it prepared to serve is waited for so long. */
#define RESUME_MOST_NS (45 * SIM_S)
/* The same when all was well before (promise P9). */
#define TAKEOVER_MOST_NS (5 * SIM_S)
/* A leader that is lost after the calm comes back after so long. */
#define AWAY_NS (8 * SIM_S)
/* A broker that follows may be behind by so much time. */
#define BEHIND_MOST_NS (5 * SIM_S)

struct profile { /* what this seed is like; chances in 10,000 each pulse */
    uint32_t seat_crash, seat_stall, agent_crash, client_crash, cut, link, nonsense, lie, replay,
        operator_acts, member_crash, member_stop, member_lag, member_cut, broker_cut, fill,
        disk_slow, cuts, program;
    struct net_faults net;
    struct etcd_faults etcd;
    int64_t pulse_ns;
    uint32_t jobs_open;
};

static struct {
    struct profile profile;
} market;

/* ---------------------------------------------------------------- the seed's character */

/* Half of the seeds lack a kind of fault; a quarter has it in force. */
static uint32_t some(uint32_t most)
{
    uint64_t dice = draw(DICE_FAULTS, 4);
    return dice < 2 ? 0 : dice == 2 ? 1 + (uint32_t)draw(DICE_FAULTS, most / 10 + 1) : most;
}

static void draw_profile(struct profile *profile)
{
    *profile = (struct profile){
        .seat_crash = 30 + some(250),
        .seat_stall = 30 + some(250),
        .agent_crash = some(60),
        .client_crash = some(60),
        .cut = some(100),
        .link = some(200),
        .nonsense = some(500),
        .lie = some(200),
        .replay = some(200),
        .operator_acts = 20 + some(80),
        .member_crash = some(150),
        .member_stop = some(150),
        .member_lag = some(300),
        .member_cut = some(200),
        .broker_cut = some(200),
        .fill = some(40),
        .disk_slow = some(100),
        .cuts = some(400),
        .program = 150 + some(300),
        .net = {.lost = some(100),
                .repeated = 20 + some(200),
                .reordered = some(100),
                .delayed = 20 + some(200),
                .unsent = some(100),
                .garbled = some(50),
                .delay_least_ns = 50 * SIM_US,
                .delay_most_ns = draw_time(DICE_FAULTS, 100 * SIM_US, 40 * SIM_MS),
                .late_most_ns = draw_time(DICE_FAULTS, 10 * SIM_MS, 5 * SIM_S)},
        .etcd = {.late = 50 + some(300),
                 .answer_lost = 30 + some(400),
                 .repeated = 30 + some(300),
                 .stale = some(4000),
                 .late_most_ns = draw_time(DICE_FAULTS, 100 * SIM_MS, 8 * SIM_S),
                 .decide_most_ns = draw_time(DICE_FAULTS, SIM_MS, 80 * SIM_MS),
                 .behind_most_ns = draw_time(DICE_FAULTS, SIM_MS, 3 * SIM_S)},
        .pulse_ns = draw_time(DICE_FAULTS, 100 * SIM_MS, 400 * SIM_MS),
        .jobs_open = 2 + (uint32_t)draw(DICE_FAULTS, 8),
    };
}

/* ---------------------------------------------------------------- what happens */

static struct seat *some_seat(void)
{
    return &seats[draw(DICE_FAULTS, SEATS)];
}

static struct seat *leading_seat(void)
{
    for (unsigned i = 0; i < SEATS; i++) {
        if (seats[i].process.runs && seats[i].serves) {
            return &seats[i];
        }
    }
    return NULL;
}

/* Often the one that matters. */
static struct seat *hit_seat(void)
{
    struct seat *leading = draw(DICE_FAULTS, 2) == 0 ? leading_seat() : NULL;
    return leading != NULL ? leading : some_seat();
}

static void crash_seat(void)
{
    struct seat *seat = hit_seat();
    const int64_t away_ns = draw(DICE_FAULTS, 3) == 0 ? draw_time(DICE_FAULTS, 0, 15 * SIM_S) : 0;
    if (seat->process.runs) {
        fault_happened(FAULT_BROKER_CRASH);
        trace("%s is killed", seat->process.name);
        etcd_lose_broker(seat->number);
        seat_crash(seat, away_ns);
    }
}

static void stall_seat(void)
{
    struct seat *seat = hit_seat();
    const int64_t most_ns = draw(DICE_FAULTS, 3) == 0 ? 20 * SIM_S : 4 * SIM_S;
    const int64_t time_ns = draw_time(DICE_FAULTS, 10 * SIM_MS, most_ns);
    if (seat->process.runs && seat->process.stalled_until_ns <= world.now_ns) {
        fault_happened(FAULT_STALL);
        trace("%s is stopped for %.3f s", seat->process.name, (double)time_ns / (double)SIM_S);
        etcd_lose_broker(seat->number);
        seat->process.stalled_until_ns = world.now_ns + time_ns;
    }
}

static void cut_link(void)
{
    struct peer *peer = people_some_peer();
    const struct host *host = &some_seat()->host;
    const uint64_t ways = 1 + draw(DICE_FAULTS, 3);
    net_cut_link(peer, host, (ways & 1) != 0, (ways & 2) != 0,
                 draw_time(DICE_FAULTS, 10 * SIM_MS, 20 * SIM_S));
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
    happen(profile->seat_crash, crash_seat);
    happen(profile->seat_stall, stall_seat);
    happen(profile->agent_crash, people_crash_agent);
    happen(profile->client_crash, people_crash_client);
    happen(profile->cut, people_cut);
    happen(profile->link, cut_link);
    happen(profile->nonsense, people_be_hostile);
    happen(profile->lie, people_lie);
    happen(profile->replay * 5, people_replay);
    happen(profile->operator_acts, people_operate);
    happen(profile->member_crash, etcd_crash_member);
    happen(profile->member_stop, etcd_stop_member);
    happen(profile->member_lag, etcd_delay_member);
    happen(profile->member_cut, etcd_cut_members);
    happen(profile->broker_cut, etcd_cut_broker);
    happen(profile->fill, etcd_fill);
    happen(profile->program, programs_change);
}

static void pulse(void *context, uint64_t a, uint64_t b)
{
    (void)context;
    (void)a;
    (void)b;
    programs_compare();
    if (!world.calm) {
        trouble();
        people_work();
    }
    event_in(draw_time(DICE_WORK, market.profile.pulse_ns / 2, market.profile.pulse_ns), NULL,
             pulse, NULL, 0, 0);
}

/* ---------------------------------------------------------------- the run */

static void run_for(int64_t time_ns)
{
    const int64_t until_ns = world.now_ns + time_ns;
    while (event_next(until_ns)) {
        oracle_follow();
    }
}

/* Runs until somebody writes entries, but for `but` (NULL: whoever). */
static void await_entry(int64_t most_ns, const struct seat *but, const char *after)
{
    const int64_t until_ns = world.now_ns + most_ns;
    const uint64_t takeovers = etcd_counts().takeovers;
    const uint64_t last = etcd_last();
    while (etcd_last() == last || (but != NULL && etcd_counts().takeovers == takeovers)) {
        if (!event_next(until_ns)) {
            sim_fail("nobody writes an entry within %.0f s after %s",
                     (double)most_ns / (double)SIM_S, after);
        }
        oracle_follow();
    }
}

/* The first broker makes the market; the others are made from a backup of it. */
static void found(void)
{
    const int64_t until_ns = world.now_ns + 60 * SIM_S;
    seat_start(&seats[0]);
    while (!seats[0].serves && event_next(until_ns)) {
        oracle_follow();
    }
    if (!seats[0].serves) {
        sim_fail("the first broker does not serve");
    }
    for (unsigned i = 1; i < SEATS; i++) {
        seat_join(&seats[i]);
        seat_start(&seats[i]);
    }
}

static void run_storm(void)
{
    const int64_t until_ns = world.now_ns + STORM_MOST_NS;
    const int64_t least_ns = world.now_ns + STORM_LEAST_NS;
    event_in(SIM_S, NULL, pulse, NULL, 0, 0);
    while (oracle_commands() < market_commands_least || faults_total() < market_faults_least ||
           world.now_ns < least_ns) {
        if (!event_next(until_ns)) {
            sim_fail("too quiet: %" PRIu64 " commands and %" PRIu64 " faults", oracle_commands(),
                     faults_total());
        }
        oracle_follow();
    }
}

static void become_calm(void)
{
    const struct net_faults quiet = {.delay_least_ns = 50 * SIM_US, .delay_most_ns = SIM_MS};
    trace("the faults stop");
    world.calm = true;
    net_set_faults(&quiet);
    etcd_become_calm();
    people_become_calm();
    for (unsigned i = 0; i < SEATS; i++) {
        seats[i].process.stalled_until_ns = 0;
        seats[i].disk_slow = 0;
        seats[i].disk_most_ns = 2 * SIM_MS;
        seats[i].cuts = 0;
    }
    programs_become_calm();
}

/* Returns how many seats are not where they belong: one leads, and nobody is far behind. */
static size_t seats_astray(uint64_t reached)
{
    size_t leading = 0;
    size_t astray = 0;
    for (unsigned i = 0; i < SEATS; i++) {
        leading += seats[i].process.runs && seats[i].serves;
        astray += !seats[i].process.runs || seats[i].disk.count < reached;
    }
    return astray + (leading == 1 ? 0 : 1);
}

static void run_calm(void)
{
    const int64_t until_ns = world.now_ns + CALM_MOST_NS;
    become_calm();
    await_entry(RESUME_MOST_NS, NULL, "the faults stopped");
    size_t left = 1;
    while (left > 0 && world.now_ns < until_ns) {
        const uint64_t reached = etcd_last();
        run_for(BEHIND_MOST_NS);
        people_reopen();
        for (unsigned i = 0; i < people.client_count; i++) {
            client_asks_for_all(&people.clients[i]);
        }
        left = people_unfinished(false) + seats_astray(reached);
    }
    if (left > 0) {
        (void)people_unfinished(true);
        sim_fail("%zu things are not right %.0f s after the faults stopped", left,
                 (double)CALM_MOST_NS / (double)SIM_S);
    }
}

/* Promise P9: one broker of three is lost, and writes resume. */
static void lose_the_leader(bool is_killed)
{
    struct seat *leading = leading_seat();
    assert(leading != NULL);
    trace("%s is %s for good", leading->process.name, is_killed ? "killed" : "stopped");
    if (is_killed) {
        seat_crash(leading, AWAY_NS);
    } else {
        leading->process.stalled_until_ns = world.now_ns + AWAY_NS;
    }
    await_entry(TAKEOVER_MOST_NS, leading,
                is_killed ? "its leader died" : "its leader was stopped");
    run_for(2 * AWAY_NS);
    const uint64_t reached = etcd_last();
    run_for(BEHIND_MOST_NS);
    if (seats_astray(reached) > 0) {
        sim_fail("the brokers are not together again after %s",
                 is_killed ? "a leader died" : "a leader was stopped");
    }
}

static void begin(void)
{
    static const struct oracle_log log = {.last = etcd_last, .next = etcd_entry};
    const struct etcd_faults none = {.decide_most_ns = 5 * SIM_MS, .behind_most_ns = 5 * SIM_MS};
    memset(&market, 0, sizeof market);
    memset(&people, 0, sizeof people);
    draw_profile(&market.profile);
    people.habits.lie = market.profile.lie;
    people.habits.replay = market.profile.replay;
    people.habits.jobs_open = market.profile.jobs_open;
    world.reads_are_current = true;
    people_found();
    people_draw_limits();
    oracle_start(&log, &people.limits);
    net_start(&market.profile.net);
    people_make_clients();
    people_make_agents();
    people_make_hostiles();
    programs_start();
    seats_make(market.profile.disk_slow, market.profile.cuts);
    etcd_start(&none);
    found();
    etcd_set_faults(&market.profile.etcd);
    people_start();
}

struct market_result run_market(uint64_t seed, bool traces)
{
    world_start(seed, traces);
    begin();
    run_storm();
    run_calm();
    lose_the_leader(true);
    lose_the_leader(false);
    programs_check_end();
    oracle_replay_all();
    const struct etcd_counts etcd = etcd_counts();
    struct market_result run = {.commands = oracle_commands(),
                                .entries = oracle_entries(),
                                .faults = faults_total(),
                                .seen = oracle_counts(),
                                .virtual_s = (double)world.now_ns / (double)SIM_S - 1000};
    run.seen.takeovers = etcd.takeovers;
    run.seen.fenced = etcd.refused;
    run.seen.stale_reads = etcd.stale;
    run.seen.joins = seats_joined();
    run.seen.risen = programs_counts().raised;
    run.seen.turned_away = programs_counts().refused;
    run.seen.follower_reads = client_follower_reads();
    return run;
}
