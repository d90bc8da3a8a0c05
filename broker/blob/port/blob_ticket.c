#include "broker/blob/port/blob_ticket.h"

#include "runtime/descriptor.h"
#include "runtime/log.h"

#include <sodium.h>
#include <stddef.h>
#include <unistd.h>

static void end_ticket(struct blob_ticket *ticket)
{
    if (ticket->has_end) {
        (void)close(ticket->end); /* the reader of the other end sees this */
    }
    *ticket = (struct blob_ticket){0};
}

static bool promise(struct blob_tickets *tickets, const struct blob_ticket *promised,
                    int64_t now_ns)
{
    struct blob_ticket *place = NULL;
    size_t open_count = 0;
    for (size_t i = 0; i < BLOB_TICKETS_MAX; i++) {
        struct blob_ticket *ticket = &tickets->list[i];
        if (ticket->until_ns <= now_ns) {
            place = ticket;
        } else if (ticket->account == promised->account) {
            open_count++;
        }
    }
    if (tickets->port < 0 || place == NULL || open_count >= BLOB_TICKETS_PER_ACCOUNT) {
        return false;
    }
    end_ticket(place);
    *place = *promised;
    place->until_ns = now_ns + BLOB_TICKET_LIFE_NS;
    return true;
}

bool blob_ticket_promise(struct blob_tickets *tickets, const struct id128 *token, uint32_t account,
                         const struct hash32 *blob, int64_t now_ns)
{
    return promise(
        tickets, &(struct blob_ticket){.token = *token, .blob = *blob, .account = account}, now_ns);
}

bool blob_ticket_promise_end(struct blob_tickets *tickets, const struct id128 *token,
                             uint32_t account, int end, int64_t now_ns)
{
    struct blob_ticket ticket = {.token = *token, .account = account, .has_end = true, .end = end};
    bool good = promise(tickets, &ticket, now_ns);
    if (!good) {
        end_ticket(&ticket);
    }
    return good;
}

void blob_tickets_fini(struct blob_tickets *tickets)
{
    for (size_t i = 0; i < BLOB_TICKETS_MAX; i++) {
        end_ticket(&tickets->list[i]);
    }
}

/* Ends the ticket and copies it to *ret_ticket. Every unknown token takes the same time. */
static bool use(struct blob_tickets *tickets, const struct id128 *token, int64_t now_ns,
                struct blob_ticket *ret_ticket)
{
    struct blob_ticket *found = NULL;
    for (size_t i = 0; i < BLOB_TICKETS_MAX; i++) {
        struct blob_ticket *ticket = &tickets->list[i];
        if (sodium_memcmp(ticket->token.bytes, token->bytes, sizeof token->bytes) == 0 &&
            ticket->until_ns > now_ns) {
            found = ticket;
        }
    }
    if (found == NULL) {
        return false;
    }
    *ret_ticket = *found;
    *found = (struct blob_ticket){0};
    return true;
}

/* Closes ends whose time is over, so that their readers see the end of the stream. */
static void end_late(struct blob_tickets *tickets, int64_t now_ns)
{
    for (size_t i = 0; i < BLOB_TICKETS_MAX; i++) {
        if (tickets->list[i].has_end && tickets->list[i].until_ns <= now_ns) {
            end_ticket(&tickets->list[i]);
        }
    }
}

void blob_tickets_serve(struct blob_tickets *tickets, struct blob_store *store, int64_t now_ns)
{
    struct id128 token;
    struct descriptor_asker asker;
    end_late(tickets, now_ns);
    for (int i = 0; tickets->port >= 0 && i < BLOB_TICKETS_BATCH &&
                    descriptor_port_receive(tickets->port, &token, &asker);
         i++) {
        struct blob_ticket ticket;
        int fd = -1;
        bool is_hashed = false;
        if (use(tickets, &token, now_ns, &ticket)) {
            fd = ticket.end;
            if (!ticket.has_end &&
                blob_store_file(store, &ticket.blob, &fd, &is_hashed) != BLOB_OK) {
                if (fd >= 0) { /* nobody has checked this file */
                    (void)close(fd);
                    fd = -1;
                }
                log_debug("a blob's file is not handed over: %s", blob_store_error(store));
            }
        }
        /* A peer that gets no file asks for bytes. */
        descriptor_port_answer(tickets->port, &asker, fd, is_hashed ? &ticket.blob : NULL);
        if (fd >= 0) {
            (void)close(fd); /* the peer has a descriptor of its own */
        }
    }
}
