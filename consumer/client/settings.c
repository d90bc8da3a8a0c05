#include "consumer/client/settings.h"

#include "base/cleanup.h"
#include "formats/units.h"
#include "formats/yaml.h"
#include "runtime/files.h"
#include "runtime/market.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_BYTES_MAX = 1 << 16 };

static const struct {
    const char *name;
    const char *variable;
    bool is_path;
    const char *meaning;
} known[SETTING_COUNT] = {
    [SETTING_MARKET] = {"market", "BOURSE_MARKET", true, "the market's folder, or its market.yaml"},
    [SETTING_KEY] = {"key", "BOURSE_KEY", true, "the account's key file"},
    [SETTING_TIMEOUT] = {"timeout", "BOURSE_TIMEOUT", false, "how long to wait for one answer"},
    [SETTING_READ_FROM] = {"read-from", "BOURSE_READ_FROM", false,
                           "leader, any, or the number of a command that the answer must have"},
    [SETTING_COLOR] = {"color", "BOURSE_COLOR", false, "auto, always or never"},
};

const char *settings_name(enum setting setting)
{
    return known[setting].name;
}

/* A text that would be cut is refused. */
static __attribute__((format(printf, 4, 5))) bool
put(char *ret_text, size_t capacity, struct problem *ret_problem, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(ret_text, capacity, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= capacity) {
        problem_set(ret_problem, "a path or value in the settings is longer than %zu bytes",
                    capacity - 1);
        return false;
    }
    return true;
}

/* ---------------------------------------------------------------- files */

/* An absent file is fine; *ret_there is false then. */
static bool check_owner(const char *path, bool *ret_there, struct problem *ret_problem)
{
    struct stat status;
    *ret_there = stat(path, &status) == 0;
    if (!*ret_there) {
        if (errno == ENOENT || errno == ENOTDIR || errno == EACCES) {
            return true;
        }
        problem_set(ret_problem, "%s: %s", path, strerror(errno));
        return false;
    }
    if ((status.st_uid != geteuid() && status.st_uid != 0) || (status.st_mode & 0022) != 0) {
        problem_set(
            ret_problem,
            "%s could be changed by others, and a market's address stands in it; make it yours: "
            "chown and chmod go-w",
            path);
        return false;
    }
    return true;
}

static bool put_from_file(const char *path, enum setting setting, const char *value,
                          struct setting_value *ret_item, struct problem *ret_problem)
{
    const char *slash = strrchr(path, '/');
    bool relative = known[setting].is_path && value[0] != '/' && slash != NULL;
    int folder = relative ? (int)(slash - path) + 1 : 0;
    return put(ret_item->value, sizeof ret_item->value, ret_problem, "%.*s%s", folder, path,
               value) &&
           put(ret_item->origin, sizeof ret_item->origin, ret_problem, "%s", path);
}

static bool read_file(const char *path, struct settings *settings, struct problem *ret_problem)
{
    bool there = false;
    if (path == NULL || !check_owner(path, &there, ret_problem) || !there) {
        return path == NULL || (!there && ret_problem->text[0] == '\0');
    }
    uint8_t *text = NULL;
    size_t length = 0;
    if (!file_read(path, FILE_BYTES_MAX, &text, &length, ret_problem)) {
        return false;
    }
    const char *names[SETTING_COUNT];
    for (int i = 0; i < SETTING_COUNT; i++) {
        names[i] = known[i].name;
    }
    CLEANUP(yaml_close)
    struct yaml_file *file = yaml_open((const char *)text, length, path, ret_problem);
    bool ok = file != NULL;
    if (ok) {
        struct yaml_value root = yaml_root(file);
        yaml_known_keys(root, names, SETTING_COUNT);
        for (int i = 0; ok && i < SETTING_COUNT; i++) {
            const char *value = yaml_text(yaml_key(root, names[i]), SETTING_VALUE_SIZE - 1, NULL);
            ok = value == NULL ||
                 put_from_file(path, (enum setting)i, value, &settings->items[i], ret_problem);
        }
        ok = ok && yaml_finished(file, ret_problem);
    }
    free(text);
    return ok;
}

