/* This file runs the commands join, key, config, version and help. */
#include "consumer/client/names.h"
#include "consumer/command/show.h"

#include "base/cleanup.h"
#include "base/text.h"
#include "ledger/checkpoint.h"
#include "protocol/identity.h"
#include "protocol/roles.h"
#include "runtime/keyfile.h"
#include "runtime/market.h"
#include "runtime/private_folder.h"

#include <errno.h>
#include <libgen.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---------------------------------------------------------------- join, key */

static void say_how(const struct bourse_account *account)
{
    if (account->was_known && account->redeemed > 0) {
        (void)fputs(
            "bourse: this key has redeemed this invitation before: the account has what the "
            "invitation gave, once\n",
            stderr);
    } else if (account->was_known) {
        (void)fprintf(stderr, "bourse: this key has an account in the market already; %s\n",
                      account->redeemed == 0
                          ? "this invitation was not redeemed for it"
                          : "whether this invitation was redeemed for it is not known: the broker "
                            "remembers a join for a day, with its --name");
    }
}

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
    struct problem problem;
    if (market_is_of_broker(market, &problem)) {
        return complain(invocation, BOURSE_REFUSED,
                        "%s with --market, which says where the market's file is written; nothing "
                        "was redeemed",
                        problem.text);
    }
    if (access(market, F_OK) == 0) {
        return complain(invocation, BOURSE_REFUSED,
                        "%s exists: you have joined a market already; name another place with "
                        "--market FILE, or move that file away",
                        market);
    }
    struct bourse_account account;
    struct bourse_error error;
    const struct bourse_options options = command_connection(invocation, market, key_path);
    if (!bourse_join(invocation->words[0], &options, option_text(invocation, "name", NULL),
                     &account, &error)) {
        return complain_with(invocation, &error);
    }
    char roles[128];
    roles_text(account.roles, roles, sizeof roles);
    say_how(&account);
    if (invocation->json) {
        return json_print(
            json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:o}", "account", account.key, "name",
                      account.name, "roles", roles, "market", market, "key", key_path, "log_key",
                      account.verifier, "redeemed",
                      account.redeemed < 0 ? json_null() : json_boolean(account.redeemed)),
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

/* Loads the account's key, or makes one when there is none. The function never replaces a file. It
 * says which file the key is of, because a market that was started here before may have one. */
static bool own_key(const struct invocation *invocation, struct identity **ret_identity,
                    struct problem *ret_problem)
{
    const struct setting_value *setting = &invocation->settings.items[SETTING_KEY];
    const char *path = setting->value;
    struct stat status;
    if (lstat(path, &status) == 0 || errno != ENOENT) {
        const bool is_loaded = keyfile_load(path, ret_identity, ret_problem);
        if (is_loaded && !invocation->quiet && !invocation->json) {
            (void)fprintf(stderr, "the key in %s (%s)\n", cell_plain(path), setting->origin);
        }
        return is_loaded;
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
        if (!own_key(invocation, &identity, &problem)) {
            return complain(invocation, BOURSE_LOCAL, "%s", problem.text);
        }
        text_hex(identity_key(identity)->bytes, sizeof identity_key(identity)->bytes, text);
    }
    if (invocation->json) {
        return json_print(log ? json_pack("{s:s}", "log_key", text)
                              : json_pack("{s:s, s:s}", "account", text, "key",
                                          invocation->settings.items[SETTING_KEY].value),
                          BOURSE_OK);
    }
    (void)puts(text);
    return BOURSE_OK;
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
        const struct option_list *own = all[i].options;
        for (size_t k = 0; own != NULL && k < own->count; k++) {
            if (own->items[k].help == NULL) {
                continue;
            }
            (void)json_array_append_new(options, json_pack("{s:s, s:s}", "name", own->items[k].name,
                                                           "help", own->items[k].help));
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
