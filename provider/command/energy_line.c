#include "provider/command/energy_line.h"

#include <stdio.h>

static double joules(const json_t *energy, const char *name)
{
    return (double)json_integer_value(json_object_get(energy, name)) / 1e6;
}

void energy_line_print(const json_t *energy)
{
    const double measured_j = joules(energy, "measured_uj");
    const double estimated_j = joules(energy, "estimated_uj");
    if (measured_j > 0 || estimated_j > 0) {
        printf("%-12s since it started %.4g J measured, %.4g J estimated\n", "energy", measured_j,
               estimated_j);
    }
}
