// Tokens that are found in the text as they stand, before pre-tokenizing: `<|im_start|>`, `<|video_pad|>`,
// ...
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace vigil::model {

/// An entry of `added_tokens`, with the flags of the tokenizers library.
struct AddedToken {
  std::int32_t id = 0;
  std::string content;
  /// Left out of decoded text where `skip_special` is asked for.
  bool special = false;
  /// Matched only where no word character touches it.
  bool single_word = false;
  /// Takes the white space before / after it.
  bool lstrip = false;
  bool rstrip = false;
  /// Looked for in normalised text rather than in the text as given.
  bool normalized = false;
};

/// Cuts valid UTF-8 text at added tokens: from the left, the longest first. Immutable, thread-safe.
class AddedTokenSplitter {
 public:
  AddedTokenSplitter() = default;
  /// Tokens with empty content never match.
  explicit AddedTokenSplitter(std::vector<AddedToken> tokens);

  /// Calls `text_part` with the stretches between tokens (not empty) and `token` with the tokens, in the
  /// order of the text.
  void split(std::string_view text, const std::function<void(std::string_view)>& text_part,
             const std::function<void(const AddedToken&)>& token) const;

 private:
  const AddedToken* match_at(std::string_view text, std::size_t at) const;

  /// Grouped by first byte, the longest first within a group.
  std::vector<AddedToken> tokens_;
  /// The group of first byte b is [first_[b], first_[b + 1]).
  std::array<std::uint32_t, 257> first_{};
};

}  // namespace vigil::model
