#include "consumer/job/output/output_pattern.h"

#include "base/cleanup.h"
#include "tests/support/suite.h"

#include <check.h>

static char *outputs[] = {"{in}.d/*.csv", "{in}.xz", "part-*", "{out}/[0-9]"};

/* A scene is a manifest of one subtask. The name of its input has characters that are special in a
 * pattern. */
struct scene {
    Bourse__V1__ManifestInput input, *inputs;
    Bourse__V1__ManifestSubtask subtask, *subtasks;
    Bourse__V1__Manifest manifest;
};

static void scene_make(struct scene *scene, bool has_patterns)
{
    *scene = (struct scene){.input = BOURSE__V1__MANIFEST_INPUT__INIT,
                            .subtask = BOURSE__V1__MANIFEST_SUBTASK__INIT,
                            .manifest = BOURSE__V1__MANIFEST__INIT};
    scene->input.name = "a[1]*";
    scene->inputs = &scene->input;
    scene->subtask.n_inputs = 1;
    scene->subtask.inputs = &scene->inputs;
    scene->subtask.value = scene->input.name;
    scene->subtasks = &scene->subtask;
    scene->manifest.n_subtasks = scene->manifest.subtask_count = 1;
    scene->manifest.subtasks = &scene->subtasks;
    scene->manifest.n_outputs = sizeof outputs / sizeof *outputs;
    scene->manifest.outputs = outputs;
    scene->manifest.has_patterns = scene->manifest.patterns = has_patterns;
}

static void expect(const struct scene *scene, const char *name, const char *folder,
                   const char *rest)
{
    CLEANUP(output_pattern_fini) struct output_pattern pattern;
    ck_assert(output_pattern_find(&scene->manifest, 0, name, &pattern));
    ck_assert_msg((pattern.text != NULL) == (folder != NULL), "%s", name);
    if (folder != NULL) {
        ck_assert_str_eq(pattern.folder, folder);
        ck_assert_str_eq(pattern.rest, rest);
    }
}

START_TEST(a_name_from_an_input_stands_for_itself)
{
    struct scene scene;
    scene_make(&scene, true);
    expect(&scene, "a[1]*.d/*.csv", "a[1]*.d/", "*.csv");
    expect(&scene, "part-*", "", "part-*");
    expect(&scene, "out/a[1]*/[0-9]", "out/a[1]*/", "[0-9]");
    expect(&scene, "a[1]*.xz", NULL, NULL); /* a file, whatever its name looks like */
    expect(&scene, "part-?", NULL, NULL);   /* no output has this pattern */
}
END_TEST

START_TEST(a_job_that_does_not_say_so_has_no_patterns)
{
    struct scene scene;
    scene_make(&scene, false);
    expect(&scene, "part-*", NULL, NULL);
    expect(&scene, "a[1]*.d/*.csv", NULL, NULL);
}
END_TEST

SUITE("output_pattern", NULL, NULL, TEST(a_name_from_an_input_stands_for_itself),
      TEST(a_job_that_does_not_say_so_has_no_patterns))
