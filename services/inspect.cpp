// vigil inspect: what a video is, how it moves, and whether it is sound.
#include "media/inspect.h"

#include <iostream>
#include <memory>
#include <string>

#include "media/contact_sheet.h"
#include "media/png.h"
#include "services/command.h"

namespace vigil::services {
namespace {

struct InspectArguments {
  std::string video;
  std::string output = "text";
  std::string sheet;
  media::InspectOptions options;
};

int run(const InspectArguments& arguments) {
  media::ContactSheet sheet;
  const media::InspectReport report =
      media::inspect(arguments.video, arguments.options, arguments.sheet.empty() ? nullptr : &sheet);
  if (!arguments.sheet.empty()) media::write_png(arguments.sheet, sheet.draw());
  std::cout << (arguments.output == "json" ? media::to_json(report) + '\n' : media::to_text(report));
  return kDone;
}

}  // namespace

void add_inspect(CLI::App& root, Invocation& chosen) {
  const auto arguments = std::make_shared<InspectArguments>();
  CLI::App& command = *root.add_subcommand("inspect", "Describe a video, with its motion");
  command.add_option("VIDEO", arguments->video, "A file, or a URL, of any kind that FFmpeg reads")
      ->required();
  command.add_option("--output", arguments->output, "text, or json: one object")
      ->check(CLI::IsMember({"text", "json"}))
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
  command.add_option("--threads", arguments->options.threads, "Threads of the decoder")
      ->check(CLI::Range(1, 16))
      ->capture_default_str();
  command.footer(
      "One pass over the whole file: container, codec, frame rate and its regularity, GOP structure "
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
