/* The tests read configs of a provider, and what is wrong with others. */
#include "provider/config.h"
#include "tests/support/config_text.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>
#include <unistd.h>

#define GIB (UINT64_C(1) << 30)

static struct config config;

START_TEST(an_absent_file_gives_the_defaults)
{
    struct problem problem;
    ck_assert_msg(config_read("/nonexistent", NULL, &config, &problem), "%s", problem.text);
    ck_assert_int_eq(config.price_micro, CONFIG_PRICE_MICRO);
    ck_assert_uint_eq(config.slots, 0);
    ck_assert_str_eq(config.user, "bourse");
    ck_assert_str_eq(config.market, "/nonexistent/market.yaml");
    ck_assert_str_eq(config.spool, "/nonexistent/spool");
    ck_assert_uint_ge(config.program_count, 10); /* the common tools that are here */
    ck_assert_str_eq(config_program(&config, "sh")->path, "/usr/bin/sh");
    ck_assert_ptr_null(config_program(&config, "no-such-program"));
    ck_assert(!config_read("/nonexistent", "/nonexistent/provider.yaml", &config, &problem));
}
END_TEST

START_TEST(every_key_is_read)
{
    struct problem problem;
    ck_assert_msg(read_text("market: /srv/market.yaml\nname: attic\nregion: eu-west\nprice: 0.25\n"
                            "slots: 3\nmemory: 2GiB\ndisk: 1GiB\nprocesses: 64\nterm: 1h\n"
                            "programs: [sh, cat]\nuser: nobody\ncache: 1GiB\nspool: out\n"
                            "image_files: 5000\n",
                            &config, &problem),
                  "%s", problem.text);
    ck_assert_str_eq(config.market, "/srv/market.yaml");
    ck_assert_str_eq(config.name, "attic");
    ck_assert_str_eq(config.region, "eu-west");
    ck_assert_int_eq(config.price_micro, 250000);
    ck_assert_uint_eq(config.slots, 3);
    ck_assert_uint_eq(config.memory_bytes, 2 * GIB);
    ck_assert_uint_eq(config.disk_bytes, GIB);
    ck_assert_uint_eq(config.processes, 64);
    ck_assert_int_eq(config.term_ms, 3600000);
    ck_assert_uint_eq(config.program_count, 2);
    ck_assert_str_eq(config.user, "nobody");
    ck_assert_uint_eq(config.cache_bytes, GIB);
    ck_assert_uint_eq(config.image_bytes, GIB); /* as much as the cache */
    ck_assert_uint_eq(config.image_files, 5000);
    ck_assert_ptr_nonnull(strstr(config.spool, "/out"));
}
END_TEST

START_TEST(programs_may_be_named_with_their_paths)
{
    struct problem problem;
    ck_assert_msg(read_text("programs: {shell: /bin/sh, list: /usr/bin/ls}\n", &config, &problem),
                  "%s", problem.text);
    ck_assert_str_eq(config_program(&config, "shell")->path, "/usr/bin/sh");
    ck_assert_ptr_eq(config_program(&config, "/usr/bin/ls"), &config.programs[1]);
    ck_assert_ptr_null(config_program(&config, "sh"));
    ck_assert(read_text("programs: []\n", &config, &problem));
    ck_assert_uint_eq(config.program_count, 0);
}
END_TEST

/* Jobs see a few folders of the host; the owner adds others, and what he offers is seen anyway. */
START_TEST(folders_that_jobs_see_may_be_added)
{
    struct problem problem;
    ck_assert_msg(read_text("programs: [sh]\n", &config, &problem), "%s", problem.text);
    ck_assert_uint_eq(config.visible_count, 0);
    ck_assert_msg(read_text("programs: [sh]\nvisible: [/usr/share, /usr/bin]\n", &config, &problem),
                  "%s", problem.text);
    ck_assert_uint_eq(config.visible_count, 1); /* /usr/bin is seen by every job */
    ck_assert_str_eq(config.visible[0], "/usr/share");
    if (access("/usr/sbin/chroot", X_OK) == 0) {
        ck_assert_msg(read_text("programs: {c: /usr/sbin/chroot}\n", &config, &problem), "%s",
                      problem.text);
        ck_assert_uint_eq(config.visible_count, 1);
        ck_assert_str_eq(config.visible[0], "/usr/sbin");
    }
}
END_TEST

