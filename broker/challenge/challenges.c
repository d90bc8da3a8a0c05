#include "broker/challenge/challenges.h"

#include "base/sha256.h"
#include "broker/answer/wire_view.h"
#include "exchange/lifecycle.h"
#include "exchange/view/listings.h"
#include "protocol/limits.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* An answer that takes this many times what is allowed, and this many heartbeats, is missing. */
enum { MISSING_TIMES = 4, MISSING_HEARTBEATS = 30 };
#define LOOK_LEAST_NS (100 * NS_PER_MS)
#define LOOK_MOST_NS (60 * NS_PER_S)
#define LOOK_BUSY_NS NS_PER_S         /* the device that is due is let, or not on offer */
#define DOUBT_AGAIN_NS (5 * NS_PER_S) /* the gateway could not pass the note on */

static_assert((int)CHALLENGE_ANSWER_MOST <= (int)LIMIT_CHALLENGE_BYTES, "an answer fits a message");

enum stage { STAGE_NONE, STAGE_WAY, STAGE_WORK };

struct agent {
    uint32_t account;
    uint64_t session;
    struct id128 id; /* of the message that waits */
    bool is_waiting;
    /* The agent did not answer in time, and has said nothing since. It cannot be challenged again
     * before, so that each further due time counts as another missing answer. */
    bool owes;
    enum stage stage;
    struct id128 device;
    struct challenge_product product;
    int64_t claimed_mflops;
    bool on_device, answers_chains;
    int64_t sent_ns, trip_ns, missing_ns;
    int64_t until_ns; /* the waiting message is answered by then */
    int64_t look_ns;
    int64_t doubt_ns; /* no second note before */
};

struct challenges {
    struct challenges_config config;
    struct challenge_facts *facts;
    struct agent *agents[CHALLENGES_AGENTS];
    size_t count;
    int16_t *factor; /* of a chain that is checked */
    int64_t next_ns; /* no challenge begins before */
    bool has_changed, is_urgent;
};

struct challenges *challenges_create(const struct challenges_config *config)
{
    struct challenges *challenges = calloc(1, sizeof *challenges);
    if (challenges != NULL) {
        challenges->config = *config;
        challenges->facts = challenge_facts_create();
        challenges->factor = malloc((size_t)CHALLENGE_CHAIN_SIDE_MOST * CHALLENGE_CHAIN_SIDE_MOST *
                                    sizeof *challenges->factor);
        if (challenges->facts == NULL || challenges->factor == NULL) {
            challenges_destroy(&challenges);
        }
    }
    return challenges;
}

void challenges_destroy(struct challenges **self)
{
    struct challenges *challenges = *self;
    if (challenges != NULL) {
        for (size_t i = 0; i < challenges->count; i++) {
            free(challenges->agents[i]);
        }
        challenge_facts_destroy(&challenges->facts);
        free(challenges->factor);
        free(challenges);
        *self = NULL;
    }
}

struct challenge_facts *challenges_facts(struct challenges *challenges)
{
    return challenges->facts;
}

bool challenges_changed(struct challenges *challenges, bool *ret_is_urgent)
{
    const bool has_changed = challenges->has_changed;
    *ret_is_urgent = challenges->is_urgent;
    challenges->has_changed = challenges->is_urgent = false;
    return has_changed;
}

/* Each use of the dice has a number of its own, so that no use tells anything of another. */
static struct hash32 dice_of(const struct challenges_now *now, uint8_t use)
{
    struct sha256 hash;
    sha256_start(&hash);
    sha256_add(&hash, now->dice.bytes, sizeof now->dice.bytes);
    sha256_add(&hash, &use, sizeof use);
    return sha256_end(&hash);
}

enum { DICE_SEED = 1, DICE_SPREAD = 2, DICE_ROWS = 3 };

static uint64_t number_of(const struct hash32 *dice, size_t which)
{
    uint64_t number = 0;
    memcpy(&number, dice->bytes + (which % 4) * sizeof number, sizeof number);
    return number;
}

