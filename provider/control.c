#include "provider/control.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

json_t *control_refusal(const char *error, const char *text)
{
    return json_pack("{s:b, s:s, s:s}", "ok", 0, "error", error, "text", text);
}

/* ---------------------------------------------------------------- the socket */

/* A folder's name may be longer than a socket's address, so the address names the folder's
 * descriptor. */
static bool address_of(const char *folder, int *ret_folder, struct sockaddr_un *ret_address)
{
    *ret_folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (*ret_folder < 0) {
        return false;
    }
    *ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
    (void)snprintf(ret_address->sun_path, sizeof ret_address->sun_path, "/proc/self/fd/%d/%s",
                   *ret_folder, MARKET_CONTROL_SOCKET);
    return true;
}

static bool bind_there(int listener, const char *folder, struct problem *problem)
{
    struct sockaddr_un address;
    int folder_fd;
    if (!address_of(folder, &folder_fd, &address)) {
        problem_set(problem, "cannot open %s: %s", folder, strerror(errno));
        return false;
    }
    bool good = unlinkat(folder_fd, MARKET_CONTROL_SOCKET, 0) == 0 || errno == ENOENT;
    /* The mode is set before bind, so the socket's name has it from the first moment on. */
    good = good && fchmod(listener, 0600) == 0 &&
           bind(listener, (const struct sockaddr *)&address, sizeof address) == 0 &&
           listen(listener, CONTROL_CLIENTS_MAX) == 0;
    if (!good) {
        problem_set(problem, "cannot listen at %s/%s: %s", folder, MARKET_CONTROL_SOCKET,
                    strerror(errno));
    }
    close(folder_fd);
    return good;
}

/* ---------------------------------------------------------------- clients */

enum client_state {
    CLIENT_FREE,
    CLIENT_TALKING, /* the client's line is incomplete */
    CLIENT_WAITING, /* waits for the agent's answer */
    CLIENT_TAKING,  /* the client's answer is partly sent */
};

struct client {
    enum client_state state;
    uint64_t number;
    int fd;
    int64_t until_ns; /* time to drop it; INT64_MAX: it waits for us */
    char line[CONTROL_LINE_MAX + 1];
    size_t length;
    char *answer; /* the line, newline included */
    size_t answer_length, taken;
};

struct control {
    int listener, poll;
    char folder[1024];
    uint64_t clients_ever;
    struct client clients[CONTROL_CLIENTS_MAX];
};

enum {
    LISTENER = CONTROL_CLIENTS_MAX,
    TURNS_MAX = 4 * CONTROL_CLIENTS_MAX, /* limit of one call: others wait for the agent, too */
};

bool control_open(const char *folder, struct control **ret_control, struct problem *ret_problem)
{
    struct control *control = calloc(1, sizeof *control);
    if (control == NULL) {
        problem_set(ret_problem, "out of memory");
        return false;
    }
    (void)snprintf(control->folder, sizeof control->folder, "%s", folder);
    control->poll = epoll_create1(EPOLL_CLOEXEC);
    control->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = LISTENER};
    bool good = control->poll >= 0 && control->listener >= 0;
    if (!good) {
        problem_set(ret_problem, "no socket for the owner: %s", strerror(errno));
    }
    good = good && bind_there(control->listener, folder, ret_problem);
    if (good && epoll_ctl(control->poll, EPOLL_CTL_ADD, control->listener, &event) != 0) {
        problem_set(ret_problem, "no socket for the owner: %s", strerror(errno));
        good = false;
    }
    if (!good) {
        control_close(&control);
        return false;
    }
    *ret_control = control;
    return true;
}

static void drop(struct client *client)
{
    if (client->state != CLIENT_FREE) {
        close(client->fd); /* this also leaves the poll */
        free(client->answer);
        client->answer = NULL;
        client->state = CLIENT_FREE;
    }
}

