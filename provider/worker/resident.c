/* The resident is bourse-tensor, bourse-kernel, bourse-plugin or bourse-onnx as the worker sees it.
 * The resident is one process that answers a job's subtasks of that sort, confined like any program
 * of the job. Only jails for such jobs have its file. bourse-plugin has a companion, the owner's
 * plug-in. */
#include "base/cursor.h"
#include "provider/tensor/ask.h"
#include "provider/tensor/operation.h"
#include "provider/worker/packet.h"
#include "provider/worker/wire.h"
#include "provider/worker/worker.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static_assert((int)WIRE_MAPPED_MAX <= (int)OPERATION_GIVEN_MOST, "one ask carries them all");
static_assert((int)WIRE_CONTENTS_MAX <= (int)ASK_CONTENTS, "one ask carries them all");
static_assert((int)WIRE_MADE_MAX <= (int)ASK_MADE, "one ask carries them all");

#define ADDRESS_SPARE_BYTES (UINT64_C(1) << 30) /* libraries and the stacks of threads */

static bool failed(struct outcome *outcome, enum result_outcome what, const char *detail)
{
    outcome->outcome = what;
    (void)snprintf(outcome->detail, sizeof outcome->detail, "%s", detail);
    return false;
}

/* Returns the number of threads: at most the lease's slots, and the jail's processors and
 * processes. */
static unsigned threads_of(const struct run *run)
{
    unsigned threads = run->tensor_threads;
    cpu_set_t cpus;
    if (sched_getaffinity(0, sizeof cpus, &cpus) == 0 && (unsigned)CPU_COUNT(&cpus) < threads) {
        threads = (unsigned)CPU_COUNT(&cpus);
    }
    threads = run->processes < threads ? run->processes : threads;
    return threads > 0 ? threads : 1;
}

/* Returns the resident's file. A jail has one of the four. */
static char *program_of(void)
{
    static char tensor[] = TENSOR_PROGRAM;
    static char kernel[] = KERNEL_PROGRAM;
    static char plugin[] = PLUGIN_HELPER;
    static char onnx[] = ONNX_PROGRAM;
    char *const others[] = {kernel, plugin, onnx};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (access(others[i], X_OK) == 0) {
            return others[i];
        }
    }
    return tensor;
}

static pid_t start(struct worker *worker, const struct run *run, int socket, const int writes[2],
                   volatile int *ret_error)
{
    /* The cache of pocl, an OpenCL implementation, is in the jail's own /tmp. That of NVIDIA's
     * driver would be in the job's folder; the resident keeps its programs itself. */
    static char places[][40] = {"PATH=/usr/bin:/bin",  "HOME=/work",
                                "TMPDIR=/tmp",         "LANG=C",
                                "POCL_CACHE_DIR=/tmp", "CUDA_CACHE_DISABLE=1"};
    char threads[48];
    char pocl_threads[48];
    char devices[512];
    const char *wanted = getenv(KERNEL_POCL_DEVICES); /* the agent's, for this jail */
    (void)snprintf(threads, sizeof threads, "OMP_NUM_THREADS=%u", threads_of(run));
    (void)snprintf(pocl_threads, sizeof pocl_threads, "POCL_MAX_PTHREAD_COUNT=%u", threads_of(run));
    (void)snprintf(devices, sizeof devices, KERNEL_POCL_DEVICES "=%s",
                   wanted != NULL ? wanted : "");
    char *argv[] = {program_of(), NULL};
    char *env[] = {places[0], places[1],    places[2],
                   places[3], places[4],    places[5],
                   threads,   pocl_threads, wanted != NULL ? devices : NULL,
                   NULL};
    struct child child = {
        .standard = {socket, writes[0], writes[1]},
        .ruleset = worker->ruleset,
        /* The mapped files count too. */
        .address_bytes = worker->watch_memory
                             ? 2 * (run->memory_bytes + run->disk_bytes) + ADDRESS_SPARE_BYTES
                             : 0,
        .file_bytes = run->disk_bytes,
        .processes = worker->count_processes ? run->processes + 1 : 0, /* plus the worker */
        .argv = argv,
        .env = env,
        .path = "/",
    };
    return start_child(&child, ret_error);
}

