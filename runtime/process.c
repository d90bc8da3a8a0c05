#include "runtime/process.h"

#include "base/text.h"

#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <malloc.h>
#include <sched.h>
#include <sodium.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    KEPT_ALLOCATION_BYTES = 8 << 20, /* smaller allocations come from kept memory */
    KEPT_BYTES = 32 << 20,           /* kept at the end of each of malloc's arenas */
    YIELDED_NICE = 10,               /* of threads that leave the processors to others */
};

/* Sets the limit of core dumps to one byte, not 0. The kernel ignores the limit when cores go to a
 * program, except the value 1. A file of one byte is too small for any core. PR_SET_DUMPABLE would
 * do more, but it removes the process's own /proc files, which the jail needs to map its users. */
static bool forbid_cores(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_CORE, &limit) != 0) {
        return false;
    }
    limit.rlim_cur = limit.rlim_max < 1 ? limit.rlim_max : 1;
    limit.rlim_max = limit.rlim_cur;
    return setrlimit(RLIMIT_CORE, &limit) == 0;
}

/* Blob messages have megabytes. If their memory went back to the kernel each time, every page would
 * be made anew, which costs as much as the copying. */
static void keep_freed_memory(void)
{
    (void)mallopt(M_MMAP_THRESHOLD, KEPT_ALLOCATION_BYTES); /* a failure only makes it slower */
    (void)mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
}

bool process_start(struct problem *ret_problem)
{
    keep_freed_memory();
    (void)umask(077);
    if (sodium_init() < 0) {
        problem_set(ret_problem, "the system gives no random numbers; libsodium cannot start");
        return false;
    }
    if (!forbid_cores()) {
        problem_set(ret_problem, "core dumps cannot be switched off: %s", strerror(errno));
        return false;
    }
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    if (sigaction(SIGPIPE, &ignore, NULL) != 0) {
        problem_set(ret_problem, "SIGPIPE cannot be ignored: %s", strerror(errno));
        return false;
    }
    return true;
}

bool process_open_files(unsigned least, unsigned most, struct problem *ret_problem)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        problem_set(ret_problem, "the limit of open files cannot be read: %s", strerror(errno));
        return false;
    }
    if (limit.rlim_max < least) {
        problem_set(ret_problem,
                    "%llu open files are allowed here, and %u are needed at least: raise the limit "
                    "(ulimit -Hn, or LimitNOFILE= of the service)",
                    (unsigned long long)limit.rlim_max, least);
        return false;
    }
    limit.rlim_cur = limit.rlim_max < most ? limit.rlim_max : most;
    (void)setrlimit(RLIMIT_NOFILE, &limit); /* every process may raise it to the hard limit */
    return true;
}

int process_signals(void)
{
    sigset_t ends;
    (void)sigemptyset(&ends);
    (void)sigaddset(&ends, SIGINT);
    (void)sigaddset(&ends, SIGTERM);
    (void)sigaddset(&ends, SIGHUP);
    if (pthread_sigmask(SIG_BLOCK, &ends, NULL) != 0) {
        return -1;
    }
    return signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
}

void process_name_thread(const char *name)
{
    (void)prctl(PR_SET_NAME, name, 0, 0, 0); /* a longer name is cut */
}

static bool is_called(const char *task, const char *name)
{
    char path[64];
    char found[32] = "";
    (void)snprintf(path, sizeof path, "/proc/self/task/%.20s/comm", task);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return false; /* the thread has ended */
    }
    bool is_read = fgets(found, sizeof found, file) != NULL;
    (void)fclose(file);
    found[strcspn(found, "\n")] = '\0';
    return is_read && strcmp(found, name) == 0;
}

/* The struct is that of sched_setattr(2), whose header conflicts with the C library's. */
struct scheduling {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t slice_ns, deadline_ns, period_ns;
};

/* The niceness belongs to a thread in Linux, and is set by its number. Kernels since 6.12 also take
 * a short slice: a thread that wakes up does not wait for the end of a long one. */
static bool yield_thread(pid_t thread)
{
    const struct scheduling attributes = {
        .size = sizeof attributes, .policy = SCHED_OTHER, .nice = YIELDED_NICE, .slice_ns = 100000};
    return syscall(SYS_sched_setattr, thread, &attributes, 0) == 0;
}

unsigned process_yield_threads(const char *name)
{
    unsigned count = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (const struct dirent *task; tasks != NULL && (task = readdir(tasks)) != NULL;) {
        if (is_called(task->d_name, name) && yield_thread((pid_t)strtoul(task->d_name, NULL, 10))) {
            count++;
        }
    }
    if (tasks != NULL) {
        (void)closedir(tasks);
    }
    return count;
}

bool process_folder(char *ret_path, size_t capacity)
{
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length <= 0) {
        return false;
    }
    path[length] = '\0';
    char *slash = strrchr(path, '/');
    if (slash == NULL) {
        return false;
    }
    size_t folder_length = slash == path ? 1 : (size_t)(slash - path);
    if (folder_length >= capacity) {
        return false;
    }
    memcpy(ret_path, path, folder_length);
    ret_path[folder_length] = '\0';
    return true;
}

bool process_helper(const char *name, char *ret_path, size_t capacity)
{
    static const char *const places[] = {"", "/../libexec/bourse"};
    char folder[PATH_MAX];
    if (!process_folder(folder, sizeof folder)) {
        return false;
    }
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        int written = snprintf(ret_path, capacity, "%s%s/%s", folder, places[i], name);
        if (written > 0 && (size_t)written < capacity && access(ret_path, R_OK) == 0) {
            return true;
        }
    }
    return false;
}

static const char *name_of(const struct option *options, int value)
{
    for (const struct option *option = options; option->name != NULL; option++) {
        if (option->val == value) {
            return option->name;
        }
    }
    return "?";
}

void process_say_wrong_option(const char *program, int found, const char *word,
                              const struct option *options)
{
    enum { OPTIONS_MOST = 64, NAME_SIZE = 64 };
    const char *names[OPTIONS_MOST];
    char bare[NAME_SIZE];
    size_t count = 0;
    if (found == ':') {
        (void)fprintf(stderr, "%s: --%s needs a value; `%s --help` says which\n", program,
                      name_of(options, optopt), program);
        return;
    }
    while (count < OPTIONS_MOST && options[count].name != NULL) {
        names[count] = options[count].name;
        count++;
    }
    (void)snprintf(bare, sizeof bare, "%.*s", (int)strcspn(word, "="), word);
    const bool is_long = strncmp(bare, "--", 2) == 0;
    const char *near = is_long ? text_nearest(bare + 2, names, count) : NULL;
    if (near != NULL && strcmp(near, bare + 2) == 0) {
        (void)fprintf(stderr, "%s: --%s takes no value; leave out '%.64s'\n", program, near,
                      word + strcspn(word, "="));
    } else if (near != NULL) {
        (void)fprintf(stderr, "%s: there is no option '%s'; did you mean --%s?\n", program, bare,
                      near);
    } else {
        (void)fprintf(stderr, "%s: there is no option '%.64s'; `%s --help` lists the options\n",
                      program, word, program);
    }
}
