/* provider/jail/cgroup_internal.h declares what cgroup.c, which has the group of one jail, and
 * cgroup_hierarchy.c, which has the subtree of all jails, share. No other file includes it. */
#ifndef BOURSE_PROVIDER_JAIL_CGROUP_INTERNAL_H
#define BOURSE_PROVIDER_JAIL_CGROUP_INTERNAL_H

#include "provider/jail/cgroup.h"
#include "provider/jail/keeper.h"

enum { CONTROLLERS = 3, CONTROL_TEXT_BYTES = 4096 };

struct hierarchy {
    char path[CGROUP_PATH_BYTES]; /* our subtree */
    char home[CGROUP_PATH_BYTES]; /* version 2: the former group of this process */
    bool has[CONTROLLERS];
    bool enabled[CONTROLLERS]; /* version 2: by this process, in `home` */
};

struct cgroups {
    int version;
    bool plain_files;
    struct hierarchy hierarchies[CGROUP_HIERARCHIES];
    size_t count;
    int lock;        /* on the first hierarchy's folder, held by us and our keeper */
    int patience_ms; /* time left for a former owner to leave */
    bool taken;      /* a former owner did not leave */
    struct keeper keeper;
};

/* Writes a path. Returns false when the path does not fit. */
__attribute__((format(printf, 2, 3))) bool cgroup_join(char ret_path[CGROUP_PATH_BYTES],
                                                       const char *format, ...);
/* Reads a control file of the folder. Returns false when that fails. */
bool cgroup_read_text(const char *folder, const char *name, char ret_text[CONTROL_TEXT_BYTES]);
/* Writes a control file of the folder. Returns false with errno when that fails. */
bool cgroup_write_text(const struct cgroups *cgroups, const char *folder, const char *name,
                       const char *text);
/* Makes the folder unless it is there. Returns false with errno when that fails. */
bool cgroup_make_folder(const char *path);
/* Removes the folder of a group without processes. */
void cgroup_remove_folder(const struct cgroups *cgroups, const char *path);
/* Kills the processes of the group, and removes the group. */
void cgroup_remove_group(const struct cgroups *cgroups, const char *path);

#endif
