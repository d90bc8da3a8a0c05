/* The target reads any line as figures of GPUs. The figures read keep within their bounds. */
#include "provider/idle/gpu_figures.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct gpu_figures *figures)
{
    const int64_t all[] = {figures->memory_used, figures->memory_total, figures->busy_percent,
                           figures->power_mw,    figures->celsius,      figures->power_limit_mw,
                           figures->energy_mj};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        assert(all[i] >= -1);
    }
    assert(figures->busy_percent <= 100 && figures->celsius <= 1000);
    assert(figures->compute.count <= GPU_PROCESSES_MAX);
    assert(figures->graphics.count <= GPU_PROCESSES_MAX);
    for (size_t i = 0; i < figures->compute.count; i++) {
        assert(figures->compute.is_known && figures->compute.pids[i] > 0);
        assert(figures->compute.memory_bytes[i] >= -1);
    }
    assert(memchr(figures->why, 0, sizeof figures->why) != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct gpu_figures figures[2];
    struct problem problem;
    (void)memcpy(figures[0].id, "0000:3b:00.0", sizeof "0000:3b:00.0");
    (void)memcpy(figures[1].id, "1", sizeof "1");
    (void)gpu_figures_read((const char *)data, size, figures, 2, &problem);
    check(&figures[0]);
    check(&figures[1]);
    return 0;
}
