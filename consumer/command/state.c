/* This file runs `status`. It also prints lines about a halted market and late log time for other
 * commands. */
#include "consumer/command/state.h"
#include "consumer/client/names.h"
#include "consumer/command/show.h"

#include "base/cleanup.h"
#include "protocol/roles.h"

#include <inttypes.h>
#include <string.h>

/* Log time makes up for one second in a hundred (broker/core/logclock.h). */
enum { CATCHES_UP_TIMES = 100 };

/* Writes `: "the disk is replaced"`, or nothing. */
static void print_reason(FILE *to, const char *reason)
{
    if (reason[0] != '\0') {
        (void)fprintf(to, ": \"%s\"", cell_sentence(reason));
    }
}

/* Writes a line for a halted market, and one for a frozen account, with the operator's reasons. */
static void print_market(FILE *to, const struct bourse_balance *balance)
{
    if (balance->halted) {
        (void)fputs("the operator halted the market", to);
        print_reason(to, balance->halted_why);
        (void)fputs(". It takes no new job and no new ask, and no waiting job gets a lease\n", to);
    }
    if (balance->frozen) {
        (void)fputs("the operator froze this account", to);
        print_reason(to, balance->frozen_why);
        (void)fputs(". It cannot submit, offer or work until the operator ends the freeze\n", to);
    }
}

void state_say_of_market(struct invocation *invocation)
{
    struct bourse_balance balance;
    if (!invocation->quiet && !invocation->json &&
        bourse_balance(invocation->bourse, &balance, NULL)) {
        print_market(stderr, &balance);
    }
}

/* Writes `state of command 42`, and how old a stale state may be. */
static void print_state(FILE *to, const struct bourse_state *state)
{
    (void)fprintf(to, "state of command %" PRIu64, state->index);
    if (state->stale_ms > 0) {
        (void)fprintf(to, ", %s old: it hears nothing new", cell_duration(state->stale_ms));
    }
}

void state_say_follows(struct invocation *invocation)
{
    struct bourse_state state;
    if (!command_state(&state) || !state.follows || invocation->json ||
        (invocation->quiet && state.stale_ms == 0)) {
        return;
    }
    (void)fprintf(stderr, "the broker at %s follows; ",
                  cell_plain(bourse_endpoint(invocation->bourse)));
    print_state(stderr, &state);
    (void)fputc('\n', stderr);
}

void state_say_behind(struct invocation *invocation)
{
    struct bourse_account account;
    struct bourse_error error;
    if (invocation->quiet || invocation->json ||
        !bourse_whoami(invocation->bourse, &account, &error)) {
        return;
    }
    if (account.stale_ms > 0 && !account.follows) {
        (void)fprintf(stderr,
                      "this is the state of %s ago: the broker's journal has no quorum and takes "
                      "nothing new\n",
                      cell_duration(account.stale_ms));
    }
    if (account.behind_ms > 0) {
        (void)fprintf(
            stderr,
            "times are log time, which is %s behind the broker's clock, and catches up in "
            "about %s\n",
            cell_duration(account.behind_ms), cell_duration(CATCHES_UP_TIMES * account.behind_ms));
    }
}

static json_t *reason_json(bool holds, const char *reason)
{
    return holds && reason[0] != '\0' ? json_string(reason) : json_null();
}

int command_status(struct invocation *invocation)
{
    int status = 0;
    if (!command_connect(invocation, &status)) {
        return status;
    }
    struct bourse_account account;
    struct bourse_balance balance;
    struct bourse_error error;
    if (!bourse_balance(invocation->bourse, &balance, &error) ||
        !bourse_whoami(invocation->bourse, &account, &error)) {
        return complain_with(invocation, &error);
    }
    char roles[128];
    roles_text(account.roles, roles, sizeof roles);
    if (invocation->json) {
        return json_print(json_pack("{s:s, s:s, s:s, s:s, s:b, s:o, s:b, s:o, s:I, s:I, s:I}",
                                    "market", account.origin, "account", account.key, "name",
                                    account.name, "roles", roles, "halted", (int)balance.halted,
                                    "halted_why", reason_json(balance.halted, balance.halted_why),
                                    "frozen", (int)balance.frozen, "frozen_why",
                                    reason_json(balance.frozen, balance.frozen_why), "log_time_ms",
                                    (json_int_t)account.log_time_ms, "behind_ms",
                                    (json_int_t)account.behind_ms, "stale_ms",
                                    (json_int_t)account.stale_ms),
                          BOURSE_OK);
    }
    (void)printf("market    %s, %s\n", cell_plain(account.origin),
                 balance.halted ? "halted" : "open");
    (void)printf("account   %s%s (%s)\n", cell_plain(account.name),
                 balance.frozen ? ", frozen" : "", roles);
    (void)printf("log time  %s", cell_time(account.log_time_ms));
    if (account.behind_ms > 0) {
        (void)printf(", %s behind the broker's clock: it stood still while the broker was down",
                     cell_duration(account.behind_ms));
    }
    (void)putchar('\n');
    if (account.stale_ms > 0 && !account.follows) {
        (void)printf("state     of %s ago: the broker's journal has no quorum, takes nothing new\n",
                     cell_duration(account.stale_ms));
    }
    print_market(stdout, &balance);
    return BOURSE_OK;
}
