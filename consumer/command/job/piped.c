#include "consumer/command/job/piped.h"

#include "consumer/command/show.h"
#include "consumer/job/input_list.h"
#include "runtime/files.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE_BYTES = 1 << 16 };

/* Returns true for files, pipes and sockets. A terminal and other devices send nothing. */
static bool is_piped(struct stat *ret_status)
{
    return fstat(STDIN_FILENO, ret_status) == 0 &&
           (S_ISREG(ret_status->st_mode) || S_ISFIFO(ret_status->st_mode) ||
            S_ISSOCK(ret_status->st_mode));
}

/* Returns true when bytes are there already. Looks, and takes nothing. */
static bool has_bytes(const struct stat *status)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    int waiting = 0;
    if (S_ISREG(status->st_mode)) {
        off_t at = lseek(STDIN_FILENO, 0, SEEK_CUR);
        return at >= 0 && at < status->st_size;
    }
    return poll(&input, 1, 0) == 1 && (input.revents & POLLIN) != 0 &&
           ioctl(STDIN_FILENO, FIONREAD, &waiting) == 0 && waiting > 0;
}

static int copy(struct invocation *invocation, int to, int64_t *ret_bytes)
{
    char *piece = malloc(PIECE_BYTES);
    int64_t done = 0;
    ssize_t got = piece != NULL ? 1 : -1;
    errno = piece != NULL ? 0 : ENOMEM;
    bool good = true;
    while (good && got > 0) {
        do {
            got = read(STDIN_FILENO, piece, PIECE_BYTES);
        } while (got < 0 && errno == EINTR);
        if (got > 0 && done > PIPED_BYTES_MAX - got) {
            free(piece);
            return complain(invocation, BOURSE_USAGE,
                            "standard input has more than %" PRId64
                            " bytes, the most that `run` sends; give the file with --file",
                            PIPED_BYTES_MAX);
        }
        good = got <= 0 || file_write_at(to, piece, (size_t)got, (uint64_t)done);
        done += got > 0 ? got : 0;
    }
    const int why = errno;
    free(piece);
    *ret_bytes = done;
    if (got < 0 || !good) {
        return complain(invocation, BOURSE_LOCAL, "standard input cannot be %s: %s",
                        good ? "read" : "kept in a temporary file", strerror(why));
    }
    return BOURSE_OK;
}

int piped_read(struct invocation *invocation, const struct job_file *file, int *ret_fd)
{
    struct problem problem = {.text = ""};
    struct stat status;
    int64_t bytes = 0;
    *ret_fd = -1;
    if (file->standard_input != NULL || !is_piped(&status)) {
        return BOURSE_OK;
    }
    const bool has_some = has_bytes(&status);
    if (file->source != TEMPLATE_ONE) {
        return !has_some
                   ? BOURSE_OK
                   : complain(invocation, BOURSE_USAGE,
                              "standard input is piped, and the job has several subtasks: write "
                              "< /dev/null to send none, or give the bytes as a file with --file");
    }
    if (!has_some && S_ISFIFO(status.st_mode) && !invocation->quiet && !invocation->json) {
        struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
        if (poll(&input, 1, 0) == 0) { /* somebody may still write */
            (void)fputs("bourse: standard input is a pipe, and the job starts when it ends; "
                        "< /dev/null sends none\n",
                        stderr);
        }
    }
    int fd = input_temporary(&problem);
    if (fd < 0) {
        return complain(invocation, BOURSE_LOCAL, "%s", problem.text);
    }
    const int result = copy(invocation, fd, &bytes);
    if (result != BOURSE_OK || bytes == 0) {
        (void)close(fd); /* the file has no name and ends here */
        return result;
    }
    *ret_fd = fd;
    return BOURSE_OK;
}
