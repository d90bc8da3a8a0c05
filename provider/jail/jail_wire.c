/* provider/jail/jail_wire.c holds the agent's half of provider/worker/wire.h. Messages of the
 * worker are checked like those of any peer. */
#include "base/cursor.h"
#include "base/pattern.h"
#include "base/text.h"
#include "formats/staging/staged_link.h"
#include "provider/jail/jail_internal.h"
#include "provider/worker/packet.h"
#include "provider/worker/wire.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Device numbers of /dev/ptmx, which the kernel never changes. */
enum { TERMINAL_MAJOR = 5, TERMINAL_MASTER = 2 };

bool jail_wire_read_hello(const uint8_t *bytes, size_t length, struct wire_hello *ret_hello)
{
    struct reader in = reader_over(bytes, length);
    bool hello = reader_u8(&in) == WIRE_HELLO;
    (void)reader_u32(&in);
    ret_hello->version = reader_u32(&in);
    ret_hello->facts = reader_u32(&in);
    ret_hello->landlock_abi = reader_u32(&in);
    for (size_t i = 0; i < WIRE_NAMESPACES; i++) {
        ret_hello->namespaces[i] = reader_u64(&in);
    }
    return hello && reader_finished(&in);
}

static void write_text(struct writer *out, const char *text)
{
    size_t length = strlen(text) + 1;
    writer_u32(out, (uint32_t)length);
    writer_bytes(out, text, length);
}

static const char *value_in(const char *const *env, const char *name)
{
    size_t length = strlen(name);
    for (; env != NULL && *env != NULL; env++) {
        if (strncmp(*env, name, length) == 0 && (*env)[length] == '=') {
            return *env + length + 1;
        }
    }
    return NULL;
}

static void write_environment(struct writer *out, const char *const *env)
{
    static const char *const defaults[][2] = {{"PATH", "PATH=/usr/local/bin:/usr/bin:/bin"},
                                              {"HOME", "HOME=/work"},
                                              {"TMPDIR", "TMPDIR=/tmp"},
                                              {"LANG", "LANG=C.UTF-8"}};
    enum { DEFAULTS = sizeof defaults / sizeof *defaults };
    uint32_t count = 0;
    for (size_t i = 0; i < DEFAULTS; i++) {
        count += value_in(env, defaults[i][0]) == NULL;
    }
    for (size_t i = 0; env != NULL && env[i] != NULL; i++) {
        count++;
    }
    writer_u32(out, count);
    for (size_t i = 0; i < DEFAULTS; i++) {
        if (value_in(env, defaults[i][0]) == NULL) {
            write_text(out, defaults[i][1]);
        }
    }
    for (size_t i = 0; env != NULL && env[i] != NULL; i++) {
        write_text(out, env[i]);
    }
}

const char *jail_pattern(const struct jail_request *request, size_t output)
{
    return request->patterns == NULL ? NULL : request->patterns[output];
}

/* Writes an output without the slash that marks a folder. */
static void write_output(struct writer *out, const char *name, const char *pattern)
{
    static const uint8_t end = 0;
    const size_t length = strlen(name) - wire_is_folder(name);
    writer_u8(out, (uint8_t)(pattern != NULL        ? WIRE_OUTPUT_PATTERN
                             : wire_is_folder(name) ? WIRE_OUTPUT_FOLDER
                                                    : WIRE_OUTPUT_FILE));
    writer_u32(out, (uint32_t)length + 1);
    writer_bytes(out, name, length);
    writer_bytes(out, &end, 1);
    if (pattern != NULL) {
        write_text(out, pattern);
    }
}

struct run_source {
    const struct jail_request *request;
    const struct jail_limits *limits;
    bool keep, stdin_given;
};

