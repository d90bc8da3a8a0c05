/* consumer/client/settings.h reads the settings that the command does not get as arguments, and
 * remembers their origin. The header is not installed.
 *
 * The first source that gives a value counts: an option, the environment (BOURSE_MARKET ...), the
 * project's file ./.bourse.yaml, the user's $XDG_CONFIG_HOME/bourse/config.yaml,
 * /etc/bourse/config.yaml, or the default. `bourse config show --origin` names the source. Paths in
 * a file are relative to the file. A file that others may write is refused, because it could send a
 * job's money elsewhere. */
#ifndef BOURSE_CONSUMER_CLIENT_SETTINGS_H
#define BOURSE_CONSUMER_CLIENT_SETTINGS_H

#include "base/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum setting {
    SETTING_MARKET,
    SETTING_KEY,
    SETTING_TIMEOUT,
    SETTING_READ_FROM,
    SETTING_COLOR,
    SETTING_COUNT
};

enum { SETTING_VALUE_SIZE = 1024, SETTING_ORIGIN_SIZE = 1152 };

struct setting_value {
    char value[SETTING_VALUE_SIZE];
    /* One of "option --market", "environment BOURSE_MARKET", the path of a file, or "default". */
    char origin[SETTING_ORIGIN_SIZE];
};

struct settings {
    struct setting_value items[SETTING_COUNT];
};

struct settings_sources {
    const char *flags[SETTING_COUNT];             /* NULL: not given */
    const char *(*environment)(const char *name); /* getenv, or a test's function */
    const char *project; /* path of a file that may be absent; NULL: none */
    const char *user;
    const char *system;
    const char *state;  /* folder of the default market: $XDG_STATE_HOME/bourse or similar */
    const char *config; /* the user's folder: $XDG_CONFIG_HOME/bourse */
};

const char *settings_name(enum setting setting);

/* Reads all settings. Returns false when a file is wrong or writable by others, or when a value has
 * the wrong kind. The market becomes the path of a market.yaml, even when a folder was given. */
bool settings_load(const struct settings_sources *sources, struct settings *ret_settings,
                   struct problem *ret_problem);

/* Says which brokers may answer reads. */
struct settings_readers {
    bool any;             /* one that follows, too */
    uint64_t least_index; /* that has this command at least; 0: any state will do */
};
/* Reads the setting `read-from`: "leader", "any", or the number of a command. Returns false for
 * another text. */
bool settings_read_from(const char *text, struct settings_readers *ret_readers);

/* Finds the folders of this user's files, in buffers of SETTING_VALUE_SIZE. Returns false when HOME
 * is needed and not set. */
bool settings_folders(const char *(*environment)(const char *name), bool root, char *ret_config,
                      char *ret_state, struct problem *ret_problem);

#endif
