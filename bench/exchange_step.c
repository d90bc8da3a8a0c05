/* The program measures orders per second through the whole exchange, without I/O. It prints one
 * JSON object.
 *
 *     exchange_step [--orders N] [--rounds R] [--json]
 *
 * The program drives exchange_step, book, escrow, ledger records and effects as the broker's core
 * does, and announces commands as the core does. It decodes, signs, stores and sends nothing. 64
 * providers have 512 devices of 64 kinds, and 64 consumers bid. An order is an ask or a job of one
 * subtask, which is placed, replaced or cancelled. Some jobs are filled at once. Their result comes
 * in a command of its own, which counts in the time and not as an order. N [400000] orders make a
 * round, on a new exchange that has seen as many before. R [7] rounds are timed whole, and one more
 * takes the time of each command. `commands` has figures of each kind of command in that round.
 * `making` is the share of what is not the exchange's: making up commands, and reading the clock
 * twice for each. docs/bench.md says what each figure means. */
#include "base/checked.h"
#include "base/random.h"
#include "bench/exchange_step/samples.h"
#include "bench/give_up.h"
#include "exchange/exchange.h"
#include "protocol/message.h"

#include <assert.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    PROVIDERS = 64,
    CONSUMERS = 64,
    FIRST_CONSUMER = 3,
    FIRST_PROVIDER = FIRST_CONSUMER + CONSUMERS,
    DEVICES_EACH = 8,
    DEVICES = PROVIDERS * DEVICES_EACH,
    KINDS = 64,
    SLOTS = 16,
    RESTING_MOST = 10000, /* jobs that wait, */
    WAIT_LONG = 5000,     /* and of those some from start to end */
    RUNNING_MOST = 64,    /* subtasks that are out */
    COMING = 4,
    GROUP = 256, /* commands whose effects are kept together, until a commit */
    ROUNDS_MOST = 99,
};

struct waiting_job {
    struct id128 job;
    uint32_t owner;
};

struct running {
    struct exchange_result result;
    uint32_t provider;
};

struct coming {
    enum kind kind;
    struct exchange_command command;
    struct running done; /* for a RESULT */
};

struct market {
    struct exchange *exchange;
    struct exchange_effects effects;
    struct random dice;
    uint64_t index;
    struct requirement needs[KINDS];
    struct id128 asks[DEVICES]; /* zero: none stands */
    struct waiting_job *resting;
    uint32_t resting_count;
    struct running running[RUNNING_MOST + COMING]; /* some may be on their way when it is full */
    uint32_t running_count;
    struct coming coming[COMING]; /* in turns: one is applied, three are on their way */
    uint32_t turn;
    uint64_t fills, refused;
};

static int64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* ---------------------------------------------------------------- commands */

static void number_to_id(uint64_t number, struct id128 *ret_id)
{
    memset(ret_id, 0, sizeof *ret_id);
    memcpy(ret_id->bytes, &number, sizeof number);
}

/* Begins a command a microsecond after the one before. A large command is made in its place. */
static void command_begin(struct market *market, enum exchange_command_type type, uint32_t account,
                          struct exchange_command *command)
{
    memset(command, 0, sizeof *command);
    command->type = type;
    command->index = ++market->index;
    command->account = account;
    command->log_time_ns =
        INT64_C(1700000000) * NS_PER_S + (int64_t)market->index * (NS_PER_MS / 1000);
    command->created_ms = command->log_time_ns / NS_PER_MS;
    number_to_id(market->index, &command->id);
    memcpy(command->body.bytes, &market->index, sizeof market->index);
}

static void apply(struct market *market, const struct exchange_command *command)
{
    if (exchange_step(market->exchange, command, &market->effects) != EXCHANGE_OK) {
        die("the exchange is out of memory");
    }
}

