// Whether a camera's windows fit its budget of keys and values, and what is done about it if they do not.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace vigil::actors {

/// First, what the camera sends gets less: of a window's patches, so many groups that the window fits, with
/// its whole pictures. If that is not enough, or its pruning cannot rank groups, its windows forget their
/// oldest patches. Once either began, it ends when a whole window of patches went by without a call for it,
/// so that a busy scene does not switch it with each patch. Of one camera; not thread-safe.
class WindowBudget {
 public:
  /// within: there is room for all; pruned: the camera sends less; shortened: windows forget their oldest.
  enum class Level : std::uint8_t { within, pruned, shortened };

  /// When a patch has joined.
  struct Load {
    /// Visual tokens of a window of full length that ended with it, as far as they are there.
    std::int64_t tokens = 0;
    /// Tokens that the budget has room for; nothing: there is no budget.
    std::optional<std::int64_t> budget;
    /// Of a picture that is sent whole.
    std::int64_t picture = 0;
    /// Of a window of full length.
    std::int64_t patches = 0;
    /// Tokens that windows forgot because of it.
    std::int64_t forgotten = 0;
    /// Whether the camera's pruning heeds a bound.
    bool can_prune = false;
  };
  struct Verdict {
    /// As `Advice::share`.
    double share = 1;
    /// The level that it came to, if that is news: a higher one, or that all is well again.
    std::optional<Level> entered;
    /// The one before.
    Level left = Level::within;
  };
  Verdict hear(const Load& load);

  Level level() const { return level_; }

  /// Of a picture's groups, those that every patch may have so that a window fits, beside two whole pictures
  /// (the one that leaves and the one that comes); at least `kLeastShare`.
  static double share_of(const Load& load);
  /// Less shows no object: then a shorter window serves better.
  static constexpr double kLeastShare = 0.05;

 private:
  Level level_ = Level::within;
  /// Patches since there was a last call for it.
  std::int64_t since_pruned_ = 0, since_shortened_ = 0;
};

/// The line about it, without the camera's name.
std::string budget_line(WindowBudget::Level entered, const WindowBudget::Load& load, std::uint64_t bytes);

}  // namespace vigil::actors
