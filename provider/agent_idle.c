/* This file obeys the rules that withhold devices. `idle:` of the config is for the machine, and
 * `gpu:` for single GPUs. A third rule is for devices that fail again and again (fault_rule.h). A
 * rule gives an order, and the agent carries out each change of the order by the same means as a
 * pause by hand. */
#include "provider/agent_internal.h"

#include "base/checked.h"
#include "formats/units.h"
#include "protocol/limits.h"
#include "runtime/clock.h"
#include "runtime/log.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define HELD_TOLD_NS (10 * NS_PER_S) /* between two posts because of inputs that devices had */

bool agent_open_idle(struct agent *agent, int64_t now_ns, struct problem *problem)
{
    const struct config *config = agent->setup->config;
    char sees[IDLE_SEES_SIZE];
    if (!config->idle.is_set) {
        return true;
    }
    agent->idle = idle_watch_create(&config->idle, config->idle_root, getpid(), now_ns);
    if (agent->idle == NULL) {
        problem_set(problem, "out of memory");
        return false;
    }
    agent->idle_order = idle_watch_look(agent->idle, now_ns);
    idle_watch_sees(agent->idle, sees);
    log_info("the devices work while nobody else uses the machine: after %lld s without a sign of "
             "use. Watched: %s",
             (long long)(config->idle.after_ns / NS_PER_S), sees);
    lanes_freeze(agent->lanes, true);
    owner_yield(agent->owner, agent->session, now_ns, true);
    return true;
}

static void say(const struct agent *agent, int64_t now_ns, const char *what)
{
    char reason[IDLE_REASON_SIZE];
    idle_watch_reason(agent->idle, now_ns, reason);
    log_info("%s: %s", what, reason);
}

static void obey(struct agent *agent, int64_t now_ns)
{
    switch (agent->idle_order) {
    case IDLE_WORK:
        log_info("%s: offering, and work goes on", idle_watch_is_overridden(agent->idle)
                                                       ? "the owner's `resume` holds until the "
                                                         "machine has been idle"
                                                       : "the machine is idle");
        break;
    case IDLE_HOLD:
        say(agent, now_ns, "nothing is offered, and work stands still");
        break;
    case IDLE_SAVE:
        say(agent, now_ns, "work goes back to the market");
        agent_session_hand_back(agent->session, now_ns);
        break;
    case IDLE_RETURN:
        agent_session_rest(agent->session, now_ns, true, true);
        break;
    }
    lanes_freeze(agent->lanes, agent->idle_order != IDLE_WORK);
    owner_yield(agent->owner, agent->session, now_ns, agent->idle_order != IDLE_WORK);
}

void agent_idle_turn(struct agent *agent, int64_t now_ns)
{
    if (agent->idle == NULL || agent->drain_began_ns != 0) {
        return; /* an agent that leaves ends its work in its own way */
    }
    if (owner_take_override(agent->owner)) {
        idle_watch_override(agent->idle);
    }
    idle_watch_has_work(agent->idle, now_ns, agent_session_counts(agent->session).leases > 0);
    const enum idle_order order = idle_watch_look(agent->idle, now_ns);
    if (order != agent->idle_order) {
        agent->idle_order = order;
        obey(agent, now_ns);
    }
}

/* ---------------------------------------------------------------- GPUs */

static void obey_gpu(struct agent *agent, size_t index, int64_t now_ns)
{
    static const enum agent_withhold ways[] = {[IDLE_WORK] = AGENT_WITHHOLD_NOT,
                                               [IDLE_HOLD] = AGENT_WITHHOLD,
                                               [IDLE_SAVE] = AGENT_WITHHOLD_SAVE,
                                               [IDLE_RETURN] = AGENT_WITHHOLD_CANCEL};
    struct agent_device_row row;
    size_t place;
    /* The devices of a start stay until its end. */
    const enum idle_order order = agent->gpu_orders[index];
    const char *label = gpu_watch_label(agent->gpus, index);
    if (agent_session_find_label(agent->session, label, &place, &row)) {
        agent_session_hold(agent->session, now_ns, place, AGENT_HOLD_USE, ways[order]);
    }
    lanes_freeze_device(agent->lanes, label, order != IDLE_WORK);
}

