#include "engine/run/stream_token_mover.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "engine/model/language/positions.h"
#include "kernels/convert/convert.h"
#include "kernels/packed_kv/packed_kv.h"

namespace vigil::run {
namespace {

kernels::KvLayers layers_of(const kv::PageStore& pages, std::int64_t first, std::int64_t count) {
  const kv::PageLayout& layout = pages.layout();
  return {pages.layer(static_cast<int>(first)), count, layout.page_elements() / layout.layers};
}

}  // namespace

StreamTokenMover::StreamTokenMover(CachedModel& model, const std::vector<kernels::Stream>& streams,
                                   std::size_t most_staged)
    : model_(model), most_staged_(most_staged) {
  if (streams.size() != model.parts.size())
    throw std::invalid_argument("a model in " + std::to_string(model.parts.size()) +
                                " parts is not moved on " + std::to_string(streams.size()) + " streams");
  const auto frequencies = model::multimodal_rope(model.folder->config.text);
  std::int64_t head = 0;
  for (std::size_t rank = 0; rank < streams.size(); ++rank) {
    const kernels::Stream& passes = streams[rank];
    ModelPart* part = model.parts[rank].get();
    Lane& lane = lanes_.emplace_back(Lane{part, passes, passes.beside(), head});
    head += part->pages.layout().kv_heads;
    lane.frequency_memory = kernels::Buffer(passes, frequencies.size() * sizeof(kernels::RopeFrequency));
    kernels::upload(passes, lane.frequency_memory.data(), frequencies.data(), lane.frequency_memory.bytes());
    lane.frequencies = lane.frequency_memory.as<kernels::RopeFrequency>();
  }
}

StreamTokenMover::~StreamTokenMover() {
  // What is under way reads their stages.
  for (const Lane& lane : lanes_) {
    try {
      lane.copies.synchronize();
    } catch (const std::exception&) {
      continue;
    }
  }
}

kv::PageLayout StreamTokenMover::whole_layout() const {
  kv::PageLayout layout = lanes_.front().part->pages.layout();
  layout.kv_heads = static_cast<int>(lanes_.back().head) + lanes_.back().part->pages.layout().kv_heads;
  return layout;
}

std::unique_ptr<kernels::HostMemory> StreamTokenMover::make_memory(std::uint64_t most) const {
  return std::make_unique<kernels::HostMemory>(lanes_.front().copies, most);
}

std::size_t StreamTokenMover::bytes_of(kv::Form form, std::int64_t tokens) const {
  return static_cast<std::size_t>(
      kv::form_bytes(form, whole_layout(), model_.folder->config.text.hidden_size, tokens));
}

StreamTokenMover::Stage* StreamTokenMover::free_stage(Lane& lane, std::size_t bytes) const {
  std::size_t staged = 0;
  Stage* smallest = nullptr;
  for (Stage& stage : lane.out) {
    staged += stage.memory.bytes();
    if (!stage.copied.is_reached()) continue;
    stage.from.clear();
    const bool fits = stage.memory.bytes() >= bytes;
    if (fits && (smallest == nullptr || stage.memory.bytes() < smallest->memory.bytes())) smallest = &stage;
  }
  if (smallest != nullptr) return smallest;
  const auto is_full = [&] { return staged + bytes > most_staged_ && lane.out.size() >= kFewestStages; };
  // Those that are too small give way.
  for (auto stage = lane.out.begin(); is_full() && stage != lane.out.end();) {
    if (!stage->copied.is_reached()) {
      ++stage;
      continue;
    }
    staged -= stage->memory.bytes();
    stage = lane.out.erase(stage);
  }
  if (is_full()) return nullptr;
  kernels::Buffer memory(lane.passes, bytes);
  Stage& stage = lane.out.emplace_back();
  stage.memory = std::move(memory);
  return &stage;
}

std::optional<MovedTokens> StreamTokenMover::pack(std::span<const std::int32_t> slots, kv::Form form,
                                                  kernels::HostMemory& to) {
  const kv::PageLayout& layout = lanes_.front().part->pages.layout();
  MovedTokens moved;
  moved.form = form;
  moved.tokens = static_cast<std::int64_t>(slots.size());
  const kernels::PackedShape whole = kv::packed_shape(form, whole_layout(), moved.tokens);
  moved.size = static_cast<std::size_t>(whole.bytes());
  if (slots.empty()) return moved;
  kernels::PackedShape own = whole;
  own.kv_heads = layout.kv_heads;
  std::vector<Stage*> stages(lanes_.size());
  if (!is_on_host())
    for (std::size_t rank = 0; rank < lanes_.size(); ++rank) {
      stages[rank] = free_stage(lanes_[rank], static_cast<std::size_t>(own.bytes()));
      if (stages[rank] == nullptr) return std::nullopt;
    }
  moved.bytes = to.take(moved.size);
  if (!moved.bytes) return std::nullopt;
  for (std::size_t rank = 0; rank < lanes_.size(); ++rank) {
    Lane& lane = lanes_[rank];
    lane.table.clear();
    lane.table.add(slots);
    lane.table.send(lane.passes);
    const kernels::KvSlots from{lane.table.at<std::int32_t>(0), 0};
    const kernels::KvLayers layers = layers_of(lane.part->pages, 0, layout.layers);
    if (is_on_host()) {
      kernels::pack_kv(lane.passes, layers, from, whole, 0, lane.head, moved.bytes.get());
      continue;
    }
    Stage& stage = *stages[rank];
    kernels::pack_kv(lane.passes, layers, from, own, 0, 0, stage.memory.data());
    kernels::follow(lane.copies, lane.passes);
    if (lanes_.size() == 1) {
      kernels::copy(lane.copies, moved.bytes.get(), stage.memory.data(), moved.size);
    } else {
      for (std::int64_t layer = 0; layer < layout.layers; ++layer)
        for (const bool value : {false, true})
          kernels::copy(lane.copies, moved.bytes.get() + whole.offset(layer, value, lane.head, 0),
                        stage.memory.data() + own.offset(layer, value, 0, 0),
                        static_cast<std::size_t>(own.kv_heads * own.segment_bytes()));
    }
    stage.copied = kernels::Mark(lane.copies);
    if (rank > 0) kernels::follow(lanes_.front().copies, lane.copies);
  }
  moved.arrived = kernels::Mark(lanes_.front().copies);
  return moved;
}

std::optional<MovedTokens> StreamTokenMover::pack_embeddings(std::span<const model::VisualTokensPtr> patches,
                                                             kernels::HostMemory& to) {
  const std::int64_t width = model_.folder->config.text.hidden_size;
  MovedTokens moved;
  moved.form = kv::Form::embeddings;
  for (const model::VisualTokensPtr& patch : patches) moved.tokens += patch->count();
  moved.size = bytes_of(moved.form, moved.tokens);
  if (moved.tokens == 0) return moved;
  Lane& lane = lanes_.front();
  for (const model::VisualTokensPtr& patch : patches)
    if (patch->count() > 0 && patch->width != width)
      throw std::invalid_argument("visual tokens of another width");
  Stage* stage = is_on_host() ? nullptr : free_stage(lane, moved.size);
  if (!is_on_host() && stage == nullptr) return std::nullopt;
  moved.bytes = to.take(moved.size);
  if (!moved.bytes) return std::nullopt;
  if (stage != nullptr) stage->from.assign(patches.begin(), patches.end());
  std::byte* at = stage == nullptr ? moved.bytes.get() : stage->memory.data();
  for (const model::VisualTokensPtr& patch : patches) {
    if (patch->count() == 0) continue;
    kernels::convert_rows(lane.passes, patch->rows(0, patch->count()),
                          kernels::dense(at, kernels::DType::bf16, patch->count(), width));
    at += patch->count() * width * static_cast<std::int64_t>(sizeof(std::uint16_t));
  }
  if (stage != nullptr) {
    kernels::follow(lane.copies, lane.passes);
    kernels::copy(lane.copies, moved.bytes.get(), stage->memory.data(), moved.size);
    stage->copied = kernels::Mark(lane.copies);
  }
  moved.arrived = kernels::Mark(lane.copies);
  return moved;
}

void StreamTokenMover::unpack(const Unpacking& page) {
  const kv::PageLayout& layout = lanes_.front().part->pages.layout();
  const std::int64_t layers = page.layers == 0 ? layout.layers - page.layer : page.layers;
  const auto count = static_cast<std::int64_t>(page.slots.size());
  kernels::PackedShape whole = kv::packed_shape(page.form, whole_layout(), page.tokens);
  whole.layers = layers;
  if (page.layer < 0 || layers < 1 || page.layer + layers > layout.layers || page.first < 0 ||
      page.first + count > page.tokens || (!page.by.empty() && page.by.size() != page.slots.size()))
    throw std::invalid_argument("layers or tokens of a packed page that it does not have");
  if (static_cast<std::int64_t>(page.bytes.size()) != whole.bytes())
    throw std::invalid_argument("a packed page of " + std::to_string(page.bytes.size()) +
                                " bytes in place of " + std::to_string(whole.bytes()));
  if (count == 0) return;
  std::vector<kernels::RopePosition> by;
  for (const model::Position& each : page.by) by.push_back({each.t, each.h, each.w});
  const std::int64_t pairs = layout.head_dim / 2;
  const std::size_t angle_bytes = by.size() * static_cast<std::size_t>(pairs) * sizeof(float);
  for (Lane& lane : lanes_) {
    lane.table.clear();
    lane.table.add(page.slots);
    lane.table.add(std::span<const kernels::RopePosition>(by));
    lane.table.send(lane.passes);
    float *cos = nullptr, *sin = nullptr;
    if (!by.empty()) {
      lane.cos.reserve(lane.passes, angle_bytes);
      lane.sin.reserve(lane.passes, angle_bytes);
      cos = lane.cos.as<float>();
      sin = lane.sin.as<float>();
      kernels::rope_angles(lane.passes, lane.table.at<kernels::RopePosition>(1), count, lane.frequencies,
                           pairs, kernels::RopeAngles::wide, cos, sin);
    }
    const kernels::KvSlots to{lane.table.at<std::int32_t>(0), 0};
    const kernels::KvLayers into = layers_of(lane.part->pages, page.layer, layers);
    const kernels::PackedPart part{0, lane.head, page.first, count};
    if (is_on_host()) {
      kernels::unpack_kv(lane.passes, page.bytes.data(), whole, part, cos, sin, to, into);
      continue;
    }
    // All heads, also where this device has some of them: what is read of it is little beside a window.
    lane.in.reserve(lane.passes, page.bytes.size());
    kernels::upload(lane.passes, lane.in.data(), page.bytes.data(), page.bytes.size());
    kernels::unpack_kv(lane.passes, lane.in.data(), whole, part, cos, sin, to, into);
  }
}

}  // namespace vigil::run
