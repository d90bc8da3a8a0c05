#include "broker/answer/trade_history.h"

#include "ledger/store/sqlite.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE_ROWS = 1024 };

/* Reads trades that are not too old, newest first; *ret_count is their number. */
static enum ledger_store_status read_trades(struct ledger_reader *reader, int64_t oldest_ns,
                                            struct ledger_trade_row *rows, size_t *ret_count)
{
    size_t count = 0;
    while (count < TRADE_HISTORY_TRADES) {
        size_t got = 0;
        const uint64_t before = count == 0 ? 0 : rows[count - 1].entry;
        enum ledger_store_status status =
            ledger_reader_trades(reader, before, PAGE_ROWS, &rows[count], &got);
        if (status != LEDGER_STORE_OK) {
            return status;
        }
        count += got;
        if (got < PAGE_ROWS || rows[count - 1].log_time_ns < oldest_ns) {
            break;
        }
    }
    while (count > 0 && rows[count - 1].log_time_ns < oldest_ns) {
        count--;
    }
    *ret_count = count;
    return LEDGER_STORE_OK;
}

static bool recall(struct exchange *exchange, const struct ledger_trade_row *rows, size_t count)
{
    bool good = true;
    for (size_t i = count; good && i > 0; i--) {
        const struct ledger_trade_row *row = &rows[i - 1];
        struct exchange_trade trade = {.index = row->log_index,
                                       .entry = row->entry,
                                       .time_ns = row->log_time_ns,
                                       .price_micro = row->price_micro,
                                       .slots = row->slots};
        memcpy(trade.instrument, row->instrument,
               strnlen(row->instrument, sizeof trade.instrument));
        trade.instrument[sizeof trade.instrument - 1] = '\0';
        good = exchange_feed_recall(exchange, &trade);
    }
    return good;
}

bool trade_history_load(const char *database, struct exchange *exchange,
                        struct problem *ret_problem)
{
    struct ledger_trade_row *rows = calloc(TRADE_HISTORY_TRADES, sizeof *rows);
    struct ledger_reader *reader = NULL;
    size_t count = 0;
    uint64_t records = 0;
    bool good = false;
    if (rows == NULL) {
        problem_set(ret_problem, "out of memory");
    } else if (ledger_reader_open(database, &reader) != LEDGER_STORE_OK ||
               ledger_reader_last_entry(reader, &records) != LEDGER_STORE_OK ||
               read_trades(reader, exchange_log_time_ns(exchange) - TRADE_HISTORY_AGE_NS, rows,
                           &count) != LEDGER_STORE_OK) {
        problem_set(ret_problem,
                    "%s: the disk did not give the last trades, or there is no memory for "
                    "them. " PROBLEM_TRY_AGAIN,
                    database);
    } else if (!exchange_feed_open(exchange, records) || !recall(exchange, rows, count)) {
        problem_set(ret_problem, "out of memory");
    } else {
        good = true;
    }
    ledger_reader_close(&reader);
    free(rows);
    return good;
}
