/* This file runs `run matmul`, the product of two matrices. The product is cut into tiles, computed
 * by devices, put together and checked. */
#include "consumer/command/job/offer.h"
#include "consumer/command/job/shares.h"
#include "consumer/command/job/watch.h"
#include "consumer/command/show.h"
#include "consumer/job/submit.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/limit.h"
#include "base/text.h"
#include "runtime/clock.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct matmul {
    struct invocation *invocation;
    struct bourse_product *product;
    struct bourse_product_options options;
    char id[BOURSE_ID_SIZE];
    bool is_submitted;
    int64_t started_ns, ended_ns; /* from the agreement to the last tile */
    uint64_t sent_bytes;
    uint32_t replans, slots; /* slots at a time, by the last replan */
    struct bourse_product_check check;
    bool was_checked;
    double check_s;
};

/* ---------------------------------------------------------------- options */

/* Reads a text such as "4x8" from --tiles. Both numbers are at least 1. */
static bool read_tiles(struct invocation *invocation, struct bourse_product_options *options)
{
    const char *text = option_text(invocation, "tiles", NULL);
    unsigned long sides[2] = {0, 0};
    for (int i = 0; text != NULL && i < 2; i++) {
        char *end = NULL;
        bool is_number = text[0] >= '1' && text[0] <= '9';
        sides[i] = is_number ? strtoul(text, &end, 10) : 0;
        if (!is_number || sides[i] > UINT16_MAX || *end != (i == 0 ? 'x' : '\0')) {
            (void)complain(invocation, BOURSE_USAGE,
                           "--tiles: '%s' is not ROWSxCOLUMNS, such as 4x8, each from 1 to %d",
                           option_text(invocation, "tiles", ""), UINT16_MAX);
            return false;
        }
        text = end + 1;
    }
    options->tile_rows = (uint32_t)sides[0];
    options->tile_columns = (uint32_t)sides[1];
    return true;
}

/* Reads whether a referee checks each tile before it is paid. */
static bool read_verify(struct invocation *invocation, struct bourse_product_options *options)
{
    const char *level = option_text(invocation, "verify", "none");
    options->checks = strcmp(level, "cheap") == 0;
    if (!options->checks && strcmp(level, "none") != 0) {
        (void)complain(invocation, BOURSE_USAGE,
                       "--verify: '%s' is no level; there are none and cheap", cell_plain(level));
        return false;
    }
    return true;
}

static bool same_file(const char *a, const char *b)
{
    struct stat left;
    struct stat right;
    return stat(a, &left) == 0 && stat(b, &right) == 0 && left.st_dev == right.st_dev &&
           left.st_ino == right.st_ino;
}

static bool read_options(struct invocation *invocation, struct bourse_product_options *options)
{
    int64_t at_most = 0;
    int64_t ignored = 0;
    bool resumes = option_given(invocation, "resume");
    *options = (struct bourse_product_options){.output = option_text(invocation, "output", NULL),
                                               .budget_micro = LIMIT_NONE,
                                               .cap_micro = LIMIT_NONE};
    if (!read_tiles(invocation, options) || !read_verify(invocation, options) ||
        !option_count(invocation, "at-most", 1, UINT32_MAX, &at_most) ||
        !option_money(invocation, "budget", &options->budget_micro) ||
        !option_money(invocation, "cap", &options->cap_micro) ||
        !option_duration_ms(invocation, "wait-at-most", &ignored)) {
        return false;
    }
    options->at_most = (uint32_t)at_most;
    if (invocation->word_count != 2 && !(resumes && invocation->word_count == 0)) {
        (void)complain(invocation, BOURSE_USAGE,
                       "run matmul needs A.npy and B.npy; see `bourse run matmul --help`");
        return false;
    }
    if (options->output == NULL) {
        (void)complain(invocation, BOURSE_USAGE,
                       "run matmul needs a file for the product: -o C.npy");
        return false;
    }
    if (strcmp(options->output, "-") == 0) {
        (void)complain(invocation, BOURSE_USAGE,
                       "-o -: tiles of the product come in any order, so the product goes to a "
                       "file and not to standard output: -o C.npy");
        return false;
    }
    int status = 0;
    if (!command_may_replace(invocation, "-o", options->output, "\x93NUMPY", 6, ".npy file",
                             &status)) {
        return false; /* the status is USAGE here too */
    }
    if (invocation->word_count == 2) {
        options->a = invocation->words[0];
        options->b = invocation->words[1];
        if (same_file(options->a, options->output) || same_file(options->b, options->output)) {
            (void)complain(invocation, BOURSE_USAGE,
                           "-o %s is one of the factors; give the product a file of its own",
                           options->output);
            return false;
        }
    }
    return true;
}

