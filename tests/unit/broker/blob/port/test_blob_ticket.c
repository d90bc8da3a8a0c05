/* Files of blobs for tickets: once, in time, within bounds, and whatever strangers send. */
#include "broker/blob/port/blob_ticket.h"

#include "base/sha256.h"
#include "runtime/descriptor.h"
#include "runtime/entropy.h"
#include "tests/support/suite.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ALICE = 3, BOB = 4, LARGE = 200000, LONG_MS = 10000 };

static char folder[64], socket_path[100];
static struct blob_store *store;
static struct blob_tickets tickets;
static uint8_t bytes[LARGE];
static struct hash32 blob;

/* A store with one large blob of Alice's, and a port. */
static void setup(void)
{
    struct problem problem = {""};
    (void)snprintf(folder, sizeof folder, "/tmp/bourse-ticket-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    char blobs[80];
    (void)snprintf(blobs, sizeof blobs, "%s/blobs", folder);
    (void)snprintf(socket_path, sizeof socket_path, "%s/blobs.fd", folder);
    const struct blob_store_config config = {
        .folder = blobs, .quota_bytes = 1 << 20, .size_bytes = 1 << 20};
    ck_assert_msg(blob_store_open(&config, &store, &problem), "%s", problem.text);
    for (size_t i = 0; i < LARGE; i++) {
        bytes[i] = (uint8_t)(i * 7 + i / 256);
    }
    blob = sha256_of(bytes, LARGE);
    const struct blob_chunk chunk = {
        .account = ALICE, .hash = blob, .size = LARGE, .data = bytes, .length = LARGE};
    uint64_t stored = 0;
    bool is_complete = false;
    ck_assert_int_eq(blob_store_begin(store), BLOB_OK);
    ck_assert_int_eq(blob_store_put(store, &chunk, 1, &stored, &is_complete), BLOB_OK);
    ck_assert(is_complete);
    ck_assert_int_eq(blob_store_commit(store), BLOB_OK);
    tickets = (struct blob_tickets){.port = -1};
    ck_assert_msg(descriptor_port_open(socket_path, false, &tickets.port, &problem), "%s",
                  problem.text);
}

static void teardown(void)
{
    char command[100];
    (void)close(tickets.port);
    blob_store_close(&store);
    (void)snprintf(command, sizeof command, "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}

struct asking {
    struct id128 token;
    bool is_answered;
    struct descriptor_answer answer;
    atomic_bool is_done;
};

static void *ask(void *argument)
{
    struct asking *asking = argument;
    asking->is_answered = descriptor_ask(socket_path, &asking->token, LONG_MS, &asking->answer);
    atomic_store(&asking->is_done, true);
    return NULL;
}

/* Returns what a caller gets who brings `token` at `now_ns`. */
static int brought(const struct id128 *token, int64_t now_ns)
{
    struct asking asking = {.token = *token};
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, ask, &asking), 0);
    while (!atomic_load(&asking.is_done)) {
        blob_tickets_serve(&tickets, store, now_ns);
    }
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert(asking.is_answered);
    return asking.answer.fd;
}

static struct id128 promised(uint32_t account, int64_t now_ns)
{
    struct id128 token = entropy_id();
    ck_assert(blob_ticket_promise(&tickets, &token, account, &blob, now_ns));
    return token;
}

START_TEST(a_ticket_brings_the_file_once_and_only_to_be_read)
{
    struct id128 token = promised(ALICE, 5);
    int fd = brought(&token, 6);
    ck_assert_int_ge(fd, 0);
    static uint8_t found[LARGE + 1];
    ck_assert_int_eq(pread(fd, found, sizeof found, 0), LARGE);
    ck_assert_mem_eq(found, bytes, LARGE);
    ck_assert_int_eq(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
    ck_assert_int_ne(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
    ck_assert_int_eq(write(fd, "x", 1), -1);
    ck_assert_int_ne(ftruncate(fd, 0), 0);
    (void)close(fd);
    ck_assert_int_eq(brought(&token, 6), -1);
    struct stat status;
    ck_assert_int_eq(stat(socket_path, &status), 0);
    ck_assert_uint_eq(status.st_mode & 0777, 0600);
}
END_TEST

enum told { TOLD_HASHED, TOLD_NOTHING, NOBODY_TOLD };

/* Returns what a caller with the user `uid` tells at a port of his; NOBODY_TOLD: this process may
 * not become him. */
static enum told told_by(uid_t uid, const struct hash32 *says)
{
    char path[100];
    int port = -1;
    struct problem problem;
    (void)snprintf(path, sizeof path, "%s/other.fd", folder);
    ck_assert_msg(descriptor_port_open(path, false, &port, &problem), "%s", problem.text);
    pid_t pid = fork();
    if (pid == 0) {
        struct id128 token;
        struct descriptor_asker asker;
        int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
        bool is_he = uid == getuid() || setuid(uid) == 0;
        while (!descriptor_port_receive(port, &token, &asker)) {
            struct pollfd item = {.fd = port, .events = POLLIN};
            (void)poll(&item, 1, LONG_MS);
        }
        descriptor_port_answer(port, &asker, is_he ? nothing : -1, says);
        _exit(0);
    }
    struct id128 token = entropy_id();
    struct descriptor_answer answer;
    ck_assert(descriptor_ask(path, &token, LONG_MS, &answer));
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    (void)close(port);
    if (answer.fd < 0) {
        ck_assert(!answer.has_hash);
        return NOBODY_TOLD;
    }
    (void)close(answer.fd);
    ck_assert(!answer.has_hash || hash32_equal(&answer.hash, says));
    return answer.has_hash ? TOLD_HASHED : TOLD_NOTHING;
}

START_TEST(root_and_our_own_user_are_believed_to_have_hashed_what_they_say)
{
    const struct hash32 some = {{4, 2}};
    ck_assert_int_eq(told_by(getuid(), &some), TOLD_HASHED);
    ck_assert_int_eq(told_by(getuid(), NULL), TOLD_NOTHING);
    if (getuid() == 0) { /* nobody else can become another */
        ck_assert_int_ne(told_by(65533, &some), TOLD_HASHED);
        ck_assert_int_ne(told_by(65534, &some), TOLD_HASHED);
    }
    struct asking asking = {.token = promised(ALICE, 5)};
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, ask, &asking), 0);
    while (!atomic_load(&asking.is_done)) {
        blob_tickets_serve(&tickets, store, 6);
    }
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert(asking.answer.fd >= 0 && asking.answer.has_hash); /* the store wrote it */
    ck_assert(hash32_equal(&asking.answer.hash, &blob));
    (void)close(asking.answer.fd);
}
END_TEST

START_TEST(a_ticket_ends_with_its_time)
{
    struct id128 early = promised(ALICE, 5);
    struct id128 late = promised(ALICE, 5);
    int fd = brought(&early, 5 + BLOB_TICKET_LIFE_NS - 1);
    ck_assert_int_ge(fd, 0);
    (void)close(fd);
    ck_assert_int_eq(brought(&late, 5 + BLOB_TICKET_LIFE_NS), -1);
    ck_assert_int_eq(brought(&early, 6), -1);
}
END_TEST

START_TEST(tokens_that_nobody_gave_bring_nothing)
{
    struct id128 token = promised(ALICE, 5);
    struct id128 other = token;
    other.bytes[15] ^= 1;
    ck_assert_int_eq(brought(&other, 6), -1);
    struct id128 zero = {{0}};
    ck_assert_int_eq(brought(&zero, 6), -1);
    ck_assert_int_eq(brought(&zero, 0), -1);
    int fd = brought(&token, 6); /* guesses end no ticket */
    ck_assert_int_ge(fd, 0);
    (void)close(fd);
}
END_TEST

START_TEST(an_account_has_its_share_of_the_tickets)
{
    struct id128 token = entropy_id();
    for (size_t i = 0; i < BLOB_TICKETS_PER_ACCOUNT; i++) {
        (void)promised(ALICE, 5);
    }
    ck_assert(!blob_ticket_promise(&tickets, &token, ALICE, &blob, 5));
    struct id128 theirs = promised(BOB, 5);
    for (uint32_t account = BOB + 1;
         account < BOB + BLOB_TICKETS_MAX / BLOB_TICKETS_PER_ACCOUNT - 1; account++) {
        for (size_t i = 0; i < BLOB_TICKETS_PER_ACCOUNT; i++) {
            (void)promised(account, 5);
        }
    }
    for (size_t i = 1; i < BLOB_TICKETS_PER_ACCOUNT; i++) {
        (void)promised(BOB, 5);
    }
    ck_assert(!blob_ticket_promise(&tickets, &token, 1000, &blob, 5)); /* all are open */
    int fd = brought(&theirs, 6);
    ck_assert_int_ge(fd, 0);
    (void)close(fd);
    (void)promised(1000, 6); /* in its place */
    (void)promised(ALICE, 5 + BLOB_TICKET_LIFE_NS);
    struct blob_tickets none = {.port = -1};
    ck_assert(!blob_ticket_promise(&none, &token, ALICE, &blob, 5));
}
END_TEST

static void send_raw(int socket, const void *what, size_t length)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", socket_path);
    ck_assert_int_eq(
        sendto(socket, what, length, 0, (const struct sockaddr *)&address, sizeof address),
        (ssize_t)length);
}

