#include "media/input.h"

extern "C" {
#include <libavdevice/avdevice.h>
#include <libavutil/avstring.h>
#include <libavutil/dict.h>
#include <libavutil/mathematics.h>
}

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <thread>

#include "media/log_capture.h"
#include "media/packet_history.h"
#include "media/url.h"

namespace vigil::media {
namespace {

/// A demuxer that fails so often without a packet in between will not recover.
constexpr int kMostFailuresInARow = 100;
/// A source may end so much before the announced end: durations are rounded.
constexpr double kEndTolerance = 1.0;
/// Bytes that the system is asked to keep of a UDP stream that is not read for a moment.
constexpr const char* kUdpBuffer = "2097152";

// A local file may be called like anything, say "12:30.mp4", which FFmpeg would take for a protocol. A device
// is known to FFmpeg by its name, and by its own demuxer.
std::string unambiguous(const std::string& url) {
  std::error_code none;
  const auto status = std::filesystem::status(url, none);
  return std::filesystem::exists(status) && !std::filesystem::is_character_file(status) ? "file:" + url : url;
}

/// What FFmpeg is to open, and how.
struct Opening {
  std::string name;
  const AVInputFormat* demuxer = nullptr;
  bool device = false;
  /// Not a file: what it sends is gone when it is not read.
  bool live = false;
};

Opening opening_of(const std::string& url) {
  Opening opening;
  const std::size_t colon = url.find("://");
  if (colon == std::string::npos) {
    opening.name = unambiguous(url);
    opening.device = url.starts_with("/dev/video");
    opening.live = opening.device;
    return opening;
  }
  const std::string scheme = url.substr(0, colon);
  opening.name = url;
  opening.live = scheme != "file";
  for (const AVInputFormat* each = av_input_video_device_next(nullptr); each != nullptr;
       each = av_input_video_device_next(each)) {
    if (av_match_name(scheme.c_str(), each->name) == 0) continue;
    opening.name = url.substr(colon + 3);
    opening.demuxer = each;
    opening.device = true;
  }
  return opening;
}

bool is_rtsp(const std::string& url) {
  return url.starts_with("rtsp://") || url.starts_with("rtsps://");
}

// FFmpeg plays any text file as the screen of a terminal.
bool is_text_art(const AVInputFormat& format) {
  static constexpr std::array<std::string_view, 5> kNames = {"tty", "bin", "xbin", "adf", "idf"};
  return std::find(kNames.begin(), kNames.end(), format.name) != kNames.end();
}

class Dictionary {
 public:
  Dictionary() = default;
  ~Dictionary() { av_dict_free(&entries_); }
  Dictionary(const Dictionary&) = delete;
  Dictionary& operator=(const Dictionary&) = delete;

  void set(const std::string& key, const std::string& value) {
    av_dict_set(&entries_, key.c_str(), value.c_str(), 0);
  }
  AVDictionary** address() { return &entries_; }
  const AVDictionaryEntry* first() const { return av_dict_get(entries_, "", nullptr, AV_DICT_IGNORE_SUFFIX); }

 private:
  AVDictionary* entries_ = nullptr;
};

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f s", seconds);
  return text;
}

}  // namespace

void Interrupt::allow(std::chrono::milliseconds time) {
  if (time > std::chrono::milliseconds::zero()) {
    deadline_ = std::chrono::steady_clock::now() + time;
  } else {
    deadline_.reset();
  }
}

bool Interrupt::expired() {
  if (deadline_ && std::chrono::steady_clock::now() > *deadline_) timed_out_ = true;
  return timed_out_ || cancelled();
}

int Interrupt::check(void* self) {
  return static_cast<Interrupt*>(self)->expired() ? 1 : 0;
}

Input::Input(const std::string& url, const ReadOptions& options)
    : name_(url_without_credentials(url)),
      interrupt_(options.stop),
      read_timeout_(options.read_timeout),
      on_packet_(options.on_packet),
      history_(options.history) {
  open(url, options);
  choose_stream();
  if (history_) history_->begin(stream());
  seekable_ = format_->pb != nullptr && (format_->pb->seekable & AVIO_SEEKABLE_NORMAL) != 0;
}

