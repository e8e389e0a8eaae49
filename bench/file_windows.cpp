#include "bench/file_windows.h"

#include <limits>
#include <memory>
#include <stdexcept>
#include <utility>

#include <nlohmann/json.hpp>

#include "actors/vision/encode.h"
#include "engine/run/product_meter.h"

namespace vigil::bench {
namespace {

/// Patches of one pass of the vision tower.
constexpr std::size_t kPatches = 8;

actors::CameraPtr played_once(config::CameraSettings camera) {
  camera.stream.pace = config::Pace::fast;
  camera.stream.loop = false;
  // What a line tells is the work of its window alone.
  camera.stream.pruning.audit = 0;
  for (config::RuleSettings& rule : camera.rules) rule.explain = false;
  return std::make_shared<const actors::OwnCamera>(std::move(camera));
}

}  // namespace

FileWindows::FileWindows(Parts parts, config::CameraSettings camera)
    : parts_(std::move(parts)),
      settings_(played_once(std::move(camera))),
      watch_(std::make_shared<const actors::WatchSettings>(actors::watch_of(*settings_))),
      camera_({.camera = settings_, .watch = watch_, .shape = parts_.shape, .once = true}, parts_.open,
              parts_.clock, pulse_, damage_),
      windows_(parts_.desk, parts_.questions, {.frames_per_patch = parts_.shape.frames_per_patch}) {
  windows_.join(watch_);
  windows_.grant(std::numeric_limits<std::uint32_t>::max());
  // What was read is encoded before more is read: nobody has to be held back.
  camera_.grant(std::numeric_limits<std::uint32_t>::max() / 2);
  run::ProductMeter::start();
}

std::optional<FileWindow> FileWindows::next() {
  while (answered_.empty() && !is_over_) read();
  if (answered_.empty()) return std::nullopt;
  FileWindow first = std::move(answered_.front());
  answered_.pop_front();
  return first;
}

void FileWindows::read() {
  actors::CameraStep step = camera_.step();
  if (step.patch) patches_.push_back(std::move(step.patch));
  is_over_ = step.next == actors::CameraStep::Next::finished;
  if (is_over_ && camera_.failure()) throw std::runtime_error(*camera_.failure());
  if (patches_.size() == kPatches || is_over_) encode();
  if (!is_over_) return;
  windows_.end(watch_->name);
  ask();
}

void FileWindows::encode() {
  if (patches_.empty()) return;
  const actors::Encoded encoded = actors::encode(parts_.encoder, parts_.clock, patches_);
  if (!encoded.failures.empty()) throw std::runtime_error(encoded.failures.front().reason);
  // Both are in the order of the patches, all of which were encoded.
  std::vector<actors::PatchAck> acks = actors::acks_of(patches_, encoded);
  patches_.clear();
  auto its_ack = acks.begin();
  for (const actors::VisualPatchPtr& patch : encoded.patches) {
    groups_ += patch->tokens->kept.cells();
    encoded_ += patch->tokens->encoded;
    (its_ack++)->advice = windows_.push(*patch).advice;
    ask();
  }
  for (const actors::PatchAck& ack : acks) camera_.acknowledge(ack);
}

void FileWindows::ask() {
  while (windows_.due()) windows_.work({parts_.clock.now()});
  actors::WindowDesk::News news = windows_.take_news();
  if (!news.failures.empty()) throw std::runtime_error(news.failures.front().reason);
  for (const auto& each : news.answered) {
    const double flops = run::ProductMeter::flops();
    answered_.push_back({each.window, each.tokens, std::exchange(groups_, 0), std::exchange(encoded_, 0),
                         flops - std::exchange(flops_, flops)});
  }
}

std::string to_json(const FileWindow& window) {
  nlohmann::json line;
  line["start"] = window.window->start;
  line["end"] = window.window->end;
  line["frames"] = window.window->frames;
  for (std::size_t i = 0; i < window.window->answers.size(); ++i)
    line["probability_yes"][window.window->watch->rules[i].prompt] =
        window.window->answers[i].probability_yes;
  line["groups"] = {{"all", window.groups}, {"encoded", window.encoded}};
  line["tokens"] = {{"visual", window.tokens.visual},
                    {"new", window.tokens.fresh()},
                    {"reused", window.tokens.reused()},
                    {"refreshed", window.tokens.refreshed},
                    {"probed", window.tokens.probed}};
  line["gflop"] = window.flops / 1e9;
  return line.dump();
}

}  // namespace vigil::bench
