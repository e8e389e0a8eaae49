// What cannot be said of one key alone: what has to be there, and then what has to fit together.
#pragma once

#include "config/file/section_reader.h"
#include "config/settings.h"

namespace vigil::config {

/// Reports keys that are missing, or are there beside others that they exclude.
template <class S>
void check_present(Reading&, const SectionReader&, const S&) {}
void check_present(Reading& reading, const SectionReader& section, const InputSettings&);
void check_present(Reading& reading, const SectionReader& section, const RuleSettings&);
void check_present(Reading& reading, const SectionReader& section, const SharedRule&);
void check_present(Reading& reading, const SectionReader& section, const DegradeStep&);
void check_present(Reading& reading, const SectionReader& section, const CameraSettings& camera);
void check_present(Reading& reading, const SectionReader& section, const AskerSettings&);
void check_present(Reading& reading, const SectionReader& section, const Settings&);

/// Reads the file that holds the camera's password, unless that is for others to do.
void read_password(Reading& reading, const SectionReader& section, CameraSettings& camera);

/// Gives the cameras the rules that they share. Afterwards each has one.
void share_rules(Reading& reading, const SectionReader& section, Settings& settings);

/// Reports addresses that two want to listen on.
void check_addresses(Reading& reading, const SectionReader& section, const Settings& settings);

/// Reports values that do not go together, of a section whose own values are all right.
template <class S>
void check_fit(Reading&, const SectionReader&, const S&) {}
void check_fit(Reading& reading, const SectionReader& section, const WindowSettings& window);
void check_fit(Reading& reading, const SectionReader& section, const ReconnectSettings& reconnect);
void check_fit(Reading& reading, const SectionReader& section, const DegradeStep& step);
void check_fit(Reading& reading, const SectionReader& section, const StreamSettings& stream);
void check_fit(Reading& reading, const SectionReader& section, const CameraSettings& camera);
void check_fit(Reading& reading, const SectionReader& section, const AlertSettings& alerts);
void check_fit(Reading& reading, const SectionReader& section, const MemorySettings& memory);
void check_fit(Reading& reading, const SectionReader& section, const AskerSettings& asker);
void check_fit(Reading& reading, const SectionReader& section, const AskSettings& asks);
void check_fit(Reading& reading, const SectionReader& section, const EngineSettings& engine);
void check_fit(Reading& reading, const SectionReader& section, const MetricsSettings& metrics);
void check_fit(Reading& reading, const SectionReader& section, const ClusterSettings& cluster);
void check_fit(Reading& reading, const SectionReader& section, const Settings& settings);

}  // namespace vigil::config
