#include "actors/status/fleet_series.h"

#include <mutex>
#include <utility>

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>

#include "actors/status/families.h"

namespace vigil::actors {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;
using prometheus::Labels;
using prometheus::Registry;

// An etcd that is well answers within 10 ms; leases are lost when it takes seconds.
const Histogram::BucketBoundaries kAnswerSeconds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                                    0.25,  0.5,    1.0,   2.5,  5.0,   10.0};

}  // namespace

struct FleetSeries::Families {
  /// A counter that follows a total which is counted elsewhere, and may begin again there.
  class Follower {
   public:
    explicit Follower(Counter& counter) : counter_(&counter) {}

    void follow(double total) {
      counter_->Increment(total < seen_ ? total : total - seen_);
      seen_ = total;
    }
    void follow(std::uint64_t total) { follow(static_cast<double>(total)); }
    Counter& counter() const { return *counter_; }

   private:
    Counter* counter_;
    double seen_ = 0;
  };

  struct Flow {
    Follower bytes;
    Gauge& waiting;
    std::map<std::string, Follower> resets = {};
  };
  struct Link {
    Gauge& up;
    Flow outgoing;
    Flow incoming;
    Follower blocked;
    Follower dials;
    std::map<std::string, Follower> failed_dials = {};
  };

  explicit Families(std::shared_ptr<Registry> own) : registry(std::move(own)) {
    for (const char* state : {"joining", "ready", "draining"}) nodes.Add({{"state", state}});
    for (const char* state : {"owned", "handing_over", "unplaced"}) cameras.Add({{"state", state}});
  }

  Flow flow(const std::string& node, const char* direction) {
    const Labels labels{{"node", node}, {"direction", direction}};
    Flow made{Follower(bytes.Add(labels)), waiting.Add(labels)};
    // The others come when there is something to count: most never do, and there is a stream to every node.
    for (const char* reason : {"connection", "silence"})
      made.resets.emplace(reason, reset(node, direction, reason));
    return made;
  }
  Follower reset(const std::string& node, const char* direction, const std::string& reason) {
    return Follower(resets.Add({{"node", node}, {"direction", direction}, {"reason", reason}}));
  }

  void follow(const std::string& node, const char* direction, const LinkFlow& now, Flow& flow) {
    flow.bytes.follow(now.bytes);
    flow.waiting.Set(static_cast<double>(now.waiting_bytes));
    for (const auto& [reason, count] : now.resets) {
      auto series = flow.resets.find(reason);
      if (series == flow.resets.end()) {
        if (count == 0) continue;
        series = flow.resets.emplace(reason, reset(node, direction, reason)).first;
      }
      series->second.follow(count);
    }
  }

  Link link(const std::string& node) {
    const Labels labels{{"node", node}};
    Link made{up.Add(labels), flow(node, "outgoing"), flow(node, "incoming"), Follower(blocked.Add(labels)),
              Follower(dials.Add(labels))};
    // As of resets.
    made.failed_dials.emplace("connection", failed_dial(node, "connection"));
    return made;
  }
  Follower failed_dial(const std::string& node, const std::string& reason) {
    return Follower(failed_dials.Add({{"node", node}, {"reason", reason}}));
  }

  void follow(const std::string& node, const LinkFigures& now, Link& link) {
    link.up.Set(now.is_up ? 1 : 0);
    follow(node, "outgoing", now.outgoing, link.outgoing);
    follow(node, "incoming", now.incoming, link.incoming);
    link.blocked.follow(now.blocked.count());
    link.dials.follow(now.dials);
    for (const auto& [reason, count] : now.failed_dials) {
      auto series = link.failed_dials.find(reason);
      if (series == link.failed_dials.end())
        series = link.failed_dials.emplace(reason, failed_dial(node, reason)).first;
      series->second.follow(count);
    }
  }

  void forget(const Link& link) {
    up.Remove(&link.up);
    forget(link.outgoing);
    forget(link.incoming);
    blocked.Remove(&link.blocked.counter());
    dials.Remove(&link.dials.counter());
    for (const auto& [reason, series] : link.failed_dials) failed_dials.Remove(&series.counter());
  }

  void forget(const Flow& flow) {
    bytes.Remove(&flow.bytes.counter());
    waiting.Remove(&flow.waiting);
    for (const auto& [reason, series] : flow.resets) resets.Remove(&series.counter());
  }

