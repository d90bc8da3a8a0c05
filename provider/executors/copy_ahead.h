/* provider/executors/copy_ahead.h sends the inputs of a lane's next subtask to the lane's device,
 * while the subtask before computes there.
 *
 * A thread waits until the next subtask is announced and the one before runs. It takes the inputs
 * out of the store, and offers those that the device may hold to bourse-kernel
 * (provider/tensor/ahead.h), which says what it lacks. What bourse-kernel says changes nothing but
 * what is sent. The thread sends bytes that the agent has verified, and no descriptor of a file.
 * What does not arrive in time is copied when the subtask runs. */
#ifndef BOURSE_PROVIDER_EXECUTORS_COPY_AHEAD_H
#define BOURSE_PROVIDER_EXECUTORS_COPY_AHEAD_H

#include "provider/executors/program.h"

struct copy_ahead_config {
    struct store *store;
    const struct config *config;
    const struct kernel_device *device;
    struct id128 job;
    /* Returns true when two subtasks, by their indices, run in the same jail. The thread calls it,
     * after copy_ahead_begin. */
    bool (*shares_jail)(void *context, uint32_t index, uint32_t next);
    void *context;
};

struct copy_ahead;

/* Starts the thread. Returns NULL when memory or threads are short. */
struct copy_ahead *copy_ahead_create(const struct copy_ahead_config *config);
/* Ends the thread. The jail of the last run is closed. Clears the caller's pointer, which may be to
 * NULL. */
void copy_ahead_destroy(struct copy_ahead **self);

/* Announces the next subtask, with what came with its dispatch, in the place of an earlier one. */
void copy_ahead_announce(struct copy_ahead *ahead, uint32_t next, const Bourse__V1__Work *inputs);
/* A subtask is about to run on the device. Its own announcement is over. Sets the end of a
 * connection for its jail, which the caller closes. The manifest lives as long as the copies.
 * Returns false without descriptors. */
bool copy_ahead_begin(struct copy_ahead *ahead, const Bourse__V1__Manifest *manifest,
                      uint32_t index, int *ret_end);
/* The run is over. An input under way still goes on its way. */
void copy_ahead_end(struct copy_ahead *ahead);

#endif
