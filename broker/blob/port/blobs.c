#include "broker/blob/port/blobs.h"

#include "broker/blob/blob_check.h"
#include "broker/blob/port/blob_ticket.h"
#include "broker/blob/port/blobs_internal.h"
#include "broker/blob/port/turns.h"
#include "broker/blob/port/upload_stream.h"
#include "broker/core/outgoing.h"
#include "broker/fatal.h"
#include "broker/gateway/allowance.h"
#include "protocol/codec.h"
#include "protocol/limits.h"
#include "runtime/clock.h"
#include "runtime/process.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <zmq.h>

enum {
    RECEIVED_AT_ONCE = 256, /* messages, before those that wait are answered */
    BATCH_BYTES = 16 << 20,
    EXPIRE_MS = 1000,
};

static void asked_free(struct asked *asked)
{
    codec_free(&asked->body);
    router_kept_free(&asked->kept);
    free(asked->missing);
    free(asked);
}

/* Decodes the body once the sender may send it. Returns false when the message was refused. */
static bool decode(struct blobs *blobs, struct asked *asked)
{
    enum message_type type = (enum message_type)asked->envelope.type;
    unsigned roles = message_roles(type);
    if (type == MESSAGE_BLOB_FEED && blobs_is_peer(blobs, asked->account)) {
        roles = asked->account->roles;
    }
    if (roles == 0 || !message_is_of_blobs(type)) {
        blobs_refuse(blobs, asked, REJECT_TYPE, "type", asked->envelope.type, 0);
        return false;
    }
    if ((asked->account->roles & roles) == 0) {
        blobs_refuse(blobs, asked, REJECT_ROLE, "type", asked->account->roles, roles);
        return false;
    }
    if (asked->account->frozen && type == MESSAGE_BLOB_PUT) {
        blobs_refuse_frozen(blobs, asked);
        return false;
    }
    struct codec_error error = {0};
    switch (codec_decode(type, asked->envelope.body, asked->envelope.body_length, &asked->body,
                         &error)) {
    case CODEC_OK:
        return true;
    case CODEC_TOO_LARGE:
        blobs_refuse(blobs, asked, REJECT_TOO_LARGE, "body", error.value, error.limit);
        return false;
    case CODEC_OUT_OF_MEMORY:
        blobs_refuse(blobs, asked, REJECT_BUSY, "", 0, 0);
        return false;
    case CODEC_UNKNOWN_TYPE:
    case CODEC_MALFORMED:
        blobs_refuse(blobs, asked, REJECT_MALFORMED, error.field, error.value, error.limit);
        return false;
    }
    return false;
}

/* Answers the message, or a slice of it. Returns false when the message is not answered yet; it
 * then stays the first of its account. */
static bool dispatch(struct blobs *blobs, struct asked *asked)
{
    if (asked->body == NULL) {
        blobs->steps += BLOBS_MESSAGE_STEPS + asked->message.length / BLOBS_BYTES_PER_STEP;
        if (!decode(blobs, asked)) {
            return true;
        }
    }
    switch ((int)asked->envelope.type) {
    case MESSAGE_BLOB_HAVE:
        return blobs_have(blobs, asked, (const void *)asked->body);
    case MESSAGE_BLOB_PUT:
        return blobs_put(blobs, asked, (const void *)asked->body);
    case MESSAGE_BLOB_GET:
        return blobs_get(blobs, asked, (const void *)asked->body);
    case MESSAGE_BLOB_FEED:
        return blobs_feed(blobs, asked, (const void *)asked->body);
    default:
        blobs_refuse(blobs, asked, REJECT_TYPE, "type", asked->envelope.type, 0);
        return true;
    }
}

/* ---------------------------------------------------------------- the loop */

static bool is_ahead(const struct blobs *blobs, uint32_t account, size_t most, int64_t now_ns)
{
    return turns_bytes(&blobs->turns, account) > most && blobs_others_ask(blobs, account, now_ns);
}