/* ---------------------------------------------------------------- the plan */

static void show_product(FILE *to, const struct bourse_product_summary *product)
{
    (void)fprintf(to, "Product of %llu x %llu by %llu x %llu\n", (unsigned long long)product->rows,
                  (unsigned long long)product->inner, (unsigned long long)product->inner,
                  (unsigned long long)product->columns);
    (void)fprintf(to,
                  "  tiles         %u x %u, on %u slot%s; %u of %u device%s that can multiply "
                  "take%s part\n",
                  product->tile_rows, product->tile_columns, product->slots,
                  product->slots == 1 ? "" : "s", product->devices_used, product->devices,
                  product->devices == 1 ? "" : "s", product->devices_used == 1 ? "s" : "");
    if (product->least_mflops > 0) {
        (void)fprintf(to,
                      "  needs         gemm_fp32 >= %lld, so that no slower device takes part\n",
                      (long long)product->least_mflops);
    }
    (void)fprintf(to, "  time          about %s; about %s on the best single device\n",
                  cell_duration(product->predicted_ms), cell_duration(product->single_ms));
    if (product->checks > 0) {
        (void)fprintf(to, "  checks        one of each tile, by a referee, before it is paid\n");
    }
}

/* C gets the user's own umask, because C is the user's file. */
static bool make_product(struct matmul *matmul, int *ret_status)
{
    struct invocation *invocation = matmul->invocation;
    struct bourse_error error;
    const char *resume = option_text(invocation, "resume", NULL);
    if (!command_connect(invocation, ret_status) ||
        (resume != NULL && !command_resolve_job(invocation, resume, matmul->id, ret_status))) {
        return false;
    }
    mode_t before = umask((mode_t)invocation->umask);
    bool good =
        resume != NULL
            ? bourse_product_resume(invocation->bourse, matmul->id, &matmul->options,
                                    &matmul->product, matmul->id, &error)
            : bourse_product_plan(invocation->bourse, &matmul->options, &matmul->product, &error);
    (void)umask(before);
    if (!good) {
        *ret_status = complain_with(invocation, &error);
    }
    matmul->is_submitted = good && bourse_product_job(matmul->product) == NULL;
    return good;
}

static bool submit_product(struct matmul *matmul, int *ret_status)
{
    struct invocation *invocation = matmul->invocation;
    struct bourse_product_summary summary;
    struct offer *offer = calloc(1, sizeof *offer);
    if (offer == NULL) {
        *ret_status = complain(invocation, BOURSE_LOCAL, "out of memory");
        return false;
    }
    bourse_product_summary(matmul->product, &summary);
    if (!invocation->quiet && !invocation->json && !option_given(invocation, "resume")) {
        show_product(stderr, &summary);
    }
    offer->job = bourse_product_job(matmul->product);
    bool good =
        offer_make(invocation, offer, ret_status) && offer_agree(invocation, offer, ret_status);
    matmul->started_ns = clock_monotonic_ns();
    good = good && offer_place(invocation, offer, matmul->id, ret_status);
    matmul->is_submitted = good;
    matmul->sent_bytes = offer->summary.input_bytes;
    free(offer);
    return good;
}

/* ---------------------------------------------------------------- the tiles */

struct collecting {
    struct progress progress;
    /* The wait ends at this number of accepted tiles and checks. The tiles are fetched while
     * devices compute others. */
    uint64_t enough;
};

static bool until_enough(void *context, const struct bourse_job_row *row)
{
    struct collecting *collecting = context;
    if (row == NULL) {
        progress_text(&collecting->progress, true,
                      "the broker cannot be reached; the job goes on, waiting for it");
        return true;
    }
    int64_t percent = 0;
    (void)progress_drifts(row, &percent);
    progress_job(&collecting->progress, row, percent);
    return row->accepted < collecting->enough;
}

