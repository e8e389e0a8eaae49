#include "engine/engine.h"

#include "engine/run/guard.h"
#include "engine/run/parallel_encoder.h"
#include "engine/run/pass_runner.h"
#include "engine/run/stream_token_mover.h"

namespace vigil::engine {

namespace {

// Of passes. On a CPU the threads of a large one wait less for each other, and others for them; texts want
// short ones. On a GPU, texts get a token with each pass, so passes
// of cameras are short, and below some 200 rows cost what reading the weights does; 1,152 rows of a 7B model
// cost less a row than 512, but an answer takes as many passes as it has tokens, so windows that nobody has
// asked about fill a pass to 512 rows and no further (docs/experiments/2026-11-24-windows-ahead.md). Whoever
// asks for a clip alone wants it whole.
stream::PassLimits limits_of(kernels::DeviceKind kind, PassSize size) {
  if (kind != kernels::DeviceKind::cuda)
    return {.rows = 4096, .rows_with_texts = 1024, .rows_ahead = 64, .asks_at_once = false};
  const std::int64_t rows = size == PassSize::large ? 16384 : 1152;
  return {.rows = rows, .rows_ahead = 256, .rows_filled = 512, .asks_at_once = true};
}

}  // namespace

Engine make_engine(const std::filesystem::path& model_folder, const EngineOptions& options) {
  return make_engine(model::ModelFolder::open(model_folder), options);
}

Engine make_engine(const std::shared_ptr<const model::ModelFolder>& folder, const EngineOptions& options) {
  Engine engine;
  engine.device = options.device;
  engine.decode_device =
      options.halves == Halves::tower ? options.device : options.decode_device.value_or(options.device);
  run::check_decode_device(options.device, engine.decode_device);
  engine.quantization = options.quantization;
  engine.compute = model::choose_compute(*folder, options.compute, options.device.kind);
  const auto streams_of = [&](const run::Device& device) {
    return run::make_streams(device, options.threads);
  };
  const auto model_on = [&](const run::Device& device) {
    return std::make_shared<run::CachedModel>(
        folder, run::CachedModelOptions{.memory = streams_of(device),
                                        .compute = engine.compute,
                                        .quantization = model::of_decoder(options.quantization),
                                        .kv_tokens = options.kv_tokens});
  };
  const bool gpu = options.device.kind == kernels::DeviceKind::cuda;
  const bool has_tower = options.halves != Halves::language;
  const bool has_language = options.halves != Halves::tower;
  engine.frames_per_patch = folder->config.vision.temporal_patch_size;
  engine.parts_overlap = !gpu && has_tower && has_language;
  // First, so that a model that cannot be shared by so many devices is refused before anything is loaded.
  const std::shared_ptr<run::CachedModel> model = has_language ? model_on(options.device) : nullptr;
  if (has_tower) {
    const auto vision = streams_of(options.device);
    engine.encoder = run::guarded(std::make_unique<run::ParallelEncoder>(
                                      folder, engine.compute, vision, model::of_vision(options.quantization),
                                      options.embeddings.value_or(engine.compute)),
                                  vision);
  }
  const auto language_of = [&](const std::shared_ptr<run::CachedModel>& of, const run::Device& device,
                               const run::CachedModel* other) {
    const auto streams = streams_of(device);
    Language language;
    language.model = of;
    language.passes = run::guarded(std::make_unique<run::PassRunner>(*of, streams, other), streams);
    language.mover = run::guarded(std::make_unique<run::StreamTokenMover>(*of, streams), streams);
    language.questions = std::make_unique<stream::QuestionCompiler>(*folder, of->prompts);
    language.desk = std::make_unique<stream::StreamDesk>(
        *folder, of->prompts, of->book, *language.passes,
        stream::StreamDesk::Options{.limits = limits_of(device.kind, options.passes),
                                    .epoch = options.epoch,
                                    .page_bytes = of->page_bytes(),
                                    .memory = {},
                                    .memory_bytes = options.window_memory});
    return language;
  };
  if (has_language) engine.language = language_of(model, options.device, nullptr);
  engine.transfer = std::make_unique<run::TokenTransfer>(streams_of(options.device).front());
  if (has_language && engine.decode_device != options.device) {
    const std::shared_ptr<run::CachedModel> taking = model_on(engine.decode_device);
    for (std::size_t rank = 0; rank < taking->parts.size(); ++rank)
      kernels::share_memory(model->parts[rank]->memory, taking->parts[rank]->memory);
    engine.decoder = language_of(taking, engine.decode_device, model.get());
  }
  engine.model_id = folder->name();
  if (const std::string warning = folder->chat_template.warning(); !warning.empty())
    engine.warnings.push_back(warning);
  if (!gpu && options.quantization != model::Quantization::none)
    engine.warnings.emplace_back(
        "quantization fp8 is emulated on the CPU: the numbers of a GPU, slower than without");
  return engine;
}

}  // namespace vigil::engine
