// A store on a disk that takes nothing.
#pragma once

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
  history::PutReport put(const history::GivenPart& part) override {
    if (fails) throw history::HistoryError("the disk is full");
    return inner_.put(part);
  }
  std::vector<history::Value> read(const history::CameraId& camera,
                                   std::span<const history::ValueName> names) const override {
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
  history::Removed finish_erasures() override { return inner_.finish_erasures(); }
  std::vector<history::Erasure> erasures() const override { return inner_.erasures(); }
  void forget_erasure(std::uint64_t id) override { inner_.forget_erasure(id); }
  history::Removed retire(std::span<const history::Expiry> expiries) override {
    return inner_.retire(expiries);
  }
  std::vector<history::CameraSummary> list() const override { return inner_.list(); }
  history::VerifyReport verify(const std::optional<history::CameraId>& camera) const override {
    return inner_.verify(camera);
  }

 private:
  history::HistoryStore& inner_;
};

}  // namespace vigil::memory::testing
