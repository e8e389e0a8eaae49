// The part of the desk that looks at keys, where a policy chooses by them which rows are computed.
#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "engine/run/vision_encoder.h"
#include "engine/stream/desk_draft.h"
#include "engine/stream/stream_desk.h"

namespace vigil::stream {
namespace {

std::int64_t rows_of(std::span<const RowRun> runs) {
  std::int64_t rows = 0;
  for (const RowRun& run : runs) rows += run.count;
  return rows;
}

}  // namespace

StreamDesk::Draft StreamDesk::draft_probe(std::span<const Key> windows) {
  Draft draft;
  std::vector<std::pair<Key, std::int64_t>> shares;
  std::int64_t all = 0;
  for (const Key key : windows) {
    const Window& window = this->window(key);
    if (!window.placed || window.placed->probe.empty()) continue;
    const std::int64_t rows = std::min(rows_of(window.placed->probe) - window.looked_at, limits_.rows - all);
    if (rows == 0) break;
    shares.emplace_back(key, rows);
    all += rows;
  }
  draft.own.reserve(static_cast<std::size_t>(all));
  for (const auto& [key, rows] : shares) {
    Window& window = this->window(key);
    if (!window.begun) window.begun = now_;
    draft.windows.push_back({key, rows, 0});
    draft.pass.is_far = draft.pass.is_far || window.is_far;
    const std::int64_t first = draft.rows();
    add_rows(draft, *window.placed, window.placed->probe, window.looked_at, rows);
    // Of the prompt there are no keys to look at.
    const std::int64_t of_prompt =
        std::clamp<std::int64_t>(window.placed->probe.front().count - window.looked_at, 0, rows);
    for (std::int64_t row = first + of_prompt; row < first + rows; ++row)
      draft.pass.outputs.push_back(static_cast<std::int32_t>(row));
  }
  return draft;
}

bool StreamDesk::look(std::span<const Key> windows) {
  while (true) {
    const Draft next = draft_probe(windows);
    if (next.windows.empty()) return true;
    std::span<const float> distances;
    try {
      distances = passes_.key_distances(next.pass);
    } catch (const run::DeviceLost&) {
      throw;
    } catch (const std::bad_alloc& error) {
      failed(next, error, true);
      return false;
    } catch (const std::exception& error) {
      failed(next, error, false);
      return false;
    }
    auto distance = distances.begin();
    for (std::size_t i = 0; i < next.windows.size(); ++i) {
      const Draft::Part& part = next.windows[i];
      Window& window = this->window(part.window);
      const std::int64_t of_prompt =
          std::clamp<std::int64_t>(window.placed->probe.front().count - window.looked_at, 0, part.rows);
      const auto end = distance + (part.rows - of_prompt);
      window.distances.insert(window.distances.end(), distance, end);
      distance = end;
      window.looked_at += part.rows;
    }
    bool is_well = true;
    for (const Draft::Part& part : next.windows)
      if (const Window& window = this->window(part.window); window.looked_at == rows_of(window.placed->probe))
        is_well = choose_rows(part.window) && is_well;
    if (!is_well) return false;
  }
}

bool StreamDesk::choose_rows(Key key) {
  Window& window = this->window(key);
  try {
    find(window.id.camera).stream.choose(*window.placed, std::exchange(window.distances, {}), window.claim);
    if (!window.placed->copies.empty()) passes_.copy_pages(window.placed->copies);
  } catch (const run::DeviceLost&) {
    throw;
  } catch (const std::exception& error) {
    settle();
    fail(key, error.what(), dynamic_cast<const std::bad_alloc*>(&error) != nullptr);
    return false;
  }
  return true;
}

}  // namespace vigil::stream
