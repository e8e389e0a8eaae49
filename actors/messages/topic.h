// The names under which events are told, part by part (docs/topics.md is for those who subscribe).
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace vigil::actors {

/// rule: "alert/TENANT/CAMERA/RULE/", a rule's own topic. shared: "topic/NAME/TENANT/CAMERA/RULE/", the same
/// events where a rule names others that want them, too. status: "status/TENANT/CAMERA/". process:
/// "process/NAME/", what a process tells of itself.
enum class TopicKind { rule, shared, status, process };

/// By kind. The last delimiter of a topic keeps it from being the beginning of another.
inline constexpr std::array<std::string_view, 4> kTopicRoots = {"alert/", "topic/", "status/", "process/"};
constexpr std::string_view root_of(TopicKind kind) {
  return kTopicRoots[static_cast<std::size_t>(kind)];
}

/// One whole topic; what its kind does not have is empty. Views of somebody else's text.
struct TopicName {
  TopicKind kind = TopicKind::rule;
  /// Of a shared topic, or of a process.
  std::string_view name;
  std::string_view tenant, camera, rule;
  friend bool operator==(const TopicName&, const TopicName&) = default;
};

/// Nothing for what is no topic, or only the beginning of some.
std::optional<TopicName> read_topic(std::string_view topic);

std::string text_of(const TopicName& name);

/// By its beginning alone; nothing if no topic begins like this.
std::optional<TopicKind> kind_of(std::string_view topic);

/// The rule's own topic of a whole one that is shared; any other text as it is.
std::string rule_topic(std::string_view topic);

/// What numbers belong to: the camera whose series has this topic, empty for a process's own; nothing if it
/// is no whole topic.
std::optional<std::string> series_of(std::string_view topic);

/// Why no topic begins like this, if none does, and what may be meant.
std::optional<std::string> beginning_fault(const std::string& beginning);

}  // namespace vigil::actors
