#include "tests/fleet/sim/network.h"

#include <algorithm>

namespace vigil::fleet::sim {

Connection::Connection(Network& network, Host& dialer, Host& acceptor)
    : network_(network), number_(++network.numbers_) {
  sides_[0].host = &dialer;
  sides_[0].life = dialer.life;
  sides_[1].host = &acceptor;
  sides_[1].life = acceptor.life;
}

void Connection::own(int side, void* user, std::function<void()> closed) {
  sides_[index(side)].user = user;
  sides_[index(side)].closed = std::move(closed);
}

void Connection::send(int from, Parcel parcel) {
  if (!is_open(from) || !host(from).does(Point::message)) return;
  Side& to = sides_[index(1 - from)];
  if (network_.is_cut(host(from), *to.host)) {
    to.held.push_back(std::move(parcel));
    return;
  }
  deliver(1 - from, std::move(parcel));
}

void Connection::deliver(int to, Parcel parcel) {
  Side& side = sides_[index(to)];
  World& world = network_.world_;
  Micros arrival = world.now() + network_.latency(host(1 - to), *side.host);
  if (!network_.options_.reorders) arrival = std::max(arrival, side.last);
  side.last = arrival;
  if (side.life != side.host->life) return;
  world.at(arrival, side.host, [self = shared_from_this(), to, parcel = std::move(parcel)] {
    if (self->is_open(to)) parcel(self->sides_[index(to)].user);
  });
}

void Connection::close(int side) {
  if (!is_open(side)) return;
  send(side, [self = shared_from_this(), side](void*) { self->end(1 - side); });
  end(side);
}

void Connection::end(int side) {
  Side& own = sides_[index(side)];
  if (!std::exchange(own.open, false)) return;
  network_.world_.note(Kind::closed, own.host->id, host(1 - side).id, number_);
  own.held.clear();
  if (const auto closed = std::exchange(own.closed, nullptr); closed && own.life == own.host->life) closed();
}

void Connection::fall_silent(int to) {
  Side& side = sides_[index(to)];
  if (!side.open || side.silent || side.life != side.host->life) return;
  const Micros since = network_.world_.now();
  side.silent = since;
  network_.world_.after(network_.options_.silence, side.host, [self = shared_from_this(), to, since] {
    if (self->sides_[index(to)].silent == since) self->close(to);
  });
}

void Connection::speak_again(int to) {
  const Side& from = sides_[index(1 - to)];
  if (from.life != from.host->life) return;
  Side& side = sides_[index(to)];
  side.silent.reset();
  for (Parcel& parcel : std::exchange(side.held, {})) deliver(to, std::move(parcel));
}

Network::Network(World& world, Options options) : world_(world), options_(options) {
  world_.crashed = [this](Host& host, bool power_loss) { crashed(host, power_loss); };
  world_.frozen = [this](Host& host) {
    for_all([&](Connection& each, int to) {
      if (&each.host(1 - to) == &host) each.fall_silent(to);
    });
  };
  world_.thawed = [this](Host& host) {
    for_all([&](Connection& each, int to) {
      if (&each.host(1 - to) == &host && !is_cut(host, each.host(to))) each.speak_again(to);
    });
  };
}

template <class F>
void Network::for_all(F piece) {
  std::erase_if(connections_,
                [](const ConnectionPtr& each) { return !each->is_open(0) && !each->is_open(1); });
  const std::vector<ConnectionPtr> all = connections_;
  for (const ConnectionPtr& each : all)
    for (const int to : {0, 1}) piece(*each, to);
}

Micros Network::latency(const Host& from, const Host& to) {
  Micros time = world_.random.between(options_.least, options_.most);
  const auto way = ways_.find({from.id, to.id});
  if (way != ways_.end() && way->second.delay > Micros(0))
    time += world_.random.between(Micros(0), way->second.delay);
  return time;
}

bool Network::is_cut(const Host& from, const Host& to) const {
  const auto way = ways_.find({from.id, to.id});
  return way != ways_.end() && way->second.cuts > 0;
}

void Network::post(Host& from, Host& to, std::function<void()> run, Point point) {
  if (!from.does(point) || !to.up || is_cut(from, to)) return;
  world_.after(latency(from, to), &to, std::move(run));
}

void Network::stream(Host& from, Host& to, std::function<void()> run) {
  // What it sent before a crash goes on its way, unless the machine is gone, too.
  if (from.dying ? from.loses_power : !from.up) return;
  if (from.frozen) {
    from.held.emplace_back([this, &from, &to, run = std::move(run)] { stream(from, to, run); });
    return;
  }
  if (is_cut(from, to)) {
    ways_[{from.id, to.id}].held.push_back(std::move(run));
    return;
  }
  Micros arrival = world_.now() + latency(from, to);
  Way& way = ways_[{from.id, to.id}];
  if (!options_.reorders) arrival = std::max(arrival, way.last);
  way.last = arrival;
  world_.at(arrival, &to, std::move(run));
}

void Network::dial(Host& from, Host& to, std::function<void(ConnectionPtr)> done) {
  if (!from.does(Point::dial)) return;
  const auto answer = std::make_shared<std::function<void(ConnectionPtr)>>(std::move(done));
  const auto once = [answer](const ConnectionPtr& found) {
    if (!*answer) {
      // Given up meanwhile.
      if (found) found->close(0);
      return;
    }
    std::exchange(*answer, nullptr)(found);
  };
  world_.after(options_.dialing, &from, [once] { once(nullptr); });
  if (is_cut(from, to)) return;
  world_.after(latency(from, to), nullptr, [this, &from, &to, life = from.life, once] {
    const auto listener = listeners_.find(to.id);
    const bool is_there = to.up && !to.frozen && listener != listeners_.end() && listener->second;
    if (to.frozen || from.life != life || is_cut(to, from)) return;
    if (!is_there) {
      world_.after(latency(to, from), &from, [once] { once(nullptr); });
      return;
    }
    auto connection = std::make_shared<Connection>(*this, from, to);
    connections_.push_back(connection);
    world_.note(Kind::connected, from.id, to.id, connection->number());
    // On the acceptor's host, before anything can arrive on it.
    world_.after(Micros(0), &to, [this, &to, connection] {
      if (const auto& accept = listeners_[to.id]) accept(connection);
    });
    connection->sides_[0].last = world_.now() + latency(to, from);
    world_.at(connection->sides_[0].last, &from, [once, connection] { once(connection); });
  });
}

void Network::cut(Host& from, Host& to) {
  world_.note(Kind::cut, from.id, to.id);
  if (++ways_[{from.id, to.id}].cuts > 1) return;
  for_all([&](Connection& each, int end) {
    if (&each.host(1 - end) == &from && &each.host(end) == &to) each.fall_silent(end);
  });
}

void Network::mend(Host& from, Host& to) {
  world_.note(Kind::mend, from.id, to.id);
  Way& way = ways_[{from.id, to.id}];
  if (--way.cuts > 0) return;
  for (auto& run : std::exchange(way.held, {})) {
    way.last = std::max(world_.now() + latency(from, to), way.last);
    world_.at(way.last, &to, std::move(run));
  }
  for_all([&](Connection& each, int end) {
    if (&each.host(1 - end) == &from && &each.host(end) == &to && !from.frozen) each.speak_again(end);
  });
}

void Network::crashed(Host& host, bool power_loss) {
  listeners_[host.id] = nullptr;
  for_all([&](Connection& each, int to) {
    if (&each.host(1 - to) != &host || each.sides_[Connection::index(1 - to)].life == host.life) return;
    each.sides_[Connection::index(1 - to)].open = false;
    each.sides_[Connection::index(1 - to)].closed = nullptr;
    if (power_loss) return each.fall_silent(to);
    Connection::Side& side = each.sides_[Connection::index(to)];
    const auto told = [self = each.shared_from_this(), to](void*) { self->end(to); };
    // The kernel says it, after all that was sent.
    if (is_cut(host, *side.host)) {
      side.held.emplace_back(told);
      each.fall_silent(to);
    } else {
      each.deliver(to, told);
    }
  });
}

}  // namespace vigil::fleet::sim
