// A client that loads a command which speaks MCP on its stdio and offers a tool `echo`.
//
//   mcp_load COMMAND...
//
// It takes commands from its standard input, a line each, and answers with a line of JSON:
//
//   serial BYTES COUNT          calls one after the other, whose results hold so many bytes
//   flight AT-ONCE BYTES COUNT  calls of which so many are in flight all the time
//
// An answer that is missing or is not a result ends it with a message: a figure of something that
// failed is no figure.
#include "mcp_stdio.hpp"
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <sstream>
#include <utility>
#include <vector>

namespace {

[[nodiscard]] auto now() -> std::int64_t {
    return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class client {
public:
    explicit client(bench::child server) : server_{server} {}

    void initialize() {
        ask(R"("method":"initialize","params":{"protocolVersion":"2025-06-18",)"
            R"("capabilities":{},"clientInfo":{"name":"mcp_load","version":"1"}})");
        bench::write_all(server_.input, R"({"jsonrpc":"2.0","method":"notifications/initialized"})"
                                        "\n");
        const auto tools = ask(R"("method":"tools/list")");
        // Alone, or behind a server's name.
        const auto end = tools.find("echo\"");
        const auto begin = tools.rfind('"', end);
        if (end == std::string::npos) refuse("it offers no echo", tools);
        tool_ = tools.substr(begin + 1, end + 4 - (begin + 1));
    }

    void serial(std::size_t bytes, std::size_t count) {
        std::vector<double> took;
        took.reserve(count);
        const auto begin = now();
        for (std::size_t i = 0; i < count; ++i) {
            const auto start = now();
            bench::write_all(server_.input, call(bytes));
            take_answer(bytes);
            took.push_back(static_cast<double>(now() - start) / 1000);
        }
        const auto seconds = static_cast<double>(now() - begin) / 1e9;
        std::ranges::sort(took);
        const auto at = [&](double share) {
            return took[static_cast<std::size_t>(share * static_cast<double>(took.size() - 1))];
        };
        (void)std::printf("{\"a_second\":%.1f,\"p50\":%.2f,\"p99\":%.2f}\n",
                          static_cast<double>(count) / seconds, at(0.5), at(0.99));
    }

    void flight(std::size_t at_once, std::size_t bytes, std::size_t count) {
        std::size_t sent = 0, answered = 0;
        const auto begin = now();
        std::string requests;
        while (answered < count) {
            // Whatever was answered in one read is asked again in one write.
            requests.clear();
            for (; sent < count && sent - answered < at_once; ++sent) requests += call(bytes);
            bench::write_all(server_.input, requests);
            take_answer(bytes);
            for (++answered; held_line(); ++answered) take_answer(bytes);
        }
        const auto seconds = static_cast<double>(now() - begin) / 1e9;
        (void)std::printf("{\"a_second\":%.1f,\"bytes_a_second\":%.0f}\n",
                          static_cast<double>(count) / seconds,
                          static_cast<double>(count * bytes) / seconds);
    }

private:
    [[noreturn]] static void refuse(const std::string& why, std::string_view line) {
        errno = EPROTO;
        bench::die(why + ": " + std::string{line.substr(0, 400)});
    }

    [[nodiscard]] auto call(std::size_t bytes) -> std::string {
        return R"({"jsonrpc":"2.0","id":)" + std::to_string(++id_) +
               R"(,"method":"tools/call","params":{"name":")" + tool_ +
               R"(","arguments":{"bytes":)" + std::to_string(bytes) + "}}}\n";
    }

    auto ask(std::string_view rest) -> std::string {
        bench::write_all(server_.input, R"({"jsonrpc":"2.0","id":)" + std::to_string(++id_) + "," +
                                            std::string{rest} + "}\n");
        take_answer(0);
        return std::string{line_};
    }

    [[nodiscard]] auto held_line() const -> bool {
        return std::memchr(held_.data() + next_, '\n', used_ - next_) != nullptr;
    }

    // The next line that is an answer; it has to be a result of at least so many bytes.
    void take_answer(std::size_t bytes) {
        do read_line();
        while (line_.substr(0, 60).find("\"id\":") == std::string_view::npos);
        if (line_.substr(0, 120).find("\"result\":") == std::string_view::npos ||
            line_.size() < bytes)
            refuse("that is no result", line_);
        const auto end = line_.substr(line_.size() - std::min<std::size_t>(line_.size(), 200));
        if (end.find("\"isError\":true") != std::string_view::npos)
            refuse("the call failed", line_);
    }

    void read_line() {
        for (std::size_t seen = next_;;) {
            const auto* const end =
                static_cast<const char*>(std::memchr(held_.data() + seen, '\n', used_ - seen));
            if (end != nullptr) {
                line_ = {held_.data() + next_, end};
                next_ = static_cast<std::size_t>(end + 1 - held_.data());
                return;
            }
            std::memmove(held_.data(), held_.data() + next_, used_ - next_);
            used_ -= std::exchange(next_, 0);
            seen = used_;
            if (held_.size() - used_ < chunk_bytes) held_.resize(2 * held_.size());
            const auto got = ::read(server_.output, held_.data() + used_, chunk_bytes);
            if (got <= 0) bench::die("the command ended");
            used_ += static_cast<std::size_t>(got);
        }
    }

    static constexpr std::size_t chunk_bytes = 256UL * 1024;
    bench::child server_;
    std::string tool_;
    std::vector<char> held_ = std::vector<char>(2 * chunk_bytes);
    std::size_t used_ = 0;  // bytes of it
    std::size_t next_ = 0;  // of what was not taken yet
    std::string_view line_; // until the next read
    std::uint64_t id_ = 0;
};

} // namespace

auto main(int count, char** words) -> int {
    if (count < 2) bench::die("mcp_load COMMAND...");
    client loading{bench::start(words + 1)};
    loading.initialize();
    (void)std::printf("{\"ready\":true}\n");
    (void)std::fflush(stdout);
    for (std::string line; std::getline(std::cin, line);) {
        std::istringstream in{line};
        std::string what;
        std::size_t first = 0, second = 0, third = 0;
        in >> what >> first >> second >> third;
        if (what == "serial" && second > 0) loading.serial(first, second);
        else if (what == "flight" && first > 0) loading.flight(first, second, third);
        else bench::die("what is " + line + "?");
        (void)std::fflush(stdout);
    }
}
