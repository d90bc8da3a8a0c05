/* This file builds a source, sets every argument of a kernel, runs the kernel and writes the
 * results. Whatever is wrong with a job's files is an answer, not an assertion. */
#include "provider/kernel/engine.h"

#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define REFUSE(problem, status, ...)                                                               \
    (problem_set((problem), __VA_ARGS__), (enum operation_status)(status))

enum { PIECE_BYTES = 4 << 20 }; /* of a result, on its way to the file */

struct launch {
    struct engine *engine;
    const struct kernel_op *op;
    struct problem *problem;
    const struct kernel_interface *interface;
    void *kernel;
    const struct operation_contents *contents;
    struct engine_buffer buffers[KERNEL_ARGUMENTS];
    uint64_t sizes[KERNEL_ARGUMENTS]; /* 0: the argument has no buffer */
    uint64_t memory_bytes;            /* what all buffers may take */
    uint64_t left_bytes;              /* what the buffers may still take */
};

/* A file that is read, mapped. */
struct file {
    void *bytes;
    uint64_t size;
};

/* Maps a file, which is `what`: a source or a buffer. */
static enum operation_status map_file(struct launch *launch, const char *name, const char *what,
                                      struct file *ret_file)
{
    const int fd = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        const int error = fd < 0 ? errno : EINVAL;
        if (fd >= 0) {
            (void)close(fd);
        }
        return REFUSE(launch->problem, OPERATION_FAILED, "%s: %s", name, strerror(error));
    }
    void *bytes = status.st_size > 0
                      ? mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0)
                      : MAP_FAILED;
    (void)close(fd);
    if (bytes == MAP_FAILED) {
        return status.st_size == 0 ? REFUSE(launch->problem, OPERATION_FAILED,
                                            "%s is empty, and %s has at least a byte", name, what)
                                   : REFUSE(launch->problem, OPERATION_MEMORY,
                                            "%s: no memory to map the file", name);
    }
    *ret_file = (struct file){.bytes = bytes, .size = (uint64_t)status.st_size};
    return OPERATION_OK;
}

static void unmap_file(const struct file *file)
{
    (void)munmap(file->bytes, (size_t)file->size);
}

/* ---------------------------------------------------------------- the kernel */

static enum operation_status check_api(const struct launch *launch)
{
    const enum kernel_api takes = launch->interface->api;
    return launch->op->api == takes
               ? OPERATION_OK
               : REFUSE(launch->problem, OPERATION_FAILED,
                        "%s is a source for %s, by the end of its name, and this device is reached "
                        "by %s",
                        launch->op->source, kernel_op_api_name(launch->op->api),
                        kernel_op_api_name(takes));
}

static enum operation_status build(struct launch *launch, void **ret_program)
{
    struct file source;
    enum operation_status status = check_api(launch);
    status =
        status == OPERATION_OK ? map_file(launch, launch->op->source, "a source", &source) : status;
    if (status != OPERATION_OK) {
        return status;
    }
    status =
        source.size > ENGINE_SOURCE_BYTES
            ? REFUSE(launch->problem, OPERATION_FAILED,
                     "%s has %llu bytes; a source has at most %d", launch->op->source,
                     (unsigned long long)source.size, (int)ENGINE_SOURCE_BYTES)
            : engine_build(launch->engine, launch->op->source, source.bytes, (size_t)source.size,
                           launch->op->options, ret_program, launch->problem);
    unmap_file(&source);
    return status;
}

/* Returns true when the argument is one of the kernel's parameters. */
static bool is_parameter(const struct launch *launch, size_t index)
{
    return launch->interface->local_is_parameter ||
           launch->op->arguments[index].kind != KERNEL_LOCAL;
}

/* Returns how many of the first arguments are parameters. */
static size_t parameters(const struct launch *launch, size_t arguments)
{
    size_t count = 0;
    for (size_t i = 0; i < arguments; i++) {
        count += is_parameter(launch, i);
    }
    return count;
}

static enum operation_status find_kernel(struct launch *launch)
{
    void *program;
    const struct kernel_op *op = launch->op;
    enum operation_status status = build(launch, &program);
    status = status == OPERATION_OK
                 ? launch->interface->find(launch->engine, program, op->source, op->entry,
                                           &launch->kernel, launch->problem)
                 : status;
    if (status != OPERATION_OK) {
        launch->kernel = NULL;
        return status;
    }
    size_t takes = 0;
    const size_t given = parameters(launch, op->argument_count);
    if (launch->interface->count(launch->engine, launch->kernel, &takes) && takes != given) {
        return REFUSE(launch->problem, OPERATION_FAILED,
                      "the kernel \"%s\" has %zu parameter%s, and %zu argument%s given", op->entry,
                      takes, text_plural(takes), given, given == 1 ? " is" : "s are");
    }
    return OPERATION_OK;
}

/* ---------------------------------------------------------------- arguments */

static bool is_buffer(enum kernel_argument_kind kind)
{
    return kind == KERNEL_INPUT || kind == KERNEL_OUTPUT || kind == KERNEL_INOUT;
}

