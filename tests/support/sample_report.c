#include "tests/support/sample_report.h"

#include "base/checked.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

static const int64_t SUBMITTED_NS = 1000 * NS_PER_S;

struct report *sample_report(size_t devices, uint32_t slots, int64_t until_ms, size_t attempts_max)
{
    struct report *report = calloc(1, sizeof *report);
    assert(report != NULL);
    report->devices = calloc(devices + 1, sizeof *report->devices);
    report->attempts = calloc(attempts_max + 1, sizeof *report->attempts);
    assert(report->devices != NULL && report->attempts != NULL);
    (void)snprintf(report->id, sizeof report->id, "0123456789abcdef0123456789abcdef");
    (void)snprintf(report->name, sizeof report->name, "thumbnails");
    (void)snprintf(report->state, sizeof report->state, "done");
    report->submitted_ns = SUBMITTED_NS;
    report->until_ns = SUBMITTED_NS + until_ms * NS_PER_MS;
    report->device_count = devices;
    for (size_t i = 0; i < devices; i++) {
        struct report_device *device = &report->devices[i];
        (void)snprintf(device->provider, sizeof device->provider, "farm%zu", i);
        (void)snprintf(device->name, sizeof device->name, "cpu");
        device->slots = slots;
        device->price_low_micro = 100000;
        device->price_high_micro = 100000;
    }
    return report;
}

struct report_attempt *sample_attempt(struct report *report, uint32_t device, int64_t start_ms,
                                      int64_t busy_ms)
{
    struct report_attempt *attempt = &report->attempts[report->attempt_count];
    *attempt = (struct report_attempt){.device = device,
                                       .index = report->subtasks++,
                                       .started_ns = SUBMITTED_NS + start_ms * NS_PER_MS,
                                       .busy_ns = busy_ms * NS_PER_MS,
                                       .charge_micro = busy_ms,
                                       .energy_uj = -1,
                                       .isolation = -1};
    report->attempt_count++;
    return attempt;
}

struct report *sample_small(void)
{
    struct report *report = sample_report(2, 1, 4000, 8);
    report->expect_ns = 1500 * NS_PER_MS;
    (void)sample_attempt(report, 0, 200, 1800);
    (void)sample_attempt(report, 1, 250, 900);
    struct report_attempt *failed = sample_attempt(report, 1, 1200, 300);
    failed->fate = REPORT_FAILED;
    failed->cause = "program failed";
    report->subtasks--;
    (void)sample_attempt(report, 1, 1550, 1000);
    (void)sample_attempt(report, 0, 2000, 1900);
    return report;
}

struct report *sample_planned(void)
{
    struct report *report = sample_small();
    static const struct list_schedule_part part = {.subtasks = 4, .slots = 1};
    static const struct list_schedule_device devices[] = {{.slots = 1, .parts = 1},
                                                          {.slots = 2, .parts = 1}};
    int64_t takes_ns[4];
    for (size_t i = 0; i < 4; i++) {
        takes_ns[i] = report->expect_ns;
    }
    const struct plan_parts parts = {.schedule = {.parts = &part,
                                                  .part_count = 1,
                                                  .takes_ns = takes_ns,
                                                  .devices = devices,
                                                  .device_count = 2}};
    struct plan_fault fault;
    const enum plan_status status =
        plan_make(&(struct plan_work){.parts = &parts}, &report->plan, &fault);
    assert(status == PLAN_OK);
    report->planned_ns = plan_makespan_ns(report->plan);
    return report;
}

struct report *sample_large(void)
{
    enum { SUBTASKS = 10000, DEVICES = 3, LANES = 2 };
    struct report *report = sample_report(DEVICES, LANES, 60000, SUBTASKS);
    int64_t free_us[DEVICES][LANES] = {{100000, 110000}, {120000, 130000}, {300000, 310000}};
    uint64_t state = 1;
    for (uint32_t i = 0; i < SUBTASKS; i++) {
        uint32_t device = 0;
        uint32_t lane = 0;
        for (uint32_t k = 0; k < DEVICES * LANES; k++) {
            if (free_us[k / LANES][k % LANES] < free_us[device][lane]) {
                device = k / LANES;
                lane = k % LANES;
            }
        }
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        int64_t busy_us = 2000 + (int64_t)(state >> 33) % 40000 * (device + 1);
        struct report_attempt *attempt = sample_attempt(report, device, 0, 0);
        attempt->started_ns += free_us[device][lane] / 1000 * NS_PER_MS;
        attempt->busy_ns = busy_us * 1000;
        attempt->simulated = device == 2;
        if (i % 2500 == 1700) {
            attempt->fate = REPORT_FAILED;
            attempt->cause = "memory limit";
        }
        free_us[device][lane] += busy_us + 300;
    }
    return report;
}

struct report *sample_wide(void)
{
    struct report *report = sample_report(60, 4, 20000, 2400);
    for (uint32_t i = 0; i < 2400; i++) {
        uint32_t device = i % 60;
        (void)sample_attempt(report, device, (i / 240) * 2000 + device, 1000 + 15 * device);
    }
    return report;
}
