/* This file runs `plan FILE|JOB`, which plans a job on the present offers or the rest of one on its
 * leases. The output has the form of a plan of work (work_show.c). Unknown figures stay unknown. */
#include "consumer/command/job/offer.h"
#include "consumer/command/plan/picture.h"
#include "consumer/command/show.h"
#include "consumer/job/job_plan.h"
#include "consumer/job/manifest.h"
#include "consumer/job/submit.h"

#include "base/cleanup.h"
#include "base/text.h"
#include "planner/picture/picture_list_schedule.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS_SHOWN = 100, PLACES_SHOWN = 32, SCHEDULE_MOST = 10000, CELL = 96 };

struct planned { /* everything that is shown */
    struct invocation *invocation;
    struct bourse_job *job;
    struct offer offer;
    struct bourse_jobs *jobs; /* the job's row; NULL: a job file */
    struct job_plan *plan;
    int64_t *costs; /* by subtask */
};

enum source {                   /* basis of a subtask's time */
              SOURCE_MEASURED,  /* on devices of the same instrument, or any if unknown */
              SOURCE_ELSEWHERE, /* on other devices */
              SOURCE_DECLARED,
              SOURCE_GUESS,
              SOURCES,
};

static const struct bourse_job_row *row_of(const struct planned *planned)
{
    return planned->jobs == NULL ? NULL : bourse_jobs_row(planned->jobs, 0);
}

static size_t part_of(const struct bourse_job *job, uint32_t index)
{
    size_t part = 0;
    for (uint32_t end = job->parts[0].subtasks; index >= end; end += job->parts[part].subtasks) {
        part++;
    }
    return part;
}

/* ---------------------------------------------------------------- names and figures */

/* Writes "box/cpu", or the price of a place without a name. */
static void write_place(const struct supply_place *place, char ret_text[CELL])
{
    if (place->label[0] != '\0') {
        (void)snprintf(ret_text, CELL, "%s%.80s", place->is_simulated ? "SIM " : "",
                       cell_plain(place->label));
    } else {
        (void)snprintf(ret_text, CELL, "%s %.32s",
                       place->providers == 0 ? "taken at" : "offered at",
                       cell_money(place->slots.price_micro));
    }
}

static void write_subtask(const struct planned *planned, uint32_t index, char ret_text[CELL])
{
    const char *name = job_plan_name(planned->plan, index);
    if (name != NULL) {
        (void)snprintf(ret_text, CELL, "%.90s", cell_plain(name));
    } else {
        (void)snprintf(ret_text, CELL, "%" PRIu32, index);
    }
}

static enum source said_source(const struct planned *planned, uint32_t index)
{
    const struct bourse_job *job = planned->job;
    const struct job_file *file = job->file;
    const bool is_said = job->order != NULL && index < file->task_count
                             ? file->tasks[job->order[index]].expect_ms != JOB_ABSENT
                             : !planned->offer.summary.expect_is_guess;
    return is_said ? SOURCE_DECLARED : SOURCE_GUESS;
}

static struct history_figure figure_of(const struct planned *planned, uint32_t index)
{
    const struct supply *supply = planned->plan->supply;
    const uint32_t device = planned->plan->schedule->runs[index].device;
    return supply_figure(planned->job, supply, supply->places[device].slots.of_class,
                         part_of(planned->job, index), index);
}

/* `ret_samples` counts the measured samples. */
static enum source source_of(const struct planned *planned, uint32_t index, uint64_t *ret_samples)
{
    const struct supply *supply = planned->plan->supply;
    const size_t part = part_of(planned->job, index);
    const uint64_t here = figure_of(planned, index).samples;
    const uint64_t all = supply_figure(planned->job, supply, 0, part, index).samples;
    *ret_samples = here > 0 ? here : all;
    return here > 0 ? SOURCE_MEASURED : all > 0 ? SOURCE_ELSEWHERE : said_source(planned, index);
}

static const char *const source_names[SOURCES] = {"measured", "measured elsewhere", "declared",
                                                  "guess"};

