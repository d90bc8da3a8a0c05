/* tests/support/sample_market.h has a market's description for tests, and compares two of them. */
#ifndef BOURSE_TESTS_SAMPLE_MARKET_H
#define BOURSE_TESTS_SAMPLE_MARKET_H

#include "runtime/market.h"

#include <check.h>
#include <string.h>

static inline struct market sample_market(void)
{
    struct market market = {
        .pid = 4711, .server = {{1, 2, 3}}, .cluster = {{0xc1}}, .log_key = {{0xfe}}};
    strcpy(market.control, "tcp://203.0.113.7:7001");
    strcpy(market.blobs, "tcp://203.0.113.7:7002");
    strcpy(market.origin, "bourse.example.org/log");
    return market;
}

static inline void sample_market_check_same(const struct market *a, const struct market *b)
{
    ck_assert_str_eq(a->control, b->control);
    ck_assert_str_eq(a->blobs, b->blobs);
    ck_assert_str_eq(a->origin, b->origin);
    ck_assert(key32_equal(&a->server, &b->server));
    ck_assert(key32_equal(&a->log_key, &b->log_key));
    ck_assert(id128_equal(&a->cluster, &b->cluster));
}

#endif
