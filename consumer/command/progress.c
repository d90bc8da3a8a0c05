#include "consumer/command/progress.h"

#include "base/checked.h"
#include "consumer/command/cell.h"
#include "consumer/command/grid.h"
#include "planner/schedule/online.h"
#include "runtime/clock.h"
#include "runtime/terminal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

/* ---------------------------------------------------------------- pace */

uint64_t progress_done(const struct bourse_job_row *row)
{
    return (uint64_t)row->accepted + row->failed + row->cancelled;
}

void progress_note_pace(struct pace *pace, const struct bourse_job_row *row)
{
    if (!pace->is_known) {
        *pace = (struct pace){
            .is_known = true, .first = progress_done(row), .since_ns = clock_monotonic_ns()};
    }
}

bool progress_pace(const struct pace *pace, const struct bourse_job_row *row, int64_t *ret_per_hour)
{
    uint64_t done = progress_done(row);
    int64_t elapsed_ns = clock_monotonic_ns() - pace->since_ns;
    if (!pace->is_known || done <= pace->first || done >= row->subtasks || elapsed_ns < 1) {
        return false;
    }
    return checked_muldiv_floor((int64_t)(done - pace->first), NS_PER_HOUR, elapsed_ns,
                                ret_per_hour);
}

bool progress_drifts(const struct bourse_job_row *row, int64_t *ret_percent)
{
    int64_t share = 0;
    if (!online_drifts(row->foreseen_ms, row->took_ms, row->timed) ||
        !checked_muldiv_floor(row->took_ms, 100, row->foreseen_ms, &share)) {
        return false;
    }
    *ret_percent = share - 100;
    return true;
}

bool progress_outgrows(const struct bourse_job_row *row, int64_t *ret_micro)
{
    int64_t percent = 0;
    int64_t micro = 0;
    const int64_t done = (int64_t)row->accepted + row->failed;
    if (row->state != BOURSE_OPEN || !progress_drifts(row, &percent) || percent < 0 || done == 0 ||
        !checked_muldiv_ceil(row->charged_micro, row->subtasks, done, &micro) ||
        micro <= row->budget_micro) {
        return false;
    }
    *ret_micro = micro;
    return true;
}

/* ---------------------------------------------------------------- progress */

static const int64_t REDRAW_NS = 100 * NS_PER_MS;
static const int64_t LINE_NS = 5 * NS_PER_S;

struct progress progress_start(const struct invocation *invocation)
{
    struct progress progress = {.terminal = isatty(STDERR_FILENO) == 1};
    bool asked = option_given(invocation, "progress");
    /* The option shows progress even with --quiet, which keeps stdout to ids. */
    progress.on = asked || (progress.terminal && !invocation->json && !invocation->quiet);
    return progress;
}

void progress_text(struct progress *progress, bool force, const char *format, ...)
{
    int64_t now_ns = clock_monotonic_ns();
    int64_t pause_ns = progress->terminal ? REDRAW_NS : LINE_NS;
    if (!progress->on ||
        (!force && progress->drawn_ns != 0 && now_ns - progress->drawn_ns < pause_ns)) {
        return;
    }
    progress->drawn_ns = now_ns;
    progress->has_line = true;
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments); /* cut, never overrun */
    va_end(arguments);
    if (progress->terminal) {
        terminal_control(stderr, "\r");
        (void)fputs(text, stderr);
        terminal_control(stderr, "\033[K");
    } else {
        (void)fprintf(stderr, "%s\n", text);
    }
    (void)fflush(stderr);
}

void progress_time_remaining(const struct bourse_job_row *row, int64_t percent,
                             char ret_text[CELL_SIZE])
{
    size_t used = 0;
    ret_text[0] = '\0';
    if (row->left_ms >= 0 && row->timed > 0) {
        used =
            (size_t)snprintf(ret_text, CELL_SIZE, "about %.60s left", cell_duration(row->left_ms));
    }
    if (row->state == BOURSE_OPEN && percent != 0) {
        (void)snprintf(ret_text + used, CELL_SIZE - used,
                       "%ssubtasks take %" PRId64 "%% %s than expected", used > 0 ? ", " : "",
                       percent < 0 ? -percent : percent, percent < 0 ? "less time" : "longer");
    }
}

void progress_line(const struct bourse_job_row *row, int64_t percent, char ret_text[JOB_LINE_SIZE])
{
    char left[CELL_SIZE];
    progress_time_remaining(row, percent, left);
    char checking[CELL_SIZE] = "";
    if (row->checking > 0) {
        char accused[64] = "";
        if (row->accused > 0) {
            (void)snprintf(accused, sizeof accused, " (%u rejected by one referee)", row->accused);
        }
        (void)snprintf(checking, sizeof checking, "%u checking%s, ", row->checking, accused);
    }
    const char *why = row->running == 0 && row->reason_text[0] != '\0' ? row->reason_text : "";
    (void)snprintf(ret_text, JOB_LINE_SIZE,
                   "%.8s  %u/%u done, %u failed, %u running, %s%u waiting, %s credits%s%s%s%s%s",
                   row->id, row->accepted, row->subtasks, row->failed, row->running - row->queued,
                   checking, row->waiting + row->queued, cell_money(row->charged_micro),
                   left[0] != '\0' ? ", " : "", left, why[0] != '\0' ? " (" : "", why,
                   why[0] != '\0' ? ")" : "");
}

void progress_job(struct progress *progress, const struct bourse_job_row *row, int64_t percent)
{
    char line[JOB_LINE_SIZE];
    progress_line(row, percent, line);
    progress_text(progress, row->state != BOURSE_OPEN, "%s", line);
}

void progress_end(struct progress *progress)
{
    if (progress->has_line && progress->terminal) {
        (void)fputc('\n', stderr);
    }
    progress->has_line = false;
}
