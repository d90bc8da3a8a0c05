/* The tests read runs of models: words, names of files, parts of rows, and jobs with the key
 * `model`. */
#include "formats/job.h"
#include "formats/onnx/onnx_npy.h"
#include "formats/onnx/onnx_words.h"

#include "tests/support/suite.h"

#include <string.h>

#define WORDS(...)                                                                                 \
    (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)

static struct onnx_words words;
static struct problem problem;

static bool reads(const char *const *items, size_t count, bool has_holes)
{
    problem.text[0] = '\0';
    return onnx_words_read(items, count, has_holes, &words, &problem);
}

static void check_refused(const char *said, const char *const *items, size_t count)
{
    ck_assert_msg(!reads(items, count, false), "taken: %s", said);
    ck_assert_msg(strstr(problem.text, said) != NULL, "%s", problem.text);
}

START_TEST(a_run_has_a_model_inputs_and_outputs)
{
    ck_assert_msg(reads(WORDS("m.onnx", "-i", "x=a.npy", "-o", "y=b.npy"), false), "%s",
                  problem.text);
    ck_assert_str_eq(words.model, "m.onnx");
    ck_assert_uint_eq(words.input_count, 1);
    ck_assert_uint_eq(words.output_count, 1);
    ck_assert(onnx_span_is(words.inputs[0].name, "x"));
    ck_assert(onnx_span_is(words.inputs[0].file, "a.npy"));
    ck_assert(!words.inputs[0].is_raw && !words.inputs[0].is_split);
    ck_assert(onnx_span_is(words.outputs[0].file, "b.npy"));
    ck_assert_uint_eq(words.parts, 0);
    ck_assert(reads(WORDS("m.onnx"), false)); /* a model without inputs */
    ck_assert(reads(WORDS("m.onnx", "-i", "a:0=b=c:d.npy"), false));
    ck_assert(onnx_span_is(words.inputs[0].name, "a:0"));
    ck_assert(onnx_span_is(words.inputs[0].file, "b=c:d.npy"));
}
END_TEST

START_TEST(a_file_without_a_header_has_its_type_and_dims_in_the_word)
{
    ck_assert(reads(WORDS("m", "-i", "x=a.bin:float32[1,3,224]", "-i", "n=n.bin:int64[]"), false));
    ck_assert(words.inputs[0].is_raw);
    ck_assert(onnx_span_is(words.inputs[0].file, "a.bin"));
    ck_assert_int_eq(words.inputs[0].type, ONNX_FLOAT);
    ck_assert_uint_eq(words.inputs[0].rank, 3);
    ck_assert_int_eq(words.inputs[0].dims[2], 224);
    ck_assert_int_eq(words.inputs[1].type, ONNX_INT64);
    ck_assert_uint_eq(words.inputs[1].rank, 0);
    check_refused("no type and dims", WORDS("m", "-i", "x=a:float33[1]"));
    check_refused("no type and dims", WORDS("m", "-i", "x=a:float32[1,]"));
    check_refused("no type and dims", WORDS("m", "-i", "x=a:float32[-1]"));
    check_refused("no type and dims", WORDS("m", "-i", "x=a:string[1]"));
    check_refused("no type and dims", WORDS("m", "-i", "x=a:float32[1,1,1,1,1,1,1,1,1]"));
    check_refused("no type and dims", WORDS("m", "-i", "x=a:float32[1234567890123]"));
}
END_TEST