bool resident_ready(struct worker *worker, const struct run *run, struct outcome *outcome)
{
    struct resident *resident = &worker->resident;
    if (resident->pid != 0) {
        return true;
    }
    if (run->held_count > 0) { /* a new program holds nothing */
        return failed(outcome, OUTCOME_JAIL_FAILED,
                      "the computing program has ended, and with it what it held");
    }
    int sockets[2];
    int writes[2];
    if (!packet_pair(sockets)) {
        return failed(outcome, OUTCOME_JAIL_FAILED, "the worker has no descriptor left");
    }
    if (!start_pipes(resident->pipes, writes)) {
        (void)close(sockets[0]);
        (void)close(sockets[1]);
        return failed(outcome, OUTCOME_JAIL_FAILED, "the worker has no descriptor left");
    }
    volatile int error = 0;
    resident->socket = sockets[0];
    resident->pid = start(worker, run, sockets[1], writes, &error);
    int fork_error = errno;
    (void)close(sockets[1]);
    (void)close(writes[0]);
    (void)close(writes[1]);
    if (resident->pid > 0 && error == 0) {
        return true;
    }
    start_failed(outcome, program_of(), resident->pid < 0 ? fork_error : error);
    resident_forget(worker); /* reap() later takes the process, if there is one */
    return false;
}

static void write_text(struct writer *out, const char *text)
{
    size_t size = strlen(text) + 1;
    writer_u32(out, (uint32_t)size);
    writer_bytes(out, text, size);
}

bool resident_ask(const struct worker *worker, const struct run *run, struct outcome *outcome)
{
    int files[WIRE_MAPPED_MAX + 1];
    size_t file_count = 0;
    uint8_t bytes[ASK_BYTES];
    struct writer out = writer_over(bytes, sizeof bytes);
    uint32_t count = 0;
    while (run->argv[count] != NULL) {
        count++;
    }
    writer_u64(&out, run->memory_bytes);
    writer_u32(&out, count);
    for (uint32_t i = 0; i < count; i++) {
        write_text(&out, run->argv[i]);
    }
    writer_u32(&out, (uint32_t)run->mapped_count);
    for (size_t i = 0; i < run->input_count; i++) {
        if (run->inputs[i].kind == WIRE_INPUT_MAPPED) {
            write_text(&out, run->inputs[i].name);
            files[file_count++] = run->inputs[i].file;
        }
    }
    writer_u32(&out, (uint32_t)run->content_count);
    for (size_t i = 0; i < run->input_count; i++) {
        if (run->inputs[i].content != NULL) {
            write_text(&out, run->inputs[i].name);
            writer_bytes(&out, run->inputs[i].content, sizeof(struct hash32));
        }
    }
    writer_u32(&out, (uint32_t)run->made_count);
    for (size_t i = 0; i < run->made_count; i++) {
        write_text(&out, run->made[i].name);
        writer_bytes(&out, run->made[i].content, sizeof(struct hash32));
    }
    writer_u8(&out, run->ahead_file >= 0);
    if (run->ahead_file >= 0) {
        files[file_count++] = run->ahead_file;
    }
    if (out.failed || count > ASK_ARGUMENTS) {
        return failed(outcome, OUTCOME_REFUSED, "the operation's arguments are too long");
    }
    return packet_send(worker->resident.socket, bytes, out.position, files, file_count) ||
           failed(outcome, OUTCOME_JAIL_FAILED, "the computing program has ended");
}

