/* runtime/files.h - private folders, key files, and files read and written whole. */
#ifndef BOURSE_RUNTIME_FILES_H
#define BOURSE_RUNTIME_FILES_H

#include "base/problem.h"
#include "protocol/identity.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Makes sure `path` is a folder of mode 0700 (or 0710, where a group must pass) owned by us and not
 * a symbolic link; with `create`, makes it, 0700 (parents 0700 too). A folder with wider modes is
 * refused, and the problem says the chmod that mends it. With `create` its own name and those in it
 * are durable then, also where a former process made them and was killed. */
bool private_folder(const char *path, bool create, struct problem *ret_problem);

/* Whether `path`, which is there, is such a folder for user `owner`, who need not be us. */
bool private_folder_fits(const char *path, uid_t owner, struct problem *ret_problem);

/* A key file: 64 hex digits of the seed and a newline, mode 0600 (or 0400), owned by us, no
 * symbolic link, in a private folder. Anything else is refused with the fix. */
bool keyfile_load(const char *path, struct identity **ret_identity, struct problem *ret_problem);
/* A key file may have a second line: what its owner noted of the key, as words. */
enum keyfile_note {
    KEYFILE_SIGNED = 1,  /* "signed": a tree head of this log key may have left the process */
    KEYFILE_FOLLOWS = 2, /* "follows": the log of another key ended in this folder before */
};
/* The same as keyfile_load, and the notes: a sum of enum keyfile_note. */
bool keyfile_load_noted(const char *path, struct identity **ret_identity, unsigned *ret_notes,
                        struct problem *ret_problem);
/* Gives the key file in `path` exactly these notes. The file is there whole at any time, with its
 * old notes or the new ones; the new ones are durable on return. */
bool keyfile_note(const char *path, unsigned notes, struct problem *ret_problem);
/* Makes a new key; refuses to overwrite. fsyncs file and folder. */
bool keyfile_create(const char *path, struct identity **ret_identity, struct problem *ret_problem);

/* Reads at most `cap` bytes (more is a problem); the caller frees; a NUL follows the bytes. */
bool file_read(const char *path, size_t cap, uint8_t **ret_bytes, size_t *ret_length,
               struct problem *ret_problem);
/* Who decides what is in a file. */
struct file_hands {
    uid_t owner;
    bool is_open; /* its group or everybody may write it, too */
};
/* The same, and whose the very file is that was read. */
bool file_read_owned(const char *path, size_t cap, uint8_t **ret_bytes, size_t *ret_length,
                     struct file_hands *ret_hands, struct problem *ret_problem);
/* Reads a file that decides whom this program trusts. The file belongs to us or to root, and nobody
 * else may write it; otherwise nothing is read, and the problem says what mends that. A symbolic
 * link is followed: the rule holds for the file that it names. */
bool file_read_trusted(const char *path, size_t cap, uint8_t **ret_bytes, size_t *ret_length,
                       struct problem *ret_problem);
/* Copies a file to `to`, which must not be there yet, with mode 0600, and fsyncs it; its folder is
 * the caller's to sync. */
bool file_copy(const char *from, const char *to, struct problem *ret_problem);
/* fsyncs a folder: what was made, renamed or removed in it survives a power cut from then on. */
bool folder_sync(const char *path, struct problem *ret_problem);
/* Writes all of it at `offset`, or says false with errno; what it wrote till then stays. No more
 * than FILE_STEP_BYTES at a time: a file system takes memory for each write in one piece where it
 * can, and large pieces are found last among memory that was in use shortly before. A virtual
 * machine that gives unused memory back to its host waits ten times as long for others. */
enum { FILE_STEP_BYTES = 64 << 10 };
bool file_write_at(int fd, const void *bytes, size_t length, uint64_t offset);
/* Writes beside, fsyncs, renames over `path`, fsyncs the folder. */
bool file_write(const char *path, const void *bytes, size_t length, unsigned mode,
                struct problem *ret_problem);

#endif
