/* provider/command/gpu_lines.h prints what the GPUs of an agent do now, and which devices fail. */
#ifndef BOURSE_PROVIDER_COMMAND_GPU_LINES_H
#define BOURSE_PROVIDER_COMMAND_GPU_LINES_H

#include <jansson.h>

/* Prints a line for each GPU of the agent's answer. A figure that is not known is "-". Further
 * lines say why the device is withheld, and why figures are not known. */
void gpu_lines_print(const json_t *gpus);
/* Prints two lines for each device that is withheld because it fails: by what, and what its owner
 * can do. The first column has this width. */
void gpu_lines_print_failing(const json_t *failing, int width);

#endif
