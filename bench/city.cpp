#include "bench/city.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace vigil::bench {
namespace {

using cluster::NodeRole;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr seconds kRestart{10};
/// For how long all has to be where it should be.
constexpr seconds kRest{10};
constexpr seconds kPowerCut{60};
constexpr seconds kLeaderless{10};

double in_seconds(Nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

std::string numbered(const std::string& kind, std::size_t number) {
  const std::string digits = std::to_string(number);
  return kind + '-' + std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits;
}

/// A record of the length that a real one has.
cluster::NodeRecord record_of(const std::string& name, std::set<NodeRole> roles, std::size_t site) {
  cluster::NodeRecord record;
  record.name = name;
  record.roles = std::move(roles);
  record.state = cluster::NodeState::ready;
  record.control = {name + '.' + numbered("site", site) + ".city.example", 7400};
  record.bulk = {record.control.host, 7401};
  record.bulk_key = std::string(40, 'k');
  record.version = "0.1.0";
  record.commit = std::string(12, 'c');
  record.model = std::string(64, 'm');
  record.config = record.config_seen = std::string(64, 'f');
  return record;
}

}  // namespace

std::vector<cluster::NodeRecord> city_records(const CityOptions& options) {
  const std::size_t others = options.nodes - options.gateways;
  const auto readers = std::clamp<std::size_t>(
      static_cast<std::size_t>(std::lround(static_cast<double>(others) * options.camera_nodes)), 1,
      others - 1);
  std::vector<cluster::NodeRecord> records;
  for (std::size_t i = 0; i < options.nodes; ++i) {
    const std::size_t site = i % options.sites;
    if (i < readers) {
      records.push_back(record_of(numbered("cam", i), {NodeRole::camera}, site));
    } else if (i < others) {
      records.push_back(
          record_of(numbered("gpu", i), {NodeRole::vision, NodeRole::stream, NodeRole::generate}, site));
    } else {
      records.push_back(record_of(numbered("gate", i), {NodeRole::gateway}, site));
    }
  }
  return records;
}

double CityPhase::at(const std::string& figure) const {
  for (const Figure& each : figures)
    if (each.name == figure) return each.value;
  throw std::out_of_range("no figure " + figure);
}

City::City(const CityOptions& options)
    : options_(options),
      random_(options.seed),
      etcd_(time_, options_.costs),
      cameras_(time_, options.cameras, options.sites),
      gateways_(time_, options_.costs, options.subscribers),
      around_{.time = time_,
              .costs = options_.costs,
              .etcd = etcd_,
              .cameras = cameras_,
              .wanted =
                  [this] {
                    std::vector<cluster::WantedCamera> wanted;
                    for (std::size_t i = 0; i < cameras_.size(); ++i)
                      if (cameras_.is_wanted(i)) wanted.push_back({CityCameras::name_of(i)});
                    return wanted;
                  },
              .find =
                  [this](const std::string& name) {
                    const auto place = places_.find(name);
                    return place == places_.end() ? nullptr : place->second.node.get();
                  },
              .random = [this] { return random_(); },
              .tell = [this](std::size_t events) { gateways_.offer(events); },
              .window = options.window,
              .gateways = [this] { return gateways_.count(); },
              .greetings = CityMeter(time_),
              .plannings = CityMeter(time_),
              .planner = CityMeter(time_)},
      status_(time_) {
  make_places();
  observe();
  tell_alerts();
}

City::~City() = default;

void City::make_places() {
  std::size_t site = 0;
  for (cluster::NodeRecord& record : city_records(options_)) {
    const std::string name = record.name;
    places_[name] = Place{.record = std::move(record), .site = site++ % options_.sites, .node = nullptr};
  }
}

void City::start(Place& place) {
  cluster::NodeRecord record = place.record;
  record.incarnation = std::to_string(++place.incarnation) + '-' + std::string(30, 'i');
  if (record.roles.contains(NodeRole::gateway)) gateways_.come(record.name);
  place.node = std::make_unique<CityNode>(around_, std::move(record), options_.lease, random_());
  if (place.record.roles.contains(NodeRole::gateway) && options_.pages > 0)
    place.status = std::make_unique<CityStatus>(around_, *place.node, status_,
                                                Nanoseconds(static_cast<std::int64_t>(1e9 / options_.pages)));
}

void City::stop(Place& place) {
  if (place.record.roles.contains(NodeRole::gateway)) gateways_.go(place.record.name);
  place.status.reset();
  place.node.reset();
}

/// Looks at what has no event of its own.
void City::look() {
  all_links_ = 0;
  for (auto& [name, place] : places_) {
    if (!place.node) continue;
    const std::size_t links = place.node->links();
    most_links_ = std::max(most_links_, links);
    all_links_ += links;
    if (const Nanoseconds wait = place.node->take_longest_wait(); wait > longest_wait_) {
      longest_wait_ = wait;
      waited_ = name;
    }
  }
  most_watchers_ = std::max(most_watchers_, etcd_.watchers());
}

void City::observe() {
  look();
  time_.at(seconds(10), [this] { observe(); });
}

/// Every node makes its alerts by itself; which of them tells one does not matter to the gateways.
void City::tell_alerts() {
  const double each_second = static_cast<double>(options_.cameras) * options_.alerts / 60;
  if (each_second <= 0) return;
  std::exponential_distribution<double> pause(each_second);
  for (std::size_t i = 0; i < options_.events_of_alert; ++i)
    time_.at(milliseconds(3000 * i), [this] { gateways_.offer(1); });
  time_.at(Nanoseconds(static_cast<std::int64_t>(pause(random_) * 1e9)), [this] { tell_alerts(); });
}

/// In a steady minute, some cameras leave the configuration, and those that left before come again.
void City::churn() {
  if (!steady_) return;
  const double each_minute = static_cast<double>(options_.cameras) * options_.churn / (24 * 60);
  for (const std::size_t camera : std::exchange(left_out_, {})) cameras_.want(camera, true);
  const auto whole = static_cast<std::size_t>(each_minute);
  for (std::size_t i = 0; i <= whole; ++i)
    if (i < whole ||
        static_cast<double>(random_() % 1000) < (each_minute - static_cast<double>(whole)) * 1000) {
      const std::size_t camera = random_() % cameras_.size();
      if (!cameras_.is_wanted(camera)) continue;
      cameras_.want(camera, false);
      left_out_.push_back(camera);
    }
  if (Place* const place = planner()) place->node->want_anew();
  time_.at(minutes(1), [this] { churn(); });
}

City::Place* City::planner() {
  for (auto& [name, place] : places_)
    if (place.node && place.node->is_planner()) return &place;
  return nullptr;
}

City::Place& City::any(NodeRole role) {
  std::vector<Place*> found;
  for (auto& [name, place] : places_)
    if (place.node && place.record.roles.contains(role) && !place.node->is_planner()) found.push_back(&place);
  return *found.at(random_() % found.size());
}

bool City::is_settled() const {
  if (cameras_.unwatched() > 0 || cameras_.owned_twice() > 0) return false;
  if (std::ranges::any_of(places_, [](const auto& each) {
        const auto& node = each.second.node;
        return node && node->is_planner() && node->under_way() > 0;
      }))
    return false;
  std::size_t living = 0;
  for (const auto& [name, place] : places_) living += place.node ? 1U : 0U;
  return std::ranges::all_of(places_, [living](const auto& each) {
    return !each.second.node || (each.second.node->is_member() && each.second.node->nodes_seen() == living);
  });
}

double City::settle(Nanoseconds most) {
  const Nanoseconds began = time_.elapsed();
  Nanoseconds since = began;
  while (time_.elapsed() - began < most) {
    time_.advance(milliseconds(500));
    if (!is_settled()) since = time_.elapsed();
    if (time_.elapsed() - since >= kRest) break;
  }
  return in_seconds(since - began);
}

void City::begin(const std::string& name) {
  phase_ = name;
  phase_began_ = time_.elapsed();
  settled_in_ = 0;
  most_links_ = most_watchers_ = 0;
  longest_wait_ = Nanoseconds(0);
  waited_.clear();
  etcd_.meters().reset();
  gateways_.begin_phase();
  status_.reset();
  cameras_.begin_phase();
  for (CityMeter* meter : {&around_.greetings, &around_.plannings, &around_.planner}) meter->reset();
}

void City::power(std::size_t site, bool on) {
  cameras_.set_power(site, on);
  for (auto& [name, place] : places_)
    if (place.node) place.node->power_changed(site, on);
}

void City::upgrade(Place& place) {
  ++upgrading_;
  place.node->drain([this, &place] {
    time_.at(milliseconds(0), [this, &place] { stop(place); });
    time_.at(kRestart, [this, &place] {
      start(place);
      --upgrading_;
      upgrade_next();
    });
  });
}

void City::upgrade_next() {
  while (upgrading_ < options_.upgrades_at_once && !to_upgrade_.empty()) {
    Place& place = places_.at(to_upgrade_.back());
    to_upgrade_.pop_back();
    if (place.node) upgrade(place);
  }
}

void City::run(const std::function<void(const CityPhase&)>& done) {
  const auto phase = [&](const std::string& name, const std::function<void()>& happens) {
    begin(name);
    happens();
    done(end());
  };
  const auto settled = [this] { settled_in_ = settle(options_.patience); };
  phase("start", [&] {
    for (auto& [name, place] : places_)
      time_.at(milliseconds(random_() % 5000), [this, &at = place] { start(at); });
    time_.advance(seconds(5));
    settled();
  });
  phase("steady", [&] {
    steady_ = true;
    churn();
    time_.advance(options_.steady);
    steady_ = false;
    time_.advance(minutes(1));
    for (const std::size_t camera : std::exchange(left_out_, {})) cameras_.want(camera, true);
    if (Place* const place = planner()) place->node->want_anew();
    settled();
  });
  const auto lose = [&](const std::string& name, Place& place) {
    phase(name, [&] {
      stop(place);
      settled();
    });
    start(place);
    settle(options_.patience);
  };
  lose("node_lost", any(NodeRole::camera));
  lose("computing_node_lost", any(NodeRole::stream));
  if (Place* const place = planner()) lose("planner_lost", *place);
  phase("etcd_leader_lost", [&] {
    etcd_.lose_leader(kLeaderless);
    time_.advance(kLeaderless);
    settled();
  });
  if (const std::size_t servers = options_.costs.etcd_servers; servers > 2) {
    phase("etcd_server_lost", [&] {
      etcd_.lose_server(servers - 1);
      settled();
    });
    etcd_.restore_server(servers - 1);
  }
  phase("power_cut", [&] {
    power(0, false);
    for (auto& [name, place] : places_)
      if (place.site == 0) stop(place);
    time_.advance(kPowerCut);
  });
  phase("power_back", [&] {
    power(0, true);
    for (auto& [name, place] : places_)
      if (place.site == 0) time_.at(milliseconds(random_() % 5000), [this, &at = place] { start(at); });
    time_.advance(seconds(5));
    settled();
  });
  if (options_.gateways > 1) lose("gateway_lost", any(NodeRole::gateway));
  phase("upgrade", [&] {
    for (const auto& [name, place] : places_) to_upgrade_.push_back(name);
    std::ranges::shuffle(to_upgrade_, random_);
    to_upgrade_.resize(std::min(to_upgrade_.size(), options_.upgrades));
    upgrade_next();
    while ((upgrading_ > 0 || !to_upgrade_.empty()) && time_.elapsed() - phase_began_ < 8 * options_.patience)
      time_.advance(seconds(1));
    settled();
  });
}

CityPhase City::end() {
  look();
  const Nanoseconds took = time_.elapsed() - phase_began_;
  const CityCosts& costs = options_.costs;
  CityEtcd::Meters& etcd = etcd_.meters();
  std::size_t living = 0;
  for (const auto& [name, place] : places_) living += place.node ? 1U : 0U;
  CityPhase phase{.name = phase_, .figures = {}};
  const auto add = [&](const std::string& name, const std::string& unit, double value, double capacity = 0) {
    phase.figures.push_back({name, unit, value, capacity});
  };
  add("took", "s", in_seconds(took));
  add("settled_in", "s", settled_in_);
  add("longest_unowned", "s", cameras_.longest_unowned());
  add("longest_unwatched", "s", cameras_.longest_unwatched());
  add("unwatched_at_end", "1", static_cast<double>(cameras_.unwatched()));
  add("etcd_writes", "1", etcd.writes.total());
  add("etcd_writes_peak", "1/s", etcd.writes.peak());
  add("etcd_written", "B", etcd.written_bytes.total());
  add("etcd_written_peak", "B/s", etcd.written_bytes.peak());
  add("etcd_largest_request", "B", static_cast<double>(etcd.largest), 1.5 * 1024 * 1024);
  add("etcd_disk_peak", "s/s", etcd.disk.peak(), 1);
  add("etcd_keep_alives_peak", "1/s", etcd.keep_alives.peak());
  add("etcd_reads_peak", "1/s", etcd.reads.peak());
  add("etcd_read_bytes_peak", "B/s", etcd.read_bytes.peak());
  add("etcd_connections", "1", etcd.connections.total());
  add("etcd_connections_peak", "1/s", etcd.connections.peak());
  add("etcd_events", "1", etcd.events.total());
  add("etcd_events_peak", "1/s", etcd.events.peak());
  add("etcd_event_bytes_peak", "B/s", etcd.event_bytes.peak());
  add("etcd_processor_peak", "s/s", etcd.processor_peak(), costs.etcd_cores);
  add("etcd_processor", "s", etcd.processor());
  add("etcd_longest_queue", "s", in_seconds(etcd.longest_queue()), base::seconds(options_.lease) / 3);
  add("etcd_watchers", "1", static_cast<double>(most_watchers_));
  add("etcd_watchers_at_end", "1", static_cast<double>(etcd_.watchers()));
  add("etcd_bytes", "B", static_cast<double>(etcd_.bytes()), 2.0 * 1024 * 1024 * 1024);
  add("plannings", "1", around_.plannings.total());
  add("planner_processor", "s", around_.planner.total());
  add("planner_processor_peak", "s/s", around_.planner.peak(), 1);
  add("etcd_largest_value", "B", static_cast<double>(etcd.largest_value),
      cluster::RegistryTransaction::kMostBytes);
  add("longest_wait_of_a_node", "s", in_seconds(longest_wait_), base::seconds(options_.lease) / 3);
  add("greetings", "1", around_.greetings.total());
  add("greetings_peak", "1/s", around_.greetings.peak());
  add("links_of_a_node", "1", static_cast<double>(most_links_));
  add("links", "1", static_cast<double>(all_links_) / 2);
  add("gateway_events_peak", "1/s", gateways_.events().peak());
  add("gateway_messages_peak", "1/s", gateways_.messages().peak());
  add("gateway_disk_peak", "s/s", gateways_.disk().peak(), 1);
  add("gateway_published_peak", "1/s", gateways_.published().peak());
  add("gateway_processor_peak", "s/s", gateways_.processor().peak(), 1);
  add("gateway_longest", "s", gateways_.longest());
  add("pages", "1", status_.pages.total());
  add("pages_incomplete", "1", static_cast<double>(status_.incomplete));
  add("page_longest", "s", in_seconds(status_.longest));
  add("page_processor_peak", "s/s", status_.processor.peak(), 1);
  add("nodes", "1", static_cast<double>(living));
  return phase;
}

std::vector<std::string> City::faults() const {
  std::vector<std::string> faults;
  const auto count = [&](std::size_t cameras, const std::string& what) {
    if (cameras > 0) faults.push_back(std::to_string(cameras) + " cameras " + what);
  };
  count(cameras_.unowned(), "without an owner");
  count(cameras_.unwatched(), "not watched");
  count(cameras_.owned_twice(), "with more owners than one");
  return faults;
}

}  // namespace vigil::bench
