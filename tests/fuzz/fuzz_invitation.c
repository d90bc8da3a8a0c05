/* Invitations: what is read is written again as the same word. */
#include "runtime/invitation.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    assert(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    struct invitation invitation;
    struct problem problem;
    if (invitation_read(text, &invitation, &problem)) {
        char again[INVITATION_TEXT_SIZE];
        bool written = invitation_write(&invitation, again, sizeof again);
        assert(written);
        assert(strcmp(again, text) == 0);
    } else {
        assert(strlen(problem.text) > 0);
    }
    free(text);
    return 0;
}
