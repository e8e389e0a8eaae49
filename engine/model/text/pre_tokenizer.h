// The pre-tokenizer of a tokenizer.json: regular expressions that cut text into the words within which BPE
// merges.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model/files/json_file.h"

namespace vigil::model {

/// The stages `Split` (behaviour `Isolated`: matches and what lies between them are words) and `ByteLevel`,
/// alone or in a `Sequence`. Immutable, thread-safe.
class PreTokenizer {
 public:
  /// Reads the value of `pre_tokenizer`. Throws ModelError for a stage or an option that is not supported,
  /// for a pattern that does not compile, and for a pipeline that does not end in bytes. `file` stands in
  /// messages.
  PreTokenizer(const Json& json, const std::string& file);
  ~PreTokenizer();
  PreTokenizer(PreTokenizer&&) noexcept;
  PreTokenizer& operator=(PreTokenizer&&) noexcept;

  /// Calls `word` with the consecutive, non-empty words of valid UTF-8 text. Throws ModelError if matching
  /// exceeds PCRE2's limits.
  void split(std::string_view text, const std::function<void(std::string_view)>& word) const;

 private:
  struct Pattern;
  void read_stage(const JsonObject& stage);
  void split_from(std::size_t stage, std::string_view text,
                  const std::function<void(std::string_view)>& word) const;

  std::vector<Pattern> patterns_;
  bool bytes_ = false;
};

}  // namespace vigil::model
