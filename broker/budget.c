#include "broker/budget.h"

#include "base/checked.h"
#include "exchange/exchange.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Twice the sessions that there can be at a time: numbers rise, so that live ones rarely share a place. Where two do, the
 * newer one begins anew, within what the account has left. */
enum { PLACES = 8192 };

/* What is left: at most a second's worth, and less than nothing after a dear answer. */
struct purse {
    bool is_begun;
    int64_t steps;
    int64_t filled_ns;
    int64_t told_ns; /* when the last refusal was due; 0: never */
};

struct place {
    uint64_t session;
    struct purse purse;
};

struct budget {
    pthread_mutex_t mutex;
    int64_t session_steps, account_steps;
    struct purse strangers;
    struct purse *accounts; /* by number */
    uint32_t account_count;
    struct place sessions[PLACES];
};

struct budget *budget_create(uint32_t steps)
{
    struct budget *budget = calloc(1, sizeof *budget);
    if (budget != NULL && pthread_mutex_init(&budget->mutex, NULL) != 0) {
        free(budget);
        budget = NULL;
    }
    if (budget != NULL) {
        budget->session_steps = steps;
        budget->account_steps = (int64_t)steps * BUDGET_ACCOUNT_SESSIONS;
    }
    return budget;
}

void budget_destroy(struct budget **self)
{
    struct budget *budget = *self;
    if (budget != NULL) {
        (void)pthread_mutex_destroy(&budget->mutex);
        free(budget->accounts);
        free(budget);
        *self = NULL;
    }
}

/* Short of memory, the account shares the strangers' purse for the moment. */
static struct purse *purse_of_account(struct budget *budget, uint32_t account)
{
    if (account == EXCHANGE_NO_ACCOUNT) {
        return &budget->strangers;
    }
    if (account >= budget->account_count) {
        uint32_t count = budget->account_count == 0 ? 64 : budget->account_count;
        while (count <= account) {
            count *= 2;
        }
        struct purse *more = realloc(budget->accounts, count * sizeof *more);
        if (more == NULL) {
            return &budget->strangers;
        }
        memset(more + budget->account_count, 0, (count - budget->account_count) * sizeof *more);
        budget->accounts = more;
        budget->account_count = count;
    }
    return &budget->accounts[account];
}

static struct purse *purse_of_session(struct budget *budget, uint64_t session)
{
    struct place *place = &budget->sessions[session % PLACES];
    if (place->session != session) {
        *place = (struct place){.session = session};
    }
    return &place->purse;
}

static void fill(struct purse *purse, int64_t rate, int64_t now_ns)
{
    if (!purse->is_begun) {
        *purse = (struct purse){.is_begun = true, .steps = rate, .filled_ns = now_ns};
        return;
    }
    const int64_t passed_us = (now_ns - purse->filled_ns) / 1000;
    int128 earned = (int128)passed_us * rate / 1000000;
    if (earned > 0) { /* else the moment stays, so that small waits add up */
        const int128 sum = purse->steps + earned;
        purse->steps = sum < rate ? (int64_t)sum : rate;
        purse->filled_ns = now_ns;
    }
}

static bool tell(struct purse *purse, int64_t now_ns)
{
    const bool is_due = purse->told_ns == 0 || now_ns - purse->told_ns >= NS_PER_S;
    purse->told_ns = is_due ? now_ns : purse->told_ns;
    return is_due;
}

bool budget_allows(struct budget *budget, uint32_t account, uint64_t session, int64_t now_ns,
                   struct budget_refusal *ret_refusal)
{
    (void)pthread_mutex_lock(&budget->mutex);
    struct purse *of_account = purse_of_account(budget, account);
    struct purse *of_session = purse_of_session(budget, session);
    fill(of_account, budget->account_steps, now_ns);
    fill(of_session, budget->session_steps, now_ns);
    const bool is_session = of_session->steps <= 0;
    const struct purse *empty = is_session ? of_session : of_account;
    const int64_t limit = is_session ? budget->session_steps : budget->account_steps;
    const bool allows = empty->steps > 0;
    if (!allows) {
        *ret_refusal = (struct budget_refusal){.is_told = tell(of_session, now_ns),
                                               .field = is_session ? "steps_per_second"
                                                                   : "account_steps_per_second",
                                               .value = limit - empty->steps + 1,
                                               .limit = limit};
    }
    (void)pthread_mutex_unlock(&budget->mutex);
    return allows;
}

void budget_charge(struct budget *budget, uint32_t account, uint64_t session, uint64_t steps,
                   int64_t now_ns)
{
    const int64_t most = INT64_MAX / 4; /* what is left stays far from the ends of its type */
    const int64_t taken = steps < (uint64_t)most ? (int64_t)steps : most;
    (void)pthread_mutex_lock(&budget->mutex);
    struct purse *of_account = purse_of_account(budget, account);
    struct purse *of_session = purse_of_session(budget, session);
    fill(of_account, budget->account_steps, now_ns);
    fill(of_session, budget->session_steps, now_ns);
    of_account->steps = of_account->steps > -most ? of_account->steps - taken : -most;
    of_session->steps = of_session->steps > -most ? of_session->steps - taken : -most;
    (void)pthread_mutex_unlock(&budget->mutex);
}
