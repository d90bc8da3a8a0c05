/* The tests run the small language model of tests/golden/decoder by our own operators. They show
 * that it has learnt, that a past gives what the whole text gives, how tokens are chosen, and how a
 * text ends. */
#include "provider/onnx/generate/decoder.h"
#include "provider/onnx/generate/generate.h"
#include "provider/onnx/generate/prompts.h"
#include "provider/onnx/generate/sample.h"
#include "provider/onnx/onnx_file.h"
#include "provider/onnx/onnx_serve.h"
#include "provider/onnx/own/own_engine.h"

#include "tests/support/suite.h"

#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CONTEXT = 128, VOCABULARY = 512, END_TOKEN = 511, HELD_WINDOWS = 2, TEXT_SIZE = 4096 };

#define DECODER BOURSE_SOURCE_DIR "/tests/golden/decoder"
#define HELD_OUT "/usr/share/common-licenses/Apache-2.0"
#define PROMPT "This License does not grant"

static struct onnx_engine engine;
static void *session;
static struct tokenizer *tokenizer;
static struct onnx_file model;
static struct problem problem;
static char folder[] = "/tmp/bourse-generate-XXXXXX";
static int at = -1;

static void open_model(void)
{
    const struct onnx_engine_model opened = {
        .bytes = model.bytes, .size = model.size, .threads = 1};
    ck_assert_msg(engine.open(engine.context, &opened, &session, &problem) == ONNX_ENGINE_OK, "%s",
                  problem.text);
}

static void begin(void)
{
    struct onnx_file file;
    memcpy(folder + strlen(folder) - 6, "XXXXXX", 6);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    at = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_ge(at, 0);
    own_engine_make(&engine);
    ck_assert_msg(onnx_file_map(AT_FDCWD, DECODER "/decoder.onnx", &model, &problem), "%s",
                  problem.text);
    open_model();
    ck_assert(onnx_file_map(AT_FDCWD, DECODER "/tokenizer.json", &file, &problem));
    tokenizer = tokenizer_read(file.bytes, file.size, &problem);
    ck_assert_msg(tokenizer != NULL, "%s", problem.text);
    onnx_file_unmap(&file);
}

static void end(void)
{
    static const char *const names[] = {GENERATE_TEXT_FILE,
                                        GENERATE_ANSWER_FILE,
                                        GENERATE_SPEED_FILE,
                                        GENERATE_ANSWERS_FILE,
                                        "live",
                                        "m.onnx",
                                        "t.json"};
    engine.close(&session);
    onnx_file_unmap(&model);
    tokenizer_destroy(&tokenizer);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        (void)unlinkat(at, names[i], 0);
    }
    ck_assert_int_eq(close(at), 0);
    ck_assert_int_eq(rmdir(folder), 0);
}

static struct decoder *make_decoder(void)
{
    struct decoder *decoder = decoder_create(&engine, session, &problem);
    ck_assert_msg(decoder != NULL, "%s", problem.text);
    return decoder;
}

static const float *step(struct decoder *decoder, const uint32_t *tokens, size_t count)
{
    const float *logits = NULL;
    size_t size = 0;
    ck_assert_msg(decoder_step(decoder, tokens, count, &logits, &size, &problem) == ONNX_ENGINE_OK,
                  "%s", problem.text);
    ck_assert_uint_eq(size, VOCABULARY);
    return logits;
}

/* ---------------------------------------------------------------- what it has learnt */

static double loss_of(const float *logits, uint32_t token)
{
    double sum = 0;
    for (int i = 0; i < VOCABULARY; i++) {
        sum += exp((double)logits[i] - (double)logits[token]);
    }
    return log(sum);
}

/* The least loss of a guess that knows how often each token is in this very text. */
static double unigram_entropy(const uint32_t *tokens, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        size_t same = 0;
        for (size_t k = 0; k < count; k++) {
            same += tokens[k] == tokens[i];
        }
        sum -= log((double)same / (double)count);
    }
    return sum / (double)count;
}