static void say_gpu(struct agent *agent, size_t index, enum idle_order before, int64_t now_ns)
{
    const char *label = gpu_watch_label(agent->gpus, index);
    char reason[IDLE_REASON_SIZE];
    gpu_watch_reason(agent->gpus, index, now_ns, reason);
    if (gpu_watch_is_lost(agent->gpus, index)) {
        struct problem lost;
        problem_set(&lost,
                    "the device \"%s\" is withheld: %s; reset the device or start the machine "
                    "again",
                    label, reason);
        agent_warn(agent, lost.text);
        return;
    }
    switch (agent->gpu_orders[index]) {
    case IDLE_WORK:
        log_info("the device \"%s\" may be offered, and its work goes on", label);
        break;
    case IDLE_HOLD:
        log_info("the device \"%s\" is withheld, and its work stands still: %s", label, reason);
        break;
    case IDLE_SAVE:
    case IDLE_RETURN:
        log_info("work of the device \"%s\" %s back to the market: %s", label,
                 before == IDLE_SAVE ? "went" : "goes", reason);
        break;
    }
}

bool agent_open_gpus(struct agent *agent, struct problem *problem)
{
    const struct agent_setup *setup = agent->setup;
    const struct gpu_watch_config config = {.launcher = setup->launcher,
                                            .kernel_path = setup->kernel_path,
                                            .terms = &setup->config->gpu,
                                            .gauges = agent->gauges,
                                            .self = getpid()};
    const int64_t now_ns = clock_monotonic_ns();
    struct problem warning;
    if (config_gpu_warning(setup->config, &warning)) {
        agent_warn(agent, warning.text);
    }
    for (size_t i = 0; i < setup->offers->count; i++) {
        const struct offer *offer = &setup->offers->items[i];
        if (offer->kernel_device == NULL || strcmp(offer->kernel_device->kind, "cpu") == 0) {
            continue;
        }
        if (agent->gpus == NULL) {
            agent->gpus = gpu_watch_create(&config);
        }
        if (agent->gpus == NULL) {
            problem_set(problem, "out of memory");
            return false;
        }
        const uint64_t whole_bytes = offer->kernel_device->memory_bytes;
        const uint64_t share_bytes = config_share_of(&offer->kernel_memory, whole_bytes);
        gpu_watch_add(agent->gpus, offer->kernel_device, offer->device.label,
                      share_bytes < whole_bytes ? (int64_t)share_bytes : 0, now_ns);
    }
    for (size_t i = 0; agent->gpus != NULL && i < gpu_watch_count(agent->gpus); i++) {
        agent->gpu_orders[i] = gpu_watch_order(agent->gpus, i);
        if (agent->gpu_orders[i] != IDLE_WORK) {
            obey_gpu(agent, i, now_ns);
        }
    }
    return true;
}

static void set_figure(protobuf_c_boolean *ret_has, uint64_t *ret_figure, int64_t figure)
{
    *ret_has = figure >= 0;
    *ret_figure = figure >= 0 ? (uint64_t)figure : 0;
}