static void write_source(const struct planned *planned, uint32_t index, char ret_text[CELL])
{
    uint64_t samples = 0;
    const enum source source = source_of(planned, index, &samples);
    const char *pace = figure_of(planned, index).is_at_pace ? ", at its pace" : "";
    if (source <= SOURCE_ELSEWHERE) {
        (void)snprintf(ret_text, CELL, "measured (%" PRIu64 ")%s%s", samples,
                       source == SOURCE_ELSEWHERE ? " elsewhere" : "", pace);
    } else {
        (void)snprintf(ret_text, CELL, "%s%s", source_names[source], pace);
    }
}

/* Counts the subtasks by the source of their time. */
static void count_sources(const struct planned *planned, uint32_t ret_counts[SOURCES])
{
    memset(ret_counts, 0, SOURCES * sizeof *ret_counts);
    for (uint32_t i = 0; i < planned->plan->schedule->subtasks; i++) {
        uint64_t samples = 0;
        ret_counts[source_of(planned, i, &samples)]++;
    }
}

/* The weakest source of all subtasks counts. */
static const char *whole_source(const struct planned *planned)
{
    uint32_t counts[SOURCES];
    size_t worst = SOURCE_MEASURED;
    count_sources(planned, counts);
    for (size_t i = 0; i < SOURCES; i++) {
        worst = counts[i] > 0 ? i : worst;
    }
    return source_names[worst];
}

/* Returns the energy of `slot_ns` on a place: the slots' share of the device's power at full load,
 * from the catalogue. */
static struct figure energy_of(const struct planned *planned, size_t number, int64_t slot_ns)
{
    struct figure energy = supply_power(&planned->plan->supply->places[number]);
    energy.value *= (double)slot_ns / NS_PER_S;
    return energy;
}

static int64_t slot_ns_of(const struct planned *planned, uint32_t index)
{
    const struct list_schedule_run *run = &planned->plan->schedule->runs[index];
    return (run->end_ns - run->start_ns) * planned->job->parts[part_of(planned->job, index)].slots;
}

/* The sum is unknown when any used place is unknown. */
static struct figure whole_energy(const struct planned *planned)
{
    const struct list_schedule *schedule = planned->plan->schedule;
    struct figure sum = {.source = FIGURE_DECLARED};
    for (size_t i = 0; i < schedule->device_count; i++) {
        const struct figure energy = energy_of(planned, i, schedule->uses[i].slot_ns);
        if (schedule->uses[i].subtasks > 0) {
            sum.source = energy.source == FIGURE_UNKNOWN ? FIGURE_UNKNOWN : sum.source;
            sum.value += energy.value;
            sum.unverified = sum.unverified || energy.unverified;
        }
    }
    return sum;
}

static json_t *json_energy(const struct figure *energy)
{
    return energy->source == FIGURE_UNKNOWN ? json_null() : json_real(energy->value);
}

/* Divides each place's cost among its subtasks exactly. Returns false when memory is short. */
static bool share_costs(struct planned *planned)
{
    const struct list_schedule *schedule = planned->plan->schedule;
    int64_t *slot_ns = calloc(schedule->device_count, sizeof *slot_ns); /* of earlier subtasks */
    int64_t *shared = calloc(schedule->device_count, sizeof *shared);
    planned->costs = calloc(schedule->subtasks, sizeof *planned->costs);
    const bool has_room = slot_ns != NULL && shared != NULL && planned->costs != NULL;
    for (uint32_t i = 0; has_room && i < schedule->subtasks; i++) {
        const struct list_schedule_run *run = &schedule->runs[i];
        const struct supply_place *place = &planned->plan->supply->places[run->device];
        int64_t cost_micro = 0;
        slot_ns[run->device] += slot_ns_of(planned, i);
        const bool fits = checked_muldiv_ceil(slot_ns[run->device], place->slots.price_micro,
                                              NS_PER_HOUR, &cost_micro);
        assert(fits); /* at most the place's cost, which fits */
        planned->costs[i] = cost_micro - shared[run->device];
        shared[run->device] = cost_micro;
    }
    free(slot_ns);
    free(shared);
    return has_room;
}

/* Returns the bytes that come to a place: each subtask's own inputs, and the shared files once.
 * Files between subtasks have no known size. */
