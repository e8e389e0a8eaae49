# Everything comes from the distribution's packages (scripts/dependencies installs them).
# Tried: Debian 12 (FFmpeg 5.1, oneDNN 2.6, RocksDB 7.8); written for Ubuntu 24.04 too (FFmpeg 6.1, oneDNN 3.1, RocksDB 8.9).
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(dnnl REQUIRED)
find_package(CAF 0.17.6 REQUIRED COMPONENTS core io)
find_package(RocksDB REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(spdlog REQUIRED)
find_package(prometheus-cpp REQUIRED)
find_package(ICU REQUIRED COMPONENTS uc)
find_package(Boost 1.74 REQUIRED) # Asio and Beast, which are headers
find_package(OpenSSL 3 REQUIRED)
find_package(Protobuf REQUIRED)
find_program(GRPC_CPP_PLUGIN grpc_cpp_plugin REQUIRED)
find_package(GTest REQUIRED)
find_package(benchmark REQUIRED)

pkg_check_modules(FFMPEG REQUIRED IMPORTED_TARGET libavformat libavcodec libavutil libswscale)
pkg_check_modules(AVDEVICE REQUIRED libavdevice) # its headers: media/devices.cpp opens it where a device is named
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(JEMALLOC REQUIRED IMPORTED_TARGET jemalloc)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(ZMQ REQUIRED IMPORTED_TARGET libzmq)
# The "-isystem DIR" of its Kerberos is a folder to CMake 3.25 at the first configuration and an option from the second on: all that knows ZeroMQ was
# compiled twice. None of our sources needs it.
set_property(TARGET PkgConfig::ZMQ PROPERTY INTERFACE_COMPILE_OPTIONS "")
get_target_property(zmq_folders PkgConfig::ZMQ INTERFACE_INCLUDE_DIRECTORIES)
if(zmq_folders)
  list(FILTER zmq_folders EXCLUDE REGEX "mit-krb5")
  set_property(TARGET PkgConfig::ZMQ PROPERTY INTERFACE_INCLUDE_DIRECTORIES "${zmq_folders}")
endif()

# Its CMake package wants those of all that it was built from. Of the fifty libraries that pkg-config names, programs load those that they use.
pkg_check_modules(GRPC REQUIRED grpc++)
add_library(gRPC++ INTERFACE IMPORTED)
target_link_libraries(gRPC++ INTERFACE -Wl,--push-state,--as-needed ${GRPC_LINK_LIBRARIES} -Wl,--pop-state)
