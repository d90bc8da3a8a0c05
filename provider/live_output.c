#include "provider/live_output.h"

#include "protocol/limits.h"

#include <stdlib.h>
#include <string.h>

_Static_assert((int)LANES_PIECE_BYTES <= (int)LIMIT_OUTPUT_BYTES, "a piece fits the wire");
_Static_assert((int)LIVE_OUTPUT_PIECES <= (int)LIMIT_OUTPUT_PIECES, "so do all");

enum { ROUNDS = LIVE_OUTPUT_MESSAGE_BYTES / LANES_PIECE_BYTES };

struct live_output {
    struct network *network;
    int64_t look_ns; /* next look at the followed subtasks */
    int64_t ask_ns;  /* next message, even without output */
    size_t turn;     /* the followed lease that is visited first, so that each has its turn */
    /* The next fields are the message that is gathered. */
    size_t count, size;
    bool is_full; /* a piece found no room */
    Bourse__V1__OutputPiece pieces[LIVE_OUTPUT_PIECES];
    Bourse__V1__OutputPiece *pointers[LIVE_OUTPUT_PIECES];
    uint8_t bytes[LIVE_OUTPUT_MESSAGE_BYTES];
};

struct live_output *live_output_create(struct network *network)
{
    struct live_output *live = calloc(1, sizeof *live);
    if (live != NULL) {
        live->network = network;
    }
    return live;
}

void live_output_destroy(struct live_output **self)
{
    free(*self);
    *self = NULL;
}

static bool add(void *context, const struct lanes_output *output)
{
    struct live_output *live = context;
    if (live->count == LIVE_OUTPUT_PIECES || live->size + output->size > sizeof live->bytes) {
        live->is_full = true;
        return false;
    }
    memcpy(live->bytes + live->size, output->bytes, output->size);
    Bourse__V1__OutputPiece *piece = &live->pieces[live->count];
    bourse__v1__output_piece__init(piece);
    piece->lease = output->work.lease;
    piece->index = output->work.index;
    piece->attempt = output->work.attempt;
    piece->stream = output->is_error ? OUTPUT_STREAM_ERROR : OUTPUT_STREAM_OUT;
    piece->offset = output->offset;
    piece->bytes = (ProtobufCBinaryData){.len = output->size, .data = live->bytes + live->size};
    live->pointers[live->count++] = piece;
    live->size += output->size;
    return true;
}

static void gather(struct live_output *live, struct lanes *lanes, const uint64_t *leases,
                   size_t count)
{
    live->count = live->size = 0;
    live->is_full = false;
    live->turn++;
    /* Each round takes one piece of each stream, so that none waits for another. */
    bool more = true;
    for (size_t round = 0; more && round < ROUNDS; round++) {
        const size_t before = live->count;
        for (size_t i = 0; i < count; i++) {
            lanes_visit_output(lanes, leases[(live->turn + i) % count], add, live);
        }
        more = live->count > before;
    }
}

/* Pieces that cannot be sent are left out, and followers see the gap. */
static void post(struct live_output *live, struct agent_session *session, int64_t now_ns)
{
    if (agent_session_post_output(session, now_ns, live->pointers, live->count) == AGENT_OK &&
        live->network != NULL) {
        network_note(live->network, live->size);
    }
}

void live_output_flush(struct live_output *live, struct agent_session *session, struct lanes *lanes,
                       int64_t now_ns)
{
    size_t count = 0;
    const uint64_t *leases = agent_session_followed(session, &count);
    bool more = now_ns >= agent_session_output_from_ns(session);
    for (size_t i = 0; more && i < LIVE_OUTPUT_FLUSHES; i++) {
        gather(live, lanes, leases, count);
        if (live->count > 0) {
            post(live, session, now_ns);
        }
        more = live->is_full;
    }
}

void live_output_tick(struct live_output *live, struct agent_session *session, struct lanes *lanes,
                      int64_t now_ns)
{
    if (agent_session_output_waits(session) || now_ns < agent_session_output_from_ns(session) ||
        now_ns < live->look_ns) {
        return;
    }
    live->look_ns = now_ns + LIVE_OUTPUT_LOOK_NS;
    size_t count = 0;
    const uint64_t *leases = agent_session_followed(session, &count);
    lanes_forget_output(lanes, leases, count);
    gather(live, lanes, leases, count);
    /* The broker keeps a message without pieces until somebody follows one of the leases. */
    const bool is_asking = count == 0 && agent_session_counts(session).leases > 0;
    if (live->count > 0 || is_asking || (count > 0 && now_ns >= live->ask_ns)) {
        post(live, session, now_ns);
        live->ask_ns = now_ns + LIVE_OUTPUT_ASK_NS;
    }
}

bool live_output_holds(struct lanes *lanes, const struct agent_session *session,
                       struct outcome *outcome, int64_t now_ns)
{
    const bool is_connected = agent_session_counts(session).ready;
    if ((is_connected && outcome->held_ns == 0) || !lanes_has_ends(lanes, &outcome->work)) {
        return false;
    }
    outcome->held_ns = outcome->held_ns == 0 ? now_ns : outcome->held_ns;
    if (!is_connected) {
        const int64_t most_ns = outcome->held_ns + LIVE_OUTPUT_AWAY_NS;
        const int64_t until_ns = now_ns + LIVE_OUTPUT_KEPT_NS;
        outcome->held_until_ns = until_ns < most_ns ? until_ns : most_ns;
    }
    return now_ns < outcome->held_until_ns;
}

int64_t live_output_due_ns(const struct live_output *live, const struct agent_session *session)
{
    if (agent_session_output_waits(session) || agent_session_counts(session).leases == 0) {
        return INT64_MAX;
    }
    const int64_t from_ns = agent_session_output_from_ns(session);
    return from_ns > live->look_ns ? from_ns : live->look_ns;
}
