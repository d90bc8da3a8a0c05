/* broker/storage/etcd/etcd_calls.h makes calls to the members of one etcd cluster, one after the
 * other.
 *
 * One thread uses it. A member that fails is left for the next one; the next call begins there. */
#ifndef BOURSE_BROKER_STORAGE_ETCD_ETCD_CALLS_H
#define BOURSE_BROKER_STORAGE_ETCD_ETCD_CALLS_H

#include "base/problem.h"
#include "broker/storage/etcd/etcd_config.h"
#include "broker/storage/etcd/etcd_log.h"

#include <stdbool.h>
#include <stdint.h>

struct etcd_calls;

/* `cluster` is the id of the etcd cluster whose answers count; 0: the first one that answers.
 * Returns NULL when memory is short. */
struct etcd_calls *etcd_calls_create(const struct etcd_config *config, uint64_t cluster);
void etcd_calls_destroy(struct etcd_calls **self);

/* Asks every member for its version and its alarms. Logs a warning for what only matters later.
 * Returns false with a problem when no member answers, or one must not keep a journal. */
bool etcd_calls_check(struct etcd_calls *calls, struct problem *ret_problem);
/* Asks one member for its state. Returns false when it does not answer. */
bool etcd_calls_ask(struct etcd_calls *calls, size_t member, struct etcd_answer *ret_answer);
/* Asks one member for the alarms of the cluster. Returns false when it does not answer. */
bool etcd_calls_ask_alarms(struct etcd_calls *calls, size_t member, struct etcd_answer *ret_answer);
/* Asks every member shortly, and writes why etcd takes no entry: which members do not answer, or
 * that those that answer have no leader. */
void etcd_calls_explain(struct etcd_calls *calls, char *ret_text, size_t capacity);
/* Runs the operation that was begun in `log` until it is decided, or `bound_ms` have passed. One
 * request waits `patience_ms` at first, and longer each time all members were tried. */
enum journal_status etcd_calls_run(struct etcd_calls *calls, struct etcd_log *log, int64_t bound_ms,
                                   int64_t patience_ms);
/* Sends one request beside the journal's. Each member is asked once, for up to `patience_ms`, until
 * one answers. OK: *ret_answer is the answer, until the next call. FULL: etcd has reached its
 * quota. UNKNOWN: no member answered, and the request may be executed all the same. UNAVAILABLE:
 * the members refuse it. */
enum journal_status etcd_calls_send(struct etcd_calls *calls, const struct etcd_request *request,
                                    int64_t patience_ms, struct etcd_answer *ret_answer);
/* Returns the id of the etcd cluster, 0 before any answer. */
uint64_t etcd_calls_cluster(const struct etcd_calls *calls);
/* Returns why the newest failed call failed, with the member's address. */
const char *etcd_calls_error(const struct etcd_calls *calls);

#endif
