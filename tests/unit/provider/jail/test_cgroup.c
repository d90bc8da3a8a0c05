#include "provider/jail/cgroup.h"
#include "tests/support/suite.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A tree of ordinary files that stands for a host's control groups. */
struct tree {
    char root[64], self[96];
    struct cgroup_place place;
};

static void put(const char *folder, const char *name, const char *text)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ck_assert_int_eq(write(file, text, strlen(text)), (ssize_t)strlen(text));
    (void)close(file);
}

static const char *get(const char *folder, const char *name, char ret_text[256])
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file >= 0 ? read(file, ret_text, 255) : 0;
    ret_text[length > 0 ? length : 0] = '\0';
    if (file >= 0) {
        (void)close(file);
    }
    return ret_text;
}

static struct tree tree_open(const char *self)
{
    struct tree tree = {.root = "/tmp/bourse-cgroup-XXXXXX"};
    ck_assert_ptr_nonnull(mkdtemp(tree.root));
    (void)snprintf(tree.self, sizeof tree.self, "%s/self", tree.root);
    put(tree.root, "self", self);
    return tree;
}

static struct cgroup_place place_of(const struct tree *tree)
{
    return (struct cgroup_place){.root = tree->root, .self = tree->self, .plain_files = true};
}

static void make(const struct tree *tree, const char *name)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", tree->root, name);
    ck_assert_int_eq(mkdir(path, 0700), 0);
}

static void tree_close(struct tree *tree)
{
    char command[128];
    (void)snprintf(command, sizeof command, "rm -rf '%s'", tree->root);
    ck_assert_int_eq(system(command), 0);
}

START_TEST(version_2_hands_limits_to_a_group_per_jail)
{
    struct tree tree = tree_open("0::/agent.service\n");
    struct cgroup_place place = place_of(&tree);
    struct problem problem;
    struct cgroups *cgroups = NULL;
    struct cgroup *group = NULL;
    char base[256];
    char path[300];
    char text[256];
    make(&tree, "agent.service");
    (void)snprintf(base, sizeof base, "%s/agent.service", tree.root);
    put(base, "cgroup.controllers", "cpuset cpu io memory hugetlb pids\n");
    put(base, "cgroup.subtree_control", "cpu\n"); /* another program's word */

    ck_assert_msg(cgroups_open(&place, "x", (uid_t)-1, (gid_t)-1, &cgroups, &problem), "%s",
                  problem.text);
    ck_assert_int_eq(cgroups_version(cgroups), 2);
    ck_assert(cgroups_memory(cgroups) && cgroups_processes(cgroups) && cgroups_cpu(cgroups));
    (void)snprintf(path, sizeof path, "%s/bourse-x/agent", base);
    ck_assert_str_eq(get(path, "cgroup.procs", text), "0"); /* this process made room */
    (void)snprintf(path, sizeof path, "%s/bourse-x", base);
    ck_assert_str_eq(get(path, "cgroup.subtree_control", text),
                     "+cpu"); /* the last of three writes */

    /* The jails give way to all others, and the agent does not give way to its jails. */
    ck_assert(cgroups_give_way(cgroups));
    ck_assert_str_eq(get(path, "cpu.weight", text), "3");
    (void)snprintf(path, sizeof path, "%s/bourse-x/agent", base);
    ck_assert_str_eq(get(path, "cpu.weight", text), "10000");

    struct cgroup_limits limits = {.memory_bytes = 1 << 20, .processes = 7, .cpu_milli = 1500};
    ck_assert(cgroup_create(cgroups, "lane-0", &limits, &group, &problem));
    (void)snprintf(path, sizeof path, "%s/bourse-x/lane-0", base);
    ck_assert_str_eq(get(path, "memory.max", text), "1048576");
    ck_assert_str_eq(get(path, "memory.swap.max", text), "0");
    ck_assert_str_eq(get(path, "pids.max", text), "7");
    ck_assert_str_eq(get(path, "cpu.max", text), "150000 100000");
    const char *procs[CGROUP_HIERARCHIES];
    ck_assert_uint_eq(cgroup_procs(group, procs), 1);
    ck_assert_ptr_nonnull(strstr(procs[0], "/agent.service/bourse-x/lane-0/cgroup.procs"));

    cgroup_destroy(&group);
    ck_assert_int_ne(access(path, F_OK), 0);
    cgroups_close(&cgroups);
    (void)snprintf(path, sizeof path, "%s/bourse-x", base);
    ck_assert_int_ne(access(path, F_OK), 0);
    /* A group that hands controllers down takes no process: those of this agent are off again. */
    ck_assert_str_eq(get(base, "cgroup.subtree_control", text), "-pids");
    ck_assert_str_eq(get(base, "cgroup.procs", text), "0"); /* and went back */
    tree_close(&tree);
}
END_TEST

