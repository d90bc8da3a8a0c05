#include "broker/storage/etcd/etcd_inquiry.h"

#include "base/sha256.h"
#include "broker/storage/entry.h"
#include "broker/storage/etcd/etcd_calls.h"
#include "broker/storage/etcd/etcd_log.h"

#include <stdio.h>
#include <string.h>

enum { BOUND_MS = 5000, PATIENCE_MS = 1000 };

/* An inquiry is under way. */
struct inquiry {
    struct etcd_calls *calls;
    struct etcd_log *log;
    struct etcd_inquiry *found;
};

static void ask_member(struct inquiry *inquiry, size_t number, uint64_t *ret_applied)
{
    struct etcd_answer answer;
    struct etcd_inquiry *found = inquiry->found;
    struct etcd_inquiry_member *member = &found->members[number];
    member->answers = etcd_calls_ask(inquiry->calls, number, &answer);
    if (!member->answers) {
        return;
    }
    (void)snprintf(member->version, sizeof member->version, "%s", answer.version);
    member->database_bytes = answer.database_bytes;
    member->live_bytes = answer.live_bytes;
    member->quota_bytes = answer.quota_bytes;
    member->leads = answer.leader != 0 && answer.leader == answer.member;
    found->has_quorum = found->has_quorum || answer.leader != 0;
    *ret_applied = answer.applied;
    if (etcd_calls_ask_alarms(inquiry->calls, number, &answer)) {
        found->no_space = found->no_space || answer.alarm_no_space;
        found->is_corrupt = found->is_corrupt || answer.alarm_is_corrupt;
    }
}

/* Returns false with a problem when no member answers. The first reason is told: a certificate that
 * is refused, for example. */
static bool ask_members(struct inquiry *inquiry, const struct etcd_config *config,
                        struct problem *ret_problem)
{
    struct etcd_inquiry *found = inquiry->found;
    uint64_t applied[ETCD_MEMBERS_MAX] = {0};
    uint64_t most = 0;
    bool answers = false;
    found->member_count = config->member_count;
    for (size_t i = 0; i < config->member_count; i++) {
        found->members[i].url = config->members[i];
        ask_member(inquiry, i, &applied[i]);
        answers = answers || found->members[i].answers;
        most = applied[i] > most ? applied[i] : most;
        if (i == 0 && !answers) {
            problem_set(ret_problem, "no member of etcd answers: %s",
                        etcd_calls_error(inquiry->calls));
        }
    }
    for (size_t i = 0; i < config->member_count; i++) {
        found->members[i].behind = found->members[i].answers ? most - applied[i] : 0;
    }
    found->cluster = etcd_calls_cluster(inquiry->calls);
    return answers;
}

static enum journal_status run(const struct inquiry *inquiry)
{
    return etcd_calls_run(inquiry->calls, inquiry->log, BOUND_MS, PATIENCE_MS);
}

/* Says whether etcd has the entry; its bytes stay until the next read. */
static enum journal_status look_for(const struct inquiry *inquiry, uint64_t index,
                                    struct journal_entry *ret_entry)
{
    etcd_log_read(inquiry->log, index);
    const enum journal_status status = run(inquiry);
    return status == JOURNAL_OK && !etcd_log_entry(inquiry->log, index, ret_entry) ? JOURNAL_CORRUPT
                                                                                   : status;
}

static int64_t log_time_of(const struct journal_entry *entry)
{
    struct entry_head head;
    struct entry_command command;
    size_t position = 0;
    int64_t last_ns = 0;
    if (entry_read_head(entry->bytes, entry->length, &head)) {
        while (entry_next(entry->bytes, entry->length, &position, &command)) {
            last_ns = command.log_time_ns;
        }
    }
    return last_ns;
}

