/* This file draws a picture as SVG. */
#include "planner/picture/picture.h"

#include "base/checked.h"
#include "base/text.h"
#include "planner/picture/picture_rows.h"
#include "planner/picture/picture_text.h"

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
    GRAIN_MIN = 20, /* a thinner bar is not drawn alone */
    BOXES_MAX = 4000,
    TICKS = 6,
    TEXT_SIZE = 512,
};

/* Bars that are drawn as one box. */
struct box {
    int64_t from, until;
    int64_t busy; /* busy time over all lanes of the row */
    uint32_t bars, good, waits;
    uint32_t lowest, highest; /* numbers */
};

struct drawing {
    const struct picture *picture;
    struct picture_rows *rows;
    int64_t whole; /* at least 1 */
    int64_t grain;
    struct picture_text text;
};

/* ---------------------------------------------------------------- texts */

/* Adds text for an element or an attribute. XML has no U+FFFE and no U+FFFF. */
static void add_escaped(struct picture_text *to, const char *text)
{
    static const struct {
        char character;
        const char *entity;
    } entities[] = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};
    char plain[TEXT_SIZE];
    text_printable(text, strlen(text), plain, sizeof plain);
    for (const char *at = plain; *at != '\0'; at++) {
        const char *entity = NULL;
        for (size_t i = 0; i < sizeof entities / sizeof *entities; i++) {
            entity = *at == entities[i].character ? entities[i].entity : entity;
        }
        if (entity != NULL) {
            picture_text_add(to, "%s", entity);
        } else if (strncmp(at, "\xef\xbf\xbe", 3) == 0 || strncmp(at, "\xef\xbf\xbf", 3) == 0) {
            picture_text_add(to, "?");
            at += 2;
        } else {
            picture_text_add(to, "%c", *at);
        }
    }
}

static int64_t scaled(int64_t part, int64_t whole, int64_t to)
{
    int64_t result = 0;
    if (part <= 0 || !checked_muldiv_floor(part, to, whole, &result)) {
        return 0;
    }
    return result > to ? to : result;
}

static int64_t x_of(const struct drawing *drawing, int64_t at)
{
    return scaled(at - drawing->picture->from, drawing->whole, BAR_WIDTH);
}

/* ---------------------------------------------------------------- boxes */

static void add_to_box(struct box *box, const struct picture_bar *bar, int64_t busy)
{
    bool is_new = box->bars == 0;
    box->busy += busy;
    box->lowest = is_new || bar->number < box->lowest ? bar->number : box->lowest;
    box->highest = is_new || bar->number > box->highest ? bar->number : box->highest;
    box->bars++;
    box->good += !bar->is_bad;
    box->waits += bar->is_wait;
}

/* Writes what a box holds: one thing by its name, or the number of things. */
static void add_holding(struct drawing *drawing, const struct box *box, int64_t percent)
{
    const struct picture *picture = drawing->picture;
    const struct picture_words *words = picture->words;
    struct picture_text *text = &drawing->text;
    if (box->waits == box->bars) {
        picture_text_add(text, "waits");
    } else if (box->bars > 1 && words->bars != NULL) {
        picture_text_add(text, "%u %s, %s %u to %u, %u accepted, %" PRId64 "%% busy", box->bars,
                         words->bars, words->things, box->lowest, box->highest, box->good, percent);
    } else if (box->bars > 1) {
        picture_text_add(text, "%u %s, %" PRId64 "%% busy", box->bars, words->things, percent);
    } else {
        picture_text_add(text, "%s ", words->thing);
        if (picture->names != NULL) {
            add_escaped(text, picture->names[box->lowest]);
        } else {
            picture_text_add(text, "%u", box->lowest);
        }
        picture_text_add(text, "%s", box->good == 0 ? ", not accepted" : "");
    }
}

