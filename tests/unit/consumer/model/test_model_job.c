/* The tests build jobs of models in a folder: which words and files follow from a model, what is
 * refused before anything is sent, and how parts of an output are joined. */
#include "base/sha256.h"
#include "consumer/job/bourse_job.h"
#include "consumer/model/model_join.h"
#include "consumer/model/model_staged.h"
#include "consumer/model/model_stages.h"
#include "formats/npy.h"

#include "tests/support/onnx_writer.h"
#include "tests/support/suite.h"
#include "tests/support/zip_writer.h"

#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/bourse-model-job-XXXXXX";

static void put(const char *name, const void *bytes, size_t size)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
}

static void put_folder(const char *name)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    ck_assert_int_eq(mkdir(path, 0700), 0);
}

/* Writes an array of float32 whose elements count up from `first`. */
static void put_array(const char *name, uint64_t rows, uint64_t columns, float first)
{
    uint8_t bytes[NPY_MATRIX_BYTES + 64 * sizeof(float)];
    npy_write_matrix(rows, columns, bytes);
    for (uint64_t i = 0; i < rows * columns; i++) {
        const float value = first + (float)i;
        memcpy(bytes + NPY_MATRIX_BYTES + i * sizeof value, &value, sizeof value);
    }
    put(name, bytes, NPY_MATRIX_BYTES + (size_t)(rows * columns) * sizeof(float));
}

/* y = x w, z/1 = x, with w in "weights.bin". */
static void put_model(const char *name)
{
    struct onnx_writer writer = {.opset = 13};
    onnx_write_input(&writer, "x", WRITER_FLOAT, "n,3");
    onnx_write_output(&writer, "y", WRITER_FLOAT, "n,4");
    onnx_write_output(&writer, "z/1", WRITER_FLOAT, "n,3");
    onnx_write_weights(&writer, "w", "3,4");
    onnx_write_node(&writer, "MatMul", "x w", "y");
    onnx_write_node(&writer, "Identity", "x", "z/1");
    struct onnx_bytes model = onnx_write_end(&writer);
    put(name, model.at, model.size);
    onnx_bytes_fini(&model);
}

static void begin(void)
{
    static const uint8_t weights[48];
    memcpy(folder + strlen(folder) - 6, "XXXXXX", 6);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    put_folder("sub");
    put_model("m.onnx");
    put_model("sub/m.onnx");
    put("weights.bin", weights, sizeof weights);
    put_array("a.npy", 6, 3, 0);
    put_array("wide.npy", 6, 4, 0);
}

static int remove_one(const char *path, const struct stat *facts, int kind, struct FTW *place)
{
    (void)facts;
    (void)kind;
    (void)place;
    return remove(path);
}

