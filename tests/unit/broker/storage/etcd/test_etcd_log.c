/* Each rule of the journal on etcd, one by one: what is sent, and what an answer means. */
#include "broker/storage/etcd/etcd_log.h"

#include "base/cleanup.h"
#include "broker/storage/etcd/etcd_values.h"
#include "tests/support/etcd_model.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

static const struct id128 market = {{7}};
static const struct journal_leader somebody = {.broker = "b", .address = "tcp://b:1"};

static struct etcd_model model;
static struct etcd_model_answer last_answer;

static void setup(void)
{
    model = (struct etcd_model){.count = 0};
}

/* Sends the present request to the model once. */
static bool send(struct etcd_log *log)
{
    enum etcd_method method;
    size_t length;
    struct etcd_answer answer;
    const uint8_t *request = etcd_log_request(log, &method, &length);
    etcd_model_execute(&model, method, request, length, &last_answer);
    if (last_answer.outcome == GRPC_ANSWERED) {
        ck_assert(etcd_answer_read(method, last_answer.bytes, last_answer.length, &answer));
    }
    return etcd_log_take(log, last_answer.outcome, &answer);
}

static enum journal_status finish(struct etcd_log *log)
{
    while (send(log)) {
    }
    return etcd_log_status(log);
}

static struct journal_entry entry(uint64_t index, const char *text)
{
    return (struct journal_entry){
        .index = index, .bytes = (const uint8_t *)text, .length = strlen(text)};
}

static void open_log(struct etcd_log *log)
{
    const struct journal_base none = {.index = 0};
    const struct journal_entry nothing = {.index = 0};
    etcd_log_open(log, &none, &nothing);
    ck_assert_int_eq(finish(log), JOURNAL_OK);
}

static struct etcd_log *leading(uint64_t last, uint64_t mark)
{
    struct etcd_log *log = etcd_log_create(&market);
    ck_assert_ptr_nonnull(log);
    open_log(log);
    etcd_log_lead(log, last, &somebody, mark);
    ck_assert_int_eq(finish(log), JOURNAL_OK);
    return log;
}

static enum journal_status append(struct etcd_log *log, uint64_t index, const char *text)
{
    const struct journal_entry one = entry(index, text);
    const enum journal_status status = etcd_log_append(log, etcd_log_epoch(log), &one, 1);
    return status == JOURNAL_OK ? finish(log) : status;
}

START_TEST(a_log_is_made_once_and_appended_to)
{
    CLEANUP(etcd_log_destroy) struct etcd_log *log = leading(0, 1);
    ck_assert_uint_eq(etcd_log_epoch(log), 1);
    ck_assert_int_eq(append(log, 1, "one"), JOURNAL_OK);
    ck_assert_int_eq(append(log, 2, "two"), JOURNAL_OK);
    struct journal_entry read;
    etcd_log_read(log, 1);
    ck_assert_int_eq(finish(log), JOURNAL_OK);
    ck_assert(etcd_log_entry(log, 2, &read));
    ck_assert_mem_eq(read.bytes, "two", 3);
    ck_assert(!etcd_log_entry(log, 3, &read));
    etcd_log_read(log, 3);
    ck_assert_int_eq(finish(log), JOURNAL_UNAVAILABLE);
    open_log(log); /* again: nothing is made anew */
    etcd_log_read(log, 1);
    ck_assert_int_eq(finish(log), JOURNAL_OK);
}
END_TEST

