/* A worker that has been taken over may answer anything: the agent believes none of it. */
#include "base/cursor.h"
#include "provider/jail/jail_internal.h"
#include "provider/privilege.h"
#include "provider/worker/wire.h"
#include "tests/support/suite.h"

#include <check.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct answer {
    uint32_t outcome;
    uint64_t captured, output_size;
    uint32_t output_count;
    const char *detail;
    uint32_t verdict;
    uint32_t fault;
    size_t spare; /* bytes behind the end */
    size_t cut;   /* bytes missing at the end */
};

static size_t encode(const struct answer *answer, uint8_t *bytes, size_t capacity)
{
    struct writer out = writer_over(bytes, capacity);
    writer_u8(&out, WIRE_REPLY);
    writer_u32(&out, 1);
    writer_u32(&out, answer->outcome);
    writer_u32(&out, 0);
    writer_u32(&out, 0);
    writer_u32(&out, answer->verdict);
    writer_u32(&out, answer->fault);
    writer_u64(&out, 5);
    writer_u64(&out, 6);
    writer_u32(&out, WIRE_REPLY_STDERR_CUT);
    writer_u64(&out, answer->captured);
    writer_u64(&out, 0);
    for (uint64_t figure = 1; figure <= 7; figure++) {
        writer_u64(&out, figure);
    }
    writer_u32(&out, answer->output_count);
    for (uint32_t i = 0; i < answer->output_count; i++) {
        writer_u8(&out, 1);
        writer_u64(&out, answer->output_size);
    }
    writer_u32(&out, (uint32_t)strlen(answer->detail));
    writer_bytes(&out, answer->detail, strlen(answer->detail));
    ck_assert(!out.failed);
    return out.position + answer->spare - answer->cut;
}

/* Decodes an answer that came with `file`; the file is the decoder's. */
static bool decode(struct answer answer, int file, struct jail_reply *reply)
{
    static const char *const outputs[] = {"out"};
    uint8_t bytes[1024] = {0};
    struct jail_request request = {
        .outputs = outputs, .output_count = 1, .output_bytes = 100, .capture_bytes = 50};
    uint64_t captured[2];
    size_t length = encode(&answer, bytes, sizeof bytes);
    for (size_t i = 0; i < LIMIT_OUTPUTS; i++) {
        reply->outputs[i].fd = -1;
    }
    return jail_wire_read_reply(bytes, length, &request, &file, file >= 0 ? 1 : 0, reply, captured);
}

static int memory_file(off_t size)
{
    int file = memfd_create("output", MFD_CLOEXEC);
    ck_assert_int_eq(ftruncate(file, size), 0);
    return file;
}

static const struct answer good = {
    .outcome = OUTCOME_OK, .captured = 50, .output_size = 100, .output_count = 1, .detail = ""};

START_TEST(an_honest_answer_is_taken)
{
    struct jail_reply reply = {0};
    ck_assert(decode(good, memory_file(100), &reply));
    ck_assert_int_eq(reply.outcome, OUTCOME_OK);
    ck_assert_uint_eq(reply.outputs[0].size, 100);
    ck_assert_int_eq(reply.verdict, VERDICT_NONE);
    ck_assert(reply.stderr_cut && !reply.stdout_cut);
    (void)close(reply.outputs[0].fd);
    struct answer check = {.outcome = OUTCOME_OK, .detail = "", .verdict = VERDICT_REJECT};
    struct jail_reply said = {0};
    ck_assert(!decode(check, -1, &said)); /* an output is missing */
    struct answer failed = {.outcome = OUTCOME_PROGRAM_FAILED, .detail = "bad\x1b[2J"};
    ck_assert(decode(failed, -1, &reply));
    ck_assert_str_eq(reply.detail, "bad?[2J");
    struct answer lost = {.outcome = OUTCOME_JAIL_FAILED, .detail = "", .fault = DEVICE_FAULT_LOST};
    ck_assert(decode(lost, -1, &reply));
    ck_assert_int_eq(reply.fault, DEVICE_FAULT_LOST);
    lost.fault = DEVICE_FAULTS;
    ck_assert(!decode(lost, -1, &reply));
}
END_TEST

START_TEST(only_plain_files_in_memory_are_outputs)
{
    struct jail_reply reply = {0};
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert(!decode(good, ends[0], &reply));
    ck_assert(!decode(good, open("/etc/passwd", O_RDONLY), &reply)); /* a file of the host's */
    ck_assert(!decode(good, open("/proc/self/environ", O_RDONLY), &reply));
    ck_assert(!decode(good, open("/dev/zero", O_RDONLY), &reply));
    ck_assert(!decode(good, open("/tmp", O_RDONLY | O_DIRECTORY), &reply));
    ck_assert(!decode(good, memory_file(99), &reply)); /* smaller than said */
    ck_assert_int_eq(reply.outputs[0].fd, -1);
    ck_assert(!decode(good, -1, &reply));
    (void)close(ends[1]);
}
END_TEST