/* Pauses a connection of an account whose messages come faster than the account's turns. */
static void pause_sender(struct blobs *blobs, uint32_t account, int descriptor, int64_t now_ns)
{
    bool is_paused = false; /* by a message that came before */
    for (size_t i = 0; i < blobs->paused_count && !is_paused; i++) {
        is_paused = blobs->paused[i].descriptor == descriptor;
    }
    if (descriptor < 0 || is_paused || blobs->paused_count == BLOBS_PAUSED_MAX ||
        !is_ahead(blobs, account, BLOBS_WAITING_SHARED_BYTES, now_ns)) {
        return;
    }
    router_pause(descriptor, true);
    blobs->paused[blobs->paused_count++] =
        (struct paused){.descriptor = descriptor,
                        .account = account,
                        .until_ns = now_ns + BLOBS_PAUSED_MS * NS_PER_MS};
}

/* Lets paused connections of an account go on one after the other, the longest paused first. All at
 * once would bring more messages than the account has turns for. */
static void resume_senders(struct blobs *blobs, int64_t now_ns)
{
    size_t kept = 0;
    for (size_t i = 0; i < blobs->paused_count; i++) {
        const struct paused paused = blobs->paused[i];
        const bool goes_on =
            now_ns >= paused.until_ns ||
            (now_ns >= blobs->next_resume_ns &&
             !is_ahead(blobs, paused.account, BLOBS_WAITING_SHARED_BYTES / 2, now_ns));
        if (goes_on) {
            router_pause(paused.descriptor, false);
            blobs->next_resume_ns = now_ns + BLOBS_RESUME_MS * NS_PER_MS;
        } else {
            blobs->paused[kept++] = paused;
        }
    }
    blobs->paused_count = kept;
}

/* Puts the message into the queue of its account. */
static void queue_up(struct blobs *blobs, const struct asked *received, int64_t now_ns)
{
    struct asked *asked = malloc(sizeof *asked);
    if (asked == NULL) {
        blobs_refuse(blobs, received, REJECT_BUSY, "", 0, 0);
        return;
    }
    *asked = *received;
    if (!turns_put(&blobs->turns, &asked->turn, asked->account->number, asked->message.length,
                   now_ns)) {
        free(asked);
        blobs_refuse(blobs, received, REJECT_BUSY, "waiting_requests", TURNS_EACH + 1, TURNS_EACH);
        return;
    }
    pause_sender(blobs, asked->account->number, router_descriptor(blobs->config.router), now_ns);
    asked->kept = router_keep(blobs->config.router, &asked->message);
    if (asked->kept == NULL) {
        fatal("out of memory");
    }
    /* router_keep has moved the bytes, so the envelope is read again. */
    (void)envelope_read(asked->message.bytes, asked->message.length, LIMIT_BLOB_MESSAGE_BYTES,
                        &asked->envelope);
}

static void receive(struct blobs *blobs, const struct router_message *message)
{
    /* The notes are read after the message came, so they hold every right that its sender may know
     * of. */
    blobs_learn(blobs);
    struct asked asked = {.message = *message,
                          .is_local = router_is_local(blobs->config.router),
                          .account = blobs_sender(blobs, &message->client)};
    if (asked.account == NULL) {
        return; /* unknown keys get no answer here */
    }
    int64_t now_ns = clock_monotonic_ns();
    struct allowance *allowance =
        blobs_is_peer(blobs, asked.account)
            ? NULL /* it has no number of its own */
            : allowance_list_of(&blobs->allowances, asked.account->number);
    if (allowance != NULL && !allowance_take(allowance, BLOBS_RATE, now_ns)) {
        if (allowance_tell(allowance, now_ns) &&
            envelope_read(message->bytes, message->length, LIMIT_BLOB_MESSAGE_BYTES,
                          &asked.envelope) == ENVELOPE_OK) {
            blobs_refuse(blobs, &asked, REJECT_RATE, "requests_per_second", BLOBS_RATE + 1,
                         BLOBS_RATE);
        } else {
            blobs_note_refused(blobs, &asked, REJECT_RATE);
        }
        return;
    }
    switch (
        envelope_read(message->bytes, message->length, LIMIT_BLOB_MESSAGE_BYTES, &asked.envelope)) {
    case ENVELOPE_OK:
        queue_up(blobs, &asked, now_ns);
        return;
    case ENVELOPE_BAD_VERSION:
        blobs_refuse(blobs, &asked, REJECT_VERSION, "version", 0, ENVELOPE_VERSION);
        return;
    case ENVELOPE_SHORT:
    case ENVELOPE_LONG:
    case ENVELOPE_BAD_MAGIC:
    case ENVELOPE_BAD_FLAGS:
    case ENVELOPE_TOO_LARGE:
        blobs_refuse(blobs, &asked, REJECT_MALFORMED, "envelope", 0, 0);
        return;
    }
}

