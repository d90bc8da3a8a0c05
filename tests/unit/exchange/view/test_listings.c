/* The tests read the market page by page: everything once, in one order, and a bounded step at a
 * time. */
#include "exchange/view/listings.h"

#include "base/checked.h"
#include "tests/support/hand_market.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- devices */

enum { DEVICES = 1024, PER_KIND = 2, TERMS = 3 }; /* that leases of an ask are */

static struct id128 device_id(uint32_t provider, uint32_t number)
{
    struct id128 id = {{(uint8_t)provider}};
    memcpy(&id.bytes[4], &number, sizeof number);
    return id;
}

/* Devices first .. first + count - 1 of that provider, those of odd numbers gpus. */
static void advertise(uint32_t provider, uint32_t first, uint32_t count)
{
    static struct attribute kinds[2][2] = {
        {{.name = "kind", .is_text = true, .text = "cpu"}, {.name = "memory", .number = 1000}},
        {{.name = "kind", .is_text = true, .text = "gpu"}, {.name = "memory", .number = 8000}}};
    static struct exchange_device devices[DEVICES];
    for (uint32_t i = 0; i < count; i++) {
        devices[i] = (struct exchange_device){.device = device_id(provider, first + i),
                                              .slots = 4,
                                              .attributes = kinds[(first + i) % 2],
                                              .attribute_count = PER_KIND};
        (void)snprintf(devices[i].label, sizeof devices[i].label, "device %u", first + i);
    }
    struct exchange_command made = command(EXCHANGE_ADVERTISE, provider);
    made.advertise = (struct exchange_advertise){devices, count};
    apply(&made);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
}

static struct requirement needs_kind(const char *kind)
{
    struct requirement needs = {.count = 1};
    needs.nodes[0].op = REQUIREMENT_EQ;
    needs.nodes[0].attribute = (struct attribute){.name = "kind", .is_text = true};
    (void)snprintf(needs.nodes[0].attribute.text, ATTRIBUTE_TEXT_SIZE, "%s", kind);
    return needs;
}

struct seen {
    struct exchange_device_row rows[2 * DEVICES];
    size_t count;
    size_t page; /* rows of one page at most */
    size_t in_page;
    size_t pages;
};

static bool see(void *context, const struct exchange_device_row *row)
{
    struct seen *seen = context;
    if (seen->in_page == seen->page) {
        return false;
    }
    seen->in_page++;
    ck_assert_uint_lt(seen->count, 2 * DEVICES);
    seen->rows[seen->count++] = *row;
    return true;
}

/* All of it, in pages of so many rows. */
static void see_all(const struct requirement *needs, size_t page, struct seen *seen)
{
    struct exchange_place place;
    const struct exchange_place *from = NULL;
    enum exchange_listing listing;
    *seen = (struct seen){.page = page};
    do {
        seen->in_page = 0;
        seen->pages++;
        listing = exchange_list_devices(market.exchange, needs, from, see, seen, &place);
        from = &place;
        ck_assert_uint_lt(seen->pages, 10000);
    } while (listing == LISTING_MORE);
    ck_assert_int_eq(listing, LISTING_END);
}

static void check_same(const struct seen *a, const struct seen *b)
{
    ck_assert_uint_eq(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        ck_assert(id128_equal(&a->rows[i].device, &b->rows[i].device));
        ck_assert_uint_eq(a->rows[i].provider, b->rows[i].provider);
        ck_assert_str_eq(a->rows[i].label, b->rows[i].label);
    }
}

static struct seen whole, paged;

static const char *text_of(const struct exchange_device_row *row, const char *name)
{
    for (size_t i = 0; i < row->attribute_count; i++) {
        if (strcmp(row->attributes[i].name, name) == 0) {
            return row->attributes[i].text;
        }
    }
    return "";
}

START_TEST(every_device_is_listed_once_whatever_the_page)
{
    advertise(PROVIDER, 0, 40);
    advertise(OTHER_PROVIDER, 0, 31);
    see_all(NULL, SIZE_MAX, &whole);
    ck_assert_uint_eq(whole.count, 71);
    ck_assert_uint_eq(whole.pages, 1);
    for (size_t page = 1; page < 73; page += 3) {
        see_all(NULL, page, &paged);
        check_same(&whole, &paged);
    }
    for (uint32_t i = 0; i < 40; i++) { /* in the order advertised */
        struct id128 id = device_id(PROVIDER, i);
        ck_assert(id128_equal(&whole.rows[i].device, &id));
        ck_assert_int_eq(whole.rows[i].price_micro, -1);
        ck_assert_uint_eq(whole.rows[i].attribute_count, PER_KIND + TERMS);
    }
}
END_TEST

