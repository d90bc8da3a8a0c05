#include "tests/sim/market.h"

#include "runtime/clock.h"
#include "runtime/entropy.h"
#include "tests/sim/agent.h"
#include "tests/sim/broker.h"
#include "tests/sim/client.h"
#include "tests/sim/hostile.h"
#include "tests/sim/oracle.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    BROKERS_MAX = 2,
    AGENTS_MAX = 5,
    CLIENTS_MAX =
        7, /* the first is the operator, the second an agent's owner, the last two join later */
    OWNER = 1,
    NEWCOMERS = 2,
    HOSTILES = 2,
    ENTRIES_MAX = 1 << 20,
};
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
    struct genesis genesis;
    struct exchange_limits limits;
    struct journal_log *log;
    struct journal *journal; /* the oracle's view of it */
    struct broker brokers[BROKERS_MAX];
    unsigned broker_count;
    struct agent agents[AGENTS_MAX];
    unsigned agent_count;
    struct client clients[CLIENTS_MAX];
    unsigned client_count;
    struct hostile hostiles[HOSTILES];
    bool is_halted;
    struct id128 tokens[NEWCOMERS]; /* what the newcomers were given */
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

static struct identity *new_identity(void)
{
    uint8_t seed[32];
    for (size_t i = 0; i < sizeof seed; i++) {
        seed[i] = (uint8_t)draw(DICE_ENTROPY, 256);
    }
    struct identity *identity = identity_create(seed);
    assert(identity != NULL);
    return identity;
}

static uint32_t found_account(const struct identity *identity, uint32_t roles, int64_t credits,
                              const char *name)
{
    uint32_t number = 3 + market.genesis.account_count;
    struct genesis_account *account = &market.genesis.accounts[market.genesis.account_count++];
    account->key = *identity_key(identity);
    account->roles = roles;
    account->credits_micro = credits;
    (void)snprintf(account->name, sizeof account->name, "%s", name);
    oracle_knows(number, identity_transport(identity));
    return number;
}

static void make_genesis(void)
{
    struct genesis *genesis = &market.genesis;
    *genesis = (struct genesis){.cluster = {{1, 2, 3}},
                                .origin = "sim.example",
                                .log_key = {{9}},
                                .transport_key = {{8}},
                                .fee_ppm = (uint32_t)draw(DICE_WORK, 100000),
                                .price_band_micro = BAND_MICRO};
}

static void make_limits(void)
{
    market.limits = exchange_limits_default();
    market.limits.accounts = 32;
    market.limits.asks = 64;
    market.limits.jobs = 512;
    market.limits.cells = 512;
    market.limits.classes = 64;
    market.limits.leases = draw(DICE_WORK, 4) == 0 ? 60 : 1000;
    market.limits.attempts = draw(DICE_WORK, 4) == 0 ? 300 : 4000;
}

static void make_brokers(void)
{
    market.broker_count = 1 + (unsigned)draw(DICE_WORK, BROKERS_MAX);
    int64_t commit_most_ns = draw_time(DICE_WORK, 200 * SIM_US, 20 * SIM_MS);
    for (unsigned i = 0; i < market.broker_count; i++) {
        market.brokers[i] = (struct broker){.genesis = &market.genesis,
                                            .limits = &market.limits,
                                            .log = market.log,
                                            .rank = i,
                                            .mark_every = 100 + draw(DICE_WORK, 500),
                                            .commit_least_ns = 100 * SIM_US,
                                            .commit_most_ns = commit_most_ns};
        (void)snprintf(market.brokers[i].process.name, sizeof market.brokers[i].process.name,
                       "broker%u", i);
    }
}

static void name_client(char *ret_name, size_t size, unsigned i)
{
    (void)snprintf(ret_name, size, "%s%u",
                   i == 0       ? "operator"
                   : i == OWNER ? "owner"
                                : "client",
                   i);
}

