// The part of the desk by which texts see what lies before their windows.
#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>
#include <utility>

#include "engine/run/vision_encoder.h"
#include "engine/stream/desk_draft.h"
#include "engine/stream/stream_desk.h"

namespace vigil::stream {

void StreamDesk::set_memory(const std::string& camera, base::Duration length, const past::PastOptions& how) {
  Stream& stream = find(camera);
  if (length <= base::Duration::zero()) {
    // Windows that were asked before see what they saw.
    stream.memory.reset();
  } else if (stream.memory) {
    stream.memory->set_length(length);
  } else {
    stream.memory = std::make_shared<WindowMemory>(passes_, folder_.config.text, how, length);
    memories_.emplace_back(camera, stream.memory, stream.is_restored);
  }
  send_leaving(camera, stream);
}

base::Duration StreamDesk::memory(const std::string& camera) const {
  const Stream& stream = find(camera);
  return stream.memory ? stream.memory->length() : base::Duration::zero();
}

void StreamDesk::send_leaving(const std::string& camera, Stream& stream) {
  std::shared_ptr<PageSink> sink = stream.is_restored ? nullptr : sink_;
  if (stream.memory) {
    stream.memory->pass_on_to(std::move(sink));
    sink = stream.memory;
  }
  stream.stream.leave_to(std::move(sink), camera, stream.run);
}

void StreamDesk::settle_memory(Stream& stream) {
  if (!stream.memory || !stream.memory->waits()) return;
  // A text that goes on shows all of its window still.
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const auto& [key, window] : windows_)
    if (window.memory == stream.memory) first = std::min(first, window.asking.patches.first);
  if (!stream.memory->waits(first)) return;
  share_memory();
  change_memory(stream.camera, *stream.memory, [&] { stream.memory->settle(first); });
}

void StreamDesk::share_memory() {
  std::erase_if(memories_, [](const auto& each) { return std::get<1>(each).expired(); });
  std::vector<std::int64_t> needs;
  needs.reserve(memories_.size());
  for (const auto& [camera, memory, is_restored] : memories_)
    if (!is_restored) needs.push_back(memory.lock()->need());
  shares_.divide(std::move(needs));
  // What is restored asks about the past: it has what cameras leave.
  std::int64_t left = shares_.left();
  for (const auto& [camera, each, is_restored] : memories_) {
    const std::shared_ptr<WindowMemory> memory = each.lock();
    const std::int64_t room = is_restored ? std::min(memory->need(), left) : shares_.of(memory->need());
    if (is_restored) left -= room;
    change_memory(camera, *memory, [&memory, room] { memory->allow(room); });
  }
}

void StreamDesk::change_memory(const std::string& camera, WindowMemory& memory,
                               const std::function<void()>& change) {
  try {
    change();
  } catch (const run::DeviceLost&) {
    throw;
  } catch (const std::exception& error) {
    settle();
    memory.forget();
    news_.forgotten.push_back({camera, error.what(), memory.had_more_room()});
  }
  if (const auto remembered = memory.take_shortened())
    news_.shortened.push_back(
        {camera, *remembered, memory.length(), memory.room(), memory.need(), memory.had_more_room()});
}

void StreamDesk::settle_memories() {
  for (auto& [camera, stream] : streams_) settle_memory(stream);
}

bool StreamDesk::forget_memories(const Draft& draft, const std::string& reason) {
  if (draft.pass.before.empty()) return false;
  for (const Draft::Output& output : draft.outputs) {
    const Window& window = this->window(output.text.window);
    if (!window.memory || window.memory->past() == nullptr) continue;
    window.memory->forget();
    news_.forgotten.push_back({window.id.camera, reason});
  }
  return true;
}

void StreamDesk::see_before(Draft& draft, const Window& window, const model::Position& at) const {
  run::SequencePast* past = window.memory ? window.memory->past() : nullptr;
  if (past != nullptr) draft.pass.before.push_back({draft.pass.segments.size() - 1, past, at.t});
}

StreamDesk::WindowMemories StreamDesk::window_memory() const {
  WindowMemories all;
  for (const auto& [camera, stream] : streams_) {
    if (!stream.memory) continue;
    all.tokens += stream.memory->tokens();
    all.host_bytes += stream.memory->host_bytes();
    all.device_bytes += stream.memory->device_bytes();
    all.room += stream.memory->room();
  }
  return all;
}

}  // namespace vigil::stream
