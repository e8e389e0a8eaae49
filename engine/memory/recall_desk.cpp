#include "engine/memory/recall_desk.h"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "engine/model/language/positions.h"

namespace vigil::memory {
namespace {

constexpr std::string_view kMark = "#past";

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

void RecallDesk::unpack(const Recalling& recalling, std::span<const stream::RememberedPatch> patches,
                        std::span<const std::int32_t> slots) {
  std::size_t patch = 0, slot = 0;
  for (const RecalledPage& page : recalling.pages) {
    const std::int64_t first = tokens_before(page, page.first);
    const auto count = static_cast<std::size_t>(tokens_before(page, page.last) - first);
    std::vector<model::Position> by;
    for (std::size_t i = page.first; i < page.last; ++i, ++patch) {
      const std::int64_t moved = patches[patch].time - (page.info.patches[i].place - desk_.before());
      if (moved < std::numeric_limits<std::int32_t>::min() ||
          moved > std::numeric_limits<std::int32_t>::max())
        throw std::invalid_argument("what is remembered lies farther away than positions can tell");
      by.insert(by.end(), static_cast<std::size_t>(patches[patch].tokens->count()),
                model::at_time(static_cast<std::int32_t>(moved), model_.text.traits.time_axes));
    }
    const std::span<const std::int32_t> own = slots.subspan(slot, count);
    slot += count;
    if (page.form == kv::Form::embeddings || count == 0) continue;
    for (const RecalledPage::Value& value : page.values) {
      run::TokenMover::Unpacking unpacking;
      unpacking.form = page.form;
      unpacking.tokens = page.info.tokens;
      unpacking.bytes = value.bytes;
      unpacking.layer = value.layer;
      unpacking.layers = value.layers;
      unpacking.first = first;
      unpacking.slots = own;
      if (recalling.moves_together) unpacking.by = by;
      mover_.unpack(unpacking);
    }
  }
}

std::optional<RecallDesk::Refusal> RecallDesk::ask(std::uint64_t ticket, const Recalling& recalling) {
  const std::string name = std::to_string(ticket) + std::string(kMark);
  try {
    const std::vector<stream::RememberedPatch> patches = patches_of(recalling);
    const auto slots = desk_.restore(name, patches);
    if (!slots) return Refusal{"the KV cache has no room for it now", true};
    Recall recall;
    recall.name = name;
    recall.questions = recalling.questions;
    try {
      unpack(recalling, patches, *slots);
      stream::Asking asking;
      asking.patches = {0, static_cast<std::int64_t>(patches.size())};
      for (const stream::CompiledQuestionPtr& question : recalling.questions)
        asking.questions.push_back({question, {}});
      asking.due = recalling.due;
      asking.keep = recalling.patience;
      recall.window = desk_.ask(name, std::move(asking));
    } catch (...) {
      desk_.close(name);
      throw;
    }
    recalls_.emplace(ticket, std::move(recall));
  } catch (const std::invalid_argument& error) {
    return Refusal{error.what(), false};
  }
  return std::nullopt;
}

std::map<std::uint64_t, RecallDesk::Recall>::iterator RecallDesk::find(const stream::WindowId& window) {
  return std::find_if(recalls_.begin(), recalls_.end(),
                      [&](const auto& recall) { return recall.second.window == window; });
}

void RecallDesk::end(std::map<std::uint64_t, Recall>::iterator recall) {
  desk_.done(recall->second.window);
  const std::string name = recall->second.name;
  // First, since its windows are told as failed.
  recalls_.erase(recall);
  desk_.close(name);
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
    news_.failed.push_back({recall->first, std::move(reason), false});
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
  news_.failed.push_back({recall->first, news.reason, news.out_of_memory});
  end(recall);
  return true;
}

}  // namespace vigil::memory
