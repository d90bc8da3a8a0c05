/* The owner's line to the agent: the grammar of a request, and clients that behave badly. */
#include "provider/control.h"

#include "base/cleanup.h"
#include "runtime/clock.h"
#include "tests/support/suite.h"

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* ---------------------------------------------------------------- the line */

static bool reads(const char *line, struct control_request *ret_request)
{
    struct problem problem = {""};
    bool good = control_request_read(line, strlen(line), ret_request, &problem);
    ck_assert(good || problem.text[0] != '\0');
    return good;
}

START_TEST(a_request_is_read_as_it_was_written)
{
    static const struct control_request all[] = {
        {.command = CONTROL_STATUS},
        {.command = CONTROL_PAUSE},
        {.command = CONTROL_PAUSE, .now = true},
        {.command = CONTROL_PAUSE, .save = true, .for_ms = 5},
        {.command = CONTROL_PAUSE, .for_ms = 1},
        {.command = CONTROL_PAUSE, .device = "gpu \"0\"", .for_ms = 9},
        {.command = CONTROL_RESUME, .device = "gpu0"},
        {.command = CONTROL_PAUSE, .now = true, .for_ms = CONTROL_PAUSE_LONGEST_MS},
        {.command = CONTROL_RESUME},
        {.command = CONTROL_DRAIN},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        char line[256];
        struct control_request read = {.command = CONTROL_DRAIN, .for_ms = 77};
        ck_assert(control_request_write(&all[i], line, sizeof line));
        size_t length = strlen(line);
        ck_assert_int_eq(line[length - 1], '\n');
        line[length - 1] = '\0';
        ck_assert_msg(reads(line, &read), "%s", line);
        ck_assert_int_eq(read.command, all[i].command);
        ck_assert_int_eq(read.now, all[i].now);
        ck_assert_int_eq(read.save, all[i].save);
        ck_assert_str_eq(read.device, all[i].device);
        ck_assert_int_eq(read.for_ms, all[i].for_ms);
        ck_assert(!control_request_write(&all[i], line, length)); /* no room for the NUL */
    }
}
END_TEST

START_TEST(what_is_no_request_is_refused_and_leaves_nothing)
{
    static const char *const bad[] = {
        "",
        " ",
        "status",
        "[]",
        "[\"status\"]",
        "{}",
        "{\"command\":\"statu\"}",
        "{\"command\":7}",
        "{\"command\":null}",
        "{\"command\":\"status\"",
        "{\"command\":\"status\"} {}",
        "{\"command\":\"status\",\"command\":\"drain\"}",
        "{\"command\":\"status\",\"now\":true}",
        "{\"command\":\"drain\",\"for_ms\":5}",
        "{\"command\":\"pause\",\"now\":1}",
        "{\"command\":\"pause\",\"save\":\"yes\"}",
        "{\"command\":\"resume\",\"save\":true}",
        "{\"command\":\"pause\",\"now\":true,\"save\":true}",
        "{\"command\":\"pause\",\"for_ms\":0}",
        "{\"command\":\"pause\",\"for_ms\":-1}",
        "{\"command\":\"pause\",\"for_ms\":1.5}",
        "{\"command\":\"pause\",\"for_ms\":\"2h\"}",
        "{\"command\":\"pause\",\"for_ms\":31622400001}",
        "{\"command\":\"pause\",\"for_ms\":99999999999999999999999}",
        "{\"command\":\"pause\",\"device\":\"\"}",
        "{\"command\":\"pause\",\"device\":7}",
        "{\"command\":\"status\",\"device\":\"cpu\"}",
        "{\"command\":\"resume\",\"device\":\"cpu\",\"now\":true}",
        "{\"command\":\"pause\",\"devices\":\"cpu\"}",
        "{\"now\":true}",
        "{\"command\":\"stat\\u0000us\"}",
        "\xff\xfe",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct control_request request = {.command = CONTROL_DRAIN, .for_ms = 77};
        ck_assert_msg(!reads(bad[i], &request), "%s", bad[i]);
        ck_assert_int_eq(request.for_ms, 77);
    }
}
END_TEST

