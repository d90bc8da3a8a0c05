/* The tests read the words of a language model's run, the keys of a job file that become such
 * words, and the ports that a model must have. */
#include "formats/generate/decoder_ports.h"
#include "formats/generate/generate_words.h"
#include "formats/job.h"

#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

static struct problem problem;

START_TEST(a_run_has_a_model_a_tokenizer_and_a_prompt)
{
    static const char *const words[] = {"m.onnx", "-g",  "t.json", "-q",   "Once", "-n", "9",
                                        "-c",     "128", "-t",     "0.85", "-k",   "40", "-r",
                                        "7",      "-e",  "2",      "-e",   "5"};
    struct generate_words read;
    ck_assert(generate_words_are(words, sizeof words / sizeof words[0]));
    ck_assert_msg(
        generate_words_read(words, sizeof words / sizeof words[0], false, &read, &problem), "%s",
        problem.text);
    ck_assert_str_eq(read.model, "m.onnx");
    ck_assert_str_eq(read.tokenizer, "t.json");
    ck_assert_uint_eq(read.prompt_count, 1);
    ck_assert_str_eq(read.prompts[0], "Once");
    ck_assert_uint_eq(read.rows, GENERATE_ROWS_DEFAULT);
    ck_assert(!generate_words_are_many(&read));
    ck_assert_uint_eq(read.tokens_most, 9);
    ck_assert_uint_eq(read.context, 128);
    ck_assert_uint_eq(read.temperature_milli, 850);
    ck_assert_uint_eq(read.top, 40);
    ck_assert_uint_eq(read.seed, 7);
    ck_assert_uint_eq(read.stop_count, 2);
    ck_assert_uint_eq(read.stops[1], 5);
    ck_assert(generate_words_read(words, 5, false, &read, &problem));
    ck_assert_uint_eq(read.tokens_most, GENERATE_TOKENS_DEFAULT);
    ck_assert_uint_eq(read.temperature_milli, 0);
    ck_assert(!read.has_context);
}
END_TEST

START_TEST(a_run_may_have_several_prompts_or_a_file_of_them)
{
    static const char *const two[] = {"m.onnx", "-g", "t.json", "-q", "a", "-q", "b", "-b", "3"};
    static const char *const file[] = {"m.onnx", "-g", "t.json", "-q", "<{line}>", "-f", "p.txt"};
    const char *many[3 + 2 * (GENERATE_PROMPTS_MOST + 1)] = {"m.onnx", "-g", "t.json"};
    struct generate_words read;
    ck_assert(generate_words_read(two, 9, false, &read, &problem));
    ck_assert_uint_eq(read.prompt_count, 2);
    ck_assert_str_eq(read.prompts[1], "b");
    ck_assert_uint_eq(read.rows, 3);
    ck_assert(generate_words_are_many(&read));
    ck_assert(generate_words_read(file, 7, false, &read, &problem));
    ck_assert_str_eq(read.file, "p.txt");
    ck_assert(generate_words_are_many(&read));
    for (size_t i = 3; i < sizeof many / sizeof many[0]; i += 2) {
        many[i] = "-q";
        many[i + 1] = "x";
    }
    ck_assert(
        generate_words_read(many, 3 + 2 * (size_t)GENERATE_PROMPTS_MOST, false, &read, &problem));
    ck_assert(!generate_words_read(many, sizeof many / sizeof many[0], false, &read, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "at most 64 prompts"));
    static char half[GENERATE_PROMPT_BYTES / 2 + 1];
    memset(half, 'x', sizeof half - 1);
    many[4] = half;
    many[6] = half;
    ck_assert(generate_words_read(many, 7, false, &read, &problem));
    ck_assert(!generate_words_read(many, 9, false, &read, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "32769 bytes, of 32768 together"));
    char *literal = generate_words_literal("{a} }");
    ck_assert_str_eq(literal, "{{a}} }}");
    free(literal);
}
END_TEST