static void draw_box(struct drawing *drawing, size_t number, const struct box *box)
{
    if (box->bars == 0) {
        return;
    }
    const struct picture_row *row = &drawing->rows->rows[number];
    int64_t x = x_of(drawing, box->from);
    int64_t width = x_of(drawing, box->until) - x;
    width = width < GRAIN_MIN / 2 ? GRAIN_MIN / 2 : width;
    int64_t full = 0;
    int64_t percent = 100;
    if (checked_mul(box->until - box->from, row->lanes > 0 ? row->lanes : 1, &full) && full > 0) {
        percent = scaled(box->busy, full, 100);
    }
    bool is_wait = box->waits == box->bars;
    percent = is_wait ? 100 : percent;
    const char *fate = is_wait                  ? "wait"
                       : row->planned           ? "plan"
                       : box->good == box->bars ? row->simulated ? "sim" : "ok"
                       : box->good > 0          ? "mixed"
                                                : "failed";
    char from[PICTURE_TIME_SIZE];
    char until[PICTURE_TIME_SIZE];
    picture_time_text(drawing->picture, box->from - drawing->picture->from, from);
    picture_time_text(drawing->picture, box->until - drawing->picture->from, until);
    picture_text_add(&drawing->text,
                     "<rect class=\"%s\" x=\"%" PRId64 "\" y=\"%zu\" width=\"%" PRId64
                     "\" height=\"%d\" fill-opacity=\"%s%" PRId64 "\"><title>",
                     fate, BAR_X + x, TOP + number * ROW_STEP, width, ROW_HEIGHT,
                     percent >= 100 ? "" : "0.",
                     percent >= 100  ? 1
                     : percent >= 25 ? percent
                                     : 25);
    picture_text_add(&drawing->text, "%s", row->planned ? "planned: " : "");
    add_holding(drawing, box, percent);
    picture_text_add(&drawing->text, ", %s to %s</title></rect>\n", from, until);
}

/* Decides whether a bar joins the box before, on a row of one lane. It joins when they touch, the
 * box is thin, and the bar is thin or of the same kind. So a box, or the gap after it, is no
 * thinner than the grain. */
static bool joins(const struct drawing *drawing, const struct box *box,
                  const struct picture_bar *bar)
{
    int64_t from = x_of(drawing, box->from);
    int64_t until = x_of(drawing, box->until);
    int64_t start = x_of(drawing, bar->from);
    bool is_thin = x_of(drawing, bar->until) - start < drawing->grain;
    bool is_alike = bar->is_wait == (box->waits == box->bars);
    return box->bars > 0 && start - until < drawing->grain && until - from < drawing->grain &&
           (is_thin || is_alike);
}

static void put_on_lane(struct drawing *drawing, size_t row, struct box *box,
                        const struct picture_bar *bar)
{
    if (!joins(drawing, box, bar)) {
        draw_box(drawing, row, box);
        *box = (struct box){.from = bar->from, .until = bar->until};
    }
    box->until = bar->until > box->until ? bar->until : box->until;
    add_to_box(box, bar, picture_busy(bar));
}

static void draw_lanes(struct drawing *drawing)
{
    struct box open[PICTURE_ROWS_MAX] = {{.bars = 0}};
    for (size_t i = 0; i < drawing->picture->bar_count; i++) {
        const struct picture_bar *bar = &drawing->picture->bars[i];
        size_t row = picture_rows_of(drawing->rows, bar);
        put_on_lane(drawing, row, &open[row], bar);
    }
    for (size_t row = 0; row < drawing->rows->count; row++) {
        draw_box(drawing, row, &open[row]);
    }
}

/* Rows of several lanes show stretches of equal length, as dark as they are busy. */
static void put_on_stretches(const struct drawing *drawing, struct box *stretches, size_t count,
                             int64_t step, const struct picture_bar *bar)
{
    int64_t from = bar->from - drawing->picture->from;
    int64_t until = bar->until - drawing->picture->from;
    for (size_t i = (size_t)(from / step); i < count; i++) {
        int64_t low = (int64_t)i * step;
        int64_t high = low + step;
        int64_t first = from > low ? from : low;
        int64_t end = until < high ? until : high;
        stretches[i].from = drawing->picture->from + low;
        stretches[i].until = drawing->picture->from + high;
        add_to_box(&stretches[i], bar, end > first && !bar->is_wait ? end - first : 0);
        if (high >= until) {
            return;
        }
    }
}

static void draw_stretches(struct drawing *drawing)
{
    size_t count = (size_t)(BAR_WIDTH / drawing->grain);
    int64_t step = drawing->whole / (int64_t)count + 1;
    struct box *stretches = calloc(drawing->rows->count * count + 1, sizeof *stretches);
    if (stretches == NULL) {
        drawing->text.failed = true;
        return;
    }
    for (size_t i = 0; i < drawing->picture->bar_count; i++) {
        const struct picture_bar *bar = &drawing->picture->bars[i];
        size_t row = picture_rows_of(drawing->rows, bar);
        put_on_stretches(drawing, stretches + row * count, count, step, bar);
    }
    for (size_t i = 0; i < drawing->rows->count * count; i++) {
        draw_box(drawing, i / count, &stretches[i]);
    }
    free(stretches);
}

