#include "exchange/state/held.h"

bool held_for_check(const struct job *job, uint32_t index)
{
    return job->checks != NULL && index < held_first_check(job);
}

struct held *held_of_check(const struct job *job, uint32_t index)
{
    bool is_check = job->checks != NULL && index >= held_first_check(job);
    return is_check ? job->checks->held[index - held_first_check(job)] : NULL;
}

bool held_link(struct job *job, struct held *held)
{
    if (!held_for_check(job, held->index) || job->checks->held[held->index] != NULL) {
        return false;
    }
    job->checks->held[held->index] = held;
    held->lease->held_count++;
    held->lease->held_ns += held->paid_ns;
    return true;
}

uint32_t held_first_check(const struct job *job)
{
    return job->parts[job->part_count - 1].first;
}

uint32_t held_accuser(const struct held *held)
{
    return held->accusation.tracked.type == 0 ? EXCHANGE_NO_ACCOUNT : held->accusation.referee;
}