START_TEST(wrong_keys_and_values_are_refused_with_their_line)
{
    static const struct {
        const char *text, *says;
    } wrong[] = {
        {"name: a\npriec: 1\n", "provider.yaml:2: unknown key \"priec\""},
        {"price: -1\n", ":1:"},
        {"price: 1e3\n", ":1:"},
        {"slots: 0\n", ":1:"},
        {"slots: 5000\n", ":1:"},
        {"memory: 10\n", ":1:"},
        {"memory: 1KiB\n", ":1:"},
        {"term: 5s\n", ":1:"},
        {"interruptible: true\n", "say how: {notice: 30s, minimum_run: 5m}"},
        {"interruptible: {notice: 2d}\n", ":1:"},
        {"interruptible: {minimum_run: 8d}\n", ":1:"},
        {"interruptible: {notise: 2m}\n", "notise"},
        {"programs: [sh, no-such-program]\n", "no-such-program"},
        {"programs: {x: /etc/passwd}\n", "below /usr"},
        {"programs: {x: /usr/share}\n", "below /usr"},
        {"programs: {a/b: /usr/bin/sh}\n", "slash"},
        {"programs: [../../bin/sh]\n", "no program"},
        {"image_files: 0\n", "image_files"},
        {"image_files: 131073\n", "131072"},
        {"image_size: 1kB\n", "image_size"},
        {"visible: [/etc]\n", "below /usr or /opt"},
        {"visible: [/usr/../etc]\n", "below /usr or /opt"},
        {"visible: [/usr/]\n", "below /usr or /opt"},
        {"visible: [/usr/share/]\n", "trailing slash"},
        {"visible: [usr/share]\n", "below /usr or /opt"},
        {"visible: [/usr/there-is-none]\n", "no folder"},
        {"visible: [/usr/bin/sh]\n", "no folder"},
        {"- a\n", "provider.yaml"},
        {"devices: {name: a}\n", ":1:"},
        {"devices: [a]\n", ":1:"},
        {"devices:\n - {price: 1}\n", ":2:"},
        {"devices:\n - {name: a}\n - {name: a}\n", "each device needs a name of its own"},
        {"name: a\ndevices:\n - {name: a}\n", ":3:"},
        {"devices:\n - {name: a, slots: 0}\n", ":2:"},
        {"devices:\n - {simulate: groq-lpu-v2}\n", "did you mean \"groq-lpu-v1\"?"},
        {"devices:\n - {simulate: groq-lpu-v1}\n - {simulate: groq-lpu-v1}\n", ":3:"},
        {"devices:\n - {name: sim.h100}\n", "those of simulated devices"},
        {"name: sim.attic\n", "those of simulated devices"},
        {"name: \"\"\n", ":1: name: an empty name"},
        {"devices:\n - {name: \"\"}\n", "an empty name"},
        {"devices:\n - {simulate: groq-lpu-v1, name: \"\"}\n", "an empty name"},
        {"name: \"a\\nb\"\n", ":1: name: control characters"},
        {"price: 1\nregion: \"a\\eb\"\n", ":2: region: control characters"},
        {"devices:\n - {name: \"a\\u202eb\"}\n", "control characters"},
        {"devices:\n - {simulate: groq-lpu-v1, name: \"a\\tb\"}\n", "control characters"},
        {"devices:\n - {name: a, programs: [sh]}\n", "unknown key \"programs\""},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct problem problem = {""};
        ck_assert_msg(!read_text(wrong[i].text, &config, &problem), "%s", wrong[i].text);
        ck_assert_msg(strstr(problem.text, wrong[i].says) != NULL, "%s: %s", wrong[i].text,
                      problem.text);
    }
}
END_TEST

