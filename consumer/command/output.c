#include "consumer/command/output.h"

#include "base/checked.h"
#include "base/text.h"
#include "formats/units.h"
#include "formats/value.h"
#include "planner/cost/profile.h"
#include "planner/schedule/online.h"
#include "runtime/clock.h"
#include "runtime/terminal.h"

#include <assert.h>
#include <inttypes.h>
#include <langinfo.h>
#include <locale.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

/* ---------------------------------------------------------------- tables */

struct grid grid_of(size_t columns, const char *const *titles, const char *right_columns)
{
    assert(columns <= GRID_COLUMNS_MAX);
    assert(strlen(right_columns) == columns); /* one 'l' or 'r' for each column */
    struct grid table = {.columns = columns};
    for (size_t i = 0; i < columns; i++) {
        table.titles[i] = titles[i];
        table.right[i] = right_columns[i] == 'r';
    }
    return table;
}

void grid_add(struct grid *table, const char *const *cells)
{
    if (table->rows == table->capacity) {
        size_t capacity = table->capacity == 0 ? 16 : table->capacity * 2;
        char(*grown)[CELL_SIZE] = reallocarray(table->cells, capacity * table->columns, CELL_SIZE);
        if (grown == NULL) {
            return;
        }
        table->cells = grown;
        table->capacity = capacity;
    }
    for (size_t i = 0; i < table->columns; i++) {
        text_printable(cells[i], strlen(cells[i]), table->cells[table->rows * table->columns + i],
                       CELL_SIZE);
    }
    table->rows++;
}

/* Counts characters by their first bytes; a wide one counts as one column. */
static int width_of(const char *text)
{
    int width = 0;
    for (const char *c = text; *c != '\0'; c++) {
        width += ((unsigned char)*c & 0xc0) != 0x80;
    }
    return width;
}

static void print_cell(FILE *to, const char *text, int width, bool right, bool last)
{
    int padding = width - width_of(text);
    if (right) {
        (void)fprintf(to, "%*s%s", padding, "", text);
    } else {
        (void)fprintf(to, "%s%*s", text, last ? 0 : padding, "");
    }
    (void)fputs(last ? "\n" : "  ", to);
}

void grid_print(const struct grid *table, FILE *to, bool color)
{
    int widths[GRID_COLUMNS_MAX];
    for (size_t i = 0; i < table->columns; i++) {
        widths[i] = width_of(table->titles[i]);
        for (size_t r = 0; r < table->rows; r++) {
            int width = width_of(table->cells[r * table->columns + i]);
            widths[i] = width > widths[i] ? width : widths[i];
        }
    }
    (void)fputs(color ? "\033[1m" : "", to);
    for (size_t i = 0; i < table->columns; i++) {
        print_cell(to, table->titles[i], widths[i], table->right[i], i + 1 == table->columns);
    }
    (void)fputs(color ? "\033[0m" : "", to);
    for (size_t r = 0; r < table->rows; r++) {
        for (size_t i = 0; i < table->columns; i++) {
            print_cell(to, table->cells[r * table->columns + i], widths[i], table->right[i],
                       i + 1 == table->columns);
        }
    }
}

void grid_fini(struct grid *table)
{
    free(table->cells);
    table->cells = NULL;
}

static struct winsize terminal_size(int fd)
{
    struct winsize size = {.ws_col = 0};
    bool known = isatty(fd) == 1 && ioctl(fd, TIOCGWINSZ, &size) == 0;
    if (!known || size.ws_col == 0 || size.ws_row < 2) {
        size = (struct winsize){.ws_col = 80, .ws_row = 24};
    }
    return size;
}

unsigned terminal_width(int fd)
{
    return terminal_size(fd).ws_col;
}

static unsigned terminal_height(int fd)
{
    return terminal_size(fd).ws_row;
}

bool locale_is_utf8(void)
{
    locale_t locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    if (locale == (locale_t)0) {
        return false;
    }
    bool is_utf8 = strcmp(nl_langinfo_l(CODESET, locale), "UTF-8") == 0;
    freelocale(locale);
    return is_utf8;
}

/* ---------------------------------------------------------------- texts */

enum { RING = 24 };

