#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>

#include "engine/kv/history/history_store.h"
#include "engine/kv/history/note_list.h"

namespace vigil::history {
namespace {

struct MemoryPage {
  KeptPage kept;
  /// What it was put with, and goes with.
  std::uint64_t part = 0;
  std::vector<std::shared_ptr<const std::vector<std::byte>>> values;
};

class MemoryHistoryStore final : public HistoryStore {
 public:
  PutReport put(const GivenPart& part) override {
    if (const auto fault = fault_of(part)) throw std::invalid_argument("history: " + *fault);
    const std::lock_guard lock(mutex_);
    auto& pages = cameras_[part.camera];
    for (const GivenPage& page : part.pages)
      if (pages.contains(page.info.number)) throw std::invalid_argument("history: a page is there already");
    PutReport report;
    ++last_part_;
    for (const GivenPage& page : part.pages) {
      if (is_erased(part.camera, page.info)) {
        ++report.erased;
        continue;
      }
      MemoryPage kept{{page.info, part.hour, {}}, last_part_, {}};
      for (const GivenValue& value : page.values) {
        kept.kept.values.push_back({value.layers, static_cast<std::uint32_t>(value.bytes.size()), false});
        kept.values.push_back(
            std::make_shared<std::vector<std::byte>>(value.bytes.begin(), value.bytes.end()));
      }
      pages.emplace(page.info.number, std::move(kept));
      ++report.pages;
      std::uint64_t& last = last_[part.camera];
      last = std::max(last, page.info.number);
    }
    return report;
  }

  std::vector<Value> read(const CameraId& camera, std::span<const ValueName> names) const override {
    const std::lock_guard lock(mutex_);
    std::vector<Value> result;
    for (const ValueName& name : names) result.push_back(read_one(camera, name));
    return result;
  }

  std::vector<KeptPage> pages(const CameraId& camera, const WallRange& wall) const override {
    const std::lock_guard lock(mutex_);
    std::vector<KeptPage> result;
    const auto of_camera = cameras_.find(camera);
    if (of_camera == cameras_.end()) return result;
    for (const auto& [number, page] : of_camera->second)
      if (wall_of(page.kept.info).meets(wall) && !is_erased(camera, page.kept.info))
        result.push_back(page.kept);
    return result;
  }

  std::uint64_t last_page(const CameraId& camera) const override {
    const std::lock_guard lock(mutex_);
    const auto last = last_.find(camera);
    return last == last_.end() ? 0 : last->second;
  }

  std::uint64_t erase(const CameraId& camera, const WallRange& wall) override {
    if (wall.to < wall.from) throw std::invalid_argument("history: a range that ends before it begins");
    const std::lock_guard lock(mutex_);
    erasures_.push_back({++last_erasure_, camera, wall, false});
    cut_notes();
    return last_erasure_;
  }

  Removed finish_erasures() override {
    const std::lock_guard lock(mutex_);
    const Removed removed = remove_pages(
        [&](const CameraId& camera, const MemoryPage& page) { return is_erased(camera, page.kept.info); });
    for (Erasure& each : erasures_) each.finished = true;
    return removed;
  }

  std::vector<Erasure> erasures() const override {
    const std::lock_guard lock(mutex_);
    return erasures_;
  }

  void forget_erasure(std::uint64_t id, std::optional<std::uint8_t> why) override {
    const std::lock_guard lock(mutex_);
    const auto erasure = std::find_if(erasures_.begin(), erasures_.end(),
                                      [&](const Erasure& each) { return each.id == id && each.finished; });
    if (erasure == erasures_.end()) throw std::invalid_argument("history: no such erasure that is finished");
    const Erasure forgotten = std::move(*erasure);
    erasures_.erase(erasure);
    if (why) notes_[forgotten.camera].add({forgotten.wall, *why});
    cut_notes();
  }

  Removed retire(std::span<const Expiry> expiries) override {
    check_notes(expiries);
    const std::lock_guard lock(mutex_);
    const auto is_over = [&](const CameraId& camera, const MemoryPage& page) {
      return std::any_of(expiries.begin(), expiries.end(), [&](const Expiry& each) {
        return each.camera == camera && each.covers(page.kept.hour, page.kept.info.form);
      });
    };
    for (const Expiry& each : expiries) notes_[each.camera].cut(each);
    for (const Expiry& each : expiries)
      if (each.note) notes_[each.note->camera].add({each.note->wall, each.note->why});
    cut_notes();
    std::set<std::uint64_t> stay;
    for (const auto& [camera, pages] : cameras_)
      for (const auto& [number, page] : pages)
        if (!is_over(camera, page)) stay.insert(page.part);
    return remove_pages([&](const CameraId&, const MemoryPage& page) { return !stay.contains(page.part); });
  }

