// What it costs the windows of the present that what leaves them is remembered, where a language model has a
// GPU to itself: as many cameras as are said, in real time, without towers. A JSON object a line.
//
//   bench_demotion --shape loadtest/shapes/qwen2.5-vl-7b.json --text models/demo --device cuda:0
//   bench_demotion --model models/demo --device cpu --cameras 4 --rounds 1 --host 0.05
//
// Each camera has a patch a second, of random embeddings, and is asked one question about each window; its
// windows come at times of its own, all cameras' evenly. Streams are filled at once, then turns follow each
// other: one without memory and one with each `--forms`, in the order that is turned around from round to
// round. A turn is a stride long, so that each camera has one window in it, after a while that does not
// count. With memory, `memory::PageMaker` packs what leaves in these forms and copies it to page-locked
// memory; a tier of the host, in a thread of its own as in the service, drops the oldest. A window's time is
// from when its last patch is due until it has its answer. `p95_ratio`: beside the turns without, with 95 %
// of 2,000 bootstraps over the seconds of the turns. `busy`: the share of the time in which the executor's
// thread had something to do, waiting for the GPU included. `packing` and `copy`: seconds of a second that
// the GPU packs, measured alone, and that plain copies of as many bytes to the host take, the floor.
// `overtaken`: windows without an answer, since the camera's next one came: too many cameras.
// `computed`: visual tokens of a window, those of a stride unless streams lost what they keep.
// `pages_without`: pages that lack a form, since too much was under way. `--shape` makes parameters up, so
// answers mean nothing.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <queue>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "engine/engine.h"
#include "engine/memory/page_maker.h"
#include "engine/run/device.h"
#include "engine/run/executor.h"
#include "engine/stream/refresh.h"
#include "engine/stream/sliding_window.h"
#include "loadtest/engine/demotion_side.h"
#include "loadtest/engine/made_patches.h"
#include "loadtest/engine/median.h"
#include "services/build_info.h"

