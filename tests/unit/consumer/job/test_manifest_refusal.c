/* Texts of a job that cannot be sent: the message names the text, the byte, and what to do. */
#include "consumer/job/manifest_refusal.h"

#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static char *arguments[] = {"echo", "fine", NULL};
static Bourse__V1__Manifest manifest;

static void set_up(void)
{
    bourse__v1__manifest__init(&manifest);
    manifest.version = 1;
    manifest.executor = "command";
    manifest.name = "x";
    manifest.arguments = arguments;
    manifest.n_arguments = 2;
    manifest.subtask_count = 1;
}

/* Returns the message about the manifest, or "" when the codec takes it. */
static const char *refusal(void)
{
    static char text[512];
    size_t length;
    struct codec_error error = {.field = ""};
    Bourse__V1__Manifest *decoded = NULL;
    uint8_t *bytes = codec_encode(&manifest.base, &length);
    ck_assert_ptr_nonnull(bytes);
    text[0] = '\0';
    if (codec_decode_manifest(bytes, length, &decoded, &error) == CODEC_OK) {
        codec_manifest_free(&decoded);
    } else {
        manifest_refusal_text(&manifest, &error, text, sizeof text);
    }
    free(bytes);
    return text;
}

static void check_says(const char *wanted)
{
    const char *text = refusal();
    ck_assert_msg(strstr(text, wanted) != NULL, "expected \"%s\" in \"%s\"", wanted, text);
}

START_TEST(an_argument_is_named_with_its_byte)
{
    arguments[1] = "tab\tline\ncaf\xc3\xa9";
    ck_assert_str_eq(refusal(), "");
    arguments[1] = "ab\x1b[1m";
    check_says("argument 1 of the command has the control character 0x1b as byte 3");
    check_says("(printf '\\033')");
    arguments[1] = "caf\xc3\xa9\xc2\x9b";
    check_says("argument 1 of the command has the control character 0x9b as byte 6");
    arguments[1] = "a\xff";
    check_says("argument 1 of the command has byte 2, 0xff, which is not UTF-8");
    arguments[1] = "cut \xe2\x82";
    check_says("argument 1 of the command has byte 5, 0xe2, which is not UTF-8");
    arguments[1] = "fine";
    arguments[0] = "\x07";
    check_says("the program has the control character 0x07 as byte 1");
    arguments[0] = "echo";
}
END_TEST

START_TEST(other_texts_of_a_job_are_named_too)
{
    Bourse__V1__ManifestVariable variable = BOURSE__V1__MANIFEST_VARIABLE__INIT;
    Bourse__V1__ManifestVariable *variables[] = {&variable};
    variable.name = "GREETING";
    variable.value = "\x01";
    manifest.environment = variables;
    manifest.n_environment = 1;
    check_says("the variable GREETING has the control character 0x01 as byte 1");
    variable.value = "hello";
    manifest.standard_input = "a\x02";
    check_says("the standard input has the control character 0x02 as byte 2");
    manifest.standard_input = NULL;
    Bourse__V1__ManifestTask task = BOURSE__V1__MANIFEST_TASK__INIT;
    Bourse__V1__ManifestSubtask subtask = BOURSE__V1__MANIFEST_SUBTASK__INIT;
    Bourse__V1__ManifestSubtask *subtasks[] = {&subtask};
    char *own[] = {"true", "x\x03"};
    manifest.subtasks = subtasks;
    manifest.n_subtasks = 1;
    subtask.value = "\x04";
    check_says("the value of subtask 0 has the control character 0x04 as byte 1");
    subtask.value = NULL;
    subtask.task = &task;
    task.name = "clean";
    task.arguments = own;
    task.n_arguments = 2;
    check_says("argument 1 of the command of task clean has the control character 0x03 as byte 2");
}
END_TEST

START_TEST(a_field_that_is_no_text_keeps_its_figures)
{
    manifest.version = 7;
    check_says("version is out of its range (7, limit 1)");
}
END_TEST

SUITE("manifest refusals", set_up, NULL, TEST(an_argument_is_named_with_its_byte),
      TEST(other_texts_of_a_job_are_named_too), TEST(a_field_that_is_no_text_keeps_its_figures))
