#include "planner/report.h"

#include "base/checked.h"
#include "base/text.h"
#include "planner/report_rows.h"
#include "planner/report_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The drawing counts in tenths of a pixel. */
enum {
    WIDTH = 10000,
    BAR_X = 2400,
    BAR_WIDTH = 6800,
    TOP = 900,
    ROW_STEP = 200,
    ROW_HEIGHT = 160,
    GRAIN_MIN = 20, /* thinner is not drawn apart */
    BOXES_MAX = 4000,
    TICKS = 6,
    ESCAPED_SIZE = 6 * REPORT_LABEL_SIZE,
};

/* Attempts that are drawn as one. */
struct box {
    int64_t from_ns, until_ns; /* of the market's log */
    int64_t busy_ns;           /* within, over all lanes of the row */
    uint32_t attempts, accepted;
    uint32_t index_low, index_high;
};

struct drawing {
    const struct report *report;
    struct report_rows *rows;
    int64_t from_ns, whole_ns; /* at least 1 */
    int64_t grain;
    struct report_text text;
};

/* ---------------------------------------------------------------- texts */

/* As the text of an element or of an attribute. XML has no U+FFFE and no U+FFFF. */
static void escape(const char *text, char ret_text[ESCAPED_SIZE])
{
    static const struct {
        char character;
        const char *entity;
    } entities[] = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};
    char plain[REPORT_LABEL_SIZE];
    text_printable(text, strlen(text), plain, sizeof plain);
    size_t used = 0;
    for (const char *at = plain; *at != '\0'; at++) {
        const char *entity = NULL;
        for (size_t i = 0; i < sizeof entities / sizeof *entities; i++) {
            entity = *at == entities[i].character ? entities[i].entity : entity;
        }
        if (entity != NULL) {
            used += (size_t)snprintf(ret_text + used, ESCAPED_SIZE - used, "%s", entity);
        } else if (strncmp(at, "\xef\xbf\xbe", 3) == 0 || strncmp(at, "\xef\xbf\xbf", 3) == 0) {
            ret_text[used++] = '?';
            at += 2;
        } else {
            ret_text[used++] = *at;
        }
    }
    ret_text[used] = '\0';
}

static int64_t scaled(int64_t part_ns, int64_t whole_ns, int64_t to)
{
    int64_t result = 0;
    if (part_ns <= 0 || !checked_muldiv_floor(part_ns, to, whole_ns, &result)) {
        return 0;
    }
    return result > to ? to : result;
}

static int64_t x_of(const struct drawing *drawing, int64_t at_ns)
{
    return scaled(at_ns - drawing->from_ns, drawing->whole_ns, BAR_WIDTH);
}

/* ---------------------------------------------------------------- boxes */

static void add_to_box(struct box *box, const struct report_attempt *attempt, int64_t busy_ns)
{
    bool is_new = box->attempts == 0;
    box->busy_ns += busy_ns;
    box->index_low = is_new || attempt->index < box->index_low ? attempt->index : box->index_low;
    box->index_high = is_new || attempt->index > box->index_high ? attempt->index : box->index_high;
    box->attempts++;
    box->accepted += attempt->fate == REPORT_ACCEPTED;
}

static void draw_box(struct drawing *drawing, size_t number, const struct box *box)
{
    if (box->attempts == 0) {
        return;
    }
    const struct report_row *row = &drawing->rows->rows[number];
    int64_t x = x_of(drawing, box->from_ns);
    int64_t width = x_of(drawing, box->until_ns) - x;
    width = width < GRAIN_MIN / 2 ? GRAIN_MIN / 2 : width;
    int64_t full_ns = 0;
    int64_t percent = 100;
    if (checked_mul(box->until_ns - box->from_ns, row->lanes > 0 ? row->lanes : 1, &full_ns) &&
        full_ns > 0) {
        percent = scaled(box->busy_ns, full_ns, 100);
    }
    const char *fate = box->accepted == box->attempts ? row->simulated ? "sim" : "ok"
                       : box->accepted > 0            ? "mixed"
                                                      : "failed";
    char from[REPORT_TIME_SIZE];
    char until[REPORT_TIME_SIZE];
    report_time_text(box->from_ns - drawing->from_ns, from);
    report_time_text(box->until_ns - drawing->from_ns, until);
    report_text_add(&drawing->text,
                    "<rect class=\"%s\" x=\"%" PRId64 "\" y=\"%zu\" width=\"%" PRId64
                    "\" height=\"%d\" fill-opacity=\"%s%" PRId64 "\"><title>",
                    fate, BAR_X + x, TOP + number * ROW_STEP, width, ROW_HEIGHT,
                    percent >= 100 ? "" : "0.",
                    percent >= 100  ? 1
                    : percent >= 25 ? percent
                                    : 25);
    if (box->attempts == 1) {
        report_text_add(&drawing->text, "subtask %u%s", box->index_low,
                        box->accepted == 0 ? ", not accepted" : "");
    } else {
        report_text_add(&drawing->text,
                        "%u attempts, subtasks %u to %u, %u accepted, %" PRId64 "%% busy",
                        box->attempts, box->index_low, box->index_high, box->accepted, percent);
    }
    report_text_add(&drawing->text, ", %s to %s</title></rect>\n", from, until);
}