/* A failed replan changes nothing: the job goes on as it is. */
static void replan(struct matmul *matmul, const struct bourse_job_row *row)
{
    struct bourse_replan made;
    struct bourse_error error;
    if (row->state == BOURSE_OPEN &&
        bourse_product_replan(matmul->invocation->bourse, matmul->product, row, &made, &error)) {
        matmul->replans += made.is_made;
        matmul->slots = made.slots;
    }
}

static bool collect_once(struct matmul *matmul, struct collecting *collecting, int64_t left_ms,
                         struct bourse_job_row *ret_row, struct bourse_error *error)
{
    struct bourse *bourse = matmul->invocation->bourse;
    struct bourse_product_summary summary;
    bourse_product_summary(matmul->product, &summary);
    uint64_t batch = summary.tiles / 16 + 1;
    collecting->enough = ret_row->accepted + batch * (summary.checks > 0 ? 2 : 1);
    return bourse_wait(bourse, matmul->id, left_ms, until_enough, collecting, ret_row, error) &&
           bourse_product_collect(bourse, matmul->product, matmul->id, error);
}

static bool collect_tiles(struct matmul *matmul, struct bourse_job_row *ret_row,
                          struct bourse_error *error)
{
    int64_t most_ms = 0; /* 0: for ever */
    /* The option was checked before. */
    (void)option_duration_ms(matmul->invocation, "wait-at-most", &most_ms);
    int64_t until_ns = clock_monotonic_ns() + most_ms * NS_PER_MS;
    struct collecting collecting = {.progress = progress_start(matmul->invocation)};
    bool good = true;
    submit_keep(matmul->invocation->bourse, bourse_product_job(matmul->product));
    do {
        int64_t left_ms = most_ms == 0 ? 0 : (until_ns - clock_monotonic_ns()) / NS_PER_MS;
        left_ms = most_ms != 0 && left_ms < 1 ? 1 : left_ms;
        good = collect_once(matmul, &collecting, left_ms, ret_row, error);
        if (good) {
            replan(matmul, ret_row);
        }
    } while (good && ret_row->state == BOURSE_OPEN);
    submit_keep(matmul->invocation->bourse, NULL);
    progress_end(&collecting.progress);
    matmul->ended_ns = clock_monotonic_ns();
    return good;
}

static void say_command(const struct matmul *matmul)
{
    bool named = matmul->options.a != NULL;
    (void)fprintf(stderr, "`bourse run matmul%s%s%s%s -o %s --resume %.8s`", named ? " " : "",
                  named ? cell_plain(matmul->options.a) : "", named ? " " : "",
                  named ? cell_plain(matmul->options.b) : "", cell_plain(matmul->options.output),
                  matmul->id);
}

static void say_how_to_go_on(const struct matmul *matmul, const struct bourse_job_row *row)
{
    if (row->state != BOURSE_OPEN) {
        (void)fprintf(
            stderr, "bourse: the tiles of job %.8s stay at the broker; after the fault is mended, ",
            matmul->id);
        say_command(matmul);
        (void)fputs("\n        puts the product together.\n", stderr);
        return;
    }
    (void)fprintf(stderr, "bourse: job %.8s goes on without this command; ", matmul->id);
    say_command(matmul);
    (void)fprintf(stderr,
                  "\n        puts its product together, `bourse ps %.8s` shows it, `bourse cancel "
                  "%.8s` ends it.\n",
                  matmul->id, matmul->id);
}

static void say_what_is_missing(const struct matmul *matmul,
                                const struct bourse_product_summary *product)
{
    const uint64_t missing = product->tiles - product->collected;
    (void)fprintf(stderr, "bourse: %llu of %llu tile%s missing; ", (unsigned long long)missing,
                  (unsigned long long)product->tiles, missing == 1 ? " is" : "s are");
    say_command(matmul);
    (void)fputs("\n        fetches the others and has them computed.\n", stderr);
}

/* ---------------------------------------------------------------- the report */

