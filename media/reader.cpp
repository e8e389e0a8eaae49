// The reader behind media.h: packets -> decoder -> timeline -> sampler -> scaler.

extern "C" {
#include <libavutil/pixdesc.h>
}

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <deque>
#include <future>
#include <utility>

#include "media/decoder.h"
#include "media/input.h"
#include "media/lookahead.h"
#include "media/media.h"
#include "media/residual.h"
#include "media/sampler.h"
#include "media/scale_thread.h"
#include "media/scaler.h"
#include "media/schemes.h"
#include "media/timeline.h"
#include "media/vectors.h"

namespace vigil::media {
namespace {

/// A lasting step of timestamps larger than this is closed: in containers whose clock may be set anew
/// (MPEG-TS, live streams), and in all others. FFmpeg's own program takes the same values.
constexpr double kLargestGapLive = 10.0;
constexpr double kLargestGapFile = 30.0 * 3600;
/// Seeking pays from here on; and how far before the wanted time to go in turn, in seconds.
constexpr double kSeekFrom = 2.0;
constexpr double kSeekBack[] = {0, 4, 20};
/// When the container tells no rate.
constexpr double kUsualFrameDuration = 1.0 / 25;
/// Packets in a row that cannot be decoded after others could: the source has changed what it sends.
constexpr std::uint64_t kMostUndecodable = 100;
/// Samples that may wait to be scaled while decoding goes on.
constexpr std::size_t kMostInScaling = 3;

SourceInfo describe(const Input& input, const std::string& url) {
  const AVFormatContext& format = input.format();
  const AVStream& stream = input.stream();
  const AVCodecParameters& parameters = *stream.codecpar;
  SourceInfo info;
  info.name = input.name();
  info.container = format.iformat->name;
  info.codec = avcodec_get_name(parameters.codec_id);
  if (const char* profile = avcodec_profile_name(parameters.codec_id, parameters.profile))
    info.profile = profile;
  if (const char* pixels = av_get_pix_fmt_name(static_cast<AVPixelFormat>(parameters.format)))
    info.pixel_format = pixels;
  info.size = {parameters.width, parameters.height};
  const AVRational rate = stream.avg_frame_rate.num > 0 ? stream.avg_frame_rate : stream.r_frame_rate;
  if (rate.num > 0 && rate.den > 0) info.average_fps = av_q2d(rate);
  if (stream.duration != AV_NOPTS_VALUE && stream.duration > 0) {
    info.duration_seconds = static_cast<double>(stream.duration) * av_q2d(stream.time_base);
  } else if (format.duration != AV_NOPTS_VALUE && format.duration > 0) {
    info.duration_seconds = static_cast<double>(format.duration) / AV_TIME_BASE;
  }
  const Scheme* scheme = scheme_of(url);
  const bool streamed = scheme != nullptr && !scheme->is_local() && scheme->kind != Scheme::Kind::http;
  info.live = streamed || info.duration_seconds <= 0;
  info.bit_rate = parameters.bit_rate > 0 ? parameters.bit_rate : format.bit_rate;
  info.exports_motion = exports_motion(parameters.codec_id);
  return info;
}

class Reader final : public VideoReader {
 public:
  Reader(const std::string& url, const ReadOptions& options);

  const SourceInfo& info() const override { return info_; }
  std::optional<SampledFrame> next() override;
  const ReadStats& stats() const override { return stats_; }
  const std::vector<FrameMotion>& rest() const override { return motion_; }

 private:
  /// A decoded frame with its motion; its time is known once the timeline is certain of it.
  struct Decoded {
    Frame frame;
    FrameMotion motion;
    /// In seconds of the source's clock, if it tells one.
    std::optional<double> timestamp;
    double duration = 0;
    double seconds = 0;
  };

  /// A sample whose picture is still in work.
  struct Scaling {
    SampledFrame sample;
    std::future<Image> image;
  };

  Decoder open_decoder() const;
  template <class F>
  Decoder::Result decoding(F&& call) const;
  bool enter_at(double seconds);
  void step();
  void feed();
  void read_ahead();
  bool may_be_sampled() const;
  void on_frame(Frame frame);
  void take_measured();
  void place(Decoded decoded);
  void present(Decoded decoded);
  void finish();
  void emit(Decoded decoded);
  std::future<Image> scale(Frame frame, Size size);
  bool front_is_ready();
  void count_damage(const std::string& why);
  void check_that_frames_come() const;
  void note_decoder_damage();

  ReadOptions options_;
  std::unique_ptr<Input> input_;
  Decoder decoder_;
  SourceInfo info_;
  ReadStats stats_;
  std::shared_ptr<const std::string> source_;
  double time_base_;