START_TEST(the_model_foretells_a_text_that_it_has_never_seen)
{
    struct onnx_file file;
    size_t count = 0;
    double loss = 0;
    size_t guesses = 0;
    if (!onnx_file_map(AT_FDCWD, HELD_OUT, &file, &problem)) {
        (void)fprintf(stderr, "skipped: no " HELD_OUT "\n");
        return;
    }
    uint32_t *tokens = tokenizer_encode(tokenizer, (const char *)file.bytes, file.size, &count);
    ck_assert_uint_gt(count, (size_t)(HELD_WINDOWS + 1) * CONTEXT);
    for (size_t window = 1; window <= HELD_WINDOWS; window++) {
        struct decoder *decoder = make_decoder();
        for (size_t i = 0; i + 1 < CONTEXT; i++) {
            const uint32_t *token = tokens + window * CONTEXT + i;
            loss += loss_of(step(decoder, token, 1), token[1]);
            guesses++;
        }
        decoder_destroy(&decoder);
    }
    loss /= (double)guesses;
    const double least = unigram_entropy(tokens, count);
    ck_assert_msg(loss < 0.8 * least, "%.3f nats a token, and unigrams have %.3f", loss, least);
    free(tokens);
    onnx_file_unmap(&file);
}
END_TEST

START_TEST(a_past_gives_what_the_whole_text_gives)
{
    size_t count = 0;
    uint32_t *tokens = tokenizer_encode(tokenizer, PROMPT, strlen(PROMPT), &count);
    struct decoder *whole = make_decoder();
    struct decoder *parts = make_decoder();
    ck_assert_uint_gt(count, 4);
    const float *once = step(whole, tokens, count);
    (void)step(parts, tokens, count - 3);
    const float *last = step(parts, tokens + count - 3, 2);
    last = step(parts, tokens + count - 1, 1);
    for (int i = 0; i < VOCABULARY; i++) {
        ck_assert_msg(fabsf(once[i] - last[i]) < 1e-3F, "%d: %g %g", i, (double)once[i],
                      (double)last[i]);
    }
    decoder_destroy(&whole);
    decoder_destroy(&parts);
    free(tokens);
}
END_TEST

/* A token that the model has no place for ends the step with the engine's words, and the past is
 * as it was. */
START_TEST(a_step_that_fails_changes_nothing)
{
    const uint32_t good[2] = {5, 6};
    const uint32_t wrong = VOCABULARY;
    const float *logits = NULL;
    size_t size = 0;
    struct decoder *decoder = make_decoder();
    struct decoder *other = make_decoder();
    (void)step(decoder, good, 1);
    ck_assert_int_ne(decoder_step(decoder, &wrong, 1, &logits, &size, &problem), ONNX_ENGINE_OK);
    ck_assert_ptr_nonnull(strstr(problem.text, "Gather"));
    const float last = step(decoder, good + 1, 1)[7];
    ck_assert(fabsf(last - step(other, good, 2)[7]) < 1e-3F);
    decoder_destroy(&decoder);
    decoder_destroy(&other);
}
END_TEST

/* ---------------------------------------------------------------- choices */

START_TEST(the_likeliest_token_is_the_lowest_of_equals)
{
    const float logits[5] = {NAN, 1, 3, 3, -INFINITY};
    const float none[2] = {NAN, NAN};
    const struct sample_rule greedy = {0, 0};
    struct random random = random_seeded(1);
    uint32_t token = 0;
    ck_assert(sample_next(logits, 5, &greedy, &random, &token));
    ck_assert_uint_eq(token, 2);
    ck_assert(!sample_next(none, 2, &greedy, &random, &token));
    ck_assert_uint_eq(random.state, random_seeded(1).state); /* nothing was drawn */
}
END_TEST

