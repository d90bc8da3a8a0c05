#include "broker/storage/etcd/etcd_roster.h"

#include "broker/storage/etcd/etcd_calls.h"
#include "broker/storage/etcd/etcd_values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct etcd_roster {
    struct etcd_calls *calls;
    struct id128 journal;
    int64_t lease;       /* 0: none */
    unsigned lease_uses; /* records that the lease has had */
};

struct etcd_roster *etcd_roster_create(const struct etcd_config *config, uint64_t cluster,
                                       const struct id128 *journal)
{
    struct etcd_roster *roster = calloc(1, sizeof *roster);
    if (roster == NULL) {
        return NULL;
    }
    roster->journal = *journal;
    roster->calls = etcd_calls_create(config, cluster);
    if (roster->calls == NULL) {
        etcd_roster_destroy(&roster);
    }
    return roster;
}

void etcd_roster_destroy(struct etcd_roster **self)
{
    struct etcd_roster *roster = *self;
    if (roster != NULL) {
        etcd_calls_destroy(&roster->calls);
        free(roster);
        *self = NULL;
    }
}

/* ---- requests */

static struct etcd_compare compare(enum etcd_condition condition, const struct etcd_key *key)
{
    return (struct etcd_compare){.condition = condition, .key = etcd_key_bytes(key)};
}

static struct etcd_operation put(const struct etcd_key *key, const uint8_t *bytes, size_t length)
{
    return (struct etcd_operation){
        .kind = ETCD_PUT, .key = etcd_key_bytes(key), .value = {.bytes = bytes, .length = length}};
}

static struct etcd_operation get(const struct etcd_key *key)
{
    return (struct etcd_operation){.kind = ETCD_GET, .key = etcd_key_bytes(key)};
}

static enum etcd_roster_status send(struct etcd_roster *roster, const struct etcd_request *request,
                                    struct etcd_answer *ret_answer, struct problem *ret_problem)
{
    const enum journal_status status =
        etcd_calls_send(roster->calls, request, ETCD_ROSTER_MS, ret_answer);
    if (status == JOURNAL_OK) {
        return ETCD_ROSTER_OK;
    }
    problem_set(ret_problem, "the records of brokers on etcd: %s: %s",
                status == JOURNAL_FULL ? "etcd has reached its quota" : journal_status_text(status),
                etcd_calls_error(roster->calls));
    return ETCD_ROSTER_AWAY;
}

/* ---- the record of this broker */

enum etcd_roster_status etcd_roster_enter(struct etcd_roster *roster,
                                          const struct etcd_member *member,
                                          struct problem *ret_problem)
{
    uint8_t bytes[ETCD_MEMBER_BYTES_MAX];
    struct etcd_answer answer;
    const struct etcd_key key = etcd_key_broker(&roster->journal, member->id);
    const size_t length = etcd_member_write(member, bytes);
    const struct etcd_request request = {
        .method = ETCD_TXN, .then_count = 1, .then = {put(&key, bytes, length)}};
    return send(roster, &request, &answer, ret_problem);
}

/* A lease is granted anew before it ends; nobody renews one. */
static enum etcd_roster_status take_lease(struct etcd_roster *roster, struct problem *ret_problem)
{
    struct etcd_answer answer;
    const struct etcd_request request = {.method = ETCD_LEASE_GRANT,
                                         .lease_s = ETCD_ROSTER_LEASE_S};
    if (roster->lease != 0 && roster->lease_uses < ETCD_ROSTER_LEASE_USES) {
        return ETCD_ROSTER_OK;
    }
    const enum etcd_roster_status status = send(roster, &request, &answer, ret_problem);
    roster->lease = status == ETCD_ROSTER_OK ? answer.lease : 0;
    roster->lease_uses = 0;
    if (status == ETCD_ROSTER_OK && roster->lease == 0) {
        problem_set(ret_problem, "etcd grants no lease");
        return ETCD_ROSTER_AWAY;
    }
    return status;
}

/* The comparison keeps a broker that was removed from coming back by a late record. A broker that
 * stops takes the sign of life back. */