START_TEST(a_log_may_begin_where_a_folder_ends)
{
    CLEANUP(etcd_log_destroy) struct etcd_log *log = etcd_log_create(&market);
    const struct journal_base last = {.index = 41, .chain = {{5}}};
    const struct journal_entry its = entry(41, "the 41st");
    etcd_log_open(log, &last, &its);
    ck_assert_int_eq(finish(log), JOURNAL_OK);
    const struct journal_leader from_nine = {.epoch = 9};
    etcd_log_lead(log, 41, &from_nine, 1);
    ck_assert_int_eq(finish(log), JOURNAL_OK);
    ck_assert_uint_eq(etcd_log_epoch(log), 9); /* not below the folder's */
    ck_assert_int_eq(append(log, 42, "the 42nd"), JOURNAL_OK);
    etcd_log_read(log, 40);
    ck_assert_int_eq(finish(log), JOURNAL_BEHIND);
}
END_TEST

/* A read may be answered by a member that is behind, so it cannot say that an entry is gone. */
START_TEST(who_opens_the_log_is_shown_its_last_entry)
{
    CLEANUP(etcd_log_destroy) struct etcd_log *first = leading(0, 1);
    struct journal_entry read;
    ck_assert_int_eq(append(first, 1, "one"), JOURNAL_OK);
    ck_assert_int_eq(append(first, 2, "two"), JOURNAL_OK);
    CLEANUP(etcd_log_destroy) struct etcd_log *second = etcd_log_create(&market);
    const struct journal_entry its = entry(2, "2, as the folder has it");
    etcd_log_open(second, &(struct journal_base){.index = 2}, &its);
    ck_assert_int_eq(finish(second), JOURNAL_OK);
    ck_assert(last_answer.has_put); /* so all members agree on the answer */
    ck_assert(etcd_log_entry(second, 2, &read));
    ck_assert_uint_eq(read.length, 3);
    ck_assert_mem_eq(read.bytes, "two", 3);
}
END_TEST

START_TEST(who_opens_a_new_log_is_shown_what_it_put_there)
{
    CLEANUP(etcd_log_destroy) struct etcd_log *log = etcd_log_create(&market);
    const struct journal_entry its = entry(41, "the 41st");
    struct journal_entry read;
    etcd_log_open(log, &(struct journal_base){.index = 41}, &its);
    ck_assert(!etcd_log_entry(log, 41, &read));
    ck_assert_int_eq(finish(log), JOURNAL_OK);
    ck_assert(etcd_log_entry(log, 41, &read));
    ck_assert_uint_eq(read.length, its.length);
    ck_assert_mem_eq(read.bytes, its.bytes, its.length);
}
END_TEST

START_TEST(who_opens_a_log_that_was_cut_is_behind_whoever_answers)
{
    CLEANUP(etcd_log_destroy) struct etcd_log *first = leading(0, 1);
    struct journal_entry read;
    ck_assert_int_eq(append(first, 1, "entry"), JOURNAL_OK);
    static struct etcd_model old;
    old = model;
    ck_assert_int_eq(append(first, 2, "entry"), JOURNAL_OK);
    ck_assert_int_eq(append(first, 3, "entry"), JOURNAL_OK);
    ck_assert_int_eq(etcd_log_truncate(first, 1, &(struct journal_base){.index = 3}), JOURNAL_OK);
    ck_assert_int_eq(finish(first), JOURNAL_OK);
    CLEANUP(etcd_log_destroy) struct etcd_log *second = etcd_log_create(&market);
    const struct journal_entry its = entry(2, "entry");
    etcd_log_open(second, &(struct journal_base){.index = 2}, &its);
    ck_assert_int_eq(finish(second), JOURNAL_OK);
    ck_assert(!etcd_log_entry(second, 2, &read));
    ck_assert_uint_eq(etcd_log_base(second)->index, 3);
    model = old; /* a member that has only entry 1 answers */
    etcd_log_read(second, 2);
    ck_assert_int_eq(finish(second), JOURNAL_BEHIND);
}
END_TEST

