// One pass of the outline reader validates the text; what is judged here are a handful of members.
#include <algorithm>
#include <array>
#include <glove/base/ascii.hpp>
#include <glove/mcp/framing.hpp>
#include <glove/mcp/message.hpp>
#include <glove/wire/json_writer.hpp>

namespace glove::mcp {

namespace {

namespace json = wire::json;

constexpr std::size_t longest_id = 1024; // bytes of the token

// An integer of any size: JSON's grammar leaves nothing else that is made of digits.
[[nodiscard]] auto is_whole(std::string_view number) noexcept -> bool {
    if (number.starts_with('-')) number.remove_prefix(1);
    return std::ranges::all_of(number, is_digit);
}

[[nodiscard]] auto is_id(json::kind type, std::string_view token) noexcept -> bool {
    if (token.size() > longest_id) return false;
    return type == json::kind::string || type == json::kind::integer ||
           (type == json::kind::number && is_whole(token));
}

// A token that no reader has seen.
[[nodiscard]] auto is_id(std::string_view token) -> bool {
    if (token.size() > longest_id) return false;
    const auto read = json::read(token, message_limits());
    return read && is_id(read->type(), token);
}

// Steps over a text that may be malformed, and finds the id of its outermost object.
class id_search {
public:
    explicit id_search(std::string_view text) noexcept : text_{text} {}

    [[nodiscard]] auto find() -> std::string_view {
        skip_space();
        if (!take('{')) return {};
        depth_ = 1;
        while (depth_ > 0 && at_ < text_.size())
            if (!step()) return {};
        return found_ == 1 && is_id(token_) ? token_ : std::string_view{};
    }

private:
    // False when there can be no answer.
    [[nodiscard]] auto step() -> bool {
        const char c = text_[at_];
        if (c == '"') {
            const auto literal = take_string();
            return depth_ != 1 || !std::exchange(name_next_, false) || look_at(literal);
        }
        if (c == '{' || c == '[') ++depth_;
        if (c == '}' || c == ']') --depth_;
        if (c == ',' && depth_ == 1) name_next_ = true;
        ++at_;
        return true;
    }
    [[nodiscard]] auto look_at(std::string_view name) -> bool {
        if (name.contains('\\')) return false; // it may stand for anything
        if (name != "\"id\"") return true;
        skip_space();
        if (!take(':')) return false;
        skip_space();
        token_ = at_ < text_.size() && text_[at_] == '"' ? take_string() : take_number();
        return ++found_ == 1;
    }
    // What ends with the text may have been cut, and is none.
    [[nodiscard]] auto take_string() noexcept -> std::string_view {
        const auto from = at_++;
        while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
        if (at_ >= text_.size()) return {};
        ++at_;
        return text_.substr(from, at_ - from);
    }
    [[nodiscard]] auto take_number() noexcept -> std::string_view {
        const auto from = at_;
        while (at_ < text_.size() && (is_digit(text_[at_]) || text_[at_] == '-')) ++at_;
        skip_space();
        const bool whole = at_ < text_.size() && (text_[at_] == ',' || text_[at_] == '}');
        auto token = whole ? text_.substr(from, at_ - from) : std::string_view{};
        while (!token.empty() && !is_digit(token.back())) token.remove_suffix(1);
        return token;
    }
    void skip_space() noexcept {
        at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size());
    }
    [[nodiscard]] auto take(char c) noexcept -> bool {
        if (at_ >= text_.size() || text_[at_] != c) return false;
        ++at_;
        return true;
    }

    std::string_view text_;
    std::size_t at_ = 0, depth_ = 0, found_ = 0;
    bool name_next_ = true;
    std::string_view token_;
};

// Looks at how a message ends, from behind. What stands there is taken for the end of an object, so
// that nothing of it lies within a string.
class last_members {
public:
    explicit last_members(std::string_view text) noexcept : text_{text} {}

