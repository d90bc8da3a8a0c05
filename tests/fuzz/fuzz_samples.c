/* Samples of a device, as `--samples` reads them: rows that the planner takes, or a line that
 * says what is wrong. */
#include "consumer/command/plan/samples.h"
#include "planner/cost/catalogue.h"

#include "tests/fuzz/as_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct samples samples;
    static struct history history;
    struct problem problem = {.text = ""};
    if (!samples_read(as_file("samples.txt", data, size), &samples, &problem)) {
        assert(problem.text[0] != '\0');
        return 0;
    }
    assert(samples.count > 0 && samples.count <= SAMPLES_MOST);
    const struct device_profile *profile = &catalogue_at(0)->profile;
    for (int class = 0; class < OPERATION_CLASSES; class ++) {
        struct cost_calibration calibration;
        if (!samples_calibrate(&samples, profile, (enum operation_class) class, &calibration,
                               &problem)) {
            assert(problem.text[0] != '\0');
        }
    }
    samples_remember(&samples, profile, &samples.rows[0].operation, &history);
    return 0;
}
