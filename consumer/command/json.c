#include "consumer/command/json.h"

#include "base/limit.h"
#include "consumer/command/cell.h"
#include "consumer/command/forecast.h"
#include "consumer/command/progress.h"

#include <stdlib.h>

int json_print(json_t *value, int status)
{
    (void)json_object_set_new(value, "version", json_integer(1));
    struct bourse_state state;
    if (command_state(&state)) {
        (void)json_object_set_new(
            value, "state",
            json_pack("{s:b, s:I, s:I, s:I, s:I}", "follows", (int)state.follows, "index",
                      (json_int_t)state.index, "log_time_ms", (json_int_t)state.log_time_ms,
                      "stale_ms", (json_int_t)state.stale_ms, "newest", (json_int_t)state.newest));
    }
    char *text = value != NULL ? json_dumps(value, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
    json_decref(value);
    if (text == NULL) {
        (void)fputs("bourse: out of memory\n", stderr);
        return bourse_exit_status(BOURSE_LOCAL);
    }
    (void)puts(text);
    free(text);
    return status;
}

static json_t *json_lease(const struct bourse_lease *lease)
{
    json_t *why = lease->frozen_why[0] == '\0' ? json_null() : json_string(lease->frozen_why);
    return json_pack("{s:I, s:s, s:s, s:b, s:s, s:i, s:I, s:i, s:I, s:I, s:b, s:b, s:b, s:o}",
                     "lease", (json_int_t)lease->lease, "provider", lease->provider, "device",
                     lease->device, "simulated", (int)lease->simulated, "state", lease->state,
                     "slots", (int)lease->slots, "price_micro", (json_int_t)lease->price_micro,
                     "accepted", (int)lease->accepted, "paid_ns", (json_int_t)lease->paid_ns,
                     "charged_micro", (json_int_t)lease->charged_micro, "interruptible",
                     (int)lease->interruptible, "taken", (int)lease->taken, "frozen",
                     (int)lease->frozen, "frozen_why", why);
}

void json_set_forecast(json_t *value, const struct bourse_job_row *row)
{
    json_t *forecast = forecast_json(row);
    if (forecast != NULL) {
        (void)json_object_set_new(value, "forecast", forecast);
    }
}

json_t *json_job(const struct bourse_job_row *row)
{
    json_t *leases = json_array();
    for (size_t i = 0; i < row->lease_count; i++) {
        (void)json_array_append_new(leases, json_lease(&row->leases[i]));
    }
    json_t *value =
        json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:I, s:I, s:I, s:I, s:I, "
                  "s:s, s:I, s:o}",
                  "job", row->id, "name", row->name, "state", row->state_text, "reason",
                  row->reason_text, "subtasks", (int)row->subtasks, "waiting", (int)row->waiting,
                  "running", (int)(row->running - row->queued), "accepted", (int)row->accepted,
                  "failed", (int)row->failed, "cancelled", (int)row->cancelled, "budget_micro",
                  (json_int_t)row->budget_micro, "charged_micro", (json_int_t)row->charged_micro,
                  "reserved_micro", (json_int_t)row->reserved_micro, "submitted_ms",
                  (json_int_t)row->submitted_ms, "ended_ms", (json_int_t)row->ended_ms, "manifest",
                  row->manifest, "index", (json_int_t)row->index, "leases", leases);
    /* These keys repeat the amounts in exact credits, for people. */
    (void)json_object_set_new(value, "budget", json_string(cell_money(row->budget_micro)));
    (void)json_object_set_new(value, "charged", json_string(cell_money(row->charged_micro)));
    (void)json_object_set_new(value, "reserved", json_string(cell_money(row->reserved_micro)));
    (void)json_object_set_new(value, "queued", json_integer(row->queued));
    if (row->checking > 0) {
        (void)json_object_set_new(value, "checking", json_integer(row->checking));
    }
    if (row->accused > 0) {
        (void)json_object_set_new(value, "accused", json_integer(row->accused));
    }
    if (row->saved > 0) {
        (void)json_object_set_new(value, "saved", json_integer(row->saved));
    }
    if (row->deadline_ms > 0) {
        (void)json_object_set_new(value, "deadline_ms", json_integer(row->deadline_ms));
    }
    json_set_forecast(value, row);
    int64_t percent = 0;
    (void)json_object_set_new(value, "left_ms",
                              row->left_ms < 0 ? json_null() : json_integer(row->left_ms));
    (void)json_object_set_new(value, "pace",
                              json_pack("{s:I, s:I, s:I, s:b}", "timed", (json_int_t)row->timed,
                                        "foreseen_ms", (json_int_t)row->foreseen_ms, "took_ms",
                                        (json_int_t)row->took_ms, "drifts",
                                        (int)progress_drifts(row, &percent)));
    return value;
}

