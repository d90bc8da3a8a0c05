/* These reads say whose subtasks run where, for the live output of jobs (docs/protocol.md, section
 * 7), and what these subtasks were given. They change nothing. */
#include "exchange/lifecycle.h"
#include "exchange/state/lookup.h"
#include "exchange/state/steps.h"
#include "exchange/state/table.h"
#include "exchange/view/reads.h"
#include "exchange/work/attempts.h"

bool exchange_runs(const struct exchange *exchange, uint32_t account, uint64_t lease_id,
                   uint32_t index, uint32_t attempt, struct id128 *ret_job)
{
    const struct lease *lease = lookup_lease(exchange, lease_id);
    if (lease == NULL || lease->provider != account ||
        attempt_find(exchange, lease, index, attempt) == NULL) {
        return false;
    }
    *ret_job = lease->job->id;
    return true;
}

void exchange_visit_held(const struct exchange *exchange, uint32_t account,
                         exchange_lease_visitor *visitor, void *context)
{
    const struct member *member = lookup_member(exchange, account);
    const struct provider *provider = member == NULL ? NULL : member->provider;
    if (provider == NULL) {
        return;
    }
    for (const struct list_link *at = provider->leases.next; at != &provider->leases;
         at = at->next) {
        const struct lease *lease = LIST_ELEMENT(at, struct lease, of_provider);
        steps_add(exchange, 1);
        visitor(context, lease->provider, lease->id, &lease->job->id);
    }
}

void exchange_visit_holders(const struct exchange *exchange, const struct id128 *id,
                            exchange_lease_visitor *visitor, void *context)
{
    const struct job *job = table_find(&exchange->jobs, id);
    if (job == NULL) {
        return;
    }
    for (const struct list_link *at = job->leases.next; at != &job->leases; at = at->next) {
        const struct lease *lease = LIST_ELEMENT(at, struct lease, of_job);
        steps_add(exchange, 1);
        if (lease->state != LEASE_ENDED) {
            visitor(context, lease->provider, lease->id, id);
        }
    }
}

static bool visit_lease(const struct lease *lease, exchange_on_given *visit, void *context)
{
    const struct graph *graph = lease->job->graph;
    for (const struct list_link *at = lease->attempts.next; at != &lease->attempts; at = at->next) {
        uint32_t index = LIST_ELEMENT(at, struct attempt, of_lease)->key.index;
        for (uint32_t k = graph->first_after[index]; k < graph->first_after[index + 1]; k++) {
            const struct given *kept = graph->given[graph->after[k]];
            const struct exchange_given given = {.bytes = kept == NULL ? NULL : kept->bytes,
                                                 .length = kept == NULL ? 0 : kept->length};
            if (given.length > 0 && !visit(context, lease->id, index, &given)) {
                return false;
            }
        }
    }
    return true;
}

bool exchange_each_given(const struct exchange *exchange, exchange_on_given *visit, void *context)
{
    for (const struct list_link *at = exchange->job_list.next; at != &exchange->job_list;
         at = at->next) {
        const struct job *job = LIST_ELEMENT(at, struct job, all);
        if (job->graph == NULL) {
            continue;
        }
        for (const struct list_link *link = job->leases.next; link != &job->leases;
             link = link->next) {
            const struct lease *lease = LIST_ELEMENT(link, struct lease, of_job);
            if (lease->state != LEASE_ENDED && !visit_lease(lease, visit, context)) {
                return false;
            }
        }
    }
    return true;
}
