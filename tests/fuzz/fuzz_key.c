/* A key file: an identity, or a line that says what is wrong. */
#include "runtime/keyfile.h"

#include "tests/fuzz/as_file.h"

#include <sodium.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (sodium_init() < 0) {
        return 0;
    }
    struct problem problem = {.text = ""};
    struct identity *identity = NULL;
    if (keyfile_load(as_file("some.key", data, size), &identity, &problem)) {
        assert(identity != NULL);
        identity_destroy(&identity);
    } else {
        assert(problem.text[0] != '\0' && identity == NULL);
    }
    return 0;
}
