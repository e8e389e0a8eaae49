#include "actors/alerts/series_claims.h"

#include <algorithm>

namespace vigil::actors {

SeriesClaims::Entry SeriesClaims::enter(const std::string& camera, std::uint64_t fence) {
  Series& series = series_[camera];
  if (fence > series.fence) {
    series.fence = fence;
    series.state = State::idle;
    series.is_left = false;
  } else if (series.is_left && series.state != State::lost) {
    // What is open of it nobody goes on with yet.
    series.state = State::idle;
    series.is_left = false;
  }
  // What the camera's former tenure here had under way comes with an older fence, and is this one's to tell.
  if (series.state == State::held) return Entry::go;
  return series.state == State::lost ? Entry::gone : Entry::wait;
}

void SeriesClaims::want(const std::string& camera) {
  Series& series = series_[camera];
  if (series.state != State::idle) return;
  series.state = State::wanted;
  std::erase_if(wanted_, [&](const Claim& claim) { return claim.camera == camera; });
  wanted_.push_back({camera, series.fence});
}

bool SeriesClaims::fits(const SeriesBooks& books) const {
  const auto entry = series_.find(books.camera);
  if (entry == series_.end() || entry->second.state == State::lost) return false;
  const Series& series = entry->second;
  if (books.camera.empty()) {
    return books.fence > series.fence || (series.state == State::wanted && books.fence == series.fence);
  }
  return series.state == State::wanted && books.fence == series.fence;
}

void SeriesClaims::hold(const std::string& camera, std::uint64_t fence) {
  Series& series = series_[camera];
  series = {fence, State::held, fence, true, series.is_left};
}

bool SeriesClaims::holds(const std::string& camera) const {
  const auto entry = series_.find(camera);
  return entry != series_.end() && entry->second.state == State::held;
}

bool SeriesClaims::is_lost(const std::string& camera) const {
  const auto entry = series_.find(camera);
  return entry != series_.end() && entry->second.state == State::lost;
}

std::uint64_t SeriesClaims::fence(const std::string& camera) const {
  const auto entry = series_.find(camera);
  return entry == series_.end() ? 0 : entry->second.fence;
}

std::uint64_t SeriesClaims::former(const std::string& camera) const {
  const auto entry = series_.find(camera);
  return entry == series_.end() ? 0 : entry->second.former;
}

bool SeriesClaims::lived(const std::string& camera) const {
  const auto entry = series_.find(camera);
  return entry != series_.end() && entry->second.lived;
}

void SeriesClaims::remember(const std::string& camera, std::uint64_t fence) {
  Series& series = series_[camera];
  if (series.former == 0) series.former = fence;
}

void SeriesClaims::want_former(const std::string& camera) {
  const auto entry = series_.find(camera);
  if (camera.empty() || entry == series_.end()) return;
  Series& series = entry->second;
  if (series.former == 0 || series.fence != 0) return;
  series.fence = series.former;
  series.is_left = true;
  want(camera);
}

bool SeriesClaims::lose(const std::string& camera, std::uint64_t fence) {
  Series& series = series_[camera];
  if (series.fence > fence) return false;
  series.fence = fence;
  series.state = State::lost;
  std::erase_if(wanted_, [&](const Claim& claim) { return claim.camera == camera; });
  return true;
}

void SeriesClaims::doubt() {
  for (auto& [camera, series] : series_) {
    if (series.state != State::held) continue;
    series.state = State::idle;
    want(camera);
  }
}

}  // namespace vigil::actors