START_TEST(what_is_no_run_is_refused)
{
    check_refused("the first word is a model", NULL, 0);
    check_refused("the first word is a model", WORDS(""));
    check_refused("the first word is a model", WORDS("-i", "x=a"));
    check_refused("is none of -i, -o, -s and -p", WORDS("m", "x=a.npy"));
    check_refused("-i has no value behind it", WORDS("m", "-i"));
    check_refused("is not NAME=FILE", WORDS("m", "-i", "a.npy"));
    check_refused("is not NAME=FILE", WORDS("m", "-i", "=a.npy"));
    check_refused("is not NAME=FILE", WORDS("m", "-o", "y="));
    check_refused("\"x\" is given twice", WORDS("m", "-i", "x=a", "-i", "x=b"));
    check_refused("is none of the inputs given before it", WORDS("m", "-s", "x"));
    check_refused("is no part", WORDS("m", "-p", "4/4"));
    check_refused("is no part", WORDS("m", "-p", "0/0"));
    check_refused("is no part", WORDS("m", "-p", "0/5000"));
    check_refused("is no part", WORDS("m", "-p", "{index}/4"));
    const char *many[1 + 2 * (ONNX_WORDS_FILES + 1)] = {"m"};
    char names[ONNX_WORDS_FILES + 1][16];
    for (size_t i = 0; i <= ONNX_WORDS_FILES; i++) {
        (void)snprintf(names[i], sizeof names[i], "x%zu=a", i);
        many[1 + 2 * i] = "-i";
        many[2 + 2 * i] = names[i];
    }
    check_refused("at most 60 inputs", many, sizeof many / sizeof many[0]);
}
END_TEST

START_TEST(parts_take_every_row_once)
{
    ck_assert(reads(WORDS("m", "-i", "x=a", "-s", "x", "-p", "2/3"), false));
    ck_assert(words.inputs[0].is_split);
    ck_assert_uint_eq(words.part, 2);
    ck_assert_uint_eq(words.parts, 3);
    ck_assert(reads(WORDS("m", "-p", "{index}/4"), true));
    ck_assert_uint_eq(words.parts, 1);
    static const int64_t sizes[] = {1, 2, 7, 64, 1000, INT64_C(1) << 40, INT64_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (uint32_t parts = 1; parts <= 5; parts++) {
            int64_t next = 0;
            for (uint32_t part = 0; part < parts; part++) {
                int64_t first;
                int64_t count;
                onnx_words_rows(sizes[i], part, parts, &first, &count);
                ck_assert_int_eq(first, next);
                ck_assert_int_ge(count, sizes[i] / parts);
                ck_assert_int_le(count - 1, sizes[i] / parts);
                next = first + count;
            }
            ck_assert_int_eq(next, sizes[i]);
        }
    }
}
END_TEST

static void check_name(const char *output, const char *wanted)
{
    char name[ONNX_WORDS_FILE_SIZE];
    onnx_words_file_name((struct onnx_span){(const uint8_t *)output, strlen(output)}, name);
    ck_assert_str_eq(name, wanted);
}

START_TEST(an_output_has_a_file_of_its_name)
{
    char longest[400];
    check_name("y", "y.npy");
    check_name("prob_1.v2", "prob_1.v2.npy");
    check_name("../etc/x", "_._etc_x.npy");
    check_name("model/out:0", "model_out_0.npy");
    check_name("\xc3\xbc", "__.npy");
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    char name[ONNX_WORDS_FILE_SIZE];
    onnx_words_file_name((struct onnx_span){(const uint8_t *)longest, strlen(longest)}, name);
    ck_assert_uint_eq(strlen(name), ONNX_WORDS_FILE_SIZE - 1);
}
END_TEST

START_TEST(types_of_numpy_and_onnx_are_the_same_both_ways)
{
    const int64_t dims[2] = {2, 3};
    for (enum onnx_type type = ONNX_FLOAT; type < ONNX_TYPES; type++) {
        struct npy npy;
        enum onnx_type again;
        int64_t read[ONNX_RANK_MOST];
        const bool has = type != ONNX_STRING && type != ONNX_BFLOAT16;
        ck_assert_int_eq(onnx_npy_describe(type, 2, dims, &npy), has);
        if (has) {
            ck_assert_msg(onnx_npy_read(&npy, &again, read, &problem), "%s", problem.text);
            ck_assert_int_eq(again, type);
            ck_assert_int_eq(npy.item_bytes, onnx_type_bytes(type));
            ck_assert_int_eq(read[1], 3);
            npy.is_fortran = true;
            ck_assert(!onnx_npy_read(&npy, &again, read, &problem));
            ck_assert_ptr_nonnull(strstr(problem.text, "ascontiguousarray"));
        }
    }
    struct npy wrong = {.kind = 'f', .item_bytes = 16};
    enum onnx_type type;
    int64_t read[ONNX_RANK_MOST];
    ck_assert(!onnx_npy_read(&wrong, &type, read, &problem));
    wrong = (struct npy){.kind = 'f', .item_bytes = 4, .is_big_endian = true};
    ck_assert(!onnx_npy_read(&wrong, &type, read, &problem));
}
END_TEST

