#include "services/command.h"

namespace vigil::services {

std::optional<std::string> unknown_command(const CLI::App& root, const std::vector<std::string>& arguments) {
  const CLI::App* command = &root;
  std::string path = root.get_name();
  for (const std::string& word : arguments) {
    const bool is_leaf = command->get_subcommands([](const CLI::App*) { return true; }).empty();
    if (is_leaf || word.starts_with('-')) break;
    const auto named = command->get_subcommands([&](const CLI::App* each) { return each->check_name(word); });
    if (named.empty()) {
      std::string complaint = path;
      complaint.append(": no command '").append(word).append("'; ").append(path).append(" --help lists them");
      return complaint;
    }
    command = named.front();
    path.append(" ").append(word);
  }
  return std::nullopt;
}

}  // namespace vigil::services
