// What each rule accepts, and the sentence it refuses with: the path of a member, never its value.
#include <glove/wire/rules.hpp>

namespace glove::wire {

auto to_string(const place& at) -> std::string {
    if (at.parent == nullptr) return "$";
    auto out = to_string(*at.parent);
    if (at.name.data() == nullptr) out.append("[").append(std::to_string(at.index)).append("]");
    else out.append(".").append(json::readable_name(at.name));
    return out;
}

namespace detail {

auto refuse(errc code, step_name step, const place& at, std::string_view what)
    -> std::unexpected<error> {
    return fail(code, step, to_string(at).append(" ").append(what));
}

auto refuse_type(const json::value& in, json::kind wanted, const place& at)
    -> std::unexpected<error> {
    const auto what = std::string{"is "}.append(json::to_string(in.type())).append(", not ");
    return refuse(errc::invalid_input, "wire.type", at,
                  what + std::string{json::to_string(wanted)});
}

auto check_count(std::size_t count, std::size_t min, std::size_t max, const place& at) -> result<> {
    if (count >= min && count <= max) return {};
    const auto code = count > max ? errc::limit_exceeded : errc::invalid_input;
    return refuse(code, "wire.length", at,
                  "has length " + std::to_string(count) + ", not " + std::to_string(min) + " to " +
                      std::to_string(max));
}

auto refuse_range(std::int64_t min, std::uint64_t max, const place& at) -> std::unexpected<error> {
    return refuse(errc::invalid_input, "wire.range", at,
                  "is outside " + std::to_string(min) + " to " + std::to_string(max));
}

} // namespace detail

auto text::check(const std::string& in, const place& at) const -> result<> {
    GLOVE_CHECK(detail::check_count(in.size(), min, max, at));
    if (!conforms(of, in))
        return detail::refuse(errc::invalid_input, "wire.grammar", at,
                              std::string{"does not have the form "}.append(to_string(of)));
    return {};
}

auto text::read(const json::value& in, std::string& out, const place& at) const -> result<> {
    const auto* found = in.as_string();
    if (found == nullptr) return detail::refuse_type(in, json::kind::string, at);
    GLOVE_CHECK(check(*found, at));
    out = *found;
    return {};
}

auto text::take(json::cursor& in, std::string& out) const -> bool {
    std::string_view found;
    if (!in.take_string(found) || found.size() < min || found.size() > max || !conforms(of, found))
        return false;
    out = found;
    return true;
}

} // namespace glove::wire