enum etcd_roster_status etcd_roster_refresh(struct etcd_roster *roster,
                                            const struct etcd_member *member,
                                            struct problem *ret_problem)
{
    uint8_t bytes[ETCD_MEMBER_BYTES_MAX];
    struct etcd_answer answer;
    const struct etcd_key key = etcd_key_broker(&roster->journal, member->id);
    const struct etcd_key alive = etcd_key_alive(&roster->journal, member->id);
    const size_t length = etcd_member_write(member, bytes);
    if (member->runs) {
        const enum etcd_roster_status status = take_lease(roster, ret_problem);
        if (status != ETCD_ROSTER_OK) {
            return status;
        }
    }
    struct etcd_request request = {.method = ETCD_TXN,
                                   .compare_count = 1,
                                   .compares = {compare(ETCD_IS_PRESENT, &key)},
                                   .then_count = 2,
                                   .then = {put(&key, bytes, length), put(&alive, bytes, 0)}};
    request.then[1].lease = roster->lease;
    if (!member->runs) {
        request.then[1] =
            (struct etcd_operation){.kind = ETCD_DELETE, .key = etcd_key_bytes(&alive)};
    }
    const enum etcd_roster_status status = send(roster, &request, &answer, ret_problem);
    if (status != ETCD_ROSTER_OK) {
        roster->lease = 0; /* it may have ended while etcd was away */
        return status;
    }
    roster->lease_uses++;
    return answer.succeeded ? ETCD_ROSTER_OK : ETCD_ROSTER_GONE;
}

enum etcd_roster_status etcd_roster_remove(struct etcd_roster *roster, const char *id,
                                           const char *other, struct problem *ret_problem)
{
    struct etcd_answer answer;
    const struct etcd_key key = etcd_key_broker(&roster->journal, id);
    const struct etcd_key alive = etcd_key_alive(&roster->journal, id);
    const struct etcd_key stays = etcd_key_broker(&roster->journal, other);
    const struct etcd_request request = {
        .method = ETCD_TXN,
        .compare_count = 1,
        .compares = {compare(ETCD_IS_PRESENT, &stays)},
        .then_count = 2,
        .then = {{.kind = ETCD_DELETE, .key = etcd_key_bytes(&key)},
                 {.kind = ETCD_DELETE, .key = etcd_key_bytes(&alive)}},
    };
    const enum etcd_roster_status status = send(roster, &request, &answer, ret_problem);
    return status != ETCD_ROSTER_OK || answer.succeeded ? status : ETCD_ROSTER_HELD;
}

/* ---- all records */

/* Returns the id at the end of a key, or NULL when the key has another form. */
static const char *id_of(const struct etcd_key *first, struct etcd_bytes key,
                         char ret_id[ETCD_MEMBER_ID_SIZE])
{
    const size_t length = strlen(first->text);
    if (key.length != length + ETCD_MEMBER_ID_SIZE - 1 ||
        memcmp(key.bytes, first->text, length) != 0) {
        return NULL;
    }
    memcpy(ret_id, key.bytes + length, ETCD_MEMBER_ID_SIZE - 1);
    ret_id[ETCD_MEMBER_ID_SIZE - 1] = '\0';
    return etcd_member_is_id(ret_id) ? ret_id : NULL;
}

static struct etcd_request read_all(const struct etcd_key *first, const struct etcd_key *end)
{
    return (struct etcd_request){.method = ETCD_TXN,
                                 .then_count = 1,
                                 .then = {{.kind = ETCD_GET,
                                           .key = etcd_key_bytes(first),
                                           .end = etcd_key_bytes(end),
                                           .limit = ETCD_MEMBERS_KEPT_MAX}}};
}

static void take_records(const struct etcd_answer *answer, const struct etcd_key *first,
                         struct etcd_roster_list *list)
{
    for (size_t i = 0; i < answer->pair_count && list->count < ETCD_MEMBERS_KEPT_MAX; i++) {
        char id[ETCD_MEMBER_ID_SIZE];
        if (id_of(first, answer->pairs[i].key, id) == NULL) {
            continue;
        }
        struct etcd_member member = {.id = ""};
        list->brokers[list->count].is_readable = etcd_member_read(answer->pairs[i].value, &member);
        memcpy(member.id, id, sizeof id);
        list->brokers[list->count++].member = member;
    }
}

