#include "consumer/market/challenged.h"

#include <string.h>

int64_t challenged_claim(const struct bourse_device *device)
{
    int64_t claim = 0;
    for (size_t i = 0; !device->simulated && i < device->attribute_count; i++) {
        const struct bourse_attribute *attribute = &device->attributes[i];
        const bool is_speed = strcmp(attribute->name, "gemm_fp32") == 0 ||
                              strcmp(attribute->name, "gemm_fp32_held") == 0;
        if (attribute->text == NULL && is_speed && attribute->number > claim) {
            claim = attribute->number;
        }
    }
    return claim;
}

void challenged_add(struct bourse_challenged *counts, const struct bourse_device *device)
{
    const struct bourse_challenge *challenge = &device->challenge;
    if (challenged_claim(device) == 0) {
        return;
    }
    if (challenge->at_ms == 0) {
        counts->claimed++;
    } else if (challenge->limit_mflops > 0) {
        counts->lowered++;
    } else if (strcmp(challenge->outcome, "ok") == 0 || strcmp(challenge->outcome, "slow") == 0) {
        counts->ok++;
    } else {
        counts->failed++;
    }
}
