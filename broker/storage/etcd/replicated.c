#include "broker/storage/etcd/replicated.h"

#include "base/sha256.h"
#include "base/text.h"
#include "broker/core/group.h"
#include "broker/core/request.h"
#include "broker/core/translate.h"
#include "broker/fatal.h"
#include "broker/storage/entry.h"
#include "broker/storage/etcd/etcd_mark.h"
#include "broker/storage/etcd/journal_etcd.h"
#include "broker/storage/replay.h"
#include "runtime/log.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    HOST_SIZE = 256,
    HOME_HEX = 16, /* of a leader's name: the digits that stand for its folder */
    RESIGNED_PID = 0
};

/* A replicated folder is one that is brought to the end of the journal on etcd. */
struct replicated {
    struct storage *store;
    struct exchange *exchange;
    const struct broker_config *config;
    struct group *group;
    uint64_t epoch;   /* of the folder's last entry; 0: it has none */
    uint64_t first;   /* the folder's last entry at the start */
    bool is_starting; /* no tick of that epoch has a state yet: its core does not run */
    bool has_foreign; /* another broker led since this folder's own last run */
    struct replicated_readers readers; /* all NULL: nobody else reads the exchange */
    char home[HOME_HEX + 1];
};

/* ---- who leads */

/* The digits stand for the machine, the folder, and the rank, which differs where the names of
 * machines and folders do not. */
static void name_home(const char *folder, unsigned rank, char ret_home[HOME_HEX + 1])
{
    char host[HOST_SIZE] = "";
    struct sha256 hash;
    const uint8_t rank_byte = (uint8_t)rank;
    (void)gethostname(host, sizeof host - 1); /* "" is a name, too */
    sha256_start(&hash);
    sha256_add(&hash, host, strlen(host) + 1);
    sha256_add(&hash, folder, strlen(folder) + 1);
    sha256_add(&hash, &rank_byte, 1);
    const struct hash32 sum = sha256_end(&hash);
    text_hex(sum.bytes, HOME_HEX / 2, ret_home);
}

/* A leader's name is HOME/PID. */
static void name_me(const struct replicated *replicated, const char *address,
                    struct journal_leader *me)
{
    *me = (struct journal_leader){.epoch = replicated->store->epoch};
    (void)snprintf(me->broker, sizeof me->broker, "%s/%ld", replicated->home, (long)getpid());
    (void)snprintf(me->address, sizeof me->address, "%.120s", address);
}

void replicated_name(const char *folder, unsigned rank, long pid,
                     char ret_name[sizeof((struct journal_leader *)NULL)->broker])
{
    char home[HOME_HEX + 1];
    name_home(folder, rank, home);
    (void)snprintf(ret_name, sizeof((struct journal_leader *)NULL)->broker, "%s/%ld", home, pid);
}

static void name_resigned(const struct journal_leader *leader, const char *wish,
                          struct journal_leader *ret_resigned)
{
    const size_t length = strcspn(leader->broker, "/");
    *ret_resigned = (struct journal_leader){.epoch = leader->epoch};
    (void)snprintf(ret_resigned->broker, sizeof ret_resigned->broker, "%.*s/%d", (int)length,
                   leader->broker, RESIGNED_PID);
    (void)snprintf(ret_resigned->address, sizeof ret_resigned->address, "%s", wish);
}

const char *replicated_wish(const struct journal_leader *leader)
{
    return replicated_is_resigned(leader) ? leader->address : "";
}

bool replicated_is_resigned(const struct journal_leader *leader)
{
    const char *slash = strchr(leader->broker, '/');
    return slash != NULL && strcmp(slash, "/0") == 0;
}

static bool is_of_this_folder(const struct replicated *replicated,
                              const struct journal_leader *leader)
{
    return leader->epoch == 0 || (strncmp(leader->broker, replicated->home, HOME_HEX) == 0 &&
                                  leader->broker[HOME_HEX] == '/');
}

bool replicated_is_free(const struct replicated *replicated, const struct journal_leader *leader)
{
    return is_of_this_folder(replicated, leader) || replicated_is_resigned(leader);
}

/* A deposed broker must not answer from a state that others have left behind. */
static void is_deposed(void *context, const struct journal_leader *leader)
{
    (void)context;
    fatal_deposed("another broker leads this market (%s%s%s, epoch %" PRIu64
                  "); stopped, nothing unacknowledged was sent; started again, this broker follows",
                  leader->broker, leader->address[0] == '\0' ? "" : " at ", leader->address,
                  leader->epoch);
}

/* ---- following */

/* The audit log of this folder records every start that wrote entries, and every change of limits,
 * whichever broker it was. */
