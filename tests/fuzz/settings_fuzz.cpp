// Any bytes as a configuration, as a file of snoozes and as each scalar: either problems of one line each, or
// settings that are shown without a secret and read back.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "base/devices.h"
#include "base/duration.h"
#include "base/timestamp.h"
#include "config/file/fleet.h"
#include "config/file/load.h"
#include "config/file/references.h"
#include "config/running/snoozes.h"
#include "config/values/byte_size.h"

namespace {

using namespace vigil::config;
namespace base = vigil::base;

constexpr const char* kSecret = "Zq3xV8kLm2Pw9RtY5bNc";

void require(bool holds) {
  if (!holds) std::abort();
}

bool shows(const std::string& text) {
  return text.find(kSecret) != std::string::npos;
}

void fuzz_settings(const std::string& text) {
  const Environment environment = [](const std::string&) { return std::optional<std::string>(kSecret); };
  try {
    const Settings settings = parse(text, "/etc/vigil/fuzz.yaml", environment);
    for (const CameraSettings& camera : settings.cameras) {
      require(!shows(camera.url().shown) && !shows(camera.record_url().shown));
      for (const auto& [name, label] : camera.labels) require(!shows(label));
    }
    const std::string printed = effective(settings);
    require(effective(parse(printed, "/etc/vigil/fuzz.yaml", environment)) == printed);
  } catch (const ConfigError& error) {
    require(!error.problems().empty());
    for (const Problem& problem : error.problems()) require(!problem.message.empty());
  }
}

/// As a node of a fleet reads it: its secrets stay references until a camera is opened.
void fuzz_fleet(const std::string& text) {
  const Environment environment = [](const std::string&) { return std::optional<std::string>(kSecret); };
  try {
    (void)fleet_part(text);
    (void)without_comments(text);
    for (const Problem& problem : literal_secrets(text)) require(!problem.message.empty());
    const Settings settings =
        parse(text, "/etc/vigil/fuzz.yaml", environment, {}, Unset::problem, Secrets::kept);
    for (const CameraSettings& camera : settings.cameras) {
      require(!shows(camera.url().value) && !shows(camera.password.value));
      const CameraSettings open = with_secrets(camera, environment, "/etc/vigil");
      require(!shows(open.url().shown) && !shows(open.record_url().shown));
    }
  } catch (const std::runtime_error& error) {
    require(!shows(error.what()));
  }
}

void fuzz_scalars(const std::string& text) {
  if (const auto value = base::parse_duration(text))
    require(base::parse_duration(base::format_duration(*value)) == value);
  if (const auto value = parse_byte_size(text)) require(parse_byte_size(format_byte_size(*value)) == value);
  if (const auto value = base::parse_rfc3339(text)) {
    const auto again = base::parse_rfc3339(base::format_rfc3339(*value));
    // An hour before 1970 in one zone is after it in another.
    require(again == value || *value < base::Clock::WallTime());
  }
  if (const auto value = base::parse_moment(text)) require(*value >= 0);
  (void)base::parse_devices(text);
  for (const Snooze& snooze : parse_snoozes(text, "fuzz").entries) require(!snooze.camera.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  // Who writes the secret itself where no secret belongs sees it again: libFuzzer finds it in comparisons.
  if (shows(text)) return 0;
  fuzz_scalars(text);
  fuzz_settings(text);
  fuzz_fleet(text);
  // A file that is whole but for one value.
  if (text.find('\n') == std::string::npos) {
    fuzz_settings("model: m\ncameras: {gate: {url: 'rtsp://h/live', fps: 2, rules: [{name: r, prompt: p}], " +
                  text + "}}\n");
    fuzz_settings("model: m\ncameras: {gate: {url: " + text + ", rules: [{name: r, prompt: p}]}}\n");
    fuzz_fleet("model: m\ncameras: {gate: {url: " + text + ", rules: [{name: r, prompt: p}]}}\n");
  }
  return 0;
}
