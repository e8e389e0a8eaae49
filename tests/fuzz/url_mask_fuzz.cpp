// A secret planted somewhere in a URL between any bytes: it is in nothing that is shown of it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include <fuzzer/FuzzedDataProvider.h>

#include "config/values/masked_text.h"
#include "config/values/source.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vigil::config;
  FuzzedDataProvider provider(data, size);
  const std::string secret = "Zq3xV8kLm2Pw9RtY5bNc";
  const std::string scheme =
      provider.PickValueInArray({"rtsp://", "rtsps://", "http://", "https://", "srt://"});
  const int place = provider.ConsumeIntegralInRange(0, 5);
  const std::string before = provider.ConsumeRandomLengthString(12);
  const std::string behind = provider.ConsumeRandomLengthString(12);
  const std::string tail = provider.ConsumeRemainingBytesAsString();
  const std::string planted = before + secret + behind;
  std::string url = scheme;
  switch (place) {
    case 0:
      url += planted + "@gate.example/" + tail;
      break;
    case 1:
      url += "viewer:" + planted + "@gate.example/" + tail;
      break;
    case 2:
      url += "gate.example/" + before + '/' + secret + '/' + behind + tail;
      break;
    case 3:
      url += "gate.example/live?" + before + "=" + secret + behind + '&' + tail;
      break;
    case 4:
      url += "gate.example/live?" + before + '&' + secret + behind + tail;
      break;
    default:
      url += "gate.example/live#" + secret + behind;
      break;
  }
  // Planted once more, by any of the parts or by two that meet, it may be the host's name, which is shown.
  if (url.find(secret) != url.rfind(secret)) return 0;
  if (mask_credentials(url).find(secret) != std::string::npos) std::abort();
  if (const auto fault = source_fault(url); fault && fault->find(secret) != std::string::npos) std::abort();
  (void)source_fault(tail);
  (void)mask_credentials(tail);
  const MaskedText text =
      with_credentials({"rtsp://gate.example/", "rtsp://gate.example/"}, "viewer", planted);
  if (text.shown.find(secret) != std::string::npos) std::abort();
  return 0;
}
