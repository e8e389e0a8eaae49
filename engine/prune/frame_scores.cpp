#include "engine/prune/frame_scores.h"

#include <algorithm>
#include <new>
#include <stdexcept>
#include <utility>

#include "kernels/similarity/similarity.h"

namespace vigil::prune {

bool WaitingFrames::make_room(std::uint64_t bytes) {
  if (bytes > most_) return false;
  while (bytes_ > most_ - bytes) {
    bytes_ -= frames_.front()->bytes();
    frames_.pop_front();
    ++gone_;
  }
  return true;
}

void WaitingFrames::put(std::shared_ptr<Frame> frame) {
  const std::uint64_t bytes = frame->bytes();
  frames_.push_back(std::move(frame));
  bytes_ += bytes;
}

std::shared_ptr<WaitingFrames::Frame> WaitingFrames::take(const std::weak_ptr<Frame>& frame) {
  std::shared_ptr<Frame> taken = frame.lock();
  if (taken && frames_.remove(taken) > 0) bytes_ -= taken->bytes();
  return taken;
}

void FrameScores::interrupt() {
  waiting_->take(last_);
  last_.reset();
}

void FrameScores::add(const base::GridMask& places, kernels::ConstMatrix embeddings) {
  std::shared_ptr<WaitingFrames::Frame> before = waiting_->take(last_);
  last_.reset();
  if (places.count() != embeddings.rows || embeddings.stride != embeddings.cols ||
      (embeddings.dtype != kernels::DType::f32 && embeddings.dtype != kernels::DType::bf16))
    throw std::invalid_argument("frame scores: embeddings do not fit their places");
  Frame frame;
  frame.places = places.list();
  const std::size_t tokens = frame.places.size();
  kernels::Buffer list(stream_, tokens * sizeof(std::int32_t));
  if (tokens > 0) {
    kernels::upload(stream_, list.data(), frame.places.data(), list.bytes());
    frame.there = kernels::Buffer(stream_, 2 * tokens * sizeof(float));
    kernels::PlacedTokens past{
        kernels::dense(static_cast<const void*>(nullptr), embeddings.dtype, 0, embeddings.cols)};
    if (before && before->places.height() == places.height() && before->places.width() == places.width() &&
        before->width == embeddings.cols && before->dtype == embeddings.dtype)
      past = {kernels::dense(static_cast<const void*>(before->embeddings.data()), before->dtype,
                             before->places.count(), before->width),
              before->list.as<std::int32_t>()};
    kernels::token_similarity(stream_, {embeddings, list.as<std::int32_t>()}, past, places.height(),
                              places.width(), frame.there.as<float>(), frame.there.as<float>() + tokens);
  }
  before.reset();
  frames_.push_back(std::move(frame));
  try {
    keep(places, std::move(list), embeddings);
  } catch (...) {
    frames_.pop_back();
    throw;
  }
}

void FrameScores::keep(const base::GridMask& places, kernels::Buffer list, kernels::ConstMatrix embeddings) {
  const std::size_t bytes =
      static_cast<std::size_t>(embeddings.rows * embeddings.cols) * kernels::size_of(embeddings.dtype);
  if (!waiting_->make_room(list.bytes() + bytes)) return waiting_->count_gone();
  try {
    auto frame = std::make_shared<WaitingFrames::Frame>();
    frame->places = places;
    frame->list = std::move(list);
    frame->embeddings = kernels::Buffer(stream_, bytes);
    frame->dtype = embeddings.dtype;
    frame->width = embeddings.cols;
    if (bytes > 0) kernels::copy(stream_, frame->embeddings.data(), embeddings.data, bytes);
    waiting_->put(frame);
    last_ = frame;
  } catch (const std::bad_alloc&) {
    waiting_->count_gone();
  }
}

void FrameScores::drop(std::size_t count) {
  if (count > frames_.size()) throw std::out_of_range("frame scores: there are not so many frames");
  frames_.erase(frames_.begin(), frames_.begin() + static_cast<std::ptrdiff_t>(count));
}

std::vector<ScoredFrame> FrameScores::window(std::size_t first, std::size_t count) {
  if (first > frames_.size() || count > frames_.size() - first)
    throw std::out_of_range("frame scores: there are no such frames");
  std::vector<ScoredFrame> window;
  for (std::size_t f = first; f < first + count; ++f) {
    Frame& frame = frames_[f];
    const std::size_t tokens = frame.places.size();
    if (frame.there.bytes() > 0) {
      frame.scores.resize(2 * tokens);
      kernels::download(stream_, frame.scores.data(), frame.there.data(), frame.there.bytes());
      frame.there = {};
    }
    window.push_back({frame.places, {frame.scores.data(), tokens}, {frame.scores.data() + tokens, tokens}});
  }
  return window;
}

}  // namespace vigil::prune
