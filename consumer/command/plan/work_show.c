/* This file shows a plan of work with its rows, devices, forms and figures, as tables and a
 * timeline. Nothing has run: every time is an estimate with its source beside it. */
#include "consumer/command/plan/work.h"

#include "base/cleanup.h"
#include "base/text.h"
#include "consumer/command/plan/picture.h"
#include "consumer/command/show.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_SHOWN = 100, DEVICES_SHOWN = 32, FIGURE_SIZE = 48 };
#define ROUNDING 1e-9 /* allowance for rounding in a share */

struct cell {
    char text[FIGURE_SIZE];
};

/* All times of a plan have the unit of its makespan. */
struct unit {
    const char *name;
    double seconds;
};

static struct unit unit_of(const struct work *work)
{
    static const struct unit units[] = {{"h", 3600}, {"s", 1}, {"ms", 1e-3}, {"us", 1e-6}};
    double makespan = work->plan->total.makespan_s.value;
    if (makespan >= 2 * units[0].seconds) {
        return units[0];
    }
    return makespan >= 1 ? units[1] : makespan >= 1e-3 ? units[2] : units[3];
}

static struct cell in_unit(double seconds, const struct unit *unit)
{
    struct cell cell;
    (void)snprintf(cell.text, sizeof cell.text, "%.4g", seconds / unit->seconds);
    return cell;
}

/* Writes a time such as "12.5 ms". */
static struct cell time_cell(double seconds)
{
    static const struct unit units[] = {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}};
    size_t at = 0;
    struct cell cell;
    while (at + 1 < sizeof units / sizeof units[0] && seconds < units[at].seconds) {
        at++;
    }
    if (seconds >= 7200) {
        (void)snprintf(cell.text, sizeof cell.text, "%.4g h", seconds / 3600);
    } else {
        (void)snprintf(cell.text, sizeof cell.text, "%.4g %s", seconds / units[at].seconds,
                       units[at].name);
    }
    return cell;
}

static struct cell price_cell(int64_t price_micro)
{
    struct cell cell = {"-"};
    if (price_micro >= 0) {
        (void)snprintf(cell.text, sizeof cell.text, "%s", cell_money(price_micro));
    }
    return cell;
}

const char *work_source(const struct figure *figure)
{
    static const char *const names[] = {[FIGURE_UNKNOWN] = "unknown",
                                        [FIGURE_DECLARED] = "declared",
                                        [FIGURE_CALIBRATED] = "calibrated",
                                        [FIGURE_MEASURED] = "measured"};
    return names[figure->source];
}

static struct cell source_cell(const struct work *work, const struct plan_row *row)
{
    struct cell cell;
    char samples[24] = "";
    if (row->samples > 0) {
        (void)snprintf(samples, sizeof samples, " (%" PRIu32 ")", row->samples);
    }
    (void)snprintf(cell.text, sizeof cell.text, "%s%s%s%s%s", work_source(&row->time_s),
                   row->time_s.unverified ? "?" : "", samples,
                   row->is_left_out   ? ", not counted"
                   : row->is_streamed ? ", streamed"
                   : row->is_widened  ? ", widened"
                                      : "",
                   work_lacks_rate(work, row) ? ", fp32 unknown" : "");
    return cell;
}

const char *work_device(const struct work *work, uint32_t device)
{
    return work->set->items[device].name;
}

void work_label(const struct work *work, const struct plan_row *row,
                char ret_label[WORK_LABEL_SIZE])
{
    const struct step *first = &work->steps->steps[row->first_step];
    const struct step *last = &work->steps->steps[row->first_step + row->step_count - 1];
    if (row->what[0] != '\0') {
        (void)snprintf(ret_label, WORK_LABEL_SIZE, "%s", row->what);
    } else if (row->rounds > 1) {
        (void)snprintf(ret_label, WORK_LABEL_SIZE, "all of %" PRId64 ", in %" PRId64 " parts",
                       row->items, row->rounds);
    } else if (work->plan->form == PLAN_SPLIT) {
        (void)snprintf(ret_label, WORK_LABEL_SIZE, "all of %" PRId64, row->items);
    } else if (row->step_count > 1) {
        (void)snprintf(ret_label, WORK_LABEL_SIZE, "%s .. %s", first->name, last->name);
    } else {
        (void)snprintf(ret_label, WORK_LABEL_SIZE, "%s", first->name);
    }
}

