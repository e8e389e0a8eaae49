#include "cluster/http/http_client.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <functional>
#include <optional>
#include <system_error>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/verify_context.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

namespace vigil::cluster {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
namespace ssl = boost::asio::ssl;
using asio::ip::tcp;
using boost::system::error_code;

// The pages of a process with tens of thousands of cameras have tens of megabytes.
constexpr std::uint64_t kMostBody = std::uint64_t{256} << 20U;

struct Url {
  bool tls = false;
  std::string host;
  std::string port;
  std::string target;
  /// As the header `Host` names it.
  std::string authority;
};

[[noreturn]] void refuse(const std::string& url) {
  throw HttpUrlError(url + ": not an http:// or https:// address");
}

bool is_port(const std::string& text) {
  unsigned number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number > 0 && number <= 65'535;
}

Url parse_url(const std::string& url) {
  Url parsed;
  const std::size_t scheme = url.find("://");
  if (scheme == std::string::npos) refuse(url);
  parsed.tls = url.compare(0, scheme, "https") == 0;
  if (!parsed.tls && url.compare(0, scheme, "http") != 0) refuse(url);
  const std::size_t path = url.find_first_of("/?", scheme + 3);
  parsed.authority = url.substr(scheme + 3, path == std::string::npos ? path : path - scheme - 3);
  parsed.target = path == std::string::npos ? "/" : url.substr(path);
  if (parsed.target.front() == '?') parsed.target.insert(0, "/");
  // Not shown: what stands in front of the '@' may be a password.
  if (parsed.authority.find('@') != std::string::npos)
    throw HttpUrlError("an http:// or https:// address with a user in it, which is not supported");
  for (const char c : url)
    if (std::iscntrl(static_cast<unsigned char>(c)) != 0 || c == ' ') refuse("the given text");
  const std::size_t bracket = parsed.authority.rfind(']');
  const std::size_t colon = parsed.authority.rfind(':');
  const bool has_port = colon != std::string::npos && (bracket == std::string::npos || colon > bracket);
  parsed.host = parsed.authority.substr(0, has_port ? colon : std::string::npos);
  parsed.port = has_port ? parsed.authority.substr(colon + 1) : (parsed.tls ? "443" : "80");
  if (parsed.host.size() >= 2 && parsed.host.front() == '[' && parsed.host.back() == ']')
    parsed.host = parsed.host.substr(1, parsed.host.size() - 2);
  if (parsed.host.empty()) refuse(url);
  if (!is_port(parsed.port))
    throw HttpUrlError(url + ": a port is a number from 1 to 65535, not '" + parsed.port + "'");
  return parsed;
}

bool is_address(const std::string& host) {
  error_code error;
  asio::ip::make_address(host, error);
  return !error;
}

/// One GET, step by step, each within what is left of the time.
class Get {
 public:
  Get(const std::string& url, std::chrono::milliseconds timeout)
      : shown_(url),
        url_(parse_url(url)),
        timeout_(timeout),
        end_(std::chrono::steady_clock::now() + timeout) {}

  HttpResponse run(const HttpTrust& trust) {
    if (!url_.tls) {
      beast::tcp_stream stream(io_);
      connect(stream);
      return exchange(stream);
    }
    ssl::context context(ssl::context::tls_client);
    SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
    error_code error;
    if (trust.insecure) {
      context.set_verify_mode(ssl::verify_none);
    } else if (trust.ca_file.empty()) {
      context.set_default_verify_paths(error);
      context.set_verify_mode(ssl::verify_peer);
    } else {
      if (std::error_code none; !std::filesystem::exists(trust.ca_file, none))
        throw HttpError(trust.ca_file.string() + ": no such file");
      context.load_verify_file(trust.ca_file.string(), error);
      if (error) throw HttpError(trust.ca_file.string() + ": no certificates in PEM: " + error.message());
      context.set_verify_mode(ssl::verify_peer);
    }
    beast::ssl_stream<beast::tcp_stream> stream(io_, context);
    if (!trust.insecure) stream.set_verify_callback(name_check());
    if (!is_address(url_.host)) SSL_set_tlsext_host_name(stream.native_handle(), url_.host.c_str());
    connect(stream.next_layer());
    step([&](auto done) { stream.async_handshake(ssl::stream_base::client, done); },
         [&] { return distrust(SSL_get_verify_result(stream.native_handle()), trust); });
    return exchange(stream);
  }

