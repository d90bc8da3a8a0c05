/* The program bourse-worker is process 1 of a jail. The worker answers the agent on descriptor 3
 * until the agent hangs up (wire.h).
 *
 *     REPLY   u32 outcome, u32 exit code, u32 signal, u32 verdict, u64 CPU ns, u64 peak memory,
 *             u32 flags, u64 bytes of stdout, u64 of stderr, the seven u64 of struct held_figures,
 *             u32 count of outputs, for each u8 kind (enum wire_output_kind) and u64 size, then
 *             u32 length and the text of the detail; one descriptor for each file among the
 *             outputs */
#include "base/cursor.h"
#include "base/id.h"
#include "formats/staging/staged_link.h"
#include "provider/worker/packet.h"
#include "provider/worker/wire.h"
#include "provider/worker/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

static struct writer message_over(uint8_t *bytes, size_t capacity, enum wire_kind kind,
                                  uint32_t run)
{
    struct writer out = writer_over(bytes, capacity);
    writer_u8(&out, (uint8_t)kind);
    writer_u32(&out, run);
    return out;
}

static void send_message(const struct worker *worker, const struct writer *out, const int *files,
                         size_t file_count)
{
    if (out->failed || !packet_send(worker->socket, out->bytes, out->position, files, file_count)) {
        _exit(1); /* the agent is gone, or this is a bug; the jail ends with process 1 */
    }
}

static void hello(const struct worker *worker)
{
    uint8_t bytes[256];
    struct writer out = message_over(bytes, sizeof bytes, WIRE_HELLO, 0);
    writer_u32(&out, WIRE_VERSION);
    writer_u32(&out, confine_facts());
    writer_u32(&out, worker->ruleset >= 0 ? (uint32_t)confine_abi() : 0);
    for (size_t i = 0; i < WIRE_NAMESPACES; i++) {
        char path[64];
        struct stat status;
        (void)snprintf(path, sizeof path, "/proc/self/ns/%s", wire_namespace_names[i]);
        writer_u64(&out, stat(path, &status) == 0 ? (uint64_t)status.st_ino : 0);
    }
    send_message(worker, &out, NULL, 0);
}

static void reply(const struct worker *worker, uint32_t run, const struct outcome *outcome)
{
    uint8_t bytes[4096];
    int files[LIMIT_OUTPUTS];
    size_t file_count = 0;
    struct writer out = message_over(bytes, sizeof bytes, WIRE_REPLY, run);
    writer_u32(&out, (uint32_t)outcome->outcome);
    writer_u32(&out, (uint32_t)outcome->exit_code);
    writer_u32(&out, (uint32_t)outcome->signal);
    writer_u32(&out, (uint32_t)outcome->verdict);
    writer_u32(&out, (uint32_t)outcome->fault);
    writer_u64(&out, outcome->cpu_ns);
    writer_u64(&out, outcome->peak_memory_bytes);
    writer_u32(&out, (outcome->cut[0] ? WIRE_REPLY_STDOUT_CUT : 0U) |
                         (outcome->cut[1] ? WIRE_REPLY_STDERR_CUT : 0U) |
                         (outcome->was_noticed ? WIRE_REPLY_NOTICED : 0U) |
                         (outcome->has_checkpoint ? WIRE_REPLY_SAVED : 0U));
    writer_u64(&out, outcome->captured[0]);
    writer_u64(&out, outcome->captured[1]);
    writer_u64(&out, outcome->held.hits);
    writer_u64(&out, outcome->held.saved_bytes);
    writer_u64(&out, outcome->held.copies);
    writer_u64(&out, outcome->held.copied_bytes);
    writer_u64(&out, outcome->held.held_bytes);
    writer_u64(&out, outcome->held.aheads);
    writer_u64(&out, outcome->held.ahead_bytes);
    size_t count = outcome->outcome == OUTCOME_OK ? outcome->output_count : 0;
    writer_u32(&out, (uint32_t)count);
    for (size_t i = 0; i < count; i++) {
        const bool is_file = outcome->output_files[i] >= 0;
        writer_u8(&out, (uint8_t)(!is_file                        ? WIRE_OUTPUT_FOLDER
                                  : outcome->output_executable[i] ? WIRE_OUTPUT_PROGRAM
                                                                  : WIRE_OUTPUT_FILE));
        writer_u64(&out, is_file ? outcome->output_sizes[i] : 0);
        if (is_file) {
            files[file_count++] = outcome->output_files[i];
        }
    }
    size_t length = strlen(outcome->detail);
    writer_u32(&out, (uint32_t)length);
    writer_bytes(&out, outcome->detail, length);
    send_message(worker, &out, files, file_count);
}

