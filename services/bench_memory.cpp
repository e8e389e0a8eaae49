// vigil bench memory: what remembering costs, each beside what it cannot do without.
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "base/durable.h"
#include "bench/disk_rates.h"
#include "bench/memory_bench.h"
#include "bench/memory_report.h"
#include "cluster/process/clock.h"
#include "cluster/process/process.h"
#include "media/media.h"
#include "services/bench_demotion.h"
#include "services/build_info.h"
#include "services/command.h"
#include "services/engine_options.h"
#include "services/video_option.h"

namespace vigil::services {
namespace {

const std::vector<std::string> kParts{"store", "day", "restart", "ask", "demotion"};

struct MemoryArguments {
  /// Empty: all.
  std::vector<std::string> parts;
  std::string dir;
  std::string model;
  EngineArguments engine;
  std::string size = "224x224";
  bench::MemoryBenchOptions bench;
  std::int64_t kv_tokens = 0;
  DemotionOptions demotion;
  std::string window = "40s";
  std::string stride = "8s";
  std::string seconds = "16s";
  std::string output = "text";
};

/// In the folder that is meant, and gone at the end.
class BenchFolder {
 public:
  explicit BenchFolder(const std::string& dir) {
    const std::filesystem::path in =
        dir.empty() ? std::filesystem::temp_directory_path() : std::filesystem::path(dir);
    std::string name = (in / "vigil-bench-memory-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw base::FileError(in, "no folder can be made in it", errno);
    path_ = name;
  }
  ~BenchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  BenchFolder(const BenchFolder&) = delete;
  BenchFolder& operator=(const BenchFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

bool wants(const MemoryArguments& arguments, const char* part) {
  return arguments.parts.empty() ||
         std::find(arguments.parts.begin(), arguments.parts.end(), part) != arguments.parts.end();
}

DemotionOptions demotion_of(const MemoryArguments& arguments, const bench::MemoryBenchOptions& bench) {
  DemotionOptions options = arguments.demotion;
  options.window = {duration_of("--window", arguments.window), duration_of("--stride", arguments.stride)};
  if (options.window.length < options.window.stride) throw UsageError("the stride is longer than the window");
  options.plan.seconds = base::seconds(duration_of("--seconds", arguments.seconds));
  options.plan.settle = base::seconds(options.window.stride);
  options.size = {bench.width, bench.height};
  options.folder = bench.model;
  options.engine = bench.engine;
  options.has_kv_tokens = arguments.kv_tokens > 0;
  options.dir = bench.folder / "demotion";
  return options;
}

int bench_memory(MemoryArguments arguments) {
  if (!arguments.parts.empty() && wants(arguments, "demotion") && arguments.demotion.videos.empty())
    throw UsageError("demotion: no cameras: name VIDEO files");
  const auto size = parse_size(arguments.size);
  if (!size) throw UsageError("--size: expected WIDTHxHEIGHT, such as 224x224, not '" + arguments.size + "'");
  EngineArguments& engine = arguments.engine;
  if (engine.shape.empty()) engine.shape = arguments.model.empty() ? "models/demo" : arguments.model;
  bench::MemoryBenchOptions& options = arguments.bench;
  options.model = open_folder(engine);
  options.engine = engine.options;
  if (arguments.kv_tokens > 0) options.engine.kv_tokens = arguments.kv_tokens;
  options.width = size->width;
  options.height = size->height;
  options.has_fio = bench::has_fio();
  const BenchFolder folder(arguments.dir);
  options.folder = folder.path();
  const DemotionOptions demotion = demotion_of(arguments, options);
  const cluster::SystemClock clock;
  bench::MemoryReport report({{"bench", "memory"},
                              {"model", options.model->name()},
                              {"device", run::name_of(options.engine.device)},
                              {"scale", options.scale},
                              {"machine", cluster::processor_name()},
                              {"commit", kCommit}},
                             arguments.output == "json", std::cout);
  {
    bench::MemoryBench bench(options, clock, report);
    if (wants(arguments, "store")) bench.store();
    if (wants(arguments, "day")) bench.day();
    if (wants(arguments, "restart")) bench.restart();
    if (wants(arguments, "ask")) bench.ask();
  }
  if (!wants(arguments, "demotion")) return kDone;
  if (demotion.videos.empty()) {
    report.missing("demotion", "not measured: no VIDEO was named for its cameras");
  } else {
    bench_demotion(demotion, report);
  }
  return kDone;
}

}  // namespace

void add_bench_memory(CLI::App& bench, Invocation& chosen) {
  CLI::App* command = bench.add_subcommand("memory", "Measure what remembering costs, beside its floors");
  auto arguments = std::make_shared<MemoryArguments>();
  command
      ->add_option(
          "--parts", arguments->parts,
          "Only these: store (rates of the disk), day (what is written of what is kept), restart, ask (a "
          "question about the past), demotion (windows of cameras that remember; needs VIDEO)")
      ->check(one_of(kParts))
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("PARTS");
  command
      ->add_option(
          "--dir", arguments->dir,
          "On the disk that is meant; a folder vigil-bench-memory-... is made in it, and removed at the end "
          "unless it is interrupted [the system's for temporary files]")
      ->check(CLI::ExistingDirectory)
      ->type_name("DIR");
  auto* model =
      command
          ->add_option("--model", arguments->model, "Model folder as Hugging Face publishes it [models/demo]")
          ->type_name("DIR");
  add_engine_options(*command, arguments->engine)->excludes(model);
  command
      ->add_option("--kv-tokens", arguments->kv_tokens,
                   "Tokens that the KV cache has room for [" +
                       std::to_string(engine::EngineOptions().kv_tokens) +
                       "; demotion: as many as its cameras need]")
      ->check(above_zero());
  command->add_option("--size", arguments->size, "Of the pictures that cameras remember")
      ->capture_default_str();
  command
      ->add_option("--scale", arguments->bench.scale,
                   "The day's length, as a share of 24 h; the whole day writes 33 GB with the demo's model")
      ->check(above_zero())
      ->capture_default_str();
  command->add_option("--rounds", arguments->bench.rounds, "Of all but the day; medians are told")
      ->check(from_to(1, 1000))
      ->capture_default_str();
  command->add_option("--files", arguments->bench.files, "Of 64 MiB, for the rates of the disk")
      ->check(from_to(4, 1000))
      ->capture_default_str();
  command->add_option("--question", arguments->bench.question, "That is asked")->capture_default_str();
  command
      ->add_option("--output", arguments->output,
                   "A table for people, or a JSON object a line, with every figure")
      ->check(one_of({"text", "json"}))
      ->capture_default_str();
  DemotionOptions& demotion = arguments->demotion;
  demotion.pruning.kept = 0.28;
  command
      ->add_option("VIDEO", demotion.videos,
                   "Files that the cameras of demotion play in turns, looped, at their own pace")
      ->check(file_of_video());
  command->add_option("--cameras", demotion.cameras, "Of demotion")
      ->check(from_to(1, 100000))
      ->capture_default_str();
  command
      ->add_option("--kept", demotion.pruning.kept,
                   "Of a picture's groups, those that its cameras keep at most")
      ->check(above_zero())
      ->capture_default_str();
  command->add_option("--rules", demotion.rules, "Questions to each of its windows")
      ->check(from_to(1, 1000))
      ->capture_default_str();
  command->add_option("--window", arguments->window, "Length of its windows")->capture_default_str();
  command->add_option("--stride", arguments->stride, "One ends every so often")->capture_default_str();
  command->add_option("--seconds", arguments->seconds, "How long each of its turns counts, after a stride")
      ->capture_default_str();
  command->add_option("--pairs", demotion.plan.pairs, "Of turns with memory and without")
      ->check(from_to(1, 1000))
      ->capture_default_str();
  command->footer(
      "Each figure stands beside a floor of the same run: fio's rate (plain files' where fio is missing), "
      "the bytes of "
      "the pages themselves, the time that reading and computing alone take, or the windows of cameras that "
      "remember "
      "nothing. The day is simulated: nobody waits for it. Pages of the day are made up, as cameras of a "
      "model at "
      "--size leave them when 0.28 of each picture is kept.\n"
      "Example: vigil bench memory tests/videos/*.mp4\n"
      "On a GPU: vigil bench memory --parts demotion tests/videos/*.mp4 --device cuda --shape "
      "loadtest/shapes/qwen2.5-vl-7b.json --random-weights --size 448x448 --cameras 200 --kv-tokens 900000");
  command->callback([&chosen, arguments] { chosen = [arguments] { return bench_memory(*arguments); }; });
}

}  // namespace vigil::services