/* ---------------------------------------------------------------- the rest of the picture */

static void draw_head(struct drawing *drawing, int64_t height)
{
    struct picture_text *text = &drawing->text;
    picture_text_add(text,
                     "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%" PRId64
                     "\" viewBox=\"0 0 %d %" PRId64 "\">\n",
                     WIDTH / 10, height / 10, WIDTH, height);
    picture_text_add(text,
                     "<style>text{font:130px sans-serif;fill:#222}.big{font-size:170px}"
                     ".right{text-anchor:end}.grid{stroke:#ccc;stroke-width:5}"
                     ".expected{stroke:#b60;stroke-width:15;stroke-dasharray:60 40}"
                     ".ok{fill:#2a7}.sim{fill:#48c}.mixed{fill:#c82}.failed{fill:#c33}"
                     "rect{stroke:#fff;stroke-width:4}%s%s</style>\n",
                     drawing->rows->has_waits ? ".wait{fill:#cde3d8}" : "",
                     drawing->rows->has_plans ? ".plan{fill:#9ab}" : "");
    picture_text_add(text, "<rect width=\"%d\" height=\"%" PRId64 "\" fill=\"#fff\"/>\n", WIDTH,
                     height);
    picture_text_add(text, "<text class=\"big\" x=\"100\" y=\"280\">");
    add_escaped(text, drawing->picture->title);
    picture_text_add(text, "</text>\n<text x=\"100\" y=\"520\">");
    add_escaped(text, drawing->picture->line);
    picture_text_add(text, "</text>\n");
}

static void draw_grid(struct drawing *drawing, int64_t bottom)
{
    for (int64_t i = 0; i <= TICKS; i++) {
        char at[PICTURE_TIME_SIZE];
        picture_time_text(drawing->picture, (int64_t)((int128)drawing->whole * i / TICKS), at);
        int64_t x = BAR_X + BAR_WIDTH * i / TICKS;
        picture_text_add(&drawing->text,
                         "<line class=\"grid\" x1=\"%" PRId64 "\" y1=\"%d\" x2=\"%" PRId64
                         "\" y2=\"%" PRId64 "\"/><text x=\"%" PRId64 "\" y=\"%d\">%s</text>\n",
                         x, TOP - 60, x, bottom, x - 60, TOP - 100, at);
    }
}

static void draw_labels(struct drawing *drawing)
{
    for (size_t i = 0; i < drawing->rows->count; i++) {
        const struct picture_row *row = &drawing->rows->rows[i];
        size_t y = TOP + i * ROW_STEP + ROW_HEIGHT - 35;
        int64_t possible = 0;
        bool fits = checked_mul(row->span, row->lanes, &possible);
        int64_t percent = fits && possible > 0 ? scaled(row->busy, possible, 100) : 0;
        /* textLength keeps a long name out of the bars. */
        bool is_long = strlen(row->label) > 30;
        picture_text_add(&drawing->text, "<text x=\"100\" y=\"%zu\"%s>", y,
                         is_long ? " textLength=\"2200\" lengthAdjust=\"spacingAndGlyphs\"" : "");
        add_escaped(&drawing->text, row->label);
        picture_text_add(&drawing->text,
                         "</text><text class=\"right\" x=\"%d\" y=\"%zu\">%" PRId64 "%%</text>\n",
                         WIDTH - 100, y, percent);
    }
}

static void draw_expected(struct drawing *drawing, int64_t bottom)
{
    const struct picture *picture = drawing->picture;
    if (picture->expected < picture->from) {
        return;
    }
    char expected[PICTURE_TIME_SIZE];
    picture_time_text(picture, picture->expected_span, expected);
    int64_t x = BAR_X + x_of(drawing, picture->expected);
    picture_text_add(&drawing->text,
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

char *picture_svg(const struct picture *picture)
{
    struct picture_rows rows;
    if (!picture_rows_make(picture, &rows)) {
        return NULL;
    }
    struct drawing drawing = {.picture = picture,
                              .rows = &rows,
                              .whole = picture->until - picture->from,
                              .grain = grain_for(rows.count)};
    drawing.whole = drawing.whole < 1 ? 1 : drawing.whole;
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
    picture_text_add(&drawing.text, "<text x=\"100\" y=\"%" PRId64 "\">", bottom + 250);
    add_escaped(&drawing.text, picture->note);
    picture_text_add(&drawing.text, "</text>\n</svg>\n");
    picture_rows_fini(&rows);
    return picture_text_take(&drawing.text);
}