    [[nodiscard]] auto find_id() -> std::string_view {
        if (!drop('}')) return {};
        for (int i = 0; i < 2; ++i) {
            const auto token = take_value();
            const auto name = drop(':') ? take_value() : std::string_view{};
            skip_space();
            if (token.empty() || name.empty() || !(text_.ends_with(',') || text_.ends_with('{')))
                return {};
            if (name == "\"id\"") return is_id(token) ? token : std::string_view{};
            if (name != "\"jsonrpc\"" || !drop(',')) return {};
        }
        return {};
    }

private:
    // A string without escapes, or a number; nothing else is an id.
    [[nodiscard]] auto take_value() noexcept -> std::string_view {
        skip_space();
        const auto end = text_.size();
        auto from = end;
        if (text_.ends_with('"')) {
            from = end < 2 ? text_.npos : text_.rfind('"', end - 2);
            if (from == text_.npos || text_.substr(from, end - from).contains('\\')) return {};
        } else
            while (from > 0 && (is_digit(text_[from - 1]) || text_[from - 1] == '-')) --from;
        const auto out = text_.substr(from);
        text_.remove_suffix(end - from);
        return out;
    }
    void skip_space() noexcept {
        while (!text_.empty() && std::string_view{" \t\r\n"}.contains(text_.back()))
            text_.remove_suffix(1);
    }
    [[nodiscard]] auto drop(char c) noexcept -> bool {
        skip_space();
        if (!text_.ends_with(c)) return false;
        text_.remove_suffix(1);
        return true;
    }
    std::string_view text_;
};

struct complaint {
    std::string_view step;
    code number;
    std::string_view words;
};
// What the outline's steps are for the sender. All but the first two leave a text whose id can be
// made out.
constexpr std::array complaints{
    complaint{"json.syntax", code::parse_error, "this is no JSON in UTF-8"},
    complaint{"json.size", code::too_large, "the message is longer than 16 MiB"},
    complaint{"json.repeated", code::invalid_request, "a member appears twice in an object"},
    complaint{"json.depth", code::invalid_request, "nested too deeply"},
    complaint{"json.members", code::invalid_request, "an object has more than 65536 members"},
    complaint{"json.elements", code::invalid_request, "an array has more than 1048576 elements"},
    complaint{"json.values", code::invalid_request, "the message has more than 1048576 values"},
    complaint{"json.string", code::invalid_request, "a string is longer than 16 MiB"},
    complaint{"json.number", code::invalid_request,
              "a number is longer than 1024 bytes or out of range"},
};

// Of a text that the outline refused.
[[nodiscard]] auto unreadable(std::string_view line, const error& why, std::size_t most_levels)
    -> refusal {
    const auto begin = line.find_first_not_of(" \t\r\n");
    const char first = begin == std::string_view::npos ? '\0' : line[begin];
    if (first == '[')
        return {code::invalid_request, "a batch is not accepted: send one message in a line"};
    if (first != '{') {
        const bool is_json = json::read(line, message_limits()).has_value();
        return is_json ? refusal{code::invalid_request, "a message is an object"}
                       : refusal{code::parse_error, std::string{complaints.front().words}};
    }
    const auto* found = std::ranges::find(complaints, why.step, &complaint::step);
    if (found == complaints.end()) found = complaints.begin();
    refusal out{found->number, std::string{found->words}};
    if (found->step == "json.depth")
        out.words = "nested more than " + std::to_string(most_levels) + " levels deep";
    if (found->number == code::invalid_request) out.id = made_out_id(line);
    return out;
}

[[nodiscard]] auto is_version(const json::slice* of) -> bool {
    if (of == nullptr || of->type != json::kind::string) return false;
    return of->text == "\"2.0\"" || json::decoded_string(of->text) == "2.0";
}

[[nodiscard]] auto begin_message(std::string_view id, std::size_t more) -> std::string {
    constexpr std::string_view head = R"({"jsonrpc":"2.0")";
    std::string out;
    out.reserve(head.size() + id.size() + more + 32);
    out = head;
    if (!id.empty()) out.append(R"(,"id":)").append(id);
    return out;
}

void put_method(std::string& out, std::string_view method, std::string_view params) {
    out += R"(,"method":)";
    json::append_quoted(out, method);
    if (!params.empty()) out.append(R"(,"params":)").append(params);
    out += '}';
}

constexpr json::limits agent_bounds{.bytes = longest_message,
                                    .depth = json::max_depth,
                                    .members = 1UL << 16,
                                    .elements = 1UL << 20,
                                    .values = 1UL << 20,
                                    .string_bytes = longest_message,
                                    .number_bytes = 1024,
                                    .form = json::numbers::any,
                                    .zero = json::nul::allowed};

} // namespace

