/* This file runs balance, ledger, receipt and verify, which show payments and prove them. */
#include "consumer/command/job/jobs.h"
#include "consumer/command/show.h"
#include "consumer/command/state.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "formats/units.h"
#include "ledger/checkpoint.h"
#include "ledger/receipt.h"
#include "runtime/files.h"
#include "runtime/market.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ENTRIES_MOST = 1 << 30, PATH_SIZE = 4096 };

/* ---------------------------------------------------------------- balance and statement */

struct statement {
    json_t *list; /* NULL: rows go to the table */
    struct grid table;
};

static bool add_entry(void *context, const struct bourse_entry *entry)
{
    struct statement *statement = context;
    if (statement->list != NULL) {
        json_t *value = json_pack(
            "{s:I, s:I, s:I, s:s, s:I, s:I, s:s}", "entry", (json_int_t)entry->entry, "log_index",
            (json_int_t)entry->log_index, "time_ms", (json_int_t)entry->time_ms, "kind",
            entry->kind_text, "amount_micro", (json_int_t)entry->amount_micro, "held_micro",
            (json_int_t)entry->held_micro, "counterparty", entry->counterparty);
        if (entry->job[0] != '\0') {
            (void)json_object_set_new(value, "job", json_string(entry->job));
        }
        if (entry->has_subtask) {
            (void)json_object_set_new(value, "subtask", json_integer(entry->subtask));
        }
        return json_array_append_new(statement->list, value) == 0;
    }
    const char *cells[] = {cell_count(entry->entry),
                           cell_time(entry->time_ms),
                           entry->kind_text,
                           cell_money(entry->amount_micro),
                           cell_money(entry->held_micro),
                           entry->job[0] != '\0' ? cell_short_id(entry->job) : "",
                           entry->has_subtask ? cell_count(entry->subtask) : "",
                           entry->counterparty};
    grid_add(&statement->table, cells);
    return true;
}

static void print_donated(const struct bourse_donated *donated)
{
    char hours[UNITS_TEXT_SIZE];
    if (donated->given_ns > 0) {
        units_slot_hours(donated->given_ns, hours);
        (void)printf("donated    %s slot-hours to others, all in all\n", hours);
    }
    if (donated->used_ns == 0 && donated->promised_ns == 0 && donated->place == 0) {
        return;
    }
    units_slot_hours(donated->used_ns, hours);
    (void)printf("received   %s donated slot-hours lately; half of it counts a week later", hours);
    if (donated->promised_ns > 0) {
        units_slot_hours(donated->promised_ns, hours);
        (void)printf("; donated leases may use %s more", hours);
    }
    if (donated->place > 0) {
        (void)printf("; place %u of %u in the queue for donated slots", donated->place,
                     donated->waiting);
    }
    (void)puts("");
}

/* Says how much of its quota the account stores. A provider stores nothing of its own, and an older
 * broker does not tell. A broker that follows does not know, and need not know who does. */
static void print_stored(struct invocation *invocation)
{
    struct bourse_account account;
    struct bourse_storage storage;
    if (bourse_whoami(invocation->bourse, &account, NULL) && !account.follows &&
        bourse_storage(invocation->bourse, NULL, NULL, &storage, NULL)) {
        (void)printf("stored     %s of %s\n", cell_bytes(storage.used_bytes),
                     cell_bytes(storage.quota_bytes));
    }
}