START_TEST(the_former_leader_is_fenced)
{
    CLEANUP(etcd_log_destroy) struct etcd_log *first = leading(0, 1);
    ck_assert_int_eq(append(first, 1, "one"), JOURNAL_OK);
    CLEANUP(etcd_log_destroy) struct etcd_log *second = leading(1, 2);
    ck_assert_uint_eq(etcd_log_epoch(second), 2);
    ck_assert_int_eq(append(first, 2, "late"), JOURNAL_DEPOSED);
    ck_assert_str_eq(etcd_log_leader(first)->broker, "b");
    ck_assert_int_eq(append(second, 2, "two"), JOURNAL_OK);
    ck_assert_int_eq(append(first, 2, "late"), JOURNAL_DEPOSED); /* without asking */
}
END_TEST

/* Silence was the first one's, so the third must look how long the second is silent. */
START_TEST(who_was_not_first_does_not_lead)
{
    CLEANUP(etcd_log_destroy) struct etcd_log *first = leading(0, 1);
    CLEANUP(etcd_log_destroy) struct etcd_log *third = etcd_log_create(&market);
    ck_assert_int_eq(append(first, 1, "one"), JOURNAL_OK);
    open_log(third); /* knows the first as the leader */
    CLEANUP(etcd_log_destroy) struct etcd_log *second = leading(1, 2);
    etcd_log_lead(third, 1, &somebody, 3);
    ck_assert_int_eq(finish(third), JOURNAL_DEPOSED);
    ck_assert_uint_eq(etcd_log_leader(third)->epoch, 2);
    ck_assert_int_eq(append(second, 2, "two"), JOURNAL_OK);
    etcd_log_lead(third, 1, &somebody, 4);
    ck_assert_int_eq(finish(third), JOURNAL_BEHIND);
}
END_TEST

static const struct journal_leader gone = {.epoch = 1, .broker = "b/0"};

START_TEST(who_resigned_appends_no_more_and_says_so)
{
    CLEANUP(etcd_log_destroy) struct etcd_log *first = leading(0, 1);
    CLEANUP(etcd_log_destroy) struct etcd_log *second = etcd_log_create(&market);
    ck_assert_int_eq(append(first, 1, "one"), JOURNAL_OK);
    open_log(second);
    ck_assert_int_eq(etcd_log_resign(first, 1, &gone), JOURNAL_OK);
    if (_i == 1) { /* the answer is lost, and the request was executed */
        enum etcd_method method;
        size_t length;
        const uint8_t *request = etcd_log_request(first, &method, &length);
        etcd_model_execute(&model, method, request, length, &last_answer);
        ck_assert(etcd_log_take(first, GRPC_LOST, NULL));
    }
    ck_assert_int_eq(finish(first), JOURNAL_OK);
    ck_assert_int_eq(append(first, 2, "late"), JOURNAL_DEPOSED);
    etcd_log_look(second);
    ck_assert_int_eq(finish(second), JOURNAL_OK);
    ck_assert_str_eq(etcd_log_leader(second)->broker, "b/0");
    ck_assert_uint_eq(etcd_log_leader(second)->epoch, 1);
    etcd_log_lead(second, 1, &somebody, 2);
    ck_assert_int_eq(finish(second), JOURNAL_OK);
    ck_assert_int_eq(append(second, 2, "two"), JOURNAL_OK);
}
END_TEST

START_TEST(who_was_deposed_cannot_resign)
{
    CLEANUP(etcd_log_destroy) struct etcd_log *first = leading(0, 1);
    CLEANUP(etcd_log_destroy) struct etcd_log *second = leading(0, 2);
    ck_assert_int_eq(etcd_log_resign(first, 1, &gone), JOURNAL_OK);
    ck_assert_int_eq(finish(first), JOURNAL_DEPOSED);
    ck_assert_int_eq(etcd_log_resign(first, 1, &gone), JOURNAL_DEPOSED);
    ck_assert_int_eq(append(second, 1, "one"), JOURNAL_OK);
}
END_TEST

