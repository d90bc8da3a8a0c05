#include "consumer/command/forecast.h"

#include "base/checked.h"
#include "base/text.h"
#include "consumer/command/cell.h"
#include "planner/schedule/online.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static uint32_t slots_of(const struct bourse_job_row *row)
{
    uint32_t slots = 0;
    for (size_t i = 0; i < row->lease_count; i++) {
        slots += strcmp(row->leases[i].state, "ended") != 0 ? row->leases[i].slots : 0;
    }
    return slots;
}

/* Returns the time left by what results took; -1: unknown. The market goes by the stated time until
 * there are ONLINE_SAMPLES results. */
static int64_t left_ms_of(const struct bourse_job_row *row)
{
    int64_t left_ms = row->left_ms;
    if (row->left_ms < 0 || row->timed == 0 || row->foreseen_ms <= 0 || row->took_ms <= 0) {
        return -1;
    }
    const bool is_measured = row->timed >= ONLINE_SAMPLES;
    return is_measured ||
                   checked_muldiv_ceil(row->left_ms, row->took_ms, row->foreseen_ms, &left_ms)
               ? left_ms
               : -1;
}

static struct forecast forecast_at(const struct bourse_job_row *row, int64_t left_ms)
{
    struct forecast forecast = {.slots = slots_of(row)};
    forecast.is_known = row->state == BOURSE_OPEN && row->deadline_ms > 0 && row->seen_ms > 0 &&
                        left_ms >= 0 && checked_add(row->seen_ms, left_ms, &forecast.ends_ms);
    if (forecast.is_known && forecast.ends_ms > row->deadline_ms) {
        forecast.late_ms = forecast.ends_ms - row->deadline_ms;
    }
    return forecast;
}

struct forecast forecast_of(const struct bourse_job_row *row)
{
    return forecast_at(row, left_ms_of(row));
}

struct forecast forecast_with(const struct bourse_job_row *row, uint32_t more_slots)
{
    const int64_t slots = slots_of(row);
    int64_t left_ms = left_ms_of(row);
    if (left_ms < 0 || slots == 0 ||
        !checked_muldiv_ceil(left_ms, slots, slots + more_slots, &left_ms)) {
        return (struct forecast){.is_known = false};
    }
    struct forecast forecast = forecast_at(row, left_ms);
    forecast.slots += more_slots;
    return forecast;
}

void forecast_end_text(const struct bourse_job_row *row, const struct forecast *forecast,
                       char ret_text[FORECAST_TEXT_SIZE])
{
    const bool is_late = forecast->late_ms > 0;
    (void)snprintf(
        ret_text, FORECAST_TEXT_SIZE, "about %s, %s %s the deadline", cell_time(forecast->ends_ms),
        cell_duration(is_late ? forecast->late_ms : row->deadline_ms - forecast->ends_ms),
        is_late ? "after" : "before");
}

void forecast_text(const struct bourse_job_row *row, const struct forecast *forecast,
                   char ret_text[FORECAST_TEXT_SIZE])
{
    char on[32] = "";
    char ends[FORECAST_TEXT_SIZE];
    forecast_end_text(row, forecast, ends);
    if (forecast->slots > 0) {
        (void)snprintf(on, sizeof on, " on %u slot%s", forecast->slots,
                       text_plural(forecast->slots));
    }
    (void)snprintf(
        ret_text, FORECAST_TEXT_SIZE,
        "at the present speed (%u of %u done, %u running%s) the job would be done %.120s",
        row->accepted, row->subtasks, row->running - row->queued, on, ends);
}

/* The time is a tenth more than the rest takes. */
void forecast_remedy(const struct bourse_job_row *row, const struct forecast *forecast,
                     char ret_text[FORECAST_TEXT_SIZE])
{
    const int64_t left_ms = forecast->ends_ms - row->seen_ms;
    const bool is_short = left_ms < 600000;
    const int64_t unit_ms = is_short ? 1000 : 60000;
    (void)snprintf(ret_text, FORECAST_TEXT_SIZE,
                   "`bourse order replace %.8s --deadline %" PRId64 "%s` gives it time enough",
                   row->id, (left_ms + left_ms / 10) / unit_ms + 1, is_short ? "s" : "m");
}

void forecast_late_text(const struct bourse_job_row *row, const struct forecast *forecast,
                        char ret_text[FORECAST_LATE_SIZE])
{
    char text[FORECAST_TEXT_SIZE];
    char remedy[FORECAST_TEXT_SIZE];
    forecast_text(row, forecast, text);
    forecast_remedy(row, forecast, remedy);
    (void)snprintf(ret_text, FORECAST_LATE_SIZE,
                   "job %.8s: %s; `bourse explain %.8s` tries what would speed it up; %s", row->id,
                   text, row->id, remedy);
}

bool forecast_is_news(const struct bourse_job_row *row, const struct forecast *forecast)
{
    const int64_t least_ms = (forecast->ends_ms - row->seen_ms) / 20;
    return forecast->is_known && forecast->late_ms >= 1000 && forecast->late_ms >= least_ms;
}

json_t *forecast_json(const struct bourse_job_row *row)
{
    const struct forecast forecast = forecast_of(row);
    if (!forecast.is_known) {
        return NULL;
    }
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "ends_ms", (json_int_t)forecast.ends_ms,
                     "late_ms", (json_int_t)forecast.late_ms, "done", (json_int_t)row->accepted,
                     "subtasks", (json_int_t)row->subtasks, "running",
                     (json_int_t)(row->running - row->queued), "slots", (json_int_t)forecast.slots);
}
