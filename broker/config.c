#include "broker/config.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "broker/gateway/budget.h"
#include "broker/storage/disk_reserve.h"
#include "broker/storage/etcd/succession.h"
#include "broker/storage/head.h"
#include "formats/yaml.h"
#include "protocol/identity.h"
#include "protocol/limits.h"
#include "protocol/message.h"
#include "protocol/roles.h"
#include "runtime/entropy.h"
#include "runtime/files.h"
#include "runtime/market.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DAY_MS INT64_C(86400000)
#include <unistd.h>

#define PRICE_BAND_DEFAULT (INT64_C(1000) * MICRO_PER_CREDIT)
#define RESERVE_LEAST_BYTES (INT64_C(1) << 20)
#define MONEY_MAX (INT64_C(1000000000) * MICRO_PER_CREDIT)

void config_default(struct broker_config *ret_config)
{
    *ret_config = (struct broker_config){
        .heartbeat_ms = 1000,
        .challenge_ms = DAY_MS,
        .rate = 5000,
        .rate_anonymous = 20,
        .steps = BUDGET_STEPS,
        .workers = 2,
        .snapshot_every = 16384,
        .reserve_bytes = DISK_RESERVE_BYTES,
        .blob_quota_bytes = INT64_C(64) << 30,
        .blob_size_bytes = INT64_C(64) << 30,
        .blob_retain_ms = INT64_MAX,
        .blob_retain_most_ms = INT64_MAX,
        .blob_retain_least_ms = INT64_C(600000),
        .forget_grace_ms = INT64_C(3600000),
        .limits = exchange_limits_default(),
        .genesis = {.price_band_micro = PRICE_BAND_DEFAULT},
    };
    ret_config->limits.table_key[0] = entropy_u64();
    ret_config->limits.table_key[1] = entropy_u64();
}

/* ---------------------------------------------------------------- parts */

static void read_text(struct yaml_value value, char *ret_text, size_t capacity)
{
    const char *text = yaml_text(value, capacity - 1, "");
    (void)snprintf(ret_text, capacity, "%s", text); /* yaml_text refused longer ones */
}

static bool is_port(const char *text)
{
    size_t digits = strspn(text, "0123456789");
    long port = digits >= 1 && digits <= 5 ? strtol(text, NULL, 10) : 0;
    return text[digits] == '\0' && port >= 1 && port <= UINT16_MAX;
}

/* The port of a listening endpoint may be `*`, any free port. The start finds out whether the
 * address belongs to this machine. */
static void read_endpoint(struct yaml_value value, bool listens,
                          char ret_endpoint[CONFIG_ENDPOINT_SIZE])
{
    read_text(value, ret_endpoint, CONFIG_ENDPOINT_SIZE);
    if (ret_endpoint[0] == '\0') {
        return;
    }
    const char *colon = strrchr(ret_endpoint, ':');
    if (strncmp(ret_endpoint, "tcp://", 6) != 0 || colon <= ret_endpoint + 6) {
        yaml_refuse(value,
                    "an endpoint is written tcp://ADDRESS:PORT, for example tcp://0.0.0.0:4770");
    } else if (!text_is_plain(ret_endpoint, strlen(ret_endpoint))) {
        yaml_refuse(value, "control characters do not belong in an endpoint");
    } else if (!is_port(colon + 1) && !(listens && strcmp(colon, ":*") == 0)) {
        yaml_refuse(value, "port \"%.32s\": a port is 1 to 65535", colon + 1);
    }
}

static void check_distinct(struct yaml_value value, const char *one, const char *other)
{
    const char *colon = strrchr(one, ':');
    if (one[0] != '\0' && strcmp(one, other) == 0 && colon != NULL && strcmp(colon, ":*") != 0) {
        yaml_refuse(value, "control and blobs need a port each; this one is taken by the other");
    }
}

