// A text on its way to a node that goes on with it, and the pages that it sees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "actors/messages/carried_text.h"
#include "actors/messages/messages.h"
#include "base/clock.h"
#include "cluster/bulk/bulk.h"

namespace vigil::fleet {

/// actors::CarriedText without the bytes of its pages. Times are counted from when it was written.
struct TextForm {
  std::uint64_t ticket = 0;
  actors::WatchRef watch;
  stream::CarriedText text;
  kv::CarriedView view;
  bool is_far = false;
  std::uint64_t pages_form = 0;
  std::uint64_t page_bytes = 0;
  /// In microseconds: until it is due, and until nobody waits for it any more.
  std::int64_t due = 0;
  std::int64_t left = 0;

  std::uint64_t bytes() const { return static_cast<std::uint64_t>(view.pages) * page_bytes; }
};

/// Some of its pages, from one on, each as it lies in the sender's memory.
struct PackedPages {
  std::uint64_t ticket = 0;
  std::int32_t first = 0;
  std::vector<cluster::Bytes> pages;
};

/// More are no text's: a camera's window has some hundred MiB at the 7B shape.
constexpr std::uint64_t kMostTextBytes = std::uint64_t{1} << 30;
/// Of a page, so that it fits a message.
constexpr std::uint64_t kMostPageBytes = std::uint64_t{16} << 20;

/// Whether it can be sent at all.
bool can_pack(const actors::CarriedText& text);
TextForm form_of(const actors::CarriedText& text, const base::Clock& clock);
/// All of its pages, which it keeps: as many in one as `most` bytes have room for, at least one.
std::vector<PackedPages> pages_of(const actors::CarriedTextPtr& text, std::uint64_t most = 4 << 20);

/// Whether there can be such a text: its pages are not looked at.
bool is_sound(const TextForm& form);
/// Null if the pages are not those of the form, which is sound.
actors::CarriedTextPtr unpack(const TextForm& form, std::span<const cluster::Bytes> pages,
                              const base::Clock& clock);

}  // namespace vigil::fleet
