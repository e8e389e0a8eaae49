// What the shell around a camera does by itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/actors/pipeline.h"

namespace vigil::actors {
namespace {

using namespace testing;
using ::testing::HasSubstr;
using ::testing::Not;

using CameraActorTest = PipelineTest;

TEST_F(CameraActorTest, ACameraWhoseServerNobodyVerifiesIsNamedInTheLog) {
  const auto open = camera("open", config::Pace::realtime, "rtsps://10.0.0.1/live");
  open->stream.tls.insecure = true;
  const auto verified = camera("verified", config::Pace::realtime, "rtsps://10.0.0.2/live");
  verified->stream.tls.ca_file = "/etc/vigil/ca.pem";
  start({open, verified}, /*once=*/false);
  EXPECT_THAT(log_.str(), HasSubstr("[warning] open: `tls: {insecure: true}`: nobody verifies who answers"));
  EXPECT_THAT(log_.str(), Not(HasSubstr("verified: `tls")));
}

}  // namespace
}  // namespace vigil::actors