static void write_input(struct writer *out, const struct jail_input *input)
{
    writer_u8(out, input->is_mapped      ? WIRE_INPUT_MAPPED
                   : input->is_held      ? WIRE_INPUT_HELD
                   : input->is_folder    ? WIRE_INPUT_FOLDER
                   : input->link != NULL ? WIRE_INPUT_LINK
                   : input->is_state     ? WIRE_INPUT_STATE
                   : input->executable   ? WIRE_INPUT_PROGRAM
                                         : WIRE_INPUT_DATA);
    write_text(out, input->name);
    if (input->link != NULL) {
        write_text(out, input->link);
    }
    writer_u8(out, input->has_look);
    if (input->has_look) {
        writer_u16(out, (uint16_t)input->look.mode);
        writer_i64(out, input->look.modified_ns);
    }
    writer_u8(out, input->content != NULL);
    if (input->content != NULL) {
        writer_bytes(out, input->content->bytes, sizeof(struct hash32));
    }
}

static void write_body(struct writer *out, const struct run_source *source)
{
    const struct jail_request *request = source->request;
    bool stdin_staged = !source->stdin_given && request->stdin_size > 0;
    uint32_t argument_count = 0;
    while (request->argv[argument_count] != NULL) {
        argument_count++;
    }
    writer_u8(out,
              (uint8_t)((source->keep ? WIRE_RUN_KEEP : 0) | (stdin_staged ? WIRE_RUN_STDIN : 0) |
                        (request->keeps_trees ? WIRE_RUN_TREES : 0) |
                        (request->has_ahead ? WIRE_RUN_AHEAD : 0)));
    writer_u64(out, request->wall_ns);
    writer_u64(out, request->cpu_ns);
    writer_u64(out, source->limits->memory_bytes);
    writer_u64(out, source->limits->disk_bytes);
    writer_u64(out, request->output_bytes);
    writer_u64(out, request->capture_bytes);
    writer_u32(out, source->limits->processes);
    writer_u32(out, request->tensor_threads);
    writer_u32(out, argument_count);
    for (uint32_t i = 0; i < argument_count; i++) {
        write_text(out, request->argv[i]);
    }
    write_environment(out, request->env);
    writer_u32(out, (uint32_t)request->input_count);
    for (size_t i = 0; i < request->input_count; i++) {
        write_input(out, &request->inputs[i]);
    }
    writer_u32(out, (uint32_t)request->made_count);
    for (size_t i = 0; i < request->made_count; i++) {
        write_text(out, request->made[i].name);
        writer_bytes(out, request->made[i].hash.bytes, sizeof request->made[i].hash.bytes);
    }
    writer_u32(out, (uint32_t)request->output_count);
    for (size_t i = 0; i < request->output_count; i++) {
        write_output(out, request->outputs[i], jail_pattern(request, i));
    }
    writer_u8(out, request->checkpoint != NULL);
    if (request->checkpoint != NULL) {
        write_text(out, request->checkpoint);
    }
    const struct jail_terminal *terminal = request->terminal;
    writer_u8(out, (uint8_t)(terminal == NULL     ? WIRE_TERMINAL_NONE
                             : terminal->is_plain ? WIRE_TERMINAL_PLAIN
                                                  : WIRE_TERMINAL_PERSON));
    writer_u16(out, terminal == NULL ? 0 : terminal->columns);
    writer_u16(out, terminal == NULL ? 0 : terminal->rows);
}

/* Writes a body that is too long for one message into a memory file, which holds nothing else. */
static int body_file(const struct run_source *source, size_t length)
{
    uint8_t *bytes = malloc(length);
    int file = bytes != NULL ? memfd_create("request", MFD_CLOEXEC) : -1;
    if (file >= 0) {
        struct writer out = writer_over(bytes, length);
        write_body(&out, source);
        if (write(file, bytes, length) != (ssize_t)length) {
            (void)close(file);
            file = -1;
        }
    }
    free(bytes);
    return file;
}

