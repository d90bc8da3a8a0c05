/* The tests go from a job file and the files around it to a manifest. */
#include "consumer/job/bourse_job.h"
#include "consumer/job/job_build.h"

#include "base/cleanup.h"
#include "protocol/limits.h"
#include "tests/support/job_folder.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

START_TEST(a_terminal_needs_an_agent_that_knows_it)
{
    static const char text[] = "run: [sh]\n";
    struct problem problem;
    struct bourse_error error;
    CLEANUP(bourse_job_destroy) struct bourse_job *job = NULL;
    struct job_file *file = job_file_parse(text, strlen(text), "job", &problem);
    ck_assert_ptr_nonnull(file);
    file->terminal = (struct job_terminal){.columns = 91, .rows = 33};
    ck_assert_msg(job_build(file, ".", NULL, &job, &error), "%s", error.text);
    CLEANUP(manifest_free) Bourse__V1__Manifest *manifest = manifest_of(job);
    ck_assert_ptr_nonnull(manifest->terminal);
    ck_assert_uint_eq(manifest->terminal->columns, 91);
    ck_assert_uint_eq(manifest->terminal->rows, 33);
    const struct attribute says[] = {{.name = "program", .is_text = true, .text = "sh"},
                                     {.name = "terminal", .number = 1}};
    ck_assert(requirement_satisfied(&job->parts[0].needs, says, 2));
    ck_assert(!requirement_satisfied(&job->parts[0].needs, says, 1));
    /* Other jobs go to older agents as before. */
    CLEANUP(bourse_job_destroy) struct bourse_job *other = prepared("run: [sh]\n");
    ck_assert(requirement_satisfied(&other->parts[0].needs, says, 1));
}
END_TEST

START_TEST(a_product_with_rounded_factors_needs_a_device_that_offers_it)
{
    static const struct attribute executor = {
        .name = "executor", .is_text = true, .text = "tensor"};
    const struct attribute with_tf32[] = {executor, {.name = "tf32", .number = 1000000}};
    const struct attribute with_bf16[] = {{.name = "bf16", .number = 1000000}, executor};
    put_matrix("a.npy", 2, 2);
    put_matrix("b.npy", 2, 2);
#define PRODUCT(words)                                                                             \
    prepared("executor: tensor\nfiles: [a.npy, b.npy]\noutputs: [c.npy]\nrun: [matmul, " words     \
             "a.npy, b.npy, c.npy]\n")
    CLEANUP(bourse_job_destroy) struct bourse_job *plain = PRODUCT("");
    CLEANUP(bourse_job_destroy) struct bourse_job *tf32 = PRODUCT("--compute, tf32, ");
    CLEANUP(bourse_job_destroy) struct bourse_job *bf16 = PRODUCT("--compute, bf16, ");
    ck_assert(requirement_satisfied(&plain->parts[0].needs, &executor, 1));
    ck_assert(!requirement_satisfied(&tf32->parts[0].needs, &executor, 1));
    ck_assert(requirement_satisfied(&tf32->parts[0].needs, with_tf32, 2));
    ck_assert(!requirement_satisfied(&bf16->parts[0].needs, with_tf32, 2));
    ck_assert(requirement_satisfied(&bf16->parts[0].needs, with_bf16, 2));
#undef PRODUCT
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
        {"echo 1 >tool; tar -cf bad.tar --transform 's,tool,../tool,' tool",
         "the entry's name has \"..\""},
        {"ln -sf ../out link; tar -cf bad.tar link", "the entry is a link that leads out"},
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

SUITE("job_build", setup, teardown,
      TEST(an_array_from_zero_lists_nothing_and_others_list_their_numbers),
      TEST(an_array_too_large_for_a_manifest_says_so), TEST(lines_become_values_without_empty_ones),
      TEST(a_host_program_is_part_of_what_the_job_needs), TEST(what_is_given_needs_room),
      TEST(a_noop_needs_an_agent_that_knows_it_and_lists_nothing),
      TEST(a_tensor_job_needs_a_device_that_has_the_executor),
      TEST(files_that_a_program_is_given_by_name_are_among_the_jobs),
      TEST(tasks_stand_in_the_manifest_in_the_order_of_the_graph),
      TEST(files_of_a_task_do_not_meet),
      TEST(more_than_can_be_handed_on_is_refused_before_it_is_paid_for),
      TEST(the_price_of_a_job_is_not_in_its_manifest),
      TEST(a_terminal_needs_an_agent_that_knows_it),
      TEST(a_product_with_rounded_factors_needs_a_device_that_offers_it),
      TEST(an_image_brings_its_own_programs), TEST(an_image_is_sent_only_where_it_is_unpacked),
      TEST(an_image_above_the_default_needs_a_device_that_says_so),
      TEST(an_unfit_image_is_refused_with_its_line), TEST(shared_files_may_not_hide_one_another),
      TEST(a_wrong_job_file_names_its_line), TEST(a_wrong_path_names_its_line_and_its_neighbour),
      TEST(the_summary_counts_what_will_travel))
