/* tests/jail/tensor_jail.h opens jails with bourse-tensor, makes matrices, and performs subtasks
 * with them. One program includes it once. */
#ifndef BOURSE_TESTS_JAIL_TENSOR_JAIL_H
#define BOURSE_TESTS_JAIL_TENSOR_JAIL_H

#include "fixture.h"
#include "formats/npy.h"
#include "provider/jail/jail_internal.h"

#include <math.h>
#include <sys/mman.h>

#define SEED "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

struct file { /* a .npy file in memory */
    int fd;
    uint64_t size;
};

/* A matrix whose every entry is `value`. */
static inline struct file matrix(uint64_t rows, uint64_t columns, float value)
{
    uint8_t header[NPY_MATRIX_BYTES];
    struct file file = {.fd = memfd_create("matrix", MFD_CLOEXEC)};
    size_t count = (size_t)(rows * columns);
    float *values = malloc((count + 1) * sizeof *values);
    ck_assert(file.fd >= 0 && values != NULL);
    for (size_t i = 0; i < count; i++) {
        values[i] = value;
    }
    npy_write_matrix(rows, columns, header);
    file.size = sizeof header + count * sizeof *values;
    ck_assert_int_eq(write(file.fd, header, sizeof header), (ssize_t)sizeof header);
    ck_assert_int_eq(write(file.fd, values, count * sizeof *values),
                     (ssize_t)(count * sizeof *values));
    free(values);
    return file;
}

/* A jail with the program, with these bounds if they are given. */
static inline void reopen(struct fixture *fixture, const char *tensor_path,
                          const struct jail_limits *limits)
{
    struct problem problem;
    struct jail_spec spec = fixture_spec(fixture);
    spec.name = "lane-1";
    spec.tensor_path = tensor_path;
    spec.limits = limits != NULL ? *limits : spec.limits;
    jail_close(&fixture->jail);
    ck_assert_msg(jail_open(fixture->launcher, &spec, &fixture->jail, &problem), "%s",
                  problem.text);
}

static inline struct fixture open_with_tensor(int way)
{
    struct fixture fixture = fixture_open(way);
    reopen(&fixture, fixture.tensor, NULL);
    return fixture;
}

struct job { /* an operation on up to three inputs a.npy, b.npy, c.npy; the result is r.npy */
    struct jail *jail;
    struct jail_request bounds;
    struct file inputs[3];
    const struct hash32 *hashes[3]; /* of those that are mapped */
    struct stamp *hashed[3];
    bool is_told; /* the resident is told the hashes */
    const char *const *arguments;
    struct jail_reply reply;
};

static inline void *perform(void *argument)
{
    static const char *const names[] = {"a.npy", "b.npy", "c.npy"};
    static const char *const outputs[] = {"r.npy"};
    struct job *job = argument;
    struct jail_input inputs[3];
    struct jail_request request = job->bounds;
    request.tensor_threads = request.tensor_threads != 0 ? request.tensor_threads : 1;
    request.stdin_fd = -1;
    request.argv = job->arguments;
    request.inputs = inputs;
    while (request.input_count < 3 && job->inputs[request.input_count].size > 0) {
        size_t i = request.input_count++;
        inputs[i] = (struct jail_input){.name = names[i],
                                        .fd = job->inputs[i].fd,
                                        .size = job->inputs[i].size,
                                        .hash = job->hashes[i],
                                        .hashed = job->hashed[i],
                                        .content = job->is_told ? job->hashes[i] : NULL,
                                        .is_mapped = job->hashes[i] != NULL};
    }
    request.outputs = outputs;
    request.output_count = strcmp(job->arguments[0], "freivalds") == 0 ? 0 : 1;
    request.wall_ns = request.wall_ns != 0 ? request.wall_ns : 300 * SECOND;
    jail_run(job->jail, &request, &job->reply);
    return NULL;
}

static inline void close_inputs(struct job *job)
{
    for (size_t i = 0; i < 3; i++) {
        if (job->inputs[i].size > 0) {
            (void)close(job->inputs[i].fd);
        }
    }
}