/* Counts 20,000 draws against the chances of the rule. */
START_TEST(tokens_are_drawn_by_their_chances)
{
    enum { DRAWS = 20000 };
    const float logits[4] = {0, 1, NAN, 2};
    static const struct {
        struct sample_rule rule;
        double chances[4];
    } cases[] = {{{1000, 0}, {0.0900, 0.2447, 0, 0.6652}},
                 {{500, 0}, {0.0159, 0.1173, 0, 0.8668}},
                 {{1000, 2}, {0, 0.2689, 0, 0.7311}},
                 {{1000, 1}, {0, 0, 0, 1}}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct random random = random_seeded(9);
        uint32_t counts[4] = {0};
        for (int draw = 0; draw < DRAWS; draw++) {
            uint32_t token = 0;
            ck_assert(sample_next(logits, 4, &cases[i].rule, &random, &token));
            counts[token]++;
        }
        for (size_t k = 0; k < 4; k++) {
            const double part = counts[k] / (double)DRAWS;
            ck_assert_msg(fabs(part - cases[i].chances[k]) < 0.015, "%zu, %zu: %.4f", i, k, part);
        }
    }
}
END_TEST

/* ---------------------------------------------------------------- texts */

static struct generate_words words_of(uint32_t most, uint32_t temperature_milli, uint64_t seed)
{
    return (struct generate_words){.prompts = {PROMPT},
                                   .prompt_count = 1,
                                   .tokens_most = most,
                                   .context = CONTEXT,
                                   .temperature_milli = temperature_milli,
                                   .seed = seed};
}

static struct generate_result make_text(const struct generate_words *words, int live)
{
    struct generate_result result;
    const struct generate_run run = {.engine = &engine,
                                     .session = session,
                                     .tokenizer = tokenizer,
                                     .words = words,
                                     .live = live};
    problem.text[0] = '\0';
    ck_assert_msg(generate_text(&run, &result, &problem) == ONNX_ENGINE_OK, "%s", problem.text);
    return result;
}

static bool same_tokens(const struct generate_result *a, const struct generate_result *b)
{
    return a->token_count == b->token_count &&
           memcmp(a->tokens, b->tokens, a->token_count * sizeof *a->tokens) == 0;
}

START_TEST(a_text_is_the_same_for_the_same_seed)
{
    const struct generate_words greedy = words_of(12, 0, 1);
    const struct generate_words other_seed = words_of(12, 0, 2);
    const struct generate_words drawn = words_of(12, 1500, 1);
    const struct generate_words drawn_anew = words_of(12, 1500, 2);
    struct generate_result results[5] = {make_text(&greedy, -1), make_text(&other_seed, -1),
                                         make_text(&drawn, -1), make_text(&drawn, -1),
                                         make_text(&drawn_anew, -1)};
    ck_assert_uint_eq(results[0].token_count, 12);
    ck_assert_int_eq(results[0].end, GENERATE_END_MOST);
    ck_assert(same_tokens(&results[0], &results[1]));
    ck_assert(same_tokens(&results[2], &results[3]));
    ck_assert(!same_tokens(&results[2], &results[4]));
    ck_assert(!same_tokens(&results[0], &results[2]));
    for (size_t i = 0; i < 5; i++) {
        generate_result_fini(&results[i]);
    }
}
END_TEST

START_TEST(a_text_ends_at_a_token_or_where_the_model_has_no_place)
{
    struct generate_words words = words_of(12, 0, 1);
    struct generate_result first = make_text(&words, -1);
    words.stops[0] = first.tokens[3];
    words.stop_count = 1;
    size_t before = 0;
    while (first.tokens[before] != first.tokens[3]) {
        before++;
    }
    struct generate_result cut = make_text(&words, -1);
    ck_assert_int_eq(cut.end, GENERATE_END_TOKEN);
    ck_assert_uint_eq(cut.token_count, before);
    words = words_of(12, 0, 1);
    words.context = (uint32_t)first.prompt_count + 4;
    struct generate_result full = make_text(&words, -1);
    ck_assert_int_eq(full.end, GENERATE_END_CONTEXT);
    ck_assert_uint_eq(full.token_count, 5); /* the last token needs no place */
    words.context = (uint32_t)first.prompt_count - 1;
    const struct generate_run run = {
        .engine = &engine, .session = session, .tokenizer = tokenizer, .words = &words, .live = -1};
    struct generate_result none;
    ck_assert_int_eq(generate_text(&run, &none, &problem), ONNX_ENGINE_INPUT);
    ck_assert_ptr_nonnull(strstr(problem.text, "the model takes 1 to"));
    generate_result_fini(&first);
    generate_result_fini(&cut);
    generate_result_fini(&full);
    generate_result_fini(&none);
}
END_TEST

