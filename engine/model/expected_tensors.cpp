#include "engine/model/expected_tensors.h"

#include <set>
#include <utility>

#include "engine/model/files/error.h"

namespace vigil::model {
namespace {

using Shape = std::vector<std::int64_t>;

/// A linear layer [out, in], with its bias.
void add_linear(std::vector<ExpectedTensor>& to, std::string_view layer, std::int64_t out, std::int64_t in,
                bool bias) {
  const std::string name(layer);
  to.push_back({name + ".weight", Shape{out, in}});
  if (bias) to.push_back({name + ".bias", Shape{out}});
}

ExpectedTensor weight(std::string_view name, Shape shape) {
  return {std::string(name) + ".weight", std::move(shape)};
}

}  // namespace

std::uint64_t ExpectedTensor::elements() const {
  std::uint64_t count = 1;
  for (const std::int64_t size : shape) count *= static_cast<std::uint64_t>(size);
  return count;
}

std::vector<ExpectedTensor> expected_vision_tensors(const VisionConfig& vision) {
  const VisionNames& names = vision.traits.names;
  const std::int64_t width = vision.hidden_size;
  const std::int64_t inner = vision.intermediate_size;
  std::vector<ExpectedTensor> tensors;
  tensors.push_back(weight(names.patch_embed, {width, vision.in_channels, vision.temporal_patch_size,
                                               vision.patch_size, vision.patch_size}));
  for (int i = 0; i < vision.depth; ++i) {
    const auto in_block = [&](std::string_view name) { return of_block(names.blocks, i, name); };
    tensors.push_back(weight(in_block(names.norm1), {width}));
    tensors.push_back(weight(in_block(names.norm2), {width}));
    add_linear(tensors, in_block(names.qkv), 3 * width, width, true);
    add_linear(tensors, in_block(names.proj), width, width, true);
    add_linear(tensors, in_block(names.gate), inner, width, true);
    add_linear(tensors, in_block(names.up), inner, width, true);
    add_linear(tensors, in_block(names.down), width, inner, true);
  }
  const std::int64_t merged = width * vision.spatial_merge_size * vision.spatial_merge_size;
  tensors.push_back(weight(names.merger_norm, {width}));
  add_linear(tensors, names.merger_in, merged, merged, true);
  add_linear(tensors, names.merger_out, vision.out_hidden_size, merged, true);
  return tensors;
}

std::vector<ExpectedTensor> expected_text_tensors(const TextConfig& text) {
  const TextNames& names = text.traits.names;
  const bool bias = text.traits.qkv_bias;
  const std::int64_t width = text.hidden_size;
  const std::int64_t queries = std::int64_t{text.num_attention_heads} * text.head_dim;
  const std::int64_t keys = std::int64_t{text.num_key_value_heads} * text.head_dim;
  std::vector<ExpectedTensor> tensors;
  tensors.push_back(weight(names.embeddings, {text.vocab_size, width}));
  for (int i = 0; i < text.num_hidden_layers; ++i) {
    const auto of_layer = [&](std::string_view name) { return of_block(names.layers, i, name); };
    tensors.push_back(weight(of_layer(names.input_norm), {width}));
    tensors.push_back(weight(of_layer(names.attention_norm), {width}));
    add_linear(tensors, of_layer(names.q), queries, width, bias);
    add_linear(tensors, of_layer(names.k), keys, width, bias);
    add_linear(tensors, of_layer(names.v), keys, width, bias);
    add_linear(tensors, of_layer(names.o), width, queries, false);
    add_linear(tensors, of_layer(names.gate), text.intermediate_size, width, false);
    add_linear(tensors, of_layer(names.up), text.intermediate_size, width, false);
    add_linear(tensors, of_layer(names.down), width, text.intermediate_size, false);
  }
  tensors.push_back(weight(names.norm, {width}));
  if (!text.tie_word_embeddings) tensors.push_back(weight(names.head, {text.vocab_size, width}));
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
