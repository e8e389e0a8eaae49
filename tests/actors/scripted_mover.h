// What moves tokens of a scripted language model: what its passes have in their slots, as bytes.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <vector>

#include "engine/run/token_mover.h"
#include "engine/run/vision_encoder.h"
#include "tests/actors/scripted_language.h"

namespace vigil::actors::testing {

/// All forms of keys are the same bytes: what passes have in a slot. Nothing is said of embeddings but how
/// many they are.
class ScriptedMover final : public run::TokenMover {
 public:
  explicit ScriptedMover(ScriptedPasses& passes) : passes_(passes) {}
  /// What happens instead of packing.
  std::function<void()> on_pack;
  bool has_room = true;

  std::unique_ptr<kernels::HostMemory> make_memory(std::uint64_t most) const override {
    return std::make_unique<kernels::HostMemory>(kernels::Stream::cpu(1), most);
  }
  std::size_t bytes_of(kv::Form, std::int64_t tokens) const override {
    return static_cast<std::size_t>(tokens) * slot_bytes();
  }
  std::optional<run::MovedTokens> pack(std::span<const std::int32_t> slots, kv::Form form,
                                       kernels::HostMemory& to) override {
    auto tokens = moved(static_cast<std::int64_t>(slots.size()), form, to);
    for (std::size_t i = 0; tokens && i < slots.size(); ++i) {
      const std::vector<std::byte> page = page_of(slots[i]);
      std::memcpy(tokens->bytes.get() + i * slot_bytes(), page.data() + offset_of(slots[i]), slot_bytes());
    }
    return tokens;
  }
  std::optional<run::MovedTokens> pack_embeddings(std::span<const model::VisualTokensPtr> patches,
                                                  kernels::HostMemory& to) override {
    std::int64_t count = 0;
    for (const model::VisualTokensPtr& patch : patches) count += patch->count();
    return moved(count, kv::Form::embeddings, to);
  }
  void unpack(const Unpacking& page) override {
    if (page.bytes.size() != bytes_of(page.form, page.tokens))
      throw std::invalid_argument("a page of another number of bytes");
    for (std::size_t i = 0; i < page.slots.size(); ++i) {
      std::vector<std::byte> whole = page_of(page.slots[i]);
      std::memcpy(whole.data() + offset_of(page.slots[i]),
                  page.bytes.data() + (static_cast<std::size_t>(page.first) + i) * slot_bytes(),
                  slot_bytes());
      const kv::PageId id = id_of(page.slots[i]);
      const std::byte* const from = whole.data();
      passes_.write_pages({&id, 1}, {&from, 1});
    }
  }

 private:
  std::size_t slot_bytes() const { return passes_.page_bytes() / ScriptedLanguage::kPageTokens; }
  static kv::PageId id_of(std::int32_t slot) {
    return static_cast<kv::PageId>(slot / ScriptedLanguage::kPageTokens);
  }
  std::size_t offset_of(std::int32_t slot) const {
    return static_cast<std::size_t>(slot % ScriptedLanguage::kPageTokens) * slot_bytes();
  }
  std::vector<std::byte> page_of(std::int32_t slot) {
    std::vector<std::byte> page(passes_.page_bytes());
    const kv::PageId id = id_of(slot);
    passes_.read_pages({&id, 1}, page.data());
    return page;
  }
  std::optional<run::MovedTokens> moved(std::int64_t count, kv::Form form, kernels::HostMemory& to) const {
    if (on_pack) on_pack();
    if (!has_room) return std::nullopt;
    run::MovedTokens tokens;
    tokens.form = form;
    tokens.tokens = count;
    tokens.size = bytes_of(form, count);
    if (tokens.size > 0) tokens.bytes = to.take(tokens.size);
    return tokens;
  }

  ScriptedPasses& passes_;
};

/// As a watch of the scripted pipeline, of a camera that is remembered so long.
inline WatchPtr remembered_watch(base::Duration keep = std::chrono::hours(24),
                                 const std::string& tenant = "north", const std::string& name = "gate",
                                 std::uint64_t version = 1) {
  const auto settings = camera(name);
  settings->stream.pruning.refresh = config::Refresh::none;
  auto watch = std::make_shared<WatchSettings>(*watched(*settings, version));
  watch->keep = keep;
  watch->tenant = tenant;
  return watch;
}

}  // namespace vigil::actors::testing
