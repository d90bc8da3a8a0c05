#include "provider/jail/system_tree.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

/* /usr/share has the libraries of languages, and tables that programs read when they run. Header
 * files are for compilers, which jobs may use. Python finds libraries through ldconfig; the rest of
 * /usr/sbin administers machines. */
static const char *const SHOWN[] = {
    "/usr/bin",
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/usr/libx32",
    "/usr/libexec",
    "/usr/include",
    "/usr/sbin/ldconfig",
    "/usr/share/R",
    "/usr/share/awk",
    "/usr/share/fonts",
    "/usr/share/julia",
    "/usr/share/node_modules",
    "/usr/share/nodejs",
    "/usr/share/octave",
    "/usr/share/perl",
    "/usr/share/perl5",
    "/usr/share/poppler",
    "/usr/share/rubygems-integration",
    "/usr/share/zoneinfo",
    NULL,
};

/* These files tell how the machine was started and built, its keys, and its hardware's state. The
 * job's own figures are elsewhere (cpuinfo, meminfo, stat, uptime, loadavg, self). */
static const char *const MASKED_FILES[] = {
    "/proc/bootconfig",  "/proc/cmdline",       "/proc/config.gz",  "/proc/interrupts",
    "/proc/kallsyms",    "/proc/kcore",         "/proc/key-users",  "/proc/keys",
    "/proc/kmsg",        "/proc/latency_stats", "/proc/modules",    "/proc/partitions",
    "/proc/sched_debug", "/proc/slabinfo",      "/proc/timer_list", "/proc/timer_stats",
    "/proc/vmallocinfo"};
static const char *const MASKED_FOLDERS[] = {"/proc/acpi", "/proc/asound", "/proc/scsi"};
enum {
    FILES = sizeof MASKED_FILES / sizeof *MASKED_FILES,
    FOLDERS = sizeof MASKED_FOLDERS / sizeof *MASKED_FOLDERS
};

const char *const *system_shown(void)
{
    return SHOWN;
}

bool system_is_below(const char *path, const char *folder)
{
    const size_t length = strlen(folder);
    return strncmp(path, folder, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

bool system_shows(const char *path)
{
    for (const char *const *shown = SHOWN; *shown != NULL; shown++) {
        if (system_is_below(path, *shown)) {
            return true;
        }
    }
    return false;
}

/* Root in the jail is nobody, so a file for root only cannot be read there. */
static bool is_readable(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0 && S_ISREG(status.st_mode) && (status.st_mode & 0044) != 0;
}

static bool is_filled(const char *path)
{
    DIR *folder = opendir(path);
    bool filled = false;
    for (const struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        filled = filled || entry->d_name[0] != '.';
    }
    if (folder != NULL) {
        (void)closedir(folder); /* opened for reading only */
    }
    return filled;
}

const char *system_mask(size_t *index, bool *ret_is_folder)
{
    for (; *index < (size_t)FILES + FOLDERS; (*index)++) {
        const bool is_folder = *index >= FILES;
        const char *path = is_folder ? MASKED_FOLDERS[*index - FILES] : MASKED_FILES[*index];
        if (is_folder ? is_filled(path) : is_readable(path)) {
            (*index)++;
            *ret_is_folder = is_folder;
            return path;
        }
    }
    return NULL;
}
