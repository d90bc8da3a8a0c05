/* The session is the agent's half of the market dialogue, on top of protocol/dialogue.h. The
 * session knows the offers, the leases, the work in the lanes, and the results that the broker has
 * not accepted.
 *
 * Time, random bits and messages come in as arguments. Actions for the shell come back as a queue,
 * messages to send as bytes. The idea to hold while reading: *the broker's silence ends nothing*.
 * Work goes on while the broker is away. A lease ends by its term on the agent's own clock, by the
 * broker's word, or not at all. A result is kept until the broker has accepted it. After every
 * Welcome both sides compare: the agent states all that it holds, and the broker answers with the
 * differences.
 *
 * work: QUEUED -> RUNNING -> LEFT (lane free, outputs being stored) -> READY -> SENT -> accepted,
 * gone
 *                                        lost by the broker: SENT -> LEFT, to be stored again
 *                                        withdrawn before it ran: QUEUED -> READY
 * lease: ACTIVE -> OVER (no more starts) -> gone when its last result is accepted
 *
 * The broker cancels the asks when the agent goes away, so each Welcome places them again under
 * fresh ids. An ask that may still stand under an old id is cancelled by name, so that no slot is
 * offered twice. The session reads no clock, file or socket. */
#ifndef BOURSE_PROVIDER_SESSION_AGENT_SESSION_H
#define BOURSE_PROVIDER_SESSION_AGENT_SESSION_H

#include "base/hours.h"
#include "base/id.h"
#include "base/requirement.h"
#include "protocol/codec.h"
#include "protocol/identity.h"
#include "protocol/limits.h"
#include "protocol/message.h"
#include "protocol/reject.h"
#include "protocol/route/contacts.h"

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
    /* A lease remembers so many accepted attempts, to recognise late duplicates. */
    AGENT_REMEMBERED = 256,
    /* The files of one result are stored again at most so often after they were lost. */
    AGENT_STORE_TRIES = 3,
    AGENT_ASKS_MAX = LIMIT_DEVICES,
    AGENT_TERMINALS_MAX = 64, /* programs with a terminal, at a time */
};

struct agent_session;

struct agent_session_config {
    const struct identity *identity; /* borrowed, must outlive the session */
    const char *program;             /* "bourse-provider 0.1.0", borrowed */
    struct id128 cluster;            /* the market expected; zero: any */
    /* The brokers of the market, which are copied; none: the shell has one address itself. */
    const struct contact *addresses;
    size_t address_count;
    struct hash32 dice; /* 32 random bytes from which request ids are drawn */
    /* The shell keeps the files of a result until AGENT_SETTLED and can store them again. */
    bool can_store_again;
    /* The shell computes the answers to challenges (AGENT_CHALLENGE). */
    bool answers_challenges;
    /* Most results under one signature, 1 to AGENT_BATCH_MAX; 0 means AGENT_BATCH_MAX. Only tests
     * and bench/endtoend set it: no agent's settings can. */
    uint32_t results_per_signature;
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
    AGENT_TO_MOST = 32, /* accounts that one ask names; the market's own limit */
    AGENT_TO_SIZE = 65, /* a name of up to 63 bytes, or a key in hex */
};
struct agent_conditions {
    uint32_t to_count; /* 0: anybody */
    char to[AGENT_TO_MOST][AGENT_TO_SIZE];
    struct hours hours;
    /* Slot-time a day, on the clock of `hours`; 0: any. */
    int64_t daily_ms;
};

struct agent_ask {
    struct id128 device;
    uint32_t slots;
    int64_t price_micro; /* lowest price per slot-hour */
    int64_t max_term_ms; /* 0: no bound */
    struct agent_conditions conditions;
    /* True: another bid may take the leases of this ask. A holder is told `notice_ms` before the
     * lease ends. Nobody may take a lease before `minimum_run_ms`. */
    bool is_interruptible;
    int64_t notice_ms, minimum_run_ms;
};

