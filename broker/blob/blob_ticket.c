#include "broker/blob/handover.h"

#include "runtime/descriptor.h"
#include "runtime/log.h"

#include <sodium.h>
#include <stddef.h>
#include <unistd.h>

static void end_ticket(struct ticket *ticket)
{
    if (ticket->has_end) {
        (void)close(ticket->end); /* whoever reads the other end sees it */
    }
    *ticket = (struct ticket){0};
}

static bool promise(struct handover *handover, const struct ticket *promised, int64_t now_ns)
{
    struct ticket *place = NULL;
    size_t open_count = 0;
    for (size_t i = 0; i < TICKETS_MAX; i++) {
        struct ticket *ticket = &handover->tickets[i];
        if (ticket->until_ns <= now_ns) {
            place = ticket;
        } else if (ticket->account == promised->account) {
            open_count++;
        }
    }
    if (handover->port < 0 || place == NULL || open_count >= TICKETS_PER_ACCOUNT) {
        return false;
    }
    end_ticket(place);
    *place = *promised;
    place->until_ns = now_ns + TICKET_LIFE_NS;
    return true;
}

bool handover_promise(struct handover *handover, const struct id128 *token, uint32_t account,
                      const struct hash32 *blob, int64_t now_ns)
{
    return promise(handover, &(struct ticket){.token = *token, .blob = *blob, .account = account},
                   now_ns);
}

bool handover_promise_end(struct handover *handover, const struct id128 *token, uint32_t account,
                          int end, int64_t now_ns)
{
    struct ticket ticket = {.token = *token, .account = account, .has_end = true, .end = end};
    bool good = promise(handover, &ticket, now_ns);
    if (!good) {
        end_ticket(&ticket);
    }
    return good;
}

void handover_fini(struct handover *handover)
{
    for (size_t i = 0; i < TICKETS_MAX; i++) {
        end_ticket(&handover->tickets[i]);
    }
}

/* Ends the ticket, and says what it was for. In the same time for any token that is none. */
static bool use(struct handover *handover, const struct id128 *token, int64_t now_ns,
                struct ticket *ret_ticket)
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
    *ret_ticket = *found;
    *found = (struct ticket){0};
    return true;
}

/* An end that nobody came for: who reads at the other is told. */
static void end_late(struct handover *handover, int64_t now_ns)
{
    for (size_t i = 0; i < TICKETS_MAX; i++) {
        if (handover->tickets[i].has_end && handover->tickets[i].until_ns <= now_ns) {
            end_ticket(&handover->tickets[i]);
        }
    }
}

void handover_serve(struct handover *handover, struct blob_store *store, int64_t now_ns)
{
    struct id128 token;
    struct descriptor_asker asker;
    end_late(handover, now_ns);
    for (int i = 0; handover->port >= 0 && i < HANDOVER_BATCH &&
                    descriptor_port_receive(handover->port, &token, &asker);
         i++) {
        struct ticket ticket;
        int fd = -1;
        bool is_hashed = false;
        if (use(handover, &token, now_ns, &ticket)) {
            fd = ticket.end;
            if (!ticket.has_end &&
                blob_store_file(store, &ticket.blob, &fd, &is_hashed) != BLOB_OK) {
                if (fd >= 0) { /* of a file that nobody has checked */
                    (void)close(fd);
                    fd = -1;
                }
                log_debug("a blob's file is not handed over: %s", blob_store_error(store));
            }
        }
        /* A peer that gets no file asks for bytes. */
        descriptor_port_answer(handover->port, &asker, fd, is_hashed ? &ticket.blob : NULL);
        if (fd >= 0) {
            (void)close(fd); /* ours: he has his own */
        }
    }
}
