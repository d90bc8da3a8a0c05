/* This file chooses devices and tiles. The planner gets the market's devices, and its answer
 * becomes the needs of the job. */
#include "consumer/client/client.h"
#include "consumer/product/product.h"
#include "planner/schedule/online.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

/* The market's crash limit allows a tile this many tries. After two lies a third provider may make
 * it right. */
enum {
    TILE_LIMIT_MS_LEAST = 10 * 60 * 1000, /* a tile may take so long, however fast it should be */
    JUDGES = 2,                           /* providers that refute a tile together */
    MAKERS_LET_IN = 3,
    PROVIDERS_LET_IN = MAKERS_LET_IN + JUDGES,
};

struct supply {
    int64_t speed; /* gemm_fp32: Mflop/s of one slot */
    int64_t memory_bytes;
    int64_t price_micro;
    uint32_t slots;
    bool is_referee;
    char account[BOURSE_HEX32_SIZE];
    char label[ATTRIBUTE_TEXT_SIZE];
};

struct market_view {
    int64_t cap_micro;    /* or LIMIT_NONE */
    int64_t least_speed;  /* slower devices do not count; 0: none */
    int64_t memory_bytes; /* least memory of a slot */
    int64_t most_bytes;   /* largest memory of a slot for sale; 0: none */
    struct supply *items;
    size_t count, capacity;
    size_t kept; /* number of first items to plan with */
    bool is_out_of_memory;
};

static int64_t number_of(const struct bourse_device *device, const char *name)
{
    for (size_t i = 0; i < device->attribute_count; i++) {
        if (device->attributes[i].text == NULL && strcmp(device->attributes[i].name, name) == 0) {
            return device->attributes[i].number;
        }
    }
    return 0;
}

static bool grow(struct market_view *view)
{
    struct supply *items =
        array_with_room(view->items, view->count, &view->capacity, sizeof *items);
    view->items = items != NULL ? items : view->items;
    view->is_out_of_memory = view->is_out_of_memory || items == NULL;
    return items != NULL;
}

/* A device counts while its ask stands, even when it is leased now, because it may be free
 * later. */
static bool take_device(void *context, const struct bourse_device *device)
{
    struct market_view *view = context;
    int64_t speed = number_of(device, "gemm_fp32");
    bool sells = device->price_micro >= 0 && limit_allows(view->cap_micro, device->price_micro);
    int64_t memory_bytes = number_of(device, "memory");
    if (device->simulated || !sells || speed <= 0 || device->slots == 0 ||
        speed < view->least_speed) {
        return true;
    }
    memory_bytes = memory_bytes > 0 ? memory_bytes : INT64_MAX;
    int64_t disk_bytes; /* a tile's matrices need disk too */
    if (checked_mul(number_of(device, "disk"), PRODUCT_MEMORY_PARTS, &disk_bytes)) {
        memory_bytes = disk_bytes > 0 && disk_bytes < memory_bytes ? disk_bytes : memory_bytes;
    }
    view->most_bytes = memory_bytes > view->most_bytes ? memory_bytes : view->most_bytes;
    if (memory_bytes < view->memory_bytes) {
        return true;
    }
    if (!grow(view)) {
        return false;
    }
    struct supply *supply = &view->items[view->count++];
    *supply = (struct supply){.speed = speed,
                              .memory_bytes = memory_bytes,
                              .price_micro = device->price_micro,
                              .slots = device->slots,
                              .is_referee = number_of(device, "referee") != 0};
    client_copy(supply->account, sizeof supply->account, device->account);
    client_copy(supply->label, sizeof supply->label, device->label);
    return true;
}

static int fastest_first(const void *a, const void *b)
{
    const struct supply *left = a;
    const struct supply *right = b;
    if (left->speed != right->speed) {
        return left->speed > right->speed ? -1 : 1;
    }
    if (left->price_micro != right->price_micro) {
        return left->price_micro < right->price_micro ? -1 : 1;
    }
    return strcmp(left->label, right->label);
}

