/* Scripts that a trader can read, run through the exchange: tests/golden/scripts/X.txt. A line says
 * what somebody does, the lines behind it that begin with > what comes of it. Several accounts
 * trade: ann, bob and cat, each both ways.
 *
 *     ann asks DEVICE KIND SLOTS at PRICE [term SECONDS] [till SECONDS] [does SPEED in bf16]
 *                                             [to bob] [hours 22:00-07:00] [ioc|post-only]
 *                                             [notice SECONDS [run SECONDS]]
 *     bob bids JOB KIND|any SLOTS [and KIND|any SLOTS]... at PRICE [wide SLOTS] [term SECONDS]
 *                  [budget CREDITS] [ioc|fok|post-only|all-or-none|clearing]
 *     bob bids JOB KIND|any SLOTS worth AMOUNT per RATE UNIT [wide SLOTS] [term SECONDS] [...]
 *     ann cancels DEVICE|JOB
 *     ann changes DEVICE|JOB [to SLOTS] [at PRICE]
 *     JOB is done after SECONDS               then the results of all that it runs come in
 *     wait SECONDS
 *     bands from PRICE to PRICE [notional CREDITS|none]   the operator sets them
 *     > JOB gets SLOTS of DEVICE at PRICE
 *     > JOB will get SLOTS of DEVICE at PRICE   when their holder has left
 *     > JOB has to leave DEVICE in SECONDS s    another has taken its lease
 *     > DEVICE is gone                        its ask was cancelled, or its time is up
 *     > JOB is cancelled: WHY                 by the market, not by its owner
 *     > refused: WHY                          a reject code
 *
 * Prices are in credits; `at` a price of a bid is its cap, `at market` none, and what it is `worth`
 * its value. A bid is a limit order if it has a cap or a value, and else, or if it is `clearing`, a
 * market order. The band ends at 100.00. */
#include "base/limit.h"
#include "consumer/client/names.h"
#include "formats/hours_text.h"
#include "formats/requirement.h"
#include "formats/units.h"
#include "formats/value.h"
#include "protocol/message.h"
#include "tests/support/hand_market.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES = 32, NAME_BYTES = 16, LINE_BYTES = 160, OUTCOME_BYTES = 1024, PEOPLE = 3 };

static const char *const people[PEOPLE] = {"ann", "bob", "cat"}; /* accounts 3, 4, 5 */

struct named { /* a device with the order of its ask, or a job */
    char name[NAME_BYTES];
    struct id128 id, order;
    uint32_t account;
    bool is_job;
    struct attribute attributes[2]; /* bf16, where it says so, and the kind */
    size_t attribute_count;
    uint32_t slots;
};
static struct named names[NAMES];
static uint32_t name_count;
static char outcome[OUTCOME_BYTES]; /* of the last command */

struct running {
    struct id128 job, device;
    uint32_t provider;
    struct exchange_work work;
};
static struct running runs[NAMES];
static uint32_t run_count;
static struct {
    uint64_t lease;
    struct id128 job, device;
} leases[NAMES];
static uint32_t lease_count;

static void open_market(void)
{
    name_count = run_count = lease_count = 0;
    const struct exchange_limits limits = exchange_limits_default();
    struct exchange_genesis_account accounts[PEOPLE + 1];
    memset(accounts, 0, sizeof accounts);
    for (unsigned i = 0; i < PEOPLE; i++) {
        accounts[i].key.bytes[0] = (uint8_t)(i + 1);
        accounts[i].roles = ROLE_CONSUMER | ROLE_PROVIDER;
        accounts[i].credits_micro = 1000 * MICRO_PER_CREDIT;
        (void)snprintf(accounts[i].name, sizeof accounts[i].name, "%s", people[i]);
    }
    accounts[PEOPLE].key.bytes[0] = PEOPLE + 1;
    accounts[PEOPLE].roles = ROLE_OPERATOR;
    (void)snprintf(accounts[PEOPLE].name, sizeof accounts[PEOPLE].name, "operator");
    open_market_of(&limits, 100 * MICRO_PER_CREDIT, accounts, PEOPLE + 1);
}

