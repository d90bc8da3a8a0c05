#include "consumer/command/market/follow.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "consumer/command/market/instruments.h"
#include "consumer/command/show.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Tells the user that the broker is away, or is back. */
static void say_lost(const struct invocation *invocation, bool is_lost)
{
    (void)fprintf(stderr, "bourse: the broker at %s %s\n", bourse_endpoint(invocation->bourse),
                  is_lost ? "cannot be reached; waiting for it" : "is there again");
}

/* ---------------------------------------------------------------- the book */

struct book_view {
    const struct invocation *invocation;
    const char *instrument; /* instrument of the asks; NULL: all */
    bool is_terminal, is_lost;
    struct screen screen;
};

static bool is_wanted(const struct book_view *view, const struct bourse_depth *depth)
{
    return depth->is_bid || view->instrument == NULL || strcmp(depth->of, view->instrument) == 0;
}

/* Writes the conditions of a level's asks: "2 for some accounts only, 1 at some hours", or "". */
static void conditions_text(const struct bourse_depth *level, char ret_text[CELL_SIZE])
{
    const struct {
        uint32_t orders;
        const char *what;
    } conditions[] = {{level->limited, "for some accounts only"},
                      {level->timed, "at some hours only"},
                      {level->daily, "for so long a day"}};
    size_t used = 0;
    ret_text[0] = '\0';
    for (size_t i = 0; i < sizeof conditions / sizeof conditions[0]; i++) {
        if (conditions[i].orders > 0 && used < CELL_SIZE) {
            used +=
                (size_t)snprintf(ret_text + used, CELL_SIZE - used, "%s%u %s", used > 0 ? ", " : "",
                                 conditions[i].orders, conditions[i].what);
        }
    }
}

static bool has_conditions(const struct bourse_news *news)
{
    bool has = false;
    for (size_t i = 0; i < news->level_count; i++) {
        const struct bourse_depth *level = &news->levels[i];
        has = has || level->limited > 0 || level->timed > 0 || level->daily > 0;
    }
    return has;
}

/* Prints one line with the keys of `book --json`. Asks have `orders` in place of `providers`, and
 * the number of orders with each condition. */
static void print_json_book(const struct book_view *view, const struct bourse_news *news)
{
    json_t *asks = json_array();
    json_t *bids = json_array();
    for (size_t i = 0; i < news->level_count; i++) {
        const struct bourse_depth *level = &news->levels[i];
        if (level->is_bid) {
            json_t *bid = json_pack("{s:s, s:I, s:I, s:I}", "needs", level->of, "limit_micro",
                                    (json_int_t)level->price_micro, "slots",
                                    (json_int_t)level->slots, "bids", (json_int_t)level->orders);
            json_add_rate(bid, level->rate);
            (void)json_array_append_new(bids, bid);
        } else if (is_wanted(view, level)) {
            (void)json_array_append_new(
                asks,
                json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "instrument", level->of,
                          "price_micro", (json_int_t)level->price_micro, "slots",
                          (json_int_t)level->slots, "free", (json_int_t)level->free, "orders",
                          (json_int_t)level->orders, "limited", (json_int_t)level->limited, "timed",
                          (json_int_t)level->timed, "daily", (json_int_t)level->daily));
        }
    }
    (void)json_print(json_pack("{s:I, s:I, s:o, s:o, s:o}", "index", (json_int_t)news->index,
                               "log_time_ms", (json_int_t)news->log_time_ms, "asks", asks, "bids",
                               bids, "bands", json_bands(news->bands)),
                     BOURSE_OK);
}

static void print_grids(const struct book_view *view, const struct bourse_news *news, FILE *to)
{
    static const char *const ask_titles[] = {"INSTRUMENT", "ASK",  "FREE",
                                             "SLOTS",      "ASKS", "CONDITIONS"};
    static const char *const bid_titles[] = {"BID", "WANTED", "JOBS", "NEEDS"};
    CLEANUP(grid_fini)
    struct grid asks =
        has_conditions(news) ? grid_of(6, ask_titles, "lrrrrl") : grid_of(5, ask_titles, "lrrrr");
    CLEANUP(grid_fini) struct grid bids = grid_of(4, bid_titles, "rrrl");
    for (size_t i = 0; i < news->level_count; i++) {
        const struct bourse_depth *level = &news->levels[i];
        if (level->is_bid) {
            const char *cells[] = {cell_limit(level->price_micro, level->rate),
                                   cell_count(level->slots), cell_count(level->orders), level->of};
            grid_add(&bids, cells);
        } else if (is_wanted(view, level)) {
            char conditions[CELL_SIZE];
            conditions_text(level, conditions);
            const char *cells[] = {level->of,
                                   cell_ask_price(level->price_micro),
                                   cell_count(level->free),
                                   cell_count(level->slots),
                                   cell_count(level->orders),
                                   conditions};
            grid_add(&asks, cells);
        }
    }
    (void)fprintf(to, "%s\n", cell_time(news->log_time_ms));
    grid_print(&asks, to, view->invocation->color);
    (void)fputc('\n', to);
    grid_print(&bids, to, view->invocation->color);
    if (news->bands.most_micro > 0) {
        listing_print_bands(to, news->bands);
    }
}

