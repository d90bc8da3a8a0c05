/* The split divides one operation over unlike devices, and cuts a matrix product into tiles.
 *
 * Work is `units` equal units. A device starts after its fixed cost F: its start, and the transfer
 * of data that it needs whatever its share. Then it finishes `slots` units every u seconds:
 *
 *    u = max( overhead + flop / flops,  slots x bytes / link )     transfers hide behind work
 *
 * If units were divisible, all devices that take part would finish at one moment T. T is the level
 * of water poured over the devices' fixed costs (divisible load theory: Beaumont et al.,
 * "Scheduling divisible loads on star and tree networks", IEEE TPDS 16(3), 2005):
 *
 *        T |~~~~~~~~|~~~~~~~~|  dropped     sum over i of (T - F_i) slots_i / u_i = units,
 *          |  work  |  work  | |######|     a device with F_i >= T gets nothing
 *          |########|  work  | |######|
 *          |########|########| |######|
 *          device 0    1          2
 *
 * Whole units: each device first gets what it finishes by T, rounded down. Each remaining unit goes
 * where it is finished first. Units are equal, so this takes the `units` smallest of all finishing
 * times, and no other distribution ends earlier (Boulet, Dongarra, Robert, Vivien, "Static tiling
 * for heterogeneous computing platforms", Parallel Computing 25(5), 1999). Ties go to the cheaper
 * device, then to the first.
 *
 * A split has to be worth its risk. The best single device gets all units if the gain is below
 * SPLIT_GAIN_PERCENT, or below the possible error of the figures.
 *
 * The prediction chooses devices and tiles. The exchange assigns tiles as results come in, so a
 * device that is slower than stated gets fewer. Figures are doubles: nothing here is money or
 * enters the log. */
#ifndef BOURSE_PLANNER_LAYOUT_SPLIT_H
#define BOURSE_PLANNER_LAYOUT_SPLIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SPLIT_GAIN_PERCENT = 5,
    SPLIT_FINER_PERCENT = 2,  /* extra time that a finer grid may take */
    SPLIT_DOUBT_PERCENT = 20, /* extra time that a device may take over its stated time */
    SPLIT_DEVICES = 256, /* most devices at a time; the run time is their product with the slots */
    SPLIT_SLOTS = 4096,
    SPLIT_BLOCKS = 64,      /* along one side, if the planner chooses */
    SPLIT_BLOCK_LEAST = 64, /* rows or columns of such a block, unless the matrix has fewer */
};

struct split_device {
    double flops;        /* per second, for one slot; > 0 */
    double fixed_s;      /* before its first unit; >= 0 */
    double link;         /* bytes per second, shared by its slots; 0: nothing is transferred */
    uint32_t slots;      /* >= 1 */
    int64_t price_micro; /* per slot-hour; >= 0 */
    /* Most bytes that the three matrices of a product's tile may take together. */
    uint64_t tile_bytes;
};

struct split_work {
    uint64_t units;    /* >= 1 */
    double flop;       /* work of one unit; > 0 */
    double bytes;      /* bytes transferred for one unit; >= 0 */
    double overhead_s; /* overhead of one unit on any device; >= 0 */
    double margin_s;   /* least gain of a split, beside the percentage; >= 0 */
};

struct split_share {
    uint64_t units;
    double finish_s; /* 0 if there are no units */
};

struct split {
    double finish_s;     /* finish of the shares returned */
    double single_s;     /* best single device; for a product: in the grid that is best for it */
    size_t single;       /* index of that device */
    size_t device_count; /* devices with a share */
    bool is_split;       /* false: the single device has all units */
    int64_t cost_micro;  /* price of the shares' time, rounded up */
    double tail_s;       /* longest wait for a late device at the end; 0: none */
};

enum split_status {
    SPLIT_OK,
    SPLIT_BAD_INPUT, /* no device, more than the limits above, or a figure outside its range */
};

/* Computes the split; `ret_shares` has room for `count`. Any status but OK leaves both outputs
 * without meaning. */
enum split_status split_make(const struct split_work *work, const struct split_device *devices,
                             size_t count, struct split_share *ret_shares, struct split *ret_split);

/* A product of rows x inner by inner x columns. */
struct split_product {
    uint64_t rows, inner, columns; /* >= 1 */
    uint32_t element_bytes;
    double tile_s; /* overhead of a tile, whatever its size */
    /* Bytes per second at which the matrices of a tile reach the program, and its result leaves. */
    double staging;
    double margin_s; /* see struct split_work */
    /* Slots that may work at a time, from the first devices that can hold a tile; 0 means all. */
    uint32_t slots;
};

struct split_grid {
    uint32_t rows, columns; /* blocks of A's rows, blocks of B's columns */
};

/* Returns the first element of block `index` of `blocks` over `length`. Blocks differ by one
 * element at most, longer first. index = blocks gives `length`. */
uint64_t split_edge(uint64_t length, uint32_t blocks, uint32_t index);

/* Chooses the tiles and deals them out. Every device needs all of B, and for each row of tiles the
 * block of A; the result of a tile is sent back. `fixed` not NULL sets the grid, whatever its cost.
 * BAD_INPUT also means that no device can hold a tile of any grid.
 *
 * Small tiles even out errors in the figures, but each costs its overhead, so that equal devices
 * may get one each. A grid is good if its finish, with the unforeseen tail, is within
 * SPLIT_FINER_PERCENT of the least. The good grid with most tiles is taken. Each grid counts the
 * devices that can hold its tiles; the best single device has the grid that is best for it.
 *
 * The devices of least memory, whose tiles are small, may be left out, and then the dearest. The
 * others may then take SPLIT_GAIN_PERCENT longer at most, and no longer than the best single
 * device. Leaving out the dearest must not raise the cost. */
enum split_status split_product(const struct split_product *product,
                                const struct split_device *devices, size_t count,
                                const struct split_grid *fixed, struct split_grid *ret_grid,
                                struct split_share *ret_shares, struct split *ret_split);

#endif
