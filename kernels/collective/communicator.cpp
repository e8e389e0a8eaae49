#include "kernels/collective/communicator.h"

#include <stdexcept>
#include <string>

#include "kernels/collective/collective_backends.h"

namespace vigil::kernels {
namespace {

/// More than one machine's GPUs that reach each other.
constexpr std::size_t kMostRanks = 8;
/// Rows of parts begin where 16 bytes can be read at once, in each type.
constexpr std::int64_t kColumns = 8;

std::int64_t stride_of(std::int64_t cols) {
  return (cols + kColumns - 1) / kColumns * kColumns;
}

}  // namespace

std::vector<Communicator> make_group(std::span<const Stream> streams, [[maybe_unused]] Transport transport) {
  if (streams.empty() || streams.size() > kMostRanks)
    throw std::invalid_argument("a group has 1 to " + std::to_string(kMostRanks) + " ranks, not " +
                                std::to_string(streams.size()));
  for (const Stream& stream : streams)
    if (stream.kind() != streams.front().kind())
      throw std::invalid_argument("a group is of CPUs or of GPUs, not of both");
  const auto group = std::make_shared<Group>(streams);
#if VIGIL_CUDA
  if (streams.front().kind() == DeviceKind::cuda) group->cuda = cuda::make_group(streams, transport);
#endif
  std::vector<Communicator> members;
  members.reserve(streams.size());
  for (std::size_t rank = 0; rank < streams.size(); ++rank)
    members.push_back(Communicator(group, static_cast<int>(rank)));
  return members;
}

void Communicator::reserve(DType dtype, std::int64_t rows, std::int64_t cols) const {
  const auto bytes = static_cast<std::size_t>(rows * stride_of(cols)) * size_of(dtype);
  const auto rank = static_cast<std::size_t>(rank_);
  std::array<Buffer, 2>& parts = group_->parts[rank];
  if (parts[0].bytes() >= bytes && parts[1].bytes() >= bytes) return;
  const Stream& stream = group_->streams[rank];
  // Others may still be reading what goes.
  stream.synchronize();
  group_->meeting.meet();
  for (Buffer& part : parts) part.reserve(stream, bytes);
  stream.synchronize();
#if VIGIL_CUDA
  if (group_->cuda) cuda::place_parts(*group_->cuda, rank_, parts);
#endif
  group_->meeting.meet();
}

Matrix Communicator::part(int which, DType dtype, std::int64_t rows, std::int64_t cols) const {
  const Buffer& part = group_->parts[static_cast<std::size_t>(rank_)][static_cast<std::size_t>(which)];
  const std::int64_t stride = stride_of(cols);
  if (part.bytes() < static_cast<std::size_t>(rows * stride) * size_of(dtype))
    throw std::logic_error("no room was reserved for parts of this size");
  return {part.data(), dtype, rows, cols, stride};
}

void Communicator::call_off() const noexcept {
  group_->meeting.call_off();
#if VIGIL_CUDA
  if (group_->cuda) cuda::call_off(*group_->cuda);
#endif
}

void Communicator::reset() const {
  for (const Stream& stream : group_->streams) stream.synchronize();
  group_->meeting.reset();
#if VIGIL_CUDA
  if (group_->cuda) cuda::reset(*group_->cuda);
#endif
  // Some ranks may have grown and others not; whether to grow is decided by each alone.
  for (auto& parts : group_->parts) parts = {};
}

}  // namespace vigil::kernels
