#include "services/engine_options.h"

#include "services/command.h"
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
  add_device(command, arguments.device);
  add_decode_device(command, arguments.decode_device);
  command.add_option("--dtype", arguments.dtype, "Compute in this type")
      ->check(CLI::IsMember({"auto", "f32", "bf16"}))
      ->capture_default_str();
  add_quantization(command, arguments.quantization);
  command
      .add_option("--threads", arguments.threads,
                  "Threads of each part of the engine on the CPU; 0: all processors")
      ->check(zero_or_more())
      ->capture_default_str();
  return shape;
}

std::shared_ptr<const model::ModelFolder> open_folder(const EngineArguments& arguments) {
  return arguments.random_weights
             ? model::ModelFolder::made_up(arguments.shape, arguments.text, arguments.seed)
             : model::ModelFolder::open(arguments.shape);
}

window::EngineOptions engine_options(const EngineArguments& arguments) {
  check_decode_device(arguments.device, arguments.decode_device);
  window::EngineOptions options{.device = arguments.device,
                                .decode_device = arguments.decode_device,
                                .compute = {},
                                .quantization = arguments.quantization,
                                .threads = arguments.threads};
  if (arguments.dtype == "f32") options.compute = kernels::DType::f32;
  if (arguments.dtype == "bf16") options.compute = kernels::DType::bf16;
  return options;
}

}  // namespace vigil::services
