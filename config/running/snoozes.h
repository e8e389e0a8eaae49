// Snoozes that are set while a process runs: lines of a file beside the configuration, so that nobody has to
// edit that, or to compute a time.
//
//   gate-7 2026-08-01T18:00:00.000Z
//   gate-7/person 2026-08-01T18:30:00.000Z
//   # checksum 8c7f4ab1d2e03965
//
// Silence is the one thing that must not come by accident: a file that does not fit its checksum counts for
// nothing, and that is said.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "config/settings.h"

namespace vigil::config {

struct Snooze {
  std::string camera;
  /// Empty: all rules of the camera.
  std::string rule;
  base::Clock::WallTime until;
  friend bool operator==(const Snooze&, const Snooze&) = default;

  /// "gate-7" or "gate-7/person".
  std::string target() const { return rule.empty() ? camera : camera + '/' + rule; }
};

/// A snooze's camera and rule from its `target()`, without a time. Nothing for what can be no name.
std::optional<Snooze> parse_target(std::string_view text);

struct Snoozes {
  /// Sorted by target, one each.
  std::vector<Snooze> entries;
  /// Lines that cannot be read, in words. They change nothing.
  std::vector<std::string> faults;
};

/// Where the snoozes of a configuration are: FILE.snoozes.
std::filesystem::path snooze_file(const std::filesystem::path& configuration);

/// The lines alone, whatever their checksum.
Snoozes parse_snoozes(std::string_view text, const std::string& name);

/// No file means no snoozes; one that cannot be read, or does not fit its checksum, is a fault.
Snoozes read_snoozes(const std::filesystem::path& file);

/// Puts one in, in place of one for the same target.
void put(std::vector<Snooze>& entries, Snooze snooze);

/// Takes the target's out, and with a camera those of its rules. Whether there was any.
bool lift(std::vector<Snooze>& entries, const Snooze& target);

/// Takes out what is over.
void forget_past(std::vector<Snooze>& entries, base::Clock::WallTime now);

/// Whether there is such a camera, and it has such a rule.
bool has_target(const Settings& settings, const Snooze& target);

/// What the configuration itself snoozes, over or not: cameras as a whole and rules, in its order.
std::vector<Snooze> configured_snoozes(const Settings& settings);

/// The entry that silences a rule with its whole camera, if there is one.
std::optional<Snooze> snooze_of_camera(const std::vector<Snooze>& entries, const Snooze& target);

/// What the file says counts beside what the configuration does: the later time. Of cameras and rules that
/// are not there, nothing.
void apply_snoozes(Settings& settings, const std::vector<Snooze>& entries);
void apply_snoozes(CameraSettings& camera, const std::vector<Snooze>& entries);

/// The lines of `parse_snoozes`, behind a comment.
std::string print_snoozes(const std::vector<Snooze>& entries);

/// Changes the file of snoozes as a whole: nobody reads half of it, and of two who change it at once, none
/// is lost. `change` gets what is there. Throws std::runtime_error with one line.
void change_snoozes(const std::filesystem::path& file,
                    const std::function<void(std::vector<Snooze>&)>& change);

}  // namespace vigil::config
