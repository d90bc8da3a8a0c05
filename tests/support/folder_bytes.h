/* folder_bytes counts the bytes of the files below a folder. */
#ifndef BOURSE_TESTS_SUPPORT_FOLDER_BYTES_H
#define BOURSE_TESTS_SUPPORT_FOLDER_BYTES_H

#include <stdint.h>

/* Returns the sum of the sizes of all files below the folder. The test fails when the folder cannot
 * be walked. One thread at a time calls this. */
uint64_t folder_bytes(const char *folder);

#endif
