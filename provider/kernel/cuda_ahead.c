#include "provider/kernel/cuda_ahead.h"

#include "provider/kernel/cuda_api.h"
#include "provider/kernel/engine.h"

static const struct cuda_api *api_of(const struct engine *engine)
{
    return engine->device->library;
}

static bool has_calls(const struct cuda_api *api)
{
    return api->cuStreamCreate != NULL && api->cuStreamDestroy_v2 != NULL &&
           api->cuStreamSynchronize != NULL && api->cuMemcpyHtoDAsync_v2 != NULL;
}

static void release(const struct engine *engine)
{
    if (api_of(engine)->cuDevicePrimaryCtxRelease_v2 != NULL) {
        (void)api_of(engine)->cuDevicePrimaryCtxRelease_v2(engine->device->number);
    }
}

/* Each thread sets the process's one context of the device for itself. Launches are in the default
 * stream, and a stream without the flag would wait for them. */
void *cuda_ahead_open(const struct engine *engine)
{
    const struct cuda_api *api = api_of(engine);
    cuda_context context = NULL;
    cuda_stream stream = NULL;
    if (!has_calls(api) ||
        api->cuDevicePrimaryCtxRetain(&context, engine->device->number) != CUDA_OK) {
        return NULL;
    }
    if (api->cuCtxSetCurrent(context) != CUDA_OK ||
        api->cuStreamCreate(&stream, CUDA_STREAM_NON_BLOCKING) != CUDA_OK) {
        release(engine);
        return NULL;
    }
    return stream;
}

void cuda_ahead_close(const struct engine *engine, void *copier)
{
    (void)api_of(engine)->cuStreamDestroy_v2(copier);
    release(engine);
}

bool cuda_ahead_reserve(const struct engine *engine, uint64_t size,
                        struct kernel_buffer *ret_buffer)
{
    *ret_buffer = (struct kernel_buffer){.address = 0};
    return api_of(engine)->cuMemAlloc_v2(&ret_buffer->address, (size_t)size) == CUDA_OK;
}

bool cuda_ahead_write(const struct engine *engine, void *copier, struct kernel_buffer buffer,
                      uint64_t at, const void *bytes, size_t size)
{
    const struct cuda_api *api = api_of(engine);
    return api->cuMemcpyHtoDAsync_v2(buffer.address + at, bytes, size, copier) == CUDA_OK &&
           api->cuStreamSynchronize(copier) == CUDA_OK;
}
