/* This file reads which programs and folders of the machine the owner offers to jobs. */
#include "base/text.h"
#include "formats/yaml.h"
#include "provider/config.h"
#include "provider/config_internal.h"
#include "provider/jail/system_tree.h"
#include "runtime/process.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* These tools are offered by default, as far as the host has them: they read, write and compute.
 * The jail protects the host; the list only says what jobs can count on. */
static const char *const COMMON_PROGRAMS[] = {
    "awk",       "base64",    "basename", "bash",    "bc",        "bunzip2", "bzip2",  "cat",
    "cc",        "cksum",     "cmp",      "comm",    "convert",   "cp",      "cut",    "date",
    "dc",        "dd",        "diff",     "dirname", "echo",      "env",     "expand", "expr",
    "factor",    "false",     "ffmpeg",   "find",    "flac",      "fmt",     "fold",   "gawk",
    "gcc",       "grep",      "gunzip",   "gzip",    "head",      "join",    "jq",     "lame",
    "ls",        "lz4",       "md5sum",   "mkdir",   "mv",        "nl",      "node",   "od",
    "oggenc",    "openssl",   "optipng",  "paste",   "pdftotext", "perl",    "printf", "pwd",
    "python3",   "rev",       "rm",       "ruby",    "sed",       "seq",     "sh",     "sha1sum",
    "sha256sum", "sha512sum", "shuf",     "sleep",   "sort",      "split",   "stat",   "tac",
    "tail",      "tar",       "tee",      "test",    "touch",     "tr",      "true",   "uniq",
    "unxz",      "wc",        "xargs",    "xz",      "xzcat",     "zcat",    "zstd",
};
static_assert(sizeof COMMON_PROGRAMS / sizeof COMMON_PROGRAMS[0] <= CONFIG_PROGRAMS_MAX,
              "every common program can be offered");

/* An installed library of wasmtime is looked for here. Jobs see these folders anyway. */
static const char *const WASMTIME_PLACES[] = {
    "/usr/lib/x86_64-linux-gnu/libwasmtime.so",
    "/usr/lib/aarch64-linux-gnu/libwasmtime.so",
    "/usr/lib64/libwasmtime.so",
    "/usr/lib/libwasmtime.so",
};

/* An installed library of ONNX Runtime is looked for here. */
static const char *const RUNTIME_PLACES[] = {
    "/usr/local/lib/libonnxruntime.so.1",
    "/usr/lib/x86_64-linux-gnu/libonnxruntime.so.1",
    "/usr/lib/aarch64-linux-gnu/libonnxruntime.so.1",
    "/usr/lib64/libonnxruntime.so.1",
    "/usr/lib/libonnxruntime.so.1",
    "/opt/onnxruntime/lib/libonnxruntime.so.1",
};

/* An execution provider's options and variables are so many at most. */
enum { CONFIG_SETTINGS_MAX = 16 };
#define PROVIDER_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

static bool executable_file(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISREG(facts.st_mode) && access(path, X_OK) == 0;
}

/* The jail shows the host's /usr and nothing of /etc, so a link through /etc/alternatives is
 * followed here. Other links stay, for programs that look at the name they were called by. */
static bool settle_path(const char *path, char *ret_path, size_t capacity)
{
    char target[PATH_MAX];
    char real[PATH_MAX];
    ssize_t length = readlink(path, target, sizeof target - 1);
    const char *settled = path;
    if (length > 0) {
        target[length] = '\0';
        if (strncmp(target, "/etc/", 5) == 0) {
            if (realpath(path, real) == NULL) {
                return false;
            }
            settled = real;
        }
    }
    const char *prefix = strncmp(settled, "/bin/", 5) == 0 ? "/usr" : "";
    int written = snprintf(ret_path, capacity, "%s%s", prefix, settled);
    return written > 0 && (size_t)written < capacity && strncmp(ret_path, "/usr/", 5) == 0 &&
           executable_file(ret_path);
}

