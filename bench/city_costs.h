// What the parts of a city's control plane take, of which `vigil bench city` makes its time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "bench/virtual_thread.h"

namespace vigil::bench {

/// docs/scale.md says where each comes from. Times are of one operation.
struct CityCosts {
  /// From one machine to another.
  Nanoseconds way = std::chrono::microseconds(500);

  // A server of etcd. One sync of its log takes all writes that wait; the rest is processor time of each.
  Nanoseconds etcd_sync = std::chrono::milliseconds(2);
  Nanoseconds etcd_write = std::chrono::microseconds(160);
  Nanoseconds etcd_keep_alive = std::chrono::microseconds(105);
  Nanoseconds etcd_read = std::chrono::microseconds(100);
  Nanoseconds etcd_entry = std::chrono::nanoseconds(2400);
  Nanoseconds etcd_event = std::chrono::microseconds(9);
  /// Of a byte that is written, read or sent, in nanoseconds.
  double etcd_byte = 4;
  /// Cores that each server has for these, and servers; every client talks to one of them.
  double etcd_cores = 4;
  std::size_t etcd_servers = 3;
  /// Of a connection of a client, at the server, and of each watch that it begins there.
  Nanoseconds etcd_connect = std::chrono::microseconds(1500);
  Nanoseconds etcd_watch = std::chrono::microseconds(100);

  // A node: reading a byte of a record or a plan, and what follows from an event, whatever its size.
  double parse_byte = 19;
  Nanoseconds node_event = std::chrono::microseconds(20);
  // The planner, of a planning: for each camera, and for each of the plans that it writes.
  Nanoseconds plan_camera = std::chrono::microseconds(10);
  Nanoseconds print_camera = std::chrono::microseconds(3);
  /// Of a greeting, on either side: a handshake of TLS 1.3 with certificates of both.
  Nanoseconds handshake = std::chrono::microseconds(1500);

  // A page of the fleet, at the gateway that shows it: for each node that answers, each camera of a plan that
  // has changed, and the page itself; and at each node, to answer.
  Nanoseconds status_answer = std::chrono::microseconds(20);
  Nanoseconds status_node = std::chrono::microseconds(20);
  Nanoseconds status_camera = std::chrono::nanoseconds(1400);
  Nanoseconds status_page = std::chrono::milliseconds(16);

  // A gateway's disk: a write of events, and each event of it.
  Nanoseconds gateway_write = std::chrono::microseconds(400);
  Nanoseconds gateway_event = std::chrono::microseconds(8);
  /// Of an event that goes to one subscriber.
  Nanoseconds publish = std::chrono::microseconds(5);
};

inline Nanoseconds of_bytes(double each, std::size_t bytes) {
  return Nanoseconds(static_cast<std::int64_t>(each * static_cast<double>(bytes)));
}

}  // namespace vigil::bench
