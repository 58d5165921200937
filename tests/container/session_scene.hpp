// A source, a place for its copy and one for the record; and a clock whose every look is a chance
// for somebody else to do something.
#pragma once
#include <chrono>
#include <fcntl.h>
#include <functional>
#include <glove/container/session_copy.hpp>
#include <glove/sys/clock.hpp>
#include <glove/wire/crypto.hpp>
#include <support/folder.hpp>

namespace glove::test {

class busy_clock final : public sys::clock {
public:
    [[nodiscard]] auto monotonic() const noexcept -> std::chrono::nanoseconds override {
        if (meanwhile) meanwhile(++looks);
        return now;
    }
    [[nodiscard]] auto wall() const noexcept -> std::chrono::nanoseconds override {
        return std::chrono::hours{24};
    }
    std::function<void(int)> meanwhile; // with the number of the look, from 1
    std::chrono::nanoseconds now{0};
    mutable int looks = 0;
};

inline auto opened(const std::string& path, int flags = O_PATH) -> sys::unique_fd {
    sys::unique_fd out{::open(path.c_str(), flags | O_CLOEXEC)};
    prepared(static_cast<bool>(out), path);
    return out;
}

inline auto sha(std::string_view bytes) -> std::string {
    return wire::to_hex(wire::sha256(bytes).value());
}

struct session_scene {
    folder place;
    std::string source = place.directory("source");
    std::string into = place.directory("into");
    std::string records = place.directory("records", 0700);
    busy_clock time;
    std::stop_source stop;
    container::tree_limits limits{.bytes = 1UL << 20U};
    std::function<result<>(std::string_view)> before_step;
    std::function<result<>()> settle;

    [[nodiscard]] auto patience() const -> container::tree_patience {
        return {.time = time, .deadline = std::chrono::seconds{1}, .stop = stop.get_token()};
    }
    [[nodiscard]] auto copy() const -> result<container::session_tree> {
        const auto from = opened(source);
        const auto to = opened(into);
        const auto noted = opened(records);
        return container::copy_source({.source = from,
                                       .into = to,
                                       .records = noted,
                                       .record = "copy.json",
                                       .source_identity_digest = std::string(64, 'a'),
                                       .limits = limits,
                                       .how_long = container::lasts::for_good,
                                       .settle = settle,
                                       .before_step = before_step},
                                      patience());
    }
    [[nodiscard]] auto read(const std::string& what) const -> result<container::session_tree> {
        const auto top = opened(what);
        return container::read_tree(top, limits, patience());
    }
    void put(std::string_view name, std::string_view content, ::mode_t mode = 0644) const {
        (void)place.file("source/" + std::string{name}, content, mode);
    }
};

} // namespace glove::test