static bool look_up(const char *name, char *ret_path, size_t capacity)
{
    static const char *const folders[] = {"/usr/bin", "/bin"};
    if (strchr(name, '/') != NULL || name[0] == '\0') {
        return false;
    }
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        char path[PATH_MAX];
        int written = snprintf(path, sizeof path, "%s/%s", folders[i], name);
        if (written > 0 && (size_t)written < sizeof path && executable_file(path) &&
            settle_path(path, ret_path, capacity)) {
            return true;
        }
    }
    return false;
}

static void add_program(struct config *config, const char *name, const char *path)
{
    struct config_program *program = &config->programs[config->program_count++];
    (void)snprintf(program->name, sizeof program->name, "%s", name);
    (void)snprintf(program->path, sizeof program->path, "%s", path);
}

static void offer_common(struct config *config)
{
    for (size_t i = 0; i < sizeof COMMON_PROGRAMS / sizeof COMMON_PROGRAMS[0]; i++) {
        char path[sizeof config->programs[0].path];
        if (look_up(COMMON_PROGRAMS[i], path, sizeof path)) {
            add_program(config, COMMON_PROGRAMS[i], path);
        }
    }
}

static void read_program_names(struct config *config, struct yaml_value list)
{
    if (!yaml_is_list(list, CONFIG_PROGRAMS_MAX)) {
        return;
    }
    for (size_t i = 0; i < yaml_count(list); i++) {
        struct yaml_value item = yaml_item(list, i);
        char path[sizeof config->programs[0].path];
        const char *name = config_word(item, ATTRIBUTE_TEXT_SIZE - 1, "");
        if (look_up(name, path, sizeof path)) {
            add_program(config, name, path);
        } else {
            yaml_refuse(item,
                        "no program \"%s\" in /usr/bin or /bin; install it, or take it "
                        "off the list",
                        name);
        }
    }
}

static void read_program_paths(struct config *config, struct yaml_value map)
{
    if (!yaml_is_map(map, CONFIG_PROGRAMS_MAX)) {
        return;
    }
    for (size_t i = 0; i < yaml_count(map); i++) {
        struct yaml_value item = yaml_entry(map, i);
        const char *name = yaml_entry_key(map, i);
        const char *path = config_word(item, sizeof config->programs[0].path - 1, "");
        char settled[sizeof config->programs[0].path];
        if (strlen(name) >= ATTRIBUTE_TEXT_SIZE || name[0] == '\0' || strchr(name, '/') != NULL) {
            yaml_refuse(item, "a program's name is 1 to %d bytes without a slash",
                        ATTRIBUTE_TEXT_SIZE - 1);
        } else if (!text_is_plain(name, strlen(name))) {
            yaml_refuse(item, "control characters do not belong in a program's name");
        } else if (settle_path(path, settled, sizeof settled)) {
            add_program(config, name, settled);
        } else {
            yaml_refuse(
                item, "\"%s\" is no program below /usr, the only place for programs of jobs", path);
        }
    }
}

void config_read_programs(struct config *config, struct yaml_value value)
{
    if (!yaml_present(value)) {
        offer_common(config);
    } else if (yaml_kind(value) == YAML_KIND_MAP) {
        read_program_paths(config, value);
    } else {
        read_program_names(config, value);
    }
}

/* ---------------------------------------------------------------- folders of the machine */

static bool is_visible(const struct config *config, const char *path)
{
    for (size_t i = 0; i < config->visible_count; i++) {
        if (system_is_below(path, config->visible[i])) {
            return true;
        }
    }
    return system_shows(path);
}

static bool add_visible(struct config *config, const char *path)
{
    if (is_visible(config, path)) {
        return true;
    }
    if (config->visible_count == CONFIG_VISIBLE_MAX || strlen(path) >= CONFIG_VISIBLE_SIZE) {
        return false;
    }
    (void)snprintf(config->visible[config->visible_count++], CONFIG_VISIBLE_SIZE, "%s", path);
    return true;
}

/* A plain path has no empty part, no "." and no "..". */
static bool is_plain_path(const char *path)
{
    for (const char *at = path; *at != '\0';) {
        const size_t length = strcspn(at + 1, "/");
        if (*at != '/' || length == 0 || (length == 1 && at[1] == '.') ||
            (length == 2 && at[1] == '.' && at[2] == '.')) {
            return false;
        }
        at += 1 + length;
    }
    return path[0] == '/';
}