START_TEST(depth_and_length_have_a_bound)
{
    static char line[CONTROL_LINE_MAX + 2];
    struct control_request request;
    struct problem problem;
    memset(line, '[', sizeof line);
    ck_assert(!control_request_read(line, CONTROL_LINE_MAX, &request, &problem));
    memset(line, ' ', sizeof line);
    memcpy(line, "{\"command\":\"status\"}", 20);
    ck_assert(control_request_read(line, CONTROL_LINE_MAX, &request, &problem));
    ck_assert(!control_request_read(line, CONTROL_LINE_MAX + 1, &request, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "4096"));
}
END_TEST

/* ---------------------------------------------------------------- clients */

struct desk { /* a control in a folder of its own */
    char folder[64];
    struct control *control;
    int64_t now_ns;
};

static void desk_open(struct desk *desk)
{
    struct problem problem = {""};
    *desk = (struct desk){.folder = "/tmp/bourse-control.XXXXXX", .now_ns = NS_PER_S};
    ck_assert_ptr_nonnull(mkdtemp(desk->folder));
    ck_assert_msg(control_open(desk->folder, &desk->control, &problem), "%s", problem.text);
}

static void desk_close(struct desk *desk)
{
    control_close(&desk->control);
    ck_assert_int_eq(rmdir(desk->folder), 0); /* its socket is gone */
}

static int guest(const struct desk *desk)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s/%s", desk->folder,
                   MARKET_CONTROL_SOCKET);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static void say(int fd, const char *text)
{
    size_t length = strlen(text);
    ck_assert_int_eq(send(fd, text, length, MSG_NOSIGNAL), (ssize_t)length);
}

static bool next(struct desk *desk, uint64_t *ret_client)
{
    struct control_request request;
    return control_next(desk->control, desk->now_ns, ret_client, &request);
}

/* Returns what has been answered, "" when nothing was, and "gone" once the other end has hung up
 * without a word. */
static const char *heard(int fd)
{
    static char text[CONTROL_LINE_MAX];
    ssize_t got = recv(fd, text, sizeof text - 1, MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN) {
        return "";
    }
    text[got > 0 ? got : 0] = '\0';
    return got > 0 ? text : "gone";
}

static const char STATUS[] = "{\"command\":\"status\"}\n";

START_TEST(the_socket_is_its_owners_alone)
{
    CLEANUP(desk_close) struct desk desk;
    desk_open(&desk);
    char path[128];
    struct stat facts;
    (void)snprintf(path, sizeof path, "%s/%s", desk.folder, MARKET_CONTROL_SOCKET);
    ck_assert_int_eq(stat(path, &facts), 0);
    ck_assert(S_ISSOCK(facts.st_mode));
    ck_assert_int_eq(facts.st_mode & 0777, 0600);
}
END_TEST

START_TEST(a_socket_left_behind_is_replaced)
{
    CLEANUP(desk_close) struct desk desk;
    desk_open(&desk);
    struct control *second = NULL;
    struct problem problem;
    ck_assert(control_open(desk.folder, &second, &problem));
    int fd = guest(&desk);
    say(fd, STATUS);
    uint64_t client;
    struct control_request request;
    ck_assert(control_next(second, desk.now_ns, &client, &request));
    ck_assert(!next(&desk, &client));
    close(fd);
    control_close(&second);
}
END_TEST

START_TEST(one_line_in_one_line_out)
{
    CLEANUP(desk_close) struct desk desk;
    desk_open(&desk);
    uint64_t client;
    int fd = guest(&desk);
    say(fd, STATUS);
    ck_assert(next(&desk, &client));
    control_answer(desk.control, desk.now_ns, client, json_pack("{s:b}", "ok", 1));
    ck_assert_str_eq(heard(fd), "{\"ok\":true}\n");
    ck_assert_str_eq(heard(fd), "gone");
    close(fd);
}
END_TEST

START_TEST(a_line_may_come_in_pieces_and_its_sender_may_have_no_more_to_say)
{
    CLEANUP(desk_close) struct desk desk;
    desk_open(&desk);
    uint64_t client;
    int fd = guest(&desk);
    for (size_t i = 0; STATUS[i] != '\0'; i++) {
        ck_assert(!next(&desk, &client));
        ck_assert_int_eq(send(fd, &STATUS[i], 1, 0), 1);
    }
    ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
    ck_assert(next(&desk, &client));
    ck_assert(!next(&desk, &client));
    control_answer(desk.control, desk.now_ns, client, json_pack("{s:b}", "ok", 1));
    ck_assert_str_eq(heard(fd), "{\"ok\":true}\n");
    close(fd);
}
END_TEST