static void open_accounts(struct market *market)
{
    static struct exchange_genesis_account accounts[CONSUMERS + PROVIDERS];
    for (uint32_t i = 0; i < CONSUMERS + PROVIDERS; i++) {
        accounts[i].key.bytes[0] = (uint8_t)(i + 1);
        accounts[i].roles = i < CONSUMERS ? ROLE_CONSUMER : ROLE_PROVIDER;
        accounts[i].credits_micro = i < CONSUMERS ? INT64_C(1000000000) * MICRO_PER_CREDIT : 0;
        (void)snprintf(accounts[i].name, sizeof accounts[i].name, "account %" PRIu32, i);
    }
    struct exchange_command genesis;
    command_begin(market, EXCHANGE_GENESIS, EXCHANGE_NO_ACCOUNT, &genesis);
    genesis.genesis = (struct exchange_genesis){.cluster = {{1}},
                                                .fee_ppm = 10000,
                                                .price_band_micro = 1000 * MICRO_PER_CREDIT,
                                                .accounts = accounts,
                                                .account_count = CONSUMERS + PROVIDERS};
    apply(market, &genesis);
}

static struct attribute instrument(uint32_t kind)
{
    struct attribute attribute = {.name = "instrument", .is_text = true};
    (void)snprintf(attribute.text, sizeof attribute.text, "custom.bench.%" PRIu32, kind);
    return attribute;
}

static uint32_t provider_of(uint32_t device)
{
    return FIRST_PROVIDER + device / DEVICES_EACH;
}

static void advertise(struct market *market)
{
    for (uint32_t provider = 0; provider < PROVIDERS; provider++) {
        struct exchange_device devices[DEVICES_EACH] = {0};
        struct attribute attributes[DEVICES_EACH];
        for (uint32_t i = 0; i < DEVICES_EACH; i++) {
            uint32_t number = provider * DEVICES_EACH + i;
            attributes[i] = instrument(number % KINDS);
            devices[i] = (struct exchange_device){.slots = SLOTS,
                                                  .attributes = &attributes[i],
                                                  .attribute_count = 1,
                                                  .label = "device"};
            number_to_id(number + 1, &devices[i].device);
        }
        struct exchange_command command;
        command_begin(market, EXCHANGE_ADVERTISE, FIRST_PROVIDER + provider, &command);
        command.advertise = (struct exchange_advertise){devices, DEVICES_EACH};
        apply(market, &command);
    }
}

static uint32_t below(struct market *market, uint32_t bound)
{
    return (uint32_t)random_below(&market->dice, bound);
}

/* Draws a price from `from` to `to` hundredths of a credit. */
static int64_t price_between(struct market *market, uint32_t from, uint32_t to)
{
    return (int64_t)(from + below(market, to - from)) * MICRO_PER_CREDIT / 100;
}

static void place(struct market *market, uint32_t device, struct exchange_command *command)
{
    command_begin(market, EXCHANGE_ASK, provider_of(device), command);
    number_to_id(device + 1, &command->ask.device);
    command->ask.slots = SLOTS;
    command->ask.price_micro = price_between(market, 50, 1050);
    market->asks[device] = command->id;
}

static void submit(struct market *market, bool fills, struct exchange_command *command)
{
    uint32_t owner = FIRST_CONSUMER + below(market, CONSUMERS);
    command_begin(market, EXCHANGE_SUBMIT, owner, command);
    command->submit = (struct exchange_submit){
        .name = "job",
        .subtasks = 1,
        .budget_micro = 100 * MICRO_PER_CREDIT,
        .cap_micro = fills ? 20 * MICRO_PER_CREDIT : price_between(market, 1, 50),
        .type = EXCHANGE_MARKET,
        .needs = &market->needs[below(market, KINDS)],
        .slots = 1,
        .limit_ns = 60 * NS_PER_S,
        .term_ns = 600 * NS_PER_S,
        .crash_limit = EXCHANGE_CRASH_LIMIT,
        .verify = EXCHANGE_VERIFY_NONE,
    };
}

static void wait(struct market *market, struct exchange_command *command)
{
    submit(market, false, command);
    market->resting[market->resting_count++] =
        (struct waiting_job){.job = command->id, .owner = command->account};
}

