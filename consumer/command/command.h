/* consumer/command/command.h describes the `bourse` program. One table lists the subcommands,
 * each with options, help and a function. Help, parsing, completion and "did you mean" read names
 * from the table alone. */
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
    const char *name;     /* long name, without its dashes */
    char letter;          /* short name, or 0 */
    const char *argument; /* the value's name in help; NULL: a switch */
    const char *help;     /* NULL: an earlier name, which is taken and never shown */
};

struct option_list {
    const struct option_spec *items;
    size_t count;
    size_t expert_count; /* the last ones, which help lists apart */
};

struct invocation;

enum command_flags {
    COMMAND_OFFLINE = 1,     /* takes no --market, --key and --timeout */
    COMMAND_STOPS_EARLY = 2, /* options end at the first other word; a program's words follow */
};

struct command {
    const char *name;
    const char *arguments;             /* "FILE", "[JOB]" */
    const char *summary;               /* one line, for the list */
    const char *details;               /* further lines of its own help, or NULL */
    const char *examples[2];           /* two command lines that end its help */
    const struct option_list *options; /* NULL: none of its own */
    int words_min, words_max;          /* words that are not options; -1: any number */
    unsigned flags;
    int (*run)(struct invocation *invocation); /* returns the exit status */
};

/* The options in force are the command's own, then the common ones that the command does not
 * redefine, then its own ones for experts. Behind them are earlier names, which nothing shows. */
enum { OPTIONS_MAX = 48 };
struct option_set {
    const struct option_spec *items[OPTIONS_MAX];
    size_t count;
    size_t expert_count; /* the last ones of `count` */
    size_t taken_count;  /* with the earlier names */
};
struct option_set command_options(const struct command *command);
bool command_takes(const struct command *command, const char *option);

const struct command *command_list(size_t *ret_count);
const struct command *command_find(const char *name); /* NULL: no such command */
/* Returns the template of `bourse run WORD`, which makes a job without a program; NULL: no such
 * template. */
const struct command *command_template_find(const char *word);
/* Returns true for a word that names the file of a model, and not a template. */
bool command_is_model(const char *word);
const struct command *command_templates(size_t *ret_count);
const struct option_spec *command_common_options(size_t *ret_count);

enum { GIVEN_MAX = 2048 };
struct given {
    const char *name;  /* name of the option */
    const char *value; /* "" for a switch */
    char letter;       /* the letter that the user wrote instead of the name; 0: the name */
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
    struct bourse *bourse; /* NULL before the connection */
    unsigned umask;        /* the user's umask, for files of the user */
    int64_t calls_most_ms; /* calls end this long after the connection began; 0: no such end */
};

/* Parses argv from index 1 on. Returns true when the command is to run. Returns false and
 * *ret_status after help or a message was printed. */
bool command_parse(struct invocation *invocation, int argc, char **argv, int *ret_status);
bool option_given(const struct invocation *invocation, const char *name);
const char *option_text(const struct invocation *invocation, const char *name,
                        const char *fallback); /* value of the last such option */

/* Names the command that may have been meant, and returns the exit status. */
int command_unknown(struct invocation *invocation, const char *word);
/* Each function reads an option's value and rounds nothing. Returns false after a message about a
 * wrong value. *ret stays unchanged when the option is absent. */
bool option_money(struct invocation *invocation, const char *name, int64_t *ret_micro);
bool option_duration_ns(struct invocation *invocation, const char *name, int64_t *ret_ns);
bool option_duration_ms(struct invocation *invocation, const char *name, int64_t *ret_ms);
/* Reads a time from now, or a moment of UTC in milliseconds since 1970. The other one becomes 0. */
bool option_end(struct invocation *invocation, const char *name, int64_t *ret_for_ms,
                int64_t *ret_at_ms);
bool option_count(struct invocation *invocation, const char *name, int64_t least, int64_t most,
                  int64_t *ret);

/* Returns true when whoever read standard output closed it, as `head` does. Such a reader has read
 * enough, so a failed write is no fault. */
bool command_reader_is_gone(void);

/* Returns true when the command may write the file that the user names. The file must be absent,
 * empty, not a regular file, or of the command's own kind. A file of the `kind` begins with the
 * bytes of `head`. */
bool command_may_replace(struct invocation *invocation, const char *option, const char *path,
                         const void *head, size_t head_length, const char *kind, int *ret_status);
/* Returns true when the folder of the named market exists; a default market needs no folder. A
 * broker that stops removes the market's file and leaves the folder. */
bool command_market_is_there(struct invocation *invocation, int *ret_status);
/* Connects to the broker. Returns false and the exit status after an error message. */
bool command_connect(struct invocation *invocation, int *ret_status);
/* Returns the options of a connection: the timeout of the settings, and who says that the broker is
 * silent. `market` and `key` are paths; the options borrow them. */
struct bourse_options command_connection(struct invocation *invocation, const char *market,
                                         const char *key);
/* Asks a question before much is done. Returns true when the answer is yes. Otherwise fills the
 * exit status and complains: `declined` after a no, `unasked` without a terminal. */
bool command_agrees(struct invocation *invocation, const char *question, const char *unasked,
                    const char *declined, int *ret_status);
/* Fills the state of the last answer, where a broker that follows may have given it. Returns false
 * when the leader alone is asked. */
bool command_state(struct bourse_state *ret_state);
void command_disconnect(struct invocation *invocation);
/* Resolves a job's id. Returns false and the exit status after an error message. */
bool command_resolve_job(struct invocation *invocation, const char *text,
                         char ret_id[BOURSE_ID_SIZE], int *ret_status);

/* Prints the help of the command; NULL: of the whole program. */
void command_print_help(FILE *to, const struct command *command);

/* Each subcommand has one function. */
int command_up(struct invocation *invocation);
int command_down(struct invocation *invocation);
int command_join(struct invocation *invocation);
int command_key(struct invocation *invocation);
int command_submit(struct invocation *invocation);
int command_resume(struct invocation *invocation);
int command_run(struct invocation *invocation);
int command_shell(struct invocation *invocation);
int command_matmul(struct invocation *invocation);
int command_model(struct invocation *invocation);
int command_train(struct invocation *invocation);
int command_quote(struct invocation *invocation);
int command_plan(struct invocation *invocation);
int command_ps(struct invocation *invocation);
int command_logs(struct invocation *invocation);
int command_fetch(struct invocation *invocation);
int command_wait(struct invocation *invocation);
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
int command_status(struct invocation *invocation);
int command_ledger(struct invocation *invocation);
int command_storage(struct invocation *invocation);
int command_forget(struct invocation *invocation);
int command_receipt(struct invocation *invocation);
int command_verify(struct invocation *invocation);
int command_admin(struct invocation *invocation);
int command_completion(struct invocation *invocation);
int command_config(struct invocation *invocation);
int command_version(struct invocation *invocation);
int command_help(struct invocation *invocation);

#endif
