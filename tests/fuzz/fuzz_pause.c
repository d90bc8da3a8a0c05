/* paused, what an agent keeps of its owner's pause: a moment, or a line that says what is wrong. */
#include "provider/owner.h"

#include "tests/fuzz/as_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct problem problem = {.text = ""};
    int64_t until_ms = -1;
    if (owner_read_pause(as_file("paused", data, size), &until_ms, &problem)) {
        assert(until_ms >= 0);
    } else {
        assert(problem.text[0] != '\0' && until_ms == -1);
    }
    return 0;
}
