# vigil_grpc_library(NAME PROTO ...): what protoc makes of these files, compiled. Its headers are <FILE.pb.h> and <FILE.grpc.pb.h>; the files import
# each other by their names alone.
function(vigil_grpc_library name)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${name})
  set(sources)
  # By the configuration, since scripts/lint builds nothing. What did not change stays as old as it is.
  file(MAKE_DIRECTORY ${folder} ${folder}.new)
  foreach(proto IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH proto)
    cmake_path(GET proto STEM stem)
    cmake_path(GET proto PARENT_PATH home)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${proto})
    execute_process(
      COMMAND ${Protobuf_PROTOC_EXECUTABLE} --proto_path=${home} --cpp_out=${folder}.new --grpc_out=${folder}.new
              --plugin=protoc-gen-grpc=${GRPC_CPP_PLUGIN} ${proto}
      COMMAND_ERROR_IS_FATAL ANY)
    foreach(made ${stem}.pb.h ${stem}.pb.cc ${stem}.grpc.pb.h ${stem}.grpc.pb.cc)
      file(COPY_FILE ${folder}.new/${made} ${folder}/${made} ONLY_IF_DIFFERENT)
    endforeach()
    list(APPEND sources ${folder}/${stem}.pb.cc ${folder}/${stem}.grpc.pb.cc)
  endforeach()
  add_library(${name} STATIC ${sources})
  # It is not our code: no warnings, and its headers are the system's.
  target_compile_options(${name} PRIVATE -w)
  target_include_directories(${name} SYSTEM PUBLIC ${folder})
  target_link_libraries(${name} PUBLIC gRPC++ protobuf::libprotobuf)
  if(VIGIL_SANITIZE)
    target_compile_options(${name} PRIVATE -fsanitize=${VIGIL_SANITIZE} -fno-omit-frame-pointer)
  endif()
endfunction()
