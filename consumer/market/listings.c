/* This file reads the market's listings, one request for each page, and passes each row to a
 * visitor. */
#include "consumer/client/client.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "consumer/client/names.h"
#include "consumer/client/rows.h"
#include "consumer/market/depth.h"
#include "formats/hours_text.h"
#include "formats/job.h"
#include "formats/requirement.h"
#include "formats/units.h"
#include "formats/value.h"
#include "protocol/conditions.h"
#include "runtime/clock.h"
#include "runtime/entropy.h"

#include <stdio.h>
#include <string.h>

static void requirement_free(Bourse__V1__Requirement **self)
{
    if (*self != NULL) {
        codec_requirement_free(self);
    }
}

/* Turns text into a requirement, which the caller frees with requirement_free; NULL stays NULL. */
static bool needs_read(const char *text, Bourse__V1__Requirement **ret_needs,
                       struct bourse_error *error)
{
    struct requirement requirement;
    struct problem problem = {.text = ""};
    if (text == NULL) {
        return true;
    }
    if (!requirement_parse(text, &requirement, &problem)) {
        return client_fail(error, BOURSE_USAGE, "%s", problem.text);
    }
    *ret_needs = codec_requirement_to_wire(&requirement);
    return *ret_needs != NULL ? true : client_fail(error, BOURSE_LOCAL, "out of memory");
}

/* ---------------------------------------------------------------- devices */

/* A device's figures are its owner's statement, even when the owner's agent measured them. The
 * market measures the work in results, not devices (bourse_history). */
static const char *figure_source(const char *name, bool is_simulated)
{
    if (!requirement_is_figure(name)) {
        return NULL;
    }
    return is_simulated ? "catalogue" : "declared";
}

static int64_t figure_of(bool is_known, uint64_t figure)
{
    return is_known && figure <= INT64_MAX ? (int64_t)figure : -1;
}