static int show_account(struct invocation *invocation, bool with_balance, bool with_entries)
{
    static const char *const titles[] = {"ENTRY", "TIME", "KIND",    "AVAILABLE",
                                         "HELD",  "JOB",  "SUBTASK", "WITH"};
    int status = 0;
    int64_t limit = 0;
    if (!option_count(invocation, "limit", 1, ENTRIES_MOST, &limit)) {
        return BOURSE_USAGE;
    }
    if (!command_connect(invocation, &status)) {
        return status;
    }
    struct bourse_balance balance;
    struct bourse_error error;
    struct bourse_donated donated = {.used_ns = 0};
    if (!bourse_balance(invocation->bourse, &balance, &error) ||
        (with_balance && !bourse_donated(invocation->bourse, &donated, &error))) {
        return complain_with(invocation, &error);
    }
    struct statement statement = {.list = invocation->json ? json_array() : NULL,
                                  .table = grid_of(8, titles, "rllrrlrl")};
    if (with_entries &&
        !bourse_statement(invocation->bourse, (uint64_t)limit, add_entry, &statement, &error)) {
        json_decref(statement.list);
        grid_fini(&statement.table);
        return complain_with(invocation, &error);
    }
    if (invocation->json) {
        json_t *value =
            json_pack("{s:s, s:s, s:I, s:I, s:I}", "account", balance.account, "name", balance.name,
                      "available_micro", (json_int_t)balance.available_micro, "held_micro",
                      (json_int_t)balance.held_micro, "index", (json_int_t)balance.index);
        if (with_balance) {
            (void)json_object_set_new(
                value, "donated",
                json_pack("{s:I, s:I, s:I, s:I, s:I}", "used_ns", (json_int_t)donated.used_ns,
                          "promised_ns", (json_int_t)donated.promised_ns, "waiting",
                          (json_int_t)donated.waiting, "place", (json_int_t)donated.place,
                          "given_ns", (json_int_t)donated.given_ns));
        }
        (void)(with_entries ? json_object_set(value, "entries", statement.list) : 0);
        json_decref(statement.list);
        return json_print(value, BOURSE_OK);
    }
    if (with_balance || invocation->quiet) {
        (void)printf(invocation->quiet ? "%s\n" : "available  %s credits\n",
                     cell_money(balance.available_micro));
        if (!invocation->quiet) {
            (void)printf("held       %s credits\naccount    %s %s\n",
                         cell_money(balance.held_micro), balance.account, cell_plain(balance.name));
            print_donated(&donated);
            print_stored(invocation);
        }
    }
    state_say_of_market(invocation);
    if (with_entries && !invocation->quiet) {
        (void)fputs(with_balance ? "\n" : "", stdout);
        grid_print(&statement.table, stdout, invocation->color);
        state_say_behind(invocation);
    }
    grid_fini(&statement.table);
    return BOURSE_OK;
}

int command_balance(struct invocation *invocation)
{
    return show_account(invocation, true, option_given(invocation, "statement"));
}

int command_ledger(struct invocation *invocation)
{
    return show_account(invocation, false, true);
}

/* ---------------------------------------------------------------- receipt */

struct index_list {
    uint32_t *items;
    size_t count, capacity;
    size_t not_accepted; /* paid results that the job did not accept */
    uint64_t simulated;  /* results of simulated devices */
    bool failed;
};

enum { STATUS_ACCEPTED = 0, STATUS_PAID = 1 };

/* Collects every paid result, accepted or not. */
static bool collect_paid(void *context, const struct bourse_outcome *outcome)
{
    struct index_list *list = context;
    if (outcome->status != STATUS_ACCEPTED && outcome->status != STATUS_PAID) {
        return true;
    }
    uint32_t *items = array_with_room(list->items, list->count, &list->capacity, sizeof *items);
    if (items == NULL) {
        list->failed = true;
        return false;
    }
    list->items = items;
    list->items[list->count++] = outcome->index;
    list->simulated += outcome->simulated;
    list->not_accepted += outcome->status != STATUS_ACCEPTED;
    return true;
}

/* Looks at the deciding attempt of one subtask. */
static bool look_at_one(void *context, const struct bourse_outcome *outcome)
{
    struct index_list *list = context;
    bool is_it = outcome->index == list->items[0];
    list->simulated += is_it && outcome->simulated;
    list->not_accepted += is_it && outcome->status != STATUS_ACCEPTED;
    return false;
}

struct receipts {
    struct invocation *invocation;
    const char *id;
    const char *folder; /* NULL: to stdout, or into `texts` */
    const struct index_list *wanted;
    char **texts; /* with --json and without a folder: by place in `wanted` */
    struct bourse_error error;
    bool has_failed;
};