START_TEST(a_snapshot_lists_the_same)
{
    advertise(OTHER_PROVIDER, 0, 9);
    advertise(PROVIDER, 5, 9);
    advertise(OTHER_PROVIDER, 4, 9); /* some stay, some come, some go */
    see_all(NULL, 4, &whole);
    reload();
    see_all(NULL, 4, &paged);
    check_same(&whole, &paged);
    ck_assert_uint_eq(whole.count, 18);
}
END_TEST

START_TEST(needs_list_what_satisfies_them)
{
    advertise(PROVIDER, 0, 20);
    struct requirement gpus = needs_kind("gpu");
    see_all(&gpus, 3, &paged);
    ck_assert_uint_eq(paged.count, 10);
    for (size_t i = 0; i < paged.count; i++) {
        ck_assert_str_eq(text_of(&paged.rows[i], "kind"), "gpu");
    }
    struct requirement tpus = needs_kind("tpu");
    see_all(&tpus, 3, &paged);
    ck_assert_uint_eq(paged.count, 0);
}
END_TEST

START_TEST(a_row_says_what_is_asked_and_what_is_left)
{
    offer(PROVIDER, 4, price / 2);
    see_all(NULL, 1, &whole);
    ck_assert_int_eq(whole.rows[0].price_micro, price / 2);
    ck_assert_uint_eq(whole.rows[0].free, 4);
    ck_assert_uint_eq(whole.rows[0].state, 1);
    (void)submit(1, 100);
    see_all(NULL, 1, &whole);
    ck_assert_uint_eq(whole.rows[0].leased, 1);
    ck_assert_uint_eq(whole.rows[0].free, 3);
    presence(EXCHANGE_SUSPECT, PROVIDER); /* its ask is gone, its device is not */
    see_all(NULL, 1, &whole);
    ck_assert_uint_eq(whole.count, 1);
    ck_assert_int_eq(whole.rows[0].price_micro, -1);
    ck_assert_uint_eq(whole.rows[0].free, 0);
    presence(EXCHANGE_GOODBYE, PROVIDER);
    see_all(NULL, 1, &whole);
    ck_assert_uint_eq(whole.count, 0);
}
END_TEST

/* A change between two pages takes nothing else with it. */
START_TEST(devices_that_come_and_go_hide_none_that_stay)
{
    advertise(PROVIDER, 0, 10);
    advertise(OTHER_PROVIDER, 0, 3);
    struct seen seen = {.page = 4};
    struct exchange_place next;
    ck_assert_int_eq(exchange_list_devices(market.exchange, NULL, NULL, see, &seen, &next),
                     LISTING_MORE);
    advertise(PROVIDER, 6, 10); /* 0 to 5 go: the place is one of them; 10 to 15 come */
    seen.in_page = 0;
    seen.page = SIZE_MAX;
    ck_assert_int_eq(exchange_list_devices(market.exchange, NULL, &next, see, &seen, &next),
                     LISTING_END);
    ck_assert_uint_eq(seen.count, 4 + 10 + 3);
    for (uint32_t i = 0; i < 10; i++) {
        struct id128 id = device_id(PROVIDER, 6 + i);
        ck_assert(id128_equal(&seen.rows[4 + i].device, &id));
    }
}
END_TEST

/* The dearest requirement there is, over more devices than it can be tried on at once. */
START_TEST(one_page_takes_a_bounded_number_of_steps)
{
    advertise(PROVIDER, 0, DEVICES);
    struct requirement needs = {.count = REQUIREMENT_NODES_MAX};
    for (uint32_t i = 0; i < needs.count; i++) {
        needs.nodes[i] = needs_kind(i % 2 == 0 ? "gpu" : "tpu").nodes[0];
    }
    needs.nodes[needs.count - 1] =
        (struct requirement_node){.op = REQUIREMENT_OR, .arity = REQUIREMENT_NODES_MAX - 1};
    see_all(&needs, SIZE_MAX, &paged);
    ck_assert_uint_eq(paged.count, DEVICES / 2);
    size_t steps = (size_t)DEVICES * REQUIREMENT_NODES_MAX * PER_KIND;
    ck_assert_uint_ge(paged.pages, steps / EXCHANGE_LISTING_STEPS);
    ck_assert_uint_gt(paged.pages, 1);
}
END_TEST

