// A tool server that costs as little as one can: the tool `echo` answers with as many bytes of text
// as its argument `bytes` says. Nothing is validated: it is the floor that relays are measured on.
#include "mcp_stdio.hpp"
#include <array>
#include <charconv>

namespace {

// The token after `name`, up to what ends one.
[[nodiscard]] auto token_after(std::string_view line, std::string_view name) -> std::string_view {
    const auto at = line.find(name);
    if (at == std::string_view::npos) return {};
    const auto rest = line.substr(at + name.size());
    return rest.substr(0, rest.find_first_of(",}"));
}

[[nodiscard]] auto number_in(std::string_view token) -> std::size_t {
    std::size_t out = 0;
    (void)std::from_chars(token.data(), token.data() + token.size(), out);
    return out;
}

class server {
public:
    [[nodiscard]] auto run() -> int {
        std::string chunk(256UL * 1024, '\0');
        for (;;) {
            const auto got = ::read(0, chunk.data(), chunk.size());
            if (got < 0 && errno == EINTR) continue;
            if (got <= 0) return got == 0 ? 0 : 1;
            in_.append(chunk.data(), static_cast<std::size_t>(got));
            std::size_t begin = 0;
            for (std::size_t end = 0; (end = in_.find('\n', begin)) != std::string::npos;) {
                answer(std::string_view{in_}.substr(begin, end - begin));
                begin = end + 1;
            }
            in_.erase(0, begin);
            bench::write_all(1, out_);
            out_.clear();
        }
    }

private:
    void answer(std::string_view line) {
        const auto id = token_after(line, "\"id\":");
        if (id.empty()) return; // a notification
        out_.append(R"({"jsonrpc":"2.0","id":)").append(id);
        if (line.find("\"tools/call\"") != std::string_view::npos) {
            const auto bytes = number_in(token_after(line, "\"bytes\":"));
            if (body_.size() < bytes) body_.resize(bytes, 'x');
            out_.append(R"(,"result":{"content":[{"type":"text","text":")")
                .append(body_, 0, bytes)
                .append(R"("}],"isError":false}})");
        } else if (line.find("\"tools/list\"") != std::string_view::npos)
            out_.append(R"(,"result":{"tools":[{"name":"echo","description":"Says something.",)"
                        R"("inputSchema":{"type":"object","properties":{"bytes":{"type":)"
                        R"("integer"}}}}]}})");
        else if (line.find("\"initialize\"") != std::string_view::npos)
            out_.append(R"(,"result":{"protocolVersion":"2025-06-18","capabilities":)"
                        R"({"tools":{}},"serverInfo":{"name":"echo","version":"1"}}})");
        else if (line.find("\"ping\"") != std::string_view::npos) out_.append(R"(,"result":{}})");
        else out_.append(R"(,"error":{"code":-32601,"message":"no such method"}})");
        out_ += '\n';
    }

    std::string in_, out_, body_;
};

} // namespace

auto main() -> int { return server{}.run(); }
