/* tests/support/blob_port.h - a broker's blob port with a store in memory, in a thread of its own,
 * that errs as told, and a client of it. Failures are the test's. */
#ifndef BOURSE_TESTS_BLOB_PORT_H
#define BOURSE_TESTS_BLOB_PORT_H

#include "protocol/envelope.h"
#include "runtime/blob/blob_client.h"
#include "runtime/router.h"
#include "runtime/zap.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BLOBS_MAX = 64, BLOB_BYTES_MAX = 24 << 20, WAIT_MS = 20 };

struct blob {
    struct hash32 hash;
    uint64_t size;
    uint64_t stored;
    uint8_t *bytes;
};

struct held { /* a request for a blob that waits for others */
    struct router_message message;
    struct envelope request;
    struct hash32 hash;
    uint32_t length;
};

enum { STREAMS_MAX = 8 };
enum stream_fault { /* of the port's */
                    STREAM_GOOD,
                    STREAM_NOT_HANDED,
                    STREAM_NO_SOCKET,
                    STREAM_CLOSED, /* before all has come */
                    STREAM_DENIED, /* all has come, and was for nothing */
                    STREAM_FAULTS,
};

struct stream { /* a blob on its way through a socket */
    struct blob *blob;
    enum stream_fault fault;
    int ends[2];
    pthread_t thread;
    atomic_bool is_over; /* its thread has read its last byte */
    uint64_t got;
};

/* A blob port with a store in memory, in a thread of its own, that errs as told. */
struct port {
    void *context;
    struct zap *zap;
    struct router *router;
    struct identity *server;
    struct identity *client_key;
    struct blob_client *client;
    char endpoint[64];
    pthread_t thread;
    atomic_bool stopping;
    atomic_int busy_answers; /* refuse so many requests with BUSY first */
    atomic_int forget_after; /* after so many puts: the half-stored blobs lose a chunk; 0: never */
    atomic_uint unread_from; /* from there on nothing of any blob can be read; 0: all can */
    atomic_bool lies;        /* flips a bit of what it hands out */
    atomic_bool refuses_quota;
    atomic_int drop_answers; /* the how manieth answer to a get is dropped; 0: none */
    atomic_int puts;
    atomic_int gets;
    atomic_uint largest_get; /* bytes that one of them asked for */
    atomic_int hold;         /* so many gets at the start, until all of them are there */
    struct held held[BLOBS_MAX];
    int held_count;                    /* the thread's own */
    atomic_bool gives_tickets;         /* instead of the first bytes, */
    atomic_bool keeps_giving;          /* more than once */
    atomic_int file_port;              /* where these are taken to; -1: nowhere */
    atomic_int handed;                 /* what is handed over for them; -1: nothing */
    const struct hash32 *_Atomic said; /* what it is said to be hashed to; NULL: nothing */
    atomic_int tickets;                /* that were given */
    atomic_bool gives_streams;
    atomic_int stream_fault; /* enum stream_fault */
    struct stream streams[STREAMS_MAX];
    size_t stream_count; /* the thread's own while it runs */
    atomic_int pieces;   /* puts with data */
    struct blob blobs[BLOBS_MAX];
    size_t blob_count;
};

struct port *port_open(void);
struct port *port_open_at(const char *endpoint);
void port_close(struct port *port);

/* Bytes that tell their place; freed by the caller. */
uint8_t *pattern_of(size_t size, uint8_t salt);
struct blob_source source_of(const uint8_t *bytes,
                             size_t size); /* of the bytes, which it borrows */
bool put_blobs(struct port *port, const struct blob_source *sources, size_t count,
               enum reject_code *ret_reject);
void check_get(struct port *port, const struct blob_source *source); /* its bytes, all of them */

struct taker {
    const struct blob_source *source;
    atomic_ullong taken;
    uint64_t most;  /* after which it takes no more */
    bool any_order; /* after the first */
};

/* Takes what is the source's, in pieces of 1 MiB; its context is a taker. */
bool take_piece(void *context, uint64_t offset, const uint8_t *bytes, size_t length,
                struct problem *ret_problem);
bool take_all(struct port *port, struct taker *taker, struct problem *problem);

/* A port on this machine with a blob of 3 MB, and a place where tickets are taken to. */
struct local {
    char folder[32], path[48];
    struct port *port;
    struct blob_source source;
    uint8_t *bytes;
    int file_port, file; /* the blob itself is in `file` */
};

struct local open_local(void);
void close_local(struct local *local);

#endif
