#include "broker/storage/etcd/etcd_calls.h"

#include "base/checked.h"
#include "broker/storage/etcd/etcd_version.h"
#include "broker/storage/etcd/grpc_member.h"
#include "runtime/clock.h"
#include "runtime/log.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
    CHECK_MS = 2000,        /* one member's answer at the start */
    EXPLAIN_MS = 200,       /* one member's answer during an outage */
    PATIENCE_MAX_MS = 5000, /* one request */
    PATIENCE_LEAST_MS = 50,
    PAUSE_MS = 20, /* after all members failed */
    SEND_BYTES_MAX = 4096,
    ERROR_SIZE = 640
};

struct etcd_calls {
    struct grpc_member *members[ETCD_MEMBERS_MAX];
    size_t count, present;
    uint64_t cluster;
    bool is_other_said; /* the log knows of a member of another cluster */
    char error[ERROR_SIZE];
};

struct etcd_calls *etcd_calls_create(const struct etcd_config *config, uint64_t cluster)
{
    struct etcd_calls *calls = calloc(1, sizeof *calls);
    if (calls == NULL) {
        return NULL;
    }
    calls->cluster = cluster;
    for (; calls->count < config->member_count; calls->count++) {
        calls->members[calls->count] = grpc_member_create(config, calls->count);
        if (calls->members[calls->count] == NULL) {
            etcd_calls_destroy(&calls);
            return NULL;
        }
    }
    return calls;
}

void etcd_calls_destroy(struct etcd_calls **self)
{
    struct etcd_calls *calls = *self;
    if (calls != NULL) {
        for (size_t i = 0; i < calls->count; i++) {
            grpc_member_destroy(&calls->members[i]);
        }
        free(calls);
        *self = NULL;
    }
}

uint64_t etcd_calls_cluster(const struct etcd_calls *calls)
{
    return calls->cluster;
}

const char *etcd_calls_error(const struct etcd_calls *calls)
{
    return calls->error;
}

/* ---- one call */

static void note_error(struct etcd_calls *calls, const struct grpc_member *member, const char *why)
{
    (void)snprintf(calls->error, sizeof calls->error, "%s: %s", grpc_member_url(member), why);
}

/* The certificate and the cluster's id are what tells our etcd from another one. */
static bool is_ours(struct etcd_calls *calls, const struct grpc_member *member,
                    const struct etcd_answer *answer)
{
    if (calls->cluster == 0) {
        calls->cluster = answer->cluster;
    }
    if (answer->cluster == calls->cluster) {
        return true;
    }
    char why[160];
    (void)snprintf(why, sizeof why,
                   "the member belongs to etcd cluster %016" PRIx64
                   ", the journal is on %016" PRIx64,
                   answer->cluster, calls->cluster);
    note_error(calls, member, why);
    if (!calls->is_other_said) {
        calls->is_other_said = true;
        log_error("%s; its answers do not count", calls->error);
    }
    return false;
}

static enum grpc_outcome call(struct etcd_calls *calls, struct grpc_member *member,
                              enum etcd_method method, const uint8_t *request, size_t length,
                              int64_t patience_ms, struct etcd_answer *ret_answer)
{
    const struct grpc_reply reply =
        grpc_member_call(member, etcd_method_path(method), request, length, (long)patience_ms);
    if (reply.outcome != GRPC_ANSWERED) {
        note_error(calls, member, grpc_member_error(member));
        return reply.outcome;
    }
    if (!etcd_answer_read(method, reply.message, reply.length, ret_answer)) {
        note_error(calls, member, "the answer cannot be read");
        return GRPC_LOST;
    }
    if (method == ETCD_ALARMS) {
        return GRPC_ANSWERED; /* etcd 3.4 answers this method without the cluster's id */
    }
    return is_ours(calls, member, ret_answer) ? GRPC_ANSWERED : GRPC_OTHER;
}

/* ---- the start */

static bool check_version(const struct grpc_member *member, const char *version,
                          struct problem *ret_problem)
{
    const char *advice;
    switch (etcd_version_judge(version, &advice)) {
    case ETCD_VERSION_GOOD:
        return true;
    case ETCD_VERSION_OLD:
        log_warning("%s runs etcd %s: %s", grpc_member_url(member), version, advice);
        return true;
    case ETCD_VERSION_REFUSED:
        break;
    }
    problem_set(ret_problem, "%s runs etcd \"%s\": %s", grpc_member_url(member), version, advice);
    return false;
}

static bool check_alarms(const struct grpc_member *member, const struct etcd_answer *answer,
                         struct problem *ret_problem)
{
    if (answer->alarm_is_corrupt) {
        problem_set(ret_problem,
                    "etcd says that the data of one of its members is damaged (%s, alarm CORRUPT): "
                    "replace that member, disarm the alarm, then start again",
                    grpc_member_url(member));
        return false;
    }
    if (answer->alarm_no_space) {
        log_warning("etcd has reached its quota and takes no entry (%s, alarm NOSPACE): compact, "
                    "defragment each member, then disarm the alarm; docs/operator.md says how",
                    grpc_member_url(member));
    }
    return true;
}

static bool check_member(struct etcd_calls *calls, struct grpc_member *member, bool *ret_answers,
                         struct problem *ret_problem)
{
    struct etcd_answer answer;
    *ret_answers = false;
    enum grpc_outcome outcome = call(calls, member, ETCD_STATUS, NULL, 0, CHECK_MS, &answer);
    if (outcome == GRPC_OTHER) {
        problem_set(ret_problem,
                    "%s: journal.etcd names members of two clusters, or etcd was made "
                    "anew",
                    calls->error);
        return false;
    }
    if (outcome != GRPC_ANSWERED) {
        log_warning("etcd does not answer: %s", calls->error);
        return true;
    }
    if (!check_version(member, answer.version, ret_problem)) {
        return false;
    }
    *ret_answers = true;
    outcome = call(calls, member, ETCD_ALARMS, NULL, 0, CHECK_MS, &answer);
    return outcome != GRPC_ANSWERED || check_alarms(member, &answer, ret_problem);
}