START_TEST(a_read_without_an_answer_says_nothing)
{
    CLEANUP(etcd_log_destroy) struct etcd_log *log = leading(0, 1);
    etcd_log_read(log, 1);
    ck_assert(etcd_log_take(log, GRPC_UNSENT, NULL));
    ck_assert_int_eq(etcd_log_give_up(log), JOURNAL_UNKNOWN);
    etcd_log_read(log, 1);
    ck_assert_int_eq(finish(log), JOURNAL_UNAVAILABLE); /* an answer: it is not there yet */
}
END_TEST

START_TEST(who_lacks_entries_does_not_lead)
{
    CLEANUP(etcd_log_destroy) struct etcd_log *first = leading(0, 1);
    CLEANUP(etcd_log_destroy) struct etcd_log *second = etcd_log_create(&market);
    ck_assert_int_eq(append(first, 1, "one"), JOURNAL_OK);
    open_log(second);
    etcd_log_lead(second, 0, &somebody, 2);
    ck_assert_int_eq(finish(second), JOURNAL_BEHIND);
    ck_assert_int_eq(append(first, 2, "two"), JOURNAL_OK);
    etcd_log_lead(second, 7, &somebody, 2); /* the log ends before entry 7 */
    ck_assert_int_eq(finish(second), JOURNAL_CORRUPT);
}
END_TEST

START_TEST(who_is_behind_a_truncation_does_not_lead)
{
    CLEANUP(etcd_log_destroy) struct etcd_log *first = leading(0, 1);
    CLEANUP(etcd_log_destroy) struct etcd_log *second = etcd_log_create(&market);
    open_log(second);
    for (uint64_t index = 1; index <= 5; index++) {
        ck_assert_int_eq(append(first, index, "entry"), JOURNAL_OK);
    }
    const struct journal_base base = {.index = 4};
    ck_assert_int_eq(etcd_log_truncate(first, 1, &base), JOURNAL_OK);
    ck_assert_int_eq(finish(first), JOURNAL_OK);
    etcd_log_lead(second, 2, &somebody, 2); /* entry 3 is absent, and so is 2 */
    ck_assert_int_eq(finish(second), JOURNAL_BEHIND);
    etcd_log_read(second, 3);
    ck_assert_int_eq(finish(second), JOURNAL_BEHIND);
    etcd_log_read(second, 5);
    ck_assert_int_eq(finish(second), JOURNAL_OK);
}
END_TEST

/* The answer is lost, and the request was executed or not; the same bytes decide. */
START_TEST(an_unknown_append_is_resolved_by_the_same_bytes)
{
    CLEANUP(etcd_log_destroy) struct etcd_log *log = leading(0, 1);
    const struct journal_entry one = entry(1, "one");
    const struct journal_entry other = entry(1, "other");
    ck_assert_int_eq(etcd_log_append(log, 1, &one, 1), JOURNAL_OK);
    enum etcd_method method;
    size_t length;
    const uint8_t *request = etcd_log_request(log, &method, &length);
    if (_i == 1) {
        etcd_model_execute(&model, method, request, length, &last_answer);
    }
    ck_assert(etcd_log_take(log, GRPC_LOST, NULL));
    ck_assert_int_eq(etcd_log_give_up(log), JOURNAL_UNKNOWN);
    ck_assert_int_eq(etcd_log_append(log, 1, &other, 1), JOURNAL_CORRUPT); /* never other bytes */
    ck_assert_int_eq(etcd_log_append(log, 1, &one, 1), JOURNAL_OK);
    ck_assert_int_eq(finish(log), JOURNAL_OK);
    ck_assert_int_eq(append(log, 2, "two"), JOURNAL_OK);
}
END_TEST

START_TEST(what_was_never_sent_is_not_unknown)
{
    CLEANUP(etcd_log_destroy) struct etcd_log *log = leading(0, 1);
    const struct journal_entry one = entry(1, "one");
    const struct journal_entry other = entry(1, "other");
    ck_assert_int_eq(etcd_log_append(log, 1, &one, 1), JOURNAL_OK);
    ck_assert(etcd_log_take(log, GRPC_UNSENT, NULL));
    ck_assert_int_eq(etcd_log_give_up(log), JOURNAL_UNAVAILABLE);
    ck_assert_int_eq(etcd_log_append(log, 1, &other, 1), JOURNAL_OK);
    ck_assert_int_eq(finish(log), JOURNAL_OK);
}
END_TEST

