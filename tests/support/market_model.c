#include "tests/support/market_model.h"

#include "base/checked.h"
#include "base/sha256.h"
#include "tests/support/model_limits.h"

#include <stdlib.h>
#include <string.h>

enum {
    FIRST_CONSUMER = 3,
    FIRST_PROVIDER = FIRST_CONSUMER + MODEL_CONSUMERS,
    OPERATOR = FIRST_PROVIDER + MODEL_PROVIDERS
};

struct id128 model_id(struct model *model)
{
    struct id128 id;
    for (size_t i = 0; i < sizeof id.bytes; i++) {
        id.bytes[i] = (uint8_t)random_u64(&model->random);
    }
    return id;
}

static uint32_t draw(struct model *model, uint64_t bound)
{
    return (uint32_t)random_below(&model->random, bound);
}

static struct key32 key_of(uint32_t account)
{
    struct key32 key = {{0}};
    key.bytes[0] = (uint8_t)account;
    key.bytes[31] = 1;
    return key;
}

static struct exchange_command blank(struct model *model, enum exchange_command_type type,
                                     uint32_t account)
{
    struct exchange_command command;
    memset(&command, 0, sizeof command);
    command.type = type;
    command.index = model->index + 1;
    command.log_time_ns = model->now_ns;
    command.account = account;
    command.id = model_id(model);
    command.created_ms = model->now_ns / NS_PER_MS;
    command.body.bytes[0] = (uint8_t)draw(model, 256);
    return command;
}

void model_init(struct model *model, uint64_t seed)
{
    memset(model, 0, sizeof *model);
    model->random = random_seeded(seed);
    model->limits = model_limits();
    model->exchange = exchange_create(&model->limits);
    model->now_ns = INT64_C(1700000000) * NS_PER_S;
    struct exchange_genesis_account *accounts = model->founders;
    for (uint32_t i = 0; i < MODEL_FOUNDERS; i++) {
        uint32_t account = FIRST_CONSUMER + i;
        accounts[i].key = key_of(account);
        accounts[i].roles = account < FIRST_PROVIDER ? 1
                            : account < OPERATOR - 1 ? 2 | 64
                            : account < OPERATOR     ? 2
                                                     : 32;
        accounts[i].credits_micro = account < FIRST_PROVIDER ? 100 * MICRO_PER_CREDIT : 0;
        accounts[i].name[0] = (char)('a' + i);
    }
    model->command = blank(model, EXCHANGE_GENESIS, EXCHANGE_NO_ACCOUNT);
    model->command.genesis = (struct exchange_genesis){
        .cluster = {{1}},
        .fee_ppm = 30000,
        .price_band_micro = 100 * MICRO_PER_CREDIT,
        .accounts = accounts,
        .account_count = MODEL_FOUNDERS,
    };
    (void)model_apply(model);
}

void model_fini(struct model *model)
{
    exchange_destroy(&model->exchange);
    exchange_effects_fini(&model->effects);
}

/* ---------------------------------------------------------------- commands */

static struct id128 device_of(uint32_t provider, uint32_t number)
{
    return (struct id128){{(uint8_t)provider, 9, (uint8_t)number}};
}

/* Returns the usual number. Now and then returns a number that is in range by itself, or just not,
 * and too large when it is multiplied. */
static int64_t or_extreme(struct model *model, int64_t usual)
{
    static const int64_t extremes[] = {0,
                                       -1,
                                       1,
                                       INT64_MIN,
                                       INT64_MAX,
                                       INT64_MAX / 2,
                                       INT64_MAX / NS_PER_MS * NS_PER_MS,
                                       100 * MICRO_PER_CREDIT,
                                       7 * 24 * NS_PER_HOUR};
    return draw(model, 40) == 0 ? extremes[draw(model, sizeof extremes / sizeof extremes[0])]
                                : usual;
}

static void set_text(struct attribute *attribute, const char *name, const char *text)
{
    memset(attribute, 0, sizeof *attribute);
    strcpy(attribute->name, name);
    attribute->is_text = true;
    strcpy(attribute->text, text);
}

static void set_number(struct attribute *attribute, const char *name, int64_t number)
{
    memset(attribute, 0, sizeof *attribute);
    strcpy(attribute->name, name);
    attribute->number = number;
}

