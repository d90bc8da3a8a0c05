/* planner/templates/making.h - what templates make their steps with. The first thing that is
 * refused stays in `status`, and nothing is added after it: a template adds all it has and asks
 * once, at the end.
 *
 *     struct making making;
 *     if (making_begin(&making, ret_problem)) {
 *         struct step *embed = making_step(&making, "embed");
 *         making_part(&making, embed, &operation, 1, 1, 0);
 *     }
 *     return making_end(&making, ret_steps);
 *
 * Figures are 128 bits wide and stick at the most there is. Pure. */
#ifndef BOURSE_PLANNER_TEMPLATES_MAKING_H
#define BOURSE_PLANNER_TEMPLATES_MAKING_H

#include "planner/templates/steps.h"

enum { TOKEN_BYTES = 4, TOKEN_TEXT_BYTES = 4 /* of a token, as text */ };

struct making {
    struct steps *steps;
    struct problem *problem;
    enum steps_status status;
};

/* False without memory; making_end says so, too. */
bool making_begin(struct making *making, struct problem *problem);
/* The caller owns the steps. Any status but OK gives none. Each step's sets of weights add up to
 * its weights. */
enum steps_status making_end(struct making *making, struct steps **ret_steps);

void making_refuse(struct making *making, enum steps_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Refuses a value outside least to most. */
void making_check(struct making *making, const char *name, int64_t value, int64_t least,
                  int64_t most);

/* A new step, whose pointer stays good until the end: "embed", "prefill 1", "optimiser embed". */
struct step *making_step(struct making *making, const char *name);
struct step *making_numbered_step(struct making *making, const char *name, int64_t number);
struct step *making_named_step(struct making *making, const char *name, const char *of);

void making_edge(struct making *making, const struct step *from, const struct step *to,
                 uint128 bytes);
/* With what lies in sets of both besides. */
void making_set_edge(struct making *making, const struct step *from, const struct step *to,
                     uint128 bytes, uint128 set_bytes);

/* Does the operation `count` times. `copies` of its weights are there, of which each time one is
 * used; with 0 they are no weights of the step but operands like others. `held` bytes of what it
 * takes are counted elsewhere: among what the step holds, or in its sets. Of 0 times nothing is
 * added. */
void making_part(struct making *making, struct step *step, const struct operation *operation,
                 int64_t count, int64_t copies, uint128 held);

/* What the devices of a divided layer tell one another, `count` times more. Of 0 times nothing is
 * added. */
void making_told(struct making *making, struct step *step, const struct operation *operation,
                 int64_t count);

/* What the step takes of the work's input, and makes of its results; neither comes or goes over an
 * edge. */
void making_outside(struct making *making, struct step *step, uint128 brought, uint128 fetched);

/* A set of weights of its own for what the step has of them beyond the sets `first` ... `first +
 * count - 1`, which it needs, too, and after which the new one comes. */
void making_own(struct making *making, struct step *step, uint32_t first, uint32_t count);
/* A set of weights of so many bytes, and a step that needs these sets and no other weights,
 * whatever its operations said. */
uint32_t making_set(struct making *making, uint128 bytes);
void making_need(struct making *making, struct step *step, uint32_t first, uint32_t count);

/* `step` has weights that `by`, which is after it, changes. */
void making_renew(struct making *making, struct step *step, const struct step *by, uint128 bytes);

/* Of a line: to which column the step belongs, and when it is done. */
void making_place(struct making *making, struct step *step, int64_t column, enum step_phase phase);

/* Parameters of a model that is among what is made. */
void making_count(struct making *making, uint128 parameters);

/* Refused as `what` if no int64 holds it. */
int64_t making_narrow(struct making *making, uint128 value, const char *what);
uint128 making_times(uint128 a, int64_t b); /* b >= 0 */
int64_t making_many(int64_t a, int64_t b);  /* a b, or INT64_MAX where that is less; both >= 0 */
int64_t making_count_of(int64_t a,
                        int64_t b); /* a b, both at most 2^31: times that something is done */
/* Of packed elements. */
uint128 making_bytes(uint128 elements, enum dtype dtype);

/* ---------------------------------------------------------------- operations
 * What no int64 holds is certainly more than any operation takes, so that making_part refuses it.
 */

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
/* Of which shares are multiples of `grain`. */
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
extern const char *const making_floats[MAKING_FLOATS]; /* types that all operations are done in */
enum dtype making_float(int64_t value);
extern const char *const making_types[DTYPES]; /* by dtype */
#define MAKING_YES 1
extern const char *const making_answers[2]; /* "no", "yes" */

#endif
