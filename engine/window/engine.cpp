#include "engine/window/engine.h"

#include "engine/model/model_folder.h"
#include "engine/window/full_prefiller.h"
#include "engine/window/tower_encoder.h"
#include "engine/window/turn_generator.h"

namespace vigil::window {

Engine make_engine(const std::filesystem::path& model_folder, const EngineOptions& options) {
  const auto folder = model::ModelFolder::open(model_folder);
  Engine engine;
  engine.compute = model::choose_compute(*folder, options.compute);
  engine.encoder = std::make_unique<TowerEncoder>(folder, engine.compute, options.threads);
  const auto model = std::make_shared<CachedModel>(
      folder, CachedModelOptions{.compute = engine.compute, .kv_tokens = options.kv_tokens});
  engine.prefiller =
      std::make_unique<FullPrefiller>(model, FullPrefiller::Options{.threads = options.threads});
  engine.generator = std::make_unique<TurnGenerator>(model, options.threads);
  engine.answerer = std::make_unique<WindowAnswerer>(*engine.prefiller, *engine.generator);
  engine.model_id = folder->name();
  if (const std::string warning = folder->chat_template.warning(); !warning.empty())
    engine.warnings.push_back(warning);
  return engine;
}

}  // namespace vigil::window
