# Finds NCCL: a package of the distribution's or NVIDIA's, or NVIDIA's wheel from PyPI (scripts/cuda-libraries puts it
# into .deps/cuda). Defines the imported target vigil::NCCL.

set(_nccl_wheel ${PROJECT_SOURCE_DIR}/.deps/cuda/nvidia/nccl)
find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ${_nccl_wheel}/include)
find_library(NCCL_LIBRARY NAMES nccl libnccl.so.2 HINTS ${CUDAToolkit_LIBRARY_DIR} ${_nccl_wheel}/lib)

if(NCCL_INCLUDE_DIR)
  foreach(part MAJOR MINOR PATCH)
    file(STRINGS ${NCCL_INCLUDE_DIR}/nccl.h _nccl_line REGEX "^#define NCCL_${part} ")
    string(REGEX MATCH "[0-9]+" _nccl_${part} "${_nccl_line}")
  endforeach()
  set(NCCL_VERSION ${_nccl_MAJOR}.${_nccl_MINOR}.${_nccl_PATCH})
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(NCCL REQUIRED_VARS NCCL_LIBRARY NCCL_INCLUDE_DIR VERSION_VAR NCCL_VERSION
  REASON_FAILURE_MESSAGE "scripts/cuda-libraries installs it")

if(NCCL_FOUND AND NOT TARGET vigil::NCCL)
  add_library(vigil::NCCL SHARED IMPORTED)
  set_target_properties(vigil::NCCL PROPERTIES
    IMPORTED_LOCATION ${NCCL_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${NCCL_INCLUDE_DIR})
endif()
mark_as_advanced(NCCL_INCLUDE_DIR NCCL_LIBRARY)
