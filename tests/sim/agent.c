#include "tests/sim/agent.h"

#include "protocol/codec.h"
#include "protocol/results.h"
#include "runtime/clock.h"
#include "runtime/entropy.h"
#include "tests/sim/oracle.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void turn(struct agent *agent);

/* ----------------------------------------------------------- programs that only take their time */

static struct agent_running *find_running(struct agent *agent, const struct agent_work *work)
{
    for (size_t i = 0; i < AGENT_RUNNING; i++) {
        struct agent_running *running = &agent->running[i];
        if (running->number != 0 && running->work.lease == work->lease &&
            running->work.index == work->index && running->work.attempt == work->attempt) {
            return running;
        }
    }
    return NULL;
}

static struct agent_running *find_number(struct agent *agent, uint64_t number)
{
    for (size_t i = 0; i < AGENT_RUNNING; i++) {
        if (agent->running[i].number == number) {
            return &agent->running[i];
        }
    }
    return NULL;
}

/* Outputs are stored: the result may go. */
static void stored(void *context, uint64_t number, uint64_t unused)
{
    struct agent *agent = context;
    struct agent_running *running = find_number(agent, number);
    (void)unused;
    if (running == NULL) {
        return;
    }
    int64_t busy_ns = clock_monotonic_ns() - running->began_ns;
    if (agent->is_liar && chance(DICE_WORK, 3000)) {
        busy_ns = chance(DICE_WORK, 5000) ? busy_ns * 1000 : INT64_C(1) << 50;
        fault_happened(FAULT_LIE);
    }
    Bourse__V1__Result facts = BOURSE__V1__RESULT__INIT;
    facts.outcome = running->outcome;
    facts.started_ms = clock_wall_ns() / SIM_MS;
    facts.busy_ns = busy_ns;
    bool is_wrong = !world.calm && chance(DICE_WORK, agent->cheating);
    bool is_unsent = !world.calm && chance(DICE_WORK, agent->cheating / 4);
    struct hash32 hash = {
        {(uint8_t)running->work.index, (uint8_t)running->work.attempt, 1, is_wrong, is_unsent}};
    Bourse__V1__Output output = BOURSE__V1__OUTPUT__INIT;
    Bourse__V1__Output *outputs[] = {&output};
    output.name = (char *)(uintptr_t) "output";
    output.hash = (ProtobufCBinaryData){.data = hash.bytes, .len = sizeof hash.bytes};
    output.size = running->number;
    facts.n_outputs = running->outcome == OUTCOME_OK;
    facts.outputs = outputs;
    const struct agent_running check = *running;
    if (check.is_check && check.outcome == OUTCOME_OK) {
        facts.has_verdict = true;
        facts.verdict = check.verdict;
        facts.has_seed = true;
        facts.seed = (ProtobufCBinaryData){.data = (uint8_t *)(uintptr_t)check.seed.bytes,
                                           .len = sizeof check.seed.bytes};
    }
    struct agent_work work = running->work;
    running->number = 0;
    (void)agent_session_finished(agent->session, clock_monotonic_ns(), &work, &facts);
    turn(agent);
}

static void ended(void *context, uint64_t number, uint64_t unused)
{
    struct agent *agent = context;
    struct agent_running *running = find_number(agent, number);
    (void)unused;
    if (running == NULL || running->has_left) {
        return;
    }
    running->has_left = true;
    (void)agent_session_left(agent->session, clock_monotonic_ns(), &running->work);
    event_in(draw_time(DICE_WORK, SIM_MS / 2, 10 * SIM_MS), &agent->process, stored, agent, number,
             0);
    turn(agent);
}

static uint8_t draw_outcome(const struct agent *agent)
{
    static const uint8_t failures[] = {OUTCOME_PROGRAM_FAILED, OUTCOME_SIGNALLED,
                                       OUTCOME_MEMORY_LIMIT,   OUTCOME_INPUT_MISSING,
                                       OUTCOME_JAIL_FAILED,    OUTCOME_REFUSED};
    bool fails = !world.calm && chance(DICE_WORK, agent->failing);
    return fails ? failures[draw(DICE_WORK, sizeof failures)] : OUTCOME_OK;
}

/* Every input came through whole: an output of each subtask that this one waited for. */
static void check_given(const struct agent *agent, const struct agent_work *work)
{
    const Bourse__V1__Work *given = agent_session_inputs(agent->session, work);
    for (size_t i = 0; given != NULL && i < given->n_given; i++) {
        if (given->given[i]->index >= work->index || given->given[i]->n_outputs != 1 ||
            given->given[i]->outputs[0]->hash.data[0] != (uint8_t)given->given[i]->index) {
            sim_fail("subtask %u is given what is not of one that it waited for", work->index);
        }
    }
}

