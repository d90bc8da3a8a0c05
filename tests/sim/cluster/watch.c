#include "tests/sim/cluster/watch.h"

#include "base/cursor.h"
#include "broker/storage/entry.h"
#include "tests/sim/cluster/etcd.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct seen_entry {
    const uint8_t *bytes;
    size_t length;
};

/* The market's keys, as they stand. */
static struct {
    uint64_t epoch;
    unsigned by; /* the broker that leads */
    uint64_t last, base;
    struct seen_entry *entries; /* by index */
    size_t entries_capacity;
} seen;

static bool see_leader(unsigned broker, const uint8_t *value, size_t length)
{
    struct reader in = reader_over(value, length);
    (void)reader_u32(&in); /* the magic */
    const uint64_t epoch = reader_u64(&in);
    if (in.failed) {
        sim_fail("the key of the leader holds something else");
    }
    const bool is_resigned = seen.epoch == epoch && seen.by == broker;
    if (epoch > 0 && epoch <= seen.epoch && !is_resigned) {
        sim_fail("broker%u takes epoch %" PRIu64 ", and broker%u has epoch %" PRIu64, broker, epoch,
                 seen.by, seen.epoch);
    }
    trace("etcd: broker%u %s epoch %" PRIu64 " after entry %" PRIu64, broker,
          is_resigned ? "resigns" : "leads under", epoch, seen.last);
    seen.epoch = epoch;
    seen.by = broker;
    return epoch > 0 && !is_resigned;
}

static void see_entry(unsigned broker, uint64_t index, const uint8_t *value, size_t length,
                      bool was_there)
{
    struct entry_head head;
    const bool is_first = index == 0 && length == 0;
    if (was_there) {
        sim_fail("broker%u puts entry %" PRIu64 " a second time", broker, index);
    }
    if (!is_first && (index != seen.last + 1 || !entry_read_head(value, length, &head))) {
        sim_fail("broker%u puts entry %" PRIu64 " after entry %" PRIu64, broker, index, seen.last);
    }
    if (!is_first && (head.epoch != seen.epoch || broker != seen.by)) {
        sim_fail("broker%u puts entry %" PRIu64 " under epoch %" PRIu64 ", and broker%u leads "
                 "under epoch %" PRIu64,
                 broker, index, head.epoch, seen.by, seen.epoch);
    }
    if (index >= seen.entries_capacity) {
        seen.entries_capacity = 2 * (index + 512);
        seen.entries = sim_grow(seen.entries, seen.entries_capacity * sizeof *seen.entries);
    }
    seen.entries[index] = (struct seen_entry){value, length};
    seen.last = index;
}

static void see_base(unsigned broker, const uint8_t *value, size_t length)
{
    struct reader in = reader_over(value, length);
    (void)reader_u32(&in);
    const uint64_t base = reader_u64(&in);
    if (base < seen.base || (seen.last > 0 && broker != seen.by)) {
        sim_fail("broker%u moves the base from %" PRIu64 " to %" PRIu64, broker, seen.base, base);
    }
    seen.base = base;
}

bool watch_key(unsigned broker, const char *key, const uint8_t *value, size_t length,
               bool was_there)
{
    const char *name = strchr(key + strlen("/bourse/"), '/') + 1;
    const bool is_deleted = value == NULL && length == 0 && was_there;
    if (strncmp(name, "log/", 4) == 0) {
        const uint64_t index = strtoull(name + 4, NULL, 16);
        if (!is_deleted) {
            see_entry(broker, index, value, length, was_there);
        } else if (index >= seen.base || index >= seen.last) {
            sim_fail("entry %" PRIu64 " is deleted, the base is %" PRIu64, index, seen.base);
        }
    } else if (strcmp(name, "leader") == 0 && !is_deleted) {
        return see_leader(broker, value, length);
    } else if (strcmp(name, "base") == 0 && !is_deleted) {
        see_base(broker, value, length);
    } else {
        sim_fail("broker%u changes the key %s", broker, key);
    }
    return false;
}

void watch_start(void)
{
    memset(&seen, 0, sizeof seen);
}

uint64_t etcd_last(void)
{
    return seen.last;
}

enum journal_status etcd_entry(uint64_t index, struct journal_entry *ret_entry)
{
    if (index == 0 || index > seen.last) {
        return JOURNAL_UNAVAILABLE;
    }
    *ret_entry = (struct journal_entry){
        .index = index, .bytes = seen.entries[index].bytes, .length = seen.entries[index].length};
    return JOURNAL_OK;
}
