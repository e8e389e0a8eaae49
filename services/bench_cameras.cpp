// vigil bench cameras: how many cameras this machine holds.
#include <algorithm>
#include <cstdint>
#include <ctime>
#include <iomanip>
#include <iostream>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "actors/bench/capacity_search.h"
#include "actors/bench/statistics.h"
#include "cluster/process.h"
#include "config/duration.h"
#include "config/load.h"
#include "media/null_decode.h"
#include "services/bench_pipeline.h"
#include "services/build_info.h"
#include "services/command.h"

namespace vigil::services {
namespace {

using nlohmann::json;

struct CamerasArguments {
  std::vector<std::string> videos;
  std::string config;
  std::string model;
  int start = 16;
  int most = 1024;
  std::optional<int> exactly;
  std::string seconds = "32s";
  std::string window = "40s";
  std::string stride = "8s";
  double fps = 2;
  std::string size = "224x224";
  int rules = 2;
  int tokens = 32;
  int threads = 0;
  double overload = 2;
  std::string output = "text";
};

config::Duration duration_of(const char* option, const std::string& text) {
  const auto duration = config::parse_duration(text);
  if (!duration || duration->count() == 0)
    throw UsageError(std::string(option) + ": expected a duration above 0, such as 40s, not '" + text + "'");
  return *duration;
}

std::optional<media::Size> size_of(const std::string& text) {
  if (text == "model") return std::nullopt;
  media::Size size;
  char x = 0;
  std::istringstream words(text);
  if (!(words >> size.width >> x >> size.height) || x != 'x' || words.peek() != EOF || size.width < 1 ||
      size.height < 1)
    throw UsageError("--size: expected WIDTHxHEIGHT, such as 224x224, or 'model', not '" + text + "'");
  return size;
}

std::vector<config::RuleSettings> rules_of(int count, int tokens) {
  const std::vector<std::pair<std::string, std::string>> questions = {
      {"person", "Is there a person in the room?"},
      {"car", "Is there a car?"},
      {"fall", "Does a person fall?"},
      {"bag", "Is a bag left behind?"},
      {"zone", "Is a person inside the marked zone?"},
      {"stop", "Does a car stop on the road?"}};
  std::vector<config::RuleSettings> rules;
  for (std::size_t i = 0; std::cmp_less(i, count); ++i) {
    config::RuleSettings rule;
    rule.name = questions[i % questions.size()].first;
    if (i >= questions.size()) rule.name += '-' + std::to_string(i / questions.size() + 1);
    rule.prompt = questions[i % questions.size()].second;
    rule.explain = tokens > 1;
    rule.max_tokens = tokens;
    rules.push_back(std::move(rule));
  }
  return rules;
}

BenchPipelineOptions options_of(const CamerasArguments& arguments) {
  BenchPipelineOptions options;
  options.model = arguments.model.empty() ? "models/demo" : arguments.model;
  options.threads = arguments.threads;
  options.size = size_of(arguments.size);
  if (arguments.config.empty()) {
    if (arguments.videos.empty())
      throw UsageError("nothing to watch: name VIDEO files, or a configuration with --config");
    for (const std::string& video : arguments.videos) {
      config::CameraSettings camera;
      camera.inputs = {{{video, video}, {config::Role::detect}}};
      camera.stream.window = {duration_of("--window", arguments.window),
                              duration_of("--stride", arguments.stride)};
      camera.stream.fps = arguments.fps;
      camera.rules = rules_of(arguments.rules, arguments.tokens);
      options.cameras.push_back(std::move(camera));
    }
  } else {
    const config::Settings settings = config::load(arguments.config);
    if (arguments.model.empty()) options.model = settings.model;
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
  }
  return options;
}

/// What decoding and sampling a file costs, alone and in turns with FFmpeg's null decode of it.
struct ReadCost {
  double stream_seconds = 0;
  /// Processor seconds for a second of video.
  double read = 0;
  double null_decode = 0;
};

double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

ReadCost read_cost(const config::CameraSettings& camera, const BenchPipelineOptions& options) {
  constexpr int kRounds = 3;
  const std::string file = camera.url().value;
  media::ReadOptions read;
  read.fps = camera.stream.fps;
  read.motion = false;
  if (options.size) read.size = [size = *options.size](media::Size) { return size; };
  std::vector<double> reading;
  std::vector<double> decoding;
  ReadCost cost;
  for (int round = 0; round < kRounds; ++round) {
    const double begin = thread_seconds();
    const auto reader = media::VideoReader::open(file, read);
    double last = 0;
    while (const auto frame = reader->next()) last = frame->seconds;
    const double middle = thread_seconds();
    media::null_decode(file, 1, false);
    cost.stream_seconds = std::max(reader->info().duration_seconds, last);
    reading.push_back(middle - begin);
    decoding.push_back(thread_seconds() - middle);
  }
  if (cost.stream_seconds <= 0) throw media::Error(file + ": has no length");
  cost.read = actors::percentile(reading, 0.5) / cost.stream_seconds;
  cost.null_decode = actors::percentile(decoding, 0.5) / cost.stream_seconds;
  return cost;
}

class CamerasBench {
 public:
  explicit CamerasBench(const CamerasArguments& arguments)
      : arguments_(arguments),
        seconds_(config::seconds(duration_of("--seconds", arguments.seconds))),
        options_(options_of(arguments)) {}

