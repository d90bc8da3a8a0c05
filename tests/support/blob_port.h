/* tests/support/blob_port.h runs a broker's blob port with a store in memory, and a client of it.
 * The port makes the errors that the test asks for, in a thread of its own. */
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

/* A get that waits until port.hold gets are there. */
struct held {
    struct router_message message;
    struct envelope request;
    struct hash32 hash;
    uint32_t length;
};

enum { STREAMS_MAX = 8 };
/* The fault that the port makes in a stream. */
enum stream_fault {
    STREAM_GOOD,
    STREAM_NOT_HANDED,
    STREAM_NO_SOCKET,
    STREAM_CLOSED, /* before all bytes have come */
    STREAM_DENIED, /* all bytes have come, and the answer says that none did */
    STREAM_FAULTS,
};

/* A blob on its way through a socket. */
struct stream {
    struct blob *blob;
    enum stream_fault fault;
    int ends[2];
    pthread_t thread;
    atomic_bool is_over; /* the stream's thread has read its last byte */
    uint64_t got;
};

/* A blob port with a store in memory. Its thread makes the errors that the fields ask for. */
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
    atomic_bool follows;     /* every request is refused with NOT_LEADER */
    atomic_int busy_answers; /* how many requests are refused with BUSY first */
    atomic_int forget_after; /* after so many puts, the half-stored blobs lose a chunk; 0: never */
    atomic_uint unread_from; /* from this request on, nothing of any blob can be read; 0: all can */
    atomic_bool lies;        /* flips a bit of what the port hands out */
    atomic_bool refuses_quota;
    atomic_int drop_answers; /* which answer to a get is dropped, counted from 1; 0: none */
    atomic_int puts;
    atomic_int gets;
    atomic_uint largest_get; /* the most bytes that a get asked for */
    atomic_int hold;         /* so many gets wait at the start, until all of them are there */
    struct held held[BLOBS_MAX];
    int held_count;                    /* the thread's own */
    atomic_bool gives_tickets;         /* a ticket is the answer instead of the first bytes, */
    atomic_bool keeps_giving;          /* and again for later gets */
    atomic_int file_port;              /* the socket to which tickets are taken; -1: nowhere */
    atomic_int handed;                 /* the file that is handed over for a ticket; -1: nothing */
    const struct hash32 *_Atomic said; /* the hash that the port claims; NULL: none */
    atomic_int tickets;                /* tickets given out */
    atomic_bool gives_streams;
    atomic_int stream_fault; /* enum stream_fault */
    struct stream streams[STREAMS_MAX];
    size_t stream_count; /* the thread's own while the thread runs */
    atomic_int pieces;   /* puts that had data */
    struct blob blobs[BLOBS_MAX];
    size_t blob_count;
};

struct port *port_open(void);
struct port *port_open_at(const char *endpoint);
void port_close(struct port *port);

/* Returns bytes that tell their place; the caller frees them. */
uint8_t *pattern_of(size_t size, uint8_t salt);
/* Returns a source of the bytes, which it borrows. */
struct blob_source source_of(const uint8_t *bytes, size_t size);
bool put_blobs(struct port *port, const struct blob_source *sources, size_t count,
               enum reject_code *ret_reject);
/* Fails unless a get brings all bytes of the source. */
void check_get(struct port *port, const struct blob_source *source);

struct taker {
    const struct blob_source *source;
    atomic_ullong taken;
    uint64_t most;  /* after so many bytes the taker refuses more */
    bool any_order; /* after the first piece */
};

/* Takes the source's bytes, in pieces of 1 MiB. The context is a taker. */
bool take_piece(void *context, uint64_t offset, const uint8_t *bytes, size_t length,
                struct problem *ret_problem);
bool take_all(struct port *port, struct taker *taker, struct problem *problem);

/* A port on this machine with a blob of 3 MB, and a place where tickets are taken to. */
struct local {
    char folder[32], path[48];
    struct port *port;
    struct blob_source source;
    uint8_t *bytes;
    int file_port, file; /* the blob's bytes are in `file` */
};

struct local open_local(void);
void close_local(struct local *local);

#endif
