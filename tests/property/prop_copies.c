/* Three brokers hold the blobs of one market, one leads, and two copy from it over a network that
 * loses, repeats and reorders changes. Brokers start anew at any step, with or without what they
 * have not committed, and the lead changes to any of them. A slow model knows each fact that was
 * acknowledged, which is one that a follower had confirmed. At each end of a reign, when all have
 * talked, the three stores have the same rows, and none of the acknowledged facts is missing. */
#include "base/random.h"
#include "base/sha256.h"
#include "broker/blob/blob_forget.h"
#include "broker/copies/copy_fetch.h"
#include "broker/copies/copy_log.h"
#include "broker/copies/copy_peers.h"
#include "broker/copies/copy_store.h"
#include "tests/support/property_seed.h"
#include "tests/support/suite.h"

#include <check.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    BROKERS = 3,
    BLOBS = 12,
    ACCOUNTS = 3,
    REIGNS = 24,
    STEPS = 24, /* of one reign */
    PAGE = 3,
    SIZE = 40, /* of blob i: SIZE + i bytes */
};

struct node {
    char folder[64];
    struct blob_store *store;
    struct copy_log *log;
    uint64_t from, to; /* as a follower that is far behind has them */
};

/* A fact is what the last command did to one owner's blob, and whether it was acknowledged. */
struct fact {
    enum { ABSENT, OWNED, CONDEMNED } state;
    uint64_t version;  /* 0: acknowledged, else it waits for a follower */
    unsigned possible; /* states that may come out of a change of the lead: bits */
};

static struct {
    struct node nodes[BROKERS];
    size_t leader;
    uint64_t epoch;
    struct fact facts[ACCOUNTS][BLOBS];
    struct copy_peers peers;
    struct random dice;
    int64_t now_ns;
    unsigned acknowledged, changed_leads, offered, healed;
} world;

static uint32_t roll(uint32_t sides)
{
    return (uint32_t)random_below(&world.dice, sides);
}

static size_t bytes_of(size_t blob, uint8_t ret_bytes[SIZE + BLOBS])
{
    memset(ret_bytes, (int)blob + 1, SIZE + blob);
    return SIZE + blob;
}

static struct hash32 hash_of(size_t blob)
{
    uint8_t bytes[SIZE + BLOBS];
    const size_t length = bytes_of(blob, bytes);
    return sha256_of(bytes, length);
}

static void ok(struct node *node, enum blob_status status)
{
    ck_assert_msg(status == BLOB_OK, "%d: %s", (int)status, blob_store_error(node->store));
}

static void open_node(struct node *node, uint64_t role)
{
    struct problem problem;
    const struct blob_store_config config = {
        .folder = node->folder, .quota_bytes = 1 << 20, .size_bytes = 1 << 20};
    blob_store_close(&node->store);
    ck_assert_msg(blob_store_open(&config, &node->store, &problem), "%s", problem.text);
    node->log = blob_store_copies(node->store);
    node->from = node->to = 0;
    ok(node, copy_store_begin(node->store, role));
}

/* ---------------------------------------------------------------- commands of the leader */

static struct node *leader(void)
{
    return &world.nodes[world.leader];
}

static void put_blob(uint32_t account, size_t blob)
{
    uint8_t bytes[SIZE + BLOBS];
    uint64_t stored = 0;
    bool is_complete = false;
    const size_t length = bytes_of(blob, bytes);
    const struct blob_chunk chunk = {
        .account = account, .hash = hash_of(blob), .size = length, .data = bytes, .length = length};
    ok(leader(), blob_store_put(leader()->store, &chunk, 0, &stored, &is_complete));
    ck_assert(is_complete);
}

static int state_in(struct node *node, uint32_t account, size_t blob)
{
    const struct hash32 hash = hash_of(blob);
    return blob_store_owns(node->store, account, &hash) == BLOB_OK    ? OWNED
           : blob_store_lends(node->store, account, &hash) == BLOB_OK ? CONDEMNED
                                                                      : ABSENT;
}

