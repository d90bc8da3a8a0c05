/* This file runs the commands join, key, admin, config, version and help. */
#include "consumer/client/names.h"
#include "consumer/command/show.h"

#include "base/cleanup.h"
#include "base/text.h"
#include "formats/units.h"
#include "ledger/checkpoint.h"
#include "protocol/identity.h"
#include "runtime/files.h"
#include "runtime/market.h"

#include <errno.h>
#include <libgen.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { INVITATION_SIZE = 4096 };

/* ---------------------------------------------------------------- join, key */

int command_join(struct invocation *invocation)
{
    char market[SETTING_VALUE_SIZE + 32];
    const struct setting_value *key = &invocation->settings.items[SETTING_KEY];
    const struct setting_value *chosen = &invocation->settings.items[SETTING_MARKET];
    char key_path[SETTING_VALUE_SIZE + 32];
    bool given_market = strncmp(chosen->origin, "default", 7) != 0;
    bool given_key = strncmp(key->origin, "default", 7) != 0;
    (void)snprintf(market, sizeof market, given_market ? "%s" : "%s/" MARKET_FILE,
                   given_market ? chosen->value : invocation->config_folder);
    (void)snprintf(key_path, sizeof key_path, given_key ? "%s" : "%s/consumer.key",
                   given_key ? key->value : invocation->config_folder);
    if (access(market, F_OK) == 0) {
        return complain(invocation, BOURSE_REFUSED,
                        "%s exists: you have joined a market already; remove it, or give --market "
                        "FILE for another",
                        market);
    }
    int64_t timeout_ns = 0;
    /* The value was checked when it was read. */
    (void)units_duration(invocation->settings.items[SETTING_TIMEOUT].value, &timeout_ns);
    struct bourse_account account;
    struct bourse_error error;
    if (!bourse_join(invocation->words[0], key_path, market, option_text(invocation, "name", NULL),
                     (int)(timeout_ns / 1000000), &account, &error)) {
        return complain_with(invocation, &error);
    }
    char roles[128];
    names_roles(account.roles, roles, sizeof roles);
    if (account.was_known) {
        (void)fprintf(stderr, "bourse: this key has an account in the market already, with what it "
                              "was given then; no invitation is redeemed now\n");
    }
    if (invocation->json) {
        return json_print(json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:b}", "account", account.key,
                                    "name", account.name, "roles", roles, "market", market, "key",
                                    key_path, "log_key", account.verifier, "redeemed",
                                    account.was_known ? 0 : 1),
                          BOURSE_OK);
    }
    if (invocation->quiet) {
        (void)puts(account.key);
        return BOURSE_OK;
    }
    (void)printf("account  %s %s\nroles    %s\nkey      %s (keep it private, and a copy of it "
                 "safe)\nmarket   %s\n",
                 account.key, cell_plain(account.name), roles, cell_plain(key_path),
                 cell_plain(market));
    return BOURSE_OK;
}

/* Loads the account's key, or makes one when there is none. The function never replaces a file. */
static bool own_key(const char *path, struct identity **ret_identity, struct problem *ret_problem)
{
    struct stat status;
    if (lstat(path, &status) == 0 || errno != ENOENT) {
        return keyfile_load(path, ret_identity, ret_problem);
    }
    char folder[SETTING_VALUE_SIZE + 32];
    (void)snprintf(folder, sizeof folder, "%s", path);
    if (!private_folder(dirname(folder), true, ret_problem) ||
        !keyfile_create(path, ret_identity, ret_problem)) {
        return false;
    }
    (void)fprintf(stderr, "new key in %s; keep it private, and a copy of it safe\n",
                  cell_plain(path));
    return true;
}

int command_key(struct invocation *invocation)
{
    struct problem problem = {.text = ""};
    char text[CHECKPOINT_TEXT_SIZE];
    bool log = option_given(invocation, "log");
    if (log) {
        const char *file = invocation->settings.items[SETTING_MARKET].value;
        struct market market;
        int status = BOURSE_OK;
        if (!command_market_is_there(invocation, &status)) {
            return status;
        }
        if (!market_read(file, &market, &problem)) {
            bool is_gone = access(file, F_OK) != 0;
            return complain(invocation, is_gone ? BOURSE_UNREACHABLE : BOURSE_LOCAL, "%s",
                            problem.text);
        }
        checkpoint_verifier(market.origin, &market.log_key, text);
    } else {
        CLEANUP(identity_destroy) struct identity *identity = NULL;
        if (!own_key(invocation->settings.items[SETTING_KEY].value, &identity, &problem)) {
            return complain(invocation, BOURSE_LOCAL, "%s", problem.text);
        }
        text_hex(identity_key(identity)->bytes, sizeof identity_key(identity)->bytes, text);
    }
    if (invocation->json) {
        return json_print(json_pack("{s:s}", log ? "log_key" : "account", text), BOURSE_OK);
    }
    (void)puts(text);
    return BOURSE_OK;
}

