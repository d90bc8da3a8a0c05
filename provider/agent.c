#include "provider/agent.h"

#include "base/checked.h"
#include "base/text.h"
#include "provider/agent_internal.h"
#include "provider/owner.h"
#include "provider/session/agent_session.h"
#include "provider/work/free_space.h"
#include "provider/work/lanes.h"
#include "provider/work/mender.h"
#include "provider/work/outcome_wire.h"
#include "provider/work/own_folder.h"
#include "provider/work/transfer.h"
#include "provider/work/unaccepted.h"
#include "runtime/clock.h"
#include "runtime/entropy.h"
#include "runtime/link.h"
#include "runtime/log.h"
#include "runtime/notify.h"

#include <zmq.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { LOOP_MS_MOST = 1000, RESTLESS_MS = 100, MESSAGES_AT_ONCE = 64, OWN_ITEMS = 7 };
#define FREE_SPACE_LEAST (UINT64_C(1) << 20)
#define DRAIN_FINISH_NS (5 * NS_PER_S) /* running work may end by itself */
#define DRAIN_LEAVE_NS (9 * NS_PER_S)  /* running work was cancelled, and the agent leaves */
#define DRAIN_ALONE_NS (2 * NS_PER_S)  /* nobody takes results without a broker */

static int64_t wall_ms(void)
{
    return clock_wall_ns() / NS_PER_MS;
}

void agent_warn(struct agent *agent, const char *text)
{
    log_warning("%s", text);
    problem_set(&agent->last_error, "%s", text);
    agent->last_error_ms = wall_ms();
}

/* ---------------------------------------------------------------- outcomes as results */

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
    /* The market would try work again that is given back, with nobody at the terminal. */
    if (outcome->has_terminal && outcome->result == OUTCOME_CANCELLED &&
        agent_session_gives_back(agent->session)) {
        outcome_fail(outcome, OUTCOME_REFUSED,
                     "the provider left, and the files in its jail are gone");
    }
    agent_idle_note_fault(agent, now_ns, outcome);
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

/* A result ends the attempt, and after that the broker may refuse what the program printed last. */
static void settle_done(struct agent *agent, int64_t now_ns)
{
    struct list_link waiting;
    list_init(&waiting);
    while (!list_empty(&agent->done)) {
        struct outcome *outcome = LIST_ELEMENT(agent->done.next, struct outcome, link);
        list_remove(&outcome->link);
        if (terminals_holds(agent->terminals, &outcome->work, now_ns) ||
            live_output_holds(agent->lanes, agent->session, outcome, now_ns)) {
            list_append(&waiting, &outcome->link);
        } else {
            hold_outcome(agent, outcome,
                         outcome->is_again ? settle_again(agent, now_ns, outcome)
                                           : settle_outcome(agent, now_ns, outcome));
        }
    }
    list_append_all(&agent->done, &waiting);
}

