#include "runtime/descriptor.h"

#include "base/checked.h"
#include "runtime/clock.h"

#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TICKET_BYTES = sizeof((struct id128 *)NULL)->bytes, STRANGERS_MOST = 64 };

/* The kernel reports this user for one without a number here. No user of ours has it. */
#define UID_UNMAPPED ((uid_t)65534)

bool descriptor_path(const char *endpoint, char *ret_path, size_t capacity)
{
    static const char scheme[] = "ipc://";
    static const char suffix[] = ".sock";
    size_t length = strlen(endpoint);
    size_t around = sizeof scheme - 1 + sizeof suffix - 1;
    if (length <= around || strncmp(endpoint, scheme, sizeof scheme - 1) != 0 ||
        strcmp(endpoint + length - (sizeof suffix - 1), suffix) != 0) {
        return false;
    }
    int name = (int)(length - around);
    int written = snprintf(ret_path, capacity, "%.*s.fd", name, endpoint + sizeof scheme - 1);
    return written > 0 && (size_t)written < capacity;
}

static bool address_of(const char *path, struct sockaddr_un *ret_address)
{
    *ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
    size_t length = strlen(path);
    if (length >= sizeof ret_address->sun_path) {
        return false;
    }
    memcpy(ret_address->sun_path, path, length);
    return true;
}

static int open_socket(void)
{
    return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* ---- the side that hands over ---- */

bool descriptor_port_open(const char *path, bool group, int *ret_port, struct problem *ret_problem)
{
    struct sockaddr_un address;
    if (!address_of(path, &address)) {
        problem_set(ret_problem, "%.60s...: a socket's path has at most %zu bytes", path,
                    sizeof address.sun_path - 1);
        return false;
    }
    (void)unlink(path); /* there may be none */
    int port = open_socket();
    if (port < 0 || bind(port, (const struct sockaddr *)&address, sizeof address) != 0 ||
        chmod(path, group ? 0660 : 0600) != 0) {
        problem_set(ret_problem, "%s: %s", path, strerror(errno));
        if (port >= 0) {
            (void)close(port);
        }
        return false;
    }
    *ret_port = port;
    return true;
}

/* Returns true for an abstract address. A send to a path could wait for a file system that the
 * asker chose. */
static bool can_be_answered(const struct descriptor_asker *asker)
{
    return asker->length > offsetof(struct sockaddr_un, sun_path) &&
           asker->address.sun_family == AF_UNIX && asker->address.sun_path[0] == '\0';
}

bool descriptor_port_receive(int port, struct id128 *ret_ticket, struct descriptor_asker *ret_asker)
{
    for (int i = 0; i < STRANGERS_MOST; i++) {
        ret_asker->length = sizeof ret_asker->address;
        /* The call has no room for descriptors, so the kernel closes those sent to us. */
        ssize_t got = recvfrom(port, ret_ticket->bytes, TICKET_BYTES, MSG_TRUNC,
                               (struct sockaddr *)&ret_asker->address, &ret_asker->length);
        if (got < 0 && errno != EINTR) {
            return false;
        }
        if (got == TICKET_BYTES && can_be_answered(ret_asker)) {
            return true;
        }
    }
    return false; /* now others get a turn */
}

/* Returns true when answers that nobody reads take half of what the port may have under way. */
static bool is_half_taken(int port)
{
    int taken = 0;
    int most = 0;
    socklen_t size = sizeof most;
    return ioctl(port, SIOCOUTQ, &taken) == 0 &&
           getsockopt(port, SOL_SOCKET, SO_SNDBUF, &most, &size) == 0 && taken > most / 2;
}

/* The answer is one byte, or the hash of the file's content. A stranger who never reads answers
 * would take all room for answers, where the kernel queues many for him. So half of the room is
 * kept for askers who get a file. */
void descriptor_port_answer(int port, const struct descriptor_asker *asker, int fd,
                            const struct hash32 *hash)
{
    if (fd < 0 && is_half_taken(port)) {
        return;
    }
    struct hash32 said = {{0}};
    struct iovec part = {.iov_base = said.bytes, .iov_len = hash != NULL ? sizeof said.bytes : 1};
    if (hash != NULL) {
        said = *hash;
    }
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof fd)];
    } control;
    memset(&control, 0, sizeof control);
    struct msghdr message = {.msg_name = (void *)(uintptr_t)&asker->address, /* only read */
                             .msg_namelen = asker->length,
                             .msg_iov = &part,
                             .msg_iovlen = 1};
    if (fd >= 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(head), &fd, sizeof fd);
    }
    (void)sendmsg(port, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* ---- the side that asks ---- */

static bool is_believed(const struct ucred *sender)
{
    return sender->uid == 0 || (sender->uid == geteuid() && sender->uid != UID_UNMAPPED);
}

static bool read_answer(int socket, struct descriptor_answer *ret_answer)
{
    struct iovec part = {.iov_base = ret_answer->hash.bytes,
                         .iov_len = sizeof ret_answer->hash.bytes};
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             /* Room for the credentials, which come first, and one descriptor. */
                             .msg_controllen =
                                 CMSG_SPACE(sizeof(struct ucred)) + CMSG_LEN(sizeof(int))};
    struct ucred sender = {.uid = UID_UNMAPPED};
    memset(&control, 0, sizeof control);
    ssize_t got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    if (got < 0) {
        return false;
    }
    /* Older C libraries miss a last header that ends unaligned, unless zeros follow. */
    message.msg_controllen = sizeof control.bytes;
    for (struct cmsghdr *head = CMSG_FIRSTHDR(&message); head != NULL && head->cmsg_len != 0;
         head = CMSG_NXTHDR(&message, head)) {
        if (head->cmsg_level != SOL_SOCKET) {
            continue;
        }
        if (head->cmsg_type == SCM_RIGHTS && head->cmsg_len == CMSG_LEN(sizeof ret_answer->fd)) {
            memcpy(&ret_answer->fd, CMSG_DATA(head), sizeof ret_answer->fd);
        } else if (head->cmsg_type == SCM_CREDENTIALS &&
                   head->cmsg_len == CMSG_LEN(sizeof sender)) {
            memcpy(&sender, CMSG_DATA(head), sizeof sender);
        }
    }
    ret_answer->has_hash = ret_answer->fd >= 0 && got == (ssize_t)sizeof ret_answer->hash.bytes &&
                           is_believed(&sender);
    return true;
}

