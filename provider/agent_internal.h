/* provider/agent_internal.h declares what agent.c, which runs the agent's loop, and agent_open.c
 * share. No other file includes it. */
#ifndef BOURSE_PROVIDER_AGENT_INTERNAL_H
#define BOURSE_PROVIDER_AGENT_INTERNAL_H

#include "base/list.h"
#include "provider/agent.h"
#include "provider/owner.h"
#include "provider/session/agent_session.h"
#include "provider/work/lanes.h"
#include "provider/work/mender.h"
#include "provider/work/transfer.h"
#include "provider/work/unaccepted.h"
#include "runtime/link.h"

#include <pthread.h>

struct reports { /* filled by other threads */
    pthread_mutex_t mutex;
    int event;
    struct agent_work *left;
    size_t left_count, left_capacity;
    struct list_link done; /* outcomes */
};

struct agent {
    const struct agent_setup *setup;
    void *zmq;
    struct link *link;
    struct agent_session *session;
    struct transfer *transfer;
    struct store *store;
    struct images *images;
    struct mender *mender;
    struct lanes *lanes;
    struct owner *owner;
    struct reports reports;
    struct unaccepted unaccepted;
    struct list_link settled; /* outcomes that nobody asks for; dropped at the end of a turn */
    int64_t reconnect_ns;     /* INT64_MAX: connected, or trying */
    int64_t drain_began_ns;   /* 0: not draining */
    bool cancelled_running;
    bool blocked;          /* a message waits until the connection takes it */
    bool crowded;          /* the disk is full: nothing is offered */
    int64_t look_again_ns; /* next look at the disk */
    bool failed;
    bool refused; /* the failure: the broker refused the key */
    struct problem problem;
    /* The owner sees these wall-clock times. */
    int64_t started_ms, since_ms; /* since_ms: last connect or disconnect */
    struct problem last_error;
    int64_t last_error_ms;
};

/* agent_open.c opens the parts of the agent in this order, and closes all of them. */

bool agent_open_session(struct agent *agent, struct problem *problem);
bool agent_open_blobs(struct agent *agent, struct problem *problem);
bool agent_open_lanes(struct agent *agent, struct problem *problem);
bool agent_open_owner(struct agent *agent, struct problem *problem);
/* Says goodbye, and closes the parts that were opened. */
void agent_close_all(struct agent *agent);

/* agent.c runs the loop. */

/* Does what the session asks for, and sends its messages. */
void agent_carry_out(struct agent *agent, int64_t now_ns);
/* Destroys the outcomes of the list. */
void agent_drop_outcomes(struct list_link *outcomes);

/* Other threads report through these functions of agent.c. `context` is the agent. */

/* A program has left its lane; its outcome follows. */
void agent_report_left(void *context, const struct agent_work *work);
/* The outcomes are complete, and their files are stored. */
void agent_report_done(void *context, struct list_link *outcomes);
/* The outcomes have files to store. */
void agent_report_ran(void *context, struct list_link *outcomes);

#endif
