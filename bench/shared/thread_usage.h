/* bench/shared/thread_usage.h sums up the processor time and the memory of processes, thread by
 * thread and grouped by the threads' names. */
#ifndef BOURSE_BENCH_SHARED_THREAD_USAGE_H
#define BOURSE_BENCH_SHARED_THREAD_USAGE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { STAGES_MAX = 32, STAGE_NAME_SIZE = 24 };

struct stage {
    char name[STAGE_NAME_SIZE]; /* "broker/core" */
    uint64_t cpu_ns;
};

struct usage {
    struct stage stages[STAGES_MAX];
    size_t count;
};

/* Adds the threads of the process and of its descendants, as "GROUP/thread". Of the calling process
 * itself no descendants count. A thread that has ended counts no more. */
void usage_add_process(struct usage *usage, const char *group, pid_t pid);
/* Returns the time of one stage; 0 when there is none of the name. */
uint64_t usage_of(const struct usage *usage, const char *name);
/* Returns the time of all stages together. */
uint64_t usage_total(const struct usage *usage);
/* Returns the memory that a process holds (VmRSS); 0 when it cannot be read. */
uint64_t usage_resident_bytes(pid_t pid);

#endif
