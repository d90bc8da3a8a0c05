/* Measured figures are compared with the catalogue's figures of the model that the driver names. */
#include "provider/device/expected.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static struct kernel_device device;
static char text[EXPECTED_TEXT_SIZE];

/* Makes a device of this name that does so many Tflop/s, and copies so many GB/s. */
static bool tells(const char *name, double tflops, double gigabytes)
{
    device = (struct kernel_device){.mflops = (int64_t)(tflops * 1e6),
                                    .bandwidth_bytes = (int64_t)(gigabytes * 1e9)};
    (void)snprintf(device.name, sizeof device.name, "%s", name);
    text[0] = '\0';
    return expected_tell(&device, text);
}

static bool has(const char *part)
{
    return strstr(text, part) != NULL;
}

START_TEST(drivers_names_find_their_rows)
{
    static const struct {
        const char *name, *id; /* NULL: none */
    } names[] = {
        {"NVIDIA H100 80GB HBM3", "nvidia-h100-sxm5"},
        {"NVIDIA H100 PCIe", "nvidia-h100-pcie"},
        {"NVIDIA H200", "nvidia-h200-sxm"},
        {"NVIDIA A100-SXM4-40GB", "nvidia-a100-sxm4-40"},
        {"NVIDIA A100-SXM4-80GB", "nvidia-a100-sxm4-80"},
        {"NVIDIA A100-PCIE-40GB", NULL},
        {"Tesla V100-SXM2-32GB", "nvidia-v100-sxm2-32"},
        {"NVIDIA L4", "nvidia-l4"},
        {"NVIDIA L40S", "nvidia-l40s"},
        {"NVIDIA L40", NULL},
        {"NVIDIA GeForce RTX 4090", "nvidia-rtx4090"},
        {"NVIDIA GeForce RTX 3090", "nvidia-rtx3090"},
        {"NVIDIA H100 80GB HBM3 MIG 1g.10gb", "nvidia-h100-sxm5"},
        {"NVIDIA Fake F100", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        (void)snprintf(device.name, sizeof device.name, "%s", names[i].name);
        const struct catalogue_device *row = expected_row(&device);
        ck_assert_msg((row == NULL) == (names[i].id == NULL), "%s", names[i].name);
        ck_assert(row == NULL || strcmp(row->id, names[i].id) == 0);
    }
}
END_TEST

START_TEST(a_device_as_its_model_says_nothing)
{
    ck_assert(!tells("NVIDIA H100 80GB HBM3", 50, 1300)); /* of 66.9 Tflop/s, and 3350 GB/s */
    ck_assert(!tells("NVIDIA H100 80GB HBM3", 33.5, 840));
    ck_assert(!tells("NVIDIA Fake F100", 0.001, 0.001)); /* nobody knows the model */
    ck_assert(!tells("NVIDIA H100 80GB HBM3", 0, 0));    /* not measured */
}
END_TEST

START_TEST(a_device_far_below_its_model_is_told_with_both_figures)
{
    ck_assert(tells("NVIDIA H100 80GB HBM3", 20, 1300));
    ck_assert_msg(has("far below nvidia-h100-sxm5"), "%s", text);
    ck_assert_msg(has("fp32 20.0 TFLOPS instead of 66.9 TFLOPS (29 %)"), "%s", text);
    ck_assert(!has("copies"));
    ck_assert(has("power cap") && has("heat") && has("another process") && has("PCIe"));
    ck_assert(tells("NVIDIA H100 80GB HBM3", 60, 400));
    ck_assert_msg(!has("fp32") && has("copies") && has("(23 %)"), "%s", text);
    ck_assert_ptr_null(strchr(text, '\n'));
}
END_TEST

START_TEST(an_instance_of_mig_is_a_part)
{
    ck_assert(tells("NVIDIA H100 80GB HBM3 MIG 1g.10gb", 8, 200));
    (void)snprintf(device.whole, sizeof device.whole, "0000:17:00.0");
    ck_assert(expected_tell(&device, text));
    ck_assert_msg(has("an instance of MIG") && !has("power cap"), "%s", text);
}
END_TEST

SUITE("expected", NULL, NULL, TEST(drivers_names_find_their_rows),
      TEST(a_device_as_its_model_says_nothing),
      TEST(a_device_far_below_its_model_is_told_with_both_figures),
      TEST(an_instance_of_mig_is_a_part))
