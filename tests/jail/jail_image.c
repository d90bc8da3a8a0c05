/* These tests unpack root images from tars in a jail, use them as a root, and remove them. */
#include "fixture.h"

#include "provider/jail/image.h"

#include <sys/sendfile.h>

/* A tar of `folder` made by the host's tar, as an open file. The tests write their own little
 * roots. */
static int archive_of(const char *folder, const char *options)
{
    char path[128];
    char command[512];
    (void)snprintf(path, sizeof path, "%s.tar", folder);
    (void)snprintf(command, sizeof command, "tar -C '%s' %s -cf '%s' .", folder, options, path);
    ck_assert_int_eq(system(command), 0);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(file, 0);
    (void)unlink(path);
    return file;
}

/* Runs a script whose $1 is `folder`. */
static void shell(const char *script, const char *folder)
{
    pid_t pid = fork();
    if (pid == 0) {
        (void)execl("/bin/sh", "sh", "-c", script, "sh", folder, (char *)NULL);
        _exit(127);
    }
    int status = -1;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}

static uint64_t size_of(int file)
{
    struct stat status;
    ck_assert_int_eq(fstat(file, &status), 0);
    return (uint64_t)status.st_size;
}

struct image_test {
    struct fixture fixture;
    char source[96], image[96];
};

static struct image_test image_open(int way)
{
    struct image_test test = {.fixture = fixture_open(way)};
    (void)snprintf(test.source, sizeof test.source, "%s/source", test.fixture.folder);
    (void)snprintf(test.image, sizeof test.image, "%s/image", test.fixture.folder);
    ck_assert_int_eq(mkdir(test.source, 0700), 0);
    return test;
}

static void image_close(struct image_test *test)
{
    shell("chmod -R u+rwX \"$1\" && rm -rf \"$1\"", test->source);
    fixture_close(&test->fixture);
}

static enum image_status unpack_within(struct image_test *test, int file,
                                       const struct tar_limits *limits, struct problem *problem)
{
    struct fixture *fixture = &test->fixture;
    return image_unpack(fixture->launcher, fixture->worker, fixture->cgroups, file, size_of(file),
                        limits, test->image, NULL, NULL, problem);
}

static enum image_status try_unpack(struct image_test *test, int file, struct problem *problem)
{
    const struct tar_limits limits = {.entries = 1000, .bytes = 64 * MIB};
    return unpack_within(test, file, &limits, problem);
}

static bool unpack(struct image_test *test, int file, struct problem *problem)
{
    return try_unpack(test, file, problem) == IMAGE_OK;
}

/* Nothing of an image that was refused is left beside what the test itself made. */
static void check_clean(struct image_test *test)
{
    char part[128];
    (void)snprintf(part, sizeof part, "%s.part", test->image);
    ck_assert_int_ne(access(test->image, F_OK), 0);
    ck_assert_int_ne(access(part, F_OK), 0);
}

START_TEST(an_image_is_a_root)
{
    struct image_test test = image_open(_i);
    struct problem problem;
    /* The probe is static, so a root of one file is enough for it. */
    char program[160];
    (void)snprintf(program, sizeof program, "%s/%s", test.source, test.fixture.mark);
    int copy = open(program, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
    off_t offset = 0;
    uint64_t size = size_of(test.fixture.probe);
    ck_assert_int_eq(sendfile(copy, test.fixture.probe, &offset, (size_t)size), (ssize_t)size);
    (void)close(copy);
    shell("mkdir -p \"$1/locked/in\" && chmod 0500 \"$1/locked\" \"$1/locked/in\"", test.source);
    int file = archive_of(test.source, "");
    ck_assert_msg(unpack(&test, file, &problem), "%s", problem.text);
    ck_assert(!unpack(&test, file, &problem)); /* never over another */

    struct jail_spec spec = fixture_spec(&test.fixture);
    spec.name = "lane-1";
    spec.image_path = test.image;
    struct jail *jail = NULL;
    ck_assert_msg(jail_open(test.fixture.launcher, &spec, &jail, &problem), "%s", problem.text);
    (void)snprintf(program, sizeof program, "/%s", test.fixture.mark);
    const char *const argv[] = {program, "self", NULL};
    const char *const files[] = {program, "files", test.fixture.secret, NULL};
    const char *const host[] = {"/bin/sh", NULL};
    const char *const system[] = {program, "system", NULL};
    const char *const *programs[] = {argv, files, system, host};
    for (size_t i = 0; i < 4; i++) {
        struct jail_request request = {.argv = programs[i], .stdin_fd = -1};
        struct jail_reply reply;
        jail_run(jail, &request, &reply);
        if (i < 3) {
            fixture_tight(reply);
        } else {
            fixture_ends(reply, OUTCOME_PROGRAM_MISSING);
        }
    }
    jail_close(&jail);
    ck_assert_msg(image_remove(test.fixture.launcher, test.fixture.worker, test.fixture.cgroups,
                               test.image, &problem),
                  "%s", problem.text);
    ck_assert_int_ne(access(test.image, F_OK), 0);
    (void)close(file);
    image_close(&test);
}
END_TEST

START_TEST(a_link_where_bwrap_mounts_is_refused)
{
    static const char *const names[] = {"proc", "dev", "work", "tmp", ".bourse-worker"};
    struct image_test test = image_open(_i);
    shell("echo hello > \"$1/file\"", test.source); /* an image has a file */
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char link[128];
        struct problem problem;
        (void)snprintf(link, sizeof link, "%s/%s", test.source, names[i]);
        ck_assert_int_eq(symlink("/etc", link), 0);
        int file = archive_of(test.source, "");
        ck_assert(!unpack(&test, file, &problem));
        ck_assert_msg(strstr(problem.text, names[i]) != NULL, "%s", problem.text);
        ck_assert_int_ne(access(test.image, F_OK), 0);
        ck_assert_int_eq(unlink(link), 0);
        (void)close(file);
    }
    image_close(&test);
}
END_TEST

