// A field table says what a line may hold; the arguments are JSON inside of a string.
#include <glove/audit/names.hpp>
#include <glove/audit/reader.hpp>
#include <glove/wire/fields.hpp>

namespace glove::audit {

namespace {

namespace json = wire::json;

// Any text at all: a record tells what an agent said.
struct free_text {
    [[nodiscard]] constexpr auto form() const -> wire::shape {
        return {json::kind::string, 0, longest_line, {}};
    }
    [[nodiscard]] auto check(const std::string&, const wire::place&) const -> result<> {
        return {};
    }
    [[nodiscard]] auto read(const json::value& in, std::string& out, const wire::place& at) const
        -> result<> {
        const auto* const text = in.as_string();
        if (text == nullptr) return wire::detail::refuse_type(in, json::kind::string, at);
        out = *text;
        return {};
    }
    void write(json::writer& out, const std::string& in) const { out.element(in); }
};

template<class E, std::size_t N>
consteval auto words_for(const std::array<std::string_view, N>& names) {
    std::array<wire::word<E>, N> out{};
    for (std::size_t i = 0; i < N; ++i) out[i] = {names[i], static_cast<E>(i)};
    return out;
}
constexpr auto action_words = words_for<action>(action_names);
constexpr auto status_words = words_for<status>(status_names);

constexpr wire::integer any_number{INT64_MIN, INT64_MAX};
constexpr auto fields = wire::table(
    wire::row<&event::action, wire::choice<action_words>{}>("action"),
    wire::row<&event::tool, free_text{}>("tool"),
    wire::row<&event::arguments, free_text{}>("arguments"),
    wire::row<&event::status, wire::choice<status_words>{}>("status"),
    wire::row<&event::error, free_text{}>("error"),
    wire::row<&event::timestamp_ns, any_number>("timestamp_ns"),
    wire::row<&event::latency_ns, any_number>("latency_ns"),
    wire::row<&event::run, free_text{}>("run"), wire::row<&event::call, free_text{}>("call"));

// Whatever a message may hold, the arguments of a call may.
constexpr json::limits bounds{.bytes = longest_line,
                              .depth = json::max_depth,
                              .members = 1UL << 20,
                              .elements = 1UL << 20,
                              .values = 1UL << 21,
                              .string_bytes = longest_line,
                              .number_bytes = longest_line,
                              .form = json::numbers::any,
                              .zero = json::nul::allowed};

[[nodiscard]] auto count_in(const json::value& arguments, std::string_view name)
    -> std::optional<std::uint64_t> {
    const auto* const found = arguments.find(name);
    return found == nullptr ? std::nullopt : found->as_unsigned();
}
[[nodiscard]] auto number_in(const json::value& arguments, std::string_view name)
    -> std::optional<std::int64_t> {
    const auto* const found = arguments.find(name);
    return found == nullptr ? std::nullopt : found->as_signed();
}

void read_words(record& out, const json::value& arguments) {
    const auto* const argv = arguments.find("argv");
    const auto* const words = argv == nullptr ? nullptr : argv->as_array();
    if (words == nullptr) return;
    for (const auto& word : *words)
        if (const auto* const text = word.as_string(); text != nullptr) out.argv.push_back(*text);
}

// Only what Glove itself has said is looked into: the arguments of a call are the agent's words,
// which could say that it sent nothing. Members that other versions may add are no fault; another
// type of ours is left out.
[[nodiscard]] auto read_arguments(record& out) -> result<> {
    if (!out.data.arguments) return {};
    GLOVE_TRY(const auto arguments, json::read(*out.data.arguments, bounds));
    switch (out.data.action) {
    case action::agent_launch: read_words(out, arguments); break;
    case action::agent_exit:
        if (const auto* const cause = arguments.find("cause"); cause != nullptr)
            if (const auto* const text = cause->as_string(); text != nullptr) out.cause = *text;
        out.code = number_in(arguments, "code");
        out.signal = number_in(arguments, "signal");
        break;
    case action::egress:
        out.sent = count_in(arguments, "sent");
        out.received = count_in(arguments, "received");
        break;
    case action::list_tools:
    case action::call_tool:
    case action::initialize:
    case action::ssh_sign: break;
    }
    return {};
}

} // namespace

auto read_record(std::string_view line) -> result<record> {
    record out;
    GLOVE_TRY(out.data, wire::decode_text<event>(line, fields, bounds));
    GLOVE_CHECK(read_arguments(out));
    return out;
}

void line_cutter::feed(std::string_view bytes, const std::function<void(const line&)>& take) {
    while (!bytes.empty()) {
        const auto end = bytes.find('\n');
        const auto part = bytes.substr(0, end);
        if (!skipping_ && part.size() > longest_line - held_.size()) {
            skipping_ = true;
            held_ = {};
        }
        if (end == std::string_view::npos) {
            if (!skipping_) held_ += part;
            return;
        }
        if (skipping_) take({{}, number_, true});
        else if (const auto whole = held_.empty() ? part : std::string_view{held_ += part};
                 whole.find_first_not_of(' ') != whole.npos)
            take({whole, number_, false});
        held_.clear();
        skipping_ = false;
        ++number_;
        bytes.remove_prefix(end + 1);
    }
}

} // namespace glove::audit