/* ---------------------------------------------------------------- devices */

static const struct attribute *attribute_of(const struct exchange_device_row *row, const char *name)
{
    for (size_t i = 0; i < row->attribute_count; i++) {
        if (strcmp(row->attributes[i].name, name) == 0) {
            return &row->attributes[i];
        }
    }
    return NULL;
}

/* Returns true when one of the attributes of this name has the text. */
static bool says(const struct exchange_device_row *row, const char *name, const char *text)
{
    bool is_said = false;
    for (size_t i = 0; !is_said && i < row->attribute_count; i++) {
        const struct attribute *attribute = &row->attributes[i];
        is_said = attribute->is_text && strcmp(attribute->name, name) == 0 &&
                  strcmp(attribute->text, text) == 0;
    }
    return is_said;
}

/* Returns true for a device that computes elsewhere than on processor cores, as far as the market
 * knows: by a driver's interface, or by a plug-in. */
static bool is_on_device(const struct exchange_device_row *row)
{
    return attribute_of(row, "api") != NULL || says(row, "executor", "plugin");
}

/* Returns true when the agent answers for this device. An older agent answers for cores alone, and
 * does not say `challenge`. */
static bool is_answered(const struct exchange_device_row *row)
{
    return !is_on_device(row) || says(row, "challenge", "gemm_fp32");
}

/* Returns true when the device answers chains: it shows what it computes without copies. */
static bool answers_chains(const struct exchange_device_row *row)
{
    return is_on_device(row) && says(row, "challenge", "gemm_fp32_held");
}

static int64_t figure_of(const struct exchange_device_row *row, const char *name)
{
    const struct attribute *figure = attribute_of(row, name);
    return figure != NULL && !figure->is_text && figure->number > 0 ? figure->number : 0;
}

/* Returns the claim that can be challenged, or 0. Simulated devices claim a model's speed. */
static int64_t claim_of(const struct exchange_device_row *row)
{
    const struct attribute *simulated = attribute_of(row, "simulated");
    const int64_t claim = figure_of(row, "gemm_fp32");
    const int64_t held = answers_chains(row) ? figure_of(row, "gemm_fp32_held") : 0;
    if ((simulated != NULL && (simulated->is_text || simulated->number != 0)) ||
        !is_answered(row)) {
        return 0;
    }
    return held > claim ? held : claim;
}

struct search {
    const struct id128 *device;
    bool is_found;
    struct exchange_device_row row;
    int64_t claimed_mflops;
};

static bool find_one(void *context, const struct exchange_device_row *row)
{
    struct search *search = context;
    if (id128_equal(&row->device, search->device)) {
        search->is_found = true;
        search->row = *row;
        search->claimed_mflops = claim_of(row);
    }
    return !search->is_found;
}

static struct search find_device(const struct exchange *exchange, uint32_t account,
                                 const struct id128 *device)
{
    struct search search = {.device = device};
    exchange_visit_devices(exchange, account, find_one, &search);
    return search;
}

static int64_t soon_ns(const struct challenges *challenges)
{
    const int64_t every_ns = challenges->config.every_ns;
    return every_ns < CHALLENGE_SOON_NS ? every_ns : CHALLENGE_SOON_NS;
}

struct round {
    struct challenges *challenges;
    const struct challenges_now *now;
    uint32_t account;
    int64_t due_ns; /* log time of the first device that is due */
    bool is_due, is_doubted;
    struct exchange_device_row row;
    int64_t claimed_mflops;
};