/* Reads a text of the body in place. The text has a u32 length, which counts the NUL, and bytes. */
static char *read_text(struct reader *in)
{
    uint32_t length = reader_u32(in);
    const uint8_t *bytes = reader_view(in, length);
    if (bytes == NULL || length == 0 || memchr(bytes, '\0', length) != bytes + length - 1) {
        in->failed = true;
        return NULL;
    }
    return (char *)(uintptr_t)bytes; /* the body lives as long as the run */
}

static char **read_texts(struct reader *in, size_t most)
{
    uint32_t count = reader_u32(in);
    if (count > most) {
        in->failed = true;
        return NULL;
    }
    char **texts = calloc((size_t)count + 1, sizeof *texts);
    for (uint32_t i = 0; texts != NULL && i < count; i++) {
        texts[i] = read_text(in);
    }
    in->failed = in->failed || texts == NULL;
    return texts;
}

static void read_inputs(struct reader *in, struct run *run)
{
    run->input_count = reader_u32(in);
    if (run->input_count > WIRE_INPUTS_MAX) {
        in->failed = true;
        run->input_count = 0;
    }
    run->inputs = calloc(run->input_count + 1, sizeof *run->inputs);
    in->failed = in->failed || run->inputs == NULL;
    for (size_t i = 0; i < run->input_count && !in->failed; i++) {
        run->inputs[i].file = -1;
        run->inputs[i].kind = reader_u8(in);
        run->inputs[i].name = read_text(in);
        run->inputs[i].link = run->inputs[i].kind == WIRE_INPUT_LINK ? read_text(in) : NULL;
        run->inputs[i].has_look = reader_u8(in) != 0;
        run->inputs[i].mode = run->inputs[i].has_look ? reader_u16(in) & 0777 : 0;
        run->inputs[i].modified_ns = run->inputs[i].has_look ? reader_i64(in) : 0;
        run->inputs[i].content = reader_u8(in) != 0 ? reader_view(in, sizeof(struct hash32)) : NULL;
        run->content_count += run->inputs[i].content != NULL;
        in->failed = in->failed || run->inputs[i].kind >= WIRE_INPUT_KINDS ||
                     !wire_name_valid(run->inputs[i].name) ||
                     (run->inputs[i].link != NULL &&
                      staged_link_problem(run->inputs[i].name, run->inputs[i].link) != NULL);
        run->mapped_count += run->inputs[i].kind == WIRE_INPUT_MAPPED;
        run->held_count += run->inputs[i].kind == WIRE_INPUT_HELD;
    }
    in->failed = in->failed ||
                 run->mapped_count > (run->tensor_threads > 0 ? (size_t)WIRE_MAPPED_MAX : 0) ||
                 run->content_count > (run->tensor_threads > 0 ? (size_t)WIRE_CONTENTS_MAX : 0) ||
                 run->held_count > run->content_count;
}

static void read_made(struct reader *in, struct run *run)
{
    run->made_count = reader_u32(in);
    if (run->made_count > (run->tensor_threads > 0 ? (size_t)WIRE_MADE_MAX : 0)) {
        in->failed = true;
        run->made_count = 0;
    }
    for (size_t i = 0; i < run->made_count; i++) {
        run->made[i].name = read_text(in);
        run->made[i].content = reader_view(in, sizeof(struct hash32));
    }
}

