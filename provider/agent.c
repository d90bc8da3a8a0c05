#include "provider/agent.h"

#include "base/array.h"
#include "base/checked.h"
#include "base/text.h"
#include "provider/owner.h"
#include "provider/session/agent_session.h"
#include "provider/work/free_space.h"
#include "provider/work/lanes.h"
#include "provider/work/mender.h"
#include "provider/work/transfer.h"
#include "provider/work/unaccepted.h"
#include "runtime/clock.h"
#include "runtime/entropy.h"
#include "runtime/link.h"
#include "runtime/log.h"

#include <zmq.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { LOOP_MS_MOST = 1000, RESTLESS_MS = 100, MESSAGES_AT_ONCE = 64 };
#define FREE_SPACE_LEAST (UINT64_C(1) << 20)
#define DRAIN_FINISH_NS (5 * NS_PER_S) /* running work may end by itself */
#define DRAIN_LEAVE_NS (9 * NS_PER_S)  /* running work was cancelled, and the agent leaves */
#define DRAIN_ALONE_NS (2 * NS_PER_S)  /* nobody takes results without a broker */

struct reports { /* filled by other threads */
    pthread_mutex_t mutex;
    int event;
    struct agent_work *left;
    size_t left_count, left_capacity;
    struct list_link done; /* outcomes */
};

struct agent {
    const struct agent_setup *setup;
    void *zmq;
    struct link *link;
    struct agent_session *session;
    struct transfer *transfer;
    struct store *store;
    struct images *images;
    struct mender *mender;
    struct lanes *lanes;
    struct owner *owner;
    struct reports reports;
    struct unaccepted unaccepted;
    struct list_link settled; /* outcomes that nobody asks for; dropped at the end of a turn */
    int64_t reconnect_ns;     /* INT64_MAX: connected, or trying */
    int64_t drain_began_ns;   /* 0: not draining */
    bool cancelled_running;
    bool blocked;          /* a message waits until the connection takes it */
    bool crowded;          /* the disk is full: nothing is offered */
    int64_t look_again_ns; /* next look at the disk */
    bool failed;
    bool refused; /* the failure: the broker refused the key */
    struct problem problem;
    /* The owner sees these wall-clock times. */
    int64_t started_ms, since_ms; /* since_ms: last connect or disconnect */
    struct problem last_error;
    int64_t last_error_ms;
};

static int64_t wall_ms(void)
{
    return clock_wall_ns() / NS_PER_MS;
}

/* Logs a warning on which the owner may have to act, and keeps it for `status`. */
static void warn(struct agent *agent, const char *text)
{
    log_warning("%s", text);
    problem_set(&agent->last_error, "%s", text);
    agent->last_error_ms = wall_ms();
}

/* ---------------------------------------------------------------- reports of other threads */

static void wake(struct reports *reports)
{
    uint64_t one = 1;
    ssize_t written = write(reports->event, &one, sizeof one);
    (void)written; /* a full counter wakes as well */
}

static void report_left(void *context, const struct agent_work *work)
{
    struct reports *reports = &((struct agent *)context)->reports;
    pthread_mutex_lock(&reports->mutex);
    struct agent_work *left =
        array_with_room(reports->left, reports->left_count, &reports->left_capacity, sizeof *left);
    if (left != NULL) {
        left[reports->left_count++] = *work;
        reports->left = left;
    } /* without memory the outcome, soon after, frees the lane */
    pthread_mutex_unlock(&reports->mutex);
    wake(reports);
}

static void report_done(void *context, struct list_link *outcomes)
{
    struct reports *reports = &((struct agent *)context)->reports;
    pthread_mutex_lock(&reports->mutex);
    bool is_first = list_empty(&reports->done);
    list_append_all(&reports->done, outcomes);
    pthread_mutex_unlock(&reports->mutex);
    if (is_first) { /* otherwise the loop is woken already */
        wake(reports);
    }
}

