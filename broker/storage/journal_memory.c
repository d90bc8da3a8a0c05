#include "broker/storage/journal_memory.h"

#include "base/array.h"
#include "base/random.h"
#include "base/sha256.h"
#include "broker/storage/entry.h"

#include <stdlib.h>
#include <string.h>

struct stored {
    uint8_t *bytes;
    size_t length;
    struct hash32 chain;
    uint64_t next_command;
};

struct journal_log {
    struct random dice;
    struct journal_faults faults;
    uint64_t entries_max;
    struct stored before;   /* the chain before the first entry; no bytes */
    struct stored *entries; /* entry 1 + i */
    size_t count;
    size_t capacity;
    uint64_t epoch;
    struct journal_leader leader;

    /* An append may be still under way, whether or not its sender suspects it. */
    struct stored *late;
    size_t late_count;
    uint64_t late_index;
    uint64_t late_epoch;
};

struct view {
    struct journal_log *log;
};

/* ---- the log */

struct journal_log *journal_log_create(uint64_t seed, uint64_t entries_max)
{
    struct journal_log *log = calloc(1, sizeof *log);
    if (log != NULL) {
        log->dice = random_seeded(seed);
        log->entries_max = entries_max;
        log->before.next_command = 1;
    }
    return log;
}

static void forget_late(struct journal_log *log)
{
    for (size_t i = 0; i < log->late_count; i++) {
        free(log->late[i].bytes);
    }
    free(log->late);
    log->late = NULL;
    log->late_count = 0;
}

void journal_log_destroy(struct journal_log **self)
{
    struct journal_log *log = *self;
    if (log != NULL) {
        for (size_t i = 0; i < log->count; i++) {
            free(log->entries[i].bytes);
        }
        free(log->entries);
        forget_late(log);
        free(log);
        *self = NULL;
    }
}

void journal_log_set_faults(struct journal_log *log, const struct journal_faults *faults)
{
    log->faults = *faults;
}

uint64_t journal_log_last(const struct journal_log *log)
{
    return log->count;
}

static bool chance(struct journal_log *log, uint32_t per_thousand)
{
    return random_below(&log->dice, 1000) < per_thousand;
}

static const struct stored *last_of(const struct journal_log *log)
{
    return log->count == 0 ? &log->before : &log->entries[log->count - 1];
}

static const struct stored *stored_at(const struct journal_log *log, uint64_t index)
{
    return index > 0 && index <= log->count ? &log->entries[index - 1] : NULL;
}

static bool copy_entry(const struct journal_entry *entry, struct stored *ret_stored)
{
    uint8_t *bytes = malloc(entry->length > 0 ? entry->length : 1);
    if (bytes == NULL) {
        return false;
    }
    memcpy(bytes, entry->bytes, entry->length);
    *ret_stored = (struct stored){.bytes = bytes, .length = entry->length};
    return true;
}

/* Takes the bytes over when they follow the last entry. */
static enum journal_status take(struct journal_log *log, struct stored *stored)
{
    struct entry_head head;
    const struct stored *last = last_of(log);
    if (!entry_read_head(stored->bytes, stored->length, &head) ||
        head.index != journal_log_last(log) + 1 || head.first_command != last->next_command ||
        !hash32_equal(&head.previous, &last->chain)) {
        return JOURNAL_CORRUPT;
    }
    struct stored *entries =
        array_with_room(log->entries, log->count, &log->capacity, sizeof *entries);
    if (entries == NULL) {
        return JOURNAL_UNAVAILABLE;
    }
    log->entries = entries;
    stored->chain = sha256_of(stored->bytes, stored->length);
    stored->next_command = head.first_command + head.count;
    log->entries[log->count++] = *stored;
    *stored = (struct stored){0};
    return JOURNAL_OK;
}

static void cut_back(struct journal_log *log, size_t count)
{
    while (log->count > count) {
        free(log->entries[--log->count].bytes);
    }
}

/* Takes all entries or none, as the interface says. */
static enum journal_status take_all(struct journal_log *log, const struct journal_entry *entries,
                                    size_t count)
{
    size_t before = log->count;
    for (size_t i = 0; i < count; i++) {
        struct stored stored = {0};
        enum journal_status status =
            copy_entry(&entries[i], &stored) ? take(log, &stored) : JOURNAL_UNAVAILABLE;
        if (status != JOURNAL_OK) {
            free(stored.bytes);
            cut_back(log, before);
            return status;
        }
    }
    return JOURNAL_OK;
}

/* Lets the late append arrive. It is fenced out when it no longer fits, or when its epoch is
 * over. */
static void deliver_late(struct journal_log *log)
{
    size_t before = log->count;
    bool fits = log->late_count > 0 && log->late_epoch == log->epoch &&
                log->late_index == journal_log_last(log) + 1;
    for (size_t i = 0; fits && i < log->late_count; i++) {
        fits = take(log, &log->late[i]) == JOURNAL_OK;
    }
    if (!fits) {
        cut_back(log, before);
    }
    forget_late(log);
}