void config_read_visible(struct config *config, struct yaml_value list)
{
    if (!yaml_present(list) || !yaml_is_list(list, CONFIG_VISIBLE_MAX)) {
        return;
    }
    for (size_t i = 0; i < yaml_count(list); i++) {
        struct yaml_value item = yaml_item(list, i);
        const char *path = yaml_text(item, CONFIG_VISIBLE_SIZE - 1, "");
        struct stat facts;
        if (!is_plain_path(path) ||
            (strncmp(path, "/usr/", 5) != 0 && strncmp(path, "/opt/", 5) != 0)) {
            yaml_refuse(item,
                        "\"%s\" is no folder below /usr or /opt, written without a trailing slash",
                        path);
        } else if (stat(path, &facts) != 0 || !S_ISDIR(facts.st_mode)) {
            yaml_refuse(item, "no folder \"%s\" on this machine; make it, or take it off the list",
                        path);
        } else {
            (void)add_visible(config, path); /* the list fits the room there is */
        }
    }
}

/* Makes an offered program visible with its surroundings. A program in /usr/local makes all of
 * /usr/local visible, where its libraries are; another makes its folder visible. */
static void show_program(struct config *config, const char *path, struct yaml_value value)
{
    char folder[CONFIG_VISIBLE_SIZE];
    const char *slash = strrchr(path, '/');
    if (is_visible(config, path)) {
        return;
    }
    if (system_is_below(path, "/usr/local")) {
        (void)snprintf(folder, sizeof folder, "/usr/local");
    } else {
        (void)snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
    }
    if (strcmp(folder, "/usr") == 0 || !add_visible(config, folder)) {
        yaml_refuse(value,
                    "jobs do not see \"%s\"; name a folder around it under `visible`, which has %d "
                    "at most",
                    path, CONFIG_VISIBLE_MAX);
    }
}

void config_show_programs(struct config *config, struct yaml_value value)
{
    for (size_t i = 0; i < config->program_count; i++) {
        char real[PATH_MAX];
        const char *path = config->programs[i].path;
        show_program(config, path, value);
        if (realpath(path, real) != NULL && strncmp(real, "/usr/", 5) == 0) {
            show_program(config, real, value); /* the link's target must be visible too */
        }
    }
}

void config_visible(const struct config *config, const char *ret_paths[CONFIG_VISIBLE_MAX + 1])
{
    for (size_t i = 0; i < config->visible_count; i++) {
        ret_paths[i] = config->visible[i];
    }
    ret_paths[config->visible_count] = NULL;
}

/* ---------------------------------------------------------------- the engine of modules */

static bool is_library(const char *path)
{
    struct stat facts;
    return is_plain_path(path) &&
           (strncmp(path, "/usr/", 5) == 0 || strncmp(path, "/opt/", 5) == 0) &&
           stat(path, &facts) == 0 && S_ISREG(facts.st_mode);
}

/* Takes an installed Node.js, else an installed library of wasmtime. */
static void find_engine(struct config *config)
{
    if (look_up("node", config->wasm_engine, sizeof config->wasm_engine)) {
        return;
    }
    config->wasm_engine[0] = '\0';
    for (size_t i = 0; i < sizeof WASMTIME_PLACES / sizeof WASMTIME_PLACES[0]; i++) {
        if (is_library(WASMTIME_PLACES[i])) {
            (void)snprintf(config->wasm_engine, sizeof config->wasm_engine, "%s",
                           WASMTIME_PLACES[i]);
            config->wasm_is_library = true;
            return;
        }
    }
}

static void read_engine(struct config *config, struct yaml_value engine)
{
    const char *path = config_word(engine, sizeof config->wasm_engine - 1, "");
    if (settle_path(path, config->wasm_engine, sizeof config->wasm_engine)) {
        config->names_wasm = true;
        show_program(config, config->wasm_engine, engine);
    } else {
        yaml_refuse(engine, "\"%s\" is no program below /usr, the only place for engines", path);
    }
}

