/* Brokers write one journal through the rules of etcd_log.h on a slow model of etcd.
 *
 * The model loses requests and answers, executes copies late and twice, answers reads from an old
 * state, and is full at times. Brokers take over from one another, give up, and crash. Whatever
 * happens, an index once written never changes, the log has no gap, and what a broker was told is
 * in. No rule ever sees what it calls damage. */
#include "base/array.h"
#include "base/random.h"
#include "broker/storage/etcd/etcd_log.h"
#include "broker/storage/etcd/etcd_values.h"
#include "tests/support/etcd_model.h"
#include "tests/support/property_seed.h"
#include "tests/support/suite.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BROKERS = 3,
    ENTRIES = 900, /* of one world; then the world ends */
    ENTRY_BYTES = 24,
    LATE = 12,
    STEPS = 20000,
    WORLDS = 12,
    PATIENCE = 6 /* requests, until a broker gives up */
};

struct entry_text {
    char text[ENTRY_BYTES];
};

/* A copy of a request that is still under way. */
struct copy {
    uint8_t *bytes;
    size_t length;
    enum etcd_method method;
};

enum wish {
    WISH_NOTHING,
    WISH_OPEN,
    WISH_READ,
    WISH_LEAD,
    WISH_APPEND,
    WISH_CUT,
    WISH_LOOK,
    WISH_RESIGN
};

struct broker {
    struct etcd_log *log;
    enum wish wish;
    unsigned tries;
    bool is_open;
    struct entry_text disk[ENTRIES + 8]; /* entries 1.. */
    uint64_t last;
    struct entry_text group[ETCD_LOG_GROUP_MAX]; /* of an append that is not decided */
    size_t group_count;
};

struct world {
    struct random dice;
    struct etcd_model model, old; /* `old` answers reads that are out of date */
    struct id128 cluster;
    struct broker brokers[BROKERS];
    struct entry_text truth[ENTRIES + 8]; /* what was put first; "" for nothing yet */
    uint64_t truth_last;
    struct copy late[LATE];
    size_t late_count;
    bool is_calm;         /* no fault any more */
    uint64_t base, below; /* keys of entries before the base, at the last look */
    uint64_t names;       /* for entries */
    uint64_t met[8];      /* by journal_status */
    uint64_t acknowledged, executed_late, cuts, resigned;
};

static bool chance(struct world *world, unsigned per_hundred)
{
    return !world->is_calm && random_below(&world->dice, 100) < per_hundred;
}

/* ---- what must hold */

/* An entry that was deleted never comes back. */
static void check_deleted(struct world *world, uint64_t base)
{
    const struct etcd_key end = etcd_key_entry(&world->cluster, base);
    uint64_t below = 0;
    for (size_t i = 0; i < world->model.count; i++) {
        const char *key = world->model.keys[i].key;
        below += strstr(key, "/log/") != NULL && strcmp(key, end.text) < 0;
    }
    ck_assert_msg(base != world->base || below <= world->below,
                  "%" PRIu64 " entries are before the base, and %" PRIu64 " were", below,
                  world->below);
    world->base = base;
    world->below = below;
}

/* An index that was written keeps its bytes, and the log is a run without a gap. */
static void check_log(struct world *world)
{
    const struct etcd_key base_key = etcd_key_base(&world->cluster);
    const struct etcd_model_key *stored = etcd_model_find(&world->model, base_key.text);
    struct journal_base base;
    if (stored == NULL) {
        return;
    }
    ck_assert(etcd_base_read((struct etcd_bytes){stored->value, stored->length}, &base));
    check_deleted(world, base.index);
    uint64_t index = base.index;
    for (;; index++) {
        const struct etcd_key key = etcd_key_entry(&world->cluster, index);
        const struct etcd_model_key *entry = etcd_model_find(&world->model, key.text);
        if (entry == NULL) {
            break;
        }
        ck_assert_uint_le(index, ENTRIES + 7);
        if (index > world->truth_last) {
            ck_assert_uint_eq(index, world->truth_last + 1);
            memcpy(world->truth[index].text, entry->value, ENTRY_BYTES);
            world->truth_last = index;
        }
        ck_assert_msg(index == 0 ||
                          memcmp(world->truth[index].text, entry->value, ENTRY_BYTES) == 0,
                      "entry %" PRIu64 " was \"%s\" and is \"%s\"", index, world->truth[index].text,
                      (const char *)entry->value);
    }
    ck_assert_msg(index == world->truth_last + 1,
                  "the log ends at %" PRIu64 ", and went to %" PRIu64, index - 1,
                  world->truth_last);
}

