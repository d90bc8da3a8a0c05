#include "provider/jail/jail.h"

#include "base/cursor.h"
#include "base/text.h"
#include "formats/staging/staged_link.h"
#include "provider/jail/jail_internal.h"
#include "provider/worker/packet.h"
#include "provider/worker/wire.h"
#include "runtime/clock.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WALL_DEFAULT_NS (UINT64_C(3600) * 1000000000)
#define CAPTURE_DEFAULT_BYTES (UINT64_C(1) << 20)
#define CAPTURE_KEPT_BYTES (UINT64_C(4) << 20) /* memory above this is freed after a run */

static_assert((int)JAIL_NOOPS_MAX <= (int)WIRE_NOOPS_MAX, "one packet carries them all");
static_assert((int)JAIL_MAPPED_MAX <= (int)WIRE_MAPPED_MAX, "one GO carries them all");
static_assert((int)JAIL_CONTENTS_MAX <= (int)WIRE_CONTENTS_MAX, "one RUN tells them all");
static_assert((int)JAIL_MADE_MAX <= (int)WIRE_MADE_MAX, "one RUN tells them all");

enum {
    GRACE_MS = 10000, /* beyond the worker's own limits; then the jail is killed */
    NOOP_WAIT_MS = 30000,
    GIVE_UP_LOOK_MS = 50, /* between two looks at a request's give_up */
};

__attribute__((format(printf, 3, 4))) bool
jail_conclude(struct jail_reply *reply, enum result_outcome outcome, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    reply->outcome = outcome;
    (void)vsnprintf(reply->detail, sizeof reply->detail, format, arguments);
    va_end(arguments);
    return false;
}

static void broken(struct jail *jail, struct jail_reply *reply, const char *why)
{
    jail->ended = true;
    launcher_kill(jail->control);
    (void)jail_conclude(reply, OUTCOME_JAIL_FAILED, "%s", why);
}

const char *jail_shown(const char *name, char ret_text[128])
{
    text_printable(name, strlen(name), ret_text, 128);
    return ret_text;
}

static bool acceptable(const struct jail *jail, const struct jail_request *request,
                       struct jail_reply *reply)
{
    char text[128];
    uint64_t total = request->stdin_size;
    size_t mapped = 0;
    if (request->argv == NULL || request->argv[0] == NULL || request->argv[0][0] == '\0') {
        return jail_conclude(reply, OUTCOME_PROGRAM_MISSING, "no program is named");
    }
    if (request->input_count > WIRE_INPUTS_MAX || request->output_count > LIMIT_OUTPUTS) {
        return jail_conclude(reply, OUTCOME_REFUSED, "more than %d inputs or %d outputs",
                             WIRE_INPUTS_MAX, LIMIT_OUTPUTS);
    }
    for (size_t i = 0; i < request->input_count; i++) {
        assert(request->inputs[i].link == NULL ||
               staged_link_problem(request->inputs[i].name, request->inputs[i].link) == NULL);
        if (!wire_name_valid(request->inputs[i].name)) {
            return jail_conclude(reply, OUTCOME_REFUSED,
                                 "input name \"%s\" is not a plain relative path",
                                 jail_shown(request->inputs[i].name, text));
        }
        total = request->inputs[i].size > UINT64_MAX - total ? UINT64_MAX
                                                             : total + request->inputs[i].size;
        mapped += request->inputs[i].is_mapped;
        assert(!request->inputs[i].is_mapped ||
               (request->tensor_threads > 0 && request->inputs[i].offset == 0));
        assert(!request->inputs[i].is_held ||
               (request->inputs[i].content != NULL && request->tensor_threads > 0));
        assert(!request->inputs[i].is_held || !request->inputs[i].is_mapped);
    }
    assert(mapped <= JAIL_MAPPED_MAX);
    assert(request->made_count <= JAIL_MADE_MAX);
    assert(!request->has_ahead || request->tensor_threads > 0);
    for (size_t i = 0; i < request->output_count; i++) {
        char name[LIMIT_PATH_BYTES + 1];
        const bool is_folder = wire_is_folder(request->outputs[i]);
        (void)snprintf(name, sizeof name, "%s", request->outputs[i]);
        name[strlen(name) - is_folder] = '\0';
        const bool is_top =
            strcmp(request->outputs[i], "./") == 0 && jail_pattern(request, i) != NULL;
        assert(!is_folder || request->take_entry != NULL);
        assert(is_folder || jail_pattern(request, i) == NULL);
        if (!wire_name_valid(name) && !is_top) {
            return jail_conclude(reply, OUTCOME_REFUSED,
                                 "output name \"%s\" is not a plain relative path",
                                 jail_shown(request->outputs[i], text));
        }
    }
    if (request->checkpoint != NULL && !wire_name_valid(request->checkpoint)) {
        return jail_conclude(reply, OUTCOME_REFUSED,
                             "the checkpoint \"%s\" is not a plain relative path",
                             jail_shown(request->checkpoint, text));
    }
    if (!jail->keep && total > jail->limits.disk_bytes) {
        return jail_conclude(reply, OUTCOME_DISK_LIMIT, "the inputs take %s, the disk limit is %s",
                             text_size(total).text, text_size(jail->limits.disk_bytes).text);
    }
    return true;
}

