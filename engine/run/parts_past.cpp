#include "engine/run/parts_past.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace vigil::run {

PartsPast::PartsPast(const CachedModel& model, std::vector<kernels::Stream> streams,
                     past::PastOptions options)
    : model_(model), streams_(std::move(streams)) {
  options.host_bytes /= model_.ranks();
  for (std::size_t rank = 0; rank < streams_.size(); ++rank) {
    parts_.push_back(std::make_unique<past::Past>(streams_[rank], model_.folder->config.text,
                                                  model_.parts[rank]->pages.layout(), options));
    borrowed_.push_back(parts_.back().get());
  }
}

PartsPast::~PartsPast() {
  for (const kernels::Stream& stream : streams_) {
    try {
      stream.synchronize();
    } catch (const std::exception&) {
      // An error of a device is told by the next pass.
      continue;
    }
  }
}

bool PartsPast::forgets_alike() {
  std::int64_t fewest = parts_.front()->blocks();
  for (const auto& part : parts_) fewest = std::min(fewest, part->blocks());
  bool is_alike = true;
  for (std::size_t rank = 0; rank < parts_.size(); ++rank)
    for (; parts_[rank]->blocks() > fewest; is_alike = false) parts_[rank]->forget_block(streams_[rank]);
  return is_alike;
}

void PartsPast::append(std::span<const std::int32_t> slots, std::span<const std::int32_t> times) {
  for (std::size_t rank = 0; rank < parts_.size(); ++rank)
    parts_[rank]->append(streams_[rank], model_.parts[rank]->pages, slots, times);
  forgets_alike();
}

void PartsPast::lay() {
  do {
    for (std::size_t rank = 0; rank < parts_.size(); ++rank) parts_[rank]->lay(streams_[rank]);
  } while (!forgets_alike());
}

void PartsPast::forget_block() {
  for (std::size_t rank = 0; rank < parts_.size(); ++rank) parts_[rank]->forget_block(streams_[rank]);
}

void PartsPast::resize(std::int64_t host_bytes) {
  for (std::size_t rank = 0; rank < parts_.size(); ++rank)
    parts_[rank]->resize(streams_[rank], host_bytes / model_.ranks());
  forgets_alike();
}

std::int64_t PartsPast::host_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& part : parts_) bytes += part->host_bytes();
  return bytes;
}

std::int64_t PartsPast::device_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& part : parts_) bytes += part->device_bytes();
  return bytes;
}

}  // namespace vigil::run
