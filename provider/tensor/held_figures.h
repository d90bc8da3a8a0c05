/* provider/tensor/held_figures.h says what became of the inputs that a device was to have in its
 * memory. The figures travel from bourse-kernel to the agent. */
#ifndef BOURSE_PROVIDER_TENSOR_HELD_FIGURES_H
#define BOURSE_PROVIDER_TENSOR_HELD_FIGURES_H

#include <stdint.h>

struct held_figures {
    uint64_t hits;         /* inputs that the device held already */
    uint64_t saved_bytes;  /* of these inputs */
    uint64_t copies;       /* inputs that were copied to the device */
    uint64_t copied_bytes; /* of these inputs */
    uint64_t held_bytes;   /* what the device holds now */
    uint64_t aheads;       /* inputs that were copied while another subtask computed */
    uint64_t ahead_bytes;  /* of these inputs */
};

#endif
