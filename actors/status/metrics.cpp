#include "actors/status/metrics.h"

#include <array>
#include <initializer_list>

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/text_serializer.h>

#include "actors/status/families.h"

namespace vigil::actors {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;
using prometheus::Registry;

// The buckets of the time metrics of known inference servers, so that their dashboards fit.
const Histogram::BucketBoundaries kSeconds = {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1,  0.25, 0.5,
                                              0.75,  1.0,   2.5,  5.0,  7.5,  10.0, 20.0, 40.0, 80.0, 160.0};

constexpr std::array kOutboxReplaced = {"behind",  "incomplete", "unreadable",
                                        "missing", "watermark",  "foreign"};

// The same servers' for the time between two tokens, and shorter ones: small models need them.
const Histogram::BucketBoundaries kTokenSeconds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1,
                                                   0.15,  0.2,    0.3,   0.4,  0.5,   0.75, 1.0,   2.5,
                                                   5.0,   7.5,    10.0,  20.0, 40.0,  80.0};

constexpr std::array kDeviceStates = {DeviceState::up, DeviceState::restarting, DeviceState::lost};

Histogram& seconds(Registry& registry, const char* name, const char* help,
                   const Histogram::BucketBoundaries& buckets = kSeconds) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry).Add({}, buckets);
}

/// A counter's series at 0, so that the first event is an increase of it.
void declare(Family<Counter>& family, const char* label, std::initializer_list<const char*> values) {
  for (const char* value : values) family.Add({{label, value}});
}

const char* name_of(RequestKind kind) {
  return kind == RequestKind::window ? "window" : "explanation";
}

}  // namespace

struct Metrics::Families {
  std::shared_ptr<Registry> registry = std::make_shared<Registry>();
  Registry& r = *registry;
  CameraSeries cameras;

  explicit Families(const Options& options) : cameras(r, options.cameras) {}