static char *ring_next(void)
{
    static char ring[RING][CELL_SIZE];
    static size_t at;
    at = (at + 1) % RING;
    return ring[at];
}

const char *subtask_text(const struct bourse_tasks *tasks, uint32_t index)
{
    char *text = ring_next();
    const char *name = tasks == NULL ? NULL : bourse_task_name(tasks, index);
    if (name != NULL) {
        (void)snprintf(text, CELL_SIZE, "task %s", plain_text(name));
    } else {
        (void)snprintf(text, CELL_SIZE, "subtask %u", index);
    }
    return text;
}

const char *money_text(int64_t micro)
{
    char *text = ring_next();
    units_money_text(micro, text);
    return text;
}

const char *limit_text(int64_t micro, const char *rate)
{
    if (rate == NULL || rate_named(rate) == RATE_NONE) {
        return money_text(micro);
    }
    char *text = ring_next();
    static_assert((int)VALUE_TEXT_SIZE <= (int)UNITS_TEXT_SIZE, "it fits where amounts do");
    value_text(&(struct value){micro, rate_named(rate)}, text);
    return text;
}

void json_add_rate(json_t *object, const char *rate)
{
    if (rate != NULL && rate[0] != '\0') {
        (void)json_object_set_new(object, "rate", json_string(rate));
    }
}

const char *ask_text(int64_t micro)
{
    return micro == 0 ? "donated" : money_text(micro);
}

const char *duration_ns_text(int64_t ns)
{
    char *text = ring_next();
    units_duration_near(ns, text);
    return text;
}

const char *left_text(int64_t ms)
{
    char *text = ring_next();
    int64_t ns = 0;
    units_duration_down(checked_mul(ms, NS_PER_MS, &ns) ? ns : INT64_MAX, text);
    return text;
}

const char *duration_text(int64_t ms)
{
    int64_t ns = 0;
    return duration_ns_text(checked_mul(ms, NS_PER_MS, &ns) ? ns : INT64_MAX);
}

const char *time_text(int64_t ms)
{
    char *text = ring_next();
    time_t seconds = (time_t)(ms / 1000);
    struct tm local;
    if (ms == 0 || localtime_r(&seconds, &local) == NULL ||
        strftime(text, CELL_SIZE, "%Y-%m-%d %H:%M:%S", &local) == 0) {
        return "-";
    }
    return text;
}

const char *bytes_text(uint64_t bytes)
{
    char *text = ring_next();
    units_bytes_short(bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes, text);
    return text;
}

const char *joules_text(const struct figure *energy_j)
{
    char *text = ring_next();
    const bool is_large = energy_j->value >= 3.6e6;
    (void)snprintf(text, CELL_SIZE, "%.4g %s", is_large ? energy_j->value / 3.6e6 : energy_j->value,
                   is_large ? "kWh" : "J");
    return energy_j->source == FIGURE_UNKNOWN ? "-" : text;
}

const char *count_text(uint64_t count)
{
    char *text = ring_next();
    (void)snprintf(text, CELL_SIZE, "%" PRIu64, count);
    return text;
}

const char *short_id(const char *id)
{
    char *text = ring_next();
    (void)snprintf(text, CELL_SIZE, "%.8s", id);
    return text;
}

const char *plain_text(const char *text)
{
    char *copy = ring_next();
    text_printable(text, strlen(text), copy, CELL_SIZE);
    return copy;
}

/* ---------------------------------------------------------------- JSON */