void control_close(struct control **self)
{
    struct control *control = *self;
    if (control == NULL) {
        return;
    }
    for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++) {
        drop(&control->clients[i]);
    }
    if (control->listener >= 0) {
        char path[sizeof control->folder + sizeof MARKET_CONTROL_SOCKET + 1];
        (void)snprintf(path, sizeof path, "%s/%s", control->folder, MARKET_CONTROL_SOCKET);
        (void)unlink(path); /* a next agent would do it */
        close(control->listener);
    }
    if (control->poll >= 0) {
        close(control->poll);
    }
    free(control);
    *self = NULL;
}

int control_fd(const struct control *control)
{
    return control->poll;
}

int64_t control_next_deadline_ns(const struct control *control)
{
    int64_t deadline_ns = INT64_MAX;
    for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++) {
        const struct client *client = &control->clients[i];
        if (client->state != CLIENT_FREE && client->until_ns < deadline_ns) {
            deadline_ns = client->until_ns;
        }
    }
    return deadline_ns;
}

static void watch(struct control *control, struct client *client, uint32_t events)
{
    struct epoll_event event = {.events = events,
                                .data.u32 = (uint32_t)(client - control->clients)};
    (void)epoll_ctl(control->poll, EPOLL_CTL_MOD, client->fd, &event); /* registered */
}

/* ---------------------------------------------------------------- answers */

static void write_answer(struct control *control, struct client *client)
{
    while (client->taken < client->answer_length) {
        ssize_t sent = send(client->fd, client->answer + client->taken,
                            client->answer_length - client->taken, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR) {
            continue;
        }
        if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            watch(control, client, EPOLLOUT);
            return;
        }
        if (sent <= 0) {
            break;
        }
        client->taken += (size_t)sent;
    }
    drop(client);
}

/* Returns the answer as one line, which the caller frees, or NULL when memory is short. */
static char *line_of(const json_t *answer, size_t *ret_length)
{
    char *text = answer == NULL ? NULL : json_dumps(answer, JSON_COMPACT);
    size_t length = text == NULL ? 0 : strlen(text);
    char *line = text == NULL ? NULL : realloc(text, length + 1);
    if (line == NULL) {
        free(text);
        return NULL;
    }
    line[length] = '\n'; /* replaces the NUL */
    *ret_length = length + 1;
    return line;
}

static void answer_client(struct control *control, int64_t now_ns, struct client *client,
                          json_t *answer)
{
    client->answer = line_of(answer, &client->answer_length);
    client->taken = 0;
    client->state = CLIENT_TAKING;
    client->until_ns = now_ns + CONTROL_PATIENCE_NS;
    json_decref(answer);
    if (client->answer == NULL) {
        drop(client);
        return;
    }
    write_answer(control, client);
}

void control_answer(struct control *control, int64_t now_ns, uint64_t number, json_t *answer)
{
    for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++) {
        struct client *client = &control->clients[i];
        if (client->state == CLIENT_WAITING && client->number == number) {
            answer_client(control, now_ns, client, answer);
            return;
        }
    }
    json_decref(answer);
}

bool control_waits(const struct control *control, uint64_t number)
{
    for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++) {
        const struct client *client = &control->clients[i];
        if (client->state == CLIENT_WAITING && client->number == number) {
            return true;
        }
    }
    return false;
}

/* ---------------------------------------------------------------- new clients */

static bool is_owner(int fd)
{
    struct ucred who;
    socklen_t length = sizeof who;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length) == 0 &&
           (who.uid == geteuid() || who.uid == 0);
}

/* Returns a free place, or that of the oldest client without a complete line. Returns NULL when all
 * wait for an answer. */
static struct client *place(struct control *control)
{
    struct client *oldest = NULL;
    for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++) {
        struct client *client = &control->clients[i];
        if (client->state == CLIENT_FREE) {
            return client;
        }
        if (client->state == CLIENT_TALKING &&
            (oldest == NULL || client->number < oldest->number)) {
            oldest = client;
        }
    }
    if (oldest != NULL) {
        drop(oldest);
    }
    return oldest;
}

