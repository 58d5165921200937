// The only user of the JSON library. Boost.JSON's streaming parser knows the grammar, UTF-8 and
// surrogates; the handler here builds the value, and enforces the limits and unique names.
//
// Number conversion is not left to the library: the text is kept, so no number can change.
#include "json_numbers.hpp"
#include <algorithm>
#include <array>
#include <boost/json/basic_parser_impl.hpp>
#include <boost/system/error_code.hpp>
#include <cstddef>
#include <glove/wire/json.hpp>
#include <iterator>
#include <utility>

namespace glove::wire::json {

namespace {

namespace bj = boost::json;
using boost::system::error_code; // bj has an alias, until 1.86

constexpr const char* out_of_range = "the exponent is out of range";

struct level {
    kind type;
    std::size_t first; // of its values
    std::size_t names; // where those of its members begin
};

struct refusal {
    errc code = errc::invalid_input;
    std::string_view step;
    std::string what;
};

// Sorting keeps hostile objects at n log n, where a hash table could be made to collide.
[[nodiscard]] auto repeated_name(const object& members) -> const std::string* {
    constexpr std::size_t few = 12;
    if (members.size() <= few) {
        for (std::size_t i = 1; i < members.size(); ++i)
            for (std::size_t j = 0; j < i; ++j)
                if (members[i].name == members[j].name) return &members[i].name;
        return nullptr;
    }
    std::vector<const std::string*> names;
    names.reserve(members.size());
    for (const auto& m : members) names.push_back(&m.name);
    const auto same = [](const auto* a, const auto* b) { return *a == *b; };
    std::sort(names.begin(), names.end(), [](const auto* a, const auto* b) { return *a < *b; });
    const auto found = std::adjacent_find(names.begin(), names.end(), same);
    return found == names.end() ? nullptr : *found;
}

class builder {
public:
    // The library's own limits are constants of the type; the ones that count are in `bounds_`.
    static constexpr std::size_t max_array_size = static_cast<std::size_t>(-1);
    static constexpr std::size_t max_object_size = static_cast<std::size_t>(-1);
    static constexpr std::size_t max_string_size = static_cast<std::size_t>(-1);
    static constexpr std::size_t max_key_size = static_cast<std::size_t>(-1);

    explicit builder(const limits& bounds) : bounds_{bounds} {}

    auto on_document_begin(error_code&) -> bool { return true; }
    auto on_document_end(error_code&) -> bool { return true; }
    auto on_array_begin(error_code& ec) -> bool { return open(kind::array, ec); }
    auto on_object_begin(error_code& ec) -> bool { return open(kind::object, ec); }

    auto on_array_end(std::size_t, error_code& ec) -> bool {
        const auto from = values_.begin() + static_cast<std::ptrdiff_t>(top().first);
        array done{std::make_move_iterator(from), std::make_move_iterator(values_.end())};
        drop_level();
        return attach(std::move(done), ec);
    }
    auto on_object_end(std::size_t, error_code& ec) -> bool {
        const auto [type, first, first_name] = top();
        object done;
        done.reserve(count());
        for (std::size_t i = 0; i < count(); ++i)
            done.push_back({std::move(names_[first_name + i]), std::move(values_[first + i])});
        drop_level();
        if (const auto* name = repeated_name(done))
            return refuse(ec, errc::invalid_input, "json.repeated",
                          "the member \"" + readable_name(*name) + "\" appears twice");
        return attach(std::move(done), ec);
    }

    auto on_key_part(std::string_view part, std::size_t, error_code& ec) -> bool {
        return gather(part, ec);
    }
    auto on_key(std::string_view part, std::size_t, error_code& ec) -> bool {
        if (!gather(part, ec)) return false;
        if (count() == bounds_.members)
            return refuse(ec, errc::limit_exceeded, "json.members", "the object has too many");
        names_.push_back(std::exchange(text_, {}));
        return true;
    }
    auto on_string_part(std::string_view part, std::size_t, error_code& ec) -> bool {
        return gather(part, ec);
    }
    auto on_string(std::string_view part, std::size_t, error_code& ec) -> bool {
        return gather(part, ec) && admit(ec) && attach(std::exchange(text_, {}), ec);
    }

    auto on_number_part(std::string_view part, error_code& ec) -> bool {
        if (part.size() > bounds_.number_bytes || text_.size() > bounds_.number_bytes - part.size())
            return refuse(ec, errc::limit_exceeded, "json.number", "the number is too long");
        text_.append(part.data(), part.size());
        return true;
    }
    auto on_int64(std::int64_t, std::string_view part, error_code& ec) -> bool {
        return finish_number(part, ec);
    }
    auto on_uint64(std::uint64_t, std::string_view part, error_code& ec) -> bool {
        return finish_number(part, ec);
    }
    auto on_double(double, std::string_view part, error_code& ec) -> bool {
        return finish_number(part, ec);
    }
    auto on_bool(bool truth, error_code& ec) -> bool { return admit(ec) && attach(truth, ec); }
    auto on_null(error_code& ec) -> bool { return admit(ec) && attach(value{}, ec); }

    // The reader never asks for comments.
    auto on_comment_part(std::string_view, error_code&) -> bool { return false; }
    auto on_comment(std::string_view, error_code&) -> bool { return false; }

