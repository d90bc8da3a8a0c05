/* The text of what challenges found; the file is the broker's own, and may be damaged. */
#include "broker/challenge/challenge_facts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct challenge_facts *facts = challenge_facts_create();
    struct challenge_facts *again = challenge_facts_create();
    char *text = malloc(size + 1);
    if (facts != NULL && again != NULL && text != NULL) {
        memcpy(text, data, size);
        text[size] = '\0';
        if (challenge_facts_read(facts, text)) {
            char *first = challenge_facts_text(facts);
            assert(first != NULL);
            assert(challenge_facts_read(again, first));
            char *second = challenge_facts_text(again);
            assert(second != NULL);
            assert(strcmp(first, second) == 0);
            free(first);
            free(second);
        }
    }
    free(text);
    challenge_facts_destroy(&facts);
    challenge_facts_destroy(&again);
    return 0;
}
