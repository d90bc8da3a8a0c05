/* Replays tests/golden/replay.journal and compares what comes of it with tests/golden/replay.txt: from the
 * first command, and with a snapshot saved and loaded at many places in between (P8).
 *
 * The journal was recorded by `prop_replay --record`; it is never made anew only because the code changed: a
 * broker must read the journals that were written before. When the state or its bytes were meant to change:
 *     golden_replay --print > tests/golden/replay.txt
 * and the commit says why. tests/integration/test_determinism.sh builds this program in several ways. */
#include "tests/support/journal_digest.h"

#include <locale.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define JOURNAL BOURSE_SOURCE_DIR "/tests/golden/replay.journal"
#define EXPECTED BOURSE_SOURCE_DIR "/tests/golden/replay.txt"

enum { JOURNAL_MAX = 4 << 20, CUTS = 7 };

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

static bool is_same(const char *expected, const char *found, uint64_t cut)
{
    if (strcmp(expected, found) == 0) {
        return true;
    }
    (void)fprintf(stderr,
                  "with a snapshot after entry %llu (0: none) the replay differs.\nexpected:\n%s"
                  "found:\n%s"
                  "If the state was meant to change: golden_replay --print > %s\n",
                  (unsigned long long)cut, expected, found, EXPECTED);
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

int main(int argc, char **argv)
{
    static uint8_t journal[JOURNAL_MAX];
    static char expected[DIGEST_TEXT_SIZE];
    static char found[DIGEST_TEXT_SIZE];
    size_t length;
    size_t expected_length;
    uint64_t entries;
    (void)setlocale(LC_ALL, ""); /* an unknown one leaves "C": say_where tells */
    if (sodium_init() < 0 || !read_file(JOURNAL, journal, sizeof journal, &length)) {
        return EXIT_FAILURE;
    }
    digest_at(journal, length, 0, found, &entries);
    if (argc == 2 && strcmp(argv[1], "--print") == 0) {
        (void)fputs(found, stdout);
        return EXIT_SUCCESS;
    }
    say_where();
    if (!read_file(EXPECTED, expected, sizeof expected - 1, &expected_length)) {
        return EXIT_FAILURE;
    }
    bool good = is_same(expected, found, 0);
    for (uint64_t i = 1; i <= CUTS; i++) {
        uint64_t cut = i * entries / (CUTS + 1);
        digest_at(journal, length, cut, found, &entries);
        good = is_same(expected, found, cut) && good;
    }
    (void)printf("%s: %s\n", EXPECTED, good ? "ok" : "FAILED");
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
