#include "config/file/fit.h"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "base/devices.h"
#include "config/file/fleet.h"
#include "config/file/references.h"
#include "config/values/address.h"

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

void check_present(Reading& reading, const SectionReader& section, const DegradeStep&) {
  require(reading, section, {"name"});
}

void check_present(Reading& reading, const SectionReader& section, const CameraSettings& camera) {
  if (!section.has("inputs")) {
    require(reading, section, {"url"});
  } else if (section.has("url")) {
    reading.report(section.where("url"), section.at("url") + ": is short for `inputs`; give one of the two");
  }
  const bool has_file = !camera.password_file.empty();
  if ((section.has("password") || has_file) && !section.has("username")) {
    reading.report(section.where(has_file ? "password_file" : "password"),
                   section.at("username") + ": is missing beside the password");
  }
  if (section.has("password") && has_file) {
    reading.report(section.where("password_file"),
                   section.at("password_file") + ": stands beside `password`; give one of the two");
  }
  check_names(reading, section);
}

void check_present(Reading& reading, const SectionReader& section, const AskerSettings&) {
  require(reading, section, {"key", "tenants"});
}

void check_present(Reading& reading, const SectionReader& section, const Settings&) {
  if (reading.holds == Holds::all) {
    require(reading, section, {"model", "cameras"});
  } else {
    require(reading, section, {"model"});
    for (const char* key : {"cameras", "defaults", "rules"})
      if (section.has(key)) reading.report(section.where(key), section.at(key) + std::string(kInRegistry));
  }
  check_names(reading, section);
}

void check_fit(Reading& reading, const SectionReader& section, const WindowSettings& window) {
  if (window.stride > window.length) {
    reading.report(section.where("stride"),
                   section.at("stride") + ": " + base::format_duration(window.stride) +
                       " is longer than the window's length, " + base::format_duration(window.length) +
                       "; what lies between would never be seen");
  }
}

void check_fit(Reading& reading, const SectionReader& section, const ReconnectSettings& reconnect) {
  if (reconnect.min > reconnect.max) {
    reading.report(section.where("min"), section.at("min") + ": " + base::format_duration(reconnect.min) +
                                             " is longer than max, " + base::format_duration(reconnect.max));
  }
}

void check_fit(Reading& reading, const SectionReader& section, const DegradeStep& step) {
  if (step.fps < 1 || step.kept < 1 || step.stride > 1) return;
  reading.report(section.node(),
                 section.at("name") + ": the step `" + step.name +
                     "` leaves all as it is; give `fps` or `kept` below 1, or `stride` above 1");
}

