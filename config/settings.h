// What `vigil run` can be told: a struct for every section of the configuration file, with its defaults.
// `fields.h` names the keys, limits and help of each; `load.h` reads them from YAML.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "config/duration.h"

namespace vigil::config {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""h;

/// The sliding window that is looked at, by the time of the stream.
struct WindowSettings {
  Duration length = 40s;
  /// A window ends at every multiple of the stride.
  Duration stride = 8s;
};

/// How fast a file is played: as a camera would, or as fast as it can be answered (then nothing is dropped).
/// Live sources set their own pace.
enum class Pace : std::uint8_t { realtime, fast };

/// How the packets of an RTSP source travel: within its connection, or beside it.
enum class Transport : std::uint8_t { tcp, udp };

/// Waiting times between attempts to reach a camera: doubling from min to max, with jitter, for ever.
struct ReconnectSettings {
  Duration min = 1s;
  Duration max = 30s;
};

/// What every camera has, and `defaults` sets for all.
struct StreamSettings {
  /// Frames sampled a second.
  double fps = 2;
  WindowSettings window;
  Pace pace = Pace::realtime;
  /// Whether a file starts again at its end.
  bool loop = true;
  /// Decoder threads.
  int threads = 1;
  /// Of RTSP sources.
  Transport transport = Transport::tcp;
  ReconnectSettings reconnect;
  /// A source that is open but delivers nothing for so long is `stalled`.
  Duration stall_after = 10s;
};

/// What a camera's input is used for.
enum class Role : std::uint8_t { detect };

/// A text that may hold secrets: `shown` has them masked, and is what logs and messages may contain.
struct MaskedText {
  std::string value;
  std::string shown;
  friend bool operator==(const MaskedText&, const MaskedText&) = default;
};

struct InputSettings {
  MaskedText url;
  std::vector<Role> roles = {Role::detect};
};

/// `needed` of the last `of` windows.
struct Confirmation {
  int needed = 2;
  int of = 2;
  friend bool operator==(const Confirmation&, const Confirmation&) = default;
};

enum class Severity : std::uint8_t { detection, alert };

/// A question to every window of a camera, and when its answer is worth an alert.
struct RuleSettings {
  std::string name;
  std::string prompt;
  /// The probability of "Yes" from which a window counts.
  double threshold = 0.5;
  Confirmation confirm;
  /// After an alert was emitted, this long no further one of the rule is. Counted in time of the stream.
  Duration cooldown = 60s;
  Severity severity = Severity::alert;
  /// Whether the answer is more than Yes or No, and goes into the alert as its description.
  bool explain = false;
  /// Tokens of an explaining answer at most.
  int max_tokens = 64;
};

struct CameraSettings {
  std::string name;
  bool enabled = true;
  StreamSettings stream;
  std::vector<InputSettings> inputs;
  std::map<std::string, std::string> labels;
  std::vector<RuleSettings> rules;

  /// Who owns the camera: the label `tenant`, or "default".
  std::string tenant() const;
  /// The input that is watched.
  const MaskedText& url() const { return inputs.front().url; }
  /// Whether the input is a file, which ends and can be paced, rather than a live source: neither a URL other
  /// than file://PATH nor a device.
  bool is_file() const;
};

/// Where alerts go.
struct AlertSettings {
  /// The ZeroMQ endpoint that publishes events.
  std::string bind = "tcp://127.0.0.1:5556";
  /// The folder of the outbox.
  std::filesystem::path outbox = "vigil-outbox";
  /// How long published events are kept.
  Duration retention = 168h;
  /// Events that wait for one slow subscriber, at most; beyond, that subscriber loses events, and they are
  /// counted.
  int high_water_mark = 1000;
};

struct MetricsSettings {
  /// HOST:PORT of `/metrics`; empty for none.
  std::string listen = "127.0.0.1:9464";
};

enum class LogLevel : std::uint8_t { debug, info, warn, error, off };
enum class LogFormat : std::uint8_t { text, json };

struct LogSettings {
  LogLevel level = LogLevel::warn;
  LogFormat format = LogFormat::text;
};

struct Settings {
  /// The folder of the model, as Hugging Face publishes it.
  std::filesystem::path model;
  StreamSettings defaults;
  /// In the order of the file; names are unique.
  std::vector<CameraSettings> cameras;
  AlertSettings alerts;
  MetricsSettings metrics;
  LogSettings log;
  /// The time that a shutdown has to finish what is under way.
  Duration shutdown_grace = 10s;
};

}  // namespace vigil::config