static double seconds_of(const struct matmul *matmul)
{
    return matmul->started_ns == 0 ? 0 : (double)(matmul->ended_ns - matmul->started_ns) / 1e9;
}

static double gflops_of(const struct matmul *matmul, const struct bourse_product_summary *product)
{
    double flop = 2 * (double)product->rows * (double)product->inner * (double)product->columns;
    return seconds_of(matmul) > 0 ? flop / seconds_of(matmul) / 1e9 : 0;
}

static json_t *json_check(const struct bourse_product_check *check)
{
    json_t *tiles = json_array();
    for (uint64_t i = 0; i < check->wrong_tiles && i < BOURSE_WRONG_TILES_MAX; i++) {
        const struct bourse_wrong_tile *tile = &check->tiles[i];
        (void)json_array_append_new(
            tiles, json_pack("{s:i, s:i, s:i, s:s, s:I, s:I}", "subtask", (int)tile->index, "row",
                             (int)tile->row, "column", (int)tile->column, "provider",
                             tile->provider, "at_row", (json_int_t)tile->at_row, "at_column",
                             (json_int_t)tile->at_column));
    }
    return json_pack("{s:b, s:i, s:I, s:I, s:I, s:I, s:f, s:I, s:o}", "right", check->is_right,
                     "rounds", (int)check->rounds, "wrong_rows", (json_int_t)check->wrong_rows,
                     "doubtful_rows", (json_int_t)check->doubtful_rows, "unchecked_rows",
                     (json_int_t)check->unchecked_rows, "unchecked_columns",
                     (json_int_t)check->unchecked_columns, "max_rel_error", check->max_rel_error,
                     "reduced_tiles", (json_int_t)check->reduced_tiles, "wrong_tiles", tiles);
}

/* Returns a row for each device of the job, or no rows when memory is short. */
static struct device_share *shares_of(const struct bourse_product *product,
                                      const struct bourse_job_row *row, size_t *ret_count)
{
    uint32_t *tiles = calloc(row->lease_count + 1, sizeof *tiles);
    struct device_share *shares = calloc(row->lease_count + 1, sizeof *shares);
    *ret_count = 0;
    if (tiles != NULL && shares != NULL) {
        for (size_t i = 0; i < row->lease_count; i++) {
            tiles[i] = bourse_product_tiles_by(product, row->leases[i].lease);
        }
        *ret_count = shares_by_device(row->leases, row->lease_count, tiles, shares);
    }
    free(tiles);
    return shares;
}

static json_t *json_shares(const struct bourse_product *product, const struct bourse_job_row *row,
                           int *ret_providers)
{
    size_t count;
    struct device_share *shares = shares_of(product, row, &count);
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        const struct device_share *share = &shares[i];
        (void)json_array_append_new(list, json_pack("{s:s, s:s, s:i, s:I, s:I}", "provider",
                                                    share->provider, "device", share->device,
                                                    "tiles", (int)share->tiles, "paid_ns",
                                                    (json_int_t)share->paid_ns, "charged_micro",
                                                    (json_int_t)share->charged_micro));
    }
    *ret_providers = (int)shares_providers(shares, count);
    free(shares);
    return list;
}

static int report_json(const struct matmul *matmul, const struct bourse_job_row *row)
{
    struct bourse_product_summary product;
    int providers = 0;
    bourse_product_summary(matmul->product, &product);
    json_t *shares = json_shares(matmul->product, row, &providers);
    json_t *value = json_job(row);
    (void)json_object_update_new(
        value, json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:[i,i], s:i, s:o, s:f, s:f, s:I, s:I, "
                         "s:b, s:I, s:I, s:b}",
                         "output", matmul->options.output, "rows", (json_int_t)product.rows,
                         "inner", (json_int_t)product.inner, "columns", (json_int_t)product.columns,
                         "tiles", (json_int_t)product.tiles, "checks", (json_int_t)product.checks,
                         "grid", (int)product.tile_rows, (int)product.tile_columns, "providers",
                         providers, "shares", shares, "seconds", seconds_of(matmul), "gflops",
                         gflops_of(matmul, &product), "bytes_sent", (json_int_t)matmul->sent_bytes,
                         "bytes_fetched", (json_int_t)product.collected_bytes, "split",
                         product.is_split, "predicted_ms", (json_int_t)product.predicted_ms,
                         "single_ms", (json_int_t)product.single_ms, "checked",
                         matmul->was_checked && matmul->check.is_right));
    (void)json_object_set_new(value, "replans", json_integer(matmul->replans));
    (void)json_object_set_new(value, "slots",
                              json_integer(matmul->slots > 0 ? matmul->slots : product.slots));
    if (matmul->was_checked) {
        (void)json_object_set_new(value, "freivalds", json_check(&matmul->check));
        (void)json_object_set_new(value, "check_seconds", json_real(matmul->check_s));
    }
    return json_print(value, matmul->was_checked && !matmul->check.is_right ? BOURSE_UNVERIFIED
                                                                            : BOURSE_OK);
}