/* Looks at one device: when is it due, and may it keep its ask? */
static bool look_at(void *context, const struct exchange_device_row *row)
{
    struct round *round = context;
    const int64_t claimed = claim_of(row);
    struct challenge_fact *fact =
        claimed > 0 ? challenge_facts_of(round->challenges->facts, round->account, &row->device)
                    : NULL;
    if (fact == NULL) {
        return true;
    }
    if (fact->seen_mflops != claimed) {
        const struct hash32 dice = dice_of(round->now, DICE_SPREAD);
        const int64_t soon = round->now->log_ns + challenge_rules_spread(soon_ns(round->challenges),
                                                                         number_of(&dice, 0));
        const bool is_new = fact->outcome == CHALLENGE_NONE && fact->due_ns == 0;
        if (is_new || (claimed > fact->claimed_mflops && soon < fact->due_ns)) {
            fact->due_ns = soon;
        }
        fact->seen_mflops = claimed;
    }
    const bool is_offered = row->price_micro >= 0 && row->state == PROVIDER_PRESENT;
    round->is_doubted = round->is_doubted ||
                        (is_offered && !challenge_rules_admit(fact, claimed, round->now->log_ns));
    if (is_offered && row->leased == 0 && !round->is_due && fact->due_ns <= round->now->log_ns) {
        round->is_due = true;
        round->row = *row;
        round->claimed_mflops = claimed;
    }
    round->due_ns = fact->due_ns < round->due_ns ? fact->due_ns : round->due_ns;
    return true;
}

/* ---------------------------------------------------------------- challenges */

static int64_t allowed_ns(const struct agent *agent)
{
    return challenge_rules_allowed_ns(&agent->product, agent->claimed_mflops, agent->on_device);
}

static struct outgoing *challenge(struct challenges *challenges, struct agent *agent,
                                  enum stage stage, const struct challenges_now *now)
{
    Bourse__V1__Challenge body = BOURSE__V1__CHALLENGE__INIT;
    agent->stage = stage;
    if (stage == STAGE_WORK) {
        challenge_rules_size(agent->claimed_mflops, agent->answers_chains, &agent->product);
    } else {
        challenge_rules_way(agent->claimed_mflops, agent->answers_chains, &agent->product);
    }
    agent->product.seed = dice_of(now, DICE_SEED);
    agent->is_waiting = false;
    agent->sent_ns = now->monotonic_ns;
    agent->missing_ns = now->monotonic_ns + MISSING_TIMES * allowed_ns(agent) +
                        MISSING_HEARTBEATS * challenges->config.heartbeat_ns;
    agent->look_ns = agent->missing_ns;
    body.device = wire_view(agent->device.bytes, sizeof agent->device.bytes);
    body.seed = wire_view(agent->product.seed.bytes, sizeof agent->product.seed.bytes);
    body.side = agent->product.side;
    body.rounds = agent->product.rounds;
    body.has_rows = body.has_steps = challenge_product_is_chain(&agent->product);
    body.rows = agent->product.rows;
    body.steps = agent->product.steps;
    struct outgoing *outgoing =
        outgoing_address(outgoing_message(OUTGOING_REPLY, MESSAGE_CHALLENGE, &body.base),
                         agent->session, &agent->id);
    outgoing->account = agent->account;
    return outgoing;
}

/* Checks the digest of this number. The factor of a chain is in challenges->factor. */
static bool digest_holds(const struct challenges *challenges,
                         const struct challenge_product *product, const uint8_t *digests,
                         uint32_t number)
{
    if (challenge_product_is_chain(product)) {
        uint8_t own[CHALLENGE_CHAIN_DIGEST_BYTES];
        challenge_chain_row(product, challenges->factor, number / product->rows,
                            number % product->rows, own);
        return memcmp(digests + (size_t)number * sizeof own, own, sizeof own) == 0;
    }
    return challenge_product_holds(product, number / product->side, number % product->side,
                                   digests + (size_t)number * CHALLENGE_DIGEST_BYTES);
}

static bool is_right(const struct challenges *challenges, const struct agent *agent,
                     const Bourse__V1__ChallengeReady *body, const struct challenges_now *now)
{
    const struct hash32 dice = dice_of(now, DICE_ROWS);
    const struct challenge_product *product = &agent->product;
    if (body->digests.len != challenge_product_answer_bytes(product)) {
        return false;
    }
    if (challenge_product_is_chain(product)) {
        challenge_chain_factor(product, challenges->factor);
    }
    bool holds = true;
    for (size_t i = 0; holds && i < CHALLENGE_ROWS_CHECKED; i++) {
        const uint32_t number =
            (uint32_t)(number_of(&dice, i) % challenge_product_digests(product));
        holds = digest_holds(challenges, product, body->digests.data, number);
    }
    return holds;
}

