/* This file runs earnings, which adds up what the market paid this provider. */
#include "base/array.h"
#include "base/text.h"
#include "consumer/client/bourse.h"
#include "formats/units.h"
#include "provider/command/command.h"
#include "provider/command/market.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct sum {
    char name[BOURSE_ID_SIZE];    /* a day, a job, a device */
    char label[BOURSE_NAME_SIZE]; /* label of a device on the market; else "" */
    int64_t paid_micro, fee_micro;
    int64_t given_ns; /* slot-time donated */
    uint64_t results;
};
struct sums {
    struct sum *rows;
    size_t count, capacity;
    size_t last; /* row that was added to before */
};
struct earnings {
    int64_t from_ms; /* start, by the market's clock */
    struct sums days, jobs, devices;
    struct sum all;
    bool is_out_of_memory;
};

/* Returns the sum of that name, made if missing, or NULL when memory is short. The walks go by
 * time, so the last row or the next is tried first. */
static struct sum *sum_of(struct sums *sums, const char *name)
{
    for (size_t near = sums->last; near < sums->count && near <= sums->last + 1; near++) {
        if (strcmp(sums->rows[near].name, name) == 0) {
            sums->last = near;
            return &sums->rows[near];
        }
    }
    size_t at = 0;
    while (at < sums->count && strcmp(sums->rows[at].name, name) != 0) {
        at++;
    }
    if (at == sums->count) {
        struct sum *rows = array_with_room(sums->rows, sums->count, &sums->capacity, sizeof *rows);
        if (rows == NULL) {
            return NULL;
        }
        sums->rows = rows;
        sums->rows[sums->count] = (struct sum){.results = 0};
        (void)snprintf(sums->rows[sums->count].name, BOURSE_ID_SIZE, "%s", name);
        sums->count++;
    }
    sums->last = at;
    return &sums->rows[at];
}

static void day_of(int64_t ms, char ret_day[BOURSE_ID_SIZE])
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm utc;
    if (gmtime_r(&seconds, &utc) == NULL ||
        strftime(ret_day, BOURSE_ID_SIZE, "%Y-%m-%d", &utc) == 0) {
        (void)snprintf(ret_day, BOURSE_ID_SIZE, "?");
    }
}

static bool add(struct earnings *earnings, const struct bourse_entry *entry, uint64_t results)
{
    char day[BOURSE_ID_SIZE];
    day_of(entry->time_ms, day);
    struct sum *of[] = {&earnings->all, sum_of(&earnings->days, day),
                        sum_of(&earnings->jobs, entry->job),
                        sum_of(&earnings->devices, entry->device)};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        if (of[i] == NULL) {
            earnings->is_out_of_memory = true;
            return false;
        }
        of[i]->paid_micro += entry->amount_micro;
        of[i]->fee_micro += entry->fee_micro;
        of[i]->given_ns += entry->given_ns;
        of[i]->results += results;
    }
    return true;
}

/* A provider earns the captures that came in; other entries are spending and grants. */
static bool take_entry(void *context, const struct bourse_entry *entry)
{
    struct earnings *earnings = context;
    if (entry->time_ms < earnings->from_ms) {
        return false;
    }
    return strcmp(entry->kind_text, "capture") != 0 || entry->amount_micro <= 0 ||
           add(earnings, entry, 0);
}

/* Counts accepted results even when their pay was rounded down to nothing, and donated time even
 * when the program failed. */
static bool take_result(void *context, const struct bourse_entry *entry)
{
    struct earnings *earnings = context;
    return entry->time_ms >= earnings->from_ms && add(earnings, entry, entry->failed ? 0 : 1);
}

struct naming {
    struct sums *devices;
    char account[BOURSE_HEX32_SIZE];
};

static bool name_device(void *context, const struct bourse_device *device)
{
    struct naming *naming = context;
    for (size_t i = 0; i < naming->devices->count; i++) {
        struct sum *sum = &naming->devices->rows[i];
        if (strcmp(sum->name, device->id) == 0 && strcmp(device->account, naming->account) == 0) {
            memcpy(sum->label, device->label, sizeof sum->label);
        }
    }
    return true;
}

/* Prints slot-hours only when some were donated. */
static void print_sums(const char *title, const struct sums *sums, bool with_given)
{
    printf("\n%-10s  %12s  %12s  %10s", title, "EARNED", "FEE", "RESULTS");
    printf(with_given ? "  %12s\n" : "\n", "DONATED");
    for (size_t i = 0; i < sums->count; i++) {
        const struct sum *sum = &sums->rows[i];
        char paid[UNITS_TEXT_SIZE];
        char fee[UNITS_TEXT_SIZE];
        char given[UNITS_TEXT_SIZE];
        units_slot_hours(sum->given_ns, given);
        const char *name = sum->label[0] == '\0' ? sum->name : market_printable(sum->label);
        /* A row is a device with a label, a day such as 2026-11-29, or an id. */
        const int shown = sum->label[0] != '\0' ? 32 : strlen(name) > 10 ? 8 : 10;
        printf("%-10.*s  %12s  %12s  %10llu", shown, name, market_money(sum->paid_micro, paid),
               market_money(sum->fee_micro, fee), (unsigned long long)sum->results);
        printf(with_given ? "  %12s\n" : "\n", given);
    }
}