/* ---------------------------------------------------------------- layers */

static bool is_folder(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static bool defaults(const struct settings_sources *sources, struct settings *settings,
                     struct problem *ret_problem)
{
    struct setting_value *market = &settings->items[SETTING_MARKET];
    for (int i = 0; i < SETTING_COUNT; i++) {
        settings->items[i] = (struct setting_value){.origin = "default"};
    }
    bool ok =
        put(settings->items[SETTING_TIMEOUT].value, SETTING_VALUE_SIZE, ret_problem, "30s") &&
        put(settings->items[SETTING_READ_FROM].value, SETTING_VALUE_SIZE, ret_problem, "leader") &&
        put(settings->items[SETTING_COLOR].value, SETTING_VALUE_SIZE, ret_problem, "auto") &&
        put(market->value, sizeof market->value, ret_problem, "%s/" MARKET_FILE, sources->config);
    if (!ok || access(market->value, F_OK) == 0) {
        return ok && put(market->origin, sizeof market->origin, ret_problem,
                         "default: the market joined");
    }
    return put(market->value, sizeof market->value, ret_problem, "%s/market", sources->state) &&
           put(market->origin, sizeof market->origin, ret_problem,
               "default: the market of `bourse up`");
}

static bool overrides(const struct settings_sources *sources, struct settings *settings,
                      struct problem *ret_problem)
{
    for (int i = 0; i < SETTING_COUNT; i++) {
        struct setting_value *item = &settings->items[i];
        const char *variable = sources->environment(known[i].variable);
        if (sources->flags[i] != NULL && sources->flags[i][0] == '\0') {
            problem_set(ret_problem, "--%s is empty; its value is %s", known[i].name,
                        known[i].meaning);
            return false;
        }
        if (sources->flags[i] != NULL) {
            if (!put(item->value, sizeof item->value, ret_problem, "%s", sources->flags[i]) ||
                !put(item->origin, sizeof item->origin, ret_problem, "option --%s",
                     known[i].name)) {
                return false;
            }
        } else if (variable != NULL && variable[0] != '\0') {
            if (!put(item->value, sizeof item->value, ret_problem, "%s", variable) ||
                !put(item->origin, sizeof item->origin, ret_problem, "environment %s",
                     known[i].variable)) {
                return false;
            }
        }
    }
    return true;
}

/* A folder stands for its market.yaml. The key of an embedded market lies beside the file. */
static bool settle_paths(const struct settings_sources *sources, struct settings *settings,
                         struct problem *ret_problem)
{
    struct setting_value *market = &settings->items[SETTING_MARKET];
    struct setting_value *key = &settings->items[SETTING_KEY];
    char folder[SETTING_VALUE_SIZE];
    size_t length = strlen(market->value);
    bool names_file = length > 5 && strcmp(market->value + length - 5, ".yaml") == 0;
    if (is_folder(market->value) || !names_file) {
        memcpy(folder, market->value, sizeof folder);
        if (!put(market->value, sizeof market->value, ret_problem, "%s/" MARKET_FILE, folder)) {
            return false;
        }
    } else {
        const char *slash = strrchr(market->value, '/');
        (void)snprintf(folder, sizeof folder, "%.*s",
                       slash == NULL ? 1 : (int)(slash - market->value),
                       slash == NULL ? "." : market->value);
    }
    if (key->value[0] != '\0') {
        return true;
    }
    if (!put(key->value, sizeof key->value, ret_problem, "%s/" MARKET_OWNER_KEY, folder)) {
        return false;
    }
    if (access(key->value, F_OK) == 0) {
        return put(key->origin, sizeof key->origin, ret_problem,
                   "default: the key beside the market");
    }
    return put(key->value, sizeof key->value, ret_problem, "%s/consumer.key", sources->config);
}

bool settings_read_from(const char *text, struct settings_readers *ret_readers)
{
    int64_t least = 0;
    if (strcmp(text, "leader") == 0) {
        *ret_readers = (struct settings_readers){.any = false};
        return true;
    }
    if (strcmp(text, "any") != 0 && (units_count(text, &least) != UNITS_OK || least <= 0)) {
        return false;
    }
    *ret_readers = (struct settings_readers){.any = true, .least_index = (uint64_t)least};
    return true;
}

static bool check_values(const struct settings *settings, struct problem *ret_problem)
{
    const struct setting_value *timeout = &settings->items[SETTING_TIMEOUT];
    const struct setting_value *color = &settings->items[SETTING_COLOR];
    const struct setting_value *readers = &settings->items[SETTING_READ_FROM];
    struct settings_readers read_from;
    int64_t timeout_ns = 0;
    if (!settings_read_from(readers->value, &read_from)) {
        problem_set(ret_problem,
                    "read-from (%.200s): '%.60s' is neither leader, nor any, nor the number of a "
                    "command",
                    readers->origin, readers->value);
        return false;
    }
    enum units_status status = units_duration(timeout->value, &timeout_ns);
    if (status != UNITS_OK || timeout_ns < INT64_C(1000000) ||
        timeout_ns > INT64_C(86400000000000)) {
        problem_set(ret_problem, "timeout (%.200s): '%.60s' is not a duration from 1ms to 1d",
                    timeout->origin, timeout->value);
        return false;
    }
    if (strcmp(color->value, "auto") != 0 && strcmp(color->value, "always") != 0 &&
        strcmp(color->value, "never") != 0) {
        problem_set(ret_problem, "color (%.200s): '%.60s' is none of auto, always, never",
                    color->origin, color->value);
        return false;
    }
    return true;
}

bool settings_load(const struct settings_sources *sources, struct settings *ret_settings,
                   struct problem *ret_problem)
{
    ret_problem->text[0] = '\0';
    return defaults(sources, ret_settings, ret_problem) &&
           read_file(sources->system, ret_settings, ret_problem) &&
           read_file(sources->user, ret_settings, ret_problem) &&
           read_file(sources->project, ret_settings, ret_problem) &&
           overrides(sources, ret_settings, ret_problem) &&
           settle_paths(sources, ret_settings, ret_problem) &&
           check_values(ret_settings, ret_problem);
}

bool settings_folders(const char *(*environment)(const char *name), bool root, char *ret_config,
                      char *ret_state, struct problem *ret_problem)
{
    const char *home = environment("HOME");
    const char *config = environment("XDG_CONFIG_HOME");
    const char *state = environment("XDG_STATE_HOME");
    /* The XDG specification ignores relative paths. */
    bool has_config = config != NULL && config[0] == '/';
    bool has_state = state != NULL && state[0] == '/';
    if ((home == NULL || home[0] != '/') && !(has_config && (has_state || root))) {
        problem_set(ret_problem, "HOME is not set; set it, or give --market and --key, "
                                 "XDG_CONFIG_HOME and XDG_STATE_HOME");
        return false;
    }
    bool ok = has_config
                  ? put(ret_config, SETTING_VALUE_SIZE, ret_problem, "%s/bourse", config)
                  : put(ret_config, SETTING_VALUE_SIZE, ret_problem, "%s/.config/bourse", home);
    if (!ok) {
        return false;
    }
    if (has_state) {
        return put(ret_state, SETTING_VALUE_SIZE, ret_problem, "%s/bourse", state);
    }
    /* The service user must reach the folder, and cannot below root's home. */
    if (root) {
        return put(ret_state, SETTING_VALUE_SIZE, ret_problem, "/var/lib/bourse");
    }
    return put(ret_state, SETTING_VALUE_SIZE, ret_problem, "%s/.local/state/bourse", home);
}