static struct named *find(const char *name)
{
    for (uint32_t i = 0; i < name_count; i++) {
        if (strcmp(names[i].name, name) == 0) {
            return &names[i];
        }
    }
    return NULL;
}

static const char *name_of(const struct id128 *id, bool is_job)
{
    for (uint32_t i = 0; i < name_count; i++) {
        if (names[i].is_job == is_job && memcmp(&names[i].id, id, sizeof *id) == 0) {
            return names[i].name;
        }
    }
    return "?";
}

static struct named *add(const char *name, uint32_t account, bool is_job)
{
    ck_assert_uint_lt(name_count, NAMES);
    struct named *added = &names[name_count++];
    memset(added, 0, sizeof *added);
    (void)snprintf(added->name, sizeof added->name, "%s", name);
    added->account = account;
    added->is_job = is_job;
    added->id.bytes[0] = (uint8_t)name_count;
    return added;
}

static int64_t money(const char *text)
{
    int64_t micro = 0;
    ck_assert_msg(units_money(text, &micro) == UNITS_OK, "%s is no price", text);
    return micro;
}

/* Returns the number that follows a word of the line, or `otherwise`. */
static uint32_t option(const char *line, const char *word, uint32_t otherwise)
{
    const char *at = strstr(line, word);
    return at == NULL ? otherwise : (uint32_t)strtoul(at + strlen(word), NULL, 10);
}

static void note_work(const struct exchange_effect *effect)
{
    ck_assert_uint_lt(run_count, NAMES);
    for (uint32_t i = 0; i < lease_count; i++) {
        if (leases[i].lease == effect->work.lease) {
            runs[run_count++] =
                (struct running){leases[i].job, leases[i].device, effect->account, effect->work};
        }
    }
}

/* Its lease begins later. */
static bool is_promise(const struct ledger_record *fill)
{
    for (size_t i = 0; i < market.effects.count; i++) {
        const struct exchange_effect *effect = &market.effects.items[i];
        if (effect->type == EFFECT_LEASE_GRANT && effect->grant.lease == fill->lease) {
            return false;
        }
    }
    return true;
}

static const char *device_of(const struct exchange_effect *notice)
{
    struct exchange_lease_row rows[NAMES];
    const size_t count = exchange_leases(market.exchange, &notice->lease.job, rows, NAMES);
    for (size_t i = 0; i < count; i++) {
        for (uint32_t k = 0; rows[i].lease == notice->lease.lease && k < name_count; k++) {
            if (!names[k].is_job && strcmp(names[k].name, rows[i].device) == 0) {
                return names[k].name;
            }
        }
    }
    return "?";
}

static enum exchange_order_type type_of(const char *line)
{
    static const char *const words[] = {
        [EXCHANGE_IOC] = " ioc",
        [EXCHANGE_FOK] = " fok",
        [EXCHANGE_POST_ONLY] = " post-only",
        [EXCHANGE_ALL_OR_NONE] = " all-or-none",
        [EXCHANGE_MARKET] = " clearing",
    };
    for (unsigned type = EXCHANGE_IOC; type <= EXCHANGE_MARKET; type++) {
        if (strstr(line, words[type]) != NULL) {
            return (enum exchange_order_type)type;
        }
    }
    return EXCHANGE_LIMIT;
}

