/* provider/worker/run.c runs one subtask. The file starts the program, keeps the program's output,
 * watches its limits, and leaves no process alive.
 *
 * The subtask ends when its first process does; all remaining processes are killed. Process 1
 * inherits every orphan, so "no child left" means that the jail is empty.
 *
 * A tensor subtask is computed by the resident (see worker.h), and ends with the
 * resident's answer. The resident stays for the next subtask if no other process is in the jail.
 * Otherwise all processes are killed, and the next subtask starts a new resident. */
#include "base/cursor.h"
#include "base/text.h"
#include "provider/worker/packet.h"
#include "provider/worker/wire.h"
#include "provider/worker/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NS UINT64_C(1000000000)
#define WATCH_FIRST_NS UINT64_C(5000000)
#define WATCH_LAST_NS UINT64_C(40000000)
#define HANG_UP_NS UINT64_C(3000000000) /* from SIGHUP to SIGKILL */
/* The memory that a memory file system needs for an entry, beside the entry's data. */
#define ENTRY_BYTES UINT64_C(1024)
#define ADDRESS_SPARE_BYTES (UINT64_C(256) << 20)

struct watch {
    struct worker *worker;
    const struct run *run;
    struct outcome *outcome;
    pid_t first;
    bool ended;    /* the first process has been reaped, with `status` */
    bool answered; /* the resident has answered with the outcome */
    int status;
    int pipes[2];
    uint64_t started_ns, next_ns, interval_ns;
    uint64_t kill_ns; /* the program was hung up and is killed then; 0: it was not */
    struct freeze freeze;
    uint64_t cpu_before_ns;
    bool processes_full, disk_full;
    uint64_t files_bytes; /* the most that the files of the subtask were seen to take */
    uint64_t live[2];     /* bytes of each stream that the agent can follow */
    bool live_ended[2];   /* a write failed, so nothing more of the stream can be followed */
};

static uint64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS + (uint64_t)now.tv_nsec;
}

static uint64_t reaped_cpu_ns(void)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_CHILDREN, &usage);
    return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * NS +
           (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000;
}

/* Returns the CPU time of the subtask so far; `alive_ns` is the part of processes that still
 * run. */
static uint64_t used_cpu_ns(const struct watch *watch, uint64_t alive_ns)
{
    uint64_t total_ns = reaped_cpu_ns() + alive_ns;
    return total_ns > watch->cpu_before_ns ? total_ns - watch->cpu_before_ns : 0;
}

/* Returns the bound on the memory that /proc sums up, which includes the files that the resident
 * maps. */
static uint64_t memory_bound(const struct watch *watch)
{
    return watch->run->memory_bytes + (watch->run->tensor_threads > 0 ? watch->run->disk_bytes : 0);
}

/* Sets the outcome and the detail, which people read in the result. */
__attribute__((format(printf, 3, 4))) static void
set_outcome(struct outcome *outcome, enum result_outcome what, const char *format, ...)
{
    va_list arguments;
    outcome->outcome = what;
    va_start(arguments, format);
    (void)vsnprintf(outcome->detail, sizeof outcome->detail, format, arguments);
    va_end(arguments);
}

static void set_memory_limit(struct outcome *outcome, uint64_t used_bytes, uint64_t limit_bytes)
{
    outcome->peak_memory_bytes = used_bytes;
    set_outcome(outcome, OUTCOME_MEMORY_LIMIT, "the program used %s of memory; its limit is %s",
                text_size(used_bytes).text, text_size(limit_bytes).text);
}

static void set_cpu_limit(struct outcome *outcome, uint64_t used_ns, uint64_t limit_ns)
{
    set_outcome(outcome, OUTCOME_CPU_LIMIT,
                "the program used %.3f s of CPU time; its limit is %.3f s",
                (double)used_ns / (double)NS, (double)limit_ns / (double)NS);
}