static void advertise(struct model *model, uint32_t provider, uint32_t count)
{
    model->command = blank(model, EXCHANGE_ADVERTISE, provider);
    for (uint32_t i = 0; i < count; i++) {
        struct attribute *attributes = model->attributes[i];
        set_text(&attributes[0], "kind", (provider + i) % 2 == 0 ? "cpu" : "gpu");
        set_number(&attributes[1], "memory",
                   (int64_t)(model->is_calm ? 8 : 1 + draw(model, 4)) << 30);
        set_number(&attributes[2], "bf16", (int64_t)(1 + (provider + i) % 4) * (RATE_UNIT / 2));
        model->devices[i] = (struct exchange_device){
            .device = device_of(provider, i),
            .slots = model->is_calm ? 4096 : 1 + draw(model, 8),
            .attributes = attributes,
            .attribute_count =
                (provider + i) % 3 == 0 ? 2 : 3, /* some devices do not say how fast they are */
            .label = "device",
        };
    }
    model->command.advertise =
        (struct exchange_advertise){.devices = model->devices, .count = count};
}

/* Adds conditions for one or two consumers, and now and then for an account that does not exist.
 * Hours begin at a near minute, and some asks have a bound for the day. */
static void add_conditions(struct model *model, struct exchange_ask *made)
{
    if (draw(model, 5) == 0) {
        memset(model->to, 0, sizeof model->to);
        for (size_t i = 0; i < 2; i++) {
            model->to[i].has_key = draw(model, 2) == 0;
            uint32_t account = FIRST_CONSUMER + draw(model, MODEL_CONSUMERS);
            model->to[i].key = key_of(draw(model, 20) == 0 ? 250 : account);
            model->to[i].name[0] = (char)('a' + account - FIRST_CONSUMER);
        }
        made->to = model->to;
        made->to_count = 1 + draw(model, 2);
    }
    if (draw(model, 5) == 0) {
        uint32_t now_min = (uint32_t)(model->now_ns / (60 * NS_PER_S) % HOURS_DAY_MIN);
        uint32_t from_min = (now_min + draw(model, 3)) % HOURS_DAY_MIN;
        uint32_t till_min = (from_min + draw(model, 4)) % HOURS_DAY_MIN; /* sometimes wrong */
        made->hours = (struct hours){
            .count = 1,
            .windows = {{.days = (uint8_t)(1 + draw(model, HOURS_ALL_DAYS)),
                         .from_min = (uint16_t)from_min,
                         .till_min = (uint16_t)(till_min == 0 ? HOURS_DAY_MIN : till_min)}}};
    }
    if (draw(model, 6) == 0) {
        made->daily_ns = or_extreme(model, (int64_t)(1 + draw(model, 6)) * 20 * NS_PER_S);
        made->hours.offset_min = (int32_t)draw(model, 3) * 60;
    }
}

static void ask(struct model *model, uint32_t provider, uint32_t device)
{
    model->command = blank(model, EXCHANGE_ASK, provider);
    model->command.ask = (struct exchange_ask){
        .device = device_of(provider, device),
        .slots = model->is_calm ? 4096 : 1 + draw(model, 6),
        .price_micro = model->is_calm ? 0 : or_extreme(model, (int64_t)draw(model, 4) * 250000),
    };
    if (!model->is_calm) {
        model->command.ask.good_till_ns =
            or_extreme(model, draw(model, 4) == 0 ? model->now_ns + 30 * NS_PER_S : 0);
        model->command.ask.max_term_ns = or_extreme(model, draw(model, 6) == 0 ? 20 * NS_PER_S : 0);
        if (draw(model, 6) == 0) {
            model->command.ask.type = draw(model, 2) == 0 ? EXCHANGE_IOC : EXCHANGE_POST_ONLY;
        }
        add_conditions(model, &model->command.ask);
        if (draw(model, 2) == 0) {
            model->command.ask.terms = (struct exchange_terms){
                .is_interruptible = true,
                .notice_ns = or_extreme(model, (int64_t)draw(model, 3) * 4 * NS_PER_S),
                .minimum_run_ns = or_extreme(model, (int64_t)draw(model, 3) * 3 * NS_PER_S)};
        }
    }
    model->asks[provider - FIRST_PROVIDER][device] = model->command.id;
}

