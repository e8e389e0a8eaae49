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