/* Tells the agent how many bytes of the stream it may read. */
static void mark_live(const struct watch *watch, size_t which)
{
    const uint64_t number = watch->run->number;
    const uint64_t total = watch->live[which];
    const uint64_t mark[WIRE_MARK_WORDS] = {number, total, wire_mark_check(number, total)};
    const ssize_t written = pwrite(watch->worker->capture[which], mark, sizeof mark, WIRE_MARK_AT);
    (void)written; /* without the mark the output is only seen later */
}

/* Writes bytes that the capture has no room for into the ring. The live output ends when a write
 * fails, because the agent must not read bytes of another place. */
static void write_ring(struct watch *watch, size_t which, const char *bytes, size_t size)
{
    while (size > 0 && !watch->live_ended[which]) {
        const uint64_t place =
            (watch->live[which] - watch->run->capture_bytes) % (uint64_t)WIRE_RING_BYTES;
        const size_t room = (size_t)((uint64_t)WIRE_RING_BYTES - place);
        const size_t part = size < room ? size : room;
        watch->live_ended[which] =
            pwrite(watch->worker->capture[which], bytes, part,
                   (off_t)((uint64_t)WIRE_CAPTURE_BYTES + place)) != (ssize_t)part;
        watch->live[which] += watch->live_ended[which] ? 0 : part;
        bytes += part;
        size -= part;
    }
}

/* Moves the content of one pipe to the agent's file, up to the cap, and the rest to the ring.
 * Returns true at end of file. */
static bool drain(struct watch *watch, size_t which)
{
    static char buffer[WIRE_DRAIN_BYTES];
    struct outcome *outcome = watch->outcome;
    for (;;) {
        ssize_t length = read(watch->pipes[which], buffer, sizeof buffer);
        if (length < 0) {
            return errno != EAGAIN && errno != EINTR;
        }
        if (length == 0) {
            return true;
        }
        uint64_t room = watch->run->capture_bytes - outcome->captured[which];
        size_t kept = (uint64_t)length < room ? (size_t)length : (size_t)room;
        outcome->cut[which] = outcome->cut[which] || kept < (size_t)length;
        if (kept > 0) {
            ssize_t written = pwrite(watch->worker->capture[which], buffer, kept,
                                     (off_t)outcome->captured[which]);
            if (written < 0) {
                written = 0;
            }
            outcome->cut[which] = outcome->cut[which] || (size_t)written < kept;
            outcome->captured[which] += (uint64_t)written;
            watch->live[which] += watch->live_ended[which] ? 0 : (uint64_t)written;
            watch->live_ended[which] = watch->live_ended[which] || (size_t)written < kept;
        }
        write_ring(watch, which, buffer + kept, (size_t)length - kept);
        mark_live(watch, which);
    }
}

/* Reaps dead children. Returns true when no child is left at all. */
static bool reap(struct watch *watch, int options)
{
    for (;;) {
        int status;
        struct rusage usage;
        pid_t pid = wait4(-1, &status, __WALL | options, &usage);
        if (pid < 0 && errno == EINTR) {
            continue;
        }
        if (pid <= 0) {
            return pid < 0;
        }
        uint64_t peak = (uint64_t)usage.ru_maxrss * 1024;
        if (peak > watch->outcome->peak_memory_bytes) {
            watch->outcome->peak_memory_bytes = peak;
        }
        if (pid == watch->first) {
            watch->ended = true;
            watch->status = status;
        }
    }
}

static void note_files(struct watch *watch, const struct usage *usage)
{
    const uint64_t bytes =
        usage->used_bytes + watch->run->mapped_bytes + usage->files * ENTRY_BYTES;
    watch->disk_full = watch->disk_full || usage->full;
    watch->files_bytes = bytes > watch->files_bytes ? bytes : watch->files_bytes;
}