/* Others cannot connect to an endpoint that means "every address of this machine". */
static void check_advertised(struct yaml_value root, const char *key, const char *listen,
                             const char *advertise)
{
    bool is_wildcard = strncmp(listen, "tcp://0.0.0.0:", 14) == 0 ||
                       strncmp(listen, "tcp://*:", 8) == 0 ||
                       strncmp(listen, "tcp://[::]:", 11) == 0;
    if (is_wildcard && advertise[0] == '\0') {
        yaml_refuse(
            root,
            "listening on every address needs %s: the endpoint that others connect to, for example "
            "tcp://exchange.example:4770",
            key);
    }
}

static const char *own_control(const struct broker_config *config)
{
    return config->advertise[0] != '\0' ? config->advertise : config->listen;
}

size_t config_others(const struct broker_config *config, const char *own,
                     struct contact ret_others[CONTACTS_MAX - 1])
{
    size_t count = 0;
    for (size_t i = 0; i < config->address_count && count < CONTACTS_MAX - 1; i++) {
        if (strcmp(config->addresses[i].control, own) != 0) {
            ret_others[count++] = config->addresses[i];
        }
    }
    return count;
}

/* The file may be the same on all brokers, so it may list this broker among the others. */
static void read_addresses(struct yaml_value value, struct broker_config *config)
{
    const char *own = own_control(config);
    config->address_count = market_read_addresses(value, config->addresses, CONTACTS_MAX);
    bool lists_own = false;
    for (size_t i = 0; i < config->address_count; i++) {
        lists_own = lists_own || strcmp(config->addresses[i].control, own) == 0;
    }
    if (config->address_count == CONTACTS_MAX && !lists_own) {
        yaml_refuse(value,
                    "a market has at most %d brokers, and this broker's own address is not "
                    "among the %d",
                    CONTACTS_MAX, CONTACTS_MAX);
    }
    if (config->address_count > 0 && config->listen[0] == '\0') {
        yaml_refuse(value, "other brokers have no use for a broker that others cannot reach: set "
                           "listen and blob_listen");
    }
}

static uint32_t read_roles(struct yaml_value value)
{
    uint32_t roles = 0;
    if (yaml_is_list(value, ROLE_COUNT)) {
        for (size_t i = 0; i < yaml_count(value); i++) {
            roles |= 1U << yaml_choice(yaml_item(value, i), role_names, ROLE_COUNT, 0);
        }
    }
    return roles;
}

static void read_account(struct yaml_value value, struct genesis_account *ret_account)
{
    static const char *const keys[] = {"key", "name", "roles", "credits"};
    yaml_known_keys(value, keys, sizeof keys / sizeof keys[0]);
    struct yaml_value key = yaml_required(value, "key");
    if (yaml_hex(key, ret_account->key.bytes, sizeof ret_account->key.bytes) &&
        !identity_key_valid(&ret_account->key)) {
        yaml_refuse(key, "not a valid account key; `bourse key show` prints the right one");
    }
    read_text(yaml_key(value, "name"), ret_account->name, sizeof ret_account->name);
    ret_account->roles = read_roles(yaml_required(value, "roles"));
    ret_account->credits_micro = yaml_money(yaml_key(value, "credits"), 0, MONEY_MAX, 0);
}

/* Refuses accounts that a start would refuse, or that nobody could mend after the first start. */
static void check_accounts(struct yaml_value accounts, const struct genesis *genesis)
{
    uint32_t roles = 0;
    for (uint16_t i = 0; i < genesis->account_count; i++) {
        const char *name = genesis->accounts[i].name;
        roles |= genesis->accounts[i].roles;
        if (!text_is_plain(name, strlen(name))) {
            yaml_refuse(yaml_item(accounts, i), "control characters do not belong in a name");
        }
        for (uint16_t other = 0; other < i; other++) {
            if (key32_equal(&genesis->accounts[i].key, &genesis->accounts[other].key)) {
                yaml_refuse(yaml_item(accounts, i), "an account before has the same key");
            }
        }
    }
    if ((roles & ROLE_OPERATOR) == 0) {
        yaml_refuse(accounts, "one account needs the role operator, or nobody can invite, mint or "
                              "halt, ever");
    }
}

