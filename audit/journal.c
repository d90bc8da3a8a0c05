/* The journal is read here by the audit's own reading of docs/ledger.md, sections 1 and 2. */
#include "audit/audit_internal.h"

#include "base/cursor.h"
#include "base/problem.h"
#include "base/sha256.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum {
    HEAD_SLOTS = 4,
    HEAD_SLOT = 512,
    HEAD_BYTES = HEAD_SLOTS * HEAD_SLOT,
    HEAD_COPY = 2, /* each mark has a copy in the slot so many further on */
    HEAD_READS = 3,
};

struct met { /* the entry that HEAD has seen, where the journal has it */
    const struct audit_mark *mark;
    uint64_t last; /* the last entry of the journal, in its tail perhaps */
    bool found;
    struct hash32 chain;
};

struct link { /* state of the chain */
    uint64_t entry, next_command;
    uint64_t epoch; /* 0: no epoch yet */
    struct hash32 chain;
};

static bool read_mark(const uint8_t slot[HEAD_SLOT], struct audit_mark *ret_mark)
{
    struct hash32 hash = sha256_of(slot, HEAD_SLOT - 32);
    if (memcmp(hash.bytes, slot + HEAD_SLOT - 32, 32) != 0 || memcmp(slot, "BJHEAD1", 8) != 0) {
        return false;
    }
    struct reader in = reader_over(slot + 8, 160);
    ret_mark->counter = reader_u64(&in);
    ret_mark->index = reader_u64(&in);
    reader_bytes(&in, ret_mark->chain.bytes, 32);
    ret_mark->tree_size = reader_u64(&in);
    ret_mark->acts = reader_u64(&in);
    reader_bytes(&in, ret_mark->acts_chain.bytes, 32);
    reader_bytes(&in, ret_mark->acts_signature.bytes, 64);
    return true;
}

struct marks { /* content of HEAD, read once */
    struct audit_mark newest;
    bool has_mark;
    size_t length;
    uint32_t damaged;
};

/* Reads the file. Returns false with errno. */
static bool read_bytes(const char *path, uint8_t ret_bytes[HEAD_BYTES], size_t *ret_length)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, ret_bytes, HEAD_BYTES);
    int error = errno;
    if (fd >= 0) {
        (void)close(fd); /* read only */
    }
    errno = error;
    *ret_length = length < 0 ? 0 : (size_t)length;
    return length >= 0;
}

/* Returns true when a mark was ever written to the slot. Zeros are no mark as long as no mark used
 * the slot. */
static bool was_written(const uint8_t *bytes, size_t slot, const struct marks *marks)
{
    static const uint8_t zeros[HEAD_SLOT];
    const bool has_copies = marks->length > HEAD_COPY * HEAD_SLOT;
    return memcmp(bytes + slot * HEAD_SLOT, zeros, HEAD_SLOT) != 0 ||
           (has_copies && slot * HEAD_SLOT < marks->length && marks->newest.counter >= HEAD_COPY);
}

static bool read_marks(const char *path, struct marks *marks)
{
    uint8_t bytes[HEAD_BYTES] = {0}; /* slots missing in the file are zeros */
    bool is_whole[HEAD_SLOTS];
    *marks = (struct marks){.has_mark = false};
    if (!read_bytes(path, bytes, &marks->length)) {
        return false;
    }
    for (size_t i = 0; i < HEAD_SLOTS; i++) {
        struct audit_mark mark;
        is_whole[i] = read_mark(bytes + i * HEAD_SLOT, &mark);
        if (is_whole[i] && (!marks->has_mark || mark.counter > marks->newest.counter)) {
            marks->newest = mark;
            marks->has_mark = true;
        }
    }
    for (size_t i = 0; i < HEAD_SLOTS; i++) {
        marks->damaged += !is_whole[i] && was_written(bytes, i, marks);
    }
    return true;
}

bool audit_read_head(struct audit *audit, const char *path)
{
    struct marks marks = {.damaged = 1};
    for (int i = 0; i < HEAD_READS && marks.damaged > 0; i++) { /* a write may be under way */
        if (!read_marks(path, &marks)) {
            return errno == ENOENT || audit_unreadable(audit, "%s cannot be read: %s%s", path,
                                                       strerror(errno), problem_advice(errno));
        }
    }
    audit->mark = marks.newest;
    audit->has_mark = marks.has_mark;
    audit->report->head_damaged = marks.has_mark ? marks.damaged : 0; /* else it is a finding */
    return marks.has_mark || marks.length == 0 ||
           audit_finding(audit, "HEAD", 0, "none of its marks is whole");
}

