/* The test moves the leader of a market under 1,000 sessions, on a virtual clock. Leaders die, fall
 * silent, or hand over, and for some seconds nobody leads. However they do it, the sessions make a
 * bounded number of attempts in any second, and all of them find the leader in the end. */
#include "base/random.h"
#include "tests/support/dialogue_play.h"
#include "tests/support/property_seed.h"
#include "tests/support/suite.h"

#include <stdio.h>

enum {
    CLIENTS = 1000,
    BROKERS = 3,
    RUN_S = 120,
    RETURNS_A_SECOND = 200, /* the rate for which a broker spreads its clients */
    /* While nobody leads, half of the spread of 5 s lies between two tries: two tries for each
     * return. A try may be followed by a quick move. */
    ATTEMPTS_A_SECOND_MOST = 4 * RETURNS_A_SECOND,
    /* A second has room for waits of at least 50, 100, 200 and 250 ms, and for the quick moves. */
    OF_ONE_A_SECOND_MOST = 6 + CONTACTS_REDIRECTS_MAX,
    /* A silence of 3 s, two spread waits, and an address that does not answer. */
    FOUND_WITHIN_S = 3 + 2 * (5 + 5) + 3,
};
#define FOREVER INT64_MAX
#define LATENCY_NS NS_PER_MS

enum mode { LEADS, FOLLOWS, DEAD };

struct client {
    struct play play;
    int64_t connect_ns, answer_ns, beat_ns;
    int broker;
    struct id128 hello, request;
    uint64_t requests;
    int64_t recent_ns[OF_ONE_A_SECOND_MOST]; /* the newest attempts, in a ring */
    unsigned recent;
};

struct world {
    struct random dice;
    struct identity *identity;
    int64_t now_ns;
    enum mode modes[BROKERS];
    int named;        /* the leader, or the last one */
    int leader;       /* -1: nobody leads */
    bool refuses;     /* the dead one refuses connections, instead of saying nothing */
    bool is_named;    /* followers know the leader */
    int64_t since_ns; /* of the present leader */
    uint64_t sessions;
    unsigned attempts[RUN_S + 60];
    struct client clients[CLIENTS];
};

static const struct contact brokers[BROKERS] = {
    {"tcp://b0:1", "tcp://b0:2"}, {"tcp://b1:1", "tcp://b1:2"}, {"tcp://b2:1", "tcp://b2:2"}};

static void note_attempt(struct world *world, struct client *client)
{
    int64_t *oldest = &client->recent_ns[client->recent++ % OF_ONE_A_SECOND_MOST];
    ck_assert_msg(world->now_ns - *oldest >= NS_PER_S, "more than %d attempts of one in a second",
                  OF_ONE_A_SECOND_MOST);
    *oldest = world->now_ns;
    world->attempts[world->now_ns / NS_PER_S]++;
}

static void part(struct client *client, const struct dialogue_event *event)
{
    ck_assert_int_eq(event->type, DIALOGUE_LOST);
    client->connect_ns = client->play.now_ns + event->wait_ns;
    client->answer_ns = client->beat_ns = FOREVER;
}

static void connect_client(struct world *world, struct client *client)
{
    struct heard heard;
    note_attempt(world, client);
    client->connect_ns = FOREVER;
    dialogue_connected(client->play.dialogue, world->now_ns, random_u64(&world->dice));
    ck_assert(hear(&client->play, &heard));
    client->hello = heard.envelope.id;
    client->broker = dialogue_address(client->play.dialogue)->control[7] - '0';
    const bool is_silent = world->modes[client->broker] == DEAD && !world->refuses;
    client->answer_ns = is_silent ? FOREVER : world->now_ns + LATENCY_NS;
}

