#include "provider/device/expected.h"

#include "formats/units.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { WORDS_MOST = 3 };

/* Words of the names by which drivers know the devices of the catalogue. A name has all of them, as
 * words of their own. */
static const struct {
    const char *id;
    const char *words[WORDS_MOST]; /* in lower case */
} models[] = {
    {"nvidia-v100-sxm2-32", {"v100", "sxm2", "32gb"}},
    {"nvidia-a100-sxm4-40", {"a100", "sxm4", "40gb"}},
    {"nvidia-a100-sxm4-80", {"a100", "sxm4", "80gb"}},
    {"nvidia-l40s", {"l40s"}},
    {"nvidia-l4", {"l4"}},
    {"nvidia-h100-pcie", {"h100", "pcie"}},
    {"nvidia-h100-sxm5", {"h100", "80gb", "hbm3"}},
    {"nvidia-h200-sxm", {"h200"}},
    {"nvidia-b200-hgx", {"b200"}},
    {"nvidia-rtx3090", {"rtx", "3090"}},
    {"nvidia-rtx4090", {"rtx", "4090"}},
    {"amd-mi300x", {"mi300x"}},
    {"intel-max1550", {"max", "1550"}},
};

/* Returns true when the name has this word, whatever its case. */
static bool has_word(const char *name, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = name; *at != '\0';) {
        size_t size = 0;
        while (isalnum((unsigned char)at[size])) {
            size++;
        }
        bool is_equal = size == length;
        for (size_t i = 0; is_equal && i < length; i++) {
            is_equal = tolower((unsigned char)at[i]) == word[i];
        }
        if (is_equal) {
            return true;
        }
        at += size + (at[size] != '\0' ? 1 : 0);
    }
    return false;
}

const struct catalogue_device *expected_row(const struct kernel_device *device)
{
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        bool has_all = true;
        for (size_t k = 0; k < WORDS_MOST && models[i].words[k] != NULL; k++) {
            has_all = has_all && has_word(device->name, models[i].words[k]);
        }
        if (has_all) {
            return catalogue_find(models[i].id);
        }
    }
    return NULL;
}

/* Adds "FIGURE MEASURED instead of DECLARED (N %)" when the figure is far below. The catalogue
 * declares `trips` times what is measured at best. */
static void compare(const struct catalogue_device *row, enum profile_figure which, const char *name,
                    enum units_kind kind, double measured, int trips, char *text, size_t capacity)
{
    const struct figure *declared = &row->profile.figures[which];
    const double reachable = declared->value / trips;
    char have[UNITS_TEXT_SIZE];
    char wanted[UNITS_TEXT_SIZE];
    const size_t used = strlen(text);
    if (declared->source == FIGURE_UNKNOWN || measured <= 0 ||
        measured * 100 >= reachable * EXPECTED_SHARE_PERCENT) {
        return;
    }
    units_short(kind, (int64_t)measured, have);
    units_short(kind, (int64_t)reachable, wanted);
    (void)snprintf(text + used, capacity - used, "%s%s %s instead of %s (%d %%)",
                   used > 0 ? ", " : "", name, have, wanted, (int)(measured * 100 / reachable));
}

bool expected_tell(const struct kernel_device *device, char ret_text[EXPECTED_TEXT_SIZE])
{
    const struct catalogue_device *row = expected_row(device);
    char figures[EXPECTED_TEXT_SIZE / 2] = "";
    if (row == NULL) {
        return false;
    }
    compare(row, FIGURE_FP32, "fp32", UNITS_FLOPS, (double)device->mflops * 1e6, 1, figures,
            sizeof figures);
    compare(row, FIGURE_BANDWIDTH, "copies", UNITS_BANDWIDTH, (double)device->bandwidth_bytes,
            EXPECTED_COPY_TRIPS, figures, sizeof figures);
    if (figures[0] == '\0') {
        return false;
    }
    (void)snprintf(ret_text, EXPECTED_TEXT_SIZE,
                   "far below %s of the catalogue: %s; it is offered with what was measured; "
                   "likely causes: %s",
                   row->id, figures,
                   device->whole[0] != '\0'
                       ? "it is an instance of MIG, which has a part of the device"
                       : "a power cap, heat, another process on it, few PCIe lanes, or a part of "
                         "the device that was split (MIG)");
    return true;
}