/* An honest referee finds what is wrong and nothing else, or says that it cannot tell, or does not
 * get the bytes; a liar's verdict is for another result, or none. */
static void judge(struct agent *agent, struct agent_running *running)
{
    const Bourse__V1__Work *given = agent_session_inputs(agent->session, &running->work);
    running->is_check = given != NULL && given->has_seed && given->n_given == 1;
    if (!running->is_check) {
        return;
    }
    bool is_wrong = given->given[0]->outputs[0]->hash.data[3] != 0;
    running->seed = codec_hash(given->seed);
    running->verdict = is_wrong ? VERDICT_REJECT : VERDICT_ACCEPT;
    if (!world.calm && chance(DICE_WORK, 400)) {
        running->verdict = VERDICT_UNSURE;
    }
    if (!world.calm && chance(DICE_WORK, 600)) {
        running->outcome = OUTCOME_INPUT_MISSING; /* the broker's store has lost them, or not */
    }
    if (agent->is_liar && !world.calm && chance(DICE_WORK, 2000)) {
        fault_happened(FAULT_LIE);
        running->verdict = chance(DICE_WORK, 5000) ? VERDICT_NONE : VERDICT_ACCEPT;
        running->seed.bytes[7] ^= 1;
    }
}

static bool start_work(struct agent *agent, const struct agent_work *work)
{
    check_given(agent, work);
    struct agent_running *running = find_number(agent, 0);
    if (running == NULL) {
        return false;
    }
    *running = (struct agent_running){.work = *work,
                                      .number = ++agent->begun,
                                      .began_ns = clock_monotonic_ns(),
                                      .outcome = draw_outcome(agent)};
    judge(agent, running);
    int64_t usual_ns = world.calm ? agent->longest_ns / 20 : agent->longest_ns;
    int64_t most_ns = chance(DICE_WORK, 500) ? 10 * usual_ns : usual_ns;
    event_in(draw_time(DICE_WORK, usual_ns / 20, most_ns), &agent->process, ended, agent,
             running->number, 0);
    return true;
}

static void cancel_work(struct agent *agent, const struct agent_work *work)
{
    struct agent_running *running = find_running(agent, work);
    if (running != NULL && !running->has_left) {
        running->outcome = OUTCOME_CANCELLED;
        event_in(draw_time(DICE_WORK, SIM_MS, 20 * SIM_MS), &agent->process, ended, agent,
                 running->number, 0);
    }
}

/* ------------------------------------------------------------- the loop, as in provider/agent.c */

static void fail_start(struct agent *agent, const struct agent_work *work)
{
    Bourse__V1__Result facts = BOURSE__V1__RESULT__INIT;
    facts.outcome = OUTCOME_JAIL_FAILED;
    facts.started_ms = clock_wall_ns() / SIM_MS;
    facts.detail = (char *)(uintptr_t) "the provider is out of memory or threads";
    (void)agent_session_finished(agent->session, clock_monotonic_ns(), work, &facts);
}

static void act(struct agent *agent, const struct agent_action *action)
{
    switch (action->type) {
    case AGENT_LEASE_BEGIN:
        trace("lease %llu begins", (unsigned long long)action->grant.lease);
        break;
    case AGENT_LEASE_END:
        trace("lease %llu ends", (unsigned long long)action->work.lease);
        break;
    case AGENT_PREPARE:
        break;
    case AGENT_START:
        if (!start_work(agent, &action->work)) {
            fail_start(agent, &action->work);
        }
        break;
    case AGENT_CANCEL:
        cancel_work(agent, &action->work);
        break;
    case AGENT_STORE: /* it keeps nothing, and the session knows */
    case AGENT_SETTLED:
    case AGENT_NOTICE: /* its programs end when they end */
        break;
    case AGENT_RECONNECT:
        trace("reconnects in %.3f s", (double)action->parting.wait_ns / (double)SIM_S);
        agent->reconnect_ns = clock_monotonic_ns() + action->parting.wait_ns;
        break;
    case AGENT_READY:
        trace("is ready");
        break;
    case AGENT_CHALLENGE: /* the simulated agents answer none */
    case AGENT_TERMINAL:  /* no program of the simulation has a terminal */
        break;
    case AGENT_NOTE:
        trace("notes: %s", action->text);
        break;
    }
}

static void begin_again(void *context, uint64_t a, uint64_t b)
{
    struct agent *agent = context;
    (void)a;
    (void)b;
    if (!agent->process.runs) {
        agent_start(agent);
    }
}

