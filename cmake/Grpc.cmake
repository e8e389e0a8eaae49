# vigil_grpc_library(NAME PROTO ...): what protoc makes of these files, compiled. Its headers are <FILE.pb.h> and <FILE.grpc.pb.h>, the files import
# each other by their names alone.
function(vigil_grpc_library name)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${name})
  file(MAKE_DIRECTORY ${folder})
  set(sources)
  foreach(proto IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH proto)
    cmake_path(GET proto STEM stem)
    cmake_path(GET proto PARENT_PATH home)
    set(made ${folder}/${stem}.pb.cc ${folder}/${stem}.grpc.pb.cc)
    # All of them are rebuilt when one changes: they import each other.
    add_custom_command(
      OUTPUT ${made} ${folder}/${stem}.pb.h ${folder}/${stem}.grpc.pb.h
      COMMAND protobuf::protoc --proto_path=${home} --cpp_out=${folder} --grpc_out=${folder} --plugin=protoc-gen-grpc=${GRPC_CPP_PLUGIN} ${proto}
      DEPENDS ${ARGN} protobuf::protoc
      COMMENT "protoc ${stem}.proto"
      VERBATIM)
    list(APPEND sources ${made})
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
