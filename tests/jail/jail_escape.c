/* Programs that try to leave the jail or to exhaust the host. Each runs both ways of fixture.h. */
#include "fixture.h"

#include <pthread.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

START_TEST(files_of_the_host_are_not_there)
{
    struct fixture fixture = fixture_open(_i);
    fixture_tight(PROBE(&fixture, "files", fixture.secret, fixture.folder, BOURSE_SOURCE_DIR));
    fixture_close(&fixture);
}
END_TEST

/* The owner may show more of the system; what he names is there, and nothing beside it. */
START_TEST(no_more_of_the_system_than_programs_need)
{
    struct fixture fixture = fixture_open(_i);
    fixture_tight(PROBE(&fixture, "system"));
    const char *shown =
        access("/usr/share/dict", F_OK) == 0 ? "/usr/share/dict" : "/usr/share/mime";
    const char *const visible[] = {shown, "/usr/share/there-is-none", NULL};
    struct problem problem;
    struct jail_spec spec = fixture_spec(&fixture);
    jail_close(&fixture.jail);
    spec.visible = visible;
    ck_assert_msg(jail_open(fixture.launcher, &spec, &fixture.jail, &problem), "%s", problem.text);
    fixture_tight(PROBE(&fixture, "system", access(shown, F_OK) == 0 ? shown : "/usr/bin"));
    fixture_close(&fixture);
}
END_TEST

/* Files of this machine's /dev that stand for those of a GPU, and that no jail has. */
static const char *const stands_in[] = {"/dev/kmsg",         "/dev/fuse",  "/dev/kvm",
                                        "/dev/loop-control", "/dev/hwrng", "/dev/vhost-net"};

/* /dev has the file of the job's device, and of no other one, and the file cannot be replaced. */
static struct jail_reply look_at_devices(struct fixture *fixture, const char *node)
{
    static const char script[] =
        "for f in /dev/*; do case ${f#/dev/} in null|zero|full|random|urandom|tty|ptmx|pts|shm|fd|"
        "stdin|stdout|stderr|core|console) ;; *) [ \"$f\" = \"$1\" ] || { echo \"GAP $f\"; exit 1; "
        "};; "
        "esac; done; [ -z \"$1\" ] || { [ -c \"$1\" ] && ! rm -f \"$1\" && ! mv /dev/null \"$1\" "
        "&& "
        "! chmod 777 \"$1\" && ! ln -s null /dev/made; } || { echo \"GAP $1\"; exit 1; }";
    const char *const words[] = {"sh", "-c", script, "sh", node, NULL};
    struct jail_request request = {.argv = words, .stdin_fd = -1, .wall_ns = 60 * SECOND};
    struct jail_reply reply;
    jail_run(fixture->jail, &request, &reply);
    return reply;
}

/* Every probe finds the walls of a jail closed when the jail has a device's files, too. The job of
 * a kernel has another program in its jail than that of a plug-in. */
static void probe_with_device(struct fixture *fixture, const struct jail_spec *spec,
                              const char *node)
{
    struct problem problem;
    char pid[16];
    (void)snprintf(pid, sizeof pid, "%d", (int)getpid());
    jail_close(&fixture->jail);
    ck_assert_msg(jail_open(fixture->launcher, spec, &fixture->jail, &problem), "%s", problem.text);
    fixture_tight(look_at_devices(fixture, node));
    if (spec->kernel ==
        NULL) { /* a jail for kernels has /sys/devices/system, and no more of /sys */
        fixture_tight(PROBE(fixture, "files", fixture->secret, fixture->folder, BOURSE_SOURCE_DIR));
    }
    fixture_tight(PROBE(fixture, "system"));
    fixture_tight(PROBE(fixture, "network", fixture->mark));
    fixture_tight(PROBE(fixture, "processes", pid));
    fixture_tight(PROBE(fixture, "namespaces"));
    fixture_tight(PROBE(fixture, "surface"));
    fixture_tight(PROBE(fixture, "self"));
    fixture_ends(PROBE(fixture, "litter"), OUTCOME_OK);
    fixture_tight(PROBE(fixture, "clean", fixture->mark));
    ck_assert_int_eq(fixture_survivors(fixture), 0);
}