/* Makes the expensive checks, at growing intervals. Returns true when a limit is passed. */
static bool passed_limit(struct watch *watch)
{
    const struct run *run = watch->run;
    struct usage usage = stage_usage(watch->worker, !run->keep);
    const uint64_t files_bytes = usage.used_bytes + run->mapped_bytes + usage.files * ENTRY_BYTES;
    note_files(watch, &usage);
    if (files_bytes > run->disk_bytes) {
        set_outcome(watch->outcome, OUTCOME_DISK_LIMIT,
                    "the files of the subtask take %s; the disk limit is %s",
                    text_size(files_bytes).text, text_size(run->disk_bytes).text);
        return true;
    }
    const struct worker *worker = watch->worker;
    if (!worker->watch_memory) {
        uint64_t memory_bytes = watch_group_memory(worker, !run->keep);
        if (memory_bytes > run->memory_bytes + worker->own_bytes) {
            set_memory_limit(watch->outcome, memory_bytes - worker->own_bytes, run->memory_bytes);
            return true;
        }
    }
    if (!worker->watch_memory && !worker->count_processes && run->cpu_ns == 0) {
        return false;
    }
    struct load load = watch_load();
    const uint64_t used_ns = run->cpu_ns != 0 ? used_cpu_ns(watch, load.cpu_ns) : 0;
    if (used_ns > run->cpu_ns) {
        set_cpu_limit(watch->outcome, used_ns, run->cpu_ns);
        return true;
    }
    if (worker->watch_memory && load.resident_bytes > memory_bound(watch)) {
        set_memory_limit(watch->outcome, load.resident_bytes, memory_bound(watch));
        return true;
    }
    watch->processes_full = watch->processes_full || load.processes >= run->processes;
    return false;
}

/* Sends SIGTERM to all processes except this one, which the kernel leaves out. A resident's
 * computation has no use for it. */
static void tell_to_end(const struct watch *watch)
{
    if (watch->run->tensor_threads == 0) {
        (void)kill(-1, SIGTERM); /* may find no process, which is then known already */
    }
}

/* Reads a message of the agent while a program runs. The agent cancels the program, has it told to
 * end, or vanishes. Returns true when the program is cancelled. */
static bool is_cancelled(struct watch *watch)
{
    uint8_t bytes[64];
    int files[1];
    size_t file_count;
    ssize_t length =
        packet_receive(watch->worker->socket, bytes, sizeof bytes, files, 1, &file_count);
    if (length <= 0) {
        _exit(0); /* process 1 ends, and the kernel ends the rest */
    }
    packet_close_files(files, file_count);
    struct reader in = reader_over(bytes, (size_t)length);
    uint8_t kind = reader_u8(&in);
    if (reader_u32(&in) != watch->run->number || in.failed) {
        return false;
    }
    if (kind == WIRE_NOTICE) {
        tell_to_end(watch);
        watch->outcome->was_noticed = true;
        watch->outcome->is_frozen = false; /* the program saves its state */
    }
    if (kind == WIRE_FREEZE || kind == WIRE_THAW) {
        watch->outcome->is_frozen = kind == WIRE_FREEZE;
    }
    if (kind == WIRE_HANG_UP) {
        (void)kill(-1, SIGHUP);
        (void)kill(-1, SIGCONT); /* a stopped program hears of it, too */
        watch->kill_ns = now_ns() + HANG_UP_NS;
    }
    if (kind != WIRE_CANCEL) {
        return false;
    }
    set_outcome(watch->outcome, OUTCOME_CANCELLED, "the subtask was cancelled while it ran");
    return true;
}

static void clear_signals(int children)
{
    struct signalfd_siginfo information[8];
    while (read(children, information, sizeof information) > 0) {
        /* The dead children are found by wait4. */
    }
}

/* Watches the run. Returns false when the first process ends or the resident answers. Returns true
 * when a limit or the agent stops the run. */