int print_json(json_t *value, int status)
{
    (void)json_object_set_new(value, "version", json_integer(1));
    char *text = value != NULL ? json_dumps(value, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
    json_decref(value);
    if (text == NULL) {
        (void)fputs("bourse: out of memory\n", stderr);
        return bourse_exit_status(BOURSE_LOCAL);
    }
    (void)puts(text);
    free(text);
    return status;
}

static json_t *json_lease(const struct bourse_lease *lease)
{
    return json_pack("{s:I, s:s, s:s, s:b, s:s, s:i, s:I, s:i, s:I, s:I, s:b, s:b}", "lease",
                     (json_int_t)lease->lease, "provider", lease->provider, "device", lease->device,
                     "simulated", (int)lease->simulated, "state", lease->state, "slots",
                     (int)lease->slots, "price_micro", (json_int_t)lease->price_micro, "accepted",
                     (int)lease->accepted, "paid_ns", (json_int_t)lease->paid_ns, "charged_micro",
                     (json_int_t)lease->charged_micro, "interruptible", (int)lease->interruptible,
                     "taken", (int)lease->taken);
}

json_t *json_job(const struct bourse_job_row *row)
{
    json_t *leases = json_array();
    for (size_t i = 0; i < row->lease_count; i++) {
        (void)json_array_append_new(leases, json_lease(&row->leases[i]));
    }
    json_t *value =
        json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:I, s:I, s:I, s:I, s:I, "
                  "s:s, s:I, s:o}",
                  "job", row->id, "name", row->name, "state", row->state_text, "reason",
                  row->reason_text, "subtasks", (int)row->subtasks, "waiting", (int)row->waiting,
                  "running", (int)(row->running - row->queued), "accepted", (int)row->accepted,
                  "failed", (int)row->failed, "cancelled", (int)row->cancelled, "budget_micro",
                  (json_int_t)row->budget_micro, "charged_micro", (json_int_t)row->charged_micro,
                  "reserved_micro", (json_int_t)row->reserved_micro, "submitted_ms",
                  (json_int_t)row->submitted_ms, "ended_ms", (json_int_t)row->ended_ms, "manifest",
                  row->manifest, "index", (json_int_t)row->index, "leases", leases);
    /* These keys repeat the amounts in exact credits, for people. */
    (void)json_object_set_new(value, "budget", json_string(money_text(row->budget_micro)));
    (void)json_object_set_new(value, "charged", json_string(money_text(row->charged_micro)));
    (void)json_object_set_new(value, "reserved", json_string(money_text(row->reserved_micro)));
    (void)json_object_set_new(value, "queued", json_integer(row->queued));
    if (row->checking > 0) {
        (void)json_object_set_new(value, "checking", json_integer(row->checking));
    }
    if (row->accused > 0) {
        (void)json_object_set_new(value, "accused", json_integer(row->accused));
    }
    if (row->saved > 0) {
        (void)json_object_set_new(value, "saved", json_integer(row->saved));
    }
    int64_t percent = 0;
    (void)json_object_set_new(value, "left_ms",
                              row->left_ms < 0 ? json_null() : json_integer(row->left_ms));
    (void)json_object_set_new(value, "pace",
                              json_pack("{s:I, s:I, s:I, s:b}", "timed", (json_int_t)row->timed,
                                        "foreseen_ms", (json_int_t)row->foreseen_ms, "took_ms",
                                        (json_int_t)row->took_ms, "drifts",
                                        (int)job_drifts(row, &percent)));
    return value;
}

void json_set_drifts(json_t *job, bool drifts)
{
    (void)json_object_set_new(json_object_get(job, "pace"), "drifts", json_boolean(drifts));
}

static json_t *json_changes(const struct bourse_explanation *explanation)
{
    json_t *changes = json_array();
    for (uint32_t i = 0; i < explanation->change_count; i++) {
        const struct bourse_change *change = &explanation->changes[i];
        json_t *item = json_pack("{s:s, s:s}", "field", change->field, "text", change->text);
        if (change->has_figures) {
            (void)json_object_set_new(item, "from", json_integer((json_int_t)change->from));
            (void)json_object_set_new(item, "to", json_integer((json_int_t)change->to));
        }
        (void)json_array_append_new(changes, item);
    }
    return changes;
}