START_TEST(numbers_out_of_range_are_refused)
{
    struct jail_reply reply = {0};
    struct answer answer = good;
    answer.outcome = OUTCOME_COUNT;
    ck_assert(!decode(answer, memory_file(100), &reply));
    answer = good;
    answer.captured = 51;
    ck_assert(!decode(answer, memory_file(100), &reply));
    answer = good;
    answer.output_size = 101;
    ck_assert(!decode(answer, memory_file(200), &reply));
    answer = good;
    answer.output_count = 2;
    ck_assert(!decode(answer, memory_file(100), &reply));
    answer = good;
    answer.outcome = OUTCOME_PROGRAM_FAILED; /* with outputs */
    ck_assert(!decode(answer, memory_file(100), &reply));
    answer = good;
    answer.spare = 1;
    ck_assert(!decode(answer, memory_file(100), &reply));
    answer = good;
    answer.cut = 1;
    ck_assert(!decode(answer, memory_file(100), &reply));
}
END_TEST

START_TEST(names_are_plain_relative_paths)
{
    static const char *const bad[] = {"",  "/",  "/a",   "a/",   "a//b",
                                      ".", "..", "a/..", "../a", "a/./b"};
    static const char *const fine[] = {"a", "a/b/c", "...", ".a", "a..b", "-rf", "a b\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_msg(!wire_name_valid(bad[i]), "%s", bad[i]);
    }
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++) {
        ck_assert_msg(wire_name_valid(fine[i]), "%s", fine[i]);
    }
}
END_TEST

/* The fields are what a worker says of the entries of a folder. */
struct said {
    uint32_t output, count, name_length;
    uint64_t size;
    const char *name;
    size_t spare;
    uint8_t kind;       /* enum wire_entry_kind */
    const char *target; /* of a link */
    bool is_plain;      /* the job keeps neither links nor empty folders */
};

static enum result_outcome take_nothing(void *context, const struct jail_entry *entry,
                                        struct problem *ret_problem)
{
    (void)context;
    (void)entry;
    (void)ret_problem;
    return OUTCOME_OK;
}

static bool read_said(struct said said, int file)
{
    static const char *const outputs[] = {"out", "results/", "results/"};
    static const char *const patterns[] = {NULL, NULL, "*.csv"};
    static struct jail_entries entries;
    uint8_t bytes[4096] = {0};
    const struct jail_request request = {.outputs = outputs,
                                         .patterns = patterns,
                                         .output_count = 3,
                                         .take_entry = take_nothing,
                                         .keeps_trees = !said.is_plain};
    struct writer out = writer_over(bytes, sizeof bytes);
    writer_u8(&out, WIRE_ENTRIES);
    writer_u32(&out, 1);
    writer_u32(&out, said.output);
    writer_u32(&out, said.count);
    writer_u8(&out, said.kind);
    writer_u64(&out, said.size);
    writer_u32(&out, said.name_length);
    writer_bytes(&out, said.name, said.name_length);
    if (said.target != NULL) {
        writer_u32(&out, (uint32_t)strlen(said.target));
        writer_bytes(&out, said.target, strlen(said.target));
    }
    const bool is_read = jail_wire_read_entries(bytes, out.position + said.spare, &request, &file,
                                                file >= 0 ? 1 : 0, &entries);
    if (file >= 0) {
        (void)close(file);
    }
    return is_read;
}