enum agent_status {
    AGENT_OK,
    AGENT_UNKNOWN, /* no such lease or work, or the wrong state for the call */
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
    /* `grant`: fetch the manifest and make ready. */
    AGENT_LEASE_BEGIN,
    /* `work.lease`: nothing of the lease runs now or later. */
    AGENT_LEASE_END,
    /* `work` is next in its lane: fetch its inputs meanwhile. */
    AGENT_PREPARE,
    /* `work` may run: its lane is free. */
    AGENT_START,
    /* `work` runs: end it soon, then call agent_session_finished as always. */
    AGENT_CANCEL,
    /* `work` runs, and its lease has been taken: tell its program to end. */
    AGENT_NOTICE,
    /* `work` is done, and the broker lost a file of its result. Store the files again, then call
     * agent_session_stored. */
    AGENT_STORE,
    /* `work`: nobody asks any more for the files of its result. */
    AGENT_SETTLED,
    /* Make a new connection after `parting.wait_ns`, to agent_session_address, then call
     * agent_session_connected. */
    AGENT_RECONNECT,
    /* The broker said Welcome. */
    AGENT_READY,
    /* `text` is worth a line in the log. */
    AGENT_NOTE,
    AGENT_CHALLENGE, /* compute the answer to `challenge`, then call agent_session_challenged */
    AGENT_TERMINAL,  /* the answer to a message of agent_session_terminal: `terminal` */
};

/* The answer to a message of a terminal. */
struct agent_terminal_answer {
    struct id128 id;
    enum message_type type;
    ProtobufCMessage *body; /* NULL: refused, for the reason `reject` */
    enum reject_code reject;
};

/* The broker challenges the speed of a device (base/challenge_product.h). The numbers come from a
 * peer, and may be out of their bounds. */
struct agent_challenge {
    struct id128 device;
    struct hash32 seed;
    uint32_t side, rounds;
    uint32_t rows, steps; /* of a chain; 0: products (base/challenge_product.h) */
};

/* A parting says how the connection ended. */
struct agent_parting {
    int64_t wait_ns;
    bool is_of_several; /* the next connection may go to another broker */
    char text[240];     /* which address was tried, what came back, and which is next */
};

struct agent_action {
    enum agent_action_type type;
    union {
        struct agent_grant grant;
        struct agent_work work;
        struct agent_parting parting;
        char text[256];
        struct agent_terminal_answer terminal;
        struct agent_challenge challenge;
    };
};

/* ---------------------------------------------------------------- life */

struct agent_session *agent_session_create(const struct agent_session_config *config);
void agent_session_destroy(struct agent_session **self);

/* Replaces all offers: the lists are complete, and they are copied. The session advertises and asks
 * at once when connected, and again after every Welcome. Returns AGENT_BAD when a count is above
 * its cap. */
enum agent_status agent_session_offer(struct agent_session *session, int64_t now_ns,
                                      const struct agent_device *devices, size_t device_count,
                                      const struct agent_ask *asks, size_t ask_count);
/* Pauses or resumes the market side. Pausing cancels the asks that stand, also those placed by
 * hand, and takes the devices off the market. Leases go on. */
void agent_session_pause(struct agent_session *session, int64_t now_ns, bool paused);
/* Carries out the owner's pause, which goes further: asks are cancelled and nothing is started any
 * more. Queued work, and work still dispatched, is answered as cancelled, so that the broker gives
 * it to others. Running work ends by itself or, with `cancel_running`, is cancelled. Leases stay
 * until the broker ends them. With `resting` false the pause ends. The asks are placed again, also
 * those that were cancelled by hand. */
void agent_session_rest(struct agent_session *session, int64_t now_ns, bool resting,
                        bool cancel_running);
/* Gives running work back while the session rests. Programs that save their state are first told to
 * do so (AGENT_NOTICE), and all other work is cancelled. The caller waits for these programs, and
 * then cancels the remaining work with agent_session_rest. */
