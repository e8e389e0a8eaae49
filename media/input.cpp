#include "media/input.h"

extern "C" {
#include <libavutil/base64.h>
#include <libavutil/mathematics.h>
#include <libavutil/mem.h>
}

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <thread>
#include <vector>

#include <fcntl.h>

#include "base/descriptor.h"
#include "base/one_line.h"
#include "base/url_mask.h"
#include "media/frame_budget.h"
#include "media/log_capture.h"
#include "media/origin.h"
#include "media/packet_history.h"
#include "media/schemes.h"

namespace vigil::media {
namespace {

/// A demuxer that fails so often without a packet in between will not recover.
constexpr int kMostFailuresInARow = 100;
/// A source may end so much before the announced end: durations are rounded.
constexpr double kEndTolerance = 1.0;
/// Bytes that the system is asked to keep of a UDP stream that is not read for a moment.
constexpr const char* kUdpBuffer = "2097152";
constexpr const char* kTlsHint =
    " (`tls: {ca_file: FILE}` names whom a camera's certificate is signed by, `tls: {insecure: true}` goes "
    "without)";

/// FFmpeg's allocations are each of this size at most, in the whole process: of a packet, a file's index, or
/// a plane of a picture that it decodes with decoders of its own.
constexpr std::size_t kMostAllocated = std::size_t{128} << 20;
/// A container has so many streams at most.
constexpr int kMostStreams = 64;

/// Of the demuxer of pictures alone: how it takes their names.
constexpr const char* kPictures = "pattern_type";

void bound_allocations() {
  static const bool bounded = (av_max_alloc(kMostAllocated), true);
  static_cast<void>(bounded);
}

// A resolver that finds no descriptor, among others, says something else.
bool descriptors_exhausted(int code) {
  if (code == AVERROR(EMFILE) || code == AVERROR(ENFILE)) return true;
  const base::Descriptor descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  return !descriptor && (errno == EMFILE || errno == ENFILE);
}

/// What a client sends for the user and password of a URL (RFC 7617); empty without.
std::string basic_credentials(std::string_view url) {
  const std::size_t begin = base::authority_begin(url);
  const std::size_t end = url.size() - base::behind_credentials(url).size();
  if (end <= begin + 1) return {};
  const std::string_view raw = url.substr(begin, end - 1 - begin);
  std::string plain;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    unsigned char byte = 0;
    const char* digits = raw.data() + i + 1;
    if (raw[i] == '%' && i + 2 < raw.size() &&
        std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2) {
      plain += static_cast<char>(byte);
      i += 2;
    } else {
      plain += raw[i];
    }
  }
  std::string encoded(AV_BASE64_SIZE(plain.size()), '\0');
  if (av_base64_encode(encoded.data(), static_cast<int>(encoded.size()),
                       reinterpret_cast<const std::uint8_t*>(plain.data()),
                       static_cast<int>(plain.size())) == nullptr)
    return {};
  encoded.resize(encoded.find_first_of(std::string_view("=\0", 2)));
  return encoded;
}

/// A text of a server's, without what it was told of the user and password.
std::string without_credentials(std::string text, std::string_view url) {
  const std::string secret = basic_credentials(url);
  for (std::size_t at = text.find(secret); !secret.empty() && at != std::string::npos;
       at = text.find(secret, at + 3))
    text.replace(at, secret.size(), "***");
  // Digests are others for each request: whatever follows the header's name in its line.
  constexpr std::string_view kHeader = "authorization:";
  const auto same = [](unsigned char a, unsigned char b) { return std::tolower(a) == b; };
  const auto header = std::search(text.begin(), text.end(), kHeader.begin(), kHeader.end(), same);
  if (header == text.end()) return text;
  const auto value = header + static_cast<std::ptrdiff_t>(kHeader.size());
  text.replace(value, std::find(value, text.end(), '\n'), " ***");
  return text;
}

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f s", seconds);
  return text;
}

}  // namespace

Input::Input(const std::string& url, const ReadOptions& options)
    : url_(url),
      name_(options.shown_name.empty() ? base::mask_source(url) : options.shown_name),
      interrupt_(options.stop),
      gate_(options, interrupt_),
      read_timeout_(options.read_timeout),
      on_packet_(options.on_packet),
      history_(options.history) {
  open(url, options);
  choose_stream();
  if (history_) history_->begin(stream(), options.decoder_memory);
  seekable_ = format_->pb != nullptr && (format_->pb->seekable & AVIO_SEEKABLE_NORMAL) != 0;
}

// FFmpeg's own lines may quote the URL as it is, and a server may lead to where it says so itself.
std::string Input::hidden(std::string text) const {
  for (std::size_t at = text.find(url_); url_ != name_ && at != std::string::npos;
       at = text.find(url_, at + name_.size()))
    text.replace(at, url_.size(), name_);
  text = without_credentials(std::move(text), url_);
  return base::one_line(base::mask_urls(base::mask_parts(std::move(text), url_, name_)));
}

void Input::fail(const std::string& reason, Error::Kind kind) const {
  throw Error(name_ + ": " + hidden(reason), kind);
}

void Input::check_interrupt(std::chrono::milliseconds allowed) const {
  if (interrupt_.cancelled()) throw Error(name_ + ": cancelled", Error::Kind::cancelled);
  if (!interrupt_.refusal().empty()) fail(interrupt_.refusal());
  if (interrupt_.timed_out()) {
    throw Error(name_ + ": nothing came for " + seconds_text(std::chrono::duration<double>(allowed).count()),
                Error::Kind::timeout);
  }
}

