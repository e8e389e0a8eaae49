#include "media/packet_history.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <utility>

extern "C" {
#include <libavutil/mathematics.h>
}

#include "media/cut.h"
#include "media/ffmpeg.h"

namespace vigil::media {
namespace {

/// When the source tells no rate.
constexpr double kUsualFrameDuration = 1.0 / 25;
/// What is more is no rate of frames.
constexpr double kHighestRate = 500;
/// Timestamps that step further than this ahead or back are another clock's: time goes on by one frame.
constexpr double kLargestStep = 10;
constexpr double kLargestStepBack = 1;
/// Wild timestamps beyond this are none at all: there must be room to calculate.
constexpr std::int64_t kMostTicks = std::int64_t{1} << 60;
/// Times of frames are compared with so much tolerance; rounding makes less.
constexpr double kTolerance = 0.005;

std::int64_t believed(std::int64_t timestamp) {
  return timestamp != AV_NOPTS_VALUE && std::abs(timestamp) <= kMostTicks ? timestamp : AV_NOPTS_VALUE;
}

}  // namespace

std::shared_ptr<AVCodecParameters> copy_of(const AVCodecParameters& parameters) {
  std::shared_ptr<AVCodecParameters> copy(avcodec_parameters_alloc(),
                                          [](AVCodecParameters* each) { avcodec_parameters_free(&each); });
  if (!copy || avcodec_parameters_copy(copy.get(), &parameters) < 0) throw std::bad_alloc();
  return copy;
}

/// The size that key frames say they have, which containers do not tell when it changes.
class PacketHistory::Shape {
 public:
  explicit Shape(const AVCodecParameters& parameters)
      : parser_(av_parser_init(parameters.codec_id)),
        context_(allocated(CodecContext(avcodec_alloc_context3(nullptr)))),
        size_{parameters.width, parameters.height} {
    if (avcodec_parameters_to_context(context_.get(), &parameters) < 0) throw std::bad_alloc();
    if (parser_) parser_->flags |= PARSER_FLAG_COMPLETE_FRAMES;
  }

  /// Takes a key frame; true if its size is another one than before.
  bool changes(const AVPacket& packet) {
    if (!parser_) return false;
    std::uint8_t* data = nullptr;
    int bytes = 0;
    av_parser_parse2(parser_.get(), context_.get(), &data, &bytes, packet.data, packet.size, packet.pts,
                     packet.dts, -1);
    if (parser_->width <= 0 || parser_->height <= 0) return false;
    const Size size{parser_->width, parser_->height};
    if (!known_) {
      // What the container says may be rounded to whole blocks.
      known_ = true;
      size_ = size;
      return false;
    }
    return std::exchange(size_, size) != size;
  }

  Size size() const { return size_; }

 private:
  std::unique_ptr<AVCodecParserContext, FreeByPointer<AVCodecParserContext, av_parser_close>> parser_;
  CodecContext context_;
  Size size_;
  bool known_ = false;
};

struct PacketHistory::Section {
  struct Entry {
    /// Its timestamps are those of the section.
    Packet packet;
    /// What the decoder calls the packet's frame by.
    std::int64_t timestamp = AV_NOPTS_VALUE;
    double seconds = 0;

    bool key() const { return (packet->flags & AV_PKT_FLAG_KEY) != 0; }
  };

  Section(Parameters codec, AVRational base, double rate, std::uint64_t number)
      : parameters(std::move(codec)), time_base(base), source(number) {
    const double duration = rate > 0 && rate < kHighestRate ? 1 / rate : kUsualFrameDuration;
    usual_duration = std::max<std::int64_t>(1, std::llround(duration / av_q2d(time_base)));
  }

  double in_seconds(std::int64_t ticks) const { return static_cast<double>(ticks) * av_q2d(time_base); }
  /// When the packet is decoded, if that is known: every frame before has come.
  double decoded_at(const Entry& entry) const {
    const AVPacket& packet = *entry.packet;
    return entry.seconds - (packet.dts == AV_NOPTS_VALUE ? 0 : in_seconds(packet.pts - packet.dts));
  }

  void settle(AVPacket& packet);