static void note_start(struct storage *store, uint64_t epoch)
{
    struct act begun = {.kind = ACT_START,
                        .account = EXCHANGE_NO_ACCOUNT,
                        .target = *identity_key(store->audit_key)};
    (void)snprintf(begun.text, sizeof begun.text, "of epoch %" PRIu64 ", read from etcd", epoch);
    storage_note(store, &begun);
}

static void note_limits(const struct replicated *replicated, const struct exchange_set_limits *set)
{
    const struct exchange_limits old = exchange_limits_now(replicated->exchange);
    struct act changed = {.kind = ACT_LIMITS, .account = EXCHANGE_NO_ACCOUNT, .state = set->rules};
    if (exchange_rules(replicated->exchange) != 0) {
        config_limits_text(&old, &set->limits, changed.text, sizeof changed.text);
        storage_note(replicated->store, &changed);
    }
}

/* Notes the state hash that a tick carries. Returns false when the command carries none. */
static bool note_state(struct storage *store, const struct entry_command *command, uint64_t index)
{
    if (command->kind != ENTRY_TICK || command->payload_length != TRANSLATE_STATE_BYTES) {
        return false;
    }
    replica_note_state(&store->replica, index, command->payload);
    return true;
}

/* Applies one command of the entry, and adds it to the group. */
static bool follow_command(struct replicated *replicated, const struct entry_command *command,
                           struct group *group, struct problem *ret_problem)
{
    struct exchange *exchange = replicated->exchange;
    const struct id128 cluster = exchange_cluster(exchange);
    const uint64_t index = exchange_index(exchange) + 1;
    struct request *request = request_create();
    if (request == NULL) {
        problem_set(ret_problem, "out of memory");
        return false;
    }
    struct group_command *kept = &group->commands[group->command_count++];
    *kept = (struct group_command){.entry = *command, .request = request};
    if (command->kind != ENTRY_LIMITS && !replay_knows_rules(exchange_rules(exchange))) {
        problem_set(ret_problem,
                    "RULES: command %" PRIu64 " on etcd was written under rules %" PRIu32
                    ", this bourse-broker has rules %d",
                    index, exchange_rules(exchange), (int)EXCHANGE_RULES);
        return false;
    }
    if (!replay_state_agrees(exchange, command)) {
        problem_set(ret_problem,
                    "STATE: before command %" PRIu64 " this broker has another state than the "
                    "leader; stopped. One of the two computes wrongly: compare both folders with "
                    "bourse-broker replay --verify",
                    index);
        return false;
    }
    if (note_state(replicated->store, command, index)) {
        replicated->is_starting = false;
    }
    const bool is_read = translate_entry(command, index, &cluster, &request->translation);
    if (is_read && command->kind == ENTRY_LIMITS) {
        note_limits(replicated, &request->translation.command.set_limits);
    }
    if (!is_read ||
        exchange_step(exchange, &request->translation.command, &group->effects) != EXCHANGE_OK) {
        problem_set(ret_problem, "command %" PRIu64 " on etcd cannot be applied", index);
        return false;
    }
    return true;
}

void replicated_share(struct replicated *replicated, const struct replicated_readers *readers)
{
    replicated->readers = readers != NULL ? *readers : (struct replicated_readers){.state = NULL};
}

/* Applies the commands of the entry in the store's buffer. */
static bool follow_commands(struct replicated *replicated, size_t length, struct group *group,
                            struct problem *ret_problem)
{
    pthread_mutex_t *state = replicated->readers.state;
    struct entry_command command;
    size_t position = 0;
    bool good = true;
    if (state != NULL) {
        pthread_mutex_lock(state);
    }
    while (good && entry_next(replicated->store->buffer, length, &position, &command)) {
        good = group->command_count < GROUP_COMMANDS_MAX &&
               follow_command(replicated, &command, group, ret_problem);
    }
    if (state != NULL) {
        pthread_mutex_unlock(state);
    }
    return good;
}

