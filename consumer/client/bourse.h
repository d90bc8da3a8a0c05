/* consumer/client/bourse.h opens the market to programs. The `bourse` command is the first user of
 * this library, libbourse.
 *
 * A `struct bourse` is a connection; a `struct bourse_job` is a job that is ready to submit. Calls
 * block, at most for the connection's timeout unless a call says otherwise. Calls survive
 * reconnects: a request goes out again under the same id until an answer comes. Nothing happens
 * twice. A connection belongs to one thread; only bourse_interrupt may come from another thread or
 * from a signal handler.
 *
 * Ids, keys and hashes are lower-case hex text. Money is in micro-credits, a price is in
 * micro-credits per slot-hour. A name that ends in _ms is in milliseconds; a point in time is log
 * time of the market. Every function that returns bool returns false on failure and then fills
 * *ret_error, which may be NULL. Names and texts of other accounts arrive as sent: pass them
 * through bourse_printable before a terminal shows them.
 *
 * This is the one header for users. This header includes a header for each part of the market.
 *
 * Structs grow only at their end, and numbers are never reused. */
#ifndef BOURSE_CONSUMER_CLIENT_BOURSE_H
#define BOURSE_CONSUMER_CLIENT_BOURSE_H

#include "consumer/client/bourse_connection.h"
#include "consumer/client/bourse_jobs.h"
#include "consumer/client/bourse_market.h"
#include "consumer/client/bourse_money.h"
#include "consumer/client/bourse_operator.h"
#include "consumer/client/bourse_product.h"
#include "consumer/client/bourse_provider.h"
#include "consumer/client/bourse_results.h"
#include "consumer/client/bourse_storage.h"
#include "consumer/client/bourse_submission.h"
#include "consumer/client/bourse_terminal.h"

#endif
