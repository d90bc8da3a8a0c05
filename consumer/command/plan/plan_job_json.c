/* This file shows the plan of a job as JSON. */
#include "consumer/command/plan/planned.h"

#include "consumer/command/market/challenged_show.h"
#include "consumer/command/show.h"
#include "consumer/job/manifest.h"

#include <inttypes.h>
#include <stdlib.h>

enum { SCHEDULE_MOST = 10000 };

static json_t *json_energy(const struct figure *energy)
{
    return energy->source == FIGURE_UNKNOWN ? json_null() : json_real(energy->value);
}

/* A subtask is ready when all tasks before it have ended; then it waits for slots. */
static double *ready_times(const struct planned *planned)
{
    const struct order_graph *graph = &planned->job->graph;
    const struct plan *plan = planned->plan->plan;
    double *ready_s = calloc(plan->row_count, sizeof *ready_s);
    size_t edge = 0;
    const uint32_t waiting = graph->after_count != NULL ? graph->count : 0;
    for (uint32_t i = 0; ready_s != NULL && waiting == plan->row_count && i < waiting; i++) {
        for (uint32_t k = 0; k < graph->after_count[i]; k++) {
            const double end_s = plan->rows[graph->after[edge++]].finish_s;
            ready_s[i] = end_s > ready_s[i] ? end_s : ready_s[i];
        }
    }
    return ready_s;
}

static json_t *json_schedule(const struct planned *planned)
{
    const struct plan *plan = planned->plan->plan;
    double *ready_s = ready_times(planned);
    json_t *list = json_array();
    for (uint32_t i = 0; ready_s != NULL && i < plan->row_count && i < SCHEDULE_MOST; i++) {
        const struct plan_row *row = &plan->rows[i];
        const bool takes = manifest_takes_files(planned->plan->manifest, i);
        const char *name = job_plan_name(planned->plan, i);
        uint64_t samples = 0;
        const enum planned_source source = planned_source(planned, i, &samples);
        json_t *value = json_pack(
            "{s:i, s:i, s:i, s:f, s:f, s:f, s:s, s:I, s:o, s:o, s:I, s:b}", "subtask", (int)i,
            "device", (int)row->device, "lane", (int)row->lane, "ready_s", ready_s[i], "start_s",
            row->start_s, "finish_s", row->finish_s, "source", planned_source_names[source],
            "samples", (json_int_t)samples, "bytes_in",
            takes ? json_null()
                  : json_integer((json_int_t)manifest_own_bytes(planned->plan->manifest, i)),
            "energy_j", json_energy(&row->energy_j), "price_micro", (json_int_t)row->price_micro,
            "at_pace", (int)planned_figure(planned, i).is_at_pace);
        if (name != NULL) {
            (void)json_object_set_new(value, "name", json_string(cell_plain(name)));
        }
        (void)json_array_append_new(list, value);
    }
    free(ready_s);
    return list;
}

static json_t *json_places(const struct planned *planned)
{
    const struct plan *plan = planned->plan->plan;
    json_t *list = json_array();
    for (size_t i = 0; i < plan->device_count; i++) {
        const struct supply_place *place = &planned->plan->supply->places[i];
        const struct plan_use *use = &plan->uses[i];
        json_t *value = json_pack(
            "{s:o, s:o, s:b, s:b, s:i, s:I, s:i, s:i, s:f, s:f, s:I, s:o, s:I}", "device",
            place->label[0] != '\0' ? json_string(cell_plain(place->label)) : json_null(),
            "instrument",
            place->instrument[0] != '\0' ? json_string(cell_plain(place->instrument)) : json_null(),
            "simulated", (int)place->is_simulated, "taken", (int)(place->providers == 0), "slots",
            (int)place->slots.slots, "hour_micro", (json_int_t)place->slots.price_micro, "subtasks",
            (int)use->row_count, "lanes", (int)use->lanes, "busy_s", use->busy_s, "share",
            use->share, "bytes_in", (json_int_t)planned_bytes_to(planned, i), "energy_j",
            json_energy(&use->energy_j), "price_micro", (json_int_t)use->price_micro);
        (void)json_object_set_new(value, "challenge",
                                  place->claim_mflops > 0 ? challenged_json(&place->challenge)
                                                          : json_null());
        (void)json_array_append_new(list, value);
    }
    return list;
}

static json_t *json_single(const struct plan *plan)
{
    return plan->single == PLAN_ANYWHERE
               ? json_null()
               : json_pack("{s:i, s:f}", "device", (int)plan->single, "makespan_s",
                           plan->forms[PLAN_SINGLE].makespan_s.value);
}

int planned_show_json(const struct planned *planned, int status)
{
    const struct plan *plan = planned->plan->plan;
    const struct bourse_job_row *row = planned_row(planned);
    json_t *value = offer_json(&planned->offer);
    (void)json_object_set_new(value, "job", row != NULL ? json_string(row->id) : json_null());
    (void)json_object_set_new(value, "on_leases", json_boolean(planned->plan->is_on_leases));
    if (plan != NULL) {
        const struct plan_outcome *total = &plan->total;
        (void)json_object_update_new(
            value,
            json_pack("{s:f, s:o, s:f, s:f, s:I, s:o, s:i, s:s, s:o, s:o, s:o, s:b}", "makespan_s",
                      total->makespan_s.value, "p90_s",
                      total->p90_s > 0 ? json_real(total->p90_s) : json_null(), "lower_bound",
                      plan->bound, "gap", plan->gap, "price_micro", (json_int_t)total->price_micro,
                      "energy_j", json_energy(&total->energy_j), "lanes", (int)plan->lanes,
                      "source", planned_whole_source(planned), "best_single", json_single(plan),
                      "schedule", json_schedule(planned), "devices", json_places(planned),
                      "hands_on", (int)planned_hands_on(planned), "as_if_free",
                      (int)planned->plan->supply->is_busy));
    } else {
        (void)json_object_set_new(value, "makespan_s", json_null());
    }
    return json_print(value, status);
}