static void show_shares(const struct bourse_product *product, const struct bourse_job_row *row)
{
    static const char *const titles[] = {"PROVIDER", "DEVICE", "TILES", "CHECKS", "PAID", "COST"};
    CLEANUP(grid_fini) struct grid table = grid_of(6, titles, "llrrrr");
    size_t count;
    struct device_share *shares = shares_of(product, row, &count);
    for (size_t i = 0; i < count; i++) {
        const struct device_share *share = &shares[i];
        const char *cells[] = {cell_plain(share->provider),
                               cell_plain(share->device),
                               cell_count(share->tiles),
                               cell_count(share->others),
                               cell_duration(share->paid_ns / NS_PER_MS),
                               cell_money(share->charged_micro)};
        grid_add(&table, cells);
    }
    grid_print(&table, stderr, false);
    free(shares);
}

static void show_check(const struct matmul *matmul)
{
    const struct bourse_product_check *check = &matmul->check;
    if (!matmul->was_checked) {
        (void)fputs("not checked\n", stderr);
        return;
    }
    (void)fprintf(stderr,
                  "checked: %u rounds of Freivalds in %.2f s; the error in a sample of rows is at "
                  "most %.1e of their size\n",
                  check->rounds, matmul->check_s, check->max_rel_error);
    if (check->doubtful_rows > 0) {
        (void)fprintf(
            stderr, "  %llu row%s further off than usual, though no further than rounding can be\n",
            (unsigned long long)check->doubtful_rows, check->doubtful_rows == 1 ? " is" : "s are");
    }
    if (check->unchecked_rows > 0 || check->unchecked_columns > 0) {
        (void)fprintf(
            stderr,
            "  NaN and infinities: %llu row%s and %llu column%s were looked at in a sample only\n",
            (unsigned long long)check->unchecked_rows, text_plural(check->unchecked_rows),
            (unsigned long long)check->unchecked_columns, text_plural(check->unchecked_columns));
    }
}

static void show_wrong(const struct bourse_product_check *check)
{
    for (uint64_t i = 0; i < check->wrong_tiles && i < BOURSE_WRONG_TILES_MAX; i++) {
        const struct bourse_wrong_tile *tile = &check->tiles[i];
        (void)fprintf(stderr,
                      "wrong: tile (%u, %u), subtask %u, by provider %.16s: C[%llu][%llu] is %.9g, "
                      "and should be %.9g\n",
                      tile->row, tile->column, tile->index, tile->provider,
                      (unsigned long long)tile->at_row, (unsigned long long)tile->at_column,
                      tile->found, tile->expected);
    }
    if (check->wrong_tiles > BOURSE_WRONG_TILES_MAX) {
        const uint64_t more = check->wrong_tiles - BOURSE_WRONG_TILES_MAX;
        (void)fprintf(stderr, "wrong: and %llu tile%s more\n", (unsigned long long)more,
                      text_plural(more));
    }
}

