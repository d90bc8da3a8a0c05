/* A key file holds the seed of an identity, and notes of its owner about the key. */
#ifndef BOURSE_RUNTIME_KEYFILE_H
#define BOURSE_RUNTIME_KEYFILE_H

#include "base/problem.h"
#include "protocol/identity.h"

#include <stdbool.h>

/* Loads a key file, which holds 64 hex digits of the seed and a newline. It is in a private folder,
 * has mode 0600 (or 0400), is owned by us and no symbolic link. Any other file is refused, and the
 * problem tells the repair. */
bool keyfile_load(const char *path, struct identity **ret_identity, struct problem *ret_problem);
/* A supervisor may hand a key to a service: as the file `name` in the folder that the environment
 * variable CREDENTIALS_DIRECTORY names (LoadCredential= of systemd). Returns true when there is
 * one, even if it cannot be read. */
bool keyfile_has_credential(const char *name);
/* A key file may have a second line: notes of its owner about the key, as words. */
enum keyfile_note {
    KEYFILE_SIGNED = 1, /* "signed": a tree head under this log key may have left the process */
    /* "follows": the log of another key ended in this folder before. */
    KEYFILE_FOLLOWS = 2,
};
/* Loads a key file like keyfile_load, and its notes: a sum of enum keyfile_note. */
bool keyfile_load_noted(const char *path, struct identity **ret_identity, unsigned *ret_notes,
                        struct problem *ret_problem);
/* Loads the key that the supervisor has handed over, and its notes (may be NULL). The file belongs
 * to us or to root, and nobody else may read or write it. Any other file is refused with a
 * problem. */
bool keyfile_load_credential(const char *name, struct identity **ret_identity, unsigned *ret_notes,
                             struct problem *ret_problem);
/* Gives the key file in `path` exactly these notes. At any time the file is complete, with its old
 * notes or the new ones. The new ones are durable on return. */
bool keyfile_note(const char *path, unsigned notes, struct problem *ret_problem);
/* Makes a new key and refuses to overwrite one. fsyncs file and folder. */
bool keyfile_create(const char *path, struct identity **ret_identity, struct problem *ret_problem);

#endif