START_TEST(version_2_without_memory_says_so)
{
    struct tree tree = tree_open("0::/\n");
    struct cgroup_place place = place_of(&tree);
    struct problem problem;
    struct cgroups *cgroups = NULL;
    put(tree.root, "cgroup.controllers", "pids\n");
    ck_assert(cgroups_open(&place, "x", (uid_t)-1, (gid_t)-1, &cgroups, &problem));
    ck_assert(!cgroups_memory(cgroups) && cgroups_processes(cgroups) && !cgroups_cpu(cgroups));
    cgroups_close(&cgroups);
    tree_close(&tree);
}
END_TEST

START_TEST(version_1_has_a_group_in_each_hierarchy)
{
    struct tree tree = tree_open("3:pids:/\n2:cpu,cpuacct:/deep\n1:memory:/gone/away\n0::/\n");
    struct cgroup_place place = place_of(&tree);
    struct problem problem;
    struct cgroups *cgroups = NULL;
    struct cgroup *group = NULL;
    char path[300];
    char text[256];
    make(&tree, "memory");
    make(&tree, "pids");
    make(&tree, "cpu");
    make(&tree, "cpu/deep");
    ck_assert_msg(cgroups_open(&place, "x", (uid_t)-1, (gid_t)-1, &cgroups, &problem), "%s",
                  problem.text);
    ck_assert_int_eq(cgroups_version(cgroups), 1);
    struct cgroup_limits limits = {.memory_bytes = 4096, .processes = 9, .cpu_milli = 500};
    ck_assert(cgroup_create(cgroups, "lane-1", &limits, &group, &problem));
    (void)snprintf(path, sizeof path, "%s/memory/bourse-x/lane-1", tree.root); /* the path we see */
    ck_assert_str_eq(get(path, "memory.limit_in_bytes", text), "4096");
    (void)snprintf(path, sizeof path, "%s/pids/bourse-x/lane-1", tree.root);
    ck_assert_str_eq(get(path, "pids.max", text), "9");
    (void)snprintf(path, sizeof path, "%s/cpu/deep/bourse-x/lane-1", tree.root);
    ck_assert_str_eq(get(path, "cpu.cfs_quota_us", text), "50000");
    ck_assert(cgroups_give_way(cgroups));
    (void)snprintf(path, sizeof path, "%s/cpu/deep/bourse-x", tree.root);
    ck_assert_str_eq(get(path, "cpu.shares", text), "32");
    ck_assert(cgroup_set_processes(group, 8));
    (void)snprintf(path, sizeof path, "%s/pids/bourse-x/lane-1", tree.root);
    ck_assert_str_eq(get(path, "pids.max", text), "8");
    ck_assert_int_lt(cgroup_memory_file(group), 0); /* this tree has none */
    const char *procs[CGROUP_HIERARCHIES];
    ck_assert_uint_eq(cgroup_procs(group, procs), 3);
    for (size_t i = 0; i < 3; i++) { /* who joins by cgroup.procs waits for the kernel */
        ck_assert_ptr_nonnull(strstr(procs[i], "/bourse-x/lane-1/tasks"));
    }
    cgroup_destroy(&group);
    cgroups_close(&cgroups);
    tree_close(&tree);
}
END_TEST

