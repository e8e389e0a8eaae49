#include "engine/memory/recall_desk.h"

#include <algorithm>
#include <limits>
#include <new>
#include <stdexcept>

#include "engine/model/language/positions.h"
#include "engine/run/vision_encoder.h"

namespace vigil::memory {
namespace {

constexpr std::string_view kMark = "#past";
constexpr const char* kNoRoom = "the KV cache has no room for it now";
/// Of what is seen by clusters, the newest that is a window of its own: as ReSV's answers were measured
/// (docs/experiments/2026-11-29-resv-in-the-engine.md).
constexpr double kShownSeconds = 8;
constexpr std::int64_t kMostShown = 64;

bool is_past(const stream::WindowId& window) {
  return window.camera.find(kMark) != std::string::npos;
}

/// What is remembered of a patch, but for its embeddings.
model::VisualTokens tokens_of(const history::PatchInfo& patch, std::int64_t width) {
  model::VisualTokens tokens;
  tokens.dtype = kernels::DType::bf16;
  tokens.width = width;
  tokens.kept = patch.kept;
  tokens.seconds = patch.seconds;
  tokens.duration = static_cast<double>(patch.wall.to - patch.wall.from) * 1e-9;
  return tokens;
}

std::int64_t tokens_before(const RecalledPage& page, std::size_t patch) {
  std::int64_t tokens = 0;
  for (std::size_t i = 0; i < patch; ++i) tokens += page.info.patches[i].kept.count();
  return tokens;
}

/// More than all of them together: they may be of several streams, whose seconds have nothing to do with each
/// other.
base::Duration length_of(std::span<const stream::RememberedPatch> patches) {
  double first = 0, last = 0;
  for (const stream::RememberedPatch& patch : patches) {
    first = std::min(first, patch.tokens->seconds);
    last = std::max(last, patch.tokens->seconds + patch.tokens->duration);
  }
  return std::chrono::ceil<base::Duration>(std::chrono::duration<double>(last - first + 1));
}

std::int64_t tokens_of(const RecalledPage& page) {
  return tokens_before(page, page.last) - tokens_before(page, page.first);
}

void check(const RecalledPage& page) {
  if (page.first >= page.last || page.last > page.info.patches.size())
    throw std::invalid_argument("a page that is recalled without patches");
  if (tokens_before(page, page.info.patches.size()) != page.info.tokens)
    throw std::invalid_argument("a page that is recalled has other tokens than its patches");
}

}  // namespace

std::vector<stream::RememberedPatch> RecallDesk::patches_of(const Recalling& recalling) const {
  const std::int64_t width = model_.text.hidden_size;
  std::vector<stream::RememberedPatch> patches;
  std::int64_t next = 0;
  const history::PatchInfo* last = nullptr;
  std::uint64_t last_stream = 0;
  for (const RecalledPage& page : recalling.pages) {
    check(page);
    const bool has_keys = page.form != kv::Form::embeddings;
    std::span<const std::byte> embeddings;
    if (!has_keys) {
      if (page.values.size() != 1 ||
          page.values[0].bytes.size() != mover_.bytes_of(kv::Form::embeddings, page.info.tokens))
        throw std::invalid_argument("a page of embeddings has another number of bytes");
      embeddings = page.values[0].bytes;
    }
    for (std::size_t i = page.first; i < page.last; ++i) {
      const history::PatchInfo& patch = page.info.patches[i];
      std::int64_t time = patch.place - desk_.before();
      if (recalling.moves_together) {
        const bool follows =
            last != nullptr && last_stream == page.info.stream && last->number + 1 == patch.number;
        const double seconds = static_cast<double>(patch.wall.to - patch.wall.from) * 1e-9;
        const std::int64_t step = std::max<std::int64_t>(1, model::time_interval(model_.vision, seconds));
        time = last == nullptr ? 0 : next + (follows ? patch.place - last->place : step);
        next = time;
      }
      last = &patch;
      last_stream = page.info.stream;
      model::VisualTokens tokens = tokens_of(patch, width);
      model::VisualTokensPtr made;
      if (has_keys || tokens.count() == 0) {
        made = std::make_shared<model::VisualTokens>(std::move(tokens));
      } else {
        const auto bytes = static_cast<std::size_t>(tokens.count() * width) * sizeof(std::uint16_t);
        const auto at = static_cast<std::size_t>(tokens_before(page, i) * width) * sizeof(std::uint16_t);
        made = transfer_.to_device(run::host_tokens(std::move(tokens), embeddings.subspan(at, bytes)));
      }
      patches.push_back({std::move(made), time, has_keys});
    }
  }
  return patches;
}

void RecallDesk::unpack(const RecalledPage& page, std::span<const stream::RememberedPatch> patches,
                        std::span<const std::int32_t> slots, bool moves_together) {
  std::vector<model::Position> by;
  for (std::size_t i = page.first; i < page.last; ++i) {
    const stream::RememberedPatch& patch = patches[i - page.first];
    const std::int64_t moved = patch.time - (page.info.patches[i].place - desk_.before());
    if (moved < std::numeric_limits<std::int32_t>::min() || moved > std::numeric_limits<std::int32_t>::max())
      throw std::invalid_argument("what is remembered lies farther away than positions can tell");
    by.insert(by.end(), static_cast<std::size_t>(patch.tokens->count()),
              model::at_time(static_cast<std::int32_t>(moved), model_.text.traits.time_axes));
  }
  if (page.form == kv::Form::embeddings || slots.empty()) return;
  for (const RecalledPage::Value& value : page.values) {
    run::TokenMover::Unpacking unpacking;
    unpacking.form = page.form;
    unpacking.tokens = page.info.tokens;
    unpacking.bytes = value.bytes;
    unpacking.layer = value.layer;
    unpacking.layers = value.layers;
    unpacking.first = tokens_before(page, page.first);
    unpacking.slots = slots;
    if (moves_together) unpacking.by = by;
    mover_.unpack(unpacking);
  }
}

void RecallDesk::unpack(const Recalling& recalling, std::span<const stream::RememberedPatch> patches,
                        std::span<const std::int32_t> slots) {
  for (const RecalledPage& page : recalling.pages) {
    const auto tokens = static_cast<std::size_t>(tokens_of(page));
    unpack(page, patches.first(page.last - page.first), slots.first(tokens), recalling.moves_together);
    patches = patches.subspan(page.last - page.first);
    slots = slots.subspan(tokens);
  }
}

stream::WindowId RecallDesk::ask(const std::string& name, const Recalling& recalling,
                                 const stream::PatchRange& patches) {
  stream::Asking asking;
  asking.patches = patches;
  for (const stream::CompiledQuestionPtr& question : recalling.questions)
    asking.questions.push_back({question, {}});
  asking.due = recalling.due;
  asking.keep = recalling.patience;
  return desk_.ask(name, std::move(asking));
}

std::optional<RecallDesk::Refusal> RecallDesk::ask(std::uint64_t ticket, const Recalling& recalling) {
  Recall recall;
  recall.name = std::to_string(ticket) + std::string(kMark);
  recall.questions = recalling.questions;
  try {
    std::vector<stream::RememberedPatch> patches = patches_of(recalling);
    const auto count = static_cast<std::int64_t>(patches.size());
    if (recalling.by_clusters) {
      // Of all that it sees there is a copy in the host's memory.
      if (std::ranges::any_of(recalls_, [](const auto& other) { return other.second.by_clusters; }))
        return Refusal{"another question is seen by clusters now", true};
      recall.by_clusters = true;
      if (std::ranges::any_of(patches, [](const auto& patch) { return !patch.has_keys; }))
        throw std::invalid_argument("of what is to be seen by clusters there are no keys");
      std::int64_t shown = 0;
      const base::GridMask& grid = patches.back().tokens->kept;
      for (double seconds = 0; shown < std::min(count, kMostShown) && seconds < kShownSeconds; ++shown) {
        const model::VisualTokens& patch = *patches[static_cast<std::size_t>(count - 1 - shown)].tokens;
        // No window shows two sizes.
        if (patch.kept.height() != grid.height() || patch.kept.width() != grid.width()) break;
        seconds += patch.duration;
      }
      recall.filling = std::make_unique<Filling>(Filling{recalling, std::move(patches), 0, 0, count - shown});
      recalls_.emplace(ticket, std::move(recall));
      return std::nullopt;
    }
    const auto slots = desk_.restore(recall.name, patches);
    if (!slots) return Refusal{kNoRoom, true};
    try {
      unpack(recalling, patches, *slots);
      recall.window = ask(recall.name, recalling, {0, count});
    } catch (...) {
      desk_.close(recall.name);
      throw;
    }
    recalls_.emplace(ticket, std::move(recall));
  } catch (const std::invalid_argument& error) {
    return Refusal{error.what(), false};
  }
  return std::nullopt;
}

// What is seen by clusters.

std::optional<base::Clock::TimePoint> RecallDesk::due() const {
  std::optional<base::Clock::TimePoint> earliest;
  for (const auto& [ticket, recall] : recalls_)
    if (recall.filling && (!earliest || recall.filling->what.due < *earliest))
      earliest = recall.filling->what.due;
  return earliest;
}

void RecallDesk::work(const run::Turn& /*turn*/) {
  const auto earliest = due();
  const auto next = std::ranges::find_if(recalls_, [&](const auto& recall) {
    return recall.second.filling && recall.second.filling->what.due == *earliest;
  });
  try {
    if (fill(next->second)) return;
    news_.failed.push_back({next->first, kNoRoom, true});
  } catch (const run::DeviceLost&) {
    throw;
  } catch (const std::exception& error) {
    news_.failed.push_back(
        {next->first, error.what(), dynamic_cast<const std::bad_alloc*>(&error) != nullptr});
  }
  end(next);
}

bool RecallDesk::fill(Recall& recall) {
  Filling& filling = *recall.filling;
  const RecalledPage& page = filling.what.pages[filling.page];
  const auto patches = std::span(filling.patches).subspan(filling.patch, page.last - page.first);
  const bool is_first = filling.page == 0;
  const auto slots =
      is_first ? desk_.restore(recall.name, patches) : desk_.restore_more(recall.name, patches);
  if (!slots) return false;
  if (is_first) {
    const base::Duration all = length_of(filling.patches);
    if (filling.what.rekv_share > 0) {
      desk_.set_memory(recall.name, all, {.method = "rekv", .share = filling.what.rekv_share});
    } else {
      desk_.set_memory(recall.name, all);
    }
  }
  unpack(page, patches, *slots, filling.what.moves_together);
  filling.what.pages[filling.page].values.clear();
  ++filling.page;
  filling.patch += patches.size();
  desk_.slide(recall.name, std::min(static_cast<std::int64_t>(filling.patch), filling.shown_from));
  if (filling.page < filling.what.pages.size()) return true;
  recall.window =
      ask(recall.name, filling.what, {filling.shown_from, static_cast<std::int64_t>(filling.patch)});
  recall.filling.reset();
  return true;
}

bool RecallDesk::forgotten(const stream::DeskNews::Forgotten& news) {
  return has_no_memory(news.camera, news.reason, news.had_more_room);
}

bool RecallDesk::shortened(const stream::DeskNews::Shortened& news) {
  return has_no_memory(
      news.camera,
      "what is to be seen by clusters may take " + std::to_string(news.room) +
          " bytes of the host's memory beside what windows remember, and has no room in them",
      news.had_more_room);
}

bool RecallDesk::has_no_memory(const std::string& name, const std::string& reason, bool had_room) {
  if (name.find(kMark) == std::string::npos) return false;
  const auto recall =
      std::ranges::find_if(recalls_, [&](const auto& each) { return each.second.name == name; });
  if (recall == recalls_.end()) return true;
  // From its first page again it would fare no better, unless its room has become less meanwhile: what there
  // is now may be enough, and if not, is not less when that is seen.
  news_.failed.push_back({recall->first, reason, had_room});
  end(recall);
  return true;
}

std::map<std::uint64_t, RecallDesk::Recall>::iterator RecallDesk::find(const stream::WindowId& window) {
  return std::find_if(recalls_.begin(), recalls_.end(), [&](const auto& recall) {
    return !recall.second.filling && recall.second.window == window;
  });
}

void RecallDesk::end(std::map<std::uint64_t, Recall>::iterator recall) {
  desk_.done(recall->second.window);
  const std::string name = recall->second.name;
  // First, since its windows are told as failed.
  recalls_.erase(recall);
  // One of whose pages none has come yet has no stream.
  if (desk_.is_open(name)) desk_.close(name);
}

void RecallDesk::give_up(std::uint64_t ticket) {
  const auto recall = recalls_.find(ticket);
  if (recall != recalls_.end()) end(recall);
}

bool RecallDesk::answered(const stream::DeskNews::Answered& news) {
  if (!is_past(news.window)) return false;
  const auto recall = find(news.window);
  if (recall == recalls_.end()) return true;
  recall->second.answers = news.answers;
  // A text of one token has ended: the desk would tell it with its next news, which may be long in coming.
  for (std::size_t i = 0; i < news.answers.size(); ++i)
    if (recall->second.questions[i]->max_tokens > 1 && desk_.explain(news.window, i)) ++recall->second.texts;
  if (recall->second.texts > 0) return true;
  news_.answered.emplace_back(recall->first, std::move(recall->second.answers));
  end(recall);
  return true;
}

bool RecallDesk::told(const stream::DeskNews::Told& news) {
  if (!is_past(news.window)) return false;
  const auto recall = find(news.window);
  if (recall == recalls_.end()) return true;
  if (news.failure) {
    std::string reason = "it failed";
    try {
      std::rethrow_exception(news.failure);
    } catch (const std::exception& error) {
      reason = error.what();
    } catch (...) {
      reason = "an unknown error";
    }
    news_.failed.push_back({recall->first, std::move(reason), true});
    end(recall);
    return true;
  }
  recall->second.answers[news.question] = news.answer;
  if (--recall->second.texts > 0) return true;
  news_.answered.emplace_back(recall->first, std::move(recall->second.answers));
  end(recall);
  return true;
}

bool RecallDesk::failed(const stream::DeskNews::Failed& news) {
  if (!is_past(news.window)) return false;
  const auto recall = find(news.window);
  if (recall == recalls_.end()) return true;
  // Most often windows wanted its room.
  news_.failed.push_back({recall->first, news.reason, true});
  end(recall);
  return true;
}

}  // namespace vigil::memory
