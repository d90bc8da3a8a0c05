/* The disk of a seat, behind broker/storage/storage.h and what a start reads: a journal and nothing
 * else. The tables would follow from it. After each write the disk must be a beginning of the log,
 * and the state the reference's. */
#include "tests/sim/cluster/seat.h"

#include "base/sha256.h"
#include "broker/answer/reader.h"
#include "broker/answer/trade_history.h"
#include "broker/cluster/membership.h"
#include "broker/cluster/transfer.h"
#include "broker/copies/copy_follower.h"
#include "broker/core/group.h"
#include "broker/core/privileged_acts.h"
#include "broker/storage/balance_check.h"
#include "broker/storage/etcd/etcd_mark.h"
#include "broker/storage/etcd/replicated.h"
#include "broker/storage/history_mark.h"
#include "broker/storage/replay.h"
#include "broker/storage/snapshot/snapshots.h"
#include "exchange/view/feed.h"
#include "runtime/clock.h"
#include "tests/sim/cluster/etcd.h"
#include "tests/sim/fibre.h"
#include "tests/sim/oracle.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- the disk */

static void disk_append(struct seat_disk *disk, const uint8_t *bytes, size_t length)
{
    if (disk->count == disk->capacity) {
        disk->capacity = disk->capacity == 0 ? 256 : 2 * disk->capacity;
        disk->entries = sim_grow(disk->entries, disk->capacity * sizeof *disk->entries);
    }
    struct seat_entry *entry = &disk->entries[disk->count++];
    *entry = (struct seat_entry){.bytes = sim_alloc(length), .length = length};
    memcpy(entry->bytes, bytes, length);
    entry->chain = sha256_of(bytes, length);
}

void seat_disk_copy(struct seat_disk *to, const struct seat_disk *from)
{
    for (uint64_t i = 0; i < to->count; i++) {
        sim_free(to->entries[i].bytes);
    }
    to->count = 0;
    for (uint64_t i = 0; i < from->count; i++) {
        disk_append(to, from->entries[i].bytes, from->entries[i].length);
    }
    to->next_command = from->next_command;
    to->epoch = from->epoch;
    to->last_run_ns = 0; /* as after a restore */
    to->etcd_cluster = 0;
}

static enum journal_status disk_lead(void *self, uint64_t last_index,
                                     const struct journal_leader *me, uint64_t *ret_epoch)
{
    struct seat *seat = self;
    assert(last_index == seat->disk.count);
    seat->disk.epoch++;
    if (me->epoch > seat->disk.epoch) {
        seat->disk.epoch = me->epoch;
    }
    *ret_epoch = seat->disk.epoch;
    return JOURNAL_OK;
}

static enum journal_status disk_append_none(void *self, uint64_t epoch,
                                            const struct journal_entry *entries, size_t count)
{
    (void)self;
    (void)epoch;
    (void)entries;
    (void)count;
    sim_fail("a broker on etcd appends to its disk's tail");
}

static enum journal_status disk_next(void *self, uint64_t index, struct journal_entry *ret_entry,
                                     int timeout_ms)
{
    const struct seat *seat = self;
    (void)timeout_ms;
    if (index > seat->disk.count) {
        return JOURNAL_UNAVAILABLE;
    }
    *ret_entry = (struct journal_entry){.index = index,
                                        .bytes = seat->disk.entries[index - 1].bytes,
                                        .length = seat->disk.entries[index - 1].length};
    return JOURNAL_OK;
}

static enum journal_status disk_leader(void *self, struct journal_leader *ret_leader)
{
    (void)self;
    (void)ret_leader;
    return JOURNAL_UNAVAILABLE;
}

static void disk_close(void *self)
{
    (void)self;
}

struct journal *seat_disk_open(struct seat *seat)
{
    static const struct journal_engine functions = {.lead = disk_lead,
                                                    .append = disk_append_none,
                                                    .next = disk_next,
                                                    .leader = disk_leader,
                                                    .destroy = disk_close};
    return journal_create(&functions, seat);
}

/* ---------------------------------------------------------------- writing */

static void check_disk(const struct seat *seat, const char *what)
{
    const struct seat_disk *disk = &seat->disk;
    struct exchange *exchange = seat->broker->exchange;
    struct journal_entry truth;
    oracle_follow();
    if (etcd_entry(disk->count, &truth) != JOURNAL_OK ||
        truth.length != disk->entries[disk->count - 1].length ||
        memcmp(truth.bytes, disk->entries[disk->count - 1].bytes, truth.length) != 0) {
        sim_fail("%s has an entry %" PRIu64 " that the log does not have", seat->process.name,
                 disk->count);
    }
    if (exchange_index(exchange) + 1 == disk->next_command) {
        const struct hash32 state = exchange_state_hash(exchange);
        oracle_compare(exchange_index(exchange), &state, what);
    }
}

