#include "consumer/client/names.h"

#include "base/energy.h"
#include "base/rate.h"
#include "consumer/client/bourse_connection.h"
#include "ledger/record.h"
#include "protocol/message.h"

#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const char *name_in(const char *const *names, size_t count, unsigned number)
{
    return number < count && names[number] != NULL ? names[number] : "unknown";
}

const char *names_job_state(unsigned state)
{
    static const char *const names[] = {[JOB_OPEN] = "open",
                                        [JOB_DONE] = "done",
                                        [JOB_FAILED] = "failed",
                                        [JOB_CANCELLED] = "cancelled"};
    return name_in(names, COUNT(names), state);
}

const char *names_job_reason(unsigned reason)
{
    static const char *const names[] = {
        [JOB_REASON_NONE] = "",
        [JOB_REASON_NO_DEVICE] = "no device on the market fits the job's needs",
        [JOB_REASON_NO_ASK] =
            "devices fit, but no ask takes the job now: `bourse explain JOB` says why",
        [JOB_REASON_PRICE] =
            "all offers for the job's term are above its limit, or outside of the price band",
        [JOB_REASON_BUSY] = "every device that fits is busy",
        [JOB_REASON_BUDGET] = "the rest of the budget buys no more time",
        [JOB_REASON_HALTED] =
            "the operator halted the market; the job goes on when that ends (`bourse status`)",
        [JOB_REASON_SUBTASKS_FAILED] = "some subtasks failed",
        [JOB_REASON_ERROR_LIMIT] = "more subtasks failed than the job's error limit allows",
        [JOB_REASON_CANCELLED] = "cancelled",
        [JOB_REASON_RUNNING] = "running",
        [JOB_REASON_PROVIDERS_FAILED] = "every try failed by its provider's fault",
        [JOB_REASON_AVOIDED] = "the free devices failed the job a moment ago; see `bourse explain`",
        [JOB_REASON_REFEREE] = "results wait for a referee who did not make them",
        [JOB_REASON_NO_VERDICT] =
            "no check of some results came to a verdict; see `bourse explain`",
        [JOB_REASON_EXPIRED] = "the job's time was up before all of it had started",
        [JOB_REASON_NOT_FILLED] = "what the job asked for at once was not on offer",
        [JOB_REASON_LEASES_OVER] =
            "the leases that the job got at once have ended, and its order is not renewed",
        [JOB_REASON_NOT_WHOLE] = "the job waits until all that it asks for can be had at once",
        [JOB_REASON_PROMISED] =
            "the job has taken a lease, which begins when the former holder's notice ends",
        [JOB_REASON_WHOLE_BUDGET] =
            "the budget does not cover all that the job asks for at once; see `bourse explain`",
        [JOB_REASON_NO_MAKER] =
            "all who could make a subtask have judged its results: other providers are needed",
        [JOB_REASON_DEADLINE] = "the deadline passed before all of the job was done",
        [JOB_REASON_LATE] =
            "what waits takes too long to end before the deadline: see `bourse explain`",
        [JOB_REASON_FIRM] =
            "all within the limit are interruptible, and the job allows no further interruption",
    };
    return name_in(names, COUNT(names), reason);
}

const char *names_job_frozen(void)
{
    return "the operator froze the account; once that has ended (`bourse status`), `bourse resume` "
           "runs the rest";
}

const char *names_outcome(unsigned outcome)
{
    static const char *const names[OUTCOME_COUNT] = {
        [OUTCOME_OK] = "ok",
        [OUTCOME_PROGRAM_FAILED] = "program failed",
        [OUTCOME_SIGNALLED] = "ended by a signal",
        [OUTCOME_TIME_LIMIT] = "time limit",
        [OUTCOME_CPU_LIMIT] = "cpu limit",
        [OUTCOME_MEMORY_LIMIT] = "memory limit",
        [OUTCOME_DISK_LIMIT] = "disk limit",
        [OUTCOME_PROCESS_LIMIT] = "process limit",
        [OUTCOME_OUTPUT_LIMIT] = "output limit",
        [OUTCOME_OUTPUT_MISSING] = "output missing",
        [OUTCOME_INPUT_MISSING] = "input missing",
        [OUTCOME_PROGRAM_MISSING] = "program missing",
        [OUTCOME_IMAGE_MISSING] = "image missing",
        [OUTCOME_REFUSED] = "refused by the provider",
        [OUTCOME_CANCELLED] = "cancelled",
        [OUTCOME_JAIL_FAILED] = "the provider's jail failed",
        [OUTCOME_TERM_OVER] = "the lease ended first",
        [OUTCOME_PREEMPTED] = "preempted by a higher bid",
    };
    return name_in(names, COUNT(names), outcome);
}