/* The entry has "BJE1", u32 count, u64 index, u64 epoch, 16 batch, 32 previous, u64 first command,
 * then the commands. */
static bool check_entry_head(struct audit *audit, struct reader *in, struct link *link,
                             uint32_t *ret_count)
{
    const uint8_t *magic = reader_view(in, 4);
    uint32_t count = reader_u32(in);
    uint64_t index = reader_u64(in);
    struct hash32 previous;
    uint64_t epoch = reader_u64(in);
    (void)reader_view(in, 16); /* the batch id may be any */
    reader_bytes(in, previous.bytes, 32);
    uint64_t first_command = reader_u64(in);
    if (in->failed || memcmp(magic, "BJE1", 4) != 0 || count == 0) {
        return audit_finding(audit, "journal", link->entry + 1,
                             "the row's bytes are not an entry of the journal");
    }
    if (index != link->entry + 1 || first_command != link->next_command) {
        return audit_finding(audit, "journal", link->entry + 1,
                             "the entry's numbers do not follow the entry before");
    }
    if (!hash32_equal(&previous, &link->chain)) {
        return audit_finding(audit, "journal", link->entry + 1,
                             "the entry does not name the chain hash of the entry before");
    }
    if (epoch == 0 || epoch < link->epoch) {
        return audit_finding(audit, "journal", link->entry + 1,
                             "the entry's epoch is before that of the entry before");
    }
    *ret_count = count;
    bool is_first = epoch != link->epoch; /* a broker has begun to lead */
    link->epoch = epoch;
    return !is_first || audit_owe(audit, AUDIT_ACT_START, first_command - 1);
}

static bool read_command(struct reader *in, struct audit_command *command)
{
    uint32_t length = reader_u32(in);
    if (in->failed || length < 16) {
        return false;
    }
    command->log_time_ns = reader_i64(in);
    command->account = reader_u32(in);
    command->kind = reader_u16(in);
    command->verdict = reader_u16(in);
    command->payload_length = length - 16;
    command->payload = reader_view(in, length - 16);
    return !in->failed;
}

static bool check_commands(struct audit *audit, struct reader *in, struct link *link,
                           uint32_t count, struct audit_command *command)
{
    for (uint32_t i = 0; i < count; i++) {
        *command = (struct audit_command){.index = link->next_command};
        if (!read_command(in, command)) {
            return audit_finding(audit, "journal", link->entry + 1,
                                 "a command does not fit in its entry");
        }
        bool good = audit_command_check(audit, command);
        audit_command_fini(command);
        if (!good) {
            return false;
        }
        audit->report->commands++;
        link->next_command++;
    }
    return reader_finished(in) || audit_finding(audit, "journal", link->entry + 1,
                                                "bytes are left over after the entry's commands");
}

static bool check_row(struct audit *audit, sqlite3_stmt *select, struct link *link,
                      struct audit_command *command)
{
    const void *bytes = sqlite3_column_blob(select, 2);
    size_t length = (size_t)sqlite3_column_bytes(select, 2);
    const void *stored = sqlite3_column_blob(select, 1);
    if ((uint64_t)sqlite3_column_int64(select, 0) != link->entry + 1) {
        return audit_finding(audit, "journal", link->entry + 1, "the row of the entry is missing");
    }
    if (bytes == NULL || stored == NULL || sqlite3_column_bytes(select, 1) != 32) {
        return audit_finding(audit, "journal", link->entry + 1, "the row of the entry is empty");
    }
    struct hash32 hash = sha256_of(bytes, length);
    if (memcmp(hash.bytes, stored, 32) != 0) {
        audit->report->entry = link->entry + 1;
        text_hex(stored, 32, audit->report->expected);
        text_hex(hash.bytes, 32, audit->report->found);
        return audit_finding(audit, "journal", link->entry + 1,
                             "the hash of the entry's bytes is not the row's chain value");
    }
    struct reader in = reader_over(bytes, length);
    uint32_t count = 0;
    if (!check_entry_head(audit, &in, link, &count) ||
        !check_commands(audit, &in, link, count, command)) {
        return false;
    }
    if ((uint64_t)sqlite3_column_int64(select, 3) != link->next_command) {
        return audit_finding(audit, "journal", link->entry + 1,
                             "next_command is %lld, but the entry's commands lead to %llu",
                             (long long)sqlite3_column_int64(select, 3),
                             (unsigned long long)link->next_command);
    }
    link->entry++;
    link->chain = hash;
    audit->report->journal_entries++;
    return true;
}

