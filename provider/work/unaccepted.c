#include "provider/work/unaccepted.h"

void unaccepted_init(struct unaccepted *self)
{
    *self = (struct unaccepted){.count = 0};
    list_init(&self->outcomes);
}

static struct outcome *oldest(const struct unaccepted *unaccepted)
{
    return LIST_ELEMENT(unaccepted->outcomes.next, struct outcome, link);
}

static void take(struct unaccepted *unaccepted, struct outcome *outcome)
{
    const struct outcome_size size = outcome_measure(outcome);
    list_remove(&outcome->link);
    unaccepted->count--;
    unaccepted->size.files -= size.files;
    unaccepted->size.file_bytes -= size.file_bytes;
    unaccepted->size.memory_bytes -= size.memory_bytes;
}

void unaccepted_fini(struct unaccepted *self)
{
    while (self->count > 0) {
        struct outcome *outcome = oldest(self);
        take(self, outcome);
        outcome_destroy(&outcome);
    }
}

static bool is_over(const struct outcome_size *size)
{
    return size->memory_bytes > UNACCEPTED_MEMORY_BYTES || size->files > UNACCEPTED_FILES ||
           size->file_bytes > UNACCEPTED_FILE_BYTES;
}

void unaccepted_add(struct unaccepted *unaccepted, struct outcome *outcome)
{
    const struct outcome_size size = outcome_measure(outcome);
    list_append(&unaccepted->outcomes, &outcome->link);
    unaccepted->count++;
    unaccepted->size.files += size.files;
    unaccepted->size.file_bytes += size.file_bytes;
    unaccepted->size.memory_bytes += size.memory_bytes;
    while (unaccepted->count > 1 && is_over(&unaccepted->size)) {
        struct outcome *first = oldest(unaccepted);
        take(unaccepted, first);
        outcome_destroy(&first);
    }
}

static bool is_of(const struct outcome *outcome, const struct agent_work *work)
{
    return outcome->work.lease == work->lease && outcome->work.index == work->index &&
           outcome->work.attempt == work->attempt;
}

struct outcome *unaccepted_take(struct unaccepted *unaccepted, const struct agent_work *work)
{
    for (struct list_link *link = unaccepted->outcomes.next; link != &unaccepted->outcomes;
         link = link->next) {
        struct outcome *outcome = LIST_ELEMENT(link, struct outcome, link);
        if (is_of(outcome, work)) {
            take(unaccepted, outcome);
            return outcome;
        }
    }
    return NULL;
}
