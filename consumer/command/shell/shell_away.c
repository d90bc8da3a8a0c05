#include "consumer/command/shell/shell_away.h"

#include "base/checked.h"

/* A turn takes a second at most where nothing stops the command; a busy machine adds some. */
#define STOP_NS (5 * NS_PER_S)
/* Time for a reconnect to a broker that is there. */
#define PATIENCE_NS (10 * NS_PER_S)

void shell_away_turn(struct shell_away *away, int64_t now_ns, int64_t wall_ms)
{
    if (away->turn_ns != 0 && now_ns - away->turn_ns >= STOP_NS) {
        away->stopped_ns = now_ns - away->turn_ns;
        away->patient_ns = now_ns + PATIENCE_NS;
        away->back_ms = wall_ms;
    }
    away->turn_ns = now_ns;
}

void shell_away_lost(struct shell_away *away)
{
    away->is_lost = true;
    away->is_told = false;
}

bool shell_away_tells(struct shell_away *away, int64_t now_ns)
{
    if (!away->is_lost || away->is_told || now_ns < away->patient_ns) {
        return false;
    }
    away->is_told = true;
    return true;
}

bool shell_away_found(struct shell_away *away)
{
    const bool was_told = away->is_lost && away->is_told;
    away->is_lost = false;
    return was_told;
}

bool shell_away_missed(const struct shell_away *away, int64_t ended_ms)
{
    return ended_ms != 0 && away->stopped_ns != 0 && ended_ms <= away->back_ms;
}
