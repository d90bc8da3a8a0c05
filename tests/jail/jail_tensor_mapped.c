/* bourse-tensor in a real jail maps files of the host that only root or the agent can change, and
 * computes with them when they have their hash. */
#include "base/sha256.h"
#include "fixture.h"
#include "provider/jail/jail_internal.h"
#include "tensor_jail.h"

#include <pthread.h>
#include <sys/sendfile.h>

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
    ck_assert_ptr_nonnull(strstr(taken.reply.detail, "a.npy: the file is there already"));
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
static void check_while_changed(struct fixture *fixture, enum change change, bool is_told,
                                struct job *job)
{
    char name[] = ON_DISK;
    pthread_t thread;
    multiply_small(fixture, 1);
    long pid = find_program();
    *job = long_check(fixture);
    job->inputs[2] = on_disk_named(job->inputs[2], getuid(), 0600, name);
    struct hash32 hash = hash_of(job->inputs[2]);
    job->hashes[2] = &hash;
    job->is_told = is_told;
    ck_assert_int_eq(pthread_create(&thread, NULL, perform, job), 0);
    await_mapping(pid);
    change_file(name, change);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    job->hashes[2] = NULL;
    (void)unlink(name); /* it may be gone */
    ck_assert_int_eq(job->reply.jail_ended, is_told && change < CHANGES);
    close_inputs(job);
}

START_TEST(a_mapped_file_that_is_changed_is_an_input_that_is_missing)
{
    struct job job;
    struct fixture fixture = open_with_tensor(_i);
    for (int change = 0; change < CHANGES; change++) {
        check_while_changed(&fixture, (enum change)change, false, &job);
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

/* The resident may hold the changed bytes on a device, under the hash of what they were. */
START_TEST(a_resident_that_was_told_of_a_changed_file_is_of_no_further_use)
{
    struct job job;
    struct fixture fixture = open_with_tensor(_i);
    check_while_changed(&fixture, CHANGE_VALUE, true, &job);
    ck_assert_int_eq(job.reply.outcome, OUTCOME_INPUT_MISSING);
    jail_reply_fini(&job.reply);
    fixture_close(&fixture);
}
END_TEST

START_TEST(a_mapped_file_that_loses_its_name_only_is_computed_with)
{
    struct job job;
    struct fixture fixture = open_with_tensor(_i);
    check_while_changed(&fixture, CHANGE_NAME_LOST, true, &job);
    ck_assert_msg(job.reply.outcome == OUTCOME_OK, "%d: %s", job.reply.outcome, job.reply.detail);
    jail_reply_fini(&job.reply);
    fixture_close(&fixture);
}
END_TEST

/* The agent's store has verified its own files, so that they come without a hash. */
START_TEST(what_the_agent_has_verified_is_mapped_without_a_hash)
{
    struct file a = on_disk(matrix(20, 30, 3), getuid(), 0600);
    struct file b = on_disk(matrix(30, 10, 2), getuid(), 0600);
    struct fixture fixture = open_with_tensor(_i);
    static const char *const outputs[] = {"r.npy"};
    const struct jail_input inputs[] = {
        {.name = "a.npy", .fd = a.fd, .size = a.size, .is_mapped = true},
        {.name = "b.npy", .fd = b.fd, .size = b.size, .is_mapped = true}};
    const struct jail_request request = {.tensor_threads = 1,
                                         .argv = product,
                                         .inputs = inputs,
                                         .input_count = 2,
                                         .outputs = outputs,
                                         .output_count = 1,
                                         .stdin_fd = -1};
    struct jail_reply reply;
    jail_run(fixture.jail, &request, &reply);
    ck_assert_msg(reply.outcome == OUTCOME_OK, "%d: %s", reply.outcome, reply.detail);
    expect_value(&reply, 20, 10, 180);
    jail_reply_fini(&reply);
    (void)close(a.fd);
    (void)close(b.fd);
    fixture_close(&fixture);
}
END_TEST

/* An input that the resident is said to have has no bytes on their way. Where the program is new,
 * nobody computes with an input that is not there. */
START_TEST(a_program_that_is_gone_holds_nothing)
{
    struct fixture fixture = open_with_tensor(_i);
    const struct hash32 hash = {{1}};
    const struct jail_input held = {.name = "a.npy", .fd = -1, .content = &hash, .is_held = true};
    const struct jail_request request = {
        .tensor_threads = 1, .argv = product, .inputs = &held, .input_count = 1, .stdin_fd = -1};
    struct jail_reply reply;
    jail_run(fixture.jail, &request, &reply);
    ck_assert_int_eq(reply.outcome, OUTCOME_JAIL_FAILED);
    ck_assert_str_eq(reply.detail, "the computing program has ended, and with it what it held");
    jail_reply_fini(&reply);
    multiply_small(&fixture, 1); /* the program is started */
    jail_run(fixture.jail, &request, &reply);
    ck_assert_int_eq(reply.outcome, OUTCOME_PROGRAM_FAILED); /* bourse-tensor holds no inputs */
    ck_assert_ptr_nonnull(strstr(reply.detail, "a.npy"));
    jail_reply_fini(&reply);
    fixture_close(&fixture);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        only_files_that_root_or_we_alone_can_change_are_mapped,
        what_is_mapped_is_computed_with_when_it_has_its_hash,
        what_is_mapped_is_hashed_once_while_it_looks_the_same,
        what_is_mapped_counts_as_if_it_lay_in_the_folder,
        a_mapped_file_that_is_changed_is_an_input_that_is_missing,
        what_the_agent_has_verified_is_mapped_without_a_hash,
        a_program_that_is_gone_holds_nothing,
        a_mapped_file_that_loses_its_name_only_is_computed_with,
        a_resident_that_was_told_of_a_changed_file_is_of_no_further_use,
    };
    return fixture_main("jail_tensor_mapped", tests, sizeof tests / sizeof *tests);
}
