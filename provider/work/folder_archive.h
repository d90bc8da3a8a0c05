/* A folder_archive is a folder among the outputs of a subtask, on its way into one archive.
 *
 * A folder may have more files than a result can name, so the result names one archive. The archive
 * is a tar in a nameless file of the spool. Times and owners are 0, and the only permission is that
 * to execute, so that the same folder always has the same hash. Two providers who ran the same work
 * must not differ by the time at which they ran it. */
#ifndef BOURSE_PROVIDER_WORK_FOLDER_ARCHIVE_H
#define BOURSE_PROVIDER_WORK_FOLDER_ARCHIVE_H

#include "provider/work/outcome.h"
#include "runtime/archive.h"

/* All bytes 0: nothing has begun. */
struct folder_archive {
    bool has_begun;
    struct archive archive;
    struct sha256 sum;
};

/* Copies a file of `size` bytes under its name below the folder. Returns OUTCOME_OK, or as
 * outcome_keep does. */
enum result_outcome folder_archive_add(struct folder_archive *folder, const char *spool,
                                       const char *name, int fd, uint64_t size, bool is_executable,
                                       struct problem *ret_problem);
/* Adds an empty folder, or a link with its target. Returns as folder_archive_add does. */
enum result_outcome folder_archive_add_folder(struct folder_archive *folder, const char *spool,
                                              const char *name, struct problem *ret_problem);
enum result_outcome folder_archive_add_link(struct folder_archive *folder, const char *spool,
                                            const char *name, const char *target,
                                            struct problem *ret_problem);
/* Ends the archive, which becomes the output of this name. Returns as outcome_keep does. */
enum result_outcome folder_archive_keep(struct folder_archive *folder, const char *spool,
                                        const char *name, struct kept *ret_kept,
                                        struct problem *ret_problem);
/* Drops an archive that was not kept. */
void folder_archive_fini(struct folder_archive *folder);

#endif
