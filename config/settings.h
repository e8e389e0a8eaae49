// What `vigil run` can be told: a struct for every section of the configuration file, with its defaults.
// `schema/fields.h` names the keys, limits and help of each; `file/load.h` reads them from YAML.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/duration.h"
#include "config/values/byte_size.h"
#include "config/values/masked_text.h"
#include "config/values/pruning.h"
#include "config/values/quantization.h"

namespace vigil::config {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""min;
using std::chrono_literals::operator""h;

/// The sliding window that is looked at, by the time of the stream.
struct WindowSettings {
  base::Duration length = 40s;
  /// A window ends at every multiple of the stride.
  base::Duration stride = 8s;
  /// How much of what lies before a window its rules see as well, of what they call for; 0: nothing. Needs
  /// keys that are kept (`Refresh`).
  base::Duration memory{};
  friend bool operator==(const WindowSettings&, const WindowSettings&) = default;
};

/// How fast a file is played: as a camera would, or as fast as it can be answered (then nothing is dropped).
/// Live sources set their own pace.
enum class Pace : std::uint8_t { realtime, fast };

/// How the packets of an RTSP source travel: within its connection, or beside it.
enum class Transport : std::uint8_t { tcp, udp };

struct PruningSettings {
  Pruning policy = meaning(kDefaultPreset).policy;
  /// Of `codecsight`: how much a patch has to change to count, in pixels of motion of the decoded frame, and
  /// how many of them a unit of residual is worth; 0: residuals are not measured.
  double motion_threshold = 0.25;
  double residual_weight = 0;
  Refresh refresh = meaning(kDefaultPreset).refresh;
  /// Of the visual tokens whose keys are there, those that a policy of a share computes anew.
  double refresh_share = 0.15;
  /// Of keys and values that the camera's windows take in the cache of its device; 0: no budget.
  ByteSize kv_budget = {};
  /// Of a picture's groups, those that are kept of a patch at most, if the policy can rank them; 1: all.
  double kept = 1;
  /// Of so many windows one is computed whole beside what pruning and reuse leave, to tell what these cost;
  /// 0: none.
  int audit = 500;
  friend bool operator==(const PruningSettings&, const PruningSettings&) = default;
};

/// Sets the policy, the refresh and its share, and leaves the rest alone.
void set_preset(PruningSettings& pruning, Preset preset);

/// Waiting times between attempts to reach a camera: doubling from min to max, with jitter, for ever.
struct ReconnectSettings {
  base::Duration min = 1s;
  base::Duration max = 30s;
  friend bool operator==(const ReconnectSettings&, const ReconnectSettings&) = default;
};

/// How servers of sources with TLS are verified.
struct TlsSettings {
  /// Whom to trust, as a file of PEM certificates; empty: the authorities that this system trusts.
  std::filesystem::path ca_file;
  /// Whether to go without: then whoever is in between sees the password.
  bool insecure = false;
  friend bool operator==(const TlsSettings&, const TlsSettings&) = default;
};

/// What a camera does less of where its fleet has no room for all of it, beside what the steps before it have
/// left; each is a factor.
struct DegradeStep {
  /// Shown where the camera is.
  std::string name;
  /// Of the frames sampled a second.
  double fps = 1;
  /// Of what pruning keeps of a picture, if the policy can rank groups.
  double kept = 1;
  /// Of the window's stride, which does not grow beyond the window.
  double stride = 1;
  friend bool operator==(const DegradeStep&, const DegradeStep&) = default;
};

/// What every camera has, and `defaults` sets for all.
struct StreamSettings {
  /// Frames sampled a second.
  double fps = 2;
  WindowSettings window;
  PruningSettings pruning;
  Pace pace = Pace::realtime;
  /// Whether a file starts again at its end.
  bool loop = true;
  /// Decoder threads.
  int threads = 1;
  /// Of RTSP sources.
  Transport transport = Transport::tcp;
  ReconnectSettings reconnect;
  /// A source that is open but delivers nothing for so long is `stalled`.
  base::Duration stall_after = 10s;
  /// Of https, rtsps, rtmps and tls.
  TlsSettings tls;
  /// Whether a source over HTTP may be a playlist (HLS), which names others of its server.
  bool playlists = false;
  /// Decoded pictures that may be held at once.
  ByteSize decoder_memory = mebibytes(512);
  /// In a fleet, step by step (running/degradation.h); empty: it is refused instead. Of a smaller priority
  /// less is left, sooner.
  std::vector<DegradeStep> degrade = {{.name = "fewer frames", .fps = 0.5},
                                      {.name = "more pruning", .kept = 0.5},
                                      {.name = "longer stride", .stride = 2}};
  int priority = 0;
  /// How long what the camera saw is remembered, where anything is (`memory`); 0: not at all.
  base::Duration keep = 24h;
  friend bool operator==(const StreamSettings&, const StreamSettings&) = default;
};

/// What a camera's input is used for: to be watched, or to be recorded as evidence.
enum class Role : std::uint8_t { detect, record };

struct InputSettings {
  MaskedText url;
  std::vector<Role> roles = {Role::detect};
  friend bool operator==(const InputSettings&, const InputSettings&) = default;
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
  /// What its alerts are called, with {camera} and {rule} for their names; empty for "<rule> at <camera>".
  std::string title;
  /// The probability of "Yes" from which a window counts.
  double threshold = 0.5;
  Confirmation confirm;
  /// After an alert was emitted, this long no further one of the rule is. Counted in time of the stream.
  base::Duration cooldown = 60s;
  /// Alerts of the rule that are emitted within any hour of the stream at most.
  int max_per_hour = 60;
  Severity severity = Severity::alert;
  /// Names of topics on which its alerts are published beside the rule's own.
  std::vector<std::string> topics;
  /// Until then, by the wall clock, no alert of it is emitted.
  std::optional<base::Clock::WallTime> snooze_until;
  /// Whether the answer is more than Yes or No, and goes into the alert as its description.
  bool explain = false;
  /// Tokens of an explaining answer at most.
  int max_tokens = 64;
  friend bool operator==(const RuleSettings&, const RuleSettings&) = default;
};

/// A rule of every camera that has its labels.
struct SharedRule {
  RuleSettings rule;
  std::map<std::string, std::string> labels;
  friend bool operator==(const SharedRule&, const SharedRule&) = default;
};

/// Whether an input's URL is that of a file, which ends and can be paced, rather than of a live source:
/// neither a URL other than file://PATH nor a device.
bool is_file(std::string_view url);

struct CameraSettings {
  std::string name;
  bool enabled = true;
  StreamSettings stream;
  /// Exactly one is watched, at most one is recorded.
  std::vector<InputSettings> inputs;
  /// Of all inputs, unless empty; as they are, not percent-encoded.
  MaskedText username;
  MaskedText password;
  /// A file that holds the password, in place of `password`; and what stands in it, once it was read.
  std::filesystem::path password_file;
  MaskedText password_read;
  std::map<std::string, std::string> labels;
  /// Its own, then those that it shares with others and has no own of the same name for.
  std::vector<RuleSettings> rules;
  /// Until then, by the wall clock, no alert of any of its rules is emitted.
  std::optional<base::Clock::WallTime> snooze_until;

