#include "provider/jail/watcher.h"

#include "provider/jail/jail_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

bool watcher_open(struct launcher *launcher, const struct watcher_spec *spec,
                  struct watcher *ret_watcher, struct problem *ret_problem)
{
    int sockets[2];
    int control = -1;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
        problem_set(ret_problem, "no socket for a watcher: %s", strerror(errno));
        return false;
    }
    struct jail_command command = {.files = {sockets[1], -1, -1, -1, -1, -1, -1}};
    bool started = fcntl(sockets[0], F_SETFL, O_NONBLOCK) == 0 &&
                   jail_command_build_watcher(spec, &command, ret_problem);
    if (started) {
        const struct launch launch = {.argv = command.argv,
                                      .files = command.files,
                                      .file_count = COMMAND_WORKER + 1,
                                      .error_file = -1};
        started = launcher_launch(launcher, &launch, &control, ret_problem);
        jail_command_close(&command);
    }
    (void)close(sockets[1]);
    if (!started) {
        (void)close(sockets[0]);
        return false;
    }
    *ret_watcher = (struct watcher){.socket = sockets[0], .control = control};
    return true;
}

void watcher_close(struct watcher *watcher)
{
    const int files[] = {watcher->socket, watcher->control}; /* the end of the latter kills */
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        if (files[i] >= 0) {
            (void)close(files[i]);
        }
    }
    *watcher = (struct watcher){.socket = -1, .control = -1};
}