bool jail_wire_send_run(int socket, uint32_t number, const struct jail_request *request,
                        const struct jail_limits *limits, bool keep, bool stdin_given)
{
    struct run_source source = {
        .request = request, .limits = limits, .keep = keep, .stdin_given = stdin_given};
    struct writer measure = writer_counting();
    write_body(&measure, &source);
    if (measure.position > WIRE_BODY_BYTES) {
        errno = E2BIG;
        return false;
    }
    uint8_t bytes[WIRE_MESSAGE_BYTES];
    struct writer out = writer_over(bytes, sizeof bytes);
    bool inline_body = measure.position + 32 <= sizeof bytes;
    writer_u8(&out, WIRE_RUN);
    writer_u32(&out, number);
    writer_u8(&out, !inline_body);
    writer_u64(&out, measure.position);
    int files[2];
    size_t file_count = 0;
    if (inline_body) {
        write_body(&out, &source);
    } else {
        files[file_count] = body_file(&source, measure.position);
        if (files[file_count++] < 0) {
            return false;
        }
    }
    if (stdin_given) {
        files[file_count++] = request->stdin_fd;
    } else if (request->has_ahead) {
        files[file_count++] = request->ahead;
    }
    bool sent = !out.failed && packet_send(socket, bytes, out.position, files, file_count);
    if (!inline_body) {
        (void)close(files[0]);
    }
    return sent;
}

static bool send_short(int socket, unsigned kind, uint32_t number, const int *files,
                       size_t file_count)
{
    uint8_t bytes[8];
    struct writer out = writer_over(bytes, sizeof bytes);
    writer_u8(&out, (uint8_t)kind);
    writer_u32(&out, number);
    return packet_send(socket, bytes, out.position, files, file_count);
}

bool jail_wire_send(int socket, unsigned kind, uint32_t number)
{
    return send_short(socket, kind, number, NULL, 0);
}

bool jail_wire_send_go(int socket, uint32_t number, const struct jail_request *request)
{
    int files[WIRE_MAPPED_MAX];
    size_t count = 0;
    for (size_t i = 0; i < request->input_count; i++) {
        if (request->inputs[i].is_mapped) {
            assert(count < WIRE_MAPPED_MAX); /* jail.c, acceptable */
            files[count++] = request->inputs[i].fd;
        }
    }
    return send_short(socket, WIRE_GO, number, files, count);
}

/* Returns true for a regular file of a memory file system. Reading such a file cannot block, and it
 * is nothing of the host. */
static bool file_acceptable(int file, uint64_t size)
{
    struct stat status;
    struct statfs system;
    return fstat(file, &status) == 0 && S_ISREG(status.st_mode) && fstatfs(file, &system) == 0 &&
           system.f_type == TMPFS_MAGIC && (uint64_t)status.st_size >= size;
}

/* Returns true for the master of a pseudo-terminal. Reading it without waiting cannot block. */
static bool is_master(int file)
{
    struct stat status;
    const int flags = fcntl(file, F_GETFL);
    return fstat(file, &status) == 0 && S_ISCHR(status.st_mode) &&
           status.st_rdev == makedev(TERMINAL_MAJOR, TERMINAL_MASTER) && flags >= 0 &&
           fcntl(file, F_SETFL, flags | O_NONBLOCK) == 0;
}

bool jail_wire_take_terminal(const uint8_t *bytes, size_t length,
                             const struct jail_request *request, int *files, size_t file_count)
{
    struct reader in = reader_over(bytes, length);
    (void)reader_u8(&in);
    (void)reader_u32(&in);
    if (!reader_finished(&in) || request->terminal == NULL || file_count != 1 ||
        !is_master(files[0])) {
        packet_close_files(files, file_count);
        return false;
    }
    request->terminal->take(request->terminal->context, files[0]);
    return true;
}

bool jail_wire_read_saved(const uint8_t *bytes, size_t length, const struct jail_request *request,
                          int *files, size_t file_count, struct jail_reply *reply)
{
    struct reader in = reader_over(bytes, length);
    (void)reader_u8(&in);
    (void)reader_u32(&in);
    const uint64_t size = reader_u64(&in);
    const uint32_t name_length = reader_u32(&in);
    const uint8_t *view = reader_view(&in, name_length);
    uint64_t total = 0;
    for (size_t i = 0; i < reply->saved_count; i++) {
        total += reply->saved[i].size;
    }
    char *name = view == NULL ? NULL : strndup((const char *)view, name_length);
    if (name == NULL || !reader_finished(&in) || file_count != 1 || request->checkpoint == NULL ||
        reply->saved_count == LIMIT_CHECKPOINT_FILES || size > request->output_bytes - total ||
        strlen(name) != name_length || !wire_saved_name_valid(name) ||
        !file_acceptable(files[0], size)) {
        free(name);
        packet_close_files(files, file_count);
        return false;
    }
    reply->saved[reply->saved_count++] =
        (struct jail_saved){.name = name, .fd = files[0], .size = size};
    return true;
}

