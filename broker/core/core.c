#include "broker/core/core.h"

#include "base/checked.h"
#include "broker/answer/follow.h"
#include "broker/answer/replies.h"
#include "broker/answer/watches.h"
#include "broker/core/core_internal.h"
#include "broker/core/group.h"
#include "broker/core/outgoing.h"
#include "broker/core/request.h"
#include "broker/core/translate.h"
#include "broker/fatal.h"
#include "protocol/limits.h"
#include "runtime/clock.h"
#include "runtime/entropy.h"
#include "runtime/log.h"
#include "runtime/process.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Watchers of a busy job get events this often, not for every result, but its end at once. */
#define EVENT_INTERVAL_NS (20 * NS_PER_MS)
/* A due tick that leaves its deadline where it was must not spin. */
#define TICK_INTERVAL_NS (1 * NS_PER_MS)
/* A restart must not lose log time that clients were told: their stamps would lie in the future. A
 * quiet journal gets a tick every half LIMIT_ID_AHEAD_MS. */
#define KEEP_INTERVAL_NS (LIMIT_ID_AHEAD_MS / 2 * NS_PER_MS)
/* Brokers that follow compare the state with theirs so often. */
#define STATE_INTERVAL_NS (10 * NS_PER_S)
/* Interval between looks whether a full disk has space for a tick again. */
#define ROOM_INTERVAL_NS NS_PER_S
/* Interval between looks whether the journal takes entries again. */
#define AWAY_INTERVAL_NS (50 * NS_PER_MS)

/* ---------------------------------------------------------------- groups */

/* Waits so long for the follower to give a group back. Returns true when one is spare. */
static bool await_spare(struct core *core, int64_t timeout_ns)
{
    if (core->spare == NULL) {
        struct queue_link *link = queue_pop(core->config.returned, timeout_ns);
        core->spare = link == NULL ? NULL : QUEUE_ELEMENT(link, struct group, link);
        if (core->spare != NULL && core->unanswered != NULL) {
            unanswered_forget(core->unanswered, core->spare);
        }
    }
    return core->spare != NULL;
}

static void take_group(struct core *core)
{
    while (!await_spare(core, QUEUE_FOREVER)) {
    }
    core->open = core->spare;
    core->spare = NULL;
}

/* A journal on etcd can be away for long, and its groups with it. A core that waited for one would
 * refuse nobody and answer no read meanwhile. So it takes something on only with a spare group at
 * hand, or while it knows that the journal is away and adds nothing to groups. */
static bool may_go_on(struct core *core)
{
    return core->config.quorum == NULL || core->is_away || await_spare(core, AWAY_INTERVAL_NS);
}

void core_add_reply(struct core *core, struct outgoing *reply)
{
    if (reply == NULL) {
        fatal("out of memory");
    }
    if (core->is_away) {
        if (!queue_push(core->config.releases, &reply->link)) {
            outgoing_destroy(&reply); /* the gateway has ended: the broker is stopping */
        }
        return;
    }
    assert(core->open->reply_count < GROUP_REPLIES_MAX);
    core->open->replies[core->open->reply_count++] = reply;
}

void core_charge(struct core *core, const struct budget_asker *asker, int64_t steps)
{
    if (core->config.budget != NULL) {
        budget_charge(core->config.budget, asker, steps, clock_monotonic_ns());
    }
}

void core_hand_over(struct core *core)
{
    struct group *group = core->open;
    if (group->command_count > 0) {
        uint64_t last = group->first_command + group->command_count - 1;
        assert(last == exchange_index(core->config.exchange));
        if (core->config.mark_every > 0 && last >= core->next_mark) {
            group->has_mark = true;
            group->mark = exchange_state_hash(core->config.exchange);
            core->next_mark = last + core->config.mark_every;
        }
    }
    if (core->unanswered != NULL) {
        unanswered_keep(core->unanswered, group);
    }
    atomic_fetch_add(core->config.committing, 1);
    bool pushed = queue_push(core->config.groups, &group->link);
    assert(pushed); /* the committer's queue is closed only after the core has ended */
    core->open = NULL;
    take_group(core);
}

