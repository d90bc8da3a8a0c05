/* The header holds every lifecycle of the exchange. Each is one enum, one table of moves, and one
 * function that makes a move and asserts that it is allowed. Job states are the protocol's (enum
 * job_state: 0 open, 1 done, 2 failed, 3 cancelled); the states here stay inside the exchange. */
#ifndef BOURSE_EXCHANGE_LIFECYCLE_H
#define BOURSE_EXCHANGE_LIFECYCLE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

/* The enum repeats the protocol's numbers because cores do not include one another; a unit test
 * compares them. */
enum job_phase { JOB_PHASE_OPEN, JOB_PHASE_DONE, JOB_PHASE_FAILED, JOB_PHASE_CANCELLED };

enum subtask_state {
    SUBTASK_WAITING,
    SUBTASK_RUNNING,
    SUBTASK_CHECKING, /* a result is held until a referee has judged it */
    SUBTASK_ACCEPTED, /* final, like the states after it */
    SUBTASK_FAILED,
    SUBTASK_CANCELLED
};
/* exchange_subtasks reports SUBTASK_QUEUED for a RUNNING subtask that is behind another one in its
 * lane. */
enum { SUBTASK_QUEUED = SUBTASK_CANCELLED + 1 };

static inline void subtask_move(uint8_t *state, enum subtask_state to)
{
    static const uint8_t moves[] = {
        [SUBTASK_WAITING] = 1 << SUBTASK_RUNNING | 1 << SUBTASK_CHECKING | 1 << SUBTASK_ACCEPTED |
                            1 << SUBTASK_FAILED | 1 << SUBTASK_CANCELLED,
        [SUBTASK_RUNNING] = 1 << SUBTASK_WAITING | 1 << SUBTASK_CHECKING | 1 << SUBTASK_ACCEPTED |
                            1 << SUBTASK_FAILED | 1 << SUBTASK_CANCELLED,
        [SUBTASK_CHECKING] = 1 << SUBTASK_WAITING | 1 << SUBTASK_ACCEPTED | 1 << SUBTASK_FAILED,
        [SUBTASK_ACCEPTED] = 0,
        [SUBTASK_FAILED] = 0,
        [SUBTASK_CANCELLED] = 0,
    };
    assert(moves[*state] >> to & 1);
    *state = (uint8_t)to;
}

enum lease_state {
    LEASE_ACTIVE,
    LEASE_SUSPECT,
    LEASE_ENDING,
    LEASE_ENDED,
    LEASE_PROMISED, /* takes the place of another lease, and begins when that ends */
};

static inline void lease_move(uint8_t *state, enum lease_state to)
{
    static const uint8_t moves[] = {
        [LEASE_ACTIVE] = 1 << LEASE_SUSPECT | 1 << LEASE_ENDING | 1 << LEASE_ENDED,
        [LEASE_SUSPECT] = 1 << LEASE_ACTIVE | 1 << LEASE_ENDING | 1 << LEASE_ENDED,
        [LEASE_ENDING] = 1 << LEASE_ENDED,
        [LEASE_ENDED] = 0,
        [LEASE_PROMISED] = 1 << LEASE_ACTIVE | 1 << LEASE_ENDED,
    };
    assert(moves[*state] >> to & 1);
    *state = (uint8_t)to;
}

enum provider_state { PROVIDER_AWAY, PROVIDER_PRESENT, PROVIDER_SUSPECT };

static inline void provider_move(uint8_t *state, enum provider_state to)
{
    static const uint8_t moves[] = {
        [PROVIDER_AWAY] = 1 << PROVIDER_PRESENT,
        [PROVIDER_PRESENT] = 1 << PROVIDER_PRESENT | 1 << PROVIDER_SUSPECT | 1 << PROVIDER_AWAY,
        [PROVIDER_SUSPECT] = 1 << PROVIDER_PRESENT | 1 << PROVIDER_AWAY,
    };
    assert(moves[*state] >> to & 1);
    *state = (uint8_t)to;
}

#endif