/* Receives the next message about run `number` and drops older ones. Returns 0 when the jail is
 * gone or too late; time in which the run stands still does not count. */
static ssize_t receive(struct jail *jail, int64_t end_ns, uint8_t *bytes, size_t capacity,
                       int *files, size_t *ret_file_count)
{
    for (;;) {
        int64_t left_ms = (end_ns + jail_freeze_total_ns(jail) - clock_monotonic_ns()) / 1000000;
        struct pollfd polled = {.fd = jail->socket, .events = POLLIN};
        int ready =
            poll(&polled, 1, left_ms > 0 ? (int)(left_ms < 1000000 ? left_ms : 1000000) : 0);
        if (ready < 0 && errno == EINTR) {
            continue;
        }
        if (ready == 0 && left_ms > 0) {
            continue;
        }
        if (ready <= 0) {
            errno = ETIMEDOUT;
            return 0;
        }
        ssize_t length =
            packet_receive(jail->socket, bytes, capacity, files, PACKET_FILES, ret_file_count);
        if (length <= 0) {
            errno = EPIPE;
            return 0;
        }
        struct reader in = reader_over(bytes, (size_t)length);
        (void)reader_u8(&in);
        if (reader_u32(&in) == jail->number && !in.failed) {
            return length;
        }
        packet_close_files(files, *ret_file_count);
    }
}

/* Tells the worker to go or cancel, once all places are filled, and else to make further places.
 * Returns false when the jail is gone. */
static bool tell_to_go(struct jail *jail, struct staging *staging, struct jail_reply *reply)
{
    if (!staging->failed && staging->done < staging->places) {
        return jail_wire_send(jail->socket, WIRE_MORE, jail->number);
    }
    bool goes = !staging->failed && jail_inputs_check(staging, reply);
    return goes ? jail_wire_send_go(jail->socket, jail->number, staging->request)
                : jail_wire_send(jail->socket, WIRE_CANCEL, jail->number);
}

static void keep_captured(struct jail *jail, struct jail_output *output, size_t which,
                          uint64_t size)
{
    if (size > 0) {
        output->fd = fcntl(jail->capture[which], F_DUPFD_CLOEXEC, 3);
        output->size = output->fd >= 0 ? size : 0;
    }
}

