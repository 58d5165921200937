// Looks at decoded values only.
#include "policy/matchers.hpp"
#include <algorithm>
#include <charconv>
#include <fcntl.h>
#include <glove/base/text.hpp>
#include <glove/wire/grammar.hpp>
#include <glove/wire/json_writer.hpp>
#include <glove/wire/utf8.hpp>
#include <re2/re2.h>
#include <sstream>

namespace glove::policy {

namespace {

using wire::json::value;

constexpr std::string_view not_a_string = "is not a string";

[[nodiscard]] auto quoted_list(const std::vector<std::string>& texts) -> std::string {
    std::string out;
    for (const auto& text : texts) {
        if (!out.empty()) out += ", ";
        out += in_quotes(text);
    }
    return out;
}

class below_matcher final : public matcher {
public:
    below_matcher(std::vector<root_ptr> roots, relative paths)
        : roots_{std::move(roots)}, relative_{paths} {}
    [[nodiscard]] auto complaint(const value& of) const -> std::string_view override {
        const auto* const text = of.as_string();
        if (text == nullptr) return not_a_string;
        const bool from_root = relative_ == relative::below_the_root && !text->starts_with('/');
        const bool held = std::ranges::any_of(roots_, [&](const root_ptr& root) {
            return from_root ? root->holds_relative(*text) : root->holds(*text);
        });
        return held ? std::string_view{} : "is not below a permitted directory";
    }
    [[nodiscard]] auto describe() const -> std::string override {
        std::vector<std::string> names;
        for (const auto& root : roots_) names.push_back(root->spelled());
        return "is a path below " + quoted_list(names) +
               (relative_ == relative::below_the_root ? ", or a relative path from there" : "");
    }

private:
    std::vector<root_ptr> roots_;
    relative relative_;
};

// Whether the text, as a path from the directory, meets a link; what cannot be looked at may be
// one.
[[nodiscard]] auto meets_link(const std::string& directory, const std::string& text) -> bool {
    if (text.contains('\0')) return true;
    if (text.size() > longest_path) return false;
    const auto is_nothing = [](int os) {
        return os == ENOENT || os == ENOTDIR || os == ENAMETOOLONG;
    };
    const auto root = sys::pin(directory, sys::follow::yes);
    if (!root) return !is_nothing(root.error().os);
    const auto found = sys::open_beneath(*root, text, O_PATH, sys::mounts::crossed);
    return !found && !is_nothing(found.error().os);
}

class prefix_matcher final : public matcher {
public:
    prefix_matcher(std::string prefix, std::vector<std::string> directories)
        : prefix_{std::move(prefix)}, directories_{std::move(directories)} {}
    [[nodiscard]] auto complaint(const value& of) const -> std::string_view override {
        const auto* const text = of.as_string();
        if (text == nullptr) return not_a_string;
        if (!text->starts_with(prefix_)) return "does not begin as permitted";
        if (prefix_.find('/') == std::string::npos) return complaint_of_text(*text);
        const bool plain = std::ranges::none_of(
            *text, [](char c) { return wire::detail::is_control(c) || c == '\\'; });
        return plain && !climbs(*text) ? std::string_view{} : "could lead elsewhere";
    }
    [[nodiscard]] auto describe() const -> std::string override {
        return "begins with " + in_quotes(prefix_);
    }

private:
    // A server may take it for a path.
    [[nodiscard]] auto complaint_of_text(const std::string& text) const -> std::string_view {
        if (text.contains('/') && climbs(text)) return "could lead elsewhere";
        for (const auto& directory : directories_)
            if (meets_link(directory, text)) return "is a link, or leads through one";
        return {};
    }

