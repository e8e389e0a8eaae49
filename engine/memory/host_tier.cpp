#include "engine/memory/host_tier.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "engine/memory/hours.h"
#include "kernels/device/host_buffer.h"

namespace vigil::memory {

HostTier::HostTier(std::uint64_t bytes, Eviction eviction, Ages ages)
    : pool_(bytes, eviction), ages_(std::move(ages)) {}

void HostTier::share(std::span<const history::CameraId> cameras) {
  std::vector<std::string> names;
  for (const history::CameraId& camera : cameras) names.push_back(history::encode(camera));
  pool_.share(names);
}

std::uint64_t HostTier::bytes_of(const Page& page) {
  std::uint64_t bytes = 0;
  for (const auto& [form, tokens] : page.forms) bytes += kernels::HostMemory::rounded(tokens.size);
  return bytes;
}

template <class Gone>
void HostTier::drop_forms(Page& page, const Gone& gone) {
  std::erase_if(page.forms, [&](const auto& form) { return gone(form.first); });
  if (!page.forms.contains(kv::Form::sketch)) page.sketch.reset();
}

HostTier::Put HostTier::put(const history::CameraId& camera, Page page) {
  drop_forms(page, [&](kv::Form form) { return !ages_.contains(form); });
  Put put;
  if (page.forms.empty()) return put;
  const history::WallRange wall = history::wall_of(page.info);
  const std::uint64_t id = ++ids_;
  const auto gone = pool_.put(history::encode(camera),
                              {id, bytes_of(page), wall_time(wall.from), wall_time(wall.to), page.change},
                              {.is_alerted = page.is_alerted});
  if (!gone) return put;
  for (const std::uint64_t each : *gone) {
    const auto place = places_.extract(each);
    Camera& of = cameras_.at(place.mapped().first);
    const auto entry = of.find(place.mapped().second);
    put.gone.push_back(std::move(entry->second.page.info));
    of.erase(entry);
  }
  const std::uint64_t number = page.info.number;
  places_.emplace(id, std::pair(camera, number));
  cameras_[camera].emplace(number, Entry{std::move(page), id});
  put.is_kept = true;
  return put;
}

const HostTier::Page* HostTier::find(const history::CameraId& camera, std::uint64_t number) const {
  const auto of = cameras_.find(camera);
  if (of == cameras_.end()) return nullptr;
  const auto entry = of->second.find(number);
  return entry == of->second.end() ? nullptr : &entry->second.page;
}

std::vector<const HostTier::Page*> HostTier::pages(const history::CameraId& camera,
                                                   const history::WallRange& wall) const {
  std::vector<const Page*> found;
  const auto of = cameras_.find(camera);
  if (of == cameras_.end()) return found;
  for (const auto& [number, entry] : of->second)
    if (history::wall_of(entry.page.info).meets(wall)) found.push_back(&entry.page);
  return found;
}

void HostTier::hit(const history::CameraId& camera, std::uint64_t number) {
  const auto of = cameras_.find(camera);
  if (of == cameras_.end()) return;
  const auto entry = of->second.find(number);
  if (entry != of->second.end()) pool_.hit(entry->second.id);
}

void HostTier::drop(Camera& camera, Camera::iterator entry) {
  pool_.remove(entry->second.id);
  places_.erase(entry->second.id);
  camera.erase(entry);
}

std::size_t HostTier::age(std::int64_t now, std::span<const Aged> keeps) {
  std::size_t gone = 0;
  for (auto& [camera, pages] : cameras_) {
    const auto keep = std::ranges::find(keeps, camera, &Aged::camera);
    for (auto entry = pages.begin(); entry != pages.end();) {
      const auto next = std::next(entry);
      Page& page = entry->second.page;
      const std::int64_t to = history::wall_of(page.info).to;
      const std::size_t before = page.forms.size();
      drop_forms(page,
                 [&](kv::Form form) { return to + std::chrono::nanoseconds(ages_.at(form)).count() < now; });
      if (page.forms.empty() || (keep != keeps.end() && to < keep->before)) {
        drop(pages, entry);
        ++gone;
      } else if (page.forms.size() < before) {
        pool_.shrink(entry->second.id, bytes_of(page));
      }
      entry = next;
    }
  }
  std::erase_if(cameras_, [](const auto& camera) { return camera.second.empty(); });
  return gone;
}

std::size_t HostTier::erase(const history::CameraId& camera, const history::WallRange& wall) {
  const auto of = cameras_.find(camera);
  if (of == cameras_.end()) return 0;
  std::size_t gone = 0;
  for (auto entry = of->second.begin(); entry != of->second.end();) {
    const auto next = std::next(entry);
    if (history::wall_of(entry->second.page.info).meets(wall)) {
      drop(of->second, entry);
      ++gone;
    }
    entry = next;
  }
  if (of->second.empty()) cameras_.erase(of);
  return gone;
}

}  // namespace vigil::memory
