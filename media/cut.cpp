#include "media/cut.h"

extern "C" {
#include <libavcodec/bsf.h>
}

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "base/durable.h"
#include "media/decoder.h"
#include "media/log_capture.h"
#include "media/scaler.h"

namespace vigil::media {
namespace {

/// Rounding of times makes less.
constexpr double kTolerance = 0.005;
/// The name by which containers have a clip's note.
constexpr const char* kNote = "comment";

using BitstreamFilter = std::unique_ptr<AVBSFContext, FreeByAddress<AVBSFContext, av_bsf_free>>;

bool is_mp4(AVCodecID codec) {
  const AVOutputFormat* mp4 = av_guess_format("mp4", nullptr, nullptr);
  return mp4 != nullptr && avformat_query_codec(mp4, codec, FF_COMPLIANCE_NORMAL) == 1;
}

/// Whether the parameter sets stand between start codes, in the packets and beside them, rather than in the
/// form of MP4.
bool has_start_codes(const AVCodecParameters& parameters) {
  if (parameters.codec_id != AV_CODEC_ID_H264 && parameters.codec_id != AV_CODEC_ID_HEVC) return false;
  return parameters.extradata_size < 1 || parameters.extradata[0] != 1;
}

/// The parameters with what the first key frame says of itself: a stream that is joined, or that has changed,
/// has told others before, or none.
Parameters with_parameter_sets(const Parameters& parameters, const AVPacket& first) {
  if (parameters->extradata_size > 0 && !has_start_codes(*parameters)) return parameters;
  const AVBitStreamFilter* filter = av_bsf_get_by_name("extract_extradata");
  AVBSFContext* raw = nullptr;
  if (filter == nullptr || av_bsf_alloc(filter, &raw) < 0) return parameters;
  const BitstreamFilter extract(raw);
  const Packet packet = allocated(Packet(av_packet_clone(&first)));
  if (avcodec_parameters_copy(extract->par_in, parameters.get()) < 0 || av_bsf_init(extract.get()) < 0 ||
      av_bsf_send_packet(extract.get(), packet.get()) < 0 ||
      av_bsf_receive_packet(extract.get(), packet.get()) < 0) {
    return parameters;
  }
  std::size_t size = 0;
  const std::uint8_t* found = av_packet_get_side_data(packet.get(), AV_PKT_DATA_NEW_EXTRADATA, &size);
  if (found == nullptr || size == 0) return parameters;
  auto told = copy_of(*parameters);
  av_freep(&told->extradata);
  told->extradata = static_cast<std::uint8_t*>(av_mallocz(size + AV_INPUT_BUFFER_PADDING_SIZE));
  if (told->extradata == nullptr) throw std::bad_alloc();
  std::copy_n(found, size, told->extradata);
  told->extradata_size = static_cast<int>(size);
  return told;
}

/// A file that a muxer writes to.
class Output {
 public:
  Output(const std::filesystem::path& shown, const std::filesystem::path& path, const char* format)
      : shown_(shown) {
    AVFormatContext* raw = nullptr;
    const std::string url = "file:" + path.string();
    must(avformat_alloc_output_context2(&raw, nullptr, format, url.c_str()));
    context_.reset(raw);
    must(avio_open(&context_->pb, url.c_str(), AVIO_FLAG_WRITE));
  }
  ~Output() { avio_closep(&context_->pb); }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  AVFormatContext* get() { return context_.get(); }

  void must(int code) const {
    if (code < 0) fail(code);
  }
  // What could not be written is told late.
  void close() {
    const int failed = context_->pb->error;
    const int code = avio_closep(&context_->pb);
    must(failed);
    must(code);
  }

 private:
  [[noreturn]] void fail(int code) const {
    throw Error(shown_.string() + ": cannot write: " + log_.explain(reason_of(code)));
  }

