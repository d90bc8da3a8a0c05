/* broker/challenge/challenges.h challenges the speeds that agents claim for their devices.
 *
 * An agent says that it is ready (ChallengeReady), and its message waits. When a device of its
 * account is due, is on offer and is idle, the answer is a challenge: products of matrices that
 * follow from a seed. The agent's next ChallengeReady brings the digests of their rows. First comes
 * a challenge of the smallest size, which shows how long the way there and back takes, and then the
 * one that counts. So an agent of an older version is never challenged, and its devices stay
 * claimed.
 *
 *     waiting -> WAY sent -> answered -> WORK sent -> answered: in time, slow or wrong -> waiting
 *                                                  -> no answer: unanswered -> waiting
 *
 * What cannot be judged counts for nothing: the agent's connection was lost, or the device was let
 * meanwhile. Only the core's thread calls these functions. Time and dice are arguments. Nothing of
 * a challenge enters the log: the broker refuses an ask before it is sequenced. */
#ifndef BOURSE_BROKER_CHALLENGE_CHALLENGES_H
#define BOURSE_BROKER_CHALLENGE_CHALLENGES_H

#include "broker/challenge/challenge_facts.h"
#include "broker/core/outgoing.h"
#include "broker/core/request.h"
#include "exchange/exchange.h"

enum { CHALLENGES_AGENTS = 4096 }; /* agents that can be challenged at a time */
/* Two challenges of a market begin at least so long after one another. */
#define CHALLENGES_APART_NS (200 * NS_PER_MS)

struct challenges;

struct challenges_config {
    int64_t every_ns;     /* of one device, on average; 0: none is challenged */
    int64_t heartbeat_ns; /* silence of a connection shows after three of these */
};

struct challenges_now {
    int64_t monotonic_ns; /* for durations */
    int64_t log_ns;       /* for dates */
    struct hash32 dice;   /* 32 random bytes that nobody else has seen */
};

/* Returns NULL when memory is short. */
struct challenges *challenges_create(const struct challenges_config *config);
void challenges_destroy(struct challenges **self);
/* Returns what is known, borrowed. */
struct challenge_facts *challenges_facts(struct challenges *challenges);
/* Returns true once after the facts have changed. *ret_is_urgent: a device may not keep its ask. */
bool challenges_changed(struct challenges *challenges, bool *ret_is_urgent);

/* Takes a ChallengeReady. Returns the answer, or NULL when challenges_next makes it later. An
 * account has one waiting message. A second one replaces the first, and *ret_former (else NULL)
 * answers the first. */
struct outgoing *challenges_ready(struct challenges *challenges, const struct exchange *exchange,
                                  const struct request *request, const struct challenges_now *now,
                                  struct outgoing **ret_former);
/* The session is over, or the account was silent: what is under way counts for nothing. */
void challenges_forget(struct challenges *challenges, uint64_t session);
void challenges_silent(struct challenges *challenges, uint32_t account);

/* Returns the time of the next work for challenges_next, or INT64_MAX when it has none. */
int64_t challenges_due_ns(const struct challenges *challenges);
/* Returns the next message that is due, or NULL when there is none: a challenge, or a note to the
 * gateway that an account may not keep its asks (OUTGOING_DOUBT). */
struct outgoing *challenges_next(struct challenges *challenges, const struct exchange *exchange,
                                 const struct challenges_now *now);

/* Returns the refusal of an AskPlace for a device that may not be offered as it is advertised, or
 * NULL. Every other request is admitted. */
struct outgoing *challenges_refuse(struct challenges *challenges, const struct exchange *exchange,
                                   const struct request *request, int64_t log_ns);

#endif