static void report_ran(void *context, struct list_link *outcomes)
{
    transfer_submit(((struct agent *)context)->transfer, outcomes);
}

/* ---------------------------------------------------------------- outcomes as results */

struct wire_outcome { /* memory behind a Result */
    Bourse__V1__Output standard_output, standard_error;
    Bourse__V1__Output outputs[LIMIT_OUTPUTS];
    Bourse__V1__Output *pointers[LIMIT_OUTPUTS];
    Bourse__V1__Output saved[LIMIT_CHECKPOINT_FILES];
    Bourse__V1__Output *saved_pointers[LIMIT_CHECKPOINT_FILES];
    Bourse__V1__Saved checkpoint;
};

static void output_to_wire(const struct kept *kept, Bourse__V1__Output *ret_output)
{
    bourse__v1__output__init(ret_output);
    ret_output->name = kept->name;
    ret_output->hash.len = sizeof kept->hash.bytes;
    ret_output->hash.data = (uint8_t *)(uintptr_t)kept->hash.bytes;
    ret_output->size = kept->size;
}

static void checkpoint_to_wire(const struct outcome *outcome, struct wire_outcome *wire,
                               Bourse__V1__Result *ret_result)
{
    ret_result->has_restored = outcome->dispatch.restored != 0;
    ret_result->restored = outcome->dispatch.restored;
    if (outcome->checkpoint_count == 0) {
        return;
    }
    bourse__v1__saved__init(&wire->checkpoint);
    for (size_t i = 0; i < outcome->checkpoint_count; i++) {
        output_to_wire(&outcome->checkpoint[i], &wire->saved[i]);
        wire->saved_pointers[i] = &wire->saved[i];
    }
    wire->checkpoint.n_files = outcome->checkpoint_count;
    wire->checkpoint.files = wire->saved_pointers;
    ret_result->saved = &wire->checkpoint;
}

static void outcome_to_wire(const struct outcome *outcome, struct wire_outcome *wire,
                            Bourse__V1__Result *ret_result)
{
    bourse__v1__result__init(ret_result);
    ret_result->outcome = outcome->result;
    ret_result->started_ms = outcome->started_ms;
    ret_result->busy_ns = outcome->busy_ns > 0 ? outcome->busy_ns : 0;
    if (outcome->ran) {
        ret_result->has_exit_code =
            outcome->exit_code != 0 || outcome->result == OUTCOME_OK; /* 0 is sent only with OK */
        ret_result->exit_code = outcome->exit_code;
        ret_result->has_signal = outcome->signal != 0;
        ret_result->signal = outcome->signal;
        ret_result->has_cpu_ns = outcome->cpu_ns > 0;
        ret_result->cpu_ns = outcome->cpu_ns;
        ret_result->has_peak_memory_bytes = outcome->peak_memory_bytes > 0;
        ret_result->peak_memory_bytes = outcome->peak_memory_bytes;
    }
    ret_result->has_lacks_factor = ret_result->lacks_factor =
        outcome->lacks_factor && outcome->result == OUTCOME_INPUT_MISSING;
    if (outcome->verdict != VERDICT_NONE) {
        ret_result->has_verdict = true;
        ret_result->verdict = outcome->verdict;
        ret_result->has_seed = true;
        ret_result->seed.len = sizeof outcome->dispatch.seed.bytes;
        ret_result->seed.data = (uint8_t *)(uintptr_t)outcome->dispatch.seed.bytes;
    }
    ret_result->has_energy_mj = ret_result->has_energy_uj = outcome->has_energy;
    ret_result->energy_mj = outcome->energy_uj / 1000;
    ret_result->energy_uj = outcome->energy_uj;
    if (outcome->standard_output.name != NULL && outcome->standard_output.size > 0) {
        output_to_wire(&outcome->standard_output, &wire->standard_output);
        ret_result->standard_output = &wire->standard_output;
    }
    if (outcome->standard_error.name != NULL && outcome->standard_error.size > 0) {
        output_to_wire(&outcome->standard_error, &wire->standard_error);
        ret_result->standard_error = &wire->standard_error;
    }
    for (size_t i = 0; i < outcome->output_count; i++) {
        if (outcome->outputs[i].name != NULL) {
            output_to_wire(&outcome->outputs[i], &wire->outputs[ret_result->n_outputs]);
            wire->pointers[ret_result->n_outputs] = &wire->outputs[ret_result->n_outputs];
            ret_result->n_outputs++;
        }
    }
    ret_result->outputs = wire->pointers;
    checkpoint_to_wire(outcome, wire, ret_result);
    if (outcome->detail[0] != '\0') {
        ret_result->detail = (char *)(uintptr_t)outcome->detail;
    }
}