START_TEST(a_full_etcd_takes_nothing_and_recovers)
{
    CLEANUP(etcd_log_destroy) struct etcd_log *log = leading(0, 1);
    const struct journal_entry one = entry(1, "one");
    model.is_full = true;
    ck_assert_int_eq(etcd_log_append(log, 1, &one, 1), JOURNAL_OK);
    ck_assert(send(log));
    ck_assert_int_eq(etcd_log_give_up(log), JOURNAL_FULL);
    model.is_full = false;
    ck_assert_int_eq(append(log, 1, "one"), JOURNAL_OK);
}
END_TEST

START_TEST(a_lead_whose_answer_was_lost_is_found)
{
    CLEANUP(etcd_log_destroy) struct etcd_log *log = etcd_log_create(&market);
    enum etcd_method method;
    size_t length;
    open_log(log);
    etcd_log_lead(log, 0, &somebody, 3);
    const uint8_t *request = etcd_log_request(log, &method, &length);
    etcd_model_execute(&model, method, request, length, &last_answer);
    ck_assert(etcd_log_take(log, GRPC_LOST, NULL));
    ck_assert_int_eq(finish(log), JOURNAL_OK);
    ck_assert_uint_eq(etcd_log_epoch(log), 1);
    ck_assert_int_eq(append(log, 1, "one"), JOURNAL_OK);
}
END_TEST

START_TEST(a_look_finds_a_later_leader_and_ignores_an_earlier_one)
{
    CLEANUP(etcd_log_destroy) struct etcd_log *first = leading(0, 1);
    const struct etcd_model then = model;
    CLEANUP(etcd_log_destroy) struct etcd_log *second = leading(0, 2);
    const struct etcd_model now = model;
    model = then; /* a read that is out of date */
    etcd_log_look(second);
    ck_assert_int_eq(finish(second), JOURNAL_OK);
    ck_assert_uint_eq(etcd_log_epoch(second), 2);
    model = now;
    etcd_log_look(first);
    ck_assert_int_eq(finish(first), JOURNAL_DEPOSED);
    ck_assert_uint_eq(etcd_log_epoch(first), 0);
}
END_TEST

START_TEST(a_group_is_all_or_nothing_and_bounded)
{
    static uint8_t large[ETCD_LOG_GROUP_BYTES];
    CLEANUP(etcd_log_destroy) struct etcd_log *log = leading(0, 1);
    struct journal_entry group[ETCD_LOG_GROUP_MAX + 1];
    for (uint64_t i = 0; i <= ETCD_LOG_GROUP_MAX; i++) {
        group[i] = entry(1 + i, "member");
    }
    ck_assert_int_eq(etcd_log_append(log, 1, group, ETCD_LOG_GROUP_MAX + 1), JOURNAL_TOO_LARGE);
    const struct journal_entry two_large[] = {{1, large, sizeof large}, {2, large, 1}};
    ck_assert_int_eq(etcd_log_append(log, 1, two_large, 2), JOURNAL_TOO_LARGE);
    ck_assert_int_eq(etcd_log_append(log, 1, group, ETCD_LOG_GROUP_MAX), JOURNAL_OK);
    ck_assert_int_eq(finish(log), JOURNAL_OK);
    ck_assert_int_eq(append(log, ETCD_LOG_GROUP_MAX + 1, "next"), JOURNAL_OK);
}
END_TEST

