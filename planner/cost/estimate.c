#include "planner/cost/estimate.h"

#include "base/checked.h"

#include <stdbool.h>

static bool is_good(const struct estimate_job *job, const struct estimate_level *levels,
                    size_t count)
{
    if (job->subtasks == 0 || job->subtasks > INT64_MAX || job->width == 0 || job->expect_ns < 1) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (levels[i].price_micro < (i == 0 ? 0 : levels[i - 1].price_micro)) {
            return false;
        }
    }
    return true;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Takes lanes, cheapest first, and returns their number. */
static uint64_t take_lanes(const struct estimate_job *job, const struct estimate_level *levels,
                           size_t count, struct estimate_row *ret_rows)
{
    uint64_t most = job->subtasks;
    if (job->at_most > 0) {
        most = least(most, job->at_most / job->width);
    }
    uint64_t taken = 0;
    for (size_t i = 0; i < count; i++) {
        bool affordable = job->cap_micro < 0 || levels[i].price_micro <= job->cap_micro;
        uint64_t lanes = affordable ? least(levels[i].slots / job->width, most - taken) : 0;
        ret_rows[i] = (struct estimate_row){.lanes = (uint32_t)lanes};
        taken += lanes;
    }
    return taken;
}

/* Every lane gets `subtasks / lanes`; the first `subtasks % lanes` lanes get one more. */
static bool assign_subtasks(const struct estimate_job *job, const struct estimate_level *levels,
                            size_t count, struct estimate_row *rows, struct estimate *total)
{
    uint64_t each = job->subtasks / total->lanes;
    uint64_t extra = job->subtasks % total->lanes;
    for (size_t i = 0; i < count; i++) {
        struct estimate_row *row = &rows[i];
        uint64_t more = least(extra, row->lanes);
        extra -= more;
        row->subtasks = row->lanes * each + more; /* at most job->subtasks */
        int64_t slot_price;
        if (!checked_mul((int64_t)row->subtasks, job->expect_ns, &row->busy_ns) ||
            !checked_mul(levels[i].price_micro, job->width, &slot_price) ||
            !checked_muldiv_ceil(slot_price, row->busy_ns, NS_PER_HOUR, &row->cost_micro) ||
            !checked_add(total->busy_ns, row->busy_ns, &total->busy_ns) ||
            !checked_add(total->cost_micro, row->cost_micro, &total->cost_micro)) {
            return false;
        }
    }
    return true;
}

enum estimate_status estimate_make(const struct estimate_job *job,
                                   const struct estimate_level *levels, size_t level_count,
                                   struct estimate_row *ret_rows, struct estimate *ret_estimate)
{
    if (!is_good(job, levels, level_count)) {
        return ESTIMATE_BAD_INPUT;
    }
    struct estimate total = {.lanes = take_lanes(job, levels, level_count, ret_rows)};
    if (total.lanes == 0) {
        return ESTIMATE_NO_LANE;
    }
    total.rounds = job->subtasks / total.lanes + (job->subtasks % total.lanes != 0);
    if (!checked_mul((int64_t)total.rounds, job->expect_ns, &total.makespan_ns) ||
        !checked_muldiv_ceil((int64_t)job->subtasks, job->expect_ns, (int64_t)total.lanes,
                             &total.lower_bound_ns) ||
        !assign_subtasks(job, levels, level_count, ret_rows, &total)) {
        return ESTIMATE_OVERFLOW;
    }
    if (total.lower_bound_ns < job->expect_ns) {
        total.lower_bound_ns = job->expect_ns; /* a subtask is not split */
    }
    *ret_estimate = total;
    return ESTIMATE_OK;
}
