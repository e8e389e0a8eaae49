// By what a node runs: the part of `node_actor.h` that follows the fleet's configuration and what is snoozed.
#include <algorithm>
#include <exception>
#include <utility>
#include <variant>

#include "actors/cache/keeps.h"
#include "actors/messages/remembered.h"
#include "cluster/membership/config_texts.h"
#include "config/running/changes.h"
#include "config/running/degradation.h"
#include "fleet/node/node_actor.h"

namespace vigil::fleet {
namespace {

/// More than an agreement knows as read.
constexpr std::size_t kReadings = 16;
/// A plan and the configuration that it is made by reach a node one after the other.
constexpr std::chrono::seconds kUnknown{5};

using Ladder = std::shared_ptr<const std::vector<cluster::StreamRung>>;

/// As the planner sees a camera. Cameras of equal ladders, which most are, share one: `last`.
cluster::WantedCamera wanted(const config::CameraSettings& camera, Ladder& last) {
  std::vector<cluster::StreamRung> less;
  for (const config::Rung& rung : config::ladder_of(camera))
    less.push_back({rung.name, rung.load.all, rung.load.vision});
  if (!last || *last != less)
    last = std::make_shared<const std::vector<cluster::StreamRung>>(std::move(less));
  const config::StreamLoad full = config::load_of(camera);
  return {.name = camera.name,
          .stream_load = full.all,
          .vision_load = full.vision,
          .less = last,
          .priority = camera.stream.priority};
}

}  // namespace

void node_state::follow_configuration() {
  const auto warn = [&logger = deps->logger](const std::string& line) { logger.warn("{}", line); };
  book.emplace(deps->clock, CameraBook::Options{.resolve = deps->resolve, .warn = warn});
  configuration.emplace(
      deps->registry, *loop, *member,
      cluster::ConfigKeeper::Options{.apply = [this](const cluster::FleetConfig& config) { apply(config); },
                                     .warn = warn});
  if (deps->supervisor)
    snoozes.emplace(deps->registry, *loop,
                    cluster::RegistryMirror::Options{.prefix = member->keys().snoozes(),
                                                     .changed = [this] { read_snoozes(); }});
  if (deps->offered)
    offer.emplace(
        deps->registry, *loop,
        cluster::RegistryMirror::Options{.prefix = member->keys().config_offer(), .changed = [this] {
                                           fetched.clear();
                                           fetch_configuration();
                                         }});
  read(deps->configuration);
}

void node_state::fetch_configuration() {
  if (!deps->offered || !reading) return;
  // Before what is to come, what holds: a node that was away may have missed it.
  const cluster::FleetConfig now = configuration->agreement().current();
  const bool knows = std::ranges::any_of(readings, [&](const auto& each) { return each->hash == now.hash; });
  const cluster::RegistryEntry* const offered = offer->find(member->keys().config_offer());
  std::string wanted;
  if (now.version > 0 && !knows) {
    wanted = now.hash;
  } else if (offered != nullptr && offered->value != reading->hash) {
    wanted = offered->value;
  }
  if (wanted.empty() || !fetched.insert(wanted).second) return;
  const std::string prefix = member->keys().config_text(wanted);
  deps->registry.range(prefix, [way = *loop, this, prefix, wanted](
                                   const cluster::RegistryResult<cluster::RegistryRange>& result) mutable {
    way.post([this, prefix, wanted, result] {
      const auto* const range = std::get_if<cluster::RegistryRange>(&result);
      auto text = range == nullptr ? std::nullopt : cluster::whole_text(range->entries, prefix);
      if (text) return deps->offered(std::move(*text));
      if (range != nullptr)
        deps->logger.error("configuration: the registry has no text of {}: put it again (vigil config put)",
                           cluster::shown_hash(wanted));
      else
        fetched.erase(wanted);
    });
  });
}

void node_state::read(const ReadConfigurationPtr& configuration_read) {
  // Before it has joined, what was read at the start holds.
  if (!configuration) {
    deps->configuration = configuration_read;
    return;
  }
  reading = configuration_read;
  if (reading->settings) {
    std::erase_if(readings, [this](const auto& each) { return each->hash == reading->hash; });
    readings.push_back(reading);
    if (readings.size() > kReadings) readings.pop_front();
    // What is this node's own alone holds at once.
    if (configuration->is_in_force() && reading->hash == configuration->agreement().running().hash &&
        deps->applied) {
      deps->applied(*reading->settings, "applied: nothing");
      // Whoever asked for it may have replaced a secret.
      book->run_by(reading->settings);
      plan_changed();
    }
  }
  configuration->read(reading->hash, reading->settings ? book->fault_by(*reading->settings) : reading->fault);
}

void node_state::apply(const cluster::FleetConfig& config) {
  const auto found =
      std::ranges::find_if(readings, [&](const auto& each) { return each->hash == config.hash; });
  if (found == readings.end()) return;
  const SettingsPtr settings = (*found)->settings;
  const bool is_first = book->settings() == nullptr;
  const std::string changes =
      is_first ? "" : ": " + config::describe_changes(config::compare(*book->settings(), *settings));
  book->run_by(settings);
  std::vector<cluster::WantedCamera> all;
  Ladder last;
  for (const std::string& camera : book->names()) all.push_back(wanted(*book->find(camera), last));
  plan->want(std::move(all));
  tell_keeps(*settings);
  if (deps->applied)
    deps->applied(*settings, "applied: version " + std::to_string(config.version) + " (" +
                                 cluster::shown_hash(config.hash) + ')' + changes);
  plan_changed();
}

void node_state::tell_keeps(const config::Settings& settings) {
  if (!deps->cache) return;
  self->send(deps->cache, std::make_shared<const actors::Keeps>(actors::keeps_of(settings)));
}

void node_state::look_at_configuration() {
  tell_unknown();
  fetch_configuration();
  // Files and variables are not looked at with every tick.
  if (!book->is_time()) return;
  if (book->look_again()) plan_changed();
  const cluster::ConfigAgreement& agreement = configuration->agreement();
  if (!reading || !reading->settings || reading->hash == agreement.running().hash) return;
  const std::string fault = book->fault_by(*reading->settings);
  if (fault != member->record().config_fault) configuration->read(reading->hash, fault);
}

void node_state::tell_unknown() {
  std::erase_if(unknown, [this](const auto& each) {
    return !plan->own().cameras.contains(each.first) || book->find(each.first) != nullptr;
  });
  for (const auto& [camera, since] : unknown)
    if (deps->clock.now() >= since + kUnknown && told_unknown.insert(camera).second)
      deps->logger.error("node: camera {} is planned for this node, whose configuration does not have it",
                         camera);
}

void node_state::read_snoozes() {
  const std::string key = member->keys().snoozes();
  const cluster::RegistryEntry* const entry = snoozes->find(key);
  config::Snoozes read = config::parse_snoozes(entry == nullptr ? "" : entry->value, "registry: " + key);
  for (const std::string& fault : read.faults) deps->logger.error("{}", fault);
  book->snooze(std::move(read.entries));
  plan_changed();
}

}  // namespace vigil::fleet