START_TEST(an_ask_is_for_some_and_at_some_hours)
{
    struct problem problem = {""};
    ck_assert_msg(read_text("to: [alice, bob]\n"
                            "hours: [mon-fri 22:00-07:00, sat-sun 00:00-24:00]\n"
                            "utc_offset: -03:30\n"
                            "devices:\n"
                            "  - {name: same}\n"
                            "  - {name: open, to: anyone, hours: always}\n"
                            "  - {name: short, to: [eve], hours: 01:00-02:00}\n"
                            "  - {name: brief, to: anyone, hours: always, daily: 8h, term: 1h}\n",
                            &config, &problem),
                  "%s", problem.text);
    const struct agent_conditions *whole = &config.conditions;
    const struct agent_conditions *same = &config.devices[0].conditions;
    const struct agent_conditions *open = &config.devices[1].conditions;
    const struct agent_conditions *other = &config.devices[2].conditions;
    ck_assert_uint_eq(whole->to_count, 2);
    ck_assert_str_eq(whole->to[1], "bob");
    ck_assert_uint_eq(whole->hours.count, 2);
    ck_assert_int_eq(whole->hours.offset_min, -210);
    ck_assert_uint_eq(whole->hours.windows[1].days, 0x60);
    ck_assert_mem_eq(whole, same, sizeof *whole);
    ck_assert_uint_eq(open->to_count, 0);
    ck_assert_uint_eq(open->hours.count, 0);
    ck_assert_int_eq(open->hours.offset_min, 0); /* as the market wants it without hours */
    ck_assert_uint_eq(other->to_count, 1);
    ck_assert_str_eq(other->to[0], "eve");
    ck_assert_uint_eq(other->hours.count, 1);
    ck_assert_int_eq(other->hours.offset_min, -210);
    const struct agent_conditions *brief = &config.devices[3].conditions;
    ck_assert_int_eq(brief->daily_ms, INT64_C(8) * 3600 * 1000);
    ck_assert_uint_eq(brief->hours.count, 0);
    ck_assert_int_eq(brief->hours.offset_min, -210); /* a day, too, is one of a clock */
    ck_assert_int_eq(whole->daily_ms, 0);
    ck_assert(read_text("daily: 90m\ndevices: [{name: same}, {name: all, daily: any}]\n", &config,
                        &problem));
    ck_assert_int_eq(config.devices[0].conditions.daily_ms, 90 * 60 * 1000);
    ck_assert_int_eq(config.devices[1].conditions.daily_ms, 0);
    ck_assert(read_text("price: 1\n", &config, &problem));
    ck_assert_uint_eq(config.conditions.to_count, 0);
    ck_assert_uint_eq(config.conditions.hours.count, 0);
}
END_TEST

