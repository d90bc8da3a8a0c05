/* consumer/job/program/libraries.h finds the libraries that an ELF program loads when the program
 * starts here. The search follows the names in the files through the places where the loader looks.
 * The search executes nothing. The header is not installed.
 *
 * The places are, in the loader's order: DT_RPATH of the file and of those that loaded it, unless
 * the file has DT_RUNPATH; LD_LIBRARY_PATH; DT_RUNPATH; ld.so.cache; the default folders.
 * A library that the program loads later, by dlopen, is not found. */
#ifndef BOURSE_CONSUMER_JOB_PROGRAM_LIBRARIES_H
#define BOURSE_CONSUMER_JOB_PROGRAM_LIBRARIES_H

#include "base/problem.h"
#include "formats/elf/elf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LIBRARIES_MAX = 512,              /* files that one program loads, its loader included */
    LIBRARY_FILE_BYTES_MAX = 1 << 30, /* one library */
    LIBRARY_NAME_BYTES_MAX = 90,      /* a name that fits a tar header below "lib/" */
};

/* The most bytes of all libraries together; providers take as much in an image by default. */
#define LIBRARIES_BYTES_MAX (UINT64_C(4) << 30)

struct library {
    char *name; /* name by which it is looked for; the loader has its own */
    char *path; /* file here, without symbolic links */
    uint64_t size;
};

struct libraries {
    struct library *items; /* sorted by name */
    size_t count, capacity;
    uint64_t bytes;
};

/* Finds the closure for the program at `path`, which `elf` was read from. A program without a
 * loader needs none. A failed call leaves a problem that names the file and the library. The caller
 * ends the list, on failure too. */
bool libraries_find(const char *path, const struct elf *elf, struct libraries *libraries,
                    struct problem *ret_problem);
void libraries_fini(struct libraries *libraries);

/* Reads the ELF headers of an open file. */
enum elf_status libraries_read_elf(int fd, uint64_t size, struct elf *ret_elf,
                                   struct problem *ret_problem);

#endif
