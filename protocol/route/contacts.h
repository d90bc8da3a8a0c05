/* protocol/route/contacts.h chooses the address that a client connects to, of the several that a
 * market may have, and how long the client waits before it does.
 *
 * One broker of a market leads, and the others follow it. The client does not know which: it tries
 * one address after the other, and goes straight to the leader that a follower names. Every failure
 * doubles the wait, from CONTACTS_WAIT_FIRST_NS to CONTACTS_WAIT_MOST_NS. A wait is random between
 * half and all of itself, so that clients do not return in step. Only CONTACTS_REDIRECTS_MAX moves
 * to a named leader are quick, until a broker has accepted a command. While a broker answers that
 * it follows, another one will lead soon: for CONTACTS_ELECTION_TRIES attempts, a wait is at most
 * CONTACTS_ELECTION_NS. So a client makes a bounded number of attempts in a second, whatever the
 * brokers answer.
 *
 * A leader whose address is not in the client's own list is used for one connection, and is never
 * written down. This is safe, because all brokers of a market have one transport key. CURVE proves
 * the key before a byte of the dialogue is sent. Whoever names a wrong address can delay a client,
 * and cannot pose as the market. Dice are arguments: the code is pure. */
#ifndef BOURSE_PROTOCOL_ROUTE_CONTACTS_H
#define BOURSE_PROTOCOL_ROUTE_CONTACTS_H

#include "base/random.h"
#include "protocol/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CONTACTS_MAX = 8,           /* brokers of one market */
    CONTACTS_REDIRECTS_MAX = 3, /* quick moves to a named leader until a session stands */
    CONTACTS_DOUBLINGS_MAX = 6,
    CONTACTS_ELECTION_TRIES = 16,
};
#define CONTACTS_WAIT_FIRST_NS INT64_C(100000000) /* 100 ms */
#define CONTACTS_WAIT_MOST_NS INT64_C(5000000000) /* 5 s */
#define CONTACTS_ELECTION_NS INT64_C(500000000)   /* 500 ms */
#define CONTACTS_REDIRECT_NS INT64_C(50000000)    /* longest wait of a quick move: 50 ms */
#define CONTACTS_GREETING_NS INT64_C(3000000000)  /* of several addresses, one has 3 s to answer */
#define CONTACTS_ONE_GREETING_NS INT64_C(5000000000) /* the only address has 5 s */

/* The two ports of one broker. `blobs` is "" when it is not known. */
struct contact {
    char control[LIMIT_ENDPOINT_BYTES + 1];
    char blobs[LIMIT_ENDPOINT_BYTES + 1];
};

/* The value says how an attempt or a session ended. */
enum contact_end {
    CONTACT_UNTRIED,
    CONTACT_STANDS,    /* the session stands */
    CONTACT_SILENT,    /* no answer */
    CONTACT_CLOSED,    /* no connection can be made, or it has ended */
    CONTACT_ENDED,     /* the broker ended the session, or sent what cannot be used */
    CONTACT_FOLLOWS,   /* NOT_LEADER */
    CONTACT_REFUSED,   /* another refusal of the Hello */
    CONTACT_NO_QUORUM, /* its journal takes no entry, and another one may lead */
};

struct contacts {
    struct contact addresses[CONTACTS_MAX];
    size_t count; /* 0: the client knows its only address by other means */
    enum contact_end ends[CONTACTS_MAX];
    size_t at;             /* index of the present address, or of the one before it */
    bool is_outside;       /* the present address is `leader` */
    struct contact leader; /* the last one outside the list; control "": none yet */
    enum contact_end leader_end;
    bool stands;        /* a session stands, with a broker that may lead */
    unsigned failures;  /* since a session with a leader */
    unsigned redirects; /* likewise */
};

/* `count` is at most CONTACTS_MAX; the addresses are copied. */
void contacts_init(struct contacts *contacts, const struct contact *addresses, size_t count);
/* Returns the present address, or NULL when the route knows none. */
const struct contact *contacts_now(const struct contacts *contacts);
/* Returns true when the route has a choice: several addresses, or a leader outside the list. */
bool contacts_has_choice(const struct contacts *contacts);
/* Returns how long the present address may take to answer a Hello. */
int64_t contacts_greeting_ns(const struct contacts *contacts);
/* Notes that a session stands. `blobs` is the endpoint of the blob port that the Welcome names;
 * NULL: none. It counts for an address whose blob port is not known. */
void contacts_stands(struct contacts *contacts, const char *blobs);
/* Notes that the broker of the session has accepted a command, so it leads. A Welcome alone shows
 * nothing: two followers that name each other would make a client hop between them for ever. */
void contacts_leads(struct contacts *contacts);
/* Notes that the attempt or the session has ended, moves to the next address, and returns the wait
 * before it is tried. `leader` is the address that NOT_LEADER names; "" for none. `spread_ns` is
 * the time over which the broker asks its clients to spread their return. */
int64_t contacts_next_ns(struct contacts *contacts, enum contact_end end, const char *leader,
                         int64_t spread_ns, struct random *dice);

/* Returns what an end means for a person: "no answer", "it follows another broker". */
const char *contacts_end_text(enum contact_end end);
/* Writes every address with its last end: "tcp://a:4770 (no answer), tcp://b:4770 (...)". */
void contacts_explain(const struct contacts *contacts, char *ret_text, size_t capacity);

#endif