START_TEST(conditions_that_are_none_are_refused_with_their_line)
{
    static const char *const wrong[][2] = {
        {"price: 0\nto: alice\n", ":2: to: a list of accounts"},
        {"to: []\n", "a list of nobody"},
        {"to: [\"\"]\n", "an account has a name"},
        {"hours: [22:00-22:00]\n", "00:00-24:00"},
        {"\n\nhours: mno-fri 22:00-07:00\n", ":3: hours: \"mno\" is no day; did you mean \"mon\"?"},
        {"hours: []\n", "no hours at all"},
        {"utc_offset: CET\n", "write for example +01:00"},
        {"daily: 30s\n", "daily: "},
        {"daily: none\n", "daily: "},
        {"term: 2h\ndaily: 1h\n", ":2: daily: less than `term`, the longest lease"},
        {"hour: 22:00-07:00\n", ":1: unknown key \"hour\"; did you mean \"hours\"?"},
        {"devices: [{name: a, too: [b]}]\n", "did you mean \"to\"?"},
        {"hours: [01:00-02:00, 01:00-02:00, 01:00-02:00, 01:00-02:00, 01:00-02:00,"
         " 01:00-02:00, 01:00-02:00, 01:00-02:00, 01:00-02:00]\n",
         "8"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct problem problem = {""};
        ck_assert_msg(!read_text(wrong[i][0], &config, &problem), "%s", wrong[i][0]);
        ck_assert_msg(strstr(problem.text, wrong[i][1]) != NULL, "%s: %s", wrong[i][0],
                      problem.text);
    }
}
END_TEST

START_TEST(the_owner_says_when_a_gpu_may_be_offered)
{
    static const char *const wrong[] = {"gpu: {temperature: 20}", "gpu: {temperature: hot}",
                                        "gpu: {power: 5}",        "gpu: {power: 250W}",
                                        "gpu: {programs: none}",  "gpu: {heat: 80}",
                                        "gpu: {after: 25h}",      "gpu: [80]"};
    struct problem problem = {""};
    const struct gpu_terms *gpu = &config.gpu;
    ck_assert(read_text("name: x\n", &config, &problem) && !gpu->is_set);
    ck_assert_msg(read_text("gpu: {}\n", &config, &problem), "%s", problem.text);
    ck_assert(gpu->is_set && !config.idle.is_set);
    ck_assert_int_eq(gpu->programs, GPU_PROGRAMS_COMPUTE);
    ck_assert_int_eq(gpu->celsius, 0);
    ck_assert_int_eq(gpu->milliwatts, 0);
    ck_assert_int_eq(gpu->after_ns / 1000000000, 60);
    ck_assert_int_eq(gpu->give_back_ns / 1000000000, 30);
    ck_assert_msg(read_text("gpu: {programs: any, temperature: 83, power: 250, after: 0s,\n"
                            "      give_back: 5m}\n",
                            &config, &problem),
                  "%s", problem.text);
    ck_assert_int_eq(gpu->programs, GPU_PROGRAMS_ANY);
    ck_assert_int_eq(gpu->celsius, 83);
    ck_assert_int_eq(gpu->milliwatts, 250000);
    ck_assert_int_eq(gpu->after_ns, 0);
    ck_assert_int_eq(gpu->give_back_ns / 1000000000, 300);
    ck_assert(read_text("gpu: {programs: run, temperature: any, power: any}\n", &config, &problem));
    ck_assert_int_eq(gpu->programs, GPU_PROGRAMS_RUN);
    ck_assert_int_eq(gpu->celsius, 0);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_msg(!read_text(wrong[i], &config, &problem), "%s", wrong[i]);
    }
}
END_TEST

START_TEST(the_power_of_a_device_is_the_owners_or_unknown)
{
    static const char *const wrong[] = {"power_w: 0", "power_w: 65W", "power_w: 1000001",
                                        "devices: [{simulate: groq-lpu-v1, power_w: 300}]"};
    struct problem problem = {""};
    ck_assert_msg(read_text("name: x\npower_w: 65\ndevices:\n  - {name: y, power_w: 7}\n"
                            "  - {name: z}\n",
                            &config, &problem),
                  "%s", problem.text);
    ck_assert_int_eq(config.power_w, 65);
    ck_assert_int_eq(config.devices[0].power_w, 7);
    ck_assert_int_eq(config.devices[1].power_w, 0);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_msg(!read_text(wrong[i], &config, &problem), "%s", wrong[i]);
    }
    ck_assert_ptr_nonnull(strstr(problem.text, "the power of a simulated device is the catalogue"));
}
END_TEST

START_TEST(a_rule_of_gpus_without_effect_is_told)
{
    static const struct {
        const char *text, *said; /* said: NULL for no warning */
    } files[] = {
        {"name: x\n", NULL},
        {"devices: [{opencl: 0, name: arc}]\n", NULL},
        {"gpu: {}\ndevices: [{cuda: 0, name: card}]\n", NULL},
        {"gpu: {}\n", "`gpu:` has no effect: it is about devices offered by `cuda`, and "
                      "`devices:` has none"},
        {"gpu: {}\ndevices: [{opencl: 0, name: arc}, {cuda: 0, name: card}]\n",
         "`gpu:` has no effect on the device \"arc\", offered by `opencl`: only devices offered by "
         "`cuda` are watched"},
        {"gpu: {}\ndevices: [{opencl: 0, name: arc}, {opencl: 1, name: other}]\n",
         "`gpu:` has no effect on the device \"arc\" and 1 more, offered by `opencl`: only devices "
         "offered by `cuda` are watched"},
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        struct problem problem = {""};
        ck_assert_msg(read_text(files[i].text, &config, &problem), "%s", problem.text);
        ck_assert_msg(config_gpu_warning(&config, &problem) == (files[i].said != NULL), "%s",
                      files[i].text);
        ck_assert_str_eq(problem.text, files[i].said != NULL ? files[i].said : "");
    }
}
END_TEST

