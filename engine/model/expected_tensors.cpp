#include "engine/model/expected_tensors.h"

#include <set>

#include "engine/model/files/error.h"

namespace vigil::model {
namespace {

using Shape = std::vector<std::int64_t>;

/// A linear layer [out, in], with its bias.
void add_linear(std::vector<ExpectedTensor>& to, const std::string& name, std::int64_t out, std::int64_t in,
                bool bias) {
  to.push_back({name + ".weight", Shape{out, in}});
  if (bias) to.push_back({name + ".bias", Shape{out}});
}

}  // namespace

std::uint64_t ExpectedTensor::elements() const {
  std::uint64_t count = 1;
  for (const std::int64_t size : shape) count *= static_cast<std::uint64_t>(size);
  return count;
}

std::vector<ExpectedTensor> expected_vision_tensors(const VisionConfig& vision) {
  const std::string prefix = "model.visual.";
  const std::int64_t width = vision.hidden_size;
  const std::int64_t inner = vision.intermediate_size;
  std::vector<ExpectedTensor> tensors;
  tensors.push_back(
      {prefix + "patch_embed.proj.weight",
       Shape{width, vision.in_channels, vision.temporal_patch_size, vision.patch_size, vision.patch_size}});
  for (int i = 0; i < vision.depth; ++i) {
    const std::string block = prefix + "blocks." + std::to_string(i) + ".";
    tensors.push_back({block + "norm1.weight", Shape{width}});
    tensors.push_back({block + "norm2.weight", Shape{width}});
    add_linear(tensors, block + "attn.qkv", 3 * width, width, true);
    add_linear(tensors, block + "attn.proj", width, width, true);
    add_linear(tensors, block + "mlp.gate_proj", inner, width, true);
    add_linear(tensors, block + "mlp.up_proj", inner, width, true);
    add_linear(tensors, block + "mlp.down_proj", width, inner, true);
  }
  const std::int64_t merged = width * vision.spatial_merge_size * vision.spatial_merge_size;
  tensors.push_back({prefix + "merger.ln_q.weight", Shape{width}});
  add_linear(tensors, prefix + "merger.mlp.0", merged, merged, true);
  add_linear(tensors, prefix + "merger.mlp.2", vision.out_hidden_size, merged, true);
  return tensors;
}

std::vector<ExpectedTensor> expected_text_tensors(const TextConfig& text) {
  const std::string prefix = "model.language_model.";
  const std::int64_t width = text.hidden_size;
  const std::int64_t queries = std::int64_t{text.num_attention_heads} * text.head_dim;
  const std::int64_t keys = std::int64_t{text.num_key_value_heads} * text.head_dim;
  std::vector<ExpectedTensor> tensors;
  tensors.push_back({prefix + "embed_tokens.weight", Shape{text.vocab_size, width}});
  for (int i = 0; i < text.num_hidden_layers; ++i) {
    const std::string layer = prefix + "layers." + std::to_string(i) + ".";
    tensors.push_back({layer + "input_layernorm.weight", Shape{width}});
    tensors.push_back({layer + "post_attention_layernorm.weight", Shape{width}});
    add_linear(tensors, layer + "self_attn.q_proj", queries, width, true);
    add_linear(tensors, layer + "self_attn.k_proj", keys, width, true);
    add_linear(tensors, layer + "self_attn.v_proj", keys, width, true);
    add_linear(tensors, layer + "self_attn.o_proj", width, queries, false);
    add_linear(tensors, layer + "mlp.gate_proj", text.intermediate_size, width, false);
    add_linear(tensors, layer + "mlp.up_proj", text.intermediate_size, width, false);
    add_linear(tensors, layer + "mlp.down_proj", width, text.intermediate_size, false);
  }
  tensors.push_back({prefix + "norm.weight", Shape{width}});
  if (!text.tie_word_embeddings) tensors.push_back({"lm_head.weight", Shape{text.vocab_size, width}});
  return tensors;
}

TensorFindings check_tensors(const Weights& weights, const ModelConfig& config) {
  std::vector<ExpectedTensor> expected = expected_vision_tensors(config.vision);
  for (ExpectedTensor& tensor : expected_text_tensors(config.text)) expected.push_back(std::move(tensor));
  TensorFindings findings;
  std::set<std::string> used;
  for (const ExpectedTensor& tensor : expected) {
    used.insert(tensor.name);
    try {
      weights.get(tensor.name, tensor.shape);
    } catch (const ModelError& error) {
      findings.problems.emplace_back(error.what());
    }
  }
  for (std::string& name : weights.names()) {
    if (!used.contains(name)) findings.unused.push_back(std::move(name));
  }
  return findings;
}

}  // namespace vigil::model
