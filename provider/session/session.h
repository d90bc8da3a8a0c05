/* provider/session/session.h - the agent's half of the market: what it offers, the leases it holds,
 * the work in its lanes, and the results it owes, on top of protocol/dialogue.h.
 *
 * Time, dice and messages come in as arguments; what the shell should do comes back as a queue of
 * actions, what to send as bytes. The idea to hold while reading: *the broker's silence ends
 * nothing*. Work goes on while the broker is away; a lease ends by its term on the agent's own
 * clock, by the broker's word, or not at all, and a result is kept until the broker has accepted
 * it. After every Welcome both sides compare: the agent states all that it holds, the broker
 * answers with what differs.
 *
 *   work:  QUEUED -> RUNNING -> LEFT (lane free, outputs on their way) -> READY -> SENT -> accepted, gone
 *                                        lost by the broker: SENT -> LEFT, to be stored again
 *                                        withdrawn before it ran: QUEUED -> READY
 *   lease: ACTIVE -> OVER (no more starts) -> gone when its last result is accepted
 *
 * Asks are cancelled by the broker when the agent goes away, so each Welcome places them again
 * under fresh ids; what may still stand under an old id is cancelled by name, so that no slot is
 * offered twice. Pure. */
#ifndef BOURSE_PROVIDER_SESSION_SESSION_H
#define BOURSE_PROVIDER_SESSION_SESSION_H

#include "base/hours.h"
#include "base/id.h"
#include "base/requirement.h"
#include "protocol/codec.h"
#include "protocol/identity.h"
#include "protocol/limits.h"
#include "protocol/message.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    AGENT_LEASES_MAX = LIMIT_LEASES, /* held at once; a grant beyond is ignored and counted */
    AGENT_WORK_MAX = LIMIT_HELD,     /* over all leases, unaccepted results included */
    AGENT_BATCH_MAX = LIMIT_RESULTS, /* results under one signature */
    AGENT_BATCHES_IN_FLIGHT = 8,     /* Results messages without an answer */
    AGENT_BATCH_BYTES = LIMIT_MESSAGE_BYTES / 2, /* encoded results in one message */
    AGENT_RESULT_BYTES_MAX = LIMIT_RESULT_BYTES,
    AGENT_REMEMBERED = 256, /* accepted attempts a lease remembers, against late duplicates */
    AGENT_STORE_TRIES = 3,  /* what one result names is stored again so often, when it was lost */
    AGENT_ASKS_MAX = LIMIT_DEVICES,
};

struct agent_session;

struct agent_session_config {
    const struct identity *identity; /* borrowed, must outlive the session */
    const char *program;             /* "bourse-provider 0.1.0", borrowed */
    struct id128 cluster;            /* the market expected; zero: whichever answers */
    struct hash32 dice;              /* 32 random bytes: request ids are drawn from them */
    /* The shell holds what a result names until AGENT_SETTLED, and stores it again when asked to.
     */
    bool can_store_again;
};

struct agent_device {
    struct id128 device;
    char instrument[ATTRIBUTE_TEXT_SIZE];
    char label[ATTRIBUTE_TEXT_SIZE]; /* for people; "" for none */
    uint32_t slots;
    const struct attribute *attributes; /* borrowed during the call */
    size_t attribute_count;
};

enum {
    AGENT_TO_MOST = 32, /* accounts that one ask names, as many as the market takes */
    AGENT_TO_SIZE = 65, /* a name of up to 63 bytes, or a key in hex */
};
struct agent_conditions {
    uint32_t to_count; /* 0: anybody */
    char to[AGENT_TO_MOST][AGENT_TO_SIZE];
    struct hours hours;
    int64_t daily_ms; /* slot-time a day, on the clock of these hours; 0: any */
};

struct agent_ask {
    struct id128 device;
    uint32_t slots;
    int64_t price_micro; /* least, per slot-hour */
    int64_t max_term_ms; /* 0: no bound */
    struct agent_conditions conditions;
    /* Whether another bid may take its leases; then how long before its end a holder is told, and
     * how long nobody may. */
    bool is_interruptible;
    int64_t notice_ms, minimum_run_ms;
};

enum agent_status {
    AGENT_OK,
    AGENT_UNKNOWN, /* no such lease or work, or not in a state for it */
    AGENT_BAD,     /* the caller's values do not fit the wire */
    AGENT_OUT_OF_MEMORY,
};

