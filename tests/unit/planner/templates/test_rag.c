/* Answers from passages that are looked up, as steps: against published parameters, and figures
 * worked out by hand. */
#include "base/cleanup.h"
#include "planner/templates/template_list.h"
#include "tests/support/suite.h"
#include "tests/support/template_steps.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define SETTINGS(...) ((const char *const[]){__VA_ARGS__, NULL})

START_TEST(steps_are_as_drawn)
{
    static const char *const names[] = {"tokenise",          "embed query", "search",    "fetch",
                                        "tokenise passages", "rerank",      "prompt",    "embed",
                                        "prefill 1",         "decode",      "detokenise"};
    CLEANUP(steps_destroy) struct steps *all = template_steps("rag", SETTINGS("batch=2"));
    ck_assert_uint_eq(all->step_count, sizeof names / sizeof names[0]);
    for (size_t i = 0; i < all->step_count; i++) {
        ck_assert_str_eq(all->steps[i].name, names[i]);
    }
    /* 2 queries of 32 tokens, 50 candidates of 200 tokens for each, 5 of them before the query:
     * prompts of 1,032. */
    ck_assert_int_eq(template_flow(all, "tokenise", "embed query"), 2 * 32 * 4);
    ck_assert_int_eq(template_flow(all, "tokenise", "rerank"), 2 * 32 * 4);
    ck_assert_int_eq(template_flow(all, "embed query", "search"), 2 * 768 * 2);
    ck_assert_int_eq(template_flow(all, "search", "fetch"), 2 * 50 * 4);
    ck_assert_int_eq(template_flow(all, "fetch", "tokenise passages"), 2 * 50 * 200 * 4);
    ck_assert_int_eq(template_flow(all, "tokenise passages", "rerank"), 2 * 50 * 200 * 4);
    ck_assert_int_eq(template_flow(all, "fetch", "prompt"), 2 * 5 * 200 * 4);
    ck_assert_int_eq(template_flow(all, "rerank", "prompt"), 2 * 5 * 4);
    ck_assert_int_eq(template_flow(all, "prompt", "embed"), 2 * 1032 * 4);
    ck_assert_int_eq(template_flow(all, "embed", "prefill 1"), 2 * 1032 * 4096 * 2);
}
END_TEST

/* BERT (Devlin et al., arXiv 1810.04805): 110 million parameters of 12 layers, 340 million of 24.
 * Its 512 positions, two segments, biases and pooling, 1.2 and 2.2 million, are not in here. */
START_TEST(encoders_are_as_published)
{
    CLEANUP(steps_destroy) struct steps *all = template_steps("rag", SETTINGS("query=32"));
    int64_t base = INT64_C(12) * (12 * 768 * 768 + 2 * 768) + 30522 * 768 + 768;
    int64_t large = INT64_C(24) * (12 * 1024 * 1024 + 2 * 1024) + 30522 * 1024 + 1024;
    ck_assert(base > 108000000 && base < 110000000);
    ck_assert(large > 332000000 && large < 340000000);
    ck_assert_int_eq(template_step(all, "embed query")->weight_bytes, 2 * base);
    ck_assert_int_eq(template_step(all, "rerank")->weight_bytes, 2 * (large + 1024));
    ck_assert_int_eq(all->parameters, INT64_C(8030261248) + base + large + 1024);
    /* Two operations of each matrix's element for each token, and attention: 4 x 16 heads x 64 x
     * 232^2 in each layer. */
    double tokens = 50 * 232;
    const struct step *rerank = template_step(all, "rerank");
    ck_assert(template_flops(all, rerank, OPERATION_MATMUL) ==
              2.0 * 24 * 12 * 1024 * 1024 * tokens + 2.0 * 50 * 1024);
    ck_assert(template_flops(all, rerank, OPERATION_ATTENTION) ==
              24.0 * 50 * 4 * 16 * 64 * 232 * 232);
}
END_TEST

START_TEST(a_search_looks_at_every_vector)
{
    CLEANUP(steps_destroy)
    struct steps *all = template_steps("rag", SETTINGS("vectors=1000", "candidates=8", "batch=3"));
    const struct step *search = template_step(all, "search");
    ck_assert_int_eq(search->weight_bytes, 1000 * 768 * 2); /* 2 bytes each */
    ck_assert(template_flops(all, search, OPERATION_MATMUL) == 2.0 * 3 * 1000 * 768);
    ck_assert(template_flops(all, search, OPERATION_TOPK) == 3 * (1000 + 8 * 3.0));
}
END_TEST