/* Compares the kind of an argument with its parameter, where the interface knows the parameter.
 * Some libraries take any bytes of the right length for a buffer, and crash. */
static enum operation_status check_kind(struct launch *launch, size_t index)
{
    char text[KERNEL_WANTED_SIZE];
    const enum kernel_argument_kind kind = launch->op->arguments[index].kind;
    const char *wanted = is_parameter(launch, index)
                             ? launch->interface->wanted(launch->engine, launch->kernel,
                                                         parameters(launch, index), kind, text)
                             : NULL;
    return wanted == NULL
               ? OPERATION_OK
               : REFUSE(launch->problem, OPERATION_FAILED,
                        "argument %zu of \"%s\" is of the kind %s, and the kernel takes %s there",
                        index + 1, launch->op->entry, kernel_op_word(kind), wanted);
}

/* Describes the content of an input, where its hash is known. A device of cores does not hold an
 * input that the kernel may write to: its copy would take as long as the file's. */
static bool find_part(const struct launch *launch, size_t index, uint64_t size, bool is_written,
                      struct held_part *ret_part)
{
    const struct kernel_argument *argument = &launch->op->arguments[index];
    const struct hash32 *hash = argument->kind == KERNEL_INPUT
                                    ? operation_contents_find(launch->contents, argument->file)
                                    : NULL;
    if (hash == NULL || (is_written && strcmp(launch->engine->device->kind, "cpu") == 0)) {
        return false;
    }
    *ret_part = (struct held_part){.hash = *hash, .file_bytes = size, .bytes = size};
    return true;
}

static enum operation_status make_buffer(struct launch *launch, size_t index, uint64_t size,
                                         const void *bytes)
{
    const uint64_t most = launch->engine->device->buffer_bytes;
    char what[48];
    (void)snprintf(what, sizeof what, "the buffer of argument %zu", index + 1);
    if (most > 0 && size > most) {
        return REFUSE(launch->problem, OPERATION_MEMORY,
                      "%s has %llu bytes; a buffer of this device has at most %llu", what,
                      (unsigned long long)size, (unsigned long long)most);
    }
    if (size > launch->left_bytes) {
        return REFUSE(launch->problem, OPERATION_MEMORY,
                      "%s has %llu bytes, and %llu are left of the memory for all buffers", what,
                      (unsigned long long)size, (unsigned long long)launch->left_bytes);
    }
    struct held_part part;
    struct engine_want want = {.bytes = bytes, .size = size, .what = what};
    want.is_written =
        !launch->interface->only_reads(launch->engine, launch->kernel, parameters(launch, index));
    want.part = find_part(launch, index, size, want.is_written, &part) ? &part : NULL;
    want.spare_bytes =
        engine_idle_most(launch->engine, launch->memory_bytes, launch->left_bytes - size);
    const enum operation_status status =
        engine_buffers_take(launch->engine, &want, &launch->buffers[index], launch->problem);
    if (status == OPERATION_OK) {
        launch->sizes[index] = size;
        launch->left_bytes -= size;
    }
    return status;
}

static enum operation_status fill_buffer(struct launch *launch, size_t index)
{
    const struct kernel_argument *argument = &launch->op->arguments[index];
    if (argument->file == NULL) {
        return make_buffer(launch, index, argument->size_bytes, NULL);
    }
    struct file file;
    enum operation_status status = map_file(launch, argument->file, "a buffer", &file);
    if (status == OPERATION_OK) {
        status = make_buffer(launch, index, file.size, file.bytes);
        unmap_file(&file);
    }
    return status;
}

/* Writes the bytes of a number as the kernel takes them. Returns their count. */
static size_t number_bytes(const struct kernel_argument *argument, void *ret_bytes)
{
    const int32_t small = (int32_t)argument->integer;
    const uint32_t small_natural = (uint32_t)argument->natural;
    const int64_t large = argument->integer;
    const uint64_t large_natural = argument->natural;
    const bool is_real = argument->number != NULL;
    const float real = is_real ? strtof(argument->number, NULL) : 0;
    const double precise = is_real ? strtod(argument->number, NULL) : 0;
    const void *from = argument->kind == KERNEL_INT     ? (const void *)&small
                       : argument->kind == KERNEL_UINT  ? (const void *)&small_natural
                       : argument->kind == KERNEL_LONG  ? (const void *)&large
                       : argument->kind == KERNEL_ULONG ? (const void *)&large_natural
                       : argument->kind == KERNEL_FLOAT ? (const void *)&real
                                                        : (const void *)&precise;
    const bool is_small = argument->kind == KERNEL_INT || argument->kind == KERNEL_UINT ||
                          argument->kind == KERNEL_FLOAT;
    const size_t size = is_small ? sizeof small : sizeof large;
    memcpy(ret_bytes, from, size);
    return size;
}

