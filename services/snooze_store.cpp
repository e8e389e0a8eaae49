#include "services/snooze_store.h"

#include <optional>
#include <stdexcept>
#include <utility>

#include "config/file/fleet.h"
#include "config/file/load.h"
#include "services/fleet_registry.h"

namespace vigil::services {
namespace {

/// Whoever snoozes need not know the secrets of the cameras, nor what is a node's own.
config::Settings settings_of(const std::string& text, const std::filesystem::path& file) {
  return config::parse(text, file, config::process_environment(), {}, config::Unset::accepted,
                       config::Secrets::kept);
}

class FileSnoozes final : public SnoozeStore {
 public:
  explicit FileSnoozes(std::filesystem::path configuration) : configuration_(std::move(configuration)) {}

  config::Snoozes read() override { return config::read_snoozes(config::snooze_file(configuration_)); }
  void change(const std::function<void(std::vector<config::Snooze>&)>& change) override {
    config::change_snoozes(config::snooze_file(configuration_), change);
  }
  config::Settings settings() override {
    return settings_of(config::read_text(configuration_), configuration_);
  }

 private:
  const std::filesystem::path configuration_;
};

class FleetSnoozes final : public SnoozeStore {
 public:
  FleetSnoozes(std::filesystem::path configuration, std::string text, const config::ClusterSettings& cluster)
      : configuration_(std::move(configuration)),
        text_(std::move(text)),
        from_(cluster.configuration),
        store_(fleet_store(cluster)) {}

  config::Snoozes read() override { return parsed(store_.value(store_.keys().snoozes())); }
  void change(const std::function<void(std::vector<config::Snooze>&)>& change) override {
    store_.change(store_.keys().snoozes(), [&](const std::optional<std::string>& there) {
      config::Snoozes now = parsed(there);
      // What nobody can read silences nothing, and is not kept.
      change(now.entries);
      return config::print_snoozes(now.entries);
    });
  }
  config::Settings settings() override {
    if (from_ == config::ConfigurationFrom::file) return settings_of(text_, configuration_);
    const auto now = store_.config();
    const auto fleet = now ? store_.text(now->hash) : std::nullopt;
    if (!fleet) throw std::runtime_error("the fleet has no configuration yet");
    return settings_of(config::together(text_, *fleet, configuration_), configuration_);
  }

 private:
  config::Snoozes parsed(const std::optional<std::string>& value) const {
    return config::parse_snoozes(value.value_or(""), "registry: " + store_.keys().snoozes());
  }

  const std::filesystem::path configuration_;
  const std::string text_;
  const config::ConfigurationFrom from_;
  cluster::FleetStore store_;
};

}  // namespace

std::unique_ptr<SnoozeStore> snooze_store(const std::filesystem::path& configuration) {
  std::string text = config::read_text(configuration);
  std::optional<config::ClusterSettings> cluster;
  try {
    cluster =
        config::parse_cluster(text, configuration, config::process_environment(), config::Unset::accepted);
  } catch (const config::ConfigError&) {
    // Whoever needs what it says is told. What is snoozed can be listed and cleared all the same.
  }
  if (!cluster || cluster->name.empty() || cluster->registry.endpoints.empty())
    return std::make_unique<FileSnoozes>(configuration);
  // Without what the registry's keys refer to, it cannot be asked.
  return std::make_unique<FleetSnoozes>(configuration, text, cluster_of(text, configuration));
}

}  // namespace vigil::services
