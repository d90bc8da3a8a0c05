/* The target reads any bytes as the listing of a folder. What is read makes the same bytes. */
#include "formats/staging/staged_link.h"
#include "formats/staging/work_tree.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct again {
    struct writer out;
    uint32_t count;
};

static bool write_again(void *context, const struct work_tree_entry *entry,
                        struct problem *ret_problem)
{
    struct again *again = context;
    (void)ret_problem;
    assert(entry->kind != WORK_TREE_LINK ||
           staged_link_problem(entry->name, entry->target) == NULL);
    again->count++;
    work_tree_write(&again->out, entry);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct problem problem;
    uint8_t *bytes = malloc(size + 64);
    struct again again = {.out = writer_over(bytes, size + 64)};
    if (bytes == NULL) {
        return 0;
    }
    work_tree_write_head(&again.out, 0);
    if (work_tree_read(data, size, write_again, &again, &problem)) {
        struct writer head = writer_over(bytes, size);
        work_tree_write_head(&head, again.count);
        assert(!again.out.failed && again.out.position == size && memcmp(bytes, data, size) == 0);
    }
    free(bytes);
    return 0;
}