static void meet(void *context, uint64_t entry, const struct hash32 *chain)
{
    struct met *met = context;
    met->last = entry;
    if (entry == met->mark->index) {
        met->found = true;
        met->chain = *chain;
    }
}

static bool check_head(struct audit *audit, const struct met *met)
{
    const struct audit_mark *mark = met->mark;
    if (mark->index > met->last) {
        return audit_finding(audit, "HEAD", 0,
                             "HEAD has seen entry %llu, the journal ends at entry %llu",
                             (unsigned long long)mark->index, (unsigned long long)met->last);
    }
    if (!met->found || !hash32_equal(&mark->chain, &met->chain)) {
        return audit_finding(audit, "HEAD", 0,
                             "entry %llu of the journal is not the one that HEAD has seen",
                             (unsigned long long)mark->index);
    }
    if (mark->tree_size > audit->rows.next_leaf) {
        return audit_finding(
            audit, "HEAD", 0, "HEAD has seen a signed tree of %llu leaves, the ledger has %llu",
            (unsigned long long)mark->tree_size, (unsigned long long)audit->rows.next_leaf);
    }
    return true;
}

/* Each start of a broker leads under the next epoch. The newest may not have written anything
 * yet. */
static bool check_epoch(struct audit *audit, const struct link *link)
{
    sqlite3_stmt *select;
    int64_t epoch = -1;
    if (sqlite3_prepare_v2(audit->database, "SELECT epoch FROM journal_base", -1, &select, NULL) !=
        SQLITE_OK) {
        return audit_unreadable(audit, "table journal_base: %s", sqlite3_errmsg(audit->database));
    }
    if (sqlite3_step(select) == SQLITE_ROW) {
        epoch = sqlite3_column_int64(select, 0);
    }
    (void)sqlite3_finalize(select); /* read only */
    if (epoch >= 0 && epoch < INT64_MAX && (uint64_t)epoch >= link->epoch) {
        return true;
    }
    return audit_finding(
        audit, "journal_base", 0,
        "journal_base has epoch %lld, but the last entry was written under epoch %llu",
        (long long)epoch, (unsigned long long)link->epoch);
}

static bool walk(struct audit *audit, sqlite3_stmt *select, struct audit_command *command)
{
    struct link link = {.next_command = 1};
    struct met met = {.mark = &audit->mark, .found = audit->mark.index == 0};
    int code;
    while ((code = sqlite3_step(select)) == SQLITE_ROW) {
        if (!check_row(audit, select, &link, command)) {
            return false;
        }
        meet(&met, link.entry, &link.chain);
    }
    if (code != SQLITE_DONE) {
        return audit_unreadable(audit, "table journal cannot be read: %s",
                                sqlite3_errmsg(audit->database));
    }
    if (!audit->rows.is_at_end) {
        return audit_expect(audit, false, "a command of the journal has the row's log index");
    }
    return check_epoch(audit, &link) &&
           audit_tail_check(audit, link.entry, link.epoch, &link.chain, meet, &met) &&
           (!audit->has_mark || check_head(audit, &met));
}

bool audit_journal(struct audit *audit)
{
    static struct audit_command command; /* the struct is large; one audit runs at a time */
    sqlite3_stmt *select;
    memcpy(audit->report->head, audit->has_mark ? "ok" : "missing", audit->has_mark ? 3 : 8);
    if (sqlite3_prepare_v2(audit->database,
                           "SELECT idx, chain, bytes, next_command FROM journal ORDER BY idx", -1,
                           &select, NULL) != SQLITE_OK) {
        return audit_unreadable(audit, "there is no journal: %s", sqlite3_errmsg(audit->database));
    }
    bool good = walk(audit, select, &command);
    (void)sqlite3_finalize(select); /* read only */
    return good && (audit->report->journal_entries > 0 ||
                    audit_unreadable(audit, "there is no journal: its table is empty, as in the "
                                            "folder of a first start that did not end, or of no "
                                            "market"));
}
