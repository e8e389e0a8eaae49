#include "services/bench_pipeline.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <utility>

#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>
#include <spdlog/sinks/stdout_sinks.h>
#include <unistd.h>

#include "actors/messages/topic.h"
#include "actors/messages/types.h"
#include "bench/losses.h"
#include "bench/metric_sum.h"
#include "bench/timed_reader.h"
#include "cluster/process/process.h"
#include "engine/run/product_meter.h"
#include "engine/run/vision_encoder.h"
#include "services/command.h"
#include "services/frame_shape.h"

namespace vigil::services {

/// Takes every event, as a socket without subscribers would; of each alert the log has the time since its
/// window's last frame.
class BenchPipeline::TimedPublisher final : public actors::Publisher {
 public:
  TimedPublisher(bench::StageLog& log, const base::Clock& clock) : log_(log), clock_(clock) {}
  bool publish(const actors::OutboxEvent& event) override {
    published_ = event.position;
    if (actors::kind_of(event.topic) != actors::TopicKind::rule) return true;
    // An alert has the time of its window's last frame.
    const auto age = clock_.wall() - event.time;
    const bench::StageLog::TimePoint now = clock_.now();
    log_.add(now - std::chrono::duration_cast<bench::StageLog::TimePoint::duration>(age), now);
    return true;
  }
  std::uint64_t published() const override { return published_; }
  void drain() override {}
  void start_over() override { published_ = 0; }
  void remember(const actors::OutboxEvent&) override {}
  void serve() override {}
  std::uint64_t take_dropped() override { return 0; }

 private:
  bench::StageLog& log_;
  const base::Clock& clock_;
  std::uint64_t published_ = 0;
};

class BenchPipeline::Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / ("vigil-bench-" + std::to_string(::getpid()))) {}
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

namespace {

/// The stage that a thread works for, by its name.
std::string stage_of(const std::string& thread) {
  static const std::map<std::string, std::string> stages = {{"camera", "decode"},
                                                            {"executor", "device"},
                                                            {"tower", "device"},
                                                            {"target", "device"},
                                                            {"alerts", "alerts"}};
  const auto found = stages.find(thread);
  return found == stages.end() ? "other" : found->second;
}

/// How the supervisor's run ends, once it has.
std::shared_future<actors::DrainReport> end_of(caf::actor_system& system,
                                               const actors::supervisor_actor& supervisor) {
  auto end = std::make_shared<std::promise<actors::DrainReport>>();
  system.spawn([supervisor, end](caf::event_based_actor* self) {
    // Without a limit: a run takes as long as its videos, or until it is told to end.
    self->request(supervisor, caf::infinite, actors::wait_atom_v)
        .then([end](const actors::DrainReport& report) { end->set_value(report); },
              [self, end](const caf::error& error) {
                end->set_value({false, false, {"the supervisor failed: " + self->system().render(error)}});
              });
  });
  return end->get_future();
}

double sum(const std::map<std::string, double>& values) {
  double total = 0;
  for (const auto& [name, value] : values) total += value;
  return total;
}

}  // namespace

BenchPipeline::BenchPipeline(BenchPipelineOptions options)
    : options_(std::move(options)),
      engine_(std::make_shared<engine::Engine>(engine::make_engine(options_.folder, options_.engine))),
      folder_(std::make_unique<Folder>()),
      outbox_(actors::open_rocksdb_outbox(folder_->path(), ages_)),
      publisher_(std::make_unique<TimedPublisher>(stages_["alerts"], clock_)),
      board_(clock_),
      logger_("vigil", std::make_shared<spdlog::sinks::stderr_sink_mt>()),
      memory_(options_.memory, *options_.folder, clock_, metrics_, board_, logger_) {
  if (options_.size) try_size(*options_.size);
  logger_.set_level(spdlog::level::warn);
  actors::know_messages(system_config_);
  system_ = std::make_unique<caf::actor_system>(system_config_);
  if (options_.part_time) memory_.write_after(*options_.part_time);
  remembering_.emplace(memory_, *system_);
  bench::StageLog& decode = stages_["decode"];
  supervisor_ = system_->spawn(
      actors::supervisor,
      actors::PipelineDeps{.cameras = {},
                           .model_id = engine_->model_id,
                           .open =
                               [this, &decode](const std::string& url, const media::ReadOptions& read) {
                                 return bench::timed(media::VideoReader::open(url, read), decode, clock_);
                               },
                           .shape = shape(),
                           .devices = {{run::name_of(engine_->device), actors::parts_of(engine_), {}}},
                           .outbox = *outbox_,
                           .publisher = *publisher_,
                           .metrics = metrics_,
                           .board = board_,
                           .clock = clock_,
                           .logger = logger_,
                           .seed = 1,
                           .threads = actors::Threads::own,
                           .remembers = remembering_->access().cache != nullptr,
                           .observer = observer(),
                           .cache = remembering_->access()});
  ended_ = end_of(*system_, supervisor_);
  if (engine_->device.kind == kernels::DeviceKind::cpu)
    product_limit_ = run::ProductMeter::limit(engine_->compute, options_.engine.threads);
  begin_ = clock_.now();
  run::ProductMeter::start();
}

