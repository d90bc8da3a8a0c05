/* bench/requests.c measures what each request costs the core, in processor time and in steps. The
 * program prints one JSON object.
 *
 *     requests [--asks N] [--jobs N] [--cells N] [--leased PERCENT] [--rounds N]
 *
 * The market is that of bench/explain: N asks [10000], of which --leased percent [50] are leased,
 * and N jobs [1000] that wait. Each request that the core answers is answered --rounds times [20].
 * The figures of a request are microseconds (the median), steps, and bytes of the answer. */
#include "bench/full_market.h"
#include "broker/answer/follow.h"
#include "broker/answer/listings.h"
#include "broker/answer/replies.h"
#include "broker/gateway/budget.h"
#include "exchange/view/feed.h"
#include "protocol/codec.h"

#include <jansson.h>

enum { ROUNDS_MOST = 1000 };

static uint32_t rounds = 20;
static struct follow *followers;
static struct figures_board *figures;
static struct challenge_facts *challenge_facts;

static int compare(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left;
    int64_t b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

/* Answers the request once. Returns the answer, and its time. */
static struct outgoing *answer_once(struct request *request)
{
    struct outgoing *former = NULL;
    const int64_t log_ns = exchange_log_time_ns(exchange);
    if (request->envelope.type == MESSAGE_MARKET_REQUEST) {
        return follow_answer(followers, exchange, request, 0, &former);
    }
    if (request->envelope.type == MESSAGE_DEVICES_REQUEST) {
        const struct listings_sources sources = {
            .figures = figures, .now_ns = 0, .challenges = challenge_facts, .log_ns = log_ns};
        return listings_devices(exchange, &sources, request);
    }
    const struct replies_sources sources = {.facts = challenge_facts, .log_ns = log_ns};
    return replies_to_read(exchange, &sources, request);
}

static void time_request(json_t *all, const char *name, enum message_type type, uint32_t account,
                         const ProtobufCMessage *body)
{
    int64_t each_ns[ROUNDS_MOST];
    size_t length;
    size_t bytes = 0;
    uint64_t steps = 0;
    struct codec_error error;
    struct request request = {
        .account = account, .session = 1, .envelope = {.type = (uint16_t)type}};
    uint8_t *encoded = codec_encode(body, &length);
    if (encoded == NULL ||
        codec_decode(type, encoded, length, &request.translation.body, &error) != CODEC_OK) {
        die(name);
    }
    for (uint32_t i = 0; i < rounds; i++) {
        const uint64_t before = exchange_steps(exchange);
        const int64_t before_ns = now_ns();
        struct outgoing *answer = answer_once(&request);
        each_ns[i] = now_ns() - before_ns;
        if (answer == NULL) {
            die("no answer");
        }
        bytes = answer->length;
        steps = (uint64_t)budget_of_answer(exchange_steps(exchange) - before, answer->length);
        outgoing_destroy(&answer);
    }
    qsort(each_ns, rounds, sizeof *each_ns, compare);
    json_object_set_new(all, name,
                        json_pack("{s:f, s:I, s:I}", "us", (double)each_ns[rounds / 2] / 1e3,
                                  "steps", (json_int_t)steps, "bytes", (json_int_t)bytes));
    codec_free(&request.translation.body);
    free(encoded);
}

static void time_listings(json_t *all, Bourse__V1__Requirement *none)
{
    Bourse__V1__BookRequest book = BOURSE__V1__BOOK_REQUEST__INIT;
    time_request(all, "book", MESSAGE_BOOK_REQUEST, CONSUMER, &book.base);
    book.needs = none;
    time_request(all, "book, none fits", MESSAGE_BOOK_REQUEST, CONSUMER, &book.base);
    Bourse__V1__DevicesRequest devices = BOURSE__V1__DEVICES_REQUEST__INIT;
    time_request(all, "devices", MESSAGE_DEVICES_REQUEST, CONSUMER, &devices.base);
    devices.needs = none;
    time_request(all, "devices, none fits", MESSAGE_DEVICES_REQUEST, CONSUMER, &devices.base);
    Bourse__V1__ProvidersRequest providers = BOURSE__V1__PROVIDERS_REQUEST__INIT;
    time_request(all, "providers", MESSAGE_PROVIDERS_REQUEST, CONSUMER, &providers.base);
    Bourse__V1__OrdersRequest orders = BOURSE__V1__ORDERS_REQUEST__INIT;
    time_request(all, "orders of a consumer", MESSAGE_ORDERS_REQUEST, CONSUMER, &orders.base);
    time_request(all, "orders of a provider", MESSAGE_ORDERS_REQUEST, FIRST_PROVIDER, &orders.base);
    Bourse__V1__PricesRequest prices = BOURSE__V1__PRICES_REQUEST__INIT;
    time_request(all, "prices", MESSAGE_PRICES_REQUEST, CONSUMER, &prices.base);
    Bourse__V1__AccountsRequest accounts = BOURSE__V1__ACCOUNTS_REQUEST__INIT;
    time_request(all, "accounts", MESSAGE_ACCOUNTS_REQUEST, CONSUMER, &accounts.base);
    Bourse__V1__MarketRequest market = BOURSE__V1__MARKET_REQUEST__INIT;
    time_request(all, "market", MESSAGE_MARKET_REQUEST, CONSUMER, &market.base);
}

static void time_own(json_t *all, const struct waiting *waiting)
{
    Bourse__V1__BalanceRequest balance = BOURSE__V1__BALANCE_REQUEST__INIT;
    time_request(all, "balance", MESSAGE_BALANCE_REQUEST, CONSUMER, &balance.base);
    Bourse__V1__DonationsRequest donations = BOURSE__V1__DONATIONS_REQUEST__INIT;
    time_request(all, "donations", MESSAGE_DONATIONS_REQUEST, CONSUMER, &donations.base);
    Bourse__V1__JobsRequest jobs = BOURSE__V1__JOBS_REQUEST__INIT;
    time_request(all, "jobs", MESSAGE_JOBS_REQUEST, CONSUMER, &jobs.base);
    uint8_t id[16];
    memcpy(id, waiting->id.bytes, sizeof id);
    jobs.has_job = true;
    jobs.job = (ProtobufCBinaryData){.data = id, .len = sizeof id};
    time_request(all, "one job", MESSAGE_JOBS_REQUEST, CONSUMER, &jobs.base);
    jobs.has_subtasks = jobs.subtasks = true;
    time_request(all, "one job, its subtasks", MESSAGE_JOBS_REQUEST, CONSUMER, &jobs.base);
    Bourse__V1__ExplainRequest explain = BOURSE__V1__EXPLAIN_REQUEST__INIT;
    explain.job = jobs.job;
    time_request(all, "explain", MESSAGE_EXPLAIN_REQUEST, CONSUMER, &explain.base);
    Bourse__V1__WhyRequest why = BOURSE__V1__WHY_REQUEST__INIT;
    time_request(all, "why", MESSAGE_WHY_REQUEST, FIRST_PROVIDER, &why.base);
}

static void time_quotes(json_t *all, Bourse__V1__Requirement *narrow, Bourse__V1__Requirement *any)
{
    Bourse__V1__QuoteRequest quote = BOURSE__V1__QUOTE_REQUEST__INIT;
    quote.subtasks = quote.slots = 1;
    quote.limit_ms = 60000;
    quote.term_ms = 3600000;
    quote.expect_ns = 60 * NS_PER_S;
    quote.needs = narrow;
    time_request(all, "quote without a cap", MESSAGE_QUOTE_REQUEST, CONSUMER, &quote.base);
    quote.has_cap_micro = true;
    quote.cap_micro = cap_of(0);
    time_request(all, "quote", MESSAGE_QUOTE_REQUEST, CONSUMER, &quote.base);
    quote.needs = any;
    quote.has_cap_micro = false;
    quote.subtasks = UINT16_MAX;
    time_request(all, "quote of anything", MESSAGE_QUOTE_REQUEST, CONSUMER, &quote.base);
}

int main(int argc, char **argv)
{
    uint32_t asks = number_after(argc, argv, "--asks", 10000) / PROVIDERS * PROVIDERS;
    uint32_t jobs = number_after(argc, argv, "--jobs", 1000);
    uint32_t cells = number_after(argc, argv, "--cells", asks);
    uint32_t leased = number_after(argc, argv, "--leased", 50);
    rounds = number_after(argc, argv, "--rounds", rounds);
    if (asks == 0 || jobs == 0 || cells == 0 || leased > 100 || rounds == 0 ||
        rounds > ROUNDS_MOST) {
        die("--asks is 20 at least, --jobs and --cells 1, --leased 0 to 100, --rounds 1 to 1000");
    }
    fill_market(asks, jobs, cells, leased);
    struct waiting *waiting = memory(jobs, sizeof *waiting);
    wait_for_asks(waiting, jobs);
    followers = follow_create(1);
    figures = figures_board_create();
    challenge_facts = challenge_facts_create();
    struct requirement needs;
    if (followers == NULL || figures == NULL || challenge_facts == NULL ||
        !exchange_feed_open(exchange, 0)) {
        die("out of memory");
    }
    needs_of(1, &needs);
    Bourse__V1__Requirement *narrow = codec_requirement_to_wire(&needs);
    parse("any", &needs);
    Bourse__V1__Requirement *any = codec_requirement_to_wire(&needs);
    parse("memory >= 1000GiB and label = \"none\"", &needs);
    Bourse__V1__Requirement *none = codec_requirement_to_wire(&needs);
    json_t *all = json_object();
    time_own(all, waiting);
    time_quotes(all, narrow, any);
    time_listings(all, none);
    (void)json_dumpf(all, stdout, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
    (void)putchar('\n');
    json_decref(all);
    codec_requirement_free(&narrow);
    codec_requirement_free(&any);
    codec_requirement_free(&none);
    follow_destroy(&followers);
    figures_board_destroy(&figures);
    challenge_facts_destroy(&challenge_facts);
    free(waiting);
    exchange_effects_fini(&effects);
    exchange_destroy(&exchange);
    return 0;
}
