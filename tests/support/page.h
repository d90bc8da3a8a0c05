/* tests/support/page.h reads the pages of docs/, and takes their examples out.
 *
 * An example stands between a line that opens it and a line that closes it. Both may be indented,
 * as in a list; the example is then indented alike, and the indentation is removed. */
#ifndef BOURSE_TESTS_SUPPORT_PAGE_H
#define BOURSE_TESTS_SUPPORT_PAGE_H

#include <stddef.h>

enum { PAGE_EXAMPLE_SIZE = 4096 };

/* Returns the text of a file of the source tree, such as "docs/jobfile.md"; the caller frees the
 * text. The test fails when the file cannot be read. */
char *page_read(const char *name);

/* Writes the next example behind `from`, between a line `opening` and the next line `closing`.
 * Returns the place behind the example, or NULL when there is no further example. The test fails
 * when an example does not end, is not indented alike, or is too long. */
const char *page_example(const char *from, const char *opening, const char *closing,
                         char ret_example[PAGE_EXAMPLE_SIZE]);

#endif
