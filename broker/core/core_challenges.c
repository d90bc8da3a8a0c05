/* The core challenges devices here, and keeps what was found. */
#include "broker/core/core_internal.h"

#include "base/checked.h"
#include "broker/challenge/challenge_file.h"
#include "broker/challenge/challenges.h"
#include "broker/core/group.h"
#include "broker/core/outgoing.h"
#include "broker/core/request.h"
#include "runtime/clock.h"
#include "runtime/entropy.h"

/* The facts are written this often at most. */
#define CHALLENGES_KEPT_NS (10 * NS_PER_S)

struct challenges *core_open_challenges(const struct core_config *config)
{
    const struct challenges_config settings = {.every_ns = config->challenge_ms * NS_PER_MS,
                                               .heartbeat_ns = config->heartbeat_ms * NS_PER_MS};
    struct challenges *challenges = challenges_create(&settings);
    if (challenges != NULL) {
        challenge_file_read(challenges_facts(challenges), config->challenges_path);
    }
    return challenges;
}

struct challenges_now core_challenge_time(struct core *core)
{
    struct challenges_now now = {.monotonic_ns = clock_monotonic_ns(),
                                 .log_ns = logtime_now(core->config.clock)};
    entropy_bytes(now.dice.bytes, sizeof now.dice.bytes);
    return now;
}

/* Writes what challenges found. A claim that was found false is written at once; all else may be
 * lost with the last seconds of a killed broker, and is found again. */
static void keep_challenges(struct core *core, bool is_last)
{
    bool is_urgent;
    const int64_t now_ns = clock_monotonic_ns();
    core->challenges_changed =
        challenges_changed(core->challenges, &is_urgent) || core->challenges_changed;
    if (core->challenges_changed && (is_urgent || is_last || now_ns >= core->challenges_kept_ns)) {
        challenge_file_write(challenges_facts(core->challenges), core->config.challenges_path);
        core->challenges_kept_ns = now_ns + CHALLENGES_KEPT_NS;
        core->challenges_changed = false;
    }
}

void core_add_challenges(struct core *core)
{
    struct outgoing *message = NULL;
    const struct challenges_now now = core_challenge_time(core);
    while (core->open->reply_count < GROUP_REPLIES_MAX &&
           (message = challenges_next(core->challenges, core->config.exchange, &now)) != NULL) {
        core_add_reply(core, message);
    }
    keep_challenges(core, false);
}

bool core_refuse_challenged(struct core *core, struct request *request)
{
    struct outgoing *refusal = challenges_refuse(core->challenges, core->config.exchange, request,
                                                 logtime_now(core->config.clock));
    if (refusal == NULL) {
        return false;
    }
    if (core->open->reply_count + 1 >= GROUP_REPLIES_MAX) {
        core_hand_over(core);
    }
    core_add_reply(core, refusal);
    request_destroy(&request);
    return true;
}

void core_close_challenges(struct core *core)
{
    keep_challenges(core, true);
    challenges_destroy(&core->challenges);
}
