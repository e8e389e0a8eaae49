// Makes small videos for tests with FFmpeg's encoders, and reads videos with FFmpeg alone, as the oracle.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "media/ffmpeg.h"
#include "media/media.h"
#include "tests/temporary_folder.h"

namespace vigil::media {

using Scratch = TemporaryFolder;

/// A made video: a textured scene in which a square moves 4 pixels right and 2 down a frame.
struct Clip {
  std::string codec = "libx264";
  Size size{192, 128};
  int frames = 50;
  int gop = 12;
  int b_frames = 0;
  /// Milliseconds of frame i; empty: 25 frames a second.
  std::function<std::int64_t(int)> time;
  /// Empty: told by the file's name.
  std::string container;
  /// Of the encoder, under FFmpeg's names.
  std::map<std::string, std::string> options;
  /// Of the muxer.
  std::map<std::string, std::string> muxer_options;
  /// With planes of 8 bits.
  AVPixelFormat format = AV_PIX_FMT_YUV420P;
  AVColorSpace matrix = AVCOL_SPC_UNSPECIFIED;
  AVColorRange range = AVCOL_RANGE_UNSPECIFIED;
  /// Brightness at x, y of frame i, without colour; empty: the scene.
  std::function<int(int i, int x, int y)> brightness = {};
};

/// Encodes and muxes; throws std::runtime_error if this machine's FFmpeg cannot.
void write_clip(const std::string& path, const Clip& clip);

std::string read_bytes(const std::string& path);
void write_bytes(const std::string& path, const std::string& bytes);

/// What FFmpeg alone says of a frame.
struct OracleFrame {
  std::int64_t timestamp = 0;
  double seconds = 0;
  double duration = 0;
  char type = '?';
  Size size;
  std::size_t vectors = 0;
  /// Sum over the vectors of a hash of centre, size, displacement and direction.
  std::uint64_t vectors_hash = 0;
};

/// Decodes a file with one thread in the plainest loop. `look` sees every frame.
std::vector<OracleFrame> oracle_decode(const std::string& path,
                                       const std::function<void(const AVFrame&)>& look = nullptr);

/// The hash of `OracleFrame::vectors_hash` of our vectors.
std::uint64_t vectors_hash(const FrameMotion& motion);

/// The frame as RGB by swscale's most careful path.
Image oracle_rgb(const AVFrame& frame, Size size);

/// Mean absolute difference of the bytes; the sizes must be equal.
double mean_difference(const Image& a, const Image& b);

/// All samples of a file.
struct ReadResult {
  std::vector<SampledFrame> samples;
  SourceInfo info;
  ReadStats stats;
};
ReadResult read_all(const std::string& path, const ReadOptions& options = {});

/// What `Error` says about the file; empty if there was none.
std::string error_of(const std::string& path, const ReadOptions& options = {});

}  // namespace vigil::media
