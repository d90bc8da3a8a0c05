/* The agent moves bytes between a program's terminal and the broker: each once, in order, and only
 * as fast as they are taken. The terminals are real; the broker is played. */
#include "provider/terminals.h"

#include "tests/support/agent_play.h"
#include "tests/support/suite.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static const struct agent_work work = {.lease = 7, .index = 0, .attempt = 2};

struct desk {
    struct play play;
    struct terminals *terminals;
    int slave; /* the program's end */
};

static void desk_open(struct desk *desk)
{
    play_start(&desk->play);
    settle(&desk->play);
    desk->terminals = terminals_create();
    ck_assert_ptr_nonnull(desk->terminals);
    const int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    ck_assert_int_ge(master, 0);
    ck_assert(grantpt(master) == 0 && unlockpt(master) == 0);
    desk->slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    ck_assert_int_ge(desk->slave, 0);
    terminals_add(desk->terminals, &work, master);
}

static void desk_close(struct desk *desk)
{
    terminals_destroy(&desk->terminals);
    if (desk->slave >= 0) {
        (void)close(desk->slave);
    }
    play_end(&desk->play);
}

/* Takes the turn of the agent's loop. */
static void turn(struct desk *desk)
{
    struct agent_action action;
    while (agent_session_action(desk->play.session, &action)) {
        if (action.type == AGENT_TERMINAL) {
            terminals_answered(desk->terminals, NULL, &action.terminal, desk->play.now_ns);
        }
        agent_session_drop_action(&action);
    }
    terminals_turn(desk->terminals, desk->play.session, desk->play.now_ns);
    listen(&desk->play);
}

static const Bourse__V1__TerminalSend *sent(struct desk *desk)
{
    turn(desk);
    const struct seen *seen = last_seen(&desk->play, MESSAGE_TERMINAL_SEND);
    ck_assert_ptr_nonnull(seen);
    return (const void *)seen->message;
}

static void answer_send(struct desk *desk, uint64_t through, uint64_t taken)
{
    Bourse__V1__TerminalTaken body = BOURSE__V1__TERMINAL_TAKEN__INIT;
    body.through = through;
    body.taken = taken;
    say(&desk->play, MESSAGE_TERMINAL_TAKEN, &last_seen(&desk->play, MESSAGE_TERMINAL_SEND)->id,
        &body.base);
}

static void answer_receive(struct desk *desk, uint64_t offset, const char *text, bool end)
{
    Bourse__V1__TerminalBytes body = BOURSE__V1__TERMINAL_BYTES__INIT;
    body.offset = offset;
    body.has_bytes = text[0] != '\0';
    body.bytes = view(text, strlen(text));
    body.has_end = body.end = end;
    body.has_columns = body.has_rows = true;
    body.columns = 120;
    body.rows = 40;
    say(&desk->play, MESSAGE_TERMINAL_BYTES, &last_seen(&desk->play, MESSAGE_TERMINAL_RECEIVE)->id,
        &body.base);
}

START_TEST(what_a_program_prints_goes_until_it_is_taken)
{
    CLEANUP(desk_close) struct desk desk;
    desk_open(&desk);
    ck_assert_int_eq(write(desk.slave, "hello", 5), 5);
    const Bourse__V1__TerminalSend *body = sent(&desk);
    ck_assert_uint_eq(body->lease, work.lease);
    ck_assert_uint_eq(body->attempt, work.attempt);
    ck_assert_uint_eq(body->offset, 0);
    ck_assert_mem_eq(body->bytes.data, "hello", 5);
    ck_assert_int_eq(write(desk.slave, "more", 4), 4);
    turn(&desk); /* one message is under way */
    ck_assert_uint_eq(count_seen(&desk.play, MESSAGE_TERMINAL_SEND), 1);
    answer_send(&desk, 5, 3);
    body = sent(&desk);
    ck_assert_uint_eq(body->offset, 5);
    ck_assert_mem_eq(body->bytes.data, "more", 4);
    /* A broker that starts anew has what the owner has taken, and gets the rest again. */
    answer_send(&desk, 3, 3);
    body = sent(&desk);
    ck_assert_uint_eq(body->offset, 3);
    ck_assert_mem_eq(body->bytes.data, "lomore", 6);
}
END_TEST

START_TEST(what_the_owner_types_is_written_once)
{
    CLEANUP(desk_close) struct desk desk;
    char got[16] = "";
    struct winsize size;
    desk_open(&desk);
    turn(&desk);
    const struct seen *asked = last_seen(&desk.play, MESSAGE_TERMINAL_RECEIVE);
    ck_assert_uint_eq(((const Bourse__V1__TerminalReceive *)(const void *)asked->message)->taken,
                      0);
    answer_receive(&desk, 0, "ls\n", false);
    turn(&desk);
    ck_assert_int_eq(read(desk.slave, got, sizeof got), 3);
    ck_assert_str_eq(got, "ls\n");
    ck_assert_int_eq(ioctl(desk.slave, TIOCGWINSZ, &size), 0);
    ck_assert_uint_eq(size.ws_col, 120);
    ck_assert_uint_eq(size.ws_row, 40);
    asked = last_seen(&desk.play, MESSAGE_TERMINAL_RECEIVE);
    ck_assert_uint_eq(((const Bourse__V1__TerminalReceive *)(const void *)asked->message)->taken,
                      3);
    answer_receive(&desk, 0, "ls\n", false); /* again, of a broker that is behind */
    turn(&desk);
    ck_assert_int_eq(fcntl(desk.slave, F_SETFL, O_NONBLOCK), 0);
    ck_assert_int_eq(read(desk.slave, got, sizeof got), -1);
}
END_TEST

