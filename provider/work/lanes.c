#include "provider/work/lanes.h"

#include "provider/work/lanes_internal.h"
#include "provider/work/lease_context.h"
#include "runtime/clock.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---------------------------------------------------------------- CPUs */

static void take_cpus(struct lanes *lanes, struct lane *lane, uint32_t width)
{
    uint32_t run = 0;
    uint32_t end = lane->offer->first_core + lane->offer->device.slots;
    bool is_bound = !lanes->config.cpu_enforced && lane->offer->simulates == NULL;
    for (uint32_t i = lane->offer->first_core; i < end && is_bound; i++) {
        run = lanes->cpu_taken[i] ? 0 : run + 1;
        if (run == width) {
            lane->first_cpu = i + 1 - width;
            lane->cpu_count = width;
            memset(&lanes->cpu_taken[lane->first_cpu], true, width);
            return;
        }
    }
}

static void give_cpus(struct lanes *lanes, struct lane *lane)
{
    memset(&lanes->cpu_taken[lane->first_cpu], false, lane->cpu_count);
    lane->cpu_count = 0;
}

/* ---------------------------------------------------------------- the main thread */

static bool is_same(const struct agent_work *a, const struct agent_work *b)
{
    return a->index == b->index && a->attempt == b->attempt;
}

static struct lease_run *find_run(const struct lanes *lanes, uint64_t lease)
{
    for (struct list_link *link = lanes->runs.next; link != &lanes->runs; link = link->next) {
        struct lease_run *run = LIST_ELEMENT(link, struct lease_run, link);
        if (lease_context_grant(run->context)->lease == lease && !run->ending) {
            return run;
        }
    }
    return NULL;
}

static struct lane *find_lane(const struct lease_run *run, uint32_t number)
{
    for (struct list_link *link = run->lanes.next; link != &run->lanes; link = link->next) {
        struct lane *lane = LIST_ELEMENT(link, struct lane, link);
        if (lane->number == number) {
            return lane;
        }
    }
    return NULL;
}

/* Returns what copies inputs to the lane's device while it computes, or NULL when nothing does. On
 * a device of cores, the cores that compute would make the copies. */
static struct copy_ahead *start_ahead(struct lane *lane)
{
    const struct offer *offer = lane->offer;
    const struct agent_grant *grant = lease_context_grant(lane->context);
    const struct kernel_device *device = offer->kernel_device;
    if (device == NULL || strcmp(device->kind, "cpu") == 0 || offer->held_bytes == 0) {
        return NULL;
    }
    const struct copy_ahead_config config = {.store = lane->lanes->config.store,
                                             .config = lane->lanes->config.config,
                                             .device = device,
                                             .job = grant->job,
                                             .shares_jail = lane_shares_jail,
                                             .context = lane};
    return copy_ahead_create(&config);
}

static struct lane *start_lane(struct lanes *lanes, struct lease_run *run, uint32_t number)
{
    struct lane *lane = calloc(1, sizeof *lane);
    if (lane == NULL) {
        return NULL;
    }
    lane->lanes = lanes;
    lane->context = run->context;
    lane->offer = run->offer;
    lane->number = number;
    list_init(&lane->waiting);
    list_init(&lane->fresh);
    pthread_mutex_init(&lane->mutex, NULL);
    pthread_cond_init(&lane->woken, NULL);
    take_cpus(lanes, lane, lease_context_grant(run->context)->slots_per_subtask);
    lane->ahead = start_ahead(lane);
    if (pthread_create(&lane->thread, NULL, lane_loop, lane) != 0) {
        give_cpus(lanes, lane);
        copy_ahead_destroy(&lane->ahead);
        pthread_cond_destroy(&lane->woken);
        pthread_mutex_destroy(&lane->mutex);
        free(lane);
        return NULL;
    }
    list_append(&run->lanes, &lane->link);
    return lane;
}

static void collect_lane(struct lanes *lanes, struct lane *lane)
{
    pthread_join(lane->thread, NULL);
    assert(list_empty(&lane->waiting));
    lane_drop_ends(lane);
    list_remove(&lane->fresh);
    give_cpus(lanes, lane);
    list_remove(&lane->link);
    pthread_cond_destroy(&lane->woken);
    pthread_mutex_destroy(&lane->mutex);
    free(lane);
}

static void drop_run(struct lease_run *run)
{
    assert(list_empty(&run->lanes));
    lease_context_destroy(&run->context);
    list_remove(&run->link);
    free(run);
}

