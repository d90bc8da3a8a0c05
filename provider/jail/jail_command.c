/* provider/jail/jail_command.c makes bwrap's arguments, which define what a job finds around
 * itself. bubblewrap defines no policy; these lines are the policy. */
#include "provider/jail/jail_internal.h"
#include "provider/jail/seccomp.h"
#include "provider/jail/system_tree.h"
#include "provider/tensor/ask.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { JAIL_USER = 1000 };
static const char passwd_text[] = "job:x:1000:1000:job:/work:/bin/sh\n"
                                  "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n";
static const char group_text[] = "job:x:1000:\nnogroup:x:65534:\n";

static void add(struct jail_command *command, const char *const *texts)
{
    for (; *texts != NULL && command->count < LAUNCHER_ARGUMENTS; texts++) {
        command->argv[command->count++] = *texts;
    }
    command->is_cut = command->is_cut || *texts != NULL;
    command->argv[command->count] = NULL;
}
#define ADD(command, ...) add((command), (const char *const[]){__VA_ARGS__, NULL})

static __attribute__((format(printf, 2, 3))) const char *text(struct jail_command *command,
                                                              const char *format, ...)
{
    if (command->text_count == COMMAND_TEXTS) {
        command->is_cut = true;
        return "";
    }
    char *place = command->texts[command->text_count++];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(place, sizeof command->texts[0], format, arguments);
    va_end(arguments);
    return place;
}

/* Finds bwrap. A setuid bwrap would run with more rights than we have, and its authors withdrew
 * that mode. */
static const char *find_bwrap(struct problem *ret_problem)
{
    static const char *const places[] = {"/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        struct stat status;
        if (stat(places[i], &status) != 0) {
            continue;
        }
        if ((status.st_mode & (S_ISUID | S_ISGID)) != 0) {
            problem_set(ret_problem,
                        "%s is setuid: remove the bit (chmod u-s), user namespaces do without",
                        places[i]);
            return NULL;
        }
        return places[i];
    }
    problem_set(ret_problem, "bwrap is not installed (Debian package bubblewrap)");
    return NULL;
}

static void add_shown(struct jail_command *command, const char *const *paths)
{
    for (; paths != NULL && *paths != NULL; paths++) {
        ADD(command, "--ro-bind-try", *paths, *paths);
    }
}

/* The jail has the same links into /usr as the host. Folders of the host are bound. */
static void add_host_tree(struct jail_command *command, const char *const *visible)
{
    static const char *const names[] = {"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"};
    add_shown(command, system_shown());
    add_shown(command, visible);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char target[128];
        struct stat status;
        if (lstat(names[i], &status) != 0) {
            continue;
        }
        if (!S_ISLNK(status.st_mode)) {
            ADD(command, "--ro-bind", names[i], names[i]);
            continue;
        }
        ssize_t length = readlink(names[i], target, sizeof target - 1);
        if (length > 0) {
            target[length] = '\0';
            ADD(command, "--symlink", text(command, "%s", target), names[i]);
        }
    }
    ADD(command, "--dir", "/etc");
    ADD(command, "--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache");
    ADD(command, "--ro-bind-try", "/etc/alternatives", "/etc/alternatives");
    ADD(command, "--ro-bind-data", text(command, "%d", 3 + COMMAND_PASSWD), "/etc/passwd");
    ADD(command, "--ro-bind-data", text(command, "%d", 3 + COMMAND_GROUP), "/etc/group");
}

/* A path under one of bwrap's mounts is out of reach. A device cannot be opened there. */
static void add_masks(struct jail_command *command)
{
    size_t index = 0;
    bool is_folder;
    for (const char *path; (path = system_mask(&index, &is_folder)) != NULL;) {
        if (is_folder) {
            ADD(command, "--size", "4096", "--tmpfs", path, "--remount-ro", path);
        } else {
            ADD(command, "--ro-bind", "/dev/null", path);
        }
    }
}

