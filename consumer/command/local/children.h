/* consumer/command/local/children.h - the processes of an embedded market: started, watched, and
 * stopped for sure.
 *
 * A process is known by its number and the time it started, so that a number used again is never
 * mistaken for it. `up.pids` in the market's folder lists them for `bourse down`. */
#ifndef BOURSE_CONSUMER_COMMAND_LOCAL_CHILDREN_H
#define BOURSE_CONSUMER_COMMAND_LOCAL_CHILDREN_H

#include "base/problem.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define CHILDREN_FILE "up.pids"

struct child {
    char name[16];
    pid_t pid;        /* 0: none */
    uint64_t started; /* ticks since boot, of /proc */
    int fd;           /* a pidfd, -1: none */
};

/* Starts a program beside this one (or on the PATH) with its output in `log`. With `tied` it is
 * told to end when this process dies. */
bool child_start(const char *name, const char *program, char *const *arguments, const char *log,
                 bool tied, struct child *ret_child, struct problem *ret_problem);
/* A running process of that number and start; false when it is gone. */
bool child_open(const char *name, pid_t pid, uint64_t started, struct child *ret_child);
bool child_running(const struct child *child);
/* Asks it to end, waits at most `timeout_ms`, then ends it. True when it is gone. */
bool child_stop(struct child *child, int timeout_ms);
/* Waits until it ends by itself: its exit status; -1 when it was ended by a signal, or, at the
 * timeout, by us. */
int child_result(struct child *child, int timeout_ms);
void child_close(struct child *child);
struct child child_self(void);

enum {
    CHILDREN_MAX = 3
}; /* up (in the foreground), provider, broker: the order in which they are stopped */
bool children_write(const char *folder, const struct child *children, size_t count,
                    struct problem *ret_problem);
/* The processes listed that still run; false only when the list cannot be read. */
bool children_read(const char *folder, struct child ret_children[CHILDREN_MAX], size_t *ret_count,
                   struct problem *ret_problem);

#endif