static void receive_all(struct blobs *blobs)
{
    struct router_message message;
    for (int i = 0; i < RECEIVED_AT_ONCE && router_receive(blobs->config.router, 0, &message) == 1;
         i++) {
        receive(blobs, &message);
    }
}

/* A long batch of the account that costs most is followed by a pause for that account. A request of
 * the others waited for the batch, and most of them need several requests in a row. */
static void leave_time(struct blobs *blobs, uint32_t account, int64_t since_ns)
{
    const int64_t now_ns = clock_monotonic_ns();
    const int64_t took_ns = now_ns - since_ns;
    const int64_t most_ns = BLOBS_DEAR_MOST_MS * NS_PER_MS;
    if (took_ns >= BLOBS_DEAR_MS * NS_PER_MS) {
        turns_leave_time(&blobs->turns, account, now_ns - BLOBS_NEAR_MS * NS_PER_MS,
                         now_ns + (took_ns < most_ns ? took_ns : most_ns));
    }
}

/* Answers the messages whose turn has come, and then makes durable what they stored. */
static void answer_batch(struct blobs *blobs)
{
    size_t bytes = 0;
    uint64_t steps = 0;
    uint64_t most_steps = 0;
    uint32_t dearest = 0; /* the account of the message that took most */
    bool is_answered = true;
    const int64_t since_ns = clock_monotonic_ns();
    for (int i = 0; i < BATCH_MESSAGES && bytes < BATCH_BYTES; i++) {
        if (blobs->turns.count == 0 || !is_answered) {
            receive_all(blobs); /* what came meanwhile shares the commit */
        }
        const int64_t now_ns = clock_monotonic_ns();
        struct turn *turn = turns_first(&blobs->turns, now_ns);
        if (turn == NULL ||
            (steps >= BLOBS_BATCH_STEPS && blobs_others_ask(blobs, turn->account, now_ns))) {
            break;
        }
        struct asked *asked = (struct asked *)(void *)turn; /* its first member */
        asked->account = blobs_sender(blobs, &asked->message.client);
        blobs->steps = 0;
        is_answered = asked->account == NULL || dispatch(blobs, asked);
        turns_charge(&blobs->turns, turn->account, blobs->steps, now_ns);
        steps += blobs->steps;
        dearest = blobs->steps > most_steps ? turn->account : dearest;
        most_steps = blobs->steps > most_steps ? blobs->steps : most_steps;
        if (is_answered) {
            bytes += asked->message.length;
            turns_take(&blobs->turns, turn);
            asked_free(asked);
        }
    }
    blobs_end_batch(blobs);
    if (most_steps > 0) {
        leave_time(blobs, dearest, since_ns);
    }
}

/* Returns how long the thread may wait for the next message. */
static long waits_ms(struct blobs *blobs)
{
    if (blobs->turns.count == 0) {
        return blobs_copies_wait_ms(blobs, blobs->paused_count > 0 ? BLOBS_RESUME_MS : EXPIRE_MS);
    }
    return turns_first(&blobs->turns, clock_monotonic_ns()) == NULL ? 1 : 0;
}

/* Lowers the priority of the threads that read and seal blobs. Large blobs are the one long work
 * that a member can cause, and orders go first. Returns false while a thread does not run yet. */
static bool yield_to_orders(void)
{
    return process_yield_threads(BLOBS_THREAD) > 0 && process_yield_threads(BLOBS_IO_THREAD) > 0;
}

