#include "formats/staging/work_tree.h"

#include "base/reader.h"
#include "base/text.h"
#include "formats/staging/staged_link.h"
#include "formats/template.h"

#include <string.h>

static const uint8_t head[8] = {'B', 'O', 'U', 'R', 'S', 'E', 'T', '1'};

/* ---------------------------------------------------------------- order */

/* Returns the weight of a byte in the order: the end comes first, and then the slash. */
static int weight(char c)
{
    return c == '\0' ? 0 : c == '/' ? 1 : 2 + (unsigned char)c;
}

int work_tree_compare(const char *a, const char *b)
{
    while (*a != '\0' && *a == *b) {
        a++;
        b++;
    }
    return weight(*a) - weight(*b);
}

bool work_tree_is_below(const char *name, const char *above)
{
    const size_t length = strlen(above);
    return strncmp(name, above, length) == 0 && name[length] == '/';
}

/* ---------------------------------------------------------------- writing */

void work_tree_write_head(struct writer *out, uint32_t count)
{
    writer_bytes(out, head, sizeof head);
    writer_u32(out, count);
}

static void write_text(struct writer *out, const char *text)
{
    const size_t length = strlen(text);
    writer_u16(out, (uint16_t)length);
    writer_bytes(out, text, length);
}

void work_tree_write(struct writer *out, const struct work_tree_entry *entry)
{
    writer_u8(out, (uint8_t)entry->kind);
    writer_u16(out, (uint16_t)entry->mode);
    writer_i64(out, entry->modified_ns);
    write_text(out, entry->name);
    if (entry->kind == WORK_TREE_LINK) {
        write_text(out, entry->target);
    }
}

/* ---------------------------------------------------------------- reading */

/* The texts of one entry. */
struct texts {
    char name[FORMAT_PATH_BYTES + 1];
    char target[STAGED_LINK_BYTES + 1];
};

static bool read_text(struct reader *in, char *ret_text, size_t capacity)
{
    const size_t length = reader_u16(in);
    const uint8_t *bytes = reader_view(in, length);
    if (bytes == NULL || length >= capacity || memchr(bytes, 0, length) != NULL) {
        return false;
    }
    memcpy(ret_text, bytes, length);
    ret_text[length] = '\0';
    return true;
}

static bool refuse(struct problem *ret_problem, const char *name, const char *why)
{
    char shown[128];
    text_printable(name, strlen(name), shown, sizeof shown);
    problem_set(ret_problem, "'%s' %s", shown, why);
    return false;
}

static bool damaged(struct problem *ret_problem)
{
    problem_set(ret_problem, "it is damaged");
    return false;
}

static bool read_entry(struct reader *in, struct texts *texts, struct work_tree_entry *ret_entry,
                       struct problem *ret_problem)
{
    const uint8_t kind = reader_u8(in);
    const unsigned mode = reader_u16(in);
    const int64_t modified_ns = reader_i64(in);
    texts->target[0] = '\0';
    if (!read_text(in, texts->name, sizeof texts->name) || kind < WORK_TREE_FILE ||
        kind > WORK_TREE_LINK || mode > (kind == WORK_TREE_LINK ? 0U : 0777U) ||
        (kind == WORK_TREE_LINK && !read_text(in, texts->target, sizeof texts->target))) {
        return damaged(ret_problem);
    }
    if (!template_path_safe(texts->name)) {
        return refuse(ret_problem, texts->name, "leads out of the work folder or is no plain text");
    }
    const char *why =
        kind == WORK_TREE_LINK ? staged_link_problem(texts->name, texts->target) : NULL;
    if (why != NULL) {
        return refuse(ret_problem, texts->name, why);
    }
    *ret_entry = (struct work_tree_entry){.kind = (enum work_tree_kind)kind,
                                          .mode = mode,
                                          .modified_ns = modified_ns,
                                          .name = texts->name,
                                          .target = texts->target};
    return true;
}

/* Checks an entry against the one before. What is below an entry would come directly behind it. */
static bool check_order(const struct work_tree_entry *before, const struct work_tree_entry *entry,
                        struct problem *ret_problem)
{
    if (work_tree_compare(before->name, entry->name) >= 0) {
        return refuse(ret_problem, entry->name, "is out of order");
    }
    return before->kind == WORK_TREE_FOLDER || !work_tree_is_below(entry->name, before->name) ||
           refuse(ret_problem, entry->name, "lies below a file or a link");
}

bool work_tree_read(const void *bytes, size_t length, work_tree_visit *visit, void *context,
                    struct problem *ret_problem)
{
    struct reader in = reader_over(bytes, length);
    const uint8_t *begin = reader_view(&in, sizeof head);
    const uint32_t count = reader_u32(&in);
    struct texts texts[2]; /* of an entry, and of the one before */
    struct work_tree_entry entries[2];
    if (begin == NULL || memcmp(begin, head, sizeof head) != 0 || length > WORK_TREE_BYTES ||
        count > WORK_TREE_ENTRIES) {
        return damaged(ret_problem);
    }
    for (uint32_t i = 0; i < count; i++) {
        struct work_tree_entry *entry = &entries[i % 2];
        if (!read_entry(&in, &texts[i % 2], entry, ret_problem) ||
            (i > 0 && !check_order(&entries[(i + 1) % 2], entry, ret_problem)) ||
            !visit(context, entry, ret_problem)) {
            return false;
        }
    }
    return reader_finished(&in) || damaged(ret_problem);
}