START_TEST(what_is_no_run_is_refused)
{
    static const struct {
        const char *option, *value, *said;
    } wrong[] = {{"-z", "1", "\"-z\" is none of -g"},
                 {"-n", "0", "max_tokens (-n) \"0\" is no number from 1"},
                 {"-n", "1048577", "no number from 1 to 1048576"},
                 {"-n", "1x", "no number"},
                 {"-t", "-1", "the temperature"},
                 {"-t", "10.001", "the temperature"},
                 {"-t", "1.2345", "the temperature"},
                 {"-t", ".", "the temperature"},
                 {"-k", "4097", "top_k (-k) \"4097\""},
                 {"-r", "{index}", "-r"},
                 {"-r", "99999999999999999999", "-r"},
                 {"-e", "4294967295", "-e"},
                 {"-b", "0", "batch (-b) \"0\" is no number from 1 to 64"},
                 {"-b", "65", "-b"},
                 {"-f", "", "-f names no file"},
                 {"-q", "", "needs a tokenizer (-g) and a prompt (-q)"}};
    struct generate_words read;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const char *const words[] = {"m.onnx",        "-g",          "t.json", "-q", "Once",
                                     wrong[i].option, wrong[i].value};
        ck_assert_msg(!generate_words_read(words, 7, false, &read, &problem), "%s", wrong[i].said);
        ck_assert_msg(strstr(problem.text, wrong[i].said) != NULL, "%s: %s", wrong[i].said,
                      problem.text);
    }
    const char *const both[] = {"m.onnx", "-g", "t.json", "-f", "p", "-q", "a", "-q", "b"};
    ck_assert(!generate_words_read(both, 9, false, &read, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "goes with one -q"));
    const char *const hole[] = {"m.onnx", "-g", "t.json", "-q", "Once", "-r", "{index}"};
    ck_assert(generate_words_read(hole, 7, true, &read, &problem));
    ck_assert(!generate_words_read(hole, 6, true, &read, &problem));
    ck_assert(!generate_words_read(hole, 3, true, &read, &problem));
    ck_assert(!generate_words_read(hole, 0, true, &read, &problem));
    ck_assert(!generate_words_are(hole, 1));
}
END_TEST

/* ---------------------------------------------------------------- job files */

static struct job_file *parse(const char *text)
{
    problem.text[0] = '\0';
    return job_file_parse(text, strlen(text), "job.yaml", &problem);
}

START_TEST(the_keys_of_a_job_file_become_words)
{
    static const char *const wanted[] = {"llm/m.onnx", "-g",     "llm/tokenizer.json",
                                         "-q",         "{line}", "-n",
                                         "20",         "-t",     "0.8",
                                         "-k",         "40",     "-r",
                                         "7",          "-c",     "64",
                                         "-e",         "511",    "-e",
                                         "2"};
    struct job_file *job = parse("model: llm/m.onnx\nlines: p.txt\ngenerate: {max_tokens: 20, "
                                 "temperature: 0.8, top_k: 40, seed: 7, context: 64, stop: [511, "
                                 "2]}\n");
    ck_assert_msg(job != NULL, "%s", problem.text);
    ck_assert(job->is_onnx);
    ck_assert_uint_eq(job->run.count, sizeof wanted / sizeof wanted[0]);
    for (size_t i = 0; i < job->run.count; i++) {
        ck_assert_str_eq(job->run.items[i], wanted[i]);
    }
    job_file_destroy(&job);
}
END_TEST

START_TEST(a_list_of_prompts_becomes_words)
{
    static const char *const wanted[] = {"m.onnx", "-g", "tokenizer.json", "-q", "Once", "-q", "If",
                                         "-b",     "4"};
    struct job_file *job = parse("model: m.onnx\ngenerate: {prompt: [Once, If], batch: 4}\n");
    ck_assert_msg(job != NULL, "%s", problem.text);
    ck_assert_uint_eq(job->run.count, sizeof wanted / sizeof wanted[0]);
    for (size_t i = 0; i < job->run.count; i++) {
        ck_assert_str_eq(job->run.items[i], wanted[i]);
    }
    job_file_destroy(&job);
}
END_TEST

