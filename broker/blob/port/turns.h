/* broker/blob/port/turns.h says which account's message the blob port answers next.
 *
 * There are no sessions on the blob port, and an account may have any number of connections. So
 * messages wait in a queue for each account, and the account with the least steps charged comes
 * first. Each account that asks gets the same share of the thread, and an account alone gets all
 * of it, up to the pace that turns_pace sets. An account that did not ask for a while has saved
 * nothing, and owes nothing once the others have had as much. This is start-time fair queueing
 * (Goyal, Vin, Cheng 1996). Time is an argument. */
#ifndef BOURSE_BROKER_BLOB_PORT_TURNS_H
#define BOURSE_BROKER_BLOB_PORT_TURNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TURNS_ACCOUNTS = 256,         /* whose messages wait, or who owe steps */
    TURNS_EACH = 2048,            /* messages of one account */
    TURNS_EACH_BYTES = 128 << 20, /* and their bytes, if there are several */
    TURNS_BYTES = 512 << 20,      /* of all; beyond, an account may have TURNS_ASSURED_BYTES */
    TURNS_ASSURED_BYTES = 16 << 20,
    TURNS_LATELY_MS = 250,
    TURNS_SAVED_MS = 16, /* the most time that an account saves up */
};

struct turn { /* a part of the caller's message */
    struct turn *next;
    uint32_t account;
    size_t bytes;
};

struct turns_queue {
    bool is_used;
    uint32_t account;
    uint32_t count;
    size_t bytes;
    struct turn *first, *last;
    uint64_t steps;   /* the account's place among the others: steps charged, less those forgiven */
    uint64_t lately;  /* steps charged lately; half is forgotten each TURNS_LATELY_MS */
    int64_t asked_ns; /* when the account's last message came */
    int64_t not_before_ns;
    int64_t paced_ns; /* until then the account has spent its time */
};

struct turns { /* all zeros: nobody waits */
    struct turns_queue queues[TURNS_ACCOUNTS];
    uint64_t reached; /* the steps of whoever was served last */
    size_t count, bytes;
    int64_t halved_ns; /* when half of what was charged lately was forgotten */
};

/* Takes the message, behind the others of its account. Returns false when too many or too large
 * messages wait; the message then stays the caller's. */
bool turns_put(struct turns *turns, struct turn *turn, uint32_t account, size_t bytes,
               int64_t now_ns);
/* Returns the next message, which stays in its queue. Returns NULL when none waits, or when all
 * that wait are put off. */
struct turn *turns_first(struct turns *turns, int64_t now_ns);
/* Gives out a message that is the first of its account. */
void turns_take(struct turns *turns, struct turn *turn);
/* Gives out any message, or returns NULL when none waits. */
struct turn *turns_take_any(struct turns *turns);
/* Charges the account for the steps that its answer took. */
void turns_charge(struct turns *turns, uint32_t account, uint64_t steps, int64_t now_ns);
/* Returns true when the account has lately cost more than twice what any other account has. */
bool turns_has_cost_most(const struct turns *turns, uint32_t account);
/* No message of the account is the next before `until_ns`. */
void turns_put_off(struct turns *turns, uint32_t account, int64_t until_ns);
/* Puts the account off until `until_ns`, if the account has lately cost most and another one has
 * asked since `since_ns`. So the others have the broker's threads for themselves for a while. */
void turns_leave_time(struct turns *turns, uint32_t account, int64_t since_ns, int64_t until_ns);
/* Spends `spent_ns` of the account's time. Time goes by at the clock's pace, and a little of it can
 * be saved. An account that has spent more is put off until it has its time again. */
void turns_pace(struct turns *turns, uint32_t account, int64_t spent_ns, int64_t now_ns);
/* Returns the bytes of the account's waiting messages. */
size_t turns_bytes(const struct turns *turns, uint32_t account);
/* Returns true when another account has asked for something since `since_ns`, or waits. */
bool turns_are_contended(const struct turns *turns, uint32_t account, int64_t since_ns);

#endif
