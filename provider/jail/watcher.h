/* provider/jail/watcher.h starts a watcher, which is a program of ours that tells the agent about
 * devices and loads the library of their maker.
 *
 * A watcher runs no job, and stays for as long as the agent wants. Its jail is like the jails of
 * kernels, with one difference. The jail shares the machine's namespace of processes, because the
 * driver names the users of a device by their processes. A library that hangs or crashes stops only
 * the watcher. */
#ifndef BOURSE_PROVIDER_JAIL_WATCHER_H
#define BOURSE_PROVIDER_JAIL_WATCHER_H

#include "base/problem.h"
#include "provider/jail/launcher.h"

#include <stdbool.h>

struct watcher_spec {
    const char *path;         /* absolute path of the installed bourse-kernel */
    const char *const *nodes; /* device files, as in struct jail_kernel; NULL ends the list */
    const char *const *words; /* arguments of the program; NULL ends the list */
};

struct watcher {
    int socket;  /* a stream that does not wait; the program has its other end; -1: none */
    int control; /* of launcher.h; -1: none */
};

/* Starts the program. Returns false with the problem; nothing is left then. A program that cannot
 * be executed ends its socket soon afterwards. */
bool watcher_open(struct launcher *launcher, const struct watcher_spec *spec,
                  struct watcher *ret_watcher, struct problem *ret_problem);
/* Kills the program, and does not wait for its end. Harmless for a watcher without descriptors. */
void watcher_close(struct watcher *watcher);

#endif
