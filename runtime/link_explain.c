#include "runtime/link_explain.h"

#include "base/checked.h"
#include "base/text.h"
#include "protocol/limits.h"
#include "runtime/log.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
    HOST_BYTES = 256,
    PORT_BYTES = 32,
    PORT_MOST = 65535,
    RESOLVE_MS = 2000, /* time that an explanation waits for a name */
    KNOCK_MS = 500,    /* time that an explanation waits for a connection */
    KNOCKS_MAX = 4,
};

/* Tries to connect. Returns 0, or the error; ETIMEDOUT when nothing came back. */
static int knock(int family, const struct sockaddr *address, socklen_t length)
{
    const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int error = fd < 0 ? errno : 0;
    if (fd >= 0 && connect(fd, address, length) != 0) {
        error = errno;
    }
    if (error == EINPROGRESS) {
        struct pollfd wait = {.fd = fd, .events = POLLOUT};
        socklen_t size = sizeof error;
        if (poll(&wait, 1, KNOCK_MS) <= 0 ||
            getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) {
            error = ETIMEDOUT;
        }
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return error;
}

static void explain_socket(const char *path, char *ret_text, size_t capacity)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) {
        return;
    }
    memcpy(address.sun_path, path, strlen(path));
    const int error = knock(AF_UNIX, (const struct sockaddr *)&address, sizeof address);
    if (error == ENOENT || error == ECONNREFUSED) {
        (void)snprintf(ret_text, capacity, "no broker runs there: nobody listens at %s", path);
    } else if (error == EACCES) {
        (void)snprintf(ret_text, capacity, "this user may not connect to %s", path);
    }
}

/* One question to the name servers. The function getaddrinfo may wait for half a minute, so a
 * thread asks. Who waits for too long leaves the question to the thread. */
struct lookup {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    char host[HOST_BYTES], port[PORT_BYTES];
    bool has_ended, is_left;
    int failed;
    struct addrinfo *found;
};

static void lookup_free(struct lookup *lookup)
{
    if (lookup->found != NULL) {
        freeaddrinfo(lookup->found);
    }
    (void)pthread_cond_destroy(&lookup->ended);
    (void)pthread_mutex_destroy(&lookup->lock);
    free(lookup);
}

static void *ask(void *context)
{
    struct lookup *lookup = context;
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    const int failed = getaddrinfo(lookup->host, lookup->port, &hints, &found);
    (void)pthread_mutex_lock(&lookup->lock);
    lookup->failed = failed;
    lookup->found = failed == 0 ? found : NULL;
    lookup->has_ended = true;
    const bool is_left = lookup->is_left;
    (void)pthread_cond_signal(&lookup->ended);
    (void)pthread_mutex_unlock(&lookup->lock);
    if (is_left) {
        lookup_free(lookup);
    }
    return NULL;
}

/* Returns true when the question was answered within RESOLVE_MS. Else the lookup is the
 * thread's. */
static bool wait_for_answer(struct lookup *lookup)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += RESOLVE_MS / 1000;
    until.tv_nsec += RESOLVE_MS % 1000 * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000L;
    }
    (void)pthread_mutex_lock(&lookup->lock);
    int waited = 0;
    while (!lookup->has_ended && waited == 0) {
        waited = pthread_cond_clockwait(&lookup->ended, &lookup->lock, CLOCK_MONOTONIC, &until);
    }
    const bool has_ended = lookup->has_ended;
    lookup->is_left = !has_ended;
    (void)pthread_mutex_unlock(&lookup->lock);
    return has_ended;
}

/* Returns NULL when the question cannot be asked. */
static struct lookup *begin_lookup(const char *host, const char *port)
{
    pthread_t thread;
    struct lookup *lookup = calloc(1, sizeof *lookup);
    if (lookup == NULL) {
        return NULL;
    }
    (void)pthread_mutex_init(&lookup->lock, NULL);
    (void)pthread_cond_init(&lookup->ended, NULL);
    (void)snprintf(lookup->host, sizeof lookup->host, "%s", host);
    (void)snprintf(lookup->port, sizeof lookup->port, "%s", port);
    if (pthread_create(&thread, NULL, ask, lookup) != 0) {
        lookup_free(lookup);
        return NULL;
    }
    (void)pthread_detach(thread);
    return lookup;
}

/* The function getaddrinfo takes 99999 for 34463. */
static bool is_too_large(const char *port)
{
    char *end;
    const unsigned long number = strtoul(port, &end, 10);
    return end != port && *end == '\0' && number > PORT_MOST;
}

