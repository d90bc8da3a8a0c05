/* The journal on etcd is cut here, once brokers have the old entries in their folders. */
#include "broker/storage/etcd/replicated.h"

#include "base/sha256.h"
#include "broker/fatal.h"

void replicated_trim(struct storage *store, size_t length)
{
    struct journal_base base = {.index = 0};
    struct journal_entry entry;
    if (!trim_step(&store->trim, store->last.index, length, &base.index)) {
        return;
    }
    if (journal_next(store->journal, base.index, &entry, 0) != JOURNAL_OK) {
        return; /* the next entry tries again */
    }
    base.chain = sha256_of(entry.bytes, entry.length);
    const enum journal_status status = journal_truncate(store->replicated, store->epoch, &base);
    if (status == JOURNAL_OK) {
        trim_done(&store->trim, base.index);
    } else if (status == JOURNAL_CORRUPT) {
        fatal("the base of the journal on etcd was moved by somebody else; stopped");
    }
    /* A deposed broker learns that from its next entry; an etcd that is away is tried again. */
}
