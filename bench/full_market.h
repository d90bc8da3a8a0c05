/* bench/full_market.h makes a market with many asks and many jobs that wait, for the programs that
 * time reads of one.
 *
 * The asks are of 20 providers, for devices of as many kinds as there may be cells. Each program
 * that includes this header has a market of its own. */
#ifndef BOURSE_BENCH_FULL_MARKET_H
#define BOURSE_BENCH_FULL_MARKET_H

#include "base/checked.h"
#include "base/random.h"
#include "bench/give_up.h"
#include "exchange/exchange.h"
#include "formats/requirement.h"
#include "protocol/message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PROVIDERS = 20, FIRST_PROVIDER = 4, CONSUMER = 3, FACTS = 14, TEXT_BYTES = 256 };
enum { MEMORIES = 30, SPEEDS = 60 }; /* that needs_of tells apart */
#define GIB (INT64_C(1) << 30)

struct waiting {
    struct id128 id;
    uint32_t number; /* of its wording */
};

static struct exchange *exchange;
static struct exchange_effects effects;
static struct random dice;
static uint64_t sequence;

static int64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

static struct exchange_command command(enum exchange_command_type type, uint32_t account)
{
    struct exchange_command made;
    memset(&made, 0, sizeof made);
    made.type = type;
    made.index = ++sequence;
    made.log_time_ns = INT64_C(1700000000) * NS_PER_S;
    made.created_ms = made.log_time_ns / NS_PER_MS;
    made.account = account;
    memcpy(made.id.bytes, &sequence, sizeof sequence);
    return made;
}

static size_t count_of(enum exchange_effect_type type)
{
    size_t count = 0;
    for (size_t i = 0; i < effects.count; i++) {
        count += effects.items[i].type == type;
    }
    return count;
}

/* Returns how many effects of that type the command has. */
static size_t apply(const struct exchange_command *made, enum exchange_effect_type type)
{
    exchange_effects_clear(&effects);
    if (exchange_step(exchange, made, &effects) != EXCHANGE_OK) {
        die("the exchange is out of memory");
    }
    return count_of(type);
}

static void open_market(uint32_t asks, uint32_t jobs, uint32_t cells)
{
    struct exchange_limits limits = exchange_limits_default();
    struct exchange_genesis_account accounts[1 + PROVIDERS];
    memset(accounts, 0, sizeof accounts);
    limits.cells = limits.cells_per_account = cells;
    limits.classes = limits.classes_per_account = MEMORIES * SPEEDS + 1; /* and `any` */
    limits.jobs = limits.jobs_per_account = 2 * jobs + asks + 1;
    limits.asks = asks + 1;
    limits.devices_per_provider = asks;
    exchange = exchange_create(&limits);
    if (exchange == NULL) {
        die("out of memory");
    }
    for (unsigned i = 0; i <= PROVIDERS; i++) {
        accounts[i].key.bytes[0] = (uint8_t)(i + 1);
        accounts[i].roles = i == 0 ? ROLE_CONSUMER : ROLE_PROVIDER;
        accounts[i].credits_micro = i == 0 ? INT64_C(1000000000) * MICRO_PER_CREDIT : 0;
        (void)snprintf(accounts[i].name, sizeof accounts[i].name, "account %u", i);
    }
    struct exchange_command genesis = command(EXCHANGE_GENESIS, EXCHANGE_NO_ACCOUNT);
    genesis.genesis = (struct exchange_genesis){.cluster = {{1}},
                                                .price_band_micro = 1000 * MICRO_PER_CREDIT,
                                                .accounts = accounts,
                                                .account_count = 1 + PROVIDERS};
    (void)apply(&genesis, EFFECT_ACCEPT);
}

static void fact(struct attribute *ret, const char *name, const char *text, int64_t number)
{
    memset(ret, 0, sizeof *ret);
    (void)snprintf(ret->name, sizeof ret->name, "%s", name);
    ret->is_text = text != NULL;
    ret->number = number;
    (void)snprintf(ret->text, sizeof ret->text, "%s", text != NULL ? text : "");
}

/* Gives the device as many attributes as a real one has. */
static void describe(struct attribute facts[FACTS], uint32_t number)
{
    static const char *const regions[] = {"eu", "us", "asia"};
    char label[32];
    struct random drawn = random_seeded(1 + number);
    bool is_gpu = random_below(&drawn, 2) == 0;
    (void)snprintf(label, sizeof label, "device-%u", number);
    fact(&facts[0], "kind", is_gpu ? "gpu" : "cpu", 0);
    fact(&facts[1], "instrument", is_gpu ? "gpu.nvidia.h100-sxm5" : "cpu.x86_64.avx512", 0);
    fact(&facts[2], "memory", NULL, (int64_t)(1 + random_below(&drawn, 39)) * GIB);
    fact(&facts[3], "fp32", NULL, (int64_t)(1 + random_below(&drawn, 90)) * 1000000000000);
    fact(&facts[4], "fp64", NULL, (int64_t)(1 + random_below(&drawn, 60)) * 1000000000000);
    fact(&facts[5], "bandwidth", NULL, (int64_t)(1 + random_below(&drawn, 99)) * 10000000000);
    fact(&facts[6], "region", regions[random_below(&drawn, 3)], 0);
    fact(&facts[7], "label", label, 0);
    fact(&facts[8], "vendor", "example", 0);
    fact(&facts[9], "model", "Example 9000", 0);
    fact(&facts[10], "cores", NULL, 4);
    fact(&facts[11], "isolation", NULL, 2);
    fact(&facts[12], "executor", "command", 0);
    fact(&facts[13], "program", "xz", 0);
}

