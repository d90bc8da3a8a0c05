/* This part of the stand-in for wasmtime's library reads modules, and says what they import and
 * export. */
#include "tests/programs/fake_wasmtime.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

/* A place in the bytes of a module. */
struct cursor {
    const unsigned char *at, *end;
    bool is_cut;
};

static unsigned read_byte(struct cursor *cursor)
{
    cursor->is_cut = cursor->is_cut || cursor->at >= cursor->end;
    return cursor->is_cut ? 0 : *cursor->at++;
}

static uint64_t read_number(struct cursor *cursor)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        const unsigned byte = read_byte(cursor);
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            break;
        }
    }
    return value;
}

static wasm_byte_vec_t read_text(struct cursor *cursor)
{
    const uint64_t size = read_number(cursor);
    if (cursor->is_cut || size > (uint64_t)(cursor->end - cursor->at)) {
        cursor->is_cut = true;
        return (wasm_byte_vec_t){0, NULL};
    }
    const wasm_byte_vec_t text = {(size_t)size, (char *)(uintptr_t)cursor->at};
    cursor->at += size;
    return text;
}

/* Returns the least of a memory or table, and skips the most. */
static uint64_t read_limits(struct cursor *cursor)
{
    const unsigned flags = read_byte(cursor);
    const uint64_t least = read_number(cursor);
    if ((flags & 1) != 0) {
        (void)read_number(cursor);
    }
    return least;
}

static void read_import(struct cursor *cursor, wasmtime_module_t *module)
{
    static const uint8_t kinds[] = {WASMTIME_FUNCTION, WASMTIME_TABLE, WASMTIME_MEMORY,
                                    WASMTIME_GLOBAL}; /* by the numbers of the format */
    struct wasm_importtype_t import;
    memset(&import, 0, sizeof import);
    import.module = read_text(cursor);
    import.name = read_text(cursor);
    const unsigned kind = read_byte(cursor);
    cursor->is_cut = cursor->is_cut || kind >= sizeof kinds || module->import_count == ITEMS;
    if (cursor->is_cut) {
        return;
    }
    import.type.kind = kinds[kind];
    if (kind == 0) {
        (void)read_number(cursor);
    } else if (kind == 3) {
        (void)read_byte(cursor);
        (void)read_byte(cursor);
    } else {
        (void)(kind == 1 ? read_byte(cursor) : 0);
        (void)read_limits(cursor);
    }
    module->imports[module->import_count++] = import;
}

static void read_export(struct cursor *cursor, wasmtime_module_t *module)
{
    static const uint8_t kinds[] = {WASMTIME_FUNCTION, WASMTIME_TABLE, WASMTIME_MEMORY,
                                    WASMTIME_GLOBAL};
    struct wasm_exporttype_t export;
    memset(&export, 0, sizeof export);
    export.name = read_text(cursor);
    const unsigned kind = read_byte(cursor);
    (void)read_number(cursor);
    cursor->is_cut = cursor->is_cut || kind >= sizeof kinds || module->export_count == ITEMS;
    if (!cursor->is_cut) {
        export.type.kind = kinds[kind];
        export.type.memory.pages = module->pages;
        module->exports[module->export_count++] = export;
    }
}

static bool read_module(wasmtime_module_t *module)
{
    enum { CUSTOM = 0, IMPORTS = 2, MEMORIES = 5, EXPORTS = 7, HEAD_BYTES = 8 };
    struct cursor cursor = {(unsigned char *)module->bytes + HEAD_BYTES,
                            (unsigned char *)module->bytes + module->size, false};
    while (cursor.at < cursor.end && !cursor.is_cut) {
        const unsigned id = read_byte(&cursor);
        const wasm_byte_vec_t body = read_text(&cursor);
        struct cursor in = {(unsigned char *)body.data, (unsigned char *)body.data + body.size,
                            cursor.is_cut};
        const bool is_list = id != CUSTOM && body.size > 0 && !in.is_cut;
        const uint64_t count = is_list ? read_number(&in) : 0;
        for (uint64_t i = 0; i < count && !in.is_cut; i++) {
            if (id == IMPORTS) {
                read_import(&in, module);
            } else if (id == MEMORIES) {
                module->pages = read_limits(&in);
            } else if (id == EXPORTS) {
                read_export(&in, module);
            }
        }
        cursor.is_cut = cursor.is_cut || in.is_cut;
    }
    return !cursor.is_cut;
}

