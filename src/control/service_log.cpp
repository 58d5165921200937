// One line of JSON for each event, whole or not at all. It never holds a secret or a payload.
#include <cerrno>
#include <glove/control/service_log.hpp>
#include <glove/sys/standard_error.hpp>
#include <glove/wire/json_writer.hpp>
#include <sys/socket.h>
#include <unistd.h>

namespace glove::control {

namespace {

// A pipe takes so many bytes whole or not at all.
constexpr std::size_t most_line_bytes = 4096;

[[nodiscard]] auto whole_line(const log_event& event, std::uint64_t wall_ms) -> std::string {
    std::string out;
    wire::json::writer to{out};
    const auto put = [&](std::string_view name, std::string_view value) {
        if (!value.empty()) to.member(name, value);
    };
    to.begin_object();
    to.member("time_ms", wall_ms);
    put("event", event.name);
    put("method", event.method);
    put("request", event.request);
    put("code", event.code);
    if (event.why != nullptr) {
        put("step", event.why->step);
        put("error", to_string(event.why->code));
        if (event.why->os != 0) to.member("errno", event.why->os);
        put("detail", event.why->detail);
        put("remedy", event.why->remedy);
    }
    put("text", event.text);
    to.end_object();
    out += '\n';
    return out;
}

} // namespace

auto line_of(const log_event& event, std::uint64_t wall_ms) -> std::string {
    auto out = whole_line(event, wall_ms);
    if (out.size() <= most_line_bytes) return out;
    auto shorter = event;
    error why = event.why != nullptr ? *event.why : error{};
    why.detail = "too long for a line";
    why.remedy.clear();
    if (event.why != nullptr) shorter.why = &why;
    shorter.text = {};
    return whole_line(shorter, wall_ms);
}

namespace {

class standard_error final : public log_sink {
public:
    auto put(std::string_view line) -> bool override {
        ssize_t wrote = -1;
        do {
            errno = 0;
            if (stream_.is_socket)
                wrote = ::send(2, line.data(), line.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
            else if (!stream_.can_wait) wrote = ::write(2, line.data(), line.size());
            else if (stream_.own) wrote = ::write(stream_.own.get(), line.data(), line.size());
        } while (wrote < 0 && errno == EINTR);
        return wrote > 0;
    }

private:
    sys::error_stream stream_;
};

} // namespace

standard_error_log::standard_error_log() : queued_log{std::make_unique<standard_error>()} {}

} // namespace glove::control