void json_set_drifts(json_t *job, bool drifts)
{
    (void)json_object_set_new(json_object_get(job, "pace"), "drifts", json_boolean(drifts));
}

static json_t *json_changes(const struct bourse_explanation *explanation)
{
    json_t *changes = json_array();
    for (uint32_t i = 0; i < explanation->change_count; i++) {
        const struct bourse_change *change = &explanation->changes[i];
        json_t *item = json_pack("{s:s, s:s}", "field", change->field, "text", change->text);
        if (change->has_figures) {
            if (limit_is_set(change->from)) {
                (void)json_object_set_new(item, "from", json_integer((json_int_t)change->from));
            }
            (void)json_object_set_new(item, "to", json_integer((json_int_t)change->to));
        }
        (void)json_array_append_new(changes, item);
    }
    return changes;
}

static void json_add_slots(json_t *value, const struct bourse_explanation *explanation)
{
    if (explanation->changed_slots > 0) {
        (void)json_object_set_new(value, "changed_slots",
                                  json_integer((json_int_t)explanation->changed_slots));
        (void)json_object_set_new(value, "changed_wanted",
                                  json_integer((json_int_t)explanation->changed_wanted));
    }
}

json_t *json_explanation(const struct bourse_explanation *explanation)
{
    json_t *predicates = json_array();
    for (uint32_t i = 0; i < explanation->predicate_count; i++) {
        const struct bourse_predicate *predicate = &explanation->predicates[i];
        json_t *item =
            json_pack("{s:s, s:i}", "text", predicate->text, "failing", (int)predicate->failing);
        if (predicate->has_best) {
            (void)json_object_set_new(item, "best", json_integer((json_int_t)predicate->best));
        }
        (void)json_array_append_new(predicates, item);
    }
    json_t *value =
        json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:o}", "text", explanation->text, "devices",
                  (int)explanation->devices, "fitting", (int)explanation->fitting, "asking",
                  (int)explanation->asking, "affordable", (int)explanation->affordable, "free",
                  (int)explanation->free, "predicates", predicates);
    if (explanation->has_fills_at) {
        (void)json_object_set_new(value, "fills_at_micro",
                                  json_integer((json_int_t)explanation->fills_at_micro));
    }
    json_add_rate(value, explanation->rate);
    if (explanation->change_count > 0) {
        (void)json_object_set_new(value, "changes", json_changes(explanation));
        (void)json_object_set_new(value, "changed_price_micro",
                                  json_integer((json_int_t)explanation->changed_price_micro));
        json_add_slots(value, explanation);
    }
    if (explanation->changed_needs[0] != '\0') {
        (void)json_object_set_new(value, "changed_needs", json_string(explanation->changed_needs));
    }
    if (explanation->takes_at_micro >= 0) {
        (void)json_object_set_new(value, "takes_at_micro",
                                  json_integer((json_int_t)explanation->takes_at_micro));
    }
    if (explanation->starts_at_micro >= 0) {
        (void)json_object_set_new(value, "starts_at_micro",
                                  json_integer((json_int_t)explanation->starts_at_micro));
        (void)json_object_set_new(value, "starts_with_lease",
                                  json_boolean(explanation->starts_with_lease));
    }
    if (explanation->refusal[0] != '\0') {
        (void)json_object_set_new(value, "refusal", json_string(explanation->refusal));
    }
    if (explanation->own_devices > 0) {
        (void)json_object_set_new(value, "own_devices",
                                  json_integer((json_int_t)explanation->own_devices));
    }
    if (explanation->ahead >= 0) {
        (void)json_object_set_new(value, "ahead", json_integer((json_int_t)explanation->ahead));
        (void)json_object_set_new(value, "ahead_partial", json_boolean(explanation->ahead_partial));
    }
    if (explanation->state[0] != '\0') {
        (void)json_object_set_new(value, "state", json_string(explanation->state));
    }
    return value;
}

