#include "tests/actors/events.h"

#include <fstream>

#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

namespace vigil::actors::testing {

bool is_valid(const nlohmann::json& event, std::string* why) {
  std::ifstream file(VIGIL_SOURCE_DIR "/docs/event.schema.json");
  const nlohmann::json schema = nlohmann::json::parse(file);
  valijson::Schema compiled;
  valijson::SchemaParser().populateSchema(valijson::adapters::NlohmannJsonAdapter(schema), compiled);
  valijson::ValidationResults results;
  const bool valid =
      valijson::Validator().validate(compiled, valijson::adapters::NlohmannJsonAdapter(event), &results);
  for (valijson::ValidationResults::Error error; why != nullptr && results.popError(error);) {
    for (const std::string& step : error.context) *why += step;
    *why += ": " + error.description + '\n';
  }
  return valid;
}

}  // namespace vigil::actors::testing