START_TEST(a_long_cut_goes_in_steps_and_leaves_the_rest)
{
    CLEANUP(etcd_log_destroy) struct etcd_log *log = leading(0, 1);
    enum { LAST = 250 };
    for (uint64_t index = 1; index <= LAST; index++) {
        ck_assert_int_eq(append(log, index, "entry"), JOURNAL_OK);
    }
    const struct journal_base base = {.index = LAST, .chain = {{9}}};
    ck_assert_int_eq(etcd_log_truncate(log, 1, &base), JOURNAL_OK);
    unsigned requests = 1;
    while (send(log)) {
        requests++;
    }
    ck_assert_int_eq(etcd_log_status(log), JOURNAL_OK);
    ck_assert_uint_ge(requests, 6);    /* three steps, each of two at least */
    ck_assert_uint_eq(model.count, 3); /* leader, base, and the newest entry */
    ck_assert_uint_gt(model.compacted, 0);
    ck_assert_uint_eq(etcd_log_base(log)->chain.bytes[0], 9);
    ck_assert_int_eq(append(log, LAST + 1, "goes on"), JOURNAL_OK);
}
END_TEST

START_TEST(another_entry_at_the_own_index_is_damage)
{
    CLEANUP(etcd_log_destroy) struct etcd_log *log = leading(0, 1);
    const struct etcd_key key = etcd_key_entry(&market, 1);
    ck_assert_int_eq(append(log, 1, "one"), JOURNAL_OK);
    ck_assert_int_eq(append(log, 2, "two"), JOURNAL_OK);
    CLEANUP(etcd_log_destroy) struct etcd_log *second = leading(2, 2);
    struct etcd_model_key *there = &model.keys[model.count++]; /* of nobody, after the last key */
    *there = *etcd_model_find(&model, key.text);
    there->key[strlen(there->key) - 1] = '3';
    ck_assert_int_eq(append(second, 3, "three"), JOURNAL_CORRUPT);
}
END_TEST

START_TEST(a_log_without_its_end_is_damage)
{
    CLEANUP(etcd_log_destroy) struct etcd_log *log = leading(0, 1);
    ck_assert_int_eq(append(log, 1, "one"), JOURNAL_OK);
    ck_assert_int_eq(append(log, 2, "two"), JOURNAL_OK);
    model.count--; /* as after a restore of etcd from an old copy */
    ck_assert_int_eq(append(log, 3, "three"), JOURNAL_CORRUPT);
}
END_TEST

START_TEST(foreign_values_are_damage)
{
    CLEANUP(etcd_log_destroy) struct etcd_log *log = leading(0, 1);
    model.keys[1].value[0] ^= 1; /* the order of the keys: base, leader, log */
    CLEANUP(etcd_log_destroy) struct etcd_log *second = etcd_log_create(&market);
    const struct journal_base none = {.index = 0};
    const struct journal_entry nothing = {.index = 0};
    etcd_log_open(second, &none, &nothing);
    ck_assert_int_eq(finish(second), JOURNAL_CORRUPT);
    ck_assert_int_eq(append(log, 1, "one"), JOURNAL_CORRUPT);
}
END_TEST

static void end_log(const struct id128 *successor)
{
    uint8_t ended[ETCD_ENDED_BYTES];
    uint8_t bytes[256];
    bool fits;
    struct etcd_model_answer answer;
    const struct etcd_key key = etcd_key_leader(&market);
    etcd_ended_write(successor, ended);
    const struct etcd_request request = {
        .method = ETCD_TXN,
        .then_count = 1,
        .then = {{.kind = ETCD_PUT, .key = etcd_key_bytes(&key), .value = {ended, sizeof ended}}}};
    const size_t length = etcd_request_write(&request, bytes, sizeof bytes, &fits);
    ck_assert(fits);
    etcd_model_execute(&model, ETCD_TXN, bytes, length, &answer);
}

