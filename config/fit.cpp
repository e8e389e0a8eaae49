#include "config/fit.h"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "config/devices.h"

namespace vigil::config {
namespace {

void require(Reading& reading, const SectionReader& section, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    if (!section.has(key)) reading.report(section.node(), section.at(key) + ": is missing");
  }
}

/// Two rules of one name.
void check_names(Reading& reading, const SectionReader& section) {
  std::map<std::string, YAML::Node> seen;
  const YAML::Node& rules = section.where("rules");
  if (!section.has("rules") || !rules.IsSequence()) return;
  for (const YAML::Node& rule : rules) {
    if (!rule.IsMap()) continue;
    const YAML::Node name = rule["name"];
    if (!name || !name.IsScalar()) continue;
    const auto [first, is_new] = seen.emplace(name.Scalar(), name);
    if (is_new) continue;
    reading.report_again(name, first->second, section.at("rules") + ": a rule named `" + name.Scalar() + '`');
  }
}

}  // namespace

void check_present(Reading& reading, const SectionReader& section, const InputSettings&) {
  require(reading, section, {"url"});
}

void check_present(Reading& reading, const SectionReader& section, const RuleSettings&) {
  require(reading, section, {"name", "prompt"});
}

void check_present(Reading& reading, const SectionReader& section, const SharedRule&) {
  require(reading, section, {"name", "prompt"});
}

void check_present(Reading& reading, const SectionReader& section, const CameraSettings&) {
  if (!section.has("inputs")) {
    require(reading, section, {"url"});
  } else if (section.has("url")) {
    reading.report(section.where("url"), section.at("url") + ": is short for `inputs`; give one of the two");
  }
  if (section.has("password") && !section.has("username")) {
    reading.report(section.where("password"), section.at("username") + ": is missing beside the password");
  }
  check_names(reading, section);
}

void check_present(Reading& reading, const SectionReader& section, const Settings&) {
  require(reading, section, {"model", "cameras"});
  check_names(reading, section);
}

void check_fit(Reading& reading, const SectionReader& section, const WindowSettings& window) {
  if (window.stride > window.length) {
    reading.report(section.where("stride"), section.at("stride") + ": " + format_duration(window.stride) +
                                                " is longer than the window's length, " +
                                                format_duration(window.length) +
                                                "; what lies between would never be seen");
  }
}

void check_fit(Reading& reading, const SectionReader& section, const ReconnectSettings& reconnect) {
  if (reconnect.min > reconnect.max) {
    reading.report(section.where("min"), section.at("min") + ": " + format_duration(reconnect.min) +
                                             " is longer than max, " + format_duration(reconnect.max));
  }
}

void check_fit(Reading& reading, const SectionReader& section, const StreamSettings& stream) {
  if (seconds(stream.window.stride) * stream.fps < 1) {
    reading.report(section.where("window"), section.at("window.stride") + ": no frame within " +
                                                format_duration(stream.window.stride) + " at this fps");
  }
}

void check_fit(Reading& reading, const SectionReader& section, const CameraSettings& camera) {
  check_fit(reading, section, camera.stream);
  const auto inputs_for = [&camera](Role role) {
    return std::count_if(camera.inputs.begin(), camera.inputs.end(), [role](const InputSettings& input) {
      return std::find(input.roles.begin(), input.roles.end(), role) != input.roles.end();
    });
  };
  if (inputs_for(Role::detect) != 1) {
    reading.report(section.where("inputs"),
                   section.at("inputs") + ": exactly one input has the role `detect`");
  }
  if (inputs_for(Role::record) > 1) {
    reading.report(section.where("inputs"), section.at("inputs") + ": two inputs have the role `record`");
  }
  // Two files would have to be played in step.
  if (inputs_for(Role::detect) == 1 && camera.records_apart() &&
      (camera.is_file() || is_file(camera.record_url().value))) {
    reading.report(section.where("inputs"),
                   section.at("inputs") +
                       ": another input than the one that is watched can be recorded only "
                       "of live sources, and one of the two is a file");
  }
  for (const InputSettings& input : camera.inputs) {
    if (input.roles.empty()) {
      reading.report(section.where("inputs"), section.at("inputs") + ": an input has no role");
    }
    if (camera.username.value.empty()) continue;
    const YAML::Node& at = section.where("username");
    if (!has_scheme(input.url.value) || input.url.value.starts_with("file://")) {
      reading.report(at, section.at("username") + ": an input is a file, which has no user");
    } else if (has_credentials(input.url.value)) {
      reading.report(at, section.at("username") +
                             ": an input's URL names a user, too; give one of the two (an `@` in a path or "
                             "query is written `%40`)");
    }
  }
}