START_TEST(a_subtree_has_one_owner_at_a_time)
{
    struct tree tree = tree_open("3:pids:/\n1:memory:/\n0::/\n");
    struct cgroup_place place = place_of(&tree);
    struct problem problem;
    struct cgroups *first = NULL;
    struct cgroups *second = NULL;
    struct cgroup *group = NULL;
    struct cgroup_limits limits = {.memory_bytes = 4096, .processes = 9};
    char path[300];
    place.patience_ms = 1;
    make(&tree, "memory");
    make(&tree, "pids");
    ck_assert(cgroups_open(&place, "x", (uid_t)-1, (gid_t)-1, &first, &problem));
    ck_assert(cgroup_create(first, "lane-1", &limits, &group, &problem));

    /* The second to come gets nothing, and takes nothing away. */
    ck_assert(!cgroups_open(&place, "x", (uid_t)-1, (gid_t)-1, &second, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "another agent"));
    (void)snprintf(path, sizeof path, "%s/memory/bourse-x/lane-1/memory.limit_in_bytes", tree.root);
    ck_assert_int_eq(access(path, F_OK), 0);

    cgroup_destroy(&group);
    cgroups_close(&first);
    ck_assert(cgroups_open(&place, "x", (uid_t)-1, (gid_t)-1, &second, &problem));
    cgroups_close(&second);
    tree_close(&tree);
}
END_TEST

START_TEST(events_are_counted_from_the_groups_files)
{
    struct tree tree = tree_open("0::/\n");
    struct cgroup_place place = place_of(&tree);
    struct problem problem;
    struct cgroups *cgroups = NULL;
    struct cgroup *group = NULL;
    char path[300];
    struct cgroup_limits limits = {.memory_bytes = 4096};
    put(tree.root, "cgroup.controllers", "memory pids\n");
    ck_assert(cgroups_open(&place, "x", (uid_t)-1, (gid_t)-1, &cgroups, &problem));
    (void)snprintf(path, sizeof path, "%s/bourse-x/lane-0", tree.root);
    ck_assert_int_eq(mkdir(path, 0700), 0); /* of an earlier start: it is used again */
    put(path, "memory.events", "low 1\noom 2\noom_kill 3\noom_group_kill 4\n");
    put(path, "pids.events", "max 5\n");
    put(path, "memory.stat", "anon 7\n");
    ck_assert(cgroup_create(cgroups, "lane-0", &limits, &group, &problem));
    struct cgroup_events events = cgroup_events(group);
    ck_assert_uint_eq(events.out_of_memory, 3);
    ck_assert_uint_eq(events.forks_refused, 5);
    char counted[16] = "";
    ck_assert_int_eq(pread(cgroup_memory_file(group), counted, 15, 0), 7);
    ck_assert_str_eq(counted, "anon 7\n");
    cgroup_destroy(&group);
    cgroups_close(&cgroups);
    tree_close(&tree);
}
END_TEST

START_TEST(without_a_hierarchy_the_reason_is_told)
{
    struct tree tree = tree_open("");
    struct cgroup_place place = place_of(&tree);
    struct problem problem = {{0}};
    struct cgroups *cgroups = NULL;
    ck_assert(!cgroups_open(&place, "x", (uid_t)-1, (gid_t)-1, &cgroups, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "Delegate"));
    place.self = "/nowhere/self";
    ck_assert(!cgroups_open(&place, "x", (uid_t)-1, (gid_t)-1, &cgroups, &problem));
    tree_close(&tree);
}
END_TEST

SUITE("cgroup", NULL, NULL, TEST(version_2_hands_limits_to_a_group_per_jail),
      TEST(version_2_without_memory_says_so), TEST(version_1_has_a_group_in_each_hierarchy),
      TEST(a_subtree_has_one_owner_at_a_time), TEST(events_are_counted_from_the_groups_files),
      TEST(without_a_hierarchy_the_reason_is_told))
