# One library per room, so that a forbidden include fails to link. `room(NAME sources... LINKS libs...)`.

function(room name)
  cmake_parse_arguments(PARSE_ARGV 1 ROOM "" "" "SOURCES;LINKS")
  if(NOT ROOM_SOURCES)
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE bourse_flags ${ROOM_LINKS})
    return()
  endif()
  add_library(${name} STATIC ${ROOM_SOURCES})
  target_link_libraries(${name} PUBLIC ${ROOM_LINKS} PRIVATE bourse_flags)
  target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/generated)
endfunction()

# The one definition of the wire schema, compiled apart: generated code is not held to our warnings.
set(SCHEMA ${CMAKE_BINARY_DIR}/generated/protocol/bourse.pb-c)
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/generated/protocol)
add_custom_command(
  OUTPUT ${SCHEMA}.c ${SCHEMA}.h
  COMMAND ${PROTOC_C} --c_out=${CMAKE_BINARY_DIR}/generated -I ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/protocol/bourse.proto
  DEPENDS ${CMAKE_SOURCE_DIR}/protocol/bourse.proto VERBATIM)
add_library(schema STATIC ${SCHEMA}.c ${SCHEMA}.h)
target_link_libraries(schema PUBLIC PkgConfig::PROTOBUFC)
target_include_directories(schema SYSTEM PUBLIC ${CMAKE_BINARY_DIR}/generated)
if(BOURSE_SANITIZE)
  target_compile_options(schema PRIVATE -fsanitize=${BOURSE_SANITIZE})
endif()

# What is known of devices: a table in C, made of the file that people read.
set(CATALOGUE ${CMAKE_BINARY_DIR}/generated/planner/devices.inc)
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/generated/planner)
add_custom_command(
  OUTPUT ${CATALOGUE}
  COMMAND ${AWK} -f ${CMAKE_SOURCE_DIR}/planner/cost/catalogue.awk ${CMAKE_SOURCE_DIR}/planner/cost/devices.csv > ${CATALOGUE}.new
  COMMAND ${CMAKE_COMMAND} -E rename ${CATALOGUE}.new ${CATALOGUE}
  DEPENDS ${CMAKE_SOURCE_DIR}/planner/cost/catalogue.awk ${CMAKE_SOURCE_DIR}/planner/cost/devices.csv VERBATIM)

