/* The log of changes, what is applied of it, and what followers have confirmed. prop_copies has the
 * same with a network. */
#include "base/checked.h"
#include "broker/blob/blob_forget.h"
#include "broker/copies/copy_fetch.h"
#include "broker/copies/copy_log.h"
#include "broker/copies/copy_peers.h"
#include "broker/copies/copy_store.h"
#include "tests/support/blob_store_play.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

enum { MANY = 16 };

static struct hash32 put_text(uint32_t account, const char *text)
{
    const struct hash32 hash = sha256_of(text, strlen(text));
    uint64_t stored = 0;
    bool is_complete = false;
    ck_assert_int_eq(put(account, hash, text, strlen(text), 0, strlen(text), &stored, &is_complete),
                     BLOB_OK);
    ck_assert(is_complete);
    return hash;
}

static struct copy_log *begin(uint64_t role)
{
    ck_assert_int_eq(copy_store_begin(store, role), BLOB_OK);
    return blob_store_copies(store);
}

static int read_changes(struct copy_log *log, struct copy_change ret_changes[MANY])
{
    return copy_log_read(log, 0, UINT64_MAX, MANY, ret_changes);
}

START_TEST(a_store_that_was_filled_before_tells_all_that_it_has)
{
    struct copy_change changes[MANY];
    struct copy_facts facts;
    const struct hash32 hash = put_text(ALICE, "hello");
    put_text(BOB, "hello");
    struct copy_log *log = blob_store_copies(store);
    ck_assert_int_eq(read_changes(log, changes),
                     0); /* nobody copies from a broker without a cluster */
    reopen(1 << 20);
    log = begin(7);
    ck_assert_int_eq(read_changes(log, changes), 3);
    ck_assert_int_eq(changes[0].kind, COPY_REIGN);
    for (int i = 1; i < 3; i++) {
        ck_assert(copy_store_names_blob(&changes[i], &facts));
        ck_assert(hash32_equal(&facts.hash, &hash));
        ck_assert_uint_eq(facts.size, 5);
        ck_assert_uint_eq(copy_version_epoch(changes[i].version), 7);
    }
    ck_assert_uint_eq(copy_log_last(log), changes[2].version);
    put_text(ALICE, "more");
    ck_assert_uint_eq(copy_log_last(log), changes[2].version + 1);
}
END_TEST

START_TEST(a_position_counts_from_the_commit_on)
{
    struct copy_log *log = begin(UINT64_MAX);
    ck_assert_int_eq(blob_store_begin(store), BLOB_OK);
    ck_assert(copy_log_set_position(log, 50));
    ck_assert_uint_eq(copy_log_position(log), 0);
    blob_store_undo(store);
    ck_assert_uint_eq(copy_log_position(log), 0);
    ck_assert_int_eq(blob_store_begin(store), BLOB_OK);
    ck_assert(copy_log_set_position(log, 60));
    ck_assert_int_eq(blob_store_commit(store), BLOB_OK);
    ck_assert_uint_eq(copy_log_position(log), 60);
    reopen(1 << 20);
    ck_assert_uint_eq(copy_log_position(begin(UINT64_MAX)), 60);
}
END_TEST

START_TEST(a_leader_is_as_far_as_its_last_change_and_a_reign_says_where_it_began)
{
    uint64_t after = 0;
    (void)begin(3);
    put_text(ALICE, "one");
    reopen(1 << 20);
    struct copy_log *log = begin(UINT64_MAX);
    const uint64_t position = copy_log_position(log);
    ck_assert_uint_eq(position, copy_version_first(3) + 2);
    reopen(1 << 20);
    log = begin(5);
    ck_assert(copy_log_offers_after(log, 3, &after));
    ck_assert_uint_eq(after, position);
    ck_assert(copy_log_offers_after(log, 5, &after));
    ck_assert_uint_eq(after, UINT64_MAX);
}
END_TEST

