/* consumer/client/bourse_provider.h tells a provider why no work comes to a device. Include
 * consumer/client/bourse.h, which states the rules that all of its parts share. */
#ifndef BOURSE_CONSUMER_CLIENT_BOURSE_PROVIDER_H
#define BOURSE_CONSUMER_CLIENT_BOURSE_PROVIDER_H

#include "consumer/client/bourse_market.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bourse_why_refusal {           /* a waiting requirement that the device does not satisfy */
    char predicate[BOURSE_TEXT_SIZE]; /* the predicate to change first */
    uint32_t changes;                 /* least number of predicates to change */
    uint32_t bids;                    /* bids with this requirement */
    int64_t limit_micro;              /* the highest limit of these bids */
    bool has_have;                    /* the device has a number for the predicate */
    int64_t have;
};
struct bourse_why {
    char text[BOURSE_TEXT_SIZE];  /* the obstacle, and the next step */
    char state[BOURSE_NAME_SIZE]; /* state of this provider: "present", "suspect", "away" */
    bool frozen, halted;
    uint32_t devices;            /* advertised by this account; 0: all below is empty */
    char device[BOURSE_ID_SIZE]; /* the device of the question */
    char label[BOURSE_NAME_SIZE];
    uint32_t slots, leased;
    uint32_t free;       /* slots of the ask that are not leased */
    int64_t price_micro; /* price of the ask; -1: no ask stands */
    /* Waiting bids of others; each number counts a part of the one before. */
    uint32_t bids, fitting, lasting, paying;
    int64_t best_limit_micro; /* best limit of lasting bids; -1: none */
    int64_t fills_at_micro;   /* price at which the ask would fill now; -1: none */
    /* Half of the slots of the device's instrument that were leased lately cost at most this; -1:
     * none were. */
    int64_t paid_micro;
    uint32_t paid_trades;         /* number of those trades */
    int64_t paid_since_ms;        /* log time of the oldest of them */
    int64_t ahead;                /* asks that a suitable bid would take first; -1: unknown */
    int64_t daily_ms;             /* slot-time that the ask gives a day; 0: no bound */
    int64_t used_ms, promised_ms; /* today's settled time, and time that leases may still use */
    bool partial;                 /* too many bids waited to examine all */
    uint32_t refusal_count;
    struct bourse_why_refusal refusals[BOURSE_PREDICATES_MAX]; /* nearest first */
    struct bourse_standing standing;                           /* standing of this account */
    struct bourse_challenge challenge;                         /* of the device */
    uint64_t index;
};
/* Explains why no work comes to this account's device number `device`, counted from 0. Fails with
 * NOT_FOUND when the account has fewer devices. */
bool bourse_why(struct bourse *bourse, uint32_t device, struct bourse_why *ret_why,
                struct bourse_error *ret_error);

#ifdef __cplusplus
}
#endif

#endif
