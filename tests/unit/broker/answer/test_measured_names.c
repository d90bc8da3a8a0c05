/* Work has a name and a size. What it took is kept under both. */
#include "base/sha256.h"
#include "protocol/message.h"
#include "protocol/work.h"
#include "tests/support/suite.h"

#include <check.h>

static char executor[] = "command";
static char program[] = "xz";
static char level[] = "-9";
static char faster[] = "-1";
static char input[] = "{in}";

static Bourse__V1__Manifest manifest_of(char **arguments, size_t count)
{
    Bourse__V1__Manifest manifest = BOURSE__V1__MANIFEST__INIT;
    manifest.version = 1;
    manifest.executor = executor;
    manifest.name = program;
    manifest.n_arguments = count;
    manifest.arguments = arguments;
    manifest.subtask_count = 2;
    return manifest;
}

static bool is_same_name(const Bourse__V1__Manifest *a, const Bourse__V1__Manifest *b)
{
    const struct work one = work_of(a, 0);
    const struct work other = work_of(b, 0);
    return hash32_equal(&one.name, &other.name);
}

START_TEST(work_is_named_by_what_decides_it)
{
    char *slow[] = {program, level, input};
    char *fast[] = {program, faster, input};
    char *joined[] = {program, input};
    Bourse__V1__Manifest one = manifest_of(slow, 3);
    Bourse__V1__Manifest other = manifest_of(slow, 3);
    other.name = faster; /* what a job is called does not */
    other.has_expect_ns = 1;
    other.expect_ns = 7;
    ck_assert(is_same_name(&one, &other));
    other = manifest_of(fast, 3);
    ck_assert(!is_same_name(&one, &other));
    other = manifest_of(joined, 2);
    ck_assert(!is_same_name(&one, &other));
    other = manifest_of(slow, 3);
    other.standard_input = input;
    ck_assert(!is_same_name(&one, &other));

    Bourse__V1__ManifestInput script = BOURSE__V1__MANIFEST_INPUT__INIT;
    Bourse__V1__ManifestInput *scripts[] = {&script};
    struct hash32 hash = sha256_of("1", 1);
    script.name = program;
    script.hash = (ProtobufCBinaryData){.data = hash.bytes, .len = 32};
    other = manifest_of(slow, 3);
    other.n_shared = 1;
    other.shared = scripts;
    ck_assert(!is_same_name(&one, &other));
    const struct work before = work_of(&other, 0);
    hash = sha256_of("2", 1); /* another script under the same name */
    const struct work after = work_of(&other, 0);
    ck_assert(!hash32_equal(&before.name, &after.name));

    Bourse__V1__ManifestPart part = BOURSE__V1__MANIFEST_PART__INIT;
    Bourse__V1__ManifestPart *parts[] = {&part};
    Bourse__V1__ManifestTerms terms = BOURSE__V1__MANIFEST_TERMS__INIT;
    part.subtasks = 2;
    part.slots = 4;
    terms.n_parts = 1;
    terms.parts = parts;
    other = manifest_of(slow, 3);
    other.terms = &terms;
    ck_assert(!is_same_name(&one, &other));
}
END_TEST

START_TEST(a_task_is_work_of_its_own)
{
    char *arguments[] = {program, level};
    char *others[] = {program, faster};
    Bourse__V1__Manifest manifest = manifest_of(arguments, 2);
    Bourse__V1__ManifestTask task = BOURSE__V1__MANIFEST_TASK__INIT;
    Bourse__V1__ManifestSubtask first = BOURSE__V1__MANIFEST_SUBTASK__INIT;
    Bourse__V1__ManifestSubtask second = BOURSE__V1__MANIFEST_SUBTASK__INIT;
    Bourse__V1__ManifestSubtask *subtasks[] = {&first, &second};
    task.n_arguments = 2;
    task.arguments = others;
    second.task = &task;
    manifest.n_subtasks = 2;
    manifest.subtasks = subtasks;
    const struct work one = work_of(&manifest, 0);
    const struct work other = work_of(&manifest, 1);
    ck_assert(!hash32_equal(&one.name, &other.name));
    manifest.arguments = others; /* now the first is the same */
    const struct work changed = work_of(&manifest, 0);
    ck_assert(hash32_equal(&changed.name, &other.name));
}
END_TEST