/* A line that is one lane: each attempt is a box of its own, unless the box before is thin and they touch. So a box, or the
 * gap after it, is no thinner than the grain. */
static bool joins(const struct drawing *drawing, const struct box *box,
                  const struct report_attempt *attempt)
{
    int64_t from = x_of(drawing, box->from_ns);
    int64_t until = x_of(drawing, box->until_ns);
    int64_t start = x_of(drawing, attempt->started_ns);
    return box->attempts > 0 && start - until < drawing->grain && until - from < drawing->grain;
}

static void put_on_lane(struct drawing *drawing, size_t row, struct box *box,
                        const struct report_attempt *attempt)
{
    if (!joins(drawing, box, attempt)) {
        draw_box(drawing, row, box);
        *box = (struct box){.from_ns = attempt->started_ns, .until_ns = attempt->end_ns};
    }
    box->until_ns = attempt->end_ns > box->until_ns ? attempt->end_ns : box->until_ns;
    add_to_box(box, attempt, attempt->end_ns - attempt->started_ns);
}

static void draw_lanes(struct drawing *drawing)
{
    struct box open[REPORT_ROWS_MAX] = {{.attempts = 0}};
    for (size_t i = 0; i < drawing->report->attempt_count; i++) {
        const struct report_attempt *attempt = &drawing->report->attempts[i];
        size_t row = report_rows_of(drawing->rows, attempt);
        put_on_lane(drawing, row, &open[row], attempt);
    }
    for (size_t row = 0; row < drawing->rows->count; row++) {
        draw_box(drawing, row, &open[row]);
    }
}

/* Lines that are several lanes: stretches of equal length, as dark as they are busy. */
static void put_on_stretches(const struct drawing *drawing, struct box *stretches, size_t count,
                             int64_t step_ns, const struct report_attempt *attempt)
{
    int64_t from_ns = attempt->started_ns - drawing->from_ns;
    int64_t end_ns = attempt->end_ns - drawing->from_ns;
    for (size_t i = (size_t)(from_ns / step_ns); i < count; i++) {
        int64_t low_ns = (int64_t)i * step_ns;
        int64_t high_ns = low_ns + step_ns;
        int64_t first_ns = from_ns > low_ns ? from_ns : low_ns;
        int64_t until_ns = end_ns < high_ns ? end_ns : high_ns;
        stretches[i].from_ns = drawing->from_ns + low_ns;
        stretches[i].until_ns = drawing->from_ns + high_ns;
        add_to_box(&stretches[i], attempt, until_ns > first_ns ? until_ns - first_ns : 0);
        if (high_ns >= end_ns) {
            return;
        }
    }
}

static void draw_stretches(struct drawing *drawing)
{
    size_t count = (size_t)(BAR_WIDTH / drawing->grain);
    int64_t step_ns = drawing->whole_ns / (int64_t)count + 1;
    struct box *stretches = calloc(drawing->rows->count * count + 1, sizeof *stretches);
    if (stretches == NULL) {
        drawing->text.failed = true;
        return;
    }
    for (size_t i = 0; i < drawing->report->attempt_count; i++) {
        const struct report_attempt *attempt = &drawing->report->attempts[i];
        size_t row = report_rows_of(drawing->rows, attempt);
        put_on_stretches(drawing, stretches + row * count, count, step_ns, attempt);
    }
    for (size_t i = 0; i < drawing->rows->count * count; i++) {
        draw_box(drawing, i / count, &stretches[i]);
    }
    free(stretches);
}

/* ---------------------------------------------------------------- the rest of the picture */

static void draw_head(struct drawing *drawing, int64_t height)
{
    const struct report *report = drawing->report;
    char name[ESCAPED_SIZE];
    char state[ESCAPED_SIZE];
    escape(report->name, name);
    escape(report->state, state);
    struct report_text *text = &drawing->text;
    report_text_add(text,
                    "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%" PRId64
                    "\" viewBox=\"0 0 %d %" PRId64 "\">\n",
                    WIDTH / 10, height / 10, WIDTH, height);
    report_text_add(text, "<style>text{font:130px sans-serif;fill:#222}.big{font-size:170px}"
                          ".right{text-anchor:end}.grid{stroke:#ccc;stroke-width:5}"
                          ".expected{stroke:#b60;stroke-width:15;stroke-dasharray:60 40}"
                          ".ok{fill:#2a7}.sim{fill:#48c}.mixed{fill:#c82}.failed{fill:#c33}"
                          "rect{stroke:#fff;stroke-width:4}</style>\n");
    report_text_add(text, "<rect width=\"%d\" height=\"%" PRId64 "\" fill=\"#fff\"/>\n", WIDTH,
                    height);
    report_text_add(text, "<text class=\"big\" x=\"100\" y=\"280\">");
    report_text_add(text, "%s", name);
    report_text_add(text, " (%.8s), %s</text>\n", report->id, state);
    char span[REPORT_TIME_SIZE];
    char wait[REPORT_TIME_SIZE];
    report_time_text(report->span_ns, span);
    report_time_text(report->wait_ns < 0 ? 0 : report->wait_ns, wait);
    report_text_add(
        text,
        "<text x=\"100\" y=\"520\">%u of %u subtasks accepted; failed attempts: %u, late: "
        "%u; waited %s, ran %s on %u lanes</text>\n",
        report->total.accepted, report->subtasks, report->total.failed, report->total.late, wait,
        span, report->total.lanes);
}

