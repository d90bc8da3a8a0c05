#include "runtime/notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* A stop may take this long before the watchdog counts it as a hang. */
#define STOP_WATCHDOG "WATCHDOG_USEC=600000000"
/* A longer watchdog is ignored. */
#define WATCHDOG_USEC_MOST (INT64_C(86400) * 1000000)

/* Sends one datagram to the service manager, if there is one. An address that begins with '@' is
 * abstract: in the kernel's form, its first byte is zero. */
static void send_state(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (path == NULL || (path[0] != '/' && path[0] != '@') ||
        strlen(path) >= sizeof address.sun_path) {
        return;
    }
    size_t length = strlen(path);
    memcpy(address.sun_path, path, length);
    if (path[0] == '@') {
        address.sun_path[0] = '\0';
    }
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
        (void)sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT,
                     (struct sockaddr *)&address,
                     size); /* the service goes on without a listener */
        (void)close(fd);
    }
}

/* Returns the positive number in the environment variable `name`, or 0 without one. */
static int64_t number_of(const char *name)
{
    const char *text = getenv(name);
    char *end = NULL;
    if (text == NULL || text[0] < '0' || text[0] > '9') {
        return 0;
    }
    errno = 0;
    long long number = strtoll(text, &end, 10);
    return errno == 0 && *end == '\0' ? number : 0;
}

void notify_ready(void)
{
    send_state("READY=1");
}

void notify_stopping(void)
{
    send_state(notify_alive_every_ns() > 0 ? "STOPPING=1\n" STOP_WATCHDOG : "STOPPING=1");
}

void notify_alive(void)
{
    send_state("WATCHDOG=1");
}

int64_t notify_alive_every_ns(void)
{
    int64_t usec = number_of("WATCHDOG_USEC");
    int64_t pid = number_of("WATCHDOG_PID");
    if (usec <= 0 || usec > WATCHDOG_USEC_MOST || (pid != 0 && pid != getpid())) {
        return 0;
    }
    return usec * 1000 / 2;
}
