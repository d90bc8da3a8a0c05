#include "runtime/router.h"

#include "base/text.h"
#include "runtime/hangups.h"
#include "runtime/log.h"
#include "runtime/zap.h"

#include <assert.h>
#include <errno.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zmq.h>

enum {
    ROUTER_BUCKETS = 4096,
    /* Messages to one connection. The limits by bytes apply first, except to very small
     * messages. */
    ROUTER_SEND_QUEUE = 4096,
    ROUTER_LINGER_MS = 500,
    ROUTER_HANDSHAKE_MS = 5000,
    ROUTER_BACKLOG = 1024,
    ROUTER_CURVE_BYTES = 64, /* libzmq's cap is on the sealed message, 33 bytes longer */
    /* The kernel finds dead TCP connections. ZMTP pings would, too, but libzmq looks through the
     * timers of all connections at each answer (poller_base.cpp, cancel_timer). */
    ROUTER_KEEPALIVE_S = 10,
    ROUTER_KEEPALIVE_TRIES = 3,
    ROUTER_UNACKNOWLEDGED_MS = 40000,
};

/* Counts of bytes that wait to leave. Messages on their way refer to the counts, so they live as
 * long as the last message. */
struct waiting {
    atomic_size_t references;
    atomic_size_t bytes;
    atomic_size_t of_bucket[ROUTER_BUCKETS];
};

/* A parcel is one message. libzmq reports when it has left, or its connection ended. */
struct parcel {
    struct waiting *waiting;
    uint32_t bucket;
    size_t size;
    uint8_t bytes[];
};

struct router {
    void *socket;
    struct waiting *waiting;
    size_t send_bytes, send_key_bytes;
    uint8_t bucket_key[crypto_shorthash_KEYBYTES];
    zmq_msg_t received;   /* message lent by the last receive */
    struct parcel *draft; /* NULL: none */
    struct router_counts counts;
};

static bool set_number(void *socket, int option, int value)
{
    return zmq_setsockopt(socket, option, &value, sizeof value) == 0;
}

static void waiting_release(struct waiting *waiting)
{
    if (atomic_fetch_sub(&waiting->references, 1) == 1) {
        free(waiting);
    }
}

/* Runs in a thread of libzmq. */
static void parcel_left(void *bytes, void *hint)
{
    (void)bytes;
    struct parcel *parcel = hint;
    (void)atomic_fetch_sub(&parcel->waiting->bytes, parcel->size);
    (void)atomic_fetch_sub(&parcel->waiting->of_bucket[parcel->bucket], parcel->size);
    waiting_release(parcel->waiting);
    free(parcel);
}

static uint32_t bucket_of(const struct router *router, const struct key32 *client)
{
    uint8_t hash[crypto_shorthash_BYTES];
    uint32_t bucket;
    (void)crypto_shorthash(hash, client->bytes, sizeof client->bytes, router->bucket_key);
    memcpy(&bucket, hash, sizeof bucket);
    return bucket % ROUTER_BUCKETS;
}

static bool may_wait(const struct router *router, uint32_t bucket, size_t size)
{
    size_t of_key = atomic_load(&router->waiting->of_bucket[bucket]);
    return of_key == 0 || (of_key + size <= router->send_key_bytes &&
                           atomic_load(&router->waiting->bytes) + size <= router->send_bytes);
}

/* Allocates a message, which counts until it has left. Returns NULL when memory is short. */
static struct parcel *parcel_create(struct router *router, uint32_t bucket, size_t size)
{
    struct parcel *parcel = malloc(sizeof *parcel + size);
    if (parcel != NULL) {
        *parcel = (struct parcel){.waiting = router->waiting, .bucket = bucket, .size = size};
        (void)atomic_fetch_add(&router->waiting->references, 1);
        (void)atomic_fetch_add(&router->waiting->bytes, size);
        (void)atomic_fetch_add(&router->waiting->of_bucket[bucket], size);
    }
    return parcel;
}