void core_make_room(struct core *core, uint32_t replies)
{
    if (!core->is_away && core->open->reply_count + replies >= GROUP_REPLIES_MAX) {
        core_hand_over(core);
    }
}

/* The committer has nothing to do, and a spare group is here, so waiting longer gains nothing. */
static bool committer_is_idle(struct core *core)
{
    return atomic_load(core->config.committing) == 0 &&
           (core->spare != NULL || queue_count(core->config.returned) > 0);
}

/* ---------------------------------------------------------------- commands */

/* Brokers that follow take every entry for a sign of life. */
static int64_t keep_interval_ns(const struct core *core)
{
    return core->config.beat_ms > 0 ? core->config.beat_ms * NS_PER_MS : KEEP_INTERVAL_NS;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void note_effects(struct core *core, size_t from)
{
    const struct exchange_effects *effects = &core->open->effects;
    for (size_t i = from; i < effects->count; i++) {
        const struct exchange_effect *effect = &effects->items[i];
        if (effect->type == EFFECT_JOB &&
            watches_changed(core->watches, &effect->id, effect->account)) {
            bool is_open = exchange_job_is_open(core->config.exchange, &effect->id);
            int64_t wait_ns = is_open ? EVENT_INTERVAL_NS : 0;
            core->events_due_ns = least(core->events_due_ns, clock_monotonic_ns() + wait_ns);
        }
        if (effect->type == EFFECT_LEASE_GRANT) {
            output_relay_granted(core->relay, effect->account, &effect->grant.job);
        }
    }
}

/* Applies one command and keeps it for the entry. `command` has all but index and log time. Returns
 * the number of effects. Sets *ret_is_refused (may be NULL) when one is a refusal. */
static size_t apply(struct core *core, struct exchange_command *command,
                    const struct group_command *entry, bool *ret_is_refused)
{
    if (!group_has_room(core->open, &entry->entry, core->config.group_bytes)) {
        core_hand_over(core);
    }
    struct group *group = core->open;
    command->index = exchange_index(core->config.exchange) + 1;
    command->log_time_ns = logtime_stamp(core->config.clock);
    struct hash32 dice = {{0}};
    if (command->type == EXCHANGE_RESULTS) {
        command->results.dice = dice = epoch_dice(core->config.epoch, command->index);
    }
    size_t before = group->effects.count;
    switch (exchange_step(core->config.exchange, command, &group->effects)) {
    case EXCHANGE_OK:
        break;
    case EXCHANGE_OUT_OF_ORDER:
        fatal("the exchange refused command %" PRIu64 " as out of order", command->index);
    case EXCHANGE_OUT_OF_MEMORY:
        fatal("out of memory in command %" PRIu64, command->index);
    }
    if (group->command_count == 0) {
        group->first_command = command->index;
    }
    struct group_command *kept = &group->commands[group->command_count++];
    *kept = *entry;
    kept->entry.log_time_ns = command->log_time_ns;
    kept->entry.dice = dice;
    if (kept->request == NULL) {
        kept->entry.payload = kept->own;
    }
    group->bytes += entry_command_size(&kept->entry);
    core->keep_ns = clock_monotonic_ns() + keep_interval_ns(core);
    note_effects(core, before);
    follow_notice(core->follow, core->config.exchange, clock_monotonic_ns());
    for (size_t i = before; ret_is_refused != NULL && i < group->effects.count; i++) {
        *ret_is_refused = *ret_is_refused || group->effects.items[i].type == EFFECT_REJECT;
    }
    return group->effects.count - before;
}

/* The journal on etcd gets a state hash in a tick now and then, the first one at the start. */
static bool states_are_due(const struct core *core)
{
    return core->config.beat_ms > 0 && clock_monotonic_ns() >= core->state_ns;
}

static void apply_own(struct core *core, enum entry_command_kind kind, uint32_t provider)
{
    struct exchange_command command = {.account = EXCHANGE_NO_ACCOUNT, .provider = provider};
    struct group_command entry = {.entry = {.account = EXCHANGE_NO_ACCOUNT, .kind = kind}};
    switch (kind) {
    case ENTRY_TICK:
        command.type = EXCHANGE_TICK;
        break;
    case ENTRY_SUSPECT:
        command.type = EXCHANGE_SUSPECT;
        break;
    case ENTRY_RETURNED:
        command.type = EXCHANGE_RETURNED;
        break;
    case ENTRY_GOODBYE:
        departures_note(core->departures, core->config.exchange, provider,
                        logtime_now(core->config.clock));
        command.type = EXCHANGE_GOODBYE;
        break;
    case ENTRY_MESSAGE:
    case ENTRY_GENESIS:
    case ENTRY_RESULTS:
    case ENTRY_LIMITS:
    case ENTRY_EPOCH:
    case ENTRY_OUTAGE:
        fatal("the core makes no entry of kind %d", (int)kind);
    }
    if (kind != ENTRY_TICK) {
        translate_presence(provider, entry.own);
        entry.entry.payload_length = TRANSLATE_PRESENCE_BYTES;
    } else if (states_are_due(core)) {
        core->state_ns = clock_monotonic_ns() + STATE_INTERVAL_NS;
        const struct hash32 state = exchange_state_hash(core->config.exchange);
        memcpy(entry.own, state.bytes, sizeof state.bytes);
        entry.entry.payload_length = TRANSLATE_STATE_BYTES;
    }
    (void)apply(core, &command, &entry, NULL);
}

/* The present epoch, if any, goes on a little when the disk has no space for the new secret. */
static void begin_epoch(struct core *core)
{
    static const struct hash32 lost;
    struct epoch *epoch = core->config.epoch;
    struct exchange_command command = {.type = EXCHANGE_EPOCH, .account = EXCHANGE_NO_ACCOUNT};
    struct group_command entry = {.entry = {.account = EXCHANGE_NO_ACCOUNT,
                                            .kind = ENTRY_EPOCH,
                                            .payload_length = TRANSLATE_EPOCH_BYTES}};
    struct hash32 commitment;
    const uint64_t epochs = exchange_epochs(core->config.exchange, &commitment);
    if (!epoch_prepare(epoch, &commitment, &command.epoch)) {
        epoch_put_off(epoch, logtime_now(core->config.clock));
        return;
    }
    if (epochs > 0 && hash32_equal(&command.epoch.secret, &lost)) {
        log_warning("the secret of epoch %" PRIu64 " is lost: nobody can recompute its dice",
                    epochs);
    }
    translate_epoch(&command.epoch, entry.own);
    (void)apply(core, &command, &entry, NULL);
    epoch_begin(epoch, command.log_time_ns);
}

/* Raises the rules when all brokers know the next ones. The command begins a group, for its act. */
static void raise_rules(struct core *core)
{
    const uint32_t next = exchange_rules(core->config.exchange) + 1;
    struct exchange_command command = {
        .type = EXCHANGE_LIMITS,
        .account = EXCHANGE_NO_ACCOUNT,
        .set_limits = {.rules = next, .limits = exchange_limits_now(core->config.exchange)}};
    struct group_command entry = {.entry = {.account = EXCHANGE_NO_ACCOUNT,
                                            .kind = ENTRY_LIMITS,
                                            .payload_length = TRANSLATE_LIMITS_BYTES}};
    if (core->config.rules_of_all == NULL || atomic_load(core->config.rules_of_all) < next) {
        return;
    }
    if (core->open->command_count > 0) {
        core_hand_over(core);
    }
    translate_limits(&command.set_limits, entry.own);
    (void)apply(core, &command, &entry, NULL);
    core->open->limits = (struct act){.kind = ACT_LIMITS, .state = next};
    log_info("the market is under rules %" PRIu32 " from command %" PRIu64 " on", next,
             command.index);
}

/* Results need dice from a secret that was drawn since the start. An earlier broker's secret may be
 * lost, or somebody may have seen it. */
static bool has_dice(struct core *core)
{
    if (!core->config.epoch->has_begun) {
        begin_epoch(core);
    }
    return core->config.epoch->has_begun;
}

/* Notes in the entry which results are missing, for replay. */
static void note_missing(const struct exchange_results *results, struct entry_command *entry)
{
    for (size_t i = 0; i < results->count; i++) {
        if (results->results[i].is_missing) {
            entry_results_set(&entry->missing, i);
            entry->verdict |= ENTRY_MISSING;
        }
    }
}

static void apply_message(struct core *core, struct request *request)
{
    struct exchange_command *command = &request->translation.command;
    command->account = request->account;
    command->origin = request->session;
    struct group_command entry = {
        .entry = {.account = request->account,
                  .kind = command->type == EXCHANGE_RESULTS ? ENTRY_RESULTS : ENTRY_MESSAGE,
                  .verdict = ENTRY_SIGNED,
                  .payload = request->message,
                  .payload_length = (uint32_t)request->length},
        .request = request,
    };
    if (command->type == EXCHANGE_RESULTS) {
        note_missing(&command->results, &entry.entry);
    }
    if (command->type == EXCHANGE_ADVERTISE && command->advertise.count == 0) {
        departures_note(core->departures, core->config.exchange, request->account,
                        logtime_now(core->config.clock));
    }
    const uint32_t account = request->account;
    const uint64_t session = request->session;
    const bool is_results = command->type == EXCHANGE_RESULTS;
    const size_t length = request->length;
    const uint64_t before = exchange_steps(core->config.exchange);
    bool is_refused = false;
    /* The group owns the request from here on. */
    const size_t effects = apply(core, command, &entry, &is_refused);
    int64_t steps = (int64_t)(exchange_steps(core->config.exchange) - before +
                              effects * (uint64_t)BUDGET_EFFECT_STEPS);
    if (is_results && is_refused) {
        steps = budget_of_command(length) - budget_of_results(length);
    } else if (is_results) {
        steps = -budget_of_results(length);
    }
    core_charge(core, &(struct budget_asker){account, session, BUDGET_COMMANDS}, steps);
}

/* ---------------------------------------------------------------- the loop */

/* The request was on its way when the disk filled. A refusal bounds the use of the reserve. */
static void refuse_for_reserve(struct core *core, struct request *request)
{
    core_make_room(core, 1);
    core_add_reply(core, outgoing_reject(request->session, &request->envelope.id,
                                         REJECT_STORAGE_FULL, "", 0, 0));
    request_destroy(&request);
}

static void take_request(struct core *core, struct request *request)
{
    switch (request->kind) {
    case REQUEST_MESSAGE:
        if (!translate_is_command((enum message_type)request->envelope.type)) {
            core_answer(core, request);
        } else if (core->is_away) {
            core_outage_refuse(core, request);
        } else if (disk_reserve_admits(disk_reserve_state(core->config.reserve),
                                       (enum message_type)request->envelope.type) &&
                   (request->envelope.type != MESSAGE_RESULTS || has_dice(core))) {
            if (!core_refuse_challenged(core, request)) {
                apply_message(core, request); /* the group owns the request now */
            }
        } else {
            refuse_for_reserve(core, request);
        }
        return;
    case REQUEST_PRESENCE:
        if (core->is_away) {
            core_outage_put_off(core, request);
            return;
        }
        if (request->presence != ENTRY_RETURNED) {
            challenges_silent(core->challenges, request->account);
        }
        apply_own(core, request->presence, request->account);
        break;
    case REQUEST_CLOSED:
        watches_forget(core->watches, request->session);
        follow_forget(core->follow, request->session);
        output_relay_forget(core->relay, request->session);
        terminal_relay_forget(core->terminals, request->session);
        challenges_forget(core->challenges, request->session);
        waiting_reads_forget(&core->waiting, core->config.budget, request->session, false);
        break;
    }
    request_destroy(&request);
}

typedef void core_expect(const struct exchange *exchange, uint32_t account,
                         const struct exchange_command *command);

static void expect_one(const struct core *core, const struct queue_link *link, core_expect *expect)
{
    if (link == NULL) {
        return;
    }
    const struct request *request = QUEUE_ELEMENT(link, struct request, link);
    if (request->kind == REQUEST_MESSAGE &&
        translate_is_command((enum message_type)request->envelope.type)) {
        expect(core->config.exchange, request->account, &request->translation.command);
    }
}

/* Prefetches data for requests that stay in the queue while another one has its turn. */
static void expect(const struct core *core, const struct queue_link *link)
{
    expect_one(core, link->third, exchange_expect);
    expect_one(core, link->after, exchange_expect_found);
    expect_one(core, link->next, exchange_expect_orders);
}

/* Log time stands still when the disk cannot store even a tick, or the journal takes none. */
static bool may_tick(const struct core *core)
{
    return !core->is_away && disk_reserve_state(core->config.reserve) < DISK_RESERVE_LAST;
}

/* Returns the time until the core must act if no request arrives. */
static int64_t idle_ns(struct core *core, int64_t now_ns)
{
    int64_t wait = core->keep_ns > now_ns ? core->keep_ns - now_ns : 0;
    int64_t deadline = exchange_next_deadline_ns(core->config.exchange);
    if (deadline != INT64_MAX) {
        int64_t log_now = logtime_now(core->config.clock);
        int64_t due = deadline > log_now ? deadline - log_now : 0;
        int64_t allowed = core->next_tick_ns > now_ns ? core->next_tick_ns - now_ns : 0;
        wait = least(wait, due > allowed ? due : allowed);
    }
    wait = may_tick(core) ? wait : ROOM_INTERVAL_NS;
    if (core->events_due_ns != INT64_MAX) {
        wait = least(wait, core->events_due_ns > now_ns ? core->events_due_ns - now_ns : 0);
    }
    const int64_t follow_ns = follow_due_ns(core->follow);
    if (follow_ns != INT64_MAX) {
        wait = least(wait, follow_ns > now_ns ? follow_ns - now_ns : 0);
    }
    const int64_t output_ns = output_relay_due_ns(core->relay);
    if (output_ns != INT64_MAX) {
        wait = least(wait, output_ns > now_ns ? output_ns - now_ns : 0);
    }
    const int64_t terminals_ns = terminal_relay_due_ns(core->terminals);
    if (terminals_ns != INT64_MAX) {
        wait = least(wait, terminals_ns > now_ns ? terminals_ns - now_ns : 0);
    }
    const int64_t challenges_ns = challenges_due_ns(core->challenges);
    if (challenges_ns != INT64_MAX) {
        wait = least(wait, challenges_ns > now_ns ? challenges_ns - now_ns : 0);
    }
    if (core->is_away) {
        wait = AWAY_INTERVAL_NS;
    }
    if (core->waiting.first != NULL) {
        wait = least(wait, core->waiting.due_ns > now_ns ? core->waiting.due_ns - now_ns : 0);
    }
    return wait;
}

static void tick_when_due(struct core *core)
{
    int64_t now_ns = clock_monotonic_ns();
    int64_t deadline = exchange_next_deadline_ns(core->config.exchange);
    bool is_due = deadline != INT64_MAX && deadline <= logtime_now(core->config.clock);
    if (may_tick(core) && (now_ns >= core->keep_ns || states_are_due(core) ||
                           (is_due && now_ns >= core->next_tick_ns))) {
        apply_own(core, ENTRY_TICK, 0);
        core->next_tick_ns = now_ns + TICK_INTERVAL_NS;
    }
    if (may_tick(core) && logtime_now(core->config.clock) >= core->config.epoch->ends_ns) {
        begin_epoch(core);
    }
    if (may_tick(core)) {
        raise_rules(core);
    }
    if (!core->is_away) {
        core_add_news(core, now_ns);
    }
    if (core->waiting.first != NULL && core->waiting.due_ns <= now_ns) {
        core_answer_waiting(core);
    }
}

static void *run(void *argument)
{
    struct core *core = argument;
    process_name_thread("core");
    while (!queue_finished(core->config.inbound)) {
        core_outage_look(core);
        if (!may_go_on(core)) {
            continue;
        }
        struct request *resumed = core_outage_resume(core);
        if (resumed != NULL) {
            take_request(core, resumed);
            continue;
        }
        int64_t wait = idle_ns(core, clock_monotonic_ns());
        /* An open group with commands waits only for the committer, which wakes the core. */
        if (!group_is_empty(core->open) && committer_is_idle(core)) {
            wait = 0;
        }
        struct queue_link *link = queue_pop(core->config.inbound, wait);
        if (link != NULL) {
            expect(core, link);
            take_request(core, QUEUE_ELEMENT(link, struct request, link));
        }
        tick_when_due(core);
        if (link == NULL && !group_is_empty(core->open) && committer_is_idle(core)) {
            core_hand_over(core);
        }
    }
    if (!group_is_empty(core->open)) {
        core_hand_over(core);
    }
    return NULL;
}

/* Spares come out of `returned` like groups that the tables have. */
static bool add_spares(const struct core_config *config)
{
    bool good = true;
    for (unsigned i = 1; good && i < CORE_GROUPS; i++) {
        struct group *spare = group_create();
        good = spare != NULL && queue_try_push(config->returned, &spare->link);
    }
    return good;
}

struct core *core_start(const struct core_config *config)
{
    struct core *core = calloc(1, sizeof *core);
    if (core == NULL) {
        fatal("the core cannot start: out of memory");
    }
    core->config = *config;
    if (core->config.group_bytes == 0) {
        core->config.group_bytes = GROUP_BYTES;
    }
    core->events_due_ns = INT64_MAX;
    waiting_reads_init(&core->waiting);
    core->keep_ns = clock_monotonic_ns() + keep_interval_ns(core);
    core->next_mark = exchange_index(config->exchange) + config->mark_every;
    core->watches = watches_create();
    core->follow = follow_create(entropy_u64() >> 1); /* fits a signed number */
    core->relay = output_relay_create(entropy_u64() >> 1);
    core->terminals = terminal_relay_create();
    core->figures = figures_board_create();
    core->departures = departures_create();
    core->challenges = core_open_challenges(config);
    core->open = group_create();
    if (core->watches == NULL || core->follow == NULL || core->relay == NULL ||
        core->terminals == NULL || core->figures == NULL || core->departures == NULL ||
        core->challenges == NULL || core->open == NULL || !core_outage_open(core) ||
        !add_spares(config) || pthread_create(&core->thread, NULL, run, core) != 0) {
        fatal("the core cannot start: out of memory or threads");
    }
    return core;
}

void core_stop(struct core **self)
{
    struct core *core = *self;
    if (core != NULL) {
        queue_close(core->config.inbound);
        pthread_join(core->thread, NULL);
        const struct exchange_totals totals = exchange_totals(core->config.exchange);
        log_info("commands %" PRIu64 ", dispatched %" PRIu64 " subtasks, looked at edges %" PRIu64
                 " times",
                 exchange_index(core->config.exchange), totals.dispatches, totals.edges);
        waiting_reads_forget(&core->waiting, core->config.budget, 0,
                             true); /* unanswered, so nothing was promised */
        watches_destroy(&core->watches);
        follow_destroy(&core->follow);
        output_relay_destroy(&core->relay);
        terminal_relay_destroy(&core->terminals);
        figures_board_destroy(&core->figures);
        departures_destroy(&core->departures);
        core_close_challenges(core);
        core_outage_close(core);
        group_destroy(&core->open);
        group_destroy(&core->spare);
        free(core);
        *self = NULL;
    }
}