actors::FrameShape BenchPipeline::shape() const {
  actors::FrameShape shape = frame_shape(*options_.folder);
  if (options_.size) shape.size = [size = *options_.size](media::Size) { return size; };
  return shape;
}

actors::PipelineObserver BenchPipeline::observer() {
  // Made now, since the threads of devices look them up.
  std::map<std::string, bench::StageLog*> logs;
  for (const char* stage : {"vision", "language", "target", "prefill"}) logs[stage] = &stages_[stage];
  return {.window =
              [this, prefill = logs.at("prefill")](const actors::WindowAnswers& window,
                                                   const actors::WorkSpan& asked) {
                log_.add(window, asked);
                prefill->add(asked.begin, asked.end);
              },
          .piece = [logs](const char* stage,
                          const actors::WorkSpan& piece) { logs.at(stage)->add(piece.begin, piece.end); }};
}

BenchPipeline::~BenchPipeline() {
  if (!drain().complete) abandon(kFailed);
}

const actors::DrainReport& BenchPipeline::drain() {
  caf::anon_send(supervisor_, actors::stop_atom_v);
  // The supervisor bounds the drain itself.
  return ended_.get();
}

void BenchPipeline::abandon(int code) {
  folder_.reset();
  std::cout.flush();
  std::cerr.flush();
  std::_Exit(code);
}

void BenchPipeline::wait(double seconds) const {
  if (ended_.wait_for(std::chrono::duration<double>(seconds)) == std::future_status::ready)
    throw PipelineEnded();
}

void BenchPipeline::try_size(media::Size size) {
  const std::vector<std::uint8_t> black(3 * static_cast<std::size_t>(size.width) *
                                        static_cast<std::size_t>(size.height));
  const run::PatchFrames patch{{{black.data(), size.width, size.height}}, 0, 1};
  try {
    engine_->encoder->encode(std::span(&patch, 1));
  } catch (const std::invalid_argument& error) {
    throw UsageError("--size: " + std::string(error.what()));
  }
}

double BenchPipeline::stride() const {
  return base::seconds(options_.cameras.front().stream.window.stride);
}

double BenchPipeline::length() const {
  return base::seconds(options_.cameras.front().stream.window.length);
}

void BenchPipeline::list(int count) {
  cameras_.resize(std::min(cameras_.size(), static_cast<std::size_t>(count)));
  while (std::cmp_less(cameras_.size(), count)) {
    auto camera =
        std::make_shared<actors::OwnCamera>(options_.cameras[cameras_.size() % options_.cameras.size()]);
    std::ostringstream name;
    name << "camera-" << std::setw(4) << std::setfill('0') << cameras_.size();
    camera->name = name.str();
    cameras_.push_back(std::move(camera));
  }
}

