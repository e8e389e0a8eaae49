#include "actors/stream/memory_desk.h"

#include <algorithm>
#include <stdexcept>

#include "engine/kv/history/page_info.h"
#include "engine/memory/hours.h"
#include "engine/run/vision_encoder.h"

namespace vigil::actors {
namespace {

/// Stretches of a camera's time that its windows and pages to come may meet.
constexpr std::size_t kMostAlerted = 8;

}  // namespace

MemoryDesk::MemoryDesk(const Parts& parts, std::uint64_t most, std::uint64_t seed)
    : parts_(parts),
      memory_(parts.mover.make_memory(most)),
      maker_(std::make_shared<memory::PageMaker>(parts.mover, *memory_,
                                                 memory::PageMaker::Options{.seed = seed})),
      recalls_(parts.desk, parts.mover, parts.transfer, parts.folder.config) {}

MemoryDesk::~MemoryDesk() {
  parts_.desk.leave_to(nullptr);
  try {
    maker_->forget_all();
  } catch (...) {  // of a device that is lost nothing can be packed
  }
}

bool MemoryDesk::watch(const WatchPtr& watch) {
  WatchPtr& known = watched_[watch->name];
  const bool is_news = !known || known->keep != watch->keep || known->tenant != watch->tenant ||
                       known->window.stride != watch->window.stride;
  known = watch;
  if (is_news) remember(*watch);
  return is_news;
}

void MemoryDesk::remember(const WatchSettings& watch) {
  if (watch.keep <= base::Duration::zero() || forms_.empty()) return maker_->forget(watch.name);
  maker_->remember(watch.name, {{watch.tenant, watch.name}, forms_});
}

void MemoryDesk::end(const std::string& camera) {
  watched_.erase(camera);
  maker_->forget(camera);
}

void MemoryDesk::want(const std::vector<kv::Form>& forms) {
  forms_ = forms;
  for (const auto& [name, watch] : watched_) remember(*watch);
}

std::optional<stream::WindowId> MemoryDesk::show(const std::string& camera) {
  if (!maker_->remembers(camera)) return std::nullopt;
  auto next = parts_.desk.show(camera);
  maker_->complete(camera);
  return next;
}

void MemoryDesk::show(const Show& show) {
  showing_.push_back({show, this->show(show.camera)});
}

void MemoryDesk::answered(const WindowAnswers& window) {
  if (!maker_->remembers(window.watch->name)) return;
  const auto says_yes = [&](const stream::Answer& answer) {
    const auto rule = static_cast<std::size_t>(&answer - window.answers.data());
    return answer.probability_yes >= window.watch->rules.at(rule).threshold;
  };
  if (std::ranges::none_of(window.answers, says_yes)) return;
  const history::WallRange wall{memory::nanoseconds(window.start_wall), memory::nanoseconds(window.end_wall)};
  std::deque<history::WallRange>& ranges = alerted_[window.watch->name];
  // Windows follow each other, and what one shows is mostly the next one's.
  if (!ranges.empty() && ranges.back().meets(wall)) {
    ranges.back().to = std::max(ranges.back().to, wall.to);
  } else {
    ranges.push_back(wall);
    if (ranges.size() > kMostAlerted) ranges.pop_front();
  }
}

/// To be asked in the order of a camera's pages.
bool MemoryDesk::is_alerted(const memory::FreshPage& page) {
  const auto of = alerted_.find(page.camera.camera);
  if (of == alerted_.end()) return false;
  const history::WallRange wall = history::wall_of(page.info);
  while (!of->second.empty() && of->second.front().to < wall.from) of->second.pop_front();
  return std::ranges::any_of(of->second, [&](const history::WallRange& each) { return each.meets(wall); });
}

void MemoryDesk::recall(const Recall& recall) {
  Recalled recalled;
  recalled.ticket = recall.ticket;
  try {
    memory::Recalling what = recall.what;
    what.questions = {parts_.questions.compile(
        {.text = recall.text, .max_tokens = recall.max_tokens, .sampling = {}, .on_text = {}})};
    const auto refusal = recalls_.ask(recall.ticket, what);
    if (!refusal) return;
    recalled.failure = refusal->reason;
    recalled.is_busy = refusal->is_busy;
  } catch (const std::invalid_argument& error) {
    recalled.failure = error.what();
  }
  recalled_.push_back(std::move(recalled));
}

MemoryDesk::News MemoryDesk::take_news() {
  std::vector<Shown> shown;
  std::erase_if(showing_, [&](const Showing& each) {
    if (each.window && parts_.desk.is_open(*each.window)) return false;
    if (each.window) show(each.what.camera);
    shown.push_back({each.what.ticket});
    return true;
  });
  News news{maker_->take_news(), std::exchange(recalled_, {}), std::move(shown)};
  for (memory::FreshPage& page : news.pages.pages) page.is_alerted = is_alerted(page);
  std::erase_if(alerted_, [&](const auto& of) { return !watched_.contains(of.first); });
  memory::RecallDesk::News asked = recalls_.take_news();
  for (auto& [ticket, answers] : asked.answered)
    news.recalled.push_back({ticket, std::move(answers.front()), {}, false});
  for (memory::RecallDesk::News::Failed& each : asked.failed)
    news.recalled.push_back({each.ticket, {}, std::move(each.reason), each.is_busy});
  if (news.pages.failure) {
    try {
      std::rethrow_exception(news.pages.failure);
    } catch (const run::DeviceLost&) {
      throw;
    } catch (...) {  // told by who takes the news
    }
  }
  return news;
}

}  // namespace vigil::actors
