/* The tests change each key of the config in turn, and look at whether the change is obeyed or
 * waits for a restart. A key without a sample here fails the test. */
#include "provider/agent_reload.h"
#include "tests/support/config_text.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

/* Two values of a key, as its lines in the file. */
static const struct sample {
    const char *key, *old, *now;
} samples[] = {
    {"market", "market: /srv/a.yaml\n", "market: /srv/b.yaml\n"},
    {"spool", "spool: /srv/a\n", "spool: /srv/b\n"},
    {"name", "name: attic\n", "name: lab\n"},
    {"region", "region: eu-west\n", "region: eu-east\n"},
    {"price", "price: 0.25\n", "price: 0.26\n"},
    {"slots", "slots: 1\n", "slots: 2\n"},
    {"memory", "memory: 1GiB\n", "memory: 2GiB\n"},
    {"disk", "disk: 1GiB\n", "disk: 2GiB\n"},
    {"processes", "processes: 64\n", "processes: 65\n"},
    {"term", "term: 1h\n", "term: 2h\n"},
    {"programs", "programs: {shell: /bin/sh}\n", "programs: {shell: /bin/cat}\n"},
    {"visible", "", "visible: [/usr/games]\n"},
    {"image_files", "image_files: 5000\n", "image_files: 5001\n"},
    {"image_size", "image_size: 1GiB\n", "image_size: 2GiB\n"},
    {"user", "user: nobody\n", "user: daemon\n"},
    {"cache", "image_size: 1GiB\ncache: 1GiB\n", "image_size: 1GiB\ncache: 2GiB\n"},
    {"devices", "", "devices: [{name: second, slots: 1}]\n"},
    {"to", "", "to: [alice]\n"},
    {"hours", "", "hours: 08:00-18:00\n"},
    {"daily", "", "daily: 2h\n"},
    {"utc_offset", "hours: 08:00-18:00\n", "hours: 08:00-18:00\nutc_offset: +01:00\n"},
    {"interruptible", "", "interruptible: {notice: 30s, minimum_run: 5m}\n"},
    {"idle", "idle: {after: 10m}\n", "idle: {after: 20m}\n"},
    {"gpu", "gpu: {temperature: 80}\n", "gpu: {temperature: 85}\n"},
    {"wasm", "", "wasm: false\n"},
    {"power_w", "power_w: 100\n", "power_w: 200\n"},
    {"network", "network: {rate: 10MB/s}\n", "network: {rate: 20MB/s}\n"},
    {"onnx", "", "onnx: false\n"},
    {"cpu", "cpu: 50%\n", "cpu: 60%\n"},
};

/* Reads the lines after those that make the folder of the file count for nothing. */
static void read_lines(const struct sample *sample, const char *lines, struct config *ret_config)
{
    char text[512];
    struct problem problem = {""};
    (void)snprintf(text, sizeof text, "%s%s%s",
                   strcmp(sample->key, "market") == 0 ? "" : "market: /srv/market.yaml\n",
                   strcmp(sample->key, "spool") == 0 ? "" : "spool: /srv/spool\n", lines);
    ck_assert_msg(read_text(text, ret_config, &problem), "%s: %s", sample->key, problem.text);
}

static const struct sample *sample_of(const char *key)
{
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        if (strcmp(samples[i].key, key) == 0) {
            return &samples[i];
        }
    }
    return NULL;
}

START_TEST(each_key_is_obeyed_at_once_or_named_as_one_that_waits)
{
    static struct config old; /* large */
    static struct config now;
    for (size_t i = 0; i < CONFIG_KEYS; i++) {
        const char *name = config_keys(CONFIG_MAP_FILE)[i];
        const struct sample *sample = sample_of(name);
        const enum agent_reload_effect effect = agent_reload_effect(name);
        ck_assert_msg(sample != NULL, "no sample of \"%s\"", name);
        read_lines(sample, sample->old, &old);
        read_lines(sample, sample->old, &now);
        ck_assert_msg(agent_reload_waiting(&old, &now, false) == NULL, "%s waits unchanged", name);
        read_lines(sample, sample->now, &now);
        const char *waiting = agent_reload_waiting(&old, &now, false);
        const bool waits = effect == AGENT_RELOAD_DEVICE || effect == AGENT_RELOAD_RESTART;
        ck_assert_msg(waits ? waiting != NULL && strcmp(waiting, name) == 0 : waiting == NULL,
                      "%s: %s", name, waiting == NULL ? "nothing waits" : waiting);
    }
}
END_TEST