static int compare_saved(const void *left, const void *right)
{
    return strcmp(((const struct jail_saved *)left)->name,
                  ((const struct jail_saved *)right)->name);
}

/* Turns the files sent before the reply into the checkpoint. Returns false when two files have the
 * same name. */
static bool settle_saved(struct jail_reply *reply)
{
    qsort(reply->saved, reply->saved_count, sizeof reply->saved[0], compare_saved);
    for (size_t i = 1; i < reply->saved_count; i++) {
        if (strcmp(reply->saved[i - 1].name, reply->saved[i].name) == 0) {
            return false;
        }
    }
    return true;
}

void jail_wire_drop_saved(struct jail_reply *reply)
{
    for (size_t i = 0; i < reply->saved_count; i++) {
        free(reply->saved[i].name);
        (void)close(reply->saved[i].fd);
    }
    reply->saved_count = 0;
}

static bool read_outputs(struct reader *in, const struct jail_request *request, int *files,
                         size_t file_count, struct jail_reply *reply)
{
    uint32_t count = reader_u32(in);
    bool ok = reply->outcome == OUTCOME_OK;
    if (count != (ok && request != NULL ? request->output_count : 0)) {
        return false;
    }
    uint64_t total = reply->folder_bytes;
    size_t used = 0;
    for (uint32_t i = 0; i < count; i++) {
        const bool is_folder = wire_is_folder(request->outputs[i]);
        const uint8_t kind = reader_u8(in);
        uint64_t size = reader_u64(in);
        const bool is_executable = !is_folder && kind == WIRE_OUTPUT_PROGRAM;
        if ((!is_executable && kind != (is_folder ? WIRE_OUTPUT_FOLDER : WIRE_OUTPUT_FILE)) ||
            total > request->output_bytes || size > request->output_bytes - total ||
            (!is_folder && (used == file_count || !file_acceptable(files[used], size)))) {
            return false;
        }
        total += size;
        reply->outputs[i] = (struct jail_output){.fd = is_folder ? -1 : files[used],
                                                 .size = is_folder ? 0 : size,
                                                 .is_executable = is_executable};
        used += !is_folder;
    }
    reply->output_count = count;
    return used == file_count;
}

/* Reads a text of `length` bytes. Returns false when it has a NUL or does not fit. */
static bool read_name(struct reader *in, char ret_name[LIMIT_PATH_BYTES])
{
    const uint32_t length = reader_u32(in);
    const uint8_t *view = reader_view(in, length);
    if (view == NULL || length >= LIMIT_PATH_BYTES || memchr(view, '\0', length) != NULL) {
        return false;
    }
    memcpy(ret_name, view, length);
    ret_name[length] = '\0';
    return true;
}

/* Reads an entry; `file` is the next descriptor of the message, or -1. */
static bool read_entry(struct reader *in, const struct jail_request *request, int file,
                       struct jail_entry *entry)
{
    const uint8_t kind = reader_u8(in);
    const bool is_file = kind == WIRE_ENTRY_FILE || kind == WIRE_ENTRY_PROGRAM;
    const char *pattern = jail_pattern(request, entry->output);
    entry->fd = is_file ? file : -1;
    entry->is_executable = kind == WIRE_ENTRY_PROGRAM;
    entry->is_folder = kind == WIRE_ENTRY_FOLDER;
    entry->link[0] = '\0';
    entry->size = reader_u64(in);
    return kind <= WIRE_ENTRY_LINK && (is_file || (request->keeps_trees && entry->size == 0)) &&
           read_name(in, entry->name) && wire_saved_name_valid(entry->name) &&
           (!is_file || file_acceptable(file, entry->size)) &&
           (kind != WIRE_ENTRY_LINK || (read_name(in, entry->link) &&
                                        staged_link_problem(entry->name, entry->link) == NULL)) &&
           (pattern == NULL ||
            pattern_reach(pattern, entry->name, entry->is_folder) == PATTERN_MATCHES);
}

