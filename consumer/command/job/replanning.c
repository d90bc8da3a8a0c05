#include "consumer/command/job/replanning.h"
#include "consumer/command/cell.h"

#include "base/checked.h"
#include "planner/schedule/online.h"

#include <inttypes.h>
#include <string.h>

bool replanning_is_due(const struct replanning *replanning, const struct bourse_job_row *row)
{
    int64_t planned_ms = row->foreseen_ms;
    if (row->state != BOURSE_OPEN || replanning->tries == REPLANS_MOST ||
        row->timed < (uint64_t)replanning->looked_at + replanning->looked_at / 2 ||
        (replanning->foreseen_ms > 0 &&
         !checked_muldiv_floor(row->foreseen_ms, replanning->took_ms, replanning->foreseen_ms,
                               &planned_ms))) {
        return false;
    }
    return online_drifts(planned_ms, row->took_ms, row->timed);
}

bool replanning_is_news(const struct replanning *replanning, int64_t percent)
{
    return replanning->count == 0 ||
           online_drifts(100 + replanning->made[replanning->count - 1].percent, 100 + percent,
                         ONLINE_SAMPLES);
}

static bool is_over_budget(const struct replan *replan, const struct bourse_job_row *row)
{
    return replan->cost_micro > row->budget_micro;
}

/* Writes the options that would give the job more slots. */
static void write_more(const struct replan *replan, const struct bourse_job_row *row,
                       char ret_text[REPLAN_TEXT])
{
    char slots[64] = "";
    char budget[64] = "";
    if (replan->slots > 0) {
        (void)snprintf(slots, sizeof slots, " --at-most %" PRIu32, replan->slots);
    }
    if (replan->budget_micro > 0) {
        (void)snprintf(budget, sizeof budget, " --budget %s", cell_money(replan->budget_micro));
    }
    (void)snprintf(
        ret_text, REPLAN_TEXT,
        "within its budget of %s%s; with more slots at a time it takes %s: `bourse order "
        "replace %.8s%s%s`",
        cell_money(row->budget_micro),
        replan->budget_micro > 0 ? ", which has no room for another lease" : "",
        cell_duration_ns(replan->sooner_ns), row->id, slots, budget);
}

/* Writes what is in the way, the budget first, and the remedy; or that nothing is in the way. */
static void write_advice(const struct replan *replan, const struct bourse_job_row *row,
                         char ret_text[REPLAN_TEXT])
{
    if (is_over_budget(replan, row)) {
        (void)snprintf(ret_text, REPLAN_TEXT,
                       "more than its budget of %s, with which it stops short: `bourse order "
                       "replace %.8s --budget %s` raises it",
                       cell_money(row->budget_micro), row->id, cell_money(replan->cost_micro));
    } else if (replan->takes_ms >= replan->limit_ms) {
        (void)snprintf(
            ret_text, REPLAN_TEXT,
            "within its budget of %s. A subtask takes about %s and is ended at its limit "
            "of %s: `bourse cancel %.8s`, then submit the job with a longer `limit`",
            cell_money(row->budget_micro), cell_duration(replan->takes_ms),
            cell_duration(replan->limit_ms), row->id);
    } else if (replan->sooner_ns > 0) {
        write_more(replan, row, ret_text);
    } else {
        (void)snprintf(ret_text, REPLAN_TEXT, "within its budget of %s",
                       cell_money(row->budget_micro));
    }
}

void replanning_text(const struct replan *replan, const struct bourse_job_row *row,
                     char ret_text[REPLAN_TEXT])
{
    char advice[REPLAN_TEXT];
    char late[96] = "";
    write_advice(replan, row, advice);
    if (replan->late_ns > 0) {
        (void)snprintf(late, sizeof late, ", which misses the deadline by %s",
                       cell_duration_ns(replan->late_ns));
    }
    (void)snprintf(
        ret_text, REPLAN_TEXT,
        "subtasks of job %.8s take %" PRId64 "%% %s than planned; planned anew, the rest "
        "takes about %s on %" PRIu32 " lane%s%s, and all costs about %s credits, %.300s",
        row->id, replan->percent < 0 ? -replan->percent : replan->percent,
        replan->percent < 0 ? "less" : "longer", cell_duration_ns(replan->left_ns), replan->lanes,
        replan->lanes == 1 ? "" : "s", late, cell_money(replan->cost_micro), advice);
}

bool replanning_make(struct invocation *invocation, struct replanning *replanning,
                     const struct bourse_job_row *row, char ret_text[REPLAN_TEXT])
{
    struct bourse_error error;
    struct replan *replan = &replanning->made[replanning->count];
    if (!replan_drifts(invocation->bourse, row, &replanning->percent)) {
        replanning->percent = 0;
        replanning->looked_at = row->timed; /* a row knows only the mean of a part */
        return false;
    }
    if (!replanning_is_news(replanning, replanning->percent)) {
        replanning->looked_at = row->timed;
        return false;
    }
    const bool is_made = replan_job(invocation->bourse, row->id, replan, &error);
    if (!is_made && error.status == BOURSE_NOT_FOUND) {
        replanning->looked_at = row->timed; /* nothing fits the rest */
        return false;
    }
    replanning->tries++;
    replanning->foreseen_ms = row->foreseen_ms;
    replanning->took_ms = row->took_ms;
    if (!is_made || (replan->was_guess && replan->percent < 0)) {
        return false; /* a guess that was too long is no news */
    }
    replanning->count++;
    replanning_text(replan, row, ret_text);
    return true;
}

json_t *replanning_json(const struct replanning *replanning)
{
    json_t *list = json_array();
    for (size_t i = 0; i < replanning->count; i++) {
        const struct replan *replan = &replanning->made[i];
        json_t *value =
            json_pack("{s:I, s:I, s:I, s:i, s:b}", "percent", (json_int_t)replan->percent,
                      "left_ms", (json_int_t)(replan->left_ns / NS_PER_MS), "expected_micro",
                      (json_int_t)replan->cost_micro, "lanes", (int)replan->lanes, "guess",
                      (int)replan->was_guess);
        if (replan->late_ns > 0) {
            (void)json_object_set_new(value, "late_ms",
                                      json_integer((json_int_t)(replan->late_ns / NS_PER_MS)));
        }
        if (replan->slots > 0) {
            (void)json_object_set_new(value, "at_most", json_integer(replan->slots));
        }
        if (replan->budget_micro > 0) {
            (void)json_object_set_new(value, "budget_micro",
                                      json_integer((json_int_t)replan->budget_micro));
        }
        (void)json_array_append_new(list, value);
    }
    return list;
}
