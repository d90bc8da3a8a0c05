#include "broker/storage/tail/journal_tail.h"

#include "base/cursor.h"
#include "base/sha256.h"
#include "broker/storage/entry.h"
#include "broker/storage/tail/tail.h"
#include "runtime/files.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct file {
    int descriptor;
    uint64_t last; /* newest entry of its run; 0: none since the start */
};

struct engine {
    struct journal *rows;     /* borrowed */
    struct watermark *synced; /* borrowed */
    size_t turn_bytes;
    struct file files[TAIL_FILES];
    unsigned current;  /* the file that is written to */
    uint64_t position; /* end of its run */
    uint64_t next;     /* index of the entry that follows its run; 0: any */
    uint8_t *record;   /* a record being written */
};

static enum journal_status engine_lead(void *self, uint64_t last_index,
                                       const struct journal_leader *me, uint64_t *ret_epoch)
{
    const struct engine *engine = self;
    return journal_lead(engine->rows, last_index, me, ret_epoch);
}

static enum journal_status engine_next(void *self, uint64_t index, struct journal_entry *ret_entry,
                                       int timeout_ms)
{
    const struct engine *engine = self;
    return journal_next(engine->rows, index, ret_entry, timeout_ms);
}

static enum journal_status engine_leader(void *self, struct journal_leader *ret_leader)
{
    const struct engine *engine = self;
    return journal_leader(engine->rows, ret_leader);
}

static bool is_synced(const struct engine *engine, const struct file *file)
{
    return watermark_value(engine->synced) >= file->last;
}

/* Begins a new run in the other file, once the disk has in the tables the run that is there. */
static void turn(struct engine *engine)
{
    engine->current = (engine->current + 1) % TAIL_FILES;
    watermark_wait(engine->synced, engine->files[engine->current].last);
    engine->position = 0;
}

/* Chooses the place of an entry. A run without a gap goes on where it is, until the file is long
 * enough. A file is never used again before the disk has its run in the tables. */
static void find_place(struct engine *engine, uint64_t index)
{
    const struct file *other = &engine->files[(engine->current + 1) % TAIL_FILES];
    const bool follows = engine->next == 0 || engine->next == index;
    if (!follows || engine->position >= TAIL_MOST_BYTES ||
        (engine->position >= engine->turn_bytes && is_synced(engine, other))) {
        turn(engine);
    }
}

static enum journal_status status_of(int error)
{
    return error == ENOSPC || error == EDQUOT ? JOURNAL_FULL : JOURNAL_UNAVAILABLE;
}

/* A write that fails half-way leaves no record: the next append begins at the same place. */
static enum journal_status put(struct engine *engine, const struct journal_entry *entry)
{
    struct writer out = writer_over(engine->record, TAIL_RECORD_HEAD + ENTRY_MAX_BYTES);
    const struct hash32 chain = sha256_of(entry->bytes, entry->length);
    writer_bytes(&out, "BJT1", 4);
    writer_u32(&out, (uint32_t)entry->length);
    writer_bytes(&out, chain.bytes, sizeof chain.bytes);
    writer_bytes(&out, entry->bytes, entry->length);
    assert(!out.failed);
    find_place(engine, entry->index);
    struct file *file = &engine->files[engine->current];
    if (!file_write_at(file->descriptor, engine->record, out.position, engine->position)) {
        return status_of(errno);
    }
    engine->position += out.position;
    engine->next = entry->index + 1;
    file->last = entry->index;
    return JOURNAL_OK;
}

static enum journal_status engine_append(void *self, uint64_t epoch,
                                         const struct journal_entry *entries, size_t count)
{
    struct engine *engine = self;
    struct journal_leader leader;
    assert(count == 1); /* all or none: a broker appends one entry, its group */
    (void)count;
    if (journal_leader(engine->rows, &leader) != JOURNAL_OK || leader.epoch != epoch) {
        return JOURNAL_DEPOSED;
    }
    if (entries[0].length > ENTRY_MAX_BYTES) {
        return JOURNAL_TOO_LARGE;
    }
    const enum journal_status status = put(engine, &entries[0]);
    if (status != JOURNAL_OK) {
        return status;
    }
    return fdatasync(engine->files[engine->current].descriptor) == 0 ? JOURNAL_OK
                                                                     : JOURNAL_UNAVAILABLE;
}

static void engine_destroy(void *self)
{
    struct engine *engine = self;
    for (unsigned i = 0; i < TAIL_FILES; i++) {
        if (engine->files[i].descriptor >= 0) {
            (void)close(engine->files[i].descriptor); /* synced at every append */
        }
    }
    free(engine->record);
    free(engine);
}

static const struct journal_engine functions = {
    .lead = engine_lead,
    .append = engine_append,
    .next = engine_next,
    .leader = engine_leader,
    .destroy = engine_destroy,
};

static enum journal_status open_files(const char *folder, struct engine *engine,
                                      struct problem *ret_problem)
{
    for (unsigned i = 0; i < TAIL_FILES; i++) {
        char path[PATH_MAX];
        if (!tail_path(folder, i, path, sizeof path, ret_problem)) {
            return JOURNAL_UNAVAILABLE;
        }
        engine->files[i].descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (engine->files[i].descriptor < 0) {
            const enum journal_status status = status_of(errno);
            problem_set_unseen(ret_problem, path, " cannot be opened", errno);
            return status;
        }
    }
    return file_sync_folder(folder, ret_problem) ? JOURNAL_OK : JOURNAL_UNAVAILABLE;
}

enum journal_status journal_tail_open(const struct journal_tail_config *config,
                                      struct journal **ret_journal, struct problem *ret_problem)
{
    struct engine *engine = calloc(1, sizeof *engine);
    *ret_journal = NULL;
    if (engine == NULL) {
        problem_set(ret_problem, "out of memory");
        return JOURNAL_UNAVAILABLE;
    }
    *engine = (struct engine){.rows = config->rows,
                              .synced = config->synced,
                              .turn_bytes = config->turn_bytes,
                              .files = {{.descriptor = -1}, {.descriptor = -1}},
                              .record = malloc(TAIL_RECORD_HEAD + ENTRY_MAX_BYTES)};
    enum journal_status status = JOURNAL_UNAVAILABLE;
    if (engine->record == NULL) {
        problem_set(ret_problem, "out of memory");
    } else {
        status = open_files(config->folder, engine, ret_problem);
    }
    if (status != JOURNAL_OK) {
        engine_destroy(engine);
        return status;
    }
    *ret_journal = journal_create(&functions, engine);
    if (*ret_journal == NULL) {
        problem_set(ret_problem, "out of memory");
        return JOURNAL_UNAVAILABLE;
    }
    return JOURNAL_OK;
}

void journal_tail_remove(const char *folder)
{
    for (unsigned i = 0; i < TAIL_FILES; i++) {
        char path[PATH_MAX];
        struct problem ignored;
        if (tail_path(folder, i, path, sizeof path, &ignored)) {
            (void)unlink(path); /* its entries are in ledger.db */
        }
    }
}