    std::string prefix_;
    std::vector<std::string> directories_;
};

// Of JSON's numbers; empty when it is too large to be one.
[[nodiscard]] auto number_of(const value& of) -> std::optional<long double> {
    if (const auto number = of.as_unsigned()) return static_cast<long double>(*number);
    if (const auto number = of.as_signed()) return static_cast<long double>(*number);
    const auto* const exact = of.as_number();
    if (exact == nullptr) return std::nullopt;
    const auto& text = exact->text();
    double out = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), out);
    if (read.ec != std::errc{} || read.ptr != text.data() + text.size()) return std::nullopt;
    return out;
}

[[nodiscard]] auto is_number(const value& of) -> bool {
    return of.type() == wire::json::kind::integer || of.type() == wire::json::kind::number;
}

class choice_matcher final : public matcher {
public:
    // In parentheses: in braces, an array of values is one value.
    explicit choice_matcher(std::vector<value> values) : values_(std::move(values)) {}
    [[nodiscard]] auto complaint(const value& of) const -> std::string_view override {
        if (std::ranges::find(values_, of) != values_.end()) return {};
        return values_.size() == 1 ? "is not the permitted value"
                                   : "is none of the permitted values";
    }
    [[nodiscard]] auto describe() const -> std::string override {
        std::string out = values_.size() == 1 ? "is " : "is one of ";
        for (std::size_t i = 0; i < values_.size(); ++i) {
            if (i > 0) out += ", ";
            out += printable(wire::json::to_text(values_[i]));
        }
        return out;
    }

private:
    std::vector<value> values_;
};

class pattern_matcher final : public matcher {
public:
    explicit pattern_matcher(pattern whole) : pattern_{std::move(whole)} {}
    [[nodiscard]] auto complaint(const value& of) const -> std::string_view override {
        const auto* const text = of.as_string();
        if (text == nullptr) return not_a_string;
        return re2::RE2::FullMatch(*text, *pattern_) ? std::string_view{}
                                                     : "does not have the permitted form";
    }
    [[nodiscard]] auto describe() const -> std::string override {
        return "matches " + in_quotes(std::string{pattern_->pattern()});
    }

private:
    pattern pattern_;
};

class range_matcher final : public matcher {
public:
    explicit range_matcher(number_bounds bounds) : bounds_{bounds} {}
    [[nodiscard]] auto complaint(const value& of) const -> std::string_view override {
        if (!is_number(of)) return "is not a number";
        const auto number = number_of(of);
        const bool inside = number && *number >= bounds_.least && *number <= bounds_.most;
        return inside ? std::string_view{} : "is not in the permitted range";
    }
    [[nodiscard]] auto describe() const -> std::string override {
        std::ostringstream out;
        out.precision(20);
        out << "is a number from " << bounds_.least << " to " << bounds_.most;
        return out.str();
    }

private:
    number_bounds bounds_;
};

[[nodiscard]] auto characters_in(std::string_view text) -> std::uint64_t {
    std::uint64_t out = 0;
    for (; !text.empty(); ++out) text.remove_prefix(wire::next_utf8(text).size);
    return out;
}

class length_matcher final : public matcher {
public:
    explicit length_matcher(length_bounds bounds) : bounds_{bounds} {}
    [[nodiscard]] auto complaint(const value& of) const -> std::string_view override {
        std::uint64_t length = 0;
        if (const auto* const text = of.as_string()) length = characters_in(*text);
        else if (const auto* const items = of.as_array()) length = items->size();
        else return "is neither a string nor an array";
        return length >= bounds_.least && length <= bounds_.most ? std::string_view{}
                                                                 : "is not of a permitted length";
    }
    [[nodiscard]] auto describe() const -> std::string override {
        return "has " + std::to_string(bounds_.least) + " to " + std::to_string(bounds_.most) +
               " characters or items";
    }

private:
    length_bounds bounds_;
};