/* Applies the kernel's counters for the jail's group, which the worker cannot see. */
static void blame_group(const struct jail *jail, const struct cgroup_events *before,
                        struct jail_reply *reply)
{
    if (jail->group == NULL) {
        return;
    }
    struct cgroup_events after = cgroup_events(jail->group);
    bool memory = after.out_of_memory > before->out_of_memory;
    uint64_t forks_refused = after.forks_refused - before->forks_refused;
    /* Each fork takes some memory before it is refused. A program that forks without end thus
     * reaches the memory limit last. */
    bool bomb = forks_refused > jail->limits.processes;
    switch (reply->outcome) {
    case OUTCOME_PROGRAM_FAILED:
    case OUTCOME_SIGNALLED:
    case OUTCOME_JAIL_FAILED:
    case OUTCOME_TIME_LIMIT:
    case OUTCOME_CPU_LIMIT:
        if (memory && !bomb) {
            (void)jail_conclude(
                reply, OUTCOME_MEMORY_LIMIT,
                "killed when memory and files together reached their limits, %llu bytes",
                (unsigned long long)(jail->limits.memory_bytes + jail->limits.disk_bytes));
        } else if (forks_refused > 0 && reply->outcome != OUTCOME_JAIL_FAILED) {
            (void)jail_conclude(
                reply, OUTCOME_PROCESS_LIMIT,
                "had %u process%s, all that its limit of %u allows, and could not start another",
                (unsigned)jail->limits.processes, jail->limits.processes == 1 ? "" : "es",
                (unsigned)jail->limits.processes);
        }
        return;
    default:
        return;
    }
}

static size_t place_count(const struct jail_request *request)
{
    size_t count = 0;
    for (size_t i = 0; i < request->input_count; i++) {
        count += jail_inputs_has_place(&request->inputs[i]);
    }
    return count;
}

/* Receives the run's next message as `receive` does, and cancels the run once it is given up. */
static ssize_t receive_next(struct jail *jail, const struct jail_request *request, int64_t end_ns,
                            uint8_t *bytes, size_t capacity, int *files, size_t *ret_file_count)
{
    bool may_give_up = request->give_up != NULL;
    for (;;) {
        if (may_give_up && atomic_load(request->give_up)) {
            jail_cancel(jail, OUTCOME_CANCELLED);
            may_give_up = false;
        }
        const int64_t look_ns = clock_monotonic_ns() + (int64_t)GIVE_UP_LOOK_MS * 1000000;
        const bool is_last = !may_give_up || look_ns >= end_ns;
        const ssize_t length =
            receive(jail, is_last ? end_ns : look_ns, bytes, capacity, files, ret_file_count);
        if (length != 0 || is_last || errno != ETIMEDOUT) {
            return length;
        }
    }
}

/* Copies files of a folder that is an output, and asks for further ones. When that fails, the run
 * is cancelled, and the reply says why. Returns false when the message does not decode, names too
 * many bytes, or the jail is gone. The files are closed. */
static bool take_entries(struct jail *jail, struct staging *staging, const uint8_t *bytes,
                         size_t length, int *files, size_t file_count, struct jail_reply *reply)
{
    const struct jail_request *request = staging->request;
    static _Thread_local struct jail_entries entries; /* large; one per lane's thread */
    bool good = jail_wire_read_entries(bytes, length, request, files, file_count, &entries);
    for (size_t i = 0; good && !staging->failed && i < entries.count; i++) {
        const struct jail_entry *entry = &entries.items[i];
        struct problem problem = {""};
        const uint64_t takes =
            wire_entry_bytes(strlen(entry->name) + strlen(entry->link), entry->size);
        good = reply->folder_bytes <= request->output_bytes &&
               takes <= request->output_bytes - reply->folder_bytes &&
               staging->entries < LIMIT_FOLDER_FILES * (uint64_t)request->output_count;
        if (!good) {
            break;
        }
        reply->folder_bytes += takes;
        staging->entries++;
        const enum result_outcome taken =
            request->take_entry(request->take_context, entry, &problem);
        if (taken != OUTCOME_OK) {
            staging->failed = true;
            (void)jail_conclude(reply, taken, "%s", problem.text);
        }
    }
    packet_close_files(files, file_count);
    return good &&
           jail_wire_send(jail->socket, staging->failed ? WIRE_CANCEL : WIRE_MORE, jail->number);
}

