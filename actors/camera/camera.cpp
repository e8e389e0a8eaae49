#include "actors/camera/camera.h"

#include <algorithm>
#include <utility>

#include "actors/camera/source_options.h"
#include "base/url_mask.h"

namespace vigil::actors {
namespace {

/// Seconds that a live source's time may be behind the clock's before it is set. More than what the jitter of
/// a network and an overload for a moment make; the reader closes gaps from here on.
constexpr double kMostLag = 10;

/// Patches are this far apart on the wall, at least: frames that came at once are of one moment there, and no
/// two windows may end in one. A wall clock that was set back by more than a second is believed.
constexpr auto kApart = std::chrono::milliseconds(1);
constexpr auto kSetBack = std::chrono::seconds(1);

double seconds_between(base::Clock::TimePoint from, base::Clock::TimePoint to) {
  return std::chrono::duration<double>(to - from).count();
}

base::Clock::TimePoint::duration to_duration(double seconds) {
  return std::chrono::duration_cast<base::Clock::TimePoint::duration>(std::chrono::duration<double>(seconds));
}

/// Marks the time within a source's calls.
class Awaiting {
 public:
  Awaiting(Pulse& pulse, const base::Clock& clock) : pulse_(pulse) { pulse_.await(clock.now()); }
  ~Awaiting() { pulse_.awaited(); }
  Awaiting(const Awaiting&) = delete;
  Awaiting& operator=(const Awaiting&) = delete;

