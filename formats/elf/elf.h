/* formats/elf/elf.h reads from an ELF file which loader and which libraries the file needs.
 *
 * The reader takes 64-bit little-endian files, and follows the program headers as the kernel and
 * the loader do. Section headers are never read, because nothing that runs depends on them. The
 * file is not trusted: every offset and count is compared with the file's size or with a cap. The
 * reader executes nothing. */
#ifndef BOURSE_FORMATS_ELF_ELF_H
#define BOURSE_FORMATS_ELF_ELF_H

#include "base/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ELF_HEADERS_MAX = 128,  /* program headers */
    ELF_DYNAMIC_MAX = 4096, /* entries of the dynamic section */
    ELF_NEEDED_MAX = 256,   /* libraries that one file names */
    ELF_NAME_BYTES = 256,   /* name of a library, with its NUL */
    ELF_TEXT_BYTES = 4096,  /* path of the loader, and list of folders, each with its NUL */
};

enum elf_status {
    ELF_OK,
    ELF_FOREIGN, /* not an ELF file at all; there is no problem text */
    ELF_UNFIT,   /* damaged, too large in some part, or of a kind that the reader does not know */
    ELF_UNREADABLE, /* the caller's function failed */
};

struct elf_source {
    uint64_t size; /* bytes of the file */
    /* Reads all of `length` bytes at `offset`, which lie within the file. Returns false when the
     * read fails. */
    bool (*read)(void *context, uint64_t offset, uint8_t *ret_bytes, size_t length);
    void *context;
};

struct elf {
    const char *machine;              /* as in the attribute `arch`: "x86_64", "aarch64" ... */
    bool is_program;                  /* false: an object file or a core dump */
    char interpreter[ELF_TEXT_BYTES]; /* the loader's path; "": no loader */
    char folders[ELF_TEXT_BYTES];     /* DT_RUNPATH, else DT_RPATH, as written; "": neither */
    bool has_runpath;                 /* `folders` is DT_RUNPATH */
    size_t needed_count;
    char needed[ELF_NEEDED_MAX][ELF_NAME_BYTES]; /* DT_NEEDED, in the file's order */
};

/* Reads the headers into *ret_elf. A failed call leaves *ret_elf undefined. ELF_UNFIT and
 * ELF_UNREADABLE leave a problem that does not name the file. The struct takes some 70 KiB, so
 * callers keep it off the stack. */
enum elf_status elf_read(const struct elf_source *source, struct elf *ret_elf,
                         struct problem *ret_problem);

#endif
