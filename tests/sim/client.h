/* tests/sim/client.h - a consumer, or the operator: the production session, and a shell that does
 * what consumer/client/client.c does; its jobs and their ids are on its disk and outlive it.
 *
 * A client whose request was not answered sends it again, in this life or the next, under the same
 * id. */
#ifndef BOURSE_TESTS_SIM_CLIENT_H
#define BOURSE_TESTS_SIM_CLIENT_H

#include "consumer/client/session.h"
#include "exchange/view/disputes.h"
#include "protocol/identity.h"
#include "tests/sim/net.h"

enum { CLIENT_REQUESTS = 1024, CLIENT_READS = 32 };

enum request_fate { FATE_OPEN, FATE_ACCEPTED, FATE_REJECTED };

struct client_request { /* on its disk */
    enum message_type type;
    struct id128 id;
    uint64_t seed;        /* the body is drawn from it, so it is the same in every life */
    struct id128 about;   /* an order or a job that is to end or to change; the device of an ask */
    struct key32 account; /* minted to, frozen */
    struct exchange_judge judge; /* what it says of a result that is held */
    struct id128 token;          /* of an invitation, given or redeemed */
    bool is_early;               /* JOIN: asked before the invitation was in the log */
    int64_t expires_ms;
    bool is_by_value; /* the job, or the one whose terms are to change */
    enum request_fate fate;
    uint64_t index;
    enum reject_code reject;
    uint64_t refused_before; /* refusals that the client had heard when it heard this one's */
    bool is_pending;         /* in the present session */
    bool is_seen;            /* JOB: its row came after the end of faults */
};

struct client {
    struct process process;
    struct peer peer;
    struct identity *identity;
    uint32_t account;
    bool is_operator;
    bool is_newcomer;    /* without an account until it redeemed an invitation */
    bool is_owner;       /* of an agent, under one account with it */
    bool reads_anywhere; /* brokers that follow may answer its reads */
    uint32_t largest;    /* subtasks of a job */
    struct client_request requests[CLIENT_REQUESTS];
    size_t request_count;
    uint64_t started;
    uint64_t refusals; /* heard */
    /* lost in a crash */
    struct consumer_session *session;
    int64_t reconnect_ns, due_ns;
    uint64_t reads_unanswered;
    uint64_t accepted; /* the newest command that this session knows to be accepted */
    struct {           /* the newest reads, in a ring */
        struct id128 id;
        uint64_t acknowledged; /* the newest command that any client knew to be accepted */
    } reads[CLIENT_READS];
    size_t read_count;
    bool wants_new_session; /* now with an account behind it */
};

void client_start(struct client *client);
void client_crash(struct client *client);
bool client_is_ready(const struct client *client);

/* Asks for something new. */
void client_submits(struct client *client);
void client_cancels(struct client *client);
void client_replaces(struct client *client); /* the terms of a job's bids */
void client_asks(struct client *client);     /* a read, whichever */
/* The owner of an agent: an ask by hand, other terms for the ask that stands, its end. */
void client_offers(struct client *client, const struct id128 *device);
void client_reprices(struct client *client, const struct id128 *order);
void client_withdraws(struct client *client, const struct id128 *order);
/* Sends again what was accepted or refused already, or something else under its id. */
void client_repeats(struct client *client);
/* The operator. */
void client_mints(struct client *client, const struct key32 *account);
void client_freezes(struct client *client, const struct key32 *account, bool frozen);
void client_halts(struct client *client, bool halted);
#define BAND_MICRO INT64_C(100000000) /* of the genesis */
/* Says the truth about a result of its own that is held and disputed, where there is one. */
void client_judges(struct client *client);
/* Narrow bands; or such that keep nobody out. */
void client_sets_bands(struct client *client, bool wide);
void client_invites(struct client *client, const struct id128 *token, int64_t expires_ms);
/* A newcomer, who was given `token`. */
void client_joins(struct client *client, const struct id128 *token);

/* client_bodies.c: hands the request to its session. */
enum consumer_status client_sends(struct client *client, const struct client_request *request);

/* client_state.c: some client knows that this command was accepted. */
void client_knows(uint64_t index);
void client_notes_read(struct client *client, const struct id128 *id);
/* Fails the run when an answer is older than what was acknowledged before the question. */
void client_checks_read(const struct client *client, const struct id128 *id, uint64_t index);
/* Returns a session that knows of no command yet, or NULL when memory is short. */
struct consumer_session *client_new_session(struct client *client);
/* Returns how many reads brokers that follow answered. */
uint64_t client_follower_reads(void);

/* Asks for every job that was accepted; client_saw_all once all rows came. */
void client_asks_for_all(struct client *client);
size_t client_unseen(const struct client *client);
size_t client_open(const struct client *client); /* requests without an answer */
void client_tells(const struct client *client);  /* which they are, in the trace */

#endif
