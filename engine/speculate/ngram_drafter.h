// Drafts without a model: what followed the last words where they were said before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

namespace vigil::speculate {

struct NgramSettings {
  /// Tokens that have to match: the longest match counts, of these lengths.
  std::size_t least = 1;
  std::size_t most = 4;
  /// Of remembered texts, and of a prompt: so many of the latest tokens are kept, or looked at.
  std::size_t kept_tokens = 8192;
};

/// Looks in the prompt, in what was said so far and in earlier texts (a rule's explanations, say) for the
/// longest piece that ends like this answer; of equal ones the newest is taken: the answer before the prompt,
/// that before the texts, the latest text first. Its drafts were not drawn from anything (Draft::from is
/// empty). One owner at a time.
class NgramDrafter {
 public:
  /// Throws std::invalid_argument unless 1 <= least <= most.
  explicit NgramDrafter(const NgramSettings& settings);

  /// A text for later answers. The oldest ones go for it; of one that is too long itself, the end stays.
  void remember(std::span<const std::int32_t> text);

  /// Up to `count` tokens after `said`; none where nothing matches. Where the piece reaches up to the end of
  /// the answer, it goes on with what was just drafted.
  std::vector<std::int32_t> draft(std::span<const std::int32_t> prompt, std::span<const std::int32_t> said,
                                  std::size_t count) const;

  std::size_t kept() const { return kept_; }

 private:
  NgramSettings settings_;
  /// The latest first.
  std::deque<std::vector<std::int32_t>> texts_;
  std::size_t kept_ = 0;
};

}  // namespace vigil::speculate
