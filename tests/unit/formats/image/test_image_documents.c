#include "formats/image/image_documents.h"

#include "base/cleanup.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGEST "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static struct problem problem;

static void refused(bool good, const char *why)
{
    ck_assert(!good);
    ck_assert_msg(strstr(problem.text, why) != NULL, "%s", problem.text);
}

static bool read_index(const char *text, struct image_index *index)
{
    return image_index_read(text, strlen(text), index, &problem);
}

START_TEST(an_index_says_which_manifests_there_are)
{
    CLEANUP(image_index_fini) struct image_index index = {.items = NULL};
    ck_assert(read_index(
        "{\"manifests\":[{\"digest\":\"" DIGEST "\",\"size\":7,\"platform\":{\"os\":\"linux\","
        "\"architecture\":\"arm64\"},\"annotations\":{\"org.opencontainers.image.ref.name\":"
        "\"a:1\"}},{\"digest\":\"" DIGEST "\",\"size\":8,\"platform\":{\"os\":\"unknown\","
        "\"architecture\":\"unknown\"}},{\"digest\":\"" DIGEST "\",\"size\":9,\"mediaType\":"
        "\"application/vnd.oci.image.index.v1+json\"}]}",
        &index));
    ck_assert_uint_eq(index.count, 3);
    ck_assert_str_eq(index.items[0].arch, "arm64");
    ck_assert_str_eq(index.items[0].name, "a:1");
    ck_assert_uint_eq(index.items[0].blob.size, 7);
    ck_assert_uint_eq(index.items[0].blob.digest.bytes[1], 0x23);
    ck_assert(index.items[1].is_attestation && !index.items[0].is_attestation);
    ck_assert(index.items[2].is_index && !index.items[2].has_platform);
}
END_TEST

START_TEST(damaged_documents_are_refused)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "no JSON"},
        {"7", "no JSON"},
        {"[]", "no list of manifests"},
        {"{\"manifests\":7}", "no list of manifests"},
        {"{\"manifests\":[7]}", "no object with a digest and a size"},
        {"{\"manifests\":[{\"digest\":\"" DIGEST "\",\"size\":-1}]}", "with a digest and a size"},
        {"{\"manifests\":[{\"digest\":\"sha512:00\",\"size\":1}]}", "is not sha256:"},
        {"{\"manifests\":[{\"digest\":\"sha256:../../x\",\"size\":1}]}", "is not sha256:"},
        {"{\"manifests\":[],\"manifests\":[]}", "duplicate"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct image_index index = {.items = NULL};
        refused(read_index(cases[i].text, &index), cases[i].why);
        ck_assert_ptr_null(index.items);
    }
    char *deep = calloc(1, 100001);
    memset(deep, '[', 100000);
    struct image_index index = {.items = NULL};
    refused(read_index(deep, &index), "no JSON");
    free(deep);
}
END_TEST

/* Returns a document with a list of so many of these items. */
static char *with_list(const char *head, const char *item, size_t count, const char *tail)
{
    char *text = malloc(strlen(head) + count * (strlen(item) + 1) + strlen(tail) + 1);
    char *at = text + sprintf(text, "%s", head);
    for (size_t i = 0; i < count; i++) {
        at += sprintf(at, "%s%s", i > 0 ? "," : "", item);
    }
    (void)sprintf(at, "%s", tail);
    return text;
}

START_TEST(a_manifest_has_a_configuration_and_layers)
{
    static const char head[] = "{\"config\":{\"digest\":\"" DIGEST "\",\"size\":2},\"layers\":[";
    static const char item[] = "{\"digest\":\"" DIGEST "\",\"size\":3}";
    struct image_manifest *manifest = calloc(1, sizeof *manifest);
    char *most = with_list(head, item, IMAGE_LAYERS, "]}");
    ck_assert(image_manifest_read(most, strlen(most), manifest, &problem));
    ck_assert_uint_eq(manifest->layer_count, IMAGE_LAYERS);
    ck_assert_uint_eq(manifest->layers[127].size, 3);
    char *more = with_list(head, item, IMAGE_LAYERS + 1, "]}");
    refused(image_manifest_read(more, strlen(more), manifest, &problem), "more than 128: 129");
    char *locked = with_list(head, "{\"mediaType\":\"x+encrypted\"}", 1, "]}");
    refused(image_manifest_read(locked, strlen(locked), manifest, &problem), "encrypted");
    char *away = with_list(head, "{\"mediaType\":\"x.foreign.y\"}", 1, "]}");
    refused(image_manifest_read(away, strlen(away), manifest, &problem), "lies elsewhere");
    free(most);
    free(more);
    free(locked);
    free(away);
    free(manifest);
}
END_TEST

