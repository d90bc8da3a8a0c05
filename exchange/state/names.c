#include "exchange/state/names.h"

#include <string.h>

void name_copy(char ret_name[EXCHANGE_NAME_SIZE], const char *name)
{
    size_t length = strnlen(name, EXCHANGE_NAME_SIZE - 1);
    memset(ret_name, 0, EXCHANGE_NAME_SIZE);
    memcpy(ret_name, name, length);
}
