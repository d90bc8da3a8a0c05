#include "broker/handover.h"

#include "runtime/descriptor.h"
#include "runtime/log.h"

#include <sodium.h>
#include <stddef.h>
#include <unistd.h>

bool handover_promise(struct handover *handover, const struct id128 *token, uint32_t account,
                      const struct hash32 *blob, int64_t now_ns)
{
    struct ticket *place = NULL;
    size_t open_count = 0;
    for (size_t i = 0; i < TICKETS_MAX; i++) {
        struct ticket *ticket = &handover->tickets[i];
        if (ticket->until_ns <= now_ns) {
            place = ticket;
        } else if (ticket->account == account) {
            open_count++;
        }
    }
    if (handover->port < 0 || place == NULL || open_count >= TICKETS_PER_ACCOUNT) {
        return false;
    }
    *place = (struct ticket){
        .token = *token, .blob = *blob, .account = account, .until_ns = now_ns + TICKET_LIFE_NS};
    return true;
}

/* Ends the ticket, and says which blob it was for. In the same time for any token that is none. */
static bool use(struct handover *handover, const struct id128 *token, int64_t now_ns,
                struct hash32 *ret_blob)
{
    struct ticket *found = NULL;
    for (size_t i = 0; i < TICKETS_MAX; i++) {
        struct ticket *ticket = &handover->tickets[i];
        if (sodium_memcmp(ticket->token.bytes, token->bytes, sizeof token->bytes) == 0 &&
            ticket->until_ns > now_ns) {
            found = ticket;
        }
    }
    if (found == NULL) {
        return false;
    }
    *ret_blob = found->blob;
    *found = (struct ticket){0};
    return true;
}

void handover_serve(struct handover *handover, struct blob_store *store, int64_t now_ns)
{
    struct id128 token;
    struct descriptor_asker asker;
    for (int i = 0; handover->port >= 0 && i < HANDOVER_BATCH &&
                    descriptor_port_receive(handover->port, &token, &asker);
         i++) {
        struct hash32 blob;
        int fd = -1;
        if (use(handover, &token, now_ns, &blob) && blob_store_file(store, &blob, &fd) != BLOB_OK) {
            log_warning("a blob's file is not handed over: %s", blob_store_error(store));
        }
        descriptor_port_answer(handover->port, &asker, fd); /* without a file: he asks for bytes */
        if (fd >= 0) {
            (void)close(fd); /* only read */
        }
    }
}