static bool keeps_files(const struct outcome *outcome)
{
    const struct outcome_size size = outcome_measure(outcome);
    return size.files > 0 || size.memory_bytes > 0;
}

/* Holds the files of a result until the broker has accepted the result. */
static void hold_outcome(struct agent *agent, struct outcome *outcome, bool is_owed)
{
    if (is_owed && keeps_files(outcome)) {
        unaccepted_add(&agent->unaccepted, outcome);
    } else {
        list_append(&agent->settled, &outcome->link);
    }
}

static bool settle_outcome(struct agent *agent, int64_t now_ns, struct outcome *outcome)
{
    static struct wire_outcome wire; /* large; only this thread settles */
    Bourse__V1__Result facts;
    outcome_to_wire(outcome, &wire, &facts);
    enum agent_status status =
        agent_session_finished(agent->session, now_ns, &outcome->work, &facts);
    if (status == AGENT_BAD) { /* names of outputs can be long */
        outcome_fail(outcome, OUTCOME_OUTPUT_LIMIT, "the result is too large to send");
        outcome_to_wire(outcome, &wire, &facts);
        status = agent_session_finished(agent->session, now_ns, &outcome->work, &facts);
    }
    if (outcome->pipeline > 0 && status == AGENT_OK) {
        (void)agent_session_pipeline(agent->session, outcome->work.lease, outcome->pipeline);
    }
    log_debug("subtask %u, attempt %u: outcome %d%s%s", outcome->work.index, outcome->work.attempt,
              (int)outcome->result, outcome->detail[0] == '\0' ? "" : ", ", outcome->detail);
    return status == AGENT_OK;
}

/* Reports that the lost files were stored again, or could not be. */
static bool settle_again(struct agent *agent, int64_t now_ns, const struct outcome *outcome)
{
    const bool is_stored = !outcome->is_unstored;
    return agent_session_stored(agent->session, now_ns, &outcome->work, is_stored,
                                outcome->detail) == AGENT_OK &&
           is_stored;
}

static void take_reports(struct agent *agent, int64_t now_ns)
{
    struct reports *reports = &agent->reports;
    uint64_t count;
    ssize_t got = read(reports->event, &count, sizeof count);
    (void)got; /* resets the counter */

    pthread_mutex_lock(&reports->mutex);
    for (size_t i = 0; i < reports->left_count; i++) {
        (void)agent_session_left(agent->session, now_ns, &reports->left[i]); /* may be over */
    }
    reports->left_count = 0;
    struct list_link done;
    list_init(&done);
    list_append_all(&done, &reports->done);
    pthread_mutex_unlock(&reports->mutex);
    while (!list_empty(&done)) {
        struct outcome *outcome = LIST_ELEMENT(done.next, struct outcome, link);
        list_remove(&outcome->link);
        hold_outcome(agent, outcome,
                     outcome->is_again ? settle_again(agent, now_ns, outcome)
                                       : settle_outcome(agent, now_ns, outcome));
    }
}

