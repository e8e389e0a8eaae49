// vigil inspect: what a video is, how it moves, and whether it is sound.
#include "media/inspect.h"

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <stop_token>
#include <string>

#include "config/settings.h"
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
  media::InspectOptions options;
};

/// So much of a live source, unless one says otherwise.
constexpr double kLiveSeconds = 10;

int run(const InspectArguments& arguments) {
  media::ContactSheet sheet;
  media::InspectOptions options = arguments.options;
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
  CLI::Option* sheet = command.add_option("--sheet", arguments->sheet,
                                          "Write a PNG contact sheet: frames with their times and types; "
                                          "over them, as coloured blocks, the longest motion "
                                          "vectors of all frames since the picture before, and lines along "
                                          "which the content moved (4 times as long)");
  command
      .add_option("--fps", arguments->options.sheet_fps,
                  "Samples a second for the sheet; a field covers the time since the sample before. More "
                  "than 24 samples are thinned out evenly")
      ->check(above_zero())
      ->capture_default_str()
      ->needs(sheet);
  command
      .add_option("--seconds", arguments->options.seconds,
                  "So much of the video; if left out, all of it, or 10 s of what is live, as a camera")
      ->check(above_zero());
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
      "Example: vigil inspect clip.mp4 --sheet clip.png");
  command.callback([arguments, &chosen] { chosen = [arguments] { return run(*arguments); }; });
}

}  // namespace vigil::services
