#include "actors/camera/recorder.h"

#include <cmath>
#include <utility>

#include "actors/camera/source_options.h"

namespace vigil::actors {
namespace {

/// Seconds that the time of packets may be off before it is set anew: more than networks make.
constexpr double kMostOff = 0.5;

}  // namespace

Recorder::Recorder(RecorderOptions options, PacketReaderFactory open, const base::Clock& clock,
                   const Pulse& pulse, RecorderListener& listener)
    : options_(std::move(options)),
      open_(std::move(open)),
      clock_(clock),
      pulse_(pulse),
      listener_(listener),
      backoff_(options_.backoff) {
  if (!backoff_) backoff_ = std::make_shared<Backoff>(options_.camera->stream.reconnect, options_.seed);
}

Recorder::Step Recorder::step() {
  if (pulse_.cancelled().stop_requested()) {
    reader_.reset();
    return {Step::Next::finished, {}};
  }
  if (!reader_ && clock_.now() < retry_at_) return {Step::Next::rest, retry_at_};
  try {
    if (reader_) {
      read();
    } else {
      connect();
    }
  } catch (const media::Error& error) {
    // Of one that was cancelled the next step finds it out.
    if (error.kind() != media::Error::Kind::cancelled) return fail(error.what(), error.kind());
  }
  return {};
}

void Recorder::connect() {
  const config::MaskedText url = options_.camera->record_url();
  media::ReadOptions read_options = source_options(*options_.camera, url, pulse_);
  read_options.history = options_.history;
  offset_.reset();
  reader_ = open_(url.value, read_options);
}

void Recorder::read() {
  const auto packet = reader_->next();
  if (!packet) {
    const std::string& why = reader_->broken_by();
    throw media::Error(why.empty() ? "the source ended" : "the source ended: " + why);
  }
  anchor(*packet);
  if (recording_ == true) return;
  backoff_->reset();
  recording_ = true;
  listener_.on_recording(true, "");
}

void Recorder::anchor(const media::KeptPacket& packet) {
  // Before its first frame, a camera has no time.
  if (pulse_.position() < 0 || !packet.timestamp) return;
  // Nothing is kept before the first key frame.
  if (!offset_ && !packet.key) return;
  const double now =
      pulse_.position() + std::chrono::duration<double>(clock_.now() - pulse_.position_at()).count();
  if (offset_ && std::abs(*offset_ + packet.seconds - now) <= kMostOff) return;
  offset_ = now - packet.seconds;
  options_.history->anchor(packet.timestamp, now);
}

Recorder::Step Recorder::fail(const std::string& reason, media::Error::Kind kind) {
  reader_.reset();
  if (recording_ != false) {
    recording_ = false;
    listener_.on_recording(false, reason);
  }
  retry_at_ = next_attempt(*backoff_, kind, clock_.now());
  return {Step::Next::rest, retry_at_, kind == media::Error::Kind::no_descriptor};
}

}  // namespace vigil::actors
