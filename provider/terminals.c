#include "provider/terminals.h"

#include "base/checked.h"
#include "protocol/terminal_buffer.h"
#include "runtime/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#define AGAIN_NS (200 * NS_PER_MS) /* after a refusal that may pass */
/* Somebody else may read next, as the shell after its command, so the end is typed again. */
#define END_AGAIN_NS NS_PER_S
enum { RECEIVE_WAIT_MS = 20000, CONTROL_D = 4 };

struct terminal {
    struct agent_work work;
    int master;                 /* -1: the program is gone */
    struct terminal_sender out; /* what the program printed */
    struct id128 send, receive; /* messages without an answer; zero: none */
    uint64_t taken;             /* bytes of the owner that were written */
    uint8_t typed[LIMIT_TERMINAL_BYTES];
    size_t typed_size, typed_at; /* what is still to be written */
    bool has_typed_end;          /* the owner types nothing more */
    uint8_t last_typed;
    int64_t end_due_ns; /* next time that the end is typed */
    bool sent_end;      /* the message under way says the end */
    bool is_told;       /* the broker knows the end */
    bool is_over;       /* to be forgotten */
    int64_t ended_ns;
    int64_t kept_until_ns; /* of the last bytes, after the end */
    int64_t held_ns;       /* since then a result waits; 0: none does */
    int64_t held_until_ns;
    int64_t again_ns;
};

struct terminals {
    struct terminal *items[TERMINALS_MAX];
    size_t count;
};

struct terminals *terminals_create(void)
{
    return calloc(1, sizeof(struct terminals));
}

static void hang_up(struct terminal *terminal)
{
    if (terminal->master >= 0) {
        (void)close(terminal->master);
        terminal->master = -1;
    }
}

void terminals_destroy(struct terminals **self)
{
    struct terminals *terminals = *self;
    if (terminals != NULL) {
        for (size_t i = 0; i < terminals->count; i++) {
            hang_up(terminals->items[i]);
            free(terminals->items[i]);
        }
        free(terminals);
        *self = NULL;
    }
}

void terminals_add(struct terminals *terminals, const struct agent_work *work, int master)
{
    struct terminal *terminal =
        terminals->count == TERMINALS_MAX ? NULL : calloc(1, sizeof *terminal);
    if (terminal == NULL) {
        log_warning("subtask %u of lease %llu loses its terminal: there are %zu, at most %d",
                    work->index, (unsigned long long)work->lease, terminals->count, TERMINALS_MAX);
        (void)close(master); /* the program gets SIGHUP */
        return;
    }
    terminal->work = *work;
    terminal->master = master;
    terminals->items[terminals->count++] = terminal;
}

/* ---------------------------------------------------------------- the program */

static void read_printed(struct terminal *terminal, int64_t now_ns)
{
    uint8_t bytes[LIMIT_TERMINAL_BYTES];
    while (terminal->master >= 0 && terminal_buffer_room(&terminal->out.buffer) > 0) {
        const size_t room = terminal_buffer_room(&terminal->out.buffer);
        const ssize_t got =
            read(terminal->master, bytes, room < sizeof bytes ? room : sizeof bytes);
        if (got > 0) {
            (void)terminal_buffer_add(&terminal->out.buffer, bytes, (size_t)got);
        } else if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
            return;
        } else { /* EIO: no process has the terminal any more */
            hang_up(terminal);
            terminal->ended_ns = now_ns;
            terminal->kept_until_ns = now_ns + TERMINALS_KEPT_NS;
        }
    }
}

/* Types the character that ends input, as a person would. A line that has begun needs it twice. */
static void type_end(struct terminal *terminal, int64_t now_ns)
{
    struct termios modes;
    const bool has_modes = tcgetattr(terminal->master, &modes) == 0;
    const uint8_t end = has_modes && modes.c_cc[VEOF] != 0 ? modes.c_cc[VEOF] : CONTROL_D;
    const uint8_t ends[2] = {end, end};
    const bool is_in_line = terminal->taken > 0 && terminal->last_typed != '\n';
    const bool is_first = terminal->end_due_ns == 0;
    if (is_first || (has_modes && (modes.c_lflag & ICANON) != 0)) {
        const ssize_t written = write(terminal->master, ends, is_first && is_in_line ? 2 : 1);
        (void)written; /* the next time writes it again */
    }
    terminal->end_due_ns = now_ns + END_AGAIN_NS;
}

static void write_typed(struct terminal *terminal, int64_t now_ns)
{
    while (terminal->master >= 0 && terminal->typed_at < terminal->typed_size) {
        const ssize_t put = write(terminal->master, terminal->typed + terminal->typed_at,
                                  terminal->typed_size - terminal->typed_at);
        if (put < 0) {
            return; /* full; or the program is gone, which reading finds */
        }
        terminal->typed_at += (size_t)put;
        terminal->taken += (uint64_t)put;
        terminal->last_typed = terminal->typed[terminal->typed_at - 1];
    }
    if (terminal->master >= 0 && terminal->has_typed_end && now_ns >= terminal->end_due_ns) {
        type_end(terminal, now_ns);
    }
}