json_t *json_challenged(const struct bourse_challenged *counts)
{
    return json_pack("{s:I, s:I, s:I, s:I}", "ok", (json_int_t)counts->ok, "lowered",
                     (json_int_t)counts->lowered, "failed", (json_int_t)counts->failed, "claimed",
                     (json_int_t)counts->claimed);
}

json_t *json_isolation(const struct bourse_isolation *counts)
{
    json_t *devices = json_array();
    for (size_t level = 0; level < BOURSE_ISOLATION_LEVELS; level++) {
        (void)json_array_append_new(devices, json_integer((json_int_t)counts->devices[level]));
    }
    return json_pack("{s:o, s:I}", "devices", devices, "unstated", (json_int_t)counts->unstated);
}

json_t *json_isolation_level(int level)
{
    return level < 0 ? json_null() : json_integer(level);
}

json_t *json_quote(const struct bourse_quote *quote)
{
    json_t *levels = json_array();
    for (uint32_t i = 0; i < quote->level_count; i++) {
        const struct bourse_level *level = &quote->levels[i];
        json_t *item = json_pack("{s:I, s:i, s:i}", "price_micro", (json_int_t)level->price_micro,
                                 "slots", (int)level->slots, "providers", (int)level->providers);
        if (level->worth_micro >= 0) {
            (void)json_object_set_new(item, "instrument", json_string(level->instrument));
            (void)json_object_set_new(item, "limit_micro",
                                      json_integer((json_int_t)level->worth_micro));
        }
        (void)json_array_append_new(levels, item);
    }
    json_t *value = json_pack(
        "{s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:I}", "slots_now", (int)quote->slots_now,
        "price_low_micro", (json_int_t)quote->price_low_micro, "price_high_micro",
        (json_int_t)quote->price_high_micro, "expected_micro", (json_int_t)quote->expected_micro,
        "minimum_micro", (json_int_t)quote->minimum_micro, "suggested_micro",
        (json_int_t)quote->suggested_micro, "limit_micro", (json_int_t)quote->limit_micro,
        "makespan_ns", (json_int_t)quote->makespan_ns, "levels", levels, "index",
        (json_int_t)quote->index);
    if (quote->slots_taken > 0) {
        (void)json_object_set_new(value, "slots_taken",
                                  json_integer((json_int_t)quote->slots_taken));
        (void)json_object_set_new(value, "taken_low_micro",
                                  json_integer((json_int_t)quote->taken_low_micro));
        (void)json_object_set_new(value, "taken_high_micro",
                                  json_integer((json_int_t)quote->taken_high_micro));
    }
    if (quote->alone.place[0] != '\0') {
        const struct bourse_alone *alone = &quote->alone;
        (void)json_object_set_new(value, "alone",
                                  json_pack("{s:s, s:s, s:I, s:I, s:I}", "device",
                                            cell_plain(alone->place), "needs", alone->needs,
                                            "makespan_ns", (json_int_t)alone->makespan_ns,
                                            "cost_micro", (json_int_t)alone->cost_micro,
                                            "least_micro", (json_int_t)alone->least_micro));
    }
    if (quote->deadline_ns > 0) {
        (void)json_object_set_new(
            value, "deadline",
            json_pack("{s:I, s:I, s:s, s:b}", "left_ns", (json_int_t)quote->deadline_ns, "late_ns",
                      (json_int_t)quote->late_ns, "help", cell_plain(quote->deadline_help), "guess",
                      (int)quote->deadline_is_guess));
    }
    (void)json_object_set_new(value, "challenged", json_challenged(&quote->challenged));
    (void)json_object_set_new(value, "isolation", json_isolation(&quote->isolation));
    if (quote->chosen_slots > 0) {
        (void)json_object_set_new(value, "objective",
                                  json_pack("{s:s, s:I, s:I}", "name", "price", "at_most",
                                            (json_int_t)quote->chosen_slots, "of",
                                            (json_int_t)quote->chosen_of));
    }
    if (quote->energy_slots > 0) {
        (void)json_object_set_new(
            value, "objective",
            json_pack("{s:s, s:I, s:I, s:I, s:o}", "name", "energy", "slots",
                      (json_int_t)quote->energy_slots, "of", (json_int_t)quote->energy_of,
                      "unknown", (json_int_t)quote->energy_unknown, "energy_uj",
                      quote->energy_uj < 0 ? json_null()
                                           : json_integer((json_int_t)quote->energy_uj)));
    }
    if (quote->without_gift > 0) {
        (void)json_object_set_new(value, "without_gift",
                                  json_integer((json_int_t)quote->without_gift));
    }
    if (quote->rests_at_micro >= 0) {
        (void)json_object_set_new(value, "rests_at_micro",
                                  json_integer((json_int_t)quote->rests_at_micro));
    }
    if (quote->suggested_cap_micro >= 0) {
        (void)json_object_set_new(value, "suggested_cap_micro",
                                  json_integer((json_int_t)quote->suggested_cap_micro));
        (void)json_object_set_new(value, "suggested_cap_trades",
                                  json_integer((json_int_t)quote->suggested_cap_trades));
        (void)json_object_set_new(value, "suggested_cap_since_ms",
                                  json_integer((json_int_t)quote->suggested_cap_since_ms));
    }
    if (quote->has_explanation) {
        (void)json_object_set_new(value, "explanation", json_explanation(&quote->explanation));
    }
    if (quote->checks_problem[0] != '\0') {
        (void)json_object_set_new(value, "checks_problem", json_string(quote->checks_problem));
    }
    return value;
}

