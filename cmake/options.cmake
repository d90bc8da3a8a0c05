# How everything is compiled: the language, the warnings, the hardening, the sanitizers.

option(BOURSE_TESTS "build the tests" ON)
option(BOURSE_FUZZ "build the libFuzzer targets (clang)" OFF)
option(BOURSE_COVERAGE "count which lines run (gcov)" OFF)
option(BOURSE_WERROR "warnings are errors" OFF)
option(BOURSE_QUICK_DEBUG "a Debug build is optimised a little, for tests that compute for long" OFF)
option(BOURSE_UNDEFINED_TRAPS "undefined behaviour ends a program without a word of what it was" OFF)
set(BOURSE_SANITIZE "" CACHE STRING "sanitizers, as -fsanitize takes them")

# With -O1, code with sanitizers computes 1.5 to 2.5 times as fast, and takes a third longer to compile. The sanitizers see
# what they see without. Tables of lines are enough for their reports. The two warnings need an optimiser to be given at
# all; at -O1 it knows too little of the lengths to be right.
if(BOURSE_QUICK_DEBUG)
  set(CMAKE_C_FLAGS_DEBUG "-g1 -O1 -Wno-format-truncation -Wno-restrict")
endif()

# What counts lines needs no more debug information than tables of lines. bourse-worker is copied into each jail, at the
# cost of the jail's memory, so with all of it the jails of the tightest tests did not start.
if(BOURSE_COVERAGE)
  set(CMAKE_C_FLAGS_DEBUG "-g1")
endif()

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

# What every program of ours is compiled with, those that run in jails without sanitizers too.
add_library(bourse_strict INTERFACE)
target_compile_definitions(bourse_strict INTERFACE _GNU_SOURCE)
target_compile_options(bourse_strict INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wvla
  -fno-omit-frame-pointer -fstack-protector-strong)
if(BOURSE_WERROR)
  target_compile_options(bourse_strict INTERFACE -Werror)
endif()
target_link_options(bourse_strict INTERFACE -Wl,-z,relro,-z,now)

add_library(bourse_flags INTERFACE)
target_link_libraries(bourse_flags INTERFACE bourse_strict)
target_compile_definitions(bourse_flags INTERFACE BOURSE_VERSION="${PROJECT_VERSION}")
target_include_directories(bourse_flags INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/generated)
# Structs of a few hundred bytes are cleared and copied by the library, which knows the processor.
# An instruction for it would take longer to begin than to end.
include(CheckCCompilerFlag)
foreach(what memset memcpy)
  set(strategy -m${what}-strategy=unrolled_loop:128:noalign,libcall:-1:noalign)
  check_c_compiler_flag(${strategy} BOURSE_HAS_${what}_STRATEGY)
  if(BOURSE_HAS_${what}_STRATEGY)
    target_compile_options(bourse_flags INTERFACE $<$<NOT:$<CONFIG:Debug>>:${strategy}>)
  endif()
endforeach()
if(BOURSE_SANITIZE)
  target_compile_options(bourse_flags INTERFACE -fsanitize=${BOURSE_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(bourse_flags INTERFACE -fsanitize=${BOURSE_SANITIZE})
  # The words take 5 MiB of each program, which are linked, loaded and searched for leaks. With ASAN_OPTIONS=handle_sigill=1 a
  # program still says the line; the preset `dev` says all.
  if(BOURSE_UNDEFINED_TRAPS AND BOURSE_SANITIZE MATCHES "undefined")
    target_compile_options(bourse_flags INTERFACE -fsanitize-undefined-trap-on-error)
  endif()
  # What may lie anywhere has some 200,000 addresses to put right when it starts, most of them the sanitizers' own. Tests start
  # programs by the ten thousand. ThreadSanitizer wants its programs movable.
  if(BOURSE_SANITIZE MATCHES "address")
    target_link_options(bourse_flags INTERFACE $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
  endif()
  # An archive for tests names its objects instead of holding them, and `ar` writes the index by itself.
  set(CMAKE_C_ARCHIVE_CREATE "<CMAKE_AR> qcsT <TARGET> <LINK_FLAGS> <OBJECTS>")
  set(CMAKE_C_ARCHIVE_FINISH "")
  # Leaks are looked for at the end of every program and of every case of a test: tests/programs/leak_roots.c does a part of
  # that search, faster. Clang's sanitizers are no libraries of their own.
  if(BOURSE_SANITIZE MATCHES "address" AND CMAKE_C_COMPILER_ID STREQUAL "GNU" AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
    add_library(leak_roots STATIC tests/programs/leak_roots.c)
    target_link_libraries(leak_roots PRIVATE bourse_strict)
    target_compile_options(leak_roots PRIVATE -O2)
    target_link_libraries(bourse_flags INTERFACE leak_roots)
    target_link_options(bourse_flags INTERFACE $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-Wl,-u,leak_roots_start>)
  endif()
  # Some 300 tests are linked, and gold takes a third of the time.
  include(CheckLinkerFlag)
  check_linker_flag(C -fuse-ld=gold BOURSE_HAS_GOLD)
  if(BOURSE_HAS_GOLD)
    target_link_options(bourse_flags INTERFACE -fuse-ld=gold)
  endif()
else()
  target_compile_options(bourse_flags INTERFACE $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=2>)
endif()
if(BOURSE_COVERAGE)
  # Threads count together; -fprofile-abs-path, as gcov looks for sources from anywhere.
  target_compile_options(bourse_flags INTERFACE --coverage -fprofile-update=atomic -fprofile-abs-path)
  target_link_options(bourse_flags INTERFACE --coverage)
endif()
if(BOURSE_FUZZ)
  # The rooms are instrumented too: libFuzzer is guided by the coverage of the decoders, not of its target.
  target_compile_options(bourse_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# assert stays on in every build: it states what the code relies on.
foreach(config RELEASE RELWITHDEBINFO MINSIZEREL)
  string(REPLACE "-DNDEBUG" "" CMAKE_C_FLAGS_${config} "${CMAKE_C_FLAGS_${config}}")
endforeach()