/* `is_idle`: all rows of the device are steps of unknown time, which get equal parts. */
static double weight_of(const struct plan_row *row, uint32_t device, bool is_idle)
{
    return row->device != device ? 0 : is_idle ? 1 : row->is_left_out ? 0 : row->busy_s;
}

/* Divides a device's price among its rows by their time. Left-over micro-credits go to the rows
 * that lost most by rounding down. */
static void share_price(const struct plan *plan, uint32_t device, double *lost, int64_t *prices)
{
    int64_t left = plan->uses[device].price_micro;
    double sum = 0;
    for (size_t i = 0; i < plan->row_count; i++) {
        sum += weight_of(&plan->rows[i], device, false);
    }
    const bool is_idle = !(sum > 0);
    for (size_t i = 0; is_idle && i < plan->row_count; i++) {
        sum += weight_of(&plan->rows[i], device, true);
    }
    double each = sum > 0 ? (double)left / sum : 0;
    for (size_t i = 0; i < plan->row_count; i++) {
        double weight = weight_of(&plan->rows[i], device, is_idle);
        if (weight > 0) {
            prices[i] = (int64_t)(weight * each);
            lost[i] = weight * each - (double)prices[i];
            left -= prices[i];
        }
    }
    for (bool again = sum > 0; again && left > 0; left--) {
        size_t most = 0;
        for (size_t i = 1; i < plan->row_count; i++) {
            most = lost[i] > lost[most] ? i : most;
        }
        again = lost[most] >= 0;
        prices[most] += again;
        lost[most] = -1;
    }
    for (size_t i = 0; i < plan->row_count; i++) {
        lost[i] = -1;
    }
}

int64_t *work_prices(const struct plan *plan)
{
    int64_t *prices = calloc(plan->row_count + 1, sizeof *prices);
    double *lost = calloc(plan->row_count + 1, sizeof *lost);
    if (prices == NULL || lost == NULL) {
        free(prices);
        free(lost);
        return NULL;
    }
    for (size_t i = 0; i < plan->row_count; i++) {
        const struct plan_row *row = &plan->rows[i];
        lost[i] = -1;
        prices[i] = row->is_left_out || plan->uses[row->device].price_micro < 0 ? -1 : 0;
    }
    for (uint32_t d = 0; d < plan->device_count; d++) {
        if (plan->uses[d].price_micro > 0) {
            share_price(plan, d, lost, prices);
        }
    }
    free(lost);
    return prices;
}

/* ---------------------------------------------------------------- drawing */

static const struct picture_words words = {
    .thing = "step", .things = "steps", .more_group = "devices"};

static void write_line(const struct work *work, char *ret_text, size_t capacity)
{
    const struct plan *plan = work->plan;
    (void)snprintf(ret_text, capacity, "%s, found by %s: %s", plan_form_name(plan->form),
                   plan->found_by, time_cell(plan->total.makespan_s.value).text);
    if (plan->total.price_micro >= 0) {
        size_t used = strlen(ret_text);
        (void)snprintf(ret_text + used, capacity - used, ", %s credits",
                       cell_money(plan->total.price_micro));
    }
}

/* The pieces of a row are drawn one after the other: its work, and the waits in between. */
struct pieces {
    size_t count;
    uint32_t *devices;
    double *starts, *finishes;
    bool *waits;
    const char **labels;
};

static void add_piece(struct pieces *pieces, const struct plan_row *row, const char *label,
                      double from_s, double until_s, bool is_wait)
{
    size_t at = pieces->count++;
    pieces->devices[at] = row->device;
    pieces->labels[at] = label;
    pieces->starts[at] = from_s;
    pieces->finishes[at] = until_s;
    pieces->waits[at] = is_wait;
}

