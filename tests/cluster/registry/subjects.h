// The registries that are compared: in memory, and a real etcd.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "cluster/registry/etcd_registry.h"
#include "cluster/registry/memory_registry.h"
#include "tests/cluster/registry/asking.h"
#include "tests/cluster/registry/etcd_server.h"

namespace vigil::cluster::testing {

/// Stands still until it is moved.
class StillClock final : public base::Clock {
 public:
  TimePoint now() const override { return now_; }
  WallTime wall() const override { return {}; }
  void move(base::Duration by) { now_ += by; }

 private:
  TimePoint now_{std::chrono::hours(1)};
};

/// A registry with what only its operator can do.
class Subject {
 public:
  virtual ~Subject() = default;
  virtual Registry& registry() = 0;
  /// Another client of the same registry.
  virtual std::unique_ptr<Registry> another() = 0;
  virtual void compact(Revision until) = 0;
  /// So that leases end that last so long; in reality they end by themselves.
  virtual void pass(base::Duration time) = 0;
  virtual void save() = 0;
  virtual void restore(bool other_cluster) = 0;
};

class MemorySubject final : public Subject {
 public:
  Registry& registry() override { return *registry_; }
  std::unique_ptr<Registry> another() override { return std::make_unique<MemoryRegistry>(store_, clock_); }
  void compact(Revision until) override { store_->compact(until); }
  void pass(base::Duration time) override {
    clock_.move(time);
    store_->expire();
  }
  void save() override { backup_ = store_->backup(); }
  void restore(bool other_cluster) override { store_->restore(backup_, other_cluster ? 2 : 1); }

 private:
  StillClock clock_;
  std::shared_ptr<MemoryStore> store_ = std::make_shared<MemoryStore>(clock_);
  std::unique_ptr<MemoryRegistry> registry_ = std::make_unique<MemoryRegistry>(store_, clock_);
  MemoryStore::Backup backup_;
};

class EtcdSubject final : public Subject {
 public:
  EtcdSubject() : registry_(another()) {}
  Registry& registry() override { return *registry_; }
  std::unique_ptr<Registry> another() override {
    return std::make_unique<EtcdRegistry>(EtcdRegistry::Options{
        .endpoints = {server_.endpoint()}, .plain_text = true, .time_limit = std::chrono::seconds(50)});
  }
  void compact(Revision until) override { server_.ctl("compact " + std::to_string(until)); }
  void pass(base::Duration) override {}
  void save() override { server_.save(folder_ / "backup"); }
  void restore(bool other_cluster) override {
    server_.kill();
    server_.restore(folder_ / "backup", other_cluster ? "another" : "etcd-cluster");
    server_.start();
  }

 private:
  const TemporaryFolder folder_;
  EtcdServer server_;
  std::unique_ptr<Registry> registry_;
};

}  // namespace vigil::cluster::testing