/* The log has no gap: the end lies between an entry that is there and one that is not. */
static enum journal_status find_end(const struct inquiry *inquiry)
{
    struct etcd_inquiry *found = inquiry->found;
    struct journal_entry entry;
    enum journal_status status = JOURNAL_OK;
    uint64_t there = found->base;
    uint64_t step = 1;
    if (found->has_asked && found->last > there) {
        there = found->last;
    }
    for (bool is_narrowing = false; step > 0;) {
        status = look_for(inquiry, there + step, &entry);
        if (status == JOURNAL_OK) {
            there += step;
            step = is_narrowing ? step / 2 : step * 2;
        } else if (status == JOURNAL_UNAVAILABLE) {
            is_narrowing = true;
            step /= 2;
        } else {
            return status;
        }
    }
    found->last = there;
    if (there > 0 && look_for(inquiry, there, &entry) == JOURNAL_OK) {
        found->last_log_ns = log_time_of(&entry);
    }
    return JOURNAL_OK;
}

/* A journal that has ended names the newest one, whose leader is then asked for. */
static enum journal_status look_for_leader(struct inquiry *inquiry)
{
    struct id128 successor;
    etcd_log_look(inquiry->log);
    enum journal_status status = run(inquiry);
    if (status == JOURNAL_UNAVAILABLE && etcd_log_successor(inquiry->log, &successor)) {
        etcd_log_destroy(&inquiry->log);
        inquiry->log = etcd_log_create(&successor);
        if (inquiry->log == NULL) {
            return JOURNAL_UNKNOWN;
        }
        inquiry->found->journal = successor;
        etcd_log_look(inquiry->log);
        status = run(inquiry);
    }
    return status;
}

static enum journal_status ask_journal(struct inquiry *inquiry, uint64_t index)
{
    struct etcd_inquiry *found = inquiry->found;
    struct journal_entry entry;
    enum journal_status status = look_for_leader(inquiry);
    if (status == JOURNAL_UNAVAILABLE) {
        return JOURNAL_OK; /* etcd answered, and knows no leader of this market */
    }
    if (status != JOURNAL_OK) {
        return status;
    }
    status = look_for(inquiry, index, &entry); /* brings the base, too */
    if (status == JOURNAL_OK && index > 0) {
        found->has_asked = true;
        found->asked = sha256_of(entry.bytes, entry.length);
        found->last = index;
    } else if (status != JOURNAL_OK && status != JOURNAL_UNAVAILABLE && status != JOURNAL_BEHIND) {
        return status;
    }
    found->has_journal = true;
    found->leader = *etcd_log_leader(inquiry->log);
    found->base = etcd_log_base(inquiry->log)->index;
    return find_end(inquiry);
}

bool etcd_inquire(const struct etcd_config *config, const struct id128 *market, uint64_t index,
                  struct etcd_inquiry *ret_inquiry, struct problem *ret_problem)
{
    struct inquiry inquiry = {.calls = etcd_calls_create(config, 0),
                              .log = etcd_log_create(market),
                              .found = ret_inquiry};
    enum journal_status status = JOURNAL_UNAVAILABLE;
    *ret_inquiry = (struct etcd_inquiry){.journal = *market};
    if (inquiry.calls == NULL || inquiry.log == NULL) {
        problem_set(ret_problem, "no memory for the journal on etcd, or libcurl lacks HTTP/2");
    } else if (ask_members(&inquiry, config, ret_problem) && !ret_inquiry->has_quorum) {
        problem_set(ret_problem, "etcd has no quorum: too few of its members answer, or they have "
                                 "no leader yet");
    } else if (ret_inquiry->has_quorum) {
        status = ask_journal(&inquiry, index);
        if (status != JOURNAL_OK) {
            problem_set(ret_problem, "etcd does not tell of the journal: %s: %s",
                        journal_status_text(status), etcd_calls_error(inquiry.calls));
        }
    }
    etcd_calls_destroy(&inquiry.calls);
    etcd_log_destroy(&inquiry.log);
    return status == JOURNAL_OK;
}