/* ---------------------------------------------------------------- actions for the shell */

struct agent_grant {
    uint64_t lease;
    struct id128 job;
    struct id128 device;
    struct key32 owner;
    uint32_t slots;
    uint32_t lanes; /* slots / slots_per_subtask */
    uint32_t slots_per_subtask;
    int64_t price_micro;
    int64_t limit_ms;
    struct hash32 manifest;
    bool has_checkpoints; /* the job says that its programs save their state */
};

struct agent_work {
    uint64_t lease;
    uint32_t index, attempt, lane;
};

enum agent_action_type {
    AGENT_LEASE_BEGIN, /* `grant`: fetch the manifest, make ready */
    AGENT_LEASE_END,   /* `work.lease`: nothing of it runs any more, and nothing will */
    AGENT_PREPARE,     /* `work`: next in its lane; fetch its inputs meanwhile */
    AGENT_START,       /* `work`: its lane is free, run it */
    AGENT_CANCEL,      /* `work` runs: end it soon, then agent_session_finished as always */
    AGENT_NOTICE,      /* `work` runs, and its lease has been taken: tell its program to end */
    AGENT_STORE,       /* `work` is done, and the broker lost what its result names: store it again,
                        * then agent_session_stored */
    AGENT_SETTLED,     /* `work`: nobody asks any more for what its result names */
    AGENT_RECONNECT,   /* make a new connection after `wait_ns`, then agent_session_connected */
    AGENT_READY,       /* the broker said Welcome */
    AGENT_NOTE,        /* `text`: worth a line in the log */
};

struct agent_action {
    enum agent_action_type type;
    union {
        struct agent_grant grant;
        struct agent_work work;
        int64_t wait_ns;
        char text[256];
    };
};

/* ---------------------------------------------------------------- life */

struct agent_session *agent_session_create(const struct agent_session_config *config);
void agent_session_destroy(struct agent_session **self);

/* What to offer from now on: the full lists, copied. Advertised and asked at once when connected,
 * and again after every Welcome. BAD when a count is above its cap. */
enum agent_status agent_session_offer(struct agent_session *session, int64_t now_ns,
                                      const struct agent_device *devices, size_t device_count,
                                      const struct agent_ask *asks, size_t ask_count);
/* Pausing cancels the asks that stand, also those placed by hand, and takes the devices off the
 * market; leases go on. */
void agent_session_pause(struct agent_session *session, int64_t now_ns, bool paused);
/* The owner's pause goes further: asks are cancelled and nothing is started any more. What is
 * queued, and what is still dispatched, is answered as cancelled, so that the broker gives it to
 * others; what runs ends by itself or, with `cancel_running`, is cancelled. Leases stay until the
 * broker ends them. False ends it: the asks are placed again, also those that were cancelled by
 * hand. */
void agent_session_rest(struct agent_session *session, int64_t now_ns, bool resting,
                        bool cancel_running);
/* Of one that is paused, rests or drains: no ask for its devices stands, or may still come to
 * stand; the broker has answered every cancel. */
bool agent_session_withdrawn(const struct agent_session *session);
/* The market has refused the devices on this connection because the operator froze the account: it
 * drops every ask then. They are offered again and again, until it takes them. */
bool agent_session_frozen(const struct agent_session *session);

/* A (new) connection stands; `dice`: 64 random bits for the waits. */
void agent_session_connected(struct agent_session *session, int64_t now_ns, uint64_t dice);
void agent_session_incoming(struct agent_session *session, int64_t now_ns, const uint8_t *message,
                            size_t length);
/* The next message to send; borrowed until the next call. False: none. */
bool agent_session_outgoing(struct agent_session *session, const uint8_t **ret_message,
                            size_t *ret_length);
/* The connection could not take the last message: it comes again. */
void agent_session_unsent(struct agent_session *session);
/* An allocation failed: the shell stops. */
bool agent_session_out_of_memory(const struct agent_session *session);
/* Call at agent_session_next_deadline_ns or later. */
void agent_session_tick(struct agent_session *session, int64_t now_ns);
int64_t agent_session_next_deadline_ns(const struct agent_session *session);
/* The next thing to do, oldest first. False: none. */
bool agent_session_action(struct agent_session *session, struct agent_action *ret_action);

