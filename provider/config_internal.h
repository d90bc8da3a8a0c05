/* provider/config_internal.h declares what config.c, config_programs.c and config_idle.c share. No
 * other file includes it. */
#ifndef BOURSE_PROVIDER_CONFIG_INTERNAL_H
#define BOURSE_PROVIDER_CONFIG_INTERNAL_H

#include "formats/yaml.h"
#include "provider/config.h"

/* Reads a text that the market takes as a word about a device. */
const char *config_word(struct yaml_value value, size_t most_bytes, const char *fallback);

/* Refuses a key that this kind of map does not have. */
void config_known_keys(struct yaml_value map, enum config_map which);

/* config_idle.c reads `idle`, `gpu`, `network` and `cpu`. */
void config_read_idle(struct config *config, struct yaml_value map);
void config_read_gpu(struct config *config, struct yaml_value map);
void config_read_network(struct config *config, struct yaml_value map);
/* Reads `cpu`, a share of each core as in 50%. Without the key, the share is 100. */
uint32_t config_read_cpu(struct yaml_value value);

/* config_programs.c reads which programs and folders of the machine jobs see. */

/* Reads `programs`. Without the key, the common tools that the machine has are offered. */
void config_read_programs(struct config *config, struct yaml_value value);
/* Reads `visible`. */
void config_read_visible(struct config *config, struct yaml_value list);
/* Reads `wasm`. Without the key, an installed Node.js is the engine, else wasmtime's
 * library. */
void config_read_wasm(struct config *config, struct yaml_value value);
/* Reads `onnx`. Without the key, $BOURSE_ONNXRUNTIME or an installed library is taken. */
void config_read_onnx(struct config *config, struct yaml_value value);
/* Reads `onnx` of an entry of `devices`, with the keys that go with it. */
void config_read_provider(struct config *config, struct yaml_value item,
                          struct model_provider *ret_provider);
/* Reads the device files of `nodes`. Returns how many there are. */
size_t config_read_nodes(struct yaml_value list, char ret_nodes[][PLUGIN_NODE_SIZE]);
/* Makes the offered programs visible. `value` is what a refusal names. */
void config_show_programs(struct config *config, struct yaml_value value);

/* Reads the share of a device's memory, as in 8GiB or 50%, for an entry of a device for kernels. */
void config_read_share(struct yaml_value value, bool is_for_kernels,
                       struct config_share *ret_share);

#endif
