#include "engine/past/past.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "engine/kv/retrieval/selection.h"
#include "engine/model/language/positions.h"
#include "kernels/gather/gather.h"
#include "kernels/paged_keys/paged_keys.h"

namespace vigil::past {

using kernels::Buffer;
using kernels::DType;
using kernels::Matrix;
using kernels::PackedShape;
using kernels::Stream;

namespace {

bool is_form_of_resv(const std::string& name) {
  return std::find(retrieval::kResvForms.begin(), retrieval::kResvForms.end(), name) !=
         retrieval::kResvForms.end();
}

std::size_t size(std::int64_t count) {
  return static_cast<std::size_t>(count);
}

/// Of pieces that may lie in several pieces of memory.
std::int64_t offset_from(const std::byte* from, const std::byte* to) {
  return static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(to) -
                                   reinterpret_cast<std::intptr_t>(from));
}

const PastOptions& checked(const PastOptions& options) {
  if (!(options.share >= 0 && options.share <= 1))
    throw std::invalid_argument("a past of which " + std::to_string(options.share) + " is to be fetched");
  if (options.host_bytes < 1 || options.block_patches < 0)
    throw std::invalid_argument("a past without room, or with blocks of fewer than no patches");
  return options;
}

}  // namespace

Past::Past(const Stream& stream, const model::TextConfig& text, const kv::PageLayout& layout,
           const PastOptions& options)
    : options_(checked(options)),
      shape_{layout.layers, layout.kv_heads, layout.head_dim, layout.dtype},
      time_axes_(text.traits.time_axes),
      frequencies_(stream, model::multimodal_rope(text)),
      layers_(size(layout.layers)) {
  if (is_form_of_resv(options_.method)) {
    settings_ = options_.settings ? *options_.settings : retrieval::resv_named(options_.method);
    retrieval::check(*settings_);
  } else {
    control_ = retrieval::make_retriever(options_.method, stream, shape_);
  }
  add_slab(stream, 1);
}

std::vector<int> Past::patches() const {
  std::vector<int> patches;
  patches.reserve(blocks_.size());
  for (const Block& block : blocks_) patches.push_back(block.patches);
  return patches;
}

std::int64_t Past::device_bytes() const {
  std::size_t bytes = 0;
  for (const Buffer* each : {&staged_, &sums_, &begins_, &counts_, &angle_rows_, &clusters_, &turn_,
                             &turned_queries_, &query_turn_, &keys_})
    bytes += each->bytes();
  return static_cast<std::int64_t>(bytes) + (table_ ? table_->store().bytes() : 0) +
         (control_ ? control_->bytes() : 0);
}

// What comes.

void Past::begin_block(const Stream& stream) {
  blocks_.emplace_back().units.assign(size(shape_.layers), 0);
  if (is_resv()) table_ = std::make_unique<retrieval::HcTable>(stream, shape_, *settings_);
}

void Past::append(Stream& stream, const kv::PageStore& pages, std::span<const std::int32_t> slots,
                  std::span<const std::int32_t> times) {
  if (slots.size() != times.size()) throw std::invalid_argument("a past: slots and times differ in number");
  const kv::PageLayout& layout = pages.layout();
  if (layout.layers != shape_.layers || layout.kv_heads != shape_.kv_heads ||
      layout.head_dim != shape_.head_dim || layout.dtype != shape_.dtype)
    throw std::invalid_argument("a past of another model's pages");
  if (!blocks_.empty() && options_.block_patches > 0 && blocks_.back().patches == options_.block_patches) {
    lay(stream);
    // What is laid is not needed any more.
    begin_block(stream);
  }
  if (blocks_.empty()) begin_block(stream);
  ++blocks_.back().patches;
  if (slots.empty()) return;

  const auto count = static_cast<std::int64_t>(slots.size());
  slots_.assign(stream, slots);
  stage(stream, pages, slots);
  keys_.reserve(stream, size(shape_.layers * count * shape_.cols()) * kernels::size_of(shape_.dtype));
  const Matrix keys = kernels::dense(keys_.data(), shape_.dtype, shape_.layers * count, shape_.cols());
  const kernels::KvLayer first = pages.layer(0);
  kernels::read_keys(stream, slots_.data(), count, first, shape_.layers, 2 * first.value_offset, keys);
  retrieval::NewKeys told{keys};
  Buffer turn;
  if (is_resv() && settings_->keys == retrieval::HashedKeys::still) {
    std::vector<std::int32_t> back;
    back.reserve(times.size());
    for (const std::int32_t time : times) back.push_back(-time);
    angles(stream, back, turn);
    told.cos = turn.as<float>();
    told.sin = turn.as<float>() + count * (shape_.head_dim / 2);
  }
  if (is_resv()) {
    table_->append(stream, told);
  } else {
    control_->append(stream, told);
  }
  blocks_.back().tokens += count;
  tokens_ += count;
  is_laid_ = false;
}