static void cut_row(const struct plan *plan, uint32_t number, const char *label,
                    struct pieces *pieces)
{
    const struct plan_row *row = &plan->rows[number];
    double at_s = row->start_s;
    for (size_t i = 0; i < plan->wait_count; i++) {
        const struct plan_wait *wait = &plan->waits[i];
        if (wait->row != number) {
            continue;
        }
        if (wait->from_s > at_s) {
            add_piece(pieces, row, label, at_s, wait->from_s, false);
        }
        add_piece(pieces, row, label, wait->from_s, wait->until_s, true);
        at_s = wait->until_s;
    }
    if (row->finish_s > at_s || at_s == row->start_s) { /* a row without duration is drawn too */
        add_piece(pieces, row, label, at_s, row->finish_s, false);
    }
}

static char *draw_pieces(const struct work *work, const struct picture_style *style,
                         const struct pieces *pieces)
{
    const struct unit unit = unit_of(work);
    const char *names[DEVICE_SET_MOST];
    for (size_t i = 0; i < work->set->count; i++) {
        names[i] = work->set->items[i].name;
    }
    for (size_t i = 0; i < pieces->count; i++) {
        pieces->starts[i] /= unit.seconds;
        pieces->finishes[i] /= unit.seconds;
    }
    const struct picture_schedule drawn = {.task_count = (uint32_t)pieces->count,
                                           .processor_count = (uint32_t)work->set->count,
                                           .processor = pieces->devices,
                                           .start = pieces->starts,
                                           .finish = pieces->finishes,
                                           .makespan =
                                               work->plan->total.makespan_s.value / unit.seconds,
                                           .unit = unit.name,
                                           .waits = pieces->waits,
                                           .task_names = pieces->labels,
                                           .processor_names = names};
    CLEANUP(picture_destroy) struct picture *picture = picture_of_schedule(&drawn);
    if (picture == NULL) {
        return NULL;
    }
    char title[200];
    char line[300];
    (void)snprintf(title, sizeof title, "%s: %s", work->template->name, work->template->meaning);
    write_line(work, line, sizeof line);
    picture->words = &words;
    picture->title = title;
    picture->line = line;
    picture->note = "Planned: nothing has run. Times are estimates.";
    return style != NULL ? picture_timeline(picture, style) : picture_svg(picture);
}

char *work_draw(const struct work *work, const struct picture_style *style)
{
    const struct plan *plan = work->plan;
    size_t most = plan->row_count + 2 * plan->wait_count + 1;
    char(*labels)[WORK_LABEL_SIZE] = calloc(plan->row_count + 1, sizeof *labels);
    struct pieces pieces = {.devices = calloc(most, sizeof *pieces.devices),
                            .starts = calloc(most, sizeof *pieces.starts),
                            .finishes = calloc(most, sizeof *pieces.finishes),
                            .waits = calloc(most, sizeof *pieces.waits),
                            .labels = calloc(most, sizeof *pieces.labels)};
    char *text = NULL;
    if (labels != NULL && pieces.devices != NULL && pieces.starts != NULL &&
        pieces.finishes != NULL && pieces.waits != NULL && pieces.labels != NULL &&
        plan->total.makespan_s.value > 0) {
        for (uint32_t i = 0; i < plan->row_count; i++) {
            work_label(work, &plan->rows[i], labels[i]);
            cut_row(plan, i, labels[i], &pieces);
        }
        text = draw_pieces(work, style, &pieces);
    }
    free(labels);
    free(pieces.devices);
    free(pieces.starts);
    free(pieces.finishes);
    free(pieces.waits);
    free(pieces.labels);
    return text;
}

/* ---------------------------------------------------------------- tables */

static void say_others(size_t count, const char *what)
{
    if (count > 0) {
        (void)printf("and %zu more %s%s: --json has them\n", count, what, text_plural(count));
    }
}