static bool has_answer(int socket, int wait_ms)
{
    struct pollfd item = {.fd = socket, .events = POLLIN};
    int64_t until_ns = clock_monotonic_ns() + wait_ms * NS_PER_MS;
    for (;;) {
        int64_t left_ns = until_ns - clock_monotonic_ns();
        int ready = poll(&item, 1, left_ns <= 0 ? 0 : (int)(left_ns / NS_PER_MS) + 1);
        if (ready >= 0 || errno != EINTR) {
            return ready == 1;
        }
    }
}

bool descriptor_ask(const char *path, const struct id128 *ticket, int wait_ms,
                    struct descriptor_answer *ret_answer)
{
    const int yes = 1;
    struct sockaddr_un address;
    const struct sockaddr_un nameless = {.sun_family = AF_UNIX}; /* the kernel picks a name */
    int socket = address_of(path, &address) ? open_socket() : -1;
    *ret_answer = (struct descriptor_answer){.fd = -1};
    if (socket < 0) {
        return false;
    }
    /* The socket connects before it has a name, so that no other socket can send here. */
    bool is_answered =
        connect(socket, (const struct sockaddr *)&address, sizeof address) == 0 &&
        bind(socket, (const struct sockaddr *)&nameless, sizeof nameless.sun_family) == 0 &&
        setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes) == 0 &&
        send(socket, ticket->bytes, TICKET_BYTES, MSG_NOSIGNAL) == TICKET_BYTES &&
        has_answer(socket, wait_ms) && read_answer(socket, ret_answer);
    (void)close(socket);
    return is_answered;
}