static void end(void)
{
    ck_assert_int_eq(nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

static struct bourse_error error;

static struct bourse_job *build(const char *text)
{
    struct bourse_job *job = NULL;
    error.text[0] = '\0';
    return bourse_job_parse(text, strlen(text), folder, &job, &error) ? job : NULL;
}

START_TEST(what_a_model_needs_and_leaves_follows_from_it)
{
    static const char *const wanted[] = {"m.onnx",  "-i", "x=a.npy",    "-o",
                                         "y=y.npy", "-o", "z/1=z_1.npy"};
    struct bourse_job *job = build("model: m.onnx\ninputs: {x: a.npy}\n");
    ck_assert_msg(job != NULL, "%s", error.text);
    ck_assert_uint_eq(job->file->run.count, sizeof wanted / sizeof wanted[0]);
    for (size_t i = 0; i < job->file->run.count; i++) {
        ck_assert_str_eq(job->file->run.items[i], wanted[i]);
    }
    ck_assert_uint_eq(job->shared.count, 3); /* the model, its weights, and the array */
    ck_assert_uint_eq(job->file->outputs.count, 2);
    ck_assert_str_eq(job->file->outputs.items[1], "z_1.npy");
    ck_assert_uint_eq(job->subtasks, 1);
    bourse_job_destroy(&job);
}
END_TEST

START_TEST(parts_are_an_array_of_subtasks)
{
    struct bourse_job *job = build("model: m.onnx\ninputs: {x: a.npy}\noutputs: {y: out.npy}\n"
                                   "split: x\nparts: 4\n");
    ck_assert_msg(job != NULL, "%s", error.text);
    ck_assert_uint_eq(job->subtasks, 4);
    const struct job_strings *run = &job->file->run;
    ck_assert_str_eq(run->items[run->count - 1], "{index}/4");
    ck_assert_str_eq(run->items[run->count - 2], "-p");
    ck_assert_uint_eq(job->file->outputs.count, 1);
    bourse_job_destroy(&job);
}
END_TEST

START_TEST(what_does_not_fit_the_model_is_refused)
{
    static const struct {
        const char *text, *said;
    } wrong[] = {
        {"model: none.onnx\n", "none.onnx: No such file"},
        {"model: a.npy\n", "the file is no ONNX model"},
        {"model: m.onnx\n", "the model's input \"x\" is not given"},
        {"model: m.onnx\ninputs: {x: a.npy, w: a.npy}\n", "the model has no input \"w\""},
        {"model: m.onnx\ninputs: {x: wide.npy}\n", "wide.npy: the array is float32[6,4]"},
        {"model: m.onnx\ninputs: {x: m.onnx}\n", "m.onnx: "},
        {"model: m.onnx\ninputs: {x: none.npy}\n", "none.npy"},
        {"model: m.onnx\ninputs: {x: \"weights.bin:float32[4,4]\"}\n",
         "it has 48 bytes, and its type and dims are 64"},
        {"model: m.onnx\ninputs: {x: a.npy}\noutputs: {q: q.npy}\n",
         "the model has no output \"q\""},
        {"model: m.onnx\ninputs: {x: a.npy}\nsplit: x\nparts: 7\n",
         "fewer rows than there are parts"},
        {"model: sub/m.onnx\ninputs: {x: a.npy}\n", "sub/weights.bin: No such file"},
        {"model: m.onnx\neach: [\"*.npy\"]\ninputs: {x: \"{in}\"}\n", "wide.npy: the array is"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct bourse_job *job = build(wrong[i].text);
        ck_assert_msg(job == NULL, "taken: %s", wrong[i].text);
        ck_assert_msg(strstr(error.text, wrong[i].said) != NULL, "%s: %s", wrong[i].text,
                      error.text);
    }
    put("weights.bin", "short", 5);
    ck_assert_ptr_null(build("model: m.onnx\ninputs: {x: a.npy}\n"));
    ck_assert_ptr_nonnull(strstr(error.text, "has 5 bytes, and the model has weights in it up to "
                                             "byte 48"));
}
END_TEST

/* ---------------------------------------------------------------- arrays in archives */

static struct zip_writer zip;

/* Writes archive.npz with arrays of 3 columns. The folder claims `lie` more bytes for x. */
static void put_archive(bool is_deflated, int lie)
{
    uint8_t bytes[NPY_MATRIX_BYTES + 6 * sizeof(float)] = {0};
    npy_write_matrix(2, 3, bytes);
    memset(&zip, 0, sizeof zip);
    zip_writer_add(&zip, "x.npy", bytes, sizeof bytes, is_deflated);
    bytes[NPY_MATRIX_BYTES] = 1;
    zip_writer_add(&zip, "other.npy", bytes, sizeof bytes, is_deflated);
    zip_writer_end(&zip);
    zip.bytes[zip.members[0].entry + 24] = (uint8_t)(zip.bytes[zip.members[0].entry + 24] + lie);
    put("archive.npz", zip.bytes, zip.length);
}

/* Builds a job whose input x is this, and checks the name that its file has. */
static void check_archive(const char *input, const char *name)
{
    char text[160];
    (void)snprintf(text, sizeof text, "model: m.onnx\ninputs: {x: \"%s\"}\n", input);
    struct bourse_job *job = build(text);
    ck_assert_msg(job != NULL, "%s: %s", input, error.text);
    const struct input_file *found = NULL;
    for (size_t i = 0; i < job->shared.count; i++) {
        found = strcmp(job->shared.items[i].name, name) == 0 ? &job->shared.items[i] : found;
    }
    ck_assert_msg(found != NULL, "no file %s", name);
    ck_assert_uint_eq(found->size, NPY_MATRIX_BYTES + 24);
    ck_assert_uint_eq(job->shared.count, 3);
    (void)snprintf(text, sizeof text, "x=%s", name);
    ck_assert_str_eq(job->file->run.items[2], text);
    bourse_job_destroy(&job);
}

static void refuse_archive(const char *input, const char *said)
{
    char text[160];
    (void)snprintf(text, sizeof text, "model: m.onnx\ninputs: {x: \"%s\"}\n", input);
    ck_assert_msg(build(text) == NULL, "taken: %s", input);
    ck_assert_msg(strstr(error.text, said) != NULL, "%s: %s", input, error.text);
}

START_TEST(an_array_of_an_archive_is_a_file_of_its_own)
{
    for (int i = 0; i < 2; i++) {
        put_archive(i == 1, 0);
        check_archive("archive.npz:x", "archive.npz.x.npy");
        check_archive("archive.npz", "archive.npz.x.npy"); /* the input's name */
        check_archive("archive.npz:other", "archive.npz.other.npy");
        refuse_archive("archive.npz:y", "archive.npz: no array \"y\"; it has 2: x.npy, other.npy");
    }
    memset(&zip, 0, sizeof zip);
    zip_writer_add(&zip, "arr_0.npy", "no array", 8, false);
    zip_writer_end(&zip);
    put("one.npz", zip.bytes, zip.length);
    refuse_archive("one.npz",
                   "one.npz.x.npy: the file is no .npy file"); /* the only one is taken */
    refuse_archive("none.npz:x", "none.npz: No such file");
    refuse_archive("a.npy:x", "a.npy:x: No such file");
    put("text.npz", "text", 4);
    refuse_archive("text.npz:x", "text.npz: it is no ZIP archive");
    ck_assert_ptr_null(build("model: m.onnx\ninputs: {x: archive.npz}\nstages: 2\n"));
    ck_assert_ptr_nonnull(strstr(error.text, "goes with no placeholder and no stages"));
}
END_TEST

START_TEST(an_archive_that_lies_is_refused)
{
    put_archive(true, 1);
    refuse_archive("archive.npz:x", "is shorter than the archive says");
    put_archive(true, -1);
    refuse_archive("archive.npz:x", "is longer than the archive says");
    put_archive(false, 0);
    zip.bytes[zip.members[0].local + 30 + 5 + 20 + NPY_MATRIX_BYTES] ^= 1;
    put("archive.npz", zip.bytes, zip.length);
    refuse_archive("archive.npz:x", "\"x.npy\" of the archive is damaged");
    put_archive(true, 0);
    memset(zip.bytes + zip.members[0].local + 30 + 5 + 20, 0xFF, 8);
    put("archive.npz", zip.bytes, zip.length);
    refuse_archive("archive.npz:x", "\"x.npy\" of the archive is damaged");
    put_archive(true, 0);
    zip.bytes[zip.members[0].entry + 20] -= 4;
    put("archive.npz", zip.bytes, zip.length);
    refuse_archive("archive.npz:x", "is cut: its bytes end too early");
}
END_TEST

/* ---------------------------------------------------------------- stages */

/* y = Relu(x w) + z, a = x w as an output on the way, with w in "weights.bin". */
static void put_long_model(void)
{
    struct onnx_writer writer = {.opset = 13};
    onnx_write_input(&writer, "x", WRITER_FLOAT, "n,3");
    onnx_write_input(&writer, "z", WRITER_FLOAT, "4");
    onnx_write_output(&writer, "y", WRITER_FLOAT, "n,4");
    onnx_write_weights(&writer, "w", "3,4");
    onnx_write_node(&writer, "MatMul", "x w", "a");
    onnx_write_node(&writer, "Relu", "a", "b");
    onnx_write_node(&writer, "Add", "b z", "y");
    struct onnx_bytes model = onnx_write_end(&writer);
    put("long.onnx", model.at, model.size);
    onnx_bytes_fini(&model);
    put_array("z.npy", 1, 4, 0);
}

static void check_words(const struct job_strings *run, const char *wanted)
{
    char text[512] = "";
    for (size_t i = 0; i < run->count; i++) {
        const size_t used = strlen(text);
        (void)snprintf(text + used, sizeof text - used, "%s%s", i > 0 ? " " : "", run->items[i]);
    }
    ck_assert_str_eq(text, wanted);
}

START_TEST(stages_are_tasks_that_pass_arrays_on)
{
    static const uint8_t four[16];
    put_long_model();
    put("z.bin", four, sizeof four);
    struct bourse_job *job = build("model: long.onnx\ninputs: {x: a.npy, z: 'z.bin:float32[4]'}\n"
                                   "split: x\nparts: 3\nstages: 3\nat_most: 7\nexpect: 10s\n");
    ck_assert_msg(job != NULL, "%s", error.text);
    ck_assert_uint_eq(job->subtasks, 9);
    ck_assert_uint_eq(job->part_count, 3); /* each stage has its own slots */
    ck_assert_uint_eq(model_stages_count(job), 3);
    const struct job_task *tasks = job->file->tasks;
    ck_assert_str_eq(tasks[3].name, "stage-1.1");
    check_words(&tasks[3].run, "stage-1.onnx -i x=a.npy -s x -p 1/3 -o a=between-3.npy");
    check_words(&tasks[4].run, "stage-2.onnx -i a=between-3.npy -o b=between-4.npy");
    check_words(&tasks[5].run, "stage-3.onnx -i z=z.bin:float32[4] -i b=between-4.npy -o y=y.npy");
    ck_assert_uint_eq(tasks[4].wait_count, 1);
    ck_assert_uint_eq(tasks[4].waits[0].task, 3);
    ck_assert_str_eq(tasks[5].waits[0].name, "between-4.npy");
    ck_assert_uint_eq(tasks[3].at_most, 2);
    ck_assert_int_gt(tasks[3].expect_ms, tasks[4].expect_ms);
    ck_assert_int_le(tasks[3].expect_ms + tasks[4].expect_ms + tasks[5].expect_ms, 10002);
    check_words(&job->file->run,
                "long.onnx -i x=a.npy -i z=z.bin:float32[4] -s x -o y=y.npy -p 0/3");
    /* Each task has its stage's model, whose bytes the job makes, and the arrays that it takes. */
    ck_assert_uint_eq(job->made.count, 3);
    ck_assert_uint_eq(job->own_of[4] - job->own_of[3], 2);
    const struct input_file *made = &job->own.items[job->own_of[3] + 1];
    ck_assert_str_eq(made->name, "stage-1.onnx");
    ck_assert(made->is_made);
    ck_assert(hash32_equal(&made->hash, &job->made.items[0].hash));
    ck_assert(!hash32_equal(&job->made.items[0].hash, &job->made.items[1].hash));
    ck_assert_uint_eq(model_stages_at(job, 0).weight_bytes, 48);
    ck_assert_uint_eq(model_stages_at(job, 0).left_bytes, 32); /* of two rows */
    bourse_job_destroy(&job);
}
END_TEST

START_TEST(an_output_on_the_way_is_also_passed_on)
{
    struct onnx_writer writer = {.opset = 13};
    onnx_write_input(&writer, "x", WRITER_FLOAT, "n,3");
    onnx_write_output(&writer, "a", WRITER_FLOAT, "n,3");
    onnx_write_output(&writer, "y", WRITER_FLOAT, "n,3");
    onnx_write_node(&writer, "Neg", "x", "a");
    onnx_write_node(&writer, "Tanh", "a", "y");
    struct onnx_bytes model = onnx_write_end(&writer);
    put("way.onnx", model.at, model.size);
    onnx_bytes_fini(&model);
    struct bourse_job *job = build("model: way.onnx\ninputs: {x: a.npy}\nstages: 2\n"
                                   "outputs: {a: mid.npy, y: end.npy}\n");
    ck_assert_msg(job != NULL, "%s", error.text);
    check_words(&job->file->tasks[0].run, "stage-1.onnx -i x=a.npy -o a=mid.npy");
    check_words(&job->file->tasks[1].run, "stage-2.onnx -i a=mid.npy -o y=end.npy");
    bourse_job_destroy(&job);
    job = build("model: way.onnx\ninputs: {x: a.npy}\nstages: 2\noutputs: {y: end.npy}\n");
    ck_assert_msg(job != NULL, "%s", error.text);
    check_words(&job->file->tasks[0].run, "stage-1.onnx -i x=a.npy -o a=between-1.npy");
    bourse_job_destroy(&job);
}
END_TEST

/* Reads what a task of this name is in a job with these words of its own. */
static bool is_stage(const char *name, const char *own, uint32_t *ret_part, uint32_t *ret_parts)
{
    char *arguments[] = {"m.onnx", "-i", "x=a.npy", "-o", "y=y.npy", "-p", (char *)own};
    char *words[] = {"stage-1.onnx"};
    Bourse__V1__ManifestTask task;
    Bourse__V1__ManifestSubtask subtask;
    Bourse__V1__ManifestSubtask *subtasks[] = {&subtask};
    Bourse__V1__Manifest manifest;
    bourse__v1__manifest_task__init(&task);
    bourse__v1__manifest_subtask__init(&subtask);
    bourse__v1__manifest__init(&manifest);
    task.name = (char *)name;
    task.n_arguments = 1;
    task.arguments = words;
    subtask.task = &task;
    manifest.executor = "onnx";
    manifest.arguments = arguments;
    manifest.n_arguments = own != NULL ? 7 : 5;
    manifest.subtasks = subtasks;
    manifest.n_subtasks = 1;
    const bool is_one = model_staged_part(&manifest, 0, ret_part, ret_parts);
    ck_assert(model_staged_is_between(&manifest, 0, "between-3.npy") == is_one);
    ck_assert(!model_staged_is_between(&manifest, 0, "y.npy"));
    return is_one;
}

START_TEST(a_stage_is_known_by_its_name_and_the_words_of_its_job)
{
    static const char *const others[] = {"stage-1x",   "stage-01", "stage-0.1", "stage-1.",
                                         "stage-1.02", "stage",    "stage--1",  "embed"};
    uint32_t part = 7;
    uint32_t parts = 7;
    ck_assert(is_stage("stage-2", NULL, &part, &parts));
    ck_assert_uint_eq(part, 0);
    ck_assert_uint_eq(parts, 1);
    ck_assert(is_stage("stage-16.3", "0/4", &part, &parts));
    ck_assert_uint_eq(part, 3);
    ck_assert_uint_eq(parts, 4);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        ck_assert_msg(!is_stage(others[i], "0/4", &part, &parts), "%s", others[i]);
    }
}
END_TEST

START_TEST(the_bytes_of_a_stage_are_made_when_they_are_sent)
{
    put_long_model();
    struct bourse_job *job =
        build("model: long.onnx\ninputs: {x: a.npy, z: 'w.bin:float32[4]'}\nstages: 2\n");
    ck_assert_ptr_null(job); /* w.bin is not there */
    ck_assert_ptr_nonnull(strstr(error.text, "w.bin"));
    put("w.bin", (uint8_t[16]){0}, 16);
    job = build("model: long.onnx\ninputs: {x: a.npy, z: 'w.bin:float32[4]'}\nstages: 2\n");
    ck_assert_msg(job != NULL, "%s", error.text);
    ck_assert_str_eq(job->file->tasks[1].name, "stage-2");
    uint8_t *bytes = malloc(job->made.items[0].size);
    struct problem problem;
    ck_assert_ptr_nonnull(bytes);
    ck_assert(job->made.read(job->made.context, 0, 0, job->made.items[0].size, bytes, &problem));
    const struct hash32 hash = sha256_of(bytes, job->made.items[0].size);
    ck_assert(hash32_equal(&hash, &job->made.items[0].hash));
    free(bytes);
    bourse_job_destroy(&job);
}
END_TEST

START_TEST(what_cannot_be_cut_into_stages_is_refused)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"model: m.onnx\ninputs: {x: a.npy}\nstages: 2\n",
         "cannot be cut into stages: it has places for 0 cuts, and 2 stages need 1"},
        {"model: m.onnx\ninputs: {x: a.npy}\nstages: 17\n", "17 is too large; the most is 16"},
        {"model: m.onnx\neach: a.npy\ninputs: {x: '{in}'}\nstages: 2\n", "no each"},
        {"run: [ls]\nstages: 2\n", "needs a model beside it"},
        {"model: m.onnx\ninputs: {x: wide.npy}\nstages: 2\n", "float32[6,4], and the model"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert_ptr_null(build(cases[i].text));
        ck_assert_msg(strstr(error.text, cases[i].why) != NULL, "%s", error.text);
    }
}
END_TEST

