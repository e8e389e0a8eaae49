#include "bench/made_pages.h"

#include <stdexcept>
#include <string>
#include <utility>

#include "engine/memory/hours.h"

namespace vigil::bench {
namespace {

std::uint32_t hour_of(std::int64_t wall) {
  return static_cast<std::uint32_t>(memory::hour_at(wall));
}

}  // namespace

MadeShape MadeShape::of(const model::ModelConfig& model, int width, int height) {
  MadeShape shape;
  shape.layout.layers = model.text.num_hidden_layers;
  shape.layout.kv_heads = model.text.num_key_value_heads;
  shape.layout.head_dim = model.text.head_dim;
  shape.hidden = model.text.hidden_size;
  const int side = model.vision.patch_size * model.vision.spatial_merge_size;
  shape.rows = height / side;
  shape.columns = width / side;
  if (shape.rows < 1 || shape.columns < 1)
    throw std::invalid_argument("pictures of " + std::to_string(width) + "x" + std::to_string(height) +
                                " have no token: a token takes " + std::to_string(side) + "x" +
                                std::to_string(side));
  return shape;
}

MadeBytes::MadeBytes(const MadeShape& shape, std::uint64_t seed)
    : shape_(shape), most_tokens_(memory::PageMaker::Options().tokens + shape.rows * shape.columns) {
  std::size_t most = 0;
  for (const auto& [name, form] : kv::kFormNames)
    most = std::max(
        most, static_cast<std::size_t>(kv::form_bytes(form, shape_.layout, shape_.hidden, most_tokens_)));
  bytes_ = kernels::HostBytes(new std::byte[most]);
  std::mt19937_64 random(seed);
  // Without the bits that make a bf16 large or no number, wherever it begins.
  constexpr std::uint64_t kSmall = 0x3f;
  for (std::size_t i = 0; i < most; ++i)
    bytes_[static_cast<std::ptrdiff_t>(i)] = static_cast<std::byte>(random() & kSmall);
}

run::MovedTokens MadeBytes::of(kv::Form form, std::int64_t tokens) const {
  if (tokens > most_tokens_) throw std::invalid_argument("a page of more tokens than a camera makes");
  run::MovedTokens moved;
  moved.form = form;
  moved.tokens = tokens;
  if (tokens == 0) return moved;
  moved.bytes = bytes_;
  moved.size = static_cast<std::size_t>(kv::form_bytes(form, shape_.layout, shape_.hidden, tokens));
  return moved;
}

MadeCamera::MadeCamera(history::CameraId id, const MadeShape& shape, std::uint64_t seed)
    : id_(std::move(id)), shape_(shape), random_(seed) {
  page_.stream = random_() | 1U;
}

std::optional<memory::FreshPage> MadeCamera::see(std::int64_t from, std::span<const kv::Form> forms,
                                                 const MadeBytes& bytes) {
  std::optional<memory::FreshPage> done;
  if (!page_.patches.empty() && hour_of(page_.patches.front().wall.from) != hour_of(from))
    done = complete(forms, bytes);
  history::PatchInfo patch;
  patch.number = seen_++;
  patch.place = shape_.step * patch.number;
  patch.kept = base::GridMask::none(shape_.rows, shape_.columns);
  base::GridMask standing_out = patch.kept;
  std::bernoulli_distribution is_kept(shape_.kept), stands_out(shape_.standing_out);
  for (std::int64_t cell = 0; cell < patch.kept.cells(); ++cell) {
    if (!is_kept(random_)) continue;
    patch.kept.add(cell);
    if (stands_out(random_)) standing_out.add(cell);
  }
  const auto length = std::chrono::duration_cast<std::chrono::nanoseconds>(shape_.patch).count();
  patch.wall = {from, from + length - 1};
  patch.seconds = static_cast<double>(patch.number) * static_cast<double>(length) * 1e-9;
  page_.tokens += static_cast<std::uint32_t>(patch.kept.count());
  page_.patches.push_back(std::move(patch));
  standing_out_.push_back(std::move(standing_out));
  const memory::PageMaker::Options limits;
  // The first patch of an hour completes none.
  if (!done &&
      (page_.tokens >= static_cast<std::uint64_t>(limits.tokens) || page_.patches.size() >= limits.patches))
    done = complete(forms, bytes);
  return done;
}

std::optional<memory::FreshPage> MadeCamera::complete(std::span<const kv::Form> forms,
                                                      const MadeBytes& bytes) {
  memory::FreshPage page;
  page.camera = id_;
  page.info = page_;
  std::int64_t cells = 0;
  for (const history::PatchInfo& patch : page_.patches) cells += patch.kept.cells();
  page.change = static_cast<double>(page_.tokens) / static_cast<double>(cells);
  for (const kv::Form form : forms) {
    if (form != kv::Form::sketch) {
      page.forms.push_back(bytes.of(form, page_.tokens));
      continue;
    }
    page.sketch = page_;
    page.sketch->tokens = 0;
    for (std::size_t i = 0; i < standing_out_.size(); ++i) {
      page.sketch->tokens += static_cast<std::uint32_t>(standing_out_[i].count());
      page.sketch->patches[i].kept = standing_out_[i];
    }
    page.forms.push_back(bytes.of(form, page.sketch->tokens));
  }
  page_.patches.clear();
  page_.tokens = 0;
  standing_out_.clear();
  return page;
}

}  // namespace vigil::bench