static void tell(void)
{
    for (size_t i = 0; i < market.effects.count; i++) {
        const struct exchange_effect *effect = &market.effects.items[i];
        size_t used = strlen(outcome);
        char *to = outcome + used;
        char paid[UNITS_TEXT_SIZE];
        if (effect->type == EFFECT_REJECT) {
            (void)snprintf(to, sizeof outcome - used, "> refused: %s\n",
                           reject_name((enum reject_code)effect->reject.code));
        } else if (effect->type == EFFECT_DISPATCH) {
            note_work(effect);
        } else if (effect->type == EFFECT_LEASE_GRANT) {
            ck_assert_uint_lt(lease_count, NAMES);
            leases[lease_count].lease = effect->grant.lease;
            leases[lease_count].device = effect->grant.device;
            leases[lease_count++].job = effect->grant.job;
            units_money_text(effect->grant.price_micro, paid);
            (void)snprintf(to, sizeof outcome - used, "> %s gets %u of %s at %s\n",
                           name_of(&effect->grant.job, true), effect->grant.slots,
                           name_of(&effect->grant.device, false), paid);
        } else if (effect->type == EFFECT_LEDGER && effect->ledger.kind == LEDGER_FILL &&
                   is_promise(&effect->ledger)) {
            units_money_text(effect->ledger.price_micro, paid);
            (void)snprintf(to, sizeof outcome - used, "> %s will get %u of %s at %s\n",
                           name_of(&effect->ledger.job, true), effect->ledger.slots,
                           name_of(&effect->ledger.device, false), paid);
        } else if (effect->type == EFFECT_LEASE_NOTICE) {
            (void)snprintf(to, sizeof outcome - used, "> %s has to leave %s in %lld s\n",
                           name_of(&effect->lease.job, true), device_of(effect),
                           (long long)(effect->lease.term_ns / NS_PER_S));
        } else if (effect->type == EFFECT_JOB && job_row(effect->id).state == JOB_CANCELLED &&
                   job_row(effect->id).reason != JOB_REASON_CANCELLED) {
            (void)snprintf(to, sizeof outcome - used, "> %s is cancelled: %s\n",
                           name_of(&effect->id, true),
                           names_job_reason(job_row(effect->id).reason));
        } else if (effect->type == EFFECT_ASK && !effect->ask.stands) {
            (void)snprintf(to, sizeof outcome - used, "> %s is gone\n",
                           name_of(&effect->ask.device, false));
        }
    }
}

static void advertise_all(uint32_t account)
{
    struct exchange_device devices[NAMES];
    size_t count = 0;
    for (uint32_t i = 0; i < name_count; i++) {
        if (!names[i].is_job && names[i].account == account) {
            devices[count++] =
                (struct exchange_device){.device = names[i].id,
                                         .slots = names[i].slots,
                                         .attributes = names[i].attributes,
                                         .attribute_count = names[i].attribute_count};
            (void)snprintf(devices[count - 1].label, sizeof devices[0].label, "%s", names[i].name);
        }
    }
    struct exchange_command advertise = command(EXCHANGE_ADVERTISE, account);
    advertise.advertise = (struct exchange_advertise){devices, count};
    apply(&advertise);
    ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
}

static uint32_t account_of(const char *line)
{
    for (uint32_t i = 0; i < PEOPLE; i++) {
        if (strncmp(line, people[i], strlen(people[i])) == 0) {
            return CONSUMER + i;
        }
    }
    return 0;
}

/* All that is asked for anywhere in the script is there from the start: a new list of devices takes
 * asks away. */
static void advertise_devices(FILE *file)
{
    char line[LINE_BYTES];
    while (fgets(line, sizeof line, file) != NULL) {
        char name[NAME_BYTES];
        char kind[NAME_BYTES];
        uint32_t slots;
        if (account_of(line) == 0 ||
            sscanf(line, "%*s asks %15s %15s %u", name, kind, &slots) != 3 || find(name) != NULL) {
            continue;
        }
        struct named *device = add(name, account_of(line), false);
        device->slots = slots;
        char speed[NAME_BYTES] = "";
        const char *does = strstr(line, " does ");
        if (does != NULL) {
            struct attribute *rate = &device->attributes[device->attribute_count++];
            *rate = (struct attribute){.name = "bf16"};
            ck_assert_int_eq(sscanf(does, " does %15s", speed), 1);
            ck_assert_int_eq(units_read(UNITS_FLOPS, speed, &rate->number), UNITS_OK);
        }
        struct attribute *is = &device->attributes[device->attribute_count++];
        *is = (struct attribute){.name = "kind", .is_text = true};
        (void)snprintf(is->text, sizeof is->text, "%s", kind);
    }
    for (uint32_t i = 0; i < PEOPLE; i++) {
        advertise_all(CONSUMER + i);
    }
    rewind(file);
}