/* ---------------------------------------------------------------- admin */

/* ---------------------------------------------------------------- whose account */

enum { KEY_DIGITS_LEAST = 8 }; /* least digits of a key that can be searched for */

struct account_search {
    const char *text;
    bool is_key; /* the text may be the first digits of a key */
    char found[BOURSE_HEX32_SIZE];
    size_t matches;
};

static bool match_account(void *context, const struct bourse_account_row *row)
{
    struct account_search *search = context;
    if (strcmp(row->name, search->text) == 0 ||
        (search->is_key && strncasecmp(row->account, search->text, strlen(search->text)) == 0)) {
        memcpy(search->found, row->account, sizeof search->found);
        search->matches++;
    }
    return true;
}

/* Finds an account by its key, its first digits, or a name that one account alone has. Returns
 * false after a message. */
static bool find_account(struct invocation *invocation, const char *text,
                         char ret_key[BOURSE_HEX32_SIZE], int *ret_status)
{
    const size_t length = strlen(text);
    const bool is_hex = strspn(text, "0123456789abcdefABCDEF") == length;
    struct account_search search = {.text = text, .is_key = is_hex && length >= KEY_DIGITS_LEAST};
    bool is_halted;
    struct bourse_error error;
    if (is_hex && length == BOURSE_HEX32_SIZE - 1) {
        memcpy(ret_key, text, BOURSE_HEX32_SIZE); /* of any account, joined or not */
        return true;
    }
    if (!bourse_accounts(invocation->bourse, match_account, &search, &is_halted, &error)) {
        *ret_status = complain_with(invocation, &error);
    } else if (search.matches == 0) {
        *ret_status =
            complain(invocation, BOURSE_NOT_FOUND,
                     "no account '%.64s'; `bourse admin accounts` lists names and keys", text);
    } else if (search.matches > 1) {
        *ret_status =
            complain(invocation, BOURSE_USAGE,
                     "'%.64s' is %s accounts; say which by its key, as in `bourse admin accounts`",
                     text, cell_count(search.matches));
    }
    memcpy(ret_key, search.found, BOURSE_HEX32_SIZE);
    return search.matches == 1;
}

static int done(struct invocation *invocation, bool ok, const struct bourse_error *error)
{
    if (!ok) {
        return complain_with(invocation, error);
    }
    return invocation->json ? json_print(json_pack("{s:b}", "accepted", 1), BOURSE_OK) : BOURSE_OK;
}

static int admin_mint(struct invocation *invocation)
{
    int64_t micro = 0;
    int found;
    char key[BOURSE_HEX32_SIZE];
    struct bourse_error error;
    enum units_status status = units_money(invocation->words[2], &micro);
    if (status == UNITS_OVERFLOW || status == UNITS_INEXACT) {
        char text[256];
        units_explain(UNITS_MONEY, status, invocation->words[2], text, sizeof text);
        return complain(invocation, BOURSE_USAGE, "%s", text);
    }
    if (status != UNITS_OK || micro <= 0) {
        return complain(invocation, BOURSE_USAGE,
                        "'%s' is no amount of credits above zero, such as 12.50",
                        invocation->words[2]);
    }
    if (!find_account(invocation, invocation->words[1], key, &found)) {
        return found;
    }
    return done(
        invocation,
        bourse_mint(invocation->bourse, key, micro, option_text(invocation, "note", NULL), &error),
        &error);
}

