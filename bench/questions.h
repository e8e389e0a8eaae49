// What a bench of many cameras asks of every window.
#pragma once

#include <vector>

#include "config/settings.h"

namespace vigil::bench {

/// So many rules of different names. `tokens`: of an explaining answer at most; 1: none is explained.
std::vector<config::RuleSettings> questions(int count, int tokens);

/// Makes a rule's answer worth telling whatever it is, in every window.
void tell_always(config::RuleSettings& rule);

}  // namespace vigil::bench
