#include "actors/answer/answer.h"

#include <exception>
#include <span>
#include <stdexcept>
#include <utility>

namespace vigil::actors {
namespace {

window::WindowRequest request_for(const DueWindow& due) {
  window::WindowRequest request;
  for (const VisualPatchPtr& patch : due.patches) request.patches.push_back(patch->tokens);
  for (const config::RuleSettings& rule : due.camera->rules) {
    window::Question question;
    question.text = rule.prompt;
    question.max_tokens = rule.explain ? rule.max_tokens : 1;
    request.questions.push_back(std::move(question));
  }
  return request;
}

config::Clock::WallTime::duration wall_duration(double seconds) {
  return std::chrono::duration_cast<config::Clock::WallTime::duration>(
      std::chrono::duration<double>(seconds));
}

WindowAnswersPtr joined(const DueWindow& due, std::vector<window::Answer> answers) {
  auto result = std::make_shared<WindowAnswers>();
  const VisualPatch& last = *due.patches.back();
  result->camera = due.camera;
  result->start = due.start;
  result->end = due.end;
  // The wall time of the last patch is known; the rest of the window lies before it as its time tells.
  const double last_end = last.tokens->seconds + last.tokens->duration;
  result->end_wall = last.captured.wall;
  result->start_wall = last.captured.wall - wall_duration(last_end - due.start);
  for (const VisualPatchPtr& patch : due.patches) result->frames += patch->frames;
  result->answers = std::move(answers);
  result->captured = last.captured;
  return result;
}

std::vector<std::vector<window::Answer>> answer_all(window::WindowAnswerer& answerer,
                                                    std::span<const window::WindowRequest> requests) {
  auto answers = answerer.answer(requests);
  bool complete = answers.size() == requests.size();
  for (std::size_t i = 0; complete && i < answers.size(); ++i) {
    complete = answers[i].size() == requests[i].questions.size();
  }
  if (!complete) throw std::logic_error("the answerer returned another number of answers");
  return answers;
}

}  // namespace

Answered answer(window::WindowAnswerer& answerer, const std::vector<DueWindow>& windows) {
  std::vector<window::WindowRequest> requests;
  requests.reserve(windows.size());
  for (const DueWindow& window : windows) requests.push_back(request_for(window));
  Answered result;
  try {
    auto answers = answer_all(answerer, requests);
    for (std::size_t i = 0; i < windows.size(); ++i) {
      result.windows.push_back(joined(windows[i], std::move(answers[i])));
    }
    return result;
  } catch (const std::exception& error) {
    if (windows.size() == 1) {
      result.failures.push_back({windows.front().camera, error.what()});
      return result;
    }
  }
  for (std::size_t i = 0; i < windows.size(); ++i) {
    try {
      auto answers = answer_all(answerer, std::span(requests).subspan(i, 1));
      result.windows.push_back(joined(windows[i], std::move(answers.front())));
    } catch (const std::exception& error) {
      result.failures.push_back({windows[i].camera, error.what()});
    }
  }
  return result;
}

}  // namespace vigil::actors