static bool read_roles(struct invocation *invocation, unsigned *ret_roles)
{
    *ret_roles = 0;
    for (size_t i = 0; i < invocation->given_count; i++) {
        if (strcmp(invocation->given[i].name, "role") == 0) {
            unsigned role = names_role(invocation->given[i].value);
            if (role == 0) {
                const char *near = names_role_nearest(invocation->given[i].value);
                (void)complain(invocation, BOURSE_USAGE, "--role: no role '%s'; %s%s?",
                               invocation->given[i].value,
                               near != NULL ? "did you mean "
                                            : "consumer, provider, referee, auditor or ",
                               near != NULL ? near : "risk");
                return false;
            }
            if (role == names_role("operator") || role == names_role("replica")) {
                (void)complain(
                    invocation, BOURSE_USAGE,
                    "--role: no invitation gives the role %s: only the genesis names who "
                    "has it",
                    invocation->given[i].value);
                return false;
            }
            *ret_roles |= role;
        }
    }
    *ret_roles = *ret_roles == 0 ? names_role("consumer") : *ret_roles;
    return true;
}

static int admin_invite(struct invocation *invocation)
{
    unsigned roles = 0;
    int64_t credits_micro = 0;
    int64_t valid_ms = INT64_C(7) * 24 * 3600 * 1000;
    char text[INVITATION_SIZE];
    struct bourse_error error;
    if (!read_roles(invocation, &roles) || !option_money(invocation, "credits", &credits_micro) ||
        !option_duration_ms(invocation, "expires", &valid_ms)) {
        return BOURSE_USAGE;
    }
    if (!bourse_invite(invocation->bourse, roles, credits_micro, valid_ms,
                       option_text(invocation, "name", NULL), text, sizeof text, &error)) {
        return complain_with(invocation, &error);
    }
    if (invocation->json) {
        return json_print(json_pack("{s:s}", "invitation", text), BOURSE_OK);
    }
    (void)puts(text);
    if (!invocation->quiet) {
        (void)fputs("It is good for one account: send it where only its receiver can read it.\n",
                    stderr);
    }
    return BOURSE_OK;
}

struct account_list {
    json_t *list; /* NULL: rows go to the table */
    bool quiet;   /* prints only the keys, one a line */
    struct grid table;
};

static bool add_account(void *context, const struct bourse_account_row *row)
{
    struct account_list *accounts = context;
    char roles[128];
    names_roles(row->roles, roles, sizeof roles);
    if (accounts->list != NULL) {
        return json_array_append_new(accounts->list,
                                     json_pack("{s:i, s:s, s:s, s:s, s:I, s:I, s:b, s:s}", "number",
                                               (int)row->number, "account", row->account, "name",
                                               row->name, "roles", roles, "available_micro",
                                               (json_int_t)row->available_micro, "held_micro",
                                               (json_int_t)row->held_micro, "frozen",
                                               row->frozen ? 1 : 0, "owner", row->owner)) == 0;
    }
    if (accounts->quiet) {
        (void)puts(row->account);
        return true;
    }
    const char *cells[] = {cell_count(row->number),
                           row->account,
                           row->name,
                           roles,
                           cell_money(row->available_micro),
                           cell_money(row->held_micro),
                           row->frozen ? "frozen" : "",
                           row->owner};
    grid_add(&accounts->table, cells);
    return true;
}

static int admin_accounts(struct invocation *invocation)
{
    static const char *const titles[] = {"NUMBER",    "ACCOUNT", "NAME", "ROLES",
                                         "AVAILABLE", "HELD",    "",     "OWNER"};
    struct account_list accounts = {.list = invocation->json ? json_array() : NULL,
                                    .quiet = invocation->quiet,
                                    .table = grid_of(8, titles, "rlllrrll")};
    bool halted = false;
    struct bourse_error error;
    if (!bourse_accounts(invocation->bourse, add_account, &accounts, &halted, &error)) {
        json_decref(accounts.list);
        grid_fini(&accounts.table);
        return complain_with(invocation, &error);
    }
    if (invocation->json) {
        return json_print(
            json_pack("{s:b, s:o}", "halted", halted ? 1 : 0, "accounts", accounts.list),
            BOURSE_OK);
    }
    if (!invocation->quiet) {
        grid_print(&accounts.table, stdout, invocation->color);
    }
    grid_fini(&accounts.table);
    if (halted) {
        (void)fputs("the market is halted; `bourse admin halt --undo` resumes it\n", stderr);
    }
    return BOURSE_OK;
}

static int admin_freeze(struct invocation *invocation)
{
    int found;
    char key[BOURSE_HEX32_SIZE];
    struct bourse_error error;
    if (!find_account(invocation, invocation->words[1], key, &found)) {
        return found;
    }
    return done(invocation,
                bourse_freeze(invocation->bourse, key, !option_given(invocation, "undo"),
                              option_text(invocation, "reason", NULL), &error),
                &error);
}

