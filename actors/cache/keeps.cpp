#include "actors/cache/keeps.h"

#include "engine/kv/history/page_info.h"

namespace vigil::actors {

Keeps keeps_of(const config::Settings& settings) {
  Keeps keeps;
  for (const config::CameraSettings& camera : settings.cameras)
    keeps.cameras.emplace(history::CameraId{camera.tenant(), camera.name}, camera.stream.keep);
  return keeps;
}

}  // namespace vigil::actors
