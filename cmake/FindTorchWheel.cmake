# LibTorch from the pip wheel as imported targets, without find_package(Torch)
# (which asks for a CUDA toolkit): TorchWheel::c10, TorchWheel::cpu and, where
# the wheel holds them, TorchWheel::c10_cuda and TorchWheel::cuda.
#
# The wheel is TORCH_WHEEL_DIR, else that of .venv in the source tree, else that
# of the python3 on the path.
if(NOT TORCH_WHEEL_DIR)
  if(EXISTS "${PROJECT_SOURCE_DIR}/.venv/bin/python")
    set(_TorchWheel_python "${PROJECT_SOURCE_DIR}/.venv/bin/python")
  else()
    find_package(Python3 COMPONENTS Interpreter REQUIRED)
    set(_TorchWheel_python "${Python3_EXECUTABLE}")
  endif()
  execute_process(
    COMMAND "${_TorchWheel_python}" -c
            "from importlib.util import find_spec; print(find_spec('torch').submodule_search_locations[0])"
    WORKING_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}"
    OUTPUT_VARIABLE _TorchWheel_dir
    OUTPUT_STRIP_TRAILING_WHITESPACE
    ERROR_QUIET
    RESULT_VARIABLE _TorchWheel_result)
  if(_TorchWheel_result EQUAL 0)
    set(TORCH_WHEEL_DIR "${_TorchWheel_dir}" CACHE PATH "Directory of the torch package")
  endif()
endif()

if(EXISTS "${TORCH_WHEEL_DIR}/version.py")
  file(STRINGS "${TORCH_WHEEL_DIR}/version.py" _TorchWheel_line REGEX "^__version__")
  string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" TorchWheel_VERSION "${_TorchWheel_line}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  TorchWheel
  REQUIRED_VARS TORCH_WHEEL_DIR
  VERSION_VAR TorchWheel_VERSION
  REASON_FAILURE_MESSAGE "run tools/setup.sh, or set TORCH_WHEEL_DIR")

if(TorchWheel_FOUND AND NOT TARGET TorchWheel::cpu)
  # Names the linker needs for the libraries that the wheel's own ones name; at
  # run time these are found by the RPATH inside them.
  file(GLOB _TorchWheel_nvidia "${TORCH_WHEEL_DIR}/../nvidia/*/lib")
  list(TRANSFORM _TorchWheel_nvidia PREPEND "LINKER:-rpath-link,")

  foreach(_TorchWheel_name IN ITEMS c10 cpu c10_cuda cuda)
    if(_TorchWheel_name MATCHES "^c10")
      set(_TorchWheel_file "lib${_TorchWheel_name}.so")
    else()
      set(_TorchWheel_file "libtorch_${_TorchWheel_name}.so")
    endif()
    if(EXISTS "${TORCH_WHEEL_DIR}/lib/${_TorchWheel_file}")
      add_library(TorchWheel::${_TorchWheel_name} SHARED IMPORTED GLOBAL)
      set_target_properties(
        TorchWheel::${_TorchWheel_name}
        PROPERTIES IMPORTED_LOCATION "${TORCH_WHEEL_DIR}/lib/${_TorchWheel_file}"
                   IMPORTED_SONAME "${_TorchWheel_file}")
      target_include_directories(
        TorchWheel::${_TorchWheel_name} SYSTEM
        INTERFACE "${TORCH_WHEEL_DIR}/include"
                  "${TORCH_WHEEL_DIR}/include/torch/csrc/api/include")
      target_link_options(TorchWheel::${_TorchWheel_name} INTERFACE ${_TorchWheel_nvidia})
    endif()
  endforeach()
  target_compile_definitions(TorchWheel::c10 INTERFACE FMT_HEADER_ONLY=1)
  target_link_libraries(TorchWheel::cpu INTERFACE TorchWheel::c10)
  if(TARGET TorchWheel::cuda)
    target_link_libraries(TorchWheel::cuda INTERFACE TorchWheel::c10_cuda TorchWheel::cpu)
  endif()
endif()
