#include "engine/model/text/tokenizer.h"

#include <utility>

#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>

#include "engine/model/files/error.h"
#include "engine/model/text/utf8.h"

namespace vigil::model {
namespace {

constexpr std::int64_t kMostTokenId = 1 << 22;

const icu::Normalizer2& nfc() {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* normalizer = icu::Normalizer2::getNFCInstance(status);
  if (U_FAILURE(status)) throw ModelError(std::string("ICU has no NFC data: ") + u_errorName(status));
  return *normalizer;
}

std::string to_nfc(std::string_view text) {
  UErrorCode status = U_ZERO_ERROR;
  std::string out;
  icu::StringByteSink<std::string> sink(&out, static_cast<std::int32_t>(text.size()));
  nfc().normalizeUTF8(0, icu::StringPiece(text.data(), static_cast<std::int32_t>(text.size())), sink, nullptr,
                      status);
  if (U_FAILURE(status)) throw ModelError(std::string("NFC failed: ") + u_errorName(status));
  return out;
}

}  // namespace

Tokenizer Tokenizer::open(const std::filesystem::path& folder) {
  const auto path = folder / "tokenizer.json";
  return parse(read_text_file(path), path.string());
}

Tokenizer Tokenizer::parse(std::string_view json, const std::string& name) {
  return {parse_json(json, name), name};
}

Tokenizer::Tokenizer(const Json& json, std::string name)
    : name_(std::move(name)),
      words_(JsonObject(json, name_).at("pre_tokenizer"), name_),
      bpe_(JsonObject(json, name_).at("model"), name_) {
  const JsonObject root(json, name_);
  read_normalizer(root);
  if (const auto decoder = root.optional_object("decoder");
      !decoder || decoder->string("type") != "ByteLevel") {
    root.fail("decoder", "only ByteLevel is supported");
  }
  // ByteLevel as a post-processor trims offsets only; anything else would put tokens around the text.
  if (const auto post = root.optional_object("post_processor"); post && post->string("type") != "ByteLevel") {
    root.fail("post_processor", in_quotes(post->string("type")) + " is not supported, ByteLevel is");
  }
  for (const auto& [token, id] : bpe_.vocabulary()) {
    const auto at = static_cast<std::size_t>(id);
    if (pieces_.size() <= at) pieces_.resize(at + 1);
    pieces_[at].bytes = BytePairEncoder::bytes_of(token);
  }
  read_added_tokens(root);
}

void Tokenizer::read_normalizer(const JsonObject& root) {
  const auto normalizer = root.optional_object("normalizer");
  if (!normalizer) return;
  const std::string type = normalizer->string("type");
  if (type == "Sequence") {
    const Json& stages = normalizer->at("normalizers");
    if (stages.is_array() && stages.empty()) return;
    if (!stages.is_array() || stages.size() != 1 ||
        JsonObject(stages[0], name_, "normalizer.normalizers").string("type") != "NFC") {
      normalizer->fail("normalizers", "only NFC is supported");
    }
  } else if (type != "NFC") {
    normalizer->fail("type", in_quotes(type) + " is not supported, NFC is");
  }
  nfc_ = true;
}

void Tokenizer::read_added_tokens(const JsonObject& root) {
  const Json* list = root.find("added_tokens");
  if (list == nullptr) return;
  if (!list->is_array()) root.fail("added_tokens", "a list was expected");
  std::vector<AddedToken> raw;
  std::vector<AddedToken> normalized;
  for (const Json& item : *list) {
    const JsonObject entry(item, name_, "added_tokens");
    AddedToken token;
    token.content = entry.string("content");
    token.id = static_cast<std::int32_t>(entry.integer("id", 0, kMostTokenId));
    token.special = entry.boolean("special", false);
    token.single_word = entry.boolean("single_word", false);
    token.lstrip = entry.boolean("lstrip", false);
    token.rstrip = entry.boolean("rstrip", false);
    token.normalized = entry.boolean("normalized", !token.special);
    const auto at = static_cast<std::size_t>(token.id);
    const std::string what = in_quotes(token.content) + " with the id " + std::to_string(token.id);
    if (const std::int32_t known = bpe_.find(token.content); known >= 0 && known != token.id) {
      root.fail("added_tokens", what + " has the id " + std::to_string(known) + " in the vocabulary");
    }
    const std::string bytes = BytePairEncoder::bytes_of(token.content);
    if (at < pieces_.size() && !pieces_[at].bytes.empty() && pieces_[at].bytes != bytes) {
      root.fail("added_tokens", what + " takes the id of another token");
    }
    if (!added_.emplace(token.content, token.id).second) root.fail("added_tokens", what + " occurs twice");
    if (pieces_.size() <= at) pieces_.resize(at + 1);
    pieces_[at] = {bytes, token.special};
    if (token.normalized) {
      token.content = normalize(token.content);
      normalized.push_back(std::move(token));
    } else {
      raw.push_back(std::move(token));
    }
  }
  raw_tokens_ = AddedTokenSplitter(std::move(raw));
  normalized_tokens_ = AddedTokenSplitter(std::move(normalized));
}

std::string Tokenizer::normalize(std::string_view text) const {
  return nfc_ ? to_nfc(text) : std::string(text);
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<std::int32_t> ids;
  const auto add_token = [&ids](const AddedToken& token) { ids.push_back(token.id); };
  const auto add_words = [&](std::string_view part) {
    words_.split(part, [&](std::string_view word) { bpe_.encode(word, ids); });
  };
  raw_tokens_.split(
      replace_invalid_utf8(text),
      [&](std::string_view part) { normalized_tokens_.split(normalize(part), add_words, add_token); },
      add_token);
  return ids;
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, bool skip_special) const {
  std::string text;
  for (const std::int32_t id : ids) {
    if (!skip_special || !is_special(id)) text += bytes(id);
  }
  return replace_invalid_utf8(text);
}

std::string_view Tokenizer::bytes(std::int32_t id) const {
  if (id < 0 || id >= id_limit()) return {};
  return pieces_[static_cast<std::size_t>(id)].bytes;
}

bool Tokenizer::is_special(std::int32_t id) const {
  return id >= 0 && id < id_limit() && pieces_[static_cast<std::size_t>(id)].special;
}

std::int32_t Tokenizer::find(std::string_view token) const {
  const std::string key(token);
  const auto added = added_.find(key);
  return added != added_.end() ? added->second : bpe_.find(key);
}

bool Tokenizer::is_added(std::string_view token) const {
  return added_.contains(std::string(token));
}

void Tokenizer::require_ids_below(std::int32_t vocab_size) const {
  if (id_limit() <= vocab_size) return;
  const std::int32_t id = id_limit() - 1;
  throw ModelError(name_ + ": the token " + in_quotes(bytes(id)) + " has the id " + std::to_string(id) +
                   ", the model's vocab_size is " + std::to_string(vocab_size));
}

void Tokenizer::require_added(std::string_view token, std::int32_t id) const {
  if (!is_added(token)) throw ModelError(name_ + ": the special token " + in_quotes(token) + " is missing");
  if (id >= 0 && find(token) != id) {
    throw ModelError(name_ + ": the token " + in_quotes(token) + " has the id " +
                     std::to_string(find(token)) + ", the model's configuration says " + std::to_string(id));
  }
}

std::string StreamDecoder::push(std::int32_t id) {
  if (skip_special_ && tokenizer_->is_special(id)) return {};
  pending_ += tokenizer_->bytes(id);
  const std::size_t whole = pending_.size() - incomplete_utf8_tail(pending_);
  std::string text = replace_invalid_utf8(std::string_view(pending_).substr(0, whole));
  pending_.erase(0, whole);
  return text;
}

std::string StreamDecoder::finish() {
  return replace_invalid_utf8(std::exchange(pending_, {}));
}

}  // namespace vigil::model
