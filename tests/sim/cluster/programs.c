#include "tests/sim/cluster/programs.h"

#include "exchange/exchange.h"
#include "tests/sim/oracle.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#define AWAY_MOST_NS (15 * SIM_S)
#define RECORD_MOST_NS (5 * SIM_S) /* between two looks of a leader, and two records of a broker */

static struct {
    bool is_before[SEATS]; /* the program in the seat's folder */
    uint32_t known[SEATS]; /* newest rules of the seat's record; 0: it has none yet */
    bool began_before;     /* with the rules before */
    uint64_t refused;
} programs;

static struct rules_known known_by(bool is_before)
{
    const uint32_t behind = is_before ? 1 : 0;
    return (struct rules_known){EXCHANGE_RULES_FIRST - behind, EXCHANGE_RULES - behind};
}

/* The oracle is no seat, and reads whatever the seats write. */
struct rules_known rules_known(void)
{
    for (unsigned i = 0; i < SEATS; i++) {
        if (world.current == &seats[i].process) {
            return known_by(programs.is_before[i]);
        }
    }
    return known_by(false);
}

void programs_start(void)
{
    memset(&programs, 0, sizeof programs);
    programs.began_before = draw(DICE_FAULTS, 4) > 0;
    for (unsigned i = 0; programs.began_before && i < SEATS; i++) {
        programs.is_before[i] = true;
    }
}

void programs_begin(struct seat *seat)
{
    programs.known[seat->number] = known_by(programs.is_before[seat->number]).last;
}

static void change(struct seat *seat, bool is_before)
{
    if (programs.is_before[seat->number] != is_before) {
        trace("%s gets the %s program", seat->process.name, is_before ? "former" : "present");
        programs.is_before[seat->number] = is_before;
        /* The broker that runs shall not see another program than its own. Its record stays, so the
         * rules may change while it is away, and the former program reads that from etcd. */
        seat_crash(seat, is_before ? draw_time(DICE_FAULTS, 0, AWAY_MOST_NS) : 0);
    }
}

/* An operator who changes a program back is rare, and may be late. */
void programs_change(void)
{
    struct seat *seat = &seats[draw(DICE_FAULTS, SEATS)];
    const bool is_before = programs.began_before && draw(DICE_FAULTS, 4) == 0;
    if (seat->process.runs) {
        change(seat, is_before);
    }
}

void programs_become_calm(void)
{
    for (unsigned i = 0; i < SEATS; i++) {
        change(&seats[i], false);
    }
}

static void publish(void *context, uint64_t life, uint64_t rules)
{
    struct seat *seat = context;
    if (seat->process.runs && seat->process.life == life && seat->serves) {
        atomic_store(&seat->broker->store.replica.rules_of_all, (unsigned)rules);
    }
}

void programs_compare(void)
{
    uint32_t rules = EXCHANGE_RULES;
    for (unsigned i = 0; i < SEATS; i++) {
        rules = programs.known[i] < rules ? programs.known[i] : rules;
    }
    for (unsigned i = 0; i < SEATS; i++) {
        if (seats[i].process.runs && seats[i].serves) {
            event_in(draw_time(DICE_FAULTS, 0, RECORD_MOST_NS), NULL, publish, &seats[i],
                     seats[i].process.life, rules);
        }
    }
}

bool programs_refuse(struct seat *seat)
{
    if (!programs.is_before[seat->number] ||
        exchange_rules(oracle_exchange()) <= known_by(true).last) {
        return false;
    }
    programs.refused++;
    programs.is_before[seat->number] = false;
    return true;
}

void programs_check(const struct seat *seat)
{
    const uint32_t rules = exchange_rules(seat->broker->exchange);
    if (rules > known_by(programs.is_before[seat->number]).last) {
        sim_fail("%s goes on under rules %" PRIu32 ", which its program does not know",
                 seat->process.name, rules);
    }
}

void programs_check_end(void)
{
    if (exchange_rules(oracle_exchange()) != EXCHANGE_RULES) {
        sim_fail("all programs know rules %d, and the market is under rules %" PRIu32,
                 (int)EXCHANGE_RULES, exchange_rules(oracle_exchange()));
    }
}

struct programs_counts programs_counts(void)
{
    return (struct programs_counts){.raised = programs.began_before ? 1 : 0,
                                    .refused = programs.refused};
}
