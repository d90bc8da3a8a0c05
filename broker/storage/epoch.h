/* broker/storage/epoch.h - the secrets that dice are made of.
 *
 * Which entries a referee looks at must not be known to whoever computed them before their result
 * was signed, nor chosen by the broker after it. So the broker draws a secret for the first results
 * after each start, and every day of log time, puts SHA-256 of it into the journal
 * (EXCHANGE_EPOCH), and gives every batch of results the dice HMAC-SHA-256(secret, u64
 * little-endian index of its command). The command that begins the next epoch shows the secret, and
 * from then on everybody can recompute all dice (docs/ledger.md section 7).
 *
 * The secret is durable before its commitment can be: a crash between the two leaves a file with
 * one secret too many, and one that was lost costs only that the dice of its epoch can never be
 * recomputed. Clock and log time are the caller's, the file too (`keep`). */
#ifndef BOURSE_BROKER_STORAGE_EPOCH_H
#define BOURSE_BROKER_STORAGE_EPOCH_H

#include "base/checked.h"
#include "base/id.h"
#include "base/problem.h"
#include "exchange/exchange.h"

#include <stdbool.h>
#include <stdint.h>

#define EPOCH_LENGTH_NS (24 * 60 * 60 * NS_PER_S)

struct epoch_secrets {
    struct hash32 now;  /* of the epoch that stands; zeros: not known */
    struct hash32 next; /* of the one that is to follow, or follows already: the journal knows */
};
/* Makes them durable; false when that was not possible (a full disk), and then nothing has
 * changed. */
typedef bool epoch_keep(void *context, const struct epoch_secrets *secrets);

struct epoch {
    struct epoch_secrets secrets; /* what was last kept */
    int64_t length_ns, ends_ns;   /* log time */
    bool has_begun;               /* since the broker started: there are dice */
    epoch_keep *keep;
    void *context;
};

/* At the start of a broker, which knows `secrets` and whose exchange holds that many epochs: none
 * has begun, and the one that stands, if any, ends within `length_ns`. */
void epoch_start(struct epoch *epoch, uint64_t epochs, int64_t log_ns);
/* Draws the secret of the next epoch and keeps it. `commitment` is the one that stands in the
 * exchange: which of the kept secrets fits it is shown, or zeros. False: it could not be kept, and
 * the epoch that stands goes on. */
bool epoch_prepare(struct epoch *epoch, const struct hash32 *commitment,
                   struct exchange_epoch *ret_command);
/* The exchange has applied the command: dice are made of the new secret. */
void epoch_begin(struct epoch *epoch, int64_t log_ns);
/* Try again then, after epoch_prepare failed. */
void epoch_put_off(struct epoch *epoch, int64_t log_ns);
/* Dice for the results that command `index` brings. Only after epoch_begin. */
struct hash32 epoch_dice(const struct epoch *epoch, uint64_t index);

/* The file of the broker's folder (MARKET_EPOCH, mode 0600). One that is not there knows no secret;
 * one that cannot be read, or says something else, is a problem. */
enum epoch_file { EPOCH_LOADED, EPOCH_SPOILT, EPOCH_UNREAD };
enum epoch_file epoch_load(const char *path, struct epoch_secrets *ret_secrets,
                           struct problem *ret_problem);
bool epoch_store(const char *path, const struct epoch_secrets *secrets,
                 struct problem *ret_problem);

#endif
