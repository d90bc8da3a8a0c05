#include "provider/device/offer.h"

bool offer_is_open(const struct offer *offer)
{
    return (offer->kernel_device != NULL && kernel_device_nodes(offer->kernel_device)[0] != NULL) ||
           (offer->plugin != NULL && offer->plugin->program.node_count > 0) ||
           (offer->model_device != NULL &&
            model_provider_has_nodes(&offer->model_device->provider));
}
