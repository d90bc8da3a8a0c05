/* runtime/blob/blob_feed.h asks the broker that leads which blobs changed, for one that follows.
 *
 * The question goes through a blob client whose identity is the market's own. The answer comes
 * after up to `wait_ms`, or as soon as there is something to say. docs/protocol.md section 8. */
#ifndef BOURSE_RUNTIME_BLOB_BLOB_FEED_H
#define BOURSE_RUNTIME_BLOB_BLOB_FEED_H

#include "protocol/codec.h"
#include "runtime/blob/blob_client.h"

#include <stdbool.h>

/* Returns true with an answer that the caller frees with codec_free(). Returns false with a problem
 * when no answer came, or a refusal, or when the client was interrupted. */
bool blob_feed_ask(struct blob_client *client, const Bourse__V1__BlobFeed *feed,
                   Bourse__V1__BlobChanges **ret_changes, struct problem *ret_problem);

#endif