static uint64_t bytes_to(const struct planned *planned, size_t place)
{
    const struct list_schedule *schedule = planned->plan->schedule;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < schedule->subtasks; i++) {
        if (schedule->runs[i].device == place) {
            bytes += (uint64_t)manifest_own_bytes(planned->plan->manifest, i);
        }
    }
    return schedule->uses[place].subtasks == 0
               ? 0
               : bytes + (uint64_t)manifest_shared_bytes(planned->plan->manifest);
}

static bool hands_on(const struct planned *planned)
{
    bool hands = false;
    for (uint32_t i = 0; i < planned->plan->schedule->subtasks && !hands; i++) {
        hands = manifest_takes_files(planned->plan->manifest, i);
    }
    return hands;
}

static double gap_of(const struct list_schedule *schedule)
{
    return (double)schedule->makespan_ns / (double)schedule->bound_ns - 1;
}

/* ---------------------------------------------------------------- drawing */

static const struct picture_words words = {
    .thing = "subtask", .things = "subtasks", .more_group = "devices"};

struct drawing {
    struct picture picture;
    const char **names;
    char title[300], line[300];
};

static void drawing_fini(struct drawing *drawing)
{
    free(drawing->picture.groups);
    free(drawing->picture.bars);
    free(drawing->names);
}

static bool name_subtasks(const struct planned *planned, struct drawing *drawing)
{
    const uint32_t count = planned->plan->schedule->subtasks;
    if (job_plan_name(planned->plan, 0) == NULL) {
        return true; /* the subtasks have numbers */
    }
    drawing->names = calloc(count, sizeof *drawing->names);
    for (uint32_t i = 0; drawing->names != NULL && i < count; i++) {
        const char *name = job_plan_name(planned->plan, i);
        drawing->names[i] = name != NULL ? name : "";
    }
    drawing->picture.names = drawing->names;
    return drawing->names != NULL;
}

static bool draw(const struct planned *planned, struct drawing *drawing)
{
    const struct job_plan *plan = planned->plan;
    const struct list_schedule *schedule = plan->schedule;
    struct picture *picture = &drawing->picture;
    *picture = (struct picture){.title = drawing->title,
                                .line = drawing->line,
                                .note = "Planned: nothing has run. Times are estimates.",
                                .words = &words,
                                .until = schedule->makespan_ns,
                                .span = schedule->makespan_ns,
                                .expected = -1,
                                .group_count = schedule->device_count,
                                .bar_count = schedule->subtasks};
    picture->groups = calloc(picture->group_count, sizeof *picture->groups);
    picture->bars = calloc(picture->bar_count, sizeof *picture->bars);
    if (picture->groups == NULL || picture->bars == NULL || !name_subtasks(planned, drawing)) {
        return false;
    }
    for (size_t i = 0; i < schedule->device_count; i++) {
        picture->groups[i].lanes = schedule->uses[i].lanes;
        picture->groups[i].is_simulated = plan->supply->places[i].is_simulated;
        char label[CELL];
        write_place(&plan->supply->places[i], label);
        (void)snprintf(picture->groups[i].label, sizeof picture->groups[i].label, "%s", label);
    }
    picture_list_schedule(schedule, 0, 0, picture->bars);
    (void)snprintf(drawing->title, sizeof drawing->title, "%.200s", planned->offer.summary.name);
    (void)snprintf(drawing->line, sizeof drawing->line,
                   "%" PRIu32 " subtasks on %" PRIu32 " lanes: %s, %s credits; none is below %s",
                   schedule->subtasks, schedule->lanes, cell_duration_ns(schedule->makespan_ns),
                   cell_money(schedule->cost_micro), cell_duration_ns(schedule->bound_ns));
    return true;
}

/* Returns NULL when memory is short. `style` NULL draws SVG. */
static char *draw_text(const struct planned *planned, const struct picture_style *style)
{
    struct drawing drawing = {.names = NULL};
    char *text = NULL;
    if (draw(planned, &drawing)) {
        text = style != NULL ? picture_timeline(&drawing.picture, style)
                             : picture_svg(&drawing.picture);
    }
    drawing_fini(&drawing);
    return text;
}

/* ---------------------------------------------------------------- tables */

static void say_others(size_t count, const char *what)
{
    if (count > 0) {
        (void)printf("and %zu more %s%s: --json has them\n", count, what, text_plural(count));
    }
}

