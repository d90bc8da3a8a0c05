#include "runtime/market.h"

#include "base/cleanup.h"
#include "base/text.h"
#include "formats/yaml.h"
#include "protocol/route/endpoint.h"
#include "runtime/files.h"
#include "runtime/keyfile.h"

#include <assert.h>
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MARKET_FILE_BYTES = 8 << 10 };

static void free_bytes(uint8_t **self)
{
    free(*self);
}

/* ---- market.yaml ---- */

static void copy_text(struct yaml_value value, char *ret_text, size_t capacity)
{
    (void)snprintf(ret_text, capacity, "%s", yaml_text(value, capacity - 1, ""));
}

static void read_tcp(struct yaml_value value, char ret_endpoint[LIMIT_ENDPOINT_BYTES + 1])
{
    copy_text(value, ret_endpoint, LIMIT_ENDPOINT_BYTES + 1);
    if (!endpoint_is_tcp(ret_endpoint, strlen(ret_endpoint))) {
        yaml_refuse(value, "an address of another broker is written tcp://HOST:PORT, for example "
                           "tcp://b.exchange.example:4770");
    }
}

/* The own broker's address may be a path on this machine, too. */
static void read_own(struct yaml_value value, char ret_endpoint[LIMIT_ENDPOINT_BYTES + 1])
{
    copy_text(value, ret_endpoint, LIMIT_ENDPOINT_BYTES + 1);
    const bool is_path = strncmp(ret_endpoint, "ipc://", 6) == 0 && ret_endpoint[6] != '\0';
    if (!is_path && !endpoint_is_tcp(ret_endpoint, strlen(ret_endpoint))) {
        yaml_refuse(value, "a broker's address is written tcp://HOST:PORT, with a port of 1 to "
                           "65535, or ipc://PATH");
    }
}

size_t market_read_addresses(struct yaml_value list, struct contact *ret_addresses, size_t most)
{
    static const char *const keys[] = {"control", "blobs"};
    if (!yaml_present(list) || !yaml_is_list(list, most)) {
        return 0;
    }
    const size_t count = yaml_count(list);
    for (size_t i = 0; i < count; i++) {
        const struct yaml_value item = yaml_item(list, i);
        yaml_known_keys(item, keys, sizeof keys / sizeof keys[0]);
        read_tcp(yaml_required(item, "control"), ret_addresses[i].control);
        read_tcp(yaml_required(item, "blobs"), ret_addresses[i].blobs);
        for (size_t other = 0; other < i; other++) {
            if (strcmp(ret_addresses[i].control, ret_addresses[other].control) == 0) {
                yaml_refuse(item, "an address before has the same control port");
            }
        }
    }
    return count;
}

size_t market_addresses(const struct market *market, struct contact ret_addresses[CONTACTS_MAX])
{
    memcpy(ret_addresses[0].control, market->control, sizeof market->control);
    memcpy(ret_addresses[0].blobs, market->blobs, sizeof market->blobs);
    for (size_t i = 0; i < market->other_count; i++) {
        ret_addresses[1 + i] = market->others[i];
    }
    return 1 + market->other_count;
}

static void read_fields(struct yaml_value root, struct market *ret_market)
{
    static const char *const keys[] = {"control", "blobs",   "server_key", "cluster",
                                       "origin",  "log_key", "pid",        "addresses"};
    yaml_known_keys(root, keys, sizeof keys / sizeof keys[0]);
    read_own(yaml_required(root, "control"), ret_market->control);
    read_own(yaml_required(root, "blobs"), ret_market->blobs);
    copy_text(yaml_required(root, "origin"), ret_market->origin, sizeof ret_market->origin);
    /* The file keeps the refusals. */
    (void)yaml_hex(yaml_required(root, "server_key"), ret_market->server.bytes, 32);
    (void)yaml_hex(yaml_required(root, "cluster"), ret_market->cluster.bytes, 16);
    (void)yaml_hex(yaml_required(root, "log_key"), ret_market->log_key.bytes, 32);
    ret_market->other_count =
        market_read_addresses(yaml_key(root, "addresses"), ret_market->others, CONTACTS_MAX - 1);
    ret_market->pid = (long)yaml_integer(yaml_key(root, "pid"), 0, INT_MAX, 0);
}

bool market_read(const char *path, struct market *ret_market, struct problem *ret_problem)
{
    CLEANUP(free_bytes) uint8_t *bytes = NULL;
    size_t length;
    if (!file_read_trusted(path, MARKET_FILE_BYTES, &bytes, &length, ret_problem)) {
        return false;
    }
    CLEANUP(yaml_close)
    struct yaml_file *file = yaml_open((const char *)bytes, length, path, ret_problem);
    if (file == NULL) {
        return false;
    }
    struct market market = {0};
    read_fields(yaml_root(file), &market);
    if (!yaml_finished(file, ret_problem)) {
        return false;
    }
    *ret_market = market;
    return true;
}

