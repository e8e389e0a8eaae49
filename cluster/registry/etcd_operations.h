// What gRPC works on for the calls of etcd. Of etcd_channel.cpp alone: gRPC's headers are many.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include <etcd_rpc.grpc.pb.h>
#include <grpcpp/grpcpp.h>

#include "cluster/registry/etcd_channel.h"

namespace vigil::cluster::etcd {

namespace pb = ::etcdserverpb;

inline EtcdStatus status_of(const grpc::Status& status) {
  return {static_cast<int>(status.error_code()), status.error_message()};
}

inline RegistryHeader header_of(const pb::ResponseHeader& header) {
  return {.cluster = header.cluster_id(), .revision = header.revision()};
}

inline RegistryEntry entry_of(const mvccpb::KeyValue& found) {
  return {.key = found.key(),
          .value = found.value(),
          .created = found.create_revision(),
          .modified = found.mod_revision(),
          .lease = found.lease()};
}

/// Something that gRPC works on, which is its tag, one at a time. Owns itself until it is over.
class Operation {
 public:
  virtual ~Operation() = default;
  /// False when it is over.
  virtual bool proceed(bool ok) = 0;
  virtual void cancel() = 0;
};

template <class Request, class Response>
class Unary final : public Operation {
 public:
  bool proceed(bool /*ok*/) override {
    if (done) done(status_of(status), response);
    return false;
  }
  void cancel() override {
    done = nullptr;
    context.TryCancel();
  }

  grpc::ClientContext context;
  Request request;
  Response response;
  grpc::Status status;
  std::unique_ptr<grpc::ClientAsyncResponseReader<Response>> reader;
  std::function<void(const EtcdStatus&, const Response&)> done;
};

/// A stream of which one message is wanted.
class KeepAlive final : public Operation {
 public:
  using Stream = grpc::ClientAsyncReaderWriter<pb::LeaseKeepAliveRequest, pb::LeaseKeepAliveResponse>;

  bool proceed(bool ok) override {
    switch (step_) {
      case Step::begin:
        if (!ok) return finish();
        step_ = Step::write;
        stream->WriteLast(request, grpc::WriteOptions(), this);
        return true;
      case Step::write:
        if (!ok) return finish();
        step_ = Step::read;
        stream->Read(&response, this);
        return true;
      case Step::read:
        got_ = ok;
        // What else may come is not waited for.
        if (ok) context.TryCancel();
        return finish();
      case Step::finish:
        if (done) done(got_ ? EtcdStatus() : status_of(status_), response);
        return false;
    }
    return false;
  }
  void cancel() override {
    done = nullptr;
    context.TryCancel();
  }

  grpc::ClientContext context;
  pb::LeaseKeepAliveRequest request;
  pb::LeaseKeepAliveResponse response;
  std::unique_ptr<Stream> stream;
  std::function<void(const EtcdStatus&, const pb::LeaseKeepAliveResponse&)> done;

 private:
  enum class Step : std::uint8_t { begin, write, read, finish };

  bool finish() {
    step_ = Step::finish;
    stream->Finish(&status_, this);
    return true;
  }

  Step step_ = Step::begin;
  bool got_ = false;
  grpc::Status status_;
};

class WatchStream;

/// What a watch's stream and whoever holds it know of each other; either goes first.
struct WatchLink {
  std::function<void(EtcdNews)> seen;
  std::function<void(const EtcdStatus&)> ended;
  WatchStream* stream = nullptr;
  bool wanted = true;
};

class WatchStream final : public Operation {
 public:
  using Stream = grpc::ClientAsyncReaderWriter<pb::WatchRequest, pb::WatchResponse>;

  explicit WatchStream(std::shared_ptr<WatchLink> of) : link(std::move(of)) { link->stream = this; }
  ~WatchStream() override { link->stream = nullptr; }
  WatchStream(const WatchStream&) = delete;
  WatchStream& operator=(const WatchStream&) = delete;

  bool proceed(bool ok) override {
    if (step_ == Step::finish) {
      if (link->wanted) link->ended(status_of(status_));
      return false;
    }
    if (!ok) {
      step_ = Step::finish;
      stream->Finish(&status_, this);
      return true;
    }
    if (step_ == Step::begin) {
      step_ = Step::write;
      stream->Write(request, this);
      return true;
    }
    if (step_ == Step::read && link->wanted) link->seen(news());
    step_ = Step::read;
    response_.Clear();
    stream->Read(&response_, this);
    return true;
  }
  void cancel() override {
    link->wanted = false;
    context.TryCancel();
  }

  grpc::ClientContext context;
  pb::WatchRequest request;
  std::unique_ptr<Stream> stream;
  const std::shared_ptr<WatchLink> link;

 private:
  enum class Step : std::uint8_t { begin, write, read, finish };

  EtcdNews news() const {
    EtcdNews news{.news = {header_of(response_.header()), {}},
                  .created = response_.created(),
                  .cancelled = response_.canceled(),
                  .compacted = response_.compact_revision(),
                  .reason = response_.cancel_reason()};
    for (const mvccpb::Event& event : response_.events()) {
      if (event.type() == mvccpb::Event::DELETE)
        news.news.events.push_back(
            {.deleted = true,
             .entry = {.key = event.kv().key(), .value = {}, .modified = event.kv().mod_revision()}});
      else
        news.news.events.push_back({.deleted = false, .entry = entry_of(event.kv())});
    }
    return news;
  }

  Step step_ = Step::begin;
  pb::WatchResponse response_;
  grpc::Status status_;
};

class WatchHolder final : public EtcdStream {
 public:
  explicit WatchHolder(std::shared_ptr<WatchLink> link) : link_(std::move(link)) {}
  ~WatchHolder() override {
    if (link_->stream != nullptr) link_->stream->cancel();
  }
  WatchHolder(const WatchHolder&) = delete;
  WatchHolder& operator=(const WatchHolder&) = delete;

 private:
  const std::shared_ptr<WatchLink> link_;
};

}  // namespace vigil::cluster::etcd
