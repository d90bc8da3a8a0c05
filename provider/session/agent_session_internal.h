/* provider/session/agent_session_internal.h declares what the parts of the session share.
 * agent_session.c is the connection, offers.c the offers, work.c leases and lanes, results.c
 * unaccepted results, output.c live output, terminal.c terminals,
 * challenge.c challenges. No other file includes it. */
#ifndef BOURSE_PROVIDER_SESSION_AGENT_SESSION_INTERNAL_H
#define BOURSE_PROVIDER_SESSION_AGENT_SESSION_INTERNAL_H

#include "base/list.h"
#include "protocol/dialogue.h"
#include "provider/session/agent_session.h"

enum work_state { WORK_QUEUED, WORK_RUNNING, WORK_LEFT, WORK_READY, WORK_SENT, WORK_STATES };

struct lease;

struct work {
    struct list_link link;        /* in its lease's list, oldest first */
    struct list_link lane_link;   /* in its lane's queue, while QUEUED */
    struct list_link result_link; /* in session->ready or session->sent */
    struct work *same;            /* next in its bucket of lease->buckets */
    struct lease *lease;
    uint32_t index, attempt, lane;
    enum work_state state;
    bool urgent;     /* goes before other queued work of its lane */
    bool prepared;   /* AGENT_PREPARE was queued */
    bool cancelling; /* AGENT_CANCEL was queued */
    bool told;       /* the program was told to save its state, because the owner stays */
    uint32_t cancel_outcome;
    /* Files, seed and checkpoint that came with the dispatch; NULL: nothing. */
    Bourse__V1__Work *dispatch;
    bool alone;      /* the batch was refused, so the result is sent by itself */
    uint8_t *result; /* encoded, from READY on */
    size_t result_length;
    bool names_files;     /* true when the result names files */
    uint32_t store_tries; /* requests so far to store the files again */
    struct id128 batch;   /* id of the Results that carries it, when SENT */
};

struct remembered {
    uint32_t index, attempt; /* attempts count from 1: 0 is an empty place */
};

struct session_lane {
    struct list_link queue; /* works that wait to be started, oldest first */
    uint32_t running;
};

struct lease {
    struct list_link link; /* in session->leases */
    struct agent_grant grant;
    int64_t term_end_ns;
    /* The device calls itself simulated, and so every result says it. */
    bool simulated;
    /* The device is not ours: its work is answered as refused. */
    bool refused;
    bool over; /* no more starts */
    /* The broker ended the lease: the Statement does not list it any more. */
    bool released;
    /* Another bid has taken the lease: nothing is started any more. */
    bool noticed;
    /* The agent leaves: the programs were told, so that they save their state. */
    bool leaving;
    bool ended; /* AGENT_LEASE_END was queued */
    uint32_t over_outcome;
    struct list_link works;
    uint32_t work_count;
    uint32_t active; /* works that are RUNNING or LEFT */
    /* Hash table of the works by index and attempt; `bucket_count` is a power of two. */
    struct work **buckets;
    uint32_t bucket_count;
    /* There are grant.lanes of them. NULL: the lease is refused, and nothing is started. */
    struct session_lane *lanes;
    uint32_t depth; /* works of one lane that may run at a time */
    /* The place follows from the index: a later attempt takes an older one's place. */
    struct remembered done[AGENT_REMEMBERED];
};

struct offered_device {
    struct agent_device facts; /* attributes point to the copy below */
    struct attribute *attributes;
    /* Paused by the owner, or held by a rule of the agent: no ask for the device is placed, and
     * nothing is started. */
    bool is_paused, is_held[AGENT_HOLDS];
};

enum ask_state {
    ASK_ABSENT, /* still to be placed */
    ASK_SENT,
    ASK_STANDING,
    /* The ask stood on the former connection: the broker is asked whether it still does. */
    ASK_DOUBTED,
    /* Another order of this account stands in its place. */
    ASK_BY_HAND,
    /* The ask was cancelled by hand. The ask waits until the devices are advertised again. */
    ASK_TAKEN_BACK,
};

struct offered_ask {
    struct agent_ask terms;
    enum ask_state state;
    /* Order of the last AskPlace, or of the ask by hand; zero: no order that may stand. */
    struct id128 order;
    struct id128 leaving; /* an order whose cancel has no answer yet; zero: none */
    struct id128 cancel;  /* id of the cancel request; zero: still to be sent */
    struct id128 check;   /* DOUBTED: id of the request that asks; zero as above */
    uint32_t hand_slots;  /* BY_HAND: terms of the ask by hand */
    int64_t hand_price_micro, hand_max_term_ms;
    bool hand_is_interruptible;
    int64_t hand_notice_ms, hand_minimum_run_ms;
    /* The broker's reason why the ask does not stand; "": the broker gave none. */
    char refusal[AGENT_REFUSAL_SIZE];
};

