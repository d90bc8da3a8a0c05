#include "consumer/command/market/challenged_show.h"
#include "consumer/command/show.h"

#include "base/checked.h"
#include "formats/units.h"

#include <stdio.h>

#define MEGA INT64_C(1000000)

const char *challenged_cell(const struct bourse_challenge *challenge, int64_t claim_mflops)
{
    static char text[CELL_SIZE];
    char day[CELL_SIZE];
    if (claim_mflops == 0) {
        return "";
    }
    if (challenge->at_ms == 0) {
        return "claimed";
    }
    (void)snprintf(day, sizeof day, "%.10s", cell_time(challenge->at_ms));
    if (challenge->limit_mflops > 0) {
        char shown[UNITS_TEXT_SIZE];
        int64_t rate;
        units_short(UNITS_FLOPS,
                    checked_mul(challenge->limit_mflops, MEGA, &rate) ? rate : INT64_MAX, shown);
        (void)snprintf(text, sizeof text, "challenged %s: lowered to %s", day, shown);
    } else {
        (void)snprintf(text, sizeof text, "challenged %s: %s%s", day, challenge->outcome,
                       claim_mflops > challenge->claimed_mflops ? ", with a lower claim" : "");
    }
    return text;
}

json_t *challenged_json(const struct bourse_challenge *challenge)
{
    return json_pack(
        "{s:s, s:I, s:I, s:I, s:I, s:I}", "outcome", challenge->outcome, "at_ms",
        (json_int_t)challenge->at_ms, "claimed_mflops", (json_int_t)challenge->claimed_mflops,
        "shown_mflops", (json_int_t)challenge->shown_mflops, "limit_mflops",
        (json_int_t)challenge->limit_mflops, "closed_ms", (json_int_t)challenge->closed_ms);
}

const char *challenged_counts_cell(const struct bourse_challenged *counts)
{
    static char text[CELL_SIZE];
    const struct {
        uint32_t count;
        const char *what;
    } figures[] = {{counts->ok, "ok"},
                   {counts->lowered, "lowered"},
                   {counts->failed, "failed"},
                   {counts->claimed, "not challenged"}};
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        if (figures[i].count > 0 && used < sizeof text) {
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%u %s",
                                     used > 0 ? ", " : "", figures[i].count, figures[i].what);
        }
    }
    return text;
}

bool challenged_is_any(const struct bourse_challenged *counts)
{
    return counts->ok + counts->lowered + counts->failed > 0;
}
