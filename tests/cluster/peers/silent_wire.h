// A wire between two ends on this machine that a test can cut, or stall as a cable that was pulled does.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>

namespace vigil::cluster::testing {

/// Passes the bytes of all connections on, from a port of its own to another of this machine.
class SilentWire {
 public:
  explicit SilentWire(std::uint16_t to) : to_(boost::asio::ip::address_v4::loopback(), to) {
    accept();
    thread_ = std::thread([this] { io_.run(); });
  }
  ~SilentWire() {
    io_.stop();
    thread_.join();
  }
  SilentWire(const SilentWire&) = delete;
  SilentWire& operator=(const SilentWire&) = delete;

  std::uint16_t port() const { return acceptor_.local_endpoint().port(); }

  /// Nothing passes any more, and nobody is told.
  void stall() { stalled_ = true; }

 private:
  using tcp = boost::asio::ip::tcp;

  struct Wire : std::enable_shared_from_this<Wire> {
    Wire(SilentWire& own, tcp::socket socket) : owner(own), near(std::move(socket)), far(own.io_) {
      far.connect(own.to_);
    }
    void start() {
      pass(near, far, there);
      pass(far, near, back);
    }
    void pass(tcp::socket& from, tcp::socket& to, std::array<char, 16384>& buffer) {
      from.async_read_some(boost::asio::buffer(buffer),
                           [self = shared_from_this(), &from, &to, &buffer](auto error, std::size_t bytes) {
                             if (self->owner.stalled_) return self->owner.held_.push_back(self);
                             boost::system::error_code gone;
                             if (!error) boost::asio::write(to, boost::asio::buffer(buffer, bytes), gone);
                             if (!error && !gone) return self->pass(from, to, buffer);
                             self->near.close(gone);
                             self->far.close(gone);
                           });
    }
    SilentWire& owner;
    tcp::socket near;
    tcp::socket far;
    std::array<char, 16384> there{};
    std::array<char, 16384> back{};
  };

  void accept() {
    acceptor_.async_accept([this](auto error, tcp::socket socket) {
      if (error) return;
      std::make_shared<Wire>(*this, std::move(socket))->start();
      accept();
    });
  }

  boost::asio::io_context io_{1};
  const tcp::endpoint to_;
  tcp::acceptor acceptor_{io_, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0)};
  std::atomic<bool> stalled_{false};
  std::vector<std::shared_ptr<Wire>> held_;
  std::thread thread_;
};

}  // namespace vigil::cluster::testing
