/* The sensors look at folders that stand for a machine: complete ones, empty ones, and ones that
 * hold what no kernel writes. */
#include "provider/idle/input_sensor.h"
#include "provider/idle/login_sensor.h"
#include "provider/idle/power_sensor.h"
#include "provider/idle/process_sensor.h"
#include "provider/idle/sensor_file.h"
#include "tests/support/machine_files.h"
#include "tests/support/suite.h"

#include <check.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define NS INT64_C(1000000000)

/* ---------------------------------------------------------------- input */

static struct input_sensor input;

static bool has_input(void)
{
    bool found = false;
    ck_assert(input_sensor_look(&input, &found));
    return found;
}

START_TEST(a_terminal_that_is_read_is_input)
{
    put("dev/tty1", "%s", "");
    put("dev/pts/0", "%s", "");
    put("dev/ttyprintk", "%s", ""); /* nobody types there */
    input_sensor_init(&input, folder);
    ck_assert(!has_input()); /* the first look knows no change */
    ck_assert(!has_input());
    type_at("dev/tty1", 1000);
    ck_assert(has_input());
    ck_assert(!has_input());
    type_at("dev/pts/0", 1000);
    ck_assert(has_input());
    type_at("dev/ttyprintk", 1000);
    ck_assert(!has_input());
    put("dev/pts/7", "%s", ""); /* a terminal opens */
    ck_assert(has_input());
    drop("dev/pts/7");
    ck_assert(has_input());
    ck_assert_uint_eq(input.terminals, 2);
}
END_TEST

START_TEST(a_clock_that_is_set_hides_no_input)
{
    put("dev/tty1", "%s", "");
    put("dev/tty2", "%s", "");
    type_at("dev/tty1", 4000000000); /* read in the future */
    input_sensor_init(&input, folder);
    ck_assert(!has_input());
    type_at("dev/tty2", 1000);
    ck_assert(has_input());
    type_at("dev/tty1", 5);
    ck_assert(has_input());
}
END_TEST

static void plug_in(const char *name, const char *class, const char *protocol, int reports)
{
    char file[128];
    (void)snprintf(file, sizeof file, "sys/bus/usb/devices/%s:1.0/bInterfaceClass", name);
    put(file, "%s\n", class);
    (void)snprintf(file, sizeof file, "sys/bus/usb/devices/%s:1.0/bInterfaceProtocol", name);
    put(file, "%s\n", protocol);
    (void)snprintf(file, sizeof file, "sys/bus/usb/devices/%s/urbnum", name);
    put(file, "%d\n", reports);
}

START_TEST(keyboards_and_mice_on_usb_are_input_and_disks_are_not)
{
    plug_in("1-2", "03", "01", 100);
    plug_in("1-3", "03", "02", 100);
    plug_in("1-4", "08", "50", 100); /* a disk */
    plug_in("1-5", "03", "00", 100); /* the meter of a power supply reports all the time */
    input_sensor_init(&input, folder);
    ck_assert(!has_input());
    ck_assert_uint_eq(input.usb, 2);
    put("sys/bus/usb/devices/1-4/urbnum", "%d\n", 900);
    put("sys/bus/usb/devices/1-5/urbnum", "%d\n", 900);
    ck_assert(!has_input());
    put("sys/bus/usb/devices/1-2/urbnum", "%d\n", 101);
    ck_assert(has_input());
    put("sys/bus/usb/devices/1-3/urbnum", "%d\n", 101);
    ck_assert(has_input());
    ck_assert(!has_input());
}
END_TEST

START_TEST(interrupts_of_a_built_in_keyboard_are_input)
{
    static const char lines[] = "           CPU0       CPU1\n"
                                "  1:  %9d         20   IO-APIC    1-edge      i8042\n"
                                " 14:  %9d     990234   IO-APIC   14-edge      ata_piix\n"
                                " 51:          7        %d  amd_gpio    9  ELAN0501:00\n";
    put("proc/interrupts", lines, 10, 555, 3);
    input_sensor_init(&input, folder);
    ck_assert(!has_input());
    ck_assert_uint_eq(input.lines, 2);
    put("proc/interrupts", lines, 10, 556, 3);
    ck_assert(!has_input());
    put("proc/interrupts", lines, 11, 556, 3);
    ck_assert(has_input());
    put("proc/interrupts", lines, 11, 556, 4);
    ck_assert(has_input());
}
END_TEST

