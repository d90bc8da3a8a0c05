#include "provider/work/attempt_energy.h"

#include "base/checked.h"

#include <string.h>

/* Returns true when cores of this machine do the work. */
static bool is_on_cores(const struct offer *offer)
{
    return offer->simulates == NULL && offer->plugin == NULL && offer->model_device == NULL &&
           (offer->kernel_device == NULL ||
            strcmp(kernel_device_kind(offer->kernel_device), "cpu") == 0);
}

void attempt_energy_begin(const struct energy_counters *counters, const struct offer *offer,
                          int64_t now_ns, struct attempt_energy *ret_energy)
{
    *ret_energy = (struct attempt_energy){
        .counters = counters, .offer = offer, .is_on_cores = is_on_cores(offer)};
    if (ret_energy->is_on_cores) {
        ret_energy->mark = energy_meter_mark(counters->meter, now_ns);
    } else if (counters->gauges != NULL && offer->kernel_device != NULL) {
        ret_energy->has_span = true;
        energy_gauge_begin(counters->gauges, offer->device.label, now_ns, &ret_energy->span);
    }
}

/* A device's counter covers all its slots, so each slot counts for an equal part. */
static int64_t measured_uj(struct attempt_energy *energy, uint32_t width, int64_t now_ns,
                           int64_t cpu_ns)
{
    if (energy->is_on_cores && energy->mark.is_known) {
        const struct energy_mark until = energy_meter_mark(energy->counters->meter, now_ns);
        return energy_meter_share_uj(&energy->mark, &until, cpu_ns);
    }
    if (energy->has_span) {
        int64_t part_uj;
        const int64_t all_uj = energy_gauge_end(energy->counters->gauges, &energy->span, now_ns);
        return all_uj >= 0 &&
                       checked_muldiv_floor(all_uj, width, energy->offer->device.slots, &part_uj)
                   ? part_uj
                   : -1;
    }
    return -1;
}

int64_t attempt_energy_estimate_uj(const struct offer *offer, uint32_t width, int64_t busy_ns)
{
    int64_t power_mw;
    int64_t energy_uj;
    return offer->power_mw > 0 && checked_mul(offer->power_mw, width, &power_mw) &&
                   checked_muldiv_floor(power_mw, busy_ns, 1000000, &energy_uj)
               ? energy_uj
               : -1;
}

/* The power is the whole device's, because no reading tells its slots apart. The counters of cores
 * tell energies between two moments, and no power at a moment. */
static void set_peak_power(const struct attempt_energy *energy, struct outcome *outcome)
{
    if (energy->has_span && outcome->ran && energy->span.peak_mw > 0) {
        outcome->peak_power_mw = energy->span.peak_mw;
    }
}

static void add_to(struct energy_tally *tally, const struct outcome *outcome)
{
    if (tally != NULL) {
        (void)atomic_fetch_add(outcome->energy_source == ENERGY_MEASURED ? &tally->measured_uj
                                                                         : &tally->estimated_uj,
                               outcome->energy_uj);
    }
}

void attempt_energy_end(struct attempt_energy *energy, uint32_t width, int64_t now_ns,
                        struct outcome *outcome)
{
    enum energy_source source = ENERGY_MEASURED;
    int64_t energy_uj = measured_uj(energy, width, now_ns, outcome->cpu_ns);
    set_peak_power(energy, outcome);
    if (energy_uj < 0) {
        energy_uj = attempt_energy_estimate_uj(energy->offer, width, outcome->busy_ns);
        source = energy->offer->simulates != NULL ? ENERGY_BY_CATALOGUE : ENERGY_BY_OWNER;
    }
    if (!outcome->has_energy && outcome->ran && outcome->busy_ns > 0 && energy_uj >= 0 &&
        energy_uj <= LIMIT_ENERGY_UJ && energy->offer->simulates == NULL) {
        outcome->has_energy = true;
        outcome->energy_uj = energy_uj;
        outcome->energy_source = source;
        add_to(energy->counters->tally, outcome);
    }
}