static void make_needs(struct model *model)
{
    memset(&model->needs, 0, sizeof model->needs);
    uint32_t dice = draw(model, 6);
    if (dice < 4) {
        model->needs.count = 1;
        model->needs.nodes[0].op = REQUIREMENT_EQ;
        set_text(&model->needs.nodes[0].attribute, "kind", dice < 2 ? "cpu" : "gpu");
    } else if (dice == 4) {
        model->needs.count = 1;
        model->needs.nodes[0].op = REQUIREMENT_GE;
        set_number(&model->needs.nodes[0].attribute, "memory", (int64_t)(1 + draw(model, 5)) << 30);
    }
}

/* Makes a cap a value now and then, mostly of a rate that exists. */
static void any_rate(struct model *model, int64_t *cap_micro, uint32_t *ret_rate)
{
    if (*cap_micro >= 0 && draw(model, 3) == 0) {
        *ret_rate = draw(model, 20) == 0 ? RATES : RATE_BF16;
        *cap_micro = or_extreme(model, *cap_micro);
    }
}

/* Adds further parts, which leave the first part at least one subtask. */
static void add_parts(struct model *model, struct exchange_submit *submit)
{
    uint32_t left = submit->subtasks;
    for (uint32_t i = 0; i < MODEL_PARTS && left > 1 && draw(model, 2) == 0; i++) {
        make_needs(model);
        model->part_needs[i] = model->needs;
        model->parts[i] = (struct exchange_part){
            .subtasks = 1 + draw(model, left - 1),
            .needs = &model->part_needs[i],
            .slots = 1 + draw(model, 2),
            .cap_micro = draw(model, 2) == 0 ? (int64_t)draw(model, 5) * 250000 : -1,
            .limit_ns = submit->limit_ns,
            .term_ns = submit->term_ns,
            .expect_ns = NS_PER_S,
        };
        any_rate(model, &model->parts[i].cap_micro, &model->parts[i].rate);
        left -= model->parts[i].subtasks;
        submit->part_count = i + 1;
    }
    submit->parts = model->parts;
}

/* Each subtask waits for up to three before it, mostly near ones. Now and then one waits for an
 * index that no subtask before it has. */
static void add_graph(struct model *model, struct exchange_submit *submit)
{
    uint32_t edges = 0;
    for (uint32_t i = 0; i < submit->subtasks; i++) {
        uint32_t most = i < 3 ? i : 3;
        model->ranks[i] = draw(model, 4);
        model->expect_ms[i] = draw(model, 4) * 1000;
        model->after_counts[i] = most == 0 ? 0 : draw(model, most + 1);
        for (uint32_t k = 0; k < model->after_counts[i]; k++) {
            uint32_t back = 1 + draw(model, i < 8 ? i : 8);
            model->after[edges++] = i - back;
        }
    }
    if (edges > 0 && draw(model, 40) == 0) {
        model->after[edges - 1] = submit->subtasks;
    }
    model->graph = (struct exchange_graph){
        .rank = model->ranks,
        .rank_count = draw(model, 2) == 0 ? submit->subtasks : 0,
        .expect_ms = model->expect_ms,
        .expect_count = draw(model, 2) == 0 ? submit->subtasks : 0,
        .after_count = model->after_counts,
        .after_count_count = submit->subtasks,
        .after = model->after,
        .after_length = edges,
    };
    submit->graph = &model->graph;
}

