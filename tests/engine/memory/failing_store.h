// A store on a disk that takes nothing.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "engine/kv/history/history_store.h"

namespace vigil::memory::testing {

/// Fails as long as it is told to.
class FailingStore final : public history::HistoryStore {
 public:
  explicit FailingStore(history::HistoryStore& inner) : inner_(inner) {}
  bool fails = true;
  /// Of what is to be removed, for good and of hours that are over.
  bool finishes = true, retires = true;
  std::function<void()> while_putting, while_finishing, while_reading;
  history::PutReport put(const history::GivenPart& part) override {
    if (while_putting) while_putting();
    if (fails) throw history::HistoryError("the disk is full");
    return inner_.put(part);
  }
  std::vector<history::Value> read(const history::CameraId& camera,
                                   std::span<const history::ValueName> names) const override {
    if (while_reading) while_reading();
    return inner_.read(camera, names);
  }
  std::vector<history::KeptPage> pages(const history::CameraId& camera,
                                       const history::WallRange& wall) const override {
    return inner_.pages(camera, wall);
  }
  std::uint64_t last_page(const history::CameraId& camera) const override { return inner_.last_page(camera); }
  std::uint64_t erase(const history::CameraId& camera, const history::WallRange& wall) override {
    if (fails) throw history::HistoryError("the disk is full");
    return inner_.erase(camera, wall);
  }
  history::Removed finish_erasures() override {
    if (!finishes) throw history::HistoryError("a file cannot be removed");
    if (while_finishing) while_finishing();
    return inner_.finish_erasures();
  }
  std::vector<history::Erasure> erasures() const override { return inner_.erasures(); }
  void forget_erasure(std::uint64_t id, std::optional<std::uint8_t> why) override {
    inner_.forget_erasure(id, why);
  }
  void note(std::span<const history::Note> notes) override {
    if (fails) throw history::HistoryError("the disk is full");
    inner_.note(notes);
  }
  std::vector<history::Note> notes(const history::CameraId& camera,
                                   const history::WallRange& wall) const override {
    return inner_.notes(camera, wall);
  }
  history::Removed retire(std::span<const history::Expiry> expiries) override {
    if (!retires) throw history::HistoryError("the disk is gone");
    return inner_.retire(expiries);
  }
  std::vector<history::CameraSummary> list() const override { return inner_.list(); }
  std::vector<history::HourSummary> hours(const std::optional<history::CameraId>& camera) const override {
    return inner_.hours(camera);
  }
  history::VerifyReport verify(const std::optional<history::CameraId>& camera,
                               std::uint64_t numbers_a_page) const override {
    if (while_reading) while_reading();
    return inner_.verify(camera, numbers_a_page);
  }

 private:
  history::HistoryStore& inner_;
};

}  // namespace vigil::memory::testing
