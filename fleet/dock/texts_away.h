// Texts that were asked of this node's streams, and which of them go on at another node.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "engine/stream/ids.h"
#include "fleet/messages/messages.h"

namespace vigil::fleet {

/// A text is here or away, at one other node, from which it comes back, or comes too late: then it is written
/// here. Each has the ticket by which this node knows it. Not thread-safe.
class TextsAway {
 public:
  /// To one node at once, at most: texts, and bytes of their pages. Others stay.
  static constexpr std::size_t kMostTexts = 32;
  static constexpr std::uint64_t kMostBytes = std::uint64_t{512} << 20;
  /// How long a text may be away: then there is still time to explain it here, before whoever has asked gives
  /// it up (actors::kExplanationPatience).
  static constexpr base::Duration kPatience{6000};

  struct Text {
    /// Who has asked, and by which ticket of his.
    link_actor link;
    std::uint64_t ticket = 0;
    stream::WindowId window;
    std::uint32_t rule = 0;
    base::Clock::TimePoint at;
    /// Where it is; empty: here. And its bytes there.
    std::string node = {};
    std::uint64_t bytes = 0;
  };

  /// `self`: this node. The clock has to outlive it.
  TextsAway(const base::Clock& clock, std::string self) : clock_(clock), self_(std::move(self)) {}

  /// Which node is to go on with a camera's texts, as its owner with this fence says; an earlier owner's word
  /// counts for nothing. Returns it, if it is another one than this.
  std::string know(const TextsAt& place);
  /// Of a camera that has ended here, what an owner up to this fence has said.
  void forget(const std::string& camera, std::uint64_t fence);
  /// The other node that goes on with a camera's texts; empty: none does.
  std::string place_of(const std::string& camera) const;
  /// Whether that node may have one more.
  bool has_room(const std::string& node) const;

  /// `node`: to which it goes; empty: it stays.
  const Text& ask(std::uint64_t own, const actors::Explain& request, link_actor link, std::string node);
  /// Null: there is none (any more).
  const Text* find(std::uint64_t own) const;
  /// Null, too, for one that is here.
  const Text* find_away(std::uint64_t own) const;
  /// It was sent, with so many bytes of pages.
  void sent(std::uint64_t own, std::uint64_t bytes);
  /// It is here from now on; whatever still comes of it from elsewhere is nobody's.
  void stay(std::uint64_t own);
  /// It is explained, and forgotten.
  std::optional<Text> take(std::uint64_t own);

  /// Those that are at that node; and those that are away for too long.
  std::vector<std::uint64_t> at(const std::string& node) const;
  std::vector<std::uint64_t> overdue() const;
  /// Forgets those that nobody waits for any more.
  void forget_old();

 private:
  struct Place {
    std::string node;
    std::uint64_t fence = 0;
  };

  const base::Clock& clock_;
  const std::string self_;
  std::map<std::uint64_t, Text> texts_;
  /// By camera.
  std::map<std::string, Place> places_;
};

}  // namespace vigil::fleet