static bool is_stopped(struct watch *watch)
{
    bool resident = watch->run->tensor_threads > 0;
    struct pollfd polls[5] = {
        {.fd = watch->worker->socket, .events = POLLIN},
        {.fd = watch->worker->children, .events = POLLIN},
        {.fd = watch->pipes[0], .events = POLLIN},
        {.fd = watch->pipes[1], .events = POLLIN},
        {.fd = resident ? watch->worker->resident.socket : -1, .events = POLLIN}};
    while (!watch->ended && !watch->answered) {
        uint64_t now = now_ns();
        const bool looks = now >= watch->next_ns && watch->kill_ns == 0;
        if (!freeze_obey(&watch->freeze, watch->outcome->is_frozen, looks, now)) {
            set_outcome(watch->outcome, OUTCOME_CANCELLED,
                        "the program did not stand still while the owner used the machine");
            return true;
        }
        const uint64_t frozen_ns = freeze_total_ns(&watch->freeze, now);
        const uint64_t end_ns = watch->started_ns + watch->run->wall_ns + frozen_ns;
        if (now >= end_ns) {
            set_outcome(watch->outcome, OUTCOME_TIME_LIMIT,
                        "the program ran for %.3f s; its limit is %.3f s",
                        (double)(now - watch->started_ns - frozen_ns) / (double)NS,
                        (double)watch->run->wall_ns / (double)NS);
            return true;
        }
        if (watch->kill_ns != 0 && now >= watch->kill_ns) {
            (void)kill(-1, SIGKILL); /* its death ends the run */
            watch->kill_ns = 0;
        }
        if (now >= watch->next_ns) {
            if (!watch->outcome->is_frozen && passed_limit(watch)) {
                return true;
            }
            watch->interval_ns *= watch->interval_ns < WATCH_LAST_NS ? 2 : 1;
            watch->next_ns = now + watch->interval_ns;
        }
        uint64_t until = (watch->next_ns < end_ns ? watch->next_ns : end_ns) - now;
        struct timespec timeout = {.tv_sec = (time_t)(until / NS), .tv_nsec = (long)(until % NS)};
        if (ppoll(polls, 5, &timeout, NULL) <= 0) {
            continue;
        }
        if (polls[0].revents != 0 && is_cancelled(watch)) {
            return true;
        }
        for (size_t i = 0; i < 2; i++) {
            if (polls[2 + i].revents != 0 && drain(watch, i)) {
                polls[2 + i].fd = -1; /* closed by the program; nothing more comes */
            }
        }
        if (polls[4].revents != 0) {
            watch->answered = resident_answer(watch->worker, watch->outcome);
            polls[4].fd = -1; /* without an answer the resident is ending, which reap() notices */
        }
        if (polls[1].revents != 0) {
            clear_signals(watch->worker->children);
            (void)reap(watch, WNOHANG);
        }
    }
    return false;
}

/* Returns true when the end of the program's stderr has one of the texts. Callers look there only
 * where no counter of the kernel tells why the program failed. The answer only changes the reason
 * of a failure that is the program's anyway. */
static bool prints_error(const struct watch *watch, const char *const *texts)
{
    char tail[2049];
    uint64_t end = watch->outcome->captured[1];
    uint64_t from = end > sizeof tail - 1 ? end - (sizeof tail - 1) : 0;
    ssize_t length = pread(watch->worker->capture[1], tail, (size_t)(end - from), (off_t)from);
    if (length <= 0) {
        return false;
    }
    for (; *texts != NULL; texts++) {
        if (memmem(tail, (size_t)length, *texts, strlen(*texts)) != NULL) {
            return true;
        }
    }
    return false;
}

/* Returns true when the program wanted more processes than allowed. The worker's count says so, or
 * the program's stderr. */
static bool lacks_processes(const struct watch *watch)
{
    static const char *const texts[] = {"annot fork", "fork failed", "temporarily unavailable",
                                        NULL};
    return watch->worker->count_processes && (watch->processes_full || prints_error(watch, texts));
}