wasmtime_error_t *wasmtime_module_new(wasm_engine_t *engine, const uint8_t *bytes, size_t size,
                                      wasmtime_module_t **ret_module)
{
    (void)engine;
    FAIL_HERE()
    wasmtime_module_t *module = fake_make(sizeof *module);
    module->bytes = fake_make(size + 1);
    module->size = size;
    memcpy(module->bytes, bytes, size);
    if (!read_module(module)) {
        wasmtime_module_delete(module);
        return fake_error("failed to parse WebAssembly module\n\nCaused by:\n    unexpected end");
    }
    *ret_module = module;
    return NULL;
}

void wasmtime_module_delete(wasmtime_module_t *module)
{
    fake_destroy(module->bytes);
    fake_destroy(module);
}

wasmtime_error_t *wasmtime_module_serialize(const wasmtime_module_t *module,
                                            wasm_byte_vec_t *ret_bytes)
{
    struct {
        Elf64_Ehdr head;
        Elf64_Shdr sections[3];
        char names[40];
        char engine[2 + 64];
    } image;
    const char *text = fake_told("version:") != NULL ? fake_told("version:") : "47.0.3";
    (void)module;
    FAIL_HERE()
    memset(&image, 0, sizeof image);
    memcpy(image.head.e_ident, ELFMAG, SELFMAG);
    image.head.e_ident[EI_CLASS] = ELFCLASS64;
    image.head.e_shoff = offsetof(__typeof__(image), sections);
    image.head.e_shentsize = sizeof(Elf64_Shdr);
    image.head.e_shnum = fake_told("mute") != NULL ? 2 : 3;
    image.head.e_shstrndx = 1;
    image.sections[1] = (Elf64_Shdr){.sh_name = 1,
                                     .sh_offset = offsetof(__typeof__(image), names),
                                     .sh_size = sizeof image.names};
    image.sections[2] = (Elf64_Shdr){.sh_name = 8,
                                     .sh_offset = offsetof(__typeof__(image), engine),
                                     .sh_size = sizeof image.engine};
    memcpy(image.names, "\0.names\0" WASMTIME_VERSION_SECTION,
           sizeof "\0.names\0" WASMTIME_VERSION_SECTION);
    image.engine[1] = (char)strlen(text);
    memcpy(image.engine + 2, text, strlen(text));
    fake_fill(ret_bytes, &image, sizeof image);
    return NULL;
}

void wasmtime_module_imports(const wasmtime_module_t *module, wasm_importtype_vec_t *ret_imports)
{
    ret_imports->size = module->import_count;
    ret_imports->data = fake_make((module->import_count + 1) * sizeof *ret_imports->data);
    for (size_t i = 0; i < module->import_count; i++) {
        ret_imports->data[i] = (wasm_importtype_t *)(uintptr_t)&module->imports[i];
    }
}

void wasmtime_module_exports(const wasmtime_module_t *module, wasm_exporttype_vec_t *ret_exports)
{
    ret_exports->size = module->export_count;
    ret_exports->data = fake_make((module->export_count + 1) * sizeof *ret_exports->data);
    for (size_t i = 0; i < module->export_count; i++) {
        ret_exports->data[i] = (wasm_exporttype_t *)(uintptr_t)&module->exports[i];
    }
}

const wasm_byte_vec_t *wasm_importtype_module(const wasm_importtype_t *import)
{
    return &import->module;
}

const wasm_byte_vec_t *wasm_importtype_name(const wasm_importtype_t *import)
{
    return &import->name;
}

const wasm_externtype_t *wasm_importtype_type(const wasm_importtype_t *import)
{
    return &import->type;
}

const wasm_byte_vec_t *wasm_exporttype_name(const wasm_exporttype_t *export)
{
    return &export->name;
}

const wasm_externtype_t *wasm_exporttype_type(const wasm_exporttype_t *export)
{
    return &export->type;
}

uint8_t wasm_externtype_kind(const wasm_externtype_t *type)
{
    return type->kind;
}

const wasm_memorytype_t *wasm_externtype_as_memorytype_const(const wasm_externtype_t *type)
{
    return type->kind == WASMTIME_MEMORY ? &type->memory : NULL;
}

uint64_t wasmtime_memorytype_minimum(const wasm_memorytype_t *memory)
{
    return memory->pages;
}

void wasm_importtype_vec_delete(wasm_importtype_vec_t *imports)
{
    fake_destroy(imports->data);
}

void wasm_exporttype_vec_delete(wasm_exporttype_vec_t *exports)
{
    fake_destroy(exports->data);
}
