#include "engine/speculate/ngram_drafter.h"

#include <algorithm>
#include <stdexcept>

namespace vigil::speculate {
namespace {

using Tokens = std::span<const std::int32_t>;

/// A piece of a text that ends like the answer does, and where it ends.
struct Match {
  std::size_t length = 0;
  std::size_t end = 0;
};

/// The longest one in `text` that something follows, from its end on; longer than `above`.
Match longest(Tokens text, Tokens last, std::size_t above) {
  Match best{above, 0};
  for (std::size_t end = text.size(); end-- > 1 && best.length < last.size();) {
    std::size_t length = 0;
    while (length < std::min(last.size(), end) && text[end - 1 - length] == last[last.size() - 1 - length])
      ++length;
    if (length > best.length) best = {length, end};
  }
  return best;
}

}  // namespace

NgramDrafter::NgramDrafter(const NgramSettings& settings) : settings_(settings) {
  if (settings.least == 0 || settings.most < settings.least) {
    throw std::invalid_argument("an n-gram has a token at least, and no more at least than at most");
  }
}

void NgramDrafter::remember(Tokens text) {
  text = text.last(std::min(text.size(), settings_.kept_tokens));
  // One token has nothing that follows it.
  if (text.size() < 2) return;
  texts_.emplace_front(text.begin(), text.end());
  kept_ += text.size();
  while (kept_ > settings_.kept_tokens) {
    kept_ -= texts_.back().size();
    texts_.pop_back();
  }
}

std::vector<std::int32_t> NgramDrafter::draft(Tokens prompt, Tokens said, std::size_t count) const {
  const Tokens seen = prompt.last(std::min(prompt.size(), settings_.kept_tokens));
  const Tokens told = said.last(std::min(said.size(), settings_.kept_tokens));
  std::vector<std::int32_t> own(seen.begin(), seen.end());
  own.insert(own.end(), told.begin(), told.end());
  const std::vector<std::int32_t> last(
      own.end() - static_cast<std::ptrdiff_t>(std::min(own.size(), settings_.most)), own.end());

  Match best = longest(own, last, settings_.least - 1);
  const std::vector<std::int32_t>* of_other = nullptr;
  for (const std::vector<std::int32_t>& text : texts_) {
    const Match match = longest(text, last, best.length);
    if (match.end == 0) continue;
    best = match;
    of_other = &text;
  }
  if (best.end == 0) return {};
  std::vector<std::int32_t> drafts;
  const std::size_t known = own.size();
  for (std::size_t at = best.end; drafts.size() < count; ++at) {
    if (of_other && at == of_other->size()) break;
    drafts.push_back(of_other ? (*of_other)[at] : at < known ? own[at] : drafts[at - known]);
  }
  return drafts;
}

}  // namespace vigil::speculate