/* ---------------------------------------------------------------- parts of an output */

static char *words[] = {(char[]){"m.onnx"}, (char[]){"-o"}, (char[]){"y=y.npy"}, (char[]){"-p"},
                        (char[]){"{index}/2"}};
static struct problem problem;

static bool join(size_t *ret_count)
{
    Bourse__V1__Manifest manifest = BOURSE__V1__MANIFEST__INIT;
    manifest.executor = (char[]){"onnx"};
    manifest.n_arguments = sizeof words / sizeof words[0];
    manifest.arguments = words;
    manifest.subtask_count = 2;
    problem.text[0] = '\0';
    return model_join(&manifest, folder, ret_count, &problem);
}

static void check_joined(uint64_t rows, float last)
{
    char path[256];
    uint8_t bytes[1024];
    struct npy npy;
    float value;
    (void)snprintf(path, sizeof path, "%s/y.npy", folder);
    FILE *file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_msg(npy_read(bytes, size, size, &npy, &problem), "%s", problem.text);
    ck_assert_uint_eq(npy.shape[0], rows);
    ck_assert_uint_eq(npy.shape[1], 2);
    memcpy(&value, bytes + size - sizeof value, sizeof value);
    ck_assert(value == last);
}

START_TEST(parts_are_joined_by_rows_and_nothing_is_replaced)
{
    size_t count = 9;
    ck_assert(join(&count));
    ck_assert_uint_eq(count, 0); /* no part is there */
    put_folder("0");
    put_folder("1");
    put_array("0/y.npy", 2, 2, 0);
    ck_assert(join(&count));
    ck_assert_uint_eq(count, 0); /* a part is missing */
    put_array("1/y.npy", 3, 2, 100);
    ck_assert_msg(join(&count), "%s", problem.text);
    ck_assert_uint_eq(count, 1);
    check_joined(5, 105);
    ck_assert(join(&count)); /* the same file is there */
    ck_assert_uint_eq(count, 1);
    put_array("1/y.npy", 3, 2, 200);
    ck_assert(!join(&count));
    ck_assert_ptr_nonnull(strstr(problem.text, "is there with other content"));
    check_joined(5, 105);
    put_array("1/y.npy", 3, 3, 0);
    ck_assert(!join(&count));
    ck_assert_ptr_nonnull(strstr(problem.text, "have rows of different types or dims"));
}
END_TEST

SUITE("model_job", begin, end, TEST(what_a_model_needs_and_leaves_follows_from_it),
      TEST(parts_are_an_array_of_subtasks), TEST(what_does_not_fit_the_model_is_refused),
      TEST(an_array_of_an_archive_is_a_file_of_its_own), TEST(an_archive_that_lies_is_refused),
      TEST(stages_are_tasks_that_pass_arrays_on), TEST(an_output_on_the_way_is_also_passed_on),
      TEST(a_stage_is_known_by_its_name_and_the_words_of_its_job),
      TEST(the_bytes_of_a_stage_are_made_when_they_are_sent),
      TEST(what_cannot_be_cut_into_stages_is_refused),
      TEST(parts_are_joined_by_rows_and_nothing_is_replaced))
