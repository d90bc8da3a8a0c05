#include "planner/layout/plan_team.h"

#include "planner/layout/plan_course.h"

#include <string.h>

bool plan_are_alike(const struct plan_case *of, uint32_t a, uint32_t b)
{
    const struct plan_device *left = &of->input->devices[a];
    const struct plan_device *right = &of->input->devices[b];
    return of->like[a] == of->like[b] && left->price_micro == right->price_micro &&
           plan_is_same_figure(&left->idle_w, &right->idle_w);
}

/* ---------------------------------------------------------------- members */

static bool has_fabric(const struct plan_input *input, uint32_t from, uint32_t to)
{
    enum topology_kind kind = TOPOLOGY_HERE;
    double unused_s = 0;
    return plan_course_idle(input, from, to, 1, &unused_s, &kind) && kind == TOPOLOGY_NVLINK;
}

static bool may_join(const struct plan_case *of, const uint32_t *members, uint32_t count,
                     uint32_t device)
{
    bool may = true;
    for (uint32_t i = 0; may && i < count; i++) {
        may = plan_are_alike(of, members[i], device) && has_fabric(of->input, members[i], device) &&
              has_fabric(of->input, device, members[i]);
    }
    return may;
}

void plan_teams_find(const struct plan_case *of, uint32_t width, struct plan_teams *ret_teams)
{
    const struct plan_input *input = of->input;
    bool is_taken[PLAN_DEVICES] = {false};
    *ret_teams = (struct plan_teams){.input = input, .width = width};
    for (uint32_t first = 0; first < input->device_count; first++) {
        uint32_t *members = &ret_teams->members[ret_teams->count * width];
        uint32_t count = 0;
        for (uint32_t d = first; d < input->device_count && count < width; d++) {
            bool has_room = ret_teams->count * width + count < PLAN_DEVICES;
            if (has_room && !is_taken[d] && may_join(of, members, count, d)) {
                members[count++] = d;
            } else if (d == first) {
                break;
            }
        }
        for (uint32_t i = 0; count == width && i < width; i++) {
            is_taken[members[i]] = true;
        }
        ret_teams->device[ret_teams->count] = members[0];
        ret_teams->count += count == width;
    }
    if (ret_teams->count == 0) {
        problem_set(&ret_teams->why,
                    "no %u alike devices are in one machine with a fabric between them",
                    (unsigned)width);
    }
}

/* ---------------------------------------------------------------- exchanges */

/* Returns the time of a round in which each passes `bytes` to the next, for the slowest team of
 * such devices. Returns INFINITY when there is no such team. */
static double round_s(const struct plan_teams *teams, const struct plan_case *of, uint32_t like,
                      double bytes)
{
    double most_s = INFINITY;
    for (uint32_t t = 0; t < teams->count; t++) {
        const uint32_t *members = &teams->members[t * teams->width];
        if (of->like[teams->device[t]] == like) {
            double takes_s = plan_course_ring_s(teams->input, members, teams->width, bytes);
            most_s = most_s < INFINITY ? fmax(most_s, takes_s) : takes_s;
        }
    }
    return most_s;
}

static double known_round_s(struct plan_teams *teams, const struct plan_case *of, uint32_t like,
                            double bytes)
{
    size_t count = teams->known_count < TEAM_KNOWN ? teams->known_count : TEAM_KNOWN;
    for (size_t i = 0; i < count; i++) {
        if (teams->known[i].like == like && teams->known[i].bytes == bytes) {
            return teams->known[i].takes_s;
        }
    }
    struct team_round *it = &teams->known[teams->known_count++ % TEAM_KNOWN];
    *it = (struct team_round){like, bytes, round_s(teams, of, like, bytes)};
    return it->takes_s;
}

struct told {
    double bytes;  /* bytes of a round, to the next */
    double rounds; /* rounds of one exchange */
};

