/* provider/session/session_internal.h - what session.c (connection), session_offer.c,
 * session_work.c (leases and lanes) and session_results.c (what is owed) share. Not for others. */
#ifndef BOURSE_PROVIDER_SESSION_SESSION_INTERNAL_H
#define BOURSE_PROVIDER_SESSION_SESSION_INTERNAL_H

#include "base/list.h"
#include "protocol/dialogue.h"
#include "provider/session/session.h"

enum work_state { WORK_QUEUED, WORK_RUNNING, WORK_LEFT, WORK_READY, WORK_SENT, WORK_STATES };

struct lease;

struct work {
    struct list_link link;        /* in its lease, oldest first */
    struct list_link lane_link;   /* in its lane's queue, while QUEUED */
    struct list_link result_link; /* in session->ready or session->sent */
    struct work *same;            /* next in its bucket of lease->buckets */
    struct lease *lease;
    uint32_t index, attempt, lane;
    enum work_state state;
    bool urgent;     /* goes before what is queued in its lane */
    bool prepared;   /* AGENT_PREPARE went out */
    bool cancelling; /* AGENT_CANCEL went out */
    uint32_t cancel_outcome;
    Bourse__V1__Work *given; /* what it was sent with: files, a seed, a checkpoint; NULL: nothing */
    bool alone;              /* its batch was refused: try it by itself */
    uint8_t *result;         /* encoded, from READY on */
    size_t result_length;
    bool names_files;     /* the result does */
    uint32_t store_tries; /* so often it was asked to be stored again */
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
    bool simulated; /* the device is, by its own words: every result says so */
    bool refused;   /* a device that is not ours: its work is answered as refused */
    bool over;      /* no more starts */
    bool released;  /* the broker ended it: it is not stated any more */
    bool noticed;   /* another bid has taken it: nothing is started any more */
    bool leaving;   /* we go: its programs were told, so that they save their state */
    bool ended;     /* AGENT_LEASE_END went out */
    uint32_t over_outcome;
    struct list_link works;
    uint32_t work_count;
    uint32_t active; /* of them: RUNNING or LEFT */
    struct work *
        *buckets; /* the works by index and attempt; `bucket_count` of them, a power of two */
    uint32_t bucket_count;
    struct session_lane *lanes; /* grant.lanes of them; NULL: refused, and nothing is started */
    uint32_t depth;             /* works of one lane that may run at a time */
    struct remembered done[AGENT_REMEMBERED]; /* by index: a later one takes an older one's place */
};

struct offered_device {
    struct agent_device facts; /* attributes point to the copy below */
    struct attribute *attributes;
};

enum ask_state {
    ASK_ABSENT, /* to be placed */
    ASK_SENT,
    ASK_STANDING,
    ASK_DOUBTED,    /* stood on the former connection: the broker is asked whether it still does */
    ASK_BY_HAND,    /* another order of this account stands in its place */
    ASK_TAKEN_BACK, /* cancelled by hand: not placed before the devices are advertised again */
};

struct offered_ask {
    struct agent_ask terms;
    enum ask_state state;
    struct id128 order; /* of the last AskPlace, or of the one by hand; zero: none that may stand */
    struct id128 leaving; /* an order whose cancel has no answer yet; zero: none */
    struct id128 cancel;  /* id of that request; zero: it has to be sent (again) */
    struct id128 check;   /* DOUBTED: likewise, of the one that asks */
    uint32_t hand_slots;  /* BY_HAND: what that one says */
    int64_t hand_price_micro, hand_max_term_ms;
    bool hand_is_interruptible;
    int64_t hand_notice_ms, hand_minimum_run_ms;
    char refusal
        [AGENT_REFUSAL_SIZE]; /* why it does not stand, since the broker said so; "": it did not */
};

struct agent_session {
    struct agent_session_config config;
    struct dialogue *dialogue;
    uint64_t drawn; /* ids so far */

    struct offered_device *devices;
    size_t device_count;
    struct offered_ask *asks;
    size_t ask_count;
    struct id128 advertise; /* id of the Advertise that is not answered yet; zero: none */
    struct id128 statement; /* of the last Statement; not sent again over another connection */
    bool welcomed;          /* by the right market, on this connection */
    bool begin_due;         /* offers and statement wait until what was missed has come */
    bool advertised;        /* accepted on this connection */
    bool frozen;            /* why the devices were refused on it: the account is */
    int64_t offer_again_ns; /* after a refusal; INT64_MAX: no need */
    int64_t state_again_ns; /* likewise, for the Statement */
    uint32_t offer_refusals;
    bool paused, resting, draining, said_goodbye;