START_TEST(a_log_that_has_ended_is_neither_led_nor_read_nor_opened)
{
    const struct journal_base none = {.index = 0};
    const struct journal_entry nothing = {.index = 0};
    const struct id128 next = {{9, 9}};
    struct id128 successor;
    CLEANUP(etcd_log_destroy) struct etcd_log *log = leading(0, 1);
    CLEANUP(etcd_log_destroy) struct etcd_log *follower = etcd_log_create(&market);
    CLEANUP(etcd_log_destroy) struct etcd_log *late = etcd_log_create(&market);
    ck_assert_int_eq(append(log, 1, "one"), JOURNAL_OK);
    open_log(follower);
    ck_assert(!etcd_log_successor(follower, &successor));
    end_log(&next);
    ck_assert_int_eq(append(log, 2, "two"), JOURNAL_DEPOSED);
    etcd_log_read(follower, 1);
    ck_assert_int_eq(finish(follower), JOURNAL_DEPOSED);
    etcd_log_lead(follower, 1, &somebody, 2);
    ck_assert_int_eq(finish(follower), JOURNAL_CORRUPT);
    etcd_log_look(follower);
    ck_assert_int_eq(finish(follower), JOURNAL_UNAVAILABLE);
    etcd_log_open(late, &none, &nothing);
    ck_assert_int_eq(finish(late), JOURNAL_DEPOSED);
    ck_assert(etcd_log_successor(late, &successor));
    ck_assert(id128_equal(&successor, &next));
}
END_TEST

START_TEST(a_read_says_whether_it_reached_the_end)
{
    CLEANUP(etcd_log_destroy) struct etcd_log *log = leading(0, 1);
    for (uint64_t index = 1; index <= ETCD_LOG_READ_MAX; index++) {
        ck_assert_int_eq(append(log, index, "entry"), JOURNAL_OK);
    }
    etcd_log_read(log, 1);
    ck_assert_int_eq(finish(log), JOURNAL_OK);
    ck_assert(!etcd_log_is_at_end(log)); /* as much as a read can bring */
    etcd_log_read(log, 2);
    ck_assert_int_eq(finish(log), JOURNAL_OK);
    ck_assert(etcd_log_is_at_end(log));
    etcd_log_read(log, ETCD_LOG_READ_MAX + 1);
    ck_assert_int_eq(finish(log), JOURNAL_UNAVAILABLE);
    ck_assert(etcd_log_is_at_end(log));
}
END_TEST

SUITE("etcd_log", setup, NULL, TEST(a_log_is_made_once_and_appended_to),
      TEST(a_log_may_begin_where_a_folder_ends), TEST(who_opens_the_log_is_shown_its_last_entry),
      TEST(who_opens_a_new_log_is_shown_what_it_put_there),
      TEST(who_opens_a_log_that_was_cut_is_behind_whoever_answers),
      TEST(the_former_leader_is_fenced), TEST(who_was_not_first_does_not_lead),
      LOOP(who_resigned_appends_no_more_and_says_so, 0, 2), TEST(who_was_deposed_cannot_resign),
      TEST(a_read_without_an_answer_says_nothing), TEST(who_lacks_entries_does_not_lead),
      TEST(who_is_behind_a_truncation_does_not_lead),
      LOOP(an_unknown_append_is_resolved_by_the_same_bytes, 1, 3),
      TEST(what_was_never_sent_is_not_unknown), TEST(a_full_etcd_takes_nothing_and_recovers),
      TEST(a_lead_whose_answer_was_lost_is_found),
      TEST(a_look_finds_a_later_leader_and_ignores_an_earlier_one),
      TEST(a_group_is_all_or_nothing_and_bounded),
      TEST(a_long_cut_goes_in_steps_and_leaves_the_rest),
      TEST(another_entry_at_the_own_index_is_damage), TEST(a_log_without_its_end_is_damage),
      TEST(foreign_values_are_damage),
      TEST(a_log_that_has_ended_is_neither_led_nor_read_nor_opened),
      TEST(a_read_says_whether_it_reached_the_end))
