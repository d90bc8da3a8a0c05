/* The target reads any bytes as an ignore file, and matches paths. Every match must end. */
#include "formats/ignore.h"

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const paths[] = {"a", "a/b/c.o", "build", ".git/config", "[x]", "*"};
    struct problem problem;
    struct ignore *ignore = ignore_parse((const char *)data, size, &problem);
    for (size_t i = 0; ignore != NULL && i < sizeof paths / sizeof paths[0]; i++) {
        (void)ignore_leaves_out(ignore, paths[i], i % 2 == 0);
    }
    ignore_destroy(&ignore);
    return 0;
}