static bool read_run(const uint8_t *body, size_t length, struct run *run)
{
    struct reader in = reader_over(body, length);
    uint8_t flags = reader_u8(&in);
    run->keep = (flags & WIRE_RUN_KEEP) != 0;
    run->wants_stdin = (flags & WIRE_RUN_STDIN) != 0;
    run->keeps_trees = (flags & WIRE_RUN_TREES) != 0;
    run->has_ahead = (flags & WIRE_RUN_AHEAD) != 0;
    run->wall_ns = reader_u64(&in);
    run->cpu_ns = reader_u64(&in);
    run->memory_bytes = reader_u64(&in);
    run->disk_bytes = reader_u64(&in);
    run->output_bytes = reader_u64(&in);
    run->capture_bytes = reader_u64(&in);
    run->processes = reader_u32(&in);
    run->tensor_threads = reader_u32(&in);
    run->argv = read_texts(&in, LIMIT_ARGUMENTS);
    run->env = read_texts(&in, LIMIT_VARIABLES);
    read_inputs(&in, run);
    read_made(&in, run);
    run->output_count = reader_u32(&in);
    if (run->output_count > LIMIT_OUTPUTS) {
        return false;
    }
    for (size_t i = 0; i < run->output_count && !in.failed; i++) {
        const uint8_t kind = reader_u8(&in);
        run->is_folder[i] = kind == WIRE_OUTPUT_FOLDER || kind == WIRE_OUTPUT_PATTERN;
        run->outputs[i] = read_text(&in);
        run->patterns[i] = kind == WIRE_OUTPUT_PATTERN ? read_text(&in) : NULL;
        in.failed = in.failed || kind == WIRE_OUTPUT_PROGRAM || kind > WIRE_OUTPUT_PATTERN ||
                    (!wire_name_valid(run->outputs[i]) &&
                     (run->patterns[i] == NULL || strcmp(run->outputs[i], ".") != 0));
    }
    if (reader_u8(&in) != 0) {
        run->checkpoint = read_text(&in);
        in.failed = in.failed || !wire_name_valid(run->checkpoint);
    }
    run->terminal = reader_u8(&in);
    run->columns = reader_u16(&in);
    run->rows = reader_u16(&in);
    return reader_finished(&in) && run->argv[0] != NULL && run->terminal <= WIRE_TERMINAL_PLAIN;
}

/* Takes the body of a RUN, which is behind the message or in the memory file that came with it. */
static uint8_t *take_body(struct reader *in, const int *file, size_t *ret_length)
{
    uint64_t length = reader_u64(in);
    if (length > WIRE_BODY_BYTES || in->failed) {
        return NULL;
    }
    uint8_t *body = malloc((size_t)length + 1);
    bool taken = body != NULL;
    if (taken && file != NULL) {
        taken = pread(*file, body, (size_t)length, 0) == (ssize_t)length;
    } else if (taken) {
        reader_bytes(in, body, (size_t)length);
        taken = reader_finished(in);
    }
    if (!taken) {
        free(body);
        return NULL;
    }
    *ret_length = (size_t)length;
    return body;
}

bool worker_wait(const struct worker *worker, const struct run *run, uint8_t kind, int *ret_files,
                 size_t *ret_file_count, struct outcome *outcome)
{
    for (;;) {
        uint8_t bytes[64];
        ssize_t length = packet_receive(worker->socket, bytes, sizeof bytes, ret_files,
                                        WIRE_MAPPED_MAX, ret_file_count);
        if (length <= 0) {
            _exit(0);
        }
        struct reader in = reader_over(bytes, (size_t)length);
        uint8_t received = reader_u8(&in);
        bool is_ours = reader_u32(&in) == run->number && !in.failed;
        if (is_ours && received == kind) {
            return true;
        }
        packet_close_files(ret_files, *ret_file_count);
        if (!is_ours) {
            continue; /* the message is about an earlier run */
        }
        if (received == WIRE_FREEZE || received == WIRE_THAW) {
            outcome->is_frozen = received == WIRE_FREEZE; /* the program stops at its start */
        }
        if (received == WIRE_CANCEL || (received == WIRE_NOTICE && !outcome->has_run)) {
            outcome->outcome = OUTCOME_CANCELLED;
            (void)snprintf(outcome->detail, sizeof outcome->detail, "the subtask was %s",
                           received == WIRE_NOTICE ? "told to end before it ran"
                           : outcome->has_run      ? "cancelled while its outputs were read"
                                                   : "cancelled before it ran");
            return false;
        }
    }
}

