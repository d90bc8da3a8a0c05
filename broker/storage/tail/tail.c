#include "broker/storage/tail/tail.h"

#include "base/array.h"
#include "base/cursor.h"
#include "base/sha256.h"
#include "broker/storage/entry.h"
#include "broker/storage/folder.h"
#include "runtime/files.h"
#include "runtime/market.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The longest that a file may be. The last record begins before TAIL_MOST_BYTES, and the file of a
 * backup has the records of both files. */
enum { FILE_MOST = TAIL_FILES * (TAIL_MOST_BYTES + TAIL_RECORD_HEAD + ENTRY_MAX_BYTES) };

bool tail_path(const char *folder, unsigned file, char *ret_path, size_t capacity,
               struct problem *ret_problem)
{
    assert(file < TAIL_FILES);
    return folder_path(folder, file == 0 ? MARKET_TAIL_0 : MARKET_TAIL_1, ret_path, capacity,
                       ret_problem);
}

/* ---------------------------------------------------------------- reading */

/* Reads one record at `position`. Returns false when it is not whole. */
static bool read_record(const uint8_t *bytes, size_t length, size_t position,
                        struct tail_entry *ret_entry)
{
    struct reader in = reader_over(bytes + position, length - position);
    struct entry_head head;
    const uint8_t *magic = reader_view(&in, 4);
    const uint32_t size = reader_u32(&in);
    struct tail_entry entry = {.length = size};
    reader_bytes(&in, entry.end.chain.bytes, sizeof entry.end.chain.bytes);
    entry.bytes = reader_view(&in, size);
    if (in.failed || memcmp(magic, "BJT1", 4) != 0 || size > ENTRY_MAX_BYTES ||
        !entry_read_head(entry.bytes, entry.length, &head)) {
        return false;
    }
    const struct hash32 found = sha256_of(entry.bytes, entry.length);
    entry.end.index = head.index;
    entry.end.next_command = head.first_command + head.count;
    entry.previous = head.previous;
    entry.epoch = head.epoch;
    *ret_entry = entry;
    return hash32_equal(&found, &entry.end.chain);
}

static bool follows(const struct tail_entry *entry, const struct journal_last *before)
{
    return entry->end.index == before->index + 1 && hash32_equal(&entry->previous, &before->chain);
}

struct run {
    struct tail_entry *entries;
    size_t count, capacity;
};

static bool read_run(const uint8_t *bytes, size_t length, struct run *run)
{
    struct tail_entry entry;
    for (size_t position = 0; read_record(bytes, length, position, &entry);
         position += TAIL_RECORD_HEAD + entry.length) {
        if (run->count > 0 && !follows(&entry, &run->entries[run->count - 1].end)) {
            break;
        }
        struct tail_entry *entries =
            array_with_room(run->entries, run->count, &run->capacity, sizeof *entries);
        if (entries == NULL) {
            return false;
        }
        run->entries = entries;
        run->entries[run->count++] = entry;
    }
    return true;
}

/* Reads one file, which may be missing. */
static bool read_file(const char *folder, unsigned file, struct tail *tail, struct run *run,
                      struct problem *ret_problem)
{
    char path[PATH_MAX];
    size_t length = 0;
    if (!tail_path(folder, file, path, sizeof path, ret_problem)) {
        return false;
    }
    if (access(path, F_OK) != 0) {
        if (errno != ENOENT) {
            problem_set_unseen(ret_problem, path, " cannot be looked at", errno);
        }
        return errno == ENOENT;
    }
    if (!file_read(path, FILE_MOST, &tail->bytes[file], &length, ret_problem)) {
        return false;
    }
    if (!read_run(tail->bytes[file], length, run)) {
        problem_set(ret_problem, "out of memory for the entries of %s", path);
        return false;
    }
    return true;
}

static bool join(const struct run *first, const struct run *second, struct tail *tail,
                 struct problem *ret_problem)
{
    const size_t count = first->count + second->count;
    if (count == 0) {
        return true;
    }
    tail->entries = malloc(count * sizeof *tail->entries);
    if (tail->entries == NULL) {
        problem_set(ret_problem, "out of memory for the tail of the journal");
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        tail->entries[i] = i < first->count ? first->entries[i] : second->entries[i - first->count];
    }
    tail->count = count;
    return true;
}

