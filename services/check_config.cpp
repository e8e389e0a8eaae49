// vigil check-config: every problem of a configuration file at once.
#include <exception>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/writable.h"
#include "cluster/http/tls.h"
#include "cluster/peers/node_certificates.h"
#include "cluster/sockets/curve.h"
#include "config/checks/idle_rules.h"
#include "config/checks/short_grace.h"
#include "config/file/fleet.h"
#include "config/file/load.h"
#include "engine/kv/history/cipher.h"
#include "engine/model/check.h"
#include "engine/run/device_check.h"
#include "fleet/node/engine_need.h"
#include "media/media.h"
#include "services/command.h"
#include "services/fleet_registry.h"
#include "services/node_need.h"

namespace vigil::services {
namespace {

using Faults = std::vector<std::string>;

/// Of a folder that is made unless it is there.
Faults faults_of_folder(const config::MaskedText& name) {
  std::filesystem::path path = name.value;
  std::error_code error;
  // Where nothing is yet, what is to hold it counts.
  while (!std::filesystem::exists(path, error) && path.has_relative_path()) path = path.parent_path();
  const bool is_there = path == std::filesystem::path(name.value);
  if (!std::filesystem::is_directory(path, error))
    return {name.shown + (is_there ? ": is not a folder"
                                   : ": cannot be made, since " + path.string() + " is not a folder")};
  const std::string why = base::why_unwritable(path);
  if (why.empty()) return {};
  return {name.shown + (is_there
                            ? ": cannot be written: " + why
                            : ": cannot be made, since " + path.string() + " cannot be written: " + why)};
}

/// Of a file of video: it is opened, and its first frame decoded, as a camera does.
Faults faults_of_video(const config::MaskedText& name) {
  const std::string path = name.value.starts_with("file://") ? name.value.substr(7) : name.value;
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) return {name.shown + ": no such file"};
  if (!std::filesystem::is_regular_file(status)) {
    return {name.shown + ": " +
            (std::filesystem::status_known(status) ? "not a regular file" : error.message())};
  }
  media::ReadOptions options;
  options.motion = false;
  options.pixels = false;
  options.shown_name = name.shown;
  // A camera may have more than is usual.
  options.decoder_memory = std::size_t{64} << 30U;
  try {
    media::VideoReader::open(name.value, options)->next();
    return {};
  } catch (const std::exception& fault) {
    return {fault.what()};
  }
}

/// Of devices that compute.
Faults faults_of_devices(const std::string& names) {
  Faults faults;
  for (const run::Device& device : run::parse_devices(names))
    if (const std::string fault = run::fault_of(device); !fault.empty())
      faults.push_back(run::name_of(device) + ": " + fault);
  return faults;
}

/// What of a machine is looked at: what `vigil run` would need, or a node.
struct Need {
  bool model = true;
  bool video = true;
  /// Of windows, and of answers; not known of a fleet's node whose roles are not.
  bool device = true;
  bool decode_device = true;
  /// Of topics and questions, which are a gateway's; and of what streams leave.
  bool server_key = true;
  bool memory_key = true;
  /// Where other nodes reach it; empty if that is not known.
  std::string host;
};

/// Looks at what is named. One of many cameras' clips is looked at once.
class Looker {
 public:
  explicit Looker(Need need) : need_(std::move(need)) {}

  Faults operator()(config::Named what, const config::MaskedText& name) {
    switch (what) {
      case config::Named::model:
        return need_.model ? model::check_folder(name.value).problems : Faults();
      case config::Named::video: {
        const auto [entry, is_new] = videos_.try_emplace(name.value);
        if (is_new && need_.video) entry->second = faults_of_video(name);
        return entry->second;
      }
      case config::Named::secret_key:
        return need_.server_key ? faults_of([&] { cluster::read_secret_key(name.value); }) : Faults();
      case config::Named::memory_key:
        return need_.memory_key ? faults_of([&] { history::SecretKey::of_file(name.value); }) : Faults();
      case config::Named::folder:
        return faults_of_folder(name);
      case config::Named::certificate: {
        certificate_.clear();
        Faults faults = faults_of([&] { cluster::check_tls({name.value, {}}); });
        if (faults.empty()) certificate_ = name.value;
        return faults;
      }
      case config::Named::private_key:
        return faults_of([&] { cluster::check_tls({certificate_, name.value}); });
      case config::Named::node_certificates:
        return faults_of([&] { const cluster::NodeCertificates read(name.value, {}, need_.host); });
      case config::Named::device:
        return need_.device ? faults_of_devices(name.value) : Faults();
      case config::Named::decode_device:
        return need_.decode_device ? faults_of_devices(name.value) : Faults();
    }
    return {};
  }

 private:
  template <class F>
  static Faults faults_of(F&& look) {
    try {
      look();
      return {};
    } catch (const std::runtime_error& fault) {
      return {fault.what()};
    }
  }

