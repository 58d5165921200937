// A scanner of its own, because every message passes here: one pass, a stack of at most
// `max_outline_depth` levels, and no memory but what an earlier message left. It never copies or
// changes the text.
#include "json_numbers.hpp"
#include "json_strings.hpp"
#include "repeated_names.hpp"
#include <algorithm>
#include <array>
#include <glove/wire/json_outline.hpp>
#include <glove/wire/json_writer.hpp>
#include <optional>
#include <utility>

namespace glove::wire::json {

namespace {

// Not initialized: there are many, and each is set when it is opened.
struct level {
    kind type;
    bool named;        // the value of its last name is being read
    std::size_t count; // members or elements so far
    std::size_t names; // where the members' names begin
    const char* part;  // where the value that is being read begins
};

struct refusal {
    errc code = errc::invalid_input;
    std::string_view step;
    std::string what;
};

// What one large message needed is not kept for the small ones that follow.
template<class Vector> void forget(Vector& of) {
    constexpr std::size_t kept = 64UL << 10; // bytes
    if (of.capacity() * sizeof(typename Vector::value_type) > kept) of = {};
    of.clear();
}

[[nodiscard]] auto find_in(std::span<const slice> members, std::string_view name) noexcept
    -> const slice* {
    for (const auto& member : members)
        if (member.name == name) return &member;
    return nullptr;
}

} // namespace

struct outline::scratch {
    std::vector<std::string_view> names; // of the objects that are open
    std::vector<char> decoded;           // names that have escapes
    repeated_names<> repeated;
    std::array<level, max_outline_depth> levels;
};

class outline_reader {
public:
    outline_reader(outline& out, std::string_view text, const limits& bounds)
        : begin_{text.data()}, at_{begin_}, end_{begin_ + text.size()}, bounds_{bounds},
          depth_limit_{std::min(bounds.depth, max_outline_depth)}, out_{out},
          scratch_{*out.scratch_} {}

    auto read() -> result<> {
        if (read_text()) return {};
        return std::unexpected(
            error{why_.code,
                  why_.step,
                  0,
                  "byte " + std::to_string(at_ - begin_) + " at " + path() + ": " + why_.what,
                  {}});
    }

private:
    auto read_text() -> bool {
        skip_space();
        if (at_ != end_ && *at_ != '{') return refuse_syntax("the text is not an object");
        if (at_ == end_) return refuse_syntax();
        if (!open(kind::object)) return false;
        skip_space();
        if (ends_here()) (void)close();
        while (depth_ != 0)
            if (!read_part()) return false;
        skip_space();
        return at_ == end_ || refuse_syntax("something follows the value");
    }

    // A member or an element, and what ends after it.
    auto read_part() -> bool {
        if (top().type == kind::object && !read_name()) return false;
        top().part = at_;
        const auto depth = depth_;
        if (!read_value()) return false;
        if (depth_ > depth) {
            skip_space();
            if (!ends_here()) return true;
        } else finish_part(kind_);
        return read_ends();
    }

    // Every level that ends here, and the comma before the next part.
    auto read_ends() -> bool {
        for (;;) {
            skip_space();
            if (peek() == ',') {
                ++at_;
                skip_space();
                return !ends_here() || refuse_syntax();
            }
            if (!ends_here()) return refuse_syntax();
            if (!close()) return false;
            if (depth_ == 0) return true;
        }
    }

    // One that has no parts, or how one begins that has.
    auto read_value() -> bool {
        switch (peek()) {
        case '{': return open(kind::object);
        case '[': return open(kind::array);
        case '"': kind_ = kind::string; return read_string() && admit();
        case 't': return read_word("true", kind::boolean);
        case 'f': return read_word("false", kind::boolean);
        case 'n': return read_word("null", kind::null);
        default: return read_number();
        }
    }

    auto open(kind type) -> bool {
        if (depth_ >= depth_limit_)
            return refuse(errc::limit_exceeded, "json.depth", "nested too deeply");
        if (!admit()) return false;
        scratch_.levels[depth_++] = {.type = type,
                                     .named = false,
                                     .count = 0,
                                     .names = scratch_.names.size(),
                                     .part = nullptr};
        if (depth_ == 2) out_.outer_.back().first = static_cast<std::uint32_t>(out_.inner_.size());
        ++at_;
        return true;
    }

    auto close() -> bool {
        const auto& closed = top();
        ++at_;
        --depth_;
        if (closed.type == kind::object && !close_names(closed.names)) return false;
        if (depth_ != 0) finish_part(closed.type);
        return true;
    }

    auto close_names(std::size_t first) -> bool {
        auto& names = scratch_.names;
        if (const auto* name = scratch_.repeated.find(std::span{names}.subspan(first)))
            return refuse(errc::invalid_input, "json.repeated",
                          "the member \"" + readable_name(*name) + "\" appears twice");
        names.resize(first);
        return true;
    }