START_TEST(each_key_of_an_entry_waits_unless_the_ask_has_it)
{
    static const struct {
        const char *key, *old, *now; /* the entry of `devices` */
        bool waits;
    } entries[] = {
        {"name", "name: a", "name: b", true},
        {"price", "name: a, price: 0.1", "name: a, price: 0.2", false},
        {"slots", "name: a, slots: 1", "name: a, slots: 2", true},
        {"memory", "name: a, memory: 1GiB", "name: a, memory: 2GiB", true},
        {"disk", "name: a, disk: 1GiB", "name: a, disk: 2GiB", true},
        {"processes", "name: a, processes: 64", "name: a, processes: 65", true},
        {"term", "name: a, term: 1h", "name: a, term: 2h", false},
        {"interruptible", "name: a", "name: a, interruptible: {notice: 30s}", false},
        {"to", "name: a", "name: a, to: [alice]", false},
        {"hours", "name: a", "name: a, hours: 08:00-18:00", false},
        {"daily", "name: a", "name: a, daily: 2h", false},
        {"power_w", "name: a, power_w: 100", "name: a, power_w: 200", true},
        {"simulate", "simulate: nvidia-h100-sxm5", "simulate: nvidia-h100-pcie", true},
        {"opencl", "opencl: 0, name: a", "opencl: 1, name: a", true},
        {"cuda", "cuda: 0, name: a", "cuda: 1, name: a", true},
        {"plugin", "plugin: /opt/a, name: a", "plugin: /opt/b, name: a", true},
        {"nodes", "plugin: /opt/a, name: a", "plugin: /opt/a, name: a, nodes: [/dev/a]", true},
        {"device_memory", "cuda: 0, name: a", "cuda: 0, name: a, device_memory: 50%", true},
        {"device_cache", "cuda: 0, name: a", "cuda: 0, name: a, device_cache: 1GiB", true},
        {"onnx", "onnx: WebGPU, name: a", "onnx: QNN, name: a", true},
        {"library", "onnx: CUDA, name: a", "onnx: CUDA, name: a, library: /usr/bin/env", true},
        {"options", "onnx: QNN, name: a", "onnx: QNN, name: a, options: {k: v}", true},
        {"environment", "onnx: QNN, name: a", "onnx: QNN, name: a, environment: {K: v}", true},
    };
    static struct config old;
    static struct config now;
    const char *const *keys = config_keys(CONFIG_MAP_DEVICE);
    const size_t count = sizeof entries / sizeof entries[0];
    ck_assert_ptr_null(keys[count]);
    for (size_t i = 0; i < count; i++) {
        char lines[256];
        size_t place = 0;
        while (keys[place] != NULL && strcmp(keys[place], entries[i].key) != 0) {
            place++;
        }
        ck_assert_msg(keys[place] != NULL, "no key \"%s\"", entries[i].key);
        (void)snprintf(lines, sizeof lines, "devices: [{%s}]\n", entries[i].old);
        read_lines(sample_of("devices"), lines, &old);
        (void)snprintf(lines, sizeof lines, "devices: [{%s}]\n", entries[i].now);
        read_lines(sample_of("devices"), lines, &now);
        const char *waiting = agent_reload_waiting(&old, &now, false);
        ck_assert_msg(entries[i].waits ? waiting != NULL && strcmp(waiting, "devices") == 0
                                       : waiting == NULL,
                      "%s: %s", entries[i].key, waiting == NULL ? "nothing waits" : waiting);
    }
}
END_TEST

START_TEST(a_key_of_a_device_is_left_out_when_the_device_is_named)
{
    static struct config old;
    static struct config now;
    read_lines(sample_of("slots"), "slots: 1\n", &old);
    read_lines(sample_of("slots"), "slots: 2\n", &now);
    ck_assert_str_eq(agent_reload_waiting(&old, &now, false), "slots");
    ck_assert_ptr_null(agent_reload_waiting(&old, &now, true));
    read_lines(sample_of("slots"), "slots: 2\nuser: nobody\n", &now);
    ck_assert_str_eq(agent_reload_waiting(&old, &now, true), "user");
}
END_TEST

START_TEST(a_limit_that_was_not_there_waits_for_a_restart)
{
    static struct config none;
    static struct config some;
    read_lines(sample_of("network"), "", &none);
    read_lines(sample_of("network"), "network: {rate: 10MB/s}\n", &some);
    ck_assert_str_eq(agent_reload_waiting(&none, &some, false), "network");
    ck_assert_ptr_null(agent_reload_waiting(&some, &none, false));
    read_lines(sample_of("idle"), "idle: {after: 10m}\n", &some);
    ck_assert_str_eq(agent_reload_waiting(&none, &some, false), "idle");
    ck_assert_str_eq(agent_reload_waiting(&some, &none, false), "idle");
}
END_TEST

SUITE("agent_reload", NULL, NULL, TEST(each_key_is_obeyed_at_once_or_named_as_one_that_waits),
      TEST(each_key_of_an_entry_waits_unless_the_ask_has_it),
      TEST(a_key_of_a_device_is_left_out_when_the_device_is_named),
      TEST(a_limit_that_was_not_there_waits_for_a_restart))