/* The part that answers is what the template of it alone has. */
START_TEST(the_answer_is_a_language_models)
{
    CLEANUP(steps_destroy) struct steps *all = template_steps("rag", SETTINGS("stages=2"));
    CLEANUP(steps_destroy)
    struct steps *llm = template_steps("llm", SETTINGS("stages=2", "prompt=1032"));
    static const char *const names[] = {"embed", "prefill 1", "prefill 2", "decode", "detokenise"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct step *mine = template_step(all, names[i]);
        const struct step *theirs = template_step(llm, names[i]);
        ck_assert(template_flops(all, mine, OPERATION_KINDS) ==
                  template_flops(llm, theirs, OPERATION_KINDS));
        ck_assert_int_eq(mine->weight_bytes, theirs->weight_bytes);
        ck_assert_int_eq(mine->held_bytes, theirs->held_bytes);
        ck_assert_uint_eq(mine->set_count, theirs->set_count);
    }
}
END_TEST

/* All that is looked up, and the table, are one column; layers and what comes after them are
 * others, as of the model alone. */
START_TEST(as_a_line_what_is_looked_up_is_its_first_column)
{
    int64_t values[TEMPLATE_PARAMETERS];
    struct steps *steps = NULL;
    const struct template *rag = template_named("rag");
    template_begin(rag, values);
    ck_assert_int_eq(template_create_chain(rag, values, &steps, NULL), STEPS_OK);
    ck_assert_uint_eq(steps->column_count, 34);
    ck_assert_str_eq(steps->first_column, "retrieval");
    ck_assert_int_eq(steps->rounds, 256);
    static const char *const first[] = {"tokenise", "embed query", "search", "fetch",
                                        "rerank",   "prompt",      "embed"};
    for (size_t i = 0; i < sizeof first / sizeof first[0]; i++) {
        const struct step *step = template_step(steps, first[i]);
        ck_assert_uint_eq(step->column, 0);
        ck_assert_int_eq(step->phase, STEP_FORWARD);
    }
    ck_assert_uint_eq(template_step(steps, "decode 32")->column, 32);
    ck_assert_int_eq(template_step(steps, "head")->phase, STEP_DECODE);
    steps_destroy(&steps);
}
END_TEST

START_TEST(what_cannot_be_is_refused_by_name)
{
    static const struct {
        const char *setting;
        enum steps_status status;
        const char *says;
    } wrong[] = {
        {"vectors=49", STEPS_BAD_VALUE, "candidates is 50; it may be 1 to 49"},
        {"candidates=4", STEPS_BAD_VALUE, "passages is 5; it may be 1 to 4"},
        {"embed-heads=7", STEPS_CONFLICT, "must be a multiple of embed-heads, 7"},
        {"rerank-heads=7", STEPS_CONFLICT, "must be a multiple of rerank-heads, 7"},
        {"rerank-heads=1024", STEPS_CONFLICT, "must be even"},
        {"passage=16777216", STEPS_BAD_VALUE, "query and passages are more than 16777216 tokens"},
        {"stages=33", STEPS_BAD_VALUE, "stages is 33; it may be 1 to 32"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct problem problem = {""};
        ck_assert_int_eq(template_refusal("rag", SETTINGS(wrong[i].setting), &problem),
                         wrong[i].status);
        ck_assert_msg(strstr(problem.text, wrong[i].says) != NULL, "%s", problem.text);
    }
    ck_assert_int_eq(
        template_refusal("rag", SETTINGS("batch=16777216", "candidates=9999999"), NULL),
        STEPS_OVERFLOW);
}
END_TEST

SUITE("rag", NULL, NULL, TEST(steps_are_as_drawn), TEST(encoders_are_as_published),
      TEST(a_search_looks_at_every_vector), TEST(the_answer_is_a_language_models),
      TEST(as_a_line_what_is_looked_up_is_its_first_column),
      TEST(what_cannot_be_is_refused_by_name))
