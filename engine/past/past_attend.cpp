#include "engine/past/past_attend.h"

#include <algorithm>
#include <array>
#include <optional>
#include <stdexcept>
#include <string>

#include "kernels/attention/listed_attention.h"
#include "kernels/device/mark.h"

namespace vigil::past {

using kernels::ConstMatrix;
using kernels::Stream;

struct PastAttend::Lists {
  /// [sequences, kv_heads, capacity, head_dim] each, and [sequences, kv_heads]: of segments that have a past;
  /// and which of them each segment has.
  kernels::Buffer keys, values, counts, of_segment;
  std::int64_t sequences = 0;
  /// Of each of them: several may have one past.
  std::vector<Past::Choice> choices;
  std::int64_t capacity = 0;
  kernels::DType dtype = kernels::DType::f32;
  /// Which layer it is of, and the keys of the segments; -1: of none.
  int layer = -1;
  std::vector<const std::int32_t*> segments;
  /// When it is there, of what was brought ahead.
  kernels::Mark done;
};

struct PastAttend::Work {
  /// Of even layers and of odd ones: one is brought while the other is read.
  std::array<Lists, 2> lists;
  /// On which they are brought ahead.
  std::optional<Stream> beside;
  Counted counted;
};

PastAttend::PastAttend(int ranks, std::int64_t room) : room_(room) {
  if (ranks < 1 || room < 0) throw std::invalid_argument("attention to a past in no parts, or without room");
  for (int rank = 0; rank < ranks; ++rank) works_.push_back(std::make_unique<Work>());
}

PastAttend::~PastAttend() {
  // What is under way writes to their lists.
  try {
    settle();
  } catch (const std::exception&) {
    // An error of a device is told by whoever runs on it.
    return;
  }
}

void PastAttend::clear() {
  sequences_.clear();
  for (const auto& work : works_)
    for (Lists& lists : work->lists) lists.layer = -1;
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

bool PastAttend::looks_ahead() const {
  return std::ranges::any_of(sequences_,
                             [](const Sequence& each) { return each.parts.front()->options().ahead; });
}

const PastAttend::Counted& PastAttend::counted(int rank) const {
  return works_.at(static_cast<std::size_t>(rank))->counted;
}

std::int64_t PastAttend::list_bytes(int rank) const {
  std::size_t bytes = 0;
  for (const Lists& lists : works_.at(static_cast<std::size_t>(rank))->lists)
    bytes += lists.keys.bytes() + lists.values.bytes();
  return static_cast<std::int64_t>(bytes);
}

std::int64_t PastAttend::capacity_of(std::span<const kernels::AttentionSegment> segments, int rank) const {
  std::int64_t capacity = 0;
  for (const kernels::AttentionSegment& segment : segments)
    if (const Sequence* sequence = find(segment))
      capacity = std::max(capacity, sequence->parts[static_cast<std::size_t>(rank)]->tokens());
  return room_ > 0 ? std::min(capacity, room_) : capacity;
}

template <typename Visit>
void PastAttend::each(Lists& lists, int rank, const kernels::PagedPlan& plan, const Visit& visit) const {
  const kernels::KvLayer& shape = plan.shape();
  const std::int64_t list = shape.kv_heads * lists.capacity * shape.head_dim *
                            static_cast<std::int64_t>(kernels::size_of(lists.dtype));
  std::int64_t next = 0;
  for (const kernels::AttentionSegment& segment : plan.segments()) {
    const Sequence* sequence = find(segment);
    if (sequence == nullptr) continue;
    const std::int64_t at = next++;
    if (segment.own.empty()) continue;
    Past& past = *sequence->parts[static_cast<std::size_t>(rank)];
    if (past.tokens() == 0) continue;
    visit(segment, *sequence, past, lists.choices[static_cast<std::size_t>(at)],
          kernels::FetchedLists{lists.keys.data() + at * list, lists.values.data() + at * list, lists.dtype,
                                lists.capacity, lists.counts.as<std::int32_t>() + at * shape.kv_heads,
                                nullptr});
  }
}

void PastAttend::choose(Stream& stream, Work& work, Lists& to, int rank, int layer, ConstMatrix q,
                        const kernels::PagedPlan& plan, float scale) const {
  const std::span<const kernels::AttentionSegment> segments = plan.segments();
  const kernels::KvLayer& shape = plan.shape();
  to.layer = layer;
  to.capacity = capacity_of(segments, rank);
  to.dtype = q.dtype;
  to.segments.clear();
  for (const kernels::AttentionSegment& segment : segments) to.segments.push_back(segment.keys.data());
  if (to.capacity == 0) return;
  // No others take any room.
  std::vector<std::int32_t> of_segment;
  to.sequences = 0;
  for (const kernels::AttentionSegment& segment : segments)
    of_segment.push_back(find(segment) == nullptr ? -1 : static_cast<std::int32_t>(to.sequences++));
  const std::int64_t list =
      shape.kv_heads * to.capacity * shape.head_dim * static_cast<std::int64_t>(kernels::size_of(q.dtype));
  to.keys.reserve(stream, static_cast<std::size_t>(to.sequences * list));
  to.values.reserve(stream, static_cast<std::size_t>(to.sequences * list));
  const std::vector<std::int32_t> none(static_cast<std::size_t>(to.sequences * shape.kv_heads));
  const auto give = [&](kernels::Buffer& buffer, const std::vector<std::int32_t>& values) {
    const std::size_t bytes = values.size() * sizeof(std::int32_t);
    buffer.reserve(stream, bytes);
    kernels::upload(stream, buffer.data(), values.data(), bytes);
  };
  give(to.counts, none);
  give(to.of_segment, of_segment);
  if (to.choices.size() < static_cast<std::size_t>(to.sequences))
    to.choices.resize(static_cast<std::size_t>(to.sequences));
  each(to, rank, plan,
       [&](const kernels::AttentionSegment& segment, const Sequence& sequence, Past& past,
           Past::Choice& choice, const kernels::FetchedLists& lists) {
         past.choose(stream, layer,
                     q.rows_from(segment.first_row, static_cast<std::int64_t>(segment.own.size())), scale,
                     sequence.now, choice);
         past.place(stream, choice, lists);
         if (counts_) tally(stream, work, lists.counts, past, choice, shape.kv_heads);
       });
}

void PastAttend::bring(Stream& stream, Lists& lists, int rank, const kernels::PagedPlan& plan) const {
  if (lists.capacity == 0) return;
  each(lists, rank, plan,
       [&](const kernels::AttentionSegment& /*segment*/, const Sequence& /*sequence*/, const Past& past,
           const Past::Choice& choice, const kernels::FetchedLists& to) { past.bring(stream, choice, to); });
}

void PastAttend::ahead(Stream& stream, int rank, int layer, ConstMatrix q, const kernels::PagedPlan& plan,
                       float scale) const {
  if (capacity_of(plan.segments(), rank) == 0) return;
  Work& work = *works_.at(static_cast<std::size_t>(rank));
  if (!work.beside) {
    work.beside = stream.beside(true);
    work.beside->take_multiprocessors(kMultiprocessorsBeside);
  }
  // What is written was read by the layer before the last one.
  Lists& lists = work.lists[static_cast<std::size_t>(layer % 2)];
  choose(stream, work, lists, rank, layer, q, plan, scale);
  kernels::follow(*work.beside, stream);
  bring(*work.beside, lists, rank, plan);
  lists.done = kernels::Mark(*work.beside);
}

void PastAttend::attend(Stream& stream, int rank, int layer, ConstMatrix q, const kernels::KvLayer& kv,
                        const kernels::PagedPlan& plan, float scale, kernels::Matrix out) const {
  Work& work = *works_.at(static_cast<std::size_t>(rank));
  // Where only some rows are wanted, the plan has only their segments.
  const std::span<const kernels::AttentionSegment> segments = plan.segments();
  if (capacity_of(segments, rank) == 0) return kernels::paged_attention(stream, q, kv, plan, scale, out);
  Lists& lists = work.lists[looks_ahead() ? static_cast<std::size_t>(layer % 2) : 0];
  const bool is_there =
      lists.layer == layer && std::ranges::equal(segments, lists.segments, {},
                                                 [](const auto& segment) { return segment.keys.data(); });
  // What was brought for this layer ahead, and is not what it needs, is still on its way to the same place.
  lists.done.hold(stream);
  if (!is_there) {
    choose(stream, work, lists, rank, layer, q, plan, scale);
    bring(stream, lists, rank, plan);
  }
  kernels::listed_attention(stream, q, kv, plan,
                            {lists.keys.data(), lists.values.data(), lists.counts.as<std::int32_t>(),
                             lists.sequences, lists.capacity, lists.of_segment.as<std::int32_t>()},
                            scale, out);
  lists.layer = -1;
}

void PastAttend::settle() const {
  for (const auto& work : works_)
    if (work->beside) work->beside->synchronize();
}

void PastAttend::tally(const Stream& stream, Work& work, const std::int32_t* fetched, const Past& past,
                       const Past::Choice& choice, std::int64_t kv_heads) {
  std::vector<std::int32_t> counts(static_cast<std::size_t>(kv_heads));
  const std::size_t bytes = counts.size() * sizeof(std::int32_t);
  kernels::download(stream, counts.data(), fetched, bytes);
  for (const std::int32_t count : counts) work.counted.fetched += count;
  kernels::download(stream, counts.data(), past.selection(choice).tokens, bytes);
  for (const std::int32_t count : counts) work.counted.chosen += count;
  work.counted.of += kv_heads * past.tokens();
}

}  // namespace vigil::past