/* Returns true for a device that is on offer and computes for nobody. */
static bool is_idle_offer(const struct search *search)
{
    return search->is_found && search->row.leased == 0 && search->row.price_micro >= 0 &&
           search->row.state == PROVIDER_PRESENT;
}

/* Ends the challenge under way. An outcome of NONE counts for nothing: it is tried again. */
static void settle(struct challenges *challenges, const struct exchange *exchange,
                   struct agent *agent, enum challenge_outcome outcome, int64_t shown_mflops,
                   const struct challenges_now *now)
{
    const struct search search = find_device(exchange, agent->account, &agent->device);
    struct challenge_fact *fact =
        challenge_facts_of(challenges->facts, agent->account, &agent->device);
    const bool is_judged = outcome != CHALLENGE_NONE && is_idle_offer(&search) &&
                           search.claimed_mflops == agent->claimed_mflops;
    agent->stage = STAGE_NONE;
    agent->look_ns = now->monotonic_ns;
    if (fact == NULL) {
        return;
    }
    if (!is_judged) {
        fact->due_ns = now->log_ns + (challenges->config.every_ns < CHALLENGE_AGAIN_NS
                                          ? challenges->config.every_ns
                                          : CHALLENGE_AGAIN_NS);
        return;
    }
    const struct hash32 dice = dice_of(now, DICE_SPREAD);
    const bool is_bad =
        challenge_rules_settle(fact, outcome, agent->claimed_mflops, shown_mflops, now->log_ns,
                               challenges->config.every_ns, number_of(&dice, 0));
    challenges->has_changed = true;
    challenges->is_urgent = challenges->is_urgent || is_bad;
}

/* Judges the answer to the challenge under way. Returns true when the next one follows at once. */
static bool judge(struct challenges *challenges, const struct exchange *exchange,
                  struct agent *agent, const struct request *request,
                  const struct challenges_now *now)
{
    const Bourse__V1__ChallengeReady *body = (const void *)request->translation.body;
    const int64_t took_ns = request->arrived_ns - agent->sent_ns;
    if (!body->has_digests) {
        const struct search search = find_device(exchange, agent->account, &agent->device);
        struct challenge_fact *fact =
            challenge_facts_of(challenges->facts, agent->account, &agent->device);
        const bool is_missing =
            is_idle_offer(&search) && fact != NULL && challenge_rules_decline(fact);
        settle(challenges, exchange, agent, is_missing ? CHALLENGE_UNANSWERED : CHALLENGE_NONE, 0,
               now);
        return false;
    }
    if (!is_right(challenges, agent, body, now)) {
        settle(challenges, exchange, agent, CHALLENGE_WRONG, 0, now);
        return false;
    }
    if (agent->stage == STAGE_WAY) {
        agent->trip_ns = took_ns < CHALLENGE_TRIP_MOST_NS ? took_ns : CHALLENGE_TRIP_MOST_NS;
        return true;
    }
    const int64_t worked_ns = took_ns > agent->trip_ns ? took_ns - agent->trip_ns : 1;
    const bool is_in_time = worked_ns <= allowed_ns(agent);
    settle(challenges, exchange, agent, is_in_time ? CHALLENGE_OK : CHALLENGE_SLOW,
           challenge_rules_shown(&agent->product, worked_ns), now);
    return false;
}

static struct agent *agent_of(struct challenges *challenges, uint32_t account)
{
    for (size_t i = 0; i < challenges->count; i++) {
        if (challenges->agents[i]->account == account) {
            return challenges->agents[i];
        }
    }
    struct agent *agent = challenges->count == CHALLENGES_AGENTS ? NULL : calloc(1, sizeof *agent);
    if (agent != NULL) {
        agent->account = account;
        challenges->agents[challenges->count++] = agent;
    }
    return agent;
}