/* Keeps a copy that arrives later. If memory is short the copy is lost, which is allowed too. */
static void send_late(struct journal_log *log, uint64_t epoch, const struct journal_entry *entries,
                      size_t count)
{
    forget_late(log);
    log->late = calloc(count, sizeof *log->late);
    if (log->late == NULL) {
        return;
    }
    log->late_epoch = epoch;
    log->late_index = entries[0].index;
    for (size_t i = 0; i < count && copy_entry(&entries[i], &log->late[i]); i++) {
        log->late_count++;
    }
    if (log->late_count < count) {
        forget_late(log);
    }
}

void journal_log_depose(struct journal_log *log)
{
    log->epoch++;
    log->leader = (struct journal_leader){.epoch = log->epoch, .broker = "rival"};
}

/* ---- one broker's view */

static enum journal_status view_lead(void *self, uint64_t last_index,
                                     const struct journal_leader *me, uint64_t *ret_epoch)
{
    struct journal_log *log = ((struct view *)self)->log;
    deliver_late(log);
    if (last_index < journal_log_last(log)) {
        return JOURNAL_BEHIND;
    }
    if (last_index > journal_log_last(log)) {
        return JOURNAL_CORRUPT;
    }
    log->epoch++;
    log->leader = *me;
    log->leader.epoch = log->epoch;
    *ret_epoch = log->epoch;
    return JOURNAL_OK;
}

/* Returns true when the same bytes are in already, after a resend for UNKNOWN. */
static bool is_in(const struct journal_log *log, const struct journal_entry *entries, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct stored *stored = stored_at(log, entries[i].index);
        if (stored == NULL || stored->length != entries[i].length ||
            memcmp(stored->bytes, entries[i].bytes, stored->length) != 0) {
            return false;
        }
    }
    return true;
}

static enum journal_status append_now(struct journal_log *log, uint64_t epoch,
                                      const struct journal_entry *entries, size_t count)
{
    if (chance(log, log->faults.unknown_lost)) {
        return JOURNAL_UNKNOWN;
    }
    if (chance(log, log->faults.unknown_late)) {
        send_late(log, epoch, entries, count);
        return JOURNAL_UNKNOWN;
    }
    bool hides = chance(log, log->faults.unknown_applied);
    bool repeats = chance(log, log->faults.duplicated);
    enum journal_status status = take_all(log, entries, count);
    if (status == JOURNAL_OK && repeats) {
        send_late(log, epoch, entries, count);
    }
    return status == JOURNAL_OK && hides ? JOURNAL_UNKNOWN : status;
}

static enum journal_status view_append(void *self, uint64_t epoch,
                                       const struct journal_entry *entries, size_t count)
{
    struct journal_log *log = ((struct view *)self)->log;
    deliver_late(log);
    for (size_t i = 0; i < count; i++) {
        if (entries[i].length > ENTRY_MAX_BYTES) {
            return JOURNAL_TOO_LARGE;
        }
    }
    if (epoch == log->epoch && chance(log, log->faults.deposed)) {
        journal_log_depose(log);
    }
    if (is_in(log, entries, count)) {
        return JOURNAL_OK;
    }
    if (epoch == 0 || epoch != log->epoch) {
        return JOURNAL_DEPOSED;
    }
    if (log->count + count > log->entries_max || chance(log, log->faults.full)) {
        return JOURNAL_FULL;
    }
    return append_now(log, epoch, entries, count);
}

static enum journal_status view_next(void *self, uint64_t index, struct journal_entry *ret_entry,
                                     int timeout_ms)
{
    struct journal_log *log = ((struct view *)self)->log;
    (void)timeout_ms; /* the simulator has virtual time: it calls again */
    const struct stored *stored = stored_at(log, index);
    if (stored == NULL || chance(log, log->faults.lagging)) {
        return JOURNAL_UNAVAILABLE;
    }
    *ret_entry =
        (struct journal_entry){.index = index, .bytes = stored->bytes, .length = stored->length};
    return JOURNAL_OK;
}

static enum journal_status view_leader(void *self, struct journal_leader *ret_leader)
{
    struct journal_log *log = ((struct view *)self)->log;
    if (log->epoch == 0) {
        return JOURNAL_UNAVAILABLE;
    }
    *ret_leader = log->leader;
    return JOURNAL_OK;
}

static void view_destroy(void *self)
{
    free(self);
}

struct journal *journal_memory_open(struct journal_log *log)
{
    static const struct journal_engine functions = {
        .lead = view_lead,
        .append = view_append,
        .next = view_next,
        .leader = view_leader,
        .destroy = view_destroy,
    };
    struct view *view = malloc(sizeof *view);
    if (view == NULL) {
        return NULL;
    }
    view->log = log;
    return journal_create(&functions, view);
}