static struct bourse_device_figures figures_from_wire(const Bourse__V1__DeviceFigures *wire)
{
    if (wire == NULL) {
        return (struct bourse_device_figures){-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
    }
    return (struct bourse_device_figures){
        .age_ms = figure_of(true, wire->age_ms),
        .memory_used = figure_of(wire->has_memory_used, wire->memory_used),
        .memory_total = figure_of(wire->has_memory_total, wire->memory_total),
        .busy_percent = figure_of(wire->has_busy_percent, wire->busy_percent),
        .power_mw = figure_of(wire->has_power_mw, wire->power_mw),
        .power_limit_mw = figure_of(wire->has_power_limit_mw, wire->power_limit_mw),
        .celsius = wire->has_celsius ? wire->celsius : -1,
        .held_bytes = figure_of(wire->has_held_bytes, wire->held_bytes),
        .held_hits = figure_of(wire->has_held_hits, wire->held_hits),
        .held_copies = figure_of(wire->has_held_copies, wire->held_copies),
        .saved_bytes = figure_of(wire->has_saved_bytes, wire->saved_bytes)};
}

/* `attributes` has room for LIMIT_ATTRIBUTES; the device points to it. */
static void device_from_wire(const Bourse__V1__DeviceRow *row, struct bourse_attribute *attributes,
                             struct bourse_device *ret_device)
{
    *ret_device =
        (struct bourse_device){.slots = row->slots,
                               .leased = row->leased,
                               .free = row->free,
                               .price_micro = row->has_price_micro ? row->price_micro : -1,
                               .max_term_ms = row->has_max_term_ms ? row->max_term_ms : 0,
                               .attribute_count = row->n_attributes,
                               .attributes = attributes,
                               .now = figures_from_wire(row->figures)};
    text_hex(row->account.data, 32, ret_device->account);
    rows_standing(row->standing, &ret_device->standing);
    rows_challenge(row->challenge, &ret_device->challenge);
    text_hex(row->device.data, 16, ret_device->id);
    client_copy(ret_device->provider, sizeof ret_device->provider, row->provider);
    client_copy(ret_device->state, sizeof ret_device->state, row->state);
    client_copy(ret_device->label, sizeof ret_device->label, row->label);
    client_copy(ret_device->instrument, sizeof ret_device->instrument, row->instrument);
    for (size_t i = 0; i < row->n_attributes; i++) {
        const Bourse__V1__Attribute *from = row->attributes[i];
        attributes[i] = (struct bourse_attribute){.name = from->name,
                                                  .text = from->text,
                                                  .number = from->text == NULL ? from->number : 0};
        if (from->text != NULL && strcmp(from->name, "kind") == 0) {
            /* Variants of a kind are listed too, e.g. cpu and cpu-x86. */
            size_t length = strlen(ret_device->kind);
            if (length == 0 || strlen(from->text) < length) {
                client_copy(ret_device->kind, sizeof ret_device->kind, from->text);
            }
        } else if (strcmp(from->name, "simulated") == 0) {
            ret_device->simulated = from->text != NULL || from->number != 0;
        }
    }
    for (size_t i = 0; i < row->n_attributes; i++) {
        if (attributes[i].text == NULL) {
            attributes[i].source = figure_source(attributes[i].name, ret_device->simulated);
        }
    }
}

bool client_devices(struct bourse *bourse, Bourse__V1__Requirement *needs,
                    bourse_device_visitor *visitor, void *context, struct bourse_error *error)
{
    Bourse__V1__DevicePlace from = BOURSE__V1__DEVICE_PLACE__INIT;
    bool is_first = true;
    for (;;) {
        Bourse__V1__DevicesRequest body = BOURSE__V1__DEVICES_REQUEST__INIT;
        body.needs = needs;
        body.from = is_first ? NULL : &from;
        CLEANUP(codec_free) ProtobufCMessage *answer = NULL;
        if (!client_call(bourse, MESSAGE_DEVICES_REQUEST, &body.base, MESSAGE_DEVICES_REPLY,
                         &answer, error)) {
            return false;
        }
        const Bourse__V1__DevicesReply *reply = (const void *)answer;
        for (size_t i = 0; i < reply->n_rows; i++) {
            struct bourse_attribute attributes[LIMIT_ATTRIBUTES];
            struct bourse_device device;
            device_from_wire(reply->rows[i], attributes, &device);
            if (!visitor(context, &device)) {
                return true;
            }
        }
        const Bourse__V1__DevicePlace *next = reply->next;
        bool goes_on = next != NULL &&
                       (is_first || next->provider != from.provider || next->device > from.device);
        if (!goes_on) {
            return true;
        }
        from.provider = next->provider;
        from.device = next->device;
        is_first = false;
    }
}

bool bourse_devices(struct bourse *bourse, bourse_device_visitor *visitor, void *context,
                    struct bourse_error *ret_error)
{
    return client_devices(bourse, NULL, visitor, context, ret_error);
}

bool bourse_devices_fitting(struct bourse *bourse, const char *needs,
                            bourse_device_visitor *visitor, void *context,
                            struct bourse_error *ret_error)
{
    CLEANUP(requirement_free) Bourse__V1__Requirement *wire = NULL;
    return needs_read(needs, &wire, ret_error) &&
           client_devices(bourse, wire, visitor, context, ret_error);
}

/* ---------------------------------------------------------------- providers */

static struct bourse_provider provider_from_wire(const Bourse__V1__ProviderRow *row)
{
    struct bourse_provider provider = {.devices = row->devices,
                                       .slots = row->slots,
                                       .leased = row->leased,
                                       .free = row->free,
                                       .frozen = row->has_frozen && row->frozen};
    text_hex(row->account.data, 32, provider.account);
    client_copy(provider.name, sizeof provider.name, row->name);
    client_copy(provider.state, sizeof provider.state, row->state);
    rows_standing(row->standing, &provider.standing);
    return provider;
}

bool bourse_providers(struct bourse *bourse, bourse_provider_visitor *visitor, void *context,
                      struct bourse_error *ret_error)
{
    Bourse__V1__ProvidersRequest body = BOURSE__V1__PROVIDERS_REQUEST__INIT;
    for (;;) {
        CLEANUP(codec_free) ProtobufCMessage *answer = NULL;
        if (!client_call(bourse, MESSAGE_PROVIDERS_REQUEST, &body.base, MESSAGE_PROVIDERS_REPLY,
                         &answer, ret_error)) {
            return false;
        }
        const Bourse__V1__ProvidersReply *reply = (const void *)answer;
        for (size_t i = 0; i < reply->n_rows; i++) {
            struct bourse_provider provider = provider_from_wire(reply->rows[i]);
            if (!visitor(context, &provider)) {
                return true;
            }
        }
        if (!reply->has_next || (body.has_from && reply->next == body.from)) {
            return true;
        }
        body.has_from = true;
        body.from = reply->next;
    }
}

/* ---------------------------------------------------------------- the book */

static bool read_book(struct bourse *bourse, Bourse__V1__BookRequest *body,
                      struct bourse_book *book, struct bourse_error *error)
{
    for (;;) {
        CLEANUP(codec_free) ProtobufCMessage *answer = NULL;
        if (!client_call(bourse, MESSAGE_BOOK_REQUEST, &body->base, MESSAGE_BOOK_REPLY, &answer,
                         error)) {
            return false;
        }
        const Bourse__V1__BookReply *reply = (const void *)answer;
        switch (depth_add(book, reply)) {
        case DEPTH_OK:
            break;
        case DEPTH_OUT_OF_MEMORY:
            return client_fail(error, BOURSE_LOCAL, "out of memory");
        case DEPTH_CONTRADICTS:
            return client_fail(error, BOURSE_UNVERIFIED,
                               "the broker sent a book that contradicts itself");
        }
        if (!reply->has_next || (body->has_from && reply->next <= body->from)) {
            return depth_settle(book) ? true : client_fail(error, BOURSE_LOCAL, "out of memory");
        }
        body->has_from = true;
        body->from = reply->next;
    }
}

bool bourse_bands(struct bourse *bourse, struct bourse_bands *ret_bands,
                  struct bourse_error *ret_error)
{
    Bourse__V1__BookRequest body = BOURSE__V1__BOOK_REQUEST__INIT;
    CLEANUP(codec_free) ProtobufCMessage *answer = NULL;
    body.has_limit = true;
    body.limit = 1; /* no orders are needed */
    if (!client_call(bourse, MESSAGE_BOOK_REQUEST, &body.base, MESSAGE_BOOK_REPLY, &answer,
                     ret_error)) {
        return false;
    }
    *ret_bands = depth_bands((const Bourse__V1__BookReply *)(const void *)answer);
    return true;
}

bool bourse_book(struct bourse *bourse, const char *needs, struct bourse_book **ret_book,
                 struct bourse_error *ret_error)
{
    CLEANUP(requirement_free) Bourse__V1__Requirement *wire = NULL;
    if (!needs_read(needs, &wire, ret_error)) {
        return false;
    }
    CLEANUP(bourse_book_destroy) struct bourse_book *book = depth_create();
    if (book == NULL) {
        return client_fail(ret_error, BOURSE_LOCAL, "out of memory");
    }
    Bourse__V1__BookRequest body = BOURSE__V1__BOOK_REQUEST__INIT;
    body.needs = wire;
    if (!read_book(bourse, &body, book, ret_error)) {
        return false;
    }
    *ret_book = book;
    book = NULL;
    return true;
}

/* ---------------------------------------------------------------- trades */

static struct bourse_trade trade_from_wire(const Bourse__V1__TradeRow *row)
{
    struct bourse_trade trade = {.entry = row->entry,
                                 .index = row->index,
                                 .time_ms = row->time_ms,
                                 .slots = row->slots,
                                 .price_micro = row->price_micro};
    client_copy(trade.instrument, sizeof trade.instrument, row->instrument);
    return trade;
}

bool bourse_trades(struct bourse *bourse, uint64_t limit, bourse_trade_visitor *visitor,
                   void *context, struct bourse_error *ret_error)
{
    uint64_t left = limit == 0 ? UINT64_MAX : limit;
    Bourse__V1__TradesRequest body = BOURSE__V1__TRADES_REQUEST__INIT;
    while (left > 0) {
        body.has_limit = true;
        body.limit = left < LIMIT_ROWS ? (uint32_t)left : LIMIT_ROWS;
        CLEANUP(codec_free) ProtobufCMessage *answer = NULL;
        if (!client_call(bourse, MESSAGE_TRADES_REQUEST, &body.base, MESSAGE_TRADES_REPLY, &answer,
                         ret_error)) {
            return false;
        }
        const Bourse__V1__TradesReply *reply = (const void *)answer;
        for (size_t i = 0; i < reply->n_rows && left > 0; i++, left--) {
            struct bourse_trade trade = trade_from_wire(reply->rows[i]);
            if (!visitor(context, &trade)) {
                return true;
            }
        }
        bool goes_down = !body.has_before || reply->next_before < body.before;
        if (!reply->has_next_before || !goes_down) {
            return true;
        }
        body.has_before = true;
        body.before = reply->next_before;
    }
    return true;
}

/* ---------------------------------------------------------------- own orders */

struct order_texts { /* owns the texts of an order's row */
    char to[LIMIT_ASK_ACCOUNTS * 3 * LIMIT_WORD_BYTES];
    char hours[HOURS_ALL_TEXT_SIZE];
};

static void texts_of(const Bourse__V1__OrderRow *row, struct order_texts *ret_texts)
{
    size_t used = 0;
    struct hours hours;
    ret_texts->to[0] = ret_texts->hours[0] = '\0';
    for (size_t i = 0; i < row->n_to && used < sizeof ret_texts->to; i++) {
        used += (size_t)snprintf(ret_texts->to + used, sizeof ret_texts->to - used, "%s%s",
                                 i > 0 ? ", " : "", row->to[i]);
    }
    if (row->n_hours > 0 && conditions_hours(row->hours, row->n_hours,
                                             row->has_offset_min ? row->offset_min : 0, &hours)) {
        hours_text(&hours, ret_texts->hours);
    }
}

static struct bourse_order order_from_wire(const Bourse__V1__OrderRow *row)
{
    struct bourse_order order = {
        .is_bid = row->bid,
        .price_micro = row->value != NULL ? row->value->micro : row->price_micro,
        .rate = names_rate(row->value != NULL ? row->value->rate : 0),
        .slots = row->slots,
        .free = row->free,
        .place = row->place,
        .part = row->has_part ? row->part : 0,
        .good_till_ms = row->has_good_till_ms ? row->good_till_ms : 0,
        .type = job_order_names[row->has_order_type ? row->order_type : 0],
        .max_term_ms = row->has_max_term_ms ? row->max_term_ms : 0,
        .interruptible = row->has_interruptible && row->interruptible,
        .notice_ms = row->has_notice_ms ? row->notice_ms : 0,
        .minimum_run_ms = row->has_minimum_run_ms ? row->minimum_run_ms : 0,
        .daily_ms = row->has_daily_ms ? row->daily_ms : 0,
        .left_ms = row->has_left_ms ? row->left_ms : 0};
    text_hex(row->order.data, 16, order.id);
    if (row->has_device) {
        text_hex(row->device.data, 16, order.device);
    }
    if (row->has_job) {
        text_hex(row->job.data, 16, order.job);
    }
    client_copy(order.name, sizeof order.name, row->name);
    return order;
}

bool bourse_orders(struct bourse *bourse, bourse_order_visitor *visitor, void *context,
                   struct bourse_error *ret_error)
{
    Bourse__V1__OrdersRequest body = BOURSE__V1__ORDERS_REQUEST__INIT;
    for (;;) {
        CLEANUP(codec_free) ProtobufCMessage *answer = NULL;
        if (!client_call(bourse, MESSAGE_ORDERS_REQUEST, &body.base, MESSAGE_ORDERS_REPLY, &answer,
                         ret_error)) {
            return false;
        }
        const Bourse__V1__OrdersReply *reply = (const void *)answer;
        for (size_t i = 0; i < reply->n_rows; i++) {
            struct bourse_order order = order_from_wire(reply->rows[i]);
            struct order_texts texts;
            texts_of(reply->rows[i], &texts);
            order.to = texts.to;
            order.hours = texts.hours;
            if (!visitor(context, &order)) {
                return true;
            }
        }
        if (!reply->has_next || (body.has_from && reply->next <= body.from)) {
            return true;
        }
        body.has_from = true;
        body.from = reply->next;
    }
}

/* A time of an ask comes from its owner; 0 means none. A time that nothing could fill, or that no
 * clock could reach, is refused. */
struct ask_time {
    const char *name, *field; /* name for people, and name of the field */
    int64_t value_ms, least_ms, most_ms;
};

static bool is_in_range(const struct ask_time *time, struct bourse_error *error)
{
    char texts[3][UNITS_TEXT_SIZE];
    const int64_t shown_ms[3] = {time->value_ms, time->least_ms, time->most_ms};
    if (time->value_ms == 0 ||
        (time->value_ms >= time->least_ms && time->value_ms <= time->most_ms)) {
        return true;
    }
    for (int i = 0; i < 3; i++) {
        int64_t shown_ns = shown_ms[i] < 0 ? INT64_MIN : INT64_MAX;
        (void)checked_mul(shown_ms[i], NS_PER_MS, &shown_ns); /* or the end of the range */
        units_duration_text(shown_ns, texts[i]);
    }
    (void)client_fail(error, BOURSE_USAGE, "%s: %s is not between %s and %s", time->name, texts[0],
                      texts[1], texts[2]);
    if (error != NULL) {
        client_copy(error->field, sizeof error->field, time->field);
        error->value = time->value_ms;
        error->limit = time->value_ms < time->least_ms ? time->least_ms : time->most_ms;
    }
    return false;
}

static bool times_in_range(const struct bourse_ask *ask, struct bourse_error *error)
{
    const struct ask_time times[] = {
        {"good-till", "good_for_ms", ask->good_for_ms, 1, BOURSE_ASK_TIME_MS_MOST},
        {"max-term", "max_term_ms", ask->max_term_ms, BOURSE_ASK_TERM_MS_LEAST,
         BOURSE_ASK_TIME_MS_MOST},
        {"daily", "daily_ms", ask->daily_ms,
         ask->max_term_ms > 0 ? ask->max_term_ms : BOURSE_ASK_TERM_MS_LEAST, LIMIT_DAILY_MS},
        {"notice", "notice_ms", ask->notice_ms, 0, BOURSE_ASK_NOTICE_MS_MOST},
        {"minimum-run", "minimum_run_ms", ask->minimum_run_ms, 0, BOURSE_ASK_RUN_MS_MOST},
    };
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        if (!is_in_range(&times[i], error)) {
            return false;
        }
    }
    return true;
}