START_TEST(only_plain_archives_unpack)
{
    struct image_test test = image_open(_i);
    struct problem problem;
    shell("echo hello > \"$1/file\"", test.source);
    int packed = archive_of(test.source, "-z");
    ck_assert(!unpack(&test, packed, &problem));
    int text = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
    ck_assert(!unpack(&test, text, &problem));
    ck_assert_uint_gt(strlen(problem.text), 0);
    int outside = archive_of(test.source, "--transform='s,file,../../escaped,'");
    (void)unpack(&test, outside, &problem); /* tar drops the dots or refuses; either way: */
    char escaped[160];
    (void)snprintf(escaped, sizeof escaped, "%s/escaped", test.fixture.folder);
    ck_assert_int_ne(access(escaped, F_OK), 0);
    ck_assert_int_ne(access("/tmp/escaped", F_OK), 0);
    if (access(test.image, F_OK) == 0) {
        ck_assert(image_remove(test.fixture.launcher, test.fixture.worker, test.fixture.cgroups,
                               test.image, &problem));
    }
    (void)close(packed);
    (void)close(text);
    (void)close(outside);
    image_close(&test);
}
END_TEST

START_TEST(an_image_has_no_more_files_and_bytes_than_its_provider_takes)
{
    struct image_test test = image_open(_i);
    struct problem problem;
    shell("mkdir \"$1/many\" && cd \"$1/many\" && seq 300 | xargs touch && head -c 5000 /dev/zero "
          ">large",
          test.source);
    int file = archive_of(test.source, "");
    const struct tar_limits fits = {.entries = 303, .bytes = 5000}; /* with two folders */
    const struct tar_limits few = {.entries = 302, .bytes = 5000};
    const struct tar_limits small = {.entries = 303, .bytes = 4999};
    ck_assert_int_eq(unpack_within(&test, file, &few, &problem), IMAGE_TOO_LARGE);
    ck_assert_ptr_nonnull(strstr(problem.text, "more than 302 files"));
    check_clean(&test);
    ck_assert_int_eq(unpack_within(&test, file, &small, &problem), IMAGE_TOO_LARGE);
    ck_assert_ptr_nonnull(strstr(problem.text, "more than 4999 bytes"));
    check_clean(&test);
    ck_assert_msg(unpack_within(&test, file, &fits, &problem) == IMAGE_OK, "%s", problem.text);
    ck_assert(image_remove(test.fixture.launcher, test.fixture.worker, test.fixture.cgroups,
                           test.image, &problem));
    (void)close(file);
    image_close(&test);
}
END_TEST

/* Whoever made the image is at fault, and the owner's disk is as it was. */
START_TEST(an_unfit_image_is_told_from_a_machine_that_fails)
{
    static const struct {
        const char *script, *options, *says;
    } unfit[] = {
        {"mkfifo \"$1/p\"; echo x >\"$1/file\"", "--transform='s,file,../file,'", "\"..\""},
        {"ln -s ../../etc \"$1/out\"", "", "leads out"},
        {"cd \"$1\" && echo x >a && ln a b", "-P --transform='flags=h;s,^./[ab]$,../a,'",
         "leads out"},
        {"truncate -s 1M \"$1/holes\"", "--sparse", "sparse"},
        /* fit by its headers, and tar finds what is wrong */
        {"mkdir \"$1/x\" && echo x >\"$1/x/y\" && echo x >\"$1/z\"",
         "--transform='s,^./z,./x/y/z,'", "tar says"},
    };
    struct image_test test = image_open(_i);
    for (size_t i = 0; i < sizeof unfit / sizeof unfit[0]; i++) {
        struct problem problem = {""};
        shell(unfit[i].script, test.source);
        int file = archive_of(test.source, unfit[i].options);
        ck_assert_msg(try_unpack(&test, file, &problem) == IMAGE_UNFIT, "case %zu: %s", i,
                      problem.text);
        ck_assert_msg(strstr(problem.text, unfit[i].says) != NULL, "case %zu: %s", i, problem.text);
        check_clean(&test);
        (void)close(file);
        shell("cd \"$1\" && find . -mindepth 1 -delete", test.source);
    }
    struct problem problem = {""};
    int file = archive_of(test.source, "");
    (void)snprintf(test.image, sizeof test.image, "%s/no/image", test.fixture.folder);
    ck_assert_int_eq(try_unpack(&test, file, &problem), IMAGE_FAILED);
    (void)close(file);
    image_close(&test);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {an_image_is_a_root, a_link_where_bwrap_mounts_is_refused,
                                  only_plain_archives_unpack,
                                  an_image_has_no_more_files_and_bytes_than_its_provider_takes,
                                  an_unfit_image_is_told_from_a_machine_that_fails};
    return fixture_main("jail_image", tests, sizeof tests / sizeof *tests);
}