START_TEST(places_and_needs_that_are_none_are_refused)
{
    advertise(PROVIDER, 0, 3);
    struct seen seen = {.page = SIZE_MAX};
    struct exchange_place next = {.provider = 77, .device = 77};
    const struct exchange_place nowhere[] = {{.provider = CONSUMER}, {.provider = UINT32_MAX}};
    for (size_t i = 0; i < 2; i++) {
        ck_assert_int_eq(
            exchange_list_devices(market.exchange, NULL, &nowhere[i], see, &seen, &next),
            LISTING_NO_PLACE);
    }
    struct requirement bad = {.count = 1};
    bad.nodes[0].op = REQUIREMENT_NOT;
    ck_assert_int_eq(exchange_list_devices(market.exchange, &bad, NULL, see, &seen, &next),
                     LISTING_BAD_NEEDS);
    const struct exchange_place beyond = {.provider = PROVIDER, .device = UINT64_MAX};
    ck_assert_int_eq(exchange_list_devices(market.exchange, NULL, &beyond, see, &seen, &next),
                     LISTING_END);
    ck_assert_uint_eq(seen.count, 0);
    ck_assert_uint_eq(next.provider, 77); /* never written but with MORE */
}
END_TEST

/* ---------------------------------------------------------------- providers */

struct providers {
    struct exchange_provider_row rows[8];
    size_t count, page, in_page;
};

static bool see_provider(void *context, const struct exchange_provider_row *row)
{
    struct providers *seen = context;
    if (seen->in_page == seen->page) {
        return false;
    }
    seen->in_page++;
    seen->rows[seen->count++] = *row;
    return true;
}

START_TEST(providers_are_summed_up_and_stay_when_they_leave)
{
    advertise(OTHER_PROVIDER, 0, 3);
    offer(PROVIDER, 4, price / 2);
    (void)submit(1, 100);
    struct providers seen = {.page = 1};
    uint32_t next = 0;
    ck_assert_int_eq(exchange_list_providers(market.exchange, 0, see_provider, &seen, &next),
                     LISTING_MORE);
    ck_assert_uint_eq(next, PROVIDER);
    seen.in_page = 0;
    ck_assert_int_eq(exchange_list_providers(market.exchange, next, see_provider, &seen, &next),
                     LISTING_END);
    ck_assert_uint_eq(seen.count, 2);
    ck_assert_uint_eq(seen.rows[0].provider, OTHER_PROVIDER); /* who advertised first */
    ck_assert_uint_eq(seen.rows[0].devices, 3);
    ck_assert_uint_eq(seen.rows[0].slots, 12);
    ck_assert_uint_eq(seen.rows[0].free, 0); /* it asks for nothing */
    ck_assert_uint_eq(seen.rows[1].slots, 4);
    ck_assert_uint_eq(seen.rows[1].leased, 1);
    ck_assert_uint_eq(seen.rows[1].free, 3);
    presence(EXCHANGE_GOODBYE, PROVIDER);
    seen = (struct providers){.page = 8};
    ck_assert_int_eq(exchange_list_providers(market.exchange, 0, see_provider, &seen, &next),
                     LISTING_END);
    ck_assert_uint_eq(seen.count, 2);
    ck_assert_uint_eq(seen.rows[1].state, 0);
    ck_assert_uint_eq(seen.rows[1].devices, 0);
    ck_assert_int_eq(exchange_list_providers(market.exchange, CONSUMER, see_provider, &seen, &next),
                     LISTING_NO_PLACE);
}
END_TEST

/* ---------------------------------------------------------------- the book */

struct book_seen {
    struct exchange_book_row rows[64];
    size_t count, page, in_page;
};

static bool see_order(void *context, const struct exchange_book_row *row)
{
    struct book_seen *seen = context;
    if (seen->in_page == seen->page) {
        return false;
    }
    seen->in_page++;
    ck_assert_uint_lt(seen->count, 64);
    seen->rows[seen->count++] = *row;
    return true;
}