void agent_session_hand_back(struct agent_session *session, int64_t now_ns);
enum agent_withhold {
    AGENT_WITHHOLD,        /* running work ends by itself */
    AGENT_WITHHOLD_SAVE,   /* running work is given back as by agent_session_hand_back */
    AGENT_WITHHOLD_CANCEL, /* running work is cancelled */
    AGENT_WITHHOLD_NOT,    /* the device is offered again */
};
/* Does for one device what agent_session_rest does for all devices. `index` is the device's place
 * in agent_session_device. The session cancels the device's asks, and starts no more work of its
 * leases; asks for other devices stay as they are. The device stays withheld when the devices are
 * offered anew, and on every new connection. */
void agent_session_withhold(struct agent_session *session, int64_t now_ns, size_t index,
                            enum agent_withhold how);
/* The rules of the agent that hold a device. */
enum agent_hold {
    AGENT_HOLD_USE,   /* the device is in use, or fell off the bus (gpu_rule.h) */
    AGENT_HOLD_FAULT, /* the device fails again and again (fault_rule.h) */
    AGENT_HOLDS
};
/* Does the same for a rule of the agent, apart from the owner's wish: the device is offered once
 * nobody withholds it. */
void agent_session_hold(struct agent_session *session, int64_t now_ns, size_t index,
                        enum agent_hold rule, enum agent_withhold how);
/* Returns true when no ask for the devices stands or can still be placed. This comes true while the
 * session is paused, rests or drains, after the broker has answered every cancel. */
bool agent_session_withdrawn(const struct agent_session *session);
/* Returns true when the market has refused the devices on this connection because the operator
 * froze the account. The market drops every ask then. The session offers the devices again and
 * again, until the market takes them. */
bool agent_session_frozen(const struct agent_session *session);
/* Returns what the market said of the freeze, with the operator's reason if there is one. Without a
 * freeze it is "". */
const char *agent_session_frozen_text(const struct agent_session *session);

/* Tells the session that a (new) connection stands. `dice` is 64 random bits for the waits. */
void agent_session_connected(struct agent_session *session, int64_t now_ns, uint64_t dice);
/* Returns the broker's addresses to connect to now, or NULL when the session knows none. */
const struct contact *agent_session_address(const struct agent_session *session);
/* Notes that no connection to that address can be made at all. */
void agent_session_unreachable(struct agent_session *session, int64_t now_ns);
void agent_session_incoming(struct agent_session *session, int64_t now_ns, const uint8_t *message,
                            size_t length);
/* Returns the next message to send, borrowed until the next call. Returns false when there is
 * none. */
bool agent_session_outgoing(struct agent_session *session, const uint8_t **ret_message,
                            size_t *ret_length);
/* Takes the last message back, because the connection could not take it. The message comes
 * again. */
void agent_session_unsent(struct agent_session *session);
/* Returns true when an allocation failed; then the shell stops. */
bool agent_session_out_of_memory(const struct agent_session *session);
/* Does the work that is due. Call it at agent_session_next_deadline_ns or later. */
void agent_session_tick(struct agent_session *session, int64_t now_ns);
int64_t agent_session_next_deadline_ns(const struct agent_session *session);
/* Returns the next action, oldest first. Returns false when there is none. The caller drops the
 * action when it is done. */
bool agent_session_action(struct agent_session *session, struct agent_action *ret_action);
/* Frees what the action owns. */
void agent_session_drop_action(struct agent_action *action);

/* ---------------------------------------------------------------- work */

/* Allows up to `depth` works of one lane of `lease` to run at a time, instead of one. The lease's
 * executor takes several at once. A depth that is not above the former one changes nothing. */
enum agent_status agent_session_pipeline(struct agent_session *session, uint64_t lease,
                                         uint32_t depth);

/* Reports that the program ended and its lane is free. The outputs are still being stored, and the
 * next work may start. */
enum agent_status agent_session_left(struct agent_session *session, int64_t now_ns,
                                     const struct agent_work *work);

