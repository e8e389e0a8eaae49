// Reading beside whatever uses the frames: a reader on a thread of its own.
#pragma once

#include <cstddef>
#include <memory>

#include "media/media.h"

namespace vigil::media {

/// A reader that yields what `inner` yields, but reads up to `frames` samples (at least 1, else
/// std::invalid_argument) ahead of its caller on one thread, on which `inner` and its SizePolicy are called.
/// `stats()` is as of the sample that `next` gave last, `rest()` is empty until the end; an error of `inner`
/// comes after the samples before it. Destroying it waits for the `next` of `inner` in work: cancel a source
/// that may block through ReadOptions::stop first.
std::unique_ptr<VideoReader> read_ahead(std::unique_ptr<VideoReader> inner, std::size_t frames);

}  // namespace vigil::media