static void read_genesis(struct yaml_value value, bool is_new, struct genesis *genesis)
{
    static const char *const keys[] = {"fee_ppm", "price_band", "accounts"};
    yaml_known_keys(value, keys, sizeof keys / sizeof keys[0]);
    genesis->fee_ppm = (uint32_t)yaml_integer(yaml_key(value, "fee_ppm"), 0, GENESIS_FEE_PPM_MAX,
                                              genesis->fee_ppm);
    genesis->price_band_micro =
        yaml_money(yaml_key(value, "price_band"), 1, MONEY_MAX, genesis->price_band_micro);
    struct yaml_value accounts = yaml_key(value, "accounts");
    if (yaml_present(accounts) && yaml_is_list(accounts, GENESIS_ACCOUNTS_MAX)) {
        for (size_t i = 0; i < yaml_count(accounts); i++) {
            read_account(yaml_item(accounts, i), &genesis->accounts[i]);
        }
        genesis->account_count = (uint16_t)yaml_count(accounts);
        if (is_new && genesis->account_count > 0) {
            check_accounts(accounts, genesis);
        }
    }
}

static void read_limits(struct yaml_value value, struct broker_config *config)
{
    static const char *const keys[] = {"rate",
                                       "rate_anonymous",
                                       "steps",
                                       "accounts",
                                       "invitations",
                                       "jobs",
                                       "asks",
                                       "leases",
                                       "subtasks",
                                       "subtasks_per_account",
                                       "jobs_per_account",
                                       "blob_quota",
                                       "blob_size",
                                       "retain",
                                       "retain_most",
                                       "retain_least",
                                       "forget_grace",
                                       "attempts",
                                       "ids_per_account",
                                       "cells_per_account",
                                       "classes_per_account"};
    yaml_known_keys(value, keys, sizeof keys / sizeof keys[0]);
    struct exchange_limits *limits = &config->limits;
    const struct {
        const char *key;
        uint32_t *field;
        int64_t most;
    } counts[] = {
        {"rate", &config->rate, 1000000},
        {"rate_anonymous", &config->rate_anonymous, 1000000},
        {"steps", &config->steps, 1000000000},
        {"accounts", &limits->accounts, 1 << 20},
        {"invitations", &limits->invitations, 1 << 20},
        {"jobs", &limits->jobs, 1 << 24},
        {"jobs_per_account", &limits->jobs_per_account, 1 << 24},
        {"asks", &limits->asks, 1 << 24},
        {"leases", &limits->leases, 1 << 24},
        {"attempts", &limits->attempts, 1 << 28},
        {"ids_per_account", &limits->ids_per_account, 1 << 24},
        {"cells_per_account", &limits->cells_per_account, 4096},
        {"classes_per_account", &limits->classes_per_account, 4096},
    };
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        *counts[i].field = (uint32_t)yaml_integer(yaml_key(value, counts[i].key), 1, counts[i].most,
                                                  *counts[i].field);
    }
    limits->subtasks = (uint64_t)yaml_integer(yaml_key(value, "subtasks"), 1, INT64_C(1) << 32,
                                              (int64_t)limits->subtasks);
    limits->subtasks_per_account = (uint64_t)yaml_integer(
        yaml_key(value, "subtasks_per_account"), 1, INT64_C(1) << 32,
        (int64_t)(limits->subtasks / 2 + limits->subtasks % 2)); /* no account has all by default */
    config->blob_quota_bytes =
        yaml_bytes(yaml_key(value, "blob_quota"), 1, INT64_MAX, config->blob_quota_bytes);
    config->blob_size_bytes =
        yaml_bytes(yaml_key(value, "blob_size"), 1, INT64_MAX, config->blob_size_bytes);
    config->blob_retain_most_ms = yaml_duration_ms(yaml_key(value, "retain_most"), 0,
                                                   LIMIT_DURATION_MS, config->blob_retain_most_ms);
    if (config->blob_retain_ms > config->blob_retain_most_ms) {
        config->blob_retain_ms = config->blob_retain_most_ms;
    }
    const int64_t most_ms = config->blob_retain_most_ms < LIMIT_DURATION_MS
                                ? config->blob_retain_most_ms
                                : LIMIT_DURATION_MS;
    config->blob_retain_ms =
        yaml_duration_ms(yaml_key(value, "retain"), 0, most_ms, config->blob_retain_ms);
    config->forget_grace_ms =
        yaml_duration_ms(yaml_key(value, "forget_grace"), LIMIT_FORGET_GRACE_MS, 30 * DAY_MS,
                         config->forget_grace_ms);
    config->blob_retain_least_ms = yaml_duration_ms(yaml_key(value, "retain_least"), 0, 30 * DAY_MS,
                                                    config->blob_retain_least_ms);
}

