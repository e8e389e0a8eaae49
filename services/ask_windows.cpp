#include "services/ask_windows.h"

#include <cstdio>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "base/duration.h"
#include "bench/file_windows.h"
#include "cluster/process/clock.h"
#include "engine/engine.h"
#include "services/command.h"
#include "services/frame_shape.h"
#include "services/pruning_option.h"
#include "services/video_option.h"

namespace vigil::services {
namespace {

config::CameraSettings camera_of(const AskOptions& ask, const AskWindowsOptions& options) {
  config::CameraSettings camera;
  camera.name = "video";
  camera.inputs = {{{ask.clip.video, shown_video(ask.clip.video)}, {config::Role::detect}}};
  camera.stream.fps = ask.clip.fps;
  camera.stream.threads = ask.clip.threads;
  camera.stream.window = {duration_of("--window", options.window), duration_of("--stride", options.stride)};
  camera.stream.pruning = options.pruning;
  if (!camera.is_file())
    throw UsageError("--window is of files: a camera is asked about its windows by vigil run");
  if (ask.clip.from || ask.clip.to)
    throw UsageError("--window is of the whole file: without --from and --to");
  if (camera.stream.window.length < camera.stream.window.stride)
    throw UsageError("--stride is longer than --window");
  for (const std::string& question : ask.questions) {
    config::RuleSettings& rule = camera.rules.emplace_back();
    rule.name = "question-" + std::to_string(camera.rules.size());
    rule.prompt = question;
  }
  return camera;
}

std::string to_text(const bench::FileWindow& window) {
  char line[160];
  std::string text;
  const actors::WindowAnswers& of = *window.window;
  for (std::size_t i = 0; i < of.answers.size(); ++i) {
    std::snprintf(line, sizeof line, "%8.1f -%8.1f s  %.3f  ", of.start, of.end,
                  static_cast<double>(of.answers[i].probability_yes));
    text += line + of.watch->rules[i].prompt + '\n';
  }
  std::snprintf(line, sizeof line,
                "%21s encoded %lld of %lld groups; %lld tokens: %lld new, %lld refreshed; %.1f GFLOP\n", "",
                static_cast<long long>(window.encoded), static_cast<long long>(window.groups),
                static_cast<long long>(window.tokens.visual), static_cast<long long>(window.tokens.fresh()),
                static_cast<long long>(window.tokens.refreshed), window.flops / 1e9);
  return text + line;
}

}  // namespace

void add_ask_windows_options(CLI::App& command, AskWindowsOptions& options) {
  CLI::Option* window = command.add_option(
      "--window", options.window,
      "Ask about every window of this length, such as 40s, as of a camera: how likely Yes is, without the "
      "words of an answer");
  std::vector<CLI::Option*> others = add_pruning(command, options.pruning);
  others.push_back(
      command.add_option("--stride", options.stride, "A window ends every so often")->capture_default_str());
  for (CLI::Option* option : others) option->needs(window);
}

int run_ask_windows(const AskOptions& ask, const AskWindowsOptions& options, const std::string& output) {
  const config::CameraSettings camera = camera_of(ask, options);
  engine::Engine engine = make_engine(ask);
  for (const std::string& warning : engine.warnings) std::cerr << "vigil: " << warning << '\n';
  const cluster::SystemClock clock;
  bench::FileWindows windows({.encoder = *engine.encoder,
                              .desk = *engine.language.desk,
                              .questions = *engine.language.questions,
                              .open = media::VideoReader::open,
                              .shape = frame_shape(*engine.language.model->folder),
                              .clock = clock},
                             camera);
  while (const std::optional<bench::FileWindow> window = windows.next())
    std::cout << (output == "json" ? bench::to_json(*window) + '\n' : to_text(*window)) << std::flush;
  if (windows.damaged_packets() > 0)
    std::cerr << "vigil: " << camera.url().shown << ": " << windows.damaged_packets()
              << " damaged packets passed over\n";
  return kDone;
}

}  // namespace vigil::services