void check_fit(Reading& reading, const SectionReader& section, const StreamSettings& stream) {
  std::set<std::string_view> steps;
  // What `defaults` say wrong is told there.
  for (const DegradeStep& step : stream.degrade)
    if (!steps.insert(step.name).second && section.has("degrade"))
      reading.report(section.where("degrade"),
                     section.at("degrade") + ": two steps are named `" + step.name + '`');
  if (base::seconds(stream.window.stride) * stream.fps < 1) {
    reading.report(section.where("window"), section.at("window.stride") + ": no frame within " +
                                                base::format_duration(stream.window.stride) + " at this fps");
  }
  if (stream.window.memory > 0s && stream.pruning.refresh == Refresh::all &&
      (section.has("window") || section.has("pruning"))) {
    reading.report(section.where(section.has("window") ? "window" : "pruning"),
                   section.at("window.memory") +
                       ": `pruning: {refresh: all}`, as of `exact`, keeps no keys, so " +
                       base::format_duration(stream.window.memory) +
                       " of them cannot be remembered; give another refresh, or `memory: off`");
  }
  // Pages are there to be remembered when they have left a window.
  if (stream.keep > 0s && stream.keep < stream.window.length &&
      (section.has("keep") || section.has("window"))) {
    reading.report(section.where(section.has("keep") ? "keep" : "window"),
                   section.at("keep") + ": " + base::format_duration(stream.keep) +
                       " is shorter than the window's length, " +
                       base::format_duration(stream.window.length) +
                       "; nothing would be remembered, which is `keep: off`");
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
  const bool open = std::any_of(camera.inputs.begin(), camera.inputs.end(), [&](const InputSettings& input) {
    return reading.is_unknown(input.url.value);
  });
  if (inputs_for(Role::detect) == 1 && !open && camera.records_apart() &&
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
    if (camera.username.value.empty() || reading.is_unknown(input.url.value)) continue;
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

void read_password(Reading& reading, const SectionReader& section, CameraSettings& camera) {
  const bool here = reading.secrets == Secrets::resolved && reading.unset == Unset::problem;
  if (!here || camera.password_file.empty()) return;
  try {
    camera.password_read = password_in(camera.password_file);
  } catch (const std::runtime_error& error) {
    reading.report(section.where("password_file"), section.at("password_file") + ": " + error.what());
  }
}

void share_rules(Reading& reading, const SectionReader& section, Settings& settings) {
  for (CameraSettings& camera : settings.cameras) {
    for (const SharedRule& shared : settings.rules) {
      const bool fits = camera.has_labels(shared.labels);
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

namespace {

/// HOST:PORT, apart; without a port, nothing.
std::optional<std::pair<std::string, std::string>> host_and_port(std::string_view address) {
  if (address.starts_with("ipc://")) return std::nullopt;
  if (address.starts_with("tcp://")) address.remove_prefix(6);
  const std::size_t colon = address.rfind(':');
  if (colon == address.npos) return std::nullopt;
  std::string host(address.substr(0, colon));
  return std::pair(host == "localhost" ? "127.0.0.1" : host, std::string(address.substr(colon + 1)));
}

bool is_same_address(std::string_view one, std::string_view other) {
  const auto a = host_and_port(one);
  const auto b = host_and_port(other);
  if (!a || !b || a->second != b->second) return false;
  const auto is_any = [](const std::string& host) {
    return host == "0.0.0.0" || host == "*" || host == "[::]";
  };
  return a->first == b->first || is_any(a->first) || is_any(b->first);
}

}  // namespace

void check_addresses(Reading& reading, const SectionReader& section, const Settings& settings) {
  struct Listener {
    const char* part;
    const char* key;
    std::string address;
    std::string path() const { return std::string(part) + '.' + key; }
  };
  const Listener listeners[] = {
      {"alerts", "bind", settings.alerts.bind},
      {"alerts", "replay", settings.alerts.replay_endpoint()},
      {"asks", "bind", settings.memory.enabled ? settings.asks.bind : ""},
      {"metrics", "listen", settings.metrics.listen},
      {"metrics", "probes", settings.metrics.probes},
      {"cluster", "listen", settings.cluster.name.empty() ? "" : settings.cluster.listen},
      {"cluster", "bulk", settings.cluster.name.empty() ? "" : settings.cluster.bulk}};
  const auto is_wrong = [&reading](const Listener& listener) {
    return listener.address.empty() || reading.is_open(listener.address) ||
           std::any_of(reading.problems.begin(), reading.problems.end(), [&](const Problem& problem) {
             return problem.message.starts_with(listener.path() + ':');
           });
  };
  const auto named = [&section](const Listener& listener) {
    const YAML::Node& part = section.where(listener.part);
    return section.has(listener.part) && part.IsMap() && part[listener.key].IsDefined();
  };
  for (const Listener& listener : listeners) {
    for (const Listener* other = listeners; other != &listener; ++other) {
      if (is_wrong(listener) || is_wrong(*other) || !is_same_address(listener.address, other->address)) {
        continue;
      }
      // At the one of the two that is written down.
      const Listener& at = named(listener) || !named(*other) ? listener : *other;
      const Listener& with = &at == &listener ? *other : listener;
      reading.report(named(at) ? section.where(at.part)[at.key] : section.node(),
                     section.at(at.path()) + ": `" + at.address + "` is the address of " + with.path() +
                         ", too" + (named(with) ? "" : ", by default"));
      break;
    }
  }
}

void check_fit(Reading& reading, const SectionReader& section, const AlertSettings& alerts) {
  const std::string replay = alerts.replay_endpoint();
  const bool open = reading.is_open(alerts.bind) || reading.is_open(alerts.replay);
  if (!open && (replay.empty() || replay == alerts.bind)) {
    reading.report(section.where("replay"),
                   section.at("replay") + ": expected an endpoint beside that of `bind`");
  }
  if (alerts.curve.secret_key_file.empty()) {
    for (const auto& [key, endpoint] : {std::pair("bind", alerts.bind), std::pair("replay", replay)}) {
      if (section.has(key) && !open && !endpoint.empty() && !is_local_endpoint(endpoint)) {
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

void check_fit(Reading& reading, const SectionReader& section, const MemorySettings& memory) {
  if (!memory.key_file.empty() && memory.dir.empty())
    reading.report(section.where("key_file"),
                   section.at("key_file") + ": encrypts nothing without a disk's folder; give `dir: FOLDER`");
  // A sketch tells where to look, and a window is made of the others.
  const auto has_pages = [](const FormSettings& forms) {
    return std::max({forms.bf16, forms.fp8, forms.int4, forms.embeddings}) > 0s;
  };
  if (!memory.enabled || has_pages(memory.host.forms) ||
      (!memory.dir.empty() && has_pages(memory.disk.forms)))
    return;
  reading.report(
      section.where("enabled"),
      section.at("enabled") +
          ": no window could be made of what is remembered; give `host.forms`, or `disk.forms` with "
          "`dir`, one of bf16, fp8, int4 and embeddings");
}

void check_fit(Reading& reading, const SectionReader& section, const AskerSettings& asker) {
  const std::vector<std::string>& tenants = asker.tenants;
  const bool has_all = std::find(tenants.begin(), tenants.end(), "*") != tenants.end();
  if (tenants.empty())
    reading.report(section.where("tenants"),
                   section.at("tenants") + ": names none; expected " + std::string(kTenant.expected));
  if (has_all && tenants.size() > 1)
    reading.report(section.where("tenants"),
                   section.at("tenants") + ": `*` is all of them; leave it out, or the others");
}

void check_fit(Reading& reading, const SectionReader& section, const AskSettings& asks) {
  std::map<std::string, YAML::Node> seen;
  for (std::size_t i = 0; i < asks.askers.size(); ++i) {
    const YAML::Node key = section.where("askers")[i]["key"];
    const auto [first, is_new] = seen.emplace(asks.askers[i].key, key);
    if (!is_new)
      reading.report_again(key, first->second, section.at("askers") + '[' + std::to_string(i) + "].key:");
  }
  if (!asks.secret_key_file.empty()) {
    if (asks.askers.empty())
      reading.report(section.where("secret_key_file"),
                     section.at("askers") + ": is missing; nobody could ask");
    return;
  }
  if (!asks.askers.empty())
    reading.report(section.where("askers"),
                   section.at("secret_key_file") + ": is missing; without it, nobody knows who asks");
  if (!asks.bind.empty() && !reading.is_open(asks.bind) && !is_local_endpoint(asks.bind))
    reading.report(
        section.where("bind"),
        section.at("bind") + ": `" + asks.bind +
            "` is beyond this machine and not encrypted; give `secret_key_file: FILE` and `askers`");
}

/// Who generates is of as many GPUs as who hands over to it, each part of a model having its own counterpart,
/// and of others.
void check_fit(Reading& reading, const SectionReader& section, const EngineSettings& engine) {
  constexpr ByteSize kLeast = mebibytes(1);
  if (engine.window_memory.bytes > 0 && engine.window_memory.bytes < kLeast.bytes)
    reading.report(section.where("window_memory"),
                   section.at("window_memory") + ": `" + format_byte_size(engine.window_memory) +
                       "` has room for no window's memory; expected 0B (a quarter of what there is), or " +
                       format_byte_size(kLeast) + " at least");
  if (engine.decode_device.empty()) return;
  const auto from = base::parse_devices(engine.device);
  const auto to = base::parse_devices(engine.decode_device);
  if (!from || !to) return;
  const auto same = [](const base::Gpus& one, const base::Gpus& other) { return one.size() == other.size(); };
  const auto report = [&](const std::string& what) {
    reading.report(section.where("decode_device"),
                   section.at("decode_device") + ": `" + engine.decode_device + "` " + what);
  };
  if (!std::equal(from->begin(), from->end(), to->begin(), to->end(), same)) {
    report("is not as many GPUs as `" + engine.device + '`');
  } else if (const std::optional<int> gpu = base::gpu_of_both(*from, *to)) {
    report("has GPU " + std::to_string(*gpu) + ", which is one of `" + engine.device +
           "`; other GPUs generate, or `device` itself");
  }
}

void check_fit(Reading& reading, const SectionReader& section, const MetricsSettings& metrics) {
  const CertificateSettings& tls = metrics.tls;
  if (tls.cert_file.empty() != tls.key_file.empty()) {
    reading.report(section.where("tls"),
                   section.at(tls.cert_file.empty() ? "tls.cert_file" : "tls.key_file") +
                       ": is missing beside the other file");
  } else if (!metrics.listen.empty() && tls.cert_file.empty() && !metrics.allow_plain_text &&
             !reading.is_open(metrics.listen) && !is_loopback_address(metrics.listen)) {
    reading.report(
        section.where("listen"),
        section.at("listen") + ": `" + metrics.listen +
            "` is beyond this machine and not encrypted; give `tls: {cert_file: FILE, key_file: FILE}`, "
            "or say `allow_plain_text: true`");
  }
  if (!metrics.probes.empty() && metrics.probes == metrics.listen) {
    reading.report(section.where("probes"), section.at("probes") + ": `" + metrics.probes +
                                                "` is `listen`, too, which serves probes as it is");
  }
}

void check_fit(Reading& reading, const SectionReader& section, const ClusterSettings& cluster) {
  const auto check_encryption = [&](const char* key, const std::string& address, const std::string& remedy) {
    if (cluster.allow_plain_text || reading.is_open(address) || is_loopback_address(address)) return;
    reading.report(section.where(key), section.at(key) + ": `" + address +
                                           "` is beyond this machine and not encrypted; give `" + remedy +
                                           "`, or say `allow_plain_text: true`");
  };
  if (cluster.tls_dir.empty()) {
    check_encryption("listen", cluster.listen, "tls_dir: FOLDER");
    check_encryption("bulk", cluster.bulk, "tls_dir: FOLDER");
  }
  // What is for this machine alone is told above.
  const auto check_told = [&](const char* key, const std::string& address) {
    if (!cluster.advertise.empty() || reading.is_open(address) || !is_every_address(address) ||
        (cluster.tls_dir.empty() && !cluster.allow_plain_text))
      return;
    reading.report(section.where(key), section.at(key) + ": `" + address +
                                           "` stands for all addresses of this machine, and other nodes have "
                                           "to be told one; give `advertise: HOST`");
  };
  check_told("listen", cluster.listen);
  check_told("bulk", cluster.bulk);
  if (!reading.is_open(cluster.advertise) && is_every_address(cluster.advertise + ":1"))
    reading.report(section.where("advertise"),
                   section.at("advertise") + ": `" + cluster.advertise +
                       "` stands for all addresses of this machine, and other nodes have to be told one");
  const RegistrySettings& registry = cluster.registry;
  const CertificateSettings& certificate = registry.certificate;
  if (registry.ca_file.empty())
    for (const std::string& endpoint : registry.endpoints)
      check_encryption("registry", endpoint, "registry: {ca_file: FILE}");
  if (certificate.cert_file.empty() != certificate.key_file.empty())
    reading.report(section.where("registry"),
                   section.at(certificate.cert_file.empty() ? "registry.certificate.cert_file"
                                                            : "registry.certificate.key_file") +
                       ": is missing beside the other file");
  if (cluster.listen == cluster.bulk)
    reading.report(section.where("bulk"), section.at("bulk") + ": `" + cluster.bulk + "` is `listen`, too");
}

void check_fit(Reading& reading, const SectionReader& section, const Settings& settings) {
  const bool any = std::any_of(settings.cameras.begin(), settings.cameras.end(),
                               [](const CameraSettings& camera) { return camera.enabled; });
  if (!any && reading.holds == Holds::all)
    reading.report(section.where("cameras"), "cameras: no camera is enabled");
}

}  // namespace vigil::config
