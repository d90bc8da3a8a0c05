# The programs are bourse-broker, bourse-provider and bourse, and helpers that they start.
# bourse-audit shares no code with the exchange or the ledger. bourse-worker is PID 1 of every jail,
# static so that it runs inside any root image. bourse-tensor, bourse-kernel and bourse-plugin
# run inside the jails of their jobs.

function(program name)
  cmake_parse_arguments(PARSE_ARGV 1 PROGRAM "" "" "SOURCES;LINKS")
  foreach(source ${PROGRAM_SOURCES})
    if(NOT EXISTS ${CMAKE_SOURCE_DIR}/${source} AND NOT IS_ABSOLUTE ${source})
      return()
    endif()
  endforeach()
  if(NOT PROGRAM_SOURCES)
    return()
  endif()
  add_executable(${name} ${PROGRAM_SOURCES})
  target_link_libraries(${name} PRIVATE bourse_flags ${PROGRAM_LINKS})
endfunction()

program(bourse-broker SOURCES broker/main.c broker/gateway/accept_guard.c LINKS broker)
program(bourse-audit SOURCES audit/main.c LINKS audit)
program(bourse-provider SOURCES provider/main.c LINKS owner provider)

program(bourse SOURCES consumer/command/main.c LINKS command)

# The worker: no sanitizer (it runs under a system-call filter and tight limits), no library but libc.
file(GLOB worker_sources CONFIGURE_DEPENDS provider/worker/*.c)
if(worker_sources)
  add_executable(bourse-worker ${worker_sources} ${CMAKE_SOURCE_DIR}/base/reader.c ${CMAKE_SOURCE_DIR}/base/writer.c ${CMAKE_SOURCE_DIR}/base/text.c
    ${CMAKE_SOURCE_DIR}/base/pattern.c ${CMAKE_SOURCE_DIR}/formats/staging/staged_link.c)
  target_include_directories(bourse-worker PRIVATE ${CMAKE_SOURCE_DIR})
  target_compile_options(bourse-worker PRIVATE -O2 -D_FORTIFY_SOURCE=2)
  target_link_libraries(bourse-worker PRIVATE bourse_strict)
  set_target_properties(bourse-worker PROPERTIES INTERPROCEDURAL_OPTIMIZATION OFF)
  target_link_options(bourse-worker PRIVATE -static-pie)
endif()

# What programs for jails share with their stand-ins in the tests is compiled once: the objects of a program but for its
# main. They are compiled as those of a program are, and no sanitizer watches them either.
function(jailed_parts name)
  add_library(${name}-parts OBJECT ${ARGN})
  target_include_directories(${name}-parts PRIVATE ${CMAKE_SOURCE_DIR})
  target_compile_options(${name}-parts PRIVATE -O2 -D_FORTIFY_SOURCE=2 -fPIE)
  set_target_properties(${name}-parts PROPERTIES INTERPROCEDURAL_OPTIMIZATION OFF POSITION_INDEPENDENT_CODE OFF)
  target_link_libraries(${name}-parts PRIVATE bourse_strict)
endfunction()
# jailed_program(NAME PARTS SOURCES...): a program of the parts of another, or of its own.
function(jailed_program name parts)
  add_executable(${name} ${ARGN} $<TARGET_OBJECTS:${parts}-parts>)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_compile_options(${name} PRIVATE -O2 -D_FORTIFY_SOURCE=2)
  set_target_properties(${name} PROPERTIES INTERPROCEDURAL_OPTIMIZATION OFF)
  target_link_libraries(${name} PRIVATE bourse_strict)
endfunction()

# The tensor program is dynamic, for oneDNN; its jails show the host's system tree.
jailed_parts(bourse-tensor ${tensor_sources} ${numeric_sources} provider/tensor/ask.c provider/worker/packet.c
  formats/npy.c formats/tensor_op.c formats/template.c base/challenge_product.c base/pattern.c base/precision.c base/reader.c
  base/residual.c base/text.c base/writer.c)
function(tensor_program name)
  jailed_program(${name} bourse-tensor provider/tensor/main.c ${ARGN})
  target_link_libraries(${name} PRIVATE m)
  if(ONEDNN_FOUND)
    target_link_libraries(${name} PRIVATE ${ONEDNN_LIBRARY})
  endif()
endfunction()
tensor_program(bourse-tensor)

# The program for devices of OpenCL and CUDA. It loads their libraries when it runs, so nothing is linked with them.
jailed_parts(bourse-kernel ${kernel_sources} ${numeric_sources} provider/tensor/ask.c
  provider/tensor/challenge_answer.c provider/tensor/gemm_plain.c provider/tensor/operation.c provider/worker/packet.c
  runtime/condition.c formats/kernel/kernel_op.c formats/npy.c formats/tensor_op.c formats/template.c base/challenge_product.c base/pattern.c base/precision.c base/reader.c base/residual.c base/text.c base/writer.c)
target_link_libraries(bourse-kernel-parts PRIVATE PkgConfig::JANSSON)
function(kernel_program name)
  jailed_program(${name} bourse-kernel ${ARGN} provider/kernel/main.c)
  target_link_libraries(${name} PRIVATE PkgConfig::JANSSON Threads::Threads ${CMAKE_DL_LIBS} m)
endfunction()
kernel_program(bourse-kernel)

# The program that speaks with an owner's plug-in.
add_executable(bourse-plugin ${plugin_sources} provider/plugin/main.c provider/tensor/ask.c provider/tensor/challenge_answer.c
  provider/tensor/gemm_plain.c provider/worker/packet.c formats/plugin/plugin_line.c formats/plugin/plugin_word.c base/challenge_product.c
  base/device_kind.c base/reader.c base/text.c base/writer.c)
target_include_directories(bourse-plugin PRIVATE ${CMAKE_SOURCE_DIR})
target_compile_options(bourse-plugin PRIVATE -O2 -D_FORTIFY_SOURCE=2)
set_target_properties(bourse-plugin PROPERTIES INTERPROCEDURAL_OPTIMIZATION OFF)
target_link_libraries(bourse-plugin PRIVATE bourse_strict PkgConfig::JANSSON Threads::Threads)

# The plug-in for devices of PJRT libraries, which it loads when it runs.
jailed_parts(bourse-pjrt ${pjrt_sources} provider/kernel/library.c formats/npy.c formats/plugin/plugin_word.c base/device_kind.c base/text.c)
target_link_libraries(bourse-pjrt-parts PRIVATE PkgConfig::JANSSON)
function(pjrt_program name)
  jailed_program(${name} bourse-pjrt ${ARGN})
  target_link_libraries(${name} PRIVATE PkgConfig::JANSSON ${CMAKE_DL_LIBS})
endfunction()
pjrt_program(bourse-pjrt provider/pjrt/main.c)

# The program that runs WASM modules by wasmtime's library, which it loads when it runs.
jailed_parts(bourse-wasm ${wasm_sources} provider/kernel/library.c base/text.c)
function(wasm_program name)
  jailed_program(${name} bourse-wasm ${ARGN} provider/wasm/main.c)
  target_link_libraries(${name} PRIVATE ${CMAKE_DL_LIBS})
endfunction()
wasm_program(bourse-wasm)

# The script that an engine runs in the jails of WASM modules.
configure_file(provider/executors/wasm_host.cjs ${CMAKE_BINARY_DIR}/bin/bourse-wasm.cjs COPYONLY)

# The program that computes models. It loads ONNX Runtime's library when it runs, so nothing is linked with it.
file(GLOB onnx_format_sources CONFIGURE_DEPENDS formats/onnx/*.c formats/generate/*.c)
list(FILTER onnx_format_sources EXCLUDE REGEX "/job_(onnx|generate)\\.c$")
add_executable(bourse-onnx ${onnx_sources} ${onnx_format_sources} provider/onnx/main.c provider/kernel/library.c provider/tensor/ask.c
  provider/tensor/gemm_onednn.c provider/tensor/gemm_plain.c provider/tensor/gemm.c provider/worker/packet.c formats/npy.c formats/template.c base/pattern.c base/reader.c base/text.c base/writer.c)
target_include_directories(bourse-onnx PRIVATE ${CMAKE_SOURCE_DIR})
target_compile_options(bourse-onnx PRIVATE -O2 -D_FORTIFY_SOURCE=2)
set_target_properties(bourse-onnx PROPERTIES INTERPROCEDURAL_OPTIMIZATION OFF)
target_link_libraries(bourse-onnx PRIVATE bourse_strict PkgConfig::JANSSON Threads::Threads ${CMAKE_DL_LIBS} m)
if(ONEDNN_FOUND)
  target_link_libraries(bourse-onnx PRIVATE ${ONEDNN_LIBRARY})
endif()

# What is installed, and nothing else: scripts/run needs no benchmark.
add_custom_target(programs DEPENDS bourse bourse-broker bourse-provider bourse-worker bourse-audit bourse-tensor bourse-kernel
  bourse-plugin bourse-pjrt bourse-wasm bourse-onnx)
