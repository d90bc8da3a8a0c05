#include "exchange/work/subtask_makers.h"

#include "exchange/state/held.h"
#include "exchange/state/lookup.h"
#include "exchange/state/parts.h"
#include "exchange/state/steps.h"
#include "exchange/work/check_queue.h"
#include "exchange/work/juries.h"

bool subtask_may_run_on(const struct exchange *exchange, const struct job *job, uint32_t index,
                        uint32_t provider)
{
    if (job->checks == NULL) {
        return true;
    }
    return held_for_check(job, index)
               ? !jury_has_member(exchange, job->checks->juries[index], provider)
               : check_is_for(exchange, job, index, provider);
}

/* A job that waits for its end has given its bids up, and with them what says which devices fit. */
bool subtask_provider_fits(const struct exchange *exchange, const struct provider *provider,
                           const struct part *part)
{
    if (part->class_id == NO_CLASS) {
        return false;
    }
    for (const struct list_link *at = provider->devices.next; at != &provider->devices;
         at = at->next) {
        const struct device *device = LIST_ELEMENT(at, struct device, of_provider);
        steps_add(exchange, 1);
        if (device->is_advertised && device->slots >= part->width &&
            book_class_accepts(exchange->book, part->class_id, device->cell)) {
            return true;
        }
    }
    return false;
}

bool subtask_has_maker(const struct exchange *exchange, const struct job *job, uint32_t index)
{
    for (const struct list_link *at = exchange->provider_list.next; at != &exchange->provider_list;
         at = at->next) {
        const struct provider *provider = LIST_ELEMENT(at, struct provider, all);
        if (provider->number != job->owner &&
            subtask_may_run_on(exchange, job, index, provider->number) &&
            !lookup_member(exchange, provider->number)->is_frozen &&
            subtask_provider_fits(exchange, provider, part_of(job, index))) {
            return true;
        }
    }
    return false;
}