void Past::stage(Stream& stream, const kv::PageStore& pages, std::span<const std::int32_t> slots) {
  const auto count = static_cast<std::int64_t>(slots.size());
  const std::int64_t dim = shape_.head_dim,
                     heads_of_token = std::int64_t{2} * shape_.layers * shape_.kv_heads;
  const std::int64_t token_bytes =
      heads_of_token * dim * static_cast<std::int64_t>(kernels::size_of(shape_.dtype));
  const std::int64_t there = blocks_.back().tokens;
  if (there + count > staged_room_) {
    const std::int64_t room = std::max(there + count, 2 * staged_room_);
    Buffer larger(stream, size(room * token_bytes));
    if (there > 0) kernels::copy(stream, larger.data(), staged_.data(), size(there * token_bytes));
    staged_ = std::move(larger);
    staged_room_ = room;
  }
  const kernels::KvLayer first = pages.layer(0);
  std::vector<std::int32_t> rows;
  rows.reserve(size(count * heads_of_token));
  for (const std::int32_t slot : slots)
    for (std::int64_t layer = 0; layer < shape_.layers; ++layer)
      for (const std::int64_t value : {0, 1})
        for (std::int64_t head = 0; head < shape_.kv_heads; ++head)
          rows.push_back(static_cast<std::int32_t>(
              (first.offset(slot, head) + (2 * layer + value) * first.value_offset) / dim));
  rows_.assign(stream, rows);
  const std::int64_t all = pages.pages() * pages.layout().page_elements() / dim;
  kernels::gather_rows(
      stream, kernels::dense(static_cast<const void*>(first.base), shape_.dtype, all, dim), rows_.data(),
      kernels::dense(staged_.data() + there * token_bytes, shape_.dtype, count * heads_of_token, dim));
}

kernels::KvLayers Past::staged() const {
  const std::int64_t heads = shape_.cols();
  return {{staged_.data(), shape_.dtype, staged_room_, std::int64_t{2} * shape_.layers * heads, heads, 1,
           shape_.kv_heads, shape_.head_dim},
          shape_.layers,
          2 * heads};
}

// Where it lies.

std::vector<Past::Order> Past::orders(Stream& stream) const {
  std::vector<Order> orders(size(shape_.layers));
  for (int layer = 0; layer < shape_.layers; ++layer) {
    Order& order = orders[size(layer)];
    if (!is_resv()) {
      order.tokens.resize(size(blocks_.back().tokens));
      std::iota(order.tokens.begin(), order.tokens.end(), 0);
      order.counts.assign(order.tokens.size(), 1);
      continue;
    }
    const retrieval::ClusterOrder by_cluster(table_->store().assigned(stream, layer));
    order.tokens.assign(by_cluster.tokens().begin(), by_cluster.tokens().end());
    for (std::int32_t cluster = 0; cluster < by_cluster.clusters(); ++cluster)
      order.counts.push_back(static_cast<std::int32_t>(by_cluster.places(cluster).count));
  }
  return orders;
}

void Past::lay(Stream& stream) {
  if (is_laid_) return;
  if (is_resv() && !table_) {
    // All blocks are closed: where they lie alone is to be told again.
    send(stream);
    is_laid_ = true;
    return;
  }
  const std::vector<Order> laid = orders(stream);
  const std::int64_t bytes = bytes_of(laid);
  Block& block = blocks_.back();
  give_back(block, false);
  std::optional<std::vector<std::byte*>> begins;
  if (bytes <= options_.host_bytes) begins = give_room(stream, laid);
  if (!begins) {
    const std::int64_t tokens = block.tokens;
    if (is_resv()) drop_open_block(stream);
    throw std::invalid_argument("a block of " + std::to_string(tokens) + " tokens takes " +
                                std::to_string(bytes) + " bytes, and its past may have " +
                                std::to_string(options_.host_bytes) + ", in slabs");
  }
  block.longest = 0;
  auto begin = begins->begin();
  for (std::size_t layer = 0; layer < laid.size(); ++layer) {
    Layer& of = layers_[layer];
    for (const std::int32_t count : laid[layer].counts) {
      of.counts.push_back(count);
      of.begins.push_back(*begin++);
      block.longest = std::max(block.longest, count);
    }
    block.units[layer] = static_cast<std::int64_t>(laid[layer].counts.size());
  }
  pack(stream, laid);
  reserve_units(stream);
  copy_sums(stream);
  send(stream);
  is_laid_ = true;
}