void config_limits_text(const struct exchange_limits *old, const struct exchange_limits *now,
                        char *ret_text, size_t size)
{
    const struct {
        const char *key;
        uint64_t old, now;
    } caps[] = {
        {"accounts", old->accounts, now->accounts},
        {"invitations", old->invitations, now->invitations},
        {"jobs", old->jobs, now->jobs},
        {"jobs_per_account", old->jobs_per_account, now->jobs_per_account},
        {"asks", old->asks, now->asks},
        {"leases", old->leases, now->leases},
        {"attempts", old->attempts, now->attempts},
        {"subtasks", old->subtasks, now->subtasks},
        {"subtasks_per_account", old->subtasks_per_account, now->subtasks_per_account},
        {"ids_per_account", old->ids_per_account, now->ids_per_account},
        {"devices_per_provider", old->devices_per_provider, now->devices_per_provider},
        {"cells_per_account", old->cells_per_account, now->cells_per_account},
        {"classes_per_account", old->classes_per_account, now->classes_per_account},
    };
    size_t length = 0;
    ret_text[0] = '\0';
    for (size_t i = 0; i < sizeof caps / sizeof caps[0] && length < size; i++) {
        if (caps[i].old != caps[i].now) {
            int written = snprintf(ret_text + length, size - length, "%s%s %" PRIu64 " -> %" PRIu64,
                                   length == 0 ? "" : ", ", caps[i].key, caps[i].old, caps[i].now);
            length += written > 0 ? (size_t)written : 0;
        }
    }
}

static void read_file_name(struct yaml_value map, const char *key, char ret_path[ETCD_PATH_SIZE])
{
    const struct yaml_value value = yaml_required(map, key);
    read_text(value, ret_path, ETCD_PATH_SIZE);
    if (ret_path[0] == '\0') {
        yaml_refuse(value, "%s is the path of a PEM file, from / or from the folder on", key);
    }
}

static void read_member(struct yaml_value value, char ret_url[ETCD_URL_SIZE])
{
    read_text(value, ret_url, ETCD_URL_SIZE);
    const char *colon = strrchr(ret_url, ':');
    if (strncmp(ret_url, "https://", 8) != 0 || colon <= ret_url + 8 || !is_port(colon + 1) ||
        !text_is_plain(ret_url, strlen(ret_url)) || strchr(ret_url + 8, '/') != NULL) {
        yaml_refuse(value, "a member of etcd is written https://HOST:PORT, for example "
                           "https://10.0.0.1:2379; there is no way without TLS");
    }
}

static void read_journal(struct yaml_value value, struct etcd_config *etcd)
{
    static const char *const keys[] = {"etcd", "ca", "certificate", "key"};
    if (!yaml_present(value)) {
        return;
    }
    yaml_known_keys(value, keys, sizeof keys / sizeof keys[0]);
    const struct yaml_value members = yaml_required(value, "etcd");
    if (yaml_is_list(members, ETCD_MEMBERS_MAX)) {
        etcd->member_count = yaml_count(members);
        for (size_t i = 0; i < etcd->member_count; i++) {
            read_member(yaml_item(members, i), etcd->members[i]);
        }
        if (etcd->member_count == 0) {
            yaml_refuse(members, "name the members of etcd, or leave `journal` out");
        }
    }
    read_file_name(value, "ca", etcd->ca);
    read_file_name(value, "certificate", etcd->certificate);
    read_file_name(value, "key", etcd->key);
}

