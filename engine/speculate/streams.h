// Independent random numbers for drafting, accepting and resampling.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "engine/model/language/sampler.h"

namespace vigil::speculate {

/// What a number is drawn for. With one stream for two of them, the tokens do not have the target's
/// distribution: a rejected draft says something about the number that rejected it.
enum class Stream { draft, accept, resample };

/// A number in [0, 1) of a stream, at a step: the place of the token in its answer, from 0 on. The same each
/// time it is asked.
using Uniform = std::function<double(Stream stream, std::uint64_t step)>;

/// SplitMix64 of the seed, the stream's name and the step; none is the Sampler's own of that seed.
Uniform streams_of(std::uint64_t seed);

/// The token at a point in [0, 1) of the cumulative distribution. There is at least one choice.
std::int32_t choose(std::span<const model::Likelihood> choices, double point);

}  // namespace vigil::speculate
