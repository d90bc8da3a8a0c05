#include "broker/cluster.h"

#include "base/checked.h"
#include "broker/backup_text.h"
#include "broker/cluster/certificates.h"
#include "broker/cluster/cluster_init.h"
#include "broker/cluster/folder_copy.h"
#include "broker/cluster/leave.h"
#include "broker/cluster/prepared.h"
#include "broker/cluster/recover.h"
#include "broker/cluster/status_page.h"
#include "broker/cluster/transfer.h"
#include "broker/config.h"
#include "broker/storage/backup.h"
#include "broker/storage/etcd/etcd_inquiry.h"
#include "broker/storage/etcd/etcd_mark.h"
#include "broker/storage/etcd/etcd_roster.h"
#include "runtime/clock.h"
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
    const struct etcd_mark mark = {.cluster = joining->found.cluster,
                                   .journal = joining->found.journal};
    return etcd_mark_write(joining->place, &mark, ret_problem) &&
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

/* The records come over a connection of their own. */
static bool read_brokers(const struct broker_config *config, const struct etcd_inquiry *found,
                         struct etcd_roster_list *ret_list, struct problem *ret_problem)
{
    struct etcd_roster *roster = etcd_roster_create(&config->etcd, found->cluster, &found->journal);
    if (roster == NULL) {
        problem_set(ret_problem, "no memory for the records of brokers");
        return false;
    }
    const enum etcd_roster_status status = etcd_roster_read(roster, ret_list, ret_problem);
    etcd_roster_destroy(&roster);
    return status == ETCD_ROSTER_OK;
}

static void print_page(const struct cluster_command *command, const struct status_page *page)
{
    if (command->is_metrics) {
        status_page_metrics(stdout, page);
    } else if (command->is_json) {
        status_page_json(stdout, page);
    } else {
        status_page_text(stdout, page);
    }
}

static enum cluster_result status(const struct cluster_command *command,
                                  struct problem *ret_problem)
{
    struct broker_config config;
    struct etcd_inquiry found = {.member_count = 0};
    struct folder_copy copy;
    struct etcd_mark mark;
    struct etcd_roster_list brokers = {.count = 0};
    struct status_page page = {.etcd = &found, .own = &copy, .brokers = &brokers, .own_id = ""};
    const char *folder = command->words[0];
    if (!folder_copy_read(folder, &config, &copy, ret_problem) ||
        !etcd_mark_read(folder, &mark, ret_problem)) {
        return CLUSTER_FAILED;
    }
    if (!inquire(&config.etcd, &copy, &found, ret_problem)) {
        /* The operator has to know who does not answer. */
        if (command->is_metrics) {
            status_page_metrics(stdout, &page);
        } else if (!command->is_json) {
            status_page_etcd(stdout, &found);
        }
        return CLUSTER_FAILED;
    }
    if (!read_brokers(&config, &found, &brokers, ret_problem) ||
        !folder_copy_end(folder, &copy, ret_problem)) { /* it went on meanwhile */
        return CLUSTER_FAILED;
    }
    page.own_id = mark.member;
    page.is_own_old =
        found.has_journal && !id128_equal(etcd_mark_journal(&mark, &copy.market), &found.journal);
    page.now_ms = clock_wall_ns() / NS_PER_MS;
    print_page(command, &page);
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

static enum cluster_result leave(const struct cluster_command *command, struct problem *ret_problem)
{
    bool is_usage = false;
    const struct leave_options options = {
        .folder = command->words[0], .name = command->name, .is_json = command->is_json};
    if (leave_run(&options, &is_usage, ret_problem)) {
        return CLUSTER_OK;
    }
    return is_usage ? CLUSTER_USAGE : CLUSTER_FAILED;
}

static enum cluster_result recover(const struct cluster_command *command,
                                   struct problem *ret_problem)
{
    bool is_wrong = false;
    const bool has_backup = command->words[1] != NULL;
    const struct recover_options options = {.backup = has_backup ? command->words[0] : NULL,
                                            .folder = command->words[has_backup ? 1 : 0],
                                            .audit = command->audit,
                                            .head = command->head,
                                            .checkpoint = command->checkpoint,
                                            .gives_up = command->gives_up,
                                            .is_json = command->is_json};
    if (!has_backup && (command->head != NULL || command->checkpoint != NULL)) {
        problem_set(ret_problem, "--head and --checkpoint are for a backup: write `cluster recover "
                                 "BACKUP DIR`");
        return CLUSTER_USAGE;
    }
    if (recover_run(&options, &is_wrong, ret_problem)) {
        return CLUSTER_OK;
    }
    return is_wrong ? CLUSTER_WRONG : CLUSTER_FAILED;
}

/* ---------------------------------------------------------------- the command line */

static const struct {
    const char *verb;
    int least, most; /* words after it */
    enum cluster_result (*run)(const struct cluster_command *command, struct problem *ret_problem);
} verbs[] = {
    {"status", 1, 1, status},     {"init", 1, 1, init},   {"join", 2, 2, join},
    {"transfer", 1, 1, transfer}, {"leave", 1, 1, leave}, {"recover", 1, 2, recover},
};

/* Returns an option that the verb would ignore, or NULL. */
static const char *find_misplaced(const struct cluster_command *command, const char *verb)
{
    const struct {
        const char *name, *verb;
        bool is_given;
    } options[] = {{"to", "transfer", command->to != NULL},
                   {"nodes", "init", command->nodes != NULL},
                   {
                       "operator",
                       "init",
                       command->operator!= NULL },
                       {"origin", "init", command->origin != NULL},
                       {"days", "init", command->days != NULL},
                       {"name", "leave", command->name != NULL},
                       {"metrics", "status", command->is_metrics},
                       {"head", "recover", command->head != NULL},
                       {"checkpoint", "recover", command->checkpoint != NULL},
                       {"give-up-entries", "recover", command->gives_up},
    };
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        if (options[i].is_given && strcmp(options[i].verb, verb) != 0) {
            return options[i].name;
        }
    }
    return NULL;
}

enum cluster_result cluster_run(const struct cluster_command *command, struct problem *ret_problem)
{
    const char *verb = command->verb != NULL ? command->verb : "";
    const int words = command->words[0] == NULL ? 0 : command->words[1] == NULL ? 1 : 2;
    const char *misplaced = find_misplaced(command, verb);
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (strcmp(verb, verbs[i].verb) != 0 || words < verbs[i].least || words > verbs[i].most) {
            continue;
        }
        if (misplaced != NULL) {
            problem_set(ret_problem, "cluster %s has no --%s", verb, misplaced);
            return CLUSTER_USAGE;
        }
        return verbs[i].run(command, ret_problem);
    }
    problem_set(ret_problem,
                "write `bourse-broker cluster` and then `status DIR`, `init DIR`, `join BACKUP "
                "DIR`, `transfer DIR`, `leave DIR`, `recover DIR` or `recover BACKUP DIR`");
    return CLUSTER_USAGE;
}
