/* The reads of the market against a real broker: who may make them, pages, and what hostile members
 * cannot do with them. */
#include "tests/support/hand_broker.h"

#include "protocol/limits.h"
#include "runtime/entropy.h"
#include "tests/support/suite.h"

#include <check.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- devices */

enum { WIDE = 96 }; /* attributes of a device, each as long as it may be */

static size_t count_devices(struct broker_client *client, uint32_t limit, size_t *ret_pages)
{
    Bourse__V1__DevicePlace from = BOURSE__V1__DEVICE_PLACE__INIT;
    Bourse__V1__DevicesRequest body = BOURSE__V1__DEVICES_REQUEST__INIT;
    size_t count = 0;
    *ret_pages = 0;
    body.has_limit = limit > 0;
    body.limit = limit;
    bool more = true;
    while (more) {
        ProtobufCMessage *answer = read_of(client, MESSAGE_DEVICES_REQUEST, &body.base);
        const Bourse__V1__DevicesReply *reply = (const void *)answer;
        count += reply->n_rows;
        (*ret_pages)++;
        ck_assert_uint_lt(*ret_pages, 2000);
        more = reply->next != NULL;
        if (more) {
            from.provider = reply->next->provider;
            from.device = reply->next->device;
            body.from = &from;
        }
        codec_free(&answer);
    }
    return count;
}

START_TEST(any_member_may_read_the_market_and_a_stranger_may_not)
{
    static const uint32_t roles[] = {ROLE_CONSUMER, ROLE_PROVIDER, ROLE_AUDITOR, ROLE_RISK};
    open_market();
    Bourse__V1__DevicesRequest devices = BOURSE__V1__DEVICES_REQUEST__INIT;
    Bourse__V1__ProvidersRequest providers = BOURSE__V1__PROVIDERS_REQUEST__INIT;
    Bourse__V1__BookRequest book = BOURSE__V1__BOOK_REQUEST__INIT;
    Bourse__V1__TradesRequest trades = BOURSE__V1__TRADES_REQUEST__INIT;
    Bourse__V1__OrdersRequest orders = BOURSE__V1__ORDERS_REQUEST__INIT;
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        struct member member;
        member_open(&member, roles[i], SESSION_CONSUMER);
        ProtobufCMessage *answer = read_of(&member.client, MESSAGE_DEVICES_REQUEST, &devices.base);
        codec_free(&answer);
        answer = read_of(&member.client, MESSAGE_PROVIDERS_REQUEST, &providers.base);
        codec_free(&answer);
        answer = read_of(&member.client, MESSAGE_BOOK_REQUEST, &book.base);
        codec_free(&answer);
        answer = read_of(&member.client, MESSAGE_TRADES_REQUEST, &trades.base);
        codec_free(&answer);
        if ((roles[i] & (ROLE_CONSUMER | ROLE_PROVIDER)) == 0) { /* who can have no orders */
            expect_refused(&member.client, MESSAGE_ORDERS_REQUEST, &orders.base, REJECT_ROLE);
        } else {
            answer = read_of(&member.client, MESSAGE_ORDERS_REQUEST, &orders.base);
            codec_free(&answer);
        }
        member_close(&member);
    }
    struct member stranger;
    member_open(&stranger, 0, SESSION_CONSUMER);
    expect_refused(&stranger.client, MESSAGE_DEVICES_REQUEST, &devices.base, REJECT_ROLE);
    expect_refused(&stranger.client, MESSAGE_PROVIDERS_REQUEST, &providers.base, REJECT_ROLE);
    expect_refused(&stranger.client, MESSAGE_BOOK_REQUEST, &book.base, REJECT_ROLE);
    expect_refused(&stranger.client, MESSAGE_TRADES_REQUEST, &trades.base, REJECT_ROLE);
    expect_refused(&stranger.client, MESSAGE_ORDERS_REQUEST, &orders.base, REJECT_ROLE);
    member_close(&stranger);
    close_market();
}
END_TEST

