/* tests/support/market_model.h drives an exchange with random but plausible commands from a seed.
 *
 * The model reads the effects to keep what a set of agents would hold (leases and work they were
 * told of), and makes the next command from that. Property tests use the model. */
#ifndef BOURSE_TESTS_MARKET_MODEL_H
#define BOURSE_TESTS_MARKET_MODEL_H

#include "base/random.h"
#include "exchange/view/disputes.h"

enum {
    MODEL_CONSUMERS = 3,
    MODEL_PROVIDERS = 4,
    MODEL_FOUNDERS = MODEL_CONSUMERS + MODEL_PROVIDERS + 1, /* the last is the operator */
    MODEL_DEVICES = 2,                                      /* per provider */
    MODEL_PARTS = 2,                                        /* parts after the first */
    MODEL_SUBTASKS = 700,                                   /* subtasks of the largest job */
    MODEL_WORK_MAX = 4096,
    MODEL_JOBS_MAX = 4096
};

struct model_work {
    uint32_t provider;
    uint64_t lease;
    struct id128 job, device;
    struct hash32 manifest;
    uint32_t index, attempt;
    struct hash32 seed; /* of a check */
};

struct model {
    struct random random;
    struct exchange_limits limits;
    struct exchange *exchange;
    uint64_t index;
    int64_t now_ns;
    struct exchange_effects effects; /* of the last command */
    struct exchange_command command; /* the last command */
    struct model_work work[MODEL_WORK_MAX];
    size_t work_count;
    struct model_work leases[MODEL_WORK_MAX]; /* index and attempt unused */
    size_t lease_count;
    struct id128 jobs[MODEL_JOBS_MAX];
    uint32_t job_owners[MODEL_JOBS_MAX];
    size_t job_count;
    struct id128 asks[MODEL_PROVIDERS][MODEL_DEVICES];
    struct exchange_ask_account to[2]; /* accounts that the ask being placed is for */
    struct hash32 secret;              /* secret of the epoch that stands; zeros: none */
    uint8_t invited, joined;           /* tokens given out, and redeemed */
    bool is_calm; /* everyone does what is best for the market: no faults, no new jobs */
    /* storage that the last command points into */
    struct exchange_genesis_account founders[MODEL_FOUNDERS];
    struct requirement needs, part_needs[MODEL_PARTS + 1];
    struct exchange_part parts[MODEL_PARTS + 1]; /* the last part is the checks */
    struct exchange_graph graph;
    uint32_t ranks[MODEL_SUBTASKS], expect_ms[MODEL_SUBTASKS], after_counts[MODEL_SUBTASKS],
        after[3 * MODEL_SUBTASKS];
    struct attribute attributes[MODEL_DEVICES][3];
    struct exchange_device devices[MODEL_DEVICES];
    struct exchange_result results[8];
    struct exchange_held held[MODEL_WORK_MAX + 4];
};

/* Creates the exchange and applies genesis. Accounts 3..5 are consumers and 6..9 providers, of whom
 * 9 is no referee; 10 is the operator. */
void model_init(struct model *model, uint64_t seed);
void model_fini(struct model *model);
/* Makes the next random command in model->command without applying it. */
void model_next(struct model *model);
/* Makes model_next stop the faults from here on. The market is open, nobody is frozen, every
 * provider offers all it has for nothing and answers everything it holds. Everything that stands
 * must come to its end. */
void model_calm(struct model *model);
/* Applies model->command to the exchange and reads the effects. */
enum exchange_status model_apply(struct model *model);

struct id128 model_id(struct model *model);

#endif
