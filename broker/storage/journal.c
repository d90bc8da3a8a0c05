#include "broker/storage/journal.h"

#include <assert.h>
#include <stdlib.h>

struct journal {
    struct journal_engine engine;
    void *self;
};

struct journal *journal_create(const struct journal_engine *engine, void *self)
{
    struct journal *journal = malloc(sizeof *journal);
    if (journal == NULL) {
        engine->destroy(self);
        return NULL;
    }
    *journal = (struct journal){.engine = *engine, .self = self};
    return journal;
}

void journal_destroy(struct journal **self)
{
    struct journal *journal = *self;
    if (journal != NULL) {
        journal->engine.destroy(journal->self);
        free(journal);
        *self = NULL;
    }
}

enum journal_status journal_lead(struct journal *journal, uint64_t last_index,
                                 const struct journal_leader *me, uint64_t *ret_epoch)
{
    return journal->engine.lead(journal->self, last_index, me, ret_epoch);
}

enum journal_status journal_append(struct journal *journal, uint64_t epoch,
                                   const struct journal_entry *entries, size_t count)
{
    assert(count > 0);
    return journal->engine.append(journal->self, epoch, entries, count);
}

enum journal_status journal_next(struct journal *journal, uint64_t index,
                                 struct journal_entry *ret_entry, int timeout_ms)
{
    assert(index > 0);
    return journal->engine.next(journal->self, index, ret_entry, timeout_ms);
}

enum journal_status journal_leader(struct journal *journal, struct journal_leader *ret_leader)
{
    return journal->engine.leader(journal->self, ret_leader);
}

enum journal_status journal_resign(struct journal *journal, uint64_t epoch,
                                   const struct journal_leader *as)
{
    return journal->engine.resign == NULL ? JOURNAL_OK
                                          : journal->engine.resign(journal->self, epoch, as);
}

enum journal_status journal_truncate(struct journal *journal, uint64_t epoch,
                                     const struct journal_base *base)
{
    return journal->engine.truncate == NULL ? JOURNAL_OK
                                            : journal->engine.truncate(journal->self, epoch, base);
}

const char *journal_status_text(enum journal_status status)
{
    switch (status) {
    case JOURNAL_OK:
        return "ok";
    case JOURNAL_UNKNOWN:
        return "the journal did not say whether it took the entry";
    case JOURNAL_DEPOSED:
        return "another broker leads";
    case JOURNAL_BEHIND:
        return "the journal is ahead of this broker";
    case JOURNAL_FULL:
        return "the journal has no room left";
    case JOURNAL_TOO_LARGE:
        return "the entry is larger than the journal takes";
    case JOURNAL_UNAVAILABLE:
        return "the journal cannot be reached, or is not that far";
    case JOURNAL_CORRUPT:
        return "the journal is damaged, or the entry does not follow its last one";
    }
    return "unknown";
}
