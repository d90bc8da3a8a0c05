/* The listing of a folder is a stranger's: what may be in it, and what is refused. */
#include "formats/staging/work_tree.h"

#include "base/text.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

enum { BYTES = 4096 };

static uint8_t bytes[BYTES];
static char seen[BYTES];
static struct problem problem;

static size_t write_all(const struct work_tree_entry *entries, size_t count)
{
    struct writer out = writer_over(bytes, sizeof bytes);
    work_tree_write_head(&out, (uint32_t)count);
    for (size_t i = 0; i < count; i++) {
        work_tree_write(&out, &entries[i]);
    }
    ck_assert(!out.failed);
    return out.position;
}

static bool see(void *context, const struct work_tree_entry *entry, struct problem *ret_problem)
{
    const size_t used = strlen(seen);
    (void)context;
    (void)ret_problem;
    (void)snprintf(seen + used, sizeof seen - used, "%d %o %lld %s%s%s\n", (int)entry->kind,
                   entry->mode, (long long)entry->modified_ns, entry->name,
                   entry->target[0] != '\0' ? " -> " : "", entry->target);
    return true;
}

static bool read_back(size_t length)
{
    seen[0] = '\0';
    problem = (struct problem){.text = ""};
    return work_tree_read(bytes, length, see, NULL, &problem);
}

static struct work_tree_entry file(const char *name)
{
    return (struct work_tree_entry){
        .kind = WORK_TREE_FILE, .mode = 0644, .modified_ns = 5, .name = name, .target = ""};
}

static struct work_tree_entry folder(const char *name)
{
    return (struct work_tree_entry){
        .kind = WORK_TREE_FOLDER, .mode = 0755, .modified_ns = 6, .name = name, .target = ""};
}

static struct work_tree_entry link_to(const char *name, const char *target)
{
    return (struct work_tree_entry){
        .kind = WORK_TREE_LINK, .modified_ns = -7, .name = name, .target = target};
}

START_TEST(a_listing_comes_back_as_it_was)
{
    const struct work_tree_entry entries[] = {folder("a"), file("a/b"),       folder("a/c"),
                                              file("a-b"), link_to("l", "a"), link_to("m", ".")};
    ck_assert(read_back(write_all(entries, 6)));
    ck_assert_str_eq(seen, "2 755 6 a\n1 644 5 a/b\n2 755 6 a/c\n1 644 5 a-b\n"
                           "3 0 -7 l -> a\n3 0 -7 m -> .\n");
    ck_assert(read_back(write_all(entries, 0)));
    ck_assert_str_eq(seen, "");
}
END_TEST

/* A vector for other implementations: the bytes of a listing never change. */
START_TEST(a_listing_has_known_bytes)
{
    static const char hex[] = "424f55525345543103000000"
                              "02ed0106000000000000000100"
                              "61"
                              "01a40105000000000000000300"
                              "612f62"
                              "030000f9ffffffffffffff01006c"
                              "010061";
    const struct work_tree_entry entries[] = {folder("a"), file("a/b"), link_to("l", "a")};
    char text[2 * sizeof hex];
    const size_t length = write_all(entries, 3);
    text_hex(bytes, length, text);
    ck_assert_str_eq(text, hex);
}
END_TEST

static void refuses(const struct work_tree_entry *entries, size_t count, const char *why)
{
    ck_assert(!read_back(write_all(entries, count)));
    ck_assert_msg(strstr(problem.text, why) != NULL, "%s: %s", why, problem.text);
}

#define REFUSES(why, ...)                                                                          \
    do {                                                                                           \
        const struct work_tree_entry entries[] = {__VA_ARGS__};                                    \
        refuses(entries, sizeof entries / sizeof *entries, (why));                                 \
    } while (0)

START_TEST(a_hostile_listing_is_refused)
{
    REFUSES("leads out of the folder", link_to("a", ".."), file("a/passwd"));
    REFUSES("absolute", link_to("a", "/etc"), file("a/passwd"));
    REFUSES("lies below", link_to("a", "b"), file("a/passwd"));
    REFUSES("lies below", link_to("a", "b"), link_to("a/c", ".."));
    REFUSES("lies below", file("a"), folder("a/b"));
    REFUSES("leads out of the work folder", file("../a"));
    REFUSES("leads out of the work folder", file("/a"));
    REFUSES("leads out of the work folder", folder("a/./b"));
    REFUSES("leads out of the work folder", folder("."));
    REFUSES("leads out of the work folder", file("a\nb"));
    REFUSES("leads out of the work folder", file(""));
    REFUSES("out of order", file("b"), file("a"));
    REFUSES("out of order", file("a"), link_to("a", "b"));
    REFUSES("out of order", file("a-b"), file("a/c"));
}
END_TEST

START_TEST(a_damaged_listing_is_refused)
{
    const struct work_tree_entry entries[] = {folder("a"), file("a/b"), link_to("l", "a")};
    const size_t length = write_all(entries, 3);
    for (size_t cut = 0; cut < length; cut++) {
        ck_assert_msg(!read_back(cut), "%zu bytes are enough", cut);
    }
    bytes[length] = 0;
    ck_assert(!read_back(length + 1));
    ck_assert(read_back(length));
    bytes[0] ^= 1;
    ck_assert(!read_back(length));
    struct work_tree_entry odd = file("a");
    odd.mode = 01644; /* the sticky bit */
    refuses(&odd, 1, "damaged");
    odd = link_to("a", "b");
    odd.mode = 0777;
    refuses(&odd, 1, "damaged");
    odd = file("a");
    odd.kind = (enum work_tree_kind)4;
    refuses(&odd, 1, "damaged");
    odd.kind = (enum work_tree_kind)0;
    refuses(&odd, 1, "damaged");
    struct writer out = writer_over(bytes, sizeof bytes);
    work_tree_write_head(&out, WORK_TREE_ENTRIES + 1);
    ck_assert(!read_back(out.position));
}
END_TEST

START_TEST(what_is_in_a_folder_comes_directly_behind_it)
{
    ck_assert_int_lt(work_tree_compare("a", "a/b"), 0);
    ck_assert_int_lt(work_tree_compare("a/b", "a-b"), 0);
    ck_assert_int_lt(work_tree_compare("a/b/c", "a/b-"), 0);
    ck_assert_int_lt(work_tree_compare("a", "ü"), 0);
    ck_assert_int_eq(work_tree_compare("a/b", "a/b"), 0);
    ck_assert(work_tree_is_below("a/b", "a") && !work_tree_is_below("ab", "a") &&
              !work_tree_is_below("a", "a"));
}
END_TEST

SUITE("work_tree", NULL, NULL, TEST(a_listing_comes_back_as_it_was),
      TEST(a_listing_has_known_bytes), TEST(a_hostile_listing_is_refused),
      TEST(a_damaged_listing_is_refused), TEST(what_is_in_a_folder_comes_directly_behind_it))
