#include "consumer/command/plan/picture.h"

#include "consumer/command/show.h"
#include "runtime/files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool picture_width(struct invocation *invocation, unsigned *ret_width)
{
    int64_t width = screen_width(STDOUT_FILENO);
    if (!option_count(invocation, "width", PICTURE_WIDTH_MIN, PICTURE_WIDTH_MAX, &width)) {
        return false;
    }
    *ret_width = (unsigned)width;
    return true;
}

struct picture_style picture_style_of(const struct invocation *invocation, unsigned width)
{
    return (struct picture_style){
        .width = width, .ascii = !screen_is_utf8(), .color = invocation->color};
}

void picture_print(char *text)
{
    if (text != NULL) {
        (void)printf("\n%s", text);
    }
    free(text);
}

bool picture_path(struct invocation *invocation, const char **ret_path, int *ret_status)
{
    *ret_path = option_text(invocation, "svg", NULL);
    return *ret_path == NULL ||
           command_may_replace(invocation, "--svg", *ret_path, "<svg", 4, "picture", ret_status);
}

bool picture_write(struct invocation *invocation, const char *path, char *text, int *ret_status)
{
    struct problem problem = {.text = ""};
    struct stat facts;
    bool ok;
    if (text == NULL) {
        *ret_status = complain(invocation, BOURSE_LOCAL, "out of memory");
        return false;
    }
    if (lstat(path, &facts) != 0 || S_ISREG(facts.st_mode)) {
        ok = file_write(path, text, strlen(text), 0666 & ~invocation->umask, &problem);
    } else {
        FILE *file = fopen(path, "we");
        ok = file != NULL && fputs(text, file) >= 0;
        ok = (file == NULL || fclose(file) == 0) && ok;
        problem_set(&problem, "%s: %s", path, strerror(errno));
    }
    free(text);
    if (!ok) {
        *ret_status = complain(invocation, BOURSE_LOCAL, "%s", problem.text);
    }
    return ok;
}