  std::shared_ptr<Registry> registry;
  Registry& r = *registry;
  Gauge& member = gauge(r, "vigil_fleet_member", "Whether this node's lease holds (1) or not (0)").Add({});
  Gauge& planner =
      gauge(r, "vigil_fleet_planner", "Whether this node gives cameras to nodes (1) or not (0)").Add({});
  Gauge& registry_up = gauge(r, "vigil_fleet_registry_up",
                             "Whether the registry answered when it was asked last (1) or not (0)")
                           .Add({});
  Histogram& registry_seconds = prometheus::BuildHistogram()
                                    .Name("vigil_fleet_registry_seconds")
                                    .Help("From a request to the registry until its answer")
                                    .Register(r)
                                    .Add({}, kAnswerSeconds);
  Family<Gauge>& nodes = gauge(r, "vigil_fleet_nodes", "Nodes in a state, as the registry has it");
  Family<Gauge>& cameras = gauge(r, "vigil_fleet_cameras",
                                 "Cameras that this node was given, and, of the node that plans, those of "
                                 "the fleet on their way, without a node, degraded or refused");
  Family<Gauge>& configuration =
      gauge(r, "vigil_fleet_config_info", "The configuration that this node runs by: always 1");
  Family<Gauge>& up =
      gauge(r, "vigil_link_up", "Whether bulk bytes go both ways between this node and the other (1)");
  Family<Counter>& bytes = counter(r, "vigil_link_bytes_total", "Bulk bytes between this node and the other");
  Family<Counter>& resets =
      counter(r, "vigil_link_resets_total", "Streams of bulk bytes that ended, by direction and reason");
  Family<Counter>& blocked =
      counter(r, "vigil_link_blocked_seconds_total", "How long sends to the other node have found no credit");
  Family<Counter>& dials =
      counter(r, "vigil_link_dials_total", "Attempts to connect to the other node for bulk bytes");
  Family<Counter>& failed_dials =
      counter(r, "vigil_link_failed_dials_total", "Of these, those that came to nothing, by reason");
  Family<Gauge>& waiting = gauge(r, "vigil_link_waiting_bytes",
                                 "Bulk bytes sent and not acknowledged, or received and not let go");

  std::mutex mutex;
  std::string shown_configuration;
  std::map<std::string, Link> links;
};

FleetSeries::FleetSeries(Metrics& metrics) : families_(std::make_unique<Families>(metrics.registry())) {}
FleetSeries::~FleetSeries() = default;

void FleetSeries::tell(const FleetFigures& figures) {
  Families& own = *families_;
  const std::lock_guard lock(own.mutex);
  own.member.Set(figures.is_member ? 1 : 0);
  own.planner.Set(figures.is_planner ? 1 : 0);
  own.registry_up.Set(figures.registry_answers ? 1 : 0);
  for (const char* state : {"joining", "ready", "draining"}) {
    const auto count = figures.nodes.find(state);
    own.nodes.Add({{"state", state}})
        .Set(count == figures.nodes.end() ? 0 : static_cast<double>(count->second));
  }
  for (const auto& [state, count] : {std::pair{"owned", figures.owned},
                                     {"handing_over", figures.handing_over},
                                     {"unplaced", figures.unplaced},
                                     {"degraded", figures.degraded},
                                     {"refused", figures.refused}})
    own.cameras.Add({{"state", state}}).Set(static_cast<double>(count));
  if (figures.configuration == own.shown_configuration) return;
  if (!own.shown_configuration.empty())
    own.configuration.Remove(&own.configuration.Add({{"version", own.shown_configuration}}));
  own.shown_configuration = figures.configuration;
  if (!figures.configuration.empty()) own.configuration.Add({{"version", figures.configuration}}).Set(1);
}

void FleetSeries::links(const std::map<std::string, LinkFigures>& links) {
  Families& own = *families_;
  const std::lock_guard lock(own.mutex);
  std::erase_if(own.links, [&](const auto& entry) {
    if (links.contains(entry.first)) return false;
    own.forget(entry.second);
    return true;
  });
  for (const auto& [node, now] : links) {
    auto link = own.links.find(node);
    if (link == own.links.end()) link = own.links.emplace(node, own.link(node)).first;
    own.follow(node, now, link->second);
  }
}

void FleetSeries::registry_answered(std::chrono::duration<double> time) {
  families_->registry_seconds.Observe(time.count());
}

}  // namespace vigil::actors
