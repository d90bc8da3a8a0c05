#include "runtime/link.h"

#include "runtime/hangups.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <zmq.h>

enum {
    /* The memory budget of one direction: high-water mark x largest message. */
    LINK_QUEUE_BYTES = 64 << 20,
    LINK_QUEUE_LEAST = 32, /* twice the number that surely fits: libzmq reports reads in halves */
    LINK_QUEUE_MOST = 1000,
    LINK_LINGER_MS = 500, /* a goodbye gets out; a dead broker does not block us */
    LINK_RECONNECT_MS = 100,
    LINK_RECONNECT_MOST_MS = 1000, /* most that a broker's restart adds to its own time */
    LINK_HANDSHAKE_MS = 10000,
    LINK_CURVE_BYTES = 64, /* libzmq's cap is on the sealed message, 33 bytes longer */
    /* Routers on the way remember an idle connection. The user of the link notices silence. */
    LINK_KEEPALIVE_S = 15,
    LINK_ENDPOINT_BYTES = 256,
};

struct link {
    void *context;
    void *socket;
    char endpoint[LINK_ENDPOINT_BYTES];
    struct key32 server;
    const struct identity *identity;
    size_t max_message_bytes;
    bool waits_for_room; /* a message was refused, and no wait has found room since */
    bool is_watched;
    void *watch;        /* events of the socket's connection; NULL: not watched */
    zmq_msg_t received; /* message lent by the last receive */
    zmq_msg_t draft;    /* empty: none */
};

static bool set_number(void *socket, int option, int value)
{
    return zmq_setsockopt(socket, option, &value, sizeof value) == 0;
}

static int queue_messages(size_t max_message_bytes)
{
    size_t count = LINK_QUEUE_BYTES / max_message_bytes;
    if (count < LINK_QUEUE_LEAST) {
        return LINK_QUEUE_LEAST;
    }
    return count > LINK_QUEUE_MOST ? LINK_QUEUE_MOST : (int)count;
}

static bool configure(const struct link *link, void *socket)
{
    int64_t max_bytes = (int64_t)link->max_message_bytes + LINK_CURVE_BYTES;
    int queue = queue_messages(link->max_message_bytes);
    /* Nothing queues while the broker is away. */
    return set_number(socket, ZMQ_LINGER, LINK_LINGER_MS) &&
           set_number(socket, ZMQ_SNDHWM, queue) && set_number(socket, ZMQ_RCVHWM, queue) &&
           zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &max_bytes, sizeof max_bytes) == 0 &&
           set_number(socket, ZMQ_IMMEDIATE, 1) && set_number(socket, ZMQ_IPV6, 1) &&
           set_number(socket, ZMQ_RECONNECT_IVL, LINK_RECONNECT_MS) &&
           set_number(socket, ZMQ_RECONNECT_IVL_MAX, LINK_RECONNECT_MOST_MS) &&
           set_number(socket, ZMQ_HANDSHAKE_IVL, LINK_HANDSHAKE_MS) &&
           /* ZMTP pings are off: one without an answer while our queue is full ends the process at
            * the next connection (libzmq issue 3937). */
           set_number(socket, ZMQ_TCP_KEEPALIVE, 1) &&
           set_number(socket, ZMQ_TCP_KEEPALIVE_IDLE, LINK_KEEPALIVE_S) &&
           set_number(socket, ZMQ_TCP_KEEPALIVE_INTVL, LINK_KEEPALIVE_S) &&
           zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, link->server.bytes,
                          sizeof link->server.bytes) == 0 &&
           zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, identity_transport(link->identity)->bytes,
                          32) == 0 &&
           zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, identity_transport_secret(link->identity),
                          32) == 0;
}

static void close_watch(struct link *link)
{
    if (link->watch != NULL) {
        (void)zmq_socket_monitor(link->socket, NULL, 0);
        (void)zmq_close(link->watch);
        link->watch = NULL;
    }
}

