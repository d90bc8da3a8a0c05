/* The journal's tail is read here by the audit's own reading of docs/ledger.md, section 1.
 *
 * The tail holds entries that the tables do not have yet. The audit checks their chain and that
 * HEAD is reached; their commands are audited once the tables have them. */
#include "audit/audit_internal.h"

#include "base/cursor.h"
#include "base/problem.h"
#include "base/sha256.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RECORD_HEAD = 40, ENTRY_HEAD = 80, FILE_MOST = 64 << 20, FILES = 2 };

/* Returns the whole file, or NULL with errno. The caller frees it. */
static uint8_t *read_file(const char *path, size_t *ret_length)
{
    struct stat facts;
    uint8_t *bytes = NULL;
    ssize_t got = -1;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return NULL;
    }
    if (fstat(fd, &facts) == 0) {
        const size_t size = facts.st_size < FILE_MOST ? (size_t)facts.st_size : FILE_MOST;
        bytes = malloc(size + 1);
        got = bytes == NULL ? -1 : pread(fd, bytes, size, 0);
    }
    const int error = errno;
    (void)close(fd); /* read only */
    errno = error;
    if (got < 0) {
        free(bytes);
        return NULL;
    }
    *ret_length = (size_t)got;
    return bytes;
}

/* A record: "BJT1", u32 length, 32 hash of the entry, the entry. */
static bool read_record(struct reader *in, struct audit_tail_entry *ret_entry)
{
    const uint8_t *magic = reader_view(in, 4);
    const uint32_t length = reader_u32(in);
    struct hash32 stored;
    reader_bytes(in, stored.bytes, 32);
    const uint8_t *bytes = reader_view(in, length);
    if (in->failed || memcmp(magic, "BJT1", 4) != 0 || length < ENTRY_HEAD) {
        return false;
    }
    struct reader entry = reader_over(bytes, length);
    (void)reader_view(&entry, 8); /* magic and count: the tables have them later */
    ret_entry->index = reader_u64(&entry);
    ret_entry->epoch = reader_u64(&entry);
    (void)reader_view(&entry, 16); /* the batch id may be any */
    reader_bytes(&entry, ret_entry->previous.bytes, 32);
    ret_entry->chain = sha256_of(bytes, length);
    return memcmp(bytes, "BJE1", 4) == 0 && hash32_equal(&ret_entry->chain, &stored);
}

static bool add(struct audit_tail *tail, const struct audit_tail_entry *entry)
{
    if (tail->count == tail->capacity) {
        const size_t capacity = tail->capacity == 0 ? 64 : 2 * tail->capacity;
        struct audit_tail_entry *entries = realloc(tail->entries, capacity * sizeof *tail->entries);
        if (entries == NULL) {
            return false;
        }
        tail->entries = entries;
        tail->capacity = capacity;
    }
    tail->entries[tail->count++] = *entry;
    return true;
}

/* Reads the run at the beginning of a file: whole records that follow one another. */
static bool read_run(const uint8_t *bytes, size_t length, struct audit_tail *tail)
{
    struct reader in = reader_over(bytes, length);
    struct audit_tail_entry entry;
    const size_t first = tail->count;
    while (read_record(&in, &entry)) {
        const struct audit_tail_entry *before =
            tail->count == first ? NULL : &tail->entries[tail->count - 1];
        if (before != NULL &&
            (entry.index != before->index + 1 || !hash32_equal(&entry.previous, &before->chain))) {
            break;
        }
        if (!add(tail, &entry)) {
            return false;
        }
    }
    return true;
}

static int by_index(const void *a, const void *b)
{
    const struct audit_tail_entry *first = a;
    const struct audit_tail_entry *second = b;
    return (first->index > second->index) - (first->index < second->index);
}

bool audit_tail_read(struct audit *audit, const char *folder)
{
    static const char *const names[FILES] = {"journal-tail.0", "journal-tail.1"};
    for (size_t i = 0; i < FILES; i++) {
        char path[PATH_MAX + 32];
        size_t length = 0;
        (void)snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        uint8_t *bytes = read_file(path, &length);
        if (bytes == NULL && errno != ENOENT) {
            return audit_unreadable(audit, "%s cannot be read: %s%s", path, strerror(errno),
                                    problem_advice(errno));
        }
        const bool good = bytes == NULL || read_run(bytes, length, &audit->tail);
        free(bytes);
        if (!good) {
            return audit_out_of_memory(audit);
        }
    }
    if (audit->tail.count > 0) {
        qsort(audit->tail.entries, audit->tail.count, sizeof *audit->tail.entries, by_index);
    }
    return true;
}

void audit_tail_end(struct audit *audit)
{
    free(audit->tail.entries);
    audit->tail = (struct audit_tail){.count = 0};
}

bool audit_tail_check(struct audit *audit, uint64_t entry, uint64_t epoch,
                      const struct hash32 *chain, audit_on_tail *on_entry, void *context)
{
    struct audit_tail_entry last = {.index = entry, .epoch = epoch, .chain = *chain};
    for (size_t i = 0; i < audit->tail.count; i++) {
        const struct audit_tail_entry *next = &audit->tail.entries[i];
        if (next->index == entry && !hash32_equal(&next->chain, chain)) {
            return audit_finding(audit, "journal-tail", next->index,
                                 "the tail has another entry than the table journal");
        }
        if (next->index <= last.index) {
            continue; /* the tables have it */
        }
        if (next->index != last.index + 1 && audit->report->tail_entries == 0) {
            return audit_finding(audit, "journal-tail", next->index,
                                 "the entries between the table journal and the tail are missing");
        }
        if (next->index != last.index + 1) {
            break; /* a damaged end; HEAD says whether an entry behind it was acknowledged */
        }
        if (!hash32_equal(&next->previous, &last.chain) || next->epoch < last.epoch) {
            return audit_finding(audit, "journal-tail", next->index,
                                 "the entry does not follow from the entry before");
        }
        last = *next;
        audit->report->tail_entries++;
        on_entry(context, last.index, &last.chain);
    }
    return true;
}
