#include "policy/scene.hpp"
#include "policy/url_host.hpp"
#include <glove/wire/json_writer.hpp>
#include <rapidcheck/gtest.h>

namespace {

using namespace glove::policy;
using namespace glove::policy::scene;

constexpr std::string_view table = R"(
[[tool."up.t".argument]]
at = "/url"
url_host = ["a.example", ".b.example", "c.example:8443", "192.0.2.7", "[2001:db8::1]", "Upper.Example"]
)";

auto ask(const std::string& url) -> std::string {
    static const auto of = made({}, "[tool.\"up.t\"]\nallow = true\n" + std::string{table});
    std::string text = "{\"url\":";
    glove::wire::json::append_quoted(text, url);
    return answer(of, {"up", "t"}, text + "}");
}

TEST(Urls, AreOfTheHostsThatAreListed) {
    for (const auto* url :
         {"https://a.example", "https://a.example/", "http://a.example/x?y=z#w",
          "https://A.Example/", "HTTPS://a.example/", "https://a.example:443/",
          "http://a.example:80/", "https://b.example/", "https://x.b.example/",
          "https://x.y.b.example/a@b", "https://c.example:8443/", "http://192.0.2.7/",
          "https://[2001:db8::1]/", "https://[2001:DB8::1]:443/", "https://upper.example/",
          "https://a.example?x", "https://a.example#x", "https://a.example/%2e%2e/x",
          "https://a.example/http://evil.example/"})
        EXPECT_EQ(ask(url), "ok") << url;
}

TEST(Urls, AreOfNoOtherHost) {
    for (const auto* url :
         {"https://evil.example/", "https://a.example.evil.test/", "https://xa.example/",
          "https://x.a.example/", "https://ab.example/", "https://xb.example/",
          "https://b.example.evil.test/", "https://c.example/", "https://c.example:8444/",
          "http://c.example/", "https://a.example:8443/", "https://a.example:80/",
          "http://a.example:443/", "https://192.0.2.8/", "https://[2001:db8::2]/"})
        EXPECT_EQ(ask(url), "argument /url is not a URL of a permitted host") << url;
}

TEST(Urls, AreReadInOneWayOnly) {
    for (const auto* url :
         {"", "a.example", "//a.example/", "/a.example", "https:/a.example/", "https:a.example",
          "https:///a.example/", "https://", "https:///", "://a.example/", "https//a.example/",
          // Somebody else's host behind the permitted one.
          "https://a.example@evil.example/", "https://a.example:443@evil.example/",
          "https://user:password@a.example/", "https://@a.example/",
          "https://a.example%40evil.example/", "https://a.example\\@evil.example/",
          "https://a.example\\.evil.example/", "https:\\\\a.example/",
          "https://evil.example\\@a.example/", "https://a.example\\/",
          // White space and controls, which some readers take out.
          " https://a.example/", "https://a.example/ ", "https://a.example /",
          "https://\ta.example/", "https://a.exa\nmple/",
          "https://a.example/\r\nHost: evil.example", "https://a.example/\x01",
          "ht\ntps://a.example/", "https://a.example\x7f/",
          // Ports.
          "https://a.example:/", "https://a.example:0/", "https://a.example:0443/",
          "https://a.example:65979/", "https://a.example:443:80/", "https://a.example:+443/",
          "https://a.example:x/",
          // Names that resolvers take differently.
          "https://a.example./", "https://.a.example/", "https://a..example/",
          "https://-a.example/", "https://a.example%2e/", "https://a%2eexample/",
          "https://%61.example/", "https://\u0430.example/", "https://a\u3002example/",
          "https://a.ex\u00e4mple/", "https://a.example/\u00e4",
          // Addresses in odd forms.
          "http://3221225991/", "http://0xC0000207/", "http://0300.0.2.7/", "http://192.0.519/",
          "http://192.0.2.07/", "http://0xC0.0.2.7/", "http://192.0.2.7./", "http://192.0.2.256/",
          "http://[::ffff:192.0.2.7]/", "http://[2001:db8::1%25eth0]/", "http://[2001:db8::1/",
          "http://2001:db8::1/", "http://[2001:db8::1]x/", "http://[]/"})
        EXPECT_EQ(ask(url), "argument /url is not a plain URL") << url;
    EXPECT_EQ(ask(std::string{"https://a.example/\0", 19}), "argument /url is not a plain URL");
}

