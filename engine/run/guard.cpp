#include "engine/run/guard.h"

#include <exception>
#include <span>
#include <utility>

#include "kernels/device/error.h"

namespace vigil::run {
namespace {

/// Whether the error that is being handled leaves a device unusable: not every library that reports one says
/// so, but the next call to the device does. Waits for what was submitted before, since whoever gets the
/// error may give the memory away that it writes.
bool is_lost(const std::vector<kernels::Stream>& streams, const std::exception& error) {
  const auto* device = dynamic_cast<const kernels::DeviceError*>(&error);
  if (device != nullptr && device->lost()) return true;
  bool lost = false;
  for (const kernels::Stream& stream : streams) {
    try {
      stream.synchronize();
    } catch (const kernels::DeviceError& next) {
      lost = lost || next.lost();
    }
  }
  return lost;
}

template <typename Compute>
auto guard(const std::vector<kernels::Stream>& streams, const Compute& compute) {
  try {
    return compute();
  } catch (const std::exception& error) {
    if (is_lost(streams, error)) throw DeviceLost(error.what());
    throw;
  }
}

class GuardedEncoder final : public VisionEncoder {
 public:
  GuardedEncoder(std::unique_ptr<VisionEncoder> part, std::vector<kernels::Stream> streams)
      : streams_(std::move(streams)), part_(std::move(part)) {}

  int frames_per_patch() const override { return part_->frames_per_patch(); }
  model::PictureSize frame_size(model::PictureSize source) const override {
    return part_->frame_size(source);
  }
  std::vector<model::VisualTokensPtr> encode(std::span<const PatchFrames> patches) override {
    return guard(streams_, [&] { return part_->encode(patches); });
  }
  void forget(const std::string& camera) override { part_->forget(camera); }

 private:
  std::vector<kernels::Stream> streams_;
  std::unique_ptr<VisionEncoder> part_;
};

class GuardedPast final : public SequencePast {
 public:
  GuardedPast(std::unique_ptr<SequencePast> part, std::vector<kernels::Stream> streams)
      : streams_(std::move(streams)), part_(std::move(part)) {}

  void append(std::span<const std::int32_t> slots, std::span<const std::int32_t> times) override {
    guard(streams_, [&] { part_->append(slots, times); });
  }
  void lay() override {
    guard(streams_, [&] { part_->lay(); });
  }
  void forget_block() override {
    guard(streams_, [&] { part_->forget_block(); });
  }
  void resize(std::int64_t host_bytes) override {
    guard(streams_, [&] { part_->resize(host_bytes); });
  }
  std::int64_t tokens() const override { return part_->tokens(); }
  std::vector<int> patches() const override { return part_->patches(); }
  std::int64_t host_bytes() const override { return part_->host_bytes(); }
  std::int64_t device_bytes() const override { return part_->device_bytes(); }

  SequencePast& underlying() override { return part_->underlying(); }

 private:
  std::vector<kernels::Stream> streams_;
  std::unique_ptr<SequencePast> part_;
};

class GuardedPasses final : public Passes {
 public:
  GuardedPasses(std::unique_ptr<Passes> part, std::vector<kernels::Stream> streams)
      : streams_(std::move(streams)), part_(std::move(part)) {}

  void run(const Pass& pass) override {
    guard(streams_, [&] { part_->run(pass); });
  }
  std::unique_ptr<SequencePast> make_past(const past::PastOptions& options) override {
    return guard(streams_, [&]() -> std::unique_ptr<SequencePast> {
      return std::make_unique<GuardedPast>(part_->make_past(options), streams_);
    });
  }
  std::span<const float> key_distances(const Pass& pass) override {
    return guard(streams_, [&] { return part_->key_distances(pass); });
  }
  std::int32_t likeliest(std::size_t i) const override { return part_->likeliest(i); }
  std::span<const model::Candidate> likeliest(std::size_t i, std::size_t count) override {
    return guard(streams_, [&] { return part_->likeliest(i, count); });
  }
  std::span<const float> logits(std::size_t i) override {
    return guard(streams_, [&] { return part_->logits(i); });
  }
  void copy_pages(std::span<const kv::PageCopy> copies) override {
    guard(streams_, [&] { part_->copy_pages(copies); });
  }
  void take_pages(std::span<const kv::PageCopy> copies) override {
    guard(streams_, [&] { part_->take_pages(copies); });
  }
  std::size_t page_bytes() const override { return part_->page_bytes(); }
  std::uint64_t pages_form() const override { return part_->pages_form(); }
  void read_pages(std::span<const kv::PageId> pages, std::byte* to) override {
    guard(streams_, [&] { part_->read_pages(pages, to); });
  }
  void write_pages(std::span<const kv::PageId> pages, std::span<const std::byte* const> from) override {
    guard(streams_, [&] { part_->write_pages(pages, from); });
  }
  void settle() noexcept override { part_->settle(); }

 private:
  std::vector<kernels::Stream> streams_;
  std::unique_ptr<Passes> part_;
};

class GuardedMover final : public TokenMover {
 public:
  GuardedMover(std::unique_ptr<TokenMover> part, std::vector<kernels::Stream> streams)
      : streams_(std::move(streams)), part_(std::move(part)) {}

  std::unique_ptr<kernels::HostMemory> make_memory(std::uint64_t most) const override {
    return part_->make_memory(most);
  }
  std::size_t bytes_of(kv::Form form, std::int64_t tokens) const override {
    return part_->bytes_of(form, tokens);
  }
  std::optional<MovedTokens> pack(std::span<const std::int32_t> slots, kv::Form form,
                                  kernels::HostMemory& to) override {
    return guard(streams_, [&] { return part_->pack(slots, form, to); });
  }
  std::optional<MovedTokens> pack_embeddings(std::span<const model::VisualTokensPtr> patches,
                                             kernels::HostMemory& to) override {
    return guard(streams_, [&] { return part_->pack_embeddings(patches, to); });
  }
  void unpack(const Unpacking& page) override {
    guard(streams_, [&] { part_->unpack(page); });
  }

 private:
  std::vector<kernels::Stream> streams_;
  std::unique_ptr<TokenMover> part_;
};

}  // namespace

std::unique_ptr<VisionEncoder> guarded(std::unique_ptr<VisionEncoder> part,
                                       std::vector<kernels::Stream> streams) {
  return std::make_unique<GuardedEncoder>(std::move(part), std::move(streams));
}

std::unique_ptr<Passes> guarded(std::unique_ptr<Passes> part, std::vector<kernels::Stream> streams) {
  return std::make_unique<GuardedPasses>(std::move(part), std::move(streams));
}

std::unique_ptr<TokenMover> guarded(std::unique_ptr<TokenMover> part, std::vector<kernels::Stream> streams) {
  return std::make_unique<GuardedMover>(std::move(part), std::move(streams));
}

}  // namespace vigil::run