static bool fail_in(struct bourse_error *error, const char *field, const char *what)
{
    (void)client_fail(error, BOURSE_USAGE, "%s: %s", field, what);
    if (error != NULL) {
        client_copy(error->field, sizeof error->field, field);
    }
    return false;
}

static bool read_hours(const struct bourse_ask *ask, struct hours *ret_hours,
                       struct bourse_error *error)
{
    struct problem problem = {""};
    *ret_hours = (struct hours){.count = 0};
    if (ask->hours_count > HOURS_WINDOWS_MOST) {
        problem_set(&problem, "%zu windows; at most %d", ask->hours_count, HOURS_WINDOWS_MOST);
        return fail_in(error, "hours", problem.text);
    }
    for (size_t i = 0; i < ask->hours_count; i++) {
        if (!hours_read_window(ask->hours[i], &ret_hours->windows[i], &problem)) {
            return fail_in(error, "hours", problem.text);
        }
    }
    ret_hours->count = (uint32_t)ask->hours_count;
    if (ask->utc_offset != NULL && ask->hours_count == 0 && ask->daily_ms == 0) {
        return fail_in(error, "utc_offset", "is that of `hours` and `daily_ms`: neither is given");
    }
    return ask->utc_offset == NULL ||
           hours_read_offset(ask->utc_offset, &ret_hours->offset_min, &problem) ||
           fail_in(error, "utc_offset", problem.text);
}

