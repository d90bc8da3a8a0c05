/* This file runs `plan FILE|JOB`, which plans a job on the present offers or the rest of one on its
 * leases. The output has the form of a plan of work (work_show.c). */
#include "consumer/command/market/challenged_show.h"
#include "consumer/command/plan/job_choice.h"
#include "consumer/command/plan/picture.h"
#include "consumer/command/plan/planned.h"
#include "consumer/command/show.h"
#include "consumer/job/manifest.h"
#include "consumer/job/submit.h"

#include "base/text.h"
#include "planner/picture/picture_plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS_SHOWN = 100, PLACES_SHOWN = 32 };

/* ---------------------------------------------------------------- drawing */

static struct picture_device *draw_devices(const struct job_plan *plan)
{
    const size_t count = plan->plan->device_count;
    struct picture_device *devices = calloc(count + 1, sizeof *devices);
    for (size_t i = 0; devices != NULL && i < count; i++) {
        char label[PLANNED_CELL];
        planned_write_place(&plan->supply->places[i], label);
        (void)snprintf(devices[i].label, sizeof devices[i].label, "%s", label);
        devices[i].is_simulated = plan->supply->places[i].is_simulated;
    }
    return devices;
}

static const char **name_subtasks(const struct job_plan *plan)
{
    const size_t count = plan->plan->row_count;
    const char **names = calloc(count + 1, sizeof *names);
    for (uint32_t i = 0; names != NULL && i < count; i++) {
        const char *name = job_plan_name(plan, i);
        names[i] = name != NULL ? name : "";
    }
    return names;
}

/* Returns NULL when memory is short. `style` NULL draws SVG. */
static char *draw_text(const struct planned *planned, const struct picture_style *style)
{
    const struct plan *plan = planned->plan->plan;
    const bool is_named = job_plan_name(planned->plan, 0) != NULL; /* else they have numbers */
    struct picture_device *devices = draw_devices(planned->plan);
    const char **names = is_named ? name_subtasks(planned->plan) : NULL;
    const struct picture_plan drawn = {.plan = plan, .labels = names, .devices = devices};
    struct picture *picture =
        devices != NULL && (names != NULL || !is_named) ? picture_of_plan(&drawn) : NULL;
    char *text = NULL;
    if (picture != NULL) {
        char title[300];
        char line[300];
        (void)snprintf(title, sizeof title, "%.200s", planned->offer.summary.name);
        (void)snprintf(line, sizeof line,
                       "%zu subtasks on %" PRIu32 " lanes: %s, %s credits; none is below %s",
                       plan->row_count, plan->lanes, cell_duration_ns(plan_makespan_ns(plan)),
                       cell_money(plan->total.price_micro), cell_duration_ns(plan_ns(plan->bound)));
        picture->title = title;
        picture->line = line;
        text = style != NULL ? picture_timeline(picture, style) : picture_svg(picture);
    }
    picture_destroy(&picture);
    free(names);
    free(devices);
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
    const struct plan_row *row = &planned->plan->plan->rows[index];
    const int64_t bytes = manifest_own_bytes(planned->plan->manifest, index);
    const bool takes = manifest_takes_files(planned->plan->manifest, index);
    char name[PLANNED_CELL];
    char place[PLANNED_CELL];
    char source[PLANNED_CELL];
    planned_write_subtask(planned, index, name);
    planned_write_place(&planned->plan->supply->places[row->device], place);
    planned_write_source(planned, index, source);
    const char *cells[] = {name,
                           place,
                           cell_duration_ns(plan_ns(row->start_s)),
                           cell_duration_ns(plan_row_ns(row)),
                           takes       ? "unknown"
                           : bytes > 0 ? cell_bytes((uint64_t)bytes)
                                       : "-",
                           cell_joules(&row->energy_j),
                           cell_money(row->price_micro),
                           source};
    grid_add(table, cells);
}

/* Shows each subtask, in the order of submission. */
static void show_subtasks(const struct planned *planned)
{
    static const char *const titles[] = {"SUBTASK", "DEVICE", "START", "TIME",
                                         "IN",      "ENERGY", "COST",  "TIME IS"};
    const size_t count = planned->plan->plan->row_count;
    const size_t shown = count <= ROWS_SHOWN ? count : ROWS_SHOWN;
    struct grid table = grid_of(8, titles, "llrrrrrl");
    for (uint32_t i = 0; i < shown; i++) {
        add_subtask(planned, &table, i);
    }
    grid_print(&table, stdout, planned->invocation->color);
    grid_fini(&table);
    say_others(count - shown, "subtask");
}

