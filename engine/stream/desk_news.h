// What a desk tells of what it was asked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/duration.h"
#include "engine/stream/answer.h"
#include "engine/stream/ids.h"

namespace vigil::stream {

/// What came of what was asked. Each window is named once in the first three.
struct DeskNews {
  /// The first tokens of all its answers are known.
  struct Answered {
    WindowId window;
    std::vector<Answer> answers;
    WindowTokens tokens;
    /// When its first pass since it was asked began.
    base::Clock::TimePoint begun{};
  };
  std::vector<Answered> answered;
  /// There are no answers.
  struct Failed {
    WindowId window;
    std::string reason;
    bool out_of_memory = false;
  };
  std::vector<Failed> failed;
  std::vector<WindowId> overtaken;

  /// A text that was to be continued has ended, or cannot.
  struct Told {
    WindowId window;
    std::size_t question = 0;
    Answer answer;
    /// Null: there is an answer.
    std::exception_ptr failure;
    /// When the pass of its second token began; nothing if it had none.
    std::optional<base::Clock::TimePoint> begun;
  };
  std::vector<Told> told;

  /// What a pass has added to a text; if that is told (`StreamDesk::tell_tokens`).
  struct Spoken {
    WindowId window;
    std::size_t question = 0;
    /// None where it ended without another one.
    std::vector<std::int32_t> tokens;
    /// Tokens that it had before.
    std::size_t from = 0;
    /// Of what was proposed to that pass, all, and what the sampler chose as well.
    std::size_t proposed = 0, accepted = 0;
    bool is_done = false;
  };
  std::vector<Spoken> spoken;

  /// Memory did not suffice: passes have so many rows at most from now on, for this reason.
  struct Pressed {
    std::int64_t rows = 0;
    std::string reason;
  };
  std::optional<Pressed> pressed;

  /// What lay before a camera's windows has no room, or could not be read, and is gone; they go on without,
  /// and it begins anew.
  struct Forgotten {
    std::string camera;
    std::string reason;
    /// Of what all memories may take it once might take more: others have come since.
    bool had_more_room = false;
  };
  std::vector<Forgotten> forgotten;

  /// A camera's windows remember less than they should from now on: what all memories may take together is
  /// less than they need. Once, until it has what it needs again.
  struct Shortened {
    std::string camera;
    base::Duration remembered{}, wanted{};
    /// Bytes of the host's memory: what it may take, and what it could use.
    std::int64_t room = 0, need = 0;
    /// As `Forgotten`'s.
    bool had_more_room = false;
  };
  std::vector<Shortened> shortened;

  bool empty() const {
    return answered.empty() && failed.empty() && overtaken.empty() && told.empty() && !pressed &&
           forgotten.empty() && shortened.empty() && spoken.empty();
  }
};

}  // namespace vigil::stream