static void command(void)
{
    const uint32_t account = roll(ACCOUNTS);
    const size_t blob = roll(BLOBS);
    const struct hash32 hash = hash_of(blob);
    struct node *node = leader();
    uint64_t bytes = 0;
    ok(node, blob_store_begin(node->store));
    switch (roll(4)) {
    case 0:
    case 1:
        put_blob(account, blob);
        break;
    case 2:
        ok(node, blob_forget_condemn(node->store, account, &hash, 1000, &bytes));
        break;
    default:
        ok(node, blob_forget_remove(node->store, account, &hash, &bytes));
        break;
    }
    if (roll(10) == 0) {
        blob_store_undo(node->store);
        return;
    }
    ok(node, blob_store_commit(node->store));
    struct fact *fact = &world.facts[account][blob];
    fact->state = state_in(node, account, blob);
    fact->version = copy_log_last(node->log);
    fact->possible |= 1U << fact->state;
}

/* ---------------------------------------------------------------- copying */

/* Writes one change as the thread of a follower does, after the bytes that it names. */
static void take_change(struct node *node, const struct copy_change *change)
{
    struct copy_facts facts;
    if (copy_store_names_blob(change, &facts) && copy_store_lacks(node->store, &facts.hash)) {
        uint8_t bytes[SIZE + BLOBS];
        size_t length = 0;
        uint64_t size = 0;
        if (blob_store_get(leader()->store, &facts.hash, 0, sizeof bytes, bytes, &length, &size) ==
            BLOB_OK) {
            ok(node, copy_fetch_put(node->store, &facts.hash, bytes, length));
        }
    }
    ok(node, copy_store_take(node->store, change));
}

static void shuffle(struct copy_change *changes, int count)
{
    for (int i = count - 1; i > 0; i--) {
        const int other = (int)roll((uint32_t)i + 1);
        const struct copy_change change = changes[i];
        changes[i] = changes[other];
        changes[other] = change;
    }
}

/* Takes a page of changes above `after`. Returns the version that it reaches, or `after` when the
 * page was lost, or the broker ended before its commit. */
static uint64_t take_page(struct node *node, uint64_t after, uint64_t until, bool sets_position)
{
    struct copy_change changes[PAGE];
    const uint64_t last = copy_log_last(leader()->log);
    const uint64_t end = until < last ? until : last;
    const int count = after >= end ? 0 : copy_log_read(leader()->log, after, end, PAGE, changes);
    ck_assert_int_ge(count, 0);
    const uint64_t upto = after >= end ? after : count < PAGE ? end : changes[PAGE - 1].version;
    if (roll(8) == 0) {
        return after;
    }
    shuffle(changes, count);
    ok(node, blob_store_begin(node->store));
    for (int i = 0; i < count; i++) {
        take_change(node, &changes[i]);
        if (roll(4) == 0) { /* twice */
            take_change(node, &changes[roll((uint32_t)i + 1)]);
        }
    }
    if (sets_position) {
        ck_assert(copy_log_set_position(node->log, upto));
    }
    if (roll(12) == 0) {
        blob_store_undo(node->store);
        ck_assert(!sets_position || copy_log_position(node->log) <= after);
        if (sets_position && roll(2) == 0) {
            open_node(node, UINT64_MAX);
        }
        return after;
    }
    ok(node, blob_store_commit(node->store));
    return upto;
}

/* Notes what a follower says that it has. */
static void confirm(size_t place)
{
    struct node *node = &world.nodes[place];
    char name[16];
    bool is_new;
    (void)snprintf(name, sizeof name, "broker %zu", place);
    (void)copy_peers_hear(&world.peers, name, copy_log_position(node->log), node->from, node->to,
                          world.now_ns, &is_new);
    for (uint32_t account = 0; account < ACCOUNTS; account++) {
        for (size_t blob = 0; blob < BLOBS; blob++) {
            struct fact *fact = &world.facts[account][blob];
            if (fact->version > 0 && copy_peers_have(&world.peers, fact->version, 1)) {
                fact->possible = 1U << fact->state;
                fact->version = 0;
                world.acknowledged++;
            }
        }
    }
}