  Parameters parameters;
  AVRational time_base;
  std::uint64_t source;
  std::size_t decoder_memory = kDecoderMemory;
  std::int64_t usual_duration = 1;
  /// What is added to the source's timestamps, since they jumped.
  std::int64_t shift = 0;
  std::optional<std::int64_t> last;
  std::int64_t last_duration = 0;
  /// seconds = timestamp * time_base + offset.
  double offset = 0;
  bool anchored = false;
  std::deque<Entry> entries;
};

// Gives a packet the section's timestamps: they go on by one frame where the source's jump.
void PacketHistory::Section::settle(AVPacket& packet) {
  std::int64_t pts = believed(packet.pts);
  std::int64_t dts = believed(packet.dts);
  const std::int64_t reference = dts != AV_NOPTS_VALUE ? dts : pts;
  const std::int64_t expected = last ? *last + last_duration : 0;
  // Of a source whose frames were not counted FFmpeg says the rate of its clock.
  const double duration = in_seconds(packet.duration);
  if (duration < 1 / kHighestRate || duration > kLargestStep) packet.duration = 0;
  last_duration = packet.duration > 0 ? packet.duration : usual_duration;
  if (reference == AV_NOPTS_VALUE) {
    packet.pts = packet.dts = expected;
    last = expected;
    return;
  }
  if (last) {
    const double step = in_seconds(reference + shift - *last);
    if (step > kLargestStep || step < -kLargestStepBack) shift = expected - reference;
  }
  if (pts != AV_NOPTS_VALUE && std::abs(in_seconds(pts - reference)) > kLargestStep) pts = AV_NOPTS_VALUE;
  last = reference + shift;
  packet.pts = (pts != AV_NOPTS_VALUE ? pts : reference) + shift;
  packet.dts = dts != AV_NOPTS_VALUE ? dts + shift : AV_NOPTS_VALUE;
}

PacketHistory::PacketHistory(Limits limits) : limits_(limits) {}
PacketHistory::~PacketHistory() = default;

void PacketHistory::begin(const AVStream& stream, std::size_t decoder_memory) {
  shape_ = std::make_unique<Shape>(*stream.codecpar);
  const AVRational rate = stream.avg_frame_rate.num > 0 ? stream.avg_frame_rate : stream.r_frame_rate;
  Section section(copy_of(*stream.codecpar), stream.time_base, rate.den > 0 ? av_q2d(rate) : 0, source_ + 1);
  section.decoder_memory = decoder_memory;
  const std::lock_guard lock(mutex_);
  ++source_;
  // A source that never sent a key frame, however often it was opened.
  if (!sections_.empty() && sections_.back().entries.empty()) sections_.pop_back();
  sections_.push_back(std::move(section));
}

void PacketHistory::push(const AVPacket& packet) {
  const bool key = (packet.flags & AV_PKT_FLAG_KEY) != 0;
  const bool changed = key && shape_ && shape_->changes(packet);
  Packet kept = allocated(Packet(av_packet_clone(&packet)));
  const std::lock_guard lock(mutex_);
  if (sections_.empty()) return;
  if (changed && !sections_.back().entries.empty()) {
    const Section& before = sections_.back();
    const auto parameters = copy_of(*before.parameters);
    parameters->width = shape_->size().width;
    parameters->height = shape_->size().height;
    // They were the other frames'; the key frame brings its own.
    if (parameters->extradata != nullptr && parameters->extradata_size > 0 && parameters->extradata[0] != 1) {
      av_freep(&parameters->extradata);
      parameters->extradata_size = 0;
    }
    Section next(parameters, before.time_base, 0, source_);
    next.decoder_memory = before.decoder_memory;
    next.usual_duration = before.usual_duration;
    next.shift = before.shift;
    next.last = before.last;
    next.last_duration = before.last_duration;
    next.offset = before.offset;
    next.anchored = before.anchored;
    sections_.push_back(std::move(next));
  }
  Section& section = sections_.back();
  const std::int64_t timestamp = kept->pts != AV_NOPTS_VALUE ? kept->pts : kept->dts;
  section.settle(*kept);
  if (section.entries.empty() && !key) return;
  const double seconds = section.in_seconds(kept->pts) + section.offset;
  bytes_ += static_cast<std::size_t>(kept->size);
  section.entries.push_back({std::move(kept), timestamp, seconds});
  drop_old();
}

void PacketHistory::keep(double seconds) {
  const std::lock_guard lock(mutex_);
  limits_.seconds = seconds;
}

void PacketHistory::drop_old() {
  const Section& back = sections_.back();
  while (back.anchored) {
    // The group at the front is old when the next one begins early enough.
    const Section& front = sections_.front();
    const double enough = back.entries.back().seconds - limits_.seconds;
    const auto next = front.entries.empty()
                          ? front.entries.end()
                          : std::find_if(front.entries.begin() + 1, front.entries.end(),
                                         [](const Section::Entry& entry) { return entry.key(); });
    const bool more = next != front.entries.end();
    if (more ? next->seconds > enough
             : &front == &back || (!front.entries.empty() && front.entries.back().seconds > enough))
      break;
    drop_front_group();
  }
  while (bytes_ > limits_.bytes) {
    short_of_bytes_ = true;
    drop_front_group();
  }
}

void PacketHistory::drop_front_group() {
  Section& front = sections_.front();
  do {
    if (front.entries.empty()) break;
    bytes_ -= static_cast<std::size_t>(front.entries.front().packet->size);
    front.entries.pop_front();
  } while (!front.entries.empty() && !front.entries.front().key());
  if (front.entries.empty() && sections_.size() > 1) sections_.pop_front();
}

void PacketHistory::anchor(std::optional<std::int64_t> timestamp, double seconds) {
  const std::lock_guard lock(mutex_);
  for (auto section = sections_.rbegin(); section != sections_.rend() && section->source == source_;
       ++section) {
    auto& entries = section->entries;
    if (entries.empty()) continue;
    auto found = entries.end();
    if (timestamp) {
      const auto place = std::find_if(entries.rbegin(), entries.rend(), [&](const Section::Entry& entry) {
        return entry.timestamp == *timestamp;
      });
      if (place == entries.rend()) continue;
      found = std::prev(place.base());
    } else {
      // Nobody knows which it was; it came lately.
      found = std::prev(entries.end());
    }
    const double offset = seconds - section->in_seconds(found->packet->pts);
    const bool moved = std::abs(offset - section->offset) > kTolerance;
    if (!section->anchored) found = entries.begin();
    if (!section->anchored || moved) {
      section->offset = offset;
      for (; found != entries.end(); ++found)
        found->seconds = section->in_seconds(found->packet->pts) + offset;
    }
    section->anchored = true;
    return;
  }
}

std::optional<double> PacketHistory::newest() const {
  const std::lock_guard lock(mutex_);
  for (auto section = sections_.rbegin(); section != sections_.rend(); ++section) {
    if (section->anchored && !section->entries.empty()) return section->decoded_at(section->entries.back());
  }
  return std::nullopt;
}

std::size_t PacketHistory::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

void PacketHistory::clear() {
  const std::lock_guard lock(mutex_);
  sections_.clear();
  bytes_ = 0;
  short_of_bytes_ = false;
}

std::string PacketHistory::why_not_kept() const {
  if (short_of_bytes_) {
    return "no key frame is kept of that time: the " + std::to_string(limits_.bytes >> 20) +
           " MiB that are kept of the stream do not reach back to it";
  }
  return "no packet is kept of that time";
}

Cut PacketHistory::cut(const Span& span) const {
  const std::lock_guard lock(mutex_);
  const auto section = std::find_if(sections_.rbegin(), sections_.rend(), [&](const Section& each) {
    return each.anchored && !each.entries.empty() && each.entries.front().seconds <= span.moment + kTolerance;
  });
  if (section == sections_.rend()) throw Error(why_not_kept());
  const auto& entries = section->entries;
  auto first = entries.begin();
  for (auto each = first; each != entries.end() && each->seconds <= span.moment + kTolerance; ++each) {
    if (each->key() && each->seconds <= span.from + kTolerance) first = each;
  }
  auto content = std::make_shared<Cut::Content>();
  content->parameters = section->parameters;
  content->time_base = section->time_base;
  content->usual_duration = section->usual_duration;
  content->decoder_memory = section->decoder_memory;
  content->from = first->seconds;
  double last = first->seconds;
  content->offset = first->seconds - section->in_seconds(first->packet->pts);
  for (auto each = first; each != entries.end(); ++each) {
    if (each != first && section->decoded_at(*each) >= span.to - kTolerance && each->seconds > span.moment) {
      break;
    }
    // Frames that are shown before the key frame refer to what is not there.
    if (each->packet->pts < first->packet->pts) continue;
    content->packets.push_back(allocated(Packet(av_packet_clone(each->packet.get()))));
    last = std::max(last, each->seconds);
    if (each->seconds <= span.moment + kTolerance)
      content->offset = each->seconds - section->in_seconds(each->packet->pts);
    content->bytes += static_cast<std::size_t>(each->packet->size);
  }
  settle_timestamps(content->packets);
  const std::vector<Packet>& packets = content->packets;
  const std::int64_t told = packets.back()->duration;
  if (packets.size() > 1) {
    // As they come, whatever the source says.
    const std::int64_t between =
        (packets.back()->dts - packets.front()->dts) / static_cast<std::int64_t>(packets.size() - 1);
    content->usual_duration = std::max<std::int64_t>(1, between);
  }
  content->to = last + section->in_seconds(told > 0 ? told : content->usual_duration);
  return Cut(std::move(content));
}

}  // namespace vigil::media