/* The ranks of two brokers of one market must differ, which no broker can check. */
static void read_cluster(struct yaml_value value, struct broker_config *config)
{
    static const char *const keys[] = {"rank", "address", "copies"};
    if (!yaml_present(value)) {
        return;
    }
    yaml_known_keys(value, keys, sizeof keys / sizeof keys[0]);
    if (config->etcd.member_count == 0) {
        yaml_refuse(value, "brokers are a cluster by their journal: name it with journal.etcd");
    }
    config->cluster_rank =
        (unsigned)yaml_integer(yaml_required(value, "rank"), 0, SUCCESSION_RANK_MAX, 0);
    read_endpoint(yaml_key(value, "address"), false, config->cluster_address);
    const struct yaml_value copies = yaml_key(value, "copies");
    config->cluster_copies = (unsigned)yaml_integer(copies, 1, CONFIG_COPIES_MAX, 1);
    if (config->cluster_copies > 1 && config->address_count < config->cluster_copies) {
        yaml_refuse(copies, "so many brokers must be in `addresses`, where those that follow find "
                            "the blob port of the one that leads");
    }
}

static void check_origin(struct yaml_value value, const char *origin)
{
    for (const char *at = origin; *at != '\0'; at++) {
        if (*at <= ' ' || *at > '~' || *at == '+') {
            yaml_refuse(value, "an origin has no blanks, no '+' and only ASCII, for example "
                               "exchange.example/main");
            return;
        }
    }
}

/* ---------------------------------------------------------------- the whole file */

bool config_parse(const char *text, size_t length, const char *file_name, bool is_new,
                  struct broker_config *ret_config, struct problem *ret_problem)
{
    static const char *const keys[] = {
        "origin",    "listen",    "blob_listen",    "advertise", "blob_advertise",
        "heartbeat", "workers",   "snapshot_every", "reserve",   "genesis",
        "limits",    "challenge", "journal",        "addresses", "cluster"};
    CLEANUP(yaml_close) struct yaml_file *file = yaml_open(text, length, file_name, ret_problem);
    if (file == NULL) {
        return false;
    }
    config_default(ret_config);
    struct yaml_value root = yaml_root(file);
    yaml_known_keys(root, keys, sizeof keys / sizeof keys[0]);
    read_text(yaml_key(root, "origin"), ret_config->origin, sizeof ret_config->origin);
    check_origin(yaml_key(root, "origin"), ret_config->origin);
    read_endpoint(yaml_key(root, "listen"), true, ret_config->listen);
    read_endpoint(yaml_key(root, "blob_listen"), true, ret_config->blob_listen);
    read_endpoint(yaml_key(root, "advertise"), false, ret_config->advertise);
    read_endpoint(yaml_key(root, "blob_advertise"), false, ret_config->blob_advertise);
    if ((ret_config->listen[0] == '\0') != (ret_config->blob_listen[0] == '\0')) {
        yaml_refuse(root, "listen and blob_listen go together: a client needs both ports");
    }
    check_distinct(yaml_key(root, "blob_listen"), ret_config->blob_listen, ret_config->listen);
    check_distinct(yaml_key(root, "blob_advertise"), ret_config->blob_advertise,
                   ret_config->advertise);
    check_advertised(root, "advertise", ret_config->listen, ret_config->advertise);
    check_advertised(root, "blob_advertise", ret_config->blob_listen, ret_config->blob_advertise);
    read_addresses(yaml_key(root, "addresses"), ret_config);
    ret_config->heartbeat_ms =
        yaml_duration_ms(yaml_key(root, "heartbeat"), 100, LIMIT_HEARTBEAT_MS, 1000);
    ret_config->challenge_ms =
        yaml_duration_ms(yaml_key(root, "challenge"), 0, 365 * DAY_MS, DAY_MS);
    ret_config->workers =
        (unsigned)yaml_integer(yaml_key(root, "workers"), 1, 16, ret_config->workers);
    ret_config->snapshot_every =
        (uint64_t)yaml_integer(yaml_key(root, "snapshot_every"), 16, INT64_C(1) << 32,
                               (int64_t)ret_config->snapshot_every);
    ret_config->reserve_bytes =
        yaml_bytes(yaml_key(root, "reserve"), 0, INT64_C(1) << 40, ret_config->reserve_bytes);
    if (ret_config->reserve_bytes > 0 && ret_config->reserve_bytes < RESERVE_LEAST_BYTES) {
        yaml_refuse(yaml_key(root, "reserve"),
                    "a reserve below 1MiB holds no cancel on a full disk: set 1MiB or more, or 0 "
                    "for none");
    }
    read_journal(yaml_key(root, "journal"), &ret_config->etcd);
    read_cluster(yaml_key(root, "cluster"), ret_config);
    read_genesis(yaml_key(root, "genesis"), is_new, &ret_config->genesis);
    read_limits(yaml_key(root, "limits"), ret_config);
    return yaml_finished(file, ret_problem);
}