static void hand_in(struct market *market, struct coming *next)
{
    next->done = market->running[0];
    market->running[0] = market->running[--market->running_count];
    command_begin(market, EXCHANGE_RESULTS, next->done.provider, &next->command);
    next->command.results = (struct exchange_results){.results = &next->done.result, .count = 1};
}

static void replace(struct market *market, uint32_t account, const struct id128 *order,
                    int64_t price_micro, struct exchange_command *command)
{
    command_begin(market, EXCHANGE_REPLACE, account, command);
    command->replace = (struct exchange_replace){
        .order = *order, .part = EXCHANGE_ANY_PART, .has_price = true, .price_micro = price_micro};
}

/* ---------------------------------------------------------------- which comes next */

static enum kind draw(struct market *market)
{
    static const struct {
        uint32_t of_hundred;
        enum kind kind;
    } mix[] = {{30, ASK_PLACE},  {20, ASK_REPLACE}, {10, ASK_CANCEL}, {13, JOB_REST},
               {7, JOB_REPLACE}, {10, JOB_CANCEL},  {10, JOB_FILL}};
    if (market->running_count >= RUNNING_MOST) {
        return RESULT;
    }
    uint32_t drawn = below(market, 100);
    size_t at = 0;
    while (drawn >= mix[at].of_hundred) {
        drawn -= mix[at++].of_hundred;
    }
    enum kind kind = mix[at].kind;
    if (kind == JOB_REST && market->resting_count == RESTING_MOST) {
        return JOB_CANCEL;
    }
    return kind == JOB_CANCEL && market->resting_count == WAIT_LONG ? JOB_REST : kind;
}

/* A message about an ask that does not stand becomes the placing of the ask. */
static void make(struct market *market, struct coming *next)
{
    static const struct id128 none;
    struct exchange_command *command = &next->command;
    const uint32_t device = below(market, DEVICES);
    const uint32_t first = next->kind == JOB_CANCEL ? WAIT_LONG : 0;
    const uint32_t resting = first + below(market, market->resting_count - first);
    const struct waiting_job *job = &market->resting[resting];
    if ((next->kind == ASK_REPLACE || next->kind == ASK_CANCEL) &&
        id128_equal(&market->asks[device], &none)) {
        next->kind = ASK_PLACE;
    }
    switch (next->kind) {
    case ASK_PLACE:
        place(market, device, command);
        break;
    case ASK_REPLACE:
        replace(market, provider_of(device), &market->asks[device], price_between(market, 50, 1050),
                command);
        break;
    case ASK_CANCEL:
        command_begin(market, EXCHANGE_CANCEL_ORDER, provider_of(device), command);
        command->cancel_order.order = market->asks[device];
        market->asks[device] = none;
        break;
    case JOB_REPLACE:
        replace(market, job->owner, &job->job, price_between(market, 1, 50), command);
        break;
    case JOB_CANCEL:
        command_begin(market, EXCHANGE_CANCEL_JOB, job->owner, command);
        command->cancel_job.job = job->job;
        market->resting[resting] = market->resting[--market->resting_count];
        break;
    case JOB_REST:
        wait(market, command);
        break;
    case JOB_FILL:
        submit(market, true, command);
        break;
    case RESULT:
    case KIND_COUNT:
        hand_in(market, next);
        break;
    }
}

/* Returns the command that is so many behind the one whose turn it is. */
static struct coming *behind(struct market *market, uint32_t count)
{
    return &market->coming[(market->turn + count) % COMING];
}

static void make_last(struct market *market)
{
    struct coming *last = behind(market, COMING - 1);
    last->kind = draw(market);
    make(market, last);
}

/* Takes from the effects of a command which subtasks are out now. */
static void take_effects(struct market *market, size_t first)
{
    struct running *next = &market->running[market->running_count];
    for (size_t i = first; i < market->effects.count; i++) {
        const struct exchange_effect *effect = &market->effects.items[i];
        market->refused += effect->type == EFFECT_REJECT;
        if (effect->type == EFFECT_LEASE_GRANT) {
            assert(market->running_count < RUNNING_MOST + COMING);
            next->provider = effect->account;
            next->result = (struct exchange_result){.job = effect->grant.job,
                                                    .lease = effect->grant.lease,
                                                    .device = effect->grant.device,
                                                    .manifest = effect->grant.manifest,
                                                    .busy_ns = 1000};
        } else if (effect->type == EFFECT_DISPATCH) {
            next->result.index = effect->work.index;
            next->result.attempt = effect->work.attempt;
            market->running_count++;
            market->fills++;
        }
    }
}

