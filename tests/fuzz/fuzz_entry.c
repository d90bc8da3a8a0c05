/* Journal entries: what is taken is walked to its end, and written again gives the same bytes. */
#include "broker/storage/entry.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct entry_head head;
    if (!entry_read_head(data, size, &head)) {
        return 0;
    }
    struct entry_command *commands = calloc(head.count, sizeof *commands);
    uint8_t *again = malloc(size);
    assert(commands != NULL && again != NULL);
    size_t position = 0;
    uint32_t count = 0;
    struct entry_command command;
    while (entry_next(data, size, &position, &command)) {
        assert(count < head.count);
        commands[count++] = command;
    }
    assert(count == head.count);
    assert(entry_write(&head, commands, again, size) == size);
    assert(memcmp(again, data, size) == 0);
    free(again);
    free(commands);
    return 0;
}