START_TEST(a_thousand_devices_come_in_pages)
{
    open_market();
    struct member provider;
    size_t pages;
    member_open(&provider, ROLE_PROVIDER, SESSION_PROVIDER);
    advertise(&provider, LIMIT_DEVICES, NULL, 0);
    ck_assert_uint_eq(count_devices(&owner, 0, &pages), LIMIT_DEVICES);
    ck_assert_uint_eq(count_devices(&owner, 100, &pages), LIMIT_DEVICES);
    ck_assert_uint_eq(pages, LIMIT_DEVICES / 100 + 1);
    /* The provider reads them itself, too. */
    ck_assert_uint_eq(count_devices(&provider.client, 1000, &pages), LIMIT_DEVICES);
    member_close(&provider);
    close_market();
}
END_TEST

/* Devices as large as one Advertise takes: pages end by their bytes. */
START_TEST(large_devices_fill_pages_by_their_bytes)
{
    static Bourse__V1__Attribute attributes[WIDE];
    static Bourse__V1__Attribute *pointers[WIDE];
    static char names[WIDE][32];
    static char text[64];
    memset(text, 'x', sizeof text - 1);
    for (int i = 0; i < WIDE; i++) {
        (void)snprintf(names[i], sizeof names[i], "a-name-as-long-as-a-name-is-%03d", i);
        bourse__v1__attribute__init(&attributes[i]);
        attributes[i].name = names[i];
        attributes[i].text = text;
        pointers[i] = &attributes[i];
    }
    open_market();
    struct member provider;
    size_t pages;
    member_open(&provider, ROLE_PROVIDER, SESSION_PROVIDER);
    advertise(&provider, 100, pointers, WIDE);
    ck_assert_uint_eq(count_devices(&owner, 0, &pages), 100);
    ck_assert_uint_ge(pages, 4); /* ten KB each, 256 KiB a page */
    member_close(&provider);
    close_market();
}
END_TEST

static void post_figures(struct member *provider, uint32_t number, int32_t celsius)
{
    uint8_t id[16] = {0};
    Bourse__V1__DeviceFigures figures = BOURSE__V1__DEVICE_FIGURES__INIT;
    Bourse__V1__DeviceFigures *pointers[] = {&figures};
    Bourse__V1__FiguresPost body = BOURSE__V1__FIGURES_POST__INIT;
    memcpy(id, &number, sizeof number);
    id[15] = 1;
    figures.device = bytes_of(id, sizeof id);
    figures.has_celsius = true;
    figures.celsius = celsius;
    body.n_devices = 1;
    body.devices = pointers;
    ProtobufCMessage *answer = read_of(&provider->client, MESSAGE_FIGURES_POST, &body.base);
    codec_free(&answer);
}

/* Returns the temperatures that the list shows, in thousands: 44 of one and none of another is
 * 44000. */
static int64_t celsius_of_list(void)
{
    Bourse__V1__DevicesRequest body = BOURSE__V1__DEVICES_REQUEST__INIT;
    ProtobufCMessage *answer = read_of(&owner, MESSAGE_DEVICES_REQUEST, &body.base);
    const Bourse__V1__DevicesReply *reply = (const void *)answer;
    int64_t sum = 0;
    for (size_t i = 0; i < reply->n_rows; i++) {
        const Bourse__V1__DeviceFigures *figures = reply->rows[i]->figures;
        sum = 1000 * sum + (figures == NULL ? 0 : figures->celsius);
    }
    codec_free(&answer);
    return sum;
}

/* Two providers have devices of the same ids. What one says of them is not shown of the other's. */
START_TEST(figures_are_shown_of_the_senders_own_devices)
{
    open_market();
    struct member first;
    struct member second;
    member_open(&first, ROLE_PROVIDER, SESSION_PROVIDER);
    member_open(&second, ROLE_PROVIDER, SESSION_PROVIDER);
    advertise(&first, 2, NULL, 0);
    advertise(&second, 1, NULL, 0);
    ck_assert_int_eq(celsius_of_list(), 0);
    post_figures(&first, 1, 44);
    ck_assert_int_eq(celsius_of_list(), 44000);
    post_figures(&second, 0, 61);
    ck_assert_int_eq(celsius_of_list(), 44061);
    post_figures(&second, 9, 70); /* it has no such device */
    ck_assert_int_eq(celsius_of_list(), 44000);
    Bourse__V1__FiguresPost none = BOURSE__V1__FIGURES_POST__INIT;
    expect_refused(&owner, MESSAGE_FIGURES_POST, &none.base, REJECT_ROLE);
    member_close(&first);
    member_close(&second);
    close_market();
}
END_TEST

