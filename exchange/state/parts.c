#include "exchange/state/parts.h"

#include "base/checked.h"
#include "exchange/lifecycle.h"

#include <assert.h>

void part_init(struct part *part, struct job *job, uint32_t number)
{
    part->job = job;
    part->number = number;
    part->retry_head = part->retry_tail = NO_SUBTASK;
    part->class_id = NO_CLASS;
    part->handle = BOOK_NONE;
    part->straggler_ns = INT64_MAX;
    list_init(&part->wanting);
    list_init(&part->spread);
    list_init(&part->back);
    list_init(&part->front);
    list_init(&part->deep);
    list_init(&part->challenge);
}

uint32_t part_lanes_most(uint32_t subtasks, uint32_t at_most, uint32_t width)
{
    const uint32_t most = at_most == 0 ? UINT32_MAX : at_most / width;
    return subtasks < most ? subtasks : most;
}

struct part *part_of(const struct job *job, uint32_t index)
{
    uint32_t number = 0;
    while (index >= job->parts[number].end) {
        number++;
    }
    assert(number < job->part_count);
    return &job->parts[number];
}

bool part_is_over(const struct part *part)
{
    return part->decided + part->checking == part->end - part->first;
}

void part_look_if_over(struct exchange *exchange, struct part *part)
{
    if (part->job->part_count > 1 && part->lanes > 0 && part_is_over(part) &&
        list_empty(&part->spread)) {
        list_append(&exchange->spreads, &part->spread);
    }
}

bool part_is_checks(const struct part *part)
{
    return part->job->is_checked && part->number + 1 == part->job->part_count;
}

bool part_outlasts_term(const struct part *part)
{
    return part->limit_ns > part->term_ns;
}

int64_t part_needs_ns(const struct part *part)
{
    return part_outlasts_term(part) ? part->term_ns / 2 : part->limit_ns;
}

int64_t part_least_term_ns(int64_t limit_ns, int64_t term_ns)
{
    const int64_t least_ns = term_ns < OUTLASTING_TERM_NS ? term_ns : OUTLASTING_TERM_NS;
    return limit_ns > term_ns ? least_ns : limit_ns;
}
