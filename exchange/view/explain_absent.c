#include "exchange/view/explain_absent.h"

#include "exchange/lifecycle.h"
#include "exchange/state/lookup.h"
#include "exchange/state/steps.h"
#include "exchange/view/reads.h"

/* Counts a device whose provider the operator froze. Only the owner of a job that lost a lease of
 * that provider may learn the operator's reason. */
static void count_frozen(const struct exchange *exchange, const struct job *job,
                         const struct member *member, struct exchange_explanation *why)
{
    why->frozen++;
    for (const struct list_link *at = job->leases.next;
         at != &job->leases && why->frozen_why == NULL && member->frozen_why != NULL;
         at = at->next) {
        const struct lease *lease = LIST_ELEMENT(at, struct lease, of_job);
        steps_add(exchange, 1);
        why->frozen_why = lease->provider == member->number && read_was_revoked(exchange, lease)
                              ? member->frozen_why
                              : NULL;
    }
}

/* Counts a device whose provider is silent. Such a provider has no ask. */
static void count_silent(const struct exchange *exchange, const struct member *member,
                         struct exchange_explanation *why)
{
    const int64_t since_ns = member->provider->suspect_ns;
    const int64_t silent_ns = since_ns == 0 ? 0 : exchange->now_ns - since_ns;
    const bool is_same = why->silent == 0 || why->silent_name == member->name;
    why->silent_ns = silent_ns > why->silent_ns ? silent_ns : why->silent_ns;
    why->silent_name = is_same ? member->name : NULL;
    why->silent++;
}

void explain_absent(const struct exchange *exchange, const struct job *job,
                    const struct device *device, struct exchange_explanation *why)
{
    const struct member *member = lookup_member(exchange, device->key.provider);
    if (member->is_frozen) {
        count_frozen(exchange, job, member, why);
    }
    if (member->provider->state == PROVIDER_SUSPECT) {
        count_silent(exchange, member, why);
    }
}