bool jail_wire_read_entries(const uint8_t *bytes, size_t length, const struct jail_request *request,
                            const int *files, size_t file_count, struct jail_entries *ret_entries)
{
    struct reader in = reader_over(bytes, length);
    (void)reader_u8(&in);
    (void)reader_u32(&in);
    const uint32_t output = reader_u32(&in);
    const uint32_t count = reader_u32(&in);
    size_t used = 0;
    if (in.failed || output >= request->output_count || count == 0 || count > WIRE_ENTRIES_MAX ||
        !wire_is_folder(request->outputs[output]) || request->take_entry == NULL) {
        return false;
    }
    ret_entries->count = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct jail_entry *entry = &ret_entries->items[i];
        entry->output = output;
        if (!read_entry(&in, request, used < file_count ? files[used] : -1, entry)) {
            return false;
        }
        used += entry->fd >= 0;
        ret_entries->count++;
    }
    return used == file_count && reader_finished(&in);
}

static bool read_fields(struct reader *in, const struct jail_request *request, int *files,
                        size_t file_count, struct jail_reply *reply, uint64_t ret_captured[2])
{
    uint32_t outcome = reader_u32(in);
    reply->exit_code = (int)(reader_u32(in) & 0xff);
    reply->signal = (int)(reader_u32(in) & 0x7f);
    uint32_t verdict = reader_u32(in);
    uint32_t fault = reader_u32(in);
    reply->cpu_ns = (int64_t)(reader_u64(in) & INT64_MAX);
    reply->peak_memory_bytes = (int64_t)(reader_u64(in) & INT64_MAX);
    uint32_t flags = reader_u32(in);
    reply->stdout_cut = (flags & WIRE_REPLY_STDOUT_CUT) != 0;
    reply->stderr_cut = (flags & WIRE_REPLY_STDERR_CUT) != 0;
    reply->was_noticed = (flags & WIRE_REPLY_NOTICED) != 0;
    const bool has_saved = (flags & WIRE_REPLY_SAVED) != 0;
    ret_captured[0] = reader_u64(in);
    ret_captured[1] = reader_u64(in);
    reply->held.hits = reader_u64(in);
    reply->held.saved_bytes = reader_u64(in);
    reply->held.copies = reader_u64(in);
    reply->held.copied_bytes = reader_u64(in);
    reply->held.held_bytes = reader_u64(in);
    reply->held.aheads = reader_u64(in);
    reply->held.ahead_bytes = reader_u64(in);
    uint64_t most = request != NULL ? request->capture_bytes : 0;
    if (in->failed || outcome >= OUTCOME_COUNT || verdict > VERDICT_UNSURE ||
        fault >= DEVICE_FAULTS || ret_captured[0] > most || ret_captured[1] > most) {
        return false;
    }
    if (!has_saved || !reply->was_noticed || outcome == OUTCOME_OK) {
        jail_wire_drop_saved(reply);
    } else if (!settle_saved(reply)) {
        return false;
    }
    reply->outcome = (enum result_outcome)outcome;
    reply->verdict = (enum result_verdict)verdict;
    reply->fault = (enum device_fault)fault;
    if (!read_outputs(in, request, files, file_count, reply)) {
        return false;
    }
    uint32_t length = reader_u32(in);
    const uint8_t *detail = reader_view(in, length);
    if (detail == NULL && length != 0) {
        return false;
    }
    text_printable(length != 0 ? (const char *)detail : "", length, reply->detail,
                   sizeof reply->detail);
    return reader_finished(in);
}

bool jail_wire_read_reply(const uint8_t *bytes, size_t length, const struct jail_request *request,
                          int *files, size_t file_count, struct jail_reply *reply,
                          uint64_t ret_captured[2])
{
    struct reader in = reader_over(bytes, length);
    (void)reader_u8(&in);
    (void)reader_u32(&in);
    if (!read_fields(&in, request, files, file_count, reply, ret_captured)) {
        for (size_t i = 0; i < LIMIT_OUTPUTS; i++) {
            reply->outputs[i].fd = -1;
        }
        packet_close_files(files, file_count);
        return false;
    }
    return true;
}