static void show_rows(const struct work *work)
{
    const struct plan *plan = work->plan;
    const struct unit unit = unit_of(work);
    char start_title[16];
    char time_title[16];
    const char *titles[] = {"STEP", "DEVICE", start_title, time_title,
                            "IN",   "ENERGY", "PRICE",     "TIME IS"};
    size_t shown = plan->row_count <= ROWS_SHOWN ? plan->row_count : ROWS_SHOWN;
    int64_t *prices = work_prices(plan);
    (void)snprintf(start_title, sizeof start_title, "START %s", unit.name);
    (void)snprintf(time_title, sizeof time_title, "TIME %s", unit.name);
    struct grid table = grid_of(8, titles, "llrrrrrl");
    for (size_t i = 0; i < shown; i++) {
        const struct plan_row *row = &plan->rows[i];
        char label[WORK_LABEL_SIZE];
        struct cell start = in_unit(row->start_s, &unit);
        struct cell time = in_unit(row->busy_s, &unit);
        struct cell cost = price_cell(prices != NULL ? prices[i] : -1);
        struct cell source = source_cell(work, row);
        work_label(work, row, label);
        const char *cells[] = {cell_plain(label),
                               work_device(work, row->device),
                               start.text,
                               row->is_left_out ? "-" : time.text,
                               row->bytes_in > 0 ? cell_bytes((uint64_t)row->bytes_in) : "-",
                               cell_joules(&row->energy_j),
                               cost.text,
                               source.text};
        grid_add(&table, cells);
    }
    grid_print(&table, stdout, work->invocation->color);
    grid_fini(&table);
    free(prices);
    say_others(plan->row_count - shown, "step");
}

static void show_devices(const struct work *work)
{
    static const char *const titles[] = {"DEVICE", "STEPS",  "SHARE",  "IN",
                                         "OUT",    "MEMORY", "ENERGY", "PRICE"};
    const struct plan *plan = work->plan;
    struct grid table = grid_of(8, titles, "lrrrrrrr");
    size_t used = 0;
    size_t idle = 0;
    for (size_t i = 0; i < plan->device_count; i++) {
        const struct plan_use *use = &plan->uses[i];
        idle += use->row_count == 0;
        if (use->row_count == 0 || used++ >= DEVICES_SHOWN) {
            continue;
        }
        char rows[16];
        char share[16];
        struct cell price = price_cell(use->price_micro);
        (void)snprintf(rows, sizeof rows, "%" PRIu32, use->row_count);
        (void)snprintf(share, sizeof share, "%.0f%%", floor(100 * use->share * (1 + ROUNDING)));
        const char *cells[] = {work_device(work, (uint32_t)i),
                               rows,
                               share,
                               cell_bytes((uint64_t)use->bytes_in),
                               cell_bytes((uint64_t)use->bytes_out),
                               cell_bytes((uint64_t)use->memory_bytes),
                               cell_joules(&use->energy_j),
                               price.text};
        grid_add(&table, cells);
    }
    (void)putchar('\n');
    grid_print(&table, stdout, work->invocation->color);
    grid_fini(&table);
    say_others(used > DEVICES_SHOWN ? used - DEVICES_SHOWN : 0, "device");
    if (idle > 0) {
        (void)printf("not used: %zu device%s\n", idle, text_plural(idle));
    }
}

/* Adds one form of layout; the chosen one is marked. */
static void add_outcome(struct grid *table, const char *name, const struct plan_outcome *outcome,
                        bool is_taken)
{
    const bool is_known =
        outcome->makespan_s.source != FIGURE_UNKNOWN && outcome->status != PLAN_NO_ROOM;
    const struct figure unknown = {.source = FIGURE_UNKNOWN};
    char devices[16];
    struct cell time = time_cell(outcome->makespan_s.value);
    struct cell price = price_cell(is_known ? outcome->price_micro : -1);
    (void)snprintf(devices, sizeof devices, "%" PRIu32, outcome->device_count);
    const char *cells[] = {name,
                           is_known ? time.text : "-",
                           price.text,
                           cell_joules(is_known ? &outcome->energy_j : &unknown),
                           is_known ? devices : "-",
                           is_taken                     ? "taken"
                           : outcome->status == PLAN_OK ? ""
                                                        : cell_plain(outcome->problem.text)};
    grid_add(table, cells);
}

