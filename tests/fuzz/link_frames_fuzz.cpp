// What one node sends another by its bulk way: the first byte is the header's, then the length of the form in
// two bytes, the form, and one part of bytes behind it, half of it a second one if the length is odd. It is
// refused, or read back as it was written; pixels and visual tokens are as many as their form says.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/kv/carried_view.h"
#include "fleet/dock/text_arrivals.h"
#include "fleet/wire/link_frames.h"

namespace {

using namespace vigil;

void require(bool holds) {
  if (!holds) std::abort();
}

class NoClock final : public base::Clock {
 public:
  TimePoint now() const override { return TimePoint(std::chrono::hours(1)); }
  WallTime wall() const override { return WallTime(std::chrono::hours(1)); }
};

void look_at(const fleet::PackedPatch& patch, const base::Clock& clock) {
  const auto whole = fleet::unpack(patch, 28, clock);
  if (!whole) return;
  require(whole->frames.size() == patch.frames.size() && !whole->frames.empty());
  for (const media::SampledFrame& frame : whole->frames)
    require(frame.image->rgb.size() == std::size_t{3} * static_cast<std::size_t>(frame.image->size.width) *
                                           static_cast<std::size_t>(frame.image->size.height));
}

void look_at(const fleet::PackedTokens& tokens, const base::Clock& clock) {
  const auto whole = fleet::unpack(tokens, 0, clock);
  if (!whole) return;
  require(whole->tokens->bytes() == tokens.embeddings[0].size());
  require(whole->tokens->count() <= whole->tokens->kept.cells());
  require(whole->tokens->encoded >= 0 && whole->tokens->encoded <= whole->tokens->kept.cells());
}

/// Its pages come, and it is given places for them, or neither.
void look_at(const fleet::TextFrame& frame, const base::Clock& clock) {
  fleet::TextArrivals arrivals(clock, 1 << 20);
  const bool is_refused = !arrivals.begin("node", frame.form).empty();
  require(is_refused == (arrivals.bytes() == 0));
  if (is_refused) return;
  fleet::PackedPages pages{frame.form.ticket, 0, {}};
  pages.pages.assign(static_cast<std::size_t>(frame.form.view.pages),
                     cluster::Bytes(std::string(frame.form.page_bytes, 'k')));
  const auto news = arrivals.take("node", pages);
  require(news.size() == 1 && news[0].text && arrivals.bytes() == 0);
  const kv::CarriedView& view = news[0].text->view;
  constexpr int kPageTokens = 16;
  if (!view.is_sound(kPageTokens) || view.pages > 64) return;
  kv::Book book(64, kPageTokens);
  {
    auto claim = book.claim(view.pages);
    std::vector<kv::PageId> taken;
    const kv::View made = view.in(book, *claim, taken);
    require(made.size() == view.tokens() && taken.size() == static_cast<std::size_t>(view.pages));
    std::vector<kv::PageId> again;
    require(kv::CarriedView::of(made, again).tokens() == view.tokens());
  }
  require(book.free_pages() == book.pages());
}

template <class Other>
void look_at(const Other& /*frame*/, const base::Clock& /*clock*/) {}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 3) return 0;
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const std::size_t length = data[1] + std::size_t{256} * data[2];
  const std::string_view form = all.substr(3, length);
  const std::string_view rest = all.substr(3 + form.size());
  cluster::BulkMessage message{std::string(all.substr(0, 1)), {cluster::Bytes(std::string(form))}};
  const std::size_t half = length % 2 == 1 ? rest.size() / 2 : rest.size();
  message.parts.emplace_back(std::string(rest.substr(0, half)));
  if (length % 2 == 1) message.parts.emplace_back(std::string(rest.substr(half)));
  // Those that have a form alone.
  if (rest.empty() && data[0] != 'P' && data[0] != 't') message.parts.resize(1);
  const auto frame = fleet::read(message);
  if (!frame) return 0;
  const auto again = fleet::read(fleet::write(*frame));
  require(again.has_value() && again->index() == frame->index());
  const NoClock clock;
  std::visit([&](const auto& each) { look_at(each, clock); }, *frame);
  return 0;
}