static bool follow_group(struct replicated *replicated, size_t length, struct group *group,
                         struct problem *ret_problem)
{
    struct storage *store = replicated->store;
    struct entry_head head;
    if (!entry_read_head(store->buffer, length, &head) || head.index != store->last.index + 1 ||
        head.first_command != store->last.next_command || head.count > GROUP_COMMANDS_MAX ||
        !hash32_equal(&head.previous, &store->last.chain)) {
        problem_set(ret_problem,
                    "entry %" PRIu64 " on etcd does not follow this folder's entry %" PRIu64
                    ": they are two histories",
                    store->last.index + 1, store->last.index);
        return false;
    }
    group->first_command = head.first_command;
    if (head.epoch != replicated->epoch) {
        note_start(store, head.epoch);
        replicated->is_starting = true;
    }
    if (!follow_commands(replicated, length, group, ret_problem)) {
        return false;
    }
    const struct journal_leader writer = {.epoch = head.epoch};
    if (head.epoch > store->epoch &&
        journal_lead(store->journal, store->last.index, &writer, &store->epoch) != JOURNAL_OK) {
        problem_set(ret_problem, "the folder's journal does not take epoch %" PRIu64, head.epoch);
        return false;
    }
    if (!storage_follow(store, group, length)) {
        store->is_full = true;
        problem_set(ret_problem,
                    "the disk of %.300s is full, so this broker cannot follow after entry %" PRIu64
                    "; free space, and start it again",
                    store->folder, store->last.index);
        return false;
    }
    replicated->epoch = head.epoch;
    return true;
}

static bool follow_entry(struct replicated *replicated, const struct journal_entry *entry,
                         struct problem *ret_problem)
{
    struct storage *store = replicated->store;
    struct act notes[STORAGE_NOTES_MAX];
    if (entry->length > ENTRY_MAX_BYTES) {
        problem_set(ret_problem, "entry %" PRIu64 " on etcd is too large", entry->index);
        return false;
    }
    /* The notes of this start wait meanwhile: they belong beside its own first entry. */
    const size_t count = store->note_count;
    memcpy(notes, store->notes, sizeof notes);
    store->note_count = 0;
    memcpy(store->buffer, entry->bytes, entry->length);
    const bool good = follow_group(replicated, entry->length, replicated->group, ret_problem);
    if (good && replicated->readers.applied != NULL) {
        replicated->readers.applied(replicated->readers.context, &replicated->group->effects);
    }
    group_clear(replicated->group);
    memcpy(store->notes, notes, sizeof notes);
    store->note_count = count;
    return good;
}

enum replicated_turn replicated_follow(struct replicated *replicated, int timeout_ms,
                                       struct problem *ret_problem)
{
    struct storage *store = replicated->store;
    struct journal_entry entry;
    const enum journal_status status =
        journal_next(store->replicated, store->last.index + 1, &entry, timeout_ms);
    switch (status) {
    case JOURNAL_OK:
        return follow_entry(replicated, &entry, ret_problem) ? REPLICATED_NEWS : REPLICATED_FAILED;
    case JOURNAL_UNAVAILABLE:
        return REPLICATED_QUIET;
    case JOURNAL_UNKNOWN:
        return REPLICATED_DEAF;
    case JOURNAL_BEHIND:
        problem_set(ret_problem,
                    "etcd no longer has entry %" PRIu64
                    ", which comes after this folder's last one: make the folder anew from a "
                    "backup of another broker, with bourse-broker cluster join",
                    store->last.index + 1);
        return REPLICATED_FAILED;
    case JOURNAL_DEPOSED:
        problem_set(ret_problem, "the journal has ended: the market was recovered in another one");
        return REPLICATED_FAILED;
    case JOURNAL_FULL:
    case JOURNAL_TOO_LARGE:
    case JOURNAL_CORRUPT:
        break;
    }
    problem_set(ret_problem, "entry %" PRIu64 " cannot be read from etcd: %s",
                store->last.index + 1, journal_status_text(status));
    return REPLICATED_FAILED;
}

bool replicated_is_starting(const struct replicated *replicated)
{
    return replicated->is_starting;
}

/* A journal that nobody has led has a leader of epoch 0. */
bool replicated_leader(struct replicated *replicated, struct journal_leader *ret_leader)
{
    *ret_leader = (struct journal_leader){.epoch = 0};
    const enum journal_status status = journal_leader(replicated->store->replicated, ret_leader);
    return status == JOURNAL_OK || status == JOURNAL_UNAVAILABLE;
}

/* The chain makes one entry vouch for all before it. The transaction that opened the log has shown
 * the entry, so one that is absent is absent from all members, not from one that is behind. */