static void take_alive(const struct etcd_answer *answer, const struct etcd_key *first,
                       struct etcd_roster_list *list)
{
    for (size_t i = 0; i < answer->pair_count; i++) {
        char id[ETCD_MEMBER_ID_SIZE];
        if (id_of(first, answer->pairs[i].key, id) == NULL) {
            continue;
        }
        for (size_t k = 0; k < list->count; k++) {
            list->brokers[k].is_alive =
                list->brokers[k].is_alive || strcmp(list->brokers[k].member.id, id) == 0;
        }
    }
}

enum etcd_roster_status etcd_roster_read(struct etcd_roster *roster,
                                         struct etcd_roster_list *ret_list,
                                         struct problem *ret_problem)
{
    struct etcd_answer answer;
    const struct etcd_key brokers = etcd_key_broker(&roster->journal, "");
    const struct etcd_key brokers_end = etcd_key_end(&brokers);
    const struct etcd_key alive = etcd_key_alive(&roster->journal, "");
    const struct etcd_key alive_end = etcd_key_end(&alive);
    *ret_list = (struct etcd_roster_list){.count = 0};
    struct etcd_request request = read_all(&brokers, &brokers_end);
    enum etcd_roster_status status = send(roster, &request, &answer, ret_problem);
    if (status != ETCD_ROSTER_OK) {
        return status;
    }
    take_records(&answer, &brokers, ret_list);
    request = read_all(&alive, &alive_end);
    status = send(roster, &request, &answer, ret_problem);
    if (status == ETCD_ROSTER_OK) {
        take_alive(&answer, &alive, ret_list);
    }
    return status;
}

/* ---- other markets */

enum etcd_roster_status etcd_roster_look(struct etcd_roster *roster,
                                         struct etcd_roster_found *ret_found,
                                         struct problem *ret_problem)
{
    struct etcd_answer answer;
    const struct etcd_key first = etcd_key_markets();
    const struct etcd_key end = etcd_key_end(&first);
    const size_t length = strlen(first.text);
    struct etcd_request request = read_all(&first, &end);
    request.then[0].limit = 1;
    *ret_found = (struct etcd_roster_found){.has_market = false};
    const enum etcd_roster_status status = send(roster, &request, &answer, ret_problem);
    if (status == ETCD_ROSTER_OK && answer.pair_count > 0) {
        const struct etcd_bytes key = answer.pairs[0].key;
        ret_found->has_market = true;
        (void)snprintf(ret_found->market, sizeof ret_found->market, "%.*s",
                       (int)(key.length - length), (const char *)key.bytes + length);
    }
    return status;
}

/* ---- the end of a journal */

enum etcd_roster_status etcd_roster_source(struct etcd_roster *roster,
                                           struct etcd_source *ret_source,
                                           struct problem *ret_problem)
{
    struct etcd_answer answer;
    const struct etcd_key key = etcd_key_source(&roster->journal);
    const struct etcd_request request = {.method = ETCD_TXN, .then_count = 1, .then = {get(&key)}};
    const enum etcd_roster_status status = send(roster, &request, &answer, ret_problem);
    if (status != ETCD_ROSTER_OK) {
        return status;
    }
    const struct etcd_bytes value = etcd_answer_value(&answer, etcd_key_bytes(&key));
    return value.bytes != NULL && etcd_source_read(value, ret_source) ? ETCD_ROSTER_OK
                                                                      : ETCD_ROSTER_GONE;
}

/* Says what the leader's key has now, so that nothing else gets lost. */
struct seen {
    struct etcd_key key;
    uint8_t bytes[ETCD_LEADER_BYTES_MAX];
    size_t length;
    bool is_there;
};

static enum etcd_roster_status see(struct etcd_roster *roster, const struct id128 *journal,
                                   struct seen *ret_seen, struct problem *ret_problem)
{
    struct etcd_answer answer;
    *ret_seen = (struct seen){.key = etcd_key_leader(journal)};
    const struct etcd_request request = {
        .method = ETCD_TXN, .then_count = 1, .then = {get(&ret_seen->key)}};
    const enum etcd_roster_status status = send(roster, &request, &answer, ret_problem);
    if (status != ETCD_ROSTER_OK) {
        return status;
    }
    const struct etcd_bytes value = etcd_answer_value(&answer, etcd_key_bytes(&ret_seen->key));
    if (value.length > sizeof ret_seen->bytes) {
        problem_set(ret_problem, "etcd has a leader of the market that no broker wrote");
        return ETCD_ROSTER_HELD;
    }
    ret_seen->is_there = value.bytes != NULL;
    ret_seen->length = value.length;
    if (value.length > 0) {
        memcpy(ret_seen->bytes, value.bytes, value.length);
    }
    return ETCD_ROSTER_OK;
}

