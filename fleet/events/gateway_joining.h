// How a gateway that comes gets what it lacks, until it serves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/duration.h"
#include "fleet/events/first_promise.h"
#include "fleet/events/gateway_desk.h"

namespace vigil::fleet {

/// Asks the others who serves. If nobody does, the one whose record is the oldest says who is the first: one
/// that served until the end, without which none of the others went on, so that it has whatever was
/// published. Of those that have an outbox: without one that has none the next one decides after a while, by
/// the word of all (`FirstPromise`), so that no two do. Otherwise it follows one that serves: compares what
/// both have (or begins with nothing, if damage has taken some of its own), reads what it lacks, is admitted
/// by all, copies what is staged, and reads what was committed meanwhile. By requests between nodes and not
/// by the topics' replay: they have the nodes' certificates and need no keys of subscribers, and tenures and
/// staged events, which no subscriber may see, have to come in one order with the events. Not thread-safe.
class GatewayJoining {
 public:
  struct Options {
    std::string name;
    /// Another one with each call, without spaces; in the order of texts behind those before it, of former
    /// runs, too, as far as the time of day tells, and behind `after`.
    std::function<std::string(const std::string& after)> token;
    /// Until what did not work is tried again.
    base::Duration pause{300};
    /// How long it waits to be admitted by all, while those that have admitted it count on it.
    base::Duration patience{15'000};
    /// How long the first waits for those beside which it served last, and that may have gone on without it;
    /// or for whomever, if it has events and does not know of such a time.
    base::Duration absence{10'000};
    /// How long one is waited for that says that it has no outbox.
    base::Duration unreadable{10'000};
  };

  /// All have to outlive it. `promise`: of the one before it in this process.
  GatewayJoining(Options options, GatewayDesk& desk, const base::Clock& clock, FirstPromise promise = {});

  const FirstPromise& promise() const { return promise_; }

  /// Tells the desk, too.
  void see(const GatewayView& view);

  struct Ask {
    std::string to;
    PeerQuestion question;
  };
  /// Questions that are to be sent now. Each is answered by `heard` or `failed`.
  std::vector<Ask> take_asks();
  void heard(const std::string& from, const PeerAnswer& answer);
  void failed(const std::string& from, std::uint64_t number);

  /// What another gateway asks this one.
  PeerAnswer answer(const PeerQuestion& question);

  /// What is here and what serves have parted, or some of what was here is lost: the outbox has to be
  /// replaced by an empty one, with a desk and a joining of its own.
  bool wants_empty_outbox() const { return step_ == Step::parted; }

  /// Why it does not serve, in words; empty if it does.
  std::string trouble() const;

  /// Events that others have and this one lacks, as far as they told; 0 once it serves.
  std::uint64_t behind() const;

 private:
  enum class Step : std::uint8_t {
    looking,
    comparing,
    listing,
    reading,
    admission,
    finishing,
    parted,
    serving
  };

  void look_again(const std::string& why);
  void decide();
  /// Who has whatever was published, as far as it can be told, once all were heard.
  std::string best() const;
  /// Behind all that it had, by its own word or by another's, whatever the clock says.
  std::string next_token() const;
  /// Whether it waits for another one that may have what the first has not.
  bool waits_for_one_beside(const std::string& first);
  void serve_first();
  void follow(const std::string& source, std::uint64_t newest);
  /// What is to be asked next of whom, if anything.
  std::optional<PeerQuestion> next_for(const std::string& peer);
  void compared(const PeerAnswer& answer);
  void listed(const PeerAnswer& answer);
  void admitted(const std::string& from, const PeerAnswer& answer);
  void copied(const std::string& from, const PeerAnswer& answer);
  void inherit(const PeerAnswer& answer);
  /// When the oldest record was put, of those that are not passed over.
  std::uint64_t oldest() const;
  /// Whether this one says who is the first, if nobody has its word.
  bool decides() const;
  void lacks_outbox(const std::string& peer, const PeerQuestion& asked);
  void next_places();
  void check_admissions();
  /// Of what was committed while it was admitted, if it is too much or too slow.
  std::string what_is_left() const;
  /// All that have to admit it: those that hold a lease, and those that have been named, then with the token.
  std::map<std::string, std::string> wanted_admissions() const;

  /// By another one, while it had this token.
  struct Admission {
    std::string token;
    GatewayMode mode = GatewayMode::away;
    bool copied = false;
    std::string text;
    /// Whom it named last.
    std::vector<GatewayTenure> peers;
  };
  struct Lane {
    std::optional<PeerQuestion> asked;
    base::Clock::TimePoint again{};
  };

  const Options options_;
  GatewayDesk& desk_;
  const base::Clock& clock_;
  Step step_ = Step::looking;
  std::uint64_t numbers_ = 0;
  /// What it asks with while it has no token: whoever has admitted it with a former one forgets that.
  std::string attempt_;
  base::Clock::TimePoint joined_{};
  std::map<std::string, Lane> lanes_;
  /// How many events others have, as they told last.
  std::map<std::string, std::uint64_t> others_have_;
  /// Of this round of looking.
  std::map<std::string, PeerAnswer> states_;
  /// Whom this one, as the oldest, has told to be the first: no other one, as long as that is there.
  std::string nominee_, nominee_born_;
  /// Since when those that hold a lease say that they have no outbox that can be read.
  std::map<std::string, base::Clock::TimePoint> refuse_since_;
  /// Since when nobody but one that is not there keeps the first from serving.
  std::optional<base::Clock::TimePoint> absent_since_;
  /// Those of them that are not waited for any more, with their `born`.
  std::map<std::string, std::string> passed_;
  FirstPromise promise_;
  /// For whom it waits.
  std::string missing_;
  /// The one that it follows.
  std::string source_, source_born_, source_token_;
  std::vector<EventPoint> places_;
  std::string topic_;
  /// Behind this position of the source's something is lacking.
  std::uint64_t cursor_ = 0;
  std::map<std::string, Admission> admissions_;
  /// Of the source, when all was copied.
  std::uint64_t until_ = 0;
  std::string trouble_ = "it has asked nobody yet";
};

}  // namespace vigil::fleet