bool jail_has_resident(const struct jail_spec *spec)
{
    return spec->kernel != NULL || spec->plugin != NULL || spec->tensor_path != NULL ||
           spec->model != NULL;
}

/* Returns our own program of such a jail beside the worker, or NULL. The program is the one that
 * stays in the jail, or the script or the program that runs modules. *ret_target is its place in
 * the jail. */
static const char *helper_path(const struct jail_spec *spec, const char **ret_target)
{
    const struct {
        const char *path, *target;
    } helpers[] = {
        {spec->kernel != NULL ? spec->kernel->path : NULL, KERNEL_PROGRAM},
        {spec->plugin != NULL ? spec->plugin->path : NULL, PLUGIN_HELPER},
        {spec->tensor_path, TENSOR_PROGRAM},
        {spec->model != NULL ? spec->model->path : NULL, ONNX_PROGRAM},
        {spec->wasm_host, WASM_HOST},
        {spec->wasm_runner, WASM_RUNNER},
    };
    for (size_t i = 0; i < sizeof helpers / sizeof helpers[0]; i++) {
        *ret_target = helpers[i].target;
        if (helpers[i].path != NULL) {
            return helpers[i].path;
        }
    }
    return NULL;
}

static void add_nodes(struct jail_command *command, const char *const *nodes)
{
    for (; nodes != NULL && *nodes != NULL; nodes++) {
        ADD(command, "--dev-bind-try", *nodes, *nodes);
    }
}

/* Shows what an OpenCL library reads of the machine, and the device's own files. */
static void add_kernel(struct jail_command *command, const struct jail_kernel *kernel)
{
    static const char *const headers[] = {"/usr/share/pocl", "/usr/share/clc", NULL};
    add_shown(command, headers);
    ADD(command, "--ro-bind-try", "/etc/OpenCL", "/etc/OpenCL");
    ADD(command, "--ro-bind-try", "/sys/devices/system", "/sys/devices/system");
    add_nodes(command, kernel->nodes);
    if (kernel->pocl_devices != NULL) {
        ADD(command, "--setenv", KERNEL_POCL_DEVICES, kernel->pocl_devices);
    }
}

static void add_plugin(struct jail_command *command, const struct jail_plugin *plugin)
{
    for (const char *const *node = plugin->nodes; node != NULL && *node != NULL; node++) {
        ADD(command, "--dev-bind", *node, *node);
    }
}

/* Shows what the drivers of graphics processors read of the machine, too, when an execution
 * provider computes. */
static void add_model(struct jail_command *command, const struct jail_model *model)
{
    static const char *const drivers[] = {"/usr/share/vulkan", "/etc/vulkan", "/etc/OpenCL", NULL};
    ADD(command, "--ro-bind-try", "/sys/devices/system", "/sys/devices/system");
    if (model->settings != NULL) {
        add_shown(command, drivers);
        add_nodes(command, model->nodes);
    }
    if (model->library != NULL) {
        ADD(command, "--ro-bind", model->library, ONNX_LIBRARY);
    }
}

static void add_folders(struct jail_command *command, const struct jail_spec *spec)
{
    const char *size = text(command, "%llu", (unsigned long long)spec->limits.disk_bytes);
    ADD(command, "--proc", "/proc", "--dev", "/dev");
    add_masks(command);
    if (spec->kernel != NULL) {
        add_kernel(command, spec->kernel);
    }
    if (spec->plugin != NULL) {
        add_plugin(command, spec->plugin);
    }
    if (spec->model != NULL) {
        add_model(command, spec->model);
    }
    ADD(command, "--size", size, "--tmpfs", "/dev/shm", "--size", size, "--tmpfs", "/tmp");
    if (spec->bind_path != NULL) {
        ADD(command, "--bind", spec->bind_path, "/work");
    } else {
        ADD(command, "--size", size, "--tmpfs", "/work");
    }
    /* The worker is a copy, not a bind. With a bind, the list of mounts would show the job where
     * the owner's folders are. */
    ADD(command, "--perms", "0555", "--ro-bind-data", text(command, "%d", 3 + COMMAND_WORKER),
        "/.bourse-worker");
    const char *target;
    if (helper_path(spec, &target) != NULL) {
        ADD(command, "--perms", "0555", "--ro-bind-data", text(command, "%d", 3 + COMMAND_HELPER),
            target);
    }
    if (spec->plugin != NULL) {
        ADD(command, "--perms", "0555", "--ro-bind-data", text(command, "%d", 3 + COMMAND_OWNER),
            PLUGIN_PROGRAM);
    }
    if (spec->model != NULL && spec->model->settings != NULL) {
        ADD(command, "--perms", "0444", "--ro-bind-data", text(command, "%d", 3 + COMMAND_OWNER),
            ONNX_SETTINGS);
    }
    /* bwrap's own tmpfs is writable without a size limit, so it becomes read-only. */
    ADD(command, "--remount-ro", "/dev", "--remount-ro", "/");
}