/* Asks each address of a host. The first one that answers, or may yet answer, ends the search. */
static void knock_at_all(const struct lookup *lookup, char *ret_text, size_t capacity)
{
    int knocks = 0;
    for (const struct addrinfo *one = lookup->found; one != NULL && knocks < KNOCKS_MAX;
         one = one->ai_next, knocks++) {
        const int error = knock(one->ai_family, one->ai_addr, one->ai_addrlen);
        if (error == 0) {
            ret_text[0] = '\0';
            break;
        }
        (void)snprintf(ret_text, capacity,
                       error == ECONNREFUSED ? "the host %s refuses connections to port %s: %s"
                                             : "the host %s cannot be reached at port %s: %s",
                       lookup->host, lookup->port, strerror(error));
    }
}

static void explain_port(const char *host, const char *port, char *ret_text, size_t capacity)
{
    if (is_too_large(port)) {
        (void)snprintf(ret_text, capacity, "there is no port %.32s: the largest is %d", port,
                       PORT_MOST);
        return;
    }
    struct lookup *lookup = begin_lookup(host, port);
    if (lookup == NULL) {
        return;
    }
    if (!wait_for_answer(lookup)) {
        (void)snprintf(ret_text, capacity,
                       "the name of the host %s is not resolved yet: no name server has answered "
                       "for %d s",
                       host, RESOLVE_MS / 1000);
        return;
    }
    if (lookup->failed != 0) {
        (void)snprintf(ret_text, capacity, "the name of the host %s cannot be resolved: %s", host,
                       gai_strerror(lookup->failed));
    } else {
        knock_at_all(lookup, ret_text, capacity);
    }
    lookup_free(lookup);
}

void link_explain(const char *endpoint, char *ret_text, size_t capacity)
{
    char host[HOST_BYTES];
    ret_text[0] = '\0';
    if (strncmp(endpoint, "ipc://", 6) == 0) {
        explain_socket(endpoint + 6, ret_text, capacity);
        return;
    }
    const char *colon = strrchr(endpoint, ':');
    if (strncmp(endpoint, "tcp://", 6) != 0 || colon < endpoint + 6) {
        return;
    }
    const bool is_bracketed = endpoint[6] == '[' && colon[-1] == ']';
    const char *from = endpoint + 6 + (is_bracketed ? 1 : 0);
    const int length = (int)(colon - from) - (is_bracketed ? 1 : 0);
    if (snprintf(host, sizeof host, "%.*s", length, from) < (int)sizeof host) {
        explain_port(host, colon + 1, ret_text, capacity);
    }
}

/* ---------------------------------------------------------------- an absence */

enum { WHY_BYTES = 512 };

struct link_absence {
    int64_t due_ns; /* the next word; INT64_MAX: the broker is there */
    bool has_thread;
    pthread_t thread;
    atomic_bool is_done; /* the thread has nothing more to do */
    char endpoint[LIMIT_ENDPOINT_BYTES + 1];
};

struct link_absence *link_absence_create(void)
{
    struct link_absence *absence = calloc(1, sizeof *absence);
    if (absence != NULL) {
        absence->due_ns = INT64_MAX;
        atomic_init(&absence->is_done, true);
    }
    return absence;
}

static void *find_out(void *context)
{
    struct link_absence *absence = context;
    char why[WHY_BYTES];
    char shown[WHY_BYTES];
    link_explain(absence->endpoint, why, sizeof why);
    text_printable(why, strlen(why), shown, sizeof shown);
    log_warning("the broker at %s does not answer%s%s; trying again", absence->endpoint,
                shown[0] == '\0' ? "" : ": ", shown);
    atomic_store(&absence->is_done, true);
    return NULL;
}

static void join_thread(struct link_absence *absence)
{
    if (absence->has_thread) {
        (void)pthread_join(absence->thread, NULL);
        absence->has_thread = false;
    }
}

void link_absence_destroy(struct link_absence **self)
{
    if (*self != NULL) {
        join_thread(*self);
        free(*self);
        *self = NULL;
    }
}

void link_absence_look(struct link_absence *absence, bool is_connected, const char *endpoint,
                       int64_t now_ns)
{
    if (is_connected) {
        absence->due_ns = INT64_MAX;
        return;
    }
    if (absence->due_ns == INT64_MAX) {
        absence->due_ns = now_ns + LINK_ABSENCE_TOLD_MS * NS_PER_MS;
    }
    if (now_ns < absence->due_ns || !atomic_load(&absence->is_done)) {
        return;
    }
    join_thread(absence);
    absence->due_ns = now_ns + LINK_ABSENCE_AGAIN_MS * NS_PER_MS;
    (void)snprintf(absence->endpoint, sizeof absence->endpoint, "%s", endpoint);
    atomic_store(&absence->is_done, false);
    absence->has_thread = pthread_create(&absence->thread, NULL, find_out, absence) == 0;
    if (!absence->has_thread) { /* the next word tries again */
        atomic_store(&absence->is_done, true);
    }
}