bool resident_answer(struct worker *worker, struct outcome *outcome)
{
    static const enum result_outcome outcomes[OPERATION_STATUSES] = {
        [OPERATION_OK] = OUTCOME_OK,
        [OPERATION_FAILED] = OUTCOME_PROGRAM_FAILED,
        [OPERATION_MEMORY] = OUTCOME_MEMORY_LIMIT,
        [OPERATION_DISK] = OUTCOME_DISK_LIMIT,
        [OPERATION_DEVICE] = OUTCOME_JAIL_FAILED,
    };
    uint8_t bytes[ANSWER_BYTES];
    int files[1];
    size_t file_count;
    ssize_t received =
        packet_receive(worker->resident.socket, bytes, sizeof bytes, files, 1, &file_count);
    if (received <= 0) {
        return false;
    }
    packet_close_files(files, file_count);
    struct reader in = reader_over(bytes, (size_t)received);
    uint32_t status = reader_u32(&in);
    uint32_t verdict = reader_u32(&in);
    uint32_t exit_code = reader_u32(&in);
    uint32_t fault = reader_u32(&in);
    uint32_t companion = reader_u32(&in);
    uint64_t peak_bytes = reader_u64(&in);
    struct held_figures held = {.hits = reader_u64(&in)};
    held.saved_bytes = reader_u64(&in);
    held.copies = reader_u64(&in);
    held.copied_bytes = reader_u64(&in);
    held.held_bytes = reader_u64(&in);
    held.aheads = reader_u64(&in);
    held.ahead_bytes = reader_u64(&in);
    uint32_t length = reader_u32(&in);
    const uint8_t *text = reader_view(&in, length);
    if (!reader_finished(&in) || status >= OPERATION_STATUSES || verdict > VERDICT_UNSURE ||
        exit_code > UINT8_MAX || fault >= DEVICE_FAULTS || companion > INT32_MAX) {
        (void)failed(outcome, OUTCOME_JAIL_FAILED,
                     "the computing program's answer does not decode");
        return true;
    }
    worker->resident.companion = (pid_t)companion;
    outcome->outcome = outcomes[status];
    outcome->exit_code = status == OPERATION_FAILED ? (int)exit_code : 0;
    outcome->fault = status == OPERATION_DEVICE ? (enum device_fault)fault : DEVICE_FAULT_NONE;
    outcome->verdict = (enum result_verdict)verdict;
    outcome->peak_memory_bytes = peak_bytes;
    outcome->held = held;
    (void)snprintf(outcome->detail, sizeof outcome->detail, "%.*s", (int)length,
                   text != NULL ? (const char *)text : "");
    return true;
}

bool resident_gives_up(struct worker *worker, const struct outcome *outcome)
{
    static struct outcome ignored; /* large */
    const struct resident *resident = &worker->resident;
    struct pollfd answer = {.fd = resident->socket, .events = POLLIN};
    if (outcome->outcome != OUTCOME_CANCELLED || outcome->is_frozen || resident->pid == 0 ||
        strcmp(program_of(), PLUGIN_HELPER) != 0) {
        return false;
    }
    (void)kill(resident->pid, SIGTERM); /* a resident that has ended closed its socket */
    return poll(&answer, 1, ASK_CANCEL_MS) == 1 && resident_answer(worker, &ignored);
}

static uint64_t cpu_ns_of(pid_t pid)
{
    clockid_t clock;
    struct timespec used;
    if (pid == 0 || clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) != 0) {
        return 0;
    }
    return (uint64_t)used.tv_sec * UINT64_C(1000000000) + (uint64_t)used.tv_nsec;
}

uint64_t resident_cpu_ns(const struct worker *worker)
{
    return cpu_ns_of(worker->resident.pid) + cpu_ns_of(worker->resident.companion);
}

void resident_forget(struct worker *worker)
{
    struct resident *resident = &worker->resident;
    (void)close(resident->socket);
    (void)close(resident->pipes[0]);
    (void)close(resident->pipes[1]);
    *resident = (struct resident){.pid = 0};
}