auto message_limits() noexcept -> const json::limits& { return agent_bounds; }

auto server_message_limits() noexcept -> const json::limits& {
    static constexpr json::limits bounds = [] {
        auto out = agent_bounds;
        out.depth = json::max_outline_depth;
        return out;
    }();
    return bounds;
}

message_reader::message_reader(bool of_servers)
    : bounds_{of_servers ? server_message_limits() : message_limits()} {}

auto made_out_id(std::string_view line) -> std::string {
    const auto found = id_search{line}.find();
    return found.empty() ? "null" : std::string{found};
}

auto made_out_id(std::string_view head, std::string_view tail) -> std::string {
    auto found = made_out_id(head);
    if (found != "null") return found;
    const auto last = last_members{tail}.find_id();
    return last.empty() ? "null" : std::string{last};
}

auto message_reader::read(std::string_view line) -> std::expected<message, refusal> {
    if (const auto done = outline_.read(line, bounds_); !done)
        return std::unexpected(unreadable(line, done.error(), bounds_.depth));
    message out;
    const auto refuse = [&](std::string_view words) {
        refusal why{code::invalid_request, std::string{words}};
        if (!out.id.empty()) why.id = out.id;
        return std::unexpected(std::move(why));
    };
    if (const auto* id = outline_.find("id")) {
        if (!is_id(id->type, id->text))
            return refuse("an id is a string or an integer of at most 1024 bytes");
        out.id = id->text;
    }
    if (!is_version(outline_.find("jsonrpc"))) return refuse("jsonrpc must be \"2.0\"");

    const auto* const method = outline_.find("method");
    out.result = outline_.find("result");
    out.error = outline_.find("error");
    if ((method != nullptr) + (out.result != nullptr) + (out.error != nullptr) != 1)
        return refuse("a message has one of method, result and error");
    if (method != nullptr) {
        if (method->type != json::kind::string) return refuse("method must be a string");
        out.kind = out.id.empty() ? message_kind::notification : message_kind::request;
        out.method = json::decoded_string(method->text);
        out.params = outline_.find("params");
        if (out.params != nullptr && out.params->type != json::kind::object &&
            out.params->type != json::kind::array)
            return refuse("params must be an object or an array");
        return out;
    }
    if (out.id.empty()) return refuse("an answer needs an id");
    out.kind = out.result != nullptr ? message_kind::answer : message_kind::failure;
    if (out.kind == message_kind::failure) {
        const auto* const number = member(out.error, "code");
        const auto* const words = member(out.error, "message");
        if (number == nullptr || number->type != json::kind::integer || words == nullptr ||
            words->type != json::kind::string)
            return refuse("error must be an object with an integer code and a string message");
    }
    return out;
}

auto message_reader::member(const json::slice* object, std::string_view name) const noexcept
    -> const json::slice* {
    if (object == nullptr || object->type != json::kind::object) return nullptr;
    return outline_.find_inside(*object, name);
}

auto request_text(std::string_view id, std::string_view method, std::string_view params)
    -> std::string {
    auto out = begin_message(id, method.size() + params.size());
    put_method(out, method, params);
    return out;
}

auto notification_text(std::string_view method, std::string_view params) -> std::string {
    return request_text({}, method, params);
}

auto answer_text(std::string_view id, std::string_view result) -> std::string {
    auto out = begin_message(id, result.size());
    return out.append(R"(,"result":)").append(result).append("}");
}

auto failure_text(std::string_view id, code number, std::string_view words) -> std::string {
    std::string error = R"({"code":)" + std::to_string(static_cast<int>(number)) + R"(,"message":)";
    json::append_quoted(error, words);
    error += '}';
    return failure_text(id, error);
}

auto failure_text(std::string_view id, std::string_view error) -> std::string {
    auto out = begin_message(id, error.size());
    return out.append(R"(,"error":)").append(error).append("}");
}

auto tool_error_text(std::string_view id, std::string_view words) -> std::string {
    std::string result = R"({"content":[{"type":"text","text":)";
    json::append_quoted(result, words);
    result += R"(}],"isError":true})";
    return answer_text(id, result);
}

} // namespace glove::mcp