static int memory_file(const char *name, const char *content)
{
    int file = memfd_create(name, MFD_CLOEXEC);
    size_t length = strlen(content);
    if (file >= 0 &&
        (write(file, content, length) != (ssize_t)length || lseek(file, 0, SEEK_SET) != 0)) {
        (void)close(file);
        return -1;
    }
    return file;
}

/* Makes the files of every jail. `program` is the first program that runs in the jail. */
static bool make_common(struct jail_command *command, bool memory_files, const char *program,
                        struct problem *ret_problem)
{
    command->files[COMMAND_FILTER] = seccomp_profile(memory_files, ret_problem);
    if (command->files[COMMAND_FILTER] < 0) {
        return false;
    }
    command->files[COMMAND_PASSWD] = memory_file("passwd", passwd_text);
    command->files[COMMAND_GROUP] = memory_file("group", group_text);
    if (command->files[COMMAND_PASSWD] < 0 || command->files[COMMAND_GROUP] < 0) {
        problem_set(ret_problem, "cannot make the jail's files: %s", strerror(errno));
        return false;
    }
    command->files[COMMAND_WORKER] = open(program, O_RDONLY | O_CLOEXEC);
    if (command->files[COMMAND_WORKER] < 0) {
        problem_set(ret_problem, "the worker %s: %s", program, strerror(errno));
        return false;
    }
    return true;
}

static bool make_files(struct jail_command *command, const struct jail_spec *spec,
                       struct problem *ret_problem)
{
    const bool memory_files = spec->cgroups != NULL && cgroups_memory(spec->cgroups);
    if (!make_common(command, memory_files, spec->worker_path, ret_problem)) {
        return false;
    }
    const char *target;
    const char *helper = helper_path(spec, &target);
    if (helper != NULL) {
        command->files[COMMAND_HELPER] = open(helper, O_RDONLY | O_CLOEXEC);
        if (command->files[COMMAND_HELPER] < 0) {
            problem_set(ret_problem, "the computing program %s: %s", helper, strerror(errno));
            return false;
        }
    }
    if (spec->plugin != NULL) {
        command->files[COMMAND_OWNER] = open(spec->plugin->program, O_RDONLY | O_CLOEXEC);
        if (command->files[COMMAND_OWNER] < 0) {
            problem_set(ret_problem, "the plug-in %s: %s", spec->plugin->program, strerror(errno));
            return false;
        }
    }
    if (spec->model != NULL && spec->model->settings != NULL) {
        command->files[COMMAND_OWNER] = memory_file("settings", spec->model->settings);
        if (command->files[COMMAND_OWNER] < 0) {
            problem_set(ret_problem, "cannot make the jail's files: %s", strerror(errno));
            return false;
        }
    }
    return true;
}

