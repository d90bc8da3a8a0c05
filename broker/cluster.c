#include "broker/cluster.h"

#include "base/checked.h"
#include "broker/backup_text.h"
#include "broker/cluster/certificates.h"
#include "broker/cluster/cluster_init.h"
#include "broker/cluster/folder_copy.h"
#include "broker/cluster/prepared.h"
#include "broker/cluster/transfer.h"
#include "broker/config.h"
#include "broker/storage/backup.h"
#include "broker/storage/etcd/etcd_inquiry.h"
#include "broker/storage/etcd/etcd_mark.h"
#include "broker/storage/etcd/replicated.h"
#include "runtime/log.h"
#include "runtime/market.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* ---------------------------------------------------------------- joining */

/* A broker would make a second journal where etcd has none, and could not follow from where etcd
 * has no entry any more. */
static bool check_reach(const struct folder_copy *copy, const struct etcd_inquiry *found,
                        struct problem *ret_problem)
{
    if (!found->has_journal) {
        problem_set(ret_problem, "this etcd has no journal of the market: is it the etcd of the "
                                 "broker that leads?");
    } else if (!found->has_asked && copy->last <= found->base) {
        problem_set(ret_problem,
                    "the backup ends at entry %" PRIu64 ", and etcd no longer has entries up to "
                    "%" PRIu64 ": make a newer backup, of a broker that runs",
                    copy->last, found->base);
    } else if (!found->has_asked || !hash32_equal(&found->asked, &copy->chain)) {
        problem_set(ret_problem,
                    "entry %" PRIu64 ", where the backup ends, is not the one on etcd: the backup "
                    "is of another history, or etcd is an old copy",
                    copy->last);
    } else {
        return true;
    }
    return false;
}

static void tell_next(const char *folder, const struct etcd_inquiry *found,
                      const struct folder_copy *copy)
{
    (void)printf("etcd has %" PRIu64 " entries after it\n"
                 "Now set in %s/%s what is this broker's own: listen, blob_listen, advertise,\n"
                 "blob_advertise, and cluster.rank, which no other broker of the market may have.\n"
                 "Then: bourse-broker run --dir %s\n",
                 found->last - copy->last, folder, MARKET_BROKER_CONFIG, folder);
}

/* A joining is a folder that is made from a backup. */
struct joining {
    const struct cluster_command *command;
    bool is_prepared;     /* `cluster init` made its config and certificates */
    char place[PATH_MAX]; /* the backup is restored there first */
    struct folder_copy copy;
    struct etcd_inquiry found;
    struct backup_report report;
};

/* Asks etcd, and tells what is wrong with the own certificate when nobody answers. Members hang up
 * on a client whose certificate they refuse, and do not always say why. */
static bool inquire(const struct etcd_config *etcd, const struct folder_copy *copy,
                    struct etcd_inquiry *ret_found, struct problem *ret_problem)
{
    char reason[160];
    if (etcd_inquire(etcd, &copy->market, copy->last, ret_found, ret_problem)) {
        return true;
    }
    if (certificates_explain(etcd->ca, etcd->certificate, reason, sizeof reason)) {
        const struct problem found = *ret_problem;
        problem_set(ret_problem, "%.600s; %.200s: %s", found.text, etcd->certificate, reason);
    }
    return false;
}

/* A prepared folder says itself where etcd is; else the backup's config does. */
static bool check_joined(struct joining *joining, struct problem *ret_problem)
{
    struct broker_config config;
    const char *backup = joining->command->words[0];
    const char *folder = joining->command->words[1];
    joining->is_prepared = prepared_is(folder);
    (void)snprintf(joining->place, sizeof joining->place, "%s", folder);
    if (joining->is_prepared
            ? !folder_copy_config(folder, &config, ret_problem) ||
                  !folder_copy_end(backup, &joining->copy, ret_problem) ||
                  !prepared_place(folder, joining->place, sizeof joining->place, ret_problem)
            : !folder_copy_read(backup, &config, &joining->copy, ret_problem)) {
        return false;
    }
    return inquire(&config.etcd, &joining->copy, &joining->found, ret_problem) &&
           check_reach(&joining->copy, &joining->found, ret_problem);
}

static enum cluster_result make_joined(struct joining *joining, struct problem *ret_problem)
{
    bool is_wrong = false;
    const char *folder = joining->command->words[1];
    const struct restore_options options = {.backup = joining->command->words[0],
                                            .folder = joining->place,
                                            .audit = joining->command->audit,
                                            .skip_damaged_blobs = true,
                                            .joins = true};
    if (!backup_restore(&options, &joining->report, &is_wrong, ret_problem)) {
        return is_wrong ? CLUSTER_WRONG : CLUSTER_FAILED;
    }
    return etcd_mark_write(joining->place, joining->found.cluster, ret_problem) &&
                   (!joining->is_prepared || prepared_fill(folder, joining->place, ret_problem))
               ? CLUSTER_OK
               : CLUSTER_FAILED;
}