/* ---------------------------------------------------------------- several texts */

enum { MANY = 7 };
static const char *const prompts[MANY] = {
    PROMPT, "You may copy", "If", PROMPT, "the terms of this License", "Software", "a b c d e f g"};

/* Texts end at different steps, so that places become free and prompts follow. */
static void expect_same_as_alone(struct generate_words words, size_t rows)
{
    struct generate_result results[MANY];
    struct generate_speed speed;
    const struct generate_many many = {prompts, MANY, rows};
    const struct generate_run run = {
        .engine = &engine, .session = session, .tokenizer = tokenizer, .words = &words, .live = -1};
    ck_assert_msg(generate_texts(&run, &many, results, &speed, &problem) == ONNX_ENGINE_OK, "%s",
                  problem.text);
    ck_assert_ptr_null(speed.lacks);
    ck_assert_uint_eq(speed.rows, rows < MANY ? rows : MANY);
    size_t tokens = 0;
    size_t steps = 0;
    for (size_t i = 0; i < MANY; i++) {
        words.prompts[0] = prompts[i];
        struct generate_result alone = make_text(&words, -1);
        ck_assert_msg(same_tokens(&alone, &results[i]), "%zu rows, prompt %zu", rows, i);
        ck_assert_int_eq(alone.end, results[i].end);
        ck_assert_uint_eq(alone.text_size, results[i].text_size);
        ck_assert_uint_eq(alone.decode_steps, results[i].decode_steps);
        tokens += alone.prompt_count;
        steps += alone.decode_steps;
        generate_result_fini(&alone);
        generate_result_fini(&results[i]);
    }
    ck_assert_uint_eq(speed.prompt_tokens, tokens);
    ck_assert_uint_eq(speed.decode_tokens, steps);
}

START_TEST(texts_that_share_steps_are_those_of_their_prompts_alone)
{
    static const size_t rows[] = {1, 3, GENERATE_ROWS_MOST};
    struct generate_words greedy = words_of(7, 0, 1);
    struct generate_words drawn = words_of(7, 900, 3);
    struct generate_result first = make_text(&greedy, -1);
    greedy.stops[0] = first.tokens[4]; /* some end earlier than others */
    greedy.stop_count = 1;
    drawn.stops[0] = first.tokens[1];
    drawn.stop_count = 1;
    generate_result_fini(&first);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        expect_same_as_alone(greedy, rows[i]);
    }
    expect_same_as_alone(drawn, 3);
}
END_TEST

START_TEST(a_prompt_that_does_not_fit_fails_all_and_leaks_nothing)
{
    struct generate_words words = words_of(10, 0, 1);
    struct generate_result results[MANY];
    struct generate_speed speed;
    const struct generate_many many = {prompts, MANY, 4};
    const struct generate_run run = {
        .engine = &engine, .session = session, .tokenizer = tokenizer, .words = &words, .live = -1};
    size_t size = 0;
    uint32_t *tokens = tokenizer_encode(tokenizer, prompts[4], strlen(prompts[4]), &size);
    free(tokens);
    words.context = (uint32_t)size - 1;
    ck_assert_int_eq(generate_texts(&run, &many, results, &speed, &problem), ONNX_ENGINE_INPUT);
    ck_assert_ptr_nonnull(strstr(problem.text, "the model takes 1 to"));
    for (size_t i = 0; i < MANY; i++) {
        generate_result_fini(&results[i]);
    }
}
END_TEST