/* A link whose watch cannot be opened finds silence only. */
static void open_watch(struct link *link)
{
    static atomic_uint number; /* no two names are the same in a process */
    char name[64];
    (void)snprintf(name, sizeof name, "inproc://link-%u", atomic_fetch_add(&number, 1));
    if (zmq_socket_monitor(link->socket, name, ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_CLOSED) != 0) {
        return;
    }
    link->watch = zmq_socket(link->context, ZMQ_PAIR);
    if (link->watch == NULL || !set_number(link->watch, ZMQ_LINGER, 0) ||
        zmq_connect(link->watch, name) != 0) {
        close_watch(link);
    }
}

static void close_socket(struct link *link)
{
    close_watch(link);
    if (link->socket != NULL) {
        (void)zmq_close(link->socket);
        link->socket = NULL;
    }
}

static bool connect_socket(struct link *link, struct problem *ret_problem)
{
    assert(link->socket == NULL);
    void *socket = zmq_socket(link->context, ZMQ_DEALER);
    if (socket == NULL) {
        problem_set(ret_problem, "no socket for %s: %s", link->endpoint, zmq_strerror(errno));
        return false;
    }
    link->socket = socket;
    const bool is_configured = configure(link, socket);
    if (is_configured && link->is_watched) {
        open_watch(link); /* before the connection, so that no refusal is missed */
    }
    if (!is_configured || zmq_connect(socket, link->endpoint) != 0) {
        problem_set(ret_problem, "cannot connect to %s: %s", link->endpoint,
                    errno == EINVAL ? "an address is tcp://HOST:PORT or ipc://PATH"
                                    : zmq_strerror(errno));
        close_socket(link);
        return false;
    }
    return true;
}

static bool set_endpoint(struct link *link, const char *endpoint, struct problem *ret_problem)
{
    if (strncmp(endpoint, "ipc://", 6) != 0 && strncmp(endpoint, "tcp://", 6) != 0) {
        problem_set(ret_problem, "an endpoint is ipc://PATH or tcp://HOST:PORT");
        return false;
    }
    if (strlen(endpoint) >= sizeof link->endpoint) {
        problem_set(ret_problem, "the endpoint is longer than %zu bytes",
                    sizeof link->endpoint - 1);
        return false;
    }
    memcpy(link->endpoint, endpoint, strlen(endpoint) + 1);
    return true;
}

bool link_open(void *context, const char *endpoint, const struct key32 *server,
               const struct identity *identity, size_t max_message_bytes, struct link **ret_link,
               struct problem *ret_problem)
{
    assert(max_message_bytes > 0);
    (void)hangups_are_held(); /* an unguarded client only ends itself */
    struct link *link = calloc(1, sizeof *link);
    if (link == NULL) {
        problem_set(ret_problem, "out of memory for a connection");
        return false;
    }
    link->context = context;
    link->server = *server;
    link->identity = identity;
    link->max_message_bytes = max_message_bytes;
    (void)zmq_msg_init(&link->received); /* always succeeds, as does the next */
    (void)zmq_msg_init(&link->draft);
    if (!set_endpoint(link, endpoint, ret_problem) || !connect_socket(link, ret_problem)) {
        link_close(&link);
        return false;
    }
    *ret_link = link;
    return true;
}

void link_close(struct link **self)
{
    struct link *link = *self;
    if (link != NULL) {
        (void)zmq_msg_close(&link->received);
        (void)zmq_msg_close(&link->draft);
        close_socket(link);
        free(link);
        *self = NULL;
    }
}

bool link_reopen(struct link *link, struct problem *ret_problem)
{
    if (link->socket != NULL) {
        /* The messages it still holds belong to a lost session. */
        (void)set_number(link->socket, ZMQ_LINGER, 0);
        close_socket(link);
    }
    return connect_socket(link, ret_problem);
}