static enum cluster_result join(const struct cluster_command *command, struct problem *ret_problem)
{
    struct joining joining = {.command = command};
    const char *folder = command->words[1];
    /* The backup is looked at first: a copy of a large market takes long. */
    if (!check_joined(&joining, ret_problem)) {
        return CLUSTER_FAILED;
    }
    const enum cluster_result result = make_joined(&joining, ret_problem);
    if (result != CLUSTER_OK) {
        return result;
    }
    const struct backup_told told = {
        .command = "join", .folder = folder, .is_json = command->is_json, .has_head = true};
    backup_text_print(&told, "joined", &joining.report);
    backup_text_next(&told, &joining.report);
    if (!command->is_json && joining.is_prepared) {
        (void)printf("etcd has %" PRIu64 " entries after it\nNext: bourse-broker run --dir %s\n",
                     joining.found.last - joining.copy.last, folder);
    } else if (!command->is_json) {
        tell_next(folder, &joining.found, &joining.copy);
    }
    return CLUSTER_OK;
}

/* ---------------------------------------------------------------- status */

static int64_t stale_ms(const struct etcd_inquiry *found, const struct folder_copy *copy)
{
    const int64_t behind_ns = found->last > copy->last ? found->last_log_ns - copy->log_ns : 0;
    return behind_ns > 0 ? behind_ns / NS_PER_MS : 0;
}

static uint64_t lag_of(const struct etcd_inquiry *found, const struct folder_copy *copy)
{
    return found->last > copy->last ? found->last - copy->last : 0;
}

static void print_member(const struct etcd_inquiry_member *member)
{
    if (!member->answers) {
        (void)printf("member    %s does not answer\n", member->url);
        return;
    }
    (void)printf("member    %s etcd %s, %" PRIu64 " KiB of which %" PRIu64 " are live", member->url,
                 member->version, member->database_bytes >> 10, member->live_bytes >> 10);
    if (member->quota_bytes > 0) {
        (void)printf(", %" PRIu64 " %% of its quota",
                     member->database_bytes * 100 / member->quota_bytes);
    }
    if (member->behind > 0) {
        (void)printf(", %" PRIu64 " behind", member->behind);
    }
    (void)puts(member->leads ? ", leads" : "");
}

static void print_etcd(const struct etcd_inquiry *found)
{
    for (size_t i = 0; i < found->member_count; i++) {
        print_member(&found->members[i]);
    }
    if (found->no_space) {
        (void)puts(
            "alarm     NOSPACE: etcd has reached its quota and takes no entry. Compact, "
            "defragment each member,\n          then disarm the alarm: docs/operator.md, When "
            "etcd does not answer");
    }
    if (found->is_corrupt) {
        (void)puts("alarm     CORRUPT: the data of a member is damaged. Replace that member, then "
                   "disarm the alarm");
    }
}

static void print_text(const struct etcd_inquiry *found, const struct folder_copy *copy)
{
    const bool is_resigned = replicated_is_resigned(&found->leader);
    if (!found->has_journal) {
        (void)printf("leader    none: this etcd has no journal of the market\n");
    } else {
        (void)printf("leader    %s%s%s\n", is_resigned ? "nobody; the last was " : "",
                     found->leader.broker[0] == '\0' ? "nobody yet" : found->leader.broker,
                     is_resigned ? ", which stopped" : "");
        (void)printf("%s   %s\n", is_resigned ? "next   " : "address",
                     found->leader.address[0] == '\0' ? "-" : found->leader.address);
        (void)printf("epoch     %" PRIu64 "\n", found->leader.epoch);
        (void)printf("index     %" PRIu64 " on etcd, which keeps entries after %" PRIu64 "\n",
                     found->last, found->base);
        (void)printf("own       %" PRIu64 " here: %" PRIu64 " behind, %" PRId64 " ms stale\n",
                     copy->last, lag_of(found, copy), stale_ms(found, copy));
    }
    print_etcd(found);
}

