// One table for each of the types, so that the two programs cannot read a text differently.
#include <glove/kernel/mediation.hpp>
#include <glove/wire/fields.hpp>

namespace glove::kernel {

namespace {

using std::chrono::milliseconds;
using wire::grammar;

constexpr std::size_t most_items = 4096;
constexpr std::uint64_t longest_time_ms = 7ULL * 24 * 3600 * 1000;

// As much as the kernel takes for one argument.
constexpr wire::text argument{grammar::no_nul, 0, 128UL << 10};
constexpr wire::text word{grammar::no_nul, 1, 64UL << 10};
constexpr wire::text file{grammar::no_nul, 1, 4096};
constexpr wire::text upstream_name{grammar::skill_key, 1, 32};
constexpr wire::integer time_ms{1, longest_time_ms};

struct millisecond_rule {
    [[nodiscard]] constexpr auto form() const -> wire::shape { return time_ms.form(); }
    [[nodiscard]] auto check(const milliseconds& in, const wire::place& at) const -> result<> {
        return time_ms.check(in.count(), at);
    }
    [[nodiscard]] auto read(const wire::json::value& in, milliseconds& out,
                            const wire::place& at) const -> result<> {
        std::int64_t count = 0;
        GLOVE_CHECK(time_ms.read(in, count, at));
        out = milliseconds{count};
        return {};
    }
    void write(wire::json::writer& out, const milliseconds& in) const {
        time_ms.write(out, in.count());
    }
};

// A name and what it stands for, as an array of two texts.
struct pair_rule {
    using pair = std::pair<std::string, std::string>;
    [[nodiscard]] constexpr auto form() const -> wire::shape {
        return {wire::json::kind::array, 2, 2, {}};
    }
    [[nodiscard]] auto check(const pair& in, const wire::place& at) const -> result<> {
        GLOVE_CHECK(word.check(in.first, wire::place{&at, {}, 0}));
        return argument.check(in.second, wire::place{&at, {}, 1});
    }
    [[nodiscard]] auto read(const wire::json::value& in, pair& out, const wire::place& at) const
        -> result<> {
        const auto* items = in.as_array();
        if (items == nullptr) return wire::detail::refuse_type(in, wire::json::kind::array, at);
        GLOVE_CHECK(wire::detail::check_count(items->size(), 2, 2, at));
        GLOVE_CHECK(word.read((*items)[0], out.first, wire::place{&at, {}, 0}));
        return argument.read((*items)[1], out.second, wire::place{&at, {}, 1});
    }
    void write(wire::json::writer& out, const pair& in) const {
        out.begin_array();
        out.element(in.first);
        out.element(in.second);
        out.end_array();
    }
};

constexpr auto task_words = std::to_array<wire::word<task>>({{"serve", task::serve},
                                                             {"bridge", task::bridge},
                                                             {"tools", task::tools},
                                                             {"check", task::check},
                                                             {"pin", task::pin}});
constexpr auto name_words = std::to_array<wire::word<tool_names>>(
    {{"qualified", tool_names::qualified}, {"bare", tool_names::bare}});

using wish = mcp::upstream_wish;
constexpr wire::list<word> words{0, most_items};
constexpr wire::list<pair_rule{}> pairs{0, most_items};

using perimeter = mcp::upstream_perimeter;
using grants = mcp::upstream_grants;
constexpr wire::list<argument> paths{0, most_items};

constexpr auto grant_fields = wire::table(wire::defaulted_row<&grants::read, paths>("read"),
                                          wire::defaulted_row<&grants::write, paths>("write"),
                                          wire::defaulted_row<&grants::egress, paths>("egress"));

constexpr auto perimeter_fields = wire::table(
    wire::row<&perimeter::glove, file>("glove"), wire::row<&perimeter::program, file>("program"),
    wire::defaulted_row<&perimeter::needs, paths>("needs"),
    wire::defaulted_row<&perimeter::directories, paths>("directories"),
    wire::row<&perimeter::workspace, file>("workspace"),
    wire::row<&perimeter::audit_log, file>("audit_log"));

constexpr auto upstream_fields =
    wire::table(wire::row<&wish::name, upstream_name>("name"),
                wire::row<&wish::argv, wire::list<argument>{1, most_items}>("argv"),
                wire::defaulted_row<&wish::environment, pairs>("environment"),
                wire::defaulted_row<&wish::passed, words>("passed"),
                wire::row<&wish::directory, file>("directory"),
                wire::defaulted_row<&wish::required, wire::flag{}>("required"),
                wire::row<&wish::start_timeout, millisecond_rule{}>("start_timeout_ms"),
                wire::row<&wish::call_timeout, millisecond_rule{}>("call_timeout_ms"),
                wire::defaulted_row<&wish::grants, wire::record<grant_fields>{}>("grants"),
                wire::row<&wish::perimeter, wire::record<perimeter_fields>{}>("perimeter"));

constexpr auto rule_fields =
    wire::table(wire::defaulted_row<&policy::wish::allow, words>("allow"),
                wire::defaulted_row<&policy::wish::deny, words>("deny"),
                wire::defaulted_row<&policy::wish::allow_arg, words>("allow_arg"),
                wire::row<&policy::wish::file, file>("file"));

constexpr auto fields = wire::table(
    wire::row<&mediation::task, wire::choice<task_words>{}>("task"),
    wire::row<&mediation::upstreams, wire::list<wire::record<upstream_fields>{}>{0, 256}>(
        "upstreams"),
    wire::row<&mediation::rules, wire::record<rule_fields>{}>("rules"),
    wire::defaulted_row<&mediation::relay, words>("relay"),
    wire::defaulted_row<&mediation::names, wire::choice<name_words>{}>("names"),
    wire::defaulted_row<&mediation::renames, pairs>("renames"),
    wire::row<&mediation::directory, file>("directory"),
    wire::row<&mediation::state, file>("state"),
    // `tools`, `check` and `pin` put nothing on record.
    wire::defaulted_row<&mediation::audit_log, wire::text{grammar::no_nul, 0, 4096}>("audit_log"),
    wire::defaulted_row<&mediation::audit_sync, wire::flag{}>("audit_sync"),
    wire::defaulted_row<&mediation::run, wire::text{grammar::ident, 0, 128}>("run"),
    wire::defaulted_row<&mediation::start_timeout_ms, time_ms>("start_timeout_ms"),
    wire::defaulted_row<&mediation::call_timeout_ms, time_ms>("call_timeout_ms"),
    wire::defaulted_row<&mediation::result_bytes, wire::integer{1, 1ULL << 40}>("result_bytes"),
    wire::defaulted_row<&mediation::instructions, wire::flag{}>("instructions"),
    wire::defaulted_row<&mediation::pinning, wire::flag{}>("pinning"),
    wire::defaulted_row<&mediation::contain_upstreams, wire::flag{}>("contain_upstreams"),
    wire::defaulted_row<&mediation::json, wire::flag{}>("json"),
    wire::row<&mediation::check_tool, word>("check_tool"),
    wire::row<&mediation::check_arguments, wire::text{grammar::no_nul, 0, 1UL << 20}>(
        "check_arguments"),
    wire::defaulted_row<&mediation::accept, words>("accept"),
    wire::defaulted_row<&mediation::forget, words>("forget"));

constexpr wire::json::limits bounds{.bytes = 32UL << 20, .elements = most_items};

} // namespace

auto encode(const mediation& what) -> result<std::string> { return wire::encode(what, fields); }

auto decode_mediation(std::string_view text) -> result<mediation> {
    return wire::decode_text(text, fields, bounds);
}

} // namespace glove::kernel
