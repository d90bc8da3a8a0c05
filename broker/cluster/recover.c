#include "broker/cluster/recover.h"

#include "base/text.h"
#include "broker/backup_text.h"
#include "broker/cluster/folder_copy.h"
#include "broker/cluster/prepared.h"
#include "broker/storage/backup.h"
#include "broker/storage/etcd/etcd_inquiry.h"
#include "broker/storage/etcd/etcd_mark.h"
#include "broker/storage/etcd/etcd_roster.h"
#include "broker/storage/etcd/replicated.h"
#include "broker/storage/folder.h"
#include "runtime/entropy.h"
#include "runtime/market.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A recovery is under way. */
struct recovery {
    const struct recover_options *options;
    struct broker_config config;
    bool is_prepared;     /* `cluster init` made the folder's config and certificates */
    char place[PATH_MAX]; /* a backup is restored there first */
    int lock;             /* of the folder that is its own source; -1: none */
    struct folder_copy copy;
    struct etcd_inquiry found;
    struct etcd_roster *roster;
    struct id128 journal; /* the new one */
};

/* ---- the source */

/* A prepared folder says itself where etcd is; else the backup's config does. */
static bool read_backup(struct recovery *recovery, struct problem *ret_problem)
{
    const char *backup = recovery->options->backup;
    const char *folder = recovery->options->folder;
    recovery->is_prepared = prepared_is(folder);
    (void)snprintf(recovery->place, sizeof recovery->place, "%s", folder);
    if (!recovery->is_prepared) {
        return folder_copy_read(backup, &recovery->config, &recovery->copy, ret_problem);
    }
    return folder_copy_config(folder, &recovery->config, ret_problem) &&
           folder_copy_end(backup, &recovery->copy, ret_problem) &&
           prepared_place(folder, recovery->place, sizeof recovery->place, ret_problem);
}

/* The lock keeps a broker from starting on the folder meanwhile. A backup has no HEAD, and could be
 * changed by a mistyped command otherwise. */
static bool read_folder(struct recovery *recovery, struct problem *ret_problem)
{
    char path[PATH_MAX];
    struct head head;
    bool is_made;
    const char *folder = recovery->options->folder;
    (void)snprintf(recovery->place, sizeof recovery->place, "%s", folder);
    if (!folder_copy_read(folder, &recovery->config, &recovery->copy, ret_problem) ||
        !folder_path(folder, MARKET_HEAD, path, sizeof path, ret_problem)) {
        return false;
    }
    if (head_read(path, &head, ret_problem) != HEAD_OK) {
        problem_set(ret_problem,
                    "%s has no HEAD that can be read: it is no folder that a broker served. For a "
                    "backup, write: bourse-broker cluster recover BACKUP DIR",
                    folder);
        return false;
    }
    return folder_lock(folder, &recovery->lock, &is_made, ret_problem);
}

/* ---- what speaks against it */

/* A market that is served must not be split. */
static bool check_silent(struct recovery *recovery, struct problem *ret_problem)
{
    struct etcd_roster_list list;
    if (etcd_roster_read(recovery->roster, &list, ret_problem) != ETCD_ROSTER_OK) {
        return false;
    }
    for (size_t i = 0; i < list.count; i++) {
        if (list.brokers[i].is_alive) {
            problem_set(ret_problem,
                        "the broker at %.140s runs, or did so %d s ago: to recover is for a market "
                        "that no broker serves. For one more broker, use cluster join",
                        list.brokers[i].member.control, ETCD_ROSTER_LEASE_S);
            return false;
        }
    }
    return true;
}

/* A recovery that nobody has served since may have been told to its operator as a failure, because
 * etcd's answer got lost. What its source has must not get lost by an older one. */
static bool check_source(const struct recovery *recovery, struct problem *ret_problem)
{
    const char *backup = recovery->options->backup;
    const struct folder_copy *copy = &recovery->copy;
    struct etcd_source source;
    struct hash32 chain;
    switch (etcd_roster_source(recovery->roster, &source, ret_problem)) {
    case ETCD_ROSTER_OK:
        break;
    case ETCD_ROSTER_GONE:
        return true;
    case ETCD_ROSTER_HELD:
    case ETCD_ROSTER_AWAY:
        return false;
    }
    if (copy->last < source.index) {
        problem_set(ret_problem,
                    "the market was recovered once already, from a source that ends at entry "
                    "%" PRIu64 ", and no broker has led since: this source ends at %" PRIu64
                    ". Take that source again. To lose what it has all the same, add "
                    "--give-up-entries",
                    source.index, copy->last);
        return false;
    }
    if (!folder_copy_chain(backup != NULL ? backup : recovery->options->folder, source.index,
                           &chain) ||
        !hash32_equal(&chain, &source.chain)) {
        problem_set(ret_problem,
                    "the market was recovered once already, from a source that ends at entry "
                    "%" PRIu64 ", and this source has another history. Take a source of that "
                    "history. To lose that history all the same, add --give-up-entries",
                    source.index);
        return false;
    }
    return true;
}

static bool check_entries(const struct recovery *recovery, struct problem *ret_problem)
{
    const struct etcd_inquiry *found = &recovery->found;
    const struct folder_copy *copy = &recovery->copy;
    if (recovery->options->gives_up) {
        return true;
    }
    if (!found->has_journal) {
        return check_source(recovery, ret_problem);
    }
    /* A folder's entries were on etcd first, so a source that goes further has another history. */
    const bool is_other = found->last < copy->last ||
                          (found->has_asked && !hash32_equal(&found->asked, &copy->chain));
    if (is_other) {
        problem_set(ret_problem,
                    "this source ends at entry %" PRIu64 ", and etcd has another history, which "
                    "ends at %" PRIu64 ": the market was recovered once already. Take a source of "
                    "that history. To lose that history all the same, add --give-up-entries",
                    copy->last, found->last);
        return false;
    }
    if (found->last <= copy->last) {
        return true;
    }
    problem_set(ret_problem,
                "etcd has entries up to %" PRIu64 ", this source ends at %" PRIu64
                ": nothing need be lost. Start a broker on its folder, or make one with cluster "
                "join. To lose these entries all the same, add --give-up-entries",
                found->last, recovery->copy.last);
    return false;
}