    struct list_link leases;
    struct list_link ready; /* works whose result waits for a batch */
    struct list_link sent;  /* works whose batch waits for an answer */
    size_t batches;
    int64_t ready_since_ns; /* when the first of `ready` came; INT64_MAX: none */
    int64_t retry_ns;       /* results were refused for a passing reason: not before then */
    uint32_t retries;
    uint32_t work_total;
    uint32_t work_in[WORK_STATES];

    struct agent_action *actions; /* a ring */
    size_t action_first, action_count, action_capacity;
    struct agent_counts counts;
};

/* session.c */
bool session_ready(const struct agent_session *session);
struct id128 session_draw_id(struct agent_session *session);
void session_act(struct agent_session *session, const struct agent_action *action);
__attribute__((format(printf, 2, 3))) void session_note(struct agent_session *session,
                                                        const char *format, ...);

/* session_offer.c */
void offers_place(struct agent_session *session, int64_t now_ns); /* what does not stand yet */
void offers_cancel(struct agent_session *session, int64_t now_ns);
/* After a Welcome: what stood on the former connection keeps its place in the book if it still
 * stands, all else is offered anew. */
void offers_resume(struct agent_session *session, int64_t now_ns);
/* Cancels the asks that stand and says anew what is on offer: all of it, or nothing while the agent
 * is paused, rests or drains. */
void offers_renew(struct agent_session *session, int64_t now_ns);
void offers_noted(struct agent_session *session, int64_t now_ns, const Bourse__V1__AskEvent *event);
bool ask_stands(const struct offered_ask *ask);
void offers_state(struct agent_session *session,
                  int64_t now_ns); /* the statement of what is held */
/* Requests of a former connection are not sent again. */
void offers_forget(struct agent_session *session);
void offers_drop(struct agent_session *session);
void offers_accepted(struct agent_session *session, int64_t now_ns, enum message_type type,
                     const struct id128 *id);
void offers_rejected(struct agent_session *session, int64_t now_ns,
                     const struct dialogue_event *event);

/* session_work.c */
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
/* Ends the lease here: queued work is answered with `outcome`, running work is cancelled for it. */
void work_lease_over(struct agent_session *session, int64_t now_ns, struct lease *lease,
                     uint32_t outcome, bool cancel_running);
/* Its programs are told that we go, if they save their state when they are. */
void work_leave(struct agent_session *session, struct lease *lease);
/* Queued work is answered as cancelled, running work is cancelled when asked for; the lease
 * stays. */
void work_give_back(struct agent_session *session, int64_t now_ns, struct lease *lease,
                    bool cancel_running);
/* Terms that ended, and leases with nothing left. */
void work_tick(struct agent_session *session, int64_t now_ns);
int64_t work_next_deadline_ns(const struct agent_session *session);
/* Asks the shell to do something about a work. */
void work_act(struct agent_session *session, enum agent_action_type type, const struct work *work);
/* The only place where the state of a work changes. */
void work_move(struct agent_session *session, struct work *work, enum work_state to);
void work_destroy(struct agent_session *session, struct work *work);
/* Nothing more is owed for it: it is remembered, against late duplicates, and forgotten. */
void work_done(struct agent_session *session, struct work *work);
/* Sends AGENT_LEASE_END when nothing runs, and frees the lease when nothing is owed. */
void work_settle(struct agent_session *session, struct lease *lease);
void work_lease_destroy(struct agent_session *session, struct lease *lease);

/* session_results.c */
/* Encodes and queues the result; the work becomes READY. */
enum agent_status results_owe(struct agent_session *session, int64_t now_ns, struct work *work,
                              const Bourse__V1__Result *facts);
/* The same for work that never ran. */
void results_owe_unstarted(struct agent_session *session, int64_t now_ns, struct work *work,
                           uint32_t outcome, const char *detail);
void results_flush(struct agent_session *session, int64_t now_ns);
/* Whether what was refused with this code may be accepted in a while. */
bool results_may_pass_later(enum reject_code code);
void results_accepted(struct agent_session *session, const struct id128 *batch);
void results_rejected(struct agent_session *session, int64_t now_ns,
                      const struct dialogue_event *event);
/* The work is LEFT, and its result is sent as it was, or without the files that it names. */
enum agent_status results_stored(struct agent_session *session, int64_t now_ns, struct work *work,
                                 bool is_stored, const char *detail);
int64_t results_next_deadline_ns(const struct agent_session *session);

#endif
