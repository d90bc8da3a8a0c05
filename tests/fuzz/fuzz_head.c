/* HEAD: whatever stands there is one of four answers; what was read is written and read again. */
#include "broker/storage/head.h"

#include "tests/fuzz/as_file.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct head head;
    struct head again;
    struct problem problem;
    if (head_read(as_file("HEAD", data, size), &head, &problem) != HEAD_OK) {
        return 0;
    }
    struct head_file *file = NULL;
    assert(head_open(as_file_path_now, &file, &again, &problem) == HEAD_OK);
    assert(again.index == head.index && again.tree_size == head.tree_size);
    assert(head_write(file, &head) == HEAD_OK);
    head_close(&file);
    assert(head_read(as_file_path_now, &again, &problem) == HEAD_OK);
    assert(again.index == head.index && again.tree_size == head.tree_size);
    assert(hash32_equal(&again.chain, &head.chain));
    return 0;
}
