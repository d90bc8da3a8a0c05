/* broker/answer/figures_board.h holds what devices do at this moment, as the machines of their
 * owners say, for those who list devices.
 *
 * Nothing of it enters the log, and nothing in the market depends on it: a figure is the owner's
 * word. The board is bounded. Each account has one of a few places, and the post that was heard of
 * least lately makes room. Only the core's thread calls these functions. */
#ifndef BOURSE_BROKER_ANSWER_FIGURES_BOARD_H
#define BOURSE_BROKER_ANSWER_FIGURES_BOARD_H

#include "broker/core/outgoing.h"
#include "broker/core/request.h"

enum { FIGURES_BOARD_AGENTS = 1024 };
/* Figures that are older are not told any more. */
#define FIGURES_BOARD_TERM_NS (120 * INT64_C(1000000000))

struct figures_board;

/* Returns NULL when memory is short. */
struct figures_board *figures_board_create(void);
void figures_board_destroy(struct figures_board **self);

/* Takes a FiguresPost, which replaces what its sender said before. Returns the answer, or NULL when
 * memory is short. `now_ns` is the time of a monotonic clock, here and below. */
struct outgoing *figures_board_post(struct figures_board *board, const struct request *request,
                                    int64_t now_ns);
/* Fills the wire form of what the account's machine said of the device, and borrows `device`.
 * Returns false when nothing is known, or when it is too old. */
bool figures_board_find(const struct figures_board *board, uint32_t account,
                        const struct id128 *device, int64_t now_ns,
                        Bourse__V1__DeviceFigures *ret_figures);

#endif
