#include "tests/sim/net.h"

#include "protocol/codec.h"
#include "protocol/envelope.h"
#include "protocol/limits.h"
#include "runtime/router.h"
#include "tests/sim/oracle.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { CONNECTIONS_MAX = 1 << 16, CAPTURED_MAX = 64, QUEUE_MAX = 1000, SESSION_OFFSET = 8 };

struct connection {
    struct peer *peer;
    uint32_t peer_life;
    struct host *host;
    uint32_t host_life;
    int64_t arrived_there_ns, arrived_here_ns; /* latest planned arrivals: order is kept, mostly */
    uint32_t underway;                         /* towards the peer */
    bool is_open;
};

struct parcel {
    uint32_t connection;
    bool is_garbled;
    const struct peer *from; /* of a captured one */
    size_t length;
    uint8_t bytes[];
};

static struct {
    struct net_faults faults;
    struct host *leader;
    struct host *hosts[NET_HOSTS_MAX];
    struct contact addresses[NET_HOSTS_MAX];
    size_t host_count;
    struct connection *connections; /* by route; place 0 stays empty */
    uint32_t count, capacity;
    struct parcel *captured[CAPTURED_MAX];
    uint64_t captures;
} net;

void net_start(const struct net_faults *faults)
{
    memset(&net, 0, sizeof net);
    net.faults = *faults;
    net.capacity = 256;
    net.connections = sim_alloc(net.capacity * sizeof *net.connections);
    net.count = 1;
}

void net_set_faults(const struct net_faults *faults)
{
    net.faults = *faults;
}

void net_set_leader(struct host *host)
{
    net.leader = host;
}

void net_host_ended(const struct host *host)
{
    if (net.leader == host) {
        net.leader = NULL;
    }
}

void net_add_host(struct host *host)
{
    assert(net.host_count < NET_HOSTS_MAX);
    struct contact *address = &net.addresses[net.host_count];
    host->number = (unsigned)net.host_count;
    (void)snprintf(address->control, sizeof address->control, "tcp://b%u:1", host->number);
    (void)snprintf(address->blobs, sizeof address->blobs, "tcp://b%u:2", host->number);
    net.hosts[net.host_count++] = host;
}

size_t net_addresses(const struct contact **ret_addresses)
{
    *ret_addresses = net.addresses;
    return net.host_count;
}

struct host *net_host_at(const struct contact *address)
{
    for (size_t i = 0; address != NULL && i < net.host_count; i++) {
        if (strcmp(net.addresses[i].control, address->control) == 0) {
            return net.hosts[i];
        }
    }
    return NULL;
}

bool net_leader_is_gone(void)
{
    return net.leader == NULL || net.leader->process->stalled_until_ns > world.now_ns;
}

/* ---------------------------------------------------------------- connections */

static bool stands(const struct connection *connection)
{
    return connection->is_open && connection->host->process->runs &&
           connection->host->process->life == connection->host_life;
}

void net_connect(struct peer *peer)
{
    if (peer->connection != 0) {
        net.connections[peer->connection].is_open = false;
        peer->connection = 0;
    }
    struct host *host = peer->target != NULL ? peer->target : net.leader;
    if (host == NULL || !host->process->runs) {
        return;
    }
    if (net.count == net.capacity) {
        net.capacity *= 2;
        net.connections = sim_grow(net.connections, net.capacity * sizeof *net.connections);
    }
    assert(net.count < CONNECTIONS_MAX);
    peer->connection = net.count++;
    net.connections[peer->connection] = (struct connection){
        .peer = peer,
        .peer_life = peer->process->life,
        .host = host,
        .host_life = host->process->life,
        .is_open = true,
    };
}

/* ---------------------------------------------------------------- on the way */

static struct parcel *pack(uint32_t connection, const void *bytes, size_t length)
{
    struct parcel *parcel = sim_alloc(sizeof *parcel + length);
    parcel->connection = connection;
    parcel->length = length;
    memcpy(parcel->bytes, bytes, length);
    return parcel;
}

static const char *type_of(const void *bytes, size_t length)
{
    struct envelope envelope;
    bool good = envelope_read(bytes, length, LIMIT_MESSAGE_BYTES, &envelope) == ENVELOPE_OK;
    return good ? message_name((enum message_type)envelope.type) : "nonsense";
}

