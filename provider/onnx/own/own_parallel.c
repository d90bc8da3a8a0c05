#include "provider/onnx/own/own_parallel.h"

#include <pthread.h>
#include <stddef.h>

/* Fewer operations cost less than starting a thread for them. */
#define OPERATIONS_LEAST (INT64_C(1) << 18)

struct piece {
    void (*work)(void *context, int64_t first, int64_t last);
    void *context;
    int64_t first, last;
};

static void *run_piece(void *argument)
{
    const struct piece *piece = argument;
    piece->work(piece->context, piece->first, piece->last);
    return NULL;
}

void own_parallel(unsigned threads, int64_t count, int64_t least,
                  void (*work)(void *context, int64_t first, int64_t last), void *context)
{
    struct piece pieces[OWN_THREADS_MOST];
    pthread_t running[OWN_THREADS_MOST];
    unsigned started = 0;
    int64_t first = 0;
    const int64_t most = threads > OWN_THREADS_MOST ? OWN_THREADS_MOST : threads < 1 ? 1 : threads;
    int64_t each = count / most + (count % most != 0);
    each = each < least ? least : each;
    for (; each > 0 && count - first > each; first += each) {
        pieces[started] = (struct piece){work, context, first, first + each};
        if (pthread_create(&running[started], NULL, run_piece, &pieces[started]) != 0) {
            break;
        }
        started++;
    }
    if (count > first) {
        work(context, first, count);
    }
    while (started > 0) {
        (void)pthread_join(running[--started], NULL); /* our own thread, joined once */
    }
}

int64_t own_parallel_least(int64_t operations)
{
    return OPERATIONS_LEAST / (operations < 1 ? 1 : operations) + 1;
}
