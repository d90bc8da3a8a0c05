/* This file lets the agent answer the broker's challenges. */
#include "provider/agent_internal.h"

#include <unistd.h>

/* Called on the other thread. */
static void report_done(void *context)
{
    const struct agent *agent = context;
    const uint64_t one = 1;
    const ssize_t written = write(agent->reports.event, &one, sizeof one);
    (void)written; /* a full counter wakes as well */
}

bool agent_open_challenger(struct agent *agent, struct problem *problem)
{
    const struct agent_setup *setup = agent->setup;
    const struct challenger_config config = {.launcher = setup->launcher,
                                             .cgroups = setup->cgroups,
                                             .worker_path = setup->worker_path,
                                             .tensor_path = setup->tensor_path,
                                             .done = report_done,
                                             .context = agent};
    if (setup->tensor_path == NULL) {
        return true; /* no device claims a speed that is challenged */
    }
    agent->challenger = challenger_create(&config);
    if (agent->challenger == NULL) {
        problem_set(problem, "out of memory");
    }
    return agent->challenger != NULL;
}

/* Only processor cores are challenged, and only while they are on offer. */
static bool can_answer(const struct agent *agent, const struct id128 *device)
{
    struct agent_device_row row;
    size_t index = 0;
    const struct offer *offer = policy_offer_of(agent->setup->offers, device);
    return agent->challenger != NULL && offer != NULL && offer->simulates == NULL &&
           offer->kernel_device == NULL && offer->plugin == NULL &&
           agent_session_find_id(agent->session, device, &index, &row) && row.is_standing &&
           row.running == 0;
}

void agent_challenge(struct agent *agent, int64_t now_ns, const struct agent_challenge *challenge)
{
    if (!can_answer(agent, &challenge->device) ||
        !challenger_begin(agent->challenger, challenge)) {
        (void)agent_session_challenged(agent->session, now_ns, challenge, NULL, 0);
    }
}

void agent_challenge_take(struct agent *agent, int64_t now_ns)
{
    struct agent_challenge challenge;
    const uint8_t *digests = NULL;
    size_t length = 0;
    if (agent->challenger != NULL &&
        challenger_take(agent->challenger, &challenge, &digests, &length)) {
        (void)agent_session_challenged(agent->session, now_ns, &challenge, digests, length);
    }
}