START_TEST(the_end_of_input_is_typed)
{
    CLEANUP(desk_close) struct desk desk;
    char got[16] = "";
    desk_open(&desk);
    turn(&desk);
    answer_receive(&desk, 0, "word", true);
    turn(&desk);
    ck_assert_int_eq(read(desk.slave, got, sizeof got), 4); /* without a new line */
    ck_assert_int_eq(read(desk.slave, got, sizeof got), 0);
    desk.play.now_ns = terminals_due_ns(desk.terminals); /* whoever reads next gets it, too */
    turn(&desk);
    ck_assert_int_eq(read(desk.slave, got, sizeof got), 0);
}
END_TEST

START_TEST(a_program_that_is_gone_ends_its_terminal)
{
    CLEANUP(desk_close) struct desk desk;
    zmq_pollitem_t items[TERMINALS_MAX];
    desk_open(&desk);
    turn(&desk);
    ck_assert_uint_eq(terminals_poll(desk.terminals, items), 1);
    ck_assert_int_eq(write(desk.slave, "bye", 3), 3);
    ck_assert_int_eq(close(desk.slave), 0);
    desk.slave = -1;
    const Bourse__V1__TerminalSend *body = sent(&desk);
    ck_assert_mem_eq(body->bytes.data, "bye", 3);
    ck_assert(body->end);
    ck_assert_uint_eq(terminals_poll(desk.terminals, items), 0);
    answer_send(&desk, 3, 0); /* the owner has yet to take it */
    body = sent(&desk);
    ck_assert(body->end && !body->has_bytes);
    answer_send(&desk, 3, 3);
    turn(&desk);
    ck_assert(terminals_due_ns(desk.terminals) == INT64_MAX); /* forgotten */
}
END_TEST

START_TEST(a_full_window_slows_the_program)
{
    CLEANUP(desk_close) struct desk desk;
    static char much[4096];
    zmq_pollitem_t items[TERMINALS_MAX];
    desk_open(&desk);
    memset(much, 'x', sizeof much);
    ck_assert_int_eq(fcntl(desk.slave, F_SETFL, O_NONBLOCK), 0);
    size_t written = 0;
    for (unsigned idle = 0; idle < 10;) {
        const ssize_t put = write(desk.slave, much, sizeof much);
        written += put > 0 ? (size_t)put : 0;
        idle = put > 0 ? 0 : idle + 1;
        turn(&desk);
    }
    ck_assert_uint_ge(written, LIMIT_TERMINAL_WINDOW);
    ck_assert_uint_lt(written, 2 * LIMIT_TERMINAL_WINDOW);
    ck_assert_uint_eq(terminals_poll(desk.terminals, items), 0);
    answer_send(&desk, LIMIT_TERMINAL_BYTES, LIMIT_TERMINAL_BYTES);
    turn(&desk);
    ck_assert_int_gt(write(desk.slave, much, sizeof much), 0); /* and goes on */
}
END_TEST

START_TEST(a_busy_broker_is_asked_again)
{
    CLEANUP(desk_close) struct desk desk;
    desk_open(&desk);
    ck_assert_int_eq(write(desk.slave, "x", 1), 1);
    (void)sent(&desk);
    reject(&desk.play, last_seen(&desk.play, MESSAGE_TERMINAL_SEND), REJECT_BUSY);
    turn(&desk);
    ck_assert_uint_eq(count_seen(&desk.play, MESSAGE_TERMINAL_SEND), 1);
    desk.play.now_ns = terminals_due_ns(desk.terminals);
    turn(&desk);
    ck_assert_uint_eq(count_seen(&desk.play, MESSAGE_TERMINAL_SEND), 2);
}
END_TEST

/* A result would end the attempt, and the broker would then refuse the terminal and its bytes. */
START_TEST(a_result_waits_until_the_broker_has_what_was_printed)
{
    const struct agent_work other = {.lease = 7, .index = 0, .attempt = 1};
    CLEANUP(desk_close) struct desk desk;
    desk_open(&desk);
    ck_assert(terminals_holds(desk.terminals, &work, desk.play.now_ns));
    ck_assert(!terminals_holds(desk.terminals, &other, desk.play.now_ns));
    ck_assert_int_eq(write(desk.slave, "x", 1), 1);
    (void)close(desk.slave);
    desk.slave = -1; /* the program is at its end */
    ck_assert(sent(&desk)->bytes.len == 1);
    ck_assert(terminals_holds(desk.terminals, &work, desk.play.now_ns));
    answer_send(&desk, 1, 0);
    turn(&desk);
    ck_assert(!terminals_holds(desk.terminals, &work, desk.play.now_ns));
}
END_TEST

SUITE("provider_terminal", NULL, NULL, TEST(a_result_waits_until_the_broker_has_what_was_printed),
      TEST(what_a_program_prints_goes_until_it_is_taken),
      TEST(what_the_owner_types_is_written_once), TEST(the_end_of_input_is_typed),
      TEST(a_program_that_is_gone_ends_its_terminal), TEST(a_full_window_slows_the_program),
      TEST(a_busy_broker_is_asked_again))
