#include "provider/pjrt/pjrt_serve.h"

#include "base/text.h"
#include "formats/plugin/plugin_word.h"
#include "provider/pjrt/pjrt_file.h"
#include "provider/pjrt/pjrt_measure.h"
#include "provider/pjrt/pjrt_program.h"

#include <ctype.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define OPERATION "mlir"
#define SEPARATOR "to"

enum {
    NAME_SIZE = 64,  /* what a description takes, with its NUL */
    TEXT_SIZE = 400, /* likewise the text of a result */
    STATUS_FAILED = 1,
    STATUS_USAGE = 2,
};

struct server {
    struct pjrt_client client;
    const struct pjrt_options *options;
    FILE *out;
    struct pjrt_program program; /* compiled last; subtasks of a job mostly have the same */
    struct pjrt_buffers inputs, outputs;
    char *code; /* of this program */
    size_t code_size;
};

/* ---------------------------------------------------------------- answers */

/* Writes one line and releases the object. Returns false when the answer could not be made. */
static bool answer(struct server *server, json_t *object)
{
    const bool good = object != NULL && json_dumpf(object, server->out, JSON_COMPACT) == 0 &&
                      fputc('\n', server->out) != EOF && fflush(server->out) == 0;
    json_decref(object);
    return good;
}

/* Makes one line of a text, which may have several. */
static void make_line(const char *text, char ret_line[TEXT_SIZE])
{
    char line[TEXT_SIZE];
    size_t length = 0;
    for (; text[length] != '\0' && length + 1 < sizeof line; length++) {
        line[length] = isspace((unsigned char)text[length]) ? ' ' : text[length];
    }
    text_printable(line, length, ret_line, TEXT_SIZE);
}

/* Answers a run. */
static bool say(struct server *server, int status, const char *text)
{
    char line[TEXT_SIZE];
    make_line(text, line);
    return answer(server, json_pack("{s:i, s:s}", "status", status, "text", line));
}

static void tell(const char *text)
{
    (void)fprintf(stderr, "bourse-pjrt: %s\n", text);
}

/* Answers that the device itself fails. Returns false, since no call of the library is safe any
 * more. */
static bool give_up(struct server *server, const char *text)
{
    char line[TEXT_SIZE];
    make_line(text, line);
    (void)answer(server, json_pack("{s:s}", "failed", line));
    return false;
}

/* ---------------------------------------------------------------- what the device is */

/* The market's words for the devices of the platforms that PJRT libraries name. */
static const struct {
    const char *platform, *kind, *vendor;
} platforms[] = {
    {"tpu", "tpu", "google"},    {"cuda", "gpu", "nvidia"}, {"rocm", "gpu", "amd"},
    {"sycl", "gpu", "intel"},    {"gpu", "gpu", "unknown"}, {"METAL", "gpu", "apple"},
    {"neuron", "npu", "amazon"}, {"cpu", "cpu", "unknown"},
};

