/* The tests check programs that can start in an image, and programs that can start nowhere. */
#include "consumer/job/image/image_program.h"

#include "tests/support/image_layers.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Headers of ELF files, with ~ for a byte 0: up to the type, after the machine, and of a program
 * whose loader's path comes behind. */
#define IDENT "\177ELF\2\1\1~~~~~~~~~\2~"
#define REST "\1~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~"
#define LOADED                                                                                     \
    "\1~~~~~~~~~~~@~~~~~~~~~~~~~~~~~~~~~8~\1~~~~~~~"                                               \
    "\3~~~~~~~x~~~~~~~~~~~~~~~~~~~~~~~\x10~~~~~~~~~~~~~~~~~~~~~~~"

static int root;
static struct bourse_job job; /* large */
static struct problem problem;

static void setup(void)
{
    static const struct layer_entry entries[] = {
        {'5', "app/", "", 0755},
        {'0', "app/bare", "#!/usr/bin/python3\n", 0755},
        {'0', "app/arm", IDENT "\267~" REST, 0755},
        {'0', "app/bad-loader", IDENT ">~" LOADED "/app/text~", 0755},
        {'0', "app/cut",
         IDENT ">~"
               "\1~~~~~~~~~",
         0755},
        {'0', "app/data", "text", 0644},
        {'0', "app/loaded", IDENT ">~" LOADED "/sbin/tool~", 0755},
        {'0', "app/arm-loader", IDENT ">~" LOADED "/app/arm~", 0755},
        {'0', "app/nothing", "", 0755},
        {'0', "app/script", "#! /bin/sh -e\ntrue\n", 0755},
        {'0', "app/text", "echo no first line\n", 0755},
        {'0', "app/through-text", "#!/app/text\n", 0755},
        {'0', "app/x86", IDENT "\3~" REST, 0755},
        {'0', "bin", "a file over the folder", 0755},
        {'2', "entry", "app/none", 0777},
        {'5', "sbin/", "", 0755},
        {'0', "sbin/tool", IDENT ">~" REST, 0755},
        {'2', "tool", "sbin/tool", 0777},
        {0, "", "", 0}};
    size_t length;
    uint8_t *archive = layer_make(entries, &length);
    for (size_t i = 0; i < length; i++) {
        archive[i] = archive[i] == '~' ? 0 : archive[i];
    }
    root = memfd_create("root", MFD_CLOEXEC);
    ck_assert_int_ge(root, 0);
    ck_assert_int_eq(write(root, archive, length), (ssize_t)length);
    free(archive);
    job = (struct bourse_job){.file = job_file_create()};
    ck_assert_ptr_nonnull(job.file);
}

static void teardown(void)
{
    job_file_destroy(&job.file);
    (void)close(root);
}

static bool starts(const char *program)
{
    job_strings_fini(&job.file->run);
    ck_assert(job_strings_add(&job.file->run, 8, program));
    problem.text[0] = '\0';
    return image_program_check(&job, root, &problem);
}

static void refused(const char *program, const char *why)
{
    ck_assert_msg(!starts(program), "%s", program);
    ck_assert_str_eq(problem.text, why);
}

START_TEST(what_may_start_passes)
{
    ck_assert_msg(starts("/sbin/tool"), "%s", problem.text);
    ck_assert_msg(starts("/tool"), "%s", problem.text);
    ck_assert(job_file_add_variable(job.file, "PATH", "/bin:/none:/sbin"));
    ck_assert_msg(starts("tool"), "%s", problem.text);
    /* The work folder has what the job brings. */
    ck_assert_msg(starts("./own"), "%s", problem.text);
    ck_assert_msg(starts("/work/own"), "%s", problem.text);
    ck_assert_msg(starts("{in}"), "%s", problem.text);
    job.start.directory = (char[]){"/sbin"};
    ck_assert_msg(starts("./tool"), "%s", problem.text);
}
END_TEST

