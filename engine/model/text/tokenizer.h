// Text to token ids and back, as the `tokenizer.json` of a Hugging Face folder tells it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/model/text/added_tokens.h"
#include "engine/model/text/bpe.h"
#include "engine/model/text/pre_tokenizer.h"

namespace vigil::model {

/// A byte-level BPE tokenizer: added tokens, NFC, regular expressions, merges. Equal to the tokenizers
/// library id by id for the files that it accepts; what it cannot do the same way it refuses to load.
/// Immutable, thread-safe.
class Tokenizer {
 public:
  /// Reads `folder/tokenizer.json`. Throws ModelError naming the file and the key or token.
  static Tokenizer open(const std::filesystem::path& folder);
  /// The same from text; `name` stands in messages.
  static Tokenizer parse(std::string_view json, const std::string& name);

  /// The ids of a text. Added tokens in it are recognised, none are put around it. Ill-formed UTF-8 counts as
  /// U+FFFD.
  std::vector<std::int32_t> encode(std::string_view text) const;

  /// The text of ids; bytes that are no UTF-8 become U+FFFD, ids without a token nothing. `skip_special`
  /// leaves special tokens out.
  std::string decode(std::span<const std::int32_t> ids, bool skip_special) const;

  /// The bytes of one token, not always whole characters; empty for an id without a token.
  std::string_view bytes(std::int32_t id) const;
  bool is_special(std::int32_t id) const;
  /// The id of an added token, or of a token as the vocabulary spells it; -1 if there is none.
  std::int32_t find(std::string_view token) const;
  /// Whether `find(token)` is an added token, that is: whether a text that contains it is cut there.
  bool is_added(std::string_view token) const;

  /// One more than the largest id.
  std::int32_t id_limit() const { return static_cast<std::int32_t>(pieces_.size()); }
  /// The file, for messages.
  const std::string& name() const { return name_; }

  /// Throws ModelError naming the file and the token if an id lies beyond the model's `vocab_size`.
  void require_ids_below(std::int32_t vocab_size) const;
  /// Throws ModelError naming the file and the token unless `token` is an added token, with this id if `id`
  /// is not negative.
  void require_added(std::string_view token, std::int32_t id = -1) const;

 private:
  Tokenizer(const Json& json, std::string name);
  void read_normalizer(const JsonObject& root);
  void read_added_tokens(const JsonObject& root);
  std::string normalize(std::string_view text) const;

  struct Piece {
    std::string bytes;
    bool special = false;
  };

  std::string name_;
  bool nfc_ = false;
  PreTokenizer words_;
  BytePairEncoder bpe_;
  AddedTokenSplitter raw_tokens_;
  AddedTokenSplitter normalized_tokens_;
  std::unordered_map<std::string, std::int32_t> added_;
  /// By id.
  std::vector<Piece> pieces_;
};

/// Decodes token by token and gives out whole characters only. All pieces together equal `Tokenizer::decode`
/// of all ids.
class StreamDecoder {
 public:
  /// `tokenizer` has to outlive the decoder.
  StreamDecoder(const Tokenizer& tokenizer, bool skip_special)
      : tokenizer_(&tokenizer), skip_special_(skip_special) {}

  /// The text that this token completes; may be empty.
  std::string push(std::int32_t id);
  /// What is left of a character that was never completed: U+FFFD, or nothing.
  std::string finish();

 private:
  const Tokenizer* tokenizer_;
  bool skip_special_;
  std::string pending_;
};

}  // namespace vigil::model