static bool check_etcd(struct recovery *recovery, struct problem *ret_problem)
{
    if (!etcd_inquire(&recovery->config.etcd, &recovery->copy.market, recovery->copy.last,
                      &recovery->found, ret_problem)) {
        return false;
    }
    etcd_roster_destroy(&recovery->roster);
    recovery->roster = etcd_roster_create(&recovery->config.etcd, recovery->found.cluster,
                                          &recovery->found.journal);
    if (recovery->roster == NULL) {
        problem_set(ret_problem, "no memory for the records of brokers");
        return false;
    }
    return check_silent(recovery, ret_problem) && check_entries(recovery, ret_problem);
}

/* ---- the new journal */

static bool restore(struct recovery *recovery, bool *ret_is_wrong, struct problem *ret_problem)
{
    struct backup_report report;
    const struct recover_options *options = recovery->options;
    const struct restore_options restore = {.backup = options->backup,
                                            .folder = recovery->place,
                                            .head = options->head,
                                            .checkpoint = options->checkpoint,
                                            .audit = options->audit,
                                            .skip_damaged_blobs = true,
                                            .joins = true};
    if (!backup_restore(&restore, &report, ret_is_wrong, ret_problem)) {
        return false;
    }
    const struct backup_told told = {
        .command = "recover", .folder = options->folder, .is_json = false, .has_head = true};
    if (!options->is_json) {
        backup_text_print(&told, "restored to", &report);
    }
    backup_text_next(&told, &report);
    return true;
}

/* The journal before ends first: a failure after that leaves a market that nobody serves, and this
 * command can be repeated. */
static bool begin_journal(struct recovery *recovery, struct problem *ret_problem)
{
    recovery->journal = entropy_id();
    const struct etcd_mark mark = {.cluster = recovery->found.cluster,
                                   .journal = recovery->journal};
    const struct etcd_roster_successor successor = {
        .journal = recovery->journal,
        .source = {.index = recovery->copy.last, .chain = recovery->copy.chain}};
    return etcd_roster_end_journal(recovery->roster, &recovery->copy.market,
                                   &recovery->found.journal, &successor,
                                   ret_problem) == ETCD_ROSTER_OK &&
           etcd_mark_write(recovery->place, &mark, ret_problem) &&
           (!recovery->is_prepared ||
            prepared_fill(recovery->options->folder, recovery->place, ret_problem));
}

static void print(const struct recovery *recovery)
{
    const char *folder = recovery->options->folder;
    char before[2 * sizeof recovery->journal.bytes + 1];
    char now[sizeof before];
    text_hex(recovery->found.journal.bytes, sizeof recovery->found.journal.bytes, before);
    text_hex(recovery->journal.bytes, sizeof recovery->journal.bytes, now);
    if (recovery->options->is_json) {
        (void)printf("{\"version\":1,\"recovered\":\"ok\",\"journal\":\"%s\",\"before\":\"%s\","
                     "\"entry\":%" PRIu64 ",\"entries_lost\":%" PRIu64 "}\n",
                     now, before, recovery->copy.last,
                     recovery->found.last > recovery->copy.last
                         ? recovery->found.last - recovery->copy.last
                         : 0);
        return;
    }
    (void)printf("the market of %s goes on where the folder ends, at entry %" PRIu64
                 " at least, in journal %s\nJournal %s has ended: no broker can serve the market "
                 "there.\n",
                 folder, recovery->copy.last, now, before);
    if (recovery->found.has_journal) {
        (void)printf("What etcd has of it takes space; once nobody wants to look at it:\n"
                     "  etcdctl del --prefix /bourse/%s/log/\n",
                     before);
    }
    (void)printf("Destroy what is left of any other etcd of this market: its brokers cannot be "
                 "told.\nNext: set in %s/%s what is this broker's own, then\n"
                 "  bourse-broker run --dir %s\nand each other broker again by backup and cluster "
                 "join.\n",
                 folder, MARKET_BROKER_CONFIG, folder);
}

/* A restore takes minutes, in which a broker may have begun to serve. So etcd is asked again. */
static bool recover(struct recovery *recovery, bool *ret_is_wrong, struct problem *ret_problem)
{
    const bool has_backup = recovery->options->backup != NULL;
    return (has_backup ? read_backup(recovery, ret_problem) : read_folder(recovery, ret_problem)) &&
           check_etcd(recovery, ret_problem) &&
           (!has_backup ||
            (restore(recovery, ret_is_wrong, ret_problem) && check_etcd(recovery, ret_problem))) &&
           begin_journal(recovery, ret_problem);
}

bool recover_run(const struct recover_options *options, bool *ret_is_wrong,
                 struct problem *ret_problem)
{
    struct recovery *recovery = calloc(1, sizeof *recovery); /* a config is large */
    *ret_is_wrong = false;
    if (recovery == NULL) {
        problem_set(ret_problem, "out of memory");
        return false;
    }
    recovery->options = options;
    recovery->lock = -1;
    const bool good = recover(recovery, ret_is_wrong, ret_problem);
    if (good) {
        print(recovery);
    }
    etcd_roster_destroy(&recovery->roster);
    folder_unlock(options->folder, &recovery->lock, false);
    free(recovery);
    return good;
}
