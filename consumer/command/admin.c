/* The command `bourse admin` has the acts of the operator and the risk desk. */
#include "consumer/client/names.h"
#include "consumer/command/show.h"

#include "base/cleanup.h"
#include "base/text.h"
#include "formats/units.h"
#include "protocol/roles.h"
#include "runtime/invitation.h"

#include <stdarg.h>
#include <string.h>
#include <strings.h>

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
        memcpy(ret_key, text, BOURSE_HEX32_SIZE); /* the key of any account, joined or not */
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

/* Ends an act: says on stderr what holds now, or why the act was refused. */
__attribute__((format(printf, 4, 5))) static int done(struct invocation *invocation, bool ok,
                                                      const struct bourse_error *error,
                                                      const char *format, ...)
{
    if (!ok) {
        return complain_with(invocation, error);
    }
    if (invocation->json) {
        return json_print(json_pack("{s:b}", "accepted", 1), BOURSE_OK);
    }
    if (!invocation->quiet) {
        va_list arguments;
        va_start(arguments, format);
        (void)vfprintf(stderr, format, arguments);
        va_end(arguments);
    }
    return BOURSE_OK;
}

/* Returns the text for the audit log. --note is the older name of --reason. */
static const char *mint_reason(const struct invocation *invocation)
{
    const char *reason = option_text(invocation, "reason", NULL);
    return reason != NULL ? reason : option_text(invocation, "note", NULL);
}

static int admin_mint(struct invocation *invocation)
{
    int64_t micro = 0;
    int found;
    char key[BOURSE_HEX32_SIZE];
    struct bourse_error error;
    enum units_status status = units_money(invocation->words[2], &micro);
    if (status != UNITS_OK) {
        char text[256];
        units_explain(UNITS_MONEY, status, invocation->words[2], text, sizeof text);
        return complain(invocation, BOURSE_USAGE, "%s", text);
    }
    if (micro <= 0) {
        return complain(invocation, BOURSE_USAGE,
                        "%s credits cannot be minted; write an amount above zero, such as 12.50",
                        invocation->words[2]);
    }
    if (!find_account(invocation, invocation->words[1], key, &found)) {
        return found;
    }
    return done(
        invocation, bourse_mint(invocation->bourse, key, micro, mint_reason(invocation), &error),
        &error, "minted %s credits for %s\n", cell_money(micro), cell_plain(invocation->words[1]));
}

static bool read_roles(struct invocation *invocation, unsigned *ret_roles)
{
    *ret_roles = 0;
    for (size_t i = 0; i < invocation->given_count; i++) {
        if (strcmp(invocation->given[i].name, "role") == 0) {
            unsigned role = role_named(invocation->given[i].value);
            if (role == 0) {
                const char *near = role_nearest(invocation->given[i].value);
                (void)complain(invocation, BOURSE_USAGE, "--role: no role '%s'; %s%s?",
                               invocation->given[i].value,
                               near != NULL ? "did you mean "
                                            : "consumer, provider, referee, auditor or ",
                               near != NULL ? near : "risk");
                return false;
            }
            if (role == role_named("operator") || role == role_named("replica")) {
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
    *ret_roles = *ret_roles == 0 ? role_named("consumer") : *ret_roles;
    return true;
}

static int admin_invite(struct invocation *invocation)
{
    unsigned roles = 0;
    int64_t credits_micro = 0;
    int64_t valid_ms = INT64_C(7) * 24 * 3600 * 1000;
    char text[INVITATION_TEXT_SIZE];
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
        (void)fputs("The invitation is good for one account: send it where only its receiver can "
                    "read it.\n",
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
    roles_text(row->roles, roles, sizeof roles);
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
    const bool is_undone = option_given(invocation, "undo");
    const bool ok = bourse_freeze(invocation->bourse, key, !is_undone,
                                  option_text(invocation, "reason", NULL), &error);
    const char *who = cell_plain(invocation->words[1]);
    return is_undone
               ? done(invocation, ok, &error, "%s may use the market again\n", who)
               : done(invocation, ok, &error,
                      "%s is frozen: its leases and asks have ended, and its jobs are cancelled\n"
                      "`bourse admin freeze %s --undo` takes that back, without what has ended\n",
                      who, who);
}

static int admin_halt(struct invocation *invocation)
{
    struct bourse_error error;
    const bool is_undone = option_given(invocation, "undo");
    const bool ok = bourse_halt(invocation->bourse, !is_undone,
                                option_text(invocation, "reason", NULL), &error);
    return is_undone
               ? done(invocation, ok, &error, "the market is open again\n")
               : done(
                     invocation, ok, &error,
                     "the market is halted: it takes no new job and no new ask, and fills nothing; "
                     "leases run to the end of their term\n"
                     "`bourse admin halt --undo` opens it again\n");
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
                &error, "%zu account%s %s\n", count, count == 1 ? ":" : "s:",
                is_undone ? "each is its own owner again" : "the owner is named");
}

/* Refuses an option of another act, which this one would drop without a word. */
static bool fits_admin(struct invocation *invocation, const char *act, const char *options,
                       int *ret_status)
{
    for (size_t i = 0; i < invocation->command->options->count; i++) {
        const struct option_spec *option = &invocation->command->options->items[i];
        char framed[32];
        (void)snprintf(framed, sizeof framed, " %s ", option->name); /* our own names fit */
        if (option_given(invocation, option->name) && strstr(options, framed) == NULL) {
            *ret_status =
                complain(invocation, BOURSE_USAGE, "admin %s has no --%s; see `bourse help admin`",
                         act, option->name);
            return false;
        }
    }
    if (option_given(invocation, "note") && option_given(invocation, "reason")) {
        *ret_status = complain(invocation, BOURSE_USAGE,
                               "admin %s: --note and --reason say the same; give one", act);
        return false;
    }
    return true;
}

int command_admin(struct invocation *invocation)
{
    enum { ANY_WORDS = 0 };
    static const struct {
        const char *name;
        int words;
        int (*run)(struct invocation *invocation);
        const char *options; /* the options that the act has, each between blanks */
    } acts[] = {
        {"mint", 3, admin_mint, " reason note "},
        {"invite", 1, admin_invite, " role credits expires name "},
        {"freeze", 2, admin_freeze, " reason undo "},
        {"halt", 1, admin_halt, " reason undo "},
        {"accounts", 1, admin_accounts, " "},
        {"bands", 1, admin_bands, " least most notional reason undo "}, /* --undo gets an advice */
        {"owner", ANY_WORDS, admin_owner, " name reason undo "},
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
        return fits_admin(invocation, word, acts[i].options, &status) &&
                       command_connect(invocation, &status)
                   ? acts[i].run(invocation)
                   : status;
    }
    const char *near = text_nearest(word, names, count);
    return complain(invocation, BOURSE_USAGE, "admin has no '%s'%s%s%s", word,
                    near != NULL ? "; did you mean `" : "; `bourse help admin` lists what it has",
                    near != NULL ? near : "", near != NULL ? "`?" : "");
}
