#include "exchange/work/check_seeds.h"

#include "base/cursor.h"
#include "base/sha256.h"
#include "exchange/lifecycle.h"
#include "exchange/state/held.h"

#include <assert.h>

struct hash32 exchange_check_seed(const struct hash32 *dice, const struct hash32 *result,
                                  uint32_t index, uint32_t attempt)
{
    static const char domain[] = "bourse/check/v1"; /* includes the NUL */
    uint8_t bytes[sizeof domain + sizeof *dice + sizeof *result + 8];
    struct writer out = writer_over(bytes, sizeof bytes);
    writer_bytes(&out, domain, sizeof domain);
    writer_bytes(&out, dice->bytes, sizeof dice->bytes);
    writer_bytes(&out, result->bytes, sizeof result->bytes);
    writer_u32(&out, index);
    writer_u32(&out, attempt);
    assert(!out.failed && out.position == sizeof bytes);
    return sha256_of(bytes, sizeof bytes);
}

struct hash32 check_seed(const struct job *job, uint32_t index, uint32_t attempt)
{
    static const struct hash32 none;
    const struct held *held = held_of_check(job, index);
    return held == NULL ? none : exchange_check_seed(&held->dice, &held->hash, index, attempt);
}

uint32_t check_subject(const struct job *job, uint32_t index)
{
    const struct held *held = held_of_check(job, index);
    return held == NULL ? 0 : held->index;
}

uint8_t check_outcome(const struct job *job, const struct attempt *attempt,
                      const struct exchange_result *result)
{
    if (held_of_check(job, attempt->key.index) == NULL) {
        return XOUTCOME_CANCELLED;
    }
    const struct hash32 seed = check_seed(job, attempt->key.index, attempt->key.attempt);
    bool is_verdict = result->verdict >= XVERDICT_ACCEPT && result->verdict <= XVERDICT_UNSURE;
    return is_verdict && hash32_equal(&seed, &result->seed) ? XOUTCOME_OK : XOUTCOME_REFUSED;
}

struct hash32 check_seed_of_held(const struct job *job, const struct held *held)
{
    const uint32_t attempt = held->accusation.tracked.type == 0 ? 0 : held->accusation.attempt;
    return exchange_check_seed(&held->dice, &held->hash, held_first_check(job) + held->index,
                               attempt);
}