const char *names_attempt(unsigned status)
{
    static const char *const names[] = {[ATTEMPT_ACCEPTED] = "accepted",
                                        [ATTEMPT_FAILED_PAID] = "failed",
                                        [ATTEMPT_FAILED_UNPAID] = "failed, not paid",
                                        [ATTEMPT_LATE] = "late, not paid",
                                        [ATTEMPT_REFUTED] = "refuted, not paid"};
    return name_in(names, COUNT(names), status);
}

const char *names_verdict(unsigned verdict)
{
    static const char *const names[] = {
        [VERDICT_ACCEPT] = "accept", [VERDICT_REJECT] = "reject", [VERDICT_UNSURE] = "unsure"};
    return verdict == VERDICT_NONE ? NULL : name_in(names, COUNT(names), verdict);
}

const char *names_energy(unsigned source)
{
    static const char *const names[] = {[ENERGY_MEASURED] = "measured",
                                        [ENERGY_BY_OWNER] = "estimated by its owner's power",
                                        [ENERGY_BY_CATALOGUE] =
                                            "estimated by the catalogue's power"};
    return source == ENERGY_UNSTATED ? NULL : name_in(names, COUNT(names), source);
}

const char *names_check(unsigned level)
{
    static const char *const names[] = {
        [CHECK_NONE] = "none", [CHECK_CHEAP] = "cheap", [CHECK_CLIENT] = "client"};
    return name_in(names, COUNT(names), level);
}

const char *names_entry_kind(unsigned kind)
{
    static const char *const names[] = {
        [LEDGER_ACCOUNT] = "account", [LEDGER_TRANSFER] = "transfer", [LEDGER_HOLD] = "hold",
        [LEDGER_CAPTURE] = "capture", [LEDGER_RELEASE] = "release",   [LEDGER_EXPIRE] = "expire",
        [LEDGER_FEE] = "fee",         [LEDGER_JOB] = "job",           [LEDGER_ASK] = "ask",
        [LEDGER_BID] = "bid",         [LEDGER_CANCEL] = "cancel",     [LEDGER_FILL] = "fill",
        [LEDGER_RESULT] = "result",   [LEDGER_SETTLED] = "settled",   [LEDGER_FLAG] = "flag",
        [LEDGER_HELD] = "held",       [LEDGER_EPOCH] = "epoch",
    };
    return name_in(names, COUNT(names), kind);
}

const char *names_rate(unsigned rate)
{
    return rate < RATES ? rate_name((enum rate)rate) : "unknown";
}

const char *bourse_status_name(enum bourse_status status)
{
    switch (status) {
    case BOURSE_OK:
        return "OK";
    case BOURSE_JOB_FAILED:
        return "JOB_FAILED";
    case BOURSE_USAGE:
        return "USAGE";
    case BOURSE_NOT_FOUND:
        return "NOT_FOUND";
    case BOURSE_REFUSED:
        return "REFUSED";
    case BOURSE_NO_MATCH:
        return "NO_MATCH";
    case BOURSE_UNREACHABLE:
        return "UNREACHABLE";
    case BOURSE_UNVERIFIED:
        return "UNVERIFIED";
    case BOURSE_TIMED_OUT:
        return "TIMED_OUT";
    case BOURSE_CANCELLED:
        return "CANCELLED";
    case BOURSE_LOCAL:
        return "LOCAL";
    case BOURSE_INTERRUPTED:
        return "INTERRUPTED";
    }
    return "UNKNOWN";
}

int bourse_exit_status(enum bourse_status status)
{
    return status == BOURSE_LOCAL ? 2 : (int)status; /* unusable arguments */
}
