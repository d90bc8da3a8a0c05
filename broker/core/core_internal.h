/* `struct core` is the state of the core's thread, which the files core*.c share. */
#ifndef BOURSE_BROKER_CORE_CORE_INTERNAL_H
#define BOURSE_BROKER_CORE_CORE_INTERNAL_H

#include "broker/core/core.h"

#include "broker/answer/departures.h"
#include "broker/answer/figures_board.h"
#include "broker/answer/follow.h"
#include "broker/answer/output_relay.h"
#include "broker/answer/terminal_relay.h"
#include "broker/answer/watches.h"
#include "broker/challenge/challenges.h"
#include "broker/core/group.h"
#include "broker/core/outage/past_state.h"
#include "broker/core/outage/unanswered.h"
#include "broker/core/outgoing.h"
#include "broker/core/request.h"
#include "broker/gateway/waiting_reads.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct core {
    struct core_config config;
    pthread_t thread;
    struct watches *watches;
    struct follow *follow;
    struct output_relay *relay;
    struct terminal_relay *terminals;
    struct figures_board *figures;
    struct departures *departures;
    struct challenges *challenges;
    bool challenges_changed;    /* since they were written */
    int64_t challenges_kept_ns; /* monotonic: they are not written before, unless it is urgent */
    struct group *open;         /* being gathered */
    struct group *spare;        /* came back, and is the next `open`; NULL: none is at hand */
    int64_t events_due_ns;      /* monotonic; INT64_MAX: no job has changed */
    int64_t next_tick_ns;       /* monotonic: no tick before */
    int64_t keep_ns;            /* monotonic: a tick by then, unless a command carries log time */
    int64_t state_ns;           /* monotonic: the next tick with the state hash */
    uint64_t next_mark;
    struct waiting_reads waiting;
    bool is_away;                     /* the journal takes no entry */
    struct queue_link *put_off;       /* presence that waits for the journal, oldest first */
    struct queue_link **last_put_off; /* where the next one goes */
    struct unanswered *unanswered;    /* NULL: no journal can be away */
    struct past_state *past;          /* likewise */
};

/* Adds an answer to the open group, and takes it over. While the journal is away, the answer is
 * sent at once, so it must not show anything that the journal may lack. Ends the process when
 * `reply` is NULL, for memory was short. */
void core_add_reply(struct core *core, struct outgoing *reply);
/* Charges steps to a member or a stranger. */
void core_charge(struct core *core, const struct budget_asker *asker, int64_t steps);
/* Sends the open group to the committer and opens the next. Waits for a group to come back when
 * none is spare. */
void core_hand_over(struct core *core);
/* Makes room for some answers in the open group. While the journal is away, answers need none. */
void core_make_room(struct core *core, uint32_t replies);

/* core_challenges.c challenges devices. */

/* Returns NULL when memory is short. */
struct challenges *core_open_challenges(const struct core_config *config);
/* Writes what is known, and frees it. */
void core_close_challenges(struct core *core);
/* Sends the challenges that are due. */
void core_add_challenges(struct core *core);
/* Refuses an ask for a device whose claim a challenge found false, and destroys the request.
 * Returns false when the request is admitted. */
bool core_refuse_challenged(struct core *core, struct request *request);
/* Returns the time, and dice that nobody has seen. */
struct challenges_now core_challenge_time(struct core *core);

/* The unit outage/core_outage.c bridges the time in which the journal takes no entry. */

/* Makes what an outage needs. Returns false when memory is short. */
bool core_outage_open(struct core *core);
void core_outage_close(struct core *core);
/* Notices that the journal went away, or came back. */
void core_outage_look(struct core *core);
/* Answers a read meanwhile, or refuses it, and destroys the request unless it was passed on. */
void core_outage_answer(struct core *core, struct request *request);
/* Refuses the request, and destroys it. */
void core_outage_refuse(struct core *core, struct request *request);
/* Takes over a request of the broker itself, which cannot be refused, until the journal is back. */
void core_outage_put_off(struct core *core, struct request *request);
/* Returns the oldest of those, and gives it to the caller. NULL: there is none, or the journal is
 * still away. */
struct request *core_outage_resume(struct core *core);
/* Passes a read of committed data on to the thread that answers it. */
void core_pass_on(struct core *core, struct request *request);

/* Adds what others follow and what is due by `now_ns`, from the present state. */
void core_add_news(struct core *core, int64_t now_ns);
/* Answers a read, keeps it waiting, or refuses it; takes the request over. */
void core_answer(struct core *core, struct request *request);
/* Answers waiting reads whose senders have earned the steps of a read. */
void core_answer_waiting(struct core *core);

#endif
