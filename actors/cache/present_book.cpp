#include "actors/cache/present_book.h"

namespace vigil::actors {

void PresentBook::has_come(const history::CameraId& camera, std::int64_t wall) {
  cameras_[camera].come_until = wall;
}

bool PresentBook::waits(std::uint64_t question, const history::CameraId& camera,
                        const history::WallRange& wall) {
  Camera& known = cameras_[camera];
  if (wall.to <= known.come_until) return false;
  const auto now = clock_.now();
  if (!known.is_open) {
    if (known.show > 0 && now - known.begun < kEvery) return false;
    known.show = ++ids_;
    known.is_open = true;
    known.begun = now;
    shows_.push_back({known.show, camera.camera});
  }
  known.questions.push_back(question);
  return true;
}

void PresentBook::forget(std::uint64_t question) {
  for (auto& [id, camera] : cameras_) std::erase(camera.questions, question);
}

std::vector<std::uint64_t> PresentBook::close(Camera& camera) {
  camera.is_open = false;
  return std::exchange(camera.questions, {});
}

std::vector<std::uint64_t> PresentBook::shown(std::uint64_t show) {
  for (auto& [id, camera] : cameras_)
    if (camera.show == show && camera.is_open) return close(camera);
  return {};
}

std::vector<std::uint64_t> PresentBook::late() {
  const auto now = clock_.now();
  std::vector<std::uint64_t> late;
  for (auto& [id, camera] : cameras_) {
    if (!camera.is_open || now - camera.begun < kPatience) continue;
    const std::vector<std::uint64_t> questions = close(camera);
    late.insert(late.end(), questions.begin(), questions.end());
  }
  return late;
}

std::size_t PresentBook::waiting() const {
  std::size_t waiting = 0;
  for (const auto& [id, camera] : cameras_) waiting += camera.questions.size();
  return waiting;
}

}  // namespace vigil::actors
