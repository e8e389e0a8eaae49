#include "bench/window_log.h"

#include <algorithm>
#include <chrono>
#include <map>

#include "bench/statistics.h"

namespace vigil::bench {
namespace {

double seconds(base::Clock::TimePoint::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

void WindowLog::add(const actors::WindowAnswers& window, const actors::WorkSpan& asked) {
  AnsweredWindow entry;
  entry.camera = window.watch->name;
  entry.answered = asked.end;
  entry.latency = seconds(asked.end - window.captured.steady);
  entry.vision = seconds(window.encoded.end - window.encoded.begin);
  entry.prefill = seconds(asked.end - asked.begin);
  entry.waiting = entry.latency - entry.vision - entry.prefill;
  const std::lock_guard lock(mutex_);
  windows_.push_back(std::move(entry));
}

std::vector<AnsweredWindow> WindowLog::between(base::Clock::TimePoint from, base::Clock::TimePoint to) const {
  const std::lock_guard lock(mutex_);
  std::vector<AnsweredWindow> found;
  std::copy_if(windows_.begin(), windows_.end(), std::back_inserter(found),
               [&](const AnsweredWindow& window) { return window.answered >= from && window.answered < to; });
  return found;
}

void WindowLog::forget_before(base::Clock::TimePoint time) {
  const std::lock_guard lock(mutex_);
  std::erase_if(windows_, [&](const AnsweredWindow& window) { return window.answered < time; });
}

std::optional<double> least_share(const std::vector<AnsweredWindow>& windows,
                                  const std::vector<std::string>& cameras, base::Clock::TimePoint from,
                                  base::Clock::TimePoint to, base::Duration span) {
  std::optional<double> least;
  for (auto begin = from; begin + span <= to; begin += std::chrono::seconds(1)) {
    std::map<std::string, double> answered;
    for (const std::string& camera : cameras) answered[camera] = 0;
    for (const AnsweredWindow& window : windows) {
      const auto entry = answered.find(window.camera);
      if (entry != answered.end() && window.answered >= begin && window.answered < begin + span)
        ++entry->second;
    }
    std::vector<double> counts;
    counts.reserve(answered.size());
    for (const auto& [camera, count] : answered) counts.push_back(count);
    const double median = percentile(counts, 0.5);
    if (median == 0) continue;
    const double share = *std::min_element(counts.begin(), counts.end()) / median;
    least = std::min(least.value_or(share), share);
  }
  return least;
}

}  // namespace vigil::bench
