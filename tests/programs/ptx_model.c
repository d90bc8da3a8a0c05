#include "tests/programs/ptx_model.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LINES = 2048,
    REGISTERS = 128,
    NAMES = 64, /* labels, parameters and shared arrays */
    NAME_SIZE = 24,
    OPERANDS = 4,
    SHARED_BYTES = 16384,
    THREADS = 256,
};

enum operand_kind {
    IS_NONE,
    IS_REGISTER,
    IS_NUMBER,
    IS_TID_X,
    IS_NTID_X,
    IS_CTAID_X,
    IS_CTAID_Y,
};

/* The address [register + number] is a register with a number. */
struct operand {
    enum operand_kind kind;
    unsigned at; /* of the register */
    uint64_t number;
};

enum operation {
    LD_PARAM_4,
    LD_PARAM_8,
    CVTA,
    MOV,
    AND,
    SHR_32,
    SHR_SIGNED,
    SHL_32,
    SHL_64,
    ADD_32,
    SUB_SIGNED,
    ADD_64,
    LESS,
    UNEQUAL,
    MUL_WIDE,
    MUL_LOW,
    MAD_LOW,
    WIDEN,
    TO_WHOLE,
    TO_FLOAT,
    LD_GLOBAL,
    ST_GLOBAL,
    LD_SHARED,
    ST_SHARED,
    MUL_FLOAT,
    FMA,
    BARRIER,
    BRANCH,
    RETURN,
    OPERATIONS
};
static const char *const words[OPERATIONS] = {
    [LD_PARAM_4] = "ld.param.u32 ld.param.f32",
    [LD_PARAM_8] = "ld.param.u64",
    [CVTA] = "cvta.to.global.u64",
    [MOV] = "mov.u32 mov.f32",
    [AND] = "and.b32 and.pred",
    [SHR_32] = "shr.u32",
    [SHR_SIGNED] = "shr.s32",
    [SHL_32] = "shl.b32",
    [SHL_64] = "shl.b64",
    [ADD_32] = "add.u32",
    [SUB_SIGNED] = "sub.s32",
    [ADD_64] = "add.u64",
    [LESS] = "setp.lt.u32",
    [UNEQUAL] = "setp.neu.f32",
    [MUL_WIDE] = "mul.wide.u32",
    [MUL_LOW] = "mul.lo.u32",
    [MAD_LOW] = "mad.lo.u32",
    [WIDEN] = "cvt.u64.u32",
    [TO_WHOLE] = "cvt.rzi.s32.f32",
    [TO_FLOAT] = "cvt.rn.f32.s32",
    [LD_GLOBAL] = "ld.global.f32",
    [ST_GLOBAL] = "st.global.f32",
    [LD_SHARED] = "ld.shared.f32",
    [ST_SHARED] = "st.shared.f32",
    [MUL_FLOAT] = "mul.f32",
    [FMA] = "fma.rn.f32",
    [BARRIER] = "bar.sync",
    [BRANCH] = "bra",
    [RETURN] = "ret",
};

struct instruction {
    enum operation operation;
    bool has_guard;
    unsigned guard;
    struct operand operands[OPERANDS];
};

struct name {
    char text[NAME_SIZE];
    uint64_t value;
};

struct program {
    struct instruction lines[LINES];
    size_t count;
    struct name registers[REGISTERS], labels[NAMES], parameters[NAMES], arrays[NAMES];
    size_t register_count, label_count, parameter_count, array_count;
    uint64_t shared_bytes;
    char problem[160];
};

static bool fail(struct program *program, const char *what, const char *text)
{
    (void)snprintf(program->problem, sizeof program->problem, "%s: %.80s", what, text);
    return false;
}

/* ---------------------------------------------------------------- names */

static const struct name *find(const struct name *names, size_t count, const char *text)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i].text, text) == 0) {
            return &names[i];
        }
    }
    return NULL;
}

static bool add(struct program *program, struct name *names, size_t *count, size_t most,
                const char *text, uint64_t value)
{
    if (*count == most || strlen(text) >= NAME_SIZE || find(names, *count, text) != NULL) {
        return fail(program, "a name too many, too long or twice", text);
    }
    (void)snprintf(names[*count].text, NAME_SIZE, "%s", text);
    names[(*count)++].value = value;
    return true;
}