/* ---------------------------------------------------------------- the broker */

static void send_printed(struct terminal *terminal, struct agent_session *session, int64_t now_ns)
{
    Bourse__V1__TerminalSend body = BOURSE__V1__TERMINAL_SEND__INIT;
    const bool has_ended = terminal->master < 0;
    if (!id128_is_zero(&terminal->send) ||
        !(terminal_sender_wants(&terminal->out) ||
          (has_ended && (!terminal->is_told || terminal->out.buffer.count > 0)))) {
        return;
    }
    size_t size = 0;
    const uint8_t *bytes = terminal_buffer_piece(&terminal->out.buffer, terminal->out.sent, &size);
    body.has_lease = body.has_attempt = true;
    body.lease = terminal->work.lease;
    body.attempt = terminal->work.attempt;
    body.offset = terminal->out.sent;
    body.has_bytes = size > 0;
    body.bytes = (ProtobufCBinaryData){.len = size, .data = (uint8_t *)(uintptr_t)bytes};
    terminal->sent_end =
        has_ended && terminal->out.sent + size == terminal_buffer_end(&terminal->out.buffer);
    body.has_end = body.end = terminal->sent_end;
    if (agent_session_terminal(session, now_ns, MESSAGE_TERMINAL_SEND, &body.base,
                               &terminal->send) != AGENT_OK) {
        terminal->again_ns = now_ns + AGAIN_NS;
    }
}

static void ask_for_typed(struct terminal *terminal, struct agent_session *session, int64_t now_ns)
{
    Bourse__V1__TerminalReceive body = BOURSE__V1__TERMINAL_RECEIVE__INIT;
    if (!id128_is_zero(&terminal->receive) || terminal->master < 0 ||
        terminal->typed_at < terminal->typed_size) {
        return;
    }
    body.has_lease = body.has_attempt = true;
    body.lease = terminal->work.lease;
    body.attempt = terminal->work.attempt;
    body.taken = terminal->taken;
    body.wait_ms = RECEIVE_WAIT_MS;
    if (agent_session_terminal(session, now_ns, MESSAGE_TERMINAL_RECEIVE, &body.base,
                               &terminal->receive) != AGENT_OK) {
        terminal->again_ns = now_ns + AGAIN_NS;
    }
}

static void take_typed(struct terminal *terminal, struct lanes *lanes,
                       const Bourse__V1__TerminalBytes *body)
{
    if (body->has_gone && body->gone) {
        log_info("lease %llu: the owner of the job is gone, and its terminal is hung up",
                 (unsigned long long)terminal->work.lease);
        lanes_hang_up(lanes, &terminal->work);
        terminal->is_over = true;
        return;
    }
    if (body->has_columns && body->has_rows && terminal->master >= 0) {
        const struct winsize size = {.ws_col = (unsigned short)body->columns,
                                     .ws_row = (unsigned short)body->rows};
        (void)ioctl(terminal->master, TIOCSWINSZ, &size); /* the program keeps the former size */
    }
    if (body->offset != terminal->taken) {
        return; /* of a broker that has forgotten; the next message says where to go on */
    }
    terminal->typed_at = 0;
    terminal->typed_size = body->has_bytes ? body->bytes.len : 0; /* the codec bounds it */
    if (terminal->typed_size > 0) {
        memcpy(terminal->typed, body->bytes.data, terminal->typed_size);
    }
    terminal->has_typed_end = terminal->has_typed_end || (body->has_end && body->end);
}

static void refused(struct terminal *terminal, struct lanes *lanes, enum reject_code reject,
                    int64_t now_ns)
{
    if (reject == REJECT_BUSY || reject == REJECT_RATE || reject == REJECT_UNAVAILABLE) {
        terminal->again_ns = now_ns + AGAIN_NS;
        return;
    }
    if (terminal->master >= 0) { /* this broker passes nothing on */
        lanes_hang_up(lanes, &terminal->work);
    }
    terminal->is_over = true;
}

bool terminals_are_busy(const struct terminals *terminals)
{
    return terminals->count > 0; /* a turn forgets those that are over */
}

bool terminals_holds(struct terminals *terminals, const struct agent_work *work, int64_t now_ns)
{
    for (size_t i = 0; i < terminals->count; i++) {
        struct terminal *terminal = terminals->items[i];
        if (terminal->work.lease != work->lease || terminal->work.index != work->index ||
            terminal->work.attempt != work->attempt) {
            continue;
        }
        if (terminal->held_ns == 0) {
            terminal->held_ns = now_ns;
            terminal->held_until_ns = now_ns + TERMINALS_KEPT_NS;
        }
        return !terminal->is_told && !terminal->is_over && now_ns < terminal->held_until_ns;
    }
    return false;
}