/* Adds one check for each subtask. Now and then a check is of another subtask. */
static void add_checks(struct model *model, struct exchange_submit *submit)
{
    const uint32_t first = submit->subtasks;
    if (first > MODEL_SUBTASKS / 2) {
        return;
    }
    uint32_t edges = 0;
    for (uint32_t i = 0; i < first; i++) {
        model->after_counts[i] = submit->graph == NULL ? 0 : model->after_counts[i];
        edges += model->after_counts[i];
    }
    for (uint32_t i = 0; i < first; i++) {
        model->ranks[first + i] = draw(model, 4);
        model->expect_ms[first + i] = 0;
        model->after_counts[first + i] = 1;
        model->after[edges + i] = i;
    }
    if (draw(model, 40) == 0) {
        model->after[edges] = first - 1;
    }
    model->graph = (struct exchange_graph){
        .rank = model->ranks,
        .rank_count = submit->graph == NULL || submit->graph->rank_count == 0 ? 0 : 2 * first,
        .expect_ms = model->expect_ms,
        .expect_count = submit->graph == NULL || submit->graph->expect_count == 0 ? 0 : 2 * first,
        .after_count = model->after_counts,
        .after_count_count = 2 * first,
        .after = model->after,
        .after_length = edges + first,
    };
    make_needs(model);
    const size_t last = submit->part_count;
    model->part_needs[last] = model->needs;
    model->parts[last] = (struct exchange_part){
        .subtasks = first,
        .needs = &model->part_needs[last],
        .slots = 1 + draw(model, 2),
        .cap_micro = draw(model, 2) == 0 ? (int64_t)draw(model, 5) * 250000 : -1,
        .limit_ns = submit->limit_ns,
        .term_ns = submit->term_ns,
        .expect_ns = NS_PER_S,
    };
    submit->subtasks = 2 * first;
    submit->graph = &model->graph;
    submit->parts = model->parts;
    submit->part_count = last + 1;
    submit->verify = EXCHANGE_VERIFY_CHEAP;
}

static void make_submit(struct model *model)
{
    model->command = blank(model, EXCHANGE_SUBMIT, FIRST_CONSUMER + draw(model, MODEL_CONSUMERS));
    make_needs(model);
    const struct requirement needs = model->needs;
    uint32_t width = 1 + draw(model, 3);
    int64_t limit_ns = (int64_t)(1 + draw(model, 20)) * NS_PER_S;
    model->command.submit = (struct exchange_submit){
        .name = "job",
        .manifest = {{(uint8_t)draw(model, 256)}},
        .subtasks = 1 + draw(model, draw(model, 8) == 0 ? MODEL_SUBTASKS : 20),
        .budget_micro =
            draw(model, 16) == 0 ? 0 : or_extreme(model, 1 + (int64_t)draw(model, 200000)),
        .cap_micro = draw(model, 2) == 0 ? (int64_t)draw(model, 5) * 250000 : -1,
        .needs = &model->needs,
        .slots = width,
        .at_most = draw(model, 2) == 0 ? 0 : width * (1 + draw(model, 4)),
        .limit_ns = limit_ns * (draw(model, 8) == 0 ? 5 : 1),
        .term_ns = or_extreme(model, limit_ns + (int64_t)draw(model, 40) * NS_PER_S),
        .expect_ns = or_extreme(model, NS_PER_S),
        .retries = draw(model, 3),
        .error_limit = draw(model, 6),
        .crash_limit = draw(model, 4),
        .verify = EXCHANGE_VERIFY_NONE,
    };
    if (draw(model, 4) == 0) {
        model->command.submit.has_interruptions = true;
        model->command.submit.interruptions = draw(model, 3);
    }
    any_rate(model, &model->command.submit.cap_micro, &model->command.submit.rate);
    if (draw(model, 3) == 0) {
        add_parts(model, &model->command.submit);
    }
    if (draw(model, 3) == 0) {
        add_graph(model, &model->command.submit);
    }
    if (draw(model, 3) == 0) {
        add_checks(model, &model->command.submit);
    }
    model->command.submit.has_checkpoints =
        model->command.submit.verify == EXCHANGE_VERIFY_NONE && draw(model, 3) == 0;
    if (draw(model, 7) == 0) {
        model->command.submit.good_till_ns =
            or_extreme(model, model->now_ns + (int64_t)draw(model, 60) * NS_PER_S);
    }
    model->command.submit.type =
        draw(model, 4) > 0 ? EXCHANGE_MARKET : (enum exchange_order_type)draw(model, 6);
    if (model->command.submit.type == EXCHANGE_ALL_OR_NONE) { /* may wait for ever */
        model->command.submit.good_till_ns = model->now_ns + 60 * NS_PER_S;
    }
    model->needs = needs; /* of the first part */
}

static uint8_t draw_outcome(struct model *model)
{
    static const uint8_t rare[] = {1, 17, 15, 14, 16, 10};
    uint32_t dice = draw(model, 24);
    return model->is_calm || dice >= 20 || dice < 14 ? 0 : rare[dice - 14];
}