static void arrive_there(void *context, uint64_t a, uint64_t b)
{
    struct parcel *parcel = context;
    struct connection *connection = &net.connections[parcel->connection];
    (void)a;
    (void)b;
    if (stands(connection)) {
        connection->host->hears(connection->host, parcel->connection, &connection->peer->transport,
                                parcel->bytes, parcel->length);
        /* The parcel's content is lost, and its connection goes with it, as on any stream. */
        connection->is_open = !parcel->is_garbled;
    }
    sim_free(parcel);
}

static void arrive_here(void *context, uint64_t a, uint64_t b)
{
    struct parcel *parcel = context;
    struct connection *connection = &net.connections[parcel->connection];
    struct peer *peer = connection->peer;
    (void)a;
    (void)b;
    connection->underway--;
    bool is_current = peer->connection == parcel->connection;
    if (peer->process->runs && peer->process->life == connection->peer_life &&
        (is_current || chance(DICE_NETWORK, 500))) { /* the network remembers, now and then */
        if (peer->process->stalled_until_ns > world.now_ns) {
            connection->underway++;
            event_in(peer->process->stalled_until_ns - world.now_ns, NULL, arrive_here, parcel, 0,
                     0);
            return;
        }
        struct process *before = process_enter(peer->process);
        peer->deliver(peer, parcel->bytes, parcel->length);
        process_leave(before);
    }
    sim_free(parcel);
}

/* Returns when a message sent now arrives; INT64_MAX: never. */
static int64_t arrival(int64_t *latest_ns, int64_t cut_until_ns, bool cut_holds)
{
    int64_t at =
        world.now_ns + draw_time(DICE_NETWORK, net.faults.delay_least_ns, net.faults.delay_most_ns);
    if (cut_until_ns > world.now_ns) {
        if (!cut_holds) {
            fault_happened(FAULT_LOST);
            return INT64_MAX;
        }
        at = cut_until_ns + (at - world.now_ns);
    }
    if (chance(DICE_NETWORK, net.faults.lost)) {
        fault_happened(FAULT_LOST);
        return INT64_MAX;
    }
    if (chance(DICE_NETWORK, net.faults.delayed)) {
        fault_happened(FAULT_DELAYED);
        at += draw_time(DICE_NETWORK, 0, net.faults.late_most_ns);
    }
    if (chance(DICE_NETWORK, net.faults.reordered)) {
        fault_happened(FAULT_REORDERED);
        return at + draw_time(DICE_NETWORK, 0, 20 * SIM_MS);
    }
    at = at > *latest_ns ? at : *latest_ns + 1;
    *latest_ns = at;
    return at;
}

static int64_t later(int64_t one, int64_t other)
{
    return one > other ? one : other;
}

static void send_parcel(uint32_t number, const void *bytes, size_t length, bool there)
{
    struct connection *connection = &net.connections[number];
    const struct peer *peer = connection->peer;
    int copies = 1;
    if (chance(DICE_NETWORK, net.faults.repeated)) {
        fault_happened(FAULT_REPEATED);
        copies = 2;
    }
    const unsigned host = connection->host->number;
    const int64_t cut_until_ns =
        there ? later(peer->cut_to_until_ns, peer->link_to_until_ns[host])
              : later(peer->cut_from_until_ns, peer->link_from_until_ns[host]);
    for (int i = 0; i < copies; i++) {
        int64_t at = arrival(there ? &connection->arrived_there_ns : &connection->arrived_here_ns,
                             cut_until_ns, peer->cut_holds);
        if (at == INT64_MAX) {
            trace("%s lost: %s, %zu bytes, route %u", there ? "request" : "answer",
                  type_of(bytes, length), length, number);
            connection->is_open = connection->is_open && !there;
            continue;
        }
        trace("%s %s, %zu bytes, route %u, arrives %.6f", there ? "sends" : "answers",
              type_of(bytes, length), length, number, (double)at / (double)SIM_S);
        connection->underway += there ? 0 : 1;
        struct parcel *parcel = pack(number, bytes, length);
        if (there && length > 0 && chance(DICE_NETWORK, net.faults.garbled)) {
            fault_happened(FAULT_GARBLED);
            trace("and arrives garbled");
            parcel->is_garbled = true;
            flip_bit(DICE_NETWORK, parcel->bytes, length);
        }
        event_in(at - world.now_ns, NULL, there ? arrive_there : arrive_here, parcel, 0, 0);
    }
}