/* Draws one or two members, at hours that are near. */
static void draw_conditions(struct agent_conditions *conditions)
{
    const uint32_t now_min = (uint32_t)(clock_wall_ns() / SIM_S / 60 % HOURS_DAY_MIN);
    if (draw(DICE_WORK, 5) == 0) {
        conditions->to_count = 1 + (uint32_t)draw(DICE_WORK, 2);
        for (uint32_t i = 0; i < conditions->to_count; i++) {
            const uint64_t member =
                OWNER + draw(DICE_WORK, market.client_count - NEWCOMERS - OWNER);
            name_client(conditions->to[i], sizeof conditions->to[i], (unsigned)member);
        }
    }
    for (uint32_t n = draw(DICE_WORK, 5) == 0 ? 2 : 0; conditions->hours.count < n;) {
        const uint32_t from_min =
            now_min + (uint32_t)draw(DICE_WORK, 10) + 5 * conditions->hours.count;
        const uint32_t till_min = from_min + 1 + (uint32_t)draw(DICE_WORK, 6);
        conditions->hours.windows[conditions->hours.count++] =
            (struct hours_window){.days = HOURS_ALL_DAYS,
                                  .from_min = (uint16_t)(from_min % HOURS_DAY_MIN),
                                  .till_min = (uint16_t)(1 + (till_min - 1) % HOURS_DAY_MIN)};
    }
}

static void make_agents(void)
{
    market.agent_count = 2 + (unsigned)draw(DICE_WORK, AGENTS_MAX - 1);
    for (unsigned i = 0; i < market.agent_count; i++) {
        struct agent *agent = &market.agents[i];
        (void)snprintf(agent->process.name, sizeof agent->process.name, "agent%u", i);
        bool is_referee = i < 2 || draw(DICE_WORK, 2) == 0;
        if (i == 0) {
            agent->identity = market.clients[OWNER].identity;
            agent->account = market.clients[OWNER].account;
        } else {
            agent->identity = new_identity();
            agent->account = found_account(
                agent->identity, is_referee ? ROLE_PROVIDER | ROLE_REFEREE : ROLE_PROVIDER, 0,
                agent->process.name);
        }
        agent->cheating = draw(DICE_WORK, 3) == 0 ? 2000 : 0;
        agent->cluster = market.genesis.cluster;
        agent->is_liar = i > 0 && market.profile.lie > 0 && draw(DICE_WORK, 3) == 0;
        agent->device_count = 1 + (uint32_t)draw(DICE_WORK, AGENT_DEVICES);
        agent->longest_ns = draw_time(DICE_WORK, 20 * SIM_MS, 3 * SIM_S);
        agent->failing = draw(DICE_WORK, 3) == 0 ? 600 : 100;
        for (uint32_t k = 0; k < agent->device_count; k++) {
            agent->devices[k].id = (struct id128){{(uint8_t)(i + 1), (uint8_t)(k + 1), 5}};
            agent->devices[k].slots = 1 + (uint32_t)draw(DICE_WORK, 6);
            agent->devices[k].price_micro = (int64_t)draw(DICE_WORK, 5) * 80000;
            agent->devices[k].max_term_ms = draw(DICE_WORK, 5) == 0 ? 30000 : 0;
            agent->devices[k].is_gpu = draw(DICE_WORK, 3) == 0;
            agent->devices[k].memory = (int64_t)(1 + draw(DICE_WORK, 8)) << 30;
            agent->devices[k].bf16 = (int64_t)draw(DICE_WORK, 4) * INT64_C(500000000000000);
            draw_conditions(&agent->devices[k].conditions);
            agent->devices[k].is_interruptible = draw(DICE_WORK, 2) == 0;
            agent->devices[k].notice_ms = (int64_t)draw(DICE_WORK, 4) * 700;
            agent->devices[k].minimum_run_ms = (int64_t)draw(DICE_WORK, 4) * 900;
        }
    }
}

static uint32_t client_roles(unsigned i)
{
    return i == 0       ? ROLE_OPERATOR
           : i == OWNER ? ROLE_CONSUMER | ROLE_PROVIDER | ROLE_REFEREE
                        : ROLE_CONSUMER;
}

