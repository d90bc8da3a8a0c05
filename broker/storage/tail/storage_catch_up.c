/* A start applies here what a killed broker had made durable in the journal's tail alone. The audit
 * log lacks nothing: privileged commands never go through the tail. */
#include "broker/storage/storage_internal.h"

#include "broker/storage/replay.h"
#include "runtime/log.h"
#include "runtime/market.h"

#include <inttypes.h>

/* The records of an entry are appended while it is replayed. */
struct catching_up {
    struct storage *store;
    enum ledger_store_status status; /* of the first append that failed */
};

static bool take_effects(void *context, const struct translation *said,
                         const struct exchange_effects *effects)
{
    struct catching_up *self = context;
    for (size_t i = 0; self->status == LEDGER_STORE_OK && i < effects->count; i++) {
        const struct exchange_effect *effect = &effects->items[i];
        if (effect->type == EFFECT_LEDGER) {
            self->status = storage_append_record(self->store, said, &effect->ledger);
        }
    }
    return self->status == LEDGER_STORE_OK;
}

static enum ledger_store_status apply(struct storage *store, struct exchange *exchange,
                                      const struct tail_entry *entry, struct problem *ret_problem)
{
    struct catching_up self = {.store = store, .status = LEDGER_STORE_OK};
    const uint64_t size_before = ledger_store_tree(store->ledger)->size;
    enum ledger_store_status status = ledger_store_begin_lazily(store->ledger);
    if (status == LEDGER_STORE_OK) {
        status = storage_append_row(store, entry->end.index, entry->bytes, entry->length);
    }
    if (status == LEDGER_STORE_OK) {
        const enum replay_status replayed =
            replay_entry(exchange, entry->bytes, entry->length, take_effects, &self, ret_problem);
        status = replayed == REPLAY_OK            ? LEDGER_STORE_OK
                 : self.status != LEDGER_STORE_OK ? self.status
                                                  : LEDGER_STORE_CORRUPT;
    }
    if (status == LEDGER_STORE_OK) {
        status = storage_sign_tree(store, size_before);
    }
    if (status == LEDGER_STORE_OK) {
        status = ledger_store_commit(store->ledger);
    }
    return status;
}

/* A problem of the replay itself is already set. */
static bool refuse(struct storage *store, const struct tail_entry *entry,
                   enum ledger_store_status status, struct problem *ret_problem)
{
    ledger_store_rollback(store->ledger);
    store->is_full = status == LEDGER_STORE_FULL;
    if (ret_problem->text[0] == '\0') {
        problem_set(ret_problem,
                    "entry %" PRIu64 " of the journal's tail cannot be written to %s: %s: %s",
                    entry->end.index, MARKET_DATABASE, storage_ledger_text(status),
                    storage_why_failed(store));
    }
    return false;
}

bool storage_catch_up(struct storage *store, struct exchange *exchange, struct problem *ret_problem)
{
    struct tail *tail = &store->tail;
    size_t done = 0;
    for (; done < tail->count && tail->entries[done].end.index <= store->table.index; done++) {
    }
    const size_t before = done;
    for (; done < tail->count; done++) {
        const struct tail_entry *entry = &tail->entries[done];
        ret_problem->text[0] = '\0';
        const enum ledger_store_status status = apply(store, exchange, entry, ret_problem);
        if (status != LEDGER_STORE_OK) {
            return refuse(store, entry, status, ret_problem);
        }
        store->last = entry->end;
        store->table = entry->end;
    }
    if (done > before) {
        /* The tail may be written to again only when the disk has all of it in the tables. */
        const enum ledger_store_status status = ledger_store_sync(store->ledger);
        if (status != LEDGER_STORE_OK) {
            return refuse(store, &tail->entries[done - 1], status, ret_problem);
        }
        storage_tables_reach(store, &store->last);
        watermark_raise(&store->durable, store->last.index);
    }
    if (done > before) {
        log_info("applied %zu entries of the journal's tail to %s, up to entry %" PRIu64,
                 done - before, MARKET_DATABASE, store->last.index);
    }
    tail_fini(tail);
    return true;
}