void agent_crash(struct agent *agent)
{
    trace("%s ends", agent->process.name);
    agent->session = NULL;
    process_end(&agent->process);
    int64_t most_ns = world.calm ? SIM_S : draw_time(DICE_FAULTS, SIM_S, 60 * SIM_S);
    event_in(draw_time(DICE_FAULTS, 10 * SIM_MS, most_ns), NULL, begin_again, agent, 0, 0);
}

static void wake(void *context, uint64_t due, uint64_t unused)
{
    struct agent *agent = context;
    (void)unused;
    if ((int64_t)due == agent->due_ns) {
        agent->due_ns = INT64_MAX;
        turn(agent);
    }
}

static void wake_in(struct agent *agent, int64_t delay_ns)
{
    int64_t due_ns = world.now_ns + delay_ns;
    if (due_ns < agent->due_ns) {
        agent->due_ns = due_ns;
        event_in(delay_ns, &agent->process, wake, agent, (uint64_t)due_ns, 0);
    }
}

static void send_all(struct agent *agent)
{
    const uint8_t *message;
    size_t length;
    while (agent->reconnect_ns == INT64_MAX &&
           agent_session_outgoing(agent->session, &message, &length)) {
        if (!net_send(&agent->peer, message, length)) {
            agent_session_unsent(agent->session);
            wake_in(agent, draw_time(DICE_NETWORK, SIM_MS, 50 * SIM_MS));
            return;
        }
    }
}

static void turn(struct agent *agent)
{
    int64_t now_ns = clock_monotonic_ns();
    struct agent_action action;
    if (now_ns >= agent->reconnect_ns) {
        agent->reconnect_ns = INT64_MAX;
        agent->peer.target = net_host_at(agent_session_address(agent->session));
        net_connect(&agent->peer);
        agent_session_connected(agent->session, now_ns, entropy_u64());
    }
    if (now_ns >= agent_session_next_deadline_ns(agent->session)) {
        agent_session_tick(agent->session, now_ns);
    }
    while (agent_session_action(agent->session, &action)) {
        act(agent, &action);
    }
    send_all(agent);
    if (agent_session_counts(agent->session).out_of_memory) {
        trace("out of memory");
        agent_crash(agent);
        return;
    }
    int64_t until_ns = agent_session_next_deadline_ns(agent->session);
    until_ns = agent->reconnect_ns < until_ns ? agent->reconnect_ns : until_ns;
    int64_t wait_ns = until_ns > now_ns ? until_ns - now_ns : 0;
    wake_in(agent, wait_ns < SIM_S ? wait_ns : SIM_S);
}

static void hears(struct peer *peer, const uint8_t *bytes, size_t length)
{
    struct agent *agent = peer->owner;
    if (agent->reconnect_ns == INT64_MAX) {
        agent_session_incoming(agent->session, clock_monotonic_ns(), bytes, length);
        turn(agent);
    }
}

/* ---------------------------------------------------------------- what it offers */

static void put_text(struct attribute *attribute, const char *name, const char *text)
{
    memset(attribute, 0, sizeof *attribute);
    (void)snprintf(attribute->name, sizeof attribute->name, "%s", name);
    (void)snprintf(attribute->text, sizeof attribute->text, "%s", text);
    attribute->is_text = true;
}

static void put_number(struct attribute *attribute, const char *name, int64_t number)
{
    memset(attribute, 0, sizeof *attribute);
    (void)snprintf(attribute->name, sizeof attribute->name, "%s", name);
    attribute->number = number;
}

static bool offer(struct agent *agent)
{
    struct agent_device devices[AGENT_DEVICES] = {0};
    struct agent_ask asks[AGENT_DEVICES] = {0};
    struct attribute attributes[AGENT_DEVICES][3];
    for (uint32_t i = 0; i < agent->device_count; i++) {
        const char *kind = agent->devices[i].is_gpu ? "gpu" : "cpu";
        put_text(&attributes[i][0], "kind", kind);
        put_number(&attributes[i][1], "memory", agent->devices[i].memory);
        put_number(&attributes[i][2], "bf16", agent->devices[i].bf16);
        devices[i].device = agent->devices[i].id;
        (void)snprintf(devices[i].instrument, sizeof devices[i].instrument, "%s.sim", kind);
        devices[i].slots = agent->devices[i].slots;
        devices[i].attributes = attributes[i];
        devices[i].attribute_count = agent->devices[i].bf16 == 0 ? 2 : 3;
        asks[i] = (struct agent_ask){.device = agent->devices[i].id,
                                     .slots = agent->devices[i].slots,
                                     .price_micro = agent->devices[i].price_micro,
                                     .max_term_ms = agent->devices[i].max_term_ms,
                                     .conditions = agent->devices[i].conditions,
                                     .is_interruptible = agent->devices[i].is_interruptible,
                                     .notice_ms = agent->devices[i].notice_ms,
                                     .minimum_run_ms = agent->devices[i].minimum_run_ms};
    }
    return agent_session_offer(agent->session, clock_monotonic_ns(), devices, agent->device_count,
                               asks, agent->device_count) == AGENT_OK;
}