static int stranger(bool has_name)
{
    const struct sockaddr_un nameless = {.sun_family = AF_UNIX};
    int made = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(made, 0);
    if (has_name) {
        ck_assert_int_eq(bind(made, (const struct sockaddr *)&nameless, sizeof nameless.sun_family),
                         0);
    }
    return made;
}

static size_t open_files(void)
{
    size_t count = 0;
    for (int fd = 0; fd < 256; fd++) {
        count += fcntl(fd, F_GETFD) >= 0;
    }
    return count;
}

START_TEST(strangers_get_nothing_and_cost_nobody)
{
    struct id128 token = promised(ALICE, 5);
    static const uint8_t rubbish[4096];
    uint8_t longer[17] = {0};
    memcpy(longer, token.bytes, sizeof token.bytes);
    size_t lengths[] = {0, 1, 15, 17, sizeof rubbish};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        int socket = stranger(true);
        uint8_t answer;
        send_raw(socket, lengths[i] == 17 ? longer : rubbish, lengths[i]);
        blob_tickets_serve(&tickets, store, 6);
        ck_assert_int_eq(recv(socket, &answer, 1, MSG_DONTWAIT), -1);
        ck_assert_int_eq(errno, EAGAIN);
        (void)close(socket);
    }
    int nobody = stranger(false); /* who cannot be answered does not use a ticket up */
    send_raw(nobody, token.bytes, sizeof token.bytes);
    blob_tickets_serve(&tickets, store, 6);

    int passer = stranger(true); /* descriptors of strangers do not stay with us */
    size_t before = open_files();
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof passer)];
    } control;
    memset(&control, 0, sizeof control);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", socket_path);
    struct id128 guess = entropy_id();
    struct iovec part = {.iov_base = guess.bytes, .iov_len = sizeof guess.bytes};
    struct msghdr message = {.msg_name = &address,
                             .msg_namelen = sizeof address,
                             .msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof passer);
    memcpy(CMSG_DATA(head), &passer, sizeof passer);
    ck_assert_int_eq(sendmsg(passer, &message, 0), (ssize_t)sizeof guess.bytes);
    blob_tickets_serve(&tickets, store, 6);
    ck_assert_uint_eq(open_files(), before);

    /* More than the socket holds, of one who never reads his answers. */
    struct sockaddr_un place = {.sun_family = AF_UNIX};
    (void)snprintf(place.sun_path, sizeof place.sun_path, "%s", socket_path);
    for (int i = 0; i < 5000; i++) {
        if (sendto(passer, guess.bytes, sizeof guess.bytes, MSG_DONTWAIT,
                   (const struct sockaddr *)&place, sizeof place) < 0) {
            blob_tickets_serve(&tickets, store, 6);
        }
    }
    int fd = brought(&token, 6);
    ck_assert_int_ge(fd, 0);
    (void)close(fd);
    (void)close(passer);
    (void)close(nobody);
}
END_TEST

