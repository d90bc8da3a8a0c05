/* The test compares a report byte for byte, in a terminal and as a picture.
 *
 * `golden_report --print` writes what tests/golden/report.txt holds. Without an argument the
 * program makes the report anew and compares. */
#include "tests/support/sample_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GOLDEN_FILE BOURSE_SOURCE_DIR "/tests/golden/report.txt"

static void print_timeline(FILE *to, const char *title, const struct report *report,
                           struct picture_style style)
{
    char *text = report_timeline(report, &style);
    (void)fprintf(to, "== %s\n%s", title, text != NULL ? text : "no memory\n");
    free(text);
}

static void print_all(FILE *to)
{
    struct report *small = sample_small();
    struct report *large = sample_large();
    struct report *wide = sample_wide();
    struct report *planned = sample_planned();
    if (report_make(small) != REPORT_OK || report_make(large) != REPORT_OK ||
        report_make(wide) != REPORT_OK || report_make(planned) != REPORT_OK) {
        (void)fprintf(stderr, "the samples are no reports\n");
        exit(EXIT_FAILURE);
    }
    print_timeline(to, "4 subtasks, 80 columns", small, (struct picture_style){.width = 80});
    print_timeline(to, "4 subtasks, 40 columns, ASCII", small,
                   (struct picture_style){.width = 40, .ascii = true});
    print_timeline(to, "4 subtasks, color", small,
                   (struct picture_style){.width = 80, .color = true});
    print_timeline(to, "10,000 subtasks, 80 columns", large, (struct picture_style){.width = 80});
    print_timeline(to, "10,000 subtasks, 80 columns, ASCII", large,
                   (struct picture_style){.width = 80, .ascii = true});
    print_timeline(to, "60 devices, 80 columns", wide, (struct picture_style){.width = 80});
    char *svg = report_svg(small);
    (void)fprintf(to, "== 4 subtasks, SVG\n%s", svg != NULL ? svg : "no memory\n");
    free(svg);
    print_timeline(to, "below what was planned", planned, (struct picture_style){.width = 80});
    print_timeline(to, "below what was planned, color", planned,
                   (struct picture_style){.width = 80, .color = true});
    svg = report_svg(planned);
    (void)fprintf(to, "== below what was planned, SVG\n%s", svg != NULL ? svg : "no memory\n");
    free(svg);
    report_destroy(&planned);
    report_destroy(&small);
    report_destroy(&large);
    report_destroy(&wide);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--print") == 0) {
        print_all(stdout);
        return EXIT_SUCCESS;
    }
    char *made = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&made, &length);
    FILE *golden = fopen(GOLDEN_FILE, "re");
    if (to == NULL || golden == NULL) {
        (void)fprintf(stderr, "no %s\n", GOLDEN_FILE);
        return EXIT_FAILURE;
    }
    print_all(to);
    (void)fclose(to); /* memory: nothing to lose */
    char *kept = calloc(1, length + 2);
    size_t got = kept != NULL ? fread(kept, 1, length + 1, golden) : 0;
    (void)fclose(golden); /* only read */
    bool same = got == length && memcmp(made, kept, length) == 0;
    if (!same) {
        (void)fprintf(stderr, "%s is not what is drawn now; see golden_report --print\n",
                      GOLDEN_FILE);
    }
    free(made);
    free(kept);
    return same ? EXIT_SUCCESS : EXIT_FAILURE;
}
