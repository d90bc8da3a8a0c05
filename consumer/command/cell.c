#include "consumer/command/cell.h"

#include "consumer/command/grid.h"

#include "base/checked.h"
#include "base/text.h"
#include "formats/units.h"
#include "formats/value.h"
#include "planner/cost/profile.h"
#include "runtime/clock.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

enum { RING = 24 };

static char *ring_next(void)
{
    static char ring[RING][CELL_SIZE];
    static size_t at;
    at = (at + 1) % RING;
    return ring[at];
}

const char *cell_subtask(const struct bourse_tasks *tasks, uint32_t index)
{
    char *text = ring_next();
    const char *name = tasks == NULL ? NULL : bourse_task_name(tasks, index);
    if (name != NULL) {
        (void)snprintf(text, CELL_SIZE, "task %s", cell_plain(name));
    } else {
        (void)snprintf(text, CELL_SIZE, "subtask %s", cell_number(tasks, index));
    }
    return text;
}

const char *cell_word(const struct bourse_tasks *tasks, uint32_t index)
{
    const char *name = tasks == NULL ? NULL : bourse_task_name(tasks, index);
    return name != NULL ? cell_plain(name) : cell_number(tasks, index);
}

const char *cell_number(const struct bourse_tasks *tasks, uint32_t index)
{
    return cell_count(tasks == NULL ? index : bourse_task_number(tasks, index));
}

const char *cell_money(int64_t micro)
{
    char *text = ring_next();
    units_money_text(micro, text);
    return text;
}

const char *cell_limit(int64_t micro, const char *rate)
{
    if (rate == NULL || rate_named(rate) == RATE_NONE) {
        return cell_money(micro);
    }
    char *text = ring_next();
    static_assert((int)VALUE_TEXT_SIZE <= (int)UNITS_TEXT_SIZE, "it fits where amounts do");
    value_text(&(struct value){micro, rate_named(rate)}, text);
    return text;
}

const char *cell_ask_price(int64_t micro)
{
    return micro == 0 ? "donated" : cell_money(micro);
}

const char *cell_duration_ns(int64_t ns)
{
    char *text = ring_next();
    units_duration_near(ns, text);
    return text;
}

const char *cell_time_remaining(int64_t ms)
{
    char *text = ring_next();
    int64_t ns = 0;
    units_duration_down(checked_mul(ms, NS_PER_MS, &ns) ? ns : INT64_MAX, text);
    return text;
}

const char *cell_duration(int64_t ms)
{
    int64_t ns = 0;
    return cell_duration_ns(checked_mul(ms, NS_PER_MS, &ns) ? ns : INT64_MAX);
}

const char *cell_time(int64_t ms)
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

const char *cell_bytes(uint64_t bytes)
{
    char *text = ring_next();
    units_bytes_short(bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes, text);
    return text;
}

const char *cell_joules(const struct figure *energy_j)
{
    char *text = ring_next();
    const bool is_large = energy_j->value >= 3.6e6;
    (void)snprintf(text, CELL_SIZE, "%.4g %s", is_large ? energy_j->value / 3.6e6 : energy_j->value,
                   is_large ? "kWh" : "J");
    return energy_j->source == FIGURE_UNKNOWN ? "-" : text;
}

const char *cell_energy(int64_t energy_uj, bool is_estimate)
{
    char *text = ring_next();
    const struct figure energy = {.value = (double)energy_uj / 1e6, .source = FIGURE_DECLARED};
    (void)snprintf(text, CELL_SIZE, "%s%.80s", is_estimate ? "~" : "", cell_joules(&energy));
    return energy_uj < 0 ? "-" : text;
}

const char *cell_signed_energy(int64_t energy_uj, const char *source)
{
    char *text = ring_next();
    (void)snprintf(text, CELL_SIZE, ", %.40s%s%.60s", cell_energy(energy_uj, false),
                   source != NULL ? " " : "", source != NULL ? source : "");
    return energy_uj < 0 ? "" : text;
}

const char *cell_isolation(const struct bourse_isolation *counts)
{
    static char text[3 * CELL_SIZE];
    size_t used = 0;
    text[0] = '\0';
    for (size_t level = BOURSE_ISOLATION_LEVELS; level-- > 0;) {
        const uint32_t devices = counts->devices[level];
        if (devices > 0) {
            used += (size_t)snprintf(
                text + used, sizeof text - used, "%slevel %zu on %u%s%s%s", used > 0 ? ", " : "",
                level, devices, used > 0 ? "" : " device", used > 0 ? "" : text_plural(devices),
                level == 0 ? ", where files of /dev are in the jail" : "");
        }
    }
    if (counts->unstated > 0) {
        (void)snprintf(text + used, sizeof text - used, "%snot stated by %u%s%s",
                       used > 0 ? ", " : "", counts->unstated, used > 0 ? "" : " device",
                       used > 0 ? "" : text_plural(counts->unstated));
    }
    return text;
}

const char *cell_count(uint64_t count)
{
    char *text = ring_next();
    (void)snprintf(text, CELL_SIZE, "%" PRIu64, count);
    return text;
}

const char *cell_short_id(const char *id)
{
    char *text = ring_next();
    (void)snprintf(text, CELL_SIZE, "%.8s", id);
    return text;
}

const char *cell_plain(const char *text)
{
    char *copy = ring_next();
    text_printable(text, strlen(text), copy, CELL_SIZE);
    return copy;
}

const char *cell_sentence(const char *text)
{
    static char copy[BOURSE_TEXT_SIZE];
    text_printable(text, strlen(text), copy, sizeof copy);
    return copy;
}

const char *cell_standing(const struct bourse_standing *standing)
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