static int admin_halt(struct invocation *invocation)
{
    struct bourse_error error;
    return done(invocation,
                bourse_halt(invocation->bourse, !option_given(invocation, "undo"),
                            option_text(invocation, "reason", NULL), &error),
                &error);
}

/* The value is "none" or an amount of money. */
static bool read_notional(struct invocation *invocation, int64_t *ret_micro)
{
    const char *text = option_text(invocation, "notional", NULL);
    if (text != NULL && strcmp(text, "none") == 0) {
        *ret_micro = 0;
        return true;
    }
    if (!option_money(invocation, "notional", ret_micro)) {
        return false;
    }
    if (*ret_micro == 0) {
        (void)complain(invocation, BOURSE_USAGE,
                       "--notional: 0 would let no order in; `none` lifts the bound, `bourse admin "
                       "halt` stops trade");
        return false;
    }
    return true;
}

/* An option that needs a bound would do nothing without one. */
static bool is_band_missing(struct invocation *invocation, bool is_set)
{
    if (option_given(invocation, "undo")) {
        (void)complain(
            invocation, BOURSE_USAGE,
            "--undo: a change of bands is undone by setting them to what they were, with "
            "--least, --most or --notional");
        return true;
    }
    if (!is_set && option_text(invocation, "reason", NULL) != NULL) {
        (void)complain(invocation, BOURSE_USAGE,
                       "--reason: of what change? Give --least, --most or --notional, too");
        return true;
    }
    return false;
}

/* Sets the given bounds, then shows the bounds in force. */
static int admin_bands(struct invocation *invocation)
{
    struct bourse_error error;
    struct bourse_bands bands = {.least_micro = -1, .most_micro = -1, .notional_micro = -1};
    if (!option_money(invocation, "least", &bands.least_micro) ||
        !option_money(invocation, "most", &bands.most_micro) ||
        !read_notional(invocation, &bands.notional_micro)) {
        return BOURSE_USAGE;
    }
    const bool is_set =
        bands.least_micro >= 0 || bands.most_micro >= 0 || bands.notional_micro >= 0;
    if (is_band_missing(invocation, is_set)) {
        return BOURSE_USAGE;
    }
    if (bands.most_micro == 0) {
        return complain(invocation, BOURSE_USAGE,
                        "--most: 0 would let in nothing but donations; the least is 0.000001, and "
                        "`bourse admin halt` stops trade");
    }
    if (is_set && !bourse_set_bands(invocation->bourse, &bands,
                                    option_text(invocation, "reason", NULL), &error)) {
        return complain_with(invocation, &error);
    }
    if (!bourse_bands(invocation->bourse, &bands, &error)) {
        return complain_with(invocation, &error);
    }
    if (invocation->json) {
        return json_print(json_bands(bands), BOURSE_OK);
    }
    if (!invocation->quiet) {
        listing_print_bands(stdout, bands);
    }
    return BOURSE_OK;
}

/* Names the owner of accounts; with --undo each account owns itself again. */
static int admin_owner(struct invocation *invocation)
{
    enum { ACCOUNTS_MOST = 32 };
    static char keys[ACCOUNTS_MOST][BOURSE_HEX32_SIZE];
    const char *accounts[ACCOUNTS_MOST];
    const size_t count = (size_t)invocation->word_count - 1;
    const char *name = option_text(invocation, "name", NULL);
    const bool is_undone = option_given(invocation, "undo");
    struct bourse_error error;
    if (count == 0 || count > ACCOUNTS_MOST) {
        return complain(invocation, BOURSE_USAGE,
                        "admin owner: name 1 to %d accounts; see `bourse help admin`",
                        ACCOUNTS_MOST);
    }
    if (is_undone == (name != NULL && name[0] != '\0')) {
        return complain(invocation, BOURSE_USAGE,
                        "admin owner: give --name NAME, or --undo, which makes each account its "
                        "own owner again");
    }
    for (size_t i = 0; i < count; i++) {
        int found;
        if (!find_account(invocation, invocation->words[1 + i], keys[i], &found)) {
            return found;
        }
        accounts[i] = keys[i];
    }
    return done(invocation,
                bourse_set_owner(invocation->bourse, accounts, count, is_undone ? "" : name,
                                 option_text(invocation, "reason", NULL), &error),
                &error);
}