/* Keeps the fastest devices, as many as the planner takes; the last one may lose slots. */
static void keep_fastest(struct market_view *view)
{
    uint32_t left = SPLIT_SLOTS;
    if (view->count > 1) {
        qsort(view->items, view->count, sizeof *view->items, fastest_first);
    }
    view->kept = 0;
    while (view->kept < view->count && view->kept < SPLIT_DEVICES && left > 0) {
        struct supply *supply = &view->items[view->kept++];
        supply->slots = supply->slots < left ? supply->slots : left;
        left -= supply->slots;
    }
}

/* A sole referee must stay free to judge when others can multiply (bourse_job.h, spares_referee),
 * so it is not planned with. */
static void leave_sole_referee(struct market_view *view)
{
    const struct supply *referee = NULL;
    size_t others = 0;
    for (size_t i = 0; i < view->count; i++) {
        const struct supply *at = &view->items[i];
        if (!at->is_referee) {
            others++;
        } else if (referee != NULL && strcmp(at->account, referee->account) != 0) {
            return;
        } else {
            referee = at;
        }
    }
    if (others == 0) {
        return;
    }
    for (size_t i = others = 0; i < view->count; i++) {
        if (!view->items[i].is_referee) {
            view->items[others++] = view->items[i];
        }
    }
    view->count = others;
}

static bool is_among(const struct supply *const *providers, size_t count, const char *account)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(providers[i]->account, account) == 0) {
            return true;
        }
    }
    return false;
}

/* A refuted tile goes neither to its maker nor to its two judges, and a liar about results may lie
 * about speed. The fastest devices with enough memory are therefore admitted until enough makers
 * remain. Three makers must remain beside two referees, or two makers when one is a trusted
 * referee. Returns the speed of the last admitted provider, or 0 when there is only one. */
static int64_t spare_speed(const struct market_view *view, int64_t memory_bytes)
{
    const struct supply *providers[PROVIDERS_LET_IN];
    size_t count = 0;
    size_t referees = 0;
    for (size_t i = 0; i < view->count && count < PROVIDERS_LET_IN; i++) {
        const struct supply *at = &view->items[i];
        if (at->memory_bytes < memory_bytes || is_among(providers, count, at->account)) {
            continue;
        }
        providers[count++] = at;
        referees += at->is_referee;
        const size_t judges = referees < JUDGES ? referees : JUDGES;
        const size_t makers = count - judges;
        if (makers == MAKERS_LET_IN || (makers == MAKERS_LET_IN - 1 && referees > JUDGES)) {
            break;
        }
    }
    return count > 1 ? providers[count - 1]->speed : 0;
}

/* Returns the memory of a slot for the largest tile. */
static int64_t memory_needed(const struct bourse_product_summary *summary, struct split_grid grid)
{
    double rows = (double)split_edge(summary->rows, grid.rows, 1);
    double columns = (double)split_edge(summary->columns, grid.columns, 1);
    double inner = (double)summary->inner;
    double bytes =
        (rows * inner + inner * columns + rows * columns) * sizeof(float) * PRODUCT_MEMORY_PARTS;
    return bytes > 9e18 ? INT64_MAX : (int64_t)bytes;
}

/* Converts the devices for the planner; `drift` divides their speed. */
static void to_planner(const struct market_view *view, double drift,
                       struct split_device ret_devices[SPLIT_DEVICES])
{
    for (size_t i = 0; i < view->kept; i++) {
        const struct supply *supply = &view->items[i];
        ret_devices[i] = (struct split_device){
            .flops = (double)supply->speed * 1e6 / drift,
            .fixed_s = PRODUCT_START_S,
            .link = PRODUCT_LINK,
            .slots = supply->slots,
            .price_micro = supply->price_micro,
            .tile_bytes = (uint64_t)(supply->memory_bytes / PRODUCT_MEMORY_PARTS)};
    }
}