START_TEST(a_file_that_cannot_be_opened_is_not_handed_over)
{
    struct id128 token = entropy_id();
    struct hash32 absent = sha256_of("absent", 6);
    ck_assert(blob_ticket_promise(&tickets, &token, ALICE, &absent, 5));
    ck_assert_int_eq(brought(&token, 6), -1);
    ck_assert_int_eq(brought(&token, 6), -1);
}
END_TEST

/* Returns true when everybody who had the other end has closed it. */
static bool is_closed(int end)
{
    char byte;
    return recv(end, &byte, 1, MSG_DONTWAIT) == 0;
}

START_TEST(the_end_of_a_stream_is_handed_over_once)
{
    int ends[2];
    struct id128 token = entropy_id();
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    ck_assert(blob_ticket_promise_end(&tickets, &token, ALICE, ends[1], 5));
    int fd = brought(&token, 6);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(brought(&token, 6), -1);
    ck_assert_int_eq(write(fd, "x", 1), 1);
    char byte = 0;
    ck_assert_int_eq(read(ends[0], &byte, 1), 1);
    ck_assert_int_eq(byte, 'x');
    ck_assert(!is_closed(ends[0]));
    (void)close(fd); /* nobody else has it */
    ck_assert(is_closed(ends[0]));
    (void)close(ends[0]);
}
END_TEST

