#include "engine/memory/part_queue.h"

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <utility>

#include "engine/kv/forms.h"
#include "engine/memory/hours.h"

namespace vigil::memory {
namespace {

/// In place of the bytes of a page without tokens, which is worth remembering: nothing happened then.
constexpr std::byte kNothing{0};

std::uint32_t hour_of(const history::PageInfo& info) {
  const std::int64_t from = info.patches.front().wall.from;
  if (from < 0) throw std::invalid_argument("a page of a time before 1970");
  return static_cast<std::uint32_t>(hour_at(from));
}

}  // namespace

PartQueue::PartQueue(history::HistoryStore& store, Options options) : store_(store), options_(options) {
  if (options.layers == 0 || options.value_bytes == 0 || options.part_bytes == 0)
    throw std::invalid_argument("parts without layers or bytes");
}

std::vector<history::GivenValue> PartQueue::values_of(const Page& page) const {
  const std::span<const std::byte> bytes(page.tokens.bytes.get(), page.tokens.size);
  if (bytes.empty()) return {{{0, 1}, {&kNothing, 1}}};
  if (page.tokens.form == kv::Form::embeddings) return {{{0, 1}, bytes}};
  // Each layer has as many bytes.
  const std::size_t layer = bytes.size() / options_.layers;
  const auto each =
      static_cast<std::uint16_t>(std::clamp<std::size_t>(options_.value_bytes / layer, 1, options_.layers));
  std::vector<history::GivenValue> values;
  for (std::uint16_t first = 0; first < options_.layers; first = static_cast<std::uint16_t>(first + each)) {
    const auto count = std::min<std::uint16_t>(each, static_cast<std::uint16_t>(options_.layers - first));
    values.push_back({{first, count}, bytes.subspan(first * layer, count * layer)});
  }
  return values;
}

bool PartQueue::offer(const history::CameraId& camera, history::PageInfo info, const run::MovedTokens& tokens,
                      base::Clock::TimePoint now) {
  info.form = static_cast<std::uint8_t>(tokens.form);
  info.bytes = std::max<std::size_t>(1, tokens.size);
  if (const auto fault = history::fault_of(info)) throw std::invalid_argument("a page that " + *fault);
  const std::uint32_t hour = hour_of(info);
  const std::lock_guard lock(mutex_);
  if (waiting_ + tokens.size > options_.most_waiting) return false;
  const auto goes_into = [&](const Part& part) {
    return !part.is_complete && part.camera == camera && part.form == info.form;
  };
  auto part = std::find_if(parts_.begin(), parts_.end(), goes_into);
  if (part != parts_.end() && (part->hour != hour || part->bytes + tokens.size > history::kMostPartBytes)) {
    part->is_complete = true;
    part = parts_.end();
  }
  if (part == parts_.end()) {
    parts_.push_back({camera, hour, info.form, {}, 0, now, false});
    part = std::prev(parts_.end());
  }
  part->pages.push_back({std::move(info), tokens.shared()});
  part->bytes += tokens.size;
  waiting_ += tokens.size;
  part->is_complete = part->bytes >= options_.part_bytes;
  limit_gathered();
  return true;
}

void PartQueue::limit_gathered() {
  std::uint64_t gathered = 0;
  for (const Part& part : parts_)
    if (!part.is_complete) gathered += part.bytes;
  while (gathered > options_.most_waiting / 4) {
    const auto largest = std::max_element(parts_.begin(), parts_.end(), [](const Part& a, const Part& b) {
      return (a.is_complete ? 0 : a.bytes) < (b.is_complete ? 0 : b.bytes);
    });
    largest->is_complete = true;
    gathered -= largest->bytes;
  }
}

void PartQueue::flush(const std::optional<history::CameraId>& camera) {
  const std::lock_guard lock(mutex_);
  for (Part& part : parts_)
    if (!camera || part.camera == *camera) part.is_complete = true;
}

std::vector<std::uint64_t> PartQueue::erase(const history::CameraId& camera, const history::WallRange& wall) {
  const std::lock_guard lock(mutex_);
  std::vector<std::uint64_t> erased;
  for (Part& part : parts_) {
    if (part.camera != camera) continue;
    std::erase_if(part.pages, [&](const Page& page) {
      if (!history::wall_of(page.info).meets(wall)) return false;
      part.bytes -= page.tokens.size;
      waiting_ -= page.tokens.size;
      erased.push_back(page.info.number);
      return true;
    });
  }
  std::erase_if(parts_, [](const Part& part) { return part.pages.empty(); });
  return erased;
}

std::vector<PartQueue::OnItsWay> PartQueue::pages(const history::CameraId& camera,
                                                  const history::WallRange& wall) const {
  std::vector<OnItsWay> found;
  const auto look = [&](const Part& part) {
    if (part.camera != camera) return;
    for (const Page& page : part.pages)
      if (history::wall_of(page.info).meets(wall)) found.push_back({page.info, page.tokens.shared()});
  };
  const std::lock_guard lock(mutex_);
  if (writing_) look(*writing_);
  for (const Part& part : parts_) look(part);
  return found;
}

Pressure PartQueue::pressure() const {
  const std::lock_guard lock(mutex_);
  if (waiting_ >= options_.most_waiting / 8 * 7) return Pressure::full;
  if (waiting_ >= options_.most_waiting / 4 * 3) return Pressure::embeddings;
  if (waiting_ >= options_.most_waiting / 2) return Pressure::coarser;
  return Pressure::none;
}

std::uint64_t PartQueue::waiting() const {
  const std::lock_guard lock(mutex_);
  return waiting_;
}

bool PartQueue::is_complete(const Part& part, base::Clock::TimePoint now) const {
  return part.is_complete || part.begun + options_.part_time <= now;
}

std::optional<base::Clock::TimePoint> PartQueue::due() const {
  const std::lock_guard lock(mutex_);
  std::optional<base::Clock::TimePoint> due;
  for (const Part& part : parts_) {
    const auto at = part.is_complete ? part.begun : part.begun + options_.part_time;
    if (!due || at < *due) due = at;
  }
  return due;
}

std::optional<PartQueue::Written> PartQueue::write_next(base::Clock::TimePoint now) {
  std::shared_ptr<const Part> part;
  {
    const std::lock_guard lock(mutex_);
    const auto next =
        std::find_if(parts_.begin(), parts_.end(), [&](const Part& each) { return is_complete(each, now); });
    if (next == parts_.end()) return std::nullopt;
    part = writing_ = std::make_shared<const Part>(std::move(*next));
    parts_.erase(next);
  }
  Written written = write(*part);
  const std::lock_guard lock(mutex_);
  writing_.reset();
  waiting_ -= part->bytes;
  return written;
}

PartQueue::Written PartQueue::write(const Part& part) const {
  history::GivenPart given;
  given.camera = part.camera;
  given.hour = part.hour;
  Written written;
  written.camera = part.camera;
  written.form = part.form;
  written.bytes = part.bytes;
  written.wall = history::wall_of(part.pages.front().info);
  for (const Page& page : part.pages) {
    given.pages.push_back({page.info, values_of(page)});
    const history::WallRange wall = history::wall_of(page.info);
    written.wall = {std::min(written.wall.from, wall.from), std::max(written.wall.to, wall.to)};
  }
  try {
    const history::PutReport report = store_.put(given);
    written.pages = report.pages;
    written.erased = report.erased;
  } catch (const std::exception& error) {
    written.failure = error.what();
  }
  return written;
}

}  // namespace vigil::memory
