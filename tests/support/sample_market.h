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

/* The same market with two more brokers. */
static inline struct market sample_cluster(void)
{
    struct market market = sample_market();
    market.other_count = 2;
    strcpy(market.others[0].control, "tcp://203.0.113.8:7001");
    strcpy(market.others[0].blobs, "tcp://203.0.113.8:7002");
    strcpy(market.others[1].control, "tcp://[2001:db8::9]:7001");
    strcpy(market.others[1].blobs, "tcp://c.example:7002");
    return market;
}

static inline void sample_market_check_same(const struct market *a, const struct market *b)
{
    ck_assert_str_eq(a->control, b->control);
    ck_assert_str_eq(a->blobs, b->blobs);
    ck_assert_uint_eq(a->other_count, b->other_count);
    for (size_t i = 0; i < a->other_count; i++) {
        ck_assert_str_eq(a->others[i].control, b->others[i].control);
        ck_assert_str_eq(a->others[i].blobs, b->others[i].blobs);
    }
    ck_assert_str_eq(a->origin, b->origin);
    ck_assert(key32_equal(&a->server, &b->server));
    ck_assert(key32_equal(&a->log_key, &b->log_key));
    ck_assert(id128_equal(&a->cluster, &b->cluster));
}

#endif
