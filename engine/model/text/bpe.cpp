#include "engine/model/text/bpe.h"

#include <limits>
#include <queue>

#include <unicode/utf8.h>

#include "engine/model/files/error.h"

namespace vigil::model {
namespace {

constexpr std::int64_t kMostId = 1 << 22;

/// GPT-2's alphabet: printable bytes of Latin-1 stand for themselves, the others for U+0100 and up.
std::array<char16_t, 256> byte_characters() {
  std::array<char16_t, 256> characters{};
  char16_t next = 0x100;
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    characters[byte] = printable ? static_cast<char16_t>(byte) : next++;
  }
  return characters;
}

/// The inverse: the byte of a character below U+0144, or -1.
std::array<std::int16_t, 0x144> character_bytes() {
  std::array<std::int16_t, 0x144> bytes{};
  bytes.fill(-1);
  const auto characters = byte_characters();
  for (std::size_t byte = 0; byte < 256; ++byte) bytes[characters[byte]] = static_cast<std::int16_t>(byte);
  return bytes;
}

std::string spelling_of(std::string_view bytes) {
  static const auto kCharacters = byte_characters();
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    const char16_t character = kCharacters[static_cast<unsigned char>(c)];
    if (character < 0x80) {
      text += static_cast<char>(character);
    } else {
      text += static_cast<char>(0xC0U | (character >> 6U));
      text += static_cast<char>(0x80U | (character & 0x3FU));
    }
  }
  return text;
}

std::uint64_t pair_of(std::int32_t left, std::int32_t right) {
  return (std::uint64_t{static_cast<std::uint32_t>(left)} << 32U) | static_cast<std::uint32_t>(right);
}

/// A stretch of the word during merging; neighbours by index, -1 at the ends. A stretch that was merged away
/// has id -1.
struct Symbol {
  std::int32_t id;
  std::int32_t previous;
  std::int32_t next;
};

/// A merge that was possible when it was found; it still is if `left` and its neighbour then merge to the
/// same token. (Not: if the two are the same as then. The tokenizers library lets a pair merge at the rank of
/// another that made the same token there.)
struct MergeAt {
  std::int32_t rank;
  std::int32_t left;
  std::int32_t merged_id;
};

struct Later {
  bool operator()(const MergeAt& a, const MergeAt& b) const {
    return a.rank != b.rank ? a.rank > b.rank : a.left > b.left;
  }
};

}  // namespace

BytePairEncoder::BytePairEncoder(const Json& json, const std::string& file) {
  const JsonObject model(json, file, "model");
  // Old files leave the type out where it is BPE.
  if (const std::string type = model.string("type", "BPE"); type != "BPE") {
    model.fail("type", in_quotes(type) + " is not supported, BPE is");
  }
  if (model.number("dropout", 0, 1, 0) != 0) model.fail("dropout", "only none is supported");
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!model.string(key, "").empty()) model.fail(key, "only none is supported");
  }
  ignore_merges_ = model.boolean("ignore_merges", false);
  read_vocabulary(model);
  read_merges(model);
}

void BytePairEncoder::read_vocabulary(const JsonObject& model) {
  const JsonObject vocabulary = model.object("vocab");
  ids_.reserve(vocabulary.json().size());
  std::vector<bool> taken;
  for (const auto& [token, id] : vocabulary.json().items()) {
    const auto given = integer_within(id, 0, kMostId);
    if (!given) {
      vocabulary.fail(in_quotes(token),
                      "the id " + in_quotes(id.dump()) + " is not between 0 and " + std::to_string(kMostId));
    }
    const auto number = static_cast<std::int32_t>(*given);
    if (taken.size() <= static_cast<std::size_t>(number)) taken.resize(static_cast<std::size_t>(number) + 1);
    if (taken[static_cast<std::size_t>(number)]) {
      vocabulary.fail(in_quotes(token), "the id " + std::to_string(number) + " belongs to another token too");
    }
    taken[static_cast<std::size_t>(number)] = true;
    ids_.emplace(token, number);
  }
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    const std::string spelling = spelling_of({&c, 1});
    byte_ids_[byte] = find(spelling);
    if (byte_ids_[byte] < 0) {
      vocabulary.fail(in_quotes(spelling), "missing; a byte-level vocabulary has all 256 bytes");
    }
  }
}

