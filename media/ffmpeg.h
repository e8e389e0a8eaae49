// FFmpeg's objects as owning C++ types, and its errors as text. What depends on FFmpeg's version stands here
// alone. Private to media/: no other room includes it.
#pragma once

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/avutil.h>
#include <libavutil/dict.h>
#include <libavutil/error.h>
#include <libavutil/frame.h>
#include <libswscale/swscale.h>
}

#include <memory>
#include <string>
#include <utility>

namespace vigil::media {

/// Frees by FFmpeg's functions that take the pointer's address and clear it.
template <typename T, void (*Free)(T**)>
struct FreeByAddress {
  void operator()(T* object) const { Free(&object); }
};

/// Frees by FFmpeg's functions that take the pointer.
template <typename T, void (*Free)(T*)>
struct FreeByPointer {
  void operator()(T* object) const { Free(object); }
};

// Demuxing and muxing contexts have one type in FFmpeg and are freed differently.
using InputContext = std::unique_ptr<AVFormatContext, FreeByAddress<AVFormatContext, avformat_close_input>>;
using OutputContext = std::unique_ptr<AVFormatContext, FreeByPointer<AVFormatContext, avformat_free_context>>;
using CodecContext = std::unique_ptr<AVCodecContext, FreeByAddress<AVCodecContext, avcodec_free_context>>;
using Frame = std::unique_ptr<AVFrame, FreeByAddress<AVFrame, av_frame_free>>;
using Packet = std::unique_ptr<AVPacket, FreeByAddress<AVPacket, av_packet_free>>;
using ScaleContext = std::unique_ptr<SwsContext, FreeByPointer<SwsContext, sws_freeContext>>;

/// Throws std::bad_alloc for the null that FFmpeg's allocators return when memory is out.
template <typename Owner>
Owner allocated(Owner owner) {
  if (!owner) throw std::bad_alloc();
  return owner;
}

inline Frame make_frame() {
  return allocated(Frame(av_frame_alloc()));
}
inline Packet make_packet() {
  return allocated(Packet(av_packet_alloc()));
}

/// Options under FFmpeg's names; what takes them removes those that it knows.
class Dictionary {
 public:
  Dictionary() = default;
  ~Dictionary() { av_dict_free(&entries_); }
  Dictionary(const Dictionary&) = delete;
  Dictionary& operator=(const Dictionary&) = delete;

  void set(const std::string& key, const std::string& value) {
    av_dict_set(&entries_, key.c_str(), value.c_str(), 0);
  }
  void remove(const std::string& key) { av_dict_set(&entries_, key.c_str(), nullptr, 0); }
  void add(const AVDictionary* others) { av_dict_copy(&entries_, others, 0); }
  void swap(AVDictionary*& other) { std::swap(entries_, other); }
  AVDictionary** address() { return &entries_; }
  const AVDictionaryEntry* first() const { return av_dict_get(entries_, "", nullptr, AV_DICT_IGNORE_SUFFIX); }

 private:
  AVDictionary* entries_ = nullptr;
};

/// FFmpeg's own text for one of its error codes.
inline std::string reason_of(int code) {
  char text[AV_ERROR_MAX_STRING_SIZE] = {};
  av_strerror(code, text, sizeof text);
  return text;
}

inline bool is_key_frame(const AVFrame& frame) {
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(58, 7, 100)  // FFmpeg 6.1
  return (frame.flags & AV_FRAME_FLAG_KEY) != 0;
#else
  return frame.key_frame != 0;
#endif
}

/// How long the frame says that it is shown, in units of its stream's time base; 0: unknown.
inline std::int64_t duration_of(const AVFrame& frame) {
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(57, 30, 100)  // FFmpeg 6.0
  return frame.duration;
#else
  return frame.pkt_duration;
#endif
}

}  // namespace vigil::media
