/* The target reads any lines as answers of a plug-in. What is read keeps within its bounds. */
#include "formats/plugin/plugin_line.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct plugin_description description;
    struct plugin_figures figures;
    struct plugin_result result;
    struct plugin_probe probe;
    struct problem problem;
    const char *line = (const char *)data;
    if (plugin_read_description(line, size, &description, &problem)) {
        assert(description.operation_count >= 1);
        assert(description.operation_count <= PLUGIN_OPERATIONS);
        for (size_t i = 0; i < description.operation_count; i++) {
            assert(plugin_word_is_operation(description.operations[i]));
        }
    }
    if (plugin_read_probe(line, size, &probe, &problem)) {
        assert(probe.fp32 >= 0 && probe.bandwidth >= 0 && probe.gemm_fp32 >= 0);
    }
    if (plugin_read_figures(line, size, &figures, &problem)) {
        assert(figures.utilization <= 1 && figures.power_w >= -1);
    }
    if (plugin_read_result(line, size, &result, &problem)) {
        assert(result.status >= 0 && result.status <= 255);
        assert(memchr(result.text, 0, sizeof result.text) != NULL);
    }
    return 0;
}