static void market_open(struct market *market, uint64_t seed)
{
    struct exchange_limits limits = exchange_limits_default();
    *market = (struct market){.dice = random_seeded(seed)};
    limits.ids_per_account = UINT32_MAX; /* the window is a day, and this is one second of it */
    limits.jobs_per_account = RESTING_MOST + RUNNING_MOST;
    market->exchange = exchange_create(&limits);
    market->resting = memory(RESTING_MOST, sizeof *market->resting);
    if (market->exchange == NULL) {
        die("out of memory");
    }
    for (uint32_t i = 0; i < KINDS; i++) {
        market->needs[i].count = 1;
        market->needs[i].nodes[0] =
            (struct requirement_node){.op = REQUIREMENT_EQ, .attribute = instrument(i)};
    }
    open_accounts(market);
    advertise(market);
    for (uint32_t i = 0; i < DEVICES; i++) {
        struct exchange_command command;
        place(market, i, &command);
        apply(market, &command);
    }
    for (uint32_t i = 0; i < WAIT_LONG; i++) {
        struct exchange_command command;
        wait(market, &command);
        apply(market, &command);
    }
    for (uint32_t i = 1; i < COMING; i++) {
        make_last(market);
        market->turn = (market->turn + 1) % COMING;
    }
}

static void market_close(struct market *market)
{
    exchange_effects_fini(&market->effects);
    exchange_destroy(&market->exchange);
    free(market->resting);
}

/* ---------------------------------------------------------------- rounds */

struct outcome {
    double orders_per_s, hash_ns;
    uint64_t fills, refused;
    size_t state_bytes, memory_bytes;
    struct hash32 state;
};

static void one_command(struct market *market, struct samples *samples, uint64_t *orders)
{
    const struct coming *now = behind(market, 0);
    const struct exchange_command *soon = &behind(market, 1)->command;
    const struct exchange_command *next = &behind(market, 2)->command;
    make_last(market);
    const struct exchange_command *last = &behind(market, COMING - 1)->command;
    size_t first = market->effects.count;
    int64_t before_ns = samples == NULL ? 0 : wall_ns();
    exchange_expect(market->exchange, last->account, last);
    exchange_expect_found(market->exchange, next->account, next);
    exchange_expect_orders(market->exchange, soon->account, soon);
    apply(market, &now->command);
    if (samples != NULL) {
        samples->each[now->kind][samples->count[now->kind]++] = (uint32_t)(wall_ns() - before_ns);
    }
    take_effects(market, first);
    market->turn = (market->turn + 1) % COMING;
    *orders += now->kind != RESULT;
}

static void run_orders(struct market *market, uint64_t orders, struct samples *samples)
{
    for (uint64_t done = 0; done < orders;) {
        exchange_effects_clear(&market->effects);
        for (uint32_t i = 0; i < GROUP && done < orders; i++) {
            one_command(market, samples, &done);
        }
    }
}

/* The outcome includes the time of making up commands, a tenth of all. */
static struct outcome run(uint64_t orders, struct samples *samples)
{
    struct market market;
    struct outcome outcome = {0};
    market_open(&market, 1);
    run_orders(&market, orders, NULL); /* as many first that do not count */
    (void)exchange_state_hash(market.exchange);
    const uint64_t first = market.index;
    const uint64_t fills = market.fills;
    const int64_t began_ns = wall_ns();
    const int64_t before_ns = now_ns();
    run_orders(&market, orders, samples);
    int64_t after_ns = now_ns();
    if (samples != NULL) {
        samples->whole_ns = wall_ns() - began_ns;
    }
    const double commands = (double)(market.index - first);
    outcome.orders_per_s = (double)orders * 1e9 / (double)(after_ns - before_ns);
    outcome.fills = market.fills - fills;
    outcome.refused = market.refused;
    outcome.state = exchange_state_hash(market.exchange);
    outcome.hash_ns = (double)(now_ns() - after_ns) / commands;
    outcome.memory_bytes = mallinfo2().uordblks + mallinfo2().hblkhd;
    uint8_t *bytes = exchange_save(market.exchange, &outcome.state_bytes);
    if (bytes == NULL) {
        die("out of memory");
    }
    free(bytes);
    market_close(&market);
    return outcome;
}

