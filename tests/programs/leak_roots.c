/* leak_roots.c tells LeakSanitizer where a program with AddressSanitizer keeps its globals.
 *
 * LeakSanitizer reads every writable segment of every library, its own among them. Those are six
 * megabytes of empty tables, and no pointer of ours is in them. Reading them took half of the
 * processor time of a short program. So that search is off here (use_globals=0). When the program
 * exits, all words of other segments that could point to the heap are copied into one region, and
 * LeakSanitizer reads this region. Libraries that were loaded later are seen, too. */
#include <link.h>
#include <sanitizer/lsan_interface.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* AddressSanitizer puts blocks there on x86-64, by the highest digit of an address. */
enum { HEAP_DIGIT = 6, MAPPED_DIGIT = 7, DIGIT_SHIFT = 44 };

const char *__lsan_default_options(void);
const char *__lsan_default_options(void)
{
    return "use_globals=0";
}

struct words {
    uintptr_t *kept; /* NULL while the segments are measured */
    size_t count;
};

static bool is_a_sanitizers(const char *library)
{
    return strstr(library, "/libasan.so") != NULL || strstr(library, "/libubsan.so") != NULL;
}

/* A global lies between redzones, which this function reads, too. */
__attribute__((no_sanitize("address", "undefined"))) static int
look_at_segments(struct dl_phdr_info *library, size_t size, void *to)
{
    (void)size;
    struct words *words = to;
    for (int i = 0; !is_a_sanitizers(library->dlpi_name) && i < library->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &library->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD || (segment->p_flags & PF_W) == 0) {
            continue;
        }
        const uintptr_t begin = (library->dlpi_addr + segment->p_vaddr + sizeof(uintptr_t) - 1) &
                                ~(sizeof(uintptr_t) - 1);
        const uintptr_t end = library->dlpi_addr + segment->p_vaddr + segment->p_memsz;
        for (const uintptr_t *word = (const uintptr_t *)begin; (uintptr_t)(word + 1) <= end;
             word++) {
            const uintptr_t digit = *word >> DIGIT_SHIFT;
            if (words->kept == NULL) {
                words->count += (end - begin) / sizeof *word;
                break;
            }
            if (digit == HEAP_DIGIT || digit == MAPPED_DIGIT) {
                words->kept[words->count++] = *word;
            }
        }
    }
    return 0;
}

static void register_words(void)
{
    struct words words = {0};
    dl_iterate_phdr(look_at_segments, &words);
    void *region = mmap(NULL, words.count * sizeof(uintptr_t), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (region == MAP_FAILED) {
        abort(); /* every global would be called a leak */
    }
    words = (struct words){.kept = region};
    dl_iterate_phdr(look_at_segments, &words);
    __lsan_register_root_region(region, words.count * sizeof(uintptr_t));
}

/* LeakSanitizer's own function was registered before, so that function runs after this one. The
 * linker is told to take this name. */
void leak_roots_start(void);
__attribute__((constructor)) void leak_roots_start(void)
{
    atexit(register_words);
}
