#include "protocol/route/route.h"

#include "protocol/route/endpoint.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

void route_init(struct route *route, const struct route_address *addresses, size_t count)
{
    assert(count <= ROUTE_ADDRESSES_MAX);
    *route = (struct route){.count = count};
    for (size_t i = 0; i < count; i++) {
        route->addresses[i] = addresses[i];
    }
}

const struct route_address *route_now(const struct route *route)
{
    if (route->is_outside) {
        return &route->leader;
    }
    return route->count == 0 ? NULL : &route->addresses[route->at];
}

bool route_has_choice(const struct route *route)
{
    return route->count > 1 || route->is_outside;
}

int64_t route_greeting_ns(const struct route *route)
{
    return route_has_choice(route) ? ROUTE_GREETING_NS : ROUTE_ONE_GREETING_NS;
}

static void note(struct route *route, enum route_end end)
{
    if (route->is_outside) {
        route->leader_end = end;
    } else if (route->count > 0) {
        route->ends[route->at] = end;
    }
}

void route_stands(struct route *route, const char *blobs)
{
    note(route, ROUTE_STANDS);
    route->stands = true;
    struct route_address *now = route->is_outside ? &route->leader : &route->addresses[route->at];
    if ((route->is_outside || route->count > 0) && now->blobs[0] == '\0' && blobs != NULL &&
        endpoint_is_tcp(blobs, strlen(blobs))) {
        memcpy(now->blobs, blobs, strlen(blobs) + 1);
    }
}

void route_leads(struct route *route)
{
    route->failures = 0;
    route->redirects = 0;
}

/* ---- the next address ---- */

/* Moves to the leader that a follower named. Returns false when that is no other address. */
static bool move_to_leader(struct route *route, const char *leader)
{
    const struct route_address *now = route_now(route);
    if (now == NULL || !endpoint_is_tcp(leader, strlen(leader)) ||
        strcmp(leader, now->control) == 0) {
        return false;
    }
    route->is_outside = false;
    for (size_t i = 0; i < route->count; i++) {
        if (strcmp(leader, route->addresses[i].control) == 0) {
            route->at = i;
            return true;
        }
    }
    route->is_outside = true;
    route->leader = (struct route_address){.control = ""};
    route->leader_end = ROUTE_UNTRIED;
    memcpy(route->leader.control, leader, strlen(leader) + 1);
    return true;
}

static void move_on(struct route *route)
{
    route->is_outside = false;
    route->at = route->count == 0 ? 0 : (route->at + 1) % route->count;
}

static int64_t random_ns(struct random *dice, int64_t most)
{
    return (int64_t)random_below(dice, (uint64_t)most + 1);
}

static int64_t wait_ns(struct route *route, int64_t spread_ns, struct random *dice)
{
    const unsigned doublings =
        route->failures < ROUTE_DOUBLINGS_MAX ? route->failures : ROUTE_DOUBLINGS_MAX;
    int64_t most = ROUTE_WAIT_FIRST_NS << doublings;
    if (most > ROUTE_WAIT_MOST_NS) {
        most = ROUTE_WAIT_MOST_NS;
    }
    route->failures++;
    const int64_t wait = most / 2 + random_ns(dice, most / 2);
    return wait + random_ns(dice, spread_ns);
}

int64_t route_next_ns(struct route *route, enum route_end end, const char *leader,
                      int64_t spread_ns, struct random *dice)
{
    const bool stood = route->stands;
    route->stands = false;
    note(route, end);
    if (end != ROUTE_FOLLOWS || !move_to_leader(route, leader)) {
        move_on(route);
        if (stood && end != ROUTE_FOLLOWS) {
            route_leads(route); /* it may well have led until now */
        }
        return wait_ns(route, spread_ns, dice);
    }
    if (route->redirects == ROUTE_REDIRECTS_MAX) {
        return wait_ns(route, spread_ns, dice);
    }
    route->redirects++;
    /* The clients of a session are many at once; those that only greeted came one by one. */
    return random_ns(dice, ROUTE_REDIRECT_NS) + (stood ? random_ns(dice, spread_ns) : 0);
}

/* ---- for people ---- */

const char *route_end_text(enum route_end end)
{
    switch (end) {
    case ROUTE_UNTRIED:
        return "not tried yet";
    case ROUTE_STANDS:
        return "connected";
    case ROUTE_SILENT:
        return "no answer";
    case ROUTE_ENDED:
        return "it ended the session";
    case ROUTE_FOLLOWS:
        return "it follows another broker";
    case ROUTE_REFUSED:
        return "it refused the session";
    }
    return "";
}

void route_explain(const struct route *route, char *ret_text, size_t capacity)
{
    size_t length = 0;
    ret_text[0] = '\0';
    for (size_t i = 0; i < route->count && length < capacity; i++) {
        const int written =
            snprintf(ret_text + length, capacity - length, "%s%s (%s)", i == 0 ? "" : ", ",
                     route->addresses[i].control, route_end_text(route->ends[i]));
        length += written > 0 ? (size_t)written : 0;
    }
    if (route->leader.control[0] != '\0' && length < capacity) {
        (void)snprintf(ret_text + length, capacity - length, "%s%s (%s)", length == 0 ? "" : ", ",
                       route->leader.control, route_end_text(route->leader_end));
    }
}
