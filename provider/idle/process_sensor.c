#include "provider/idle/process_sensor.h"

#include "base/array.h"
#include "provider/idle/sensor_file.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PROCESSES_MAX = 1 << 20,
    STAT_MAX = 1024,
    ANCESTORS_MAX = 256,
    QUIET_PART = 50, /* of one processor's time: what the processors did counts as nothing */
};
#define NS INT64_C(1000000000)

struct process {
    pid_t pid, parent;
    bool is_ours;
    uint64_t ticks; /* of the process, and of the children that it has waited for */
    char name[IDLE_PROGRAM_SIZE];
};

void process_sensor_init(struct process_sensor *sensor, const char *root, pid_t self)
{
    *sensor = (struct process_sensor){.root = root, .self = self};
}

void process_sensor_fini(struct process_sensor *sensor)
{
    free(sensor->processes);
    sensor->processes = NULL;
    sensor->count = sensor->capacity = 0;
}

/* Reads "PID (NAME) STATE PARENT ...". The name may hold any bytes, and the last ')' ends it. The
 * four times are the 10th to 13th numbers after the parent. */
static bool read_process(const char *text, pid_t pid, struct process *ret_process)
{
    enum { TIMES_FIRST = 10, TIMES_LAST = 13 };
    const char *name = strchr(text, '(');
    const char *end = strrchr(text, ')');
    if (name == NULL || end == NULL || end < name || strlen(end) < 5) {
        return false;
    }
    struct process process = {.pid = pid};
    const size_t length = (size_t)(end - name - 1);
    memcpy(process.name, name + 1, length < sizeof process.name ? length : sizeof process.name - 1);
    const char *at = end + 3; /* ") S": past the state's letter */
    for (int field = 0; field <= TIMES_LAST; field++) {
        char *after;
        const long long value = strtoll(at, &after, 10);
        if (after == at) {
            return false;
        }
        process.parent = field == 0 ? (pid_t)value : process.parent;
        process.ticks += field >= TIMES_FIRST && value > 0 ? (uint64_t)value : 0;
        at = after;
    }
    *ret_process = process;
    return true;
}

static int by_pid(const void *left, const void *right)
{
    const pid_t a = ((const struct process *)left)->pid;
    const pid_t b = ((const struct process *)right)->pid;
    return (a > b) - (a < b);
}

static struct process *find(const struct process_sensor *sensor, pid_t pid)
{
    const struct process wanted = {.pid = pid};
    return sensor->count == 0 ? NULL
                              : bsearch(&wanted, sensor->processes, sensor->count,
                                        sizeof *sensor->processes, by_pid);
}

/* A process is ours when its parent is. Most parents have a lower number than their children, so
 * few passes are made. */
static void mark_ours(struct process_sensor *sensor)
{
    struct process *self = find(sensor, sensor->self);
    bool has_changed = self != NULL;
    if (self != NULL) {
        self->is_ours = true;
    }
    for (size_t pass = 0; has_changed && pass < sensor->count; pass++) {
        has_changed = false;
        for (size_t i = 0; i < sensor->count; i++) {
            struct process *process = &sensor->processes[i];
            const struct process *parent = process->is_ours ? NULL : find(sensor, process->parent);
            if (parent != NULL && parent->is_ours) {
                process->is_ours = true;
                has_changed = true;
            }
        }
    }
}

static bool find_process(const char *root, pid_t pid, struct process *ret_process)
{
    char name[32];
    char text[STAT_MAX];
    (void)snprintf(name, sizeof name, "%lld/stat", (long long)pid);
    return sensor_file_text(root, "/proc", name, text, sizeof text) &&
           read_process(text, pid, ret_process);
}

/* Returns the next process of the listing, or -1 at its end. */
static pid_t next_pid(DIR *stream)
{
    for (struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        char *end;
        const long long pid = strtoll(entry->d_name, &end, 10);
        if (*end == '\0' && pid >= 1 && pid <= INT32_MAX) {
            return (pid_t)pid;
        }
    }
    return -1;
}

