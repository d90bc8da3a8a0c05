#include "broker/gateway/waiting_reads.h"

#include "base/checked.h"
#include "broker/fatal.h"
#include "exchange/exchange.h"
#include "runtime/clock.h"

#include <stddef.h>

/* Interval between looks at the waiting reads. */
#define INTERVAL_NS (5 * NS_PER_MS)

static struct budget_asker asker_of(const struct request *request)
{
    return (struct budget_asker){
        .account = request->account, .session = request->session, .kind = BUDGET_READS};
}

void waiting_reads_init(struct waiting_reads *waiting)
{
    *waiting = (struct waiting_reads){.first = NULL};
    waiting->last = &waiting->first;
}

static void keep(struct waiting_reads *waiting, struct request *request)
{
    request->link.next = NULL;
    *waiting->last = &request->link;
    waiting->last = &request->link.next;
}

static struct outgoing *refuse(struct refusals *refusals, const struct request *request,
                               const struct budget_refusal *refusal)
{
    if (!refusal->is_told) {
        if (refusals != NULL && request->account != EXCHANGE_NO_ACCOUNT) {
            refusals_note(refusals, request->account, REJECT_RATE,
                          (enum message_type)request->envelope.type);
        }
        return NULL;
    }
    struct outgoing *told =
        outgoing_refuse(request, REJECT_RATE, refusal->field, refusal->value, refusal->limit);
    if (told == NULL) {
        fatal("out of memory");
    }
    return told;
}

bool waiting_reads_admit(struct waiting_reads *waiting, struct budget *budget,
                         struct refusals *refusals, struct request *request,
                         struct outgoing **ret_refusal)
{
    const struct budget_asker asker = asker_of(request);
    struct budget_refusal refusal;
    enum budget_answer allowed = BUDGET_NOW;
    *ret_refusal = NULL;
    if (budget != NULL) {
        allowed = budget_allows(budget, &asker, clock_monotonic_ns(), &refusal);
    }
    switch (allowed) {
    case BUDGET_NOW:
        return true;
    case BUDGET_LATER:
        keep(waiting, request);
        return false;
    case BUDGET_REFUSED:
        break;
    }
    *ret_refusal = refuse(refusals, request, &refusal);
    request_destroy(&request);
    return false;
}

void waiting_reads_look(struct waiting_reads *waiting, struct budget *budget,
                        waiting_reads_answer *answer, void *context)
{
    struct queue_link **at = &waiting->first;
    waiting->due_ns = clock_monotonic_ns() + INTERVAL_NS;
    while (*at != NULL) {
        struct queue_link *link = *at;
        struct request *request = QUEUE_ELEMENT(link, struct request, link);
        const struct budget_asker asker = asker_of(request);
        if (!budget_resumes(budget, &asker, clock_monotonic_ns())) {
            at = &link->next;
            continue;
        }
        *at = link->next;
        answer(context, request);
    }
    waiting->last = at;
}

void waiting_reads_forget(struct waiting_reads *waiting, struct budget *budget, uint64_t session,
                          bool all)
{
    struct queue_link **at = &waiting->first;
    while (*at != NULL) {
        struct queue_link *link = *at;
        struct request *request = QUEUE_ELEMENT(link, struct request, link);
        if (!all && request->session != session) {
            at = &link->next;
            continue;
        }
        const struct budget_asker asker = asker_of(request);
        budget_forgets(budget, &asker);
        *at = link->next;
        request_destroy(&request);
    }
    waiting->last = at;
}
