/* tests/programs/market_proxy.c - a bad line: TCP between two ports, delayed, stalled, slowed, cut
 * or garbled as it is told.
 *
 *     market-proxy CONTROL PORT:TARGET...
 *
 * Listens on 127.0.0.1:PORT and connects each caller to 127.0.0.1:TARGET. Commands are lines of the
 * FIFO CONTROL; they hold for all connections, old and new, until the next one:
 *
 *     pass              forwards as it comes
 *     hold up|down|both forwards nothing that way; bytes wait (up: from the caller to the target)
 *     swallow up|down|both  reads that way, and forwards nothing: what comes later makes no sense
 *     delay MS          adds to the way there and to the way back
 *     rate BYTES        per second and direction; 0: no bound
 *     reset             breaks every connection now, once
 *     refuse            hangs up on new callers
 *
 * Each is repeated on standard output once it holds.
 *
 * One thread, one poll loop, everything bounded: a direction whose buffer is full is not read, so
 * that the peers feel the line as they would a real one. */
#include "base/checked.h"
#include "runtime/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LISTENERS_MAX = 4, PAIRS_MAX = 64, CHUNKS_MAX = 32, CHUNK_BYTES = 8192, LINE_SIZE = 64 };
enum { UP, DOWN, DIRECTIONS };
enum way { FORWARD, HOLD, SWALLOW };

struct chunk {
    int64_t due_ns;
    size_t length, sent;
    char bytes[CHUNK_BYTES];
};
struct direction {
    struct chunk chunks[CHUNKS_MAX];
    size_t first, count;
    int64_t last_due_ns;
};
struct pair {
    bool used;
    int ends
        [DIRECTIONS]; /* ends[UP]: the caller, read for UP; ends[DOWN]: the target, read for DOWN */
    struct direction *directions[DIRECTIONS];
};
struct proxy {
    int control;
    int listeners[LISTENERS_MAX];
    uint16_t targets[LISTENERS_MAX];
    size_t listener_count;
    struct pair pairs[PAIRS_MAX];
    enum way ways[DIRECTIONS];
    int64_t delay_ns, rate;
    bool refuses;
    char line[LINE_SIZE];
    size_t line_length;
};

__attribute__((format(printf, 1, 2), noreturn)) static void stop(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    (void)fputs("market-proxy: ", stderr);
    (void)vfprintf(stderr, format, list);
    (void)fputc('\n', stderr);
    va_end(list);
    exit(1);
}

static struct sockaddr_in address_of(uint16_t port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons(port),
                                .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
}

static int listen_on(uint16_t port)
{
    struct sockaddr_in address = address_of(port);
    int yes = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
        bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, PAIRS_MAX) != 0) {
        stop("port %u: %s", port, strerror(errno));
    }
    return fd;
}

/* ---------------------------------------------------------------- connections */