TEST(Urls, HaveThePermittedSchemes) {
    for (const auto* url :
         {"ftp://a.example/", "file://a.example/etc/passwd", "gopher://a.example/",
          "javascript://a.example/", "data://a.example/", "ws://a.example/"})
        EXPECT_EQ(ask(url), "argument /url has no permitted scheme") << url;
    const std::string only = "[[tool.\"up.t\".argument]]\nat = \"/url\"\nurl_host = "
                             "[\"a.example\"]\nschemes = [\"wss\", \"git\"]\n";
    EXPECT_EQ(answer_of(only, R"({"url":"wss://a.example/"})"), "ok");
    EXPECT_EQ(answer_of(only, R"({"url":"git://a.example/x"})"), "ok");
    EXPECT_EQ(answer_of(only, R"({"url":"git://a.example:9418/x"})"),
              "argument /url is not a URL of a permitted host");
    EXPECT_EQ(answer_of(only, R"({"url":"https://a.example/"})"),
              "argument /url has no permitted scheme");
    EXPECT_EQ(answer_of(only, R"({"url":7})"), "argument /url is not a string");
}

TEST(Urls, AreBoundedInLength) {
    const std::string begin = "https://a.example/";
    EXPECT_EQ(ask(begin + std::string(8192 - begin.size(), 'x')), "ok");
    EXPECT_EQ(ask(begin + std::string(8193 - begin.size(), 'x')),
              "argument /url is not a plain URL");
}

TEST(Urls, AreListedByHostsAndNothingMore) {
    for (const auto* text : {"",
                             ".",
                             "https://a.example",
                             "a.example/",
                             "user@a.example",
                             "*",
                             "*.a.example",
                             "a.example.",
                             "a..example",
                             "a.example:0",
                             "a.example:65536",
                             "a.example:",
                             "1",
                             ".192.0.2.7",
                             "192.0.2.300",
                             "[::1",
                             "::1",
                             "\u00e4.example",
                             "a b",
                             "-a.example"}) {
        host_list list;
        EXPECT_NE(list.add(text), "") << text;
    }
    for (const auto* text : {"a.example", ".a.example", "localhost", "a.example:1",
                             "a.example:65535", "127.0.0.1", "[::1]", "[::1]:80"}) {
        host_list list;
        EXPECT_EQ(list.add(text), "") << text;
    }
}

// Whatever stands around a permitted host, what is accepted begins by scheme and host.
RC_GTEST_PROP(UrlProperty, AcceptsOnlyWhatBeginsByThePermittedHost, ()) {
    const std::vector<std::string> parts{"https",     "http",
                                         ":",         "/",
                                         "//",        "://",
                                         "a.example", "@",
                                         "evil",      ".",
                                         "\\",        "?",
                                         "#",         "%2e",
                                         ":443",      "[",
                                         "]",         "\t",
                                         "a",         ".evil",
                                         "x",         "https://a.example"};
    std::string url;
    for (const auto& part :
         *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(parts)))
        url += part;
    host_list list;
    RC_ASSERT(list.add("a.example").empty());
    const auto place = parse_url(url);
    const bool is_web = place && (place->scheme == "https" || place->scheme == "http");
    const bool held = is_web && list.holds(*place);
    RC_CLASSIFY(held);
    if (!held) return;
    bool begins = false;
    for (const std::string start : {"https://a.example", "http://a.example"})
        for (const std::string end : {"", "/", "?", "#", ":443"})
            begins |= end.empty() ? url == start : url.starts_with(start + end);
    RC_ASSERT(begins);
}

} // namespace
