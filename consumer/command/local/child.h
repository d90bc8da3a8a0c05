/* consumer/command/local/child.h starts, watches and reliably stops the processes of an embedded
 * market.
 *
 * A process is known by its number and its start time, so that a reused number is never mistaken
 * for it. The file `up.pids` in the market's folder lists the processes for `bourse down`. */
#ifndef BOURSE_CONSUMER_COMMAND_LOCAL_CHILD_H
#define BOURSE_CONSUMER_COMMAND_LOCAL_CHILD_H

#include "base/problem.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define CHILDREN_FILE "up.pids"

struct child {
    char name[16];
    pid_t pid;        /* 0: none */
    uint64_t started; /* ticks since boot, from /proc */
    int fd;           /* a pidfd, -1: none */
};

/* Starts a program from this program's folder or the PATH; its output goes to `log`. A `tied`
 * program is told to end when this process dies. */
bool child_start(const char *name, const char *program, char *const *arguments, const char *log,
                 bool tied, struct child *ret_child, struct problem *ret_problem);
/* Asks the process to end, waits at most `timeout_ms`, then kills it. Returns true when it is
 * gone. */
bool child_stop(struct child *child, int timeout_ms);
/* Waits until the process ends and returns its exit status. Returns -1 when a signal ended it, or
 * when the timeout made this function kill it. */
int child_result(struct child *child, int timeout_ms);
void child_close(struct child *child);
/* Writes as whom the process runs, which may be another user than the one who started it. */
void child_standing(const struct child *child, char *ret_text, size_t size);
enum { CHILD_LOG_TAIL = 2048 };
/* Writes the last line of a log; "" when the log cannot be read. */
void child_log_tail(const char *path, char ret_text[CHILD_LOG_TAIL]);
/* Returns true when this process, and no earlier one, listens at a unix socket in the folder. */
bool child_listens(const struct child *child, const char *folder, const char *socket_name);
struct child child_self(void);

/* The processes are listed in the order of their end: up (in the foreground), provider, broker. */
enum { CHILDREN_MAX = 3 };
bool child_list_write(const char *folder, const struct child *children, size_t count,
                      struct problem *ret_problem);
/* Reads the listed processes that still run. Returns false only when the list cannot be read. */
bool child_list_read(const char *folder, struct child ret_children[CHILDREN_MAX], size_t *ret_count,
                     struct problem *ret_problem);

#endif