/* Dropping a tile that stayed in its jail takes 0.15 ms a MiB. */
static void drop_outcomes(struct list_link *outcomes)
{
    while (!list_empty(outcomes)) {
        struct outcome *outcome = LIST_ELEMENT(outcomes->next, struct outcome, link);
        list_remove(&outcome->link);
        outcome_destroy(&outcome);
    }
}

/* ---------------------------------------------------------------- actions of the session */

static void fail_start(struct agent *agent, int64_t now_ns, const struct agent_work *work)
{
    Bourse__V1__Result facts = BOURSE__V1__RESULT__INIT;
    facts.outcome = OUTCOME_JAIL_FAILED;
    facts.started_ms = clock_wall_ns() / NS_PER_MS;
    facts.detail = (char *)(uintptr_t) "the provider is out of memory or threads";
    (void)agent_session_finished(agent->session, now_ns, work, &facts);
}

static void store_again(struct agent *agent, int64_t now_ns, const struct agent_work *work)
{
    struct outcome *outcome = unaccepted_take(&agent->unaccepted, work);
    if (outcome == NULL) {
        (void)agent_session_stored(agent->session, now_ns, work, false,
                                   "the broker lost what was left, and the provider holds no copy");
        return;
    }
    struct list_link again;
    list_init(&again);
    list_append(&again, &outcome->link);
    outcome->is_again = true;
    transfer_submit(agent->transfer, &again);
}

static void let_outcome_go(struct agent *agent, const struct agent_work *work)
{
    struct outcome *outcome = unaccepted_take(&agent->unaccepted, work);
    if (outcome != NULL) {
        outcome_let_go(outcome);
        list_append(&agent->settled, &outcome->link);
    }
}

static void note_lease(const struct agent_grant *grant)
{
    char job[9];
    text_hex(grant->job.bytes, 4, job);
    log_info("lease %llu: %u slot%s for job %s", (unsigned long long)grant->lease, grant->slots,
             text_plural(grant->slots), job);
}

static void stop_with(struct agent *agent, const char *what)
{
    agent->failed = true;
    problem_set(&agent->problem, "%s", what);
}

/* A key without the role would be refused for ever, so its owner has to act. */
static void connected(struct agent *agent)
{
    const Bourse__V1__Welcome *welcome = agent_session_welcome(agent->session);
    agent->since_ms = wall_ms();
    if (welcome == NULL || (welcome->has_roles && (welcome->roles & ROLE_PROVIDER) != 0)) {
        for (size_t i = 0; i < agent->setup->offers->count; i++) {
            const struct agent_device *device = &agent->setup->offers->items[i].device;
            log_info("connected; offering %u slot%s of %s", device->slots,
                     text_plural(device->slots), device->instrument);
        }
        return;
    }
    agent->refused = true;
    stop_with(agent, welcome->has_account
                         ? "this key's account is no provider in this market. Ask the operator for "
                           "an invitation with the role provider, and join with a new --dir"
                         : "this key has no account in this market; ask the operator for an "
                           "invitation with the role provider: bourse-provider join INVITE");
}