static bool ask_planner(const struct market_view *view,
                        const struct bourse_product_options *options,
                        struct bourse_product *product, struct split_share *shares,
                        struct split *ret_split)
{
    struct split_device devices[SPLIT_DEVICES];
    struct bourse_product_summary *summary = &product->summary;
    const struct split_grid given = {options->tile_rows, options->tile_columns};
    const struct split_product shape = {
        .rows = summary->rows,
        .inner = summary->inner,
        .columns = summary->columns,
        .element_bytes = sizeof(float),
        .tile_s = PRODUCT_TILE_S,
        .staging = PRODUCT_STAGING,
        .slots = options->at_most,
        /* Requested tiles are cut without a margin. */
        .margin_s = options->tile_rows > 0 ? 0 : PRODUCT_MARGIN_S,
    };
    to_planner(view, 1, devices);
    return split_product(&shape, devices, view->kept, options->tile_rows > 0 ? &given : NULL,
                         &product->grid, shares, ret_split) == SPLIT_OK;
}

/* Returns at least 1, and no more than a job may state. */
static int64_t to_ms(double seconds)
{
    double ms = seconds * 1000;
    return ms < 1 ? 1 : ms > 1e9 ? 1000000000 : (int64_t)ms;
}

/* Slower devices without a share are kept out by their speed. No device is named, because a named
 * one could not be replaced. Checked tiles may be refuted, so further devices are admitted; a
 * single provider admits all. */
static int64_t speed_floor(const struct market_view *view, const struct split_share *shares,
                           bool checks, int64_t memory_bytes)
{
    int64_t least_used = INT64_MAX;
    bool keeps_out = false;
    for (size_t i = 0; i < view->kept; i++) {
        keeps_out = keeps_out || shares[i].units == 0;
        if (shares[i].units > 0 && view->items[i].speed < least_used) {
            least_used = view->items[i].speed;
        }
    }
    const int64_t spare = checks ? spare_speed(view, memory_bytes) : INT64_MAX;
    least_used = spare < least_used ? spare : least_used;
    return keeps_out ? least_used : 0;
}

static void find_needs(const struct market_view *view, const struct split_share *shares,
                       const struct split *split, bool checks, struct bourse_product *product,
                       struct product_needs *ret_needs)
{
    struct bourse_product_summary *summary = &product->summary;
    uint64_t slots = 0;
    uint64_t tiles = (uint64_t)product->grid.rows * product->grid.columns;
    for (size_t i = 0; i < view->kept; i++) {
        slots += shares[i].units < view->items[i].slots ? shares[i].units : view->items[i].slots;
    }
    ret_needs->memory_bytes = memory_needed(summary, product->grid);
    ret_needs->least_speed = speed_floor(view, shares, checks, ret_needs->memory_bytes);
    slots = product->most > 0 && product->most < slots ? product->most : slots;
    ret_needs->at_most = (uint32_t)slots;
    ret_needs->expect_ms = to_ms(split->finish_s * (double)slots / (double)tiles);
    int64_t patient_ms = 20 * ret_needs->expect_ms; /* a device may be slower than before */
    ret_needs->limit_ms = patient_ms > TILE_LIMIT_MS_LEAST ? patient_ms : TILE_LIMIT_MS_LEAST;
    summary->devices = (uint32_t)view->kept;
    summary->devices_used = (uint32_t)split->device_count;
    summary->slots = (uint32_t)slots;
    summary->least_mflops = ret_needs->least_speed;
    summary->is_split = split->is_split;
    summary->predicted_ms = to_ms(split->finish_s);
    summary->single_ms = to_ms(split->single_s);
}

static bool no_plan(const struct market_view *view, const struct bourse_product_options *options,
                    const struct bourse_product *product, struct bourse_error *error)
{
    if (view->most_bytes == 0) {
        return client_fail(error, BOURSE_NO_MATCH,
                           "no device on offer multiplies matrices (executor = tensor%s); `bourse "
                           "devices` lists what is "
                           "there",
                           limit_is_set(options->cap_micro) ? ", within the cap" : "");
    }
    return client_fail(
        error, BOURSE_USAGE,
        "no tile of %llu columns of A fits a quarter of a slot's memory (%lld bytes)%s",
        (unsigned long long)product->summary.inner, (long long)view->most_bytes,
        options->tile_rows > 0 ? " with these --tiles: give more, or leave them out" : "");
}