START_TEST(a_saved_archive_has_one_image)
{
    static const char good[] = "[{\"Config\":\"c.json\",\"Layers\":[\"a/layer.tar\",\"b\"]}]";
    static const char two[] = "[{\"Config\":\"c\",\"Layers\":[]},{\"Config\":\"d\",\"Layers\":[]}]";
    static const char root[] = "{\"name\":\"a web page's manifest.json\"}";
    struct image_saved *saved = calloc(1, sizeof *saved);
    ck_assert(image_saved_is(good, strlen(good)));
    ck_assert(!image_saved_is(root, strlen(root)));
    ck_assert(image_saved_read(good, strlen(good), saved, &problem));
    ck_assert_str_eq(saved->layers[0], "a/layer.tar");
    ck_assert_uint_eq(saved->layer_count, 2);
    refused(image_saved_read(two, strlen(two), saved, &problem), "it has 2 images");
    refused(image_saved_read("[{\"Config\":\"c\",\"Layers\":[7]}]", 29, saved, &problem),
            "a path that is no text");
    free(saved);
}
END_TEST

START_TEST(a_configuration_says_how_programs_start)
{
    static const char text[] =
        "{\"architecture\":\"amd64\",\"os\":\"linux\",\"config\":{\"Entrypoint\":[\"/e\",\"a\"],"
        "\"Cmd\":[\"b\"],\"Env\":[\"A=1\",\"B=x=y\",\"C=\"],\"WorkingDir\":\"/w\",\"User\":\"u:g\","
        "\"ExposedPorts\":{\"80/tcp\":{}}},\"rootfs\":{\"diff_ids\":[\"" DIGEST "\"]}}";
    CLEANUP(image_config_fini) struct image_config config;
    ck_assert_msg(image_config_read(text, strlen(text), &config, &problem), "%s", problem.text);
    ck_assert_uint_eq(config.entrypoint.count, 2);
    ck_assert_str_eq(config.cmd.items[0], "b");
    ck_assert_str_eq(config.env.items[1], "B=x=y");
    ck_assert_str_eq(config.directory, "/w");
    ck_assert_str_eq(config.user, "u:g");
    ck_assert_uint_eq(config.layer_count, 1);
    ck_assert_str_eq(image_arch(config.arch), "x86_64");
    ck_assert_str_eq(image_arch_of_device("aarch64"), "arm64");
    ck_assert_ptr_null(image_arch("wasm"));
}
END_TEST

START_TEST(a_configuration_may_say_nothing)
{
    static const char text[] =
        "{\"config\":{\"Entrypoint\":null,\"Env\":null},\"rootfs\":{\"diff_ids\":[]}}";
    CLEANUP(image_config_fini) struct image_config config;
    ck_assert(image_config_read(text, strlen(text), &config, &problem));
    ck_assert_str_eq(config.user, "");
    ck_assert_str_eq(config.os, "");
    ck_assert_uint_eq(config.cmd.count, 0);
}
END_TEST

START_TEST(a_wrong_configuration_is_refused)
{
    static const struct {
        const char *start, *why;
    } cases[] = {
        {"\"Entrypoint\":\"/e\"", "Entrypoint is no list"},
        {"\"Cmd\":[7]", "Cmd is no list"},
        {"\"Env\":[\"NAME\"]", "not NAME=VALUE"},
        {"\"Env\":[\"=x\"]", "not NAME=VALUE"},
        {"\"Cmd\":[\"a\\u0000b\"]", "no JSON"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[400];
        CLEANUP(image_config_fini) struct image_config config;
        (void)snprintf(text, sizeof text, "{\"config\":{%s},\"rootfs\":{\"diff_ids\":[]}}",
                       cases[i].start);
        refused(image_config_read(text, strlen(text), &config, &problem), cases[i].why);
    }
    CLEANUP(image_config_fini) struct image_config config;
    refused(image_config_read("{}", 2, &config, &problem), "no list of layers");
}
END_TEST

SUITE("image_documents", NULL, NULL, TEST(an_index_says_which_manifests_there_are),
      TEST(damaged_documents_are_refused), TEST(a_manifest_has_a_configuration_and_layers),
      TEST(a_saved_archive_has_one_image), TEST(a_configuration_says_how_programs_start),
      TEST(a_configuration_may_say_nothing), TEST(a_wrong_configuration_is_refused))