static void see_book(const struct requirement *needs, size_t page, struct book_seen *seen)
{
    uint32_t next = 0;
    enum exchange_listing listing;
    *seen = (struct book_seen){.page = page};
    do {
        seen->in_page = 0;
        uint32_t from = next;
        listing = exchange_list_book(market.exchange, needs, from, see_order, seen, &next);
    } while (listing == LISTING_MORE);
    ck_assert_int_eq(listing, LISTING_END);
}

static uint64_t slots_of(const struct book_seen *seen, bool is_bid, int64_t at_price)
{
    uint64_t slots = 0;
    for (size_t i = 0; i < seen->count; i++) {
        const struct exchange_book_row *row = &seen->rows[i];
        slots += row->is_bid == is_bid && row->price_micro == at_price ? row->slots : 0;
    }
    return slots;
}

START_TEST(the_book_holds_what_rests_on_both_sides)
{
    struct book_seen seen;
    offer(PROVIDER, 4, 2 * price); /* above what any job pays here: it rests */
    offer(OTHER_PROVIDER, 3, 3 * price);
    (void)submit(5, 100);
    struct exchange_command dear = submit_of(2, 100);
    dear.submit.cap_micro = price + 1;
    apply(&dear);
    for (size_t page = 1; page < 6; page += 2) {
        see_book(NULL, page, &seen);
        ck_assert_uint_eq(seen.count, 4);
        ck_assert_uint_eq(slots_of(&seen, false, 2 * price), 4);
        ck_assert_uint_eq(slots_of(&seen, false, 3 * price), 3);
        ck_assert_uint_eq(slots_of(&seen, true, price), 5);
        ck_assert_uint_eq(slots_of(&seen, true, price + 1), 2);
    }
    struct requirement gpus = needs_kind("gpu"); /* those are cpus; bids stay */
    see_book(&gpus, SIZE_MAX, &seen);
    ck_assert_uint_eq(seen.count, 2);
    ck_assert_uint_eq(slots_of(&seen, true, price), 5);
}
END_TEST

START_TEST(what_is_leased_is_not_free_and_who_has_enough_wants_nothing)
{
    struct book_seen seen;
    offer(PROVIDER, 4, price / 2);
    (void)submit(1, 100); /* its one subtask runs */
    see_book(NULL, SIZE_MAX, &seen);
    ck_assert_uint_eq(seen.count, 1);
    ck_assert(!seen.rows[0].is_bid);
    ck_assert_uint_eq(seen.rows[0].slots, 4);
    ck_assert_uint_eq(seen.rows[0].free, 3);
}
END_TEST

START_TEST(a_book_from_nowhere_is_refused)
{
    struct book_seen seen = {.page = SIZE_MAX};
    uint32_t next = 77;
    ck_assert_int_eq(exchange_list_book(market.exchange, NULL, UINT32_MAX, see_order, &seen, &next),
                     LISTING_NO_PLACE);
    struct requirement bad = {.count = 1};
    bad.nodes[0].op = REQUIREMENT_AND;
    ck_assert_int_eq(exchange_list_book(market.exchange, &bad, 0, see_order, &seen, &next),
                     LISTING_BAD_NEEDS);
    ck_assert_uint_eq(next, 77);
}
END_TEST

/* ---------------------------------------------------------------- own orders */

struct orders_seen {
    struct exchange_order_row rows[16];
    size_t count, page, in_page;
};

static bool see_own(void *context, const struct exchange_order_row *row)
{
    struct orders_seen *seen = context;
    if (seen->in_page == seen->page) {
        return false;
    }
    seen->in_page++;
    seen->rows[seen->count++] = *row;
    return true;
}

static void see_orders(uint32_t account, size_t page, struct orders_seen *seen)
{
    uint64_t next = 0;
    enum exchange_listing listing;
    *seen = (struct orders_seen){.page = page};
    do {
        seen->in_page = 0;
        uint64_t from = next;
        listing = exchange_list_orders(market.exchange, account, from, see_own, seen, &next);
    } while (listing == LISTING_MORE);
    ck_assert_int_eq(listing, LISTING_END);
}

