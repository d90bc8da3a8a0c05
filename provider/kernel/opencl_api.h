/* provider/kernel/opencl_api.h loads the OpenCL library when the program runs.
 *
 * Nothing of bourse is linked with OpenCL, so that a machine without the library runs bourse all
 * the same. The headers of OpenCL 1.2 give the types of the functions. A missing function is a
 * missing library: every function of the table is in each loader of OpenCL 1.2 and later. */
#ifndef BOURSE_PROVIDER_KERNEL_OPENCL_API_H
#define BOURSE_PROVIDER_KERNEL_OPENCL_API_H

#include "base/problem.h"

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <stdbool.h>

#define OPENCL_LIBRARY "libOpenCL.so.1"

#define OPENCL_CALLS(CALL)                                                                         \
    CALL(clGetPlatformIDs)                                                                         \
    CALL(clGetPlatformInfo)                                                                        \
    CALL(clGetDeviceIDs)                                                                           \
    CALL(clGetDeviceInfo)                                                                          \
    CALL(clCreateContext)                                                                          \
    CALL(clReleaseContext)                                                                         \
    CALL(clCreateCommandQueue)                                                                     \
    CALL(clReleaseCommandQueue)                                                                    \
    CALL(clCreateProgramWithSource)                                                                \
    CALL(clBuildProgram)                                                                           \
    CALL(clGetProgramBuildInfo)                                                                    \
    CALL(clGetProgramInfo)                                                                         \
    CALL(clReleaseProgram)                                                                         \
    CALL(clCreateKernel)                                                                           \
    CALL(clGetKernelInfo)                                                                          \
    CALL(clGetKernelArgInfo)                                                                       \
    CALL(clGetKernelWorkGroupInfo)                                                                 \
    CALL(clReleaseKernel)                                                                          \
    CALL(clSetKernelArg)                                                                           \
    CALL(clCreateBuffer)                                                                           \
    CALL(clReleaseMemObject)                                                                       \
    CALL(clEnqueueCopyBuffer)                                                                      \
    CALL(clEnqueueFillBuffer)                                                                      \
    CALL(clEnqueueWriteBuffer)                                                                     \
    CALL(clEnqueueReadBuffer)                                                                      \
    CALL(clEnqueueNDRangeKernel)                                                                   \
    CALL(clFinish)

/* The members have the names of the functions, which are OpenCL's. */
struct opencl_api {
    void *library;
#define OPENCL_MEMBER(name) __typeof__(&name) name;
    OPENCL_CALLS(OPENCL_MEMBER)
#undef OPENCL_MEMBER
};

/* Loads the library of this name, or path. Returns false with a line that says what is missing;
 * then nothing is loaded. */
bool opencl_api_load(const char *library, struct opencl_api *ret_api, struct problem *ret_problem);

/* Returns a phrase for an error code of OpenCL, or NULL for a code without one. */
const char *opencl_api_error(cl_int code);

#endif