static void pair_close(struct pair *pair, bool reset)
{
    const struct linger at_once = {.l_onoff = 1};
    for (int i = 0; i < DIRECTIONS; i++) {
        if (reset) { /* RST instead of FIN; a peer that is gone already does not mind */
            (void)setsockopt(pair->ends[i], SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        }
        (void)close(pair->ends[i]);
        free(pair->directions[i]);
    }
    *pair = (struct pair){.used = false};
}

static void pair_open(struct proxy *proxy, int caller, uint16_t target)
{
    struct sockaddr_in address = address_of(target);
    struct pair *pair = proxy->pairs;
    while (pair < proxy->pairs + PAIRS_MAX && pair->used) {
        pair++;
    }
    int other = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (pair == proxy->pairs + PAIRS_MAX || other < 0 || proxy->refuses ||
        connect(other, (struct sockaddr *)&address, sizeof address) != 0 ||
        fcntl(other, F_SETFL, O_NONBLOCK) != 0) {
        (void)close(caller);
        if (other >= 0) {
            (void)close(other);
        }
        return;
    }
    *pair = (struct pair){.used = true, .ends = {caller, other}};
    for (int i = 0; i < DIRECTIONS; i++) {
        pair->directions[i] = calloc(1, sizeof *pair->directions[i]);
        if (pair->directions[i] == NULL) {
            stop("out of memory");
        }
    }
}

/* False: the connection is over. */
static bool take(struct proxy *proxy, struct pair *pair, int way, int64_t now_ns)
{
    struct direction *direction = pair->directions[way];
    struct chunk *chunk = &direction->chunks[(direction->first + direction->count) % CHUNKS_MAX];
    ssize_t length = read(pair->ends[way], chunk->bytes, sizeof chunk->bytes);
    if (length <= 0) {
        return length < 0 && (errno == EAGAIN || errno == EINTR);
    }
    if (proxy->ways[way] == SWALLOW) {
        return true;
    }
    int64_t start_ns = now_ns + proxy->delay_ns;
    if (proxy->rate > 0) {
        start_ns = start_ns > direction->last_due_ns ? start_ns : direction->last_due_ns;
        start_ns += (int64_t)length * NS_PER_S / proxy->rate;
    }
    chunk->due_ns = direction->last_due_ns = start_ns;
    chunk->length = (size_t)length;
    chunk->sent = 0;
    direction->count++;
    return true;
}

static bool give(const struct proxy *proxy, struct pair *pair, int way, int64_t now_ns)
{
    struct direction *direction = pair->directions[way];
    while (direction->count > 0 && proxy->ways[way] != HOLD) {
        struct chunk *chunk = &direction->chunks[direction->first];
        if (chunk->due_ns > now_ns) {
            return true;
        }
        ssize_t sent = send(pair->ends[1 - way], chunk->bytes + chunk->sent,
                            chunk->length - chunk->sent, MSG_NOSIGNAL);
        if (sent < 0) {
            return errno == EAGAIN || errno == EINTR;
        }
        chunk->sent += (size_t)sent;
        if (chunk->sent < chunk->length) {
            return true;
        }
        direction->first = (direction->first + 1) % CHUNKS_MAX;
        direction->count--;
    }
    return true;
}

/* ---------------------------------------------------------------- commands */

static void set_ways(struct proxy *proxy, enum way way, const char *which)
{
    proxy->ways[UP] = strcmp(which, "down") == 0 ? FORWARD : way;
    proxy->ways[DOWN] = strcmp(which, "up") == 0 ? FORWARD : way;
}

static void obey(struct proxy *proxy, const char *line)
{
    char verb[LINE_SIZE] = "";
    char word[LINE_SIZE] = "";
    (void)sscanf(line, "%63s %63s", verb, word);
    if (strcmp(verb, "pass") == 0) {
        set_ways(proxy, FORWARD, "both");
        proxy->delay_ns = proxy->rate = 0;
        proxy->refuses = false;
    } else if (strcmp(verb, "hold") == 0) {
        set_ways(proxy, HOLD, word);
    } else if (strcmp(verb, "swallow") == 0) {
        set_ways(proxy, SWALLOW, word);
    } else if (strcmp(verb, "delay") == 0) {
        proxy->delay_ns = strtoll(word, NULL, 10) * NS_PER_MS;
    } else if (strcmp(verb, "rate") == 0) {
        proxy->rate = strtoll(word, NULL, 10);
    } else if (strcmp(verb, "refuse") == 0) {
        proxy->refuses = true;
    } else if (strcmp(verb, "reset") == 0) {
        for (size_t i = 0; i < PAIRS_MAX; i++) {
            if (proxy->pairs[i].used) {
                pair_close(&proxy->pairs[i], true);
            }
        }
    } else {
        stop("no command '%s'", line);
    }
    (void)printf("%s\n", line); /* it holds from now on */
    (void)fflush(stdout);
}

static void hear(struct proxy *proxy)
{
    char bytes[LINE_SIZE];
    ssize_t length = read(proxy->control, bytes, sizeof bytes);
    for (ssize_t i = 0; i < length; i++) {
        if (bytes[i] == '\n') {
            proxy->line[proxy->line_length] = '\0';
            obey(proxy, proxy->line);
            proxy->line_length = 0;
        } else if (proxy->line_length < sizeof proxy->line - 1) {
            proxy->line[proxy->line_length++] = bytes[i];
        }
    }
}

/* ---------------------------------------------------------------- the loop */

/* A direction waits for these events; the poll ends at the latest when a chunk is due. */
static void watch(const struct proxy *proxy, const struct pair *pair, int way, struct pollfd *polls,
                  int64_t *wake_ns)
{
    const struct direction *direction = pair->directions[way];
    if (direction->count < CHUNKS_MAX && proxy->ways[way] != HOLD) {
        polls[way].events |= POLLIN;
    }
    if (direction->count > 0 && proxy->ways[way] != HOLD) {
        const struct chunk *chunk = &direction->chunks[direction->first];
        if (chunk->due_ns > clock_monotonic_ns()) {
            *wake_ns = chunk->due_ns < *wake_ns ? chunk->due_ns : *wake_ns;
        } else {
            polls[1 - way].events |= POLLOUT;
        }
    }
}

static void serve_pair(struct proxy *proxy, struct pair *pair, const struct pollfd *polls)
{
    int64_t now_ns = clock_monotonic_ns();
    bool good = true;
    for (int way = 0; way < DIRECTIONS && good; way++) {
        bool wanted = (polls[way].events & POLLIN) != 0;
        if (wanted && (polls[way].revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
            good = take(proxy, pair, way, now_ns);
        }
        good = good && give(proxy, pair, way, now_ns);
    }
    if (!good) {
        pair_close(pair, false);
    }
}

static void serve(struct proxy *proxy)
{
    enum { FIXED = 1 + LISTENERS_MAX };
    static struct pollfd polls[FIXED + 2 * PAIRS_MAX];
    int64_t wake_ns = clock_monotonic_ns() + NS_PER_S;
    polls[0] = (struct pollfd){.fd = proxy->control, .events = POLLIN};
    for (size_t i = 0; i < LISTENERS_MAX; i++) {
        polls[1 + i] = (struct pollfd){.fd = i < proxy->listener_count ? proxy->listeners[i] : -1,
                                       .events = POLLIN};
    }
    for (size_t i = 0; i < PAIRS_MAX; i++) {
        struct pair *pair = &proxy->pairs[i];
        for (int way = 0; way < DIRECTIONS; way++) {
            polls[FIXED + 2 * i + (size_t)way] = (struct pollfd){.fd = -1};
        }
        for (int way = 0; way < DIRECTIONS && pair->used; way++) {
            watch(proxy, pair, way, &polls[FIXED + 2 * i], &wake_ns);
        }
        for (int way = 0; way < DIRECTIONS && pair->used;
             way++) { /* no events: an end's hang-up waits */
            struct pollfd *one = &polls[FIXED + 2 * i + (size_t)way];
            one->fd = one->events != 0 ? pair->ends[way] : -1;
        }
    }
    int64_t left_ms = (wake_ns - clock_monotonic_ns()) / NS_PER_MS + 1;
    if (poll(polls, FIXED + 2 * PAIRS_MAX, left_ms > 0 ? (int)left_ms : 0) < 0 && errno != EINTR) {
        stop("poll: %s", strerror(errno));
    }
    for (size_t i = 0; i < PAIRS_MAX; i++) {
        if (proxy->pairs[i].used) {
            serve_pair(proxy, &proxy->pairs[i], &polls[FIXED + 2 * i]);
        }
    }
    for (size_t i = 0; i < proxy->listener_count; i++) {
        int caller = accept4(proxy->listeners[i], NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (caller >= 0) {
            pair_open(proxy, caller, proxy->targets[i]);
        }
    }
    if ((polls[0].revents & POLLIN) != 0) {
        hear(proxy);
    }
}

int main(int count, char **words)
{
    static struct proxy proxy;
    if (count < 3 || count - 2 > LISTENERS_MAX) {
        stop("usage: market-proxy CONTROL PORT:TARGET...");
    }
    (void)signal(SIGPIPE, SIG_IGN);
    proxy.control = open(words[1], O_RDWR | O_CLOEXEC); /* both: it never reads end of file */
    if (proxy.control < 0) {
        stop("%s: %s", words[1], strerror(errno));
    }
    for (int i = 2; i < count; i++) {
        unsigned port, target;
        if (sscanf(words[i], "%u:%u", &port, &target) != 2 || port > UINT16_MAX ||
            target > UINT16_MAX) {
            stop("'%s' is not PORT:TARGET", words[i]);
        }
        proxy.targets[proxy.listener_count] = (uint16_t)target;
        proxy.listeners[proxy.listener_count++] = listen_on((uint16_t)port);
    }
    for (;;) {
        serve(&proxy);
    }
}