/* A sum goes round twice; an all-gather goes round once. */
static struct told told_of(const struct operation *operation, uint32_t width)
{
    bool is_sum = operation->kind == OPERATION_ALL_REDUCE;
    int64_t elements =
        is_sum ? operation->shape.all_reduce.elements : operation->shape.elements.elements;
    double bytes = (double)elements * dtype_bits(operation->dtype) / 8;
    return (struct told){bytes / width, (is_sum ? 2.0 : 1.0) * (width - 1.0)};
}

static void lengthen(struct plan_figures *figures, double more_s, double more_p90_s)
{
    if (figures->energy_j.source != FIGURE_UNKNOWN && figures->time_s.value > 0) {
        figures->energy_j.value *= (figures->time_s.value + more_s) / figures->time_s.value;
    }
    figures->time_s.value += more_s;
    figures->p90_s = figures->p90_s > 0 ? figures->p90_s + more_p90_s : 0;
}

enum cost_status plan_team_add(struct plan_teams *teams, const struct plan_case *of,
                               const struct cost_device *free_links, const struct step *step,
                               uint32_t device, struct plan_figures *figures)
{
    for (size_t i = 0; i < step->told_count; i++) {
        const struct operation *operation = &step->told[i].operation;
        const double times = (double)step->told[i].times;
        const struct told told = told_of(operation, teams->width);
        struct cost cost;
        enum cost_status status = cost_predict(free_links, operation, &cost);
        if (status != COST_OK) {
            return status;
        }
        double links_s = told.rounds * known_round_s(teams, of, of->like[device], told.bytes);
        if (!(links_s < INFINITY)) {
            return COST_NO_LINK;
        }
        lengthen(figures, times * fmax(cost.time_s.value, links_s),
                 times * fmax(fmax(cost.time_s.value, cost.p90_s), links_s));
        figures->time_s.source = cost.time_s.source < figures->time_s.source
                                     ? cost.time_s.source
                                     : figures->time_s.source;
        figures->time_s.unverified |= cost.time_s.unverified;
    }
    return COST_OK;
}

double plan_team_bytes(const struct step *step, uint32_t width)
{
    double sum = 0;
    for (size_t i = 0; i < step->told_count; i++) {
        const struct told told = told_of(&step->told[i].operation, width);
        sum += (double)step->told[i].times * told.rounds * told.bytes;
    }
    return sum;
}

void plan_team_transfers(const struct plan_input *input, const struct plan_row *rows,
                         uint32_t first, double bytes, struct plan_transfer *ret_transfers)
{
    const uint32_t width = rows[first].team_size;
    for (uint32_t i = 0; i < width; i++) {
        const struct plan_row *from = &rows[first + i];
        const struct plan_row *to = &rows[first + (i + 1) % width];
        const uint32_t source = input->devices[from->device].memory;
        struct topology_transfer route = {.kind = TOPOLOGY_NVLINK};
        /* A path exists, since the two are in one team. */
        (void)topology_find(input->topology, NULL, UINT64_C(1) << source,
                            input->devices[to->device].memory, 1, 0, &route);
        ret_transfers[i] = (struct plan_transfer){.from = first + i,
                                                  .to = first + (i + 1) % width,
                                                  .bytes = bytes,
                                                  .kind = route.kind,
                                                  .start_s = from->start_s,
                                                  .finish_s = from->start_s + from->busy_s,
                                                  .link_count = route.link_count};
        memcpy(ret_transfers[i].links, route.links, sizeof route.links);
    }
}

/* ---------------------------------------------------------------- input of a team */

double plan_team_spread_s(const struct plan_input *input, const uint32_t *members, uint32_t width,
                          double bytes)
{
    double each_s = 0;
    double sum_s = 0;
    if (width < 2 || !(bytes > 0) ||
        !plan_course_idle(input, members[0], members[1], bytes, &each_s, NULL)) {
        return 0;
    }
    for (uint32_t have = 1; have < width; have *= 2) {
        sum_s += each_s;
    }
    return sum_s;
}

uint32_t plan_team_receivers(uint32_t number, uint32_t width)
{
    uint32_t count = 0;
    for (uint32_t have = 1; have < width; have *= 2) {
        count += number < have && number + have < width;
    }
    return count;
}