/* Returns what the broker sent with a work: files of subtasks that it waited for, a check's seed, a
 * checkpoint. Returns NULL when there is nothing, or when the work is not known. The result is
 * borrowed until the next call that takes the time. */
const Bourse__V1__Work *agent_session_inputs(const struct agent_session *session,
                                             const struct agent_work *work);

/* Reports that the work is done. `facts` holds outcome, started_ms, busy_ns, exit code, signal,
 * outputs, detail and usage. The session adds account, place and work, and encodes the result once.
 * The session keeps these bytes until the broker accepts them. Outcome CANCELLED becomes TERM_OVER
 * or PREEMPTED when the session cancelled the work for that reason. A program that fails after it
 * was told that its lease is taken becomes PREEMPTED, too. */
enum agent_status agent_session_finished(struct agent_session *session, int64_t now_ns,
                                         const struct agent_work *work,
                                         const Bourse__V1__Result *facts);

/* Ends an AGENT_STORE; the result is sent again as it was. With `is_stored` false the result goes
 * without files, as one that nobody can help and that is not paid. `detail` says why, for people.
 * Returns AGENT_UNKNOWN when the lease is gone, and nobody asks for the result any more. */
enum agent_status agent_session_stored(struct agent_session *session, int64_t now_ns,
                                       const struct agent_work *work, bool is_stored,
                                       const char *detail);

/* ---------------------------------------------------------------- live output */

/* The agent sends the broker what subtasks print, while somebody follows their job
 * (docs/protocol.md, section 7). One message is under way at a time, and its answer names the
 * leases that are followed. A message without pieces asks for that answer alone. */

/* Returns the time from which a message may go. INT64_MAX: the session is not ready, or this broker
 * passes no output on. */
int64_t agent_session_output_from_ns(const struct agent_session *session);
/* Returns true while the last message has no answer. */
bool agent_session_output_waits(const struct agent_session *session);
/* Sends the pieces, which are borrowed during the call. A message without an answer is overtaken:
 * the broker answers both, and only the last answer counts. Returns BAD when they do not fit a
 * message. */
enum agent_status agent_session_post_output(struct agent_session *session, int64_t now_ns,
                                            Bourse__V1__OutputPiece **pieces, size_t count);
/* Returns the leases that the last answer named, and their number. The array is borrowed until the
 * next call that brings messages in. */
const uint64_t *agent_session_followed(const struct agent_session *session, size_t *ret_count);

/* Returns true when the next figures of devices may go: the session is ready, the last ones were
 * answered, and this broker takes them. */
bool agent_session_may_post_figures(const struct agent_session *session);
/* Tells the broker what the devices do at this moment; no figures: nothing is known any more. The
 * figures are borrowed during the call. Returns AGENT_UNKNOWN when they cannot go now. */
enum agent_status agent_session_post_figures(struct agent_session *session, int64_t now_ns,
                                             Bourse__V1__DeviceFigures **figures, size_t count);

/* Sends a TerminalSend or TerminalReceive, whose answer comes as AGENT_TERMINAL. A connection that
 * is lost changes nothing: the message goes again. Returns AGENT_UNKNOWN when it cannot go now. */
enum agent_status agent_session_terminal(struct agent_session *session, int64_t now_ns,
                                         enum message_type type, const ProtobufCMessage *body,
                                         struct id128 *ret_id);

/* Ends an AGENT_CHALLENGE with its digests. A length of 0 says that the device cannot compute it
 * now. Returns AGENT_UNKNOWN when the broker is not there. The challenge then counts for nothing.
 */
enum agent_status agent_session_challenged(struct agent_session *session, int64_t now_ns,
                                           const struct agent_challenge *challenge,
                                           const void *digests, size_t length);

/* Starts the drain: cancels the asks and answers queued work as cancelled. With `cancel_running`
 * the session asks to end running work. Without it running work finishes. But programs that save
 * their state are told to do so (AGENT_NOTICE). New dispatches are answered as cancelled. */
