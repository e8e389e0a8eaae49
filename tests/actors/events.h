// Windows that were answered, and whether what is told of them is an event as the schema says.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "actors/messages/data.h"
#include "tests/actors/fakes.h"
#include "tests/actors/times.h"

namespace vigil::actors::testing {

/// A window of 4 s that ends at `end`, with an answer "Yes, a man." for each score.
inline WindowAnswersPtr window_of(const WatchPtr& owner, double end, std::vector<float> scores) {
  auto window = std::make_shared<WindowAnswers>();
  window->watch = owner;
  window->start = end - 4;
  window->end = end;
  window->end_wall = kStart + std::chrono::milliseconds(static_cast<int>(end * 1000));
  window->start_wall = window->end_wall - 4s;
  window->frames = 8;
  window->captured = {base::Clock::TimePoint(1h), window->end_wall};
  for (const float score : scores) {
    stream::Answer answer;
    answer.probability_yes = score;
    answer.text = "Yes, a man.";
    window->answers.push_back(answer);
  }
  return window;
}

inline WindowAnswersPtr window_of(const CameraPtr& owner, double end, std::vector<float> scores) {
  return window_of(watched(*owner), end, std::move(scores));
}

/// Whether docs/event.schema.json takes it, as a validator that is not ours reads it; if not, why.
bool is_valid(const nlohmann::json& event, std::string* why = nullptr);

inline void expect_valid(const nlohmann::json& event) {
  std::string why;
  EXPECT_TRUE(is_valid(event, &why)) << event.dump(2) << '\n' << why;
}

}  // namespace vigil::actors::testing
