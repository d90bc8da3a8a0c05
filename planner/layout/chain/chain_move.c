/* This file makes small changes to the stages of a chain (stage_chain.h). The search by limits
 * (stages.h) finds possible devices and columns for them. It ignores how long micro-batches wait
 * for one another. Moves improve the result in this respect. */
#include "planner/layout/chain/stage_chain.h"

#include <string.h>

uint32_t chain_moves(const struct stages *stages)
{
    const uint32_t count = stages->stage_count;
    return 2 * count * count + count * (3 * STAGES_GROUPS + 1);
}

static bool shift(struct stages *stages, uint32_t from, uint32_t to)
{
    if (from == to || stages->stages[from].count < 2) {
        return false;
    }
    stages->stages[from].count--;
    stages->stages[to].count++;
    return true;
}

/* Moves a stage's device; the devices between move up. Among equal devices nothing changes. */
static bool carry(struct stages *stages, uint32_t from, uint32_t to)
{
    const struct stages_stage it = stages->stages[from];
    bool is_other = false;
    while (from != to) {
        uint32_t next = from < to ? from + 1 : from - 1;
        is_other = is_other || stages->stages[next].group != it.group;
        stages->stages[from] = stages->stages[next];
        from = next;
    }
    stages->stages[to] = it;
    return is_other;
}

/* Drops a device; its columns go to the stages before and behind. */
static bool drop(struct stages *stages, uint32_t at)
{
    const uint32_t columns = stages->stages[at].count;
    const bool is_last = at + 1 == stages->stage_count;
    const uint32_t back = at == 0 ? 0 : is_last ? columns : columns / 2;
    if (stages->stage_count < 2) {
        return false;
    }
    if (at > 0) {
        stages->stages[at - 1].count += back;
    }
    if (!is_last) {
        stages->stages[at + 1].count += columns - back;
    }
    stages->stage_count--;
    memmove(&stages->stages[at], &stages->stages[at + 1],
            (stages->stage_count - at) * sizeof stages->stages[0]);
    return true;
}

/* Gives half of the columns to a device of `group`, the columns before or those behind. */
static bool divide(struct stages *stages, uint32_t at, bool is_before, uint32_t group)
{
    struct stages_stage *it = &stages->stages[at];
    if (it->count < 2 || stages->stage_count == STAGES_DEVICES) {
        return false;
    }
    memmove(it + 1, it, (stages->stage_count - at) * sizeof *it);
    stages->stage_count++;
    it[is_before ? 0 : 1].group = group;
    it[0].count -= it[1].count / 2;
    it[1].count /= 2;
    return true;
}

static bool change(struct stages *stages, uint32_t move, const uint32_t spare[STAGES_GROUPS])
{
    const uint32_t count = stages->stage_count;
    const uint32_t pairs = count * count;
    if (move < 2 * pairs) {
        const uint32_t from = move / 2 / count;
        const uint32_t to = move / 2 % count;
        return move % 2 == 0 ? shift(stages, from, to) : carry(stages, from, to);
    }
    const uint32_t at = (move - 2 * pairs) / (3 * STAGES_GROUPS + 1);
    const uint32_t change = (move - 2 * pairs) % (3 * STAGES_GROUPS + 1);
    const uint32_t group = change % STAGES_GROUPS;
    if (change == 3 * STAGES_GROUPS) {
        return drop(stages, at);
    }
    if (spare[group] == 0) {
        return false;
    }
    if (change >= STAGES_GROUPS) {
        return divide(stages, at, change < 2 * STAGES_GROUPS, group);
    }
    const bool is_other = stages->stages[at].group != group;
    stages->stages[at].group = group;
    return is_other;
}

bool chain_move(const struct stages *stages, uint32_t move, const uint32_t spare[STAGES_GROUPS],
                struct stages *ret_stages)
{
    *ret_stages = *stages;
    if (!change(ret_stages, move, spare)) {
        return false;
    }
    uint32_t first = stages->stages[0].first;
    for (uint32_t k = 0; k < ret_stages->stage_count; k++) {
        ret_stages->stages[k].first = first;
        first += ret_stages->stages[k].count;
    }
    return true;
}
