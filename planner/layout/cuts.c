#include "planner/layout/cuts.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* The best way to end `stage` stages before a column. */
struct best {
    double value; /* the slowest stage, or all that crosses; infinite: there is no way */
    size_t from;  /* the first column of the last stage */
};

struct search {
    const struct cuts_input *input;
    double *sum_s;     /* by column: the time of all columns before it */
    struct best *best; /* [stage * (column_count + 1) + column] */
};

static double cross_at(const struct cuts_input *input, size_t column)
{
    return column == 0 || column == input->column_count ? 0 : input->cross_s[column];
}

static double stage_s(const struct search *search, size_t from, size_t to)
{
    return cross_at(search->input, from) + search->sum_s[to] - search->sum_s[from] +
           cross_at(search->input, to);
}

static struct best *best_of(const struct search *search, size_t stages, size_t column)
{
    return &search->best[stages * (search->input->column_count + 1) + column];
}

/* Ends the last of `stages` stages before a column. With an infinite limit, the slowest stage is
 * made least; else all that crosses, with no stage above the limit. */
static void end_stage(const struct search *search, size_t stages, size_t to, double limit_s)
{
    struct best best = {.value = INFINITY};
    for (size_t from = stages - 1; from < to; from++) {
        const double before = best_of(search, stages - 1, from)->value;
        const double takes_s = stage_s(search, from, to);
        const double value = isinf(limit_s)       ? fmax(before, takes_s)
                             : takes_s <= limit_s ? before + cross_at(search->input, to)
                                                  : INFINITY;
        if (value < best.value) {
            best = (struct best){value, from};
        }
    }
    *best_of(search, stages, to) = best;
}

/* Returns the best value for all columns; infinite when there is none. */
static double find_all(const struct search *search, double limit_s)
{
    const size_t columns = search->input->column_count;
    for (size_t to = 0; to <= columns; to++) {
        *best_of(search, 0, to) = (struct best){.value = to == 0 ? 0 : INFINITY};
    }
    for (size_t stages = 1; stages <= search->input->stage_count; stages++) {
        for (size_t to = 0; to <= columns; to++) {
            end_stage(search, stages, to, limit_s);
        }
    }
    return best_of(search, search->input->stage_count, columns)->value;
}

static void take(const struct search *search, struct cuts *ret_cuts)
{
    size_t to = search->input->column_count;
    *ret_cuts = (struct cuts){.slowest_s = 0};
    for (size_t stages = search->input->stage_count; stages > 0; stages--) {
        const size_t from = best_of(search, stages, to)->from;
        ret_cuts->first[stages - 1] = from;
        ret_cuts->slowest_s = fmax(ret_cuts->slowest_s, stage_s(search, from, to));
        ret_cuts->crossing_s += cross_at(search->input, from);
        to = from;
    }
}

static bool is_good(const struct cuts_input *input)
{
    bool good = input->column_count > 0 && input->column_count <= CUTS_COLUMNS &&
                input->stage_count > 0 && input->stage_count <= CUTS_STAGES;
    for (size_t i = 0; good && i < input->column_count; i++) {
        good =
            input->time_s[i] >= 0 && !isinf(input->time_s[i]) && (i == 0 || input->cross_s[i] >= 0);
    }
    return good;
}

static enum cuts_status search_all(const struct search *search, struct cuts *ret_cuts)
{
    const double least_s = find_all(search, INFINITY);
    if (isinf(least_s)) {
        return CUTS_NOWHERE;
    }
    (void)find_all(search, least_s * (1 + CUTS_SLACK_PERCENT / 100.0));
    take(search, ret_cuts);
    return CUTS_OK;
}

enum cuts_status cuts_find(const struct cuts_input *input, struct cuts *ret_cuts)
{
    if (!is_good(input)) {
        return CUTS_BAD_INPUT;
    }
    struct search search = {
        .input = input,
        .sum_s = calloc(input->column_count + 1, sizeof *search.sum_s),
        .best = calloc((input->stage_count + 1) * (input->column_count + 1), sizeof *search.best)};
    enum cuts_status status = CUTS_NO_MEMORY;
    if (search.sum_s != NULL && search.best != NULL) {
        for (size_t i = 0; i < input->column_count; i++) {
            search.sum_s[i + 1] = search.sum_s[i] + input->time_s[i];
        }
        status = search_all(&search, ret_cuts);
    }
    free(search.sum_s);
    free(search.best);
    return status;
}
