# The project's own target functions; the only place that knows how a library,
# a tool, a unit test or a dialect is put together.
include(Catch)

# Include from the repository root, and "dialects/aten/AtenOps.h.inc" from the
# build tree: generated code is a system header, so its warnings are not ours.
function(monarch_configure_target name scope)
  target_include_directories(${name} ${scope} "${PROJECT_SOURCE_DIR}")
  target_include_directories(${name} SYSTEM ${scope} "${PROJECT_BINARY_DIR}")
  target_compile_definitions(${name} ${scope} FMT_HEADER_ONLY=1)
  if(NOT scope STREQUAL "INTERFACE")
    target_compile_options(${name} PRIVATE -Wall -Wextra -Werror)
    # GCC bug 105651: at -O3 it sees strings overlap that do not.
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
      target_compile_options(${name} PRIVATE -Wno-restrict)
    endif()
  endif()
endfunction()

# monarch_add_library(NAME [SOURCES file...] [LINK target...] [DEPENDS target...])
# A static library; without SOURCES one that has only headers.
function(monarch_add_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK;DEPENDS" ${ARGN})
  if(arg_SOURCES)
    add_library(${name} STATIC ${arg_SOURCES})
    set(scope PUBLIC)
  else()
    add_library(${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  monarch_configure_target(${name} ${scope})
  target_link_libraries(${name} ${scope} ${arg_LINK})
  if(arg_DEPENDS)
    add_dependencies(${name} ${arg_DEPENDS})
  endif()
endfunction()

# monarch_add_tool(NAME SOURCES file... [LINK target...]): an executable in bin/.
function(monarch_add_tool name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  monarch_configure_target(${name} PRIVATE)
  target_link_libraries(${name} PRIVATE ${arg_LINK})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY
                                           "${PROJECT_BINARY_DIR}/bin")
endfunction()

# monarch_add_unittest(NAME SOURCES file... [LINK target...] [ONE_TEST] [FULL])
# A Catch2 binary. Each of its cases is a ctest test; with ONE_TEST the binary
# is a single one, for those that load LibTorch (0.3 s a start). FULL keeps it
# out of the quick tier. Target monarch_unit_tests builds all of them.
function(monarch_add_unittest name)
  cmake_parse_arguments(arg "ONE_TEST;FULL" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  monarch_configure_target(${name} PRIVATE)
  target_link_libraries(${name} PRIVATE monarch_catch_main ${arg_LINK})
  if(NOT TARGET monarch_unit_tests)
    add_custom_target(monarch_unit_tests)
  endif()
  add_dependencies(monarch_unit_tests ${name})
  set(labels unit)
  if(arg_FULL)
    list(APPEND labels full)
  endif()
  # A name that matches no case must fail, not pass by running nothing.
  if(arg_ONE_TEST)
    add_test(NAME ${name} COMMAND ${name} --warn NoTests)
    set_tests_properties(${name} PROPERTIES LABELS "${labels}")
  else()
    catch_discover_tests(${name} TEST_PREFIX "${name}: " EXTRA_ARGS --warn NoTests
                         PROPERTIES LABELS "${labels}")
  endif()
endfunction()

# monarch_add_dialect(Name [ATTRS] [TYPES] [ENUMS])
# Called in dialects/<name>. <Name>Ops.td declares the dialect and its ops and
# becomes <Name>Dialect.{h,cpp}.inc and <Name>Ops.{h,cpp}.inc; with ATTRS, TYPES
# or ENUMS also <Name>Attrs, <Name>Types, <Name>Enums. All are made by target
# monarch_<Name>_inc.
function(monarch_add_dialect name)
  cmake_parse_arguments(arg "ATTRS;TYPES;ENUMS" "" "" ${ARGN})
  string(TOLOWER ${name} dialect)
  set(LLVM_TARGET_DEFINITIONS ${name}Ops.td)
  monarch_tablegen(${name}Dialect -gen-dialect-decls -gen-dialect-defs
                   -dialect=${dialect})
  monarch_tablegen(${name}Ops -gen-op-decls -gen-op-defs)
  if(arg_ATTRS)
    monarch_tablegen(${name}Attrs -gen-attrdef-decls -gen-attrdef-defs
                     --attrdefs-dialect=${dialect})
  endif()
  if(arg_TYPES)
    monarch_tablegen(${name}Types -gen-typedef-decls -gen-typedef-defs
                     --typedefs-dialect=${dialect})
  endif()
  if(arg_ENUMS)
    monarch_tablegen(${name}Enums -gen-enum-decls -gen-enum-defs)
  endif()
  add_public_tablegen_target(monarch_${name}_inc)
endfunction()

# monarch_add_passes(Name): Passes.td of this folder -> Passes.h.inc, with
# register<Name>Passes(); target monarch_<Name>_passes_inc.
function(monarch_add_passes name)
  set(LLVM_TARGET_DEFINITIONS Passes.td)
  mlir_tablegen(Passes.h.inc -gen-pass-decls -name ${name} EXTRA_INCLUDES
                ${MLIR_INCLUDE_DIRS} "${PROJECT_SOURCE_DIR}")
  add_public_tablegen_target(monarch_${name}_passes_inc)
endfunction()

# Declarations and definitions of one kind from LLVM_TARGET_DEFINITIONS. A macro:
# mlir_tablegen collects its outputs in a variable of the caller.
macro(monarch_tablegen stem declarations definitions)
  mlir_tablegen(${stem}.h.inc ${declarations} ${ARGN} EXTRA_INCLUDES
                ${MLIR_INCLUDE_DIRS} "${PROJECT_SOURCE_DIR}")
  mlir_tablegen(${stem}.cpp.inc ${definitions} ${ARGN} EXTRA_INCLUDES
                ${MLIR_INCLUDE_DIRS} "${PROJECT_SOURCE_DIR}")
endmacro()
