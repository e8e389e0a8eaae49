#include "services/command.h"

namespace vigil::services {

std::optional<std::string> unknown_command(const CLI::App& root, const std::vector<std::string>& arguments) {
  const CLI::App* command = &root;
  std::string path = root.get_name();
  for (const std::string& word : arguments) {
    const bool is_leaf = command->get_subcommands([](const CLI::App*) { return true; }).empty();
    if (is_leaf || word.starts_with('-')) break;
    const auto named = command->get_subcommands([&](const CLI::App* each) { return each->check_name(word); });
    if (named.empty()) return path + ": no command '" + word + "'; " + path + " --help lists them";
    command = named.front();
    path += " " + word;
  }
  return std::nullopt;
}

}  // namespace vigil::services