/* ---------------------------------------------------------------- figures */

static int compare_doubles(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;
    return (a > b) - (a < b);
}

/* A round of its own shows where the time goes. */
static json_t *profile(uint64_t orders)
{
    struct samples samples;
    const double reading_ns = samples_clock_ns();
    samples_init(&samples, orders);
    (void)run(orders, &samples);
    return samples_profile(&samples, reading_ns);
}

static uint64_t number_after(int argc, char **argv, const char *option, uint64_t otherwise)
{
    for (int i = 1; i + 1 < argc; i++) {
        if (strcmp(argv[i], option) == 0) {
            return strtoull(argv[i + 1], NULL, 10);
        }
    }
    return otherwise;
}

/* malloc reads what is asked of it when a program starts: as its unit asks for the broker
 * (packaging/bourse-broker.service). */
static void ask_for_huge_pages(char **argv)
{
    static const char name[] = "GLIBC_TUNABLES";
    if (getenv(name) == NULL && setenv(name, "glibc.malloc.hugetlb=1", 1) == 0) {
        (void)execv("/proc/self/exe", argv); /* without, it is the same but slower */
    }
}

/* Each round takes the memory that the round before gave back. A machine that hands out new memory
 * takes longer for that than the exchange takes for the orders, and the time changes from minute to
 * minute. Only the first round pays for new memory, as a broker that runs for days does once. */
static void keep_memory(void)
{
    (void)mallopt(M_MMAP_MAX, 0);
    (void)mallopt(M_TRIM_THRESHOLD, INT_MAX);
}

int main(int argc, char **argv)
{
    ask_for_huge_pages(argv);
    keep_memory();
    const uint64_t orders = number_after(argc, argv, "--orders", 400000);
    const uint64_t rounds = number_after(argc, argv, "--rounds", 7);
    double per_s[ROUNDS_MOST];
    double hash_ns[ROUNDS_MOST];
    if (orders < 1000 || orders > 10000000 || rounds < 1 || rounds > ROUNDS_MOST) {
        die("--orders is from 1000 to 10000000, --rounds from 1 to 99");
    }
    struct outcome first = {0};
    for (uint64_t round = 0; round < rounds; round++) {
        struct outcome outcome = run(orders, NULL);
        first = round == 0 ? outcome : first;
        if (!hash32_equal(&first.state, &outcome.state) || outcome.refused > 0) {
            die("the same commands led to another state, or some were refused");
        }
        per_s[round] = outcome.orders_per_s;
        hash_ns[round] = outcome.hash_ns;
    }
    qsort(per_s, rounds, sizeof *per_s, compare_doubles);
    qsort(hash_ns, rounds, sizeof *hash_ns, compare_doubles);
    json_t *value = json_pack(
        "{s:f, s:f, s:f, s:I, s:I, s:f, s:I, s:I, s:I, s:o}", "orders_per_s", per_s[rounds / 2],
        "slowest", per_s[0], "fastest", per_s[rounds - 1], "orders", (json_int_t)orders, "fills",
        (json_int_t)first.fills, "hash_ns_per_command", hash_ns[rounds / 2], "memory_bytes",
        (json_int_t)first.memory_bytes, "state_bytes", (json_int_t)first.state_bytes, "rounds",
        (json_int_t)rounds, "profile", profile(orders));
    (void)json_dumpf(value, stdout, JSON_COMPACT);
    (void)putchar('\n');
    json_decref(value);
    return 0;
}
