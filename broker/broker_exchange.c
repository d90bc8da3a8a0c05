/* A start rebuilds the exchange from its journal here, or founds a market. */
#include "broker/broker_internal.h"

#include "broker/core/translate.h"
#include "broker/rules_known.h"
#include "broker/storage/balance_check.h"
#include "broker/storage/etcd/etcd_mark.h"
#include "broker/storage/history_mark.h"
#include "broker/storage/replay.h"
#include "broker/storage/snapshot/snapshots.h"
#include "runtime/clock.h"
#include "runtime/log.h"
#include "runtime/market.h"

#include <inttypes.h>
#include <limits.h>
#include <sys/signalfd.h>
#include <sys/un.h>

enum { ETCD_TRIES = 5 }; /* of an entry at the start; each has the bound of an append */

struct exchange *broker_rebuild(struct storage *store, const struct broker_config *config,
                                struct problem *ret_problem)
{
    char folder[PATH_MAX];
    struct exchange *exchange = NULL;
    struct snapshot_mark base = {0};
    if (!folder_path(store->folder, MARKET_SNAPSHOTS, folder, sizeof folder, ret_problem)) {
        return NULL;
    }
    sqlite3 *database = ledger_store_database(store->ledger);
    const struct snapshot_search search = {.folder = folder,
                                           .limits = &config->limits,
                                           .journal = database,
                                           .last_entry = store->last.index,
                                           .last_command = store->last.next_command - 1,
                                           .cluster = &store->genesis.cluster,
                                           .adopts = store->head == NULL};
    switch (snapshot_newest(&search, &exchange, &base, ret_problem)) {
    case SNAPSHOT_FOUND:
        break;
    case SNAPSHOT_NONE:
        exchange = exchange_create(&config->limits);
        break;
    case SNAPSHOT_BEYOND:
    case SNAPSHOT_FORKED:
    case SNAPSHOT_UNREAD:
        return NULL;
    }
    if (history_mark_look(store->folder, database, search.adopts, ret_problem) != HISTORY_FITS) {
        exchange_destroy(&exchange);
        return NULL;
    }
    if (exchange == NULL) {
        problem_set(ret_problem, "out of memory for the exchange");
        return NULL;
    }
    bool good = base.entry == store->last.index ||
                snapshots_apply(database, exchange, base.entry + 1, store->last.index, ret_problem);
    if (good && exchange_index(exchange) + 1 != store->last.next_command) {
        problem_set(ret_problem, "the journal ends at command %" PRIu64 ", its replay at %" PRIu64,
                    store->last.next_command - 1, exchange_index(exchange));
        good = false;
    }
    if (good && !balance_check(database, exchange, ret_problem)) {
        storage_advise(ret_problem);
        good = false;
    }
    if (good) {
        log_info("replayed %" PRIu64 " entries of the journal after entry %" PRIu64 "%s",
                 store->last.index - base.entry, base.entry,
                 base.entry == 0 ? "" : ", where a snapshot was");
    } else {
        exchange_destroy(&exchange);
    }
    return exchange;
}

/* The reserve is there for a start on a full disk too, not only for a commit. */
static bool may_try_again(const struct broker *broker)
{
    if (!broker->store.is_full || !disk_reserve_give_up(broker->folder)) {
        return false;
    }
    log_warning("the disk is full: the reserve is given up to start");
    return true;
}

static bool lead(struct broker *broker, struct problem *ret_problem)
{
    const int64_t log_ns = exchange_log_time_ns(broker->exchange);
    return storage_lead(&broker->store, log_ns, ret_problem) ||
           (may_try_again(broker) && storage_lead(&broker->store, log_ns, ret_problem));
}

bool broker_open_storage(struct broker *broker, bool adopt, bool *ret_new,
                         struct problem *ret_problem)
{
    if (storage_open(broker->folder, &broker->config, adopt, &broker->store, ret_new,
                     ret_problem)) {
        return true;
    }
    if (!may_try_again(broker)) {
        return false;
    }
    storage_close(&broker->store);
    return storage_open(broker->folder, &broker->config, adopt, &broker->store, ret_new,
                        ret_problem);
}

/* The broker itself commands this, before any thread or socket exists. */
struct own_command {
    enum entry_command_kind kind;
    const char *name; /* for messages, such as "the genesis" */
    int64_t log_time_ns;
    const uint8_t *payload;
    uint32_t payload_length;
};

