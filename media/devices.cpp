#include "media/devices.h"

extern "C" {
#include <libavdevice/avdevice.h>
#include <libavutil/macros.h>
}

#include <dlfcn.h>

namespace vigil::media {
namespace {

std::string open_library() {
  void* const library =
      dlopen("libavdevice.so." AV_STRINGIFY(LIBAVDEVICE_VERSION_MAJOR), RTLD_NOW | RTLD_NODELETE);
  void* const known = library == nullptr ? nullptr : dlsym(library, "avdevice_register_all");
  if (known == nullptr) {
    const char* const reason = dlerror();  // NOLINT(concurrency-mt-unsafe): of this thread, in glibc
    return reason == nullptr ? "libavdevice registers nothing" : reason;
  }
  reinterpret_cast<decltype(&avdevice_register_all)>(known)();
  return {};
}

}  // namespace

const std::string& know_devices() {
  static const std::string reason = open_library();
  return reason;
}

}  // namespace vigil::media
