/* provider/kernel/engine_ahead.h copies inputs of the next subtask into the device's memory, while
 * the launch of the subtask before computes.
 *
 * A thread of its own reads the inputs from the agent (provider/tensor/ahead.h). It writes them to
 * the device by what the interface opens for that, such as a second queue. An input that arrives in
 * time is held like any other one (held_inputs.h). A copy begins only while a launch computes, when
 * that launch has all its buffers. It drives out nothing that this launch uses, and stays within
 * the cap and within the memory that the launch leaves.
 *
 * Nothing that goes wrong here reaches a launch. The input is forgotten, and its subtask copies it
 * in the ordinary way. */
#ifndef BOURSE_PROVIDER_KERNEL_ENGINE_AHEAD_H
#define BOURSE_PROVIDER_KERNEL_ENGINE_AHEAD_H

#include "provider/kernel/engine.h"

struct engine_ahead;

/* Takes the connection over, over which the agent sends the inputs of the next subtask. An earlier
 * connection is served to its end first, if its serving has begun. */
void engine_ahead_take(struct engine *engine, int connection);
/* Says that a launch has all its buffers, so that copies may begin until the next ASK. */
void engine_ahead_allow(struct engine *engine);
/* Ends the thread, if there is one. */
void engine_ahead_close(struct engine *engine);

/* The caller of the next functions holds engine->lock. */

/* Returns the memory that an input under way takes; 0: none is. */
uint64_t engine_ahead_bytes(const struct engine *engine);
/* Forgets the input under way, and returns when its memory is free. */
void engine_ahead_abandon(struct engine *engine);
/* Waits for the end of the copy when this part is under way. A copy that stands still is
 * abandoned. */
void engine_ahead_await(struct engine *engine, const struct held_part *part);

#endif
