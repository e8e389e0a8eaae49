#include "engine/run/pass_runner.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/fnv1a.h"
#include "engine/run/parts_past.h"
#include "kernels/argmax/argmax.h"
#include "kernels/collective/communicator.h"
#include "kernels/convert/convert.h"
#include "kernels/top_k/top_k.h"

namespace vigil::run {
namespace {

/// Tokens that a KV head may fetch of a sequence's past. Lists of that length, of each sequence that has one,
/// are 32 MiB each at the 7B shape.
constexpr std::int64_t kMostFetched = 16384;

}  // namespace

PassRunner::PassRunner(CachedModel& model, const std::vector<kernels::Stream>& streams,
                       const CachedModel* other)
    : model_(model), other_(other), team_(model.ranks()), past_attend_(model.ranks(), kMostFetched) {
  if (streams.size() != model.parts.size())
    throw std::invalid_argument("a model in " + std::to_string(model.parts.size()) +
                                " parts does not run on " + std::to_string(streams.size()) + " streams");
  if (other != nullptr) {
    const kv::PageLayout& from = other->parts.front()->pages.layout();
    const kv::PageLayout& to = model.parts.front()->pages.layout();
    if (other->ranks() != model.ranks() || from.page_bytes() != to.page_bytes() ||
        from.page_tokens != to.page_tokens || model.book.pages() < other->book.pages())
      throw std::invalid_argument(
          "windows cannot be continued by a model of another shape or in other parts");
  }
  for (std::size_t rank = 0; rank < streams.size(); ++rank)
    lanes_.push_back({model.parts[rank].get(), streams[rank]});
  if (!shared()) return;
  const std::vector<kernels::Communicator> ranks = kernels::make_group(streams);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    lanes_[rank].large.ranks = lanes_[rank].small.ranks = ranks[rank];
}

void PassRunner::on_all(const std::function<void(Lane&)>& body) {
  if (!shared()) return body(lanes_.front());
  const kernels::Communicator& ranks = *lanes_.front().large.ranks;
  try {
    team_.run([&](int rank) { body(lanes_[static_cast<std::size_t>(rank)]); }, [&] { ranks.call_off(); });
  } catch (...) {
    // They name what the group gives up.
    for (Lane& lane : lanes_) lane.steps = {};
    ranks.reset();
    throw;
  }
}

void PassRunner::settle() noexcept {
  const auto quietly = [](const auto& wait) {
    try {
      wait();
    } catch (const std::exception&) {
      // An error of a device is told by the next pass.
      return;
    }
  };
  for (const Lane& lane : lanes_) quietly([&] { lane.stream.synchronize(); });
  quietly([&] { past_attend_.settle(); });
}

std::unique_lock<std::mutex> PassRunner::submission() {
  return shared() ? std::unique_lock(model_.submission) : std::unique_lock<std::mutex>();
}

void PassRunner::run(const Pass& pass) {
  const auto angles = pass.is_far ? kernels::RopeAngles::wide : kernels::RopeAngles::single;
  const std::size_t rows = pass.positions.size();
  const std::size_t outputs = pass.outputs.size();
  tokens_.clear();
  if (outputs > 0 && std::all_of(pass.rows.begin(), pass.rows.end(),
                                 [](const Pass::Rows& each) { return !each.tokens.empty(); }))
    for (const Pass::Rows& each : pass.rows)
      tokens_.insert(tokens_.end(), each.tokens.begin(), each.tokens.end());
  const bool of_tokens = !tokens_.empty();
  const model::Attend& attend = attend_of(pass);
  // Steps are recorded and replayed, so they have to be those that everybody runs.
  const bool one_of_each =
      of_tokens && rows == pass.segments.size() && rows == outputs && &attend == &model::full_attention();
  float* hidden = of_tokens ? nullptr : compose(pass);
  {
    const std::unique_lock lock = submission();
    if (of_tokens) {
      for (Lane& lane : lanes_) lane.hidden.reserve(lane.stream, bytes_of(rows));
      hidden = lanes_.front().hidden.as<float>();
    } else {
      spread(hidden, rows);
    }
    reserve_largest(outputs);
    prepare({hidden, pass.positions, pass.segments, pass.outputs, tokens_, angles, &attend}, one_of_each);
    on_all([&](Lane& lane) {
      const kernels::LimitedMultiprocessors some(
          lane.stream, attend.looks_ahead() ? past::PastAttend::kMultiprocessorsBeside : 0);
      if (outputs > 0) return submit_step(lane, one_of_each);
      lane.part->decoder.run(lane.stream, lane.workspace(), lane.prepared, lane.part->pages);
    });
  }
  if (outputs > 0) fetch_outputs(outputs);
}

std::span<const float> PassRunner::key_distances(const Pass& pass) {
  const auto angles = pass.is_far ? kernels::RopeAngles::wide : kernels::RopeAngles::single;
  likeliest_.clear();
  candidates_.clear();
  asked_ = 0;
  distances_.assign(pass.outputs.size(), 0);
  if (model_.folder->config.text.num_hidden_layers < 2) return distances_;
  float* hidden = compose(pass);
  {
    const std::unique_lock lock = submission();
    spread(hidden, pass.positions.size());
    const model::Decoder::Pass all{hidden, pass.positions, pass.segments, pass.outputs,
                                   {},     angles,         pass.attend};
    on_all([&](Lane& lane) {
      lane.is_small = false;
      model::Decoder::Pass own = all;
      if (&lane != &lanes_.front()) own.hidden = lane.hidden.as<float>();
      lane.prepared = lane.part->decoder.prepare_probe(lane.stream, lane.workspace(), own, lane.part->pages);
      lane.distances.resize(pass.outputs.size());
    });
    on_all([&](Lane& lane) {
      lane.probed = lane.part->decoder.probe(lane.stream, lane.workspace(), lane.prepared, lane.part->pages);
    });
  }
  if (pass.outputs.empty()) return distances_;
  on_all([](Lane& lane) {
    kernels::download(lane.stream, lane.distances.data(), lane.probed, lane.distances.size() * sizeof(float));
  });
  // In the order of the parts, so that the sums are the same each time.
  for (const Lane& lane : lanes_)
    for (std::size_t i = 0; i < distances_.size(); ++i) distances_[i] += lane.distances[i];
  return distances_;
}

const model::Attend& PassRunner::attend_of(const Pass& pass) {
  if (pass.before.empty()) return *pass.attend;
  if (pass.attend != &model::full_attention())
    throw std::invalid_argument("a pass whose segments have a past, and that attends otherwise");
  past_attend_.clear();
  for (const Pass::Before& before : pass.before)
    past_attend_.add(pass.segments.at(before.segment).keys,
                     dynamic_cast<PartsPast&>(before.past->underlying()).parts(), before.now);
  return past_attend_;
}

std::unique_ptr<SequencePast> PassRunner::make_past(const past::PastOptions& options) {
  std::vector<kernels::Stream> streams;
  streams.reserve(lanes_.size());
  for (const Lane& lane : lanes_) streams.push_back(lane.stream);
  return std::make_unique<PartsPast>(model_, std::move(streams), options);
}

std::size_t PassRunner::bytes_of(std::size_t rows) const {
  return rows * static_cast<std::size_t>(model_.folder->config.text.hidden_size) * sizeof(float);
}

float* PassRunner::compose(const Pass& pass) {
  const std::int64_t width = model_.folder->config.text.hidden_size;
  composed_.reserve(stream(), bytes_of(pass.positions.size()));
  Lane& first = lanes_.front();
  std::int64_t row = 0;
  // Tokens that follow each other are looked up together, whoever's they are.
  tokens_.clear();
  const auto look_up = [&] {
    if (tokens_.empty()) return;
    const auto count = static_cast<std::int64_t>(tokens_.size());
    first.part->decoder.embed(
        first.stream, first.large, tokens_,
        kernels::dense(composed_.as<float>() + (row - count) * width, kernels::DType::f32, count, width));
    tokens_.clear();
  };
  for (const Pass::Rows& rows : pass.rows) {
    const std::int64_t count = rows.count();
    if (!rows.tokens.empty()) {
      tokens_.insert(tokens_.end(), rows.tokens.begin(), rows.tokens.end());
      row += count;
      continue;
    }
    look_up();
    if (rows.embedded.cols != width)
      throw std::invalid_argument("visual tokens of " + std::to_string(rows.embedded.cols) +
                                  " values for a model of " + std::to_string(width));
    kernels::convert_rows(
        first.stream, rows.embedded,
        kernels::dense(composed_.as<float>() + row * width, kernels::DType::f32, count, width));
    row += count;
  }
  look_up();
  return composed_.as<float>();
}

void PassRunner::spread(const float* hidden, std::size_t rows) {
  const std::size_t bytes = bytes_of(rows);
  for (Lane& lane : std::span(lanes_).subspan(1)) {
    lane.hidden.reserve(lane.stream, bytes);
    kernels::copy_across(stream(), hidden, lane.stream, lane.hidden.data(), bytes);
  }
}

void PassRunner::copy_pages(std::span<const kv::PageCopy> copies) {
  for (Lane& lane : lanes_)
    for (const kv::PageCopy& copy : copies)
      kernels::copy(lane.stream, lane.part->pages.page(copy.to), lane.part->pages.page(copy.from),
                    static_cast<std::size_t>(lane.part->pages.layout().page_bytes()));
}

void PassRunner::take_pages(std::span<const kv::PageCopy> copies) {
  if (other_ == nullptr) throw std::logic_error("no other model's windows go on here");
  const auto bytes = static_cast<std::size_t>(lanes_.front().part->pages.layout().page_bytes());
  for (std::size_t rank = 0; rank < lanes_.size(); ++rank)
    for (const kv::PageCopy& copy : copies)
      kernels::copy(lanes_[rank].stream, lanes_[rank].part->pages.page(copy.to),
                    other_->parts[rank]->pages.page(copy.from), bytes);
}

std::uint64_t PassRunner::pages_form() const {
  const kv::PageLayout& layout = lanes_.front().part->pages.layout();
  const model::TextConfig& text = model_.folder->config.text;
  std::uint64_t form = base::kFnv1aStart;
  for (const auto number :
       {std::int64_t{layout.layers}, std::int64_t{layout.kv_heads}, std::int64_t{layout.head_dim},
        std::int64_t{layout.page_tokens}, static_cast<std::int64_t>(layout.dtype),
        std::int64_t{model_.ranks()}, std::int64_t{text.hidden_size}, std::int64_t{text.vocab_size}})
    form = base::fnv1a({reinterpret_cast<const char*>(&number), sizeof number}, form);
  return form;
}

void PassRunner::read_pages(std::span<const kv::PageId> pages, std::byte* to) {
  const auto bytes = static_cast<std::size_t>(lanes_.front().part->pages.layout().page_bytes());
  for (const kv::PageId page : pages)
    for (const Lane& lane : lanes_) {
      kernels::download(lane.stream, to, lane.part->pages.page(page), bytes);
      to += bytes;
    }
}

void PassRunner::write_pages(std::span<const kv::PageId> pages, std::span<const std::byte* const> from) {
  const auto bytes = static_cast<std::size_t>(lanes_.front().part->pages.layout().page_bytes());
  for (std::size_t i = 0; i < pages.size(); ++i)
    for (std::size_t rank = 0; rank < lanes_.size(); ++rank)
      kernels::upload(lanes_[rank].stream, lanes_[rank].part->pages.page(pages[i]), from[i] + rank * bytes,
                      bytes);
}

void PassRunner::reserve_largest(std::size_t outputs) {
  for (Lane& lane : lanes_)
    lane.largest.reserve(lane.stream, outputs * (sizeof(std::int32_t) + sizeof(float)));
}

void PassRunner::fetch_outputs(std::size_t outputs) {
  candidates_.clear();
  asked_ = 0;
  on_all([](Lane& lane) { fetch_largest(lane); });

  likeliest_.assign(outputs, -1);
  std::vector<float> largest(outputs, -std::numeric_limits<float>::infinity());
  for (const Lane& lane : lanes_) {
    const auto first = static_cast<std::int32_t>(lane.part->decoder.part().vocabulary.first);
    for (std::size_t i = 0; i < outputs; ++i) {
      // Of equal ones, the first of the first part.
      if (lane.columns[i] < 0 || lane.values[i] <= largest[i]) continue;
      likeliest_[i] = first + lane.columns[i];
      largest[i] = lane.values[i];
    }
  }
}

void PassRunner::prepare(const model::Decoder::Pass& pass, bool one_of_each) {
  on_all([&](Lane& lane) {
    lane.is_small = one_of_each;
    model::Decoder::Pass own = pass;
    if (&lane != &lanes_.front()) own.hidden = lane.hidden.as<float>();
    lane.prepared = lane.part->decoder.prepare(lane.stream, lane.workspace(), own, lane.part->pages);
  });
}

void PassRunner::submit_step(Lane& lane, bool one_of_each) {
  const model::Decoder& decoder = lane.part->decoder;
  auto* columns = lane.largest.as<std::int32_t>();
  const auto submit = [&] {
    const kernels::Matrix states =
        decoder.run(lane.stream, lane.workspace(), lane.prepared, lane.part->pages);
    kernels::largest_columns(lane.stream, decoder.logits(lane.stream, lane.workspace(), states), columns,
                             reinterpret_cast<float*>(columns + lane.prepared.wanted));
  };
  if (one_of_each) {
    const bool wide = lane.prepared.angles == kernels::RopeAngles::wide;
    lane.steps.run(lane.stream, 2 * static_cast<std::uint64_t>(lane.prepared.rows) + (wide ? 1 : 0), submit);
  } else {
    submit();
  }
  lane.logits = kernels::dense(static_cast<const void*>(lane.workspace().logits.data()), kernels::DType::f32,
                               lane.prepared.wanted, decoder.part().vocabulary.count);
}

void PassRunner::fetch_largest(Lane& lane) {
  const auto count = static_cast<std::size_t>(lane.prepared.wanted);
  lane.columns.resize(2 * count);
  // A step is over soon, and nothing can be prepared before its tokens are known.
  const kernels::Wait wait = lane.is_small ? kernels::Wait::spin : kernels::Wait::sleep;
  kernels::download(lane.stream, lane.columns.data(), lane.largest.data(), 2 * count * sizeof(std::int32_t),
                    wait);
  lane.values.resize(count);
  std::memcpy(lane.values.data(), lane.columns.data() + count, count * sizeof(float));
}

void PassRunner::fetch_candidates(Lane& lane, std::size_t count) {
  const std::int64_t most = std::min(static_cast<std::int64_t>(count), lane.logits.cols);
  const auto all = static_cast<std::size_t>(lane.logits.rows * most);
  // Kept: with an allocation, the recorded steps of this stream would be given up.
  lane.candidates.reserve(lane.stream, all * (sizeof(float) + sizeof(std::int32_t)));
  auto* values = lane.candidates.as<float>();
  kernels::top_k(lane.stream, lane.logits, most, reinterpret_cast<std::int32_t*>(values + all), values);
  std::vector<float> scores(all);
  std::vector<std::int32_t> columns(all);
  kernels::download(lane.stream, scores.data(), values, all * sizeof(float));
  kernels::download(lane.stream, columns.data(), values + all, all * sizeof(std::int32_t));
  const auto first = static_cast<std::int32_t>(lane.part->decoder.part().vocabulary.first);
  for (std::size_t at = 0; at < all; ++at)
    if (columns[at] >= 0)
      candidates_[at / static_cast<std::size_t>(most)].push_back({scores[at], first + columns[at]});
}

std::span<const model::Candidate> PassRunner::likeliest(std::size_t i, std::size_t count) {
  if (count > asked_) {
    candidates_.assign(likeliest_.size(), {});
    asked_ = 0;
    for (Lane& lane : lanes_) fetch_candidates(lane, count);
    asked_ = count;
    if (shared())
      for (std::vector<model::Candidate>& of : candidates_)
        // Parts are in the order of their tokens, so that equal ones stay in it.
        std::stable_sort(of.begin(), of.end(),
                         [](const auto& a, const auto& b) { return a.score > b.score; });
  }
  const std::span<const model::Candidate> all = candidates_[i];
  return all.first(std::min(count, all.size()));
}

std::span<const float> PassRunner::logits(std::size_t i) {
  logits_.resize(static_cast<std::size_t>(model_.folder->config.text.vocab_size));
  for (const Lane& lane : lanes_) {
    const auto cols = static_cast<std::size_t>(lane.logits.cols);
    const auto first = shared() ? static_cast<std::size_t>(lane.part->decoder.part().vocabulary.first) : 0;
    kernels::download(lane.stream, logits_.data() + first,
                      static_cast<const float*>(lane.logits.data) + i * cols, cols * sizeof(float));
  }
  return logits_;
}

}  // namespace vigil::run
