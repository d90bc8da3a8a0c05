#include "exchange/work/runtime_stats.h"

#include "exchange/work/graph.h"
#include "planner/schedule/online.h"

struct online_pace runtime_stats_pace(const struct lease *lease)
{
    return (struct online_pace){.said_ns = lease->said_ns, .took_ns = lease->took_ns};
}

/* The sums are exact, so that taking out undoes putting in. */
static void count(const struct lease *lease, int sign)
{
    struct part *part = lease->part;
    const int128 weight = (int128)sign * lease->accepted;
    part->samples = (uint64_t)((int128)part->samples + weight);
    part->mean_sum += weight * lease->mean_ns;
    part->said_sum += weight * lease->said_ns;
    part->took_sum += weight * lease->took_ns;
}

void runtime_stats_put(const struct lease *lease)
{
    count(lease, 1);
}

void runtime_stats_take(const struct lease *lease)
{
    count(lease, -1);
}

void runtime_stats_accept(struct lease *lease)
{
    runtime_stats_take(lease);
    lease->accepted++;
    runtime_stats_put(lease);
}

struct runtime_stats runtime_stats_of_part(const struct part *part)
{
    struct runtime_stats usual = {.expect_ns = part->expect_ns, .samples = part->samples};
    if (usual.samples > 0) { /* each sum is within a lease's own */
        usual.mean_ns = (int64_t)(part->mean_sum / usual.samples);
        usual.pace = (struct online_pace){.said_ns = (int64_t)(part->said_sum / usual.samples),
                                          .took_ns = (int64_t)(part->took_sum / usual.samples)};
    }
    return usual;
}

static bool has_pace(struct online_pace pace)
{
    return pace.said_ns > 0 && pace.took_ns > 0;
}

/* No subtask takes longer than any lease. */
static int64_t at_pace_ns(int64_t said_ns, struct online_pace pace)
{
    const int64_t takes_ns = online_at_pace_ns(said_ns, pace);
    return takes_ns < LEASE_AGE_MOST_NS ? takes_ns : LEASE_AGE_MOST_NS;
}

int64_t runtime_stats_subtask_ns(const struct lease *lease, uint32_t index,
                                 const struct runtime_stats *usual)
{
    const int64_t said_ns = graph_said_ns(lease->job, index);
    if (said_ns == 0) {
        return runtime_stats_lease_ns(lease, usual);
    }
    const struct online_pace here = runtime_stats_pace(lease);
    const int64_t takes_ns = at_pace_ns(said_ns, has_pace(here) ? here : usual->pace);
    return takes_ns > 0 ? takes_ns : said_ns;
}

int64_t runtime_stats_lease_ns(const struct lease *lease, const struct runtime_stats *usual)
{
    const struct online_pace here = runtime_stats_pace(lease);
    if (has_pace(usual->pace)) {
        return has_pace(here) ? at_pace_ns(usual->pace.said_ns, here) : usual->pace.took_ns;
    }
    if (lease->mean_ns > 0) {
        return lease->mean_ns;
    }
    return usual->samples == 0 ? usual->expect_ns : usual->mean_ns;
}