static void send_places(const struct worker *worker, const struct run *run,
                        const struct places *places)
{
    uint8_t bytes[16];
    struct writer out = message_over(bytes, sizeof bytes, WIRE_PLACES, run->number);
    writer_u32(&out, (uint32_t)places->count);
    send_message(worker, &out, places->files, places->count);
}

/* Brings all inputs in, batch by batch. Returns false when the outcome says why not. */
static bool stage_inputs(struct worker *worker, struct run *run, struct outcome *outcome)
{
    struct places places = {.next = 0};
    bool good;
    bool is_last;
    do {
        int files[WIRE_MAPPED_MAX];
        size_t file_count = 0;
        good = stage_places(worker, run, &places, outcome);
        is_last = places.next >= places.total;
        if (good && places.count > 0) {
            send_places(worker, run, &places);
        }
        good = good &&
               worker_wait(worker, run, is_last ? WIRE_GO : WIRE_MORE, files, &file_count, outcome);
        stage_seal(run, &places);
        if (good && (is_last ? !stage_map(run, files, file_count) : file_count > 0)) {
            _exit(1);
        }
    } while (good && !is_last);
    return good && stage_links(worker, run, outcome);
}

/* Returns true when a program that was told to end has ended before its work was done, by itself or
 * by force. */
static bool ended_early(enum result_outcome outcome)
{
    return outcome == OUTCOME_PROGRAM_FAILED || outcome == OUTCOME_SIGNALLED ||
           outcome == OUTCOME_OUTPUT_MISSING || outcome == OUTCOME_CANCELLED;
}

static void stage_and_run(struct worker *worker, struct run *run, struct outcome *outcome)
{
    if (!stage_inputs(worker, run, outcome)) {
        return;
    }
    run_program(worker, run, outcome);
    outcome->has_run = true;
    stage_unmap(run);
    if (outcome->outcome == OUTCOME_OK) {
        stage_outputs(worker, run, outcome);
    }
    if (run->checkpoint != NULL && outcome->was_noticed && ended_early(outcome->outcome)) {
        work_checkpoint_send(worker, run, outcome);
    }
}

static void handle_run(struct worker *worker, uint32_t number, struct reader *in, int *files,
                       size_t file_count)
{
    struct run run = {.number = number, .stdin_file = -1, .ahead_file = -1};
    struct outcome outcome = {.outcome = OUTCOME_JAIL_FAILED};
    size_t length = 0;
    size_t body_files = reader_u8(in) != 0 && file_count > 0 ? 1 : 0;
    uint8_t *body = take_body(in, body_files != 0 ? files : NULL, &length);
    packet_close_files(files, body_files);
    if (file_count > body_files) {
        run.stdin_file = files[body_files];
    }
    const bool is_read = body != NULL && read_run(body, length, &run);
    if (run.has_ahead) {
        run.ahead_file = run.stdin_file;
        run.stdin_file = -1;
    }
    if (is_read) {
        stage_and_run(worker, &run, &outcome);
    } else {
        (void)snprintf(outcome.detail, sizeof outcome.detail, "the agent's RUN does not decode");
    }
    reply(worker, number, &outcome);

    for (size_t i = 0; i < outcome.output_count; i++) {
        if (outcome.output_files[i] >= 0) {
            (void)close(outcome.output_files[i]);
        }
    }
    if (run.stdin_file >= 0) {
        (void)close(run.stdin_file);
    }
    if (run.ahead_file >= 0) {
        (void)close(run.ahead_file);
    }
    bool keep = run.keep;
    free(run.argv);
    free(run.env);
    free(run.inputs);
    free(body);
    if (!keep && !stage_empty(worker)) {
        _exit(2); /* the next subtask must never see this one's files */
    }
}