START_TEST(nonsense_is_answered_and_ends_the_talk)
{
    CLEANUP(desk_close) struct desk desk;
    desk_open(&desk);
    uint64_t client;
    int fd = guest(&desk);
    say(fd, "GET / HTTP/1.0\r\n\r\n");
    ck_assert(!next(&desk, &client));
    ck_assert_ptr_nonnull(strstr(heard(fd), "\"error\":\"BAD_REQUEST\""));
    close(fd);

    static char endless[2 * CONTROL_LINE_MAX];
    memset(endless, 'x', sizeof endless - 1);
    fd = guest(&desk);
    say(fd, endless);
    ck_assert(!next(&desk, &client));
    ck_assert_ptr_nonnull(strstr(heard(fd), "longer than 4096"));
    close(fd);
}
END_TEST

START_TEST(who_says_nothing_holds_up_nobody)
{
    CLEANUP(desk_close) struct desk desk;
    desk_open(&desk);
    uint64_t client;
    int mute[3 * CONTROL_CLIENTS_MAX];
    for (size_t i = 0; i < 3 * CONTROL_CLIENTS_MAX; i++) {
        mute[i] = guest(&desk);
        if (i % 2 == 1) {
            say(mute[i], "{\"command\":"); /* half a line */
        }
        ck_assert(!next(&desk, &client));
    }
    int fd = guest(&desk); /* all places are taken: the oldest of them makes room */
    say(fd, STATUS);
    ck_assert(next(&desk, &client));
    control_answer(desk.control, desk.now_ns, client, json_pack("{s:b}", "ok", 1));
    ck_assert_str_eq(heard(fd), "{\"ok\":true}\n");
    close(fd);
    ck_assert_str_eq(heard(mute[0]), "gone");
    ck_assert_str_eq(heard(mute[3 * CONTROL_CLIENTS_MAX - 1]), "");

    desk.now_ns += CONTROL_PATIENCE_NS; /* and in the end they all go */
    ck_assert_int_le(control_next_deadline_ns(desk.control), desk.now_ns);
    ck_assert(!next(&desk, &client));
    ck_assert_str_eq(heard(mute[3 * CONTROL_CLIENTS_MAX - 1]), "gone");
    ck_assert(control_next_deadline_ns(desk.control) == INT64_MAX);
    for (size_t i = 0; i < 3 * CONTROL_CLIENTS_MAX; i++) {
        close(mute[i]);
    }
}
END_TEST

START_TEST(who_waits_for_an_answer_is_not_turned_out)
{
    CLEANUP(desk_close) struct desk desk;
    desk_open(&desk);
    uint64_t clients[CONTROL_CLIENTS_MAX];
    int fds[CONTROL_CLIENTS_MAX];
    for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++) {
        fds[i] = guest(&desk);
        say(fds[i], STATUS);
        ck_assert(next(&desk, &clients[i]));
    }
    uint64_t client;
    int late = guest(&desk);
    ck_assert(!next(&desk, &client));
    ck_assert_ptr_nonnull(strstr(heard(late), "\"error\":\"BUSY\""));
    close(late);
    desk.now_ns += 1000 * CONTROL_PATIENCE_NS; /* a drain may take long */
    for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++) {
        ck_assert(!next(&desk, &client));
        control_answer(desk.control, desk.now_ns, clients[i], json_pack("{s:b}", "ok", 1));
        ck_assert_str_eq(heard(fds[i]), "{\"ok\":true}\n");
        close(fds[i]);
    }
}
END_TEST

START_TEST(who_hung_up_misses_the_answer)
{
    CLEANUP(desk_close) struct desk desk;
    desk_open(&desk);
    uint64_t client;
    int fd = guest(&desk);
    say(fd, STATUS);
    ck_assert(next(&desk, &client));
    close(fd);
    uint64_t other;
    ck_assert(!next(&desk, &other));
    control_answer(desk.control, desk.now_ns, client, json_pack("{s:b}", "ok", 1));
    control_answer(desk.control, desk.now_ns, 4711, json_pack("{s:b}", "ok", 1));
    ck_assert(control_next_deadline_ns(desk.control) == INT64_MAX);
}
END_TEST

