/* This part of client.h says what a client knows, and what it still lacks. */
#include "tests/sim/client.h"

static uint64_t acknowledged;   /* the newest command that any client knows to be accepted */
static uint64_t follower_reads; /* answers of brokers that follow */

void client_knows(uint64_t index)
{
    acknowledged = index > acknowledged ? index : acknowledged;
}

void client_notes_read(struct client *client, const struct id128 *id)
{
    const size_t place = client->read_count++ % CLIENT_READS;
    client->reads[place].id = *id;
    client->reads[place].acknowledged = acknowledged;
}

uint64_t client_follower_reads(void)
{
    return follower_reads;
}

/* A broker that follows may lack what others wrote. It has what this client wrote, and the state
 * that it said its answer is of. */
static void check_follower(const struct client *client, const struct dialogue_state *state,
                           uint64_t index)
{
    follower_reads++;
    if (index < state->index) {
        sim_fail("%s is shown command %llu, and told that it is %llu", client->process.name,
                 (unsigned long long)index, (unsigned long long)state->index);
    }
    if (index < client->accepted) {
        sim_fail("%s is shown command %llu, and its own command %llu was accepted before",
                 client->process.name, (unsigned long long)index,
                 (unsigned long long)client->accepted);
    }
}

/* No read of the leader shows a state from before what was acknowledged, to anybody, when it was
 * asked. */
void client_checks_read(const struct client *client, const struct id128 *id, uint64_t index)
{
    const struct dialogue_state state = consumer_session_state(client->session);
    if (state.follows) {
        check_follower(client, &state, index);
        return;
    }
    for (size_t i = 0; world.reads_are_current && i < CLIENT_READS; i++) {
        if (id128_equal(&client->reads[i].id, id) && index < client->reads[i].acknowledged) {
            sim_fail("%s is shown command %llu, and %llu was acknowledged before it asked",
                     client->process.name, (unsigned long long)index,
                     (unsigned long long)client->reads[i].acknowledged);
        }
    }
}

struct consumer_session *client_new_session(struct client *client)
{
    const struct contact *addresses;
    const size_t count = net_addresses(&addresses);
    struct consumer_session *session =
        consumer_session_create_at(client->identity, "simulated client", addresses, count);
    client->accepted = 0;
    if (session != NULL && client->reads_anywhere) {
        consumer_session_read_anywhere(session, 0);
    }
    return session;
}

bool client_is_ready(const struct client *client)
{
    return client->process.runs && consumer_session_ready(client->session);
}

size_t client_unseen(const struct client *client)
{
    size_t unseen = 0;
    for (size_t i = 0; i < client->request_count; i++) {
        const struct client_request *request = &client->requests[i];
        unseen += request->type == MESSAGE_SUBMIT_JOB && request->fate == FATE_ACCEPTED &&
                  !request->is_seen;
    }
    return unseen;
}

size_t client_open(const struct client *client)
{
    size_t open = 0;
    for (size_t i = 0; i < client->request_count; i++) {
        open += client->requests[i].fate == FATE_OPEN;
    }
    return open;
}

void client_tells(const struct client *client)
{
    for (size_t i = 0; i < client->request_count; i++) {
        const struct client_request *request = &client->requests[i];
        if (request->fate == FATE_OPEN) {
            trace("%s has no answer to its %s %02x%02x, which is %s", client->process.name,
                  message_name(request->type), request->id.bytes[0], request->id.bytes[1],
                  request->is_pending ? "pending" : "not pending");
        }
    }
}