START_TEST(a_machine_without_any_source_of_input_is_said_to_have_none)
{
    bool found;
    input_sensor_init(&input, folder);
    ck_assert(!input_sensor_look(&input, &found));
    put("dev/null", "%s", "");
    put("proc/interrupts", "%s", "  0:  12  timer\n");
    ck_assert(!input_sensor_look(&input, &found));
}
END_TEST

START_TEST(a_bluetooth_keyboard_is_named_as_unseen)
{
    bool found;
    put("proc/bus/input/devices", "%s",
        "I: Bus=0011 Vendor=0001\nN: Name=\"AT keyboard\"\nH: Handlers=sysrq kbd event0\n\n"
        "I: Bus=0005 Vendor=004c\nN: Name=\"Magic \x1b[31mKeyboard\"\nH: Handlers=kbd event7\n");
    put("dev/tty1", "%s", "");
    input_sensor_init(&input, folder);
    ck_assert(input_sensor_look(&input, &found));
    ck_assert_str_eq(input.unseen, "Magic ?[31mKeyboard");
}
END_TEST

START_TEST(hostile_sources_of_input_do_no_harm)
{
    char file[128];
    bool found;
    put("dev/tty1/inside", "%s", "a folder is no terminal");
    (void)snprintf(file, sizeof file, "%s/dev/tty2", folder);
    ck_assert_int_eq(mkfifo(file, 0644), 0);
    (void)snprintf(file, sizeof file, "%s/dev/tty3", folder);
    ck_assert_int_eq(symlink("/dev/null", file), 0);
    (void)snprintf(file, sizeof file, "%s/proc", folder);
    (void)mkdir(file, 0755);
    (void)snprintf(file, sizeof file, "%s/proc/interrupts", folder);
    ck_assert_int_eq(mkfifo(file, 0644), 0); /* reading it would wait for ever */
    plug_in("1-2", "03", "01", 0);
    put("sys/bus/usb/devices/1-2/urbnum", "%s", "99999999999999999999999999");
    plug_in("1-3", "03", "02", 0);
    put("sys/bus/usb/devices/1-3/urbnum", "%s", "seven");
    input_sensor_init(&input, folder);
    ck_assert(!input_sensor_look(&input, &found));
    ck_assert_int_eq(unlink(file), 0);
    put("proc/interrupts", "i8042\n i8042: : :\n 1: 99999999999999999999999 i8042 %08000d\n\n\n",
        1);
    ck_assert(input_sensor_look(&input, &found));
}
END_TEST

/* ---------------------------------------------------------------- logins */

static const char *user(void)
{
    static char name[IDLE_NAME_SIZE];
    ck_assert(login_sensor_look(folder, name, sizeof name));
    return name;
}

START_TEST(only_active_people_with_a_seat_are_logged_in)
{
    char name[IDLE_NAME_SIZE];
    ck_assert(!login_sensor_look(folder, name, sizeof name)); /* no logind */
    put("run/systemd/sessions/c1", "UID=1\nUSER=gdm\nACTIVE=1\nCLASS=greeter\nSEAT=seat0\n");
    put("run/systemd/sessions/2", "UID=1\nUSER=net\nACTIVE=1\nCLASS=user\nREMOTE=1\nSEAT=\n");
    put("run/systemd/sessions/3", "UID=1\nUSER=away\nACTIVE=0\nCLASS=user\nSEAT=seat0\n");
    put("run/systemd/sessions/4", "UID=1\nUSER=cron\nACTIVE=1\nCLASS=background\n");
    put("run/systemd/sessions/5.ref", "USER=x\nACTIVE=1\nCLASS=user\nSEAT=seat0\n");
    ck_assert_str_eq(user(), "");
    put("run/systemd/sessions/6", "# a comment\nUSER=alice\nACTIVE=1\nSEAT=seat0\nCLASS=user\n");
    ck_assert_str_eq(user(), "alice");
    put("run/systemd/sessions/6", "ACTIVE=1\nSEAT=seat0\nCLASS=user\n");
    ck_assert_str_eq(user(), "somebody");
    put("run/systemd/sessions/6", "USER=%0500d\nACTIVE=1\nSEAT=seat0\nCLASS=user\n", 7);
    ck_assert_uint_eq(strlen(user()), IDLE_NAME_SIZE - 1);
}
END_TEST

/* ---------------------------------------------------------------- power and heat */

