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
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    LEAD_TRIES = 50, /* another broker may append, or a read be out of date, between two steps */
    HOST_SIZE = 256,
    HOME_HEX = 16 /* of a leader's name: the digits that stand for its folder */
};

/* ---- who leads */

/* A leader's name is HOME/PID, where HOME stands for the machine and the folder. */
static void name_me(const struct storage *store, const char *address, struct journal_leader *me)
{
    char host[HOST_SIZE] = "";
    char home[HOME_HEX + 1];
    struct sha256 hash;
    (void)gethostname(host, sizeof host - 1); /* "" is a name, too */
    sha256_start(&hash);
    sha256_add(&hash, host, strlen(host) + 1);
    sha256_add(&hash, store->folder, strlen(store->folder));
    const struct hash32 sum = sha256_end(&hash);
    text_hex(sum.bytes, HOME_HEX / 2, home);
    *me = (struct journal_leader){.epoch = store->epoch};
    (void)snprintf(me->broker, sizeof me->broker, "%s/%ld", home, (long)getpid());
    (void)snprintf(me->address, sizeof me->address, "%.120s", address);
}

static bool is_of_this_folder(const struct journal_leader *leader, const struct journal_leader *me)
{
    return leader->epoch == 0 || strncmp(leader->broker, me->broker, HOME_HEX + 1) == 0;
}

/* A deposed broker must not answer from a state that others have left behind. */
static void is_deposed(void *context, const struct journal_leader *leader)
{
    (void)context;
    fatal_deposed("another broker leads this market (%s%s%s, epoch %" PRIu64
                  "); stopped, nothing unacknowledged was sent",
                  leader->broker, leader->address[0] == '\0' ? "" : " at ", leader->address,
                  leader->epoch);
}

/* ---- following */

/* A follower brings a folder to the end of the journal. */
struct follower {
    struct storage *store;
    struct exchange *exchange;
    uint64_t epoch; /* of the folder's last entry; 0: it has none */
    struct problem *problem;
};

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

static void note_limits(const struct follower *follower, const struct exchange_set_limits *set)
{
    const struct exchange_limits old = exchange_limits_now(follower->exchange);
    struct act changed = {.kind = ACT_LIMITS, .account = EXCHANGE_NO_ACCOUNT, .state = set->rules};
    if (exchange_rules(follower->exchange) != 0) {
        config_limits_text(&old, &set->limits, changed.text, sizeof changed.text);
        storage_note(follower->store, &changed);
    }
}

/* Applies one command of the entry, and adds it to the group. */
static bool follow_command(const struct follower *follower, const struct entry_command *command,
                           struct group *group)
{
    struct exchange *exchange = follower->exchange;
    struct problem *ret_problem = follower->problem;
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
    const bool is_read = translate_entry(command, index, &cluster, &request->translation);
    if (is_read && command->kind == ENTRY_LIMITS) {
        note_limits(follower, &request->translation.command.set_limits);
    }
    if (!is_read ||
        exchange_step(exchange, &request->translation.command, &group->effects) != EXCHANGE_OK) {
        problem_set(ret_problem, "command %" PRIu64 " on etcd cannot be applied", index);
        return false;
    }
    return true;
}

static bool follow_group(struct follower *follower, size_t length, struct group *group)
{
    struct storage *store = follower->store;
    struct problem *ret_problem = follower->problem;
    struct entry_head head;
    struct entry_command command;
    size_t position = 0;
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
    if (head.epoch != follower->epoch) {
        note_start(store, head.epoch);
    }
    while (entry_next(store->buffer, length, &position, &command)) {
        if (group->command_count == GROUP_COMMANDS_MAX ||
            !follow_command(follower, &command, group)) {
            return false;
        }
    }
    const struct journal_leader writer = {.epoch = head.epoch};
    if (head.epoch > store->epoch &&
        journal_lead(store->journal, store->last.index, &writer, &store->epoch) != JOURNAL_OK) {
        problem_set(ret_problem, "the folder's journal does not take epoch %" PRIu64, head.epoch);
        return false;
    }
    if (!storage_follow(store, group, length)) {
        store->is_full = true;
        problem_set(ret_problem, "the disk is full");
        return false;
    }
    follower->epoch = head.epoch;
    return true;
}

static bool follow_entry(struct follower *follower, const struct journal_entry *entry)
{
    struct group *group = entry->length <= ENTRY_MAX_BYTES ? group_create() : NULL;
    if (group == NULL) {
        problem_set(follower->problem, "entry %" PRIu64 " on etcd is too large, or memory is short",
                    entry->index);
        return false;
    }
    memcpy(follower->store->buffer, entry->bytes, entry->length);
    const bool good = follow_group(follower, entry->length, group);
    group_destroy(&group);
    return good;
}

/* Reads and applies all entries after the folder's last one. */
static bool read_on(struct follower *follower)
{
    struct storage *store = follower->store;
    for (;;) {
        struct journal_entry entry;
        const enum journal_status status =
            journal_next(store->replicated, store->last.index + 1, &entry, 0);
        if (status == JOURNAL_UNAVAILABLE) {
            return true; /* whether this is the end, the lead tells */
        }
        if (status != JOURNAL_OK) {
            problem_set(follower->problem, "entry %" PRIu64 " cannot be read from etcd: %s",
                        store->last.index + 1, journal_status_text(status));
            return false;
        }
        if (!follow_entry(follower, &entry)) {
            return false;
        }
    }
}

