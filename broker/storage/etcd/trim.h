/* broker/storage/etcd/trim.h decides how much of the journal etcd keeps. The code is pure.
 *
 * The broker's own disk has the whole journal. Etcd keeps the end of it for brokers that follow:
 * between one and two times TRIM_KEEP_BYTES, and what was there when this broker began to lead. The
 * beginning goes in small steps, one after each entry, so that no entry waits for a long one. */
#ifndef BOURSE_BROKER_STORAGE_ETCD_TRIM_H
#define BOURSE_BROKER_STORAGE_ETCD_TRIM_H

#include <stdbool.h>
#include <stdint.h>

#define TRIM_KEEP_BYTES (UINT64_C(128) << 20)
enum { TRIM_STEP = 100 }; /* entries */

struct replicated_trim {
    uint64_t bytes;  /* appended since `middle` */
    uint64_t middle; /* entry */
    uint64_t target; /* what comes before this entry may go */
    uint64_t base;   /* the entry before the first one that etcd keeps */
};

/* Begins with a log whose base and last entry are given. */
struct replicated_trim trim_start(uint64_t base, uint64_t last);
/* Notes that entry `last` of `length` bytes was appended. Returns true when the log is to be cut up
 * to *ret_index, which trim_done() then confirms. */
bool trim_step(struct replicated_trim *trim, uint64_t last, uint64_t length, uint64_t *ret_index);
void trim_done(struct replicated_trim *trim, uint64_t index);

#endif