/* Answers subtasks that do nothing, each by its index, all in one message. */
static void answer_noops(const struct worker *worker, uint32_t number, struct reader *in)
{
    uint8_t bytes[WIRE_NOOPS_BYTES];
    struct writer out = message_over(bytes, sizeof bytes, WIRE_DONE, number);
    uint32_t count = reader_u32(in);
    writer_u32(&out, count);
    for (uint32_t i = 0; i < count && !in->failed && !out.failed; i++) {
        writer_u32(&out, reader_u32(in));
    }
    if (!reader_finished(in)) {
        _exit(1);
    }
    send_message(worker, &out, NULL, 0);
}

static void handle(struct worker *worker, struct reader *in, int *files, size_t file_count)
{
    struct outcome nothing = {.outcome = OUTCOME_OK};
    uint8_t kind = reader_u8(in);
    uint32_t number = reader_u32(in);
    switch (in->failed ? 0 : kind) {
    case WIRE_SETUP:
        worker->watch_memory = reader_u8(in) != 0;
        worker->count_processes = reader_u8(in) != 0;
        if (file_count != (worker->watch_memory ? 2 : 3) || !reader_finished(in) ||
            worker->capture[0] >= 0) {
            _exit(1);
        }
        worker->capture[0] = files[0];
        worker->capture[1] = files[1];
        if (!worker->watch_memory) {
            worker->memory_file = files[2];
            worker->own_bytes = watch_group_memory(worker, true);
        }
        return;
    case WIRE_RUN:
        if (worker->capture[0] < 0) {
            _exit(1);
        }
        handle_run(worker, number, in, files, file_count);
        return;
    case WIRE_CLEAN:
        nothing.outcome = stage_empty(worker) ? OUTCOME_OK : OUTCOME_JAIL_FAILED;
        reply(worker, number, &nothing);
        break;
    case WIRE_NOOP:
        reply(worker, number, &nothing);
        break;
    case WIRE_NOOPS:
        answer_noops(worker, number, in);
        break;
    default:
        break; /* a late CANCEL or GO */
    }
    packet_close_files(files, file_count);
}

static bool prepare(struct worker *worker)
{
    static const char *const folders[FOLDERS] = {"/work", "/tmp", "/dev/shm"};
    sigset_t children;
    (void)sigemptyset(&children);
    (void)sigaddset(&children, SIGCHLD);
    (void)umask(022);
    worker->null = open("/dev/null", O_RDWR | O_CLOEXEC);
    worker->children = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
    worker->ruleset = confine_ruleset();
    for (size_t i = 0; i < FOLDERS; i++) {
        worker->folders[i] = open(folders[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (worker->folders[i] < 0) {
            return false;
        }
    }
    return worker->null >= 0 && worker->children >= 0 &&
           sigprocmask(SIG_BLOCK, &children, NULL) == 0 && chdir("/work") == 0 &&
           fcntl(worker->socket, F_SETFD, FD_CLOEXEC) == 0;
}

/* Takes the standard streams away from the worker, and makes its memory and descriptors unreadable
 * to the job's processes. */
static bool hide_worker(const struct worker *worker)
{
    for (int i = 0; i < 3; i++) {
        if (dup2(worker->null, i) < 0) {
            return false;
        }
    }
    return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0;
}

int main(int count, char **words)
{
    static uint8_t bytes[WIRE_MESSAGE_BYTES + 64];
    struct worker worker = {.socket = WIRE_SOCKET,
                            .capture = {-1, -1},
                            .memory_file = -1,
                            .directory = count > 1 ? words[1] : NULL};
    if (!prepare(&worker)) {
        (void)fprintf(stderr, "bourse-worker: cannot set up the jail: %s\n", strerror(errno));
        return 1;
    }
    hello(&worker);
    if (!hide_worker(&worker)) {
        return 1;
    }
    for (;;) {
        int files[3];
        size_t file_count;
        ssize_t length = packet_receive(worker.socket, bytes, sizeof bytes, files, 3, &file_count);
        if (length <= 0) {
            return 0; /* the agent closed the jail */
        }
        struct reader in = reader_over(bytes, (size_t)length);
        handle(&worker, &in, files, file_count);
    }
}
