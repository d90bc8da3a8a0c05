#include "provider/worker/packet.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* The union is aligned for the kernel's headers. */
union control {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(PACKET_FILES * sizeof(int))];
};

bool packet_pair(int ret_sockets[2])
{
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret_sockets) == 0;
}

bool packet_send(int socket, const void *bytes, size_t length, const int *files, size_t file_count)
{
    assert(length > 0);
    assert(file_count <= PACKET_FILES);

    struct iovec vector = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = length};
    struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1};
    union control control;
    if (file_count > 0) {
        memset(&control, 0, CMSG_SPACE(file_count * sizeof(int)));
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(file_count * sizeof(int));
        memcpy(CMSG_DATA(&control.header), files, file_count * sizeof(int));
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(file_count * sizeof(int));
    }
    ssize_t sent;
    do {
        sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)length;
}

static size_t take_files(struct msghdr *message, int *ret_files, size_t capacity, bool *ret_fits)
{
    size_t count = 0;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header != NULL;
         header = CMSG_NXTHDR(message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        size_t files = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < files; i++) {
            int file;
            memcpy(&file, CMSG_DATA(header) + i * sizeof(int), sizeof file);
            if (count < capacity) {
                ret_files[count++] = file;
            } else {
                *ret_fits = false;
                (void)close(file);
            }
        }
    }
    return count;
}

ssize_t packet_receive(int socket, void *ret_bytes, size_t capacity, int *ret_files,
                       size_t file_capacity, size_t *ret_file_count)
{
    union control control;
    struct iovec vector = {.iov_base = ret_bytes, .iov_len = capacity};
    struct msghdr message = {.msg_iov = &vector,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    ssize_t length;
    do {
        length = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    } while (length < 0 && errno == EINTR);

    *ret_file_count = 0;
    if (length < 0) {
        return -1;
    }
    bool fits = (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
    size_t count = take_files(&message, ret_files, file_capacity, &fits);
    if (!fits) {
        packet_close_files(ret_files, count);
        errno = EMSGSIZE;
        return -1;
    }
    *ret_file_count = count;
    return length;
}

void packet_close_files(int *files, size_t file_count)
{
    for (size_t i = 0; i < file_count; i++) {
        (void)close(files[i]);
        files[i] = -1;
    }
}
