#include "tests/support/broker_process.h"

#include "tests/support/child.h"

#include "base/checked.h"
#include "base/text.h"
#include "protocol/limits.h"
#include "runtime/clock.h"
#include "runtime/entropy.h"
#include "runtime/files.h"
#include "runtime/keyfile.h"

#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

#define WAIT_NS (120 * NS_PER_S)

static void pause_shortly(void)
{
    const struct timespec pause = {.tv_nsec = 5 * NS_PER_MS};
    (void)nanosleep(&pause, NULL); /* between two looks at an event that has no descriptor */
}

void broker_process_init(struct broker_process *self, const char *extra)
{
    *self = (struct broker_process){.folder = "/tmp/bourse-test-XXXXXX"};
    ck_assert_ptr_nonnull(mkdtemp(self->folder));
    struct problem problem;
    char path[256];
    (void)snprintf(path, sizeof path, "%s/owner.key", self->folder);
    ck_assert_msg(keyfile_create(path, &self->owner, &problem), "%s", problem.text);
    char key[65];
    char text[2048];
    text_hex(identity_key(self->owner)->bytes, 32, key);
    (void)snprintf(
        text, sizeof text,
        "%s\nheartbeat: 20s\ngenesis:\n  accounts:\n    - {key: \"%s\", name: owner, roles: "
        "[consumer, operator], credits: 100}\n",
        extra, key); /* who stands still for some seconds must not count as missing */
    (void)snprintf(path, sizeof path, "%s/broker.yaml", self->folder);
    ck_assert_msg(file_write(path, text, strlen(text), 0600, &problem), "%s", problem.text);
}

static pid_t spawn(const char *const words[], int output)
{
    pid_t pid = child_fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        if (output >= 0) {
            (void)dup2(output, STDOUT_FILENO);
            (void)dup2(output, STDERR_FILENO);
        }
        execv(BOURSE_BIN_DIR "/bourse-broker", (char *const *)(uintptr_t)words);
        _exit(127);
    }
    return pid;
}

void broker_process_start(struct broker_process *self)
{
    const char *words[] = {"bourse-broker", "run", "--dir", self->folder, "--log", "warning", NULL};
    self->pid = spawn(words, -1);
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", self->folder, MARKET_FILE);
    int64_t deadline = clock_monotonic_ns() + WAIT_NS;
    struct problem problem = {.text = ""};
    while (!market_read(path, &self->market, &problem) || self->market.pid != self->pid) {
        ck_assert_msg(clock_monotonic_ns() < deadline, "the broker was not ready in time: %s",
                      problem.text);
        ck_assert_msg(waitpid(self->pid, NULL, WNOHANG) == 0, "the broker ended at its start");
        pause_shortly();
    }
}

int broker_process_stop(struct broker_process *self, int signal_number)
{
    int status = 0;
    ck_assert_int_eq(kill(self->pid, signal_number), 0);
    ck_assert_int_eq(waitpid(self->pid, &status, 0), self->pid);
    self->pid = 0;
    return status;
}

void broker_process_fini(struct broker_process *self)
{
    if (self->pid != 0) {
        (void)broker_process_stop(self, SIGKILL);
    }
    pid_t pid = fork();
    if (pid == 0) {
        execlp("rm", "rm", "-rf", self->folder, (char *)NULL);
        _exit(127);
    }
    (void)waitpid(pid, NULL, 0);
    identity_destroy(&self->owner);
}

