// Sessions that a launcher starts, in a service as it really is.
#include "container/launcher_scene.hpp"
#include <gmock/gmock.h>

namespace {

using namespace glove;
using namespace glove::container;
using namespace glove::container::scene;
using testing::HasSubstr;

TEST(Launcher, ASessionRunsAsTheAgentAndItsStatusComesBack) {
    EXPECT_EQ(as_service([] {
                  auto by = good(launcher::start());
                  session one{by, shell_wish("id -u; id -g; id -un; pwd; exit 7")};
                  return one.run();
              }),
              "1000\n1000\nagent\n/home/agent\n=1792");
}

} // namespace
