/* tests/programs/market_client.h has what the client that remembers shares with its judge. */
#ifndef BOURSE_TESTS_MARKET_CLIENT_H
#define BOURSE_TESTS_MARKET_CLIENT_H

#include "consumer/client/client.h"
#include "tests/programs/record.h"

enum { SUBTASKS_MAX = 5 };    /* of a job of the client's */
enum { PATIENCE_MS = 60000 }; /* for which the judge waits */

/* A job of the record at which the client or the judge looks. */
struct looking {
    struct record *record;
    size_t job;
};

/* Says what is wrong with the market, and ends the program with status 1. */
__attribute__((format(printf, 1, 2), noreturn)) void wrong(const char *format, ...);
/* Returns a session of that key, which the caller closes. */
struct bourse *connect_to(const char *market, const char *key, int timeout_ms);
/* Sends the mint under the id that the record has for it. */
bool mint_as(struct bourse *bourse, const struct record_mint *mint, int64_t amount_micro,
             struct bourse_error *error);
/* Ends the program unless the attempt is still what it was shown as. */
void must_agree(const struct record_shown *before, const struct bourse_outcome *now,
                const char *id);
/* Ends the program unless the subtask, which was shown as accepted, printed what its job prints. */
void must_print(struct bourse *bourse, const struct record_job *job, uint32_t index);

/* `market-client check` with the words behind it: MARKET KEY final|now RECORD... Returns the exit
 * status. */
int market_judge(char **words, int count);

#endif
