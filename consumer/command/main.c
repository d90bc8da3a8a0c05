/* bourse - the command line of the market. See command.h for how it is put together. */
#include "consumer/command/command.h"

#include "runtime/process.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int main(int argc, char **argv)
{
    static struct invocation invocation;
    invocation.umask = umask(077);
    struct problem problem = {.text = ""};
    if (!process_start(&problem)) {
        (void)fprintf(stderr, "bourse: %s\n", problem.text);
        return bourse_exit_status(BOURSE_LOCAL);
    }
    int status = 0;
    if (invocation_parse(&invocation, argc, argv, &status)) {
        status = invocation.command->run(&invocation);
    }
    disconnect_broker(&invocation);
    if (fflush(stdout) != 0 && status == 0) {
        (void)fprintf(stderr, "bourse: writing to standard output: %s\n", strerror(errno));
        status = bourse_exit_status(BOURSE_LOCAL);
    }
    return status;
}