/* HEAD is made before the first entry. A damaged HEAD belongs to a market too; the start says what
 * to do. */
static bool is_new_market(const char *folder, bool *ret_is_new, struct problem *ret_problem)
{
    char path[4096];
    struct head head = {.index = 0};
    struct problem damage;
    *ret_is_new = false;
    if (snprintf(path, sizeof path, "%s/%s", folder, MARKET_HEAD) >= (int)sizeof path) {
        return true;
    }
    enum head_status status = head_read(path, &head, &damage);
    if (status == HEAD_FAILED) {
        problem_set(ret_problem, "%s", damage.text);
        return false;
    }
    *ret_is_new = status == HEAD_MISSING || (status == HEAD_OK && head.index == 0);
    return true;
}

/* A path that does not begin with / is in the market's folder. */
static bool place_file(const char *folder, char path[ETCD_PATH_SIZE], struct problem *ret_problem)
{
    char placed[ETCD_PATH_SIZE];
    if (path[0] == '\0' || path[0] == '/') {
        return true;
    }
    if (snprintf(placed, sizeof placed, "%s/%s", folder, path) >= (int)sizeof placed) {
        problem_set(ret_problem, "%.100s/%.100s: the path is too long", folder, path);
        return false;
    }
    memcpy(path, placed, sizeof placed);
    return true;
}

static bool place_files(const char *folder, struct etcd_config *etcd, struct problem *ret_problem)
{
    return place_file(folder, etcd->ca, ret_problem) &&
           place_file(folder, etcd->certificate, ret_problem) &&
           place_file(folder, etcd->key, ret_problem);
}

bool config_load(const char *folder, bool may_be_new, struct broker_config *ret_config,
                 struct problem *ret_problem)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s/%s", folder, MARKET_BROKER_CONFIG) >= (int)sizeof path) {
        problem_set(ret_problem, "%.100s...: the path of the market's folder is too long", folder);
        return false;
    }
    if (access(path, F_OK) != 0) {
        if (errno != ENOENT) {
            problem_set_unread(ret_problem, path, errno);
            return false;
        }
        config_default(ret_config);
        return true;
    }
    uint8_t *text = NULL;
    size_t length = 0;
    bool is_new = false;
    if (!is_new_market(folder, &is_new, ret_problem) ||
        !file_read(path, CONFIG_BYTES_MAX, &text, &length, ret_problem)) {
        return false;
    }
    bool good = config_parse((const char *)text, length, path, may_be_new && is_new, ret_config,
                             ret_problem);
    free(text);
    return good && place_files(folder, &ret_config->etcd, ret_problem);
}
