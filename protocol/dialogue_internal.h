/* `struct dialogue` is one half of a session; dialogue.c and dialogue_incoming.c share it. */
#ifndef BOURSE_PROTOCOL_DIALOGUE_INTERNAL_H
#define BOURSE_PROTOCOL_DIALOGUE_INTERNAL_H

#include "protocol/dialogue.h"

#include "base/random.h"
#include "protocol/limits.h"
#include "protocol/requests.h"
#include "protocol/route/contacts.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum state {
    STATE_OFFLINE,  /* no connection, or a useless one */
    STATE_GREETING, /* Hello is going out; Welcome is awaited */
    STATE_READY,
    STATE_LEAVING, /* Goodbye is going out; nothing follows */
};

struct dialogue {
    struct dialogue_config config;
    enum state state;
    struct requests requests;

    struct random dice;
    uint64_t connections;     /* since the start */
    struct contacts contacts; /* which address is next, and when */
    struct id128 hello_id;
    uint64_t session;
    uint64_t sequence_out; /* last one used */
    uint64_t sequence_in;  /* last one received */
    uint64_t caught_up_at; /* until then missed messages arrive */
    /* The fields are the position on the former connection; 0: no session to resume. */
    uint64_t resume_session, resume_sequence;

    ProtobufCMessage *welcome; /* the latest, decoded */
    struct id128 cluster;      /* of the latest Welcome */
    struct dialogue_state state_told;
    bool reads_anywhere;
    uint64_t least_index; /* of the states of later answers */
    int64_t log_time_ms;  /* the broker's latest log time ... */
    int64_t log_heard_ns; /* ... received at this local moment */
    int64_t heartbeat_ns;
    /* The broker asks its clients to spread their return over this time. */
    int64_t spread_ns;
    int64_t connected_ns;
    int64_t heard_ns;
    int64_t beaten_ns;
    int64_t send_again_ns; /* when to resend after RATE; INT64_MAX: never */
    int64_t waits_ns;      /* when to resend what NO_QUORUM refused; INT64_MAX: never */

    bool hello_due;
    bool heartbeat_due;
    bool goodbye_due;
    char goodbye[LIMIT_TEXT_BYTES + 1];

    uint8_t *outgoing; /* the last message given out */
    size_t outgoing_length;
    size_t outgoing_capacity;
    bool give_again;
};

/* Notes a state that the broker told of. */
void dialogue_note_state(struct dialogue *dialogue, const struct dialogue_state *state);
/* Ends a connection that a new one may replace at once. `text` is for a person. */
void dialogue_lost(struct dialogue *dialogue, enum contact_end end, const char *text,
                   struct dialogue_event *ret_event);

#endif