/* Exchanges the messages from RUN to REPLY. */
static void converse(struct jail *jail, struct staging *staging, bool stdin_given,
                     struct jail_reply *reply)
{
    const struct jail_request *request = staging->request;
    int64_t grace_ns = (int64_t)GRACE_MS * 1000000;
    int64_t end_ns = clock_monotonic_ns() + (int64_t)request->wall_ns + grace_ns;
    bool gone = false;
    staging->places = place_count(request) + (!stdin_given && request->stdin_size > 0 ? 1 : 0);
    if (staging->places == 0 && !tell_to_go(jail, staging, reply)) {
        broken(jail, reply, "the jail has ended");
        return;
    }
    while (!gone) {
        uint8_t bytes[WIRE_MESSAGE_BYTES];
        int files[PACKET_FILES];
        size_t file_count = 0;
        ssize_t length =
            receive_next(jail, request, end_ns, bytes, sizeof bytes, files, &file_count);
        if (length == 0) {
            bool late = errno == ETIMEDOUT;
            broken(jail, reply, late ? "the jail did not answer in time" : "the jail has ended");
            reply->outcome = late ? OUTCOME_TIME_LIMIT : OUTCOME_JAIL_FAILED;
            reply->fault = late ? DEVICE_FAULT_HANG : DEVICE_FAULT_NONE;
            return;
        }
        if (bytes[0] == WIRE_PLACES) {
            jail_inputs_place(staging, files, file_count, reply);
            gone = !tell_to_go(jail, staging, reply);
            /* The program has its time from here on. */
            end_ns = clock_monotonic_ns() + (int64_t)request->wall_ns + grace_ns;
            continue;
        }
        if (bytes[0] == WIRE_ENTRIES) {
            if (take_entries(jail, staging, bytes, (size_t)length, files, file_count, reply)) {
                const int64_t again_ns = clock_monotonic_ns() + grace_ns;
                end_ns = again_ns > end_ns ? again_ns : end_ns;
                continue;
            }
            break;
        }
        if (bytes[0] == WIRE_SAVED) {
            if (jail_wire_read_saved(bytes, (size_t)length, request, files, file_count, reply)) {
                continue;
            }
            file_count = 0; /* closed */
        }
        if (bytes[0] == WIRE_TERMINAL) {
            if (jail_wire_take_terminal(bytes, (size_t)length, request, files, file_count)) {
                continue;
            }
            file_count = 0; /* closed */
        }
        uint64_t captured[2];
        struct jail_reply read = *reply;
        const bool is_read =
            bytes[0] == WIRE_REPLY && jail_wire_read_reply(bytes, (size_t)length, request, files,
                                                           file_count, &read, captured);
        reply->saved_count = read.saved_count; /* dropped files are gone */
        if (!is_read) {
            if (bytes[0] != WIRE_REPLY) {
                packet_close_files(files, file_count);
            }
            break;
        }
        if (!staging->failed) { /* otherwise the run was cancelled by us */
            *reply = read;
            keep_captured(jail, &reply->standard_output, 0, captured[0]);
            keep_captured(jail, &reply->standard_error, 1, captured[1]);
            jail->capture_large = captured[0] + captured[1] > CAPTURE_KEPT_BYTES;
        }
        return;
    }
    broken(jail, reply, gone ? "the jail has ended" : "the jail's answer does not decode");
}

static void shrink_capture(struct jail *jail)
{
    for (size_t i = 0; i < 2 && jail->capture_large; i++) {
        (void)fallocate(jail->capture[i], FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                        WIRE_CAPTURE_BYTES); /* a failure is harmless */
    }
    jail->capture_large = false;
}

static void start_reply(struct jail_reply *reply)
{
    memset(reply, 0, sizeof *reply);
    reply->outcome = OUTCOME_JAIL_FAILED;
    reply->standard_output.fd = reply->standard_error.fd = -1;
    for (size_t i = 0; i < LIMIT_OUTPUTS; i++) {
        reply->outputs[i].fd = -1;
    }
}

/* After this jail_cancel finds a run to cancel, and its CANCEL follows RUN on the socket. */
static bool begin(struct jail *jail, const struct jail_request *request, bool stdin_given)
{
    (void)pthread_mutex_lock(&jail->lock);
    jail->number++;
    jail->cancel_outcome = OUTCOME_OK;
    jail->kept_bytes = request->capture_bytes;
    bool sent = jail_wire_send_run(jail->socket, jail->number, request, &jail->limits, jail->keep,
                                   stdin_given);
    jail->running = sent;
    jail_freeze_restart(jail);
    if (sent && jail->frozen_since_ns != 0) {
        (void)jail_wire_send(jail->socket, WIRE_FREEZE, jail->number); /* a broken jail ends */
    }
    (void)pthread_mutex_unlock(&jail->lock);
    return sent;
}

