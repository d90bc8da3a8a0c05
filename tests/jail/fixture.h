/* tests/jail/fixture.h - a launcher and a jail for each test, in two ways: as a service user
 * that root dropped to, with control groups, and as an ordinary user without any.
 *
 * Check runs every test in a process of its own, so that a test may drop its rights for good. */
#ifndef BOURSE_TESTS_JAIL_FIXTURE_H
#define BOURSE_TESTS_JAIL_FIXTURE_H

#include "provider/jail/cgroup.h"
#include "provider/jail/isolation.h"
#include "provider/jail/jail.h"
#include "provider/jail/launcher.h"
#include "provider/privilege.h"
#include "runtime/process.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

enum way { WAY_SERVICE, WAY_ORDINARY, WAYS }; /* the first needs root */

#define MIB (UINT64_C(1) << 20)
#define SECOND UINT64_C(1000000000)

/* The program's own folder, which has a folder for each test. The first process of the program
 * removes it in the end, with what a failed test left. */
static char fixture_root[] = "/tmp/bourse-jail-XXXXXX";

struct fixture {
    char folder[64];
    char worker[96];
    char tensor[96]; /* bourse-tensor; only jails that ask for it have it */
    char kernel[96]; /* likewise bourse-kernel */
    char plugin[96]; /* likewise bourse-plugin */
    char wasm[96];   /* likewise bourse-wasm.cjs */
    char secret[96]; /* a file of the same user, outside */
    char mark[16];   /* the probe's name in this test: its processes are known by it */
    int probe;
    struct cgroups *cgroups;
    struct launcher *launcher;
    struct jail *jail;
};

static inline bool fixture_possible(enum way way)
{
    return way == WAY_ORDINARY || getuid() == 0;
}

