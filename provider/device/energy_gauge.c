#include "provider/device/energy_gauge.h"

#include "base/checked.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A device that was not read for so long tells nothing of the time between. */
#define GAP_MOST_NS INT64_C(60000000000)

struct gauge {
    char label[ENERGY_GAUGE_NAME_SIZE];
    bool has_reading;
    int64_t read_ns;
    int64_t counter_mj; /* -1: the device has none */
    int64_t energy_uj;  /* since the first reading */
};

struct energy_gauges {
    pthread_mutex_t mutex;
    struct list_link spans;
    struct gauge items[ENERGY_GAUGES_MAX];
    size_t count;
};

struct energy_gauges *energy_gauge_create(void)
{
    struct energy_gauges *gauges = calloc(1, sizeof *gauges);
    if (gauges == NULL || pthread_mutex_init(&gauges->mutex, NULL) != 0) {
        free(gauges);
        return NULL;
    }
    list_init(&gauges->spans);
    return gauges;
}

void energy_gauge_destroy(struct energy_gauges **self)
{
    if (*self != NULL) {
        (void)pthread_mutex_destroy(&(*self)->mutex);
        free(*self);
        *self = NULL;
    }
}

static struct gauge *gauge_of(struct energy_gauges *gauges, const char *label)
{
    for (size_t i = 0; i < gauges->count; i++) {
        if (strcmp(gauges->items[i].label, label) == 0) {
            return &gauges->items[i];
        }
    }
    if (gauges->count == ENERGY_GAUGES_MAX) {
        return NULL;
    }
    struct gauge *gauge = &gauges->items[gauges->count++];
    *gauge = (struct gauge){.counter_mj = -1};
    (void)snprintf(gauge->label, sizeof gauge->label, "%s", label);
    return gauge;
}

/* Returns the energy since the reading before, or -1: unknown. A counter that went back belongs to
 * a driver that was loaded again. */
static int64_t energy_since_uj(const struct gauge *gauge, int64_t now_ns, int64_t energy_mj,
                               int64_t power_mw)
{
    const int64_t gap_ns = now_ns - gauge->read_ns;
    int64_t energy_uj;
    if (!gauge->has_reading || gap_ns <= 0 || gap_ns > GAP_MOST_NS) {
        return -1;
    }
    if (energy_mj >= 0 && gauge->counter_mj >= 0) {
        return energy_mj >= gauge->counter_mj &&
                       checked_mul(energy_mj - gauge->counter_mj, 1000, &energy_uj)
                   ? energy_uj
                   : -1;
    }
    return power_mw >= 0 && checked_muldiv_floor(power_mw, gap_ns, 1000000, &energy_uj) ? energy_uj
                                                                                        : -1;
}

/* A span keeps the readings between which all energy is known. After a gap it begins anew. */
static void tell_spans(struct energy_gauges *gauges, const struct gauge *gauge, bool has_gap,
                       int64_t power_mw)
{
    for (struct list_link *link = gauges->spans.next; link != &gauges->spans; link = link->next) {
        struct energy_span *span = LIST_ELEMENT(link, struct energy_span, link);
        if (strcmp(span->label, gauge->label) != 0 || gauge->read_ns < span->begun_ns) {
            continue;
        }
        if (!span->has_first || has_gap) {
            span->has_first = true;
            span->first_ns = gauge->read_ns;
            span->first_uj = gauge->energy_uj;
        }
        span->peak_mw = power_mw > span->peak_mw ? power_mw : span->peak_mw;
        span->last_ns = gauge->read_ns;
        span->last_uj = gauge->energy_uj;
    }
}

void energy_gauge_read(struct energy_gauges *gauges, const char *label, int64_t now_ns,
                       int64_t energy_mj, int64_t power_mw)
{
    pthread_mutex_lock(&gauges->mutex);
    struct gauge *gauge = gauge_of(gauges, label);
    if (gauge != NULL && (energy_mj >= 0 || power_mw >= 0)) {
        const int64_t more_uj = energy_since_uj(gauge, now_ns, energy_mj, power_mw);
        const bool is_added =
            more_uj >= 0 && checked_add(gauge->energy_uj, more_uj, &gauge->energy_uj);
        gauge->has_reading = true;
        gauge->read_ns = now_ns;
        gauge->counter_mj = energy_mj;
        tell_spans(gauges, gauge, !is_added, power_mw);
    } else if (gauge != NULL) {
        gauge->has_reading = false;
    }
    pthread_mutex_unlock(&gauges->mutex);
}

void energy_gauge_begin(struct energy_gauges *gauges, const char *label, int64_t now_ns,
                        struct energy_span *ret_span)
{
    *ret_span = (struct energy_span){.begun_ns = now_ns, .peak_mw = -1};
    (void)snprintf(ret_span->label, sizeof ret_span->label, "%s", label);
    pthread_mutex_lock(&gauges->mutex);
    list_append(&gauges->spans, &ret_span->link);
    pthread_mutex_unlock(&gauges->mutex);
}

int64_t energy_gauge_end(struct energy_gauges *gauges, struct energy_span *span, int64_t now_ns)
{
    int64_t energy_uj = -1;
    pthread_mutex_lock(&gauges->mutex);
    list_remove(&span->link);
    pthread_mutex_unlock(&gauges->mutex);
    const int64_t all_ns = now_ns - span->begun_ns;
    const int64_t seen_ns = span->last_ns - span->first_ns;
    const int64_t seen_uj = span->last_uj - span->first_uj;
    if (!span->has_first || all_ns <= 0 || seen_ns < all_ns / 2 || seen_ns <= 0 || seen_uj <= 0 ||
        !checked_muldiv_floor(seen_uj, all_ns, seen_ns, &energy_uj)) {
        return -1;
    }
    return energy_uj;
}
