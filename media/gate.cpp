#include "media/gate.h"

#include <new>
#include <optional>
#include <utility>

#include "base/url_mask.h"
#include "media/log_capture.h"
#include "media/origin.h"
#include "media/schemes.h"

namespace vigil::media {
namespace {

constexpr int kMostRedirects = 8;

/// As FFmpeg takes the URL apart, of which a server may be the author; null if it is none that is opened.
const Scheme* known_scheme(const std::string& url) {
  const auto origin = origin_of(url);
  return origin ? find_scheme(origin->scheme) : nullptr;
}

void replace(char*& text, const std::string& with) {
  av_freep(&text);
  text = av_strdup(with.c_str());
  if (text == nullptr) throw std::bad_alloc();
}

}  // namespace

void set_tls_options(Dictionary& options, const std::string& url, const Tls& tls) {
  const Scheme* const scheme = known_scheme(url);
  if (scheme == nullptr || scheme->tls != Scheme::Tls::ffmpeg) return;
  options.set("tls_verify", tls.insecure ? "0" : "1");
  if (!tls.ca_file.empty()) options.set("ca_file", tls.ca_file);
}

void Gate::guard(AVFormatContext& format, const Admission& admission) {
  // An empty list would be none.
  replace(format.protocol_whitelist, admission.protocols.empty() ? "none" : admission.protocols);
  replace(format.format_whitelist, admission.formats);
  base_ = admission.name;
  open_ = format.io_open;
  format.opaque = this;
  format.io_open = &Gate::on_open;
}

int Gate::refuse(const std::string& reason) {
  interrupt_.refuse(reason);
  return AVERROR(EACCES);
}

int Gate::on_open(AVFormatContext* format, AVIOContext** io, const char* url, int flags,
                  AVDictionary** options) {
  try {
    return static_cast<Gate*>(format->opaque)->open(*format, io, url, flags, options);
  } catch (const std::bad_alloc&) {
    return AVERROR(ENOMEM);
  }
}

int Gate::open(AVFormatContext& format, AVIOContext** io, const std::string& url, int flags,
               AVDictionary** options) {
  // Pictures are opened again for each look at them.
  const bool itself = !std::exchange(opened_, true) || url == base_;
  if (!itself && !playlists_) {
    return refuse("it names another source, which is not opened: " + base::mask_credentials(url));
  }
  if (!itself && !same_origin(url, base_)) {
    return refuse("its playlist names another server, which is not asked: " + base::mask_credentials(url));
  }
  std::string target = url;
  for (int redirects = 0;; ++redirects) {
    Dictionary entries;
    if (options != nullptr) entries.add(*options);
    // FFmpeg would follow them anywhere.
    const Scheme* const scheme = known_scheme(target);
    if (scheme != nullptr && scheme->kind == Scheme::Kind::http) entries.set("max_redirects", "0");
    set_tls_options(entries, target, tls_);
    static_cast<void>(LogCapture::take_location());
    const int code = open_(&format, io, target.c_str(), flags, entries.address());
    const std::string location = LogCapture::take_location();
    if (code >= 0 || location.empty()) {
      if (itself) base_ = std::move(target);
      if (options != nullptr) entries.swap(*options);
      return code;
    }
    const std::optional<std::string> next = redirected(target, location);
    if (!next) {
      return refuse("the server redirects to another one, which is not asked: " +
                    base::mask_credentials(location));
    }
    if (redirects == kMostRedirects) return refuse("the server redirects for ever");
    target = *next;
  }
}

void Gate::on_rtsp_redirect(AVFormatContext& format) noexcept {
  if (format.io_open != &Gate::on_open || format.url == nullptr) return;
  Gate& gate = *static_cast<Gate*>(format.opaque);
  try {
    if (same_origin(format.url, gate.base_)) return;
    gate.refuse("the server redirects to another one, which is not asked: " +
                base::mask_credentials(format.url));
  } catch (const std::bad_alloc&) {
    // Nobody can tell where it leads, so it is not followed; FFmpeg gives a reason of its own.
  }
  // So it is not even connected to. (In place: FFmpeg's log has no way to hear of memory that is out.)
  if (format.protocol_whitelist != nullptr) *format.protocol_whitelist = '\0';
}

}  // namespace vigil::media