static void act(struct agent *agent, int64_t now_ns, const struct agent_action *action)
{
    switch (action->type) {
    case AGENT_LEASE_BEGIN:
        note_lease(&action->grant);
        if (!lanes_begin(agent->lanes, &action->grant)) {
            log_error("out of memory: a lease cannot be served");
        }
        mender_begin(agent->mender, action->grant.lease, &action->grant.job);
        break;
    case AGENT_LEASE_END:
        log_info("lease %llu ended", (unsigned long long)action->work.lease);
        lanes_end(agent->lanes, action->work.lease);
        mender_end(agent->mender, action->work.lease);
        break;
    case AGENT_PREPARE:
        lanes_prepare(agent->lanes, &action->work,
                      agent_session_inputs(agent->session, &action->work));
        break;
    case AGENT_START:
        if (!lanes_start(agent->lanes, &action->work,
                         agent_session_inputs(agent->session, &action->work))) {
            fail_start(agent, now_ns, &action->work);
        }
        break;
    case AGENT_CANCEL:
        lanes_cancel(agent->lanes, &action->work);
        break;
    case AGENT_NOTICE:
        lanes_notice(agent->lanes, &action->work);
        break;
    case AGENT_STORE:
        store_again(agent, now_ns, &action->work);
        break;
    case AGENT_SETTLED:
        let_outcome_go(agent, &action->work);
        break;
    case AGENT_RECONNECT:
        warn(agent, "the broker is silent; trying again");
        agent->since_ms = wall_ms();
        agent->reconnect_ns = now_ns + action->wait_ns;
        break;
    case AGENT_READY:
        connected(agent);
        break;
    case AGENT_NOTE:
        warn(agent, action->text);
        break;
    }
}

static void carry_out(struct agent *agent, int64_t now_ns)
{
    struct agent_action action;
    const uint8_t *message;
    size_t length;
    while (agent_session_action(agent->session, &action)) {
        act(agent, now_ns, &action);
    }
    if (agent->lanes != NULL) {
        lanes_go(agent->lanes);
    }
    agent->blocked = false;
    while (agent->reconnect_ns == INT64_MAX && !agent->blocked &&
           agent_session_outgoing(agent->session, &message, &length)) {
        if (!link_send(agent->link, message, length)) {
            agent_session_unsent(agent->session);
            agent->blocked = true; /* not connected, or full: the poll tells when to try again */
        }
    }
    if (agent_session_out_of_memory(agent->session)) {
        stop_with(agent, "out of memory");
    }
}

/* ---------------------------------------------------------------- the loop */

static void reconnect(struct agent *agent, int64_t now_ns)
{
    struct problem problem = {""};
    agent->reconnect_ns = INT64_MAX;
    if (link_reopen(agent->link, &problem)) {
        agent_session_connected(agent->session, now_ns, entropy_u64());
    } else {
        log_error("%s", problem.text);
        agent->reconnect_ns = now_ns + NS_PER_S;
    }
}

static void hear_broker(struct agent *agent)
{
    for (int i = 0; i < MESSAGES_AT_ONCE && agent->reconnect_ns == INT64_MAX; i++) {
        const uint8_t *message;
        size_t length;
        if (link_receive(agent->link, 0, &message, &length) != 1) {
            return;
        }
        agent_session_incoming(agent->session, clock_monotonic_ns(), message, length);
    }
}

static void hear_signal(struct agent *agent, int64_t now_ns)
{
    struct signalfd_siginfo signal;
    if (read(agent->setup->signals, &signal, sizeof signal) != (ssize_t)sizeof signal) {
        return;
    }
    if (signal.ssi_signo == SIGHUP) {
        log_info("SIGHUP does nothing here: restart to read the config again");
        return;
    }
    if (agent->drain_began_ns == 0) {
        log_info("leaving: no new work, waiting for what runs");
        agent->drain_began_ns = now_ns;
        agent_session_drain(agent->session, now_ns, false);
    } else if (!agent->cancelled_running) {
        agent->cancelled_running = true;
        agent_session_drain(agent->session, now_ns, true);
    }
}

static void hear_owner(struct agent *agent, int64_t now_ns)
{
    const struct owner_facts facts = {
        .config = agent->setup->config,
        .market = agent->setup->market,
        .isolation = agent->setup->isolation->level,
        .lanes = agent->lanes,
        .is_crowded = agent->crowded,
        .is_leaving = agent->drain_began_ns != 0,
        .started_ms = agent->started_ms,
        .since_ms = agent->since_ms,
        .last_error = agent->last_error.text,
        .last_error_ms = agent->last_error_ms,
    };
    owner_hear(agent->owner, agent->session, now_ns, wall_ms(), &facts);
}

