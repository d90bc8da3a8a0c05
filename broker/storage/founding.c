#include "broker/storage/founding.h"

#include "base/text.h"
#include "runtime/entropy.h"
#include "runtime/keyfile.h"
#include "runtime/market.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* A market may be founded between these times, in seconds since 1970. An earlier clock was never
 * set; a later one leaves too little log time, whose nanoseconds run out in 2262. */
#define CLOCK_FIRST_S INT64_C(1577836800) /* 2020-01-01 */
#define CLOCK_LAST_S INT64_C(7258118400)  /* 2200-01-01 */

/* Log time begins at the wall clock and then only moves forward, with a lean of 1 %. A market that
 * is founded with a wrong clock keeps the wrong time. */
static bool clock_is_right(struct problem *ret_problem)
{
    const time_t now = time(NULL);
    struct tm parts;
    char text[32] = "beyond every calendar";
    if (now >= CLOCK_FIRST_S && now < CLOCK_LAST_S) {
        return true;
    }
    if (gmtime_r(&now, &parts) != NULL) {
        (void)strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    }
    problem_set(ret_problem,
                "the clock of this machine is wrong: it says %s, and a market is founded from "
                "2020-01-01 to 2199-12-31; set the clock, then start again",
                text);
    return false;
}

/* The config's origin may name the log that ended in this folder before; the next log needs
 * another. */
static bool name_log(struct genesis *genesis, const char *wanted, bool follows,
                     struct problem *ret_problem)
{
    char cluster[33];
    text_hex(genesis->cluster.bytes, sizeof genesis->cluster.bytes, cluster);
    const int length = wanted[0] != '\0' && !follows
                           ? snprintf(genesis->origin, sizeof genesis->origin, "%s", wanted)
                           : snprintf(genesis->origin, sizeof genesis->origin, "%s/%.8s",
                                      wanted[0] == '\0' ? "bourse.local" : wanted, cluster);
    if (length < 0 || (size_t)length >= sizeof genesis->origin) {
        problem_set(ret_problem,
                    "the log before this one had the origin %s, and a number after it makes it too "
                    "long: shorten origin in %s",
                    wanted, MARKET_BROKER_CONFIG);
        return false;
    }
    return true;
}

static bool is_valid(const struct genesis *genesis, struct problem *ret_problem)
{
    if (!genesis_valid(genesis)) {
        problem_set(ret_problem, "the genesis in %s is not valid: check keys, roles and credits",
                    MARKET_BROKER_CONFIG);
        return false;
    }
    return true;
}

bool founding_may(const char *folder, const struct broker_config *config,
                  struct problem *ret_problem)
{
    struct genesis probe = config->genesis;
    if (config->genesis.account_count == 0) {
        problem_set(
            ret_problem,
            "a new market needs an operator: set genesis.accounts in %s/%s, or use `bourse up`",
            folder, MARKET_BROKER_CONFIG);
        return false;
    }
    return clock_is_right(ret_problem) && name_log(&probe, config->origin, false, ret_problem) &&
           is_valid(&probe, ret_problem);
}

bool founding_genesis(const struct broker_config *config, const struct founding_keys *keys,
                      struct genesis *ret_genesis, struct problem *ret_problem)
{
    *ret_genesis = config->genesis;
    ret_genesis->cluster = entropy_id();
    ret_genesis->log_key = *identity_key(keys->log);
    ret_genesis->transport_key = *identity_transport(keys->transport);
    return name_log(ret_genesis, config->origin, (keys->log_notes & KEYFILE_FOLLOWS) != 0,
                    ret_problem) &&
           is_valid(ret_genesis, ret_problem);
}