static inline bool fixture_prepare(struct fixture *fixture, enum way way, struct problem *problem)
{
    *fixture = (struct fixture){.probe = open(BOURSE_BIN_DIR "/jail-probe", O_RDONLY | O_CLOEXEC)};
    (void)snprintf(fixture->folder, sizeof fixture->folder, "%s/XXXXXX", fixture_root);
    (void)snprintf(fixture->mark, sizeof fixture->mark, "pr%d", (int)getpid());
    problem_set(problem, "no folder or no probe");
    if (fixture->probe < 0 || mkdtemp(fixture->folder) == NULL) {
        return false;
    }
    (void)snprintf(fixture->worker, sizeof fixture->worker, "%s/worker", fixture->folder);
    (void)snprintf(fixture->secret, sizeof fixture->secret, "%s/secret", fixture->folder);
    uid_t uid = getuid();
    gid_t gid = getgid();
    bool root = uid == 0;
    if (root &&
        !(privilege_user("nobody", &uid, &gid, problem) && chown(fixture->folder, uid, gid) == 0)) {
        return false;
    }
    if (way == WAY_SERVICE) {
        /* The tests run on rlimits where no hierarchy may be written (a container). */
        (void)cgroups_open(NULL, fixture->mark, uid, gid, &fixture->cgroups, problem);
    }
    (void)snprintf(fixture->tensor, sizeof fixture->tensor, "%s/tensor", fixture->folder);
    (void)snprintf(fixture->kernel, sizeof fixture->kernel, "%s/kernel", fixture->folder);
    (void)snprintf(fixture->plugin, sizeof fixture->plugin, "%s/plugin", fixture->folder);
    (void)snprintf(fixture->wasm, sizeof fixture->wasm, "%s/wasm", fixture->folder);
    if (!jail_install_worker(BOURSE_BIN_DIR "/bourse-worker", fixture->worker,
                             root ? uid : (uid_t)-1, problem) ||
        !jail_install_worker(BOURSE_BIN_DIR "/bourse-tensor", fixture->tensor,
                             root ? uid : (uid_t)-1, problem) ||
        !jail_install_worker(BOURSE_BIN_DIR "/bourse-kernel", fixture->kernel,
                             root ? uid : (uid_t)-1, problem) ||
        !jail_install_worker(BOURSE_BIN_DIR "/bourse-plugin", fixture->plugin,
                             root ? uid : (uid_t)-1, problem) ||
        !jail_install_worker(BOURSE_BIN_DIR "/bourse-wasm.cjs", fixture->wasm,
                             root ? uid : (uid_t)-1, problem) ||
        (root && !privilege_drop(uid, gid, problem))) {
        return false;
    }
    (void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); /* for the leak checker, which attaches to itself */
    int secret = open(fixture->secret, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    (void)close(secret);
    return setenv("BOURSE_SECRET", "1", 1) == 0 && launcher_start(&fixture->launcher, problem);
}

static inline struct jail_spec fixture_spec(const struct fixture *fixture)
{
    return (struct jail_spec){.worker_path = fixture->worker,
                              .name = "lane-0",
                              .limits = {.memory_bytes = 96 * MIB,
                                         .disk_bytes = 32 * MIB,
                                         .processes = 16,
                                         .cpu_milli = 2000},
                              .cgroups = fixture->cgroups};
}

static inline struct fixture fixture_open(int way)
{
    struct fixture fixture;
    struct problem problem;
    ck_assert_msg(process_start(&problem), "%s", problem.text);
    ck_assert_msg(fixture_prepare(&fixture, (enum way)way, &problem), "%s", problem.text);
    struct jail_spec spec = fixture_spec(&fixture);
    ck_assert_msg(jail_open(fixture.launcher, &spec, &fixture.jail, &problem), "%s", problem.text);
    return fixture;
}

/* Processes on this machine that carry the mark of this test. */
static inline int fixture_survivors(const struct fixture *fixture)
{
    int count = 0;
    DIR *proc = opendir("/proc");
    for (struct dirent *entry = NULL; proc != NULL && (entry = readdir(proc)) != NULL;) {
        char path[300];
        char name[32] = "";
        (void)snprintf(path, sizeof path, "/proc/%s/comm", entry->d_name);
        int file = open(path, O_RDONLY | O_CLOEXEC);
        if (file >= 0 && read(file, name, sizeof name - 1) > 0) {
            name[strcspn(name, "\n")] = '\0';
            count += strcmp(name, fixture->mark) == 0;
        }
        if (file >= 0) {
            (void)close(file);
        }
    }
    if (proc != NULL) {
        (void)closedir(proc);
    }
    return count;
}

static inline int fixture_remove_one(const char *path, const struct stat *status, int type,
                                     struct FTW *place)
{
    (void)status, (void)type, (void)place;
    (void)remove(path);
    return 0;
}

/* Removes a folder with all that is in it. */
static inline void fixture_remove(const char *path)
{
    (void)nftw(path, fixture_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Closes everything and makes sure that the host is calm: nothing of the test is left running, and
 * nothing in its folder. */
static inline void fixture_close(struct fixture *fixture)
{
    jail_close(&fixture->jail);
    ck_assert_int_eq(fixture_survivors(fixture), 0);
    launcher_stop(&fixture->launcher);
    cgroups_close(&fixture->cgroups);
    (void)unlink(fixture->worker);
    (void)unlink(fixture->tensor);
    (void)unlink(fixture->kernel);
    (void)unlink(fixture->plugin);
    (void)unlink(fixture->wasm);
    (void)unlink(fixture->secret);
    ck_assert_msg(rmdir(fixture->folder) == 0, "the test leaves files: %s", strerror(errno));
    (void)close(fixture->probe);
}

/* Runs the probe, whose name in the jail is its mark, with at most three arguments. */
static inline struct jail_reply fixture_run(struct fixture *fixture, struct jail_request request,
                                            const char *const *arguments)
{
    char program[32];
    const char *argv[8] = {program};
    size_t count = 1;
    for (; *arguments != NULL; arguments++) {
        ck_assert_uint_lt(count, 7);
        argv[count++] = *arguments;
    }
    struct stat status;
    ck_assert_int_eq(fstat(fixture->probe, &status), 0);
    (void)snprintf(program, sizeof program, "./%s", fixture->mark);
    struct jail_input input = {.name = fixture->mark,
                               .fd = fixture->probe,
                               .size = (uint64_t)status.st_size,
                               .executable = true};
    request.argv = argv;
    request.inputs = &input;
    request.input_count = 1;
    request.wall_ns = request.wall_ns != 0 ? request.wall_ns : 300 * SECOND;
    struct jail_reply reply;
    jail_run(fixture->jail, &request, &reply);
    return reply;
}

#define PROBE(fixture, ...)                                                                        \
    fixture_run((fixture), (struct jail_request){.stdin_fd = -1},                                  \
                (const char *const[]){__VA_ARGS__, NULL})

static inline const char *fixture_output(const struct jail_output *output, char *ret_text,
                                         size_t capacity)
{
    ssize_t length = output->fd >= 0 ? pread(output->fd, ret_text, capacity - 1, 0) : 0;
    ret_text[length > 0 ? length : 0] = '\0';
    return ret_text;
}

/* A probe that looks for gaps found none. */
static inline void fixture_tight(struct jail_reply reply)
{
    char text[4096];
    ck_assert_msg(reply.outcome == OUTCOME_OK, "outcome %d (%s): %s", reply.outcome, reply.detail,
                  fixture_output(&reply.standard_output, text, sizeof text));
    jail_reply_fini(&reply);
}

static inline void fixture_ends(struct jail_reply reply, enum result_outcome outcome)
{
    ck_assert_msg(reply.outcome == outcome, "outcome %d instead of %d: %s", reply.outcome, outcome,
                  reply.detail);
    jail_reply_fini(&reply);
}

/* 77 when this machine cannot jail at all, with the reason; else 0. */
static inline int fixture_skip(void)
{
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        struct fixture fixture;
        struct problem problem;
        struct isolation isolation = {0};
        if (!process_start(&problem) || !fixture_prepare(&fixture, WAY_ORDINARY, &problem)) {
            (void)fprintf(stderr, "cannot prepare: %s\n", problem.text);
            _exit(1);
        }
        isolation_probe(fixture.launcher, fixture.worker, NULL, &isolation);
        if (isolation.level == 0) {
            (void)printf("skipped: %s\n", isolation.refusal);
        }
        (void)fflush(NULL);
        _exit(isolation.level == 0 ? 77 : 0);
    }
    int status = 0;
    (void)waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* Makes the program's folder. Returns 77 when this machine cannot jail at all, 1 when something
 * else is wrong, and else 0. */
static inline int fixture_start(void)
{
    if (mkdtemp(fixture_root) == NULL || chmod(fixture_root, 01777) != 0) {
        (void)fprintf(stderr, "%s: %s\n", fixture_root, strerror(errno));
        return 1;
    }
    int skip = fixture_skip();
    if (skip != 0) {
        fixture_remove(fixture_root);
    }
    return skip;
}

/* All tests, in each way that is possible here; the exit status of the program. */
static inline int fixture_main(const char *name, const TTest *const *tests, size_t count)
{
    int skip = fixture_start();
    if (skip != 0) {
        return skip;
    }
    Suite *suite = suite_create(name);
    TCase *tcase = tcase_create(name);
    int first = fixture_possible(WAY_SERVICE) ? WAY_SERVICE : WAY_ORDINARY;
    tcase_set_timeout(tcase, 120);
    for (size_t i = 0; i < count; i++) {
        tcase_add_loop_test(tcase, tests[i], first, WAYS);
    }
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    fixture_remove(fixture_root);
    return failed == 0 ? 0 : 1;
}

#endif