START_TEST(tiles_of_other_shapes_are_other_work)
{
    static char tensor[] = "tensor";
    static char first[] = "0 0 512 256";
    static char alike[] = "512 1024 500 250"; /* elsewhere in C, and hardly smaller */
    static char wide[] = "0 0 256 512";
    static char other[] = "0 0 512 256 1";
    Bourse__V1__Manifest manifest = manifest_of(NULL, 0);
    Bourse__V1__ManifestSubtask tiles[5];
    Bourse__V1__ManifestSubtask *subtasks[5];
    char *const values[] = {first, alike, wide, other, NULL};
    struct work works[5];
    manifest.n_subtasks = 5;
    manifest.subtasks = subtasks;
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < 5; i++) {
            bourse__v1__manifest_subtask__init(&tiles[i]);
            tiles[i].value = values[i];
            subtasks[i] = &tiles[i];
            works[i] = work_of(&manifest, i);
        }
        /* A program's value is text, and every subtask has its own. */
        ck_assert(hash32_equal(&works[3].name, &works[4].name));
        ck_assert_int_eq(hash32_equal(&works[0].name, &works[4].name), pass == 0);
        ck_assert_int_eq(hash32_equal(&works[0].name, &works[2].name), pass == 0);
        manifest.executor = tensor;
    }
    ck_assert_uint_eq(work_size(512), work_size(600));
    ck_assert(!hash32_equal(&works[0].name, &works[1].name)); /* 500 is a step below 512 */
    tiles[1].value = first;
    works[1] = work_of(&manifest, 1);
    ck_assert(hash32_equal(&works[0].name, &works[1].name));
}
END_TEST

START_TEST(sizes_are_quarters_of_a_power_of_two)
{
    Bourse__V1__Manifest manifest = manifest_of(NULL, 0);
    Bourse__V1__ManifestInput file = BOURSE__V1__MANIFEST_INPUT__INIT;
    Bourse__V1__ManifestInput *files[] = {&file};
    Bourse__V1__ManifestSubtask subtask = BOURSE__V1__MANIFEST_SUBTASK__INIT;
    Bourse__V1__ManifestSubtask *subtasks[] = {&subtask};
    subtask.n_inputs = 1;
    subtask.inputs = files;
    manifest.n_subtasks = 1;
    manifest.subtasks = subtasks;
    ck_assert_uint_eq(work_of(&manifest, 0).size, 0);
    static const struct {
        uint64_t bytes;
        uint32_t size;
    } cases[] = {{1, 1},  {2, 5},        {3, 7},        {4, 9},        {5, 10},          {7, 12},
                 {8, 13}, {1 << 20, 81}, {1310719, 81}, {1310720, 82}, {UINT64_MAX, 256}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        file.size = cases[i].bytes;
        ck_assert_uint_eq(work_of(&manifest, 0).size, cases[i].size);
    }
    for (uint32_t size = 10; size < WORK_SIZES; size++) { /* the least is the first that has it */
        file.size = work_bytes(size);
        ck_assert_uint_eq(work_of(&manifest, 0).size, size);
        file.size--;
        ck_assert_uint_eq(work_of(&manifest, 0).size, size - 1);
    }
}
END_TEST

SUITE("measured: names", NULL, NULL, TEST(work_is_named_by_what_decides_it),
      TEST(a_task_is_work_of_its_own), TEST(tiles_of_other_shapes_are_other_work),
      TEST(sizes_are_quarters_of_a_power_of_two))
