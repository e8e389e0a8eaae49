// vigil inspect: what a video is, how it moves, whether it is sound, and what of it a pruning policy keeps.
#include "media/inspect.h"

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "bench/pruning_report.h"
#include "cluster/process/clock.h"
#include "config/settings.h"
#include "engine/prune/pruning_policy.h"
#include "media/contact_sheet.h"
#include "media/png.h"
#include "services/command.h"
#include "services/signals.h"
#include "services/video_option.h"

namespace vigil::services {
namespace {

struct InspectArguments {
  std::string video;
  std::string output = "text";
  std::string sheet;
  std::optional<double> fps;
  media::InspectOptions options;
  /// Empty: the video itself is described.
  std::string prune;
  std::string size = "448x448";
  int frames_per_token = 2;
  /// Of codecsight.
  float motion_threshold = prune::PruningOptions().motion_threshold;
  float residual_weight = prune::PruningOptions().residual_weight;
};

/// So much of a live source, unless one says otherwise.
constexpr double kLiveSeconds = 10;

/// As the model samples it, for want of another word.
constexpr double kModelFps = 2;

/// What a pruning policy keeps. `options` has the bounds.
int run_pruning(const InspectArguments& arguments, const media::InspectOptions& options) {
  bench::PruningReportOptions report{.policy = arguments.prune,
                                     .pruning = {.anchor_phase = prune::anchor_phase(arguments.video),
                                                 .motion_threshold = arguments.motion_threshold,
                                                 .residual_weight = arguments.residual_weight},
                                     .frames_per_patch = arguments.frames_per_token,
                                     .seconds = options.seconds,
                                     .stop = options.stop};
  const std::optional<media::Size> size = parse_size(arguments.size);
  const int group = report.pruning.grid.group();
  if (!size || size->width % group != 0 || size->height % group != 0)
    throw UsageError("--size: expected WIDTHxHEIGHT in multiples of " + std::to_string(group) +
                     ", such as 448x448, not '" + arguments.size + "'");
  media::ReadOptions read;
  read.fps = arguments.fps.value_or(kModelFps);
  read.threads = options.threads;
  read.shown_name = options.shown_name;
  read.size = [size](media::Size) { return *size; };
  const auto policy = prune::make_pruning(report.policy, report.pruning);
  read.motion = policy->wants_motion();
  read.residual = policy->wants_residual();
  read.open_timeout = options.open_timeout;
  read.read_timeout = options.read_timeout;
  read.frame_timeout = options.frame_timeout;
  const auto reader = media::VideoReader::open(arguments.video, read);
  if (!report.seconds && reader->info().live) report.seconds = options.seconds_of_endless;
  media::ContactSheet sheet(24, 4, size->width);
  const bench::PruningReport result = bench::report_pruning(*reader, report, cluster::SystemClock(),
                                                            arguments.sheet.empty() ? nullptr : &sheet);
  if (!arguments.sheet.empty()) media::write_png(arguments.sheet, sheet.draw());
  std::cout << (arguments.output == "json" ? bench::to_json(result) + '\n'
                                           : reader->info().name + '\n' + bench::to_text(result))
            << std::flush;
  return kDone;
}

int run(const InspectArguments& arguments) {
  if (arguments.fps && arguments.sheet.empty() && arguments.prune.empty())
    throw UsageError("--fps is of --sheet and of --prune: give one of the two");
  media::ContactSheet sheet;
  media::InspectOptions options = arguments.options;
  if (arguments.fps) options.sheet_fps = *arguments.fps;
  options.shown_name = shown_video(arguments.video);
  if (!config::is_file(arguments.video)) {
    options.seconds_of_endless = kLiveSeconds;
    options.open_timeout = kOpenTimeout;
    options.read_timeout = kReadTimeout;
    options.frame_timeout = kFrameTimeout;
  }
  std::stop_source stop;
  options.stop = stop.get_token();
  // Before the decoder's threads. Who asks twice does not want the report either.
  const Signals signals(
      [&stop] {
        if (!stop.request_stop()) std::_Exit(kFailed);
      },
      [] { std::_Exit(kFailed); });
  if (!arguments.prune.empty()) return run_pruning(arguments, options);
  const media::InspectReport report =
      media::inspect(arguments.video, options, arguments.sheet.empty() ? nullptr : &sheet);
  if (!arguments.sheet.empty()) media::write_png(arguments.sheet, sheet.draw());
  std::cout << (arguments.output == "json" ? media::to_json(report) + '\n' : media::to_text(report))
            << std::flush;
  if (report.ended_by == media::InspectEnd::limit && !options.seconds)
    std::cerr << "vigil: it is live: " << kLiveSeconds
              << " s of it were looked at (--seconds says otherwise)\n";
  return kDone;
}

}  // namespace

void add_inspect(CLI::App& root, Invocation& chosen) {
  const auto arguments = std::make_shared<InspectArguments>();
  CLI::App& command = *root.add_subcommand("inspect", "Describe a video, with its motion");
  add_video(command, arguments->video, "A file, a URL such as rtsp:// or https://, or /dev/videoN")
      ->required();
  command.add_option("--output", arguments->output, "text, or json: one object")
      ->check(one_of({"text", "json"}))
      ->capture_default_str();
  command.add_option("--sheet", arguments->sheet,
                     "Write a PNG contact sheet: frames with their times and types; "
                     "over them, as coloured blocks, the longest motion "
                     "vectors of all frames since the picture before, and lines along "
                     "which the content moved (4 times as long). With --prune, what is kept and not encoded "
                     "is dim, the rest dark");
  command
      .add_option("--fps", arguments->fps,
                  "Samples a second: 4 for the sheet, where a field covers the time since the sample before "
                  "and more than 24 samples are thinned out evenly; 2 for --prune")
      ->check(above_zero());
  CLI::Option* prune =
      command
          .add_option(
              "--prune", arguments->prune,
              "Say instead what a pruning policy keeps: which groups of 28x28 pixels of each two sampled "
              "frames")
          ->check(one_of({prune::kPruningPolicies.begin(), prune::kPruningPolicies.end()}));
  command.add_option("--size", arguments->size, "Of the frames that the policy, and a model, sees")
      ->capture_default_str()
      ->needs(prune);
  command
      .add_option("--seconds", arguments->options.seconds,
                  "So much of the video; if left out, all of it, or 10 s of what is live, as a camera")
      ->check(above_zero());
  command
      .add_option("--frames-per-token", arguments->frames_per_token,
                  "Sampled frames that the policy's groups cover, as a visual token does")
      ->check(from_to(1, 16))
      ->capture_default_str()
      ->needs(prune);
  command
      .add_option("--motion-threshold", arguments->motion_threshold,
                  "Of codecsight: pixels of motion that a patch has to exceed")
      ->check(from_to(0, 1000))
      ->capture_default_str()
      ->needs(prune);
  command
      .add_option("--residual-weight", arguments->residual_weight,
                  "Of codecsight: pixels that a level of difference of a patch from its prediction adds")
      ->check(from_to(0, 1000))
      ->capture_default_str()
      ->needs(prune);
  command.add_option("--threads", arguments->options.threads, "Threads of the decoder")
      ->check(from_to(1, 16))
      ->capture_default_str();
  command.footer(
      "One pass over the whole file, or over the first 10 s of a camera (--seconds N: N s; Ctrl-C: what was "
      "seen until then): container, codec, frame rate and its regularity, GOP structure "
      "(key-frame distance, frame types), "
      "statistics of the codec's motion vectors, and damage. With --sheet, also a picture of it.\n"
      "Motion is in pixels from a block to where its content is taken from in the frame that it refers to; "
      "'moving' is what "
      "exceeds a quarter pixel.\n"
      "A damaged video is described as far as it can be decoded, its damage included; one that cannot be "
      "opened is an error.\n\n"
      "With --prune, 'encoded' are the groups that the model's vision tower would compute of a patch, "
      "'kept' those that the camera's stream would have a token of, if only an earlier one; 'whole' patches "
      "are encoded whole.\n\n"
      "Example: vigil inspect clip.mp4 --sheet clip.png\n"
      "Example: vigil inspect clip.mp4 --prune scene --output json");
  command.callback([arguments, &chosen] { chosen = [arguments] { return run(*arguments); }; });
}

}  // namespace vigil::services
