// What needs a runtime that works. Mutations that leave no record are remembered by their key and
// by what they mean, not by how they were spelled; a start and a stop are on record.
#include "control/handler.hpp"

namespace glove::control {

namespace {

[[nodiscard]] auto acknowledged(std::string_view session_id) -> std::string {
    return result_of([&](auto& to) { to.member("session_id", session_id); });
}

template<class T, std::size_t N, class Act>
[[nodiscard]] auto once(service_state& of, const call& what, const T& asked,
                        const wire::fields<T, N>& rows, std::string_view subject, Act act)
    -> answer<std::string> {
    return of.keys.once(subject, what.key(), meaning(what, asked, rows),
                        [&]() -> answer<std::string> {
                            GLOVE_CHECK(of.still_in_time(what));
                            GLOVE_CHECK(act());
                            return acknowledged(asked.session_id);
                        });
}

[[nodiscard]] auto shown(const answer<session_view>& of) -> answer<std::string> {
    if (!of) return std::unexpected(of.error());
    return or_refuse(encode(*of), error_code::session_control_failed);
}

} // namespace

auto to_string(session_signal of) noexcept -> std::string_view {
    for (const auto& word : signal_words)
        if (word.means == of) return word.name;
    return "";
}

auto start_session(service_state& of, const call& what) -> answer<std::string> {
    GLOVE_TRY(const auto asked, taken(what, start_fields));
    GLOVE_CHECK(of.still_in_time(what));
    return shown(of.has.runtime->start(what.key(), asked.authorization));
}

auto attach(service_state& of, const call& what) -> answer<std::string> {
    GLOVE_TRY(const auto asked, taken(what, attach_fields));
    GLOVE_TRY(const auto page,
              of.has.runtime->attach(asked.session_id, asked.cursor, asked.max_bytes));
    return result_of([&](auto& to) {
        to.member("session_id", asked.session_id);
        to.member("oldest_cursor", page.oldest_cursor);
        to.member("next_cursor", page.next_cursor);
        to.member("truncated", page.truncated);
        to.member("eof", page.eof);
        to.begin_array("bytes");
        for (const char c : page.bytes) to.element(static_cast<unsigned char>(c));
        to.end_array();
    });
}

auto write_stdin(service_state& of, const call& what) -> answer<std::string> {
    GLOVE_TRY(const auto asked, taken(what, input_fields));
    const std::string bytes(asked.bytes.begin(), asked.bytes.end());
    return once(of, what, asked, input_fields, asked.session_id,
                [&] { return of.has.runtime->write_input(asked.session_id, bytes); });
}

auto resize(service_state& of, const call& what) -> answer<std::string> {
    GLOVE_TRY(const auto asked, taken(what, resize_fields));
    return once(of, what, asked, resize_fields, asked.session_id, [&] {
        return of.has.runtime->resize(asked.session_id, asked.rows, asked.columns);
    });
}

auto signal_session(service_state& of, const call& what) -> answer<std::string> {
    GLOVE_TRY(const auto asked, taken(what, signal_fields));
    return once(of, what, asked, signal_fields, asked.session_id,
                [&] { return of.has.runtime->signal(asked.session_id, asked.signal); });
}

auto detach(service_state& of, const call& what) -> answer<std::string> {
    GLOVE_TRY(const auto asked, taken(what, detach_fields));
    const auto carry_out = [&]() -> answer<std::string> {
        GLOVE_CHECK(of.has.runtime->detach(asked.session_id, asked.transcript_cursor));
        return result_of([&](auto& to) {
            to.member("session_id", asked.session_id);
            to.member("transcript_cursor", asked.transcript_cursor);
        });
    };
    return of.keys.once(asked.session_id, what.key(), meaning(what, asked, detach_fields),
                        carry_out);
}

auto stop_session(service_state& of, const call& what) -> answer<std::string> {
    GLOVE_TRY(const auto asked, taken(what, session_fields));
    GLOVE_CHECK(of.still_in_time(what));
    return shown(of.has.runtime->stop(what.key(), asked.session_id));
}

auto cleanup_session(service_state& of, const call& what) -> answer<std::string> {
    GLOVE_TRY(const auto asked, taken(what, session_fields));
    return once(of, what, asked, session_fields, service_keys, [&]() -> answer<> {
        GLOVE_CHECK(of.has.runtime->cleanup(asked.session_id));
        of.keys.forget(asked.session_id);
        return {};
    });
}

auto inspect_retained_changes(service_state& of, const call& what) -> answer<std::string> {
    GLOVE_TRY(const auto asked, taken(what, retained_fields));
    return of.has.retained->changes(asked.session_id, asked.exposure_id, asked.offset, asked.limit);
}

} // namespace glove::control