bool product_choose(struct bourse *bourse, const struct bourse_product_options *options,
                    struct bourse_product *product, struct product_needs *ret_needs,
                    struct bourse_error *error)
{
    struct market_view view = {.cap_micro = options->cap_micro};
    product->most = options->at_most;
    if (options->tile_rows > 0) {
        view.memory_bytes = memory_needed(
            &product->summary, (struct split_grid){options->tile_rows, options->tile_columns});
    }
    struct split_share shares[SPLIT_DEVICES];
    struct split split = {.finish_s = 0};
    bool good = bourse_devices_fitting(bourse, "executor = tensor", take_device, &view, error);
    if (good && view.is_out_of_memory) {
        good = client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    if (options->checks) {
        leave_sole_referee(&view);
    }
    keep_fastest(&view);
    if (good && (view.count == 0 || !ask_planner(&view, options, product, shares, &split))) {
        good = no_plan(&view, options, product, error);
    }
    if (good) {
        find_needs(&view, shares, &split, options->checks, product, ret_needs);
        product->least_speed = ret_needs->least_speed;
        product->memory_bytes = ret_needs->memory_bytes;
        product->at_most = ret_needs->at_most;
        product->cap_micro = options->cap_micro;
        product->drift = 1;
    }
    free(view.items);
    return good;
}

/* ---------------------------------------------------------------- anew, by what was measured */

/* Returns the slots that help with `tiles` of the largest size. All devices count as slower by
 * `drift`. */
static uint32_t slots_for(struct market_view *view, const struct bourse_product *product,
                          uint64_t tiles, double drift)
{
    const struct bourse_product_summary *summary = &product->summary;
    struct split_device devices[SPLIT_DEVICES];
    struct split_share shares[SPLIT_DEVICES];
    struct split split = {.finish_s = 0};
    const struct split_grid rest = {(uint32_t)tiles, 1};
    struct split_grid grid;
    const struct split_product shape = {
        .rows = split_edge(summary->rows, product->grid.rows, 1) * tiles,
        .inner = summary->inner,
        .columns = split_edge(summary->columns, product->grid.columns, 1),
        .element_bytes = sizeof(float),
        .tile_s = PRODUCT_TILE_S,
        .staging = PRODUCT_STAGING,
        .slots = product->most,
    };
    to_planner(view, drift, devices);
    if (view->count == 0 ||
        split_product(&shape, devices, view->kept, &rest, &grid, shares, &split) != SPLIT_OK) {
        return 0;
    }
    uint64_t slots = 0;
    for (size_t i = 0; i < view->kept; i++) {
        slots += shares[i].units < view->items[i].slots ? shares[i].units : view->items[i].slots;
    }
    return slots < UINT32_MAX ? (uint32_t)slots : UINT32_MAX;
}

bool bourse_product_replan(struct bourse *bourse, struct bourse_product *product,
                           const struct bourse_job_row *row, struct bourse_replan *ret_replan,
                           struct bourse_error *ret_error)
{
    const struct bourse_product_summary *summary = &product->summary;
    const double planned_ms = (double)row->foreseen_ms * product->drift;
    *ret_replan = (struct bourse_replan){.slots = product->at_most};
    if (product->at_most == 0 || summary->tiles == summary->collected || planned_ms > 9e18 ||
        !online_drifts((int64_t)planned_ms, row->took_ms, row->timed)) {
        return true;
    }
    struct market_view view = {.cap_micro = product->cap_micro,
                               .least_speed = product->least_speed,
                               .memory_bytes = product->memory_bytes};
    product->drift = (double)row->took_ms / (double)row->foreseen_ms;
    bool good = bourse_devices_fitting(bourse, "executor = tensor", take_device, &view, ret_error);
    if (good && view.is_out_of_memory) {
        good = client_fail(ret_error, BOURSE_LOCAL, "out of memory");
    }
    keep_fastest(&view);
    const uint32_t slots =
        good ? slots_for(&view, product, summary->tiles - summary->collected, product->drift) : 0;
    free(view.items);
    ret_replan->is_made = good;
    if (slots <= product->at_most) {
        return good; /* surplus slots return by themselves */
    }
    const struct bourse_replacement more = {
        .order = row->id, .part = 0, .price_micro = -1, .slots = slots, .budget_micro = -1};
    if (!bourse_replace(bourse, &more, ret_error)) {
        return false;
    }
    ret_replan->slots = product->at_most = slots;
    return true;
}