/* Returns the number of jobs to which slot-time was donated. */
static size_t count_given(const struct earnings *earnings)
{
    size_t count = 0;
    for (size_t i = 0; i < earnings->jobs.count; i++) {
        count += earnings->jobs.rows[i].given_ns > 0;
    }
    return count;
}

static void print_earnings(const struct earnings *earnings, int64_t available_micro)
{
    const struct sum *all = &earnings->all;
    char text[UNITS_TEXT_SIZE];
    char span[BOURSE_ID_SIZE] = "";
    if (earnings->from_ms > 0) {
        day_of(earnings->from_ms, span);
    }
    printf("%-10s %s for %llu results%s%s\n", "earned", market_money(all->paid_micro, text),
           (unsigned long long)all->results, span[0] == '\0' ? "" : " since ", span);
    printf("%-10s %s, which the market kept of what consumers paid\n", "fees",
           market_money(all->fee_micro, text));
    if (all->given_ns > 0) {
        units_slot_hours(all->given_ns, text);
        const size_t jobs = count_given(earnings);
        printf("%-10s %s slot-hours to %zu job%s of others: thank you\n", "donated", text, jobs,
               text_plural(jobs));
    }
    printf("%-10s %s\n", "balance", market_money(available_micro, text));
    if (earnings->days.count > 0) {
        print_sums("DAY (UTC)", &earnings->days, all->given_ns > 0);
        print_sums("JOB", &earnings->jobs, all->given_ns > 0);
        print_sums("DEVICE", &earnings->devices, all->given_ns > 0);
    }
}

static json_t *sums_json(const struct sums *sums, const char *name)
{
    json_t *list = json_array();
    for (size_t i = 0; i < sums->count; i++) {
        const struct sum *sum = &sums->rows[i];
        json_t *row =
            json_pack("{s:s, s:I, s:I, s:I, s:I}", name, sum->name, "earned_micro",
                      (json_int_t)sum->paid_micro, "fee_micro", (json_int_t)sum->fee_micro,
                      "results", (json_int_t)sum->results, "given_ns", (json_int_t)sum->given_ns);
        if (sum->label[0] != '\0') {
            (void)json_object_set_new(row, "label", json_string(sum->label));
        }
        (void)json_array_append_new(list, row);
    }
    return list;
}

static bool name_devices(struct bourse *bourse, const struct bourse_account *account,
                         struct earnings *earnings, struct bourse_error *error)
{
    struct naming naming = {.devices = &earnings->devices};
    (void)snprintf(naming.account, sizeof naming.account, "%s", account->key);
    return earnings->devices.count == 0 || bourse_devices(bourse, name_device, &naming, error);
}

static bool collect(struct bourse *bourse, const struct command *command, struct earnings *earnings,
                    struct bourse_balance *balance, struct bourse_error *error)
{
    struct bourse_account account;
    if (!bourse_whoami(bourse, &account, error)) {
        return false;
    }
    earnings->from_ms = command->since_ms == 0 || command->since_ms > account.log_time_ms
                            ? 0
                            : account.log_time_ms - command->since_ms;
    return bourse_balance(bourse, balance, error) &&
           bourse_provided(bourse, take_result, earnings, error) &&
           bourse_statement(bourse, 0, take_entry, earnings, error) &&
           name_devices(bourse, &account, earnings, error);
}

int command_earnings(const struct command *command)
{
    struct earnings earnings = {.from_ms = 0};
    struct bourse_balance balance = {.available_micro = 0};
    struct bourse_error error = {.status = BOURSE_OK};
    int status;
    struct bourse *bourse = market_open(command, &status);
    if (bourse == NULL) {
        return status;
    }
    bool good = collect(bourse, command, &earnings, &balance, &error);
    bourse_close(&bourse);
    status = EXIT_OK;
    if (earnings.is_out_of_memory) {
        status = command_fail(EXIT_FAILED, "out of memory");
    } else if (!good) {
        status = market_fail(&error);
    } else if (command->json) {
        market_print_json(json_pack(
            "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o}", "since_ms",
            (json_int_t)earnings.from_ms, "earned_micro", (json_int_t)earnings.all.paid_micro,
            "fee_micro", (json_int_t)earnings.all.fee_micro, "results",
            (json_int_t)earnings.all.results, "given_ns", (json_int_t)earnings.all.given_ns,
            "given_jobs", (json_int_t)count_given(&earnings), "balance_micro",
            (json_int_t)balance.available_micro, "days", sums_json(&earnings.days, "day"), "jobs",
            sums_json(&earnings.jobs, "job"), "devices", sums_json(&earnings.devices, "device")));
    } else {
        print_earnings(&earnings, balance.available_micro);
    }
    free(earnings.days.rows);
    free(earnings.jobs.rows);
    free(earnings.devices.rows);
    return status;
}
