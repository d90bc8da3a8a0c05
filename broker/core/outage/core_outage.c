/* The core bridges an outage of the journal on etcd here.
 *
 * What was applied and is not in the journal may never be in it, because another broker may lead by
 * then. So nobody is shown the present state. Senders of commands hear NO_QUORUM at once, and keep
 * what they sent. Reads show the state after the last entry that the journal took.
 *
 * Groups do not come back meanwhile, so nothing is added to one. Answers go out without a group.
 * What the broker itself has to note waits: that an agent fell silent, returned, or left. */
#include "broker/core/core_internal.h"

#include "broker/answer/listings.h"
#include "broker/answer/replies.h"
#include "broker/core/request.h"
#include "runtime/clock.h"

bool core_outage_open(struct core *core)
{
    const struct core_config *config = &core->config;
    if (config->quorum == NULL) {
        return true;
    }
    core->last_put_off = &core->put_off;
    core->unanswered = unanswered_create();
    core->past = past_state_create(config->database, config->snapshots, config->limits);
    return core->unanswered != NULL && core->past != NULL;
}

void core_outage_close(struct core *core)
{
    while (core->put_off != NULL) {
        struct request *request = QUEUE_ELEMENT(core->put_off, struct request, link);
        core->put_off = core->put_off->next;
        request_destroy(&request); /* nobody waits for it; the next start notices who is away */
    }
    unanswered_destroy(&core->unanswered);
    past_state_destroy(&core->past);
}

static void tell(void *context, uint64_t session, const struct id128 *id)
{
    struct core *core = context;
    core_add_reply(core,
                   outgoing_unsettled(session, id, core->config.quorum, clock_monotonic_ns()));
}

void core_outage_look(struct core *core)
{
    const struct quorum_note *note = core->config.quorum;
    if (note == NULL) {
        return;
    }
    const bool is_away = atomic_load(&note->is_away);
    if (is_away && !core->is_away) {
        core->is_away = true;
        unanswered_tell(core->unanswered, core->open, tell, core);
        (void)past_state_look(core->past); /* the first read need not wait for it */
    }
    core->is_away = is_away;
    if (!is_away) {
        past_state_drop(core->past);
    }
}

void core_outage_refuse(struct core *core, struct request *request)
{
    core_add_reply(core, outgoing_no_quorum(request, core->config.quorum, clock_monotonic_ns()));
    request_destroy(&request);
}

void core_outage_put_off(struct core *core, struct request *request)
{
    request->link.next = NULL;
    *core->last_put_off = &request->link;
    core->last_put_off = &request->link.next;
}

struct request *core_outage_resume(struct core *core)
{
    if (core->is_away || core->put_off == NULL) {
        return NULL;
    }
    struct request *request = QUEUE_ELEMENT(core->put_off, struct request, link);
    core->put_off = request->link.next;
    if (core->put_off == NULL) {
        core->last_put_off = &core->put_off;
    }
    return request;
}

static struct outgoing *reply_from(struct core *core, const struct exchange *past,
                                   const struct request *request)
{
    if (request->envelope.type == MESSAGE_DEVICES_REQUEST) {
        const struct listings_sources sources = {.figures = core->figures,
                                                 .now_ns = clock_monotonic_ns(),
                                                 .challenges = challenges_facts(core->challenges),
                                                 .log_ns = logtime_now(core->config.clock)};
        return listings_devices(past, &sources, request);
    }
    const struct replies_sources sources = {.facts = challenges_facts(core->challenges),
                                            .departures = core->departures,
                                            .log_ns = logtime_now(core->config.clock)};
    return replies_to_read(past, &sources, request);
}

void core_outage_answer(struct core *core, struct request *request)
{
    const enum message_type type = (enum message_type)request->envelope.type;
    if (replies_are_the_readers(type)) {
        core_pass_on(core, request);
        return;
    }
    const bool is_live = type == MESSAGE_MARKET_REQUEST || replies_are_the_leaders(type);
    const struct exchange *past = is_live ? NULL : past_state_look(core->past);
    if (past == NULL) {
        core_outage_refuse(core, request);
        return;
    }
    core_add_reply(core, reply_from(core, past, request));
    request_destroy(&request);
}
