#include "broker/gateway/budget.h"

#include "base/checked.h"
#include "exchange/exchange.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* PLACES is twice the number of sessions at a time. Numbers rise, so live sessions rarely share a
 * place. If two do, the newer one begins anew, within what the account has left. */
enum { PLACES = 8192, KINDS = 2 };

/* `steps` is what is left: at most the saved steps, and negative after a dear answer. */
struct purse {
    bool is_begun;
    int64_t steps;
    int64_t filled_ns;
};

/* A payer is a session or an account. */
struct payer {
    struct purse purses[KINDS];
    uint32_t waiting; /* waiting reads */
    int64_t told_ns;  /* when the last refusal was due; 0: never */
};

struct place {
    uint64_t session;
    struct payer payer;
};

struct budget {
    pthread_mutex_t mutex;
    int64_t session_steps[KINDS], account_steps[KINDS];
    struct payer strangers;
    struct payer *accounts; /* by number */
    uint32_t account_count;
    struct place sessions[PLACES];
};

static void set_steps(struct budget *budget, uint32_t steps)
{
    budget->session_steps[BUDGET_READS] = steps;
    budget->account_steps[BUDGET_READS] = (int64_t)steps * BUDGET_READS_SESSIONS;
    budget->session_steps[BUDGET_COMMANDS] = (int64_t)steps * BUDGET_COMMANDS_RATE;
    budget->account_steps[BUDGET_COMMANDS] = budget->session_steps[BUDGET_COMMANDS];
}

struct budget *budget_create(uint32_t steps)
{
    struct budget *budget = calloc(1, sizeof *budget);
    if (budget != NULL && pthread_mutex_init(&budget->mutex, NULL) != 0) {
        free(budget);
        budget = NULL;
    }
    if (budget != NULL) {
        set_steps(budget, steps);
    }
    return budget;
}