static bool path_of(const struct receipts *receipts, uint32_t index, char ret_path[PATH_SIZE])
{
    int written =
        snprintf(ret_path, PATH_SIZE, "%s/%.8s-%u.receipt", receipts->folder, receipts->id, index);
    return written > 0 && written < PATH_SIZE;
}

static bool fail(struct receipts *receipts, const char *text)
{
    receipts->has_failed = true;
    receipts->error = (struct bourse_error){.status = BOURSE_LOCAL, .name = "LOCAL"};
    (void)snprintf(receipts->error.text, sizeof receipts->error.text, "%s", text);
    return false;
}

static int by_index(const void *wanted, const void *item)
{
    const uint32_t a = *(const uint32_t *)wanted;
    const uint32_t b = *(const uint32_t *)item;
    return (a > b) - (a < b);
}

/* Takes one receipt. Those of a whole job come in the order of the log. */
static bool take(void *context, uint32_t index, const char *text, size_t length)
{
    struct receipts *receipts = context;
    char path[PATH_SIZE];
    struct problem problem = {.text = ""};
    if (receipts->folder != NULL) {
        if (!path_of(receipts, index, path)) {
            return fail(receipts, "the path of the folder is too long; name a shorter one with -o");
        }
        return file_write_of_many(path, text, length, 0644, &problem) ||
               fail(receipts, problem.text);
    }
    if (receipts->texts == NULL) {
        (void)fwrite(text, 1, length, stdout);
        return true;
    }
    const struct index_list *wanted = receipts->wanted;
    const uint32_t *place =
        bsearch(&index, wanted->items, wanted->count, sizeof *wanted->items, by_index);
    char *copy = place != NULL ? strndup(text, length) : NULL;
    if (copy == NULL) {
        return fail(receipts, "out of memory");
    }
    receipts->texts[place - wanted->items] = copy;
    return true;
}

static json_t *list_of(const struct receipts *receipts)
{
    json_t *list = json_array();
    for (size_t i = 0; i < receipts->wanted->count; i++) {
        const uint32_t index = receipts->wanted->items[i];
        char path[PATH_SIZE];
        bool is_file = receipts->folder != NULL && path_of(receipts, index, path);
        (void)json_array_append_new(list, json_pack("{s:i, s:s}", "index", (int)index,
                                                    is_file ? "file" : "receipt",
                                                    is_file ? path : receipts->texts[i]));
    }
    return list;
}

static int show_delivered(const struct receipts *receipts)
{
    const struct index_list *list = receipts->wanted;
    if (receipts->invocation->json) {
        return json_print(json_pack("{s:s, s:o, s:I, s:I}", "job", receipts->id, "receipts",
                                    list_of(receipts), "simulated", (json_int_t)list->simulated,
                                    "not_accepted", (json_int_t)list->not_accepted),
                          BOURSE_OK);
    }
    if (receipts->invocation->quiet) {
        for (size_t i = 0; i < list->count && receipts->folder != NULL; i++) {
            char path[PATH_SIZE];
            (void)(path_of(receipts, list->items[i], path) && puts(path));
        }
        return BOURSE_OK;
    }
    if (receipts->folder != NULL) {
        (void)fprintf(stderr, "%zu receipt%s in %s\n", list->count, text_plural(list->count),
                      cell_plain(receipts->folder));
    }
    if (list->not_accepted > 0) {
        (void)fprintf(stderr, "%zu of %zu results are not accepted; `bourse verify` says which\n",
                      list->not_accepted, list->count);
    }
    if (list->simulated > 0) {
        (void)fprintf(stderr, "SIMULATED: %llu of %zu results are of simulated devices\n",
                      (unsigned long long)list->simulated, list->count);
    }
    return BOURSE_OK;
}

