/* broker/challenge/challenge_rules.h says how large a challenge is, how long it may take, and what
 * follows from its outcome.
 *
 * A claim is the attribute `gemm_fp32` of a device: Mflop/s of float32 products of one slot. Of a
 * device that answers chains it is the higher figure of `gemm_fp32` and `gemm_fp32_held`. The
 * device has CHALLENGE_TOLERANCE times what the claim implies. It has further time for what is no
 * product: making the factors, hashing the rows, starting. An honest device whose runs take up to
 * 30 % longer than its claim implies uses 1.3 of these 2 times. One that runs at half of its speed
 * for once is still right. Only CHALLENGE_TRIES slow answers in a row lower a claim, and they are
 * minutes apart: the owner of a machine may use it for a while. Pure. */
#ifndef BOURSE_BROKER_CHALLENGE_CHALLENGE_RULES_H
#define BOURSE_BROKER_CHALLENGE_CHALLENGE_RULES_H

#include "base/challenge_product.h"
#include "base/checked.h"
#include "base/id.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    CHALLENGE_TOLERANCE = 2,     /* times that the claim implies */
    CHALLENGE_TRIES = 3,         /* slow answers in a row that lower a claim */
    CHALLENGE_FAILED_MOST = 1,   /* wrong or missing answers that do not yet close the asks */
    CHALLENGE_DECLINED_MOST = 8, /* challenges in a row that a device on offer may decline */
    CHALLENGE_ROWS_CHECKED = 2,  /* rows of an answer that the broker computes itself */
    CHALLENGE_CHAIN_ROUNDS = 2,  /* of a chain that counts; the device's memory holds one */
    CHALLENGE_CHAIN_STEPS = 16,  /* a chain of as many steps has more rows instead */
};
/* A device that answers chains has one for a claim from here on, and products for a lower one. */
#define CHALLENGE_CHAIN_LEAST_MFLOPS INT64_C(1000)
/* A chain has at most so many operations. A device of 1000 Tflop/s takes a tenth of a second, and
 * the broker's check less. */
#define CHALLENGE_CHAIN_WORK_MOST 100e12
/* The products of a challenge take this long or less at the claimed speed. */
#define CHALLENGE_WORK_NS (600 * NS_PER_MS)
/* Time that every challenge may take beside its products: a jail starts, and memory is new. */
#define CHALLENGE_START_NS (250 * NS_PER_MS)
/* Time for each entry of a factor: the entry is made, converted and hashed. */
#define CHALLENGE_ENTRY_NS INT64_C(15)
/* The same for a device that is no processor's cores: factors and sums go to it and back, too. */
#define CHALLENGE_DEVICE_ENTRY_NS INT64_C(30)
/* The way there and back is taken off, up to this time. */
#define CHALLENGE_TRIP_MOST_NS (500 * NS_PER_MS)
/* A challenge of a claim that was never challenged follows within about this time. */
#define CHALLENGE_SOON_NS (60 * NS_PER_S)
/* A challenge that was not decided is repeated after this time. */
#define CHALLENGE_AGAIN_NS (5 * NS_PER_S)
/* A slow answer is followed by the next try after this time. */
#define CHALLENGE_SLOW_AGAIN_NS (600 * NS_PER_S)
/* A lowered claim is believed again after this time; then it is challenged anew. */
#define CHALLENGE_LOWERED_NS (7 * 24 * NS_PER_HOUR)
/* The asks of a device are closed so long for the first time; each further time doubles it. */
#define CHALLENGE_CLOSED_NS (60 * NS_PER_S)
#define CHALLENGE_CLOSED_MOST_NS (24 * NS_PER_HOUR)

enum challenge_outcome {
    CHALLENGE_NONE = 0,
    CHALLENGE_OK = 1,
    CHALLENGE_SLOW = 2,
    CHALLENGE_WRONG = 3,
    CHALLENGE_UNANSWERED = 4,
};

/* A fact is what challenges of one device found. Times are log time. */
struct challenge_fact {
    uint32_t account;
    struct id128 device;
    enum challenge_outcome outcome; /* of the last decided challenge */
    int64_t at_ns;                  /* of that outcome */
    int64_t claimed_mflops;         /* the claim at that time */
    int64_t shown_mflops;           /* what the slow answers showed at best; 0: nothing */
    int64_t limit_mflops;           /* a higher claim has no ask until limit_until_ns; 0: any */
    int64_t limit_until_ns;
    uint32_t slow;       /* slow answers in a row, not decided yet */
    uint32_t failed;     /* wrong and missing answers, less one for each that was right */
    int64_t best_mflops; /* the best of the slow answers in a row */
    int64_t closed_until_ns;
    int64_t due_ns; /* of the next challenge */
    /* The claim that was seen last, and the challenges declined in a row; not in the file. */
    int64_t seen_mflops;
    uint32_t declined;
};

/* Sets the figures of the products for the claim (> 0); the seed stays. */
void challenge_rules_size(int64_t claimed_mflops, bool answers_chains,
                          struct challenge_product *ret_product);
/* Sets the figures of the smallest challenge, which shows the way there and back. It has the same
 * form as the one that counts, so that the device's compiler has its time before. */
void challenge_rules_way(int64_t claimed_mflops, bool answers_chains,
                         struct challenge_product *ret_product);
/* Returns the time within which an answer is fast enough. */
int64_t challenge_rules_allowed_ns(const struct challenge_product *product, int64_t claimed_mflops,
                                   bool on_device);
/* Returns the speed that an answer after `took_ns` shows, rounded down to two digits. */
int64_t challenge_rules_shown(const struct challenge_product *product, int64_t took_ns);

/* Returns `every_ns` times 0.5 to 1.5, by the dice. */
int64_t challenge_rules_spread(int64_t every_ns, uint64_t dice);
/* Counts a challenge that the agent says it cannot compute now. An agent may be busy for a while,
 * but whoever never computes must not keep the claim. Returns true when the challenge counts as
 * unanswered. */
bool challenge_rules_decline(struct challenge_fact *fact);
/* Notes an outcome at `now_ns`. `every_ns` is the operator's time between two challenges. Returns
 * true when the device may not keep its ask: its claim was lowered, or its asks are closed. */
bool challenge_rules_settle(struct challenge_fact *fact, enum challenge_outcome outcome,
                            int64_t claimed_mflops, int64_t shown_mflops, int64_t now_ns,
                            int64_t every_ns, uint64_t dice);
/* Returns true when the device may have an ask with this claim. */
bool challenge_rules_admit(const struct challenge_fact *fact, int64_t claimed_mflops,
                           int64_t now_ns);

#endif
