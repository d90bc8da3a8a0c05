/* consumer/command/shell/shell_away.h decides what `bourse shell` tells its user after a stop. The
 * command was suspended, stopped by a signal, or kept from writing to its terminal.
 *
 * A command that stood still has not heard the broker either. So the loss of the broker, right
 * after a stop, says nothing about the broker: only a loss that lasts is told. The shell may have
 * ended meanwhile, and its user needs that moment.
 * Pure. */
#ifndef BOURSE_CONSUMER_COMMAND_SHELL_SHELL_AWAY_H
#define BOURSE_CONSUMER_COMMAND_SHELL_SHELL_AWAY_H

#include <stdbool.h>
#include <stdint.h>

/* Zero is the state before the first turn. */
struct shell_away {
    int64_t turn_ns;       /* the last turn */
    int64_t patient_ns;    /* until then no loss is told */
    int64_t stopped_ns;    /* length of the last stop; 0: none yet */
    int64_t back_ms;       /* moment of the wall clock at which the last stop was over */
    bool is_lost, is_told; /* the broker is not heard; the user knows */
};

/* Notes a turn of the command's loop, which is due each second, before its event is read. */
void shell_away_turn(struct shell_away *away, int64_t now_ns, int64_t wall_ms);

void shell_away_lost(struct shell_away *away);
/* Returns true when the user must be told of the loss, once a loss. */
bool shell_away_tells(struct shell_away *away, int64_t now_ns);
/* Notes that the broker is heard again. Returns true when the user knows of the loss. */
bool shell_away_found(struct shell_away *away);

/* Returns true when a job that ended at this moment of the wall clock ended before the command went
 * on from its last stop. */
bool shell_away_missed(const struct shell_away *away, int64_t ended_ms);

#endif
