/* provider/kernel/cuda_measure.h has the PTX of the measuring program (interface.h). */
#ifndef BOURSE_PROVIDER_KERNEL_CUDA_MEASURE_H
#define BOURSE_PROVIDER_KERNEL_CUDA_MEASURE_H

extern const char cuda_measure_source[];

#endif
