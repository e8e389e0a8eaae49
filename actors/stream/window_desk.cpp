#include "actors/stream/window_desk.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "actors/messages/pruned_less.h"
#include "config/schema/fields.h"
#include "engine/prune/pruning_policy.h"

namespace vigil::actors {
namespace {

base::Clock::WallTime::duration wall_duration(double seconds) {
  return std::chrono::duration_cast<base::Clock::WallTime::duration>(std::chrono::duration<double>(seconds));
}

bool explains(const WatchSettings& watch) {
  return std::any_of(watch.rules.begin(), watch.rules.end(), [](const auto& rule) { return rule.explain; });
}

stream::RefreshPolicyPtr refresh_of(const config::PruningSettings& pruning) {
  return stream::make_refresh(config::name_of(pruning.refresh), {.share = pruning.refresh_share});
}

bool is_same_refresh(const config::PruningSettings& a, const config::PruningSettings& b) {
  return a.refresh == b.refresh && a.refresh_share == b.refresh_share;
}

/// As the configuration has it.
std::string named(const config::PruningSettings& pruning) {
  return "{policy: " + std::string(config::name_of(pruning.policy)) +
         ", refresh: " + std::string(config::name_of(pruning.refresh)) + "}";
}

bool keeps_keys(const config::PruningSettings& pruning) {
  return pruning.refresh != config::Refresh::all;
}

}  // namespace

WindowDesk::WindowDesk(stream::StreamDesk& desk, stream::QuestionCompiler& questions, Options options)
    : desk_(desk),
      questions_(questions),
      options_(options),
      fit_(desk, options_.frames_per_patch),
      audits_(desk) {
  desk_.allow(0);
}

std::uint32_t WindowDesk::join(const WatchPtr& watch) {
  book_.put(watch);
  if (desk_.is_open(watch->name)) desk_.close(watch->name);
  desk_.open(watch->name, refresh_of(watch->pruning));
  audits_.forget(watch->name);
  // Another device may have known it, or one before this one.
  news_.less[watch->name] = 0;
  follow(lanes_.insert_or_assign(watch->name, Lane()).first->second, watch);
  return credits_of(*watch);
}

std::uint32_t WindowDesk::resume(const WatchPtr& watch) {
  const auto lane = lanes_.find(watch->name);
  if (lane == lanes_.end() || lane->second.ended) return join(watch);
  book_.put(watch);
  return credits_of(*watch);
}

std::uint32_t WindowDesk::credits_of(const WatchSettings& watch) const {
  return static_cast<std::uint32_t>(patches_in(watch, watch.window.length, options_.frames_per_patch) +
                                    patches_in(watch, watch.window.stride, options_.frames_per_patch));
}

void WindowDesk::follow(Lane& lane, const WatchPtr& watch) {
  if (lane.watch == watch) return;
  const bool other_memory = !lane.watch || lane.watch->window.memory != watch->window.memory;
  // What audits said was of other settings.
  if (lane.watch && (other_memory || lane.watch->pruning != watch->pruning)) forget_audits(lane);
  const config::PruningSettings pruning = pruned_less(watch->pruning, lane.audits.steps());
  if (lane.watch) {
    prune_by(lane, pruning);
  } else {
    lane.pruning = pruning;
  }
  if (!lane.watch || lane.watch->pruning.kv_budget != watch->pruning.kv_budget)
    desk_.set_budget(watch->name, watch->pruning.kv_budget.bytes);
  if (other_memory) {
    desk_.set_memory(watch->name, watch->window.memory);
    // What is being compared would be two things.
    audits_.forget(watch->name);
  }
  lane.watch = watch;
  lane.questions.clear();
  lane.fault.clear();
  try {
    for (const config::RuleSettings& rule : watch->rules)
      lane.questions.push_back(questions_.compile({.text = rule.prompt,
                                                   .max_tokens = rule.explain ? rule.max_tokens : 1,
                                                   .sampling = {},
                                                   .on_text = {}}));
  } catch (const std::invalid_argument& error) {
    lane.fault = error.what();
  }
}

void WindowDesk::forget_audits(Lane& lane) {
  if (lane.audits.steps() > 0) news_.less[lane.watch->name] = 0;
  lane.audits = {};
}

void WindowDesk::prune_by(Lane& lane, const config::PruningSettings& pruning) {
  const std::string& camera = lane.watch->name;
  if (!is_same_refresh(lane.pruning, pruning)) {
    desk_.follow(camera, refresh_of(pruning));
    if (!keeps_keys(pruning)) room_.forget(camera);
  }
  lane.pruning = pruning;
}

void WindowDesk::hear_audits() {
  AuditDesk::News news = audits_.take_news();
  news_.audits += news.both.size();
  news_.audits_given_up += news.given_up;
  for (const AuditDesk::Both& both : news.both) {
    const auto entry = lanes_.find(both.watch->name);
    if (entry == lanes_.end()) continue;
    Lane& lane = entry->second;
    const int before = lane.audits.steps();
    for (std::size_t i = 0; i < both.whole.size(); ++i) {
      const config::RuleSettings& rule = both.watch->rules[i];
      const bool agrees = (both.pruned[i] >= rule.threshold) == (both.whole[i] >= rule.threshold);
      news_.audited.push_back(
          {both.watch->name, rule.name, agrees, std::abs(both.pruned[i] - both.whole[i])});
      // What is no longer followed says nothing of what is.
      if (both.watch->pruning == lane.watch->pruning && lane.audits.steps() == before)
        lane.audits.hear(agrees, lane.watch->pruning);
    }
    if (lane.audits.steps() == before) continue;
    audits_.forget(both.watch->name);
    const config::PruningSettings pruning = pruned_less(lane.watch->pruning, lane.audits.steps());
    const bool is_less = lane.audits.steps() > before;
    news_.remarks.push_back({lane.watch,
                             std::string("audits: answers ") +
                                 (is_less ? "differ too often from those of a whole computation"
                                          : "agree with those of a whole computation again") +
                                 ": pruned by " + named(pruning) + " from now on, not by " +
                                 named(lane.pruning),
                             is_less});
    news_.less[lane.watch->name] = lane.audits.steps();
    prune_by(lane, pruning);
  }
}

void WindowDesk::hear_forgotten(const stream::DeskNews& news) {
  memory::RecallDesk* const recalls = options_.recalls;
  const auto remark = [&](const std::string& camera, const auto& line_of) {
    // Of one that has ended, texts may go on.
    const auto lane = lanes_.find(camera);
    if (lane == lanes_.end()) return;
    if (auto line = line_of()) news_.remarks.push_back({lane->second.watch, std::move(*line), true});
  };
  for (const stream::DeskNews::Forgotten& each : news.forgotten) {
    if (recalls != nullptr && recalls->forgotten(each)) continue;
    remark(each.camera, [&] { return forgotten_.hear(each.camera, each.reason, now_); });
  }
  for (const stream::DeskNews::Shortened& each : news.shortened) {
    if (recalls != nullptr && recalls->shortened(each)) continue;
    remark(each.camera, [&] { return forgotten_.shortened(each, now_); });
  }
}

WindowDesk::Taken WindowDesk::push(const VisualPatch& patch) {
  const std::string& camera = patch.watch.camera;
  const auto entry = lanes_.find(camera);
  if (entry == lanes_.end()) return {true, std::nullopt};
  Lane& lane = entry->second;
  const WatchPtr watch = book_.refer(patch.watch);
  stream::SlidingWindow::Pushed pushed{true, {}};
  if (watch) pushed = lane.sliding.push(*patch.tokens, window_shape(*watch));
  if (pushed.is_late) {
    if (watch && is_of_another_time(lane, *watch, patch)) {
      join(watch);
      return push(patch);
    }
    ++news_.credits[camera];
    return {true, std::nullopt};
  }
  follow(lane, watch);
  desk_.append(camera, patch.tokens, patch.captured.wall);
  audits_.push(patch);
  const Shown newest{patch.frames, patch.tokens->seconds + patch.tokens->duration, patch.captured,
                     patch.encoded};
  lane.shown.push_back(newest);

  const bool holds = watch->lossless && !pushed.due.empty();
  if (!holds) ++news_.credits[camera];
  for (const auto& due : pushed.due)
    ask(lane, within_budget(lane, due), !watch->lossless, holds && &due == &pushed.due.back() ? 1 : 0);

  const double share = keep_budget(lane, patch);
  const std::int64_t wanted = lane.sliding.wanted_from();
  for (; lane.first < wanted; ++lane.first) lane.shown.pop_front();
  desk_.slide(camera, wanted);
  desk_.expect(camera, wanted, due_of(*watch, newest, lane.sliding.next_end()));
  // What is wrong with its rules, the failure of its windows tells.
  return {false,
          lane.fault.empty() ? fit_.check(patch, watch, lane.questions) : std::nullopt,
          {.share = share, .less = lane.audits.steps()}};
}

/// Whether a new owner's patch is from more than a window before what was there: the clock of the owner
/// before it was ahead. Its stream would be refused until time has come as far as that.
bool WindowDesk::is_of_another_time(const Lane& lane, const WatchSettings& watch, const VisualPatch& patch) {
  if (!lane.watch || fence_of(watch.version) <= fence_of(lane.watch->version)) return false;
  const stream::SlidingWindow::Shape shape = window_shape(watch);
  const double end = patch.tokens->seconds + patch.tokens->duration;
  return lane.sliding.next_end() - end > shape.length + shape.stride;
}

stream::SlidingWindow::Due WindowDesk::within_budget(Lane& lane, const stream::SlidingWindow::Due& due) {
  const std::string& camera = lane.watch->name;
  const stream::CameraStream& stream = desk_.stream(camera);
  stream::SlidingWindow::Due shorter = due;
  shorter.patches = desk_.within_budget(camera, due.patches);
  if (shorter.patches.first == due.patches.first) return due;
  shorter.start = stream.patch(shorter.patches.first).seconds;
  // What windows forgot before is not there any more.
  const std::int64_t there = std::max(due.patches.first, stream.patches().first);
  lane.forgotten += stream.visual_tokens({there, shorter.patches.first});
  desk_.shorten(camera, shorter.patches.first);
  return shorter;
}

double WindowDesk::keep_budget(Lane& lane, const VisualPatch& patch) {
  const WatchSettings& watch = *lane.watch;
  const stream::CameraStream& stream = desk_.stream(watch.name);
  WindowBudget::Load load;
  load.budget = stream.most_tokens();
  if (!load.budget && !lane.usage) return 1;
  load.patches = patches_in(watch, watch.window.length, options_.frames_per_patch);
  const stream::PatchRange there = stream.patches();
  load.tokens = stream.visual_tokens({std::max(there.first, there.last - load.patches), there.last});
  load.picture = patch.tokens->kept.cells();
  load.forgotten = std::exchange(lane.forgotten, 0);
  load.can_prune = prune::can_be_bound(config::name_of(lane.pruning.policy));
  const WindowBudget::Verdict verdict = lane.budget.hear(load);
  constexpr auto kShortened = WindowBudget::Level::shortened;
  if (verdict.entered)
    news_.remarks.push_back({lane.watch, budget_line(*verdict.entered, load, watch.pruning.kv_budget.bytes),
                             verdict.entered == kShortened || verdict.left == kShortened});
  lane.usage.reset();
  if (load.budget)
    lane.usage =
        static_cast<double>(load.tokens) / static_cast<double>(std::max<std::int64_t>(1, *load.budget));
  news_.budgets.push_back({watch.name, lane.usage, load.forgotten});
  return verdict.share;
}

// Half a stride after the next one ends. The patches that make that one, which are due from their capture on,
// come first, or under overload windows would wait in a row instead of being overtaken.
base::Clock::TimePoint WindowDesk::due_of(const WatchSettings& watch, const Shown& last, double end) {
  const std::chrono::duration<double> ahead(std::max(0.0, end - last.end));
  return last.captured.steady + std::chrono::duration_cast<base::Clock::TimePoint::duration>(ahead) +
         watch.window.stride * 3 / 2;
}

void WindowDesk::ask(Lane& lane, const stream::SlidingWindow::Due& due, bool overtakes,
                     std::uint32_t held_credits) {
  const WatchPtr& watch = lane.watch;
  Pending pending;
  pending.held_credits = held_credits;
  pending.asked = lane.shown.back().encoded.end;
  WindowAnswers& window = pending.window;
  const Shown& last = lane.at(due.patches.last - 1);
  window.watch = watch;
  window.start = due.start;
  window.end = due.end;
  // The wall time of the last patch is known; the rest of the window lies before it as its time tells.
  window.end_wall = last.captured.wall;
  window.start_wall = last.captured.wall - wall_duration(last.end - due.start);
  for (std::int64_t number = due.patches.first; number < due.patches.last; ++number)
    window.frames += lane.at(number).frames;
  window.captured = last.captured;
  window.encoded = last.encoded;
  try {
    if (!lane.fault.empty()) throw std::invalid_argument(lane.fault);
    stream::Asking asking;
    asking.patches = due.patches;
    for (const auto& question : lane.questions) asking.questions.push_back({question, {}});
    asking.due = due_of(*watch, last, last.end);
    asking.keep = kExplanationPatience;
    asking.overtakes = overtakes;
    const base::Clock::TimePoint by = asking.due + watch->window.length;
    const stream::WindowId id = desk_.ask(watch->name, std::move(asking));
    pending_.emplace(id, std::move(pending));
    ++lane.unanswered;
    audits_.asked(watch, {id, due, desk_.stream(watch->name).patch(due.patches.first).seconds, by},
                  lane.questions);
    if (!keeps_keys(lane.pruning)) return;
    const std::int64_t tokens = desk_.stream(watch->name).visual_tokens(due.patches);
    if (auto line = room_.hear(watch->name, tokens, desk_.most_kept()))
      news_.remarks.push_back({watch, std::move(*line), true});
  } catch (const std::invalid_argument& error) {
    news_.failures.push_back({watch, error.what(), false});
    if (held_credits > 0) news_.credits[watch->name] += held_credits;
  }
}

void WindowDesk::end(const std::string& camera) {
  const auto entry = lanes_.find(camera);
  if (entry == lanes_.end()) return;
  Lane& lane = entry->second;
  lane.ended = true;
  // The last window does not overtake the one before it: no later one makes up for that.
  if (const auto last = lane.sliding.flush()) ask(lane, within_budget(lane, *last), false, 0);
  if (const std::int64_t forgotten = std::exchange(lane.forgotten, 0); forgotten > 0)
    news_.budgets.push_back({camera, lane.usage, forgotten});
}

void WindowDesk::grant(std::uint32_t windows) {
  credits_ += windows;
  desk_.allow(credits_);
}

WindowDesk::Pending WindowDesk::settle(const stream::WindowId& id) {
  auto node = pending_.extract(id);
  const auto lane = lanes_.find(id.camera);
  if (lane != lanes_.end() && lane->second.unanswered > 0) --lane->second.unanswered;
  Pending pending = std::move(node.mapped());
  if (pending.held_credits > 0) news_.credits[id.camera] += pending.held_credits;
  return pending;
}

WindowDesk::News WindowDesk::take_news() {
  stream::DeskNews desk = desk_.take_news();
  bool is_beside = false;
  memory::RecallDesk* const recalls = options_.recalls;
  // Before their answers: what a question has lost of its past, it is not answered without.
  hear_forgotten(desk);
  for (stream::DeskNews::Answered& each : desk.answered) {
    if ((recalls != nullptr && recalls->answered(each)) || audits_.answered(each)) {
      is_beside = true;
      continue;
    }
    Pending pending = settle(each.window);
    pending.window.answers = std::move(each.answers);
    if (explains(*pending.window.watch)) {
      pending.window.id = each.window;
    } else {
      desk_.done(each.window);
    }
    --credits_;
    news_.answered.push_back({std::make_shared<const WindowAnswers>(std::move(pending.window)), each.tokens,
                              each.begun, pending.asked});
  }
  // Whoever takes answers takes none of these, so they cost no credit.
  if (is_beside) desk_.allow(credits_);
  for (const stream::DeskNews::Failed& each : desk.failed) {
    if (recalls != nullptr && recalls->failed(each)) continue;
    if (audits_.failed(each.window)) continue;
    news_.failures.push_back({settle(each.window).window.watch, each.reason, each.out_of_memory});
  }
  for (const stream::WindowId& id : desk.overtaken) {
    audits_.failed(id);
    settle(id);
  }
  hear_audits();
  news_.overtaken += desk.overtaken.size();
  for (stream::DeskNews::Told& each : desk.told)
    if (recalls == nullptr || !recalls->told(each)) news_.told.push_back(std::move(each));
  news_.pressed = std::move(desk.pressed);
  std::erase_if(lanes_, [&](const auto& each) {
    const auto& [camera, lane] = each;
    if (!lane.ended || lane.unanswered > 0) return false;
    audits_.forget(camera);
    desk_.close(camera);
    fit_.forget(camera);
    room_.forget(camera);
    forgotten_.forget(camera);
    book_.forget(camera);
    news_.ended.push_back(camera);
    return true;
  });
  return std::exchange(news_, {});
}

}  // namespace vigil::actors
