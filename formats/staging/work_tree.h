/* formats/staging/work_tree.h reads and writes the listing of a folder that is sent with a job.
 *
 * A listing says what the files' bytes do not say: the folders, the symbolic links, and the
 * permissions and times of all. It is a blob of its own, because the same file must have the same
 * hash on every machine, whatever its time is. The format is little endian:
 *
 *     8 bytes "BOURSET1" | u32 count | the entries, one after another
 *     an entry: u8 kind | u16 permissions | i64 nanoseconds since 1970 | u16 length, name
 *               a link has u16 length, target behind that, and permissions 0
 *
 * Names ascend part by part, so a folder comes directly before what is in it. A listing has one
 * encoding. Pure. */
#ifndef BOURSE_FORMATS_STAGING_WORK_TREE_H
#define BOURSE_FORMATS_STAGING_WORK_TREE_H

#include "base/problem.h"
#include "base/writer.h"
#include "formats/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WORK_TREE_ENTRIES = 2 * FORMAT_FOLDER_FILES, /* as many folders and links as files */
    WORK_TREE_BYTES = 64 << 20,                  /* of a listing */
};

enum work_tree_kind { WORK_TREE_FILE = 1, WORK_TREE_FOLDER, WORK_TREE_LINK };

struct work_tree_entry {
    enum work_tree_kind kind;
    unsigned mode;       /* nine bits of permissions; of a link 0 */
    int64_t modified_ns; /* since 1970 */
    const char *name;    /* plain path below the work folder */
    const char *target;  /* of a link, as staged_link_problem allows; else "" */
};

/* Compares two paths part by part, in the order of a listing. */
int work_tree_compare(const char *a, const char *b);
/* Returns true when `name` lies below `above`. */
bool work_tree_is_below(const char *name, const char *above);

/* Writes the head, which `count` entries follow. */
void work_tree_write_head(struct writer *out, uint32_t count);
void work_tree_write(struct writer *out, const struct work_tree_entry *entry);

/* Shows an entry, whose texts are valid during the visit. Returns false with the problem to end the
 * reading. */
typedef bool work_tree_visit(void *context, const struct work_tree_entry *entry,
                             struct problem *ret_problem);
/* Reads a listing of a stranger. Returns false with the problem when it is damaged, too large, has
 * a name that leads out of the work folder, an entry below a file or a link, or a link that may not
 * travel, and when a visit did. The entries before a fault have been shown then. */
bool work_tree_read(const void *bytes, size_t length, work_tree_visit *visit, void *context,
                    struct problem *ret_problem);

#endif
