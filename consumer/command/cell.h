/* consumer/command/cell.h writes figures as text for people, mostly for the cells of tables. Text
 * of other accounts passes text_printable on its way. */
#ifndef BOURSE_CONSUMER_COMMAND_CELL_H
#define BOURSE_CONSUMER_COMMAND_CELL_H

#include "consumer/command/command.h"
#include "consumer/command/grid.h"

/* These texts stand in a small ring of buffers, which lasts for the cells of one row. */
const char *cell_money(int64_t micro); /* "0.10" */
/* Returns "0.10", or "0.02 per bf16 TFLOP-hour". */
const char *cell_limit(int64_t micro, const char *rate);
const char *cell_ask_price(int64_t micro); /* price of an ask: "0.10", or "donated" */
/* Returns text such as "3 refuted, asks closed for 2min; 1 of its rejects overruled", or "". */
const char *cell_standing(const struct bourse_standing *standing);
const char *cell_duration(int64_t ms); /* "1.5s", "1h 31m", rounded to the nearest */
/* Writes like cell_duration, rounded down. */
const char *cell_time_remaining(int64_t ms);
const char *cell_duration_ns(int64_t ns);
const char *cell_time(int64_t ms); /* "2026-11-20 14:35:00", local time; "-" for 0 */
const char *cell_bytes(uint64_t bytes);
struct figure;
/* Returns text such as "12.5 J" or "1.2 kWh"; "-" for an unknown figure. */
const char *cell_joules(const struct figure *energy_j);
/* Returns the same of microjoules, "~12.5 J" when some are an estimate; "-" below 0: unknown. */
const char *cell_energy(int64_t energy_uj, bool is_estimate);
/* Returns ", 12.5 J measured", and "" for an energy below 0. `source` is NULL: nobody says. */
const char *cell_signed_energy(int64_t energy_uj, const char *source);
/* Returns "level 1 on 3 devices, level 0 on 1, where files of /dev are in the jail"; "" without
 * devices. The text lives until the next call. */
const char *cell_isolation(const struct bourse_isolation *counts);
const char *cell_count(uint64_t count);
const char *cell_short_id(const char *id); /* the first 8 digits */
/* Returns the printable form of a name or a short text. A longer text is cut to CELL_SIZE. */
const char *cell_plain(const char *text);
/* Returns the printable form of a sentence of up to BOURSE_TEXT_SIZE, until the next such call. */
const char *cell_sentence(const char *text);
/* Returns "task split", or "subtask 3"; `tasks` may be NULL. */
const char *cell_subtask(const struct bourse_tasks *tasks, uint32_t index);
/* Returns the word by which commands take a subtask: "split", or "3"; `tasks` may be NULL. */
const char *cell_word(const struct bourse_tasks *tasks, uint32_t index);
/* Returns the number of a subtask as the user wrote it in `array:`, else its index. */
const char *cell_number(const struct bourse_tasks *tasks, uint32_t index);

enum { CONDITIONS_TEXT = 256 }; /* conditions of an ask in a row; --json has all of them */

#endif