/* Declares the registers of a line such as ".reg .b32 %x, %r<4>". */
static bool declare(struct program *program, char *line)
{
    char *rest = NULL;
    for (char *word = strtok_r(strchr(line, '%'), ", ;", &rest); word != NULL;
         word = strtok_r(NULL, ", ;", &rest)) {
        char *range = strchr(word, '<');
        const unsigned long count = range != NULL ? strtoul(range + 1, NULL, 10) : 1;
        if (range != NULL) {
            *range = '\0';
        }
        for (unsigned long i = 0; i < count; i++) {
            char name[64];
            (void)snprintf(name, sizeof name, range != NULL ? "%s%lu" : "%s", word, i);
            if (!add(program, program->registers, &program->register_count, REGISTERS, name, 0)) {
                return false;
            }
        }
    }
    return true;
}

/* ---------------------------------------------------------------- operands */

/* Reads sums of products of numbers: 16*3+64. */
static uint64_t sum_of(const char *text)
{
    uint64_t sum = 0;
    while (*text != '\0') {
        char *after;
        uint64_t product = strtoull(text, &after, 10);
        while (*after == '*') {
            product *= strtoull(after + 1, &after, 10);
        }
        sum += product;
        text = *after == '+' ? after + 1 : "";
    }
    return sum;
}

static bool read_operand(struct program *program, char *text, struct operand *ret_operand)
{
    static const struct name specials[] = {{"%tid.x", IS_TID_X},
                                           {"%ntid.x", IS_NTID_X},
                                           {"%ctaid.x", IS_CTAID_X},
                                           {"%ctaid.y", IS_CTAID_Y}};
    *ret_operand = (struct operand){.kind = IS_NUMBER};
    if (text[0] == '[') {
        text++;
        text[strcspn(text, "]")] = '\0';
    }
    if (strncmp(text, "0f", 2) == 0) {
        ret_operand->number = strtoull(text + 2, NULL, 16);
        return true;
    }
    if (isdigit((unsigned char)text[0])) {
        ret_operand->number = sum_of(text);
        return true;
    }
    char *plus = strchr(text, '+');
    if (plus != NULL) {
        *plus = '\0';
        ret_operand->number = sum_of(plus + 1);
    }
    const struct name *special = find(specials, sizeof specials / sizeof *specials, text);
    const struct name *its = find(program->registers, program->register_count, text);
    if (special != NULL) {
        ret_operand->kind = (enum operand_kind)special->value;
    } else if (its != NULL) {
        ret_operand->kind = IS_REGISTER;
        ret_operand->at = (unsigned)(its - program->registers);
    } else {
        its = find(program->parameters, program->parameter_count, text);
        its = its != NULL ? its : find(program->arrays, program->array_count, text);
        its = its != NULL ? its : find(program->labels, program->label_count, text);
        ret_operand->number = its != NULL ? its->value : 0;
        return its != NULL || fail(program, "an unknown operand", text);
    }
    return true;
}

static bool has_word(const char *list, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = strstr(list, word); at != NULL; at = strstr(at + 1, word)) {
        if ((at == list || at[-1] == ' ') && (at[length] == '\0' || at[length] == ' ')) {
            return true;
        }
    }
    return false;
}

static bool read_instruction(struct program *program, char *line)
{
    struct instruction *made = &program->lines[program->count];
    char *rest = NULL;
    char *word = strtok_r(line, " ,;", &rest);
    if (program->count == LINES) {
        return fail(program, "too many lines", line);
    }
    *made = (struct instruction){.operation = 0};
    if (word[0] == '@') {
        struct operand guard;
        if (!read_operand(program, word + 1, &guard) || guard.kind != IS_REGISTER) {
            return fail(program, "a wrong guard", word);
        }
        made->has_guard = true;
        made->guard = guard.at;
        word = strtok_r(NULL, " ,;", &rest);
    }
    while (made->operation < OPERATIONS && !has_word(words[made->operation], word)) {
        made->operation++;
    }
    if (made->operation == OPERATIONS) {
        return fail(program, "an unknown instruction", word);
    }
    size_t count = 0;
    for (char *text; (text = strtok_r(NULL, " ,;", &rest)) != NULL; count++) {
        if (count == OPERANDS || !read_operand(program, text, &made->operands[count])) {
            return fail(program, "a wrong operand", text);
        }
    }
    program->count++;
    return true;
}

/* ---------------------------------------------------------------- the text */

/* Reads ".shared .align 4 .b8 part_a[4160]". */
static bool read_shared(struct program *program, char *line)
{
    char *name = strstr(line, ".b8 ") + 4;
    char *size = strchr(name, '[');
    *size = '\0';
    const uint64_t at = program->shared_bytes;
    program->shared_bytes += strtoull(size + 1, NULL, 10);
    return program->shared_bytes <= SHARED_BYTES
               ? add(program, program->arrays, &program->array_count, NAMES, name, at)
               : fail(program, "too much shared memory", name);
}