bool link_reopen_at(struct link *link, const char *endpoint, struct problem *ret_problem)
{
    return set_endpoint(link, endpoint, ret_problem) && link_reopen(link, ret_problem);
}

bool link_watch(struct link *link, struct problem *ret_problem)
{
    link->is_watched = true;
    return link_reopen(link, ret_problem);
}

void *link_watch_socket(struct link *link)
{
    return link->watch;
}

bool link_has_ended(struct link *link)
{
    bool has_ended = false;
    zmq_msg_t part;
    (void)zmq_msg_init(&part); /* always succeeds */
    /* An event has two parts, and all events that are asked for mean the same. */
    while (link->watch != NULL && zmq_msg_recv(&part, link->watch, ZMQ_DONTWAIT) >= 0) {
        has_ended = true;
    }
    (void)zmq_msg_close(&part);
    return has_ended;
}

bool link_send(struct link *link, const void *message, size_t length)
{
    if (link->socket == NULL) {
        return false;
    }
    int sent;
    do {
        sent = zmq_send(link->socket, message, length, ZMQ_DONTWAIT);
    } while (sent < 0 && errno == EINTR);
    link->waits_for_room = sent < 0;
    return sent >= 0;
}

uint8_t *link_draft(struct link *link, size_t length)
{
    (void)zmq_msg_close(&link->draft);
    if (zmq_msg_init_size(&link->draft, length) != 0) {
        (void)zmq_msg_init(&link->draft); /* always succeeds */
        return NULL;
    }
    return zmq_msg_data(&link->draft);
}

bool link_send_draft(struct link *link)
{
    int sent = -1;
    if (link->socket != NULL) {
        do {
            sent = zmq_msg_send(&link->draft, link->socket, ZMQ_DONTWAIT);
        } while (sent < 0 && errno == EINTR);
    }
    link->waits_for_room = sent < 0;
    if (sent < 0) {
        (void)zmq_msg_close(&link->draft);
        (void)zmq_msg_init(&link->draft); /* always succeeds */
    }
    return sent >= 0;
}

/* Takes one message if one is there and returns 1, 0 or -1. Messages of several parts are dropped,
 * because no broker sends them. */
static int take_message(struct link *link)
{
    for (;;) {
        if (zmq_msg_recv(&link->received, link->socket, ZMQ_DONTWAIT) < 0) {
            return errno == EAGAIN || errno == EINTR ? 0 : -1;
        }
        bool is_single = zmq_msg_more(&link->received) == 0;
        while (zmq_msg_more(&link->received) != 0) {
            if (zmq_msg_recv(&link->received, link->socket, ZMQ_DONTWAIT) < 0) {
                return -1; /* parts arrive together */
            }
        }
        if (is_single) {
            return 1;
        }
    }
}

int link_receive(struct link *link, int timeout_ms, const uint8_t **ret_message, size_t *ret_length)
{
    if (link->socket == NULL) {
        return -1;
    }
    int taken = take_message(link);
    if (taken == 0 && timeout_ms != 0) {
        zmq_pollitem_t items[] = {
            {.socket = link->socket,
             .events = (short)(link->waits_for_room ? ZMQ_POLLIN | ZMQ_POLLOUT : ZMQ_POLLIN)},
            {.socket = link->watch, .events = ZMQ_POLLIN},
        };
        if (zmq_poll(items, link->watch == NULL ? 1 : 2, timeout_ms) < 0) {
            return errno == EINTR ? 0 : -1;
        }
        if ((items[0].revents & ZMQ_POLLOUT) != 0) {
            link->waits_for_room = false;
        }
        taken = take_message(link);
    }
    if (taken == 1) {
        *ret_message = zmq_msg_data(&link->received);
        *ret_length = zmq_msg_size(&link->received);
    }
    return taken;
}

void *link_socket(struct link *link)
{
    return link->socket;
}

/* ---------------------------------------------------------------- why nobody answers */
