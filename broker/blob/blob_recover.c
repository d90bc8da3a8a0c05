#include "broker/blob/blob_recover.h"

#include "broker/blob/keeper/job_blobs.h"
#include "ledger/store/sqlite.h"
#include "protocol/results.h"

#include <stdlib.h>

struct recovery {
    struct blob_store *store;
    struct ledger_reader *reader;
    struct blob_holder holder; /* whose results are named */
    enum blob_status status;
};

static bool name(void *context, const struct hash32 *hashes, size_t count)
{
    struct recovery *recovery = context;
    for (size_t i = 0; i < count && recovery->status == BLOB_OK; i++) {
        recovery->status = blob_store_name(recovery->store, &recovery->holder, &hashes[i]);
    }
    return recovery->status == BLOB_OK;
}

static bool name_held(void *context, uint32_t provider, const struct id128 *job,
                      const uint8_t *result, uint32_t length)
{
    struct recovery *recovery = context;
    struct hash32 hashes[RESULTS_BLOBS_MAX];
    const size_t count = results_blobs(result, length, RESULTS_STREAMS | RESULTS_OUTPUTS, hashes);
    recovery->holder = (struct blob_holder){.provider = provider, .job = *job};
    return name(recovery, hashes, count);
}

static bool name_all(struct recovery *recovery, const struct exchange *exchange)
{
    /* The walk begins at the end, because the last holding takes the place of an emptied one. */
    for (size_t i = blob_store_holdings(recovery->store); i-- > 0;) {
        recovery->holder = blob_store_holding(recovery->store, i).holder;
        if (!job_blobs_of_results(recovery->reader, &recovery->holder.job, name, recovery)) {
            return false;
        }
    }
    return exchange == NULL || exchange_each_held(exchange, name_held, recovery);
}

bool blob_recover(struct blob_store *store, const char *database, const struct exchange *exchange,
                  struct problem *ret_problem)
{
    if (blob_store_holdings(store) == 0) {
        return true;
    }
    struct recovery *recovery = calloc(1, sizeof *recovery);
    bool good = false;
    if (recovery == NULL) {
        problem_set(ret_problem, "out of memory");
        return false;
    }
    recovery->store = store;
    recovery->status = BLOB_OK;
    if (ledger_reader_open(database, &recovery->reader) != LEDGER_STORE_OK) {
        problem_set(ret_problem, "%s: the results cannot be read", database);
    } else if (blob_store_begin(store) != BLOB_OK) {
        problem_set(ret_problem, "blobs.db cannot be written: %s", blob_store_error(store));
    } else {
        const bool is_named = name_all(recovery, exchange);
        const enum blob_status status = blob_store_commit(store);
        good = is_named && status == BLOB_OK;
        if (!good) {
            problem_set(ret_problem, "what results have named cannot be written down: %s",
                        status == BLOB_OK && recovery->status == BLOB_OK ? "they cannot be read"
                                                                         : blob_store_error(store));
        }
    }
    ledger_reader_close(&recovery->reader);
    free(recovery);
    return good;
}