static void offer(struct node *node)
{
    struct copy_change offers[PAGE];
    uint64_t after = 0;
    int count = PAGE;
    ck_assert(copy_log_offers_after(leader()->log, copy_version_epoch(copy_log_position(node->log)),
                                    &after));
    while (after != UINT64_MAX && count == PAGE) {
        count = copy_log_read(node->log, after, copy_version_first(world.epoch) - 1, PAGE, offers);
        ck_assert_int_ge(count, 0);
        ok(leader(), blob_store_begin(leader()->store));
        for (int i = 0; i < count; i++) {
            bool is_news = false;
            ok(leader(), copy_store_accept(leader()->store, &offers[i], &is_news));
            world.offered += is_news;
            after = offers[i].version;
        }
        ok(leader(), blob_store_commit(leader()->store));
    }
}

/* Gives the leader bytes that it lost, or never had, from a broker that has them. */
static void heal(struct node *node, struct node *from)
{
    struct hash32 lost[BLOBS];
    uint64_t sizes[BLOBS];
    const int count = copy_log_lost(node->log, &(struct hash32){{0}}, BLOBS, lost, sizes);
    ck_assert_int_ge(count, 0);
    for (int i = 0; i < count; i++) {
        uint8_t bytes[SIZE + BLOBS];
        size_t length = 0;
        uint64_t size = 0;
        if (blob_store_get(from->store, &lost[i], 0, sizeof bytes, bytes, &length, &size) ==
            BLOB_OK) {
            ok(node, blob_store_begin(node->store));
            ok(node, copy_fetch_put(node->store, &lost[i], bytes, length));
            ok(node, blob_store_commit(node->store));
            world.healed++;
        }
    }
}

/* One turn of a follower: new changes first and old ones after them, when it is far behind. */
static void follow(size_t place)
{
    struct node *node = &world.nodes[place];
    const uint64_t position = copy_log_position(node->log);
    if (node->to == 0 && position < copy_log_last(leader()->log) && roll(3) == 0) {
        node->from = node->to = copy_log_last(leader()->log);
    }
    if (node->to > 0) {
        node->to = take_page(node, node->to, UINT64_MAX, false);
        const uint64_t upto = take_page(node, position, node->from, false);
        const bool is_end = upto >= node->from;
        ok(node, blob_store_begin(node->store));
        ck_assert(copy_log_set_position(node->log, is_end ? node->to : upto));
        ok(node, blob_store_commit(node->store));
        node->from = is_end ? 0 : node->from;
        node->to = is_end ? 0 : node->to;
    } else {
        (void)take_page(node, position, UINT64_MAX, true);
    }
    confirm(place);
}

/* ---------------------------------------------------------------- what has to hold */