static void ask(uint32_t account, const char *line)
{
    char name[NAME_BYTES];
    char at[NAME_BYTES];
    uint32_t slots;
    ck_assert_msg(sscanf(line, "%*s asks %15s %*s %u at %15s", name, &slots, at) == 3, "%s", line);
    struct named *device = find(name);
    struct exchange_command made = command(EXCHANGE_ASK, account);
    uint32_t till_s = option(line, " till ", 0);
    uint32_t notice_s = option(line, " notice ", UINT32_MAX);
    made.ask = (struct exchange_ask){
        .device = device->id,
        .slots = slots,
        .price_micro = money(at),
        .good_till_ns = till_s == 0 ? 0 : market.now_ns + till_s * NS_PER_S,
        .max_term_ns = option(line, " term ", 0) * NS_PER_S,
        .terms = {.is_interruptible = notice_s != UINT32_MAX,
                  .notice_ns = notice_s == UINT32_MAX ? 0 : notice_s * NS_PER_S,
                  .minimum_run_ns = option(line, " run ", 0) * NS_PER_S},
        .type = type_of(line),
    };
    struct exchange_ask_account to = {.has_key = false};
    const char *whom = strstr(line, " to ");
    if (whom != NULL) {
        (void)snprintf(to.name, sizeof to.name, "%.3s", whom + 4);
        made.ask.to = &to;
        made.ask.to_count = 1;
    }
    struct problem problem = {""};
    const char *hours = strstr(line, " hours ");
    if (hours != NULL) {
        char window[NAME_BYTES];
        (void)snprintf(window, sizeof window, "%.11s", hours + 7);
        made.ask.hours.count = 1;
        ck_assert_msg(hours_read_window(window, &made.ask.hours.windows[0], &problem), "%s",
                      problem.text);
    }
    device->order = made.id;
    apply(&made);
}

/* "at 1.00", or "worth 0.02 per bf16 TFLOP-hour". */
static void set_limit(const char *line, struct exchange_submit *submit)
{
    char words[4][NAME_BYTES];
    char text[LINE_BYTES];
    struct value value;
    struct problem problem = {""};
    const char *worth = strstr(line, " worth ");
    if (worth == NULL) {
        ck_assert_int_eq(sscanf(strstr(line, " at "), " at %15s", words[0]), 1);
        submit->cap_micro = strcmp(words[0], "market") == 0 ? -1 : money(words[0]);
        return;
    }
    ck_assert_int_eq(
        sscanf(worth, " worth %15s %15s %15s %15s", words[0], words[1], words[2], words[3]), 4);
    (void)snprintf(text, sizeof text, "%s %s %s %s", words[0], words[1], words[2], words[3]);
    ck_assert_msg(value_parse(text, &value, &problem), "%s", problem.text);
    submit->cap_micro = value.micro;
    submit->rate = value.rate;
}

enum { KINDS = 3 }; /* of a bid */

static struct requirement needs_of(const char *kind)
{
    char text[LINE_BYTES];
    struct requirement needs;
    struct problem problem = {""};
    (void)snprintf(text, sizeof text, "%s%s", strcmp(kind, "any") == 0 ? "" : "kind = ", kind);
    ck_assert_msg(requirement_parse(text, &needs, &problem), "%s", problem.text);
    return needs;
}

