#include "provider/work/folder_archive.h"

#include "provider/work/own_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool begin(struct folder_archive *folder, const char *spool)
{
    if (folder->has_begun) {
        return true;
    }
    const int fd = own_folder_file(spool);
    if (fd < 0) {
        return false;
    }
    folder->has_begun = true;
    folder->archive = (struct archive){.fd = fd, .sum = &folder->sum};
    sha256_start(&folder->sum);
    return true;
}

enum result_outcome folder_archive_add(struct folder_archive *folder, const char *spool,
                                       const char *name, int fd, uint64_t size, bool is_executable,
                                       struct problem *ret_problem)
{
    struct problem problem = {""};
    errno = 0;
    bool good = begin(folder, spool);
    if (good) {
        folder->archive.problem = &problem;
        good = archive_put_header(&folder->archive, '0', name, "", is_executable ? 0755 : 0644,
                                  size) &&
               archive_put_file(&folder->archive, fd, 0, size, name);
    }
    return good ? OUTCOME_OK : outcome_unkept(spool, size, errno, ret_problem);
}

/* Adds an entry without content. */
static enum result_outcome add_head(struct folder_archive *folder, const char *spool, char type,
                                    const char *name, const char *target, unsigned mode,
                                    struct problem *ret_problem)
{
    struct problem problem = {""};
    errno = 0;
    bool good = begin(folder, spool);
    folder->archive.problem = &problem;
    good = good && archive_put_header(&folder->archive, type, name, target, mode, 0);
    return good ? OUTCOME_OK : outcome_unkept(spool, 0, errno, ret_problem);
}

enum result_outcome folder_archive_add_folder(struct folder_archive *folder, const char *spool,
                                              const char *name, struct problem *ret_problem)
{
    return add_head(folder, spool, '5', name, "", 0755, ret_problem);
}

enum result_outcome folder_archive_add_link(struct folder_archive *folder, const char *spool,
                                            const char *name, const char *target,
                                            struct problem *ret_problem)
{
    return add_head(folder, spool, '2', name, target, 0777, ret_problem);
}

enum result_outcome folder_archive_keep(struct folder_archive *folder, const char *spool,
                                        const char *name, struct kept *ret_kept,
                                        struct problem *ret_problem)
{
    struct problem problem = {""};
    errno = 0;
    bool good = begin(folder, spool);
    folder->archive.problem = &problem;
    good = good && archive_put_end(&folder->archive);
    char *copy = good ? strdup(name) : NULL;
    if (copy == NULL) {
        return outcome_unkept(spool, folder->archive.length, errno, ret_problem);
    }
    *ret_kept = (struct kept){.name = copy,
                              .fd = folder->archive.fd,
                              .size = folder->archive.length,
                              .hash = sha256_end(&folder->sum)};
    folder->has_begun = false; /* the file belongs to the output */
    return OUTCOME_OK;
}

void folder_archive_fini(struct folder_archive *folder)
{
    if (folder->has_begun) {
        (void)close(folder->archive.fd); /* the file has no name and ends here */
        folder->has_begun = false;
    }
}
