/* tests/sim/sides.h - what stands beside a broker of the simulator: its queues, the threads that
 * this world does not have, and the tables that follow the log. */
#ifndef BOURSE_TESTS_SIM_SIDES_H
#define BOURSE_TESTS_SIM_SIDES_H

#include "broker/core/queue.h"

/* Makes a queue, or ends the broker. */
struct queue *sides_queue(size_t capacity);
/* Takes the notes to a thread that this world does not have: blobs, names. */
void *sides_run_notes(void *queue);

#endif
