# Finds cuBLASLt: part of a whole CUDA toolkit; where only the compiler is installed, NVIDIA's wheel from PyPI
# (scripts/cuda-libraries puts it into .deps/cuda). Defines the imported target vigil::cublasLt.

set(_cublas_wheel ${PROJECT_SOURCE_DIR}/.deps/cuda/nvidia/cu13)
find_path(cublasLt_INCLUDE_DIR cublasLt.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ${_cublas_wheel}/include)
find_library(cublasLt_LIBRARY NAMES cublasLt libcublasLt.so.13
  HINTS ${CUDAToolkit_LIBRARY_DIR} ${_cublas_wheel}/lib)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(cublasLt REQUIRED_VARS cublasLt_LIBRARY cublasLt_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "scripts/cuda-libraries installs it")

if(cublasLt_FOUND AND NOT TARGET vigil::cublasLt)
  add_library(vigil::cublasLt SHARED IMPORTED)
  set_target_properties(vigil::cublasLt PROPERTIES
    IMPORTED_LOCATION ${cublasLt_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${cublasLt_INCLUDE_DIR})
endif()
mark_as_advanced(cublasLt_INCLUDE_DIR cublasLt_LIBRARY)
