#include "engine/window/engine.h"

#include "engine/model/model_folder.h"
#include "engine/window/full_answerer.h"
#include "engine/window/tower_encoder.h"
#include "kernels/device/product_time.h"

namespace vigil::window {

Engine make_engine(const std::filesystem::path& model_folder, const EngineOptions& options) {
  const auto folder = model::ModelFolder::open(model_folder);
  Engine engine;
  engine.compute = model::choose_compute(*folder, options.compute);
  engine.encoder = std::make_unique<TowerEncoder>(folder, engine.compute, options.threads);
  engine.answerer = std::make_unique<FullAnswerer>(
      folder, FullAnswerer::Options{
                  .compute = engine.compute, .kv_tokens = options.kv_tokens, .threads = options.threads});
  engine.model_id = folder->name();
  if (const std::string warning = folder->chat_template.warning(); !warning.empty())
    engine.warnings.push_back(warning);
  return engine;
}

void ProductMeter::start() {
  kernels::measure_products(true);
}

double ProductMeter::seconds() {
  return kernels::product_seconds();
}

double ProductMeter::flops() {
  return kernels::product_flops();
}

}  // namespace vigil::window