START_TEST(the_files_of_a_device_open_nothing_else)
{
    struct fixture fixture = fixture_open(_i);
    const char *nodes[] = {NULL, "/dev/bourse-no-such-device", NULL};
    for (size_t i = 0; nodes[0] == NULL && i < sizeof stands_in / sizeof *stands_in; i++) {
        nodes[0] = access(stands_in[i], F_OK) == 0 ? stands_in[i] : NULL;
    }
    if (nodes[0] == NULL) {
        (void)printf("skipped: /dev has no file that could stand for a device's\n");
        fixture_close(&fixture);
        return;
    }
    fixture_tight(look_at_devices(&fixture, ""));
    const struct jail_kernel kernel = {.path = fixture.kernel, .nodes = nodes};
    struct jail_spec spec = fixture_spec(&fixture);
    spec.kernel = &kernel;
    probe_with_device(&fixture, &spec, nodes[0]);
    nodes[1] = NULL; /* a plug-in needs all of its files */
    const struct jail_plugin plugin = {
        .path = fixture.plugin, .program = "/bin/true", .nodes = nodes};
    spec.kernel = NULL;
    spec.plugin = &plugin;
    probe_with_device(&fixture, &spec, nodes[0]);
    fixture_close(&fixture);
}
END_TEST

START_TEST(no_network_of_any_kind)
{
    struct fixture fixture = fixture_open(_i);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(fixture.mark);
    memcpy(address.sun_path + 1, fixture.mark, length);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&address,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length)),
                     0);
    ck_assert_int_eq(listen(listener, 1), 0);
    fixture_tight(PROBE(&fixture, "network", fixture.mark));
    (void)close(listener);
    fixture_close(&fixture);
}
END_TEST

START_TEST(other_processes_are_out_of_reach)
{
    struct fixture fixture = fixture_open(_i);
    char pid[16];
    (void)snprintf(pid, sizeof pid, "%d", (int)getpid());
    fixture_tight(PROBE(&fixture, "processes", pid));
    ck_assert(jail_noop(fixture.jail)); /* process 1 survived the attempt */
    fixture_close(&fixture);
}
END_TEST

START_TEST(no_namespaces_inside)
{
    struct fixture fixture = fixture_open(_i);
    fixture_tight(PROBE(&fixture, "namespaces"));
    fixture_close(&fixture);
}
END_TEST

START_TEST(the_wide_surface_of_the_kernel_is_closed)
{
    struct fixture fixture = fixture_open(_i);
    fixture_tight(PROBE(&fixture, "surface"));
    fixture_close(&fixture);
}
END_TEST

START_TEST(nothing_of_the_agent_is_inherited)
{
    struct fixture fixture = fixture_open(_i);
    fixture_tight(PROBE(&fixture, "self"));
    fixture_close(&fixture);
}
END_TEST

START_TEST(hostile_variables_stay_with_the_program)
{
    struct fixture fixture = fixture_open(_i);
    static const char *const env[] = {"LD_PRELOAD=/work/evil.so",
                                      "LD_LIBRARY_PATH=/work",
                                      "LD_AUDIT=/work/evil.so",
                                      "GCONV_PATH=/work",
                                      "IFS=/",
                                      "BASH_ENV=/work/evil",
                                      "PATH=/work:/tmp",
                                      NULL};
    struct jail_request request = {.stdin_fd = -1, .env = env};
    fixture_tight(fixture_run(&fixture, request, (const char *const[]){"self", NULL}));
    fixture_tight(PROBE(&fixture, "self"));
    fixture_close(&fixture);
}
END_TEST

static void reopen(struct fixture *fixture, const struct jail_limits *limits)
{
    struct problem problem;
    struct jail_spec spec = fixture_spec(fixture);
    jail_close(&fixture->jail);
    spec.limits = *limits;
    ck_assert_msg(jail_open(fixture->launcher, &spec, &fixture->jail, &problem), "%s",
                  problem.text);
}

START_TEST(a_fork_bomb_ends_at_its_limit)
{
    struct fixture fixture = fixture_open(_i);
    struct jail_request request = {.stdin_fd = -1,
                                   .wall_ns = 3 * SECOND}; /* it goes on until then */
    fixture_ends(fixture_run(&fixture, request, (const char *const[]){"fork-bomb", NULL}),
                 OUTCOME_PROCESS_LIMIT);
    ck_assert_int_eq(fixture_survivors(&fixture), 0);
    fixture_ends(PROBE(&fixture, "fork-many"), OUTCOME_PROCESS_LIMIT);
    ck_assert_int_eq(fixture_survivors(&fixture), 0);
    fixture_tight(PROBE(&fixture, "processes")); /* and the jail is still good */
    fixture_close(&fixture);
}
END_TEST

START_TEST(a_memory_hog_ends_at_its_limit)
{
    struct fixture fixture = fixture_open(_i);
    fixture_ends(PROBE(&fixture, "memory"), OUTCOME_MEMORY_LIMIT);
    fixture_ends(PROBE(&fixture, "memory-at-once"), OUTCOME_MEMORY_LIMIT);
    struct jail_request request = {.stdin_fd = -1, .wall_ns = 60 * SECOND};
    fixture_ends(fixture_run(&fixture, request, (const char *const[]){"memory-together", NULL}),
                 OUTCOME_MEMORY_LIMIT);
    fixture_tight(PROBE(&fixture, "self"));
    fixture_close(&fixture);
}
END_TEST

