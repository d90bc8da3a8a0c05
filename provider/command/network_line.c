#include "provider/command/network_line.h"

#include "formats/units.h"

#include <stdio.h>

void network_line_print(const json_t *network)
{
    const json_t *month = json_object_get(network, "month");
    const json_t *rate = json_object_get(network, "rate");
    char text[UNITS_TEXT_SIZE];
    if (!json_is_object(network)) {
        return;
    }
    units_bytes_short(json_integer_value(json_object_get(network, "used_bytes")), text);
    printf("%-12s %s this month", "network", text);
    if (json_is_integer(month)) {
        units_bytes_short(json_integer_value(month), text);
        printf(" of %s", text);
    }
    if (json_is_integer(rate)) {
        units_bytes_short(json_integer_value(rate), text);
        printf(", at most %s a second", text);
    }
    printf("\n");
}
