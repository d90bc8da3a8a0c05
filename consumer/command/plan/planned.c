#include "consumer/command/plan/planned.h"

#include "consumer/command/show.h"
#include "consumer/job/manifest.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const struct bourse_job_row *planned_row(const struct planned *planned)
{
    return planned->jobs == NULL ? NULL : bourse_jobs_row(planned->jobs, 0);
}

size_t planned_part(const struct bourse_job *job, uint32_t index)
{
    size_t part = 0;
    for (uint32_t end = job->parts[0].subtasks; index >= end; end += job->parts[part].subtasks) {
        part++;
    }
    return part;
}

void planned_write_place(const struct supply_place *place, char ret_text[PLANNED_CELL])
{
    if (place->label[0] != '\0') {
        (void)snprintf(ret_text, PLANNED_CELL, "%s%.80s", place->is_simulated ? "SIM " : "",
                       cell_plain(place->label));
    } else {
        (void)snprintf(ret_text, PLANNED_CELL, "%s %.32s",
                       place->providers == 0 ? "taken at" : "offered at",
                       cell_money(place->slots.price_micro));
    }
}

void planned_write_subtask(const struct planned *planned, uint32_t index,
                           char ret_text[PLANNED_CELL])
{
    const char *name = job_plan_name(planned->plan, index);
    if (name != NULL) {
        (void)snprintf(ret_text, PLANNED_CELL, "%.90s", cell_plain(name));
    } else {
        (void)snprintf(ret_text, PLANNED_CELL, "%" PRIu64, job_plan_number(planned->plan, index));
    }
}

static enum planned_source said_source(const struct planned *planned, uint32_t index)
{
    const struct bourse_job *job = planned->job;
    const struct job_file *file = job->file;
    const bool is_said = job->order != NULL && index < file->task_count
                             ? file->tasks[job->order[index]].expect_ms != JOB_ABSENT
                             : !planned->offer.summary.expect_is_guess;
    return is_said ? PLANNED_DECLARED : PLANNED_GUESS;
}

struct history_figure planned_figure(const struct planned *planned, uint32_t index)
{
    const struct supply *supply = planned->plan->supply;
    const uint32_t device = planned->plan->plan->rows[index].device;
    return supply_figure(planned->job, supply, supply->places[device].slots.of_class,
                         planned_part(planned->job, index), index);
}

enum planned_source planned_source(const struct planned *planned, uint32_t index,
                                   uint64_t *ret_samples)
{
    const struct supply *supply = planned->plan->supply;
    const size_t part = planned_part(planned->job, index);
    const uint64_t here = planned_figure(planned, index).samples;
    const uint64_t all = supply_figure(planned->job, supply, 0, part, index).samples;
    *ret_samples = here > 0 ? here : all;
    return here > 0 ? PLANNED_MEASURED : all > 0 ? PLANNED_ELSEWHERE : said_source(planned, index);
}

const char *const planned_source_names[PLANNED_SOURCES] = {"measured", "measured elsewhere",
                                                           "declared", "guess"};

void planned_write_source(const struct planned *planned, uint32_t index,
                          char ret_text[PLANNED_CELL])
{
    uint64_t samples = 0;
    const enum planned_source source = planned_source(planned, index, &samples);
    const char *pace = planned_figure(planned, index).is_at_pace ? ", at its pace" : "";
    if (source <= PLANNED_ELSEWHERE) {
        (void)snprintf(ret_text, PLANNED_CELL, "measured (%" PRIu64 ")%s%s", samples,
                       source == PLANNED_ELSEWHERE ? " elsewhere" : "", pace);
    } else {
        (void)snprintf(ret_text, PLANNED_CELL, "%s%s", planned_source_names[source], pace);
    }
}

void planned_count_sources(const struct planned *planned, uint32_t ret_counts[PLANNED_SOURCES])
{
    memset(ret_counts, 0, PLANNED_SOURCES * sizeof *ret_counts);
    for (uint32_t i = 0; i < planned->plan->plan->row_count; i++) {
        uint64_t samples = 0;
        ret_counts[planned_source(planned, i, &samples)]++;
    }
}

const char *planned_whole_source(const struct planned *planned)
{
    uint32_t counts[PLANNED_SOURCES];
    size_t worst = PLANNED_MEASURED;
    planned_count_sources(planned, counts);
    for (size_t i = 0; i < PLANNED_SOURCES; i++) {
        worst = counts[i] > 0 ? i : worst;
    }
    return planned_source_names[worst];
}

uint64_t planned_bytes_to(const struct planned *planned, size_t place)
{
    const struct plan *plan = planned->plan->plan;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < plan->row_count; i++) {
        if (plan->rows[i].device == place) {
            bytes += (uint64_t)manifest_own_bytes(planned->plan->manifest, i);
        }
    }
    return plan->uses[place].row_count == 0
               ? 0
               : bytes + (uint64_t)manifest_shared_bytes(planned->plan->manifest);
}

bool planned_hands_on(const struct planned *planned)
{
    bool hands = false;
    for (uint32_t i = 0; i < planned->plan->plan->row_count && !hands; i++) {
        hands = manifest_takes_files(planned->plan->manifest, i);
    }
    return hands;
}
