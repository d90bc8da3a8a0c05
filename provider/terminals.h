/* provider/terminals.h moves bytes between the terminals of running programs and the broker.
 *
 * The agent holds the master of each terminal. What the program prints is read as far as the owner
 * has taken it, so that a slow owner slows the program and nobody else. What the owner types is
 * written to the master, and the next bytes are asked for afterwards. Only the main thread calls
 * these functions. */
#ifndef BOURSE_PROVIDER_TERMINALS_H
#define BOURSE_PROVIDER_TERMINALS_H

#include "provider/session/agent_session.h"
#include "provider/work/lanes.h"

#include <zmq.h>

enum { TERMINALS_MAX = AGENT_TERMINALS_MAX }; /* at a time; each takes 80 KiB */
/* The last bytes of a program are kept for this time after its end. Time without a broker does not
 * count, but nothing is kept for longer than TERMINALS_AWAY_NS. */
#define TERMINALS_KEPT_NS (10 * INT64_C(1000000000))
#define TERMINALS_AWAY_NS (600 * INT64_C(1000000000))

struct terminals;

/* Returns NULL when memory is short. */
struct terminals *terminals_create(void);
void terminals_destroy(struct terminals **self); /* NULL is fine */

/* Takes the master of a work's terminal over. Hangs it up when there are too many. */
void terminals_add(struct terminals *terminals, const struct agent_work *work, int master);
/* Returns true while a terminal has bytes or an end that were not taken. */
bool terminals_are_busy(const struct terminals *terminals);
/* Returns true while the result of the work must wait: the broker does not have all that the
 * program printed. A broker that was started anew refuses a terminal once the work has a result, so
 * the last bytes would be lost. The wait ends with the time for which the bytes are kept. */
bool terminals_holds(struct terminals *terminals, const struct agent_work *work, int64_t now_ns);
/* Takes the answer to a message, or its refusal. */
void terminals_answered(struct terminals *terminals, struct lanes *lanes,
                        const struct agent_terminal_answer *answer, int64_t now_ns);
/* Reads, writes and sends what can be. */
void terminals_turn(struct terminals *terminals, struct agent_session *session, int64_t now_ns);
/* Fills in what to wait for, at most TERMINALS_MAX items, and returns their count. */
size_t terminals_poll(const struct terminals *terminals, zmq_pollitem_t *ret_items);
/* Returns the time of the next turn that waits for nothing else; INT64_MAX: none. */
int64_t terminals_due_ns(const struct terminals *terminals);

#endif