static void offer(uint32_t account, uint32_t first, uint32_t count, uint32_t cells)
{
    struct exchange_device *devices = memory(count, sizeof *devices);
    struct attribute(*facts)[FACTS] = memory(count, sizeof *facts);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t number = first + i;
        describe(facts[i], number % cells);
        devices[i] = (struct exchange_device){
            .slots = 4, .attributes = facts[i], .attribute_count = FACTS, .label = "device"};
        memcpy(devices[i].device.bytes, &number, sizeof number);
    }
    struct exchange_command advertise = command(EXCHANGE_ADVERTISE, account);
    advertise.advertise = (struct exchange_advertise){devices, count};
    if (apply(&advertise, EFFECT_ACCEPT) != 1) {
        die("devices were refused");
    }
    for (uint32_t i = 0; i < count; i++) {
        struct exchange_command ask = command(EXCHANGE_ASK, account);
        ask.ask = (struct exchange_ask){.device = devices[i].device,
                                        .slots = 4,
                                        .price_micro = (int64_t)(10 + random_below(&dice, 90)) *
                                                       MICRO_PER_CREDIT / 100};
        if (apply(&ask, EFFECT_ACCEPT) != 1) {
            die("an ask was refused");
        }
    }
    free(facts);
    free(devices);
}

static void parse(const char *text, struct requirement *ret_needs)
{
    struct problem problem;
    if (!requirement_parse(text, ret_needs, &problem)) {
        die(problem.text);
    }
}

static void needs_of(uint32_t number, struct requirement *ret_needs)
{
    char text[TEXT_BYTES];
    (void)snprintf(text, sizeof text,
                   "kind = gpu and memory >= %uGiB and fp32 >= %uTFLOPS and bandwidth >= 100GB/s "
                   "and region in (eu, us) and not model = \"Example 8000\"",
                   20 + number % MEMORIES, 50 + number / MEMORIES % SPEEDS);
    parse(text, ret_needs);
}

static int64_t cap_of(uint32_t number)
{
    return (int64_t)(10 + number % 7) * MICRO_PER_CREDIT / 100;
}

static struct id128 submit(const struct requirement *needs, int64_t cap_micro, uint32_t slots,
                           size_t *ret_leases)
{
    struct exchange_command job = command(EXCHANGE_SUBMIT, CONSUMER);
    job.submit = (struct exchange_submit){
        .name = "job",
        .subtasks = 1,
        .budget_micro = 100 * MICRO_PER_CREDIT,
        .cap_micro = cap_micro,
        .needs = needs,
        .slots = slots,
        .limit_ns = 60 * NS_PER_S,
        .term_ns = 3600 * NS_PER_S,
        .error_limit = 1,
        .crash_limit = EXCHANGE_CRASH_LIMIT,
        .verify = EXCHANGE_VERIFY_NONE,
    };
    if (apply(&job, EFFECT_ACCEPT) != 1) {
        die("a job was refused");
    }
    *ret_leases = count_of(EFFECT_LEASE_GRANT);
    return job.id;
}

/* Adds jobs that no ask fits now. */
static void wait_for_asks(struct waiting *waiting, uint32_t jobs)
{
    uint32_t count = 0;
    for (uint32_t i = 0; count < jobs; i++) {
        struct requirement needs;
        size_t leases;
        needs_of(i, &needs);
        struct id128 job = submit(&needs, cap_of(i), 1, &leases);
        if (leases == 0) {
            waiting[count++] = (struct waiting){job, i};
        }
    }
}

/* Opens the market, places the asks, and leases `leased` percent of them, whole devices. */
static void fill_market(uint32_t asks, uint32_t jobs, uint32_t cells, uint32_t leased)
{
    dice = random_seeded(1);
    open_market(asks, jobs, cells);
    for (uint32_t i = 0; i < PROVIDERS; i++) {
        offer(FIRST_PROVIDER + i, i * (asks / PROVIDERS), asks / PROVIDERS, cells);
    }
    struct requirement any;
    parse("any", &any);
    for (uint64_t i = 0; i < (uint64_t)asks * leased / 100; i++) {
        size_t leases;
        (void)submit(&any, MICRO_PER_CREDIT, 4, &leases);
    }
}

static uint32_t number_after(int argc, char **argv, const char *option, uint32_t otherwise)
{
    for (int i = 1; i + 1 < argc; i++) {
        if (strcmp(argv[i], option) == 0) {
            return (uint32_t)strtoul(argv[i + 1], NULL, 10);
        }
    }
    return otherwise;
}

#endif