static void make_clients(void)
{
    unsigned members = 3 + (unsigned)draw(DICE_WORK, CLIENTS_MAX - NEWCOMERS - 2);
    market.client_count = members + NEWCOMERS;
    for (unsigned i = 0; i < market.client_count; i++) {
        struct client *client = &market.clients[i];
        client->is_operator = i == 0;
        client->is_owner = i == OWNER;
        name_client(client->process.name, sizeof client->process.name, i);
        client->identity = new_identity();
        client->is_newcomer = i >= members;
        if (client->is_newcomer) {
            oracle_expects(identity_key(client->identity), identity_transport(client->identity));
        } else {
            client->account = found_account(client->identity, client_roles(i),
                                            i == 0 ? 0 : INT64_C(60000000), client->process.name);
        }
        client->largest = draw(DICE_WORK, 4) == 0 ? 120 : 30;
    }
}

static void make_hostiles(void)
{
    for (unsigned i = 0; i < HOSTILES; i++) {
        struct hostile *hostile = &market.hostiles[i];
        (void)snprintf(hostile->process.name, sizeof hostile->process.name, "hostile%u", i);
        hostile->identity = new_identity();
        if (i > 0) { /* a member; the other is a stranger */
            (void)found_account(hostile->identity, ROLE_CONSUMER | ROLE_PROVIDER, 1000,
                                hostile->process.name);
        }
    }
}

/* ---------------------------------------------------------------- what happens */

static struct agent *some_agent(void)
{
    return &market.agents[draw(DICE_FAULTS, market.agent_count)];
}

static struct client *some_consumer(void)
{
    return &market.clients[1 + draw(DICE_WORK, market.client_count - 1)];
}

static struct peer *some_peer(void)
{
    uint64_t which = draw(DICE_FAULTS, market.agent_count + market.client_count);
    return which < market.agent_count ? &market.agents[which].peer
                                      : &market.clients[which - market.agent_count].peer;
}

static struct process *some_process(void)
{
    uint64_t which =
        draw(DICE_FAULTS, market.broker_count + market.agent_count + market.client_count);
    if (which < market.broker_count) {
        return &market.brokers[which].process;
    }
    which -= market.broker_count;
    return which < market.agent_count ? &market.agents[which].process
                                      : &market.clients[which - market.agent_count].process;
}

static void crash_broker(void)
{
    struct broker *broker = &market.brokers[draw(DICE_FAULTS, market.broker_count)];
    if (broker->process.runs) {
        fault_happened(FAULT_BROKER_CRASH);
        broker_crash(broker);
    }
}

static void crash_agent(void)
{
    struct agent *agent = some_agent();
    if (agent->process.runs) {
        fault_happened(FAULT_AGENT_CRASH);
        agent_crash(agent);
    }
}