static void add_subtask(const struct planned *planned, struct grid *table, uint32_t index)
{
    const struct list_schedule_run *run = &planned->plan->schedule->runs[index];
    const int64_t bytes = manifest_own_bytes(planned->plan->manifest, index);
    const bool takes = manifest_takes_files(planned->plan->manifest, index);
    char name[CELL];
    char place[CELL];
    char source[CELL];
    const struct figure energy = energy_of(planned, run->device, slot_ns_of(planned, index));
    write_subtask(planned, index, name);
    write_place(&planned->plan->supply->places[run->device], place);
    write_source(planned, index, source);
    const char *cells[] = {name,
                           place,
                           cell_duration_ns(run->start_ns),
                           cell_duration_ns(run->end_ns - run->start_ns),
                           takes       ? "unknown"
                           : bytes > 0 ? cell_bytes((uint64_t)bytes)
                                       : "-",
                           cell_joules(&energy),
                           cell_money(planned->costs[index]),
                           source};
    grid_add(table, cells);
}

/* Shows each subtask, in the order of submission. */
static void show_subtasks(const struct planned *planned)
{
    static const char *const titles[] = {"SUBTASK", "DEVICE", "START", "TIME",
                                         "IN",      "ENERGY", "PRICE", "TIME IS"};
    const struct list_schedule *schedule = planned->plan->schedule;
    const uint32_t shown = schedule->subtasks <= ROWS_SHOWN ? schedule->subtasks : ROWS_SHOWN;
    struct grid table = grid_of(8, titles, "llrrrrrl");
    for (uint32_t i = 0; i < shown; i++) {
        add_subtask(planned, &table, i);
    }
    grid_print(&table, stdout, planned->invocation->color);
    grid_fini(&table);
    say_others(schedule->subtasks - shown, "subtask");
}

struct share { /* the work of one place in a part */
    uint32_t subtasks;
    uint32_t first; /* one of its subtasks */
    int64_t slot_ns;
    int64_t first_ns, busy_ns, cost_micro, bytes;
};

static void add_share(const struct planned *planned, struct grid *table, size_t part, size_t place,
                      const struct share *share)
{
    char what[CELL];
    char on[CELL];
    char source[CELL];
    (void)snprintf(what, sizeof what, "%" PRIu32 " of part %zu", share->subtasks, part + 1);
    if (planned->job->part_count == 1) {
        (void)snprintf(what, sizeof what, "%" PRIu32 " of %" PRIu64, share->subtasks,
                       planned->job->subtasks);
    }
    write_place(&planned->plan->supply->places[place], on);
    write_source(planned, share->first, source);
    const struct figure energy = energy_of(planned, place, share->slot_ns);
    const char *cells[] = {what,
                           on,
                           cell_duration_ns(share->first_ns),
                           cell_duration_ns(share->busy_ns),
                           share->bytes > 0 ? cell_bytes((uint64_t)share->bytes) : "-",
                           cell_joules(&energy),
                           cell_money(share->cost_micro),
                           source};
    grid_add(table, cells);
}

/* A job of many alike subtasks shows one row for each place and part. */
static void show_parts(const struct planned *planned)
{
    static const char *const titles[] = {"SUBTASKS", "DEVICE", "START", "WORK",
                                         "IN",       "ENERGY", "PRICE", "TIME IS"};
    const struct list_schedule *schedule = planned->plan->schedule;
    const size_t places = schedule->device_count;
    struct share *shares = calloc(planned->job->part_count * places, sizeof *shares);
    struct grid table = grid_of(8, titles, "llrrrrrl");
    size_t shown = 0;
    for (uint32_t i = 0; shares != NULL && i < schedule->subtasks; i++) {
        const struct list_schedule_run *run = &schedule->runs[i];
        struct share *share = &shares[part_of(planned->job, i) * places + run->device];
        const bool is_first = share->subtasks++ == 0;
        share->first_ns =
            is_first || run->start_ns < share->first_ns ? run->start_ns : share->first_ns;
        share->first = i;
        share->slot_ns += slot_ns_of(planned, i);
        share->busy_ns += run->end_ns - run->start_ns;
        share->cost_micro += planned->costs[i];
        share->bytes += manifest_own_bytes(planned->plan->manifest, i);
    }
    for (size_t i = 0; shares != NULL && i < planned->job->part_count * places; i++) {
        if (shares[i].subtasks > 0 && shown++ < ROWS_SHOWN) {
            add_share(planned, &table, i / places, i % places, &shares[i]);
        }
    }
    grid_print(&table, stdout, planned->invocation->color);
    grid_fini(&table);
    say_others(shown > ROWS_SHOWN ? shown - ROWS_SHOWN : 0, "share");
    free(shares);
}

