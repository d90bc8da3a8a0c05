/* consumer/client/settings.h - what the command is told outside its arguments, and by whom. Not
 * installed.
 *
 * A value comes from the first of these that gives it: a flag, the environment (BOURSE_MARKET ...),
 * the project's file ./.bourse.yaml, the user's $XDG_CONFIG_HOME/bourse/config.yaml,
 * /etc/bourse/config.yaml, or the default. `bourse config show --origin` says which. Paths in a
 * file are relative to that file. A file that others may write is refused: it could send a job's
 * money elsewhere. */
#ifndef BOURSE_CONSUMER_CLIENT_SETTINGS_H
#define BOURSE_CONSUMER_CLIENT_SETTINGS_H

#include "base/problem.h"

#include <stdbool.h>
#include <stddef.h>

enum setting { SETTING_MARKET, SETTING_KEY, SETTING_TIMEOUT, SETTING_COLOR, SETTING_COUNT };

enum { SETTING_VALUE_SIZE = 1024, SETTING_ORIGIN_SIZE = 1152 };

struct setting_value {
    char value[SETTING_VALUE_SIZE];
    char origin[SETTING_ORIGIN_SIZE]; /* "flag --market", "environment BOURSE_MARKET", "FILE",
                                         "default" */
};

struct settings {
    struct setting_value items[SETTING_COUNT];
};

struct settings_sources {
    const char *flags[SETTING_COUNT];             /* NULL: not given */
    const char *(*environment)(const char *name); /* getenv, or a test's */
    const char *project; /* paths of files that may be absent; NULL: none */
    const char *user;
    const char *system;
    const char *state;  /* folder of the default market: $XDG_STATE_HOME/bourse or like it */
    const char *config; /* folder of the user's own: $XDG_CONFIG_HOME/bourse */
};

const char *settings_name(enum setting setting);
const char *settings_meaning(enum setting setting);

/* False when a file is wrong, or writable by others, or a value is not of its kind. The market is
 * the path of a market.yaml at the end, also where a folder was given. */
bool settings_load(const struct settings_sources *sources, struct settings *ret_settings,
                   struct problem *ret_problem);

/* The places of this user's files. Buffers of SETTING_VALUE_SIZE. False when HOME is not set
 * either. */
bool settings_folders(const char *(*environment)(const char *name), bool root, char *ret_config,
                      char *ret_state, struct problem *ret_problem);

#endif
