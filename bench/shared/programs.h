/* bench/shared/programs.h runs real programs for a benchmark, in a private folder below /tmp. */
#ifndef BOURSE_BENCH_SHARED_PROGRAMS_H
#define BOURSE_BENCH_SHARED_PROGRAMS_H

#include "base/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { PROGRAM_PATH_SIZE = 512 };

/* Starts `words[0]`, a path; what the program says goes to the file `log`, NULL: nowhere. The
 * program ends with this process. Returns the process, or -1. */
pid_t program_start(const char *const words[], const char *log);
/* Returns true when the process has ended, or there is none, and sets *pid to 0. */
bool program_has_ended(pid_t *pid, int *ret_status);
/* Sends the signal and waits until the process has ended, `wait_ns` at most; then it is killed.
 * Returns true when it ended by itself with the status 0, or was meant to be killed. */
bool program_end(pid_t *pid, int signal, int64_t wait_ns);

/* Starts bourse-broker of the folder `programs` on the market's folder, and waits until market.yaml
 * says that this process is ready. */
bool program_start_broker(const char *programs, const char *market, int64_t wait_ns, pid_t *ret_pid,
                          struct problem *ret_problem);

/* Makes a folder /tmp/bourse-NAME-XXXXXX. */
bool program_folder(const char *name, char *ret_path, size_t capacity, struct problem *ret_problem);
/* Removes a folder and all that is in it. */
void program_folder_remove(const char *path);
/* Waits for a moment, between two looks at an event that has no descriptor. */
void program_pause(void);

#endif
