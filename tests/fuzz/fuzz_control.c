/* The owner's line to the agent. What is taken is within its range, and written again it is the
 * same request. */
#include "provider/control.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct control_request request = {.command = CONTROL_DRAIN, .for_ms = -1};
    struct problem problem = {.text = ""};
    if (!control_request_read((const char *)data, size, &request, &problem)) {
        assert(problem.text[0] != '\0');
        assert(request.command == CONTROL_DRAIN);
        assert(request.for_ms == -1);
        return 0;
    }
    assert(size <= CONTROL_LINE_MAX);
    assert(request.for_ms >= 0);
    assert(request.for_ms <= CONTROL_PAUSE_LONGEST_MS);
    assert(request.command == CONTROL_PAUSE || (!request.now && request.for_ms == 0));

    char line[CONTROL_LINE_MAX];
    struct control_request again = {.command = CONTROL_STATUS};
    bool fits = control_request_write(&request, line, sizeof line);
    assert(fits);
    bool taken = control_request_read(line, strlen(line) - 1, &again, &problem);
    assert(taken);
    assert(again.command == request.command);
    assert(again.now == request.now);
    assert(again.for_ms == request.for_ms);
    return 0;
}