void BenchPipeline::set_cameras(int count) {
  const auto before = static_cast<int>(cameras_.size());
  list(count);
  // Multiples of the golden section, so that any number of cameras from the first on is spread evenly.
  constexpr double kGoldenSection = 0.6180339887498949;
  const double now = std::chrono::duration<double>(clock_.now() - begin_).count() / stride();
  std::vector<std::pair<double, std::size_t>> starts;
  for (auto i = static_cast<std::size_t>(before); i < cameras_.size(); ++i) {
    const double turn = static_cast<double>(i) * kGoldenSection - now;
    starts.emplace_back((turn - std::floor(turn)) * stride(), i);
  }
  std::sort(starts.begin(), starts.end());
  std::vector<actors::CameraPtr> running(cameras_.begin(), cameras_.begin() + std::min(before, count));
  if (starts.empty()) caf::anon_send(supervisor_, actors::reload_atom_v, actors::CameraList{running});
  double waited = 0;
  for (const auto& [at, index] : starts) {
    wait(at - waited);
    waited = at;
    running.push_back(cameras_[index]);
    caf::anon_send(supervisor_, actors::reload_atom_v, actors::CameraList{running});
  }
  wait(starts.empty() ? 2 * stride() : length() + stride());
}

void BenchPipeline::remember(bool remembers, double settle) {
  for (actors::CameraPtr& camera : cameras_) {
    auto changed = std::make_shared<actors::OwnCamera>(*camera);
    changed->stream.keep = remembers ? config::StreamSettings().keep : base::Duration::zero();
    camera = std::move(changed);
  }
  caf::anon_send(supervisor_, actors::reload_atom_v, actors::CameraList{cameras_});
  wait(settle);
}

double BenchPipeline::metric(const std::string& name) const {
  return sum(bench::metric_by(page(), name, ""));
}

bench::PipelineFigures BenchPipeline::measure(double seconds, bool may_stop) {
  constexpr double kTick = 0.25;
  bench::PipelineFigures figures;
  figures.cameras = static_cast<int>(cameras_.size());
  const bench::Losses lost_before = bench::losses(page());
  const double tokens_before = sum(bench::metric_by(page(), "vigil_generation_tokens_total", ""));
  const double alerts_before = sum(bench::metric_by(page(), "vigil_alerts_total", ""));
  const double cpu_before = cluster::process_cpu_seconds();
  const double products_before = run::ProductMeter::cpu_seconds();
  const double flops_before = run::ProductMeter::flops();
  cluster::ThreadTimes threads;
  const base::Clock::TimePoint from = clock_.now();
  while (true) {
    wait(kTick);
    threads.sample();
    figures.seconds = std::chrono::duration<double>(clock_.now() - from).count();
    if (figures.seconds >= seconds) break;
    if (!may_stop || figures.seconds < stride()) continue;
    if (bench::since(lost_before, bench::losses(page())).any()) break;
  }
  const base::Clock::TimePoint to = clock_.now();
  figures.lost = bench::since(lost_before, bench::losses(page()));
  if (figures.lost.to_a_device()) {
    // There is no other device, and the pipeline is about to end.
    ended_.wait();
    throw PipelineEnded();
  }
  figures.cpu_total = cluster::process_cpu_seconds() - cpu_before;
  figures.cpu_products = run::ProductMeter::cpu_seconds() - products_before;
  figures.flops = run::ProductMeter::flops() - flops_before;
  for (const auto& [thread, spent] : threads.by_name()) figures.cpu[stage_of(thread)] += spent;
  const double known = sum(figures.cpu);
  figures.cpu["other"] += std::max(0.0, figures.cpu_total - known);
  figures.windows = log_.between(from, to);
  log_.forget_before(to);
  figures.due = figures.cameras * figures.seconds / stride();
  if (options_.tell_all) {
    std::size_t rules = 0;
    for (const auto& camera : cameras_) rules += camera->rules.size();
    figures.alerts_due = static_cast<double>(rules) * figures.seconds / stride();
  }
  std::vector<std::string> names;
  names.reserve(cameras_.size());
  for (const auto& camera : cameras_) names.push_back(camera->name);
  figures.least_share = bench::least_share(figures.windows, names, from, to, std::chrono::minutes(1));
  for (auto& [stage, stage_log] : stages_) figures.stages[stage] = stage_log.take(from, to);
  figures.tokens = sum(bench::metric_by(page(), "vigil_generation_tokens_total", "")) - tokens_before;
  figures.alerts = sum(bench::metric_by(page(), "vigil_alerts_total", "")) - alerts_before;
  const cluster::ProcessMemory memory = cluster::process_memory();
  figures.resident_bytes = memory.resident_bytes;
  figures.most_resident_bytes = memory.most_resident_bytes;
  figures.load = cluster::load_average();
  return figures;
}

}  // namespace vigil::services