static void capture(struct peer *peer, const void *bytes, size_t length)
{
    struct parcel **place = &net.captured[net.captures++ % CAPTURED_MAX];
    sim_free(*place);
    *place = pack(0, bytes, length);
    (*place)->from = peer;
}

const uint8_t *net_captured(size_t *ret_length)
{
    uint64_t most = net.captures < CAPTURED_MAX ? net.captures : CAPTURED_MAX;
    if (most == 0) {
        return NULL;
    }
    const struct parcel *parcel = net.captured[draw(DICE_WORK, most)];
    *ret_length = parcel->length;
    return parcel->bytes;
}

bool net_send(struct peer *peer, const void *bytes, size_t length)
{
    if (peer->connection == 0 || !stands(&net.connections[peer->connection])) {
        net_connect(peer); /* ZeroMQ connects again by itself, and says nothing */
    }
    if (peer->connection == 0) {
        return false;
    }
    if (chance(DICE_NETWORK, net.faults.unsent)) {
        fault_happened(FAULT_UNSENT);
        return false;
    }
    if (!peer->is_hostile) {
        oracle_sends(peer, bytes, length);
        memcpy(&peer->session, (const uint8_t *)bytes + SESSION_OFFSET, sizeof peer->session);
        if (draw(DICE_NETWORK, 4) == 0) {
            capture(peer, bytes, length);
        }
    }
    send_parcel(peer->connection, bytes, length, true);
    return true;
}

void net_replay(struct peer *peer)
{
    uint64_t most = net.captures < CAPTURED_MAX ? net.captures : CAPTURED_MAX;
    struct parcel *parcel = most == 0 ? NULL : net.captured[draw(DICE_FAULTS, most)];
    if (parcel == NULL || parcel->from != peer || peer->connection == 0 ||
        !stands(&net.connections[peer->connection])) {
        return;
    }
    fault_happened(FAULT_REPEATED);
    trace("%s of %s comes again", type_of(parcel->bytes, parcel->length), peer->process->name);
    memcpy(parcel->bytes + SESSION_OFFSET, &peer->session, sizeof peer->session);
    send_parcel(peer->connection, parcel->bytes, parcel->length, true);
}

void net_cut(struct peer *peer, bool to, bool from, bool holds, int64_t duration_ns)
{
    fault_happened(FAULT_CUT);
    trace("%s is cut off%s%s for %.3f s, messages %s", peer->process->name, to ? " there" : "",
          from ? " back" : "", (double)duration_ns / (double)SIM_S, holds ? "wait" : "are lost");
    peer->cut_to_until_ns = to ? world.now_ns + duration_ns : peer->cut_to_until_ns;
    peer->cut_from_until_ns = from ? world.now_ns + duration_ns : peer->cut_from_until_ns;
    peer->cut_holds = holds;
}

void net_cut_link(struct peer *peer, const struct host *host, bool to, bool from,
                  int64_t duration_ns)
{
    fault_happened(FAULT_CUT);
    trace("%s is cut off from %s%s%s for %.3f s", peer->process->name, host->process->name,
          to ? " there" : "", from ? " back" : "", (double)duration_ns / (double)SIM_S);
    if (to) {
        peer->link_to_until_ns[host->number] = world.now_ns + duration_ns;
    }
    if (from) {
        peer->link_from_until_ns[host->number] = world.now_ns + duration_ns;
    }
}

/* ---------------------------------------------------------------- the gateway's end */

enum router_sent router_send(struct router *router, const struct route *route,
                             const struct key32 *client, const void *bytes, size_t length)
{
    uint32_t number = 0;
    (void)router;
    (void)client;
    memcpy(&number, route->bytes, sizeof number);
    assert(number > 0 && number < net.count);
    struct connection *connection = &net.connections[number];
    if (!stands(connection) || connection->peer->process->life != connection->peer_life) {
        return ROUTER_GONE;
    }
    if (connection->underway >= QUEUE_MAX) {
        return ROUTER_FULL;
    }
    oracle_answers(connection->host, bytes, length);
    send_parcel(number, bytes, length, false);
    return ROUTER_SENT;
}