/* Puts a check's verdict: mostly right, sometimes wrong, now and then no verdict at all. */
static void put_verdict(struct model *model, const struct model_work *work,
                        struct exchange_result *result)
{
    uint32_t dice = hash32_is_zero(&work->seed) ? 0 : model->is_calm ? 1 : draw(model, 32);
    result->seed = work->seed;
    if (dice == 31) {
        result->seed.bytes[5] ^= 1;
    } else if (dice == 30) {
        result->outcome = 10; /* the check's input is missing */
    }
    result->is_missing = result->outcome == 10 && draw(model, 2) == 0; /* else a lie */
    result->verdict = dice == 0 || dice == 29 ? 0 : dice < 20 ? 1 : dice < 25 ? 2 : 3;
}

static void make_results(struct model *model)
{
    static const uint8_t left_behind[40] = "opaque bytes that others are given";
    if (model->work_count == 0) {
        model->command = blank(model, EXCHANGE_TICK, EXCHANGE_NO_ACCOUNT);
        return;
    }
    uint32_t provider = model->work[draw(model, model->work_count)].provider;
    size_t wanted = 1 + draw(model, 8);
    size_t count = 0;
    model->command = blank(model, EXCHANGE_RESULTS, provider);
    for (size_t i = 0; i < model->work_count && count < wanted;) {
        struct model_work work = model->work[i];
        if (work.provider != provider) {
            i++;
            continue;
        }
        model->results[count++] = (struct exchange_result){
            .job = work.job,
            .index = work.index,
            .attempt = work.attempt,
            .lease = work.lease,
            .device = work.device,
            .manifest = work.manifest,
            .outcome = draw_outcome(model),
            .busy_ns = or_extreme(model, (int64_t)draw(model, 10) * NS_PER_S / 2),
            .hash = {{(uint8_t)draw(model, 256), 7}},
            .given = left_behind,
            .given_length = 1 + draw(model, sizeof left_behind),
            .saved = left_behind,
            .saved_length = draw(model, 4),
        };
        put_verdict(model, &work, &model->results[count - 1]);
        if (draw(model, 50) == 0) { /* more bytes than can be handed on */
            model->results[count - 1].given = NULL;
            model->results[count - 1].given_length = 20000;
        }
        if (!model->is_calm && draw(model, 16) == 0) {
            i++; /* The answer is lost, and the same result comes again later. */
        } else {
            model->work[i] = model->work[--model->work_count];
        }
    }
    model->command.results = (struct exchange_results){.results = model->results, .count = count};
    for (size_t i = 0; i < sizeof model->command.results.dice.bytes; i++) {
        model->command.results.dice.bytes[i] = (uint8_t)draw(model, 256);
    }
}

static void make_statement(struct model *model)
{
    uint32_t provider = FIRST_PROVIDER + draw(model, MODEL_PROVIDERS);
    size_t count = 0;
    model->command = blank(model, EXCHANGE_STATEMENT, provider);
    for (size_t i = 0; i < model->work_count;) {
        const struct model_work *work = &model->work[i];
        if (work->provider == provider && draw(model, 4) == 0) {
            model->work[i] =
                model->work[--model->work_count]; /* the agent had restarted, and forgot it */
            continue;
        }
        if (work->provider == provider) {
            model->held[count++] = (struct exchange_held){work->lease, work->index, work->attempt};
        }
        i++;
    }
    for (uint32_t garbage = draw(model, 5); garbage > 0; garbage--) {
        model->held[count++] = (struct exchange_held){draw(model, 2 * model->lease_count + 2),
                                                      draw(model, 9) - 1, draw(model, 3)};
    }
    model->command.statement = (struct exchange_statement){
        .held = model->held,
        .count = count,
        .as_of_ns = draw(model, 2) == 0 ? model->now_ns : 0,
    };
}

static void make_coming_and_going(struct model *model)
{
    uint32_t dice = draw(model, 10);
    enum exchange_command_type type = dice < 5   ? EXCHANGE_SUSPECT
                                      : dice < 9 ? EXCHANGE_RETURNED
                                                 : EXCHANGE_GOODBYE;
    model->command = blank(model, type, EXCHANGE_NO_ACCOUNT);
    model->command.provider = FIRST_PROVIDER + draw(model, MODEL_PROVIDERS);
}

