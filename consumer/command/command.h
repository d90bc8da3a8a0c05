/* consumer/command/command.h - the shape of the `bourse` program: a table of subcommands, their
 * options and help, one function each. The table is the only place that knows a name; help,
 * parsing, completion and "did you mean" all read it. */
#ifndef BOURSE_CONSUMER_COMMAND_H
#define BOURSE_CONSUMER_COMMAND_H

#include "consumer/client/bourse.h"
#include "consumer/client/settings.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct option_spec {
    const char *name;     /* long, without its dashes */
    char letter;          /* or 0 */
    const char *argument; /* what stands in help; NULL: a switch */
    const char *help;
};

struct invocation;

enum command_flags {
    COMMAND_OFFLINE = 1,     /* takes no --market, --key and --timeout */
    COMMAND_STOPS_EARLY = 2, /* options end at the first other word: what follows is a program's */
};

struct command {
    const char *name;
    const char *arguments; /* "FILE", "[JOB]" */
    const char *summary;   /* one line, for the list */
    const char *details;   /* more lines for its own help; may be NULL */
    const struct option_spec *options;
    size_t option_count;
    int words_min, words_max; /* words that are no options; -1: any number */
    unsigned flags;
    int (*run)(struct invocation *invocation); /* returns an exit status */
};

/* The options in force: the command's own first, then the common ones that it does not redefine. */
enum { OPTIONS_MAX = 48 };
struct option_set {
    const struct option_spec *items[OPTIONS_MAX];
    size_t count;
};
struct option_set command_options(const struct command *command);
bool command_takes(const struct command *command, const char *option);

const struct command *commands(size_t *ret_count);
const struct command *command_find(const char *name); /* NULL: none */
/* `bourse run WORD`: a job made from other things than a program. NULL: no such template. */
const struct command *template_find(const char *word);
const struct command *templates(size_t *ret_count);
const struct option_spec *common_options(size_t *ret_count);

enum { GIVEN_MAX = 2048 };
struct given {
    const char *name;  /* of the option */
    const char *value; /* "" for a switch */
};

struct invocation {
    const struct command *command;
    struct given given[GIVEN_MAX];
    size_t given_count;
    char **words;
    int word_count;
    struct settings settings;
    char config_folder[SETTING_VALUE_SIZE];
    char state_folder[SETTING_VALUE_SIZE];
    bool json, quiet, color;
    struct bourse *bourse; /* once connected */
    unsigned umask;        /* the user's, for files that are theirs */
};

/* Parses argv[1] and on. True: run it. False: *ret_status is the exit status (help was printed, or
 * what is wrong has been said). */
bool invocation_parse(struct invocation *invocation, int argc, char **argv, int *ret_status);
bool option_given(const struct invocation *invocation, const char *name);
const char *option_text(const struct invocation *invocation, const char *name,
                        const char *fallback); /* the last one */

/* Says what is wrong (as JSON on stdout with --json) and returns the exit status. */
int complain_with(struct invocation *invocation, const struct bourse_error *error);
__attribute__((format(printf, 3, 4))) int
complain(struct invocation *invocation, enum bourse_status status, const char *format, ...);
/* Says which command may have been meant; returns the exit status. */
int unknown_command(struct invocation *invocation, const char *word);
/* Reads an option's value; false after having said what is wrong with it: nothing is rounded.
 * Absent: *ret untouched. */
bool option_money(struct invocation *invocation, const char *name, int64_t *ret_micro);
bool option_duration_ns(struct invocation *invocation, const char *name, int64_t *ret_ns);
bool option_duration_ms(struct invocation *invocation, const char *name, int64_t *ret_ms);
bool option_count(struct invocation *invocation, const char *name, int64_t least, int64_t most,
                  int64_t *ret);

/* Whether a file that the user names may be written: there is none of that name, or it is empty, or
 * one of this command's own kind: a `kind` begins with the bytes of `head`. What is no regular file
 * is the user's to name. */
bool may_replace(struct invocation *invocation, const char *option, const char *path,
                 const void *head, size_t head_length, const char *kind, int *ret_status);
/* Whether the folder of the market that is named is there; no default one has to be. A broker that
 * stops takes its file away, and leaves the folder. */
bool market_is_there(struct invocation *invocation, int *ret_status);
/* Connects; an error has been said when it is false, and *ret_status is the exit status. */
bool connect_broker(struct invocation *invocation, int *ret_status);
void disconnect_broker(struct invocation *invocation);
/* Resolves a job's id the same way. */
bool resolve_job(struct invocation *invocation, const char *text, char ret_id[BOURSE_ID_SIZE],
                 int *ret_status);

void print_help(FILE *to, const struct command *command); /* NULL: the whole program */

/* One function per subcommand. */
int command_up(struct invocation *invocation);
int command_down(struct invocation *invocation);
int command_join(struct invocation *invocation);
int command_key(struct invocation *invocation);
int command_submit(struct invocation *invocation);
int command_resume(struct invocation *invocation);
int command_run(struct invocation *invocation);
int command_matmul(struct invocation *invocation);
int command_quote(struct invocation *invocation);
int command_plan(struct invocation *invocation);
int command_ps(struct invocation *invocation);
int command_logs(struct invocation *invocation);
int command_fetch(struct invocation *invocation);
int command_watch(struct invocation *invocation);
int command_report(struct invocation *invocation);
int command_history(struct invocation *invocation);
int command_cancel(struct invocation *invocation);
int command_judge(struct invocation *invocation);
int command_explain(struct invocation *invocation);
int command_devices(struct invocation *invocation);
int command_providers(struct invocation *invocation);
int command_book(struct invocation *invocation);
int command_trades(struct invocation *invocation);
int command_prices(struct invocation *invocation);
int command_order(struct invocation *invocation);
int command_balance(struct invocation *invocation);
int command_ledger(struct invocation *invocation);
int command_receipt(struct invocation *invocation);
int command_verify(struct invocation *invocation);
int command_admin(struct invocation *invocation);
int command_completion(struct invocation *invocation);
int command_config(struct invocation *invocation);
int command_version(struct invocation *invocation);
int command_help(struct invocation *invocation);

#endif
