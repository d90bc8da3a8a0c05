/* This file creates an empty exchange, and destroys an exchange with all its records. */
#include "exchange/market/daily.h"
#include "exchange/market/spot_index.h"
#include "exchange/state/feed_upkeep.h"
#include "exchange/state/residency.h"
#include "exchange/state/tracking.h"
#include "exchange/work/job_memory.h"

#include <stdlib.h>

struct exchange_totals exchange_totals(const struct exchange *exchange)
{
    return exchange->totals;
}

/* Room for the first asks and bids is made at once, and more by doubling. Address sanitizer marks
 * each byte that is allocated, so programs with the sanitizer begin with little. */
#ifdef __SANITIZE_ADDRESS__
enum { HANDLES_FIRST = 4096 };
#else
enum { HANDLES_FIRST = BOOK_ORDERS_MAX };
#endif

struct exchange *exchange_create(const struct exchange_limits *limits)
{
    struct exchange *exchange = calloc(1, sizeof *exchange);
    if (exchange == NULL) {
        return NULL;
    }
    exchange->limits = *limits;
    exchange->members_by_key =
        table_of(offsetof(struct member, key), sizeof(struct key32), limits->table_key);
    exchange->members_by_name =
        table_of(offsetof(struct member, name), EXCHANGE_NAME_SIZE, limits->table_key);
    exchange->invitations =
        table_of(offsetof(struct invitation, token_hash), sizeof(struct hash32), limits->table_key);
    exchange->ids =
        table_of(offsetof(struct id_entry, key), sizeof(struct id_key), limits->table_key);
    exchange->devices =
        table_of(offsetof(struct device, key), sizeof(struct device_key), limits->table_key);
    exchange->asks = table_of(offsetof(struct ask, order), sizeof(struct id128), limits->table_key);
    exchange->jobs = table_of(offsetof(struct job, id), sizeof(struct id128), limits->table_key);
    exchange->leases = table_of(offsetof(struct lease, id), sizeof(uint64_t), limits->table_key);
    exchange->attempts =
        table_of(offsetof(struct attempt, key), sizeof(struct attempt_key), limits->table_key);
    struct list_link *lists[] = {
        &exchange->id_ages,   &exchange->invitation_list, &exchange->provider_list,
        &exchange->job_list,  &exchange->wanting_asks,    &exchange->wanting_parts,
        &exchange->refills,   &exchange->spreads,         &exchange->fronts,
        &exchange->reports,   &exchange->dirty,           &exchange->challenges,
        &exchange->exposures, &exchange->backs,
    };
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        list_init(lists[i]);
    }
    const uint32_t most = limits->asks + limits->jobs;
    const uint32_t orders = most < HANDLES_FIRST ? most : HANDLES_FIRST;
    exchange->accounts = accounts_create();
    exchange->book = book_create((struct book_limits){orders, limits->cells, limits->classes});
    exchange->cells = calloc(limits->cells, sizeof *exchange->cells);
    exchange->classes = calloc(limits->classes, sizeof *exchange->classes);
    exchange->free_handles = calloc(orders, sizeof *exchange->free_handles);
    exchange->orders_by_handle = calloc(orders, sizeof *exchange->orders_by_handle);
    exchange->steps = calloc(1, sizeof *exchange->steps);
    if (exchange->accounts == NULL || exchange->book == NULL || exchange->cells == NULL ||
        exchange->classes == NULL || exchange->free_handles == NULL ||
        exchange->orders_by_handle == NULL || exchange->steps == NULL) {
        exchange_destroy(&exchange);
        return NULL;
    }
    for (uint32_t i = 0; i < orders; i++) {
        exchange->free_handles[i] = orders - 1 - i;
    }
    exchange->free_handle_count = orders;
    exchange->handle_capacity = orders;
    exchange->next_lease = 1;
    exchange->sequence = 1;
    exchange->next_order = 1;
    tracking_add(exchange, &exchange->tracked, RECORD_MARKET);
    return exchange;
}

static void destroy_providers(struct exchange *exchange)
{
    while (!list_empty(&exchange->provider_list)) {
        struct provider *provider =
            LIST_ELEMENT(exchange->provider_list.next, struct provider, all);
        while (!list_empty(&provider->devices)) {
            struct device *device =
                LIST_ELEMENT(provider->devices.next, struct device, of_provider);
            list_remove(&device->of_provider);
            free(device->ask);
            free(device);
        }
        daily_destroy(provider);
        list_remove(&provider->all);
        free(provider);
    }
}

static void destroy_jobs(struct exchange *exchange)
{
    while (!list_empty(&exchange->job_list)) {
        struct job *job = LIST_ELEMENT(exchange->job_list.next, struct job, all);
        list_remove(&job->all);
        while (!list_empty(&job->leases)) {
            struct lease *lease = LIST_ELEMENT(job->leases.next, struct lease, of_job);
            list_remove(&lease->of_job);
            while (!list_empty(&lease->attempts)) {
                struct attempt *attempt =
                    LIST_ELEMENT(lease->attempts.next, struct attempt, of_lease);
                list_remove(&attempt->of_lease);
                free(attempt);
            }
            residency_forget(lease);
            free(lease->lanes);
            free(lease);
        }
        job_free(job);
    }
}

void exchange_destroy(struct exchange **self)
{
    struct exchange *exchange = *self;
    if (exchange == NULL) {
        return;
    }
    destroy_jobs(exchange);
    destroy_providers(exchange);
    while (!list_empty(&exchange->invitation_list)) {
        struct invitation *invitation =
            LIST_ELEMENT(exchange->invitation_list.next, struct invitation, all);
        list_remove(&invitation->all);
        free(invitation);
    }
    while (!list_empty(&exchange->id_ages)) {
        struct id_entry *entry = LIST_ELEMENT(exchange->id_ages.next, struct id_entry, age);
        list_remove(&entry->age);
        free(entry);
    }
    free(exchange->enders);
    free(exchange->halted_why);
    for (uint32_t i = 0; i < exchange->member_count; i++) {
        free(exchange->members[i]->ended.jobs);
        free(exchange->members[i]->uses);
        free(exchange->members[i]->standing);
        free(exchange->members[i]->frozen_why);
        free(exchange->members[i]);
    }
    free(exchange->members);
    struct table *tables[] = {&exchange->members_by_key, &exchange->members_by_name,
                              &exchange->invitations,    &exchange->ids,
                              &exchange->devices,        &exchange->asks,
                              &exchange->jobs,           &exchange->leases,
                              &exchange->attempts};
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        table_fini(tables[i]);
    }
    accounts_destroy(&exchange->accounts);
    book_destroy(&exchange->book);
    feed_destroy(&exchange->feed);
    spot_destroy(&exchange->spot);
    free(exchange->cells);
    free(exchange->classes);
    free(exchange->free_handles);
    free(exchange->orders_by_handle);
    free(exchange->steps);
    free(exchange->plan);
    free(exchange->timers);
    free(exchange);
    *self = NULL;
}
