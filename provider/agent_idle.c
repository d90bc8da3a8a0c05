/* This file obeys the owner's rule of idle times (`idle:` of the config). The rule gives an order,
 * and the agent carries out each change of it by the same means as a pause by hand. */
#include "provider/agent_internal.h"

#include "base/checked.h"
#include "runtime/clock.h"
#include "runtime/log.h"

#include <unistd.h>

bool agent_open_idle(struct agent *agent, struct problem *problem)
{
    const struct config *config = agent->setup->config;
    const int64_t now_ns = clock_monotonic_ns();
    char sees[IDLE_SEES_SIZE];
    if (!config->idle.is_set) {
        return true;
    }
    agent->idle = idle_watch_create(&config->idle, config->idle_root, getpid(), now_ns);
    if (agent->idle == NULL) {
        problem_set(problem, "out of memory");
        return false;
    }
    agent->idle_order = idle_watch_look(agent->idle, now_ns);
    idle_watch_sees(agent->idle, sees);
    log_info("the devices work while nobody else uses the machine: after %lld s without a sign of "
             "use. Watched: %s",
             (long long)(config->idle.after_ns / NS_PER_S), sees);
    lanes_freeze(agent->lanes, true);
    owner_yield(agent->owner, agent->session, now_ns, true);
    return true;
}

static void say(const struct agent *agent, int64_t now_ns, const char *what)
{
    char reason[IDLE_REASON_SIZE];
    idle_watch_reason(agent->idle, now_ns, reason);
    log_info("%s: %s", what, reason);
}

static void obey(struct agent *agent, int64_t now_ns)
{
    switch (agent->idle_order) {
    case IDLE_WORK:
        log_info("the machine is idle: offering, and work goes on");
        break;
    case IDLE_HOLD:
        say(agent, now_ns, "nothing is offered, and work stands still");
        break;
    case IDLE_SAVE:
        say(agent, now_ns, "work goes back to the market");
        agent_session_hand_back(agent->session, now_ns);
        break;
    case IDLE_RETURN:
        agent_session_rest(agent->session, now_ns, true, true);
        break;
    }
    lanes_freeze(agent->lanes, agent->idle_order != IDLE_WORK);
    owner_yield(agent->owner, agent->session, now_ns, agent->idle_order != IDLE_WORK);
}

void agent_idle_turn(struct agent *agent, int64_t now_ns)
{
    if (agent->idle == NULL || agent->drain_began_ns != 0) {
        return; /* an agent that leaves ends its work in its own way */
    }
    if (owner_take_override(agent->owner)) {
        idle_watch_override(agent->idle);
    }
    const enum idle_order order = idle_watch_look(agent->idle, now_ns);
    if (order != agent->idle_order) {
        agent->idle_order = order;
        obey(agent, now_ns);
    }
}

int64_t agent_idle_due_ns(const struct agent *agent)
{
    return agent->idle == NULL || agent->drain_began_ns != 0 ? INT64_MAX
                                                             : idle_watch_due_ns(agent->idle);
}