/* The broker answers with the index of an unknown account. */
static void name_account(const struct bourse_ask *ask, struct bourse_error *error)
{
    const char *unknown =
        conditions_unknown((enum reject_code)error->reject, error->value, ask->to, ask->to_count);
    if (unknown != NULL) {
        char shown[BOURSE_NAME_SIZE];
        bourse_printable(unknown, shown, sizeof shown);
        (void)snprintf(error->text, sizeof error->text, "to: '%s': %s", shown,
                       reject_advice(REJECT_ACCOUNT));
    }
}

bool bourse_place_ask(struct bourse *bourse, const struct bourse_ask *ask,
                      char ret_id[BOURSE_ID_SIZE], struct bourse_error *ret_error)
{
    struct id128 device;
    struct hours hours;
    if (!read_hours(ask, &hours, ret_error) || !client_id_read(ask->device, &device, ret_error) ||
        !times_in_range(ask, ret_error) || !client_ready(bourse, ret_error)) {
        return false;
    }
    int64_t now_ms = consumer_session_log_time_ms(bourse->session, clock_monotonic_ns());
    Bourse__V1__AskPlace body = BOURSE__V1__ASK_PLACE__INIT;
    body.device = client_bytes(device.bytes, sizeof device.bytes);
    body.slots = ask->slots;
    body.price_micro = ask->price_micro;
    body.has_good_till_ms = ask->good_for_ms > 0;
    body.good_till_ms = now_ms + ask->good_for_ms;
    body.has_max_term_ms = ask->max_term_ms > 0;
    body.max_term_ms = ask->max_term_ms;
    body.has_order_type = ask->type != BOURSE_ASK_LIMIT;
    body.order_type = (uint32_t)ask->type;
    struct ask_conditions conditions;
    if (!conditions_to_wire(ask->to, ask->to_count, &hours, ask->daily_ms, &conditions, &body)) {
        return fail_in(ret_error, "to", "more accounts than fit a message; at most 32");
    }
    body.has_interruptible = body.has_notice_ms = body.has_minimum_run_ms = ask->interruptible;
    body.interruptible = ask->interruptible;
    body.notice_ms = ask->notice_ms;
    body.minimum_run_ms = ask->minimum_run_ms;
    struct id128 order = entropy_id();
    struct bourse_error error;
    if (!client_call_as(bourse, &order, MESSAGE_ASK_PLACE, &body.base, 0, NULL, &error)) {
        name_account(ask, &error);
        if (ret_error != NULL) {
            *ret_error = error;
        }
        return false;
    }
    text_hex(order.bytes, sizeof order.bytes, ret_id);
    return true;
}

