// What is remembered on its way to the disk: pages that wait until they are a part.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/duration.h"
#include "engine/kv/history/history_store.h"
#include "engine/run/token_mover.h"

namespace vigil::memory {

/// How far the disk is behind what comes: what is kept gets coarser, then embeddings alone are, then nothing.
enum class Pressure : std::uint8_t { none, coarser, embeddings, full };
constexpr std::array<std::string_view, 4> kPressureNames{"none", "coarser", "embeddings", "full"};

/// Gathers pages of a camera, an hour and a form to parts, which one thread writes (`write_next`), whoever
/// offers them. A part is written when it is large, or has waited long, or its camera or hour is over, or
/// when parts that nobody writes yet have a quarter of what may wait: the largest first. So what waits beyond
/// that waits for the disk. It is bounded; a page that has no room is refused. Thread-safe.
class PartQueue {
 public:
  struct Options {
    /// Bytes that may wait, of those that are being written, too.
    std::uint64_t most_waiting = std::uint64_t{512} << 20U;
    /// A part is complete with so many bytes ...
    std::uint64_t part_bytes = std::uint64_t{32} << 20U;
    /// ... or so long after its first page.
    base::Duration part_time = std::chrono::minutes(10);
    /// Layers of the model: of their packed bytes, as many as fit go into one value.
    std::uint16_t layers = 1;
    /// Of a value at most.
    std::size_t value_bytes = std::size_t{4} << 20U;
  };
  /// The store has to outlive it.
  PartQueue(history::HistoryStore& store, Options options);

  /// A page, whose info says all of it but its bytes. False, and nothing is kept, where what waits is too
  /// much. Throws std::invalid_argument for a page that no part may have.
  bool offer(const history::CameraId& camera, history::PageInfo info, const run::MovedTokens& tokens,
             base::Clock::TimePoint now);
  /// What there is of the camera is complete, of all cameras without one.
  void flush(const std::optional<history::CameraId>& camera);
  /// Nothing that meets this range is written any more, but for what is being written. Returns the numbers of
  /// the pages that went. (What is, the store refuses, where it knows of the erasure.)
  std::vector<std::uint64_t> erase(const history::CameraId& camera, const history::WallRange& wall);

  /// A page on its way, in one form; its info as it was offered.
  struct OnItsWay {
    history::PageInfo info;
    run::MovedTokens tokens;
  };
  /// Those of the camera that meet the range. Of what is being written, some may have been erased since.
  std::vector<OnItsWay> pages(const history::CameraId& camera, const history::WallRange& wall) const;

  Pressure pressure() const;
  std::uint64_t waiting() const;

  struct Written {
    history::CameraId camera;
    history::WallRange wall;
    std::uint8_t form = 0;
    std::size_t pages = 0, erased = 0;
    std::uint64_t bytes = 0;
    /// Why nothing of it was written; empty: it was.
    std::string failure;
  };
  /// Writes one part that is complete by now, on the calling thread, one at a time; nothing if none is. One
  /// that fails is given up.
  std::optional<Written> write_next(base::Clock::TimePoint now);
  /// When the next one is complete at the latest.
  std::optional<base::Clock::TimePoint> due() const;

 private:
  struct Page {
    history::PageInfo info;
    run::MovedTokens tokens;
  };
  struct Part {
    history::CameraId camera;
    std::uint32_t hour = 0;
    std::uint8_t form = 0;
    std::vector<Page> pages;
    std::uint64_t bytes = 0;
    base::Clock::TimePoint begun{};
    bool is_complete = false;
  };

  bool is_complete(const Part& part, base::Clock::TimePoint now) const;
  /// Of what is gathered, no more than a quarter of what may wait stays so.
  void limit_gathered();
  Written write(const Part& part) const;
  std::vector<history::GivenValue> values_of(const Page& page) const;

  history::HistoryStore& store_;
  Options options_;
  mutable std::mutex mutex_;
  /// Oldest first.
  std::deque<Part> parts_;
  /// What is being written.
  std::shared_ptr<const Part> writing_;
  std::uint64_t waiting_ = 0;
};

}  // namespace vigil::memory