static bool allow_users(void *socket, const struct router_config *config)
{
    for (size_t i = 0; i < config->uid_count; i++) {
        if (zmq_setsockopt(socket, ZMQ_IPC_FILTER_UID, &config->uids[i], sizeof config->uids[i]) !=
            0) {
            return false;
        }
    }
    return true;
}

static bool configure(void *socket, const struct router_config *config)
{
    int64_t max_bytes = (int64_t)config->max_message_bytes + ROUTER_CURVE_BYTES;
    unsigned queue = config->receive_queue == 0 ? ROUTER_RECEIVE_QUEUE : config->receive_queue;
    return zmq_setsockopt(socket, ZMQ_AFFINITY, &config->io_threads, sizeof config->io_threads) ==
               0 &&
           set_number(socket, ZMQ_ROUTER_MANDATORY, 1) &&
           set_number(socket, ZMQ_ROUTER_HANDOVER, 0) &&
           set_number(socket, ZMQ_LINGER, ROUTER_LINGER_MS) &&
           set_number(socket, ZMQ_SNDHWM, ROUTER_SEND_QUEUE) &&
           set_number(socket, ZMQ_RCVHWM, (int)queue) &&
           zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &max_bytes, sizeof max_bytes) == 0 &&
           set_number(socket, ZMQ_IPV6, 1) && set_number(socket, ZMQ_BACKLOG, ROUTER_BACKLOG) &&
           set_number(socket, ZMQ_HANDSHAKE_IVL, ROUTER_HANDSHAKE_MS) &&
           set_number(socket, ZMQ_TCP_KEEPALIVE, 1) &&
           set_number(socket, ZMQ_TCP_KEEPALIVE_IDLE, ROUTER_KEEPALIVE_S) &&
           set_number(socket, ZMQ_TCP_KEEPALIVE_INTVL, ROUTER_KEEPALIVE_S) &&
           set_number(socket, ZMQ_TCP_KEEPALIVE_CNT, ROUTER_KEEPALIVE_TRIES) &&
           set_number(socket, ZMQ_TCP_MAXRT, ROUTER_UNACKNOWLEDGED_MS) &&
           zmq_setsockopt(socket, ZMQ_ZAP_DOMAIN, ZAP_DOMAIN, strlen(ZAP_DOMAIN)) == 0 &&
           set_number(socket, ZMQ_CURVE_SERVER, 1) &&
           zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, identity_transport(config->identity)->bytes,
                          32) == 0 &&
           zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, identity_transport_secret(config->identity),
                          32) == 0 &&
           allow_users(socket, config);
}

bool router_open(void *context, const struct router_config *config, struct router **ret_router,
                 struct problem *ret_problem)
{
    assert(config->max_message_bytes > 0);
    assert(config->uid_count <= ROUTER_UIDS_MAX);
    if (!hangups_are_held()) {
        log_warning("libzmq is not guarded against peers that hang up: a preloaded library took "
                    "its calls of epoll");
    }
    struct router *router = calloc(1, sizeof *router);
    if (router == NULL) {
        problem_set(ret_problem, "out of memory for a port");
        return false;
    }
    (void)zmq_msg_init(&router->received); /* always succeeds */
    router->waiting = calloc(1, sizeof *router->waiting);
    if (router->waiting == NULL) {
        free(router);
        problem_set(ret_problem, "out of memory for a port");
        return false;
    }
    atomic_store(&router->waiting->references, 1);
    router->send_bytes = config->send_bytes == 0 ? ROUTER_SEND_BYTES : config->send_bytes;
    router->send_key_bytes =
        config->send_key_bytes == 0 ? ROUTER_SEND_KEY_BYTES : config->send_key_bytes;
    crypto_shorthash_keygen(router->bucket_key);
    router->socket = zmq_socket(context, ZMQ_ROUTER);
    if (router->socket == NULL || !configure(router->socket, config)) {
        problem_set(ret_problem, "a port cannot be opened: %s", zmq_strerror(errno));
        router_close(&router);
        return false;
    }
    *ret_router = router;
    return true;
}