  const Need need_;
  std::map<std::string, Faults> videos_;
  std::filesystem::path certificate_;
};

struct CheckArguments {
  std::string file;
  std::vector<std::string> roles;
  bool effective = false;
  bool text_only = false;
};

/// The section of a fleet, as far as it is legible by itself; nothing where the file is of no fleet.
std::optional<config::ClusterSettings> cluster_in(const std::string& text, const std::string& file) {
  try {
    const config::ClusterSettings cluster =
        config::parse_cluster(text, file, config::process_environment(), config::Unset::accepted);
    return cluster == config::ClusterSettings() ? std::nullopt : std::optional(cluster);
  } catch (const config::ConfigError&) {
    // It is told with all else.
    return std::nullopt;
  }
}

Need need_of(const std::optional<config::ClusterSettings>& cluster,
             const std::set<cluster::NodeRole>& roles) {
  Need need;
  if (!roles.empty()) {
    need.model = needs_model(roles);
    need.video = roles.contains(cluster::NodeRole::camera);
    need.device = fleet::halves_of(roles).has_value();
    need.server_key = roles.contains(cluster::NodeRole::gateway);
    need.memory_key = roles.contains(cluster::NodeRole::stream);
    config::EngineSettings other;
    other.decode_device = "cuda";
    need.decode_device = need.device && !fleet::engine_of(other, roles).decode_device.empty();
  } else if (cluster) {
    need.device = need.decode_device = false;
  }
  try {
    if (cluster) need.host = control_of(*cluster).host;
  } catch (const std::runtime_error&) {
    // So it may be where a variable of its address is not set, which is told.
  }
  if (need.host.find('{') != std::string::npos) need.host.clear();
  return need;
}

int check(const CheckArguments& arguments) {
  const std::string& file = arguments.file;
  const std::set<cluster::NodeRole> roles =
      arguments.roles.empty() ? std::set<cluster::NodeRole>() : roles_of(arguments.roles);
  config::Settings settings;
  std::optional<config::ClusterSettings> cluster;
  bool in_registry = false;
  bool is_fit = true;
  try {
    const std::string text = config::read_text(file);
    in_registry = config::is_in_registry(text);
    cluster = cluster_in(text, file);
    const config::LookAt look =
        arguments.text_only ? config::LookAt() : config::LookAt(Looker(need_of(cluster, roles)));
    settings =
        config::parse(text, file, config::process_environment(), look,
                      arguments.text_only ? config::Unset::accepted : config::Unset::problem,
                      config::Secrets::resolved, in_registry ? config::Holds::own : config::Holds::all);
  } catch (const config::ConfigError& error) {
    std::cerr << error.what() << '\n';
    is_fit = false;
  }
  const Faults missing = cluster ? missing_in(*cluster) : Faults();
  for (const std::string& fault : missing) std::cerr << file << ": " << fault << '\n';
  if (!is_fit || !missing.empty()) return kFailed;
  for (const std::string& line : config::idle_rules(settings)) std::cerr << file << ": " << line << '\n';
  if (cluster && (roles.empty() || fleet::halves_of(roles)))
    for (const std::string& line : config::short_grace(settings)) std::cerr << file << ": " << line << '\n';
  if (arguments.effective) {
    std::cout << config::effective(settings);
    return kDone;
  }
  if (in_registry) {
    std::cout << "ok: cameras, rules and defaults are in the registry (vigil config show)\n";
    return kDone;
  }
  std::size_t watched = 0;
  std::size_t rules = 0;
  for (const config::CameraSettings& camera : settings.cameras) {
    if (!camera.enabled) continue;
    ++watched;
    rules += camera.rules.size();
  }
  std::cout << "ok: " << watched << (watched == 1 ? " camera, " : " cameras, ") << rules
            << (rules == 1 ? " rule" : " rules");
  if (watched < settings.cameras.size()) {
    std::cout << "; " << settings.cameras.size() - watched << " not enabled";
  }
  std::cout << '\n';
  return kDone;
}

}  // namespace

void add_check_config(CLI::App& root, Invocation& chosen) {
  auto* command = root.add_subcommand("check-config", "Check a configuration file");
  auto arguments = std::make_shared<CheckArguments>();
  command->add_option("FILE", arguments->file, "the configuration")->required();
  command->add_flag("--effective", arguments->effective, "print every setting as it applies, secrets masked");
  command
      ->add_option("--roles", arguments->roles,
                   "of a node of a fleet: look at what one with these roles needs, with commas: " +
                       cluster::names_of_roles())
      ->delimiter(',')
      // What stands behind them is the file.
      ->allow_extra_args(false)
      ->type_name("ROLE");
  command->add_flag(
      "--text-only", arguments->text_only,
      "do not look at the model, the files, the folders, the keys and the devices that it names, nor for "
      "environment variables that are not set: they are elsewhere");
  command->footer(
      "Problems go to stderr as FILE:LINE:COLUMN: MESSAGE, all at once. config/vigil.schema.json is for "
      "editors.");
  command->callback([arguments, &chosen] { chosen = [arguments] { return check(*arguments); }; });
}

}  // namespace vigil::services