bool tail_read(const char *folder, struct tail *ret_tail, struct problem *ret_problem)
{
    struct tail tail = {.count = 0};
    struct run runs[TAIL_FILES] = {{.count = 0}};
    bool good = read_file(folder, 0, &tail, &runs[0], ret_problem) &&
                read_file(folder, 1, &tail, &runs[1], ret_problem);
    if (good) {
        const bool second_is_first = runs[0].count > 0 && runs[1].count > 0 &&
                                     runs[1].entries[0].end.index < runs[0].entries[0].end.index;
        good = join(&runs[second_is_first], &runs[!second_is_first], &tail, ret_problem);
    }
    free(runs[0].entries);
    free(runs[1].entries);
    if (!good) {
        tail_fini(&tail);
    }
    *ret_tail = tail;
    return good;
}

void tail_fini(struct tail *tail)
{
    for (size_t i = 0; i < TAIL_FILES; i++) {
        free(tail->bytes[i]);
    }
    free(tail->entries);
    *tail = (struct tail){.count = 0};
}

/* ---------------------------------------------------------------- fitting */

static enum tail_fit is_other(const struct tail_entry *entry, struct problem *ret_problem)
{
    problem_set(ret_problem,
                "entry %" PRIu64
                " of the journal's tail is not the one of %s: one of the two is of "
                "another history. Nothing was changed. Put back the files that belong together; "
                "if %s was restored on purpose, move %s and %s away",
                entry->end.index, MARKET_DATABASE, MARKET_DATABASE, MARKET_TAIL_0, MARKET_TAIL_1);
    return TAIL_OTHER;
}

static enum tail_fit is_beyond(const struct tail_entry *entry, const struct journal_last *last,
                               struct problem *ret_problem)
{
    problem_set(ret_problem,
                "%s ends at entry %" PRIu64 ", and the journal's tail begins at entry %" PRIu64
                ": %s is an old copy. Nothing was changed. Put the newest one back; if it was "
                "restored on purpose, move %s and %s away: what came later is lost",
                MARKET_DATABASE, last->index, entry->end.index, MARKET_DATABASE, MARKET_TAIL_0,
                MARKET_TAIL_1);
    return TAIL_BEYOND;
}

enum tail_fit tail_fit(struct tail *tail, const struct journal_last *last,
                       struct problem *ret_problem)
{
    const struct journal_last *end = last;
    size_t kept = 0;
    size_t from = 0;
    while (from < tail->count && tail->entries[from].end.index <= last->index) {
        const struct tail_entry *entry = &tail->entries[from];
        if (entry->end.index == last->index && !hash32_equal(&entry->end.chain, &last->chain)) {
            return is_other(entry, ret_problem);
        }
        from++;
    }
    if (from < tail->count && tail->entries[from].end.index > last->index + 1) {
        return is_beyond(&tail->entries[from], last, ret_problem);
    }
    if (from < tail->count && !follows(&tail->entries[from], last)) {
        return is_other(&tail->entries[from], ret_problem);
    }
    /* A run that ended early, by damage, leaves a gap to the next one. HEAD says whether an entry
     * of the gap was acknowledged. */
    while (from + kept < tail->count && follows(&tail->entries[from + kept], end)) {
        end = &tail->entries[from + kept].end;
        kept++;
    }
    if (kept > 0 && from > 0) {
        memmove(tail->entries, tail->entries + from, kept * sizeof *tail->entries);
    }
    tail->count = kept;
    return TAIL_FITS;
}

const struct journal_last *tail_end(const struct tail *tail, const struct journal_last *last)
{
    return tail->count == 0 ? last : &tail->entries[tail->count - 1].end;
}

/* ---------------------------------------------------------------- copying */

static size_t write_records(const struct tail *tail, uint8_t *ret_bytes, size_t capacity)
{
    struct writer out = writer_over(ret_bytes, capacity);
    for (size_t i = 0; i < tail->count; i++) {
        const struct tail_entry *entry = &tail->entries[i];
        writer_bytes(&out, "BJT1", 4);
        writer_u32(&out, (uint32_t)entry->length);
        writer_bytes(&out, entry->end.chain.bytes, sizeof entry->end.chain.bytes);
        writer_bytes(&out, entry->bytes, entry->length);
    }
    assert(!out.failed);
    return out.position;
}

bool tail_copy(const struct tail *tail, const char *folder, struct problem *ret_problem)
{
    char path[PATH_MAX];
    size_t size = 0;
    if (tail->count == 0) {
        return true;
    }
    for (size_t i = 0; i < tail->count; i++) {
        size += TAIL_RECORD_HEAD + tail->entries[i].length;
    }
    uint8_t *bytes = malloc(size);
    if (bytes == NULL) {
        problem_set(ret_problem, "out of memory for the copy of the journal's tail");
        return false;
    }
    const size_t length = write_records(tail, bytes, size);
    const bool good = tail_path(folder, 0, path, sizeof path, ret_problem) &&
                      file_write(path, bytes, length, 0600, ret_problem);
    free(bytes);
    return good;
}