void Past::pack(Stream& stream, const std::vector<Order>& orders) {
  if (slabs_.empty()) return;
  counted_from_ = slabs_.begin()->second.get();
  std::vector<std::int32_t> tokens;
  std::vector<kernels::ClusterToPack> clusters;
  for (std::size_t layer = 0; layer < orders.size(); ++layer) {
    const Order& order = orders[layer];
    const Layer& of = layers_[layer];
    auto first = static_cast<std::int32_t>(tokens.size());
    std::size_t unit = of.begins.size() - order.counts.size();
    for (const std::int32_t count : order.counts) {
      clusters.push_back(
          {offset_from(counted_from_, of.begins[unit++]), first, count, static_cast<std::int32_t>(layer)});
      first += count;
    }
    tokens.insert(tokens.end(), order.tokens.begin(), order.tokens.end());
  }
  slots_.assign(stream, tokens);
  packed_.assign(stream, clusters);
  kernels::pack_clusters(stream, staged(),
                         {slots_.data(), static_cast<std::int64_t>(tokens.size()), packed_.data(),
                          static_cast<std::int64_t>(clusters.size())},
                         options_.form, counted_from_);
}

void Past::reserve_units(const Stream& stream) {
  std::size_t most = 1;
  for (const Layer& layer : layers_) most = std::max(most, layer.counts.size());
  if (static_cast<std::int64_t>(most) <= capacity_) return;
  const std::int64_t to = std::max(static_cast<std::int64_t>(most), capacity_ * 3 / 2);
  if (is_resv()) {
    const std::int64_t row = shape_.cols() * 4;
    Buffer larger(stream, size(shape_.layers * to * row));
    for (std::int64_t layer = 0; layer < shape_.layers; ++layer) {
      const std::int64_t used = units(static_cast<int>(layer)) - blocks_.back().units[size(layer)];
      if (used > 0)
        kernels::copy(stream, larger.data() + layer * to * row, sums_.data() + layer * capacity_ * row,
                      size(used * row));
    }
    sums_ = std::move(larger);
  }
  capacity_ = to;
}

void Past::copy_sums(Stream& stream) {
  if (!is_resv()) return;
  const std::int64_t cols = shape_.cols();
  for (int layer = 0; layer < shape_.layers; ++layer) {
    const std::int64_t count = blocks_.back().units[size(layer)], first = units(layer) - count;
    if (count > 0)
      kernels::copy(stream, sums_.as<float>() + (layer * capacity_ + first) * cols,
                    table_->store().keys(layer).sums, size(count * cols * 4));
  }
  turn_sums(stream, blocks_.size() - 1, blocks_.back().turned);
}

void Past::send(Stream& stream) {
  if (!slabs_.empty()) counted_from_ = slabs_.begin()->second.get();
  std::vector<std::int64_t> begins(size(shape_.layers * capacity_));
  std::vector<std::int32_t> counts(begins.size()), first_rows(begins.size()), clusters;
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    const Layer& of = layers_[layer];
    const auto at = static_cast<std::ptrdiff_t>(layer) * capacity_;
    std::ranges::transform(of.begins, begins.begin() + at,
                           [this](const std::byte* begin) { return offset_from(counted_from_, begin); });
    std::copy(of.counts.begin(), of.counts.end(), counts.begin() + at);
    clusters.push_back(static_cast<std::int32_t>(of.counts.size()));
    // All tokens of a block turn alike, so its clusters have their angles in common.
    auto to = first_rows.begin() + at;
    std::int32_t row = 0;
    for (const Block& block : blocks_) {
      to = std::fill_n(to, block.units[layer], row);
      row += block.longest;
    }
  }
  const auto give = [&](Buffer& to, const auto& values) {
    const std::size_t bytes = values.size() * sizeof(values.front());
    to.reserve(stream, bytes);
    kernels::upload(stream, to.data(), values.data(), bytes);
  };
  give(begins_, begins);
  give(counts_, counts);
  give(angle_rows_, first_rows);
  give(clusters_, clusters);

  std::vector<std::int32_t> times;
  bool turns = false;
  for (const Block& block : blocks_) {
    times.insert(times.end(), size(block.longest), block.turned);
    turns = turns || block.turned != 0;
  }
  turn_rows_ = turns ? static_cast<std::int64_t>(times.size()) : 0;
  if (turns) angles(stream, times, turn_);
}