void terminals_answered(struct terminals *terminals, struct lanes *lanes,
                        const struct agent_terminal_answer *answer, int64_t now_ns)
{
    for (size_t i = 0; i < terminals->count; i++) {
        struct terminal *terminal = terminals->items[i];
        const bool is_send = id128_equal(&terminal->send, &answer->id);
        if (!is_send && !id128_equal(&terminal->receive, &answer->id)) {
            continue;
        }
        *(is_send ? &terminal->send : &terminal->receive) = (struct id128){0};
        if (answer->body == NULL) {
            refused(terminal, lanes, answer->reject, now_ns);
        } else if (is_send && answer->type == MESSAGE_TERMINAL_TAKEN) {
            const Bourse__V1__TerminalTaken *body = (const void *)answer->body;
            terminal_sender_answered(&terminal->out, body->through, body->taken);
            terminal->is_told =
                terminal->sent_end && body->through == terminal_buffer_end(&terminal->out.buffer);
        } else if (!is_send && answer->type == MESSAGE_TERMINAL_BYTES) {
            take_typed(terminal, lanes, (const void *)answer->body);
        }
        return;
    }
}

/* ---------------------------------------------------------------- the turn */

/* Ends with the last byte taken. An owner who takes none gets no more time than others need. */
static bool is_over(const struct terminal *terminal, int64_t now_ns)
{
    const bool is_taken = terminal->is_told && terminal->out.buffer.count == 0;
    return terminal->is_over ||
           (terminal->master < 0 && (is_taken || now_ns >= terminal->kept_until_ns));
}

/* Returns the end of a time that began at `since_ns` and stands still until now. */
static int64_t moved_on(int64_t since_ns, int64_t now_ns)
{
    const int64_t most_ns = since_ns + TERMINALS_AWAY_NS;
    const int64_t until_ns = now_ns + TERMINALS_KEPT_NS;
    return until_ns < most_ns ? until_ns : most_ns;
}

/* The time of the last bytes stands still without a broker, because nobody can take them. */
static void stay_away(struct terminal *terminal, int64_t now_ns)
{
    if (terminal->master < 0) {
        terminal->kept_until_ns = moved_on(terminal->ended_ns, now_ns);
    }
    if (terminal->held_ns != 0) {
        terminal->held_until_ns = moved_on(terminal->held_ns, now_ns);
    }
}

void terminals_turn(struct terminals *terminals, struct agent_session *session, int64_t now_ns)
{
    const bool is_connected = agent_session_counts(session).ready;
    for (size_t i = terminals->count; i-- > 0;) {
        struct terminal *terminal = terminals->items[i];
        read_printed(terminal, now_ns);
        write_typed(terminal, now_ns);
        if (!is_connected) {
            stay_away(terminal, now_ns);
        }
        if (is_over(terminal, now_ns)) {
            hang_up(terminal);
            free(terminal);
            terminals->items[i] = terminals->items[--terminals->count];
            continue;
        }
        if (now_ns >= terminal->again_ns) {
            terminal->again_ns = 0;
            send_printed(terminal, session, now_ns);
            ask_for_typed(terminal, session, now_ns);
        }
    }
}

size_t terminals_poll(const struct terminals *terminals, zmq_pollitem_t *ret_items)
{
    size_t count = 0;
    for (size_t i = 0; i < terminals->count; i++) {
        const struct terminal *terminal = terminals->items[i];
        const bool reads = terminal_buffer_room(&terminal->out.buffer) > 0;
        const bool writes = terminal->typed_at < terminal->typed_size;
        if (terminal->master >= 0 && (reads || writes)) {
            ret_items[count++] = (zmq_pollitem_t){
                .fd = terminal->master,
                .events = (short)((reads ? ZMQ_POLLIN : 0) | (writes ? ZMQ_POLLOUT : 0))};
        }
    }
    return count;
}

int64_t terminals_due_ns(const struct terminals *terminals)
{
    int64_t due_ns = INT64_MAX;
    for (size_t i = 0; i < terminals->count; i++) {
        const struct terminal *terminal = terminals->items[i];
        const int64_t at_ns[] = {
            terminal->again_ns > 0 ? terminal->again_ns : INT64_MAX,
            terminal->master >= 0 && terminal->has_typed_end ? terminal->end_due_ns : INT64_MAX,
            terminal->master < 0 ? terminal->kept_until_ns : INT64_MAX};
        for (size_t k = 0; k < sizeof at_ns / sizeof at_ns[0]; k++) {
            due_ns = at_ns[k] < due_ns ? at_ns[k] : due_ns;
        }
    }
    return due_ns;
}