  Lookahead ahead_;
  bool all_read_ = false;
  /// Marked packets that are counted already, before the decoder stumbles over them too.
  std::uint64_t expected_damage_ = 0;
  std::uint64_t decoder_damage_ = 0;
  /// Reading began in the middle.
  bool entered_ = false;

  Timeline timeline_;
  /// Timestamp of second 0, while timestamps are regular enough to tell a frame's time from its packet.
  std::optional<double> origin_;
  bool regular_ = true;
  /// Measures, if that is wanted; and those that wait for it.
  std::optional<ResidualMeter> residuals_;
  std::deque<Decoded> unmeasured_;
  /// Presented so far, without a time yet.
  std::deque<Decoded> uncertain_;

  Sampler sampler_;
  /// The last frame in order of presentation; sampled or not when the next one tells until when it was shown.
  std::optional<Decoded> held_;
  std::vector<FrameMotion> motion_;
  Size decoded_size_;
  Scaler scaler_;
  std::deque<Scaling> samples_;
  bool done_ = false;
  /// Damaged packets since the last frame.
  std::uint64_t undecodable_ = 0;
  /// When the last frame was decoded, or opening began.
  std::chrono::steady_clock::time_point last_frame_ = std::chrono::steady_clock::now();
  /// Only with more than one thread: scaling must not keep the decoder's threads waiting.
  std::optional<ScaleThread> scale_thread_;
};

double largest_gap(const Input& input) {
  const bool may_be_set = !input.seekable() || (input.format().iformat->flags & AVFMT_TS_DISCONT) != 0;
  return may_be_set ? kLargestGapLive : kLargestGapFile;
}

ReadOptions checked(const ReadOptions& options) {
  if (options.threads < 1) throw std::invalid_argument("decoding needs at least one thread");
  if (options.residual && !options.motion)
    throw std::invalid_argument("without motion there is no prediction to measure");
  return options;
}

Decoder Reader::open_decoder() const {
  try {
    return Decoder(input_->codec(), input_->stream(), options_.threads, options_.motion,
                   options_.decoder_memory);
  } catch (const std::runtime_error& error) {
    throw Error(input_->name() + ": cannot decode " + input_->codec().name + ": " + error.what());
  }
}

template <class F>
Decoder::Result Reader::decoding(F&& call) const {
  try {
    return std::forward<F>(call)();
  } catch (const std::runtime_error& error) {
    throw Error(input_->name() + ": " + error.what());
  }
}

Reader::Reader(const std::string& url, const ReadOptions& options)
    : options_(checked(options)),
      input_(std::make_unique<Input>(url, options_)),
      decoder_(open_decoder()),
      info_(describe(*input_, url)),
      source_(std::make_shared<const std::string>(input_->name())),
      time_base_(av_q2d(input_->stream().time_base)),
      // A camera's frames must not wait for packets that are still to be sent.
      ahead_(input_->seekable() && decoder_.can_spare_pixels()
                 ? static_cast<std::size_t>(decoder_.reorder_depth()) + 2
                 : 1),
      timeline_(largest_gap(*input_)),
      sampler_(options_.fps, options_.from, options_.to) {
  if (options_.from >= kSeekFrom && input_->seekable() && !enter_at(options_.from)) {
    input_.reset();  // some sources cannot be opened twice
    input_ = std::make_unique<Input>(url, options_);
  }
  if (options_.threads > 1 && options_.pixels) scale_thread_.emplace();
  if (options_.residual && info_.exports_motion) residuals_.emplace();
}

// Enters a file at the key frame before `seconds`; false if the container does not lead to one.
bool Reader::enter_at(double seconds) {
  const AVStream& stream = input_->stream();
  if (stream.start_time == AV_NOPTS_VALUE) return false;
  // A time that no timestamp can hold is as good as the farthest one.
  const auto in_time_base = [&](double time) {
    return static_cast<std::int64_t>(std::clamp(std::floor(time / time_base_), -0x1p62, 0x1p62));
  };
  const std::int64_t target = av_sat_add64(stream.start_time, in_time_base(seconds));
  // Containers without an index lead to any frame: the next key frame may come too late, so try further back.
  for (const double back : kSeekBack) {
    if (back >= seconds || !input_->seek(av_sat_sub64(target, in_time_base(back)))) return false;
    Packet packet = make_packet();
    while (input_->read(*packet) == Input::Read::packet && packet->pts != AV_NOPTS_VALUE &&
           packet->pts <= target) {
      if ((packet->flags & AV_PKT_FLAG_KEY) == 0) continue;
      ++stats_.packets;
      ahead_.push(std::move(packet));
      origin_ = static_cast<double>(stream.start_time) * time_base_;
      timeline_ = Timeline(largest_gap(*input_), origin_);
      entered_ = true;
      return true;
    }
  }
  return false;
}

// Decoding goes on while the oldest sample is being scaled, but a camera's sample never waits for the next
// packet.
bool Reader::front_is_ready() {
  if (samples_.empty()) return false;
  const std::future<Image>& image = samples_.front().image;
  return !image.valid() || !input_->seekable() || samples_.size() >= kMostInScaling ||
         image.wait_for(std::chrono::seconds(0)) != std::future_status::timeout;
}

std::optional<SampledFrame> Reader::next() {
  while (!done_ && !front_is_ready()) step();
  if (samples_.empty()) return std::nullopt;
  Scaling front = std::move(samples_.front());
  samples_.pop_front();
  if (front.image.valid()) {
    try {
      front.sample.image = std::make_shared<const Image>(front.image.get());
    } catch (const std::runtime_error& error) {
      throw Error(input_->name() + ": " + error.what());
    }
  }
  return std::move(front.sample);
}

std::future<Image> Reader::scale(Frame frame, Size size) {
  const Size wanted = options_.size ? options_.size(size) : size;
  if (wanted.width < 1 || wanted.height < 1)
    throw std::invalid_argument("the size policy gave an empty picture");
  if (scale_thread_) return scale_thread_->start(std::move(frame), wanted);
  return std::async(std::launch::deferred,
                    [this, wanted, frame = std::move(frame)] { return scaler_.convert(*frame, wanted); });
}

void Reader::count_damage(const std::string& why) {
  ++stats_.damaged_packets;
  stats_.last_damage = why;
}

// Damage that the decoder met and that the demuxer has not marked before. After a seek, frames before the
// range may refer to frames that were never read: that is no damage of the source.
void Reader::note_decoder_damage() {
  const std::uint64_t all = decoder_.damaged_packets();
  std::uint64_t fresh = all - decoder_damage_;
  decoder_damage_ = all;
  undecodable_ += fresh;
  if (entered_ && !held_ && stats_.sampled_frames == 0) return;
  const std::uint64_t expected = std::min(fresh, expected_damage_);
  expected_damage_ -= expected;
  for (fresh -= expected; fresh > 0; --fresh) count_damage(decoder_.damage());
}

void Reader::step() {
  Frame frame = make_frame();
  const Decoder::Result result = decoding([&] { return decoder_.receive(*frame); });
  note_decoder_damage();
  switch (result) {
    case Decoder::Result::ok:
      on_frame(std::move(frame));
      break;
    case Decoder::Result::damaged:
      break;
    case Decoder::Result::again:
      feed();
      break;
    case Decoder::Result::end:
      finish();
      break;
  }
}

void Reader::read_ahead() {
  while (!all_read_ && !ahead_.full()) {
    Packet packet = make_packet();
    switch (input_->read(*packet)) {
      case Input::Read::packet:
        ++stats_.packets;
        if ((packet->flags & AV_PKT_FLAG_CORRUPT) != 0) {
          count_damage(input_->damage());
          ++expected_damage_;
        }
        ahead_.push(std::move(packet));
        break;
      case Input::Read::damaged:
        count_damage(input_->damage());
        break;
      case Input::Read::end:
        all_read_ = true;
        stats_.broken_by = input_->damage();
        if (!stats_.broken_by.empty()) count_damage(stats_.broken_by);
        break;
    }
  }
}

// Whether the frame of the next packet can be a sample, as far as its timestamp tells.
bool Reader::may_be_sampled() const {
  if (!regular_ || !origin_ || stats_.sampled_frames == 0 || timeline_.jumps() > 0) return true;
  const std::optional<std::int64_t> following = ahead_.following();
  if (!following) return true;
  return sampler_.wants(static_cast<double>(ahead_.front().pts) * time_base_ - *origin_,
                        static_cast<double>(*following) * time_base_ - *origin_);
}

void Reader::check_that_frames_come() const {
  if (!input_->seekable() && stats_.decoded_frames > 0 && undecodable_ >= kMostUndecodable) {
    throw Error(input_->name() + ": no packet can be decoded any more: " + stats_.last_damage);
  }
  if (options_.frame_timeout <= std::chrono::milliseconds::zero() ||
      std::chrono::steady_clock::now() - last_frame_ <= options_.frame_timeout) {
    return;
  }
  char text[64];
  std::snprintf(text, sizeof text, "no packet of the last %.2f s could be decoded",
                std::chrono::duration<double>(options_.frame_timeout).count());
  throw Error(input_->name() + ": " + text + (stats_.last_damage.empty() ? "" : ": " + stats_.last_damage),
              Error::Kind::timeout);
}

void Reader::feed() {
  read_ahead();
  check_that_frames_come();
  if (ahead_.empty()) {
    decoding([&] { return decoder_.send(nullptr, true); });
  } else {
    // Without motion a frame that does not matter is not even decoded. A residual is one of all pixels, so
    // that it does not depend on which frames are sampled.
    const bool looked_at = options_.pixels || !options_.motion;
    const bool matters = residuals_ || (looked_at && (!decoder_.can_spare_pixels() || may_be_sampled()));
    const auto sent = decoding([&] { return decoder_.send(&ahead_.front(), matters); });
    if (sent != Decoder::Result::again) ahead_.pop();
  }
  note_decoder_damage();
}

void Reader::on_frame(Frame frame) {
  ++stats_.decoded_frames;
  last_frame_ = std::chrono::steady_clock::now();
  undecodable_ = 0;
  const Size size{frame->width, frame->height};
  if (stats_.decoded_frames > 1 && size != decoded_size_) ++stats_.size_changes;
  decoded_size_ = size;

  Decoded decoded;
  if (frame->best_effort_timestamp != AV_NOPTS_VALUE) {
    decoded.timestamp = static_cast<double>(frame->best_effort_timestamp) * time_base_;
    if (!origin_) origin_ = decoded.timestamp;
  } else {
    regular_ = false;
  }
  decoded.duration = static_cast<double>(duration_of(*frame)) * time_base_;
  if (!(decoded.duration > 0))
    decoded.duration = info_.average_fps > 0 ? 1 / info_.average_fps : kUsualFrameDuration;
  decoded.motion = motion_of(*frame);
  decoded.frame = std::move(frame);
  if (!residuals_) return place(std::move(decoded));
  residuals_->push(*decoded.frame, std::move(decoded.motion), decoder_.references());
  unmeasured_.push_back(std::move(decoded));
  take_measured();
}

void Reader::take_measured() {
  while (std::optional<FrameMotion> motion = residuals_->pop()) {
    unmeasured_.front().motion = std::move(*motion);
    place(std::move(unmeasured_.front()));
    unmeasured_.pop_front();
  }
}

void Reader::place(Decoded decoded) {
  const std::optional<double> timestamp = decoded.timestamp;
  const double duration = decoded.duration;
  uncertain_.push_back(std::move(decoded));
  for (const double seconds : timeline_.push(timestamp, duration)) {
    uncertain_.front().seconds = seconds;
    present(std::move(uncertain_.front()));
    uncertain_.pop_front();
  }
  stats_.timestamp_jumps = timeline_.jumps();
}

void Reader::present(Decoded decoded) {
  if (done_) return;
  if (held_ && sampler_.take(held_->seconds, decoded.seconds)) emit(std::move(*held_));
  held_.reset();
  if (sampler_.begins_after_range(decoded.seconds)) {
    done_ = true;
    return;
  }
  if (sampler_.begins_before_range(decoded.seconds)) return;
  decoded.motion.seconds = decoded.seconds;
  motion_.push_back(std::move(decoded.motion));
  held_ = std::move(decoded);
}

void Reader::finish() {
  if (residuals_) {
    residuals_->finish();
    take_measured();
  }
  for (const double seconds : timeline_.finish()) {
    uncertain_.front().seconds = seconds;
    present(std::move(uncertain_.front()));
    uncertain_.pop_front();
  }
  stats_.timestamp_jumps = timeline_.jumps();
  if (held_ && sampler_.take(held_->seconds, held_->seconds + held_->duration)) emit(std::move(*held_));
  held_.reset();
  done_ = true;
  if (stats_.decoded_frames == 0) {
    throw Error(input_->name() + ": no frame could be decoded: " +
                (stats_.last_damage.empty() ? reason_of(AVERROR_EOF) : stats_.last_damage));
  }
}

void Reader::emit(Decoded decoded) {
  const Size size{decoded.frame->width, decoded.frame->height};
  auto field = std::make_shared<MotionField>();
  field->available = options_.motion && info_.exports_motion;
  field->width = size.width;
  field->height = size.height;
  field->frames = std::exchange(motion_, {});
  SampledFrame sample;
  sample.motion = std::move(field);
  sample.source = source_;
  sample.seconds = decoded.seconds;
  if (decoded.frame->best_effort_timestamp != AV_NOPTS_VALUE)
    sample.timestamp = decoded.frame->best_effort_timestamp;
  sample.sequence = stats_.sampled_frames++;
  sample.type = frame_type(*decoded.frame);
  sample.source_size = size;
  std::future<Image> image;
  if (options_.pixels) image = scale(std::move(decoded.frame), size);
  samples_.push_back({std::move(sample), std::move(image)});
}

}  // namespace

std::unique_ptr<VideoReader> VideoReader::open(const std::string& url, const ReadOptions& options) {
  return std::make_unique<Reader>(url, options);
}

}  // namespace vigil::media
