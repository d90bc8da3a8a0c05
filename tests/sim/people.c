#include "tests/sim/people.h"

#include "runtime/clock.h"
#include "runtime/entropy.h"
#include "tests/sim/oracle.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

struct people people;

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
    uint32_t number = 3 + people.genesis.account_count;
    struct genesis_account *account = &people.genesis.accounts[people.genesis.account_count++];
    account->key = *identity_key(identity);
    account->roles = roles;
    account->credits_micro = credits;
    (void)snprintf(account->name, sizeof account->name, "%s", name);
    oracle_knows(number, identity_transport(identity));
    return number;
}

void people_found(void)
{
    struct genesis *genesis = &people.genesis;
    *genesis = (struct genesis){.cluster = {{1, 2, 3}},
                                .origin = "sim.example",
                                .log_key = {{9}},
                                .transport_key = {{8}},
                                .fee_ppm = (uint32_t)draw(DICE_WORK, 100000),
                                .price_band_micro = BAND_MICRO};
}

void people_draw_limits(void)
{
    people.limits = exchange_limits_default();
    people.limits.accounts = 32;
    people.limits.asks = 64;
    people.limits.jobs = 512;
    people.limits.cells = 512;
    people.limits.classes = 64;
    people.limits.leases = draw(DICE_WORK, 4) == 0 ? 60 : 1000;
    people.limits.attempts = draw(DICE_WORK, 4) == 0 ? 300 : 4000;
}

