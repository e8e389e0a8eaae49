#include "cluster/registry/etcd_channel.h"

#include <algorithm>
#include <csignal>
#include <limits>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

#include <etcd_rpc.grpc.pb.h>
#include <grpc/support/log.h>
#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include "cluster/registry/etcd_operations.h"

namespace vigil::cluster {
namespace {

namespace pb = ::etcdserverpb;
using etcd::entry_of;
using etcd::header_of;
using etcd::KeepAlive;
using etcd::Operation;
using etcd::Unary;
using etcd::WatchHolder;
using etcd::WatchLink;
using etcd::WatchStream;
using std::chrono::steady_clock;

gpr_timespec grpc_time(steady_clock::time_point until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - steady_clock::now());
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_millis(std::max<std::int64_t>(left.count(), 0), GPR_TIMESPAN));
}

/// The end of the keys that begin so; of all keys, as etcd writes it.
std::string end_of(std::string prefix) {
  while (!prefix.empty() && prefix.back() == '\xff') prefix.pop_back();
  if (prefix.empty()) return std::string(1, '\0');
  ++prefix.back();
  return prefix;
}

std::string begin_of(const std::string& prefix) {
  return prefix.empty() ? std::string(1, '\0') : prefix;
}

}  // namespace

class EtcdLoop::Impl {
 public:
  Impl() {
    // All that matters comes back as a status; the rest would go to stderr.
    gpr_set_log_function([](gpr_log_func_args*) {});
    thread_ = std::thread([this] { run(); });
  }
  ~Impl() { stop(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void post(std::function<void()> step) {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    steps_.push_back(std::move(step));
    wake();
  }

  void after(base::Duration delay, std::function<void()> step) {
    timers_.emplace(steady_clock::now() + delay, std::move(step));
  }

  void stop() {
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
      stopping_ = true;
      wake();
    }
    thread_.join();
    steps_.clear();
    timers_.clear();
  }

  /// Begins an operation by its first step.
  template <class Op, class Begin>
  void begin(std::unique_ptr<Op> operation, Begin begin) {
    if (given_up_) return;
    Op* const started = operation.release();
    live_.insert(started);
    begin(*started);
  }

  grpc::CompletionQueue& queue() { return queue_; }
  bool given_up() const { return given_up_; }

 private:
  void wake() {
    if (std::exchange(woken_, true)) return;
    alarm_.Set(&queue_, gpr_now(GPR_CLOCK_MONOTONIC), &alarm_);
  }

  void run() {
    // OpenSSL writes to connections that may be closed (`EtcdTls::why_not`).
    sigset_t broken_pipe;
    sigemptyset(&broken_pipe);
    sigaddset(&broken_pipe, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &broken_pipe, nullptr);
    bool more = true;
    while (more) {
      void* tag = nullptr;
      bool ok = false;
      const auto until =
          timers_.empty() ? gpr_inf_future(GPR_CLOCK_MONOTONIC) : grpc_time(timers_.begin()->first);
      switch (queue_.AsyncNext(&tag, &ok, until)) {
        case grpc::CompletionQueue::SHUTDOWN:
          more = false;
          break;
        case grpc::CompletionQueue::TIMEOUT:
          break;
        case grpc::CompletionQueue::GOT_EVENT:
          if (tag == &alarm_) {
            run_steps();
          } else if (auto* operation = static_cast<Operation*>(tag); !operation->proceed(ok)) {
            live_.erase(operation);
            delete operation;
            if (given_up_ && live_.empty()) queue_.Shutdown();
          }
      }
      if (!given_up_) run_timers();
    }
  }

  void run_steps() {
    std::vector<std::function<void()>> steps;
    bool stopping = false;
    {
      const std::lock_guard lock(mutex_);
      woken_ = false;
      std::swap(steps, steps_);
      stopping = stopping_;
    }
    if (stopping) {
      given_up_ = true;
      for (Operation* operation : live_) operation->cancel();
      if (live_.empty()) queue_.Shutdown();
      return;
    }
    for (const auto& step : steps) step();
  }

  void run_timers() {
    while (!timers_.empty() && timers_.begin()->first <= steady_clock::now()) {
      const std::function<void()> step = std::move(timers_.begin()->second);
      timers_.erase(timers_.begin());
      step();
    }
  }

  grpc::CompletionQueue queue_;
  grpc::Alarm alarm_;
  std::mutex mutex_;
  std::vector<std::function<void()>> steps_;
  bool woken_ = false;
  bool stopping_ = false;
  // Of the thread.
  bool given_up_ = false;
  std::multimap<steady_clock::time_point, std::function<void()>> timers_;
  std::unordered_set<Operation*> live_;
  std::thread thread_;
};

EtcdLoop::EtcdLoop() : impl_(std::make_unique<Impl>()) {}

EtcdLoop::~EtcdLoop() = default;

void EtcdLoop::post(std::function<void()> step) {
  impl_->post(std::move(step));
}

void EtcdLoop::after(base::Duration delay, std::function<void()> step) {
  impl_->after(delay, std::move(step));
}

void EtcdLoop::stop() {
  impl_->stop();
}

namespace {

int milliseconds(base::Duration time) {
  return static_cast<int>(std::min<base::Duration::rep>(time.count(), std::numeric_limits<int>::max()));
}

std::shared_ptr<grpc::Channel> channel_to(const std::string& endpoint, const EtcdTls::Material* tls,
                                          const EtcdChannel::Times& times) {
  grpc::ChannelArguments arguments;
  // Nothing of an earlier connection, such as its certificates or how long it waits, is that of a later one.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  // The addresses are the cluster's own; a proxy for the way out has no part in that.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // Without these, an attempt that comes to nothing lives on for 20 s, and gRPC's threads with it.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, milliseconds(times.connect));
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, milliseconds(times.connect));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, milliseconds(times.ping));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, milliseconds(times.ping));
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // How much a range holds is the fleet's business.
  arguments.SetMaxReceiveMessageSize(std::numeric_limits<int>::max());
  if (tls == nullptr)
    return grpc::CreateCustomChannel(endpoint, grpc::InsecureChannelCredentials(), arguments);
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = tls->ca;
  options.pem_cert_chain = tls->cert;
  options.pem_private_key = tls->key;
  return grpc::CreateCustomChannel(endpoint, grpc::SslCredentials(options), arguments);
}

}  // namespace