void agent_start(struct agent *agent)
{
    process_begin(&agent->process);
    struct process *before = process_enter(&agent->process);
    agent->started++;
    agent->peer.process = &agent->process;
    agent->peer.transport = *identity_transport(agent->identity);
    agent->peer.deliver = hears;
    agent->peer.owner = agent;
    memset(agent->running, 0, sizeof agent->running);
    agent->due_ns = INT64_MAX;
    agent->reconnect_ns = 0;
    struct agent_session_config config = {
        .identity = agent->identity, .program = "simulated agent", .cluster = agent->cluster};
    config.address_count = net_addresses(&config.addresses);
    entropy_bytes(config.dice.bytes, sizeof config.dice.bytes);
    trace("starts");
    agent->session = agent_session_create(&config);
    if (agent->session == NULL || !offer(agent)) {
        agent_crash(agent);
    } else {
        turn(agent);
    }
    process_leave(before);
}

bool agent_is_ready(const struct agent *agent)
{
    return agent->process.runs && agent_session_counts(agent->session).ready;
}

/* ---------------------------------------------------------------- lies */

static void send_results(struct agent *agent, const Bourse__V1__Result *result, uint64_t session)
{
    uint8_t bytes[1024];
    size_t length = bourse__v1__result__get_packed_size(result);
    assert(length <= sizeof bytes);
    (void)bourse__v1__result__pack(result, bytes);
    struct hash32 leaf = results_leaf(bytes, length);
    struct hash32 root = results_root(&leaf, 1);
    struct signature64 signature = results_sign(agent->identity, &agent->cluster, &root);
    ProtobufCBinaryData encoded = {.data = bytes, .len = length};
    Bourse__V1__Results body = BOURSE__V1__RESULTS__INIT;
    body.signature = (ProtobufCBinaryData){.data = signature.bytes, .len = sizeof signature.bytes};
    body.n_results = 1;
    body.results = &encoded;
    uint8_t message[2048];
    struct envelope envelope = {
        .version = ENVELOPE_VERSION,
        .type = MESSAGE_RESULTS,
        .session = session,
        .sequence = 1 + draw(DICE_WORK, 1000),
        .id = entropy_id(),
        .created_ms = agent_session_welcome(agent->session)->log_time_ms,
    };
    uint8_t packed[1200];
    assert(bourse__v1__results__get_packed_size(&body) <= sizeof packed);
    envelope.body_length = (uint32_t)bourse__v1__results__pack(&body, packed);
    envelope.body = packed;
    envelope_write(&envelope, message, sizeof message);
    (void)net_send(&agent->peer, message, envelope_size(&envelope));
}

/* A signed result of something it has no business with: a lease or attempt drawn from thin air,
 * near those that exist. */
void agent_lies(struct agent *agent)
{
    if (!agent->process.runs || agent_session_welcome(agent->session) == NULL) {
        return;
    }
    struct process *before = process_enter(&agent->process);
    struct id128 job = entropy_id();
    struct hash32 manifest = {{7}};
    Bourse__V1__Result result = BOURSE__V1__RESULT__INIT;
    result.cluster = (ProtobufCBinaryData){.data = agent->cluster.bytes, .len = 16};
    result.job = (ProtobufCBinaryData){.data = job.bytes, .len = 16};
    result.index = (uint32_t)draw(DICE_WORK, 40);
    result.attempt = 1 + (uint32_t)draw(DICE_WORK, 3);
    result.lease = 1 + draw(DICE_WORK, 200);
    struct id128 known;
    if (oracle_some_attempt(&known, &result.lease, &result.index, &result.attempt)) {
        result.job.data = known.bytes; /* a real one, most likely another's */
    }
    struct key32 provider = *identity_key(agent->identity);
    result.provider = (ProtobufCBinaryData){.data = provider.bytes, .len = 32};
    result.device = (ProtobufCBinaryData){.data = agent->devices[0].id.bytes, .len = 16};
    result.manifest = (ProtobufCBinaryData){.data = manifest.bytes, .len = 32};
    result.busy_ns = INT64_C(3600) * SIM_S;
    fault_happened(FAULT_LIE);
    trace("lies about lease %llu, subtask %u, attempt %u", (unsigned long long)result.lease,
          result.index, result.attempt);
    send_results(agent, &result, agent_session_welcome(agent->session)->session);
    process_leave(before);
}
