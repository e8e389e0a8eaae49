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
  view.encoded = patch.encoded;
  view.kept = patch.kept;
  view.pixels = patch.pixels;
  view.standing_out = patch.standing_out;
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
  visual->audit = patch.audit;
  visual->generation = patch.generation;
  visual->sequence = patch.sequence;
  return visual;
}

/// Adds what came of a patch.
void add(Encoded& result, const FramePatchPtr& patch, model::VisualTokensPtr tokens, const WorkSpan& span) {
  if (tokens) {
    result.patches.push_back(joined(*patch, std::move(tokens), span));
  } else {
    result.failures.push_back({patch, "the device knows too little of it", Encoded::Failure::Kind::unknown});
  }
}

std::vector<model::VisualTokensPtr> encode_all(run::VisionEncoder& encoder,
                                               std::span<const run::PatchFrames> views) {
  auto tokens = encoder.encode(views);
  if (tokens.size() != views.size()) throw std::logic_error("the encoder returned another number of patches");
  return tokens;
}

/// Tokens of all groups of those that are audited. Without time or room the audit goes without them.
void add_whole(run::VisionEncoder& encoder, const base::Clock& clock,
               const std::vector<FramePatchPtr>& patches, std::vector<VisualPatchPtr>& encoded) {
  std::vector<run::PatchFrames> views;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < patches.size(); ++i) {
    const FramePatch& patch = *patches[i];
    // Of one whose pixels are not all there, nothing more can be made.
    if (!patch.audit || patch.pixels) continue;
    const model::VisualTokens& tokens = *encoded[i]->tokens;
    if (tokens.encoded == tokens.kept.cells() && tokens.kept.has_all()) {
      auto audited = std::make_shared<VisualPatch>(*encoded[i]);
      audited->whole = audited->tokens;
      encoded[i] = std::move(audited);
    } else if (clock.now() - patch.captured.steady <= kAuditPatience) {
      run::PatchFrames& view = views.emplace_back(view_of(patch));
      view.encoded.reset();
      view.kept.reset();
      view.standing_out.reset();
      view.camera.clear();
      places.push_back(i);
    }
  }
  if (views.empty()) return;
  try {
    auto tokens = encode_all(encoder, views);
    for (std::size_t i = 0; i < places.size(); ++i) {
      auto audited = std::make_shared<VisualPatch>(*encoded[places[i]]);
      audited->whole = std::move(tokens[i]);
      encoded[places[i]] = std::move(audited);
    }
  } catch (const run::DeviceLost&) {
    throw;
  } catch (const std::exception&) {  // these groups are no window's
  }
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
      add(result, patches[i], std::move(tokens[i]), span);
    }
    return result;
  } catch (const run::DeviceLost&) {
    throw;
  } catch (const std::bad_alloc& error) {
    result.too_many = error.what();
    if (patches.size() == 1)
      result.failures.push_back({patches.front(), error.what(), Encoded::Failure::Kind::out_of_memory});
  } catch (const std::exception& error) {
    if (patches.size() == 1)
      result.failures.push_back({patches.front(), error.what(), Encoded::Failure::Kind::failed});
  }
  if (patches.size() == 1) return result;
  for (std::size_t i = 0; i < patches.size(); ++i) {
    span.begin = clock.now();
    try {
      auto tokens = encode_all(encoder, std::span(views).subspan(i, 1));
      span.end = clock.now();
      add(result, patches[i], std::move(tokens.front()), span);
    } catch (const run::DeviceLost&) {
      throw;
    } catch (const std::bad_alloc& error) {
      if (result.too_many.empty()) result.too_many = error.what();
      result.failures.push_back({patches[i], error.what(), Encoded::Failure::Kind::out_of_memory});
    } catch (const std::exception& error) {
      result.failures.push_back({patches[i], error.what(), Encoded::Failure::Kind::failed});
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
  if (encoded.failures.empty()) add_whole(encoder, clock, patches, encoded.patches);
  return encoded;
}

std::vector<PatchAck> acks_of(const std::vector<FramePatchPtr>& patches, const Encoded& encoded) {
  std::vector<PatchAck> acks;
  acks.reserve(patches.size());
  // Both are in the order of the patches.
  auto failure = encoded.failures.begin();
  for (const FramePatchPtr& patch : patches) {
    if (failure != encoded.failures.end() && failure->patch == patch) {
      const bool is_unknown = failure->kind == Encoded::Failure::Kind::unknown;
      acks.push_back(
          ack_of(*patch, is_unknown ? PatchOutcome::unknown : PatchOutcome::dropped, failure->word()));
      ++failure;
    } else {
      acks.push_back(ack_of(*patch, PatchOutcome::encoded));
    }
  }
  return acks;
}

}  // namespace vigil::actors
