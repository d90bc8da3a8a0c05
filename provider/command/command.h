/* provider/command/command.h - the owner's commands: what `bourse-provider` does beside being the
 * agent.
 *
 * status, pause, resume and drain ask the running agent (provider/control.h); why and earnings ask
 * the market under the agent's key, through libbourse, whether an agent runs or not. Each returns
 * the exit status. */
#ifndef BOURSE_PROVIDER_COMMAND_COMMAND_H
#define BOURSE_PROVIDER_COMMAND_COMMAND_H

#include "provider/setup.h"

#include <stdbool.h>
#include <stdint.h>

enum exit_status {
    EXIT_OK = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_NOBODY = 3, /* no agent runs there */
    EXIT_REFUSED = 4,
    EXIT_UNREACHABLE = 6
};

struct command {
    struct setup_options setup;
    bool json;
    bool now;         /* pause: cancel what runs */
    int64_t for_ms;   /* pause: 0: until resumed */
    int64_t since_ms; /* earnings: so long ago; 0: all */
};

/* Says what is wrong, on stderr, or as JSON on stdout when told so before; returns the status. */
void command_fail_in_json(bool json);
int command_fail(int status, const char *text);

int command_status(const struct command *command);
int command_pause(const struct command *command);
int command_resume(const struct command *command);
int command_drain(const struct command *command);
int command_why(const struct command *command);
int command_earnings(const struct command *command);
/* What the market knows of this provider. */
struct command_known {
    int64_t given_ns;     /* slot-time for nothing, ever */
    uint32_t refuted;     /* results that were refuted, less those that faded */
    int64_t withdrawn_ms; /* its asks are closed for so long because of that; 0: they are not */
};
/* Prints nothing. False: the market does not answer. */
bool command_known(const struct command *command, struct command_known *ret_known);

#endif
