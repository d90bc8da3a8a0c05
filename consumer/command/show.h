/* consumer/command/show.h includes all that a command needs for its answer, namely messages,
 * tables, JSON, texts, progress and the terminal. */
#ifndef BOURSE_CONSUMER_COMMAND_SHOW_H
#define BOURSE_CONSUMER_COMMAND_SHOW_H

#include "consumer/command/cell.h"
#include "consumer/command/complain.h"
#include "consumer/command/grid.h"
#include "consumer/command/json.h"
#include "consumer/command/listing.h"
#include "consumer/command/progress.h"
#include "consumer/command/screen.h"

#endif