static void refuse_at_door(int fd, const char *error, const char *text)
{
    json_t *answer = control_refusal(error, text);
    size_t length;
    char *line = line_of(answer, &length);
    if (line != NULL) {
        (void)send(fd, line, length, MSG_NOSIGNAL | MSG_DONTWAIT); /* a courtesy */
    }
    free(line);
    json_decref(answer);
    close(fd);
}

static void accept_one(struct control *control, int64_t now_ns)
{
    int fd = accept4(control->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
        return; /* the client went away again */
    }
    if (!is_owner(fd)) {
        refuse_at_door(fd, "DENIED", "only the agent's own user and root are heard here");
        return;
    }
    struct client *client = place(control);
    if (client == NULL) {
        refuse_at_door(fd, "BUSY", "others wait for an answer; try again in a moment");
        return;
    }
    struct epoll_event event = {.events = EPOLLIN,
                                .data.u32 = (uint32_t)(client - control->clients)};
    if (epoll_ctl(control->poll, EPOLL_CTL_ADD, fd, &event) != 0) {
        close(fd);
        return;
    }
    client->state = CLIENT_TALKING;
    client->number = ++control->clients_ever;
    client->fd = fd;
    client->length = 0;
    client->until_ns = now_ns + CONTROL_PATIENCE_NS;
}

/* ---------------------------------------------------------------- requests */

/* Returns true when a complete line is there, of *ret_length bytes without the newline. */
static bool read_line(struct client *client, size_t *ret_length)
{
    for (;;) {
        size_t room = sizeof client->line - client->length;
        ssize_t got =
            room == 0 ? 0 : recv(client->fd, client->line + client->length, room, MSG_DONTWAIT);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            return false;
        }
        if (got <= 0) { /* the client hung up in the middle; too long a line never gets here */
            drop(client);
            return false;
        }
        const char *newline = memchr(client->line + client->length, '\n', (size_t)got);
        client->length += (size_t)got;
        if (newline != NULL || client->length == sizeof client->line) {
            *ret_length = newline != NULL ? (size_t)(newline - client->line) : client->length;
            return true;
        }
    }
}

static bool hear(struct control *control, int64_t now_ns, struct client *client,
                 struct control_request *ret_request)
{
    size_t length;
    struct problem problem = {""};
    if (client->state == CLIENT_TAKING) {
        write_answer(control, client);
        return false;
    }
    if (client->state == CLIENT_WAITING) { /* the client hung up: nothing else wakes us for it */
        drop(client);
        return false;
    }
    if (client->state == CLIENT_FREE || !read_line(client, &length)) {
        return false;
    }
    if (!control_request_read(client->line, length, ret_request, &problem)) {
        answer_client(control, now_ns, client, control_refusal("BAD_REQUEST", problem.text));
        return false;
    }
    client->state = CLIENT_WAITING;
    client->until_ns = INT64_MAX;
    watch(control, client, 0); /* one request each; later bytes are not read */
    return true;
}

static void drop_late(struct control *control, int64_t now_ns)
{
    for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++) {
        if (now_ns >= control->clients[i].until_ns) {
            drop(&control->clients[i]);
        }
    }
}

bool control_next(struct control *control, int64_t now_ns, uint64_t *ret_client,
                  struct control_request *ret_request)
{
    struct epoll_event event;
    drop_late(control, now_ns);
    for (int turn = 0; turn < TURNS_MAX && epoll_wait(control->poll, &event, 1, 0) == 1; turn++) {
        if (event.data.u32 == LISTENER) {
            accept_one(control, now_ns);
        } else if (hear(control, now_ns, &control->clients[event.data.u32], ret_request)) {
            *ret_client = control->clients[event.data.u32].number;
            return true;
        }
    }
    return false;
}

/* ---------------------------------------------------------------- the owner's end */

