/* runtime/files.h reads and writes whole files. */
#ifndef BOURSE_RUNTIME_FILES_H
#define BOURSE_RUNTIME_FILES_H

#include "base/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Reads a file of at most `cap` bytes; a longer one is a problem. The caller frees the bytes; a NUL
 * follows them. */
bool file_read(const char *path, size_t cap, uint8_t **ret_bytes, size_t *ret_length,
               struct problem *ret_problem);
/* The users who control a file's content. */
struct file_hands {
    uid_t owner;
    bool is_open; /* the file's group or everybody may write it, too */
};
/* Reads a file like file_read, and returns the owner of the very file that was read. */
bool file_read_owned(const char *path, size_t cap, uint8_t **ret_bytes, size_t *ret_length,
                     struct file_hands *ret_hands, struct problem *ret_problem);
/* Reads a file that decides whom this program trusts. The file belongs to us or to root, and nobody
 * else may write it. Otherwise nothing is read, and the problem tells the repair. A symbolic link
 * is followed: the rule holds for its target. */
bool file_read_trusted(const char *path, size_t cap, uint8_t **ret_bytes, size_t *ret_length,
                       struct problem *ret_problem);
/* Copies a file to `to`, which must not exist yet, with mode 0600, and fsyncs it. The caller syncs
 * its folder. */
bool file_copy(const char *from, const char *to, struct problem *ret_problem);
/* Fsyncs a folder: changes of its names survive a power cut from then on. */
bool file_sync_folder(const char *path, struct problem *ret_problem);
/* Reads all `length` bytes at `offset`. Returns false with errno, which is ENODATA when the file is
 * shorter; the buffer may then hold a part. */
bool file_read_at(int fd, void *ret_bytes, size_t length, uint64_t offset);
/* Writes all bytes at `offset`. Returns false with errno; bytes written until then stay. One write
 * has at most FILE_STEP_BYTES, because a file system takes memory for each write in one piece where
 * it can. Large free pieces are rare in memory that was just in use. A virtual machine that returns
 * unused memory to its host waits ten times as long for others. */
enum { FILE_STEP_BYTES = 64 << 10 };
bool file_write_at(int fd, const void *bytes, size_t length, uint64_t offset);
/* Writes beside, fsyncs, renames over `path`, fsyncs the folder. */
bool file_write(const char *path, const void *bytes, size_t length, unsigned mode,
                struct problem *ret_problem);
/* Writes like file_write, but leaves the disk to file_sync_many: one wait for thousands of files
 * instead of two waits each. After a power cut before it, files may be missing or empty. */
bool file_write_of_many(const char *path, const void *bytes, size_t length, unsigned mode,
                        struct problem *ret_problem);
/* Waits until everything that was written to the file system of `folder` is durable. */
bool file_sync_many(const char *folder, struct problem *ret_problem);

#endif
