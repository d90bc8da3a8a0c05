/* This file shows a plan of work with its rows, devices, forms and figures, as tables and a
 * timeline. Nothing has run: every time is an estimate with its source beside it. */
#include "consumer/command/plan/work.h"

#include "base/text.h"
#include "consumer/command/plan/picture.h"
#include "consumer/command/plan/plan_model.h"
#include "consumer/command/show.h"
#include "planner/picture/picture_plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_SHOWN = 100, DEVICES_SHOWN = 32 };

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

static struct work_cell in_unit(double seconds, const struct unit *unit)
{
    struct work_cell cell;
    (void)snprintf(cell.text, sizeof cell.text, "%.4g", seconds / unit->seconds);
    return cell;
}

/* Writes a time such as "12.5 ms". */
struct work_cell work_time(double seconds)
{
    static const struct unit units[] = {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}};
    size_t at = 0;
    struct work_cell cell;
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

struct work_cell work_price(int64_t price_micro)
{
    struct work_cell cell = {"-"};
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

static struct work_cell source_cell(const struct work *work, const struct plan_row *row)
{
    struct work_cell cell;
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
    if (work->plan->names != NULL) {
        (void)snprintf(ret_label, WORK_LABEL_SIZE, "%s", work->plan->names[row - work->plan->rows]);
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

/* ---------------------------------------------------------------- drawing */

static void write_line(const struct work *work, char *ret_text, size_t capacity)
{
    const struct plan *plan = work->plan;
    (void)snprintf(ret_text, capacity, "%s, found by %s: %s", plan_form_name(plan->form),
                   plan->found_by, work_time(plan->total.makespan_s.value).text);
    if (plan->total.price_micro >= 0) {
        size_t used = strlen(ret_text);
        (void)snprintf(ret_text + used, capacity - used, ", %s credits",
                       cell_money(plan->total.price_micro));
    }
}

char *work_draw(const struct work *work, const struct picture_style *style)
{
    const struct plan *plan = work->plan;
    const struct unit unit = unit_of(work);
    struct picture_device devices[DEVICE_SET_MOST];
    char(*labels)[WORK_LABEL_SIZE] = calloc(plan->row_count + 1, sizeof *labels);
    const char **rows = calloc(plan->row_count + 1, sizeof *rows);
    struct picture *picture = NULL;
    char *text = NULL;
    for (uint32_t i = 0; i < work->set->count; i++) {
        devices[i] = (struct picture_device){.is_simulated = false};
        (void)snprintf(devices[i].label, sizeof devices[i].label, "%s", work_device(work, i));
    }
    for (size_t i = 0; labels != NULL && rows != NULL && i < plan->row_count; i++) {
        work_label(work, &plan->rows[i], labels[i]);
        rows[i] = labels[i];
    }
    if (labels != NULL && rows != NULL) {
        picture = picture_of_plan(&(struct picture_plan){.plan = plan,
                                                         .labels = rows,
                                                         .devices = devices,
                                                         .unit_s = unit.seconds,
                                                         .unit = unit.name});
    }
    if (picture != NULL) {
        char title[200];
        char line[300];
        (void)snprintf(title, sizeof title, "%s: %s", work->template->name,
                       work->template->meaning);
        write_line(work, line, sizeof line);
        picture->title = title;
        picture->line = line;
        text = style != NULL ? picture_timeline(picture, style) : picture_svg(picture);
    }
    picture_destroy(&picture);
    free(rows);
    free(labels);
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
    (void)snprintf(start_title, sizeof start_title, "START %s", unit.name);
    (void)snprintf(time_title, sizeof time_title, "TIME %s", unit.name);
    struct grid table = grid_of(8, titles, "llrrrrrl");
    for (size_t i = 0; i < shown; i++) {
        const struct plan_row *row = &plan->rows[i];
        char label[WORK_LABEL_SIZE];
        struct work_cell start = in_unit(row->start_s, &unit);
        struct work_cell time = in_unit(row->busy_s, &unit);
        struct work_cell cost = work_price(row->price_micro);
        struct work_cell source = source_cell(work, row);
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
        struct work_cell price = work_price(use->price_micro);
        (void)snprintf(rows, sizeof rows, "%" PRIu32, use->row_count);
        (void)snprintf(share, sizeof share, "%d%%", plan_use_percent(use));
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
    struct work_cell time = work_time(outcome->makespan_s.value);
    struct work_cell price = work_price(is_known ? outcome->price_micro : -1);
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
static struct work_cell merit_cell(const struct work *work, double merit)
{
    const struct figure energy = {.value = merit, .source = FIGURE_DECLARED};
    struct work_cell cell;
    switch (work->objective) {
    case PLAN_TIME:
        return work_time(merit);
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
                 work_time(single->makespan_s.value).text, work_device(work, plan->single),
                 single->makespan_s.value / plan->total.makespan_s.value);
}

/* Shows whether work that begins anew after a period keeps to it. */
static void show_period(const struct work *work)
{
    double period_s = work->steps->period_s;
    double round_s = plan_round_s(work->plan);
    if (period_s > 0) {
        (void)printf("real time    anew every %s: %s, the busiest device or link takes %s\n",
                     work_time(period_s).text, round_s <= period_s ? "kept" : "not kept",
                     work_time(round_s).text);
    }
}

static void show_figures(const struct work *work)
{
    const struct plan *plan = work->plan;
    const struct plan_outcome *total = &plan->total;
    (void)printf("\nmakespan     %s, %s found by %s", work_time(total->makespan_s.value).text,
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
        (void)printf("p90          %s\n", work_time(total->p90_s).text);
    }
    show_period(work);
    show_bound(work);
    show_single(work);
    (void)printf("price        %s%s\n", work_price(total->price_micro).text,
                 total->price_micro >= 0 ? " credits" : ": not known of all devices used");
    (void)printf("energy       %s%s\n", cell_joules(&total->energy_j),
                 total->energy_j.source == FIGURE_UNKNOWN ? ": not known of all devices used"
                 : total->counts_idle                     ? ""
                                                          : ", without idle time");
    work_show_notes(work);
}

/* Says that no job follows the plan, and what runs instead. */
static void show_plan_only(const struct work *work)
{
    static const struct {
        const char *template, *runs;
    } runs[] = {
        {"matmul", "`bourse run matmul A.npy B.npy -o C.npy` multiplies matrices on the market"},
        {"llm", "`bourse run MODEL.onnx --prompt TEXT` runs a language model on the market"},
        {"train", "`bourse train MODEL.onnx` trains a small model on the market"},
    };
    const char *instead = "no job runs these steps";
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        instead = strcmp(work->template->name, runs[i].template) == 0 ? runs[i].runs : instead;
    }
    (void)printf("plan only: %s\n", instead);
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
    if (work->model != NULL) {
        plan_model_show(work);
    } else {
        show_plan_only(work);
    }
    show_head(work);
    show_rows(work);
    show_devices(work);
    picture_print(work_draw(work, &style));
    show_forms(work);
    show_figures(work);
}
