/* The tests ask what holds for one subtask of a manifest. */
#include "protocol/subtask.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>

static char one[] = "one", two[] = "two", three[] = "three", four[] = "four";

/* Subtask 0 is bare, 1 has a file, 2 a task that says all itself, 3 one that says nothing. */
struct listed {
    Bourse__V1__Manifest manifest;
    Bourse__V1__ManifestSubtask subtasks[4], *pointers[4];
    Bourse__V1__ManifestTask tasks[2];
    Bourse__V1__ManifestInput input, *input_pointer;
    Bourse__V1__ManifestLimits general, own;
    char *general_words[2], *own_words[1];
};

static void list(struct listed *listed)
{
    bourse__v1__manifest__init(&listed->manifest);
    bourse__v1__manifest_input__init(&listed->input);
    bourse__v1__manifest_limits__init(&listed->general);
    bourse__v1__manifest_limits__init(&listed->own);
    bourse__v1__manifest_task__init(&listed->tasks[0]);
    bourse__v1__manifest_task__init(&listed->tasks[1]);
    for (size_t i = 0; i < 4; i++) {
        bourse__v1__manifest_subtask__init(&listed->subtasks[i]);
        listed->pointers[i] = &listed->subtasks[i];
    }
    listed->general_words[0] = one;
    listed->general_words[1] = two;
    listed->own_words[0] = three;
    listed->manifest.arguments = listed->manifest.outputs = listed->general_words;
    listed->manifest.n_arguments = listed->manifest.n_outputs = 2;
    listed->manifest.standard_input = one;
    listed->manifest.limits = &listed->general;
    listed->manifest.subtasks = listed->pointers;
    listed->manifest.n_subtasks = 4;
    listed->input.name = four;
    listed->input_pointer = &listed->input;
    for (size_t i = 1; i < 3; i++) {
        listed->subtasks[i].inputs = &listed->input_pointer;
        listed->subtasks[i].n_inputs = 1;
    }
    listed->subtasks[1].value = two;
    listed->subtasks[1].has_number = 1;
    listed->subtasks[1].number = 17;
    listed->subtasks[2].task = &listed->tasks[0];
    listed->subtasks[3].task = &listed->tasks[1];
    listed->tasks[0].name = three;
    listed->tasks[0].arguments = listed->tasks[0].outputs = listed->own_words;
    listed->tasks[0].n_arguments = listed->tasks[0].n_outputs = 1;
    listed->tasks[0].standard_input = three;
    listed->tasks[0].limits = &listed->own;
}

static void check_general(const struct listed *listed, const struct subtask_terms *terms)
{
    ck_assert_ptr_eq(terms->arguments, listed->general_words);
    ck_assert_uint_eq(terms->argument_count, 2);
    ck_assert_ptr_eq(terms->outputs, listed->general_words);
    ck_assert_uint_eq(terms->output_count, 2);
    ck_assert_str_eq(terms->standard_input, "one");
    ck_assert_ptr_eq(terms->limits, &listed->general);
}

START_TEST(what_a_task_leaves_out_is_the_manifests)
{
    struct listed listed;
    list(&listed);
    for (uint32_t i = 0; i < 6; i++) { /* 4 and 5 are not listed */
        if (i != 2) {
            struct subtask_terms terms = subtask_terms(&listed.manifest, i);
            check_general(&listed, &terms);
            ck_assert_uint_eq(terms.number, i == 1 ? 17 : i);
        }
    }
    ck_assert_ptr_null(subtask_at(&listed.manifest, 4));
    ck_assert_ptr_null(subtask_task(&listed.manifest, 0));
    ck_assert_ptr_eq(subtask_task(&listed.manifest, 3), &listed.tasks[1]);
}
END_TEST

START_TEST(what_a_task_says_itself_holds_instead)
{
    struct listed listed;
    list(&listed);
    struct subtask_terms terms = subtask_terms(&listed.manifest, 2);
    ck_assert_ptr_eq(terms.arguments, listed.own_words);
    ck_assert_uint_eq(terms.argument_count, 1);
    ck_assert_ptr_eq(terms.outputs, listed.own_words);
    ck_assert_uint_eq(terms.output_count, 1);
    ck_assert_str_eq(terms.standard_input, "three");
    ck_assert_ptr_eq(terms.limits, &listed.own);
}
END_TEST