static int deliver_all(struct receipts *receipts)
{
    const struct index_list *wanted = receipts->wanted;
    struct problem problem = {.text = ""};
    if (receipts->invocation->json && receipts->folder == NULL) {
        receipts->texts = calloc(wanted->count + 1, sizeof *receipts->texts);
        if (receipts->texts == NULL) {
            return complain(receipts->invocation, BOURSE_LOCAL, "out of memory");
        }
    }
    bool ok = bourse_receipts(receipts->invocation->bourse, receipts->id, wanted->items,
                              wanted->count, take, receipts, &receipts->error);
    if (ok && !receipts->has_failed && receipts->folder != NULL &&
        !file_sync_many(receipts->folder, &problem)) {
        (void)fail(receipts, problem.text);
    }
    const int status = ok && !receipts->has_failed
                           ? show_delivered(receipts)
                           : complain_with(receipts->invocation, &receipts->error);
    for (size_t i = 0; i < wanted->count && receipts->texts != NULL; i++) {
        free(receipts->texts[i]);
    }
    free(receipts->texts);
    return status;
}

int command_receipt(struct invocation *invocation)
{
    int status = 0;
    char id[BOURSE_ID_SIZE];
    uint32_t one = 0;
    bool all = option_given(invocation, "all");
    const char *folder = option_text(invocation, "output", NULL);
    const char *const subtask = tasks_take_word(invocation);
    if (all && folder == NULL && !invocation->json) {
        return complain(invocation, BOURSE_USAGE, "--all needs -o DIR");
    }
    if (!command_connect(invocation, &status) ||
        !command_resolve_job(invocation, invocation->words[0], id, &status)) {
        return status; /* whether there is such a job comes before what of it is asked for */
    }
    if (all && subtask != NULL) {
        return complain(invocation, BOURSE_USAGE, "give one subtask's INDEX or name, or --all");
    }
    if (!all && subtask == NULL && !tasks_is_single(invocation, id, &status)) {
        return status;
    }
    if (subtask != NULL) {
        CLEANUP(bourse_tasks_destroy) struct bourse_tasks *tasks = tasks_load(invocation, id);
        if (!tasks_resolve(invocation, id, tasks, subtask, &one, &status)) {
            return status;
        }
    }
    if (folder != NULL && mkdir(folder, 0777) != 0 && errno != EEXIST) {
        return complain(invocation, BOURSE_LOCAL, "%s: %s", folder, strerror(errno));
    }
    struct index_list list = {.items = &one, .count = 1};
    struct bourse_error error;
    if (all) {
        list = (struct index_list){.items = NULL};
        if (!bourse_outcomes(invocation->bourse, id, 0, collect_paid, &list, &error) ||
            list.failed) {
            free(list.items);
            return list.failed ? complain(invocation, BOURSE_LOCAL, "out of memory")
                               : complain_with(invocation, &error);
        }
    }
    if (!all && !bourse_outcomes(invocation->bourse, id, one, look_at_one, &list, &error)) {
        return complain_with(invocation, &error);
    }
    struct receipts receipts = {
        .invocation = invocation, .id = id, .folder = folder, .wanted = &list};
    status = deliver_all(&receipts);
    if (all) {
        free(list.items);
    }
    return status;
}

/* ---------------------------------------------------------------- verify */

struct verification {
    struct invocation *invocation;
    const char *verifier;
    uint64_t verified, failed, missing;
    json_t *list;
    struct grid table;
};

/* Writes "not checked", or "cheap (Freivalds; 5f3a91c2)" with the first digits of the check's
 * result. */
static void check_text(const struct bourse_verified *verified, char ret_text[CELL_SIZE])
{
    if (verified->check[0] == '\0') {
        (void)snprintf(ret_text, CELL_SIZE, "not checked");
    } else {
        (void)snprintf(ret_text, CELL_SIZE, "%s (Freivalds; %s)", verified->checked,
                       cell_short_id(verified->check));
    }
}

/* Writes "ok", "ok, paid, not accepted", "program failed, paid, not accepted", "ok, simulated", and
 * the level of the jail and the energy after it. */
