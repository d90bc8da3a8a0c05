#include "broker/answer/figures_board.h"

#include "base/checked.h"
#include "broker/answer/wire_view.h"
#include "protocol/codec.h"
#include "protocol/limits.h"

#include <stdlib.h>
#include <string.h>

enum { WAYS = 8, SETS = FIGURES_BOARD_AGENTS / WAYS }; /* places of one account */

struct post { /* what one account said */
    uint32_t account;
    size_t count; /* 0: the place is free */
    int64_t heard_ns;
    struct id128 devices[LIMIT_FIGURES];
    /* The figures are without their device, which the array above has. */
    Bourse__V1__DeviceFigures figures[LIMIT_FIGURES];
};

struct figures_board {
    struct post posts[SETS][WAYS];
};

struct figures_board *figures_board_create(void)
{
    return calloc(1, sizeof(struct figures_board));
}

void figures_board_destroy(struct figures_board **self)
{
    free(*self);
    *self = NULL;
}

static const struct post *find_post(const struct figures_board *board, uint32_t account)
{
    const struct post *posts = board->posts[account % SETS];
    for (size_t i = 0; i < WAYS; i++) {
        if (posts[i].count > 0 && posts[i].account == account) {
            return &posts[i];
        }
    }
    return NULL;
}

/* Returns the account's place, or a free one, or the place of the oldest post. */
static struct post *take_post(struct figures_board *board, uint32_t account)
{
    struct post *posts = board->posts[account % SETS];
    struct post *found = &posts[0];
    for (size_t i = 0; i < WAYS; i++) {
        if (posts[i].count > 0 && posts[i].account == account) {
            return &posts[i];
        }
        const int64_t heard_ns = posts[i].count > 0 ? posts[i].heard_ns : INT64_MIN;
        if (found->count > 0 && heard_ns < found->heard_ns) {
            found = &posts[i];
        }
    }
    return found;
}

struct outgoing *figures_board_post(struct figures_board *board, const struct request *request,
                                    int64_t now_ns)
{
    const Bourse__V1__FiguresPost *body = (const void *)request->translation.body;
    const Bourse__V1__FiguresTaken answer = BOURSE__V1__FIGURES_TAKEN__INIT;
    struct post *post = take_post(board, request->account);
    if (body->n_devices > 0 || post->account == request->account) {
        *post = (struct post){.account = request->account, .heard_ns = now_ns};
    }
    for (size_t i = 0; i < body->n_devices && i < LIMIT_FIGURES; i++) {
        post->devices[i] = codec_id(body->devices[i]->device);
        post->figures[i] = *body->devices[i];
        post->figures[i].device = (ProtobufCBinaryData){.len = 0};
        post->figures[i].base.n_unknown_fields = 0; /* they belong to the message */
        post->figures[i].base.unknown_fields = NULL;
        post->count++;
    }
    return outgoing_reply(request, MESSAGE_FIGURES_TAKEN, &answer.base);
}

bool figures_board_find(const struct figures_board *board, uint32_t account,
                        const struct id128 *device, int64_t now_ns,
                        Bourse__V1__DeviceFigures *ret_figures)
{
    const struct post *post = find_post(board, account);
    for (size_t i = 0; post != NULL && i < post->count; i++) {
        if (!id128_equal(&post->devices[i], device)) {
            continue;
        }
        const int64_t heard_ms = (now_ns - post->heard_ns) / NS_PER_MS;
        int64_t age_ms;
        if (!checked_add((int64_t)post->figures[i].age_ms, heard_ms, &age_ms) ||
            age_ms > FIGURES_BOARD_TERM_NS / NS_PER_MS) {
            return false;
        }
        *ret_figures = post->figures[i];
        ret_figures->device = wire_view(device, sizeof *device);
        ret_figures->age_ms = (uint64_t)age_ms;
        return true;
    }
    return false;
}
