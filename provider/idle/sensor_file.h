/* provider/idle/sensor_file.h reads the small files in which the kernel and systemd say what goes
 * on. The sensors read the files below a root folder: "" for the machine's own root.
 *
 * Files are only read. A file may hold anything, have any length, and vanish meanwhile. Something
 * that is no regular file is not opened for reading: a pipe would block, and a device would act. */
#ifndef BOURSE_PROVIDER_IDLE_SENSOR_FILE_H
#define BOURSE_PROVIDER_IDLE_SENSOR_FILE_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { SENSOR_FILE_PATH_SIZE = 1024 };

/* Reads at most capacity - 1 bytes of ROOT/FOLDER/NAME, and ends them with a NUL. Bytes beyond are
 * left out. Returns false when there is no such file. `folder` begins with a slash. */
bool sensor_file_text(const char *root, const char *folder, const char *name, char *ret_text,
                      size_t capacity);
/* Reads the first line without the blanks at its end. */
bool sensor_file_line(const char *root, const char *folder, const char *name, char *ret_text,
                      size_t capacity);
/* Reads a whole number that stands alone in the file. */
bool sensor_file_number(const char *root, const char *folder, const char *name,
                        int64_t *ret_number);
/* Opens ROOT/FOLDER/NAME for reading, for a text that is long. Returns NULL when there is no such
 * file; the caller closes it. */
FILE *sensor_file_open(const char *root, const char *folder, const char *name);
/* Opens ROOT/FOLDER for listing. Returns NULL when it is no folder; the caller closes it. */
DIR *sensor_file_list(const char *root, const char *folder);

#endif
