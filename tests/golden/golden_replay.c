/* Replays the journals NAME.journal of tests/golden and compares what comes of each with NAME.txt:
 * from the first command, and with a snapshot saved and loaded at many places in between (P8).
 *
 *     replay   what there was first
 *     orders   bids by value, orders of all types, other terms, conditions, leases that are taken
 *
 * A journal was recorded by `prop_replay --record`; it is never made anew only because the code
 * changed: a broker must read the journals that were written before. When the state or its bytes
 * were meant to change:
 *     golden_replay --print [NAME] > tests/golden/NAME.txt     (no NAME: replay)
 * and the commit says why. tests/integration/test_determinism.sh builds this program in several
 * ways. */
#include "tests/support/journal_digest.h"

#include <locale.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { JOURNAL_MAX = 4 << 20, CUTS = 7, PATH_SIZE = 512 };

static const char *const names[] = {"replay", "orders"};

static void path_of(char ret_path[PATH_SIZE], const char *name, const char *end)
{
    (void)snprintf(ret_path, PATH_SIZE, BOURSE_SOURCE_DIR "/tests/golden/%s.%s", name, end);
}

static bool read_file(const char *path, void *ret_bytes, size_t capacity, size_t *ret_length)
{
    FILE *file = fopen(path, "rbe");
    if (file == NULL) {
        (void)fprintf(stderr, "%s cannot be opened\n", path);
        return false;
    }
    *ret_length = fread(ret_bytes, 1, capacity, file);
    bool whole = *ret_length < capacity && ferror(file) == 0;
    (void)fclose(file); /* read only */
    if (!whole) {
        (void)fprintf(stderr, "%s cannot be read, or is larger than this program reads\n", path);
    }
    return whole;
}

/* One replay as text; ends the program when there is none. */
static void digest_at(const uint8_t *journal, size_t length, uint64_t cut,
                      char ret_text[DIGEST_TEXT_SIZE], uint64_t *ret_entries)
{
    struct journal_digest digest;
    struct problem problem;
    if (!journal_digest(journal, length, cut, &digest, &problem)) {
        (void)fprintf(stderr, "replay with a snapshot after entry %llu: %s\n",
                      (unsigned long long)cut, problem.text);
        exit(EXIT_FAILURE);
    }
    journal_digest_text(&digest, ret_text);
    *ret_entries = digest.entries;
}

static bool is_same(const char *name, const char *expected, const char *found, uint64_t cut)
{
    if (strcmp(expected, found) == 0) {
        return true;
    }
    (void)fprintf(
        stderr,
        "with a snapshot after entry %llu (0: none) the replay differs.\nexpected:\n%s"
        "found:\n%s"
        "If the state was meant to change: golden_replay --print %s > tests/golden/%s.txt\n",
        (unsigned long long)cut, expected, found, name, name);
    return false;
}

/* Shows that the locale and the zone asked for are really in force. */
static void say_where(void)
{
    time_t summer = 1720000000;
    struct tm local;
    char zone[32] = "?";
    if (localtime_r(&summer, &local) != NULL) {
        (void)strftime(zone, sizeof zone, "%z", &local);
    }
    (void)fprintf(stderr, "locale %s, one half is %.1f, zone %s\n", setlocale(LC_ALL, NULL), 0.5,
                  zone);
}

static bool replays(const char *name, bool prints)
{
    static uint8_t journal[JOURNAL_MAX];
    static char expected[DIGEST_TEXT_SIZE];
    static char found[DIGEST_TEXT_SIZE];
    char path[PATH_SIZE];
    size_t length;
    uint64_t entries;
    path_of(path, name, "journal");
    if (!read_file(path, journal, sizeof journal, &length)) {
        return false;
    }
    digest_at(journal, length, 0, found, &entries);
    if (prints) {
        return fputs(found, stdout) >= 0;
    }
    size_t expected_length;
    path_of(path, name, "txt");
    if (!read_file(path, expected, sizeof expected - 1, &expected_length)) {
        return false;
    }
    expected[expected_length] = '\0';
    bool good = is_same(name, expected, found, 0);
    for (uint64_t i = 1; i <= CUTS; i++) {
        uint64_t cut = i * entries / (CUTS + 1);
        digest_at(journal, length, cut, found, &entries);
        good = is_same(name, expected, found, cut) && good;
    }
    (void)printf("%s: %s\n", path, good ? "ok" : "FAILED");
    return good;
}

int main(int argc, char **argv)
{
    (void)setlocale(LC_ALL, ""); /* an unknown one leaves "C": say_where tells */
    if (sodium_init() < 0) {
        return EXIT_FAILURE;
    }
    if (argc >= 2 && strcmp(argv[1], "--print") == 0) {
        return replays(argc > 2 ? argv[2] : names[0], true) ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    say_where();
    bool good = true;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        good = replays(names[i], false) && good;
    }
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