static void bind_problem(const char *endpoint, int error, struct problem *ret_problem)
{
    char printable[300];
    text_printable(endpoint, strlen(endpoint), printable, sizeof printable);
    const char *advice = "";
    if (error == ENAMETOOLONG) {
        advice = "; the path of a socket has at most 107 bytes: choose a shorter folder";
    } else if (error == EADDRINUSE) {
        advice = "; another program listens there: choose another port";
    }
    problem_set(ret_problem, "cannot listen on %s: %s%s", printable, zmq_strerror(error), advice);
}

bool router_bind(struct router *router, const char *endpoint, bool group, char *ret_endpoint,
                 size_t capacity, struct problem *ret_problem)
{
    bool is_ipc = strncmp(endpoint, "ipc://", 6) == 0;
    if (!is_ipc && strncmp(endpoint, "tcp://", 6) != 0) {
        problem_set(ret_problem, "an endpoint is ipc://PATH or tcp://ADDRESS:PORT");
        return false;
    }
    if (zmq_bind(router->socket, endpoint) != 0) {
        bind_problem(endpoint, errno, ret_problem);
        return false;
    }
    if (is_ipc && chmod(endpoint + 6, group ? 0660 : 0600) != 0) {
        bind_problem(endpoint, errno, ret_problem);
        return false;
    }
    if (ret_endpoint != NULL &&
        zmq_getsockopt(router->socket, ZMQ_LAST_ENDPOINT, ret_endpoint, &capacity) != 0) {
        bind_problem(endpoint, errno, ret_problem);
        return false;
    }
    return true;
}

void router_close(struct router **self)
{
    struct router *router = *self;
    if (router != NULL) {
        (void)zmq_msg_close(&router->received);
        router_drop_draft(router);
        if (router->socket != NULL) {
            (void)zmq_close(router->socket);
        }
        waiting_release(router->waiting);
        free(router);
        *self = NULL;
    }
}

/* Drops the further parts of the last message. */
static bool drop_rest(struct router *router)
{
    while (zmq_msg_more(&router->received) != 0) {
        if (zmq_msg_recv(&router->received, router->socket, ZMQ_DONTWAIT) < 0) {
            return false; /* parts arrive together */
        }
    }
    return true;
}

enum taken { TAKEN_NONE, TAKEN_ONE, TAKEN_DROPPED, TAKEN_BROKEN };

static enum taken take_message(struct router *router, struct router_message *ret_message)
{
    zmq_msg_t *message = &router->received;
    if (zmq_msg_recv(message, router->socket, ZMQ_DONTWAIT) < 0) {
        return errno == EAGAIN || errno == EINTR ? TAKEN_NONE : TAKEN_BROKEN;
    }
    struct route route;
    const uint8_t *id = zmq_msg_data(message);
    bool is_ours = zmq_msg_size(message) == sizeof route.bytes && id[0] == 0;
    if (is_ours) {
        memcpy(route.bytes, id, sizeof route.bytes);
    }
    if (zmq_msg_more(message) == 0 || zmq_msg_recv(message, router->socket, ZMQ_DONTWAIT) < 0) {
        router->counts.dropped_parts++;
        return TAKEN_DROPPED;
    }
    bool is_single = zmq_msg_more(message) == 0;
    if (!is_single || !is_ours) {
        router->counts.dropped_parts += !is_single;
        router->counts.dropped_routes += !is_ours;
        return drop_rest(router) ? TAKEN_DROPPED : TAKEN_BROKEN;
    }
    struct key32 client = {0};
    const char *user = zmq_msg_gets(message, "User-Id");
    if (user == NULL || !text_unhex(user, client.bytes, sizeof client.bytes)) {
        return TAKEN_BROKEN; /* no handler of ours admitted it: the port must stop */
    }
    *ret_message = (struct router_message){.route = route,
                                           .client = client,
                                           .bytes = zmq_msg_data(message),
                                           .length = zmq_msg_size(message)};
    return TAKEN_ONE;
}