/* ---- the network */

static void execute(struct world *world, struct etcd_model *model, const struct copy *request,
                    struct etcd_model_answer *answer)
{
    etcd_model_execute(model, request->method, request->bytes, request->length, answer);
    if (model == &world->model) {
        check_log(world);
    }
}

static void drop_late(struct world *world, size_t which)
{
    free(world->late[which].bytes);
    world->late[which] = world->late[--world->late_count];
}

static void keep_late(struct world *world, const struct copy *request)
{
    if (world->late_count == LATE) {
        drop_late(world, random_below(&world->dice, LATE));
    }
    struct copy copy = *request;
    copy.bytes = malloc(request->length + 1);
    ck_assert_ptr_nonnull(copy.bytes);
    memcpy(copy.bytes, request->bytes, request->length);
    world->late[world->late_count++] = copy;
}

static void deliver_late(struct world *world)
{
    static struct etcd_model_answer ignored;
    if (world->late_count == 0) {
        return;
    }
    const size_t which = random_below(&world->dice, world->late_count);
    execute(world, &world->model, &world->late[which], &ignored);
    world->executed_late++;
    if (random_below(&world->dice, 3) > 0) {
        drop_late(world, which); /* otherwise it comes once more */
    }
}

static enum grpc_outcome send(struct world *world, const struct copy *request,
                              struct etcd_answer *ret_answer)
{
    static struct etcd_model_answer answer;
    if (chance(world, 6)) {
        return GRPC_UNSENT;
    }
    if (chance(world, 8)) {
        if (chance(world, 70)) {
            keep_late(world, request);
        }
        return GRPC_LOST;
    }
    const bool is_read = !etcd_model_puts(request->method, request->bytes, request->length);
    if (chance(world, 10)) {
        keep_late(world, request);
    }
    execute(world, is_read && chance(world, 25) ? &world->old : &world->model, request, &answer);
    if (chance(world, 8)) {
        return GRPC_LOST;
    }
    if (answer.outcome == GRPC_ANSWERED) {
        ck_assert(etcd_answer_read(request->method, answer.bytes, answer.length, ret_answer));
        ck_assert_uint_eq(ret_answer->cluster, 77);
    }
    return answer.outcome;
}

/* ---- a broker */

static struct journal_entry entry_of(const struct entry_text *text, uint64_t index)
{
    return (struct journal_entry){
        .index = index, .bytes = (const uint8_t *)text->text, .length = ENTRY_BYTES};
}

static void crash(struct world *world, struct broker *broker)
{
    etcd_log_destroy(&broker->log);
    broker->log = etcd_log_create(&world->cluster);
    ck_assert_ptr_nonnull(broker->log);
    broker->wish = WISH_NOTHING;
    broker->is_open = false;
    broker->group_count = 0;
}

static void want_append(struct world *world, struct broker *broker)
{
    struct journal_entry entries[ETCD_LOG_GROUP_MAX];
    if (broker->group_count == 0) {
        broker->group_count = 1 + random_below(&world->dice, ETCD_LOG_GROUP_MAX);
        for (size_t i = 0; i < broker->group_count; i++) {
            memset(&broker->group[i], 0, sizeof broker->group[i]);
            (void)snprintf(broker->group[i].text, ENTRY_BYTES, "entry %" PRIu64, ++world->names);
        }
    }
    for (size_t i = 0; i < broker->group_count; i++) {
        entries[i] = entry_of(&broker->group[i], broker->last + 1 + i);
    }
    const enum journal_status status =
        etcd_log_append(broker->log, etcd_log_epoch(broker->log), entries, broker->group_count);
    ck_assert_int_eq(status, JOURNAL_OK);
    broker->wish = WISH_APPEND;
}

static void want_cut(struct world *world, struct broker *broker)
{
    const uint64_t from = etcd_log_base(broker->log)->index;
    const uint64_t index =
        broker->last > from ? from + random_below(&world->dice, broker->last - from + 1) : from;
    const struct journal_base base = {.index = index};
    ck_assert_int_eq(etcd_log_truncate(broker->log, etcd_log_epoch(broker->log), &base),
                     JOURNAL_OK);
    broker->wish = WISH_CUT;
}

