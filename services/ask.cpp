// vigil ask: a question about a video file, answered on this machine, or about what a camera saw, answered by
// a running service.
#include <cstdio>
#include <iomanip>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "cluster/process/clock.h"
#include "engine/engine.h"
#include "engine/stream/clips.h"
#include "services/ask_camera.h"
#include "services/ask_options.h"
#include "services/ask_windows.h"
#include "services/clip.h"
#include "services/command.h"
#include "services/slow_path_warnings.h"

namespace vigil::services {
namespace {

struct AskArguments {
  /// As they stand there: beside --camera, there is no VIDEO, and the first word is the question.
  std::string first;
  std::vector<std::string> more;
  AskOptions ask;
  AskCameraOptions camera;
  AskWindowsOptions windows;
  std::string output = "text";
  bool stream = false;
  bool stats = false;
};

/// A bar on a terminal's stderr; nothing elsewhere, so that logs stay readable.
class ProgressBar {
 public:
  explicit ProgressBar(bool wanted) : shown_(wanted && ::isatty(STDERR_FILENO) != 0) {}
  ~ProgressBar() { clear(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void show(std::uint64_t done, std::uint64_t expected) {
    if (!shown_) return;
    constexpr std::uint64_t kWidth = 30;
    if (expected == 0) {
      std::fprintf(stderr, "\r%llu frames", static_cast<unsigned long long>(done));
    } else {
      const std::uint64_t filled = std::min(kWidth, kWidth * done / expected);
      std::fprintf(stderr, "\r[%s%s] %llu of %llu frames", std::string(filled, '#').c_str(),
                   std::string(kWidth - filled, ' ').c_str(), static_cast<unsigned long long>(done),
                   static_cast<unsigned long long>(std::max(done, expected)));
    }
    drawn_ = true;
  }

  void clear() {
    if (drawn_) std::fprintf(stderr, "\r\033[K");
    drawn_ = false;
  }

 private:
  bool shown_;
  bool drawn_ = false;
};

int run_ask_video(const AskArguments& arguments) {
  if (arguments.stream && arguments.output == "json")
    throw UsageError(
        "--stream prints words as they come, --output json one object at the end: give one of the two");
  if (!arguments.windows.window.empty()) {
    if (arguments.stream || arguments.stats)
      throw UsageError("--stream and --stats are of one answer: without --window");
    return run_ask_windows(arguments.ask, arguments.windows, arguments.output);
  }
  stream::Question question = question_of(arguments.ask);
  ProgressBar bar(arguments.output == "text");
  // This thread, which shows the bar, waits while others compute.
  const SlowPathWarnings slow_paths([&bar](const std::string& line) {
    bar.clear();
    std::cerr << "vigil: " << line << '\n';
  });
  engine::Engine engine = make_engine(arguments.ask);
  for (const std::string& warning : engine.warnings) std::cerr << "vigil: " << warning << '\n';
  const Clip clip = read_clip(engine, arguments.ask.clip,
                              {.frames = [&](auto done, auto expected) { bar.show(done, expected); },
                               .notice =
                                   [&](const std::string& line) {
                                     bar.clear();
                                     std::cerr << "vigil: " << line << '\n';
                                   }});
  bar.clear();
  if (!clip.stats.last_damage.empty())
    std::cerr << "vigil: " << clip.info.name << ": " << clip.stats.damaged_packets
              << " damaged packets passed over: " << clip.stats.last_damage << '\n';

  const bool live = arguments.stream && arguments.output == "text";
  if (live) question.on_text = [](std::string_view piece) { std::cout << piece << std::flush; };
  const stream::ClipRequest request{clip.patches, {question}};
  const cluster::SystemClock clock;
  stream::Clips clips(*engine.language.desk, *engine.language.questions, clock,
                      engine.decoder ? engine.decoder->desk.get() : nullptr);
  const stream::Answer answer = clips.answer(std::span(&request, 1))[0][0];
  const stream::Clips::Times& times = clips.times();

  const nlohmann::json seconds{
      {"decode_video", clip.decode_seconds},
      {"vision", clip.encode_seconds},
      {"prefill", times.prefill},
      {"decode", times.decode},
      {"total", clip.decode_seconds + clip.encode_seconds + times.prefill + times.decode}};
  if (arguments.output == "json") {
    std::cout << nlohmann::json{{"answer", answer.text},
                                {"probability_yes", answer.probability_yes},
                                {"tokens", answer.tokens},
                                {"finish_reason", name_of(answer.finish)},
                                {"frames", clip.frames},
                                {"prompt_tokens", answer.prompt_tokens},
                                {"model", engine.model_id},
                                {"video", clip.info.name},
                                {"damaged_packets", clip.stats.damaged_packets},
                                {"seconds", seconds}}
                     .dump(2)
              << '\n';
    return kDone;
  }
  if (!live) std::cout << answer.text;
  if (answer.text.starts_with("Yes") || answer.text.starts_with("No"))
    std::cout << "  (probability of yes " << std::fixed << std::setprecision(2) << answer.probability_yes
              << ')';
  std::cout << std::endl;
  if (arguments.stats) {
    std::fprintf(stderr,
                 "P(yes) %.3f, %llu frames, %lld prompt tokens, %zu answer tokens\n"
                 "decode video %.3f s, vision %.3f s, prefill %.3f s, decode %.3f s\n",
                 static_cast<double>(answer.probability_yes), static_cast<unsigned long long>(clip.frames),
                 static_cast<long long>(answer.prompt_tokens), answer.tokens.size(), clip.decode_seconds,
                 clip.encode_seconds, times.prefill, times.decode);
  }
  return kDone;
}

using OptionSet = std::set<const CLI::Option*>;

/// Those that the command has by now.
OptionSet options_of(const CLI::App& command) {
  const auto options = command.get_options();
  return {options.begin(), options.end()};
}

/// What is of files and what is of cameras is not given together.
void check_together(const CLI::App& command, bool of_camera, const OptionSet& others) {
  for (const CLI::Option* given : command.parse_order()) {
    if (!others.contains(given)) continue;
    throw UsageError(given->get_name() +
                     (of_camera
                          ? " is of a VIDEO, and --camera asks about none"
                          : " is of what a camera saw: it needs --camera, which asks a running service"));
  }
}

CLI::ValidationError no_question(const std::string& example) {
  return CLI::ValidationError("QUESTION",
                              "what is asked is missing: a question in quotes, such as \"" + example + '"');
}

/// The words beside the options, as what they are.
void read_words(AskArguments& arguments) {
  if (!arguments.camera.camera) {
    if (arguments.first.empty()) throw CLI::RequiredError("VIDEO");
    if (arguments.more.empty()) throw no_question("Is there a person in the room?");
    set_video(arguments.ask, arguments.first);
    set_questions(arguments.ask, arguments.more);
    return;
  }
  if (arguments.first.empty()) throw no_question("When did the red car arrive?");
  set_questions(arguments.ask, {arguments.first});
}

int run_ask(const AskArguments& arguments) {
  if (!arguments.camera.camera) return run_ask_video(arguments);
  if (!arguments.more.empty())
    throw UsageError("--camera takes one QUESTION, in quotes, and no VIDEO; these are " +
                     std::to_string(arguments.more.size() + 1) + " words beside the options");
  return run_ask_camera(arguments.camera, arguments.ask.questions.front(), arguments.ask.max_tokens,
                        arguments.output);
}

}  // namespace

void add_ask(CLI::App& root, Invocation& chosen) {
  CLI::App* command =
      root.add_subcommand("ask", "Ask a question about a video file, or about what a camera saw");
  command->footer(
      "Examples:\n"
      "  vigil ask clip.mp4 \"Is there a person in the room?\"\n"
      "  vigil ask clip.mp4 \"What is the person doing?\" --from 20 --to 40 --stream --stats\n"
      "  vigil ask clip.mp4 \"Is there a person in the room?\" --window 10s --stride 2s --pruning exact\n"
      "  vigil ask --camera gate-7 --since 2h \"When did the red car arrive?\"\n\n"
      "The words are the model's own; the probability of \"Yes\" is calibrated if the model's folder has a "
      "calibration.json, so a doubtful \"Yes\" may have less than one half.");
  auto arguments = std::make_shared<AskArguments>();
  command->add_option("VIDEO", arguments->first, kVideoHelp);
  command->add_option("QUESTION", arguments->more, kQuestionHelp);
  command->add_option("--output", arguments->output, "How to print the answer")
      ->check(one_of({"text", "json"}))
      ->capture_default_str();
  OptionSet of_both = options_of(*command);
  add_ask_options(*command, arguments->ask);
  add_ask_windows_options(*command, arguments->windows);
  command->add_flag("--stream", arguments->stream, "Print the answer while it is generated");
  command->add_flag("--stats", arguments->stats,
                    "Print the probability of \"Yes\" and the time of every stage to stderr");
  of_both.insert(command->get_option("--max-tokens"));
  OptionSet of_files = options_of(*command);
  add_ask_camera_options(*command, arguments->camera);
  OptionSet of_cameras = options_of(*command);
  for (const CLI::Option* option : of_files) of_cameras.erase(option);
  for (const CLI::Option* option : of_both) of_files.erase(option);
  command->callback([&chosen, arguments, command, of_files, of_cameras] {
    read_words(*arguments);
    chosen = [arguments, command, of_files, of_cameras] {
      const bool of_camera = arguments->camera.camera.has_value();
      check_together(*command, of_camera, of_camera ? of_files : of_cameras);
      return run_ask(*arguments);
    };
  });
}

}  // namespace vigil::services
