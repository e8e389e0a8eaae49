#include "config/file/document.h"

#include <optional>
#include <sstream>

#include <yaml-cpp/eventhandler.h>

namespace vigil::config {
namespace {

/// Follows the parser through a text's documents. At a comma, say, that belongs to nothing, yaml-cpp gives
/// out documents without ever going on.
class Progress : public YAML::EventHandler {
 public:
  /// Throws YAML::ParserException where a document begins at which another one did.
  void OnDocumentStart(const YAML::Mark& mark) override {
    if (last_ == mark.pos) throw YAML::ParserException(mark, "what stands here belongs to nothing");
    last_ = mark.pos;
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& /*mark*/, YAML::anchor_t /*anchor*/) override {}
  void OnAlias(const YAML::Mark& /*mark*/, YAML::anchor_t /*anchor*/) override {}
  void OnScalar(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                const std::string& /*value*/) override {}
  void OnSequenceStart(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                       YAML::EmitterStyle::value /*style*/) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                  YAML::EmitterStyle::value /*style*/) override {}
  void OnMapEnd() override {}

 private:
  std::optional<int> last_;
};

}  // namespace

YAML::Node only_document(const std::string& text,
                         const std::function<void(const YAML::Node&, const std::string&)>& report) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  Progress progress;
  while (parser.HandleNextDocument(progress)) {
  }
  std::optional<YAML::Node> found;
  for (const YAML::Node& document : YAML::LoadAll(text)) {
    if (document.IsNull()) continue;
    if (!found) {
      found = document;
    } else {
      report(document, "another document, behind the one that begins in line " +
                           std::to_string(found->Mark().line + 1) + "; a file holds one");
    }
  }
  return found.value_or(YAML::Node());
}

}  // namespace vigil::config