  const std::filesystem::path& shown_;
  LogCapture log_;
  OutputContext context_;
};

/// The last frame that begins at or before `moment`, or the first there is; null if there is none.
Frame frame_shown_at(const Cut::Content& content, double moment, double& shown_at) {
  const auto seconds_of = [&](std::int64_t timestamp) {
    return static_cast<double>(timestamp) * av_q2d(content.time_base) + content.offset;
  };
  const auto is_late = [&](std::int64_t timestamp) { return seconds_of(timestamp) > moment + kTolerance; };
  std::size_t first = 0;
  for (std::size_t i = 0; i < content.packets.size(); ++i) {
    const AVPacket& packet = *content.packets[i];
    if ((packet.flags & AV_PKT_FLAG_KEY) != 0 && !is_late(packet.pts)) first = i;
  }

  const LogCapture log;
  const AVCodec* codec = avcodec_find_decoder(content.parameters->codec_id);
  if (codec == nullptr) return nullptr;
  // Outlives the context.
  DecoderWatch watch(content.decoder_memory);
  const CodecContext decoder = allocated(CodecContext(avcodec_alloc_context3(codec)));
  decoder->thread_count = 1;
  decoder->pkt_timebase = content.time_base;
  watch.watch(*decoder);
  if (avcodec_parameters_to_context(decoder.get(), content.parameters.get()) < 0 ||
      avcodec_open2(decoder.get(), codec, nullptr) < 0) {
    return nullptr;
  }
  Frame shown;
  bool done = false;
  const auto take_frames = [&] {
    for (Frame frame = make_frame(); avcodec_receive_frame(decoder.get(), frame.get()) >= 0;
         frame = make_frame()) {
      const std::int64_t timestamp = frame->best_effort_timestamp;
      done = shown && timestamp != AV_NOPTS_VALUE && is_late(timestamp);
      if (done) return;
      shown_at = timestamp != AV_NOPTS_VALUE ? seconds_of(timestamp) : moment;
      shown = std::move(frame);
    }
  };
  for (std::size_t i = first; i < content.packets.size() && !done; ++i) {
    // Frames that are shown in time have been decoded by then.
    if (shown && is_late(content.packets[i]->dts)) break;
    // Damage is passed over.
    avcodec_send_packet(decoder.get(), content.packets[i].get());
    take_frames();
  }
  avcodec_send_packet(decoder.get(), nullptr);
  take_frames();
  if (!shown && watch.frames.exceeded()) throw Error(watch.frames.reason());
  return shown;
}

}  // namespace

void settle_timestamps(std::vector<Packet>& packets) {
  bool sound = true;
  std::optional<std::int64_t> last;
  for (const Packet& packet : packets) {
    sound = sound && packet->dts != AV_NOPTS_VALUE && packet->dts <= packet->pts &&
            (!last || packet->dts > *last);
    last = packet->dts;
  }
  if (sound) return;
  // Two frames at one time would make two packets at one time.
  std::vector<std::int64_t> shown;
  shown.reserve(packets.size());
  for (const Packet& packet : packets) shown.push_back(packet->pts);
  std::sort(shown.begin(), shown.end());
  for (std::size_t i = 1; i < shown.size(); ++i) shown[i] = std::max(shown[i], shown[i - 1] + 1);
  // The k-th packet is decoded when the k-th frame is shown, earlier by what the codec reorders.
  std::int64_t delay = 0;
  for (std::size_t i = 0; i < packets.size(); ++i) delay = std::max(delay, shown[i] - packets[i]->pts);
  for (std::size_t i = 0; i < packets.size(); ++i) packets[i]->dts = shown[i] - delay;
}

double Cut::from() const {
  return content_->from;
}

double Cut::to() const {
  return content_->to;
}

std::size_t Cut::bytes() const {
  return content_->bytes;
}

std::string Cut::codec() const {
  return avcodec_get_name(content_->parameters->codec_id);
}

std::string Cut::extension() const {
  return is_mp4(content_->parameters->codec_id) ? ".mp4" : ".mkv";
}

void Cut::write_clip(const std::filesystem::path& path, const std::string& note) const {
  base::NewFile file(path);
  const std::vector<Packet>& packets = content_->packets;
  const AVRational time_base = content_->time_base;
  const bool mp4 = is_mp4(content_->parameters->codec_id);
  {
    Output output(path, file.unfinished(), mp4 ? "mp4" : "matroska");
    AVStream* stream = avformat_new_stream(output.get(), nullptr);
    if (stream == nullptr) throw std::bad_alloc();
    const Parameters parameters = with_parameter_sets(content_->parameters, *packets.front());
    output.must(avcodec_parameters_copy(stream->codecpar, parameters.get()));
    // The tag is the source container's word for the codec.
    stream->codecpar->codec_tag = 0;
    stream->time_base = time_base;
    if (!note.empty()) output.must(av_dict_set(&output.get()->metadata, kNote, note.c_str(), 0));
    AVDictionary* options = nullptr;
    if (mp4) av_dict_set(&options, "movflags", "+faststart", 0);
    const int begun = avformat_write_header(output.get(), &options);
    av_dict_free(&options);
    output.must(begun);
    const std::int64_t start = packets.front()->pts;
    for (std::size_t i = 0; i < packets.size(); ++i) {
      const Packet packet = allocated(Packet(av_packet_clone(packets[i].get())));
      packet->pts -= start;
      packet->dts -= start;
      if (packet->duration <= 0) {
        packet->duration =
            i + 1 < packets.size() ? packets[i + 1]->dts - packets[i]->dts : content_->usual_duration;
      }
      packet->stream_index = 0;
      packet->pos = -1;
      av_packet_rescale_ts(packet.get(), time_base, stream->time_base);
      output.must(av_write_frame(output.get(), packet.get()));
    }
    output.must(av_write_trailer(output.get()));
    output.close();
  }
  try {
    file.commit();
  } catch (const base::FileError& error) {
    throw Error(error.what());
  }
}

Still Cut::still(double moment) const {
  Still still;
  const Frame frame = frame_shown_at(*content_, moment, still.seconds);
  if (!frame) throw Error("no frame of that time can be decoded");
  try {
    still.image = Scaler().convert(*frame, {frame->width, frame->height});
  } catch (const std::runtime_error& error) {
    throw Error(error.what());
  }
  return still;
}

std::string note_of(const std::filesystem::path& clip) {
  const LogCapture log;
  const AVInputFormat* const format = av_find_input_format(clip.extension() == ".mkv" ? "matroska" : "mov");
  Dictionary options;
  // Whatever the file says, no other is opened.
  options.set("protocol_whitelist", "file");
  AVFormatContext* raw = nullptr;
  const std::string url = "file:" + clip.string();
  const int code = avformat_open_input(&raw, url.c_str(), format, options.address());
  if (code < 0) throw Error(clip.string() + ": cannot read: " + log.explain(reason_of(code)));
  const InputContext context(raw);
  const AVDictionaryEntry* const note = av_dict_get(context->metadata, kNote, nullptr, 0);
  return note == nullptr ? "" : note->value;
}

}  // namespace vigil::media
