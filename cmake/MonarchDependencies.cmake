# The libraries that the project is built on (docs/dependencies.md). Preset
# `planner` reaches only the first block: no LLVM, no LibTorch.
find_package(nlohmann_json 3.11 REQUIRED)
find_package(CLI11 2.1 REQUIRED)
find_package(Catch2 2.13 REQUIRED)

if(MONARCH_COMPILER OR MONARCH_RUNTIME)
  find_package(TorchWheel 2.15 REQUIRED)
endif()

if(MONARCH_COMPILER)
  find_package(MLIR 22.1 REQUIRED CONFIG HINTS /usr/lib/llvm-22/lib/cmake/mlir)
  list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
  include(TableGen)
  include(AddLLVM)
  include(AddMLIR)

  # One shared libMLIR and libLLVM; their headers are system headers.
  add_library(MonarchMLIR INTERFACE)
  separate_arguments(llvmDefinitions NATIVE_COMMAND "${LLVM_DEFINITIONS}")
  target_compile_options(MonarchMLIR INTERFACE ${llvmDefinitions})
  target_include_directories(MonarchMLIR SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS}
                                                          ${MLIR_INCLUDE_DIRS})
  target_link_libraries(MonarchMLIR INTERFACE MLIR LLVM)
endif()