/* Begins an epoch. Now and then the secret is lost, or another one is shown, in vain. */
static void make_epoch(struct model *model)
{
    static const struct hash32 lost;
    const uint32_t dice = draw(model, 4);
    const struct id128 drawn = model_id(model);
    const struct hash32 next = sha256_of(drawn.bytes, sizeof drawn.bytes);
    model->command = blank(model, EXCHANGE_EPOCH, EXCHANGE_NO_ACCOUNT);
    model->command.epoch.commitment = sha256_of(next.bytes, sizeof next.bytes);
    model->command.epoch.secret = dice == 0 ? lost : dice == 1 ? next : model->secret;
    if (dice != 1) {
        model->secret = next;
    }
}

/* Draws bands that mostly keep few orders out. Prices here are 0 to 1, by quarters. */
static void make_bands(struct model *model)
{
    const int64_t quarter = 250000;
    struct exchange_bands *bands = &model->command.bands;
    model->command = blank(model, EXCHANGE_BANDS, OPERATOR);
    bands->has_least = draw(model, 2) == 0;
    bands->has_notional = draw(model, 2) == 0;
    bands->has_most = !bands->has_least || draw(model, 2) == 0;
    bands->least_micro = (int64_t)draw(model, 2) * quarter;
    bands->most_micro =
        draw(model, 3) > 0 ? 100 * MICRO_PER_CREDIT : (1 + draw(model, 4)) * quarter;
    bands->notional_micro = draw(model, 3) > 0 ? 0 : (1 + draw(model, 8)) * quarter;
}

static void make_operator(struct model *model)
{
    uint32_t dice = draw(model, 8);
    if (dice == 7) {
        make_bands(model);
    } else if (dice == 6) {
        make_epoch(model);
    } else if (dice == 5) {
        model->command = blank(model, EXCHANGE_INVITE, OPERATOR);
        model->command.invite = (struct exchange_invite){
            .token_hash = {{++model->invited, 3}},
            .roles = 1 + draw(model, 3),
            .credits_micro = or_extreme(model, draw(model, 1000)),
            .expires_ns = model->now_ns + (int64_t)draw(model, 600) * NS_PER_S,
        };
    } else if (dice == 4) { /* a token that exists, did exist, or never will */
        model->command = blank(model, EXCHANGE_JOIN, EXCHANGE_NO_ACCOUNT);
        model->command.join.account = key_of(100 + model->joined++ % 100);
        model->command.join.token_hash =
            (struct hash32){{(uint8_t)draw(model, model->invited + 2u), 3}};
    } else if (dice == 0) {
        model->command = blank(model, EXCHANGE_HALT, OPERATOR);
        model->command.halt.halted = draw(model, 3) == 0;
    } else if (dice == 1) {
        model->command = blank(model, EXCHANGE_FREEZE, OPERATOR);
        model->command.freeze.account = key_of(FIRST_CONSUMER + draw(model, 7));
        model->command.freeze.frozen = draw(model, 3) == 0;
    } else {
        model->command = blank(model, EXCHANGE_MINT, OPERATOR);
        model->command.mint.account = key_of(FIRST_CONSUMER + draw(model, 8));
        model->command.mint.amount_micro = or_extreme(model, (int64_t)draw(model, 1000000));
    }
}

static void make_cancel(struct model *model)
{
    if (model->job_count == 0 || draw(model, 3) == 0) {
        uint32_t provider = draw(model, MODEL_PROVIDERS);
        model->command = blank(model, EXCHANGE_CANCEL_ORDER, FIRST_PROVIDER + provider);
        model->command.cancel_order.order = model->asks[provider][draw(model, MODEL_DEVICES)];
        return;
    }
    size_t job = draw(model, model->job_count);
    model->command = blank(model, EXCHANGE_CANCEL_JOB, model->job_owners[job]);
    model->command.cancel_job.job = model->jobs[job];
}