struct agent_session {
    struct agent_session_config config;
    struct dialogue *dialogue;
    uint64_t drawn; /* ids drawn so far */

    struct offered_device *devices;
    size_t device_count;
    struct offered_ask *asks;
    size_t ask_count;
    /* Id of the Advertise that is not answered yet; zero: none. */
    struct id128 advertise;
    /* Id of the last Statement, which is not sent again over another connection. */
    struct id128 statement;
    bool welcomed;   /* the right market said Welcome on this connection */
    bool is_stalled; /* the log knows that the broker's journal has no quorum */
    /* Offers and Statement wait until the missed messages have come. */
    bool begin_due;
    bool advertised; /* accepted on this connection */
    /* The devices were refused on this connection because the account is frozen. */
    bool frozen;
    char frozen_text[AGENT_REFUSAL_SIZE]; /* what the market said then */
    int64_t offer_again_ns;               /* next offer after a refusal; INT64_MAX: no need */
    int64_t state_again_ns;               /* next Statement after a refusal, likewise */
    uint32_t offer_refusals;
    bool paused, resting, draining, said_goodbye;

    struct list_link leases;
    struct list_link ready; /* works whose result waits for a batch */
    struct list_link sent;  /* works whose batch waits for an answer */
    size_t batches;
    int64_t ready_since_ns; /* time at which the first of `ready` came; INT64_MAX: none */
    /* Results were refused for a passing reason: the next try is not before this time. */
    int64_t retry_ns;
    uint32_t retries;
    uint32_t work_total;
    uint32_t work_in[WORK_STATES];

    /* Id of the OutputPost without an answer; zero: none. */
    struct id128 output;
    bool output_refused;     /* this broker does not pass output on */
    int64_t output_again_ns; /* no OutputPost before, after a refusal */
    uint64_t *followed;      /* leases that the last answer names */
    size_t followed_count;

    struct id128 figures; /* id of the FiguresPost without an answer; zero: none */
    bool figures_refused; /* this broker takes no figures */

    /* Id of the ChallengeReady without an answer; zero: none. */
    struct id128 challenge;
    bool is_challenged;         /* the shell computes an answer */
    bool challenge_refused;     /* this broker challenges nobody */
    int64_t challenge_again_ns; /* next ChallengeReady; INT64_MAX: no need */

    struct agent_action *actions; /* a ring */
    size_t action_first, action_count, action_capacity;
    struct agent_counts counts;
};

/* agent_session.c owns the connection and the queue of actions. */

bool session_ready(const struct agent_session *session);
struct id128 session_draw_id(struct agent_session *session);
/* Sends a request under a fresh id, and fills the id in. Returns AGENT_BAD for a body above the
 * limit of its type, AGENT_OUT_OF_MEMORY, which is counted, and AGENT_UNKNOWN when nothing can be
 * sent now. Then *ret_id stays as it is. */
enum agent_status session_ask(struct agent_session *session, int64_t now_ns, enum message_type type,
                              const ProtobufCMessage *body, struct id128 *ret_id);
void session_act(struct agent_session *session, const struct agent_action *action);
__attribute__((format(printf, 2, 3))) void session_note(struct agent_session *session,
                                                        const char *format, ...);

/* offers.c keeps the asks in the book. */

/* Places the asks that do not stand yet. */
void offers_place(struct agent_session *session, int64_t now_ns);
/* Resumes the offers after a Welcome. An ask of the former connection keeps its place in the book
 * if it still stands. All other asks are placed anew. */
void offers_resume(struct agent_session *session, int64_t now_ns);
/* Cancels the asks that stand and advertises anew: all devices, or none while the agent is paused,
 * rests or drains. */
void offers_renew(struct agent_session *session, int64_t now_ns);
void offers_noted(struct agent_session *session, int64_t now_ns, const Bourse__V1__AskEvent *event);
bool offers_ask_stands(const struct offered_ask *ask);
/* Sends the Statement of leases and work. */
void offers_state(struct agent_session *session, int64_t now_ns);
/* Forgets requests of a former connection, which are not sent again. */
void offers_forget(struct agent_session *session);
void offers_drop(struct agent_session *session);
void offers_accepted(struct agent_session *session, int64_t now_ns, enum message_type type,
                     const struct id128 *id);
void offers_rejected(struct agent_session *session, int64_t now_ns,
                     const struct dialogue_event *event);

/* withheld.c takes single devices off the market. */

/* Returns true when the owner withholds the device. A device that is not offered is not. */
bool withheld_device(const struct agent_session *session, const struct id128 *device);
/* Returns true when a rule of the agent withholds the device. */
bool withheld_is_held(const struct agent_session *session, const struct id128 *device);
/* Sets who withholds the device, as for the device of the same id that is offered now. */
void withheld_copy(const struct agent_session *session, struct offered_device *device);
/* Gives back what waits in the lease, and what runs as `how` says. */
void withheld_give_back(struct agent_session *session, int64_t now_ns, struct lease *lease,
                        enum agent_withhold how);

