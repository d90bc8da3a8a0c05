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
        (void)snprintf(ret_text, PLANNED_CELL, "%" PRIu32, index);
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
    const uint32_t device = planned->plan->schedule->runs[index].device;
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
    for (uint32_t i = 0; i < planned->plan->schedule->subtasks; i++) {
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

struct figure planned_energy(const struct planned *planned, size_t number, int64_t slot_ns)
{
    struct figure energy = supply_power(&planned->plan->supply->places[number]);
    energy.value *= (double)slot_ns / NS_PER_S;
    return energy;
}

int64_t planned_slot_ns(const struct planned *planned, uint32_t index)
{
    const struct list_schedule_run *run = &planned->plan->schedule->runs[index];
    return (run->end_ns - run->start_ns) *
           planned->job->parts[planned_part(planned->job, index)].slots;
}

struct figure planned_whole_energy(const struct planned *planned)
{
    const struct list_schedule *schedule = planned->plan->schedule;
    struct figure sum = {.source = FIGURE_DECLARED};
    for (size_t i = 0; i < schedule->device_count; i++) {
        const struct figure energy = planned_energy(planned, i, schedule->uses[i].slot_ns);
        if (schedule->uses[i].subtasks > 0) {
            sum.source = energy.source == FIGURE_UNKNOWN ? FIGURE_UNKNOWN : sum.source;
            sum.value += energy.value;
            sum.unverified = sum.unverified || energy.unverified;
        }
    }
    return sum;
}

bool planned_share_costs(struct planned *planned)
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
        slot_ns[run->device] += planned_slot_ns(planned, i);
        const bool fits = checked_muldiv_ceil(slot_ns[run->device], place->slots.price_micro,
                                              NS_PER_HOUR, &cost_micro);
        assert(fits); /* it is at most the place's cost, which fits */
        planned->costs[i] = cost_micro - shared[run->device];
        shared[run->device] = cost_micro;
    }
    free(slot_ns);
    free(shared);
    return has_room;
}

uint64_t planned_bytes_to(const struct planned *planned, size_t place)
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

bool planned_hands_on(const struct planned *planned)
{
    bool hands = false;
    for (uint32_t i = 0; i < planned->plan->schedule->subtasks && !hands; i++) {
        hands = manifest_takes_files(planned->plan->manifest, i);
    }
    return hands;
}