void BytePairEncoder::read_merges(const JsonObject& model) {
  const Json& merges = model.at("merges");
  if (!merges.is_array() || merges.size() > static_cast<std::size_t>(kMostId)) {
    model.fail("merges", "a list was expected");
  }
  merges_.reserve(merges.size());
  std::int32_t rank = 0;
  for (const Json& merge : merges) {
    std::string left;
    std::string right;
    if (merge.is_string()) {
      const auto& text = merge.get_ref<const std::string&>();
      const std::size_t space = text.find(' ');
      if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) {
        model.fail("merges", in_quotes(text) + " is not two tokens with a space between");
      }
      left = text.substr(0, space);
      right = text.substr(space + 1);
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      left = merge[0].get<std::string>();
      right = merge[1].get<std::string>();
    } else {
      model.fail("merges", "number " + std::to_string(rank) + " is not a pair of tokens");
    }
    const auto id_of = [&](const std::string& token) {
      const std::int32_t id = find(token);
      if (id < 0) {
        model.fail("merges", "number " + std::to_string(rank) + " needs the token " + in_quotes(token) +
                                 ", which the vocabulary lacks");
      }
      return id;
    };
    const std::uint64_t pair = pair_of(id_of(left), id_of(right));
    // A pair that is listed twice has its last rank, as in the tokenizers library.
    merges_.insert_or_assign(pair, Merge{rank, id_of(left + right)});
    ++rank;
  }
}

std::int32_t BytePairEncoder::find(const std::string& token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? -1 : found->second;
}

const BytePairEncoder::Merge* BytePairEncoder::merge_of(std::int32_t left, std::int32_t right) const {
  const auto found = merges_.find(pair_of(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

void BytePairEncoder::encode(std::string_view word, std::vector<std::int32_t>& ids) const {
  if (ignore_merges_) {
    if (const std::int32_t id = find(spelling_of(word)); id >= 0) {
      ids.push_back(id);
      return;
    }
  }
  if (word.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
    throw ModelError("a text of " + std::to_string(word.size()) + " bytes is too long to be tokenized");
  }
  const auto length = static_cast<std::int32_t>(word.size());
  std::vector<Symbol> symbols;
  symbols.reserve(word.size());
  for (std::int32_t i = 0; i < length; ++i) {
    const auto byte = static_cast<unsigned char>(word[static_cast<std::size_t>(i)]);
    symbols.push_back({byte_ids_[byte], i - 1, i + 1 < length ? i + 1 : -1});
  }
  const auto symbol = [&symbols](std::int32_t at) -> Symbol& {
    return symbols[static_cast<std::size_t>(at)];
  };
  std::priority_queue<MergeAt, std::vector<MergeAt>, Later> candidates;
  /// The merge of the symbol at `left` and the one after it, or null.
  const auto possible = [&](std::int32_t left) -> const Merge* {
    if (left < 0 || symbol(left).next < 0) return nullptr;
    return merge_of(symbol(left).id, symbol(symbol(left).next).id);
  };
  const auto consider = [&](std::int32_t left) {
    if (const Merge* merge = possible(left); merge != nullptr)
      candidates.push({merge->rank, left, merge->id});
  };
  for (std::int32_t i = 0; i + 1 < length; ++i) consider(i);
  while (!candidates.empty()) {
    const MergeAt best = candidates.top();
    candidates.pop();
    const Merge* merge = possible(best.left);
    if (merge == nullptr || merge->id != best.merged_id) continue;
    Symbol& left = symbol(best.left);
    Symbol& right = symbol(left.next);
    left.id = best.merged_id;
    left.next = right.next;
    right = {-1, -1, -1};
    if (left.next >= 0) symbol(left.next).previous = best.left;
    consider(left.previous);
    consider(best.left);
  }
  for (std::int32_t at = 0; at >= 0 && at < length; at = symbol(at).next) ids.push_back(symbol(at).id);
}

std::string BytePairEncoder::bytes_of(std::string_view token) {
  static const auto kBytes = character_bytes();
  std::string bytes;
  const auto* text = reinterpret_cast<const std::uint8_t*>(token.data());
  for (std::size_t at = 0; at < token.size();) {
    UChar32 character = 0;
    U8_NEXT(text, at, token.size(), character);
    const bool known = character >= 0 && static_cast<std::size_t>(character) < kBytes.size();
    const int byte = known ? kBytes[static_cast<std::size_t>(character)] : -1;
    if (byte < 0) return std::string(token);
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

}  // namespace vigil::model
