#include "actors/prefill/ask.h"

#include <algorithm>
#include <exception>
#include <new>
#include <span>
#include <stdexcept>
#include <utility>

namespace vigil::actors {
namespace {

stream::WindowRequest request_for(const DueWindow& due) {
  stream::WindowRequest request;
  for (const VisualPatchPtr& patch : due.patches) request.patches.push_back(patch->tokens);
  for (const config::RuleSettings& rule : due.watch->rules) {
    stream::Question question;
    question.text = rule.prompt;
    question.max_tokens = rule.explain ? rule.max_tokens : 1;
    request.questions.push_back(std::move(question));
  }
  return request;
}

base::Clock::WallTime::duration wall_duration(double seconds) {
  return std::chrono::duration_cast<base::Clock::WallTime::duration>(std::chrono::duration<double>(seconds));
}

WindowAnswersPtr joined(const DueWindow& due, stream::AskedWindowPtr asked, std::function<void()> released) {
  auto result = std::make_shared<WindowAnswers>();
  const VisualPatch& last = *due.patches.back();
  result->watch = due.watch;
  result->start = due.start;
  result->end = due.end;
  // The wall time of the last patch is known; the rest of the window lies before it as its time tells.
  const double last_end = last.tokens->seconds + last.tokens->duration;
  result->end_wall = last.captured.wall;
  result->start_wall = last.captured.wall - wall_duration(last_end - due.start);
  for (const VisualPatchPtr& patch : due.patches) result->frames += patch->frames;
  result->answers.assign(asked->answers().begin(), asked->answers().end());
  result->captured = last.captured;
  result->encoded = last.encoded;
  auto lease = std::make_shared<KvLease>(std::move(asked), std::move(released));
  const auto& rules = due.watch->rules;
  if (std::any_of(rules.begin(), rules.end(), [](const auto& rule) { return rule.explain; }))
    result->lease = std::move(lease);
  return result;
}

std::vector<stream::AskedWindowPtr> ask_all(stream::WindowPrefiller& prefiller,
                                            std::span<const stream::WindowRequest> requests) {
  auto asked = prefiller.ask(requests);
  bool complete = asked.size() == requests.size();
  for (std::size_t i = 0; complete && i < asked.size(); ++i)
    complete = asked[i]->answers().size() == requests[i].questions.size();
  if (!complete) throw std::logic_error("the prefiller returned another number of answers");
  return asked;
}

}  // namespace

std::int64_t room_for(const stream::WindowPrefiller& prefiller, const DueWindow& window) {
  try {
    return prefiller.room_for(request_for(window));
  } catch (const std::exception&) {
    return 0;
  }
}

AskedWindows ask(stream::WindowPrefiller& prefiller, const std::vector<DueWindow>& windows,
                 const Release& release) {
  std::vector<stream::WindowRequest> requests;
  requests.reserve(windows.size());
  for (const DueWindow& window : windows) requests.push_back(request_for(window));
  const auto released = [&](const DueWindow& window) {
    return [release, tokens = room_for(prefiller, window)] { release(tokens); };
  };
  AskedWindows result;
  const auto failed = [&](const DueWindow& window, const std::exception& error, bool out_of_memory = false) {
    result.failures.push_back({window.watch, error.what(), out_of_memory});
    released(window)();
  };
  try {
    auto asked = ask_all(prefiller, requests);
    for (std::size_t i = 0; i < windows.size(); ++i)
      result.windows.push_back(joined(windows[i], std::move(asked[i]), released(windows[i])));
    return result;
  } catch (const run::DeviceLost&) {
    throw;
  } catch (const std::bad_alloc& error) {
    result.too_many = error.what();
    if (windows.size() == 1) failed(windows.front(), error, true);
  } catch (const std::exception& error) {
    if (windows.size() == 1) failed(windows.front(), error);
  }
  if (windows.size() == 1) return result;
  for (std::size_t i = 0; i < windows.size(); ++i) {
    try {
      auto asked = ask_all(prefiller, std::span(requests).subspan(i, 1));
      result.windows.push_back(joined(windows[i], std::move(asked.front()), released(windows[i])));
    } catch (const run::DeviceLost&) {
      throw;
    } catch (const std::bad_alloc& error) {
      if (result.too_many.empty()) result.too_many = error.what();
      failed(windows[i], error, true);
    } catch (const std::exception& error) {
      failed(windows[i], error);
    }
  }
  return result;
}

}  // namespace vigil::actors
