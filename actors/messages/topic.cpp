#include "actors/messages/topic.h"

#include <cstddef>
#include <span>

#include "config/values/meant_name.h"

namespace vigil::actors {
namespace {

using Part = std::string_view TopicName::*;

/// What follows the root, in its order.
std::span<const Part> parts_of(TopicKind kind) {
  static constexpr std::array<Part, 3> kRule = {&TopicName::tenant, &TopicName::camera, &TopicName::rule};
  static constexpr std::array<Part, 4> kShared = {&TopicName::name, &TopicName::tenant, &TopicName::camera,
                                                  &TopicName::rule};
  static constexpr std::array<Part, 2> kStatus = {&TopicName::tenant, &TopicName::camera};
  static constexpr std::array<Part, 1> kProcess = {&TopicName::name};
  switch (kind) {
    case TopicKind::rule:
      return kRule;
    case TopicKind::shared:
      return kShared;
    case TopicKind::status:
      return kStatus;
    case TopicKind::process:
      return kProcess;
  }
  return {};
}

}  // namespace

std::optional<TopicKind> kind_of(std::string_view topic) {
  for (std::size_t kind = 0; kind < kTopicRoots.size(); ++kind)
    if (topic.starts_with(kTopicRoots[kind])) return static_cast<TopicKind>(kind);
  return std::nullopt;
}

std::optional<TopicName> read_topic(std::string_view topic) {
  const auto kind = kind_of(topic);
  if (!kind) return std::nullopt;
  TopicName name;
  name.kind = *kind;
  topic.remove_prefix(root_of(*kind).size());
  for (const Part part : parts_of(*kind)) {
    const std::size_t end = topic.find('/');
    if (end == std::string_view::npos || end == 0) return std::nullopt;
    name.*part = topic.substr(0, end);
    topic.remove_prefix(end + 1);
  }
  if (!topic.empty()) return std::nullopt;
  return name;
}

std::string text_of(const TopicName& name) {
  std::string text(root_of(name.kind));
  for (const Part part : parts_of(name.kind)) text.append(name.*part).push_back('/');
  return text;
}

std::string rule_topic(std::string_view topic) {
  auto name = read_topic(topic);
  if (!name || name->kind != TopicKind::shared) return std::string(topic);
  name->kind = TopicKind::rule;
  return text_of(*name);
}

std::optional<std::string> series_of(std::string_view topic) {
  const auto name = read_topic(topic);
  if (!name) return std::nullopt;
  return std::string(name->camera);
}

std::optional<std::string> beginning_fault(const std::string& beginning) {
  for (const std::string_view root : kTopicRoots)
    if (beginning.starts_with(root) || root.starts_with(beginning)) return std::nullopt;
  const std::size_t slash = beginning.find('/');
  const std::string rest = slash == std::string::npos ? std::string() : beginning.substr(slash + 1);
  std::string fault = beginning + " begins no topic";
  if (const auto meant = config::meant_name(beginning.substr(0, slash) + '/', kTopicRoots))
    fault += "; did you mean " + *meant + rest + '?';
  fault += " (";
  for (const std::string_view root : kTopicRoots)
    fault.append(root == kTopicRoots.front() ? "" : ", ").append(root);
  return fault + ')';
}

}  // namespace vigil::actors