void budget_set_steps(struct budget *budget, uint32_t steps)
{
    (void)pthread_mutex_lock(&budget->mutex);
    set_steps(budget, steps);
    (void)pthread_mutex_unlock(&budget->mutex);
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

/* ---------------------------------------------------------------- payers */

/* Returns the payer of an account. The account shares with the strangers while memory is short. */
static struct payer *account_of(struct budget *budget, uint32_t account)
{
    if (account == EXCHANGE_NO_ACCOUNT) {
        return &budget->strangers;
    }
    if (account >= budget->account_count) {
        uint32_t count = budget->account_count == 0 ? 64 : budget->account_count;
        while (count <= account) {
            count *= 2;
        }
        struct payer *more = realloc(budget->accounts, count * sizeof *more);
        if (more == NULL) {
            return &budget->strangers;
        }
        memset(more + budget->account_count, 0, (count - budget->account_count) * sizeof *more);
        budget->accounts = more;
        budget->account_count = count;
    }
    return &budget->accounts[account];
}

static struct payer *session_of(struct budget *budget, uint64_t session)
{
    struct place *place = &budget->sessions[session % PLACES];
    if (place->session != session) {
        *place = (struct place){.session = session};
    }
    return &place->payer;
}

static int64_t fill(struct payer *payer, enum budget_kind kind, int64_t rate, int64_t now_ns)
{
    struct purse *purse = &payer->purses[kind];
    const int64_t saved = rate * BUDGET_SAVED_MS / 1000;
    const int64_t most = saved > 0 ? saved : 1;
    if (!purse->is_begun) {
        *purse = (struct purse){.is_begun = true, .steps = most, .filled_ns = now_ns};
        return most;
    }
    const int64_t passed_us = (now_ns - purse->filled_ns) / 1000;
    const int128 earned = (int128)passed_us * rate / 1000000;
    if (earned > 0) { /* without this test, small waits would not add up */
        const int128 sum = purse->steps + earned;
        purse->steps = sum < most ? (int64_t)sum : most;
        purse->filled_ns = now_ns;
    }
    return purse->steps;
}

/* The payers are the session and the account that pay now. */
struct payers {
    struct payer *session, *account;
    int64_t session_steps, account_steps;
};

static struct payers payers_of(struct budget *budget, const struct budget_asker *asker,
                               int64_t now_ns)
{
    struct payers payers = {.account = account_of(budget, asker->account),
                            .session = session_of(budget, asker->session)};
    payers.session_steps =
        fill(payers.session, asker->kind, budget->session_steps[asker->kind], now_ns);
    payers.account_steps =
        fill(payers.account, asker->kind, budget->account_steps[asker->kind], now_ns);
    return payers;
}

static bool can_pay(const struct payers *payers)
{
    return payers->session_steps > 0 && payers->account_steps > 0;
}

static bool may_wait(const struct payers *payers)
{
    return payers->session->waiting < BUDGET_WAITING &&
           payers->account->waiting < BUDGET_WAITING_ACCOUNT;
}

static struct budget_refusal refuse(const struct budget *budget, const struct payers *payers,
                                    enum budget_kind kind, int64_t now_ns)
{
    const bool is_session = payers->session_steps <= 0;
    const int64_t limit = is_session ? budget->session_steps[kind] : budget->account_steps[kind];
    const int64_t left = is_session ? payers->session_steps : payers->account_steps;
    int64_t *told_ns = &payers->session->told_ns;
    const bool is_told = *told_ns == 0 || now_ns - *told_ns >= NS_PER_S;
    *told_ns = is_told ? now_ns : *told_ns;
    return (struct budget_refusal){.is_told = is_told,
                                   .field =
                                       is_session ? "steps_per_second" : "account_steps_per_second",
                                   .value = limit - left + 1,
                                   .limit = limit};
}

static void count_waiting(const struct payers *payers, int change)
{
    struct payer *both[] = {payers->session, payers->account};
    for (size_t i = 0; i < 2; i++) {
        if (change > 0) {
            both[i]->waiting++;
        } else if (both[i]->waiting > 0) { /* 0 when another session took the place */
            both[i]->waiting--;
        }
    }
}

/* ---------------------------------------------------------------- decisions */

bool budget_admits(struct budget *budget, const struct budget_asker *asker, int64_t now_ns)
{
    (void)pthread_mutex_lock(&budget->mutex);
    const struct payers payers = payers_of(budget, asker, now_ns);
    const bool admits = can_pay(&payers) || (asker->kind == BUDGET_READS && may_wait(&payers));
    (void)pthread_mutex_unlock(&budget->mutex);
    return admits;
}

struct budget_refusal budget_refuse(struct budget *budget, const struct budget_asker *asker,
                                    int64_t now_ns)
{
    (void)pthread_mutex_lock(&budget->mutex);
    const struct payers payers = payers_of(budget, asker, now_ns);
    const struct budget_refusal refusal = refuse(budget, &payers, asker->kind, now_ns);
    (void)pthread_mutex_unlock(&budget->mutex);
    return refusal;
}

enum budget_answer budget_allows(struct budget *budget, const struct budget_asker *asker,
                                 int64_t now_ns, struct budget_refusal *ret_refusal)
{
    assert(asker->kind == BUDGET_READS);
    (void)pthread_mutex_lock(&budget->mutex);
    const struct payers payers = payers_of(budget, asker, now_ns);
    enum budget_answer answer = BUDGET_NOW;
    if (!can_pay(&payers)) {
        answer = may_wait(&payers) ? BUDGET_LATER : BUDGET_REFUSED;
    }
    if (answer == BUDGET_LATER) {
        count_waiting(&payers, 1);
    } else if (answer == BUDGET_REFUSED) {
        *ret_refusal = refuse(budget, &payers, asker->kind, now_ns);
    }
    (void)pthread_mutex_unlock(&budget->mutex);
    return answer;
}

bool budget_resumes(struct budget *budget, const struct budget_asker *asker, int64_t now_ns)
{
    (void)pthread_mutex_lock(&budget->mutex);
    const struct payers payers = payers_of(budget, asker, now_ns);
    const bool resumes = can_pay(&payers);
    if (resumes) {
        count_waiting(&payers, -1);
    }
    (void)pthread_mutex_unlock(&budget->mutex);
    return resumes;
}

void budget_forgets(struct budget *budget, const struct budget_asker *asker)
{
    (void)pthread_mutex_lock(&budget->mutex);
    const struct payers payers = {.account = account_of(budget, asker->account),
                                  .session = session_of(budget, asker->session)};
    count_waiting(&payers, -1);
    (void)pthread_mutex_unlock(&budget->mutex);
}

void budget_charge(struct budget *budget, const struct budget_asker *asker, int64_t steps,
                   int64_t now_ns)
{
    const int64_t most = INT64_MAX / 4; /* keeps `steps` far from the ends of its type */
    const int64_t taken = steps < most ? steps : most;
    (void)pthread_mutex_lock(&budget->mutex);
    const struct payers payers = payers_of(budget, asker, now_ns);
    struct payer *both[] = {payers.session, payers.account};
    for (size_t i = 0; i < 2; i++) {
        int64_t *left = &both[i]->purses[asker->kind].steps;
        *left = *left > -most ? *left - taken : -most;
    }
    (void)pthread_mutex_unlock(&budget->mutex);
}