/* Files live in memory; the room for them is nevertheless no room for memory, nor the other way
 * round. */
START_TEST(room_for_files_is_no_memory)
{
    struct fixture fixture = fixture_open(_i);
    struct jail_limits limits = {
        .memory_bytes = 64 * MIB, .disk_bytes = 512 * MIB, .processes = 16};
    reopen(&fixture, &limits);
    fixture_ends(PROBE(&fixture, "memory-together"), OUTCOME_MEMORY_LIMIT);
    fixture_ends(PROBE(&fixture, "memory-shared"), OUTCOME_MEMORY_LIMIT);
    fixture_tight(PROBE(&fixture, "large-files"));
    fixture_close(&fixture);
}
END_TEST

START_TEST(a_process_limit_is_of_the_programs_own)
{
    struct fixture fixture = fixture_open(_i);
    struct jail_limits limits = {.memory_bytes = 96 * MIB, .disk_bytes = 32 * MIB, .processes = 1};
    reopen(&fixture, &limits);
    fixture_ends(PROBE(&fixture, "fork-once"), OUTCOME_PROCESS_LIMIT);
    fixture_tight(PROBE(&fixture, "self"));
    limits.processes = 2;
    reopen(&fixture, &limits);
    fixture_tight(PROBE(&fixture, "fork-once"));
    fixture_close(&fixture);
}
END_TEST

START_TEST(a_disk_filler_ends_at_its_limit)
{
    struct fixture fixture = fixture_open(_i);
    fixture_ends(PROBE(&fixture, "disk", "/work/file"), OUTCOME_DISK_LIMIT);
    fixture_ends(PROBE(&fixture, "disk", "/tmp/file"), OUTCOME_DISK_LIMIT);
    fixture_ends(PROBE(&fixture, "disk", "/dev/shm/file"), OUTCOME_DISK_LIMIT);
    fixture_ends(PROBE(&fixture, "many-files"), OUTCOME_DISK_LIMIT);
    fixture_tight(PROBE(&fixture, "clean", fixture.mark));
    fixture_close(&fixture);
}
END_TEST

/* A second jail of the same user hoards descriptors in flight; the first must still take inputs. */
static void *hoard(void *context)
{
    struct fixture *other = context;
    struct jail_request request = {.stdin_fd = -1};
    struct jail_reply reply = fixture_run(other, request, (const char *const[]){"in-flight", NULL});
    ck_assert_int_eq(reply.outcome, OUTCOME_CANCELLED);
    jail_reply_fini(&reply);
    return NULL;
}

START_TEST(descriptors_in_flight_of_one_jail_do_not_stop_another)
{
    struct fixture fixture = fixture_open(_i);
    struct fixture other = fixture;
    struct jail_spec spec = fixture_spec(&fixture);
    struct problem problem;
    pthread_t thread;
    spec.name = "lane-1";
    ck_assert_msg(jail_open(fixture.launcher, &spec, &other.jail, &problem), "%s", problem.text);
    ck_assert_int_eq(pthread_create(&thread, NULL, hoard, &other), 0);
    for (int i = 0; i < 100; i++) {
        fixture_tight(PROBE(&fixture, "clean", fixture.mark));
    }
    jail_cancel(other.jail, OUTCOME_CANCELLED);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    jail_close(&other.jail);
    fixture_close(&fixture);
}
END_TEST

START_TEST(descriptors_are_limited)
{
    struct fixture fixture = fixture_open(_i);
    fixture_tight(PROBE(&fixture, "descriptors"));
    fixture_close(&fixture);
}
END_TEST

START_TEST(an_endless_loop_ends_by_cpu_time_and_by_wall_time)
{
    struct fixture fixture = fixture_open(_i);
    struct jail_request cpu = {.stdin_fd = -1, .cpu_ns = SECOND / 5};
    struct jail_request wall = {.stdin_fd = -1, .wall_ns = SECOND / 5};
    const char *const spin[] = {"spin", NULL};
    const char *const ignore[] = {"ignore", NULL};
    struct jail_reply reply = fixture_run(&fixture, cpu, spin);
    ck_assert_int_ge(reply.cpu_ns, (int64_t)(SECOND / 10));
    fixture_ends(reply, OUTCOME_CPU_LIMIT);
    fixture_ends(fixture_run(&fixture, wall, spin), OUTCOME_TIME_LIMIT);
    fixture_ends(fixture_run(&fixture, wall, ignore), OUTCOME_TIME_LIMIT);
    ck_assert_int_eq(fixture_survivors(&fixture), 0);
    fixture_close(&fixture);
}
END_TEST

START_TEST(a_daemon_does_not_outlive_its_subtask)
{
    struct fixture fixture = fixture_open(_i);
    fixture_ends(PROBE(&fixture, "detach"), OUTCOME_OK);
    ck_assert_int_eq(fixture_survivors(&fixture), 0);
    fixture_tight(PROBE(&fixture, "processes"));
    fixture_close(&fixture);
}
END_TEST

