#include "provider/command/held_lines.h"

#include "formats/units.h"

#include <stdbool.h>
#include <stdio.h>

static long long number(const json_t *device, const char *name)
{
    return json_integer_value(json_object_get(device, name));
}

static const char *bytes(const json_t *device, const char *name, char ret_text[UNITS_TEXT_SIZE])
{
    units_bytes_short(number(device, name), ret_text);
    return ret_text;
}

void held_lines_print(const json_t *held)
{
    bool is_first = true;
    size_t i;
    const json_t *device;
    json_array_foreach(held, i, device)
    {
        char now[UNITS_TEXT_SIZE];
        char most[UNITS_TEXT_SIZE];
        char saved[UNITS_TEXT_SIZE];
        const char *name = json_string_value(json_object_get(device, "device"));
        const long long hits = number(device, "hits");
        const long long inputs = hits + number(device, "copies");
        if (inputs == 0) {
            continue;
        }
        printf("%-12s %s: %s of at most %s; %lld of %lld inputs were there already, %s not "
               "copied\n",
               is_first ? "held" : "", name == NULL ? "" : name, bytes(device, "held_bytes", now),
               bytes(device, "cap_bytes", most), hits, inputs, bytes(device, "saved_bytes", saved));
        is_first = false;
    }
}