static void outcome_text(const struct bourse_verified *verified, char ret_text[CELL_SIZE])
{
    const char *status = verified->status == STATUS_ACCEPTED ? ""
                         : verified->status == STATUS_PAID   ? ", paid, not accepted"
                                                             : ", not paid, not accepted";
    char isolation[24] = "";
    if (verified->isolation >= 0) {
        (void)snprintf(isolation, sizeof isolation, ", isolation %d", verified->isolation);
    }
    (void)snprintf(ret_text, CELL_SIZE, "%s%s%s%s%.90s", verified->outcome_text, status,
                   verified->simulated ? ", simulated" : "", isolation,
                   cell_signed_energy(verified->energy_uj, verified->energy_source_text));
}

static void note(struct verification *verification, const char *path,
                 const struct bourse_verified *verified, const struct bourse_error *error)
{
    bool ok = error == NULL;
    bool is_missing = !ok && error->status == BOURSE_NOT_FOUND;
    *(ok           ? &verification->verified
      : is_missing ? &verification->missing
                   : &verification->failed) += 1;
    if (verification->list != NULL) {
        json_t *item = json_pack("{s:s, s:b}", "file", cell_plain(path), "ok", ok ? 1 : 0);
        if (ok) {
            json_t *facts = json_pack(
                "{s:s, s:s, s:i, s:i, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:s, s:b, "
                "s:s, s:s, s:s}",
                "cluster", verified->cluster, "job", verified->job, "index", (int)verified->index,
                "attempt", (int)verified->attempt, "provider", verified->provider, "consumer",
                verified->consumer, "manifest", verified->manifest, "result", verified->result,
                "outcome", verified->outcome_text, "price_micro", (json_int_t)verified->price_micro,
                "paid_ns", (json_int_t)verified->paid_ns, "charge_micro",
                (json_int_t)verified->charge_micro, "leaf", (json_int_t)verified->leaf, "tree_size",
                (json_int_t)verified->tree_size, "origin", verified->origin, "simulated",
                verified->simulated, "checked", verified->checked, "check", verified->check,
                "status", verified->status_text);
            (void)json_object_update(item, facts);
            json_decref(facts);
            (void)json_object_set_new(item, "isolation", json_isolation_level(verified->isolation));
            json_add_energy(item, verified->energy_uj, verified->energy_source_text);
        } else {
            (void)json_object_set_new(item, "text", json_string(error->text));
        }
        (void)json_array_append_new(verification->list, item);
        return;
    }
    char outcome[CELL_SIZE] = "";
    char checked[CELL_SIZE] = "";
    if (ok) {
        check_text(verified, checked);
        outcome_text(verified, outcome);
    }
    const char *cells[] = {ok           ? "ok"
                           : is_missing ? "missing"
                                        : "failed",
                           path,
                           ok ? cell_short_id(verified->job) : "",
                           ok ? cell_count(verified->index) : "",
                           ok ? outcome : error->text,
                           checked,
                           ok ? cell_money(verified->charge_micro) : "",
                           ok ? cell_short_id(verified->provider) : ""};
    grid_add(&verification->table, cells);
}

static void verify_file(struct verification *verification, const char *path)
{
    struct problem problem = {.text = ""};
    struct bourse_error error = {.status = BOURSE_UNVERIFIED};
    struct bourse_verified verified;
    uint8_t *text = NULL;
    size_t length = 0;
    if (access(path, R_OK) != 0) { /* an unreadable file is missing, not unverified */
        (void)snprintf(error.text, sizeof error.text, "%s", strerror(errno));
        error.status = BOURSE_NOT_FOUND;
        note(verification, path, NULL, &error);
        return;
    }
    if (!file_read(path, RECEIPT_TEXT_MAX, &text, &length, &problem)) {
        (void)snprintf(error.text, sizeof error.text, "%s", problem.text);
        note(verification, path, NULL, &error);
        return;
    }
    bool ok = bourse_verify((const char *)text, length, verification->verifier, &verified, &error);
    note(verification, path, &verified, ok ? NULL : &error);
    free(text);
}

