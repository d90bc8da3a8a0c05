/* epoch.secret, what a broker keeps of its epoch: what is taken is written as it was read. */
#include "broker/storage/epoch.h"

#include "tests/fuzz/as_file.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct problem problem = {.text = ""};
    struct epoch_secrets secrets;
    struct epoch_secrets again;
    if (epoch_load(as_file("epoch.secret", data, size), &secrets, &problem) != EPOCH_LOADED) {
        assert(problem.text[0] != '\0');
        return 0;
    }
    assert(epoch_store(as_file_path_now, &secrets, &problem));
    assert(epoch_load(as_file_path_now, &again, &problem) == EPOCH_LOADED);
    assert(memcmp(&again, &secrets, sizeof secrets) == 0);
    return 0;
}