static void refuse(struct world *world, struct client *client, uint64_t session, uint64_t sequence,
                   const struct id128 *id)
{
    Bourse__V1__Reject reject = BOURSE__V1__REJECT__INIT;
    reject.code = REJECT_NOT_LEADER;
    reject.text = "no";
    if (world->is_named) { /* while nobody leads, they name the one that led */
        reject.leader_address = (char *)(uintptr_t)brokers[world->named].control;
    }
    const struct dialogue_event event =
        say_raw(&client->play, session, sequence, MESSAGE_REJECT, id, &reject.base);
    part(client, &event);
}

/* The broker answers the Hello. */
static void greet(struct world *world, struct client *client)
{
    client->answer_ns = FOREVER;
    if (world->modes[client->broker] == DEAD) { /* the machine refuses the connection */
        struct dialogue_event event;
        dialogue_unreachable(client->play.dialogue, &event);
        part(client, &event);
        return;
    }
    if (world->modes[client->broker] == FOLLOWS) {
        refuse(world, client, 0, 0, &client->hello);
        return;
    }
    client->play.session = ++world->sessions;
    client->play.sequence_out = 0;
    Bourse__V1__Welcome welcome = welcome_example(&client->play);
    welcome.has_spread_ms = 1;
    welcome.spread_ms = CLIENTS * 1000 / RETURNS_A_SECOND;
    const struct dialogue_event event =
        say(&client->play, MESSAGE_WELCOME, &client->hello, &welcome.base);
    ck_assert_int_eq(event.type, DIALOGUE_READY);
    client->beat_ns = world->now_ns;
}

/* Each client has a command once a second, which the leader accepts. */
static void command(struct world *world, struct client *client)
{
    struct heard heard;
    client->beat_ns = world->now_ns + NS_PER_S;
    if (dialogue_pending(client->play.dialogue) == 0) {
        client->requests++;
        memcpy(client->request.bytes, &client->requests, sizeof client->requests);
        ask_cancel(&client->play, &client->request);
    }
    while (hear(&client->play, &heard)) {
    }
    if (world->modes[client->broker] == FOLLOWS) {
        refuse(world, client, client->play.session, ++client->play.sequence_out, &client->request);
    } else if (world->modes[client->broker] == LEADS) {
        Bourse__V1__Accepted accepted = BOURSE__V1__ACCEPTED__INIT;
        accepted.index = 1;
        const struct dialogue_event event =
            say(&client->play, MESSAGE_ACCEPTED, &client->request, &accepted.base);
        ck_assert_int_eq(event.type, DIALOGUE_ACCEPTED);
    }
}

static int64_t due_ns(const struct client *client)
{
    int64_t due = dialogue_next_deadline_ns(client->play.dialogue);
    due = client->connect_ns < due ? client->connect_ns : due;
    due = client->answer_ns < due ? client->answer_ns : due;
    return client->beat_ns < due ? client->beat_ns : due;
}

static void turn(struct world *world, struct client *client)
{
    client->play.now_ns = world->now_ns;
    if (client->connect_ns <= world->now_ns) {
        connect_client(world, client);
    } else if (client->answer_ns <= world->now_ns) {
        greet(world, client);
    } else if (client->beat_ns <= world->now_ns) {
        command(world, client);
    } else {
        struct dialogue_event event;
        dialogue_tick(client->play.dialogue, world->now_ns, &event);
        if (event.type != DIALOGUE_NOTHING) {
            part(client, &event);
        }
    }
}

/* Lets the clients act until `until_ns`. */
static void pass(struct world *world, int64_t until_ns)
{
    for (;;) {
        struct client *next = &world->clients[0];
        int64_t next_ns = FOREVER;
        for (int i = 0; i < CLIENTS; i++) {
            const int64_t due = due_ns(&world->clients[i]);
            if (due < next_ns) {
                next_ns = due;
                next = &world->clients[i];
            }
        }
        if (next_ns >= until_ns) {
            break;
        }
        world->now_ns = next_ns > world->now_ns ? next_ns : world->now_ns;
        turn(world, next);
    }
    world->now_ns = until_ns;
}

