# tests/unit/FOLDER/test_X.c and tests/property/prop_X.c become one program each, linked to every room; a
# test exits 77 to be shown as skipped. Integration tests are scripts given the build's bin folder.

find_library(SUBUNIT subunit)
add_library(test_support INTERFACE)
target_link_libraries(test_support INTERFACE bourse_flags PkgConfig::CHECK
  broker audit exchange ledger_sqlite ledger matching planner provider provider_session tensor pjrt wasm onnx kernel plugin command consumer
  consumer_session
  runtime formats protocol base m)
if(SUBUNIT)
  target_link_libraries(test_support INTERFACE ${SUBUNIT})
endif()
target_compile_definitions(test_support INTERFACE
  BOURSE_SOURCE_DIR="${CMAKE_SOURCE_DIR}" BOURSE_BIN_DIR="${CMAKE_BINARY_DIR}/bin")
set(cheap_assertions -include ${CMAKE_SOURCE_DIR}/tests/support/assertions.h)
target_compile_options(test_support INTERFACE ${cheap_assertions})

file(GLOB support_sources CONFIGURE_DEPENDS tests/support/*.c)
add_library(test_support_code STATIC ${support_sources})
target_link_libraries(test_support_code PUBLIC test_support)

# The tests in which threads meet: scripts/test builds the target `threads` under ThreadSanitizer and runs the label `threads`.
# They are linked to the rooms that they use, so that the other rooms are not compiled for them.
set(threaded test_queue test_hasher test_relay test_blob_client test_blob_local test_blob_ticket test_upload_stream test_control
  test_provider_store test_provider_store_full test_provider_store_lent test_reader test_gateway test_link test_link_explain
  test_hostile_peers test_log test_journal_etcd test_own_threads)
add_library(threads_support INTERFACE)
target_link_libraries(threads_support INTERFACE bourse_flags PkgConfig::CHECK $<TARGET_FILE:test_support_code>
  onnx broker audit exchange ledger_sqlite ledger matching provider provider_session consumer consumer_session runtime formats protocol base m)
if(SUBUNIT)
  target_link_libraries(threads_support INTERFACE ${SUBUNIT})
endif()
target_compile_definitions(threads_support INTERFACE
  BOURSE_SOURCE_DIR="${CMAKE_SOURCE_DIR}" BOURSE_BIN_DIR="${CMAKE_BINARY_DIR}/bin")
target_compile_options(threads_support INTERFACE ${cheap_assertions})
set_target_properties(test_support_code PROPERTIES OPTIMIZE_DEPENDENCIES ON) # its archive does not wait for the rooms

# What is freed stays out of use until 8 MiB are, not 256: memory that is never used again is memory that the kernel has to
# clear, which was a quarter of what the crash tests take.
set(asan_options handle_sigill=1:quarantine_size_mb=8)
# A bound is for what hangs, not for a machine that is slow or stands still for a while. Check's own
# bound is 4 s for each test.
set(test_environment ASAN_OPTIONS=${asan_options} TSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/tests/tsan.supp CK_DEFAULT_TIMEOUT=60
  CK_TIMEOUT_MULTIPLIER=5)

# Tests that search for minutes with sanitizers are optimised and without them (cmake/sim.cmake has
# the rooms). The unit tests of those rooms run with sanitizers, and so does sim_sanitized.
set(searching prop_plan prop_plan_objectives prop_plan_split prop_plan_stages prop_plan_team prop_plan_templates
  prop_plan_unknown prop_schedulers prop_exchange prop_orders prop_accounts prop_spot prop_explain prop_explain_asks
  prop_explain_forecast)
set(searching_support checks_model disputes_model hand_market journal_digest market_model sample_graph sample_work
  schedule_verify slow_market slow_prices small_market small_market_writer template_steps)
list(TRANSFORM searching_support PREPEND tests/support/)
list(TRANSFORM searching_support APPEND .c)
set(keep_memory MALLOC_TRIM_THRESHOLD_=2000000000 MALLOC_MMAP_THRESHOLD_=2000000000)
set(searching_options -O2 -g1 -Wall -Wextra -Wshadow -Wconversion -Wvla -Wstrict-prototypes
  $<$<BOOL:${BOURSE_WERROR}>:-Werror>)
add_library(fast_support STATIC ${searching_support})
target_link_libraries(fast_support PUBLIC fast_planner fast_exchange fast_ledger fast_formats fast_protocol fast_base PkgConfig::CHECK m)
target_compile_definitions(fast_support PUBLIC _GNU_SOURCE BOURSE_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
target_compile_options(fast_support PUBLIC ${cheap_assertions} PRIVATE ${searching_options})
function(add_optimised_test name source)
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE fast_support)
  target_compile_options(${name} PRIVATE ${searching_options})
endfunction()

# Check gives each test a process of its own, which looks for leaks at its end: two thirds of the time of most programs. The
# unit tests run one after another in one process, which looks once, except for these: each of their tests starts anew.
set(forking test_accept_guard test_log test_numbers test_place test_tensor)

file(GLOB test_sources CONFIGURE_DEPENDS tests/unit/*/test_*.c tests/unit/*/*/test_*.c tests/unit/*/*/*/test_*.c tests/integration/test_*.c tests/property/prop_*.c tests/golden/golden_*.c
  tests/jail/jail_*.c)