void agent_session_drain(struct agent_session *session, int64_t now_ns, bool cancel_running);
/* Returns true while the agent gives its work back, because it drains or rests. */
bool agent_session_gives_back(const struct agent_session *session);
/* Returns true when the session drains, nothing runs and every result is accepted. */
bool agent_session_drained(const struct agent_session *session);
/* Sends the last message; nothing is sent after it. */
void agent_session_goodbye(struct agent_session *session, int64_t now_ns, const char *reason);

/* ---------------------------------------------------------------- the current state */

struct agent_counts {
    bool ready;         /* the broker is there */
    bool out_of_memory; /* an allocation failed: the shell stops */
    uint32_t leases;    /* leases held */
    /* Works. left: the program has ended, and its outputs are not stored yet; owed: results that
     * are not accepted yet. */
    uint32_t queued, running, left, owed;
    uint32_t asks_standing;
    uint64_t accepted; /* results, ever */
    uint64_t refused;  /* results that the broker refused */
    /* Messages about unknown leases or work, and those over a cap. */
    uint64_t ignored;
    uint64_t duplicates; /* work dispatched again while held or done */
    uint64_t welcomes;
};
struct agent_counts agent_session_counts(const struct agent_session *session);

enum { AGENT_REFUSAL_SIZE = 320 };
struct agent_ask_row {
    struct agent_ask terms;
    /* Instrument of the ask's device, borrowed until the next call that offers. */
    const char *instrument;
    const char *label; /* of the device, borrowed likewise */
    /* The broker has accepted the ask, or an ask placed by hand stands in its place. */
    bool is_standing;
    /* An ask placed by hand stands; slots, price and term are its own. */
    bool is_by_hand;
    /* The ask was cancelled by hand. The ask is placed again after the next connection or
     * resume. */
    bool is_taken_back;
    bool is_withheld; /* the owner or a rule withholds the device */
    bool is_held;     /* a rule withholds the device */
    /* "PRICE: price: 0.10 credits, limit 0.05: Choose ...", or "" when not refused; borrowed as
     * `instrument` is. */
    const char *refusal;
};
/* Reads the ask at `index`. Returns false when there are fewer asks. */
bool agent_session_ask(const struct agent_session *session, size_t index,
                       struct agent_ask_row *ret_row);

struct agent_device_row {
    struct id128 device;
    const char *label; /* borrowed until the next call that offers */
    bool is_withheld;  /* by the owner or by a rule */
    bool is_held;      /* by a rule (agent_session_hold) */
    bool is_standing;  /* an ask for the device stands */
    bool is_withdrawn; /* no ask for the device stands or may still come to stand */
    uint32_t running;  /* subtasks */
};
/* Reads the device at `index`. Returns false when there are fewer devices. */
bool agent_session_device(const struct agent_session *session, size_t index,
                          struct agent_device_row *ret_row);
/* These functions find a device by its label, and by its id. They return false when none has it. */
bool agent_session_find_label(const struct agent_session *session, const char *label,
                              size_t *ret_index, struct agent_device_row *ret_row);
bool agent_session_find_id(const struct agent_session *session, const struct id128 *id,
                           size_t *ret_index, struct agent_device_row *ret_row);
/* Returns true when there are devices, and each is withheld. */
bool agent_session_all_withheld(const struct agent_session *session);
/* Returns true when a rule withholds the device with the label; "": any device. */
bool agent_session_holds(const struct agent_session *session, const char *label);

struct agent_lease_row {
    struct agent_grant grant;
    uint32_t queued, running, left, owed; /* as in agent_counts */
    int64_t term_end_ns;
    bool is_over;
};
/* Copies the first `limit` leases, oldest first, and returns their number. */
size_t agent_session_leases(const struct agent_session *session, struct agent_lease_row *ret_rows,
                            size_t limit);
/* Returns the last Welcome, or NULL. */
const Bourse__V1__Welcome *agent_session_welcome(const struct agent_session *session);

#endif
