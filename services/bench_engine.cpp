// vigil bench engine: the engine alone, at the shape of any published model.
#include <iostream>
#include <memory>

#include "bench/engine_bench.h"
#include "cluster/process/clock.h"
#include "cluster/process/process.h"
#include "services/build_info.h"
#include "services/command.h"
#include "services/engine_options.h"

namespace vigil::services {
namespace {

struct EngineBenchArguments {
  EngineArguments engine;
  bench::EngineBenchOptions bench;
};

int bench_engine(EngineBenchArguments arguments) {
  arguments.bench.seed = arguments.engine.seed;
  const cluster::SystemClock clock;
  bench::EngineBench bench([&] { return open_folder(arguments.engine); }, arguments.engine.options,
                           arguments.bench, clock);
  bench.run();
  const engine::Engine& engine = bench.engine();
  bench.figures().print({{"bench", "engine"},
                         {"model", engine.model_id},
                         {"device", run::name_of(engine.device)},
                         {"decode_device", run::name_of(engine.decode_device)},
                         {"dtype", kernels::name_of(engine.compute)},
                         {"quantization", model::name_of(engine.quantization)},
                         {"frames", arguments.bench.frames},
                         {"width", arguments.bench.width},
                         {"height", arguments.bench.height},
                         {"prompt_tokens", bench.prompt_tokens()},
                         {"sequences", arguments.bench.sequences},
                         {"sequence_tokens", bench.sequence_tokens()},
                         {"temperature", arguments.bench.sampling.temperature},
                         {"top_k", arguments.bench.sampling.top_k},
                         {"machine", cluster::processor_name()},
                         {"commit", kCommit}},
                        std::cout);
  return kDone;
}

}  // namespace

void add_bench_engine(CLI::App& bench, Invocation& chosen) {
  CLI::App* command =
      bench.add_subcommand("engine", "Measure vision, prefill and decoding of a model's shape");
  command->footer(
      "Prints a JSON line a figure, in seconds: vision tower and prefill of a window, its first token, a "
      "decoded token, and a "
      "step of many answers that are decoded together.\n"
      "Example: vigil bench engine --shape loadtest/shapes/qwen2.5-vl-7b.json --random-weights --device "
      "cuda");
  auto arguments = std::make_shared<EngineBenchArguments>();
  add_engine_options(*command, arguments->engine)->required();
  command->add_option("--frames", arguments->bench.frames, "Frames of the window")
      ->check(above_zero())
      ->capture_default_str();
  command->add_option("--width", arguments->bench.width, "Of its frames")
      ->check(above_zero())
      ->capture_default_str();
  command->add_option("--height", arguments->bench.height, "Of its frames")
      ->check(above_zero())
      ->capture_default_str();
  command->add_option("--tokens", arguments->bench.tokens, "Of each answer")
      ->check(above_zero())
      ->capture_default_str();
  command->add_option("--sequences", arguments->bench.sequences, "Answers that are decoded together; 1: none")
      ->check(above_zero())
      ->capture_default_str();
  command
      ->add_option("--sequence-frames", arguments->bench.sequence_frames, "Frames of each of their windows")
      ->check(above_zero())
      ->capture_default_str();
  command->add_option("--runs", arguments->bench.runs, "Runs that count")
      ->check(above_zero())
      ->capture_default_str();
  command->add_option("--warmups", arguments->bench.warmups, "Runs before them that do not")
      ->check(zero_or_more())
      ->capture_default_str();
  command->add_option("--temperature", arguments->bench.sampling.temperature, "0 takes the likeliest token")
      ->check(zero_or_more())
      ->capture_default_str();
  command
      ->add_option("--top-k", arguments->bench.sampling.top_k, "Sample among the k likeliest tokens; 0: all")
      ->check(zero_or_more())
      ->capture_default_str();
  command->callback([&chosen, arguments] { chosen = [arguments] { return bench_engine(*arguments); }; });
}

}  // namespace vigil::services