static int is_receipt(const struct dirent *entry)
{
    static const char ending[] = ".receipt";
    size_t length = strlen(entry->d_name);
    return length >= sizeof ending - 1 &&
           strcmp(entry->d_name + length - (sizeof ending - 1), ending) == 0;
}

static bool verify_path(struct verification *verification, const char *path)
{
    struct stat facts;
    if (stat(path, &facts) != 0 || !S_ISDIR(facts.st_mode)) {
        verify_file(verification, path);
        return true;
    }
    struct dirent **entries = NULL;
    int count = scandir(path, &entries, is_receipt, alphasort);
    for (int i = 0; i < count; i++) {
        char full[PATH_SIZE + 256];
        (void)snprintf(full, sizeof full, "%s/%s", path, entries[i]->d_name);
        verify_file(verification, full);
        free(entries[i]);
    }
    free(entries);
    return count > 0;
}

static bool choose_verifier(struct invocation *invocation, char ret_text[CHECKPOINT_TEXT_SIZE])
{
    const char *given = option_text(invocation, "key", NULL);
    char origin[CHECKPOINT_ORIGIN_SIZE];
    struct key32 key;
    if (given != NULL) {
        if (strlen(given) >= CHECKPOINT_TEXT_SIZE ||
            !checkpoint_verifier_read(given, origin, &key)) {
            (void)complain(invocation, BOURSE_USAGE,
                           "--key: not a verifier key, <origin>+<8 hex digits>+<base64>; `bourse "
                           "key --log` prints it");
            return false;
        }
        (void)snprintf(ret_text, CHECKPOINT_TEXT_SIZE, "%s", given);
        return true;
    }
    struct problem problem = {.text = ""};
    struct market market;
    if (!market_read(invocation->settings.items[SETTING_MARKET].value, &market, &problem)) {
        (void)complain(invocation, BOURSE_USAGE,
                       "give --key VERIFIER; no market to take it from: %s", problem.text);
        return false;
    }
    checkpoint_verifier(market.origin, &market.log_key, ret_text);
    return true;
}

int command_verify(struct invocation *invocation)
{
    static const char *const titles[] = {"STATUS",  "FILE", "JOB",     "INDEX", "OUTCOME OR REASON",
                                         "CHECKED", "COST", "PROVIDER"};
    char verifier[CHECKPOINT_TEXT_SIZE];
    if (!choose_verifier(invocation, verifier)) {
        return BOURSE_USAGE;
    }
    struct verification verification = {.invocation = invocation,
                                        .verifier = verifier,
                                        .list = invocation->json ? json_array() : NULL,
                                        .table = grid_of(8, titles, "lllrllrl")};
    for (int i = 0; i < invocation->word_count; i++) {
        if (!verify_path(&verification, invocation->words[i])) {
            grid_fini(&verification.table);
            json_decref(verification.list);
            return complain(invocation, BOURSE_NOT_FOUND, "%s: no *.receipt in it",
                            invocation->words[i]);
        }
    }
    int status = verification.failed > 0    ? BOURSE_UNVERIFIED
                 : verification.missing > 0 ? BOURSE_NOT_FOUND
                                            : BOURSE_OK;
    if (invocation->json) {
        status = json_print(
            json_pack("{s:I, s:I, s:I, s:o}", "verified", (json_int_t)verification.verified,
                      "failed", (json_int_t)verification.failed, "missing",
                      (json_int_t)verification.missing, "receipts", verification.list),
            status);
    } else if (!invocation->quiet) {
        grid_print(&verification.table, stdout, invocation->color);
        (void)fprintf(stderr, "%llu verified, %llu failed, %llu missing\n",
                      (unsigned long long)verification.verified,
                      (unsigned long long)verification.failed,
                      (unsigned long long)verification.missing);
    }
    grid_fini(&verification.table);
    return status;
}