static void want_open(struct broker *broker)
{
    const struct journal_base last = {.index = broker->last};
    const struct journal_entry none = {.index = 0};
    const struct journal_entry entry =
        broker->last > 0 ? entry_of(&broker->disk[broker->last], broker->last) : none;
    etcd_log_open(broker->log, &last, &entry);
    broker->wish = WISH_OPEN;
}

/* The own last entry is shown, unless the log begins after it. Old reads do not decide that. */
static void has_opened(struct broker *broker)
{
    struct journal_entry last;
    broker->is_open = true;
    if (broker->last == 0 || etcd_log_base(broker->log)->index > broker->last) {
        return;
    }
    ck_assert(etcd_log_entry(broker->log, broker->last, &last));
    ck_assert_uint_eq(last.length, ENTRY_BYTES);
    ck_assert_mem_eq(last.bytes, broker->disk[broker->last].text, ENTRY_BYTES);
}

/* Chooses what a broker does next. One that follows wants the lead now and then. */
static void choose(struct world *world, struct broker *broker)
{
    broker->tries = 0;
    if (!broker->is_open) {
        want_open(broker);
    } else if (etcd_log_epoch(broker->log) == 0) {
        broker->group_count = 0; /* another leads, and the log says what became of it */
        if (random_below(&world->dice, 4) > 0) {
            etcd_log_read(broker->log, broker->last + 1);
            broker->wish = WISH_READ;
        } else {
            const struct journal_leader me = {.broker = "broker"};
            etcd_log_lead(broker->log, broker->last, &me, random_u64(&world->dice));
            broker->wish = WISH_LEAD;
        }
    } else if (broker->group_count > 0 || random_below(&world->dice, 8) > 0) {
        want_append(world, broker);
    } else if (chance(world, 5)) {
        const struct journal_leader gone = {.epoch = etcd_log_epoch(broker->log), .broker = "b/0"};
        ck_assert_int_eq(etcd_log_resign(broker->log, gone.epoch, &gone), JOURNAL_OK);
        broker->wish = WISH_RESIGN;
    } else if (random_below(&world->dice, 2) == 0) {
        want_cut(world, broker);
    } else {
        etcd_log_look(broker->log);
        broker->wish = WISH_LOOK;
    }
}

/* A peer that has more gives its snapshot to one that truncation has left behind. */
static void take_snapshot(struct world *world, struct broker *broker)
{
    for (size_t i = 0; i < BROKERS; i++) {
        if (world->brokers[i].last > broker->last) {
            memcpy(broker->disk, world->brokers[i].disk, sizeof broker->disk);
            broker->last = world->brokers[i].last;
        }
    }
}

static void has_appended(struct world *world, struct broker *broker)
{
    for (size_t i = 0; i < broker->group_count; i++) {
        broker->last++;
        ck_assert_uint_le(broker->last, world->truth_last);
        ck_assert_str_eq(world->truth[broker->last].text, broker->group[i].text);
        broker->disk[broker->last] = broker->group[i];
    }
    world->acknowledged += broker->group_count;
    broker->group_count = 0;
}

static void has_read(struct world *world, struct broker *broker)
{
    struct journal_entry entry;
    while (etcd_log_entry(broker->log, broker->last + 1, &entry)) {
        ck_assert_uint_eq(entry.length, ENTRY_BYTES);
        ck_assert_mem_eq(entry.bytes, world->truth[broker->last + 1].text, ENTRY_BYTES);
        memcpy(broker->disk[++broker->last].text, entry.bytes, ENTRY_BYTES);
    }
}

/* Draws the consequences of what was decided. */
static void settle(struct world *world, struct broker *broker, enum journal_status status)
{
    const enum wish wish = broker->wish;
    world->met[status]++;
    ck_assert_msg(status != JOURNAL_CORRUPT && status != JOURNAL_TOO_LARGE, "wish %d: status %d",
                  (int)wish, (int)status);
    broker->wish = WISH_NOTHING;
    if (status == JOURNAL_BEHIND && wish == WISH_READ) {
        take_snapshot(world, broker);
    } else if (status != JOURNAL_OK) {
        return;
    }
    switch (wish) {
    case WISH_OPEN:
        has_opened(broker);
        break;
    case WISH_READ:
        has_read(world, broker);
        break;
    case WISH_LEAD:
        ck_assert_uint_eq(broker->last, world->truth_last); /* nothing is after our last entry */
        break;
    case WISH_APPEND:
        has_appended(world, broker);
        break;
    case WISH_CUT:
        world->cuts++;
        break;
    case WISH_RESIGN:
        ck_assert_uint_eq(etcd_log_epoch(broker->log), 0);
        world->resigned++;
        break;
    case WISH_LOOK:
    case WISH_NOTHING:
        break;
    }
}