/* ---------------------------------------------------------------- job files */

static struct job_file *parse(const char *text)
{
    problem.text[0] = '\0';
    return job_file_parse(text, strlen(text), "job.yaml", &problem);
}

START_TEST(the_keys_of_a_model_become_words)
{
    static const char *const wanted[] = {"m.onnx", "-i",      "x=a.npy", "-i", "n=n.bin:int64[1]",
                                         "-o",     "y=b.npy", "-s",      "x"};
    struct job_file *job = parse("model: m.onnx\ninputs: {x: a.npy, n: \"n.bin:int64[1]\"}\n"
                                 "outputs: {y: b.npy}\nsplit: x\nparts: 4\n");
    ck_assert_msg(job != NULL, "%s", problem.text);
    ck_assert(job->is_onnx && !job->is_wasm && !job->is_tensor);
    ck_assert_uint_eq(job->parts, 4);
    ck_assert_uint_eq(job->run.count, sizeof wanted / sizeof wanted[0]);
    for (size_t i = 0; i < job->run.count; i++) {
        ck_assert_str_eq(job->run.items[i], wanted[i]);
    }
    ck_assert_uint_eq(job->run_line, 1);
    ck_assert_str_eq(job->name, "m.onnx");
    job_file_destroy(&job);
}
END_TEST

START_TEST(what_does_not_go_with_a_model_is_refused_with_its_line)
{
#define MODEL "model: m.onnx\ninputs: {x: a.npy}\n"
    static const struct {
        const char *text, *said;
    } wrong[] = {
        {MODEL "run: [xz]\n", "job.yaml:3: run: does not go with model"},
        {MODEL "executor: onnx\n", "job.yaml:3: executor: does not go with model"},
        {MODEL "tasks: []\n", "does not go with model"},
        {"run: [xz]\ninputs: {x: a.npy}\n", "job.yaml:2: inputs: needs a model beside it"},
        {"run: [xz]\nparts: 3\n", "job.yaml:2: parts: needs a model beside it"},
        {MODEL "outputs: [y.npy]\n", "job.yaml:3: outputs: "},
        {MODEL "parts: 3\n", "job.yaml:3: parts: split and parts stand together"},
        {MODEL "split: z\nparts: 2\n", "is none of the inputs given before it"},
        {MODEL "split: x\nparts: 5000\n", "job.yaml:4: parts: "},
        {MODEL "split: x\nparts: 2\neach: [\"*.npy\"]\n", "has no each, array and lines"},
        {MODEL "env: {A: b}\n", "env: does not go with a model"},
        {MODEL "image: a.tar\n", "image: "},
        {MODEL "stdin: hello\n", "stdin: does not go with a model"},
        {MODEL "verify: cheap\n", "verify: cheap checks exist for matrix products"},
        {MODEL "checkpoint: state\n", "checkpoint: "},
        {"model: m.onnx\ninputs: {\"x=1\": a.npy}\n", "no \"=\""},
        {"executor: onnx\nrun: [m.onnx, a.npy]\n", "job.yaml:2: run: \"a.npy\" is none of -i"},
        {"executor: onnx\nrun: [m.onnx, -i, \"x={line}\"]\n", "{line}"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct job_file *job = parse(wrong[i].text);
        ck_assert_msg(job == NULL, "taken: %s", wrong[i].text);
        ck_assert_msg(strstr(problem.text, wrong[i].said) != NULL, "%s: %s", wrong[i].text,
                      problem.text);
    }
}
END_TEST

SUITE("onnx_words", NULL, NULL, TEST(a_run_has_a_model_inputs_and_outputs),
      TEST(a_file_without_a_header_has_its_type_and_dims_in_the_word),
      TEST(what_is_no_run_is_refused), TEST(parts_take_every_row_once),
      TEST(an_output_has_a_file_of_its_name), TEST(types_of_numpy_and_onnx_are_the_same_both_ways),
      TEST(the_keys_of_a_model_become_words),
      TEST(what_does_not_go_with_a_model_is_refused_with_its_line))