  int run() {
    std::set<std::string> known;
    for (const config::CameraSettings& camera : options_.cameras) {
      ReadCost& cost = costs_.emplace_back();
      cost = read_cost(camera, options_);
      if (known.insert(camera.url().value).second) print_read(camera.url().shown, cost);
    }
    BenchPipeline pipeline(options_);
    const auto step = [&](int cameras, double seconds, bool may_stop) {
      std::cerr << "vigil: " << cameras << " cameras ..." << std::flush;
      pipeline.set_cameras(cameras);
      PipelineFigures figures = pipeline.measure(seconds, may_stop);
      const bool held = figures.held(pipeline.stride());
      std::cerr << (held ? " held" : " not held") << " (95 % within " << latency(figures, 0.95) << " s)\n";
      return figures;
    };
    int held = 0;
    std::optional<PipelineFigures> best;
    if (arguments_.exactly) {
      best = step(*arguments_.exactly, seconds_, false);
      held = best->held(pipeline.stride()) ? best->cameras : 0;
    } else {
      actors::CapacitySearch search(std::min(arguments_.start, arguments_.most), arguments_.most);
      while (const auto cameras = search.next()) {
        PipelineFigures figures = step(*cameras, seconds_, true);
        const bool good = figures.held(pipeline.stride());
        print_step(pipeline, "step", figures);
        search.tried(good);
        if (good) best = std::move(figures);
      }
      held = search.held();
    }
    if (best) print_step(pipeline, arguments_.exactly ? "step" : "cameras_held", *best, held);
    if (arguments_.overload > 0 && held > 0) {
      const int many = std::max(held + 1, static_cast<int>(arguments_.overload * held));
      print_step(pipeline, "overload", step(many, std::max(seconds_, 75.0), false), held);
    }
    if (!best)
      std::cerr << "vigil: not even " << std::min(arguments_.start, arguments_.most)
                << " cameras and fewer are held\n";
    return best ? kDone : kFailed;
  }

 private:
  static double latency(const PipelineFigures& figures, double share) {
    std::vector<double> latencies;
    for (const auto& window : figures.windows) latencies.push_back(window.latency);
    return actors::percentile(std::move(latencies), share);
  }

  static json quantiles(const std::vector<double>& values) {
    return {{"p50", actors::percentile(values, 0.5)},
            {"p95", actors::percentile(values, 0.95)},
            {"count", values.size()}};
  }

  json common(const char* figure) const {
    return {{"bench", "cameras"},
            {"figure", figure},
            {"machine", cluster::processor_name() + ", " +
                            std::to_string(std::thread::hardware_concurrency()) + " processors"},
            {"commit", kCommit}};
  }

  void print_read(const std::string& file, const ReadCost& cost) const {
    json line = common("read");
    line["file"] = file;
    line["cpu_of_real_time"] = cost.read;
    line["null_decode_cpu_of_real_time"] = cost.null_decode;
    line["over_null_decode"] = cost.read / cost.null_decode;
    line["limit"] = 1.15;
    line["load"] = cluster::load_average();
    if (arguments_.output == "json") {
      std::cout << line.dump() << std::endl;
    } else {
      std::cout << "reading " << file << ": " << rounded(100 * cost.read)
                << " % of a processor in real time, " << rounded(cost.read / cost.null_decode)
                << " times FFmpeg's null decode (limit 1.15)\n";
    }
  }

  static std::string rounded(double value) {
    std::ostringstream text;
    text.precision(3);
    text << value;
    return text.str();
  }