// What goes, and what turns.

void Past::drop_units(const Block& block, bool first) {
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    Layer& of = layers_[layer];
    const auto count = static_cast<std::ptrdiff_t>(block.units[layer]);
    const auto drop = [&](auto& values) {
      const auto begin = first ? values.begin() : values.end() - count;
      values.erase(begin, begin + count);
    };
    drop(of.counts);
    drop(of.begins);
  }
}

void Past::forget_block(const Stream& stream) {
  if (blocks_.empty()) return;
  if (!is_resv())
    throw std::logic_error("a past by \"" + options_.method + "\" forgets nothing, and has no room left");
  Block& oldest = blocks_.front();
  if (!oldest.ranges.empty()) {
    // Those of the others move up.
    const std::int64_t row = shape_.cols() * 4;
    Buffer moved(stream, size(shape_.layers * capacity_ * row));
    for (std::int64_t layer = 0; layer < shape_.layers; ++layer) {
      const std::int64_t gone = oldest.units[size(layer)];
      const std::int64_t left = units(static_cast<int>(layer)) - gone;
      if (left > 0)
        kernels::copy(stream, moved.data() + layer * capacity_ * row,
                      sums_.data() + (layer * capacity_ + gone) * row, size(left * row));
    }
    sums_ = std::move(moved);
    give_back(oldest, true);
  }
  tokens_ -= oldest.tokens;
  blocks_.pop_front();
  is_laid_ = blocks_.empty();
  if (blocks_.empty()) table_.reset();
}

/// What there was before stays.
void Past::drop_open_block(Stream& stream) {
  Block& open = blocks_.back();
  give_back(open, false);
  tokens_ -= open.tokens;
  blocks_.pop_back();
  table_.reset();
  is_laid_ = true;
  if (!blocks_.empty()) send(stream);
}

void Past::turn(Stream& stream, std::span<const std::int32_t> by) {
  if (!is_resv()) throw std::logic_error("a past by \"" + options_.method + "\" does not turn");
  if (by.size() != blocks_.size())
    throw std::invalid_argument("a past of " + std::to_string(blocks_.size()) + " blocks turned by " +
                                std::to_string(by.size()) + " times");
  lay(stream);
  if (blocks_.empty()) return;
  for (std::size_t i = 0; i < by.size(); ++i)
    turn_sums(stream, i, by[i] - std::exchange(blocks_[i].turned, by[i]));
  send(stream);
}

void Past::turn_sums(Stream& stream, std::size_t block, std::int32_t by) {
  // Keys that stand still are at time 0 wherever they were.
  if (by == 0 || settings_->keys == retrieval::HashedKeys::still) return;
  Buffer turn;
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    std::int64_t first = 0;
    for (std::size_t i = 0; i < block; ++i) first += blocks_[i].units[layer];
    const std::int64_t count = blocks_[block].units[layer];
    if (count == 0) continue;
    angles(stream, std::vector<std::int32_t>(size(count), by), turn);
    kernels::rope(stream,
                  kernels::dense(sums_.as<float>() +
                                     (static_cast<std::int64_t>(layer) * capacity_ + first) * shape_.cols(),
                                 DType::f32, count, shape_.cols()),
                  shape_.head_dim, turn.as<float>(), turn.as<float>() + count * (shape_.head_dim / 2));
  }
}

void Past::angles(Stream& stream, std::span<const std::int32_t> times, Buffer& to) const {
  const auto rows = static_cast<std::int64_t>(times.size());
  const std::int64_t pairs = shape_.head_dim / 2;
  std::vector<kernels::RopePosition> axes;
  axes.reserve(times.size());
  for (const std::int32_t time : times) {
    const model::Position position = model::at_time(time, time_axes_);
    axes.push_back({position.t, position.h, position.w});
  }
  const kernels::DeviceArray<kernels::RopePosition> positions(stream, axes);
  to.reserve(stream, size(2 * rows * pairs) * sizeof(float));
  kernels::rope_angles(stream, positions.data(), rows, frequencies_.data(), pairs, kernels::RopeAngles::wide,
                       to.as<float>(), to.as<float>() + rows * pairs);
}

}  // namespace vigil::past
