/* The oracle watches what brokers say and are: nothing leaves one before the log has it (D2), and
 * its state is the reference's. */
#include "tests/sim/oracle_models.h"

#include "exchange/state/records.h"
#include "protocol/codec.h"
#include "protocol/envelope.h"
#include "protocol/limits.h"

#include <inttypes.h>

enum { WALK_EVERY = 64 };

/* The leases with queued work are those that a walk over all of the part finds. */
static void check_deep(const struct part *part)
{
    size_t listed = 0;
    size_t found = 0;
    for (const struct list_link *at = part->deep.next; at != &part->deep; at = at->next) {
        listed++;
    }
    for (const struct list_link *at = part->job->leases.next; at != &part->job->leases;
         at = at->next) {
        const struct lease *lease = LIST_ELEMENT(at, struct lease, of_job);
        uint32_t deep = 0;
        for (uint32_t i = 0; i < lease->lane_count; i++) {
            deep += lease->lanes[i].in_flight > 1;
        }
        if (lease->part == part && lease->deep_lanes != deep) {
            sim_fail("command %" PRIu64 ": lease %" PRIu64 " has work queued in %u lanes, not %u",
                     oracle.command, lease->id, deep, lease->deep_lanes);
        }
        found += lease->part == part && deep > 0;
    }
    if (listed != found) {
        sim_fail("command %" PRIu64 ": %zu leases of a part have work queued, %zu are listed",
                 oracle.command, found, listed);
    }
}

static void check_all_deep(void)
{
    const struct list_link *jobs = &oracle.exchange->job_list;
    for (const struct list_link *at = jobs->next; at != jobs; at = at->next) {
        const struct job *job = LIST_ELEMENT(at, struct job, all);
        for (uint32_t i = 0; i < job->part_count; i++) {
            check_deep(&job->parts[i]);
        }
    }
}

void oracle_check_state(void)
{
    if (oracle.command >= oracle.states_capacity) {
        oracle.states_capacity = oracle.states_capacity == 0 ? 4096 : 2 * oracle.states_capacity;
        oracle.states = sim_grow(oracle.states, oracle.states_capacity * sizeof *oracle.states);
    }
    struct hash32 state = exchange_state_hash(oracle.exchange);
    oracle.states[oracle.command] = state;
    if (oracle.command % WALK_EVERY == 0) {
        check_all_deep();
        struct hash32 walked = exchange_state_hash_walk(oracle.exchange);
        if (!hash32_equal(&state, &walked)) {
            sim_fail("command %" PRIu64 ": the incremental hash differs from the walk",
                     oracle.command);
        }
    }
}

void oracle_compare(uint64_t command, const struct hash32 *state, const char *what)
{
    oracle_follow();
    if (command > oracle.command) {
        sim_fail("a broker is at command %" PRIu64 ", the log at %" PRIu64, command,
                 oracle.command);
    }
    if (command > 0 && !hash32_equal(&oracle.states[command], state)) {
        sim_fail("the %s state at command %" PRIu64 " differs from the reference", what, command);
    }
}

static void check_accepted(const Bourse__V1__Accepted *body)
{
    if (body->index > oracle.command) {
        sim_fail("command %" PRIu64 " is called accepted, the log ends at %" PRIu64, body->index,
                 oracle.command);
    }
}

static void check_dispatched(uint64_t lease, size_t count, Bourse__V1__Work *const *work)
{
    for (size_t i = 0; i < count; i++) {
        struct map_key key = oracle_attempt_key(lease, work[i]->index, work[i]->attempt);
        if (!map_get(&oracle.attempts.map, &key, NULL)) {
            sim_fail("work is sent out that the log does not have: lease %" PRIu64, lease);
        }
    }
}

/* Release after commit (D2): nothing leaves before the log has it. */
void oracle_answers(const struct host *host, const uint8_t *bytes, size_t length)
{
    struct process *before = process_enter(NULL);
    struct envelope envelope;
    ProtobufCMessage *body = NULL;
    struct codec_error error = {.field = ""};
    (void)host;
    oracle_follow();
    if (envelope_read(bytes, length, LIMIT_MESSAGE_BYTES, &envelope) != ENVELOPE_OK) {
        sim_fail("a broker sends what nobody can read");
    }
    if (codec_decode((enum message_type)envelope.type, envelope.body, envelope.body_length, &body,
                     &error) != CODEC_OK) {
        sim_fail("a broker sends a %s that nobody can read: field %s, value %" PRId64,
                 message_name((enum message_type)envelope.type), error.field, error.value);
    }
    if (envelope.type == MESSAGE_ACCEPTED) {
        check_accepted((const void *)body);
    } else if (envelope.type == MESSAGE_LEASE_GRANT) {
        const Bourse__V1__LeaseGrant *grant = (const void *)body;
        if (oracle_lease_of(grant->lease) == NULL) {
            sim_fail("lease %" PRIu64 " is told of, and the log does not have it", grant->lease);
        }
    } else if (envelope.type == MESSAGE_DISPATCH) {
        const Bourse__V1__Dispatch *dispatch = (const void *)body;
        check_dispatched(dispatch->lease, dispatch->n_work, dispatch->work);
    } else if (envelope.type == MESSAGE_JOBS_REPLY) {
        const Bourse__V1__JobsReply *reply = (const void *)body;
        if (reply->index > oracle.command) {
            sim_fail("a read shows command %" PRIu64 ", the log ends at %" PRIu64, reply->index,
                     oracle.command);
        }
    } else if (envelope.type == MESSAGE_JOB_EVENT) {
        const Bourse__V1__JobEvent *event = (const void *)body;
        if (event->job->index > oracle.command) {
            sim_fail("an event shows command %" PRIu64 ", the log ends at %" PRIu64,
                     event->job->index, oracle.command);
        }
    }
    codec_free(&body);
    process_leave(before);
}