/* A large answer leaves piece by piece as its reader takes it; who takes nothing is dropped. */
START_TEST(a_reader_who_is_slow_blocks_nobody)
{
    CLEANUP(desk_close) struct desk desk;
    desk_open(&desk);
    enum { LARGE = 3 << 20 };
    char *large = malloc(LARGE + 1);
    memset(large, 'x', LARGE);
    large[LARGE] = '\0';
    uint64_t client;
    for (int round = 0; round < 2; round++) {
        int fd = guest(&desk);
        say(fd, STATUS);
        ck_assert(next(&desk, &client));
        control_answer(desk.control, desk.now_ns, client,
                       json_pack("{s:b, s:s}", "ok", 1, "text", large));
        size_t taken = 0;
        static char piece[65536];
        for (ssize_t got = 1; round == 0 && got != 0;) {
            got = recv(fd, piece, sizeof piece, MSG_DONTWAIT);
            taken += got > 0 ? (size_t)got : 0;
            ck_assert(!next(&desk, &client));
        }
        desk.now_ns += CONTROL_PATIENCE_NS;
        ck_assert(!next(&desk, &client));
        ck_assert(round == 1 || taken > LARGE);
        ck_assert(control_next_deadline_ns(desk.control) == INT64_MAX);
        close(fd);
    }
    free(large);
}
END_TEST

/* ---------------------------------------------------------------- the owner's end */

static void *serve_one(void *argument)
{
    struct desk *desk = argument;
    struct control_request request = {.command = CONTROL_STATUS};
    uint64_t client;
    while (!control_next(desk->control, desk->now_ns, &client, &request)) {
        (void)sched_yield();
    }
    ck_assert_int_eq(request.command, CONTROL_PAUSE);
    control_answer(desk->control, desk->now_ns, client, json_pack("{s:b, s:i}", "ok", 1, "n", 5));
    return NULL;
}

START_TEST(the_owner_asks_and_is_answered)
{
    CLEANUP(desk_close) struct desk desk;
    desk_open(&desk);
    struct control_request request = {.command = CONTROL_PAUSE, .now = true};
    struct problem problem = {""};
    pthread_t thread;
    json_t *answer;
    ck_assert_int_eq(pthread_create(&thread, NULL, serve_one, &desk), 0);
    ck_assert_int_eq(control_ask(desk.folder, &request, 20000, &answer, &problem), CONTROL_OK);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(json_integer_value(json_object_get(answer, "n")), 5);
    json_decref(answer);
}
END_TEST

START_TEST(nobody_there_is_told_apart)
{
    struct desk desk;
    desk_open(&desk);
    struct control_request request = {.command = CONTROL_STATUS};
    struct problem problem = {""};
    json_t *answer;
    /* It listens and never answers: the one test that waits for a time. */
    ck_assert_int_eq(control_ask(desk.folder, &request, 1, &answer, &problem), CONTROL_FAILED);
    ck_assert_ptr_nonnull(strstr(problem.text, "does not answer"));
    control_close(&desk.control);
    ck_assert_int_eq(control_ask(desk.folder, &request, 1000, &answer, &problem), CONTROL_NOBODY);
    ck_assert_ptr_nonnull(strstr(problem.text, "no agent runs in"));
    ck_assert_int_eq(rmdir(desk.folder), 0);
    ck_assert_int_eq(control_ask(desk.folder, &request, 1000, &answer, &problem), CONTROL_NOBODY);
}
END_TEST

SUITE("control", NULL, NULL, TEST(a_request_is_read_as_it_was_written),
      TEST(what_is_no_request_is_refused_and_leaves_nothing), TEST(depth_and_length_have_a_bound),
      TEST(the_socket_is_its_owners_alone), TEST(a_socket_left_behind_is_replaced),
      TEST(one_line_in_one_line_out),
      TEST(a_line_may_come_in_pieces_and_its_sender_may_have_no_more_to_say),
      TEST(nonsense_is_answered_and_ends_the_talk), TEST(who_says_nothing_holds_up_nobody),
      TEST(who_waits_for_an_answer_is_not_turned_out), TEST(who_hung_up_misses_the_answer),
      TEST(a_reader_who_is_slow_blocks_nobody), TEST(the_owner_asks_and_is_answered),
      TEST(nobody_there_is_told_apart))