/* Adds what the gauges of a GPU say. Returns false when they say nothing. */
static bool add_gauges(const struct agent *agent, const char *label, int64_t now_ns,
                       Bourse__V1__DeviceFigures *ret_figures)
{
    struct gpu_figures figures;
    int64_t age_ns;
    size_t index = 0;
    const size_t count = agent->gpus == NULL ? 0 : gpu_watch_count(agent->gpus);
    while (index < count && strcmp(gpu_watch_label(agent->gpus, index), label) != 0) {
        index++;
    }
    if (index == count || !gpu_watch_figures(agent->gpus, index, now_ns, &figures, &age_ns)) {
        return false;
    }
    ret_figures->age_ms = (uint64_t)(age_ns / NS_PER_MS);
    set_figure(&ret_figures->has_memory_used, &ret_figures->memory_used, figures.memory_used);
    set_figure(&ret_figures->has_memory_total, &ret_figures->memory_total, figures.memory_total);
    set_figure(&ret_figures->has_power_mw, &ret_figures->power_mw, figures.power_mw);
    set_figure(&ret_figures->has_power_limit_mw, &ret_figures->power_limit_mw,
               figures.power_limit_mw);
    ret_figures->has_busy_percent = figures.busy_percent >= 0;
    ret_figures->busy_percent = figures.busy_percent >= 0 ? (uint32_t)figures.busy_percent : 0;
    ret_figures->has_celsius = figures.celsius >= 0;
    ret_figures->celsius = figures.celsius >= 0 ? (int32_t)figures.celsius : 0;
    return true;
}

/* Adds what the device's memory holds for jobs. Returns false when no job had an input there. */
static bool add_held(const struct agent *agent, size_t offer, Bourse__V1__DeviceFigures *figures)
{
    struct lanes_held held;
    if (!lanes_read_held(agent->lanes, offer, &held) ||
        held.figures.hits + held.figures.copies == 0) {
        return false;
    }
    figures->has_held_bytes = figures->has_held_hits = true;
    figures->has_held_copies = figures->has_saved_bytes = true;
    figures->held_bytes = held.figures.held_bytes;
    figures->held_hits = held.figures.hits;
    figures->held_copies = held.figures.copies;
    figures->saved_bytes = held.figures.saved_bytes;
    return true;
}

/* Fills the wire form of what the device of an offer does. Returns false when nothing is known of
 * it, or when it is withheld: what its owner does with it is nobody else's business. */
static bool figures_of(const struct agent *agent, size_t offer, int64_t now_ns,
                       struct id128 *ret_device, Bourse__V1__DeviceFigures *ret_figures)
{
    const char *label = agent->setup->offers->items[offer].device.label;
    struct agent_device_row row;
    size_t place;
    if (!agent_session_find_label(agent->session, label, &place, &row) || row.is_withheld) {
        return false;
    }
    *ret_device = row.device;
    bourse__v1__device_figures__init(ret_figures);
    ret_figures->device =
        (ProtobufCBinaryData){.len = sizeof ret_device->bytes, .data = ret_device->bytes};
    const bool has_gauges = add_gauges(agent, label, now_ns, ret_figures);
    return add_held(agent, offer, ret_figures) || has_gauges;
}

/* Tells the broker what the devices do, for those who list devices. */
static void post_figures(struct agent *agent, int64_t now_ns)
{
    struct id128 devices[LIMIT_FIGURES];
    Bourse__V1__DeviceFigures figures[LIMIT_FIGURES];
    Bourse__V1__DeviceFigures *pointers[LIMIT_FIGURES];
    size_t count = 0;
    if (!agent->figures_due || !agent_session_may_post_figures(agent->session)) {
        return;
    }
    for (size_t i = 0; i < agent->setup->offers->count && count < LIMIT_FIGURES; i++) {
        if (agent->setup->offers->items[i].kernel_device != NULL &&
            figures_of(agent, i, now_ns, &devices[count], &figures[count])) {
            pointers[count] = &figures[count];
            count++;
        }
    }
    agent->figures_due =
        agent_session_post_figures(agent->session, now_ns, pointers, count) == AGENT_UNKNOWN;
}

/* The inputs that devices hold are told again when some came, at most once in HELD_TOLD_NS. Nothing
 * wakes the agent for it. */
static void look_at_held(struct agent *agent, int64_t now_ns)
{
    uint64_t inputs = 0;
    for (size_t i = 0; i < agent->setup->offers->count; i++) {
        struct lanes_held held;
        if (lanes_read_held(agent->lanes, i, &held)) {
            inputs += held.figures.hits + held.figures.copies;
        }
    }
    if (inputs != agent->inputs_told && now_ns - agent->held_told_ns >= HELD_TOLD_NS) {
        agent->inputs_told = inputs;
        agent->held_told_ns = now_ns;
        agent->figures_due = true;
    }
}

