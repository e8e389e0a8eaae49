// What devices and the cache tell each other of what cameras remember. Plain, and free of CAF.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "engine/kv/forms.h"
#include "engine/memory/page_maker.h"
#include "engine/memory/recall_desk.h"
#include "engine/stream/answer.h"

namespace vigil::actors {

/// Pages that have left windows of a device. Whoever takes them moves out of it.
struct LeftPages {
  memory::PageMaker::News news;
};

/// In which forms pages are wanted from now on, the finest first.
struct WantedForms {
  std::vector<kv::Form> forms;
};

/// How long what cameras saw is remembered, of all that a configuration has: also where they are not watched
/// any more, or not yet.
struct Keeps {
  std::map<history::CameraId, base::Duration> cameras;
};

/// What the windows of a camera still show is wanted.
struct Show {
  /// The cache's name for it.
  std::uint64_t ticket = 0;
  std::string camera;
};

/// All of it has come from this device, if it has any.
struct Shown {
  std::uint64_t ticket = 0;
};

/// A question to a window of the past.
struct Recall {
  /// The cache's name for it.
  std::uint64_t ticket = 0;
  /// Without its questions, which are `text`.
  memory::Recalling what;
  std::string text;
  int max_tokens = 1;
};

/// What came of it.
struct Recalled {
  std::uint64_t ticket = 0;
  stream::Answer answer;
  /// Why there is no answer; empty: there is one. `is_busy`: later there might be.
  std::string failure;
  bool is_busy = false;
};

}  // namespace vigil::actors