static bool read_parameters(struct program *program, char *text)
{
    char *rest = NULL;
    for (char *word = strtok_r(text, "(, \n", &rest); word != NULL;
         word = strtok_r(NULL, "(, \n", &rest)) {
        if (word[0] != '.' && !add(program, program->parameters, &program->parameter_count, NAMES,
                                   word, program->parameter_count)) {
            return false;
        }
    }
    return true;
}

/* Reads the lines twice: labels first, because a branch may go ahead. */
static bool read_body(struct program *program, const char *body, bool wants_labels)
{
    char *copy = strdup(body);
    char *rest = NULL;
    size_t count = 0;
    bool good = copy != NULL;
    for (char *line = strtok_r(copy, "\n", &rest); good && line != NULL && line[0] != '}';
         line = strtok_r(NULL, "\n", &rest)) {
        char *text = line + strspn(line, " ");
        char *colon = strchr(text, ':');
        if (colon != NULL) {
            *colon = '\0';
            good = !wants_labels ||
                   add(program, program->labels, &program->label_count, NAMES, text, count);
        } else if (strncmp(text, ".reg", 4) == 0) {
            good = !wants_labels || declare(program, text);
        } else if (strncmp(text, ".shared", 7) == 0) {
            good = !wants_labels || read_shared(program, text);
        } else {
            good = wants_labels || read_instruction(program, text);
            count++;
        }
    }
    free(copy);
    return good;
}

static bool read_text(struct program *program, const char *text, const char *entry)
{
    char wanted[64];
    (void)snprintf(wanted, sizeof wanted, ".entry %s(", entry);
    const char *begin = strstr(text, wanted);
    const char *open = begin != NULL ? strchr(begin, '{') : NULL;
    if (open == NULL) {
        return fail(program, "no entry", entry);
    }
    begin += strlen(wanted);
    char *parameters = strndup(begin, strcspn(begin, ")"));
    const bool good = parameters != NULL && read_parameters(program, parameters) &&
                      read_body(program, open + 2, true) && read_body(program, open + 2, false);
    free(parameters);
    return good;
}

/* ---------------------------------------------------------------- the run */

struct thread {
    uint64_t registers[REGISTERS];
    size_t line;
    bool is_over;
};

struct block {
    const struct program *program;
    const struct ptx_launch *launch;
    unsigned x, y;
    unsigned char shared[SHARED_BYTES];
    struct thread threads[THREADS];
    const char *problem;
};

static uint64_t value_of(const struct block *block, unsigned number, const struct operand *operand)
{
    switch (operand->kind) {
    case IS_REGISTER:
        return block->threads[number].registers[operand->at] + operand->number;
    case IS_TID_X:
        return number;
    case IS_NTID_X:
        return block->launch->block;
    case IS_CTAID_X:
        return block->x;
    case IS_CTAID_Y:
        return block->y;
    default:
        return operand->number;
    }
}

static float float_of(uint64_t bits)
{
    float value;
    const uint32_t low = (uint32_t)bits;
    memcpy(&value, &low, sizeof value);
    return value;
}

static uint64_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Returns the place of four bytes, or NULL when it is outside. */
static unsigned char *place(struct block *block, bool is_shared, uint64_t address)
{
    unsigned char *found = NULL;
    if (is_shared) {
        found = address % 4 == 0 && address + 4 <= block->program->shared_bytes
                    ? block->shared + address
                    : NULL;
    } else if (address % 4 == 0 && block->launch->is_memory(address, 4)) {
        memcpy(&found, &address, sizeof found);
    }
    block->problem = found == NULL ? "memory outside the buffers" : block->problem;
    return found;
}

static uint64_t load(struct block *block, bool is_shared, uint64_t address)
{
    uint32_t bits = 0;
    const unsigned char *from = place(block, is_shared, address);
    if (from != NULL) {
        memcpy(&bits, from, sizeof bits);
    }
    return bits;
}

static void store(struct block *block, bool is_shared, uint64_t address, uint64_t value)
{
    const uint32_t bits = (uint32_t)value;
    unsigned char *to = place(block, is_shared, address);
    if (to != NULL) {
        memcpy(to, &bits, sizeof bits);
    }
}

static uint64_t parameter(const struct block *block, const struct operand *operand, size_t size)
{
    uint64_t value = 0;
    memcpy(&value, block->launch->parameters[operand->number], size);
    return value;
}

/* Shifts the sign along. */
static uint32_t shifted(uint32_t value, unsigned by)
{
    const uint32_t sign = value >> 31 != 0 ? ~(UINT32_MAX >> by) : 0;
    return value >> by | sign;
}

