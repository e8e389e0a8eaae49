#include "actors/status/memory_series.h"

#include <string>

#include "actors/status/families.h"

namespace vigil::actors {
namespace {

constexpr std::array<std::string_view, 7> kOutcomes{"answered",    "progress", "bad_request", "forbidden",
                                                    "unavailable", "busy",     "too_late"};

std::string name_of(PastOutcome outcome) {
  return std::string(kOutcomes[static_cast<std::size_t>(outcome)]);
}

prometheus::Family<prometheus::Counter>& questions_of(Metrics& metrics) {
  return counter(*metrics.registry(), "vigil_past_questions_total",
                 "Questions about the past, by what came of them");
}

}  // namespace

AskSeries::AskSeries(Metrics& metrics)
    : busy_(questions_of(metrics).Add({{"outcome", name_of(PastOutcome::busy)}})),
      too_late_(questions_of(metrics).Add({{"outcome", name_of(PastOutcome::too_late)}})) {}

MemorySeries::MemorySeries(Metrics& metrics)
    : bytes_(gauge(*metrics.registry(), "vigil_memory_bytes",
                   "Pages of what cameras remember, by tier; waiting: on their way to the disk")),
      host_(bytes_.Add({{"tier", "host"}})),
      waiting_(bytes_.Add({{"tier", "waiting"}})),
      budget_(gauge(*metrics.registry(), "vigil_memory_budget_bytes", "What a tier may have at most")
                  .Add({{"tier", "host"}})),
      pages_(counter(*metrics.registry(), "vigil_memory_pages_total",
                     "Pages that left windows, by whether they are remembered, or why not")),
      kept_(pages_.Add({{"outcome", "kept"}})),
      unwritten_(counter(*metrics.registry(), "vigil_memory_unwritten_pages_total",
                         "Pages that the host has alone, since the disk was too far behind to take them")
                     .Add({})),
      written_(counter(*metrics.registry(), "vigil_memory_written_bytes_total",
                       "Bytes of pages that were written to the disk")
                   .Add({})),
      removed_(counter(*metrics.registry(), "vigil_memory_removed_bytes_total",
                       "Bytes of pages that were removed from the disk, since their time was over")
                   .Add({})),
      failures_(counter(*metrics.registry(), "vigil_memory_write_failures_total",
                        "Parts of a camera's past that the disk did not take")
                    .Add({})),
      questions_(questions_of(metrics)),
      seconds_(prometheus::BuildHistogram()
                   .Name("vigil_past_question_seconds")
                   .Help("From a question about the past until its answer")
                   .Register(*metrics.registry())
                   .Add({}, prometheus::Histogram::BucketBoundaries{0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60, 120,
                                                                    300, 600})),
      erasures_(counter(*metrics.registry(), "vigil_past_erasures_total",
                        "Erasures of what cameras remember that were asked for and done")
                    .Add({})),
      read_(counter(*metrics.registry(), "vigil_past_read_bytes_total",
                    "Bytes of pages that questions about the past have read, by tier")),
      read_host_(read_.Add({{"tier", "host"}})),
      read_disk_(read_.Add({{"tier", "disk"}})) {
  for (std::size_t why = 0; why < lost_.size(); ++why)
    lost_[why] = &pages_.Add({{"outcome", std::string(memory::kGapNames[why])}});
  for (const PastOutcome each : {PastOutcome::answer, PastOutcome::unavailable, PastOutcome::bad_request})
    questions_.Add({{"outcome", name_of(each)}});
}

void MemorySeries::usage(const Usage& usage) {
  host_.Set(static_cast<double>(usage.host_bytes));
  budget_.Set(static_cast<double>(usage.host_budget));
  waiting_.Set(static_cast<double>(usage.waiting_bytes));
}

void MemorySeries::lost(memory::Gap why, std::uint64_t pages) {
  lost_[static_cast<std::size_t>(why)]->Increment(static_cast<double>(pages));
}

void MemorySeries::question(PastOutcome outcome, double seconds) {
  if (outcome == PastOutcome::too_late) return;
  questions_.Add({{"outcome", name_of(outcome)}}).Increment();
  if (outcome == PastOutcome::answer) seconds_.Observe(seconds);
}

void MemorySeries::read(std::uint64_t host_bytes, std::uint64_t disk_bytes) {
  read_host_.Increment(static_cast<double>(host_bytes));
  read_disk_.Increment(static_cast<double>(disk_bytes));
}

}  // namespace vigil::actors
