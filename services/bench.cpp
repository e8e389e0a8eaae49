// vigil bench: what this machine does, as JSON lines that can be compared.
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench/figures.h"
#include "cluster/process/clock.h"
#include "cluster/process/process.h"
#include "engine/run/product_meter.h"
#include "engine/stream/clips.h"
#include "services/ask_options.h"
#include "services/build_info.h"
#include "services/clip.h"
#include "services/command.h"
#include "services/video_option.h"

namespace vigil::services {
namespace {

struct BenchArguments {
  AskOptions ask;
  int runs = 5;
  int warmups = 1;
};

class AskBench {
 public:
  explicit AskBench(const BenchArguments& arguments)
      : arguments_(arguments), engine_(make_engine(arguments.ask)) {}

  void run() {
    for (int i = 0; i < arguments_.warmups; ++i) once(false);
    for (int i = 0; i < arguments_.runs; ++i) once(true);
  }

  void print() const {
    figures_.print({{"bench", "ask"},
                    {"model", engine_.model_id},
                    {"device", run::name_of(engine_.device)},
                    {"decode_device", run::name_of(engine_.decode_device)},
                    {"dtype", kernels::name_of(engine_.compute)},
                    {"quantization", model::name_of(engine_.quantization)},
                    {"video", shown_video(arguments_.ask.clip.video)},
                    {"frames", frames_},
                    {"prompt_tokens", prompt_tokens_},
                    {"threads", arguments_.ask.engine.threads == 0
                                    ? static_cast<int>(std::thread::hardware_concurrency())
                                    : arguments_.ask.engine.threads},
                    {"machine", cluster::processor_name()},
                    {"commit", kCommit}},
                   std::cout);
  }

 private:
  void once(bool counted) {
    // Products are timed in the prefill only, where the time should go into them.
    stream::Clips clips(*engine_.language.desk, *engine_.language.questions, clock_,
                        engine_.decoder ? engine_.decoder->desk.get() : nullptr);
    run::ProductMeter::start();
    const Clip clip = read_clip(engine_, arguments_.ask.clip);
    const double vision_products = run::ProductMeter::seconds();
    stream::Question question = question_of(arguments_.ask);
    double prefill_products = 0;
    bool first = true;
    question.on_text = [&](std::string_view) {
      if (first) prefill_products = run::ProductMeter::seconds() - vision_products;
      first = false;
    };
    const stream::ClipRequest request{clip.patches, {question}};
    const stream::Answer answer = clips.answer(std::span(&request, 1))[0][0];
    if (!counted) return;
    const double prefill = clips.times().prefill;
    const double decode = clips.times().decode;
    const auto tokens = static_cast<double>(answer.tokens.size());
    frames_ = clip.frames;
    prompt_tokens_ = answer.prompt_tokens;
    figures_.add("decode_video", "s", clip.decode_seconds);
    figures_.add("vision", "s", clip.encode_seconds);
    figures_.add("prefill", "s", prefill);
    figures_.add("decode", "s", decode);
    figures_.add("video_to_first_token", "s", clip.decode_seconds + clip.encode_seconds + prefill);
    figures_.add("prefill_tokens_per_second", "1/s", static_cast<double>(answer.prompt_tokens) / prefill);
    if (tokens > 1) figures_.add("decode_tokens_per_second", "1/s", (tokens - 1) / decode);
    figures_.add("vision_share_in_products", "1", vision_products / clip.encode_seconds);
    if (!first) figures_.add("prefill_share_in_products", "1", prefill_products / prefill);
    figures_.add("product_rate", "FLOP/s", run::ProductMeter::flops() / run::ProductMeter::seconds());
  }

  const BenchArguments& arguments_;
  engine::Engine engine_;
  cluster::SystemClock clock_;
  bench::Figures figures_;
  std::uint64_t frames_ = 0;
  std::int64_t prompt_tokens_ = 0;
};

}  // namespace

void add_bench(CLI::App& root, Invocation& chosen) {
  CLI::App* bench = root.add_subcommand("bench", "Measure this machine, as JSON lines");
  bench->require_subcommand(1);
  CLI::App* command = bench->add_subcommand("ask", "Ask the same question several times");
  command->footer(
      "Prints a JSON line a figure: mean, deviation and median of every stage, tokens a second, and the "
      "share of the time that goes "
      "into matrix products.");
  auto arguments = std::make_shared<BenchArguments>();
  add_clip_question(*command, arguments->ask);
  add_ask_options(*command, arguments->ask);
  command->add_option("--runs", arguments->runs, "Runs that count")
      ->check(above_zero())
      ->capture_default_str();
  command->add_option("--warmups", arguments->warmups, "Runs before them that do not")
      ->check(zero_or_more())
      ->capture_default_str();
  command->callback([&chosen, arguments] {
    chosen = [arguments] {
      AskBench ask(*arguments);
      ask.run();
      ask.print();
      return kDone;
    };
  });
  add_bench_engine(*bench, chosen);
  add_bench_cameras(*bench, chosen);
  add_bench_memory(*bench, chosen);
  add_bench_placement(*bench, chosen);
  add_bench_city(*bench, chosen);
}

}  // namespace vigil::services