/* Commits a group before any thread exists that could wait for space, or for etcd. */
static bool commit_at_start(struct broker *broker, const struct group *group,
                            struct problem *ret_problem)
{
    enum storage_status status = STORAGE_AWAY;
    for (unsigned i = 0; i < ETCD_TRIES && status == STORAGE_AWAY; i++) {
        status = storage_commit(&broker->store, group);
    }
    if (status == STORAGE_FULL && disk_reserve_give_up(broker->folder)) {
        status = storage_commit(&broker->store, group);
    }
    if (status != STORAGE_OK) {
        problem_set(ret_problem, "%s",
                    status == STORAGE_FULL
                        ? "the disk is full"
                        : "the journal on etcd does not answer: start again when it does");
    }
    return status == STORAGE_OK;
}

static bool apply_own(struct broker *broker, const struct own_command *own,
                      const struct translation *translation, struct group *group,
                      struct problem *ret_problem)
{
    const struct exchange_command *command = &translation->command;
    if (command->type == EXCHANGE_LIMITS) {
        storage_note_limits(group, broker->exchange, &command->set_limits);
    }
    if (exchange_step(broker->exchange, command, &group->effects) == EXCHANGE_OK) {
        return true;
    }
    problem_set(ret_problem, "the exchange refused %s: check fee, price band and accounts",
                own->name);
    return false;
}

/* Applies and commits one command of the broker itself. */
static bool commit_own(struct broker *broker, const struct own_command *own,
                       struct problem *ret_problem)
{
    struct group *group = group_create();
    struct translation translation = {0};
    const struct entry_command entry = {.log_time_ns = own->log_time_ns,
                                        .account = EXCHANGE_NO_ACCOUNT,
                                        .kind = own->kind,
                                        .payload = own->payload,
                                        .payload_length = own->payload_length};
    const struct id128 cluster = exchange_cluster(broker->exchange);
    const uint64_t index = exchange_index(broker->exchange) + 1;
    bool good = false;
    if (group == NULL) {
        problem_set(ret_problem, "out of memory");
        return false;
    }
    if (!translate_entry(&entry, index, &cluster, &translation)) {
        problem_set(ret_problem, "%s is not valid", own->name);
    } else if (apply_own(broker, own, &translation, group, ret_problem)) {
        group->first_command = index;
        group->command_count = 1;
        group->commands[0].entry = entry;
        good = commit_at_start(broker, group, ret_problem);
    }
    translation_fini(&translation);
    group_destroy(&group);
    return good;
}

static bool commit_genesis(struct broker *broker, struct problem *ret_problem)
{
    uint8_t payload[GENESIS_BYTES_MAX];
    const size_t length = storage_genesis(&broker->store, payload, sizeof payload);
    return commit_own(broker,
                      &(struct own_command){ENTRY_GENESIS, "the genesis", clock_wall_ns(), payload,
                                            (uint32_t)length},
                      ret_problem);
}

/* The limits stand in an entry of their own, in one transaction with their act. */
static bool commit_limits(struct broker *broker, const struct exchange_set_limits *set,
                          const char *name, struct problem *ret_problem)
{
    uint8_t payload[TRANSLATE_LIMITS_BYTES];
    if (exchange_holds_limits(broker->exchange, set)) {
        return true;
    }
    translate_limits(set, payload);
    return commit_own(broker,
                      &(struct own_command){ENTRY_LIMITS, name,
                                            exchange_log_time_ns(broker->exchange), payload,
                                            sizeof payload},
                      ret_problem);
}

/* Returns the rules at the start: those in force, the newest ones in a new market, or the oldest
 * known ones when this program skips those in force (check_rules). */
static uint32_t rules_at_start(const struct broker *broker)
{
    const uint32_t rules = exchange_rules(broker->exchange);
    const struct rules_known known = rules_known();
    return rules == 0 ? known.last : rules < known.first ? known.first : rules;
}

/* Caps and rules are part of the journal's state. If broker.yaml has other caps than the exchange,
 * an entry sets them from here on. */
static bool commit_config(struct broker *broker, struct problem *ret_problem)
{
    const struct exchange_set_limits set = {.rules = rules_at_start(broker),
                                            .limits = broker->config.limits};
    return commit_limits(broker, &set, "the limits of broker.yaml", ret_problem);
}

/* Takes the newest rules, one number after the other. One of several brokers waits until the others
 * know them, and its core raises the number then. */
