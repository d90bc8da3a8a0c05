/* formats/generate/generate_words.h reads one run of a language model from the words of a subtask
 * of the executor "onnx".
 *
 *     MODEL -g TOKENIZER -q PROMPT... [-f FILE] [-b ROWS] [-n TOKENS] [-c CONTEXT]
 *           [-t TEMPERATURE] [-k TOP] [-r SEED] [-e TOKEN]...
 *
 *     -g TOKENIZER    a tokenizer.json
 *     -q PROMPT       the text to go on with; several stand for several texts
 *     -f FILE         each line that is not empty is a prompt; the one -q is the template that all
 *                     lines are put into, in the place of {line}
 *     -b ROWS         so many prompts share a step of the model at most
 *     -n TOKENS       how many tokens are made at most
 *     -c CONTEXT      how many tokens the model knows places for, the prompt's included
 *     -t TEMPERATURE  as in 0.8; 0 takes the likeliest token each time
 *     -k TOP          only so many of the likeliest tokens are drawn; 0: all
 *     -r SEED         of what is drawn
 *     -e TOKEN        a token's number that ends the text, beside the special tokens
 *
 * Each text has a seed of its own, which is SEED, so that it is the one that its prompt alone would
 * become. The subtask leaves the files below. The consumer, the agent and the computing program
 * share this one reader. Pure. */
#ifndef BOURSE_FORMATS_GENERATE_GENERATE_WORDS_H
#define BOURSE_FORMATS_GENERATE_GENERATE_WORDS_H

#include "base/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GENERATE_TEXT_FILE "answer.txt"    /* the text that was made */
#define GENERATE_ANSWER_FILE "answer.json" /* the same with its tokens; equal for equal runs */
#define GENERATE_SPEED_FILE "speed.json"   /* how long it took */
/* Several prompts leave this in the place of the first two: a line like answer.json for each. */
#define GENERATE_ANSWERS_FILE "answers.jsonl"

enum {
    GENERATE_TOKENS_DEFAULT = 128,
    GENERATE_CONTEXT_MOST = 1 << 20,   /* tokens of a prompt and its text together */
    GENERATE_TEMPERATURE_MOST = 10000, /* in thousandths */
    GENERATE_TOP_MOST = 4096,
    GENERATE_STOPS_MOST = 16,
    GENERATE_PROMPTS_MOST = 64,    /* that stand in the words */
    GENERATE_PROMPT_BYTES = 32768, /* of these prompts together */
    GENERATE_LINES_MOST = 4096,    /* prompts in a file */
    GENERATE_FILE_BYTES = 4 << 20, /* of a file of prompts */
    GENERATE_ROWS_MOST = 64,
    GENERATE_ROWS_DEFAULT = 8,
    GENERATE_WORDS_MOST = 1 + 2 * (8 + GENERATE_STOPS_MOST + GENERATE_PROMPTS_MOST),
};

struct generate_words { /* points into the words */
    const char *model, *tokenizer;
    const char *prompts[GENERATE_PROMPTS_MOST];
    size_t prompt_count;
    /* A file of prompts, which the only item of `prompts` is the template for; NULL: none. */
    const char *file;
    uint32_t rows; /* 1 .. GENERATE_ROWS_MOST */
    bool has_rows;
    uint32_t tokens_most;
    uint32_t context;           /* GENERATE_CONTEXT_MOST: not said */
    uint32_t temperature_milli; /* 0: greedy */
    uint32_t top;               /* 0: all */
    uint64_t seed;
    uint32_t stops[GENERATE_STOPS_MOST];
    size_t stop_count;
    bool has_context;
};

/* Returns true when the subtask is about several prompts, so that it leaves other files. */
bool generate_words_are_many(const struct generate_words *words);

/* Takes the next line that is not empty from a file of prompts, without its end of line. The text
 * moves behind the line. Returns false when there is none. *ret_number counts all lines from 1, and
 * is 0 before the first call. */
bool generate_words_line(const char **text, size_t *size, const char **ret_line, size_t *ret_length,
                         unsigned *ret_number);

/* Returns true when the words are those of a language model, right or wrong. */
bool generate_words_are(const char *const *words, size_t count);

/* Reads the words. Returns false with a problem that says what to do. `has_holes` says that the
 * words are templates; a seed that is a placeholder is 0. */
bool generate_words_read(const char *const *words, size_t count, bool has_holes,
                         struct generate_words *ret_words, struct problem *ret_problem);

/* Returns the text as a template that stands for itself: each brace twice. The caller frees it.
 * Returns NULL when memory is short. */
char *generate_words_literal(const char *text);

/* Writes the path of a file beside the model. Returns false when it is too long. */
bool generate_words_beside(const char *model, const char *name, char *ret_path, size_t capacity);

/* Reads a temperature such as "0.8", in thousandths. Returns false when the text is none. */
bool generate_temperature(const char *text, uint32_t *ret_milli);

#endif
