/* This library lets a program find the files of NVIDIA's driver below the folder DRIVER_FOLDER
 * instead of /proc/driver/nvidia. A program is started with it by LD_PRELOAD. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DRIVER "/proc/driver/nvidia/"

FILE *fopen(const char *path, const char *mode)
{
    FILE *(*next)(const char *, const char *) = NULL;
    void *place = dlsym(RTLD_NEXT, "fopen");
    const char *folder = getenv("DRIVER_FOLDER");
    char other[512];
    memcpy(&next, &place, sizeof next);
    if (folder == NULL || strncmp(path, DRIVER, strlen(DRIVER)) != 0) {
        return next(path, mode);
    }
    (void)snprintf(other, sizeof other, "%s/%s", folder, path + strlen(DRIVER));
    return next(other, mode);
}