void Input::fail(const std::string& reason, Error::Kind kind) const {
  throw Error(name_ + ": " + reason, kind);
}

void Input::check_interrupt(std::chrono::milliseconds allowed) const {
  if (interrupt_.cancelled()) throw Error(name_ + ": cancelled", Error::Kind::cancelled);
  if (interrupt_.timed_out()) {
    throw Error(name_ + ": nothing came for " + seconds_text(std::chrono::duration<double>(allowed).count()),
                Error::Kind::timeout);
  }
}

void Input::open(const std::string& url, const ReadOptions& options) {
  if (url.empty()) throw Error("the name of the source is empty");
  const LogCapture log;
  avdevice_register_all();
  Opening opening = opening_of(url);
  if (!options.input_format.empty()) {
    opening.demuxer = av_find_input_format(options.input_format.c_str());
    if (opening.demuxer == nullptr) fail("unknown input format " + options.input_format);
    if (!opening.device) opening.name = url;
  }
  Dictionary entries;
  if (is_rtsp(url)) {
    entries.set("rtsp_transport", options.transport == Transport::udp ? "udp" : "tcp");
    entries.set("allowed_media_types", "video");
    // A key frame comes as one burst, which must not be lost while another frame is decoded.
    if (options.transport == Transport::udp) entries.set("buffer_size", kUdpBuffer);
  }
  for (const auto& [key, value] : options.input_options) entries.set(key, value);

  AVFormatContext* raw = allocated(InputContext(avformat_alloc_context())).release();
  raw->interrupt_callback = interrupt_.callback();
  // A device's driver knows nothing of the interrupt, so it must not block.
  if (opening.device) raw->flags |= AVFMT_FLAG_NONBLOCK;
  // Counting a live source's frames to learn their rate would take seconds, and of a slow one, minutes.
  if (opening.live) raw->fps_probe_size = 0;
  interrupt_.allow(options.open_timeout);
  // On failure FFmpeg frees the context and clears the pointer.
  int code = avformat_open_input(&raw, opening.name.c_str(), opening.demuxer, entries.address());
  format_.reset(raw);
  if (code < 0) {
    check_interrupt(options.open_timeout);
    std::error_code none;
    const bool empty =
        std::filesystem::is_regular_file(url, none) && std::filesystem::file_size(url, none) == 0;
    fail(log.explain(reason_of(code)) + (empty ? ": the file is empty" : ""),
         code == AVERROR_HTTP_UNAUTHORIZED || code == AVERROR_HTTP_FORBIDDEN ? Error::Kind::unauthorized
                                                                             : Error::Kind::source);
  }
  if (const AVDictionaryEntry* unused = entries.first())
    fail("unknown input option " + std::string(unused->key));
  if (opening.demuxer == nullptr && is_text_art(*format_->iformat))
    fail(reason_of(AVERROR_INVALIDDATA) + " (a text file)");
  code = avformat_find_stream_info(format_.get(), nullptr);
  check_interrupt(options.open_timeout);
  if (code < 0) fail(log.explain(reason_of(code)));
}

void Input::choose_stream() {
  const int index = av_find_best_stream(format_.get(), AVMEDIA_TYPE_VIDEO, -1, -1, &codec_, 0);
  if (index == AVERROR_DECODER_NOT_FOUND) {
    const int undecodable = av_find_best_stream(format_.get(), AVMEDIA_TYPE_VIDEO, -1, -1, nullptr, 0);
    const AVCodecParameters& parameters = *format_->streams[undecodable]->codecpar;
    char tag[AV_FOURCC_MAX_STRING_SIZE] = {};
    fail(reason_of(index) + ": codec " + avcodec_get_name(parameters.codec_id) + ", tag " +
         av_fourcc_make_string(tag, parameters.codec_tag));
  }
  // FFmpeg's reason is "Stream not found", which does not say what kind.
  if (index < 0) fail("no video stream: " + reason_of(index));
  stream_ = static_cast<unsigned>(index);
  streams_ = format_->nb_streams;
  if ((format_->streams[stream_]->disposition & AV_DISPOSITION_ATTACHED_PIC) != 0) {
    fail("no video stream: only a cover picture");
  }
  for (unsigned i = 0; i < format_->nb_streams; ++i) {
    format_->streams[i]->discard = i == stream_ ? AVDISCARD_DEFAULT : AVDISCARD_ALL;
  }
}

