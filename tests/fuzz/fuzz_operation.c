/* Operations as text: what is taken is written as a text that reads back as the same, and can be
 * estimated. */
#include "planner/cost/catalogue.h"
#include "planner/cost/cost.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct operation operation;
    struct operation again;
    struct operation_size needed;
    struct operation_size same;
    struct problem problem = {""};
    char written[OPERATION_TEXT_SIZE];
    char second[OPERATION_TEXT_SIZE];
    char *text = malloc(size + 1);
    if (text == NULL) {
        return 0;
    }
    if (size > 0) {
        memcpy(text, data, size);
    }
    text[size] = '\0';
    enum operation_status status = operation_parse(text, &operation, &problem);
    free(text);
    if (status != OPERATION_OK) {
        assert(problem.text[0] != '\0');
        return 0;
    }
    operation_write(&operation, written);
    status = operation_parse(written, &again, NULL);
    assert(status == OPERATION_OK);
    operation_write(&again, second);
    assert(strcmp(written, second) == 0);
    status = operation_measure(&operation, &needed, NULL);
    assert(status == OPERATION_OK);
    status = operation_measure(&again, &same, NULL);
    assert(status == OPERATION_OK);
    assert(needed.flops == same.flops && needed.resident_bytes == same.resident_bytes);
    for (size_t i = 0; i < catalogue_count(); i += 7) {
        struct cost cost;
        if (cost_estimate(&catalogue_at(i)->profile, &operation, &cost) == COST_OK) {
            assert(cost.time_s.value >= 0);
        }
    }
    return 0;
}
