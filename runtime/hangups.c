#include "runtime/hangups.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A mark for "output only" in an epoll set: the kernel reports it whenever it would report
 * EPOLLOUT, and no other code asks for it. */
#define ONLY_OUTPUT ((uint32_t)EPOLLWRNORM)

static int control(int set, int operation, int descriptor, struct epoll_event *event)
{
    return (int)syscall(SYS_epoll_ctl, set, operation, descriptor, event);
}

/* Returns the events asked of a descriptor, without the way of reporting. */
static uint32_t wishes(const struct epoll_event *event)
{
    return event->events & ~(uint32_t)(EPOLLET | EPOLLONESHOT | EPOLLWAKEUP | EPOLLEXCLUSIVE);
}

static int leave(int set, int descriptor)
{
    struct epoll_event ignored = {0};
    int saved = errno;
    int status = control(set, EPOLL_CTL_DEL, descriptor, &ignored);
    if (status != 0 && errno == ENOENT) {
        errno = saved; /* the peer had left before */
        return 0;
    }
    return status;
}

static int enter(int set, int operation, int descriptor, struct epoll_event wish)
{
    if (wishes(&wish) == EPOLLOUT) {
        wish.events = (wish.events & ~(uint32_t)EPOLLOUT) | ONLY_OUTPUT;
    }
    int status = control(set, operation, descriptor, &wish);
    if (status != 0 && operation == EPOLL_CTL_MOD && errno == ENOENT) {
        status = control(set, EPOLL_CTL_ADD, descriptor, &wish); /* the peer had left */
    }
    return status;
}

static int apply(int set, int operation, int descriptor, const struct epoll_event *event)
{
    if (wishes(event) == 0) {
        return operation == EPOLL_CTL_MOD ? leave(set, descriptor) : 0; /* the first wish adds it */
    }
    return enter(set, operation, descriptor, *event);
}

/* ---------------------------------------------------------------- descriptors that may be
 * paused */

enum { DESCRIPTORS_MAX = 1 << 16 };

static struct wish {
    bool is_known, is_paused;
    int set;
    struct epoll_event event;
} wishes_of[DESCRIPTORS_MAX]; /* by descriptor */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static struct wish *wish_of(int descriptor)
{
    return descriptor >= 0 && descriptor < DESCRIPTORS_MAX ? &wishes_of[descriptor] : NULL;
}

static struct epoll_event now_wished(const struct wish *wish)
{
    struct epoll_event event = wish->event;
    event.events &= wish->is_paused ? ~(uint32_t)EPOLLIN : ~(uint32_t)0;
    return event;
}

int epoll_ctl(int set, int operation, int descriptor, struct epoll_event *event)
{
    struct wish *wish = wish_of(descriptor);
    int status;
    (void)pthread_mutex_lock(&mutex);
    if (operation == EPOLL_CTL_DEL) {
        if (wish != NULL && wish->set == set) {
            *wish = (struct wish){.is_known = false};
        }
        status = leave(set, descriptor);
    } else if (wish == NULL) {
        status = apply(set, operation, descriptor, event);
    } else {
        *wish = (struct wish){.is_known = true,
                              .is_paused = operation == EPOLL_CTL_MOD && wish->is_paused,
                              .set = set,
                              .event = *event};
        const struct epoll_event wished = now_wished(wish);
        status = apply(set, operation, descriptor, &wished);
    }
    (void)pthread_mutex_unlock(&mutex);
    return status;
}

void hangups_pause(int descriptor, bool is_paused)
{
    struct wish *wish = wish_of(descriptor);
    (void)pthread_mutex_lock(&mutex);
    if (wish != NULL && wish->is_known && wish->is_paused != is_paused) {
        wish->is_paused = is_paused;
        const struct epoll_event wished = now_wished(wish);
        /* If this fails, the connection stays as it is. */
        (void)apply(wish->set, EPOLL_CTL_MOD, descriptor, &wished);
    }
    (void)pthread_mutex_unlock(&mutex);
}

int epoll_wait(int set, struct epoll_event *events, int capacity, int timeout_ms)
{
    int count = epoll_pwait(set, events, capacity, timeout_ms, NULL);
    for (int i = 0; i < count; i++) {
        if ((events[i].events & ONLY_OUTPUT) != 0) {
            events[i].events = EPOLLOUT;
        } else if ((events[i].events & EPOLLIN) != 0) {
            /* The read of the input finds the hang-up. */
            events[i].events &= ~(uint32_t)(EPOLLERR | EPOLLHUP);
        }
    }
    return count;
}

bool hangups_are_held(void)
{
    return dlsym(RTLD_DEFAULT, "epoll_ctl") == (void *)(uintptr_t)epoll_ctl &&
           dlsym(RTLD_DEFAULT, "epoll_wait") == (void *)(uintptr_t)epoll_wait;
}