int broker_process_run(const char *const words[], char *output, size_t capacity)
{
    int ends[2];
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    pid_t pid = spawn(words, ends[1]);
    (void)close(ends[1]);
    size_t length = 0;
    ssize_t got;
    while (length + 1 < capacity &&
           (got = read(ends[0], output + length, capacity - 1 - length)) > 0) {
        length += (size_t)got;
    }
    output[length] = '\0';
    (void)close(ends[0]);
    int status = 0;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* ---------------------------------------------------------------- clients */

static void flush(struct broker_client *self)
{
    const uint8_t *message;
    size_t length;
    zmq_pollitem_t item = {.socket = link_socket(self->link), .events = ZMQ_POLLOUT};
    while (zmq_poll(&item, 1, 10) == 1 && dialogue_outgoing(self->dialogue, &message, &length)) {
        ck_assert(link_send(self->link, message, length));
    }
}

/* Returns the next event that means something, or NOTHING after a while. */
static struct dialogue_event step(struct broker_client *self)
{
    struct dialogue_event event = {.type = DIALOGUE_NOTHING};
    const uint8_t *message;
    size_t length;
    flush(self);
    int got = link_receive(self->link, 50, &message, &length);
    ck_assert_int_ge(got, 0);
    int64_t now_ns = clock_monotonic_ns();
    if (got == 1) {
        dialogue_incoming(self->dialogue, now_ns, message, length, &event);
    } else if (now_ns >= dialogue_next_deadline_ns(self->dialogue)) {
        dialogue_tick(self->dialogue, now_ns, &event);
        flush(self);
    }
    ck_assert_msg(event.type != DIALOGUE_BROKEN, "the broker sent what is not understood: %s",
                  event.text);
    return event;
}

static void greet(struct broker_client *self)
{
    dialogue_connected(self->dialogue, clock_monotonic_ns(), 1);
    int64_t deadline = clock_monotonic_ns() + WAIT_NS;
    while (!dialogue_ready(self->dialogue)) {
        ck_assert_msg(clock_monotonic_ns() < deadline, "no Welcome in time");
        struct dialogue_event event = step(self);
        codec_free(&event.body);
        if (event.type == DIALOGUE_LOST) { /* its Hello was above a rate, so it greets again */
            struct problem problem;
            (void)zmq_poll(NULL, 0, (long)(event.wait_ns / NS_PER_MS));
            ck_assert_msg(link_reopen(self->link, &problem), "%s", problem.text);
            dialogue_connected(self->dialogue, clock_monotonic_ns(), 1);
        }
    }
}

void broker_client_open(struct broker_client *self, const struct broker_process *broker,
                        const struct identity *identity, enum session_role role)
{
    struct problem problem;
    self->context = zmq_ctx_new();
    ck_assert_ptr_nonnull(self->context);
    ck_assert_msg(link_open(self->context, broker->market.control, &broker->market.server, identity,
                            LIMIT_MESSAGE_BYTES, &self->link, &problem),
                  "%s", problem.text);
    struct dialogue_config config = {.identity = identity,
                                     .role = role,
                                     .program = "test 1",
                                     .pending_max = 64,
                                     .pending_bytes_max = 1 << 22};
    self->dialogue = dialogue_create(&config);
    ck_assert_ptr_nonnull(self->dialogue);
    greet(self);
}

void broker_client_reopen(struct broker_client *self)
{
    struct problem problem;
    ck_assert_msg(link_reopen(self->link, &problem), "%s", problem.text);
    greet(self);
}

void broker_client_close(struct broker_client *self)
{
    dialogue_destroy(&self->dialogue);
    link_close(&self->link);
    (void)zmq_ctx_term(self->context);
}

struct dialogue_event broker_client_ask(struct broker_client *self, enum message_type type,
                                        const struct id128 *id, const ProtobufCMessage *body)
{
    struct id128 own = id == NULL ? entropy_id() : *id;
    ck_assert_int_eq(dialogue_request(self->dialogue, clock_monotonic_ns(), type, &own, body),
                     DIALOGUE_OK);
    int64_t deadline = clock_monotonic_ns() + WAIT_NS;
    for (;;) {
        ck_assert_msg(clock_monotonic_ns() < deadline, "no answer in time");
        struct dialogue_event event = step(self);
        bool is_answer = event.type == DIALOGUE_ACCEPTED || event.type == DIALOGUE_REJECTED ||
                         event.type == DIALOGUE_REPLY;
        if (is_answer && id128_equal(&event.id, &own)) {
            return event;
        }
        codec_free(&event.body);
    }
}

struct dialogue_event broker_client_hear(struct broker_client *self)
{
    int64_t deadline = clock_monotonic_ns() + WAIT_NS;
    struct dialogue_event event = step(self);
    while (event.type == DIALOGUE_NOTHING) {
        ck_assert_msg(clock_monotonic_ns() < deadline, "nothing in time");
        event = step(self);
    }
    return event;
}

struct dialogue_event broker_client_push(struct broker_client *self, enum message_type type)
{
    int64_t deadline = clock_monotonic_ns() + WAIT_NS;
    for (;;) {
        ck_assert_msg(clock_monotonic_ns() < deadline, "no push in time");
        struct dialogue_event event = step(self);
        if (event.type == DIALOGUE_PUSH && event.message_type == type) {
            return event;
        }
        codec_free(&event.body);
    }
}
