/* The tests ask who wins: flag, environment, project, user, system, default; and whether the winner
 * is named. */
#include "consumer/client/settings.h"
#include "tests/support/suite.h"

#include <check.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char here[64];
static char project[128], user[128], system_wide[128], state[128], config[128];
static const char *market_variable;
static const char *color_variable;

static const char *environment(const char *name)
{
    return strcmp(name, "BOURSE_MARKET") == 0  ? market_variable
           : strcmp(name, "BOURSE_COLOR") == 0 ? color_variable
                                               : NULL;
}

static void setup(void)
{
    (void)snprintf(here, sizeof here, "/tmp/bourse-settings-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(here));
    (void)snprintf(project, sizeof project, "%s/project.yaml", here);
    (void)snprintf(user, sizeof user, "%s/user.yaml", here);
    (void)snprintf(system_wide, sizeof system_wide, "%s/system.yaml", here);
    (void)snprintf(state, sizeof state, "%s/state", here);
    (void)snprintf(config, sizeof config, "%s/config", here);
    market_variable = NULL;
    color_variable = NULL;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *ftw)
{
    (void)status;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void teardown(void)
{
    ck_assert_int_eq(nftw(here, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static void put(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(chmod(path, 0600), 0);
}

static struct settings_sources sources(void)
{
    return (struct settings_sources){.environment = environment,
                                     .project = project,
                                     .user = user,
                                     .system = system_wide,
                                     .state = state,
                                     .config = config};
}

static struct settings loaded(const struct settings_sources *from)
{
    struct settings settings;
    struct problem problem = {.text = ""};
    if (!settings_load(from, &settings, &problem)) {
        ck_abort_msg("refused: %s", problem.text);
    }
    return settings;
}

static struct problem refused(const struct settings_sources *from)
{
    struct settings settings;
    struct problem problem = {.text = ""};
    ck_assert(!settings_load(from, &settings, &problem));
    return problem;
}

START_TEST(each_layer_covers_the_one_below_and_is_named)
{
    struct settings_sources from = sources();
    struct settings settings = loaded(&from);
    ck_assert_str_eq(settings.items[SETTING_COLOR].value, "auto");
    ck_assert_str_eq(settings.items[SETTING_COLOR].origin, "default");

    put(system_wide, "color: never\ntimeout: 9s\n");
    settings = loaded(&from);
    ck_assert_str_eq(settings.items[SETTING_COLOR].value, "never");
    ck_assert_str_eq(settings.items[SETTING_COLOR].origin, system_wide);

    put(user, "color: always\n");
    settings = loaded(&from);
    ck_assert_str_eq(settings.items[SETTING_COLOR].value, "always");
    ck_assert_str_eq(settings.items[SETTING_COLOR].origin, user);
    ck_assert_str_eq(settings.items[SETTING_TIMEOUT].value, "9s"); /* the others stay */

    put(project, "color: auto\n");
    settings = loaded(&from);
    ck_assert_str_eq(settings.items[SETTING_COLOR].origin, project);

    color_variable = "never";
    settings = loaded(&from);
    ck_assert_str_eq(settings.items[SETTING_COLOR].origin, "environment BOURSE_COLOR");

    from.flags[SETTING_COLOR] = "always";
    settings = loaded(&from);
    ck_assert_str_eq(settings.items[SETTING_COLOR].value, "always");
    ck_assert_str_eq(settings.items[SETTING_COLOR].origin, "option --color");
}
END_TEST

START_TEST(a_folder_stands_for_the_market_file_in_it)
{
    struct settings_sources from = sources();
    char expected[256];
    from.flags[SETTING_MARKET] = here;
    (void)snprintf(expected, sizeof expected, "%s/market.yaml", here);
    ck_assert_str_eq(loaded(&from).items[SETTING_MARKET].value, expected);
    from.flags[SETTING_MARKET] = "/some/where/else.yaml";
    ck_assert_str_eq(loaded(&from).items[SETTING_MARKET].value, "/some/where/else.yaml");
}
END_TEST

START_TEST(paths_in_a_file_are_relative_to_that_file)
{
    struct settings_sources from = sources();
    char expected[256];
    put(project, "market: sub/market.yaml\n");
    (void)snprintf(expected, sizeof expected, "%s/sub/market.yaml", here);
    ck_assert_str_eq(loaded(&from).items[SETTING_MARKET].value, expected);
    market_variable = "sub/market.yaml";
    ck_assert_str_eq(loaded(&from).items[SETTING_MARKET].value, "sub/market.yaml");
}
END_TEST

START_TEST(the_key_beside_a_market_is_its_default)
{
    struct settings_sources from = sources();
    char key[256];
    from.flags[SETTING_MARKET] = here;
    (void)snprintf(key, sizeof key, "%s/consumer.key", config);
    ck_assert_str_eq(loaded(&from).items[SETTING_KEY].value, key);
    (void)snprintf(key, sizeof key, "%s/owner.key", here);
    put(key, "x");
    ck_assert_str_eq(loaded(&from).items[SETTING_KEY].value, key);
    from.flags[SETTING_KEY] = "mine.key";
    ck_assert_str_eq(loaded(&from).items[SETTING_KEY].value, "mine.key");
}
END_TEST

START_TEST(a_market_joined_is_the_default_before_the_embedded_one)
{
    struct settings_sources from = sources();
    char path[256];
    (void)snprintf(path, sizeof path, "%s/market/market.yaml", state);
    ck_assert_str_eq(loaded(&from).items[SETTING_MARKET].value, path);
    ck_assert_int_eq(mkdir(config, 0700), 0);
    (void)snprintf(path, sizeof path, "%s/market.yaml", config);
    put(path, "x");
    ck_assert_str_eq(loaded(&from).items[SETTING_MARKET].value, path);
}
END_TEST

START_TEST(reads_come_from_the_leader_unless_somebody_says_otherwise)
{
    struct settings_sources from = sources();
    struct settings_readers readers;
    ck_assert(settings_read_from(loaded(&from).items[SETTING_READ_FROM].value, &readers));
    ck_assert(!readers.any);
    put(user, "read-from: any\n");
    ck_assert(settings_read_from(loaded(&from).items[SETTING_READ_FROM].value, &readers));
    ck_assert(readers.any && readers.least_index == 0);
    from.flags[SETTING_READ_FROM] = "4790";
    ck_assert(settings_read_from(loaded(&from).items[SETTING_READ_FROM].value, &readers));
    ck_assert(readers.any && readers.least_index == 4790);
    static const char *const wrong[] = {"nobody", "-1", "0", "1.5", "Leader"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        from.flags[SETTING_READ_FROM] = wrong[i];
        ck_assert_ptr_nonnull(strstr(refused(&from).text, "option --read-from"));
    }
}
END_TEST

START_TEST(a_file_that_others_may_write_is_refused)
{
    struct settings_sources from = sources();
    put(project, "color: never\n");
    ck_assert_int_eq(chmod(project, 0666), 0);
    ck_assert_ptr_nonnull(strstr(refused(&from).text, "changed by others"));
    ck_assert_int_eq(chmod(project, 0660), 0); /* the group are others, too */
    ck_assert_ptr_nonnull(strstr(refused(&from).text, "changed by others"));
}
END_TEST

START_TEST(mistakes_name_the_place_and_the_nearest_key)
{
    struct settings_sources from = sources();
    put(user, "timeout: 5s\ncolour: never\n");
    struct problem problem = refused(&from);
    ck_assert_ptr_nonnull(strstr(problem.text, "user.yaml:2:"));
    ck_assert_ptr_nonnull(strstr(problem.text, "color"));
    put(user, "timeout: soon\n");
    ck_assert_ptr_nonnull(strstr(refused(&from).text, "user.yaml"));
    put(user, "");
    from.flags[SETTING_COLOR] = "blue";
    ck_assert_ptr_nonnull(strstr(refused(&from).text, "option --color"));
    from.flags[SETTING_COLOR] = NULL;
    from.flags[SETTING_MARKET] = "";
    ck_assert_ptr_nonnull(
        strstr(refused(&from).text, "--market is empty; its value is the market's"));
}
END_TEST

static const char *only_home(const char *name)
{
    return strcmp(name, "HOME") == 0 ? "/home/me" : NULL;
}

static const char *xdg(const char *name)
{
    return strcmp(name, "XDG_CONFIG_HOME") == 0  ? "/c"
           : strcmp(name, "XDG_STATE_HOME") == 0 ? "/s"
                                                 : NULL;
}

static const char *nothing(const char *name)
{
    (void)name;
    return NULL;
}

START_TEST(folders_follow_xdg_and_root_has_its_own)
{
    char c[SETTING_VALUE_SIZE];
    char s[SETTING_VALUE_SIZE];
    struct problem problem;
    ck_assert(settings_folders(only_home, false, c, s, &problem));
    ck_assert_str_eq(c, "/home/me/.config/bourse");
    ck_assert_str_eq(s, "/home/me/.local/state/bourse");
    ck_assert(settings_folders(xdg, false, c, s, &problem));
    ck_assert_str_eq(c, "/c/bourse");
    ck_assert_str_eq(s, "/s/bourse");
    ck_assert(settings_folders(only_home, true, c, s, &problem));
    ck_assert_str_eq(s, "/var/lib/bourse");
    ck_assert(!settings_folders(nothing, false, c, s, &problem));
}
END_TEST

SUITE("settings", setup, teardown, TEST(each_layer_covers_the_one_below_and_is_named),
      TEST(a_folder_stands_for_the_market_file_in_it),
      TEST(paths_in_a_file_are_relative_to_that_file), TEST(the_key_beside_a_market_is_its_default),
      TEST(a_market_joined_is_the_default_before_the_embedded_one),
      TEST(reads_come_from_the_leader_unless_somebody_says_otherwise),
      TEST(a_file_that_others_may_write_is_refused),
      TEST(mistakes_name_the_place_and_the_nearest_key),
      TEST(folders_follow_xdg_and_root_has_its_own))