static void finish(struct jail *jail, struct jail_reply *reply)
{
    (void)pthread_mutex_lock(&jail->lock);
    jail->running = false;
    bool ended_by_us = reply->outcome == OUTCOME_CANCELLED || reply->outcome == OUTCOME_JAIL_FAILED;
    if (jail->cancel_outcome != OUTCOME_OK && ended_by_us) {
        reply->outcome = jail->cancel_outcome;
    }
    (void)pthread_mutex_unlock(&jail->lock);
}

static void run(struct jail *jail, const struct jail_request *request, bool stdin_given,
                struct jail_reply *ret_reply)
{
    struct jail_request full = *request;
    full.wall_ns = request->wall_ns != 0 ? request->wall_ns : WALL_DEFAULT_NS;
    full.wall_ns = full.wall_ns < INT64_MAX / 4 ? full.wall_ns : INT64_MAX / 4;
    full.output_bytes =
        request->output_bytes != 0 ? request->output_bytes : jail->limits.disk_bytes;
    full.capture_bytes =
        request->capture_bytes != 0 ? request->capture_bytes : CAPTURE_DEFAULT_BYTES;
    full.capture_bytes =
        full.capture_bytes < WIRE_CAPTURE_BYTES ? full.capture_bytes : WIRE_CAPTURE_BYTES;
    full.stdin_fd = request->stdin_bytes != NULL ? -1 : request->stdin_fd;

    start_reply(ret_reply);
    ret_reply->jail_ended = jail->ended;
    if (jail->ended) {
        (void)jail_conclude(ret_reply, OUTCOME_JAIL_FAILED, "the jail has ended");
        return;
    }
    if (!acceptable(jail, &full, ret_reply)) {
        return;
    }
    shrink_capture(jail);
    struct cgroup_events before = {0};
    if (jail->group != NULL) {
        before = cgroup_events(jail->group);
    }
    bool holds_wrong = false;
    int64_t started_ns = clock_monotonic_ns();
    if (begin(jail, &full, stdin_given)) {
        struct staging staging = {.request = &full};
        converse(jail, &staging, stdin_given, ret_reply);
        finish(jail, ret_reply);
        jail_inputs_blame(&staging, ret_reply);
        holds_wrong = jail_inputs_told_wrong(&staging);
        jail_inputs_release(&full);
    } else if (errno == E2BIG) {
        (void)jail_conclude(ret_reply, OUTCOME_REFUSED, "arguments and environment are too long");
    } else {
        broken(jail, ret_reply, "the jail has ended");
    }
    ret_reply->frozen_ns = jail_freeze_total_ns(jail);
    ret_reply->busy_ns = clock_monotonic_ns() - started_ns - ret_reply->frozen_ns;
    blame_group(jail, &before, ret_reply);
    ret_reply->jail_ended = jail->ended || holds_wrong;
}

void jail_run(struct jail *jail, const struct jail_request *request, struct jail_reply *ret_reply)
{
    run(jail, request, false, ret_reply);
}

void jail_run_given(struct jail *jail, const struct jail_request *request,
                    struct jail_reply *ret_reply)
{
    assert(jail->keep);
    assert(request->stdin_fd >= 0);
    struct jail_request given = *request;
    given.stdin_size = 0;
    run(jail, &given, true, ret_reply);
}

static void close_output(struct jail_output *output)
{
    if (output->fd >= 0) {
        (void)close(output->fd);
        output->fd = -1;
    }
}

void jail_reply_fini(struct jail_reply *reply)
{
    close_output(&reply->standard_output);
    close_output(&reply->standard_error);
    jail_wire_drop_saved(reply);
    for (size_t i = 0; i < LIMIT_OUTPUTS; i++) {
        close_output(&reply->outputs[i]);
    }
}

