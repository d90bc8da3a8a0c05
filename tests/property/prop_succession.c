/* Brokers watch one log, and the rules of succession.h say who tries to lead when.
 *
 * A world has a clock of milliseconds, an obvious log that takes a try only from a broker that has
 * all entries and knows the leader, and brokers that die, stand still, resign and come back. Where
 * nobody misbehaves, nobody tries. When the leader is gone, the broker with the best rank leads
 * soon, and the others do not disturb it. */
#include "base/checked.h"
#include "base/random.h"
#include "broker/storage/etcd/succession.h"
#include "tests/support/property_seed.h"
#include "tests/support/suite.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>

enum {
    BROKERS = 3,
    WORLDS = 300,
    PEACE_MS = 30000,
    TURN_MS = 100,    /* between two reads of a follower, at most */
    DELAY_MS = 60,    /* of an append, or a read, at most */
    PREPARE_MS = 200, /* from the lead to the first entry of a leader that serves */
    LARGE_MS = 20000, /* the same, of a large market */
    /* Silence, all ranks, a turn of reading, and what an append takes. */
    TAKEOVER_MS = SUCCESSION_SILENCE_MS + BROKERS * SUCCESSION_RANK_MS + 2 * TURN_MS + DELAY_MS
};

struct broker {
    bool is_up, leads;
    int64_t next_ms; /* appends, or reads */
    uint64_t read;   /* entries */
    struct succession succession;
};

struct world {
    struct random dice;
    int64_t now_ms;
    uint64_t entries, epoch; /* of the log */
    bool is_resigned, is_starting;
    uint64_t prepare_ms;
    struct broker brokers[BROKERS];
    unsigned tries, refused;
};

static int64_t ns(int64_t ms)
{
    return ms * NS_PER_MS;
}

static int64_t some_ms(struct world *world, uint64_t most)
{
    return 1 + (int64_t)random_below(&world->dice, most);
}

static void begin_to_follow(struct world *world, unsigned number)
{
    struct broker *broker = &world->brokers[number];
    broker->is_up = true;
    broker->leads = false;
    broker->read = world->entries;
    broker->next_ms = world->now_ms + some_ms(world, TURN_MS);
    broker->succession = succession_start(number, world->epoch, ns(world->now_ms));
    succession_entry(&broker->succession, world->is_starting, ns(world->now_ms));
}

static void append(struct world *world, struct broker *broker)
{
    world->entries++;
    world->is_starting = false;
    broker->next_ms = world->now_ms + SUCCESSION_BEAT_MS - DELAY_MS + some_ms(world, DELAY_MS);
}

/* The log decides: whoever lacks an entry, or knows another leader, is refused. */
static void try_to_lead(struct world *world, struct broker *broker)
{
    world->tries++;
    if (broker->read < world->entries || broker->succession.epoch != world->epoch) {
        world->refused++;
        succession_refused(&broker->succession, ns(world->now_ms));
        return;
    }
    world->epoch++;
    world->is_resigned = false;
    world->is_starting = true;
    world->entries++; /* it says that it leads, before it can serve */
    broker->leads = true;
    broker->next_ms = world->now_ms + some_ms(world, world->prepare_ms);
}

static void read_on(struct world *world, struct broker *broker)
{
    broker->next_ms = world->now_ms + some_ms(world, TURN_MS);
    if (broker->read < world->entries) {
        broker->read = world->entries;
        succession_entry(&broker->succession, world->is_starting, ns(world->now_ms));
        return;
    }
    succession_quiet(&broker->succession, world->epoch, world->is_resigned, ns(world->now_ms));
    if (succession_is_due(&broker->succession, ns(world->now_ms))) {
        try_to_lead(world, broker);
    }
}

static void pass(struct world *world, int64_t ms)
{
    for (const int64_t end_ms = world->now_ms + ms; world->now_ms < end_ms; world->now_ms++) {
        for (unsigned i = 0; i < BROKERS; i++) {
            struct broker *broker = &world->brokers[i];
            if (!broker->is_up || world->now_ms < broker->next_ms) {
                continue;
            }
            if (broker->leads) {
                append(world, broker);
            } else {
                read_on(world, broker);
            }
        }
    }
}

