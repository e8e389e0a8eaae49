// The part of the desk by which texts go on in other processes.
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <utility>

#include "engine/run/vision_encoder.h"
#include "engine/stream/stream_desk.h"

namespace vigil::stream {

std::optional<StreamDesk::Carried> StreamDesk::carry(const WindowId& id, std::size_t question) {
  OpenText* open = find_text(id, question);
  if (open == nullptr || open->state != TextState::idle || open->text.done()) return std::nullopt;
  const Window& window = *find_window(id);
  if (window.memory) return std::nullopt;
  Carried carried;
  std::vector<kv::PageId> pages;
  carried.view = kv::CarriedView::of(open->text.view(), pages);
  carried.text = open->text.carried();
  carried.is_far = window.is_far;
  carried.pages_form = passes_.pages_form();
  carried.page_bytes = passes_.page_bytes();
  carried.pages = std::make_shared_for_overwrite<std::byte[]>(pages.size() * carried.page_bytes);
  passes_.read_pages(pages, carried.pages.get());
  carried.due = window.asking.due;
  carried.deadline = window.deadline;
  carried.keep = window.asking.keep;
  open->state = TextState::carried;
  return carried;
}

WindowId StreamDesk::receive(const std::string& camera, const Received& received) {
  const kv::CarriedView& view = received.view;
  const int page_tokens = book_.page_tokens();
  if (received.pages_form != passes_.pages_form())
    throw std::invalid_argument("these are pages of another model, or of another kind");
  if (!view.is_sound(page_tokens) || received.pages.size() != static_cast<std::size_t>(view.pages))
    throw std::invalid_argument("these are no pages of a window");
  // As many as it may still say, and no more than a cache has.
  if (received.text.max_tokens < 1 || received.text.max_tokens > book_.tokens())
    throw std::invalid_argument("a text of this length has no room here");
  auto claim = book_.claim(view.pages + view.pages_to_append(received.text.max_tokens, page_tokens));
  if (!claim) throw std::runtime_error("the KV cache has no room for it now");

  std::vector<kv::PageId> pages;
  kv::View own = view.in(book_, *claim, pages);
  Text text(folder_, received.text, std::move(own));
  try {
    passes_.write_pages(pages, received.pages);
  } catch (const run::DeviceLost&) {
    throw;
  } catch (...) {
    settle();
    throw;
  }
  const Key key = next_key();
  Window& window = windows_[key];
  window.id = {camera, key.epoch, key.number};
  window.asking.due = received.due;
  window.deadline = received.deadline;
  window.is_far = received.is_far;
  window.is_answered = true;
  window.texts.emplace(0, OpenText{std::move(text), std::move(*claim)});
  const WindowId id = window.id;
  explain(id, 0);
  return id;
}

}  // namespace vigil::stream
