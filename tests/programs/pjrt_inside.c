/* A plug-in of one file for tests: bourse-pjrt with the fake library inside, since a jail shows no
 * library of the build's. It answers on standard output. */
#include "provider/pjrt/pjrt_serve.h"

#include <stdio.h>

int main(void)
{
    const struct pjrt_options options = {.library = NULL};
    return pjrt_serve(&options, stdin, stdout);
}