static struct etcd_compare still(const struct seen *seen)
{
    return (struct etcd_compare){.condition = seen->is_there ? ETCD_HAS_VALUE : ETCD_IS_ABSENT,
                                 .key = etcd_key_bytes(&seen->key),
                                 .value = {.bytes = seen->bytes, .length = seen->length}};
}

static struct etcd_operation delete_all(const struct etcd_key *first, const struct etcd_key *end)
{
    return (struct etcd_operation){
        .kind = ETCD_DELETE, .key = etcd_key_bytes(first), .end = etcd_key_bytes(end)};
}

enum etcd_roster_status etcd_roster_end_journal(struct etcd_roster *roster,
                                                const struct id128 *market,
                                                const struct id128 *present,
                                                const struct etcd_roster_successor *successor,
                                                struct problem *ret_problem)
{
    struct seen first;
    struct seen newest;
    struct etcd_answer answer;
    uint8_t ended[ETCD_ENDED_BYTES];
    uint8_t source[ETCD_SOURCE_BYTES];
    enum etcd_roster_status status = see(roster, market, &first, ret_problem);
    if (status == ETCD_ROSTER_OK) {
        status = see(roster, present, &newest, ret_problem);
    }
    if (status != ETCD_ROSTER_OK) {
        return status;
    }
    const struct etcd_key brokers = etcd_key_broker(present, "");
    const struct etcd_key brokers_end = etcd_key_end(&brokers);
    const struct etcd_key alive = etcd_key_alive(present, "");
    const struct etcd_key alive_end = etcd_key_end(&alive);
    const struct etcd_key source_key = etcd_key_source(&successor->journal);
    etcd_ended_write(&successor->journal, ended);
    etcd_source_write(&successor->source, source);
    struct etcd_request request = {
        .method = ETCD_TXN,
        .compare_count = 1,
        .compares = {still(&first)},
        .then_count = 4,
        .then = {put(&first.key, ended, sizeof ended), put(&source_key, source, sizeof source),
                 delete_all(&brokers, &brokers_end), delete_all(&alive, &alive_end)},
        .otherwise_count = 1,
        .otherwise = {get(&first.key)},
    };
    if (!id128_equal(market, present)) { /* etcd refuses to put one key twice */
        request.compares[request.compare_count++] = still(&newest);
        request.then[request.then_count++] = put(&newest.key, ended, sizeof ended);
    }
    status = send(roster, &request, &answer, ret_problem);
    if (status != ETCD_ROSTER_OK || answer.succeeded ||
        etcd_bytes_equal(etcd_answer_value(&answer, etcd_key_bytes(&first.key)),
                         (struct etcd_bytes){.bytes = ended, .length = sizeof ended})) {
        return status; /* or an earlier copy of the request was executed */
    }
    problem_set(ret_problem, "another program leads the market, or recovers it, at this moment");
    return ETCD_ROSTER_HELD;
}

/* ---- the members of etcd */

enum etcd_roster_status etcd_roster_hosts(struct etcd_roster *roster,
                                          struct etcd_roster_host ret_hosts[ETCD_PAIRS_MAX],
                                          size_t *ret_count, struct problem *ret_problem)
{
    struct etcd_answer answer;
    const struct etcd_request request = {.method = ETCD_MEMBER_LIST};
    *ret_count = 0;
    const enum etcd_roster_status status = send(roster, &request, &answer, ret_problem);
    if (status != ETCD_ROSTER_OK) {
        return status;
    }
    for (size_t i = 0; i < answer.pair_count; i++) {
        const struct etcd_pair *pair = &answer.pairs[i];
        struct etcd_roster_host *host = &ret_hosts[(*ret_count)++];
        *host = (struct etcd_roster_host){.id = answer.ids[i]};
        (void)snprintf(host->name, sizeof host->name, "%.*s", (int)pair->key.length,
                       pair->key.length > 0 ? (const char *)pair->key.bytes : "");
        (void)snprintf(host->url, sizeof host->url, "%.*s", (int)pair->value.length,
                       pair->value.length > 0 ? (const char *)pair->value.bytes : "");
    }
    return status;
}
