#include "engine/past/past_attend.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "kernels/attention/listed_attention.h"

namespace vigil::past {

using kernels::ConstMatrix;
using kernels::Stream;

struct PastAttend::Work {
  /// [sequences, kv_heads, capacity, head_dim] each, and [sequences, kv_heads].
  kernels::Buffer keys, values, counts;
  Counted counted;
};

PastAttend::PastAttend(int ranks, std::int64_t room) : room_(room) {
  if (ranks < 1 || room < 0) throw std::invalid_argument("attention to a past in no parts, or without room");
  for (int rank = 0; rank < ranks; ++rank) works_.push_back(std::make_unique<Work>());
}

PastAttend::~PastAttend() = default;

void PastAttend::clear() {
  sequences_.clear();
}

void PastAttend::add(std::span<const std::int32_t> keys, std::span<Past* const> parts, std::int32_t now) {
  if (keys.empty()) throw std::invalid_argument("a past of a segment without keys");
  if (parts.size() != works_.size())
    throw std::invalid_argument("a past in " + std::to_string(parts.size()) + " parts for a model in " +
                                std::to_string(works_.size()));
  sequences_.push_back({keys.data(), {parts.begin(), parts.end()}, now});
}

const PastAttend::Sequence* PastAttend::find(const kernels::AttentionSegment& segment) const {
  for (const Sequence& sequence : sequences_)
    if (sequence.keys == segment.keys.data()) return &sequence;
  return nullptr;
}

const PastAttend::Counted& PastAttend::counted(int rank) const {
  return works_.at(static_cast<std::size_t>(rank))->counted;
}

void PastAttend::attend(Stream& stream, int rank, int layer, ConstMatrix q, const kernels::KvLayer& kv,
                        const kernels::PagedPlan& plan, float scale, kernels::Matrix out) const {
  Work& work = *works_.at(static_cast<std::size_t>(rank));
  // Where only some rows are wanted, the plan has only their segments.
  const std::span<const kernels::AttentionSegment> segments = plan.segments();
  std::int64_t capacity = 0;
  for (const kernels::AttentionSegment& segment : segments)
    if (const Sequence* sequence = find(segment))
      capacity = std::max(capacity, sequence->parts[static_cast<std::size_t>(rank)]->tokens());
  if (room_ > 0) capacity = std::min(capacity, room_);
  if (capacity == 0) return kernels::paged_attention(stream, q, kv, plan, scale, out);

  const auto sequences = static_cast<std::int64_t>(segments.size());
  const auto element = static_cast<std::int64_t>(kernels::size_of(kv.dtype));
  const std::int64_t list = kv.kv_heads * capacity * kv.head_dim * element;
  work.keys.reserve(stream, static_cast<std::size_t>(sequences * list));
  work.values.reserve(stream, static_cast<std::size_t>(sequences * list));
  const std::vector<std::int32_t> none(static_cast<std::size_t>(sequences * kv.kv_heads));
  work.counts.reserve(stream, none.size() * sizeof(std::int32_t));
  kernels::upload(stream, work.counts.data(), none.data(), none.size() * sizeof(std::int32_t));
  for (std::int64_t i = 0; i < sequences; ++i) {
    const kernels::AttentionSegment& segment = segments[static_cast<std::size_t>(i)];
    const Sequence* sequence = find(segment);
    if (sequence == nullptr || segment.own.empty()) continue;
    Past& past = *sequence->parts[static_cast<std::size_t>(rank)];
    past.fetch(stream, layer, q.rows_from(segment.first_row, static_cast<std::int64_t>(segment.own.size())),
               scale, sequence->now,
               {work.keys.data() + i * list, work.values.data() + i * list, kv.dtype, capacity,
                work.counts.as<std::int32_t>() + i * kv.kv_heads, nullptr});
    if (counts_ && past.tokens() > 0) tally(stream, work, past, i, kv.kv_heads);
  }
  kernels::listed_attention(
      stream, q, kv, plan,
      {work.keys.data(), work.values.data(), work.counts.as<std::int32_t>(), sequences, capacity}, scale,
      out);
}

void PastAttend::tally(const Stream& stream, Work& work, const Past& past, std::int64_t sequence,
                       std::int64_t kv_heads) const {
  std::vector<std::int32_t> counts(static_cast<std::size_t>(kv_heads));
  const std::size_t bytes = counts.size() * sizeof(std::int32_t);
  kernels::download(stream, counts.data(), work.counts.as<std::int32_t>() + sequence * kv_heads, bytes);
  for (const std::int32_t count : counts) work.counted.fetched += count;
  kernels::download(stream, counts.data(), past.chosen_tokens(), bytes);
  for (const std::int32_t count : counts) work.counted.chosen += count;
  work.counted.of += kv_heads * past.tokens();
}

}  // namespace vigil::past
