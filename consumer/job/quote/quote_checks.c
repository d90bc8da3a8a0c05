#include "consumer/job/quote/quote_checks.h"

#include "consumer/client/client.h"
#include "consumer/job/quote/quote_part.h"

#include "formats/units.h"

#include <stdio.h>
#include <string.h>

/* Returns true when a second account's ask is within the cap. */
static bool has_second(const struct bourse_job *job, const struct bourse_quote *quote)
{
    const int64_t cap_micro = job->file->cap_micro;
    return quote->second_micro >= 0 && limit_allows(cap_micro, quote->second_micro);
}

static bool is_sole_referee(const struct bourse_job *job, const struct bourse_quote *checks)
{
    return checks->first_account[0] != '\0' && !has_second(job, checks);
}

/* Returns true when there are devices but none may check. Simulated devices, which nobody asked
 * for, may fail on that alone. */
static bool lacks_referee(const struct bourse_explanation *why)
{
    uint32_t failing = 0;
    uint32_t simulated = 0;
    for (uint32_t i = 0; i < why->predicate_count; i++) {
        const struct bourse_predicate *predicate = &why->predicates[i];
        if (strncmp(predicate->text, "referee ", 8) == 0) {
            failing = predicate->failing;
        } else if (strcmp(predicate->text, "simulated = false") == 0) {
            simulated = predicate->failing;
        }
    }
    return why->devices > 0 && failing + simulated == why->devices;
}

static void tell_no_referee(const struct bourse_quote *checks, char *ret_text, size_t size)
{
    static const char rule[] = "verify: cheap: nobody checks results of its own";
    char price[UNITS_TEXT_SIZE];
    if (checks->second_micro >= 0) { /* so the cap excludes the ask */
        units_money_text(checks->second_micro, price);
        (void)snprintf(ret_text, size,
                       "%s; a second referee asks %s credits per slot-hour, which is above the "
                       "cap: raise it to that",
                       rule, price);
    } else {
        (void)snprintf(ret_text, size,
                       "%s, and a single provider is on offer that may check (referee = true) or "
                       "compute this; it takes a second one, for either",
                       rule);
    }
}

/* Nobody judges its own results, so results of the only referee would wait for ever. Others must
 * compute instead, if every part has some. `made` has room for one quote. */
static bool spare_referee(struct bourse *bourse, struct bourse_job *job, struct bourse_quote *made,
                          struct bourse_quote *checks, struct bourse_error *error)
{
    job->spares_referee = is_sole_referee(job, checks);
    for (size_t i = 0; job->spares_referee && i + 1 < job->part_count; i++) {
        if (!quote_part(bourse, job, i, made, error)) {
            return false;
        }
        if (made->first_account[0] == '\0') {
            job->spares_referee = false;
            tell_no_referee(checks, checks->checks_problem, sizeof checks->checks_problem);
        }
    }
    return true;
}

bool quote_checks(struct bourse *bourse, struct bourse_job *job, struct bourse_quote *made,
                  struct bourse_quote *ret_checks, struct bourse_error *error)
{
    job->spares_referee = false;
    if (job->checks == 0) {
        return true;
    }
    if (!quote_part(bourse, job, job->part_count - 1, ret_checks, error)) {
        return false;
    }
    if (ret_checks->has_explanation && lacks_referee(&ret_checks->explanation)) {
        client_copy(ret_checks->checks_problem, sizeof ret_checks->checks_problem,
                    "verify: cheap: nobody on offer may check (referee = true); it takes a "
                    "provider with the role referee, other than who computes");
    }
    return spare_referee(bourse, job, made, ret_checks, error);
}
