#include <exception>
#include <iostream>

#include "services/command.h"

int main(int argc, char** argv) {
  using namespace vigil::services;
  CLI::App root{
      "Vigil watches cameras with a vision-language model: describe in words what matters, and be told on a "
      "topic when it happens."};
  root.name("vigil");
  root.set_version_flag("--version", std::string("vigil ") + VIGIL_VERSION);
  root.require_subcommand(1);
  root.get_formatter()->column_width(38);

  Invocation chosen;
  add_ask(root, chosen);
  add_inspect(root, chosen);
  add_model(root, chosen);
  add_bench(root, chosen);
  add_run(root, chosen);
  add_watch(root, chosen);
  add_check_config(root, chosen);

  try {
    root.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return root.exit(help);
  } catch (const CLI::ParseError& error) {
    root.exit(error, std::cerr, std::cerr);
    return kUsage;
  }
  try {
    return chosen();
  } catch (const UsageError& error) {
    std::cerr << "vigil: " << error.what() << '\n';
    return kUsage;
  } catch (const std::exception& error) {
    std::cerr << "vigil: " << error.what() << '\n';
    return kFailed;
  }
}
