// A text's one document of YAML. Of the files of this folder alone.
#pragma once

#include <functional>
#include <string>

#include <yaml-cpp/yaml.h>

namespace vigil::config {

/// The one document that a text holds; what others hold is reported. Empty ones are none: "---" may stand at
/// the end, and around comments. Throws YAML::Exception.
YAML::Node only_document(const std::string& text,
                         const std::function<void(const YAML::Node&, const std::string&)>& report);

}  // namespace vigil::config
