/* tests/sim/cluster/watch.h - what may ever be put into etcd: the watch sees each key that changes,
 * in the one order of etcd, and fails the run when a broker may not do that. */
#ifndef BOURSE_TESTS_SIM_CLUSTER_WATCH_H
#define BOURSE_TESTS_SIM_CLUSTER_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void watch_start(void);
/* A broker's transaction put a key, or deleted one (`value` NULL and `was_there`). Returns true
 * when a broker has taken the lead by that. */
bool watch_key(unsigned broker, const char *key, const uint8_t *value, size_t length,
               bool was_there);

#endif