foreach(source ${test_sources})
  get_filename_component(name ${source} NAME_WE)
  if(name IN_LIST searching)
    add_optimised_test(${name} ${source})
  else()
    add_executable(${name} ${source})
    if(name IN_LIST threaded)
      target_link_libraries(${name} PRIVATE threads_support)
      add_dependencies(${name} test_support_code)
    else()
      target_link_libraries(${name} PRIVATE test_support_code)
    endif()
  endif()
  if(source MATCHES "/unit/") # it is compiled more often than it computes
    target_compile_options(${name} PRIVATE $<$<CONFIG:Debug>:-O0>)
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 1800
    ENVIRONMENT "${test_environment}")
  if(name IN_LIST searching) # memory that is freed stays for the next plan; the kernel need not clear it again
    set_tests_properties(${name} PROPERTIES ENVIRONMENT "${test_environment};${keep_memory}")
  endif()
  if(source MATCHES "/unit/" AND NOT name IN_LIST forking)
    set_tests_properties(${name} PROPERTIES ENVIRONMENT "${test_environment};CK_FORK=no")
  endif()
  if(name MATCHES "^test_(wire|blob)_floods$")
    set_tests_properties(${name} PROPERTIES RUN_SERIAL ON LABELS floods)
  elseif(source MATCHES "/integration/" AND NOT name MATCHES "^test_wire_(answers|noise)$")
    set_tests_properties(${name} PROPERTIES RUN_SERIAL ON LABELS measuring)
  endif()
endforeach()

