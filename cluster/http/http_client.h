// The client of HTTP that reads what a running process tells.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>

#include "cluster/http/http.h"

namespace vigil::cluster {

/// Nobody answers there: nothing listens, or it is silent.
class HttpUnreachable : public HttpError {
 public:
  using HttpError::HttpError;
};

/// What is asked for is no URL that could be asked; no password of it is shown.
class HttpUrlError : public HttpError {
 public:
  using HttpError::HttpError;
};

/// Whom an https:// client believes: who has a certificate for the name or address that was asked for, issued
/// by one of `ca_file`, or of the system's issuers if that is empty.
struct HttpTrust {
  std::filesystem::path ca_file;
  /// Believe everybody.
  bool insecure = false;
};

/// The URL of an absolute path on a server, whether or not the server's own address ends with slashes.
std::string url_of(std::string server, std::string_view path);

/// GET of an http:// or https:// URL. Throws HttpUnreachable if there is no connection or no answer within
/// `timeout`, HttpUrlError for another text, and HttpError if there is none for another reason; an answer of
/// any status is returned. Redirects are not followed.
HttpResponse http_get(const std::string& url, std::chrono::milliseconds timeout, const HttpTrust& trust = {});

}  // namespace vigil::cluster
