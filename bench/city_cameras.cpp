#include "bench/city_cameras.h"

#include <algorithm>

namespace vigil::bench {
namespace {

constexpr Nanoseconds kNever{-1};
constexpr std::string_view kName = "camera-";

double as_seconds(Nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

CityCameras::CityCameras(const VirtualTime& time, std::size_t count, std::size_t sites)
    : time_(time), sites_(sites), cameras_(count), unowned_(count), unwatched_(count) {}

std::string CityCameras::name_of(std::size_t camera) {
  const std::string digits = std::to_string(camera);
  return std::string(kName) + std::string(digits.size() < 7 ? 7 - digits.size() : 0, '0') + digits;
}

std::size_t CityCameras::index_of(const std::string& name) {
  return std::stoul(name.substr(kName.size()));
}

void CityCameras::hold(const std::string& camera, const std::string& node,
                       const cluster::PlannedCamera& entry) {
  Camera& at = cameras_[index_of(camera)];
  auto holder = std::ranges::find(at.holders, node, &Holder::node);
  if (holder == at.holders.end()) holder = at.holders.insert(at.holders.end(), {.node = node});
  holder->stream = entry.stream;
  holder->former = entry.former_stream;
  judge(at);
}

void CityCameras::release(const std::string& camera, const std::string& node) {
  Camera& at = cameras_[index_of(camera)];
  std::erase_if(at.holders, [&](const Holder& holder) { return holder.node == node; });
  judge(at);
}

void CityCameras::deliver(const std::string& camera, const std::string& node, bool to_stream,
                          bool to_former) {
  Camera& at = cameras_[index_of(camera)];
  const auto holder = std::ranges::find(at.holders, node, &Holder::node);
  if (holder == at.holders.end()) return;
  holder->to_stream = to_stream;
  holder->to_former = to_former;
  judge(at);
}

void CityCameras::set_computing(const std::string& node, bool is_there) {
  if (is_there) {
    computing_.insert(node);
  } else {
    computing_.erase(node);
  }
  for (Camera& camera : cameras_)
    if (std::ranges::any_of(camera.holders, [&](const Holder& holder) {
          return holder.stream == node || holder.former == node;
        }))
      judge(camera);
}

void CityCameras::set_power(std::size_t site, bool on) {
  for (std::size_t i = site; i < cameras_.size(); i += sites_) {
    cameras_[i].power = on;
    judge(cameras_[i]);
  }
}

bool CityCameras::has_power(const std::string& camera) const {
  return cameras_[index_of(camera)].power;
}

void CityCameras::want(std::size_t camera, bool wanted) {
  cameras_[camera].wanted = wanted;
  judge(cameras_[camera]);
}

void CityCameras::judge(Camera& camera) {
  const bool counts = camera.wanted && camera.power;
  const bool watched = std::ranges::any_of(camera.holders, [this](const Holder& holder) {
    return (holder.to_stream && computing_.contains(holder.stream)) ||
           (holder.to_former && computing_.contains(holder.former));
  });
  note(counts && camera.holders.empty(), camera.unowned, unowned_, longest_unowned_);
  note(counts && !watched, camera.unwatched, unwatched_, longest_unwatched_);
}

void CityCameras::note(bool lacks, Nanoseconds& since, std::size_t& count, Nanoseconds& longest) const {
  if (lacks == (since != kNever)) return;
  if (lacks) {
    since = time_.elapsed();
    ++count;
  } else {
    longest = std::max(longest, time_.elapsed() - std::max(since, phase_));
    since = kNever;
    --count;
  }
}

void CityCameras::begin_phase() {
  phase_ = time_.elapsed();
  longest_unowned_ = longest_unwatched_ = Nanoseconds(0);
}

double CityCameras::longest_unowned() const {
  Nanoseconds longest = longest_unowned_;
  for (const Camera& camera : cameras_)
    if (camera.unowned != kNever)
      longest = std::max(longest, time_.elapsed() - std::max(camera.unowned, phase_));
  return as_seconds(longest);
}

double CityCameras::longest_unwatched() const {
  Nanoseconds longest = longest_unwatched_;
  for (const Camera& camera : cameras_)
    if (camera.unwatched != kNever)
      longest = std::max(longest, time_.elapsed() - std::max(camera.unwatched, phase_));
  return as_seconds(longest);
}

std::size_t CityCameras::owned_twice() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      cameras_, [](const Camera& camera) { return camera.holders.size() > (camera.wanted ? 1U : 0U); }));
}

}  // namespace vigil::bench