static bool check_last(struct storage *store, struct problem *ret_problem)
{
    struct journal_entry entry;
    if (store->last.index == 0) {
        return true;
    }
    const enum journal_status status =
        journal_next(store->replicated, store->last.index, &entry, 0);
    if (status == JOURNAL_OK) {
        const struct hash32 chain = sha256_of(entry.bytes, entry.length);
        if (hash32_equal(&chain, &store->last.chain)) {
            return true;
        }
        problem_set(ret_problem,
                    "entry %" PRIu64 " on etcd is another than this folder's: two histories of one "
                    "market; find out which one its members have seen",
                    store->last.index);
    } else if (status == JOURNAL_BEHIND) {
        problem_set(ret_problem,
                    "etcd no longer has entry %" PRIu64
                    ", where this folder ends: make the folder anew from a newer backup, with "
                    "bourse-broker cluster join, or start the broker that led last",
                    store->last.index);
    } else if (status == JOURNAL_UNAVAILABLE) {
        problem_set(ret_problem,
                    "etcd does not have entry %" PRIu64 ", where this folder ends: etcd was "
                    "restored from an old copy; docs/operator.md, \"When etcd does not answer\", "
                    "says how to go on from this folder",
                    store->last.index);
    } else {
        problem_set(ret_problem,
                    "entry %" PRIu64 ", where this folder ends, cannot be read from etcd: %s",
                    store->last.index, journal_status_text(status));
    }
    return false;
}

/* ---- joining */

/* *ret_epoch is the epoch of the folder's last entry, 0 when it has none. */
static bool open_journal(struct storage *store, const struct broker_config *config, bool adopt,
                         uint64_t *ret_epoch, struct problem *ret_problem)
{
    struct entry_head head = {.epoch = 0};
    uint64_t etcd_cluster = 0;
    struct etcd_mark mark;
    /* A folder that is adopted keeps the id of its journal, where it says one. */
    if (!etcd_mark_read(store->folder, &mark, ret_problem) && !adopt) {
        return false;
    }
    struct journal_etcd_start start = {
        .config = &config->etcd,
        .cluster = *etcd_mark_journal(&mark, &store->genesis.cluster),
        .market = store->genesis.cluster,
        .etcd_cluster = adopt ? 0 : mark.cluster,
        .last = {.index = store->last.index, .chain = store->last.chain},
        .deposed = is_deposed,
        .quorum = &store->quorum,
        .replica = &store->replica};
    if (store->last.index > 0 &&
        (journal_next(store->journal, store->last.index, &start.entry, 0) != JOURNAL_OK ||
         !entry_read_head(start.entry.bytes, start.entry.length, &head))) {
        problem_set(ret_problem, "the folder's last entry cannot be read");
        return false;
    }
    *ret_epoch = head.epoch;
    if (journal_etcd_open(&start, &store->replicated, &etcd_cluster, ret_problem) != JOURNAL_OK) {
        return false;
    }
    if (mark.cluster != etcd_cluster) { /* no broker's record is there yet */
        mark.member[0] = '\0';
    }
    mark.cluster = etcd_cluster;
    mark.journal = start.cluster;
    return etcd_mark_write(store->folder, &mark, ret_problem);
}

/* The entries of this disk carry the epoch of etcd. */
static bool lead_here(struct storage *store, uint64_t epoch, struct problem *ret_problem)
{
    const struct journal_leader me = {.epoch = epoch};
    if (store->epoch != epoch &&
        (journal_lead(store->journal, store->last.index, &me, &store->epoch) != JOURNAL_OK ||
         store->epoch != epoch)) {
        problem_set(ret_problem, "the folder's journal does not take epoch %" PRIu64, epoch);
        return false;
    }
    return true;
}

struct replicated *replicated_open(struct storage *store, struct exchange *exchange,
                                   const struct broker_config *config, bool adopt,
                                   struct problem *ret_problem)
{
    struct replicated *replicated = calloc(1, sizeof *replicated);
    struct journal_leader before = {.epoch = 0};
    if (replicated != NULL) {
        *replicated = (struct replicated){.store = store,
                                          .exchange = exchange,
                                          .config = config,
                                          .group = group_create(),
                                          .first = store->last.index};
    }
    if (replicated == NULL || replicated->group == NULL) {
        problem_set(ret_problem, "out of memory");
        replicated_close(&replicated);
        return NULL;
    }
    name_home(store->folder, config->cluster_rank, replicated->home);
    if (!open_journal(store, config, adopt, &replicated->epoch, ret_problem) ||
        !check_last(store, ret_problem)) {
        replicated_close(&replicated);
        return NULL;
    }
    /* The answer is a hint; without it nobody led before. */
    replicated->has_foreign =
        replicated_leader(replicated, &before) && !is_of_this_folder(replicated, &before);
    return replicated;
}

void replicated_close(struct replicated **self)
{
    struct replicated *replicated = *self;
    if (replicated != NULL) {
        group_destroy(&replicated->group);
        free(replicated);
        *self = NULL;
    }
}

/* ---- leading */

