#include "fleet/wire/text_packing.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

namespace vigil::fleet {
namespace {

using std::chrono::microseconds;

/// Of how much a clock's times may be apart.
constexpr std::int64_t kFarthest = 86'400'000'000;
/// Larger pages are no cache's.
constexpr std::int32_t kMostPageTokens = 1 << 16;

std::int64_t from_now(base::Clock::TimePoint time, base::Clock::TimePoint now) {
  return std::clamp(std::chrono::duration_cast<microseconds>(time - now).count(), -kFarthest, kFarthest);
}

}  // namespace

bool can_pack(const actors::CarriedText& text) {
  return !text.pages.empty() && text.page_bytes > 0 && text.page_bytes <= kMostPageBytes &&
         text.pages.size() <= kMostTextBytes / text.page_bytes;
}

TextForm form_of(const actors::CarriedText& text, const base::Clock& clock) {
  const auto now = clock.now();
  return {.ticket = text.ticket,
          .watch = text.watch,
          .text = text.text,
          .view = text.view,
          .is_far = text.is_far,
          .pages_form = text.pages_form,
          .page_bytes = text.page_bytes,
          .due = from_now(text.due, now),
          .left = from_now(text.deadline, now)};
}

std::vector<PackedPages> pages_of(const actors::CarriedTextPtr& text, std::uint64_t most) {
  const auto at_once = static_cast<std::size_t>(std::max<std::uint64_t>(1, most / text->page_bytes));
  std::vector<PackedPages> packed;
  for (std::size_t i = 0; i < text->pages.size(); ++i) {
    if (i % at_once == 0) packed.push_back({text->ticket, static_cast<std::int32_t>(i), {}});
    packed.back().pages.push_back(cluster::Bytes({text, text->pages[i]}, text->page_bytes));
  }
  return packed;
}

bool is_sound(const TextForm& form) {
  return !form.watch.camera.empty() && form.page_bytes > 0 && form.page_bytes <= kMostPageBytes &&
         form.view.is_sound(kMostPageTokens) &&
         static_cast<std::uint64_t>(form.view.pages) <= kMostTextBytes / form.page_bytes &&
         form.due >= -kFarthest && form.due <= kFarthest && form.left >= -kFarthest && form.left <= kFarthest;
}

actors::CarriedTextPtr unpack(const TextForm& form, std::span<const cluster::Bytes> pages,
                              const base::Clock& clock) {
  if (pages.size() != static_cast<std::size_t>(form.view.pages)) return nullptr;
  const auto now = clock.now();
  auto text = std::make_shared<actors::CarriedText>();
  text->ticket = form.ticket;
  text->watch = form.watch;
  text->text = form.text;
  text->view = form.view;
  text->is_far = form.is_far;
  text->pages_form = form.pages_form;
  text->page_bytes = form.page_bytes;
  text->due = now + std::chrono::duration_cast<base::Duration>(microseconds(form.due));
  text->deadline = now + std::chrono::duration_cast<base::Duration>(microseconds(form.left));
  for (const cluster::Bytes& page : pages) {
    if (page.size() != form.page_bytes) return nullptr;
    text->pages.push_back(page.data());
    text->owners.push_back(std::make_shared<const cluster::Bytes>(page));
  }
  return text;
}

}  // namespace vigil::fleet
