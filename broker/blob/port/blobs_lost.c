/* Lost and damaged blobs are found here, and who may send them again. */
#include "broker/blob/port/blobs_internal.h"

#include "broker/blob/blob_check.h"
#include "broker/core/outgoing.h"
#include "runtime/clock.h"
#include "runtime/log.h"

static const int64_t UNREAD_QUIET_NS = 60 * NS_PER_S;

/* Returns the place of the blob in the list, or else the place that is over first. */
static struct unread *unread_of(struct blobs *blobs, const struct hash32 *hash)
{
    struct unread *first = &blobs->unread[0];
    for (size_t i = 0; i < UNREAD_TOLD; i++) {
        struct unread *told = &blobs->unread[i];
        if (hash32_equal(&told->hash, hash)) {
            return told;
        }
        first = told->until_ns < first->until_ns ? told : first;
    }
    return first;
}

void blobs_log_unread(struct blobs *blobs, const struct hash32 *hash)
{
    struct unread *told = unread_of(blobs, hash);
    int64_t now_ns = clock_monotonic_ns();
    blobs->has_unread = true;
    if (now_ns >= told->until_ns || !hash32_equal(&told->hash, hash)) {
        *told = (struct unread){.hash = *hash, .until_ns = now_ns + UNREAD_QUIET_NS};
        log_error("a blob could not be read: %s", blob_store_error(blobs->config.store));
    }
}

/* Returns the place of the account, or else the place that is over first. */
static struct keeper *keeper_of(struct blobs *blobs, uint32_t account)
{
    struct keeper *first = &blobs->keepers[0];
    for (size_t i = 0; i < BLOBS_KEEPERS_MAX; i++) {
        struct keeper *keeper = &blobs->keepers[i];
        if (keeper->account == account && keeper->until_ns > 0) {
            return keeper;
        }
        first = keeper->until_ns < first->until_ns ? keeper : first;
    }
    return first;
}

/* Returns the place of the provider and job, or else the place that is over first. */
static struct lender *lender_of(struct blobs *blobs, uint32_t provider, const struct id128 *job)
{
    struct lender *first = &blobs->lenders[0];
    for (size_t i = 0; i < BLOBS_KEEPERS_MAX; i++) {
        struct lender *lender = &blobs->lenders[i];
        if (lender->provider == provider && lender->until_ns > 0 &&
            id128_equal(&lender->job, job)) {
            return lender;
        }
        first = lender->until_ns < first->until_ns ? lender : first;
    }
    return first;
}

/* Returns true when the sender may read the blob of a job that it serves. */
static bool is_of_job(const struct blobs *blobs, uint32_t provider,
                      const struct blob_access_job *served, const struct hash32 *hash)
{
    return blob_access_job_names(served, hash) ||
           blob_access_gave(blobs->config.access, provider, served, hash);
}

/* Returns true when another provider serves a job with this blob, and asked lately. */
static bool has_lender(struct blobs *blobs, uint32_t sender, const struct hash32 *hash,
                       int64_t now_ns)
{
    for (size_t i = 0; i < BLOBS_KEEPERS_MAX; i++) {
        const struct lender *lender = &blobs->lenders[i];
        if (lender->until_ns <= now_ns || lender->provider == sender) {
            continue;
        }
        const struct blob_access_job *served =
            blob_access_find(blobs->config.access, lender->provider, &lender->job, now_ns);
        if (served != NULL && is_of_job(blobs, lender->provider, served, hash)) {
            return true;
        }
    }
    return false;
}

/* Returns true when somebody else has just heard of the loss and may send the blob again: a client
 * of the owner, or a provider. */
static bool may_come_back(struct blobs *blobs, uint32_t owner, uint32_t sender,
                          const struct hash32 *hash)
{
    const int64_t now_ns = clock_monotonic_ns();
    const struct keeper *keeper = keeper_of(blobs, owner);
    const int64_t since_ns = unread_of(blobs, hash)->until_ns - UNREAD_QUIET_NS;
    return now_ns - since_ns < BLOBS_KEEPER_TIME_S * NS_PER_S &&
           ((keeper->account == owner && keeper->until_ns > now_ns) ||
            has_lender(blobs, sender, hash, now_ns));
}