static bool list_processes(struct process_sensor *sensor)
{
    DIR *stream = sensor_file_list(sensor->root, "/proc");
    sensor->count = 0;
    if (stream == NULL) {
        return false;
    }
    for (pid_t pid; (pid = next_pid(stream)) >= 0 && sensor->count < PROCESSES_MAX;) {
        struct process process;
        if (!find_process(sensor->root, pid, &process)) {
            continue; /* it has just ended */
        }
        struct process *processes =
            array_with_room(sensor->processes, sensor->count, &sensor->capacity, sizeof *processes);
        if (processes == NULL) {
            break; /* a look without memory sees less */
        }
        processes[sensor->count++] = process;
        sensor->processes = processes;
    }
    (void)closedir(stream);
    if (sensor->count > 0) {
        qsort(sensor->processes, sensor->count, sizeof *sensor->processes, by_pid);
    }
    mark_ours(sensor);
    return true;
}

/* Reads what the processors did: "cpu  USER NICE SYSTEM IDLE IOWAIT IRQ SOFTIRQ ...". */
static bool read_busy(const char *root, uint64_t *ret_ticks)
{
    enum { IDLE = 3, IOWAIT = 4, FIELDS = 7 };
    char text[STAT_MAX];
    uint64_t ticks = 0;
    if (!sensor_file_text(root, "/proc", "stat", text, sizeof text) ||
        strncmp(text, "cpu ", 4) != 0) {
        return false;
    }
    const char *at = text + 4;
    for (int field = 0; field < FIELDS; field++) {
        char *after;
        const unsigned long long value = strtoull(at, &after, 10);
        if (after == at) {
            return false;
        }
        ticks += field == IDLE || field == IOWAIT ? 0 : value;
        at = after;
    }
    *ret_ticks = ticks;
    return true;
}

/* Forgets the samples that are out of the window, but for the youngest of these. */
static void add_sample(struct process_sensor *sensor, int64_t now_ns, int64_t others_ns)
{
    size_t old = 0;
    while (old + 1 < sensor->sample_count &&
           now_ns - sensor->samples[old + 1].at_ns >= PROCESS_SENSOR_WINDOW_NS) {
        old++;
    }
    if (old == 0 && sensor->sample_count == PROCESS_SENSOR_SAMPLES) {
        old = 1;
    }
    sensor->sample_count -= old;
    memmove(sensor->samples, sensor->samples + old, sensor->sample_count * sizeof *sensor->samples);
    sensor->samples[sensor->sample_count++] =
        (struct process_sample){.at_ns = now_ns, .others_ns = others_ns};
}

static int64_t mean_milli(const struct process_sensor *sensor)
{
    const struct process_sample *first = &sensor->samples[0];
    const struct process_sample *last = &sensor->samples[sensor->sample_count - 1];
    const int64_t span_ns = last->at_ns - first->at_ns;
    const int64_t used_ns = last->others_ns - first->others_ns;
    return span_ns <= 0 || used_ns <= 0 ? 0 : used_ns / (span_ns / 1000 + 1);
}

static bool is_listed(const struct idle_terms *terms, const char *name)
{
    for (size_t i = 0; i < terms->program_count; i++) {
        if (strcmp(terms->programs[i], name) == 0) {
            return true;
        }
    }
    return false;
}

/* Returns the process that was made last, or -1: "0.10 0.20 0.30 1/426 PID". */
static long long read_newest(const char *root)
{
    char text[STAT_MAX];
    if (!sensor_file_text(root, "/proc", "loadavg", text, sizeof text)) {
        return -1;
    }
    const char *last = strchr(text, '/');
    last = last == NULL ? NULL : strchr(last, ' ');
    return last == NULL ? -1 : strtoll(last + 1, NULL, 10);
}

/* Returns true when a walk over /proc would show what the last one did. A program that begins
 * without a new process (exec) is seen by what it computes, or by the next walk. */
static bool is_quiet(const struct process_quiet *quiet, int64_t now_ns, uint64_t busy,
                     long long newest)
{
    const int64_t span_ns = now_ns - quiet->looked_ns;
    const int64_t tick_ns = NS / sysconf(_SC_CLK_TCK);
    return quiet->is_known && newest >= 0 && newest == quiet->newest &&
           now_ns - quiet->walked_ns < PROCESS_SENSOR_WALK_NS && busy >= quiet->busy &&
           (int64_t)(busy - quiet->busy) <= span_ns / tick_ns / QUIET_PART;
}

