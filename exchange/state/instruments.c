#include "exchange/state/instruments.h"

#include <string.h>

void instrument_of_cell(const struct exchange *exchange, uint32_t cell,
                        char ret_text[ATTRIBUTE_TEXT_SIZE])
{
    size_t count;
    const struct attribute *attributes = book_cell_attributes(exchange->book, cell, &count);
    memset(ret_text, 0, ATTRIBUTE_TEXT_SIZE);
    for (size_t i = 0; i < count; i++) {
        if (attributes[i].is_text && strcmp(attributes[i].name, "instrument") == 0) {
            memcpy(ret_text, attributes[i].text, ATTRIBUTE_TEXT_SIZE);
            return;
        }
    }
}