/* A word that a name may not hold must not make the whole list unreadable. */
START_TEST(an_instrument_of_odd_bytes_spoils_nobodys_list)
{
    static Bourse__V1__Attribute odd;
    static Bourse__V1__Attribute *pointers[] = {&odd};
    bourse__v1__attribute__init(&odd);
    odd.name = text_of("instrument");
    odd.text = text_of("cpu.\xe2\x80\xae.odd"); /* turns the text round on a terminal */
    open_market();
    struct member provider;
    size_t pages;
    member_open(&provider, ROLE_PROVIDER, SESSION_PROVIDER);
    advertise(&provider, 2, pointers, 1);
    ck_assert_uint_eq(count_devices(&owner, 0, &pages), 2);
    odd.text = NULL;
    odd.has_number = true; /* an instrument that is no text */
    odd.number = 7;
    advertise(&provider, 3, pointers, 1);
    ck_assert_uint_eq(count_devices(&owner, 0, &pages), 3);
    member_close(&provider);
    close_market();
}
END_TEST

START_TEST(absurd_pages_and_needs_are_refused)
{
    open_market();
    struct member provider;
    member_open(&provider, ROLE_PROVIDER, SESSION_PROVIDER);
    advertise(&provider, 3, NULL, 0);
    Bourse__V1__DevicesRequest body = BOURSE__V1__DEVICES_REQUEST__INIT;
    Bourse__V1__DevicePlace from = BOURSE__V1__DEVICE_PLACE__INIT;
    body.has_limit = true;
    body.limit = 0;
    expect_refused(&owner, MESSAGE_DEVICES_REQUEST, &body.base, REJECT_MALFORMED);
    body.limit = UINT32_MAX;
    expect_refused(&owner, MESSAGE_DEVICES_REQUEST, &body.base, REJECT_MALFORMED);
    body.has_limit = false;
    body.from = &from;
    from.provider = UINT32_MAX;
    from.device = UINT64_MAX;
    expect_refused(&owner, MESSAGE_DEVICES_REQUEST, &body.base, REJECT_NOT_FOUND);
    from.provider = 0; /* an account, of no provider */
    expect_refused(&owner, MESSAGE_DEVICES_REQUEST, &body.base, REJECT_NOT_FOUND);
    body.from = NULL;
    Bourse__V1__Requirement needs = BOURSE__V1__REQUIREMENT__INIT;
    Bourse__V1__RequirementNode node = BOURSE__V1__REQUIREMENT_NODE__INIT;
    Bourse__V1__RequirementNode *nodes[] = {&node};
    node.op = REQUIREMENT_NOT; /* of nothing */
    needs.n_nodes = 1;
    needs.nodes = nodes;
    body.needs = &needs;
    expect_refused(&owner, MESSAGE_DEVICES_REQUEST, &body.base, REJECT_REQUIREMENT);
    node.op = REQUIREMENT_LT; /* texts have no order */
    node.name = text_of("kind");
    node.text = text_of("cpu");
    expect_refused(&owner, MESSAGE_DEVICES_REQUEST, &body.base, REJECT_REQUIREMENT);
    member_close(&provider);
    close_market();
}
END_TEST

/* ---------------------------------------------------------------- orders, and the book of them */

