/* bourse-tensor in a real jail: one process for all subtasks of a jail, confined and bounded like a
 * program, and gone when it must be. */
#include "fixture.h"

#include "base/sha256.h"
#include "formats/npy.h"
#include "numeric/seeded_check.h"
#include "provider/executors/tensor.h"
#include "provider/jail/jail_internal.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/sendfile.h>

#define SEED "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

struct file { /* a .npy file in memory */
    int fd;
    uint64_t size;
};

/* A matrix whose every entry is `value`. */
static struct file matrix(uint64_t rows, uint64_t columns, float value)
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

static struct file text_file(const char *text)
{
    struct file file = {.fd = memfd_create("text", MFD_CLOEXEC), .size = strlen(text)};
    ck_assert_int_eq(write(file.fd, text, strlen(text)), (ssize_t)strlen(text));
    return file;
}

/* A jail with the program, with these bounds if they are given. */
static void reopen(struct fixture *fixture, const char *tensor_path,
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

static struct fixture open_with_tensor(int way)
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
    const char *const *arguments;
    struct jail_reply reply;
};

static void *perform(void *argument)
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
                                        .is_mapped = job->hashes[i] != NULL};
    }
    request.outputs = outputs;
    request.output_count = strcmp(job->arguments[0], "freivalds") == 0 ? 0 : 1;
    request.wall_ns = request.wall_ns != 0 ? request.wall_ns : 300 * SECOND;
    jail_run(job->jail, &request, &job->reply);
    return NULL;
}

static void close_inputs(struct job *job)
{
    for (size_t i = 0; i < 3; i++) {
        if (job->inputs[i].size > 0) {
            (void)close(job->inputs[i].fd);
        }
    }
}

static const char *const product[] = {"matmul", "a.npy", "b.npy", "r.npy", NULL};
static const char *const check[] = {"freivalds", "a.npy", "b.npy", "c.npy", SEED, "64", NULL};

