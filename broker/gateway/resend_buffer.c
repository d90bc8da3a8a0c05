#include "broker/gateway/kept.h"

#include <assert.h>
#include <stdlib.h>

size_t kept_weight(const struct kept_message *message)
{
    return message->length + sizeof *message;
}

static uint64_t oldest(const struct kept *kept)
{
    return kept->last - kept->count + 1;
}

static struct kept_message *at(const struct kept *kept, uint32_t position)
{
    return &kept->items[(kept->start + position) % kept->capacity];
}

static void drop_oldest(struct kept *kept, size_t *total_bytes)
{
    struct kept_message *message = at(kept, 0);
    kept->bytes -= kept_weight(message);
    *total_bytes -= kept_weight(message);
    free(message->body);
    *message = (struct kept_message){.body = NULL};
    kept->start = (kept->start + 1) % kept->capacity;
    kept->count--;
}

static bool grow(struct kept *kept)
{
    uint32_t capacity = kept->capacity == 0 ? 16 : 2 * kept->capacity;
    struct kept_message *items = calloc(capacity, sizeof *items);
    if (items == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < kept->count; i++) {
        items[i] = *at(kept, i);
    }
    free(kept->items);
    kept->items = items;
    kept->capacity = capacity;
    kept->start = 0;
    return true;
}

static bool fits(const struct kept *kept, size_t total_bytes, size_t bytes)
{
    return kept->count < KEPT_MESSAGES && kept->bytes + bytes <= KEPT_BYTES &&
           total_bytes + bytes <= KEPT_TOTAL_BYTES;
}

void kept_add(struct kept *kept, size_t *total_bytes, const struct kept_message *message)
{
    while (kept->count > 0 && !fits(kept, *total_bytes, kept_weight(message))) {
        drop_oldest(kept, total_bytes);
    }
    bool has_room = fits(kept, *total_bytes, kept_weight(message)) &&
                    (kept->count < kept->capacity || grow(kept));
    if (!has_room) { /* older messages are useless without it */
        while (kept->count > 0) {
            drop_oldest(kept, total_bytes);
        }
        kept->last++;
        free(message->body);
        return;
    }
    kept->last++;
    kept->count++;
    *at(kept, kept->count - 1) = *message;
    kept->bytes += kept_weight(message);
    *total_bytes += kept_weight(message);
}

void kept_trim(struct kept *kept, size_t *total_bytes, size_t bytes)
{
    size_t most = kept->bytes > bytes ? kept->bytes - bytes : 0;
    while (kept->bytes > most) {
        drop_oldest(kept, total_bytes);
    }
}

void kept_seen(struct kept *kept, size_t *total_bytes, uint64_t sequence)
{
    while (kept->count > 0 && oldest(kept) <= sequence) {
        drop_oldest(kept, total_bytes);
    }
}

const struct kept_message *kept_find(const struct kept *kept, uint64_t sequence)
{
    if (kept->count == 0 || sequence < oldest(kept) || sequence > kept->last) {
        return NULL;
    }
    return at(kept, (uint32_t)(sequence - oldest(kept)));
}

bool kept_reaches(const struct kept *kept, uint64_t sequence)
{
    return sequence <= kept->last && sequence + 1 >= oldest(kept);
}

void kept_fini(struct kept *kept, size_t *total_bytes)
{
    while (kept->count > 0) {
        drop_oldest(kept, total_bytes);
    }
    free(kept->items);
    *kept = (struct kept){.items = NULL};
}