Admission Input::admitted(const std::string& url, const ReadOptions& options) const {
  try {
    return admit(url, options.input_format, options.playlists);
  } catch (const Refused& refused) {
    fail(refused.what());
  }
}

std::string Input::tunnelled(const std::string& url, const ReadOptions& options) {
  const auto origin = origin_of(url);
  if (!origin) fail("the URL has no host");
  try {
    tunnel_.emplace(origin->host, origin->port, options.tls, interrupt_);
  } catch (const std::runtime_error& error) {
    check_interrupt(options.open_timeout);
    fail(error.what() + std::string(options.tls.insecure ? "" : kTlsHint));
  }
  return with_server(url, "rtsp", "127.0.0.1:" + std::to_string(tunnel_->port()));
}

void Input::open(const std::string& url, const ReadOptions& options) {
  if (url.empty()) throw Error("the name of the source is empty");
  const LogCapture log;
  bound_allocations();
  Admission admission = admitted(url, options);
  interrupt_.allow(options.open_timeout);
  Dictionary entries;
  const Scheme* const scheme = scheme_of(url);
  const bool through_tunnel = scheme != nullptr && scheme->tls == Scheme::Tls::tunnel;
  if (scheme != nullptr && scheme->kind == Scheme::Kind::rtsp) {
    const bool udp = options.transport == Transport::udp && !through_tunnel;
    entries.set("rtsp_transport", udp ? "udp" : "tcp");
    entries.set("allowed_media_types", "video");
    // A key frame comes as one burst, which must not be lost while another frame is decoded.
    if (udp) entries.set("buffer_size", kUdpBuffer);
  }
  if (through_tunnel) admission.name = tunnelled(url, options);
  // A picture's name may look like that of a sequence of them.
  entries.set(kPictures, "none");
  for (const auto& [key, value] : options.input_options) entries.set(key, value);

  AVFormatContext* raw = allocated(InputContext(avformat_alloc_context())).release();
  raw->interrupt_callback = interrupt_.callback();
  raw->max_streams = kMostStreams;
  // A device's driver knows nothing of the interrupt, so it must not block.
  if (admission.device) raw->flags |= AVFMT_FLAG_NONBLOCK;
  // Counting a live source's frames to learn their rate would take seconds, and of a slow one, minutes.
  if (admission.live) raw->fps_probe_size = 0;
  gate_.guard(*raw, admission);
  interrupt_.watch(raw);
  // On failure FFmpeg frees the context and clears the pointer.
  int code = avformat_open_input(&raw, admission.name.c_str(), admission.demuxer, entries.address());
  format_.reset(raw);
  if (code < 0) {
    interrupt_.watch(nullptr);
    check_interrupt(options.open_timeout);
    if (descriptors_exhausted(code)) fail("no file descriptor is left", Error::Kind::no_descriptor);
    if (!log.refused_format().empty()) fail(log.refused_format());
    const std::string reason = log.explain(reason_of(code));
    const bool untrusted = !options.tls.insecure && reason.find("certificate") != std::string::npos;
    fail(reason + (untrusted ? kTlsHint : ""),
         code == AVERROR_HTTP_UNAUTHORIZED || code == AVERROR_HTTP_FORBIDDEN ? Error::Kind::unauthorized
                                                                             : Error::Kind::source);
  }
  entries.remove(kPictures);
  if (const AVDictionaryEntry* unused = entries.first())
    fail("unknown input option " + std::string(unused->key));
  find_stream_info();
  interrupt_.watch(nullptr);
  check_interrupt(options.open_timeout);
}

// FFmpeg decodes some frames to learn of the streams, with decoders of its own.
void Input::find_stream_info() {
  const LogCapture log;
  const unsigned streams = format_->nb_streams;
  std::vector<Dictionary> bounds(streams);
  std::vector<AVDictionary*> options(streams);
  for (unsigned i = 0; i < streams; ++i) {
    bounds[i].set("max_pixels", std::to_string(kMostPixels));
    bounds[i].swap(options[i]);
  }
  const int code = avformat_find_stream_info(format_.get(), streams > 0 ? options.data() : nullptr);
  for (unsigned i = 0; i < streams; ++i) bounds[i].swap(options[i]);
  if (code < 0 && descriptors_exhausted(code)) fail("no file descriptor is left", Error::Kind::no_descriptor);
  if (code < 0 && interrupt_.refusal().empty() && !interrupt_.expired()) fail(log.explain(reason_of(code)));
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
  const AVCodecParameters* chosen = index < 0 ? nullptr : format_->streams[index]->codecpar;
  if (chosen != nullptr && std::int64_t{chosen->width} * chosen->height > kMostPixels) {
    fail("its pictures of " + std::to_string(chosen->width) + 'x' + std::to_string(chosen->height) +
         " have more than the " + std::to_string(kMostPixels) + " pixels that are decoded");
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
      if ((packet.flags & AV_PKT_FLAG_CORRUPT) != 0)
        damage_ = hidden(log.explain("a packet is marked as corrupt"));
      return Read::packet;
    }
    check_interrupt(read_timeout_);
    if (code == AVERROR(EAGAIN)) {
      // A device without a frame yet.
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      continue;
    }
    if (code == AVERROR_INVALIDDATA && ++failures_in_a_row_ < kMostFailuresInARow) {
      damage_ = hidden(log.explain(reason_of(code)));
      return Read::damaged;
    }
    damage_ = hidden(early_end(code, log.first_error()));
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