json_t *json_explanation(const struct bourse_explanation *explanation)
{
    json_t *predicates = json_array();
    for (uint32_t i = 0; i < explanation->predicate_count; i++) {
        const struct bourse_predicate *predicate = &explanation->predicates[i];
        json_t *item =
            json_pack("{s:s, s:i}", "text", predicate->text, "failing", (int)predicate->failing);
        if (predicate->has_best) {
            (void)json_object_set_new(item, "best", json_integer((json_int_t)predicate->best));
        }
        (void)json_array_append_new(predicates, item);
    }
    json_t *value =
        json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:o}", "text", explanation->text, "devices",
                  (int)explanation->devices, "fitting", (int)explanation->fitting, "asking",
                  (int)explanation->asking, "affordable", (int)explanation->affordable, "free",
                  (int)explanation->free, "predicates", predicates);
    if (explanation->has_fills_at) {
        (void)json_object_set_new(value, "fills_at_micro",
                                  json_integer((json_int_t)explanation->fills_at_micro));
    }
    json_add_rate(value, explanation->rate);
    if (explanation->change_count > 0) {
        (void)json_object_set_new(value, "changes", json_changes(explanation));
        (void)json_object_set_new(value, "changed_price_micro",
                                  json_integer((json_int_t)explanation->changed_price_micro));
    }
    if (explanation->changed_needs[0] != '\0') {
        (void)json_object_set_new(value, "changed_needs", json_string(explanation->changed_needs));
    }
    if (explanation->takes_at_micro >= 0) {
        (void)json_object_set_new(value, "takes_at_micro",
                                  json_integer((json_int_t)explanation->takes_at_micro));
    }
    if (explanation->starts_at_micro >= 0) {
        (void)json_object_set_new(value, "starts_at_micro",
                                  json_integer((json_int_t)explanation->starts_at_micro));
        (void)json_object_set_new(value, "starts_with_lease",
                                  json_boolean(explanation->starts_with_lease));
    }
    if (explanation->refusal[0] != '\0') {
        (void)json_object_set_new(value, "refusal", json_string(explanation->refusal));
    }
    if (explanation->own_devices > 0) {
        (void)json_object_set_new(value, "own_devices",
                                  json_integer((json_int_t)explanation->own_devices));
    }
    if (explanation->ahead >= 0) {
        (void)json_object_set_new(value, "ahead", json_integer((json_int_t)explanation->ahead));
        (void)json_object_set_new(value, "ahead_partial", json_boolean(explanation->ahead_partial));
    }
    if (explanation->state[0] != '\0') {
        (void)json_object_set_new(value, "state", json_string(explanation->state));
    }
    return value;
}

json_t *json_quote(const struct bourse_quote *quote)
{
    json_t *levels = json_array();
    for (uint32_t i = 0; i < quote->level_count; i++) {
        const struct bourse_level *level = &quote->levels[i];
        json_t *item = json_pack("{s:I, s:i, s:i}", "price_micro", (json_int_t)level->price_micro,
                                 "slots", (int)level->slots, "providers", (int)level->providers);
        if (level->worth_micro >= 0) {
            (void)json_object_set_new(item, "instrument", json_string(level->instrument));
            (void)json_object_set_new(item, "limit_micro",
                                      json_integer((json_int_t)level->worth_micro));
        }
        (void)json_array_append_new(levels, item);
    }
    json_t *value = json_pack(
        "{s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:I}", "slots_now", (int)quote->slots_now,
        "price_low_micro", (json_int_t)quote->price_low_micro, "price_high_micro",
        (json_int_t)quote->price_high_micro, "expected_micro", (json_int_t)quote->expected_micro,
        "minimum_micro", (json_int_t)quote->minimum_micro, "suggested_micro",
        (json_int_t)quote->suggested_micro, "limit_micro", (json_int_t)quote->limit_micro,
        "makespan_ns", (json_int_t)quote->makespan_ns, "levels", levels, "index",
        (json_int_t)quote->index);
    if (quote->slots_taken > 0) {
        (void)json_object_set_new(value, "slots_taken",
                                  json_integer((json_int_t)quote->slots_taken));
        (void)json_object_set_new(value, "taken_low_micro",
                                  json_integer((json_int_t)quote->taken_low_micro));
        (void)json_object_set_new(value, "taken_high_micro",
                                  json_integer((json_int_t)quote->taken_high_micro));
    }
    if (quote->alone.place[0] != '\0') {
        const struct bourse_alone *alone = &quote->alone;
        (void)json_object_set_new(value, "alone",
                                  json_pack("{s:s, s:s, s:I, s:I, s:I}", "device",
                                            plain_text(alone->place), "needs", alone->needs,
                                            "makespan_ns", (json_int_t)alone->makespan_ns,
                                            "cost_micro", (json_int_t)alone->cost_micro,
                                            "least_micro", (json_int_t)alone->least_micro));
    }
    if (quote->without_gift > 0) {
        (void)json_object_set_new(value, "without_gift",
                                  json_integer((json_int_t)quote->without_gift));
    }
    if (quote->rests_at_micro >= 0) {
        (void)json_object_set_new(value, "rests_at_micro",
                                  json_integer((json_int_t)quote->rests_at_micro));
    }
    if (quote->suggested_cap_micro >= 0) {
        (void)json_object_set_new(value, "suggested_cap_micro",
                                  json_integer((json_int_t)quote->suggested_cap_micro));
        (void)json_object_set_new(value, "suggested_cap_trades",
                                  json_integer((json_int_t)quote->suggested_cap_trades));
        (void)json_object_set_new(value, "suggested_cap_since_ms",
                                  json_integer((json_int_t)quote->suggested_cap_since_ms));
    }
    if (quote->has_explanation) {
        (void)json_object_set_new(value, "explanation", json_explanation(&quote->explanation));
    }
    if (quote->checks_problem[0] != '\0') {
        (void)json_object_set_new(value, "checks_problem", json_string(quote->checks_problem));
    }
    return value;
}

