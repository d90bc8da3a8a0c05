#include "consumer/command/listing.h"
#include "consumer/command/grid.h"

#include "consumer/command/cell.h"
#include "consumer/command/json.h"

int listing_show(struct invocation *invocation, struct listing *listing, const char *name)
{
    if (invocation->json) {
        json_t *value = json_object();
        (void)json_object_set_new(value, name, listing->list);
        return json_print(value, BOURSE_OK);
    }
    if (!invocation->quiet) {
        grid_print(&listing->table, stdout, invocation->color);
    }
    return BOURSE_OK;
}

void listing_print_bands(FILE *to, struct bourse_bands bands)
{
    (void)fprintf(to, "price band %s to %s", cell_money(bands.least_micro),
                  cell_money(bands.most_micro));
    if (bands.notional_micro > 0) {
        (void)fprintf(to, ", one order comes to %s at most", cell_money(bands.notional_micro));
    }
    (void)fputc('\n', to);
}
