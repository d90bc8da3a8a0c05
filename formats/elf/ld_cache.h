/* formats/elf/ld_cache.h finds libraries in /etc/ld.so.cache, the loader's index of libraries.
 *
 *     offset  size
 *          0    20  "glibc-ld.so.cache1.1"
 *         20     4  number of entries
 *         24     4  bytes of the texts
 *         28    20  flags, the place of extensions, and unused bytes
 *         48  24*n  flags, name, path (offsets of texts in the file), version, hardware (8 bytes)
 *
 * The file is read as it lies on this machine, so its numbers have this machine's byte order. The
 * file is not trusted: every offset is compared with the length. */
#ifndef BOURSE_FORMATS_ELF_LD_CACHE_H
#define BOURSE_FORMATS_ELF_LD_CACHE_H

#include <stddef.h>
#include <stdint.h>

enum { LD_CACHE_BYTES_MAX = 64 << 20 };

/* Looks for an entry of this name, from entry number `*index` on. Returns the entry's path, which
 * points into `bytes`, and sets *index to the number after the entry. Returns NULL when there is no
 * such entry, or the bytes are no cache. Entries for special hardware are left out, because another
 * machine may lack the hardware. */
const char *ld_cache_next(const uint8_t *bytes, size_t length, const char *name, size_t *index);

#endif