static void read_library(struct config *config, struct yaml_value library)
{
    const char *path = config_word(library, sizeof config->wasm_engine - 1, "");
    if (is_library(path)) {
        (void)snprintf(config->wasm_engine, sizeof config->wasm_engine, "%s", path);
        config->wasm_is_library = true;
        config->names_wasm = true;
        show_program(config, path, library);
    } else {
        yaml_refuse(library,
                    "\"%s\" is no file below /usr or /opt, where wasmtime's library must be", path);
    }
}

void config_read_wasm(struct config *config, struct yaml_value value)
{
    config->has_wasm = true;
    config->wasm_is_library = false;
    if (!yaml_present(value)) {
        find_engine(config);
        return;
    }
    if (yaml_kind(value) == YAML_KIND_TEXT) {
        config->has_wasm = false;
        if (strcmp(yaml_text(value, sizeof config->wasm_engine, ""), "false") != 0) {
            yaml_refuse(value, "is false, or names an engine, as in {engine: /usr/bin/node}; "
                               "without the key, node of /usr/bin is taken");
        }
        return;
    }
    config_known_keys(value, CONFIG_MAP_WASM);
    struct yaml_value library = yaml_key(value, "wasmtime");
    if (!yaml_present(library)) {
        read_engine(config, yaml_required(value, "engine"));
    } else if (yaml_present(yaml_key(value, "engine"))) {
        yaml_refuse(library, "stands beside `engine`, and one engine runs all modules; take one "
                             "of the two off");
    } else {
        read_library(config, library);
    }
}

/* ---------------------------------------------------------------- what computes models */

static bool is_regular_file(const char *path)
{
    struct stat facts;
    return path[0] == '/' && stat(path, &facts) == 0 && S_ISREG(facts.st_mode);
}

/* Takes the file that the environment names, else an installed library, else one beside our own
 * programs. A variable that names no file counts for nothing but itself: the owner meant it. */
static void find_runtime(struct config *config)
{
    char own[PATH_MAX + 32];
    const char *named = getenv(CONFIG_ONNXRUNTIME);
    const char *found = named != NULL && named[0] != '\0' ? named : NULL;
    for (size_t i = 0; found == NULL && i < sizeof RUNTIME_PLACES / sizeof RUNTIME_PLACES[0]; i++) {
        found = is_regular_file(RUNTIME_PLACES[i]) ? RUNTIME_PLACES[i] : NULL;
    }
    if (found == NULL && process_helper("libonnxruntime.so.1", own, sizeof own)) {
        found = own;
    }
    if (found != NULL && strlen(found) < sizeof config->onnx_library) {
        (void)snprintf(config->onnx_library, sizeof config->onnx_library, "%s", found);
    }
}

void config_read_onnx(struct config *config, struct yaml_value value)
{
    config->has_onnx = true;
    if (!yaml_present(value)) {
        find_runtime(config);
        return;
    }
    if (yaml_kind(value) == YAML_KIND_TEXT) {
        config->has_onnx = false;
        if (strcmp(yaml_text(value, sizeof config->onnx_library, ""), "false") != 0) {
            yaml_refuse(value, "is false, or names ONNX Runtime's library, as in {library: "
                               "/opt/onnxruntime/lib/libonnxruntime.so.1}");
        }
        return;
    }
    config_known_keys(value, CONFIG_MAP_ONNX);
    struct yaml_value library = yaml_required(value, "library");
    const char *path = config_word(library, sizeof config->onnx_library - 1, "");
    if (strcmp(path, "none") == 0) {
        config->names_onnx = true;
    } else if (is_regular_file(path)) {
        (void)snprintf(config->onnx_library, sizeof config->onnx_library, "%s", path);
        config->names_onnx = true;
    } else {
        yaml_refuse(library,
                    "\"%s\" is no file with an absolute path, as ONNX Runtime's library is", path);
    }
}

/* ---------------------------------------------------------------- providers of ONNX Runtime */

/* Appends one line for bourse-onnx. */
static void add_setting(struct model_provider *provider, struct yaml_value value, const char *word,
                        const char *name, const char *text)
{
    const size_t used = strlen(provider->settings);
    const int written = snprintf(provider->settings + used, sizeof provider->settings - used,
                                 "%s %s%s%s\n", word, name, name[0] != '\0' ? "=" : "", text);
    if (written < 0 || used + (size_t)written >= sizeof provider->settings) {
        provider->settings[used] = '\0';
        yaml_refuse(value, "the settings of the provider are longer than %d bytes",
                    MODEL_SETTINGS_SIZE - 1);
    }
}

