#include "services/engine_options.h"

#include "services/device_option.h"

namespace vigil::services {

CLI::Option* add_engine_options(CLI::App& command, EngineArguments& arguments) {
  CLI::Option* shape = command
                           .add_option("--shape", arguments.shape,
                                       "A published config.json (with --random-weights), or a model folder")
                           ->check(CLI::ExistingPath);
  command.add_flag("--random-weights", arguments.random_weights, "Make the weights up on the device")
      ->needs(shape);
  command
      .add_option("--text", arguments.text, "Tokenizer and preprocessing for made-up weights: a model folder")
      ->capture_default_str();
  command.add_option("--seed", arguments.seed, "Of what is made up")->capture_default_str();
  add_compute(command, arguments.options);
  return shape;
}

std::shared_ptr<const model::ModelFolder> open_folder(const EngineArguments& arguments) {
  check_compute(arguments.options);
  return arguments.random_weights
             ? model::ModelFolder::made_up(arguments.shape, arguments.text, arguments.seed)
             : model::ModelFolder::open(arguments.shape);
}

}  // namespace vigil::services