START_TEST(templates_stand_for_a_file_or_a_tasks_name)
{
    struct listed listed;
    list(&listed);
    struct subtask_terms terms = subtask_terms(&listed.manifest, 1);
    ck_assert_str_eq(terms.value, "two");
    ck_assert_str_eq(terms.input, "four");
    terms = subtask_terms(&listed.manifest, 2); /* its files are no {in} */
    ck_assert_str_eq(terms.value, "three");
    ck_assert_ptr_null(terms.input);
    terms = subtask_terms(&listed.manifest, 0);
    ck_assert_ptr_null(terms.value);
    ck_assert_ptr_null(terms.input);
}
END_TEST

/* A manifest of three subtasks with these values, as `array:` and `lines:` write them. */
struct valued {
    Bourse__V1__Manifest manifest;
    Bourse__V1__ManifestSubtask subtasks[3], *pointers[3];
    char texts[3][24];
};

static void value(struct valued *valued, const char *first, const char *second, const char *third)
{
    const char *const texts[] = {first, second, third};
    bourse__v1__manifest__init(&valued->manifest);
    for (size_t i = 0; i < 3; i++) {
        bourse__v1__manifest_subtask__init(&valued->subtasks[i]);
        (void)snprintf(valued->texts[i], sizeof valued->texts[i], "%s", texts[i]);
        valued->subtasks[i].value = valued->texts[i];
        valued->pointers[i] = &valued->subtasks[i];
    }
    valued->manifest.subtasks = valued->pointers;
    valued->manifest.n_subtasks = valued->manifest.subtask_count = 3;
}

START_TEST(subtasks_of_an_array_have_the_numbers_that_the_user_wrote)
{
    struct valued valued;
    value(&valued, "5", "7", "1000000000000");
    ck_assert(subtask_is_array(&valued.manifest));
    ck_assert_uint_eq(subtask_number(&valued.manifest, true, 0), 5);
    ck_assert_uint_eq(subtask_number(&valued.manifest, true, 2), 1000000000000);
    ck_assert_uint_eq(subtask_number(&valued.manifest, true, 3), 3); /* not listed */
}
END_TEST

START_TEST(other_values_are_no_numbers_of_an_array)
{
    static const char *const others[][3] = {{"5", "x", "7"},
                                            {"7", "5", "9"},
                                            {"5", "5", "6"},
                                            {"1", "02", "3"},
                                            {"1", "", "3"},
                                            {"1", "-2", "3"},
                                            {"1", "2", "1234567890123456789"}};
    struct valued valued;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        value(&valued, others[i][0], others[i][1], others[i][2]);
        ck_assert_msg(!subtask_is_array(&valued.manifest), "%s", others[i][1]);
        ck_assert_uint_eq(subtask_number(&valued.manifest, false, 1), 1);
    }
    static char line[] = "-{line}";
    char *words[] = {line};
    value(&valued, "1", "2", "3"); /* a file of lines */
    valued.manifest.arguments = words;
    valued.manifest.n_arguments = 1;
    ck_assert(!subtask_is_array(&valued.manifest));
    valued.manifest.n_arguments = valued.manifest.n_subtasks = 0;
    ck_assert(!subtask_is_array(&valued.manifest));
}
END_TEST

START_TEST(checks_of_an_array_keep_their_index)
{
    struct valued valued;
    Bourse__V1__ManifestTask task = BOURSE__V1__MANIFEST_TASK__INIT;
    value(&valued, "5", "6", "x");
    valued.subtasks[2].task = &task;
    ck_assert(subtask_is_array(&valued.manifest));
    ck_assert_uint_eq(subtask_number(&valued.manifest, true, 2), 2);
}
END_TEST

START_TEST(the_rest_of_an_array_from_0_keeps_its_numbers)
{
    struct valued valued;
    value(&valued, "", "", "");
    for (size_t i = 0; i < 3; i++) {
        valued.subtasks[i].value = NULL;
        valued.subtasks[i].has_number = 1;
        valued.subtasks[i].number = (uint32_t)(10 * i + 3);
    }
    ck_assert(!subtask_is_array(&valued.manifest));
    ck_assert_uint_eq(subtask_number(&valued.manifest, false, 2), 23);
}
END_TEST

SUITE("subtask", NULL, NULL, TEST(what_a_task_leaves_out_is_the_manifests),
      TEST(what_a_task_says_itself_holds_instead), TEST(templates_stand_for_a_file_or_a_tasks_name),
      TEST(subtasks_of_an_array_have_the_numbers_that_the_user_wrote),
      TEST(other_values_are_no_numbers_of_an_array), TEST(checks_of_an_array_keep_their_index),
      TEST(the_rest_of_an_array_from_0_keeps_its_numbers))
