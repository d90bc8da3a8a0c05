/* This file holds main of `bourse`, the command line of the market. command.h describes its
 * parts. */
#include "consumer/command/command.h"
#include "consumer/command/state.h"

#include "runtime/process.h"
#include "runtime/terminal.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Checks that the output has arrived. A failed write leaves only stdio's mark. A reader that closed
 * its pipe has read enough, which is no fault. */
static int finish_stdout(int status)
{
    errno = 0;
    bool failed = ferror(stdout) != 0;
    failed = fflush(stdout) != 0 || failed;
    if (!failed || status != 0 || command_reader_is_gone()) {
        return status;
    }
    (void)fprintf(stderr, "bourse: writing to standard output: %s\n",
                  errno != 0 ? strerror(errno) : "not everything could be written");
    return bourse_exit_status(BOURSE_LOCAL);
}

int main(int argc, char **argv)
{
    static struct invocation invocation;
    invocation.umask = umask(077);
    struct problem problem = {.text = ""};
    terminal_guard();
    if (!process_start(&problem)) {
        (void)fprintf(stderr, "bourse: %s\n", problem.text);
        return bourse_exit_status(BOURSE_LOCAL);
    }
    int status = 0;
    if (command_parse(&invocation, argc, argv, &status)) {
        status = invocation.command->run(&invocation);
    }
    state_say_follows(&invocation);
    command_disconnect(&invocation);
    return finish_stdout(status);
}
