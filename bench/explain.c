/* bench/explain.c - how long the exchange takes to say why a job waits. Prints one JSON object.
 *
 *     explain [--asks N] [--jobs N] [--cells N] [--leased PERCENT] [--json]
 *
 * N asks [10000] by 20 providers, of devices of as many kinds as there may be cells: [as many as asks], each like no other. So
 * many in a hundred [50] are leased, the cheaper ones. N jobs [1000] wait, each with a requirement of its own. Each is explained,
 * and each ask from the other side. Then they are asked about as if nobody had submitted them: a quote and an explanation each;
 * and so is one that fits every device and has work for all of them. The times are processor time. */
#include "base/checked.h"
#include "base/random.h"
#include "bench/give_up.h"
#include "exchange/exchange.h"
#include "exchange/why.h"
#include "formats/requirement.h"
#include "protocol/message.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PROVIDERS = 20, FIRST_PROVIDER = 4, CONSUMER = 3, FACTS = 14, TEXT_BYTES = 256 };
enum { MEMORIES = 30, SPEEDS = 60 }; /* that needs_of words apart */
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

/* How many effects of that type it has. */
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

/* As many attributes as a real one has. */
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

/* As the broker answers a QuoteRequest. */
static int64_t time_quote(const struct requirement *needs, int64_t cap_micro, uint32_t subtasks)
{
    static struct exchange_explanation explanation;
    static struct exchange_quote answer;
    const struct exchange_need need = {.needs = needs,
                                       .account = CONSUMER,
                                       .subtasks = subtasks,
                                       .slots = 1,
                                       .cap_micro = cap_micro,
                                       .limit_ns = 60 * NS_PER_S,
                                       .term_ns = 3600 * NS_PER_S,
                                       .expect_ns = 60 * NS_PER_S};
    int64_t before_ns = now_ns();
    if (!exchange_quote(exchange, &need, &answer)) {
        die("out of memory");
    }
    exchange_explain(exchange, &need, &explanation);
    return now_ns() - before_ns;
}

static int compare(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left;
    int64_t b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

static double us(const int64_t *each_ns, size_t at)
{
    return (double)each_ns[at] / 1e3;
}

static json_t *figures(int64_t *each_ns, size_t count)
{
    qsort(each_ns, count, sizeof *each_ns, compare);
    return json_pack("{s:f, s:f, s:f}", "p50_us", us(each_ns, count / 2), "p99_us",
                     us(each_ns, count * 99 / 100), "max_us", us(each_ns, count - 1));
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

/* Those that no ask is for now. */
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

static json_t *time_jobs(const struct waiting *waiting, uint32_t jobs, int64_t *each_ns,
                         uint64_t *ret_remedies)
{
    static struct exchange_explanation explanation;
    *ret_remedies = 0;
    for (uint32_t i = 0; i < jobs; i++) {
        int64_t before_ns = now_ns();
        if (!exchange_explain_job(exchange, &waiting[i].id, EXCHANGE_ANY_PART, &explanation)) {
            die("a job is gone");
        }
        each_ns[i] = now_ns() - before_ns;
        *ret_remedies += explanation.remedy.count > 0;
    }
    return figures(each_ns, jobs);
}

static json_t *time_asks(uint32_t asks, uint32_t jobs, int64_t *each_ns)
{
    static struct exchange_why why;
    for (uint32_t i = 0; i < jobs; i++) {
        int64_t before_ns = now_ns();
        if (exchange_explain_ask(exchange, FIRST_PROVIDER + i % PROVIDERS,
                                 i / PROVIDERS % (asks / PROVIDERS), &why) != WHY_OK) {
            die("an ask is gone");
        }
        each_ns[i] = now_ns() - before_ns;
    }
    return figures(each_ns, jobs);
}

static json_t *time_quotes(const struct waiting *waiting, uint32_t jobs, int64_t *each_ns)
{
    for (uint32_t i = 0; i < jobs; i++) {
        struct requirement needs;
        needs_of(waiting[i].number, &needs);
        each_ns[i] = time_quote(&needs, cap_of(waiting[i].number), 1);
    }
    return figures(each_ns, jobs);
}

static json_t *time_wide_quotes(uint32_t rounds, int64_t *each_ns)
{
    struct requirement any;
    parse("any", &any);
    for (uint32_t i = 0; i < rounds; i++) {
        each_ns[i] = time_quote(&any, -1, UINT32_MAX);
    }
    return figures(each_ns, rounds);
}

int main(int argc, char **argv)
{
    uint32_t asks = number_after(argc, argv, "--asks", 10000) / PROVIDERS * PROVIDERS;
    uint32_t jobs = number_after(argc, argv, "--jobs", 1000);
    uint32_t cells = number_after(argc, argv, "--cells", asks);
    uint32_t leased = number_after(argc, argv, "--leased", 50);
    if (asks == 0 || jobs < 100 || cells == 0 || leased > 100) {
        die("--asks is 20 at least, --jobs 100, --cells 1, --leased 0 to 100");
    }
    dice = random_seeded(1);
    open_market(asks, jobs, cells);
    for (uint32_t i = 0; i < PROVIDERS; i++) {
        offer(FIRST_PROVIDER + i, i * (asks / PROVIDERS), asks / PROVIDERS, cells);
    }
    struct requirement any;
    parse("any", &any);
    for (uint64_t i = 0; i < (uint64_t)asks * leased / 100; i++) { /* whole devices */
        size_t leases;
        (void)submit(&any, MICRO_PER_CREDIT, 4, &leases);
    }
    struct waiting *waiting = memory(jobs, sizeof *waiting);
    int64_t *each_ns = memory(jobs, sizeof *each_ns);
    wait_for_asks(waiting, jobs);
    uint64_t remedies;
    json_t *of_jobs = time_jobs(waiting, jobs, each_ns, &remedies);
    json_t *of_asks = time_asks(asks, jobs, each_ns);
    json_t *quotes = time_quotes(waiting, jobs, each_ns);
    json_t *value =
        json_pack("{s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o}", "asks", (json_int_t)asks,
                  "cells", (json_int_t)cells, "leased", (json_int_t)leased, "jobs",
                  (json_int_t)jobs, "remedies", (json_int_t)remedies, "job", of_jobs, "ask",
                  of_asks, "quote", quotes, "quote_any", time_wide_quotes(jobs / 10, each_ns));
    (void)json_dumpf(value, stdout, JSON_COMPACT);
    (void)putchar('\n');
    json_decref(value);
    free(each_ns);
    free(waiting);
    exchange_effects_fini(&effects);
    exchange_destroy(&exchange);
    return 0;
}