START_TEST(a_provider_sees_and_cancels_its_own_asks_only)
{
    enum { ASKS = 7 };
    open_market();
    struct member provider;
    struct member other;
    struct id128 first = entropy_id();
    struct id128 job = entropy_id();
    member_open(&provider, ROLE_PROVIDER, SESSION_PROVIDER);
    member_open(&other, ROLE_PROVIDER, SESSION_PROVIDER);
    advertise(&provider, ASKS, NULL, 0);
    for (uint32_t i = 0; i < ASKS; i++) {
        ask(&provider, i, 5000 + i, i == 0 ? &first : NULL);
    }
    bid(&owner, &job);

    Bourse__V1__OrdersRequest orders = BOURSE__V1__ORDERS_REQUEST__INIT;
    orders.has_limit = true;
    orders.limit = 2;
    size_t count = 0;
    for (bool more = true; more;) {
        ProtobufCMessage *answer = read_of(&provider.client, MESSAGE_ORDERS_REQUEST, &orders.base);
        const Bourse__V1__OrdersReply *reply = (const void *)answer;
        for (size_t i = 0; i < reply->n_rows; i++) {
            ck_assert(!reply->rows[i]->bid);
            ck_assert_int_eq(reply->rows[i]->price_micro, 5000 + (int64_t)count);
            ck_assert_uint_eq(reply->rows[i]->place, ++count); /* the same kind, ever dearer */
        }
        more = reply->has_next;
        orders.has_from = true;
        orders.from = reply->next;
        codec_free(&answer);
    }
    ck_assert_uint_eq(count, ASKS);

    orders.has_from = orders.has_limit = false;
    ProtobufCMessage *answer = read_of(&other.client, MESSAGE_ORDERS_REQUEST, &orders.base);
    ck_assert_uint_eq(((const Bourse__V1__OrdersReply *)(const void *)answer)->n_rows, 0);
    codec_free(&answer);
    answer = read_of(&owner, MESSAGE_ORDERS_REQUEST, &orders.base);
    const Bourse__V1__OrdersReply *own = (const void *)answer;
    ck_assert_uint_eq(own->n_rows, 1);
    ck_assert(own->rows[0]->bid);
    ck_assert_mem_eq(own->rows[0]->order.data, job.bytes, 16);
    ck_assert_mem_eq(own->rows[0]->job.data, job.bytes, 16);
    codec_free(&answer);

    /* Somebody else's ask, and a job's bid, are not there for whoever is not theirs. */
    Bourse__V1__OrderCancel cancel = BOURSE__V1__ORDER_CANCEL__INIT;
    cancel.order = bytes_of(first.bytes, 16);
    expect_refused(&other.client, MESSAGE_ORDER_CANCEL, &cancel.base, REJECT_NOT_FOUND);
    expect_refused(&owner, MESSAGE_ORDER_CANCEL, &cancel.base, REJECT_ROLE);
    expect_accepted(&provider.client, MESSAGE_ORDER_CANCEL, NULL, &cancel.base);
    cancel.order = bytes_of(job.bytes, 16);
    expect_refused(&provider.client, MESSAGE_ORDER_CANCEL, &cancel.base, REJECT_NOT_FOUND);

    Bourse__V1__BookRequest book = BOURSE__V1__BOOK_REQUEST__INIT;
    answer = read_of(&other.client, MESSAGE_BOOK_REQUEST, &book.base);
    const Bourse__V1__BookReply *reply = (const void *)answer;
    ck_assert_uint_eq(reply->n_asks, ASKS - 1);
    ck_assert_str_eq(reply->asks[0]->instrument, "cpu.test");
    ck_assert_uint_eq(reply->n_bids, 1);
    ck_assert_uint_eq(reply->n_needs, 1);
    ck_assert_uint_eq(reply->bids[0]->slots, 3);
    ck_assert_int_eq(reply->bids[0]->limit_micro, 1000);
    codec_free(&answer);
    member_close(&provider);
    member_close(&other);
    close_market();
}
END_TEST