/* The notes of this start wait meanwhile: they belong beside its own first entry. */
static bool catch_up(struct follower *follower)
{
    struct storage *store = follower->store;
    struct act notes[STORAGE_NOTES_MAX];
    const size_t count = store->note_count;
    memcpy(notes, store->notes, sizeof notes);
    store->note_count = 0;
    const bool good = read_on(follower);
    memcpy(store->notes, notes, sizeof notes);
    store->note_count = count;
    return good;
}

/* The chain makes one entry vouch for all before it. */
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
                    "etcd no longer has entry %" PRIu64 ", where this folder ends: restore a newer "
                    "backup, or start the broker that led last",
                    store->last.index);
    } else {
        problem_set(ret_problem,
                    "etcd does not have entry %" PRIu64 ", where this folder ends: it was restored "
                    "from an old copy, or does not answer (%s)",
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
    struct journal_etcd_start start = {
        .config = &config->etcd,
        .cluster = store->genesis.cluster,
        .last = {.index = store->last.index, .chain = store->last.chain},
        .deposed = is_deposed,
        .is_away = &store->is_away};
    if (!adopt && !etcd_mark_read(store->folder, &start.etcd_cluster, ret_problem)) {
        return false;
    }
    if (store->last.index > 0 &&
        (journal_next(store->journal, store->last.index, &start.entry, 0) != JOURNAL_OK ||
         !entry_read_head(start.entry.bytes, start.entry.length, &head))) {
        problem_set(ret_problem, "the folder's last entry cannot be read");
        return false;
    }
    *ret_epoch = head.epoch;
    return journal_etcd_open(&start, &store->replicated, &etcd_cluster, ret_problem) ==
               JOURNAL_OK &&
           etcd_mark_write(store->folder, etcd_cluster, ret_problem);
}

static bool take_over(struct follower *follower, const struct journal_leader *me,
                      uint64_t *ret_epoch)
{
    struct storage *store = follower->store;
    const struct timespec pause = {.tv_nsec = 100000000};
    enum journal_status status = JOURNAL_BEHIND;
    for (unsigned i = 0; i < LEAD_TRIES && status == JOURNAL_BEHIND; i++) {
        if (i > 0) {
            (void)nanosleep(&pause, NULL); /* an early end only causes an early try */
        }
        if (!catch_up(follower)) {
            return false;
        }
        status = journal_lead(store->replicated, store->last.index, me, ret_epoch);
    }
    if (status != JOURNAL_OK) {
        problem_set(follower->problem,
                    "the journal on etcd cannot be led after entry %" PRIu64 ": %s",
                    store->last.index, journal_status_text(status));
    }
    return status == JOURNAL_OK;
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

static bool join(struct storage *store, struct exchange *exchange,
                 const struct broker_config *config, bool adopt, struct problem *ret_problem)
{
    struct journal_leader me;
    struct journal_leader before = {.epoch = 0};
    struct follower follower = {.store = store, .exchange = exchange, .problem = ret_problem};
    uint64_t epoch = 0;
    const uint64_t first = store->last.index;
    name_me(store, config->advertise[0] != '\0' ? config->advertise : config->listen, &me);
    if (!open_journal(store, config, adopt, &follower.epoch, ret_problem) ||
        !check_last(store, ret_problem)) {
        return false;
    }
    (void)journal_leader(store->replicated, &before); /* a hint; without it nobody led before */
    if (!take_over(&follower, &me, &epoch) || !lead_here(store, epoch, ret_problem)) {
        return false;
    }
    if (!is_of_this_folder(&before, &me)) {
        store->last_run_ns = 0; /* another broker ran after this folder's */
    }
    store->trim = trim_start(first, store->last.index);
    log_info("leads the journal on etcd under epoch %" PRIu64 ", after entry %" PRIu64 "; %" PRIu64
             " entries were read from etcd",
             epoch, store->last.index, store->last.index - first);
    return true;
}

bool replicated_join(struct storage *store, struct exchange *exchange,
                     const struct broker_config *config, bool adopt, struct problem *ret_problem)
{
    uint64_t etcd_cluster = 0;
    if (config->etcd.member_count > 0) {
        return join(store, exchange, config, adopt, ret_problem);
    }
    if (adopt) {
        return etcd_mark_remove(store->folder, ret_problem);
    }
    if (!etcd_mark_read(store->folder, &etcd_cluster, ret_problem)) {
        return false;
    }
    if (etcd_cluster != 0) {
        problem_set(ret_problem,
                    "this market's journal is on etcd cluster %016" PRIx64
                    ", and journal.etcd is not in broker.yaml: name its members there, or start "
                    "once with --adopt-journal to go on without etcd",
                    etcd_cluster);
        return false;
    }
    return true;
}

/* ---- trimming */

void replicated_trim(struct storage *store, size_t length)
{
    struct journal_base base = {.index = 0};
    struct journal_entry entry;
    if (!trim_step(&store->trim, store->last.index, length, &base.index)) {
        return;
    }
    if (journal_next(store->journal, base.index, &entry, 0) != JOURNAL_OK) {
        return; /* the next entry tries again */
    }
    base.chain = sha256_of(entry.bytes, entry.length);
    const enum journal_status status = journal_truncate(store->replicated, store->epoch, &base);
    if (status == JOURNAL_OK) {
        trim_done(&store->trim, base.index);
    } else if (status == JOURNAL_CORRUPT) {
        fatal("the base of the journal on etcd was moved by somebody else; stopped");
    }
    /* A deposed broker learns that from its next entry; an etcd that is away is tried again. */
}
