#include "engine/model/language/shard.h"

#include <algorithm>
#include <string>

#include "engine/model/files/error.h"
#include "kernels/linear/linear.h"

namespace vigil::model {

Range share_of(std::int64_t total, Shard shard, std::int64_t multiple) {
  const std::int64_t units = (total + multiple - 1) / multiple;
  const auto begin_of = [&](int rank) { return std::min(total, units * rank / shard.ranks * multiple); };
  const std::int64_t first = begin_of(shard.rank);
  return {first, begin_of(shard.rank + 1) - first};
}

DecoderPart::DecoderPart(const TextConfig& config, Shard of, kernels::DeviceKind device)
    : shard(of),
      heads(config.num_attention_heads / of.ranks),
      kv_heads(config.num_key_value_heads / of.ranks),
      queries(share_of(std::int64_t{config.num_attention_heads} * config.head_dim, of)),
      keys(share_of(std::int64_t{config.num_key_value_heads} * config.head_dim, of)),
      inner(share_of(config.intermediate_size, of, kernels::linear_multiple(device))),
      vocabulary(share_of(config.vocab_size, of, kernels::linear_multiple(device))) {
  if (config.num_key_value_heads % of.ranks != 0)
    throw ModelError("a model of " + std::to_string(config.num_key_value_heads) +
                     " key and value heads cannot be shared by " + std::to_string(of.ranks) +
                     " devices: their number has to divide that of the heads");
}

}  // namespace vigil::model
