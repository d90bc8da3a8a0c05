#include "broker/blob/blob_recover.h"

#include "broker/core/release.h"
#include "ledger/store/sqlite.h"
#include "protocol/codec.h"
#include "protocol/message.h"
#include "protocol/results.h"

#include <stdlib.h>

enum { PAGE_ROWS = 256, PAGE_BYTES = 8 << 20 };

struct recovery {
    struct blob_store *store;
    struct ledger_reader *reader;
    struct ledger_outcome_row rows[PAGE_ROWS];
    enum blob_status status;
};

static bool name(struct recovery *recovery, const struct blob_holder *holder, const uint8_t *result,
                 size_t length, unsigned which)
{
    struct hash32 hashes[RESULTS_BLOBS_MAX];
    const size_t count = results_blobs(result, length, which, hashes);
    for (size_t i = 0; i < count && recovery->status == BLOB_OK; i++) {
        recovery->status = blob_store_name(recovery->store, holder, &hashes[i]);
    }
    return recovery->status == BLOB_OK;
}

static bool name_row(struct recovery *recovery, const struct blob_holder *holder,
                     const struct ledger_outcome_row *row)
{
    Bourse__V1__Result *result = NULL;
    if (codec_decode_result(row->result, row->result_length, &result, NULL) != CODEC_OK) {
        return true; /* a result that cannot be decoded names no blobs */
    }
    const unsigned which = release_names(row->status == ATTEMPT_ACCEPTED, result->outcome);
    codec_result_free(&result);
    return name(recovery, holder, row->result, row->result_length, which);
}

/* Names the blobs of one page of a job's results, and frees the results. */
static bool name_page(struct recovery *recovery, const struct blob_holder *holder, size_t count)
{
    bool good = true;
    for (size_t i = 0; i < count; i++) {
        good = good && name_row(recovery, holder, &recovery->rows[i]);
        free(recovery->rows[i].result);
    }
    return good;
}

static bool name_decided(struct recovery *recovery, const struct blob_holder *holder)
{
    uint32_t from = 0;
    size_t count;
    do {
        count = 0;
        if (ledger_reader_outcomes(recovery->reader, &holder->job, from, PAGE_ROWS, PAGE_BYTES,
                                   recovery->rows, &count) != LEDGER_STORE_OK) {
            return false;
        }
        from = count == 0 ? from : recovery->rows[count - 1].index + 1;
        if (!name_page(recovery, holder, count)) {
            return false;
        }
    } while (count > 0);
    return true;
}

static bool name_others(struct recovery *recovery, const struct blob_holder *holder)
{
    uint64_t from = 0;
    size_t count;
    do {
        count = 0;
        if (ledger_reader_others(recovery->reader, &holder->job, from, PAGE_ROWS, PAGE_BYTES,
                                 recovery->rows, &count) != LEDGER_STORE_OK) {
            return false;
        }
        from = count == 0 ? from : recovery->rows[count - 1].entry + 1;
        if (!name_page(recovery, holder, count)) {
            return false;
        }
    } while (count > 0);
    return true;
}

static bool name_held(void *context, uint32_t provider, const struct id128 *job,
                      const uint8_t *result, uint32_t length)
{
    const struct blob_holder holder = {.provider = provider, .job = *job};
    return name(context, &holder, result, length, RESULTS_STREAMS | RESULTS_OUTPUTS);
}

static bool name_all(struct recovery *recovery, const struct exchange *exchange)
{
    /* The walk begins at the end, because the last holding takes the place of an emptied one. */
    for (size_t i = blob_store_holdings(recovery->store); i-- > 0;) {
        const struct blob_holder holder = blob_store_holding(recovery->store, i).holder;
        if (!name_decided(recovery, &holder) || !name_others(recovery, &holder)) {
            return false;
        }
    }
    return exchange_each_held(exchange, name_held, recovery);
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
