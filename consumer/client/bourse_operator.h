/* consumer/client/bourse_operator.h redeems invitations, and has the acts of an operator.
 * Include consumer/client/bourse.h, which states the rules that all of its parts share. */
#ifndef BOURSE_CONSUMER_CLIENT_BOURSE_OPERATOR_H
#define BOURSE_CONSUMER_CLIENT_BOURSE_OPERATOR_H

#include "consumer/client/bourse_market.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Redeems an invitation with the key at `options->key`, which is made when absent, and writes
 * `options->market`. All local files are written before the broker is asked. After any failure the
 * same invitation and key may ask again. An existing account is a success (`was_known`). `name`
 * may be NULL. */
bool bourse_join(const char *invitation, const struct bourse_options *options, const char *name,
                 struct bourse_account *ret_account, struct bourse_error *ret_error);

bool bourse_mint(struct bourse *bourse, const char *account, int64_t amount_micro, const char *note,
                 struct bourse_error *ret_error);
/* Makes an invitation that mints `credits_micro` for the account that redeems it within
 * `valid_ms`. */
bool bourse_invite(struct bourse *bourse, unsigned roles, int64_t credits_micro, int64_t valid_ms,
                   const char *name, char *ret_text, size_t capacity,
                   struct bourse_error *ret_error);
bool bourse_freeze(struct bourse *bourse, const char *account, bool frozen, const char *reason,
                   struct bourse_error *ret_error);
bool bourse_halt(struct bourse *bourse, bool halted, const char *reason,
                 struct bourse_error *ret_error);
/* Sets new bands from now on; -1 keeps one. At least one must change. */
bool bourse_set_bands(struct bourse *bourse, const struct bourse_bands *bands, const char *reason,
                      struct bourse_error *ret_error);

/* Names the owner of accounts, given by key; with `owner` NULL or "" each owns itself. */
bool bourse_set_owner(struct bourse *bourse, const char *const *accounts, size_t count,
                      const char *owner, const char *reason, struct bourse_error *ret_error);

struct bourse_account_row {
    uint32_t number;
    char account[BOURSE_HEX32_SIZE];
    char name[BOURSE_NAME_SIZE];
    unsigned roles;
    int64_t available_micro, held_micro;
    bool frozen;
    char owner[BOURSE_NAME_SIZE]; /* as the operator named it; "": the account itself */
};
typedef bool bourse_account_visitor(void *context, const struct bourse_account_row *row);
bool bourse_accounts(struct bourse *bourse, bourse_account_visitor *visitor, void *context,
                     bool *ret_halted, struct bourse_error *ret_error);

#ifdef __cplusplus
}
#endif

#endif
