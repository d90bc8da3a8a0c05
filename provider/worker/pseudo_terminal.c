/* provider/worker/pseudo_terminal.c makes the pseudo-terminal of a program.
 *
 * The terminal belongs to the jail's own instance of devpts. So its name exists inside the jail,
 * and no terminal of the host has a name there. The agent gets the master, and the program gets
 * the slave. The worker keeps the slave until every process of the run is dead, and then the agent
 * reads the end. A program may close its own slave earlier, and hears of no hang-up. */
#include "base/cursor.h"
#include "provider/worker/packet.h"
#include "provider/worker/wire.h"
#include "provider/worker/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

/* Turns the echo off where no person types; there a new line stays a new line. */
static bool set_modes(int slave, uint8_t kind)
{
    struct termios modes;
    if (kind != WIRE_TERMINAL_PLAIN) {
        return true;
    }
    if (tcgetattr(slave, &modes) != 0) {
        return false;
    }
    modes.c_lflag &= ~(tcflag_t)(ECHO | ECHOE | ECHOK | ECHONL | ECHOCTL);
    modes.c_oflag &= ~(tcflag_t)OPOST;
    return tcsetattr(slave, TCSANOW, &modes) == 0;
}

static int open_pair(const struct run *run, int *ret_master)
{
    const struct winsize size = {.ws_col = run->columns, .ws_row = run->rows};
    int unlocked = 0;
    const int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (master < 0) {
        return -1;
    }
    const int slave = ioctl(master, TIOCSPTLCK, &unlocked) != 0
                          ? -1
                          : ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (slave < 0 || ioctl(slave, TIOCSWINSZ, &size) != 0 || !set_modes(slave, run->terminal)) {
        const int error = errno;
        if (slave >= 0) {
            (void)close(slave);
        }
        (void)close(master);
        errno = error;
        return -1;
    }
    *ret_master = master;
    return slave;
}

int pseudo_terminal_open(const struct worker *worker, const struct run *run,
                         struct outcome *outcome)
{
    uint8_t bytes[8];
    int master = -1;
    const int slave = open_pair(run, &master);
    if (slave < 0) {
        outcome->outcome = OUTCOME_JAIL_FAILED;
        (void)snprintf(outcome->detail, sizeof outcome->detail, "the jail has no terminal: %s",
                       strerror(errno));
        return -1;
    }
    struct writer out = writer_over(bytes, sizeof bytes);
    writer_u8(&out, WIRE_TERMINAL);
    writer_u32(&out, run->number);
    if (!packet_send(worker->socket, bytes, out.position, &master, 1)) {
        _exit(1); /* the agent is gone */
    }
    (void)close(master);
    return slave;
}