static void show_places(const struct planned *planned)
{
    static const char *const titles[] = {"DEVICE", "SUBTASKS", "LANES", "SHARE",
                                         "IN",     "ENERGY",   "HOUR",  "PRICE"};
    const struct list_schedule *schedule = planned->plan->schedule;
    struct grid table = grid_of(8, titles, "lrrrrrrr");
    size_t used = 0;
    size_t idle = 0;
    for (size_t i = 0; i < schedule->device_count; i++) {
        const struct list_schedule_use *use = &schedule->uses[i];
        idle += use->subtasks == 0;
        if (use->subtasks == 0 || used++ >= PLACES_SHOWN) {
            continue;
        }
        const double possible_ns = (double)schedule->makespan_ns * use->lanes;
        const struct figure energy = energy_of(planned, i, use->slot_ns);
        char place[CELL];
        char share[16];
        write_place(&planned->plan->supply->places[i], place);
        (void)snprintf(share, sizeof share, "%.0f%%",
                       floor(100 * (double)use->busy_ns / possible_ns));
        const char *cells[] = {place,
                               cell_count(use->subtasks),
                               cell_count(use->lanes),
                               share,
                               cell_bytes(bytes_to(planned, i)),
                               cell_joules(&energy),
                               cell_money(planned->plan->supply->places[i].slots.price_micro),
                               cell_money(use->cost_micro)};
        grid_add(&table, cells);
    }
    (void)putchar('\n');
    grid_print(&table, stdout, planned->invocation->color);
    grid_fini(&table);
    say_others(used > PLACES_SHOWN ? used - PLACES_SHOWN : 0, "device");
    if (idle > 0) {
        (void)printf("not used: %zu that %s on offer, too\n", idle, idle == 1 ? "is" : "are");
    }
}

/* ---------------------------------------------------------------- figures */

static void show_estimates(const struct planned *planned)
{
    static const char *const texts[SOURCES] = {
        "was measured on devices of the same make", "was measured on other devices", "is declared",
        "is a guess: nobody measured it, and the job does not say `expect`"};
    const struct job_plan *plan = planned->plan;
    uint32_t counts[SOURCES];
    const char *between = "";
    count_sources(planned, counts);
    (void)printf("estimated    ");
    for (size_t i = 0; i < SOURCES; i++) {
        if (counts[i] == plan->schedule->subtasks) {
            (void)printf("from what %s", texts[i]);
        } else if (counts[i] > 0) {
            (void)printf("%s%" PRIu32 " from what %s", between, counts[i], texts[i]);
            between = "; ";
        }
    }
    (void)printf("%s\n", counts[SOURCE_MEASURED] > 0 ? "" : ", alike on all devices");
    if (plan->p90_ns >= 0) {
        (void)printf("p90          %s, if every subtask took its 90th percentile\n",
                     cell_duration_ns(plan->p90_ns));
    } else {
        (void)printf("p90          unknown: not all work was measured 5 times\n");
    }
}

static void show_bound(const struct list_schedule *schedule)
{
    const char *bound = cell_duration_ns(schedule->bound_ns);
    if (schedule->makespan_ns == schedule->bound_ns) {
        (void)printf("lower bound  %s: proved, none is better\n", bound);
    } else {
        (void)printf("lower bound  %s: none is better by more than %.2g%%\n", bound,
                     100 * (1 - (double)schedule->bound_ns / (double)schedule->makespan_ns));
    }
}

static void show_single(const struct job_plan *plan)
{
    if (plan->single == plan->supply->count) {
        (void)printf("best single  none: no device can do all of it\n");
        return;
    }
    char place[CELL];
    write_place(&plan->supply->places[plan->single], place);
    (void)printf("best single  %s on %s: %.2f times as long\n", cell_duration_ns(plan->single_ns),
                 place, (double)plan->single_ns / (double)plan->schedule->makespan_ns);
}