    auto read_name() -> bool {
        if (peek() != '"') return refuse_syntax();
        if (!read_string()) return false;
        if (top().count == bounds_.members)
            return refuse(errc::limit_exceeded, "json.members", "the object has too many");
        const auto name = escaped_ ? decode_name() : literal_;
        scratch_.names.push_back(name);
        ++top().count;
        top().named = true;
        if (depth_ == 1) out_.outer_.emplace_back().name = name;
        else if (is_inner()) out_.inner_.emplace_back().name = name;
        skip_space();
        if (peek() != ':') return refuse_syntax();
        ++at_;
        skip_space();
        return true;
    }

    void finish_part(kind type) {
        auto& at = top();
        if (at.type == kind::array) ++at.count;
        at.named = false;
        if (depth_ > 2) return;
        const std::string_view text{at.part, static_cast<std::size_t>(at_ - at.part)};
        if (depth_ == 1) {
            auto& found = out_.outer_.back();
            found.text = text;
            found.type = type;
            if (type == kind::object)
                found.count = static_cast<std::uint32_t>(out_.inner_.size()) - found.first;
        } else if (is_inner()) {
            out_.inner_.back().text = text;
            out_.inner_.back().type = type;
        }
    }

    // Leaves the literal without its quotes in `literal_`.
    auto read_string() -> bool {
        const char* const from = ++at_;
        escaped_ = false;
        saved_ = 0;
        at_ = strings::plain_end(at_, end_);
        if (peek() != '"' && !read_rest_of_string()) return false;
        literal_ = {from, static_cast<std::size_t>(at_ - from)};
        ++at_;
        if (literal_.size() - saved_ > bounds_.string_bytes)
            return refuse(errc::limit_exceeded, "json.string", "the string is too long");
        return true;
    }

    // Up to its quote, from the first character that is not plain.
    [[gnu::noinline]] auto read_rest_of_string() -> bool {
        bool has_nul = false;
        for (; peek() != '"'; at_ = strings::plain_end(at_, end_)) {
            if (at_ == end_) return refuse_syntax();
            if (*at_ == '\\') {
                const auto found = strings::read_escape(at_, end_);
                if (found.literal == 0) return refuse_syntax();
                at_ += found.literal;
                saved_ += found.literal - found.bytes();
                has_nul = has_nul || found.code == 0;
                escaped_ = true;
                continue;
            }
            if (strings::is_ascii(*at_)) return refuse_syntax(); // a control character
            at_ = strings::beyond_ascii_end(at_, end_, out_.breaks_);
            if (at_ != end_ && !strings::is_ascii(*at_)) return refuse_syntax();
        }
        if (has_nul && bounds_.zero == nul::refused)
            return refuse(errc::invalid_input, "json.nul", "a string holds NUL");
        return true;
    }

    auto decode_name() -> std::string_view {
        auto& memory = scratch_.decoded;
        // At the first, so that all names of the rest fit: what slices point to never moves.
        if (memory.empty()) memory.reserve(literal_.size() + static_cast<std::size_t>(end_ - at_));
        const auto from = memory.size();
        memory.resize(from + literal_.size());
        auto* const to = memory.data() + from;
        const auto size = static_cast<std::size_t>(strings::decode(literal_, to) - to);
        memory.resize(from + size);
        return {to, size};
    }

    auto read_number() -> bool {
        const auto found = scan_number({at_, static_cast<std::size_t>(end_ - at_)});
        if (found.size == 0) return refuse_syntax();
        at_ += found.size;
        if (found.size > bounds_.number_bytes)
            return refuse(errc::limit_exceeded, "json.number", "the number is too long");
        if (!admit()) return false;
        if (!found.exponent_fits)
            return refuse(errc::invalid_input, "json.number", "the exponent is out of range");
        if (!found.is_integer && bounds_.form == numbers::integers)
            return refuse(errc::invalid_input, "json.number", "not a 64-bit integer");
        kind_ = found.is_integer ? kind::integer : kind::number;
        return true;
    }

    auto read_word(std::string_view word, kind type) -> bool {
        if (!std::string_view{at_, end_}.starts_with(word)) return refuse_syntax();
        at_ += word.size();
        kind_ = type;
        return admit();
    }

    // Every value passes here before it counts.
    auto admit() -> bool {
        if (values_ == bounds_.values)
            return refuse(errc::limit_exceeded, "json.values", "the text holds too many");
        ++values_;
        if (depth_ != 0 && top().type == kind::array && top().count == bounds_.elements)
            return refuse(errc::limit_exceeded, "json.elements", "the array has too many");
        return true;
    }