static void take_reports(struct agent *agent, int64_t now_ns)
{
    struct reports *reports = &agent->reports;
    uint64_t count;
    ssize_t got = read(reports->event, &count, sizeof count);
    (void)got; /* resets the counter */
    agent_challenge_take(agent, now_ns);

    pthread_mutex_lock(&reports->mutex);
    if (reports->left_count > 0) {
        live_output_flush(agent->live, agent->session, agent->lanes, now_ns);
    }
    for (size_t i = 0; i < reports->left_count; i++) {
        (void)agent_session_left(agent->session, now_ns, &reports->left[i]); /* may be over */
    }
    reports->left_count = 0;
    for (size_t i = 0; i < reports->terminal_count; i++) {
        terminals_add(agent->terminals, &reports->terminals[i].work, reports->terminals[i].master);
    }
    reports->terminal_count = 0;
    list_append_all(&agent->done, &reports->done);
    pthread_mutex_unlock(&reports->mutex);
    settle_done(agent, now_ns);
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
    agent->is_away = false;
    agent_follow_blobs(agent);
    if (welcome == NULL || (welcome->has_roles && (welcome->roles & ROLE_PROVIDER) != 0)) {
        agent_say_offer(agent);
        return;
    }
    agent->refused = true;
    stop_with(agent, welcome->has_account
                         ? "this key's account is no provider in this market. Ask the operator for "
                           "an invitation with the role provider, and join with a new --dir"
                         : "this key has no account in this market; ask the operator for an "
                           "invitation with the role provider: bourse-provider join INVITATION");
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
        agent_warn_of_silence(agent, &action->parting);
        agent->since_ms = agent->is_away ? agent->since_ms : wall_ms();
        agent->is_away = true;
        agent->reconnect_ns = now_ns + action->parting.wait_ns;
        break;
    case AGENT_READY:
        connected(agent);
        break;
    case AGENT_NOTE:
        agent_warn(agent, action->text);
        break;
    case AGENT_CHALLENGE:
        agent_challenge(agent, now_ns, &action->challenge);
        break;
    case AGENT_TERMINAL:
        terminals_answered(agent->terminals, agent->lanes, &action->terminal, now_ns);
        agent->has_answers = true;
        break;
    }
}

