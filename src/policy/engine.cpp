// Puts the command line and the file together, and answers. A rule that could never have an effect
// is an error: it would look like protection, or like permission.
#include "policy/engine_rules.hpp"
#include "policy/redact.hpp"
#include <algorithm>
#include <glove/base/text.hpp>
#include <glove/policy/engine.hpp>

namespace glove::policy {

namespace {

constexpr std::size_t most_words = 65'536;

using statements = std::map<tool_pattern, tool_statement>;

[[nodiscard]] auto flag(std::string_view name, std::string_view text) -> origin {
    return {"policy.rule", std::string{name} + " " + in_quotes(text)};
}

class builder {
public:
    builder(std::span<const std::string> upstreams, const std::string& directory,
            std::span<const std::string> started_in, place_book& places)
        : upstreams_{upstreams}, directory_{directory}, started_in_{started_in}, places_{places} {
        for (const auto& name : upstreams) rules_->upstreams[name];
    }

    [[nodiscard]] auto add_words(const wish& what) -> result<>;
    [[nodiscard]] auto add_file(rules_file&& file) -> result<>;
    [[nodiscard]] auto finish() -> result<std::unique_ptr<engine_rules>>;

private:
    void allow(const tool_pattern& tool);
    void deny(const tool_pattern& tool);
    [[nodiscard]] auto add_argument(const argument_word& word, const origin& from) -> result<>;
    [[nodiscard]] auto matcher_of(const std::string& prefix, const std::string& upstream,
                                  const origin& from) -> result<matcher_ptr>;
    [[nodiscard]] auto directories_of(const std::string& upstream) const
        -> std::vector<std::string>;
    void add_table(tool_table&& table);
    [[nodiscard]] auto has_effect(const tool_pattern& tool) const -> bool;
    [[nodiscard]] auto check_effect(const tool_pattern& tool, const origin& from) const -> result<>;
    [[nodiscard]] auto compile(const tool_statement& what) const -> result<tool_rules>;

