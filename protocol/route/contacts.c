#include "protocol/route/contacts.h"

#include "protocol/route/endpoint.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

void contacts_init(struct contacts *contacts, const struct contact *addresses, size_t count)
{
    assert(count <= CONTACTS_MAX);
    *contacts = (struct contacts){.count = count};
    for (size_t i = 0; i < count; i++) {
        contacts->addresses[i] = addresses[i];
    }
}

const struct contact *contacts_now(const struct contacts *contacts)
{
    if (contacts->is_outside) {
        return &contacts->leader;
    }
    return contacts->count == 0 ? NULL : &contacts->addresses[contacts->at];
}

bool contacts_has_choice(const struct contacts *contacts)
{
    return contacts->count > 1 || contacts->is_outside;
}

int64_t contacts_greeting_ns(const struct contacts *contacts)
{
    return contacts_has_choice(contacts) ? CONTACTS_GREETING_NS : CONTACTS_ONE_GREETING_NS;
}

static void note(struct contacts *contacts, enum contact_end end)
{
    if (contacts->is_outside) {
        contacts->leader_end = end;
    } else if (contacts->count > 0) {
        contacts->ends[contacts->at] = end;
    }
}

void contacts_stands(struct contacts *contacts, const char *blobs)
{
    note(contacts, CONTACT_STANDS);
    contacts->stands = true;
    struct contact *now =
        contacts->is_outside ? &contacts->leader : &contacts->addresses[contacts->at];
    if ((contacts->is_outside || contacts->count > 0) && now->blobs[0] == '\0' && blobs != NULL &&
        endpoint_is_tcp(blobs, strlen(blobs))) {
        memcpy(now->blobs, blobs, strlen(blobs) + 1);
    }
}

void contacts_leads(struct contacts *contacts)
{
    contacts->failures = 0;
    contacts->redirects = 0;
}

/* ---- the next address ---- */

/* A follower may name a leader that has just died, and not know it. */
static bool is_dead(enum contact_end end)
{
    return end == CONTACT_SILENT || end == CONTACT_CLOSED;
}

/* Moves to the leader that a follower named. Returns false when that is no other address, or one
 * that did not answer the last time. Such an address has its turn like any other. */
static bool move_to_leader(struct contacts *contacts, const char *leader)
{
    const struct contact *now = contacts_now(contacts);
    if (now == NULL || !endpoint_is_tcp(leader, strlen(leader)) ||
        strcmp(leader, now->control) == 0) {
        return false;
    }
    contacts->is_outside = false;
    for (size_t i = 0; i < contacts->count; i++) {
        if (strcmp(leader, contacts->addresses[i].control) == 0) {
            const bool is_usable = !is_dead(contacts->ends[i]);
            contacts->at = is_usable ? i : contacts->at;
            return is_usable;
        }
    }
    if (strcmp(leader, contacts->leader.control) == 0 && is_dead(contacts->leader_end)) {
        contacts->leader_end = CONTACT_UNTRIED; /* its turn comes when it is named again */
        return false;
    }
    contacts->is_outside = true;
    contacts->leader = (struct contact){.control = ""};
    contacts->leader_end = CONTACT_UNTRIED;
    memcpy(contacts->leader.control, leader, strlen(leader) + 1);
    return true;
}

static void move_on(struct contacts *contacts)
{
    contacts->is_outside = false;
    contacts->at = contacts->count == 0 ? 0 : (contacts->at + 1) % contacts->count;
}

static int64_t random_ns(struct random *dice, int64_t most)
{
    return (int64_t)random_below(dice, (uint64_t)most + 1);
}

/* Returns true while a broker follows, and the search for the leader is young. */
static bool is_election(const struct contacts *contacts)
{
    bool has_follower = contacts->leader_end == CONTACT_FOLLOWS;
    for (size_t i = 0; i < contacts->count; i++) {
        has_follower = has_follower || contacts->ends[i] == CONTACT_FOLLOWS;
    }
    return has_follower && contacts->failures < CONTACTS_ELECTION_TRIES;
}

static int64_t wait_ns(struct contacts *contacts, int64_t spread_ns, struct random *dice)
{
    const int64_t cap = is_election(contacts) ? CONTACTS_ELECTION_NS : CONTACTS_WAIT_MOST_NS;
    const unsigned doublings =
        contacts->failures < CONTACTS_DOUBLINGS_MAX ? contacts->failures : CONTACTS_DOUBLINGS_MAX;
    int64_t most = CONTACTS_WAIT_FIRST_NS << doublings;
    most = most > cap ? cap : most;
    contacts->failures++;
    const int64_t wait = most / 2 + random_ns(dice, most / 2);
    return wait + random_ns(dice, spread_ns);
}

int64_t contacts_next_ns(struct contacts *contacts, enum contact_end end, const char *leader,
                         int64_t spread_ns, struct random *dice)
{
    const bool stood = contacts->stands;
    contacts->stands = false;
    note(contacts, end);
    if (end != CONTACT_FOLLOWS || !move_to_leader(contacts, leader)) {
        move_on(contacts);
        if (stood && end != CONTACT_FOLLOWS && end != CONTACT_NO_QUORUM) {
            contacts_leads(contacts); /* it may well have led until now */
        }
        return wait_ns(contacts, spread_ns, dice);
    }
    if (contacts->redirects == CONTACTS_REDIRECTS_MAX) {
        return wait_ns(contacts, spread_ns, dice);
    }
    contacts->redirects++;
    /* The clients of a session are many at once; those that only greeted came one by one. */
    return random_ns(dice, CONTACTS_REDIRECT_NS) + (stood ? random_ns(dice, spread_ns) : 0);
}

/* ---- for people ---- */

const char *contacts_end_text(enum contact_end end)
{
    switch (end) {
    case CONTACT_UNTRIED:
        return "not tried yet";
    case CONTACT_STANDS:
        return "connected";
    case CONTACT_SILENT:
        return "no answer";
    case CONTACT_CLOSED:
        return "no connection";
    case CONTACT_ENDED:
        return "it ended the session";
    case CONTACT_FOLLOWS:
        return "it follows another broker";
    case CONTACT_REFUSED:
        return "it refused the session";
    case CONTACT_NO_QUORUM:
        return "its journal has no quorum";
    }
    return "";
}

void contacts_explain(const struct contacts *contacts, char *ret_text, size_t capacity)
{
    size_t length = 0;
    ret_text[0] = '\0';
    for (size_t i = 0; i < contacts->count && length < capacity; i++) {
        const int written =
            snprintf(ret_text + length, capacity - length, "%s%s (%s)", i == 0 ? "" : ", ",
                     contacts->addresses[i].control, contacts_end_text(contacts->ends[i]));
        length += written > 0 ? (size_t)written : 0;
    }
    if (contacts->leader.control[0] != '\0' && length < capacity) {
        (void)snprintf(ret_text + length, capacity - length, "%s%s (%s)", length == 0 ? "" : ", ",
                       contacts->leader.control, contacts_end_text(contacts->leader_end));
    }
}