START_TEST(what_does_not_go_with_a_prompt_is_refused_with_its_line)
{
#define MODEL "model: m.onnx\ngenerate: {prompt: Once}\n"
    static const struct {
        const char *text, *said;
    } wrong[] = {{"run: [xz]\ngenerate: {prompt: x}\n", "job.yaml:2: generate: needs a model"},
                 {"model: m.onnx\ngenerate: {max_tokens: 3}\n", "has no prompt"},
                 {"model: m.onnx\ngenerate: {prompt: x, tokens: 3}\n", "tokens"},
                 {"model: m.onnx\ngenerate: {prompt: x, max_tokens: 0}\n", "max_tokens"},
                 {"model: m.onnx\ngenerate: {prompt: x, temperature: hot}\n", "the temperature is"},
                 {"model: m.onnx\ngenerate: {prompt: \"{x}\"}\n", "{x}"},
                 {"model: m.onnx\ngenerate: {prompt: []}\n", "prompt"},
                 {"model: m.onnx\ngenerate: {prompt: [a], batch: 65}\n", "batch"},
                 {MODEL "inputs: {x: a.npy}\n", "job.yaml:3: inputs: does not go with generate"},
                 {MODEL "outputs: {y: b.npy}\n", "does not go with generate"},
                 {MODEL "parts: 3\n", "does not go with generate"},
                 {MODEL "each: [\"*.txt\"]\n", "a prompt is no file"},
                 {MODEL "verify: cheap\n", "verify: cheap checks exist for matrix products"},
                 {MODEL "stdin: hello\n", "stdin: does not go with a model"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct job_file *job = parse(wrong[i].text);
        ck_assert_msg(job == NULL, "taken: %s", wrong[i].text);
        ck_assert_msg(strstr(problem.text, wrong[i].said) != NULL, "%s: %s", wrong[i].text,
                      problem.text);
    }
}
END_TEST

/* ---------------------------------------------------------------- ports */

static struct onnx_port port(const char *name, enum onnx_type type, uint32_t rank,
                             const int64_t *dims)
{
    struct onnx_port port = {.name = {(const uint8_t *)name, strlen(name)},
                             .type = type,
                             .is_tensor = true,
                             .has_shape = true,
                             .rank = rank};
    for (uint32_t i = 0; i < rank; i++) {
        port.dims[i].value = dims[i];
    }
    return port;
}

static const int64_t ids[2] = {-1, -1};
static const int64_t past[4] = {-1, 4, -1, 16};
static const int64_t logits[3] = {-1, -1, 512};

enum { INPUTS = 3, OUTPUTS = 2 };
static struct onnx_port inputs[INPUTS], outputs[OUTPUTS];

static void begin(void)
{
    inputs[0] = port("past_key_values.0.key", ONNX_FLOAT16, 4, past);
    inputs[1] = port("input_ids", ONNX_INT64, 2, ids);
    inputs[2] = port("attention_mask", ONNX_INT64, 2, ids);
    outputs[0] = port("present.0.key", ONNX_FLOAT16, 4, past);
    outputs[1] = port("logits", ONNX_FLOAT, 3, logits);
}

static void check_unfit(const char *said)
{
    struct decoder_ports ports;
    ck_assert_msg(!decoder_ports_read(inputs, INPUTS, outputs, OUTPUTS, &ports, &problem), "%s",
                  said);
    ck_assert_msg(strstr(problem.text, said) != NULL, "%s: %s", said, problem.text);
    begin();
}

START_TEST(a_decoder_is_known_by_the_names_of_its_ports)
{
    const int64_t fixed[4] = {1, 4, 7, 16};
    const int64_t vague[4] = {-1, -1, -1, 16};
    struct decoder_ports ports;
    ck_assert_msg(decoder_ports_read(inputs, INPUTS, outputs, OUTPUTS, &ports, &problem), "%s",
                  problem.text);
    ck_assert(ports.ids == 1 && ports.mask == 2 && ports.positions == DECODER_NONE);
    ck_assert(ports.past_count == 1 && ports.pasts[0] == 0 && ports.presents[0] == 0);
    ck_assert(ports.logits == 1 && ports.vocabulary == 512);
    inputs[0] = port("past_key_values.0.key", ONNX_FLOAT16, 4, fixed);
    check_unfit("dim 2 of \"past_key_values.0.key\" is always 7");
    inputs[0] = port("past_key_values.0.key", ONNX_FLOAT16, 4, vague);
    check_unfit("does not say its heads");
    inputs[0] = port("past_key_values.0.key", ONNX_INT64, 4, past);
    check_unfit("is int64 and not float32 or float16");
    inputs[0] = port("use_cache_branch", ONNX_BOOL, 1, ids);
    check_unfit("\"use_cache_branch\" is none that a prompt fills");
    inputs[0] = port("position_ids", ONNX_INT64, 2, ids);
    check_unfit("the model has no past");
    inputs[1] = port("position_ids", ONNX_INT64, 2, ids);
    check_unfit("no input \"input_ids\"");
    inputs[1] = port("input_ids", ONNX_FLOAT, 2, ids);
    check_unfit("is float32 and not int64");
    outputs[0] = port("present.0.value", ONNX_FLOAT16, 4, past);
    check_unfit("no output \"present.\"");
    outputs[0] = port("present.0.key", ONNX_FLOAT, 4, past);
    check_unfit("the past that it becomes is float16");
    outputs[1] = port("loss", ONNX_FLOAT, 3, logits);
    check_unfit("no output \"logits\"");
}
END_TEST

START_TEST(a_vocabulary_may_be_padded_and_not_smaller)
{
    ck_assert(decoder_ports_fit(512, 512, &problem));
    ck_assert(decoder_ports_fit(512 + DECODER_PADDING_MOST, 512, &problem));
    ck_assert(!decoder_ports_fit(511, 512, &problem));
    ck_assert(!decoder_ports_fit(512 + DECODER_PADDING_MOST + 1, 512, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "do not belong together"));
}
END_TEST

SUITE("generate_words", begin, NULL, TEST(a_run_has_a_model_a_tokenizer_and_a_prompt),
      TEST(a_run_may_have_several_prompts_or_a_file_of_them), TEST(what_is_no_run_is_refused),
      TEST(a_list_of_prompts_becomes_words), TEST(the_keys_of_a_job_file_become_words),
      TEST(what_does_not_go_with_a_prompt_is_refused_with_its_line),
      TEST(a_decoder_is_known_by_the_names_of_its_ports),
      TEST(a_vocabulary_may_be_padded_and_not_smaller))
