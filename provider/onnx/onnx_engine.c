#include "provider/onnx/onnx_engine.h"

#include <string.h>

bool onnx_engine_fit(const struct onnx_engine_port *port, const struct onnx_array *array,
                     struct problem *ret_problem)
{
    bool good = port->type == array->type;
    if (port->has_shape) {
        good = good && port->rank == array->rank;
        for (uint32_t i = 0; good && i < port->rank; i++) {
            good = port->dims[i] < 0 || port->dims[i] == array->dims[i];
        }
    }
    if (!good) {
        char given[ONNX_ARRAY_TEXT_SIZE];
        char asked[ONNX_ARRAY_TEXT_SIZE];
        onnx_array_text(array->type, array->rank, array->dims, given);
        onnx_array_text(port->type, port->has_shape ? port->rank : 0, port->dims, asked);
        problem_set(ret_problem, "input \"%.100s\" is %s, and the model takes %s%s", port->name,
                    given, asked, port->has_shape ? "" : " of any shape");
    }
    return good;
}

size_t onnx_engine_find(struct onnx_engine_ports ports, const char *name)
{
    size_t found = 0;
    while (found < ports.count && strcmp(ports.items[found].name, name) != 0) {
        found++;
    }
    return found;
}