bool jail_command_build(const struct jail_spec *spec, struct jail_command *command,
                        struct problem *ret_problem)
{
    int socket = command->files[COMMAND_SOCKET];
    *command = (struct jail_command){.files = {socket, -1, -1, -1, -1, -1, -1}};
    const char *bwrap = find_bwrap(ret_problem);
    if (bwrap == NULL || !make_files(command, spec, ret_problem)) {
        jail_command_close(command);
        return false;
    }
    /* --unshare-all alone makes no user namespace for root, and --disable-userns requires one. */
    ADD(command, bwrap, "--unshare-user", "--unshare-all", "--disable-userns", "--die-with-parent");
    ADD(command, "--new-session", "--as-pid-1", "--clearenv", "--cap-drop", "ALL");
    ADD(command, "--uid", text(command, "%u", spec->user != 0 ? spec->user : JAIL_USER));
    ADD(command, "--gid", text(command, "%u", spec->user != 0 ? spec->group : JAIL_USER));
    ADD(command, "--hostname", "jail");
    ADD(command, "--seccomp", text(command, "%d", 3 + COMMAND_FILTER));
    if (spec->image_path != NULL) {
        ADD(command, "--ro-bind", spec->image_path, "/");
    } else {
        add_host_tree(command, spec->visible);
    }
    add_folders(command, spec);
    ADD(command, "--chdir", "/work", "--", "/.bourse-worker");
    if (spec->directory != NULL) {
        ADD(command, spec->directory);
    }
    if (command->is_cut) { /* a mask may be missing, so this is no jail */
        problem_set(ret_problem, "the jail's command has more than %d words", LAUNCHER_ARGUMENTS);
        jail_command_close(command);
        return false;
    }
    return true;
}

/* The driver tells each process of the devices by its number in the namespace of who asks, and
 * leaves out those that the namespace does not see. So a watcher shares the machine's namespace of
 * processes. Its /proc has the driver's files alone, for the rest tells about the machine. */
static void add_watcher(struct jail_command *command, const struct watcher_spec *spec)
{
    static const char *const shown[] = {"/proc/driver", "/proc/devices", "/proc/modules",
                                        "/proc/version", NULL};
    ADD(command, "--dir", "/proc");
    add_shown(command, shown);
    ADD(command, "--ro-bind-try", "/sys/devices/system", "/sys/devices/system", "--dev", "/dev");
    add_nodes(command, spec->nodes);
    ADD(command, "--perms", "0555", "--ro-bind-data", text(command, "%d", 3 + COMMAND_WORKER),
        KERNEL_PROGRAM);
    ADD(command, "--remount-ro", "/dev", "--remount-ro", "/", "--", KERNEL_PROGRAM);
    add(command, spec->words);
}

bool jail_command_build_watcher(const struct watcher_spec *spec, struct jail_command *command,
                                struct problem *ret_problem)
{
    int socket = command->files[COMMAND_SOCKET];
    *command = (struct jail_command){.files = {socket, -1, -1, -1, -1, -1, -1}};
    const char *bwrap = find_bwrap(ret_problem);
    if (bwrap == NULL || !make_common(command, true, spec->path, ret_problem)) {
        jail_command_close(command);
        return false;
    }
    ADD(command, bwrap, "--unshare-user", "--unshare-ipc", "--unshare-net", "--unshare-uts");
    ADD(command, "--unshare-cgroup-try", "--disable-userns", "--die-with-parent", "--new-session");
    ADD(command, "--clearenv", "--cap-drop", "ALL", "--hostname", "jail");
    ADD(command, "--uid", text(command, "%d", JAIL_USER), "--gid", text(command, "%d", JAIL_USER));
    ADD(command, "--seccomp", text(command, "%d", 3 + COMMAND_FILTER));
    add_host_tree(command, NULL);
    add_watcher(command, spec);
    if (command->is_cut) {
        problem_set(ret_problem, "a watcher's command has more than %d words", LAUNCHER_ARGUMENTS);
        jail_command_close(command);
        return false;
    }
    return true;
}

void jail_command_close(struct jail_command *command)
{
    for (size_t i = COMMAND_FILTER; i < COMMAND_FILES; i++) {
        if (command->files[i] >= 0) {
            (void)close(command->files[i]);
            command->files[i] = -1;
        }
    }
}
