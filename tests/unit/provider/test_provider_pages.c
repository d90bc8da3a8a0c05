/* Every config of docs/provider.md and of the manual page is one that the agent reads, and both
 * pages name the keys that the config may have. */
#include "provider/config.h"
#include "provider/idle/gpu_watch.h"
#include "provider/idle/idle_watch.h"

#include "tests/support/page.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Reads the text as a provider.yaml in a folder of its own. */
static void check_config(const char *text)
{
    static struct config config;
    struct problem problem = {""};
    char folder[] = "/tmp/bourse-page-XXXXXX";
    char path[64];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/provider.yaml", folder);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    (void)fputs(text, file);
    (void)fclose(file);
    const bool is_read = config_read(folder, NULL, &config, &problem);
    (void)unlink(path);
    (void)rmdir(folder);
    ck_assert_msg(is_read, "%s in:\n%s", problem.text, text);
}

static unsigned check_all(const char *name, const char *opening, const char *closing)
{
    char example[PAGE_EXAMPLE_SIZE];
    char *page = page_read(name);
    unsigned count = 0;
    for (const char *at = page; (at = page_example(at, opening, closing, example)) != NULL;
         count++) {
        check_config(example);
    }
    free(page);
    return count;
}

START_TEST(the_configs_of_the_page_are_read)
{
    ck_assert_uint_eq(check_all("docs/provider.md", "```yaml", "```"), 15);
}
END_TEST

START_TEST(the_config_of_the_manual_page_is_read)
{
    ck_assert_uint_eq(
        check_all("docs/man/bourse-provider.8", "cat > attic/provider.yaml <<END", "END"), 1);
}
END_TEST

/* ---------------------------------------------------------------- keys */

enum { NAMES_MOST = 64, NAME_SIZE = 64 };

struct names {
    char items[NAMES_MOST][NAME_SIZE];
    size_t count;
};

static const char *const map_names[CONFIG_MAPS] = {[CONFIG_MAP_DEVICE] = "devices",
                                                   [CONFIG_MAP_IDLE] = "idle",
                                                   [CONFIG_MAP_GPU] = "gpu",
                                                   [CONFIG_MAP_NETWORK] = "network",
                                                   [CONFIG_MAP_SPOT] = "interruptible",
                                                   [CONFIG_MAP_WASM] = "wasm",
                                                   [CONFIG_MAP_ONNX] = "onnx"};

static size_t word_length(const char *text)
{
    return strspn(text, "abcdefghijklmnopqrstuvwxyz_");
}

static bool has_name(const struct names *names, const char *name)
{
    size_t i = 0;
    while (i < names->count && strcmp(names->items[i], name) != 0) {
        i++;
    }
    return i < names->count;
}

static void add_name(struct names *names, const char *text, size_t length)
{
    char name[NAME_SIZE];
    ck_assert(length > 0 && length < sizeof name);
    (void)snprintf(name, sizeof name, "%.*s", (int)length, text);
    if (!has_name(names, name)) {
        ck_assert_uint_lt(names->count, NAMES_MOST);
        memcpy(names->items[names->count++], name, sizeof name);
    }
}

static void expect_keys(const char *page, enum config_map which, const struct names *names)
{
    const char *map = map_names[which] == NULL ? "the file" : map_names[which];
    size_t count = 0;
    for (const char *const *key = config_keys(which); *key != NULL; key++, count++) {
        ck_assert_msg(has_name(names, *key), "%s lacks the key `%s` of %s", page, *key, map);
    }
    ck_assert_msg(names->count == count, "%s names %zu keys of %s, and there are %zu", page,
                  names->count, map, count);
}

/* Adds each word in backticks of the first column of the table with this head. */
static void read_table(const char *page, const char *head, struct names *names)
{
    const char *line = strstr(page, head);
    ck_assert_msg(line != NULL, "no table \"%s\"", head);
    line = strchr(strchr(line, '\n') + 1, '\n') + 1; /* past the head and the rule below */
    for (; *line == '|'; line = strchr(line, '\n') + 1) {
        const char *end = strchr(line + 1, '|');
        for (const char *tick = strchr(line, '`'); tick != NULL && tick < end;
             tick = strchr(strchr(tick + 1, '`') + 1, '`')) {
            add_name(names, tick + 1, word_length(tick + 1));
        }
    }
}