    std::span<const std::string> upstreams_;
    const std::string& directory_;
    std::span<const std::string> started_in_;
    place_book& places_;
    std::unique_ptr<engine_rules> rules_ = std::make_unique<engine_rules>();
    statements statements_;
    std::vector<std::pair<tool_pattern, origin>> effects_; // that are to be there in the end
};

auto builder::add_words(const wish& what) -> result<> {
    if (what.allow.size() + what.deny.size() + what.allow_arg.size() > most_words)
        return fail(errc::limit_exceeded, "policy.rule", "there are too many rules",
                    "write them in a policy file");
    for (const auto& text : what.allow) {
        GLOVE_TRY(const auto tool, parse_pattern(text, upstreams_, flag("--allow", text)));
        allow(tool);
    }
    for (const auto& text : what.deny) {
        GLOVE_TRY(const auto tool, parse_pattern(text, upstreams_, flag("--deny", text)));
        deny(tool);
    }
    for (const auto& text : what.allow_arg) {
        const auto from = flag("--allow-arg", text);
        GLOVE_TRY(const auto word, parse_argument_word(text, upstreams_, from));
        GLOVE_CHECK(add_argument(word, from));
    }
    return {};
}

void builder::allow(const tool_pattern& tool) {
    auto& of = rules_->upstreams[tool.upstream];
    if (tool.tool.empty()) of.allow_all = true;
    else of.allow.insert(tool.tool);
    if (!tool.tool.empty()) of.named.insert(tool.tool);
    of.lines.push_back(printable(tool.text()) + ": allowed");
}

void builder::deny(const tool_pattern& tool) {
    auto& of = rules_->upstreams[tool.upstream];
    if (tool.tool.empty()) of.deny_all = true;
    else of.deny.insert(tool.tool);
    if (!tool.tool.empty()) of.named.insert(tool.tool);
    of.lines.push_back(printable(tool.text()) + ": denied");
}

// Where a relative path of its arguments could begin.
auto builder::directories_of(const std::string& upstream) const -> std::vector<std::string> {
    std::vector<std::string> out;
    if (directory_.starts_with('/')) out.push_back(directory_);
    const auto at =
        static_cast<std::size_t>(std::ranges::find(upstreams_, upstream) - upstreams_.begin());
    if (at < started_in_.size() && started_in_[at].starts_with('/') &&
        started_in_[at] != directory_)
        out.push_back(started_in_[at]);
    return out;
}

// What has the form of a path is one. Other text is compared as bytes.
auto builder::matcher_of(const std::string& prefix, const std::string& upstream, const origin& from)
    -> result<matcher_ptr> {
    GLOVE_TRY(const auto path, written_path(prefix, directory_, from));
    if (path) {
        GLOVE_TRY(auto root, places_.pin(*path, from));
        return below_path({std::move(root)}, relative::refused);
    }
    if (prefix.starts_with('$'))
        return from.refuse("variables are not replaced", "write what it stands for");
    if (prefix.starts_with("file:"))
        return from.refuse("a file URI is not compared as a path",
                           "use a policy file with match, or a tool that takes paths");
    // "https://a.example" would also be the beginning of https://a.example.evil.test.
    const auto authority = prefix.find("://");
    if (authority != std::string::npos && prefix.find('/', authority + 3) == std::string::npos)
        return from.refuse("the host of the URL has no end",
                           "end it by '/', or use url_host in a policy file");
    // As text it would permit what a link below it leads to.
    if (authority == std::string::npos && prefix.contains('/'))
        return from.refuse("a path that begins neither by '/' nor by './' is not compared as one",
                           "write ./" + printable(prefix) +
                               ", or the whole path; for what is no path, use a policy file with "
                               "match");
    return begins_with(prefix, directories_of(upstream));
}

auto builder::add_argument(const argument_word& word, const origin& from) -> result<> {
    GLOVE_TRY(auto rule, matcher_of(word.prefix, word.tool.upstream, from));
    statements_[word.tool].arguments.push_back({{word.field}, {std::move(rule)}});
    effects_.emplace_back(word.tool, from);
    return {};
}

void builder::add_table(tool_table&& table) {
    if (table.allow) *table.allow ? allow(table.tool) : deny(table.tool);
    tool_statement said{.arguments = std::move(table.arguments),
                        .required = std::move(table.required),
                        .forbidden = std::move(table.forbidden),
                        .additional = table.additional,
                        .limits = table.limits,
                        .redact = std::move(table.redact),
                        .where = table.where};
    // Who denies a tool may keep its rules for the day when it is allowed again.
    if (!table.allow) effects_.emplace_back(table.tool, origin{"policy.file", table.where});
    statements_[table.tool].append(said);
}

auto builder::add_file(rules_file&& file) -> result<> {
    for (auto& table : file.tools) add_table(std::move(table));
    for (auto& [name, roots] : file.roots) {
        auto& of = rules_->upstreams[name];
        for (const auto& each : roots) of.lines.push_back(name + ": is told the root " + each.uri);
        of.roots = std::move(roots);
    }
    for (auto& [name, prefixes] : file.resources) {
        auto& of = rules_->upstreams[name];
        for (const auto& each : prefixes)
            of.lines.push_back(name + ": resources of " + in_quotes(each.text) + " may be read");
        if (prefixes.empty()) of.lines.push_back(name + ": no resource may be read");
        of.resources = std::move(prefixes);
    }
    for (auto& [name, names] : file.prompts) {
        auto& of = rules_->upstreams[name];
        for (const auto& each : names)
            of.lines.push_back(name + ": the prompt " + in_quotes(each) + " may be asked for");
        if (names.empty()) of.lines.push_back(name + ": no prompt may be asked for");
        of.prompts = std::move(names);
    }
    return {};
}

// Whether rules for the tool, or for all tools, can ever be asked.
auto builder::has_effect(const tool_pattern& tool) const -> bool {
    const auto& of = rules_->upstreams.at(tool.upstream);
    if (of.deny_all) return false;
    if (!tool.tool.empty())
        return !of.deny.contains(tool.tool) && (of.allow_all || of.allow.contains(tool.tool));
    return of.allow_all || std::ranges::any_of(of.allow, [&](const std::string& name) {
               return !of.deny.contains(name);
           });
}

auto builder::check_effect(const tool_pattern& tool, const origin& from) const -> result<> {
    if (has_effect(tool)) return {};
    const auto name = printable(tool.text());
    const auto& of = rules_->upstreams.at(tool.upstream);
    if (of.deny_all || of.deny.contains(tool.tool))
        return from.refuse("has no effect: " + name + " is denied",
                           "leave one of the two out: what is denied cannot be called at all");
    return from.refuse("has no effect: no rule allows " + name,
                       "allow it as well: --allow " + name +
                           ", or allow = true in its table of the policy file");
}

auto builder::compile(const tool_statement& what) const -> result<tool_rules> {
    tool_rules out;
    for (const auto& rule : what.arguments) out.arguments.add(rule);
    for (const auto& at : what.required) out.arguments.require(at);
    for (const auto& at : what.forbidden) out.arguments.forbid(at);
    out.arguments.set_additional(what.additional.value_or(false));
    if (const auto wrong = out.arguments.contradiction())
        return origin{"policy.file", what.where}.refuse(printable(*wrong), {});
    out.limits = what.limits;
    out.redact = what.redact;
    return out;
}

auto builder::finish() -> result<std::unique_ptr<engine_rules>> {
    for (const auto& [tool, from] : effects_) GLOVE_CHECK(check_effect(tool, from));
    for (const auto& [tool, said] : statements_) {
        auto& of = rules_->upstreams.at(tool.upstream);
        for (auto& line : describe_tool(tool, said)) of.lines.push_back(std::move(line));
        if (tool.tool.empty()) {
            GLOVE_TRY(of.every, compile(said));
            continue;
        }
        of.named.insert(tool.tool);
        tool_statement whole;
        const auto every = statements_.find(tool_pattern{tool.upstream, {}});
        if (every != statements_.end()) whole = every->second;
        whole.append(said);
        GLOVE_TRY(of.exact[tool.tool], compile(whole));
    }
    return std::move(rules_);
}

[[nodiscard]] auto build(const wish& what, rules_file&& file, const file_context& in)
    -> result<std::unique_ptr<engine_rules>> {
    builder out{in.upstreams, in.directory, what.started_in, in.places};
    GLOVE_CHECK(out.add_words(what));
    GLOVE_CHECK(out.add_file(std::move(file)));
    return out.finish();
}

[[nodiscard]] auto deny(std::string rule) -> verdict { return {false, std::move(rule)}; }

[[nodiscard]] auto name_of(const tool_name& tool) -> std::string {
    return wire::json::readable_name(tool.upstream) + "." + wire::json::readable_name(tool.tool);
}

// A URI that could be another one for whoever resolves it.
[[nodiscard]] auto is_plain_uri(std::string_view uri) -> bool {
    for (const char c : uri)
        if (static_cast<unsigned char>(c) <= ' ' || c == 0x7f || c == '\\') return false;
    return !climbs(uri);
}

[[nodiscard]] auto holds(const uri_prefix& prefix, std::string_view uri) -> bool {
    if (prefix.below)
        return uri.starts_with("file://") && prefix.below->holds(uri.substr(sizeof "file://" - 1));
    if (!uri.starts_with(prefix.text) || !is_plain_uri(uri)) return false;
    constexpr std::string_view ends = "/?#:";
    return uri.size() == prefix.text.size() ||
           ends.find(prefix.text.back()) != std::string_view::npos ||
           ends.find(uri[prefix.text.size()]) != std::string_view::npos;
}

} // namespace

void tool_statement::append(const tool_statement& more) {
    const auto join = [](auto& to, const auto& from) {
        to.insert(to.end(), from.begin(), from.end());
    };
    join(arguments, more.arguments);
    join(required, more.required);
    join(forbidden, more.forbidden);
    join(redact, more.redact);
    if (more.additional) additional = more.additional;
    if (more.limits.timeout) limits.timeout = more.limits.timeout;
    if (more.limits.result_bytes) limits.result_bytes = more.limits.result_bytes;
    if (more.limits.calls) limits.calls = more.limits.calls;
    if (more.limits.per_minute) limits.per_minute = more.limits.per_minute;
    if (!more.where.empty()) where = more.where;
}

engine::engine(std::unique_ptr<engine_rules> rules) : rules_{std::move(rules)} {}
engine::engine(engine&&) noexcept = default;
auto engine::operator=(engine&&) noexcept -> engine& = default;
engine::~engine() = default;

auto engine::parse(const wish& what, std::string_view file_text,
                   std::span<const std::string> upstreams, const std::string& directory)
    -> result<engine> {
    place_book places;
    const file_context in{what.file.value_or("policy"), upstreams, directory, places};
    GLOVE_TRY(auto file, parse_rules(file_text, in));
    GLOVE_TRY(auto rules, build(what, std::move(file), in));
    return engine{std::move(rules)};
}

auto engine::load(const wish& what, std::span<const std::string> upstreams,
                  const std::string& directory) -> result<engine> {
    if (!what.file) return parse(what, {}, upstreams, directory);
    GLOVE_TRY(const auto text, read_rules(*what.file));
    return parse(what, text, upstreams, directory);
}

auto engine::shows(const tool_name& tool) const -> verdict {
    const auto* const of = rules_->find(tool.upstream);
    if (of == nullptr) return deny("there is no such upstream");
    if (of->deny_all || of->deny.contains(tool.tool)) return deny(name_of(tool) + " is denied");
    if (of->allow_all || of->allow.contains(tool.tool)) return {.allowed = true};
    return deny("no rule allows " + name_of(tool));
}

auto engine::decides(const tool_name& tool, const wire::json::value* arguments) const -> verdict {
    if (auto shown = shows(tool); !shown.allowed) return shown;
    static const wire::json::value none{wire::json::object{}};
    const auto& given = arguments == nullptr ? none : *arguments;
    if (given.as_object() == nullptr) return deny("the arguments are not an object");
    auto wrong = rules_->find(tool.upstream)->of(tool.tool).arguments.complaint(given);
    return wrong.empty() ? verdict{.allowed = true} : deny(std::move(wrong));
}

auto engine::judges_arguments(const tool_name& tool) const -> bool {
    const auto* const of = rules_->find(tool.upstream);
    return of != nullptr && !of->of(tool.tool).arguments.empty();
}

auto engine::reads(std::string_view upstream, std::string_view uri) const -> verdict {
    const auto* const of = rules_->find(upstream);
    if (of == nullptr) return deny("there is no such upstream");
    if (!of->resources) return {.allowed = true};
    const bool held = std::ranges::any_of(
        *of->resources, [&](const uri_prefix& prefix) { return holds(prefix, uri); });
    return held ? verdict{.allowed = true} : deny("no rule allows this resource");
}

auto engine::prompts(std::string_view upstream, std::string_view name) const -> verdict {
    const auto* const of = rules_->find(upstream);
    if (of == nullptr) return deny("there is no such upstream");
    if (!of->prompts || std::ranges::find(*of->prompts, name) != of->prompts->end())
        return {.allowed = true};
    return deny("no rule allows this prompt");
}

auto engine::limits_of(const tool_name& tool) const -> tool_limits {
    const auto* const of = rules_->find(tool.upstream);
    return of == nullptr ? tool_limits{} : of->of(tool.tool).limits;
}

auto engine::redacts(const tool_name& tool) const -> bool {
    const auto* const of = rules_->find(tool.upstream);
    return of != nullptr && !of->of(tool.tool).redact.empty();
}

auto engine::redact(const tool_name& tool, std::string& text, std::size_t most_growth) const
    -> bool {
    const auto* const of = rules_->find(tool.upstream);
    return of != nullptr && policy::redact(of->of(tool.tool).redact, text, most_growth);
}

auto engine::roots(std::string_view upstream) const -> std::span<const root> {
    const auto* const of = rules_->find(upstream);
    return of == nullptr ? std::span<const root>{} : std::span<const root>{of->roots};
}

auto engine::named_tools() const -> std::vector<std::string> {
    std::vector<std::string> out;
    for (const auto& [upstream, of] : rules_->upstreams)
        for (const auto& tool : of.named) out.push_back(upstream + "." + tool);
    return out;
}

auto engine::describe() const -> std::string {
    std::string out;
    for (const auto& [upstream, of] : rules_->upstreams) {
        for (const auto& line : of.lines) (out += line) += '\n';
        if (of.lines.empty()) out += printable(upstream) + ": no rule allows any of its tools\n";
    }
    return out;
}

} // namespace glove::policy