static enum control_status connect_there(int fd, const char *folder, struct problem *problem)
{
    struct sockaddr_un address;
    int folder_fd;
    int code = 0;
    if (!address_of(folder, &folder_fd, &address)) {
        code = errno;
    } else {
        code = connect(fd, (const struct sockaddr *)&address, sizeof address) == 0 ? 0 : errno;
        close(folder_fd);
    }
    switch (code) {
    case 0:
        return CONTROL_OK;
    case ENOENT:
    case ECONNREFUSED:
        problem_set(problem,
                    "no agent runs in %s; start it with `bourse-provider run`, or name "
                    "its folder with --dir",
                    folder);
        return CONTROL_NOBODY;
    case EACCES:
    case EPERM:
        problem_set(problem, "%s is another user's: ask as that user, or as root", folder);
        return CONTROL_DENIED;
    default:
        problem_set(problem, "cannot reach the agent in %s: %s", folder, strerror(code));
        return CONTROL_FAILED;
    }
}

static bool send_line(int fd, const char *line)
{
    size_t length = strlen(line);
    for (size_t at = 0; at < length;) {
        ssize_t sent = send(fd, line + at, length - at, MSG_NOSIGNAL);
        if (sent <= 0 && errno != EINTR) {
            return false;
        }
        at += sent > 0 ? (size_t)sent : 0;
    }
    return true;
}

/* Reads up to the newline, or the end. The caller frees. */
static char *receive_line(int fd, int64_t timeout_ms, size_t *ret_length, struct problem *problem)
{
    size_t capacity = 4096;
    size_t length = 0;
    char *text = malloc(capacity);
    while (text != NULL) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        int ready = poll(&wait, 1, timeout_ms == 0 ? -1 : (int)timeout_ms);
        ssize_t got = ready == 1 ? recv(fd, text + length, capacity - length, 0) : -1;
        if (got < 0 && ready != 0 && errno == EINTR) {
            continue;
        }
        length += got > 0 ? (size_t)got : 0;
        if (got > 0 && text[length - 1] == '\n') {
            *ret_length = length - 1;
            return text;
        }
        if (got <= 0) {
            problem_set(problem, ready == 0 ? "the agent does not answer"
                                            : "the agent ended before it answered");
            break;
        }
        if (length == capacity) {
            char *grown = capacity < CONTROL_ANSWER_MAX ? realloc(text, 2 * capacity) : NULL;
            if (grown == NULL) {
                problem_set(problem,
                            "the agent's answer has more than %d bytes, or memory is short",
                            (int)capacity);
                break;
            }
            text = grown;
            capacity *= 2;
        }
    }
    free(text);
    return NULL;
}

static enum control_status talk(int fd, const char *line, int64_t timeout_ms, json_t **ret_answer,
                                struct problem *problem)
{
    problem_set(problem, "the agent's answer makes no sense; are both of one version?");
    if (!send_line(fd, line)) {
        problem_set(problem, "the agent does not listen: %s", strerror(errno));
        return CONTROL_FAILED;
    }
    size_t length = 0;
    char *text = receive_line(fd, timeout_ms, &length, problem);
    if (text == NULL) {
        return CONTROL_FAILED;
    }
    *ret_answer = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
    free(text);
    return json_is_boolean(json_object_get(*ret_answer, "ok")) ? CONTROL_OK : CONTROL_FAILED;
}

enum control_status control_ask(const char *folder, const struct control_request *request,
                                int64_t timeout_ms, json_t **ret_answer,
                                struct problem *ret_problem)
{
    char line[CONTROL_LINE_MAX];
    *ret_answer = NULL;
    if (!control_request_write(request, line, sizeof line)) {
        problem_set(ret_problem, "the name of a device is UTF-8 text");
        return CONTROL_FAILED;
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        problem_set(ret_problem, "no socket: %s", strerror(errno));
        return CONTROL_FAILED;
    }
    enum control_status status = connect_there(fd, folder, ret_problem);
    if (status == CONTROL_OK) {
        status = talk(fd, line, timeout_ms, ret_answer, ret_problem);
    }
    close(fd);
    return status;
}