static json_t *json_output(const struct bourse_output *output)
{
    return json_pack("{s:s, s:s, s:I}", "name", output->name, "sha256", output->hash, "size",
                     (json_int_t)output->size);
}

json_t *json_outcome(const struct bourse_outcome *outcome)
{
    json_t *outputs = json_array();
    for (size_t i = 0; i < outcome->output_count; i++) {
        (void)json_array_append_new(outputs, json_output(&outcome->outputs[i]));
    }
    json_t *value =
        json_pack("{s:i, s:i, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:o}", "index",
                  (int)outcome->index, "attempt", (int)outcome->attempt, "status",
                  outcome->status_text, "outcome", outcome->outcome_text, "detail", outcome->detail,
                  "provider", outcome->provider, "busy_ns", (json_int_t)outcome->busy_ns, "paid_ns",
                  (json_int_t)outcome->paid_ns, "charge_micro", (json_int_t)outcome->charge_micro,
                  "log_index", (json_int_t)outcome->log_index, "outputs", outputs);
    if (outcome->has_exit_code) {
        (void)json_object_set_new(value, "exit_code", json_integer(outcome->exit_code));
    }
    if (outcome->signal != 0) {
        (void)json_object_set_new(value, "signal", json_integer(outcome->signal));
    }
    if (outcome->simulated) {
        (void)json_object_set_new(value, "simulated", json_true());
    }
    if (outcome->restored != 0) {
        (void)json_object_set_new(value, "restored", json_integer(outcome->restored));
    }
    if (outcome->saved_files > 0) {
        (void)json_object_set_new(value, "saved",
                                  json_pack("{s:i, s:I}", "files", (int)outcome->saved_files,
                                            "bytes", (json_int_t)outcome->saved_bytes));
    }
    return value;
}

/* ---------------------------------------------------------------- pace */

uint64_t job_done(const struct bourse_job_row *row)
{
    return (uint64_t)row->accepted + row->failed + row->cancelled;
}

void pace_note(struct pace *pace, const struct bourse_job_row *row)
{
    if (!pace->is_known) {
        *pace = (struct pace){
            .is_known = true, .first = job_done(row), .since_ns = clock_monotonic_ns()};
    }
}

bool pace_of(const struct pace *pace, const struct bourse_job_row *row, int64_t *ret_per_hour)
{
    uint64_t done = job_done(row);
    int64_t elapsed_ns = clock_monotonic_ns() - pace->since_ns;
    if (!pace->is_known || done <= pace->first || done >= row->subtasks || elapsed_ns < 1) {
        return false;
    }
    return checked_muldiv_floor((int64_t)(done - pace->first), NS_PER_HOUR, elapsed_ns,
                                ret_per_hour);
}

