// What a video is and how it moves, from one pass over it.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "media/contact_sheet.h"
#include "media/media.h"
#include "media/motion.h"

namespace vigil::media {

/// Motion of a set of frames.
struct MotionStatistics {
  std::uint64_t frames = 0;
  /// Mean share of the picture covered by blocks that moved more than `kMovingPixels`, 0 to 1.
  double moving_share = 0;
  /// Length of the vectors in pixels, weighted by the area of their blocks; the percentile is exact to a
  /// quarter pixel.
  double mean_pixels = 0;
  double percentile95_pixels = 0;
};

struct KeyFrames {
  std::uint64_t count = 0;
  /// Frames from one key frame to the next; 0 if there is but one.
  std::uint64_t shortest = 0;
  double median = 0;
  std::uint64_t longest = 0;
};

/// Why there is no more in a report.
enum class InspectEnd : std::uint8_t { end, limit, interrupt };

struct InspectReport {
  SourceInfo source;
  ReadStats stats;
  /// By type: unknown, intra, predicted, bidirectional (`FrameType`'s order).
  std::array<std::uint64_t, 4> frames_by_type{};
  /// From the first to the last frame's time, and the shortest and longest time between two frames.
  double seconds = 0;
  double measured_fps = 0;
  double shortest_interval = 0;
  double longest_interval = 0;
  KeyFrames keys;
  /// Types of the frames from the first key frame to the next, in order of presentation: "IBBPBBP".
  std::string first_gop;
  bool motion_available = false;
  MotionStatistics predicted;
  MotionStatistics bidirectional;
  /// Of both.
  MotionStatistics moving;
  InspectEnd ended_by = InspectEnd::end;
};

/// Gathers a report from frames in order of presentation. Needs bounded memory, save for a number a key
/// frame.
class Inspector {
 public:
  void add(const FrameMotion& frame);

  /// What the frames so far say; `source` and `stats` are left to the caller.
  InspectReport report() const;

 private:
  /// Vectors' lengths by area in steps of a quarter pixel; the last step holds all longer ones.
  struct Lengths {
    std::uint64_t frames = 0;
    double shares = 0;
    double area = 0;
    double area_times_length = 0;
    std::array<double, 2048> steps{};

    void add(const FrameMotion& frame, double share);
    void add(const Lengths& other);
    MotionStatistics statistics() const;
  };

  std::array<std::uint64_t, 4> frames_by_type_{};
  std::uint64_t frames_ = 0;
  double first_seconds_ = 0;
  double last_seconds_ = 0;
  double shortest_interval_ = 0;
  double longest_interval_ = 0;
  std::vector<std::uint64_t> key_positions_;
  std::string first_gop_;
  Lengths predicted_;
  Lengths bidirectional_;
};

struct InspectOptions {
  int threads = 1;
  /// As `ReadOptions::shown_name`.
  std::string shown_name = {};
  /// Samples a second for the contact sheet, which keeps as many as fit.
  double sheet_fps = 4;
  /// Ends after so much of the video; and so, if that is absent, what is live, as a camera.
  std::optional<double> seconds = {};
  std::optional<double> seconds_of_endless = {};
  /// As in `ReadOptions`.
  std::chrono::milliseconds open_timeout{0};
  std::chrono::milliseconds read_timeout{0};
  std::chrono::milliseconds frame_timeout{0};
  /// Ends it with the report so far; `Error::Kind::cancelled` if there is none yet.
  std::stop_token stop = {};
};

/// Reads the source to where the options end it. `sheet` may be null; then no picture is made. Throws
/// `Error`.
InspectReport inspect(const std::string& url, const InspectOptions& options, ContactSheet* sheet);

/// For people: some lines. For programs: one JSON object.
std::string to_text(const InspectReport& report);
std::string to_json(const InspectReport& report);

}  // namespace vigil::media