  Family<Gauge>& build = gauge(r, "vigil_build_info", "What was built: always 1");
  Counter& cpu =
      counter(r, "process_cpu_seconds_total", "Processor time of all threads, in user and kernel mode")
          .Add({});
  Gauge& resident = gauge(r, "process_resident_memory_bytes", "Memory that is resident").Add({});
  Gauge& virtual_memory = gauge(r, "process_virtual_memory_bytes", "Memory that is mapped").Add({});
  Gauge& open_fds = gauge(r, "process_open_fds", "File descriptors that are open").Add({});
  Gauge& max_fds = gauge(r, "process_max_fds", "File descriptors that may be open").Add({});
  Gauge& start = gauge(r, "process_start_time_seconds", "When the process started, since 1970").Add({});
  Family<Gauge>& depth = gauge(r, "vigil_mailbox_depth", "What waits in the actor's bounded queue");
  Family<Counter>& windows = counter(r, "vigil_windows_total", "Windows that became due, by outcome");
  Family<Counter>& held =
      counter(r, "vigil_alerts_held_total", "Episodes that began without being told, by reason");
  Family<Counter>& reloads =
      counter(r, "vigil_config_reloads_total", "Changes of the configuration while running, by result");
  Gauge& reload_success = gauge(r, "vigil_config_last_reload_success",
                                "Whether the last change of the configuration was applied (1) or not (0)")
                              .Add({});
  Family<Counter>& messages = counter(r, "vigil_messages_dropped_total",
                                      "Events lost, and times that a slow subscriber began to lose events");
  Family<Gauge>& topic_connections =
      gauge(r, "vigil_topic_connections", "Connections that are open, by the socket that listens");
  Family<Counter>& connections_refused =
      counter(r, "vigil_connections_refused_total",
              "Connections that were not taken up or were closed for what they did, by listener and reason");
  Histogram& encode = seconds(r, "vigil_encode_time_seconds", "One pass of the vision tower");
  Histogram& prefill =
      seconds(r, "vigil_request_prefill_time_seconds", "From a window's first pass until its answers");
  Histogram& decode = seconds(r, "vigil_request_decode_time_seconds", "Completion of one answer");
  Histogram& first_token =
      seconds(r, "vigil_time_to_first_token_seconds",
              "From when a window's last patch was encoded until the first tokens of its answers");
  Histogram& inter_token = seconds(r, "vigil_inter_token_latency_seconds",
                                   "Between two tokens of an explanation, as its mean", kTokenSeconds);
  Family<Gauge>& running =
      gauge(r, "vigil_requests_running", "Windows and explanations that are computed, by kind and device");
  Family<Gauge>& waiting = gauge(r, "vigil_requests_waiting",
                                 "Windows and explanations that wait to be computed, by kind and device");
  Counter& cache_queries =
      counter(r, "vigil_prefix_cache_queries_total", "Tokens of prompts that were looked up in the KV cache")
          .Add({});
  Counter& cache_hits =
      counter(r, "vigil_prefix_cache_hits_total",
              "Tokens of prompts that were in the KV cache, computed for another rule or an earlier window")
          .Add({});
  Family<Counter>& window_tokens =
      counter(r, "vigil_window_tokens_total", "Visual tokens of answered windows: new, reused or refreshed");
  Counter& new_tokens = window_tokens.Add({{"state", "new"}});
  Counter& reused_tokens = window_tokens.Add({{"state", "reused"}});
  Counter& refreshed_tokens = window_tokens.Add({{"state", "refreshed"}});
  Family<Counter>& left_stream =
      counter(r, "vigil_kv_left_tokens_total",
              "Visual tokens whose keys and values streams kept, and keep no longer, by reason");
  /// By reason.
  std::array<Counter*, stream::kLeavingNames.size()> left{};
  Histogram& latency = seconds(r, "vigil_window_latency_seconds",
                               "From the capture of a window's last frame until its answers");
  Counter& patches =
      counter(r, "vigil_patches_encoded_total", "Temporal patches that the vision tower encoded").Add({});
  Counter& visual_tokens =
      counter(r, "vigil_visual_tokens_total", "Tokens of patches that streams of cameras got").Add({});
  Counter& pruned_tokens =
      counter(r, "vigil_pruned_tokens_total", "Tokens that streams of cameras were spared").Add({});
  Counter& groups_not_computed =
      counter(r, "vigil_groups_not_computed_total", "Groups that the vision tower was spared").Add({});
  Family<Counter>& audits =
      counter(r, "vigil_audits_total",
              "Windows that were computed whole beside what pruning and reuse leave, by what came of it");
  Counter& audits_answered = audits.Add({{"outcome", "answered"}});
  Counter& audits_given_up = audits.Add({{"outcome", "given_up"}});
  Counter& prompt_tokens =
      counter(r, "vigil_prompt_tokens_total", "Tokens of prompts, those of frames included").Add({});
  Counter& generated = counter(r, "vigil_generation_tokens_total", "Tokens generated").Add({});
  Counter& outbox_failures =
      counter(r, "vigil_outbox_failures_total", "Writes to the outbox that failed").Add({});
  Family<Counter>& outbox_replaced =
      counter(r, "vigil_outbox_replaced_total",
              "Times that the outbox got a new identity, since what was kept was not all there, by reason");
  Gauge& outbox_in_memory =
      gauge(r, "vigil_outbox_in_memory", "Whether events are kept in memory (1) or on the disk (0)").Add({});
  Counter& clock_steps =
      counter(r, "vigil_clock_steps_total", "What was told of steps of the machine's clock").Add({});
  Family<Gauge>& kv = gauge(r, "vigil_kv_cache_usage_ratio",
                            "Share of the KV cache that streams, windows and texts hold, by tier and device");
  Family<Gauge>& memory_tokens =
      gauge(r, "vigil_window_memory_tokens",
            "Visual tokens of what lies before windows that their rules can see as well, by device");
  Family<Gauge>& memory_bytes =
      gauge(r, "vigil_window_memory_bytes",
            "What these take of the host's memory and of the device's, by device and where");
  Family<Gauge>& memory_room =
      gauge(r, "vigil_window_memory_room_bytes", "What these may take of the host's memory, by device");
  Family<Gauge>& device_up =
      gauge(r, "vigil_device_up", "Whether cameras are watched on the device (1) or not (0)");
  Family<Gauge>& device_state =
      gauge(r, "vigil_device_state", "The state that the device is in (1), and the others (0)");
  Family<Gauge>& device_behind =
      gauge(r, "vigil_device_behind",
            "Whether something came late out of the device within the last 30 s, so that cameras spare it");
  Family<Counter>& device_failures =
      counter(r, "vigil_device_failures_total", "Times that what computes on the device failed");
  Gauge& evidence = gauge(r, "vigil_evidence_bytes", "Stills and clips of alerts on the disk").Add({});
  Family<Counter>& clips = counter(r, "vigil_evidence_clips_total",
                                   "Clips that alerts asked for and got or did not get, by state");
  Gauge& pending = gauge(r, "vigil_outbox_pending", "Events that are not published yet").Add({});
};

