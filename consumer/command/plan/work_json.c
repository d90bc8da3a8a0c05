/* This file writes a plan of work as JSON. The object has all of work_show.c, and what the
 * tables leave out. */
#include "consumer/command/plan/work.h"

#include "consumer/command/plan/plan_model.h"
#include "consumer/command/show.h"
#include "planner/layout/queues.h"

#include <stdlib.h>

static json_t *json_figure(const struct figure *figure)
{
    return figure->source == FIGURE_UNKNOWN ? json_null() : json_real(figure->value);
}

static json_t *json_price(int64_t price_micro)
{
    return price_micro < 0 ? json_null() : json_integer((json_int_t)price_micro);
}

/* 0 means unknown. */
static json_t *json_above(double value)
{
    return value > 0 ? json_real(value) : json_null();
}

static json_t *json_outcome_of(const struct plan_outcome *outcome)
{
    const bool is_made = outcome->status == PLAN_OK; /* without a plan there are no figures */
    json_t *value = json_pack(
        "{s:s, s:o, s:o, s:o, s:o, s:i}", "status", plan_status_name(outcome->status), "makespan_s",
        is_made ? json_figure(&outcome->makespan_s) : json_null(), "p90_s",
        json_above(is_made ? outcome->p90_s : 0), "energy_j",
        is_made ? json_figure(&outcome->energy_j) : json_null(), "price_micro",
        json_price(is_made ? outcome->price_micro : -1), "devices", (int)outcome->device_count);
    if (!is_made) {
        (void)json_object_set_new(value, "reason", json_string(cell_plain(outcome->problem.text)));
    }
    return value;
}

/* Lists the devices that hold a row's layers together, from the first; null: only one. */
static json_t *json_group(const struct work *work, size_t number)
{
    const struct plan_row *row = &work->plan->rows[number];
    if (row->team_size < 2) {
        return json_null();
    }
    json_t *list = json_array();
    for (size_t i = 0; i < row->team_size; i++) {
        const struct plan_row *other = row - row->team_number + i;
        (void)json_array_append_new(list, json_string(work_device(work, other->device)));
    }
    return list;
}

static json_t *json_rows(const struct work *work)
{
    json_t *list = json_array();
    for (size_t i = 0; i < work->plan->row_count; i++) {
        const struct plan_row *row = &work->plan->rows[i];
        char label[WORK_LABEL_SIZE];
        work_label(work, row, label);
        json_t *value = json_pack(
            "{s:s, s:s, s:i, s:I, s:f, s:f, s:f, s:o, s:s, s:b, s:i, s:b, s:f, s:o, s:b, s:b}",
            "step", label, "device", work_device(work, row->device), "steps", (int)row->step_count,
            "items", (json_int_t)row->items, "start_s", row->start_s, "finish_s", row->finish_s,
            "busy_s", row->busy_s, "p90_s", json_above(row->p90_s), "source",
            work_source(&row->time_s), "verified", (int)!row->time_s.unverified, "samples",
            (int)row->samples, "below_bound", (int)(work_below_bound(work, row) > 0), "bytes_in",
            row->bytes_in, "energy_j", json_figure(&row->energy_j), "streamed",
            (int)row->is_streamed, "left_out", (int)row->is_left_out);
        (void)json_object_set_new(value, "parts",
                                  json_integer(row->rounds > 1 ? (json_int_t)row->rounds : 1));
        (void)json_object_set_new(value, "group", json_group(work, i));
        (void)json_object_set_new(value, "lacks_rate", json_boolean(work_lacks_rate(work, row)));
        (void)json_object_set_new(value, "price_micro", json_price(row->price_micro));
        (void)json_array_append_new(list, value);
    }
    return list;
}

static json_t *json_transfers(const struct work *work)
{
    json_t *list = json_array();
    for (size_t i = 0; i < work->plan->transfer_count; i++) {
        const struct plan_transfer *transfer = &work->plan->transfers[i];
        (void)json_array_append_new(
            list, json_pack("{s:i, s:i, s:f, s:s, s:f, s:f}", "from", (int)transfer->from, "to",
                            (int)transfer->to, "bytes", transfer->bytes, "by",
                            topology_kind_name(transfer->kind), "start_s", transfer->start_s,
                            "finish_s", transfer->finish_s));
    }
    return list;
}

/* Rows have their index in `schedule`. Returns NULL when memory is short, like all JSON here. */
static json_t *json_waits(const struct work *work)
{
    struct queue *queues = NULL;
    size_t count = 0;
    if (!queues_of(work->plan, work->steps, &queues, &count)) {
        return NULL;
    }
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        const struct queue *queue = &queues[i];
        json_t *value =
            json_pack("{s:i, s:s, s:f, s:f}", "row", (int)queue->row, "for",
                      queue_name(queue->what), "from_s", queue->from_s, "until_s", queue->until_s);
        if (queue->to != PLAN_ANYWHERE) {
            (void)json_object_set_new(value, "to", json_integer(queue->to));
        }
        (void)json_array_append_new(list, value);
    }
    free(queues);
    return list;
}

/* null: no risk is known. */
static json_t *json_risk(const struct spot_risk *risk)
{
    return !(risk->per_hour > 0)
               ? json_null()
               : json_pack("{s:f, s:f, s:o, s:o}", "per_hour", risk->per_hour, "restart_s",
                           risk->restart_s, "checkpoint_s", json_above(risk->checkpoint_s),
                           "interval_s", json_above(risk->interval_s));
}

