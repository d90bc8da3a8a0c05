/* This file prefetches the memory of commands that wait. It changes nothing. */
#include "base/ahead.h"
#include "exchange/state/ids.h"

void exchange_expect(const struct exchange *exchange, uint32_t account,
                     const struct exchange_command *command)
{
    if (!ids_keep(command->type)) {
        return;
    }
    const struct id_key key = {.id = command->id, .account = account};
    table_expect(&exchange->ids, &key);
    if (command->type == EXCHANGE_SUBMIT) {
        table_expect(&exchange->jobs, &command->id);
    } else if (command->type == EXCHANGE_CANCEL_JOB) {
        table_expect(&exchange->jobs, &command->cancel_job.job);
    } else if (command->type == EXCHANGE_REPLACE) {
        table_expect(&exchange->asks, &command->replace.order);
        table_expect(&exchange->jobs, &command->replace.order);
    } else if (command->type == EXCHANGE_CANCEL_ORDER) {
        table_expect(&exchange->asks, &command->cancel_order.order);
    } else if (command->type == EXCHANGE_ASK) {
        const struct device_key device = {.device = command->ask.device, .provider = account};
        table_expect(&exchange->asks, &command->id);
        table_expect(&exchange->devices, &device);
    }
}

void exchange_expect_found(const struct exchange *exchange, uint32_t account,
                           const struct exchange_command *command)
{
    if (command->type == EXCHANGE_CANCEL_JOB) {
        table_expect_element(&exchange->jobs, &command->cancel_job.job, sizeof(struct job));
    } else if (command->type == EXCHANGE_REPLACE) {
        table_expect_element(&exchange->asks, &command->replace.order, sizeof(struct ask));
        table_expect_element(&exchange->jobs, &command->replace.order, sizeof(struct job));
    } else if (command->type == EXCHANGE_CANCEL_ORDER) {
        table_expect_element(&exchange->asks, &command->cancel_order.order, sizeof(struct ask));
    } else if (command->type == EXCHANGE_ASK) {
        const struct device_key device = {.device = command->ask.device, .provider = account};
        table_expect_element(&exchange->devices, &device, sizeof(struct device));
    }
}

static void expect_handle(const struct exchange *exchange, uint32_t handle)
{
    if (handle != BOOK_NONE) {
        book_expect(exchange->book, handle);
        line_ahead(&exchange->orders_by_handle[handle]);
    }
}

/* Leaves out jobs with several parts, because the parts lie in memory that is not fetched yet. */
static void expect_bid(const struct exchange *exchange, const struct id128 *id)
{
    const struct job *job = table_find(&exchange->jobs, id);
    if (job != NULL && job->parts == &job->only_part) {
        expect_handle(exchange, job->only_part.handle);
    }
}

static void expect_ask(const struct exchange *exchange, const struct id128 *id)
{
    const struct ask *ask = table_find(&exchange->asks, id);
    if (ask != NULL) {
        expect_handle(exchange, ask->handle);
        memory_ahead(ask->device, sizeof *ask->device);
    }
}

/* An ask replaces the standing one and meets the best bid. */
static void expect_offer(const struct exchange *exchange, const struct device_key *key)
{
    const struct device *device = table_find(&exchange->devices, key);
    if (device == NULL) {
        return;
    }
    if (device->ask != NULL) {
        memory_ahead(device->ask, sizeof *device->ask);
    }
    book_expect_match(exchange->book, false, device->cell);
}

void exchange_expect_orders(const struct exchange *exchange, uint32_t account,
                            const struct exchange_command *command)
{
    if (command->type == EXCHANGE_CANCEL_JOB) {
        expect_bid(exchange, &command->cancel_job.job);
    } else if (command->type == EXCHANGE_REPLACE) {
        expect_ask(exchange, &command->replace.order);
        expect_bid(exchange, &command->replace.order);
    } else if (command->type == EXCHANGE_CANCEL_ORDER) {
        expect_ask(exchange, &command->cancel_order.order);
    } else if (command->type == EXCHANGE_ASK) {
        const struct device_key device = {.device = command->ask.device, .provider = account};
        expect_offer(exchange, &device);
    }
}