static json_t *json_output(const struct bourse_output *output)
{
    return json_pack("{s:s, s:s, s:I}", "name", output->name, "sha256", output->hash, "size",
                     (json_int_t)output->size);
}

void json_add_energy(json_t *object, int64_t energy_uj, const char *source)
{
    if (energy_uj >= 0) {
        (void)json_object_set_new(object, "energy_uj", json_integer((json_int_t)energy_uj));
    }
    if (energy_uj >= 0 && source != NULL) {
        (void)json_object_set_new(object, "energy_source", json_string(source));
    }
}

json_t *json_outcome(const struct bourse_outcome *outcome, const struct bourse_tasks *tasks)
{
    json_t *outputs = json_array();
    for (size_t i = 0; i < outcome->output_count; i++) {
        json_t *output = json_output(&outcome->outputs[i]);
        if ((outcome->executable >> i & 1) != 0) {
            (void)json_object_set_new(output, "executable", json_true());
        }
        (void)json_array_append_new(outputs, output);
    }
    json_t *value =
        json_pack("{s:i, s:i, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:o, s:s}", "index",
                  (int)outcome->index, "attempt", (int)outcome->attempt, "status",
                  outcome->status_text, "outcome", outcome->outcome_text, "detail", outcome->detail,
                  "provider", outcome->provider, "busy_ns", (json_int_t)outcome->busy_ns, "paid_ns",
                  (json_int_t)outcome->paid_ns, "charge_micro", (json_int_t)outcome->charge_micro,
                  "log_index", (json_int_t)outcome->log_index, "outputs", outputs, "subtask",
                  cell_word(tasks, outcome->index));
    if (outcome->has_exit_code) {
        (void)json_object_set_new(value, "exit_code", json_integer(outcome->exit_code));
    }
    if (outcome->signal != 0) {
        (void)json_object_set_new(value, "signal", json_integer(outcome->signal));
    }
    if (outcome->simulated) {
        (void)json_object_set_new(value, "simulated", json_true());
    }
    (void)json_object_set_new(value, "isolation", json_isolation_level(outcome->isolation));
    json_add_energy(value, outcome->has_energy ? outcome->energy_uj : -1,
                    outcome->energy_source_text);
    if (outcome->restored != 0) {
        (void)json_object_set_new(value, "restored", json_integer(outcome->restored));
    }
    if (outcome->saved_files > 0) {
        (void)json_object_set_new(value, "saved",
                                  json_pack("{s:i, s:I}", "files", (int)outcome->saved_files,
                                            "bytes", (json_int_t)outcome->saved_bytes));
    }
    return value;
}

void json_add_rate(json_t *object, const char *rate)
{
    if (rate != NULL && rate[0] != '\0') {
        (void)json_object_set_new(object, "rate", json_string(rate));
    }
}

json_t *json_standing(const struct bourse_standing *standing)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:s}", "refuted", (json_int_t)standing->refuted,
                     "refuted_ever", (json_int_t)standing->refuted_ever, "overruled",
                     (json_int_t)standing->overruled, "withdrawn_ms",
                     (json_int_t)standing->withdrawn_ms, "owner", standing->owner);
}

json_t *json_bands(struct bourse_bands bands)
{
    return json_pack("{s:I, s:I, s:I}", "least_micro", (json_int_t)bands.least_micro, "most_micro",
                     (json_int_t)bands.most_micro, "notional_micro",
                     (json_int_t)bands.notional_micro);
}
