#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>
#include <system_error>

#include "config/values/meant_name.h"
#include "services/command.h"

namespace vigil::services {
namespace {

std::string full_name(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return parent == nullptr ? command.get_name() : full_name(*parent) + ' ' + command.get_name();
}

/// Words beyond the last one that a command takes.
std::string too_much(const CLI::App& command, const std::vector<std::string>& extras) {
  std::string text = full_name(command) + ": not expected:";
  for (const std::string& word : extras) text.append(" ").append(word);
  const bool words = std::none_of(extras.begin(), extras.end(),
                                  [](const std::string& word) { return word.starts_with('-'); });
  if (words && command.get_option_no_throw("QUESTION") != nullptr)
    text += "; a question of several words needs quotes around it";
  return text;
}

/// Of what is taken for an option and is none.
std::string unknown_option(const CLI::App& command, const std::string& word) {
  std::string text = full_name(command).append(": no option ").append(word);
  std::vector<std::string> known;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  if (const auto meant = config::meant_name(word.substr(0, word.find('=')), known))
    text.append("; did you mean ").append(*meant).append("?");
  return text;
}

/// Of what cannot be kept as the number that an option takes: CLI11 says "Could not convert: --max-tokens =
/// 1.5".
std::optional<std::string> no_such_number(const CLI::ParseError& error) {
  if (dynamic_cast<const CLI::ConversionError*>(&error) == nullptr) return std::nullopt;
  const std::string text = error.what();
  constexpr std::string_view kBegin = "Could not convert: ";
  const std::size_t equals = text.find(" = ");
  if (!text.starts_with(kBegin) || equals == text.npos) return std::nullopt;
  const std::string given = text.substr(equals + 3);
  double value = 0;
  const auto read = std::from_chars(given.data(), given.data() + given.size(), value);
  const bool number = read.ec == std::errc() && read.ptr == given.data() + given.size();
  const char* demand = !number ? "expected a number"
                       : value != std::trunc(value)
                           ? "expected a whole number"
                           : "expected a number that is neither so large nor so small";
  return text.substr(kBegin.size(), equals - kBegin.size()) + ": " + demand + ", not '" + given + "'";
}

}  // namespace

std::string parse_complaint(const CLI::App& root, const CLI::ParseError& error) {
  constexpr const char* kMore = "\nRun with --help for more information.\n";
  const CLI::App* command = &root;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  const std::vector<std::string> extras = command->remaining();
  // A misspelled option is missed under its right name.
  const auto option = std::find_if(extras.begin(), extras.end(),
                                   [](const std::string& word) { return word.starts_with("--"); });
  if (option != extras.end()) return unknown_option(*command, *option) + kMore;
  if (const auto number = no_such_number(error)) return *number + kMore;
  const bool extra = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
  return (extra && !extras.empty() ? too_much(*command, extras) : std::string(error.what())) + kMore;
}

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