/* Ends work that takes more of a device's memory than the owner allows. bourse-kernel keeps its
 * buffers within the limit, but code of a job may hold memory of its own. */
static void bound_memory(struct agent *agent, size_t index)
{
    int64_t used_bytes;
    int64_t allowed_bytes;
    if (!gpu_watch_exceeds(agent->gpus, index, &used_bytes, &allowed_bytes)) {
        return;
    }
    char used[UNITS_TEXT_SIZE];
    char allowed[UNITS_TEXT_SIZE];
    struct problem detail;
    units_bytes_short(used_bytes, used);
    units_bytes_short(allowed_bytes, allowed);
    problem_set(&detail, "%s of the device's memory are used, and the owner allows %s", used,
                allowed);
    const char *label = gpu_watch_label(agent->gpus, index);
    if (lanes_exceed(agent->lanes, label, detail.text) > 0) {
        log_warning("work on the device \"%s\" is ended: %s", label, detail.text);
    }
}

static void judge_gpus(struct agent *agent, int64_t now_ns)
{
    char before[sizeof(struct problem)];
    (void)snprintf(before, sizeof before, "%s", gpu_watch_problem(agent->gpus));
    if (!gpu_watch_turn(agent->gpus, now_ns)) {
        return;
    }
    agent->figures_due = true;
    const char *problem = gpu_watch_problem(agent->gpus);
    if (problem[0] != '\0' && strcmp(problem, before) != 0) {
        log_warning("no figures of the GPUs: %s", problem);
    }
    for (size_t i = 0; i < gpu_watch_count(agent->gpus); i++) {
        bound_memory(agent, i);
        const enum idle_order former = agent->gpu_orders[i];
        agent->gpu_orders[i] = gpu_watch_order(agent->gpus, i);
        if (agent->gpu_orders[i] != former) {
            obey_gpu(agent, i, now_ns);
            say_gpu(agent, i, former, now_ns);
        }
    }
}

/* ---------------------------------------------------------------- devices that fail */

static const char *label_of(const struct agent *agent, size_t offer)
{
    return agent->setup->offers->items[offer].device.label;
}

/* Withholds the device of the offer, or offers it again. Work that runs ends by itself. */
static void hold_failing(struct agent *agent, int64_t now_ns, size_t offer, enum agent_withhold how)
{
    struct agent_device_row row;
    size_t place;
    if (agent_session_find_label(agent->session, label_of(agent, offer), &place, &row)) {
        agent_session_hold(agent->session, now_ns, place, AGENT_HOLD_FAULT, how);
    }
}

void agent_idle_note_fault(struct agent *agent, int64_t now_ns, const struct outcome *outcome)
{
    struct fault_rule *rule = &agent->faults[outcome->offer];
    struct problem warning;
    if (outcome->fault == DEVICE_FAULT_NONE) {
        if (outcome->result == OUTCOME_OK) {
            fault_rule_work(rule);
        }
        return;
    }
    if (!fault_rule_fail(rule, now_ns, outcome->fault, outcome->detail)) {
        return;
    }
    hold_failing(agent, now_ns, outcome->offer, AGENT_WITHHOLD);
    problem_set(&warning,
                "the device \"%s\" is withheld: it failed %d times in a row (%s), the last time: "
                "%.200s; %s. It is tried again in %lld s",
                label_of(agent, outcome->offer), (int)FAULT_RULE_MOST, fault_rule_word(rule->fault),
                rule->cause, fault_rule_advice(rule->fault), (long long)(rule->wait_ns / NS_PER_S));
    agent_warn(agent, warning.text);
}

