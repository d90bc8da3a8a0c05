/* The list of processes that `bourse up --detach` leaves: no more than there may be, and none
 * that is not there. */
#include "consumer/command/local/child.h"

#include "tests/fuzz/as_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct problem problem = {.text = ""};
    struct child children[CHILDREN_MAX];
    size_t count = CHILDREN_MAX + 1;
    (void)as_file(CHILDREN_FILE, data, size);
    if (!child_list_read(as_file_folder(), children, &count, &problem)) {
        assert(problem.text[0] != '\0');
    }
    assert(count <= CHILDREN_MAX);
    for (size_t i = 0; i < count; i++) {
        child_close(&children[i]);
    }
    return 0;
}
