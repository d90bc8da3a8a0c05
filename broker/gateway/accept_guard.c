#include "broker/gateway/accept_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;
static int kept = -1;

bool accept_guard_prepare(void)
{
    (void)pthread_mutex_lock(&kept_lock);
    if (kept < 0) {
        kept = open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
    bool is_kept = kept >= 0;
    (void)pthread_mutex_unlock(&kept_lock);
    return is_kept;
}

static int take(int listener, struct sockaddr *address, socklen_t *length, int flags)
{
    return (int)syscall(SYS_accept4, listener, address, length, flags);
}

/* libzmq's local listeners block, so accept without a waiting caller would sleep with the lock
 * held. Only one thread accepts on a listener, so a caller that waits stays. */
static bool somebody_waits(int listener)
{
    struct pollfd waiting = {.fd = listener, .events = POLLIN};
    return poll(&waiting, 1, 0) > 0 && (waiting.revents & POLLIN) != 0;
}

/* Accepts the caller with the spare descriptor, hangs up, and opens the spare again. When another
 * thread takes the free descriptor first, the caller stays in the queue. */
static void turn_away(int listener)
{
    (void)pthread_mutex_lock(&kept_lock);
    if (kept >= 0 && somebody_waits(listener)) {
        (void)close(kept);
        int caller = take(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (caller >= 0) {
            (void)close(caller);
        }
        kept = open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
    (void)pthread_mutex_unlock(&kept_lock);
}

/* The C library declares both functions with __SOCKADDR_ARG, its own type for any kind of
 * address. */

int accept4(int listener, __SOCKADDR_ARG address, socklen_t *restrict length, int flags)
{
    int caller = take(listener, address.__sockaddr__, length, flags);
    if (caller < 0 && (errno == EMFILE || errno == ENFILE)) {
        turn_away(listener);
        errno = ECONNABORTED;
    }
    return caller;
}

int accept(int listener, __SOCKADDR_ARG address, socklen_t *restrict length)
{
    return accept4(listener, address, length, 0);
}
