/* profile.json, what an agent keeps of its measurements: figures to settle with, or none. */
#include "provider/device/probe.h"

#include "tests/fuzz/as_file.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct probe_figure *kept)
{
    static const int64_t moments_s[] = {0, 1, 1800000000};
    char day[PROBE_DAY_SIZE];
    assert(kept->value >= 0 && kept->at_s >= 0);
    probe_day(kept->at_s, day);
    for (size_t i = 0; i < sizeof moments_s / sizeof moments_s[0]; i++) {
        const struct probe_figure settled = probe_settle(kept, 12000, moments_s[i]);
        assert(settled.value > 0 && settled.latest == 12000);
        (void)probe_doubtful(&settled);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct profile profile = probe_read(as_file("profile.json", data, size), "model");
    assert(memchr(profile.engine, 0, sizeof profile.engine) != NULL);
    check(&profile.mflops);
    check(&profile.bandwidth_bytes);
    check(&profile.gemm_mflops);
    return 0;
}
