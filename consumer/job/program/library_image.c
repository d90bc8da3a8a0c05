#include "consumer/job/program/library_image.h"

#include "base/cleanup.h"
#include "consumer/job/input_list.h"
#include "runtime/archive.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char NOTE[] = "This root file system holds the libraries of one program.\n";

bool library_image_has_place(const char *loader)
{
    static const char *const folders[] = {"/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/"};
    bool has_place = false;
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        const size_t length = strlen(folders[i]);
        has_place = has_place || (strncmp(loader, folders[i], length) == 0 &&
                                  loader[length] != '\0' && strchr(loader + length, '/') == NULL);
    }
    return has_place;
}

static bool put_content(struct archive *archive, const struct library *library)
{
    uint64_t size = 0;
    int fd = input_open(library->path, &size, archive->problem);
    if (fd < 0) {
        return false;
    }
    bool good = size == library->size;
    if (!good) {
        problem_set(archive->problem, "%s changed; try again", library->path);
    }
    good = good && archive_put_file(archive, fd, 0, size, library->path);
    (void)close(fd); /* read only: nothing to lose */
    return good;
}

bool library_image_write(const struct libraries *libraries, int fd, struct problem *ret_problem)
{
    struct archive archive = {.fd = fd, .problem = ret_problem};
    bool good = archive_put_header(&archive, '5', "etc/", "", 0755, 0) &&
                archive_put_header(&archive, '0', "etc/bourse", "", 0644, sizeof NOTE - 1) &&
                archive_put_bytes(&archive, NOTE, sizeof NOTE - 1) &&
                archive_put_header(&archive, '5', "lib/", "", 0755, 0);
    for (size_t i = 0; good && i < libraries->count; i++) {
        const struct library *library = &libraries->items[i];
        char name[LIBRARY_NAME_BYTES_MAX + 8];
        (void)snprintf(name, sizeof name, "lib/%s", library->name);
        good = archive_put_header(&archive, '0', name, "", 0755, library->size) &&
               put_content(&archive, library);
    }
    return good && archive_put_header(&archive, '2', "lib64", "lib", 0777, 0) &&
           archive_put_header(&archive, '5', "usr/", "", 0755, 0) &&
           archive_put_header(&archive, '2', "usr/lib", "../lib", 0777, 0) &&
           archive_put_header(&archive, '2', "usr/lib64", "../lib", 0777, 0) &&
           archive_put_end(&archive);
}
