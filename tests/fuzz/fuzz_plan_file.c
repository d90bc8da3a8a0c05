/* Plan files: what is taken keeps to its limits, and what is refused says why. */
#include "formats/plan_file.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct plan_file file;
    struct problem problem = {""};
    if (!plan_file_parse((const char *)data, size, "plan.yaml", &file, &problem)) {
        assert(problem.text[0] != '\0');
        return 0;
    }
    assert(file.setting_count <= PLAN_FILE_SETTINGS && file.place_count <= PLAN_FILE_PLACES);
    assert(file.devices.device_count <= DEVICE_LIST_DEVICES);
    assert(!file.is_market || file.devices.part_count == 0);
    assert(file.storage >= 0 && file.deadline_ns >= 0 && file.budget_micro >= -1);
    for (size_t i = 0; i < file.setting_count; i++) {
        assert(strlen(file.settings[i].name) < PLAN_FILE_WORD_SIZE);
        assert(file.settings[i].value[0] != '\0');
    }
    return 0;
}
