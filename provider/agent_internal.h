/* provider/agent_internal.h declares what agent.c, which runs the agent's loop, agent_open.c,
 * agent_reload.c and agent_idle.c share. No other file includes it. */
#ifndef BOURSE_PROVIDER_AGENT_INTERNAL_H
#define BOURSE_PROVIDER_AGENT_INTERNAL_H

#include "base/list.h"
#include "provider/agent.h"
#include "provider/executors/retrial.h"
#include "provider/idle/gpu_watch.h"
#include "provider/idle/idle_watch.h"
#include "provider/live_output.h"
#include "provider/owner.h"
#include "provider/session/agent_session.h"
#include "provider/session/fault_rule.h"
#include "provider/terminals.h"
#include "provider/work/challenger.h"
#include "provider/work/lanes.h"
#include "provider/work/mender.h"
#include "provider/work/transfer.h"
#include "provider/work/unaccepted.h"
#include "runtime/link.h"
#include "runtime/link_explain.h"

#include <pthread.h>

/* A program has begun on a terminal. */
struct agent_terminal {
    struct agent_work work;
    int master;
};

struct reports { /* filled by other threads */
    pthread_mutex_t mutex;
    int event;
    struct agent_work *left;
    size_t left_count, left_capacity;
    struct list_link done; /* outcomes */
    struct agent_terminal *terminals;
    size_t terminal_count, terminal_capacity;
};

struct agent {
    const struct agent_setup *setup;
    void *zmq;
    struct link *link;
    struct agent_session *session;
    struct blob_port blob_port;
    struct transfer *transfer;
    struct store *store;
    struct images *images;
    struct mender *mender;
    struct challenger *challenger; /* NULL: no matrices are computed here */
    struct retrial *retrial;       /* tries devices again that failed */
    struct lanes *lanes;
    struct owner *owner;
    struct live_output *live;
    struct terminals *terminals;
    struct link_absence *absence;
    bool is_away;                 /* the broker has not answered since since_ms */
    struct idle_watch *idle;      /* NULL: the devices work at any time */
    enum idle_order idle_order;   /* which the agent carries out now */
    struct energy_tally tally;    /* of the attempts since the start */
    struct energy_gauges *gauges; /* the energy of GPUs */
    struct gpu_watch *gpus;       /* NULL: no device for kernels is offered */
    enum idle_order gpu_orders[GPU_WATCH_DEVICES_MAX]; /* which the agent carries out now */
    struct fault_rule faults[1 + CONFIG_DEVICES_MAX];  /* of the offers, by number */
    struct network *network;                           /* NULL: it has no limits */
    bool is_spent;    /* by the month's bytes: nothing is offered */
    bool figures_due; /* the broker has not heard the newest */
    /* The inputs that devices had when the broker was last told for their sake, and when. */
    uint64_t inputs_told;
    int64_t held_told_ns;
    struct reports reports;
    struct unaccepted unaccepted;
    struct list_link done;    /* outcomes whose results wait until the broker knows a terminal */
    struct list_link settled; /* outcomes that nobody asks for; dropped at the end of a turn */
    int64_t reconnect_ns;     /* INT64_MAX: connected, or trying */
    int64_t drain_began_ns;   /* 0: not draining */
    bool cancelled_running;
    bool has_answers;      /* terminals were answered, and may have more to say */
    bool blocked;          /* a message waits until the connection takes it */
    bool crowded;          /* the disk is full: nothing is offered */
    bool lacks_folder;     /* a folder is gone and cannot be made: nothing is offered */
    int64_t look_again_ns; /* next look at the disk */
    bool failed;
    bool refused; /* the failure: the broker refused the key */
    struct problem problem;
    /* The owner sees these wall-clock times. */
    int64_t started_ms, since_ms; /* since_ms: last connect or disconnect */
    struct problem last_error;
    int64_t last_error_ms;
    int64_t alive_every_ns, alive_due_ns; /* signs of life for the supervisor; 0: none */
};