/* Adds each variant of a form that has several. */
static void add_variants(const struct plan *plan, struct grid *table, enum plan_form form)
{
    size_t count = 0;
    for (size_t i = 0; i < plan->variant_count; i++) {
        count += plan->variants[i].form == form;
    }
    for (size_t i = 0; i < plan->variant_count && count > 1; i++) {
        const struct plan_variant *variant = &plan->variants[i];
        if (variant->form == form) {
            char name[48];
            (void)snprintf(name, sizeof name, "  %s", variant->found_by);
            add_outcome(table, name, &variant->outcome,
                        form == plan->form && strcmp(variant->found_by, plan->found_by) == 0);
        }
    }
}

static void show_forms(const struct work *work)
{
    static const char *const titles[] = {"FORM", "TIME", "PRICE", "ENERGY", "DEVICES", ""};
    const struct plan *plan = work->plan;
    struct grid table = grid_of(6, titles, "lrrrrl");
    for (int i = 0; i < PLAN_FORMS; i++) {
        add_outcome(&table, plan_form_name((enum plan_form)i), &plan->forms[i],
                    i == (int)plan->form);
        add_variants(plan, &table, (enum plan_form)i);
    }
    (void)putchar('\n');
    grid_print(&table, stdout, work->invocation->color);
    grid_fini(&table);
}

/* Writes a merit in the unit of the objective. */
static struct cell merit_cell(const struct work *work, double merit)
{
    const struct figure energy = {.value = merit, .source = FIGURE_DECLARED};
    struct cell cell;
    switch (work->objective) {
    case PLAN_TIME:
        return time_cell(merit);
    case PLAN_ENERGY:
        (void)snprintf(cell.text, sizeof cell.text, "%s", cell_joules(&energy));
        return cell;
    case PLAN_PRICE:
    case PLAN_VALUE:
    case PLAN_OBJECTIVES:
        break;
    }
    (void)snprintf(cell.text, sizeof cell.text, "%.6g credits", merit / 1e6);
    return cell;
}

static void show_bound(const struct work *work)
{
    const struct plan *plan = work->plan;
    if (plan->bound <= 0) {
        (void)printf("lower bound  not known\n");
    } else if (plan->gap <= 1e-6) {
        (void)printf("lower bound  %s: proved, none is better\n",
                     merit_cell(work, plan->bound).text);
    } else {
        (void)printf("lower bound  %s: none is better by more than %.2g%%\n",
                     merit_cell(work, plan->bound).text, 100 * (1 - 1 / (1 + plan->gap)));
    }
}

static void show_single(const struct work *work)
{
    const struct plan *plan = work->plan;
    const struct plan_outcome *single = &plan->forms[PLAN_SINGLE];
    if (plan->single == PLAN_ANYWHERE || single->makespan_s.source == FIGURE_UNKNOWN) {
        (void)printf("best single  none: no device can do all of it\n");
        return;
    }
    (void)printf("best single  %s on %s: %.2f times as long\n",
                 time_cell(single->makespan_s.value).text, work_device(work, plan->single),
                 single->makespan_s.value / plan->total.makespan_s.value);
}

uint32_t work_below_bound(const struct work *work, const struct plan_row *row)
{
    uint32_t count = 0;
    for (uint32_t s = row->first_step; s < row->first_step + row->step_count; s++) {
        const struct history_summary *history =
            &work->histories[s * work->plan->device_count + row->device];
        struct step_cost found;
        size_t part = 0;
        if (history->count == 0 || row->is_left_out ||
            steps_cost(&work->costs[row->device], &work->steps->steps[s], &found, &part) !=
                COST_OK) {
            continue;
        }
        struct cost learnt = {
            .bound_s = found.bound_s, .time_s = found.time_s, .p90_s = found.p90_s};
        cost_learn(history, &learnt);
        count += learnt.time_s.value < found.bound_s.value;
    }
    return count;
}