  /// Who owns the camera: the label `tenant`, or "default".
  std::string tenant() const;
  /// The input that is watched, with its credentials.
  MaskedText url() const { return address(Role::detect); }
  /// The input that is recorded, with its credentials: the one that is watched, if none is named for it.
  MaskedText record_url() const { return address(Role::record); }
  /// Whether that is another input than the one that is watched.
  bool records_apart() const { return record_url() != url(); }
  /// Until when a rule of this camera is silent, if it is: the later one of its own time and the camera's.
  std::optional<base::Clock::WallTime> snoozed_until(const RuleSettings& rule) const;
  /// Whether it has all of these, with these values.
  bool has_labels(const std::map<std::string, std::string>& wanted) const;
  /// Whether the input that is watched is a file.
  bool is_file() const { return config::is_file(url().value); }
  friend bool operator==(const CameraSettings&, const CameraSettings&) = default;

 private:
  MaskedText address(Role role) const;
};

/// Whether two cameras see the same: rules, labels and snoozes are none of the stream's business, nor how
/// much of it a window shows, computes anew or may take of the cache, how much pruning keeps, what would be
/// done with less room, and how long it is remembered. (Its stride is: a camera's credit is counted in
/// strides.)
bool same_stream(const CameraSettings& a, const CameraSettings& b);

/// Encryption of events, and who may read them (CURVE of ZeroMQ).
struct CurveSettings {
  /// The file of this server's secret key; empty for no encryption, which keeps events on this machine.
  std::filesystem::path secret_key_file;
  /// The public keys of the clients that are let in, in Z85.
  std::vector<std::string> allow;
  friend bool operator==(const CurveSettings&, const CurveSettings&) = default;
};

/// Where alerts go.
struct AlertSettings {
  /// The ZeroMQ endpoint that publishes events.
  std::string bind = "tcp://127.0.0.1:5556";
  /// The ZeroMQ endpoint that replays them; empty for the one next to `bind`.
  std::string replay;
  CurveSettings curve;
  /// The folder of the outbox.
  std::filesystem::path outbox = "vigil-outbox";
  /// How long published events are kept.
  base::Duration retention = 168h;
  /// Events that wait for one slow subscriber, at most; beyond, that subscriber loses events, and they are
  /// counted.
  int high_water_mark = 1000;
  /// Connections to each of the two endpoints, at most: of all, and of one address.
  int max_connections = 256;
  int max_connections_per_address = 64;
  friend bool operator==(const AlertSettings&, const AlertSettings&) = default;