    void skip_space() noexcept {
        if (peek() > ' ') return; // mostly there is none
        while (strings::begins_with_spaces(at_, end_)) at_ += 8;
        for (; at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t'); ++at_)
            out_.breaks_ = out_.breaks_ || *at_ == '\n' || *at_ == '\r';
    }
    // NUL, which never stands outside of a string, at the end.
    [[nodiscard]] auto peek() const noexcept -> char { return at_ == end_ ? '\0' : *at_; }
    [[nodiscard]] auto top() noexcept -> level& { return scratch_.levels[depth_ - 1]; }
    [[nodiscard]] auto ends_here() noexcept -> bool {
        return peek() == (top().type == kind::object ? '}' : ']');
    }
    [[nodiscard]] auto is_inner() noexcept -> bool {
        return depth_ == 2 && top().type == kind::object;
    }

    // Out of the way of what is read without fault.
    [[gnu::cold, gnu::noinline]] auto refuse(errc code, step_name step, std::string_view what)
        -> bool {
        why_ = {code, step.text, std::string{what}};
        return false;
    }
    [[gnu::cold, gnu::noinline]] auto refuse_syntax(std::string_view what = "syntax error")
        -> bool {
        return refuse(errc::invalid_input, "json.syntax",
                      at_ == end_ ? "the text ends early" : what);
    }
    [[nodiscard]] auto path() const -> std::string {
        std::string out = "$";
        for (std::size_t i = 0; i < depth_; ++i) {
            const auto& at = scratch_.levels[i];
            if (at.type == kind::array)
                out.append("[").append(std::to_string(at.count)).append("]");
            else if (at.named)
                out.append(".").append(readable_name(scratch_.names[at.names + at.count - 1]));
        }
        return out;
    }

    const char* begin_;
    const char* at_;
    const char* end_;
    const limits& bounds_;
    std::size_t depth_limit_;
    outline& out_;
    outline::scratch& scratch_;
    std::size_t depth_ = 0;
    std::size_t values_ = 0;
    kind kind_ = kind::null;   // of the value just read
    std::string_view literal_; // the string just read
    std::size_t saved_ = 0;    // bytes of it, by decoding
    bool escaped_ = false;     // it has escapes
    refusal why_;
};

outline::outline() = default;
outline::outline(outline&&) noexcept = default;
auto outline::operator=(outline&&) noexcept -> outline& = default;
outline::~outline() = default;

auto outline::read(std::string_view text, const limits& bounds) -> result<> {
    if (!scratch_) scratch_ = std::make_unique_for_overwrite<scratch>();
    breaks_ = false;
    forget(outer_);
    forget(inner_);
    forget(scratch_->names);
    forget(scratch_->decoded);
    scratch_->repeated.forget();
    if (text.size() > bounds.bytes)
        return fail(errc::limit_exceeded, "json.size",
                    std::to_string(text.size()) + " bytes; " + std::to_string(bounds.bytes) +
                        " are allowed");
    auto done = outline_reader{*this, text, bounds}.read();
    if (!done) outer_.clear(), inner_.clear();
    return done;
}

auto outline::find(std::string_view name) const noexcept -> const slice* {
    return find_in(outer_, name);
}

auto outline::find_inside(const slice& of, std::string_view name) const noexcept -> const slice* {
    return find_in(inside(of), name);
}

auto decoded_string(std::string_view literal) -> std::string {
    if (literal.size() < 2) return {};
    const auto inner = literal.substr(1, literal.size() - 2);
    std::string out(inner.size(), '\0');
    out.resize(static_cast<std::size_t>(strings::decode(inner, out.data()) - out.data()));
    return out;
}

namespace {

// Where the literal ends that begins at `at`, behind its quote.
[[nodiscard]] auto literal_end(const char* at, const char* end, bool& escaped) noexcept -> const
    char* {
    for (at = strings::plain_end(at + 1, end); at != end && *at != '"';
         at = strings::plain_end(at, end)) {
        const bool escapes = *at == '\\' && end - at > 1;
        escaped = escaped || escapes;
        at += escapes ? 2 : 1;
    }
    return at == end ? at : at + 1;
}

[[nodiscard]] auto is_space(char c) noexcept -> bool {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

} // namespace

void append_rewritten(std::string& out, std::string_view text) {
    const char* at = text.data();
    const char* const end = at + text.size();
    while (at != end) {
        const char* const from = at;
        bool escaped = false;
        if (*at == '"') at = literal_end(at, end, escaped);
        else
            while (at != end && *at != '"' && !is_space(*at)) ++at;
        // A number is never changed, so its text is what the writer writes.
        if (escaped) append_quoted(out, decoded_string({from, at}));
        else out.append(from, at);
        while (at != end && is_space(*at)) ++at;
    }
}

} // namespace glove::wire::json
