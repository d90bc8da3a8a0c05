/* broker/blob/blob_check.h - files of the store that are hashed because somebody says that their
 * bytes are wrong.
 *
 * Whoever read other bytes than he asked for says so, and is believed as far as the broker's own
 * hash agrees. A large file takes long, so that a thread hashes it. Few are hashed at a time; one
 * that was found right is not hashed again for BLOB_CHECK_QUIET_NS, whoever asks. One thread owns
 * the checks. */
#ifndef BOURSE_BROKER_BLOB_BLOB_CHECK_H
#define BOURSE_BROKER_BLOB_BLOB_CHECK_H

#include "base/checked.h"
#include "base/id.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    BLOB_CHECKS_MAX = 2,    /* at a time */
    BLOB_CHECKS_KNOWN = 64, /* found right lately */
};
#define BLOB_CHECK_QUIET_NS (60 * NS_PER_S)

struct blob_checks;

/* NULL: out of memory or descriptors. */
struct blob_checks *blob_checks_create(void);
/* Ends what is under way. */
void blob_checks_destroy(struct blob_checks **self);

/* Whether the blob was found right lately. */
bool blob_checks_knows(const struct blob_checks *checks, const struct hash32 *hash, int64_t now_ns);
/* Starts to hash the file, unless that is under way. `fd` is the checks' in any case. Without room
 * nothing happens: who asks asks again. */
void blob_checks_begin(struct blob_checks *checks, const struct hash32 *hash, int fd);
bool blob_checks_has_room(const struct blob_checks *checks, const struct hash32 *hash);

/* Readable when one has ended. */
int blob_checks_descriptor(const struct blob_checks *checks);
enum blob_check_result {
    BLOB_CHECK_RIGHT,
    BLOB_CHECK_WRONG,  /* other bytes, or fewer */
    BLOB_CHECK_UNREAD, /* the disk did not give it: nobody knows */
};
/* The next one that ended; false: none. */
bool blob_checks_take_ended(struct blob_checks *checks, int64_t now_ns, struct hash32 *ret_hash,
                            enum blob_check_result *ret_result);

#endif