double Input::announced_seconds() const {
  // Otherwise FFmpeg has guessed it from what is there.
  if (format_->duration_estimation_method != AVFMT_DURATION_FROM_STREAM) return 0;
  const AVStream& stream = *format_->streams[stream_];
  if (stream.duration != AV_NOPTS_VALUE)
    return static_cast<double>(stream.duration) * av_q2d(stream.time_base);
  // The whole file's length is that of its longest stream, which may be sound.
  if (format_->nb_streams > 1 || format_->duration == AV_NOPTS_VALUE) return 0;
  return static_cast<double>(format_->duration) / AV_TIME_BASE;
}

std::string Input::early_end(int code, const std::string& logged) const {
  if (code != AVERROR_EOF) return logged.empty() ? reason_of(code) : reason_of(code) + " (" + logged + ")";
  if (!logged.empty()) return logged;
  const double wanted = announced_seconds();
  if (!(wanted > 0) || !reached_) return {};
  const AVStream& stream = *format_->streams[stream_];
  const std::int64_t start = stream.start_time != AV_NOPTS_VALUE ? stream.start_time : 0;
  const double end = static_cast<double>(av_sat_sub64(*reached_, start)) * av_q2d(stream.time_base);
  if (end + kEndTolerance >= wanted) return {};
  return "the data ends at " + seconds_text(end) + " of " + seconds_text(wanted);
}

bool Input::is_successor(const AVPacket& packet) const {
  const auto index = static_cast<unsigned>(packet.stream_index);
  return index >= streams_ && format_->streams[index]->codecpar->codec_type == AVMEDIA_TYPE_VIDEO;
}

Input::Read Input::read(AVPacket& packet) {
  LogCapture log;
  interrupt_.allow(read_timeout_);
  while (true) {
    av_packet_unref(&packet);
    if (interrupt_.expired()) check_interrupt(read_timeout_);
    const int code = av_read_frame(format_.get(), &packet);
    if (code >= 0) {
      if (is_successor(packet)) {
        damage_ = "the video goes on as another stream";
        return Read::end;
      }
      if (packet.stream_index != static_cast<int>(stream_)) continue;
      failures_in_a_row_ = 0;
      if (on_packet_) {
        on_packet_({static_cast<std::size_t>(packet.size), (packet.flags & AV_PKT_FLAG_KEY) != 0});
      }
      if (history_) history_->push(packet);
      if (packet.pts != AV_NOPTS_VALUE)
        reached_ = std::max(reached_.value_or(packet.pts), av_sat_add64(packet.pts, packet.duration));
      if ((packet.flags & AV_PKT_FLAG_CORRUPT) != 0) damage_ = log.explain("a packet is marked as corrupt");
      return Read::packet;
    }
    check_interrupt(read_timeout_);
    if (code == AVERROR(EAGAIN)) {
      // A device without a frame yet.
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      continue;
    }
    if (code == AVERROR_INVALIDDATA && ++failures_in_a_row_ < kMostFailuresInARow) {
      damage_ = log.explain(reason_of(code));
      return Read::damaged;
    }
    damage_ = early_end(code, log.first_error());
    return Read::end;
  }
}

bool Input::seek(std::int64_t timestamp) {
  interrupt_.allow(read_timeout_);
  const LogCapture log;
  const bool moved =
      av_seek_frame(format_.get(), static_cast<int>(stream_), timestamp, AVSEEK_FLAG_BACKWARD) >= 0;
  check_interrupt(read_timeout_);
  return moved;
}

}  // namespace vigil::media
