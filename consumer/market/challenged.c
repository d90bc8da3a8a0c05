#include "consumer/market/challenged.h"

#include <string.h>

int64_t challenged_claim(const struct bourse_device *device)
{
    for (size_t i = 0; !device->simulated && i < device->attribute_count; i++) {
        const struct bourse_attribute *attribute = &device->attributes[i];
        if (attribute->text == NULL && strcmp(attribute->name, "gemm_fp32") == 0) {
            return attribute->number > 0 ? attribute->number : 0;
        }
    }
    return 0;
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