START_TEST(files_of_a_folder_are_believed_no_more)
{
    const struct said honest = {
        .output = 1, .count = 1, .name_length = 3, .size = 100, .name = "a/b"};
    struct said said = honest;
    ck_assert(read_said(honest, memory_file(100)));
    ck_assert(!read_said(honest, memory_file(99)));
    ck_assert(!read_said(honest, open("/etc/passwd", O_RDONLY)));
    ck_assert(!read_said(honest, -1));
    said.output = 0; /* a file and no folder */
    ck_assert(!read_said(said, memory_file(100)));
    said.output = 3;
    ck_assert(!read_said(said, memory_file(100)));
    said.output = 2; /* a pattern */
    ck_assert(!read_said(said, memory_file(100)));
    said.name = "b.csv";
    said.name_length = 5;
    ck_assert(read_said(said, memory_file(100)));
    said = honest;
    said.count = 2;
    ck_assert(!read_said(said, memory_file(100)));
    said.count = 0;
    ck_assert(!read_said(said, memory_file(100)));
    said = honest;
    said.spare = 1;
    ck_assert(!read_said(said, memory_file(100)));
    static const char *const bad[] = {"..", "/a", "a/", "a/../b", "", "a\nb", "a\xff"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        said = honest;
        said.name = bad[i];
        said.name_length = (uint32_t)strlen(bad[i]);
        ck_assert_msg(!read_said(said, memory_file(100)), "%s", bad[i]);
    }
    said = honest;
    said.name_length = 2000;
    static char long_name[2000];
    memset(long_name, 'a', sizeof long_name);
    said.name = long_name;
    ck_assert(!read_said(said, memory_file(100)));
}
END_TEST

START_TEST(folders_and_links_are_believed_no_more)
{
    const struct said folder = {
        .output = 1, .count = 1, .name_length = 3, .name = "a/b", .kind = WIRE_ENTRY_FOLDER};
    struct said said = folder;
    ck_assert(read_said(folder, -1));
    ck_assert(!read_said(folder, memory_file(0))); /* nobody takes the file */
    said.size = 1;
    ck_assert(!read_said(said, -1));
    said = folder;
    said.is_plain = true;
    ck_assert(!read_said(said, -1));
    said = folder;
    said.name = "../";
    ck_assert(!read_said(said, -1));
    said = folder;
    said.kind = WIRE_ENTRY_LINK + 1;
    ck_assert(!read_said(said, -1));
    said.kind = WIRE_ENTRY_LINK;
    ck_assert(!read_said(said, -1)); /* without a target */
    said.target = "../c";
    ck_assert(read_said(said, -1));
    said.is_plain = true;
    ck_assert(!read_said(said, -1));
    said.is_plain = false;
    static const char *const bad[] = {"", "/etc/passwd", "../../c", "c/../d", "a\nb"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        said.target = bad[i];
        ck_assert_msg(!read_said(said, -1), "%s", bad[i]);
    }
    static char long_target[LIMIT_PATH_BYTES + 1];
    memset(long_target, 'a', sizeof long_target - 1);
    said.target = long_target;
    ck_assert(!read_said(said, -1));
}
END_TEST

START_TEST(an_entry_takes_no_more_than_is_counted)
{
    ck_assert_uint_eq(wire_entry_bytes(1, 0), 512);
    ck_assert_uint_eq(wire_entry_bytes(100, 1), 1024);
    ck_assert_uint_eq(wire_entry_bytes(101, 513), 512 + 1024 + 512 + 512);
    ck_assert_uint_eq(wire_entry_bytes(1, UINT64_MAX), UINT64_MAX);
    ck_assert(wire_is_folder("a/") && !wire_is_folder("a") && !wire_is_folder("/"));
}
END_TEST

START_TEST(root_is_left_for_good)
{
    struct problem problem;
    uid_t uid;
    gid_t gid;
    ck_assert(!privilege_user("root", &uid, &gid, &problem));
    ck_assert(!privilege_user("no such user", &uid, &gid, &problem));
    ck_assert(!privilege_user("0", &uid, &gid, &problem));
    ck_assert(!privilege_drop(0, 1, &problem));
    if (geteuid() != 0) {
        ck_assert(privilege_drop(getuid(), getgid(), &problem));
        ck_assert(!privilege_drop(getuid() + 1, getgid(), &problem));
        return;
    }
    ck_assert(privilege_user("nobody", &uid, &gid, &problem));
    ck_assert_msg(privilege_drop(uid, gid, &problem), "%s", problem.text);
    ck_assert_int_ne(setuid(0), 0);
    ck_assert_int_ne(access("/etc/shadow", R_OK), 0);
    ck_assert_int_eq(getgroups(0, NULL), 1);
    for (int i = 0; prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++) { /* fails above the last one */
        ck_assert_int_eq(prctl(PR_CAPBSET_READ, i, 0, 0, 0), 0);
    }
}
END_TEST

SUITE("jail_wire", NULL, NULL, TEST(an_honest_answer_is_taken),
      TEST(only_plain_files_in_memory_are_outputs), TEST(numbers_out_of_range_are_refused),
      TEST(names_are_plain_relative_paths), TEST(files_of_a_folder_are_believed_no_more),
      TEST(folders_and_links_are_believed_no_more), TEST(an_entry_takes_no_more_than_is_counted),
      TEST(root_is_left_for_good))