static unsigned at_leader(const struct world *world)
{
    unsigned count = 0;
    for (int i = 0; i < CLIENTS; i++) {
        count += dialogue_ready(world->clients[i].play.dialogue) &&
                 world->clients[i].broker == world->leader;
    }
    return count;
}

static void lead(struct world *world, int broker, bool is_named)
{
    world->leader = world->named = broker;
    world->is_named = is_named;
    world->since_ns = world->now_ns;
    for (int i = 0; i < BROKERS; i++) {
        world->modes[i] = i == broker ? LEADS : world->modes[i] == DEAD ? DEAD : FOLLOWS;
    }
}

/* The leader dies, or follows from now on. Another one leads after 0 to 4 s. A broker that was dead
 * is back as a follower. */
static void move_leader(struct world *world)
{
    const int former = world->leader;
    const bool dies = random_below(&world->dice, 2) == 0;
    world->refuses = random_below(&world->dice, 2) == 0;
    for (int i = 0; i < BROKERS; i++) {
        world->modes[i] = FOLLOWS;
    }
    world->modes[former] = dies ? DEAD : FOLLOWS;
    world->leader = -1;
    pass(world, world->now_ns + (int64_t)random_below(&world->dice, 4 * NS_PER_S + 1));
    const int step = 1 + (int)random_below(&world->dice, BROKERS - 1);
    lead(world, (former + step) % BROKERS, random_below(&world->dice, 4) != 0);
}

static struct world *world_create(uint64_t seed)
{
    static const uint8_t key[32] = {5};
    struct world *world = calloc(1, sizeof *world);
    ck_assert_ptr_nonnull(world);
    ck_assert_int_ge(sodium_init(), 0);
    world->dice = random_seeded(seed);
    world->identity = identity_create(key);
    world->now_ns = 10 * NS_PER_S;
    const struct dialogue_config config = {.identity = world->identity,
                                           .role = SESSION_CONSUMER,
                                           .program = "test 1",
                                           .pending_max = PENDING_MAX,
                                           .pending_bytes_max = PENDING_BYTES_MAX,
                                           .addresses = brokers,
                                           .address_count = BROKERS};
    for (int i = 0; i < CLIENTS; i++) {
        world->clients[i] =
            (struct client){.play = {.dialogue = dialogue_create(&config)},
                            .connect_ns = world->now_ns + (int64_t)random_below(
                                                              &world->dice, 5 * (uint64_t)NS_PER_S),
                            .answer_ns = FOREVER,
                            .beat_ns = FOREVER};
    }
    lead(world, 1, true);
    return world;
}

static void world_destroy(struct world **self)
{
    for (int i = 0; i < CLIENTS; i++) {
        dialogue_destroy(&(*self)->clients[i].play.dialogue);
    }
    identity_destroy(&(*self)->identity);
    free(*self);
    *self = NULL;
}

START_TEST(a_leader_that_moves_starts_no_storm)
{
    struct world *world = world_create(property_seed(1) + (uint64_t)_i);
    unsigned most = 0;
    pass(world, world->now_ns + 10 * NS_PER_S);
    ck_assert_uint_eq(at_leader(world), CLIENTS);
    while (world->now_ns < (RUN_S - FOUND_WITHIN_S) * NS_PER_S) {
        move_leader(world);
        pass(world, world->since_ns + FOUND_WITHIN_S * NS_PER_S);
        ck_assert_uint_eq(at_leader(world), CLIENTS);
    }
    for (int s = 0; s < RUN_S + 60; s++) {
        most = world->attempts[s] > most ? world->attempts[s] : most;
    }
    (void)printf("most attempts in a second: %u of %d sessions\n", most, CLIENTS);
    ck_assert_uint_le(most, ATTEMPTS_A_SECOND_MOST);
    world_destroy(&world);
}
END_TEST

SUITE("leaders", NULL, NULL, LOOP(a_leader_that_moves_starts_no_storm, 0, 2))
