#include "bench/questions.h"

#include <array>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

namespace vigil::bench {

std::vector<config::RuleSettings> questions(int count, int tokens) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kQuestions = {
      {{"person", "Is there a person in the room?"},
       {"car", "Is there a car?"},
       {"fall", "Does a person fall?"},
       {"bag", "Is a bag left behind?"},
       {"zone", "Is a person inside the marked zone?"},
       {"stop", "Does a car stop on the road?"}}};
  std::vector<config::RuleSettings> rules;
  for (std::size_t i = 0; std::cmp_less(i, count); ++i) {
    const auto& [name, prompt] = kQuestions[i % kQuestions.size()];
    config::RuleSettings rule;
    rule.name = name;
    if (i >= kQuestions.size()) rule.name += '-' + std::to_string(i / kQuestions.size() + 1);
    rule.prompt = prompt;
    rule.explain = tokens > 1;
    rule.max_tokens = tokens;
    rules.push_back(std::move(rule));
  }
  return rules;
}

void tell_always(config::RuleSettings& rule) {
  rule.threshold = 0;
  rule.confirm = {1, 1};
  rule.cooldown = base::Duration(0);
  rule.max_per_hour = std::numeric_limits<int>::max();
}

}  // namespace vigil::bench
