# Finds the C++ Actor Framework, for which distributions ship headers and libraries but no CMake package.
#
#   find_package(CAF 0.17.6 REQUIRED COMPONENTS core io openssl)
#
# defines the imported targets CAF::core, CAF::io and CAF::openssl and the variable CAF_VERSION.

find_path(CAF_INCLUDE_DIR caf/config.hpp)
if(CAF_INCLUDE_DIR)
  # #define CAF_VERSION 1706  (major * 10000 + minor * 100 + patch)
  file(STRINGS ${CAF_INCLUDE_DIR}/caf/config.hpp _caf_line REGEX "^#define CAF_VERSION +[0-9]+")
  string(REGEX REPLACE ".*CAF_VERSION +([0-9]+).*" "\\1" _caf_number "${_caf_line}")
  math(EXPR _caf_major "${_caf_number} / 10000")
  math(EXPR _caf_minor "${_caf_number} / 100 % 100")
  math(EXPR _caf_patch "${_caf_number} % 100")
  set(CAF_VERSION ${_caf_major}.${_caf_minor}.${_caf_patch})
endif()

foreach(component IN LISTS CAF_FIND_COMPONENTS)
  find_library(CAF_${component}_LIBRARY caf_${component})
  if(CAF_${component}_LIBRARY)
    set(CAF_${component}_FOUND TRUE)
  endif()
endforeach()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CAF REQUIRED_VARS CAF_INCLUDE_DIR VERSION_VAR CAF_VERSION HANDLE_COMPONENTS)

if(CAF_FOUND)
  find_package(Threads REQUIRED)
  foreach(component IN LISTS CAF_FIND_COMPONENTS)
    if(CAF_${component}_FOUND AND NOT TARGET CAF::${component})
      add_library(CAF::${component} UNKNOWN IMPORTED)
      set_target_properties(CAF::${component} PROPERTIES
        IMPORTED_LOCATION ${CAF_${component}_LIBRARY}
        INTERFACE_INCLUDE_DIRECTORIES ${CAF_INCLUDE_DIR}
        # A message type without an id becomes a compile error, even with the packaged library.
        INTERFACE_COMPILE_DEFINITIONS CAF_ENABLE_TYPE_ID_CHECKS)
      if(component STREQUAL core)
        set_property(TARGET CAF::core APPEND PROPERTY INTERFACE_LINK_LIBRARIES Threads::Threads)
      elseif(component STREQUAL io)
        set_property(TARGET CAF::io APPEND PROPERTY INTERFACE_LINK_LIBRARIES CAF::core)
      else()
        set_property(TARGET CAF::${component} APPEND PROPERTY INTERFACE_LINK_LIBRARIES CAF::io)
      endif()
    endif()
  endforeach()
endif()
mark_as_advanced(CAF_INCLUDE_DIR)