/* Returns the result of an instruction that leaves one in its first operand. */
static uint64_t compute(struct block *block, unsigned number, const struct instruction *line)
{
    const struct operand *operands = line->operands;
    const uint64_t a = value_of(block, number, &operands[1]);
    const uint64_t b = value_of(block, number, &operands[2]);
    switch (line->operation) {
    case LD_PARAM_4:
        return parameter(block, &operands[1], 4);
    case LD_PARAM_8:
        return parameter(block, &operands[1], 8);
    case AND:
        return a & b;
    case SHR_32:
        return (uint32_t)a >> b;
    case SHR_SIGNED:
        return (uint32_t)shifted((uint32_t)a, (unsigned)b);
    case SUB_SIGNED:
        return (uint32_t)(a - b);
    case SHL_32:
        return (uint32_t)((uint32_t)a << b);
    case SHL_64:
        return a << b;
    case ADD_32:
        return (uint32_t)(a + b);
    case ADD_64:
        return a + b;
    case LESS:
        return (uint32_t)a < (uint32_t)b;
    case UNEQUAL:
        return !(float_of(a) == float_of(b));
    case MUL_WIDE:
        return (uint64_t)(uint32_t)a * (uint32_t)b;
    case MUL_LOW:
        return (uint32_t)((uint32_t)a * (uint32_t)b);
    case MAD_LOW:
        return (uint32_t)((uint32_t)a * (uint32_t)b + value_of(block, number, &operands[3]));
    case TO_WHOLE:
        return (uint32_t)(int32_t)float_of(a);
    case TO_FLOAT:
        return bits_of((float)(int32_t)(uint32_t)a);
    case WIDEN:
        return (uint32_t)a;
    case LD_GLOBAL:
        return load(block, false, a);
    case LD_SHARED:
        return load(block, true, a);
    case MUL_FLOAT:
        return bits_of(float_of(a) * float_of(b));
    case FMA:
        return bits_of(
            fmaf(float_of(a), float_of(b), float_of(value_of(block, number, &operands[3]))));
    default:
        return a; /* CVTA and MOV */
    }
}

/* Runs a thread up to the next barrier, or its end. */
static void run_thread(struct block *block, unsigned number)
{
    struct thread *thread = &block->threads[number];
    while (!thread->is_over && block->problem == NULL) {
        if (thread->line == block->program->count) {
            block->problem = "a thread runs beyond the end";
            return;
        }
        const struct instruction *line = &block->program->lines[thread->line++];
        const struct operand *operands = line->operands;
        if (line->has_guard && thread->registers[line->guard] == 0) {
            continue;
        }
        switch (line->operation) {
        case BARRIER:
            return;
        case BRANCH:
            thread->line = (size_t)operands[0].number;
            break;
        case RETURN:
            thread->is_over = true;
            break;
        case ST_GLOBAL:
        case ST_SHARED:
            store(block, line->operation == ST_SHARED, value_of(block, number, &operands[0]),
                  value_of(block, number, &operands[1]));
            break;
        default:
            thread->registers[operands[0].at] = compute(block, number, line);
        }
    }
}

/* Registers and shared memory begin with rubbish, as on a device. */
static const char *run_block(struct block *block)
{
    memset(block->shared, 0xA5, sizeof block->shared);
    memset(block->threads, 0xA5, sizeof block->threads);
    for (unsigned i = 0; i < block->launch->block; i++) {
        block->threads[i].line = 0;
        block->threads[i].is_over = false;
    }
    while (block->problem == NULL && !block->threads[0].is_over) {
        for (unsigned i = 0; i < block->launch->block; i++) {
            run_thread(block, i);
            if (block->problem == NULL && (block->threads[i].line != block->threads[0].line)) {
                block->problem = "not all threads come to the same barrier";
            }
        }
    }
    return block->problem;
}

const char *ptx_model_run(const char *text, const char *entry, const struct ptx_launch *launch)
{
    static struct program program;
    static struct block block;
    program = (struct program){.count = 0};
    if (launch->block > THREADS || launch->block == 0) {
        return "no such number of threads in a block";
    }
    if (!read_text(&program, text, entry)) {
        return program.problem;
    }
    block = (struct block){.program = &program, .launch = launch};
    for (block.y = 0; block.problem == NULL && block.y < launch->grid[1]; block.y++) {
        for (block.x = 0; block.problem == NULL && block.x < launch->grid[0]; block.x++) {
            (void)run_block(&block);
        }
    }
    return block.problem;
}
