/* Lists of devices, and links: what is taken keeps to its limits, and can be linked; what is
 * refused says why. */
#include "formats/device_list.h"
#include "planner/cost/device_set.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool add_parts(struct device_set *set, const struct device_list *list,
                      struct problem *problem)
{
    for (size_t i = 0; i < list->part_count; i++) {
        const struct device_list_part *part = &list->parts[i];
        const struct catalogue_device *known = NULL;
        if (device_set_find(part->name, &known, problem) != DEVICE_SET_OK) {
            return false;
        }
        for (uint32_t k = 0; k < part->count; k++) {
            if (device_set_add(set, part->host, known, NULL, NULL, strcmp(known->kind, "cpu") == 0,
                               part->price_micro, problem) != DEVICE_SET_OK) {
                return false;
            }
        }
    }
    return true;
}

static void check_list(const char *text)
{
    struct device_list list = {.part_count = 0};
    struct problem problem = {""};
    if (!device_list_add(&list, text, &problem)) {
        assert(problem.text[0] != '\0');
        assert(list.part_count == 0);
        return;
    }
    assert(list.part_count >= 1 && list.part_count <= DEVICE_LIST_PARTS);
    assert(list.device_count >= list.part_count && list.device_count <= DEVICE_LIST_DEVICES);
    assert(list.parts[list.part_count - 1].host == list.host_count - 1);
    struct device_set *set = device_set_create();
    const struct device_set_links links = device_set_defaults();
    if (set != NULL && !add_parts(set, &list, &problem)) {
        assert(problem.text[0] != '\0');
    } else if (set != NULL) {
        enum device_set_status status = device_set_link(set, &links, &problem);
        assert(status == DEVICE_SET_OK || status == DEVICE_SET_NO_MEMORY);
    }
    device_set_destroy(&set);
}

static void check_link(const char *text)
{
    struct device_link link = {.latency_ns = 1};
    struct problem problem = {""};
    if (device_link_read(text, &link, &problem)) {
        assert(link.is_none ? link.bandwidth == 0 : link.bandwidth > 0);
        assert(link.latency_ns >= 0);
    } else {
        assert(problem.text[0] != '\0');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (text == NULL) {
        return 0;
    }
    if (size > 0) {
        memcpy(text, data, size);
    }
    text[size] = '\0';
    check_list(text);
    check_link(text);
    free(text);
    return 0;
}
