/* The tests go from a job file and the files around it to a manifest. */
#include "consumer/job/bourse_job.h"

#include "base/cleanup.h"
#include "base/sha256.h"
#include "consumer/job/result_checks.h"
#include "consumer/job/tasks.h"
#include "formats/npy.h"
#include "matching/book.h"
#include "protocol/codec.h"
#include "protocol/limits.h"
#include "tests/support/suite.h"

#include <check.h>
#include <fcntl.h>
#include <ftw.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/bourse-prepare-XXXXXX";
static char here[64];

static void setup(void)
{
    ck_assert_int_ge(sodium_init(), 0);
    (void)snprintf(here, sizeof here, "%s", folder);
    ck_assert_ptr_nonnull(mkdtemp(here));
    ck_assert_int_eq(chdir(here), 0);
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *ftw)
{
    (void)status;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void teardown(void)
{
    ck_assert_int_eq(chdir("/"), 0);
    ck_assert_int_eq(nftw(here, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static void put(const char *name, const char *content)
{
    FILE *file = fopen(name, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(content, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

/* Zeros. */
static void put_matrix(const char *name, uint32_t rows, uint32_t columns)
{
    uint8_t head[NPY_MATRIX_BYTES];
    const float zero = 0;
    FILE *file = fopen(name, "w");
    ck_assert_ptr_nonnull(file);
    npy_write_matrix(rows, columns, head);
    ck_assert_uint_eq(fwrite(head, 1, sizeof head, file), sizeof head);
    for (uint32_t i = 0; i < rows * columns; i++) {
        ck_assert_uint_eq(fwrite(&zero, sizeof zero, 1, file), 1);
    }
    ck_assert_int_eq(fclose(file), 0);
}

/* Makes a file as large as it says, nearly all of it a hole. */
static void put_hole(const char *name, uint32_t rows, uint32_t columns)
{
    uint8_t head[NPY_MATRIX_BYTES];
    FILE *file = fopen(name, "w");
    ck_assert_ptr_nonnull(file);
    npy_write_matrix(rows, columns, head);
    ck_assert_uint_eq(fwrite(head, 1, sizeof head, file), sizeof head);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(
        truncate(name, (off_t)(sizeof head + (uint64_t)rows * columns * sizeof(float))), 0);
}

static struct bourse_job *prepared(const char *text)
{
    struct bourse_job *job = NULL;
    struct bourse_error error = {.text = ""};
    if (!bourse_job_parse(text, strlen(text), ".", &job, &error)) {
        ck_abort_msg("refused: %s", error.text);
    }
    return job;
}

static struct bourse_error refused(const char *text)
{
    struct bourse_job *job = NULL;
    struct bourse_error error = {.text = ""};
    ck_assert(!bourse_job_parse(text, strlen(text), ".", &job, &error));
    ck_assert_ptr_null(job);
    return error;
}

static Bourse__V1__Manifest *manifest_of(const struct bourse_job *job)
{
    Bourse__V1__Manifest *manifest = NULL;
    ck_assert_int_eq(codec_decode_manifest(job->manifest, job->manifest_length, &manifest, NULL),
                     CODEC_OK);
    return manifest;
}

static void manifest_free(Bourse__V1__Manifest **self)
{
    ProtobufCMessage *message = &(*self)->base;
    codec_free(&message);
}

#define EACH(pattern) "each: " pattern "\nrun: [xz, \"{in}\"]\noutputs: [\"{in}.xz\"]\n"

START_TEST(each_file_is_a_subtask_in_the_order_of_its_bytes)
{
    ck_assert_int_eq(mkdir("d", 0700), 0);
    put("d/b.txt", "two");
    put("d/a.txt", "one");
    put("d/Z.txt", "zed");
    put("d/other.log", "no");
    CLEANUP(bourse_job_destroy) struct bourse_job *job = prepared(EACH("d/*.txt"));
    CLEANUP(manifest_free) Bourse__V1__Manifest *manifest = manifest_of(job);
    ck_assert_uint_eq(manifest->n_subtasks, 3);
    ck_assert_uint_eq(manifest->subtask_count, 3);
    ck_assert_str_eq(manifest->subtasks[0]->inputs[0]->name, "d/Z.txt");
    ck_assert_str_eq(manifest->subtasks[1]->inputs[0]->name, "d/a.txt");
    ck_assert_str_eq(manifest->subtasks[2]->inputs[0]->name, "d/b.txt");
    struct hash32 one = sha256_of("one", 3);
    ck_assert_mem_eq(manifest->subtasks[1]->inputs[0]->hash.data, one.bytes, 32);
    ck_assert_uint_eq(manifest->subtasks[1]->inputs[0]->size, 3);
}
END_TEST

START_TEST(the_manifest_has_the_hash_that_is_submitted)
{
    put("a", "x");
    CLEANUP(bourse_job_destroy) struct bourse_job *job = prepared(EACH("a"));
    struct hash32 hash = sha256_of(job->manifest, job->manifest_length);
    ck_assert(hash32_equal(&hash, &job->manifest_hash));
}
END_TEST

START_TEST(a_pattern_that_matches_nothing_is_named)
{
    struct bourse_error error = refused(EACH("\"nothing*.jpg\""));
    ck_assert_ptr_nonnull(strstr(error.text, "nothing*.jpg"));
    put("a.txt", "x");
    error = refused("each: [\"*.txt\", \"*.jpg\"]\nrun: [xz, \"{in}\"]\n");
    ck_assert_ptr_nonnull(strstr(error.text, "'*.jpg'"));
}
END_TEST

START_TEST(names_with_spaces_brackets_and_accents_are_fine)
{
    put("a b.txt", "1");
    put("c[1].txt", "2");
    put("d\xc3\xa9j\xc3\xa0.txt", "3");
    CLEANUP(bourse_job_destroy) struct bourse_job *job = prepared(EACH("\"*.txt\""));
    ck_assert_uint_eq(job->own.count, 3);
    ck_assert_str_eq(job->own.items[0].name, "a b.txt");
    ck_assert_str_eq(job->own.items[1].name, "c[1].txt");
}
END_TEST

START_TEST(names_with_control_characters_or_broken_text_are_refused_printably)
{
    put("a\nb.txt", "1");
    struct bourse_error error = refused(EACH("\"*.txt\""));
    ck_assert_ptr_nonnull(strstr(error.text, "a?b.txt"));
    ck_assert_ptr_null(strchr(error.text, '\n'));
    ck_assert_int_eq(remove("a\nb.txt"), 0);
    put("a\xff.txt", "1");
    error = refused(EACH("\"*.txt\""));
    ck_assert_ptr_nonnull(strstr(error.text, "a?.txt"));
}
END_TEST

START_TEST(only_regular_files_count_and_the_rest_is_counted)
{
    put("a.txt", "1");
    ck_assert_int_eq(mkdir("b.txt", 0700), 0);
    ck_assert_int_eq(symlink("/etc/passwd", "c.txt"), 0);
    ck_assert_int_eq(mkfifo("d.txt", 0600), 0);
    CLEANUP(bourse_job_destroy) struct bourse_job *job = prepared(EACH("\"*.txt\""));
    ck_assert_uint_eq(job->own.count, 1);
    ck_assert_uint_eq(job->own.skipped, 3);
    struct bourse_error error = refused(EACH("\"[bcd].txt\""));
    ck_assert_ptr_nonnull(strstr(error.text, "[bcd].txt"));
}
END_TEST

START_TEST(a_shared_file_may_not_be_a_symbolic_link)
{
    ck_assert_int_eq(symlink("/etc/passwd", "model"), 0);
    struct bourse_error error = refused("run: [cat, model]\nfiles: [model]\n");
    ck_assert_ptr_nonnull(strstr(error.text, "symbolic link"));
}
END_TEST

START_TEST(a_file_matched_twice_is_one_subtask)
{
    put("a.txt", "1");
    put("b.txt", "2");
    CLEANUP(bourse_job_destroy)
    struct bourse_job *job = prepared("each: [\"*.txt\", a.txt, \"?.txt\"]\nrun: [xz, \"{in}\"]\n");
    ck_assert_uint_eq(job->own.count, 2);
}
END_TEST

START_TEST(absolute_and_upward_patterns_get_relative_names)
{
    char text[256];
    ck_assert_int_eq(mkdir("in", 0700), 0);
    put("in/a", "1");
    (void)snprintf(text, sizeof text, EACH("\"%s/in/*\""), here);
    CLEANUP(bourse_job_destroy) struct bourse_job *job = prepared(text);
    ck_assert_str_eq(job->own.items[0].name, job->own.items[0].path + 1);
    ck_assert_int_eq(chdir("in"), 0);
    put("../up", "1");
    CLEANUP(bourse_job_destroy) struct bourse_job *upward = prepared(EACH("../up"));
    ck_assert_str_eq(upward->own.items[0].name, "up");
}
END_TEST

START_TEST(two_files_under_one_name_are_refused)
{
    ck_assert_int_eq(mkdir("in", 0700), 0);
    put("a", "1");
    put("in/a", "2");
    ck_assert_int_eq(chdir("in"), 0);
    struct bourse_error error = refused("each: [a, ../a]\nrun: [xz, \"{in}\"]\n");
    ck_assert_ptr_nonnull(strstr(error.text, "two files"));
}
END_TEST

START_TEST(the_folder_of_the_job_may_hold_pattern_characters)
{
    ck_assert_int_eq(mkdir("a*[x] y", 0700), 0);
    put("a*[x] y/in.txt", "1");
    put("a*[x] y/job.yaml", EACH("\"*.txt\""));
    CLEANUP(bourse_job_destroy) struct bourse_job *job = NULL;
    struct bourse_error error;
    ck_assert(bourse_job_load("a*[x] y/job.yaml", &job, &error));
    ck_assert_str_eq(job->own.items[0].name, "in.txt");
}
END_TEST

START_TEST(an_array_from_zero_lists_nothing_and_others_list_their_numbers)
{
    CLEANUP(bourse_job_destroy)
    struct bourse_job *plain = prepared("array: 0-999999\nrun: [echo, \"{index}\"]\n");
    ck_assert_uint_eq(plain->subtasks, 1000000);
    ck_assert_uint_lt(plain->manifest_length, 200);
    CLEANUP(bourse_job_destroy)
    struct bourse_job *stepped = prepared("array: 5-9:2\nrun: [echo, \"{index}\"]\n");
    CLEANUP(manifest_free) Bourse__V1__Manifest *manifest = manifest_of(stepped);
    ck_assert_uint_eq(manifest->n_subtasks, 3);
    ck_assert_str_eq(manifest->subtasks[2]->value, "9");
}
END_TEST

START_TEST(an_array_too_large_for_a_manifest_says_so)
{
    struct bourse_error error = refused("array: 1-10000000\nrun: [echo, \"{index}\"]\n");
    ck_assert_ptr_nonnull(strstr(error.text, "split the job"));
}
END_TEST

START_TEST(lines_become_values_without_empty_ones)
{
    put("list", "one\n\ntwo \r\nthree");
    CLEANUP(bourse_job_destroy)
    struct bourse_job *job = prepared("lines: list\nrun: [echo, \"{line}\"]\n");
    CLEANUP(manifest_free) Bourse__V1__Manifest *manifest = manifest_of(job);
    ck_assert_uint_eq(manifest->n_subtasks, 3);
    ck_assert_str_eq(manifest->subtasks[0]->value, "one");
    ck_assert_str_eq(manifest->subtasks[1]->value, "two ");
    ck_assert_str_eq(manifest->subtasks[2]->value, "three");
    put("marked", "\xef\xbb\xbf"
                  "one\n\xef\xbb\xbftwo\n");
    CLEANUP(bourse_job_destroy)
    struct bourse_job *marked = prepared("lines: marked\nrun: [echo, \"{line}\"]\n");
    CLEANUP(manifest_free) Bourse__V1__Manifest *of_marked = manifest_of(marked);
    ck_assert_uint_eq(of_marked->n_subtasks, 2);
    ck_assert_str_eq(of_marked->subtasks[0]->value, "one");
    ck_assert_str_eq(of_marked->subtasks[1]->value, "\xef\xbb\xbftwo");
    put("empty", "\n\n");
    struct bourse_error error = refused("lines: empty\nrun: [echo, \"{line}\"]\n");
    ck_assert_ptr_nonnull(strstr(error.text, "no line"));
    put("latin", "one\ncaf\xe9\n");
    error = refused("lines: latin\nrun: [echo, \"{line}\"]\n");
    ck_assert_ptr_nonnull(strstr(error.text, "latin:2: not UTF-8"));
    put("colour", "one\n\ttwo\r\n\n\x1b[1mthree\n");
    error = refused("lines: colour\nrun: [echo, \"{line}\"]\n");
    ck_assert_ptr_nonnull(strstr(error.text, "colour:4: the control character 0x1b"));
    char *longest = calloc(1, LIMIT_ARGUMENT_BYTES + 2);
    ck_assert_ptr_nonnull(longest);
    memset(longest, 'x', LIMIT_ARGUMENT_BYTES);
    put("long", longest);
    bourse_job_destroy(&(struct bourse_job *){prepared("lines: long\nrun: [echo, \"{line}\"]\n")});
    longest[LIMIT_ARGUMENT_BYTES] = 'x';
    put("long", longest);
    error = refused("lines: long\nrun: [echo, \"{line}\"]\n");
    ck_assert_ptr_nonnull(strstr(error.text, "long:1: "));
    free(longest);
}
END_TEST

START_TEST(a_host_program_is_part_of_what_the_job_needs)
{
    CLEANUP(bourse_job_destroy) struct bourse_job *bare = prepared("run: [xz]\n");
    ck_assert_uint_eq(bare->parts[0].needs.count, 1);
    ck_assert_str_eq(bare->parts[0].needs.nodes[0].attribute.name, "program");
    ck_assert_str_eq(bare->parts[0].needs.nodes[0].attribute.text, "xz");
    CLEANUP(bourse_job_destroy)
    struct bourse_job *both = prepared("run: [xz]\nneeds: \"memory >= 1GiB\"\n");
    ck_assert_uint_eq(both->parts[0].needs.count, 3);
    ck_assert_int_eq(both->parts[0].needs.nodes[2].op, REQUIREMENT_AND);
    ck_assert_uint_eq(both->parts[0].needs.nodes[2].arity, 2);
}
END_TEST

static void has_size(const char *name, int64_t bytes)
{
    put(name, "");
    ck_assert_int_eq(truncate(name, (off_t)bytes), 0);
}

/* The size of `disk` in the last of its needs; 0: that is another. */
static int64_t room_of(const struct order_part *part)
{
    const struct requirement *needs = &part->needs;
    ck_assert_uint_ge(needs->count, 1);
    const bool is_alone = needs->nodes[needs->count - 1].op != REQUIREMENT_AND;
    const struct requirement_node *node = &needs->nodes[needs->count - (is_alone ? 1 : 2)];
    return node->op == REQUIREMENT_GE && strcmp(node->attribute.name, "disk") == 0
               ? node->attribute.number
               : 0;
}

START_TEST(what_is_given_needs_room)
{
    enum { MIB = 1 << 20 };
    has_size("shared", 2 * MIB);
    has_size("a.in", 100);
    has_size("b.in", 3 * MIB);
    struct bourse_job *job = prepared("run: [cat, '{in}']\nfiles: shared\neach: '*.in'");
    ck_assert_int_eq(room_of(&job->parts[0]), 5 * MIB); /* of the largest */
    bourse_job_destroy(&job);
    job = prepared("run: [cat, '{in}']\nfiles: shared\neach: '*.in'\nslots: 4");
    ck_assert_int_eq(room_of(&job->parts[0]), 2 * MIB); /* of each of the four */
    bourse_job_destroy(&job);
    job = prepared("run: [cat, '{in}']\neach: a.in");
    ck_assert_int_eq(room_of(&job->parts[0]), 0); /* every slot has that */
    bourse_job_destroy(&job);
    has_size("a.in", MIB + 1);
    job = prepared("run: [cat, '{in}']\neach: a.in");
    ck_assert_int_eq(room_of(&job->parts[0]), 2 * MIB);
    bourse_job_destroy(&job);
    has_size("a.in", MIB);
    job = prepared("tasks:\n- {name: a, run: [cat, b.in], files: b.in}\n"
                   "- {name: b, run: [cat, a.in], files: a.in, needs: kind = cpu}");
    ck_assert_uint_eq(job->part_count, 2);
    ck_assert_int_eq(room_of(&job->parts[0]), 3 * MIB);
    ck_assert_int_eq(room_of(&job->parts[1]), 0);
    bourse_job_destroy(&job);
}
END_TEST

START_TEST(a_noop_needs_an_agent_that_knows_it_and_lists_nothing)
{
    CLEANUP(bourse_job_destroy) struct bourse_job *job = prepared("executor: noop\narray: 5-9\n");
    CLEANUP(manifest_free) Bourse__V1__Manifest *manifest = manifest_of(job);
    ck_assert_str_eq(manifest->executor, "noop");
    ck_assert_uint_eq(manifest->subtask_count, 5);
    ck_assert_uint_eq(manifest->n_subtasks, 0);
    ck_assert_uint_eq(manifest->n_arguments, 0);
    ck_assert_uint_eq(job->parts[0].needs.count, 1);
    ck_assert_str_eq(job->parts[0].needs.nodes[0].attribute.name, "executor");
    ck_assert_str_eq(job->parts[0].needs.nodes[0].attribute.text, "noop");
    struct bourse_job_summary summary;
    bourse_job_summary(job, &summary);
    ck_assert_str_eq(summary.program, "noop");
}
END_TEST

START_TEST(a_tensor_job_needs_a_device_that_has_the_executor)
{
    put_matrix("a.npy", 2, 2);
    CLEANUP(bourse_job_destroy)
    struct bourse_job *job = prepared("executor: tensor\nfiles: a.npy\nneeds: \"memory >= 1GiB\"\n"
                                      "run: [matmul, a.npy, a.npy, c.npy]\noutputs: c.npy\n");
    CLEANUP(manifest_free) Bourse__V1__Manifest *manifest = manifest_of(job);
    ck_assert_str_eq(manifest->executor, "tensor");
    ck_assert_uint_eq(manifest->n_arguments, 4);
    ck_assert_str_eq(manifest->arguments[0], "matmul");
    ck_assert_uint_eq(job->parts[0].needs.count, 3); /* and no host program of that name */
    ck_assert_str_eq(job->parts[0].needs.nodes[1].attribute.name, "executor");
    ck_assert_str_eq(job->parts[0].needs.nodes[1].attribute.text, "tensor");
}
END_TEST

static const Bourse__V1__ManifestTask *check_in(const Bourse__V1__Manifest *manifest, size_t index)
{
    ck_assert_uint_lt(index, manifest->n_subtasks);
    ck_assert_ptr_nonnull(manifest->subtasks[index]->task);
    return manifest->subtasks[index]->task;
}

START_TEST(each_product_of_a_cheap_job_gets_a_check_that_waits_for_it_alone)
{
    put_matrix("a1.npy", 2, 2);
    put_matrix("a2.npy", 3, 2);
    put_matrix("b.npy", 2, 4);
    CLEANUP(bourse_job_destroy)
    struct bourse_job *job =
        prepared("executor: tensor\neach: a*.npy\nfiles: b.npy\nneeds: {memory: 1GiB}\n"
                 "slots: 2\nrun: [matmul, \"{in}\", b.npy, \"{in}.c\"]\n"
                 "outputs: \"{in}.c\"\nverify: cheap\n");
    CLEANUP(manifest_free) Bourse__V1__Manifest *manifest = manifest_of(job);
    ck_assert_uint_eq(job->subtasks, 4);
    ck_assert_uint_eq(job->checks, 2);
    ck_assert_uint_eq(manifest->subtask_count, 4);
    ck_assert_uint_eq(result_checks_count(manifest), 2);
    ck_assert_str_eq(manifest->terms->verify, "cheap");
    ck_assert(tasks_well_formed(manifest));
    ck_assert_ptr_null(manifest->subtasks[1]->task);

    const Bourse__V1__ManifestTask *check = check_in(manifest, 3);
    static const char *const arguments[] = {"freivalds", "a2.npy", "b.npy",
                                            "a2.npy.c",  "drawn",  "20"};
    ck_assert_str_eq(check->name, "check of subtask 1");
    ck_assert_uint_eq(check->n_arguments, 6);
    for (size_t i = 0; i < 6; i++) {
        ck_assert_str_eq(check->arguments[i], arguments[i]);
    }
    ck_assert_uint_eq(check->n_from, 1);
    ck_assert_uint_eq(check->from[0]->task, 1);
    ck_assert_str_eq(check->from[0]->output, "a2.npy.c");
    ck_assert_uint_eq(manifest->subtasks[3]->n_inputs, 1); /* b.npy is everybody's */
    ck_assert_str_eq(manifest->subtasks[3]->inputs[0]->name, "a2.npy");

    ck_assert_uint_eq(job->part_count, 2);
    ck_assert_uint_eq(job->parts[1].subtasks, 2);
    ck_assert_uint_eq(job->parts[1].slots, 2);
    ck_assert_uint_eq(job->parts[1].needs.count, 5);
    ck_assert_str_eq(job->parts[1].needs.nodes[1].attribute.text, "tensor");
    ck_assert_str_eq(job->parts[1].needs.nodes[3].attribute.name, "referee");
    ck_assert_int_eq(job->parts[1].needs.nodes[3].attribute.number, 1);
    ck_assert_uint_eq(job->graph.count, 4);
    ck_assert_uint_eq(job->graph.edge_count, 2);
    ck_assert_uint_eq(job->graph.after_count[0], 0);
    ck_assert_uint_eq(job->graph.after_count[3], 1);
    ck_assert_uint_eq(job->graph.after[1], 1);
    ck_assert_uint_gt(job->graph.rank[0], job->graph.rank[2]);
    ck_assert_ptr_null(job->graph.expect_ms); /* they are alike */

    struct bourse_job_summary summary;
    bourse_job_summary(job, &summary);
    ck_assert_uint_eq(summary.subtasks, 2);
    ck_assert_uint_eq(summary.checks, 2);
    ck_assert_uint_eq(summary.parts, 1);

    struct order_part part;
    ck_assert(result_checks_remove(manifest, &part));
    ck_assert_uint_eq(manifest->subtask_count, 2);
    ck_assert_uint_eq(manifest->n_subtasks, 2);
    ck_assert_uint_eq(manifest->terms->n_parts, 1);
    ck_assert_uint_eq(part.needs.count, 5);
}
END_TEST

START_TEST(a_single_product_and_an_array_get_checks_too_and_names_with_braces_stay)
{
    put_matrix("a{}.npy", 2, 2);
    CLEANUP(bourse_job_destroy)
    struct bourse_job *one =
        prepared("executor: tensor\nfiles: \"a{}.npy\"\n"
                 "run: [gemm, --alpha, \"1.0\", --beta, \"0\", \"a{{}}.npy\", \"a{{}}.npy\", "
                 "\"a{{}}.npy\", c.npy]\noutputs: c.npy\nverify: cheap\n");
    CLEANUP(manifest_free) Bourse__V1__Manifest *manifest = manifest_of(one);
    ck_assert_uint_eq(manifest->subtask_count, 2);
    ck_assert_str_eq(check_in(manifest, 1)->arguments[1], "a{{}}.npy");
    ck_assert_str_eq(check_in(manifest, 1)->name, "check of subtask 0");

    put_matrix("b3.npy", 2, 2);
    put_matrix("b5.npy", 2, 2);
    CLEANUP(bourse_job_destroy)
    struct bourse_job *many = prepared("executor: tensor\narray: 3-5:2\nfiles: [b3.npy, b5.npy]\n"
                                       "run: [matmul, \"b{index}.npy\", b3.npy, c.npy]\n"
                                       "outputs: c.npy\nverify: cheap\n");
    CLEANUP(manifest_free) Bourse__V1__Manifest *array = manifest_of(many);
    ck_assert_str_eq(check_in(array, 3)->arguments[1], "b5.npy");
}
END_TEST

START_TEST(tasks_are_checked_by_name)
{
    put_matrix("a.npy", 2, 2);
    CLEANUP(bourse_job_destroy)
    struct bourse_job *job = prepared(
        "executor: tensor\nfiles: a.npy\nverify: cheap\ntasks:\n"
        "  - {name: second, run: [matmul, a.npy, a.npy, c.npy], outputs: c.npy, after: first, "
        "expect: 2s}\n"
        "  - {name: first, run: [matmul, a.npy, a.npy, c.npy], outputs: c.npy}\n");
    CLEANUP(manifest_free) Bourse__V1__Manifest *manifest = manifest_of(job);
    ck_assert_str_eq(check_in(manifest, 2)->name, "check of first");
    ck_assert_str_eq(check_in(manifest, 3)->name, "check of second");
    ck_assert_uint_eq(check_in(manifest, 3)->from[0]->task, 1);
    ck_assert_uint_eq(job->graph.edge_count, 3);
    ck_assert_uint_gt(job->graph.rank[0], job->graph.rank[1]);
    static const uint32_t expect_ms[] = {0, 2000, 0, 0}; /* none of a check */
    ck_assert_mem_eq(job->graph.expect_ms, expect_ms, sizeof expect_ms);
}
END_TEST

START_TEST(what_no_check_can_see_is_refused)
{
    put_matrix("a.npy", 2, 2);
    static const struct {
        const char *text, *says;
    } wrong[] = {
        {"executor: tensor\nfiles: a.npy\nverify: cheap\n"
         "run: [gemm, a.npy, a.npy, a.npy, c.npy]\noutputs: c.npy\n",
         "verify: cheap checks exist for matrix products"},
        {"executor: tensor\nfiles: a.npy\nverify: cheap\n"
         "run: [matmul, a.npy, a.npy, c.npy]\noutputs: [c.npy, a.npy]\n",
         "job:4: verify: cheap: the product 'c.npy' must be all that `outputs:` names"},
        {"executor: tensor\nfiles: a.npy\nverify: cheap\ntasks:\n"
         "  - {name: first, run: [matmul, a.npy, a.npy, c.npy], outputs: c.npy}\n"
         "  - {name: second, run: [matmul, c.npy, a.npy, d.npy], outputs: d.npy, from: first}\n",
         "job:6: verify: cheap: 'c.npy' must be one of the job's files, not what another task "
         "leaves; use verify: none"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct bourse_error error = refused(wrong[i].text);
        ck_assert_msg(strstr(error.text, wrong[i].says) != NULL, "%zu: %s", i, error.text);
    }
}
END_TEST

START_TEST(what_an_operation_reads_is_looked_at_before_it_is_sent)
{
    put_matrix("a.npy", 2, 3);
    put_matrix("b.npy", 3, 2);
    put_matrix("wide.npy", 3, 5);
    put("none.npy", "no matrix");
    put("lines", "a\n");
    static const struct {
        const char *text, *says;
    } wrong[] = {
        {"executor: tensor\nfiles: a.npy\nrun: [matmul, a.npy, b.npy, c.npy]\noutputs: c.npy\n",
         "job:3: run: 'b.npy' is none of the job's files: add it to them"},
        {"executor: tensor\nfiles: [a.npy, none.npy]\nrun: [matmul, a.npy, none.npy, c.npy]\n"
         "outputs: c.npy\n",
         "job:3: run: none.npy: it is no .npy file"},
        {"executor: tensor\nfiles: a.npy\nrun: [matmul, a.npy, a.npy, c.npy]\noutputs: c.npy\n",
         "job:3: run: a.npy is 2 x 3 and a.npy 2 x 3; the first must have as many columns"},
        {"executor: tensor\nfiles: [a.npy, b.npy, wide.npy]\noutputs: c.npy\n"
         "run: [gemm, a.npy, b.npy, wide.npy, c.npy]\n",
         "job:4: run: wide.npy is 3 x 5, and what it is added to has another shape"},
        {"executor: tensor\neach: [a.npy, wide.npy]\nfiles: b.npy\n"
         "run: [matmul, \"{in}\", b.npy, \"{out}\"]\noutputs: \"{out}\"\n",
         "job:4: run: wide.npy is 3 x 5 and b.npy 3 x 2; the first must have"},
        {"executor: tensor\nfiles: [a.npy, b.npy]\ntasks:\n"
         "  - {name: first, run: [matmul, a.npy, b.npy, c.npy], outputs: c.npy}\n"
         "  - {name: second, run: [matmul, a.npy, d.npy, e.npy], outputs: e.npy, from: first}\n",
         "job:5: run: 'd.npy' is none of the job's files"},
        {"executor: tensor\nfiles: [a.npy, b.npy]\noutputs: c.npy\n"
         "run: [gemm, --beta, \"1\", a.npy, b.npy, c.npy]\n",
         "job:4: run: gemm reads a file C0 to add, and three are named; write [gemm, "},
        {"executor: tensor\nfiles: [a.npy, b.npy]\noutputs: c.npy\n"
         "run: [matmul, a.npy, b.npy, ../c.npy]\n",
         "job:4: run: \"../c.npy\" is no file of the work folder"},
        {"executor: tensor\nfiles: [a.npy, b.npy]\noutputs: d.npy\n"
         "run: [matmul, a.npy, b.npy, c.npy]\n",
         "job:4: run: the operation makes 'c.npy' and nothing else, so there will be no 'd.npy'"},
        {"executor: tensor\nfiles: [a.npy, b.npy]\noutputs: c.npy\n"
         "run: [gemm, --alpha, \"1e400\", a.npy, b.npy, b.npy, c.npy]\n",
         "job:4: run: --alpha 1e400 is more than a float32 holds"},
        {"executor: tensor\nfiles: [a.npy, b.npy]\noutputs: c.npy\n"
         "run: [gemm, --beta, \"-0.001e-43\", a.npy, b.npy, b.npy, c.npy]\n",
         "job:4: run: --beta -0.001e-43 is less than a float32 holds, which is 1.4e-45 at least; "
         "write 0 if that is meant"},
        {"executor: tensor\nfiles: [a.npy, b.npy]\n"
         "run: [freivalds, a.npy, b.npy, a.npy, \"00\", \"20\"]\n",
         "job:3: run: the seed \"00\" is not 64 hexadecimal digits"},
        {"executor: tensor\nfiles: [a.npy, b.npy]\n"
         "run: [freivalds, a.npy, b.npy, a.npy, drawn, \"20\"]\n",
         "job:3: run: the seed \"drawn\" is for the checks that `verify: cheap` makes"},
        {"executor: tensor\nfiles: [a.npy, b.npy]\n"
         "run: [freivalds, a.npy, b.npy, a.npy, \"{value}\", \"65\"]\n",
         "job:3: run: \"65\" rounds; 1 to 64 are computed"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct bourse_error error = refused(wrong[i].text);
        ck_assert_msg(strstr(error.text, wrong[i].says) != NULL, "%zu: %s", i, error.text);
    }
    static const char *const right[] = {
        /* An unread file may be anything; one that is made or filled in later is unknown. */
        "executor: tensor\nfiles: [a.npy, b.npy, none.npy]\noutputs: c.npy\n"
        "run: [gemm, --beta, \"0\", a.npy, b.npy, none.npy, c.npy]\n",
        "executor: tensor\nfiles: [a.npy, b.npy]\ntasks:\n"
        "  - {name: first, run: [matmul, a.npy, b.npy, c.npy], outputs: c.npy}\n"
        "  - {name: second, run: [matmul, c.npy, a.npy, d.npy], outputs: d.npy, from: first}\n",
        "executor: tensor\nlines: lines\nfiles: [a.npy, b.npy]\noutputs: c.npy\n"
        "run: [matmul, \"{line}.npy\", b.npy, c.npy]\n",
    };
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        bourse_job_destroy(&(struct bourse_job *){prepared(right[i])});
    }
}
END_TEST

/* The test could not wait until a terabyte is hashed. */
START_TEST(shapes_are_compared_before_anything_is_hashed)
{
    put_hole("huge.npy", 1U << 20, 1U << 18);
    put_matrix("b.npy", 3, 2);
    ck_assert_str_eq(
        refused("executor: tensor\nfiles: [huge.npy, b.npy]\noutputs: c.npy\n"
                "run: [matmul, huge.npy, b.npy, c.npy]\n")
            .text,
        "job:4: run: huge.npy is 1048576 x 262144 and b.npy 3 x 2; the first must have as many "
        "columns as the second has rows");
    ck_assert_str_eq(refused("run: [cat, huge.npy]\nfiles: [huge.npy, b.np]\n").text,
                     "job:2: files: b.np: No such file or directory; did you mean 'b.npy'?");
}
END_TEST

START_TEST(a_matrix_without_elements_is_no_factor)
{
    put_matrix("none.npy", 0, 4);
    put_matrix("b.npy", 4, 2);
    struct bourse_error error =
        refused("executor: tensor\nfiles: [none.npy, b.npy]\noutputs: c.npy\n"
                "run: [matmul, none.npy, b.npy, c.npy]\n");
    ck_assert_str_eq(error.text,
                     "job:4: run: none.npy: it has no elements: its shape is (0, 4); a product is "
                     "of one row and one column at least");
}
END_TEST

START_TEST(files_that_a_program_is_given_by_name_are_among_the_jobs)
{
    put("work.sh", "true");
    put("left.txt", "from an earlier run");
    static const struct {
        const char *text, *says;
    } wrong[] = {
        {"run: [cat, work.sh]\n", "job:1: run: 'work.sh' lies here and is none of the job's files"},
        {"name: x\nrun: [sh, ./work.sh]\n", "job:2: run: 'work.sh' lies here and is none"},
        {"run: [sh, no-such.sh]\n", "job:1: run: sh is to run 'no-such.sh', which is none of the"},
        {"run: [sh, script]\n", "job:1: run: sh is to run 'script', which is none of the job's"},
        {"files: work.sh\ntasks:\n"
         "  - {name: a, run: [sh, work.sh]}\n"
         "  - {name: b, run: [python3, other.py]}\n",
         "job:4: run: python3 is to run 'other.py', which is none of the job's files"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct bourse_error error = refused(wrong[i].text);
        ck_assert_msg(strstr(error.text, wrong[i].says) != NULL, "%zu: %s", i, error.text);
    }
    static const char *const right[] = {
        "files: work.sh\nrun: [sh, ./work.sh, other.txt]\n",
        "run: [sh, -c, \"cat work.sh\"]\n",
        "run: [cp, /etc/hostname, left.txt]\noutputs: left.txt\n",
        "run: [echo, left]\n",
        "each: work.sh\nrun: [sh, \"{in}\"]\n",
        "each: work.sh\nrun: [sh, work.sh]\n",
        "tasks:\n"
        "  - {name: a, run: [touch, work.sh], outputs: work.sh}\n"
        "  - {name: b, run: [sh, work.sh], from: a}\n",
    };
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        bourse_job_destroy(&(struct bourse_job *){prepared(right[i])});
    }
}
END_TEST

START_TEST(what_a_simulation_makes_is_not_checked)
{
    static const char *const asking[] = {"{simulated: true}", "{instrument: sim.lpu.groq.v1}"};
    put_matrix("a.npy", 2, 2);
    for (size_t i = 0; i < sizeof asking / sizeof *asking; i++) {
        char text[256];
        (void)snprintf(text, sizeof text,
                       "executor: tensor\nfiles: a.npy\nneeds: %s\nverify: cheap\n"
                       "run: [matmul, a.npy, a.npy, c.npy]\noutputs: c.npy\n",
                       asking[i]);
        struct bourse_error error = refused(text);
        ck_assert_int_eq(error.status, BOURSE_REFUSED);
        ck_assert_int_eq(error.reject, REJECT_VERIFY);
        ck_assert_str_eq(error.name, "VERIFY");
        ck_assert_str_eq(error.field, "needs");
    }
    bourse_job_destroy(&(struct bourse_job *){
        prepared("executor: tensor\nfiles: a.npy\nneeds: {simulated: false}\nverify: cheap\n"
                 "run: [matmul, a.npy, a.npy, c.npy]\noutputs: c.npy\n")});
}
END_TEST

START_TEST(tasks_stand_in_the_manifest_in_the_order_of_the_graph)
{
    put("in.txt", "data");
    put("list", "words");
    CLEANUP(bourse_job_destroy)
    struct bourse_job *job =
        prepared("env: {A: 1}\n"
                 "files: list\n"
                 "tasks:\n"
                 "- {name: join, run: [cat, l.txt], from: {l.txt: left}, after: split,\n"
                 "   env: {B: 2}, stdin: hello, limits: {memory: 1GiB}}\n"
                 "- {name: left, run: [sort, aa], from: split/aa, outputs: \"{out}\"}\n"
                 "- {name: split, run: [split, in.txt], files: in.txt, outputs: [aa, ab]}\n");
    CLEANUP(manifest_free) Bourse__V1__Manifest *manifest = manifest_of(job);
    ck_assert_uint_eq(job->subtasks, 3);
    ck_assert_uint_eq(manifest->subtask_count, 3);
    ck_assert_uint_eq(manifest->n_shared, 1);
    ck_assert_uint_eq(manifest->n_outputs, 0);
    ck_assert_str_eq(manifest->environment[0]->name, "A");
    const Bourse__V1__ManifestSubtask *split = manifest->subtasks[0];
    const Bourse__V1__ManifestSubtask *left = manifest->subtasks[1];
    const Bourse__V1__ManifestSubtask *join = manifest->subtasks[2];
    ck_assert_str_eq(split->task->name, "split");
    ck_assert_str_eq(split->task->arguments[0], "split");
    ck_assert_str_eq(split->inputs[0]->name, "in.txt");
    ck_assert_uint_eq(split->inputs[0]->size, 4);
    ck_assert_uint_eq(split->task->n_outputs, 2);
    ck_assert_ptr_null(split->task->limits);
    ck_assert_uint_eq(left->n_inputs, 0);
    ck_assert_uint_eq(left->task->from[0]->task, 0);
    ck_assert_str_eq(left->task->from[0]->name, "aa");
    ck_assert_str_eq(left->task->from[0]->output, "aa");
    ck_assert_uint_eq(join->task->n_from, 2);
    ck_assert_uint_eq(join->task->from[0]->task, 0);
    ck_assert_ptr_null(join->task->from[0]->name);
    ck_assert_uint_eq(join->task->from[1]->task, 1);
    ck_assert_str_eq(join->task->from[1]->name, "l.txt");
    ck_assert_str_eq(join->task->from[1]->output, "out/left");
    ck_assert_str_eq(join->task->environment[0]->name, "B");
    ck_assert_str_eq(join->task->standard_input, "hello");
    ck_assert_int_eq(join->task->limits->memory_bytes, INT64_C(1) << 30);
    /* Three programs, three parts, which the manifest repeats for who continues the job. */
    ck_assert_uint_eq(job->part_count, 3);
    ck_assert_uint_eq(manifest->terms->n_parts, 3);
    ck_assert_uint_eq(manifest->terms->parts[2]->subtasks, 1);
    ck_assert_str_eq(manifest->terms->parts[2]->needs->nodes[0]->text, "cat");
    ck_assert(!manifest->terms->capped);
}
END_TEST

START_TEST(files_of_a_task_do_not_meet)
{
    put("a", "1");
    struct bourse_error error = refused("run: [x]\nfiles: a\ntasks:\n- {name: one, files: a}\n");
    ck_assert_str_eq(error.text, "tasks: two files of one would be 'a' in its work folder");
    error = refused("run: [x]\ntasks:\n- {name: one, outputs: b}\n"
                    "- {name: two, files: a, from: {a: one/b}}\n");
    ck_assert_str_eq(error.text, "tasks: two files of two would be 'a' in its work folder");
    error = refused("run: [x]\ntasks:\n- {name: one, files: nowhere}\n");
    ck_assert_ptr_nonnull(strstr(error.text, "job:3: files: "));
}
END_TEST

/* Tasks of as many outputs as one may have, each with a name of so many bytes, and one that waits
 * for all of them. */
static char *gathered(size_t tasks, size_t name_bytes)
{
    char *text = NULL;
    size_t length;
    FILE *file = open_memstream(&text, &length);
    ck_assert_ptr_nonnull(file);
    (void)fputs("run: [x]\noutputs:\n", file);
    for (size_t i = 0; i < LIMIT_OUTPUTS; i++) {
        (void)fprintf(file, "- \"%0*zu\"\n", (int)name_bytes, i);
    }
    (void)fputs("tasks:\n", file);
    for (size_t i = 0; i < tasks; i++) {
        (void)fprintf(file, "- {name: t%zu}\n", i);
    }
    (void)fputs("- name: last\n  outputs: []\n  after:\n", file);
    for (size_t i = 0; i < tasks; i++) {
        (void)fprintf(file, "  - t%zu\n", i);
    }
    ck_assert_int_eq(fclose(file), 0);
    return text;
}

/* Bytes of one Given: 2, and of each of 64 outputs 40 and its name; with each of them go 4 more. */
START_TEST(more_than_can_be_handed_on_is_refused_before_it_is_paid_for)
{
    enum { NAME = 10, MOST = LIMIT_GIVEN_WORK_BYTES / (6 + 64 * (40 + NAME)) };
    char *text = gathered(MOST, NAME);
    bourse_job_destroy(&(struct bourse_job *){prepared(text)});
    free(text);
    text = gathered(MOST + 1, NAME);
    struct bourse_error error = refused(text);
    ck_assert_msg(strncmp(error.text, "job:", 4) == 0, "%s", error.text);
    ck_assert_ptr_nonnull(strstr(error.text,
                                 ": after: names and hashes of what the 246 tasks leave "
                                 "that last waits for take 788676 bytes, at most "
                                 "786432 can be handed on to one"));
    free(text);

    enum { LONG = (LIMIT_GIVEN_BYTES - 2) / 64 - 40 };
    text = gathered(1, LONG);
    bourse_job_destroy(&(struct bourse_job *){prepared(text)});
    free(text);
    text = gathered(1, LONG + 1);
    error = refused(text);
    ck_assert_ptr_nonnull(strstr(error.text, ": outputs: names and hashes of what t0 leaves to "
                                             "others take 16386 bytes, at most 16384"));
    free(text);
}
END_TEST

START_TEST(the_price_of_a_job_is_not_in_its_manifest)
{
    CLEANUP(bourse_job_destroy)
    struct bourse_job *job =
        prepared("run: [xz]\ncap: 0.123456\nbudget: 9.87\nretries: 3\ncrash_limit: 0\n"
                 "slots: 2\nat_most: 8\nlimit: 1m\nterm: 3m\nexpect: 7s\n");
    CLEANUP(manifest_free) Bourse__V1__Manifest *manifest = manifest_of(job);
    const Bourse__V1__ManifestPart *part = manifest->terms->parts[0];
    ck_assert(manifest->terms->capped);
    ck_assert_uint_eq(manifest->terms->retries, 3);
    ck_assert_str_eq(manifest->terms->verify, "none");
    ck_assert(!manifest->terms->has_error_limit);
    ck_assert(manifest->terms->has_crash_limit);
    ck_assert_uint_eq(manifest->terms->crash_limit, 0);
    ck_assert_uint_eq(part->subtasks, 1);
    ck_assert_uint_eq(part->slots, 2);
    ck_assert_uint_eq(part->at_most, 8);
    ck_assert_int_eq(part->limit_ms, 60000);
    ck_assert_int_eq(part->term_ms, 180000);
    ck_assert_int_eq(part->expect_ns, 7 * NS_PER_S);
    ck_assert(!manifest->has_continues);
}
END_TEST

START_TEST(an_image_brings_its_own_programs)
{
    put("tool", "1");
    ck_assert_int_eq(system("tar -b 2 -cf tools.tar tool"), 0);
    CLEANUP(bourse_job_destroy)
    struct bourse_job *job = prepared("run: [anything]\nimage: tools.tar\n");
    CLEANUP(manifest_free) Bourse__V1__Manifest *manifest = manifest_of(job);
    ck_assert(manifest->has_image);
    ck_assert_uint_eq(manifest->image_size, 2048);
}
END_TEST

/* Returns true when a device that says so much, where it is not 0, takes the job. */
static bool is_taken_by(const struct bourse_job *job, int64_t files, int64_t bytes)
{
    struct attribute says[3];
    size_t count = 0;
    if (files > 0) {
        says[count++] = (struct attribute){.name = "image_files", .number = files};
    }
    if (bytes > 0) {
        says[count++] = (struct attribute){.name = "image_size", .number = bytes};
    }
    says[count++] = (struct attribute){.name = "kind", .is_text = true, .text = "cpu"};
    return requirement_satisfied(&job->parts[0].needs, says, count);
}

START_TEST(an_image_is_sent_only_where_it_is_unpacked)
{
    enum { MIB = 1 << 20 };
    has_size("large", 3 * MIB);
    ck_assert_int_eq(system("mkdir -p etc && echo 1 >etc/one && tar -cf root.tar etc large"), 0);
    CLEANUP(bourse_job_destroy)
    struct bourse_job *job = prepared("run: [anything]\nimage: root.tar\nneeds: kind = cpu\n");
    ck_assert(is_taken_by(job, 0, 0)); /* it says no bounds */
    ck_assert(is_taken_by(job, 3, 3 * MIB + 2));
    ck_assert(!is_taken_by(job, 2, 3 * MIB + 2));
    ck_assert(!is_taken_by(job, 2, 0));
    ck_assert(!is_taken_by(job, 3, 3 * MIB + 1));
    ck_assert(!is_taken_by(job, 0, MIB));
    ck_assert(is_taken_by(job, 0, INT64_MAX));
}
END_TEST

/* More than the default is taken only by who says so. */
START_TEST(an_image_above_the_default_needs_a_device_that_says_so)
{
    enum { MIB = 1 << 20 };
    const uint64_t most = (uint64_t)LIMIT_IMAGE_MIB * MIB;
    struct requirement usual = {.count = 0}, large = {.count = 0};
    struct attribute says = {.name = "image_size"};
    ck_assert(order_add_image(&usual, 1, most));
    ck_assert(order_add_image(&large, 1, most + 1));
    ck_assert(requirement_satisfied(&usual, NULL, 0));
    ck_assert(!requirement_satisfied(&large, NULL, 0));
    says.number = (int64_t)most + 1;
    ck_assert(requirement_satisfied(&large, &says, 1));
    says.number--;
    ck_assert(!requirement_satisfied(&large, &says, 1));
    ck_assert(requirement_satisfied(&usual, &says, 1));
    struct requirement none = {.count = 0};
    ck_assert(order_add_image(&none, 0, 0));
    ck_assert_uint_eq(none.count, 0);
}
END_TEST

/* An image that no provider would unpack is found before anything is bought. */
START_TEST(an_unfit_image_is_refused_with_its_line)
{
    static const struct {
        const char *script, *says;
    } unfit[] = {
        {"echo 1 >tool; tar -cf bad.tar --transform 's,tool,../tool,' tool", "its name has \"..\""},
        {"ln -sf ../out link; tar -cf bad.tar link", "it is a link that leads out"},
        {"echo 1 >tool; tar -cf bad.tar tool; truncate -s 1000 bad.tar", "cut at byte 1000"},
        {"tar -czf bad.tar tool", "no plain tar archive"},
        {": >bad.tar", "no plain tar archive"},
    };
    for (size_t i = 0; i < sizeof unfit / sizeof unfit[0]; i++) {
        ck_assert_int_eq(system(unfit[i].script), 0);
        struct bourse_error error = refused("run: [xz]\nimage: bad.tar\n");
        ck_assert_msg(strstr(error.text, "job:2: image: bad.tar is no image: ") == error.text &&
                          strstr(error.text, unfit[i].says) != NULL,
                      "%s", error.text);
        ck_assert_int_eq(unlink("bad.tar"), 0);
    }
    ck_assert_int_eq(unlink("link"), 0);
}
END_TEST

START_TEST(shared_files_may_not_hide_one_another)
{
    put("a", "1");
    struct bourse_error error = refused("run: [cat, a]\nfiles: [a, ./a]\n");
    ck_assert_ptr_nonnull(strstr(error.text, "twice"));
    error = refused("each: a\nrun: [cat, \"{in}\"]\nfiles: [a]\n");
    ck_assert_ptr_nonnull(strstr(error.text, "twice"));
}
END_TEST

START_TEST(a_wrong_job_file_names_its_line)
{
    struct bourse_error error = refused("run: [xz]\nbugdet: 2\n");
    ck_assert_int_eq(error.status, BOURSE_USAGE);
    ck_assert_ptr_nonnull(strstr(error.text, ":2:"));
    ck_assert_ptr_nonnull(strstr(error.text, "budget"));
}
END_TEST

START_TEST(a_wrong_path_names_its_line_and_its_neighbour)
{
    put("data.csv", "1");
    ck_assert_str_eq(refused("run: [xz]\nfiles: [dta.csv]\n").text,
                     "job:2: files: dta.csv: No such file or directory; did you mean 'data.csv'?");
    ck_assert_str_eq(refused("run: [xz, '{line}']\n\nlines: data.cvs\n").text,
                     "job:3: lines: data.cvs: No such file or directory; did you mean 'data.csv'?");
    ck_assert_str_eq(refused("each: '*.cvs'\nrun: [xz, '{in}']\n").text,
                     "job:1: each: the pattern '*.cvs' matches no regular file in .");
    ck_assert_str_eq(
        refused("run: [xz]\nimage: data.csv\n").text,
        "job:2: image: data.csv is no image: no plain tar archive; make one with `tar -cf` "
        "(no compression)");
}
END_TEST

START_TEST(the_summary_counts_what_will_travel)
{
    put("a", "12");
    put("b", "345");
    put("s", "6789");
    CLEANUP(bourse_job_destroy)
    struct bourse_job *job =
        prepared("each: [a, b]\nfiles: [s]\nrun: [cat, \"{in}\"]\nlimit: 2s\n");
    struct bourse_job_summary summary;
    bourse_job_summary(job, &summary);
    ck_assert_uint_eq(summary.subtasks, 2);
    ck_assert_uint_eq(summary.inputs, 3);
    ck_assert_uint_eq(summary.input_bytes, 9);
    ck_assert_int_eq(summary.budget_micro, -1);
    ck_assert_int_eq(summary.expect_ns, 2 * NS_PER_S); /* the guess is never above the limit */
    ck_assert(summary.expect_is_guess);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("prepare");
    TCase *files = tcase_create("files");
    tcase_add_checked_fixture(files, setup, teardown);
    tcase_add_test(files, each_file_is_a_subtask_in_the_order_of_its_bytes);
    tcase_add_test(files, the_manifest_has_the_hash_that_is_submitted);
    tcase_add_test(files, a_pattern_that_matches_nothing_is_named);
    tcase_add_test(files, names_with_spaces_brackets_and_accents_are_fine);
    tcase_add_test(files, names_with_control_characters_or_broken_text_are_refused_printably);
    tcase_add_test(files, only_regular_files_count_and_the_rest_is_counted);
    tcase_add_test(files, a_shared_file_may_not_be_a_symbolic_link);
    tcase_add_test(files, a_file_matched_twice_is_one_subtask);
    tcase_add_test(files, absolute_and_upward_patterns_get_relative_names);
    tcase_add_test(files, two_files_under_one_name_are_refused);
    tcase_add_test(files, the_folder_of_the_job_may_hold_pattern_characters);
    suite_add_tcase(suite, files);
    TCase *jobs = tcase_create("jobs");
    tcase_add_checked_fixture(jobs, setup, teardown);
    tcase_set_timeout(jobs, 60);
    tcase_add_test(jobs, an_array_from_zero_lists_nothing_and_others_list_their_numbers);
    tcase_add_test(jobs, an_array_too_large_for_a_manifest_says_so);
    tcase_add_test(jobs, lines_become_values_without_empty_ones);
    tcase_add_test(jobs, a_host_program_is_part_of_what_the_job_needs);
    tcase_add_test(jobs, what_is_given_needs_room);
    tcase_add_test(jobs, a_noop_needs_an_agent_that_knows_it_and_lists_nothing);
    tcase_add_test(jobs, a_tensor_job_needs_a_device_that_has_the_executor);
    tcase_add_test(jobs, each_product_of_a_cheap_job_gets_a_check_that_waits_for_it_alone);
    tcase_add_test(jobs, a_single_product_and_an_array_get_checks_too_and_names_with_braces_stay);
    tcase_add_test(jobs, tasks_are_checked_by_name);
    tcase_add_test(jobs, what_no_check_can_see_is_refused);
    tcase_add_test(jobs, what_a_simulation_makes_is_not_checked);
    tcase_add_test(jobs, what_an_operation_reads_is_looked_at_before_it_is_sent);
    tcase_add_test(jobs, shapes_are_compared_before_anything_is_hashed);
    tcase_add_test(jobs, a_matrix_without_elements_is_no_factor);
    tcase_add_test(jobs, files_that_a_program_is_given_by_name_are_among_the_jobs);
    tcase_add_test(jobs, tasks_stand_in_the_manifest_in_the_order_of_the_graph);
    tcase_add_test(jobs, files_of_a_task_do_not_meet);
    tcase_add_test(jobs, more_than_can_be_handed_on_is_refused_before_it_is_paid_for);
    tcase_add_test(jobs, the_price_of_a_job_is_not_in_its_manifest);
    tcase_add_test(jobs, an_image_brings_its_own_programs);
    tcase_add_test(jobs, an_image_is_sent_only_where_it_is_unpacked);
    tcase_add_test(jobs, an_image_above_the_default_needs_a_device_that_says_so);
    tcase_add_test(jobs, an_unfit_image_is_refused_with_its_line);
    tcase_add_test(jobs, shared_files_may_not_hide_one_another);
    tcase_add_test(jobs, a_wrong_job_file_names_its_line);
    tcase_add_test(jobs, a_wrong_path_names_its_line_and_its_neighbour);
    tcase_add_test(jobs, the_summary_counts_what_will_travel);
    suite_add_tcase(suite, jobs);
    return suite_run(suite);
}