static void show_figures(const struct planned *planned)
{
    const struct list_schedule *schedule = planned->plan->schedule;
    const struct figure energy = whole_energy(planned);
    uint64_t bytes = 0;
    for (size_t i = 0; i < schedule->device_count; i++) {
        bytes += bytes_to(planned, i);
    }
    (void)printf("\nmakespan     %s%s, %" PRIu32 " subtask%s on %" PRIu32 " lane%s\n",
                 cell_duration_ns(schedule->makespan_ns),
                 planned->plan->is_on_leases      ? " on the leases that it has"
                 : planned->plan->supply->is_busy ? ", once all that fits is free"
                                                  : "",
                 schedule->subtasks, text_plural(schedule->subtasks), schedule->lanes,
                 text_plural(schedule->lanes));
    show_estimates(planned);
    show_bound(schedule);
    show_single(planned->plan);
    (void)printf("price        %s credits\n", cell_money(schedule->cost_micro));
    if (energy.source == FIGURE_UNKNOWN) {
        (void)printf(
            "energy       -: not known of all devices used; what subtasks use is known once "
            "they have run\n");
    } else {
        (void)printf(
            "energy       %s%s, of slots that are busy, as if at their device's full load\n",
            cell_joules(&energy), energy.unverified ? "?" : "");
    }
    (void)printf("moved        %s in%s\n\n", cell_bytes(bytes),
                 hands_on(planned) ? ", and what subtasks hand on, which is not known" : "");
}

static void show_left(const struct planned *planned)
{
    const struct bourse_job_row *row = row_of(planned);
    if (row != NULL) {
        (void)printf("job %.8s (%s): %s, %" PRIu32 " of %" PRIu32
                     " accepted; planned is what is left\n",
                     row->id, cell_plain(row->name), row->state_text, row->accepted, row->subtasks);
    }
}

static void show_all(const struct planned *planned, unsigned width)
{
    const struct picture_style style = picture_style_of(planned->invocation, width);
    show_left(planned);
    offer_show_job(stdout, &planned->offer);
    if (planned->plan->schedule != NULL) {
        (void)putchar('\n');
        if (planned->plan->schedule->subtasks <= PLACES_SHOWN ||
            job_plan_name(planned->plan, 0) != NULL) {
            show_subtasks(planned);
        } else {
            show_parts(planned);
        }
        show_places(planned);
        picture_print(draw_text(planned, &style));
        show_figures(planned);
    } else if (planned->plan->is_too_large) {
        (void)printf("  timeline      none: more than %d subtasks are not laid out one by one\n",
                     LIST_SCHEDULE_SUBTASKS);
    }
    if (!planned->plan->is_on_leases) {
        offer_show_quote(stdout, &planned->offer);
    }
}

/* ---------------------------------------------------------------- JSON */

static double seconds_of(int64_t ns)
{
    return (double)ns / NS_PER_S;
}

/* A subtask is ready when all tasks before it have ended; then it waits for slots. */
static double *ready_times(const struct planned *planned)
{
    const struct order_graph *graph = &planned->job->graph;
    const struct list_schedule *schedule = planned->plan->schedule;
    double *ready_s = calloc(schedule->subtasks, sizeof *ready_s);
    size_t edge = 0;
    const uint32_t waiting = graph->after_count != NULL ? graph->count : 0;
    for (uint32_t i = 0; ready_s != NULL && waiting == schedule->subtasks && i < waiting; i++) {
        for (uint32_t k = 0; k < graph->after_count[i]; k++) {
            const double end_s = seconds_of(schedule->runs[graph->after[edge++]].end_ns);
            ready_s[i] = end_s > ready_s[i] ? end_s : ready_s[i];
        }
    }
    return ready_s;
}