static void commit_here(struct seat *seat, const struct group *group, size_t length,
                        const char *what)
{
    struct storage *store = &seat->broker->store;
    struct seat_disk *disk = &seat->disk;
    int64_t time_ns = draw_time(DICE_ORDER, seat->disk_least_ns, seat->disk_most_ns);
    if (chance(DICE_FAULTS, seat->disk_slow)) {
        time_ns = draw_time(DICE_FAULTS, 100 * SIM_MS, 4 * SIM_S);
        trace("the disk takes %.3f s", (double)time_ns / (double)SIM_S);
    }
    fibre_wait(time_ns);
    disk_append(disk, store->buffer, length);
    disk->next_command += group->command_count;
    disk->last_run_ns = clock_wall_ns();
    store->last = (struct journal_last){.index = disk->count,
                                        .chain = disk->entries[disk->count - 1].chain,
                                        .next_command = disk->next_command};
    store->table = store->last;
    store->frozen = 0;
    store->is_frozen_in = false;
    check_disk(seat, what);
}

/* Lets etcd forget the beginning of the log, as after 128 MiB of entries. */
static void let_cut(struct seat *seat)
{
    struct replicated_trim *trim = &seat->broker->store.trim;
    const uint64_t last = seat->disk.count;
    if (chance(DICE_FAULTS, seat->cuts)) {
        const uint64_t kept = draw(DICE_FAULTS, 60);
        trim->target = last > kept && last - kept > trim->target ? last - kept : trim->target;
    }
}

enum storage_status storage_commit(struct storage *store, const struct group *group)
{
    struct seat *seat = seat_present();
    size_t length = 0;
    assert(group->first_command == store->last.next_command);
    const enum storage_status status = replicated_append(store, group, &length);
    if (status != STORAGE_OK) {
        fault_happened(FAULT_JOURNAL);
        return status;
    }
    commit_here(seat, group, length, "leader's");
    let_cut(seat);
    replicated_trim(store, length);
    return STORAGE_OK;
}

bool storage_follow(struct storage *store, const struct group *group, size_t length)
{
    assert(group->first_command == store->last.next_command);
    commit_here(seat_present(), group, length, "follower's");
    return true;
}

/* The acts of an entry go into the audit log in its transaction. The broker that writes the entry
 * knows them; the oracle counts them when the entry is in. */
size_t __real_group_write_entry(const struct group *group, uint64_t index, uint64_t epoch,
                                const struct hash32 *previous, uint8_t *ret_bytes);
size_t __wrap_group_write_entry(const struct group *group, uint64_t index, uint64_t epoch,
                                const struct hash32 *previous, uint8_t *ret_bytes);
size_t __wrap_group_write_entry(const struct group *group, uint64_t index, uint64_t epoch,
                                const struct hash32 *previous, uint8_t *ret_bytes)
{
    const size_t length = __real_group_write_entry(group, index, epoch, previous, ret_bytes);
    const struct hash32 chain = sha256_of(ret_bytes, length);
    struct act *acts = calloc(group->effects.count + 1, sizeof *acts);
    size_t count = 0;
    assert(acts != NULL);
    for (size_t i = 0; i < group->effects.count; i++) {
        count += privileged_act_of(group, &group->effects.items[i], &acts[count]);
    }
    oracle_offers_acts(&chain, acts, count);
    free(acts);
    return length;
}

enum storage_status storage_write_acts(struct storage *store, int64_t log_ns, bool all)
{
    size_t count = refusals_take(store->refusals, clock_monotonic_ns(), all, store->refused);
    oracle_refuses(store->refused, count, log_ns);
    return STORAGE_OK;
}

/* The act of a start is the oracle's. */
void storage_note(struct storage *store, const struct act *act)
{
    (void)store;
    (void)act;
}

void config_limits_text(const struct exchange_limits *old, const struct exchange_limits *now,
                        char *ret_text, size_t size)
{
    (void)old;
    (void)now;
    (void)size;
    ret_text[0] = '\0';
}

void storage_save_space(struct storage *store, bool is_scarce)
{
    (void)store;
    (void)is_scarce;
}

size_t storage_genesis(const struct storage *store, uint8_t *ret_bytes, size_t capacity)
{
    return genesis_write(&store->genesis, ret_bytes, capacity);
}

/* ---------------------------------------------------------------- a start */

bool storage_open(const char *folder, const struct broker_config *config, bool adopt,
                  struct storage *ret_store, bool *ret_new, struct problem *ret_problem)
{
    (void)folder;
    (void)config;
    (void)adopt;
    (void)ret_store;
    (void)ret_new;
    (void)ret_problem;
    sim_fail("a seat opens its own storage");
}

bool storage_lead(struct storage *store, int64_t log_ns, struct problem *ret_problem)
{
    const struct journal_leader me = {.epoch = 0};
    (void)log_ns;
    (void)ret_problem;
    store->journal = seat_disk_open(seat_present());
    assert(store->journal != NULL);
    return journal_lead(store->journal, store->last.index, &me, &store->epoch) == JOURNAL_OK;
}