/* agent_open.c opens the parts of the agent in this order, and closes all of them. */

bool agent_open_session(struct agent *agent, struct problem *problem);
/* Sends files to the broker of the session from now on, which leads. */
void agent_follow_blobs(struct agent *agent);
/* Logs what is on offer over a new connection. */
void agent_say_offer(const struct agent *agent);
bool agent_open_blobs(struct agent *agent, struct problem *problem);
bool agent_open_lanes(struct agent *agent, struct problem *problem);
bool agent_open_challenger(struct agent *agent, struct problem *problem);
bool agent_open_retrial(struct agent *agent, struct problem *problem);
bool agent_open_owner(struct agent *agent, struct problem *problem);
/* These two are in agent_idle.c. */
bool agent_open_idle(struct agent *agent, int64_t now_ns, struct problem *problem);
bool agent_open_gpus(struct agent *agent, struct problem *problem);
/* Offers nothing while the disk is full or the month's bytes of the network are used up. Call it
 * once a second. */
void agent_room_turn(struct agent *agent, int64_t now_ns);
/* Destroys the outcomes of the list. */
void agent_drop_outcomes(struct list_link *outcomes);
/* Says goodbye, and closes the parts that were opened. */
void agent_close_all(struct agent *agent);

/* These two are in agent_open.c. The first begins to compute the answer, or says that it cannot be
 * computed now. */
void agent_challenge(struct agent *agent, int64_t now_ns, const struct agent_challenge *challenge);
/* Sends the answer that is done, if there is one. */
void agent_challenge_take(struct agent *agent, int64_t now_ns);

/* agent_reload.c (agent_reload.h) reads the config again. */

/* Obeys the owner's limits in the config that was read again. */
void agent_idle_apply(struct agent *agent, int64_t now_ns, const struct config *now);

/* Reads the config again and offers the devices on its present terms. The log names what changed,
 * and what waits for a restart. A config with a fault changes nothing. */
void agent_reload(struct agent *agent, int64_t now_ns);

/* agent_idle.c obeys the owner's rules of idle times, for the machine and for single GPUs. */

/* Looks at the machine when that is due. The offer and the work stop when somebody uses the
 * machine, and go on when it is idle. */
void agent_idle_turn(struct agent *agent, int64_t now_ns);
/* Looks at the GPUs when that is due, and withholds those that may not be offered. Tries withheld
 * devices that failed. The loop turns once a second or more often, so nothing else wakes the agent
 * for a trial. */
void agent_gpu_turn(struct agent *agent, int64_t now_ns);
/* Takes note of the end of a work. Withholds the device when it failed too often. */
void agent_idle_note_fault(struct agent *agent, int64_t now_ns, const struct outcome *outcome);
/* Returns the time of the next look, INT64_MAX when there is none. */
int64_t agent_idle_due_ns(const struct agent *agent);

/* agent.c runs the loop. */

/* Logs a warning on which the owner may have to act, and keeps it for `status`. */
void agent_warn(struct agent *agent, const char *text);

/* Warns that the broker is silent, with its address. */
void agent_warn_of_silence(struct agent *agent, const struct agent_parting *parting);

/* Does what the session asks for, and sends its messages. */
void agent_carry_out(struct agent *agent, int64_t now_ns);

/* Other threads report through these functions of agent_open.c. `context` is the agent. */

/* A program has left its lane; its outcome follows. */
void agent_report_left(void *context, const struct agent_work *work);
/* The outcomes are complete, and their files are stored. */
void agent_report_done(void *context, struct list_link *outcomes);
/* The work's program begins on this terminal, whose master the agent owns from now on. */
void agent_report_terminal(void *context, const struct agent_work *work, int master);
/* The outcomes have files to store. */
void agent_report_ran(void *context, struct list_link *outcomes);

#endif
