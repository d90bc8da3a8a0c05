#include "exchange/account/invitations.h"

#include "exchange/state/tracking.h"

#include <stdlib.h>

void invitation_drop(struct exchange *exchange, struct invitation *invitation)
{
    table_remove(&exchange->invitations, &invitation->token_hash);
    list_remove(&invitation->all);
    exchange->invitation_count--;
    tracking_remove(exchange, &invitation->tracked);
    free(invitation);
}

/* The list is sorted by expiry, so most steps look at one entry. */
void invitations_expire(struct exchange *exchange)
{
    while (!list_empty(&exchange->invitation_list)) {
        struct invitation *first =
            LIST_ELEMENT(exchange->invitation_list.next, struct invitation, all);
        if (first->expires_ns > exchange->now_ns) {
            return;
        }
        invitation_drop(exchange, first);
    }
}

void invitation_link(struct exchange *exchange, struct invitation *invitation)
{
    struct list_link *after = exchange->invitation_list.previous;
    while (after != &exchange->invitation_list &&
           LIST_ELEMENT(after, struct invitation, all)->expires_ns > invitation->expires_ns) {
        after = after->previous;
    }
    list_insert_before(after->next, &invitation->all);
    exchange->invitation_count++;
}
