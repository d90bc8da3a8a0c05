/* The tests post figures of devices to the board, and read them back with their age. */
#include "broker/answer/figures_board.h"

#include "base/checked.h"
#include "protocol/codec.h"
#include "protocol/limits.h"
#include "tests/support/suite.h"

#include <check.h>

static struct figures_board *board;

static void setup(void)
{
    board = figures_board_create();
    ck_assert_ptr_nonnull(board);
}

static void teardown(void)
{
    figures_board_destroy(&board);
    ck_assert_ptr_null(board);
}

static struct id128 device_of(uint8_t number)
{
    return (struct id128){{number}};
}

/* The account says that its devices 0 to count - 1 draw so much. */
static void post(uint32_t account, size_t count, uint64_t power_mw, int64_t now_ns)
{
    struct id128 devices[LIMIT_FIGURES];
    Bourse__V1__DeviceFigures figures[LIMIT_FIGURES];
    Bourse__V1__DeviceFigures *pointers[LIMIT_FIGURES];
    Bourse__V1__FiguresPost body = BOURSE__V1__FIGURES_POST__INIT;
    struct request request = {.session = 1, .account = account};
    for (size_t i = 0; i < count; i++) {
        devices[i] = device_of((uint8_t)i);
        bourse__v1__device_figures__init(&figures[i]);
        figures[i].device = (ProtobufCBinaryData){.len = 16, .data = devices[i].bytes};
        figures[i].age_ms = 2000;
        figures[i].has_power_mw = true;
        figures[i].power_mw = power_mw + i;
        pointers[i] = &figures[i];
    }
    body.n_devices = count;
    body.devices = pointers;
    request.envelope.type = MESSAGE_FIGURES_POST;
    request.translation.body = &body.base;
    struct outgoing *answer = figures_board_post(board, &request, now_ns);
    ck_assert_ptr_nonnull(answer);
    ck_assert_int_eq(answer->type, MESSAGE_FIGURES_TAKEN);
    outgoing_destroy(&answer);
}

/* Returns the power that the board tells, or -1. */
static int64_t power_of(uint32_t account, uint8_t number, int64_t now_ns, uint64_t *ret_age_ms)
{
    const struct id128 device = device_of(number);
    Bourse__V1__DeviceFigures figures;
    if (!figures_board_find(board, account, &device, now_ns, &figures)) {
        return -1;
    }
    ck_assert_uint_eq(figures.device.len, 16);
    ck_assert(figures.has_power_mw && !figures.has_celsius);
    *ret_age_ms = figures.age_ms;
    return (int64_t)figures.power_mw;
}

START_TEST(figures_grow_old_and_go)
{
    uint64_t age_ms = 0;
    ck_assert_int_eq(power_of(7, 0, 0, &age_ms), -1);
    post(7, 2, 61000, NS_PER_S);
    ck_assert_int_eq(power_of(7, 1, 4 * NS_PER_S, &age_ms), 61001);
    ck_assert_uint_eq(age_ms, 5000); /* 2 s when they came, and 3 s since */
    ck_assert_int_eq(power_of(7, 2, 4 * NS_PER_S, &age_ms), -1);
    ck_assert_int_eq(power_of(8, 1, 4 * NS_PER_S, &age_ms), -1);
    const int64_t last_ns = FIGURES_BOARD_TERM_NS - NS_PER_S; /* 2 s old, and heard at 1 s */
    ck_assert_int_eq(power_of(7, 0, last_ns, &age_ms), 61000);
    ck_assert_int_eq(power_of(7, 0, last_ns + NS_PER_MS, &age_ms), -1);
}
END_TEST

START_TEST(a_post_replaces_the_former_one_of_its_account_alone)
{
    uint64_t age_ms;
    post(7, 3, 100, 0);
    post(8, 1, 200, 0);
    post(7, 1, 300, 0);
    ck_assert_int_eq(power_of(7, 0, 0, &age_ms), 300);
    ck_assert_int_eq(power_of(7, 1, 0, &age_ms), -1);
    ck_assert_int_eq(power_of(8, 0, 0, &age_ms), 200);
    post(7, 0, 0, 0); /* nothing is known any more */
    ck_assert_int_eq(power_of(7, 0, 0, &age_ms), -1);
    ck_assert_int_eq(power_of(8, 0, 0, &age_ms), 200);
}
END_TEST

/* Any number of accounts posts, and the board keeps the newest posts. */
START_TEST(a_full_board_forgets_the_oldest)
{
    enum { ACCOUNTS = 3 * FIGURES_BOARD_AGENTS };
    uint64_t age_ms;
    for (uint32_t i = 0; i < ACCOUNTS; i++) {
        post(i, LIMIT_FIGURES, i, i);
    }
    for (uint32_t i = 0; i < ACCOUNTS; i++) {
        const bool is_new = i >= ACCOUNTS - FIGURES_BOARD_AGENTS;
        ck_assert_int_eq(power_of(i, 0, ACCOUNTS, &age_ms), is_new ? (int64_t)i : -1);
    }
}
END_TEST

START_TEST(an_empty_post_takes_nobodys_place)
{
    uint64_t age_ms;
    for (uint32_t i = 0; i < FIGURES_BOARD_AGENTS; i++) {
        post(i, 1, i, 0);
    }
    post(FIGURES_BOARD_AGENTS, 0, 0, 1);
    ck_assert_int_eq(power_of(0, 0, 1, &age_ms), 0);
}
END_TEST

SUITE("figures_board", setup, teardown, TEST(figures_grow_old_and_go),
      TEST(a_post_replaces_the_former_one_of_its_account_alone),
      TEST(a_full_board_forgets_the_oldest), TEST(an_empty_post_takes_nobodys_place))
