// A text on its way from the node that has asked its window to one that goes on with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "actors/messages/watch.h"
#include "base/clock.h"
#include "engine/kv/carried_view.h"
#include "engine/stream/text.h"

namespace vigil::actors {

/// Immutable. Of it, what leaves the process has a form (fleet/wire/text_packing.h).
struct CarriedText {
  /// The asker's name for it, and whose window it is of.
  std::uint64_t ticket = 0;
  WatchRef watch;
  stream::CarriedText text;
  kv::CarriedView view;
  bool is_far = false;
  /// As run::Passes::pages_form; the pages, in the host's memory, of so many bytes each, which their owners
  /// keep.
  std::uint64_t pages_form = 0;
  std::vector<const std::byte*> pages;
  std::size_t page_bytes = 0;
  std::vector<std::shared_ptr<const void>> owners;
  base::Clock::TimePoint due{};
  /// When nobody waits for it any more.
  base::Clock::TimePoint deadline{};
};

}  // namespace vigil::actors