static void crash_client(void)
{
    struct client *client = &market.clients[draw(DICE_FAULTS, market.client_count)];
    if (client->process.runs) {
        fault_happened(FAULT_CLIENT_CRASH);
        client_crash(client);
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

static void cut(void)
{
    uint64_t ways = 1 + draw(DICE_FAULTS, 3);
    int64_t most_ns = draw(DICE_FAULTS, 3) == 0 ? 60 * SIM_S : 5 * SIM_S;
    struct peer *peer = some_peer();
    const bool is_held = draw(DICE_FAULTS, 2) == 0;
    const int64_t time_ns = draw_time(DICE_FAULTS, 10 * SIM_MS, most_ns);
    net_cut(peer, (ways & 1) != 0, (ways & 2) != 0, is_held, time_ns);
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

static void operate(void)
{
    struct client *operator= & market.clients[0];
    uint64_t which = draw(DICE_WORK, 8);
    if (which == 7) {
        client_sets_bands(operator, draw(DICE_WORK, 2) == 0);
    } else if (which == 0) {
        market.is_halted = !market.is_halted;
        client_halts(operator, market.is_halted);
    } else if (which < 3) {
        client_freezes(operator, identity_key(some_agent()->identity), which == 1);
    } else {
        client_mints(operator, identity_key(some_consumer()->identity));
    }
}

/* The operator invites a newcomer, or a newcomer tries what it was given: sometimes before the
 * invitation stands, sometimes when it is over, sometimes one that the other newcomer was given
 * too. */
static void newcomers(void)
{
    uint32_t which = (uint32_t)draw(DICE_WORK, NEWCOMERS);
    struct client *newcomer = &market.clients[market.client_count - NEWCOMERS + which];
    struct id128 *token = &market.tokens[which];
    uint32_t account;
    if (oracle_joined(identity_key(newcomer->identity), &account)) {
        return;
    }
    if (draw(DICE_WORK, 3) == 0) {
        int64_t lasts_ns = draw(DICE_WORK, 3) == 0 ? 3 * SIM_S : 3600 * SIM_S;
        *token = entropy_id();
        client_invites(&market.clients[0], token,
                       (exchange_log_time_ns(oracle_exchange()) + lasts_ns) / SIM_MS);
    } else {
        client_joins(newcomer, draw(DICE_WORK, 5) == 0 ? &market.tokens[1 - which] : token);
    }
}

static void happen(uint32_t per_10000, void (*run)(void))
{
    if (chance(DICE_FAULTS, per_10000)) {
        run();
    }
}

static void lie(void)
{
    struct agent *agent = some_agent();
    if (agent->is_liar) {
        agent_lies(agent);
    }
}

static void be_hostile(void)
{
    hostile_acts(&market.hostiles[draw(DICE_WORK, HOSTILES)]);
}

static void replay(void)
{
    net_replay(some_peer());
}

static void trouble(void)
{
    const struct profile *profile = &market.profile;
    happen(profile->broker_crash, crash_broker);
    happen(profile->agent_crash, crash_agent);
    happen(profile->client_crash, crash_client);
    happen(profile->stall, stall);
    happen(profile->cut, cut);
    happen(profile->memory, fail_memory);
    happen(profile->takeover, take_over);
    happen(profile->nonsense, be_hostile);
    happen(profile->lie, lie);
    happen(profile->replay * 5, replay);
    happen(profile->clock_jump, jump_clock);
    happen(profile->operator_acts, operate);
}

/* The owner of the first agent has its own mind about one of its devices. */
static void own(void)
{
    struct client *owner = &market.clients[OWNER];
    const struct agent *agent = &market.agents[0];
    const struct id128 *device = &agent->devices[draw(DICE_WORK, agent->device_count)].id;
    const uint64_t which = draw(DICE_WORK, 5);
    struct id128 order;
    if (which < 3) {
        client_offers(owner, device);
    } else if (oracle_ask_of(agent->account, device, &order)) {
        (which == 3 ? client_reprices : client_withdraws)(owner, &order);
    }
}

static void work(void)
{
    struct client *client = some_consumer();
    uint64_t which = draw(DICE_WORK, 20);
    if (which < 8 && client_open(client) < market.profile.jobs_open) {
        client_submits(client);
    } else if (which < 10) {
        client_asks(client);
    } else if (which == 10) {
        client_cancels(client);
    } else if (which == 11) {
        newcomers();
    } else if (which == 14) {
        client_judges(client);
    } else if (which == 12) {
        client_replaces(client);
    } else if (which == 13) {
        own();
    } else if (chance(DICE_WORK, market.profile.replay)) {
        client_repeats(client);
    }
}

static void pulse(void *context, uint64_t a, uint64_t b)
{
    (void)context;
    (void)a;
    (void)b;
    if (!world.calm) {
        trouble();
        work();
        event_in(draw_time(DICE_WORK, market.profile.pulse_ns / 2, market.profile.pulse_ns), NULL,
                 pulse, NULL, 0, 0);
    }
}

/* ---------------------------------------------------------------- the calm */

static void end_cuts(struct peer *peer)
{
    peer->cut_to_until_ns = 0;
    peer->cut_from_until_ns = 0;
}

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
    for (unsigned i = 0; i < market.agent_count; i++) {
        market.agents[i].process.failing_in = 0;
        end_cuts(&market.agents[i].peer);
    }
    for (unsigned i = 0; i < market.client_count; i++) {
        market.clients[i].process.failing_in = 0;
        end_cuts(&market.clients[i].peer);
    }
}

/* Whatever was halted or frozen is free again; asked for again while an older request may still
 * undo it. */
static void reopen_market(void)
{
    struct client *operator= & market.clients[0];
    if (exchange_halted(oracle_exchange())) {
        client_halts(operator, false);
    }
    const struct exchange_bands bands = exchange_bands_now(oracle_exchange());
    if (bands.least_micro != 0 || bands.most_micro != BAND_MICRO || bands.notional_micro != 0) {
        client_sets_bands(operator, true);
    }
    for (unsigned i = 0; i < market.agent_count; i++) {
        struct exchange_account_row row;
        if (exchange_account(oracle_exchange(), market.agents[i].account, &row) && row.frozen) {
            client_freezes(operator, & row.key, false);
        }
    }
}

/* Returns how much is not right yet; 0: everything is. */
static size_t unfinished(bool tells)
{
    size_t count = 0;
    for (unsigned i = 0; i < market.agent_count; i++) {
        if (!agent_is_ready(&market.agents[i])) {
            count++;
            if (tells) {
                trace("%s is not ready", market.agents[i].process.name);
            }
        }
    }
    for (unsigned i = 0; i < market.client_count; i++) {
        const struct client *client = &market.clients[i];
        size_t open = client_open(client);
        size_t unseen = client_unseen(client);
        count += open + unseen + (client_is_ready(client) ? 0 : 1);
        if (tells && open + unseen > 0) {
            client_tells(client);
            trace("%s: %zu requests without an answer, %zu jobs not found", client->process.name,
                  open, unseen);
        }
    }
    size_t stuck = oracle_stuck_jobs();
    if (tells) {
        trace("%zu jobs do not end", stuck);
    }
    return count + stuck;
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
        reopen_market();
        for (unsigned i = 0; i < market.client_count; i++) {
            client_asks_for_all(&market.clients[i]);
        }
        left = unfinished(false);
    }
    if (left > 0) {
        (void)unfinished(true);
        sim_fail("%zu things are not right %.0f s after the faults stopped", left,
                 (double)CALM_MOST_NS / (double)SIM_S);
    }
}

/* ---------------------------------------------------------------- the whole */

static void run_storm(void)
{
    int64_t until_ns = world.now_ns + STORM_MOST_NS;
    event_in(SIM_S, NULL, pulse, NULL, 0, 0);
    while (oracle_commands() < MARKET_COMMANDS_LEAST || faults_total() < MARKET_FAULTS_LEAST) {
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
    draw_profile(&market.profile);
    make_genesis();
    make_limits();
    market.log = journal_log_create(random_u64(&world.dice[DICE_FAULTS]), ENTRIES_MAX);
    assert(market.log != NULL);
    journal_log_set_faults(market.log, &market.profile.journal);
    market.journal = journal_memory_open(market.log);
    assert(market.journal != NULL);
    oracle_start(&(struct oracle_log){.last = log_last, .next = log_next}, &market.limits);
    net_start(&market.profile.net);
    make_clients();
    make_agents();
    make_hostiles();
    make_brokers();
    for (unsigned i = 0; i < market.broker_count; i++) {
        broker_start(&market.brokers[i]);
    }
    for (unsigned i = 0; i < market.client_count; i++) {
        client_start(&market.clients[i]);
    }
    for (unsigned i = 0; i < market.agent_count; i++) {
        agent_start(&market.agents[i]);
    }
    for (unsigned i = 0; i < HOSTILES; i++) {
        hostile_start(&market.hostiles[i]);
    }
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