/* Whatever the disk has, its tables have. */
bool storage_catch_up(struct storage *store, struct exchange *exchange, struct problem *ret_problem)
{
    (void)store;
    (void)exchange;
    (void)ret_problem;
    return true;
}

void storage_close(struct storage *store)
{
    (void)store;
}

void storage_advise(struct problem *problem)
{
    (void)problem;
}

enum snapshot_found snapshot_newest(const struct snapshot_search *search,
                                    struct exchange **ret_exchange, struct snapshot_mark *ret_mark,
                                    struct problem *ret_problem)
{
    (void)search;
    (void)ret_exchange;
    (void)ret_mark;
    (void)ret_problem;
    return SNAPSHOT_NONE;
}

struct snapshots *snapshots_start(const char *database, const char *folder,
                                  const struct exchange_limits *limits, struct queue *requests)
{
    (void)database;
    (void)folder;
    (void)limits;
    (void)requests;
    return NULL;
}

bool snapshots_apply(sqlite3 *database, struct exchange *exchange, uint64_t first, uint64_t last,
                     struct problem *ret_problem)
{
    const struct seat_disk *disk = &seat_present()->disk;
    (void)database;
    for (uint64_t i = first; i <= last; i++) {
        if (replay_entry(exchange, disk->entries[i - 1].bytes, disk->entries[i - 1].length, NULL,
                         NULL, ret_problem) != REPLAY_OK) {
            return false;
        }
    }
    const struct hash32 state = exchange_state_hash(exchange);
    oracle_compare(exchange_index(exchange), &state, "replayed");
    return true;
}

/* ---------------------------------------------------------------- beside the disk */

/* No blobs are copied here, and nobody asks for the lead by a command. */
struct copy_follower *copy_follower_start(const struct copy_follower_config *config,
                                          struct problem *ret_problem)
{
    static char place;
    (void)config;
    (void)ret_problem;
    return (struct copy_follower *)(void *)&place;
}

void copy_follower_point(struct copy_follower *follower, const char *endpoint)
{
    (void)follower;
    (void)endpoint;
}

void copy_follower_stop(struct copy_follower **self)
{
    *self = NULL;
}

/* Nobody asks for what is in a ledger. */
struct reader_thread *reader_start(const struct reader_config *config)
{
    struct directory *directory = config->directory;
    directory_destroy(&directory);
    return NULL;
}

void reader_stop(struct reader_thread **self)
{
    (void)self;
}

bool trade_history_load(const char *database, struct exchange *exchange,
                        struct problem *ret_problem)
{
    (void)database;
    (void)ret_problem;
    return exchange_feed_open(exchange, 0);
}

void transfer_wish_rank(unsigned rank, char ret_wish[TRANSFER_WISH_SIZE])
{
    (void)snprintf(ret_wish, TRANSFER_WISH_SIZE, "rank %u", rank);
}

sqlite3 *ledger_store_database(struct ledger_store *store)
{
    (void)store;
    return NULL;
}

enum history_found history_mark_look(const char *folder, sqlite3 *ledger, bool adopts,
                                     struct problem *ret_problem)
{
    (void)folder;
    (void)ledger;
    (void)adopts;
    (void)ret_problem;
    return HISTORY_FITS;
}

bool balance_check(sqlite3 *database, const struct exchange *exchange, struct problem *ret_problem)
{
    (void)database;
    (void)exchange;
    (void)ret_problem;
    return true;
}

/* The records of brokers are for operators; no record decides what a journal does. */
struct membership *membership_enter(const struct membership_config *config,
                                    struct problem *ret_problem)
{
    static char place;
    (void)config;
    (void)ret_problem;
    return (struct membership *)(void *)&place;
}

void membership_tell(struct membership *membership)
{
    (void)membership;
}

bool etcd_mark_read(const char *folder, struct etcd_mark *ret_mark, struct problem *ret_problem)
{
    (void)folder;
    (void)ret_problem;
    *ret_mark = (struct etcd_mark){.cluster = seat_present()->disk.etcd_cluster};
    return true;
}

/* A seat's market is never recovered, so its journal always has the market's own id. */
const struct id128 *etcd_mark_journal(const struct etcd_mark *mark, const struct id128 *market)
{
    assert(id128_is_zero(&mark->journal));
    return market;
}

bool etcd_mark_write(const char *folder, const struct etcd_mark *mark, struct problem *ret_problem)
{
    (void)folder;
    (void)ret_problem;
    seat_present()->disk.etcd_cluster = mark->cluster;
    return true;
}

bool etcd_mark_remove(const char *folder, struct problem *ret_problem)
{
    (void)folder;
    (void)ret_problem;
    sim_fail("a seat leaves etcd");
}

bool etcd_mark_check_alone(const char *folder, bool adopt, struct problem *ret_problem)
{
    (void)folder;
    (void)adopt;
    (void)ret_problem;
    sim_fail("a seat is without etcd");
}