START_TEST(a_device_holds_as_many_inputs_as_its_owner_says)
{
    struct problem problem = {""};
    ck_assert_msg(read_text("devices: [{opencl: 0, name: a}, {cuda: 0, name: b, device_cache: 0},\n"
                            "  {cuda: 1, name: c, device_cache: 3MiB}]\n",
                            &config, &problem),
                  "%s", problem.text);
    ck_assert(config.devices[0].held_bytes == CONFIG_HELD_SHARE);
    ck_assert_uint_eq(config.devices[1].held_bytes, 0);
    ck_assert_uint_eq(config.devices[2].held_bytes, 3 << 20);
    static const char *const others[] = {"simulate: groq-lpu-v1", "slots: 1",
                                         "plugin: /opt/x/plugin"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        char text[128];
        (void)snprintf(text, sizeof text, "devices:\n  - {name: a, device_cache: 0, %s}\n",
                       others[i]);
        ck_assert(!read_text(text, &config, &problem));
        ck_assert_ptr_nonnull(strstr(problem.text, ":2: "));
        ck_assert_ptr_nonnull(
            strstr(problem.text, "only a device of opencl or cuda holds inputs in its own memory"));
    }
}
END_TEST

START_TEST(the_owner_says_when_the_machine_is_idle)
{
    struct problem problem = {""};
    const struct idle_terms *idle = &config.idle;
    ck_assert(read_text("price: 1\n", &config, &problem));
    ck_assert(!idle->is_set);
    ck_assert_msg(read_text("idle: {}\n", &config, &problem), "%s", problem.text);
    ck_assert(idle->is_set && idle->watches_input && idle->watches_battery);
    ck_assert(!idle->watches_sessions);
    ck_assert_int_eq(idle->after_ns / 1000000000, 300);
    ck_assert_int_eq(idle->give_back_ns / 1000000000, 600);
    ck_assert_int_eq(idle->load_milli, 500);
    ck_assert_int_eq(idle->celsius, 0);
    ck_assert_uint_eq(idle->program_count, 0);
    ck_assert_str_eq(config.idle_root, "");
    ck_assert_msg(read_text("idle: {after: 90s, give_back: 0s, input: false, load: 1.25,\n"
                            "  sessions: true, programs: [steam, a-name-of-many-letters],\n"
                            "  battery: run, temperature: 85, root: /host/}\n",
                            &config, &problem),
                  "%s", problem.text);
    ck_assert(!idle->watches_input && !idle->watches_battery && idle->watches_sessions);
    ck_assert_int_eq(idle->after_ns / 1000000000, 90);
    ck_assert_int_eq(idle->give_back_ns, 0);
    ck_assert_int_eq(idle->load_milli, 1250);
    ck_assert_int_eq(idle->celsius, 85);
    ck_assert_uint_eq(idle->program_count, 2);
    ck_assert_str_eq(idle->programs[0], "steam");
    ck_assert_str_eq(idle->programs[1], "a-name-of-many-"); /* as the kernel has it */
    ck_assert_str_eq(config.idle_root, "/host");
    ck_assert(idle->milliwatts == 0 && idle->battery_percent == 0);
    ck_assert_msg(read_text("idle: {battery: 60%, power: 65, power_for: 30s}\n", &config, &problem),
                  "%s", problem.text);
    ck_assert(idle->watches_battery && idle->battery_percent == 60);
    ck_assert(idle->milliwatts == 65000 && idle->power_for_ns == INT64_C(30000000000));
    ck_assert(read_text("idle: {power: any}\n", &config, &problem));
    ck_assert(idle->milliwatts == 0 && idle->power_for_ns == INT64_C(10000000000));
    ck_assert(read_text("idle: {load: any, temperature: any, programs: []}\n", &config, &problem));
    ck_assert_int_eq(idle->load_milli, -1);
    ck_assert_int_eq(idle->celsius, 0);
}
END_TEST

