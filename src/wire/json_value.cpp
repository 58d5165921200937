// Values are made by the reader and never change; numbers keep their text.
#include <algorithm>
#include <charconv>
#include <glove/wire/json.hpp>
#include <glove/wire/json_writer.hpp>
#include <memory>

namespace glove::wire::json {

namespace {

[[nodiscard]] auto take_digits(std::string_view& text) noexcept -> std::size_t {
    std::size_t n = 0;
    while (n < text.size() && text[n] >= '0' && text[n] <= '9') ++n;
    text.remove_prefix(n);
    return n;
}

[[nodiscard]] auto take(std::string_view& text, std::string_view any_of) noexcept -> bool {
    if (text.empty() || any_of.find(text.front()) == std::string_view::npos) return false;
    text.remove_prefix(1);
    return true;
}

enum class form : std::uint8_t { none, integer, other };

[[nodiscard]] auto classify_number(std::string_view text) noexcept -> form {
    (void)take(text, "-");
    if (!take(text, "0") && take_digits(text) == 0) return form::none;
    if (text.empty()) return form::integer;
    if (take(text, ".") && take_digits(text) == 0) return form::none;
    if (take(text, "eE")) {
        (void)take(text, "+-");
        if (take_digits(text) == 0) return form::none;
    }
    return text.empty() ? form::other : form::none;
}

template<class I> [[nodiscard]] auto parse(std::string_view text) noexcept -> std::optional<I> {
    I out{};
    const auto* end = std::to_address(text.end());
    const auto [stop, code] = std::from_chars(std::to_address(text.begin()), end, out);
    if (code != std::errc{} || stop != end) return std::nullopt;
    return out;
}

// Steps over texts that `read` accepted; `at` never passes the end.
class scanner {
public:
    explicit scanner(std::string_view text) noexcept : text_{text} {}

    void skip_space() noexcept {
        while (!done() && std::string_view{" \t\r\n"}.find(text_[at_]) != std::string_view::npos)
            ++at_;
    }
    [[nodiscard]] auto take(char c) noexcept -> bool {
        skip_space();
        if (done() || text_[at_] != c) return false;
        ++at_;
        return true;
    }
    [[nodiscard]] auto take_name() noexcept -> bool {
        skip_space();
        if (done() || text_[at_] != '"') return false;
        skip_string();
        return true;
    }
    [[nodiscard]] auto take_value() noexcept -> std::string_view {
        skip_space();
        const auto from = at_;
        std::size_t open = 0;
        while (!done()) {
            const char c = text_[at_];
            if (c == '"') skip_string();
            else if (c == '{' || c == '[') ++open, ++at_;
            else if (open == 0 && (c == ',' || c == '}' || c == ']')) break;
            else if (c == '}' || c == ']') --open, ++at_;
            else ++at_;
        }
        auto out = text_.substr(from, at_ - from);
        while (!out.empty() &&
               std::string_view{" \t\r\n"}.find(out.back()) != std::string_view::npos)
            out.remove_suffix(1);
        return out;
    }

private:
    [[nodiscard]] auto done() const noexcept -> bool { return at_ >= text_.size(); }
    void skip_string() noexcept {
        for (++at_; !done() && text_[at_] != '"'; ++at_)
            if (text_[at_] == '\\') ++at_;
        at_ = std::min(at_ + 1, text_.size());
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

} // namespace

auto to_string(kind of) noexcept -> std::string_view {
    switch (of) {
    case kind::null: return "null";
    case kind::boolean: return "boolean";
    case kind::integer: return "integer";
    case kind::number: return "number";
    case kind::string: return "string";
    case kind::array: return "array";
    case kind::object: return "object";
    }
    return "value";
}

auto value::type() const noexcept -> kind {
    constexpr kind kinds[] = {kind::null,   kind::boolean, kind::integer, kind::integer,
                              kind::number, kind::string,  kind::array,   kind::object};
    return kinds[data_.index()];
}

auto value::as_bool() const noexcept -> std::optional<bool> {
    if (const auto* truth = get<bool>()) return *truth;
    return std::nullopt;
}

auto value::as_unsigned() const noexcept -> std::optional<std::uint64_t> {
    if (const auto* integer = get<std::uint64_t>()) return *integer;
    return std::nullopt;
}

auto value::as_signed() const noexcept -> std::optional<std::int64_t> {
    if (const auto* integer = get<std::int64_t>()) return *integer;
    const auto* integer = get<std::uint64_t>();
    if (integer == nullptr || !std::in_range<std::int64_t>(*integer)) return std::nullopt;
    return static_cast<std::int64_t>(*integer);
}

auto value::find(std::string_view name) const noexcept -> const value* {
    const auto* members = as_object();
    if (members == nullptr) return nullptr;
    const auto found = std::find_if(members->begin(), members->end(),
                                    [&](const member& m) { return m.name == name; });
    return found == members->end() ? nullptr : &found->data;
}

auto operator==(const value& a, const value& b) -> bool { return a.data_ == b.data_; }

auto make_number(std::string_view text) -> std::optional<value> {
    const auto found = classify_number(text);
    if (found == form::none) return std::nullopt;
    if (found == form::integer && text != "-0") {
        if (text.front() == '-') {
            if (const auto integer = parse<std::int64_t>(text)) return value{*integer};
        } else if (const auto integer = parse<std::uint64_t>(text)) return value{*integer};
    }
    return value{number{std::string{text}}};
}

auto member_slices(std::string_view text) -> std::vector<std::string_view> {
    std::vector<std::string_view> out;
    scanner at{text};
    if (!at.take('{') || at.take('}')) return out;
    do {
        if (!at.take_name() || !at.take(':')) return {};
        out.push_back(at.take_value());
    } while (at.take(','));
    return out;
}

auto element_slices(std::string_view text) -> std::vector<std::string_view> {
    std::vector<std::string_view> out;
    scanner at{text};
    if (!at.take('[') || at.take(']')) return out;
    do out.push_back(at.take_value());
    while (at.take(','));
    return out;
}

auto readable_name(std::string_view name) -> std::string {
    constexpr std::size_t longest = 64;
    std::string out{name.substr(0, longest)};
    for (char& c : out)
        if (c < ' ' || c > '~') c = '?';
    if (name.size() > longest) out += "...";
    return out;
}

void writer::element(const value& tree) {
    switch (tree.type()) {
    case kind::null: element(nullptr); return;
    case kind::boolean: element(tree.as_bool().value_or(false)); return;
    case kind::integer:
        if (const auto integer = tree.as_unsigned()) element(*integer);
        else element(tree.as_signed().value_or(0));
        return;
    case kind::number: raw(tree.as_number()->text()); return;
    case kind::string: element(*tree.as_string()); return;
    case kind::array:
        begin_array();
        for (const auto& item : *tree.as_array()) element(item);
        end_array();
        return;
    case kind::object:
        begin_object();
        for (const auto& item : *tree.as_object()) member(item.name, item.data);
        end_object();
        return;
    }
}

auto to_text(const value& tree) -> std::string {
    std::string out;
    writer{out}.element(tree);
    return out;
}

} // namespace glove::wire::json
