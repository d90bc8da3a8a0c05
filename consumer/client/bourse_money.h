/* consumer/client/bourse_money.h tells of balances, and verifies receipts and checkpoints.
 * Include consumer/client/bourse.h, which states the rules that all of its parts share. */
#ifndef BOURSE_CONSUMER_CLIENT_BOURSE_MONEY_H
#define BOURSE_CONSUMER_CLIENT_BOURSE_MONEY_H

#include "consumer/client/bourse_connection.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bourse_balance {
    char account[BOURSE_HEX32_SIZE];
    char name[BOURSE_NAME_SIZE];
    int64_t available_micro, held_micro;
    uint64_t index;
    bool halted,
        frozen; /* the market, the account; false: perhaps the broker is of an earlier version */
    char halted_why[BOURSE_TEXT_SIZE]; /* the operator's reasons; "": none was given */
    char frozen_why[BOURSE_TEXT_SIZE];
};
bool bourse_balance(struct bourse *bourse, struct bourse_balance *ret_balance,
                    struct bourse_error *ret_error);

struct bourse_donated {
    int64_t used_ns;     /* donated slot-time received; halves in seven days */
    int64_t promised_ns; /* what its leases at price 0 may still use */
    uint32_t waiting;    /* accounts whose bids wait for slots */
    /* Rank for donated slots among these accounts, from 1; 0: no bid of this account waits. */
    uint32_t place;
    int64_t given_ns; /* slot-time that its own devices donated so far */
};
/* Returns the donated slot-time that the account received and gave. */
bool bourse_donated(struct bourse *bourse, struct bourse_donated *ret_donated,
                    struct bourse_error *ret_error);

struct bourse_entry {
    uint64_t entry, log_index;
    int64_t time_ms;
    int kind;
    const char *kind_text;
    int64_t amount_micro;     /* effect on the available amount */
    int64_t held_micro;       /* effect on the held amount */
    char job[BOURSE_ID_SIZE]; /* "" when the entry names none */
    char counterparty[BOURSE_NAME_SIZE];
    bool has_subtask;
    uint32_t subtask;
    char device[BOURSE_ID_SIZE]; /* the lease's device; "" when the entry names none */
    int64_t fee_micro;           /* a capture's: the market's fee */
    int64_t given_ns;            /* a result's: slot-time taken at price 0 */
    bool failed;                 /* a result's: it was not accepted */
};
/* Visits the account's ledger entries, newest first, at most `limit` (0: all). */
typedef bool bourse_entry_visitor(void *context, const struct bourse_entry *entry);
bool bourse_statement(struct bourse *bourse, uint64_t limit, bourse_entry_visitor *visitor,
                      void *context, struct bourse_error *ret_error);

/* Visits the results that this account provided, newest first, without amounts. Accepted results
 * are there because pay below a micro-credit has no statement entry. Failed results are there when
 * they took time at price 0. */
bool bourse_provided(struct bourse *bourse, bourse_entry_visitor *visitor, void *context,
                     struct bourse_error *ret_error);

/* Returns the receipt of one accepted result as text; the caller frees the text with bourse_free.
 * The log key of the market verifies the receipt first. Fails with BOURSE_UNVERIFIED, and without
 * text, when the receipt proves nothing. */
bool bourse_receipt(struct bourse *bourse, const char *id, uint32_t index, char **ret_text,
                    size_t *ret_length, struct bourse_error *ret_error);
/* Visits the receipts of `count` subtasks of a job, each verified as by bourse_receipt. `indices`
 * is ascending, and the visits are in the order of the log. `text` lives as long as the visit.
 * Fails when one of them has no receipt; what was visited before is valid. A visitor that returns
 * false ends the visits, and the call succeeds. */
typedef bool bourse_receipt_visitor(void *context, uint32_t index, const char *text, size_t length);
bool bourse_receipts(struct bourse *bourse, const char *id, const uint32_t *indices, size_t count,
                     bourse_receipt_visitor *visitor, void *context,
                     struct bourse_error *ret_error);
/* Returns the newest checkpoint of the log as text; the caller frees the text with bourse_free. The
 * log key of the market verifies the checkpoint first, as with a receipt. */
bool bourse_checkpoint(struct bourse *bourse, char **ret_text, uint64_t *ret_tree_size,
                       struct bourse_error *ret_error);
void bourse_free(void *memory);

struct bourse_verified {
    char cluster[BOURSE_ID_SIZE];
    char job[BOURSE_ID_SIZE];
    uint32_t index, attempt;
    char provider[BOURSE_HEX32_SIZE];
    char consumer[BOURSE_HEX32_SIZE];
    char manifest[BOURSE_HEX32_SIZE];
    char result[BOURSE_HEX32_SIZE]; /* SHA-256 of the signed result */
    const char *outcome_text;
    int64_t price_micro, paid_ns, charge_micro;
    uint64_t leaf, tree_size;
    char origin[BOURSE_NAME_SIZE];
    bool simulated;
    int status; /* the broker's verdict, as in struct bourse_outcome */
    const char *status_text;
    const char *checked; /* how a referee checked the result: "none", "cheap" */
    /* The energy that the provider signed, and where it comes from; -1: none. The text is NULL when
     * the result does not say. */
    int64_t energy_uj;
    const char *energy_source_text;
    char check[BOURSE_HEX32_SIZE]; /* SHA-256 of the referee's signed Result, or "" */
    int isolation;                 /* as in struct bourse_outcome */
};
/* Verifies a receipt offline, with nothing but the log's verifier key (bourse_account.verifier).
 * Fails with UNVERIFIED when any byte differs from the signed text. */
bool bourse_verify(const char *text, size_t length, const char *verifier,
                   struct bourse_verified *ret_verified, struct bourse_error *ret_error);

#ifdef __cplusplus
}
#endif

#endif
