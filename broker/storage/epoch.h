/* An epoch is the time in which one secret makes the dice of results.
 *
 * The provider must not know which entries a referee checks before it signs its result, and the
 * broker must not choose them afterwards. So the broker draws a secret for the first results after
 * each start, and every day of log time. The journal gets the SHA-256 of the secret
 * (EXCHANGE_EPOCH). Each batch of results gets the dice HMAC-SHA-256(secret, u64 little-endian
 * index of its command). The command that begins the next epoch shows the secret. From then on
 * everybody can recompute all dice (docs/ledger.md section 7).
 *
 * The secret is durable before its commitment can be. A crash between the two leaves a file with
 * one secret too many. A lost secret only means that nobody can recompute the dice of its epoch.
 * The caller has the clock, log time and the file (`keep`). */
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
    struct hash32 now; /* secret of the present epoch; zeros: unknown */
    /* Secret of the next epoch, which may have begun already: the journal knows. */
    struct hash32 next;
};
/* Makes the secrets durable. Returns false when that fails (a full disk); then nothing has
 * changed. */
typedef bool epoch_keep(void *context, const struct epoch_secrets *secrets);

struct epoch {
    struct epoch_secrets secrets; /* the secrets that were kept last */
    int64_t length_ns, ends_ns;   /* log time */
    bool has_begun;               /* there are dice since the broker started */
    epoch_keep *keep;
    void *context;
};

/* Starts the epochs of a broker that knows `secrets` and whose exchange holds `epochs` epochs. None
 * has begun yet; the present one, if any, ends within `length_ns`. */
void epoch_start(struct epoch *epoch, uint64_t epochs, int64_t log_ns);
/* Draws the secret of the next epoch and keeps it. `commitment` is the present one of the exchange:
 * the kept secret that fits it is shown, or zeros. Returns false when the new secret could not be
 * kept; then the present epoch goes on. */
bool epoch_prepare(struct epoch *epoch, const struct hash32 *commitment,
                   struct exchange_epoch *ret_command);
/* Begins the epoch once the exchange has applied the command: the new secret makes the dice. */
void epoch_begin(struct epoch *epoch, int64_t log_ns);
/* Sets the time of the next try after epoch_prepare failed. */
void epoch_put_off(struct epoch *epoch, int64_t log_ns);
/* Returns the dice for the results of command `index`. The caller calls epoch_begin before. */
struct hash32 epoch_dice(const struct epoch *epoch, uint64_t index);

/* Reads the secrets from the broker's folder (MARKET_EPOCH, mode 0600). A missing file gives no
 * secrets. A file that cannot be read, or has other content, is a problem. */
enum epoch_file { EPOCH_LOADED, EPOCH_SPOILT, EPOCH_UNREAD };
enum epoch_file epoch_load(const char *path, struct epoch_secrets *ret_secrets,
                           struct problem *ret_problem);
bool epoch_store(const char *path, const struct epoch_secrets *secrets,
                 struct problem *ret_problem);

#endif