  void note(std::span<const Note> notes) override {
    check_notes(notes);
    const std::lock_guard lock(mutex_);
    for (const Note& each : notes) notes_[each.camera].add({each.wall, each.why});
    cut_notes();
  }

  std::vector<Note> notes(const CameraId& camera, const WallRange& wall) const override {
    const std::lock_guard lock(mutex_);
    return notes_of(notes_, camera, wall);
  }

  std::vector<HourSummary> hours(const std::optional<CameraId>& camera) const override {
    const std::lock_guard lock(mutex_);
    std::map<std::pair<HourKey, std::uint8_t>, HourSummary> hours;
    for (const auto& [id, pages] : cameras_) {
      if (camera && *camera != id) continue;
      for (const auto& [number, page] : pages) {
        if (is_erased(id, page.kept.info)) continue;
        const WallRange wall = wall_of(page.kept.info);
        const std::uint8_t form = page.kept.info.form;
        HourSummary& hour = hours
                                .try_emplace({{id, page.kept.hour}, form},
                                             HourSummary{id, page.kept.hour, form, 0, 0, wall, number})
                                .first->second;
        ++hour.pages;
        hour.bytes += page.kept.info.bytes;
        hour.wall = {std::min(hour.wall.from, wall.from), std::max(hour.wall.to, wall.to)};
      }
    }
    std::vector<HourSummary> result;
    result.reserve(hours.size());
    for (auto& [key, hour] : hours) result.push_back(std::move(hour));
    return result;
  }

  std::vector<CameraSummary> list() const override {
    const std::lock_guard lock(mutex_);
    std::vector<CameraSummary> result;
    for (const auto& [camera, pages] : cameras_) {
      CameraSummary summary;
      summary.camera = camera;
      std::set<std::uint8_t> forms;
      for (const auto& [number, page] : pages) {
        if (is_erased(camera, page.kept.info)) continue;
        const WallRange wall = wall_of(page.kept.info);
        if (summary.pages++ == 0) summary.wall = wall;
        summary.wall = {std::min(summary.wall.from, wall.from), std::max(summary.wall.to, wall.to)};
        summary.bytes += page.kept.info.bytes;
        forms.insert(page.kept.info.form);
      }
      summary.forms.assign(forms.begin(), forms.end());
      if (summary.pages > 0) result.push_back(std::move(summary));
    }
    return result;
  }

  VerifyReport verify(const std::optional<CameraId>& camera, std::uint64_t numbers_a_page) const override {
    const std::lock_guard lock(mutex_);
    std::set<std::pair<CameraId, std::uint64_t>> whole;
    for (const auto& [id, pages] : cameras_) {
      if (camera && id != *camera) continue;
      for (const auto& [number, page] : pages)
        if (!is_erased(id, page.kept.info)) whole.emplace(id, number / numbers_a_page);
    }
    return {whole.size(), 0};
  }

 private:
  using Pages = std::map<std::uint64_t, MemoryPage>;

  bool is_erased(const CameraId& camera, const PageInfo& page) const {
    return std::any_of(erasures_.begin(), erasures_.end(), [&](const Erasure& each) {
      return each.camera == camera && each.wall.meets(wall_of(page));
    });
  }

  void cut_notes() {
    for (const Erasure& each : erasures_) notes_[each.camera].cut(each.wall);
  }

  Value read_one(const CameraId& camera, const ValueName& name) const {
    const auto pages = cameras_.find(camera);
    if (pages == cameras_.end()) return Value(Missing::absent);
    const auto page = pages->second.find(name.page);
    if (page == pages->second.end() || is_erased(camera, page->second.kept.info))
      return Value(Missing::absent);
    const auto& values = page->second.kept.values;
    for (std::size_t i = 0; i < values.size(); ++i)
      if (values[i].layers == name.layers) return {*page->second.values[i], page->second.values[i]};
    return Value(Missing::absent);
  }

  template <class F>
  Removed remove_pages(F goes) {
    Removed removed;
    for (auto& [camera, pages] : cameras_) {
      std::erase_if(pages, [&, &id = camera](const auto& entry) {
        if (!goes(id, entry.second)) return false;
        ++removed.pages;
        removed.bytes += entry.second.kept.info.bytes;
        return true;
      });
    }
    return removed;
  }

  mutable std::mutex mutex_;
  std::map<CameraId, Pages> cameras_;
  std::map<CameraId, std::uint64_t> last_;
  std::vector<Erasure> erasures_;
  CameraNotes notes_;
  std::uint64_t last_erasure_ = 0, last_part_ = 0;
};

}  // namespace

std::unique_ptr<HistoryStore> make_memory_history_store() {
  return std::make_unique<MemoryHistoryStore>();
}

}  // namespace vigil::history
