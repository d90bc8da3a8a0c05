/* An etcd_model is a slow and obvious etcd in memory: it executes the bytes of requests one after
 * the other, and answers with bytes. It shares no code with what writes the requests. */
#ifndef BOURSE_TESTS_SUPPORT_ETCD_MODEL_H
#define BOURSE_TESTS_SUPPORT_ETCD_MODEL_H

#include "broker/storage/etcd/etcd_message.h"
#include "broker/storage/etcd/grpc.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ETCD_MODEL_KEYS = 1024, ETCD_MODEL_KEY = 80, ETCD_MODEL_VALUE = 300 };

struct etcd_model_key {
    char key[ETCD_MODEL_KEY];
    uint8_t value[ETCD_MODEL_VALUE];
    size_t length;
    uint64_t version;
};

struct etcd_model {
    struct etcd_model_key keys[ETCD_MODEL_KEYS]; /* in order */
    size_t count;
    uint64_t revision, compacted;
    bool is_full; /* the quota is reached: transactions that put are refused */
};

struct etcd_model_answer {
    enum grpc_outcome outcome;
    uint8_t bytes[8192];
    size_t length;
    bool has_put; /* the request puts on one of its branches */
};

/* Executes a request, or ends the test when its bytes are none. */
void etcd_model_execute(struct etcd_model *model, enum etcd_method method, const uint8_t *request,
                        size_t length, struct etcd_model_answer *ret_answer);
/* Returns true when the request puts something, on either branch: all members agree on it. */
bool etcd_model_puts(enum etcd_method method, const uint8_t *request, size_t length);
const struct etcd_model_key *etcd_model_find(const struct etcd_model *model, const char *key);

#endif