START_TEST(the_battery_counts_when_no_mains_are_there)
{
    bool on_battery = true;
    ck_assert(!power_sensor_battery(folder, &on_battery));
    put("sys/class/power_supply/.keep", "%s", "");
    ck_assert(power_sensor_battery(folder, &on_battery) && !on_battery); /* no battery at all */
    put("sys/class/power_supply/BAT0/type", "Battery\n");
    put("sys/class/power_supply/BAT0/status", "Discharging\n");
    ck_assert(power_sensor_battery(folder, &on_battery) && on_battery);
    put("sys/class/power_supply/BAT0/status", "Full\n");
    ck_assert(power_sensor_battery(folder, &on_battery) && !on_battery);
    put("sys/class/power_supply/AC/type", "Mains\n");
    put("sys/class/power_supply/AC/online", "0\n");
    ck_assert(power_sensor_battery(folder, &on_battery) && on_battery);
    put("sys/class/power_supply/AC/online", "1\n");
    put("sys/class/power_supply/BAT0/status", "Discharging\n");
    ck_assert(power_sensor_battery(folder, &on_battery) && !on_battery);
}
END_TEST

START_TEST(the_battery_of_a_mouse_is_not_the_machines)
{
    bool on_battery = true;
    put("sys/class/power_supply/hid-1/type", "Battery\n");
    put("sys/class/power_supply/hid-1/scope", "Device\n");
    put("sys/class/power_supply/hid-1/status", "Discharging\n");
    ck_assert(power_sensor_battery(folder, &on_battery) && !on_battery);
}
END_TEST

START_TEST(the_hottest_zone_counts_and_impossible_ones_do_not)
{
    int32_t celsius = 0;
    ck_assert(!power_sensor_heat(folder, &celsius));
    put("sys/class/thermal/thermal_zone0/temp", "45000\n");
    put("sys/class/thermal/thermal_zone1/temp", "61999\n");
    put("sys/class/thermal/thermal_zone2/temp", "9000000000000\n");
    put("sys/class/thermal/thermal_zone3/temp", "hot\n");
    put("sys/class/thermal/cooling_device0/temp", "99000\n");
    ck_assert(power_sensor_heat(folder, &celsius));
    ck_assert_int_eq(celsius, 61);
}
END_TEST

/* ---------------------------------------------------------------- processes */

static struct process_sensor processes;
static struct idle_terms terms;
static bool has_work;            /* the agent's work is there */
static struct idle_reading last; /* the watch keeps it from look to look, too */

static struct idle_reading look(int64_t now_ns)
{
    process_sensor_look(&processes, now_ns, &terms, has_work, &last);
    return last;
}

static void begin_processes(pid_t self)
{
    terms = (struct idle_terms){.load_milli = 500, .programs = {"steam"}, .program_count = 1};
    process_sensor_init(&processes, folder, self);
    has_work = true;
    last = (struct idle_reading){.sees_input = false};
}

static bool sees_steam(int64_t now_ns)
{
    return strcmp(look(now_ns).program, "steam") == 0;
}

START_TEST(a_quiet_machine_is_not_walked_over)
{
    const long second = sysconf(_SC_CLK_TCK);
    begin_processes(50);
    put_process(1, "init", 0, 0);
    put_process(50, "bourse-provider", 1, 0);
    put("proc/loadavg", "0.00 0.00 0.00 1/426 %d\n", 50);
    put_busy(1000 * second);
    ck_assert(!sees_steam(0));
    put_process(60, "steam", 1, 0); /* by exec, and without a sign of itself */
    ck_assert(!sees_steam(NS));
    ck_assert(!sees_steam(9 * NS));
    ck_assert(sees_steam(10 * NS));
    drop("proc/60/stat");
    ck_assert(!sees_steam(11 * NS)); /* what runs is looked for until it has ended */
    put_process(60, "steam", 1, 0);
    put("proc/loadavg", "0.00 0.00 0.00 1/427 %d\n", 60);
    ck_assert(sees_steam(12 * NS)); /* a process was made */
    drop("proc/60/stat");
    ck_assert(!sees_steam(13 * NS));
    put_process(60, "steam", 1, 0);
    put_busy(1000 * second + second / 10);
    ck_assert(sees_steam(14 * NS)); /* somebody computes */
    process_sensor_fini(&processes);
}
END_TEST