/* Sets a limit as the outcome of a program that failed by itself, if a limit is the reason. */
static void find_limit_reached(struct watch *watch)
{
    static const char *const memory[] = {"annot allocate memory", "MemoryError",     "bad_alloc",
                                         "ut of memory",          "emory exhausted", NULL};
    static const char *const disk[] = {"o space left on device", NULL};
    struct outcome *outcome = watch->outcome;
    const struct worker *worker = watch->worker;
    int signal = outcome->signal != 0 ? outcome->signal
                 : outcome->exit_code > 128 && outcome->exit_code < 128 + SIGRTMIN
                     ? outcome->exit_code - 128 /* a shell reports the signal in this way */
                     : 0;
    uint64_t peak = outcome->peak_memory_bytes;
    if (signal == SIGXCPU ||
        (signal == SIGKILL && watch->run->cpu_ns != 0 && outcome->cpu_ns >= watch->run->cpu_ns)) {
        set_cpu_limit(outcome, outcome->cpu_ns, watch->run->cpu_ns);
    } else if (signal == SIGXFSZ || watch->disk_full || prints_error(watch, disk)) {
        set_outcome(outcome, OUTCOME_DISK_LIMIT,
                    "the program failed after its files took up to %s; the disk limit is %s",
                    text_size(watch->files_bytes).text, text_size(watch->run->disk_bytes).text);
    } else if (worker->watch_memory &&
               (peak > memory_bound(watch) || prints_error(watch, memory))) {
        set_outcome(outcome, OUTCOME_MEMORY_LIMIT,
                    "the program failed after it used up to %s of memory; its limit is %s",
                    text_size(peak).text, text_size(memory_bound(watch)).text);
    } else if (lacks_processes(watch)) {
        set_outcome(outcome, OUTCOME_PROCESS_LIMIT,
                    "the program failed when it had %" PRIu32 " processes, all that its limit of "
                    "%" PRIu32 " allows, and started another",
                    watch->run->processes, watch->run->processes);
    }
}

static void conclude(struct watch *watch, bool was_stopped)
{
    struct outcome *outcome = watch->outcome;
    if (watch->answered) {
        return;
    }
    if (was_stopped) {
        bool limited =
            outcome->outcome == OUTCOME_TIME_LIMIT || outcome->outcome == OUTCOME_CPU_LIMIT;
        if (limited && lacks_processes(watch)) {
            set_outcome(outcome, OUTCOME_PROCESS_LIMIT,
                        "the program reached the limit of %" PRIu32
                        " processes, and went on until it was stopped",
                        watch->run->processes);
        }
        return;
    }
    if (WIFSIGNALED(watch->status)) {
        outcome->signal = WTERMSIG(watch->status);
        set_outcome(outcome, OUTCOME_SIGNALLED, "signal %d (%s) ended the program", outcome->signal,
                    strsignal(outcome->signal));
    } else {
        outcome->exit_code = WEXITSTATUS(watch->status);
        if (outcome->exit_code == 0) {
            outcome->outcome = OUTCOME_OK;
            return;
        }
        set_outcome(outcome, OUTCOME_PROGRAM_FAILED, "exit code %d", outcome->exit_code);
    }
    find_limit_reached(watch);
}

static void kill_all(struct watch *watch)
{
    if (reap(watch, WNOHANG)) {
        return; /* no process is left to kill */
    }
    /* The signal reaches every process of the namespace but us. No fork slips through, because the
     * kernel holds its list of tasks meanwhile. */
    (void)kill(-1, SIGKILL);
    (void)reap(watch, 0);
}

static const char *path_of(char *const *env)
{
    for (; *env != NULL; env++) {
        if (strncmp(*env, "PATH=", 5) == 0) {
            return *env + 5;
        }
    }
    return "/usr/local/bin:/usr/bin:/bin";
}

static void watch_program(struct watch *watch)
{
    bool was_stopped = is_stopped(watch);
    if (watch->worker->count_processes && !was_stopped) {
        watch->processes_full =
            watch->processes_full || watch_load().processes >= watch->run->processes;
    }
    struct worker *worker = watch->worker;
    const bool gave_up = was_stopped && resident_gives_up(worker, watch->outcome);
    const bool stays = (watch->answered || gave_up) && watch_alone(&worker->resident);
    if (!stays) {
        kill_all(watch);
    }
    watch->outcome->cpu_ns = used_cpu_ns(watch, stays ? resident_cpu_ns(worker) : 0);
    for (size_t i = 0; i < 2; i++) {
        (void)drain(watch, i); /* every writer is dead or idle: this reads to the end */
    }
    if (!was_stopped && watch->status != 0) {
        const struct usage usage = stage_usage(worker, !watch->run->keep);
        note_files(watch, &usage);
    }
    conclude(watch, was_stopped);
    if (!stays && worker->resident.pid != 0) {
        resident_forget(worker);
    }
}