START_TEST(what_is_gone_is_told_for_a_week)
{
    struct copy_change changes[MANY];
    uint64_t bytes = 0;
    const int64_t now_s = 2000000000;
    struct copy_log *log = begin(2);
    const struct hash32 hash = put_text(ALICE, "one");
    copy_log_set_time(log, now_s);
    ck_assert_int_eq(blob_store_begin(store), BLOB_OK);
    ck_assert_int_eq(blob_forget_condemn(store, ALICE, &hash, now_s, &bytes), BLOB_OK);
    ck_assert_int_eq(blob_forget_remove(store, ALICE, &hash, &bytes), BLOB_OK);
    ck_assert_int_eq(blob_store_commit(store), BLOB_OK);
    const uint64_t gone = copy_log_last(log);
    copy_log_set_time(log, now_s + COPY_GONE_KEPT_S);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(blob_store_begin(store), BLOB_OK);
        ck_assert(copy_log_trim(log));
        ck_assert_int_eq(blob_store_commit(store), BLOB_OK);
        ck_assert_int_eq(read_changes(log, changes), i == 0 ? 2 : 1);
        ck_assert_uint_eq(copy_log_floor(log), i == 0 ? 0 : gone);
        copy_log_set_time(log, now_s + COPY_GONE_KEPT_S + 1);
    }
    reopen(1 << 20);
    ck_assert_uint_eq(copy_log_floor(blob_store_copies(store)), gone);
}
END_TEST

START_TEST(a_broker_that_begins_anew_keeps_the_bytes_until_it_knows_who_owns_them)
{
    struct copy_facts facts = {.account = ALICE, .size = 3};
    size_t removed = 0;
    (void)begin(2);
    const struct hash32 kept = put_text(ALICE, "one");
    const struct hash32 dropped = put_text(BOB, "two");
    reopen(1 << 20);
    struct copy_log *log = begin(UINT64_MAX);
    facts.hash = kept;
    struct copy_change change = copy_change_of(COPY_OWNER, &facts);
    change.version = change.stamp = copy_version_first(9) + 4;
    ck_assert_int_eq(blob_store_begin(store), BLOB_OK);
    ck_assert_int_eq(copy_store_begin_anew(store), BLOB_OK);
    ck_assert_int_eq(blob_store_commit(store), BLOB_OK);
    ck_assert_uint_eq(copy_log_position(log), 0);
    ck_assert_int_eq(blob_store_owns(store, ALICE, &kept), BLOB_NOT_FOUND);
    ck_assert(!copy_store_lacks(store, &kept));
    ck_assert_int_eq(blob_store_begin(store), BLOB_OK);
    ck_assert_int_eq(copy_store_take(store, &change), BLOB_OK);
    ck_assert_int_eq(copy_store_sweep(store, 10, &removed), BLOB_OK);
    ck_assert_int_eq(blob_store_commit(store), BLOB_OK);
    ck_assert_uint_eq(removed, 1);
    ck_assert_int_eq(blob_store_owns(store, ALICE, &kept), BLOB_OK);
    ck_assert_int_eq(usage(ALICE), 3);
    ck_assert_int_eq(blob_store_find(store, &dropped), BLOB_NOT_FOUND);
}
END_TEST

