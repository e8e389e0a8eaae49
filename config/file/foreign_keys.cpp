#include "config/file/foreign_keys.h"

#include <algorithm>
#include <initializer_list>

namespace vigil::config {
namespace {

struct Foreign {
  std::initializer_list<std::string_view> keys;
  std::string_view here;
};

const Foreign kForeign[] = {
    {{"path", "source", "uri", "address", "stream_url", "rtsp_url", "liveStreamUrl", "live_stream_url"},
     "Vigil calls it `url`"},
    {{"user"}, "Vigil calls it `username`"},
    {{"pass", "passwd"}, "Vigil calls it `password`"},
    {{"ffmpeg", "go2rtc", "streams"}, "a camera has its `url`, or `inputs`, itself"},
    {{"detect"}, "a camera has `enabled`, `fps` and `window` itself, and `defaults` has them for all"},
    {{"detectors", "hwaccel_args"}, "`engine.device` says what computes"},
    {{"objects", "track", "filters", "events"}, "what to look for is said in words, in `rules`"},
    {{"zones", "mask", "motion"}, "where to look is said in words, in the `prompt` of a rule"},
    {{"vlm_prompt", "question", "query"}, "Vigil calls it `prompt`, in `rules`"},
    {{"chunk_duration"}, "Vigil calls it `window.length`"},
    {{"chunk_overlap_duration"}, "`window.stride` says how far apart the ends of two windows are"},
    {{"num_frames_per_chunk"}, "`fps` says how many frames of a second are looked at"},
    {{"mqtt", "kafka"}, "events go out on `alerts.bind` (docs/topics.md)"},
    {{"record", "snapshots", "review"}, "stills and clips of alerts are kept by `evidence`"},
    {{"retain"}, "`evidence.max_age` and `evidence.budget` say how long clips are kept"},
};

}  // namespace

std::optional<std::string_view> in_place_of(std::string_view key) {
  for (const Foreign& foreign : kForeign) {
    if (std::find(foreign.keys.begin(), foreign.keys.end(), key) != foreign.keys.end()) return foreign.here;
  }
  return std::nullopt;
}

}  // namespace vigil::config