static unsigned lacks_of(const struct work *work, uint32_t first, uint32_t count, uint32_t device)
{
    unsigned lacks = 0;
    for (uint32_t s = first; s < first + count; s++) {
        struct step_cost found;
        size_t part = 0;
        enum cost_status status =
            steps_cost(&work->costs[device], &work->steps->steps[s], &found, &part);
        lacks |= status == COST_OK                  ? found.lacks
                 : status == COST_UNKNOWN_BANDWIDTH ? COST_LACKS_BANDWIDTH
                                                    : 0;
    }
    return lacks;
}

bool work_lacks_rate(const struct work *work, const struct plan_row *row)
{
    return !row->is_left_out &&
           (lacks_of(work, row->first_step, row->step_count, row->device) & COST_LACKS_RATE) != 0;
}

const char *work_lacks(const struct work *work, uint32_t device)
{
    unsigned lacks = lacks_of(work, 0, (uint32_t)work->steps->step_count, device);
    return work->plan->uses[device].row_count > 0 ? NULL
           : (lacks & COST_LACKS_MEMORY) != 0     ? "memory"
           : (lacks & COST_LACKS_BANDWIDTH) != 0  ? "bandwidth"
                                                  : NULL;
}

/* Lists devices without a figure that they would need; alike devices appear once. */
static void show_unknown(const struct work *work)
{
    for (uint32_t i = 0; i < work->set->count; i++) {
        const struct device_set_item *item = &work->set->items[i];
        const char *lacks = work_lacks(work, i);
        bool is_first = i == 0 || item->known == NULL || item->known != item[-1].known;
        if (lacks != NULL && is_first) {
            (void)printf("not known    the %s of %s, which so does nothing that needs it; --figure "
                         "says it\n",
                         lacks, cell_plain(item->name));
        }
    }
}

/* Lists figures that the user gave beside or against the catalogue, because the plan depends on
 * them. */
static void show_said(const struct work *work)
{
    for (size_t i = 0; i < work->request.figure_count; i++) {
        const struct plan_file_figure *said = &work->request.figures[i];
        (void)printf("said         %s: %s %s (--figure)\n", cell_plain(said->device), said->name,
                     said->text);
    }
}

/* A cache may be faster than the memory, or the samples may be of another operation. The bound uses
 * the samples in both cases. */
static void show_below_bound(const struct work *work)
{
    for (size_t i = 0; i < work->plan->row_count; i++) {
        const struct plan_row *row = &work->plan->rows[i];
        const uint32_t count = work_below_bound(work, row);
        if (count > 0) {
            char label[WORK_LABEL_SIZE];
            work_label(work, row, label);
            (void)printf("below bound  %s on %s was measured to take less than the device needs by "
                         "its figures. The samples may be of another operation; the lower bound "
                         "uses them\n",
                         cell_plain(label), work_device(work, row->device));
            return; /* one row is enough */
        }
    }
}

/* Shows the savings that cost no time. */
static void show_slack(const struct work *work)
{
    const struct plan_slack *slack = &work->plan->slack;
    const struct figure energy = {.value = fabs(slack->saved_j), .source = FIGURE_DECLARED};
    if (slack->moved == 0) {
        return;
    }
    (void)printf("slack        %" PRIu32 " step%s that nobody waits for %s elsewhere:",
                 slack->moved, text_plural(slack->moved), slack->moved == 1 ? "is" : "are");
    if (slack->saved_micro > 0) {
        (void)printf(" %s credits less", price_cell(slack->saved_micro).text);
    }
    if (slack->saved_j != 0) {
        (void)printf("%s %s %s", slack->saved_micro > 0 ? "," : "", cell_joules(&energy),
                     slack->saved_j > 0 ? "less" : "more");
    }
    (void)printf(", and it ends no later\n");
}

/* Names the used devices that share one memory; the plan counts each as if alone. */
static void show_unified(const struct work *work)
{
    const struct plan_use *uses = work->plan->uses;
    for (size_t i = 0; i < work->set->count; i++) {
        size_t before = 0;
        size_t after = 0;
        for (size_t k = 0; k < work->set->count; k++) {
            const bool is_with = uses[k].row_count > 0 && device_set_are_unified(work->set, i, k);
            before += is_with && k < i;
            after += is_with && k > i;
        }
        if (uses[i].row_count > 0 && before == 0 && after > 0) {
            (void)printf(
                "one memory   %s and %zu more share one memory. Each is counted as if it had all "
                "of its size and bandwidth, so together they take longer\n",
                work_device(work, (uint32_t)i), after);
        }
    }
}

