#include "engine/model/text/added_tokens.h"

#include <algorithm>
#include <utility>

#include <unicode/uchar.h>
#include <unicode/utf8.h>

namespace vigil::model {
namespace {

std::size_t first_byte(const AddedToken& token) {
  return static_cast<unsigned char>(token.content[0]);
}

bool is_space(UChar32 c) {
  return u_hasBinaryProperty(c, UCHAR_WHITE_SPACE) != 0;
}

/// \w as Unicode Technical Standard 18 defines it.
bool is_word(UChar32 c) {
  constexpr std::uint32_t kMarksDigitsConnectors = U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK;
  return u_hasBinaryProperty(c, UCHAR_ALPHABETIC) != 0 || u_hasBinaryProperty(c, UCHAR_JOIN_CONTROL) != 0 ||
         (U_MASK(u_charType(c)) & kMarksDigitsConnectors) != 0;
}

/// The character that ends at `end`; moves `end` to where it begins.
UChar32 previous(std::string_view text, std::size_t& end) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(text.data());
  std::size_t begin = end - 1;
  while (begin > 0 && U8_IS_TRAIL(bytes[begin])) --begin;
  std::size_t at = begin;
  UChar32 character = 0;
  U8_NEXT(bytes, at, text.size(), character);
  end = begin;
  return character;
}

/// The character at `at`; moves `at` behind it.
UChar32 next(std::string_view text, std::size_t& at) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(text.data());
  UChar32 character = 0;
  U8_NEXT(bytes, at, text.size(), character);
  return character;
}

bool touches_word(std::string_view text, std::size_t begin, std::size_t end) {
  std::size_t before = begin;
  std::size_t after = end;
  return (begin > 0 && is_word(previous(text, before))) || (end < text.size() && is_word(next(text, after)));
}

}  // namespace

AddedTokenSplitter::AddedTokenSplitter(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::erase_if(tokens_, [](const AddedToken& token) { return token.content.empty(); });
  std::stable_sort(tokens_.begin(), tokens_.end(), [](const AddedToken& a, const AddedToken& b) {
    if (first_byte(a) != first_byte(b)) return first_byte(a) < first_byte(b);
    return a.content.size() > b.content.size();
  });
  for (const AddedToken& token : tokens_) ++first_[first_byte(token) + 1];
  for (std::size_t byte = 0; byte < 256; ++byte) first_[byte + 1] += first_[byte];
}

const AddedToken* AddedTokenSplitter::match_at(std::string_view text, std::size_t at) const {
  const auto byte = static_cast<unsigned char>(text[at]);
  for (std::uint32_t i = first_[byte]; i < first_[byte + std::size_t{1}]; ++i) {
    if (text.substr(at).starts_with(tokens_[i].content)) return &tokens_[i];
  }
  return nullptr;
}

void AddedTokenSplitter::split(std::string_view text, const std::function<void(std::string_view)>& text_part,
                               const std::function<void(const AddedToken&)>& token) const {
  std::size_t done = 0;
  std::size_t at = 0;
  while (!tokens_.empty() && at < text.size()) {
    const AddedToken* found = match_at(text, at);
    if (found == nullptr) {
      ++at;
      continue;
    }
    std::size_t begin = at;
    std::size_t end = at + found->content.size();
    at = end;
    if (found->single_word && touches_word(text, begin, end)) continue;
    if (found->lstrip) {
      for (std::size_t before = begin; begin > done && is_space(previous(text, before));) begin = before;
    }
    if (found->rstrip) {
      for (std::size_t after = end; end < text.size() && is_space(next(text, after));) end = after;
    }
    if (begin > done) text_part(text.substr(done, begin - done));
    token(*found);
    done = std::max(done, end);
  }
  if (done < text.size()) text_part(text.substr(done));
}

}  // namespace vigil::model