START_TEST(a_subtask_finds_nothing_of_the_one_before)
{
    struct fixture fixture = fixture_open(_i);
    fixture_ends(PROBE(&fixture, "litter"), OUTCOME_OK);
    fixture_tight(PROBE(&fixture, "clean", fixture.mark));
    fixture_close(&fixture);
}
END_TEST

START_TEST(outputs_are_plain_files_beneath_the_work_folder)
{
    static const char *const names[] = {"link",   "folder-link/bin/env", "pipe",   "folder",
                                        "device", "unreadable",          "socket", "nothing"};
    struct fixture fixture = fixture_open(_i);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct jail_request request = {.stdin_fd = -1, .outputs = &names[i], .output_count = 1};
        fixture_ends(
            fixture_run(&fixture, request, (const char *const[]){"outputs", "/etc/passwd", NULL}),
            OUTCOME_OUTPUT_MISSING);
    }
    static const char *const refused[] = {"../plain", "/etc/passwd", "a/../../plain",
                                          "",         "a//b",        "."};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct jail_request request = {.stdin_fd = -1, .outputs = &refused[i], .output_count = 1};
        fixture_ends(fixture_run(&fixture, request, (const char *const[]){"outputs", "x", NULL}),
                     OUTCOME_REFUSED);
    }
    static const char *const plain[] = {"plain"};
    struct jail_request small = {
        .stdin_fd = -1, .outputs = plain, .output_count = 1, .output_bytes = MIB - 1};
    fixture_ends(fixture_run(&fixture, small, (const char *const[]){"outputs", "x", NULL}),
                 OUTCOME_OUTPUT_LIMIT);
    small.output_bytes = MIB;
    struct jail_reply reply =
        fixture_run(&fixture, small, (const char *const[]){"outputs", "x", NULL});
    ck_assert_uint_eq(reply.output_count, 1);
    ck_assert_uint_eq(reply.outputs[0].size, MIB);
    fixture_ends(reply, OUTCOME_OK);
    fixture_close(&fixture);
}
END_TEST

/* The launcher sees the end of file of a dead agent, and every jail goes with it. */
START_TEST(a_killed_agent_takes_its_jails_along)
{
    int ready[2];
    struct fixture seen;
    ck_assert_int_eq(pipe(ready), 0);
    pid_t agent = fork();
    if (agent == 0) {
        struct fixture own = fixture_open(_i);
        ck_assert_int_eq(write(ready[1], &own, sizeof own), (int)sizeof own);
        fixture_ends(PROBE(&own, "spin"), OUTCOME_OK); /* never comes back */
        _exit(1);
    }
    ck_assert_int_eq(read(ready[0], &seen, sizeof seen), (int)sizeof seen);
    const struct timespec pause = {.tv_nsec = 2000000};
    int tries = 0;
    while (fixture_survivors(&seen) == 0 && tries++ < 30000) {
        (void)nanosleep(&pause, NULL); /* other processes offer no event to wait for */
    }
    ck_assert_int_eq(fixture_survivors(&seen), 1);
    ck_assert_int_eq(kill(agent, SIGKILL), 0);
    ck_assert_int_eq(waitpid(agent, NULL, 0), agent);
    for (tries = 0; fixture_survivors(&seen) != 0 && tries < 30000; tries++) {
        (void)nanosleep(&pause, NULL);
    }
    ck_assert_int_eq(fixture_survivors(&seen), 0);
    (void)unlink(seen.worker);
    (void)unlink(seen.secret);
    (void)rmdir(seen.folder);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        files_of_the_host_are_not_there,
        no_more_of_the_system_than_programs_need,
        the_files_of_a_device_open_nothing_else,
        no_network_of_any_kind,
        other_processes_are_out_of_reach,
        no_namespaces_inside,
        the_wide_surface_of_the_kernel_is_closed,
        nothing_of_the_agent_is_inherited,
        hostile_variables_stay_with_the_program,
        a_fork_bomb_ends_at_its_limit,
        a_memory_hog_ends_at_its_limit,
        room_for_files_is_no_memory,
        a_process_limit_is_of_the_programs_own,
        a_disk_filler_ends_at_its_limit,
        descriptors_are_limited,
        descriptors_in_flight_of_one_jail_do_not_stop_another,
        an_endless_loop_ends_by_cpu_time_and_by_wall_time,
        a_daemon_does_not_outlive_its_subtask,
        a_subtask_finds_nothing_of_the_one_before,
        outputs_are_plain_files_beneath_the_work_folder,
        a_killed_agent_takes_its_jails_along,
    };
    return fixture_main("jail_escape", tests, sizeof tests / sizeof *tests);
}
