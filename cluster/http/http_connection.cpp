#include "cluster/http/http_connection.h"

#include <array>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/ssl/stream_base.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>

namespace vigil::cluster {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;

using PlainStream = beast::tcp_stream;
using TlsStream = beast::ssl_stream<beast::tcp_stream>;

// What is read ahead of a request's end at most, beside its header.
constexpr std::size_t kReadAhead = 4096;
constexpr std::size_t kFirstRead = 1024;
// How long what a client still sends is read after an answer that ends the connection. Without reading it,
// the answer could be lost to the client.
constexpr auto kLinger = std::chrono::seconds(1);

template <class Stream>
class Connection final : public HttpConnection, public std::enable_shared_from_this<Connection<Stream>> {
 public:
  template <class... Tls>
  Connection(HttpHost& host, ConnectionBook::Id id, asio::ip::tcp::socket socket, Tls&... tls)
      : host_(host),
        id_(id),
        stream_(std::move(socket), tls...),
        buffer_(host.limits().header + kReadAhead) {}
  ~Connection() override { host_.left(id_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void start() override {
    if constexpr (std::is_same_v<Stream, TlsStream>) {
      lowest().expires_after(host_.limits().handshake);
      stream_.async_handshake(asio::ssl::stream_base::server, [self = self()](error_code error) {
        if (!error) self->await_request(self->host_.limits().request);
      });
    } else {
      await_request(host_.limits().request);
    }
  }

  void drop() override { lowest().close(); }

 private:
  std::shared_ptr<Connection> self() { return this->shared_from_this(); }
  beast::tcp_stream& lowest() { return beast::get_lowest_layer(stream_); }

  void await_request(std::chrono::milliseconds patience) {
    if (buffer_.size() > 0) return read_header();
    lowest().expires_after(patience);
    stream_.async_read_some(buffer_.prepare(kFirstRead),
                            [self = self()](error_code error, std::size_t bytes) {
                              if (error) return;
                              self->buffer_.commit(bytes);
                              self->read_header();
                            });
  }

  void read_header() {
    // One deadline for all of the request: its header, and its body if it has one.
    lowest().expires_after(host_.limits().request);
    parser_.emplace();
    parser_->header_limit(host_.limits().header);
    // What a body may have is known when its route is.
    parser_->body_limit(std::numeric_limits<std::uint64_t>::max());
    http::async_read_header(stream_, buffer_, *parser_,
                            [self = self()](error_code error, std::size_t) { self->take_header(error); });
  }

  void take_header(error_code error) {
    if (error) return refuse_unreadable(error);
    const auto& head = parser_->get();
    version_ = head.version();
    keep_ = head.keep_alive();
    only_head_ = head.method() == http::verb::head;
    if (version_ >= 11 && head.find(http::field::host) == head.end()) return refuse(400);
    const auto target = parse_target({head.target().data(), head.target().size()});
    if (!target) return refuse(400);
    const bool has_body = parser_->chunked() || parser_->content_length().value_or(0) > 0;
    const HttpRouter::Match match =
        host_.router().find({head.method_string().data(), head.method_string().size()}, target->path);
    if (!match.route) {
      // What is not read now would be taken for the next request.
      keep_ = keep_ && !has_body;
      return refuse(match.status, match.allow);
    }
    const std::size_t most = host_.router().route(*match.route).max_body;
    if (has_body && (most == 0 || parser_->content_length().value_or(0) > most)) {
      keep_ = false;
      return refuse(413);
    }
    route_ = *match.route;
    request_ = HttpRequest{std::string(head.method_string()), target->path, target->query, {}, {}};
    for (const auto& field : head)
      request_.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
    if (!has_body) return answer();
    parser_->body_limit(most);
    if (beast::iequals(head[http::field::expect], "100-continue")) return ask_for_body();
    read_body();
  }

  void ask_for_body() {
    static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    asio::async_write(stream_, asio::buffer(kContinue.data(), kContinue.size()),
                      [self = self()](error_code error, std::size_t) {
                        if (!error) self->read_body();
                      });
  }

  void read_body() {
    http::async_read(stream_, buffer_, *parser_, [self = self()](error_code error, std::size_t) {
      if (error) return self->refuse_unreadable(error);
      self->request_.body = std::move(self->parser_->get().body());
      self->answer();
    });
  }

  void answer() {
    host_.touched(id_);
    // What computes the answer bounds its time.
    lowest().expires_never();
    host_.answer(route_, std::move(request_),
                 [self = self()](HttpAnswer made) { self->write(std::move(made), ""); });
  }

  void refuse_unreadable(error_code error) {
    keep_ = false;
    only_head_ = false;
    if (error == http::error::header_limit || error == http::error::buffer_overflow) return refuse(431);
    if (error == http::error::body_limit) return refuse(413);
    const bool ended = error == http::error::end_of_stream || error == http::error::partial_message;
    if (!ended && error.category() == make_error_code(http::error::bad_method).category()) refuse(400);
  }

  void refuse(int status, const std::string& allow = "") {
    // Where what was not understood ends, nobody knows.
    if (status == 400) keep_ = false;
    const std::string reason(http::obsolete_reason(static_cast<http::status>(status)));
    write(std::make_shared<const HttpResponse>(
              HttpResponse{.status = status, .body = std::to_string(status) + ' ' + reason + '\n'}),
          allow);
  }

  void write(HttpAnswer made, const std::string& allow) {
    answer_ = std::move(made);
    response_ = {};
    response_.version(version_);
    response_.result(static_cast<unsigned>(answer_->status));
    response_.set(http::field::content_type, answer_->content_type);
    response_.set(http::field::cache_control, "no-store");
    response_.set("X-Content-Type-Options", "nosniff");
    response_.set(http::field::accept_ranges, "none");
    if (!allow.empty()) response_.set(http::field::allow, allow);
    response_.keep_alive(keep_);
    response_.content_length(answer_->body.size());
    response_.body() = {answer_->body.data(), answer_->body.size()};
    serializer_.emplace(response_);
    lowest().expires_after(host_.limits().write);
    const auto done = [self = self()](error_code error, std::size_t) { self->written(error); };
    if (only_head_) {
      http::async_write_header(stream_, *serializer_, done);
    } else {
      http::async_write(stream_, *serializer_, done);
    }
  }

  void written(error_code error) {
    serializer_.reset();
    answer_.reset();
    if (error) return;
    host_.touched(id_);
    if (keep_) return await_request(host_.limits().idle);
    lowest().expires_after(kLinger);
    if constexpr (std::is_same_v<Stream, TlsStream>) {
      stream_.async_shutdown([self = self()](error_code) {});
    } else {
      error_code gone;
      stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, gone);
      if (!gone) linger();
    }
  }

  void linger() {
    buffer_.clear();
    lowest().async_read_some(buffer_.prepare(kReadAhead), [self = self()](error_code error, std::size_t) {
      if (!error) self->linger();
    });
  }

  HttpHost& host_;
  const ConnectionBook::Id id_;
  Stream stream_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  HttpRequest request_;
  std::size_t route_ = 0;
  unsigned version_ = 11;
  bool keep_ = false;
  bool only_head_ = false;
  /// Keeps the body that `response_` refers to.
  HttpAnswer answer_;
  http::response<http::span_body<const char>> response_;
  std::optional<http::response_serializer<http::span_body<const char>>> serializer_;
};

}  // namespace

std::shared_ptr<HttpConnection> make_connection(asio::ip::tcp::socket socket, HttpHost& host,
                                                ConnectionBook::Id id) {
  return std::make_shared<Connection<PlainStream>>(host, id, std::move(socket));
}

std::shared_ptr<HttpConnection> make_connection(asio::ip::tcp::socket socket, asio::ssl::context& tls,
                                                HttpHost& host, ConnectionBook::Id id) {
  return std::make_shared<Connection<TlsStream>>(host, id, std::move(socket), tls);
}

}  // namespace vigil::cluster