# Libraries in the place of OpenCL's, CUDA's, NVML's, cuBLASLt's, PJRT's, wasmtime's and ONNX Runtime's, which fail where they are told to,
# and one in the place of the driver's files.
foreach(api opencl cuda nvml cublaslt pjrt wasmtime driver_files onnxruntime)
  add_library(fake-${api} SHARED tests/programs/fake_${api}.c)
  target_include_directories(fake-${api} PRIVATE ${CMAKE_SOURCE_DIR})
  target_compile_definitions(fake-${api} PRIVATE _GNU_SOURCE)
  target_compile_options(fake-${api} PRIVATE -Wall -Wextra -Wshadow -Wconversion)
  set_target_properties(fake-${api} PROPERTIES INTERPROCEDURAL_OPTIMIZATION OFF LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
endforeach()
# pocl frees little at its end.
set_tests_properties(prop_device_product PROPERTIES ENVIRONMENT "${test_environment};ASAN_OPTIONS=${asan_options}:detect_leaks=0")
target_sources(fake-opencl PRIVATE provider/tensor/gemm_plain.c)
target_sources(fake-cuda PRIVATE tests/programs/fake_cuda_memory.c tests/programs/ptx_model.c)
target_link_libraries(fake-cuda PRIVATE m)
add_dependencies(test_kernel_engine fake-opencl)
target_compile_definitions(test_kernel_engine PRIVATE BOURSE_FAKE_OPENCL="$<TARGET_FILE:fake-opencl>")
foreach(name test_cuda_engine test_cuda_chain)
  add_dependencies(${name} fake-cuda)
  target_compile_definitions(${name} PRIVATE BOURSE_FAKE_CUDA="$<TARGET_FILE:fake-cuda>")
endforeach()
add_dependencies(test_engine_buffers fake-opencl fake-cuda)
target_compile_definitions(test_engine_buffers PRIVATE BOURSE_FAKE_OPENCL="$<TARGET_FILE:fake-opencl>" BOURSE_FAKE_CUDA="$<TARGET_FILE:fake-cuda>")
add_dependencies(test_engine_ahead fake-opencl fake-cuda)
target_compile_definitions(test_engine_ahead PRIVATE BOURSE_FAKE_OPENCL="$<TARGET_FILE:fake-opencl>" BOURSE_FAKE_CUDA="$<TARGET_FILE:fake-cuda>")
add_dependencies(test_cublaslt fake-cuda fake-cublaslt)
target_compile_definitions(test_cublaslt PRIVATE BOURSE_FAKE_CUDA="$<TARGET_FILE:fake-cuda>"
  BOURSE_FAKE_CUBLASLT="$<TARGET_FILE:fake-cublaslt>")
add_dependencies(test_nvml fake-nvml)
target_compile_definitions(test_nvml PRIVATE BOURSE_FAKE_NVML="$<TARGET_FILE:fake-nvml>")
add_dependencies(test_mig fake-nvml fake-cuda)
target_compile_definitions(test_mig PRIVATE BOURSE_FAKE_NVML="$<TARGET_FILE:fake-nvml>" BOURSE_FAKE_CUDA="$<TARGET_FILE:fake-cuda>")
# bourse-kernel with the fake libraries inside, as a jail shows no library of the build's: tests only.
kernel_program(bourse-kernel-fake tests/programs/fake_cuda.c tests/programs/fake_cuda_memory.c tests/programs/fake_nvml.c tests/programs/ptx_model.c)
target_compile_definitions(bourse-kernel-fake PRIVATE _GNU_SOURCE KERNEL_CUDA_LIBRARY=NULL KERNEL_NVML_LIBRARY=NULL
  KERNEL_CUBLASLT_LIBRARIES="none")
set_target_properties(bourse-kernel-fake PROPERTIES ENABLE_EXPORTS ON)
# The same, with a device of which the products are wrong behind its trial.
kernel_program(bourse-kernel-fake-lies tests/programs/fake_cuda.c tests/programs/fake_cuda_memory.c tests/programs/fake_nvml.c tests/programs/ptx_model.c)
target_compile_definitions(bourse-kernel-fake-lies PRIVATE _GNU_SOURCE FAKE_LIES KERNEL_CUDA_LIBRARY=NULL KERNEL_NVML_LIBRARY=NULL
  KERNEL_CUBLASLT_LIBRARIES="none")
set_target_properties(bourse-kernel-fake-lies PROPERTIES ENABLE_EXPORTS ON)
# The same, with a device that is fast because it leaves out large launches.
kernel_program(bourse-kernel-fake-boasts tests/programs/fake_cuda.c tests/programs/fake_cuda_memory.c tests/programs/fake_nvml.c tests/programs/ptx_model.c)
target_compile_definitions(bourse-kernel-fake-boasts PRIVATE _GNU_SOURCE FAKE_BOASTS KERNEL_CUDA_LIBRARY=NULL KERNEL_NVML_LIBRARY=NULL
  KERNEL_CUBLASLT_LIBRARIES="none")
set_target_properties(bourse-kernel-fake-boasts PROPERTIES ENABLE_EXPORTS ON)
# The same, with devices that say they are a model of the catalogue, which the stand-in is not as fast as.
kernel_program(bourse-kernel-fake-h100 tests/programs/fake_cuda.c tests/programs/fake_cuda_memory.c tests/programs/fake_nvml.c tests/programs/ptx_model.c)
target_compile_definitions(bourse-kernel-fake-h100 PRIVATE _GNU_SOURCE FAKE_NAME="NVIDIA H100 80GB HBM3" KERNEL_CUDA_LIBRARY=NULL KERNEL_NVML_LIBRARY=NULL
  KERNEL_CUBLASLT_LIBRARIES="none")
set_target_properties(bourse-kernel-fake-h100 PROPERTIES ENABLE_EXPORTS ON)
# The same, with a GPU that is split by MIG.
kernel_program(bourse-kernel-fake-mig tests/programs/fake_cuda.c tests/programs/fake_cuda_memory.c tests/programs/fake_nvml.c tests/programs/ptx_model.c)
target_compile_definitions(bourse-kernel-fake-mig PRIVATE _GNU_SOURCE FAKE_MIG KERNEL_CUDA_LIBRARY=NULL KERNEL_NVML_LIBRARY=NULL
  KERNEL_CUBLASLT_LIBRARIES="none")
set_target_properties(bourse-kernel-fake-mig PROPERTIES ENABLE_EXPORTS ON)
# The same, with cuBLASLt's stand-in, too.
kernel_program(bourse-kernel-fake-lt tests/programs/fake_cuda.c tests/programs/fake_cuda_memory.c tests/programs/fake_nvml.c tests/programs/fake_cublaslt.c
  tests/programs/ptx_model.c)
target_compile_definitions(bourse-kernel-fake-lt PRIVATE _GNU_SOURCE KERNEL_CUDA_LIBRARY=NULL KERNEL_NVML_LIBRARY=NULL
  KERNEL_CUBLASLT_LIBRARIES=NULL)
set_target_properties(bourse-kernel-fake-lt PROPERTIES ENABLE_EXPORTS ON)

target_sources(fake-pjrt PRIVATE tests/programs/mlir_model.c)
foreach(name test_pjrt test_pjrt_failures)
  add_dependencies(${name} fake-pjrt bourse-pjrt)
  target_compile_definitions(${name} PRIVATE BOURSE_FAKE_PJRT="$<TARGET_FILE:fake-pjrt>")
endforeach()
pjrt_program(bourse-pjrt-fake tests/programs/pjrt_inside.c tests/programs/fake_pjrt.c tests/programs/mlir_model.c)
target_compile_definitions(bourse-pjrt-fake PRIVATE _GNU_SOURCE)
set_target_properties(bourse-pjrt-fake PROPERTIES ENABLE_EXPORTS ON)
# What XLA's header says about our structs: pass -DPJRT_INCLUDE=FOLDER where it is unpacked.
find_path(PJRT_INCLUDE xla/pjrt/c/pjrt_c_api.h)
if(PJRT_INCLUDE)
  target_include_directories(test_pjrt_header SYSTEM PRIVATE ${PJRT_INCLUDE})
  target_compile_definitions(test_pjrt_header PRIVATE BOURSE_PJRT_HEADER)
endif()

foreach(name test_ort test_ort_provider test_onnx_serve)
  add_dependencies(${name} fake-onnxruntime)
  target_compile_definitions(${name} PRIVATE BOURSE_FAKE_ONNXRUNTIME="$<TARGET_FILE:fake-onnxruntime>")
endforeach()

# ONNX's own cases as files, and computed without a market.
add_executable(onnx-cases tests/programs/onnx_cases.c)
target_compile_definitions(onnx-cases PRIVATE _GNU_SOURCE)
target_link_libraries(onnx-cases PRIVATE bourse_flags onnx runtime formats base m)
add_executable(train-net tests/programs/train_net.c tests/support/onnx_writer.c)
target_link_libraries(train-net PRIVATE bourse_flags runtime formats base m)
add_executable(onnx-blocks tests/programs/onnx_blocks.c tests/support/onnx_writer.c)
target_link_libraries(onnx-blocks PRIVATE bourse_flags formats base m)

# The program that trains the small language model of tests/golden/decoder. Its test goes a few steps. It computes for minutes,
# so it is optimised and without sanitizers.
file(GLOB train_decoder_sources CONFIGURE_DEPENDS tests/programs/decoder/*.c)
add_executable(train-decoder ${train_decoder_sources} tests/support/onnx_writer.c formats/generate/word_split.c formats/generate/unicode_class.c)
target_include_directories(train-decoder PRIVATE ${CMAKE_SOURCE_DIR})
target_compile_definitions(train-decoder PRIVATE _GNU_SOURCE)
target_compile_options(train-decoder PRIVATE -O3 -ffast-math -Wall -Wextra -Wshadow $<$<BOOL:${BOURSE_WERROR}>:-Werror>)
target_link_libraries(train-decoder PRIVATE m)
set_target_properties(train-decoder PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests INTERPROCEDURAL_OPTIMIZATION OFF)
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/tests/decoder)
add_test(NAME train_decoder COMMAND train-decoder ${CMAKE_BINARY_DIR}/tests/decoder 8)
set_tests_properties(train_decoder PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 600)

set(fake_wasmtime_parts tests/programs/fake_wasmtime_module.c tests/programs/fake_wasmtime_run.c)
target_sources(fake-wasmtime PRIVATE ${fake_wasmtime_parts})
add_dependencies(test_wasmtime fake-wasmtime bourse-wasm)
target_compile_definitions(test_wasmtime PRIVATE BOURSE_FAKE_WASMTIME="$<TARGET_FILE:fake-wasmtime>")
wasm_program(bourse-wasm-fake tests/programs/fake_wasmtime.c ${fake_wasmtime_parts})
target_compile_definitions(bourse-wasm-fake PRIVATE _GNU_SOURCE WASM_LIBRARY_INSIDE)
set_target_properties(bourse-wasm-fake PROPERTIES ENABLE_EXPORTS ON)
# What wasmtime's header says about our types: pass -DWASMTIME_INCLUDE=FOLDER where it is unpacked.
find_path(WASMTIME_INCLUDE wasmtime.h)
if(WASMTIME_INCLUDE)
  target_include_directories(test_wasmtime_header SYSTEM PRIVATE ${WASMTIME_INCLUDE})
  target_compile_definitions(test_wasmtime_header PRIVATE BOURSE_WASMTIME_HEADER)
endif()

# What the CUDA toolkit says about our numbers and PTX. The tests skip themselves without it.
find_path(CUDA_INCLUDE cuda.h PATHS /usr/local/cuda/include)
find_program(PTXAS ptxas PATHS /usr/local/cuda/bin)
if(CUDA_INCLUDE)
  target_include_directories(test_cuda_header SYSTEM PRIVATE ${CUDA_INCLUDE})
  target_compile_definitions(test_cuda_header PRIVATE BOURSE_CUDA_HEADER)
  if(EXISTS ${CUDA_INCLUDE}/cublasLt.h)
    target_include_directories(test_cublaslt_header SYSTEM PRIVATE ${CUDA_INCLUDE})
    target_compile_definitions(test_cublaslt_header PRIVATE BOURSE_CUBLASLT_HEADER)
  endif()
endif()
if(PTXAS)
  target_compile_definitions(test_cuda_ptx PRIVATE BOURSE_PTXAS="${PTXAS}")
endif()

target_sources(test_accept_guard PRIVATE ${CMAKE_SOURCE_DIR}/broker/gateway/accept_guard.c) # its accept is a program's own, in no library

# The worker is in no library either, and the test's kill must never be the kernel's.
target_sources(test_freeze PRIVATE ${CMAKE_SOURCE_DIR}/provider/worker/freeze.c)
target_link_options(test_freeze PRIVATE -Wl,--wrap=kill)

# Crash tests: each program has its own open, write, fsync ... in front of libc's (tests/crash/disk.c).
file(GLOB crash_sources CONFIGURE_DEPENDS tests/crash/*.c)
set(crash_support ${crash_sources})
list(FILTER crash_support EXCLUDE REGEX "/crash_[^/]*\\.c$")
list(FILTER crash_sources INCLUDE REGEX "/crash_[^/]*\\.c$")
foreach(source ${crash_sources})
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source} ${crash_support})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_link_libraries(${name} PRIVATE test_support)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT 9000 ENVIRONMENT "${test_environment}")
endforeach()

foreach(name crash_memory test_shortage)
  target_link_options(${name} PRIVATE -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc)
endforeach()

target_link_options(test_link_explain PRIVATE -Wl,--wrap=getaddrinfo)

# What runs inside the jails of tests/jail: static, without sanitizers.
if(EXISTS ${CMAKE_SOURCE_DIR}/tests/jail/probe.c)
  add_executable(jail-probe tests/jail/probe.c)
  target_compile_definitions(jail-probe PRIVATE _GNU_SOURCE)
  target_compile_options(jail-probe PRIVATE -Wall -Wextra -Wshadow -Wconversion -O1)
  set_target_properties(jail-probe PROPERTIES INTERPROCEDURAL_OPTIMIZATION OFF POSITION_INDEPENDENT_CODE OFF)
  target_link_options(jail-probe PRIVATE -static)
endif()

# The fuzz targets over their corpora, cut and changed a little, without a fuzzer: one program, one test each.
file(GLOB fuzz_sources CONFIGURE_DEPENDS tests/fuzz/fuzz_*.c)
set(fuzz_table "")
foreach(source ${fuzz_sources})
  get_filename_component(name ${source} NAME_WE)
  string(REPLACE "fuzz_" "" subject ${name})
  string(APPEND fuzz_table "TARGET(${subject})\n")
  set_source_files_properties(${source} PROPERTIES COMPILE_DEFINITIONS LLVMFuzzerTestOneInput=${name})
  add_test(NAME corpus_${subject} COMMAND fuzz_replay ${subject} ${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${subject})
  set_tests_properties(corpus_${subject} PROPERTIES TIMEOUT 1800)
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/fuzz_targets.inc CONTENT "${fuzz_table}" @ONLY)
add_executable(fuzz_replay tests/fuzz/replay.c ${fuzz_sources})
set_target_properties(fuzz_replay PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
target_link_libraries(fuzz_replay PRIVATE test_support_code)

# Those that compare times get the machine to themselves. Those that wait most of the time share it by twos (cmake/order.cmake).
# Among these are clusters: a leader that is silent for two seconds is deposed.
set(measuring matmul_speeds)
set(measuring_and_waiting idle_key switches cluster copies upgrade)
if("$ENV{BOURSE_LONG}" STREQUAL yes)
  list(APPEND measuring restart)
endif()
file(GLOB script_tests CONFIGURE_DEPENDS tests/integration/test_*.sh)
foreach(script ${script_tests})
  get_filename_component(name ${script} NAME_WE)
  add_test(NAME integration_${name} COMMAND bash ${script} ${CMAKE_BINARY_DIR}/bin)
  set_tests_properties(integration_${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 1800
    ENVIRONMENT "${test_environment}")
  string(REPLACE "test_" "" subject ${name})
  if(subject IN_LIST measuring)
    set_tests_properties(integration_${name} PROPERTIES RUN_SERIAL ON LABELS measuring)
  elseif(subject IN_LIST measuring_and_waiting)
    set_tests_properties(integration_${name} PROPERTIES LABELS measuring)
  endif()
endforeach()

add_custom_target(threads DEPENDS ${threaded} bourse-broker) # test_hostile_peers starts the broker's own program
set_property(TEST ${threaded} APPEND PROPERTY LABELS threads)

# A search for leaks that finds none, or finds leaks that are none, would make the others worthless.
if(TARGET leak_roots)
  add_executable(leak-probe tests/programs/leak_probe.c)
  target_link_libraries(leak-probe PRIVATE bourse_flags)
  set_target_properties(leak-probe PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_test(NAME leaks_found COMMAND leak-probe leak)
  set_tests_properties(leaks_found PROPERTIES ENVIRONMENT "${test_environment}"
    PASS_REGULAR_EXPRESSION "67108904 byte.s. leaked in 2 allocation.s.")
  add_test(NAME leaks_held COMMAND leak-probe held)
  set_tests_properties(leaks_held PROPERTIES ENVIRONMENT "${test_environment}")
endif()

# A known bug that no longer fits its file would go untested until the next long run.
add_test(NAME mutants_fit COMMAND ${CMAKE_SOURCE_DIR}/scripts/mutate --list)

# An attack of the list whose test is gone would be tried no more.
add_test(NAME attacks_known COMMAND ${CMAKE_SOURCE_DIR}/scripts/attack --list --build ${CMAKE_BINARY_DIR})