START_TEST(a_path_of_the_jail_may_have_any_program)
{
    ck_assert(job_file_add_variable(job.file, "PATH", "/sbin:/work"));
    ck_assert_msg(starts("own"), "%s", problem.text);
}
END_TEST

START_TEST(what_can_start_nowhere_is_refused_with_what_is_wrong)
{
    refused("/app/none", "the program /app/none is not in the image");
    refused("/entry", "the program /entry leads to /app/none, which is not in the image");
    refused("/app", "the program /app is a folder");
    refused("/app/data", "the program /app/data is not executable: chmod it and build the image "
                         "again");
    refused("/app/nothing", "the program /app/nothing is an empty file");
    refused("/bin/sh", "the program /bin/sh lies below /bin, which is a file and no folder");
    refused("/app/bare", "the program /app/bare is started by /usr/bin/python3, which is not in "
                         "the image");
    refused("/app/script", "the program /app/script is started by /bin/sh, which lies below /bin, "
                           "which is a file and no folder");
    refused("tool", "the program \"tool\" is in no folder of its PATH, "
                    "/usr/local/bin:/usr/bin:/bin: /bin/tool lies below /bin, which is a file and "
                    "no folder");
    job.start.directory = (char[]){"/app"};
    refused("./tool", "the program /app/tool is not in the image");
}
END_TEST

START_TEST(what_no_machine_executes_is_refused)
{
    char path[4200];
    job.start.arch = "x86_64";
    ck_assert_msg(starts("/app/loaded"), "%s", problem.text);
    ck_assert_msg(starts("/app/x86"), "%s", problem.text); /* 32 bits */
    refused("/app/arm", "the program /app/arm is an ELF file for another machine than the image's, "
                        "x86_64");
    refused("/app/arm-loader",
            "the program /app/arm-loader is started by /app/arm, which is an ELF "
            "file for another machine than the image's, x86_64");
    refused("/app/bad-loader", "the program /app/bad-loader is started by /app/text, which is no "
                               "ELF file");
    refused("/app/cut", "the program /app/cut is an ELF file that was cut after 30 bytes");
    refused("/app/text", "the program /app/text is neither an ELF file nor a script with #! at its "
                         "begin");
    refused("/app/through-text", "the program /app/through-text is started by /app/text, which is "
                                 "neither an ELF file nor a script with #! at its begin");
    job.start.arch = "aarch64";
    ck_assert_msg(starts("/app/arm"), "%s", problem.text);
    job.start.arch = NULL;
    ck_assert_msg(starts("/app/arm"), "%s", problem.text);
    memset(path, '/', sizeof path);
    memcpy(path, "/sbin", 5);
    memcpy(path + 4091, "tool", 5);
    ck_assert_msg(starts(path), "%s", problem.text);
    memcpy(path + 4091, "/tool", 6);
    ck_assert(!starts(path));
    ck_assert_ptr_nonnull(strstr(problem.text, "... has a path of 4096 bytes; 4095 are the most"));
    memset(path, 'a', 1500);
    path[1500] = '\0';
    ck_assert(!starts(path));
    ck_assert_ptr_nonnull(strstr(problem.text, "is in no folder of its PATH"));
}
END_TEST

START_TEST(a_name_is_looked_for_along_path)
{
    ck_assert(job_file_add_variable(job.file, "PATH", "/sbin:/app"));
    refused("none", "the program \"none\" is in no folder of its PATH, /sbin:/app");
    refused("data", "the program \"data\" is in no folder of its PATH, /sbin:/app: /app/data is "
                    "not executable: chmod it and build the image again");
}
END_TEST

SUITE("image_program", setup, teardown, TEST(what_may_start_passes),
      TEST(a_path_of_the_jail_may_have_any_program),
      TEST(what_can_start_nowhere_is_refused_with_what_is_wrong),
      TEST(what_no_machine_executes_is_refused), TEST(a_name_is_looked_for_along_path))
