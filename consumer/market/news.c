/* This file reads prices and follows the market. One request is open at a time, and its answer
 * comes when there is news. */
#include "consumer/client/client.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "consumer/market/following.h"
#include "runtime/clock.h"

/* ---------------------------------------------------------------- prices */

static struct bourse_bar bar_from_wire(const Bourse__V1__MarketBar *wire)
{
    struct bourse_bar bar = {.start_ms = wire->start_ms,
                             .open_micro = wire->open_micro,
                             .high_micro = wire->high_micro,
                             .low_micro = wire->low_micro,
                             .close_micro = wire->close_micro,
                             .slots = wire->slots,
                             .trades = wire->trades};
    client_copy(bar.instrument, sizeof bar.instrument, wire->instrument);
    return bar;
}

bool bourse_prices(struct bourse *bourse, const char *instrument, int64_t since_ms,
                   bourse_bar_visitor *visitor, void *context, struct bourse_error *ret_error)
{
    Bourse__V1__PricesRequest body = BOURSE__V1__PRICES_REQUEST__INIT;
    CLEANUP(codec_free) ProtobufCMessage *answer = NULL;
    body.instrument = (char *)(uintptr_t)instrument; /* packed, never written */
    body.has_since_ms = since_ms > 0;
    body.since_ms = since_ms;
    if (!client_call(bourse, MESSAGE_PRICES_REQUEST, &body.base, MESSAGE_PRICES_REPLY, &answer,
                     ret_error)) {
        return false;
    }
    const Bourse__V1__PricesReply *reply = (const void *)answer;
    for (size_t i = 0; i < reply->n_bars; i++) {
        const struct bourse_bar bar = bar_from_wire(reply->bars[i]);
        if (!visitor(context, &bar)) {
            break;
        }
    }
    return true;
}

/* ---------------------------------------------------------------- following */

enum { WAIT_MS = 10000, PAUSE_MS = 1000 };

/* Waits for `pause_ms`, and sends heartbeats meanwhile. */
static bool pause_for(struct bourse *bourse, int64_t pause_ms, struct bourse_error *error)
{
    const int64_t until_ns = clock_monotonic_ns() + pause_ms * NS_PER_MS;
    for (;;) {
        struct consumer_event event;
        enum client_wait wait = client_next(bourse, until_ns, &event, error);
        if (wait != CLIENT_EVENT) {
            return wait == CLIENT_TIMEOUT;
        }
        consumer_event_clear(&event);
    }
}

static bool is_passing(const struct bourse_error *error)
{
    return error->status == BOURSE_TIMED_OUT || error->reject == REJECT_BUSY ||
           error->reject == REJECT_UNAVAILABLE || error->reject == REJECT_RATE;
}

static enum following_status ask(struct bourse *bourse, struct following *following, bool waits,
                                 bool *ret_is_answered, struct bourse_error *error)
{
    Bourse__V1__MarketRequest body;
    CLEANUP(codec_free) ProtobufCMessage *answer = NULL;
    following_ask(following, &body);
    body.has_wait_ms = waits;
    body.wait_ms = WAIT_MS < bourse->timeout_ms / 2 ? WAIT_MS : (uint32_t)bourse->timeout_ms / 2;
    bourse->is_following = waits;
    *ret_is_answered = client_call(bourse, MESSAGE_MARKET_REQUEST, &body.base, MESSAGE_MARKET_REPLY,
                                   &answer, error);
    bourse->is_following = false;
    return *ret_is_answered ? following_take(following, (const void *)answer) : FOLLOWING_MORE;
}

static bool fails(enum following_status status, struct bourse_error *error)
{
    switch (status) {
    case FOLLOWING_OUT_OF_MEMORY:
        (void)client_fail(error, BOURSE_LOCAL, "out of memory for the book");
        return true;
    case FOLLOWING_CONTRADICTS:
        (void)client_fail(error, BOURSE_UNVERIFIED,
                          "the broker sent changes of the market that contradict each other");
        return true;
    case FOLLOWING_WHOLE:
    case FOLLOWING_MORE:
        break;
    }
    return false;
}

bool bourse_follow(struct bourse *bourse, bourse_news_visitor *visitor, void *context,
                   struct bourse_error *ret_error)
{
    CLEANUP(following_destroy) struct following *following = following_create();
    if (following == NULL) {
        return client_fail(ret_error, BOURSE_LOCAL, "out of memory");
    }
    bool waits = false;
    bool is_lost = false;
    for (;;) {
        struct bourse_news news = {.is_lost = true};
        bool is_answered;
        const enum following_status status = ask(bourse, following, waits, &is_answered, ret_error);
        if (!is_answered) {
            if (!is_passing(ret_error)) {
                return false;
            }
            if (!is_lost && !visitor(context, &news)) {
                return true;
            }
            is_lost = true;
            if (!pause_for(bourse, PAUSE_MS, ret_error)) {
                return false;
            }
            continue;
        }
        if (fails(status, ret_error)) {
            return false;
        }
        waits = status == FOLLOWING_WHOLE;
        if (!waits) {
            continue;
        }
        following_news(following, &news);
        const bool is_new =
            news.is_anew || news.change_count > 0 || news.trade_count > 0 || news.has_new_bands;
        if ((is_new || is_lost) && !visitor(context, &news)) {
            return true;
        }
        is_lost = false;
    }
}
