#include "exchange/market/part_eligibility.h"

#include "exchange/lifecycle.h"
#include "exchange/market/ask_conditions.h"
#include "exchange/market/bands.h"
#include "exchange/state/job_records.h"
#include "exchange/work/choice/lateness.h"
#include "exchange/work/part_queues.h"

bool part_is_used_up(const struct job *job)
{
    if (job->running > 0 || job->hold.amount_micro == 0 ||
        (job->hold.captured_micro == 0 && job->checking == 0)) {
        return false;
    }
    for (const struct list_link *at = job->leases.next; at != &job->leases; at = at->next) {
        if (LIST_ELEMENT(at, struct lease, of_job)->state != LEASE_ENDED) {
            return false;
        }
    }
    return true;
}

bool part_may_take(const struct exchange *exchange, const struct part *part, const struct ask *ask)
{
    const uint32_t provider = ask->device->key.provider;
    return ask_suits(ask, part->job) && band_reaches_ask(exchange, part, ask) &&
           !job_avoids(exchange, part->job, provider) &&
           (part->waiting == 0 || (part_choice(exchange, part, provider) > 0 &&
                                   !lateness_rules_out(exchange, part, ask->device)));
}
