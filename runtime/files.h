/* runtime/files.h handles private folders, key files, and files that are read and written whole. */
#ifndef BOURSE_RUNTIME_FILES_H
#define BOURSE_RUNTIME_FILES_H

#include "base/problem.h"
#include "protocol/identity.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Checks that `path` is a private folder: mode 0700 (or 0710, where a group must pass), owned by
 * us, no symbolic link. With `create` it makes a missing one, 0700, and its parents, 0700 too. A
 * folder with wider modes is refused, and the problem names the chmod that repairs it. With
 * `create` its name and the names in it are durable afterwards, also if a killed process made
 * them. */
bool private_folder(const char *path, bool create, struct problem *ret_problem);

/* Returns true when the existing `path` is a private folder of user `owner`, who may be another
 * user than ours. */
bool private_folder_fits(const char *path, uid_t owner, struct problem *ret_problem);

/* Loads a key file, which holds 64 hex digits of the seed and a newline. The file is in a private
 * folder, has mode 0600 (or 0400), is owned by us and no symbolic link. Any other file is refused,
 * and the problem tells the repair. */
bool keyfile_load(const char *path, struct identity **ret_identity, struct problem *ret_problem);
/* A key file may have a second line: notes of its owner about the key, as words. */
enum keyfile_note {
    KEYFILE_SIGNED = 1, /* "signed": a tree head under this log key may have left the process */
    /* "follows": the log of another key ended in this folder before. */
    KEYFILE_FOLLOWS = 2,
};
/* Loads a key file like keyfile_load, and its notes: a sum of enum keyfile_note. */
bool keyfile_load_noted(const char *path, struct identity **ret_identity, unsigned *ret_notes,
                        struct problem *ret_problem);
/* Gives the key file in `path` exactly these notes. At any time the file is complete, with its old
 * notes or the new ones. The new ones are durable on return. */
bool keyfile_note(const char *path, unsigned notes, struct problem *ret_problem);
/* Makes a new key and refuses to overwrite one. fsyncs file and folder. */
bool keyfile_create(const char *path, struct identity **ret_identity, struct problem *ret_problem);

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
bool folder_sync(const char *path, struct problem *ret_problem);
/* Writes all bytes at `offset`. Returns false with errno; bytes written until then stay. One write
 * has at most FILE_STEP_BYTES, because a file system takes memory for each write in one piece where
 * it can. Large free pieces are rare in memory that was just in use. A virtual machine that returns
 * unused memory to its host waits ten times as long for others. */
enum { FILE_STEP_BYTES = 64 << 10 };
bool file_write_at(int fd, const void *bytes, size_t length, uint64_t offset);
/* Writes beside, fsyncs, renames over `path`, fsyncs the folder. */
bool file_write(const char *path, const void *bytes, size_t length, unsigned mode,
                struct problem *ret_problem);

#endif