/* Writes the other brokers, if there are any. The endpoints need no quotes inside quotes. */
static int write_others(const struct market *market, char *ret_text, size_t capacity)
{
    size_t length = 0;
    for (size_t i = 0; i < market->other_count; i++) {
        const struct contact *other = &market->others[i];
        assert(endpoint_is_tcp(other->control, strlen(other->control)));
        assert(endpoint_is_tcp(other->blobs, strlen(other->blobs)));
        const int written = snprintf(ret_text + length, capacity - length,
                                     "%s  - {control: \"%s\", blobs: \"%s\"}\n",
                                     i == 0 ? "addresses:\n" : "", other->control, other->blobs);
        assert(written > 0 && (size_t)written < capacity - length); /* MARKET_FILE_BYTES suffice */
        length += (size_t)written;
    }
    return (int)length;
}

bool market_write(const char *path, const struct market *market, struct problem *ret_problem)
{
    char control[4 * sizeof market->control];
    char blobs[4 * sizeof market->blobs];
    char origin[4 * sizeof market->origin];
    if (!yaml_quote(market->control, control, sizeof control) ||
        !yaml_quote(market->blobs, blobs, sizeof blobs) ||
        !yaml_quote(market->origin, origin, sizeof origin)) {
        problem_set(ret_problem, "%s: an endpoint or the origin is not UTF-8 text", path);
        return false;
    }
    char server[65];
    char cluster[33];
    char log_key[65];
    text_hex(market->server.bytes, 32, server);
    text_hex(market->cluster.bytes, 16, cluster);
    text_hex(market->log_key.bytes, 32, log_key);

    char text[MARKET_FILE_BYTES];
    int length = snprintf(
        text, sizeof text,
        "# Written by the broker when it is ready; read by the programs that use this market.\n"
        "control: %s\n"
        "blobs: %s\n"
        "server_key: \"%s\"\n"
        "cluster: \"%s\"\n"
        "origin: %s\n"
        "log_key: \"%s\"\n"
        "pid: %ld\n",
        control, blobs, server, cluster, origin, log_key, market->pid);
    assert(length > 0 && (size_t)length < sizeof text);
    length += write_others(market, text + length, sizeof text - (size_t)length);
    return file_write(path, text, (size_t)length, 0640, ret_problem);
}

/* ---- joining ---- */

static bool staged_path(const char *path, char ret_path[PATH_MAX], struct problem *ret_problem)
{
    const int length = snprintf(ret_path, PATH_MAX, "%s.joining", path);
    if (length < 0 || length >= PATH_MAX) {
        problem_set(ret_problem, "%.100s...: the path is too long", path);
        return false;
    }
    return true;
}

bool market_is_of_broker(const char *path, struct problem *ret_problem)
{
    /* The first two stay when the broker stops; the others when a start has not come so far. */
    static const char *const names[] = {MARKET_HEAD, MARKET_BROKER_KEY, MARKET_LOCK,
                                        MARKET_DATABASE};
    const char *slash = strrchr(path, '/');
    const int length = slash == NULL ? 0 : (int)(slash - path);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char file[PATH_MAX];
        const int size = slash == NULL
                             ? snprintf(file, sizeof file, "%s", names[i])
                             : snprintf(file, sizeof file, "%.*s/%s", length, path, names[i]);
        if (size < (int)sizeof file && access(file, F_OK) == 0) {
            problem_set(ret_problem,
                        "%.*s is the folder of a broker, which writes its own " MARKET_FILE
                        " there; choose another folder",
                        slash == NULL ? 1 : length, slash == NULL ? "." : path);
            return true;
        }
    }
    return false;
}

bool market_stage(const char *path, const struct market *market, struct problem *ret_problem)
{
    char staged[PATH_MAX];
    return !market_is_of_broker(path, ret_problem) && staged_path(path, staged, ret_problem) &&
           market_write(staged, market, ret_problem);
}

bool market_settle(const char *path, struct problem *ret_problem)
{
    char staged[PATH_MAX];
    char folder[PATH_MAX];
    if (!staged_path(path, staged, ret_problem)) {
        return false;
    }
    (void)snprintf(folder, sizeof folder, "%s", path); /* shorter than `staged`, which fits */
    if (rename(staged, path) != 0) {
        problem_set(ret_problem, "%s cannot become %s: %s", staged, path, strerror(errno));
        return false;
    }
    return file_sync_folder(dirname(folder), ret_problem);
}

void market_unstage(const char *path)
{
    char staged[PATH_MAX];
    struct problem problem;
    if (staged_path(path, staged, &problem)) {
        (void)unlink(staged); /* there may be none */
    }
}