static void step(struct world *world, struct broker *broker)
{
    struct etcd_answer answer;
    struct copy request;
    if (chance(world, 1)) {
        crash(world, broker);
    }
    if (broker->wish == WISH_NOTHING) {
        choose(world, broker);
    }
    request.bytes =
        (uint8_t *)(uintptr_t)etcd_log_request(broker->log, &request.method, &request.length);
    const enum grpc_outcome outcome = send(world, &request, &answer);
    if (!etcd_log_take(broker->log, outcome, &answer)) {
        settle(world, broker, etcd_log_status(broker->log));
    } else if (++broker->tries >= PATIENCE && !world->is_calm) {
        settle(world, broker, etcd_log_give_up(broker->log));
    }
}

/* ---- worlds */

static bool is_done(const struct world *world)
{
    return world->truth_last >= ENTRIES - ETCD_LOG_GROUP_MAX;
}

/* A broker can always go on when there are no faults. */
static void calm_down(struct world *world)
{
    struct broker *broker = &world->brokers[0];
    const uint64_t before = world->acknowledged;
    world->is_calm = true;
    world->model.is_full = false;
    for (unsigned i = 0; i < 2000 && world->acknowledged == before; i++) {
        step(world, broker);
    }
    ck_assert_uint_gt(world->acknowledged, before);
}

static void run(uint64_t seed, uint64_t totals[8], uint64_t *late, uint64_t *cuts)
{
    struct world *world = calloc(1, sizeof *world);
    ck_assert_ptr_nonnull(world);
    world->dice = random_seeded(seed);
    world->cluster.bytes[0] = 1;
    for (size_t i = 0; i < BROKERS; i++) {
        crash(world, &world->brokers[i]);
    }
    for (unsigned i = 0; i < STEPS && !is_done(world); i++) {
        if (chance(world, 5)) {
            world->old = world->model;
        }
        if (chance(world, 20)) {
            deliver_late(world);
        }
        world->model.is_full = world->model.is_full ? !chance(world, 10) : chance(world, 1);
        step(world, &world->brokers[random_below(&world->dice, BROKERS)]);
    }
    calm_down(world);
    for (unsigned i = 0; i < 8; i++) {
        totals[i] += world->met[i];
    }
    *late += world->executed_late;
    *cuts += world->cuts;
    ck_assert_uint_gt(world->acknowledged, 20);
    ck_assert_uint_gt(world->resigned, 0);
    for (size_t i = 0; i < BROKERS; i++) {
        etcd_log_destroy(&world->brokers[i].log);
    }
    while (world->late_count > 0) {
        drop_late(world, 0);
    }
    free(world);
}

START_TEST(nothing_acknowledged_is_lost_whatever_etcd_does)
{
    const uint64_t seed = property_seed(20261130);
    uint64_t met[8] = {0};
    uint64_t late = 0;
    uint64_t cuts = 0;
    for (uint64_t i = 0; i < WORLDS; i++) {
        run(seed + i, met, &late, &cuts);
    }
    printf("unknown %" PRIu64 ", deposed %" PRIu64 ", behind %" PRIu64 ", full %" PRIu64
           ", unavailable %" PRIu64 ", late copies %" PRIu64 ", cuts %" PRIu64 "\n",
           met[JOURNAL_UNKNOWN], met[JOURNAL_DEPOSED], met[JOURNAL_BEHIND], met[JOURNAL_FULL],
           met[JOURNAL_UNAVAILABLE], late, cuts);
    /* Each of the answers was met, so each was judged. */
    ck_assert_uint_gt(met[JOURNAL_UNKNOWN], 0);
    ck_assert_uint_gt(met[JOURNAL_DEPOSED], 0);
    ck_assert_uint_gt(met[JOURNAL_BEHIND], 0);
    ck_assert_uint_gt(met[JOURNAL_FULL], 0);
    ck_assert_uint_gt(late, 0);
    ck_assert_uint_gt(cuts, 0);
}
END_TEST

SUITE("etcd_log", NULL, NULL, TEST(nothing_acknowledged_is_lost_whatever_etcd_does))
