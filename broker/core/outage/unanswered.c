#include "broker/core/outage/unanswered.h"

#include "broker/core/core.h"

#include <stdlib.h>

/* A place has what waits for one group. */
struct place {
    const struct group *group; /* only compared, never looked into; NULL: the place is free */
    size_t count;
    struct waiter {
        uint64_t session;
        struct id128 id;
    } waiters[GROUP_COMMANDS_MAX + GROUP_REPLIES_MAX];
};

struct unanswered {
    struct place places[CORE_GROUPS];
    struct place open; /* filled while it is told */
};

struct unanswered *unanswered_create(void)
{
    return calloc(1, sizeof(struct unanswered));
}

void unanswered_destroy(struct unanswered **self)
{
    free(*self);
    *self = NULL;
}

static void add(struct place *place, uint64_t session, const struct id128 *id)
{
    if (!id128_is_zero(id)) {
        place->waiters[place->count++] = (struct waiter){.session = session, .id = *id};
    }
}

/* A message has a sender, and an answer has an id; nobody waits for anything else. */
static void fill(struct place *place, const struct group *group)
{
    place->group = group;
    place->count = 0;
    for (uint32_t i = 0; i < group->command_count; i++) {
        const struct request *request = group->commands[i].request;
        if (request != NULL && request->kind == REQUEST_MESSAGE) {
            add(place, request->session, &request->envelope.id);
        }
    }
    for (uint32_t i = 0; i < group->reply_count; i++) {
        if (group->replies[i]->kind == OUTGOING_REPLY) {
            add(place, group->replies[i]->session, &group->replies[i]->id);
        }
    }
}

void unanswered_keep(struct unanswered *unanswered, const struct group *group)
{
    unanswered_forget(unanswered, group);
    for (size_t i = 0; i < CORE_GROUPS; i++) {
        if (unanswered->places[i].group == NULL) {
            fill(&unanswered->places[i], group);
            return;
        }
    }
}

void unanswered_forget(struct unanswered *unanswered, const struct group *group)
{
    for (size_t i = 0; i < CORE_GROUPS; i++) {
        if (unanswered->places[i].group == group) {
            unanswered->places[i].group = NULL;
            unanswered->places[i].count = 0;
        }
    }
}

static void tell(struct place *place, unanswered_teller *teller, void *context)
{
    for (size_t i = 0; i < place->count; i++) {
        teller(context, place->waiters[i].session, &place->waiters[i].id);
    }
    place->count = 0;
}

void unanswered_tell(struct unanswered *unanswered, const struct group *open,
                     unanswered_teller *teller, void *context)
{
    for (size_t i = 0; i < CORE_GROUPS; i++) {
        tell(&unanswered->places[i], teller, context);
    }
    fill(&unanswered->open, open);
    tell(&unanswered->open, teller, context);
}