START_TEST(without_work_the_load_needs_no_walk)
{
    const long second = sysconf(_SC_CLK_TCK);
    begin_processes(50);
    terms.program_count = 0;
    put_process(1, "init", 0, 0);
    put_process(50, "bourse-provider", 1, 0);
    put_process(60, "job", 50, 0);
    put_busy(1000 * second);
    (void)look(0);
    has_work = false;
    put_process(60, "job", 50, second / 2); /* the last that the work used */
    put_busy(1000 * second + second / 2);
    ck_assert_int_eq(look(NS).load_milli, 0);
    put_process(60, "job", 50, second); /* no look sees this, because ours have no work */
    put_busy(1000 * second + second);
    const int64_t milli = look(2 * NS).load_milli;
    ck_assert_msg(milli >= 240 && milli <= 250, "%lld", (long long)milli);
    ck_assert_int_eq(processes.quiet.walked_ns, NS);
    has_work = true;
    ck_assert_int_eq(look(3 * NS).load_milli, 0);
    ck_assert_int_eq(processes.quiet.walked_ns, 3 * NS);
    has_work = false;
    (void)look(4 * NS);
    (void)look(13 * NS);
    ck_assert_int_eq(processes.quiet.walked_ns, 4 * NS);
    (void)look(14 * NS);
    ck_assert_int_eq(processes.quiet.walked_ns, 14 * NS);
    process_sensor_fini(&processes);
}
END_TEST

START_TEST(without_work_only_new_processes_are_read)
{
    const long second = sysconf(_SC_CLK_TCK);
    begin_processes(50);
    has_work = false;
    put_process(1, "init", 0, 0);
    put_process(7, "sh", 1, 0);
    put_busy(0);
    ck_assert(!sees_steam(0));
    put_busy(second);
    put_process(7, "steam", 1, 0); /* by exec of a process that was seen: the next walk finds it */
    put_process(60, "sh", 1, 0);
    ck_assert(!sees_steam(NS));
    put_busy(2 * second);
    put_process(60, "steam", 1, 0); /* by exec of a process that is new since the walk */
    ck_assert(sees_steam(2 * NS));
    ck_assert_int_eq(processes.quiet.walked_ns, 0);
    drop("proc/60/stat");
    put_busy(3 * second);
    ck_assert(!sees_steam(3 * NS));
    put_busy(10 * second);
    ck_assert(sees_steam(10 * NS));
    drop("proc/7/stat");
    put_busy(11 * second);
    ck_assert(!sees_steam(11 * NS)); /* what runs is looked for until it has ended */
    process_sensor_fini(&processes);
}
END_TEST

/* The four times of a process follow ten other fields, of which this test writes each once. */
START_TEST(the_load_of_others_is_what_ours_do_not_use)
{
    const long second = sysconf(_SC_CLK_TCK);
    begin_processes(50);
    put_process(1, "init", 0, 0);
    put_process(50, "bourse-provider", 1, 0);
    put_process(60, "bourse-launcher", 50, 0);
    put_process(70, "bwrap", 60, 0);
    put_process(40, "job", 70, 0); /* its number is below that of its parent */
    put_busy(1000 * second);
    ck_assert(look(0).load_milli == 0);
    put_process(40, "job", 70, 3 * second); /* three cores for a second */
    put_busy(1004 * second);                /* and one of somebody else's */
    const struct idle_reading reading = look(NS);
    ck_assert(reading.sees_load);
    ck_assert_msg(reading.load_milli >= 990 && reading.load_milli <= 1000, "%lld",
                  (long long)reading.load_milli);
    process_sensor_fini(&processes);
}
END_TEST

START_TEST(the_load_is_a_mean_over_five_seconds)
{
    const long second = sysconf(_SC_CLK_TCK);
    long busy = 1000 * second;
    begin_processes(50);
    put_process(1, "init", 0, 0);
    for (int i = 0; i <= 20; i++) {
        put_busy(busy);
        (void)look(i * NS / 2);
    }
    busy += 2 * second; /* four cores for half a second */
    put_busy(busy);
    const int64_t milli = look(21 * NS / 2).load_milli;
    ck_assert_msg(milli >= 350 && milli <= 400, "%lld", (long long)milli);
    for (int i = 22; i <= 31; i++) {
        put_busy(busy);
        (void)look(i * NS / 2);
    }
    put_busy(busy);
    ck_assert(look(32 * NS / 2).load_milli == 0);
    process_sensor_fini(&processes);
}
END_TEST