START_TEST(idle_times_that_are_none_are_refused_with_their_line)
{
    static const char *const wrong[][2] = {
        {"price: 0\nidle: true\n", ":2: idle"},
        {"idle:\n  inptu: true\n", ":2: unknown key \"inptu\"; did you mean \"input\"?"},
        {"idle: {after: 5}\n", "has no unit"},
        {"idle: {after: 9s}\n", "after: "},
        {"idle: {after: 2d}\n", "after: "},
        {"idle: {give_back: 2d}\n", "give_back: "},
        {"idle: {load: half}\n", "a number of cores is needed, as in 0.5"},
        {"idle: {load: -1}\n", "a number of cores is needed"},
        {"idle: {load: 5000}\n", "a number of cores is needed"},
        {"idle: {load: 0.0001}\n", "three decimals at most"},
        {"idle: {programs: [/usr/bin/steam]}\n", "without its folder"},
        {"idle: {programs: [\"\"]}\n", "the name of a program is needed"},
        {"idle: {programs: steam}\n", "programs: "},
        {"idle: {battery: stop}\n", "battery: "},
        {"idle: {battery: 0%}\n", "a charge from 1% to 100% is needed"},
        {"idle: {battery: 101%}\n", "a charge from 1% to 100% is needed"},
        {"idle: {battery: 60}\n", "a charge from 1% to 100% is needed"},
        {"idle: {battery: -5%}\n", "a charge from 1% to 100% is needed"},
        {"idle: {power: 5}\n", "power: "},
        {"idle: {power_for: 2h}\n", "power_for: "},
        {"idle: {temperature: 20}\n", "temperature: "},
        {"idle: {temperature: hot}\n", "temperature: "},
        {"idle: {root: host}\n", "an absolute path is needed"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct problem problem = {""};
        ck_assert_msg(!read_text(wrong[i][0], &config, &problem), "%s", wrong[i][0]);
        ck_assert_msg(strstr(problem.text, wrong[i][1]) != NULL, "%s: %s", wrong[i][0],
                      problem.text);
    }
}
END_TEST

START_TEST(jobs_get_a_share_of_a_devices_own_memory)
{
    static const char *const wrong[][2] = {
        {"devices: [{cuda: 0, device_memory: 0%}]\n", "a share from 1% to 100%"},
        {"devices: [{cuda: 0, device_memory: 101%}]\n", "a share from 1% to 100%"},
        {"devices: [{cuda: 0, device_memory: 5}]\n", "a size of 1MiB or more is needed"},
        {"devices: [{cuda: 0, device_memory: 1kB}]\n", "a size of 1MiB or more is needed"},
        {"devices: [{name: a, device_memory: 50%}]\n", "device_memory is a limit of a device"},
        {"device_memory: 50%\n", "unknown key"},
    };
    struct problem problem = {""};
    const struct config_device *device = &config.devices[0];
    ck_assert(read_text("devices: [{cuda: 0}]\n", &config, &problem));
    ck_assert_uint_eq(config_share_of(&device->kernel_memory, 1000), 1000);
    ck_assert(read_text("devices: [{cuda: 0, device_memory: 50%}]\n", &config, &problem));
    ck_assert_uint_eq(config_share_of(&device->kernel_memory, 1000), 500);
    ck_assert(read_text("devices: [{opencl: 0, device_memory: 2MiB}]\n", &config, &problem));
    ck_assert_uint_eq(config_share_of(&device->kernel_memory, 16 << 20), 2 << 20);
    ck_assert_uint_eq(config_share_of(&device->kernel_memory, 1000), 1000); /* there is no more */
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_msg(!read_text(wrong[i][0], &config, &problem), "%s", wrong[i][0]);
        ck_assert_msg(strstr(problem.text, wrong[i][1]) != NULL, "%s", problem.text);
    }
}
END_TEST