bool job_drifts(const struct bourse_job_row *row, int64_t *ret_percent)
{
    int64_t share = 0;
    if (!online_drifts(row->foreseen_ms, row->took_ms, row->timed) ||
        !checked_muldiv_floor(row->took_ms, 100, row->foreseen_ms, &share)) {
        return false;
    }
    *ret_percent = share - 100;
    return true;
}

bool job_outgrows(const struct bourse_job_row *row, int64_t *ret_micro)
{
    int64_t percent = 0;
    int64_t micro = 0;
    const int64_t done = (int64_t)row->accepted + row->failed;
    if (row->state != BOURSE_OPEN || !job_drifts(row, &percent) || percent < 0 || done == 0 ||
        !checked_muldiv_ceil(row->charged_micro, row->subtasks, done, &micro) ||
        micro <= row->budget_micro) {
        return false;
    }
    *ret_micro = micro;
    return true;
}

/* ---------------------------------------------------------------- progress */

static const int64_t REDRAW_NS = 100 * NS_PER_MS;
static const int64_t LINE_NS = 5 * NS_PER_S;

struct progress progress_start(const struct invocation *invocation)
{
    struct progress progress = {.terminal = isatty(STDERR_FILENO) == 1};
    bool asked = option_given(invocation, "progress");
    /* The option shows progress even with --quiet, which keeps stdout to ids. */
    progress.on = asked || (progress.terminal && !invocation->json && !invocation->quiet);
    return progress;
}

void progress_text(struct progress *progress, bool force, const char *format, ...)
{
    int64_t now_ns = clock_monotonic_ns();
    int64_t pause_ns = progress->terminal ? REDRAW_NS : LINE_NS;
    if (!progress->on ||
        (!force && progress->drawn_ns != 0 && now_ns - progress->drawn_ns < pause_ns)) {
        return;
    }
    progress->drawn_ns = now_ns;
    progress->has_line = true;
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments); /* cut, never overrun */
    va_end(arguments);
    if (progress->terminal) {
        terminal_control(stderr, "\r");
        (void)fputs(text, stderr);
        terminal_control(stderr, "\033[K");
    } else {
        (void)fprintf(stderr, "%s\n", text);
    }
    (void)fflush(stderr);
}

void job_left(const struct bourse_job_row *row, int64_t percent, char ret_text[CELL_SIZE])
{
    size_t used = 0;
    ret_text[0] = '\0';
    if (row->left_ms >= 0 && row->timed > 0) {
        used =
            (size_t)snprintf(ret_text, CELL_SIZE, "about %.60s left", duration_text(row->left_ms));
    }
    if (row->state == BOURSE_OPEN && percent != 0) {
        (void)snprintf(ret_text + used, CELL_SIZE - used,
                       "%ssubtasks take %" PRId64 "%% %s than expected", used > 0 ? ", " : "",
                       percent < 0 ? -percent : percent, percent < 0 ? "less" : "longer");
    }
}

void job_line(const struct bourse_job_row *row, int64_t percent, char ret_text[JOB_LINE_SIZE])
{
    char left[CELL_SIZE];
    job_left(row, percent, left);
    char checking[CELL_SIZE] = "";
    if (row->checking > 0) {
        char accused[64] = "";
        if (row->accused > 0) {
            (void)snprintf(accused, sizeof accused, " (%u rejected by one referee)", row->accused);
        }
        (void)snprintf(checking, sizeof checking, "%u checking%s, ", row->checking, accused);
    }
    const char *why = row->running == 0 && row->reason_text[0] != '\0' ? row->reason_text : "";
    (void)snprintf(ret_text, JOB_LINE_SIZE,
                   "%.8s  %u/%u done, %u failed, %u running, %s%u waiting, %s credits%s%s%s%s%s",
                   row->id, row->accepted, row->subtasks, row->failed, row->running - row->queued,
                   checking, row->waiting + row->queued, money_text(row->charged_micro),
                   left[0] != '\0' ? ", " : "", left, why[0] != '\0' ? " (" : "", why,
                   why[0] != '\0' ? ")" : "");
}

void progress_job(struct progress *progress, const struct bourse_job_row *row, int64_t percent)
{
    char line[JOB_LINE_SIZE];
    job_line(row, percent, line);
    progress_text(progress, row->state != BOURSE_OPEN, "%s", line);
}