/* output.c sends what subtasks print. */

/* Forgets the message under way and its former answer, for a new connection. */
void output_forget(struct agent_session *session);
void output_answered(struct agent_session *session, const struct dialogue_event *event);
void output_rejected(struct agent_session *session, int64_t now_ns, enum reject_code code);

/* figures.c tells what devices do. */

/* Forgets the message under way, for a new connection. */
void figures_forget(struct agent_session *session);
void figures_answered(struct agent_session *session);
void figures_rejected(struct agent_session *session, enum reject_code code);

/* terminal.c carries the messages of terminals. */

bool terminal_is_of(enum message_type type);
/* These functions queue the action; the first takes the body out of the event. */
void terminal_answered(struct agent_session *session, struct dialogue_event *event);
void terminal_rejected(struct agent_session *session, const struct dialogue_event *event);

/* challenge.c lets the broker challenge the speed of devices. */

/* Forgets the message under way, for a new connection. */
void challenge_forget(struct agent_session *session);
/* Says that the agent is ready, unless it has said so. */
void challenge_be_ready(struct agent_session *session, int64_t now_ns);
void challenge_answered(struct agent_session *session, int64_t now_ns,
                        const struct dialogue_event *event);
void challenge_rejected(struct agent_session *session, int64_t now_ns, const struct id128 *id,
                        enum reject_code code);
/* Lowers what the device claims to what it showed, and offers it anew. Returns false when it claims
 * no more. */
bool challenge_lowers(struct agent_session *session, int64_t now_ns, const struct id128 *id,
                      int64_t mflops);

/* work.c keeps leases, lanes and works. */

void work_granted(struct agent_session *session, int64_t now_ns,
                  const Bourse__V1__LeaseGrant *grant);
void work_renewed(struct agent_session *session, int64_t now_ns,
                  const Bourse__V1__LeaseRenew *renew);
void work_noticed(struct agent_session *session, int64_t now_ns,
                  const Bourse__V1__LeaseNotice *notice);
void work_dispatched(struct agent_session *session, int64_t now_ns,
                     const Bourse__V1__Dispatch *dispatch);
void work_withdrawn(struct agent_session *session, int64_t now_ns,
                    const Bourse__V1__Withdraw *withdraw);
void work_lease_ended(struct agent_session *session, int64_t now_ns,
                      const Bourse__V1__LeaseEnd *end);
/* Ends the lease here: queued work is answered with `outcome`, and running work is cancelled for it
 * if `cancel_running` is set. */
void work_lease_over(struct agent_session *session, int64_t now_ns, struct lease *lease,
                     uint32_t outcome, bool cancel_running);
/* Tells the lease's programs that the agent leaves, if they save their state. */
void work_leave(struct agent_session *session, struct lease *lease);
/* Answers queued work as cancelled, and cancels running work when asked to. The lease stays. */
void work_give_back(struct agent_session *session, int64_t now_ns, struct lease *lease,
                    bool cancel_running);
/* Ends leases whose term is over, and frees leases with nothing left. */
void work_tick(struct agent_session *session, int64_t now_ns);
int64_t work_next_deadline_ns(const struct agent_session *session);
/* Asks the shell to do something about a work. */
void work_act(struct agent_session *session, enum agent_action_type type, const struct work *work);
/* Changes the state of a work; no other function does. */
void work_move(struct agent_session *session, struct work *work, enum work_state to);
/* Forgets a work whose result is accepted, and remembers its attempt against late duplicates. */
void work_done(struct agent_session *session, struct work *work);
void work_lease_destroy(struct agent_session *session, struct lease *lease);

/* results.c sends results in batches. */

/* Encodes and queues the result; the work becomes READY. */
enum agent_status results_owe(struct agent_session *session, int64_t now_ns, struct work *work,
                              const Bourse__V1__Result *facts);
/* Queues a result for work that never ran. */
void results_owe_unstarted(struct agent_session *session, int64_t now_ns, struct work *work,
                           uint32_t outcome, const char *detail);
void results_flush(struct agent_session *session, int64_t now_ns);
/* Returns true when a request refused with this code may be accepted in a while. */
bool results_may_pass_later(enum reject_code code);
void results_accepted(struct agent_session *session, const struct id128 *batch);
void results_rejected(struct agent_session *session, int64_t now_ns,
                      const struct dialogue_event *event);
/* Sends the result of a LEFT work as it was, or without the files that it names. */
enum agent_status results_stored(struct agent_session *session, int64_t now_ns, struct work *work,
                                 bool is_stored, const char *detail);
int64_t results_next_deadline_ns(const struct agent_session *session);

#endif
