/* provider/idle/process_sensor.h sees what other programs use of the processors, and whether a
 * listed program runs. One walk over /proc serves both.
 *
 * The agent, its launcher and everything in its jails are ours, with all that they started. The
 * load of others is what the processors did (/proc/stat) without what ours did, as a mean over the
 * last WINDOW seconds. */
#ifndef BOURSE_PROVIDER_IDLE_PROCESS_SENSOR_H
#define BOURSE_PROVIDER_IDLE_PROCESS_SENSOR_H

#include "provider/session/idle_rule.h"

#include <sys/types.h>

enum { PROCESS_SENSOR_SAMPLES = 16 };
#define PROCESS_SENSOR_WINDOW_NS INT64_C(5000000000)
/* A walk over the processes costs the most, and is left out while it would show what the last one
 * did: no process was made, and the processors did next to nothing. Without work of ours, nothing
 * of the load is ours. Then a look for listed programs reads only the processes that the last walk
 * did not see. After this time the sensor walks all the same. */
#define PROCESS_SENSOR_WALK_NS INT64_C(10000000000)

struct process_sensor {
    const char *root; /* borrowed */
    pid_t self;       /* the agent; 0: none of the processes is ours */
    struct process *processes;
    size_t count, capacity;
    struct process_sample {
        int64_t at_ns, others_ns; /* time, and CPU time of others until then */
    } samples[PROCESS_SENSOR_SAMPLES];
    size_t sample_count; /* oldest first */
    struct process_quiet {
        bool is_known;
        int64_t walked_ns, looked_ns;
        uint64_t busy, ours; /* ticks, at the last look and at the last walk */
        long long newest;    /* the process that was made last, when the walk began */
        bool had_work;       /* ours had work at the last walk, so that it does not show all */
    } quiet;
};

void process_sensor_init(struct process_sensor *sensor, const char *root, pid_t self);
void process_sensor_fini(struct process_sensor *sensor);
/* Fills in the load and the program of the reading. The load is 0 until two looks were made.
 * `has_work` says whether work of the agent is there, which uses the processors. */
void process_sensor_look(struct process_sensor *sensor, int64_t now_ns,
                         const struct idle_terms *terms, bool has_work,
                         struct idle_reading *reading);

enum process_owner { PROCESS_OURS, PROCESS_OTHERS, PROCESS_GONE };
/* Tells whose the process is. *ret_name is its name, cut, or "" when the kernel hides the process
 * from this user; a hidden process is never ours. */
enum process_owner process_sensor_owner(const char *root, pid_t pid, pid_t self,
                                        char ret_name[IDLE_PROGRAM_SIZE]);

#endif