static void bid(uint32_t account, const char *line)
{
    char name[NAME_BYTES];
    char word[NAME_BYTES] = "and";
    struct requirement needs[KINDS];
    uint32_t subtasks[KINDS];
    struct exchange_part parts[KINDS];
    uint32_t kinds = 0;
    int used = 0;
    const uint32_t width = option(line, " wide ", 1);
    ck_assert_msg(sscanf(line, "%*s bids %15s%n", name, &used) == 1, "%s", line);
    const char *at = line + used;
    for (; strcmp(word, "and") == 0 && kinds < KINDS; kinds++, at += used) {
        char kind[NAME_BYTES];
        uint32_t slots;
        ck_assert_msg(sscanf(at, "%15s %u %15s%n", kind, &slots, word, &used) == 3, "%s", line);
        needs[kinds] = needs_of(kind);
        subtasks[kinds] = slots / width;
    }
    struct exchange_command made = submit_of(subtasks[0], option(line, " budget ", 50));
    made.account = account;
    made.submit.needs = &needs[0];
    made.submit.slots = width;
    set_limit(line, &made.submit);
    made.submit.term_ns = option(line, " term ", 60) * NS_PER_S;
    made.submit.type = type_of(line);
    if (made.submit.type == EXCHANGE_LIMIT && !limit_is_set(made.submit.cap_micro)) {
        made.submit.type = EXCHANGE_MARKET;
    }
    for (uint32_t i = 1; i < kinds; i++) {
        parts[i - 1] = (struct exchange_part){
            .subtasks = subtasks[i],
            .needs = &needs[i],
            .slots = width,
            .cap_micro = made.submit.cap_micro,
            .limit_ns = made.submit.limit_ns,
            .term_ns = made.submit.term_ns,
        };
        made.submit.subtasks += subtasks[i];
    }
    made.submit.parts = parts;
    made.submit.part_count = kinds - 1;
    struct named *job = add(name, account, true);
    job->id = job->order = made.id;
    apply(&made);
}

static void change(uint32_t account, const struct named *what, const char *line)
{
    char price_text[NAME_BYTES];
    struct exchange_command made = command(EXCHANGE_REPLACE, account);
    const char *at = strstr(line, " at ");
    made.replace = (struct exchange_replace){.order = what->order,
                                             .part = EXCHANGE_ANY_PART,
                                             .has_slots = strstr(line, " to ") != NULL,
                                             .slots = option(line, " to ", 0),
                                             .has_price = at != NULL};
    if (at != NULL) {
        ck_assert_int_eq(sscanf(at, " at %15s", price_text), 1);
        made.replace.price_micro = money(price_text);
    }
    apply(&made);
}

/* The results of all that a job runs, as if it had run from now on for so long. */
static void finish(const struct named *job, const char *line)
{
    const int64_t busy_ns = option(line, " after ", 0) * NS_PER_S;
    market.now_ns += busy_ns;
    for (uint32_t i = 0; i < run_count;) {
        const struct running run = runs[i];
        if (!id128_equal(&run.job, &job->id)) {
            i++;
            continue;
        }
        runs[i] = runs[--run_count];
        result_on(run.provider, run.device, run.job, run.work, OUTCOME_OK, busy_ns);
        tell();
    }
    exchange_effects_clear(&market.effects);
}

static void set_bands(const char *line)
{
    char least[NAME_BYTES];
    char most[NAME_BYTES];
    char notional[NAME_BYTES] = "";
    ck_assert_int_ge(sscanf(line, "bands from %15s to %15s notional %15s", least, most, notional),
                     2);
    struct exchange_command made = command(EXCHANGE_BANDS, OPERATOR);
    made.bands = (struct exchange_bands){.has_least = true,
                                         .has_most = true,
                                         .has_notional = notional[0] != '\0',
                                         .least_micro = money(least),
                                         .most_micro = money(most)};
    if (made.bands.has_notional && strcmp(notional, "none") != 0) {
        made.bands.notional_micro = money(notional);
    }
    apply(&made);
}

