// vigil check-config: every problem of a configuration file at once.
#include <exception>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include <CLI/CLI.hpp>

#include "cluster/http/tls.h"
#include "cluster/peers/node_certificates.h"
#include "cluster/sockets/curve.h"
#include "config/checks/idle_rules.h"
#include "config/file/fleet.h"
#include "config/file/load.h"
#include "engine/model/check.h"
#include "media/media.h"
#include "services/command.h"
#include "services/fleet_registry.h"

namespace vigil::services {
namespace {

using Faults = std::vector<std::string>;

/// Of a folder that is made unless it is there.
Faults faults_of_folder(const config::MaskedText& name) {
  std::filesystem::path path = name.value;
  std::error_code error;
  // Where nothing is yet, what is to hold it counts.
  while (!std::filesystem::exists(path, error) && path.has_relative_path()) path = path.parent_path();
  if (std::filesystem::is_directory(path, error)) return {};
  return {path == std::filesystem::path(name.value)
              ? name.shown + ": is not a folder"
              : name.shown + ": cannot be made, since " + path.string() + " is not a folder"};
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

/// Looks at what is named. One of many cameras' clips is looked at once.
class Looker {
 public:
  Faults operator()(config::Named what, const config::MaskedText& name) {
    switch (what) {
      case config::Named::model:
        return model::check_folder(name.value).problems;
      case config::Named::video: {
        const auto [entry, is_new] = videos_.try_emplace(name.value);
        if (is_new) entry->second = faults_of_video(name);
        return entry->second;
      }
      case config::Named::secret_key:
        return faults_of([&] { cluster::read_secret_key(name.value); });
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

  std::map<std::string, Faults> videos_;
  std::filesystem::path certificate_;
};

/// What keeps a node of this fleet from its start; nothing where the file is of no fleet.
Faults faults_of_fleet(const config::ClusterSettings& cluster, bool text_only) {
  if (cluster == config::ClusterSettings()) return {};
  Faults faults = missing_in(cluster);
  if (text_only || cluster.tls_dir.empty()) return faults;
  try {
    const cluster::NodeCertificates certificates(cluster.tls_dir, {});
  } catch (const cluster::CertificateError& fault) {
    faults.push_back(std::string("cluster.tls_dir: ") + fault.what());
  }
  return faults;
}

int check(const std::string& file, bool effective, bool text_only) {
  config::Settings settings;
  bool in_registry = false;
  try {
    const std::string text = config::read_text(file);
    in_registry = config::is_in_registry(text);
    const config::LookAt look = text_only ? config::LookAt() : config::LookAt(Looker());
    settings =
        config::parse(text, file, config::process_environment(), look,
                      text_only ? config::Unset::accepted : config::Unset::problem, config::Secrets::resolved,
                      in_registry ? config::Holds::own : config::Holds::all);
  } catch (const config::ConfigError& error) {
    std::cerr << error.what() << '\n';
    return kFailed;
  }
  const Faults of_fleet = faults_of_fleet(settings.cluster, text_only);
  for (const std::string& fault : of_fleet) std::cerr << file << ": " << fault << '\n';
  if (!of_fleet.empty()) return kFailed;
  for (const std::string& line : config::idle_rules(settings)) std::cerr << file << ": " << line << '\n';
  if (effective) {
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
  auto file = std::make_shared<std::string>();
  auto effective = std::make_shared<bool>(false);
  command->add_option("FILE", *file, "the configuration")->required();
  command->add_flag("--effective", *effective, "print every setting as it applies, secrets masked");
  auto text_only = std::make_shared<bool>(false);
  command->add_flag(
      "--text-only", *text_only,
      "do not look at the model, the files, the folders and the keys that it names, nor for environment "
      "variables that are not set: they are elsewhere");
  command->footer(
      "Problems go to stderr as FILE:LINE:COLUMN: MESSAGE, all at once. config/vigil.schema.json is for "
      "editors.");
  command->callback([=, &chosen] { chosen = [=] { return check(*file, *effective, *text_only); }; });
}

}  // namespace vigil::services