void blobs_refuse_unread(struct blobs *blobs, const struct asked *asked, enum blob_status status,
                         uint32_t owner, const struct hash32 *hash)
{
    blobs_log_unread(blobs, hash);
    blobs_end_batch(blobs); /* the loss is durable before a result may speak of it (outputs.h) */
    outputs_ungiven(blobs->config.outputs, hash);
    const bool is_gone = status == BLOB_LOST && !blobs_copies_may_bring(blobs, asked, hash, true) &&
                         !may_come_back(blobs, owner, asked->account->number, hash);
    const enum reject_code code = is_gone ? REJECT_NOT_FOUND : REJECT_UNAVAILABLE;
    blobs_refuse(blobs, asked, code, is_gone ? "hash" : "", 0, 0);
}

bool blobs_check_file(struct blobs *blobs, const struct hash32 *hash)
{
    int fd;
    bool is_hashed;
    if (!blob_checks_has_room(blobs->checks, hash)) {
        return true;
    }
    enum blob_status status = blob_store_file(blobs->config.store, hash, &fd, &is_hashed);
    if (status != BLOB_OK && status != BLOB_UNCHECKED) {
        return false; /* the get that comes next says why */
    }
    blob_checks_begin(blobs->checks, hash, fd);
    return true;
}

bool blobs_recheck(struct blobs *blobs, const struct hash32 *hash)
{
    uint64_t size = 0;
    size_t length = 0;
    if (blob_checks_knows(blobs->checks, hash, clock_monotonic_ns()) ||
        blob_store_get(blobs->config.store, hash, 0, 0, NULL, &length, &size) != BLOB_OK ||
        size <= BLOB_ROW_BYTES) { /* which are hashed whenever they are read */
        return false;
    }
    blobs->steps += size / BLOBS_BYTES_PER_STEP;
    return blobs_check_file(blobs, hash);
}

void blobs_end_checks(struct blobs *blobs)
{
    struct blob_store *store = blobs->config.store;
    struct hash32 hash;
    enum blob_check_result result;
    while (blob_checks_take_ended(blobs->checks, clock_monotonic_ns(), &hash, &result)) {
        if (result != BLOB_CHECK_UNREAD &&
            blob_store_checked(store, &hash, result == BLOB_CHECK_RIGHT) != BLOB_OK) {
            blobs_log_unread(blobs, &hash);
        }
    }
}

void blobs_tell_lost(struct blobs *blobs, const struct asked *asked, uint32_t owner,
                     struct blob_access_job *served)
{
    const uint32_t sender = asked->account->number;
    const int64_t now_ns = clock_monotonic_ns();
    const int64_t until_ns = now_ns + BLOBS_KEEPER_S * NS_PER_S;
    struct blob_store *store = blobs->config.store;
    Bourse__V1__BlobMissing answer = BOURSE__V1__BLOB_MISSING__INIT;
    ProtobufCBinaryData lost[UNREAD_TOLD];
    if (served == NULL) {
        *keeper_of(blobs, owner) = (struct keeper){.account = owner, .until_ns = until_ns};
    } else {
        *lender_of(blobs, sender, &served->job) =
            (struct lender){.provider = sender, .job = served->job, .until_ns = until_ns};
    }
    for (size_t i = 0; i < UNREAD_TOLD; i++) {
        struct unread *told = &blobs->unread[i];
        if (told->until_ns > now_ns &&
            (served == NULL || is_of_job(blobs, sender, served, &told->hash)) &&
            blob_store_owns(store, owner, &told->hash) == BLOB_OK &&
            blob_store_has(store, owner, NULL, &told->hash) != BLOB_OK) {
            lost[answer.n_hashes++] =
                (ProtobufCBinaryData){sizeof told->hash.bytes, told->hash.bytes};
        }
    }
    answer.hashes = lost;
    blobs_reply(blobs, asked, outgoing_message(OUTGOING_REPLY, MESSAGE_BLOB_MISSING, &answer.base));
}
