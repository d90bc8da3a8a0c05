/* Making is the toolkit with which templates make their steps. The first refusal stays in `status`,
 * and nothing is added after it. So a template adds all it has, and checks once at the end.
 *
 *     struct making making;
 *     if (making_begin(&making, ret_problem)) {
 *         struct step *embed = making_step(&making, "embed");
 *         making_part(&making, embed, &operation, 1, 1, 0);
 *     }
 *     return making_end(&making, ret_steps);
 *
 * Figures are 128 bits wide and saturate at the largest value. */
#ifndef BOURSE_PLANNER_TEMPLATES_MAKING_H
#define BOURSE_PLANNER_TEMPLATES_MAKING_H

#include "planner/templates/steps.h"

enum { TOKEN_BYTES = 4, TOKEN_TEXT_BYTES = 4 /* bytes of a token as text */ };

struct making {
    struct steps *steps;
    struct problem *problem;
    enum steps_status status;
};

/* Begins a graph without steps. Returns false when memory is short; making_end reports it, too. */
bool making_begin(struct making *making, struct problem *problem);
/* Ends the graph. The caller owns the steps, and any status but OK gives none. Each step's sets of
 * weights add up to its weights. */
enum steps_status making_end(struct making *making, struct steps **ret_steps);

void making_refuse(struct making *making, enum steps_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Refuses a value outside least to most. */
void making_check(struct making *making, const char *name, int64_t value, int64_t least,
                  int64_t most);

/* Adds a step; its pointer stays valid until the end. Names look like "embed", "prefill 1" and
 * "optimiser embed". */
struct step *making_step(struct making *making, const char *name);
struct step *making_numbered_step(struct making *making, const char *name, int64_t number);
struct step *making_named_step(struct making *making, const char *name, const char *of);

void making_edge(struct making *making, const struct step *from, const struct step *to,
                 uint128 bytes);
/* Adds an edge whose `set_bytes` also lie in sets of both steps, besides `bytes`. */
void making_set_edge(struct making *making, const struct step *from, const struct step *to,
                     uint128 bytes, uint128 set_bytes);

/* Adds an operation that runs `count` times. `copies` of its weights exist, and each run uses one
 * of them. With 0 copies, the weights are operands like others. `held` bytes of its memory are
 * counted elsewhere: in what the step holds, or in its sets. A count of 0 adds nothing. */
void making_part(struct making *making, struct step *step, const struct operation *operation,
                 int64_t count, int64_t copies, uint128 held);

/* Adds `count` exchanges between the devices of a divided layer. A count of 0 adds nothing. */
void making_told(struct making *making, struct step *step, const struct operation *operation,
                 int64_t count);

/* Sets the input of the whole work that the step takes, and the result that it makes. Neither goes
 * over an edge. */
void making_outside(struct making *making, struct step *step, uint128 brought, uint128 fetched);

/* Adds a set for the step's weights beyond the sets `first` ... `first + count - 1`. The step needs
 * these sets, too, and the new set follows them. */
void making_own(struct making *making, struct step *step, uint32_t first, uint32_t count);
/* making_set adds a set of weights of so many bytes. making_need makes a step need these sets and
 * no other weights, whatever its operations said. */
uint32_t making_set(struct making *making, uint128 bytes);
void making_need(struct making *making, struct step *step, uint32_t first, uint32_t count);

/* Marks `step` as having weights that the later step `by` changes. */
void making_renew(struct making *making, struct step *step, const struct step *by, uint128 bytes);

/* Sets the column and the phase of a step of a chain. */
void making_place(struct making *making, struct step *step, int64_t column, enum step_phase phase);

/* Adds the parameters of a model that is part of the work. */
void making_count(struct making *making, uint128 parameters);

/* Converts to an int64; a value that does not fit is refused under the name `what`. */
int64_t making_narrow(struct making *making, uint128 value, const char *what);
uint128 making_times(uint128 a, int64_t b); /* b >= 0 */
/* Returns a b, or INT64_MAX if that is less; both are >= 0. */
int64_t making_many(int64_t a, int64_t b);
int64_t making_count_of(int64_t a,
                        /* Returns a b, a number of repetitions; both are at most 2^31. */
                        int64_t b);
/* Returns the bytes of packed elements. */
uint128 making_bytes(uint128 elements, enum dtype dtype);

/* ---------------------------------------------------------------- operations
 *
 * A figure that no int64 holds exceeds every operation's limits, so making_part refuses it. */

struct operation making_product(enum dtype dtype, int64_t m, int64_t n, int64_t k);
struct operation making_rows(enum operation_kind kind, enum dtype dtype, int64_t rows,
                             int64_t width);
struct operation making_each(enum operation_kind kind, enum dtype dtype, int64_t rows,
                             int64_t width);

/* ---------------------------------------------------------------- parameters of templates */

#define MAKING_NUMBER(name, meaning, usual, least, most)                                           \
    {                                                                                              \
        name, meaning, usual, least, most, NULL, false, false, 0                                   \
    }
#define MAKING_BATCH(name, meaning, usual, most)                                                   \
    {                                                                                              \
        name, meaning, usual, 1, most, NULL, true, false, 1                                        \
    }
/* A batch whose shares are multiples of `grain`. */
#define MAKING_GRAINS(name, meaning, usual, most, grain)                                           \
    {                                                                                              \
        name, meaning, usual, 1, most, NULL, true, false, grain                                    \
    }
#define MAKING_CHOICE(name, meaning, usual, choices)                                               \
    {                                                                                              \
        name, meaning, usual, 0, (int64_t)(sizeof(choices) / sizeof((choices)[0])) - 1, choices,   \
            false, false, 0                                                                        \
    }
#define MAKING_END                                                                                 \
    {                                                                                              \
        NULL, NULL, 0, 0, 0, NULL, false, false, 0                                                 \
    }

enum { MAKING_FLOATS = 4 };
#define MAKING_BF16 3
extern const char *const making_floats[MAKING_FLOATS]; /* types that all operations support */
enum dtype making_float(int64_t value);
extern const char *const making_types[DTYPES]; /* indexed by dtype */
#define MAKING_YES 1
extern const char *const making_answers[2]; /* "no", "yes" */

#endif
