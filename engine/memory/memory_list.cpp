// What is remembered, camera by camera.
#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "engine/memory/hours.h"
#include "engine/memory/kept.h"
#include "engine/memory/memory.h"

namespace vigil::memory {
namespace {

constexpr history::WallRange kAllTime{std::numeric_limits<std::int64_t>::min(),
                                      std::numeric_limits<std::int64_t>::max()};

}  // namespace

/// Of its pages, those that are kept; nothing: none is.
std::optional<history::HourSummary> Memory::kept_of(const history::HourSummary& hour,
                                                    std::int64_t from) const {
  if (hour.wall.from >= from) return hour;
  history::HourSummary kept = hour;
  kept.pages = kept.bytes = 0;
  std::optional<history::WallRange> wall;
  if (hour.wall.to >= from)
    for (const history::KeptPage& page : store_->pages(hour.camera, {from, hour.wall.to})) {
      const auto in_time = kept_wall(page.info, from);
      if (page.hour != hour.hour || page.info.form != hour.form || !in_time) continue;
      ++kept.pages;
      for (const history::KeptValue& value : page.values) kept.bytes += value.bytes;
      widen(wall, *in_time);
    }
  if (!wall) return std::nullopt;
  kept.wall = *wall;
  return kept;
}

std::vector<Memory::Summary> Memory::list(std::int64_t wall_now) const {
  std::map<history::CameraId, std::vector<history::HourSummary>> disk;
  for (const auto& [id, camera] : cameras_) disk[id];
  if (store_ != nullptr)
    for (const history::HourSummary& each : store_->hours(std::nullopt))
      if (auto kept = kept_of(each, kept_from(each.camera, wall_now)))
        disk[each.camera].push_back(std::move(*kept));
  std::vector<Summary> list;
  for (const auto& [id, hours] : disk) {
    Summary summary;
    summary.camera = id;
    const auto known = cameras_.find(id);
    if (known != cameras_.end()) {
      summary.is_watched = known->second.is_watched;
      summary.keep = known->second.keep.value_or(base::Duration::zero());
    }
    std::map<std::uint32_t, std::uint64_t> pages;
    std::set<kv::Form> forms;
    for (const history::HourSummary& each : hours) {
      // What the disk did not take is in no erasure of the store's: then nothing of its hour is told.
      if (known != cameras_.end() && is_refused(known->second, each.wall)) continue;
      std::uint64_t& most = pages[each.hour];
      most = std::max(most, each.pages);
      forms.insert(static_cast<kv::Form>(each.form));
      summary.disk_bytes += each.bytes;
      widen(summary.wall, each.wall);
    }
    for (const auto& [hour, most] : pages) summary.pages += most;
    const std::uint64_t last = store_ == nullptr ? 0 : page_of(store_->last_page(id));
    std::set<std::uint64_t> others;
    const auto add = [&](std::uint64_t number, const history::WallRange& wall) {
      const auto hour = static_cast<std::uint32_t>(std::max<std::int64_t>(0, hour_at(wall.from)));
      // Or it is on the disk, too.
      if (number > last || !pages.contains(hour)) others.insert(number);
      widen(summary.wall, wall);
    };
    const std::int64_t from = kept_from(id, wall_now);
    for (const HostTier::Page* page : host_.pages(id, kAllTime)) {
      const auto wall = kept_wall(page->info, from);
      if (!wall) continue;
      add(page->info.number, *wall);
      for (const auto& [form, tokens] : page->forms) {
        forms.insert(form);
        summary.host_bytes += tokens.size;
      }
    }
    if (queue_)
      for (const PartQueue::OnItsWay& page : queue_->pages(id, kAllTime)) {
        if (known != cameras_.end() && is_erased(known->second, history::wall_of(page.info))) continue;
        const auto wall = kept_wall(page.info, from);
        if (!wall) continue;
        add(page_of(page.info.number), *wall);
        forms.insert(page.tokens.form);
      }
    summary.pages += others.size();
    if (summary.pages == 0 && !summary.is_watched) continue;
    summary.forms.assign(forms.begin(), forms.end());
    list.push_back(std::move(summary));
  }
  return list;
}

}  // namespace vigil::memory