START_TEST(a_listed_program_counts_unless_it_is_ours)
{
    begin_processes(50);
    put_busy(0);
    put_process(1, "init", 0, 0);
    put_process(50, "bourse-provider", 1, 0);
    put_process(60, "steam", 50, 0);
    put_process(61, "steamed", 1, 0);
    ck_assert_str_eq(look(0).program, "");
    put_process(62, "steam", 1, 0);
    ck_assert_str_eq(look(NS).program, "steam");
    process_sensor_fini(&processes);
}
END_TEST

START_TEST(hidden_processes_of_others_are_said)
{
    begin_processes(50);
    put_process(50, "bourse-provider", 1, 0);
    const struct idle_reading reading = look(0);
    ck_assert(!reading.sees_programs);
    ck_assert(!reading.sees_load); /* there is no /proc/stat */
    process_sensor_fini(&processes);
}
END_TEST

START_TEST(hostile_processes_do_no_harm)
{
    char file[128];
    begin_processes(50);
    put_process(1, "init", 0, 0);
    put_process(50, "bourse-provider", 51, 0); /* each is the parent of the other */
    put_process(51, "other", 50, 0);
    put_process(52, "a) S 1 (steam", 1, 0);
    put("proc/53/stat", "%s", "53 (cut");
    put("proc/54/stat", "%s", "54 )backwards( S 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1");
    put("proc/55/stat", "%s", "");
    put("proc/56/stat", "56 (steam) S 1 1 1 0 -1 4194304 1 2 3 4 %s 0 0 0\n",
        "99999999999999999999999999");
    put("proc/99999999999/stat", "%s", "1 (steam) S 1 1");
    put("proc/57x/stat", "%s", "57 (steam) S 1 1");
    (void)snprintf(file, sizeof file, "%s/proc/58", folder);
    ck_assert_int_eq(mkdir(file, 0755), 0);
    (void)snprintf(file, sizeof file, "%s/proc/58/stat", folder);
    ck_assert_int_eq(mkfifo(file, 0644), 0);
    put("proc/stat", "%s", "cpu  99999999999999999999999 1 2 3\n");
    const struct idle_reading reading = look(0);
    ck_assert_str_eq(reading.program, "steam"); /* process 56 has a time beyond all bounds */
    ck_assert(!reading.sees_load);
    put("proc/stat", "cpu  %s 0 0 0 0 0 0\n", "18446744073709551615");
    ck_assert(look(NS).load_milli >= 0);
    put_busy(0); /* counters that go back */
    ck_assert(look(2 * NS).load_milli == 0);
    process_sensor_fini(&processes);
}
END_TEST

START_TEST(files_are_read_up_to_their_bound)
{
    char text[8];
    int64_t number;
    put("proc/long", "%s", "0123456789");
    ck_assert(sensor_file_text(folder, "/proc", "long", text, sizeof text));
    ck_assert_str_eq(text, "0123456");
    ck_assert(!sensor_file_text(folder, "/proc", "none", text, sizeof text));
    ck_assert(!sensor_file_text(folder, "", "proc", text, sizeof text)); /* a folder */
    put("proc/number", "%s", "-12 \n");
    ck_assert(sensor_file_number(folder, "/proc", "number", &number) && number == -12);
    put("proc/number", "%s", "12 apples\n");
    ck_assert(!sensor_file_number(folder, "/proc", "number", &number));
}
END_TEST

SUITE("idle sensors", setup, teardown, TEST(a_terminal_that_is_read_is_input),
      TEST(a_clock_that_is_set_hides_no_input),
      TEST(keyboards_and_mice_on_usb_are_input_and_disks_are_not),
      TEST(interrupts_of_a_built_in_keyboard_are_input),
      TEST(a_machine_without_any_source_of_input_is_said_to_have_none),
      TEST(a_bluetooth_keyboard_is_named_as_unseen), TEST(hostile_sources_of_input_do_no_harm),
      TEST(only_active_people_with_a_seat_are_logged_in),
      TEST(the_battery_counts_when_no_mains_are_there),
      TEST(the_battery_of_a_mouse_is_not_the_machines),
      TEST(the_hottest_zone_counts_and_impossible_ones_do_not),
      TEST(a_quiet_machine_is_not_walked_over), TEST(without_work_the_load_needs_no_walk),
      TEST(without_work_only_new_processes_are_read),
      TEST(the_load_of_others_is_what_ours_do_not_use), TEST(the_load_is_a_mean_over_five_seconds),
      TEST(a_listed_program_counts_unless_it_is_ours), TEST(hidden_processes_of_others_are_said),
      TEST(hostile_processes_do_no_harm), TEST(files_are_read_up_to_their_bound))