static const char *const product[] = {"matmul", "a.npy", "b.npy", "r.npy", NULL};
static const char *const check[] = {"freivalds", "a.npy", "b.npy", "c.npy", SEED, "64", NULL};

static inline void expect_value(const struct jail_reply *reply, uint64_t rows, uint64_t columns,
                                float value)
{
    struct npy npy;
    struct problem problem = {""};
    size_t size = (size_t)reply->outputs[0].size;
    uint8_t *bytes = malloc(size + 1);
    ck_assert_int_eq(pread(reply->outputs[0].fd, bytes, size, 0), (ssize_t)size);
    ck_assert_msg(npy_read(bytes, size, size, &npy, &problem), "%s", problem.text);
    ck_assert(npy.shape[0] == rows && npy.shape[1] == columns);
    for (uint64_t i = 0; i < npy.element_count; i++) {
        float found;
        memcpy(&found, bytes + npy.data_offset + i * sizeof found, sizeof found);
        ck_assert(found == value);
    }
    free(bytes);
}

/* A small product: whether the jail still serves. */
static inline void multiply_small(struct fixture *fixture, float value)
{
    struct job job = {.jail = fixture->jail,
                      .inputs = {matrix(20, 30, value), matrix(30, 10, 2)},
                      .arguments = product};
    (void)perform(&job);
    ck_assert_msg(job.reply.outcome == OUTCOME_OK, "%d: %s", job.reply.outcome, job.reply.detail);
    expect_value(&job.reply, 20, 10, 60 * value);
    ck_assert_int_gt(job.reply.peak_memory_bytes, 0);
    jail_reply_fini(&job.reply);
    close_inputs(&job);
}

/* One that takes a while: what is not finite is compared entry by entry. */
static inline struct job long_check(struct fixture *fixture)
{
    return (struct job){
        .jail = fixture == NULL ? NULL : fixture->jail,
        .inputs = {matrix(2000, 80, 1), matrix(80, 2000, NAN), matrix(2000, 2000, NAN)},
        .arguments = check};
}

static inline bool read_status(long pid, char *ret_state, long *ret_parent, long *ret_threads)
{
    char path[64];
    char text[1024];
    (void)snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0) {
        (void)close(file);
    }
    if (length <= 0) {
        return false;
    }
    text[length] = '\0';
    const char *at = strrchr(text, ')');
    return at != NULL &&
           sscanf(at, ") %c %ld %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld",
                  ret_state, ret_parent, ret_threads) == 3;
}

/* The tensor program of this test's jail: that of all its name which descends from us. 0: none. */
static inline long find_program(void)
{
    long found = 0;
    DIR *proc = opendir("/proc");
    for (struct dirent *entry = NULL; proc != NULL && (entry = readdir(proc)) != NULL;) {
        char path[300];
        char name[32] = "";
        char state = ' ';
        long threads;
        long parent = strtol(entry->d_name, NULL, 10);
        (void)snprintf(path, sizeof path, "/proc/%s/comm", entry->d_name);
        int file = open(path, O_RDONLY | O_CLOEXEC);
        bool named = file >= 0 && read(file, name, sizeof name - 1) > 0 &&
                     strcmp(name, ".bourse-tensor\n") == 0;
        if (file >= 0) {
            (void)close(file);
        }
        while (named && parent > 1 && parent != (long)getpid() &&
               read_status(parent, &state, &parent, &threads)) {
        }
        bool dead = named &&
                    read_status(strtol(entry->d_name, NULL, 10), &state, &(long){0}, &threads) &&
                    state == 'Z';
        if (named && parent == (long)getpid() && !dead) {
            found = strtol(entry->d_name, NULL, 10);
        }
    }
    if (proc != NULL) {
        (void)closedir(proc);
    }
    return found;
}

static inline void ends_as(struct job *job, enum result_outcome outcome, const char *says)
{
    (void)perform(job);
    ck_assert_msg(job->reply.outcome == outcome, "%d instead of %d: %s", job->reply.outcome,
                  outcome, job->reply.detail);
    ck_assert_msg(strstr(job->reply.detail, says) != NULL, "%s", job->reply.detail);
    jail_reply_fini(&job->reply);
    close_inputs(job);
}

#endif