static bool answers(const struct agent *agent, const Bourse__V1__ChallengeReady *body)
{
    return agent->stage != STAGE_NONE && body->has_device &&
           memcmp(body->device.data, agent->device.bytes, sizeof agent->device.bytes) == 0 &&
           memcmp(body->seed.data, agent->product.seed.bytes, sizeof agent->product.seed.bytes) ==
               0;
}

struct outgoing *challenges_ready(struct challenges *challenges, const struct exchange *exchange,
                                  const struct request *request, const struct challenges_now *now,
                                  struct outgoing **ret_former)
{
    const Bourse__V1__ChallengeReady *body = (const void *)request->translation.body;
    struct agent *agent = agent_of(challenges, request->account);
    *ret_former = NULL;
    if (agent == NULL) {
        return outgoing_refuse(request, REJECT_BUSY, "agents_challenged", CHALLENGES_AGENTS,
                               CHALLENGES_AGENTS);
    }
    /* The same message may come again, over another connection. */
    if (agent->is_waiting && !id128_equal(&agent->id, &request->envelope.id)) {
        *ret_former = outgoing_reject(agent->session, &agent->id, REJECT_BUSY, "", 0, 0);
    }
    agent->session = request->session;
    agent->id = request->envelope.id;
    agent->is_waiting = true;
    agent->owes = false;
    agent->until_ns = now->monotonic_ns + LIMIT_WAIT_MS * NS_PER_MS;
    agent->look_ns = now->monotonic_ns;
    if (answers(agent, body)) {
        if (judge(challenges, exchange, agent, request, now)) {
            return challenge(challenges, agent, STAGE_WORK, now);
        }
    } else if (agent->stage != STAGE_NONE) {
        settle(challenges, exchange, agent, CHALLENGE_NONE, 0, now); /* the agent began anew */
    }
    return NULL;
}

static void drop(struct challenges *challenges, size_t place)
{
    free(challenges->agents[place]);
    challenges->agents[place] = challenges->agents[--challenges->count];
}

void challenges_forget(struct challenges *challenges, uint64_t session)
{
    for (size_t i = challenges->count; i-- > 0;) {
        if (challenges->agents[i]->session == session) {
            drop(challenges, i);
        }
    }
}

void challenges_silent(struct challenges *challenges, uint32_t account)
{
    for (size_t i = challenges->count; i-- > 0;) {
        if (challenges->agents[i]->account == account) {
            challenges->agents[i]->stage = STAGE_NONE;
            challenges->agents[i]->owes = false;
            challenges->agents[i]->look_ns = 0;
        }
    }
}

/* ---------------------------------------------------------------- what is due */

static int64_t due_of(const struct challenges *challenges, const struct agent *agent)
{
    const int64_t until_ns = agent->is_waiting ? agent->until_ns : INT64_MAX;
    return challenges->config.every_ns > 0 && agent->look_ns < until_ns ? agent->look_ns : until_ns;
}

int64_t challenges_due_ns(const struct challenges *challenges)
{
    int64_t due_ns = INT64_MAX;
    for (size_t i = 0; i < challenges->count; i++) {
        const int64_t of_agent = due_of(challenges, challenges->agents[i]);
        due_ns = of_agent < due_ns ? of_agent : due_ns;
    }
    return due_ns;
}

/* Answers a message that has waited long enough: the agent asks again. */
static struct outgoing *let_go(struct agent *agent)
{
    agent->is_waiting = false;
    return outgoing_reject(agent->session, &agent->id, REJECT_BUSY, "", 0, 0);
}

static struct outgoing *doubt(struct agent *agent, const struct challenges_now *now)
{
    struct outgoing *outgoing = outgoing_create(OUTGOING_DOUBT);
    if (outgoing != NULL) {
        outgoing->account = agent->account;
        agent->doubt_ns = now->monotonic_ns + DOUBT_AGAIN_NS;
    }
    return outgoing;
}