/* Writes a word of a-z, 0-9 and dash, made of the text. */
static void make_word(const char *text, char ret_word[PLUGIN_WORD_SIZE])
{
    size_t length = 0;
    for (; *text != '\0' && length + 1 < PLUGIN_WORD_SIZE; text++) {
        const char letter = (char)tolower((unsigned char)*text);
        if ((letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9')) {
            ret_word[length++] = letter;
        } else if (length > 0 && ret_word[length - 1] != '-') {
            ret_word[length++] = '-';
        }
    }
    while (length > 0 && ret_word[length - 1] == '-') {
        length--;
    }
    ret_word[length] = '\0';
    if (length == 0) {
        (void)snprintf(ret_word, PLUGIN_WORD_SIZE, "unknown");
    }
}

static bool describe(struct server *server)
{
    const struct pjrt_client *client = &server->client;
    const struct pjrt_memory memory = pjrt_client_memory(client);
    const char *kind = "custom";
    char vendor[PLUGIN_WORD_SIZE];
    char model[PLUGIN_WORD_SIZE];
    char name[NAME_SIZE];
    char plain[NAME_SIZE];
    make_word(client->platform, vendor);
    make_word(client->kind, model);
    for (size_t i = 0; i < sizeof platforms / sizeof platforms[0]; i++) {
        if (strcmp(platforms[i].platform, client->platform) == 0) {
            kind = platforms[i].kind;
            (void)snprintf(vendor, sizeof vendor, "%s", platforms[i].vendor);
        }
    }
    kind = server->options->kind != NULL ? server->options->kind : kind;
    (void)snprintf(name, sizeof name, "%.28s, device %zu of %zu by PJRT", client->kind,
                   server->options->device, client->device_count);
    text_printable(name, strlen(name), plain, sizeof plain); /* a letter may have been cut */
    json_t *object =
        json_pack("{s:i, s:s, s:s, s:s, s:s, s:[s]}", "bourse", 1, "name", plain, "kind", kind,
                  "vendor", vendor, "model", model, "operations", OPERATION);
    (void)json_object_set_new(
        object, "memory", memory.limit_bytes > 0 ? json_integer(memory.limit_bytes) : json_null());
    return answer(server, object);
}

static bool figures(struct server *server)
{
    const struct pjrt_memory memory = pjrt_client_memory(&server->client);
    return answer(server, memory.used_bytes >= 0
                              ? json_pack("{s:I}", "memory_used", (json_int_t)memory.used_bytes)
                              : json_object());
}

static bool probe(struct server *server)
{
    struct pjrt_speed speed;
    struct pjrt_failure failure = {.code = 0};
    if (!pjrt_measure(&server->client, &speed, &failure)) {
        tell(failure.text);
        return give_up(server, failure.text);
    }
    return answer(server,
                  json_pack("{s:f, s:f}", "fp32", speed.fp32, "bandwidth", speed.bandwidth));
}

/* ---------------------------------------------------------------- a run */

/* The words of a run. */
struct words {
    const char *program;
    const char *inputs[PJRT_ARRAYS_MAX], *outputs[PJRT_ARRAYS_MAX];
    size_t input_count, output_count;
};

static bool read_words(const json_t *arguments, struct words *words, struct pjrt_failure *failure)
{
    const size_t count = json_array_size(arguments);
    bool is_output = false;
    *words = (struct words){.program = json_string_value(json_array_get(arguments, 0))};
    for (size_t i = 1; i < count; i++) {
        const char *word = json_string_value(json_array_get(arguments, i));
        if (word == NULL || words->input_count == PJRT_ARRAYS_MAX ||
            words->output_count == PJRT_ARRAYS_MAX) {
            return pjrt_api_refuse(failure, "more than %d files", PJRT_ARRAYS_MAX);
        }
        if (!is_output && strcmp(word, SEPARATOR) == 0) {
            is_output = true;
        } else if (is_output) {
            words->outputs[words->output_count++] = word;
        } else {
            words->inputs[words->input_count++] = word;
        }
    }
    if (words->program == NULL || words->output_count == 0) {
        return pjrt_api_refuse(failure, "write " OPERATION " PROGRAM INPUT... " SEPARATOR
                                        " OUTPUT..., as in " OPERATION
                                        " add.mlir a.npy b.npy " SEPARATOR " c.npy");
    }
    return true;
}

static double seconds_since(const struct timespec *began)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - began->tv_sec) + (double)(now.tv_nsec - began->tv_nsec) / 1e9;
}

static void forget_program(struct server *server)
{
    pjrt_program_destroy(&server->client, &server->program);
    free(server->code);
    server->code = NULL;
}

/* Compiles the file, unless its bytes are those of the program compiled last. */
static bool load_program(struct server *server, const char *path, struct pjrt_failure *failure)
{
    struct pjrt_map map;
    struct problem problem;
    if (!pjrt_file_map(path, &map, &problem)) {
        return pjrt_api_refuse(failure, "%s", problem.text);
    }
    bool good = server->code != NULL && server->code_size == map.size &&
                memcmp(server->code, map.bytes, map.size) == 0;
    if (!good) {
        forget_program(server);
        server->code = malloc(map.size + 1);
        server->code_size = map.size;
        if (server->code == NULL) {
            (void)pjrt_api_refuse(failure, "no memory for a program of %zu bytes", map.size);
        } else {
            memcpy(server->code, map.bytes, map.size);
            server->code[map.size] = '\0';
            good = pjrt_program_compile(&server->client, server->code, map.size, &server->program,
                                        failure);
        }
    }
    if (!good) {
        forget_program(server);
    }
    pjrt_file_unmap(&map);
    return good;
}

static bool put_inputs(struct server *server, const struct words *words,
                       struct pjrt_failure *failure)
{
    for (size_t i = 0; i < words->input_count; i++) {
        struct pjrt_map map;
        struct pjrt_array array;
        struct problem problem;
        if (!pjrt_file_read(words->inputs[i], &map, &array, &problem)) {
            return pjrt_api_refuse(failure, "%s", problem.text);
        }
        const bool good = pjrt_program_put(&server->client, &array, &server->inputs, failure);
        pjrt_file_unmap(&map);
        if (!good) {
            return false;
        }
    }
    return true;
}

static bool get_outputs(struct server *server, const struct words *words,
                        struct pjrt_failure *failure)
{
    for (size_t i = 0; i < words->output_count; i++) {
        struct pjrt_array array;
        struct pjrt_failure why;
        struct problem problem;
        if (!pjrt_program_get(&server->client, server->outputs.items[i], &array, &why)) {
            *failure = why;
            if (why.code == 0) {
                (void)pjrt_api_refuse(failure, "output %zu of the program: %.300s", i + 1,
                                      why.text);
            }
            return false;
        }
        const bool good = pjrt_file_write(words->outputs[i], &array, &problem);
        free(array.data);
        if (!good) {
            return pjrt_api_refuse(failure, "%s", problem.text);
        }
    }
    return true;
}

