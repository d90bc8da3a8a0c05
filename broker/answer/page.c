#include "broker/answer/page.h"

#include "protocol/limits.h"

enum { FIELD_BYTES = 8 }; /* tag and length of a row in its reply, at most */

bool page_of(struct page *page, const struct exchange *exchange, size_t limit)
{
    *page = (struct page){.exchange = exchange, .limit = limit};
    page->rows = arena_take(&page->arena, page->limit, sizeof *page->rows);
    page->is_out_of_memory = page->rows == NULL;
    return !page->is_out_of_memory;
}

bool page_open(struct page *page, const struct exchange *exchange, bool has_limit, uint32_t limit)
{
    return page_of(page, exchange, has_limit && limit < LIMIT_ROWS ? limit : LIMIT_ROWS);
}

bool page_add(struct page *page, ProtobufCMessage *row)
{
    size_t bytes = FIELD_BYTES + protobuf_c_message_get_packed_size(row);
    if (page->count == page->limit || page->bytes + bytes > PAGE_BYTES) {
        return false;
    }
    page->bytes += bytes;
    page->rows[page->count++] = row;
    return true;
}

void *page_take(struct page *page, size_t count, size_t size)
{
    void *taken = arena_take(&page->arena, count, size);
    page->is_out_of_memory = page->is_out_of_memory || taken == NULL;
    return taken;
}
