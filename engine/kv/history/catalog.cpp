#include "engine/kv/history/catalog.h"

#include <algorithm>

#include "engine/kv/history/record.h"

namespace vigil::history {
namespace {

bool is_damaged(const StoredPart& part, const EntryValue& value, const DamageBook& damage) {
  return !part.is_there(value) || damage.has(part.key.part, *value.offset);
}

PageSum sum_of_page(const StoredPage& page) {
  return {1, page.bytes, page.wall, page.number};
}

bool meets_any(std::span<const WallRange> ranges, const WallRange& wall) {
  return std::any_of(ranges.begin(), ranges.end(), [&](const WallRange& each) { return each.meets(wall); });
}

}  // namespace

void PageSum::add(const PageSum& more) {
  if (more.pages == 0) return;
  if (pages == 0) {
    *this = more;
    return;
  }
  pages += more.pages;
  bytes += more.bytes;
  wall = {std::min(wall.from, more.wall.from), std::max(wall.to, more.wall.to)};
  first = std::min(first, more.first);
}

std::uint64_t StoredPart::bytes() const {
  std::uint64_t sum = 0;
  for (const StoredPage& page : pages) sum += page.bytes;
  return sum;
}

bool StoredPart::is_there(const EntryValue& value) const {
  const std::size_t key_bytes = encode(PageKey{key, value.layers, 0}).size();
  return value.offset && *value.offset + RecordShape::of(key_bytes, value.bytes).bytes <= file_bytes;
}

StoredPartPtr stored_part(const PartKey& key, PartEntry entry, std::shared_ptr<const SecretKey> secret,
                          std::uint64_t file_bytes) {
  auto part = std::make_shared<StoredPart>();
  part->key = key;
  part->secret = std::move(secret);
  part->file_bytes = file_bytes;
  part->pages.reserve(entry.pages.size());
  for (EntryPage& page : entry.pages) {
    const auto summary = summary_of(page.info);
    if (!summary) return nullptr;
    part->pages.push_back({summary->number, summary->wall, summary->form, summary->bytes,
                           std::move(page.info), std::move(page.values)});
    part->sums[summary->form].add(sum_of_page(part->pages.back()));
  }
  return part;
}

void DamageBook::set(std::uint64_t part, std::uint64_t offset, bool damaged) {
  const std::lock_guard lock(mutex_);
  if (damaged) {
    damaged_.emplace(part, offset);
  } else if (!damaged_.empty()) {
    damaged_.erase({part, offset});
  }
}

bool DamageBook::has(std::uint64_t part, std::uint64_t offset) const {
  const std::lock_guard lock(mutex_);
  return damaged_.contains({part, offset});
}

void Catalog::add(const StoredPartPtr& part) {
  Camera& camera = cameras_[part->key.hour.camera];
  camera.parts[{part->key.hour.hour, part->key.part}] = part;
  for (std::size_t i = 0; i < part->pages.size(); ++i)
    camera.pages.insert_or_assign(part->pages[i].number, Place{part, i});
  for (const auto& [form, sum] : part->sums) camera.sums[{part->key.hour.hour, form}].add(sum);
}

void Catalog::count(Camera& camera, std::uint32_t hour) const {
  camera.sums.erase(camera.sums.lower_bound({hour, 0}), camera.sums.upper_bound({hour, UINT8_MAX}));
  for (auto part = camera.parts.lower_bound({hour, 0}); part != camera.parts.end(); ++part) {
    if (part->first.first != hour) break;
    for (const auto& [form, sum] : part->second->sums) camera.sums[{hour, form}].add(sum);
  }
}

void Catalog::remove(const PartKey& part) {
  const auto camera = cameras_.find(part.hour.camera);
  if (camera == cameras_.end()) return;
  const auto entry = camera->second.parts.find({part.hour.hour, part.part});
  if (entry == camera->second.parts.end()) return;
  for (const StoredPage& page : entry->second->pages) {
    const auto place = camera->second.pages.find(page.number);
    // It may have another place by now.
    if (place != camera->second.pages.end() && place->second.part == entry->second)
      camera->second.pages.erase(place);
  }
  camera->second.parts.erase(entry);
  count(camera->second, part.hour.hour);
  if (camera->second.parts.empty()) cameras_.erase(camera);
}

bool Catalog::has_any_of(const StoredPart& part) const {
  return std::any_of(part.pages.begin(), part.pages.end(),
                     [&](const StoredPage& page) { return has(part.key.hour.camera, page.number); });
}

bool Catalog::has(const CameraId& camera, std::uint64_t page) const {
  const auto entry = cameras_.find(camera);
  return entry != cameras_.end() && entry->second.pages.contains(page);
}

std::optional<Catalog::Place> Catalog::find(const CameraId& camera, std::uint64_t page) const {
  const auto entry = cameras_.find(camera);
  if (entry == cameras_.end()) return std::nullopt;
  const auto place = entry->second.pages.find(page);
  if (place == entry->second.pages.end() || is_erased(camera, place->second->wall)) return std::nullopt;
  return place->second;
}

std::vector<StoredPartPtr> Catalog::parts(const CameraId& camera) const {
  std::vector<StoredPartPtr> result;
  const auto entry = cameras_.find(camera);
  if (entry == cameras_.end()) return result;
  for (const auto& [number, part] : entry->second.parts) result.push_back(part);
  return result;
}

std::vector<StoredPartPtr> Catalog::parts(const HourKey& hour) const {
  std::vector<StoredPartPtr> result;
  const auto entry = cameras_.find(hour.camera);
  if (entry == cameras_.end()) return result;
  const auto& parts = entry->second.parts;
  for (auto part = parts.lower_bound({hour.hour, 0}); part != parts.end(); ++part) {
    if (part->first.first != hour.hour) break;
    result.push_back(part->second);
  }
  return result;
}

std::vector<StoredPartPtr> Catalog::over(std::span<const Expiry> expiries) const {
  std::map<CameraId, std::vector<Expiry>> by_camera;
  for (const Expiry& each : expiries) by_camera[each.camera].push_back(each);
  std::vector<StoredPartPtr> result;
  for (const auto& of_camera : by_camera) {
    const auto is_over = [&](std::uint32_t hour, std::uint8_t form) {
      return std::any_of(of_camera.second.begin(), of_camera.second.end(),
                         [&](const Expiry& each) { return each.covers(hour, form); });
    };
    const auto entry = cameras_.find(of_camera.first);
    if (entry == cameras_.end()) continue;
    for (const auto& [key, part] : entry->second.parts) {
      const std::uint32_t hour = key.first;
      if (std::all_of(part->sums.begin(), part->sums.end(),
                      [&](const auto& sum) { return is_over(hour, sum.first); }))
        result.push_back(part);
    }
  }
  return result;
}

std::vector<HourKey> Catalog::hours_without(const std::vector<StoredPartPtr>& gone) const {
  std::map<HourKey, std::size_t> going;
  for (const StoredPartPtr& part : gone) ++going[part->key.hour];
  std::vector<HourKey> hours;
  for (const auto& [hour, count] : going)
    if (parts(hour).size() == count) hours.push_back(hour);
  return hours;
}

std::vector<CameraId> Catalog::cameras() const {
  std::vector<CameraId> result;
  result.reserve(cameras_.size());
  for (const auto& [camera, entry] : cameras_) result.push_back(camera);
  return result;
}

std::vector<std::pair<std::uint64_t, std::vector<EntryValue>>> Catalog::values(const CameraId& camera) const {
  std::vector<std::pair<std::uint64_t, std::vector<EntryValue>>> values;
  for (const StoredPartPtr& part : parts(camera))
    for (const StoredPage& page : part->pages) values.emplace_back(page.number, page.values);
  return values;
}

std::vector<KeptPage> Catalog::pages(const CameraId& camera, const WallRange& wall,
                                     const DamageBook& damage) const {
  std::vector<KeptPage> result;
  const auto entry = cameras_.find(camera);
  if (entry == cameras_.end()) return result;
  std::set<std::uint32_t> hours;
  for (const auto& [key, sum] : entry->second.sums)
    if (sum.wall.meets(wall)) hours.insert(key.first);
  std::vector<Place> places;
  for (const std::uint32_t hour : hours)
    for (const StoredPartPtr& part : parts(HourKey{camera, hour}))
      for (std::size_t i = 0; i < part->pages.size(); ++i)
        if (part->pages[i].wall.meets(wall)) places.push_back({part, i});
  std::sort(places.begin(), places.end(),
            [](const Place& a, const Place& b) { return a->number < b->number; });
  const std::vector<WallRange> erased = this->erased(camera);
  for (const Place& place : places) {
    if (meets_any(erased, place->wall)) continue;
    auto info = decode_page_info(place->info);
    if (!info) continue;
    KeptPage page{std::move(*info), place.part->key.hour.hour, {}};
    for (const EntryValue& value : place->values)
      page.values.push_back({value.layers, value.bytes, is_damaged(*place.part, value, damage)});
    result.push_back(std::move(page));
  }
  return result;
}

std::vector<CameraSummary> Catalog::list(const DamageBook& damage) const {
  std::vector<CameraSummary> result;
  for (const auto& [camera, entry] : cameras_) {
    CameraSummary summary;
    summary.camera = camera;
    std::set<std::uint8_t> forms;
    for (const auto& page : entry.pages) {
      const Place& place = page.second;
      const WallRange& wall = place->wall;
      if (is_erased(camera, wall)) continue;
      if (summary.pages++ == 0) summary.wall = wall;
      summary.wall = {std::min(summary.wall.from, wall.from), std::max(summary.wall.to, wall.to)};
      summary.bytes += place->bytes;
      forms.insert(place->form);
      const auto damaged = [&](const EntryValue& value) { return is_damaged(*place.part, value, damage); };
      if (std::any_of(place->values.begin(), place->values.end(), damaged)) summary.gaps.push_back(wall);
    }
    summary.forms.assign(forms.begin(), forms.end());
    if (summary.pages > 0) result.push_back(std::move(summary));
  }
  return result;
}

bool Catalog::has_erased(const StoredPart& part) const {
  const std::vector<WallRange> erased = this->erased(part.key.hour.camera);
  return std::any_of(part.pages.begin(), part.pages.end(),
                     [&](const StoredPage& page) { return meets_any(erased, page.wall); });
}

std::vector<WallRange> Catalog::erased(const CameraId& camera) const {
  std::vector<WallRange> erased;
  for (const auto& [id, erasure] : erasures_)
    if (erasure.camera == camera) erased.push_back(erasure.wall);
  return erased;
}

void Catalog::add_hours(const CameraId& id, const Camera& camera, std::vector<HourSummary>& to) const {
  const std::vector<WallRange> erased = this->erased(id);
  for (const auto& [key, all] : camera.sums) {
    PageSum sum = all;
    if (meets_any(erased, all.wall)) {
      sum = {};
      for (const StoredPartPtr& part : parts(HourKey{id, key.first}))
        for (const StoredPage& page : part->pages)
          if (page.form == key.second && !meets_any(erased, page.wall)) sum.add(sum_of_page(page));
    }
    if (sum.pages > 0) to.push_back({id, key.first, key.second, sum.pages, sum.bytes, sum.wall, sum.first});
  }
}

std::vector<HourSummary> Catalog::hours(const std::optional<CameraId>& camera) const {
  std::vector<HourSummary> result;
  if (!camera) {
    for (const auto& [id, entry] : cameras_) add_hours(id, entry, result);
    return result;
  }
  const auto entry = cameras_.find(*camera);
  if (entry != cameras_.end()) add_hours(*camera, entry->second, result);
  return result;
}

bool Catalog::is_erased(const CameraId& camera, const WallRange& page) const {
  return std::any_of(erasures_.begin(), erasures_.end(), [&](const auto& entry) {
    return entry.second.camera == camera && entry.second.wall.meets(page);
  });
}

}  // namespace vigil::history