static bool commit_rules(struct broker *broker, struct problem *ret_problem)
{
    struct exchange_set_limits set = {.rules = exchange_rules(broker->exchange),
                                      .limits = exchange_limits_now(broker->exchange)};
    while (broker->config.etcd.member_count == 0 && set.rules < rules_known().last) {
        set.rules++;
        if (!commit_limits(broker, &set, "the rules of this release", ret_problem)) {
            return false;
        }
        log_info("the market is under rules %" PRIu32 " from command %" PRIu64 " on", set.rules,
                 exchange_index(broker->exchange));
    }
    return true;
}

/* A broker alone may skip rules, up to those that rise by one, from a snapshot: nothing is applied
 * under the rules between. */
static bool check_rules(const struct broker *broker, struct problem *ret_problem)
{
    const uint32_t rules = exchange_rules(broker->exchange);
    const struct rules_known known = rules_known();
    const bool may_skip = broker->config.etcd.member_count == 0 && rules < known.first &&
                          exchange_may_take_rules(broker->exchange, known.first);
    if (replay_knows_rules(rules) || may_skip) {
        return true;
    }
    replay_refuse_rules(rules, "the market is", ret_problem);
    return false;
}

/* Log time goes on where the last run left it. That run wrote HEAD with its last log time, so the
 * wall clock's time since then is what log time lacks. Without leases nothing depends on it. */
static bool commit_outage(struct broker *broker, struct problem *ret_problem)
{
    const int64_t last_ns = broker->store.last_run_ns;
    const int64_t outage_ns = last_ns == 0 ? 0 : clock_wall_ns() - last_ns;
    uint8_t payload[TRANSLATE_OUTAGE_BYTES];
    if (outage_ns <= 0 || !exchange_has_leases(broker->exchange)) {
        return true;
    }
    translate_outage(outage_ns, payload);
    log_info("no broker ran for %" PRId64 " ms: the terms of leases went on meanwhile",
             outage_ns / NS_PER_MS);
    return commit_own(broker,
                      &(struct own_command){ENTRY_OUTAGE, "the outage",
                                            exchange_log_time_ns(broker->exchange), payload,
                                            sizeof payload},
                      ret_problem);
}

static bool rebuild(struct broker *broker, struct problem *ret_problem)
{
    broker->exchange = broker_rebuild(&broker->store, &broker->config, ret_problem);
    return broker->exchange != NULL;
}

/* An exchange whose catching up failed is useless; the tables keep what they have. */
static bool catch_up(struct broker *broker, struct problem *ret_problem)
{
    if (storage_catch_up(&broker->store, broker->exchange, ret_problem)) {
        return true;
    }
    if (!may_try_again(broker)) {
        return false;
    }
    exchange_destroy(&broker->exchange);
    return rebuild(broker, ret_problem) &&
           storage_catch_up(&broker->store, broker->exchange, ret_problem);
}

/* Takes the lead of the journal, here and on etcd where the config names one. */
static bool lead_everywhere(struct broker *broker, bool is_new, bool adopt,
                            struct problem *ret_problem)
{
    if (!lead(broker, ret_problem) || (!is_new && !catch_up(broker, ret_problem))) {
        return false;
    }
    return broker->config.etcd.member_count > 0
               ? broker_follow(broker, adopt, ret_problem)
               : etcd_mark_check_alone(broker->folder, adopt, ret_problem);
}

/* The first entry of an epoch tells the brokers that follow that this one leads. */
static bool commit_beat(struct broker *broker, struct problem *ret_problem)
{
    return broker->config.etcd.member_count == 0 ||
           commit_own(broker,
                      &(struct own_command){ENTRY_TICK, "the first tick",
                                            exchange_log_time_ns(broker->exchange), NULL, 0},
                      ret_problem);
}

bool broker_start_exchange(struct broker *broker, bool is_new, bool adopt,
                           struct problem *ret_problem)
{
    if (!is_new) {
        return rebuild(broker, ret_problem) && check_rules(broker, ret_problem) &&
               lead_everywhere(broker, false, adopt, ret_problem) &&
               commit_config(broker, ret_problem) && commit_rules(broker, ret_problem) &&
               commit_outage(broker, ret_problem) && commit_beat(broker, ret_problem);
    }
    broker->exchange = exchange_create(&broker->config.limits);
    if (broker->exchange == NULL) {
        problem_set(ret_problem, "out of memory for the exchange");
        return false;
    }
    return lead_everywhere(broker, true, adopt, ret_problem) &&
           commit_genesis(broker, ret_problem) && commit_config(broker, ret_problem);
}
