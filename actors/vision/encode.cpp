#include "actors/vision/encode.h"

#include <exception>
#include <new>
#include <span>
#include <stdexcept>

namespace vigil::actors {
namespace {

run::PatchFrames view_of(const FramePatch& patch) {
  run::PatchFrames view;
  for (const media::SampledFrame& frame : patch.frames) {
    view.frames.push_back({frame.image->rgb.data(), frame.image->size.width, frame.image->size.height});
    view.intra = view.intra || frame.type == media::FrameType::intra;
  }
  view.groups = patch.groups;
  view.kept = patch.kept;
  view.camera = patch.watch.camera;
  view.seconds = patch.seconds;
  view.duration = patch.duration;
  return view;
}

VisualPatchPtr joined(const FramePatch& patch, model::VisualTokensPtr tokens, const WorkSpan& encoded) {
  auto visual = std::make_shared<VisualPatch>();
  visual->watch = patch.watch;
  visual->tokens = std::move(tokens);
  visual->frames = static_cast<int>(patch.frames.size());
  visual->captured = patch.captured;
  visual->encoded = encoded;
  return visual;
}

std::vector<model::VisualTokensPtr> encode_all(run::VisionEncoder& encoder,
                                               std::span<const run::PatchFrames> views) {
  auto tokens = encoder.encode(views);
  if (tokens.size() != views.size()) throw std::logic_error("the encoder returned another number of patches");
  return tokens;
}

/// `span` is not told.
Encoded encode_some(run::VisionEncoder& encoder, const base::Clock& clock,
                    const std::vector<FramePatchPtr>& patches) {
  std::vector<run::PatchFrames> views;
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
  } catch (const run::DeviceLost&) {
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
    } catch (const run::DeviceLost&) {
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

}  // namespace

Encoded encode(run::VisionEncoder& encoder, const base::Clock& clock,
               const std::vector<FramePatchPtr>& patches) {
  const auto begin = clock.now();
  Encoded encoded = encode_some(encoder, clock, patches);
  encoded.span = {begin, clock.now()};
  return encoded;
}

std::vector<PatchAck> acks_of(const std::vector<FramePatchPtr>& patches, const Encoded& encoded) {
  std::vector<PatchAck> acks;
  acks.reserve(patches.size());
  // Both are in the order of the patches.
  auto failure = encoded.failures.begin();
  for (const FramePatchPtr& patch : patches) {
    if (failure != encoded.failures.end() && failure->patch == patch) {
      acks.push_back(ack_of(*patch, PatchOutcome::dropped, failure->word()));
      ++failure;
    } else {
      acks.push_back(ack_of(*patch, PatchOutcome::encoded));
    }
  }
  return acks;
}

}  // namespace vigil::actors
