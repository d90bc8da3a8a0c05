#include "provider/owner_status.h"

#include "base/checked.h"
#include "base/text.h"
#include "provider/device/expected.h"
#include "provider/report.h"

#include <unistd.h>

static json_t *asks_json(const struct agent_session *session)
{
    json_t *asks = json_array();
    struct agent_ask_row row;
    for (size_t i = 0; agent_session_ask(session, i, &row); i++) {
        char device[33];
        text_hex(row.terms.device.bytes, sizeof row.terms.device.bytes, device);
        json_t *ask = json_pack("{s:s, s:s, s:s, s:I, s:I, s:b, s:b, s:b, s:b, s:b, s:b}", "device",
                                device, "name", row.label, "instrument", row.instrument, "slots",
                                (json_int_t)row.terms.slots, "price_micro",
                                (json_int_t)row.terms.price_micro, "standing", (int)row.is_standing,
                                "by_hand", (int)row.is_by_hand, "cancelled", (int)row.is_taken_back,
                                "paused", (int)(row.is_withheld && !row.is_held), "withheld",
                                (int)row.is_held, "interruptible", (int)row.terms.is_interruptible);
        if (row.refusal[0] != '\0') {
            (void)json_object_set_new(ask, "refusal", json_string(row.refusal));
        }
        if (!row.is_by_hand) { /* the market shows the conditions of an ask placed by hand */
            (void)report_conditions(&row.terms.conditions, ask);
        }
        (void)json_array_append_new(asks, ask);
    }
    return asks;
}

static json_t *lease_json(const struct agent_lease_row *row, int64_t now_ns)
{
    char job[33];
    char device[33];
    text_hex(row->grant.job.bytes, sizeof row->grant.job.bytes, job);
    text_hex(row->grant.device.bytes, sizeof row->grant.device.bytes, device);
    int64_t left_ms = row->term_end_ns > now_ns ? (row->term_end_ns - now_ns) / NS_PER_MS : 0;
    return json_pack(
        "{s:I, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "lease", (json_int_t)row->grant.lease,
        "job", job, "device", device, "slots", (json_int_t)row->grant.slots, "price_micro",
        (json_int_t)row->grant.price_micro, "running", (json_int_t)row->running, "queued",
        (json_int_t)row->queued, "owed", (json_int_t)row->left + (json_int_t)row->owed,
        "term_left_ms", (json_int_t)left_ms);
}

static json_t *leases_json(const struct agent_session *session, int64_t now_ns)
{
    static struct agent_lease_row rows[OWNER_LEASES_MAX]; /* large; one thread asks */
    json_t *leases = json_array();
    size_t count = agent_session_leases(session, rows, OWNER_LEASES_MAX);
    for (size_t i = 0; i < count; i++) {
        (void)json_array_append_new(leases, lease_json(&rows[i], now_ns));
    }
    return leases;
}

static json_t *held_json(const struct lanes *lanes)
{
    json_t *list = json_array();
    struct lanes_held held;
    for (size_t i = 0; i < 1 + CONFIG_DEVICES_MAX; i++) {
        if (lanes_read_held(lanes, i, &held)) {
            const struct held_figures *figures = &held.figures;
            (void)json_array_append_new(
                list,
                json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "device", held.label,
                          "held_bytes", (json_int_t)figures->held_bytes, "cap_bytes",
                          (json_int_t)held.cap_bytes, "hits", (json_int_t)figures->hits,
                          "saved_bytes", (json_int_t)figures->saved_bytes, "copies",
                          (json_int_t)figures->copies, "copied_bytes",
                          (json_int_t)figures->copied_bytes, "aheads", (json_int_t)figures->aheads,
                          "ahead_bytes", (json_int_t)figures->ahead_bytes));
        }
    }
    return list;
}

/* Lists the devices of which a measured figure is far below the catalogue's. */
static json_t *below_json(const struct lanes *lanes)
{
    json_t *list = json_array();
    struct lanes_held held;
    char text[EXPECTED_TEXT_SIZE];
    for (size_t i = 0; i < 1 + CONFIG_DEVICES_MAX; i++) {
        if (lanes_read_held(lanes, i, &held) && expected_tell(held.device, text)) {
            (void)json_array_append_new(
                list, json_pack("{s:s, s:s}", "device", held.label, "text", text));
        }
    }
    return list;
}

/* Lists the devices that are withheld because they fail. */
static json_t *failing_json(const struct agent_session *session, int64_t now_ns,
                            const struct fault_rule *faults)
{
    json_t *list = json_array();
    struct agent_device_row row;
    for (size_t i = 0; agent_session_device(session, i, &row); i++) {
        const struct fault_rule *rule = &faults[i];
        const int64_t wait_ns = rule->trial_ns > now_ns ? rule->trial_ns - now_ns : 0;
        if (rule->is_withheld) {
            (void)json_array_append_new(
                list,
                json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:b, s:I}", "device", row.label, "fault",
                          fault_rule_word(rule->fault), "cause", rule->cause, "advice",
                          fault_rule_advice(rule->fault), "failures", (json_int_t)rule->failures,
                          "trials", (json_int_t)rule->trials, "trying", (int)rule->is_trying,
                          "next_trial_ms", (json_int_t)(wait_ns / NS_PER_MS)));
        }
    }
    return list;
}