static void name_client(char *ret_name, size_t size, unsigned i)
{
    (void)snprintf(ret_name, size, "%s%u",
                   i == 0              ? "operator"
                   : i == PEOPLE_OWNER ? "owner"
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
                PEOPLE_OWNER +
                draw(DICE_WORK, people.client_count - PEOPLE_NEWCOMERS - PEOPLE_OWNER);
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

void people_make_agents(void)
{
    people.agent_count = 2 + (unsigned)draw(DICE_WORK, PEOPLE_AGENTS_MAX - 1);
    for (unsigned i = 0; i < people.agent_count; i++) {
        struct agent *agent = &people.agents[i];
        (void)snprintf(agent->process.name, sizeof agent->process.name, "agent%u", i);
        bool is_referee = i < 2 || draw(DICE_WORK, 2) == 0;
        if (i == 0) {
            agent->identity = people.clients[PEOPLE_OWNER].identity;
            agent->account = people.clients[PEOPLE_OWNER].account;
        } else {
            agent->identity = new_identity();
            agent->account = found_account(
                agent->identity, is_referee ? ROLE_PROVIDER | ROLE_REFEREE : ROLE_PROVIDER, 0,
                agent->process.name);
        }
        agent->cheating = draw(DICE_WORK, 3) == 0 ? 2000 : 0;
        agent->cluster = people.genesis.cluster;
        agent->is_liar = i > 0 && people.habits.lie > 0 && draw(DICE_WORK, 3) == 0;
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
    return i == 0              ? ROLE_OPERATOR
           : i == PEOPLE_OWNER ? ROLE_CONSUMER | ROLE_PROVIDER | ROLE_REFEREE
                               : ROLE_CONSUMER;
}

void people_make_clients(void)
{
    unsigned members = 3 + (unsigned)draw(DICE_WORK, PEOPLE_CLIENTS_MAX - PEOPLE_NEWCOMERS - 2);
    people.client_count = members + PEOPLE_NEWCOMERS;
    for (unsigned i = 0; i < people.client_count; i++) {
        struct client *client = &people.clients[i];
        client->is_operator = i == 0;
        client->is_owner = i == PEOPLE_OWNER;
        client->reads_anywhere = i % 2 == 1;
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

void people_make_hostiles(void)
{
    for (unsigned i = 0; i < PEOPLE_HOSTILES; i++) {
        struct hostile *hostile = &people.hostiles[i];
        (void)snprintf(hostile->process.name, sizeof hostile->process.name, "hostile%u", i);
        hostile->identity = new_identity();
        if (i > 0) { /* a member; the other is a stranger */
            (void)found_account(hostile->identity, ROLE_CONSUMER | ROLE_PROVIDER, 1000,
                                hostile->process.name);
        }
    }
}

/* ---------------------------------------------------------------- what they want */

static struct agent *some_agent(void)
{
    return &people.agents[draw(DICE_FAULTS, people.agent_count)];
}

static struct client *some_consumer(void)
{
    return &people.clients[1 + draw(DICE_WORK, people.client_count - 1)];
}

void people_operate(void)
{
    struct client *operator= & people.clients[0];
    uint64_t which = draw(DICE_WORK, 8);
    if (which == 7) {
        client_sets_bands(operator, draw(DICE_WORK, 2) == 0);
    } else if (which == 0) {
        people.is_halted = !people.is_halted;
        client_halts(operator, people.is_halted);
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
    uint32_t which = (uint32_t)draw(DICE_WORK, PEOPLE_NEWCOMERS);
    struct client *newcomer = &people.clients[people.client_count - PEOPLE_NEWCOMERS + which];
    struct id128 *token = &people.tokens[which];
    uint32_t account;
    if (oracle_joined(identity_key(newcomer->identity), &account)) {
        return;
    }
    if (draw(DICE_WORK, 3) == 0) {
        int64_t lasts_ns = draw(DICE_WORK, 3) == 0 ? 3 * SIM_S : 3600 * SIM_S;
        *token = entropy_id();
        client_invites(&people.clients[0], token,
                       (exchange_log_time_ns(oracle_exchange()) + lasts_ns) / SIM_MS);
    } else {
        client_joins(newcomer, draw(DICE_WORK, 5) == 0 ? &people.tokens[1 - which] : token);
    }
}

void people_lie(void)
{
    struct agent *agent = some_agent();
    if (agent->is_liar) {
        agent_lies(agent);
    }
}

void people_be_hostile(void)
{
    hostile_acts(&people.hostiles[draw(DICE_WORK, PEOPLE_HOSTILES)]);
}

/* The owner of the first agent has its own mind about one of its devices. */
static void own(void)
{
    struct client *owner = &people.clients[PEOPLE_OWNER];
    const struct agent *agent = &people.agents[0];
    const struct id128 *device = &agent->devices[draw(DICE_WORK, agent->device_count)].id;
    const uint64_t which = draw(DICE_WORK, 5);
    struct id128 order;
    if (which < 3) {
        client_offers(owner, device);
    } else if (oracle_ask_of(agent->account, device, &order)) {
        (which == 3 ? client_reprices : client_withdraws)(owner, &order);
    }
}

void people_work(void)
{
    struct client *client = some_consumer();
    uint64_t which = draw(DICE_WORK, 20);
    if (which < 8 && client_open(client) < people.habits.jobs_open) {
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
    } else if (chance(DICE_WORK, people.habits.replay)) {
        client_repeats(client);
    }
}

/* ---------------------------------------------------------------- what befalls them */

struct peer *people_some_peer(void)
{
    uint64_t which = draw(DICE_FAULTS, people.agent_count + people.client_count);
    return which < people.agent_count ? &people.agents[which].peer
                                      : &people.clients[which - people.agent_count].peer;
}

void people_crash_agent(void)
{
    struct agent *agent = some_agent();
    if (agent->process.runs) {
        fault_happened(FAULT_AGENT_CRASH);
        agent_crash(agent);
    }
}

void people_crash_client(void)
{
    struct client *client = &people.clients[draw(DICE_FAULTS, people.client_count)];
    if (client->process.runs) {
        fault_happened(FAULT_CLIENT_CRASH);
        client_crash(client);
    }
}

void people_cut(void)
{
    uint64_t ways = 1 + draw(DICE_FAULTS, 3);
    int64_t most_ns = draw(DICE_FAULTS, 3) == 0 ? 60 * SIM_S : 5 * SIM_S;
    struct peer *peer = people_some_peer();
    const bool is_held = draw(DICE_FAULTS, 2) == 0;
    const int64_t time_ns = draw_time(DICE_FAULTS, 10 * SIM_MS, most_ns);
    net_cut(peer, (ways & 1) != 0, (ways & 2) != 0, is_held, time_ns);
}

void people_replay(void)
{
    net_replay(people_some_peer());
}

/* ---------------------------------------------------------------- the calm */

static void end_cuts(struct peer *peer)
{
    peer->cut_to_until_ns = 0;
    peer->cut_from_until_ns = 0;
}

void people_become_calm(void)
{
    for (unsigned i = 0; i < people.agent_count; i++) {
        people.agents[i].process.failing_in = 0;
        end_cuts(&people.agents[i].peer);
    }
    for (unsigned i = 0; i < people.client_count; i++) {
        people.clients[i].process.failing_in = 0;
        end_cuts(&people.clients[i].peer);
    }
}

/* Whatever was halted or frozen is free again; asked for again while an older request may still
 * undo it. */
void people_reopen(void)
{
    struct client *operator= & people.clients[0];
    if (exchange_halted(oracle_exchange())) {
        client_halts(operator, false);
    }
    const struct exchange_bands bands = exchange_bands_now(oracle_exchange());
    if (bands.least_micro != 0 || bands.most_micro != BAND_MICRO || bands.notional_micro != 0) {
        client_sets_bands(operator, true);
    }
    for (unsigned i = 0; i < people.agent_count; i++) {
        struct exchange_account_row row;
        if (exchange_account(oracle_exchange(), people.agents[i].account, &row) && row.frozen) {
            client_freezes(operator, & row.key, false);
        }
    }
}

/* Returns how much is not right yet; 0: everything is. */
size_t people_unfinished(bool tells)
{
    size_t count = 0;
    for (unsigned i = 0; i < people.agent_count; i++) {
        if (!agent_is_ready(&people.agents[i])) {
            count++;
            if (tells) {
                trace("%s is not ready", people.agents[i].process.name);
            }
        }
    }
    for (unsigned i = 0; i < people.client_count; i++) {
        const struct client *client = &people.clients[i];
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

void people_start(void)
{
    for (unsigned i = 0; i < people.client_count; i++) {
        client_start(&people.clients[i]);
    }
    for (unsigned i = 0; i < people.agent_count; i++) {
        agent_start(&people.agents[i]);
    }
    for (unsigned i = 0; i < PEOPLE_HOSTILES; i++) {
        hostile_start(&people.hostiles[i]);
    }
}