static enum operation_status set_argument(struct launch *launch, size_t index)
{
    const struct kernel_argument *argument = &launch->op->arguments[index];
    const struct kernel_interface *interface = launch->interface;
    const size_t parameter = parameters(launch, index);
    uint64_t number = 0;
    char what[64];
    (void)snprintf(what, sizeof what, "argument %zu, %s", index + 1,
                   kernel_op_word(argument->kind));
    enum operation_status good = check_kind(launch, index);
    if (good == OPERATION_OK && is_buffer(argument->kind)) {
        good = fill_buffer(launch, index);
        return good == OPERATION_OK
                   ? interface->set_buffer(launch->engine, launch->kernel, parameter,
                                           launch->buffers[index].buffer, what, launch->problem)
                   : good;
    }
    if (good != OPERATION_OK) {
        return good;
    }
    const bool is_local = argument->kind == KERNEL_LOCAL;
    const size_t size = is_local ? (size_t)argument->size_bytes : number_bytes(argument, &number);
    return interface->set(launch->engine, launch->kernel, parameter, is_local ? NULL : &number,
                          size, what, launch->problem);
}

/* ---------------------------------------------------------------- the run */

static enum operation_status execute(struct launch *launch)
{
    const uint64_t most = launch->interface->group_most(launch->engine, launch->kernel);
    uint64_t size = 1;
    for (uint32_t i = 0; launch->op->has_group && i < launch->op->dimensions; i++) {
        size = launch->op->group[i] > UINT64_MAX / size ? UINT64_MAX : size * launch->op->group[i];
    }
    if (most > 0 && size > most) {
        return REFUSE(
            launch->problem, OPERATION_FAILED,
            "a work-group of %llu work-items; this kernel has at most %llu on this device",
            (unsigned long long)size, (unsigned long long)most);
    }
    engine_ahead_allow(launch->engine);
    return launch->interface->run(launch->engine, launch->kernel, launch->op, launch->problem);
}

static bool write_all(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        const ssize_t written = write(fd, bytes, size);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            return false;
        }
        bytes += written;
        size -= (size_t)written;
    }
    return true;
}

/* Writes one buffer to its file, piece by piece. */
static enum operation_status write_result(struct launch *launch, size_t index, char *piece)
{
    const char *name = launch->op->arguments[index].result;
    const int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        return REFUSE(launch->problem, errno == ENOSPC ? OPERATION_DISK : OPERATION_FAILED,
                      "%s: %s", name, strerror(errno));
    }
    enum operation_status result = OPERATION_OK;
    for (uint64_t at = 0; result == OPERATION_OK && at < launch->sizes[index];) {
        const uint64_t rest = launch->sizes[index] - at;
        const size_t size = rest < PIECE_BYTES ? (size_t)rest : PIECE_BYTES;
        result = launch->interface->read(launch->engine, launch->buffers[index].buffer, at, size,
                                         piece, name, launch->problem);
        if (result == OPERATION_OK && !write_all(fd, piece, size)) {
            result = REFUSE(launch->problem, OPERATION_DISK, "%s: %s", name, strerror(errno));
        }
        at += size;
    }
    (void)close(fd);
    return result;
}

static enum operation_status write_results(struct launch *launch)
{
    char *piece = malloc(PIECE_BYTES);
    enum operation_status result = OPERATION_OK;
    if (piece == NULL) {
        return REFUSE(launch->problem, OPERATION_MEMORY, "no memory to write the results with");
    }
    for (size_t i = 0; result == OPERATION_OK && i < launch->op->argument_count; i++) {
        if (launch->op->arguments[i].result != NULL) {
            result = write_result(launch, i, piece);
        }
    }
    free(piece);
    return result;
}

/* Results of a launch that ended well may stay. */
static void clear(struct launch *launch, bool is_done)
{
    for (size_t i = 0; i < KERNEL_ARGUMENTS; i++) {
        const char *name = is_done && launch->sizes[i] > 0 ? launch->op->arguments[i].result : NULL;
        if (name != NULL) {
            const struct held_part part = {.file_bytes = launch->sizes[i],
                                           .bytes = launch->sizes[i]};
            engine_buffers_leave(launch->engine, &launch->buffers[i], name, &part);
        } else if (launch->sizes[i] > 0) {
            engine_buffers_give(launch->engine, &launch->buffers[i]);
        }
    }
    if (launch->kernel != NULL) {
        launch->interface->drop_kernel(launch->engine, launch->kernel);
    }
}

enum operation_status engine_launch(struct engine *engine, const struct kernel_op *op,
                                    const struct operation_contents *contents,
                                    uint64_t memory_bytes, struct problem *ret_problem)
{
    struct launch launch = {.engine = engine,
                            .contents = contents,
                            .op = op,
                            .problem = ret_problem,
                            .interface = engine->device->interface,
                            .memory_bytes = memory_bytes,
                            .left_bytes = memory_bytes};
    enum operation_status status = find_kernel(&launch);
    for (size_t i = 0; status == OPERATION_OK && i < op->argument_count; i++) {
        status = set_argument(&launch, i);
    }
    status = status == OPERATION_OK ? execute(&launch) : status;
    status = status == OPERATION_OK ? write_results(&launch) : status;
    clear(&launch, status == OPERATION_OK);
    return status;
}
