// The keys of the configuration file: one `describe` for each section names its keys, limits and help.
// Reading, printing and the check of the JSON Schema are visitors of these functions, so that they cannot
// disagree.
//
// A visitor has
//   field(key, value, limits, help)   for numbers, durations and amounts of bytes
//   field(key, value, check, help)    for texts, credentials and lists of texts, with a Check that says what
//                                     is legal
//   field(key, value, help)           for booleans, enumerations, confirmations, paths and the like, and for
//                                     what a key is short for
//   section(key, value, help)         for a struct
//   list(key, values, help)           for a sequence of structs
//   named(key, values, prototype, help)  for a map of structs by name
#pragma once

#include <string_view>

#include "config/schema/enum_names.h"
#include "config/settings.h"
#include "config/values/curve_key.h"

namespace vigil::config {

template <class T>
struct Limits {
  T min;
  T max;
  /// Whether `{NAME}` may stand for the number: of a node's own, which differ from node to node.
  bool referable = false;
  /// Whether it may be 0, too, whatever the least is: `off`.
  bool off = false;
};

/// What 0 is called where it may be (`Limits::off`).
inline constexpr std::string_view kOff = "off";

/// Whether a text is legal, and what would be.
struct Check {
  bool (*legal)(std::string_view text);
  std::string_view expected;
};

bool is_name(std::string_view text);
bool is_name_or_nothing(std::string_view text);
bool is_step(std::string_view text);
bool is_prompt(std::string_view text);
bool is_tenant(std::string_view text);
bool is_title(std::string_view text);
bool is_username(std::string_view text);
bool is_username_or_nothing(std::string_view text);
bool is_password(std::string_view text);
bool is_local_endpoint(std::string_view text);
bool is_endpoint(std::string_view text);
bool is_endpoint_or_nothing(std::string_view text);
bool is_listen_address(std::string_view text);
bool is_node_address(std::string_view text);
bool is_host_or_nothing(std::string_view text);
bool is_device(std::string_view text);
bool is_decode_device(std::string_view text);

inline constexpr Check kName = {is_name,
                                "a name of letters, digits, '.', '_' and '-' (it becomes part of topics)"};
inline constexpr Check kPrompt = {is_prompt,
                                  "a question in words, without a model's special tokens, <|...|>"};
inline constexpr Check kTenant = {is_tenant, "a tenant's name, or \"*\" for all"};
inline constexpr Check kNameOrNothing = {
    is_name_or_nothing,
    "a name of letters, digits, '.', '_' and '-', or nothing (it becomes part of a topic)"};
inline constexpr Check kFleetName = {
    is_name_or_nothing,
    "a name of letters, digits, '.', '_' and '-' (it becomes part of the fleet's keys in etcd)"};
inline constexpr Check kStep = {is_step,
                                "a line of at most 40 letters, digits, spaces, '.', '_' and '-', other than "
                                "`full` and `refused`"};
inline constexpr Check kTitle = {
    is_title,
    "a line of at most 200 bytes, in which {camera} and {rule} are all that stands "
    "in braces"};
inline constexpr Check kUsername = {is_username, "a user's name, without ':'"};
inline constexpr Check kUsernameOrNothing = {is_username_or_nothing,
                                             "a user's name, without ':', or nothing"};
inline constexpr Check kPassword = {is_password, "a password"};
inline constexpr Check kLocalEndpoint = {is_local_endpoint,
                                         "tcp://127.0.0.1:PORT, tcp://[::1]:PORT or ipc:///PATH (events are "
                                         "not encrypted, so they stay on this machine)"};
inline constexpr Check kEndpoint = {is_endpoint, "tcp://HOST:PORT or ipc:///PATH"};
inline constexpr Check kEndpointOrNothing = {is_endpoint_or_nothing,
                                             "tcp://HOST:PORT or ipc:///PATH, or nothing"};
inline constexpr Check kCurveKey = {is_curve_key, "a public CURVE key, 40 characters of Z85 (vigil keygen)"};
inline constexpr Check kDevice = {is_device,
                                  "cpu, cuda, cuda:NUMBER, GPUs that share a model as in cuda:0+1, "
                                  "or several of them with commas, each GPU once"};
inline constexpr Check kDecodeDevice = {is_decode_device, "GPUs as `device` names them, or nothing"};
inline constexpr Check kNodeAddress = {is_node_address, "HOST:PORT ([HOST]:PORT for IPv6)"};
inline constexpr Check kHostOrNothing = {is_host_or_nothing,
                                         "a name or an address, without a port, or nothing"};
inline constexpr Check kListenAddress = {is_listen_address,
                                         "HOST:PORT ([HOST]:PORT for IPv6), or nothing for none"};

template <class V>
void describe(V& v, WindowSettings& s) {
  v.field("length", s.length, Limits<base::Duration>{500ms, 1h}, "how much of the stream a window shows");
  v.field("stride", s.stride, Limits<base::Duration>{100ms, 1h}, "time between the ends of two windows");
  v.field("memory", s.memory, Limits<base::Duration>{.min = 1s, .max = 24h, .off = true},
          "how much of what lies before a window its rules see as well, of what they call for; off: nothing");
}

template <class V>
void describe(V& v, PruningSettings& s) {
  // First: what stands beside it overrides it.
  v.field("preset", s, "short for a policy and a refresh");
  v.field("policy", s.policy, "what of the frames is encoded");
  v.field("motion_threshold", s.motion_threshold, Limits<double>{0, 1000},
          "of codecsight: pixels of motion, and what the residual adds, that a patch has to exceed");
  v.field(
      "residual_weight", s.residual_weight, Limits<double>{0, 1000},
      "of codecsight: pixels that a level of difference of a patch from its prediction adds; 0: it is not "
      "measured");
  v.field("refresh", s.refresh, "what a window computes anew of what the one before has computed");
  v.field("refresh_share", s.refresh_share, Limits<double>{0, 1},
          "how much that is, of its visual tokens, where the policy leaves it open");
  v.field("kv_budget", s.kv_budget, Limits<ByteSize>{ByteSize{0}, gibibytes(1024)},
          "keys and values of the camera's windows in the KV cache: beyond it, pruning gets harder, then "
          "windows get shorter; 0B: as much as there is");
  v.field("kept", s.kept, Limits<double>{0.05, 1},
          "of scene and changes: the share of a picture that is kept of a patch at most; 1: what changed");
  v.field("audit", s.audit, Limits<int>{0, 1'000'000},
          "of so many windows one is computed whole, too, where the device has time, to tell what pruning "
          "costs; 0: none");
}

template <class V>
void describe(V& v, ReconnectSettings& s) {
  v.field("min", s.min, Limits<base::Duration>{10ms, 1h}, "first waiting time");
  v.field("max", s.max, Limits<base::Duration>{10ms, 24h}, "longest waiting time");
}

template <class V>
void describe(V& v, TlsSettings& s) {
  v.field("ca_file", s.ca_file,
          "certificates of those to trust, in PEM; nothing: the authorities that this system trusts");
  v.field("insecure", s.insecure, "whether to go without: then whoever is in between sees the password");
}

template <class V>
void describe(V& v, DegradeStep& s) {
  v.field("name", s.name, kStep, "what it is called where the camera is shown");
  v.field("fps", s.fps, Limits<double>{0.01, 1}, "so many times the frames sampled a second");
  v.field("kept", s.kept, Limits<double>{0.05, 1},
          "so many times what pruning keeps of a picture (of scene and changes)");
  v.field("stride", s.stride, Limits<double>{1, 100},
          "so many times the window's stride, up to the window's length");
}

template <class V>
void describe(V& v, StreamSettings& s) {
  v.field("fps", s.fps, Limits<double>{0.01, 120}, "frames sampled a second");
  v.section("window", s.window, "the sliding window");
  v.section("pruning", s.pruning, "what is computed of what changed little");
  v.field("pace", s.pace, "how fast a file is played");
  v.field("loop", s.loop, "whether a file starts again at its end");
  v.field("threads", s.threads, Limits<int>{1, 64}, "decoder threads");
  v.field("transport", s.transport, "how the packets of an RTSP source travel");
  v.section("reconnect", s.reconnect, "waiting times between attempts to reach a camera");
  v.field("stall_after", s.stall_after, Limits<base::Duration>{1s, 1h},
          "silence after which an open source is stalled");
  v.section("tls", s.tls, "how servers of https, rtsps, rtmps and tls are verified");
  v.field("playlists", s.playlists, "whether an http or https source may be a playlist (HLS) of its server");
  v.field("decoder_memory", s.decoder_memory, Limits<ByteSize>{mebibytes(1), gibibytes(64)},
          "memory for decoded pictures; a source that needs more fails");
  v.list("degrade", s.degrade,
         "what is done, step by step, where the fleet has no room for all of it; []: it is refused instead");
  v.field("priority", s.priority, Limits<int>{-1000, 1000},
          "cameras of a smaller one are degraded, and refused, first");
  v.field("keep", s.keep, Limits<base::Duration>{.min = 1s, .max = 87600h, .off = true},
          "how long what the camera saw is remembered, where anything is (`memory`); off: not at all");
}

template <class V>
void describe(V& v, InputSettings& s) {
  v.field("url", s.url, "a file (relative to this file), a URL such as rtsp:// or https://, or /dev/videoN");
  v.field("roles", s.roles, "what the input is used for");
}

template <class V>
void describe(V& v, RuleSettings& s) {
  v.field("name", s.name, kName, "the rule's name in topics");
  v.field("prompt", s.prompt, kPrompt, "the question, to be answered Yes or No");
  v.field("title", s.title, kTitle, "of its alerts, with {camera} and {rule}; nothing: RULE at CAMERA");
  v.field("threshold", s.threshold, Limits<double>{0, 1}, "probability of Yes from which a window counts");
  v.field("confirm", s.confirm, "N/M: N of the last M windows have to count");
  v.field("cooldown", s.cooldown, Limits<base::Duration>{0ms, 8760h}, "silence after an emitted alert");
  v.field("max_per_hour", s.max_per_hour, Limits<int>{1, 10'000},
          "alerts and updates within any hour at most");
  v.field("severity", s.severity, "of its alerts");
  v.field("topics", s.topics, kName, "topics that get its alerts beside the rule's own");
  v.field("snooze_until", s.snooze_until, "silent until then, in RFC 3339");
  v.field("explain", s.explain, "whether the model's answer goes into the alert");
  v.field("max_tokens", s.max_tokens, Limits<int>{1, 4096}, "length of an explanation");
}

template <class V>
void describe(V& v, SharedRule& s) {
  describe(v, s.rule);
  v.field("labels", s.labels, "of the cameras that have the rule; all cameras without");
}

template <class V>
void describe(V& v, CameraSettings& s) {
  v.field("enabled", s.enabled, "whether the camera is watched");
  v.field("url", s.inputs, "short for a single input");
  v.list("inputs", s.inputs, "where frames come from");
  v.field("username", s.username, kUsername, "of its inputs, not percent-encoded");
  v.field("password", s.password, kPassword, "of its inputs, not percent-encoded");
  v.field("password_file", s.password_file, "a file that holds the password, in place of `password`");
  v.field("labels", s.labels, "free labels; `tenant` names the owner and becomes part of topics");
  v.list("rules", s.rules, "what to look for");
  v.field("snooze_until", s.snooze_until, "all its rules are silent until then, in RFC 3339");
  describe(v, s.stream);
}

template <class V>
void describe(V& v, CurveSettings& s) {
  v.field("secret_key_file", s.secret_key_file, "file of the server's secret key; nothing for no encryption");
  v.field("allow", s.allow, kCurveKey, "public keys of the clients that are let in");
}

template <class V>
void describe(V& v, AlertSettings& s) {
  v.field("bind", s.bind, kEndpoint,
          "where events are published; with `curve`, others' machines may read them");
  v.field("replay", s.replay, kEndpointOrNothing,
          "where events are replayed; nothing: the port after that of `bind`");
  v.section("curve", s.curve, "encryption, and who may read events");
  v.field("outbox", s.outbox, "folder of the outbox");
  v.field("retention", s.retention, Limits<base::Duration>{0ms, 87600h},
          "how long published events are kept");
  v.field("high_water_mark", s.high_water_mark, Limits<int>{1, 1'000'000},
          "events that wait for one slow subscriber");
  v.field("max_connections", s.max_connections, Limits<int>{1, 65536},
          "connections to each of the two endpoints at once (TCP only); a quarter of the process's "
          "descriptors bounds them as well");
  v.field("max_connections_per_address", s.max_connections_per_address, Limits<int>{1, 65536},
          "those of one address");
}

template <class V>
void describe(V& v, EvidenceSettings& s) {
  v.field("enabled", s.enabled, "whether a still and a clip of each alert are kept");
  v.field("dir", s.dir, "folder of the stills and clips");
  v.field("budget", s.budget, Limits<ByteSize>{mebibytes(1), gibibytes(1 << 20)},
          "bytes of all files at most; the oldest go first");
  v.field("max_age", s.max_age, Limits<base::Duration>{1s, 87600h}, "how long a file is kept");
  v.field("pre_roll", s.pre_roll, Limits<base::Duration>{0ms, 10min},
          "how long before its window a clip begins");
  v.field("post_roll", s.post_roll, Limits<base::Duration>{0ms, 10min},
          "how long after its window a clip ends");
  v.field("memory", s.memory, Limits<ByteSize>{mebibytes(1), gibibytes(64)},
          "packets of each camera that are held for clips");
}

template <class V>
void describe(V& v, FormSettings& s) {
  const Limits<base::Duration> limits{.min = 1s, .max = 87600h, .off = true};
  v.field("bf16", s.bf16, limits, "keys and values in 16 bits, as they are computed; off: not so, as below");
  v.field("fp8", s.fp8, limits, "keys and values in 8 bits");
  v.field("int4", s.int4, limits, "keys and values in 4 bits");
  v.field("embeddings", s.embeddings, limits,
          "what the vision tower made, of which keys and values are computed again");
  v.field("sketch", s.sketch, limits,
          "keys and values of the few tokens that stand out, by which windows are found");
}

template <class V>
void describe(V& v, TierSettings& s) {
  v.field("budget", s.budget, Limits<ByteSize>{mebibytes(1), gibibytes(1 << 20)},
          "bytes of all that it holds at most");
  v.section("forms", s.forms, "in which forms, and for how long after they were seen; these alone");
}

template <class V>
void describe(V& v, MemorySettings& s) {
  v.field("enabled", s.enabled, "whether what cameras saw is remembered");
  v.section("host", s.host, "what is kept in this machine's memory");
  v.section("disk", s.disk, "what is kept in `dir`");
  v.field("eviction", s.eviction, "what goes first where there is no room");
  v.field("dir", s.dir, "folder of what is kept on a disk; nothing: nothing is");
  v.field("key_file", s.key_file, "file of the key by which that is encrypted; nothing: it is not");
}

template <class V>
void describe(V& v, AskerSettings& s) {
  v.field("key", s.key, kCurveKey, "the public key of the client");
  v.field("tenants", s.tenants, kTenant, "whose cameras it may ask about; \"*\": all");
  v.field("erase", s.erase, "whether it may erase what they remember, too");
}

template <class V>
void describe(V& v, AskSettings& s) {
  v.field("bind", s.bind, kEndpointOrNothing, "where questions about the past are taken; nothing: none are");
  v.field("secret_key_file", s.secret_key_file, "file of the server's secret key; nothing for no encryption");
  v.list("askers", s.askers, "the clients that are let in");
  v.field("at_once", s.at_once, Limits<int>{1, 1024}, "questions that are answered at once");
}

template <class V>
void describe(V& v, CertificateSettings& s) {
  v.field("cert_file", s.cert_file, "the certificate, and what leads to its issuer behind it, in PEM");
  v.field("key_file", s.key_file, "its private key in PEM, which not everybody may read");
}

template <class V>
void describe(V& v, MetricsSettings& s) {
  v.field("listen", s.listen, kListenAddress,
          "where /metrics, /status and the probes are served; beyond this machine with `tls`");
  v.field("probes", s.probes, kListenAddress,
          "where /healthz, /readyz and /startupz alone are served, in plain text; nothing: only at `listen`");
  v.section("tls", s.tls, "the certificate with which `listen` is served");
  v.field("allow_plain_text", s.allow_plain_text,
          "whether `listen` may be beyond this machine without `tls`, for everybody to read and change");
  v.field("cameras", s.cameras, "whether there are series of each camera, not only of all together");
}

template <class V>
void describe(V& v, RegistrySettings& s) {
  v.field("endpoints", s.endpoints, kNodeAddress, "etcd's servers");
  v.field("ca_file", s.ca_file, "whom to believe that he is one of them, in PEM");
  v.section("certificate", s.certificate, "by which this node is known there");
  v.field("username", s.username, kUsernameOrNothing, "if etcd wants one");
  v.field("password", s.password, kPassword, "the user's");
}

template <class V>
void describe(V& v, ClusterSettings& s) {
  v.field("name", s.name, kFleetName, "of the fleet");
  v.field("listen", s.listen, kNodeAddress, "where other nodes reach this one with messages");
  v.field("bulk", s.bulk, kNodeAddress, "where they reach it with pixels, tokens and pages");
  v.field("advertise", s.advertise, kHostOrNothing,
          "the name or address under which they do; nothing: that of `listen`");
  v.field("seeds", s.seeds, kNodeAddress, "nodes that are asked before this one joins");
  v.section("registry", s.registry, "where the fleet keeps who is there and who has which camera: etcd");
  v.field(
      "configuration", s.configuration,
      "where cameras, rules and defaults of the fleet are: in this file, or in the registry (vigil config)");
  v.field("tls_dir", s.tls_dir, "folder of this node's ca.crt, tls.crt and tls.key");
  v.field("allow_plain_text", s.allow_plain_text,
          "whether nodes and etcd may be reached beyond this machine without certificates, for everybody to "
          "read");
  v.field("lease", s.lease, Limits<base::Duration>{2s, 5min},
          "a node that gives no sign of life for so long has lost its cameras");
  v.field("weight", s.weight, Limits<double>{0.001, 1000}, "this node's share, beside those of others");
  v.field("max_cameras", s.max_cameras, Limits<int>{0, 1'000'000, true},
          "cameras that it reads at most; 0: any number");
  v.field("max_streams", s.max_streams, Limits<int>{0, 1'000'000, true},
          "streams that it computes at most, as cameras of the standard settings; 0: any number");
}

template <class V>
void describe(V& v, LogSettings& s) {
  v.field("level", s.level, "the least severe lines that are written");
  v.field("format", s.format, "lines for people or for programs");
}

template <class V>
void describe(V& v, EngineSettings& s) {
  v.field("device", s.device, kDevice, "what computes");
  v.field(
      "decode_device", s.decode_device, kDecodeDevice,
      "what generates answers, if not `device`: as many, of as many other GPUs, which take windows over from "
      "it");
  v.field("kv_tokens", s.kv_tokens, Limits<int>{1024, 1'000'000'000},
          "tokens that the KV cache has room for, over all windows that are answered at once");
  v.field("window_memory", s.window_memory, Limits<ByteSize>{ByteSize{0}, gibibytes(1 << 20)},
          "of this machine's memory, what all windows' memories (window.memory) may take together; 0B: a "
          "quarter of what there is for this process");
  v.field("quantization", s.quantization, "large products in 8 bits, on a GPU");
}

template <class V>
void describe(V& v, Settings& s) {
  v.field("name", s.name, kNameOrNothing, "of this process on its topic; nothing: the host's name");
  v.field("model", s.model, "folder of the model");
  v.section("engine", s.engine, "what computes, and with how much memory");
  v.section("defaults", s.defaults, "what cameras have unless they say otherwise");
  CameraSettings prototype;
  prototype.stream = s.defaults;
  v.named("cameras", s.cameras, prototype, "the cameras by name");
  v.list("rules", s.rules, "what to look for in every camera that has the rule's labels");
  v.section("alerts", s.alerts, "where alerts go");
  v.section("evidence", s.evidence, "stills and clips that show what an alert is about");
  v.section("memory", s.memory, "what cameras saw, to be asked about later");
  v.section("asks", s.asks, "where questions about that are taken, and who may ask them");
  v.section("metrics", s.metrics, "figures about the running process");
  v.section("cluster", s.cluster, "this process as a node of a fleet");
  v.section("log", s.log, "lines on stderr");
  v.field("shutdown_grace", s.shutdown_grace, Limits<base::Duration>{0ms, 1h},
          "time to finish what is under way");
}

}  // namespace vigil::config