static json_t *json_schedule(const struct planned *planned)
{
    const struct list_schedule *schedule = planned->plan->schedule;
    double *ready_s = ready_times(planned);
    json_t *list = json_array();
    for (uint32_t i = 0; ready_s != NULL && i < schedule->subtasks && i < SCHEDULE_MOST; i++) {
        const struct list_schedule_run *run = &schedule->runs[i];
        const bool takes = manifest_takes_files(planned->plan->manifest, i);
        const char *name = job_plan_name(planned->plan, i);
        uint64_t samples = 0;
        const enum source source = source_of(planned, i, &samples);
        const struct figure energy = energy_of(planned, run->device, slot_ns_of(planned, i));
        json_t *value = json_pack(
            "{s:i, s:i, s:i, s:f, s:f, s:f, s:s, s:I, s:o, s:o, s:I, s:b}", "subtask", (int)i,
            "device", (int)run->device, "lane", (int)run->lane, "ready_s", ready_s[i], "start_s",
            seconds_of(run->start_ns), "finish_s", seconds_of(run->end_ns), "source",
            source_names[source], "samples", (json_int_t)samples, "bytes_in",
            takes ? json_null()
                  : json_integer((json_int_t)manifest_own_bytes(planned->plan->manifest, i)),
            "energy_j", json_energy(&energy), "price_micro", (json_int_t)planned->costs[i],
            "at_pace", (int)figure_of(planned, i).is_at_pace);
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
    const struct list_schedule *schedule = planned->plan->schedule;
    json_t *list = json_array();
    for (size_t i = 0; i < schedule->device_count; i++) {
        const struct supply_place *place = &planned->plan->supply->places[i];
        const struct list_schedule_use *use = &schedule->uses[i];
        const double possible_ns = (double)schedule->makespan_ns * use->lanes;
        const struct figure energy = energy_of(planned, i, use->slot_ns);
        json_t *value = json_pack(
            "{s:o, s:o, s:b, s:b, s:i, s:I, s:i, s:i, s:f, s:f, s:I, s:o, s:I}", "device",
            place->label[0] != '\0' ? json_string(cell_plain(place->label)) : json_null(),
            "instrument",
            place->instrument[0] != '\0' ? json_string(cell_plain(place->instrument)) : json_null(),
            "simulated", (int)place->is_simulated, "taken", (int)(place->providers == 0), "slots",
            (int)place->slots.slots, "hour_micro", (json_int_t)place->slots.price_micro, "subtasks",
            (int)use->subtasks, "lanes", (int)use->lanes, "busy_s", seconds_of(use->busy_ns),
            "share", use->lanes > 0 ? (double)use->busy_ns / possible_ns : 0.0, "bytes_in",
            (json_int_t)bytes_to(planned, i), "energy_j", json_energy(&energy), "price_micro",
            (json_int_t)use->cost_micro);
        (void)json_array_append_new(list, value);
    }
    return list;
}

static json_t *json_single(const struct job_plan *plan)
{
    return plan->single == plan->supply->count
               ? json_null()
               : json_pack("{s:i, s:f}", "device", (int)plan->single, "makespan_s",
                           seconds_of(plan->single_ns));
}

static int show_json(const struct planned *planned, int status)
{
    const struct job_plan *plan = planned->plan;
    const struct bourse_job_row *row = row_of(planned);
    json_t *value = offer_json(&planned->offer);
    (void)json_object_set_new(value, "job", row != NULL ? json_string(row->id) : json_null());
    (void)json_object_set_new(value, "on_leases", json_boolean(plan->is_on_leases));
    if (plan->schedule != NULL) {
        const struct list_schedule *schedule = plan->schedule;
        const struct figure energy = whole_energy(planned);
        (void)json_object_update_new(
            value, json_pack("{s:f, s:o, s:f, s:f, s:I, s:o, s:i, s:s, s:o, s:o, s:o, s:b}",
                             "makespan_s", seconds_of(schedule->makespan_ns), "p90_s",
                             plan->p90_ns < 0 ? json_null() : json_real(seconds_of(plan->p90_ns)),
                             "lower_bound", seconds_of(schedule->bound_ns), "gap", gap_of(schedule),
                             "price_micro", (json_int_t)schedule->cost_micro, "energy_j",
                             json_energy(&energy), "lanes", (int)schedule->lanes, "source",
                             whole_source(planned), "best_single", json_single(plan), "schedule",
                             json_schedule(planned), "devices", json_places(planned), "hands_on",
                             (int)hands_on(planned), "as_if_free", (int)plan->supply->is_busy));
    } else {
        (void)json_object_set_new(value, "makespan_s", json_null());
    }
    return json_print(value, status);
}

/* ---------------------------------------------------------------- the command */

/* Loads a file of that name, else a job with work left. Returns false after a message. */
static bool load(struct planned *planned, int *ret_status)
{
    struct invocation *invocation = planned->invocation;
    const char *word = invocation->words[0];
    const bool may_be_job = strchr(word, '/') == NULL && strchr(word, '.') == NULL;
    char id[BOURSE_ID_SIZE];
    struct bourse_error error;
    if (access(word, F_OK) == 0 || !may_be_job) {
        const bool is_loaded = bourse_job_load(word, &planned->job, &error);
        *ret_status = is_loaded ? BOURSE_OK : complain_with(invocation, &error);
        return is_loaded && command_connect(invocation, ret_status);
    }
    if (!command_connect(invocation, ret_status) ||
        !command_resolve_job(invocation, word, id, ret_status)) {
        return false;
    }
    if (!bourse_jobs(invocation->bourse, id, &planned->jobs, &error) ||
        !resume_to_plan(invocation->bourse, id, &planned->job, &error)) {
        *ret_status = complain_with(invocation, &error);
        return false;
    }
    if (row_of(planned)->budget_micro == 0) {
        planned->job->file->budget_micro = 0; /* the job takes only donated slots */
    }
    return true;
}

static bool make(struct planned *planned, int *ret_status)
{
    struct bourse_error error;
    struct offer *offer = &planned->offer;
    offer->job = planned->job;
    offer->parts = calloc(SUBMIT_QUOTES, sizeof *offer->parts);
    if (offer->parts == NULL) {
        *ret_status = complain(planned->invocation, BOURSE_LOCAL, "out of memory");
        return false;
    }
    if (!offer_make(planned->invocation, offer, ret_status)) {
        return false;
    }
    if (planned->jobs != NULL) {
        offer->summary.continues[0] = '\0'; /* the plan is of the job itself */
    }
    if (!job_plan_make(planned->invocation->bourse, planned->job, offer->parts, row_of(planned),
                       &planned->plan, &error)) {
        *ret_status = complain_with(planned->invocation, &error);
        return false;
    }
    if (planned->plan->schedule != NULL && !share_costs(planned)) {
        *ret_status = complain(planned->invocation, BOURSE_LOCAL, "out of memory");
        return false;
    }
    return true;
}

static int show(struct planned *planned, unsigned width, const char *svg)
{
    struct invocation *invocation = planned->invocation;
    int status = planned->plan->is_on_leases ? BOURSE_OK : offer_status(&planned->offer);
    if (svg != NULL && planned->plan->schedule == NULL) {
        return complain(invocation, BOURSE_NO_MATCH,
                        planned->plan->is_too_large
                            ? "there is no timeline of more than 1048576 subtasks"
                            : "nothing on offer fits, so that there is no timeline");
    }
    if (svg != NULL) {
        int written = BOURSE_OK;
        if (!picture_write(invocation, svg, draw_text(planned, NULL), &written)) {
            return written;
        }
    }
    if (invocation->json) {
        return show_json(planned, status);
    }
    if (invocation->quiet) {
        (void)printf("%s\n", cell_money(planned->offer.quote.expected_micro));
    } else {
        show_all(planned, width);
    }
    return status;
}

int plan_job(struct invocation *invocation)
{
    struct planned *planned = calloc(1, sizeof *planned);
    unsigned width = 0;
    const char *svg = NULL;
    int status = BOURSE_USAGE;
    if (planned == NULL) {
        return complain(invocation, BOURSE_LOCAL, "out of memory");
    }
    planned->invocation = invocation;
    if (picture_width(invocation, &width) && picture_path(invocation, &svg, &status) &&
        load(planned, &status) && make(planned, &status)) {
        status = show(planned, width, svg);
    }
    job_plan_destroy(&planned->plan);
    bourse_job_destroy(&planned->job);
    if (planned->jobs != NULL) {
        bourse_jobs_destroy(&planned->jobs);
    }
    free(planned->offer.parts);
    free(planned->costs);
    free(planned);
    return status;
}