static void dump(struct node *node, const char *query, char *ret_text, size_t capacity)
{
    char path[128];
    sqlite3 *database = NULL;
    sqlite3_stmt *row = NULL;
    size_t length = 0;
    (void)snprintf(path, sizeof path, "%s/blobs.db", node->folder);
    ck_assert_int_eq(sqlite3_open_v2(path, &database, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_prepare_v2(database, query, -1, &row, NULL), SQLITE_OK);
    ret_text[0] = '\0';
    while (sqlite3_step(row) == SQLITE_ROW) {
        const int written = snprintf(ret_text + length, capacity - length, "%s\n",
                                     (const char *)sqlite3_column_text(row, 0));
        length += (size_t)written;
        ck_assert_uint_lt(length, capacity);
    }
    (void)sqlite3_finalize(row);
    (void)sqlite3_close(database);
}

static void check_same(void)
{
    static const char *const queries[] = {
        "SELECT account || hex(hash) FROM owner ORDER BY 1",
        "SELECT account || hex(hash) || since_s FROM condemned ORDER BY 1",
        "SELECT account || ' ' || bytes FROM usage WHERE bytes > 0 ORDER BY 1",
        "SELECT provider || hex(job) || hex(hash) || account || size FROM pending ORDER BY 1",
        "SELECT hex(hash) || size || hex(bytes) FROM blob ORDER BY 1",
        "SELECT hex(hash) FROM lost ORDER BY 1",
        "SELECT kind || hex(key) || version || ' ' || stamp || hex(value) FROM copy ORDER BY 1",
    };
    static char first[64 << 10];
    static char other[64 << 10];
    for (size_t q = 0; q < sizeof queries / sizeof queries[0]; q++) {
        dump(leader(), queries[q], first, sizeof first);
        for (size_t i = 0; i < BROKERS; i++) {
            dump(&world.nodes[i], queries[q], other, sizeof other);
            ck_assert_msg(strcmp(first, other) == 0, "%s: broker %zu leads with\n%sand %zu has\n%s",
                          queries[q], world.leader, first, i, other);
        }
    }
}

/* A fact that no follower had confirmed may be lost, or not. A confirmed one is not lost. */
static void check_facts(void)
{
    for (uint32_t account = 0; account < ACCOUNTS; account++) {
        for (size_t blob = 0; blob < BLOBS; blob++) {
            struct fact *fact = &world.facts[account][blob];
            const int found = state_in(leader(), account, blob);
            ck_assert_msg(((fact->possible >> found) & 1) != 0,
                          "account %u, blob %zu: %d is none of the states %x", account, blob, found,
                          fact->possible);
            *fact = (struct fact){.state = found, .possible = 1U << found};
        }
    }
}

static void settle(void)
{
    for (size_t i = 0; i < BROKERS; i++) {
        if (i != world.leader) {
            offer(&world.nodes[i]);
        }
    }
    for (unsigned turn = 0; turn < 3; turn++) {
        for (size_t i = 0; i < BROKERS; i++) {
            struct node *node = &world.nodes[i];
            if (i != world.leader) {
                heal(leader(), node);
                heal(node, leader());
            }
            while (i != world.leader &&
                   copy_log_position(node->log) < copy_log_last(leader()->log)) {
                follow(i);
            }
        }
    }
    check_facts();
    check_same();
}

static void new_leader(void)
{
    const size_t next = roll(BROKERS);
    world.changed_leads += next != world.leader;
    world.epoch++;
    world.leader = next;
    world.peers = (struct copy_peers){.count = 0};
    for (size_t i = 0; i < ACCOUNTS * BLOBS; i++) { /* nobody will acknowledge these any more */
        world.facts[i / BLOBS][i % BLOBS].version = 0;
    }
    for (size_t i = 0; i < BROKERS; i++) {
        open_node(&world.nodes[i], i == next ? world.epoch : UINT64_MAX);
    }
}

static void begin(void)
{
    world.dice = random_seeded(property_seed(4));
    for (size_t i = 0; i < ACCOUNTS * BLOBS; i++) {
        world.facts[i / BLOBS][i % BLOBS].possible = 1U << ABSENT;
    }
    for (size_t i = 0; i < BROKERS; i++) {
        (void)snprintf(world.nodes[i].folder, sizeof world.nodes[i].folder,
                       "/tmp/bourse-copies-XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(world.nodes[i].folder));
    }
}

static void end(void)
{
    for (size_t i = 0; i < BROKERS; i++) {
        blob_store_close(&world.nodes[i].store);
        const pid_t pid = fork();
        if (pid == 0) {
            execlp("rm", "rm", "-rf", world.nodes[i].folder, (char *)NULL);
            _exit(127);
        }
        (void)waitpid(pid, NULL, 0);
    }
}

START_TEST(what_a_follower_confirmed_outlives_every_change_of_the_lead)
{
    for (unsigned reign = 0; reign < REIGNS; reign++) {
        new_leader();
        settle();
        for (unsigned step = 0; step < STEPS; step++) {
            const uint32_t what = roll(6);
            world.now_ns += 1000000;
            if (what < 3) {
                command();
            } else if (what < 5) {
                const size_t other = (world.leader + 1 + roll(2)) % BROKERS;
                follow(other);
            } else if (roll(4) == 0) {
                open_node(&world.nodes[(world.leader + 1 + roll(2)) % BROKERS], UINT64_MAX);
            }
        }
    }
    new_leader();
    settle();
    printf("%u acknowledged, %u changes of the lead, %u offers taken, %u blobs healed\n",
           world.acknowledged, world.changed_leads, world.offered, world.healed);
    ck_assert_uint_gt(world.acknowledged, 40);
    ck_assert_uint_gt(world.offered, 2);
    ck_assert_uint_gt(world.healed, 1);
}
END_TEST

SUITE("copies", begin, end, TEST(what_a_follower_confirmed_outlives_every_change_of_the_lead))