/* Draws new terms of an ask or a job, mostly allowed ones, some of them refused. */
static void make_replace(struct model *model)
{
    struct exchange_replace *replace = &model->command.replace;
    if (model->job_count == 0 || draw(model, 3) == 0) {
        uint32_t provider = draw(model, MODEL_PROVIDERS);
        model->command = blank(model, EXCHANGE_REPLACE, FIRST_PROVIDER + provider);
        replace->order = model->asks[provider][draw(model, MODEL_DEVICES)];
        replace->has_budget = draw(model, 40) == 0;
    } else {
        size_t newest = model->job_count < 8 ? model->job_count : 8;
        size_t job = model->job_count - 1 - draw(model, newest);
        model->command = blank(model, EXCHANGE_REPLACE, model->job_owners[job]);
        replace->order = model->jobs[job];
        replace->has_budget = draw(model, 3) == 0;
    }
    if (draw(model, 30) == 0) { /* the order is another account's */
        model->command.account = FIRST_CONSUMER + draw(model, MODEL_CONSUMERS);
    }
    replace->part = draw(model, 2) == 0 ? EXCHANGE_ANY_PART : draw(model, 3);
    replace->has_slots = draw(model, 2) == 0;
    replace->has_price = draw(model, 2) == 0 || (!replace->has_slots && !replace->has_budget);
    replace->slots = draw(model, 10);
    replace->price_micro = or_extreme(model, (int64_t)draw(model, 5) * 250000);
    replace->rate = draw(model, 4) == 0 ? RATE_BF16 : RATE_NONE;
    replace->budget_micro = or_extreme(model, 1 + (int64_t)draw(model, 400000));
}

/* Sends an earlier command once more: the same command, or another one under its id. */
static void make_again(struct model *model)
{
    model->command.index = model->index + 1;
    model->command.log_time_ns = model->now_ns;
    model->command.body.bytes[0] ^= (uint8_t)draw(model, 2);
}

/* Lets a client judge something that is held of a job of its own, or of nobody's. */
static void make_word(struct model *model)
{
    struct exchange_dispute held[4];
    const uint32_t job = model->job_count == 0 ? 0 : draw(model, model->job_count);
    const size_t count = exchange_disputes(model->exchange, &model->jobs[job], 0, held, 4, NULL);
    model->command = blank(model, EXCHANGE_JUDGE,
                           model->job_count == 0 ? FIRST_CONSUMER : model->job_owners[job]);
    model->command.judge.job = model->jobs[job];
    model->command.judge.verdict = (uint8_t)(1 + draw(model, 3));
    if (count > 0) {
        const struct exchange_dispute *dispute = &held[draw(model, count)];
        model->command.judge.index = dispute->index;
        model->command.judge.attempt = dispute->attempt;
        model->command.judge.result = dispute->result;
        model->command.judge.seed = dispute->seed;
    }
}

/* Takes the first dispute that there is. Its client ends it by accepting the result. */
static bool end_dispute(struct model *model)
{
    struct exchange_dispute dispute;
    for (size_t i = 0; i < model->job_count; i++) {
        if (exchange_disputes(model->exchange, &model->jobs[i], 0, &dispute, 1, NULL) == 1) {
            model->command = blank(model, EXCHANGE_JUDGE, model->job_owners[i]);
            model->command.judge = (struct exchange_judge){.job = model->jobs[i],
                                                           .index = dispute.index,
                                                           .attempt = dispute.attempt,
                                                           .result = dispute.result,
                                                           .seed = dispute.seed,
                                                           .verdict = 1};
            return true;
        }
    }
    return false;
}

static void make_calm(struct model *model)
{
    uint64_t step = model->index % 64;
    uint32_t provider = FIRST_PROVIDER + (uint32_t)(step / 4) % MODEL_PROVIDERS;
    if (step < 16 && step % 4 == 0) {
        model->command = blank(model, EXCHANGE_FREEZE, OPERATOR);
        model->command.freeze.account = key_of(provider);
    } else if (step < 16 && step % 4 == 1) {
        advertise(model, provider, MODEL_DEVICES);
    } else if (step < 16) {
        ask(model, provider, (uint32_t)step % 2);
    } else if (step == 16) {
        model->command = blank(model, EXCHANGE_HALT, OPERATOR);
    } else if (step == 17) {
        model->command = blank(model, EXCHANGE_BANDS, OPERATOR);
        model->command.bands = (struct exchange_bands){.has_least = true,
                                                       .has_most = true,
                                                       .has_notional = true,
                                                       .most_micro = 100 * MICRO_PER_CREDIT};
    } else if (step % 4 == 2 && end_dispute(model)) {
        return;
    } else if (step % 4 == 0) {
        int64_t deadline_ns = exchange_next_deadline_ns(model->exchange);
        if (model->work_count == 0 && deadline_ns > model->now_ns && deadline_ns < INT64_MAX / 2) {
            model->now_ns = deadline_ns; /* only waiting is left, maybe for days */
        }
        model->command = blank(model, EXCHANGE_TICK, EXCHANGE_NO_ACCOUNT);
    } else {
        make_results(model);
    }
}