void progress_end(struct progress *progress)
{
    if (progress->has_line && progress->terminal) {
        (void)fputc('\n', stderr);
    }
    progress->has_line = false;
}

int ask_yes_no(const char *question)
{
    if (isatty(STDIN_FILENO) != 1 || isatty(STDERR_FILENO) != 1) {
        return -1;
    }
    (void)fprintf(stderr, "%s [y/N] ", question);
    (void)fflush(stderr);
    char answer[16] = "";
    if (fgets(answer, sizeof answer, stdin) == NULL) {
        return 0;
    }
    return answer[0] == 'y' || answer[0] == 'Y';
}

/* ---------------------------------------------------------------- a screen */

/* Returns how many bytes of a line fit in the columns. */
static size_t cut(const char *line, size_t length, size_t columns)
{
    size_t used = 0;
    size_t column = 0;
    for (; used < length; used++) {
        column += ((unsigned char)line[used] & 0xc0) != 0x80;
        if (column > columns) {
            break;
        }
    }
    return used;
}

void screen_draw(struct screen *screen, const char *text)
{
    if (screen->lines > 0) {
        char back[32];
        (void)snprintf(back, sizeof back, "\033[%zuA\033[J", screen->lines);
        terminal_control(stdout, back);
    }
    unsigned columns = terminal_width(STDOUT_FILENO);
    size_t most = terminal_height(STDOUT_FILENO) - 1;
    screen->lines = 0;
    for (const char *at = text; *at != '\0' && screen->lines < most; screen->lines++) {
        size_t line = strcspn(at, "\n");
        (void)printf("%.*s\n", (int)cut(at, line, columns), at);
        at += line + (at[line] == '\n');
    }
    (void)fflush(stdout);
}

int listing_show(struct invocation *invocation, struct listing *listing, const char *name)
{
    if (invocation->json) {
        json_t *value = json_object();
        (void)json_object_set_new(value, name, listing->list);
        return print_json(value, BOURSE_OK);
    }
    if (!invocation->quiet) {
        grid_print(&listing->table, stdout, invocation->color);
    }
    return BOURSE_OK;
}

const char *standing_text(const struct bourse_standing *standing)
{
    static char text[3 * CELL_SIZE];
    char closed[CELL_SIZE] = "";
    char wait[UNITS_TEXT_SIZE];
    char overruled[CELL_SIZE] = "";
    if (standing->withdrawn_ms > 0) {
        units_duration_short(standing->withdrawn_ms * NS_PER_MS, wait);
        (void)snprintf(closed, sizeof closed, ", asks closed for %s", wait);
    }
    if (standing->overruled > 0) {
        (void)snprintf(overruled, sizeof overruled, "%s%u of its rejects overruled",
                       standing->refuted > 0 ? "; " : "", standing->overruled);
    }
    text[0] = '\0';
    if (standing->refuted > 0 || standing->overruled > 0) {
        (void)snprintf(text, sizeof text, "%.0u%s%s%s", standing->refuted,
                       standing->refuted > 0 ? " refuted" : "", closed, overruled);
    }
    return text;
}

json_t *standing_as_json(const struct bourse_standing *standing)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:s}", "refuted", (json_int_t)standing->refuted,
                     "refuted_ever", (json_int_t)standing->refuted_ever, "overruled",
                     (json_int_t)standing->overruled, "withdrawn_ms",
                     (json_int_t)standing->withdrawn_ms, "owner", standing->owner);
}

json_t *bands_as_json(struct bourse_bands bands)
{
    return json_pack("{s:I, s:I, s:I}", "least_micro", (json_int_t)bands.least_micro, "most_micro",
                     (json_int_t)bands.most_micro, "notional_micro",
                     (json_int_t)bands.notional_micro);
}

void print_bands(FILE *to, struct bourse_bands bands)
{
    (void)fprintf(to, "price band %s to %s", money_text(bands.least_micro),
                  money_text(bands.most_micro));
    if (bands.notional_micro > 0) {
        (void)fprintf(to, ", one order comes to %s at most", money_text(bands.notional_micro));
    }
    (void)fputc('\n', to);
}
