/* consumer/model/model_npz.h unpacks one array of a .npz file of NumPy, which is a ZIP archive of
 * .npy files (formats/zip/zip.h). A person names the array as FILE.npz:NAME. */
#ifndef BOURSE_CONSUMER_MODEL_MODEL_NPZ_H
#define BOURSE_CONSUMER_MODEL_MODEL_NPZ_H

#include "base/problem.h"

#include <stdbool.h>

/* Returns the length of the archive's path in a text such as "a.npz:x" or "a.npz". Returns 0 when
 * the text names no archive. */
unsigned model_npz_path(const char *text);

/* Unpacks the array `name` of the archive into a temporary file without a name. NULL takes the only
 * array. Returns the descriptor, which the caller closes, or -1 with a problem that begins with the
 * path. */
int model_npz_unpack(const char *path, const char *name, struct problem *ret_problem);

/* Returns true when the archive has an array of that name. An archive that cannot be read has
 * none. */
bool model_npz_has(const char *path, const char *name);

#endif