START_TEST(prompts_are_words_or_lines)
{
    struct prompts list;
    struct generate_words words = words_of(10, 0, 1);
    static const char lines[] = "one\r\n\n{two}\n\r\nthree";
    words.prompts[1] = "more";
    words.prompt_count = 2;
    ck_assert(prompts_list(&words, "", 0, &list, &problem));
    ck_assert_uint_eq(list.count, 2);
    ck_assert_str_eq(list.items[1], "more");
    prompts_fini(&list);
    words.file = "p.txt";
    words.prompts[0] = "<{line}> {{x}}";
    words.prompt_count = 1;
    ck_assert_msg(prompts_list(&words, lines, sizeof lines - 1, &list, &problem), "%s",
                  problem.text);
    ck_assert_uint_eq(list.count, 3);
    ck_assert_str_eq(list.items[0], "<one> {x}");
    ck_assert_str_eq(list.items[1], "<{two}> {x}");
    ck_assert_str_eq(list.items[2], "<three> {x}");
    prompts_fini(&list);
    ck_assert(!prompts_list(&words, "\n\r\n", 3, &list, &problem));
    ck_assert_str_eq(problem.text, "p.txt has no prompt");
    ck_assert(!prompts_list(&words, "a\nb\0c", 5, &list, &problem));
    ck_assert_str_eq(problem.text, "p.txt: line 2 has a NUL");
    words.prompts[0] = "{in}";
    ck_assert(!prompts_list(&words, "a", 1, &list, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "the prompt of line 1 cannot be made"));
    char many[2 * (GENERATE_LINES_MOST + 1)];
    for (size_t i = 0; i < sizeof many; i += 2) {
        memcpy(many + i, "x\n", 2);
    }
    words.prompts[0] = "{line}";
    ck_assert(prompts_list(&words, many, sizeof many - 2, &list, &problem));
    ck_assert_uint_eq(list.count, GENERATE_LINES_MOST);
    prompts_fini(&list);
    ck_assert(!prompts_list(&words, many, sizeof many, &list, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "more than 4096 prompts"));
}
END_TEST