START_TEST(own_orders_have_a_place_in_their_queue)
{
    struct orders_seen seen;
    offer(PROVIDER, 4, 2 * price);
    offer(OTHER_PROVIDER, 3, 2 * price); /* the same kind, the same price, but later */
    struct id128 first = submit(5, 100);
    struct exchange_command dear = submit_of(2, 100);
    dear.submit.cap_micro = price + 1;
    apply(&dear);

    see_orders(OTHER_PROVIDER, 1, &seen);
    ck_assert_uint_eq(seen.count, 1);
    ck_assert(!seen.rows[0].is_bid);
    ck_assert_uint_eq(seen.rows[0].ahead, 1);
    ck_assert_str_eq(seen.rows[0].name, "a cpu");
    see_orders(PROVIDER, 1, &seen);
    ck_assert_uint_eq(seen.rows[0].ahead, 0);
    for (size_t page = 1; page < 4; page++) {
        see_orders(CONSUMER, page, &seen);
        ck_assert_uint_eq(seen.count, 2); /* by age */
        ck_assert(id128_equal(&seen.rows[0].order, &first));
        ck_assert_uint_eq(seen.rows[0].ahead, 1);
        ck_assert(id128_equal(&seen.rows[1].order, &dear.id));
        ck_assert_uint_eq(seen.rows[1].ahead, 0); /* it pays more */
        ck_assert(seen.rows[0].is_bid && seen.rows[1].is_bid);
    }
    see_orders(OPERATOR, 1, &seen);
    ck_assert_uint_eq(seen.count, 0);
}
END_TEST

START_TEST(an_order_that_ended_is_not_listed)
{
    struct orders_seen seen;
    offer(PROVIDER, 4, 2 * price);
    struct id128 job = submit(5, 100);
    see_orders(PROVIDER, 9, &seen);
    struct exchange_command cancel = command(EXCHANGE_CANCEL_ORDER, PROVIDER);
    cancel.cancel_order.order = seen.rows[0].order;
    apply(&cancel);
    see_orders(PROVIDER, 9, &seen);
    ck_assert_uint_eq(seen.count, 0);
    struct exchange_command end = command(EXCHANGE_CANCEL_JOB, CONSUMER);
    end.cancel_job.job = job;
    apply(&end);
    see_orders(CONSUMER, 9, &seen);
    ck_assert_uint_eq(seen.count, 0);
}
END_TEST

/* ---------------------------------------------------------------- jobs */

START_TEST(every_job_of_an_account_is_listed_once_the_newest_first)
{
    enum { JOBS = 7 };
    struct id128 ids[JOBS];
    for (size_t i = 0; i < JOBS; i++) {
        ids[i] = submit(1, 100);
    }
    for (size_t page = 1; page <= JOBS + 1; page++) {
        struct exchange_job_row rows[JOBS + 1];
        uint64_t from = 0;
        size_t seen = 0;
        do {
            const uint64_t asked = from;
            const size_t count =
                exchange_jobs_from(market.exchange, CONSUMER, asked, rows, page, &from);
            ck_assert_uint_le(count, page);
            for (size_t i = 0; i < count; i++, seen++) {
                ck_assert_uint_lt(seen, JOBS);
                ck_assert(id128_equal(&rows[i].job, &ids[JOBS - 1 - seen]));
            }
            ck_assert(from == 0 || asked == 0 || from < asked);
        } while (from != 0);
        ck_assert_uint_eq(seen, JOBS);
    }
    uint64_t next = 1;
    struct exchange_job_row row;
    ck_assert_uint_eq(exchange_jobs_from(market.exchange, PROVIDER, 0, &row, 1, &next), 0);
    ck_assert_uint_eq(next, 0);
}
END_TEST

SUITE("listings", set_up, tear_down, TEST(every_device_is_listed_once_whatever_the_page),
      TEST(a_snapshot_lists_the_same), TEST(needs_list_what_satisfies_them),
      TEST(a_row_says_what_is_asked_and_what_is_left),
      TEST(devices_that_come_and_go_hide_none_that_stay),
      TEST(one_page_takes_a_bounded_number_of_steps),
      TEST(places_and_needs_that_are_none_are_refused),
      TEST(providers_are_summed_up_and_stay_when_they_leave),
      TEST(the_book_holds_what_rests_on_both_sides),
      TEST(what_is_leased_is_not_free_and_who_has_enough_wants_nothing),
      TEST(a_book_from_nowhere_is_refused),
      TEST(every_job_of_an_account_is_listed_once_the_newest_first),
      TEST(own_orders_have_a_place_in_their_queue), TEST(an_order_that_ended_is_not_listed))
