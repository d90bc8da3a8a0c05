/* A check hashes a file of the store because a reader reports that its bytes are wrong.
 *
 * The report counts only if the broker's own hash agrees. A large file takes long, so a thread
 * hashes it. Few files are hashed at a time. A file that was found right is not hashed again for
 * BLOB_CHECK_QUIET_NS, whoever reports it. One thread owns the checks. */
#ifndef BOURSE_BROKER_BLOB_BLOB_CHECK_H
#define BOURSE_BROKER_BLOB_BLOB_CHECK_H

#include "base/checked.h"
#include "base/id.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    BLOB_CHECKS_MAX = 2,    /* checks under way */
    BLOB_CHECKS_KNOWN = 64, /* blobs remembered as found right lately */
};
#define BLOB_CHECK_QUIET_NS (60 * NS_PER_S)

struct blob_checks;

/* Returns NULL when memory or descriptors are short. */
struct blob_checks *blob_checks_create(void);
/* Ends all checks under way and frees everything. */
void blob_checks_destroy(struct blob_checks **self);

/* Returns true when the blob was found right lately. */
bool blob_checks_knows(const struct blob_checks *checks, const struct hash32 *hash, int64_t now_ns);
/* Starts to hash the file, unless that is under way. `fd` belongs to the checks from here on.
 * Nothing happens when there is no room: the reader will report again. */
void blob_checks_begin(struct blob_checks *checks, const struct hash32 *hash, int fd);
/* Returns true when a check of the file can begin: none is under way, and a place is free. */
bool blob_checks_has_room(const struct blob_checks *checks, const struct hash32 *hash);

/* Returns a descriptor that is readable when a check has ended. */
int blob_checks_descriptor(const struct blob_checks *checks);
enum blob_check_result {
    BLOB_CHECK_RIGHT,
    BLOB_CHECK_WRONG,  /* the file has other bytes, or fewer */
    BLOB_CHECK_UNREAD, /* the disk did not give the file: the result is open */
};
/* Takes the next ended check. Returns false when there is none. */
bool blob_checks_take_ended(struct blob_checks *checks, int64_t now_ns, struct hash32 *ret_hash,
                            enum blob_check_result *ret_result);

#endif
