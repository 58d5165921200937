// A rule for a string that is empty while a record has not come to it, and else obeys another rule.
#pragma once
#include <glove/wire/fields.hpp>
#include <string>

namespace glove::wire {

template<auto Rule> struct maybe {
    [[nodiscard]] constexpr auto form() const -> shape {
        auto out = Rule.form();
        out.min = 0;
        return out;
    }
    [[nodiscard]] auto check(const std::string& in, const place& at) const -> result<> {
        return in.empty() ? result<>{} : Rule.check(in, at);
    }
    [[nodiscard]] auto read(const json::value& in, std::string& out, const place& at) const
        -> result<> {
        const auto* text = in.as_string();
        if (text != nullptr && text->empty()) return {};
        return Rule.read(in, out, at);
    }
    [[nodiscard]] auto take(json::cursor& in, std::string& out) const -> bool
        requires takes_text<decltype(Rule), std::string>
    {
        return in.try_empty_string() || Rule.take(in, out);
    }
    void write(json::writer& out, const std::string& in) const { out.element(in); }
};

} // namespace glove::wire