/* ---------------------------------------------------------------- work */

/* Up to `depth` works of one lane of `lease` may be started at a time, instead of one: its executor
 * takes several at once. A lesser depth than before changes nothing. */
enum agent_status agent_session_pipeline(struct agent_session *session, uint64_t lease,
                                         uint32_t depth);

/* The program ended and the lane is free again, its outputs still being stored: the next may
 * start. */
enum agent_status agent_session_left(struct agent_session *session, int64_t now_ns,
                                     const struct agent_work *work);

/* What a work was given: by the subtasks that its own waited for, or of a check the seed (only
 * these count); NULL when nothing, or when it is not known. Borrowed until the next call that takes
 * the time. */
const Bourse__V1__Work *agent_session_given(const struct agent_session *session,
                                            const struct agent_work *work);

/* The work is done: `facts` holds outcome, started_ms, busy_ns, exit code, signal, outputs, detail
 * and usage; the session fills in who, where and for what, encodes once, and owes the broker these
 * bytes until they are accepted. Outcome CANCELLED becomes TERM_OVER or PREEMPTED when the session
 * cancelled it for that; a program that fails after it was told that its lease is taken becomes
 * PREEMPTED, too. */
enum agent_status agent_session_finished(struct agent_session *session, int64_t now_ns,
                                         const struct agent_work *work,
                                         const Bourse__V1__Result *facts);

/* Ends an AGENT_STORE. The result is sent again as it was. Or, with `is_stored` false, it goes
 * without files, as one that nobody can help and that is not paid; `detail` says why to people.
 * UNKNOWN: the lease is gone, and nobody asks any more. */
enum agent_status agent_session_stored(struct agent_session *session, int64_t now_ns,
                                       const struct agent_work *work, bool is_stored,
                                       const char *detail);

/* Cancels the asks, answers queued work as cancelled and, with `cancel_running`, asks to end what
 * runs; without it running work finishes, but for programs that save their state, which are told to
 * (AGENT_NOTICE). New dispatches are answered as cancelled. */
void agent_session_drain(struct agent_session *session, int64_t now_ns, bool cancel_running);
/* Draining, nothing runs and no result is owed. */
bool agent_session_drained(const struct agent_session *session);
/* The last message; nothing is sent after it. */
void agent_session_goodbye(struct agent_session *session, int64_t now_ns, const char *reason);

/* ---------------------------------------------------------------- what stands */

struct agent_counts {
    bool ready;                     /* the broker is there */
    bool out_of_memory;             /* an allocation failed: the shell stops */
    uint32_t leases;                /* held */
    uint32_t queued, running, owed; /* work; owed: results not accepted yet */
    uint32_t asks_standing;
    uint64_t accepted;   /* results, ever */
    uint64_t refused;    /* results the broker would not have */
    uint64_t ignored;    /* messages about unknown leases or work, and those over a cap */
    uint64_t duplicates; /* work dispatched again while held or done */
    uint64_t welcomes;
};
struct agent_counts agent_session_counts(const struct agent_session *session);

enum { AGENT_REFUSAL_SIZE = 320 };
struct agent_ask_row {
    struct agent_ask terms;
    const char *instrument; /* of its device; borrowed until the next call that offers */
    bool is_standing;       /* the broker has accepted it, or the one by hand in its place */
    bool is_by_hand; /* it is not the agent's: slots, price and term are those of the one by hand */
    bool is_taken_back;  /* cancelled by hand: not placed before the next connection or resume */
    const char *refusal; /* "PRICE: price: 0.10 credits, limit 0.05: Choose ...", or "": not
                            refused; borrowed likewise */
};
/* False: there are not so many asks. */
bool agent_session_ask(const struct agent_session *session, size_t index,
                       struct agent_ask_row *ret_row);

struct agent_lease_row {
    struct agent_grant grant;
    uint32_t queued, running, owed;
    int64_t term_end_ns;
    bool is_over;
};
/* The first `limit` leases, oldest first; returns how many. */
size_t agent_session_leases(const struct agent_session *session, struct agent_lease_row *ret_rows,
                            size_t limit);
/* The last Welcome, or NULL. */
const Bourse__V1__Welcome *agent_session_welcome(const struct agent_session *session);

#endif