  void print_step(BenchPipeline& pipeline, const char* figure, const PipelineFigures& figures,
                  std::optional<int> held = {}) {
    json line = common(figure);
    const double stride = pipeline.stride();
    line["cameras"] = figures.cameras;
    line["held"] = figures.held(stride);
    line["seconds"] = figures.seconds;
    line["window"] = {{"length", pipeline.length()},
                      {"stride", stride},
                      {"fps", options_.cameras.front().stream.fps},
                      {"size", arguments_.size},
                      {"rules", options_.cameras.front().rules.size()}};
    line["model"] = pipeline.engine().model_id;
    line["dtype"] = kernels::name_of(pipeline.engine().compute);
    line["windows"] = {{"due", figures.due},
                       {"answered", figures.windows.size()},
                       {"overtaken", figures.overtaken},
                       {"failed", figures.failed}};
    line["dropped_frames"] = figures.dropped_frames;
    if (figures.least_share) line["fairness_least_over_median_per_minute"] = *figures.least_share;

    std::vector<double> latencies;
    std::vector<double> waiting;
    for (const auto& window : figures.windows) {
      latencies.push_back(window.latency);
      waiting.push_back(window.waiting);
    }
    line["window_latency_seconds"] = quantiles(latencies);
    json stages{{"waiting", quantiles(waiting)}};
    for (const auto& [stage, seconds] : figures.stages) stages[stage] = quantiles(seconds);
    line["stage_seconds"] = stages;

    const double processors = std::thread::hardware_concurrency();
    line["cpu_seconds"] = figures.cpu;
    line["cpu_share_of_machine"] = figures.cpu_total / (processors * figures.seconds);
    line["product_share_of_cpu"] = figures.cpu_products / figures.cpu_total;
    const double computing =
        figures.cpu.contains("vision") ? figures.cpu.at("vision") + figures.cpu.at("prefill") : 0;
    if (computing > 0) line["product_share_of_vision_and_prefill"] = figures.cpu_products / computing;
    // In processor time, so that it can be compared on a busy machine.
    line["product_rate_per_processor"] = figures.flops / figures.cpu_products;
    const double limit = pipeline.product_limit();
    line["product_limit"] = limit;
    // Where windows were lost, less was done than the cameras asked for.
    if (figures.held(stride)) {
      const double per_camera = figures.flops / figures.seconds / figures.cameras;
      line["flops_per_camera_second"] = per_camera;
      line["limit_cameras"] = limit / per_camera;
      if (held) line["held_over_limit"] = *held / (limit / per_camera);
      // What is held if all processors did nothing else: on a busy machine the better figure.
      const double cpu_per_camera = figures.cpu_total / figures.seconds / figures.cameras;
      line["processors_per_camera"] = cpu_per_camera;
      line["cameras_by_processor_time"] = processors / cpu_per_camera;
    }
    if (held) line["cameras_held"] = *held;

    double null_decode = 0;
    for (int i = 0; i < figures.cameras; ++i)
      null_decode += costs_[static_cast<std::size_t>(i) % costs_.size()].null_decode;
    const double decode = figures.cpu.contains("decode") ? figures.cpu.at("decode") : 0;
    line["decode_over_null_decode"] = decode / (null_decode * figures.seconds);
    line["tokens"] = figures.tokens;
    line["alerts"] = figures.alerts;
    line["resident_mib"] = static_cast<double>(figures.resident_bytes) / (1 << 20);
    line["most_resident_mib"] = static_cast<double>(figures.most_resident_bytes) / (1 << 20);
    line["load"] = figures.load;
    if (arguments_.output == "json") {
      std::cout << line.dump() << std::endl;
    } else if (held) {
      print_text(line);
    }
  }