static bool is_same_risk(const struct spot_risk *a, const struct spot_risk *b)
{
    return a->per_hour == b->per_hour && a->restart_s == b->restart_s &&
           a->checkpoint_s == b->checkpoint_s;
}

/* Shows the assumed risk of devices that may be taken away; alike devices appear once. */
static void show_risks(const struct work *work)
{
    for (size_t i = 0; i < work->set->count; i++) {
        const struct spot_risk *risk = &work->devices[i].risk;
        const bool is_first = i == 0 || !is_same_risk(risk, &work->devices[i - 1].risk) ||
                              work->set->items[i].known != work->set->items[i - 1].known;
        if (!(risk->per_hour > 0) || !is_first) {
            continue;
        }
        (void)printf("taken away   %s: %.6g an hour, %s to begin again",
                     work_device(work, (uint32_t)i), risk->per_hour,
                     time_cell(risk->restart_s).text);
        if (risk->interval_s > 0) {
            (void)printf(", a checkpoint of %s every %s", time_cell(risk->checkpoint_s).text,
                         time_cell(risk->interval_s).text);
        }
        (void)printf("; times and prices are those expected\n");
    }
}

/* Returns true when a step is left out because the speed of storage is unknown. */
static bool misses_storage(const struct work *work)
{
    for (size_t i = 0; i < work->plan->row_count; i++) {
        const struct plan_row *row = &work->plan->rows[i];
        for (uint32_t s = row->first_step; s < row->first_step + row->step_count; s++) {
            const struct step *step = &work->steps->steps[s];
            struct step_cost cost;
            size_t part = 0;
            if (steps_cost(&work->costs[row->device], step, &cost, &part) == COST_NO_STORAGE) {
                return true;
            }
        }
    }
    return false;
}

/* Shows when sums are exchanged, for split work whose parts depend on each other. */
static void show_sums(const struct work *work)
{
    if (work->plan->form == PLAN_SPLIT &&
        template_replicas(work->template) != TEMPLATE_NO_PARAMETER) {
        (void)printf("sums         %s\n",
                     work->plan->sums_behind
                         ? "behind what is computed after them, as far as that lasts"
                         : "after all that is computed: nothing is while parts are summed");
    }
}

static void show_left_out(const struct work *work)
{
    const struct plan *plan = work->plan;
    if (plan->left_out > 0) {
        (void)printf("not counted  %" PRIu32 " step%s whose time no figure tells%s\n",
                     plan->left_out, text_plural(plan->left_out),
                     misses_storage(work) ? "; --storage says how fast data is loaded" : "");
    }
    if (plan->fallen_back > 0) {
        (void)printf("fallen back  %" PRIu32 " step%s cannot run where placed, and %s elsewhere\n",
                     plan->fallen_back, text_plural(plan->fallen_back),
                     plan->fallen_back == 1 ? "is" : "are");
    }
}

/* Shows whether work that begins anew after a period keeps to it. */
static void show_period(const struct work *work)
{
    double period_s = work->steps->period_s;
    double round_s = plan_round_s(work->plan);
    if (period_s > 0) {
        (void)printf("real time    anew every %s: %s, the busiest device or link takes %s\n",
                     time_cell(period_s).text, round_s <= period_s ? "kept" : "not kept",
                     time_cell(round_s).text);
    }
}