static void expect_value(const struct jail_reply *reply, uint64_t rows, uint64_t columns,
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
static void multiply_small(struct fixture *fixture, float value)
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
static struct job long_check(struct fixture *fixture)
{
    return (struct job){
        .jail = fixture == NULL ? NULL : fixture->jail,
        .inputs = {matrix(2000, 80, 1), matrix(80, 2000, NAN), matrix(2000, 2000, NAN)},
        .arguments = check};
}

/* ---------------------------------------------------------------- seen from outside */

static bool read_status(long pid, char *ret_state, long *ret_parent, long *ret_threads)
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
static long find_program(void)
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

static void await_state(long pid, char wanted)
{
    char state = ' ';
    for (int tries = 0; tries < 120000 && state != wanted; tries++) {
        long parent;
        long threads;
        ck_assert(read_status(pid, &state, &parent, &threads));
        (void)usleep(500);
    }
    ck_assert_int_eq(state, wanted);
}

/* ---------------------------------------------------------------- tests */

START_TEST(one_process_serves_subtask_after_subtask)
{
    struct fixture fixture = open_with_tensor(_i);
    multiply_small(&fixture, 1);
    long pid = find_program();
    ck_assert_int_ne(pid, 0);
    multiply_small(&fixture, -3); /* the same names: the folder was emptied */
    multiply_small(&fixture, 0.5F);
    ck_assert_int_eq(find_program(), pid);

    struct job job = {.jail = fixture.jail,
                      .inputs = {matrix(5, 5, 1), matrix(5, 5, 1), matrix(5, 5, 5)},
                      .arguments = check};
    (void)perform(&job);
    char text[512];
    ck_assert_int_eq(job.reply.outcome, OUTCOME_OK);
    ck_assert_ptr_nonnull(strstr(fixture_output(&job.reply.standard_output, text, sizeof text),
                                 "\"verdict\":\"accept\""));
    jail_reply_fini(&job.reply);
    close_inputs(&job);
    fixture_close(&fixture);
    ck_assert_int_eq(find_program(), 0); /* gone with its jail */
}
END_TEST

START_TEST(what_is_wrong_with_the_operands_is_said)
{
    struct fixture fixture = open_with_tensor(_i);
    char text[512];
    struct job job = {
        .jail = fixture.jail, .inputs = {matrix(3, 4, 1), matrix(3, 4, 1)}, .arguments = product};
    (void)perform(&job);
    ck_assert_int_eq(job.reply.outcome, OUTCOME_PROGRAM_FAILED);
    ck_assert_int_eq(job.reply.exit_code, 1);
    ck_assert_msg(strstr(job.reply.detail, "a.npy is 3 x 4 and b.npy 3 x 4") != NULL, "%s",
                  job.reply.detail);
    ck_assert_ptr_nonnull(
        strstr(fixture_output(&job.reply.standard_error, text, sizeof text), "do not fit"));
    jail_reply_fini(&job.reply);
    close_inputs(&job);

    struct job other = {.jail = fixture.jail,
                        .inputs = {text_file("1 2 3\n"), matrix(3, 4, 1)},
                        .arguments = product};
    (void)perform(&other);
    ck_assert_int_eq(other.reply.outcome, OUTCOME_PROGRAM_FAILED);
    ck_assert_str_eq(other.reply.detail, "a.npy: it is no .npy file; np.save writes one");
    ck_assert_int_eq(other.reply.standard_output.fd, -1);
    jail_reply_fini(&other.reply);
    close_inputs(&other);
    multiply_small(&fixture, 1);
    fixture_close(&fixture);
}
END_TEST

START_TEST(a_crash_fails_the_subtask_and_the_next_one_runs)
{
    struct fixture fixture = open_with_tensor(_i);
    multiply_small(&fixture, 1);
    long first = find_program();
    ck_assert_int_eq(kill((pid_t)first, SIGKILL), 0); /* between two subtasks: nobody notices */
    await_state(first, 'Z');
    multiply_small(&fixture, 2);
    long second = find_program();
    ck_assert(second != 0 && second != first);

    pthread_t thread;
    struct job job = long_check(&fixture);
    ck_assert_int_eq(pthread_create(&thread, NULL, perform, &job), 0);
    await_state(second, 'R');
    ck_assert_int_eq(kill((pid_t)second, SIGSEGV), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_msg(job.reply.outcome == OUTCOME_SIGNALLED, "%d: %s", job.reply.outcome,
                  job.reply.detail);
    ck_assert_int_eq(job.reply.signal, SIGSEGV);
    ck_assert(!job.reply.jail_ended);
    jail_reply_fini(&job.reply);
    close_inputs(&job);
    multiply_small(&fixture, 3);
    ck_assert_int_ne(find_program(), second);
    fixture_close(&fixture);
}
END_TEST

static void ends_as(struct job *job, enum result_outcome outcome, const char *says)
{
    (void)perform(job);
    ck_assert_msg(job->reply.outcome == outcome, "%d instead of %d: %s", job->reply.outcome,
                  outcome, job->reply.detail);
    ck_assert_msg(strstr(job->reply.detail, says) != NULL, "%s", job->reply.detail);
    jail_reply_fini(&job->reply);
    close_inputs(job);
}

START_TEST(limits_hold_for_each_subtask)
{
    struct fixture fixture = open_with_tensor(_i);
    struct job late = long_check(&fixture);
    late.bounds.wall_ns = SECOND / 20;
    ends_as(&late, OUTCOME_TIME_LIMIT, "wall time");
    multiply_small(&fixture, 1);

    struct job busy = long_check(&fixture);
    busy.bounds.cpu_ns = SECOND / 10;
    ends_as(&busy, OUTCOME_CPU_LIMIT, "CPU time");
    multiply_small(&fixture, 1);

    /* The processor time of one subtask is not the next one's, though the process is. */
    struct job spent = long_check(&fixture);
    (void)perform(&spent);
    ck_assert_int_eq(spent.reply.outcome, OUTCOME_OK);
    int64_t used_ns = spent.reply.cpu_ns;
    ck_assert_int_gt(used_ns, 100000000);
    jail_reply_fini(&spent.reply);
    close_inputs(&spent);
    struct job small = {.jail = fixture.jail,
                        .inputs = {matrix(2, 2, 1), matrix(2, 2, 1)},
                        .bounds = {.cpu_ns = (uint64_t)used_ns},
                        .arguments = product};
    (void)perform(&small);
    ck_assert_int_eq(small.reply.outcome, OUTCOME_OK);
    ck_assert_int_lt(small.reply.cpu_ns, used_ns);
    jail_reply_fini(&small.reply);
    close_inputs(&small);

    struct job large = {.jail = fixture.jail,
                        .inputs = {matrix(2000, 1, 1), matrix(1, 5000, 1)},
                        .arguments = product}; /* 40 MB beside 32 MiB */
    ends_as(&large, OUTCOME_DISK_LIMIT, "the result of 40000128 bytes does not fit");
    multiply_small(&fixture, 1);

    struct job wide = {.jail = fixture.jail,
                       .inputs = {matrix(1, 1, 1), matrix(1, 1700000, 1), matrix(1, 1700000, 1)},
                       .arguments = check};
    ends_as(&wide, OUTCOME_MEMORY_LIMIT, "bytes of memory, and 100663296 may be used");
    multiply_small(&fixture, 1);
    fixture_close(&fixture);
}
END_TEST

START_TEST(memory_that_the_kernel_counts_is_the_memory_limit)
{
    struct fixture fixture = fixture_open(_i);
    static const char *const alike[] = {"freivalds", "a.npy", "b.npy", "b.npy", SEED, "64", NULL};
    /* The check may allocate its own arrays to the last byte, but the program's memory is too much.
     * Some arrays are not touched, so these have to be smaller than the program's own memory. */
    enum { COLUMNS = 20000, PAGES_BYTES = 65536 };
    uint64_t file_bytes = NPY_MATRIX_BYTES + sizeof(float) * COLUMNS;
    struct jail_limits tight = {.memory_bytes = seeded_check_bytes(1, 1, COLUMNS),
                                .disk_bytes = file_bytes + PAGES_BYTES,
                                .processes = 16,
                                .cpu_milli = 2000};
    reopen(&fixture, fixture.tensor, &tight);
    struct job job = {.jail = fixture.jail,
                      .inputs = {matrix(1, 1, 1), matrix(1, COLUMNS, 1)},
                      .arguments = alike};
    ends_as(&job, OUTCOME_MEMORY_LIMIT, "memory");
    fixture_close(&fixture);
}
END_TEST

/* ---------------------------------------------------------------- files that are mapped */

#define ON_DISK "/tmp/bourse-jail-lent-XXXXXX"

/* Makes the file as the broker's store has it, to be read only. Takes the other file over. */
static struct file on_disk_named(struct file file, uid_t owner, mode_t mode, char name[])
{
    char path[64];
    int place = mkostemp(name, O_CLOEXEC);
    ck_assert_int_ge(place, 0);
    for (off_t offset = 0; (uint64_t)offset < file.size;) {
        ck_assert_int_gt(sendfile(place, file.fd, &offset, (size_t)file.size), 0);
    }
    ck_assert_int_eq(fchown(place, owner, (gid_t)-1), 0);
    ck_assert_int_eq(fchmod(place, mode), 0);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", place);
    (void)close(file.fd);
    file.fd = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(file.fd, 0);
    (void)close(place);
    return file;
}

static struct file on_disk(struct file file, uid_t owner, mode_t mode)
{
    char name[] = ON_DISK;
    struct file made = on_disk_named(file, owner, mode, name);
    (void)unlink(name);
    return made;
}

static struct hash32 hash_of(struct file file)
{
    uint8_t *bytes = malloc((size_t)file.size);
    ck_assert_int_eq(pread(file.fd, bytes, (size_t)file.size, 0), (ssize_t)file.size);
    struct hash32 hash = sha256_of(bytes, (size_t)file.size);
    free(bytes);
    return hash;
}

START_TEST(only_files_that_root_or_we_alone_can_change_are_mapped)
{
    const bool is_root = getuid() == 0;
    const uid_t us = getuid();
    struct file by_us = on_disk(matrix(2, 2, 1), us, 0600); /* root's own, where we are root now */
    struct file by_group = on_disk(matrix(2, 2, 1), us, 0620);
    struct file by_all = on_disk(matrix(2, 2, 1), us, 0602);
    struct file by_another = on_disk(matrix(2, 2, 1), is_root ? 12345 : us, 0600);
    struct file writable = matrix(2, 2, 1);
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    struct fixture fixture = open_with_tensor(_i); /* an agent is nobody from here on */
    const bool ours = jail_landlock_abi(fixture.jail) >= 3;
    ck_assert_int_eq(jail_may_map(fixture.jail, by_us.fd), is_root || ours);
    ck_assert_int_eq(jail_may_map(fixture.jail, by_another.fd), !is_root && ours);
    ck_assert(!jail_may_map(fixture.jail, by_group.fd));
    ck_assert(!jail_may_map(fixture.jail, by_all.fd));
    ck_assert(!jail_may_map(fixture.jail, writable.fd));
    ck_assert(!jail_may_map(fixture.jail, ends[0]));
    ck_assert(!jail_may_map(fixture.jail, -1));
    int folder = open("/usr", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert(!jail_may_map(fixture.jail, folder));
    (void)close(folder);
    (void)close(ends[0]);
    (void)close(ends[1]);
    const struct file all[] = {by_us, by_group, by_all, by_another, writable};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        (void)close(all[i].fd);
    }
    fixture_close(&fixture);
}
END_TEST

START_TEST(what_is_mapped_is_computed_with_when_it_has_its_hash)
{
    struct file a = on_disk(matrix(20, 30, 3), getuid(), 0600);
    struct file b = on_disk(matrix(30, 10, 2), getuid(), 0600);
    struct hash32 a_hash = hash_of(a);
    struct hash32 b_hash = hash_of(b);
    struct fixture fixture = open_with_tensor(_i);
    struct job job = {.jail = fixture.jail, .inputs = {a, b}, .hashes = {&a_hash, &b_hash}};
    job.arguments = product;
    for (int i = 0; i < 2; i++) { /* the second time with one of them in the folder */
        job.hashes[1] = i == 0 ? &b_hash : NULL;
        (void)perform(&job);
        ck_assert_msg(job.reply.outcome == OUTCOME_OK, "%d: %s", job.reply.outcome,
                      job.reply.detail);
        expect_value(&job.reply, 20, 10, 180);
        jail_reply_fini(&job.reply);
    }
    const char *const over[] = {"matmul", "b.npy", "c.npy", "a.npy", NULL};
    struct job taken = {.jail = fixture.jail,
                        .inputs = {a, b, matrix(10, 3, 1)},
                        .hashes = {&a_hash, &b_hash},
                        .arguments = over};
    (void)perform(&taken);
    ck_assert_ptr_nonnull(strstr(taken.reply.detail, "a.npy: it is there already"));
    jail_reply_fini(&taken.reply);

    job.arguments = product;
    job.hashes[0] = &b_hash;
    (void)perform(&job);
    ck_assert_str_eq(job.reply.detail, "input a.npy: the broker's file does not have its hash");
    ck_assert_int_eq(job.reply.outcome, OUTCOME_INPUT_MISSING);
    jail_reply_fini(&job.reply);
    job.hashes[0] = &a_hash;
    job.inputs[0].size++;
    (void)perform(&job);
    ck_assert_str_eq(job.reply.detail, "input a.npy: is shorter than it was said to be");
    ck_assert_int_eq(job.reply.outcome, OUTCOME_INPUT_MISSING);
    jail_reply_fini(&job.reply);
    close_inputs(&taken);
    multiply_small(&fixture, 1);
    fixture_close(&fixture);
}
END_TEST

static void ends_missing(struct job *job, const char *why)
{
    (void)perform(job);
    ck_assert_str_eq(job->reply.detail, why);
    ck_assert_int_eq(job->reply.outcome, OUTCOME_INPUT_MISSING);
    jail_reply_fini(&job->reply);
}

static void ends_well(struct job *job)
{
    (void)perform(job);
    ck_assert_msg(job->reply.outcome == OUTCOME_OK, "%s", job->reply.detail);
    jail_reply_fini(&job->reply);
}

START_TEST(what_is_mapped_is_hashed_once_while_it_looks_the_same)
{
    static const char wrong[] = "input a.npy: the broker's file does not have its hash";
    struct file a = on_disk(matrix(20, 30, 3), getuid(), 0600);
    struct file b = on_disk(matrix(30, 10, 2), getuid(), 0600);
    struct hash32 a_hash = hash_of(a);
    struct hash32 b_hash = hash_of(b);
    struct stamp seen = {.is_known = false};
    char link[64];
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", a.fd);
    int writer = open(link, O_WRONLY | O_CLOEXEC);
    ck_assert_int_ge(writer, 0);
    struct fixture fixture = open_with_tensor(_i);
    struct job job = {.jail = fixture.jail,
                      .inputs = {a, b},
                      .hashes = {&b_hash},
                      .hashed = {&seen},
                      .arguments = product};
    ends_missing(&job, wrong);
    ck_assert(!seen.is_known);
    job.hashes[0] = &a_hash;
    ends_well(&job);
    ck_assert(seen.is_known && !stamp_has_changed(&seen, a.fd));
    job.hashes[0] = &b_hash; /* who hashed it again would see */
    ends_well(&job);
    job.inputs[0].size++;
    ends_missing(&job, "input a.npy: is shorter than it was said to be");
    ck_assert(!seen.is_known);
    job.inputs[0].size--;
    job.hashes[0] = &a_hash;
    ends_well(&job);
    ck_assert_int_eq(pwrite(writer, "x", 1, (off_t)a.size - 1), 1);
    ends_missing(&job, wrong);
    ck_assert(!seen.is_known);
    (void)close(writer);
    close_inputs(&job);
    fixture_close(&fixture);
}
END_TEST

START_TEST(what_is_mapped_counts_as_if_it_lay_in_the_folder)
{
    struct file a = on_disk(matrix(2000, 2000, 1), getuid(), 0600); /* 16 MB of 32 MiB */
    struct hash32 hash = hash_of(a);
    struct file row = matrix(2000, 1, 1);
    struct fixture fixture = open_with_tensor(_i);
    struct job fits = {
        .jail = fixture.jail, .inputs = {a, row}, .hashes = {&hash}, .arguments = product};
    (void)perform(&fits);
    ck_assert_msg(fits.reply.outcome == OUTCOME_OK, "%s", fits.reply.detail);
    jail_reply_fini(&fits.reply);
    struct job large = {.jail = fixture.jail,
                        .inputs = {matrix(2100, 1, 1), matrix(1, 2100, 1), a}, /* none reads it */
                        .hashes = {NULL, NULL, &hash},
                        .arguments = product};
    ends_as(&large, OUTCOME_DISK_LIMIT, "the result of 17640128 bytes does not fit");
    (void)close(row.fd);
    multiply_small(&fixture, 1);
    fixture_close(&fixture);
}
END_TEST

/* Waits until the process has mapped a file of on_disk. */
static void await_mapping(long pid)
{
    char path[64];
    char line[512];
    bool found = false;
    (void)snprintf(path, sizeof path, "/proc/%ld/maps", pid);
    for (int tries = 0; tries < 120000 && !found; tries++) {
        FILE *maps = fopen(path, "re");
        ck_assert_ptr_nonnull(maps);
        while (!found && fgets(line, sizeof line, maps) != NULL) {
            found = strstr(line, "/bourse-jail-lent-") != NULL;
        }
        (void)fclose(maps);
        (void)usleep(500);
    }
    ck_assert(found);
}

enum change {
    CHANGE_SHORTER,
    CHANGE_HEADER,
    CHANGE_VALUE,
    CHANGE_VALUE_AND_MTIME,
    CHANGES,
    CHANGE_NAME_LOST = CHANGES
};

static void change_file(const char *name, enum change change)
{
    struct stat before;
    int owners = open(name, O_WRONLY | O_CLOEXEC);
    ck_assert_int_ge(owners, 0);
    ck_assert_int_eq(fstat(owners, &before), 0);
    const struct timespec times[] = {before.st_atim, before.st_mtim};
    switch (change) {
    case CHANGE_SHORTER:
        ck_assert_int_eq(ftruncate(owners, 0), 0);
        break;
    case CHANGE_HEADER:
        ck_assert_int_eq(pwrite(owners, "", 1, 0), 1);
        break;
    case CHANGE_VALUE:
    case CHANGE_VALUE_AND_MTIME:
        ck_assert_int_eq(pwrite(owners, "\1", 1, before.st_size - 4), 1);
        if (change == CHANGE_VALUE_AND_MTIME) {
            ck_assert_int_eq(futimens(owners, times), 0);
        }
        break;
    case CHANGE_NAME_LOST:
        ck_assert_int_eq(unlink(name), 0);
        break;
    }
    (void)close(owners);
}

/* While its last input is mapped. */
static void check_while_changed(struct fixture *fixture, enum change change, struct job *job)
{
    char name[] = ON_DISK;
    pthread_t thread;
    multiply_small(fixture, 1);
    long pid = find_program();
    *job = long_check(fixture);
    job->inputs[2] = on_disk_named(job->inputs[2], getuid(), 0600, name);
    struct hash32 hash = hash_of(job->inputs[2]);
    job->hashes[2] = &hash;
    ck_assert_int_eq(pthread_create(&thread, NULL, perform, job), 0);
    await_mapping(pid);
    change_file(name, change);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    job->hashes[2] = NULL;
    (void)unlink(name); /* it may be gone */
    ck_assert(!job->reply.jail_ended);
    close_inputs(job);
}

START_TEST(a_mapped_file_that_is_changed_is_an_input_that_is_missing)
{
    struct job job;
    struct fixture fixture = open_with_tensor(_i);
    for (int change = 0; change < CHANGES; change++) {
        check_while_changed(&fixture, (enum change)change, &job);
        ck_assert_msg(job.reply.outcome == OUTCOME_INPUT_MISSING, "%d: %d: %s", change,
                      job.reply.outcome, job.reply.detail);
        ck_assert_str_eq(job.reply.detail,
                         "input c.npy: the broker's file was changed while it was computed with");
        ck_assert_int_eq(job.reply.signal, 0);
        jail_reply_fini(&job.reply);
    }
    multiply_small(&fixture, 3);
    fixture_close(&fixture);
}
END_TEST

START_TEST(a_mapped_file_that_loses_its_name_only_is_computed_with)
{
    struct job job;
    struct fixture fixture = open_with_tensor(_i);
    check_while_changed(&fixture, CHANGE_NAME_LOST, &job);
    ck_assert_msg(job.reply.outcome == OUTCOME_OK, "%d: %s", job.reply.outcome, job.reply.detail);
    jail_reply_fini(&job.reply);
    fixture_close(&fixture);
}
END_TEST

START_TEST(a_subtask_is_cancelled_and_the_next_one_runs)
{
    struct fixture fixture = open_with_tensor(_i);
    multiply_small(&fixture, 1);
    long pid = find_program();
    pthread_t thread;
    struct job job = long_check(&fixture);
    ck_assert_int_eq(pthread_create(&thread, NULL, perform, &job), 0);
    await_state(pid, 'R');
    jail_cancel(fixture.jail, OUTCOME_CANCELLED);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(job.reply.outcome, OUTCOME_CANCELLED);
    jail_reply_fini(&job.reply);
    close_inputs(&job);
    multiply_small(&fixture, 2);
    fixture_close(&fixture);
}
END_TEST

START_TEST(threads_are_the_lesser_of_slots_and_processors)
{
    struct fixture fixture = open_with_tensor(_i);
    cpu_set_t cpus;
    ck_assert_int_eq(sched_getaffinity(0, sizeof cpus, &cpus), 0);
    for (uint32_t slots = 1; slots <= 64; slots *= 8) {
        char state;
        long parent;
        long threads;
        reopen(&fixture, fixture.tensor, NULL);
        struct job job = {.jail = fixture.jail,
                          .inputs = {matrix(400, 400, 1), matrix(400, 400, 1)},
                          .bounds = {.tensor_threads = slots},
                          .arguments = product};
        (void)perform(&job);
        ck_assert_msg(job.reply.outcome == OUTCOME_OK, "%s", job.reply.detail);
        expect_value(&job.reply, 400, 400, 400);
        ck_assert(read_status(find_program(), &state, &parent, &threads));
        long most = CPU_COUNT(&cpus);
        ck_assert_int_le(threads, (long)slots < most ? (long)slots : most);
        jail_reply_fini(&job.reply);
        close_inputs(&job);
    }
    fixture_close(&fixture);
}
END_TEST

START_TEST(only_jails_that_have_it_know_the_program)
{
    static const char *const look[] = {"sh", "-c", "test ! -e /.bourse-tensor", NULL};
    struct fixture fixture = fixture_open(_i);
    struct jail_request request = {.argv = look, .stdin_fd = -1};
    struct jail_reply reply;
    jail_run(fixture.jail, &request, &reply);
    fixture_ends(reply, OUTCOME_OK);
    struct job job = {
        .jail = fixture.jail, .inputs = {matrix(2, 2, 1), matrix(2, 2, 1)}, .arguments = product};
    (void)perform(&job);
    ck_assert_int_eq(job.reply.outcome, OUTCOME_PROGRAM_MISSING);
    jail_reply_fini(&job.reply);
    close_inputs(&job);

    /* A program beside it ends it too: nobody is left of one subtask for the next but the resident
     * alone. */
    static const char *const plain[] = {"true", NULL};
    reopen(&fixture, fixture.tensor, NULL);
    multiply_small(&fixture, 1);
    struct jail_request other = {.argv = plain, .stdin_fd = -1};
    jail_run(fixture.jail, &other, &reply);
    fixture_ends(reply, OUTCOME_OK);
    ck_assert_int_eq(find_program(), 0);
    multiply_small(&fixture, 2);
    fixture_close(&fixture);
}
END_TEST

START_TEST(the_probe_runs_the_program_or_says_why_not)
{
    struct fixture fixture = fixture_open(_i);
    struct profile_gemm gemm = {.engine = ""};
    struct problem problem = {""};
    ck_assert_msg(tensor_probe(fixture.launcher, fixture.worker, fixture.tensor, fixture.cgroups,
                               &gemm, &problem),
                  "%s", problem.text);
    ck_assert_int_gt(gemm.mflops, 0);
    ck_assert_int_eq(gemm.mflops, probe_round(gemm.mflops));
    ck_assert_uint_gt(strlen(gemm.engine), 0);
    /* The worker is a program, too, but answers no question on its standard input. */
    ck_assert(!tensor_probe(fixture.launcher, fixture.worker, fixture.worker, fixture.cgroups,
                            &gemm, &problem));
    ck_assert_uint_gt(strlen(problem.text), 0);
    fixture_close(&fixture);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        one_process_serves_subtask_after_subtask,
        what_is_wrong_with_the_operands_is_said,
        a_crash_fails_the_subtask_and_the_next_one_runs,
        limits_hold_for_each_subtask,
        memory_that_the_kernel_counts_is_the_memory_limit,
        only_files_that_root_or_we_alone_can_change_are_mapped,
        what_is_mapped_is_computed_with_when_it_has_its_hash,
        what_is_mapped_is_hashed_once_while_it_looks_the_same,
        what_is_mapped_counts_as_if_it_lay_in_the_folder,
        a_mapped_file_that_is_changed_is_an_input_that_is_missing,
        a_mapped_file_that_loses_its_name_only_is_computed_with,
        a_subtask_is_cancelled_and_the_next_one_runs,
        threads_are_the_lesser_of_slots_and_processors,
        only_jails_that_have_it_know_the_program,
        the_probe_runs_the_program_or_says_why_not,
    };
    return fixture_main("jail_tensor", tests, sizeof tests / sizeof *tests);
}
