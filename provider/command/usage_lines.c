#include "provider/command/usage_lines.h"

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

/* Prints a line for each device for kernels that had an input. */
static void print_held(const json_t *held)
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
               "copied",
               is_first ? "held" : "", name == NULL ? "" : name, bytes(device, "held_bytes", now),
               bytes(device, "cap_bytes", most), hits, inputs, bytes(device, "saved_bytes", saved));
        if (number(device, "aheads") > 0) {
            printf("; %s copied ahead", bytes(device, "ahead_bytes", saved));
        }
        (void)putchar('\n');
        is_first = false;
    }
}

/* Prints a line for each device that is far below what the catalogue says of its model. */
static void print_below(const json_t *below)
{
    size_t i;
    const json_t *device;
    json_array_foreach(below, i, device)
    {
        const char *name = json_string_value(json_object_get(device, "device"));
        const char *text = json_string_value(json_object_get(device, "text"));
        printf("%-12s %s: %s\n", i == 0 ? "slow" : "", name == NULL ? "" : name,
               text == NULL ? "" : text);
    }
}

/* Prints nothing for null. */
static void print_network(const json_t *network)
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

static double joules(const json_t *energy, const char *name)
{
    return (double)json_integer_value(json_object_get(energy, name)) / 1e6;
}

/* Prints a line when attempts since the start have an energy. */
static void print_energy(const json_t *energy)
{
    const double measured_j = joules(energy, "measured_uj");
    const double estimated_j = joules(energy, "estimated_uj");
    if (measured_j > 0 || estimated_j > 0) {
        printf("%-12s since it started %.4g J measured, %.4g J estimated\n", "energy", measured_j,
               estimated_j);
    }
}

void usage_lines_print(const json_t *answer)
{
    print_held(json_object_get(answer, "held"));
    print_below(json_object_get(answer, "below_catalogue"));
    print_network(json_object_get(answer, "network"));
    print_energy(json_object_get(answer, "energy"));
}