class url_matcher final : public matcher {
public:
    url_matcher(host_list hosts, std::vector<std::string> schemes, std::vector<std::string> written)
        : hosts_{std::move(hosts)}, schemes_{std::move(schemes)}, written_{std::move(written)} {}
    [[nodiscard]] auto complaint(const value& of) const -> std::string_view override {
        const auto* const text = of.as_string();
        if (text == nullptr) return not_a_string;
        const auto place = parse_url(*text);
        if (!place) return "is not a plain URL";
        if (std::ranges::find(schemes_, place->scheme) == schemes_.end())
            return "has no permitted scheme";
        return hosts_.holds(*place) ? std::string_view{} : "is not a URL of a permitted host";
    }
    [[nodiscard]] auto describe() const -> std::string override {
        return "is a URL (" + quoted_list(schemes_) + ") of " + quoted_list(written_);
    }

private:
    host_list hosts_;
    std::vector<std::string> schemes_, written_;
};

class dash_matcher final : public matcher {
public:
    [[nodiscard]] auto complaint(const value& of) const -> std::string_view override {
        const auto* const text = of.as_string();
        if (text == nullptr) return not_a_string;
        return text->starts_with('-') ? "begins with a dash" : std::string_view{};
    }
    [[nodiscard]] auto describe() const -> std::string override {
        return "does not begin with a dash";
    }
};

class any_matcher final : public matcher {
public:
    [[nodiscard]] auto complaint(const value&) const -> std::string_view override { return {}; }
    [[nodiscard]] auto describe() const -> std::string override { return "may be anything"; }
};

// Decodes dots, slashes, backslashes and percent signs, however often they are escaped.
[[nodiscard]] auto decoded_separators(std::string_view text) -> std::string {
    std::string out;
    for (const char c : text) {
        out += c;
        while (out.size() >= 3 && out[out.size() - 3] == '%') {
            const auto code = hex_value(out[out.size() - 2]) * 16 + hex_value(out.back());
            const char meant = code == 0x2e                   ? '.'
                               : code == 0x2f || code == 0x5c ? '/'
                               : code == 0x25                 ? '%'
                                                              : '\0';
            if (meant == '\0') break;
            out.resize(out.size() - 3);
            out += meant;
        }
    }
    return out;
}

} // namespace

auto climbs(std::string_view text) -> bool {
    const auto decoded = decoded_separators(text);
    std::string_view rest{decoded};
    while (!rest.empty()) {
        const auto part = rest.substr(0, rest.find_first_of("/?#;"));
        if (part == "..") return true;
        rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    }
    return false;
}

auto compile(const std::string& text, std::string& why) -> pattern {
    re2::RE2::Options options{re2::RE2::Quiet};
    options.set_max_mem(8LL << 20);
    auto out = std::make_shared<const re2::RE2>(text, options);
    if (out->ok()) return out;
    why = out->error();
    return nullptr;
}

auto below_path(std::vector<root_ptr> roots, relative paths) -> matcher_ptr {
    return std::make_shared<const below_matcher>(std::move(roots), paths);
}
auto begins_with(std::string prefix, std::vector<std::string> directories) -> matcher_ptr {
    return std::make_shared<const prefix_matcher>(std::move(prefix), std::move(directories));
}
auto one_of(std::vector<value> values) -> matcher_ptr {
    return std::make_shared<const choice_matcher>(std::move(values));
}
auto matches(pattern whole) -> matcher_ptr {
    return std::make_shared<const pattern_matcher>(std::move(whole));
}
auto in_range(number_bounds bounds) -> matcher_ptr {
    return std::make_shared<const range_matcher>(bounds);
}
auto of_length(length_bounds bounds) -> matcher_ptr {
    return std::make_shared<const length_matcher>(bounds);
}
auto url_of(host_list hosts, std::vector<std::string> schemes, std::vector<std::string> written)
    -> matcher_ptr {
    return std::make_shared<const url_matcher>(std::move(hosts), std::move(schemes),
                                               std::move(written));
}
auto no_leading_dash() -> matcher_ptr { return std::make_shared<const dash_matcher>(); }
auto any_value() -> matcher_ptr { return std::make_shared<const any_matcher>(); }

} // namespace glove::policy
