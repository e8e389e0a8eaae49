#include "actors/vision/encode.h"

#include <exception>
#include <new>
#include <span>
#include <stdexcept>

namespace vigil::actors {
namespace {

window::PatchFrames view_of(const FramePatch& patch) {
  window::PatchFrames view;
  for (const media::SampledFrame& frame : patch.frames) {
    view.frames.push_back({frame.image->rgb.data(), frame.image->size.width, frame.image->size.height});
  }
  view.seconds = patch.seconds;
  view.duration = patch.duration;
  return view;
}

VisualPatchPtr joined(const FramePatch& patch, model::VisualTokensPtr tokens, const WorkSpan& encoded) {
  auto visual = std::make_shared<VisualPatch>();
  visual->camera = patch.camera;
  visual->tokens = std::move(tokens);
  visual->frames = static_cast<int>(patch.frames.size());
  visual->captured = patch.captured;
  visual->encoded = encoded;
  return visual;
}

std::vector<model::VisualTokensPtr> encode_all(window::VisionEncoder& encoder,
                                               std::span<const window::PatchFrames> views) {
  auto tokens = encoder.encode(views);
  if (tokens.size() != views.size()) throw std::logic_error("the encoder returned another number of patches");
  return tokens;
}

}  // namespace

Encoded encode(window::VisionEncoder& encoder, const config::Clock& clock,
               const std::vector<FramePatchPtr>& patches) {
  std::vector<window::PatchFrames> views;
  views.reserve(patches.size());
  for (const FramePatchPtr& patch : patches) views.push_back(view_of(*patch));
  Encoded result;
  WorkSpan span{clock.now(), {}};
  try {
    auto tokens = encode_all(encoder, views);
    span.end = clock.now();
    for (std::size_t i = 0; i < patches.size(); ++i) {
      result.patches.push_back(joined(*patches[i], std::move(tokens[i]), span));
    }
    return result;
  } catch (const window::DeviceLost&) {
    throw;
  } catch (const std::bad_alloc& error) {
    result.too_many = error.what();
    if (patches.size() == 1) result.failures.push_back({patches.front(), error.what(), true});
  } catch (const std::exception& error) {
    if (patches.size() == 1) result.failures.push_back({patches.front(), error.what(), false});
  }
  if (patches.size() == 1) return result;
  for (std::size_t i = 0; i < patches.size(); ++i) {
    span.begin = clock.now();
    try {
      auto tokens = encode_all(encoder, std::span(views).subspan(i, 1));
      span.end = clock.now();
      result.patches.push_back(joined(*patches[i], std::move(tokens.front()), span));
    } catch (const window::DeviceLost&) {
      throw;
    } catch (const std::bad_alloc& error) {
      if (result.too_many.empty()) result.too_many = error.what();
      result.failures.push_back({patches[i], error.what(), true});
    } catch (const std::exception& error) {
      result.failures.push_back({patches[i], error.what(), false});
    }
  }
  return result;
}

}  // namespace vigil::actors
