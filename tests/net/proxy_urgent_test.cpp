// Urgent bytes of TCP, which splice does not step over: they must neither hold a connection up nor
// keep the proxy busy.
#include "proxy_scene.hpp"
#include <sstream>

namespace {

using namespace glove::test;

// User and system time of the process so far, in clock ticks.
auto ticks_of(const proxy_scene& proxy) -> unsigned long {
    const auto text = proxy_scene::sys_text("/proc/" + proxy.number() + "/stat");
    std::istringstream fields{text.substr(text.rfind(')') + 2)};
    std::string skipped;
    for (int i = 0; i < 11; ++i) fields >> skipped;
    unsigned long user = 0;
    unsigned long system = 0;
    fields >> user >> system;
    return user + system;
}

void say_with_urgent(const wire_end& from) {
    from.send("a");
    ASSERT_EQ(::send(from.fd(), "U", 1, MSG_OOB | MSG_NOSIGNAL), 1);
    from.send("bcdef");
}

// The urgent byte itself may be left out, as a program that does not ask for it sees it.
void expect_all(const wire_end& to) {
    std::string got;
    while (!got.ends_with("f")) {
        const auto part = to.read(1);
        got += part;
        if (part.size() != 1) break;
    }
    EXPECT_TRUE(got == "abcdef" || got == "aUbcdef") << got;
}

TEST(ProxyUrgent, BothDirectionsGoOn) {
    const tcp_server server;
    const auto where = "localhost:" + server.text();
    proxy_scene proxy{{.rules = {where}}};
    const auto client = proxy.tunnel(where);
    const auto far = server.accept();
    say_with_urgent(client);
    expect_all(far);
    say_with_urgent(far);
    expect_all(client);
}

TEST(ProxyUrgent, TheProxyStaysIdle) {
    const tcp_server server;
    const auto where = "localhost:" + server.text();
    proxy_scene proxy{{.rules = {where}}};
    const auto client = proxy.tunnel(where);
    const auto far = server.accept();
    say_with_urgent(client);
    ::poll(nullptr, 0, 200);
    const auto before = ticks_of(proxy);
    ::poll(nullptr, 0, 1000);
    EXPECT_LT(ticks_of(proxy) - before, 20UL);
}

} // namespace
