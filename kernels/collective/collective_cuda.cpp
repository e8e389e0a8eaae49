#include <stdexcept>
#include <string>
#include <utility>

#include "kernels/collective/collective_backends.h"
#include "kernels/collective/group_cuda.h"
#include "kernels/collective/sum_cuda.h"
#include "kernels/device/error.h"
#include "kernels/device/slow_path.h"

namespace vigil::kernels {
namespace {

constexpr std::size_t kStateBytes = 1024;
/// Ranks of which each reads all parts of a large sum; of more, two steps move less.
constexpr int kMostFetched = 2;
static_assert(sizeof(cuda::RankState) <= kStateBytes);

ncclDataType_t nccl_type(DType type) {
  return type == DType::f32 ? ncclFloat32 : ncclBfloat16;
}

void check_nccl(ncclResult_t status, const char* what) {
  if (status == ncclSuccess) return;
  throw DeviceError(std::string(what) + ": " + ncclGetErrorString(status));
}

}  // namespace

CudaGroup::CudaGroup(std::span<const Stream> streams, Transport transport)
    : streams_(streams.begin(), streams.end()), nccl_(streams.size(), nullptr) {
  for (std::size_t i = 0; i < streams.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const int device = streams[i].cuda_queue().device();
      if (device == streams[j].cuda_queue().device())
        throw std::invalid_argument("two ranks on GPU " + std::to_string(device) +
                                    ": their kernels could wait for each other for ever");
      if (!share_memory(streams[i], streams[j])) peers_ = false;
    }
  static SlowPath slow{"add_parts", "GPUs that cannot read each other's memory: sums go through NCCL"};
  if (!peers_) slow.taken();
  if (transport == Transport::nccl) peers_ = false;
  shares_ = streams.size() > kMostFetched || transport == Transport::in_two_steps;

  int* off = nullptr;
  check_cuda(
      cudaHostAlloc(reinterpret_cast<void**>(&off), sizeof(int), cudaHostAllocPortable | cudaHostAllocMapped),
      "pinned memory");
  off_.reset(off);
  *off_ = 0;
  const std::size_t bytes = peers_ ? kStateBytes + 2 * streams.size() * cuda::kInboxBytes : kStateBytes;
  for (std::size_t rank = 0; rank < streams.size(); ++rank) {
    memory_.emplace_back(streams_[rank], bytes);
    clear(rank);
    cuda::load_sum_kernels();
  }
  connect();
}

CudaGroup::~CudaGroup() {
  disconnect();
}

void CudaGroup::connect() {
  if (peers_) return;
  std::vector<int> devices;
  for (const Stream& stream : streams_) devices.push_back(stream.cuda_queue().device());
  check_nccl(ncclCommInitAll(nccl_.data(), static_cast<int>(devices.size()), devices.data()), "NCCL");
}

void CudaGroup::disconnect() noexcept {
  // Not destroyed, which would wait for what never comes.
  for (ncclComm_t& comm : nccl_)
    if (comm != nullptr) ncclCommAbort(std::exchange(comm, nullptr));
}

void CudaGroup::clear(std::size_t rank) const {
  const CudaQueue& queue = streams_[rank].cuda_queue();
  queue.bind();
  std::byte* memory = memory_[rank].data();
  check_cuda(cudaMemsetAsync(memory, 0, kStateBytes, queue.stream()), "group");
  check_cuda(cudaMemsetAsync(memory + kStateBytes, cuda::kEmptyByte, memory_[rank].bytes() - kStateBytes,
                             queue.stream()),
             "group");
  streams_[rank].synchronize();
}

cuda::Ranks CudaGroup::seen_from(int rank) const {
  cuda::Ranks ranks;
  ranks.rank = rank;
  ranks.count = static_cast<int>(streams_.size());
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    ranks.state[i] = memory_[i].as<cuda::RankState>();
    ranks.inbox[i] = memory_[i].data() + kStateBytes;
  }
  ranks.off = off_.get();
  return ranks;
}

void CudaGroup::place_parts(int rank, const std::array<Buffer, 2>& parts) {
  for (std::size_t which = 0; which < parts.size(); ++which)
    parts_[which][static_cast<std::size_t>(rank)] = parts[which].data();
}

void CudaGroup::all_reduce(int rank, Matrix x) const {
  const auto at = static_cast<std::size_t>(rank);
  const CudaQueue& queue = streams_[at].cuda_queue();
  queue.bind();
  const ncclResult_t status = ncclAllReduce(x.data, x.data, static_cast<std::size_t>(x.rows * x.cols),
                                            nccl_type(x.dtype), ncclSum, nccl_[at], queue.stream());
  if (status != ncclSuccess && called_off()) throw DeviceError(kCalledOff);
  check_nccl(status, "sum over GPUs");
}

void CudaGroup::call_off() noexcept {
  *static_cast<volatile int*>(off_.get()) = 1;
  // Other ranks' threads may be at work on theirs: revoked, they refuse, and stay until `reset`.
  for (const ncclComm_t comm : nccl_)
    if (comm != nullptr) ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT);
}

void CudaGroup::reset() {
  disconnect();
  *off_ = 0;
  for (std::size_t rank = 0; rank < streams_.size(); ++rank) clear(rank);
  connect();
}

std::shared_ptr<CudaGroup> cuda::make_group(std::span<const Stream> streams, Transport transport) {
  return std::make_shared<CudaGroup>(streams, transport);
}

void cuda::place_parts(CudaGroup& group, int rank, const std::array<Buffer, 2>& parts) {
  group.place_parts(rank, parts);
}

void cuda::call_off(CudaGroup& group) noexcept {
  group.call_off();
}

void cuda::reset(CudaGroup& group) {
  group.reset();
}

void cuda::add_parts(Stream& stream, const Communicator& ranks, int which, Matrix part, Matrix x,
                     const SumNorm& norm) {
  CudaGroup& group = *ranks.group().cuda;
  CudaQueue& queue = stream.cuda_queue();
  queue.bind();
  if (group.peers() && ranks.ranks() > 1 && fits_inbox(part))
    return send_and_add(queue.stream(), group.seen_from(ranks.rank()), part, x, norm);
  const auto& parts = group.parts(which);
  if (group.peers() && ranks.ranks() > 1) {
    const std::span<const void* const> all = std::span(parts).first(static_cast<std::size_t>(ranks.ranks()));
    const Ranks seen = group.seen_from(ranks.rank());
    wait_for_ranks(queue.stream(), seen);
    if (!group.shares()) return fetch_and_add(queue.stream(), queue.multiprocessors(), all, part, x, norm);
    add_share(queue.stream(), queue.multiprocessors(), all, ranks.rank(), part);
    wait_for_ranks(queue.stream(), seen);
    return fetch_shares(queue.stream(), queue.multiprocessors(), all, part, x, norm);
  }
  if (ranks.ranks() > 1) group.all_reduce(ranks.rank(), dense(part.data, part.dtype, part.rows, part.stride));
  const void* own = part.data;
  fetch_and_add(queue.stream(), queue.multiprocessors(), std::span(&own, 1), part, x, norm);
}

}  // namespace vigil::kernels