/* Shows the links of this set; a machine with one device has none. */
static void show_links(const struct work *work)
{
    const struct device_set_links *links = &work->set->links;
    const struct device_set_link *fabric = &links->wires[DEVICE_SET_FABRIC];
    const struct device_set_link *pcie = &links->wires[DEVICE_SET_PCIE];
    const struct device_set_link *peer = &links->wires[DEVICE_SET_PEER];
    const struct device_set_link *network = &links->wires[DEVICE_SET_NETWORK];
    char fabric_text[4 * FIGURE_SIZE] = "none";
    if (fabric->bandwidth != 0) {
        char rate[FIGURE_SIZE] = "as catalogued";
        if (fabric->bandwidth > 0) {
            (void)snprintf(rate, sizeof rate, "%.4g GB/s", fabric->bandwidth / 1e9);
        }
        (void)snprintf(fabric_text, sizeof fabric_text, "%s, %s%s", rate,
                       time_cell(fabric->latency_s).text,
                       work->request.fabric.has_latency ? "" : " (assumed)");
    }
    char peer_text[2 * FIGURE_SIZE] = "";
    if (peer->bandwidth > 0) {
        (void)snprintf(peer_text, sizeof peer_text, "; peer %.4g GB/s, %s", peer->bandwidth / 1e9,
                       time_cell(peer->latency_s).text);
    }
    (void)printf("links        pcie %.4g GB/s, %s%s%s; fabric %s; network %.4g GB/s, %s%s\n",
                 pcie->bandwidth / 1e9, time_cell(pcie->latency_s).text,
                 work->request.pcie.is_given ? "" : " (assumed)", peer_text, fabric_text,
                 network->bandwidth / 1e9, time_cell(network->latency_s).text,
                 work->request.network.is_given ? "" : " (assumed)");
}

static void show_figures(const struct work *work)
{
    const struct plan *plan = work->plan;
    const struct plan_outcome *total = &plan->total;
    (void)printf("\nmakespan     %s, %s found by %s", time_cell(total->makespan_s.value).text,
                 plan_form_name(plan->form), plan->found_by);
    if (plan->form == PLAN_PIPELINE) {
        (void)printf(", %" PRId64 " micro-batch%s of %" PRId64, plan->micro_batches,
                     plan->micro_batches == 1 ? "" : "es", plan->micro_batch_items);
    }
    (void)printf("\nestimated    from %s figures%s%s\n", work_source(&total->makespan_s),
                 total->makespan_s.unverified ? ", unverified ones among them" : "",
                 total->makespan_s.source != FIGURE_DECLARED ? ""
                 : work->classes != NULL
                     ? ": by the devices' owners, or of the catalogue; nobody else measured them"
                     : ": peaks, which real devices do not reach");
    if (total->p90_s > 0) {
        (void)printf("p90          %s\n", time_cell(total->p90_s).text);
    }
    show_period(work);
    show_bound(work);
    show_single(work);
    (void)printf("price        %s%s\n", price_cell(total->price_micro).text,
                 total->price_micro >= 0 ? " credits" : ": not known of all devices used");
    (void)printf("energy       %s%s\n", cell_joules(&total->energy_j),
                 total->energy_j.source == FIGURE_UNKNOWN ? ": not known of all devices used"
                 : total->counts_idle                     ? ""
                                                          : ", without idle time");
    show_sums(work);
    show_left_out(work);
    show_unknown(work);
    show_said(work);
    show_slack(work);
    show_below_bound(work);
    show_unified(work);
    show_risks(work);
    show_links(work);
}

/* Shows the parameters that differ from their usual values. */
static void show_head(const struct work *work)
{
    (void)printf("%s: %s; by %s on %zu device%s", work->template->name, work->template->meaning,
                 plan_objective_name(work->objective), work->set->count,
                 text_plural(work->set->count));
    for (size_t i = 0; i < template_parameters(work->template); i++) {
        char value[TEMPLATE_VALUE_SIZE];
        if (work->values[i] != work->template->parameters[i].usual) {
            template_write(work->template, i, work->values[i], value);
            (void)printf(", %s %s", work->template->parameters[i].name, value);
        }
    }
    (void)printf("\n\n");
}

void work_show(const struct work *work, unsigned width)
{
    const struct picture_style style = picture_style_of(work->invocation, width);
    show_head(work);
    show_rows(work);
    show_devices(work);
    picture_print(work_draw(work, &style));
    show_forms(work);
    show_figures(work);
}