/* ---------------------------------------------------------------- keys */

enum { PUBLIC_BYTES = 65 }; /* 64 hex digits and a newline */

bool market_key_is_credential(const char *name)
{
    return keyfile_has_credential(name);
}

static bool path_in(const char *folder, const char *name, char ret_path[PATH_MAX],
                    struct problem *ret_problem)
{
    const int length = snprintf(ret_path, PATH_MAX, "%s/%s", folder, name);
    if (length < 0 || length >= PATH_MAX) {
        problem_set(ret_problem, "the path of %s is too long", name);
        return false;
    }
    return true;
}

static bool find_file(const char *path, bool *ret_found, struct problem *ret_problem)
{
    struct stat status;
    *ret_found = lstat(path, &status) == 0;
    if (!*ret_found && errno != ENOENT) {
        problem_set_unseen(ret_problem, path, " cannot be looked at", errno);
        return false;
    }
    return true;
}

static bool open_credential(const char *name, const char *path, bool found, bool may_make,
                            struct identity **ret_key, unsigned *ret_notes,
                            struct problem *ret_problem)
{
    if (found) {
        problem_set(ret_problem,
                    "%s is there, and the service has a credential of that name, too: remove the "
                    "one that is not this market's",
                    path);
        return false;
    }
    const bool is_of_log = strcmp(name, MARKET_LOG_KEY) == 0;
    if (is_of_log && may_make) {
        problem_set(ret_problem,
                    "there is no market beside %s yet, and a credential of that name founds none: "
                    "start once without the credential, then move the key",
                    path);
        return false;
    }
    if (!keyfile_load_credential(name, ret_key, ret_notes, ret_problem)) {
        return false;
    }
    if (is_of_log && (*ret_notes & KEYFILE_SIGNED) == 0) {
        identity_destroy(ret_key);
        problem_set(ret_problem,
                    "the credential %s lacks the line \"signed\", which the broker cannot write "
                    "there: start once with the file %s, then move that file",
                    name, path);
        return false;
    }
    return true;
}

bool market_key_open(const char *folder, const char *name, bool may_make, struct identity **ret_key,
                     unsigned *ret_notes, struct problem *ret_problem)
{
    char path[PATH_MAX];
    bool found = false;
    if (!path_in(folder, name, path, ret_problem) || !find_file(path, &found, ret_problem)) {
        return false;
    }
    if (market_key_is_credential(name)) {
        return open_credential(name, path, found, may_make, ret_key, ret_notes, ret_problem);
    }
    if (found) {
        return keyfile_load_noted(path, ret_key, ret_notes, ret_problem);
    }
    if (!may_make) {
        problem_set(ret_problem, "%s is missing beside %s: put it back, no other will do", path,
                    MARKET_DATABASE);
        return false;
    }
    return keyfile_create(path, ret_key, ret_problem);
}

/* Sets the path of the file that stands for a key elsewhere: `log.public` for `log.key`. */
static bool public_path(const char *folder, const char *name, char ret_path[PATH_MAX],
                        struct problem *ret_problem)
{
    char told[32] = "";
    const char *end = strchr(name, '.');
    const size_t length = end == NULL ? strlen(name) : (size_t)(end - name);
    assert(length + sizeof MARKET_KEY_PUBLIC <= sizeof told);
    memcpy(told, name, length);
    memcpy(told + length, MARKET_KEY_PUBLIC, sizeof MARKET_KEY_PUBLIC);
    return path_in(folder, told, ret_path, ret_problem);
}

bool market_key_is_elsewhere(const char *folder, const char *name)
{
    char path[PATH_MAX];
    struct problem problem;
    return public_path(folder, name, path, &problem) && access(path, F_OK) == 0;
}

/* Returns true when the file has these bytes already: most starts change nothing. */
static bool has_bytes(const char *path, const char text[PUBLIC_BYTES])
{
    uint8_t *bytes = NULL;
    size_t length = 0;
    struct problem unread;
    const bool same = file_read(path, PUBLIC_BYTES, &bytes, &length, &unread) &&
                      length == PUBLIC_BYTES && memcmp(bytes, text, length) == 0;
    free(bytes);
    return same;
}

bool market_key_tell(const char *folder, const char *name, const struct key32 *key,
                     struct problem *ret_problem)
{
    char path[PATH_MAX];
    char text[PUBLIC_BYTES + 1];
    if (!public_path(folder, name, path, ret_problem)) {
        return false;
    }
    if (!market_key_is_credential(name)) {
        (void)unlink(path); /* a file that stays is only read where the key file is missing */
        return true;
    }
    text_hex(key->bytes, sizeof key->bytes, text);
    text[PUBLIC_BYTES - 1] = '\n';
    return has_bytes(path, text) || file_write(path, text, PUBLIC_BYTES, 0600, ret_problem);
}