  static void print_text(const json& line) {
    const auto number = [](const json& value) { return rounded(value.get<double>()); };
    std::cout << "\n"
              << line.at("figure").get<std::string>() << ": " << line.at("cameras") << " cameras, "
              << (line.at("held").get<bool>() ? "held" : "not held") << ", for " << number(line.at("seconds"))
              << " s\n";
    std::cout << "  windows            " << line.at("windows").at("answered") << " answered of "
              << number(line.at("windows").at("due")) << " due, "
              << number(line.at("windows").at("overtaken")) << " overtaken; frames dropped "
              << line.at("dropped_frames").dump() << "\n";
    if (line.contains("fairness_least_over_median_per_minute"))
      std::cout << "  fairness           the least answered camera has "
                << number(line.at("fairness_least_over_median_per_minute"))
                << " of the median within any minute (aim 0.5)\n";
    std::cout << "  stage              p50 s     p95 s     count\n";
    const auto row = [&](const std::string& name, const json& values) {
      std::cout << "    " << std::left << std::setw(17) << name << std::setw(10) << number(values.at("p50"))
                << std::setw(10) << number(values.at("p95")) << values.at("count") << "\n";
    };
    row("window latency", line.at("window_latency_seconds"));
    for (const auto& [stage, values] : line.at("stage_seconds").items()) row(stage, values);
    std::cout << "  processor time     ";
    for (const auto& [stage, seconds] : line.at("cpu_seconds").items())
      std::cout << stage << ' ' << number(seconds) << " s, ";
    std::cout << "together " << number(line.at("cpu_share_of_machine")) << " of the machine\n";
    std::cout << "  matrix products    " << number(line.at("product_share_of_cpu"))
              << " of all processor time (aim 0.7), "
              << number(line.at("product_share_of_vision_and_prefill")) << " of that of vision and prefill\n";
    if (line.contains("limit_cameras"))
      std::cout << "  limits             " << number(line.at("cameras_by_processor_time"))
                << " cameras would fill the processors, " << number(line.at("limit_cameras"))
                << " if they did nothing but products, at the rate of large ones\n";
    std::cout << "  decoding           " << number(line.at("decode_over_null_decode"))
              << " times FFmpeg's null decode, in processor time (limit 1.15)\n";
    std::cout << "  memory             " << number(line.at("resident_mib")) << " MiB resident, "
              << number(line.at("most_resident_mib")) << " at most\n";
    std::cout << "  load               " << number(line.at("load")) << ", "
              << line.at("machine").get<std::string>() << ", commit " << line.at("commit").get<std::string>()
              << std::endl;
  }

  const CamerasArguments& arguments_;
  double seconds_;
  BenchPipelineOptions options_;
  std::vector<ReadCost> costs_;
};

}  // namespace

void add_bench_cameras(CLI::App& bench, Invocation& chosen) {
  CLI::App* command = bench.add_subcommand("cameras", "How many cameras this machine holds");
  auto arguments = std::make_shared<CamerasArguments>();
  auto* videos = command
                     ->add_option("VIDEO", arguments->videos,
                                  "Files that the cameras play in turns, looped, at their own pace")
                     ->check(CLI::ExistingFile);
  auto* config = command
                     ->add_option("--config", arguments->config,
                                  "Take cameras, windows and rules from this configuration instead of the "
                                  "options below; its cameras are multiplied")
                     ->check(CLI::ExistingFile)
                     ->type_name("FILE")
                     ->excludes(videos);
  command
      ->add_option("--model", arguments->model,
                   "Model folder as Hugging Face publishes it [models/demo, or the configuration's]")
      ->type_name("DIR");
  command
      ->add_option("--start", arguments->start,
                   "Cameras of the first step; the number is doubled while they are held, then the "
                   "difference is halved")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command->add_option("--max", arguments->most, "Cameras at most")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command->add_option("--cameras", arguments->exactly, "Measure this number only")
      ->check(CLI::Range(1, 100000));
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
            ->check(CLI::Range(1, 1000))
            ->capture_default_str(),
        command->add_option("--tokens", arguments->tokens, "Longest explanation of an alert; 1 for none")
            ->check(CLI::Range(1, 4096))
            ->capture_default_str()})
    option->excludes(config);
  command
      ->add_option("--threads", arguments->threads, "Threads of each part of the engine; 0: all processors")
      ->check(zero_or_more())
      ->capture_default_str();
  command
      ->add_option(
          "--overload", arguments->overload,
          "At the end, run so many times the cameras that were held, and look at who is served; 0: do not")
      ->check(zero_or_more())
      ->capture_default_str();
  command
      ->add_option("--output", arguments->output,
                   "A table for people, or a JSON object a line, with every step")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command->footer(
      "Runs the pipeline of `vigil run` in this process, without sockets. Cameras are held when 95 of 100 "
      "windows are answered within their stride, counted from when their "
      "last frame was due, and none is lost. A step lasts as long as a window, a stride to start cameras, "
      "and --seconds; the whole search takes some minutes.\n"
      "`limit_cameras` is what matrix products alone would allow at the rate of a large one, measured in the "
      "same run.\n"
      "Example: vigil bench cameras tests/videos/*.mp4 --start 16 --output json");
  command->callback([&chosen, arguments] {
    chosen = [arguments] {
      try {
        return CamerasBench(*arguments).run();
      } catch (const config::ConfigError& error) {
        std::cerr << error.what() << '\n';
        return static_cast<int>(kFailed);
      }
    };
  });
}

}  // namespace vigil::services
