#include "consumer/client/client.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "runtime/clock.h"
#include "runtime/entropy.h"
#include "runtime/keyfile.h"

#include <assert.h>
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

enum {
    TIMEOUT_MS_DEFAULT = 30000,
    SLICE_MS = 100, /* longest delay of an interrupt, in milliseconds */
};

/* ---------------------------------------------------------------- open and close */

bool client_open(const struct market *market, struct identity *identity,
                 const struct bourse_options *options, struct bourse **ret_client,
                 struct bourse_error *error)
{
    CLEANUP(bourse_close) struct bourse *client = calloc(1, sizeof *client);
    if (client == NULL) {
        identity_destroy(&identity);
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    client->identity = identity;
    client->market = *market;
    client->timeout_ms = options->timeout_ms > 0 ? options->timeout_ms : TIMEOUT_MS_DEFAULT;
    client->until_ns = INT64_MAX;
    int64_t most_ns = 0;
    if (options->most_ms > 0 && (!checked_mul(options->most_ms, NS_PER_MS, &most_ns) ||
                                 !checked_add(clock_monotonic_ns(), most_ns, &client->until_ns))) {
        client->until_ns = INT64_MAX;
    }
    client->on_silence = options->on_silence;
    client->silence_context = options->silence_context;
    client->on_moved = options->on_moved;
    client->on_stalled = options->on_stalled;
    client_copy(client->program, sizeof client->program,
                options->program != NULL ? options->program : "libbourse " BOURSE_VERSION);
    atomic_init(&client->interrupted, false);
    atomic_init(&client->blobs_busy, 0);
    client->zmq = zmq_ctx_new();
    struct contact addresses[CONTACTS_MAX];
    const size_t count = market_addresses(market, addresses);
    client->session = consumer_session_create_at(identity, client->program, addresses, count);
    if (client->zmq == NULL || client->session == NULL) {
        return client_fail(error, BOURSE_LOCAL,
                           "no memory or no file descriptor is left for a connection");
    }
    if (options->read_from_any) {
        consumer_session_read_anywhere(client->session, options->least_index);
    }
    struct problem problem = {.text = ""};
    if (!link_open(client->zmq, market->control, &market->server, identity, LIMIT_MESSAGE_BYTES,
                   &client->link, &problem) ||
        (count > 1 && !link_watch(client->link, &problem))) {
        return client_fail(error, BOURSE_UNREACHABLE, "%s", problem.text);
    }
    consumer_session_connected(client->session, clock_monotonic_ns(), entropy_u64());
    *ret_client = client;
    client = NULL;
    return true;
}

bool bourse_open(const struct bourse_options *options, struct bourse **ret_bourse,
                 struct bourse_error *ret_error)
{
    if (sodium_init() < 0) {
        return client_fail(ret_error, BOURSE_LOCAL,
                           "libsodium cannot be initialised on this machine");
    }
    struct problem problem = {.text = ""};
    struct market market;
    if (!market_read(options->market, &market, &problem)) {
        /* A broker that stops removes its file. A wrong file is a fault of this machine. */
        bool is_gone = access(options->market, F_OK) != 0;
        return client_fail(ret_error, is_gone ? BOURSE_UNREACHABLE : BOURSE_LOCAL, "%s%s",
                           problem.text,
                           is_gone ? "; `bourse up` starts a market here, `bourse join INVITATION` "
                                     "joins one"
                                   : "");
    }
    struct identity *identity = NULL;
    if (access(options->key, F_OK) != 0 && errno == ENOENT) {
        return client_fail(ret_error, BOURSE_LOCAL,
                           "no key in %s; `bourse join INVITATION` makes one", options->key);
    }
    if (!keyfile_load(options->key, &identity, &problem)) {
        return client_fail(ret_error, BOURSE_LOCAL, "%s", problem.text);
    }
    return client_open(&market, identity, options, ret_bourse, ret_error);
}

static void flush(struct bourse *client);

void bourse_close(struct bourse **self)
{
    struct bourse *client = *self;
    if (client == NULL) {
        return;
    }
    if (client->session != NULL) {
        bourse_unlisten(client);
    }
    if (client->link != NULL && client->session != NULL) {
        consumer_session_goodbye(client->session, clock_monotonic_ns());
        flush(client);
    }
    blob_client_close(&client->blobs);
    link_close(&client->link);
    consumer_session_destroy(&client->session);
    identity_destroy(&client->identity);
    if (client->zmq != NULL) {
        (void)zmq_ctx_term(client->zmq); /* every socket is closed, so the call cannot block */
    }
    free(client);
    *self = NULL;
}

/* The broker to which the session speaks, or will speak next. */
static const struct contact *address_of(const struct bourse *client)
{
    return consumer_session_address(client->session);
}

const char *bourse_endpoint(const struct bourse *bourse)
{
    return address_of(bourse)->control;
}

void bourse_interrupt(struct bourse *bourse)
{
    atomic_store(&bourse->interrupted, true);
    uintptr_t blobs = atomic_load(&bourse->blobs_busy);
    if (blobs != 0) {
        blob_client_interrupt((struct blob_client *)blobs); /* only sets a flag */
    }
}

bool client_interrupted(const struct bourse *client)
{
    return atomic_load(&client->interrupted);
}

/* ---------------------------------------------------------------- the pump */

static void lost(struct bourse *client, int64_t wait_ns)
{
    client->reopen_at_ns = clock_monotonic_ns() + wait_ns;
}

static void flush(struct bourse *client)
{
    const uint8_t *message;
    size_t length;
    while (client->reopen_at_ns == 0 &&
           consumer_session_outgoing(client->session, &message, &length)) {
        if (!link_send(client->link, message, length)) {
            /* The link is not connected yet, or full. The next turn tries again. */
            consumer_session_unsent(client->session);
            return;
        }
    }
}

static bool has_choice(const struct bourse *client)
{
    return contacts_has_choice(consumer_session_contacts(client->session));
}

/* Tells the session that its connection has ended. */
static void close_session(struct bourse *client, struct consumer_event *ret_event)
{
    consumer_session_unreachable(client->session, ret_event);
    if (ret_event->type == CONSUMER_LOST) {
        lost(client, ret_event->wait_ns);
    }
}

/* Connects to the present address. Of several, one that cannot be used is a loss like any other. */
static bool reopen(struct bourse *client, struct consumer_event *ret_event,
                   struct bourse_error *error)
{
    struct problem problem = {.text = ""};
    const bool is_open = link_reopen_at(client->link, address_of(client)->control, &problem);
    if (!is_open && !has_choice(client)) {
        return client_fail(error, BOURSE_UNREACHABLE, "%s", problem.text);
    }
    client->reopen_at_ns = 0;
    consumer_session_connected(client->session, clock_monotonic_ns(), entropy_u64());
    if (!is_open) {
        close_session(client, ret_event);
    }
    return true;
}

static int wait_ms(const struct bourse *client, int64_t now_ns, int64_t deadline_ns)
{
    int64_t until_ns = consumer_session_deadline_ns(client->session);
    if (client->reopen_at_ns != 0 && client->reopen_at_ns < until_ns) {
        until_ns = client->reopen_at_ns;
    }
    until_ns = deadline_ns < until_ns ? deadline_ns : until_ns;
    int64_t wait = until_ns <= now_ns ? 0 : (until_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS;
    return wait > SLICE_MS ? SLICE_MS : (int)wait;
}

/* One turn sends everything due and receives at most one message. The event may be NOTHING. */
static bool turn(struct bourse *client, int64_t deadline_ns, struct consumer_event *ret_event,
                 struct bourse_error *error)
{
    *ret_event = (struct consumer_event){.type = CONSUMER_NOTHING};
    int64_t now_ns = clock_monotonic_ns();
    if (client->reopen_at_ns != 0 && now_ns >= client->reopen_at_ns &&
        !reopen(client, ret_event, error)) {
        return false;
    }
    if (ret_event->type != CONSUMER_NOTHING) {
        return true;
    }
    flush(client);
    const uint8_t *message;
    size_t length;
    int got = link_receive(client->link, wait_ms(client, now_ns, deadline_ns), &message, &length);
    now_ns = clock_monotonic_ns();
    if (got < 0) {
        lost(client, SLICE_MS * NS_PER_MS);
    } else if (got > 0 && client->reopen_at_ns == 0) {
        consumer_session_incoming(client->session, now_ns, message, length, ret_event);
    } else if (link_has_ended(client->link)) { /* NOTHING when the session is lost already */
        close_session(client, ret_event);
    } else if (client->reopen_at_ns == 0) {
        /* A tick comes only after all waiting messages. */
        consumer_session_tick(client->session, now_ns, ret_event);
    }
    if (ret_event->type == CONSUMER_READY) {
        client->was_ready = true;
    } else if (ret_event->type == CONSUMER_LOST) {
        lost(client, ret_event->wait_ns);
    }
    return true;
}

/* The client's signature covers the cluster from Welcome, so it must be the cluster of the market's
 * file. */
static bool is_expected_market(const struct bourse *client, struct bourse_error *error)
{
    const Bourse__V1__Welcome *welcome = consumer_session_welcome(client->session);
    struct id128 cluster = codec_id(welcome->cluster);
    struct key32 log_key = codec_key(welcome->log_key);
    if (!id128_equal(&cluster, &client->market.cluster) ||
        !key32_equal(&log_key, &client->market.log_key)) {
        return client_fail(
            error, BOURSE_UNREACHABLE,
            "the broker at %s is of another market than its market.yaml says; join again",
            address_of(client)->control);
    }
    return true;
}

/* The broker's journal takes no entry. The request waits, and is sent again until the deadline. */
static void wait_for_quorum(struct bourse *client, const struct consumer_event *event,
                            int64_t deadline_ns)
{
    const int64_t left_ns = deadline_ns - clock_monotonic_ns();
    if (client->no_quorum[0] == '\0' && client->on_stalled != NULL && left_ns > 0) {
        client->on_stalled(client->silence_context, address_of(client)->control, event->text,
                           (int)(left_ns / NS_PER_MS));
    }
    client_copy(client->no_quorum, sizeof client->no_quorum, event->text);
}

enum client_wait client_next(struct bourse *client, int64_t deadline_ns,
                             struct consumer_event *ret_event, struct bourse_error *error)
{
    for (;;) {
        if (client_interrupted(client)) {
            (void)client_fail(error, BOURSE_INTERRUPTED, "interrupted");
            return CLIENT_INTERRUPTED;
        }
        if (!turn(client, deadline_ns, ret_event, error)) {
            return CLIENT_FAILED;
        }
        if (ret_event->type == CONSUMER_BROKEN) {
            (void)client_fail(error, BOURSE_UNREACHABLE, "the broker at %s: %s", ret_event->address,
                              ret_event->text);
            return CLIENT_FAILED;
        }
        if (ret_event->type == CONSUMER_READY && !is_expected_market(client, error)) {
            return CLIENT_FAILED;
        }
        if (ret_event->type == CONSUMER_NOTHING && ret_event->reject == REJECT_NO_QUORUM) {
            wait_for_quorum(client, ret_event, deadline_ns);
        } else if (ret_event->type == CONSUMER_LOST && ret_event->end == CONTACT_NO_QUORUM) {
            /* The other brokers are tried. When none takes the request, this is why. */
            client_copy(client->no_quorum, sizeof client->no_quorum, ret_event->text);
        }
        client_listening_take(client, ret_event);
        if (ret_event->type != CONSUMER_NOTHING) {
            flush(client);
            return CLIENT_EVENT;
        }
        if (clock_monotonic_ns() >= deadline_ns) {
            return CLIENT_TIMEOUT;
        }
    }
}

void client_breathe(struct bourse *client)
{
    struct consumer_event event;
    struct bourse_error error;
    /* The number of messages is bounded: heartbeats, perhaps job events. */
    for (int i = 0; i < 16; i++) {
        if (client_next(client, 0, &event, &error) != CLIENT_EVENT) {
            return;
        }
        consumer_event_clear(&event);
    }
}

static bool timed_out(const struct bourse *client, struct bourse_error *error)
{
    const bool is_over = clock_monotonic_ns() >= client->until_ns;
    if (client->no_quorum[0] != '\0') {
        return client_refused(error, REJECT_NO_QUORUM, client->no_quorum);
    }
    if (client->was_ready && is_over) {
        return client_fail(error, BOURSE_TIMED_OUT, "no answer within the time for all calls");
    }
    if (client->was_ready) {
        return client_fail(error, BOURSE_TIMED_OUT,
                           "no answer within %d ms; it is safe to try again", client->timeout_ms);
    }
    const enum bourse_status status = is_over ? BOURSE_TIMED_OUT : BOURSE_UNREACHABLE;
    if (has_choice(client)) {
        char tried[BOURSE_TEXT_SIZE];
        contacts_explain(consumer_session_contacts(client->session), tried, sizeof tried);
        return client_fail(error, status, "no broker of this market can be used: %s", tried);
    }
    return client_fail(
        error, status,
        "no broker answers at %s; is the broker running, and is the key in the market's file its "
        "key?%s",
        client->market.control,
        strncmp(client->market.control, "ipc://", 6) == 0 ? " `bourse up` starts a market here"
                                                          : "");
}

/* A call waits for the broker from `began_ns` on. */
struct patience {
    int64_t began_ns;
    bool told; /* that the broker is silent */
    int moves_told;
};

/* Tells that a broker cannot be used, of several. */
static void say_moved(const struct bourse *client, struct patience *patience, int64_t deadline_ns,
                      const struct consumer_event *lost)
{
    const int64_t now_ns = clock_monotonic_ns();
    const bool is_quick = lost->end == CONTACT_FOLLOWS &&
                          now_ns - patience->began_ns < BOURSE_MOVE_QUIET_MS * NS_PER_MS;
    if (client->on_moved != NULL && !is_quick && now_ns < deadline_ns &&
        patience->moves_told < BOURSE_MOVES_TOLD) {
        patience->moves_told++;
        client->on_moved(client->silence_context, lost->address, contacts_end_text(lost->end),
                         (int)((deadline_ns - now_ns) / NS_PER_MS));
    }
}

static void say_silent(struct bourse *client, struct patience *patience, int64_t deadline_ns,
                       int64_t now_ns)
{
    if (!patience->told && client->on_silence != NULL && now_ns < deadline_ns) {
        patience->told = true;
        client->on_silence(client->silence_context, client->market.control,
                           (int)((deadline_ns - now_ns) / NS_PER_MS));
    }
}

/* Returns the next event of a call, as client_next does. Somebody is told when the call has waited
 * for long, and would wait for longer. */
static enum client_wait next_of_call(struct bourse *client, struct patience *patience,
                                     struct consumer_event *ret_event, struct bourse_error *error)
{
    int64_t deadline_ns = patience->began_ns + client->timeout_ms * NS_PER_MS;
    deadline_ns = deadline_ns < client->until_ns ? deadline_ns : client->until_ns;
    const int64_t silence_ns = patience->began_ns + BOURSE_SILENCE_MS * NS_PER_MS;
    if (has_choice(client)) {
        enum client_wait wait = client_next(client, deadline_ns, ret_event, error);
        if (wait == CLIENT_EVENT && ret_event->type == CONSUMER_LOST) {
            say_moved(client, patience, deadline_ns, ret_event);
        }
        return wait;
    }
    if (client->is_following) { /* the broker answers when there are news, and beats meanwhile */
        enum client_wait wait = client_next(client, deadline_ns, ret_event, error);
        if (wait == CLIENT_EVENT && ret_event->type == CONSUMER_LOST) {
            say_silent(client, patience, deadline_ns, clock_monotonic_ns());
        }
        return wait;
    }
    if (!patience->told && client->on_silence != NULL && silence_ns < deadline_ns) {
        enum client_wait wait = client_next(client, silence_ns, ret_event, error);
        if (wait != CLIENT_TIMEOUT) {
            return wait;
        }
        say_silent(client, patience, deadline_ns, silence_ns);
    }
    return client_next(client, deadline_ns, ret_event, error);
}

bool client_ready(struct bourse *client, struct bourse_error *error)
{
    struct patience patience = {.began_ns = clock_monotonic_ns()};
    while (!consumer_session_ready(client->session)) {
        struct consumer_event event;
        enum client_wait wait = next_of_call(client, &patience, &event, error);
        if (wait == CLIENT_EVENT) {
            consumer_event_clear(&event);
        } else {
            return wait == CLIENT_TIMEOUT ? timed_out(client, error) : false;
        }
    }
    return true;
}

static bool request_failed(enum consumer_status status, struct bourse_error *error)
{
    switch (status) {
    case CONSUMER_OK:
        return true;
    case CONSUMER_FULL:
        return client_fail(error, BOURSE_LOCAL, "too many requests wait for an answer");
    case CONSUMER_TOO_LARGE:
        return client_fail(error, BOURSE_USAGE,
                           "the request is larger than a message may be (%d bytes)",
                           LIMIT_MESSAGE_BYTES);
    case CONSUMER_OUT_OF_MEMORY:
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    return false;
}

/* Interprets the answer to a request, and takes the event over. */
static bool answered(struct consumer_event *event, enum message_type reply_type,
                     ProtobufCMessage **ret_body, struct bourse_error *error)
{
    bool ok = false;
    if (event->answer == CONSUMER_REJECTED) {
        (void)client_rejected(error, event);
    } else if (reply_type == 0) {
        ok = event->answer == CONSUMER_ACCEPTED;
    } else if (event->answer == CONSUMER_REPLY && event->message_type == reply_type) {
        *ret_body = event->body;
        event->body = NULL;
        ok = true;
    }
    if (!ok && event->answer != CONSUMER_REJECTED) {
        (void)client_fail(error, BOURSE_UNREACHABLE,
                          "the broker answered with another kind of message");
    }
    consumer_event_clear(event);
    return ok;
}

/* Keeps the oldest state of brokers that follow, else the leader's newest one. */
static void note_state(struct bourse *client)
{
    struct dialogue_state state = consumer_session_state(client->session);
    const struct dialogue_state kept = client->answers;
    if (client->has_answers && kept.follows) {
        state = state.follows && state.index < kept.index ? state : kept;
        state.stale_ms = state.stale_ms > kept.stale_ms ? state.stale_ms : kept.stale_ms;
    }
    client->answers = state;
    client->has_answers = true;
}

bool client_call_as(struct bourse *client, const struct id128 *id, enum message_type type,
                    const ProtobufCMessage *body, enum message_type reply_type,
                    ProtobufCMessage **ret_body, struct bourse_error *error)
{
    assert((reply_type == 0) == (ret_body == NULL));
    if (!client_ready(client, error)) { /* the signature covers the cluster and the log's time */
        return false;
    }
    int64_t now_ns = clock_monotonic_ns();
    client->no_quorum[0] = '\0';
    if (!request_failed(consumer_session_request(client->session, now_ns, type, id, body), error)) {
        return false;
    }
    struct patience patience = {.began_ns = now_ns};
    for (;;) {
        struct consumer_event event;
        enum client_wait wait = next_of_call(client, &patience, &event, error);
        if (wait != CLIENT_EVENT) {
            consumer_session_forget(client->session, id);
            return wait == CLIENT_TIMEOUT ? timed_out(client, error) : false;
        }
        if (event.type == CONSUMER_ANSWER && id128_equal(&event.id, id)) {
            note_state(client);
            return answered(&event, reply_type, ret_body, error);
        }
        consumer_event_clear(&event);
    }
}

bool client_call(struct bourse *client, enum message_type type, const ProtobufCMessage *body,
                 enum message_type reply_type, ProtobufCMessage **ret_body,
                 struct bourse_error *error)
{
    struct id128 id = entropy_id();
    return client_call_as(client, &id, type, body, reply_type, ret_body, error);
}

/* The blob port of the session's broker. The market's first one stands for a leader that did not
 * say where its port is. */
static const char *blobs_of(const struct bourse *client)
{
    const char *blobs = address_of(client)->blobs;
    return blobs[0] != '\0' ? blobs : client->market.blobs;
}

/* Lets the session find the broker that leads, for the time that one broker may take to answer. */
static void find_blobs(void *context, char ret_endpoint[LIMIT_ENDPOINT_BYTES + 1])
{
    struct bourse *client = context;
    const int64_t until_ns = clock_monotonic_ns() + CONTACTS_GREETING_NS;
    client_breathe(client);
    while (has_choice(client) && !consumer_session_ready(client->session)) {
        struct consumer_event event;
        struct bourse_error error;
        if (client_next(client, until_ns, &event, &error) != CLIENT_EVENT) {
            break;
        }
        consumer_event_clear(&event);
    }
    (void)snprintf(ret_endpoint, LIMIT_ENDPOINT_BYTES + 1, "%s", blobs_of(client));
}

/* A broker that follows gives no files out. */
static bool leave_follower(struct bourse *client, struct bourse_error *error)
{
    struct consumer_event event;
    consumer_session_require_leader(client->session, &event);
    if (event.type != CONSUMER_LOST) {
        return true;
    }
    lost(client, event.wait_ns);
    consumer_event_clear(&event);
    return client_ready(client, error);
}

struct blob_client *client_blobs_begin(struct bourse *client, struct bourse_error *error)
{
    if (!leave_follower(client, error)) {
        return NULL;
    }
    const char *endpoint = blobs_of(client);
    if (client->blobs != NULL && strcmp(blob_client_endpoint(client->blobs), endpoint) != 0) {
        blob_client_close(&client->blobs); /* the session has moved to another broker */
    }
    if (client->blobs == NULL) {
        struct problem problem = {.text = ""};
        if (!blob_client_open(client->zmq, endpoint, &client->market.server, client->identity,
                              &client->blobs, &problem)) {
            (void)client_fail(error, BOURSE_UNREACHABLE, "%s", problem.text);
            return NULL;
        }
        blob_client_follow(client->blobs, find_blobs, client);
    }
    atomic_store(&client->blobs_busy, (uintptr_t)client->blobs);
    return client->blobs;
}

void client_blobs_end(struct bourse *client)
{
    atomic_store(&client->blobs_busy, 0);
}