struct share { /* the work of one place in a part */
    uint32_t subtasks;
    uint32_t first; /* one of its subtasks */
    struct figure energy_j;
    int64_t first_ns, busy_ns, cost_micro, bytes;
};

static void add_share(const struct planned *planned, struct grid *table, size_t part, size_t place,
                      const struct share *share)
{
    char what[PLANNED_CELL];
    char on[PLANNED_CELL];
    char source[PLANNED_CELL];
    (void)snprintf(what, sizeof what, "%" PRIu32 " of part %zu", share->subtasks, part + 1);
    if (planned->job->part_count == 1) {
        (void)snprintf(what, sizeof what, "%" PRIu32 " of %" PRIu64, share->subtasks,
                       planned->job->subtasks);
    }
    planned_write_place(&planned->plan->supply->places[place], on);
    planned_write_source(planned, share->first, source);
    const char *cells[] = {what,
                           on,
                           cell_duration_ns(share->first_ns),
                           cell_duration_ns(share->busy_ns),
                           share->bytes > 0 ? cell_bytes((uint64_t)share->bytes) : "-",
                           cell_joules(&share->energy_j),
                           cell_money(share->cost_micro),
                           source};
    grid_add(table, cells);
}

/* A job of many alike subtasks shows one row for each place and part. */
static void show_parts(const struct planned *planned)
{
    static const char *const titles[] = {"SUBTASKS", "DEVICE", "START", "WORK",
                                         "IN",       "ENERGY", "COST",  "TIME IS"};
    const struct plan *plan = planned->plan->plan;
    const size_t places = plan->device_count;
    struct share *shares = calloc(planned->job->part_count * places, sizeof *shares);
    struct grid table = grid_of(8, titles, "llrrrrrl");
    size_t shown = 0;
    for (uint32_t i = 0; shares != NULL && i < plan->row_count; i++) {
        const struct plan_row *row = &plan->rows[i];
        struct share *share = &shares[planned_part(planned->job, i) * places + row->device];
        const int64_t start_ns = plan_ns(row->start_s);
        const bool is_first = share->subtasks++ == 0;
        share->first_ns = is_first || start_ns < share->first_ns ? start_ns : share->first_ns;
        share->first = i;
        share->energy_j.source = row->energy_j.source; /* a device has one source */
        share->energy_j.value += row->energy_j.value;
        share->busy_ns += plan_row_ns(row);
        share->cost_micro += row->price_micro;
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

/* Shows of each device in use what the broker found when it challenged the claimed speed. */
static void show_challenges(const struct planned *planned)
{
    const struct plan *plan = planned->plan->plan;
    size_t shown = 0;
    for (size_t i = 0; i < plan->device_count && shown < PLACES_SHOWN; i++) {
        const struct supply_place *place = &planned->plan->supply->places[i];
        if (plan->uses[i].row_count > 0 && place->claim_mflops > 0) {
            char label[PLANNED_CELL];
            planned_write_place(place, label);
            shown++;
            (void)printf("speed of %s: %s\n", label,
                         challenged_cell(&place->challenge, place->claim_mflops));
        }
    }
}

static void show_places(const struct planned *planned)
{
    static const char *const titles[] = {"DEVICE", "SUBTASKS", "LANES", "SHARE",
                                         "IN",     "ENERGY",   "PRICE", "COST"};
    const struct plan *plan = planned->plan->plan;
    struct grid table = grid_of(8, titles, "lrrrrrrr");
    size_t used = 0;
    size_t idle = 0;
    for (size_t i = 0; i < plan->device_count; i++) {
        const struct plan_use *use = &plan->uses[i];
        idle += use->row_count == 0;
        if (use->row_count == 0 || used++ >= PLACES_SHOWN) {
            continue;
        }
        char place[PLANNED_CELL];
        char share[16];
        planned_write_place(&planned->plan->supply->places[i], place);
        (void)snprintf(share, sizeof share, "%d%%", plan_use_percent(use));
        const char *cells[] = {place,
                               cell_count(use->row_count),
                               cell_count(use->lanes),
                               share,
                               cell_bytes(planned_bytes_to(planned, i)),
                               cell_joules(&use->energy_j),
                               cell_money(planned->plan->supply->places[i].slots.price_micro),
                               cell_money(use->price_micro)};
        grid_add(&table, cells);
    }
    (void)putchar('\n');
    grid_print(&table, stdout, planned->invocation->color);
    grid_fini(&table);
    say_others(used > PLACES_SHOWN ? used - PLACES_SHOWN : 0, "device");
    if (idle > 0) {
        (void)printf("not used: %zu that %s on offer, too\n", idle, idle == 1 ? "is" : "are");
    }
    show_challenges(planned);
}

/* ---------------------------------------------------------------- figures */

static void show_estimates(const struct planned *planned)
{
    static const char *const texts[PLANNED_SOURCES] = {
        "from what was measured on devices of the same make",
        "from what was measured on other devices", "from what is declared",
        "by a guess, because nothing was measured and the job has no `expect:`"};
    const struct plan *plan = planned->plan->plan;
    uint32_t counts[PLANNED_SOURCES];
    const char *between = "";
    planned_count_sources(planned, counts);
    (void)printf("estimated    ");
    for (size_t i = 0; i < PLANNED_SOURCES; i++) {
        if (counts[i] == plan->row_count) {
            (void)printf("%s", texts[i]);
        } else if (counts[i] > 0) {
            (void)printf("%s%" PRIu32 " %s", between, counts[i], texts[i]);
            between = "; ";
        }
    }
    (void)printf("%s\n", counts[PLANNED_MEASURED] > 0 ? "" : "; the same time on all devices");
    if (plan->total.p90_s > 0) {
        (void)printf("p90          %s, if every subtask took its p90\n",
                     cell_duration_ns(plan_ns(plan->total.p90_s)));
    } else {
        (void)printf("p90          unknown: not all work was measured 5 times\n");
    }
}

static void show_bound(const struct plan *plan)
{
    const char *bound = cell_duration_ns(plan_ns(plan->bound));
    if (!(plan->gap > 0)) {
        (void)printf("lower bound  %s: proved, none is better\n", bound);
    } else {
        (void)printf("lower bound  %s: none is better by more than %.2g%%\n", bound,
                     100 * (1 - plan->bound / plan->total.makespan_s.value));
    }
}

static void show_single(const struct planned *planned)
{
    const struct plan *plan = planned->plan->plan;
    const double single_s = plan->forms[PLAN_SINGLE].makespan_s.value;
    if (plan->single == PLAN_ANYWHERE) {
        (void)printf("best single  none: no device can do all of it\n");
        return;
    }
    char place[PLANNED_CELL];
    planned_write_place(&planned->plan->supply->places[plan->single], place);
    (void)printf("best single  %s on %s: %.2f times as long\n", cell_duration_ns(plan_ns(single_s)),
                 place, single_s / plan->total.makespan_s.value);
}

static void show_figures(const struct planned *planned)
{
    const struct plan *plan = planned->plan->plan;
    const struct figure *energy = &plan->total.energy_j;
    uint64_t bytes = 0;
    for (size_t i = 0; i < plan->device_count; i++) {
        bytes += planned_bytes_to(planned, i);
    }
    (void)printf("\nmakespan     %s%s, %zu subtask%s on %" PRIu32 " lane%s\n",
                 cell_duration_ns(plan_makespan_ns(plan)),
                 planned->plan->is_on_leases      ? " on the leases that it has"
                 : planned->plan->supply->is_busy ? ", once all that fits is free"
                                                  : "",
                 plan->row_count, text_plural(plan->row_count), plan->lanes,
                 text_plural(plan->lanes));
    show_estimates(planned);
    show_bound(plan);
    show_single(planned);
    (void)printf("cost         %s credits\n", cell_money(plan->total.price_micro));
    if (energy->source == FIGURE_UNKNOWN) {
        (void)printf("energy       unknown: a device of the plan does not state its power\n");
    } else {
        (void)printf(
            "energy       %s%s, of slots that are busy, as if at their device's full load\n",
            cell_joules(energy), energy->unverified ? "?" : "");
    }
    (void)printf("moved        %s in%s\n\n", cell_bytes(bytes),
                 planned_hands_on(planned) ? ", and what subtasks hand on to others, not known yet"
                                           : "");
}

static void show_left(const struct planned *planned)
{
    const struct bourse_job_row *row = planned_row(planned);
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
    if (planned->plan->plan != NULL) {
        (void)putchar('\n');
        if (planned->plan->plan->row_count <= PLACES_SHOWN ||
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
        return job_choice_load(invocation, word, NULL, NULL, &planned->job, ret_status) &&
               command_connect(invocation, ret_status);
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
    if (planned_row(planned)->budget_micro == 0) {
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
    if (!job_plan_make(planned->invocation->bourse, planned->job, offer->parts,
                       planned_row(planned), &planned->plan, &error)) {
        *ret_status = complain_with(planned->invocation, &error);
        return false;
    }
    return true;
}

static int show(struct planned *planned, unsigned width, const char *svg)
{
    struct invocation *invocation = planned->invocation;
    int status = planned->plan->is_on_leases ? BOURSE_OK : offer_status(&planned->offer);
    if (svg != NULL && planned->plan->plan == NULL) {
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
        return planned_show_json(planned, status);
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
    free(planned);
    return status;
}