/* Adds each KEY of `{KEY: value, KEY: value}` in the row of the map. */
static void read_row(const char *page, const char *map, struct names *names)
{
    char head[NAME_SIZE];
    (void)snprintf(head, sizeof head, "\n| `%s` |", map);
    const char *row = strstr(strstr(page, "\n## The config\n"), head);
    ck_assert_msg(row != NULL, "no row of `%s`", map);
    const char *end = strchr(row + 1, '\n');
    for (const char *at = row; at < end; at++) {
        const size_t length = *at == '{' || *at == ' ' ? word_length(at + 1) : 0;
        if (length > 0 && at[length + 1] == ':' && at[length + 2] == ' ' &&
            memchr(row, '{', (size_t)(at - row + 1)) != NULL) {
            add_name(names, at + 1, length);
        }
    }
}

START_TEST(the_page_has_the_keys_of_the_config)
{
    char *page = page_read("docs/provider.md");
    for (enum config_map which = CONFIG_MAP_FILE; which < CONFIG_MAPS; which++) {
        struct names names = {.count = 0};
        char head[NAME_SIZE];
        (void)snprintf(head, sizeof head, "\n| key of `%s` |",
                       map_names[which] == NULL ? "" : map_names[which]);
        if (which == CONFIG_MAP_FILE) {
            read_table(page, "\n| key | default | what |", &names);
        } else if (strstr(page, head) != NULL) {
            read_table(page, head + 1, &names);
        } else {
            read_row(page, map_names[which], &names);
        }
        expect_keys("docs/provider.md", which, &names);
    }
    free(page);
}
END_TEST

/* Returns the milliseconds of the first time in the row, as in "0.4 s". */
static double delay_ms(const char *page, const char *row)
{
    const char *line = strstr(page, row);
    ck_assert_msg(line != NULL, "no row \"%s\"", row);
    char *end;
    const double seconds = strtod(line + strlen(row), &end);
    ck_assert_msg(strncmp(end, " s", 2) == 0, "no time in the row \"%s\"", row);
    return seconds * 1000;
}

START_TEST(the_page_has_the_delay_of_each_sensor)
{
    char *page = page_read("docs/provider.md");
    const struct {
        const char *row;
        int64_t delay_ns;
    } delays[] = {
        {"\n| a key, the mouse, a terminal | ", IDLE_LOOK_NS},
        {"\n| a person who logs in | ", IDLE_LOOK_NS},
        {"\n| a listed program | ", IDLE_PROCESSES_NS},
        {"\n| the load of other programs | ", IDLE_PROCESSES_NS},
        {"\n| the battery, heat, power | ", IDLE_POWER_NS},
        {"\n| others on a GPU (`gpu:`) | ", GPU_WATCH_LOOK_NS},
    };
    for (size_t i = 0; i < sizeof delays / sizeof delays[0]; i++) {
        ck_assert_msg(delay_ms(page, delays[i].row) == (double)(delays[i].delay_ns / 1000000), "%s",
                      delays[i].row);
    }
    free(page);
}
END_TEST

/* Adds the words of each line with .Cm, until a line ends the sentence. */
static void read_sentence(const char *line, struct names *names)
{
    for (bool goes_on = true; goes_on;) {
        const char *end = strchr(line, '\n');
        ck_assert_ptr_nonnull(end);
        goes_on = end[-1] != '.';
        if (strncmp(line, ".Cm ", 4) == 0) {
            for (const char *at = line + 4; at < end;) {
                const size_t length = word_length(at);
                if (length > 0) {
                    add_name(names, at, length);
                }
                at += length + 1;
            }
        }
        line = end + 1;
    }
}

START_TEST(the_manual_page_has_the_keys_of_the_config)
{
    char *page = page_read("docs/man/bourse-provider.8");
    for (enum config_map which = CONFIG_MAP_FILE; which < CONFIG_MAPS; which++) {
        struct names names = {.count = 0};
        char opening[NAME_SIZE] = "\nThe keys are\n";
        if (which != CONFIG_MAP_FILE) {
            (void)snprintf(opening, sizeof opening, "\n.Cm %s\n", map_names[which]);
        }
        const char *from = strstr(page, opening);
        ck_assert_msg(from != NULL, "no sentence begins \"%s\"", opening);
        read_sentence(from + strlen(opening), &names);
        expect_keys("docs/man/bourse-provider.8", which, &names);
    }
    free(page);
}
END_TEST

SUITE("provider pages", NULL, NULL, TEST(the_configs_of_the_page_are_read),
      TEST(the_config_of_the_manual_page_is_read), TEST(the_page_has_the_keys_of_the_config),
      TEST(the_page_has_the_delay_of_each_sensor), TEST(the_manual_page_has_the_keys_of_the_config))
