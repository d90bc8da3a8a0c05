/* provider/command/gpu_lines.h prints what the GPUs of an agent do now, for `status`. */
#ifndef BOURSE_PROVIDER_COMMAND_GPU_LINES_H
#define BOURSE_PROVIDER_COMMAND_GPU_LINES_H

#include <jansson.h>

/* Prints a line for each GPU of the agent's answer. A figure that is not known is "-". Further
 * lines say why the device is withheld, and why figures are not known. */
void gpu_lines_print(const json_t *gpus);

#endif