static void *run(void *argument)
{
    struct blobs *blobs = argument;
    process_name_thread(BLOBS_THREAD);
    zmq_pollitem_t items[] = {
        {.socket = router_socket(blobs->config.router), .events = ZMQ_POLLIN},
        {.fd = queue_descriptor(blobs->config.notes), .events = ZMQ_POLLIN},
        {.fd = upload_streams_descriptor(blobs->streams), .events = ZMQ_POLLIN},
        {.fd = blob_checks_descriptor(blobs->checks), .events = ZMQ_POLLIN},
        {.fd = blobs->config.file_port, .events = ZMQ_POLLIN},
    };
    const int item_count = blobs->config.file_port < 0 ? 4 : 5;
    int64_t next_expiry_ns = 0;
    bool yields = false;
    while (!queue_finished(blobs->config.notes)) {
        if (zmq_poll(items, item_count, waits_ms(blobs)) < 0 && errno != EINTR) {
            fatal("the blob port cannot be polled: %s", zmq_strerror(errno));
        }
        blobs_learn(blobs);
        receive_all(blobs);
        answer_batch(blobs);
        blobs_do_order(blobs);
        resume_senders(blobs, clock_monotonic_ns());
        blobs_end_streams(blobs);
        blobs_end_checks(blobs);
        blobs_copies_serve(blobs);
        int64_t now_ns = clock_monotonic_ns();
        if (blobs->named_hashes >= BLOBS_NAMES_MAX) {
            (void)blobs_write_names(blobs);
        }
        blob_tickets_serve(&blobs->tickets, blobs->config.store, now_ns);
        if (now_ns >= next_expiry_ns) {
            blob_access_expire(blobs->config.access, now_ns);
            blob_store_expire(blobs->config.store, now_ns);
            if (blobs_write_names(blobs)) {
                blobs_drop_unnamed(blobs, now_ns);
            }
            blobs_sweep(blobs);
            blobs_copies_trim(blobs);
            next_expiry_ns = now_ns + EXPIRE_MS * NS_PER_MS;
            yields = yields || yield_to_orders();
        }
    }
    (void)blobs_write_names(blobs); /* else the next start finds them in the ledger */
    return NULL;
}

struct blobs *blobs_start(const struct blobs_config *config)
{
    struct blobs *blobs = calloc(1, sizeof *blobs);
    if (blobs == NULL) {
        fatal("the blob port cannot start: out of memory");
    }
    blobs->config = *config;
    blobs->is_swept = blob_store_is_empty(config->store); /* a new blobs.db knows no file */
    blobs->tickets.port = config->file_port;
    blobs->buffer = malloc(LIMIT_BLOB_MESSAGE_BYTES);
    blobs->streams = upload_streams_create(config->reserve);
    blobs->checks = blob_checks_create();
    if (!blobs_copies_start(blobs) || blobs->buffer == NULL || blobs->streams == NULL ||
        blobs->checks == NULL || pthread_create(&blobs->thread, NULL, run, blobs) != 0) {
        fatal("the blob port cannot start: out of memory or threads");
    }
    return blobs;
}

void blobs_stop(struct blobs **self)
{
    struct blobs *blobs = *self;
    if (blobs != NULL) {
        queue_close(blobs->config.notes);
        pthread_join(blobs->thread, NULL);
        for (struct turn *turn; (turn = turns_take_any(&blobs->turns)) != NULL;) {
            asked_free((struct asked *)(void *)turn);
        }
        blobs_copies_stop(blobs);
        blob_tickets_fini(&blobs->tickets);
        upload_streams_destroy(&blobs->streams); /* they write to files of the store */
        blob_checks_destroy(&blobs->checks);
        blob_store_close(&blobs->config.store);
        directory_destroy(&blobs->config.directory);
        blob_access_destroy(&blobs->config.access);
        allowance_list_fini(&blobs->allowances);
        for (size_t i = 0; i < blobs->name_count; i++) {
            outgoing_destroy(&blobs->names[i]);
        }
        free(blobs->names);
        free(blobs->buffer);
        free(blobs);
        *self = NULL;
    }
}
