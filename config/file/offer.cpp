#include "config/file/offer.h"

#include <algorithm>
#include <utility>

#include "config/file/fleet.h"

namespace vigil::config {
namespace {

/// It need not be all of a configuration.
std::vector<Problem> problems_of(const std::string& text, const std::filesystem::path& file,
                                 const Environment& environment) {
  try {
    parse(text, file, environment, {}, Unset::accepted, Secrets::kept);
    return {};
  } catch (const ConfigError& error) {
    return error.problems();
  }
}

/// Of both texts together the lines are those of neither: a problem has its place where it is one of the
/// text's by itself, too.
std::vector<Problem> placed(std::vector<Problem> problems, const std::vector<Problem>& in_text) {
  for (Problem& problem : problems) {
    const auto own = std::find_if(in_text.begin(), in_text.end(), [&problem](const Problem& each) {
      return each.message == problem.message;
    });
    problem.line = own == in_text.end() ? 0 : own->line;
    problem.column = own == in_text.end() ? 0 : own->column;
  }
  return problems;
}

}  // namespace

std::vector<Problem> problems_of_offer(const std::string& text, const std::filesystem::path& file,
                                       const std::string& own, const std::filesystem::path& own_file,
                                       const Environment& environment) {
  const std::vector<Problem> in_text = problems_of(text, file, environment);
  const auto whole =
      std::find_if(in_text.begin(), in_text.end(), [](const Problem& each) { return each.of_whole; });
  if (whole != in_text.end()) return {*whole};
  if (auto secrets = literal_secrets(text); !secrets.empty()) return secrets;
  const std::string all = together(own, text, own_file);
  if (auto problems = problems_of(all, file, environment); !problems.empty())
    return placed(std::move(problems), in_text);
  // Nodes read what was written twice.
  if (fleet_part(all) == fleet_part(text)) return {};
  return {{0, 0, "says something else once it is written anew; tags and the like are no use"}};
}

}  // namespace vigil::config