START_TEST(the_cores_have_a_share)
{
    static const char *const bad[] = {"cpu: 50\n", "cpu: 0%\n", "cpu: 101%\n", "cpu: half\n",
                                      "cpu: 5.5%\n"};
    struct problem problem = {""};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_msg(!read_text(bad[i], &config, &problem), "%s", bad[i]);
        ck_assert_msg(strstr(problem.text, "a share of each core is needed, from 1% to 100%") !=
                          NULL,
                      "%s", problem.text);
    }
    ck_assert(read_text("price: 0\n", &config, &problem));
    ck_assert_uint_eq(config.cpu_percent, 100);
    ck_assert(read_text("cpu: 40%\n", &config, &problem));
    ck_assert_uint_eq(config.cpu_percent, 40);
    ck_assert_uint_eq(config.lines.cpu, 1);
}
END_TEST

START_TEST(the_network_has_a_rate_and_a_month)
{
    static const char *const wrong[][2] = {
        {"network: {rate: 1kB/m}\n", "a rate as in 10MB/s is needed"},
        {"network: {rate: 0B/s}\n", "a rate as in 10MB/s is needed"},
        {"network: {month: 5}\n", "a size as in 50GiB is needed"},
        {"network: {week: 5GiB}\n", "unknown key"},
        {"network: 5\n", "network"},
    };
    struct problem problem = {""};
    ck_assert(read_text("price: 0\n", &config, &problem));
    ck_assert(config.network.rate_bytes == 0 && config.network.month_bytes == 0);
    ck_assert_msg(read_text("network: {rate: 10MB/s, month: 50GiB}\n", &config, &problem), "%s",
                  problem.text);
    ck_assert_int_eq(config.network.rate_bytes, 10000000);
    ck_assert(config.network.month_bytes == INT64_C(50) << 30);
    ck_assert(read_text("network: {rate: any}\n", &config, &problem));
    ck_assert(config.network.rate_bytes == 0 && config.network.month_bytes == 0);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_msg(!read_text(wrong[i][0], &config, &problem), "%s", wrong[i][0]);
        ck_assert_msg(strstr(problem.text, wrong[i][1]) != NULL, "%s", problem.text);
    }
}
END_TEST

START_TEST(an_engine_for_modules_is_a_program_that_jobs_see)
{
    static const char *const wrong[][2] = {
        {"wasm: true\n", ":1: wasm: is false, or names an engine, as in {engine: /usr/bin/node}"},
        {"wasm: node\n", ":1: wasm: is false, or names an engine, as in {engine: /usr/bin/node}"},
        {"wasm: {}\n", "\"engine:\" is missing"},
        {"wasm: {engine: node}\n", "\"node\" is no program below /usr"},
        {"wasm: {engine: /usr/bin/no-such-engine}\n", "is no program below /usr"},
        {"wasm: {engine: /etc/passwd}\n", "is no program below /usr"},
        {"wasm: {wasmtime: libwasmtime.so}\n",
         "\"libwasmtime.so\" is no file below /usr or /opt, where wasmtime's library must be"},
        {"wasm: {wasmtime: /usr/lib/no-such-library.so}\n", "is no file below /usr or /opt"},
        {"wasm: {wasmtime: /usr/lib}\n", "is no file below /usr or /opt"},
        {"wasm: {wasmtime: /usr/../etc/passwd}\n", "is no file below /usr or /opt"},
        {"wasm: {wasmtime: /usr/bin/env, engine: /usr/bin/env}\n",
         "stands beside `engine`, and one engine runs all modules"},
        {"wasm: {engin: /usr/bin/sh}\n", "unknown key \"engin\"; did you mean \"engine\"?"},
    };
    struct problem problem = {""};
    ck_assert(read_text("price: 0\n", &config, &problem));
    ck_assert(config.has_wasm && !config.names_wasm);
    ck_assert(config.wasm_is_library ||
              (config.wasm_engine[0] != '\0') == (access("/usr/bin/node", X_OK) == 0));
    ck_assert(read_text("wasm: false\n", &config, &problem));
    ck_assert(!config.has_wasm && !config.names_wasm);
    ck_assert_str_eq(config.wasm_engine, "");
    ck_assert_msg(read_text("wasm: {engine: /bin/sh}\n", &config, &problem), "%s", problem.text);
    ck_assert(config.has_wasm && config.names_wasm);
    ck_assert_str_eq(config.wasm_engine, "/usr/bin/sh");
    ck_assert(!config.wasm_is_library);
    ck_assert_msg(read_text("wasm: {wasmtime: /usr/bin/env}\n", &config, &problem), "%s",
                  problem.text);
    ck_assert(config.has_wasm && config.names_wasm && config.wasm_is_library);
    ck_assert_str_eq(config.wasm_engine, "/usr/bin/env");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_msg(!read_text(wrong[i][0], &config, &problem), "%s", wrong[i][0]);
        ck_assert_msg(strstr(problem.text, wrong[i][1]) != NULL, "%s: %s", wrong[i][0],
                      problem.text);
    }
}
END_TEST