  /// `replay`, or what stands in for it.
  std::string replay_endpoint() const;
};

/// What is kept to show that an alert is true: a still and a clip of each episode, as files.
struct EvidenceSettings {
  bool enabled = false;
  /// The folder of the files. Nothing else should write there.
  std::filesystem::path dir = "vigil-evidence";
  /// Bytes of all files at most; the oldest go first.
  ByteSize budget = gibibytes(10);
  /// How long a file is kept.
  base::Duration max_age = 168h;
  /// A clip begins so long before the window that raised the alert, and ends so long after it.
  base::Duration pre_roll = 5s;
  base::Duration post_roll = 5s;
  /// Packets of each camera that are held in memory, at most, for a clip to begin in the past.
  ByteSize memory = mebibytes(64);
  friend bool operator==(const EvidenceSettings&, const EvidenceSettings&) = default;
};

/// In which forms pages of a tier are kept, and how long after they were seen; 0: not in that form.
struct FormSettings {
  base::Duration bf16{};
  base::Duration fp8{};
  base::Duration int4{};
  /// What the vision tower made, of which keys and values can be computed again.
  base::Duration embeddings{};
  /// Keys and values of the few tokens that stand out, by which windows are found.
  base::Duration sketch{};
  friend bool operator==(const FormSettings&, const FormSettings&) = default;
};

struct TierSettings {
  /// Bytes of all its pages at most.
  ByteSize budget;
  FormSettings forms;
  friend bool operator==(const TierSettings&, const TierSettings&) = default;
};

/// Which of a camera's pages go first where there is no room: those worth least (by age, change, questions
/// and alerts), or those that were not used for longest.
enum class Eviction : std::uint8_t { value, lru };

/// What is remembered of what cameras saw, so that it can be asked about later.
struct MemorySettings {
  bool enabled = false;
  TierSettings host = {gibibytes(1), {.int4 = 10min, .sketch = 10min}};
  TierSettings disk = {gibibytes(100), {.int4 = 24h, .embeddings = 24h, .sketch = 168h}};
  Eviction eviction = Eviction::value;
  /// The folder of the disk's tier; empty: nothing is kept on a disk.
  std::filesystem::path dir;
  /// The file of the key by which it is encrypted; empty: it is not.
  std::filesystem::path key_file;
  friend bool operator==(const MemorySettings&, const MemorySettings&) = default;
};

/// Who may ask, by the public key of his client.
struct AskerSettings {
  /// In Z85.
  std::string key;
  /// About cameras of these; `*`: of all.
  std::vector<std::string> tenants;
  /// Whether he may erase what they remember, too.
  bool erase = false;
  friend bool operator==(const AskerSettings&, const AskerSettings&) = default;
};

/// Where questions about the past are taken, if anything is remembered.
struct AskSettings {
  /// A ZeroMQ endpoint; beyond this machine only with `secret_key_file`. Empty: none are taken.
  std::string bind = "tcp://127.0.0.1:5558";
  /// The file of this server's secret key; empty for no encryption: then everybody who reaches it may do
  /// everything.
  std::filesystem::path secret_key_file;
  std::vector<AskerSettings> askers;
  /// Questions that are answered at once; others are refused for the time being.
  int at_once = 4;
  friend bool operator==(const AskSettings&, const AskSettings&) = default;
};

/// A certificate and its private key; both empty for none.
struct CertificateSettings {
  std::filesystem::path cert_file;
  std::filesystem::path key_file;
  friend bool operator==(const CertificateSettings&, const CertificateSettings&) = default;
};

struct MetricsSettings {
  /// HOST:PORT of `/metrics`, `/status` and the probes; empty for none. Beyond this machine only with `tls`,
  /// or with `allow_plain_text`.
  std::string listen = "127.0.0.1:9464";
  /// HOST:PORT of the probes alone, which tell a status and nothing else, in plain text; empty for none.
  std::string probes;
  CertificateSettings tls;
  bool allow_plain_text = false;
  /// Whether there are series of each camera, or of all together alone.
  bool cameras = true;
  friend bool operator==(const MetricsSettings&, const MetricsSettings&) = default;
};

/// Where a fleet keeps who is there and who has which camera: etcd (v3).
struct RegistrySettings {
  /// HOST:PORT of each of its servers; one of them has to answer.
  std::vector<std::string> endpoints;
  /// Whom to believe, and by which certificate this node is known there; all empty: plain text, which is for
  /// this machine alone, unless `cluster.allow_plain_text`.
  std::filesystem::path ca_file;
  CertificateSettings certificate;
  std::string username;
  MaskedText password;
  friend bool operator==(const RegistrySettings&, const RegistrySettings&) = default;
};

/// Where a node has the fleet's part of the configuration from: its own file, or the registry, into which
/// `vigil config put` has put it.
enum class ConfigurationFrom : std::uint8_t { file, registry };

/// A process as a node of a fleet (`vigil node`).
struct ClusterSettings {
  /// The fleet's name.
  std::string name;
  /// HOST:PORT where other nodes reach this one: with messages, and with pixels, tokens and pages.
  std::string listen = "127.0.0.1:7400";
  std::string bulk = "127.0.0.1:7401";
  /// The name or address under which they do; empty for that of `listen`.
  std::string advertise;
  /// HOST:PORT of nodes that are asked before this one joins; a name may stand for many.
  std::vector<std::string> seeds;
  RegistrySettings registry;
  ConfigurationFrom configuration = ConfigurationFrom::file;
  /// The folder of this node's certificate (ca.crt, tls.crt, tls.key); empty for plain text, on this machine
  /// alone unless `allow_plain_text`.
  std::filesystem::path tls_dir;
  bool allow_plain_text = false;
  /// A node that has given no sign of life for so long has lost its cameras.
  base::Duration lease = 5s;
  /// Its share of the fleet's cameras and streams, beside those of others; and how many it takes at most, 0
  /// for no bound.
  double weight = 1;
  int max_cameras = 0;
  int max_streams = 0;
  friend bool operator==(const ClusterSettings&, const ClusterSettings&) = default;
};

enum class LogLevel : std::uint8_t { debug, info, warn, error, off };
enum class LogFormat : std::uint8_t { text, json };

struct LogSettings {
  LogLevel level = LogLevel::warn;
  LogFormat format = LogFormat::text;
  friend bool operator==(const LogSettings&, const LogSettings&) = default;
};

/// What computes, and with how much memory.
struct EngineSettings {
  /// cpu, cuda (the first GPU) or cuda:NUMBER; cuda:0+1: GPUs that share one model. Or several of these, with
  /// commas: each has an engine of its own, and the cameras are spread over them.
  std::string device = "cpu";
  /// What generates answers, if it is not `device`: as many, of as many other GPUs.
  std::string decode_device;
  /// Tokens that each engine's KV cache has room for, over all windows that are answered at once.
  int kv_tokens = 16384;
  /// Of the host's memory, what may be taken by what cameras' windows remember of what lies before them
  /// (`WindowSettings::memory`), over all engines; 0: a quarter of what this process may use.
  ByteSize window_memory = {};
  /// What large products are computed in.
  Quantization quantization = Quantization::none;
  friend bool operator==(const EngineSettings&, const EngineSettings&) = default;
};

struct Settings {
  /// What this process is called on its own topic; empty for the host's name.
  std::string name;
  /// The folder of the model, as Hugging Face publishes it.
  std::filesystem::path model;
  EngineSettings engine;
  StreamSettings defaults;
  /// In the order of the file; names are unique.
  std::vector<CameraSettings> cameras;
  /// They are among the rules of the cameras already.
  std::vector<SharedRule> rules;
  AlertSettings alerts;
  EvidenceSettings evidence;
  MemorySettings memory;
  AskSettings asks;
  MetricsSettings metrics;
  ClusterSettings cluster;
  LogSettings log;
  /// The time that a shutdown has to finish what is under way.
  base::Duration shutdown_grace = 10s;
  friend bool operator==(const Settings&, const Settings&) = default;
};

}  // namespace vigil::config
