/* paused, what an agent keeps of its owner's pauses: moments and devices, or a line that says what
 * is wrong. */
#include "provider/pauses.h"

#include "tests/fuzz/as_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct problem problem = {.text = ""};
    static struct pauses pauses;
    pauses = (struct pauses){.until_ms = -1};
    if (pauses_read(as_file("paused", data, size), &pauses, &problem)) {
        assert(pauses.until_ms >= 0 && pauses.count <= PAUSES_DEVICES_MAX);
        assert(pauses.is_whole || pauses.count > 0 || pauses.until_ms == 0);
        for (size_t i = 0; i < pauses.count; i++) {
            assert(pauses.devices[i].until_ms >= 0 && pauses.devices[i].label[0] != '\0');
        }
    } else {
        assert(problem.text[0] != '\0' && pauses.until_ms == -1);
    }
    return 0;
}