namespace {

using namespace vigil;
using loadtest::kLate;
using loadtest::percentile;
using loadtest::Side;
using Json = nlohmann::json;
using TimePoint = base::Clock::TimePoint;
using Seconds = std::chrono::duration<double>;

/// Of what is kept, what stands out: as of the clips in tests/videos (docs/memory.md).
constexpr double kStandingOut = 0.059;
/// So many tokens have as many times the bytes of one.
constexpr std::int64_t kPageTokens = 64;
/// When streams begin: early in an hour.
constexpr base::Clock::WallTime kBegin{std::chrono::hours(480'000)};

struct Options {
  std::string model, shape, text, device = "cuda:0";
  int cameras = 200, rounds = 4;
  /// Seconds; of windows and strides whole ones.
  std::int64_t window = 40, stride = 8;
  double kept = 0.28, settle = 1, host_gib = 4;
  std::vector<std::string> forms = {"int4,embeddings,sketch", "bf16"};
};

base::Clock::TimePoint::duration steady(double seconds) {
  return std::chrono::duration_cast<base::Clock::TimePoint::duration>(Seconds(seconds));
}

class SteadyClock final : public base::Clock {
 public:
  TimePoint now() const override { return std::chrono::steady_clock::now(); }
  WallTime wall() const override { return std::chrono::system_clock::now(); }
};

/// Cameras at a desk, in real time.
class Cameras {
 public:
  explicit Cameras(const Options& options)
      : options_(options),
        folder_(options.model.empty() ? model::ModelFolder::made_up(options.shape, options.text, 1)
                                      : model::ModelFolder::open(options.model)),
        kept_(std::max<std::int64_t>(1, std::llround(options.kept * loadtest::MadePatches::kCells))),
        standing_(std::max<std::int64_t>(1, std::llround(kStandingOut * static_cast<double>(kept_)))),
        page_patches_((memory::PageMaker::Options().tokens + kept_ - 1) / kept_),
        device_(run::parse_device(options.device)),
        engine_(engine::make_engine(folder_, engine_options())),
        desk_(*engine_.language.desk),
        mover_(*engine_.language.mover),
        executor_(clock_, {&desk_}),
        stream_(run::make_streams(device_, 0).front()),
        question_(engine_.language.questions->compile(
            {.text = "Is a person present?", .max_tokens = 1, .sampling = {}, .on_text = {}})),
        made_(stream_, engine_.compute, folder_->config.text.hidden_size, kept_, standing_) {
    for (int i = 0; i < options.cameras; ++i) {
      ids_.push_back({"", "camera-" + std::to_string(i)});
      cameras_.push_back({ids_.back().camera});
      desk_.open(ids_.back().camera, stream::make_refresh("none"));
    }
    sides_.emplace_back();
    for (const std::string& words : options.forms) sides_.push_back(remembering(words));
  }
  ~Cameras() { hand_over(nullptr); }
  Cameras(const Cameras&) = delete;
  Cameras& operator=(const Cameras&) = delete;

  void measure() {
    const TimePoint begun = clock_.now();
    fill();
    Json line = setup();
    line["fill_s"] = Seconds(clock_.now() - begun).count();
    print(line);
    for (int round = 0; round < options_.rounds; ++round)
      for (std::size_t i = 0; i < sides_.size(); ++i)
        take_turn(sides_[round % 2 == 0 ? i : sides_.size() - 1 - i]);
    hand_over(nullptr);
    finish();
    for (Side& side : sides_) print(told(side));
  }

 private:
  struct Camera {
    std::string name;
    stream::SlidingWindow sliding = {};
    std::int64_t patches = 0;
  };
  struct Pending {
    TimePoint due;
    /// Null: it does not count.
    Side* side = nullptr;
    std::size_t second = 0;
  };
  /// When a camera's next patch is due, and whose.
  using Coming = std::pair<TimePoint, std::size_t>;
  /// What counts of a turn.
  struct Counted {
    Side* side = nullptr;
    TimePoint from, to;
    std::size_t first = 0;
    bool has(TimePoint at) const { return side != nullptr && at >= from && at < to; }
  };

  static void print(const Json& line) { std::cout << line.dump() << std::endl; }

  /// Of windows, of what leaves them until it is packed, and of texts.
  std::int64_t cache_tokens() const {
    constexpr std::int64_t kOthers = 8192;
    const std::int64_t patches = options_.window + 2 * options_.stride + page_patches_;
    return options_.cameras * (patches * kept_ + 2 * stream::StreamDesk::kText) + kOthers;
  }
  engine::EngineOptions engine_options() const {
    engine::EngineOptions options;
    options.device = device_;
    options.halves = engine::Halves::language;
    options.kv_tokens = cache_tokens();
    return options;
  }
  /// So long after the turns began, a camera's windows are due, and each stride again.
  double offset_of(std::size_t camera) const {
    return static_cast<double>(options_.stride) * static_cast<double>(camera) / options_.cameras;
  }
  /// Tokens of a page in this form.
  std::int64_t page_tokens(kv::Form form) const {
    return page_patches_ * (form == kv::Form::sketch ? standing_ : kept_);
  }

  Side remembering(const std::string& words) {
    Side side;
    side.name = words;
    side.forms = loadtest::parse_forms(words);
    const auto bytes = static_cast<std::uint64_t>(options_.host_gib * 0x1p30);
    side.memory = mover_.make_memory(bytes + bytes / 4);
    side.keeper = std::make_unique<loadtest::Keeper>(bytes, side.forms, ids_);
    side.maker = std::make_shared<memory::PageMaker>(mover_, *side.memory, memory::PageMaker::Options());
    // As after a while: to lock memory takes longer than to copy to it.
    std::vector<kernels::HostBytes> blocks;
    while (side.memory->used() < bytes)
      for (const kv::Form form : side.forms) {
        blocks.push_back(side.memory->take(mover_.bytes_of(form, page_tokens(form))));
        if (!blocks.back()) throw std::invalid_argument("--host has no room for pages");
      }
    return side;
  }

  /// What leaves is this side's from now on.
  void hand_over(Side* side) {
    desk_.leave_to(nullptr);
    if (side_ != nullptr && side_->maker) {
      side_->maker->forget_all();
      hear_pages();
    }
    side_ = side;
    if (side == nullptr || !side->maker) return;
    for (const history::CameraId& id : ids_) side->maker->remember(id.camera, {id, side->forms});
    desk_.leave_to(side->maker);
  }

  /// As the service does it (actors::WindowDesk).
  void push(Camera& camera, TimePoint due) {
    const model::VisualTokensPtr patch = made_.patch(camera.patches++);
    const auto stride = std::chrono::seconds(options_.stride);
    const auto pushed = camera.sliding.push(*patch, {.length = static_cast<double>(options_.window),
                                                     .stride = static_cast<double>(options_.stride)});
    const auto shown = std::chrono::seconds(camera.patches);
    desk_.append(camera.name, patch, kBegin + shown);
    for (const stream::SlidingWindow::Due& window : pushed.due) {
      stream::Asking asking;
      asking.patches = window.patches;
      asking.questions.push_back({question_, {}});
      asking.due = due + stride * 3 / 2;
      asking.overtakes = true;
      Pending pending{due};
      if (counted_.has(due)) {
        pending.side = counted_.side;
        pending.second = counted_.first + static_cast<std::size_t>(Seconds(due - counted_.from).count());
      }
      pending_.emplace(desk_.ask(camera.name, std::move(asking)), pending);
    }
    const std::int64_t wanted = camera.sliding.wanted_from();
    desk_.slide(camera.name, wanted);
    const auto ahead = Seconds(camera.sliding.next_end()) - shown;
    desk_.expect(camera.name, wanted, due + steady(ahead.count()) + stride * 3 / 2);
  }

  void hear_pages() {
    if (side_ == nullptr || !side_->maker) return;
    memory::PageMaker::News news = side_->maker->take_news();
    if (news.failure) std::rethrow_exception(news.failure);
    if (counted_.side == side_ && counted_.has(clock_.now())) {
      for (const auto& lost : news.lost) side_->patches_lost += static_cast<std::int64_t>(lost.patches);
      side_->pages += static_cast<std::int64_t>(news.pages.size());
      for (const memory::FreshPage& page : news.pages) {
        for (const kv::Form form : side_->forms) ++side_->forms_lost[form];
        for (const run::MovedTokens& moved : page.forms) {
          --side_->forms_lost[moved.form];
          side_->bytes[moved.form] += static_cast<std::int64_t>(moved.size);
        }
      }
    }
    if (!news.pages.empty()) side_->keeper->put(std::move(news.pages));
  }

  void hear() {
    const TimePoint now = clock_.now();
    desk_.expire(now);
    const stream::DeskNews news = desk_.take_news();
    if (!news.failed.empty()) throw std::runtime_error("a window failed: " + news.failed.front().reason);
    for (const stream::DeskNews::Answered& each : news.answered) {
      const Pending pending = pending_.extract(each.window).mapped();
      if (pending.side != nullptr) {
        pending.side->seconds[pending.second].push_back(Seconds(now - pending.due).count() * 1e3);
        pending.side->computed += each.tokens.visual - each.tokens.kept;
      }
      desk_.done(each.window);
    }
    for (const stream::WindowId& window : news.overtaken)
      if (Side* side = pending_.extract(window).mapped().side) ++side->overtaken;
    hear_pages();
  }

  /// All that is due to be computed.
  void finish() {
    while (executor_.run_one()) hear();
    engine_.language.passes->settle();
  }

  /// Streams have all that windows show, as if the turns had been going on.
  void fill() {
    std::vector<std::int64_t> missing;
    for (std::size_t i = 0; i < cameras_.size(); ++i)
      missing.push_back(
          options_.window - 1 +
          static_cast<std::int64_t>(std::ceil(static_cast<double>(options_.stride) - offset_of(i))));
    for (bool is_more = true; is_more; finish()) {
      is_more = false;
      for (std::size_t i = 0; i < cameras_.size(); ++i) {
        if (missing[i] == 0) continue;
        push(cameras_[i], clock_.now());
        is_more |= --missing[i] > 0;
      }
    }
    const TimePoint begin = clock_.now();
    for (std::size_t i = 0; i < cameras_.size(); ++i)
      coming_.push({begin + steady(offset_of(i) - std::floor(offset_of(i))), i});
  }

  void take_what_comes(TimePoint until) {
    while (coming_.top().first <= until) {
      const auto [at, camera] = coming_.top();
      coming_.pop();
      push(cameras_[camera], at);
      coming_.push({at + std::chrono::seconds(1), camera});
    }
    hear_pages();
  }

  void run_until(TimePoint end) {
    for (TimePoint now = clock_.now(); now < end; now = clock_.now()) {
      const bool has_come = coming_.top().first <= now;
      if (has_come) take_what_comes(now);
      const bool has_work = executor_.run_one();
      if (has_work) hear();
      if (!has_come && !has_work) {
        std::this_thread::sleep_until(std::min(end, coming_.top().first));
      } else if (counted_.has(now)) {
        counted_.side->busy += Seconds(clock_.now() - now).count();
      }
    }
    // Nothing of a turn is another one's.
    take_what_comes(end - TimePoint::duration(1));
  }

  void take_turn(Side& side) {
    hand_over(&side);
    const TimePoint from = clock_.now() + steady(options_.settle);
    run_until(from);
    const std::size_t first = side.seconds.size();
    side.seconds.resize(first + static_cast<std::size_t>(options_.stride));
    counted_ = {&side, from, from + std::chrono::seconds(options_.stride), first};
    run_until(counted_.to);
  }

  Json setup() {
    return {{"bench", "demotion"},
            {"commit", services::kCommit},
            {"model", folder_->name()},
            {"device", run::name_of(device_)},
            {"cameras", options_.cameras},
            {"tokens_s", options_.cameras * kept_},
            {"token_bytes", mover_.bytes_of(kv::Form::bf16, kPageTokens) / kPageTokens},
            {"window_s", options_.window},
            {"stride_s", options_.stride},
            {"cache_tokens", desk_.tokens()},
            {"cache_bytes", desk_.pages() * engine_.language.model->page_bytes()},
            {"rounds", options_.rounds}};
  }

  /// Seconds in which a page is packed in these forms, as the passes' stream is held up.
  double packing(Side& side) {
    std::vector<model::VisualTokensPtr> patches;
    for (std::int64_t i = 0; i < page_patches_; ++i) patches.push_back(made_.patch(i));
    std::vector<run::MovedTokens> moved;
    const auto wait = [&] {
      for (const run::MovedTokens& each : moved) each.arrived.wait();
      moved.clear();
    };
    const double ms = median_ms(wait, [&] {
      for (const kv::Form form : side.forms) {
        std::vector<std::int32_t> slots(static_cast<std::size_t>(page_tokens(form)));
        std::iota(slots.begin(), slots.end(), 0);
        auto packed = form == kv::Form::embeddings ? mover_.pack_embeddings(patches, *side.memory)
                                                   : mover_.pack(slots, form, *side.memory);
        if (!packed) throw std::runtime_error("a page has no room to be packed");
        moved.push_back(std::move(*packed));
      }
      engine_.language.passes->settle();
    });
    wait();
    return ms / 1e3;
  }

  /// Seconds of plain copies of as many bytes.
  double copying(Side& side) {
    std::vector<std::pair<kernels::Buffer, kernels::HostBytes>> pieces;
    for (const kv::Form form : side.forms) {
      const std::size_t bytes = mover_.bytes_of(form, page_tokens(form));
      pieces.emplace_back(kernels::Buffer(stream_, bytes), side.memory->take(bytes));
      if (!pieces.back().second) throw std::runtime_error("a page has no room to be copied to");
    }
    const double ms = median_ms([] {},
                                [&] {
                                  for (const auto& [from, to] : pieces)
                                    kernels::copy(stream_, to.get(), from.data(), from.bytes());
                                  stream_.synchronize();
                                });
    return ms / 1e3;
  }

  Json told(Side& side) {
    Json line = loadtest::windows_of(side, static_cast<std::size_t>(options_.stride));
    if (!side.maker) return line;
    line["pages_not_kept"] = side.keeper->not_kept();
    // What it holds is not wanted any more.
    side.keeper.reset();
    const auto [low, high] = loadtest::ratio_interval(side, sides_.front());
    const double time = static_cast<double>(side.seconds.size());
    const double pages = static_cast<double>(side.pages) / time;
    line["p95_ratio"] = percentile(side.windows(), kLate) / percentile(sides_.front().windows(), kLate);
    line["p95_ratio_interval"] = {low, high};
    line["pages_s"] = pages;
    line["patches_lost"] = side.patches_lost;
    double bytes = 0;
    for (const kv::Form form : side.forms) {
      const double each = static_cast<double>(side.bytes[form]) / time;
      bytes += each;
      line["bytes_s"][std::string(kv::name_of(form))] = each;
      line["pages_without"][std::string(kv::name_of(form))] = side.forms_lost[form];
    }
    const double copy = copying(side);
    double page_bytes = 0;
    for (const kv::Form form : side.forms)
      page_bytes += static_cast<double>(mover_.bytes_of(form, page_tokens(form)));
    line["packing"] = packing(side) * pages;
    line["copy"] = copy * bytes / page_bytes;
    line["copy_bytes_s"] = page_bytes / copy;
    return line;
  }

  Options options_;
  std::shared_ptr<const model::ModelFolder> folder_;
  /// Tokens of a patch, and those of them that stand out; patches of a page.
  std::int64_t kept_, standing_, page_patches_;
  run::Device device_;
  SteadyClock clock_;
  engine::Engine engine_;
  stream::StreamDesk& desk_;
  run::TokenMover& mover_;
  run::Executor executor_;
  kernels::Stream stream_;
  stream::CompiledQuestionPtr question_;
  loadtest::MadePatches made_;
  std::vector<history::CameraId> ids_;
  std::vector<Camera> cameras_;
  /// The first is without memory.
  std::vector<Side> sides_;
  Side* side_ = nullptr;
  Counted counted_;
  std::map<stream::WindowId, Pending> pending_;
  std::priority_queue<Coming, std::vector<Coming>, std::greater<>> coming_;
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("What remembering costs the windows of cameras in real time, without towers, in JSON lines");
  Options options;
  auto* model = app.add_option("--model", options.model, "A model's folder");
  auto* shape =
      app.add_option("--shape", options.shape, "A shape whose parameters are made up")->excludes(model);
  app.add_option("--text", options.text, "The folder of the shape's tokenizer")->needs(shape);
  app.add_option("--device", options.device, "cpu, cuda:0")->capture_default_str();
  app.add_option("--cameras", options.cameras)->check(CLI::Range(1, 10'000))->capture_default_str();
  app.add_option("--kept", options.kept, "Share of a picture's 256 groups")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--window", options.window, "Seconds, whole ones")
      ->check(CLI::Range(1, 600))
      ->capture_default_str();
  app.add_option("--stride", options.stride, "Seconds, whole ones")
      ->check(CLI::Range(1, 600))
      ->capture_default_str();
  app.add_option("--forms", options.forms, "Forms of a side, separated by commas; again: another side")
      ->capture_default_str();
  app.add_option("--rounds", options.rounds, "Of a turn of each side; even ones are fair to all")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--settle", options.settle, "Seconds of a turn before it counts")
      ->check(CLI::Range(0.0, 60.0))
      ->capture_default_str();
  app.add_option("--host", options.host_gib, "GiB of the host's tier, of each side with memory")
      ->check(CLI::Range(0.001, 256.0))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    if (options.model.empty() && (options.shape.empty() || options.text.empty()))
      throw std::invalid_argument("--model, or --shape with --text");
    if (options.stride > options.window) throw std::invalid_argument("a stride is no longer than a window");
    // Before a model is loaded.
    for (const std::string& words : options.forms) loadtest::parse_forms(words);
    Cameras(options).measure();
  } catch (const std::exception& error) {
    std::cerr << "bench_demotion: " << error.what() << "\n";
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