static struct world world_of(uint64_t seed)
{
    struct world world = {.dice = random_seeded(seed), .epoch = 1, .prepare_ms = PREPARE_MS};
    for (unsigned i = 0; i < BROKERS; i++) {
        begin_to_follow(&world, i);
    }
    world.brokers[random_below(&world.dice, BROKERS)].leads = true;
    return world;
}

static unsigned leader_of(const struct world *world)
{
    unsigned found = BROKERS;
    for (unsigned i = 0; i < BROKERS; i++) {
        if (world->brokers[i].is_up && world->brokers[i].leads) {
            ck_assert_uint_eq(found, BROKERS); /* one at a time */
            found = i;
        }
    }
    return found;
}

START_TEST(nobody_tries_while_the_leader_lives)
{
    const uint64_t seed = property_seed(20261201);
    for (uint64_t i = 0; i < WORLDS / 10; i++) {
        struct world world = world_of(seed + i);
        pass(&world, PEACE_MS);
        ck_assert_uint_eq(world.tries, 0);
        ck_assert_uint_ge(world.entries, PEACE_MS / SUCCESSION_BEAT_MS);
    }
}
END_TEST

/* The best rank of those that are left leads, at its first try, and nobody deposes it. */
START_TEST(a_leader_that_is_gone_has_one_successor)
{
    const uint64_t seed = property_seed(20261202);
    for (uint64_t i = 0; i < WORLDS; i++) {
        struct world world = world_of(seed + i);
        const bool resigns = random_below(&world.dice, 2) == 0;
        world.prepare_ms = random_below(&world.dice, 2) == 0 ? LARGE_MS : PREPARE_MS;
        pass(&world, 1000 + some_ms(&world, 1000));
        const unsigned former = leader_of(&world);
        const unsigned heir = former == 0 ? 1 : 0;
        world.brokers[former].is_up = false;
        world.is_resigned = resigns;
        pass(&world, resigns ? TAKEOVER_MS - SUCCESSION_SILENCE_MS : TAKEOVER_MS);
        ck_assert_uint_eq(leader_of(&world), heir);
        begin_to_follow(&world, former);
        pass(&world, PEACE_MS);
        ck_assert_uint_eq(leader_of(&world), heir);
        ck_assert_uint_eq(world.tries, 1);
        ck_assert_uint_eq(world.epoch, 2);
    }
}
END_TEST

/* A follower that stood still for any time learns before it tries. */
START_TEST(who_stood_still_disturbs_nobody)
{
    const uint64_t seed = property_seed(20261203);
    for (uint64_t i = 0; i < WORLDS; i++) {
        struct world world = world_of(seed + i);
        pass(&world, 1000);
        const unsigned leader = leader_of(&world);
        struct broker *sleeper = &world.brokers[(leader + 1 + random_below(&world.dice, 2)) % 3];
        sleeper->next_ms = world.now_ms + some_ms(&world, 20000);
        pass(&world, PEACE_MS);
        ck_assert_uint_eq(leader_of(&world), leader);
        ck_assert_uint_eq(world.tries, 0);
    }
}
END_TEST

/* Brokers die and come back at random; while one is up for long enough, one leads. */
START_TEST(there_is_a_leader_again_and_again)
{
    const uint64_t seed = property_seed(20261204);
    unsigned refused = 0;
    for (uint64_t i = 0; i < WORLDS; i++) {
        struct world world = world_of(seed + i);
        for (unsigned round = 0; round < 10; round++) {
            const unsigned number = (unsigned)random_below(&world.dice, BROKERS);
            if (world.brokers[number].is_up) {
                world.is_resigned =
                    world.brokers[number].leads && random_below(&world.dice, 2) == 0;
                world.brokers[number].is_up = false;
            }
            pass(&world, some_ms(&world, 3000));
            begin_to_follow(&world, (unsigned)random_below(&world.dice, BROKERS));
            /* One that was lost before it served is waited for. */
            pass(&world, 2 * (int64_t)TAKEOVER_MS + (world.is_starting ? SUCCESSION_START_MS : 0));
            ck_assert_uint_lt(leader_of(&world), BROKERS);
        }
        refused += world.refused;
    }
    printf("tries that the log refused: %u\n", refused);
}
END_TEST

SUITE("succession", NULL, NULL, TEST(nobody_tries_while_the_leader_lives),
      TEST(a_leader_that_is_gone_has_one_successor), TEST(who_stood_still_disturbs_nobody),
      TEST(there_is_a_leader_again_and_again))