START_TEST(an_end_that_nobody_comes_for_is_closed)
{
    int ends[2];
    struct id128 token = entropy_id();
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    ck_assert(blob_ticket_promise_end(&tickets, &token, ALICE, ends[1], 5));
    blob_tickets_serve(&tickets, store, 5 + BLOB_TICKET_LIFE_NS - 1);
    ck_assert(!is_closed(ends[0]));
    blob_tickets_serve(&tickets, store, 5 + BLOB_TICKET_LIFE_NS);
    ck_assert(is_closed(ends[0]));
    (void)close(ends[0]);

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    for (size_t i = 0; i < BLOB_TICKETS_PER_ACCOUNT; i++) {
        (void)promised(ALICE, 5);
    }
    ck_assert(!blob_ticket_promise_end(&tickets, &token, ALICE, ends[1], 5));
    ck_assert(is_closed(ends[0]));
    (void)close(ends[0]);

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    ck_assert(blob_ticket_promise_end(&tickets, &token, BOB, ends[1], 5));
    blob_tickets_fini(&tickets);
    ck_assert(is_closed(ends[0]));
    (void)close(ends[0]);
}
END_TEST

START_TEST(nobody_answers_where_nobody_listens)
{
    char path[100];
    struct id128 token = entropy_id();
    struct descriptor_answer answer = {.fd = 7};
    (void)snprintf(path, sizeof path, "%s/absent.fd", folder);
    ck_assert(!descriptor_ask(path, &token, LONG_MS, &answer));
    ck_assert_int_eq(answer.fd, -1);
    answer.fd = 7;
    ck_assert(!descriptor_ask(socket_path, &token, 1, &answer)); /* silence */
    ck_assert_int_eq(answer.fd, -1);
}
END_TEST

START_TEST(tickets_go_beside_the_endpoint)
{
    char path[32];
    ck_assert(descriptor_path("ipc:///m/blobs.sock", path, sizeof path));
    ck_assert_str_eq(path, "/m/blobs.fd");
    ck_assert(!descriptor_path("tcp://127.0.0.1:7070", path, sizeof path));
    ck_assert(!descriptor_path("tcp://a/blobs.sock", path, sizeof path));
    ck_assert(!descriptor_path("ipc:///m/blobs", path, sizeof path));
    ck_assert(!descriptor_path("ipc://.sock", path, sizeof path));
    ck_assert(!descriptor_path("ipc:///a/folder/with/a/long/name/blobs.sock", path, sizeof path));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("blob_ticket");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, setup, teardown);
    if (sodium_init() < 0) {
        return EXIT_FAILURE;
    }
    tcase_add_test(tests, a_ticket_brings_the_file_once_and_only_to_be_read);
    tcase_add_test(tests, root_and_our_own_user_are_believed_to_have_hashed_what_they_say);
    tcase_add_test(tests, a_ticket_ends_with_its_time);
    tcase_add_test(tests, tokens_that_nobody_gave_bring_nothing);
    tcase_add_test(tests, an_account_has_its_share_of_the_tickets);
    tcase_add_test(tests, strangers_get_nothing_and_cost_nobody);
    tcase_add_test(tests, a_file_that_cannot_be_opened_is_not_handed_over);
    tcase_add_test(tests, the_end_of_a_stream_is_handed_over_once);
    tcase_add_test(tests, an_end_that_nobody_comes_for_is_closed);
    tcase_add_test(tests, nobody_answers_where_nobody_listens);
    tcase_add_test(tests, tickets_go_beside_the_endpoint);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