static void draw_book(struct book_view *view, const struct bourse_news *news)
{
    char *text = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&text, &length);
    if (to == NULL) {
        return;
    }
    print_grids(view, news, to);
    (void)fclose(to); /* a memory stream has nothing to lose */
    if (text != NULL) {
        screen_draw(&view->screen, text);
    }
    free(text);
}

/* The bands in force are printed first, and again after each change. */
static void print_new_bands(const struct bourse_news *news)
{
    if (news->has_new_bands) {
        (void)printf("%s  ", cell_time(news->log_time_ms));
        listing_print_bands(stdout, news->bands);
    }
}

static void print_changes(const struct book_view *view, const struct bourse_news *news)
{
    print_new_bands(news);
    for (size_t i = 0; i < news->change_count; i++) {
        const struct bourse_depth *level = &news->changes[i];
        if (!is_wanted(view, level)) {
            continue;
        }
        (void)printf("%s  %s  %s  %s", cell_time(news->log_time_ms), level->is_bid ? "bid" : "ask",
                     level->is_bid ? cell_limit(level->price_micro, level->rate)
                                   : cell_ask_price(level->price_micro),
                     cell_plain(level->of));
        if (level->orders == 0) {
            (void)puts("  gone");
        } else if (level->is_bid) {
            (void)printf("  wants %s\n", cell_count(level->slots));
        } else {
            char conditions[CELL_SIZE];
            conditions_text(level, conditions);
            (void)printf("  free %s of %s%s%s\n", cell_count(level->free), cell_count(level->slots),
                         conditions[0] == '\0' ? "" : "; ", conditions);
        }
    }
}

static bool on_book(void *context, const struct bourse_news *news)
{
    struct book_view *view = context;
    if (news->is_lost != view->is_lost) {
        view->is_lost = news->is_lost;
        view->screen.lines = 0; /* earlier lines stay on the screen */
        say_lost(view->invocation, view->is_lost);
    }
    if (news->is_lost) {
        return true;
    }
    if (view->invocation->json) {
        print_json_book(view, news);
    } else if (view->is_terminal) {
        draw_book(view, news);
    } else {
        print_changes(view, news);
    }
    return fflush(stdout) == 0; /* the reader may be gone */
}

int follow_book(struct invocation *invocation)
{
    int status = 0;
    struct bourse_error error;
    if (option_given(invocation, "needs")) {
        return complain(invocation, BOURSE_USAGE,
                        "--needs does not go with --follow: levels are told by instrument; use "
                        "--instrument");
    }
    if (!command_connect(invocation, &status)) {
        return status;
    }
    struct book_view view = {.invocation = invocation,
                             .instrument = option_text(invocation, "instrument", NULL),
                             .is_terminal = isatty(STDOUT_FILENO) == 1};
    return bourse_follow(invocation->bourse, on_book, &view, &error)
               ? BOURSE_OK
               : complain_with(invocation, &error);
}

/* ---------------------------------------------------------------- trades */

struct trades_view {
    struct invocation *invocation;
    uint64_t limit; /* number of trades before the first news */
    bool is_lost, has_begun, has_failed;
    uint64_t seen; /* log index of the last news */
    struct bourse_error error;
};

static void print_trade(const struct invocation *invocation, const struct bourse_trade *trade)
{
    if (invocation->json) {
        (void)json_print(json_pack("{s:I, s:I, s:I, s:s, s:I, s:I}", "entry",
                                   (json_int_t)trade->entry, "index", (json_int_t)trade->index,
                                   "time_ms", (json_int_t)trade->time_ms, "instrument",
                                   trade->instrument, "slots", (json_int_t)trade->slots,
                                   "price_micro", (json_int_t)trade->price_micro),
                         BOURSE_OK);
    } else if (invocation->quiet) {
        (void)puts(cell_count(trade->index));
    } else {
        (void)printf("%s  %-28s %6s  %10s\n", cell_time(trade->time_ms),
                     cell_plain(trade->instrument), cell_count(trade->slots),
                     cell_money(trade->price_micro));
    }
}

struct missed { /* missed trades, newest first */
    struct bourse_trade *trades;
    size_t count, capacity;
    uint64_t after, through; /* range of log indices */
    uint64_t most;           /* 0: all */
};

static bool take_missed(void *context, const struct bourse_trade *trade)
{
    struct missed *missed = context;
    if (trade->index <= missed->after || (missed->most > 0 && missed->count == missed->most)) {
        return false;
    }
    if (trade->index > missed->through) {
        return true; /* later news will tell this trade */
    }
    struct bourse_trade *trades =
        array_with_room(missed->trades, missed->count, &missed->capacity, sizeof *trades);
    if (trades == NULL) {
        return false;
    }
    missed->trades = trades;
    missed->trades[missed->count++] = *trade;
    return true;
}

