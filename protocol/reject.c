#include "protocol/reject.h"

#include <stddef.h>

enum {
    EXIT_USAGE = 2,
    EXIT_NOT_FOUND = 3,
    EXIT_REFUSED = 4,
    EXIT_NO_MATCH = 5,
    EXIT_UNREACHABLE = 6
};

struct reject_row {
    const char *name; /* NULL: the number is unused */
    const char *advice;
    int exit_status;
};

static const struct reject_row table[REJECT_CODE_COUNT] = {
    [REJECT_NONE] = {"NONE", "Nothing was refused.", 0},
    [REJECT_MALFORMED] =
        {"MALFORMED", "Correct the field that is named; program and broker may differ in version.",
         EXIT_USAGE},
    [REJECT_VERSION] = {"VERSION", "Upgrade the older of program and broker.", EXIT_USAGE},
    [REJECT_TYPE] = {"TYPE", "Upgrade the broker, or send only what a client may send.",
                     EXIT_USAGE},
    [REJECT_TOO_LARGE] = {"TOO_LARGE", "Split it into several messages below the limit.",
                          EXIT_USAGE},
    [REJECT_NOT_SIGNED] = {"NOT_SIGNED", "Sign the message with the account's key.", EXIT_REFUSED},
    [REJECT_BAD_SIGNATURE] = {"BAD_SIGNATURE",
                              "Sign with the account's own key and this market's cluster id.",
                              EXIT_REFUSED},
    [REJECT_ROLE] = {"ROLE", "Ask the operator for an invitation with the role that this needs.",
                     EXIT_REFUSED},
    [REJECT_ID_EXPIRED] = {"ID_EXPIRED",
                           "Send it again under a new id, stamped with the broker's log time.",
                           EXIT_NO_MATCH},
    [REJECT_ID_REUSED] = {"ID_REUSED", "Use a new random id for another message.", EXIT_REFUSED},
    [REJECT_ID_TABLE_FULL] = {"ID_TABLE_FULL",
                              "Wait until older ids of this account are 24 hours old.",
                              EXIT_REFUSED},
    [REJECT_SESSION] = {"SESSION", "Say Hello again and resend what has no answer.",
                        EXIT_UNREACHABLE},
    [REJECT_RATE] = {"RATE", "Slow down and send it again.", EXIT_REFUSED},
    [REJECT_BUSY] = {"BUSY", "Try again in a moment, under the same id.", EXIT_UNREACHABLE},
    [REJECT_UNAVAILABLE] = {"UNAVAILABLE", "Try again later; the operator's log says why.",
                            EXIT_UNREACHABLE},
    [REJECT_GAP_TOO_OLD] = {"GAP_TOO_OLD",
                            "Ask again for what is being watched, and state what is held.",
                            EXIT_UNREACHABLE},
    [REJECT_NOT_LEADER] = {"NOT_LEADER",
                           "Send it to the broker that leads, under the same id; programs do so "
                           "by themselves.",
                           EXIT_UNREACHABLE},
    [REJECT_NO_QUORUM] = {"NO_QUORUM",
                          "Wait, or ask the operator: most members of the journal must answer. "
                          "Programs send it again by themselves, under the same id.",
                          EXIT_UNREACHABLE},
    [REJECT_NOT_FOUND] = {"NOT_FOUND", "Not found, or not yours: `bourse ps` lists your jobs.",
                          EXIT_NOT_FOUND},
    [REJECT_EXISTS] = {"EXISTS", "Nothing to do: it is there already.", EXIT_REFUSED},
    [REJECT_FROZEN] = {"FROZEN",
                       "`bourse status` gives the operator's reason; ask the operator to end it.",
                       EXIT_REFUSED},
    [REJECT_HALTED] = {"HALTED", "Wait until the operator reopens the market.", EXIT_REFUSED},
    [REJECT_FUNDS] = {"INSUFFICIENT_FUNDS", "Lower the budget, or ask the operator for credits.",
                      EXIT_REFUSED},
    [REJECT_BUDGET] = {"BUDGET", "Choose a budget in the range given; `bourse quote` suggests one.",
                       EXIT_REFUSED},
    [REJECT_PRICE] = {"PRICE",
                      "Choose a price inside the band (`bourse book` shows it) or up to the limit "
                      "given.",
                      EXIT_REFUSED},
    [REJECT_QUANTITY] = {"QUANTITY", "Choose a quantity in the range given.", EXIT_REFUSED},
    [REJECT_LIMIT] = {"LIMIT", "Cancel or finish some of what the field names, then try again.",
                      EXIT_REFUSED},
    [REJECT_REQUIREMENT] = {"REQUIREMENT", "Correct the `needs:` of the job, or its `value:`.",
                            EXIT_USAGE},
    [REJECT_VERIFY] =
        {"VERIFY",
         "Use `verify: none`, or `verify: cheap` with one check for each subtask as the last part "
         "and needs that do not ask for a simulated device.",
         EXIT_REFUSED},
    [REJECT_INVITATION] = {"INVITATION",
                           "The invitation is unknown, used or expired: ask the operator for a new "
                           "one.",
                           EXIT_REFUSED},
    [REJECT_DEVICE] = {"DEVICE", "Advertise the device first.", EXIT_NOT_FOUND},
    [REJECT_STATE] = {"STATE", "Its present state does not allow this; `bourse ps` shows it.",
                      EXIT_REFUSED},
    [REJECT_SELF_MATCH] = {"SELF_MATCH", "Cancel your own order on the other side first.",
                           EXIT_NO_MATCH},
    [REJECT_WOULD_TRADE] = {"WOULD_TRADE",
                            "Choose a price that nobody waits at, or an order that may trade at "
                            "once.",
                            EXIT_NO_MATCH},
    [REJECT_NOTIONAL] = {"NOTIONAL",
                         "Ask for fewer slots at a time, a shorter term, a lower price or a "
                         "smaller budget; `bourse book` shows what one order may come to.",
                         EXIT_REFUSED},
    [REJECT_HOURS] = {"HOURS",
                      "Give windows such as mon-fri 22:00-07:00, and the distance from UTC, "
                      "-14:00 to +14:00, beside them.",
                      EXIT_USAGE},
    [REJECT_ACCOUNT] = {"ACCOUNT",
                        "Name an account of this market: its key, or a name that no other has.",
                        EXIT_NOT_FOUND},
    [REJECT_CHALLENGE] =
        {"CHALLENGE",
         "The broker challenged the device: claim no more than it showed, or wait; "
         "`bourse-provider why` says what was found.",
         EXIT_REFUSED},
    [REJECT_BLOB_HASH] = {"BLOB_HASH", "The file changed while it was sent; send it again.",
                          EXIT_REFUSED},
    [REJECT_BLOB_QUOTA] =
        {"BLOB_QUOTA",
         "`bourse storage` shows what takes the room; free it with `bourse forget`, or "
         "ask for a larger quota.",
         EXIT_REFUSED},
    [REJECT_BLOB_OFFSET] = {"BLOB_OFFSET", "Continue from the offset given as the value.",
                            EXIT_REFUSED},
    [REJECT_OUTPUT_NOT_STORED] =
        {"OUTPUT_NOT_STORED",
         "Store every output that the job declares, and what else the result names, before the "
         "result is sent: the attempt counts for nothing.",
         EXIT_REFUSED},
    [REJECT_OUTPUT_LOST] = {"OUTPUT_LOST",
                            "Store what the result names once more, then send the result again: "
                            "nothing has been decided.",
                            EXIT_REFUSED},
    [REJECT_STORAGE_FULL] = {"STORAGE_FULL", "The operator must free disk space; then try again.",
                             EXIT_UNREACHABLE},
};

static const struct reject_row *row_of(enum reject_code code)
{
    static const struct reject_row unknown = {
        "UNKNOWN", "Upgrade this program to learn what the code means.", EXIT_REFUSED};
    unsigned number = (unsigned)code;
    return number < REJECT_CODE_COUNT && table[number].name != NULL ? &table[number] : &unknown;
}

const char *reject_name(enum reject_code code)
{
    return row_of(code)->name;
}

const char *reject_advice(enum reject_code code)
{
    return row_of(code)->advice;
}

int reject_exit_status(enum reject_code code)
{
    return row_of(code)->exit_status;
}