Metrics::Metrics(const Options& options) : families_(std::make_unique<Families>(options)) {
  families_->reload_success.Set(1);
  for (const char* reason : kOutboxReplaced) families_->outbox_replaced.Add({{"reason", reason}});
  declare(families_->windows, "outcome", {"answered", "overtaken", "failed", "out_of_memory", "device_lost"});
  for (std::size_t why = 0; why < stream::kLeavingNames.size(); ++why)
    families_->left[why] = &families_->left_stream.Add({{"reason", std::string(stream::kLeavingNames[why])}});
  declare(families_->held, "reason", {"cooldown", "rate_cap", "snoozed"});
  declare(families_->reloads, "result", {"applied", "refused"});
  declare(families_->clips, "state", {"ready", "failed"});
  families_->messages.Add({{"socket", "events"}, {"reason", "slow_subscriber"}});
  families_->messages.Add({{"socket", "outbox"}, {"reason", "backlog_full"}});
}
Metrics::~Metrics() = default;

std::shared_ptr<Registry> Metrics::registry() const {
  return families_->registry;
}

std::string Metrics::text() const {
  return prometheus::TextSerializer().Serialize(families_->registry->Collect());
}

void Metrics::build(const std::string& version, const std::string& commit) {
  families_->build.Add({{"version", version}, {"commit", commit}}).Set(1);
}

void Metrics::process(const ProcessFigures& figures) {
  const double spent = figures.cpu_seconds - families_->cpu.Value();
  if (spent > 0) families_->cpu.Increment(spent);
  families_->resident.Set(static_cast<double>(figures.resident_bytes));
  families_->virtual_memory.Set(static_cast<double>(figures.virtual_bytes));
  families_->open_fds.Set(static_cast<double>(figures.open_fds));
  families_->max_fds.Set(static_cast<double>(figures.max_fds));
  families_->start.Set(figures.start_seconds);
}

void Metrics::camera_added(const WatchSettings& watch) {
  families_->cameras.add(watch);
}

void Metrics::camera_state(const std::string& camera, CameraState state) {
  families_->cameras.state(camera, state);
}

void Metrics::camera_fps(const std::string& camera, double fps) {
  families_->cameras.fps(camera, fps);
}

void Metrics::camera_recording(const std::string& camera, bool recording) {
  families_->cameras.recording(camera, recording);
}

void Metrics::camera_removed(const std::string& camera) {
  families_->cameras.remove(camera);
}

std::map<std::string, CameraFigures> Metrics::cameras() const {
  return families_->cameras.figures();
}

void Metrics::camera_reconnected(const std::string& camera) {
  families_->cameras.reconnected(camera);
}

void Metrics::camera_damaged_packets(const std::string& camera, std::uint64_t packets) {
  families_->cameras.damaged(camera, packets);
}

void Metrics::frame_captured(const std::string& camera, std::optional<base::Clock::WallTime> at) {
  families_->cameras.frame(camera, at);
}

void Metrics::frames_dropped(const std::string& camera, const std::string& reason, std::uint64_t frames) {
  families_->cameras.dropped(camera, reason, frames);
}

void Metrics::camera_budget(const std::string& camera, std::optional<double> usage, std::uint64_t forgotten) {
  families_->cameras.budget(camera, usage, forgotten);
}

void Metrics::audits(std::size_t answered, std::size_t given_up) {
  families_->audits_answered.Increment(static_cast<double>(answered));
  families_->audits_given_up.Increment(static_cast<double>(given_up));
}

void Metrics::audited(const std::string& camera, const std::string& rule, bool agrees, double difference) {
  families_->cameras.audited(camera, rule, agrees, difference);
}

void Metrics::camera_pruned_less(const std::string& camera, int steps) {
  families_->cameras.pruned_less(camera, steps);
}

void Metrics::queue_depth(const std::string& actor, std::size_t waiting, const std::string& device) {
  prometheus::Labels labels{{"actor", actor}};
  if (!device.empty()) labels.emplace("device", device);
  families_->depth.Add(labels).Set(static_cast<double>(waiting));
}

void Metrics::encoded(double pass_seconds, std::size_t patches, const EncodedTokens& tokens) {
  families_->encode.Observe(pass_seconds);
  families_->patches.Increment(static_cast<double>(patches));
  families_->visual_tokens.Increment(static_cast<double>(tokens.kept));
  families_->pruned_tokens.Increment(static_cast<double>(tokens.pruned));
  families_->groups_not_computed.Increment(static_cast<double>(tokens.not_computed));
}

void Metrics::window_tokens(const stream::WindowTokens& tokens) {
  families_->new_tokens.Increment(static_cast<double>(tokens.fresh()));
  families_->reused_tokens.Increment(static_cast<double>(tokens.reused()));
  families_->refreshed_tokens.Increment(static_cast<double>(tokens.refreshed));
}

void Metrics::left_stream(stream::Leaving why, std::uint64_t tokens) {
  families_->left[static_cast<std::size_t>(why)]->Increment(static_cast<double>(tokens));
}