struct lanes *lanes_create(const struct lanes_config *config)
{
    struct lanes *lanes = calloc(1, sizeof *lanes);
    struct device_memory *device_memory =
        device_memory_create(sizeof config->offers->items / sizeof config->offers->items[0]);
    if (lanes == NULL || device_memory == NULL) {
        free(lanes);
        device_memory_destroy(&device_memory);
        return NULL;
    }
    lanes->config = *config;
    lanes->device_memory = device_memory;
    list_init(&lanes->runs);
    list_init(&lanes->fresh);
    return lanes;
}

size_t lanes_device_of(const struct lane *lane)
{
    const ptrdiff_t number = lane->offer - lane->lanes->config.offers->items;
    assert(number >= 0 && (size_t)number < lane->lanes->config.offers->count);
    return (size_t)number;
}

bool lanes_read_held(const struct lanes *lanes, size_t offer, struct lanes_held *ret_held)
{
    const struct offer *its = &lanes->config.offers->items[offer];
    if (offer >= lanes->config.offers->count || its->kernel_device == NULL) {
        return false;
    }
    *ret_held = (struct lanes_held){.device = its->kernel_device,
                                    .label = its->device.label,
                                    .cap_bytes = its->held_bytes * its->device.slots,
                                    .figures = device_memory_read(lanes->device_memory, offer)};
    return true;
}

bool lanes_begin(struct lanes *lanes, const struct agent_grant *grant)
{
    const struct offer *offer = policy_offer_of(lanes->config.offers, &grant->device);
    struct lease_run *run = offer == NULL ? NULL : calloc(1, sizeof *run);
    if (run == NULL) {
        return false;
    }
    list_init(&run->lanes);
    run->offer = offer;
    run->context = lease_context_create(grant, lanes->config.store, lanes->config.images);
    if (run->context == NULL) {
        free(run);
        return false;
    }
    list_append(&lanes->runs, &run->link);
    return true;
}

bool lanes_start(struct lanes *lanes, const struct agent_work *work, const Bourse__V1__Work *inputs)
{
    struct lease_run *run = find_run(lanes, work->lease);
    if (run == NULL) {
        return false;
    }
    struct lane *lane = find_lane(run, work->lane);
    if (lane == NULL) {
        lane = start_lane(lanes, run, work->lane);
    }
    if (lane == NULL) {
        return false;
    }
    struct outcome *outcome = outcome_create(work, &lease_context_grant(lane->context)->job);
    if (outcome == NULL || !dispatch_inputs_copy(inputs, &outcome->dispatch)) {
        outcome_destroy(&outcome);
        return false;
    }
    pthread_mutex_lock(&lane->mutex);
    list_append(&lane->waiting, &outcome->link);
    if (is_same(&lane->next, work)) {
        lane->next.attempt = 0;
    }
    pthread_mutex_unlock(&lane->mutex);
    if (list_empty(&lane->fresh)) {
        list_append(&lanes->fresh, &lane->fresh);
    }
    return true;
}

void lanes_go(struct lanes *lanes)
{
    while (!list_empty(&lanes->fresh)) {
        struct lane *lane = LIST_ELEMENT(lanes->fresh.next, struct lane, fresh);
        list_remove(&lane->fresh);
        pthread_cond_signal(&lane->woken);
    }
}

void lanes_prepare(struct lanes *lanes, const struct agent_work *work,
                   const Bourse__V1__Work *inputs)
{
    struct lease_run *run = find_run(lanes, work->lease);
    struct lane *lane = run == NULL ? NULL : find_lane(run, work->lane);
    if (lane != NULL) {
        pthread_mutex_lock(&lane->mutex);
        lane->next = *work;
        pthread_mutex_unlock(&lane->mutex);
        if (lane->ahead != NULL) {
            copy_ahead_announce(lane->ahead, work->index, inputs);
        }
    }
    if (run != NULL) {
        lease_context_prepare(run->context, work->index, inputs);
    }
}

/* A cancel may arrive before the run has begun. The cancel is repeated until the lane moves on. */
static void press_cancel(struct lane *lane)
{
    pthread_mutex_lock(&lane->mutex);
    if (lane->jail != NULL) {
        jail_cancel(lane->jail, lane->excess != OUTCOME_OK ? lane->excess : OUTCOME_CANCELLED);
    }
    pthread_mutex_unlock(&lane->mutex);
}

