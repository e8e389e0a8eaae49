// vigil bench cameras: how many cameras this machine holds.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "base/duration.h"
#include "bench/cache_size.h"
#include "bench/cameras_report.h"
#include "bench/capacity.h"
#include "bench/engine_bench.h"
#include "bench/floor.h"
#include "bench/questions.h"
#include "bench/read_cost.h"
#include "cluster/process/clock.h"
#include "cluster/process/memory_limit.h"
#include "cluster/process/process.h"
#include "config/file/load.h"
#include "services/bench_pipeline.h"
#include "services/build_info.h"
#include "services/command.h"
#include "services/engine_options.h"
#include "services/frame_shape.h"
#include "services/pruning_option.h"
#include "services/video_option.h"

namespace vigil::services {
namespace {

struct CamerasArguments {
  std::vector<std::string> videos;
  std::string config;
  std::string model;
  EngineArguments engine;
  std::int64_t kv_tokens = 0;
  int start = 16;
  int most = 1024;
  std::vector<int> exactly;
  std::string seconds = "32s";
  std::string window = "40s";
  std::string stride = "8s";
  double fps = 2;
  config::PruningSettings pruning;
  std::string size = "224x224";
  int rules = 2;
  int tokens = 32;
  bool tell_all = false;
  double overload = 2;
  std::string output = "text";
};

/// On a GPU, where memory is plenty: a batch that is being prefilled, and one that is being explained.
constexpr int kWindowsInCache = 24;

std::optional<media::Size> size_of(const std::string& text) {
  if (text == "model") return std::nullopt;
  if (const auto size = parse_size(text)) return size;
  throw UsageError("--size: expected WIDTHxHEIGHT, such as 224x224, or 'model', not '" + text + "'");
}

/// As the model sees them.
model::PictureSize frame_size(const BenchPipelineOptions& options, const config::CameraSettings& camera) {
  if (options.size) return {options.size->width, options.size->height};
  const media::Size source = media::VideoReader::open(camera.url().value, {})->info().size;
  return preprocessor_of(*options.folder)->frame_size({source.width, source.height});
}

bool keeps_keys(const std::vector<config::CameraSettings>& cameras) {
  return std::any_of(cameras.begin(), cameras.end(), [](const config::CameraSettings& camera) {
    return camera.stream.pruning.refresh != config::Refresh::all;
  });
}

/// Whose streams stay in the cache. Throws UsageError where nobody knows before the search, and memory is
/// dear.
int most_cameras(const CamerasArguments& arguments, kernels::DeviceKind device) {
  if (!arguments.exactly.empty())
    return *std::max_element(arguments.exactly.begin(), arguments.exactly.end());
  if (device == kernels::DeviceKind::cpu) return arguments.most;
  throw UsageError(
      "where windows keep their keys, a GPU's cache has room for every camera's: say how many with "
      "--cameras, or how large it is with --kv-tokens");
}

/// Of the memory that there is, what a cache of the CPU takes at most.
std::uint64_t share_of_memory() {
  const auto of_machine = [] {
    return static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
           static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  };
  const auto limit = cluster::memory_limit();
  return (limit ? *limit : of_machine()) / 4;
}

BenchPipelineOptions options_of(const CamerasArguments& arguments) {
  BenchPipelineOptions options;
  EngineArguments engine = arguments.engine;
  if (engine.shape.empty()) engine.shape = arguments.model.empty() ? "models/demo" : arguments.model;
  options.size = size_of(arguments.size);
  options.tell_all = arguments.tell_all;
  if (arguments.config.empty()) {
    if (arguments.videos.empty())
      throw UsageError("nothing to watch: name VIDEO files, or a configuration with --config");
    for (const std::string& video : arguments.videos) {
      config::CameraSettings camera;
      camera.inputs = {{{video, shown_video(video)}, {config::Role::detect}}};
      camera.stream.window = {duration_of("--window", arguments.window),
                              duration_of("--stride", arguments.stride)};
      camera.stream.fps = arguments.fps;
      camera.stream.pruning = arguments.pruning;
      camera.rules = bench::questions(arguments.rules, arguments.tokens);
      options.cameras.push_back(std::move(camera));
    }
  } else {
    const config::Settings settings = config::load(arguments.config);
    if (arguments.model.empty() && arguments.engine.shape.empty()) engine.shape = settings.model.string();
    for (const config::CameraSettings& camera : settings.cameras)
      if (camera.enabled) options.cameras.push_back(camera);
    if (options.cameras.empty()) throw UsageError(arguments.config + ": no camera is enabled");
  }
  for (config::CameraSettings& camera : options.cameras) {
    if (!camera.is_file())
      throw UsageError("camera '" + camera.name + "' is no file: only files can be played many times over");
    if (camera.stream.window.length < camera.stream.window.stride)
      throw UsageError("the stride is longer than the window");
    if (camera.stream.window != options.cameras.front().stream.window)
      throw UsageError("the cameras differ in their windows, so that there is no one number of them");
    camera.stream.pace = config::Pace::realtime;
    camera.stream.loop = true;
    if (arguments.tell_all) std::for_each(camera.rules.begin(), camera.rules.end(), bench::tell_always);
  }
  options.folder = open_folder(engine);
  options.engine = engine.options;
  if (arguments.kv_tokens > 0) {
    options.engine.kv_tokens = arguments.kv_tokens;
  } else if (const bool keeps = keeps_keys(options.cameras);
             keeps || options.engine.device.kind != kernels::DeviceKind::cpu) {
    const auto preprocessor = preprocessor_of(*options.folder);
    options.engine.kv_tokens = bench::cache_for(
        options.cameras, *preprocessor,
        [&](const config::CameraSettings& camera) { return frame_size(options, camera); },
        kWindowsInCache + (keeps ? most_cameras(arguments, options.engine.device.kind) : 0));
    if (options.engine.device.kind == kernels::DeviceKind::cpu)
      options.engine.kv_tokens = std::min(
          options.engine.kv_tokens, bench::tokens_within(options.folder->config.text, share_of_memory()));
  }
  return options;
}

bench::CamerasMachine this_machine() {
  return {cluster::processor_name(), std::thread::hardware_concurrency(), kCommit};
}

/// Of the first camera's windows, by an engine of its own that is gone again.
bench::Floor measure_floor(const BenchPipelineOptions& options) {
  const config::CameraSettings& camera = options.cameras.front();
  const model::PictureSize size = frame_size(options, camera);
  const int tokens = bench::floor_tokens(camera, options.tell_all);
  const cluster::SystemClock clock;
  bench::EngineBench bench([&] { return options.folder; }, options.engine,
                           bench::floor_bench(camera, size.width, size.height, tokens), clock);
  bench.run();
  return bench::floor_of(bench.figures(), base::seconds(camera.stream.window.length),
                         base::seconds(camera.stream.window.stride), tokens);
}

bench::CamerasRun run_of(const BenchPipeline& pipeline, const BenchPipelineOptions& options,
                         const std::string& size) {
  const engine::Engine& engine = pipeline.engine();
  bench::CamerasRun run;
  run.length = pipeline.length();
  run.stride = pipeline.stride();
  run.fps = options.cameras.front().stream.fps;
  run.size = size;
  run.rules = options.cameras.front().rules.size();
  run.model = engine.model_id;
  run.device = run::name_of(engine.device);
  run.decode_device = run::name_of(engine.decode_device);
  run.kv_tokens = options.engine.kv_tokens;
  run.dtype = kernels::name_of(engine.compute);
  run.quantization = model::name_of(engine.quantization);
  if (engine.device.kind == kernels::DeviceKind::cpu) run.product_limit = pipeline.product_limit();
  return run;
}

/// Measures what the arguments ask for; tells people on stderr what is going on.
int measure(const CamerasArguments& arguments, double seconds, const bench::CamerasRun& run,
            BenchPipeline& pipeline, const bench::CamerasReport& report) {
  const auto step = [&](int cameras, double span, bool may_stop) {
    std::cerr << "vigil: " << cameras << " cameras ..." << std::flush;
    pipeline.set_cameras(cameras);
    bench::PipelineFigures figures = pipeline.measure(span, may_stop);
    std::cerr << (figures.held(run.stride) ? " held" : " not held") << " (95 % within "
              << bench::latency(figures, 0.95) << " s)\n";
    return figures;
  };
  const bench::Capacity capacity = bench::measure_capacity(
      {arguments.start, arguments.most, arguments.exactly, arguments.overload, seconds}, run.stride, step,
      [&](const char* figure, const bench::PipelineFigures& figures, std::optional<int> held) {
        report.step(run, figure, figures, held);
      });
  if (!capacity.measured)
    std::cerr << "vigil: not even " << std::min(arguments.start, arguments.most)
              << " cameras and fewer are held\n";
  return capacity.measured ? kDone : kFailed;
}

int bench_cameras(const CamerasArguments& arguments) {
  const double seconds = base::seconds(duration_of("--seconds", arguments.seconds));
  const BenchPipelineOptions options = options_of(arguments);
  bench::CamerasReport report(this_machine(), arguments.output == "json", std::cout);
  std::set<std::string> known;
  for (const config::CameraSettings& camera : options.cameras) {
    const bench::ReadCost cost = bench::read_cost(camera, options.size);
    report.read(camera.url().shown, cost, known.insert(camera.url().value).second, cluster::load_average());
  }
  std::optional<bench::Floor> floor;
  if (options.engine.device.kind != kernels::DeviceKind::cpu) floor = measure_floor(options);
  BenchPipeline pipeline(options);
  int code = kFailed;
  try {
    bench::CamerasRun run = run_of(pipeline, options, arguments.size);
    run.floor = floor;
    code = measure(arguments, seconds, run, pipeline, report);
  } catch (const PipelineEnded&) {
    std::cerr << " not measured\n";
  }
  const actors::DrainReport& drained = pipeline.drain();
  for (const std::string& failure : drained.failures) {
    std::cerr << "vigil: " << failure << '\n';
    code = kFailed;
  }
  if (!drained.complete) {
    if (drained.failures.empty())
      std::cerr << "vigil: what was still under way did not end in time and was left\n";
    pipeline.abandon(code);
  }
  return code;
}

}  // namespace

void add_bench_cameras(CLI::App& bench, Invocation& chosen) {
  CLI::App* command = bench.add_subcommand("cameras", "How many cameras this machine holds");
  auto arguments = std::make_shared<CamerasArguments>();
  auto* videos = command
                     ->add_option("VIDEO", arguments->videos,
                                  "Files that the cameras play in turns, looped, at their own pace")
                     ->check(file_of_video());
  auto* config = command
                     ->add_option("--config", arguments->config,
                                  "Take cameras, windows and rules from this configuration instead of the "
                                  "options below; its cameras are multiplied")
                     ->check(CLI::ExistingFile)
                     ->type_name("FILE")
                     ->excludes(videos);
  auto* model = command
                    ->add_option("--model", arguments->model,
                                 "Model folder as Hugging Face publishes it [models/demo, or the "
                                 "configuration's]")
                    ->type_name("DIR");
  add_engine_options(*command, arguments->engine)->excludes(model);
  command
      ->add_option(
          "--kv-tokens", arguments->kv_tokens,
          "Tokens that the KV cache has room for; left out: with --refresh all as `run` on the CPU, 24 "
          "windows on a GPU; otherwise 24 windows more than there are --cameras, or, on the CPU, than "
          "--max, in a quarter of the memory")
      ->check(above_zero());
  command
      ->add_option("--start", arguments->start,
                   "Cameras of the first step; the number is doubled while they are held, then the "
                   "difference is halved")
      ->check(from_to(1, 100000))
      ->capture_default_str();
  command->add_option("--max", arguments->most, "Cameras at most")
      ->check(from_to(1, 100000))
      ->capture_default_str();
  command
      ->add_option("--cameras", arguments->exactly, "Measure these numbers only, one after the other: 18,24")
      ->check(from_to(1, 100000))
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("NUMBERS");
  command
      ->add_option("--seconds", arguments->seconds,
                   "How long a step is measured, after windows have their full length")
      ->capture_default_str();
  command
      ->add_option("--size", arguments->size,
                   "Of the frames that the model sees; 'model' for what it chooses")
      ->capture_default_str();
  for (auto* option :
       {command->add_option("--window", arguments->window, "Length of a window")->capture_default_str(),
        command->add_option("--stride", arguments->stride, "A window ends every so often")
            ->capture_default_str(),
        command->add_option("--fps", arguments->fps, "Frames a second that the model sees")
            ->check(above_zero())
            ->capture_default_str(),
        command->add_option("--rules", arguments->rules, "Questions to every window")
            ->check(from_to(1, 1000))
            ->capture_default_str(),
        command->add_option("--tokens", arguments->tokens, "Longest explanation of an alert; 1 for none")
            ->check(from_to(1, 4096))
            ->capture_default_str()})
    option->excludes(config);
  for (CLI::Option* option : add_pruning(*command, arguments->pruning)) option->excludes(config);
  command->add_flag("--tell-all", arguments->tell_all,
                    "Have every rule told, and its answer generated, in every window, whatever it says; "
                    "cameras are held when these answers, too, come within the stride");
  command
      ->add_option(
          "--overload", arguments->overload,
          "At the end, run so many times the cameras that were held, and look at who is served; 0: do not")
      ->check(zero_or_more())
      ->capture_default_str();
  command
      ->add_option("--output", arguments->output,
                   "A table for people, or a JSON object a line, with every step")
      ->check(one_of({"text", "json"}))
      ->capture_default_str();
  command->footer(
      "Runs the pipeline of `vigil run` in this process, without sockets. Cameras are held when 95 of 100 "
      "windows are answered within their stride, counted from when their "
      "last frame was due, and none is lost. A step lasts as long as a window, a stride to start cameras, "
      "and --seconds; the whole search takes some minutes.\n"
      "`limit_cameras` is what matrix products alone would allow at the rate of a large one; on a GPU, "
      "`floor` is what windows one after the other take; both are measured in the same run.\n"
      "Example: vigil bench cameras tests/videos/*.mp4 --start 16 --output json\n"
      "On a GPU, at a published shape: vigil bench cameras tests/videos/*.mp4 --device cuda --shape "
      "loadtest/shapes/qwen2.5-vl-7b.json --random-weights --size 448x448 --rules 1 --tokens 16 --tell-all "
      "--kv-tokens 1000000");
  command->callback([&chosen, arguments] {
    chosen = [arguments] {
      try {
        return bench_cameras(*arguments);
      } catch (const config::ConfigError& error) {
        std::cerr << error.what() << '\n';
        return static_cast<int>(kFailed);
      }
    };
  });
}

}  // namespace vigil::services