static void draw_grid(struct drawing *drawing, int64_t bottom)
{
    for (int64_t i = 0; i <= TICKS; i++) {
        char at[REPORT_TIME_SIZE];
        report_time_text((int64_t)((int128)drawing->whole_ns * i / TICKS), at);
        int64_t x = BAR_X + BAR_WIDTH * i / TICKS;
        report_text_add(&drawing->text,
                        "<line class=\"grid\" x1=\"%" PRId64 "\" y1=\"%d\" x2=\"%" PRId64
                        "\" y2=\"%" PRId64 "\"/><text x=\"%" PRId64 "\" y=\"%d\">%s</text>\n",
                        x, TOP - 60, x, bottom, x - 60, TOP - 100, at);
    }
}

static void draw_labels(struct drawing *drawing)
{
    for (size_t i = 0; i < drawing->rows->count; i++) {
        const struct report_row *row = &drawing->rows->rows[i];
        size_t y = TOP + i * ROW_STEP + ROW_HEIGHT - 35;
        char label[ESCAPED_SIZE];
        escape(row->label, label);
        int64_t possible_ns = 0;
        bool fits = checked_mul(drawing->report->span_ns, row->lanes, &possible_ns);
        int64_t percent = fits && possible_ns > 0 ? scaled(row->busy_ns, possible_ns, 100) : 0;
        /* textLength keeps a long name out of the bars. */
        bool is_long = strlen(row->label) > 30;
        report_text_add(&drawing->text, "<text x=\"100\" y=\"%zu\"%s>", y,
                        is_long ? " textLength=\"2200\" lengthAdjust=\"spacingAndGlyphs\"" : "");
        for (size_t at = 0; at < strlen(label); at += 900) {
            report_text_add(&drawing->text, "%.900s", label + at);
        }
        report_text_add(&drawing->text,
                        "</text><text class=\"right\" x=\"%d\" y=\"%zu\">%" PRId64 "%%</text>\n",
                        WIDTH - 100, y, percent);
    }
}

static void draw_expected(struct drawing *drawing, int64_t bottom)
{
    const struct report *report = drawing->report;
    int64_t end_ns = 0;
    if (report->expect_span_ns < 0 ||
        !checked_add(report->first_ns, report->expect_span_ns, &end_ns)) {
        return;
    }
    char expected[REPORT_TIME_SIZE];
    report_time_text(report->expect_span_ns, expected);
    int64_t x = BAR_X + x_of(drawing, end_ns);
    report_text_add(&drawing->text,
                    "<line class=\"expected\" x1=\"%" PRId64 "\" y1=\"%d\" x2=\"%" PRId64
                    "\" y2=\"%" PRId64 "\"><title>expected to run %s</title></line>\n",
                    x, TOP - 40, x, bottom, expected);
}

static int64_t grain_for(size_t rows)
{
    int64_t per_row = BOXES_MAX / (int64_t)(rows > 0 ? rows : 1) - 1;
    int64_t grain = BAR_WIDTH / per_row + 1;
    return grain < GRAIN_MIN ? GRAIN_MIN : grain;
}

char *report_svg(const struct report *report)
{
    struct report_rows rows;
    if (!report_rows_make(report, &rows)) {
        return NULL;
    }
    struct drawing drawing = {.report = report,
                              .rows = &rows,
                              .from_ns = report->submitted_ns,
                              .whole_ns = report->until_ns - report->submitted_ns,
                              .grain = grain_for(rows.count)};
    drawing.whole_ns = drawing.whole_ns < 1 ? 1 : drawing.whole_ns;
    int64_t bottom = TOP + ROW_STEP * (int64_t)rows.count;
    draw_head(&drawing, bottom + 400);
    draw_grid(&drawing, bottom);
    draw_labels(&drawing);
    if (rows.by_lane) {
        draw_lanes(&drawing);
    } else {
        draw_stretches(&drawing);
    }
    draw_expected(&drawing, bottom);
    report_text_add(&drawing.text, "<text x=\"100\" y=\"%" PRId64 "\">%s</text>\n</svg>\n",
                    bottom + 250,
                    report->total.simulated > 0
                        ? "SIM: simulated, the times are those of a model and were not measured."
                        : "Times are what providers signed, within what the market saw.");
    report_rows_fini(&rows);
    return report_text_take(&drawing.text);
}