int command_admin(struct invocation *invocation)
{
    enum { ANY_WORDS = 0 };
    static const struct {
        const char *name;
        int words;
        int (*run)(struct invocation *invocation);
    } acts[] = {
        {"mint", 3, admin_mint},           {"invite", 1, admin_invite},
        {"freeze", 2, admin_freeze},       {"halt", 1, admin_halt},
        {"accounts", 1, admin_accounts},   {"bands", 1, admin_bands},
        {"owner", ANY_WORDS, admin_owner},
    };
    const size_t count = sizeof acts / sizeof *acts;
    const char *names[sizeof acts / sizeof *acts];
    const char *word = invocation->words[0];
    for (size_t i = 0; i < count; i++) {
        names[i] = acts[i].name;
        if (strcmp(word, acts[i].name) != 0) {
            continue;
        }
        if (acts[i].words != ANY_WORDS && invocation->word_count != acts[i].words) {
            return complain(invocation, BOURSE_USAGE,
                            "admin %s: wrong number of words; see `bourse help admin`", word);
        }
        int status = 0;
        return command_connect(invocation, &status) ? acts[i].run(invocation) : status;
    }
    const char *near = text_nearest(word, names, count);
    return complain(invocation, BOURSE_USAGE, "admin has no '%s'%s%s%s", word,
                    near != NULL ? "; did you mean `" : "", near != NULL ? near : "",
                    near != NULL ? "`?" : "");
}

/* ---------------------------------------------------------------- config, version, help */

int command_config(struct invocation *invocation)
{
    if (invocation->word_count > 0 && strcmp(invocation->words[0], "show") != 0) {
        return complain(invocation, BOURSE_USAGE,
                        "config has no '%s'; did you mean `bourse config show`?",
                        invocation->words[0]);
    }
    bool origin = option_given(invocation, "origin");
    if (invocation->json) {
        json_t *value = json_object();
        for (int i = 0; i < SETTING_COUNT; i++) {
            const struct setting_value *item = &invocation->settings.items[i];
            (void)json_object_set_new(
                value, settings_name((enum setting)i),
                json_pack("{s:s, s:s}", "value", item->value, "origin", item->origin));
        }
        return json_print(json_pack("{s:o}", "settings", value), BOURSE_OK);
    }
    static const char *const titles[] = {"SETTING", "VALUE", "ORIGIN"};
    CLEANUP(grid_fini)
    struct grid table = grid_of(origin ? 3 : 2, titles, origin ? "lll" : "ll");
    for (int i = 0; i < SETTING_COUNT; i++) {
        const struct setting_value *item = &invocation->settings.items[i];
        const char *cells[] = {settings_name((enum setting)i), item->value, item->origin};
        grid_add(&table, cells);
    }
    grid_print(&table, stdout, invocation->color);
    return BOURSE_OK;
}

int command_version(struct invocation *invocation)
{
    if (invocation->json) {
        return json_print(json_pack("{s:s, s:s}", "program", "bourse", "release", bourse_version()),
                          BOURSE_OK);
    }
    (void)printf("bourse %s\n", bourse_version());
    return BOURSE_OK;
}

static int help_json(void)
{
    size_t count = 0;
    const struct command *all = command_list(&count);
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *options = json_array();
        for (size_t k = 0; k < all[i].option_count; k++) {
            (void)json_array_append_new(options,
                                        json_pack("{s:s, s:s}", "name", all[i].options[k].name,
                                                  "help", all[i].options[k].help));
        }
        (void)json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:o}", "name", all[i].name,
                                                    "arguments", all[i].arguments, "summary",
                                                    all[i].summary, "options", options));
    }
    return json_print(json_pack("{s:o}", "commands", list), BOURSE_OK);
}

int command_help(struct invocation *invocation)
{
    if (invocation->json) {
        return help_json();
    }
    const struct command *command = NULL;
    if (invocation->word_count > 0) {
        command = command_find(invocation->words[0]);
        if (command == NULL) {
            return command_unknown(invocation, invocation->words[0]);
        }
    }
    if (invocation->word_count > 1) {
        command =
            strcmp(command->name, "run") == 0 ? command_template_find(invocation->words[1]) : NULL;
        if (command == NULL) {
            return complain(invocation, BOURSE_USAGE,
                            "no command '%s %s'; `bourse help %s` says what there is",
                            invocation->words[0], invocation->words[1], invocation->words[0]);
        }
    }
    command_print_help(stdout, command);
    return BOURSE_OK;
}