struct EtcdChannel::Impl {
  template <class Operation>
  void prepare(Operation& operation, TimePoint until) const {
    operation.context.set_deadline(grpc_time(until));
    if (!token.empty()) operation.context.AddMetadata("token", token);
  }

  /// `begin` is one of the stubs' PrepareAsync functions, `convert` makes the answer.
  template <class Stub, class Request, class Response, class T, class Convert>
  void call(Stub& stub,
            std::unique_ptr<grpc::ClientAsyncResponseReader<Response>> (Stub::*begin)(grpc::ClientContext*,
                                                                                      const Request&,
                                                                                      grpc::CompletionQueue*),
            Request request, TimePoint until, Done<T> done, const Convert& convert,
            bool needs_leader = false) {
    auto operation = std::make_unique<Unary<Request, Response>>();
    prepare(*operation, until);
    if (needs_leader) operation->context.AddMetadata("hasleader", "true");
    operation->request = std::move(request);
    operation->done = [done = std::move(done), convert](const EtcdStatus& status, const Response& response) {
      done(status, convert(response));
    };
    loop.begin(std::move(operation), [&](Unary<Request, Response>& started) {
      started.reader = (stub.*begin)(&started.context, started.request, &loop.queue());
      started.reader->StartCall();
      started.reader->Finish(&started.response, &started.status, &started);
    });
  }

  EtcdLoop::Impl& loop;
  std::shared_ptr<grpc::Channel> channel;
  pb::KV::Stub kv{channel};
  pb::Watch::Stub watch{channel};
  pb::Lease::Stub lease{channel};
  pb::Auth::Stub auth{channel};
  std::string token = {};
};

EtcdChannel::EtcdChannel(EtcdLoop& loop, const std::string& endpoint, const EtcdTls::Material* tls,
                         const Times& times)
    : endpoint_(endpoint),
      impl_(std::make_shared<Impl>(Impl{*loop.impl_, channel_to(endpoint, tls, times)})) {}

EtcdChannel::~EtcdChannel() = default;

bool EtcdChannel::ready() const {
  return impl_->channel->GetState(false) == GRPC_CHANNEL_READY;
}

void EtcdChannel::hello(TimePoint until, Done<RegistryHeader> done) {
  pb::RangeRequest request;
  request.set_key(begin_of(""));
  request.set_count_only(true);
  impl_->call(
      impl_->kv, &pb::KV::Stub::PrepareAsyncRange, request, until, std::move(done),
      [](const pb::RangeResponse& response) { return header_of(response.header()); }, true);
}

void EtcdChannel::authenticate(const std::string& user, const std::string& password, TimePoint until,
                               Done<RegistryHeader> done) {
  pb::AuthenticateRequest request;
  request.set_name(user);
  request.set_password(password);
  impl_->token.clear();
  impl_->call(
      impl_->auth, &pb::Auth::Stub::PrepareAsyncAuthenticate, request, until, std::move(done),
      [impl = std::weak_ptr(impl_)](const pb::AuthenticateResponse& response) {
        if (const auto alive = impl.lock()) alive->token = response.token();
        return header_of(response.header());
      },
      true);
}