static bool is_setting_name(const char *name)
{
    return name[0] != '\0' && strchr(name, '=') == NULL && text_is_plain(name, strlen(name));
}

static void read_settings(struct model_provider *provider, struct yaml_value map, const char *word)
{
    if (!yaml_present(map) || !yaml_is_map(map, CONFIG_SETTINGS_MAX)) {
        return;
    }
    for (size_t i = 0; i < yaml_count(map); i++) {
        struct yaml_value item = yaml_entry(map, i);
        const char *name = yaml_entry_key(map, i);
        if (!is_setting_name(name)) {
            yaml_refuse(item, "a name is printable, without \"=\"");
        } else {
            add_setting(provider, item, word, name,
                        config_word(item, sizeof provider->settings - 1, ""));
        }
    }
}

static void read_provider_library(struct config *config, struct model_provider *provider,
                                  struct yaml_value library)
{
    const char *path = config_word(library, CONFIG_VISIBLE_SIZE - 1, "");
    if (is_library(path)) {
        add_setting(provider, library, "library", "", path);
        show_program(config, path, library);
    } else {
        yaml_refuse(library,
                    "\"%s\" is no file below /usr or /opt, where a provider's library must be",
                    path);
    }
}

void config_read_provider(struct config *config, struct yaml_value item,
                          struct model_provider *ret_provider)
{
    static const char *const others[] = {"simulate", "opencl", "cuda"};
    static const char *const needs[] = {"library", "options", "environment"};
    struct yaml_value value = yaml_key(item, "onnx");
    size_t count = 0;
    *ret_provider = (struct model_provider){.node_count = 0};
    for (size_t i = 0; !yaml_present(value) && i < sizeof needs / sizeof needs[0]; i++) {
        if (yaml_present(yaml_key(item, needs[i]))) {
            yaml_refuse(yaml_key(item, needs[i]),
                        "goes with a provider of ONNX Runtime: name it with `onnx`");
        }
    }
    if (!yaml_present(value)) {
        return;
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (yaml_present(yaml_key(item, others[i]))) {
            yaml_refuse(value, "does not go with %s: a device is reached in one way", others[i]);
        }
    }
    for (size_t i = 0; i < config->device_count; i++) {
        count += config->devices[i].provider.name[0] != '\0';
    }
    if (count == MODEL_DEVICES_MAX) {
        yaml_refuse(value, "more than %d devices with a provider of ONNX Runtime",
                    MODEL_DEVICES_MAX);
    }
    const char *name = config_word(value, sizeof ret_provider->name - 1, "");
    if (name[0] == '\0' || strspn(name, PROVIDER_LETTERS) != strlen(name)) {
        yaml_refuse(value, "an execution provider's name is of letters and digits, as in WebGPU");
    }
    if (strcmp(model_device_kind(name), "cpu") == 0 && !yaml_present(yaml_key(item, "library"))) {
        yaml_refuse(value, "processor cores compute models without an entry of their own");
    }
    (void)snprintf(ret_provider->name, sizeof ret_provider->name, "%s", name);
    add_setting(ret_provider, value, "provider", "", name);
    if (yaml_present(yaml_key(item, "library"))) {
        read_provider_library(config, ret_provider, yaml_key(item, "library"));
    }
    read_settings(ret_provider, yaml_key(item, "options"), "option");
    read_settings(ret_provider, yaml_key(item, "environment"), "environment");
    ret_provider->names_nodes = yaml_present(yaml_key(item, "nodes"));
    ret_provider->node_count = config_read_nodes(yaml_key(item, "nodes"), ret_provider->nodes);
}

const struct config_program *config_program(const struct config *config, const char *name)
{
    for (size_t i = 0; i < config->program_count; i++) {
        if (strcmp(config->programs[i].name, name) == 0 ||
            strcmp(config->programs[i].path, name) == 0) {
            return &config->programs[i];
        }
    }
    return NULL;
}