void lanes_cancel(struct lanes *lanes, const struct agent_work *work)
{
    struct lease_run *run = find_run(lanes, work->lease);
    struct lane *lane = run == NULL ? NULL : find_lane(run, work->lane);
    if (lane == NULL) {
        return; /* over already */
    }
    pthread_mutex_lock(&lane->mutex);
    for (struct list_link *link = lane->waiting.next; link != &lane->waiting; link = link->next) {
        struct outcome *outcome = LIST_ELEMENT(link, struct outcome, link);
        outcome->is_cancelled = outcome->is_cancelled || is_same(&outcome->work, work);
    }
    bool is_running = is_same(&lane->running, work);
    if (is_running) {
        atomic_store(&lane->cancel, true);
    }
    pthread_mutex_unlock(&lane->mutex);
    if (is_running) {
        lanes->restless = true;
        press_cancel(lane);
    }
}

/* Returns true when a work runs in the lane. With an outcome, the work is ended for it. */
static bool is_ended_for(struct lane *lane, enum result_outcome excess, const char *detail)
{
    pthread_mutex_lock(&lane->mutex);
    const bool is_running = lane->running.attempt != 0;
    if (is_running && excess != OUTCOME_OK && !atomic_load(&lane->cancel)) {
        lane->excess = excess;
        (void)snprintf(lane->excess_detail, sizeof lane->excess_detail, "%s", detail);
        atomic_store(&lane->cancel, true);
    }
    pthread_mutex_unlock(&lane->mutex);
    if (is_running && excess != OUTCOME_OK) {
        press_cancel(lane);
    }
    return is_running;
}

/* Returns the number of works that run on the device. With an outcome, they are ended for it. */
static size_t end_works_of(struct lanes *lanes, const char *label, enum result_outcome excess,
                           const char *detail)
{
    size_t count = 0;
    for (struct list_link *link = lanes->runs.next; link != &lanes->runs; link = link->next) {
        struct lease_run *run = LIST_ELEMENT(link, struct lease_run, link);
        if (strcmp(run->offer->device.label, label) != 0) {
            continue;
        }
        for (struct list_link *at = run->lanes.next; at != &run->lanes; at = at->next) {
            count += is_ended_for(LIST_ELEMENT(at, struct lane, link), excess, detail);
        }
    }
    return count;
}

size_t lanes_exceed(struct lanes *lanes, const char *label, const char *detail)
{
    const size_t count = end_works_of(lanes, label, OUTCOME_OK, "");
    lanes->restless = lanes->restless || count > 0;
    return end_works_of(lanes, label, count == 1 ? OUTCOME_MEMORY_LIMIT : OUTCOME_CANCELLED,
                        detail);
}

static void press_notice(struct lane *lane)
{
    pthread_mutex_lock(&lane->mutex);
    if (lane->jail != NULL && jail_notice(lane->jail)) {
        atomic_store(&lane->notice, false);
    }
    pthread_mutex_unlock(&lane->mutex);
}

void lanes_notice(struct lanes *lanes, const struct agent_work *work)
{
    struct lease_run *run = find_run(lanes, work->lease);
    struct lane *lane = run == NULL ? NULL : find_lane(run, work->lane);
    if (lane == NULL) {
        return;
    }
    pthread_mutex_lock(&lane->mutex);
    bool is_running = is_same(&lane->running, work);
    if (is_running) {
        atomic_store(&lane->notice, true);
    }
    pthread_mutex_unlock(&lane->mutex);
    if (is_running) {
        lanes->restless = true;
        press_notice(lane);
    }
}

bool lanes_is_frozen(const struct lane *lane)
{
    const struct lanes *lanes = lane->lanes;
    return atomic_load(&lanes->is_frozen) ||
           atomic_load(&lanes->is_device_frozen[lanes_device_of(lane)]);
}

/* Tells every jail whether its programs stand still. */
static void press_freezes(struct lanes *lanes)
{
    for (struct list_link *link = lanes->runs.next; link != &lanes->runs; link = link->next) {
        struct lease_run *run = LIST_ELEMENT(link, struct lease_run, link);
        for (struct list_link *inner = run->lanes.next; inner != &run->lanes; inner = inner->next) {
            struct lane *lane = LIST_ELEMENT(inner, struct lane, link);
            pthread_mutex_lock(&lane->mutex);
            if (lane->jail != NULL) {
                jail_freeze(lane->jail, lanes_is_frozen(lane));
            }
            pthread_mutex_unlock(&lane->mutex);
        }
    }
}

void lanes_freeze(struct lanes *lanes, bool is_frozen)
{
    atomic_store(&lanes->is_frozen, is_frozen);
    press_freezes(lanes);
}

void lanes_freeze_device(struct lanes *lanes, const char *label, bool is_frozen)
{
    const struct offers *offers = lanes->config.offers;
    for (size_t i = 0; i < offers->count; i++) {
        if (strcmp(offers->items[i].device.label, label) == 0) {
            atomic_store(&lanes->is_device_frozen[i], is_frozen);
        }
    }
    press_freezes(lanes);
}