static size_t read_file(const char *name, char text[TEXT_SIZE])
{
    const int file = openat(at, name, O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(file, 0);
    const ssize_t size = read(file, text, TEXT_SIZE - 1);
    ck_assert_int_ge(size, 0);
    text[size] = '\0';
    ck_assert_int_eq(close(file), 0);
    return (size_t)size;
}

static void copy(const char *from, const char *to)
{
    char path[256];
    struct onnx_file file;
    (void)snprintf(path, sizeof path, "%s/%s", DECODER, from);
    ck_assert(onnx_file_map(AT_FDCWD, path, &file, &problem));
    const int out = openat(at, to, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_eq(write(out, file.bytes, file.size), (ssize_t)file.size);
    ck_assert_int_eq(close(out), 0);
    onnx_file_unmap(&file);
}

/* The words go through the server, as in a jail: live text, files, and an open model. */
START_TEST(a_prompt_leaves_its_text_its_tokens_and_its_speed)
{
    static const char *const words[] = {"m.onnx", "-g", "t.json", "-q", PROMPT, "-n", "9"};
    char live[TEXT_SIZE];
    char text[TEXT_SIZE];
    copy("decoder.onnx", "m.onnx");
    copy("tokenizer.json", "t.json");
    struct onnx_serve *serve = onnx_serve_create(&engine, 1);
    const int out = openat(at, "live", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    const struct onnx_serve_run run = {
        .folder = at, .words = words, .count = sizeof words / sizeof words[0], .live = out};
    ck_assert_msg(onnx_serve_run(serve, &run, &problem) == OPERATION_OK, "%s", problem.text);
    const size_t size = read_file(GENERATE_TEXT_FILE, text);
    ck_assert_uint_eq(read_file("live", live), size);
    ck_assert_mem_eq(live, text, size);
    (void)read_file(GENERATE_ANSWER_FILE, text);
    json_t *answer = json_loads(text, 0, NULL);
    ck_assert_str_eq(json_string_value(json_object_get(answer, "text")), live);
    ck_assert_str_eq(json_string_value(json_object_get(answer, "prompt")), PROMPT);
    ck_assert_uint_eq(json_array_size(json_object_get(answer, "tokens")), 9);
    ck_assert_str_eq(json_string_value(json_object_get(answer, "end")), "most");
    json_decref(answer);
    (void)read_file(GENERATE_SPEED_FILE, text);
    ck_assert_ptr_nonnull(strstr(text, "\"engine\": \"bourse-1\""));
    /* The files are there: a second run fails, and removes none that it did not make. */
    ck_assert_int_eq(onnx_serve_run(serve, &run, &problem), OPERATION_FAILED);
    ck_assert_uint_eq(read_file(GENERATE_TEXT_FILE, text), size);
    ck_assert_uint_eq(onnx_serve_opened(serve), 2); /* no content was known */
    ck_assert_int_eq(close(out), 0);
    onnx_serve_destroy(&serve);
}
END_TEST

/* Two runs print the same lines, whatever the time; each line says whose it is. */
START_TEST(several_prompts_leave_lines_of_json_and_labelled_text)
{
    static const char *const words[] = {"m.onnx", "-g", "t.json", "-q", PROMPT, "-q",
                                        "If",     "-n", "40",     "-b", "2"};
    char live[TEXT_SIZE];
    char text[TEXT_SIZE];
    copy("decoder.onnx", "m.onnx");
    copy("tokenizer.json", "t.json");
    struct onnx_serve *serve = onnx_serve_create(&engine, 1);
    const int out = openat(at, "live", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    const struct onnx_serve_run run = {
        .folder = at, .words = words, .count = sizeof words / sizeof words[0], .live = out};
    ck_assert_msg(onnx_serve_run(serve, &run, &problem) == OPERATION_OK, "%s", problem.text);
    (void)read_file(GENERATE_ANSWERS_FILE, text);
    (void)read_file("live", live);
    char *line = text;
    for (int i = 0; i < 2; i++) {
        char label[8];
        char shown[TEXT_SIZE] = "";
        char *end = strchr(line, '\n');
        ck_assert_ptr_nonnull(end);
        *end = '\0';
        json_t *answer = json_loads(line, 0, NULL);
        ck_assert_int_eq(json_integer_value(json_object_get(answer, "index")), i);
        ck_assert_int_eq(json_integer_value(json_object_get(answer, "count")), 40);
        (void)snprintf(label, sizeof label, "[%d] ", i);
        for (const char *at_line = live; *at_line != '\0'; at_line = strchr(at_line, '\n') + 1) {
            if (strncmp(at_line, label, 4) == 0) {
                strncat(shown, at_line + 4, (size_t)(strchr(at_line, '\n') - at_line) - 4);
            }
        }
        /* A line of the text and a long piece both end a line of what is shown. */
        const char *wanted = json_string_value(json_object_get(answer, "text"));
        const char *found = shown;
        for (; *wanted != '\0'; wanted++) {
            if (*wanted != '\n') {
                ck_assert_int_eq(*wanted, *found++);
            }
        }
        ck_assert_int_eq(*found, '\0');
        json_decref(answer);
        line = end + 1;
    }
    ck_assert_int_eq(*line, '\0');
    (void)read_file(GENERATE_SPEED_FILE, text);
    ck_assert_ptr_nonnull(strstr(text, "\"prompts\": 2, \"at_a_time\": 2"));
    ck_assert_int_eq(onnx_serve_run(serve, &run, &problem), OPERATION_FAILED); /* the files exist */
    ck_assert_int_eq(close(out), 0);
    onnx_serve_destroy(&serve);
}
END_TEST

SUITE("generate", begin, end, TEST(the_model_foretells_a_text_that_it_has_never_seen),
      TEST(a_past_gives_what_the_whole_text_gives), TEST(a_step_that_fails_changes_nothing),
      TEST(the_likeliest_token_is_the_lowest_of_equals), TEST(tokens_are_drawn_by_their_chances),
      TEST(a_text_is_the_same_for_the_same_seed),
      TEST(a_text_ends_at_a_token_or_where_the_model_has_no_place),
      TEST(a_prompt_leaves_its_text_its_tokens_and_its_speed),
      TEST(texts_that_share_steps_are_those_of_their_prompts_alone),
      TEST(a_prompt_that_does_not_fit_fails_all_and_leaks_nothing),
      TEST(prompts_are_words_or_lines), TEST(several_prompts_leave_lines_of_json_and_labelled_text))