/* The ledger has the trades that no news told; they are printed oldest first. */
static bool print_missed(struct trades_view *view, uint64_t through)
{
    struct missed missed = {
        .after = view->seen, .through = through, .most = view->has_begun ? 0 : view->limit};
    bool good = bourse_trades(view->invocation->bourse, 0, take_missed, &missed, &view->error);
    for (size_t i = missed.count; good && i > 0; i--) {
        print_trade(view->invocation, &missed.trades[i - 1]);
    }
    free(missed.trades);
    return good;
}

static bool on_trades(void *context, const struct bourse_news *news)
{
    struct trades_view *view = context;
    if (news->is_lost != view->is_lost) {
        view->is_lost = news->is_lost;
        say_lost(view->invocation, view->is_lost);
    }
    if (news->is_lost) {
        return true;
    }
    if (news->is_anew) {
        /* The trades in these news are printed from the news. */
        const uint64_t through = news->trade_count > 0 ? news->trades[0].index - 1 : news->index;
        view->has_failed = !print_missed(view, through);
    }
    view->has_begun = true;
    for (size_t i = 0; i < news->trade_count; i++) {
        print_trade(view->invocation, &news->trades[i]);
    }
    view->seen = news->index;
    return fflush(stdout) == 0 && !view->has_failed; /* the reader may be gone */
}

int follow_trades(struct invocation *invocation, uint64_t limit)
{
    int status = 0;
    struct bourse_error error;
    if (!command_connect(invocation, &status)) {
        return status;
    }
    struct trades_view view = {.invocation = invocation, .limit = limit};
    if (!bourse_follow(invocation->bourse, on_trades, &view, &error)) {
        return complain_with(invocation, &error);
    }
    return view.has_failed ? complain_with(invocation, &view.error) : BOURSE_OK;
}

/* ---------------------------------------------------------------- prices */

struct price_list {
    json_t *list; /* NULL: a table */
    struct grid table;
    bool is_one; /* one instrument, by minutes */
    size_t count;
};

static bool add_price(void *context, const struct bourse_bar *bar)
{
    struct price_list *prices = context;
    prices->count++;
    if (prices->list != NULL) {
        return json_array_append_new(
                   prices->list,
                   json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "instrument",
                             bar->instrument, "start_ms", (json_int_t)bar->start_ms, "open_micro",
                             (json_int_t)bar->open_micro, "high_micro", (json_int_t)bar->high_micro,
                             "low_micro", (json_int_t)bar->low_micro, "close_micro",
                             (json_int_t)bar->close_micro, "slots", (json_int_t)bar->slots,
                             "trades", (json_int_t)bar->trades)) == 0;
    }
    const char *cells[] = {prices->is_one ? cell_time(bar->start_ms) : bar->instrument,
                           cell_money(bar->open_micro),
                           cell_money(bar->high_micro),
                           cell_money(bar->low_micro),
                           cell_money(bar->close_micro),
                           cell_count(bar->slots),
                           cell_count(bar->trades)};
    grid_add(&prices->table, cells);
    return true;
}

int command_prices(struct invocation *invocation)
{
    const char *instrument = invocation->word_count > 0 ? invocation->words[0] : NULL;
    const char *titles[] = {instrument != NULL ? "MINUTE" : "INSTRUMENT",
                            "FIRST",
                            "HIGHEST",
                            "LOWEST",
                            "LAST",
                            "SLOTS",
                            "TRADES"};
    int64_t age_ms = 0;
    int status = 0;
    struct bourse_account account = {.log_time_ms = 0};
    struct bourse_error error;
    if (!option_duration_ms(invocation, "since", &age_ms)) {
        return BOURSE_USAGE;
    }
    if (!command_connect(invocation, &status)) {
        return status;
    }
    if (!bourse_whoami(invocation->bourse, &account, &error)) {
        return complain_with(invocation, &error);
    }
    const int64_t since_ms =
        age_ms > 0 && age_ms < account.log_time_ms ? account.log_time_ms - age_ms : 0;
    struct price_list prices = {.list = invocation->json ? json_array() : NULL,
                                .table = grid_of(7, titles, "lrrrrrr"),
                                .is_one = instrument != NULL};
    if (!bourse_prices(invocation->bourse, instrument, since_ms, add_price, &prices, &error)) {
        json_decref(prices.list);
        status = complain_with(invocation, &error);
    } else if (prices.count == 0 && instrument != NULL &&
               !instrument_is_known(invocation, instrument, &status)) {
        json_decref(prices.list);
    } else if (invocation->json) {
        status = json_print(json_pack("{s:o}", "prices", prices.list), BOURSE_OK);
    } else {
        grid_print(&prices.table, stdout, invocation->color);
    }
    grid_fini(&prices.table);
    return status;
}