bool bourse_cancel_ask(struct bourse *bourse, const char *id, struct bourse_error *ret_error)
{
    struct id128 order;
    if (!client_id_read(id, &order, ret_error)) {
        return false;
    }
    Bourse__V1__OrderCancel body = BOURSE__V1__ORDER_CANCEL__INIT;
    body.order = client_bytes(order.bytes, sizeof order.bytes);
    return client_call(bourse, MESSAGE_ORDER_CANCEL, &body.base, 0, NULL, ret_error);
}

bool bourse_replace(struct bourse *bourse, const struct bourse_replacement *replacement,
                    struct bourse_error *ret_error)
{
    struct id128 order;
    if (!client_id_read(replacement->order, &order, ret_error)) {
        return false;
    }
    struct value value;
    if (!client_value(replacement->value, &value, ret_error)) {
        return false;
    }
    Bourse__V1__OrderReplace body = BOURSE__V1__ORDER_REPLACE__INIT;
    Bourse__V1__Value wire = BOURSE__V1__VALUE__INIT;
    wire.micro = value.micro;
    wire.rate = value.rate;
    body.value = value.rate == RATE_NONE ? NULL : &wire;
    body.order = client_bytes(order.bytes, sizeof order.bytes);
    body.has_part = replacement->part >= 0;
    body.part = (uint32_t)replacement->part;
    body.has_slots = replacement->slots >= 0;
    body.slots = (uint32_t)replacement->slots;
    body.has_price_micro = replacement->price_micro >= 0;
    body.price_micro = replacement->price_micro;
    body.has_budget_micro = replacement->budget_micro >= 0;
    body.budget_micro = replacement->budget_micro;
    const int64_t now_ms = consumer_session_log_time_ms(bourse->session, clock_monotonic_ns());
    body.has_deadline_ms = replacement->deadline_in_ms > 0 || replacement->deadline_ms > 0;
    body.deadline_ms = replacement->deadline_in_ms > 0 ? now_ms + replacement->deadline_in_ms
                                                       : replacement->deadline_ms;
    return client_call(bourse, MESSAGE_ORDER_REPLACE, &body.base, 0, NULL, ret_error);
}