static void run_resident(struct watch *watch)
{
    struct worker *worker = watch->worker;
    watch->first = worker->resident.pid;
    if (watch->first != 0) {
        (void)reap(watch, WNOHANG); /* the resident may have died since its last answer */
        watch->outcome->peak_memory_bytes = 0;
    }
    if (watch->ended) {
        resident_forget(worker);
        watch->ended = false;
    }
    if (!resident_ready(worker, watch->run, watch->outcome)) {
        kill_all(watch);
        return;
    }
    watch->first = worker->resident.pid;
    memcpy(watch->pipes, worker->resident.pipes, sizeof watch->pipes);
    watch->cpu_before_ns = reaped_cpu_ns() + resident_cpu_ns(worker);
    if (resident_ask(worker, watch->run, watch->outcome)) {
        watch_program(watch);
    }
}

/* Makes what the program has as standard streams: a terminal, or the run's input and two pipes. */
static bool open_streams(struct watch *watch, int ret_standard[3])
{
    const struct worker *worker = watch->worker;
    const struct run *run = watch->run;
    if (run->terminal != WIRE_TERMINAL_NONE) {
        const int slave = pseudo_terminal_open(worker, run, watch->outcome);
        ret_standard[0] = ret_standard[1] = ret_standard[2] = slave;
        watch->pipes[0] = watch->pipes[1] = -1; /* the agent reads what is printed */
        return slave >= 0;
    }
    ret_standard[0] = run->stdin_file >= 0 ? run->stdin_file : worker->null;
    if (!start_pipes(watch->pipes, ret_standard + 1)) {
        set_outcome(watch->outcome, OUTCOME_JAIL_FAILED, "the worker has no descriptor left");
        return false;
    }
    return true;
}

void run_program(struct worker *worker, struct run *run, struct outcome *ret_outcome)
{
    struct watch watch = {.worker = worker,
                          .run = run,
                          .outcome = ret_outcome,
                          .interval_ns = WATCH_FIRST_NS,
                          .cpu_before_ns = reaped_cpu_ns()};
    int standard[3];
    if (run->tensor_threads > 0) {
        watch.started_ns = now_ns();
        watch.next_ns = watch.started_ns + watch.interval_ns;
        run_resident(&watch);
        return;
    }
    if (!open_streams(&watch, standard)) {
        return;
    }
    struct child child = {
        .standard = {standard[0], standard[1], standard[2]},
        .has_terminal = run->terminal != WIRE_TERMINAL_NONE,
        .ruleset = worker->ruleset,
        .address_bytes = worker->watch_memory ? 2 * run->memory_bytes + ADDRESS_SPARE_BYTES : 0,
        .cpu_seconds = run->cpu_ns != 0 ? run->cpu_ns / NS + 1 : 0,
        .file_bytes = run->disk_bytes,
        .processes = worker->count_processes ? run->processes + 1 : 0, /* plus the worker */
        .argv = run->argv,
        .env = run->env,
        .path = path_of(run->env),
        .directory = worker->directory,
    };
    volatile int error = 0;
    watch.started_ns = now_ns();
    watch.next_ns = watch.started_ns + watch.interval_ns;
    watch.first = start_child(&child, &error);
    int fork_error = errno;
    if (!child.has_terminal) {
        (void)close(standard[1]);
        (void)close(standard[2]);
    }
    if (watch.first < 0) {
        start_failed(ret_outcome, run->argv[0], fork_error);
    } else if (error != 0) {
        kill_all(&watch);
        start_failed(ret_outcome, run->argv[0], error);
    } else {
        watch_program(&watch);
    }
    if (child.has_terminal) { /* so that the agent reads no end before the program's */
        (void)close(standard[0]);
    }
    for (size_t i = 0; i < 2 && watch.pipes[i] >= 0; i++) {
        (void)close(watch.pipes[i]);
    }
}
