/* leak-probe leak|held: whether a sanitized program's leaks are found, and only leaks.
 *
 * `leak` loses a small and a large block. `held` keeps the same blocks in globals, one of them in
 * a table that was never touched elsewhere. tests/programs/leak_roots.c looks for the globals. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL = 40, LARGE = 64 << 20, PLACES = 100000, PLACE = 77777 };

static void *volatile small_block;
static void *volatile table[PLACES];

int main(int argc, char **argv)
{
    const int is_held = argc == 2 && strcmp(argv[1], "held") == 0;
    if (!is_held && (argc != 2 || strcmp(argv[1], "leak") != 0)) {
        fputs("usage: leak-probe leak|held\n", stderr);
        return 2;
    }
    void *volatile small = malloc(SMALL);
    void *volatile large = malloc(LARGE);
    if (small == NULL || large == NULL) {
        fputs("leak-probe: no memory\n", stderr);
        return 3;
    }
    if (is_held) {
        small_block = small;
        table[PLACE] = large;
    }
    small = NULL; /* the stack holds neither */
    large = NULL;
    return 0;
}