static struct outgoing *look(struct challenges *challenges, const struct exchange *exchange,
                             struct agent *agent, const struct challenges_now *now)
{
    struct round round = {
        .challenges = challenges, .now = now, .account = agent->account, .due_ns = INT64_MAX};
    exchange_visit_devices(exchange, agent->account, look_at, &round);
    const int64_t wait_ns = round.due_ns == INT64_MAX ? LOOK_MOST_NS : round.due_ns - now->log_ns;
    agent->look_ns = now->monotonic_ns + (wait_ns <= 0              ? LOOK_BUSY_NS
                                          : wait_ns < LOOK_LEAST_NS ? LOOK_LEAST_NS
                                          : wait_ns > LOOK_MOST_NS  ? LOOK_MOST_NS
                                                                    : wait_ns);
    if (round.is_doubted && agent->doubt_ns <= now->monotonic_ns) {
        return doubt(agent, now);
    }
    if (round.is_due && agent->owes && id128_equal(&round.row.device, &agent->device)) {
        settle(challenges, exchange, agent, CHALLENGE_UNANSWERED, 0, now);
        agent->look_ns = now->monotonic_ns + LOOK_LEAST_NS;
    }
    if (!round.is_due || !agent->is_waiting) {
        return NULL;
    }
    if (challenges->next_ns > now->monotonic_ns) {
        agent->look_ns = challenges->next_ns;
        return NULL;
    }
    challenges->next_ns = now->monotonic_ns + CHALLENGES_APART_NS;
    agent->device = round.row.device;
    agent->claimed_mflops = round.claimed_mflops;
    agent->answers_chains = answers_chains(&round.row);
    agent->on_device = is_on_device(&round.row);
    return challenge(challenges, agent, STAGE_WAY, now);
}

struct outgoing *challenges_next(struct challenges *challenges, const struct exchange *exchange,
                                 const struct challenges_now *now)
{
    for (size_t i = 0; i < challenges->count; i++) {
        struct agent *agent = challenges->agents[i];
        if (agent->is_waiting && agent->until_ns <= now->monotonic_ns) {
            return let_go(agent);
        }
        if (challenges->config.every_ns == 0 || agent->look_ns > now->monotonic_ns) {
            continue;
        }
        if (agent->stage != STAGE_NONE && agent->missing_ns <= now->monotonic_ns) {
            settle(challenges, exchange, agent, CHALLENGE_UNANSWERED, 0, now);
            agent->owes = true;
        }
        struct outgoing *outgoing =
            agent->stage == STAGE_NONE ? look(challenges, exchange, agent, now) : NULL;
        if (outgoing != NULL) {
            return outgoing;
        }
    }
    return NULL;
}

/* ---------------------------------------------------------------- asks */

struct outgoing *challenges_refuse(struct challenges *challenges, const struct exchange *exchange,
                                   const struct request *request, int64_t log_ns)
{
    if (request->envelope.type != MESSAGE_ASK_PLACE || challenges->config.every_ns == 0) {
        return NULL;
    }
    const struct id128 *device = &request->translation.command.ask.device;
    const struct challenge_fact *fact =
        challenge_facts_find(challenges->facts, request->account, device);
    if (fact == NULL) {
        return NULL;
    }
    const struct search search = find_device(exchange, request->account, device);
    if (!search.is_found || challenge_rules_admit(fact, search.claimed_mflops, log_ns)) {
        return NULL;
    }
    const int64_t closed_ns = fact->closed_until_ns - log_ns;
    const bool is_held = search.claimed_mflops > figure_of(&search.row, "gemm_fp32");
    return closed_ns > 0
               ? outgoing_refuse(request, REJECT_CHALLENGE, "closed_ms", closed_ns / NS_PER_MS, 0)
               : outgoing_refuse(request, REJECT_CHALLENGE,
                                 is_held ? "gemm_fp32_held" : "gemm_fp32", search.claimed_mflops,
                                 fact->limit_mflops);
}