/* Returns true when the last walk is young, and ours did not use the processors since then. */
static bool is_walked(const struct process_quiet *quiet, int64_t now_ns, bool has_work)
{
    return quiet->is_known && now_ns - quiet->walked_ns < PROCESS_SENSOR_WALK_NS && !has_work &&
           !quiet->had_work;
}

/* Looks for a listed program among the processes that were made since the last walk. */
static void look_at_young(const struct process_sensor *sensor, const struct idle_terms *terms,
                          struct idle_reading *reading)
{
    DIR *stream = sensor_file_list(sensor->root, "/proc");
    reading->program[0] = '\0';
    for (pid_t pid; stream != NULL && (pid = next_pid(stream)) >= 0;) {
        struct process process;
        if (find(sensor, pid) == NULL && find_process(sensor->root, pid, &process) &&
            is_listed(terms, process.name)) {
            memcpy(reading->program, process.name, sizeof reading->program);
        }
    }
    if (stream != NULL) {
        (void)closedir(stream);
    }
}

/* Walks over /proc. Returns what the processes that are ours have used, in ticks. */
static uint64_t walk(struct process_sensor *sensor, const struct idle_terms *terms,
                     struct idle_reading *reading)
{
    uint64_t ours = 0;
    const bool is_listing = list_processes(sensor);
    reading->program[0] = '\0';
    for (size_t i = 0; i < sensor->count; i++) {
        const struct process *process = &sensor->processes[i];
        ours += process->is_ours ? process->ticks : 0;
        if (!process->is_ours && reading->program[0] == '\0' && is_listed(terms, process->name)) {
            memcpy(reading->program, process->name, sizeof reading->program);
        }
    }
    /* Process 1 is hidden where the processes of others are. */
    reading->sees_programs = is_listing && find(sensor, 1) != NULL;
    return ours;
}

void process_sensor_look(struct process_sensor *sensor, int64_t now_ns,
                         const struct idle_terms *terms, bool has_work,
                         struct idle_reading *reading)
{
    struct process_quiet *quiet = &sensor->quiet;
    const int64_t tick_ns = NS / sysconf(_SC_CLK_TCK);
    const long long newest = read_newest(sensor->root);
    uint64_t busy = 0;
    reading->sees_load = read_busy(sensor->root, &busy);
    const bool is_still = reading->sees_load && is_quiet(quiet, now_ns, busy, newest);
    if (!is_still && reading->sees_load && is_walked(quiet, now_ns, has_work)) {
        if (terms->program_count > 0) {
            look_at_young(sensor, terms, reading);
        }
    } else if (!is_still) {
        quiet->ours = walk(sensor, terms, reading);
        quiet->walked_ns = now_ns;
        quiet->newest = newest;
        quiet->had_work = has_work;
        quiet->is_known = reading->sees_load && reading->program[0] == '\0';
    }
    quiet->looked_ns = now_ns;
    quiet->busy = busy;
    const uint64_t ours = quiet->ours;
    if (reading->sees_load) {
        const uint64_t most = (uint64_t)(INT64_MAX / tick_ns);
        const int64_t busy_ns = (int64_t)(busy < most ? busy : most) * tick_ns;
        const int64_t ours_ns = (int64_t)(ours < most ? ours : most) * tick_ns;
        add_sample(sensor, now_ns, busy_ns - ours_ns);
        reading->load_milli = mean_milli(sensor);
    }
}

enum process_owner process_sensor_owner(const char *root, pid_t pid, pid_t self,
                                        char ret_name[IDLE_PROGRAM_SIZE])
{
    struct process process;
    ret_name[0] = '\0';
    if (!find_process(root, pid, &process)) {
        return kill(pid, 0) != 0 && errno == ESRCH ? PROCESS_GONE : PROCESS_OTHERS;
    }
    memcpy(ret_name, process.name, IDLE_PROGRAM_SIZE);
    for (int i = 0; process.pid != self && process.parent > 0 && i < ANCESTORS_MAX; i++) {
        if (process.parent == self) {
            return PROCESS_OURS;
        }
        if (!find_process(root, process.parent, &process)) {
            return PROCESS_OTHERS;
        }
    }
    return process.pid == self ? PROCESS_OURS : PROCESS_OTHERS;
}
