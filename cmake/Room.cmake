# vigil_room(NAME SOURCES ... [KNOWS room ...] [PUBLIC lib ...] [PRIVATE lib ...])
# One library a room. KNOWS names the rooms under it; a target that is not named cannot be linked, and
# scripts/check-rooms rejects the include.

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # By paths from the root, so that presets with the same flags can share what was compiled; with precompiled headers, too, which
  # hold nothing that depends on the time.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
    CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()

# Links a test program in 0.6 s, where the usual linker takes 7.3 s.
find_program(MOLD mold)
if(MOLD)
  add_link_options($<$<LINK_LANGUAGE:CXX>:-fuse-ld=mold>)
endif()

# What every target of ours is compiled with; foreign headers come in as system headers and stay quiet.
add_library(vigil_options INTERFACE)
target_compile_options(vigil_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Werror>
  # GCC 12 sees overlapping copies inside of std::string that are not there (GCC bug 105651).
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-Wno-restrict>
  # It collects its garbage less often: a twelfth of its time, for a third more of memory.
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:--param=ggc-min-heapsize=1048576>)
target_include_directories(vigil_options INTERFACE ${PROJECT_SOURCE_DIR})
if(VIGIL_SANITIZE)
  target_compile_options(vigil_options INTERFACE -fsanitize=${VIGIL_SANITIZE} -fno-omit-frame-pointer
                         -fno-sanitize-recover=all)
  target_link_options(vigil_options INTERFACE -fsanitize=${VIGIL_SANITIZE})
  target_compile_definitions(vigil_options INTERFACE VIGIL_SANITIZED=1)
  # GCC's sanitizer instrumentation makes its flow-based warnings see paths that do not exist.
  target_compile_options(vigil_options INTERFACE -Wno-error)
endif()
if(VIGIL_FUZZ)
  target_compile_options(vigil_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

# vigil_in_groups(TARGET COUNT [SOURCES ...]): compiles sources in groups of COUNT, so that what their heavy headers (CAF, CLI11, GoogleTest)
# make of templates is compiled once a group. Halves what these take of a first build; the preset `lint` compiles each source by itself.
option(VIGIL_UNITY "Compile the sources of heavy targets in groups" ON)
function(vigil_in_groups target count)
  if(NOT VIGIL_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${count})
endfunction()

function(vigil_room name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;KNOWS;PUBLIC;PRIVATE" ${ARGN})
  add_library(vigil_${name} STATIC ${ROOM_SOURCES})
  add_library(vigil::${name} ALIAS vigil_${name})
  target_link_libraries(vigil_${name} PUBLIC ${ROOM_PUBLIC} PRIVATE vigil_options ${ROOM_PRIVATE})
  target_include_directories(vigil_${name} PUBLIC ${PROJECT_SOURCE_DIR})
  foreach(room IN LISTS ROOM_KNOWS)
    target_link_libraries(vigil_${name} PUBLIC vigil::${room})
  endforeach()
endfunction()