enum journal_status replicated_lead(struct replicated *replicated, const char *address,
                                    struct problem *ret_problem)
{
    struct storage *store = replicated->store;
    struct journal_leader me;
    uint64_t epoch = 0;
    name_me(replicated, address, &me);
    const enum journal_status status =
        journal_lead(store->replicated, store->last.index, &me, &epoch);
    if (status != JOURNAL_OK) {
        if (status == JOURNAL_CORRUPT) {
            problem_set(ret_problem,
                        "the journal on etcd cannot be led: it ends before entry %" PRIu64
                        ", which this folder has, or another program wrote to it",
                        store->last.index);
        }
        replicated->has_foreign =
            replicated->has_foreign || status == JOURNAL_BEHIND || status == JOURNAL_DEPOSED;
        return status;
    }
    if (!lead_here(store, epoch, ret_problem)) {
        return JOURNAL_CORRUPT;
    }
    if (replicated->has_foreign) {
        store->last_run_ns = 0;
    }
    store->trim = trim_start(replicated->first, store->last.index);
    store->leads = me;
    store->leads.epoch = epoch;
    atomic_store(&store->replica.epoch, epoch);
    log_info("leads the journal on etcd under epoch %" PRIu64 ", after entry %" PRIu64 "; %" PRIu64
             " entries were read from etcd",
             epoch, store->last.index, store->last.index - replicated->first);
    return JOURNAL_OK;
}

/* Followers wait for silence when etcd does not answer, as after a kill. */
void replicated_resign(struct storage *store, const char *wish)
{
    struct journal_leader resigned;
    if (store->replicated == NULL || store->leads.epoch == 0) {
        return;
    }
    name_resigned(&store->leads, wish, &resigned);
    const enum journal_status status = journal_resign(store->replicated, store->epoch, &resigned);
    if (status == JOURNAL_OK) {
        log_info("gave the lead up after entry %" PRIu64, store->last.index);
    } else {
        log_warning("the lead could not be given up: %s; brokers that follow wait for silence",
                    journal_status_text(status));
    }
}

/* ---- appending */

/* Says once, not at every try, that etcd takes no entry. */
static void say_away(struct storage *store, enum journal_status status)
{
    if (!store->is_away_said) {
        log_error("entry %" PRIu64 " waits, and so does everybody who sent its commands: %s",
                  store->last.index + 1,
                  status == JOURNAL_FULL ? "etcd has reached its quota; docs/operator.md says how "
                                           "to get space"
                                         : "etcd does not answer, or has no quorum");
        store->is_away_said = true;
    }
    if (atomic_load(&store->ends)) {
        fatal("etcd does not say whether it has entry %" PRIu64
              "; stopped, its commands were not acknowledged, and the next start finds out",
              store->last.index + 1);
    }
}

static void say_back(struct storage *store)
{
    if (store->is_away_said) {
        log_info("etcd takes entries again");
        store->is_away_said = false;
    }
}

/* Appends the entry in `buffer` to the journal on etcd. Whatever etcd has, this broker's disk must
 * get, so the same bytes are tried until both have them. */
static enum storage_status append(struct storage *store, size_t length)
{
    const struct journal_entry entry = {
        .index = store->last.index + 1, .bytes = store->buffer, .length = length};
    if (store->is_frozen_in) {
        return STORAGE_OK;
    }
    store->frozen = length;
    const enum journal_status status = journal_append(store->replicated, store->epoch, &entry, 1);
    switch (status) {
    case JOURNAL_OK:
        store->is_frozen_in = true;
        say_back(store);
        return STORAGE_OK;
    case JOURNAL_UNKNOWN:
    case JOURNAL_UNAVAILABLE:
    case JOURNAL_FULL:
        say_away(store, status);
        return STORAGE_AWAY;
    case JOURNAL_DEPOSED:
        fatal_deposed("another broker leads this market: entry %" PRIu64
                      " was refused; stopped, nothing unacknowledged was sent",
                      entry.index);
    case JOURNAL_BEHIND:
    case JOURNAL_TOO_LARGE:
    case JOURNAL_CORRUPT:
        break;
    }
    fatal("entry %" PRIu64 " of %zu bytes could not be appended to the journal on etcd: %s; "
          "stopped, nothing unacknowledged was sent",
          entry.index, length, journal_status_text(status));
}

enum storage_status replicated_append(struct storage *store, const struct group *group,
                                      size_t *ret_length)
{
    *ret_length = store->frozen;
    if (store->frozen == 0) {
        *ret_length = group_write_entry(group, store->last.index + 1, store->epoch,
                                        &store->last.chain, store->buffer);
    }
    const enum storage_status status = append(store, *ret_length);
    for (size_t i = 0; status == STORAGE_OK && i < group->command_count; i++) {
        (void)note_state(store, &group->commands[i].entry, group->first_command + i);
    }
    return status;
}