static bool compute(struct server *server, const struct words *words, char *ret_text, size_t size,
                    struct pjrt_failure *failure)
{
    struct timespec began;
    (void)clock_gettime(CLOCK_MONOTONIC, &began);
    if (!load_program(server, words->program, failure)) {
        return false;
    }
    if (server->program.output_count != words->output_count) {
        return pjrt_api_refuse(failure, "the program has %zu output%s, and %zu file%s %s named",
                               server->program.output_count,
                               server->program.output_count == 1 ? "" : "s", words->output_count,
                               words->output_count == 1 ? "" : "s",
                               words->output_count == 1 ? "is" : "are");
    }
    const double compile_s = seconds_since(&began);
    if (!put_inputs(server, words, failure)) {
        return false;
    }
    const double begin_s = seconds_since(&began);
    if (!pjrt_program_execute(&server->client, &server->program, &server->inputs, &server->outputs,
                              failure)) {
        return false;
    }
    (void)snprintf(ret_text, size, "ran on %s in %.4f s; compiled in %.4f s", server->client.kind,
                   seconds_since(&began) - begin_s, compile_s);
    return get_outputs(server, words, failure);
}

static bool run(struct server *server, const json_t *request)
{
    static struct words words;
    struct pjrt_failure failure = {.code = 0};
    char text[TEXT_SIZE] = "";
    const char *operation = json_string_value(json_object_get(request, "operation"));
    if (operation == NULL || strcmp(operation, OPERATION) != 0) {
        return say(server, STATUS_USAGE, "the one operation is " OPERATION);
    }
    if (!read_words(json_object_get(request, "arguments"), &words, &failure)) {
        return say(server, STATUS_USAGE, failure.text);
    }
    const bool good = compute(server, &words, text, sizeof text, &failure);
    if (!good && failure.code != 0) {
        tell(failure.text);
    }
    if (!good && failure.is_of_device) {
        return give_up(server, failure.text);
    }
    pjrt_program_free(&server->client, &server->inputs);
    pjrt_program_free(&server->client, &server->outputs);
    return good ? say(server, 0, text) : say(server, STATUS_FAILED, failure.text);
}

/* ---------------------------------------------------------------- the dialogue */

/* Answers one request. Returns false when the program ends instead. */
static bool serve_line(struct server *server, const char *line)
{
    json_t *request = json_loads(line, 0, NULL);
    const char *what = json_string_value(json_object_get(request, "do"));
    bool good = false;
    if (what == NULL) {
        tell("a request is no line of JSON with a \"do\"");
    } else if (strcmp(what, "describe") == 0) {
        good = describe(server);
    } else if (strcmp(what, "probe") == 0) {
        good = probe(server);
    } else if (strcmp(what, "figures") == 0) {
        good = figures(server);
    } else if (strcmp(what, "run") == 0) {
        good = run(server, request);
    } else { /* what a later version may ask */
        good = answer(server, json_object());
    }
    json_decref(request);
    return good;
}

int pjrt_serve(const struct pjrt_options *options, FILE *in, FILE *out)
{
    static struct server server; /* large */
    struct pjrt_failure failure;
    char *line = NULL;
    size_t capacity = 0;
    bool good = true;
    server = (struct server){.options = options, .out = out};
    if (!pjrt_client_open(options, &server.client, &failure)) {
        tell(failure.text);
        return 1;
    }
    while (good && getline(&line, &capacity, in) > 0) {
        good = serve_line(&server, line);
    }
    free(line);
    if (!good) {
        return 1; /* the end of the process frees what the device has */
    }
    forget_program(&server);
    pjrt_client_close(&server.client);
    return 0;
}

static bool print_device(const struct pjrt_client *client, size_t place, FILE *out)
{
    const struct pjrt_memory memory = pjrt_client_memory(client);
    const struct text_size size =
        text_size((uint64_t)(memory.limit_bytes > 0 ? memory.limit_bytes : 0));
    return fprintf(out, "%zu: %s, %s%s, of the platform %s\n", place, client->kind,
                   memory.limit_bytes > 0 ? size.text : "memory not told",
                   memory.limit_bytes > 0 ? " of memory" : "", client->platform) > 0;
}

int pjrt_serve_list(const struct pjrt_options *options, FILE *out)
{
    struct pjrt_client client;
    struct pjrt_failure failure = {.code = 0};
    if (!pjrt_client_open(options, &client, &failure)) {
        tell(failure.text);
        return 1;
    }
    bool good = true;
    for (size_t i = 0; good && i < client.device_count; i++) {
        good = pjrt_client_choose(&client, i, &failure);
        if (!good) {
            tell(failure.text);
        }
        good = good && print_device(&client, i, out);
    }
    good = fflush(out) == 0 && good;
    pjrt_client_close(&client);
    return good ? 0 : 1;
}
