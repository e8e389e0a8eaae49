// How large a KV cache a bench of many cameras needs.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "config/settings.h"
#include "engine/model/files/config.h"
#include "engine/model/vision/preprocess.h"

namespace vigil::bench {

/// Tokens of a KV cache for so many of the longest windows, with full answers to all their rules.
/// `frame_size`: of a camera's frames as the model sees them.
std::int64_t cache_for(const std::vector<config::CameraSettings>& cameras,
                       const model::Preprocessor& preprocessor,
                       const std::function<model::PictureSize(const config::CameraSettings&)>& frame_size,
                       int windows);

/// Tokens whose keys and values, in f32, take so many bytes.
std::int64_t tokens_within(const model::TextConfig& text, std::uint64_t bytes);

}  // namespace vigil::bench