void EtcdChannel::range(const std::string& prefix, TimePoint until, Done<RegistryRange> done) {
  pb::RangeRequest request;
  request.set_key(begin_of(prefix));
  request.set_range_end(end_of(prefix));
  impl_->call(impl_->kv, &pb::KV::Stub::PrepareAsyncRange, request, until, std::move(done),
              [](const pb::RangeResponse& response) {
                RegistryRange range{header_of(response.header()), {}};
                for (const mvccpb::KeyValue& found : response.kvs()) range.entries.push_back(entry_of(found));
                return range;
              });
}

void EtcdChannel::commit(const RegistryTransaction& transaction, TimePoint until, Done<RegistryCommit> done) {
  pb::TxnRequest request;
  for (const RegistryCondition& condition : transaction.conditions) {
    pb::Compare& compare = *request.add_compare();
    compare.set_result(pb::Compare::EQUAL);
    compare.set_target(pb::Compare::MOD);
    compare.set_key(condition.key);
    compare.set_mod_revision(condition.modified);
  }
  for (const RegistryChange& change : transaction.changes) {
    pb::RequestOp& operation = *request.add_success();
    if (const auto* put = std::get_if<RegistryPut>(&change)) {
      operation.mutable_request_put()->set_key(put->key);
      operation.mutable_request_put()->set_value(put->value);
      operation.mutable_request_put()->set_lease(put->lease);
    } else {
      operation.mutable_request_delete_range()->set_key(std::get<RegistryDelete>(change).key);
    }
  }
  impl_->call(impl_->kv, &pb::KV::Stub::PrepareAsyncTxn, std::move(request), until, std::move(done),
              [](const pb::TxnResponse& response) {
                return RegistryCommit{header_of(response.header()), response.succeeded()};
              });
}

void EtcdChannel::grant(std::chrono::seconds ttl, TimePoint until, Done<RegistryLease> done) {
  pb::LeaseGrantRequest request;
  request.set_ttl(ttl.count());
  impl_->call(impl_->lease, &pb::Lease::Stub::PrepareAsyncLeaseGrant, request, until, std::move(done),
              [](const pb::LeaseGrantResponse& response) {
                return RegistryLease{header_of(response.header()), response.id(),
                                     std::chrono::seconds(response.ttl())};
              });
}

void EtcdChannel::keep_alive(LeaseId lease, TimePoint until, Done<RegistryLease> done) {
  auto operation = std::make_unique<KeepAlive>();
  impl_->prepare(*operation, until);
  operation->request.set_id(lease);
  operation->done = [done = std::move(done)](const EtcdStatus& status,
                                             const pb::LeaseKeepAliveResponse& response) {
    done(status, {header_of(response.header()), response.id(), std::chrono::seconds(response.ttl())});
  };
  impl_->loop.begin(std::move(operation), [&](KeepAlive& started) {
    started.stream = impl_->lease.PrepareAsyncLeaseKeepAlive(&started.context, &impl_->loop.queue());
    started.stream->StartCall(&started);
  });
}

void EtcdChannel::revoke(LeaseId lease, TimePoint until, Done<RegistryHeader> done) {
  pb::LeaseRevokeRequest request;
  request.set_id(lease);
  impl_->call(impl_->lease, &pb::Lease::Stub::PrepareAsyncLeaseRevoke, request, until, std::move(done),
              [](const pb::LeaseRevokeResponse& response) { return header_of(response.header()); });
}

std::unique_ptr<EtcdStream> EtcdChannel::watch(const std::string& prefix, Revision from,
                                               std::function<void(EtcdNews)> seen,
                                               std::function<void(const EtcdStatus&)> ended) {
  auto link = std::make_shared<WatchLink>(WatchLink{.seen = std::move(seen), .ended = std::move(ended)});
  auto operation = std::make_unique<WatchStream>(link);
  if (!impl_->token.empty()) operation->context.AddMetadata("token", impl_->token);
  // One that was cut off from the others would be silent for ever.
  operation->context.AddMetadata("hasleader", "true");
  pb::WatchCreateRequest& create = *operation->request.mutable_create_request();
  create.set_key(begin_of(prefix));
  create.set_range_end(end_of(prefix));
  create.set_start_revision(from);
  impl_->loop.begin(std::move(operation), [&](WatchStream& started) {
    started.stream = impl_->watch.PrepareAsyncWatch(&started.context, &impl_->loop.queue());
    started.stream->StartCall(&started);
  });
  return std::make_unique<WatchHolder>(std::move(link));
}

}  // namespace vigil::cluster