static bool ask(struct jail *jail, unsigned kind)
{
    if (jail->ended) {
        return false;
    }
    jail->number++;
    uint8_t bytes[512] = {0};
    int files[PACKET_FILES];
    size_t file_count = 0;
    int64_t end_ns = clock_monotonic_ns() + (int64_t)NOOP_WAIT_MS * 1000000;
    ssize_t length = 0;
    if (jail_wire_send(jail->socket, kind, jail->number)) {
        length = receive(jail, end_ns, bytes, sizeof bytes, files, &file_count);
    }
    struct jail_reply reply;
    uint64_t captured[2];
    start_reply(&reply);
    if (length == 0 || bytes[0] != WIRE_REPLY ||
        !jail_wire_read_reply(bytes, (size_t)length, NULL, files, file_count, &reply, captured)) {
        broken(jail, &reply, "");
        return false;
    }
    return reply.outcome == OUTCOME_OK;
}

bool jail_noop(struct jail *jail)
{
    return ask(jail, WIRE_NOOP);
}

/* Returns true when every subtask is answered, in the order asked. */
static bool all_done(const uint8_t *bytes, size_t length, const uint32_t *subtasks, size_t count)
{
    struct reader in = reader_over(bytes, length);
    bool good = reader_u8(&in) == WIRE_DONE;
    (void)reader_u32(&in); /* receive has checked the run */
    good = good && reader_u32(&in) == count;
    for (size_t i = 0; good && i < count; i++) {
        good = reader_u32(&in) == subtasks[i];
    }
    return good && reader_finished(&in);
}

bool jail_noops(struct jail *jail, const uint32_t *subtasks, size_t count)
{
    assert(count > 0 && count <= JAIL_NOOPS_MAX);
    uint8_t bytes[WIRE_NOOPS_BYTES];
    int files[PACKET_FILES];
    size_t file_count = 0;
    if (jail->ended) {
        return false;
    }
    jail->number++;
    struct writer out = writer_over(bytes, sizeof bytes);
    writer_u8(&out, WIRE_NOOPS);
    writer_u32(&out, jail->number);
    writer_u32(&out, (uint32_t)count);
    for (size_t i = 0; i < count; i++) {
        writer_u32(&out, subtasks[i]);
    }
    assert(!out.failed);
    int64_t end_ns = clock_monotonic_ns() + (int64_t)NOOP_WAIT_MS * 1000000;
    ssize_t length = 0;
    if (packet_send(jail->socket, bytes, out.position, NULL, 0)) {
        length = receive(jail, end_ns, bytes, sizeof bytes, files, &file_count);
        packet_close_files(files, file_count);
    }
    if (length == 0 || !all_done(bytes, (size_t)length, subtasks, count)) {
        struct jail_reply reply;
        start_reply(&reply);
        broken(jail, &reply, "");
        return false;
    }
    return true;
}

bool jail_clean(struct jail *jail)
{
    return ask(jail, WIRE_CLEAN);
}

void jail_cancel(struct jail *jail, enum result_outcome outcome)
{
    assert(outcome != OUTCOME_OK);
    (void)pthread_mutex_lock(&jail->lock);
    if (jail->running) {
        jail->cancel_outcome = outcome;
        (void)jail_wire_send(jail->socket, WIRE_CANCEL, jail->number); /* a broken jail ends */
    }
    (void)pthread_mutex_unlock(&jail->lock);
}

static bool tell(struct jail *jail, unsigned kind)
{
    (void)pthread_mutex_lock(&jail->lock);
    bool is_running = jail->running;
    if (is_running) {
        (void)jail_wire_send(jail->socket, kind, jail->number); /* a broken jail ends */
    }
    if (is_running && kind == WIRE_NOTICE) {
        jail_freeze_end(jail); /* the worker does the same */
    }
    (void)pthread_mutex_unlock(&jail->lock);
    return is_running;
}

bool jail_notice(struct jail *jail)
{
    return tell(jail, WIRE_NOTICE);
}

bool jail_hang_up(struct jail *jail)
{
    return tell(jail, WIRE_HANG_UP);
}
