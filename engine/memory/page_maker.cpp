#include "engine/memory/page_maker.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include "engine/memory/hours.h"

namespace vigil::memory {
namespace {

/// A patch was captured when its last frame was, and began as much earlier as it lasts.
history::WallRange wall_of(const stream::LeavingPatch& patch) {
  const std::int64_t to = nanoseconds(patch.captured.value_or(base::Clock::WallTime()));
  const double length = std::clamp(patch.tokens->duration, 0.0, 3600.0);
  return {to - std::llround(length * 1e9), to};
}

std::int64_t hour_of(const stream::LeavingPatch& patch) {
  return hour_at(wall_of(patch).from);
}

bool is_same_grid(const base::GridMask& a, const base::GridMask& b) {
  return a.height() == b.height() && a.width() == b.width();
}

history::PatchInfo info_of(const stream::LeavingPatch& patch) {
  return {patch.number,       patch.at.t,     patch.at.h,           patch.at.w,
          patch.tokens->kept, wall_of(patch), patch.tokens->seconds};
}

}  // namespace

PageMaker::PageMaker(run::TokenMover& mover, kernels::HostMemory& memory, Options options)
    : mover_(mover), memory_(memory), options_(options), random_(options.seed) {}

void PageMaker::remember(const std::string& camera, Remembering how) {
  Camera& entry = cameras_[camera];
  if (entry.how.id != how.id) complete(entry);
  entry.how = std::move(how);
}

void PageMaker::complete(const std::string& camera) noexcept {
  if (const auto entry = cameras_.find(camera); entry != cameras_.end()) try_complete(entry->second);
}

void PageMaker::forget(const std::string& camera) {
  const auto entry = cameras_.find(camera);
  if (entry == cameras_.end()) return;
  complete(entry->second);
  cameras_.erase(entry);
}

void PageMaker::forget_all() {
  while (!cameras_.empty()) forget(cameras_.begin()->first);
}

void PageMaker::take(stream::LeavingTokens tokens) noexcept {
  const auto entry = cameras_.find(tokens.camera);
  if (entry == cameras_.end()) return;
  Camera& camera = entry->second;
  try {
    take(camera, tokens);
    if (tokens.why == stream::Leaving::closed) complete(camera);
  } catch (...) {
    camera.pending = {};
    news_.failure = std::current_exception();
  }
}

void PageMaker::let_go() noexcept {
  for (auto& [name, camera] : cameras_) try_complete(camera);
}

void PageMaker::try_complete(Camera& camera) noexcept {
  try {
    complete(camera);
  } catch (...) {
    camera.pending = {};
    news_.failure = std::current_exception();
  }
}

bool PageMaker::goes_on(const Camera& camera, const stream::LeavingPatch& patch, bool has_keys) {
  const Pending& pending = camera.pending;
  if (pending.patches.empty()) return true;
  const stream::LeavingPatch& last = pending.patches.back();
  return pending.has_keys == has_keys && patch.number == last.number + 1 &&
         is_same_grid(patch.tokens->kept, last.tokens->kept) &&
         hour_of(patch) == hour_of(pending.patches.front());
}

void PageMaker::take(Camera& camera, const stream::LeavingTokens& tokens) {
  if (camera.stream == 0 || camera.run != tokens.run) {
    complete(camera);
    camera.run = tokens.run;
    camera.stream = std::max<std::uint64_t>(1, random_());
    camera.taken = 0;
  }
  const bool has_keys = tokens.view.size() > 0 || std::all_of(tokens.patches.begin(), tokens.patches.end(),
                                                              [](const stream::LeavingPatch& patch) {
                                                                return patch.tokens->count() == 0;
                                                              });
  std::int64_t first = 0;
  for (const stream::LeavingPatch& patch : tokens.patches) {
    const std::int64_t count = patch.tokens->count();
    const std::int64_t at = std::exchange(first, first + count);
    if (patch.number < camera.taken) continue;
    camera.taken = patch.number + 1;
    if (!patch.captured) {
      complete(camera);
      lose(camera, Forgotten::untimed, 1, {});
      continue;
    }
    if (!goes_on(camera, patch, has_keys)) complete(camera);
    Pending& pending = camera.pending;
    pending.has_keys = has_keys;
    pending.patches.push_back(patch);
    pending.tokens += count;
    if (has_keys && count > 0) pending.views.push_back(tokens.view.part(at, count));
    if (pending.tokens >= options_.tokens || pending.patches.size() >= options_.patches) complete(camera);
  }
}

std::optional<history::PageInfo> PageMaker::sketch_of(const Pending& pending, const history::PageInfo& page) {
  if (!pending.has_keys) return std::nullopt;
  history::PageInfo sketch = page;
  sketch.tokens = 0;
  for (std::size_t i = 0; i < pending.patches.size(); ++i) {
    const model::VisualTokens& tokens = *pending.patches[i].tokens;
    base::GridMask& kept = sketch.patches[i].kept;
    // Of a patch without tokens none stands out, whoever said so.
    if (tokens.count() == 0) continue;
    if (!tokens.standing_out) return std::nullopt;
    kept = kept.within(*tokens.standing_out);
    sketch.tokens += static_cast<std::uint32_t>(kept.count());
  }
  return sketch;
}

std::vector<std::int32_t> PageMaker::slots_of(const Pending& pending, const history::PageInfo& page) {
  std::vector<std::int32_t> slots;
  auto view = pending.views.begin();
  for (std::size_t i = 0; i < pending.patches.size(); ++i) {
    const base::GridMask& all = pending.patches[i].tokens->kept;
    if (all.count() == 0) continue;
    const std::span<const std::int32_t> of_patch = (view++)->slots();
    std::size_t token = 0;
    for (const std::int32_t cell : all.list()) {
      if (page.patches[i].kept.has(cell)) slots.push_back(of_patch[token]);
      ++token;
    }
  }
  return slots;
}

void PageMaker::pack(const Camera& camera, FreshPage& page) {
  const Pending& pending = camera.pending;
  std::vector<model::VisualTokensPtr> patches;
  patches.reserve(pending.patches.size());
  for (const stream::LeavingPatch& patch : pending.patches) patches.push_back(patch.tokens);
  std::vector<std::int32_t> slots;
  if (pending.has_keys) slots = slots_of(pending, page.info);
  for (const kv::Form form : camera.how.forms) {
    std::optional<run::MovedTokens> moved;
    std::optional<history::PageInfo> sketch;
    if (form == kv::Form::embeddings) {
      moved = mover_.pack_embeddings(patches, memory_);
    } else if (form == kv::Form::sketch) {
      sketch = sketch_of(pending, page.info);
      if (sketch) moved = mover_.pack(slots_of(pending, *sketch), form, memory_);
    } else if (pending.has_keys) {
      moved = mover_.pack(slots, form, memory_);
    }
    if (!moved) continue;
    page.forms.push_back(std::move(*moved));
    if (sketch) page.sketch = std::move(sketch);
  }
}

void PageMaker::complete(Camera& camera) {
  if (camera.pending.patches.empty()) return;
  FreshPage page;
  page.camera = camera.how.id;
  page.info.stream = camera.stream;
  page.info.tokens = static_cast<std::uint32_t>(camera.pending.tokens);
  std::int64_t cells = 0;
  for (const stream::LeavingPatch& patch : camera.pending.patches) {
    page.info.patches.push_back(info_of(patch));
    cells += patch.tokens->kept.cells();
  }
  page.change = cells == 0 ? 0 : static_cast<double>(camera.pending.tokens) / static_cast<double>(cells);
  pack(camera, page);
  if (page.forms.empty()) {
    const bool has_any = camera.pending.has_keys ||
                         std::find(camera.how.forms.begin(), camera.how.forms.end(), kv::Form::embeddings) !=
                             camera.how.forms.end();
    lose(camera, has_any ? Forgotten::no_room : Forgotten::keyless, page.info.patches.size(),
         history::wall_of(page.info));
  } else {
    news_.pages.push_back(std::move(page));
  }
  camera.pending = {};
}

void PageMaker::lose(const Camera& camera, Forgotten why, std::size_t patches,
                     const history::WallRange& wall) {
  news_.lost.push_back({camera.how.id, why, patches, wall});
}

}  // namespace vigil::memory
