// Texts whose pages are on their way to this node, until all of them are there.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "actors/messages/messages.h"
#include "base/clock.h"
#include "cluster/bulk/bulk.h"
#include "fleet/wire/text_packing.h"

namespace vigil::fleet {

/// A node sends one text after the other, each with its pages in their order. What does not fit that is
/// refused, and the pages that belong to it are passed over. Not thread-safe.
class TextArrivals {
 public:
  /// Without a page for so long, no more come: by then whoever sent it has it explained himself
  /// (TextsAway::kPatience).
  static constexpr base::Duration kPatience{7000};

  /// Of all nodes together, bytes of texts that are not complete at most.
  explicit TextArrivals(const base::Clock& clock, std::uint64_t most = kMostTextBytes)
      : clock_(clock), most_(most) {}

  /// What is to be told of a text: that it is whole, or why it will not be.
  struct News {
    std::uint64_t ticket = 0;
    actors::CarriedTextPtr text;
    std::string refusal;
  };
  /// It takes the place of one of this node that is not whole.
  std::vector<News> begin(const std::string& node, TextForm form);
  std::vector<News> take(const std::string& node, const PackedPages& pages);
  /// Those that do not come any more, by node.
  std::vector<std::pair<std::string, News>> take_overdue();
  /// Nothing more of what this node has begun comes.
  void forget(const std::string& node);

  std::uint64_t bytes() const { return bytes_; }

 private:
  struct Arriving {
    TextForm form;
    std::vector<cluster::Bytes> pages;
    /// When the last one came.
    base::Clock::TimePoint at{};
  };

  const base::Clock& clock_;
  std::uint64_t most_;
  /// By node.
  std::map<std::string, Arriving> arriving_;
  std::uint64_t bytes_ = 0;
};

}  // namespace vigil::fleet