    [[nodiscard]] auto take_root() -> value { return std::move(root_); }
    [[nodiscard]] auto why() const noexcept -> const std::optional<refusal>& { return why_; }
    [[nodiscard]] auto path() const -> std::string {
        std::string out = "$";
        for (std::size_t i = 0; i < depth_; ++i) {
            const auto& at = levels_[i];
            const bool inmost = i + 1 == depth_;
            const auto count = (inmost ? values_.size() : levels_[i + 1].first) - at.first;
            const auto names = (inmost ? names_.size() : levels_[i + 1].names) - at.names;
            if (at.type == kind::array) out.append("[").append(std::to_string(count)).append("]");
            else if (names > count) out.append(".").append(readable_name(names_[at.names + count]));
        }
        return out;
    }

private:
    auto refuse(error_code& ec, errc code, step_name step, std::string what) -> bool {
        why_ = refusal{code, step.text, std::move(what)};
        ec = bj::error::exception; // any code stops the parser; `why_` is the answer
        return false;
    }

    // Every value passes here before it is stored.
    auto admit(error_code& ec) -> bool {
        if (total_ == bounds_.values)
            return refuse(ec, errc::limit_exceeded, "json.values", "the text holds too many");
        ++total_;
        if (depth_ != 0 && top().type == kind::array && count() == bounds_.elements)
            return refuse(ec, errc::limit_exceeded, "json.elements", "the array has too many");
        return true;
    }

    auto open(kind type, error_code& ec) -> bool {
        if (depth_ >= std::min(bounds_.depth, max_depth))
            return refuse(ec, errc::limit_exceeded, "json.depth", "nested too deeply");
        if (!admit(ec)) return false;
        if (depth_ == 0) {
            names_.reserve(few_values);
            values_.reserve(few_values);
        }
        levels_[depth_++] = {type, values_.size(), names_.size()};
        return true;
    }

    [[nodiscard]] auto top() const -> const level& { return levels_[depth_ - 1]; }
    [[nodiscard]] auto count() const -> std::size_t { return values_.size() - top().first; }
    void drop_level() {
        values_.resize(top().first);
        names_.resize(top().names);
        --depth_;
    }

    auto attach(value done, error_code&) -> bool {
        if (depth_ == 0) {
            root_ = std::move(done);
            return true;
        }
        values_.push_back(std::move(done));
        return true;
    }

    auto gather(std::string_view part, error_code& ec) -> bool {
        if (part.size() > bounds_.string_bytes || text_.size() > bounds_.string_bytes - part.size())
            return refuse(ec, errc::limit_exceeded, "json.string", "the string is too long");
        if (bounds_.zero == nul::refused && std::find(part.begin(), part.end(), '\0') != part.end())
            return refuse(ec, errc::invalid_input, "json.nul", "a string holds NUL");
        text_.append(part.data(), part.size());
        return true;
    }

    auto finish_number(std::string_view part, error_code& ec) -> bool {
        if (!on_number_part(part, ec) || !admit(ec)) return false;
        if (!scan_number(text_).exponent_fits)
            return refuse(ec, errc::invalid_input, "json.number", out_of_range);
        auto made = make_number(std::exchange(text_, {}));
        if (!made) return refuse(ec, errc::invalid_input, "json.number", "not a number");
        if (bounds_.form == numbers::integers && made->type() != kind::integer)
            return refuse(ec, errc::invalid_input, "json.number", "not a 64-bit integer");
        return attach(std::move(*made), ec);
    }

    // Enough for what is read most, so that it costs one allocation each.
    static constexpr std::size_t few_values = 16;

    limits bounds_;
    std::array<level, max_depth> levels_; // only the first `depth_` are any
    std::size_t depth_ = 0;
    std::vector<value> values_; // of all levels
    std::vector<std::string> names_;
    std::string text_;      // the string, name or number under construction
    std::size_t total_ = 0; // of values
    value root_;
    std::optional<refusal> why_;
};

// Boost 1.81 marks failure by the parser's own address, so a text that ends exactly there would be
// refused for no reason. The gap keeps every other object's end away from it.
struct padded_parser {
    std::max_align_t gap;
    bj::basic_parser<builder> parser;
};

[[nodiscard]] auto refusal_of(const error_code& ec) -> refusal {
    const auto is = [&](bj::error e) { return ec == bj::make_error_code(e); };
    if (is(bj::error::exponent_overflow)) return {errc::invalid_input, "json.number", out_of_range};
    if (is(bj::error::incomplete))
        return {errc::invalid_input, "json.syntax", "the text ends early"};
    return {errc::invalid_input, "json.syntax", "syntax error"};
}

[[nodiscard]] auto fail_at(const refusal& why, std::size_t offset, const std::string& path) {
    return std::unexpected(error{why.code,
                                 why.step,
                                 0,
                                 "byte " + std::to_string(offset) + " at " + path + ": " + why.what,
                                 {}});
}

} // namespace

auto read(std::string_view text, const limits& bounds) -> result<value> {
    if (text.size() > bounds.bytes)
        return fail(errc::limit_exceeded, "json.size",
                    std::to_string(text.size()) + " bytes; " + std::to_string(bounds.bytes) +
                        " are allowed");
    bj::parse_options options;
    options.max_depth = max_depth + 1; // the builder's limit is reached first
    padded_parser padded{{}, bj::basic_parser<builder>{options, bounds}};
    auto& parser = padded.parser;
    error_code ec;
    const auto consumed = parser.write_some(false, text.data(), text.size(), ec);
    auto& built = parser.handler();
    if (ec) return fail_at(built.why().value_or(refusal_of(ec)), consumed, built.path());
    if (consumed != text.size() || !parser.done())
        return fail_at({errc::invalid_input, "json.syntax", "something follows the value"},
                       consumed, "$");
    return built.take_root();
}

} // namespace glove::wire::json