 private:
  /// As Boost's, which leaves out of OpenSSL's verdict what it finds itself.
  std::function<bool(bool, ssl::verify_context&)> name_check() const {
    return [check = ssl::host_name_verification(url_.host),
            fault = is_address(url_.host) ? X509_V_ERR_IP_ADDRESS_MISMATCH : X509_V_ERR_HOSTNAME_MISMATCH](
               bool so_far, ssl::verify_context& context) {
      if (check(so_far, context)) return true;
      if (so_far) X509_STORE_CTX_set_error(context.native_handle(), fault);
      return false;
    };
  }

  /// Why a certificate is not believed; empty if that is not what is wrong.
  static std::string distrust(long verdict, const HttpTrust& trust) {
    if (verdict == X509_V_OK) return {};
    std::string reason = std::string(": ") + X509_verify_cert_error_string(verdict);
    constexpr std::array<long, 4> kIssuerUnknown = {
        X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
        X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN};
    if (std::find(kIssuerUnknown.begin(), kIssuerUnknown.end(), verdict) == kIssuerUnknown.end())
      return reason;
    return reason + (trust.ca_file.empty()
                         ? "; nobody known vouches for it: --ca-file FILE names its issuer's certificate"
                         : "; its issuer is not in " + trust.ca_file.string());
  }

  /// Runs one operation to its end. `start` is given what to call then; `more` says more of its failure.
  /// Throws HttpError.
  template <class Start, class More>
  void step(const Start& start, const More& more) {
    std::optional<error_code> outcome;
    start([&outcome](error_code error, auto&&...) { outcome = error; });
    io_.restart();
    io_.run_until(end_);
    if (!outcome || *outcome == beast::error::timeout)
      fail_to_reach("no answer within " + std::to_string(timeout_.count()) + " ms");
    if (*outcome == http::error::end_of_stream || *outcome == http::error::partial_message)
      fail("the connection was closed before the answer was complete");
    if (*outcome == asio::error::connection_refused || *outcome == asio::error::host_unreachable ||
        *outcome == asio::error::network_unreachable)
      fail_to_reach(outcome->message());
    if (*outcome) fail(outcome->message() + more());
  }
  template <class Start>
  void step(const Start& start) {
    step(start, [] { return std::string(); });
  }

  [[noreturn]] void fail_to_reach(const std::string& reason) const {
    throw HttpUnreachable(shown_ + ": " + reason);
  }
  [[noreturn]] void fail(const std::string& reason) const { throw HttpError(shown_ + ": " + reason); }

  void connect(beast::tcp_stream& stream) {
    tcp::resolver resolver(io_);
    tcp::resolver::results_type found;
    std::optional<error_code> outcome;
    resolver.async_resolve(url_.host, url_.port, [&](error_code error, tcp::resolver::results_type results) {
      outcome = error;
      found = std::move(results);
    });
    io_.run_until(end_);
    if (!outcome) fail_to_reach("no address within " + std::to_string(timeout_.count()) + " ms");
    if (*outcome) fail_to_reach(outcome->message());
    stream.expires_at(end_);
    step([&](auto done) { stream.async_connect(found, done); });
  }

  template <class Stream>
  HttpResponse exchange(Stream& stream) {
    http::request<http::empty_body> request(http::verb::get, url_.target, 11);
    request.set(http::field::host, url_.authority);
    request.set(http::field::user_agent, "vigil");
    request.keep_alive(false);
    step([&](auto done) { http::async_write(stream, request, done); });
    beast::flat_buffer buffer;
    http::response_parser<http::string_body> parser;
    parser.body_limit(kMostBody);
    step([&](auto done) { http::async_read(stream, buffer, parser, done); });
    auto& answer = parser.get();
    return {static_cast<int>(answer.result_int()), std::string(answer[http::field::content_type]),
            std::move(answer.body())};
  }

  const std::string shown_;
  const Url url_;
  const std::chrono::milliseconds timeout_;
  const std::chrono::steady_clock::time_point end_;
  asio::io_context io_{1};
};

}  // namespace

std::string url_of(std::string server, std::string_view path) {
  server.resize(server.find_last_not_of('/') + 1);
  return server.append(path);
}

HttpResponse http_get(const std::string& url, std::chrono::milliseconds timeout, const HttpTrust& trust) {
  return Get(url, timeout).run(trust);
}

}  // namespace vigil::cluster
