// Addresses of TCP: as ZeroMQ writes them, and what of them counts as one client.
#pragma once

#include <string>

#include <boost/asio/ip/tcp.hpp>

namespace vigil::cluster {

/// tcp://HOST:PORT; the host is an address, `*`, or an interface's name, the port a number or `*` (any free
/// one). Throws std::system_error.
boost::asio::ip::tcp::endpoint parse_tcp(const std::string& endpoint);

/// The same the other way, with the address in numbers.
std::string tcp_text(const boost::asio::ip::tcp::endpoint& endpoint);

/// What counts as one address, as bytes: who has one of IPv6 has all of its network of 64 bits. One of IPv4
/// is the same however it comes.
std::string network_of(const boost::asio::ip::address& address);

}  // namespace vigil::cluster
