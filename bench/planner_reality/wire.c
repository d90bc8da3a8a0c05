#include "bench/give_up.h"
#include "bench/planner_reality/parts.h"
#include "runtime/clock.h"

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CHUNK = 16 << 10, SENDER = 0, RECEIVER = 1 };

struct wire {
    struct wire_speed speed;
    int cores[2], sockets[2];
    pthread_t threads[2];
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct transfer **queue;
    uint32_t room, put;
    bool is_closed;
    void (*arrived)(void *, const struct transfer *);
    void *context;
};

/* A link needs little of a core, but at once. So its thread goes before the work, if allowed. */
static void begin_thread(int core)
{
    const struct sched_param first = {.sched_priority = 1};
    pin(core);
    (void)prctl(PR_SET_TIMERSLACK, 1UL);
    (void)pthread_setschedparam(pthread_self(), SCHED_FIFO,
                                &first); /* without it: later, sometimes */
}

static void sleep_until(int64_t when_ns)
{
    const struct timespec when = {.tv_sec = when_ns / 1000000000, .tv_nsec = when_ns % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL) != 0) {
    }
}

static void write_all(int socket, const uint8_t *bytes, size_t length)
{
    while (length > 0) {
        ssize_t done = send(socket, bytes, length, MSG_NOSIGNAL);
        if (done <= 0) {
            die("a link cannot send");
        }
        bytes += done;
        length -= (size_t)done;
    }
}

/* Returns false at the end of the stream. */
static bool read_all(int socket, uint8_t *bytes, size_t length)
{
    size_t done = 0;
    while (done < length) {
        ssize_t got = recv(socket, bytes + done, length - done, 0);
        if (got < 0 || (got == 0 && done > 0)) {
            die("a link cannot receive");
        }
        if (got == 0) {
            return false;
        }
        done += (size_t)got;
    }
    return true;
}

/* Returns NULL when nothing more will come. */
static struct transfer *queued(struct wire *wire, uint32_t at)
{
    (void)pthread_mutex_lock(&wire->mutex);
    while (at == wire->put && !wire->is_closed) {
        (void)pthread_cond_wait(&wire->changed, &wire->mutex);
    }
    struct transfer *transfer = at < wire->put ? wire->queue[at] : NULL;
    (void)pthread_mutex_unlock(&wire->mutex);
    return transfer;
}

static void *send_all(void *context)
{
    struct wire *wire = context;
    int64_t free_ns = 0;
    struct transfer *transfer;
    begin_thread(wire->cores[SENDER]);
    for (uint32_t at = 0; (transfer = queued(wire, at)) != NULL; at++) {
        /* The transfer begins when it could, and not when this thread was woken: the link is what
         * is modelled. */
        transfer->begin_ns = transfer->ready_ns > free_ns ? transfer->ready_ns : free_ns;
        int64_t data_ns = transfer->begin_ns + (int64_t)(wire->speed.latency_s * 1e9);
        uint32_t sent = 0;
        sleep_until(data_ns);
        write_all(wire->sockets[SENDER], (const uint8_t *)&at, sizeof at);
        while (sent < transfer->bytes) {
            uint32_t size = transfer->bytes - sent < CHUNK ? transfer->bytes - sent : CHUNK;
            sent += size;
            sleep_until(data_ns + (int64_t)((double)sent / wire->speed.bytes_per_s * 1e9));
            write_all(wire->sockets[SENDER], transfer->from + sent - size, size);
        }
        free_ns = data_ns + (int64_t)((double)sent / wire->speed.bytes_per_s * 1e9);
    }
    (void)shutdown(wire->sockets[SENDER], SHUT_WR);
    return NULL;
}

static void *receive_all(void *context)
{
    struct wire *wire = context;
    uint32_t at;
    begin_thread(wire->cores[RECEIVER]);
    while (read_all(wire->sockets[RECEIVER], (uint8_t *)&at, sizeof at)) {
        struct transfer *transfer = queued(wire, at);
        if (transfer->bytes > 0 &&
            !read_all(wire->sockets[RECEIVER], transfer->to, transfer->bytes)) {
            die("a link ended in a transfer");
        }
        transfer->end_ns = clock_monotonic_ns();
        wire->arrived(wire->context, transfer);
    }
    return NULL;
}

struct wire *wire_create(struct wire_speed speed, const int *from_core, const int *to_core,
                         uint32_t transfers_most, void (*arrived)(void *, const struct transfer *),
                         void *context)
{
    struct wire *wire = memory(1, sizeof *wire);
    *wire = (struct wire){.speed = speed,
                          .cores = {*from_core, *to_core},
                          .room = transfers_most,
                          .queue = memory((size_t)transfers_most + 1, sizeof(struct transfer *)),
                          .arrived = arrived,
                          .context = context};
    if (pthread_mutex_init(&wire->mutex, NULL) != 0 ||
        pthread_cond_init(&wire->changed, NULL) != 0 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, wire->sockets) != 0 ||
        pthread_create(&wire->threads[SENDER], NULL, send_all, wire) != 0 ||
        pthread_create(&wire->threads[RECEIVER], NULL, receive_all, wire) != 0) {
        die("no link");
    }
    return wire;
}

void wire_send(struct wire *wire, struct transfer *transfer)
{
    (void)pthread_mutex_lock(&wire->mutex);
    if (wire->put == wire->room) {
        die("more transfers than a link was made for");
    }
    wire->queue[wire->put++] = transfer;
    (void)pthread_cond_signal(&wire->changed);
    (void)pthread_mutex_unlock(&wire->mutex);
}

void wire_destroy(struct wire **self)
{
    struct wire *wire = *self;
    (void)pthread_mutex_lock(&wire->mutex);
    wire->is_closed = true;
    (void)pthread_cond_signal(&wire->changed);
    (void)pthread_mutex_unlock(&wire->mutex);
    for (int i = 0; i < 2; i++) {
        (void)pthread_join(wire->threads[i], NULL);
        (void)close(wire->sockets[i]);
    }
    (void)pthread_cond_destroy(&wire->changed);
    (void)pthread_mutex_destroy(&wire->mutex);
    free(wire->queue);
    free(wire);
    *self = NULL;
}
