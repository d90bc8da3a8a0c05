#include "runtime/zap.h"

#include "base/text.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#define ZAP_ENDPOINT "inproc://zeromq.zap.01"

/* The request of RFC 27 has version, request id, domain, address, routing id, mechanism,
 * credentials (CURVE: the 32-byte key). The reply has version, request id, status code, status
 * text, user id, metadata. */
enum {
    PART_VERSION,
    PART_REQUEST,
    PART_DOMAIN,
    PART_ADDRESS,
    PART_ROUTING,
    PART_MECHANISM,
    PART_KEY,
    PART_COUNT
};
enum { PART_BYTES = 256, KEY_BYTES = 32 };

struct request {
    size_t part_count; /* as sent, which may be more than are kept */
    size_t lengths[PART_COUNT];
    uint8_t parts[PART_COUNT][PART_BYTES];
};

struct zap {
    void *handler;     /* REP, used by the thread alone once it runs */
    void *stop_sender; /* PAIR: its one message ends the thread */
    void *stop_receiver;
    pthread_t thread;
    bool running;
    atomic_ullong admitted;
    atomic_ullong refused;
};

static bool part_is(const struct request *request, size_t part, const char *text)
{
    return request->lengths[part] == strlen(text) &&
           memcmp(request->parts[part], text, strlen(text)) == 0;
}

/* Reads all parts and keeps those that fit. A longer part is kept with its length, so that it
 * equals nothing. */
static bool receive_request(void *handler, struct request *ret_request)
{
    *ret_request = (struct request){0};
    int more = 1;
    while (more != 0) {
        uint8_t spare[PART_BYTES];
        size_t part = ret_request->part_count++;
        uint8_t *room = part < PART_COUNT ? ret_request->parts[part] : spare;
        /* The call returns the true length of a part that was cut. */
        int length = zmq_recv(handler, room, PART_BYTES, 0);
        if (length < 0) {
            return false;
        }
        if (part < PART_COUNT) {
            ret_request->lengths[part] = (size_t)length;
        }
        size_t size = sizeof more;
        if (zmq_getsockopt(handler, ZMQ_RCVMORE, &more, &size) != 0) {
            return false;
        }
    }
    return true;
}

static bool is_admitted(const struct request *request)
{
    return request->part_count == PART_COUNT && part_is(request, PART_VERSION, "1.0") &&
           part_is(request, PART_DOMAIN, ZAP_DOMAIN) && part_is(request, PART_MECHANISM, "CURVE") &&
           request->lengths[PART_KEY] == KEY_BYTES;
}

static bool send_text(void *handler, const char *text, int flags)
{
    return zmq_send(handler, text, strlen(text), flags) >= 0;
}

static bool send_reply(void *handler, const struct request *request, bool admitted)
{
    char user[2 * KEY_BYTES + 1] = "";
    if (admitted) {
        text_hex(request->parts[PART_KEY], KEY_BYTES, user);
    }
    size_t id_length =
        request->lengths[PART_REQUEST] <= PART_BYTES ? request->lengths[PART_REQUEST] : 0;
    return send_text(handler, "1.0", ZMQ_SNDMORE) &&
           zmq_send(handler, request->parts[PART_REQUEST], id_length, ZMQ_SNDMORE) >= 0 &&
           send_text(handler, admitted ? "200" : "400", ZMQ_SNDMORE) &&
           send_text(handler, admitted ? "OK" : "CURVE in domain " ZAP_DOMAIN " only",
                     ZMQ_SNDMORE) &&
           send_text(handler, user, ZMQ_SNDMORE) && send_text(handler, "", 0);
}

static void *serve(void *argument)
{
    struct zap *zap = argument;
    zmq_pollitem_t items[] = {{.socket = zap->stop_receiver, .events = ZMQ_POLLIN},
                              {.socket = zap->handler, .events = ZMQ_POLLIN}};
    for (;;) {
        if (zmq_poll(items, 2, -1) < 0) {
            if (errno == EINTR) {
                continue;
            }
            break;
        }
        if (items[0].revents != 0) {
            break;
        }
        if (items[1].revents == 0) {
            continue;
        }
        struct request request;
        if (!receive_request(zap->handler, &request)) {
            break;
        }
        bool admitted = is_admitted(&request);
        (void)atomic_fetch_add(admitted ? &zap->admitted : &zap->refused, 1);
        if (!send_reply(zap->handler, &request, admitted)) {
            break;
        }
    }
    return NULL;
}

static void close_socket(void *socket)
{
    if (socket != NULL) {
        int linger = 0;
        (void)zmq_setsockopt(socket, ZMQ_LINGER, &linger, sizeof linger);
        (void)zmq_close(socket);
    }
}

static bool open_sockets(struct zap *zap, void *context, struct problem *ret_problem)
{
    char stop[64];
    (void)snprintf(stop, sizeof stop, "inproc://bourse.zap.stop.%p", (void *)zap);
    zap->handler = zmq_socket(context, ZMQ_REP);
    zap->stop_sender = zmq_socket(context, ZMQ_PAIR);
    zap->stop_receiver = zmq_socket(context, ZMQ_PAIR);
    if (zap->handler == NULL || zap->stop_sender == NULL || zap->stop_receiver == NULL) {
        problem_set(ret_problem, "no socket for the ZAP handler: %s", zmq_strerror(errno));
        return false;
    }
    if (zmq_bind(zap->handler, ZAP_ENDPOINT) != 0 || zmq_bind(zap->stop_receiver, stop) != 0 ||
        zmq_connect(zap->stop_sender, stop) != 0) {
        problem_set(ret_problem, "the ZAP handler cannot be bound: %s", zmq_strerror(errno));
        return false;
    }
    return true;
}

bool zap_start(void *context, struct zap **ret_zap, struct problem *ret_problem)
{
    struct zap *zap = calloc(1, sizeof *zap);
    if (zap == NULL) {
        problem_set(ret_problem, "out of memory for the ZAP handler");
        return false;
    }
    atomic_init(&zap->admitted, 0);
    atomic_init(&zap->refused, 0);
    if (!open_sockets(zap, context, ret_problem)) {
        zap_stop(&zap);
        return false;
    }
    int status = pthread_create(&zap->thread, NULL, serve, zap);
    if (status != 0) {
        problem_set(ret_problem, "no thread for the ZAP handler: %s", strerror(status));
        zap_stop(&zap);
        return false;
    }
    zap->running = true;
    *ret_zap = zap;
    return true;
}

void zap_stop(struct zap **self)
{
    struct zap *zap = *self;
    if (zap != NULL) {
        if (zap->running) {
            /* The send fails only if the context ends, and the thread with it. */
            (void)zmq_send(zap->stop_sender, "", 0, 0);
            (void)pthread_join(zap->thread, NULL);
        }
        close_socket(zap->stop_sender);
        close_socket(zap->stop_receiver);
        close_socket(zap->handler);
        free(zap);
        *self = NULL;
    }
}

struct zap_counts zap_counts(const struct zap *zap)
{
    return (struct zap_counts){.admitted = atomic_load(&zap->admitted),
                               .refused = atomic_load(&zap->refused)};
}