file(GLOB base_sources CONFIGURE_DEPENDS base/*.c)
file(GLOB formats_sources CONFIGURE_DEPENDS formats/*.c formats/*/*.c)
file(GLOB protocol_sources CONFIGURE_DEPENDS protocol/*.c protocol/*/*.c)
file(GLOB matching_sources CONFIGURE_DEPENDS matching/*.c)
file(GLOB planner_sources CONFIGURE_DEPENDS planner/*/*.c planner/*/*/*.c)
list(APPEND planner_sources ${CATALOGUE})
file(GLOB exchange_sources CONFIGURE_DEPENDS exchange/*.c exchange/*/*.c exchange/*/*/*.c)
file(GLOB runtime_sources CONFIGURE_DEPENDS runtime/*.c runtime/*/*.c)
file(GLOB ledger_sources CONFIGURE_DEPENDS ledger/*.c)
file(GLOB ledger_sqlite_sources CONFIGURE_DEPENDS ledger/store/*.c)

# Pure cores.
room(base SOURCES ${base_sources} LINKS PkgConfig::CRYPTO m)
room(formats SOURCES ${formats_sources} LINKS base PkgConfig::YAML PkgConfig::JANSSON)
room(protocol SOURCES ${protocol_sources} LINKS base schema PkgConfig::SODIUM)
# Two halves of a word put together in a vector register are slower to read back than they were to write.
set_source_files_properties(matching/book.c matching/ladder.c PROPERTIES COMPILE_OPTIONS "$<$<NOT:$<CONFIG:Debug>>:-O3;-fno-tree-slp-vectorize>")
room(matching SOURCES ${matching_sources} LINKS base)
room(ledger SOURCES ${ledger_sources} LINKS base PkgConfig::SODIUM)
# What the exchange calls of it computes with integers only: a floating-point number in it does not compile.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|aarch64|arm64)$")
  set_source_files_properties(planner/schedule/online.c PROPERTIES COMPILE_OPTIONS "-mgeneral-regs-only")
endif()
room(planner SOURCES ${planner_sources} LINKS base)
room(exchange SOURCES ${exchange_sources} LINKS matching ledger planner base)

# Adapters: the world behind small functions.
room(ledger_sqlite SOURCES ${ledger_sqlite_sources} LINKS ledger base PkgConfig::SQLITE)
room(runtime SOURCES ${runtime_sources} LINKS protocol formats base PkgConfig::ZMQ PkgConfig::SODIUM Threads::Threads)

# Shells. Each session is a pure core of its own.
file(GLOB broker_sources CONFIGURE_DEPENDS broker/*.c broker/*/*.c broker/*/*/*.c)
list(FILTER broker_sources EXCLUDE REGEX "broker/main\\.c$")
file(GLOB audit_sources CONFIGURE_DEPENDS audit/*.c)
list(FILTER audit_sources EXCLUDE REGEX "/main\\.c$")
room(broker SOURCES ${broker_sources}
  LINKS exchange ledger_sqlite ledger protocol formats runtime PkgConfig::JANSSON PkgConfig::CURL Threads::Threads)
room(audit SOURCES ${audit_sources} LINKS protocol base PkgConfig::SQLITE PkgConfig::JANSSON)

file(GLOB provider_session_sources CONFIGURE_DEPENDS provider/session/*.c)
file(GLOB provider_sources CONFIGURE_DEPENDS provider/*.c provider/work/*.c provider/jail/*.c provider/device/*.c
  provider/executors/*.c provider/idle/*.c provider/worker/packet.c)
list(FILTER provider_sources EXCLUDE REGEX "/main\\.c$")
# What bourse-tensor computes, as a library: for tests and benchmarks. No agent links it.
file(GLOB tensor_sources CONFIGURE_DEPENDS provider/tensor/*.c)
list(FILTER tensor_sources EXCLUDE REGEX "/(main|ask)\\.c$")
# What bourse-kernel does, as a library for tests. No agent links it.
file(GLOB kernel_sources CONFIGURE_DEPENDS provider/kernel/*.c provider/kernel/product/*.c)
list(FILTER kernel_sources EXCLUDE REGEX "/main\\.c$")
# What bourse-plugin does, as a library for tests. No agent links it.
file(GLOB plugin_sources CONFIGURE_DEPENDS provider/plugin/*.c)
list(FILTER plugin_sources EXCLUDE REGEX "/main\\.c$")
# What bourse-pjrt does, likewise.
file(GLOB pjrt_sources CONFIGURE_DEPENDS provider/pjrt/*.c)
list(FILTER pjrt_sources EXCLUDE REGEX "/main\\.c$")
# What bourse-wasm does, likewise.
file(GLOB wasm_sources CONFIGURE_DEPENDS provider/wasm/*.c)
list(FILTER wasm_sources EXCLUDE REGEX "/main\\.c$")
# What bourse-onnx does, likewise.
file(GLOB onnx_sources CONFIGURE_DEPENDS provider/onnx/*.c provider/onnx/*/*.c provider/onnx/*/*/*.c)
list(FILTER onnx_sources EXCLUDE REGEX "/main\\.c$")
# Elements of four bytes are copied as such, whatever they are, and arithmetic sets no errno.
file(GLOB onnx_own_sources CONFIGURE_DEPENDS provider/onnx/own/*.c provider/onnx/own/op/*.c)
set_source_files_properties(${onnx_own_sources} PROPERTIES COMPILE_OPTIONS
  "-fno-strict-aliasing;-fno-math-errno;$<$<NOT:$<CONFIG:Debug>>:-O3>")
set_source_files_properties(provider/tensor/gemm_plain.c numeric/freivalds.c numeric/seeded_check.c base/residual.c
  base/precision.c base/challenge_product.c PROPERTIES COMPILE_OPTIONS "-O3")
# What referees, consumers and tests compute alike.
file(GLOB numeric_sources CONFIGURE_DEPENDS numeric/*.c)
room(numeric SOURCES ${numeric_sources} LINKS base m)
room(tensor SOURCES ${tensor_sources} LINKS numeric formats base m)
room(plugin SOURCES ${plugin_sources} LINKS tensor formats base)
room(kernel SOURCES ${kernel_sources} LINKS tensor formats runtime base PkgConfig::JANSSON Threads::Threads ${CMAKE_DL_LIBS})
room(wasm SOURCES ${wasm_sources} LINKS kernel base)
room(onnx SOURCES ${onnx_sources} LINKS kernel tensor formats base PkgConfig::JANSSON Threads::Threads ${CMAKE_DL_LIBS} m)
room(pjrt SOURCES ${pjrt_sources} LINKS kernel formats base PkgConfig::JANSSON)
if(ONEDNN_FOUND)
  set_source_files_properties(provider/tensor/gemm_onednn.c PROPERTIES
    COMPILE_DEFINITIONS BOURSE_ONEDNN INCLUDE_DIRECTORIES ${ONEDNN_INCLUDE})
  target_link_libraries(tensor PUBLIC ${ONEDNN_LIBRARY})
endif()

# What the probe measures is the machine, not the build.
set_source_files_properties(provider/device/probe.c PROPERTIES COMPILE_OPTIONS "-O2;-ftree-vectorize;-fno-sanitize=all")
room(provider_session SOURCES ${provider_session_sources} LINKS protocol base)
room(provider SOURCES ${provider_sources}
  LINKS provider_session planner runtime formats PkgConfig::HWLOC PkgConfig::SECCOMP PkgConfig::JANSSON)

# The owner's commands of `bourse-provider`: the agent's program, not the agent.
file(GLOB owner_sources CONFIGURE_DEPENDS provider/command/*.c)
room(owner SOURCES ${owner_sources} LINKS provider consumer formats PkgConfig::JANSSON)

file(GLOB consumer_session_sources CONFIGURE_DEPENDS consumer/client/session*.c)
file(GLOB consumer_sources CONFIGURE_DEPENDS consumer/client/*.c consumer/job/*.c consumer/job/*/*.c consumer/market/*.c consumer/model/*.c consumer/product/*.c consumer/train/*.c)
list(FILTER consumer_sources EXCLUDE REGEX "/session[^/]*\\.c$")
room(consumer_session SOURCES ${consumer_session_sources} LINKS protocol base)
room(consumer SOURCES ${consumer_sources}
  LINKS consumer_session ledger planner numeric formats runtime protocol PkgConfig::JANSSON PkgConfig::ZLIB PkgConfig::ZSTD m)

# The `bourse` command but for its main(), so that tests reach its tables.
file(GLOB command_sources CONFIGURE_DEPENDS consumer/command/*.c consumer/command/*/*.c)
list(FILTER command_sources EXCLUDE REGEX "/main\\.c$")
room(command SOURCES ${command_sources} LINKS consumer)