static void run_line(const char *line)
{
    char who[NAME_BYTES] = "";
    char verb[NAME_BYTES] = "";
    char what[NAME_BYTES] = "";
    outcome[0] = '\0';
    (void)sscanf(line, "%15s %15s %15s", who, verb, what);
    uint32_t account = account_of(line);
    if (strcmp(who, "wait") == 0) {
        market.now_ns += (int64_t)strtol(verb, NULL, 10) * NS_PER_S;
        tick();
    } else if (strcmp(who, "bands") == 0) {
        set_bands(line);
    } else if (account != 0 && strcmp(verb, "asks") == 0) {
        ask(account, line);
    } else if (find(who) != NULL && find(who)->is_job && strcmp(verb, "is") == 0) {
        finish(find(who), line);
    } else if (account != 0 && strcmp(verb, "bids") == 0) {
        bid(account, line);
    } else if (account != 0 && strcmp(verb, "changes") == 0 && find(what) != NULL) {
        change(account, find(what), line);
    } else if (account != 0 && strcmp(verb, "cancels") == 0 && find(what) != NULL) {
        bool is_job = find(what)->is_job;
        struct exchange_command cancel =
            command(is_job ? EXCHANGE_CANCEL_JOB : EXCHANGE_CANCEL_ORDER, account);
        if (is_job) {
            cancel.cancel_job.job = find(what)->id;
        } else {
            cancel.cancel_order.order = find(what)->order;
        }
        apply(&cancel);
    } else {
        ck_abort_msg("not understood: %s", line);
    }
    tell();
    check_hash();
}

static void check_outcome(const char *path, unsigned number, const char *wanted)
{
    ck_assert_msg(strcmp(outcome, wanted) == 0, "%s:%u:\n%sbut the script says\n%s", path, number,
                  outcome[0] == '\0' ? "nothing comes of it\n" : outcome,
                  wanted[0] == '\0' ? "nothing\n" : wanted);
}

static void run_script(const char *name)
{
    char path[512];
    char line[LINE_BYTES];
    char wanted[OUTCOME_BYTES] = "";
    unsigned number = 0;
    unsigned command_at = 0;
    unsigned expectations = 0;
    (void)snprintf(path, sizeof path, "%s/tests/golden/scripts/%s.txt", BOURSE_SOURCE_DIR, name);
    FILE *file = fopen(path, "re");
    ck_assert_msg(file != NULL, "%s", path);
    open_market();
    advertise_devices(file);
    outcome[0] = '\0';
    while (fgets(line, sizeof line, file) != NULL) {
        number++;
        if (line[0] == '>') {
            size_t used = strlen(wanted);
            (void)snprintf(wanted + used, sizeof wanted - used, "%s", line);
            expectations++;
        } else if (line[0] != '#' && line[0] != '\n') {
            check_outcome(path, command_at, wanted);
            wanted[0] = '\0';
            command_at = number;
            run_line(line);
        }
    }
    check_outcome(path, command_at, wanted);
    ck_assert_uint_gt(expectations, 1);
    (void)fclose(file);
    tear_down();
}

static const char *const scripts[] = {
    "bands", "price-time", "partial", "width",       "term",        "self-match",     "expiry",
    "kinds", "ioc",        "fok",     "post-only",   "all-or-none", "all-of-several", "market",
    "value", "donations",  "spot",    "other-terms", "clearing"};
enum { SCRIPTS = sizeof scripts / sizeof scripts[0] };

START_TEST(a_script_comes_out_as_it_says)
{
    run_script(scripts[_i]);
}
END_TEST

SUITE("scripts", NULL, NULL, LOOP(a_script_comes_out_as_it_says, 0, SCRIPTS))