START_TEST(a_blob_without_bytes_is_lost_until_they_come)
{
    const struct hash32 hash = sha256_of("late", 4);
    const struct copy_facts facts = {.account = ALICE, .hash = hash, .size = 4};
    struct hash32 lost[MANY];
    uint64_t sizes[MANY];
    struct copy_log *log = begin(UINT64_MAX);
    struct copy_change change = copy_change_of(COPY_OWNER, &facts);
    change.version = change.stamp = copy_version_first(1) + 1;
    ck_assert_int_eq(blob_store_begin(store), BLOB_OK);
    ck_assert_int_eq(copy_store_take(store, &change), BLOB_OK);
    ck_assert_int_eq(blob_store_commit(store), BLOB_OK);
    ck_assert_int_eq(copy_log_lost(log, &(struct hash32){{0}}, MANY, lost, sizes), 1);
    ck_assert(hash32_equal(&lost[0], &hash));
    ck_assert_uint_eq(sizes[0], 4);
    ck_assert_int_eq(blob_store_begin(store), BLOB_OK);
    ck_assert_int_eq(copy_fetch_put(store, &hash, (const uint8_t *)"lade", 4), BLOB_WRONG_HASH);
    ck_assert_int_eq(copy_fetch_put(store, &hash, (const uint8_t *)"late", 4), BLOB_OK);
    ck_assert_int_eq(blob_store_commit(store), BLOB_OK);
    ck_assert_int_eq(copy_log_lost(log, &(struct hash32){{0}}, MANY, lost, sizes), 0);
    ck_assert_int_eq(usage(ALICE), 4);
}
END_TEST

START_TEST(a_change_whose_key_is_too_short_says_nothing)
{
    struct copy_facts facts = {.account = 1, .size = 9};
    struct copy_change change = copy_change_of(COPY_OWNER, &facts);
    ck_assert(copy_change_read(&change, &facts));
    change.key_length--;
    ck_assert(!copy_change_read(&change, &facts));
    change.key_length++;
    change.value_length--;
    ck_assert(!copy_change_read(&change, &facts));
    change.value_length = 0;
    ck_assert(copy_change_read(&change, &facts));
    ck_assert(facts.is_gone);
    change.kind = (enum copy_kind)99;
    ck_assert(!copy_change_read(&change, &facts));
}
END_TEST

START_TEST(a_follower_that_is_far_behind_confirms_what_is_new)
{
    static struct copy_peers peers;
    const struct hash32 hash = sha256_of("x", 1);
    char text[200];
    bool is_new = false;
    const int64_t later_ns = (COPY_SILENT_MS + 2000) * NS_PER_MS;
    copy_peers_text(&peers, 5, 0, text, sizeof text);
    ck_assert_str_eq(text, "no broker follows this one");
    ck_assert(copy_peers_have(&peers, 5, 0));
    const size_t place = copy_peers_hear(&peers, "rank 1", 10, 100, 120, 0, &is_new);
    ck_assert(is_new);
    ck_assert(copy_peers_have(&peers, 10, 1));
    ck_assert(!copy_peers_have(&peers, 11, 1));
    ck_assert(!copy_peers_have(&peers, 100, 1));
    ck_assert(copy_peers_have(&peers, 101, 1));
    ck_assert(copy_peers_have(&peers, 120, 1));
    ck_assert(!copy_peers_have(&peers, 121, 1));
    ck_assert(!copy_peers_have(&peers, 101, 2));
    ck_assert(copy_peers_may_have(&peers, &hash, 0));
    copy_peers_lack(&peers, place, &hash);
    ck_assert(!copy_peers_may_have(&peers, &hash, 0));
    copy_peers_text(&peers, 121, later_ns, text, sizeof text);
    ck_assert_str_eq(text, "rank 1 was silent for 7 s");
    (void)copy_peers_hear(&peers, "rank 1", 10, 0, 0, later_ns, &is_new);
    ck_assert(is_new);
    ck_assert(copy_peers_may_have(&peers, &hash, later_ns)); /* it may have found the blob */
}
END_TEST

SUITE("copies", setup, teardown, TEST(a_store_that_was_filled_before_tells_all_that_it_has),
      TEST(a_position_counts_from_the_commit_on),
      TEST(a_leader_is_as_far_as_its_last_change_and_a_reign_says_where_it_began),
      TEST(what_is_gone_is_told_for_a_week),
      TEST(a_broker_that_begins_anew_keeps_the_bytes_until_it_knows_who_owns_them),
      TEST(a_blob_without_bytes_is_lost_until_they_come),
      TEST(a_change_whose_key_is_too_short_says_nothing),
      TEST(a_follower_that_is_far_behind_confirms_what_is_new))