static void take_trial(struct agent *agent, int64_t now_ns)
{
    size_t offer;
    struct problem problem;
    if (!retrial_take(agent->retrial, &offer, &problem)) {
        return;
    }
    struct fault_rule *rule = &agent->faults[offer];
    if (fault_rule_tried(rule, now_ns, problem.text[0] == '\0', problem.text)) {
        log_info("the device \"%s\" passed its trial, and may be offered again",
                 label_of(agent, offer));
        hold_failing(agent, now_ns, offer, AGENT_WITHHOLD_NOT);
    } else {
        log_warning("the device \"%s\" failed its trial, and stays withheld: %s. It is tried again "
                    "in %lld s",
                    label_of(agent, offer), rule->cause, (long long)(rule->wait_ns / NS_PER_S));
    }
}

/* While others use the machine or the device, nothing is tried there. */
static bool may_try(const struct agent *agent, size_t offer)
{
    bool may = agent->idle_order == IDLE_WORK;
    for (size_t i = 0; agent->gpus != NULL && i < gpu_watch_count(agent->gpus); i++) {
        const bool is_it = strcmp(gpu_watch_label(agent->gpus, i), label_of(agent, offer)) == 0;
        may = may && (!is_it || agent->gpu_orders[i] == IDLE_WORK);
    }
    return may;
}

static void turn_trials(struct agent *agent, int64_t now_ns)
{
    take_trial(agent, now_ns);
    for (size_t i = 0; i < agent->setup->offers->count; i++) {
        if (now_ns >= fault_rule_due_ns(&agent->faults[i]) && may_try(agent, i) &&
            retrial_begin(agent->retrial, i, &agent->setup->offers->items[i])) {
            fault_rule_try(&agent->faults[i]);
            return;
        }
    }
}

void agent_gpu_turn(struct agent *agent, int64_t now_ns)
{
    if (agent->drain_began_ns != 0) {
        return;
    }
    turn_trials(agent, now_ns);
    if (agent->gpus != NULL) {
        judge_gpus(agent, now_ns);
    }
    look_at_held(agent, now_ns);
    post_figures(agent, now_ns);
}

/* A limit that was not there at the start waits for a restart, so that its part is open here. */
void agent_idle_apply(struct agent *agent, int64_t now_ns, const struct config *now)
{
    struct config *config = agent->setup->config;
    struct problem warning;
    config->idle = now->idle;
    config->gpu = now->gpu;
    config->network = now->network;
    if (agent->idle != NULL) {
        idle_watch_change(agent->idle, &config->idle, now_ns);
    }
    if (agent->gpus != NULL) {
        gpu_watch_change(agent->gpus);
    }
    if (agent->network != NULL) {
        network_change(agent->network, &config->network);
    }
    if (config_gpu_warning(config, &warning)) {
        agent_warn(agent, warning.text);
    }
}

void agent_room_turn(struct agent *agent, int64_t now_ns)
{
    struct problem problem = {""};
    const bool was_spent = agent->is_spent;
    if (agent->network != NULL) {
        agent->is_spent = network_is_spent(agent->network);
        if (!network_turn(agent->network, now_ns, &problem)) {
            agent_warn(agent, problem.text);
        }
    }
    if (agent->is_spent && !was_spent) {
        agent_warn(agent, "the month's bytes of the network are used up: nothing is offered before "
                          "the next month");
    } else if (was_spent && !agent->is_spent) {
        log_info("a month has begun: offering");
    }
    agent_session_pause(agent->session, now_ns,
                        agent->crowded || agent->lacks_folder || agent->is_spent);
}

int64_t agent_idle_due_ns(const struct agent *agent)
{
    if (agent->drain_began_ns != 0) {
        return INT64_MAX;
    }
    const int64_t idle_ns = agent->idle == NULL ? INT64_MAX : idle_watch_due_ns(agent->idle);
    const int64_t gpus_ns = agent->gpus == NULL ? INT64_MAX : gpu_watch_due_ns(agent->gpus);
    return idle_ns < gpus_ns ? idle_ns : gpus_ns;
}