json_t *owner_status(const struct pauses *pauses, const char *state,
                     const struct agent_session *session, int64_t now_ns, int64_t wall_ms,
                     const struct owner_facts *facts)
{
    struct agent_counts counts = agent_session_counts(session);
    char cluster[33];
    text_hex(facts->market->cluster.bytes, sizeof facts->market->cluster.bytes, cluster);
    json_t *answer =
        json_pack("{s:b, s:i, s:s, s:I, s:s, s:s, s:I, s:I}", "ok", 1, "version",
                  OWNER_STATUS_VERSION, "program", "bourse-provider " BOURSE_VERSION, "pid",
                  (json_int_t)getpid(), "name", facts->config->name, "state", state, "now_ms",
                  (json_int_t)wall_ms, "started_ms", (json_int_t)facts->started_ms);
    json_t *market =
        json_pack("{s:b, s:I, s:s, s:s}", "connected", (int)counts.ready, "since_ms",
                  (json_int_t)facts->since_ms, "control", facts->address, "cluster", cluster);
    json_t *paused = pauses->is_whole ? json_pack("{s:I}", "until_ms", (json_int_t)pauses->until_ms)
                                      : json_null();
    json_t *results = json_pack("{s:I, s:I}", "accepted", (json_int_t)counts.accepted, "refused",
                                (json_int_t)counts.refused);
    json_t *energy =
        json_pack("{s:I, s:I}", "measured_uj", (json_int_t)atomic_load(&facts->energy->measured_uj),
                  "estimated_uj", (json_int_t)atomic_load(&facts->energy->estimated_uj));
    json_t *error = facts->last_error[0] == '\0'
                        ? json_null()
                        : json_pack("{s:s, s:I}", "text", facts->last_error, "at_ms",
                                    (json_int_t)facts->last_error_ms);
    (void)json_object_set_new(answer, "market", market); /* without memory the member is left out */
    (void)json_object_set_new(answer, "paused", paused);
    (void)json_object_set_new(answer, "paused_devices", pauses_json(pauses));
    (void)json_object_set_new(
        answer, "idle", facts->idle == NULL ? json_null() : idle_watch_json(facts->idle, now_ns));
    (void)json_object_set_new(
        answer, "gpus", facts->gpus == NULL ? json_array() : gpu_watch_json(facts->gpus, now_ns));
    (void)json_object_set_new(answer, "failing", failing_json(session, now_ns, facts->faults));
    (void)json_object_set_new(answer, "held", held_json(facts->lanes));
    (void)json_object_set_new(answer, "below_catalogue", below_json(facts->lanes));
    (void)json_object_set_new(answer, "network",
                              facts->network == NULL ? json_null() : network_json(facts->network));
    (void)json_object_set_new(answer, "isolation", json_integer(facts->isolation));
    (void)json_object_set_new(answer, "frozen_text",
                              json_string(agent_session_frozen_text(session)));
    (void)json_object_set_new(answer, "asks", asks_json(session));
    (void)json_object_set_new(answer, "lease_count", json_integer(counts.leases));
    (void)json_object_set_new(answer, "leases", leases_json(session, now_ns));
    (void)json_object_set_new(answer, "running", json_integer(counts.running));
    (void)json_object_set_new(answer, "queued", json_integer(counts.queued));
    (void)json_object_set_new(answer, "owed",
                              json_integer((json_int_t)counts.left + (json_int_t)counts.owed));
    (void)json_object_set_new(answer, "jails", json_integer(lanes_jails(facts->lanes)));
    (void)json_object_set_new(answer, "results", results);
    (void)json_object_set_new(answer, "energy", energy);
    (void)json_object_set_new(answer, "last_error", error);
    return answer;
}

bool owner_waits_for_asks(const struct agent_session *session)
{
    struct agent_ask_row row;
    for (size_t i = 0; agent_session_ask(session, i, &row); i++) {
        if (!row.is_standing && !row.is_taken_back && !row.is_withheld) {
            return true;
        }
    }
    return false;
}

json_t *owner_progress(const struct pauses *pauses, const char *state,
                       const struct agent_session *session, const char *device, const char *unkept)
{
    struct agent_counts counts = agent_session_counts(session);
    struct agent_device_row row;
    size_t index;
    int64_t until_ms = pauses->is_whole ? pauses->until_ms : 0;
    bool is_withdrawn = agent_session_withdrawn(session);
    bool is_standing = !owner_waits_for_asks(session);
    if (device[0] != '\0' && agent_session_find_label(session, device, &index, &row)) {
        const struct paused_device *paused = pauses_device(pauses, device);
        until_ms = paused != NULL ? paused->until_ms : 0;
        is_withdrawn = row.is_withdrawn;
        is_standing = row.is_standing;
        counts.running = row.running;
    }
    return json_pack(
        "{s:b, s:s, s:s?, s:b, s:b, s:b, s:s, s:b, s:b, s:I, s:I, s:I, s:I, s:I, s:s}", "ok", 1,
        "state", state, "device", device[0] != '\0' ? device : NULL, "withheld",
        (int)agent_session_holds(session, device), "connected", (int)counts.ready, "frozen",
        (int)agent_session_frozen(session), "frozen_text", agent_session_frozen_text(session),
        "withdrawn", (int)is_withdrawn, "standing", (int)is_standing, "asks_standing",
        (json_int_t)counts.asks_standing, "running", (json_int_t)counts.running, "owed",
        (json_int_t)counts.left + (json_int_t)counts.owed, "accepted", (json_int_t)counts.accepted,
        "until_ms", (json_int_t)until_ms, "unkept", unkept);
}