static json_t *json_devices(const struct work *work)
{
    json_t *list = json_array();
    for (size_t i = 0; i < work->plan->device_count; i++) {
        const struct plan_use *use = &work->plan->uses[i];
        const struct device_set_item *item = &work->set->items[i];
        json_t *value = json_pack(
            "{s:s, s:o, s:i, s:o, s:i, s:f, s:f, s:f, s:f, s:f, s:o, s:o}", "device", item->name,
            "id", item->known != NULL ? json_string(item->known->id) : json_null(), "machine",
            (int)item->host, "hour_micro", json_price(item->price_micro), "rows",
            (int)use->row_count, "busy_s", use->busy_s, "share", use->share, "bytes_in",
            use->bytes_in, "bytes_out", use->bytes_out, "memory_bytes", use->memory_bytes,
            "energy_j", json_figure(&use->energy_j), "price_micro", json_price(use->price_micro));
        const char *lacks = work_lacks(work, (uint32_t)i);
        (void)json_object_set_new(value, "memory_of_machine", json_boolean(item->is_processor));
        (void)json_object_set_new(value, "lacks", lacks != NULL ? json_string(lacks) : json_null());
        (void)json_object_set_new(value, "interruptible", json_risk(&work->devices[i].risk));
        (void)json_array_append_new(list, value);
    }
    return list;
}

/* Lists the figures that the user gave beside or against the catalogue. */
static json_t *json_said(const struct work *work)
{
    json_t *list = json_array();
    for (size_t i = 0; i < work->request.figure_count; i++) {
        const struct plan_file_figure *said = &work->request.figures[i];
        (void)json_array_append_new(list,
                                    json_pack("{s:s, s:s, s:I}", "device", said->device, "figure",
                                              said->name, "value", (json_int_t)said->value));
    }
    return list;
}

/* null: no such link. The bandwidth of a link from the catalogue is null. */
static json_t *json_links(const struct work *work)
{
    json_t *value = json_object();
    for (int i = 0; i < DEVICE_SET_WIRES; i++) {
        const struct device_set_link *link = &work->set->links.wires[i];
        const bool is_none = !(link->bandwidth < 0 || link->bandwidth > 0);
        (void)json_object_set_new(
            value, device_set_wire_name((enum device_set_wire)i),
            is_none ? json_null()
                    : json_pack("{s:f, s:o}", "latency_s", link->latency_s, "bandwidth",
                                link->bandwidth >= 0 ? json_real(link->bandwidth) : json_null()));
    }
    return value;
}

static json_t *json_values(const struct work *work)
{
    json_t *value = json_object();
    for (size_t i = 0; i < template_parameters(work->template); i++) {
        char text[TEMPLATE_VALUE_SIZE];
        template_write(work->template, i, work->values[i], text);
        (void)json_object_set_new(value, work->template->parameters[i].name,
                                  work->template->parameters[i].choices != NULL
                                      ? json_string(text)
                                      : json_integer((json_int_t)work->values[i]));
    }
    return value;
}

int work_show_json(const struct work *work)
{
    const struct plan *plan = work->plan;
    json_t *forms = json_object();
    for (int i = 0; i < PLAN_FORMS; i++) {
        (void)json_object_set_new(forms, plan_form_name((enum plan_form)i),
                                  json_outcome_of(&plan->forms[i]));
    }
    json_t *variants = json_array();
    for (size_t i = 0; i < plan->variant_count; i++) {
        json_t *variant = json_outcome_of(&plan->variants[i].outcome);
        (void)json_object_update_new(variant, json_pack("{s:s, s:s}", "form",
                                                        plan_form_name(plan->variants[i].form),
                                                        "found_by", plan->variants[i].found_by));
        (void)json_array_append_new(variants, variant);
    }
    json_t *value = json_outcome_of(&plan->total);
    (void)json_object_del(value, "devices"); /* the list takes this key */
    (void)json_object_set_new(value, "variants", variants);
    (void)json_object_update_new(
        value, json_pack("{s:s, s:o, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
                         "template", work->template->name, "values", json_values(work), "objective",
                         plan_objective_name(work->objective), "form", plan_form_name(plan->form),
                         "found_by", plan->found_by, "lower_bound", json_above(plan->bound), "gap",
                         plan->gap >= 0 ? json_real(plan->gap) : json_null(), "time_bound_s",
                         json_above(plan->time_bound_s), "schedule", json_rows(work), "transfers",
                         json_transfers(work), "devices", json_devices(work), "forms", forms,
                         "links", json_links(work)));
    if (work->model != NULL) {
        (void)json_object_set_new(value, "plan_only", json_true());
        (void)json_object_set_new(value, "model", plan_model_json(work));
    }
    (void)json_object_set_new(value, "figures", json_said(work));
    (void)json_object_set_new(value, "best_single",
                              plan->single == PLAN_ANYWHERE
                                  ? json_null()
                                  : json_pack("{s:s, s:f}", "device",
                                              work_device(work, plan->single), "makespan_s",
                                              plan->forms[PLAN_SINGLE].makespan_s.value));
    (void)json_object_set_new(value, "slack",
                              json_pack("{s:i, s:I, s:f}", "moved", (int)plan->slack.moved,
                                        "saved_micro", (json_int_t)plan->slack.saved_micro,
                                        "saved_j", plan->slack.saved_j));
    (void)json_object_set_new(value, "waits", json_waits(work));
    (void)json_object_set_new(value, "round_s", json_above(plan_round_s(plan)));
    (void)json_object_set_new(value, "period_s", json_above(work->steps->period_s));
    (void)json_object_set_new(value, "left_out", json_integer(plan->left_out));
    (void)json_object_set_new(value, "fallen_back", json_integer(plan->fallen_back));
    (void)json_object_set_new(value, "micro_batches",
                              json_integer((json_int_t)plan->micro_batches));
    (void)json_object_set_new(value, "micro_batch_items",
                              json_integer((json_int_t)plan->micro_batch_items));
    return json_print(value, BOURSE_OK);
}
