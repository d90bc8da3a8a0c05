# planner/cost/devices.csv to the rows of planner/cost/catalogue.c. A column that is not known, a figure that is no
# number and an unverified field that is no column end the build: the table says what the file says.

function fail(what) { print "devices.csv:" NR ": " what > "/dev/stderr"; failed = 1; exit 1 }

# One record into field[1..]: commas part, quotes hold commas, two quotes are one.
function split_record(line,    i, c, quoted, count) {
    count = 1
    field[1] = ""
    quoted = 0
    for (i = 1; i <= length(line); i++) {
        c = substr(line, i, 1)
        if (quoted && c == "\"" && substr(line, i + 1, 1) == "\"") { field[count] = field[count] c; i++ }
        else if (c == "\"") quoted = !quoted
        else if (c == "," && !quoted) field[++count] = ""
        else field[count] = field[count] c
    }
    if (quoted) fail("a quote without its end")
    return count
}

function text(name,    value) {
    value = field[column[name]]
    gsub(/\\/, "\\\\", value)
    gsub(/"/, "\\\"", value)
    return "\"" value "\""
}

function figure(name, index_name, power,    value) {
    value = field[column[name]]
    if (value == "") return
    if (value !~ /^[0-9]+(\.[0-9]+)?$/ || value + 0 == 0) fail(name ": \"" value "\" is no figure")
    printf "                       [%s] = {%se%d, FIGURE_DECLARED, %s},\n", index_name, value, power, \
        unverified["*"] || unverified[name] ? "true" : "false"
    known++
}

# "tpu" and "google-tpu-v5p" to "tpu.google.v5p": the kind is not said twice.
function instrument(kind, id,    at, vendor, rest) {
    at = index(id, "-")
    if (at == 0) fail("the id has no vendor")
    vendor = substr(id, 1, at - 1)
    rest = substr(id, at + 1)
    if (index(rest, kind "-") == 1) rest = substr(rest, length(kind) + 2)
    else if (length(rest) > length(kind) && substr(rest, length(rest) - length(kind)) == "-" kind)
        rest = substr(rest, 1, length(rest) - length(kind) - 1)
    return kind "." vendor "." rest
}

function read_unverified(    i, count, names) {
    split("", unverified)
    if (field[column["unverified_fields"]] ~ /^all /) { unverified["*"] = 1; return }
    count = split(field[column["unverified_fields"]], names, ";")
    for (i = 1; i <= count; i++) {
        if (!(names[i] in column)) fail("unverified: no column \"" names[i] "\"")
        unverified[names[i]] = 1
    }
}

BEGIN {
    wanted = split("id vendor model class fp64_tflops fp64_matrix_tflops fp32_tflops tf32_tflops fp16_tflops " \
        "bf16_tflops fp8_tflops int8_tops int4_tops sparsity_factor memory_gb bandwidth_gbs memory_type tdp_w " \
        "interconnect_gbs fabric source unverified_fields notes", order, " ")
}

NR == 1 {
    if (split_record($0) != wanted) fail("not " wanted " columns")
    for (i = 1; i <= wanted; i++) {
        if (field[i] != order[i]) fail("column " i " is \"" field[i] "\", not \"" order[i] "\"")
        column[field[i]] = i
    }
    next
}

{
    if (split_record($0) != wanted) fail("not " wanted " fields")
    read_unverified()
    class = field[column["class"]]
    kind = class
    sub(/-.*/, "", kind)
    printf "    {.id = %s,\n     .vendor = %s,\n     .model = %s,\n", text("id"), text("vendor"), text("model")
    printf "     .kind = \"%s\",\n     .variant = \"%s\",\n", kind, class == kind ? "" : class
    printf "     .instrument = \"%s\",\n     .memory_type = %s,\n", instrument(kind, field[column["id"]]), text("memory_type")
    printf "     .fabric = %s,\n", text("fabric")
    printf "     .sources = %s,\n     .notes = %s,\n", text("source"), text("notes")
    printf "     .profile = {.figures = {\n"
    known = 0
    figure("fp64_tflops", "FIGURE_FP64", 12)
    figure("fp64_matrix_tflops", "FIGURE_FP64_MATRIX", 12)
    figure("fp32_tflops", "FIGURE_FP32", 12)
    figure("tf32_tflops", "FIGURE_TF32", 12)
    figure("fp16_tflops", "FIGURE_FP16", 12)
    figure("bf16_tflops", "FIGURE_BF16", 12)
    figure("fp8_tflops", "FIGURE_FP8", 12)
    figure("int8_tops", "FIGURE_INT8", 12)
    figure("int4_tops", "FIGURE_INT4", 12)
    figure("sparsity_factor", "FIGURE_SPARSITY", 0)
    figure("memory_gb", "FIGURE_MEMORY", 9)
    figure("bandwidth_gbs", "FIGURE_BANDWIDTH", 9)
    figure("tdp_w", "FIGURE_POWER", 0)
    figure("interconnect_gbs", "FIGURE_INTERCONNECT", 9)
    if (known == 0) printf "                       [FIGURE_FP64] = {0, FIGURE_UNKNOWN, false},\n" # C wants one
    printf "                       }}},\n"
}

END { if (!failed && NR < 2) fail("no device") }