void Metrics::prefilled(double seconds, std::int64_t prompt_tokens, std::int64_t reused) {
  families_->prefill.Observe(seconds);
  families_->prompt_tokens.Increment(static_cast<double>(prompt_tokens));
  families_->cache_queries.Increment(static_cast<double>(prompt_tokens));
  families_->cache_hits.Increment(static_cast<double>(reused));
}

void Metrics::first_token(double seconds) {
  families_->first_token.Observe(seconds);
}

void Metrics::generated(double seconds, std::int64_t tokens, std::int64_t later) {
  families_->decode.Observe(seconds);
  families_->generated.Increment(static_cast<double>(tokens));
  for (std::int64_t i = 0; i < later; ++i)
    families_->inter_token.Observe(seconds / static_cast<double>(later));
}

void Metrics::requests(RequestKind kind, const std::string& device, std::size_t running,
                       std::size_t waiting) {
  prometheus::Labels labels{{"kind", name_of(kind)}};
  if (!device.empty()) labels.emplace("device", device);
  families_->running.Add(labels).Set(static_cast<double>(running));
  families_->waiting.Add(labels).Set(static_cast<double>(waiting));
}

void Metrics::kv_usage(const std::string& tier, const std::string& device, double ratio) {
  families_->kv.Add({{"tier", tier}, {"device", device}}).Set(ratio);
}

void Metrics::window_memory(const std::string& device, const HeldMemory& held) {
  families_->memory_tokens.Add({{"device", device}}).Set(static_cast<double>(held.tokens));
  families_->memory_bytes.Add({{"device", device}, {"where", "host"}})
      .Set(static_cast<double>(held.host_bytes));
  families_->memory_bytes.Add({{"device", device}, {"where", "device"}})
      .Set(static_cast<double>(held.device_bytes));
  families_->memory_room.Add({{"device", device}}).Set(static_cast<double>(held.room));
}

void Metrics::device_state(const std::string& device, DeviceState state) {
  families_->device_up.Add({{"device", device}}).Set(state == DeviceState::up ? 1 : 0);
  for (const DeviceState each : kDeviceStates)
    families_->device_state.Add({{"device", device}, {"state", std::string(name_of(each))}})
        .Set(each == state ? 1 : 0);
  families_->device_failures.Add({{"device", device}});
}

void Metrics::device_behind(const std::string& device, bool is_behind) {
  families_->device_behind.Add({{"device", device}}).Set(is_behind ? 1 : 0);
}

void Metrics::device_failed(const std::string& device) {
  families_->device_failures.Add({{"device", device}}).Increment();
}

void Metrics::windows(const std::string& outcome, std::uint64_t count) {
  families_->windows.Add({{"outcome", outcome}}).Increment(static_cast<double>(count));
}

void Metrics::window_latency(double latency_seconds) {
  families_->latency.Observe(latency_seconds);
}

void Metrics::alert(const std::string& topic, const std::string& severity) {
  families_->cameras.alert(topic, severity);
}

void Metrics::alert_held(const std::string& reason) {
  families_->held.Add({{"reason", reason}}).Increment();
}

void Metrics::config_reloaded(bool applied) {
  families_->reloads.Add({{"result", applied ? "applied" : "refused"}}).Increment();
  families_->reload_success.Set(applied ? 1 : 0);
}

void Metrics::messages_dropped(const std::string& socket, const std::string& reason, std::uint64_t count) {
  families_->messages.Add({{"socket", socket}, {"reason", reason}}).Increment(static_cast<double>(count));
}

void Metrics::topic_connections(const std::string& listener, int open) {
  families_->topic_connections.Add({{"listener", listener}}).Set(open);
}

void Metrics::connections_refused(const std::string& listener, const std::string& reason,
                                  std::uint64_t count) {
  families_->connections_refused.Add({{"listener", listener}, {"reason", reason}})
      .Increment(static_cast<double>(count));
}

void Metrics::evidence_bytes(std::uintmax_t bytes) {
  families_->evidence.Set(static_cast<double>(bytes));
}

void Metrics::evidence_clip(const std::string& state) {
  families_->clips.Add({{"state", state}}).Increment();
}

void Metrics::outbox_failed() {
  families_->outbox_failures.Increment();
}

void Metrics::outbox_pending(std::size_t events) {
  families_->pending.Set(static_cast<double>(events));
}

void Metrics::outbox_in_memory(bool in_memory) {
  families_->outbox_in_memory.Set(in_memory ? 1 : 0);
}

void Metrics::outbox_noticed(const std::string& reason) {
  if (reason == "clock") families_->clock_steps.Increment();
  for (const std::string replaced : kOutboxReplaced)
    if (reason == "outbox_" + replaced) families_->outbox_replaced.Add({{"reason", replaced}}).Increment();
}

}  // namespace vigil::actors