 private:
  Pulse& pulse_;
};

}  // namespace

Camera::Camera(CameraOptions options, ReaderFactory open, const base::Clock& clock, Pulse& pulse,
               CameraListener& listener)
    : options_(std::move(options)),
      open_(std::move(open)),
      clock_(clock),
      pulse_(pulse),
      listener_(listener),
      backoff_(options_.backoff),
      paced_(false),
      lossless_(options_.watch->lossless),
      retrying_(options_.retrying) {
  choice_ = PatchChoice(pruning(), options_.shape.grid, window_seconds(), anchors());
  choice_.audit(audits_of(*options_.camera));
  choice_.keep(options_.camera->stream.pruning.kept);
  choice_.remember(is_remembered());
  if (!backoff_) backoff_ = std::make_shared<Backoff>(options_.camera->stream.reconnect, options_.seed);
  // A successor of a camera that failed goes on behind its last frame.
  position_ = pulse_.position();
  if (position_ >= 0) {
    epoch_ = pulse_.position_at() - to_duration(position_);
    epoch_wall_ =
        clock_.wall() - std::chrono::duration_cast<base::Clock::WallTime::duration>(clock_.now() - *epoch_);
  }
}

std::unique_ptr<prune::PruningPolicy> Camera::pruning() const {
  return pruning_of(*options_.camera, options_.shape.grid, patch_seconds(), choice_.less());
}

void Camera::alter(CameraPtr camera, WatchPtr watch) {
  const bool other_length = camera->stream.window.length != options_.camera->stream.window.length;
  const bool other_audit = camera->stream.pruning != options_.camera->stream.pruning ||
                           camera->stream.window.memory != options_.camera->stream.window.memory;
  // Whoever computes refuses the fence before: what is begun goes on with the new one.
  if (patch_ && fence_of(patch_->watch.version) != fence_of(watch->version)) patch_->watch = watch->ref();
  options_.camera = std::move(camera);
  options_.watch = std::move(watch);
  if (other_length) choice_.change(pruning(), window_seconds(), anchors());
  choice_.keep(options_.camera->stream.pruning.kept);
  choice_.remember(is_remembered());
  if (other_length || other_audit) choice_.audit(audits_of(*options_.camera));
}

CameraStep Camera::step() {
  if (finished_) return {CameraStep::Next::finished, {}, nullptr};
  if (stopping_) {
    close();
    enter(CameraState::down, "stopped");
    return finish();
  }
  if (!reader_) {
    if (clock_.now() < retry_at_) return {CameraStep::Next::rest, retry_at_, nullptr};
    return connect();
  }
  if (held_ && clock_.now() < held_->due) return {CameraStep::Next::wait, held_->due, nullptr};
  if (lossless_ && !patch_ && credits_ == 0) return {CameraStep::Next::credit, {}, nullptr};
  if (!held_) return read();
  Held due = *std::exchange(held_, std::nullopt);
  if (!due.counted) listener_.on_frame();
  return accept(std::move(due.frame), due.due);
}

CameraStep Camera::connect() {
  const config::MaskedText url = options_.camera->url();
  // Until it delivers, a camera that could not be reached stays down, however often it is tried.
  if (!continues_ && !retrying_) enter(CameraState::connecting, base::mask_source(url.shown));
  media::ReadOptions read_options = source_options(*options_.camera, url, pulse_);
  read_options.fps = options_.camera->stream.fps;
  read_options.threads = options_.camera->stream.threads;
  if (options_.shape.size)
    read_options.size = [size = options_.shape.size,
                         name = base::mask_source(url.shown)](media::Size source) {
      try {
        return size(source);
      } catch (const std::invalid_argument& error) {
        // As of whatever else is wrong with the source: it is named, and tried again.
        throw media::Error(name + ": " + error.what());
      }
    };
  read_options.motion = choice_.wants_motion();
  read_options.residual = choice_.wants_residual();
  read_options.history = options_.history;
  read_options.on_packet = [&pulse = pulse_, &clock = clock_](const media::PacketInfo&) {
    pulse.await(clock.now());
  };
  try {
    const Awaiting awaiting(pulse_, clock_);
    reader_ = open_(url.value, read_options);
  } catch (const media::Error& error) {
    return lose(error);
  }
  reported_damage_ = 0;
  delivered_ = false;
  const bool recorded = options_.camera->is_file() || reader_->info().duration_seconds > 0;
  paced_ = recorded && options_.camera->stream.pace == config::Pace::realtime;
  continue_time();
  return {};
}

// A loop goes on exactly where the last pass ended; a source that was lost goes on after the time that it was
// away, if time has a meaning for it.
void Camera::continue_time() {
  const TimePoint now = clock_.now();
  if (!epoch_) {
    epoch_ = now;
    epoch_wall_ = clock_.wall();
    offset_ = 0;
    offset_due_ = now;
    // Its time began with the owner before this one, and is by now where the clock says.
    if (const auto& origin = options_.camera->tenure.origin; origin && *origin < epoch_wall_) {
      const auto since = epoch_wall_ - *origin;
      epoch_ = now - std::chrono::duration_cast<TimePoint::duration>(since);
      epoch_wall_ = *origin;
      offset_ = seconds_between(*epoch_, now);
    }
  } else if (continues_) {
    offset_due_ += to_duration(position_ + frame_interval() - offset_);
    offset_ = position_ + frame_interval();
  } else {
    offset_ = position_ < 0 ? 0 : position_ + frame_interval();
    if (!lossless_) offset_ = std::max(offset_, seconds_between(*epoch_, now));
    offset_due_ = now;
    choice_.missed();
  }
  continues_ = false;
}

CameraStep Camera::read() {
  std::optional<media::SampledFrame> frame;
  try {
    const Awaiting awaiting(pulse_, clock_);
    frame = reader_->next();
  } catch (const media::Error& error) {
    return lose(error);
  }
  const std::uint64_t damage = reader_->stats().damaged_packets;
  if (damage > reported_damage_) {
    listener_.on_damaged_packets(damage - reported_damage_);
    reported_damage_ = damage;
  }
  if (!frame) return end_of_source();
  if (!paced_) {
    listener_.on_frame();
    return accept(std::move(*frame), clock_.now());
  }
  const TimePoint due = offset_due_ + to_duration(frame->seconds);
  held_ = Held{std::move(*frame), due, false};
  return {};
}

CameraStep Camera::accept(media::SampledFrame frame, TimePoint due) {
  if (!delivered_) {
    delivered_ = true;
    backoff_->reset();
    retrying_ = false;
  }
  enter(CameraState::up, "");
  const bool gap = catch_up(frame.seconds);
  if (is_ahead(frame.seconds)) {
    listener_.on_dropped(1, "ahead");
    choice_.missed();
    return {};
  }
  const double seconds = std::max(position_, offset_ + frame.seconds);
  position_ = seconds;
  if (options_.history) options_.history->anchor(frame.timestamp, seconds);
  const TimePoint now = clock_.now();
  pulse_.set_position(seconds, now);
  if (!patch_) {
    if (!lossless_ && !has_credit_for_stride(seconds)) {
      listener_.on_dropped(1, "no_credit");
      choice_.missed();
      return {};
    }
    --credits_;
    patch_ = std::make_shared<FramePatch>();
    patch_->watch = options_.watch->ref();
    patch_->seconds = seconds;
    patch_->duration = patch_duration(*options_.watch, options_.shape.frames_per_patch);
    patch_->generation = options_.generation;
  } else if (gap || frame.image->size != patch_->frames.front().image->size) {
    // What was begun before a gap in time, or at another size, goes out as it is.
    held_ = Held{std::move(frame), due, true};
    return {CameraStep::Next::again, {}, take_patch()};
  }
  // Played faster than time, frames are as far apart on the wall as in the stream.
  const auto since = std::chrono::duration_cast<base::Clock::WallTime::duration>(to_duration(seconds));
  patch_->captured = {due, lossless_ ? epoch_wall_ + since : wall_behind_last_patch()};
  patch_->frames.push_back(std::move(frame));
  if (std::cmp_less(patch_->frames.size(), options_.shape.frames_per_patch)) return {};
  return {CameraStep::Next::again, {}, take_patch()};
}

bool Camera::has_credit_for_stride(double seconds) {
  const auto& window = options_.watch->window;
  const std::int64_t stride = stream::SlidingWindow::stride_at(window_shape(*options_.watch), seconds);
  if (stride != stride_) {
    stride_ = stride;
    const int needed = patches_in(*options_.watch, window.stride, options_.shape.frames_per_patch);
    dropping_ = std::cmp_less(credits_, needed);
  } else if (credits_ == 0) {
    dropping_ = true;
  }
  return !dropping_;
}

// A live source's time goes on while it sends nothing and when its clock is set: by the clock of this
// machine. True if it was behind by so much that there is a gap now.
bool Camera::catch_up(double seconds) {
  if (options_.camera->is_file()) return false;
  const double lag = seconds_between(*epoch_, clock_.now()) - (offset_ + seconds);
  if (lag <= kMostLag) return false;
  offset_ += lag;
  return true;
}

// What a server kept, it sends at once to whoever connects, as fast as it can: the past, and not the future.
// Were all of it played, the camera's time would be ahead of the clock's, and that of its next owner. So it
// is set back, and what would have been then is left out.
bool Camera::is_ahead(double seconds) {
  if (options_.camera->is_file() || paced_) return false;
  const double most = std::max(frame_interval(), base::seconds(options_.watch->window.stride) / 2);
  const double lead = offset_ + seconds - seconds_between(*epoch_, clock_.now());
  if (lead > most) {
    offset_ -= lead;
    set_back_ = true;
  }
  set_back_ = set_back_ && offset_ + seconds <= position_;
  return set_back_;
}

base::Clock::WallTime Camera::wall_behind_last_patch() const {
  const base::Clock::WallTime now = clock_.wall();
  return last_wall_ - now < kSetBack ? std::max(now, last_wall_ + kApart) : now;
}

FramePatchPtr Camera::take_patch() {
  last_wall_ = patch_->captured.wall;
  patch_->sequence = sequence_++;
  return choice_.choose(std::exchange(patch_, nullptr));
}

void Camera::acknowledge(const PatchAck& ack) {
  if (ack.generation != options_.generation) return;
  const int less = choice_.less();
  choice_.hear(ack);
  if (choice_.less() != less) choice_.change(pruning(), window_seconds(), anchors());
  if (ack.outcome != PatchOutcome::lost) grant(1);
}

CameraStep Camera::end_of_source() {
  const std::string why = reader_->stats().broken_by;
  if (!options_.camera->is_file()) return fail(why.empty() ? "the source ended" : "the source ended: " + why);
  if (!delivered_) return fail("no frame in the whole source");
  close();
  if (options_.once || !options_.camera->stream.loop) {
    const std::string early = "the file ended early: " + why;
    enter(CameraState::down, why.empty() ? "end of file" : early);
    if (options_.once && !why.empty()) failure_ = early;
    return finish();
  }
  continues_ = true;
  CameraStep step;
  if (patch_) step.patch = take_patch();
  return step;
}

CameraStep Camera::lose(const media::Error& error) {
  if (error.kind() != media::Error::Kind::cancelled) return fail(error.what(), error.kind());
  stopping_ = true;
  return {};
}

CameraStep Camera::fail(const std::string& reason, media::Error::Kind kind) {
  close();
  enter(CameraState::down, reason);
  // A file that cannot be read now will not be readable later in the same run.
  if (options_.once && options_.camera->is_file()) {
    failure_ = reason;
    return finish();
  }
  listener_.on_reconnect();
  retrying_ = true;
  retry_at_ = next_attempt(*backoff_, kind, clock_.now());
  CameraStep step{CameraStep::Next::rest, retry_at_, nullptr, kind == media::Error::Kind::no_descriptor};
  if (patch_) step.patch = take_patch();
  return step;
}

CameraStep Camera::finish() {
  finished_ = true;
  CameraStep step{CameraStep::Next::finished, {}, nullptr};
  if (patch_) step.patch = take_patch();
  return step;
}

void Camera::close() {
  reader_.reset();
  held_.reset();
}

void Camera::enter(CameraState state, const std::string& reason) {
  if (state == state_ && reason == reason_) return;
  state_ = state;
  reason_ = reason;
  listener_.on_state(state, reason);
}

}  // namespace vigil::actors
