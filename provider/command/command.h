/* provider/command/command.h declares the owner's commands, which are all commands of
 * `bourse-provider` except running the agent.
 *
 * The commands status, pause, resume and drain ask the running agent (provider/control.h). The
 * commands why and earnings ask the market under the agent's key, through libbourse; they need no
 * running agent. Each command returns the exit status. */
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
    bool watch;         /* status: again each second */
    bool now;           /* pause: cancel running work */
    bool save;          /* pause: cancel running work that has saved its state */
    int64_t for_ms;     /* pause: 0 means until resumed */
    const char *device; /* pause, resume: name of one device; NULL: the whole agent */
    int64_t since_ms;   /* earnings: age of the oldest entry; 0 means all */
};

/* Prints what is wrong and returns the status. The text goes to stderr, or as JSON to stdout after
 * command_fail_in_json(true). */
void command_fail_in_json(bool json);
int command_fail(int status, const char *text);
/* Says on standard error that the broker at `endpoint` is silent, and why, where a reason is found.
 * The call takes at most four seconds. */
void command_say_silence(const char *endpoint, int left_ms);

int command_status(const struct command *command);
int command_pause(const struct command *command);
int command_resume(const struct command *command);
int command_drain(const struct command *command);
int command_why(const struct command *command);
int command_earnings(const struct command *command);
/* The market knows these facts about this provider. */
enum { COMMAND_SAYS_SIZE = 512 };
struct command_known {
    int64_t given_ns; /* slot-time donated so far */
    uint32_t refuted; /* refuted results, less the faded ones */
    /* The market keeps the asks closed for this time because of refuted results; 0: asks are
     * open. */
    int64_t withdrawn_ms;
    bool is_frozen, is_halted, has_device;
    char says[COMMAND_SAYS_SIZE]; /* why nothing is matched in a halt; "": no halt */
};
/* Asks the market and prints nothing. Returns false when the market does not answer. */
bool command_known(const struct command *command, struct command_known *ret_known);

#endif