START_TEST(a_fill_is_a_trade_for_everybody_to_see)
{
    open_market();
    struct member provider;
    struct member other;
    member_open(&provider, ROLE_PROVIDER, SESSION_PROVIDER);
    member_open(&other, ROLE_AUDITOR, SESSION_CONSUMER);
    advertise(&provider, 1, NULL, 0);
    ask(&provider, 0, 900, NULL);
    bid(&owner, NULL);
    Bourse__V1__TradesRequest trades = BOURSE__V1__TRADES_REQUEST__INIT;
    ProtobufCMessage *answer = read_of(&other.client, MESSAGE_TRADES_REQUEST, &trades.base);
    const Bourse__V1__TradesReply *reply = (const void *)answer;
    ck_assert_uint_eq(reply->n_rows, 1);
    ck_assert_str_eq(reply->rows[0]->instrument, "cpu.test");
    ck_assert_int_eq(reply->rows[0]->price_micro, 900); /* the maker's */
    ck_assert_uint_eq(reply->rows[0]->slots, 2);
    ck_assert_int_gt(reply->rows[0]->time_ms, 0);
    codec_free(&answer);
    member_close(&provider);
    member_close(&other);
    close_market();
}
END_TEST

START_TEST(absurd_pages_of_the_book_and_of_orders_are_refused)
{
    open_market();
    Bourse__V1__BookRequest book = BOURSE__V1__BOOK_REQUEST__INIT;
    book.has_from = true;
    book.from = UINT32_MAX;
    expect_refused(&owner, MESSAGE_BOOK_REQUEST, &book.base, REJECT_NOT_FOUND);
    book.has_from = false;
    book.has_limit = true;
    book.limit = LIMIT_ROWS + 1;
    expect_refused(&owner, MESSAGE_BOOK_REQUEST, &book.base, REJECT_MALFORMED);
    Bourse__V1__ProvidersRequest providers = BOURSE__V1__PROVIDERS_REQUEST__INIT;
    providers.has_from = true;
    providers.from = 3; /* the owner, who is no provider */
    expect_refused(&owner, MESSAGE_PROVIDERS_REQUEST, &providers.base, REJECT_NOT_FOUND);
    providers.from = 0;
    expect_refused(&owner, MESSAGE_PROVIDERS_REQUEST, &providers.base, REJECT_MALFORMED);
    Bourse__V1__OrdersRequest orders = BOURSE__V1__ORDERS_REQUEST__INIT;
    orders.has_from = true;
    orders.from = UINT64_MAX; /* younger than anything */
    Bourse__V1__TradesRequest trades = BOURSE__V1__TRADES_REQUEST__INIT;
    trades.has_limit = true;
    trades.limit = 0;
    expect_refused(&owner, MESSAGE_TRADES_REQUEST, &trades.base, REJECT_MALFORMED);
    trades.limit = 1;
    trades.has_before = true;
    trades.before = UINT64_MAX;
    ProtobufCMessage *none = read_of(&owner, MESSAGE_TRADES_REQUEST, &trades.base);
    ck_assert_uint_eq(((const Bourse__V1__TradesReply *)(const void *)none)->n_rows, 0);
    codec_free(&none);
    ProtobufCMessage *answer = read_of(&owner, MESSAGE_ORDERS_REQUEST, &orders.base);
    const Bourse__V1__OrdersReply *reply = (const void *)answer;
    ck_assert_uint_eq(reply->n_rows, 0);
    ck_assert(!reply->has_next);
    codec_free(&answer);
    close_market();
}
END_TEST

int main(void)
{
    if (sodium_init() < 0) {
        return EXIT_FAILURE;
    }
    Suite *suite = suite_create("market_reads");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, any_member_may_read_the_market_and_a_stranger_may_not);
    tcase_add_test(tests, a_thousand_devices_come_in_pages);
    tcase_add_test(tests, large_devices_fill_pages_by_their_bytes);
    tcase_add_test(tests, figures_are_shown_of_the_senders_own_devices);
    tcase_add_test(tests, an_instrument_of_odd_bytes_spoils_nobodys_list);
    tcase_add_test(tests, absurd_pages_and_needs_are_refused);
    tcase_add_test(tests, a_provider_sees_and_cancels_its_own_asks_only);
    tcase_add_test(tests, a_fill_is_a_trade_for_everybody_to_see);
    tcase_add_test(tests, absurd_pages_of_the_book_and_of_orders_are_refused);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