bool etcd_calls_check(struct etcd_calls *calls, struct problem *ret_problem)
{
    size_t answered = 0;
    for (size_t i = 0; i < calls->count; i++) {
        bool answers;
        if (!check_member(calls, calls->members[i], &answers, ret_problem)) {
            return false;
        }
        if (answers) {
            calls->present = answered == 0 ? i : calls->present;
            answered++;
        }
    }
    if (answered == 0) {
        problem_set(ret_problem, "no member of etcd answers: %s", calls->error);
    }
    return answered > 0;
}

bool etcd_calls_ask(struct etcd_calls *calls, size_t member, struct etcd_answer *ret_answer)
{
    return call(calls, calls->members[member], ETCD_STATUS, NULL, 0, CHECK_MS, ret_answer) ==
           GRPC_ANSWERED;
}

bool etcd_calls_ask_alarms(struct etcd_calls *calls, size_t member, struct etcd_answer *ret_answer)
{
    return call(calls, calls->members[member], ETCD_ALARMS, NULL, 0, CHECK_MS, ret_answer) ==
           GRPC_ANSWERED;
}

/* ---- an outage */

void etcd_calls_explain(struct etcd_calls *calls, char *ret_text, size_t capacity)
{
    const char *silent[ETCD_MEMBERS_MAX];
    size_t count = 0;
    size_t length = 0;
    for (size_t i = 0; i < calls->count; i++) {
        struct etcd_answer answer;
        if (call(calls, calls->members[i], ETCD_STATUS, NULL, 0, EXPLAIN_MS, &answer) !=
            GRPC_ANSWERED) {
            silent[count++] = grpc_member_url(calls->members[i]);
        }
    }
    if (count == 0) {
        (void)snprintf(ret_text, capacity, "the members of etcd answer, and have no leader");
        return;
    }
    for (size_t i = 0; i < count && length < capacity; i++) {
        const int written = snprintf(ret_text + length, capacity - length, "%s%s",
                                     i == 0           ? ""
                                     : i + 1 == count ? " and "
                                                      : ", ",
                                     silent[i]);
        length += written > 0 ? (size_t)written : 0;
    }
    if (length < capacity) {
        (void)snprintf(ret_text + length, capacity - length, "%s",
                       count == 1 ? " does not answer" : " do not answer");
    }
}

/* ---- an operation */

static void pause_a_moment(void)
{
    const struct timespec pause = {.tv_nsec = PAUSE_MS * NS_PER_MS};
    (void)nanosleep(&pause, NULL); /* an early end only causes an early try */
}

static int64_t least(int64_t one, int64_t other)
{
    return one < other ? one : other;
}

static bool is_failure(enum grpc_outcome outcome)
{
    return outcome != GRPC_ANSWERED && outcome != GRPC_NO_SPACE;
}

/* Leaves a member that failed for the next one. */
static void move_on(struct etcd_calls *calls, size_t *failures, int64_t *patience_ms)
{
    calls->present = (calls->present + 1) % calls->count;
    if (++*failures % calls->count == 0) {
        *patience_ms = least(2 * *patience_ms, PATIENCE_MAX_MS);
        pause_a_moment();
    }
}

enum journal_status etcd_calls_run(struct etcd_calls *calls, struct etcd_log *log, int64_t bound_ms,
                                   int64_t patience_ms)
{
    const int64_t end_ns = clock_monotonic_ns() + bound_ms * NS_PER_MS;
    struct etcd_answer answer = {.cluster = 0};
    size_t failures = 0;
    for (;;) {
        enum etcd_method method;
        size_t length;
        const uint8_t *request = etcd_log_request(log, &method, &length);
        const int64_t left_ms = (end_ns - clock_monotonic_ns()) / NS_PER_MS;
        const int64_t wait_ms = least(patience_ms, left_ms);
        const enum grpc_outcome outcome =
            call(calls, calls->members[calls->present], method, request, length,
                 wait_ms > PATIENCE_LEAST_MS ? wait_ms : PATIENCE_LEAST_MS, &answer);
        if (!etcd_log_take(log, outcome, &answer)) {
            return etcd_log_status(log);
        }
        if (outcome == GRPC_NO_SPACE || clock_monotonic_ns() >= end_ns) {
            return etcd_log_give_up(log);
        }
        if (is_failure(outcome)) {
            move_on(calls, &failures, &patience_ms);
        }
    }
}

enum journal_status etcd_calls_send(struct etcd_calls *calls, const struct etcd_request *request,
                                    int64_t patience_ms, struct etcd_answer *ret_answer)
{
    uint8_t bytes[SEND_BYTES_MAX];
    bool fits;
    bool is_refused = true;
    const size_t length = etcd_request_write(request, bytes, sizeof bytes, &fits);
    assert(fits);
    for (size_t i = 0; i < calls->count; i++) {
        const enum grpc_outcome outcome =
            call(calls, calls->members[calls->present], request->method, bytes, length, patience_ms,
                 ret_answer);
        if (outcome == GRPC_ANSWERED || outcome == GRPC_NO_SPACE) {
            return outcome == GRPC_ANSWERED ? JOURNAL_OK : JOURNAL_FULL;
        }
        is_refused = is_refused && outcome == GRPC_REFUSED;
        calls->present = (calls->present + 1) % calls->count;
    }
    return is_refused ? JOURNAL_UNAVAILABLE : JOURNAL_UNKNOWN;
}
