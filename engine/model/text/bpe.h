// Byte-pair encoding over bytes: the `model` of a byte-level tokenizer.json.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/model/files/json_file.h"

namespace vigil::model {

/// Greedy merging by rank, the leftmost of equal rank first, as the tokenizers library does. Every word can
/// be encoded: a vocabulary that lacks one of the 256 bytes is rejected. Immutable, thread-safe.
class BytePairEncoder {
 public:
  /// Reads the value of `model`. Throws ModelError for another model type, an option that would change the
  /// result and is not supported, a token without a fitting id, and a merge whose parts or result the
  /// vocabulary lacks.
  BytePairEncoder(const Json& json, const std::string& file);

  /// Appends the ids of one word (any bytes). O(n log n) in its length.
  void encode(std::string_view word, std::vector<std::int32_t>& ids) const;

  /// The id of a token as the file spells it (bytes in GPT-2's printable alphabet), or -1.
  std::int32_t find(const std::string& token) const;
  /// Ids of all tokens by their spelling.
  const std::unordered_map<std::string, std::int32_t>& vocabulary() const { return ids_; }

  /// The bytes that a token stands for: its characters mapped back, or its own UTF-8 if one of them is not in
  /// the alphabet.
  static std::string bytes_of(std::string_view token);

 private:
  struct Merge {
    std::int32_t rank;
    std::int32_t id;
  };
  const Merge* merge_of(std::int32_t left, std::int32_t right) const;
  void read_vocabulary(const JsonObject& model);
  void read_merges(const JsonObject& model);

  std::unordered_map<std::string, std::int32_t> ids_;
  std::array<std::int32_t, 256> byte_ids_{};
  /// By left id in the upper, right id in the lower half.
  std::unordered_map<std::uint64_t, Merge> merges_;
  bool ignore_merges_ = false;
};

}  // namespace vigil::model
