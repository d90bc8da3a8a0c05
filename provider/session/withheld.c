/* provider/session/withheld.c takes single devices off the market, and brings them back. The
 * devices stay advertised: advertising anew would cancel every ask, also those of other devices. */
#include "provider/session/offers_internal.h"

#include <string.h>

static const struct offered_device *find_device(const struct agent_session *session,
                                                const struct id128 *device)
{
    for (size_t i = 0; i < session->device_count; i++) {
        if (id128_equal(&session->devices[i].facts.device, device)) {
            return &session->devices[i];
        }
    }
    return NULL;
}

static bool is_held(const struct offered_device *device)
{
    bool is_any = false;
    for (size_t i = 0; i < AGENT_HOLDS; i++) {
        is_any = is_any || device->is_held[i];
    }
    return is_any;
}

static bool is_withheld(const struct offered_device *device)
{
    return device->is_paused || is_held(device);
}

bool withheld_device(const struct agent_session *session, const struct id128 *device)
{
    const struct offered_device *found = find_device(session, device);
    return found != NULL && is_withheld(found);
}

bool withheld_is_held(const struct agent_session *session, const struct id128 *device)
{
    const struct offered_device *found = find_device(session, device);
    return found != NULL && is_held(found);
}

void withheld_copy(const struct agent_session *session, struct offered_device *device)
{
    const struct offered_device *found = find_device(session, &device->facts.device);
    device->is_paused = found != NULL && found->is_paused;
    for (size_t i = 0; i < AGENT_HOLDS; i++) {
        device->is_held[i] = found != NULL && found->is_held[i];
    }
}

/* Tells the running programs of the lease to save their state and to end, each once. */
static void tell(struct agent_session *session, const struct lease *lease)
{
    for (struct list_link *link = lease->works.next; link != &lease->works; link = link->next) {
        struct work *work = LIST_ELEMENT(link, struct work, link);
        if (work->state == WORK_RUNNING && !work->told) {
            work->told = true;
            work_act(session, AGENT_NOTICE, work);
        }
    }
}

void withheld_give_back(struct agent_session *session, int64_t now_ns, struct lease *lease,
                        enum agent_withhold how)
{
    const bool saves = how == AGENT_WITHHOLD_SAVE && lease->grant.has_checkpoints;
    work_give_back(session, now_ns, lease, how != AGENT_WITHHOLD && !saves);
    if (saves) {
        tell(session, lease);
    }
}

/* Carries out a change of is_paused or is_held. */
static void turn(struct agent_session *session, int64_t now_ns, const struct offered_device *device,
                 enum agent_withhold how)
{
    const bool stays_away = is_withheld(device);
    if (stays_away && how == AGENT_WITHHOLD_NOT) {
        return; /* others withhold the device, too */
    }
    for (size_t i = 0; i < session->ask_count; i++) {
        struct offered_ask *ask = &session->asks[i];
        const bool is_taken_back = ask->state == ASK_TAKEN_BACK && !stays_away;
        if (id128_equal(&ask->terms.device, &device->facts.device) &&
            (stays_away || is_taken_back)) {
            offers_cancel_order(session, now_ns, ask);
        }
    }
    if (!stays_away && session_ready(session)) {
        offers_place(session, now_ns);
    }
    for (struct list_link *link = session->leases.next; stays_away && link != &session->leases;
         link = link->next) {
        struct lease *lease = LIST_ELEMENT(link, struct lease, link);
        if (id128_equal(&lease->grant.device, &device->facts.device)) {
            withheld_give_back(session, now_ns, lease, how);
        }
    }
    results_flush(session, now_ns);
}

void agent_session_withhold(struct agent_session *session, int64_t now_ns, size_t index,
                            enum agent_withhold how)
{
    session->devices[index].is_paused = how != AGENT_WITHHOLD_NOT;
    turn(session, now_ns, &session->devices[index], how);
}

void agent_session_hold(struct agent_session *session, int64_t now_ns, size_t index,
                        enum agent_hold rule, enum agent_withhold how)
{
    session->devices[index].is_held[rule] = how != AGENT_WITHHOLD_NOT;
    turn(session, now_ns, &session->devices[index], how);
}

bool agent_session_device(const struct agent_session *session, size_t index,
                          struct agent_device_row *ret_row)
{
    if (index >= session->device_count) {
        return false;
    }
    const struct offered_device *device = &session->devices[index];
    *ret_row = (struct agent_device_row){.device = device->facts.device,
                                         .label = device->facts.label,
                                         .is_withheld = is_withheld(device),
                                         .is_held = is_held(device),
                                         .is_withdrawn = true};
    for (size_t i = 0; i < session->ask_count; i++) {
        const struct offered_ask *ask = &session->asks[i];
        if (!id128_equal(&ask->terms.device, &device->facts.device)) {
            continue;
        }
        ret_row->is_standing = ret_row->is_standing || offers_ask_stands(ask);
        if (!id128_is_zero(&ask->order) || !id128_is_zero(&ask->leaving)) {
            ret_row->is_withdrawn = false;
        }
    }
    for (const struct list_link *link = session->leases.next; link != &session->leases;
         link = link->next) {
        const struct lease *lease = LIST_ELEMENT(link, struct lease, link);
        for (const struct list_link *inner = lease->works.next;
             id128_equal(&lease->grant.device, &device->facts.device) && inner != &lease->works;
             inner = inner->next) {
            const enum work_state state = LIST_ELEMENT(inner, struct work, link)->state;
            ret_row->running += state == WORK_RUNNING || state == WORK_LEFT;
        }
    }
    return true;
}

bool agent_session_find_label(const struct agent_session *session, const char *label,
                              size_t *ret_index, struct agent_device_row *ret_row)
{
    for (*ret_index = 0; agent_session_device(session, *ret_index, ret_row); (*ret_index)++) {
        if (strcmp(ret_row->label, label) == 0) {
            return true;
        }
    }
    return false;
}

bool agent_session_find_id(const struct agent_session *session, const struct id128 *id,
                           size_t *ret_index, struct agent_device_row *ret_row)
{
    for (*ret_index = 0; agent_session_device(session, *ret_index, ret_row); (*ret_index)++) {
        if (id128_equal(&ret_row->device, id)) {
            return true;
        }
    }
    return false;
}

bool agent_session_all_withheld(const struct agent_session *session)
{
    size_t withheld = 0;
    for (size_t i = 0; i < session->device_count; i++) {
        withheld += is_withheld(&session->devices[i]);
    }
    return withheld > 0 && withheld == session->device_count;
}

bool agent_session_holds(const struct agent_session *session, const char *label)
{
    for (size_t i = 0; i < session->device_count; i++) {
        const struct offered_device *device = &session->devices[i];
        if (is_held(device) && (label[0] == '\0' || strcmp(device->facts.label, label) == 0)) {
            return true;
        }
    }
    return false;
}