static int report(const struct matmul *matmul, const struct bourse_job_row *row)
{
    struct bourse_product_summary product;
    if (matmul->invocation->json) {
        return report_json(matmul, row);
    }
    if (matmul->invocation->quiet) {
        (void)puts(matmul->id);
        return BOURSE_OK;
    }
    bourse_product_summary(matmul->product, &product);
    show_shares(matmul->product, row);
    if (matmul->started_ns != 0) {
        (void)fprintf(stderr,
                      "%s: %llu tile%s in %.2f s, %.1f GFLOP/s, %s sent, %s fetched, %s credits\n",
                      cell_plain(matmul->options.output), (unsigned long long)product.tiles,
                      text_plural(product.tiles), seconds_of(matmul), gflops_of(matmul, &product),
                      cell_bytes(matmul->sent_bytes), cell_bytes(product.collected_bytes),
                      cell_money(row->charged_micro));
    } else {
        (void)fprintf(stderr, "%s: %llu tile%s, %s fetched, %s credits\n",
                      cell_plain(matmul->options.output), (unsigned long long)product.tiles,
                      text_plural(product.tiles), cell_bytes(product.collected_bytes),
                      cell_money(row->charged_micro));
    }
    show_check(matmul);
    return BOURSE_OK;
}

/* ---------------------------------------------------------------- whole */

/* Checks C and gives it its name. A wrong product never gets the name. */
static bool finish_product(struct matmul *matmul, struct bourse_error *error)
{
    bool wanted = !option_given(matmul->invocation, "no-check") && matmul->options.a != NULL;
    if (wanted) {
        int64_t began_ns = clock_monotonic_ns();
        bool is_right = bourse_product_check(matmul->invocation->bourse, matmul->product,
                                             &matmul->check, error);
        matmul->check_s = (double)(clock_monotonic_ns() - began_ns) / 1e9;
        matmul->was_checked = is_right || error->status == BOURSE_UNVERIFIED;
        if (!is_right) {
            return false;
        }
    }
    return bourse_product_keep(matmul->product, error);
}

static int end_product(struct matmul *matmul, const struct bourse_job_row *last)
{
    struct invocation *invocation = matmul->invocation;
    struct bourse_error error;
    struct bourse_product_summary product;
    CLEANUP(bourse_jobs_destroy) struct bourse_jobs *jobs = NULL;
    bourse_product_summary(matmul->product, &product);
    if (last->state != BOURSE_DONE && product.collected < product.tiles) {
        if (!invocation->json) {
            job_say_why(invocation, last);
            job_say_ended(last);
            say_what_is_missing(matmul, &product);
            return job_exit_status(last);
        }
        return json_print(json_job(last), job_exit_status(last));
    }
    if (!bourse_jobs(invocation->bourse, matmul->id, &jobs, &error)) {
        return complain_about_job(invocation, matmul->id, &error);
    }
    const struct bourse_job_row *row = bourse_jobs_row(jobs, 0);
    if (finish_product(matmul, &error)) {
        return report(matmul, row);
    }
    if (!matmul->was_checked) {
        int status = complain_about_job(invocation, matmul->id, &error);
        if (error.status != BOURSE_UNVERIFIED && !invocation->json) {
            say_how_to_go_on(matmul, row);
        }
        return status;
    }
    if (invocation->json) {
        return report_json(matmul, row);
    }
    show_wrong(&matmul->check);
    return complain_about_job(invocation, matmul->id, &error);
}

static int run_product(struct matmul *matmul)
{
    struct invocation *invocation = matmul->invocation;
    struct bourse_job_row row = {.state = BOURSE_OPEN};
    struct bourse_error error;
    int status = 0;
    if (!make_product(matmul, &status) ||
        (!matmul->is_submitted && !submit_product(matmul, &status))) {
        return status;
    }
    if (!collect_tiles(matmul, &row, &error)) {
        status = complain_about_job(invocation, matmul->id, &error);
        if (error.status != BOURSE_UNVERIFIED && !invocation->json) {
            say_how_to_go_on(matmul, &row);
        }
        return status;
    }
    return end_product(matmul, &row);
}

int command_matmul(struct invocation *invocation)
{
    struct matmul *matmul = calloc(1, sizeof *matmul);
    if (matmul == NULL) {
        return complain(invocation, BOURSE_LOCAL, "out of memory");
    }
    matmul->invocation = invocation;
    int status = read_options(invocation, &matmul->options) ? run_product(matmul) : BOURSE_USAGE;
    bourse_product_destroy(&matmul->product);
    free(matmul);
    return status;
}