/* The owner's drain has no time limit. The agent leaves once nothing runs and every result is
 * accepted. */
static void leave_when_drained(struct agent *agent, int64_t now_ns)
{
    struct agent_counts counts = agent_session_counts(agent->session);
    if (owner_wants_drain(agent->owner) && agent->drain_began_ns == 0 &&
        counts.queued + counts.running + counts.owed == 0) {
        agent->drain_began_ns = now_ns;
        agent_session_drain(agent->session, now_ns, false);
    }
}

/* Returns true when it is time to leave. */
static bool drain(struct agent *agent, int64_t now_ns)
{
    if (agent->drain_began_ns == 0) {
        return false;
    }
    int64_t waited_ns = now_ns - agent->drain_began_ns;
    struct agent_counts counts = agent_session_counts(agent->session);
    if (!agent->cancelled_running && waited_ns >= DRAIN_FINISH_NS) {
        agent->cancelled_running = true;
        agent_session_drain(agent->session, now_ns, true);
    }
    bool alone = !counts.ready && counts.running == 0 && waited_ns >= DRAIN_ALONE_NS;
    return agent_session_drained(agent->session) || alone || waited_ns >= DRAIN_LEAVE_NS;
}

static int wait_ms(const struct agent *agent, int64_t now_ns)
{
    int64_t until_ns = agent_session_next_deadline_ns(agent->session);
    if (agent->reconnect_ns < until_ns) {
        until_ns = agent->reconnect_ns;
    }
    int64_t owner_ns = owner_next_deadline_ns(agent->owner);
    until_ns = owner_ns < until_ns ? owner_ns : until_ns;
    int64_t ms = until_ns <= now_ns ? 0 : (until_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS;
    int most =
        lanes_restless(agent->lanes) || agent->drain_began_ns != 0 ? RESTLESS_MS : LOOP_MS_MOST;
    return ms < most ? (int)ms : most;
}

/* Stops offering while the disk has no room for inputs. Leased work that then fails is given
 * back. */
static void watch_room(struct agent *agent, int64_t now_ns)
{
    /* The limit for offering again is twice as high, so that asks do not come and go. */
    uint64_t bytes = agent->crowded ? 2 * FREE_SPACE_LEAST : FREE_SPACE_LEAST;
    bool crowded = !store_has_space(agent->store, bytes);
    if (crowded == agent->crowded) {
        return;
    }
    agent->crowded = crowded;
    agent_session_pause(agent->session, now_ns, crowded);
    if (crowded) {
        struct problem full;
        problem_set(&full, "the disk of %s is full: nothing is offered until there is room",
                    agent->setup->config->folder);
        warn(agent, full.text);
    } else {
        log_info("the disk of %s has room again: offering", agent->setup->config->folder);
    }
}

static void watch_store(struct agent *agent, int64_t now_ns)
{
    if (now_ns < agent->look_again_ns) {
        return;
    }
    agent->look_again_ns = now_ns + NS_PER_S;
    watch_room(agent, now_ns);
    if (agent_session_counts(agent->session).leases == 0) {
        store_forget_lent(agent->store); /* frees space on the broker's disk */
    }
}

static void loop(struct agent *agent)
{
    reconnect(agent, clock_monotonic_ns());
    for (;;) {
        int64_t now_ns = clock_monotonic_ns();
        if (now_ns >= agent->reconnect_ns) {
            reconnect(agent, now_ns);
        }
        if (now_ns >= agent_session_next_deadline_ns(agent->session)) {
            agent_session_tick(agent->session, now_ns); /* terms end without a broker, too */
        }
        watch_store(agent, now_ns);
        hear_owner(agent, now_ns);
        leave_when_drained(agent, now_ns);
        carry_out(agent, now_ns);
        drop_outcomes(&agent->settled);
        if (agent->failed || drain(agent, now_ns)) {
            return;
        }
        zmq_pollitem_t items[] = {
            {.socket = link_socket(agent->link),
             .events = (short)(agent->blocked ? ZMQ_POLLIN | ZMQ_POLLOUT : ZMQ_POLLIN)},
            {.fd = agent->reports.event, .events = ZMQ_POLLIN},
            {.fd = agent->setup->signals, .events = ZMQ_POLLIN},
            {.fd = launcher_end(agent->setup->launcher), .events = ZMQ_POLLIN},
            {.fd = owner_fd(agent->owner), .events = ZMQ_POLLIN}, /* heard in the next turn */
        };
        if (zmq_poll(items, 5, wait_ms(agent, now_ns)) < 0 && errno != EINTR) {
            stop_with(agent, "the connection cannot be waited for");
            return;
        }
        now_ns = clock_monotonic_ns();
        hear_broker(agent);
        if ((items[1].revents & ZMQ_POLLIN) != 0) {
            take_reports(agent, now_ns);
        }
        if ((items[2].revents & ZMQ_POLLIN) != 0) {
            hear_signal(agent, now_ns);
        }
        if ((items[3].revents & ZMQ_POLLIN) != 0) {
            stop_with(agent,
                      "the launcher has ended, and every jail with it; start the agent again");
        }
        lanes_tick(agent->lanes);
    }
}

/* ---------------------------------------------------------------- start and end */

static bool open_session(struct agent *agent, struct problem *problem)
{
    const struct agent_setup *setup = agent->setup;
    struct agent_session_config config = {
        .identity = setup->identity,
        .program = "bourse-provider " BOURSE_VERSION,
        .cluster = setup->market->cluster,
        .can_store_again = true,
    };
    entropy_bytes(config.dice.bytes, sizeof config.dice.bytes);
    agent->session = agent_session_create(&config);
    if (agent->session == NULL) {
        problem_set(problem, "out of memory");
        return false;
    }
    struct agent_device devices[1 + CONFIG_DEVICES_MAX];
    struct agent_ask asks[1 + CONFIG_DEVICES_MAX];
    size_t count = setup->offers->count;
    for (size_t i = 0; i < count; i++) {
        devices[i] = setup->offers->items[i].device;
        asks[i] = setup->offers->items[i].ask;
    }
    if (agent_session_offer(agent->session, clock_monotonic_ns(), devices, count, asks, count) !=
        AGENT_OK) {
        problem_set(problem, "the offer does not fit a message");
        return false;
    }
    return link_open(agent->zmq, setup->market->control, &setup->market->server, setup->identity,
                     LIMIT_MESSAGE_BYTES, &agent->link, problem);
}

static bool open_blobs(struct agent *agent, struct problem *problem)
{
    const struct agent_setup *setup = agent->setup;
    char cache[CONFIG_PATH_SIZE + 16];
    char images[CONFIG_PATH_SIZE + 16];
    (void)snprintf(cache, sizeof cache, "%s/cache", setup->config->folder);
    (void)snprintf(images, sizeof images, "%s/images", setup->config->folder);
    struct transfer_config transfer = {
        .zmq = agent->zmq,
        .endpoint = setup->market->blobs,
        .server = setup->market->server,
        .identity = setup->identity,
        .done = report_done,
        .context = agent,
    };
    if (!transfer_open(&transfer, &agent->transfer, problem)) {
        return false;
    }
    struct store_config store = {
        .folder = cache,
        .cap_bytes = setup->config->cache_bytes,
        .threads = TRANSFER_FETCHERS,
        .fetch = transfer_fetch,
        .lend = transfer_lend,
        .context = agent->transfer,
    };
    struct images_config unpacked = {
        .folder = images,
        .cap_bytes = setup->config->cache_bytes,
        .limits = {.entries = setup->config->image_files, .bytes = setup->config->image_bytes},
        .launcher = setup->launcher,
        .worker_path = setup->worker_path,
        .cgroups = setup->cgroups,
    };
    if (!store_open(&store, &agent->store, problem)) {
        return false;
    }
    const struct mender_config mender = {
        .zmq = agent->zmq,
        .endpoint = setup->market->blobs,
        .server = setup->market->server,
        .identity = setup->identity,
        .store = agent->store,
    };
    return images_open(&unpacked, &agent->images, problem) &&
           mender_open(&mender, &agent->mender, problem);
}

static bool open_lanes(struct agent *agent, struct problem *problem)
{
    const struct agent_setup *setup = agent->setup;
    struct lanes_config lanes = {
        .launcher = setup->launcher,
        .cgroups = setup->cgroups,
        .worker_path = setup->worker_path,
        .tensor_path = setup->tensor_path,
        .config = setup->config,
        .offers = setup->offers,
        .machine = setup->machine,
        .cpu_enforced = setup->isolation->cpu_enforced,
        .store = agent->store,
        .images = agent->images,
        .left = report_left,
        .done = report_ran,
        .context = agent,
    };
    agent->lanes = lanes_create(&lanes);
    if (agent->lanes == NULL) {
        problem_set(problem, "out of memory");
    }
    return agent->lanes != NULL;
}

static bool open_owner(struct agent *agent, struct problem *problem)
{
    if (!owner_open(agent->setup->config->folder, &agent->owner, problem)) {
        return false;
    }
    owner_begin(agent->owner, agent->session, clock_monotonic_ns());
    return true;
}

static void leave(struct agent *agent)
{
    if (agent->session != NULL && agent->link != NULL) {
        agent_session_goodbye(agent->session, clock_monotonic_ns(), "the agent ends");
        carry_out(agent, clock_monotonic_ns());
    }
}

static void close_all(struct agent *agent)
{
    leave(agent);
    if (agent->transfer != NULL) {
        transfer_stop(agent->transfer);
    }
    mender_close(&agent->mender);
    if (agent->store != NULL) {
        store_stop(agent->store);
    }
    lanes_destroy(&agent->lanes);
    store_close(&agent->store);
    images_close(&agent->images);
    transfer_close(&agent->transfer);
    if (agent->owner != NULL) { /* only the process is left to end */
        owner_ends(agent->owner, agent->session, clock_monotonic_ns());
        owner_close(&agent->owner);
    }
    link_close(&agent->link);
    agent_session_destroy(&agent->session);
    drop_outcomes(&agent->reports.done);
    drop_outcomes(&agent->settled);
    unaccepted_fini(&agent->unaccepted);
    free(agent->reports.left);
    if (agent->reports.event >= 0) {
        close(agent->reports.event);
    }
    pthread_mutex_destroy(&agent->reports.mutex);
    if (agent->zmq != NULL) {
        zmq_ctx_term(agent->zmq);
    }
}

bool agent_run(const struct agent_setup *setup, bool *ret_refused, struct problem *ret_problem)
{
    struct agent agent = {.setup = setup, .reconnect_ns = INT64_MAX, .started_ms = wall_ms()};
    list_init(&agent.reports.done);
    list_init(&agent.settled);
    unaccepted_init(&agent.unaccepted);
    pthread_mutex_init(&agent.reports.mutex, NULL);
    agent.reports.event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    agent.zmq = zmq_ctx_new();
    bool good = agent.reports.event >= 0 && agent.zmq != NULL;
    if (!good) {
        problem_set(ret_problem, "cannot start: %s", strerror(errno));
    }
    good = good && open_session(&agent, ret_problem) && open_blobs(&agent, ret_problem) &&
           open_lanes(&agent, ret_problem) && open_owner(&agent, ret_problem);
    if (good) {
        loop(&agent);
        good = !agent.failed;
        if (agent.failed) {
            *ret_problem = agent.problem;
            *ret_refused = agent.refused;
        }
    }
    close_all(&agent);
    return good;
}