int router_receive(struct router *router, int timeout_ms, struct router_message *ret_message)
{
    bool waited = timeout_ms == 0;
    for (;;) {
        switch (take_message(router, ret_message)) {
        case TAKEN_ONE:
            return 1;
        case TAKEN_BROKEN:
            return -1;
        case TAKEN_DROPPED:
            continue;
        case TAKEN_NONE:
            break;
        }
        if (waited) {
            return 0;
        }
        zmq_pollitem_t item = {.socket = router->socket, .events = ZMQ_POLLIN};
        if (zmq_poll(&item, 1, timeout_ms) < 0) {
            return errno == EINTR ? 0 : -1;
        }
        waited = true;
    }
}

struct router_kept {
    zmq_msg_t message;
};

struct router_kept *router_keep(struct router *router, struct router_message *message)
{
    struct router_kept *kept = malloc(sizeof *kept);
    if (kept != NULL) {
        (void)zmq_msg_init(&kept->message);                    /* always succeeds */
        (void)zmq_msg_move(&kept->message, &router->received); /* both are messages */
        message->bytes = zmq_msg_data(&kept->message);
    }
    return kept;
}

void router_kept_free(struct router_kept **self)
{
    if (*self != NULL) {
        (void)zmq_msg_close(&(*self)->message);
        free(*self);
        *self = NULL;
    }
}

/* libzmq gives "localhost:UID:GID:PID" for ipc peers (SO_PEERCRED), and a numeric address for
 * others. */
bool router_is_local(struct router *router)
{
    static const char prefix[] = "localhost:";
    const char *address = zmq_msg_gets(&router->received, "Peer-Address");
    return address != NULL && strncmp(address, prefix, sizeof prefix - 1) == 0;
}

int router_descriptor(struct router *router)
{
    return zmq_msg_get(&router->received, ZMQ_SRCFD);
}

void router_pause(int descriptor, bool is_paused)
{
    hangups_pause(descriptor, is_paused);
}

uint8_t *router_draft(struct router *router, const struct key32 *client, size_t length)
{
    uint32_t bucket = bucket_of(router, client);
    router_drop_draft(router);
    if (may_wait(router, bucket, length)) {
        router->draft = parcel_create(router, bucket, length);
    }
    return router->draft == NULL ? NULL : router->draft->bytes;
}

void router_drop_draft(struct router *router)
{
    if (router->draft != NULL) {
        parcel_left(router->draft->bytes, router->draft);
        router->draft = NULL;
    }
}

enum router_sent router_send_draft(struct router *router, const struct route *route)
{
    struct parcel *parcel = router->draft;
    zmq_msg_t message;
    assert(parcel != NULL);
    if (zmq_msg_init_data(&message, parcel->bytes, parcel->size, parcel_left, parcel) != 0) {
        router_drop_draft(router);
        return ROUTER_FULL;
    }
    router->draft = NULL; /* now owned by the message */
    if (zmq_send(router->socket, route->bytes, sizeof route->bytes, ZMQ_SNDMORE | ZMQ_DONTWAIT) >=
        0) {
        /* The second part follows the first, for which there was room. */
        if (zmq_msg_send(&message, router->socket, ZMQ_DONTWAIT) >= 0) {
            return ROUTER_SENT;
        }
        (void)zmq_msg_close(&message);
        return ROUTER_BROKEN;
    }
    int error = errno;
    (void)zmq_msg_close(&message);
    switch (error) {
    case EHOSTUNREACH:
        return ROUTER_GONE;
    case EAGAIN:
        return ROUTER_FULL;
    default:
        return ROUTER_BROKEN;
    }
}

enum router_sent router_send(struct router *router, const struct route *route,
                             const struct key32 *client, const void *bytes, size_t length)
{
    uint8_t *draft = router_draft(router, client, length);
    if (draft == NULL) {
        return ROUTER_FULL;
    }
    memcpy(draft, bytes, length);
    return router_send_draft(router, route);
}

size_t router_waiting_key(const struct router *router, const struct key32 *client)
{
    return atomic_load(&router->waiting->of_bucket[bucket_of(router, client)]);
}

void *router_socket(struct router *router)
{
    return router->socket;
}

struct router_counts router_counts(const struct router *router)
{
    return router->counts;
}