START_TEST(what_computes_models_is_a_file_with_a_path)
{
    static const char *const wrong[][2] = {
        {"onnx: true\n", ":1: onnx: is false, or names ONNX Runtime's library"},
        {"onnx: {}\n", "\"library:\" is missing"},
        {"onnx: {library: libonnxruntime.so.1}\n", "is no file with an absolute path"},
        {"onnx: {library: /nonexistent/a.so}\n", "is no file with an absolute path"},
        {"onnx: {library: /usr}\n", "is no file with an absolute path"},
        {"onnx: {libary: /usr/bin/env}\n", "unknown key \"libary\"; did you mean \"library\"?"},
    };
    struct problem problem = {""};
    ck_assert_int_eq(setenv(CONFIG_ONNXRUNTIME, "/nonexistent/a.so", 1), 0);
    ck_assert(read_text("price: 0\n", &config, &problem));
    ck_assert(config.has_onnx && !config.names_onnx);
    ck_assert_str_eq(config.onnx_library, "/nonexistent/a.so"); /* the trial says what is wrong */
    ck_assert_msg(read_text("onnx: {library: none}\n", &config, &problem), "%s", problem.text);
    ck_assert(config.has_onnx && config.names_onnx);
    ck_assert_str_eq(config.onnx_library, ""); /* our own operators */
    ck_assert_msg(read_text("onnx: {library: /usr/bin/env}\n", &config, &problem), "%s",
                  problem.text);
    ck_assert(config.has_onnx && config.names_onnx);
    ck_assert_str_eq(config.onnx_library, "/usr/bin/env");
    ck_assert(read_text("onnx: false\n", &config, &problem));
    ck_assert(!config.has_onnx && !config.names_onnx);
    ck_assert_str_eq(config.onnx_library, "");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_msg(!read_text(wrong[i][0], &config, &problem), "%s", wrong[i][0]);
        ck_assert_msg(strstr(problem.text, wrong[i][1]) != NULL, "%s: %s", wrong[i][0],
                      problem.text);
    }
    ck_assert_int_eq(unsetenv(CONFIG_ONNXRUNTIME), 0);
}
END_TEST

SUITE("provider config", NULL, NULL, TEST(what_computes_models_is_a_file_with_a_path),
      TEST(an_absent_file_gives_the_defaults), TEST(every_key_is_read),
      TEST(programs_may_be_named_with_their_paths), TEST(folders_that_jobs_see_may_be_added),
      TEST(wrong_keys_and_values_are_refused_with_their_line),
      TEST(an_ask_is_for_some_and_at_some_hours),
      TEST(conditions_that_are_none_are_refused_with_their_line),
      TEST(the_owner_says_when_a_gpu_may_be_offered),
      TEST(the_power_of_a_device_is_the_owners_or_unknown),
      TEST(a_device_holds_as_many_inputs_as_its_owner_says),
      TEST(a_rule_of_gpus_without_effect_is_told), TEST(the_owner_says_when_the_machine_is_idle),
      TEST(idle_times_that_are_none_are_refused_with_their_line),
      TEST(jobs_get_a_share_of_a_devices_own_memory), TEST(the_cores_have_a_share),
      TEST(the_network_has_a_rate_and_a_month),
      TEST(an_engine_for_modules_is_a_program_that_jobs_see))