void agent_carry_out(struct agent *agent, int64_t now_ns)
{
    struct agent_action action;
    const uint8_t *message;
    size_t length;
    while (agent_session_action(agent->session, &action)) {
        act(agent, now_ns, &action);
        agent_session_drop_action(&action);
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
    const bool is_open =
        link_reopen_at(agent->link, agent_session_address(agent->session)->control, &problem);
    agent_session_connected(agent->session, now_ns, entropy_u64());
    if (!is_open) {
        log_error("%s", problem.text);
        agent_session_unreachable(agent->session, now_ns); /* an action says when to try again */
    }
}

static void hear_broker(struct agent *agent)
{
    if (agent->reconnect_ns != INT64_MAX) {
        (void)link_has_ended(agent->link); /* the former socket tells of its vain tries */
    }
    for (int i = 0; i < MESSAGES_AT_ONCE && agent->reconnect_ns == INT64_MAX; i++) {
        const uint8_t *message;
        size_t length;
        if (link_receive(agent->link, 0, &message, &length) != 1) {
            if (link_has_ended(agent->link)) {
                agent_session_unreachable(agent->session, clock_monotonic_ns());
            }
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
        agent_reload(agent, now_ns);
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
        .address = agent_session_address(agent->session)->control,
        .isolation = agent->setup->isolation->level,
        .lanes = agent->lanes,
        .is_crowded = agent->crowded,
        .lacks_folder = agent->lacks_folder,
        .network = agent->network,
        .is_leaving = agent->drain_began_ns != 0,
        .started_ms = agent->started_ms,
        .since_ms = agent->since_ms,
        .last_error = agent->last_error.text,
        .last_error_ms = agent->last_error_ms,
        .idle = agent->idle,
        .gpus = agent->gpus,
        .faults = agent->faults,
        .energy = &agent->tally,
    };
    owner_hear(agent->owner, agent->session, now_ns, wall_ms(), &facts);
}

/* The owner's drain has no time limit. The agent leaves once nothing runs and every result is
 * accepted. */
static void leave_when_drained(struct agent *agent, int64_t now_ns)
{
    struct agent_counts counts = agent_session_counts(agent->session);
    if (owner_wants_drain(agent->owner) && agent->drain_began_ns == 0 &&
        counts.queued + counts.running + counts.left + counts.owed == 0) {
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
    bool alone = !counts.ready && counts.running + counts.left == 0 && waited_ns >= DRAIN_ALONE_NS;
    const bool is_done =
        agent_session_drained(agent->session) && !terminals_are_busy(agent->terminals);
    return is_done || alone || waited_ns >= DRAIN_LEAVE_NS;
}

static int wait_ms(const struct agent *agent, int64_t now_ns)
{
    int64_t until_ns = agent_session_next_deadline_ns(agent->session);
    if (agent->reconnect_ns < until_ns) {
        until_ns = agent->reconnect_ns;
    }
    int64_t owner_ns = owner_next_deadline_ns(agent->owner);
    until_ns = owner_ns < until_ns ? owner_ns : until_ns;
    int64_t live_ns = live_output_due_ns(agent->live, agent->session);
    until_ns = live_ns < until_ns ? live_ns : until_ns;
    const int64_t idle_ns = agent_idle_due_ns(agent);
    until_ns = idle_ns < until_ns ? idle_ns : until_ns;
    const int64_t terminals_ns = terminals_due_ns(agent->terminals);
    until_ns = terminals_ns < until_ns ? terminals_ns : until_ns;
    int64_t ms = until_ns <= now_ns ? 0 : (until_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS;
    int most =
        lanes_restless(agent->lanes) || agent->drain_began_ns != 0 ? RESTLESS_MS : LOOP_MS_MOST;
    return ms < most ? (int)ms : most;
}

/* Stops offering while the disk has no room for inputs. Leased work that then fails is given
 * back. */
static void watch_room(struct agent *agent)
{
    /* The limit for offering again is twice as high, so that asks do not come and go. */
    uint64_t bytes = agent->crowded ? 2 * FREE_SPACE_LEAST : FREE_SPACE_LEAST;
    bool crowded = !store_has_space(agent->store, bytes);
    if (crowded == agent->crowded) {
        return;
    }
    agent->crowded = crowded;
    if (crowded) {
        struct problem full;
        problem_set(&full, "the disk of %s is full: nothing is offered until there is room",
                    agent->setup->config->folder);
        agent_warn(agent, full.text);
    } else {
        log_info("the disk of %s has room again: offering", agent->setup->config->folder);
    }
}

/* Makes folders again that somebody removed, and stops offering while that is impossible. */
static void watch_folders(struct agent *agent)
{
    struct problem problem = {""};
    const bool has_folders = store_keep_folder(agent->store, &problem) &&
                             images_keep_folder(agent->images, &problem) &&
                             own_folder_keep(agent->setup->config->spool, &problem);
    if (!has_folders && !agent->lacks_folder) {
        struct problem lacks;
        problem_set(&lacks, "%.400s: nothing is offered until the folder can be made again",
                    problem.text);
        agent_warn(agent, lacks.text);
    } else if (has_folders && agent->lacks_folder) {
        log_info("all folders are there again: offering");
    }
    agent->lacks_folder = !has_folders;
}

static void watch_store(struct agent *agent, int64_t now_ns)
{
    if (now_ns < agent->look_again_ns) {
        return;
    }
    agent->look_again_ns = now_ns + NS_PER_S;
    watch_folders(agent);
    watch_room(agent);
    agent_room_turn(agent, now_ns);
    if (agent_session_counts(agent->session).leases == 0) {
        store_forget_lent(agent->store); /* frees space on the broker's disk */
    }
}

/* A loop that hangs gives no sign of life. The loop turns once a second or more often. */
static void give_sign(struct agent *agent, int64_t now_ns)
{
    if (agent->alive_every_ns > 0 && now_ns >= agent->alive_due_ns) {
        agent->alive_due_ns = now_ns + agent->alive_every_ns;
        notify_alive();
    }
}

/* Answers let terminals say more at once, because a person waits for the echo of a key. */
static void turn_terminals(struct agent *agent, int64_t now_ns)
{
    do {
        agent->has_answers = false;
        terminals_turn(agent->terminals, agent->session, now_ns);
        settle_done(agent, now_ns);
        agent_carry_out(agent, now_ns);
    } while (agent->has_answers);
}

static void loop(struct agent *agent)
{
    reconnect(agent, clock_monotonic_ns());
    agent->alive_every_ns = notify_alive_every_ns();
    notify_ready();
    for (;;) {
        int64_t now_ns = clock_monotonic_ns();
        give_sign(agent, now_ns);
        if (now_ns >= agent->reconnect_ns) {
            reconnect(agent, now_ns);
        }
        if (now_ns >= agent_session_next_deadline_ns(agent->session)) {
            agent_session_tick(agent->session, now_ns); /* terms end without a broker, too */
        }
        watch_store(agent, now_ns);
        link_absence_look(agent->absence, agent_session_counts(agent->session).ready,
                          agent_session_address(agent->session)->control, now_ns);
        hear_owner(agent, now_ns);
        agent_idle_turn(agent, now_ns);
        agent_gpu_turn(agent, now_ns);
        leave_when_drained(agent, now_ns);
        live_output_tick(agent->live, agent->session, agent->lanes, now_ns);
        agent_carry_out(agent, now_ns);
        turn_terminals(agent, now_ns);
        agent_drop_outcomes(&agent->settled);
        if (agent->failed || drain(agent, now_ns)) {
            return;
        }
        zmq_pollitem_t items[OWN_ITEMS + TERMINALS_MAX] = {
            {.socket = link_socket(agent->link),
             .events = (short)(agent->blocked ? ZMQ_POLLIN | ZMQ_POLLOUT : ZMQ_POLLIN)},
            {.fd = agent->reports.event, .events = ZMQ_POLLIN},
            {.fd = agent->setup->signals, .events = ZMQ_POLLIN},
            {.fd = launcher_end(agent->setup->launcher), .events = ZMQ_POLLIN},
            {.fd = owner_fd(agent->owner), .events = ZMQ_POLLIN}, /* heard in the next turn */
        };
        size_t count = OWN_ITEMS - 2;
        if (link_watch_socket(agent->link) != NULL) {
            items[count++] =
                (zmq_pollitem_t){.socket = link_watch_socket(agent->link), .events = ZMQ_POLLIN};
        }
        if (agent->gpus != NULL && gpu_watch_fd(agent->gpus) >= 0) {
            items[count++] = (zmq_pollitem_t){.fd = gpu_watch_fd(agent->gpus), /* likewise */
                                              .events = ZMQ_POLLIN};
        }
        count += terminals_poll(agent->terminals, items + count);
        if (zmq_poll(items, (int)count, wait_ms(agent, now_ns)) < 0 && errno != EINTR) {
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

bool agent_run(const struct agent_setup *setup, bool *ret_refused, struct problem *ret_problem)
{
    struct agent agent = {.setup = setup, .reconnect_ns = INT64_MAX, .started_ms = wall_ms()};
    list_init(&agent.reports.done);
    list_init(&agent.done);
    list_init(&agent.settled);
    unaccepted_init(&agent.unaccepted);
    pthread_mutex_init(&agent.reports.mutex, NULL);
    blob_port_init(&agent.blob_port, setup->market->blobs);
    agent.reports.event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    agent.zmq = zmq_ctx_new();
    bool good = agent.reports.event >= 0 && agent.zmq != NULL;
    if (!good) {
        problem_set(ret_problem, "cannot start: %s", strerror(errno));
    }
    good = good && agent_open_session(&agent, ret_problem) &&
           agent_open_blobs(&agent, ret_problem) && agent_open_lanes(&agent, ret_problem) &&
           agent_open_challenger(&agent, ret_problem) && agent_open_retrial(&agent, ret_problem) &&
           agent_open_owner(&agent, ret_problem) &&
           agent_open_idle(&agent, clock_monotonic_ns(), ret_problem) &&
           agent_open_gpus(&agent, ret_problem);
    if (good) {
        loop(&agent);
        notify_stopping();
        good = !agent.failed;
        if (agent.failed) {
            *ret_problem = agent.problem;
            *ret_refused = agent.refused;
        }
    }
    agent_close_all(&agent);
    return good;
}