void model_calm(struct model *model)
{
    model->is_calm = true;
    model->work_count = 0; /* the work that is out is forgotten, and terms must end it */
}

void model_next(struct model *model)
{
    model->now_ns += (int64_t)draw(model, draw(model, 10) == 0 ? 40 : 2) * NS_PER_S;
    model->now_ns += (int64_t)draw(model, (uint64_t)NS_PER_S);
    uint32_t dice = draw(model, 100);
    uint32_t provider = FIRST_PROVIDER + draw(model, MODEL_PROVIDERS);
    if (model->is_calm) {
        make_calm(model);
    } else if (draw(model, 50) == 0) {
        make_again(model);
    } else if (dice < 8) {
        advertise(model, provider, 1 + draw(model, MODEL_DEVICES));
    } else if (dice < 20) {
        ask(model, provider, draw(model, MODEL_DEVICES));
    } else if (dice < 33) {
        make_submit(model);
    } else if (dice < 78) {
        make_results(model);
    } else if (dice < 82) {
        make_statement(model);
    } else if (dice < 87) {
        make_coming_and_going(model);
    } else if (dice < 91) {
        make_operator(model);
    } else if (dice < 92) {
        make_cancel(model);
    } else if (dice < 94) {
        make_word(model);
    } else if (dice < 97) {
        make_replace(model);
    } else {
        const bool is_outage = draw(model, 4) == 0;
        model->command =
            blank(model, is_outage ? EXCHANGE_OUTAGE : EXCHANGE_TICK, EXCHANGE_NO_ACCOUNT);
        model->command.outage_ns = (1 + (int64_t)draw(model, 40)) * NS_PER_S;
    }
}

static const struct model_work *lease_known(const struct model *model, uint64_t lease)
{
    for (size_t i = 0; i < model->lease_count; i++) {
        if (model->leases[i].lease == lease) {
            return &model->leases[i];
        }
    }
    return NULL;
}

static void on_grant(struct model *model, const struct exchange_effect *effect)
{
    if (lease_known(model, effect->grant.lease) == NULL && model->lease_count < MODEL_WORK_MAX) {
        model->leases[model->lease_count++] = (struct model_work){
            .provider = effect->account,
            .lease = effect->grant.lease,
            .job = effect->grant.job,
            .device = effect->grant.device,
            .manifest = effect->grant.manifest,
        };
    }
}

static void on_dispatch(struct model *model, const struct exchange_effect *effect)
{
    const struct model_work *lease = lease_known(model, effect->work.lease);
    if (lease != NULL && model->work_count < MODEL_WORK_MAX) {
        struct model_work *work = &model->work[model->work_count++];
        *work = *lease;
        work->index = effect->work.index;
        work->attempt = effect->work.attempt;
        work->seed = effect->work.seed;
    }
}

enum exchange_status model_apply(struct model *model)
{
    exchange_effects_clear(&model->effects);
    enum exchange_status status = exchange_step(model->exchange, &model->command, &model->effects);
    model->index = model->command.index;
    for (size_t i = 0; i < model->effects.count; i++) {
        const struct exchange_effect *effect = &model->effects.items[i];
        if (effect->type == EFFECT_LEASE_GRANT) {
            on_grant(model, effect);
        } else if (effect->type == EFFECT_DISPATCH) {
            on_dispatch(model, effect);
        } else if (effect->type == EFFECT_ACCEPT && model->command.type == EXCHANGE_SUBMIT &&
                   model->job_count < MODEL_JOBS_MAX) {
            model->jobs[model->job_count] = model->command.id;
            model->job_owners[model->job_count++] = model->command.account;
        }
    }
    return status;
}