void lanes_hang_up(struct lanes *lanes, const struct agent_work *work)
{
    struct lease_run *run = find_run(lanes, work->lease);
    struct lane *lane = run == NULL ? NULL : find_lane(run, work->lane);
    if (lane == NULL) {
        return;
    }
    pthread_mutex_lock(&lane->mutex);
    if (is_same(&lane->running, work) && lane->jail != NULL) {
        (void)jail_hang_up(lane->jail); /* a program that has ended needs none */
    }
    pthread_mutex_unlock(&lane->mutex);
}

static void stop_lane(struct lane *lane)
{
    pthread_mutex_lock(&lane->mutex);
    lane->stop = true;
    pthread_cond_signal(&lane->woken);
    pthread_mutex_unlock(&lane->mutex);
}

void lanes_end(struct lanes *lanes, uint64_t lease)
{
    struct lease_run *run = find_run(lanes, lease);
    if (run == NULL) {
        return;
    }
    run->ending = true;
    lanes->restless = true;
    for (struct list_link *link = run->lanes.next; link != &run->lanes; link = link->next) {
        stop_lane(LIST_ELEMENT(link, struct lane, link));
    }
    if (list_empty(&run->lanes)) {
        drop_run(run);
    }
}

static bool tick_run(struct lanes *lanes, struct lease_run *run)
{
    bool restless = run->ending;
    for (struct list_link *link = run->lanes.next; link != &run->lanes;) {
        struct lane *lane = LIST_ELEMENT(link, struct lane, link);
        link = link->next;
        if (atomic_load(&lane->ended)) {
            collect_lane(lanes, lane);
        } else if (atomic_load(&lane->cancel)) {
            restless = true;
            press_cancel(lane);
        } else if (atomic_load(&lane->notice)) {
            restless = true;
            press_notice(lane);
        }
    }
    return restless;
}

void lanes_tick(struct lanes *lanes)
{
    bool restless = false;
    if (!list_empty(&lanes->runs)) {
        energy_meter_keep(lanes->config.counters.meter, clock_monotonic_ns());
    }
    for (struct list_link *link = lanes->runs.next; link != &lanes->runs;) {
        struct lease_run *run = LIST_ELEMENT(link, struct lease_run, link);
        link = link->next;
        restless = tick_run(lanes, run) || restless;
        if (run->ending && list_empty(&run->lanes)) {
            drop_run(run);
        }
    }
    lanes->restless = restless;
}

uint32_t lanes_jails(const struct lanes *lanes)
{
    uint32_t count = 0;
    for (const struct list_link *link = lanes->runs.next; link != &lanes->runs; link = link->next) {
        struct lease_run *run = LIST_ELEMENT(link, struct lease_run, link);
        for (struct list_link *inner = run->lanes.next; inner != &run->lanes; inner = inner->next) {
            struct lane *lane = LIST_ELEMENT(inner, struct lane, link);
            pthread_mutex_lock(&lane->mutex);
            count += lane->jail != NULL;
            pthread_mutex_unlock(&lane->mutex);
        }
    }
    return count;
}

bool lanes_restless(const struct lanes *lanes)
{
    return lanes->restless;
}

/* Running work is cancelled, and waiting work never begins. */
static void give_up(struct lane *lane)
{
    pthread_mutex_lock(&lane->mutex);
    for (struct list_link *link = lane->waiting.next; link != &lane->waiting; link = link->next) {
        LIST_ELEMENT(link, struct outcome, link)->is_cancelled = true;
    }
    atomic_store(&lane->cancel, true);
    pthread_mutex_unlock(&lane->mutex);
}

void lanes_destroy(struct lanes **self)
{
    struct lanes *lanes = *self;
    if (lanes == NULL) {
        return;
    }
    for (struct list_link *link = lanes->runs.next; link != &lanes->runs; link = link->next) {
        struct lease_run *run = LIST_ELEMENT(link, struct lease_run, link);
        run->ending = true;
        for (struct list_link *inner = run->lanes.next; inner != &run->lanes; inner = inner->next) {
            struct lane *lane = LIST_ELEMENT(inner, struct lane, link);
            give_up(lane);
            stop_lane(lane);
        }
    }
    while (!list_empty(&lanes->runs)) {
        lanes_tick(lanes);
        struct timespec pause = {.tv_nsec = 5000000};
        (void)nanosleep(&pause, NULL); /* an early return is fine */
    }
    device_memory_destroy(&lanes->device_memory);
    free(lanes);
    *self = NULL;
}