void share_rules(Reading& reading, const SectionReader& section, Settings& settings) {
  for (CameraSettings& camera : settings.cameras) {
    for (const SharedRule& shared : settings.rules) {
      const bool fits =
          std::all_of(shared.labels.begin(), shared.labels.end(), [&camera](const auto& wanted) {
            const auto label = camera.labels.find(wanted.first);
            return label != camera.labels.end() && label->second == wanted.second;
          });
      const bool has_own =
          std::any_of(camera.rules.begin(), camera.rules.end(),
                      [&shared](const RuleSettings& rule) { return rule.name == shared.rule.name; });
      if (fits && !has_own) camera.rules.push_back(shared.rule);
    }
  }
  if (!section.where("cameras").IsMap()) return;
  for (const auto& entry : section.where("cameras")) {
    if (!entry.first.IsScalar()) continue;
    const auto camera =
        std::find_if(settings.cameras.begin(), settings.cameras.end(),
                     [&entry](const auto& each) { return each.name == entry.first.Scalar(); });
    if (camera == settings.cameras.end() || !camera->rules.empty()) continue;
    reading.report(entry.first, section.at("cameras") + '.' + camera->name +
                                    ".rules: there is no rule, neither here nor in the top-level `rules` "
                                    "for these labels");
  }
}

void check_fit(Reading& reading, const SectionReader& section, const AlertSettings& alerts) {
  const std::string replay = alerts.replay_endpoint();
  if (replay.empty() || replay == alerts.bind) {
    reading.report(section.where("replay"),
                   section.at("replay") + ": expected an endpoint beside that of `bind`");
  }
  if (alerts.curve.secret_key_file.empty()) {
    for (const auto& [key, endpoint] : {std::pair("bind", alerts.bind), std::pair("replay", replay)}) {
      if (section.has(key) && !endpoint.empty() && !is_local_endpoint(endpoint)) {
        reading.report(section.where(key), section.at(key) + ": expected " +
                                               std::string(kLocalEndpoint.expected) + ", not `" + endpoint +
                                               '`');
      }
    }
  } else if (alerts.curve.allow.empty()) {
    reading.report(section.where("curve"),
                   section.at("curve.allow") + ": is missing; nobody could read events");
  }
  if (alerts.curve.secret_key_file.empty() && !alerts.curve.allow.empty()) {
    reading.report(section.where("curve"), section.at("curve.secret_key_file") + ": is missing");
  }
}

/// Who generates is of as many GPUs as who hands over to it, each part of a model having its own counterpart,
/// and of others.
void check_fit(Reading& reading, const SectionReader& section, const EngineSettings& engine) {
  if (engine.decode_device.empty()) return;
  const auto from = parse_devices(engine.device);
  const auto to = parse_devices(engine.decode_device);
  if (!from || !to) return;
  const auto same = [](const Gpus& one, const Gpus& other) { return one.size() == other.size(); };
  const auto report = [&](const std::string& what) {
    reading.report(section.where("decode_device"),
                   section.at("decode_device") + ": `" + engine.decode_device + "` " + what);
  };
  if (!std::equal(from->begin(), from->end(), to->begin(), to->end(), same)) {
    report("is not as many GPUs as `" + engine.device + '`');
  } else if (const std::optional<int> gpu = gpu_of_both(*from, *to)) {
    report("has GPU " + std::to_string(*gpu) + ", which is one of `" + engine.device +
           "`; other GPUs generate, or `device` itself");
  }
}

void check_fit(Reading& reading, const SectionReader& section, const Settings& settings) {
  const bool any = std::any_of(settings.cameras.begin(), settings.cameras.end(),
                               [](const CameraSettings& camera) { return camera.enabled; });
  if (!any) reading.report(section.where("cameras"), "cameras: no camera is enabled");
}

}  // namespace vigil::config