static void print_json(const struct etcd_inquiry *found, const struct folder_copy *copy)
{
    (void)printf("{\"version\":1,\"has_journal\":%s,\"leader\":\"%s\",\"address\":\"%s\","
                 "\"is_resigned\":%s,\"epoch\":%" PRIu64 ",\"base\":%" PRIu64 ",\"index\":%" PRIu64
                 ",\"own_index\":%" PRIu64 ",\"lag\":%" PRIu64 ",\"stale_ms\":%" PRId64
                 ",\"no_space\":%s,\"is_corrupt\":%s,\"members\":[",
                 found->has_journal ? "true" : "false", folder_copy_plain(found->leader.broker),
                 folder_copy_plain(found->leader.address),
                 replicated_is_resigned(&found->leader) ? "true" : "false", found->leader.epoch,
                 found->base, found->last, copy->last, lag_of(found, copy), stale_ms(found, copy),
                 found->no_space ? "true" : "false", found->is_corrupt ? "true" : "false");
    for (size_t i = 0; i < found->member_count; i++) {
        const struct etcd_inquiry_member *member = &found->members[i];
        (void)printf("%s{\"url\":\"%s\",\"answers\":%s,\"version\":\"%s\","
                     "\"database_bytes\":%" PRIu64 ",\"live_bytes\":%" PRIu64
                     ",\"quota_bytes\":%" PRIu64 ",\"behind\":%" PRIu64 ",\"leads\":%s}",
                     i > 0 ? "," : "", folder_copy_plain(member->url),
                     member->answers ? "true" : "false", folder_copy_plain(member->version),
                     member->database_bytes, member->live_bytes, member->quota_bytes,
                     member->behind, member->leads ? "true" : "false");
    }
    (void)puts("]}");
}

static enum cluster_result status(const struct cluster_command *command,
                                  struct problem *ret_problem)
{
    struct broker_config config;
    struct etcd_inquiry found = {.member_count = 0};
    struct folder_copy copy;
    if (!folder_copy_read(command->words[0], &config, &copy, ret_problem)) {
        return CLUSTER_FAILED;
    }
    if (!inquire(&config.etcd, &copy, &found, ret_problem)) {
        if (!command->is_json) {
            print_etcd(&found); /* who does not answer is what the operator has to know */
        }
        return CLUSTER_FAILED;
    }
    if (!folder_copy_end(command->words[0], &copy, ret_problem)) { /* it went on meanwhile */
        return CLUSTER_FAILED;
    }
    if (command->is_json) {
        print_json(&found, &copy);
    } else {
        print_text(&found, &copy);
    }
    return CLUSTER_OK;
}

static enum cluster_result transfer(const struct cluster_command *command,
                                    struct problem *ret_problem)
{
    bool is_usage = false;
    const struct transfer_options options = {
        .folder = command->words[0], .to = command->to, .is_json = command->is_json};
    if (transfer_run(&options, &is_usage, ret_problem)) {
        return CLUSTER_OK;
    }
    return is_usage ? CLUSTER_USAGE : CLUSTER_FAILED;
}

static enum cluster_result init(const struct cluster_command *command, struct problem *ret_problem)
{
    bool is_usage = false;
    const struct cluster_init_options options = {.folder = command->words[0],
                                                 .nodes = command->nodes,
                                                 .operator= command->operator,
                                                 .origin = command->origin,
                                                 .days = command->days};
    if (cluster_init_run(&options, &is_usage, ret_problem)) {
        return CLUSTER_OK;
    }
    return is_usage ? CLUSTER_USAGE : CLUSTER_FAILED;
}

/* Returns an option that the verb would ignore, or NULL. */
static const char *find_misplaced(const struct cluster_command *command, const char *verb)
{
    const bool is_init = strcmp(verb, "init") == 0;
    return command->to != NULL && strcmp(verb, "transfer") != 0 ? "to"
           : is_init                                            ? NULL
           : command->nodes != NULL                             ? "nodes"
           : command->operator!= NULL                           ? "operator"
           : command->origin != NULL                            ? "origin"
           : command->days != NULL                              ? "days"
                                                                : NULL;
}

enum cluster_result cluster_run(const struct cluster_command *command, struct problem *ret_problem)
{
    const char *verb = command->verb != NULL ? command->verb : "";
    const char *misplaced = find_misplaced(command, verb);
    if (misplaced != NULL) {
        problem_set(ret_problem, "cluster %s has no --%s", verb, misplaced);
        return CLUSTER_USAGE;
    }
    if (strcmp(verb, "init") == 0 && command->words[0] != NULL && command->words[1] == NULL) {
        return init(command, ret_problem);
    }
    if (strcmp(verb, "join") == 0 && command->words[1] != NULL) {
        return join(command, ret_problem);
    }
    if (strcmp(verb, "status") == 0 && command->words[0] != NULL && command->words[1] == NULL) {
        return status(command, ret_problem);
    }
    if (strcmp(verb, "transfer") == 0 && command->words[0] != NULL && command->words[1] == NULL) {
        return transfer(command, ret_problem);
    }
    problem_set(ret_problem,
                "write `bourse-broker cluster` and then `status DIR`, `init DIR`, `join "
                "BACKUP DIR` or `transfer DIR`");
    return CLUSTER_USAGE;
}
