/* planner/layout/split.h - one operation over unlike devices: who does how much of it, and into
 * which tiles a matrix product is cut.
 *
 * Work is `units` alike. A device starts after its fixed cost F (its start, and the transfer of
 * what it needs whatever its share) and then finishes `slots` units every u seconds:
 *
 *     u = max( overhead + flop / flops,  slots x bytes / link )     design.md section 7: transfers hide behind work
 *
 * Were units divisible, all that take part would finish at one moment T, the level to which water
 * poured over the devices' fixed costs would rise (divisible load theory: Beaumont et al.,
 * "Scheduling divisible loads on star and tree networks", IEEE TPDS 16(3), 2005):
 *
 *        T |~~~~~~~~|~~~~~~~~|  dropped     sum over i of (T - F_i) slots_i / u_i = units,
 *          |  work  |  work  | |######|     a device with F_i >= T gets nothing
 *          |########|  work  | |######|
 *          |########|########| |######|
 *          device 0    1          2
 *
 * Whole units: each device first gets what it finishes by T, rounded down; each unit that is left
 * goes where it is finished first. Units are alike, so this takes the `units` smallest of all
 * finishing times, and no other way to deal them out ends earlier (Boulet, Dongarra, Robert,
 * Vivien, "Static tiling for heterogeneous computing platforms", Parallel Computing 25(5), 1999).
 * Ties go to the cheaper device, then to the first.
 *
 * A split has to be worth its risk: below SPLIT_GAIN_PERCENT over the best single device, or below
 * what the figures may be off by, that one gets all.
 *
 * What is predicted here chooses devices and tiles; who runs which tile is decided by the exchange
 * as results come in, so a device that is slower than it said gets less. Figures are doubles:
 * nothing here is money or enters the log. Pure. */
#ifndef BOURSE_PLANNER_LAYOUT_SPLIT_H
#define BOURSE_PLANNER_LAYOUT_SPLIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SPLIT_GAIN_PERCENT = 5,
    SPLIT_FINER_PERCENT = 2,  /* longer may a finer grid take */
    SPLIT_DOUBT_PERCENT = 20, /* longer than it said may a device take */
    SPLIT_DEVICES = 256,      /* at a time, and so many slots: the time taken is their product */
    SPLIT_SLOTS = 4096,
    SPLIT_BLOCKS = 64,      /* along one side, where the planner chooses */
    SPLIT_BLOCK_LEAST = 64, /* rows or columns of such a block, unless the matrix has fewer */
};

struct split_device {
    double flops;        /* per second, of one slot; > 0 */
    double fixed_s;      /* before its first unit; >= 0 */
    double link;         /* bytes per second, shared by its slots; 0: nothing has to be carried */
    uint32_t slots;      /* >= 1 */
    int64_t price_micro; /* per slot-hour; >= 0 */
    uint64_t
        tile_bytes; /* of a product: most that a tile's three matrices may take together there */
};

struct split_work {
    uint64_t units;    /* >= 1 */
    double flop;       /* of one unit; > 0 */
    double bytes;      /* carried for one; >= 0 */
    double overhead_s; /* of one, on any device; >= 0 */
    double margin_s;   /* that a split gains at the least, beside the percentage; >= 0 */
};

struct split_share {
    uint64_t units;
    double finish_s; /* 0 without units */
};

struct split {
    double finish_s; /* of the shares returned */
    double single_s; /* of the best single device; of a product: in the grid that is best for it */
    size_t single;   /* which that is */
    size_t device_count; /* with a share */
    bool is_split;       /* false: all units are the single device's */
    int64_t cost_micro;  /* what the shares' time costs, rounded up */
    double tail_s; /* how long others may wait at the end for a late device; 0: nobody waits */
};

enum split_status {
    SPLIT_OK,
    SPLIT_BAD_INPUT, /* no device, more than the limits above, or a figure outside its range */
};

/* `ret_shares` has room for `count`. Any status but OK leaves both outputs without meaning. */
enum split_status split_make(const struct split_work *work, const struct split_device *devices,
                             size_t count, struct split_share *ret_shares, struct split *ret_split);

/* A product of rows x inner by inner x columns. */
struct split_product {
    uint64_t rows, inner, columns; /* >= 1 */
    uint32_t element_bytes;
    double tile_s;  /* overhead of a tile, whatever its size */
    double staging; /* bytes per second at which a tile's matrices reach the program, and its result
                       leaves */
    double margin_s; /* as of struct split_work */
    uint32_t slots;  /* that may work at a time: those of the first devices that can hold a tile; 0:
                        all */
};

struct split_grid {
    uint32_t rows, columns; /* blocks of A's rows, blocks of B's columns */
};

/* The first element of block `index` of `blocks` over `length`: blocks differ by one element at
 * most, longer first. Of index = blocks: `length`. */
uint64_t split_edge(uint64_t length, uint32_t blocks, uint32_t index);

/* Chooses the tiles and deals them out. Every device needs all of B, and in each row of tiles the
 * block of A; a tile's result is carried back. Small tiles even out what devices turn out to be,
 * but each costs its overhead, so that alike devices may get one each: of all grids, those are good
 * whose finish, with the tail that nobody can foresee, is within SPLIT_FINER_PERCENT of the least,
 * and of those the one with most tiles is taken. `fixed` not NULL: that grid, whatever it costs. In
 * each grid those devices count that can hold its tiles; the best single device has the grid that
 * is best for it. Devices of least memory, whose tiles are small, and then the dearest ones are
 * left out where the others take no more than SPLIT_GAIN_PERCENT longer, no longer than that single
 * one, and instead of the dearest cost no more. BAD_INPUT also when no device can hold a tile of
 * any grid. */
enum split_status split_product(const struct split_product *product,
                                const struct split_device *devices, size_t count,
                                const struct split_grid *fixed, struct split_grid *ret_grid,
                                struct split_share *ret_shares, struct split *ret_split);

#endif
